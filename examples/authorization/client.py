"""Play the whole login, without a browser, and show every message.

    python client.py              # starts server.py's server in this process, and talks to it
    python client.py URL          # logs in at any server, with a real browser
"""

import asyncio
import http.client
import re
import socket
import sys
from pathlib import Path
from urllib.parse import urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # mcp_lite.py is two levels up

from server import build

from mcp_lite import Client, OAuth, TokenStore, logout, set_trace


def browse(url, person, password):
    """Be the browser and the person: open the page, fill the form in; return where that leads."""
    address = urlsplit(url)
    line = http.client.HTTPConnection(address.netloc, timeout=30)
    line.request("GET", f"{address.path}?{address.query}")
    page = line.getresponse().read().decode()
    print(f"          the page says: {' '.join(re.sub('<[^>]*>', ' ', page).split())}")
    [form] = re.findall(r'name="form" value="([^"]+)"', page)
    fields = {"form": form, "person": person, "password": password, "answer": "yes"}
    kind = {"content-type": "application/x-www-form-urlencoded"}
    line.request("POST", address.path, urlencode(fields), kind)
    where = line.getresponse().headers["Location"]
    line.close()
    return where  # a browser would go there, and meet the listener of OAuth()


def show(direction, name, msg):
    """Show a message: those of OAuth come without what is secret in them."""
    arrow = "-->" if direction == ">" else "<--"
    print(f"{arrow} {name}: {msg.get('method', 'answer')}\n          {msg}"[:400])


async def play():
    """Start the server, log in, be asked for more, log out."""
    with socket.socket() as free:  # a port that nobody has
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = f"http://127.0.0.1:{port}"
    app, authority, guard = build(root)
    authority.add_person("alice", "correct horse")
    auth = OAuth(
        client_name="a headless client",
        store=TokenStore(),
        ask_for_redirect=lambda url: asyncio.to_thread(browse, url, "alice", "correct horse"),
    )
    set_trace(show)
    async with app.http(port=port, auth=guard) as server:
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
    asyncio.run(visit(sys.argv[1]) if sys.argv[1:] else play())
