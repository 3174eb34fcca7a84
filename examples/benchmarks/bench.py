#!/usr/bin/env python3
"""Measure mcp_lite against the least that asyncio can do, and against the official SDK.

    python3 examples/benchmarks/bench.py [--quick]

The servers of servers.py answer the same calls of the same tool, `echo`, over stdio:

    floor   a bare asyncio loop that reads lines, parses and writes JSON, and knows no protocol
    lite    mcp_lite
    sdk     the official SDK, for each interpreter in PEERS_PYTHON (separated by os.pathsep), or for
            this one if it can `import mcp`

Servers take turns in every round; the medians are compared. Quote the ratios of one run, never a
figure alone. Needs the standard library only; memory is read from /proc.
"""

import argparse
import json
import os
import pathlib
import select
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
IN_FLIGHT = 64
AIMS = {"cold start, ms": "at most 1.5", f"{IN_FLIGHT} in flight, calls/s": "at least 0.55"}
DEADLINE_SECONDS = 60  # for any one answer; nothing here waits longer

class Stdio:
    """A server process and the pipes to it; reads and writes block, which costs the least."""

    def __init__(self, command):
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.buffer = b""

    def write(self, *lines):
        self.process.stdin.write(b"".join(lines))
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
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        hello["clientInfo"] = {"name": "bench", "version": "0"}
        self.write(encode({"id": 0, "method": "initialize", "params": hello}))
        self.read()
        self.write(encode({"method": "notifications/initialized"}), call(1))
        while b'"hello"' not in self.read()[-1]:
            pass
        return (time.perf_counter() - self.began) * 1e3

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def encode(msg):
    return json.dumps({"jsonrpc": "2.0", **msg}).encode() + b"\n"


def call(req_id):
    params = {"name": "echo", "arguments": {"text": "hello"}}
    return encode({"id": req_id, "method": "tools/call", "params": params})


def resident_mb(pid):
    """Return the resident memory of a process, or nan where /proc does not exist."""
    if not os.path.exists("/proc/self/status"):
        return float("nan")
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def measure(command, calls):
    """Return the figures of one server, started anew."""
    server = Stdio(command)
    try:
        figures = {"cold start, ms": server.start(), "memory, MB": resident_mb(server.process.pid)}
        requests = [call(n) for n in range(10, 10 + calls)]
        began = time.perf_counter()
        for line in requests:
            server.write(line)
            server.read()
        figures["one at a time, calls/s"] = calls / (time.perf_counter() - began)
        requests = [call(n) for n in range(calls * 4)]
        began = time.perf_counter()
        server.write(*requests[:IN_FLIGHT])
        sent, answered = IN_FLIGHT, 0
        while answered < len(requests):
            count = len(server.read())
            answered += count
            server.write(*requests[sent : sent + count])
            sent += count
        figures[f"{IN_FLIGHT} in flight, calls/s"] = answered / (time.perf_counter() - began)
    finally:
        server.close()
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
        return [float(base), float(both), resident_mb(int(pid))]


def peers():
    """Return {name: command} of the servers to compare."""
    servers = str(pathlib.Path(__file__).resolve().parent / "servers.py")
    found = {name: [sys.executable, servers, name] for name in ("floor", "lite")}
    ask = "import mcp, importlib.metadata as m; print(m.version('mcp'))"
    for python in (os.environ.get("PEERS_PYTHON") or sys.executable).split(os.pathsep):
        said = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60)
        if said.returncode == 0:
            found[f"sdk {said.stdout.strip()}"] = [python, servers, "sdk"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round of 200 calls")
    rounds, calls = (1, 200) if parser.parse_args().quick else (5, 2000)

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a program is compiled once, not every time
    servers = peers()
    runs = {name: [] for name in servers}
    imports = []
    measure_import("import mcp_lite")
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        imports.append(measure_import("import mcp_lite") + measure_import("")[2:])
        for name, command in servers.items():
            runs[name].append(measure(command, calls))
    medians = {
        name: {key: statistics.median(run[key] for run in rows) for key in rows[0]}
        for name, rows in runs.items()
    }

    print(f"Python {sys.version.split()[0]}, {rounds} rounds of {calls} calls; ratios to the floor")
    print("| | " + " | ".join(servers) + " | aim for lite |")
    print("|---|" + "---|" * (len(servers) + 1))
    for key in medians["floor"]:
        figures = [medians[name][key] for name in servers]
        cells = [f"{figure:.1f} ({figure / figures[0]:.2f})" for figure in figures]
        print(f"| {key} | " + " | ".join(cells) + f" | {AIMS.get(key, '')} |")
    base, lite, memory, least = (statistics.median(column) for column in zip(*imports))
    idle = medians["lite"]["memory, MB"]
    print(
        f"\nimport mcp_lite: {lite - base:.1f} ms over the {base:.1f} ms of `import asyncio, json`"
        f" ({lite / base:.2f}; aim: at most 15 ms and 1.3)"
        f"\nmemory, MB: {least:.1f} after `import asyncio, json`, {memory:.1f} with mcp_lite,"
        f" {idle:.1f} as an idle server ({idle / least:.2f}; aim: at most 1.25)"
    )


if __name__ == "__main__":
    main()
