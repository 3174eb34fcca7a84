"""Ask the authorization server about each token: RFC 7662, for tokens that are not JWTs.

    url = "https://mcp.example.com/mcp"
    verify = introspection("https://login.example.com/introspect", "me", SECRET, audience=url)
    guard = Guard(resource_url=url, issuers=["https://login.example.com"], verify=verify)

A Guard keeps a judgement for a minute. Where verify() raises, nobody can say whether the token is
right: the client hears 503, and tries again; with 401 every client would log in again.
"""

import asyncio
import base64
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote_plus, urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # mcp_lite.py is two levels up

from mcp_lite import Principal


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: our secret goes to nobody else."""

    def redirect_request(self, *args: object) -> None:
        return None


def introspection(
    endpoint: str, client_id: str, client_secret: str, *, audience: str, issuer: "str | None" = None
):
    """Return a judge of tokens, for Guard(verify=): what they are for must contain `audience`."""
    place = urlsplit(endpoint)
    if place.scheme != "https" and place.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError(f"{endpoint} must begin with https://")
    known = issuer or f"{place.scheme}://{place.netloc}"
    pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}".encode()
    headers = {
        "authorization": f"Basic {base64.b64encode(pair).decode()}",
        "accept": "application/json",
    }
    opener = urllib.request.build_opener(NoRedirect)

    def ask(token: str) -> dict:
        form = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        request = urllib.request.Request(endpoint, form, headers)
        try:
            with opener.open(request, timeout=10) as answer:
                doc = json.loads(answer.read(1_000_000))
        except urllib.error.HTTPError as refusal:
            refusal.close()  # it holds the connection
            raise
        if "active" not in doc or not isinstance(doc, dict):
            raise ValueError(f"{endpoint} did not answer the question")
        return doc

    async def verify(token: str) -> "Principal | None":
        doc = await asyncio.get_running_loop().run_in_executor(None, ask, token)
        meant, subject = doc.get("aud"), doc.get("sub") or doc.get("client_id")
        meant = meant if isinstance(meant, list) else [meant]
        right = doc["active"] is True and audience in meant and doc.get("iss", known) == known
        if not (right and subject) or time.time() >= doc.get("exp", float("inf")):
            return None
        scopes = str(doc.get("scope", "")).split()
        return Principal(known, subject, doc.get("client_id", ""), scopes, doc.get("exp"), doc)

    return verify
