#!/usr/bin/env python3
"""Measure mcp_lite against the least that asyncio can do, and against the official SDK.

    python3 .ci/benchmarks/bench.py [--quick] [stdio] [http] [import]

The servers of servers.py answer the same calls of the same tool, `echo`, over stdio and HTTP:

    floor   a bare asyncio loop that reads, parses and writes JSON, and knows no protocol
    lite    mcp_lite
    sdk     the official SDK, for each interpreter in PEERS_PYTHON (separated by os.pathsep), or for
            this one if it can `import mcp`

Servers take turns in every round; the medians are compared. Quote the ratios of one run, never a
figure alone. Needs the standard library only, and wrk for HTTP figures that mean something (else
load.py does it); memory is read from /proc.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import re
import select
import socket
import statistics
import subprocess
import sys
import time

import load

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IN_FLIGHT = 64
DEADLINE_SECONDS = 60  # for any one answer; nothing here waits longer
SESSION, STATELESS = "2025-06-18", "2026-07-28"
AIMS = {
    "cold start, ms": "at most 1.5",
    f"stdio, {IN_FLIGHT} in flight, calls/s": "at least 0.55",
    f"stdio, {IN_FLIGHT} in flight, CPU us/call": "at most 1.82",
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
        self.streams, self.sessions = (200, 1000) if quick else (1000, 10_000)


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


def resident_kb(pid):
    """Return the resident memory of a process in KiB, or nan where /proc does not exist."""
    if not os.path.exists("/proc/self/status"):
        return float("nan")
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def cpu_us(pid):
    """Return the CPU time of a process in microseconds, or nan where /proc does not tell."""
    try:
        threads = list(pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e3 or float("nan")
    except OSError:
        return float("nan")


class Stdio:
    """A server process and the pipes to it; reads and writes block, which costs the least."""

    def __init__(self, command):
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.buffer = b""

    def write(self, *lines):
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def read(self):
        """Return the lines that have come, at least one."""
        while b"\n" not in self.buffer:
            stdout = self.process.stdout
            if not select.select([stdout], [], [], DEADLINE_SECONDS)[0]:
                raise TimeoutError("the server does not answer")
            data = os.read(stdout.fileno(), 1 << 20)
            if not data:
                raise EOFError("the server ended")
            self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        return lines

    def start(self):
        """Shake hands, make the first call; return the milliseconds since the spawn."""
        self.write(HELLO)
        self.read()
        self.write(INITIALIZED, call(1))
        while b'"hello"' not in self.read()[-1]:
            pass
        return (time.perf_counter() - self.began) * 1e3

    def close(self):
        self.process.stdin.close()
        end(self.process)
        self.process.stdout.close()


def end(process):
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def measure_stdio(command, size):
    """Return the figures of one server over pipes, started anew."""
    server = Stdio(command)
    try:
        figures = {"cold start, ms": server.start()}
        figures["memory, MB"] = resident_kb(server.process.pid) / 1024
        requests = [call(n) for n in range(10, 10 + size.calls)]
        began = time.perf_counter()
        for line in requests:
            server.write(line)
            server.read()
        figures["stdio, one at a time, calls/s"] = size.calls / (time.perf_counter() - began)
        requests = [call(n) for n in range(size.calls * 4)]
        began, used = time.perf_counter(), cpu_us(server.process.pid)
        server.write(*requests[:IN_FLIGHT])
        sent, answered = IN_FLIGHT, 0
        while answered < len(requests):
            count = len(server.read())
            answered += count
            server.write(*requests[sent : sent + count])
            sent += count
        took, used = time.perf_counter() - began, cpu_us(server.process.pid) - used
        figures[f"stdio, {IN_FLIGHT} in flight, calls/s"] = answered / took
        figures[f"stdio, {IN_FLIGHT} in flight, CPU us/call"] = used / answered
    finally:
        server.close()
    return figures


TYPES = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Http:
    """A server process on a port."""

    def __init__(self, command):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [*command, str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.perf_counter() + DEADLINE_SECONDS
        while True:
            try:
                self.connection = load.Connection(self.port)
                return
            except OSError:
                if self.process.poll() is not None or time.perf_counter() > until:
                    self.close()
                    raise
                time.sleep(0.02)

    def open_session(self):
        """Return the headers of a new session's requests."""
        head, _ = self.connection.post(TYPES, HELLO)
        if b" 200 " not in head:
            raise OSError(head)
        headers = {**TYPES, "MCP-Protocol-Version": SESSION}
        found = re.search(rb"(?i)mcp-session-id: *(\S+)", head)
        if found:
            headers["Mcp-Session-Id"] = found[1].decode()
        self.connection.post(headers, INITIALIZED)
        return headers

    def memory(self):
        return resident_kb(self.process.pid)

    def close(self):
        self.process.terminate()
        end(self.process)


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
    figures = {}
    server = Http(command)

    def measure(key, headers, make, connections, seconds=size.seconds):
        used = cpu_us(server.process.pid)
        rate = load.rate(server.port, headers, make, seconds, connections)
        figures[f"HTTP, {key}, calls/s"] = rate
        # The CPU time tells something even where others keep the machine busy.
        used = cpu_us(server.process.pid) - used
        figures[f"HTTP, {key}, CPU us/call"] = used / (rate * seconds)

    try:
        headers = server.open_session()
        load.rate(server.port, headers, call, 1, 32)  # warm
        measure("1 connection", headers, call, 1)
        measure("32 connections", headers, call, 32)
        measure("32 connections, 100 KB", headers, functools.partial(call, text=LARGE), 32)
        headers, make = stateless()
        if b'"hello"' in server.connection.post(headers, make(7))[1]:
            measure("32 connections, stateless", headers, make, 32)
        figures.update(measure_memory(server, size))
    finally:
        server.close()
    return figures


def measure_memory(server, size):
    """Return what open streams and idle sessions cost."""
    figures = {}
    readers = []
    for number in range(100 + size.streams):
        if number == 100:  # the first ones fill what is allocated once
            before = server.memory()
        headers = server.open_session()
        reader = load.Connection(server.port)
        readers.append(reader)
        head = reader.send("GET", {**headers, "Accept": "text/event-stream"})
        if b" 200 " not in head:
            raise OSError(head)
    figures["memory of an open stream, KiB"] = (server.memory() - before) / size.streams
    for reader in readers:
        reader.close()
    if "Mcp-Session-Id" in headers:
        time.sleep(1)
        # What the streams left behind is used again by sessions: they need a fresh server.
        fresh = Http(server.process.args[:-1])
        try:
            for _ in range(500):
                fresh.open_session()
            before, opened = fresh.memory(), 0
            with contextlib.suppress(OSError):  # some servers take fewer
                for opened in range(1, size.sessions + 1):  # noqa: B007 -- used below
                    fresh.open_session()
            figures["memory of an idle session, KiB"] = (fresh.memory() - before) / opened
        finally:
            fresh.close()
    return figures


IMPORT = """
import os, sys, time
sys.path.insert(0, {root!r})
a = time.perf_counter()
import asyncio, json
b = time.perf_counter()
{more}
c = time.perf_counter()
print((b - a) * 1e3, (c - a) * 1e3, os.getpid(), flush=True)
sys.stdin.read()
"""


def measure_import(more):
    """Return milliseconds of `import asyncio, json`, and with `more`, and MB resident after it."""
    command = [sys.executable, "-c", IMPORT.format(root=str(ROOT), more=more)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        base, both, pid = process.stdout.readline().split()
        return [float(base), float(both), resident_kb(int(pid)) / 1024]


def peers():
    """Return {name: command} of the servers to compare."""
    servers = str(HERE / "servers.py")
    found = {name: [sys.executable, servers, name] for name in ("floor", "lite")}
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
    except (OSError, EOFError) as error:
        if name in ("floor", "lite"):
            raise
        print(f"{name} failed: {error}", file=sys.stderr)
    return figures


def median(runs):
    """Return the median of each figure over the rounds that have it."""
    keys = {key: None for figures in runs for key in figures}
    return {key: statistics.median(run[key] for run in runs if key in run) for key in keys}


def show(medians):
    """Print a table: figures, and their ratios to the floor's."""
    print("| | " + " | ".join(medians) + " | aim for lite |")
    print("|---|" + "---|" * (len(medians) + 1))
    for key in medians["lite"]:
        floor = medians["floor"].get(key)
        cells = []
        for figures in medians.values():
            figure = figures.get(key)
            ratio = f" ({figure / floor:.2f})" if figure and floor else ""
            cells.append("-" if figure is None else f"{figure:,.1f}{ratio}")
        print(f"| {key} | " + " | ".join(cells) + f" | {AIMS.get(key, '')} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round of little")
    parser.add_argument("what", nargs="*", default=["import", "stdio", "http"])
    options = parser.parse_args()
    size = Size(options.quick)

    import resource

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

    by = "wrk" if load.WRK else "load.py, for want of wrk"
    print(f"Python {sys.version.split()[0]}; medians of {size.rounds} rounds: {size.calls} calls "
          f"over stdio, {size.seconds} s of HTTP by {by}. In brackets: ratios to the floor.\n")
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
