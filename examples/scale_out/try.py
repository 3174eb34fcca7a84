"""Prove the recipe of this folder: start workers and nginx, and give them a hard time.

    python3 examples/scale_out/try.py

Needs uvicorn in this Python and nginx on the PATH. Everything runs on free ports of loopback, in a
folder of its own, and is stopped again, by process id. Many sessions at once check that each stays
with its worker; that every report of a running call arrives exactly once although connections are
cut; that questions and announcements find their way; and that a dead worker's clients go on.
"""

import asyncio
import collections
import contextlib
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from relay import Relay

from mcp_lite import Client

HERE = Path(__file__).resolve().parent
WORKERS = "abc"
SESSIONFUL = "2025-11-25"  # the newest revision with sessions, streams and resumption
SESSIONS = 60
COUNT_TO = 30
PATIENCE = 20  # seconds for anything


def free_ports(number):
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(number)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


class Site:
    """The processes, by name, and their ports."""

    def __init__(self, folder):
        self.folder = folder
        self.port, *ports = free_ports(1 + len(WORKERS))
        self.ports = dict(zip(WORKERS, ports))
        self.processes = {}
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def spawn(self, name, command, **environ):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=HERE,
                env={**os.environ, **environ},
            )  # fmt: skip

    def start_worker(self, name):
        port = self.ports[name]
        options = ["--port", str(port), "--no-access-log", "--timeout-graceful-shutdown", "3"]
        command = [sys.executable, "-m", "uvicorn", *options, "server:asgi"]
        self.spawn(name, command, WORKER=name, HOSTS="127.0.0.1")
        self.wait_for(name, port)

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
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
        command = [nginx, "-p", str(self.folder), "-c", str(whole), "-g", "daemon off;"]
        self.spawn("nginx", command)
        self.wait_for("nginx", self.port)

    def wait_for(self, name, port):
        for _ in range(10 * PATIENCE):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            if self.processes[name].poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"{name} does not start:\n{self.log(name)}")

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self):
        """End all, and return what was wrong with their ends."""
        problems = []
        for name in sorted(self.processes, reverse=True):  # nginx first: no new requests
            process = self.processes[name]
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                problems.append(f"{name} did not end")
                process.kill()
                process.wait()
            if process.returncode not in (0, -15):  # uvicorn ends by the signal it was sent
                problems.append(f"{name} ended with status {process.returncode}")
        for path in self.folder.glob("?.log"):
            if "Traceback" in path.read_text() or "ERROR" in path.read_text():
                problems.append(f"{path.name}:\n{path.read_text()[-3000:]}")
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

        await session.client.subscribe("bookings://count", note)
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


def main():
    seed = random.randrange(10**6)
    random.seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        try:
            for name in WORKERS:
                site.start_worker(name)
            site.start_nginx()
            asyncio.run(asyncio.wait_for(drive(site), 120))
        except BaseException:
            print(f"seed {seed}")
            for name in list(site.processes):
                print(f"--- {name}:\n{site.log(name)[-2000:]}")
            raise
        finally:
            problems = site.stop()
    if problems:
        raise SystemExit("\n".join(problems))
    print("everything is stopped")


if __name__ == "__main__":
    main()
