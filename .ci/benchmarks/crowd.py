#!/usr/bin/env python3
"""One process with a crowd of clients: its memory and its latency.

    python3 .ci/benchmarks/crowd.py [--seconds 300] [--sessions 10000] [--streams 1000]

A server in a process of its own keeps all the sessions, announces a change to all the open streams
every five seconds, and answers so many calls a second, half of them in sessions, half in the modern
era. One more client asks for much and reads nothing. A call is due at its time, whether or not the
one before has been answered: its latency counts from then. The exit status is 1 after any error.
"""

import argparse
import asyncio
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from load import content_length, encode

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ANNOUNCE_SECONDS = 5
CALLERS = 32  # connections that take turns with the calls
JSON_BOTH = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

# ---- The server ----------------------------------------------------------------------------------


def serve():
    """Serve until killed; the first line of output is the port."""
    from mcp_lite import Context, Server

    app = Server("crowd")

    @app.tool
    def search(text: str) -> list:
        """Do what a small tool does, in a thread."""
        return [word for word in text.split() if len(word) > 3]

    @app.tool
    async def flood(megabytes: int, ctx: Context) -> str:
        """Say more than a client reads."""
        for _ in range(megabytes * 4):
            await ctx.error("x" * 2**18)
        return "flooded"

    async def main():
        async with app.http(port=0) as server:
            print(server.url.split(":")[2].split("/")[0], flush=True)
            while True:
                await asyncio.sleep(ANNOUNCE_SECONDS)
                app.tools_changed()

    asyncio.run(main())


# ---- The clients ---------------------------------------------------------------------------------


def resident_mb(pid):
    """Return how much memory a process has, in MB."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Wire:
    """A connection: one request after the other."""

    def __init__(self, port):
        self.port, self.turn = port, asyncio.Lock()

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def head(self, method, headers, body=b""):
        """Send a request; return the head of its answer."""
        self.writer.write(encode(self.port, method, {**JSON_BOTH, **headers}, body))
        return await self.reader.readuntil(b"\r\n\r\n")

    async def post(self, msg, **headers):
        """Send a message; return the head and the body of the answer."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.turn:
            head = await self.head("POST", fields, json.dumps({"jsonrpc": "2.0", **msg}).encode())
            return head, await self.reader.readexactly(content_length(head))

    def close(self):
        self.writer.transport.abort()


async def open_session(wire):
    """Shake hands; return the session's id."""
    hello = {"protocolVersion": LEGACY, "capabilities": {},
             "clientInfo": {"name": "crowd", "version": "1"}}  # fmt: skip
    head, _ = await wire.post({"id": 0, "method": "initialize", "params": hello})
    session = re.search(rb"(?i)mcp-session-id: (\S+)", head)[1].decode()
    await wire.post({"method": "notifications/initialized"}, mcp_session_id=session)
    return session


class Crowd:
    """All clients, and what they have seen."""

    def __init__(self, port, pid, args):
        self.port, self.pid, self.args = port, pid, args
        self.numbers, self.latencies, self.errors = itertools.count(1), [], []
        self.heard = 0  # announcements, on all streams
        self.memory = [("when it has started", resident_mb(pid))]

    def note(self, when):
        self.memory.append((when, resident_mb(self.pid)))

    async def sessions(self):
        """Open them, over few connections; return their ids."""
        wires = [await Wire(self.port).open() for _ in range(CALLERS)]

        async def some(wire, count):
            return [await open_session(wire) for _ in range(count)]

        shares = [len(range(i, self.args.sessions, CALLERS)) for i in range(CALLERS)]
        found = sum(await asyncio.gather(*map(some, wires, shares)), [])
        self.note(f"with {len(found):,} sessions")
        return found, wires

    async def listen(self, session):
        """Read a session's stream until the end."""
        wire = await Wire(self.port).open()
        try:
            fields = {"Mcp-Session-Id": session, "Accept": "text/event-stream"}
            head = await wire.head("GET", fields)
            assert b" 200 " in head, head
            self.opened.release()
            while data := await wire.reader.read(65536):
                self.heard += data.count(b"list_changed")
            self.errors.append("a stream ended")
        finally:
            wire.close()

    async def dawdle(self, session):
        """Ask for much, and read nothing."""
        wire = await Wire(self.port).open()
        msg = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": "flood", "arguments": {"megabytes": 1000}}}  # fmt: skip
        await wire.head("POST", {"Mcp-Session-Id": session}, json.dumps(msg).encode())
        return wire

    async def call(self, wire, session, due):
        """Make a call, in a session or in none."""
        number = next(self.numbers)
        text = " ".join(["some", "words", "to", "search", "in"] * 10)
        params = {"name": "search", "arguments": {"text": text}}
        headers = {"mcp_session_id": session, "mcp_protocol_version": LEGACY}
        if number % 2:
            own = "io.modelcontextprotocol/"
            params["_meta"] = {f"{own}protocolVersion": MODERN, f"{own}clientCapabilities": {}}
            headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call"}
            headers["mcp_name"] = "search"
        msg = {"id": number, "method": "tools/call", "params": params}
        try:
            head, body = await wire.post(msg, **headers)
            if b" 200 " not in head[:16] or json.loads(body)["result"].get("isError"):
                raise OSError(body[:200])
            self.latencies.append(time.perf_counter() - due)
        except (OSError, EOFError, KeyError) as exc:
            self.errors.append(repr(exc)[:200])

    async def calls(self, sessions, wires):
        """Make them, each at its time."""
        began, running = time.perf_counter(), set()
        for number in range(int(self.args.seconds * self.args.rate)):
            due = began + number / self.args.rate
            await asyncio.sleep(max(0, due - time.perf_counter()))
            wire = wires[number % len(wires)]
            task = asyncio.ensure_future(self.call(wire, random.choice(sessions), due))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.wait(running)

    async def run(self):
        sessions, wires = await self.sessions()
        self.opened = asyncio.Semaphore(0)
        listening = sessions[: self.args.streams]
        readers = [asyncio.ensure_future(self.listen(each)) for each in listening]
        for _ in readers:
            await self.opened.acquire()
        self.note(f"with {len(readers):,} open streams")
        slow = await self.dawdle(sessions[-1])
        await self.calls(sessions[:-1], wires)
        self.note(f"after {self.args.seconds:g} seconds of calls")
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
        for wire in (slow, *wires):
            wire.close()

    def report(self):
        """Print the table."""
        spent = sorted(self.latencies)
        rows = [(f"memory {when}, MB", f"{mb:.0f}") for when, mb in self.memory]
        rows.append((f"calls, {self.args.rate:g} a second", f"{len(spent):,}"))
        for share in (50, 99, 99.9):
            at = spent[min(len(spent) - 1, int(len(spent) * share / 100))]
            rows.append((f"latency, p{share}, ms", f"{at * 1000:.1f}"))
        rows.append(("longest, ms", f"{spent[-1] * 1000:.0f}"))
        rows.append(("announcements heard", f"{self.heard:,}"))
        rows.append(("errors", f"{len(self.errors):,}"))
        print("| | |\n| --- | --- |", *(f"| {name} | {value} |" for name, value in rows), sep="\n")
        for text in self.errors[:5]:
            print(text, file=sys.stderr)


def main():
    """Run it; return an exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=200, help="calls a second")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve()
        return 0
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            crowd = Crowd(int(server.stdout.readline()), server.pid, args)
            asyncio.run(crowd.run())
        finally:
            server.kill()
    crowd.report()
    return 1 if crowd.errors else 0


if __name__ == "__main__":
    sys.exit(main())
