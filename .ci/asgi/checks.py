"""What an ASGI server must not do to us: checks.py URL [ROOT], of app.py under that server.

ROOT is the path it is mounted at.
"""

import asyncio
import json
import pathlib
import random
import sys
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / ".ci/benchmarks"))
import uvloop
from relay import Relay

from mcp_lite import Client

SESSIONFUL = "2025-11-25"
CLIENTS = 50
PATIENCE = 60  # seconds


def get(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read().decode()


class Site:
    """A server under test."""

    def __init__(self, root):
        self.root, self.mcp = root, f"{root}/mcp"

    async def state(self):
        return json.loads(await asyncio.to_thread(get, f"{self.root}/state"))

    async def until(self, good, what):
        """Wait until the server's state is as it should be."""
        for _ in range(PATIENCE * 20):
            state = await self.state()
            if good(state):
                return state
            await asyncio.sleep(0.05)
        raise AssertionError(f"{what}: {state}")


async def lost_readers(site):
    """Many clients read streams, and are gone from one moment to the next."""
    before = await site.state()
    relays = [await Relay(site.mcp).open() for _ in range(CLIENTS)]
    clients = [Client(relay.url, revision=SESSIONFUL) for relay in relays]
    await asyncio.gather(*(client.connect() for client in clients))
    await site.until(lambda now: now["streams"] == CLIENTS, "streams open")
    for relay in relays:
        relay.close()
    await asyncio.gather(*(client.close() for client in clients))

    def gone(now):
        return now["streams"] == 0 and now["tasks"] <= before["tasks"] + 1 and (
            now["fds"] <= before["fds"] + 2)  # fmt: skip

    await site.until(gone, f"streams gone, from {before}")


async def resumed(site):
    """A call's connections are cut; its reports and its result arrive once."""
    relay = await Relay(site.mcp).open()
    async with Client(relay.url, revision=SESSIONFUL) as client:
        reports, cuts = [], 0

        def progress(number, total, message):
            nonlocal cuts
            reports.append(number)
            if random.random() < 0.1 and cuts < 4:
                cuts += 1
                relay.cut()

        assert await client.call("count", {"to": 50}, progress=progress) == "alive"
        assert reports == list(range(1, 51)), reports
    relay.close()


async def cancelled(site, revision):
    """A call that is given up ends in the server, too."""
    async with Client(site.mcp, revision=revision) as client:
        before = await site.state()
        started = asyncio.Event()
        call = asyncio.ensure_future(
            client.call("count", {"to": 1000}, progress=lambda *_: started.set())
        )
        await asyncio.wait_for(started.wait(), PATIENCE)
        call.cancel()
        await site.until(lambda now: now["cancelled"] > before["cancelled"], "call cancelled")


def post(site, msg, **headers):
    """POST a message; return the headers of the answer."""
    fields = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    body = json.dumps({"jsonrpc": "2.0", **msg}).encode()
    request = urllib.request.Request(site.mcp, body, {**fields, **headers})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.headers


async def slow_reader(site):
    """Who does not read makes the tool wait, not the memory grow."""
    hello = {"protocolVersion": SESSIONFUL, "capabilities": {}}
    hello["clientInfo"] = {"name": "slow", "version": "0"}
    msg = {"id": 0, "method": "initialize", "params": hello}
    session = (await asyncio.to_thread(post, site, msg))["mcp-session-id"]
    before = await site.state()
    params = {"name": "flood", "arguments": {"megabytes": 100}}
    msg = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(msg).encode()
    where = urllib.parse.urlsplit(site.mcp)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(
        f"POST {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    )
    assert b"200" in await reader.readline()
    await site.until(lambda now: now["flooded"] > before["flooded"], "a flood")
    await asyncio.sleep(1)
    now = await site.state()
    assert now["mb"] - before["mb"] < 32 and 0 < now["flooded"] < 400, (before, now)
    writer.transport.abort()
    await asyncio.to_thread(post, site, {"id": 2, "method": "ping"}, **{"mcp-session-id": session})


async def too_large(site):
    """A body over the limit is refused."""
    headers = {"content-type": "application/json"}
    body = b"[" + b" " * 2**24 + b"]"
    request = urllib.request.Request(site.mcp, body, headers)
    try:
        await asyncio.to_thread(urllib.request.urlopen, request, None, PATIENCE)
    except urllib.error.HTTPError as exc:
        assert exc.code == 413, exc
    except OSError:
        pass  # closed while it was still being sent
    else:
        raise AssertionError("16 MiB were taken")


async def main(base, root=""):
    site = Site(base + root)
    if root:
        assert "around it" in await asyncio.to_thread(get, f"{base}/")
        async with Client(base + root, revision=SESSIONFUL) as client:  # the mount itself
            assert await client.call("count", {"to": 1}) == "alive"
    assert (await site.state())["lives"] == 1
    async with Client(f"{site.root}/sse") as client:
        assert await client.call("count", {"to": 3}) == "alive"
    await lost_readers(site)
    await asyncio.gather(*(resumed(site) for _ in range(10)))
    await cancelled(site, SESSIONFUL)
    await cancelled(site, None)
    await slow_reader(site)
    await too_large(site)
    state = await site.until(lambda now: now["streams"] == 0, "no streams left")
    assert state["lives"] == 1, state
    print("   streams, resumption, cancellation, a slow reader, a large body, HTTP+SSE: good")


uvloop.run(asyncio.wait_for(main(*sys.argv[1:]), 240))  # in which uvicorn runs handlers, too
