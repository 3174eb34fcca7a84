"""Sign what mcp_lite only verifies: assertions of a client, and proofs that it owns a key (DPoP).

    auth = ClientCredentials("me", assertion=assertion_of(PEM, "me"), issuer=URL)  # no secret
    auth = DPoP()                                                # tokens bound to a new key

and ask for tokens with what others vouch for: WorkloadIdentity, IdentityAssertion.

Python's integers are not constant-time: how long a signature takes tells something of the key. So
these keys are a client's own. It signs a few times in an hour, on its own machine, nothing that
somebody else chose. A server that signs for others needs a real library, and so does whoever
shares a machine with strangers.
"""

import base64
import json
import re
import secrets
import sys
import time
from hashlib import sha256
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # mcp_lite.py is two levels up

from mcp_lite import AuthError, ClientCredentials, Login, OAuth

# P-256. FIPS 186-4 §D.1.2.3
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
SHA256_INFO = bytes.fromhex("3031300d060960864801650304020105000420")  # RFC 8017 §9.2, note 1
INTEGER, OCTETS, OID, SEQUENCE = 2, 4, 6, 0x30  # of DER, as far as keys need it
RSA_OID, EC_OID = bytes.fromhex("2a864886f70d010101"), bytes.fromhex("2a8648ce3d0201")
TOKEN_TYPE = "urn:ietf:params:oauth:token-type:"  # RFC 8693 §3


def url64(data: bytes) -> str:
    """Return data in the alphabet of URLs. RFC 7515 §2"""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# Keys.


def add(one: "tuple | None", two: "tuple | None") -> "tuple | None":
    """Add two points of the curve; None is infinity."""
    if one is None or two is None:
        return two or one
    (x1, y1), (x2, y2) = one, two
    if x1 == x2 and (y1 + y2) % P == 0:
        return None
    if one == two:
        slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, P)
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, P)
    x3 = (slope * slope - x1 - x2) % P
    return x3, (slope * (x1 - x3) - y1) % P


def times(k: int) -> tuple:
    """Return k times G. Each bit costs two additions, whatever it is: Montgomery's ladder."""
    low, high = None, G
    for bit in f"{k:0256b}":
        if bit == "1":
            low, high = add(low, high), add(high, high)
        else:
            low, high = add(low, low), add(low, high)
    return low


class ECKey:
    """A private key on P-256: signs with ES256."""

    alg = "ES256"

    def __init__(self, d: int) -> None:
        if not 0 < d < N:
            raise ValueError("the private part of the key is out of range")
        self.d = d

    def jwk(self) -> dict:
        """Return the public part. RFC 7518 §6.2"""
        x, y = (url64(number.to_bytes(32, "big")) for number in times(self.d))
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y}

    def sign(self, data: bytes) -> bytes:
        """Return a signature, r and s of 32 bytes each. RFC 7518 §3.4"""
        h = int.from_bytes(sha256(data).digest(), "big")
        while True:
            k = 1 + secrets.randbelow(N - 1)
            r = times(k)[0] % N
            s = pow(k, -1, N) * (h + r * self.d) % N
            if r and s:
                return r.to_bytes(32, "big") + s.to_bytes(32, "big")


class RSAKey:
    """A private RSA key: signs with RS256."""

    alg = "RS256"

    def __init__(self, n: int, d: int) -> None:
        self.n, self.d = n, d

    def sign(self, data: bytes) -> bytes:
        """Return a signature. RFC 8017 §8.2.1"""
        size, end = (self.n.bit_length() + 7) // 8, b"\0" + SHA256_INFO + sha256(data).digest()
        padded = b"\0\1" + b"\xff" * (size - 2 - len(end)) + end
        return pow(int.from_bytes(padded, "big"), self.d, self.n).to_bytes(size, "big")


def elements(data: bytes, *tags: int) -> list:
    """Return the contents of the first elements in DER; ValueError unless their tags are these."""
    found = []
    for tag in tags:
        if len(data) < 2 or data[0] != tag:
            raise ValueError(f"element {tag} is missing")
        size, at = data[1], 2
        if size & 0x80:
            at += size & 0x7F
            size = int.from_bytes(data[2:at], "big")
        if at + size > len(data):
            raise ValueError("an element is cut off")
        found.append(data[at : at + size])
        data = data[at + size :]
    return found


def read_pem(text: str) -> "ECKey | RSAKey":
    """Return the private key in a PEM text, unencrypted PKCS #8; ValueError. RFC 5958, RFC 7468"""
    found = re.search("-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----", text)
    if found is None:
        raise ValueError("no key: -----BEGIN PRIVATE KEY----- is needed, unencrypted PKCS #8")
    der = base64.b64decode("".join(found[1].split()), validate=True)
    _, kind, inner = elements(elements(der, SEQUENCE)[0], INTEGER, SEQUENCE, OCTETS)
    content = elements(inner, SEQUENCE)[0]
    if elements(kind, OID)[0] == RSA_OID:
        _, n, _, d = (int.from_bytes(part, "big") for part in elements(content, *[INTEGER] * 4))
        return RSAKey(n, d)
    if elements(kind, OID)[0] == EC_OID:
        return ECKey(int.from_bytes(elements(content, INTEGER, OCTETS)[1], "big"))
    raise ValueError("the key is neither RSA nor EC on P-256")


def make_jwt(header: dict, claims: dict, key: "ECKey | RSAKey") -> str:
    """Return a signed token. RFC 7519 §7.1"""
    parts = ({"alg": key.alg, **header}, claims)
    text = ".".join(url64(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
    return f"{text}.{url64(key.sign(text.encode()))}"


# Ways to a token.


def assertion_of(pem: str, client_id: str):
    """Return a function for `assertion=`: proof who we are, without a secret. RFC 7523 §3"""
    key = read_pem(pem)

    def assertion(issuer: str) -> str:
        now = int(time.time())
        claims = {"iss": client_id, "sub": client_id, "aud": issuer, "iat": now, "exp": now + 60,
                  "jti": secrets.token_urlsafe(16)}  # fmt: skip
        return make_jwt({"typ": "JWT"}, claims, key)

    return assertion


class ProvenLogin(Login):
    """The state of a DPoP at one server, with a key and nonces of its own."""

    def __init__(self, oauth, transport) -> None:
        super().__init__(oauth, transport)
        self.key, self.nonces = ECKey(1 + secrets.randbelow(N - 1)), {}
        self.post, self.fetcher.post_form = self.fetcher.post_form, self.post_with_proof

    def proof(self, method: str, url: str, token: str = "") -> str:
        """Return a proof for one request, with the last nonce that its server gave. §4.2"""
        claims = {"jti": secrets.token_urlsafe(16), "htm": method, "htu": re.split("[?#]", url)[0],
                  "iat": int(time.time())}  # fmt: skip
        if token:
            claims["ath"] = url64(sha256(token.encode()).digest())
        if self.origin(url) in self.nonces:
            claims["nonce"] = self.nonces[self.origin(url)]
        return make_jwt({"typ": "dpop+jwt", "jwk": self.key.jwk()}, claims, self.key)

    @staticmethod
    def origin(url: str) -> str:
        """Return the scheme and the authority of a URL: nonces are a server's. §8.2"""
        return "/".join(str(url).split("/")[:3])

    async def headers(self, method: str, target: str, ask: bool) -> dict:
        """Add a proof to the token."""
        fields = await super().headers(method, target, ask)
        if fields:
            token = fields["authorization"].partition(" ")[2]
            fields["dpop"] = self.proof(method, str(self.url.replace(target=target)), token)
        return fields

    async def settle(self, response, sent: dict, steps: list) -> bool:
        """Send a request once more with the nonce that the server wants. §9"""
        headers = response.head.headers
        if "dpop-nonce" in headers:
            self.nonces[self.origin(self.url)] = headers["dpop-nonce"]
            wanted = "use_dpop_nonce" in headers.get("www-authenticate", "")
            if response.head.status == 401 and wanted and "nonce" not in steps:
                steps.append("nonce")
                return True
        return await super().settle(response, sent, steps)

    async def post_with_proof(self, url, headers: dict, form: dict):
        """Send a token request with a proof, once more if the server wants a nonce in it. §8"""
        for last in (False, True):
            sent = {**headers, "dpop": self.proof("POST", str(url))}
            status, answered, doc = await self.post(url, sent, form)
            if "dpop-nonce" in answered:
                self.nonces[self.origin(url)] = answered["dpop-nonce"]
            wanted = isinstance(doc, dict) and doc.get("error") == "use_dpop_nonce"
            if last or not wanted or "dpop-nonce" not in answered:
                return status, answered, doc

    async def load(self):
        """Find no login that is kept: its key has gone with the process."""
        return self.kept


class DPoP(OAuth):
    """A login whose tokens are good for the owner of a key only, which is made anew each time.

    RFC 9449. Each request carries a proof, signed by the key: 3 ms and more for each.
    """

    scheme, state = "DPoP", ProvenLogin


async def text_of(source) -> str:
    """Return a text as it is, or what a function, plain or async, gives."""
    value = source() if callable(source) else source
    return str(await value if hasattr(value, "__await__") else value)


class WorkloadIdentity(ClientCredentials):
    """A program whose platform vouches for it: `jwt` is a token of the platform, or gives one.

    RFC 7523
    """

    def __init__(self, client_id: str, jwt, **options) -> None:
        super().__init__(client_id, **options)
        self.jwt = jwt

    async def grant(self, login, server: dict, about: dict) -> dict:
        """Show the platform's token."""
        kind = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        return {"grant_type": kind, "assertion": await text_of(self.jwt)}


class IdentityAssertion(ClientCredentials):
    """A user whose company vouches for them: `id_token` is theirs, or gives it. It is exchanged
    at the company's provider for a grant that our server's authorization server takes: ID-JAG."""

    def __init__(
        self, client_id, client_secret, *, idp_token_endpoint, idp_client_id, id_token, **options
    ):  # fmt: skip
        super().__init__(client_id, client_secret, **options)
        self.idp = {"issuer": idp_token_endpoint, "token_endpoint": idp_token_endpoint}
        self.idp_client = {"client_id": idp_client_id, "token_endpoint_auth_method": "none"}
        self.id_token = id_token

    async def grant(self, login, server: dict, about: dict) -> dict:
        """Exchange the user's token for a grant. RFC 8693 §2.1"""
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": TOKEN_TYPE + "id-jag",
            "subject_token": await text_of(self.id_token),
            "subject_token_type": TOKEN_TYPE + "id_token",
            "audience": server["issuer"],
            **about,
        }
        doc = await login.token_request(self.idp, self.idp_client, form)
        kind, grant = doc.get("issued_token_type"), doc.get("access_token")
        if kind != TOKEN_TYPE + "id-jag" or not isinstance(grant, str):
            raise AuthError(f"{self.idp['issuer']}: issued_token_type is not id-jag")
        return {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": grant}
