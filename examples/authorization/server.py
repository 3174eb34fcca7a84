"""A server that is its own authorization server: small, complete, and safe enough to copy.

    python server.py [--port 8000] [--database FILE]     # then: any MCP client, at .../mcp

People log in with a name and a password, agree on a page, and may take it back. Clients register
themselves. All of it is five pages and five tables; MCP itself is served by mcp_lite, and Guard
lets in whoever has a token that these pages gave out.

What keeps it safe, and must stay if you copy it:
  * redirect URIs are compared whole, and are https or this machine;
  * every code works once, for a minute, for its client, its redirect URI and its PKCE challenge;
    one that comes a second time ends all that it gave;
  * of tokens, codes and passwords the database has hashes alone;
  * a refresh token works once; one that comes a second time ends everything it led to;
  * pages escape what they show, cannot be framed, and a form is good for one answer, of the browser
    that it was shown in: by a cookie;
  * passwords of one person can be guessed once a second.
"""

import argparse
import asyncio
import html
import json
import secrets
import sqlite3
import sys
import time
from hashlib import scrypt, sha256
from hmac import compare_digest
from inspect import isawaitable
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # mcp_lite.py is two levels up

from mcp_lite import (
    Context,
    Guard,
    Principal,
    Server,
    code_challenge,
    is_loopback,
    parse_url,
)

ACCESS_SECONDS, REFRESH_SECONDS, CODE_SECONDS = 600, 30 * 86400, 60
MAX_WAITING = 10_000  # forms that nobody has sent yet; the oldest gives way
MAX_URI_CHARS = 2000  # a redirect URI; up to five are kept for whoever registers
PASSWORD_WORK = 2**14  # for scrypt: a guess takes 50 ms and 16 MB
SCOPES = {"notes:read": "read your notes", "notes:write": "write notes in your name"}
TABLES = """
CREATE TABLE IF NOT EXISTS people  (name TEXT PRIMARY KEY, salt BLOB, password BLOB);
CREATE TABLE IF NOT EXISTS clients (id TEXT PRIMARY KEY, name TEXT, redirects TEXT);
CREATE TABLE IF NOT EXISTS codes   (hash BLOB PRIMARY KEY, family TEXT, asked TEXT, person TEXT,
                                    until REAL, used INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS tokens  (hash BLOB PRIMARY KEY, kind TEXT, family TEXT, client TEXT,
                                    person TEXT, scope TEXT, until REAL, used INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS notes   (person TEXT, text TEXT);
"""
PAGE_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
JSON_HEADERS = {"content-type": "application/json", "cache-control": "no-store"}
LOGIN = (
    '<input name="person" placeholder="name">'
    '<input name="password" type="password" placeholder="password">'
)


def hashed(secret):
    """Return what the database keeps of a secret that nobody can guess."""
    return sha256(secret.encode()).digest()


def stretched(password, salt):
    """Return what the database keeps of a password, which somebody could guess."""
    return scrypt(password.encode(), salt=salt, n=PASSWORD_WORK, r=8, p=1)


def read_query(query):
    """Return the parameters of a query or a form; ValueError if one is there twice."""
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=50)
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a parameter is there twice")
    return dict(pairs)


def remember(table, name, value):
    """Keep a value under a name. If there are too many, the oldest gives way."""
    table[name] = value
    if len(table) > MAX_WAITING:
        del table[next(iter(table))]


class Problem(Exception):
    """An error of OAuth: its code, and an HTTP status. RFC 6749 §5.2"""

    def __init__(self, error, status=400):
        super().__init__(error)
        self.status = status


class Authority:
    """The authorization server: five pages of a server that has more than these."""

    fields = LOGIN  # of the page on which the user agrees

    def __init__(self, root, database):
        self.root, self.db = root, sqlite3.connect(database, isolation_level=None)
        self.db.executescript(TABLES)
        self.forms = {}  # what a form was made for, by its secret: (what is asked, browser, until)
        # Browsers send a __Host- cookie to this host alone, and let no other host set it.
        self.cookie = "__Host-browser" if root.startswith("https:") else "browser"
        self.wrong = {}  # when a user's password was last guessed wrong

    def mount(self, app):
        """Serve the pages."""
        pages = {
            ("GET", "/.well-known/oauth-authorization-server"): self.metadata,
            ("POST", "/register"): self.register,
            ("GET", "/authorize"): self.ask,
            ("POST", "/authorize"): self.answer,
            ("POST", "/token"): self.token,
            ("POST", "/revoke"): self.revoke,
        }
        for (method, path), fn in pages.items():
            app.route(method, path, public=True)(self.safely(fn))

    def safely(self, fn):
        """Return a page whose problems are answers."""

        async def page(request):  # on the loop, where the database is
            try:
                value = fn(request)
                return await value if isawaitable(value) else value
            except Problem as problem:
                return problem.status, JSON_HEADERS, json.dumps({"error": str(problem)})
            # What came is not what it should be.
            except (ValueError, TypeError, AttributeError, RecursionError):
                return 400, JSON_HEADERS, '{"error": "invalid_request"}'
            except OSError:  # who must be asked cannot be
                return 503, JSON_HEADERS, '{"error": "temporarily_unavailable"}'

        return page

    def one(self, query, *values):
        """Return the first row of a query, or None."""
        return self.db.execute(query, values).fetchone()

    def add_person(self, name, password):
        """Let somebody log in."""
        salt = secrets.token_bytes(16)
        row = (name, salt, stretched(password, salt))
        self.db.execute("INSERT OR REPLACE INTO people VALUES (?, ?, ?)", row)

    def metadata(self, request):
        """Say where everything is. RFC 8414"""
        doc = {
            "issuer": self.root,
            "authorization_endpoint": self.root + "/authorize",
            "token_endpoint": self.root + "/token",
            "registration_endpoint": self.root + "/register",
            "revocation_endpoint": self.root + "/revoke",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": list(SCOPES),
        }
        return 200, {**JSON_HEADERS, "access-control-allow-origin": "*"}, json.dumps(doc)

    def register(self, request):
        """Make a client of whoever asks: it gets no rights by that. RFC 7591"""
        doc = json.loads(request.body)
        uris, name = doc.get("redirect_uris") or [], str(doc.get("client_name", "a program"))[:80]
        for uri in uris:
            url = parse_url(uri)
            if (url.scheme != "https" and not is_loopback(url.host)) or len(uri) > MAX_URI_CHARS:
                raise Problem("invalid_redirect_uri")
        if not uris or len(uris) > 5:
            raise Problem("invalid_redirect_uri")
        id = secrets.token_urlsafe(16)
        self.db.execute("INSERT INTO clients VALUES (?, ?, ?)", (id, name, json.dumps(uris)))
        told = {"client_id": id, "client_name": name, "redirect_uris": uris,
                "token_endpoint_auth_method": "none"}  # fmt: skip
        return 201, JSON_HEADERS, json.dumps(told)

    # The person's part.

    def check_request(self, asked):
        """Return the client's name; Problem unless it is known, and is answered at home."""
        id = asked.get("client_id")
        client = self.one("SELECT name, redirects FROM clients WHERE id = ?", id)
        # Until this has passed, nobody is sent anywhere: the redirect URI may be an attacker's.
        if client is None or asked.get("redirect_uri") not in json.loads(client[1]):
            raise Problem("invalid_request")
        if asked.get("response_type") != "code" or asked.get("code_challenge_method") != "S256":
            raise Problem("invalid_request")
        if not asked.get("code_challenge") or asked.get("resource") != self.root + "/mcp":
            raise Problem("invalid_target")
        if not set(asked.get("scope", "").split()) <= set(SCOPES):
            raise Problem("invalid_scope")
        return client[0]

    def ask(self, request, said=""):
        """Show the page on which the user logs in and agrees."""
        asked = read_query(request.query)
        name, now = self.check_request(asked), time.time()
        secret, browser = secrets.token_urlsafe(32), self.browser(request)
        browser = browser or secrets.token_urlsafe(32)
        remember(self.forms, secret, (asked, hashed(browser), now + 600))
        secure = "; Secure" if self.root.startswith("https:") else ""
        cookie = f"{self.cookie}={browser}; Path=/; HttpOnly; SameSite=Lax{secure}"
        wants = "".join(f"<li>{html.escape(SCOPES[s])}" for s in asked.get("scope", "").split())
        home = html.escape(parse_url(asked["redirect_uri"]).authority)
        return 200, {**PAGE_HEADERS, "set-cookie": cookie}, (
            f"<!doctype html><title>Log in</title><h1>{html.escape(name)} wants to</h1>"
            f"<ul>{wants or '<li>know that it is you'}</ul><p>It will be told at {home}. {said}"
            f'<form method="post"><input type="hidden" name="form" value="{secret}">{self.fields}'
            '<button name="answer" value="yes">Agree</button>'
            '<button name="answer" value="no">Refuse</button></form>'
        )  # fmt: skip

    async def answer(self, request):
        """Send the browser back, with a code if the user agreed."""
        asked, form = self.answered(request)
        if form.get("answer") != "yes":
            return self.back(asked)
        name, now = form.get("person"), time.time()
        person = self.one("SELECT salt, password FROM people WHERE name = ?", name)
        if self.wrong.get(name, 0) > now - 1:
            raise Problem("slow_down", 429)
        self.wrong.update({name: now} if person else {})
        salt, known = person or (b"nobody", b"")
        # It takes a tenth of a second, in which the loop has others to serve.
        given = await asyncio.to_thread(stretched, form.get("password", ""), salt)
        if not compare_digest(given, known):
            raise Problem("access_denied", 403)
        self.wrong.pop(name, None)
        return self.back(asked, name, secrets.token_hex(8))

    def browser(self, request):
        """Return the name that we gave to the browser which asks, "" if it has none."""
        cookies = request.headers.get("cookie", "").split(";")
        return dict(each.strip().partition("=")[::2] for each in cookies).get(self.cookie, "")

    def answered(self, request):
        """Return what a form was made for, once, and what is filled in."""
        form = read_query(request.body.decode())
        asked, browser, until = self.forms.pop(form.get("form"), (None, b"", 0))
        # Else a page of somebody else could send a form that it has fetched in your name.
        if until < time.time() or hashed(self.browser(request)) != browser:
            raise Problem("invalid_request")
        return asked, form

    def back(self, asked, person=None, family=""):
        """Send the browser back to the client: with a code for a user, else with a refusal."""
        back = {"state": asked.get("state", ""), "iss": self.root, "error": "access_denied"}
        if person is not None:
            back["code"] = code = secrets.token_urlsafe(32)
            del back["error"]
            row = (hashed(code), family, json.dumps(asked), person, time.time() + CODE_SECONDS)
            self.db.execute("INSERT INTO codes VALUES (?, ?, ?, ?, ?, 0)", row)
        where = asked["redirect_uri"]
        where += ("&" if "?" in where else "?") + urlencode(back)
        return 303, {**PAGE_HEADERS, "location": where}, ""

    # The client's part.

    async def token(self, request):
        """Give tokens for a code, or for a refresh token. RFC 6749 §4.1.3, §6"""
        form, now = read_query(request.body.decode()), time.time()
        for table in ("codes", "tokens"):
            self.db.execute(f"DELETE FROM {table} WHERE until < ?", (now,))
        grants = {"authorization_code": self.by_code, "refresh_token": self.by_refresh}
        if form.get("grant_type") not in grants:
            raise Problem("unsupported_grant_type")
        family, client, person, scope = await grants[form["grant_type"]](form)
        doc = {"token_type": "Bearer", "expires_in": ACCESS_SECONDS, "scope": scope}
        for kind, seconds in (("access", ACCESS_SECONDS), ("refresh", REFRESH_SECONDS)):
            doc[f"{kind}_token"] = token = secrets.token_urlsafe(32)
            row = (hashed(token), kind, family, client, person, scope, now + seconds)
            self.db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, 0)", row)
        return 200, JSON_HEADERS, json.dumps(doc)

    async def by_code(self, form):
        """Return what a code stands for, once."""
        code = hashed(form.get("code", ""))
        row = self.one("SELECT family, asked, person, used FROM codes WHERE hash = ?", code)
        if row is None:
            raise Problem("invalid_grant")
        self.db.execute("UPDATE codes SET used = 1 WHERE hash = ?", (code,))
        family, asked, person = row[0], json.loads(row[1]), row[2]
        if row[3]:
            self.end(family)
            raise Problem("invalid_grant")
        same = all(form.get(name) == asked.get(name)
                   for name in ("client_id", "redirect_uri", "resource"))  # fmt: skip
        proof = code_challenge(form.get("code_verifier", ""))
        if not same or not compare_digest(proof, asked["code_challenge"]):
            raise Problem("invalid_grant")
        return family, asked["client_id"], person, asked.get("scope", "")

    async def by_refresh(self, form):
        """Return what a refresh token stands for, once; a second time it ends its family."""
        name = hashed(form.get("refresh_token", ""))
        row = self.one("SELECT family, client, person, scope FROM tokens"
                       " WHERE hash = ? AND kind = 'refresh'", name)  # fmt: skip
        # Before it is used up: if nobody can say, the client must be able to come again.
        if row is None or row[1] != form.get("client_id") or not await self.lives(row[0]):
            raise Problem("invalid_grant")
        first = self.db.execute("UPDATE tokens SET used = 1 WHERE hash = ? AND used = 0", (name,))
        if first.rowcount != 1:  # stolen, by whom does not matter. RFC 9700 §4.14.2
            self.end(row[0])
            raise Problem("invalid_grant")
        return row

    def revoke(self, request):
        """Forget a token and all that belong to it; the answer is the same for any. RFC 7009"""
        form = read_query(request.body.decode())
        found = self.one("SELECT family FROM tokens WHERE hash = ? AND client = ?",
                         hashed(form.get("token", "")), form.get("client_id"))  # fmt: skip
        if found is not None:
            self.end(found[0])
        return 200, JSON_HEADERS, "{}"

    # What came of one login: a family of tokens.

    def end(self, family):
        """Forget all tokens of a family."""
        self.db.execute("DELETE FROM tokens WHERE family = ?", (family,))

    async def lives(self, family):
        """Return whether a family is still good: third_party.py asks somebody else."""
        return True

    async def verify(self, token):
        """Judge an access token, for Guard."""
        row = self.one("SELECT person, client, scope, until, family FROM tokens"
                       " WHERE hash = ? AND kind = 'access'", hashed(token))  # fmt: skip
        if row is None or row[3] < time.time() or not await self.lives(row[4]):
            return None
        return Principal(self.root, row[0], row[1], row[2].split(), row[3])


def build(root, authority=None):
    """Return a server of notes, its authority, and the guard between them."""
    app, authority = Server("notes"), authority or Authority(root, ":memory:")
    authority.mount(app)

    @app.tool(scopes=["notes:read"])
    async def notes(ctx: Context) -> list[str]:
        """List your notes."""
        rows = authority.db.execute(
            "SELECT text FROM notes WHERE person = ?", (ctx.principal.subject,)
        )
        return [text for (text,) in rows]

    @app.tool(scopes=["notes:write"])
    async def write(text: str, ctx: Context) -> str:
        """Write a note."""
        authority.db.execute("INSERT INTO notes VALUES (?, ?)", (ctx.principal.subject, text))
        return f"{ctx.principal.subject} has written {text!r}"

    guard = Guard(resource_url=root + "/mcp", issuers=[root], verify=authority.verify,
                  offered=["notes:read"])  # fmt: skip
    return app, authority, guard


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Notes, for people who log in.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--database", default="notes.sqlite")
    args = parser.parse_args()
    root = f"http://127.0.0.1:{args.port}"
    app, authority, guard = build(root, Authority(root, args.database))
    name, password = "alice", secrets.token_urlsafe(9)
    authority.add_person(name, password)
    print(f"log in as {name}, with the password {password}", file=sys.stderr)
    app.run("http", port=args.port, auth=guard)
