"""Prove examples/production/several-workers.md: start workers, nginx and Redis, and kill some.

    python3 .ci/scale_out.py

Needs uvicorn in this Python, and nginx and redis-server on the PATH. Everything runs on free ports
of loopback, in a folder of its own, and is stopped again.

With sessions: many at once check that each stays with its worker; that every report of a running
call arrives exactly once although connections are cut; that questions and announcements find their
way; and that a dead worker's clients go on.

Without sessions, and with Redis: any worker answers anything. A call that asks is finished by
workers that never saw it begin, and does once what it must do once; a change in one worker is heard
by the clients of all, of either era, once; and Redis may die and come back.
"""

import asyncio
import collections
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from processes import ROOT, Failed, end, free_port, started, wait_for_port

HERE = ROOT / "examples/production"
sys.path[:0] = [str(ROOT), str(ROOT / ".ci/benchmarks"), str(HERE)]

from redis_bus import Push, RedisError, read_value  # noqa: E402
from relay import Relay  # noqa: E402

from mcp_lite import Client  # noqa: E402

WORKERS = "abc"
SESSIONFUL = "2025-11-25"  # the newest revision with sessions, streams and resumption
SESSIONLESS = "2026-07-28"
SESSIONS = 60
LISTENERS = 15  # of each kind
URI = "bookings://count"
COUNT_TO = 30
PATIENCE = 60  # seconds for anything


class Site:
    """The processes, by name, and their ports; `shared`: the workers share Redis and a key."""

    def __init__(self, folder, stack, shared=False):
        self.folder, self.stack, self.shared = folder, stack, shared
        self.port, self.redis_port = free_port(), free_port()
        self.ports = {name: free_port() for name in WORKERS}
        self.processes = {}
        self.environ = {"HOSTS": "127.0.0.1"}
        if shared:
            self.environ["REDIS_URL"] = f"redis://127.0.0.1:{self.redis_port}"
            self.environ["STATE_KEY"] = os.urandom(16).hex()
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def start(self, name, port, command, **environ):
        with open(self.folder / f"{name}.log", "ab") as log:
            process = self.processes[name] = self.stack.enter_context(started(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=HERE,
                env={**os.environ, **environ},
            ))  # fmt: skip
        wait_for_port(process, port)

    def start_worker(self, name):
        port = self.ports[name]
        options = ["--port", str(port), "--no-access-log"]
        python = [sys.executable, "-W", "default::ResourceWarning"]  # nothing may be left open
        command = [*python, "-m", "uvicorn", *options, "worker:asgi"]
        self.start(name, port, command, WORKER=name, **self.environ)

    def start_nginx(self):
        """Run nginx.conf as it stands, but for the ports."""
        text = (HERE / "nginx.conf").read_text()
        ports = enumerate([self.port, *self.ports.values()], 8000)
        numbers = {str(number): port for number, port in ports}
        text = re.sub(r"(?<=127\.0\.0\.1:)800\d", lambda found: str(numbers[found[0]]), text)
        paths = "".join(
            f"{what}_temp_path {self.folder}/{what};\n"
            for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;\n" if os.geteuid() == 0 else ""  # the folder is ours alone
        whole = self.folder / "nginx.conf"
        whole.write_text(
            f"{user}worker_processes 2;\npid {self.folder}/nginx.pid;\nerror_log stderr;\n"
            f"events {{ worker_connections 4096; }}\n"
            f"http {{\naccess_log off;\n{paths}{text}}}\n"
        )
        where = ["-p", str(self.folder), "-c", str(whole)]
        self.start("nginx", self.port, ["nginx", *where, "-g", "daemon off;"])

    def start_redis(self):
        """Run Redis as it comes, but that it writes nothing down."""
        options = {"port": str(self.redis_port), "bind": "127.0.0.1", "dir": str(self.folder),
                   "save": "", "appendonly": "no", "daemonize": "no"}  # fmt: skip
        options = [word for name, value in options.items() for word in (f"--{name}", value)]
        self.start("redis", self.redis_port, ["redis-server", *options])

    def health(self, name):
        """Ask a worker itself, not by way of nginx."""
        url = f"http://127.0.0.1:{self.ports[name]}/healthz"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return json.load(answer)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self):
        """End all, and return what was wrong with their ends."""
        problems = []
        order = ["nginx", *WORKERS, "redis"]  # nginx first: no new requests
        for name in sorted(self.processes, key=order.index):
            process = self.processes[name]
            end(process, PATIENCE)
            if process.returncode not in (0, -15):  # uvicorn ends by the signal it was sent
                problems.append(f"{name} ended with status {process.returncode}")
        for path in self.folder.glob("?.log"):
            log = path.read_text()
            if any(word in log for word in ("Traceback", "ERROR", "ResourceWarning", "destroyed")):
                problems.append(f"{path.name}:\n{log[-3000:]}")
        return problems


class Session:
    """A client in a session, and the network between it and nginx."""

    def __init__(self, url, told):
        self.relay = Relay(url)
        self.told = told
        self.cuts = 0

    async def open(self):
        await self.relay.open()
        options = {"revision": SESSIONFUL, "elicit": self.elicit, "timeout": PATIENCE}
        self.client = Client(self.relay.url, **options)
        await self.client.connect()
        self.worker = await self.whoami()
        return self

    def elicit(self, message, schema):
        self.told.append(message)
        return {"value": True}

    async def whoami(self):
        return await self.client.call("whoami")

    async def follow(self):
        """Do everything, always with the same worker."""
        reports = []

        def progress(number, total, message):
            reports.append(number)
            if random.random() < 0.05:
                self.cuts += 1
                self.relay.cut()

        counted = await self.client.call("count", {"to": COUNT_TO}, progress=progress)
        assert counted == f"{self.worker} counted to {COUNT_TO}", counted
        assert reports == list(range(1, COUNT_TO + 1)), reports
        assert await self.client.call("book", {"seats": 2}) == "booked"
        assert await self.whoami() == self.worker

    async def close(self):
        await self.client.close()
        self.relay.close()


async def announcements(sessions):
    """Subscribe all, change something in each worker, and see that all hear of it once."""
    heard = collections.Counter()
    for session in sessions:

        def note(*_, session=session):
            heard[session] += 1

        await session.client.subscribe(URI, note)
    for name in WORKERS:
        await next(s for s in sessions if s.worker == name).client.call("confirm")
    until = time.monotonic() + PATIENCE
    while len(heard) < len(sessions) and time.monotonic() < until:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    assert set(heard.values()) == {1} and len(heard) == len(sessions), heard


async def drive(site):
    """Do everything that the module's docstring says."""
    told = []
    sessions = await asyncio.gather(*(Session(site.url, told).open() for _ in range(SESSIONS)))
    spread = collections.Counter(session.worker for session in sessions)
    assert set(spread) == set(WORKERS), spread
    print(f"{SESSIONS} sessions, by worker: {dict(sorted(spread.items()))}", flush=True)

    await asyncio.gather(*(session.follow() for session in sessions))
    assert len(told) == SESSIONS, told
    cuts = sum(session.cuts for session in sessions)
    print(f"{SESSIONS} calls of {COUNT_TO} reports each: all arrived once, in order, although the "
          f"network failed {cuts} times; {len(told)} questions answered", flush=True)  # fmt: skip

    await announcements(sessions)
    print(f"{SESSIONS} subscribers heard of the changes in their workers, once", flush=True)

    old = await Session(site.url.replace("/mcp", "/sse"), told).open()
    await old.client.call("book", {"seats": 1})
    assert await old.whoami() == old.worker
    await old.close()
    print("the transport of 2024-11-05 works, too", flush=True)

    site.kill("b")
    orphans = [session for session in sessions if session.worker == "b"]
    others = [session for session in sessions if session.worker != "b"]
    homes = collections.Counter(await asyncio.gather(*(s.whoami() for s in orphans)))
    assert "b" not in homes, homes
    assert await asyncio.gather(*(s.whoami() for s in others)) == [s.worker for s in others]
    print(f"worker b was killed: its {len(orphans)} clients went on with {dict(homes)}, "
          "the others noticed nothing", flush=True)  # fmt: skip

    site.start_worker("b")
    until = time.monotonic() + PATIENCE  # nginx tries it again after three seconds
    while True:
        session = await Session(site.url, told).open()
        again = [await session.whoami() for _ in range(3)]
        await session.close()
        assert again == [session.worker] * 3, (session.worker, again)
        if session.worker == "b":
            break
        assert time.monotonic() < until, "worker b gets no sessions"
        await asyncio.sleep(0.2)
    print("worker b is back, and gets new sessions", flush=True)
    await asyncio.gather(*(session.close() for session in sessions))


class Audience:
    """Clients that listen, by name, and how often each has heard of a change."""

    def __init__(self, site):
        self.site, self.heard = site, collections.Counter()
        self.stack = contextlib.AsyncExitStack()
        self.clients = {}  # of each worker, past nginx

    async def open(self):
        """Bring in clients of each era; those of the older one by way of nginx, into sessions."""
        for name, port in self.site.ports.items():
            url = f"http://127.0.0.1:{port}/mcp"
            self.clients[name] = await self._enter(url, SESSIONLESS)
            for number in range(LISTENERS):
                await self._listen(await self._enter(url, SESSIONLESS), f"{name} {number}")
        for number in range(LISTENERS):
            await self._listen(await self._enter(self.site.url, SESSIONLESS), f"any {number}")
            client = await self._enter(self.site.url, SESSIONFUL)
            await self._listen(client, f"{await client.call('whoami')} legacy {number}")
        return self

    async def _enter(self, url, revision):
        client = Client(url, revision=revision, timeout=PATIENCE)
        return await self.stack.enter_async_context(client)

    async def _listen(self, client, name):
        def note(*_):
            self.heard[name] += 1

        self.heard[name] = 0
        await client.listen(uris=[URI], callback=note)

    async def change(self, worker):
        """Change something in a worker."""
        await self.clients[worker].call("confirm")

    async def hears(self, count, whose=""):
        """See that all hear so often, or those whose names begin so."""
        heard = {name: 0 for name in self.heard if name.startswith(whose)}
        until = time.monotonic() + PATIENCE
        while min(heard.values()) < count and time.monotonic() < until:
            await asyncio.sleep(0.05)
            heard = {name: self.heard[name] for name in heard}
        await asyncio.sleep(0.3)  # for what should not come
        heard = {name: self.heard[name] for name in heard}
        assert set(heard.values()) == {count}, heard
        return len(heard)


async def any_worker(site):
    """Call from many clients, and let them be asked: each request goes to any worker."""
    asked = []

    async def elicit(message, schema):
        asked.append(message)
        await asyncio.sleep(random.random() / 5)  # at once, the worker that asked is the least busy
        yes = schema["properties"]["value"]["type"] == "boolean"
        return {"value": True if yes else "Ann"}

    async with contextlib.AsyncExitStack() as stack:
        options = {"revision": SESSIONLESS, "elicit": elicit, "timeout": PATIENCE}
        clients = [Client(site.url, **options) for _ in range(SESSIONS)]
        for client in clients:
            await stack.enter_async_context(client)
        names = await asyncio.gather(*(client.call("whoami") for client in clients * 5))
        spread = collections.Counter(names)
        assert set(spread) == set(WORKERS), spread
        served, until = [], time.monotonic() + PATIENCE
        while not any(len(set(workers)) == 3 for workers in served):
            assert time.monotonic() < until, served
            calls = [client.call("reserve", {"seats": 2}) for client in clients]
            served += await asyncio.gather(*calls)
    assert all(len(workers) == 3 and set(workers) <= set(WORKERS) for workers in served), served
    moved = [workers for workers in served if workers[2] not in workers[:2]]
    assert len(asked) == 2 * len(served), (len(asked), len(served))
    holds = {name: site.health(name)["holds"] for name in WORKERS}
    assert holds == {name: [w[0] for w in served].count(name) for name in WORKERS}, holds
    print(f"{len(names)} calls without sessions, by worker: {dict(sorted(spread.items()))}")
    print(f"{len(served)} calls that asked twice: {len(moved)} were finished by a worker that saw "
          f"no round before; what each did but once, by worker: {holds}", flush=True)  # fmt: skip


async def drive_shared(site):
    """Do what the module's docstring says of workers that share Redis."""
    await any_worker(site)
    audience = await Audience(site).open()
    async with audience.stack:
        for count, name in enumerate(WORKERS, 1):
            await audience.change(name)
            many = await audience.hears(count)
        print(f"{many} listeners of all workers, of either era, heard of a change in each, once")

        site.kill("redis")
        await audience.change("a")
        many = await audience.hears(count + 1, whose="a ")
        print(f"without Redis, {many} listeners of worker a heard of its change", flush=True)

        site.start_redis()
        until = time.monotonic() + PATIENCE
        while not all("is back" in site.log(name) for name in WORKERS):
            assert time.monotonic() < until, [site.log(name) for name in WORKERS]
            await asyncio.sleep(0.1)
        for name in WORKERS:
            lines = re.findall("redis at .* is (away|back)", site.log(name))
            assert lines == ["away", "back"], site.log(name)
        heard = None
        while heard != audience.heard:  # what waited in worker a comes now
            heard = audience.heard.copy()
            await asyncio.sleep(2)
        audience.heard = collections.Counter(dict.fromkeys(audience.heard, 0))
        for count, name in enumerate(WORKERS, 1):
            await audience.change(name)
            many = await audience.hears(count)
        print(f"Redis is back: {many} listeners heard of a change in each worker, once", flush=True)


async def check_parser():
    """Read what Redis may send, cut off anywhere, and then what it never would."""
    wire = (
        b"%2\r\n+proto\r\n:3\r\n$7\r\nmodules\r\n*0\r\n"
        b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
        b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$6\r\n{\r\n1:}\r\n"
        b":2\r\n-ERR no\r\n+PONG\r\n"
    )
    pushes = [Push([b"subscribe", b"c", 1]), Push([b"message", b"c", b"{\r\n1:}"])]
    wanted = [[b"proto", 3, b"modules", []], *pushes, 2, "RedisError('ERR no')", b"PONG"]

    async def read(data):
        reader, found = asyncio.StreamReader(), []
        reader.feed_data(data)
        reader.feed_eof()
        with contextlib.suppress(EOFError):
            while True:
                value = await read_value(reader)
                is_error = isinstance(value, RedisError)  # which is not equal to another
                found.append(repr(value) if is_error else value)
        return found

    assert await read(wire) == wanted
    for length in range(len(wire)):
        found = await read(wire[:length])
        assert found == wanted[: len(found)] != wanted
    for _ in range(2000):
        with contextlib.suppress(ValueError):
            await read(bytes(random.choices(b"*$>%:+-0123456789\r\n\r\nx", k=20)))


def run(site, driving):
    """Start what a site needs, drive it, and stop it."""
    try:
        if site.shared:
            site.start_redis()
        for name in WORKERS:
            site.start_worker(name)
        site.start_nginx()
        asyncio.run(asyncio.wait_for(driving(site), 300))
    except BaseException:
        for name in site.processes:
            print(f"--- {name}:\n{site.log(name)[-2000:]}")
        raise
    problems = site.stop()
    if problems:
        raise Failed("\n".join(problems))
    print("everything is stopped", flush=True)


def main():
    seed = random.randrange(10**6)
    random.seed(seed)
    print(f"seed {seed}")
    asyncio.run(check_parser())
    for driving, shared in (drive, False), (drive_shared, True):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            run(Site(Path(folder), stack, shared), driving)


if __name__ == "__main__":
    main()
