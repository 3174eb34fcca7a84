"""What an ASGI server must not do to us: checks.py URL [ROOT], of app.py under that server.

ROOT is the path it is mounted at.
"""

import asyncio
import json
import pathlib
import random
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from mcp_lite import Client

SESSIONFUL = "2025-11-25"
CLIENTS = 50
PATIENCE = 15  # seconds


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


def cut(client):
    """Break the connections that a client waits on, as a lost network would."""
    for answer in list(client.transport.http.busy):
        answer.writer.transport.abort()


async def lost_readers(site):
    """Many clients read streams, and are gone from one moment to the next."""
    before = await site.state()
    clients = [Client(site.mcp, revision=SESSIONFUL) for _ in range(CLIENTS)]
    await asyncio.gather(*(client.connect() for client in clients))
    await site.until(lambda now: now["streams"] == CLIENTS, "streams open")
    for client in clients:
        client.transport.session_id = None  # no DELETE: as if the process had been killed
        await client.close()

    def gone(now):
        return now["streams"] == 0 and now["tasks"] <= before["tasks"] + 1 and (
            now["fds"] <= before["fds"] + 2)  # fmt: skip

    await site.until(gone, f"streams gone, from {before}")


async def resumed(site):
    """A call's connections are cut; its reports and its result arrive once."""
    async with Client(site.mcp, revision=SESSIONFUL) as client:
        reports, cuts = [], 0

        def progress(number, total, message):
            nonlocal cuts
            reports.append(number)
            if random.random() < 0.1 and cuts < 4:
                cuts += 1
                cut(client)

        assert await client.call("count", {"to": 50}, progress=progress) == "alive"
        assert reports == list(range(1, 51)), reports


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


async def slow_reader(site):
    """Who does not read makes the tool wait, not the memory grow."""
    async with Client(site.mcp, revision=SESSIONFUL) as client:
        await client.set_log_level("error")
        before = await site.state()
        headers = await client.transport.fields(
            content_type="application/json", accept="application/json, text/event-stream"
        )
        params = {"name": "flood", "arguments": {"megabytes": 100}}
        msg = {"jsonrpc": "2.0", "id": "flood", "method": "tools/call", "params": params}
        answer = await client.transport.http.send(
            "POST", client.transport.url.target, headers, json.dumps(msg).encode()
        )
        answer.reader._transport.pause_reading()
        await asyncio.sleep(1)
        now = await site.state()
        assert now["mb"] - before["mb"] < 32, (before, now)
        answer.writer.transport.abort()
        await client.ping()


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


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 60))
