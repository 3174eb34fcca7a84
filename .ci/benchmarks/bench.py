#!/usr/bin/env python3
"""Measure mcp_lite against the least that asyncio can do, and against the official SDK.

    python3 .ci/benchmarks/bench.py [--quick] [stdio] [http] [import]

The servers of servers.py answer the same calls of the same tool, `echo`, over stdio and HTTP:

    bare    a bare asyncio loop that reads, parses and writes JSON, and knows no protocol
    lite    mcp_lite
    sdk     the official SDK, for each interpreter in PEERS_PYTHON (separated by os.pathsep), or for
            this one if it can `import mcp`

Servers take turns in every round; the medians are compared. Quote the ratios of one run, never a
figure alone. Memory and CPU time are read from /proc; the load on HTTP is wrk's, without which HTTP
is not measured.
"""

import argparse
import contextlib
import functools
import http.client
import json
import os
import pathlib
import re
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from processes import ROOT, Failed, free_port, resident_mb, serving, started

HERE = pathlib.Path(__file__).resolve().parent
WRK = shutil.which("wrk")
IN_FLIGHT = 64
DEADLINE_SECONDS = 60  # for any one answer; nothing here waits longer
SESSION, STATELESS = "2025-06-18", "2026-07-28"
AIMS = {
    "from start to the first result, ms": "at most 1.5",
    f"stdio, {IN_FLIGHT} calls at once, calls/s": "at least 0.55",
    f"stdio, {IN_FLIGHT} calls at once, CPU us/call": "at most 1.82",
    "HTTP, 32 connections, calls/s": "at least 0.75",
    "HTTP, 32 connections, CPU us/call": "at most 1.33",
    "HTTP, 32 connections, stateless, calls/s": "at least 0.75",
    "HTTP, 32 connections, stateless, CPU us/call": "at most 1.33",
    "memory of an open stream, KiB": "at most 40 KiB",
    "memory of an idle session, KiB": "at most 4 KiB",
}


class Size:
    """How much is done."""

    def __init__(self, quick):
        self.rounds, self.calls = (1, 200) if quick else (5, 2000)
        self.seconds = 1 if quick else 3
        self.streams, self.sessions = (200, 1000) if quick else (1000, 5000)


def message(method, params=None, req_id=None):
    msg = {"jsonrpc": "2.0", "method": method}
    if req_id is not None:
        msg["id"] = req_id
    if params is not None:
        msg["params"] = params
    return json.dumps(msg).encode()


def call(req_id, text="hello", **more):
    params = {"name": "echo", "arguments": {"text": text}, **more}
    return message("tools/call", params, req_id)


HELLO = message(
    "initialize",
    {"protocolVersion": SESSION, "capabilities": {}, "clientInfo": {"name": "b", "version": "0"}},
    0,
)
LARGE = "x" * 100_000
INITIALIZED = message("notifications/initialized")


def cpu_us(pid):
    """Return the CPU time of a process in microseconds."""
    threads = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e3


class Stdio:
    """The pipes to a server process; reads and writes block, which costs the least."""

    def __init__(self, process):
        self.process, self.buffer = process, b""

    def write(self, *lines):
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def read(self):
        """Return the lines that have come, at least one."""
        while b"\n" not in self.buffer:
            stdout = self.process.stdout
            if not select.select([stdout], [], [], DEADLINE_SECONDS)[0]:
                raise Failed("the server does not answer")
            data = os.read(stdout.fileno(), 1 << 20)
            if not data:
                raise Failed("the server ended")
            self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        return lines

    def start(self):
        """Shake hands, and make the first call."""
        self.write(HELLO)
        self.read()
        self.write(INITIALIZED, call(1))
        while b'"hello"' not in self.read()[-1]:
            pass


def measure_stdio(command, size):
    """Return the figures of one server over pipes, started anew."""
    began, pipe = time.perf_counter(), subprocess.PIPE
    with started(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        server = Stdio(process)
        server.start()
        figures = {"from start to the first result, ms": (time.perf_counter() - began) * 1e3}
        figures["memory, MB"] = resident_mb(process.pid)
        requests = [call(n) for n in range(10, 10 + size.calls)]
        began = time.perf_counter()
        for line in requests:
            server.write(line)
            server.read()
        figures["stdio, one at a time, calls/s"] = size.calls / (time.perf_counter() - began)
        requests = [call(n) for n in range(size.calls * 4)]
        began, used = time.perf_counter(), cpu_us(process.pid)
        server.write(*requests[:IN_FLIGHT])
        sent, answered = IN_FLIGHT, 0
        while answered < len(requests):
            count = len(server.read())
            answered += count
            server.write(*requests[sent : sent + count])
            sent += count
        took, used = time.perf_counter() - began, cpu_us(process.pid) - used
        figures[f"stdio, {IN_FLIGHT} calls at once, calls/s"] = answered / took
        figures[f"stdio, {IN_FLIGHT} calls at once, CPU us/call"] = used / answered
    return figures


TYPES = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
# The requests in flight have ids of their own, as the specification demands. They take turns, for
# wrk would spend as much time as a server on making each of them anew.
IDS = 256
MARK = 4242424242  # an id that occurs nowhere else shows where the others go
SCRIPT = """
local before, after = [==[%s]==], [==[%s]==]
local requests, last = {}, 0
%s
function init()
  for id = 1, %d do requests[id] = wrk.format("POST", nil, nil, before .. id .. after) end
end
function request()
  last = last %% #requests + 1
  return requests[last]
end
"""


def rate(port, headers, make, seconds, connections):
    """Return the answered POSTs of `make(id)` per second over so many keep-alive connections."""
    fields = "".join(f'wrk.headers["{name}"] = "{value}"\n' for name, value in headers.items())
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        before, after = make(MARK).decode().split(str(MARK))
        script.write(SCRIPT % (before, after, fields, IDS))
        script.flush()
        options = ["-t1", f"-c{connections}", f"-d{seconds}s", "-s", script.name]
        command = [WRK, *options, f"http://127.0.0.1:{port}/mcp"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise Failed(said)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])


class Http:
    """A connection to a port, for what is not measured."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, DEADLINE_SECONDS)

    def send(self, method, headers, body=None):
        """Return the response to a request."""
        self.connection.request(method, "/mcp", body, headers)
        return self.connection.getresponse()

    def open_session(self):
        """Return the headers of a new session's requests."""
        hello = self.send("POST", TYPES, HELLO)
        if hello.status != 200:
            raise Failed(f"initialize was answered with {hello.status}")
        hello.read()
        headers = {**TYPES, "MCP-Protocol-Version": SESSION}
        if session := hello.headers["Mcp-Session-Id"]:
            headers["Mcp-Session-Id"] = session
        self.send("POST", headers, INITIALIZED).read()
        return headers

    def close(self):
        """Hang up; what is sent afterwards goes over a new connection."""
        self.connection.close()


def stateless():
    """Return the headers of a call that needs no session, and a function that makes its body."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "b", "version": "0"},
    }
    more = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "echo"}
    return {**TYPES, **more}, lambda req_id: call(req_id, _meta=meta)


def measure_http(command, size):
    """Return the figures of one server over HTTP, started anew."""
    figures, port = {}, free_port()

    def measure(key, headers, make, connections, seconds=size.seconds):
        used = cpu_us(process.pid)
        calls = rate(port, headers, make, seconds, connections)
        figures[f"HTTP, {key}, calls/s"] = calls
        # The CPU time tells something even where others keep the machine busy.
        used = cpu_us(process.pid) - used
        figures[f"HTTP, {key}, CPU us/call"] = used / (calls * seconds)

    with serving([*command, str(port)], port) as process:
        client = Http(port)
        headers = client.open_session()
        client.close()  # some servers hang up after five seconds
        rate(port, headers, call, 1, 32)  # warm
        measure("1 connection", headers, call, 1)
        measure("32 connections", headers, call, 32)
        measure("32 connections, 100 KB", headers, functools.partial(call, text=LARGE), 32)
        plain, make = stateless()
        if b'"hello"' in client.send("POST", plain, make(7)).read():
            measure("32 connections, stateless", plain, make, 32)
        client.close()
        figures["memory of an open stream, KiB"] = measure_streams(process, port, size.streams)
    if "Mcp-Session-Id" in headers:
        # What streams leave behind is used again by sessions: they need a fresh server.
        with serving([*command, str(port)], port) as process:
            headers = measure_sessions(process, port, size.sessions, figures)
            measure("32 connections, beside idle sessions", headers, call, 32)
    return figures


def measure_streams(process, port, number):
    """Return the KiB that an open stream costs."""
    clients = [Http(port) for _ in range(100 + number)]
    for count, client in enumerate(clients):
        if count == 100:  # the first ones fill what is allocated once
            before = resident_mb(process.pid)
        client.stream = client.send("GET", {**client.open_session(), "Accept": "text/event-stream"})
        if client.stream.status != 200:
            raise Failed(f"a stream was answered with {client.stream.status}")
    cost = (resident_mb(process.pid) - before) * 1024 / number
    for client in clients:
        client.stream.close()
        client.close()
    return cost


def measure_sessions(process, port, number, figures):
    """Add what an idle session costs; return the headers of one."""
    client = Http(port)
    for _ in range(500):
        headers = client.open_session()
    before, opened = resident_mb(process.pid), 0
    with contextlib.suppress(Failed):  # some servers take fewer
        for opened in range(1, number + 1):  # noqa: B007 -- used below
            client.open_session()
    figures["memory of an idle session, KiB"] = (resident_mb(process.pid) - before) * 1024 / opened
    client.close()
    return headers


IMPORT = """
import sys, time
sys.path.insert(0, {root!r})
a = time.perf_counter()
import asyncio, json
b = time.perf_counter()
{more}
c = time.perf_counter()
print((b - a) * 1e3, (c - a) * 1e3, flush=True)
sys.stdin.read()
"""


def measure_import(more):
    """Return milliseconds of `import asyncio, json`, and with `more`, and MB resident after it."""
    command = [sys.executable, "-c", IMPORT.format(root=str(ROOT), more=more)]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        base, both = process.stdout.readline().split()
        return [float(base), float(both), resident_mb(process.pid)]


def peers():
    """Return {name: command} of the servers to compare."""
    servers = str(HERE / "servers.py")
    found = {name: [sys.executable, servers, name] for name in ("bare", "lite")}
    ask = "import mcp, importlib.metadata as m; print(m.version('mcp'))"
    for python in (os.environ.get("PEERS_PYTHON") or sys.executable).split(os.pathsep):
        said = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60)
        if said.returncode == 0:
            found[f"sdk {said.stdout.strip()}"] = [python, servers, "sdk"]
    return found


def measure_server(name, command, size, what):
    """Return the figures of one server. A peer that fails has none: that is not our failure."""
    figures = {}
    try:
        if "stdio" in what:
            figures.update(measure_stdio(command, size))
        if "http" in what:
            figures.update(measure_http(command, size))
    except (Failed, OSError) as error:
        if name in ("bare", "lite"):
            raise
        print(f"{name} failed: {error}", file=sys.stderr)
    return figures


def median(runs):
    """Return the median of each figure over the rounds that have it."""
    keys = {key: None for figures in runs for key in figures}
    return {key: statistics.median(run[key] for run in runs if key in run) for key in keys}


def show(medians):
    """Print a table: figures, and their ratios to those of the bare loop."""
    print("| | " + " | ".join(medians) + " | aim for lite |")
    print("|---|" + "---|" * (len(medians) + 1))
    for key in medians["lite"]:
        bare = medians["bare"].get(key)
        cells = []
        for figures in medians.values():
            figure = figures.get(key)
            ratio = f" ({figure / bare:.2f})" if figure and bare else ""
            cells.append("-" if figure is None else f"{figure:,.1f}{ratio}")
        print(f"| {key} | " + " | ".join(cells) + f" | {AIMS.get(key, '')} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round of little")
    parser.add_argument("what", nargs="*", default=["import", "stdio", "http"])
    options = parser.parse_args()
    if "http" in options.what and not WRK:
        print("wrk is not installed: HTTP is not measured", file=sys.stderr)
        options.what.remove("http")
    size = Size(options.quick)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # for 1,000 streams
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a program is compiled once, not every time
    measure_import("import mcp_lite")
    servers = peers()
    runs = {name: [] for name in servers}
    imports = []
    for number in range(size.rounds):
        if "import" in options.what:
            imports.append(measure_import("import mcp_lite") + measure_import("")[2:])
        for name, command in servers.items():
            print(f"round {number + 1} of {size.rounds}: {name}", file=sys.stderr)
            runs[name].append(measure_server(name, command, size, options.what))
    medians = {name: median(figures) for name, figures in runs.items()}

    print(f"Python {sys.version.split()[0]}; medians of {size.rounds} rounds: {size.calls} calls "
          f"over stdio, {size.seconds} s of HTTP by wrk. In brackets: multiples of bare.\n")
    show(medians)
    if not imports:
        return
    base, lite, memory, least = (statistics.median(column) for column in zip(*imports))
    print(f"\nimport mcp_lite: {lite - base:.1f} ms over the {base:.1f} ms of `import asyncio, "
          f"json` ({lite / base:.2f}; aim: at most 15 ms and 1.3)")
    idle = medians["lite"].get("memory, MB")
    if idle:
        print(f"memory, MB: {least:.1f} after `import asyncio, json`, {memory:.1f} with mcp_lite, "
              f"{idle:.1f} as an idle server ({idle / least:.2f}; aim: at most 1.25)")


if __name__ == "__main__":
    main()
