#!/usr/bin/env python3
"""Load a server with everything at once, kill its clients at random, and see that nothing stays.

    python3 .ci/benchmarks/soak.py [--minutes 30] [--seed N]

A server process, and client processes in which several users each do one thing after the other:
calls of all sizes, reports, questions, subscriptions, cancellations, deadlines, new sessions in
every revision and transport, cut connections, garbage. Clients are stopped and killed meanwhile,
and others take their place. Now and then all are killed, and the quiet server is looked at:
sessions, streams, tasks and descriptors must be as they were in the first quiet, which follows a
warm-up; so must the number of Python objects and the memory, but for a little.
"""

import argparse
import asyncio
import collections
import contextlib
import ctypes
import gc
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from processes import end, resident_mb, started
from relay import Relay

from mcp_lite import Client, Context, MCPError, RequestTimeout, Server

CLIENTS, USERS = 3, 8  # processes, and users in each
ASK_SECONDS = 10  # for an answer
SESSION_SECONDS = 10  # a session whose client was killed is forgotten after so long
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", None)
QUIET_EVERY = 300  # seconds of load between two quiets
QUIET_SECONDS = 60  # for everything to go away
MORE_OBJECTS, MORE_MB = 0.02, 8.0  # what may be left: a share of the objects; caches, fragments

# ---- The server ----------------------------------------------------------------------------------


def make_server(counts):
    """Return a server that counts what its tools do."""
    app = Server("soak")

    @app.tool
    async def echo(text: str) -> str:
        counts["echo"] += 1
        return text

    @app.tool
    def thread(text: str) -> str:
        counts["thread"] += 1
        time.sleep(0.01)
        return text

    @app.tool
    async def count(to: int, ctx: Context) -> int:
        counts["count"] += 1
        try:
            for number in range(1, to + 1):
                await ctx.report_progress(number, to)
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            counts["cancelled"] += 1
            raise
        return to

    @app.tool
    async def ask(question: str, ctx: Context) -> str:
        counts["ask"] += 1
        # A session is kept while something runs in it: who is gone must not be waited for.
        first = await ctx.elicit(question, str, timeout=ASK_SECONDS)
        second = await ctx.elicit(f"{question}, really", str, timeout=ASK_SECONDS)
        return f"{first.data} {second.data}"

    @app.tool
    async def touch(number: int) -> None:
        counts["touch"] += 1
        app.resource_updated(f"soak://{number}")

    @app.tool
    async def talk(lines: int, ctx: Context) -> str:
        counts["talk"] += 1
        for number in range(lines):
            await ctx.error(f"line {number} " + "x" * 1000)
        return "said"

    @app.resource("soak://{number}")
    def item(number: int) -> str:
        return str(number)

    return app


async def serve():
    """Serve until SIGTERM; print the URL."""
    counts = collections.Counter()
    app = make_server(counts)

    @app.route("GET", "/state")
    async def state(request) -> dict:
        if request.query == "quiet":
            gc.collect()
            give_back()
        now = {
            "sessions": len(running.sessions),
            "streams": sum(len(session.streams) for session in running.sessions.values()),
            "tasks": len(asyncio.all_tasks()),
            "fds": len(os.listdir("/proc/self/fd")),
            "MB": round(resident_mb(), 1),
        }
        if request.query == "quiet":
            now["objects"] = len(gc.get_objects())
        return {**now, "counts": dict(counts)}

    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    async with app.http(port=0, session_seconds=SESSION_SECONDS) as running:
        print(running.url, flush=True)
        await end.wait()


def give_back():
    """Return free memory to the system: glibc keeps an arena for each thread, full of holes."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


# ---- A client process ----------------------------------------------------------------------------


class User:
    """Does one thing after the other, checking what comes back."""

    def __init__(self, url, rng):
        self.url, self.rng = url, rng
        self.client = self.relay = None
        self.cut = False  # a connection was broken: errors are to be expected

    async def connect(self):
        revision = self.rng.choice(REVISIONS)
        url = self.url
        if self.rng.random() < 0.2:
            url, revision = url.replace("/mcp", "/sse"), "2024-11-05"
        self.relay = await Relay(url).open()
        url = self.relay.url
        self.client = Client(url, revision=revision, elicit=self.answer, timeout=60)
        await self.client.connect()

    def answer(self, message, schema):
        return {"value": message}

    async def run(self):
        things = [self.call, self.large, self.progress, self.question, self.subscription,
                  self.cancel, self.deadline, self.lines, self.lost, self.reconnect, self.leave,
                  self.garbage]  # fmt: skip
        while True:
            self.cut = False
            thing = self.rng.choice(things)
            try:
                if self.client is None:
                    await self.connect()
                await thing()
            except (MCPError, OSError) as exc:
                if not self.cut:
                    print(f"unexpected, in {thing.__name__}: {exc!r}", flush=True)
                await self.reconnect()

    async def call(self):
        for _ in range(20):
            text = f"{self.rng.random()}"
            tool = self.rng.choice(["echo", "thread"])
            assert await self.client.call(tool, {"text": text}) == text

    async def large(self):
        text = "äx" * self.rng.randrange(200_000)
        assert await self.client.call("echo", {"text": text}) == text

    async def progress(self):
        to, seen = self.rng.randrange(1, 40), []
        await self.client.call("count", {"to": to}, progress=lambda now, *_: seen.append(now))
        assert seen == sorted(set(seen)) and seen[-1] == to, seen

    async def question(self):
        if self.client.revision != "2024-11-05" and self.client.revision != "2025-03-26":
            said = await self.client.call("ask", {"question": "sure"})
            assert said == "sure sure, really", said

    async def subscription(self):
        number, heard = self.rng.randrange(1000), asyncio.Event()
        updates = await self.client.subscribe(f"soak://{number}", lambda *_: heard.set())
        await self.client.call("touch", {"number": number})
        await asyncio.wait_for(heard.wait(), 60)
        await updates.close()

    async def cancel(self):
        call = asyncio.ensure_future(self.client.call("count", {"to": 2000}))
        await asyncio.wait({call}, timeout=self.rng.random() / 5)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call

    async def deadline(self):
        with contextlib.suppress(RequestTimeout):
            await self.client.request(
                "tools/call", {"name": "thread", "arguments": {"text": "x"}},
                timeout=self.rng.random() / 50,
            )  # fmt: skip

    async def lines(self):
        assert await self.client.call("talk", {"lines": 20}) == "said"

    async def lost(self):
        """Lose the connections in the middle of a call; where there are sessions, it goes on."""
        self.cut = True
        call = asyncio.ensure_future(self.client.call("count", {"to": 60}, timeout=5))
        await asyncio.wait({call}, timeout=self.rng.random() / 5)
        self.relay.cut()
        await call

    async def reconnect(self):
        client, self.client = self.client, None
        if client is not None:
            await client.close()
        if self.relay is not None:
            self.relay.close()

    async def leave(self):
        """Go without a word, as if killed."""
        self.relay.close()
        await self.reconnect()

    async def garbage(self):
        host, port = self.url.split("/")[2].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(self.rng.choice([
            b"\0" * 100, b"GET / HTTP/1.1\r\n", b"GET /mcp HTTP/1.1\r\n\r\n",
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        ]))  # fmt: skip
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(1000), 0.2)
        writer.transport.abort()


async def use(url, seed):
    """Be a client process, until killed."""
    users = [User(url, random.Random(seed * 1000 + number)) for number in range(USERS)]
    await asyncio.gather(*(user.run() for user in users))


# ---- The one who kills ---------------------------------------------------------------------------


class Soak:
    """The processes, and what was seen."""

    def __init__(self, seed, log, said, stack):
        self.rng = random.Random(seed)
        self.log, self.said, self.stack = log, said, stack
        self.seeds = iter(range(seed, 10**9))
        self.clients = []
        self.killed = 0
        self.quiets = []
        command = [sys.executable, "-W", "always", __file__, "--serve"]
        self.server = self.start(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.url = self.server.stdout.readline().strip()

    def start(self, command, **options):
        return self.stack.enter_context(started(command, stdin=subprocess.DEVNULL, **options))

    def start_client(self):
        command = [sys.executable, __file__, "--use", self.url, "--seed", str(next(self.seeds))]
        self.clients.append(self.start(command, stdout=self.said, stderr=self.said))

    def kill(self, process):
        self.clients.remove(process)
        ended = process.poll()
        if ended is not None:
            raise AssertionError(f"a client ended by itself, with status {ended}")
        process.kill()
        process.wait()
        self.killed += 1

    def state(self, query=""):
        url = self.url.replace("/mcp", f"/state{query}")
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)

    def load(self, seconds):
        """Let clients come and go for so long."""
        until = time.monotonic() + seconds
        shown = time.monotonic()
        while time.monotonic() < until:
            while len(self.clients) < CLIENTS:
                self.start_client()
            time.sleep(min(self.rng.uniform(0.5, 3), max(0, until - time.monotonic())))
            victim = self.rng.choice(self.clients)
            if self.rng.random() < 0.3:  # first it does not read for a while
                victim.send_signal(signal.SIGSTOP)
                time.sleep(min(self.rng.uniform(0.5, 3), max(0, until - time.monotonic())))
            self.kill(victim)
            if time.monotonic() - shown > 30:
                shown = time.monotonic()
                self.show("load ", self.state())

    def show(self, what, state):
        took = time.monotonic() - BEGAN
        numbers = "  ".join(f"{k} {v}" for k, v in state.items() if k != "counts")
        calls = sum(state["counts"].values())
        print(f"{took:7.0f} s  {what}  {numbers}  calls {calls}", flush=True)

    def quiet(self):
        """Kill all clients; return the server's state when nothing is left of them."""
        for process in list(self.clients):
            self.kill(process)
        until = time.monotonic() + QUIET_SECONDS
        first = self.quiets[0] if self.quiets else {"tasks": 0, "fds": 0}
        while True:
            state = self.state("?quiet")
            still = state["tasks"] <= first["tasks"] and state["fds"] <= first["fds"]
            gone = state["sessions"] == 0 and state["streams"] == 0
            if time.monotonic() > until or (gone and still):
                break
            if gone and not self.quiets and time.monotonic() > until - QUIET_SECONDS + 3:
                break  # the first one: however many there are
            time.sleep(0.25)
        self.quiets.append(state)
        self.show("quiet", state)

    def judge(self):
        """Return what is wrong."""
        first, last = self.quiets[0], self.quiets[-1]
        problems = []
        for key in ("sessions", "streams", "tasks", "fds"):
            if last[key] > first[key]:
                problems.append(f"{key} grew from {first[key]} to {last[key]}")
        if last["sessions"] or last["streams"]:
            problems.append(f"left: {last['sessions']} sessions, {last['streams']} streams")
        if last["objects"] > first["objects"] * (1 + MORE_OBJECTS):
            problems.append(f"objects grew from {first['objects']} to {last['objects']}")
        # A heap takes minutes to settle: a short run, of two rests, says nothing about it.
        settled = self.quiets[1]["MB"]
        if last["MB"] > settled + MORE_MB:
            problems.append(f"memory grew from {settled} to {last['MB']} MB")
        for file, what in ((self.said, "the clients"), (self.log, "the server")):
            file.seek(0)
            said = file.read()
            bad = [line for line in said.split("\n") if any(word in line for word in BAD)]
            if bad:
                problems.append(f"{what} said {len(bad)} bad things: " + "\n".join(bad[:10]))
                problems.append(said[-4000:])
        return problems


BAD = ("Traceback", "unexpected", "never retrieved", "destroyed", "Warning", "Error")
BEGAN = time.monotonic()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30, help="of load, after the warm-up")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--use", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    if options.use:
        asyncio.run(use(options.use, options.seed))
        return
    seconds = options.minutes * 60
    with contextlib.ExitStack() as stack:
        log, said = (stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2))
        soak = Soak(options.seed, log, said, stack)
        try:
            soak.load(min(60, seconds / 2))  # the warm-up
            soak.quiet()
            while seconds > 0:
                soak.load(min(seconds, QUIET_EVERY))
                seconds -= QUIET_EVERY
                soak.quiet()
            problems = soak.judge()
        except BaseException:
            for file in (said, log):
                file.seek(0)
                print(file.read()[-3000:])
            raise
        end(soak.server, 30)
        if soak.server.returncode:
            problems.append(f"the server ended with status {soak.server.returncode}")
        counts = ", ".join(f"{n} {what}" for what, n in sorted(soak.quiets[-1]["counts"].items()))
        print(f"{counts}; {soak.killed} clients killed; seed {options.seed}")
        print("\n".join(problems) or "nothing stayed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
