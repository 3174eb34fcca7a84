#!/usr/bin/env python3
"""Attack a server in ten ways at once while an honest client uses it.

    python3 .ci/benchmarks/attacks.py [--seconds 30] [ATTACK...]

One server process listens three times: openly, for tokens, and by TLS. It may open 1,024 files, as
is usual. Attackers go on for so long; an honest client calls a tool meanwhile, on a connection that
it keeps and on new ones, and connects anew. How long it waits is printed, and so is the memory. The
bounds are wide: a failure is a server that does not serve, forgets nothing, or has no bound.
"""

import argparse
import asyncio
import base64
import contextlib
import gc
import json
import os
import pathlib
import random
import resource
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from urllib.parse import urlsplit

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from processes import end, resident_mb, started
from soak import give_back

from mcp_lite import Client, Guard, MCPError, Server, jwt_verifier

MEDIAN_SECONDS = 2.0  # 0.2 is the aim; a busy machine is not a fault
FAILED_SHARE = 0.05  # of the honest calls
# More than at first: under attack (256 MB of bodies, 256 MB that is not read, what 40 calls at once
# have made), and after it.
PEAK_MB, KEPT_MB = 1500, 30
QUIET_SECONDS = 60  # for the server to forget it all
MODERN = "2026-07-28"
OWN = "io.modelcontextprotocol/"
ATTACKS = """
    unfinished_bodies silent_connections waiting_bodies unread_responses slow_readers forged_tokens
    recursive_arguments enormous_integers bursts_of_notifications endless_handshakes
""".split()
POINT = {  # of P-256: the public key of the number 1
    "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",
    "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
}

# ---- The server ----------------------------------------------------------------------------------


def make_server():
    app = Server("attacked")

    @app.tool
    async def echo(text: str) -> str:
        return text

    @app.tool
    def large() -> str:
        return "x" * 7_000_000

    members = {"next": {"$ref": "#"}, "value": {"type": "integer"}}

    @app.tool(input_schema={"type": "object", "properties": members})
    def tree(**node) -> str:
        return "right"

    return app


async def serve(certificate):
    """Serve until SIGTERM; print the URLs, then a line about our state whenever one is read."""
    app, limit = make_server(), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    keys = [{"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "1", **POINT}]
    verify = jwt_verifier("https://as.example", audience="https://a.example/mcp", keys=keys)
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, end.set)

    def tell():
        sys.stdin.readline()
        gc.collect()
        give_back()
        kept = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks(loop)), resident_mb()
        print(*kept, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)

    loop.add_reader(0, tell)
    async with contextlib.AsyncExitStack() as stack:
        # The first may open as many files as is usual, and the others have some of their own.
        for options in {}, {"auth": Guard(verify=verify)}, {"ssl": certificate}:
            resource.setrlimit(resource.RLIMIT_NOFILE, (2048 if options else 1024, limit))
            running = await stack.enter_async_context(app.http(port=0, **options))
            print(running.url, flush=True)
        await end.wait()


# ---- The attackers -------------------------------------------------------------------------------


def post(name, arguments, length=None, body=None, **fields):
    """Return the bytes of a call of a tool, of which the body may be another, or unfinished."""
    meta = {f"{OWN}protocolVersion": MODERN, f"{OWN}clientCapabilities": {}}
    params = {"name": name, "arguments": arguments, "_meta": meta}
    if body is None:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        body = json.dumps(message).encode()
    head = {
        "Host": "127.0.0.1", "Content-Type": "application/json", "MCP-Protocol-Version": MODERN,
        "Accept": "application/json, text/event-stream", "Mcp-Method": "tools/call",
        "Mcp-Name": name, "Content-Length": length or len(body), **fields,
    }  # fmt: skip
    lines = [f"{key}: {value}" for key, value in head.items()]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body


class Attacks:
    """Those that ATTACKS names; each holds what it opens."""

    def __init__(self, urls):
        self.open, self.guarded, self.tls = (urlsplit(url).port for url in urls)

    @contextlib.asynccontextmanager
    async def connected(self, port=None):
        reader, writer = await asyncio.open_connection("127.0.0.1", port or self.open, limit=2**16)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def hold(self, reader, seconds=30):
        """Read what comes; come back when the server closes, or after so long."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(), seconds)

    async def many(self, number, attack):
        await asyncio.gather(*(self.again(attack) for _ in range(number)))

    async def again(self, attack):
        while True:
            with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
                await attack()
            await asyncio.sleep(random.random())

    async def unfinished_bodies(self):
        async def attack():
            async with self.connected() as (reader, writer):
                writer.write(post("echo", {}, 16_000_000, b" "))
                for _ in range(15):
                    writer.write(b" " * 1_000_000)
                    await writer.drain()
                await self.hold(reader)

        await self.many(16, attack)

    async def silent_connections(self):
        async def attack():
            async with self.connected() as (reader, writer):
                writer.write(random.choice([b"", b"POST /mcp HT"]))
                await self.hold(reader)

        await self.many(1100, attack)

    async def waiting_bodies(self):
        async def attack():
            async with self.connected() as (reader, writer):
                writer.write(post("echo", {}, 1, b""))
                await self.hold(reader)

        await self.many(200, attack)

    async def unread_responses(self):
        async def attack():
            async with self.connected() as (reader, writer):
                reader._transport.pause_reading()
                writer.write(post("large", {}) * 4)
                await asyncio.sleep(5)

        await self.many(20, attack)

    async def slow_readers(self):
        async def attack():
            async with self.connected() as (reader, writer):
                writer.write(post("large", {}))
                for _ in range(300):
                    await reader.read(100)
                    await asyncio.sleep(0.1)

        await self.many(20, attack)

    async def forged_tokens(self):
        def part(data):
            return base64.urlsafe_b64encode(data).decode().rstrip("=")

        async def attack():
            header, claims = b'{"alg":"ES256","kid":"1"}', b'{"iss":"https://as.example"}'
            async with self.connected(self.guarded) as (reader, writer):
                for _ in range(50):
                    token = f"{part(header)}.{part(claims)}.{part(os.urandom(64))}"
                    writer.write(post("echo", {}, Authorization=f"Bearer {token}"))
                    await reader.readuntil(b"\r\n\r\n")

        await self.many(4, attack)

    async def recursive_arguments(self):
        tree = {"value": 1}
        for _ in range(110):
            tree = {"next": tree, "value": 1}
        await self.many(2, lambda: self.asks(post("tree", tree)))

    async def enormous_integers(self):
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","x":[' + b"9" * 4200
        body += (b"," + b"9" * 4200) * 900 + b"]}"
        await self.many(2, lambda: self.asks(post("echo", {}, body=body)))

    async def asks(self, data):
        async with self.connected() as (reader, writer):
            writer.write(data)
            await asyncio.wait_for(reader.read(1), 30)

    async def bursts_of_notifications(self):
        body = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'

        async def attack():
            async with self.connected() as (reader, writer):
                for _ in range(20):
                    writer.write(post("echo", {}, body=body) * 50)
                    await writer.drain()
                    await reader.read(2**16)

        await self.many(4, attack)

    async def endless_handshakes(self):
        async def attack():
            async with self.connected(self.tls) as (reader, writer):
                writer.write(bytes([22, 3, 1, 2, 0, 1, 0, 1, 252]))  # the begin of a ClientHello
                await self.hold(reader)

        await self.many(150, attack)


async def attack(names, urls):
    """Attack until killed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    attacks = Attacks(urls)
    await asyncio.gather(*(getattr(attacks, name)() for name in names))


# ---- The honest client ---------------------------------------------------------------------------


class Honest:
    """A client that measures how long it waits."""

    def __init__(self, urls, certificate):
        self.urls = urls[0], urls[2]
        self.options = {}, {"ssl": ssl.create_default_context(cafile=certificate[0])}
        self.waited, self.failures = [], []

    async def use(self, seconds):
        await asyncio.gather(*(self.one(*each, seconds) for each in zip(self.urls, self.options)))

    async def one(self, url, options, seconds):
        until, number = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            client = None
            try:
                async with Client(url, timeout=20, **options) as client:
                    for _ in range(10):
                        began = time.monotonic()
                        assert await client.call("echo", {"text": f"{number}"}) == f"{number}"
                        self.waited.append(time.monotonic() - began)
                        number += 1
                        await asyncio.sleep(0.05)
            except (MCPError, OSError) as exc:
                self.failures.append(f"{type(exc).__name__}: {exc}"[:200])
                await asyncio.sleep(0.2)


# ---- All together --------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--attack", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="ATTACK", help=", ".join(ATTACKS))
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve))
        return 0
    if options.attack:
        asyncio.run(attack(options.names, options.attack))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        certificate = [f"{folder}/certificate.pem", f"{folder}/key.pem"]
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-out", certificate[0], "-keyout", certificate[1]]
        subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
        with open(f"{folder}/log", "w+") as log:
            return judge(options.names or ATTACKS, options.seconds, certificate, log)


def judge(names, seconds, certificate, log):
    """Print the figures and what is wrong; return an exit status."""
    # Of glibc: a block of above 1 MB that is free goes back to the system, and is not counted.
    environ = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000"}
    us, pipe = [sys.executable, __file__], subprocess.PIPE
    with started(
        [*us, "--serve", *certificate], stdin=pipe, stdout=pipe, stderr=log, text=True, env=environ
    ) as server:
        urls = [server.stdout.readline().strip() for _ in range(3)]

        def state():
            print(file=server.stdin, flush=True)
            return [float(word) for word in server.stdout.readline().split()]

        honest = Honest(urls, certificate)
        asyncio.run(honest.use(1))
        alone, before = statistics.median(honest.waited), state()
        honest.waited.clear()
        with started([*us, *names, "--attack", *urls], stderr=log) as attacker:
            asyncio.run(honest.use(seconds))
            ended = attacker.poll() is not None
        until = time.monotonic() + QUIET_SECONDS
        while left(before, after := state()) and time.monotonic() < until:
            time.sleep(0.5)
        end(server, 30)
    waited, failures = sorted(honest.waited), honest.failures
    median, late = statistics.median(waited), waited[len(waited) * 95 // 100]
    peak, kept = after[3] - before[2], after[2] - before[2]
    print(f"honest calls: {len(waited)}, {len(failures)} failures; median {median * 1000:.0f} ms "
          f"(alone {alone * 1000:.1f}), 95 % within {late * 1000:.0f} ms")  # fmt: skip
    print(f"memory: {before[2]:.0f} MB at first, {after[3]:.0f} at most, {after[2]:.0f} afterwards")
    problems = [f"a failure: {text}" for text in sorted(set(failures))[:5]]
    bad = [
        (median > MEDIAN_SECONDS, f"the median is above {MEDIAN_SECONDS} s"),
        (len(failures) > FAILED_SHARE * len(waited), "too many failures"),
        (peak > PEAK_MB, f"the server took more than {PEAK_MB} MB"),
        (kept > KEPT_MB, f"the server kept more than {KEPT_MB} MB"),
        (left(before, after), f"left: descriptors, tasks {after[:2]}, were {before[:2]}"),
        (ended, "the attackers have ended"),
        (server.returncode != 0, f"the server ended with status {server.returncode}"),
    ]
    log.seek(0)
    text = log.read()
    faults = [why for wrong, why in bad if wrong]
    print(*problems, *(faults or ["served throughout"]), sep="\n")
    if faults or "Traceback" in text:
        print(text[-3000:])
        return 1
    return 0


def left(before, after):
    """Return whether there are more descriptors or tasks than before."""
    return any(now > then for now, then in zip(after[:2], before[:2]))


if __name__ == "__main__":
    sys.exit(main())
