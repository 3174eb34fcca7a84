"""Log in with our client, by a browser without a screen, where another's authorization server is:

    our_login.py python PYTHON               FastMCP's, on the official SDK: fastmcp_authority.py
    our_login.py typescript NODE FOLDER      the official SDK's example, as it is in its package
    our_login.py oidc NODE FOLDER ALGORITHM  oidc-provider's, whose JWTs our Guard verifies

Each starts the server, calls a tool, comes back with a token that has expired, and logs out.
"""

import asyncio
import html.parser
import http.cookiejar
import pathlib
import sys
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from processes import free_port, serving  # noqa: E402

import mcp_lite as m  # noqa: E402

PAGES = 20  # that a login may have


class Form(html.parser.HTMLParser):
    """The first form of a page, and what a person called alice sends with it."""

    def __init__(self, page):
        super().__init__()
        self.action, self.fields = None, {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = known.get("action", "")
        elif tag == "input" and known.get("name"):
            self.fields[known["name"]] = known.get("value") or "alice"


class Browser(urllib.request.HTTPRedirectHandler):
    """Keeps cookies, follows redirects and fills forms in, until it ends up at the client's."""

    def __init__(self):
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.web = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar, self)

    def redirect_request(self, *_):
        """Let visit() follow."""

    def visit(self, url):
        """Return where a login leads to."""
        home = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))["redirect_uri"]
        data = None
        for _ in range(PAGES):
            try:
                with self.web.open(url, data, 30) as answer:
                    form = Form(answer.read().decode())
                url = urllib.parse.urljoin(url, form.action)
                data = urllib.parse.urlencode(form.fields).encode()
            except urllib.error.HTTPError as answer:
                if answer.code not in (302, 303):
                    raise RuntimeError(f"{url}: {answer.code} {answer.read()[:2000]}") from None
                url, data = urllib.parse.urljoin(url, answer.headers["Location"]), None
                if url.startswith(home):
                    return url
        raise RuntimeError(f"after {PAGES} pages still at {url}")


class Store(m.TokenStore):
    """Counts the logins and the refreshes, and can make the tokens old."""

    saved = 0

    async def save(self, key, value):
        self.saved += bool(value and "tokens" in value)
        await super().save(key, value)

    async def age(self):
        """Let the access tokens expire; return whether they can be refreshed."""
        for key in list(self.kept):
            entry = await self.load(key)
            if "tokens" in entry:
                entry["tokens"].update(expires_at=1, refresh_at=1)
                await super().save(key, entry)
                return "refresh_token" in entry["tokens"]


async def log_in(url, tool, arguments, wanted, **options):
    """Log in, refresh if that can be, and log out."""
    store, pages = Store(), []

    def browse(page):
        pages.append(page)
        return asyncio.to_thread(Browser().visit, page)

    auth = m.OAuth(store=store, open_browser=browse, **options)
    async with m.Client(url, auth=auth) as client:
        said = str(await client.call(tool, arguments))
        assert wanted in said, said
        about = client.server_info["name"], client.revision
    refreshes = await store.age()
    async with m.Client(url, auth=auth) as client:
        assert wanted in str(await client.call(tool, arguments))
    assert len(pages) == (1 if refreshes else 2) and store.saved == 2, (pages, store.saved)
    assert await m.logout(url, auth=auth)
    print(f"   logged in to {about[0]}, revision {about[1]}: {said!r}")
    then = "refreshed" if refreshes else "logged in again, since it gives no refresh tokens"
    print(f"   {then}, logged out")


def at_python(python):
    port = free_port()
    with serving([python, str(HERE / "fastmcp_authority.py"), str(port)], port):
        asyncio.run(log_in(f"http://127.0.0.1:{port}/mcp", "add", {"a": 1, "b": 2}, "3"))


def at_typescript(node, folder):
    examples = f"{folder}/node_modules/@modelcontextprotocol/sdk/dist/esm/examples"
    port, authority = free_port(), free_port()
    command = [node, f"{examples}/server/simpleStreamableHttp.js", "--oauth", "--oauth-strict"]
    with serving(command, port, MCP_PORT=str(port), MCP_AUTH_PORT=str(authority)):
        url = f"http://localhost:{port}/mcp"
        asyncio.run(log_in(url, "greet", {"name": "alice"}, "alice"))


def at_oidc(node, folder, algorithm):
    port, ours = free_port(), free_port()
    issuer, url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{ours}/mcp"
    app = m.Server("guarded")

    @app.tool
    async def who(ctx: m.Context) -> str:
        return f"{ctx.principal.subject} of {ctx.principal.issuer}: {sorted(ctx.principal.scopes)}"

    ours_alone = m.jwt_verifier(issuer, audience=url, algorithms=[algorithm])
    theirs = m.jwt_verifier(issuer, audience=url + "2", algorithms=[algorithm])

    async def verify(token):
        assert await theirs(token) is None, "another server takes it"
        return await ours_alone(token)

    guard = m.Guard(issuers=[issuer], scopes=["mcp"], verify=verify)

    async def main():
        async with app.http(port=ours, auth=guard):
            # It gives refresh tokens only to whoever is asked each time.
            options = {"extra": {"prompt": "consent"}}
            await log_in(url, "who", {}, f"alice of {issuer}: ['mcp']", **options)

    with serving([node, str(HERE / "oidc.cjs"), folder, str(port), url], port, ALG=algorithm):
        asyncio.run(main())


{"python": at_python, "typescript": at_typescript, "oidc": at_oidc}[sys.argv[1]](*sys.argv[2:])
