"""Play the whole login, without a browser, and show every message.

    python client.py                 # starts server.py's server in this process, and talks to it
    python client.py --third-party   # the same with third_party.py, and a third party
    python client.py URL             # logs in at any server, with a real browser
"""

import asyncio
import contextlib
import re
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # mcp_lite.py is two levels up

from server import Authority, build
from third_party import Delegating, NoRedirect, ThirdParty

from mcp_lite import Client, OAuth, Server, TokenStore, logout, set_trace


def browse(url, person, password):
    """Be the browser and the user: fill in each form that comes; return where that leads."""
    home = parse_qs(urlsplit(url).query)["redirect_uri"][0]
    no_proxy, cookies = urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor()
    web = urllib.request.build_opener(no_proxy, cookies, NoRedirect)
    data = None
    while not url.startswith(home):  # there a browser would meet the listener of OAuth()
        try:
            with web.open(url, data, timeout=30) as answer:
                page = answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                if answer.status != 303:
                    raise
                url, data = urljoin(url, answer.headers["Location"]), None
                continue
        print(f"          the page says: {' '.join(re.sub('<[^>]*>', ' ', page).split())}")
        [form] = re.findall(r'name="form" value="([^"]+)"', page)
        fields = {"form": form, "person": person, "password": password, "answer": "yes"}
        data = urlencode(fields).encode()
    return url


def show(direction, name, msg):
    """Show a message; of HTTP, OAuth among it, the trace has the heads alone."""
    arrow = "-->" if direction == ">" else "<--"
    print(f"{arrow} {name}: {msg.get('method', msg.get('http', 'answer'))}\n          {msg}"[:400])


def free_port():
    """Return a port that nobody has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.asynccontextmanager
async def serving_third_party(our_root):
    """Serve a third party where alice logs in; give what we must know of it, and its authority."""
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    authority, app = Authority(root, ":memory:"), Server("a third party")
    authority.mount(app)
    authority.add_person("alice", "correct horse")
    row = ("us", "our server of notes", f'["{our_root}/callback"]')
    authority.db.execute("INSERT INTO clients VALUES (?, ?, ?)", row)

    @app.route("GET", "/me", public=True)
    async def me(request):
        token = request.headers.get("authorization", "").partition(" ")[2]
        found = await authority.verify(token)
        return (401, "text/plain", "who?") if found is None else {"sub": found.subject}

    third = ThirdParty(root, root + "/authorize", root + "/token", root + "/me", "us",
                       extra=(("resource", root + "/mcp"),))  # fmt: skip
    with contextlib.closing(authority.db):
        async with app.http(port=port):
            yield third, authority


async def play(with_third_party):
    """Start the server, log in, be asked for more, log out."""
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    auth = OAuth(
        client_name="a headless client",
        store=TokenStore(),
        open_browser=lambda url: asyncio.to_thread(browse, url, "alice", "correct horse"),
    )
    async with contextlib.AsyncExitStack() as stack:
        authority = None
        if with_third_party:
            third, _ = await stack.enter_async_context(serving_third_party(root))
            authority = Delegating(root, ":memory:", third)
        app, authority, guard = build(root, authority)
        stack.enter_context(contextlib.closing(authority.db))
        authority.add_person("alice", "correct horse")
        set_trace(show)
        server = await stack.enter_async_context(app.http(port=port, auth=guard))
        async with Client(server.url, auth=auth) as client:
            print("\n=== reading needs one scope\n", await client.call("notes"))
            print("\n=== writing needs another: 403, and a second consent")
            print(await client.call("write", {"text": "it works"}))
            print(await client.call("notes"))
        print("\n=== logging out\n", await logout(server.url, auth=auth))


async def visit(url):
    """Log in with a browser, and list the tools."""
    async with Client(url, auth="oauth") as client:
        for tool in await client.list_tools():
            print(tool["name"])


if __name__ == "__main__":
    what = "".join(sys.argv[1:])
    asyncio.run(visit(what) if what.startswith("http") else play(what == "--third-party"))
