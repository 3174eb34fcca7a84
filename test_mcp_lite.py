"""Tests of mcp_lite.py, in the order of its sections: T5 tests section 5.

`python3 test_mcp_lite.py` runs them on all processors; its arguments are pytest's. If there is no
pytest, it makes .venv beside this file, with pytest and pytest-xdist. `python3 -m pytest` runs them
as well, one after another unless `-n` asks for more. What goes over the wire stands literally in
the test; every limit is tested at the limit and one past it; the name of a test is the sentence
that it protects.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import builtins
import collections
import concurrent.futures
import contextlib
import contextvars
import ctypes
import dataclasses
import datetime
import decimal
import doctest
import enum
import functools
import gc
import hashlib
import importlib.util
import inspect
import io
import itertools
import json
import logging
import math
import operator
import os
import pathlib
import random
import re
import select
import shlex
import shutil
import signal
import socket
import sqlite3
import ssl
import stat
import struct
import subprocess
import symtable
import sys
import textwrap
import threading
import time
import tokenize
import traceback
import types
import typing
import unittest.mock
import urllib.parse
import uuid
import weakref

HERE = pathlib.Path(__file__).resolve().parent
def run_by_itself(arguments):
    """Run these tests with the pytest at hand, else with one in .venv beside this file.

    That is made at the first need, which takes ten seconds and a package index within reach.
    """
    python = sys.executable
    if importlib.util.find_spec("pytest") is None:
        folder = HERE / ".venv"
        python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        has_pytest = [python, "-c", "import pytest, xdist"]
        if not os.path.exists(python) or subprocess.run(has_pytest, capture_output=True).returncode:
            print(f"pytest is not installed here: installing it in {folder}", flush=True)
            try:
                subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
                pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
                subprocess.run([*pip, "pytest", "pytest-xdist"], check=True)
            except subprocess.CalledProcessError:
                return "cannot install pytest: see above; or install it for this Python yourself"
    has_xdist = python != sys.executable or importlib.util.find_spec("xdist") is not None
    shared = ["-n", "auto"] if has_xdist else []
    try:
        return subprocess.run([python, "-m", "pytest", *shared, *arguments], cwd=HERE).returncode
    except KeyboardInterrupt:  # pytest has received it as well, and has reported
        return 130


if __name__ == "__main__":
    sys.exit(run_by_itself(sys.argv[1:]))

import pytest

import mcp_lite as m

########################
# T0. Tools
########################

pytest_plugins = [__name__]  # so that pytest finds the hooks below
LEGACY_DATES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN_DATES = ["2026-07-28"]
DATES = [*LEGACY_DATES, *MODERN_DATES]
V1, V2, V3, V4, V5 = DATES
META = "io.modelcontextprotocol/"
OF_EVERY_RESULT = ("resultType", "ttlMs", "cacheScope", "_meta")
NAMED_IN = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
            "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}  # fmt: skip
JSON_BOTH = "application/json, text/event-stream"
CHUNKS, TO_THE_END = -1, -2
newest_revisions = pytest.mark.parametrize("revision", [V4, V5])  # of the legacy and the modern era
both_eras = pytest.mark.parametrize("era", [V4, V5])
posix = pytest.mark.skipif(os.name == "nt", reason="POSIX has it, Windows has not")
WINE = os.name == "nt" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


def not_under_wine(reason):
    """Skip a test where Wine cannot do what Windows does, for this reason."""
    return pytest.mark.skipif(WINE, reason=f"Wine: {reason}")


def unix(printed):
    """Return what a program printed as text, with the line ends that it has elsewhere."""
    return printed.replace(b"\r\n", b"\n")
# Asyncio's debug mode is for run(): a child would log each step that takes 0.1 s, which on a busy
# machine is any.
DEBUG = bool(os.environ.get("PYTHONASYNCIODEBUG"))


@pytest.fixture(autouse=True, scope="session")
def environment():
    """Let children keep the bytecode of mcp_lite.py, and neither debug nor load certificates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.delenv("PYTHONASYNCIODEBUG", raising=False)
        patch.setenv("SSL_CERT_FILE", os.devnull)
        yield


def rng(name):
    """Return a random generator that gives every run, on every Python, the same sequence."""
    return random.Random(f"mcp_lite {name}")


def table(text):
    """Return the rows of a table: a line each, with bars between the columns, and # for remarks."""
    lines = (line.strip() for line in text.splitlines())
    return [re.split(r"\s+\|\s+", line) for line in lines if line and line[0] != "#"]


def cuttings(data):
    """Yield `data` in pieces, in every way that a network may deliver it.

    Whole; byte by byte; in two pieces, cut everywhere; in three, cut everywhere, if it is short; in
    seeded random pieces, some of them empty, since an empty read must not be taken for the end.
    """
    yield [data]
    if len(data) <= 100_000:
        yield [data[i : i + 1] for i in range(len(data))]
    if len(data) <= 2000:
        yield from ([data[:i], data[i:]] for i in range(1, len(data)))
    if len(data) <= 40:
        for i in range(1, len(data)):
            yield from ([data[:i], data[i:j], data[j:]] for j in range(i, len(data)))
    dice = rng(f"cuttings {len(data)}")
    for _ in range(20):
        cuts = sorted(dice.choices(range(len(data) + 1), k=dice.randint(1, 12)))
        yield [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]


def comparable(item):
    """Return something that is equal for equal items, also for classes without `==`."""
    if isinstance(item, Exception):
        return (type(item), str(item), getattr(item, "http_status", None))
    if type(item).__eq__ is object.__eq__ and hasattr(type(item), "__slots__"):
        return (type(item), [comparable(getattr(item, name)) for name in type(item).__slots__])
    return (type(item), item)


def merged(items):
    """Join adjacent pieces of bytes: the pieces of one body, however it was cut."""
    out = []
    for item in items:
        if isinstance(item, bytes) and out and isinstance(out[-1], bytes):
            out[-1] += item
        else:
            out.append(item)
    return out


def feed_pieces(decoder, pieces, eof):
    """Return (items, error): what a decoder makes of the pieces, and the ProtocolError or None."""
    items = []
    try:
        for piece in pieces:
            items += decoder.feed(piece)
        # The error that follows complete items is raised by the call after the one that gave them.
        items += decoder.feed(b"")
        if eof:
            items += decoder.feed(b"\n")
            items += decoder.feed(b"\n")
    except m.ProtocolError as exc:
        return items, exc
    return items, None


def feed_every_way(make_decoder, data, *, eof=False, exact=False):
    """Feed `data` in every cutting to a new decoder each; return the items, the same each time.

    Where the items of two cuttings differ only in how bytes are split, as the pieces of a body may
    be, adjacent pieces are joined, in what is returned too. `exact=True` forbids that.
    """
    runs = []
    for pieces in cuttings(data):
        items, error = feed_pieces(make_decoder(), pieces, eof)
        assert error is None, f"{error!r} for {pieces!r}"[:2000]
        runs.append((items, pieces))
    first = runs[0][0]
    if not exact and any(len(items) != len(first) for items, _ in runs):
        runs = [(merged(items), pieces) for items, pieces in runs]
        first = runs[0][0]
    expected = [comparable(item) for item in first]
    for items, pieces in runs:
        assert [comparable(item) for item in items] == expected, f"cut as {pieces!r}"[:2000]
    return first


def run_python(*words, input=None, timeout=60, **options):
    """Run Python with such arguments; return the completed process with what it printed."""
    stdin = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, timeout=timeout, **stdin, **options)


@contextlib.contextmanager
def started(command, **options):
    """Give a process that ends with this block at the latest, or after a minute.

    It and its children are killed: a test that fails says so at once, and none waits for ever.
    """

    def kill():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9) if os.name != "nt" else process.kill()

    with subprocess.Popen(command, start_new_session=True, **options) as process:
        watchdog = threading.Timer(60, kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            kill()


def wait_until(condition):
    """Wait until something outside of our control has come about."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.002)


def copy_mcp_lite(path):
    """Copy mcp_lite.py, and what Python has made of it: to compile it again would take long."""
    compiled = [pathlib.Path(importlib.util.cache_from_source(name)) for name in (m.__file__, path)]
    compiled[1].parent.mkdir(exist_ok=True)
    shutil.copy2(m.__file__, path)
    if compiled[0].exists():
        shutil.copy2(*compiled)


def open_descriptors():
    """Return {descriptor: what it is} of this process; nothing where /proc does not exist."""
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # the descriptor of this very listing
                found[int(fd)] = os.readlink(f"/proc/self/fd/{fd}")
    return found


def child_processes():
    """Return {pid: command line} of this process's children; nothing where /proc does not exist."""
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/children") as listing:
                for pid in map(int, listing.read().split()):
                    found[pid] = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return found


def lasting_threads():
    """Return the names of the threads that would keep this process from ending."""
    return {t.ident: t.name for t in threading.enumerate() if not t.daemon}


class Complaints(logging.Handler):
    """Collect what asyncio complains of: its log at ERROR, and its loop's exception handler."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts = []

    def emit(self, record):
        self.texts.append(self.format(record))

    def from_loop(self, loop, context):
        if context["message"] == "Error on transport creation for incoming connection":
            return  # in its debug mode alone, asyncio says that a peer does not speak TLS
        exc = context.get("exception")
        self.texts.append(f"{context['message']}: {exc!r} {context.get('future') or ''}")


async def within(coro, seconds):
    """Return the result of `coro`; fail after `seconds`, or if it leaves a task behind."""
    task = asyncio.ensure_future(coro)
    deadline = time.monotonic() + seconds
    while not task.done() and time.monotonic() < deadline:  # the loop's own clock may leap
        await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        stacks = io.StringIO()
        for other in asyncio.all_tasks() - {asyncio.current_task()}:
            other.print_stack(file=stacks)
        task.cancel()
        await asyncio.wait({task}, timeout=10)
        pytest.fail(f"not done after {seconds} s\n{stacks.getvalue()}")
    for _ in range(10):  # the last steps of tasks that were cancelled, of transports that close
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    handshakes = {t for t in left if t.get_coro().__name__ == "_accept_connection2"}  # asyncio's own, of TLS
    if handshakes:
        left -= (await asyncio.wait(handshakes, timeout=10))[0]
    if not task.cancelled() and task.exception() is None:  # otherwise that is the news
        assert not left, f"tasks left behind: {left}"
    return task.result()


@pytest.fixture(autouse=True, scope="class")
def forgotten_past():
    """Spare the collector, which `run` calls each time, what pytest and earlier tests have made."""
    gc.collect()
    gc.freeze()


# Its debug mode complains of callbacks that take 0.1 s; on a busy machine all do.
logging.getLogger("asyncio").addFilter(lambda record: not record.msg.startswith("Executing %s took"))


async def idle():
    """Let everything that can run now do so."""
    for _ in range(20):
        await asyncio.sleep(0)


async def arrived():
    """Let what was sent over loopback arrive, and all that it causes run.

    On POSIX it is there when it has been sent; the loop of Windows hears of it a little later.
    """
    for _ in range(5):
        await asyncio.sleep(0.02 if os.name == "nt" else 0)
        await idle()


async def until(condition, *, seconds=20):
    """Let the loop run until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0)


async def eventually(condition, *, seconds=20):
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never became true"
        await asyncio.sleep(0.0005)


def time_machine():
    """Return a function that sets the running loop's clock forward by so many seconds.

    So deadlines can be generous, and yet pass at once: but not before what is tested has begun.
    """
    loop, leaps = asyncio.get_running_loop(), []
    loop.time = lambda: time.monotonic() + sum(leaps)
    return leaps.append


def run(coro, *, seconds=60):
    """Run a coroutine in a loop of its own, in debug mode if that is asked for; return its result.

    Fails after `seconds`, and when it leaves a task, a file descriptor, a child process or a
    non-daemon thread behind, or makes asyncio complain (a task whose exception nobody looked at,
    say).
    """
    complaints = Complaints()
    before = (open_descriptors(), child_processes(), lasting_threads())

    async def main():
        asyncio.get_running_loop().set_exception_handler(complaints.from_loop)
        return await within(coro, seconds)

    log = logging.getLogger("asyncio")
    log.addHandler(complaints)
    try:
        result = asyncio.run(main(), debug=DEBUG)
        check_nothing_left(before)
        gc.collect()  # what was dropped without a look complains now, not in another test
    finally:
        log.removeHandler(complaints)
    assert not complaints.texts, "asyncio complained:\n" + "\n".join(complaints.texts)
    return result


def pytest_make_parametrize_id(val):
    """Shorten a long name: it becomes an environment variable, which Windows limits to 32 KB."""
    return ascii(val[:100]) + "..." if isinstance(val, (str, bytes)) and len(val) > 500 else None


def pytest_pyfunc_call(pyfuncitem):
    """Have a test that is `async` run by run(), inside each fixture that is an `async with`."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}

    async def test():
        async with contextlib.AsyncExitStack() as stack:
            for name, value in given.items():
                if isinstance(value, contextlib.AbstractAsyncContextManager):
                    given[name] = await stack.enter_async_context(value)
            await pyfuncitem.obj(**given)

    run(test())
    return True


def check_nothing_left(before):
    """Fail if there are descriptors, children or threads that were not there before."""
    deadline = time.monotonic() + 10  # a reaped child and a joined thread take a moment to vanish
    while True:
        now = (open_descriptors(), child_processes(), lasting_threads())
        new = [{k: v for k, v in b.items() if a.get(k) != v} for a, b in zip(before, now)]
        if not any(new):
            return
        if time.monotonic() > deadline:
            pytest.fail("left behind: descriptors {}, children {}, threads {}".format(*new))
        time.sleep(0.005)


def hello(revision=V4, req_id=0, **capabilities):
    return request_of(req_id, "initialize", protocolVersion=revision, capabilities=capabilities,
                      clientInfo={"name": "test", "version": "1"})  # fmt: skip


def request_of(req_id, method, /, **params):
    return {"jsonrpc": "2.0", "id": req_id, "method": method, **({"params": params} if params else {})}


def notification(method, /, **params):
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


INITIALIZED = notification("notifications/initialized")
PING = request_of(1, "ping")


def result_of(asked, **result):
    """Return the response to a request."""
    return {"jsonrpc": "2.0", "id": asked["id"], "result": result}


class Lines(m.Transport):
    """The channel to a server on which this test says what it likes, and reads when it likes."""

    name = "the raw client"

    def __init__(self, grace=0):
        self.grace, self.inbox, self.said = grace, asyncio.Queue(), asyncio.Queue()
        self.reading = asyncio.Event()  # whether the server's writes are taken
        self.reading.set()
        self.closed = False

    def put(self, *lines):
        """Say lines: messages, or bytes and texts as they stand."""
        for line in lines:
            line = line if isinstance(line, (bytes, str)) else json.dumps(line)
            self.inbox.put_nowait([line.encode() if isinstance(line, str) else line])

    def call(self, req_id, name, **arguments):
        self.put(request_of(req_id, "tools/call", name=name, arguments=arguments))

    async def read(self):
        await asyncio.sleep(0)  # as any channel does now and then
        return await self.inbox.get()

    async def write(self, msg):
        if self.closed:
            raise m.ConnectionClosed("closed")
        await self.reading.wait()
        self.said.put_nowait(json.loads(json.dumps(msg, allow_nan=False)))

    async def take(self):
        """Return the next message of the server."""
        return await asyncio.wait_for(self.said.get(), 20)

    async def answers(self):
        """Return all that is said before the answer to a ping that is asked now."""
        self.put(request_of("enough", "ping"))
        found = []
        while not found or found[-1].get("id") != "enough":
            found.append(await self.take())
        return found[:-1]

    async def close(self):
        self.closed = True
        self.reading.set()
        self.inbox.put_nowait([])


@contextlib.asynccontextmanager
async def lines_to(app, revision=V4, grace=0, **capabilities):
    """Give Lines to a server, after the handshake of a revision, if any."""
    lines = Lines(grace)
    serving = asyncio.ensure_future(app.serve(lines))
    try:
        if revision is not None:
            lines.put(hello(revision, "hello", **capabilities), INITIALIZED)
            assert "result" in await lines.take()
        yield lines
    finally:
        await lines.close()
        await serving


def modern(req_id, method, params=None, *, capabilities=None, **meta):
    """Return a request of the newest revision, and the headers that repeat it."""
    own = {META + "protocolVersion": V5, META + "clientCapabilities": capabilities or {}, **meta}
    msg = {"jsonrpc": "2.0", "id": req_id, "method": method, "params": {**(params or {}), "_meta": own}}
    return msg, mirrored(msg)


def mirrored(msg):
    """Return the headers that repeat a request of the newest revision."""
    name = (msg.get("params") or {}).get(NAMED_IN.get(msg.get("method")))
    fields = {"mcp_protocol_version": V5, "mcp_method": msg.get("method"), "mcp_name": name}
    return {key: value for key, value in fields.items() if value}


class Wire:
    """One end of a connection: it says exactly what it is told, and reads HTTP/1.1 by itself."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.head, self.left, self.sent = None, 0, b""

    @classmethod
    async def open(cls, where, **options):
        if "://" not in where:
            return cls(*await asyncio.open_unix_connection(where, **options))
        url = urllib.parse.urlsplit(where)
        return cls(*await asyncio.open_connection(url.hostname, url.port, **options))

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        self.drop()
        await asyncio.sleep(0)

    def send(self, data):
        self.sent = data
        self.writer.write(data)

    def end(self, data):
        """Send the last bytes, and close in good order."""
        self.send(data)
        self.writer.close()

    async def send_pieces(self, pieces):
        for piece in pieces:
            self.send(piece)
            for _ in range(2 if len(pieces) > 1 else 0):
                await asyncio.sleep(0)

    def drop(self):
        with contextlib.suppress(AttributeError):  # asyncio: what was closed, and has written its rest since
            self.writer.transport.abort()

    close = drop

    def reset(self):
        """Close so that the other end sees a reset, not an orderly end."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.drop()

    async def read_head(self, method="POST"):
        """Read the head of a request, or of the answer to `method`."""
        block = await self.reader.readuntil(b"\r\n\r\n")
        line, *lines = block[:-4].decode("latin-1").split("\r\n")
        pairs = [text.partition(":") for text in lines]
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        first, second, *_ = line.split(" ")
        status = int(second) if line.startswith("HTTP/") else 0
        path = second.partition("?")[0]
        self.head = types.SimpleNamespace(line=line, lines=lines, headers=headers, status=status,
                                          method=first, target=second, path=path)  # fmt: skip
        length = headers.get("content-length")
        if status and (method == "HEAD" or status < 200 or status in (204, 304)):
            self.left = 0
        elif headers.get("transfer-encoding") == "chunked":
            self.left = CHUNKS
        else:
            self.left = int(length) if length else TO_THE_END if status else 0
        return self.head

    async def piece(self):
        """Read the next piece of a body; b"" at its end."""
        if self.left == CHUNKS:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            data = (await self.reader.readexactly(size + 2))[:-2]
            self.left = CHUNKS if size else 0
            return data
        if not self.left:
            return b""
        data = await self.reader.read(self.left if self.left > 0 else 65536)
        if self.left > 0:
            assert data, "the body is cut short"
            self.left -= len(data)
        return data

    async def body(self):
        data = b""
        while piece := await self.piece():
            data += piece
        return data

    async def answer(self, method="POST"):
        """Read a whole answer: (status, headers, body)."""
        head = await self.read_head(method)
        return head.status, head.headers, await self.body()

    async def request(self):
        """Read a whole request: (head, body)."""
        return await self.read_head(), await self.body()

    async def everything(self):
        """Read until the other end closes, or resets."""
        data = b""
        with contextlib.suppress(ConnectionError):
            while piece := await self.reader.read(65536):
                data += piece
        return data


@contextlib.asynccontextmanager
async def scripted(serve, **options):
    """Run `serve(wire)` for each connection to a port; gives the URL of its root."""
    tasks = set()

    async def run_one(reader, writer):
        tasks.add(asyncio.current_task())
        wire = Wire(reader, writer)
        try:
            with contextlib.suppress(ConnectionError, EOFError, AttributeError, asyncio.CancelledError):
                await serve(wire)
        finally:
            wire.drop()

    server = await asyncio.start_server(run_one, "127.0.0.1", 0, limit=1 << 22, **options)
    scheme = "https" if options else "http"
    try:
        yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class Events:
    """The events of an answer, as they come."""

    def __init__(self, answer):
        self.answer, self.head, self.rest = answer, answer.head, b""

    async def block(self):
        """The text of the next event or comment; None at the end."""
        while b"\n\n" not in self.rest:
            data = await self.answer.piece()
            if not data:
                return None
            self.rest += data
        text, self.rest = self.rest.split(b"\n\n", 1)
        return text.decode()

    async def next(self):
        """The next event; None at the end."""
        while (text := await self.block()) is not None:
            lines = [line.partition(":")[::2] for line in text.split("\n")]
            found = {name: value[value.startswith(" ") :] for name, value in lines}
            if "data" in found or "retry" in found:
                return types.SimpleNamespace(**{"data": "", "event": "message", "id": "", "retry": "", **found})
        return None

    async def message(self):
        """The next message; None at the end. Events without data, which prime, are passed over."""
        event = await self.next()
        while event is not None and not event.data:
            event = await self.next()
        return event and json.loads(event.data)

    async def messages(self):
        """All messages to the end."""
        out = []
        while (msg := await self.message()) is not None:
            out.append(msg)
        return out

    def drop(self):
        self.answer.drop()


class Caller:
    """A client without manners: sends over HTTP exactly what it is told, each on its own connection."""

    def __init__(self, url, revision=V4, uds=None):
        self.url, self.revision, self.uds = url, revision, uds
        self.headers, self.wires = {}, []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        for wire in self.wires:
            wire.drop()
        await asyncio.sleep(0)

    async def begin(self, method, body=b"", target=None, version="1.1", **headers):
        """Send a request; return its wire."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        fields = {"host": "localhost", "accept": JSON_BOTH, **self.headers}
        if body:
            fields.update({"content-type": "application/json", "content-length": len(body)})
        fields.update((name.replace("_", "-"), value) for name, value in headers.items())
        lines = [f"{name}: {value}\r\n" for name, value in fields.items() if value is not None]
        where = urllib.parse.urlsplit(self.url)
        target = target or (where.path or "/") + f"?{where.query}" * bool(where.query)
        wire = await Wire.open(self.uds or self.url, limit=1 << 24)
        self.wires.append(wire)
        wire.send(f"{method} {target} HTTP/{version}\r\n{''.join(lines)}\r\n".encode() + body)
        return wire

    async def send(self, method, body=b"", target=None, **headers):
        """Send a request and return the answer when its head is there."""
        wire = await self.begin(method, body, target, **headers)
        await wire.read_head(method)
        return wire

    async def ask(self, method, body=b"", target=None, **headers):
        """Send a request and return (status, headers, JSON or text of the whole answer)."""
        answer = await self.send(method, body, target, **headers)
        data = await answer.body()
        answer.drop()
        kind = answer.head.headers.get("content-type", "")
        if kind == "application/json" and data:
            data = json.loads(data)
        return answer.head.status, answer.head.headers, data

    async def post(self, msg, **headers):
        return await self.ask("POST", msg, **headers)

    async def status(self, method, body=b"", target=None, **headers):
        return (await self.ask(method, body, target, **headers))[0]

    async def events(self, method, msg=b"", target=None, **headers):
        answer = await self.send(method, msg, target, **headers)
        assert answer.head.headers.get("content-type") == "text/event-stream", answer.head
        return Events(answer)

    async def open(self, **capabilities):
        """Shake hands; later requests carry session and revision."""
        status, headers, answer = await self.post(hello(self.revision, **capabilities))
        assert status == 200 and answer["result"]["protocolVersion"] == self.revision
        self.headers["mcp-session-id"] = headers["mcp-session-id"]
        if self.revision >= V3:
            self.headers["mcp-protocol-version"] = self.revision
        assert await self.status("POST", INITIALIZED) == 202
        return self


async def ask(url, method="GET", body=b"", **headers):
    """Send one request to the host that its URL names; return (status, headers, JSON or bytes)."""
    async with Caller(url) as caller:
        return await caller.ask(method, body, **{"host": urllib.parse.urlsplit(url).netloc, **headers})


class ASGI:
    """An ASGI server in a function: one request, fed and read in process."""

    def __init__(self, app, method="POST", path="/mcp", body=b"", *, root="", pieces=1, whole=True, hear=None, **headers):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        fields = {"host": "localhost", "accept": JSON_BOTH, **headers}
        if body:
            fields.setdefault("content_type", "application/json")
        self.scope = {
            "type": "http", "method": method, "path": path, "root_path": root,
            "query_string": b"", "client": ("127.0.0.1", 5),
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in fields.items() if v],
        }  # fmt: skip
        step = -(-len(body) // pieces) or 1
        self.todo, self.whole = [body[i : i + step] for i in range(0, len(body), step)] or [b""], whole
        self.hear = hear  # is called with this after each event
        self.gone = asyncio.get_running_loop().create_future()
        self.done = False
        self.status, self.headers, self.body = None, {}, b""
        self.task = asyncio.ensure_future(app(self.scope, self.receive, self.send))

    async def receive(self):
        if self.todo:
            body = self.todo.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(self.todo) or not self.whole}
        await asyncio.wait([self.gone])
        return {"type": "http.disconnect"}

    async def send(self, message):
        if self.gone.done():
            raise OSError("the client is gone")
        if message["type"] == "http.response.start":
            assert self.status is None
            self.status = message["status"]
            self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            assert self.status is not None and not self.done
            self.body += message["body"]
            self.done = not message.get("more_body")
        if self.hear is not None:
            self.hear(self)

    def disconnect(self):
        self.gone.set_result(None)

    async def answer(self):
        """Wait until the application returns: (status, headers, JSON or bytes)."""
        await self.task
        assert self.done or self.gone.done()
        kind = self.headers.get("content-type")
        body = json.loads(self.body) if kind == "application/json" else self.body
        return self.status, self.headers, body


class TestTools:
    """The net has no holes: what the other tests rely on fails when it should."""

    def test_run_notices_a_task_that_is_left_behind(self):
        async def leave():
            self.task = asyncio.ensure_future(asyncio.sleep(60))

        with pytest.raises(AssertionError, match="tasks left behind"):
            run(leave())

    def test_run_notices_an_exception_that_nobody_looked_at(self):
        async def fail():
            raise ValueError("unseen")

        async def drop():
            asyncio.ensure_future(fail())  # noqa: RUF006 -- dropping it is the point

        with pytest.raises(AssertionError, match="never retrieved: ValueError"):
            run(drop())

    def test_run_gives_up_at_its_deadline(self):
        with pytest.raises(pytest.fail.Exception, match="not done after"):
            run(asyncio.sleep(60), seconds=0.01)

    def test_a_process_ends_with_the_test_that_fails_beside_it(self):
        before = time.monotonic()
        with pytest.raises(AssertionError, match="at once"):
            with started([sys.executable, "-c", "import time; time.sleep(3600)"]) as process:
                raise AssertionError("at once")
        assert process.returncode and time.monotonic() - before < 20

    def test_a_decoder_that_depends_on_the_cut_is_noticed(self):
        class Broken:
            def feed(self, data):
                return [data] if data else []

        with pytest.raises(AssertionError, match="cut as"):
            feed_every_way(Broken, b"one\ntwo\n", exact=True)


########################
# T0b. Conversations
########################
#
# A conversation is a text: a promise in plain words, the revisions that make it, and what goes over
# the wire. This one is a test as it stands:
#
#     A tool is called by its name.
#     [all] spec: server/tools#calling-tools
#         --> 1 tools/call {"name": "echo", "arguments": {"text": "hi"}}
#         <-- 1 {"content": [{"type": "text", "text": "hi"}], ...}
#
# To add one for a method of a server:
#  1. Find the class that tests its section, and in it `test_... = conversations("""`. Append the block
#     to that text, after an empty line.
#  2. The server is demo() below, unless conversations(text, make_server) names another function. A
#     tool that is lacking goes there; it is written like the others, since its text is started as a
#     program, too.
#  3. `python3 test_mcp_lite.py -k "TestTheClass and word"`, with a word of the promise, plays it: in
#     memory, on stdio, HTTP and ASGI, for the newest legacy and the newest modern revision that it
#     names; in memory for the oldest, too. To see what a server really sends, write `<-- 1 {}`: the
#     failure begins with the number of this line, and shows all that went over the wire before it.
#
# The line below the promise: [all], [legacy], [modern], or a part of them, [legacy >= 2025-06-18] or
# [= 2025-11-25]. Then, as needed and in any order:
#     spec: a page#section      what demands it; without one the promise is the library's own
#     doors memory stdio        only these of memory, stdio, http and asgi
#     capabilities {...}        what the client declares
#     bare                      no handshake and no _meta of the test's own; else the test adds both
#
# The lines of a conversation; one that is indented further continues the one before:
#     --> 1 METHOD {params}     the client sends a request; without the 1 it is a notification
#     --> 1 {result}            the client responds to the request 1; also --> 1 error CODE "message"
#     --> {...}, [...], 'text'  a message, a batch, or a line that is not a message, as it stands
#     <-- ...                   the server sends, in the same forms
#     open                      ends what waits on gate(), such as the tool `wait`
#     cut; again                ends the connection; makes a new one
#     later 5 s; quiet          moves the loop's clock; waits until nothing is under way
#
# What the server sends is compared with a pattern. `...` is any value or, as the last member of an
# object or a list, all the others; ?name is any value, and the same value where it stands again. An
# error's message contains the text after its code, and may be followed by its data. Every message
# must be written: one more, or another order, fails. Announcements have no fixed place, and over HTTP
# the order between requests is free.
# Of what each modern result has (OF_EVERY_RESULT), only what the pattern names is compared.
#
# client_conversations() turns it round: a Client `c` and a server that sends what is written.
#     >>> c.call("echo", {"text": "hi"})    the program calls the client, in Python
#     --> ?1 tools/call {...}               compared with what the client sends
#     <-- ?1 {"content": []}                sent to the client
#     "hi"   or   RemoteError: no such      what the call returns (JSON, or its repr), or raises


def modern_call(req_id, tool, arguments=None, **options):
    return modern(req_id, "tools/call", {"name": tool, "arguments": arguments or {}}, **options)


def demo():
    """Return a server with one of everything. Its text also runs in a process of its own."""
    import asyncio
    import typing

    import mcp_lite as m

    app = m.Server("demo", "1.0", instructions="Try everything.")
    gates = []

    def gate():  # before Python 3.10 it belongs to the loop in which it is made
        if not gates:
            gates.append(asyncio.Event())
        return gates[0]

    app.gate = gate

    @app.on("notifications/open")
    async def open_gate(params):
        gate().set()

    @app.tool
    def add(a: int, b: int = 0) -> int:
        """Add two numbers."""
        return a + b

    @app.tool
    async def echo(text: str) -> str:
        return text

    @app.tool(structured=False)
    async def wait() -> str:
        await gate().wait()
        return "opened"

    @app.tool(structured=False)
    async def insist() -> str:
        try:
            await gate().wait()
        except asyncio.CancelledError:
            pass
        return "done all the same"

    @app.tool(structured=False)
    async def crash(text: str) -> str:
        raise ValueError(text)

    @app.tool(structured=False)
    async def fail(text: str) -> str:
        raise m.ToolError(text)

    @app.tool(structured=False)
    async def refuse(code: int) -> str:
        raise m.RPCError(code, "refused", {"code": code})

    @app.tool(structured=False)
    async def progress(n: int, ctx: m.Context) -> str:
        for step in range(n):
            await ctx.report_progress(step + 1, n, f"step {step + 1}")
        return "done"

    @app.tool(structured=False)
    async def say(level: str, text: str, ctx: m.Context) -> str:
        await ctx.log(level, text)
        return "said"

    @app.tool(structured=False)
    async def ask(text: str, ctx: m.Context) -> str:
        answer = await ctx.elicit(text, bool)
        return f"{answer.action} {answer.data}"

    @app.tool(structured=False)
    async def choose(text: str, ctx: m.Context) -> str:
        answer = await ctx.elicit(text, typing.Literal["red", "blue"])
        return f"{answer.action} {answer.data}"

    @app.tool(structured=False)
    async def model(text: str, ctx: m.Context) -> str:
        answer = await ctx.sample(text, max_tokens=10)
        return answer["content"]["text"]

    @app.tool(structured=False)
    async def folders(ctx: m.Context) -> str:
        return " ".join(root["uri"] for root in await ctx.roots())

    @app.tool(structured=False)
    async def image():
        return m.Image(b"PNG", format="png")

    @app.tool
    async def record() -> typing.Dict[str, int]:
        return {"x": 1}

    @app.tool(structured=False)
    async def change() -> str:
        app.add_tool(lambda: "new", name="new")
        return "changed"

    @app.tool(structured=False)
    async def touch(uri: str) -> str:
        app.resource_updated(uri)
        return "touched"

    app.add_resource("note://static", "a note", name="static")

    @app.resource("note://{name}", name="note")
    def note(name: str) -> str:
        return f"note of {name}"

    @app.prompt
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Greet {name}."

    @app.complete("greet", "name")
    def names(value: str, arguments: dict) -> list:
        return [name for name in ("Ann", "Anton", "Bob") if name.startswith(value)]

    return app


@pytest.fixture
def lines():
    return lines_to(demo())


def pattern(text):
    """Return the JSON of `text`, where `...` may stand for anything and ?name for a value."""

    def plain(found):
        word, after = found[0], text[found.end() :].lstrip()
        if word.startswith('"'):
            return word
        before = text[: found.start()].rstrip()
        last = word == "..." and after.startswith("}") and before[-1:] in "{,"
        return '"...": 0' if last else json.dumps(word)

    return json.loads(re.sub(r'"(?:[^"\\]|\\.)*"|\.\.\.|\?\w+', plain, text))


def matches(wanted, value, names):
    """Tell whether a value is as the pattern says; bind its names."""
    if wanted == "...":
        return True
    if isinstance(wanted, str) and re.fullmatch(r"\?\w+", wanted):
        return names.setdefault(wanted, value) == value
    if isinstance(wanted, dict) and isinstance(value, dict):
        rest = dict(value)  # of a key ?name is known what it holds; it may have been bound
        for key in sorted(wanted.keys() - {"..."}, key=lambda key: key.startswith("?")):
            ours = [names[key]] if key in names else [key] if key[:1] != "?" else list(rest)
            found = [k for k in ours if k in rest and matches(wanted[key], rest[k], names)]
            if not found:
                return False
            del rest[found[0]]
            if key.startswith("?"):
                names[key] = found[0]
        return not rest or "..." in wanted
    if isinstance(wanted, list) and isinstance(value, list):
        if wanted and wanted[-1] == "...":
            wanted, value = wanted[:-1], value[: len(wanted) - 1]
        return len(wanted) == len(value) and all(map(matches, wanted, value, [names] * len(value)))
    return json.dumps(wanted, sort_keys=True) == json.dumps(value, sort_keys=True)


def filled(value, names):
    """Return a value with its ?names replaced by what they stand for."""
    if isinstance(value, dict):
        return {names.get(key, key): filled(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def spelled(text):
    """Return the message, the batch, or the line (a str) that stands in a conversation."""
    if text[0] in "{[":
        return pattern(text)
    if text[0] == "'":
        return ast.literal_eval(text)
    word, _, rest = text.partition(" ")
    msg = {"jsonrpc": "2.0"}
    if "/" not in word and word not in ("ping", "initialize"):
        msg["id"] = pattern(word)
        word, _, rest = rest.partition(" ")
    if word == "error":
        code, _, rest = rest.partition(" ")
        message, end = json.JSONDecoder().raw_decode(rest or '""')
        msg["error"] = {"code": int(code), "message": message}
        if rest[end:].strip():
            msg["error"]["data"] = pattern(rest[end:])
    elif word == "...":  # a result or an error
        msg["..."] = 0
    elif word[:1] == "{":
        msg["result"] = pattern(f"{word} {rest}")
    else:
        msg["method"] = word
        if rest.strip():
            msg["params"] = pattern(rest)
    return msg


def said_as(wanted, msg, names, modern=False):
    """Tell whether a message is the one that a line of a conversation describes."""
    names_then = dict(names)
    if isinstance(wanted, dict) and isinstance(msg, dict):
        wanted, msg = dict(wanted), dict(msg)
        for kind in ("result", "params"):
            if isinstance(msg.get(kind), dict) and isinstance(wanted.get(kind, {}), dict):
                of_all = OF_EVERY_RESULT if modern and kind == "result" else ("_meta",)
                spared = {*of_all} - wanted.get(kind, {}).keys()
                if msg[kind].get("resultType", "complete") != "complete":
                    spared.discard("resultType")
                msg[kind] = {k: v for k, v in msg[kind].items() if k not in spared}
                if kind not in wanted and not msg[kind]:
                    del msg[kind]
        if "error" in wanted and "error" in msg:
            error, got = dict(wanted["error"]), dict(msg["error"])
            if error["message"] in got["message"]:
                error["message"] = got["message"]
            error.setdefault("data", got.get("data"))
            msg["error"] = {"data": None, **got}
            wanted["error"] = error
    if isinstance(wanted, list) and isinstance(msg, list):  # the answers of a batch, in any order
        left = list(msg)
        for one in wanted:
            fits = [each for each in left if matches(one, each, names_then)]
            left = [each for each in left if each not in fits[:1]] if fits else [None]
        fits = not left
    else:
        fits = matches(wanted, msg, names_then)
    if fits:
        names.update(names_then)
        return True
    return False


def is_response_to(wanted, msg, names):
    """Tell whether a message has the id of the response that a line describes."""
    if not (isinstance(wanted, dict) and isinstance(msg, dict)) or "method" in wanted or "method" in msg:
        return False
    return "id" in msg and msg["id"] == names.get(wanted.get("id"), wanted.get("id"))


def is_news(msg):
    """Tell whether a message is an announcement, which may come before an answer or after it."""
    method = msg.get("method", "") if isinstance(msg, dict) else ""
    return method.endswith(("/list_changed", "/resources/updated"))


class Conversation(typing.NamedTuple):
    promise: str
    revisions: list
    options: dict  # capabilities, doors, bare, unpinned (a client may choose the revision)
    lines: list


class Line(str):
    """A line of a conversation, and its number in this file."""

    number = 0


def fail_at(line, problem, wire):
    """Fail at a line of a conversation; show what went over the wire before it."""
    pytest.fail(f"{__file__}:{line.number}: {problem}\n{wire}\n! {line}", pytrace=False)


def blocks_of(text):
    """Yield the conversations of a text, each with the number of its first line in this file."""
    source = pathlib.Path(__file__).read_text(encoding="utf-8")
    head = "\n".join(text.strip().splitlines()[:2])  # further down, escapes may stand in the source
    before = source.partition(head)[0].count("\n") + 1 - text.partition(head)[0].count("\n")
    for block in re.finditer(r"(?:.*\S.*\n?)+", text):
        yield block[0], before + text[: block.start()].count("\n")


def read_conversation(block, number=1):
    """Return the Conversation of a block of text, which begins at a line of this file."""
    rows = block.splitlines()
    at = next(i for i, row in enumerate(rows) if row.startswith("["))
    which, rest = re.match(r"\[(.*?)\](.*)", rows[at]).groups()
    chosen = {"legacy": LEGACY_DATES, "modern": MODERN_DATES}.get(which.split()[0], DATES)
    for sign, date in re.findall(r"([<>]?=?)\s*(\d{4}-\d\d-\d\d)", which):
        keeps = {">=": operator.ge, "<=": operator.le}.get(sign, operator.eq)
        chosen = [rev for rev in chosen if keeps(rev, date)]
    options = {"bare": " bare" in rest, "unpinned": " unpinned" in rest}
    if " doors " in rest:
        options["doors"] = re.findall(r"memory|stdio|http|asgi", rest.partition(" doors ")[2])
    if " capabilities {" in rest:
        text = rest.partition(" capabilities ")[2].strip()
        options["capabilities"] = json.JSONDecoder().raw_decode(text)[0]
    lines = []  # a line that is indented further goes on with the one before
    for i, row in enumerate(rows[at + 1 :], at + 1):
        if row.startswith(" " * 6) and lines:
            text = Line(f"{lines[-1]} {row.strip()}")
            text.number = lines.pop().number
        else:
            text = Line(row.strip())
            text.number = number + i
        lines.append(text)
    return Conversation(" ".join(rows[:at]), chosen, options, lines)


class Door:
    """A way into a server for the messages of a conversation; what the server says is in `inbox`."""

    ordered = True  # what the server says comes on one way

    def __init__(self, make_server, revision, options):
        self.make_server, self.revision, self.options = make_server, revision, options
        self.modern = revision in MODERN_DATES
        self.inbox, self.transcript = asyncio.Queue(), []
        self.backlog = []

    async def open(self):
        """Connect, and shake hands where the revision has that."""
        await self.connect()
        if not self.modern and not self.options["bare"]:
            await self.say(hello(self.revision, "hello", **self.options.get("capabilities", {})))
            answer = await self.next()
            assert answer["result"]["protocolVersion"] == self.revision, answer
            await self.say(INITIALIZED)
            await self.greeted()
        self.transcript.clear()

    async def greeted(self):
        pass

    async def open_gate(self):
        await self.send(notification("notifications/open"))

    async def say(self, msg):
        """Send what the client says, in the words of the revision."""
        if self.modern and not self.options["bare"] and isinstance(msg, dict) and "method" in msg:
            own = {
                META + "protocolVersion": self.revision,
                META + "clientInfo": {"name": "t", "version": "1"},
                META + "clientCapabilities": self.options.get("capabilities", {}),
            }
            params = msg.get("params", {})
            if "id" in msg:
                params = {**params, "_meta": {**own, **params.get("_meta", {})}}
                msg = {**msg, "params": params}
        self.transcript.append(f"--> {msg if isinstance(msg, str) else json.dumps(msg)}")
        await self.send(msg)

    def put(self, msg):
        """Take what the server says."""
        self.transcript.append(f"<-- {json.dumps(msg)}")
        self.inbox.put_nowait(msg)

    async def next(self):
        try:
            return await asyncio.wait_for(self.inbox.get(), 15)
        except asyncio.TimeoutError:
            pytest.fail("nothing more is said\n" + self.wire())

    async def expect(self, line, names):
        """Take the message that a line describes: over one way the next, else any."""
        wanted = spelled(line[4:])
        while True:
            for i, msg in enumerate(self.backlog):
                if said_as(wanted, msg, names, self.modern):
                    del self.backlog[i]
                    return
                in_turn = self.ordered and not (is_news(msg) or is_news(wanted))
                if in_turn or is_response_to(wanted, msg, names):
                    fail_at(line, "the server says something else", self.wire())
            try:
                self.backlog.append(await asyncio.wait_for(self.inbox.get(), 15))
            except asyncio.TimeoutError:
                fail_at(line, "the server does not say this", self.wire())

    async def finish(self, line):
        """Check that nothing was said that is not written, up to the last line."""
        if self.ordered and not self.options["bare"]:
            method = "server/discover" if self.modern else "ping"
            await self.say(request_of("the end", method))
            while not self.backlog or self.backlog[-1].get("id") != "the end":
                self.backlog.append(await self.next())
            self.backlog.pop()
        await idle()
        while not self.inbox.empty():
            self.backlog.append(self.inbox.get_nowait())
        if self.backlog:
            fail_at(line, "the server says more than is written", self.wire())

    def wire(self):
        return "\n".join(self.transcript)


class MemoryDoor(Door):
    """The two ends of a channel in memory."""

    async def connect(self):
        if not hasattr(self, "app"):
            self.app = self.make_server()
        self.end, self.theirs = m.memory_transports()
        self.theirs.grace = 0
        self.serving = asyncio.ensure_future(self.app.serve(self.theirs))
        self.reading = asyncio.ensure_future(self.read())

    async def read(self):
        while items := await self.end.read():
            for item in items:
                said = json.loads(item)
                for msg in said if isinstance(said, list) and self.options.get("split") else [said]:
                    self.put(msg)

    async def send(self, msg):
        await self.end.write(msg)

    async def close(self):
        await self.end.close()
        await self.serving
        await self.reading


class StdioDoor(Door):
    """A process of the server's own: its standard streams."""

    async def connect(self):
        source = textwrap.dedent(inspect.getsource(self.make_server))
        code = "from __future__ import annotations\nimport asyncio, typing, sys\nimport mcp_lite as m\n"
        code += f"{source}\n{self.make_server.__name__}().run()"
        self.process = started([sys.executable, "-c", code], stdin=-1, stdout=-1, cwd=HERE)
        self.child = self.process.__enter__()
        self.reading = asyncio.ensure_future(self.read())

    async def read(self):
        while line := await asyncio.to_thread(self.child.stdout.readline):
            self.put(json.loads(line))

    async def send(self, msg):
        data = (msg if isinstance(msg, str) else json.dumps(msg)).encode() + b"\n"
        self.child.stdin.write(data)
        self.child.stdin.flush()

    async def close(self):
        self.child.stdin.close()
        await asyncio.wait([self.reading], timeout=15)
        await asyncio.to_thread(self.process.__exit__, None, None, None)
        await self.reading


class WebDoor(Door):
    """Streamable HTTP: a POST for each message, and the stream of a session."""

    ordered = False
    session = None

    def headers(self, msg):
        if self.modern:
            return mirrored(msg) if isinstance(msg, dict) else {}
        return {"mcp_session_id": self.session, "mcp_protocol_version": self.revision} if self.session else {}

    async def connect(self):
        if not hasattr(self, "app"):
            self.app = self.make_server()
            await self.listen()
        self.running = {}  # the requests whose answers are being read: {task: id}

    async def open_gate(self):
        self.app.gate().set()

    async def greeted(self):
        if self.session:
            begun = asyncio.Event()
            self.start(self.exchange("GET", self.headers({}), b"", begun), None)
            await begun.wait()

    def start(self, work, req_id):
        task = asyncio.ensure_future(work)
        self.running[task] = req_id
        task.add_done_callback(lambda task: self.running.pop(task))
        return task

    async def send(self, msg):
        if self.modern and isinstance(msg, dict) and msg.get("method") == "notifications/cancelled":
            # spec: basic/transports/streamable-http: there the end of the response says it
            for task, req_id in list(self.running.items()):
                if req_id == msg["params"]["requestId"]:
                    task.cancel()
                    await asyncio.wait([task])
            return
        begun = asyncio.Event()
        data = (msg if isinstance(msg, str) else json.dumps(msg)).encode()
        req_id = msg.get("id") if isinstance(msg, dict) else None
        work = self.exchange("POST", self.headers(msg), data, begun)
        task = self.start(work, req_id)
        if not isinstance(msg, dict) or "id" not in msg or "method" not in msg:
            await asyncio.wait([task])  # it has been taken

    def take(self, head, data):
        """Take a piece of a response: JSON as a whole, or events."""
        if head.get("content-type") == "application/json" and data:
            said = json.loads(data)
            self.session = self.session or head.get("mcp-session-id")
            for msg in said if isinstance(said, list) and self.options.get("split") else [said]:
                self.put(msg)
            return b""
        *blocks, rest = data.split(b"\n\n")
        for block in blocks:
            text = b"\n".join(x[6:] for x in block.split(b"\n") if x.startswith(b"data: "))
            if text:
                self.put(json.loads(text))
        return rest

    async def finish(self, line):
        answered = [task for task, req_id in self.running.items() if req_id is not None]
        if answered:  # a response that is not written may still be on its way
            await asyncio.wait(answered, timeout=15)
        await super().finish(line)

    async def close(self):
        while self.running:
            for task in list(self.running):
                task.cancel()
            await asyncio.wait(list(self.running))
        await self.stop()


class HTTPDoor(WebDoor):
    """Our own listener, by way of a socket."""

    async def listen(self):
        self.server = self.app.http(port=0)
        self.url = (await self.server.__aenter__()).url

    async def stop(self):
        await self.server.__aexit__(None, None, None)

    async def exchange(self, method, headers, body, begun):
        try:
            async with Caller(self.url) as caller:
                answer = await caller.send(method, body, **headers)
                begun.set()
                if answer.head.headers.get("content-type") != "text/event-stream":
                    self.take(answer.head.headers, await answer.body())
                    return
                events = Events(answer)
                while (msg := await events.message()) is not None:
                    self.put(msg)
        finally:
            begun.set()


class ASGIDoor(WebDoor):
    """An ASGI server, which is this test."""

    async def listen(self):
        self.asgi = self.app.asgi

    async def stop(self):
        await self.asgi.close()

    async def exchange(self, method, headers, body, begun):
        def hear(asked):
            begun.set()
            if asked.done or asked.headers.get("content-type") == "text/event-stream":
                asked.body = self.take(asked.headers, asked.body)

        asked = ASGI(self.asgi, method, body=body, hear=hear, **headers)
        try:
            await asyncio.shield(asked.task)
        finally:
            begun.set()
            if not asked.task.done():
                asked.disconnect()
                await asyncio.wait([asked.task])


DOORS = {"memory": MemoryDoor, "stdio": StdioDoor, "http": HTTPDoor, "asgi": ASGIDoor}


async def hold(conversation, door):
    """Hold a conversation at a door."""
    names = {}
    leap = time_machine() if any(x.startswith("later") for x in conversation.lines) else None
    await door.open()
    try:
        for line in conversation.lines:
            word, _, rest = line.partition(" ")
            if word == "-->":
                await door.say(filled(spelled(rest), names))
            elif word == "<--":
                await door.expect(line, names)
            elif word == "open":
                await door.open_gate()
            elif word == "quiet":
                await idle()
            elif word == "later":
                await idle()
                leap(float(rest.split()[0]))
                await idle()
            elif word in ("cut", "again"):
                await door.close() if word == "cut" else await door.open()
            else:
                fail_at(line, "this is not a line of a conversation", door.wire())
        if conversation.lines[-1] != "cut":
            await door.finish(conversation.lines[-1])
    finally:
        if conversation.lines[-1] != "cut":
            await door.close()


def played(revisions, oldest):
    """Return those in which a conversation is played: the newest of each era, perhaps the oldest."""
    eras = {rev in MODERN_DATES: rev for rev in revisions}
    return sorted({*eras.values(), *revisions[: int(oldest)]})


def cases_of(text, doors):
    """Return (conversation, revision, door) of a text."""
    found = []
    for block, number in blocks_of(text):
        conversation = read_conversation(block, number)
        timed = any(line.startswith("later") for line in conversation.lines)
        for name in conversation.options.get("doors", doors):
            if timed and name == "stdio":
                continue
            for rev in played(conversation.revisions, oldest=name == "memory"):
                found.append(pytest.param(conversation, rev, name, id=f"{name}-{rev}-{conversation.promise[:60]}"))
    return found


def conversations(text, make_server=demo, doors=tuple(DOORS)):
    """Return a test of conversations with a server; assign it to a name test_... of a class."""

    @pytest.mark.parametrize("conversation, revision, door", cases_of(text, doors))
    def test(self, conversation, revision, door):
        async def main():
            await hold(conversation, DOORS[door](make_server, revision, conversation.options))

        run(main())

    return test


ANSWERED = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "prompts": {},
            "logging": {}, "completions": {}}  # fmt: skip


class ScriptedServer(Lines):
    """The other end of a Client: what stands in `answers` by method is answered with it, a result or a
    function from the request to messages; all else is for the test to take and to answer.
    """

    name = "the scripted server"

    def __init__(self, answers):
        super().__init__()
        self.answers, self.sent, self.transcript = answers, [], []

    def put(self, *lines):
        self.transcript += [("<--", line) for line in lines]
        super().put(*lines)

    async def write(self, msg):
        self.transcript.append(("-->", msg))
        every = msg if isinstance(msg, list) else [msg]
        self.sent += every
        if not any(each.get("method") in self.answers for each in every):
            await super().write(msg)
        for each in every:
            answer = self.answers.get(each.get("method"))
            if answer is not None:
                self.put(*(answer(each) if callable(answer) else [result_of(each, **answer)]))

    def methods(self):
        return [msg.get("method") for msg in self.sent]

    def wire(self):
        return "\n".join(f"{arrow} {x if isinstance(x, (str, bytes)) else json.dumps(x)}" for arrow, x in self.transcript)


def greetings(revision, capabilities=ANSWERED):
    """Return the answers of a ScriptedServer to what a client says first."""
    info = {"name": "scripted", "version": "1"}
    return {
        "initialize": {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info},
        "notifications/initialized": lambda msg: [],
        "server/discover": {"resultType": "complete", "supportedVersions": [revision],
                            "capabilities": capabilities, "_meta": {META + "serverInfo": info}},
    }  # fmt: skip


@contextlib.asynccontextmanager
async def scripted_client(answers=None, *, revision=V4, **options):
    """Give a Client, and the ScriptedServer that it is connected to."""
    end = ScriptedServer({**greetings(revision), "ping": {}, **(answers or {})})
    async with m.Client(end, **{"revision": revision, "timeout": 20, **options}) as c:
        yield c, end


async def with_client(conversation, revision, options):
    """Have a Client hold a conversation with a server that says what is written."""
    names, asked = {}, None
    bare = conversation.options["bare"]
    end = ScriptedServer({} if bare else greetings(revision, conversation.options.get("capabilities", ANSWERED)))
    leap = time_machine() if any(x.startswith("later") for x in conversation.lines) else None
    pinned = None if conversation.options["unpinned"] else revision
    c = m.Client(end, revision=pinned, **options)
    scope = {"c": c, "m": m, "asyncio": asyncio, "test": conversation}

    def nothing_more(line):
        if not end.said.empty():
            fail_at(line, "the client says more than is written", end.wire())

    if not bare:
        await c.connect()
        await idle()
    try:
        for line in conversation.lines:
            word, _, rest = line.partition(" ")
            if word == ">>>":
                asked = asyncio.ensure_future(eval(rest, scope))
                await idle()
            elif word == "-->":
                wanted = spelled(rest)
                try:
                    msg = await asyncio.wait_for(end.said.get(), 15)
                except asyncio.TimeoutError:
                    fail_at(line, "the client does not say this", end.wire())
                if not said_as(wanted, msg, names):
                    fail_at(line, "the client says something else", end.wire())
            elif word == "<--":
                msg = spelled(rest)
                modern = revision in MODERN_DATES and isinstance(msg, dict) and "result" in msg
                if modern and not bare:
                    msg["result"] = {"resultType": "complete", **msg["result"]}
                end.put(filled(msg, names))
            elif word == "later":
                await idle()
                leap(float(rest.split()[0]))
            elif word == "cut":
                await end.close()
            elif word == "quiet":
                await idle()
                nothing_more(line)
            else:
                await outcome(asked, line, end.wire)
        await idle()
        nothing_more(conversation.lines[-1])
    finally:
        if asked is not None and not asked.done():
            asked.cancel()
            await asyncio.wait([asked])
        await c.close()


async def outcome(asked, line, wire):
    """Check what the client's call gave: JSON with `...`, a repr, or `Error: a part of its text`."""
    done, _ = await asyncio.wait([asked], timeout=15)
    if not done:
        fail_at(line, "the call has not ended", wire())
    kind, _, gist = f"{line} ".partition(": ")
    if asked.exception() is not None:
        exc = asked.exception()
        if kind != type(exc).__name__ or gist.strip() not in str(exc):
            fail_at(line, f"the call raised {exc!r}", wire())
        return
    value = asked.result()
    try:
        fits = matches(pattern(line), value, {})
    except ValueError:
        fits = repr(value) == line
    if not fits:
        fail_at(line, f"the call returned {value!r}", wire())


def client_conversations(text, **options):
    """Return a test of conversations of a Client with a scripted server."""
    cases = [
        pytest.param(conversation, rev, id=f"{rev}-{conversation.promise[:60]}")
        for conversation in itertools.starmap(read_conversation, blocks_of(text))
        for rev in played(conversation.revisions, oldest=True)
    ]

    @pytest.mark.parametrize("conversation, revision", cases)
    def test(self, conversation, revision):
        run(with_client(conversation, revision, options))

    return test


class TestThePlayer:
    """The player itself, and the first promises."""

    test_it_goes_as_written = conversations("""
A tool is called, and its result is content, and structured where the revision knows that.
[all] spec: server/tools#calling-tools
    --> 1 tools/call {"name": "add", "arguments": {"a": 1, "b": 2}}
    <-- 1 {"content": [{"type": "text", "text": "3"}], ...}

A cancelled request gets no response, even if its handler ignores that and returns.
[all] spec: basic/utilities/cancellation#behavior-requirements
    --> 1 tools/call {"name": "insist"}
    --> 2 tools/call {"name": "record"}
    <-- 2 {...}
    --> notifications/cancelled {"requestId": 1}
    open

A server asks a person in the middle of a call, and goes on with the answer.
[legacy >= 2025-06-18] spec: client/elicitation#protocol-messages capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "ask", "arguments": {"text": "Go on?"}}
    <-- ?q elicitation/create {"message": "Go on?", "requestedSchema": {...}, ...}
    --> ?q {"action": "decline"}
    <-- 1 {"content": [{"type": "text", "text": "decline None"}], ...}

A question to a person ends the request, and the client makes the call again with the answer.
[modern] spec: basic/patterns/mrtr capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "ask", "arguments": {"text": "Go on?"}}
    <-- 1 {"resultType": "input_required", "requestState": ?state,
          "inputRequests": {?q: {"method": "elicitation/create", "params": {...}}}}
    --> 2 tools/call {"name": "ask", "arguments": {"text": "Go on?"}, "requestState": ?state,
          "inputResponses": {?q: {"action": "decline"}}}
    <-- 2 {"content": [{"type": "text", "text": "decline None"}], ...}

""")

    test_of_a_client = client_conversations("""
A client's call gives the value of the result.
[all] spec: server/tools#calling-tools
    >>> c.call("echo", {"text": "hi"})
    --> ?1 tools/call {"name": "echo", "arguments": {"text": "hi"}}
    <-- ?1 {"content": [{"type": "text", "text": "hi"}]}
    "hi"

An error of the server is raised with its code and text.
[all] spec: basic#responses
    >>> c.call("echo", {"text": "hi"})
    --> ?1 tools/call {...}
    <-- ?1 error -32602 "no such tool"
    RemoteError: no such tool
""")

    def test_a_line_knows_its_place_in_this_file(self):
        rows = pathlib.Path(__file__).read_text("utf-8").splitlines()
        (mark,) = TestHandlersOnTheWire.test_it_goes_as_written.pytestmark
        for case in mark.args[1]:
            line = case.values[0].lines[0]
            assert line.startswith(rows[line.number - 1].strip())

    def test_the_player_notices_a_message_that_is_not_sent(self):
        for wrong in ('<-- 1 {"content": []}', '<-- 2 {...}', "quiet"):
            text = f'P.\n[2025-11-25]\n    --> 1 tools/call {{"name": "image"}}\n    {wrong}'
            conversation = read_conversation(text)

            async def main(conversation=conversation):
                await hold(conversation, MemoryDoor(demo, "2025-11-25", conversation.options))

            with pytest.raises((AssertionError, pytest.fail.Exception)):
                run(main())


########################
# T2. Messages
########################


# What is no message, the code that says so, and the id with which it is said (- for none, or null).
NO_MESSAGES = r"""
-32700 -    {
-32700 -    {]
-32700 -    nul
-32700 -    'a'
-32700 -    {"a":1,}
-32700 -    [1,]
-32700 -    {1:2}
-32700 -    {}{}
-32700 -    +1
-32700 -    01
-32700 -    "\x"
-32700 -    NaN
-32700 -    [Infinity]
-32700 -    [1e400]
-32600 -    1
-32600 -    "a"
-32600 -    null
-32600 -    {}
-32600 1    {"id":1,"method":"ping"}
-32600 1    {"jsonrpc":"1.0","id":1,"method":"ping"}
-32600 1    {"jsonrpc":2.0,"id":1,"method":"ping"}
-32600 1    {"jsonrpc":"2.0","id":1,"method":1}
-32600 1    {"jsonrpc":"2.0","id":1,"method":null}
-32600 -    {"jsonrpc":"2.0","id":null,"method":"ping"}
-32600 -    {"jsonrpc":"2.0","id":true,"method":"ping"}
-32600 -    {"jsonrpc":"2.0","id":1.5,"method":"ping"}
-32600 -    {"jsonrpc":"2.0","id":[1],"method":"ping"}
-32602 1    {"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}
-32602 1    {"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}
-32600 1    {"jsonrpc":"2.0","id":1,"method":"ping","result":{}}
"""


class TestWhatIsAMessage:
    """spec: basic#messages, JSON-RPC 2.0 §4 to §6."""

    @pytest.mark.parametrize("row", NO_MESSAGES.strip().splitlines())
    async def test_a_line_that_is_not_a_message_gets_the_error_code_of_its_fault(self, row, lines):
        code, req_id, line = row.split(None, 2)
        lines.put(line)
        (answer,) = await lines.answers()
        assert answer["error"]["code"] == int(code)
        assert len(answer["error"]["message"]) < 300
        assert answer.get("id") == (None if req_id == "-" else int(req_id))

    async def test_colours_around_a_message_do_not_hide_how_many_elements_it_has(self, lines):
        line = '\x1b[0m["\\\x1b[0m","' + ",{}" * 300_000 + "]"  # without its colours, the text ends early
        lines.put(line)
        (answer,) = await lines.answers()
        assert "more than 250000 elements" in answer["error"]["message"]

    @pytest.mark.parametrize("line", [
        '\ufeff{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        '\x1b[?25l\x1b[0m{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}',
        '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}',
    ])  # fmt: skip
    async def test_a_sloppy_line_that_cannot_be_mistaken_is_understood(self, line, lines):
        lines.put(line)
        assert await lines.answers() == [{"jsonrpc": "2.0", "id": 1, "result": {}}]

    @pytest.mark.parametrize("length, code", [(65_000, None), (66_000, -32600)])
    async def test_an_id_has_64_kib_at_most_for_each_error_repeats_it(self, length, code, lines):
        lines.put(request_of("a" * length, "ping"))
        (answer,) = await lines.answers()
        assert answer.get("error", {}).get("code") == code and ("id" in answer) == (code is None)

    @pytest.mark.parametrize(
        "data",
        [b'"\xff"', b"\xff\xfe{\x00}\x00", "{}".encode("utf-16"),
         b'"\xc0\xaf"', b"\x00", b'{"a":"\t"}'],
    )  # fmt: skip
    async def test_a_line_that_is_not_utf_8_is_a_parse_error(self, data, lines):
        lines.put(data)
        (answer,) = await lines.answers()
        assert answer["error"]["code"] == -32700

    @pytest.mark.parametrize(
        "line",
        ['{"jsonrpc":"2.0","id":5,"result":{}}', '{"jsonrpc":"2.0","id":5,"result":[]}',
         '{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"a"}}',
         '{"jsonrpc":"2.0","error":{"code":1,"message":"a"}}', '{"jsonrpc":"2.0","id":5,"error":"a"}',
         '{"jsonrpc":"2.0","method":"acme/unknown"}',
         '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}',
         '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
         '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
         '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'],
    )  # fmt: skip
    async def test_answers_and_notifications_are_never_answered(self, line, lines):
        lines.put(line)
        assert await lines.answers() == []

    @pytest.mark.parametrize("req_id", ["1", "0", "-7", '"1"', '""', '"\\"é"', "9" * 40])
    async def test_an_answer_has_the_id_of_its_request_with_its_type(self, req_id, lines):
        lines.put(f'{{"jsonrpc":"2.0","id":{req_id},"method":"ping"}}')
        answer = await lines.take()
        assert answer["id"] == json.loads(req_id) and type(answer["id"]) is type(json.loads(req_id))

    @pytest.mark.parametrize(
        "text",
        ['"é\\u00e9😀\\ud83d\\ude00\\u0000\\/\\b\\f\\n\\r\\t"', '"\\\\ud800 \\\\\\"[{"', '"[[[["',
         '"\\u2028\u2028\x7f\ufeff"', '"' + "a" * 100_000 + '"', '" "',
         '"' + "[{" * 200 + '"'],
    )  # fmt: skip
    async def test_every_character_survives_the_way_there_and_back(self, text, lines):
        lines.put('{ "params" : {"name":"echo", "arguments" :{"text":' + text
                  + '}},"method":"tools/call","id" : 1 , "jsonrpc":"2.0" , "x": [-0.5e-3, 1e308]}')  # fmt: skip
        answer = await lines.take()
        assert answer["result"]["content"][0]["text"] == json.loads(text)

    async def test_a_lone_surrogate_leaves_as_a_question_mark(self):
        async with m.Client(demo()) as c:
            assert await c.call("echo", {"text": "a\ud800b"}) == "a?b"

    async def test_garbage_of_any_kind_leaves_a_server_that_answers(self, lines):
        dice = rng("garbage")
        whole = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}'
        for _ in range(400):
            data = bytearray(whole)
            for _ in range(dice.randint(1, 6)):
                at = dice.randrange(len(data))
                piece = dice.choice([b"", b'"', b"{", b"]", b"\\", b"9", b"null", b"\xff", b",", b":"])
                data[at : at + dice.randint(0, 4)] = piece
            lines.put(bytes(data).replace(b"\n", b""))
        assert len(await lines.answers()) <= 400


# name, what fits, what is too much, the error.  A limit is tested here, and nowhere else.
LIMITS_OF_MESSAGES = {
    "bytes of a message": (lambda n: b" " * (16 * 1024 * 1024 - 51 + n) + b'{"jsonrpc":"2.0","id":"limit","method":"ping"}     ', "16777216"),
    "depth of nesting": (lambda n: b'{"jsonrpc":"2.0","id":"limit","method":"ping","params":{"x":'
                         + b"[" * (126 + n) + b"]" * (126 + n) + b"}}", "128"),
}  # fmt: skip


class TestLimitsOfMessages:
    @pytest.mark.parametrize("name", LIMITS_OF_MESSAGES)
    async def test_at_the_limit_it_fits_and_one_past_it_is_refused_with_the_limit(self, name, lines):
        make, limit = LIMITS_OF_MESSAGES[name]
        lines.put(make(0))
        assert await lines.take() == {"jsonrpc": "2.0", "id": "limit", "result": {}}
        lines.put(make(1))
        (answer,) = await lines.answers()
        assert answer["error"]["code"] in (-32600, -32700) and limit in answer["error"]["message"]

    @pytest.mark.parametrize("request_", [
        '{"jsonrpc":"2.0","id":"limit","method":"ping","params":{"x":%s}}',
        '{"jsonrpc": "2.0", "id": "limit", "method": "ping", "params": {"x": %s}}',
        '{"method":"ping","params":{"x":%s},"jsonrpc":"2.0","id":"limit"}',
    ])  # fmt: skip
    async def test_a_request_that_cannot_be_read_fails_at_once(self, request_, lines):
        lines.put((request_ % ("[" * 127 + "]" * 127)).encode())
        (answer,) = await lines.answers()
        assert answer["id"] == "limit" and answer["error"]["code"] == -32600

    @pytest.mark.parametrize("id_", [b"007", b"-", b"-0", b'"\x01"', b'"\xff"', b'"\xc3\xa9"', b"1" * 30])
    async def test_an_answer_with_an_id_that_is_none_leaves_a_server_that_answers(self, id_, lines):
        lines.put(b'{"jsonrpc":"2.0","id":%b,"result":{NaN}}' % id_)
        lines.put(PING)
        assert {"jsonrpc": "2.0", "id": 1, "result": {}} in await lines.answers()

    async def test_an_answer_that_is_too_long_is_an_error_to_its_request(self):
        app = m.Server()

        @app.tool(structured=False)
        async def make(n: int) -> str:
            return "x" * n

        async with m.Client(app) as c:
            with pytest.raises(m.RemoteError, match="^the response to tools/call of 'make' cannot be sent: "
                               r"a message of 17\d+ bytes exceeds 16777216; return less, or only a text: structured=False"):
                await c.call("make", {"n": 17_000_000})
            assert await c.call("make", {"n": 1}) == "x"

    @newest_revisions
    async def test_more_elements_than_would_be_read_are_not_sent(self, revision, caplog):
        app = m.Server()

        @app.tool
        async def make(n: int) -> typing.List[int]:
            return [*range(n)]

        @app.tool(structured=False)
        async def commas(n: int) -> str:
            return "[{," * n

        async with m.Client(app, revision=revision) as c:
            with pytest.raises(m.RemoteError, match="^the response to tools/call of 'make' cannot be sent: a message has "
                               "more than 250000 elements; return less, or only a text: structured=False"):
                await c.call("make", {"n": 250_000})
            assert "more than 250000 elements" in caplog.text
            with pytest.raises(m.LimitExceeded, match="^a message has more than 250000 elements"):
                await c.call("make", {"n": [1] * 250_000})
            assert len(await c.call("make", {"n": 249_000})) == 249_000
            assert await c.call("commas", {"n": 200_000}) == "[{," * 200_000

    def test_many_numbers_that_are_not_json_take_no_memory(self):
        import tracemalloc

        tracemalloc.start()
        try:
            with pytest.raises(m.ProtocolError, match="not JSON"):
                m.decode(b"11 " * 5_500_000)
            assert tracemalloc.get_traced_memory()[1] < 100_000_000
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize("unit", [b"[", b'{"a":', b'[{"a":', b"[],", b'{"":', b'"",', b"1"])
    async def test_absurd_nesting_and_numbers_are_refused_and_no_crash(self, unit, lines):
        lines.put(unit * 200_000)
        (answer,) = await lines.answers()
        assert "error" in answer and answer.get("id") is None


def failing_server():
    """A server whose prompt and resource fail as their name says."""
    import mcp_lite as m

    app = m.Server("failing", "1")
    failures = {
        "ours": m.RPCError(5, "no", {"a": 1}), "zero": m.RPCError(6, "no", 0),
        "tool": m.ToolError("there is no file a.txt"), "schema": m.SchemaError("a[0]", "is odd"),
        "value": ValueError("secret"), "key": KeyError("secret"), "deep": RecursionError("secret"),
        "exit": SystemExit("secret"),
    }  # fmt: skip

    @app.prompt
    async def fail(how: str) -> str:
        raise failures[how]

    @app.tool(output_schema={"type": "object"})
    async def unsayable(kind: str):
        circle = {}
        circle["again"] = circle
        values = {"nan": float("nan"), "object": object(), "circle": circle}
        return {"content": [], "structuredContent": {"value": values[kind]}}

    return app


class TestWhoseFault:
    test_it_goes_as_written = conversations("""
An RPCError of a handler is sent as it is, and data such as 0 or "" is sent, too.
[all] spec: basic#error-codes
    --> 1 prompts/get {"name": "fail", "arguments": {"how": "ours"}}
    <-- 1 error 5 "no" {"a": 1}
    --> 2 prompts/get {"name": "fail", "arguments": {"how": "zero"}}
    <-- 2 error 6 "no" 0

A ToolError that a prompt raises reaches the client with its text.
[all] doors memory
    --> 1 prompts/get {"name": "fail", "arguments": {"how": "tool"}}
    <-- 1 error -32603 "there is no file a.txt"

A conversation goes on after a request that failed, whatever its handler raised.
[all] doors memory stdio
    --> 1 prompts/get {"name": "fail", "arguments": {"how": "exit"}}
    <-- 1 error -32603 "Internal error"
    --> 2 prompts/get {"name": "fail", "arguments": {"how": "deep"}}
    <-- 2 error -32603 "Internal error"
    --> 3 tools/list
    <-- 3 {"tools": [{"name": "unsayable", ...}]}

A result that JSON cannot express becomes an error that the client is sent.
[all] doors memory http
    --> 1 tools/call {"name": "unsayable", "arguments": {"kind": "nan"}}
    <-- 1 error -32603 "the response to tools/call of 'unsayable' cannot be sent"
    --> 2 tools/call {"name": "unsayable", "arguments": {"kind": "circle"}}
    <-- 2 error -32603 "the response to tools/call of 'unsayable' cannot be sent"
    --> 3 tools/call {"name": "unsayable", "arguments": {"kind": "object"}}
    <-- 3 error -32603 "the response to tools/call of 'unsayable' cannot be sent"
""", failing_server)

    @pytest.mark.parametrize("how", ["value", "key", "deep", "exit"])
    async def test_the_text_of_an_internal_error_never_reaches_the_peer(self, how, caplog):
        """Tracebacks go to the log."""
        async with lines_to(failing_server()) as lines:
            lines.put(request_of(1, "prompts/get", name="fail", arguments={"how": how}))
            answer = await lines.take()
        assert answer["error"] == {"code": -32603, "message": "Internal error"}
        assert "secret" in caplog.text

    @pytest.mark.parametrize(("code", "text", "said"), [
        (-32000, ValueError("no such row"), [-32000, "no such row"]), (-32000, None, [-32000, "None"]),
        ("no such row", -32000, [-32603, "Internal error"]),
    ])  # fmt: skip
    async def test_an_error_on_the_wire_has_an_integer_code_and_a_text(self, code, text, said, caplog):
        """spec: basic#error-responses -- what else a handler passes to RPCError, its author reads in the log"""
        app = m.Server()

        @app.resource("x://{revision}")
        def read(revision: str):
            raise m.RPCError(code, text)

        for revision in (V4, V5):
            async with m.Client(app, revision=revision) as c:
                with pytest.raises(m.RemoteError) as refused:
                    await c.read(f"x://{revision}")
            assert [refused.value.code, refused.value.message] == said
        assert m.RPCError(code, text).message == str(text)
        assert ("no such row" in caplog.text) == (code == "no such row")

    async def test_an_error_of_a_tool_elsewhere_of_a_task_or_of_a_client_is_no_other(self, caplog):
        app = m.Server()

        @app.method("acme/x")
        async def of_a_tool(ctx, params):
            raise m.ToolError({"row": 7})

        @app.tool(task=True)
        async def in_a_task():
            raise m.RPCError("no such row", -32000)

        @app.tool
        async def ask(ctx: m.Context):
            with pytest.raises(m.RemoteError) as refused:
                await ctx.sample("?")
            return [refused.value.code, refused.value.message]

        def sample(params):
            raise m.RPCError("no such model", -32000)

        async with m.Client(app, sample=sample, revision=V4) as c:
            with pytest.raises(m.RemoteError) as refused:
                await c.request("acme/x")
            assert refused.value.message == "{'row': 7}"
            assert await c.call("ask") == '[-32603,"Internal error"]'
            assert "no such model" in caplog.text
        async with m.Client(app) as c:
            with pytest.raises(m.RemoteError) as refused:
                await c.call("in_a_task")
            assert [refused.value.code, refused.value.message] == [-32603, "Internal error"]
            assert "no such row" in caplog.text

    def test_a_client_that_leaves_a_question_open_is_no_error_in_the_log(self, tmp_path):
        code = (
            "import mcp_lite as m\napp = m.Server('x')\n@app.method('acme/ask')\n"
            "async def ask(ctx, params):\n    await ctx.elicit('?', bool)\napp.run()"
        )  # fmt: skip
        sent = "".join(json.dumps(msg) + "\n" for msg in (
            request_of(0, "initialize", protocolVersion="2025-06-18", capabilities={"elicitation": {}}, clientInfo={"name": "a", "version": "1"}),
            {"jsonrpc": "2.0", "method": "notifications/initialized"}, request_of(2, "acme/ask"),
        ))  # fmt: skip
        done = run_python("-c", code, cwd=HERE, input=sent, text=True)
        last = json.loads(done.stdout.splitlines()[-1])
        assert last == {"jsonrpc": "2.0", "id": 2, "error": {"code": -32603, "message": "the client closed the connection"}}
        assert (done.returncode, done.stderr) == (0, "")

    def test_all_errors_have_one_root_and_say_what_they_hold(self):
        kinds = [vars(m)[name] for name in m.__all__]
        kinds = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
        assert all(issubclass(kind, m.MCPError) for kind in kinds) and len(kinds) > 10
        for exc in (m.RPCError(-1, "a", {"b": 1}), m.RemoteError(-1, "a", {"b": 1})):
            assert (exc.code, exc.message, exc.data) == (-1, "a", {"b": 1}) and "a" in str(exc)
        assert not issubclass(m.RPCError, m.RemoteError) and not issubclass(m.RemoteError, m.RPCError)
        assert issubclass(m.LimitExceeded, m.ProtocolError)
        assert m.CapabilityMissing("server", "tools").capability == "tools"


# The methods of the unions ClientRequest of the five schema.ts, and since when and until when.
METHODS_OF_CLIENTS = """
ping                        2024-11-05 2025-11-25
logging/setLevel            2024-11-05 2025-11-25
resources/subscribe         2024-11-05 2025-11-25
resources/unsubscribe       2024-11-05 2025-11-25
completion/complete         2024-11-05 2026-07-28
prompts/list                2024-11-05 2026-07-28
prompts/get                 2024-11-05 2026-07-28
resources/list              2024-11-05 2026-07-28
resources/templates/list    2024-11-05 2026-07-28
resources/read              2024-11-05 2026-07-28
tools/list                  2024-11-05 2026-07-28
tools/call                  2024-11-05 2026-07-28
server/discover             2026-07-28 2026-07-28
tasks/list                  never never
tasks/result                never never
roots/list                  never never
sampling/createMessage      never never
elicitation/create          never never
"""
# A request of each revision, and what is said of a parameter that is wrong.
WRONG_PARAMETERS = """
tools/call       {}                                      name
tools/call       {"name": null}                          name
tools/call       {"name": "add", "arguments": []}        arguments
tools/call       {"name": "add", "arguments": "{}"}      arguments
tools/list       {"cursor": 1}                           cursor
tools/list       {"cursor": true}                        cursor
resources/read   {"uri": 1.5}                            uri
resources/read   {}                                      uri
prompts/get      {"name": {}}                            name
completion/complete  {"ref": {}}                         argument
"""


class TestMethods:
    """What the five schema.ts say."""

    @pytest.mark.parametrize("revision", DATES)
    async def test_a_revision_has_the_methods_of_its_schema(self, revision):
        door = MemoryDoor(demo, revision, {"bare": False})
        await door.open()
        for row in METHODS_OF_CLIENTS.strip().splitlines():
            method, since, until = row.split()
            await door.say(request_of(method, method))
            answer = await door.next()
            known = answer.get("error", {}).get("code") != -32601
            assert known == (since <= revision <= until), (answer, method)
        await door.close()

    @pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
    async def test_a_parameter_that_is_missing_or_wrong_is_named(self, revision):
        door = MemoryDoor(demo, revision, {"bare": False})
        await door.open()
        for number, row in enumerate(WRONG_PARAMETERS.strip().splitlines()):
            method, rest = row.split(None, 1)
            params, end = json.JSONDecoder().raw_decode(rest)
            await door.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            error = (await door.next())["error"]
            assert error["code"] == -32602 and rest[end:].strip() in error["message"], row
        await door.close()

    test_it_goes_as_written = conversations("""
A server refuses unknown methods, and those of a capability that it did not declare.
[all] spec: server/tools#capabilities doors memory
    --> 1 prompts/list
    <-- 1 {"prompts": [...], ...}
    --> 2 resources/list
    <-- 2 error -32601 ""
    --> 3 completion/complete {"ref": {"type": "ref/prompt", "name": "fail"},
          "argument": {"name": "how", "value": ""}}
    <-- 3 {"completion": {"values": [], "total": 0, "hasMore": false}}
    --> 4 acme/unknown
    <-- 4 error -32601 "acme/unknown"

A prompt that does not exist is an invalid parameter.
[all] spec: server/prompts#error-handling doors memory
    --> 1 prompts/get {"name": "nothing"}
    <-- 1 error -32602 "nothing"
""", failing_server)

    test_of_requests = conversations("""
A request of the modern era is refused if its metadata are malformed, then if its revision is unknown.
[modern] spec: basic/index#_meta doors memory stdio
    --> 1 no/such {"_meta": {"io.modelcontextprotocol/clientCapabilities": []}}
    <-- 1 error -32602 "clientCapabilities"
    --> 2 no/such {"_meta": {"io.modelcontextprotocol/clientInfo": "me"}}
    <-- 2 error -32602 "clientInfo"
    --> 3 no/such {"_meta": {"io.modelcontextprotocol/logLevel": "loud"}}
    <-- 3 error -32602 "logLevel"
    --> 4 no/such {"_meta": {"io.modelcontextprotocol/protocolVersion": 5}}
    <-- 4 error -32602 "protocolVersion"
    --> 5 no/such {"_meta": {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}}
    <-- 5 error -32022 "" {"requested": "1900-01-01",
          "supported": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]}
    --> 6 tools/list {"_meta": {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}}
    <-- 6 error -32022 "" {"requested": "2025-11-25", "supported": ["2026-07-28", ...]}
    --> 7 no/such
    <-- 7 error -32601 "no/such"

A handshake that carries the metadata of the modern era is refused, and the error names the revisions.
[modern] spec: basic/versioning#backward-compatibility-with-initialization-based-versions
    --> 1 initialize {"protocolVersion": "x"}
    <-- 1 error -32601 "2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"

A code that the modern era has retired or keeps for itself is replaced, and every other is sent as it is.
[modern] spec: basic/index#error-codes
    --> 1 tools/call {"name": "refuse", "arguments": {"code": -32002}}
    <-- 1 error -32602 "refused" {"code": -32002}
    --> 2 tools/call {"name": "refuse", "arguments": {"code": -32042}}
    <-- 2 error -32603 "refused" {"code": -32042}
    --> 3 tools/call {"name": "refuse", "arguments": {"code": -32050}}
    <-- 3 error -32603 "refused" {"code": -32050}
    --> 4 tools/call {"name": "refuse", "arguments": {"code": -32021}}
    <-- 4 error -32021 "refused" {"code": -32021}
    --> 5 tools/call {"name": "refuse", "arguments": {"code": 7}}
    <-- 5 error 7 "refused" {"code": 7}

A client of the legacy era gets every code as it is.
[legacy]
    --> 1 tools/call {"name": "refuse", "arguments": {"code": -32042}}
    <-- 1 error -32042 "refused" {"code": -32042}
    --> 2 tools/call {"name": "refuse", "arguments": {"code": -32021}}
    <-- 2 error -32021 "refused" {"code": -32021}

inputResponses that are not an object are refused by each method that may ask.
[modern] spec: basic/patterns/mrtr#error-handling
    --> 1 tools/call {"name": "add", "arguments": {"a": 1}, "inputResponses": [1]}
    <-- 1 error -32602 "inputResponses: expected object"
    --> 2 resources/read {"uri": "note://a", "inputResponses": "yes"}
    <-- 2 error -32602 "inputResponses: expected object"
    --> 3 prompts/get {"name": "greet", "arguments": {"name": "x"}, "inputResponses": true}
    <-- 3 error -32602 "inputResponses: expected object"

null stands for a parameter that is absent, if it may be.
[all]
    --> 1 tools/list {"cursor": null}
    <-- 1 {"tools": [...], ...}
    --> 2 tools/call {"name": "record", "arguments": null, "inputResponses": null, "requestState": null}
    <-- 2 {"content": [{"type": "text", "text": "{\\"x\\":1}"}], ...}
    --> 3 completion/complete {"ref": {"type": "ref/prompt", "name": "greet"},
          "argument": {"name": "name", "value": "B"}, "context": null}
    <-- 3 {"completion": {"values": ["Bob"], ...}, ...}
    --> 4 resources/read {"uri": null}
    <-- 4 error -32602 "uri"
""")


def every_content():
    """A server whose tool returns one block of each type of content."""
    import mcp_lite as m

    app = m.Server("content", "1")

    @app.tool(structured=False)
    async def give():
        link = m.Link("x://a", "a", title="T", icons=[{"src": "https://x.example/i.png"}])
        return ["text", m.Image(b"PNG", format="png", annotations={"priority": 1}), m.Audio(b"RIFF"), link,
                m.Resource("x://b", "t", meta={"k": 1}), {"type": "acme", "x": 1}]  # fmt: skip

    return app


class TestContent:
    """A reader gets types of content that its revision knows; fields it does not know do no harm."""

    test_it_goes_as_written = conversations("""
Audio and links become text for a client of the first revision, which does not know them.
[= 2024-11-05] spec: server/tools#tool-result doors memory
    --> 1 tools/call {"name": "give"}
    <-- 1 {"content": [{"type": "text", "text": "text"},
          {"type": "image", "data": "UE5H", "mimeType": "image/png", "annotations": {"priority": 1}},
          {"type": "text", "text": "[audio, audio/wav, 8 characters of base64]"}, {"type": "text", "text": "T: x://a"},
          {"type": "resource", "resource": {"uri": "x://b", "text": "t", ...}}, {"type": "text", "text": ...}]}

A link becomes text for a client of a revision without links.
[= 2025-03-26] spec: server/tools#tool-result doors memory
    --> 1 tools/call {"name": "give"}
    <-- 1 {"content": [..., ..., {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
          {"type": "text", "text": ...}, ..., ...]}

A client of 2025-06-18 or later gets every type of content as it is.
[>= 2025-06-18] spec: server/tools#tool-result doors memory
    --> 1 tools/call {"name": "give"}
    <-- 1 {"content": [{"type": "text", "text": "text"}, {"type": "image", ...}, {"type": "audio", ...},
          {"type": "resource_link", "uri": "x://a", "name": "a", "title": "T", ...},
          {"type": "resource", "resource": {"uri": "x://b", "text": "t", "_meta": {"k": 1}, ...}},
          {"type": "text", "text": ...}]}
""", every_content)


########################
# T9. One conversation
########################

CALLS = """
Requests are served at the same time, and each is answered when it is ready.
[all] spec: basic#requests
    --> 1 tools/call {"name": "wait"}
    --> 2 tools/call {"name": "add", "arguments": {"a": 1}}
    <-- 2 {"content": [{"type": "text", "text": "1"}], ...}
    open
    <-- 1 {"content": [{"type": "text", "text": "opened"}], ...}

A request is refused if its id is that of a running request, which goes on.
[all] spec: basic#requests doors memory stdio
    --> 1 tools/call {"name": "wait"}
    --> 1 tools/call {"name": "add", "arguments": {"a": 1}}
    <-- 1 error -32600 "still running"
    open
    <-- 1 {"content": [{"type": "text", "text": "opened"}], ...}

An id may be used again after its answer.
[all] doors memory
    --> 1 tools/call {"name": "add", "arguments": {"a": 1}}
    <-- 1 {"content": [{"type": "text", "text": "1"}], ...}
    --> 1 tools/call {"name": "add", "arguments": {"a": 2}}
    <-- 1 {"content": [{"type": "text", "text": "2"}], ...}

A running request that is cancelled is stopped without an answer; the ids 1, "1" and true are three.
[all] spec: basic/patterns/cancellation#behavior-requirements
    --> 1 tools/call {"name": "wait"}
    --> "1" tools/call {"name": "wait"}
    quiet
    --> notifications/cancelled {"requestId": 1, "reason": "enough"}
    open
    <-- "1" {"content": [{"type": "text", "text": "opened"}], ...}

A request gets no answer if its cancellation comes together with it.
[all] spec: basic/patterns/cancellation#behavior-requirements doors memory stdio
    --> 1 tools/call {"name": "wait"}
    --> notifications/cancelled {"requestId": 1}
    open

An id may be used again after its request was cancelled before it began.
[all] doors memory
    --> 1 tools/call {"name": "wait"}
    --> notifications/cancelled {"requestId": 1}
    quiet
    --> 1 tools/call {"name": "add", "arguments": {"a": 1}}
    <-- 1 {"content": [{"type": "text", "text": "1"}], ...}

A cancellation of an unknown or malformed id changes nothing.
[all] spec: basic/patterns/cancellation#error-handling doors memory stdio
    --> 1 tools/call {"name": "wait"}
    --> notifications/cancelled {"requestId": 2}
    --> notifications/cancelled {"requestId": true}
    --> notifications/cancelled {"requestId": null}
    --> notifications/cancelled {"requestId": "1"}
    --> notifications/cancelled {}
    open
    <-- 1 {"content": [{"type": "text", "text": "opened"}], ...}

A handshake cannot be cancelled.
[= 2025-11-25] spec: basic/utilities/cancellation#behavior-requirements bare doors memory stdio
    --> 1 initialize {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    --> notifications/cancelled {"requestId": 1}
    <-- 1 {"protocolVersion": "2025-11-25", ...}

A ping is answered at once.
[legacy] spec: basic/utilities/ping
    --> 1 ping
    <-- 1 {}

Progress is reported before the result, with the token of the request, and its number grows.
[all] spec: basic/patterns/progress#behavior-requirements
    --> 1 tools/call {"name": "progress", "arguments": {"n": 3}, "_meta": {"progressToken": "t"}}
    <-- notifications/progress {"progressToken": "t", "progress": 1, "total": 3, ...}
    <-- notifications/progress {"progressToken": "t", "progress": 2, "total": 3, ...}
    <-- notifications/progress {"progressToken": "t", "progress": 3, "total": 3, ...}
    <-- 1 {"content": [{"type": "text", "text": "done"}], ...}

A client that gives no progress token gets no reports of progress.
[all] spec: basic/patterns/progress#progress-flow
    --> 1 tools/call {"name": "progress", "arguments": {"n": 3}}
    <-- 1 {"content": [{"type": "text", "text": "done"}], ...}

A report of progress may have a message since 2025-03-26, and has none before.
[>= 2025-03-26] spec: basic/patterns/progress#progress-flow doors memory
    --> 1 tools/call {"name": "progress", "arguments": {"n": 1}, "_meta": {"progressToken": 0}}
    <-- notifications/progress {"progressToken": 0, "progress": 1, "total": 1, "message": "step 1"}
    <-- 1 {...}
"""

BATCHES = """
A batch is answered with one array, of all its requests.
[= 2025-03-26] spec: basic#batching
    --> [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"},
          {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}}]
    <-- [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "result": {...}}]

Notifications that a request of a batch causes are sent before the array of answers, not in it.
[= 2025-03-26] spec: basic#batching
    --> [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "progress",
          "arguments": {"n": 1}, "_meta": {"progressToken": 7}}}]
    <-- notifications/progress {"progressToken": 7, "progress": 1, ...}
    <-- [{"jsonrpc": "2.0", "id": 1, "result": {...}}]

A member of a batch that is no message gets an error in the array of answers.
[= 2025-03-26] spec: basic#batching doors memory stdio
    --> [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, 1, {"jsonrpc": "2.0", "id": 2}]
    <-- [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"error": {"code": -32600, ...}, ...}, {"error": {"code": -32600, ...}, ...}]

A cancelled request of a batch has no answer in the array.
[= 2025-03-26] spec: basic/utilities/cancellation doors memory stdio
    --> [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
          "params": {"name": "wait"}}]
    --> notifications/cancelled {"requestId": 2}
    <-- [{"jsonrpc": "2.0", "id": 1, "result": {}}]

A batch that holds only notifications and responses gets no answer.
[= 2025-03-26] spec: basic#batching doors memory stdio
    --> [{"jsonrpc": "2.0", "method": "notifications/x"}, {"jsonrpc": "2.0", "id": 9, "result": {}}]
    --> 1 ping
    <-- 1 {}

An empty batch is an error.
[= 2025-03-26] spec: basic#batching doors memory stdio
    --> []
    <-- {"jsonrpc": "2.0", "error": {"code": -32600, "message": ...}, ...}

A batch is refused where the revision has none.
[>= 2025-06-18] spec: basic#messages doors memory stdio
    --> [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]
    <-- {"jsonrpc": "2.0", "error": {"code": -32600, "message": ...}, ...}

A batch is refused in the first revision.
[= 2024-11-05] doors memory
    --> [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]
    <-- {"jsonrpc": "2.0", "error": {"code": -32600, "message": ...}, ...}
"""


class TestOneConversation:
    test_calls = conversations(CALLS)
    test_batches = conversations(BATCHES)

    async def test_the_responses_of_a_batch_take_no_more_than_a_message(self):
        app = m.Server()
        app.add_tool(lambda: "x" * 1_000_000, name="long")
        async with lines_to(app, "2025-03-26") as lines:
            lines.put([request_of(i, "tools/call", name="long") for i in range(40)])
            answers = await lines.take()
            assert len(answers) == 40 and len(json.dumps(answers)) < 16 * 1024 * 1024
            refused = [answer["error"]["message"] for answer in answers if "error" in answer]
            assert refused and "the responses of this batch are too long" in refused[0]

    async def test_the_errors_of_a_batch_take_no_more_than_a_message_either(self):
        app = m.Server()

        @app.method("x/fail")
        def fail(params, ctx):
            raise m.RPCError(-32000, "no", {"why": "y" * 3_000_000})

        async with lines_to(app, "2025-03-26") as lines:
            lines.put([request_of(i, "x/fail") for i in range(8)])
            answers = await lines.take()
            assert len(answers) == 8 and len(json.dumps(answers)) < 16 * 1024 * 1024
            assert "the responses of this batch are too long" in answers[-1]["error"]["message"]


class TestCleaningUp:
    """A handler that is stopped can clean up; whatever it does then, it is not answered."""

    def app(self, log):
        app = m.Server()

        @app.tool
        async def work(how: str) -> str:
            log.append("began")
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                log.append("cleaned up")
                if how == "swallows":
                    return "still here"
                if how == "fails":
                    raise ValueError("in the cleaning up") from None
                raise

        return app

    @pytest.mark.parametrize("how", ["raises", "swallows", "fails"])
    async def test_a_cancelled_request_is_not_answered_whatever_its_handler_does(self, how):
        log = []
        async with lines_to(self.app(log)) as lines:
            lines.call(1, "work", how=how)
            await until(lambda: log)
            for _ in range(2):  # the second does not disturb the cleaning up
                lines.put(notification("notifications/cancelled", requestId=1))
            assert await lines.answers() == []
            await until(lambda: log == ["began", "cleaned up"])
            assert await lines.answers() == []

    async def test_a_handler_that_somebody_else_cancelled_is_answered_with_an_error(self):
        app = m.Server()

        @app.tool
        async def work() -> str:
            asyncio.current_task().cancel()
            await asyncio.sleep(0)
            return "never"

        async with lines_to(app) as lines:
            lines.call(1, "work")
            answer = await lines.take()
            assert answer["id"] == 1 and ("error" in answer or answer["result"]["isError"])

    @pytest.mark.parametrize("how", ["raises", "swallows", "fails"])
    async def test_a_peer_that_vanishes_cancels_what_we_serve(self, how):
        log = []
        async with lines_to(self.app(log)) as lines:
            lines.call(1, "work", how=how)
            await until(lambda: log)
        assert log == ["began", "cleaned up"]

    async def test_requests_get_their_grace_to_finish_and_are_answered(self):
        """As in `python server.py < requests.jsonl > answers.jsonl`."""
        app = demo()
        async with lines_to(app, grace=None) as lines:
            lines.call(1, "wait")
            await idle()
            lines.inbox.put_nowait([])
            await idle()
            app.gate().set()
            assert (await lines.take())["result"]["content"][0]["text"] == "opened"

    async def test_a_server_ends_though_nobody_reads_its_farewell(self):
        log = []
        async with lines_to(self.app(log)) as lines:
            lines.call(1, "work", how="raises")
            await until(lambda: log)
            lines.reading.clear()
            lines.inbox.put_nowait([])
            await until(lambda: log == ["began", "cleaned up"])
            await until(lambda: lines.closed)

    async def test_a_reader_that_fails_leaves_nothing_behind(self):
        log, lines = [], Lines()
        app = self.app(log)
        read = lines.read

        async def failing_read():
            item = await read()
            if item == [b"burst"]:
                raise OSError("burst")
            return item

        lines.read = failing_read
        lines.put(hello())
        lines.call(1, "work", how="raises")
        serving = asyncio.ensure_future(app.serve(lines))
        await until(lambda: log)
        lines.put("burst")
        with pytest.raises(OSError, match="burst"):
            await serving
        assert log == ["began", "cleaned up"]

    async def test_a_reader_that_fails_says_why_to_who_waits_for_a_response(self):
        ours, theirs = m.memory_transports()
        serving, read = asyncio.ensure_future(demo().serve(theirs)), ours.read

        async def failing_read():
            items = await read()
            if any(b"burst" in item for item in items):
                raise OSError("the pipe has burst")
            return items

        ours.read = failing_read
        async with m.Client(ours) as c:
            with pytest.raises(m.ConnectionClosed, match="the pipe has burst"):
                await c.call("echo", {"text": "burst"})
        await serving


class TestCrowding:
    """What runs, and what waits, is bounded: a full server lets requests wait in line."""

    async def test_requests_beyond_max_in_flight_wait_their_turn_and_are_all_served(self):
        app = m.Server(max_in_flight=2)
        log, gate = [], asyncio.Event()

        @app.tool
        async def work(n: int) -> int:
            log.append(n)
            await gate.wait()
            return n

        async with lines_to(app) as lines:
            for n in range(6):
                lines.call(n, "work", n=n)
            await until(lambda: len(log) == 2)
            assert await lines.answers() == [], "a full server answers a ping"
            lines.put(notification("notifications/cancelled", requestId=0))
            lines.put(notification("notifications/cancelled", requestId=4))
            await until(lambda: len(log) == 3)
            gate.set()
            answers = [await lines.take() for _ in range(4)]
            assert sorted(answer["id"] for answer in answers) == [1, 2, 3, 5]
            assert 4 not in log

    async def test_a_handler_that_waits_for_the_client_does_not_stop_the_server_from_reading(self):
        app = m.Server(max_in_flight=2)

        @app.tool
        async def ask(ctx: m.Context) -> str:
            return str(len(await ctx.roots()))

        async with lines_to(app, roots={}) as lines:
            for n in range(2):
                lines.call(f"call {n}", "ask")
            asked = [await lines.take() for _ in range(2)]
            assert [msg["method"] for msg in asked] == ["roots/list"] * 2
            for msg in asked:
                lines.put(result_of(msg, roots=[]))
            answers = [await lines.take() for _ in range(2)]
            assert {answer["id"] for answer in answers} == {"call 0", "call 1"}

    async def test_many_that_wait_and_end_at_once_are_all_served(self):
        app, gate = m.Server(max_in_flight=1), asyncio.Event()

        @app.tool
        async def work() -> str:
            await gate.wait()
            return "done"

        async with lines_to(app) as lines:
            for n in range(1500):
                lines.call(n, "work")
            await idle()
            gate.set()
            assert sorted([(await lines.take())["id"] for _ in range(1500)]) == [*range(1500)]

    @pytest.mark.parametrize("steps", range(12))
    async def test_a_turn_that_comes_to_a_request_just_cancelled_is_passed_on(self, steps):
        app, gate = m.Server(max_in_flight=1), asyncio.Event()

        @app.tool
        async def work() -> str:
            await gate.wait()
            return "done"

        async with lines_to(app) as lines:
            for n in range(3):
                lines.call(n, "work")
            await idle()
            gate.set()
            for _ in range(steps):
                await asyncio.sleep(0)
            lines.put(notification("notifications/cancelled", requestId=1))
            while (await lines.take())["id"] != 2:
                pass

    async def test_a_client_that_does_not_read_its_answers_is_not_read_for_ever(self):
        """A flood whose answers are not taken must not fill memory."""
        async with lines_to(m.Server(max_in_flight=10)) as lines:
            lines.reading.clear()
            for n in range(5000):
                lines.call(n, "nothing")
            for _ in range(15_000):  # enough to read them all
                await asyncio.sleep(0)
            assert lines.inbox.qsize() > 2000
            lines.reading.set()
            assert sorted([(await lines.take())["id"] for _ in range(5000)]) == [*range(5000)]

    async def test_a_client_whose_notifications_pile_up_is_not_read_for_ever(self):
        app, gate, heard = m.Server(), asyncio.Event(), []

        @app.on("notifications/acme/news")
        async def take(params):
            await gate.wait()
            heard.append(params["n"])

        async with lines_to(app) as lines:
            for n in range(5000):
                lines.put(notification("notifications/acme/news", n=n))
            for _ in range(15_000):  # enough to read them all
                await asyncio.sleep(0)
            assert lines.inbox.qsize() > 2000
            gate.set()
            await until(lambda: len(heard) == 5000)

    @pytest.mark.parametrize("where", ["memory", "http"])
    async def test_a_client_refuses_questions_that_hold_too_many_bytes(self, where, monkeypatch):
        monkeypatch.setattr(m, "HELD_BYTES", 100_000)
        app = m.Server()

        @app.tool
        async def ask(ctx: m.Context) -> int:
            questions = [ctx.sample("x" * 40_000) for _ in range(5)]
            answers = await asyncio.gather(*questions, return_exceptions=True)
            return sum(isinstance(answer, m.RemoteError) and answer.code == 503 for answer in answers)

        async def sample(params):
            await asyncio.sleep(0.2)
            return "yes"

        async with app.http(port=0) as server:
            target = server.url if where == "http" else app
            async with m.Client(target, sample=sample, revision=V4) as c:
                assert await c.call("ask") == 3


class TestThreads:
    """`def` handlers run in a bounded pool of threads, with the context of their request."""

    async def test_no_more_threads_than_the_limit_and_free_ones_are_used_again(self):
        app, seen = m.Server(threads=2), []
        lock, gate = threading.Lock(), threading.Event()

        @app.tool
        def work() -> str:
            with lock:
                seen.append(threading.get_ident())
            gate.wait(20)
            return "done"

        async with lines_to(app) as lines:
            for n in range(4):
                lines.call(n, "work")
            await until(lambda: len(seen) == 2)
            await idle()
            assert len(seen) == 2
            gate.set()
            for _ in range(4):
                await lines.take()
        assert len(seen) == 4 and len(set(seen)) == 2 and threading.get_ident() not in seen

    async def test_calls_one_after_the_other_take_one_thread(self):
        app, seen = m.Server(), set()

        @app.tool
        def work() -> str:
            seen.add(threading.get_ident())
            return "done"

        async with lines_to(app) as lines:
            for n in range(200):
                lines.call(n, "work")
                await lines.take()
        assert len(seen) == 1

    async def test_a_call_that_goes_on_after_its_client_has_gone_does_not_hold_up_the_next_client(self):
        app, gate, begun = m.Server(), threading.Event(), threading.Event()

        @app.tool
        def stuck() -> str:
            begun.set()
            gate.wait(30)
            return "done"

        @app.tool
        def quick() -> str:
            return "done"

        async with m.Client(app) as c:
            call = asyncio.ensure_future(c.call("stuck"))
            await until(begun.is_set)
        await asyncio.gather(call, return_exceptions=True)
        async with m.Client(app) as c:
            assert await c.call("quick", timeout=20) == "done"
            assert not gate.is_set()
        gate.set()

    @pytest.mark.skipif(sys.platform != "linux", reason="limits its memory")
    def test_where_the_system_gives_no_further_thread_jobs_wait_for_those_there_are(self):
        code = """
            import asyncio, resource, threading, mcp_lite
            app, gate = mcp_lite.Server(), threading.Event()

            @app.tool
            def work() -> str:
                gate.wait(20)
                return "done"

            async def main():
                async with mcp_lite.Client(app) as c:
                    threading.stack_size(1 << 30)
                    calls = [asyncio.ensure_future(c.call("work"))]
                    while threading.active_count() < 2:
                        await asyncio.sleep(0.001)
                    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
                    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29),) * 2)
                    calls += [asyncio.ensure_future(c.call("work")) for _ in range(3)]
                    await c.ping()
                    gate.set()
                    print(await asyncio.gather(*calls), threading.active_count())

            asyncio.run(main())
        """
        ended = run_python("-c", textwrap.dedent(code), cwd=HERE)
        assert ended.stdout == b"['done', 'done', 'done', 'done'] 2\n", ended.stderr.decode()

    async def test_an_idle_thread_keeps_no_result(self):
        class Large(dict):
            """To which a weak reference can be made."""

        app, made = m.Server(), []

        @app.tool
        def work() -> dict:
            large = Large(text="x")
            made.append(weakref.ref(large))
            return large

        async with lines_to(app) as lines:
            lines.call(1, "work")
            assert "result" in await lines.take()
            await eventually(lambda: made[0]() is None)


ASKING = """
Each answer reaches the caller of its request, in whatever order the answers come.
[all] spec: basic#responses
    >>> asyncio.gather(c.call("echo", {"text": "a"}), c.call("echo", {"text": "b"}))
    --> ?a tools/call {"name": "echo", "arguments": {"text": "a"}}
    --> ?b tools/call {"name": "echo", "arguments": {"text": "b"}}
    <-- ?b {"content": [{"type": "text", "text": "b"}]}
    <-- ?a {"content": [{"type": "text", "text": "a"}]}
    ["a", "b"]

An answer with an unknown id changes nothing, and a second answer to one request is dropped.
[all] spec: basic#responses
    >>> c.request("acme/a")
    --> ?1 acme/a
    <-- "other" {"a": 1}
    <-- true {"a": 1}
    <-- 77.5 {"a": 1}
    <-- ?1 {"a": 2, ...}
    <-- ?1 {"a": 3}
    {"a": 2, ...}

An answer that is malformed fails its request at once.
[legacy] spec: basic#responses
    >>> c.request("acme/a")
    --> ?1 acme/a
    <-- {"jsonrpc": "2.0", "id": ?1, "result": []}
    ProtocolError:

An answer with a malformed error fails its request at once.
[legacy] spec: basic#responses
    >>> c.request("acme/a")
    --> ?1 acme/a
    <-- {"jsonrpc": "2.0", "id": ?1, "error": "no"}
    ProtocolError:

A request that is not answered times out, and is cancelled.
[all] spec: basic/patterns/cancellation
    >>> c.request("acme/a", timeout=5)
    --> ?1 acme/a
    later 6 s
    --> notifications/cancelled {"requestId": ?1, ...}
    RequestTimeout: acme/a

A report of progress gives a request its whole timeout again.
[all] spec: basic/lifecycle#timeouts
    >>> c.request("acme/a", timeout=5, progress=lambda *report: None)
    --> ?1 acme/a {"_meta": {"progressToken": ?1, ...}}
    later 4 s
    <-- notifications/progress {"progressToken": ?1, "progress": 1}
    later 4 s
    <-- ?1 {"a": 1, ...}
    {"a": 1, ...}

A report of progress counts for nothing if it is malformed, has an unknown token, or does not grow.
[all] spec: basic/patterns/progress#behavior-requirements
    >>> c.request("acme/a", timeout=50)
    --> ?1 acme/a
    <-- notifications/progress {"progressToken": ?1, "progress": 1}
    later 40 s
    <-- notifications/progress {"progressToken": ?1, "progress": true}
    <-- notifications/progress {"progressToken": ?1, "progress": 1}
    <-- notifications/progress {"progressToken": "?", "progress": 2}
    <-- notifications/progress {"progressToken": true, "progress": 2}
    <-- notifications/progress {}
    later 20 s
    --> notifications/cancelled {"requestId": ?1, ...}
    RequestTimeout: acme/a

A report of progress counts for nothing if it is no number.
[all] spec: basic/patterns/progress#progress-flow
    >>> c.request("acme/a", timeout=50)
    --> ?1 acme/a
    later 40 s
    <-- notifications/progress {"progressToken": ?1, "progress": true}
    <-- notifications/progress {"progressToken": ?1, "progress": "2"}
    later 20 s
    --> notifications/cancelled {"requestId": ?1, ...}
    RequestTimeout: acme/a

A connection that ends fails every request that waits for an answer.
[all]
    >>> c.request("acme/a")
    --> ?1 acme/a
    cut
    ConnectionClosed:
"""


class TestAsking:
    test_it_goes_as_written = client_conversations(ASKING)

    async def test_progress_after_the_answer_does_not_cancel_its_caller_later(self):
        reports = []
        async with m.Client(demo(), timeout=5) as c:
            leap = time_machine()
            assert await c.call("progress", {"n": 5}, progress=lambda *report: reports.append(report[0])) == "done"
            assert reports == sorted(reports) and reports[-1] == 5, "before the call returned"
            leap(6)
            await idle()

    async def test_async_callbacks_of_progress_end_before_the_call_returns(self):
        reports = []

        async def slow(progress, total, message):
            await idle()
            reports.append(progress)

        async with m.Client(demo()) as c:
            assert await c.call("progress", {"n": 5}, progress=slow) == "done"
            assert sorted(reports) == [1, 2, 3, 4, 5]

    async def test_a_hundred_callbacks_of_progress_run_at_most(self):
        begun, gate = [], asyncio.Event()

        async def slow(progress, total, message):
            begun.append(progress)
            await gate.wait()

        async with scripted_client() as (c, lines):
            call = asyncio.ensure_future(c.call_tool("work", progress=slow))
            asked = await lines.take()
            for n in range(150):
                lines.put(notification("notifications/progress", progressToken=asked["params"]["_meta"]["progressToken"], progress=n))
            lines.put(result_of(asked, content=[]))
            await until(lambda: len(begun) == 100 and not lines.inbox.qsize())
            await idle()
            gate.set()
            await call
        assert begun == [*range(100)]

    async def test_a_peer_that_has_stopped_reading_is_given_up_after_the_timeout(self):
        async with scripted_client(timeout=5) as (c, lines):
            leap = time_machine()
            lines.reading.clear()
            call = asyncio.ensure_future(c.call_tool("work"))
            await idle()
            leap(6)
            with pytest.raises(m.RequestTimeout):
                await call
            lines.reading.set()

    async def test_progress_that_comes_after_a_timeout_cancels_nothing(self):
        async with scripted_client(timeout=5) as (c, lines):
            leap = time_machine()
            # The server does not read, and sends progress while it is told of the timeout.
            lines.reading.clear()
            lines.abandon = lambda token: lines.put(notification("notifications/progress", progressToken=token, progress=1))

            async def work():
                with pytest.raises(m.RequestTimeout):
                    await c.call_tool("work")
                leap(6)
                await idle()
                return "not cancelled"

            work = asyncio.ensure_future(work())
            await idle()
            leap(6)
            assert await work == "not cancelled"
            lines.reading.set()

    async def test_a_timeout_in_spite_of_progress_names_the_limit_that_was_reached(self):
        async with scripted_client(timeout=5, max_timeout=8) as (c, lines):
            leap = time_machine()
            call = asyncio.ensure_future(c.call_tool("work"))
            token = (await lines.take())["params"]["_meta"]["progressToken"]
            leap(4)
            lines.put(notification("notifications/progress", progressToken=token, progress=1))
            await until(lambda: not lines.inbox.qsize())
            await idle()
            leap(4.5)
            with pytest.raises(m.RequestTimeout, match="within 8 seconds; max_timeout=N waits longer"):
                await call

    async def test_each_request_that_a_lost_connection_fails_gets_an_error_of_its_own(self):
        async with scripted_client() as (c, lines):
            calls = [asyncio.ensure_future(c.call_tool("work")) for _ in range(2)]
            for _ in calls:
                await lines.take()
            lines.inbox.put_nowait(None)
            one, two = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(one, m.ConnectionClosed) and str(one) == str(two) and one is not two

    @pytest.mark.parametrize("name, called", [
        ("notifications/progress", False), ("notifications/message", False), ("tools/call", False), ("ping", False),
        ("notifications/initialized", True), ("notifications/cancelled", True),
        ("notifications/roots/list_changed", True), ("notifications/acme", True),
    ])  # fmt: skip
    def test_a_server_logs_that_what_no_client_announces_is_never_heard(self, name, called, caplog):
        m.Server().on(name)(print)
        assert caplog.messages == [f"@on({name!r}) is never called"] * (not called)

    def test_who_listens_for_progress_is_told_where_it_goes(self, caplog):
        m.Client(m.Server()).on("notifications/progress")(print)
        assert caplog.messages == ["@on('notifications/progress') is never called: pass progress= to call()"]

    async def test_callbacks_that_wait_for_a_response_do_not_keep_it_from_being_read(self):
        done = []
        async with scripted_client() as (c, lines):
            @c.on("notifications/acme")
            async def ask(params):
                await c.call_tool("work")
                done.append(params["n"])

            for n in range(3000):
                lines.put(notification("notifications/acme", n=n))
            for _ in range(3000):
                lines.put(result_of(await lines.take(), content=[]))
            await until(lambda: len(done) == 3000, seconds=60)

    async def test_a_callback_may_close_its_client_and_go_on(self):
        ended = asyncio.Event()
        async with scripted_client() as (c, lines):
            @c.on("notifications/acme")
            async def leave(params):
                await c.close()
                ended.set()

            lines.put(notification("notifications/acme"))
            await asyncio.wait_for(ended.wait(), 20)

    async def test_progress_that_the_rate_held_back_is_sent_before_the_handler_ends(self):
        app, heard, seen = m.Server(), [], asyncio.Event()

        @app.tool
        async def work(ctx: m.Context) -> str:
            for n in range(1000):
                await ctx.report_progress(n)
            await asyncio.wait_for(seen.wait(), 20)
            return "done"

        def hear(progress, total, message):
            heard.append(progress)
            if progress == 999:
                seen.set()

        async with m.Client(app) as c:
            assert await c.call("work", progress=hear) == "done"

    async def test_a_client_that_is_used_on_another_loop_says_so_at_once(self):
        async with m.Client(demo()) as c:
            def elsewhere():
                with pytest.raises(RuntimeError, match="belongs to another event loop"):
                    asyncio.run(c.call("echo", {}))

            await asyncio.get_running_loop().run_in_executor(None, elsewhere)

    async def test_a_client_does_not_answer_a_line_of_json_that_is_not_a_message(self):
        async with scripted_client() as (c, lines):
            lines.put({"level": "info", "msg": "ready"})
            lines.put(request_of(7, "ping"))
            assert await lines.take() == {"jsonrpc": "2.0", "id": 7, "result": {}}

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="cancellations are not counted")
    async def test_a_call_that_is_cancelled_at_its_timeout_is_cancelled(self):
        async with scripted_client(timeout=5) as (c, lines):
            leap = time_machine()
            call = asyncio.ensure_future(c.call_tool("work"))
            await lines.take()
            asyncio.get_running_loop().call_later(5.5, call.cancel)
            leap(6)
            await asyncio.wait([call])
            assert call.cancelled()

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="cancellations are not counted")
    async def test_a_timeout_takes_its_cancellation_back(self):
        async with scripted_client(timeout=5) as (c, lines):
            leap = time_machine()
            asyncio.get_running_loop().call_soon(leap, 6)
            with pytest.raises(m.RequestTimeout):
                await c.call_tool("work")
            assert asyncio.current_task().cancelling() == 0

    async def test_messages_in_memory_wait_for_room(self):
        ours, theirs = m.memory_transports()
        sent = []

        async def flood():
            for n in range(1500):
                await ours.write(m.notification("acme/news", {"n": n}))
                sent.append(n)

        flooding = asyncio.ensure_future(flood())
        await until(lambda: len(sent) == 1000)
        await idle()
        assert len(sent) == 1000
        found = []
        while len(found) < 1500:
            found += [json.loads(item)["params"]["n"] for item in await theirs.read()]
        await flooding
        assert found == [*range(1500)]

    async def test_a_reader_in_memory_lets_the_loop_run_while_messages_wait(self):
        """A writer in another thread may be faster: the server would answer nothing meanwhile."""
        ours, theirs = m.memory_transports()
        for turn in ("first", "second"):
            await ours.write({"jsonrpc": "2.0", "method": "acme/news"})
            has_run = []
            asyncio.get_running_loop().call_soon(has_run.append, turn)
            assert len(await theirs.read()) == 1 and has_run == [turn]

    async def test_a_message_that_was_served_is_not_kept_until_the_next_one(self):
        class Items(list):
            """To which a weak reference can be made."""

        class Once(Lines):
            async def read(self):
                items = Items(await super().read())
                self.seen = weakref.ref(items)
                return items

        lines = Once()
        serving = asyncio.ensure_future(demo().serve(lines))
        lines.put(PING)
        assert (await lines.take())["id"] == 1
        await idle()
        assert lines.seen() is None
        await lines.close()
        await serving

    async def test_hundreds_of_requests_at_once_in_both_directions(self):
        app = m.Server()

        @app.tool
        async def work(n: int, ctx: m.Context) -> str:
            return f"{n} {len(await ctx.roots())}"

        async with m.Client(app, revision=V4, roots=["/"]) as c:
            found = await asyncio.gather(*[c.call("work", {"n": n}) for n in range(300)])
            assert found == [f"{n} 1" for n in range(300)]

    def test_two_ends_in_memory_in_two_threads(self):
        app, (ours, theirs) = demo(), m.memory_transports()
        running = app.start_in_thread(theirs)

        async def main():
            async with m.Client(ours) as c:
                for n in range(1000):
                    assert await c.call("add", {"a": n, "b": 1}) == n + 1

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # so that each is interrupted anywhere
        try:
            run(main())
        finally:
            sys.setswitchinterval(interval)
            running.stop()

    @pytest.mark.parametrize("way", ["memory", "stdio", "http"])
    async def test_an_argument_that_json_cannot_express_is_an_error_of_the_caller(self, way):
        app = demo()
        async with app.http(port=0) as server:
            target = {"memory": app, "stdio": [sys.executable, "-c", SERVER + "app.run()"], "http": server.url}[way]
            async with m.Client(target) as c:
                for value in (float("nan"), object()):
                    for use in (c.call_tool("echo", {"text": value}), c.notify("acme/x", {"a": value})):
                        with pytest.raises((TypeError, ValueError), match="JSON"):
                            await use
                await c.ping()


########################
# T10. JSON Schema
########################


# A schema, the values that it admits, those that it does not.
VERDICTS = table(r"""
    # 2020-12, validation 6.1: any type
    true | [null, {}, []] | []
    false | [] | [null, 1, {}]
    {} | [null, 1, "x"] | []
    {"type": "integer"} | [1, -3, 1.0, 1e300] | [1.5, true, "1", null, [1]]
    {"type": "number"} | [1, 1.5] | [true, "1"]
    {"type": "boolean"} | [true, false] | [0, 1, "true"]
    {"type": "null"} | [null] | [0, "", false]
    {"type": ["string", "null"]} | ["", null] | [0, []]
    {"type": ["integer", "string"], "minLength": 2} | [3, "ab"] | [1.5, "a"]
    {"enum": [1, "a", null, [1, {"x": 1}]]} | [1, 1.0, "a", null, [1.0, {"x": 1}]] | [true, "1", [1]]
    {"enum": []} | [] | [null]
    {"const": false} | [false] | [0, null]
    {"const": 0} | [0, 0.0, -0.0] | [false]
    {"const": {"a": [1, 2]}} | [{"a": [1, 2.0]}] | [{"a": [2, 1]}, {"a": [1, 2], "b": 1}]
    {"const": 9007199254740992} | [9007199254740992, 9007199254740992.0] | [9007199254740993]
    {"const": {"a": "1,b:2"}} | [] | [{"a": "1", "b": 2}]
    # 6.2: numbers
    {"multipleOf": 2} | [4, 4.0, 0, -2, "x"] | [3, 2.5]
    {"multipleOf": 0.01} | [4.02, 0.07, 3] | [4.021]
    {"multipleOf": 1e-8} | [12391239123] | []
    {"multipleOf": 0.5} | [1e308, 2.5] | [0.3]
    {"minimum": 1.5} | [1.5, 2, "0", null, true] | [1, 1.4]
    {"minimum": -0.0} | [0, 0.0] | [-1]
    {"maximum": 3} | [3, 3.0, -5] | [3.1, 4]
    {"exclusiveMinimum": 3} | [3.1] | [3, 2]
    {"exclusiveMaximum": 3} | [2] | [3, 3.0]
    # 6.3: strings; a length counts characters, not bytes or surrogates
    {"minLength": 2} | ["ab", "\ud83d\ude00x", 1] | ["a", "\ud83d\ude00"]
    {"maxLength": 1.0} | ["", "\ud83d\ude00"] | ["ab"]
    {"pattern": "^a*$"} | ["aa", "", 1] | ["ab", "a\n"]
    {"pattern": "b"} | ["abc"] | ["ac"]
    {"pattern": "^\\d+$"} | ["12"] | ["\u0662"]
    {"pattern": "^\\(?-?[0-9]+\\)?$"} | ["(-3)"] | ["(x)"]
    {"pattern": "^[\\](?i]$"} | ["("] | ["I"]
    # 6.4: arrays
    {"minItems": 1} | [[1], {}, ""] | [[]]
    {"maxItems": 1} | [[1], []] | [[1, 2]]
    {"uniqueItems": true} | [[1, true, "1", [1], null, 0, false]] | [[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]
    {"uniqueItems": false} | [[1, 1]] | []
    {"contains": {"const": 1}} | [[2, 1], {}] | [[], [2, true]]
    {"contains": {"const": 1}, "minContains": 2, "maxContains": 3} | [[1, 1], [1, 1, 1]] | [[1], [1, 1, 1, 1]]
    {"contains": {"const": 1}, "minContains": 0} | [[]] | []
    {"minContains": 2} | [[]] | []
    # 6.5: objects
    {"minProperties": 1} | [{"a": 1}, []] | [{}]
    {"maxProperties": 1} | [{"a": 1}, {}] | [{"a": 1, "b": 2}]
    {"required": ["a"]} | [{"a": null}, [], "a"] | [{}, {"b": 1}]
    {"dependentRequired": {"a": ["b"]}} | [{}, {"b": 1}, {"a": 1, "b": 1}] | [{"a": 1}]
    # core 10.2: in place
    {"allOf": [{"type": "integer"}, {"minimum": 2}]} | [2] | [1, "x"]
    {"anyOf": [{"type": "integer"}, {"minimum": 2}]} | [1, 2.5, "x"] | [1.5]
    {"oneOf": [{"type": "integer"}, {"minimum": 2}]} | [1, 2.5] | [3, 1.5]
    {"not": {"type": "integer"}} | ["x"] | [1]
    {"if": {"minimum": 0}, "then": {"multipleOf": 2}, "else": {"maximum": -10}} | [2, -10] | [1, -1]
    {"then": false, "else": false} | [1] | []
    {"dependentSchemas": {"a": {"required": ["b"]}}} | [{}, {"a": 1, "b": 1}] | [{"a": 1}]
    # what draft-07 had for both is still allowed
    {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}} | [{"b": 1}] | [{"a": 1}, {"c": 1}]
    # core 10.3: inside
    {"prefixItems": [{"type": "string"}], "items": false} | [["a"], [], 5] | [[1], ["a", 1]]
    {"items": {"type": "string"}} | [["a"], {}] | [["a", 1]]
    {"properties": {"a": {"type": "string"}}} | [{}, {"a": "x", "b": 1}, []] | [{"a": 1}]
    {"patternProperties": {"^x": {"type": "null"}}} | [{"xa": null, "a": 1}] | [{"ax": 1, "xa": 1}]
    {"properties": {"a": true}, "patternProperties": {"^x": true}, "additionalProperties": false} | [{"a": 1, "xy": 2}] | [{"b": 1}]
    {"additionalProperties": {"type": "string"}} | [{"a": "x"}] | [{"a": 1}]
    {"propertyNames": {"maxLength": 1}} | [{"a": 1}] | [{"ab": 1}]
    # core 11: unevaluated; what a cousin evaluates does not count, what fails neither
    {"unevaluatedProperties": false} | [1180591620717411303424, {}] | [{"a": 1}]
    {"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false} | [{"a": 1}, {}] | [{"a": 1, "b": 1}]
    {"anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": true}}], "unevaluatedProperties": false} | [{"a": null, "b": 1}, {"b": 1}] | [{"a": 1, "b": 1}]
    {"if": {"required": ["a"], "properties": {"a": true}}, "unevaluatedProperties": false} | [{"a": 1}] | [{"a": 1, "b": 1}]
    {"properties": {"a": true}, "allOf": [{"unevaluatedProperties": false}]} | [{}] | [{"a": 1}]
    {"not": {"not": {"properties": {"a": true}}}, "unevaluatedProperties": false} | [{}] | [{"a": 1}]
    {"anyOf": [{"properties": {"a": true}, "unevaluatedProperties": false}, true], "unevaluatedProperties": false} | [{"a": 1}] | [{"a": 1, "b": 1}]
    {"allOf": [{"unevaluatedProperties": true}], "unevaluatedProperties": false} | [{"a": 1}] | []
    {"prefixItems": [true], "contains": {"type": "null"}, "unevaluatedItems": {"type": "string"}} | [[1, null, "x"]] | [[1, null, 2]]
    # core 8.2: references
    {"$ref": "#/$defs/a%20b~1c~0", "$defs": {"a b/c~": {"type": "null"}}} | [null] | [1]
    {"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}} | [null] | [1]
    {"$ref": "#/allOf/0", "allOf": [{"type": "null"}]} | [null] | [1]
    {"$ref": "#/$defs/a", "minimum": 2, "$defs": {"a": {"type": "integer"}}} | [2] | [1, "x"]
    {"$ref": "#/unknown/a", "unknown": {"a": {"type": "null"}}} | [null] | [1]
    {"properties": {"next": {"$ref": "#"}, "v": {"type": "integer"}}, "required": ["v"]} | [{"v": 1, "next": {"v": 2}}] | [{"v": 1, "next": {}}]
    {"$id": "http://x.test/a", "$ref": "b", "$defs": {"b": {"$id": "b", "type": "null"}}} | [null] | [1]
    {"$id": "http://x.test/a/", "$ref": "b/c", "$defs": {"d": {"$id": "b/", "$defs": {"e": {"$id": "c", "type": "null"}}}}} | [null] | [1]
    {"$id": "http://x.test/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": false, "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node", "properties": {"data": true, "kids": {"items": {"$dynamicRef": "#node"}}}}}} | [{"kids": [{"data": 1}]}] | [{"kids": [{"daat": 1}]}]
    {"$dynamicRef": "#a", "$defs": {"b": {"$anchor": "a", "type": "null"}}} | [null] | [1]
    {"$id": "http://x.test/o", "$ref": "i", "$defs": {"d": {"$dynamicAnchor": "a", "type": "string"}, "i": {"$id": "i", "$dynamicRef": "#a", "$defs": {"t": {"$anchor": "a", "type": "null"}}}}} | [null] | [1, "x"]
    # annotations, and what is unknown, say nothing
    {"format": "email", "title": 5, "x-what": {"type": "null"}} | ["no", 1] | []
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "null"} | [null] | [1]
    {"additionalItems": false, "prefixItems": [true]} | [[1, 2]] | []
    # names that are ours inside say nothing
    {"$plain": ["x"], "$kinds": 5, "$cost": -1, "$mixed": true} | [1, null] | []
    # what draft-07 had otherwise
    {"items": [{"type": "null"}]} | [[null, 1]] | [[1]]
    {"pattern": "^[$|~&]$"} | ["$"] | ["$$"]
    {"$schema": "D7", "items": [{"type": "null"}], "additionalItems": {"type": "string"}} | [[null, "x"]] | [[1], [null, 1]]
    {"$schema": "D7", "items": {"type": "null"}, "additionalItems": false} | [[null, null]] | [[1]]
    {"$schema": "D7", "items": []} | [[1]] | []
    {"$schema": "D7", "items": [], "additionalItems": {"type": "null"}} | [[], [null]] | [[1], [1, null]]
    {"$schema": "D7", "items": [{"type": "null"}, {"$ref": "#/items/0"}], "additionalItems": {"$ref": "#/items/0"}} | [[null, null, null]] | [[null, 1], [null, null, 1]]
    {"$schema": "D7", "definitions": {"a": {"type": "null"}}, "$ref": "#/definitions/a", "minimum": 9} | [null] | [1]
    {"$schema": "D7", "dependencies": {"a": ["b"], "c": {"required": ["d"]}}} | [{"b": 1}, {"c": 1, "d": 1}] | [{"a": 1}, {"c": 1}]
    {"$schema": "D7", "$ref": "#foo", "definitions": {"a": {"$id": "#foo", "type": "null"}}} | [null] | [1]
""")

# A schema, a value, the path to what is wrong with it, and words of the message.
REPORTS = table(r"""
    {"type": "integer"} | "x" | - | expected integer, got string
    {"type": ["integer", "null"]} | 1.5 | - | expected integer or null, got number
    {"properties": {"b": {"type": "integer"}}} | {"b": "x"} | b | expected integer, got string
    {"required": ["b"]} | {} | b | is required
    {"required": ["b", "c", "d"]} | {"c": 1} | b | is required; d: is required
    {"properties": {"p": {"required": ["b", "c"]}}} | {"p": {}} | p.b | is required; p.c: is required
    {"properties": {"a": {"items": {"type": "integer"}}}, "additionalProperties": false, "required": ["d"]} | {"a": [1, "x", "y"], "b": 1} | a[1] | a[1]: expected integer, got string; a[2]: expected integer, got string; b: unexpected property: expected "a"; d: is required
    {"properties": {"items": {"items": {"properties": {"price": {"minimum": 0}}}}}} | {"items": [{}, {}, {"price": -1}]} | items[2].price | at least 0
    {"properties": {"name": {}, "age": {}}, "additionalProperties": false} | {"nmae": 1} | nmae | unexpected property: expected "name" or "age"
    {"additionalProperties": false} | {"c": 1} | c | unexpected property: expected no properties
    {"properties": {"a b": {"type": "null"}}} | {"a b": 1} | ["a b"] | expected null, got integer
    {"enum": ["red", "green"]} | "blue" | - | expected "red" or "green", got "blue"
    {"anyOf": [{"type": "integer"}, {"type": "null"}]} | "x" | - | expected integer or null, got string
    {"oneOf": [{"const": "a"}, {"const": "b"}]} | "c" | - | expected "a" or "b", got "c"
    # the alternative that was meant
    {"anyOf": [{"type": "object", "required": ["id"]}, {"type": "null"}]} | {} | id | is required
    {"anyOf": [{"properties": {"k": {"const": "cat"}, "l": {}}}, {"properties": {"k": {"const": "dog"}}, "required": ["n"]}]} | {"k": "dog"} | n | is required
    {"anyOf": [{"properties": {"k": {"const": "cat"}}}, {"properties": {"k": {"const": "dog"}, "n": {"type": "string"}}}]} | {"k": "dog", "n": 1} | n | expected string, got integer
    {"anyOf": [{"properties": {"k": {"const": "cat"}}}, {"properties": {"k": {"const": "dog"}}}]} | {"k": "cow"} | k | expected "cat" or "dog", got "cow"
    {"items": {"maxLength": 2}} | ["a", "abc"] | [1] | 2 or fewer characters
    {"properties": {"a": {"uniqueItems": true}}} | {"a": [1, 2, 1]} | a | same
""")

# Schemas that are refused when they are compiled, and words of the message.
UNUSABLE = table(r"""
    5 | object or boolean
    null | object or boolean
    [] | object or boolean
    {"type": "int"} | type
    {"type": []} | type
    {"type": ["string", 5]} | type
    {"required": "x"} | required
    {"required": [1]} | required
    {"enum": 5} | enum
    {"minimum": "1"} | minimum
    {"minimum": true} | minimum
    {"multipleOf": 0} | multipleOf
    {"multipleOf": 10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000} | multipleOf
    {"minLength": -1} | minLength
    {"minLength": 1.5} | minLength
    {"maxItems": null} | maxItems
    {"pattern": 5} | string
    {"pattern": "("} | usable
    {"pattern": "\\p{L}"} | usable
    {"patternProperties": {"(": true}} | usable
    {"uniqueItems": "yes"} | uniqueItems
    {"properties": []} | properties
    {"properties": {"a": 5}} | a
    {"allOf": []} | allOf
    {"oneOf": [5]} | oneOf
    {"not": null} | not
    {"contains": true, "minContains": "1"} | minContains
    {"dependentRequired": {"a": [1]}} | a
    {"prefixItems": {}} | prefixItems
    {"unevaluatedProperties": []} | unevaluatedProperties
    {"$ref": 5} | $ref
    {"$ref": "#/nowhere"} | nowhere
    {"$ref": "#nowhere"} | nowhere
    {"$ref": "#/type", "type": "null"} | cannot be resolved
    {"$dynamicRef": "#nowhere"} | nowhere
    {"$ref": "http://x.test/schema"} | $defs
    {"$ref": "other.json"} | $defs
    {"$ref": "http://[", "$id": "http://x"} | usable
    {"$id": 5} | $id
    {"$anchor": 5} | nchor
    {"$schema": 5} | $schema
    {"$schema": "http://json-schema.org/draft-04/schema#"} | $schema
    {"properties": {"a": {"items": {"type": "nothing"}}}} | type
    {"$ref": "#/x/0", "x": [{"type": 5}]} | type
    {"$ref": "#/allOf/2", "allOf": [{}, {}]} | cannot be resolved
    {"$ref": "#/allOf/01", "allOf": [{}, {}]} | cannot be resolved
    {"$ref": "#/allOf/-1", "allOf": [{}, {}]} | cannot be resolved
    {"$ref": "#/allOf/1_0", "allOf": [{}, {}]} | cannot be resolved
""")


def many_ways(word, ways, leaf, depth=40):
    """Return a schema in which `ways` ** `depth` ways lead to the same leaf."""
    steps = {str(i): {word: [{"$ref": f"#/$defs/{i + 1}"}] * ways} for i in range(depth)}
    return {"$ref": "#/$defs/0", "$defs": {**steps, str(depth): leaf}}


def repeat(depth, make=lambda inner: [inner]):
    """Return something inside itself, so many times."""
    return functools.reduce(lambda inner, _: make(inner), range(depth), make(1))


# Schema and value: each would take minutes, or for ever, or all the stack.
BOMBS = {
    "itself": ({"$ref": "#"}, 1),
    "itself, by another": ({"$ref": "#/$defs/a", "$defs": {
        "a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, 1),
    "not itself": ({"not": {"$ref": "#"}}, 1),
    "anyOf": (many_ways("anyOf", 4, {"type": "null", "minimum": 3}), 1),
    "oneOf": (many_ways("oneOf", 4, {"type": "null", "minimum": 3}), 1),
    "allOf": (many_ways("allOf", 3, {"type": "integer"}), 1),
    "required": ({"items": {"anyOf": [{"required": ["x"] * 1000, "minimum": 1}] * 100}}, [{}] * 2000),
    "dependents": ({"items": {"dependentRequired": {f"{i}x": [] for i in range(10_000)}}}, [{}] * 20_000),
    "unique": ({"allOf": [{"uniqueItems": True}] * 5000}, [*range(20_000)]),
    "members": ({"allOf": [{"additionalProperties": {"minimum": 1}}] * 5000},
                {str(i): 1 for i in range(20_000)}),
    "patterns": ({"patternProperties": {f"{i}x": True for i in range(200)}},
                 {str(i): 1 for i in range(20_000)}),
    "pattern": ({"items": {"pattern": "a+b"}}, ["a" * 10_000] * 1000),
    "a long pattern": ({"pattern": "a" * 3_000_000}, 1),
    "constants": ({"allOf": [{"const": "x"}] * 5000}, "y" * 5_000_000),
    "fractions": ({"items": {"allOf": [{"multipleOf": 1e-300}] * 1000}}, [1.5e300] * 10_000),
    "unevaluated": ({"allOf": [{"additionalProperties": True, "unevaluatedProperties": False}] * 500,
                     "unevaluatedProperties": False}, {str(i): 1 for i in range(20_000)}),
    "scopes": ({"$ref": "#/$defs/0", "$defs": {str(i): {
        "$id": f"x:{i}", "$dynamicAnchor": "a", "$dynamicRef": "#a"} for i in range(4000)}}, 1),
    "a deep value": ({"items": {"$ref": "#"}}, repeat(100_000)),
    "a deep value, compared": ({"enum": [1]}, repeat(100_000)),
    "a deep schema": (repeat(100_000, lambda inner: {"items": inner}), 1),
    "long addresses": ({"$id": "x:/" + "p/" * 4000, "$defs": {
        str(i): {"$id": "../" * 20 + f"{i}"} for i in range(9000)}, "not": {}}, 1),
}  # fmt: skip


class TestValidation:
    """JSON Schema 2020-12, and draft-07 where it is declared."""

    @pytest.mark.parametrize("schema, good, bad", VERDICTS)
    def test_a_keyword_admits_what_the_specification_says(self, schema, good, bad):
        schema = schema.replace('"D7"', '"http://json-schema.org/draft-07/schema#"')
        validator = m.compile_schema(json.loads(schema))
        for value in json.loads(good):
            validator.check(value)
        for value in json.loads(bad):
            with pytest.raises(m.SchemaError):
                validator.check(value)

    def test_five_errors_are_told_at_most(self):
        with pytest.raises(m.SchemaError) as caught:
            m.compile_schema({"items": {"type": "integer"}}).check([*"123456"])
        assert re.findall(r"\[\d\]: expected integer", str(caught.value))[4:] == ["[4]: expected integer"]

    @pytest.mark.parametrize("schema, value, path, words", REPORTS)
    def test_an_error_names_the_path_and_what_was_expected(self, schema, value, path, words):
        with pytest.raises(m.SchemaError) as caught:
            m.compile_schema(json.loads(schema)).check(json.loads(value))
        assert caught.value.path.startswith(path.strip("-")) and words in str(caught.value)

    @pytest.mark.parametrize("schema, words", UNUSABLE)
    def test_an_unusable_schema_is_refused_when_it_is_compiled(self, schema, words):
        with pytest.raises(m.SchemaError) as caught:
            m.compile_schema(json.loads(schema))
        assert words in str(caught.value)

    def test_python_values_that_json_does_not_have_are_judged_too(self):
        vast = 10**5000
        for schema, value in (
            ({"enum": [1]}, {1: 2, "a": 3}), ({"const": {"a": 1}}, {None: 1, True: 2}),
            ({"uniqueItems": True}, [{1: 2, "a": object()}, 1, 1]), ({"enum": [1]}, object()),
            ({"properties": {"a": {}}, "additionalProperties": False}, {None: 1}),
            ({"items": {"enum": [1]}}, [vast]), ({"items": {"multipleOf": 0.3}}, [vast + 1]),
            ({"multipleOf": 1}, math.inf), ({"multipleOf": 1}, math.nan), ({"minimum": vast}, 1.5),
            ({"type": "object"}, b""),
        ):  # fmt: skip
            with pytest.raises(m.SchemaError) as caught:
                m.compile_schema(schema).check(value)
            assert len(str(caught.value)) < 200
        m.compile_schema({"type": "integer", "minimum": 1.5}).check(vast)
        members = m.compile_schema({"type": "object", "required": ["a"]})
        members.check(collections.OrderedDict(a=1))  # a class is what it inherits from
        with pytest.raises(m.SchemaError):
            members.check(collections.OrderedDict())

    @pytest.mark.parametrize("name", BOMBS)
    def test_a_hostile_schema_or_value_ends_in_an_error_and_soon(self, name):
        schema, value = BOMBS[name]
        began = time.process_time()
        with pytest.raises(m.SchemaError):
            m.compile_schema(schema).check(value)
        assert time.process_time() - began < 10  # about a second, where they are not ended

    def test_references_into_many_scopes_share_what_they_lead_to(self):
        import tracemalloc

        tracemalloc.start()
        try:
            m.compile_schema(BOMBS["scopes"][0])
            assert tracemalloc.get_traced_memory()[1] < 50e6  # 600 MB, where each has a copy
        finally:
            tracemalloc.stop()

    def test_a_value_whose_schema_cannot_be_decided_is_refused(self):
        """`not` and its kin must not take an error for a no."""
        text, pattern = "a" * 10_001, {"pattern": "a+$"}
        m.compile_schema(pattern).check(text[1:])
        for schema in (
            pattern, {"not": pattern}, {"anyOf": [pattern, {"not": {}}]}, {"if": pattern, "else": False},
            {"contains": pattern}, {"oneOf": [pattern, True]}, {"not": {"not": {"not": pattern}}},
        ):  # fmt: skip
            with pytest.raises(m.SchemaError, match="long"):
                m.compile_schema({"items": schema}).check([[text] if "contains" in schema else text])

    def test_large_values_that_are_honest_pass(self):
        m.compile_schema({"items": {"type": "integer", "minimum": 0}}).check([*range(100_000)])
        m.compile_schema({"type": "array", "items": {"$ref": "#"}}).check(eval("[" * 80 + "]" * 80))
        m.compile_schema({"anyOf": [{"type": "string"}] * 900}).check("x" * 1_000_000)

    def test_python_objects_that_contain_themselves_end_in_an_error(self):
        schema, value = {}, []
        schema["items"] = schema
        value.append(value)
        with pytest.raises(m.SchemaError):
            m.compile_schema(schema)
        for schema in ({"enum": [1]}, {"items": {"$ref": "#"}}):
            with pytest.raises(m.SchemaError):
                m.compile_schema(schema).check(value)
        for _ in range(40):
            schema = {"allOf": [schema, schema]}
        with pytest.raises(m.SchemaError):
            m.compile_schema(schema).check(1)

    def test_objects_of_plain_members_are_judged_like_all_others(self):
        """A schema inside allOf says what it says alone: short ways must not differ."""
        properties = [
            {"a": {"type": "string", "default": "x"}, "b": {"type": "integer", "title": "t"}},
            {"a": {"type": "string", "minLength": 2}, "b": {"type": ["string", "null"]}},
            {"a": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
             "b": {"anyOf": [{"type": "number"}, {"enum": ["xx"]}]}},
        ]  # fmt: skip
        further = [
            {}, {"required": ["a"], "additionalProperties": False}, {"required": ["b", "c"]},
            {"additionalProperties": {"type": "integer"}}, {"maxProperties": 1}, {"not": {"required": ["a"]}},
            {"propertyNames": {"maxLength": 1}}, {"dependentRequired": {"a": ["b"]}}, {"enum": [{}]},
        ]  # fmt: skip
        members = ["x", "xx", 1, 1.0, 1.5, True, None, [1], ["x"], {}]
        values = [{}, *({"a": a, **c} for a in members for c in ({}, {"c": 1}, {"cc": "x"}))]
        values += [{**a, "b": b} for b in members for a in ({}, {"a": "xx"}, {"a": 1})]
        passed = 0
        for named, rest, value in itertools.product(properties, further, values):
            schema, verdicts = {"type": "object", "properties": named, **rest}, []
            for each in (schema, {"allOf": [schema]}):
                try:
                    verdicts.append(m.compile_schema(each).check(value))
                except m.SchemaError as exc:
                    verdicts.append(exc.path)
            assert verdicts[0] == verdicts[1], (schema, value)
            passed += verdicts[0] is None
        assert 100 < passed < 1600

    def test_garbage_gives_schema_errors_and_nothing_else(self):
        """Schemas of keywords with arguments of any make, and values of any make."""
        dice = rng("schemas")
        words = re.findall(r'[$\w]+(?=": )', " ".join(row[0] for row in VERDICTS))
        scraps = json.loads('[null, true, false, 0, -1, 1.5, 1e308, "", "a", "#", "#/$defs/a", "(", "[a",'
                            '"string", "object", "http://[", "~2", "#/%zz", "x:y", "\\ud800"]')  # fmt: skip
        scraps += [10**30, "http://json-schema.org/draft-07/schema#"]

        def thing(depth):
            roll = dice.random()
            if depth == 0 or roll < 0.3:
                return dice.choice(scraps)
            if roll < 0.5:
                return [thing(depth - 1) for _ in range(dice.randrange(4))]
            return {dice.choice("abc" if roll < 0.6 else words): thing(depth - 1)
                    for _ in range(dice.randrange(1, 5))}  # fmt: skip

        compiled = 0
        for _ in range(10_000):
            with contextlib.suppress(m.SchemaError):
                validator = m.compile_schema(thing(4))
                compiled += 1
                for _ in range(3):
                    validator.check(thing(3))
        assert compiled > 500


########################
# T11. Functions
########################


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5
    tags: typing.List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Node:
    value: int
    children: typing.List["Node"] = dataclasses.field(default_factory=list)
    parent: typing.Optional["Node"] = None


@dataclasses.dataclass
class Album:
    cover: "Photo"


@dataclasses.dataclass
class Photo:
    album: typing.Optional[Album] = None
    copies: typing.List["Photo"] = ()


@dataclasses.dataclass
class Area:
    width: int
    height: int
    size: int = dataclasses.field(init=False)

    def __post_init__(self):
        if self.width < 0:
            raise ValueError("width is negative")
        self.size = self.width * self.height


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Pair(typing.NamedTuple):
    left: int
    right: Color = Color.RED


class Movie(typing.TypedDict):
    title: str


class Film(Movie, total=False):
    when: datetime.date


class Text(str):
    def __str__(self):
        return "something else"


UserId = typing.NewType("UserId", int)
Note = types.SimpleNamespace  # what another library puts into Annotated[]

# An annotation, and its schema.
ANNOTATIONS = table(r"""
    str | {"type": "string"}
    int | {"type": "integer"}
    float | {"type": "number"}
    bool | {"type": "boolean"}
    None | {"type": "null"}
    Any | {}
    object | {}
    list | {"type": "array", "items": {}}
    dict | {"type": "object"}
    list[int] | {"type": "array", "items": {"type": "integer"}}
    Sequence[int] | {"type": "array", "items": {"type": "integer"}}
    List[Any] | {"type": "array", "items": {}}
    set[str] | {"type": "array", "items": {"type": "string"}, "uniqueItems": true}
    frozenset | {"type": "array", "items": {}, "uniqueItems": true}
    tuple[int, ...] | {"type": "array", "items": {"type": "integer"}}
    tuple[int, str] | {"type": "array", "items": {}, "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}
    tuple[int, int] | {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    dict[str, int] | {"type": "object", "additionalProperties": {"type": "integer"}}
    Mapping[str, Any] | {"type": "object"}
    Optional[int] | {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    Union[int, str] | {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    Literal["a", "b"] | {"type": "string", "enum": ["a", "b"]}
    Literal[1, "b", None] | {"enum": [1, "b", null]}
    Color | {"type": "string", "enum": ["red", "green"]}
    Level | {"type": "integer", "enum": [1, 2]}
    datetime.datetime | {"type": "string", "format": "date-time"}
    datetime.date | {"type": "string", "format": "date"}
    datetime.time | {"type": "string", "format": "time"}
    uuid.UUID | {"type": "string", "format": "uuid"}
    pathlib.Path | {"type": "string"}
    decimal.Decimal | {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^[+-]?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"}]}
    bytes | {"type": "string", "contentEncoding": "base64"}
    UserId | {"type": "integer"}
    Annotated[int, "how many"] | {"type": "integer", "description": "how many"}
    Annotated[int, {"minimum": 1}, "n"] | {"type": "integer", "minimum": 1, "description": "n"}
    Annotated[str, {"format": "email", "readOnly": True, "x-order": 1}] | {"type": "string", "format": "email", "readOnly": true, "x-order": 1}
    Annotated[str, m.Header("Region")] | {"type": "string", "x-mcp-header": "Region"}
    # as annotated_types, msgspec.Meta and pydantic.Field have them
    Annotated[int, Note(ge=1, gt=None), Note(lt=9), Note(multiple_of=2)] | {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2}
    Annotated[float, Note(gt=0.5, le=2, description="d", title="T")] | {"type": "number", "exclusiveMinimum": 0.5, "maximum": 2, "description": "d", "title": "T"}
    Annotated[str, Note(description="d", metadata=[Note(pattern="^a"), Note(max_length=4)])] | {"type": "string", "description": "d", "pattern": "^a", "maxLength": 4}
    Annotated[int, Note(examples=[1, 2])] | {"type": "integer", "examples": [1, 2]}
    Annotated[int, Note(deprecated=True, json_schema_extra={"x-unit": "m"})] | {"type": "integer", "deprecated": true, "x-unit": "m"}
    Annotated[int, Note(discriminator="kind")] | {"type": "integer", "discriminator": {"propertyName": "kind"}}
    Annotated[Dict[str, Any], Note(max_length=2)] | {"type": "object", "maxProperties": 2}
    Annotated[List[Any], Note(min_length=2)] | {"type": "array", "items": {}, "minItems": 2}
    Annotated[Optional[List[Any]], Note(min_length=2)] | {"anyOf": [{"type": "array", "items": {}}, {"type": "null"}], "minItems": 2}
    Annotated[int, None, Note(ge=1)] | {"type": "integer", "minimum": 1}
    Annotated[decimal.Decimal, Note(le=decimal.Decimal("9.99"))] | {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^[+-]?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"}], "maximum": 9.99}
    Point | {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.5}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["x"]}
    Pair | {"type": "object", "properties": {"left": {"type": "integer"}, "right": {"type": "string", "enum": ["red", "green"], "default": "red"}}, "required": ["left"]}
    Film | {"type": "object", "properties": {"title": {"type": "string"}, "when": {"type": "string", "format": "date"}}, "required": ["title"]}
    Area | {"type": "object", "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}}, "required": ["width", "height"]}
""")

# An annotation, the JSON of an argument, its Python value, and the JSON of that if it differs.
CONVERSIONS = table(r"""
    int | 3.0 | 3
    list[int] | [1.0, 2] | [1, 2]
    float | 1 | 1.0
    Optional[list[float]] | [1, 2.5] | [1.0, 2.5]
    Union[int, float] | 1 | 1
    bytes | "aGk=" | b"hi"
    pathlib.PurePosixPath | "/a/b" | pathlib.PurePosixPath("/a/b")
    uuid.UUID | "00000000-0000-0000-0000-000000000001" | uuid.UUID(int=1)
    decimal.Decimal | "0.10" | decimal.Decimal("0.10")
    decimal.Decimal | 0.5 | decimal.Decimal("0.5") | "0.5"
    datetime.datetime | "2026-07-28T10:00:00Z" | datetime.datetime(2026, 7, 28, 10, tzinfo=utc) | "2026-07-28T10:00:00+00:00"
    datetime.datetime | "2026-07-28T10:00:00.500000+00:00" | datetime.datetime(2026, 7, 28, 10, 0, 0, 500000, utc)
    datetime.date | "2026-07-28" | datetime.date(2026, 7, 28)
    datetime.time | "10:30:00Z" | datetime.time(10, 30, tzinfo=utc) | "10:30:00+00:00"
    Color | "green" | Color.GREEN
    Level | 2 | Level.HIGH
    Literal[Color.RED] | "red" | Color.RED
    set[str] | ["b", "a"] | {"a", "b"} | ["a", "b"]
    tuple[int, ...] | [1, 2] | (1, 2)
    tuple[Color, bytes] | ["red", "aGk="] | (Color.RED, b"hi")
    dict[str, bytes] | {"red": "aGk="} | {"red": b"hi"}
    Optional[datetime.date] | null | None
    Optional[datetime.date] | "2026-07-28" | datetime.date(2026, 7, 28)
    Union[Point, Pair] | {"left": 1} | Pair(1) | {"left": 1, "right": "red"}
    Union[Pair, Point] | {"x": 1} | Point(1) | {"x": 1, "y": 0.5, "tags": []}
    Union[int, str] | "3" | "3"
    # the first that fits and can be read
    Union[datetime.date, str] | "2026-02-30" | "2026-02-30"
    Union[str, datetime.date] | "2026-02-03" | "2026-02-03"
    Film | {"title": "M", "when": "1931-05-11"} | {"title": "M", "when": datetime.date(1931, 5, 11)}
    Node | {"value": 1, "children": [{"value": 2, "children": [], "parent": null}], "parent": null} | Node(1, [Node(2)])
    Optional[Node] | {"value": 1, "parent": {"value": 2.0}} | Node(1, [], Node(2)) | {"value": 1, "children": [], "parent": {"value": 2, "children": [], "parent": null}}
    UserId | 5 | 5
    Annotated[Color, "which"] | "red" | Color.RED
    # results go by their values
    Any | 1 | 1 | 1
""")

# A Python value that a tool returns, and its JSON.
RETURNED = table(r"""
    {1: 1, "a": 2, Color.RED: 3, datetime.date(2026, 1, 1): 4} | {"1": 1, "a": 2, "red": 3, "2026-01-01": 4}
    {"v": [None, True, 1, 1.5, "x", [1, [2]], {"b": []}]} | {"v": [null, true, 1, 1.5, "x", [1, [2]], {"b": []}]}
    {"v": [Level.LOW, range(3), {"b", "a"}, bytearray(b"hi"), Text("x")]} | {"v": [1, [0, 1, 2], ["a", "b"], "aGk=", "x"]}
    {"v": Area(2, 3)} | {"v": {"width": 2, "height": 3, "size": 6}}
    {"v": [datetime.timedelta(1).__class__.__name__, uuid.UUID(int=1)]} | {"v": ["timedelta", "00000000-0000-0000-0000-000000000001"]}
    {"v": types.MappingProxyType({"a": (1, 2)})} | {"v": {"a": [1, 2]}}
""")

# An annotation, the JSON of an argument, the path to what is wrong with it, words of the message.
UNREADABLE = table(r"""
    bytes | "a" | x | usable
    datetime.date | "zz" | x | zz
    datetime.date | "1.1.2024" | x | '1.1.2024'
    datetime.datetime | "2025-13-01T00:00:00Z" | x | month must be
    Area | {"width": -1, "height": 1} | x | width is negative
    list[Area] | [{"width": 1, "height": 1}, {"width": -1, "height": 1}] | x[1] | width
    dict[str, List[datetime.date]] | {"a": ["2026-01-01", "x"]} | x.a[1] | usable
    Optional[uuid.UUID] | "x" | x | usable
    Node | {"value": 1, "children": [{"value": "x"}]} | x.children[0].value | expected integer
    Node | {"value": 1, "parent": {"value": 1, "odd": 1}} | x.parent.odd | unexpected property
    Point | {"x": 1, "z": 2} | x.z | unexpected property
""")

# A function, and the schema of its arguments without their type.
SIGNATURES = table(r"""
    def f(): ... | {"properties": {}}
    def f(a, b=1, *, c): ... | {"properties": {"a": {}, "b": {"default": 1}, "c": {}}, "required": ["a", "c"]}
    def f(a: "int", b: "Optional[str]" = None): ... | {"properties": {"a": {"type": "integer"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}}, "required": ["a"]}
    def f(a: "List[Point]" = ()): ... | {"properties": {"a": {"type": "array", "items": POINT, "default": []}}}
    def f(a: int = None): ... | {"properties": {"a": {"type": "integer"}}}
    def f(a: float = math.nan, b=object()): ... | {"properties": {"a": {"type": "number"}, "b": {}}}
    def f(a: bytes = b"hi"): ... | {"properties": {"a": {"type": "string", "contentEncoding": "base64", "default": "aGk="}}}
    def f(a: int, **rest): ... | {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
    def f(a: int, **rest: int): ... | {"properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": {"type": "integer"}}
    def f(a, ctx): ... | {"properties": {"a": {}}, "required": ["a"]}
    def f(a, *, ctx=None): ... | {"properties": {"a": {}}, "required": ["a"]}
    def f(a, c: m.Context): ... | {"properties": {"a": {}}, "required": ["a"]}
    def f(a, c: "Optional[Context]" = None): ... | {"properties": {"a": {}}, "required": ["a"]}
    def f(a, c: "Context|None" = None): ... | {"properties": {"a": {}}, "required": ["a"]}
    def f(a, c: Annotated[m.Context, "x"]): ... | {"properties": {"a": {}}, "required": ["a"]}
    def f(a, context): ... | {"properties": {"a": {}, "context": {}}, "required": ["a", "context"]}
    def f(ctx: str): ... | {"properties": {"ctx": {"type": "string"}}, "required": ["ctx"]}
    f = functools.partial(lambda a, b: 1, b=5) | {"properties": {"a": {}}, "required": ["a"]}
    f = functools.partial(lambda a, b: 1, 5) | {"properties": {"b": {}}, "required": ["b"]}
    f = Callables().method | {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
    f = Callables.of_class | {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
    f = Callables.static | {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
    f = Callables() | {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
    f = wrapped(Callables().method) | {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
    f = functools.partial(Callables.method, Callables()) | {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
""")

# A function that JSON cannot fill, and words of the error.
UNFILLABLE = table(r"""
    def f(x: "Nowhere"): ... | f() x Nowhere module level
    def f(x: "int +"): ... | f() x
    def f(x: threading.Thread): ... | f() x dataclass
    def f(*x): ... | f(): every argument: list in place of *x
    def f(x, /): ... | f(): every argument no `/` after 'x'
    def f(x: int = dataclasses.field(default=3)): ... | f() x Annotated[]
    def f() -> "Nowhere": ... | f() Nowhere
    def f() -> threading.Thread: ... | f(): return value output_schema= structured=False
    def f(x: dict[int, str]): ... | f() x strings
    def f(x: [int]): ... | f() x
    def f(x: typing.TypeVar("T")): ... | f() x
    def f(x: Callable[[], int]): ... | f() x
""")

# A docstring, what is left of it, and the descriptions of parameters.
DOCSTRINGS = table(r"""
    S.\n\nArgs:\n    a (int): the first: a number\n        that goes on\n\n        and on\n    b: the second\n    **rest: ignored\n\nReturns:\n    the sum | S.\n\nReturns:\n    the sum | {"a": "the first: a number that goes on and on", "b": "the second"}
    S.\n\nArgs:\n    a - first\n    b -- second | S. | {"a": "first", "b": "second"}
    S.\n\nArgs:\n    a: first - with a dash | S. | {"a": "first - with a dash"}
    S.\n\nArgs:\n    a-b: first | S.\n\nArgs:\n    a-b: first | {}
    S.\n\nArgs:\n    Any number of words. | S.\n\nArgs:\n    Any number of words. | {}
    S.\n\nArgs:\n    a: x\n    words\n\nReturns:\n    y | S.\n\nArgs:\n    a: x\n    words\n\nReturns:\n    y | {"a": "x"}
    Do it. | Do it. | {}
""")

# The annotation of a result, and the schema of its structured content; - if it has none.
OUTPUTS = table(r"""
    int | {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    list[int] | {"type": "object", "properties": {"result": {"type": "array", "items": {"type": "integer"}}}, "required": ["result"]}
    dict[str, int] | {"type": "object", "additionalProperties": {"type": "integer"}}
    Movie | {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    None | -
    Any | -
    object | -
    bytes | -
    Optional[bytes] | -
    list | -
    List[Any] | -
    m.Image | -
    list[m.Image] | -
    Union[str, m.Image] | -
    Optional[m.Link] | -
    Annotated[m.Message, "x"] | -
""")

# The schema of an argument, what a model sends, and what the function takes; - if it is refused.
RELAXED = table(r"""
    {"type": "integer"} | "3" | 3
    {"type": "integer"} | "-3" | -3
    {"type": "integer"} | "3.0" | 3.0
    {"type": "integer"} | "3.5" | -
    {"type": "integer"} | "+3" | -
    {"type": "integer"} | " 3" | 3
    {"type": "integer"} | "" | absent
    {"type": "string", "enum": ["a"]} | "" | absent
    {"type": "integer"} | "\u0663" | -
    {"type": "integer"} | "1_0" | -
    {"type": "integer"} | "true" | -
    {"type": "integer"} | 3 | 3
    {"type": "integer", "minimum": 5} | "3" | -
    {"type": "integer", "minimum": 5} | "6" | 6
    {"type": "number"} | "2.5e1" | 25.0
    {"type": "number"} | "NaN" | -
    {"type": "boolean"} | "true" | true
    {"type": "boolean"} | "True" | -
    {"type": "boolean"} | "1" | -
    {"type": "array"} | "[1, 2]" | [1, 2]
    {"type": "object"} | "{\"a\": 1}" | {"a": 1}
    {"type": "object"} | "[1]" | -
    {"type": "object"} | "{" | -
    {"type": ["integer", "null"]} | "null" | null
    {"anyOf": [{"type": "integer"}, {"type": "null"}]} | "3" | 3
    {"enum": [1, 2]} | "2" | 2
    {"$ref": "#/$defs/N"} | "{\"v\": 1}" | {"v": 1}
    {"allOf": [{"type": "integer"}]} | "3" | 3
    {"type": "integer"} | null | absent
    {"type": ["null", "integer"]} | null | null
    # where a string may be meant, it is
    {"type": "string"} | "3" | "3"
    {"type": ["integer", "string"]} | "3" | "3"
    {} | "3" | "3"
    true | "3" | "3"
    {"anyOf": [{"type": "integer"}, {}]} | "3" | "3"
    {"enum": [1, "1"]} | "1" | "1"
    {"$ref": "#/$defs/S"} | "3" | "3"
""")


class Callables:
    """Say it."""

    def method(self, a: int):
        """Do it."""
        return [a]

    @classmethod
    def of_class(cls, a: int):
        return [a]

    @staticmethod
    def static(a: int):
        return [a]

    def __call__(self, a: int):
        return [a]


def wrapped(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


def names_around():
    """Return the names that the sources in the tables use."""
    return {**vars(typing), "utc": datetime.timezone.utc, "decimal": decimal, **globals()}


def run_source(source):
    """Execute a source without this file's `from __future__`; return its names."""
    names = names_around()
    exec(compile(source, "<test>", "exec", dont_inherit=True), names)
    return names


async def define(fn, **options):
    """Return how a tool is listed."""
    app = m.Server()
    app.add_tool(fn, name="f", **options)
    async with m.Client(app) as c:
        (tool,) = await c.list_tools()
    return tool


async def value_of(fn, arguments, **options):
    """Return the value of a call to a tool, or the text of its error."""
    app = m.Server()
    app.add_tool(fn, name="f", **options)
    async with m.Client(app) as c:
        try:
            return await c.call("f", arguments)
        except m.ToolError as exc:
            return str(exc)


class TestAnnotations:
    """What a type says in JSON, and how values cross."""

    async def test_an_annotation_has_this_schema(self):
        found = {}
        for annotation, _ in ANNOTATIONS:
            tool = await define(run_source(f"def f(x: {annotation}): ...")["f"])
            found[annotation] = tool["inputSchema"]["properties"]["x"]
        assert found == {annotation: json.loads(schema) for annotation, schema in ANNOTATIONS}

    async def test_a_value_crosses_and_comes_back(self):
        for annotation, given, text, *back in CONVERSIONS:
            names = run_source(f"taken = []\ndef f(x: {annotation}): taken.append(x); return [x]")
            answer = await value_of(names["f"], {"x": json.loads(given)}, structured=False)
            value, (taken,) = eval(text, names_around()), names["taken"]
            assert taken == value and type(taken) is type(value), annotation
            if annotation != "bytes":  # they are content in a list
                assert json.loads(answer) == [json.loads(back[0] if back else given)], annotation

    async def test_a_result_becomes_json_by_its_values(self):
        for value, answer in RETURNED:
            assert await value_of(run_source(f"def f(): return {value}")["f"], {}) == json.loads(answer)
        loop = []
        loop.append(loop)
        for wrong in (object(), [1, {"b": object()}], loop, math.nan):
            try:
                answer = await value_of(lambda wrong=wrong: {"a": wrong}, {})
            except m.RemoteError:  # it could not be sent
                continue
            assert isinstance(answer, str), wrong

    async def test_an_argument_that_cannot_be_read_is_an_error_with_its_path(self):
        for annotation, given, path, words in UNREADABLE:
            error = await value_of(run_source(f"def f(x: {annotation}): ...")["f"], {"x": json.loads(given)})
            assert f"{path}: " in error and words in error, annotation

    async def test_a_result_has_the_schema_of_its_annotation(self):
        found = {}
        for annotation, _ in OUTPUTS:
            tool = await define(run_source(f"def f() -> {annotation}: ...")["f"])
            found[annotation] = tool.get("outputSchema", "-")
        assert found == {a: schema if schema == "-" else json.loads(schema) for a, schema in OUTPUTS}

    async def test_records_in_results_fit_the_schema_that_was_told(self):
        for made in ("Node(1, [Node(2)])", "Point(1)", "Area(1, 2)", "Pair(1)"):
            name = made.partition("(")[0]
            fn = run_source(f"def f() -> {name}: return {made}")["f"]
            tool, value = await define(fn), await value_of(fn, {})
            m.compile_schema(tool["outputSchema"]).check(value)
            assert "value" in value or tool["outputSchema"]["properties"].keys() <= value.keys()
            fn = run_source(f"def f() -> Optional[{name}]: return {made}")["f"]
            assert await value_of(fn, {}) == value

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="no such names")
    async def test_members_may_be_required_or_not_also_where_annotations_are_strings(self):
        source = (
            "class T(TypedDict):\n  a: int\n  b: NotRequired[bytes]\n"
            "class S(T, total=False):\n  c: Required['int']\n"
            "  d: 'typing.Annotated[typing.Required[int], {}]'\n  e: int\n"
            "class Q(TypedDict):\n  a: 'int'\n  b: 'typing.NotRequired[int]'\n"
            "def f(s: S, q: Q): return {'b': len(s['b'])}"
        )
        fn = run_source(source)["f"]
        properties = (await define(fn))["inputSchema"]["properties"]
        required = {name: {*schema["required"]} for name, schema in properties.items()}
        assert required == {"s": {"a", "c", "d"}, "q": {"a"}}
        assert await value_of(fn, {"s": {"a": 1, "b": "aGk=", "c": 1, "d": 1}, "q": {"a": 1}}) == {"b": 2}

    @pytest.mark.skipif(sys.version_info < (3, 10), reason="no such syntax")
    async def test_unions_may_have_a_bar(self):
        await self.check_unions("def f(x: int | None, y: 'list[str] | int' = 1): ...")

    async def test_unions_of_later_annotations_may_have_a_bar_on_every_python(self):
        await self.check_unions("def f(x: 'int | None', y: 'list[str] | int' = 1): ...")

    async def check_unions(self, code):
        tool = await define(run_source(code)["f"])
        properties = tool["inputSchema"]["properties"]
        assert properties["x"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
        assert properties["y"]["anyOf"][0]["type"] == "array"

    async def test_of_a_union_of_open_classes_the_one_that_knows_most_members_is_made(self):
        names = run_source("""
class Dates(typing.TypedDict, total=False):
    after: datetime.date
class Tags(typing.TypedDict):
    tags: typing.List[bytes]
def f(where: typing.Union[Dates, Tags, dict]) -> str: return repr(where)
""")
        for given, made in [
            ({"tags": ["aGk="]}, {"tags": [b"hi"]}), ({}, {}), ({"x": 1}, {"x": 1}),
            ({"after": "2026-01-02", "x": 1}, {"after": datetime.date(2026, 1, 2), "x": 1}),
        ]:  # fmt: skip
            assert await value_of(names["f"], {"where": given}) == repr(made)

    async def test_an_alias_of_an_enum_is_listed_once(self):
        fn = run_source("class Level(enum.Enum): WARN = WARNING = 'warn'\ndef f(x: Level) -> str: return x.name")["f"]
        assert (await define(fn))["inputSchema"]["properties"]["x"]["enum"] == ["warn"]
        assert await value_of(fn, {"x": "warn"}) == "WARN"

    async def test_a_single_parameter_that_takes_all_arguments_is_of_its_type(self):
        fn = run_source("def f(p: Point) -> str: return repr(p)")["f"]
        schema = {"properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
        assert await value_of(fn, {"x": 1, "y": 2}, input_schema=schema) == "Point(x=1, y=2.0, tags=[])"

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="no such syntax")
    async def test_a_type_statement_may_be_recursive(self):
        source = "type Tree = dict[str, Tree] | int\ntype Id = int\ndef f(t: Tree, i: Id): return {'t': t, 'i': i}"
        fn = run_source(source)["f"]
        assert await value_of(fn, {"t": {"a": {"b": 1}}, "i": 2.0}) == {"t": {"a": {"b": 1}}, "i": 2}
        assert "t" in await value_of(fn, {"t": {"a": {"b": "x"}}, "i": 2})

    async def test_nested_unions_are_read_in_time_that_grows_with_the_value(self):
        value, began = None, time.process_time()
        for n in range(25):
            value = {"value": n, "parent": value}
        assert await value_of(run_source("def f(x: Node) -> int: return x.value")["f"], {"x": value}) == 24
        assert time.process_time() - began < 10  # 2 ** 25 readings take minutes


class TestHosts:
    """What hosts and models make of our schemas: see their converters, and what models send."""

    async def test_no_schema_has_what_breaks_a_converter(self):
        """google-genai: no boolean; AutoGen, Semantic Kernel: one type; VS Code, Gemini: items."""
        def look(schema):
            if isinstance(schema, list):
                return [look(part) for part in schema]
            if not isinstance(schema, dict):
                return None
            assert not isinstance(schema.get("additionalProperties"), bool), source
            assert not isinstance(schema.get("type"), list), source
            assert schema.get("type") != "array" or "items" in schema, source
            return [look(part) for part in schema.values()]

        for source in [*(row[0] for row in ANNOTATIONS), "Node", "List[Node]"]:
            look((await define(run_source(f"def f(x: {source}): ...")["f"]))["inputSchema"])

    async def test_a_class_that_contains_itself_is_described_once_and_read_whole(self):
        fn = run_source("def f(x: Node, more: List[Node] = ()) -> int: return x.parent.value")["f"]
        schema = (await define(fn))["inputSchema"]
        assert schema["properties"]["x"] == {"$ref": "#/$defs/Node"}
        assert schema["$defs"].keys() == {"Node"}
        assert await value_of(fn, {"x": {"value": 1, "parent": {"value": 2}}}) == 2
        odd = {"value": 1, "parent": {"value": 2, "odd": 3}}
        assert "x.parent.odd: unexpected property" in await value_of(fn, {"x": odd})

    async def test_a_class_may_contain_itself_through_one_that_contains_itself(self):
        def f(x: Album) -> str: return f"{x.cover.album.cover.copies}"  # fmt: skip

        assert (await define(f))["inputSchema"]["$defs"].keys() == {"Album", "Photo"}
        assert await value_of(f, {"x": {"cover": {"album": {"cover": {"copies": []}}}}}) == "[]"

    async def test_the_schema_of_many_classes_grows_with_their_number_only(self):
        cls = Point
        for n in range(40):  # each uses the one before twice
            cls = dataclasses.make_dataclass(f"Layer{n}", [("left", cls), ("right", cls)])

        def f(x): return 1  # fmt: skip

        f.__annotations__ = {"x": cls}
        tool = await define(f)
        assert len(json.dumps(tool)) < 100_000
        assert "unexpected" in await value_of(f, {"x": {"odd": 1}})

    async def test_a_default_that_is_a_bool_makes_its_parameter_a_boolean(self):
        def purge(folder, delete=False, anything: typing.Any = False):
            return f"{folder} {delete} {anything}"

        assert (await define(purge))["inputSchema"]["properties"]["delete"] == {"type": "boolean", "default": False}
        assert await value_of(purge, {"folder": "a", "delete": "false", "anything": "no"}) == "a False no"
        assert await value_of(purge, {"folder": "a", "delete": "no"}) == "delete: expected boolean, got string"
        schema = {"type": "object"}  # decides, where there is one
        assert await value_of(purge, {"folder": "a", "delete": "no"}, input_schema=schema) == "a no False"

    async def test_a_bound_name_may_be_one_of_the_schema_where_a_dict_takes_all(self):
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        fn = functools.partial(lambda name, arguments: f"{name} {arguments}", name="a")
        assert await value_of(fn, {"name": "z"}, input_schema=schema) == "a {'name': 'z'}"

    @pytest.mark.parametrize("text, total", [("7", 70_000), ("", 0)])
    async def test_ten_thousand_arguments_as_text_are_understood_in_one_pass(self, text, total):
        schema, given = {"additionalProperties": {"type": "integer"}}, {f"a{n}": text for n in range(10_000)}
        began = time.process_time()
        answer = await value_of(lambda args: {"sum": sum(args.values())}, given, input_schema=schema)
        assert answer == {"sum": total}
        assert time.process_time() - began < 3  # 6 s or more, where each text is a pass over all

    async def test_an_empty_text_for_what_was_not_filled_in_is_left_out(self):
        def f(n: int = 5, color: typing.Literal["red", "blue"] = "red", text: str = "x") -> str:
            return f"{n} {color} {text!r}"

        assert await value_of(f, {"n": "", "color": "", "text": ""}) == "5 red ''"

        def needed(n: int) -> int:
            return n

        assert "n: expected integer, got string" in await value_of(needed, {"n": ""})

    async def test_further_arguments_are_checked_as_they_are_annotated(self):
        fn = run_source("def f(**more: datetime.date) -> str: return str({**more})")["f"]
        assert "datetime.date(2026, 1, 2)" in await value_of(fn, {"a": "2026-01-02"})
        assert "a: expected string, got integer" in await value_of(fn, {"a": 1})

    @pytest.mark.parametrize("kind, like", [
        ("date", "9999-12-31"), ("datetime", "9999-12-31T23:59:59.999999"), ("time", "23:59:59.999999"),
    ])  # fmt: skip
    async def test_the_error_of_a_text_that_is_not_a_date_or_a_time_shows_one(self, kind, like):
        fn = run_source(f"def f(when: datetime.{kind}) -> str: return when.isoformat()")["f"]
        for text in ("tomorrow", "x" * 10_000):
            error = await value_of(fn, {"when": text})
            assert f"a {kind} looks like {like}" in error and len(error) < 300
        assert await value_of(fn, {"when": like}) == like

    @pytest.mark.parametrize("text", ["10:30:00.5Z", "10:30:00.500000000Z", "10:30:00.50+00:00"])
    async def test_a_fraction_of_a_second_may_have_any_number_of_digits(self, text):
        """RFC 3339 section 5.6"""
        fn = run_source("def f(t: datetime.time) -> int: return t.microsecond")["f"]
        assert await value_of(fn, {"t": text}) == 500000

    @pytest.mark.parametrize("data", [
        {"": "0", "name": "tea"}, {None: ["x"], "type": "tea"}, {"type": "text", "text": 5},
        {"type": ["text"], "text": "a"}, {"type": "text", "text": {"content": "rich text"}},
        {"type": "resource", "resource": "aws_s3"},
    ])
    async def test_data_that_only_resemble_a_content_block_are_data(self, data):
        result = await value_of(lambda: [data], {}, structured=False)
        assert isinstance(result, str)

    @pytest.mark.parametrize("result", [{"content": "hi", "structuredContent": {"a": 1}}, {"content": ["hi"], "isError": True}])
    async def test_a_whole_result_must_have_a_list_of_blocks(self, result):
        assert "must be a list of blocks" in await value_of(lambda: result, {})

    async def test_a_pair_of_content_and_data_is_both_as_in_the_sdk(self):
        app, block = m.Server(), {"type": "text", "text": "one row"}
        app.add_tool(lambda: ([block, "b"], {"rows": 1}), name="pair", output_schema={"required": ["rows"]})
        app.add_tool(lambda: (["a", "b"], {"rows": 1}), name="data")
        app.add_tool(lambda: ([block], {"day": datetime.date(2026, 11, 30)}), name="day")

        @app.tool
        def typed() -> typing.Tuple[typing.List[dict], dict]:
            return [block], {"day": "2026-11-30"}

        async with m.Client(app) as c:
            result = await c.call_tool("pair")
            assert result["content"] == [block, {"type": "text", "text": "b"}] and result["structuredContent"] == {"rows": 1}
            assert await c.call("data") == '[["a","b"],{"rows":1}]'
            assert await c.call("typed") == [[{"type": "text", "text": "one row"}], {"day": "2026-11-30"}]
            assert (await c.call_tool("day"))["structuredContent"] == {"day": "2026-11-30"}

    async def test_data_that_only_resemble_the_contents_of_a_resource_are_data(self):
        app, row = m.Server(), {"uri": "x://a", "text": "b", "likes": 3}
        app.add_resource("x://row", lambda: row, name="row")
        async with m.Client(app) as c:
            assert json.loads(await c.read("x://row")) == row

    BLOB = {"type": "resource", "resource": {"uri": "x://a", "blob": "aGk=", "mimeType": "image/png"}}

    @pytest.mark.parametrize("block, known", [
        ({"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}},
         {"type": "text", "text": '{"type":"tool_use","id":"1","name":"add","input":{"a":1}}'}),
        ({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
         {"type": "text", "text": "[audio, audio/wav, 4 characters of base64]"}),
        (BLOB, BLOB),
    ])  # fmt: skip
    async def test_an_old_client_gets_as_text_what_it_does_not_know(self, block, known):
        app = m.Server()
        app.add_prompt(lambda: [{"role": "user", "content": [block, "hi"]}, None], name="p")
        async with m.Client(app, revision="2024-11-05") as c:
            (message, _) = (await c.get_prompt("p"))["messages"]
        assert message["content"] == known

    @pytest.mark.parametrize("answer, action", [
        (True, "accept"), ({"action": "accept"}, "accept"), (False, "decline"), (None, "decline"), ("cancel", "cancel"),
        ("no", None), ("", None), ({"action": "foo"}, None),
    ])  # fmt: skip
    async def test_only_consent_opens_a_page(self, answer, action):
        app = asking_app(lambda ctx: ctx.elicit_url("Pay?", "https://pay.example/1"))
        async with m.Client(app, elicit_url=lambda message, url: answer) as c:
            with contextlib.suppress(m.MCPError):
                await c.call("tool")
        assert [seen.action for seen in app.seen if isinstance(seen, m.Elicited)] == [action] * (action is not None)

    async def test_ssl_cannot_be_switched_off(self):
        with pytest.raises(ValueError, match="certificates are always verified"):
            async with m.Client("https://127.0.0.1:1/mcp", ssl=False):
                pass

    async def test_a_budget_that_is_spent_inside_a_text_is_reported_as_such(self):
        schema = {"properties": {"a": {"type": "array", "items": {"pattern": "x$"}}}}
        text = json.dumps(["x" * 10000] * 5)
        assert "takes too long" in await value_of(lambda args: 1, {"a": text}, input_schema=schema)
        schema, text = {"additionalProperties": {"type": "array"}}, f"[[{'0,' * 120_000}0]]"
        many = {f"a{n}": text for n in range(26)}  # each is short enough for decode()
        assert "takes too long" in await value_of(lambda args: 1, many, input_schema=schema)

    async def test_a_table_may_have_many_integers_that_are_read_as_floats(self):
        last = run_source("def f(rows: list[list[Union[str, float, None]]]) -> str: return repr(rows[-1])")["f"]
        assert await value_of(last, {"rows": [["a", 1, 2.5, None]] * 30_000}) == "['a', 1.0, 2.5, None]"
        assert "rows[0][0]: is not usable: int too large" in await value_of(last, {"rows": [[10**399]]})

    async def test_a_model_that_is_a_union_is_made_of_plain_values(self):
        def roots(key: Key, more: typing.List[Key]) -> str:
            return repr([key.root, *(each.root for each in more)])

        assert await value_of(roots, {"key": 5, "more": ["a", 1]}) == "[5, 'a', 1]"

    async def test_a_schema_that_refers_to_itself_alone_fails_and_says_so(self):
        circle = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}
        said = await value_of(lambda args: 1, {"x": 1}, input_schema={"type": "object", **circle})
        assert said == "is not usable: it takes too long, is nested too deep, or refers to itself"

    async def test_a_class_has_no_json(self):
        assert "type has no JSON form" in await value_of(lambda: Point, {})

    async def test_a_row_of_sqlite_keeps_the_names_of_its_columns(self):
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            database.row_factory = sqlite3.Row
            rows = database.execute("SELECT 1 AS a, 'x' AS b").fetchall()
        assert await value_of(lambda: rows, {}) == '[{"a":1,"b":"x"}]'

    async def test_a_field_whose_default_is_none_may_be_null_in_a_result(self):
        app = m.Server()
        app.add_tool(run_source(
            "@dataclasses.dataclass\nclass Host:\n    name: str\n    added: datetime.date = None\n    x: Any = None\n"
            "def find() -> Host: return Host('a')")["find"])  # fmt: skip
        async with m.Client(app) as c:
            [tool] = await c.list_tools()
            assert tool["outputSchema"]["properties"] == {
                "name": {"type": "string"}, "x": {"default": None},
                "added": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
            }  # fmt: skip
            assert await c.call("find") == {"name": "a", "added": None, "x": None}

    async def test_a_list_that_is_none_is_null(self):
        fn = run_source("def f() -> list: return None")["f"]
        assert await value_of(fn, {}) is None

    async def test_a_client_that_cannot_choose_several_values_is_not_asked_to(self):
        app = asking_app(lambda ctx: ctx.elicit("?", typing.List[typing.Literal["a", "b"]]))
        async with m.Client(app, revision="2025-06-18", elicit=lambda message, form: {}) as c:
            with pytest.raises(m.MCPError, match="a client of revision 2025-06-18 cannot choose several"):
                await c.call("tool")

    @pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
    async def test_an_optional_answer_that_is_left_blank_is_none(self, revision):
        app = asking_app(lambda ctx: ctx.elicit("?", typing.Optional[str]))
        async with m.Client(app, revision=revision, elicit=lambda message, form: {}) as c:
            await c.call("tool")
        assert app.seen[-1] == m.Elicited("accept", None)


class TestSignatures:
    """What a function says about its arguments, and how it is called."""

    async def test_a_function_has_this_schema(self):
        point, found, wanted = dict(ANNOTATIONS)["Point"], {}, {}
        for source, schema in SIGNATURES:
            wanted[source] = {"type": "object", **json.loads(schema.replace("POINT", point))}
            found[source] = (await define(run_source(source)["f"]))["inputSchema"]
        assert found == wanted

    @pytest.mark.parametrize("source, words", UNFILLABLE)
    def test_a_parameter_that_json_cannot_fill_is_refused_at_registration(self, source, words):
        with pytest.raises(TypeError) as caught:
            m.Server().add_tool(run_source(source)["f"])
        assert [word for word in words.split() if word not in str(caught.value)] == []

    async def test_a_docstring_describes_the_tool_and_its_parameters(self):
        for doc, left, told in DOCSTRINGS:

            def fn(a, b): ...

            fn.__doc__ = doc.replace(r"\n", "\n")
            tool = await define(fn)
            parts = tool["inputSchema"]["properties"].items()
            found = {name: part["description"] for name, part in parts if "description" in part}
            assert (tool["description"], found) == (left.replace(r"\n", "\n"), json.loads(told))
        assert (await define(wrapped(Callables().method)))["description"] == "Do it."
        assert (await define(Callables()))["description"] == "Say it."
        explicit = run_source("def f(a: Annotated[int, 'mine']):\n 'S.\\n\\nArgs:\\n    a: x'")["f"]
        tool = await define(explicit)
        assert tool["inputSchema"]["properties"]["a"]["description"] == "mine"

    async def test_everything_that_can_be_called_is_called(self):
        for source, _ in SIGNATURES:
            if "Callables" in source:
                assert await value_of(run_source(source)["f"], {"a": 2.0}, structured=False) == "[2]"

    async def test_arguments_cannot_replace_the_context_or_what_was_bound(self):
        def pay(user, amount, **rest):
            return {"user": user, "amount": amount, **rest}

        def look(a, ctx, **rest):
            return {"ours": isinstance(ctx, m.Context), **rest}

        bound = functools.partial(pay, user="me")
        for fn, options in (
            (bound, {}), (functools.partial(bound, limit=1), {}), (wrapped(bound), {}),
            (bound, {"input_schema": {"type": "object", "properties": {"amount": {}}}}),
        ):  # fmt: skip
            answer = await value_of(fn, {"amount": 1, "b": 2}, **options)
            assert (answer["user"], answer["amount"], answer["b"]) == ("me", 1, 2)
            error = await value_of(fn, {"amount": 1, "user": "root"}, **options)
            assert "user: unexpected property" in error
        error = await value_of(functools.partial(bound, limit=1), {"amount": 1, "limit": 9})
        assert "limit: unexpected property" in error
        assert await value_of(look, {"a": 1, "b": 2}) == {"ours": True, "b": 2}
        assert "theirs" not in str(await value_of(look, {"a": 1, "ctx": "theirs"}))

    async def test_a_schema_of_ones_own_is_published_and_the_annotations_read(self):
        schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        decoded = run_source("def f(a: bytes): return a.decode()")["f"]
        assert (await define(decoded, input_schema=schema))["inputSchema"] == schema
        assert await value_of(decoded, {"a": "aGk="}, input_schema=schema) == "hi"
        given = {"a": "x", "b": 2}
        assert await value_of(lambda **given: given, given, input_schema=schema) == given
        assert "a: is required" in await value_of(lambda **given: given, {}, input_schema=schema)

    async def test_a_string_is_read_where_no_string_can_be_meant(self):
        """Models send "3" for 3, and null for what may be absent."""
        defs = {"N": {"type": "object"}, "S": {"type": "string"}}
        for schema, given, meant in RELAXED:
            whole = {"properties": {"a": json.loads(schema)}, "$defs": defs}
            arguments = {"a": json.loads(given)}
            answer = await value_of(lambda **given: given, arguments, input_schema=whole)
            if meant == "-":
                assert answer.startswith("a: "), (schema, given)
            else:
                wanted = {} if meant == "absent" else {"a": json.loads(meant)}
                assert answer == wanted and repr(answer) == repr(wanted), (schema, given)
        whole = {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
        assert isinstance(await value_of(lambda **given: given, {"a": None}, input_schema=whole), str)
        assert await value_of(lambda **given: given, {"a": "1", "b": "2"}, input_schema=whole) == {"a": 1, "b": "2"}

    async def test_valid_arguments_are_never_changed(self):
        dice = rng("relax")
        kinds = ["null", "boolean", "integer", "number", "string", "array", "object"]
        values = [None, True, 3, 2.5, "3", "true", "null", "[]", "{}", [], {}]
        for _ in range(150):
            some = dice.sample(kinds, dice.randint(1, 3))
            forms = [{"type": some}, {"anyOf": [{"type": kind} for kind in some]}]
            schema = {"type": "object", "properties": {"a": dice.choice(forms)}, "required": ["a"]}
            given = {"a": dice.choice(values)}
            with contextlib.suppress(m.SchemaError):
                m.compile_schema(schema).check(given)
                assert await value_of(lambda **given: given, given, input_schema=schema) == given


########################
# T13. URI templates
########################

# A template, a URI, and the values of the variables; - if the URI is not one of its.
MATCHES = table(r"""
    note://{name} | note://a | {"name": "a"}
    note://{name} | note:// | -
    note://{name} | note://a/b | -
    note://{name} | note://a?b | -
    note://{name} | note://a#b | -
    note://{name} | note://a%3Fb | {"name": "a?b"}
    note://{name} | NOTE://a | {"name": "a"}
    note://{name} | xnote://a | -
    note://all | note://all | {}
    note://all | note://al | -
    x:a | x:abx:a | -
    x://{a}/{b} | x://1/2 | {"a": "1", "b": "2"}
    x://{a}/{b} | x://1//2 | -
    x://{a}/b/{c}/d | x://1/b/2/d | {"a": "1", "c": "2"}
    x://{a}/b/{c}/d | x://1/b/2/d/ | -
    x://{a}-{b} | x://1-2-3 | {"a": "1", "b": "2-3"}
    x://{a}-{b} | x://-2 | -
    x://{a}.txt | x://report.2024.txt | {"a": "report.2024"}
    x://{a}.txt | x://a/b.txt | -
    x://{a}.{b}.z | x://1.z.z | {"a": "1", "b": "z"}
    x://{a}.{b}.z | x://1.z | -
    file:///{path*} | file:///a/b/c | {"path": "a/b/c"}
    file:///{+path} | file:///a/b?c#d | {"path": "a/b?c#d"}
    file://{+path} | file:///a/b | {"path": "/a/b"}
    file:{+path} | file:/a/b | {"path": "/a/b"}
    file://{path*} | file:///C:/a | {"path": "/C:/a"}
    file:///{path*} | file:/// | -
    x://{+p}/info | x://a/info/info | {"p": "a/info"}
    x://{+p}/info | x:///info | -
    x://{+p}/{name}.txt | x://a/b/c.txt | {"p": "a/b", "name": "c"}
    x://s{?q,lang} | x://s | {}
    x://s{?q,lang} | x://s? | {}
    x://s{?q,lang} | x://s?q=a%26b | {"q": "a&b"}
    x://s{?q,lang} | x://s?lang=en&q=a+b=c/..d | {"q": "a+b=c/..d", "lang": "en"}
    x://s{?q,lang} | x://s?q | {"q": ""}
    x://s{?q,lang} | x://s?q=1&q=2 | -
    x://s{?q,lang} | x://s?q=1&other=2 | -
    x://s{?q,lang} | x://s?q=1& | -
    x://s/{a}{?q} | x://s/1?q=2 | {"a": "1", "q": "2"}
    x://é/{a} | x://%C3%A9/ü | {"a": "ü"}
    x://é/{a} | x://é/%C3%BC | {"a": "ü"}
    x://é/{a} | x://e/%C3%BC | -
    x://{+url} | x://ab:/c | {"url": "ab:/c"}
    x://{a} | x://a b | {"a": "a b"}
    # decoded once, after it was matched
    x://{a} | x://%2541 | {"a": "%41"}
    x://{a} | x://%252F | {"a": "%2F"}
    x://{a} | x://a..b | {"a": "a..b"}
    x://{+a} | x://d/... | {"a": "d/..."}
    # no value leaves its folder: a handler may be open(root / name)
    x://{a} | x://..%2Fpasswd | -
    x://{a} | x://a%2Fb | -
    x://{a} | x://.. | -
    x://{a} | x://%2E%2e | -
    x://{a} | x://. | -
    x://{a} | x://a%5Cb | -
    x://{a} | x://..\b | -
    x://{+p} | x://a/../../etc | -
    x://{+p} | x://a/%2E%2E/etc | -
    x://{p*} | x://a%5C..%5Cb | -
    x://{p*} | x:///etc/passwd | -
    file:///{p*} | file:////etc/passwd | -
    x:///{p*} | x:///%2Fetc/passwd | -
    # UTF-8 and escapes are strict
    x://{a} | x://n% | -
    x://{a} | x://n%4 | -
    x://{a} | x://n%zz | -
    x://{+a} | x://n%FF | -
    x://{+a} | x://n%ED%A0%80 | -
    x://n{?a} | x://n?a=%C3 | -
""")

# A template that is refused, and words of the remedy.
BAD_TEMPLATES = table(r"""
    {name}
    /users/{id}
    x://{
    x://}
    x://{a
    x://{{a}}
    x://{}
    x://{a b}
    x://{a.b}
    x://{1}
    x://{a:3}
    x://{é}
    x://{#a}
    x://{;a}
    x://{a**}
    x://s{?a*}
    x://s?a=1{&b}
    x://s{?a}/b
    x://s{?}
    x://s{?a
    x://s{?
    x://s?{?a}
    x://s{?a}{?b}
    x://{a}{b}
    x://{+a}/{b*}
    x://{a}/{a}
    x://{a}{?a}
""")

# A template, and a URI of it, in which %s is the value of `a`.
KINDS = table(r"""
    x://{a} | x://%s
    x://d/{a} | x://d/%s
    x://{+a} | x://%s
    docs:{+a} | docs:%s
    x://{a*} | x://%s
    x://{b}/{+a} | x://1/%s
    x://d/{+a}.txt | x://d/%s.txt
    file:{a} | file:%s
    x://f{?a} | x://f?a=%s
    x://f{?b,a} | x://f?a=%s&b=1
""")
CLIMBING = ["..", "../../etc/passwd", "a/../../b", "a/..", "..\\b", "a\\..", ".. /b", " ../b",
            "/etc/passwd", "\\etc", "//host/share", "C:/a", "c:\\a"]  # fmt: skip
HIDDEN = [chr(n) for a, b in ((0, 32), (0x7F, 0xA0), (0x2028, 0x202F), (0x2066, 0x206A)) for n in range(a, b)]


class TestTemplates:
    """RFC 6570, as far as resource templates need it."""

    def test_a_uri_matches_in_one_way_or_not_at_all(self):
        for template, uri, values in MATCHES:
            found = m.Template(template).match(m.canonical_uri(uri))
            assert found == (None if values == "-" else json.loads(values)), (template, uri)

    def test_a_bad_template_is_refused_with_a_remedy(self):
        for (template,) in BAD_TEMPLATES:
            with pytest.raises(ValueError, match=r"(?s)URI template .*: begin with a scheme, like note://\{name\}; write"):
                m.Template(template)

    @pytest.mark.parametrize("offered, asked", [
        ("file:///srv/My Report.txt", "file:///srv/My%20Report.txt"),
        ("file:///srv/My%20Report.txt", "file:///srv/My Report.txt"),
        ("stock://gr%c3%bcn", "STOCK://gr\u00fcn"),
        ("stock://%7etea/{unit}", "stock://~tea/kg"),
        ("Stock://gr\u00fcn/{unit}", "stock://gr%C3%BCn/kg"),
    ])  # fmt: skip
    async def test_a_resource_is_found_by_every_spelling_of_its_uri(self, offered, asked):
        """RFC 3986 §6.2.2"""
        app = m.Server()
        app.add_resource(offered, (lambda unit: "here") if "{" in offered else "here", name="r")
        async with m.Client(app) as c:
            assert await c.read(asked) == "here"
        app.remove_resource(offered)

    @both_eras
    @pytest.mark.parametrize("wanted", ["stock://green%20tea", "stock://green tea"])
    async def test_an_announcement_reaches_a_subscriber_by_every_spelling_of_the_uri(self, era, wanted):
        app = m.Server()
        app.add_resource("stock://{kind}", lambda kind: kind, name="r")
        async with m.Client(app, revision=era) as c:
            news = await c.subscribe(wanted)
            app.resource_updated("stock://green tea")
            async for update in news:
                assert update["uri"] == "stock://green%20tea"
                break

    @pytest.mark.parametrize("template, uri", KINDS)
    @pytest.mark.parametrize("safe", ["", "/\\:"])
    def test_no_kind_of_variable_leaves_its_folder_or_hides_a_character(self, template, uri, safe):
        template = m.Template(template)

        def matched(value):
            return template.match(uri % urllib.parse.quote(value, safe=safe))

        for other in ("\x20", "~", "\xa0", "\u2027", "\u202f", "\u2065", "o"):
            assert matched(f"go{other}d")["a"] == f"go{other}d"
        hidden = [form.format(each) for each in HIDDEN for form in ("a{}", "{}a", "a{}b")]
        assert [value for value in CLIMBING + hidden if matched(value) is not None] == []

    def test_templates_and_uris_have_bounds(self):
        """CVE-2026-0621: an expression that is made of a template can be made to hang."""
        templates = ["x://{a}", "x://{a}-{b}-{c}-{d}!", "x://{a}/{+p}a{q}!", "x://{a}.{b}.{c}.{+p}-{d}.txt"]
        began = time.process_time()
        for template, unit in itertools.product(templates, ("a", "-", "a-", ",a/", ".a", ".-", "é")):
            assert m.Template(template).match("x://" + unit * (9000 // len(unit))) is None
        assert time.process_time() - began < 5
        assert m.Template("x://{a}").match("x://" + "a" * 2000) == {"a": "a" * 2000}

    def test_a_server_takes_apart_each_uri_that_a_client_expands(self):
        """RFC 6570 §3.2: values escaped, but for slashes and other reserved ones in {+p}."""
        dice, template = rng("templates"), m.Template("x://{a}/d/{+p}/e/{b}{?q}")
        escaped = functools.partial(urllib.parse.quote, safe="")
        for _ in range(500):
            text = "".join(dice.choices("ab%?#&=é \U0001f600+,.", k=dice.randint(1, 8)))
            if text in (".", ".."):
                continue
            p = "x/" + urllib.parse.quote(text, safe="#&=+,") + "/y"
            uri = f"x://{escaped(text)}/d/{p}/e/{escaped(text + 'z')}?q={escaped(text)}"
            assert template.match(uri) == {"a": text, "p": f"x/{text}/y", "b": text + "z", "q": text}

    def test_garbage_matches_or_does_not_and_never_raises(self):
        dice = rng("uris")
        templates = [m.Template(t) for t in ("x:{a}", "x:{+a}", "x:{a}.{+b},{c}{?d}", "x:{?a}")]
        for _ in range(3000):
            uri = "x:" + "".join(dice.choices("a%2F/.,?&=\\é\ud800\0\n", k=dice.randint(0, 12)))
            for template in templates:
                values = template.match(uri)
                assert values is None or {*values} <= {"a", "b", "c", "d"}


########################
# T15. A server
########################

TASKS_KNOWN = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def asking_server():
    """A server whose tools ask the client."""
    app = m.Server("asking", state_key="k" * 16, ttl_ms=5000)
    files, orders = ["a.txt", "b.txt"], []

    @app.tool(structured=False)
    async def delete(ctx: m.Context) -> str:
        files.append(files.pop(0))  # each run finds another file first
        answer = await ctx.elicit(f"Delete {files[0]}?")
        return f"{answer.action} {files[0]}"

    @app.tool(structured=False)
    async def two(ctx: m.Context) -> str:
        one, other = await asyncio.gather(ctx.elicit("A?", int), ctx.elicit("B?", int))
        return f"{one.data} {other.data}"

    @app.tool(structured=False)
    async def order(item: str, ctx: m.Context) -> str:
        def book(item):
            orders.append(item)
            return len(orders)

        number = await ctx.once(book, item)
        other = await ctx.once(book, "box")
        sure = await ctx.elicit("Sure?")
        return f"{sure.action}; bookings {number} and {other} of {len(orders)}"

    @app.tool(structured=False)
    async def careless(ctx: m.Context) -> str:
        try:
            return (await ctx.elicit("Go on?")).action
        except Exception:
            return "caught"

    @app.tool(structured=False)
    async def greedy(ctx: m.Context) -> str:
        try:
            return (await ctx.elicit("Go on?")).action
        except BaseException:
            return "caught"

    @app.tool(structured=False)
    async def collect(ctx: m.Context) -> str:
        (answer,) = await asyncio.gather(ctx.elicit("Go on?"), return_exceptions=True)
        return answer.action

    @app.tool(structured=False)
    async def patient(ctx: m.Context) -> str:
        return (await asyncio.wait_for(ctx.elicit("Go on?"), 60)).action

    @app.tool(structured=False)
    def thread(ctx: m.Context) -> str:
        try:
            return ctx.elicit("Go on?").action
        except Exception:
            return "caught"

    @app.tool(structured=False)
    async def name(ctx: m.Context) -> str:
        return (await ctx.elicit("Name?", str)).data

    @app.tool(structured=False)
    async def plain() -> str:
        return "done"

    @app.prompt
    async def greet(ctx: m.Context) -> str:
        return (await ctx.elicit("Name?", str)).data

    @app.resource("x://greeting")
    async def greeting(ctx: m.Context) -> str:
        return (await ctx.elicit("Name?", str)).data

    @app.method("acme/ask")
    async def ask(ctx, params):
        return {"name": (await ctx.elicit("Name?", str)).data}

    return app


class TestQuestionsInRounds:
    """A question in the modern era ends its request; the answer comes with the next one."""

    test_it_goes_as_written = conversations("""
A yes to one question is no answer to another one of the same kind.
[modern] spec: basic/patterns/mrtr capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "delete"}
    <-- 1 {"resultType": "input_required", "requestState": ?s,
          "inputRequests": {?q: {"method": "elicitation/create", "params": {"message": "Delete b.txt?", ...}}}}
    --> 2 tools/call {"name": "delete", "requestState": ?s, "inputResponses": {?q: {"action": "accept"}}}
    <-- 2 {"resultType": "input_required", "requestState": ...,
          "inputRequests": {?r: {"method": "elicitation/create", "params": {"message": "Delete a.txt?", ...}}}}

An answer to a question that was never asked is ignored.
[modern] spec: basic/patterns/mrtr#error-handling capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "name", "inputResponses": {"elicitation": {"action": "decline"}, "elicitation-1": {"action": "decline"}}}
    <-- 1 {"resultType": "input_required", ...}

A question is asked again if its answer does not fit the form, or is no object.
[modern] spec: basic/patterns/mrtr#error-handling capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "name"}
    <-- 1 {"resultType": "input_required", "requestState": ?s, "inputRequests": {?q: ...}}
    --> 2 tools/call {"name": "name", "requestState": ?s, "inputResponses": {?q: {"action": "accept", "content": {"value": 5}}}}
    <-- 2 {"resultType": "input_required", "requestState": ?t, "inputRequests": {?r: ...}}
    --> 3 tools/call {"name": "name", "requestState": ?t, "inputResponses": {?r: "Ann"}}
    <-- 3 {"resultType": "input_required", "requestState": ?u, "inputRequests": {?z: ...}}
    --> 4 tools/call {"name": "name", "requestState": ?u, "inputResponses": {?z: {"action": "accept", "content": {"value": "Ann"}}}}
    <-- 4 {"content": [{"type": "text", "text": "Ann"}]}

Questions that a handler asks together go out in one round, and each gets its own answer.
[modern] spec: basic/patterns/mrtr capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "two"}
    <-- 1 {"resultType": "input_required", "requestState": ?s, "inputRequests": {
          ?a: {"method": "elicitation/create", "params": {"message": "A?", ...}},
          ?b: {"method": "elicitation/create", "params": {"message": "B?", ...}}}}
    --> 2 tools/call {"name": "two", "requestState": ?s, "inputResponses": {
          ?b: {"action": "accept", "content": {"value": 2}}}}
    <-- 2 {"resultType": "input_required", "requestState": ?t, "inputRequests": {
          ?a: {"method": "elicitation/create", "params": {"message": "A?", ...}}}}
    --> 3 tools/call {"name": "two", "requestState": ?t, "inputResponses": {
          ?a: {"action": "accept", "content": {"value": 1}}}}
    <-- 3 {"content": [{"type": "text", "text": "1 2"}]}

A value that once() computed in the first round of a call is used again in the later rounds.
[modern] spec: basic/patterns/mrtr capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "order", "arguments": {"item": "pen"}}
    <-- 1 {"resultType": "input_required", "requestState": ?s, "inputRequests": {?q: ...}}
    --> 2 tools/call {"name": "order", "arguments": {"item": "pen"}, "requestState": ?s,
          "inputResponses": {?q: {"action": "accept"}}}
    <-- 2 {"content": [{"type": "text", "text": "accept; bookings 1 and 2 of 2"}]}

A question ends the run of a handler, even if the handler catches every exception.
[modern] spec: basic/patterns/mrtr capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "careless"}
    <-- 1 {"resultType": "input_required", ...}
    --> 2 tools/call {"name": "greedy"}
    <-- 2 {"resultType": "input_required", ...}
    --> 3 tools/call {"name": "patient"}
    <-- 3 {"resultType": "input_required", ...}
    --> 4 tools/call {"name": "thread"}
    <-- 4 {"resultType": "input_required", ...}
    --> 5 tools/call {"name": "collect"}
    <-- 5 {"resultType": "input_required", "requestState": ?s, "inputRequests": {?q: ...}}
    --> 6 tools/call {"name": "collect", "requestState": ?s, "inputResponses": {?q: {"action": "accept"}}}
    <-- 6 {"content": [{"type": "text", "text": "accept"}]}

The requestState of one request is refused in every other request.
[modern] spec: basic/patterns/mrtr#server-requirements-basic-workflow capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "name"}
    <-- 1 {"resultType": "input_required", "requestState": ?s, ...}
    --> 2 tools/call {"name": "thread", "requestState": ?s}
    <-- 2 error -32602 "requestState"
    --> 3 tools/call {"name": "plain", "requestState": ?s}
    <-- 3 error -32602 "requestState"
    --> 4 prompts/get {"name": "name", "requestState": ?s}
    <-- 4 error -32602 "requestState"
    --> 5 tools/call {"name": "name", "requestState": "eyJhIjoxfQ==.AAAA"}
    <-- 5 error -32602 "requestState"
    --> 6 tools/call {"name": "plain", "requestState": 5}
    <-- 6 error -32602 "requestState"
    --> 7 tools/call {"name": "name", "inputResponses": []}
    <-- 7 error -32602 "inputResponses"

Prompts and resources can ask as tools do, and a result that depends on an answer is not cacheable.
[modern] spec: server/utilities/caching#cache-key capabilities {"elicitation": {}}
    --> 1 prompts/get {"name": "greet"}
    <-- 1 {"resultType": "input_required", "requestState": ?s, "inputRequests": {?q: ...}}
    --> 2 prompts/get {"name": "greet", "requestState": ?s,
          "inputResponses": {?q: {"action": "accept", "content": {"value": "Ann"}}}}
    <-- 2 {"messages": [{"role": "user", "content": {"type": "text", "text": "Ann"}}]}
    --> 3 resources/read {"uri": "x://greeting"}
    <-- 3 {"resultType": "input_required", "requestState": ?t, "inputRequests": {?r: ...}}
    --> 4 resources/read {"uri": "x://greeting", "requestState": ?t,
          "inputResponses": {?r: {"action": "accept", "content": {"value": "Ann"}}}}
    <-- 4 {"contents": [{"text": "Ann", ...}], "ttlMs": 0, "cacheScope": "private"}

A client that did not declare a capability is not asked for it: the request fails.
[modern] spec: basic/versioning
    --> 1 tools/call {"name": "name"}
    <-- 1 error -32021 "elicitation" {"requiredCapabilities": {"elicitation": {}}}

A tool that must ask fails with a text if a client of the legacy era cannot be asked.
[legacy >= 2025-06-18] spec: client/elicitation#capabilities
    --> 1 tools/call {"name": "name"}
    <-- 1 {"isError": true, "content": [{"type": "text", "text": ...}]}

A handler cannot ask in a method whose result may not be a question.
[modern] spec: basic/patterns/mrtr#supported-requests capabilities {"elicitation": {}}
    --> 1 acme/ask {}
    <-- 1 error -32603 "Internal error"

An answer with the id true is none to the request 1.
[legacy >= 2025-06-18] spec: basic#responses capabilities {"elicitation": {}} doors memory
    --> "call" tools/call {"name": "name"}
    <-- 1 elicitation/create {...}
    --> {"jsonrpc": "2.0", "id": true, "result": {"action": "decline"}}
    --> 1 {"action": "accept", "content": {"value": "Ann"}}
    <-- "call" {"content": [{"type": "text", "text": "Ann"}]}

A question of the legacy era is a request, and an answer that does not fit fails the tool alone.
[legacy >= 2025-06-18] spec: client/elicitation capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "name"}
    <-- ?q elicitation/create {...}
    --> ?q {"action": "accept", "content": {"value": 5}}
    <-- 1 {"isError": true, "content": [{"type": "text", "text": ...}]}
    --> 2 tools/call {"name": "name"}
    <-- ?r elicitation/create {...}
    --> ?r error -1 "nobody is here"
    <-- 2 {"isError": true, "content": [{"type": "text", "text": ...}]}
""", asking_server, ["memory", "http"])  # fmt: skip

    test_time_passes = conversations("""
A question of the legacy era is withdrawn when its request is cancelled, and nothing is answered.
[legacy >= 2025-06-18] spec: basic/utilities/cancellation capabilities {"elicitation": {}}
    --> 1 tools/call {"name": "thread"}
    <-- ?q elicitation/create {...}
    --> notifications/cancelled {"requestId": 1}
    <-- notifications/cancelled {"requestId": ?q, ...}
    --> 2 tools/call {"name": "plain"}
    <-- 2 {"content": [{"type": "text", "text": "done"}]}
""", asking_server, ["memory"])

    @staticmethod
    async def ask(app, params):
        """Return the answer to one modern call; no client of ours is in between."""
        async with lines_to(app, revision=None) as lines:
            lines.put(modern(1, "tools/call", params, capabilities={"elicitation": {}})[0])
            return await lines.take()

    @staticmethod
    def answered(first):
        """Return the parameters of the next round."""
        (key,) = first["result"]["inputRequests"]
        given = {key: {"action": "accept", "content": {"value": "Ann"}}}
        return {"name": "name", "requestState": first["result"]["requestState"], "inputResponses": given}

    async def test_a_state_lapses_after_15_minutes(self, monkeypatch):
        app, now = asking_server(), time.time()
        again = self.answered(await self.ask(app, {"name": "name"}))
        monkeypatch.setattr(time, "time", lambda: now + 880)
        assert (await self.ask(app, again))["result"]["content"][0]["text"] == "Ann"
        monkeypatch.setattr(time, "time", lambda: now + 920)
        assert (await self.ask(app, again))["error"]["code"] == -32602

    async def test_another_process_with_the_same_key_goes_on_with_the_call(self):
        again = self.answered(await self.ask(asking_server(), {"name": "name"}))
        assert (await self.ask(asking_server(), again))["result"]["content"][0]["text"] == "Ann"
        other = m.Server()  # with a key of its own
        other.add_tool(lambda: "", name="name")
        assert (await self.ask(other, again))["error"]["code"] == -32602

    async def test_a_record_has_a_bound(self):
        app = m.Server()

        @app.tool
        async def big(n: int, ctx: m.Context, what: typing.Any = "x") -> str:
            await ctx.once(lambda: what * n)
            return (await ctx.elicit("?", str)).data

        fits = await self.ask(app, {"name": "big", "arguments": {"n": 150_000}})
        assert fits["result"]["resultType"] == "input_required"
        for what in ("x", [1]):
            beyond = await self.ask(app, {"name": "big", "arguments": {"n": 300_000, "what": what}})
            assert beyond["error"]["code"] == -32603 and "262144" in beyond["error"]["message"]

    @both_eras
    async def test_a_call_has_one_name_in_all_its_rounds(self, era):
        app, names = m.Server(), []

        @app.tool
        async def pay(ctx: m.Context) -> str:
            names.append(ctx.call_id)
            await ctx.elicit("One?")
            await ctx.elicit("Two?")
            return ctx.call_id

        async with m.Client(app, revision=era, elicit=lambda message, schema: {}) as c:
            one, other = await c.call("pay"), await c.call("pay")
        assert set(names) == {one, other} and one != other and len(one) >= 32
        assert len(names) == (6 if era > "2026" else 2)

    @both_eras
    async def test_a_tool_and_a_middleware_may_change_the_arguments_between_questions(self, era):
        app = m.Server()

        @app.middleware
        async def add_one(ctx, call_next):
            if ctx.method == "tools/call":
                ctx.params["arguments"]["animals"].append((await ctx.elicit("Who else?", str)).data)
            return await call_next(ctx)

        @app.tool
        async def feed(animals: typing.List[str], ctx: m.Context) -> int:
            fed = 0
            while animals:
                fed += (await ctx.elicit(f"Feed the {animals.pop()}?", bool)).data
            return fed

        async with m.Client(app, revision=era, elicit=lambda message, schema: {
                "value": "dog" if message == "Who else?" else True}) as c:  # fmt: skip
            assert await c.call("feed", {"animals": ["ant", "bat", "cat"]}) == 4

    @both_eras
    async def test_names_tell_questions_apart_and_a_name_stands_for_one(self, era):
        app, asked = m.Server(), []

        @app.tool
        async def which(ctx: m.Context) -> str:
            kinds = await asyncio.gather(ctx.elicit("A?", str, key="a"), ctx.elicit("B?", str, key="b"), ctx.roots())
            return f"{kinds[0].data}{kinds[1].data}{len(kinds[2])}"

        def answer(message, schema):
            asked.append(message)
            return {"value": message[0]}

        async with m.Client(app, revision=era, elicit=answer, roots=["/tmp"]) as c:
            assert await c.call("which") == "AB1"
        assert sorted(asked) == ["A?", "B?"]

    @both_eras
    async def test_once_keeps_json_and_what_failed_is_tried_again(self, era):
        app, runs = m.Server(), []

        def flaky():
            runs.append("flaky")
            if len(runs) == 1:
                raise ValueError("not yet")
            return {"n": [1]}

        @app.tool
        async def use(ctx: m.Context) -> str:
            with contextlib.suppress(ValueError):
                kept = await ctx.once(flaky)
                kept["n"].append(2)  # what is recorded does not change
            await ctx.elicit("Go on?")
            kept = await ctx.once(flaky)
            return f"{kept} {len(runs)}"

        async with m.Client(app, revision=era, elicit=lambda message, schema: {}) as c:
            assert await c.call("use") == ("{'n': [1]} 3" if era > "2026" else "{'n': [1]} 2")

    async def test_once_does_not_run_again_after_a_deploy_that_moved_its_function(self):
        booked = []

        def deployed(blank_lines):
            scope = {"booked": booked, "m": m, "__name__": "shop"}
            exec(blank_lines + "def book():\n    booked.append(1)\n\n\n"
                 "async def buy(ctx: m.Context) -> str:\n    await ctx.once(book)\n    return (await ctx.elicit('Sure?')).action\n", scope)
            app = m.Server(state_key="k" * 16)
            app.add_tool(scope["buy"])
            return app

        answers = []
        for blank_lines, more in (("", {}), ("\n\n\n", {"inputResponses": {"elicitation": {"action": "accept"}}})):
            state = {"requestState": answers[0]["result"]["requestState"]} if answers else {}
            answers.append(await self.ask(deployed(blank_lines), {"name": "buy", **more, **state}))
        assert answers[1]["result"]["content"][0]["text"] == "accept" and booked == [1]

    async def test_once_computes_anew_for_other_arguments_and_knows_an_object_by_its_type(self):
        app, runs, seen = m.Server(), [], []

        @app.tool
        async def use(ctx: m.Context) -> str:
            runs.append("begun")
            doubled = await ctx.once(lambda n: 2 * n, len(runs))
            tripled = await ctx.once(functools.partial(lambda n: 3 * n, len(runs)))
            await ctx.once(seen.append, object())
            await ctx.elicit("Go on?")
            return f"{doubled} {tripled}"

        async with m.Client(app, elicit=lambda message, schema: {}) as c:
            assert await c.call("use") == "4 6" and len(seen) == 1

    async def test_a_resource_that_uses_once_and_asks_nothing_may_be_cached(self):
        app = m.Server()

        @app.resource("x://a", ttl_ms=9)
        async def read(ctx: m.Context) -> str:
            return await ctx.once(lambda: "a")

        async with m.Client(app, revision=V5) as c:
            assert (await c.read_resource("x://a"))["ttlMs"] == 9

    async def test_once_wants_a_function_and_not_its_result_and_an_await(self):
        app = m.Server()

        @app.tool
        async def use(ctx: m.Context) -> str:
            await ctx.once(2 + 2)

        @app.tool
        async def forget(ctx: m.Context) -> bool:
            with contextlib.closing(ctx.once(int)) as number:
                return bool(number)

        async with m.Client(app) as c:
            with pytest.raises(m.ToolError, match="takes a function and its arguments"):
                await c.call("use")
            with pytest.raises(m.ToolError, match=r"write: await ctx.once\(...\)"):
                await c.call("forget")

    async def test_a_function_of_once_beside_a_question_ends_and_is_recorded(self):
        app, runs = m.Server(), []

        async def slow():
            runs.append("begun")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            runs.append("ended")
            return 7

        @app.tool
        async def both(ctx: m.Context) -> str:
            number, sure = await asyncio.gather(ctx.once(slow), ctx.elicit("Sure?"))
            return f"{number} {sure.action}"

        async with m.Client(app, elicit=lambda message, schema: {}) as c:
            assert await c.call("both") == "7 accept"
        assert runs == ["begun", "ended"]

    async def test_a_function_of_once_runs_in_the_thread_of_its_handler(self):
        app = m.Server()

        @app.tool
        def here(ctx: m.Context) -> str:
            mine = threading.get_ident()
            return str(ctx.once(threading.get_ident) == mine)

        async with m.Client(app) as c:
            assert await c.call("here") == "True"

    @pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
    async def test_calls_in_the_only_thread_do_not_overlap_while_they_report(self, revision):
        app, running, seen = m.Server(threads=1), [], []

        @app.tool
        def work(n: int, ctx: m.SyncContext) -> int:
            running.append(n)
            for step in range(3):
                ctx.report_progress(step + 1, 3)
                ctx.info("a step is done")
                ctx.notify("notifications/x.example/step")
                seen.append(len(running))
                time.sleep(0.002)
            running.remove(n)
            return n

        async with m.Client(app, revision=revision, progress=lambda *step: None, log=lambda *line: None) as c:
            numbers = await asyncio.gather(*[c.call("work", {"n": n}) for n in range(8)])
        assert (numbers, seen) == ([*range(8)], [1] * 24)

    async def test_a_question_that_ends_a_run_lets_no_other_call_run_beside_its_end(self):
        app, running, seen = m.Server(threads=1), [], []

        @app.tool
        def ask(n: int, ctx: m.SyncContext) -> str:
            running.append(n)
            try:
                return ctx.elicit("?", bool).action
            finally:
                time.sleep(0.01)
                seen.append(len(running))
                running.remove(n)

        async with m.Client(app, elicit=lambda message, schema: {"value": True}) as c:
            assert await asyncio.gather(*[c.call("ask", {"n": n}) for n in range(5)]) == ["accept"] * 5
        assert seen == [1] * 10

    @pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
    async def test_what_the_only_thread_waits_for_may_need_another_one(self, revision):
        app = m.Server(threads=1)
        app.add_resource("a://b", lambda: "text", name="b")
        app.add_tool(lambda: "b", name="other")

        @app.tool
        def first(ctx: m.SyncContext) -> list[str]:
            return [ctx.read_resource("a://b")[0]["text"], ctx.once(nested), ctx.elicit("?", str).data]

        async def nested() -> str:
            async with m.Client(app) as c:
                return await c.call("other")

        async def answer(message, schema):
            return {"value": await c.call("other")}

        async with m.Client(app, revision=revision, elicit=answer) as c:
            assert await c.call("first") == ["text", "b", "b"]

    async def test_blocks_of_a_handler_end_when_a_question_ends_it(self):
        app, log = m.Server(threads=1), []

        @contextlib.asynccontextmanager
        async def opened():
            log.append("open")
            try:
                yield
            finally:
                await asyncio.sleep(0)
                log.append("close")

        @app.tool
        async def look(ctx: m.Context) -> str:
            async with opened():
                return (await ctx.elicit("?")).action

        @app.tool
        def thread(ctx: m.Context) -> str:
            log.append("open")
            try:
                return ctx.elicit("1").action + ctx.elicit("2").action
            finally:
                log.append("close")

        async with m.Client(app, elicit=lambda message, schema: {}) as c:
            assert await c.call("look") == "accept"
            assert log == ["open", "close"] * 2
            assert await c.call("thread") == "acceptaccept"
        # A thread ends by itself, perhaps when the next run has begun.
        await eventually(lambda: log.count("close") == log.count("open") == 5)

    async def test_calls_at_the_same_time_do_not_mix_their_answers(self):
        app = m.Server()

        @app.tool
        async def name(n: int, ctx: m.Context) -> str:
            answer = await ctx.elicit(f"{n}?", int)
            await asyncio.sleep(0)
            return f"{n}={answer.data}"

        async with m.Client(app, elicit=lambda message, schema: {"value": int(message[:-1])}) as c:
            answers = await asyncio.gather(*[c.call("name", {"n": n}) for n in range(30)])
        assert answers == [f"{n}={n}" for n in range(30)]

    async def test_a_state_is_its_principals(self):
        async def call(token, **params):
            msg, fields = modern(1, "tools/call", params, capabilities={"elicitation": {}})
            return (await ask(server.url, "POST", msg, authorization=f"Bearer {token}", **fields))[2]

        async with asking_server().http(port=0, verify=lambda token: m.Principal("i", token)) as server:
            again = self.answered(await call("ann", name="name"))
            assert (await call("bob", **again))["error"]["code"] == -32602
            assert (await call("ann", **again))["result"]["content"][0]["text"] == "Ann"


def busy_server():
    """A server with tools that report, that fail, and that return what a program may return."""
    app = m.Server("busy", "2.0", page_size=3, title="Busy", instructions="Look.", ttl_ms=7, cache_scope="public")
    app.seen = {}

    class Own(BaseException):
        pass

    @app.on("notifications/open")
    async def open_gate(params):
        app.gate().set()

    app.gate = lambda: app.seen.setdefault("gate", None) or app.seen.update(gate=asyncio.Event()) or app.seen["gate"]

    @app.tool(structured=False)
    async def flood(n: int, ctx: m.Context) -> str:
        for step in range(n):
            await ctx.report_progress(step + 1, n)
        await ctx.report_progress(1, n, "one that does not grow")
        return "done"

    @app.tool(structured=False)
    async def after(ctx: m.Context) -> str:
        async def late():
            await app.gate().wait()
            await ctx.report_progress(1)
            await ctx.error("too late")

        app.seen["late"] = asyncio.ensure_future(late())
        return "done"

    @app.tool(structured=False)
    async def levels(ctx: m.Context) -> str:
        await ctx.debug("d")
        await ctx.warning({"w": 1}, logger="l")
        return "done"

    @app.tool(structured=False)
    def raising(kind: str) -> str:
        if kind == "key":
            raise KeyError("color")
        if kind == "interrupt":
            raise KeyboardInterrupt
        if kind == "generator":
            raise GeneratorExit
        if kind == "exit":
            raise SystemExit(3)
        if kind == "own":
            raise Own("mine")
        if kind == "stop":
            raise StopIteration
        raise m.RPCError(-32042 if kind == "reserved" else 17, "refused", {"kind": kind})

    @app.tool
    async def odd_list() -> typing.List[int]:
        return [1, 2]

    @app.tool(output_schema={"type": "array", "items": {"type": "integer"}})
    async def array():
        return [1, 2]

    @app.tool(output_schema={})
    async def anything():
        return [1]

    @app.tool(output_schema={"type": "object", "required": ["x"]})
    async def broken():
        return {"y": 1}

    @app.tool
    async def unsayable():
        return object()

    @app.tool
    async def data():
        return {"x": 1}

    @app.tool(structured=False)
    async def text_only():
        return {"x": 1}

    @app.tool
    async def whole():
        return {"content": [{"type": "text", "text": "hi"}], "isError": True, "_meta": {"a": 1}}

    @app.tool
    async def mixed():
        return ["see", m.Link("x://a", "a"), b"\0"]

    @app.tool(title="Typed", annotations={"readOnlyHint": True}, meta={"a": 1})
    async def typed(n: int, items: typing.List[int] = [], deep: typing.Optional[dict] = None) -> str:  # noqa: B006
        """Take numbers.

        Args:
            n: a number
        """
        return f"{n} {items} {deep}"

    @app.tool(structured=False)
    async def shrink() -> str:
        for name in list(app.prompts):
            app.remove_prompt(name)
            await idle()  # or two removals might be announced as one
        return "shrunk"

    @app.tool(structured=False)
    async def say_custom(ctx: m.Context) -> str:
        await ctx.notify("notifications/acme/news", {"n": 1})
        return "said"

    @app.method("acme/echo")
    async def echo(ctx, params):
        return {"said": params.get("text")}

    @app.method("acme/nothing")
    async def nothing(ctx, params):
        return None

    @app.resource("note://{name}/{number}", ttl_ms=9, cache_scope="private")
    def note(name: str, number: int) -> dict:
        return {"name": name, "number": number}

    app.add_resource("x://bytes", b"\xff", name="bytes")
    app.add_resource("x://text", "text", mime_type="text/markdown")

    @app.resource("x://several")
    def several():
        return [m.Resource("x://1", "one"), {"uri": "x://2", "blob": "AA=="}, "a"]

    @app.resource("x://failing")
    def failing():
        raise ValueError("a secret")

    @app.resource("x://refusing")
    def refusing():
        raise m.ToolError("not today")

    @app.prompt(description="Say hi.")
    def talk(name: str, times: int = 1, tone: typing.Literal["kind", "dry"] = "kind"):
        return [m.Message(f"hi {name} {times + 0}"), m.Message("hello", role="assistant")]

    @app.prompt
    def silent():
        return None

    @app.complete("talk", "name")
    def names(value: str, arguments: dict) -> list:
        return [f"{value}{arguments.get('tone', '')}{n}" for n in range(150)]

    return app


class TestHandlersOnTheWire:
    """What a handler says and returns, as each revision has it."""

    test_it_goes_as_written = conversations("""
The last of many reports of progress comes before the answer, and none that does not grow.
[all] spec: basic/utilities/progress#progress-flow doors memory
    --> 1 tools/call {"name": "flood", "arguments": {"n": 2}, "_meta": {"progressToken": 0}}
    <-- notifications/progress {"progressToken": 0, "progress": 1, "total": 2}
    <-- notifications/progress {"progressToken": 0, "progress": 2, "total": 2}
    <-- 1 {"content": [{"type": "text", "text": "done"}]}
    --> 2 tools/call {"name": "flood", "arguments": {"n": 2}}
    <-- 2 {"content": [{"type": "text", "text": "done"}]}
    --> 3 tools/call {"name": "flood", "arguments": {"n": 2}, "_meta": {"progressToken": [1]}}
    <-- 3 {"content": [{"type": "text", "text": "done"}]}

Nothing is said for a request after its answer.
[all] spec: basic/utilities/progress#implementation-notes
    --> 1 tools/call {"name": "after", "_meta": {"progressToken": "t"}}
    <-- 1 {"content": [{"type": "text", "text": "done"}]}
    open
    quiet

A session gets the log messages of the level that it has set and above, at first of info.
[legacy] spec: server/utilities/logging
    --> 1 tools/call {"name": "levels"}
    <-- notifications/message {"level": "warning", "data": {"w": 1}, "logger": "l"}
    <-- 1 {"content": [{"type": "text", "text": "done"}]}
    --> 2 logging/setLevel {"level": "debug"}
    <-- 2 {}
    --> 3 tools/call {"name": "levels"}
    <-- notifications/message {"level": "debug", "data": "d"}
    <-- notifications/message {"level": "warning", "data": {"w": 1}, "logger": "l"}
    <-- 3 {"content": [{"type": "text", "text": "done"}]}
    --> 4 logging/setLevel {"level": "loud"}
    <-- 4 error -32602 "level"

A request of the modern era gets log messages only if it names a level itself.
[modern] spec: server/utilities/logging
    --> 1 tools/call {"name": "levels"}
    <-- 1 {"content": [{"type": "text", "text": "done"}]}
    --> 2 tools/call {"name": "levels", "_meta": {"io.modelcontextprotocol/logLevel": "info"}}
    <-- notifications/message {"level": "warning", "data": {"w": 1}, "logger": "l"}
    <-- 2 {"content": [{"type": "text", "text": "done"}]}

An exception of a tool fails that call alone, and the text of a KeyError says that it is one.
[all] spec: server/tools#error-handling
    --> 1 tools/call {"name": "raising", "arguments": {"kind": "key"}}
    <-- 1 {"content": [{"type": "text", "text": "KeyError: 'color'"}], "isError": true}
    --> 2 tools/call {"name": "raising", "arguments": {"kind": "interrupt"}}
    <-- 2 {"content": [...], "isError": true}
    --> 3 tools/call {"name": "raising", "arguments": {"kind": "generator"}}
    <-- 3 {"content": [...], "isError": true}
    --> 4 tools/call {"name": "raising", "arguments": {"kind": "exit"}}
    <-- 4 {"content": [...], "isError": true}
    --> 5 tools/call {"name": "raising", "arguments": {"kind": "own"}}
    <-- 5 {"content": [{"type": "text", "text": "mine"}], "isError": true}
    --> 6 tools/call {"name": "raising", "arguments": {"kind": "stop"}}
    <-- 6 {"content": [...], "isError": true}
    --> 7 tools/call {"name": "raising", "arguments": {"kind": "own code"}}
    <-- 7 error 17 "refused" {"kind": "own code"}

An RPCError of a tool is sent as an error; one with a code that the protocol reserves is not.
[modern] spec: basic/index#error-codes
    --> 1 tools/call {"name": "raising", "arguments": {"kind": "reserved"}}
    <-- 1 error -32603 "refused"

Wrong arguments give a tool result with isError, which the model can read and mend.
[>= 2025-11-25] spec: server/tools#error-handling
    --> 1 tools/call {"name": "typed", "arguments": {"n": "many"}}
    <-- 1 {"content": [{"type": "text", "text": "n: expected integer, got string"}], "isError": true}
    --> 2 tools/call {"name": "typed"}
    <-- 2 {"content": [{"type": "text", "text": "n: is required"}], "isError": true}

Wrong arguments are an error of the protocol in the older revisions.
[<= 2025-06-18] spec: server/tools#error-handling
    --> 1 tools/call {"name": "typed", "arguments": {"n": "many"}}
    <-- 1 error -32602 "n: expected integer"

Arguments that models write as text are understood where the type is no text.
[all]
    --> 1 tools/call {"name": "typed", "arguments": {"n": "3", "items": "[1, 2]", "deep": null}}
    <-- 1 {"content": [{"type": "text", "text": "3 [1, 2] None"}], ...}
    --> 2 tools/call {"name": "typed", "arguments": {"n": 3, "items": null, "deep": "{\\"a\\": 1}"}}
    <-- 2 {"content": [{"type": "text", "text": "3 [] {'a': 1}"}], ...}

A call of an unknown tool is an error of the protocol, not a tool result.
[all] spec: server/tools#error-handling
    --> 1 tools/call {"name": "missing"}
    <-- 1 error -32602 "missing"
    --> 2 prompts/get {"name": "missing"}
    <-- 2 error -32602 "missing"
    --> 3 acme/missing {}
    <-- 3 error -32601 ""
    --> 5 acme/echo {"text": "hi"}
    <-- 5 {"said": "hi"}
    --> 6 acme/nothing {}
    <-- 6 error -32603 "Internal error"

A result that breaks the tool's own output schema fails the tool, as does one that JSON cannot express.
[all] spec: server/tools#output-schema
    --> 1 tools/call {"name": "broken"}
    <-- 1 {"content": [{"type": "text", "text": ...}], "isError": true}
    --> 2 tools/call {"name": "unsayable"}
    <-- 2 {"content": [{"type": "text", "text": ...}], "isError": true}

A dict that a tool returns becomes structured content, and a list does under the key result.
[>= 2025-06-18] spec: server/tools#structured-content
    --> 1 tools/call {"name": "data"}
    <-- 1 {"content": [{"type": "text", "text": "{\\"x\\":1}"}], "structuredContent": {"x": 1}}
    --> 2 tools/call {"name": "text_only"}
    <-- 2 {"content": [{"type": "text", "text": "{\\"x\\":1}"}]}
    --> 3 tools/call {"name": "odd_list"}
    <-- 3 {"content": [{"type": "text", "text": "[1,2]"}], "structuredContent": {"result": [1, 2]}}
    --> 4 tools/call {"name": "whole"}
    <-- 4 {"content": [{"type": "text", "text": "hi"}], "isError": true, "_meta": {"a": 1, ...}}
    --> 5 tools/call {"name": "mixed"}
    <-- 5 {"content": [{"type": "text", "text": "see"}, {"type": "resource_link", "uri": "x://a", "name": "a"},
          {"type": "resource", "resource": {"blob": "AA==", ...}}]}

Structured content that is no object is sent to modern clients.
[modern] spec: server/tools#structured-content
    --> 1 tools/call {"name": "array"}
    <-- 1 {"content": [{"type": "text", "text": "[1,2]"}], "structuredContent": [1, 2]}
    --> 2 tools/call {"name": "anything"}
    <-- 2 {"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1]}

Structured content that is no object is left out for legacy clients.
[legacy] spec: server/tools#structured-content
    --> 1 tools/call {"name": "array"}
    <-- 1 {"content": [{"type": "text", "text": "[1,2]"}]}
    --> 2 tools/call {"name": "anything"}
    <-- 2 {"content": [{"type": "text", "text": "[1]"}]}

A client of an older revision gets a link as text, and structured content as it is.
[<= 2025-03-26] spec: server/tools#tool-result
    --> 1 tools/call {"name": "data"}
    <-- 1 {"content": [{"type": "text", "text": "{\\"x\\":1}"}], "structuredContent": {"x": 1}}
    --> 2 tools/call {"name": "mixed"}
    <-- 2 {"content": [{"type": "text", "text": "see"}, {"type": "text", "text": ...}, {"type": "resource", "resource": {...}}]}

A notification that a handler sends reaches the client before the answer.
[all] doors memory
    --> 1 tools/call {"name": "say_custom"}
    <-- notifications/acme/news {"n": 1}
    <-- 1 {"content": [{"type": "text", "text": "said"}]}

A resource is read as text, as a blob in base64, or as several contents.
[all] spec: server/resources#reading-resources
    --> 1 resources/read {"uri": "x://bytes"}
    <-- 1 {"contents": [{"uri": "x://bytes", "mimeType": "application/octet-stream", "blob": "/w=="}]}
    --> 2 resources/read {"uri": "x://text"}
    <-- 2 {"contents": [{"uri": "x://text", "mimeType": "text/markdown", "text": "text"}]}
    --> 3 resources/read {"uri": "x://several"}
    <-- 3 {"contents": [{"uri": "x://1", "mimeType": "text/plain", "text": "one"}, {"uri": "x://2", "blob": "AA=="},
          {"uri": "x://several", "mimeType": "text/plain", "text": "a"}]}

The variables of a template, here note://{name}/{number}, are decoded and converted to the function's types.
[all] spec: server/resources#resource-templates
    --> 1 resources/read {"uri": "note://a%20b/7"}
    <-- 1 {"contents": [{"uri": "note://a%20b/7", "mimeType": "application/json", "text": "{\\"name\\":\\"a b\\",\\"number\\":7}"}]}
    --> 2 resources/read {"uri": "note://a/b"}
    <-- 2 error -32602 "number"

The error of a resource shows only what the author meant for the client: a ToolError, and no other.
[all] spec: server/resources#error-handling
    --> 1 resources/read {"uri": "x://failing"}
    <-- 1 error -32603 "Internal error"
    --> 2 resources/read {"uri": "x://refusing"}
    <-- 2 error -32603 "not today"

An unknown resource is the error -32002 in the legacy era.
[legacy] spec: server/resources#error-handling
    --> 1 resources/read {"uri": "x://missing"}
    <-- 1 error -32002 "x://missing" {"uri": "x://missing"}

An unknown resource is the error -32602 in the modern era.
[modern] spec: server/resources#error-handling
    --> 1 resources/read {"uri": "x://missing"}
    <-- 1 error -32602 "x://missing" {"uri": "x://missing"}

Prompts have messages with one block each, and arguments as types.
[all] spec: server/prompts
    --> 1 prompts/get {"name": "talk", "arguments": {"name": "Ann", "times": "3"}}
    <-- 1 {"description": "Say hi.", "messages": [
          {"role": "user", "content": {"type": "text", "text": "hi Ann 3"}},
          {"role": "assistant", "content": {"type": "text", "text": "hello"}}]}
    --> 2 prompts/get {"name": "talk"}
    <-- 2 error -32602 "name: is required"
    --> 3 prompts/get {"name": "silent"}
    <-- 3 error -32603 ""

Completions come from the author's function, a hundred at most, and an unknown reference is an error.
[all] spec: server/utilities/completion doors memory
    --> 1 completion/complete {"ref": {"type": "ref/prompt", "name": "talk"}, "argument": {"name": "name", "value": "A"},
          "context": {"arguments": {"tone": "dry"}}}
    <-- 1 {"completion": {"values": ["Adry0", "Adry1", ...], "total": 150, "hasMore": true}}
    --> 2 completion/complete {"ref": {"type": "ref/prompt", "name": "gone"}, "argument": {"name": "name", "value": ""}}
    <-- 2 error -32602 "gone"
    --> 3 completion/complete {"ref": {"type": "ref/tool", "name": "talk"}, "argument": {"name": "name", "value": ""}}
    <-- 3 error -32602 "ref"
    --> 4 completion/complete {"ref": {"type": "ref/prompt", "name": "talk"}, "argument": {"name": "name"}}
    <-- 4 error -32602 "argument"
    --> 5 completion/complete {"ref": {"type": "ref/resource", "uri": "note://{name}/{number}"}, "argument": {"name": "name", "value": ""}}
    <-- 5 {"completion": {"values": [], ...}}

Lists come in pages, and a cursor that the server did not give is refused.
[all] spec: server/utilities/pagination
    --> 1 resources/list {}
    <-- 1 {"resources": [{"uri": "x://bytes", "name": "bytes"}, {"uri": "x://text", "name": "x://text", "mimeType": "text/markdown"},
          {"uri": "x://several", ...}], "nextCursor": ?next}
    --> 2 resources/list {"cursor": ?next}
    <-- 2 {"resources": [{"uri": "x://failing", ...}, {"uri": "x://refusing", ...}]}
    --> 3 resources/list {"cursor": "forged"}
    <-- 3 error -32602 "cursor"
    --> 4 resources/list {"cursor": 5}
    <-- 4 error -32602 "cursor"
    --> 5 tools/list {"cursor": ?next}
    <-- 5 {"tools": [{"name": "raising", ...}, ...], ...}
    --> 6 resources/templates/list {}
    <-- 6 {"resourceTemplates": [{"uriTemplate": "note://{name}/{number}", "name": "note"}]}
    --> 7 prompts/list {}
    <-- 7 {"prompts": [{"name": "talk", "description": "Say hi.", "arguments": [{"name": "name", "required": true}, {"name": "times", "required": false}, {"name": "tone", "required": false}]}, {"name": "silent"}]}

Each result of the modern era says what it is, who made it, and how long it may be kept.
[modern] spec: server/utilities/caching doors memory
    --> 1 server/discover {}
    <-- 1 {"resultType": "complete", "supportedVersions": ["2026-07-28", ...], "instructions": "Look.",
          "capabilities": {"tools": {"listChanged": true}, "logging": {}, ...},
          "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "busy", "version": "2.0", "title": "Busy"}}, "ttlMs": 7, "cacheScope": "public"}
    --> 2 prompts/list {}
    <-- 2 {"resultType": "complete", "prompts": [...], "ttlMs": 7, "cacheScope": "public", "_meta": {...}}
    --> 3 resources/read {"uri": "note://a/1"}
    <-- 3 {"resultType": "complete", "contents": [...], "ttlMs": 9, "cacheScope": "private", "_meta": {...}}
    --> 4 tools/call {"name": "data"}
    <-- 4 {"resultType": "complete", "content": [...], "structuredContent": {"x": 1}, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "busy", ...}}}

The handshake says what a server has; what comes later was not agreed on, and what goes stays declared.
[legacy] spec: basic/lifecycle#initialization bare doors memory
    --> 0 initialize {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    <-- 0 {"protocolVersion": "2025-03-26", "serverInfo": {"name": "busy", "version": "2.0", ...}, "instructions": "Look.",
          "capabilities": {"tools": {"listChanged": true}, "prompts": {"listChanged": true}, "logging": {}, "completions": {},
          "resources": {"subscribe": true, "listChanged": true}}}
    --> notifications/initialized
    --> 1 tools/call {"name": "shrink"}
    <-- notifications/prompts/list_changed
    <-- notifications/prompts/list_changed
    <-- 1 {"content": [{"type": "text", "text": "shrunk"}]}
    --> 2 prompts/list {}
    <-- 2 {"prompts": []}
    --> 3 initialize {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    <-- 3 error -32600 "initialize"

An unknown revision is answered with the newest that has a handshake.
[= 2025-11-25] spec: basic/lifecycle#version-negotiation bare doors memory
    --> 0 initialize {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    <-- 0 {"protocolVersion": "2025-11-25", ...}

A request may be piped into a server without a handshake.
[= 2025-11-25] bare doors memory stdio
    --> 1 tools/call {"name": "data"}
    <-- 1 {"content": [...], "structuredContent": {"x": 1}}
""", busy_server, ["memory"])  # fmt: skip

    test_of_announcements = conversations("""
A session is told of changed lists, and of changes of the resources that it subscribed to.
[legacy] spec: server/resources#subscriptions
    --> 1 tools/call {"name": "change"}
    <-- notifications/tools/list_changed
    <-- 1 {...}
    --> 2 resources/subscribe {"uri": "note://a"}
    <-- 2 {}
    --> 3 tools/call {"name": "touch", "arguments": {"uri": "note://a"}}
    <-- notifications/resources/updated {"uri": "note://a"}
    <-- 3 {...}
    --> 4 tools/call {"name": "touch", "arguments": {"uri": "note://b"}}
    <-- 4 {...}
    --> 5 resources/unsubscribe {"uri": "note://a"}
    <-- 5 {}
    --> 6 tools/call {"name": "touch", "arguments": {"uri": "note://a"}}
    <-- 6 {...}
    --> 7 resources/subscribe {"uri": "gone://a"}
    <-- 7 error -32002 "gone://a"

A resource that a session has subscribed to twice is announced once, and unsubscribing once ends that.
[legacy] spec: server/resources#subscriptions
    --> 1 resources/subscribe {"uri": "note://a"}
    <-- 1 {}
    --> 2 resources/subscribe {"uri": "note://a"}
    <-- 2 {}
    --> 3 tools/call {"name": "touch", "arguments": {"uri": "note://a"}}
    <-- notifications/resources/updated {"uri": "note://a"}
    <-- 3 {...}
    --> 4 resources/unsubscribe {"uri": "note://a"}
    <-- 4 {}
    --> 5 tools/call {"name": "touch", "arguments": {"uri": "note://a"}}
    <-- 5 {...}
    --> 6 resources/unsubscribe {"uri": "note://a"}
    <-- 6 {}

Announcements wait until the handshake has ended.
[legacy] spec: basic/lifecycle#operation bare doors memory
    --> 0 initialize {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    <-- 0 {...}
    --> 1 tools/call {"name": "change"}
    <-- 1 {...}
    --> notifications/initialized
    <-- notifications/tools/list_changed

A modern client is told of what it listens for and of nothing else, after an acknowledgment.
[modern] spec: basic/patterns/subscriptions doors http asgi
    --> 1 subscriptions/listen {"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["note://a"], "colors": true}}
    <-- notifications/subscriptions/acknowledged {"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["note://a"]},
          "_meta": {"io.modelcontextprotocol/subscriptionId": 1}}
    --> 2 tools/call {"name": "touch", "arguments": {"uri": "note://b"}}
    <-- 2 {...}
    --> 3 tools/call {"name": "touch", "arguments": {"uri": "note://a"}}
    <-- notifications/resources/updated {"uri": "note://a", "_meta": {"io.modelcontextprotocol/subscriptionId": 1}}
    <-- 3 {...}
    --> 4 tools/call {"name": "change"}
    <-- notifications/tools/list_changed {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}
    <-- 4 {...}
    --> notifications/cancelled {"requestId": 1}
    quiet
    --> 5 tools/call {"name": "touch", "arguments": {"uri": "note://a"}}
    <-- 5 {...}
""", doors=("memory", "http", "asgi"))  # fmt: skip

    @pytest.mark.parametrize("revision", [V1, V5])
    async def test_a_tool_is_listed_with_all_that_its_author_wrote(self, revision):
        """spec 2025-11-25: server/tools#tool"""
        app = m.Server()

        annotations = {"readOnlyHint": True, "title": None}  # as a model has it, dumped
        icons = [{**ICON, "theme": None}]

        @app.tool(title="Add", annotations=annotations, icons=icons, meta={"acme/cost": 3, "acme/limit": None})
        def add(a: int, b: int = 0) -> int:
            """Add two numbers.

            Args:
                a: the first
            """

        async with m.Client(app, revision=revision) as c:
            (tool,) = await c.list_tools()
        assert tool == {
            "name": "add", "title": "Add", "description": "Add two numbers.", "icons": [ICON],
            "annotations": {"readOnlyHint": True}, "_meta": {"acme/cost": 3, "acme/limit": None},
            "inputSchema": {"type": "object", "required": ["a"], "properties": {
                "a": {"type": "integer", "description": "the first"}, "b": {"type": "integer", "default": 0}}},
            "outputSchema": {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]},
        }  # fmt: skip

    async def test_bytes_are_content_of_no_kind_and_come_back_as_bytes(self):
        app = m.Server()
        app.add_tool(lambda: b"\0\xff", name="bytes")
        async with m.Client(app) as c:
            result = await c.call_tool("bytes")
            assert result["content"] == [{"type": "resource", "resource": {
                "uri": "result:bytes", "mimeType": "application/octet-stream", "blob": "AP8="}}]
            assert "structuredContent" not in result and await c.call("bytes") == b"\0\xff"

    @pytest.mark.parametrize("given, breaks", [
        ({"n": "x"}, True), ({"content": []}, True), ({"content": [{"type": "text", "text": "a"}]}, True),
        ({"content": [], "structuredContent": {}}, True), ({"content": [], "structuredContent": {"n": 1}}, False),
        ({"content": [], "isError": True}, False),
    ])  # fmt: skip
    async def test_a_result_is_checked_by_the_output_schema_unless_it_is_an_error(self, given, breaks, caplog):
        app = m.Server()
        schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
        app.add_tool(lambda: given, name="t", output_schema=schema)
        async with m.Client(app, revision=V4) as c:
            result = await c.call_tool("t")
        if breaks:
            assert result["content"][0]["text"].startswith(
                "tool 't' returned dict: its structured content does not fit the return annotation or output_schema=: ")
            assert "tool 't' returned" in caplog.text
        else:
            assert result == given

    async def test_a_value_that_does_not_fit_the_return_annotation_fails_the_tool(self):
        app = m.Server()

        @app.tool
        def count() -> int:
            return "many"

        async with m.Client(app) as c:
            with pytest.raises(m.ToolError, match="^tool 'count' returned str: its structured content does not fit the return annotation or "
                               "output_schema=: result: expected integer, got string; correct it, or pass structured=False$"):
                await c.call("count")

    @pytest.mark.parametrize("given, refused", [
        ({"content": [{"type": "text", "text": "no"}], "is_error": True}, True),
        ({"content": [], "structured_content": {"a": 1}}, True),
        ({"content": "no", "is_error": True}, False),
        ({"content": [{"type": "text", "text": "no"}], "is_error": True, "id": 7}, False),
    ])  # fmt: skip
    async def test_a_whole_result_with_names_of_python_is_not_sent_as_data(self, given, refused):
        app = m.Server()
        app.add_tool(lambda: given, name="t")
        async with m.Client(app) as c:
            if refused:
                with pytest.raises(m.ToolError, match="tool 't' returned dict: in a whole result, write isError and structuredContent"):
                    await c.call("t")
            else:
                assert await c.call("t") == given

    @newest_revisions
    async def test_a_client_is_told_of_each_list_that_changes(self, revision):
        """spec 2025-11-25: server/tools#list-changed-notification"""
        app, told = demo(), []
        heard = {f"on_{what}_changed": functools.partial(told.append, what)
                 for what in ("tools", "resources", "prompts")}  # fmt: skip
        async with m.Client(app, revision=revision, **heard) as c:
            app.add_tool(lambda: 1, name="new")
            await eventually(lambda: told == ["tools"])
            assert (await c.list_tools())[-1]["name"] == "new"
            await asyncio.get_running_loop().run_in_executor(None, app.remove_tool, "add")
            await eventually(lambda: told == ["tools"] * 2)
            assert (await c.list_tools())[0]["name"] == "echo"
            app.remove_resource("note://static")
            app.remove_resource("note://{name}")
            app.remove_prompt("greet")
            # Equal news may be told once.
            await eventually(lambda: set(told[2:]) == {"prompts", "resources"})
            assert await c.list_resources() == await c.list_templates() == await c.list_prompts() == []

    # Every keyword that must come out as it went in: the official suite looks for each.
    WHOLE = {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
            "street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                       "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                       "phone": {"type": "string"}, "email": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]}, "else": {"required": ["email"]},
        "additionalProperties": False,
    }  # fmt: skip
    async def test_an_input_schema_keeps_every_keyword_and_is_that_of_an_object(self):
        """spec 2025-11-25: schema#tool"""
        app = m.Server()
        app.add_tool(lambda args: args, name="whole", input_schema=self.WHOLE)
        app.add_tool(lambda args: args, name="bare", input_schema={"required": ["a"]})
        async with m.Client(app) as c:
            whole, bare = await c.list_tools()
        assert whole["inputSchema"] == self.WHOLE
        assert bare["inputSchema"] == {"type": "object", "required": ["a"]}

    def test_images_know_their_type(self, tmp_path):
        path = tmp_path / "a.JPG"
        path.write_bytes(PNG)
        for block, mime_type in [
            (m.Image(path=path), "image/jpeg"),
            (m.Image(PNG), "image/png"),
            (m.Image(PNG, format="webp"), "image/webp"),
            (m.Image(PNG, format="image/webp"), "image/webp"),
            (m.Image(PNG, format="JPG"), "image/jpeg"),
            (m.Audio(PNG, format="mp3"), "audio/mpeg"),
            (m.Image(PNG, mime_type="image/x"), "image/x"),
            (m.Audio(PNG), "audio/wav"),
        ]:
            assert (block["mimeType"], base64.b64decode(block["data"])) == (mime_type, PNG)

    @pytest.mark.parametrize("revision, told", [(V4, False), (V5, True)])
    async def test_an_output_schema_that_is_not_of_an_object_is_for_the_modern_era(self, revision, told):
        async with m.Client(busy_server(), revision=revision) as c:
            schemas = {tool["name"]: tool.get("outputSchema") for tool in await c.list_tools()}
        assert (schemas["array"] is not None) == told and schemas["broken"]["type"] == "object"

    async def test_a_link_in_a_prompt_is_text_for_an_older_client(self):
        app = m.Server()
        app.add_prompt(lambda: m.Message(m.Link("a:b", "n")), name="p")
        async with m.Client(app, revision=V2) as c:
            (message,) = (await c.get_prompt("p"))["messages"]
        assert message["content"] == {"type": "text", "text": "n: a:b"}

    async def test_a_flood_of_progress_is_thinned_out_but_the_last_value_arrives(self):
        steps = []
        async with m.Client(busy_server(), progress=lambda *step: steps.append(step[0])) as c:
            await c.call("flood", {"n": 500})
        assert len(steps) < 120 and steps[-1] == 500 and steps == sorted(steps)

    async def test_masked_errors_say_nothing_but_what_was_meant_to_be_said(self):
        def fail(kind: str) -> str:
            raise (m.ToolError if kind == "said" else ValueError)("the reason")

        app = m.Server(mask_errors=True)
        app.add_tool(fail)
        app.add_resource("x://r", lambda: fail("said"), name="r")
        async with m.Client(app) as c:
            for kind, text in (("said", "the reason"), ("kept", "failed")):
                with pytest.raises(m.ToolError, match=text) as failed:
                    await c.call("fail", {"kind": kind})
                assert ("the reason" in str(failed.value)) == (kind == "said")
            with pytest.raises(m.RemoteError, match="the reason"):
                await c.read("x://r")

    async def test_a_failure_is_in_the_log_with_its_traceback_and_one_for_the_client_is_not(self, caplog):
        app = m.Server()

        @app.tool
        def fail(kind: str) -> str:
            raise (m.ToolError if kind == "said" else ValueError)("the reason")

        async with m.Client(app) as c:
            for kind in ("said", "unsaid"):
                with pytest.raises(m.ToolError):
                    await c.call("fail", {"kind": kind})
        (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
        assert "tools/call" in record.getMessage() and "'fail'" in record.getMessage()
        assert record.exc_info and record.exc_info[0] is ValueError

    async def test_a_handler_knows_its_request(self):
        app, seen = m.Server(), {}

        @app.tool
        async def look(ctx: m.Context) -> str:
            ctx.state["count"] = ctx.state.get("count", 0) + 1
            seen.update(method=ctx.method, id=ctx.request_id, revision=ctx.revision, owner=ctx.owner,
                        info=ctx.client_info["name"], can=ctx.client_capabilities, principal=ctx.principal,
                        headers=dict(ctx.headers), cancelled=ctx.cancelled, params=ctx.params["name"],
                        meta=ctx.meta.get("acme/x"), server=ctx.server, count=ctx.state["count"])  # fmt: skip
            return "seen"

        for era, count in (("2025-11-25", 2), ("2026-07-28", 1)):
            async with m.Client(app, name="me", revision=era, roots=[]) as c:
                for _ in range(2):
                    await c.call_tool("look", {}, meta={"acme/x": 1})
            assert seen.pop("id") and "roots" in seen.pop("can")
            assert seen == {"method": "tools/call", "revision": era, "owner": "", "info": "me", "meta": 1,
                            "principal": None, "headers": {}, "cancelled": False, "params": "look",
                            "server": app, "count": count}  # fmt: skip

    @both_eras
    async def test_a_plain_function_runs_in_a_thread_and_speaks_without_await(self, era):
        app, logs, steps, variable = m.Server(), [], [], contextvars.ContextVar("variable")

        @app.middleware
        async def set_variable(ctx, call_next):
            variable.set("seen")
            return await call_next(ctx)

        @app.tool
        def work(ctx: m.Context) -> str:
            assert threading.current_thread() is not threading.main_thread()
            ctx.report_progress(1, 2, "half")
            ctx.info({"n": 1})
            return f"{ctx.read_resource('x://r')[0]['text']} {variable.get()}"

        app.add_resource("x://r", "inside")
        options = {"log": lambda *log: logs.append(log), "progress": lambda *step: steps.append(step)}
        async with m.Client(app, revision=era, **options) as c:
            assert await c.call("work") == "inside seen"
        assert logs == [("info", {"n": 1}, None)] and steps == [(1, 2, "half")]

    @both_eras
    async def test_threads_that_wait_for_the_loop_give_up_their_places(self, era):
        app = m.Server(threads=2)

        @app.resource("x://slow")
        def slow() -> str:
            return "read"

        @app.tool
        def read(ctx: m.Context) -> str:
            return ctx.read_resource("x://slow")[0]["text"]

        @app.tool
        def ask(ctx: m.Context) -> str:
            return ctx.elicit("Go on?").action

        async def answer(message, schema):
            waiting.append(1)
            if len(waiting) == 40 or era > "2026":
                answered.set()
            await answered.wait()
            return {}

        waiting, answered = [], asyncio.Event()
        async with m.Client(app, revision=era, elicit=answer) as c:
            assert await asyncio.gather(*[c.call("read") for _ in range(8)]) == ["read"] * 8
            asked = await asyncio.gather(*[c.call("ask") for _ in range(40)])
        assert asked == ["accept"] * 40

    async def test_a_thread_sees_that_its_request_was_cancelled_and_a_question_of_it_ends(self):
        app, ended, asking = m.Server(), [], threading.Event()

        @app.tool
        def watch(ctx: m.Context) -> str:
            asking.set()
            while not ctx.cancelled:
                time.sleep(0.001)
            with pytest.raises(asyncio.CancelledError):
                ctx.elicit("Too late?")
            ended.append("seen")

        @app.tool
        def ask(ctx: m.Context) -> str:
            try:
                ctx.elicit("Go on?")
            except BaseException as exc:
                ended.append(type(exc))
                raise

        begun = asyncio.Event()

        async def answer(message, schema):
            begun.set()
            await asyncio.Event().wait()

        async with m.Client(app, revision=V4, elicit=answer) as c:
            for name, when in (("watch", asking.is_set), ("ask", begun.is_set)):
                call = asyncio.ensure_future(c.call(name))
                await eventually(when)
                call.cancel()
                await asyncio.wait([call])
            await eventually(lambda: len(ended) == 2)
        assert set(ended) == {"seen", asyncio.CancelledError}

    async def test_a_host_runs_plain_functions_where_it_wants(self):
        pool, seen = concurrent.futures.ThreadPoolExecutor(1), []

        async def call_sync(job):
            return await asyncio.get_running_loop().run_in_executor(pool, job)

        app = m.Server(call_sync=call_sync)

        @app.tool
        def move(x: int, ctx: m.Context) -> int:
            seen.append(threading.get_ident())
            ctx.report_progress(1)
            if x < 0:
                raise ValueError("negative")
            return x if ctx.elicit("Sure?").action == "accept" else 0

        with pool:
            home = pool.submit(threading.get_ident).result()
            async with m.Client(app, elicit=lambda message, schema: {}) as c:
                assert await c.call("move", {"x": 3}) == 3
                with pytest.raises(m.ToolError, match="negative"):
                    await c.call("move", {"x": -3})
        assert set(seen) == {home}

    async def test_middlewares_wrap_in_the_order_of_registration_and_must_answer(self, caplog):
        app, steps = m.Server(), []
        app.tool(lambda: "done", name="work")
        for name in ("outer", "inner"):

            @app.middleware
            async def around(ctx, call_next, name=name):
                steps.append(name)
                answer = await call_next(ctx)
                steps.append(name)
                return None if ctx.params.get("name") == "forget" else answer

        app.tool(lambda: "done", name="forget")
        async with m.Client(app, revision=V4) as c:
            steps.clear()
            assert await c.call("work") == "done"
            assert steps == ["outer", "inner", "inner", "outer"]
            with pytest.raises(m.RemoteError, match="Internal error"):
                await c.call("forget")
        assert "return await call_next(ctx)" in caplog.text

    async def test_subscriptions_arguments_and_client_info_are_bounded(self):
        app = m.Server()
        app.add_resource("x://{n}", lambda n: n, name="n")
        boast = hello()
        boast["params"]["clientInfo"]["title"] = "x" * 65536
        async with lines_to(app, revision=None) as lines:
            lines.put(boast, hello(), INITIALIZED)
            error = (await lines.take())["error"]
            assert error["code"] == -32602 and "65536" in error["message"]
            assert "result" in await lines.take()
            for n in range(1001):
                lines.put(request_of(n, "resources/subscribe", uri=f"x://{n}"))
                answer = await lines.take()
                assert "result" in answer if n < 1000 else "1000" in answer["error"]["message"]

    async def test_a_capability_that_comes_after_the_handshake_is_not_served(self):
        app = m.Server()
        app.tool(lambda: "done", name="work")
        async with lines_to(app) as lines:
            app.add_prompt(lambda: "p", name="late")
            lines.put(request_of(1, "prompts/list"))
            (answer,) = await lines.answers()
            assert answer["error"]["code"] == -32601

    @newest_revisions
    async def test_requests_are_rationed_for_each_client(self, revision):
        app = m.Server(rate_limit=(3, 3600.0))
        app.tool(lambda: "done", name="work")
        async with m.Client(app, revision=revision) as one, m.Client(app, revision=revision) as other:
            for c in (one, other):
                for n in range(4):
                    await c.ping()
                    if n < 3:
                        await c.request("tools/call", {"name": "work"})
                with pytest.raises(m.RemoteError, match="3 requests") as refused:
                    await c.request("tools/call", {"name": "work"})
                assert refused.value.code == -32029 or refused.value.data["retryAfter"] >= 1

    async def test_registering_twice_replaces_and_removing_what_is_not_there_names_it(self, caplog):
        app = m.Server()
        app.tool(lambda: "old", name="work")
        app.tool(lambda: "x", name="other")
        app.tool(lambda: "new", name="work")
        assert "'work' was registered again" in caplog.text
        async with m.Client(app) as c:
            assert [tool["name"] for tool in await c.list_tools()] == ["work", "other"]
            assert await c.call("work") == "new"
        with pytest.raises(KeyError, match="no tool 'gone'; available: work, other"):
            app.remove_tool("gone")

    @newest_revisions
    async def test_a_version_that_is_a_number_is_sent_as_a_text(self, revision):
        app = m.Server("x", 1.0)
        app.tool(lambda ctx: ctx.client_info, name="who")
        async with m.Client(app, version=2, revision=revision) as c:
            assert c.server_info == {"name": "x", "version": "1.0"}
            assert await c.call("who") == {"name": "mcp_lite", "version": "2"}

    async def test_none_declares_no_capability(self):
        app = m.Server(capabilities={"tools": None, "experimental": None, "logging": None})

        @app.tool
        async def declared(ctx: m.Context) -> str:
            return json.dumps(ctx.client_capabilities)

        for revision in ("2025-11-25", "2026-07-28"):
            async with m.Client(app, revision=revision, capabilities={"roots": None, "sampling": {}}) as c:
                assert c.server_capabilities == {"tools": {"listChanged": True}}
                seen = json.loads(await c.call("declared"))
                assert "roots" not in seen and "sampling" in seen

    async def test_a_completion_may_take_its_values_by_position_alone(self):
        app = m.Server()
        app.prompt(lambda code: code, name="p")

        @app.complete("p", "code")
        def complete(value, others, /, ctx: m.Context):
            return [value, ctx.method, *others]

        async with m.Client(app) as c:
            assert await c.complete("p", "code", "x", {"a": "b"}) == ["x", "completion/complete", "a"]

    async def test_an_async_completion_needs_no_thread(self):
        app, free = m.Server(threads=1), threading.Event()

        class Plans:
            async def __call__(self, value):
                return [value]

            async def find(self, value):
                return [value]

        app.add_tool(lambda: free.wait(10), name="wait")
        app.prompt(lambda plan, draft: plan, name="p")
        app.complete("p", "plan")(Plans())
        app.complete("p", "draft")(Plans().find)
        async with m.Client(app) as c:
            waiting = asyncio.ensure_future(c.call("wait"))
            await asyncio.sleep(0.05)
            assert [await c.complete("p", name, "a") for name in ("plan", "draft")] == [["a"], ["a"]]
            free.set()
            assert await waiting == "true"

    async def test_a_completion_may_be_as_on_the_wire_but_not_an_object_of_the_sdk(self, caplog):
        app = m.Server()
        app.prompt(lambda plan: plan, name="p")
        app.complete("p", "plan")(lambda value: {"values": [value, "b"], "total": 5, "hasMore": True})
        async with m.Client(app) as c:
            assert await c.complete("p", "plan", "a") == ["a", "b"]
            answer = await c.request(
                "completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "plan", "value": "a"}})
            assert answer["completion"] == {"values": ["a", "b"], "total": 5, "hasMore": True}
            app.complete("p", "plan")(lambda value: {"values": None, "total": None, "hasMore": None})
            answer = await c.request(
                "completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "plan", "value": "a"}})
            assert answer["completion"] == {"values": [], "total": 0, "hasMore": False}
            app.complete("p", "plan")(lambda value: OfSDK())
            with pytest.raises(m.RemoteError, match="Internal error"):
                await c.complete("p", "plan", "a")
        assert "belongs to another library" in caplog.text

    async def test_a_path_in_a_resource_is_the_file_that_it_names(self, tmp_path, caplog):
        """A text, if it is UTF-8; the log says where a missing file was, and the client does not learn it."""
        (tmp_path / "plate.csv").write_bytes("well,µl\nA1,7\n".encode())
        (tmp_path / "plot.png").write_bytes(b"\x89PNG\xff")
        app = m.Server()
        app.add_resource("x://plate", tmp_path / "plate.csv")
        app.add_resource("x://plain", tmp_path / "plate.csv", mime_type="text/plain")
        app.resource("x://file/{name}", name="file")(lambda name: tmp_path / name)
        app.add_resource("x://both", lambda: [tmp_path / "plate.csv", {"uri": "x://b", "text": "b"}], name="both")
        app.add_resource("x://other", lambda: m.Resource("x://o", data=tmp_path / "plate.csv"), name="other")
        async with m.Client(app) as c:
            assert [contents["text"] for contents in (await c.read_resource("x://both"))["contents"]] == ["well,µl\nA1,7\n", "b"]
            assert (await c.read_resource("x://other"))["contents"][0]["text"] == "well,µl\nA1,7\n"
            [contents] = (await c.read_resource("x://plate"))["contents"]
            assert contents == {"uri": "x://plate", "mimeType": "text/csv", "text": "well,µl\nA1,7\n"}
            [contents] = (await c.read_resource("x://plain"))["contents"]
            assert contents["mimeType"] == "text/plain"
            [contents] = (await c.read_resource("x://file/plot.png"))["contents"]
            assert contents == {"uri": "x://file/plot.png", "mimeType": "image/png", "blob": "iVBOR/8="}
            with pytest.raises(m.RemoteError, match=r"^Resource not found: x://file/none.txt \(-32602\)$"):
                await c.read("x://file/none.txt")
        assert "none.txt" in caplog.text

    @posix
    async def test_a_file_that_is_slow_to_open_does_not_stop_the_loop(self, tmp_path):
        os.mkfifo(tmp_path / "slow")
        pinged, in_time = threading.Event(), []

        def write():
            in_time.append(pinged.wait(5))
            (tmp_path / "slow").write_text("at last")

        app = m.Server()
        app.add_resource("x://slow", tmp_path / "slow")
        writer = threading.Thread(target=write)
        writer.start()
        async with m.Client(app) as c:
            read = asyncio.ensure_future(c.read("x://slow"))
            await asyncio.sleep(0.05)
            await c.ping()
            pinged.set()
            assert await read == "at last"
        writer.join()
        assert in_time == [True]

    async def test_a_coroutine_that_nobody_awaited_is_named(self):
        app = m.Server()

        async def later(): ...

        @app.tool
        async def forget() -> typing.Any:
            forgotten.append(later())
            return forgotten

        forgotten = []
        async with m.Client(app) as c:
            with pytest.raises(m.ToolError, match="coroutine has no JSON form: convert it first; raise an exception, await a coroutine"):
                await c.call("forget")
        await forgotten[0]

    async def test_decorators_give_the_function_back(self):
        app = m.Server()

        def fn(name: str) -> str:
            return name

        given = [app.tool(fn), app.tool("other")(fn), app.prompt(fn), app.resource("x://{name}")(fn),
                 app.complete("fn", "name")(fn), app.on("notifications/x")(fn),
                 app.add_tool(fn, name="third"), app.add_prompt(fn, name="p")]  # fmt: skip
        assert given == [fn] * len(given)
        assert app.middleware(print) is app.method("acme/x")(print) is print
        assert list(app.tools) == ["fn", "other", "third"]


def working_server():
    """A server whose tools may go on as tasks."""

    @contextlib.asynccontextmanager
    async def lifespan(server):
        app.opened = asyncio.Event()
        yield

    app = m.Server("working", lifespan=lifespan)
    app.ended, app.gate = [], lambda: app.opened

    @app.on("notifications/open")
    async def open_gate(params):
        app.opened.set()

    @app.tool(task=True, structured=False)
    async def work(ctx: m.Context) -> str:
        await ctx.report_progress(1, 3)
        try:
            await app.opened.wait()
        finally:
            app.ended.append("work")
        return "done"

    @app.tool(task=True, structured=False)
    async def fails(how: str) -> str:
        if how == "value":
            raise ValueError("broken")
        if how == "unsayable":
            return {"content": [{"type": "text", "text": "x"}], "_meta": {"a": object()}}
        raise m.RPCError(-32042 if how == "reserved" else 1050, "no such thing", {"n": 1})

    @app.tool(task="required", structured=False)
    async def required() -> str:
        return "done"

    @app.tool(task=True, structured=False)
    async def asks(ctx: m.Context) -> str:
        one, two = await asyncio.gather(ctx.elicit("1", int, key="a"), ctx.elicit("2", int, key="b"))
        three = await ctx.elicit("3", int, key="a")
        return f"{one.data} {two.data} {three.data}"

    @app.tool(task=True, structured=False)
    def thread(ctx: m.Context) -> str:
        return f"{ctx.elicit('?', int, key='a').data} {ctx.once(int)}"

    @app.tool(task=True, structured=False)
    async def measured(ctx: m.Context) -> str:
        return f"{ctx.state['name']} {(await ctx.elicit('Size?', int, key='size')).data}"

    @app.middleware
    async def ask_first(ctx, call_next):
        if ctx.params.get("name") == "measured":
            ctx.state["name"] = (await ctx.elicit("Name?", str, key="name")).data
        return await call_next(ctx)

    return app


class TaskUser:
    """A modern client that knows tasks; no client of ours is in between."""

    def __init__(self, lines):
        self.lines, self.ids = lines, []

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, app):
        async with lines_to(app, revision=None) as lines:
            yield cls(lines)

    async def send(self, method, **params):
        """Return the result of a request, or its error."""
        self.lines.put(modern(1, method, params, capabilities={**TASKS_KNOWN, "elicitation": {}})[0])
        answer = await self.lines.take()
        return answer.get("result") or answer["error"]

    async def call(self, name, **params):
        made = await self.send("tools/call", name=name, **params)
        self.ids += [made["taskId"]] if "taskId" in made else []
        return made

    async def start(self, name, **arguments):
        return await self.call(name, arguments=arguments)

    async def get(self):
        return await self.send("tasks/get", taskId=self.ids[-1])

    async def statuses(self):
        """Return the statuses of all tasks; None for one that is forgotten."""
        return [(await self.send("tasks/get", taskId=each)).get("status") for each in self.ids]

    async def until(self, *statuses):
        while (task := await self.get())["status"] not in statuses:
            await asyncio.sleep(0)
        return task

    async def asked(self):
        """Return the names of the questions that wait."""
        return [*(await self.until("input_required"))["inputRequests"]]

    async def text(self):
        return (await self.until("completed"))["result"]["content"][0]["text"]

    async def answer(self, **responses):
        return await self.send("tasks/update", taskId=self.ids[-1], inputResponses=responses)

    async def cancel(self):
        await self.send("tasks/cancel", taskId=self.ids[-1])


class TestTasks:
    """The extension io.modelcontextprotocol/tasks: a call goes on, and its client comes back."""

    test_it_goes_as_written = conversations("""
A call may become a task: the answer is a handle without the result, which the client fetches later.
[modern] spec: extensions/tasks capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    --> 1 tools/call {"name": "work"}
    <-- 1 {"resultType": "task", "taskId": ?id, "status": "working", "createdAt": ?t, "lastUpdatedAt": ..., "ttlMs": null,
          "pollIntervalMs": 500, ...}
    --> 2 tasks/get {"taskId": ?id}
    <-- 2 {"taskId": ?id, "status": "working", "statusMessage": "1/3", "createdAt": ?t, "lastUpdatedAt": ...,
          "ttlMs": null, "pollIntervalMs": 500}
    --> 3 tasks/cancel {"taskId": ?id}
    <-- 3 {}
    --> 4 tasks/get {"taskId": ?id}
    <-- 4 {"taskId": ?id, "status": "cancelled", ...}
    --> 5 tasks/get {"taskId": "unknown"}
    <-- 5 error -32602 "unknown"

A client that knows no tasks gets an ordinary answer, or an error where a task is required.
[modern] spec: extensions/tasks
    --> 1 tools/call {"name": "work"}
    open
    <-- 1 {"content": [{"type": "text", "text": "done"}]}
    --> 2 tools/call {"name": "required"}
    <-- 2 error -32021 "tasks" {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    --> 3 tasks/get {"taskId": "x"}
    <-- 3 error -32021 "tasks"

A legacy client knows no tasks, and its answers are ordinary ones.
[legacy]
    --> 1 tools/call {"name": "required"}
    <-- 1 {"content": [{"type": "text", "text": "done"}]}
    --> 2 tasks/get {"taskId": "x"}
    <-- 2 error -32601 ""

A client that listens for its task is told how the task ends.
[modern] spec: extensions/tasks capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}} doors memory
    --> 1 tools/call {"name": "work"}
    <-- 1 {"resultType": "task", "taskId": ?id, ...}
    --> 2 subscriptions/listen {"notifications": {"taskIds": [?id, "unknown"]}}
    <-- notifications/subscriptions/acknowledged {"notifications": {"taskIds": [?id]}, ...}
    open
    <-- notifications/tasks {"taskId": ?id, "status": "completed", "result": {"content": [{"type": "text", "text": "done"}]}, ...}
    --> notifications/cancelled {"requestId": 2}
""", working_server, ["memory", "http"])  # fmt: skip

    async def test_a_client_goes_on_polling_where_a_server_limits_its_requests(self):
        app, gate = m.Server(rate_limit=(3, 2.0)), asyncio.Event()

        @app.tool(task=True)
        async def slow() -> str:
            await gate.wait()
            return "done"

        async with m.Client(app, revision=V5) as c:
            refused = []
            m.set_trace(lambda way, name, msg: refused.append(msg) if "429" in repr(msg) else None)
            try:
                call = asyncio.ensure_future(c.call("slow"))
                await eventually(lambda: refused)
            finally:
                m.set_trace(None)
            gate.set()
            assert await call == "done"

    @pytest.mark.parametrize("how, status, says", [
        ("value", "completed", {"content": [{"type": "text", "text": "broken"}], "isError": True}),
        ("code", "failed", {"code": 1050, "message": "no such thing", "data": {"n": 1}}),
        ("reserved", "failed", {"code": -32603, "message": "no such thing", "data": {"n": 1}}),
        ("unsayable", "failed", None),
    ])  # fmt: skip
    async def test_failures_of_the_tool_and_of_the_protocol_are_told_apart(self, how, status, says, caplog):
        async with TaskUser.of(working_server()) as user:
            await user.start("fails", how=how)
            task = await user.until("completed", "failed")
        outcome = task.get("result") or task["error"]
        assert task["status"] == status
        if says is None:
            says = {"code": -32603, "message": "the outcome of the task cannot be sent"}
            assert "cannot be sent: Object of type object is not JSON" in caplog.text
        assert outcome == says

    async def test_questions_of_a_task_are_answered_by_updates_and_no_name_comes_twice(self):
        async with TaskUser.of(working_server()) as user:
            assert "inputRequests" not in await user.start("asks")
            task = await user.until("input_required")
            assert task["inputRequests"]["a"]["params"]["message"] == "1"
            one = {"action": "accept", "content": {"value": 1}}
            assert await user.answer(a=one, c=one) is not None
            assert await user.asked() == ["b"]
            await user.answer(b={"action": "accept", "content": {}})
            (again,) = await user.asked()  # an answer that does not fit is asked for again
            await user.answer(**{again: {"action": "accept", "content": {"value": 2}}})
            (third,) = await user.asked()
            assert len({"a", "b", again, third}) == 4
            await user.answer(**{third: {"action": "accept", "content": {"value": 3}}})
            assert await user.text() == "1 2 3"

    async def test_a_question_leaves_the_message_of_its_task_as_it_is(self):
        app = m.Server()

        @app.tool(task=True)
        async def copy(ctx: m.Context) -> str:
            await ctx.report_progress(1, 3, "copying")
            await ctx.elicit("Go on?", key="go")
            await asyncio.sleep(3600)

        async with TaskUser.of(app) as user:
            await user.start("copy")
            assert (await user.until("input_required"))["statusMessage"] == "copying"
            await user.answer(go={"action": "accept"})
            assert (await user.until("working"))["statusMessage"] == "copying"
            await user.cancel()

    async def test_an_answer_that_comes_on_another_loop_wakes_the_task_on_its_own(self, monkeypatch):
        monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")  # a loop that another thread touches raises
        app = m.Server()

        @app.tool(task="required")
        async def ask_name(ctx: m.Context) -> str:
            return (await ctx.elicit("name?", str)).data

        async def send(server, method, **params):
            msg, fields = modern(1, method, params, capabilities={**TASKS_KNOWN, "elicitation": {}})
            return (await ask(server.url, "POST", msg, **fields))[2]["result"]

        with contextlib.ExitStack() as stack:
            one, two = app.start_in_thread(port=0), app.start_in_thread(port=0)
            stack.callback(one.stop)
            stack.callback(two.stop)
            here = {"taskId": (await send(one, "tools/call", name="ask_name", arguments={}))["taskId"]}
            while "inputRequests" not in (task := await send(two, "tasks/get", **here)):
                pass
            (name,) = task["inputRequests"]
            answer = {"action": "accept", "content": {"value": "Ada"}}
            await send(two, "tasks/update", inputResponses={name: answer}, **here)
            while (task := await send(two, "tasks/get", **here))["status"] not in ("completed", "failed"):
                pass
        assert task["result"]["content"] == [{"type": "text", "text": "Ada"}]

    async def test_a_question_of_a_task_that_nobody_waits_for_is_withdrawn(self):
        app, late = working_server(), []

        @app.tool(task=True, structured=False)
        async def impatient(ctx: m.Context) -> str:
            try:
                await ctx.elicit("?", int, timeout=0.01)
            except m.RequestTimeout as exc:
                late.append(str(exc))
            await app.opened.wait()
            return "done"

        async with TaskUser.of(app) as user:
            await user.start("impatient")
            await eventually(lambda: late)
            task = await user.get()
            assert late == ["the client did not answer elicitation/create within 0.01 seconds; timeout=N waits longer"]
            assert task["status"] == "working" and "inputRequests" not in task
            app.opened.set()
            await user.until("completed")

    async def test_a_task_that_has_ended_keeps_nothing_of_its_request(self):
        app, seen = working_server(), []

        @app.tool(task=True, structured=False)
        async def look(ctx: m.Context) -> str:
            seen.append(weakref.ref(ctx))
            return "done"

        async with TaskUser.of(app) as user:
            await user.start("look")
            await user.until("completed")
            gc.collect()
            assert seen[0]() is None

    async def test_a_thread_asks_in_a_task_and_a_cancelled_one_ends(self):
        async with TaskUser.of(working_server()) as user:
            await user.start("thread")
            (name,) = await user.asked()
            await user.answer(**{name: {"action": "accept", "content": {"value": 5}}})
            assert await user.text() == "5 0"
            await user.start("thread")
            await user.asked()
            await user.cancel()
            assert (await user.get())["status"] == "cancelled"

    async def test_questions_of_a_middleware_come_in_rounds_before_the_task_begins(self):
        async with TaskUser.of(working_server()) as user:
            first = await user.start("measured")
            assert first["resultType"] == "input_required"
            given = {"name": {"action": "accept", "content": {"value": "Ann"}}}
            made = await user.call("measured", arguments={}, requestState=first["requestState"], inputResponses=given)
            assert made["resultType"] == "task" and "inputRequests" not in made
            assert await user.asked() == ["size"]
            await user.answer(size={"action": "accept", "content": {"value": 4}})
            assert await user.text() == "Ann 4"

    async def test_a_cancelled_task_stays_cancelled_and_its_work_ends(self):
        app = working_server()
        async with TaskUser.of(app) as user:
            await user.start("work")
            await user.cancel()
            await eventually(lambda: app.ended == ["work"])
            app.opened.set()
            assert (await user.get())["status"] == "cancelled"

    @pytest.mark.parametrize("awaited", [True, False])
    async def test_a_task_is_cancelled_although_its_client_goes_at_once(self, awaited):
        app = working_server()
        async with app.http(port=0) as server:
            async with m.Client(server.url) as c:
                call = asyncio.ensure_future(c.call("work"))
                await asyncio.sleep(1)
                call.cancel()
                if awaited:
                    await asyncio.wait({call})
            await eventually(lambda: app.ended == ["work"])

    async def test_a_task_ends_with_its_server_although_a_call_of_once_goes_on(self, caplog):
        app, calls = working_server(), []

        @app.tool(task=True)
        async def look(ctx: m.Context) -> None:
            calls.append(asyncio.ensure_future(ctx.once(app.opened.wait)))
            await app.opened.wait()

        async with TaskUser.of(app) as user:
            await user.start("look")
            await eventually(lambda: calls)
        assert "ignore their cancellation" not in caplog.text  # the server waits 2 seconds for those
        app.opened.set()

    async def test_tasks_are_bounded_and_old_results_make_room(self):
        async with TaskUser.of(working_server()) as user:
            for _ in range(3):
                await user.start("work")
            for _ in range(1097):
                await user.start("fails", how="value")
                await user.until("completed")
            kept = await user.statuses()
        assert kept[:4] == ["working"] * 3 + [None] and kept[-1] == "completed"

    async def test_the_oldest_results_of_tasks_give_way_when_all_are_too_long(self, monkeypatch):
        app = working_server()
        app.add_tool(lambda: "x" * 40_000, name="long", task=True, structured=False)
        monkeypatch.setattr(m, "HELD_BYTES", 100_000)
        async with TaskUser.of(app) as user:
            for _ in range(3):
                await user.start("long")
                await user.until("completed")
            assert await user.statuses() == [None, "completed", "completed"]

    async def test_the_result_of_a_long_task_that_has_just_ended_is_kept(self, monkeypatch):
        app = working_server()
        app.add_tool(lambda: "x" * 8_000, name="large", task=True, structured=False)
        monkeypatch.setattr(m, "HELD_BYTES", 10_000)
        async with TaskUser.of(app) as user:
            await user.start("work")
            await user.start("large")
            await user.until("completed")
            app.opened.set()
            while (await user.statuses())[0] != "completed":
                pass
            await user.start("large")
            await user.until("completed")
            assert await user.statuses() == ["completed", None, "completed"]

    async def test_too_many_running_tasks_are_refused(self):
        async with TaskUser.of(working_server()) as user:
            for _ in range(1001):
                made = await user.start("work")
                if "taskId" not in made:
                    break
            assert "too many tasks" in made["message"]

    async def test_a_client_polls_a_task_and_answers_its_questions(self):
        given = iter([1, 2, 3])
        async with m.Client(working_server(), elicit=lambda message, schema: {"value": next(given)}) as c:
            assert await c.call("asks") in ("1 2 3", "2 1 3")

    async def test_a_legacy_client_is_not_told_of_the_tasks_of_others(self):
        app, told = m.Server(), []
        app.tool(lambda: "secret", name="work", task=True)
        async with m.Client(app, revision=V4) as other, m.Client(app) as c:
            other.on("notifications/tasks")(told.append)
            assert await c.call("work") == "secret"
            await idle()
            await other.ping()
        assert told == []

    async def test_a_task_is_its_principals(self):
        app = working_server()

        async with app.http(port=0, verify=lambda token: m.Principal("i", token)) as server:
            async with m.Client(server.url, token="ann") as ann, m.Client(server.url, token="bob") as bob:
                call = asyncio.ensure_future(ann.call("work"))
                await eventually(lambda: app.jobs)
                (task_id,) = app.jobs
                with pytest.raises(m.RemoteError, match="Unknown task"):
                    await bob.request("tasks/cancel", {"taskId": task_id})
                app.opened.set()
                assert await call == "done"


NOON = datetime.time(12)


class AtMostNoon:
    """What a note of annotated_types has."""

    le = NOON


class Digits:
    """A note that nobody here understands."""

    def __repr__(self):
        return "Digits(3)"


class Invalid(ValueError):
    """What a model of pydantic's raises."""

    def errors(self):
        return [{"loc": ("leaves", 0, "n"), "msg": "Value error, too small"}]


class Tree:
    """What a model of pydantic's has."""

    @classmethod
    def model_json_schema(cls, mode="validation"):
        leaf = {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"oneOf": [
            {"$ref": "#/$defs/Leaf"}, {"type": "object", "required": ["n"]}]}}}
        leaves = {"type": "array", "items": {"$ref": "#/$defs/Leaf"}}
        size = {"size": {"type": "integer"}} if mode == "serialization" else {}  # a computed field
        leaf["properties"]["oneOf"] = {"type": "null"}
        return {"type": "object", "properties": {"leaves": leaves, **size}, "$defs": {"Leaf": leaf}}

    @classmethod
    def model_validate(cls, value, strict):
        assert strict is False  # a strict model would take no text for a date
        if not value["leaves"]:
            raise RuntimeError("no leaves")
        if value["leaves"] == [{"n": 0}]:
            raise Invalid
        tree = cls()
        tree.value = value
        return tree

    def model_dump(self, mode, by_alias):
        assert (mode, by_alias) == ("json", True)
        return self.value


class Key:
    """What a RootModel[Union[int, str]] of pydantic's has."""

    @classmethod
    def model_json_schema(cls, mode):
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}

    @classmethod
    def model_validate(cls, value, strict):
        made = cls()
        made.root = value
        return made


def odd(a: typing.Annotated[str, {"pattern": "("}]): ...


Constraint = types.SimpleNamespace
Lonely = dataclasses.make_dataclass("Lonely", [("friend", "Nowhere")])


def taking(hint):
    """Return a use of a server: the registration of a tool with this type of parameter."""

    def use(app):
        def pay(a): ...

        pay.__annotations__["a"] = hint
        app.add_tool(pay)

    return use


def no_async(server):
    yield


OfSDK = type("Context", (), {"__module__": "mcp.server.fastmcp.server", "model_dump": None})


def foreign(ctx: OfSDK): ...


async def takes_sync(ctx: m.SyncContext): ...


@dataclasses.dataclass
class Sure:
    a: int


class TestServing:
    """What surrounds all conversations: the lifespan, threads, transports, an end in good order."""

    async def test_a_bound_of_what_json_does_not_know_is_compared(self):
        app = m.Server()

        @app.tool
        def pay(
            amount: typing.Annotated[decimal.Decimal, {"exclusiveMinimum": 0}],
            at: typing.Annotated[datetime.time, AtMostNoon()] = NOON,
            tip: typing.Annotated[typing.Optional[decimal.Decimal], {"maximum": 9}] = None,
            fee: typing.Annotated[decimal.Decimal, {"minimum": 0.1, "multipleOf": 0.1}] = 1,
        ) -> str:
            return f"{amount} {at} {tip} {fee}"

        async with m.Client(app) as c:
            right = {"amount": "0.5", "at": "11:59", "tip": 9, "fee": "0.1"}
            assert await c.call("pay", right) == "0.5 11:59:00 9 0.1"
            for wrong, why in (
                ({"amount": "-5"}, "amount: must be more than 0"), ({"amount": -5}, "amount: must be more than 0"),
                ({"amount": "NaN"}, "amount: must match"), ({"amount": "1e5x"}, "amount: must match"),
                ({"amount": 1, "at": "12:01"}, "at: must be at most 12:00:00"),
                ({"amount": 1, "tip": "9.5"}, "tip: must be at most 9"),
                ({"amount": 1, "fee": "0.0"}, "fee: must be at least 0.1"),
                ({"amount": 1, "fee": "0.15"}, "fee: must be a multiple of 0.1"),
                ({"amount": 1, "fee": "1e999999999"}, "fee: must match"),  # it would take hours
            ):  # fmt: skip
                with pytest.raises(m.ToolError, match=why):
                    await c.call("pay", wrong)

    async def test_an_answer_holds_the_bounds_that_no_form_can_say(self):
        app = m.Server()

        @app.tool
        async def ask(ctx: m.Context) -> int:
            return (await ctx.elicit("How many?", typing.Annotated[int, {"exclusiveMinimum": 0}])).data

        answers = iter([-5, -5, 5])
        asked = {"elicit": lambda message, schema: {"value": next(answers)}}
        async with m.Client(app, revision=V4, **asked) as c:
            with pytest.raises(m.ToolError, match="value: must be more than 0"):
                await c.call("ask")
        async with m.Client(app, **asked) as c:
            assert await c.call("ask") == 5

    def test_alternatives_inside_alternatives_are_read_on_one_budget(self):
        @dataclasses.dataclass
        class Sum:
            left: typing.Any

        @dataclasses.dataclass
        class Product:
            left: typing.Any

        either = typing.Union[Sum, Product, int]
        for cls in (Sum, Product):
            cls.__annotations__["left"] = either
        read, right, wrong = m.converter(either), 1, "x"
        for _ in range(40):  # without a budget, each level doubles the work
            right, wrong = {"left": right}, {"left": wrong}
        assert read(right).left.left == read(right["left"]["left"])
        with pytest.raises(m.SchemaError, match="is not usable: it takes too long"):
            read(wrong)

    def test_json_is_read_as_an_argument_is(self):
        read = m.converter(typing.List[typing.Annotated[decimal.Decimal, {"minimum": 1}]])
        assert read(["1.50", 2]) == [decimal.Decimal("1.50"), decimal.Decimal(2)]
        for wrong, why in (["0.5"], r"\[0\]: must be at least 1"), ([2, "x"], r"\[1\]: must match"), (3, "expected array"):
            with pytest.raises(m.SchemaError, match=why):
                read(wrong)
        with pytest.raises(TypeError, match="has no JSON Schema"):
            m.converter(threading.Lock)

    async def test_a_model_describes_reads_and_writes_itself(self):
        app = m.Server()

        @app.tool
        def grow(trees: typing.List[Tree], more: typing.Optional[Tree] = None) -> Tree:
            assert {type(tree) for tree in trees} == {Tree}
            return trees[0]

        one = {"leaves": [{"n": 1, "next": {"n": 2}}]}
        async with m.Client(app) as c:
            (tool,) = await c.list_tools()
            leaf = {"$ref": "#/$defs/Leaf"}  # it contains itself
            tree = {"type": "object", "properties": {"leaves": {"type": "array", "items": leaf}}}
            assert tool["inputSchema"]["properties"]["trees"] == {"type": "array", "items": tree}
            either = {"anyOf": [leaf, {"type": "object", "required": ["n"]}]}
            classes = {"Leaf": {"type": "object", "properties": {
                "n": {"type": "integer"}, "next": either, "oneOf": {"type": "null"}}}}
            assert tool["inputSchema"]["$defs"] == classes
            written = {**tree["properties"], "size": {"type": "integer"}}
            assert tool["outputSchema"] == {**tree, "properties": written, "$defs": classes}
            assert await c.call("grow", {"trees": [one]}) == one
            for wrong, why in (({"leaves": []}, r"trees\[0\]: is not usable: no leaves"),
                               ({"leaves": [{"n": 0}]}, r"trees\[0\].leaves\[0\].n: Value error, too small$"),
                               ({"leaves": [{"n": "x"}]}, r"trees\[0\].leaves\[0\].n: expected integer")):  # fmt: skip
                with pytest.raises(m.ToolError, match=why):
                    await c.call("grow", {"trees": [wrong]})

    @newest_revisions
    async def test_a_tool_that_takes_too_long_fails_and_is_cancelled(self, revision):
        app, seen, running = m.Server(), [], threading.Event()

        @app.tool(timeout=0.05)
        async def forever() -> int:
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("cancelled")

        @app.tool(timeout=0.05)
        def thread(ctx) -> int:
            while not ctx.cancelled:
                running.wait(0.01)
            seen.append("told")

        @app.tool(timeout=60)
        async def quick() -> int:
            return 5

        async with m.Client(app, revision=revision) as c:
            for name in ("forever", "thread"):
                with pytest.raises(m.ToolError, match=f"{name} took longer than 0.05 seconds"):
                    await c.call(name)
            assert await c.call("quick") == 5
            await until(lambda: seen == ["cancelled", "told"])

    @pytest.mark.parametrize("use, words", [
        (lambda app: app.asgi_with(healtz=True), r"asgi: no option 'healtz'; did you mean healthz\?"),
        (lambda app: app.start_in_thread(prot=1), r"http: no option 'prot'; did you mean port\?"),
        (lambda app: app.run(m.memory_transports()[0], prot=1), r"serving on MemoryTransport: no option 'prot'"),
        (lambda app: m.Server(lifespan=3), "lifespan= must be a function of \\(server\\), not int"),
        (lambda app: m.Server(max_in_flight=0), "max_in_flight="),
        (lambda app: m.Server(rate_limit=(0, 60)), "rate_limit"), (lambda app: m.Server(rate_limit=(5, 0)), "rate_limit"),
        (lambda app: m.Server(rate_limit=(0.5, 1.0)), "must be >= 1"), (lambda app: m.Server(page_size=0.5), "must be >= 1"),
        (lambda app: m.Server(threads=0), "must be >= 1"), (lambda app: m.Server(state_key=b"x" * 15), "16"),
        (lambda app: m.Elicited("accept", 1, 2, 3), "too many values for Elicited"),
        (lambda app: m.Resource("file:///a"), "pass text= or data="),
        (taking(os.PathLike), "parameter 'a': .*has no JSON Schema"),
        (lambda app: app.run(port=8000), r'on stdio, not run\("http", port=8000\): no option .port.'),
        (lambda app: app.run("http", alowed_hosts=["x"]), "alowed_hosts"),
        (lambda app: app.middleware(lambda ctx: {}), r"a middleware is called with \(ctx, call_next\), but takes"),
        (lambda app: m.Image("plot.png"), "expected bytes, got 'plot.png': pass the name of a file as path="),
        (lambda app: app.tool("odd")(odd), r"tool 'odd': is not usable: missing \)"),
        (lambda app: m.Server(lifespan=no_async), "lifespan= must be an `async def` with a `yield`"),
        (lambda app: m.Server(lifespan=contextlib.contextmanager(no_async)), "lifespan= must be an `async def`"),
        (lambda app: m.Server("demo", port=8000), r"""^Server\(\) \(HTTP options go to run\("http", port=8000\)\): no option 'port'; available: name, .*, state_key$"""),
        (lambda app: m.Server("demo", zoo=1, bar=2, host=3, alpha=4), "no option 'zoo'"),
        (lambda app: m.Server("demo", verison="1"), r"no option 'verison'; did you mean version\?"),
        (lambda app: m.Server("demo", "Use it to add numbers."), "'Use it to add numbers.' is not a version: pass it as instructions="),
        (lambda app: m.Server("demo", "Manage addresses."), "'Manage addresses.' is not a version"),
        (lambda app: m.Server(capabilities={"x": True}), "capabilities={'x': True}: each capability must be a dict"),
        (lambda app: m.Server(capabilities={"x": {"rate": float("inf")}}), "JSON has no NaN, no Infinity"),
        (lambda app: m.Server(icons=[{"src": b"a.png"}]), "bytes is not JSON serializable"),
        (lambda app: app.tool("sync")(takes_sync), "'sync': an `async def` must take a Context, not a SyncContext"),
        (lambda app: app.method("a/b")(takes_sync), "'a/b': an `async def` must take a Context, not a SyncContext"),
        (lambda app: app.on("a/b")(takes_sync), "'a/b': an `async def` must take a Context, not a SyncContext"),
        (lambda app: app.tool("sdk")(foreign), r"foreign\(\): parameter 'ctx': .* belongs to another library: import Context"),
        (lambda app: m.Client(app, elicit=lambda message: {}), r"elicit= is called with \(message, schema\), but takes \(message\)$"),
        (lambda app: m.Client(app, on_tools_changed=lambda params: 0), r"on_tools_changed= is called with \(\), but takes"),
        (lambda app: m.Client(app, on_resource_updated=5), "on_resource_updated= must be a function of \\(params\\), not int"),
        (lambda app: m.Client(app, roots=lambda context: []), r"roots= is called with \(\), but takes"),
        (lambda app: m.Client(app).on("acme/x")(lambda: 0), r"@on\('acme/x'\) is called with \(params\), but takes"),
        (lambda app: m.Client(app).on(print), r"@on\(\) and @method\(\) take the name of a method, not <built-in function print>"),
        (lambda app: app.on(print), r"@on\(\) and @method\(\) take the name of a method, not <built-in function print>"),
        (lambda app: app.method(print), r"@on\(\) and @method\(\) take the name of a method, not <built-in function print>"),
        (lambda app: app.on("acme/x")(5), "the handler of 'acme/x' must be a function of \\(params\\), not int"),
        (lambda app: (app.add_prompt(lambda city: city, name="trip"), app.complete("trip", "city")(5)),
         r"the handler of 'city' must be a function of \(value, arguments\), not int"),
        (lambda app: (app.add_prompt(lambda city: city, name="trip"),
                      app.complete("trip", "city")(lambda ref, argument, context: [])),
         r"the handler of 'city' is called with \(value, arguments\), but takes"),
        (lambda app: app.on("acme/x")(lambda ctx, params, more: 0), r"the handler of 'acme/x' is called with \(params\), but takes"),
        (lambda app: app.include("reports", m.Server()), r"write include\(server, 'reports'\)"),
        (lambda app: app.middleware(Lonely), r"a middleware "),
        (lambda app: m.Server(stateless_http=True), "no option 'stateless_http'; write sessions=False$"),
        (lambda app: app.asgi_with(frozen=1), "no option 'frozen'; available: path, token, [a-z_, ]*, max_body$"),
        (lambda app: m.Client(app, read_timeout_seconds=5), r"^Client\(Server\('mcp_lite'\)\): no option 'read_timeout_seconds'; write timeout=$"),
        (lambda app: m.Client(app).subscribe("a://b", 5), "callback= must be a function of \\(params\\), not int"),
        (lambda app: m.Client(app).listen(tools=True, callback=lambda: 0), r"callback= is called with \(params\), but takes"),
        (lambda app: m.Client("server", stderr=sys.stderr), "stderr= must be a function of \\(line\\), not "),
        (lambda app: m.Client("server", env={"PORT": 8000}), "env=: PORT must be a str, not 8000"),
        (lambda app: m.Client("http://localhost/", headers={"X-Team": None}), "x-team"),
        (lambda app: m.Client("server.py", timeout="3"), "timeout"), (lambda app: m.Client(app, max_timeout="3"), "max_timeout"),
        (lambda app: m.Client(app, progress=True), "progress= must be a function of \\(done, total, message\\), not bool"),
        (lambda app: m.Client(app, sample=False), "sample= must be a function of \\(params\\), not bool"),
        (lambda app: app.asgi_with(verify={"secret": 1}), "^verify= must be a function of \\(token\\), not dict$"),
        (lambda app: m.Guard(verify=lambda: 0), r"verify= is called with \(token\), but takes"),
        (lambda app: app.asgi_with(allowed_hosts=["https://a.example/mcp"]), "allowed_hosts= has 'https://a.example/mcp'"),
        (lambda app: app.asgi_with(allowed_origins="a.example"), "allowed_origins= has 'a.example'"),
        (lambda app: app.tool("now", timeout="3")(lambda: 1), "timeout='3': must be a number >= 0"),
        (lambda app: app.tool("now", timeout=-1)(lambda: 1), "timeout=-1: must be a number >= 0"),
        (taking(typing.Annotated[int, "how much", Digits()]), r"parameter 'a': Digits\(3\) in Annotated\[\] is not understood"),
        # as pydantic.Field(ge=1, alias="sum"), StringConstraints(...), Field(default=3, ge=1)
        (taking(typing.Annotated[int, Constraint(ge=1, alias="sum")]), r"alias='sum'\) in Annotated\[\] is not understood"),
        (taking(typing.Annotated[str, Constraint(min_length=1, strip_whitespace=True)]),
         "is not understood: write a default after =, a bound as"),
        (taking(typing.Annotated[int, Constraint(ge=1, default=3)]), "is not understood: write a default after =, a bound as"),
        (taking(typing.Annotated[int, {"minimun": 1}]), "parameter 'a': 'minimun' is not a keyword of JSON Schema"),
        (taking(typing.Annotated[int, {"ge": 1, "title": "n"}]), r"'ge' is not a keyword of JSON Schema \(a name of your own begins with x-\)"),
        (taking(Lonely), "parameter 'a': the annotations of Lonely: name 'Nowhere' is not defined: define its names at module level"),
        (taking(typing.Annotated[str, {"minimum": 3}]), "parameter 'a': minimum bounds a number, not string"),
        (taking(typing.Annotated[str, {"minimum": "b"}]), "parameter 'a': minimum bounds a number, not string"),
        (taking(typing.Annotated[int, {"minLength": 1}]), "minLength bounds a string, not number"),
        (taking(typing.Annotated[typing.List[int], {"maximum": 1}]), "maximum bounds a number, not array"),
        (taking(typing.Annotated[datetime.date, {"minimum": 3}]), "minimum: expected string, got integer"),
        (lambda app: app.tool("a", annotations={"readOnly": True})(print), "Tool: no annotation 'readOnly'; did you mean readOnlyHint?"),
        (lambda app: app.tool(name="a", meta={"tags": {"admin"}})(print), "set is not JSON serializable"),
        (lambda app: app.tool("a", output_schema=Spot)(lambda: 1), r"a\(\): output_schema=: expected object or boolean"),
        (lambda app: app.tool(name="a", output_shema={})(print), "Tool: no option 'output_shema'; did you mean output_schema?"),
        (lambda app: app.tool("a", annotations=OfSDK())(print), "belongs to another library: import Context, Image"),
        (lambda app: app.add_tool(lambda user=OfSDK(): 1, name="a"),  # noqa: B008 -- as Depends(...) of FastMCP
         "parameter 'user': <class 'mcp.server.fastmcp.server.Context'> belongs to another library"),
        (lambda app: app.tool("a", annotations={"readOnlyHint": "yes"})(print), "Tool: annotations.readOnlyHint: expected boolean, got string"),
        (lambda app: app.tool("a", annotations={"readOnlyHint": 1})(print), "Tool: annotations.readOnlyHint: expected boolean, got integer"),
        (lambda app: app.tool("a", icons="x.png")(print), "Tool: icons: expected array, got string"),
        (lambda app: app.tool("a", input_schema=dict)(print), "input_schema=<class 'dict'>: must be a dict of type object"),
        (lambda app: app.tool("a", input_schema={"type": "array"})(print), "must be a dict of type object"),
        (lambda app: app.tool("a", icons=["x.png"])(lambda: 1), r"Tool: icons\[0\]: expected object, got string"),
        (lambda app: app.prompt("a", title=5)(lambda: 1), "Prompt: title: expected string, got integer"),
        (lambda app: app.resource("x://a", size="big")(lambda: 1), "ResourceEntry: size: expected integer, got string"),
        (lambda app: m.Image(b"", meta="a"), "Image: meta: expected object, got string"),
        (lambda app: m.compile_schema({"pattern": r"\p{L}"}), r'bad escape .* in the pattern "'),
        (lambda app: m.Message("user", "hi"), """^role: must be "user" or "assistant", not 'hi'$"""),
        (lambda app: m.compile_schema({"$ref": "#" + "/ab" * 5_000_000}), "it takes too long"),
        (lambda app: app.tool(lambda: 1), "name="),
        (lambda app: app.resource(lambda: 1), "URI"),
        (lambda app: app.add_resource("x://{a}", lambda: 1, name="n"), r"missing in the function: \['a'\]; never passed to it: none"),
        (lambda app: app.add_resource("x://{a}", lambda a, b: 1, name="n"), r"missing in the function: none; never passed to it: \['b'\]"),
        (lambda app: app.tool(lambda a, b=1: 1, name="n", input_schema={"properties": {"a": {}, "c": {}}}),
         r"input_schema=: missing in the function: \['c'\]; never passed to it: none$"),
        (lambda app: app.tool(lambda a, b: 1, name="n", input_schema={"properties": {"a": {}}}), r"never passed to it: \['b'\]$"),
        (lambda app: app.method("tools/list")(print), "middleware"),
        (lambda app: app.method("a/b")(lambda params: {}), r"the handler of 'a/b' is called with \(ctx, params\), but takes"),
        (lambda app: app.tool(task="maybe")(print), "required"),
        (lambda app: app.tool(lambda: 1, name="x", colour="red"), "colour"),
        (lambda app: app.tool(lambda: 1, name="x", scopes='a"b'), "scope"),
        (lambda app: app.run("sse"), r"'sse' is not a transport: write run\(\) for stdio, or run\(\"http\", port=8000\)"),
        (lambda app: m.Server(icons="x.png"), "Server: icons: expected array, got string"),
        (lambda app: app.add_tool(6, name="six"), "tool 'six': 6 is not a function"),
        (lambda app: app.asgi_with(token={"a": {"subject": "x", "access_token": "a"}}), "use a Principal, or a dict without it"),
        (lambda app: app.asgi_with(token={"a": {"subject": "x", "expires_at": "2020"}}), "expires_at of a principal must be like time.time"),
        (lambda app: app.route("/x", ["GET"])(print), r"route\('/x', \['GET'\]\): write route\(\"GET\", \"/path\"\); a path begins"),
        (lambda app: app.asgi_with(token={"a": {"subject": "x", "token": "a"}}), "use a Principal, or a dict without it"),
        (lambda app: app.route("/x", "GET")(print), r"route\('/x', 'GET'\): write route\(\"GET\", \"/path\"\); a path begins with a slash"),
        (lambda app: app.route("GET", "/x/{id}")(print), "a path begins with a slash, and has no parameters"),
        (lambda app: app.route("GET", "/x")(lambda: "hi"), r"the page /x is called with \(request\), but takes"),
        (lambda app: app.prompt(name="a", scopes=[])(print), "Prompt: no option 'scopes'; available: title, description, icons, meta, name"),
    ])  # fmt: skip
    def test_a_use_that_cannot_work_is_refused_where_it_is_written(self, use, words):
        with pytest.raises((TypeError, ValueError, m.SchemaError), match=words):
            use(m.Server())

    @pytest.mark.parametrize("version", ["1.0", "dev build", "version 1.0 beta", sys.version])
    def test_a_version_may_have_blanks(self, version):
        assert m.Server("demo", version).info["version"] == version

    async def test_a_lifespan_that_fails_shows_where(self, caplog):
        def connect():
            raise KeyError("DATABASE_URL")

        async def lifespan(server):
            connect()
            yield

        with pytest.raises(m.ConnectionClosed, match="DATABASE_URL"):
            async with m.Client(m.Server(lifespan=lifespan)):
                pass
        assert len(caplog.records) == 1  # it was not started a second time
        frames = traceback.walk_tb(caplog.records[0].exc_info[2])
        assert [frame.f_code.co_name for frame, _ in frames][-2:] == ["lifespan", "connect"]

    async def test_a_client_for_one_revision_says_why_it_is_refused_with_its_code(self):
        app = m.Server()

        @app.middleware
        async def busy(ctx, call_next):
            raise m.RPCError(503, "later")

        with pytest.raises(m.ProtocolError, match="did not accept revision 2026-07-28: later") as info:
            async with m.Client(app, revision="2026-07-28"):
                pass
        assert info.value.code == 503

    @newest_revisions
    async def test_a_form_ignores_what_it_did_not_ask_for(self, revision):
        app = asking_app(lambda ctx: ctx.elicit("?", Sure))
        async with m.Client(app, revision=revision, elicit=lambda message, form: {"a": 1, "zz": 1}) as c:
            await c.call("tool")
        assert app.seen[0].data == Sure(1)

    async def test_a_field_that_is_named_pattern_leaves_a_form_checked(self):
        app = asking_app(lambda ctx: ctx.elicit("?", {"properties": {
            "pattern": {"type": "string"}, "n": {"type": "integer", "maximum": 3}}}))  # fmt: skip
        async with m.Client(app, elicit=lambda message, form: {"n": 9}) as c:
            with pytest.raises(m.ToolError, match="^what elicit= returned does not fit the form: n: must be at most 3"):
                await c.call("tool")

    def test_a_name_of_another_library_is_refused_with_the_names_that_are_here(self):
        app, client = m.Server(), m.Client(m.Server())
        for it, name, told, untold in (
            (app, "enable", "available: .*include", "jobs|hints|listeners|state_key"),
            (client, "no_such", "available: .*connect", "peer|pinned|listeners|outputs"),
            (client, "initialize", r"write async with Client\(...\)$", "available"),
            (client, "serverInfo", r"did you mean server_info\?$", "available"),
            (app, "add_tools", r"did you mean add_tool\?$", "available"),
            (app, "agsi", r"did you mean asgi\?$", "available"),
            (app, "call_tool", r"write @app.tool, or add_tool\(input_schema=\); in a test, async with Client\(app\)$", "29"),
            (app, "list_resources", "write @app.resource$", "available"),
            (client, "list_resource_templates", r"write @app.resource; in a client, list_templates\(\)$", "available"),
            (client, "unsubscribe_resource", r"write close\(\) of the subscription$", "available"),
            (app, "http_app", "write app.asgi", "available"),
            (client, "session", "write ctx.log, ctx.elicit, .*, or the Client itself$", "available"),
        ):
            with pytest.raises(AttributeError, match=f"^{type(it).__name__}: no attribute {name!r}; {told}") as info:
                getattr(it, name)
            assert not re.search(untold, str(info.value))
            assert "Did you mean: " not in "".join(traceback.format_exception(None, info.value, None))
        assert not hasattr(app, "mount")
        with pytest.raises(TypeError, match="Tool: no option 'tags'; write meta="):
            app.tool(name="a", tags={"admin"})(print)
        with pytest.raises(ImportError, match="^mcp_lite has no name 'FastMCP'; write Server$"):
            from mcp_lite import FastMCP  # noqa: F401
        with pytest.raises(ImportError, match="^mcp_lite has no name 'types'; write a dict, as on the wire$"):
            from mcp_lite import types  # noqa: F401
        assert dir(m) == sorted(m.__all__)  # what Python suggests
        assert not hasattr(m, "no_name_of_any_library")

        class Ours(m.Server):
            def __init__(self):
                super().__init__()
                self.database = None

            @property
            def table(self):
                return self.data.table

        with pytest.raises(AttributeError, match="Ours: no attribute 'data'; "):
            Ours().table()
        with pytest.raises(AttributeError, match="did you mean database"):
            Ours().databse()

    async def test_names_of_parameters_and_levels_are_free_or_refused(self):
        app = m.Server()
        app.add_tool(lambda kwargs, fn="sin": fn, name="plot")
        app.add_tool(OfSDK, name="sdk", input_schema={"type": "object"})
        async with m.Client(app) as c:
            assert await c.call("plot", {"kwargs": 1, "fn": "cos"}) == "cos"
            with pytest.raises(m.ToolError, match="belongs to another library"):
                await c.call("sdk")
            with pytest.raises(TypeError, match=r"^call\('plot', {...}\), with all arguments in the dict: no option 'fn'; available: timeout, progress, meta$"):
                await c.call("plot", fn="cos")
            with pytest.raises(ValueError, match="'warn' is not a log level; available: debug, "):
                await c.set_log_level("warn")
            assert await c.call("plot", {"kwargs": 1}) == "sin"

    async def test_a_resource_may_return_the_whole_result(self):
        app = m.Server()
        app.add_resource("x://a", lambda: {"contents": [{"uri": "x://a", "text": "1"}, {"uri": "x://b", "text": "2"}]}, name="a")
        app.add_resource("x://b", lambda: {"contents": ["cup", "pot"]}, name="b")
        async with m.Client(app) as c:
            assert [item["text"] for item in (await c.request("resources/read", {"uri": "x://a"}))["contents"]] == ["1", "2"]
            assert await c.read("x://b") == '{"contents":["cup","pot"]}'

    def test_a_function_in_a_class_body_is_refused_with_a_remedy(self):
        app = m.Server()
        with pytest.raises(TypeError, match=r"add_tool\(K\(\).method\)"):

            class Shop:
                @app.tool
                def buy(self, item: str) -> str:
                    return item

    @pytest.mark.parametrize("data, said", [
        (ValueError("broken"), "broken"), ({"ratio": float("nan")}, "{'ratio': nan}"), (object, "<class 'object'>"),
    ])  # fmt: skip
    async def test_a_log_message_that_json_cannot_say_is_sent_as_text(self, data, said):
        app, heard = m.Server(), []

        @app.tool
        async def work(ctx: m.Context) -> str:
            await ctx.info(data)
            await ctx.report_progress(decimal.Decimal("0.5"), decimal.Decimal(2))
            return "done"

        async with m.Client(app, log=lambda level, data, logger: heard.append(data), revision=V4) as c:
            assert await c.call("work", progress=lambda *report: heard.append(report)) == "done"
        assert heard == [said, (0.5, 2, None)]

    @newest_revisions
    async def test_progress_that_json_cannot_say_does_not_fail_its_tool(self, revision):
        app, heard = m.Server(), []

        @app.tool
        async def work(ctx: m.Context) -> str:
            await ctx.report_progress(1, float("inf"), "of how many?")
            await ctx.report_progress(float("inf"))
            await ctx.report_progress(float("nan"), 2)
            await ctx.report_progress(2, 2)
            return "done"

        async with m.Client(app, revision=revision) as c:
            assert await c.call("work", progress=lambda *report: heard.append(report)) == "done"
        assert heard[0][:2] == (1, None) and heard[-1][:2] == (2, 2) and len(heard) == 2

    async def test_include_warns_of_what_it_leaves_out_and_errors_stay_masked(self, caplog):
        inner, app = m.Server("inner", mask_errors=True), m.Server("outer")
        inner.add_tool(lambda: 1 / 0, name="divide")
        inner.middleware(lambda ctx, call_next: call_next(ctx))
        app.include(inner)
        assert "the middlewares, methods, pages and lifespan of inner are not used" in caplog.text
        assert "after include()" not in caplog.text
        inner.add_tool(lambda: 1, name="late")
        inner.remove_tool("late")
        assert caplog.text.count("'late' of inner was added or removed after include()") == 1
        app.include(inner, prefix="a")
        app.include(inner, prefix="b", separator="_")
        assert [*app.tools] == ["divide", "a__divide", "b_divide"]

        async with m.Client(app) as c:
            with pytest.raises(m.ToolError, match="^the tool 'divide' failed$"):
                await c.call("divide")

    async def test_run_says_what_to_do_where_a_loop_runs_already(self):
        with pytest.raises(m.CannotServe, match="await app.serve_http"):
            m.Server().run()

    def test_a_name_that_clients_refuse_and_a_second_method_are_warned_of(self, caplog):
        app = m.Server()
        app.add_tool(lambda: 1, name="get weather")
        for _ in range(2):
            app.method("acme/x")(lambda ctx, params: {})
        assert "clients may refuse the tool name 'get weather'" in caplog.text
        assert "'acme/x' was registered again" in caplog.text

    def test_a_script_that_another_file_imports_again_says_so(self, tmp_path):
        (tmp_path / "server.py").write_text("from mcp_lite import Server\napp = Server('shop')\n"
                                            "if __name__ == '__main__':\n    import tools\n    app.run()\n")  # fmt: skip
        (tmp_path / "tools.py").write_text("from server import app\napp.add_tool(lambda: 1, name='one')\n")
        ran = subprocess.run([sys.executable, "server.py"], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                             env={**os.environ, "PYTHONPATH": str(HERE)}, timeout=60)  # fmt: skip
        assert b"made a second app: create the app in a file that both import" in ran.stderr

    async def test_a_completion_without_its_prompt_or_template_is_refused(self):
        app = m.Server()

        @app.prompt
        def thank(name: str) -> str:
            return name

        app.complete("thank", "name")(lambda value: value + "a")
        for ref, argument in ("thank", "nmae"), ("cup://{id}", "id"):
            with pytest.raises(ValueError, match="has this argument: register it first"):
                app.complete(ref, argument)
        async with m.Client(app) as c:
            assert await c.complete("thank", "name", "An") == ["Ana"]
            app.remove_prompt("thank")
            app.add_prompt(thank)
            assert await c.complete("thank", "name", "An") == [], "of the prompt that is gone"

    async def test_a_type_whose_name_has_the_word_context_is_not_the_context(self):
        class RequestContext(dict):
            pass

        app, heard = m.Server(), []

        @app.on("notifications/acme")
        def listen(params: RequestContext, ctx: m.SyncContext) -> None:
            heard.append((params, ctx.method))

        async with m.Client(app, revision=V4) as c:
            await c.notify("notifications/acme", {"a": 1})
            await eventually(lambda: heard == [({"a": 1}, "notifications/acme")])

    @both_eras
    async def test_a_listener_sends_log_messages_only_to_clients_that_want_them(self, era):
        app, heard = m.Server(), []

        @app.on("notifications/acme")
        async def listen(params, ctx: m.Context):
            await ctx.info("hello")
            heard.append(params)

        async with lines_to(app, era if era == V4 else None) as lines:
            lines.put(notification("notifications/acme", a=1))
            await until(lambda: heard)
            lines.put(request_of(1, "ping") if era == V4 else modern(1, "server/discover")[0])
            if era == V4:
                assert (await lines.take())["params"]["data"] == "hello"
            assert (await lines.take())["id"] == 1

    async def test_at_end_after_the_connection_is_lost_calls_at_once(self):
        app, called = m.Server(), []

        @app.tool
        async def late(ctx: m.Context) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ctx.at_end(lambda: called.append("late"))

        async with lines_to(app) as lines:
            lines.call(1, "late")
            await idle()
        assert called == ["late"]

    @both_eras
    async def test_a_resource_that_fails_inside_a_tool_fails_the_tool(self, era):
        app = m.Server()
        app.tool(lambda ctx: ctx.read_resource("x://gone"), name="look")
        async with m.Client(app, revision=era) as c:
            with pytest.raises(m.ToolError, match="Resource not found: x://gone"):
                await c.call("look")

    async def test_a_def_may_name_its_context_for_a_type_checker(self):
        app, heard = m.Server(), []

        @app.tool
        def where(ctx: m.SyncContext) -> str:
            return ctx.method

        @app.method("x/where")
        def custom(context: m.SyncContext, params):
            heard.append(params)
            return {"at": context.method}

        @app.tool  # as for the official SDK
        def revision(n: int, context: "m.Context[None, dict]") -> str:
            return f"{n} {context.revision}"

        async with m.Client(app) as c:
            assert await c.call("where") == "tools/call"
            assert await c.call("revision", {"n": 1}) == "1 2026-07-28"
            assert (await c.request("x/where", {"a": 1}))["at"] == "x/where"

    async def test_a_lifespan_is_entered_and_left_by_one_task_and_never_twice_at_a_time(self):
        steps, tasks = [], []

        async def lifespan(server):  # the decorator is not needed
            assert steps[-1:] != ["entered"]
            steps.append("entered")
            tasks.append(asyncio.current_task())
            await asyncio.sleep(0)
            yield {"db": 1}
            tasks.append(asyncio.current_task())
            await asyncio.sleep(0)
            steps.append("left")

        app = m.Server("s", lifespan=lifespan)
        app.tool(lambda ctx: str(ctx.lifespan), name="get")

        async def use(era):
            async with m.Client(app, revision=era) as c:
                assert await c.call("get") == "{'db': 1}"

        await asyncio.gather(use("2025-11-25"), use("2026-07-28"))
        assert steps == ["entered", "left"] and tasks[0] is tasks[1]
        for _ in range(3):
            await asyncio.gather(use("2025-11-25"), use("2025-11-25"))
        assert steps == ["entered", "left"] * 4

    async def test_a_lifespan_must_be_a_context_manager(self, caplog):
        with pytest.raises(m.ConnectionClosed):
            async with m.Client(m.Server(lifespan=lambda server: None)):
                pass

    async def test_a_lifespan_that_fails_at_its_end_is_heard_of(self, caplog):
        @contextlib.asynccontextmanager
        async def lifespan(server):
            yield
            raise RuntimeError("cannot close")

        async with m.Client(m.Server(lifespan=lifespan)):
            pass
        assert "cannot close" in caplog.text

    async def test_a_server_in_a_thread_serves_is_changed_and_is_stopped(self):
        app, waiting = m.Server(), []

        @app.tool
        async def wait():
            waiting.append(threading.current_thread())
            await asyncio.Event().wait()

        ours, theirs = m.memory_transports()
        handle = app.start_in_thread(theirs)
        assert handle.url is None

        async with m.Client(ours, revision=V4) as c:
            changed = asyncio.Event()
            c.on("notifications/tools/list_changed")(lambda params: changed.set())
            app.add_tool(lambda: 1, name="new")  # from a thread that is not the server's
            await changed.wait()
            call = asyncio.ensure_future(c.call("wait"))
            await eventually(lambda: waiting)
            await asyncio.get_running_loop().run_in_executor(None, handle.stop)
            with pytest.raises(m.RemoteError, match="shutting down"):
                await call
            with pytest.raises(m.ConnectionClosed):
                await c.call("wait")
        handle.stop()
        assert not waiting[0].is_alive()
        with pytest.raises(ValueError, match="'pigeon' is not a transport"):
            app.start_in_thread("pigeon")

    async def test_changes_wait_once_each_for_a_slow_reader_who_is_disconnected_when_they_are_too_many(self, monkeypatch):
        app, uris = m.Server(), [f"x://{n}{'x' * 800}" for n in range(60)]
        app.add_resource("x://{n}", lambda n: n, name="n")
        monkeypatch.setattr(m, "MAX_WAITING", 40)
        async with lines_to(app) as lines:
            for n, uri in enumerate(uris):
                lines.put(request_of(n, "resources/subscribe", uri=uri))
                assert "result" in await lines.take()
            lines.reading.clear()
            for n in range(3000):
                app.resource_updated(uris[n % 3])
            await idle()
            assert not lines.closed
            for uri in uris:
                app.resource_updated(uri)
            await until(lambda: lines.closed)

    async def test_a_subscription_on_a_pipe_that_the_server_ends_has_a_result_and_then_a_cancellation(self):
        lines = Lines(grace=None)
        serving = asyncio.ensure_future(demo().serve(lines))
        lines.put(modern(7, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})[0])
        assert (await lines.take())["method"] == "notifications/subscriptions/acknowledged"
        lines.inbox.put_nowait([])  # the input has ended, and answers can still be written
        result, cancelled = await lines.take(), await lines.take()
        assert result["result"]["_meta"][META + "subscriptionId"] == 7
        assert cancelled["method"] == "notifications/cancelled" and cancelled["params"]["requestId"] == 7
        await serving

    async def test_tools_are_registered_from_any_thread_while_lists_are_read(self):
        app = m.Server()
        app.tool(lambda: 1, name="first")

        def register():
            for n in range(300):
                app.add_tool(lambda: 1, name=f"t{n}")

        async with m.Client(app) as c:
            thread = threading.Thread(target=register)
            thread.start()
            while thread.is_alive():
                await c.list_tools()
            assert len(await c.list_tools()) == 301

    async def test_both_eras_talk_on_one_pipe_and_a_session_keeps_its_state_to_itself(self):
        app = m.Server()

        @app.tool(structured=False)
        async def count(ctx: m.Context) -> str:
            ctx.state["n"] = ctx.state.get("n", 0) + 1
            return f"{ctx.revision} {ctx.state['n']}"

        said = []
        async with lines_to(app, "2025-06-18") as lines:
            for msg in (request_of(1, "tools/call", name="count"), modern_call(1, "count")[0]) * 2:
                lines.put(msg)
                said.append((await lines.take())["result"]["content"][0]["text"])
        assert said == ["2025-06-18 1", "2026-07-28 1", "2025-06-18 2", "2026-07-28 1"]

    def test_a_server_ends_though_a_handler_swallows_its_cancellation(self):
        code = """
            import asyncio, mcp_lite
            app = mcp_lite.Server()
            @app.tool
            async def stubborn():
                while True:
                    try:
                        await asyncio.sleep(60)
                    except asyncio.CancelledError:
                        pass
            app.run()
        """
        line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stubborn"}}\n'
        ended = run_python("-c", textwrap.dedent(code), input=line, timeout=60, cwd=HERE)
        assert ended.returncode == 1


class Link(typing.NamedTuple):
    """One revision over one transport: what a client can be asked depends on both eras and all dates."""

    transport: str
    revision: str

    @contextlib.asynccontextmanager
    async def connect(self, server, **options):
        async with contextlib.AsyncExitStack() as stack:
            target = server
            if self.transport != "memory":
                running = await stack.enter_async_context(server.http(port=0))
                target = running.url.replace("/mcp", f"/{self.transport}")
            yield await stack.enter_async_context(m.Client(target, revision=self.revision, **options))

    @property
    def modern(self):
        """Whether every request stands for itself, after no handshake."""
        return self.revision in MODERN_DATES

    @property
    def unasked(self):
        """What a call raises whose tool asks for what the client did not declare."""
        return m.RemoteError if self.modern else m.ToolError

    def since(self, revision):
        """Whether the revision has what came with `revision`."""
        return self.revision >= revision


LINKS = [Link("memory", V1), Link("memory", V3), Link("memory", V4), Link("memory", V5),
         Link("sse", V1), Link("mcp", V4), Link("mcp", V5)]  # fmt: skip
over_each_link = pytest.mark.parametrize("link", LINKS, ids="-".join)
over_links_with_forms = pytest.mark.parametrize("link", [x for x in LINKS if x.since(V3)], ids="-".join)


@contextlib.contextmanager
def on_the_wire():
    """Collect every message that goes over any wire of this process, once."""
    sent = []

    def take(direction, name, msg):
        if direction == ">" and not isinstance(msg, m.HTTPHead):
            sent.append(msg)

    m.set_trace(take)
    try:
        yield sent
    finally:
        m.set_trace(None)


def of_method(sent, method):
    """Return the parameters of the messages of one method, in order; also what a result asks for."""
    asked = [[msg, *msg.get("result", {}).get("inputRequests", {}).values()] for msg in sent]
    return [msg.get("params", {}) for msg in sum(asked, []) if msg.get("method") == method]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Spot:
    x: int
    y: int = 0


@dataclasses.dataclass
class Person:
    """What a form asks for."""

    name: str
    age: int = 18
    email: typing.Annotated[str, {"format": "email"}] = "a@example.com"
    fan: bool = False
    size: typing.Literal["S", "M"] = "M"
    nick: typing.Optional[str] = None
    born: typing.Optional[datetime.date] = None


@dataclasses.dataclass
class Newcomer:
    name: str
    nick: typing.Optional[str]


ICON = {"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}


PNG = b"\x89PNG\r\n"


def asking_app(ask, **options):
    """Return a server whose tool `ask` awaits ask(ctx) and keeps what comes of it in `.seen`."""
    app = m.Server(**options)
    app.seen = []

    @app.tool
    async def tool(ctx: m.Context):
        try:
            app.seen.append(await ask(ctx))
        except Exception as exc:
            app.seen.append(exc)
            raise

    return app


async def answered(app, answer, **capabilities):
    """Call the tool of an asking_app and answer its question so; return the call's result."""
    async with lines_to(app, **capabilities) as lines:
        lines.call(1, "tool")
        lines.put(result_of(await lines.take(), **answer))
        result = (await lines.take())["result"]
        assert await lines.answers() == []
    return result


@pytest.mark.parametrize("method, declared, missing", [
    ("roots/list", {"sampling": {}, "elicitation": {}}, {"roots": {}}),
    ("sampling/createMessage", {"roots": {}, "sampling": {}}, {"sampling": {"tools": {}}}),
    ("elicitation/create", {"roots": {}, "sampling": {"tools": {}}}, {"elicitation": {"url": {}}}),
])  # fmt: skip
async def test_the_capability_that_a_question_needs_is_named(method, declared, missing):
    """basic/index#_meta: "data.requiredCapabilities lists the missing capabilities"."""
    page = {"mode": "url", "message": "Pay", "url": "https://x.example/"}
    text = {"messages": [], "maxTokens": 5, "tools": []}
    app = asking_app(lambda ctx: ctx.ask(method, {"sampling/createMessage": text, "elicitation/create": page}.get(method)))
    async with lines_to(app, revision=None) as lines:
        lines.put(modern_call(1, "tool", capabilities=declared)[0])
        error = (await lines.take())["error"]
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": missing})


@pytest.mark.parametrize("capability, answer", [
    ("sampling", {}), ("sampling", {"content": "x"}), ("sampling", {"role": "assistant", "content": 5}),
    ("elicitation", {}), ("elicitation", {"action": "maybe"}), ("elicitation", {"action": 5}),
    ("elicitation", {"action": "accept"}), ("elicitation", {"action": "accept", "content": {}}),
    ("elicitation", {"action": "accept", "content": []}),
    ("elicitation", {"action": "accept", "content": {"value": "x"}}),
])  # fmt: skip
async def test_a_wrong_answer_fails_the_tool_alone(capability, answer):
    app = asking_app(lambda ctx: ctx.sample("?") if capability == "sampling" else ctx.elicit("How many?", int))
    assert (await answered(app, answer, **{capability: {}}))["isError"]
    assert isinstance(app.seen[0], m.MCPError)


class TestSampling:
    """spec 2025-11-25: client/sampling"""

    @over_each_link
    async def test_a_model_is_asked_through_the_client(self, link):
        async def ask(ctx):
            return await ctx.sample(
                ["one", m.Message("two", role="assistant"), m.Audio(b"RIFF")],
                max_tokens=7,
                system="Be brief.",
                temperature=0.5,
                stop=["."],
                model_preferences={"hints": [{"name": "m"}]},
                metadata={"a": 1},
            )

        app = asking_app(ask)
        asked = []

        async def sample(params):
            asked.append(params)
            return "three"

        async with link.connect(app, sample=sample, name="me") as c:
            await c.call("tool")
        assert app.seen == [
            {
                "role": "assistant",
                "content": {"type": "text", "text": "three"},
                "model": "me",
                "stopReason": "endTurn",
            }
        ]
        (params,) = asked
        assert ("progressToken" in params.pop("_meta", {})) != link.modern
        audio = params["messages"].pop()
        assert audio["role"] == "user"
        assert audio["content"]["type"] == ("audio" if link.since("2025-03-26") else "text")
        assert params == {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "one"}},
                {"role": "assistant", "content": {"type": "text", "text": "two"}},
            ],
            "maxTokens": 7,
            "systemPrompt": "Be brief.",
            "temperature": 0.5,
            "stopSequences": ["."],
            "modelPreferences": {"hints": [{"name": "m"}]},
            "metadata": {"a": 1},
        }

    @over_each_link
    async def test_a_server_does_not_ask_for_sampling_that_was_not_declared(self, link):
        """spec 2025-11-25: client/sampling#capabilities"""
        tools = [{"name": "t", "inputSchema": {"type": "object"}}]
        app = asking_app(lambda ctx: ctx.sample("?"))
        with_tools = asking_app(lambda ctx: ctx.sample("?", tools=tools, tool_choice={"mode": "auto"}))

        with on_the_wire() as sent:
            async with link.connect(app) as c:
                with pytest.raises(link.unasked, match="did not declare the capability 'sampling'"):
                    await c.call("tool")
            async with link.connect(with_tools, sample=lambda params: "x") as c:
                with pytest.raises(link.unasked, match="sampling.tools"):
                    await c.call("tool")
            declared = {"sampling": {"tools": {}}}
            answer = {"content": {"type": "tool_use", "id": "1", "name": "t", "input": {}}}
            async with link.connect(
                with_tools, sample=lambda params: answer, capabilities=declared
            ) as c:
                if link.since("2025-11-25"):
                    await c.call("tool")
                    assert with_tools.seen[-1]["content"] == answer["content"]
                else:
                    with pytest.raises(m.ToolError, match="sampling.tools"):
                        await c.call("tool")
        asked = of_method(sent, "sampling/createMessage")
        assert len(asked) == link.since("2025-11-25")
        assert all(params["tools"] == tools for params in asked)

    @over_each_link
    async def test_messages_of_several_blocks_are_for_revisions_that_have_them(self, link):
        two = m.Message(["a", m.Image(PNG)])
        app = asking_app(lambda ctx: ctx.sample(two, include_context="thisServer"))

        with on_the_wire() as sent:
            async with link.connect(app, sample=lambda params: ["b", m.Image(PNG)]) as c:
                await c.call("tool")
        (params,) = of_method(sent, "sampling/createMessage")
        kinds = [message["content"] for message in params["messages"]]
        answer = app.seen[0]["content"]
        if link.since("2025-11-25"):
            assert [block["type"] for block in kinds[0]] == ["text", "image"]
            assert [block["type"] for block in answer] == ["text", "image"]
            assert "includeContext" not in params  # SHOULD NOT without sampling.context
        else:
            assert [block["type"] for block in kinds] == ["text", "image"]
            assert answer["type"] == "text" and answer["text"].startswith("b\n[image")
            assert params["includeContext"] == "thisServer"

    @over_each_link
    async def test_a_message_of_one_block_is_for_every_revision(self, link):
        app = asking_app(lambda ctx: ctx.sample(m.Message(m.Image(PNG))))
        with on_the_wire() as sent:
            async with link.connect(app, sample=lambda params: m.Image(PNG)) as c:
                await c.call("tool")
        (params,) = of_method(sent, "sampling/createMessage")
        assert params["messages"][0]["content"]["type"] == "image"
        assert app.seen[0]["content"]["type"] == "image"


@over_each_link
async def test_an_update_of_a_watched_resource_calls_the_function_of_the_client(link):
    app, heard = m.Server(), []
    app.add_resource("x://a", "text")
    async with link.connect(app, on_resource_updated=heard.append) as c:
        await c.subscribe("x://a", lambda params: None)
        app.resource_updated("x://a")
        await eventually(lambda: heard)
        assert [params["uri"] for params in heard] == ["x://a"]


class TestRoots:
    """spec 2025-11-25: client/roots"""

    @over_each_link
    async def test_roots_are_paths_uris_or_dicts_and_may_change(self, link, tmp_path):
        app = asking_app(lambda ctx: ctx.roots())
        changes = []
        app.on("notifications/roots/list_changed")(lambda params: changes.append(params))
        given = [str(tmp_path), "file:///a", {"uri": "file:///b", "name": "B", "_meta": {"c": 1}}]

        async with link.connect(app, roots=given) as c:
            await c.call("tool")
            await c.roots_changed(["file:///new"])
            if not link.modern:  # there, the server asks when it needs them
                await eventually(lambda: changes == [{}])
            await c.call("tool")
        calls = []

        async def roots():
            calls.append(1)
            return [tmp_path]

        async with link.connect(app, roots=roots) as c:
            assert not calls
            await c.call("tool")
        async with link.connect(app, roots=[]) as c:
            await c.call("tool")
        async with link.connect(app) as c:
            with pytest.raises(link.unasked, match="'roots'"):
                await c.call("tool")
            with pytest.raises(m.CapabilityMissing, match="'roots"):
                await c.roots_changed([])
        assert len(changes) == (not link.modern)
        here = {"uri": tmp_path.as_uri(), "name": tmp_path.name}
        first, second, third, none, missing = app.seen
        assert first == [here, *({"uri": "file:///a"}, given[2])]
        assert (second, third, none) == ([{"uri": "file:///new"}], [here], [])
        assert isinstance(missing, m.CapabilityMissing) and missing.capability == "roots"

    @over_each_link
    async def test_a_root_that_is_not_a_file_uri_is_never_sent(self, link):
        """spec 2025-11-25: client/roots#root"""
        app = asking_app(lambda ctx: ctx.roots())
        roots = ["https://x.example/", {"uri": "git://a"}, {"uri": "/a"}, {"uri": 5}, {"name": "a"},
                 "file:///a/../etc", {"uri": "file:///a/%2E%2e"}, "file:///a/b\\..\\c"]  # fmt: skip
        told = iter(roots)

        with on_the_wire() as sent:
            async with link.connect(app, roots=lambda: [next(told)]) as c:
                for _ in roots:
                    with pytest.raises(ValueError if link.modern else m.ToolError):
                        await c.call("tool")
        assert not [msg for msg in sent if "roots" in msg.get("result", {})]
        assert next(told, None) is None


FORMS = [  # what is asked for, the schema of the only field, what the client answers, the value
    (bool, {"type": "boolean"}, True, True),
    (str, {"type": "string"}, "x", "x"),
    (int, {"type": "integer"}, 5, 5),
    (float, {"type": "number"}, 1.5, 1.5),
    (typing.Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
    (Colour, {"type": "string", "enum": ["red", "blue"]}, "red", Colour.RED),
    (["a", "b"], {"type": "string", "enum": ["a", "b"]}, "a", "a"),
    ([*Colour], {"type": "string", "enum": ["red", "blue"]}, "blue", Colour.BLUE),
    (datetime.date, {"type": "string", "format": "date"}, "2025-01-02", datetime.date(2025, 1, 2)),
    (uuid.UUID, {"type": "string"}, str(uuid.UUID(int=1)), uuid.UUID(int=1)),
    (
        typing.Annotated[int, {"minimum": 1, "maximum": 9}, "how many"],
        {"type": "integer", "minimum": 1, "maximum": 9, "description": "how many"},
        9,
        9,
    ),
]


MULTIPLE = [
    (
        typing.List[Colour],
        {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
        ["red", "blue"],
        [Colour.RED, Colour.BLUE],
    ),
    (
        typing.Set[typing.Literal["a", "b"]],
        {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        ["a"],
        {"a"},
    ),
]


class TestElicitation:
    """spec 2025-11-25: client/elicitation"""

    NEEDS = "2025-06-18"

    async def test_the_error_of_a_form_with_a_wrong_date_shows_a_right_one(self):
        app = m.Server("demo")

        @app.tool
        async def ask(ctx: m.Context) -> str:
            with pytest.raises(m.SchemaError) as wrong:
                await ctx.elicit("When?", datetime.date)
            return str(wrong.value)

        async with m.Client(app, revision=V4, elicit=lambda *_: {"value": "2026-02-30"}) as c:
            told = await c.call("ask")
        assert told.startswith("value: ") and "day" in told and told.endswith("; a date looks like 9999-12-31")

    @over_each_link
    async def test_one_value_of_every_kind(self, link):
        forms = FORMS + (MULTIPLE if link.since("2025-11-25") else [])

        with on_the_wire() as sent:
            app = asking_app(lambda ctx: ctx.elicit("Which?", wanted))
            asked = []

            def elicit(message, schema):
                asked.append((message, schema))
                return {"value": said}

            async with link.connect(app, elicit=elicit) as c:
                for wanted, schema, said, value in forms:  # noqa: B007 -- `elicit` says it
                    if not link.since(self.NEEDS):
                        with pytest.raises(m.ToolError, match="has no elicitation"):
                            await c.call("tool")
                        assert not asked
                        continue
                    await c.call("tool")
                    assert app.seen.pop() == m.Elicited("accept", value), wanted
                    message, form = asked.pop()
                    assert message == "Which?" and not asked and not app.seen
                    assert form["properties"] == {"value": schema}
                    assert (form["type"], form["required"]) == ("object", ["value"])
        asked = of_method(sent, "elicitation/create")
        assert len(asked) == len(forms) * link.since(self.NEEDS)
        assert all(("mode" in params) == link.since("2025-11-25") for params in asked)

    @over_links_with_forms
    async def test_without_a_type_it_is_a_confirmation(self, link):
        app = asking_app(lambda ctx: ctx.elicit("Sure?"))

        for said in ({}, {"more": "than was asked"}, None, "cancel"):
            async with link.connect(app, elicit=lambda *_, said=said: said) as c:
                await c.call("tool")
        yes, no = m.Elicited("accept", True), m.Elicited("decline", None)
        assert app.seen == [yes, yes, no, m.Elicited("cancel", None)]

    @over_links_with_forms
    async def test_a_record_of_fields_with_defaults(self, link):
        app = asking_app(lambda ctx: ctx.elicit("Who?", Person))

        forms = []

        def elicit(message, schema):
            forms.append(schema)
            return {"name": "Ada", "born": "1815-12-10"}

        async with link.connect(app, elicit=elicit) as c:
            await c.call("tool")
        form = forms[0]
        person = Person("Ada", born=datetime.date(1815, 12, 10))
        assert app.seen == [m.Elicited("accept", person)]
        assert form["required"] == ["name"]
        fields = form["properties"]
        assert fields["email"]["format"] == "email"
        assert fields["born"] == {"type": "string", "format": "date"}
        assert fields["nick"] == {"type": "string"}
        assert fields["fan"]["default"] is False
        assert "default" in fields["age"] and "default" in fields["size"]

    SCHEMA = {
        "type": "object",
        "properties": {
            "one": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "titled": {
                "type": "string",
                "oneOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "Y"}],
            },
            "legacy": {"type": "string", "enum": ["l"], "enumNames": ["Ell"]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 1},
            "titled_many": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}},
            "n": {"type": "number", "default": 1.5},
        },
        "required": ["titled"],
    }

    @pytest.mark.parametrize("link", [x for x in LINKS if x.since(V4)], ids="-".join)
    async def test_a_schema_of_ones_own(self, link):
        app, said = asking_app(lambda ctx: ctx.elicit("?", self.SCHEMA)), {"titled": "y", "many": ["b"]}
        with on_the_wire() as sent:
            async with link.connect(app, elicit=lambda message, schema: said) as c:
                await c.call("tool")
        assert app.seen == [m.Elicited("accept", {"one": "a", "n": 1.5, **said})]
        (params,) = of_method(sent, "elicitation/create")
        assert params["requestedSchema"] == self.SCHEMA

    @pytest.mark.parametrize("wanted, value", [
        (Newcomer, Newcomer("Ann", None)),
        ({"properties": {"name": {"type": "string"}, "n": {"type": "integer", "default": 7}}, "required": ["n"]},
         {"name": "Ann", "n": 7}),
    ])  # fmt: skip
    async def test_a_field_that_is_absent_has_its_default_or_is_none(self, wanted, value):
        app = asking_app(lambda ctx: ctx.elicit("Who?", wanted))

        await answered(app, {"action": "accept", "content": {"name": "Ann"}}, elicitation={})
        assert app.seen == [m.Elicited("accept", value)]

    @pytest.mark.parametrize("said", [5, "x", {"value": "x"}, {"value": None}, {"other": 1}, []])
    @newest_revisions
    async def test_a_client_does_not_send_what_was_not_asked_for(self, said, revision, caplog):
        app = asking_app(lambda ctx: ctx.elicit("Sure?", bool))

        async with m.Client(app, elicit=lambda *_: said, revision=revision) as c:
            with pytest.raises(m.ToolError, match="^what elicit= returned does not fit the form: "):
                await c.call("tool")
        if revision == "2025-11-25":
            assert isinstance(app.seen[0], m.RemoteError) and app.seen[0].code == -32603
        assert "what elicit= returned does not fit the form" in caplog.text

    @newest_revisions
    async def test_other_callbacks_that_return_something_unusable_are_named_too(self, revision):
        app = m.Server()

        @app.tool
        async def use(page: bool, ctx: m.Context) -> None:
            await (ctx.elicit_url("Pay?", "https://pay.example") if page else ctx.sample("Write."))

        callbacks = {"elicit_url": lambda message, url: 5, "sample": lambda params: None}
        async with m.Client(app, revision=revision, **callbacks) as c:
            for page, says in (True, "^elicit_url= returned 5: return True or False"), (False, "^sample= returned None"):
                with pytest.raises(m.ToolError, match=says):
                    await c.call("use", {"page": page})

    @pytest.mark.parametrize("wanted", [
        typing.List[int], typing.Dict[str, int], typing.List[Spot], typing.Literal[1, 2], typing.Union[int, str],
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
    ])  # fmt: skip
    async def test_a_form_is_flat(self, wanted):
        """spec: client/elicitation#requested-schema"""
        app = asking_app(lambda ctx: ctx.elicit("?", wanted))
        async with m.Client(app, elicit=lambda message, schema: {}) as c:
            with pytest.raises(m.ToolError, match="a form cannot ask for"):
                await c.call("tool")

    @pytest.mark.parametrize("misused, says", [
        (lambda ctx: ctx.elicit(message="?", schema=Spot), "Context.elicit\\(\\): no option 'schema'; write wanted= or input_schema="),
        (lambda ctx: ctx.elicit(message="?", form=Spot), "Context.elicit\\(\\): no option 'form'; available: message, wanted, key, timeout"),
        (lambda ctx: ctx.log("info", "?", extra={}), r"log\(\): no option 'extra'; available: level, data, logger"),
        (lambda ctx: ctx.info("?", extra={}), r"info\(\): no option 'extra'; available: data, logger"),
        (lambda ctx: ctx.elicit("?", timeout="3"), "timeout='3': must be a number >= 0"),
        (lambda ctx: ctx.elicit("?", response_type=str), r"Context.elicit\(\): no option 'response_type'; write wanted="),
        (lambda ctx: ctx.log("info"), r"log\(\) missing .*'data'; its parameters are level, data, logger"),
        (lambda ctx: ctx.elicit("?", {"sure": bool}), "Object of type type is not JSON serializable"),
        (lambda ctx: ctx.elicit("?", dict), "^a form cannot ask for 'value': its fields are str, int, float, bool, date, a Literal or Enum of str, or a list"),
        (lambda ctx: ctx.report_progress("half", 2), "'half'"),
    ])  # fmt: skip
    async def test_a_tool_that_misuses_its_context_fails_and_says_how_it_is_used(self, misused, says):
        app = asking_app(misused)
        async with m.Client(app, elicit=lambda message, schema: True) as c:
            with pytest.raises(m.ToolError, match=says):
                await c.call("tool")

    @pytest.mark.parametrize("name, here", [
        ("lifespan_context", "lifespan"),
        ("session_id", "state"),  # owner is the same for all who are not authenticated
    ])  # fmt: skip
    async def test_an_attribute_that_a_context_does_not_have_fails_with_those_that_it_has(self, name, here, caplog):
        app = asking_app(operator.attrgetter(name))
        app.method("acme/x")(lambda ctx, params: ctx.sesion)
        async with m.Client(app) as c:
            with pytest.raises(m.ToolError, match=f"^Context: no attribute '{name}'; write ctx.{here}$"):
                await c.call("tool")
            with pytest.raises(m.RemoteError, match="Internal error"):
                await c.request("acme/x")
        assert "AttributeError: Context: no attribute 'sesion'; available: method, params, meta, server" in caplog.text

    async def test_a_blank_field_may_come_as_null(self):
        fields = run_source("class Order(typing.TypedDict, total=False):\n    name: str\n    size: typing.Optional[int]")
        app = asking_app(lambda ctx: ctx.elicit("?", fields["Order"]))
        async with lines_to(app, elicitation={}) as lines:
            lines.call(1, "tool")
            asked = await lines.take()
            content = {"name": None, "size": None}
            lines.put({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}})
            assert "result" in await lines.take()
        assert app.seen[0].action == "accept" and not any(app.seen[0].data.values())

    @pytest.mark.filterwarnings("ignore:coroutine 'Context.elicit' was never awaited")
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    @both_eras
    @pytest.mark.parametrize("accepted, says", [
        (bool, "write: await ctx.elicit(...)"),
        (lambda answer: answer.data, "write: (await ctx.elicit(...)).data"),
    ])  # fmt: skip
    async def test_a_question_that_is_not_awaited_is_not_taken_for_consent(self, era, accepted, says):
        async def tool(ctx: m.Context) -> str:
            try:
                return "deleted" if accepted(ctx.elicit("Sure?", bool)) else "declined"
            except (TypeError, AttributeError) as exc:
                return str(exc)

        app = asking_app(tool)
        async with m.Client(app, elicit=lambda message, schema: None, revision=era) as c:
            await c.call("tool")
            gc.collect()  # the coroutine that Python warns of
        assert app.seen == [says]

    @both_eras
    async def test_questions_can_be_awaited_in_tasks(self, era):
        async def tool(ctx: m.Context) -> str:
            first = asyncio.create_task(ctx.elicit("A?", str, key="a"))
            answers = await asyncio.gather(first, ctx.elicit("B?", str, key="b"))
            assert "Context.elicit()" in repr(first)
            answers.append(await asyncio.wait_for(ctx.elicit("C?", str, key="c"), 30))
            return " ".join(answer.data for answer in answers)

        app = asking_app(tool)
        async with m.Client(app, elicit=lambda message, schema: {"value": message}, revision=era) as c:
            await c.call("tool")
        assert app.seen[-1] == "A? B? C?"

    async def test_an_answer_is_not_taken_for_consent(self):
        async def tool(ctx: m.Context) -> str:
            return "done" if await ctx.elicit("Sure?", bool) else "declined"

        async with m.Client(asking_app(tool), elicit=lambda message, schema: None) as c:
            with pytest.raises(m.ToolError, match="neither true nor false: use its .data or .action"):
                await c.call("tool")

    @over_each_link
    async def test_a_url_may_be_opened_where_client_and_revision_can(self, link):
        app = asking_app(lambda ctx: ctx.elicit_url("Sign in", "https://example.com/", id="e1"))

        with on_the_wire() as sent:
            opened = []

            def elicit_url(message, url):
                opened.append((message, url))
                return True

            async with link.connect(app, elicit=lambda *_: None) as c:
                with pytest.raises(link.unasked, match="elicitation.url"):
                    await c.call("tool")
            async with link.connect(app, elicit_url=elicit_url) as c:
                if link.since("2025-11-25"):
                    await c.call("tool")
                    assert app.seen[-1] == m.Elicited("accept", None)
                    assert opened == [("Sign in", "https://example.com/")]
                else:
                    with pytest.raises(m.ToolError, match="elicitation"):
                        await c.call("tool")
                    assert not opened
        asked = of_method(sent, "elicitation/create")
        assert len(asked) == link.since("2025-11-25")
        for params in asked:
            assert params["mode"] == "url" and ("elicitationId" in params) != link.modern
            assert link.modern or params["elicitationId"] == "e1"

    async def test_a_page_without_an_id_is_given_one_for_an_older_client(self):
        app = asking_app(lambda ctx: ctx.elicit_url("Sign in", "https://example.com/"))
        with on_the_wire() as sent:
            async with m.Client(app, elicit_url=lambda *_: True, revision=V4) as c:
                await c.call("tool")
        (params,) = of_method(sent, "elicitation/create")
        assert re.fullmatch("[0-9a-f]{32}", params["elicitationId"])

    @over_each_link
    async def test_the_url_of_a_page_is_one(self, link):
        """spec 2025-11-25: client/elicitation#url-mode-elicitation-requests"""
        app = m.Server()

        @app.tool
        async def ask(url: str, ctx: m.Context):
            await ctx.elicit_url("Pay", url)

        @app.tool
        async def by_hand(url: str, ctx: m.Context):
            await ctx.ask("elicitation/create", {"mode": "url", "message": "Pay", "url": url})

        with on_the_wire() as sent:
            async with link.connect(app, elicit_url=lambda *_: True) as c:
                for url in ("", "example.com/pay", "javascript:alert(1)", "https:///x", "a b://x"):
                    for name in ("ask", "by_hand"):
                        with pytest.raises(m.MCPError, match="expected an absolute URL, got"):
                            await c.call(name, {"url": url})
        assert not of_method(sent, "elicitation/create")

    async def test_a_client_that_only_opens_urls_is_not_asked_to_fill_in_forms(self):
        """spec 2025-11-25: client/elicitation#capabilities"""
        app = asking_app(lambda ctx: ctx.elicit("?", bool))

        with on_the_wire() as sent:
            async with m.Client(app, elicit_url=lambda *_: True, revision=V4) as c:
                with pytest.raises(m.ToolError, match="'elicitation.form'"):
                    await c.call("tool")
        assert not of_method(sent, "elicitation/create")
        assert of_method(sent, "initialize")[0]["capabilities"]["elicitation"] == {"url": {}}


def watched_app(**options):
    """Return a server with a tool and a family of resources."""
    app = m.Server("many", **options)
    app.add_tool(lambda: 1, name="one")
    app.add_resource("note://{name}", lambda name: name, name="note")
    return app


class TestAnnouncements:
    """One task for each reader, each thing once, within bounds."""

    @both_eras
    def test_a_listener_may_be_added_while_the_loop_does_not_run(self, era):
        app, changes, loop = watched_app(), [], asyncio.new_event_loop()

        async def change():
            await c.ping()
            await idle()  # the subscription is made now
            app.add_tool(lambda: 2, name="two")
            await eventually(lambda: changes)
            await c.close()

        c = m.Client(app, revision=era)
        loop.run_until_complete(c.connect())
        c.on("notifications/message")(print)
        c.on("notifications/tools/list_changed")(changes.append)
        loop.run_until_complete(change())
        loop.close()

    @both_eras
    async def test_a_listener_of_a_client_that_is_connected_already_is_called(self, era):
        app, changes = watched_app(), []
        async with m.Client(app, revision=era) as c:

            @c.on("notifications/tools/list_changed")
            def changed(params):
                changes.append(params)

            await c.ping()
            app.add_tool(lambda: 2, name="two")
            await until(lambda: changes)
            await idle()
        assert len(changes) == 1

    async def test_a_flood_for_a_slow_reader_is_said_once(self):
        app = watched_app()
        async with lines_to(app) as lines:
            lines.put(request_of(1, "resources/subscribe", uri="note://a"))
            assert "result" in await lines.take()
            lines.reading.clear()
            before = len(asyncio.all_tasks())
            for _ in range(10_000):
                app.resource_updated("note://a")
                app.tools_changed()
            await idle()
            assert len(asyncio.all_tasks()) <= before + 1
            lines.reading.set()
            found = [msg["method"] for msg in await lines.answers()]
        assert {*found} == {"notifications/resources/updated", "notifications/tools/list_changed"}
        assert len(found) <= 4, "the first may be on its way already"

    async def test_log_lines_for_a_slow_reader_are_dropped_and_what_it_watches_is_not(self):
        app = watched_app()

        @app.tool
        async def flood(ctx: m.Context) -> str:
            for n in range(20_000):
                await ctx.warning(f"line {n}")
            app.resource_updated("note://a")
            return "done"

        async with lines_to(app) as lines:
            lines.put(request_of(1, "resources/subscribe", uri="note://a"))
            assert "result" in await lines.take()
            lines.reading.clear()
            lines.call(2, "flood")
            await idle()
            lines.reading.set()
            found = [msg.get("method") for msg in await lines.answers()]
        assert "notifications/resources/updated" in found
        assert 0 < found.count("notifications/message") < 20_000

    async def test_a_listener_sees_who_was_authenticated(self):
        app, seen = watched_app(), []

        @app.on("notifications/roots/list_changed")
        def changed(params, ctx: m.Context):
            seen.append(ctx.principal)

        async with app.http(port=0, token={"t": "alice"}) as server:
            async with m.Client(server.url, token="t", revision=V4, roots=["/"]) as c:
                await c.roots_changed(["/tmp"])
                await until(lambda: seen)
        assert seen == ["alice"]


class TestLogs:
    """What one request says to the client is bounded."""

    async def test_log_messages_of_a_request_are_bounded(self, monkeypatch):
        monkeypatch.setattr(m, "REPORT_RATE", (100, 36_000.0))  # however slow the machine is
        app = watched_app()

        @app.tool
        def flood(ctx: m.SyncContext) -> str:
            for n in range(5_000):
                ctx.warning(f"line {n}")
            return "done"

        async with lines_to(app) as lines:
            lines.call(1, "flood")
            found = [msg.get("method") for msg in [await lines.take()]]
            while found[-1] is not None:
                found.append((await lines.take()).get("method"))
        assert found.count("notifications/message") == 100



class TestBudgets:
    """What one client may take is counted by who it is."""

    @newest_revisions
    async def test_each_principal_has_a_rate_of_its_own_over_all_its_sessions(self, revision):
        app, found = watched_app(rate_limit=(5, 3600)), {"alice": [], "bob": []}
        async with app.http(port=0, token={"a": "alice", "b": "bob"}) as server:
            for name in ("alice", "alice", "bob"):
                async with m.Client(server.url, token=name[0], revision=revision) as c:
                    for _ in range(2 if name == "bob" else 3):
                        try:
                            await c.list_tools()
                            found[name].append(200)
                        except m.RemoteError as exc:
                            found[name].append(exc.code)
        assert found["alice"].count(429) >= 1 and 429 not in found["bob"]


class TestLifespans:
    """One for each loop, open while anybody needs it, never two at a time."""

    async def test_a_client_that_comes_while_a_lifespan_is_left_waits_for_the_next(self):
        log, gate = [], asyncio.Event()

        @contextlib.asynccontextmanager
        async def lifespan(server):
            log.append("open")
            yield
            log.append("leaving")
            await gate.wait()
            log.append("left")

        app = m.Server(lifespan=lifespan)

        async def once():
            async with m.Client(app) as c:
                await c.ping()

        first = asyncio.ensure_future(once())
        await until(lambda: "leaving" in log)
        second = asyncio.ensure_future(once())
        await idle()
        assert log == ["open", "leaving"]
        gate.set()
        await asyncio.gather(first, second)
        assert log == ["open", "leaving", "left"] * 2

    async def test_a_lifespan_that_fails_to_start_can_be_tried_again(self):
        fails = [True]

        @contextlib.asynccontextmanager
        async def lifespan(server):
            if fails.pop():
                fails.append(False)
                raise OSError("no database")
            yield "value"

        app = m.Server(lifespan=lifespan)

        @app.tool
        async def value(ctx: m.Context) -> str:
            return ctx.lifespan

        with pytest.raises(OSError, match="no database"):
            async with app.http(port=0):
                pass
        async with m.Client(app) as c:
            assert await c.call("value") == "value"

    async def test_a_lifespan_opens_no_longer_than_somebody_waits_for_it(self):
        log = []

        @contextlib.asynccontextmanager
        async def lifespan(server):
            try:
                await asyncio.Event().wait()
                yield
            finally:
                log.append("left")

        serving = asyncio.ensure_future(m.Server(lifespan=lifespan).serve(Lines()))
        await idle()
        serving.cancel()
        await asyncio.wait([serving], timeout=30)
        assert serving.cancelled() and log == ["left"]

    @pytest.mark.parametrize("serve", [lambda app: app.http(port=0), lambda app: app.asgi.lifespan()])
    async def test_a_lifespan_is_left_when_its_page_is_in_the_way(self, serve):
        log = []

        @contextlib.asynccontextmanager
        async def lifespan(server):
            server.route("POST", "/mcp")(print)
            try:
                yield
            finally:
                log.append("left")

        with pytest.raises(ValueError, match="served already"):
            async with serve(m.Server(lifespan=lifespan)):
                pass
        assert log == ["left"]

    async def test_a_thread_that_looks_at_cancelled_can_clean_up_when_the_client_goes(self):
        app, log, gate = m.Server(), [], threading.Event()

        @app.tool
        def poll(ctx: m.Context) -> str:
            log.append("begun")
            try:
                while not ctx.cancelled:
                    time.sleep(0.001)
            finally:
                gate.wait(20)
                log.append("cleaned up")
            return "done"

        async with lines_to(app) as lines:
            lines.call(1, "poll")
            await until(lambda: log)
            asyncio.get_running_loop().call_later(0.05, gate.set)
        assert log == ["begun", "cleaned up"], "the server has waited"


FAILS = """
import asyncio, sys
import mcp_lite as m
app = m.Server("fails")

@app.tool
def fails() -> str:
    raise ValueError("the reason")
"""


class TestOwnLog:
    """Errors of handlers are seen by default, once, whatever way the server is run."""

    WAYS = {
        "memory": """
async def main():
    async with m.Client(app) as c:
        await c.call_tool("fails")
asyncio.run(main())""",
        "http": """
async def main():
    async with app.http(port=0) as server, m.Client(server.url) as c:
        await c.call_tool("fails")
asyncio.run(main())""",
        "run": "app.run()",
    }

    @pytest.mark.parametrize("configured", [False, True])
    @pytest.mark.parametrize("way", WAYS)
    def test_an_exception_of_a_handler_is_on_stderr_once(self, way, configured):
        code = FAILS
        if configured:
            code += "import logging; logging.basicConfig(format='HOST %(message)s')\n"
        msg = b""
        if way == "run":
            msg = json.dumps(request_of(1, "tools/call", name="fails")).encode() + b"\n"
        ran = run_python("-c", code + self.WAYS[way], cwd=HERE, input=msg)
        text = ran.stderr.decode()
        assert text.count("Traceback") == 1 and text.count("ValueError: the reason") == 1, text
        assert "tool 'fails' failed" in text.splitlines()[0]
        assert text.startswith("HOST ") == configured

    async def test_no_message_of_a_peer_moves_the_cursor_by_way_of_a_log(self, caplog):
        async with lines_to(demo()) as lines:
            lines.put(notification("notifications/cancelled", requestId=1, reason="\x1b[2J\x9b\u202e"))
            lines.put("\x1b[2J")
            lines.call(1, "\x1b[2J\u202e")
            lines.call(2, "crash", text="\x1b]52;c;aGk=\x07\u202e")
            await lines.answers()
        assert "]52;c;aGk=" in caplog.text and not re.search("[\x1b\x07\x9b\u202e]", caplog.text)

    @pytest.mark.skipif(os.name == "nt", reason="a pseudo-terminal is needed")
    def test_in_a_terminal_it_says_that_it_is_a_server_and_what_to_type(self):
        import pty

        ours, theirs = pty.openpty()
        code = "import mcp_lite as m; m.Server('demo').run()"
        with started([sys.executable, "-c", code], cwd=HERE, stdin=theirs, stderr=subprocess.PIPE) as process:
            os.close(theirs)
            assert b"demo is an MCP server" in process.stderr.readline()
            assert b"python3 mcp_lite.py tools" in process.stderr.readline()
        os.close(ours)

    @pytest.mark.parametrize("options, problem", [
        ("port=PORT", "one: cannot listen on port PORT of 127.0.0.1: it is in use: choose another, or end the program that has it"),
        ("ssl=('nope.pem', 'nope.key')", "nope.pem"), ("host='a..b'", "one: cannot listen on port 8000 of a..b: "),
        ("sock=udp", "one: cannot listen on <socket.socket fd="),
        pytest.param("uds='nowhere/s'", "nowhere/s", marks=posix),
    ])  # fmt: skip
    def test_run_says_in_one_line_why_it_cannot_listen(self, options, problem):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            code = "import mcp_lite as m, socket\nwith socket.socket(type=socket.SOCK_DGRAM) as udp:\n"
            code += f"    m.Server('one').run('http', {options.replace('PORT', port)})"
            ran = run_python("-c", code, cwd=HERE)
        assert problem.replace("PORT", port) in ran.stderr.decode(), ran.stderr
        assert ran.returncode == 1 and ran.stderr.count(b"\n") == 1

    @newest_revisions
    async def test_a_call_that_the_end_cuts_off_is_answered_over_http(self, revision):
        app, begun = m.Server(), []

        @app.tool
        async def wait() -> str:
            begun.append(1)
            return await asyncio.get_running_loop().create_future()

        server = app.http(port=0, grace=0)
        await server.__aenter__()
        async with m.Client(server.url, revision=revision) as c:
            call = asyncio.ensure_future(c.call("wait"))
            await until(lambda: begun)
            await server.__aexit__(None, None, None)
            with pytest.raises(m.RemoteError, match="shutting down"):
                await call


########################
# T21. Handlers
########################


class TestHooks:
    """What a program needs that stands between a client and other servers."""

    FORM = {"method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": {
        "type": "object", "properties": {"value": {"type": "string"}}}}}  # fmt: skip
    ERAS = pytest.mark.parametrize("era", ["2025-06-18", "2025-11-25", "2026-07-28"])

    @ERAS
    async def test_one_function_may_answer_every_question_as_it_came(self, era):
        app, asked = m.Server(), []

        @app.tool
        async def ask(ctx: m.Context) -> list:
            person = await ctx.elicit("Name?", str)
            text = await ctx.sample("Write.", max_tokens=7)
            return [person.action, person.data, text["content"]["text"], await ctx.roots()]

        async def answer(method, params):
            asked.append((method, params.get("message"), params.get("maxTokens")))
            return {
                "elicitation/create": {"action": "accept", "content": {"value": "Ann"}},
                "sampling/createMessage": {"role": "assistant", "model": "x", "content": {"type": "text", "text": "hi"}},
                "roots/list": {"roots": [{"uri": "file:///a", "_meta": {"a/b": 1}}]},
            }[method]

        async with m.Client(app, revision=era, ask=answer) as c:
            told = await c.call("ask")
            assert told[:3] == ["accept", "Ann", "hi"] and told[3][0]["uri"] == "file:///a"
        assert {*asked} == {("elicitation/create", "Name?", None), ("sampling/createMessage", None, 7),
                            ("roots/list", None, None)}  # fmt: skip

    @ERAS
    async def test_capabilities_say_which_questions_the_one_function_gets(self, era):
        app = m.Server()

        @app.tool
        async def can(ctx: m.Context) -> list:
            return sorted({*ctx.client_capabilities} - {"extensions"})

        async with m.Client(app, revision=era, ask=print) as c:
            assert await c.call("can") == ["elicitation", "roots", "sampling"]
        async with m.Client(app, revision=era, ask=print, capabilities={"roots": {}}) as c:
            assert await c.call("can") == ["roots"]
        with pytest.raises(TypeError, match="leave out elicit=, sample= and roots="):
            m.Client(app, ask=print, roots=["/tmp"])

    @ERAS
    async def test_an_answer_of_the_one_function_that_is_not_a_dict_fails_the_call(self, era):
        app = m.Server()

        @app.tool
        async def ask(ctx: m.Context) -> list:
            return await ctx.roots()

        async with m.Client(app, revision=era, ask=lambda method, params: None) as c:
            with pytest.raises((m.ToolError, TypeError)):
                await c.call("ask")

    @pytest.mark.parametrize("era, where", [  # in the modern era, a method of one's own cannot ask
        *itertools.product([V4, V5], ["tool", "prompt", "resource", "middleware"]), (V3, "tool"), (V4, "method"),
    ])  # fmt: skip
    async def test_any_handler_may_ask_by_a_method_of_the_protocol(self, era, where):
        app = m.Server()

        async def handle(ctx):
            answer = await ctx.ask(self.FORM["method"], self.FORM["params"], key="who")
            return answer["content"]["value"]

        async def handler(ctx):
            return "" if where == "middleware" else await handle(ctx)

        app.add_tool(handler, name="t")
        if where == "middleware":
            @app.middleware
            async def around(ctx, call_next):
                if ctx.method != "tools/call":
                    return await call_next(ctx)
                return {"content": [{"type": "text", "text": await handle(ctx)}]}

        app.add_prompt(handler, name="p")
        app.add_resource("x://r", handler, name="r")

        @app.method("acme/x")
        async def custom(ctx, params):
            return {"said": await handle(ctx)}

        async with m.Client(app, revision=era, elicit=lambda message, schema: {"value": "Ann"}) as c:
            if where == "prompt":
                said = (await c.get_prompt("p"))["messages"][0]["content"]["text"]
            elif where == "resource":
                said = await c.read("x://r")
            elif where == "method":
                said = (await c.request("acme/x"))["said"]
            else:
                said = await c.call("t")
        assert said == "Ann"

    async def test_a_method_that_asks_nobody_is_refused_by_name(self):
        app = m.Server()
        app.tool(lambda ctx: ctx.ask("tools/list"), name="ask")
        async with m.Client(app) as c:
            with pytest.raises(m.ToolError, match="'tools/list' does not ask the client; available: roots/list"):
                await c.call("ask")

    @ERAS
    async def test_questions_by_hand_can_be_awaited(self, era):
        app, seen = m.Server(), []

        @app.tool
        async def who(ctx: m.Context) -> str:
            a, b = await asyncio.gather(ctx.ask(**self.FORM, key="a"), ctx.ask("roots/list", key="b"))
            return f"{a['content']['value']} {len(b['roots'])}"

        @app.middleware
        async def around(ctx, call_next):
            if ctx.method != "tools/call":
                return await call_next(ctx)
            try:
                answer = await call_next(ctx)
                seen.append("answered")
                return answer
            except m.Suspended:
                seen.append("suspended")
                raise

        asked = {"elicit": lambda message, schema: {"value": "Ann"}, "roots": ["/tmp"]}
        async with m.Client(app, revision=era, **asked) as c:
            assert await c.call("who") == "Ann 1"
        assert seen == (["suspended"] if era == "2026-07-28" else []) + ["answered"]

    async def test_a_middleware_may_name_its_parameters_as_it_likes(self):
        app = m.Server()
        app.add_tool(lambda: "done", name="work")

        @app.middleware
        async def around(request, go_on):
            return await go_on(request)

        async with m.Client(app) as c:
            assert await c.call("work") == "done"

    async def test_a_middleware_tells_a_question_from_a_cancellation(self):
        app, seen, begun = m.Server(), [], asyncio.Event()

        @app.tool
        async def ask(ctx: m.Context) -> str:
            return (await ctx.elicit("Name?", str)).data

        @app.tool
        async def wait() -> str:
            begun.set()
            await asyncio.Event().wait()

        @app.middleware
        async def around(ctx, call_next):
            try:
                return await call_next(ctx)
            except BaseException as exc:
                seen.append(type(exc))
                raise

        async with m.Client(app, elicit=lambda message, schema: {"value": "Ann"}) as c:
            assert await c.call("ask") == "Ann"
            task = asyncio.ensure_future(c.call("wait"))
            await begun.wait()
            task.cancel()
            await eventually(lambda: len(seen) == 2)
        assert seen == [m.Suspended, asyncio.CancelledError]

    @ERAS
    async def test_functions_are_called_once_when_the_client_has_gone_and_one_that_fails_harms_nothing(self, era, caplog):
        app, gone = m.Server(), []

        def fail():
            raise ValueError("of its own")

        ends = [lambda: gone.append(1), fail, lambda: gone.append(2)]

        @app.tool
        async def stay(ctx: m.Context) -> str:
            for fn in ends:
                ctx.at_end(fn)
            return "yes"

        async with app.http(port=0) as server, m.Client(server.url, revision=era) as c:
            assert [await c.call("stay"), await c.call("stay")] == ["yes", "yes"]
            assert gone == []
        assert gone == [2, 1] and "of its own" in caplog.text

    async def test_a_client_says_why_it_has_no_connection_any_more(self):
        ours, theirs = m.memory_transports()
        serving = asyncio.ensure_future(m.Server().serve(theirs))
        async with m.Client(ours) as c:
            assert c.lost is None
            await theirs.close()
            await eventually(lambda: c.lost)
            assert isinstance(c.lost, m.ConnectionClosed)
        await serving

    @ERAS
    async def test_a_middleware_comes_before_all_that_the_core_judges(self, era):
        app, seen = m.Server(), []

        @app.middleware
        async def answer(ctx, call_next):
            seen.append(ctx.method)
            known = {"acme/x": {"n": 1}, "prompts/list": {"prompts": [{"name": "p"}]}}
            return known[ctx.method] if ctx.method in known else await call_next(ctx)

        async with m.Client(app, revision=era) as c:
            assert (await c.request("acme/x"))["n"] == 1  # no method of the server
            c.server_capabilities.update(prompts={}, tools={})  # so that it asks
            assert (await c.request("prompts/list"))["prompts"] == [{"name": "p"}]  # not declared
            for method in ("acme/y", "tools/list"):
                with pytest.raises(m.RemoteError) as refused:
                    await c.request(method)
                assert refused.value.code == -32601 and seen[-1] == method

    async def test_a_middleware_sees_state_that_is_forged_before_it_is_refused(self):
        app, seen = m.Server(), []
        app.tool(lambda: "x", name="x")

        @app.middleware
        async def look(ctx, call_next):
            seen.append(ctx.params.get("requestState"))
            return await call_next(ctx)

        async with m.Client(app) as c:
            seen.clear()
            with pytest.raises(m.RemoteError, match="not issued by this server"):
                await c.request("tools/call", {"name": "x", "arguments": {}, "requestState": "forged"})
        assert seen == ["forged"]

    @pytest.mark.parametrize("era, says", [
        ("2024-11-05", {"type": "text", "text": "[audio, audio/wav, 4 characters of base64]"}),
        ("2025-06-18", {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}),
    ])  # fmt: skip
    async def test_the_result_of_a_middleware_is_adapted_to_the_revision_of_the_client(self, era, says):
        app = m.Server()
        audio = {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}

        @app.middleware
        async def answer(ctx, call_next):
            known = {"tools/call": {"content": [audio], "structuredContent": {"n": 1}}}
            return known[ctx.method] if ctx.method in known else await call_next(ctx)

        async with m.Client(app, revision=era) as c:
            c.server_capabilities.update(tools={})
            assert (await c.request("tools/call", {"name": "t"}))["content"] == [says]

    @both_eras
    async def test_a_middleware_tells_the_model_why_it_refuses_a_call(self, era):
        app = m.Server()
        app.add_tool(lambda: "erased", name="erase")
        app.add_prompt(lambda: "erase all", name="all")
        reason = ("only for admins",)

        @app.middleware
        async def refuse(ctx, call_next):
            if ctx.method in ("tools/call", "prompts/get"):
                raise m.ToolError(*reason or ("",))
            return await call_next(ctx)

        async with m.Client(app, revision=era) as c:
            with pytest.raises(m.ToolError, match="^only for admins$"):
                await c.call("erase")
            with pytest.raises(m.RemoteError, match="only for admins"):
                await c.get_prompt("all")
            reason = ()
            with pytest.raises(m.ToolError, match="^ToolError$"):
                await c.call("erase")

    @pytest.mark.parametrize("era, code", [("2025-11-25", -32002), ("2026-07-28", -32602)])
    async def test_the_error_of_a_middleware_has_the_code_of_the_revision(self, era, code):
        app = m.Server()
        app.add_resource("x://a", "a")

        @app.middleware
        async def answer(ctx, call_next):
            if ctx.method == "resources/read":
                raise m.RPCError(-32002, "it is not there", {"uri": "x://b"})
            return await call_next(ctx)

        async with m.Client(app, revision=era) as c:
            with pytest.raises(m.RemoteError, match="it is not there") as refused:
                await c.read("x://b")
        assert (refused.value.code, refused.value.data) == (code, {"uri": "x://b"})

    @both_eras
    async def test_a_capability_that_another_server_lacks_is_not_asked_of_our_client(self, era):
        app, other = m.Server(), m.Server()

        @app.tool
        async def forward(ctx: m.Context) -> None:
            async with m.Client(other) as c:
                await c.complete("greet", "name", "")

        async with m.Client(app, revision=era) as c:
            with pytest.raises(m.ToolError, match="the server did not declare the capability 'completions'"):
                await c.call("forward")

    @pytest.mark.parametrize("where", ["method", "middleware", "prompt", "resource"])
    @pytest.mark.parametrize("raised", [
        m.RemoteError(-32001, "secret of another server", {"token": "t"}),
        m.ProtocolError("secret of another server", data={"token": "t"}),
        m.ConnectionClosed("secret of another server"),
        m.AuthError("secret of another server"),
        m.RequestTimeout("secret of another server"),
    ], ids=lambda raised: type(raised).__name__)  # fmt: skip
    async def test_an_error_of_another_server_never_leaves_as_our_own(self, where, raised, caplog):
        app = m.Server()

        async def fail():
            raise raised

        app.method("acme/x")(lambda ctx, params: fail())
        app.add_prompt(fail, name="x")
        app.add_resource("x://x", fail)

        @app.middleware
        async def around(ctx, call_next):
            if where == "middleware" and ctx.method == "acme/x":
                raise raised
            return await call_next(ctx)

        async with m.Client(app) as c:
            with pytest.raises(m.RemoteError) as refused:
                if where == "prompt":
                    await c.get_prompt("x")
                elif where == "resource":
                    await c.read("x://x")
                else:
                    await c.request("acme/x")
        assert (refused.value.code, refused.value.message, refused.value.data) == (-32603, "Internal error", None)
        assert "secret of another server" in caplog.text

    async def test_a_response_that_json_cannot_say_is_masked_and_the_log_says_why(self, caplog):
        app = m.Server(mask_errors=True)

        @app.method("acme/x")
        async def custom(ctx, params):
            return {"ratio": float("nan")}

        async with m.Client(app) as c:
            with pytest.raises(m.RemoteError, match=r"^the response to acme/x cannot be sent \(-32603\)$"):
                await c.request("acme/x")
        assert "acme/x cannot be sent: JSON has no NaN, no Infinity" in caplog.text

    async def test_a_request_with_a_name_of_megabytes_is_answered(self):
        async with m.Client(m.Server()) as c:
            with pytest.raises(m.RemoteError):
                await c.request("x" * 16_700_000)

    async def test_an_error_that_is_raised_again_and_again_keeps_its_code(self):
        app, shared = m.Server(), m.RPCError(-32002, "it is not there")

        @app.resource("x://a")
        def read():
            raise shared

        for era, code in (("2026-07-28", -32602), ("2025-11-25", -32002)):
            async with m.Client(app, revision=era) as c:
                with pytest.raises(m.RemoteError, match="it is not there") as refused:
                    await c.read("x://a")
                assert refused.value.code == code

    async def test_whoever_agrees_to_a_subscription_it_is_noted(self):
        app, heard = m.Server(capabilities={"resources": {"subscribe": True}}), []

        @app.middleware
        async def answer(ctx, call_next):
            if ctx.method == "resources/subscribe" and ctx.params["uri"] == "far://no":
                raise m.RPCError(-32602, "there is no such thing")
            return {} if ctx.method.startswith("resources/") else await call_next(ctx)

        async with m.Client(app, revision=V4) as c:
            following = await c.subscribe("far://1", lambda params: heard.append(params["uri"]))
            with pytest.raises(m.RemoteError, match="no such thing"):
                await c.subscribe("far://no", print)
            app.resource_updated("far://no")
            app.resource_updated("far://1")
            await eventually(lambda: heard)
            await following.close()
            app.resource_updated("far://1")
            await c.ping()
        assert heard == ["far://1"]

    async def test_a_middleware_may_answer_a_modern_client_that_subscribes_as_a_legacy_one(self):
        app = m.Server()

        @app.middleware
        async def answer(ctx, call_next):
            return {"agreed": True}

        async with lines_to(app, None) as lines:
            lines.put(modern(1, "resources/subscribe")[0])
            assert (await lines.take())["result"]["agreed"]

    async def test_a_handler_knows_which_log_messages_are_wanted(self):
        app = m.Server()
        app.add_tool(lambda ctx: str(ctx.log_level), name="level")
        async with m.Client(app, revision=V4) as c:
            await c.set_log_level("error")
            assert await c.call("level") == "error"
        async with m.Client(app) as c:
            assert await c.call("level") == "None"
        async with m.Client(app, log=print) as c:
            await c.set_log_level("alert")
            assert await c.call("level") == "alert"

    async def test_true_is_nobody_in_particular(self, caplog):
        async with m.Server().http(port=0, verify=lambda token: True) as server:
            with pytest.raises(m.MCPError, match="503"):
                await m.Client(server.url, token="t").connect()
        problem = "a principal is True: verify= and token= need a value that says who it is"
        assert problem in caplog.text
        with pytest.raises(TypeError, match=problem):
            m.Server().http(token={"t": True})

    async def test_scopes_are_read_from_a_mapping_as_from_an_object(self):
        app = m.Server()
        app.tool(scopes=["read"])(Spot)
        tokens = {"a": {"sub": "ann", "scopes": ["read"]}, "b": {"sub": "bob", "scope": "read write"},
                  "c": types.SimpleNamespace(sub="cay", scopes={"read"}), "d": {"sub": "dan"}}  # fmt: skip
        async with app.http(port=0, token=tokens) as server:
            for token in tokens:
                async with m.Client(server.url, token=token) as c:
                    if token == "d":
                        with pytest.raises(m.AuthError):
                            await c.call("Spot", {"x": 1})
                    else:
                        assert await c.call("Spot", {"x": 1})

    @both_eras
    async def test_a_server_in_memory_knows_on_whose_behalf_a_handler_calls_it(self, era):
        inner, outer = m.Server("inner"), m.Server("outer")

        @inner.tool(scopes=["admin"])
        async def wipe(ctx: m.Context) -> str:
            return ctx.principal.subject

        async with m.Client(inner, revision=era) as c:
            @outer.tool
            async def wipe_there() -> str:
                return await c.call("wipe")

            def verify(token):
                return m.Principal("i", token, scopes=["admin"] if token == "root" else ["read"])

            async with outer.http(port=0, verify=verify) as server:
                async with m.Client(server.url, token="root") as root:
                    assert await root.call("wipe_there") == "root"
                async with m.Client(server.url, token="ann") as ann:
                    with pytest.raises(m.ToolError, match="scope admin"):
                        await ann.call("wipe_there")

    def test_a_server_may_be_of_a_class_with_its_own_options(self):
        class Shop(m.Server):
            def __init__(self):
                super().__init__("shop", title="Shop")

        assert Shop().info == {"name": "shop", "version": m.__version__, "title": "Shop"}

    async def test_a_server_can_be_written_in_several_files(self):
        part, app, heard = m.Server("part"), m.Server("whole"), []
        part.tool(lambda a: f"{a}+", name="add")
        part.add_prompt(lambda name: f"Hi {name}", name="greet")
        part.add_resource("x://{id}", lambda id: f"row {id}", name="row")
        part.add_resource("y://1", "one")
        part.complete("greet", "name")(lambda value: ["Ann"])
        part.complete("x://{id}", "id")(lambda value: ["7"])
        app.include(part)
        app.include(part, "second")
        app.complete("second__greet", "name")(lambda value: ["Bea"])
        app.add_prompt(lambda name: f"Dear {name}", name="greet")  # its completions stay
        async with m.Client(app, on_tools_changed=lambda: heard.append(1)) as c:
            assert [tool["name"] for tool in await c.list_tools()] == ["add", "second__add"]
            assert [await c.call("add", {"a": 1}), await c.call("second__add", {"a": 2})] == ["1+", "2+"]
            text = (await c.get_prompt("second__greet", {"name": "Bo"}))["messages"][0]["content"]["text"]
            assert (text, await c.read("x://5"), await c.read("y://1")) == ("Hi Bo", "row 5", "one")
            assert await c.complete("second__greet", "name", "") == ["Bea"]
            assert await c.complete("greet", "name", "") == ["Ann"]
            assert await c.complete("x://{id}", "id", "") == ["7"]
            app.include(part, "third")
            await eventually(lambda: heard)
        async with m.Client(part) as c:
            assert [tool["name"] for tool in await c.list_tools()] == ["add"]


########################
# T22. Lines and pipes
########################


class TestLines:
    """basic/transports/stdio: messages are delimited by newlines."""

    @pytest.mark.parametrize(
        "data, lines",
        [
            (b'{"id":1}\n{"id":2}\n', [b'{"id":1}', b'{"id":2}']),
            (b'{"id":1}\r\n\r\n\n{"id":2}\r\n', [b'{"id":1}', b'{"id":2}']),
            (b"a", []),
            (b"\xff\x00\n\x80\n", [b"\xff\x00", b"\x80"]),
            ("é\u2028\x0b\x0c\x1c\x85\n".encode(), ["é\u2028\x0b\x0c\x1c\x85".encode()]),
            (b"a\rb\n", [b"a\rb"]),
        ],
    )
    def test_lines_end_with_newlines_and_nothing_else(self, data, lines):
        assert feed_every_way(m.LineDecoder, data, exact=True) == lines

    def test_the_last_line_needs_no_newline(self):
        assert feed_every_way(m.LineDecoder, b"a\nb", eof=True, exact=True) == [b"a", b"b"]

    def test_a_line_at_the_limit_passes_and_a_longer_one_is_one_error(self):
        def make():
            return m.LineDecoder(limit=8)

        data = b"12345678\r\n" + b"x" * 30 + b"\nok\n12345678\rx\n12345678\r\r\n\r\r\n123456789"
        first, second, third, *others = feed_every_way(make, data, eof=True, exact=True)
        assert (first, third) == (b"12345678", b"ok")
        assert [*map(type, (second, *others))] == [m.LimitExceeded] * 4 and "8 bytes" in str(second)


########################
# T23. Standard streams
########################

PRELUDE = f"""
import asyncio, json, logging, os, signal, subprocess, sys, threading, time
logging.getLogger("asyncio").setLevel("ERROR")  # it warns of slow callbacks, if the machine is slow
sys.path.insert(0, {str(HERE)!r})
import mcp_lite as m
"""

SERVER = (
    PRELUDE
    + """
app = m.Server("t17")

@app.tool
def add(a: int, b: int = 0) -> int:
    return a + b

@app.tool
def noise() -> str:
    "Print in every way there is."
    print("from print")
    os.write(1, b"from a library\\n")
    child = "import sys; print('from a child'); sys.stdin.read(); print('end of its input')"
    subprocess.run([sys.executable, "-c", child])
    return sys.stdin.read() + "read nothing"

@app.tool
def sleep() -> str:
    print("asleep", flush=True)
    time.sleep(60)

@app.tool
async def linger() -> str:
    for _ in range(100):
        await asyncio.sleep(0)
    return "done"

@app.tool
async def take_hours() -> str:
    loop = asyncio.get_running_loop()
    for hours in range(1000):
        loop.time = lambda: time.monotonic() + 3600 * hours
        await asyncio.sleep(0)
    return "done"

@app.tool
async def forever() -> str:
    print("asleep", flush=True)
    await asyncio.sleep(3600)

@app.tool
def length(text: str) -> int:
    return len(text)

@app.tool
def big(size: int) -> str:
    return "x" * size

@app.tool
def spawn() -> int:
    "Start a process that lives on and holds what it inherited."
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    return subprocess.Popen(command, close_fds=False).pid
"""
)

RUN = SERVER + "app.run()\nprint('afterwards')\n"


def call(req_id, name, **arguments):
    """Return the line that calls a tool."""
    params = {"name": name, "arguments": arguments}
    msg = {"jsonrpc": "2.0", "id": req_id, "method": "tools/call", "params": params}
    return json.dumps(msg).encode() + b"\n"


def texts(data):
    """Return {id: text of the result} of the lines that a server wrote."""
    answers = [json.loads(line) for line in data.splitlines() if line != b"afterwards"]
    return {msg["id"]: msg["result"]["content"][0]["text"] for msg in answers if "result" in msg}


def python(code, *args, **streams):
    """Start a Python process that treats every warning as an error."""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code, *map(str, args)]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    return started(command, env=env, **{"stdin": -1, "stdout": -1, "stderr": -1, **streams})


def converse(code, data, **streams):
    """Return (status, stdout, stderr) of a Python process that gets `data` and then no more."""
    with python(code, **streams) as process:
        out, err = process.communicate(data, timeout=20)
        return process.returncode, out, err


def is_alive(pid):
    """Return whether a process runs; a zombie that nobody collects does not."""
    if os.name == "nt":
        windows = ctypes.WinDLL("kernel32")
        handle = windows.OpenProcess(0x100000, False, pid)  # SYNCHRONIZE
        timed_out = windows.WaitForSingleObject(handle, 0) == 0x102
        windows.CloseHandle(handle)
        return timed_out
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while it is read
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


class TestServerStreams:
    """What a server's standard streams are, and who may touch them.

    spec: basic/transports/stdio
    """

    def test_lines_are_answered_before_the_end_and_the_last_needs_no_newline(self):
        status, out, err = converse(RUN, call(1, "linger") + call(2, "add", a=2).strip())
        assert (status, texts(out), err) == (0, {1: "done", 2: "2"}, b"")

    def test_both_streams_may_be_files_and_all_in_them_is_answered(self, tmp_path):
        requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
        lines = [call(i, "add", a=i) for i in range(300)]
        requests.write_bytes(b"".join(lines) + call(300, "take_hours"))
        with requests.open("rb") as stdin, answers.open("wb") as stdout:
            with python(RUN, stdin=stdin, stdout=stdout) as process:
                assert (process.wait(20), process.stderr.read()) == (0, b"")
        said = answers.read_bytes()
        assert unix(said).endswith(b"\nafterwards\n")
        assert texts(said) == {**{i: str(i) for i in range(300)}, 300: "done"}

    @posix
    def test_a_pipe_that_does_not_block_may_stand_beside_a_file(self, tmp_path):
        stdin, to_server = os.pipe()
        os.set_blocking(stdin, False)
        answers = tmp_path / "answers.jsonl"
        with answers.open("wb") as stdout, python(RUN, stdin=stdin, stdout=stdout) as process:
            os.close(stdin)
            for n in range(2):
                os.write(to_server, call(n, "add", a=n))
                wait_until(lambda n=n: answers.read_bytes().count(b"\n") > n)
            os.close(to_server)
            assert process.wait(20) == 0
        assert texts(answers.read_bytes()) == {0: "0", 1: "1"}

    def test_stdin_may_be_the_null_device(self):
        status, out, err = converse(RUN, None, stdin=subprocess.DEVNULL)
        assert (status, unix(out)) == (0, b"afterwards\n")
        assert err == b""  # it is not a terminal, though Windows calls it a tty

    @posix
    def test_one_socket_may_be_both_streams(self):
        ours, theirs = socket.socketpair()
        with ours, python(RUN, stdin=theirs, stdout=theirs) as process:
            theirs.close()
            ours.sendall(call(1, "big", size=1_000_000))
            ours.shutdown(socket.SHUT_WR)
            with ours.makefile("rb") as file:
                assert len(texts(file.read())[1]) == 1_000_000
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    @posix
    def test_the_streams_may_be_a_terminal(self):
        import pty
        import tty

        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        with python(RUN, stdin=theirs, stdout=theirs) as process, open(ours, "rb+", 0) as terminal:
            os.close(theirs)
            terminal.write(call(1, "add", a=5))
            line = b""
            while not line.endswith(b"\n"):
                line += terminal.read(4096)
            assert texts(line) == {1: "5"}
            process.send_signal(signal.SIGTERM)  # raw mode has no ^D; the thread is in read()
            assert process.wait(20) == 0

    def test_all_that_is_printed_goes_to_stderr_and_nothing_else_can_read_the_input(self):
        with python(RUN) as process:
            process.stdin.write(call(1, "noise"))
            process.stdin.flush()
            printed = [process.stderr.readline().strip() for _ in range(4)]
            assert printed == [b"from print", b"from a library", b"from a child", b"end of its input"]
            out, err = process.communicate(timeout=20)
            assert (process.returncode, err) == (0, b"")
            assert texts(out) == {1: "read nothing"}
            assert unix(out).endswith(b"\nafterwards\n")  # the program has its streams back

    @posix
    def test_a_tool_may_print_where_stderr_is_closed(self):
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", RUN]
        done = subprocess.run(command, input=call(1, "noise"), stdout=subprocess.PIPE, timeout=20)
        assert (done.returncode, texts(done.stdout)) == (0, {1: "read nothing"})
        assert done.stdout.count(b"\n") == 2, "the response, and what is printed after run()"

    @pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
    def test_a_tool_prints_what_the_encoding_of_its_output_lacks(self, encoding):
        tool = "@app.tool\ndef check() -> str:\n    print('\\u2713')\n    return 'done'\n"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONIOENCODING", encoding)
            status, out, err = converse(SERVER + tool + "app.run()", call(1, "check"))
        assert (status, texts(out), unix(err)) == (0, {1: "done"}, b"\\u2713\n")

    def test_the_output_of_a_lifespan_goes_to_stderr_too(self):
        life = "@contextlib.asynccontextmanager\nasync def life(server):\n    print('begins')\n    yield\n    print('ends')\n"
        code = f"{PRELUDE}import contextlib\n{life}m.Server('t17', lifespan=life).run()"
        assert converse(code, b"") == (0, b"", f"begins{os.linesep}ends{os.linesep}".encode())

    @posix
    def test_the_streams_are_blocking_when_they_are_given_back(self):
        stdin, to_server = os.pipe()
        from_server, stdout = os.pipe()
        with python(RUN, stdin=stdin, stdout=stdout) as process:
            os.write(to_server, call(1, "add", a=1))
            assert texts(os.read(from_server, 1000)) == {1: "1"}
            os.close(to_server)
            assert process.wait(20) == 0
            assert os.get_blocking(stdin) and os.get_blocking(stdout)
        for fd in (stdin, from_server, stdout):
            os.close(fd)

    def test_a_child_of_a_tool_does_not_hold_the_conversation_open(self):
        with python(RUN, stderr=subprocess.DEVNULL) as process:
            out, _ = process.communicate(call(1, "spawn"), 20)  # ends although the child of the tool lives
            os.kill(int(texts(out)[1]), 9)
            assert process.returncode == 0

    @posix
    @pytest.mark.parametrize("closed", ["<&-", ">&-"])
    def test_a_server_without_streams_says_so(self, closed):
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", SERVER + "app.run()"]
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
        assert ran.stderr.endswith(b": standard input and output are closed\n")
        assert (ran.stderr.count(b"\n"), ran.returncode) == (1, 1)

    @pytest.mark.parametrize("steps", [["sys.exit('set API_KEY')", "yield"], ["yield", "sys.exit('set API_KEY')"]])
    def test_a_lifespan_that_ends_the_program_does_so_in_one_line(self, steps):
        body = "".join(f"    {step}\n" for step in steps)
        life = f"@contextlib.asynccontextmanager\nasync def life(server):\n{body}"
        status, out, err = converse(f"{PRELUDE}import contextlib\n{life}m.Server('t27', lifespan=life).run()", b"")
        assert (status, out, unix(err)) == (1, b"", b"t27: its lifespan ended the program: set API_KEY\n")

    def test_a_line_over_the_limit_is_refused_and_the_next_is_served(self):
        line = call(1, "add", a=1)
        code = SERVER + f"app.run(max_message_bytes={len(line) - 1})"
        status, out, _ = converse(code, b" " + line + line)
        first, second = (json.loads(line) for line in out.splitlines())
        assert first["error"]["code"] == -32600 and "longer than" in first["error"]["message"]
        assert (status, second["result"]["content"][0]["text"]) == (0, "1")

    def test_messages_of_ten_megabytes_pass(self):
        lines = call(1, "length", text="x" * 10_000_000) + call(2, "big", size=5_000_000)
        status, out, _ = converse(RUN, lines)
        said = texts(out)
        assert (status, said[1], len(said[2])) == (0, "10000000", 5_000_000)

    @pytest.mark.skipif(not hasattr(os, "pipe2"), reason="a pipe of packets shows each write")
    def test_the_answers_of_one_turn_of_the_loop_leave_together(self):
        from_server, stdout = os.pipe2(os.O_DIRECT)
        code = SERVER + "@app.tool\nasync def now(): return 1\napp.run()"
        with python(code, stdout=stdout) as process:
            os.close(stdout)
            process.stdin.write(b"".join(call(i, "now") for i in range(64)))
            process.stdin.close()
            packets = []
            while data := os.read(from_server, 65536):
                packets.append(data)
            process.wait(20)
        os.close(from_server)
        assert b"".join(packets).count(b"\n") == 64 and len(packets) < 16


class TestServerEnds:
    """How a server ends: by end of input, a signal, a broken pipe, or its parent's death."""

    @pytest.mark.parametrize("tool", ["sleep", "forever"])
    def test_the_end_of_input_ends_a_server_whatever_runs(self, tool):
        with python(RUN) as process:
            process.stdin.write(call(1, tool))
            process.stdin.flush()
            assert process.stderr.readline().strip() == b"asleep"
            out, err = process.communicate(timeout=20)
        assert (process.returncode, unix(out), err) == (0, b"afterwards\n", b"")

    @posix
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_an_idle_server_in_good_order(self, number):
        with python(RUN) as process:
            process.stdin.write(call(1, "add", a=1))
            process.stdin.flush()
            assert texts(process.stdout.readline()) == {1: "1"}
            process.send_signal(number)
            assert process.stdout.read() == b"afterwards\n"  # stdin is still open
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    @pytest.mark.skipif(os.name != "nt", reason="Ctrl-Break is of Windows")
    def test_ctrl_break_ends_a_server_in_good_order(self):
        tool = "import signal\n@app.tool\ndef end() -> str:\n    signal.raise_signal(signal.SIGBREAK)\n    return 'bye'\n"
        with python(f"{SERVER}{tool}app.run()\nprint('afterwards')") as process:
            process.stdin.write(call(1, "end"))
            process.stdin.flush()
            out = process.stdout.read()  # stdin is still open
            assert (process.wait(20), texts(out), unix(out)[-11:]) == (0, {1: "bye"}, b"afterwards\n")

    @posix
    @pytest.mark.parametrize("tool", ["sleep", "forever"])
    def test_a_second_signal_ends_it_at_once(self, tool):
        with python(SERVER + "app.run()") as process:
            process.stdin.write(call(1, tool))
            process.stdin.flush()
            assert process.stderr.readline() == b"asleep\n"
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            # Two threads may take them, so that either may come second.
            assert process.wait(20) in (128 + signal.SIGTERM, 128 + signal.SIGINT)
            assert (process.stdout.read(), process.stderr.read()) == (b"", b"")

    @posix
    def test_a_signal_ends_a_server_whose_handler_blocks_the_loop(self):
        code = SERVER + "@app.tool\nasync def block(): print('asleep', flush=True); time.sleep(3600)\napp.run()"
        with python(code) as process:
            process.stdin.write(call(1, "block"))
            process.stdin.flush()
            assert process.stderr.readline() == b"asleep\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM

    @posix
    def test_a_signal_before_the_streams_are_taken_is_not_lost(self):
        code = (
            SERVER
            + """
import contextlib
@contextlib.asynccontextmanager
async def lifespan(server):
    os.kill(os.getpid(), signal.SIGTERM)
    yield
m.Server("t17", lifespan=lifespan).run()
"""
        )
        with python(code) as process:
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    @posix
    @pytest.mark.parametrize("transport", ["watch_parent=False", "'http', port=0"])
    def test_a_signal_that_another_thread_receives_wakes_the_loop(self, transport):
        """So does one that comes just before the loop waits: the main thread hears of neither."""
        tool = """
import threading
def send():
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(3600)
threading.Thread(target=send, daemon=True).start()
"""
        with python(SERVER + tool + f"app.run({transport})\nprint('afterwards')") as process:
            assert (process.wait(20), process.stdout.read()) == (0, b"afterwards\n")

    @posix
    @pytest.mark.parametrize("own", ["", "signal.signal(15, lambda *_: 0)\n"])
    def test_the_program_gets_its_signal_handlers_back(self, own):
        code = SERVER + own + "old = signal.getsignal(2), signal.getsignal(15)\napp.run()\n"
        status, out, _ = converse(code + "print(old == (signal.getsignal(2), signal.getsignal(15)))", b"")
        assert (status, out) == (0, b"True\n")

    @posix
    def test_a_reader_that_goes_away_ends_it_quietly(self):
        with python(SERVER + "app.run()") as process:
            process.stdout.close()
            process.stdin.write(call(1, "add", a=1) + call(2, "add", a=1))
            process.stdin.flush()  # and it stays open
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    @posix
    @pytest.mark.parametrize("options", ["", "watch_parent=False"])
    def test_a_server_whose_parent_died_ends_although_its_input_stays_open(self, options):
        parent = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]])\n"
        with python(
            parent + "sys.stdin = None; sys.stdout.close(); import time; time.sleep(60)",
            SERVER + f"app.run({options})",
        ) as process:
            process.stdin.write(call(1, "add", a=1))
            process.stdin.flush()
            assert texts(process.stdout.readline()) == {1: "1"}
            process.kill()
            process.wait(20)
            if not options:
                assert process.stdout.read() == b""
                assert b"the parent process is gone" in process.stderr.read()
            else:
                process.stdin.write(call(2, "add", a=2))
                process.stdin.close()
                assert texts(process.stdout.read()) == {2: "2"}

    def test_a_server_runs_in_a_thread_without_signals(self):
        code = SERVER + "t = threading.Thread(target=app.run)\nt.start()\nt.join()\nprint('afterwards')"
        status, out, err = converse(code, call(1, "add", a=1))
        assert (status, texts(out), err) == (0, {1: "1"}, b"")


########################
# T27. Client
########################

SUBSCRIPTION = META + "subscriptionId"
TASKS_EXTENSION = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class TestFindingTheEra:
    """What a client says first, and what it makes of the answer.

    spec: basic/transports/stdio#backward-compatibility
    """

    test_it_goes_as_written = client_conversations("""
A server that answers server/discover with an error of no modern kind is a legacy one: it gets initialize.
[= 2025-11-25] bare unpinned
    >>> c.connect()
    --> ?1 server/discover {...}
    <-- ?1 error -32000 "what?"
    --> ?2 initialize {"protocolVersion": "2025-11-25", "clientInfo": {...}, "capabilities": {...}}
    <-- ?2 {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "old"}}
    --> notifications/initialized
    None
    >>> asyncio.sleep(0, (c.revision, c.server_info, c.instructions))
    ('2025-03-26', {'name': 'old'}, None)

A server that answers server/discover is modern, and gets no initialize.
[modern] bare unpinned
    >>> c.connect()
    --> ?1 server/discover {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", ...}}
    <-- ?1 {"resultType": "complete", "supportedVersions": ["2026-07-28"], "instructions": "Try.",
          "capabilities": {"tools": {}}, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new"}}}
    None
    >>> asyncio.sleep(0, (c.revision, c.server_info, c.instructions))
    ('2026-07-28', {'name': 'new'}, 'Try.')

An error that only a modern server gives is raised, and the client does not try initialize.
[modern] bare unpinned
    >>> c.connect()
    --> ?1 server/discover {...}
    <-- ?1 error -32021 "no"
    RemoteError: no

A server that speaks other revisions than ours is asked for one of the legacy era.
[= 2025-11-25] bare unpinned
    >>> c.connect()
    --> ?1 server/discover {...}
    <-- ?1 error -32022 "no" {"supported": ["2025-11-25"]}
    --> ?2 initialize {"protocolVersion": "2025-11-25", ...}
    <-- ?2 {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    --> notifications/initialized
    None

A silent server is taken for a legacy server after ten seconds.
[= 2025-11-25] bare unpinned
    >>> c.connect()
    --> ?1 server/discover {...}
    later 11 s
    --> notifications/cancelled {"requestId": ?1, ...}
    --> ?2 initialize {...}
    <-- ?2 {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    --> notifications/initialized
    None

A modern server that was only slow to start is found after all.
[modern] bare unpinned
    >>> c.connect()
    --> ?1 server/discover {...}
    later 11 s
    --> notifications/cancelled {...}
    --> ?2 initialize {...}
    <-- ?2 error -32601 "no such method"
    --> ?3 server/discover {...}
    later 11 s
    <-- ?3 {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
    None

A client that was made for one revision fails if the server does not speak it, and tries no other.
[modern] bare
    >>> c.connect()
    --> ?1 server/discover {...}
    <-- ?1 error -32601 "what?"
    ProtocolError: did not accept revision 2026-07-28: what?

A handshake fails if the server chooses a revision that the client does not speak.
[= 2025-06-18] bare
    >>> c.connect()
    --> ?1 initialize {"protocolVersion": "2025-06-18", ...}
    <-- ?1 {"protocolVersion": "2099-01-01", "capabilities": {}, "serverInfo": {}}
    ProtocolError: 2099-01-01

A handshake that is refused is the server's error, and one that is malformed a protocol error.
[= 2025-11-25] bare
    >>> c.connect()
    --> ?1 initialize {...}
    <-- ?1 error -32603 "out of order"
    RemoteError: out of order

A server that does not say its capabilities has sent a malformed answer.
[= 2025-11-25] bare
    >>> c.connect()
    --> ?1 initialize {...}
    <-- ?1 {"protocolVersion": "2025-11-25", "capabilities": 5}
    ProtocolError: capabilities should be object

A serverInfo or instructions of a wrong type are taken for absent.
[= 2025-11-25] bare
    >>> c.connect()
    --> ?1 initialize {...}
    <-- ?1 {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": "me", "instructions": 5}
    --> notifications/initialized
    None
    >>> asyncio.sleep(0, (c.server_info, c.instructions))
    ({}, None)

A server that goes away in the handshake says so.
[= 2025-11-25] bare
    >>> c.connect()
    --> ?1 initialize {...}
    cut
    ConnectionClosed: the scripted server closed the connection
""")

    test_the_longest = client_conversations("""
The client finds out what a silent server speaks within the timeout of one request.
[= 2025-11-25] bare unpinned
    >>> c.connect()
    --> ?1 server/discover {...}
    later 2 s
    --> notifications/cancelled {...}
    --> ?2 initialize {...}
    later 2 s
    RequestTimeout: did not answer initialize within 1.5 seconds
""", timeout=3)


# What a server may answer: a call, the method it sends, a result, and what becomes of it.
RESULTS = """
c.list_tools()         | tools/list | {"tools": {}}                              | ProtocolError: tools should be array
c.list_tools()         | tools/list | {}                                         | ProtocolError: tools should be array
c.list_tools()         | tools/list | {"tools": null}                            | []
c.list_tools()         | tools/list | {"tools": [5, {"name": "x"}, null]}        | [{"name": "x"}]
c.list_tools()         | tools/list | {"tools": [{"name": 5}, {"name": "x", "inputSchema": null, "outputSchema": null}]} | [{"name": "x", ...}]
c.list_prompts()       | prompts/list | {"prompts": [], "nextCursor": 5}         | ProtocolError: nextCursor should be string
c.list_prompts()       | prompts/list | {"prompts": [{"name": "a"}], "nextCursor": null} | [{"name": "a"}]
c.list_resources()     | resources/list | {"resources": [{"uri": "a://b", "name": "b"}]} | [{"uri": "a://b", "name": "b"}]
c.list_templates()     | resources/templates/list | {"resourceTemplates": [{"uriTemplate": "a://{b}", "name": "b"}]} | [{"uriTemplate": "a://{b}", "name": "b"}]
c.call("x")            | tools/call | {"content": 5}                             | ProtocolError: content should be array
c.call("x")            | tools/call | {"content": ["a"]}                         | ProtocolError: string
c.call("x")            | tools/call | {}                                         | ProtocolError: content should be array
c.call("x")            | tools/call | {"content": []}                            | None
c.call("x")            | tools/call | {"content": [{"type": "text", "text": "a"}]} | "a"
c.call("x")            | tools/call | {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]} | ["a", "b"]
c.call("x")            | tools/call | {"content": [{"type": "image", "data": "", "mimeType": "image/png"}]} | {"type": "image", "data": "", "mimeType": "image/png"}
c.call("x")            | tools/call | {"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}} | 3
c.call("x")            | tools/call | {"content": [{"type": "text", "text": "{\\"result\\": 3}"}], "structuredContent": {"result": 3}} | {"result": 3}
c.call("x")            | tools/call | {"content": [], "structuredContent": {"x": 1}} | {"x": 1}
c.call("x")            | tools/call | {"structuredContent": {"x": 1}}            | {"x": 1}
c.call("x")            | tools/call | {"content": null, "structuredContent": {"x": 1}, "isError": null, "_meta": null} | {"x": 1}
c.call("x")            | tools/call | {"content": [{"type": "text", "text": "a"}], "structuredContent": null} | "a"
c.call("x")            | tools/call | {"content": [{"type": "text", "text": "null"}], "structuredContent": null} | None
c.call("x")            | tools/call | {"content": [{"type": "text", "text": "{\\"result\\": 1}"}], "structuredContent": {"result": "{\\"result\\": 1}"}} | '{"result": 1}'
c.call("x")            | tools/call | {"content": [{"type": "text", "text": "no disk"}], "isError": true} | ToolError: no disk
c.call("x")            | tools/call | {"content": [], "isError": true}           | ToolError: the tool failed without a message
c.call_tool("x")       | tools/call | {"content": [], "more": 1}                 | {"content": [], "more": 1, ...}
c.read("a://b")        | resources/read | {"contents": [{"uri": "a://b", "text": "hi"}]} | "hi"
c.read("a://b")        | resources/read | {"contents": [{"uri": "a://b", "blob": "aGk="}]} | b'hi'
c.read("a://b")        | resources/read | {"contents": [{"uri": "a://b", "text": "hi", "blob": null}]} | "hi"
c.read("a://b")        | resources/read | {"contents": [{"uri": "a://b", "blob": "-_-_\\n-_8"}]} | b'\\xfb\\xff\\xbf\\xfb\\xff'
c.read("a://b")        | resources/read | {"contents": [{"uri": "a://b", "text": "a"}, {"uri": "a://c", "text": "b"}]} | ["a", "b"]
c.read("a://b")        | resources/read | {"contents": [{"uri": "a://b", "blob": "%"}]} | ProtocolError: not Base64
c.read("a://b")        | resources/read | {"contents": [{"uri": "a://b"}]}        | ProtocolError: text should be string
c.read("a://b")        | resources/read | {"contents": 5}                        | ProtocolError: contents should be array
c.get_prompt("x", {"n": 5}) | prompts/get | {"messages": []}                     | {"messages": [], ...}
c.get_prompt("x")      | prompts/get | {"messages": "hi"}                        | ProtocolError: messages should be array
c.complete("x", "n", "a") | completion/complete | {"completion": {"values": ["ab"]}} | ["ab"]
c.complete("x", "n", "a") | completion/complete | {"completion": {"values": [5]}} | ["5"]
c.complete("a://{b}", "b", "a") | completion/complete | {"completion": 5}        | ProtocolError: completion should be object
"""  # noqa: E501
RESULT_TALKS = "\n\n".join(
    f"{call} takes {result.replace('[', '(')[:40]} for what it is.\n[>= 2025-11-25]\n    >>> {call}\n"
    f"    --> ?1 {method} {{...}}\n    <-- ?1 {result}\n    {value}"
    for call, method, result, value in table(RESULTS)
)


class TestCalls:
    """Results, and what a program gets."""

    test_results = client_conversations(RESULT_TALKS)

    test_it_goes_as_written = client_conversations("""
A list is read to its last page, and each cursor goes back as it came.
[all] spec: server/utilities/pagination
    >>> c.list_prompts()
    --> ?1 prompts/list
    <-- ?1 {"prompts": [{"name": "a"}], "nextCursor": "two"}
    --> ?2 prompts/list {"cursor": "two"}
    <-- ?2 {"prompts": [{"name": "b"}]}
    [{"name": "a"}, {"name": "b"}]

A page or a cursor that comes once more ends the list, and counts once.
[all]
    >>> c.list_prompts()
    --> ?1 prompts/list
    <-- ?1 {"prompts": [{"name": "a"}], "nextCursor": ""}
    --> ?2 prompts/list {"cursor": ""}
    <-- ?2 {"prompts": [{"name": "a"}], "nextCursor": ""}
    [{"name": "a"}]
    >>> c.list_prompts()
    --> ?3 prompts/list
    <-- ?3 {"prompts": [{"name": "a"}], "nextCursor": "two"}
    --> ?4 prompts/list {"cursor": "two"}
    <-- ?4 {"prompts": [{"name": "b"}], "nextCursor": ""}
    --> ?5 prompts/list {"cursor": ""}
    <-- ?5 {"prompts": [{"name": "a"}], "nextCursor": "two", "_meta": {"took": 3}}
    [{"name": "a"}, {"name": "b"}]
    >>> c.list_prompts()
    --> ?6 prompts/list
    <-- ?6 {"prompts": [{"name": "a"}], "nextCursor": "two"}
    --> ?7 prompts/list {"cursor": "two"}
    <-- ?7 {"prompts": [{"name": "b"}], "nextCursor": "two"}
    [{"name": "a"}, {"name": "b"}]

Structured output is checked by the schema of a tool that was listed.
[>= 2025-06-18] spec: server/tools#output-schema
    >>> c.list_tools()
    --> ?1 tools/list
    <-- ?1 {"tools": [{"name": "x", "inputSchema": {"type": "object"},
          "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}]}
    [...]
    >>> c.call("x")
    --> ?2 tools/call {...}
    <-- ?2 {"content": [], "structuredContent": {"n": "many"}}
    ProtocolError: broke its own output schema
    >>> c.call("x")
    --> ?3 tools/call {...}
    <-- ?3 {"content": []}
    ProtocolError: broke its own output schema
    >>> c.call("x")
    --> ?4 tools/call {...}
    <-- ?4 {"content": [{"type": "text", "text": "no disk"}], "isError": true}
    ToolError: no disk
    <-- notifications/tools/list_changed
    >>> c.call("x")
    --> ?5 tools/call {...}
    <-- ?5 {"content": [], "structuredContent": {"n": "many"}}
    {"n": "many"}

The client does not try the regular expressions of a server, for some take years.
[>= 2025-06-18]
    >>> c.list_tools()
    --> ?1 tools/list
    <-- ?1 {"tools": [{"name": "x", "inputSchema": {"type": "object"},
          "outputSchema": {"type": "object", "properties": {"n": {"pattern": "^(a|a)*$"}}}}]}
    [...]
    >>> c.call("x")
    --> ?2 tools/call {...}
    <-- ?2 {"content": [], "structuredContent": {"n": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"}}
    {...}

The client tells the server when its caller is cancelled, and drops an answer that comes later.
[all] spec: basic/utilities/cancellation
    >>> asyncio.wait_for(c.call("x"), 5)
    --> ?1 tools/call {...}
    later 6 s
    --> notifications/cancelled {"requestId": ?1, "reason": "the caller was cancelled"}
    TimeoutError:
    <-- ?1 {"content": []}
    >>> c.call("y")
    --> ?2 tools/call {"name": "y", "arguments": {}}
    <-- ?2 {"content": []}
    None

A request without an answer fails after its timeout, and the server is told.
[all]
    >>> c.call("x", timeout=5)
    --> ?1 tools/call {...}
    later 6 s
    --> notifications/cancelled {"requestId": ?1, "reason": "timeout"}
    RequestTimeout: did not answer tools/call within 5 seconds; timeout=N waits longer

Progress renews the deadline of a request, and each request asks for it.
[all] spec: basic/utilities/progress
    >>> c.call("x", timeout=5, meta={"traceparent": "00"})
    --> ?1 tools/call {"name": "x", "arguments": {},
          "_meta": {"progressToken": ?t, "traceparent": "00", ...}}
    later 4 s
    <-- notifications/progress {"progressToken": ?t, "progress": 1}
    later 4 s
    <-- ?1 {"content": []}
    None

Requests fail at once when the connection ends, and later ones fail with the same error.
[all]
    >>> c.call("x")
    --> ?1 tools/call {...}
    cut
    ConnectionClosed: the scripted server closed the connection
    >>> c.ping()
    ConnectionClosed: the scripted server closed the connection

A request of a program that has closed its client fails, and says that the program closed it.
[all]
    >>> c.close()
    None
    >>> c.call("x")
    ConnectionClosed: this program has closed the connection
    >>> c.connect()
    RuntimeError: connects once

An answer whose result is no object fails the request that waits for it.
[legacy]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- {"jsonrpc": "2.0", "id": ?1, "result": 5}
    ProtocolError: answered tools/call with a malformed message
    >>> c.call("x")
    --> ?2 tools/call {...}
    <-- {"jsonrpc": "2.0", "id": ?2}
    ProtocolError: a message must have a method, or either a result or an error

A response may have null for the member that it does not have, as some servers write it.
[legacy]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- {"jsonrpc": "2.0", "id": ?1, "result": {"content": []}, "error": null}
    None
    >>> c.call("x")
    --> ?2 tools/call {...}
    <-- {"jsonrpc": "2.0", "id": ?2, "result": null, "error": {"code": 5, "message": "no"}}
    RemoteError: no

Notifications that are unknown or malformed change nothing.
[all]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": 5}}
    <-- {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": []}}
    <-- {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}
    <-- {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"_meta": 5}}
    <-- {"jsonrpc": "2.0", "method": "notifications/elicitation/complete"}
    <-- ?1 {"content": []}
    None

The client pings a server of the legacy era with the method ping.
[legacy]
    >>> c.ping()
    --> ?1 ping
    <-- ?1 {}
    ...

The client pings a modern server, which knows no ping, with server/discover.
[modern]
    >>> c.request("tools/list")
    --> ?1 tools/list {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": {"name": "mcp_lite", ...},
          "io.modelcontextprotocol/clientCapabilities": {...}, "progressToken": ...}}
    <-- ?1 {"tools": []}
    {"tools": [], ...}

The log level is asked for once in the legacy era.
[legacy]
    >>> c.set_log_level("error")
    --> ?1 logging/setLevel {"level": "error"}
    <-- ?1 {}
    None

A prompt's arguments travel as texts, a tool's as JSON.
[all]
    >>> c.get_prompt("x", {"n": 5, "t": "a"})
    --> ?1 prompts/get {"name": "x", "arguments": {"n": "5", "t": "a"}}
    <-- ?1 {"messages": []}
    {...}

A template is completed by its URI, with what is known already where the revision has that.
[>= 2025-06-18]
    >>> c.complete("a://{b}/{c}", "c", "x", {"b": "y"})
    --> ?1 completion/complete {"ref": {"type": "ref/resource", "uri": "a://{b}/{c}"},
          "argument": {"name": "c", "value": "x"}, "context": {"arguments": {"b": "y"}}}
    <-- ?1 {"completion": {"values": ["xx"]}}
    ["xx"]

The first revision had completions, and no capability for them.
[= 2024-11-05] capabilities {}
    >>> c.complete("x", "a", "b")
    --> ?1 completion/complete {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}
    <-- ?1 {"completion": {"values": ["bb"]}}
    ["bb"]

The client does not ask for what the server did not declare: the call fails at once.
[all] capabilities {"resources": {}}
    >>> c.list_tools()
    CapabilityMissing: tools
    >>> c.batch([("resources/list", None), ("prompts/list", None)])
    CapabilityMissing: prompts
    >>> c.subscribe("a://b").open()
    CapabilityMissing: resources.subscribe

A method that the revision does not have is not sent.
[legacy]
    >>> c.request("server/discover")
    CapabilityMissing: server/discover

A method that nobody knows may be sent.
[all]
    >>> c.request("acme/x", {"a": 1})
    --> ?1 acme/x {"a": 1}
    <-- ?1 {"b": 2}
    {"b": 2, ...}

Client.batch() sends several requests as one array in the revision that has batches.
[= 2025-03-26] spec: basic#batching
    >>> c.batch([("tools/call", {"name": "a"}), ("tools/call", {"name": "b"})])
    --> [{"jsonrpc": "2.0", "id": ?1, "method": "tools/call", "params": {"name": "a", ...}},
          {"jsonrpc": "2.0", "id": ?2, "method": "tools/call", "params": {"name": "b", ...}}]
    <-- [{"jsonrpc": "2.0", "id": ?2, "error": {"code": -32602, "message": "no b"}},
          {"jsonrpc": "2.0", "id": ?1, "result": {"content": []}}]
    [{"content": []}, ...]

Client.batch() sends separate requests where there are no batches, and returns answers in order.
[>= 2025-06-18]
    >>> c.batch([("tools/list", None), ("prompts/list", None)])
    --> ?1 tools/list
    --> ?2 prompts/list
    <-- ?2 {"prompts": []}
    <-- ?1 {"tools": []}
    [{"tools": [], ...}, {"prompts": [], ...}]
""")

    test_the_longest = client_conversations("""
However much progress there is, a request takes no longer than max_timeout.
[all]
    >>> c.call("x")
    --> ?1 tools/call {"name": "x", "arguments": {}, "_meta": {"progressToken": ?t, ...}}
    later 4 s
    <-- notifications/progress {"progressToken": ?t, "progress": 1}
    later 4 s
    <-- notifications/progress {"progressToken": ?t, "progress": 2}
    later 4 s
    --> notifications/cancelled {"requestId": ?1, "reason": "timeout"}
    RequestTimeout: did not answer tools/call within 10 seconds; max_timeout=N waits longer

max_timeout counts all rounds of a call together.
[modern]
    >>> c.call("x")
    --> ?1 tools/call {...}
    later 4 s
    <-- ?1 {"resultType": "input_required", "requestState": "a"}
    --> ?2 tools/call {...}
    later 4 s
    <-- ?2 {"resultType": "input_required", "requestState": "b"}
    --> ?3 tools/call {...}
    later 4 s
    --> notifications/cancelled {"requestId": ?3, ...}
    RequestTimeout: did not end tools/call within 10 seconds; max_timeout=N waits longer
""", timeout=5, max_timeout=10)

    async def test_a_list_without_end_is_cut(self):
        pages = itertools.count()

        def page(msg):
            return [result_of(msg, prompts=[], nextCursor=str(next(pages)))]

        async with scripted_client({"prompts/list": page}) as (c, _):
            with pytest.raises(m.LimitExceeded, match="more than 1000 pages"):
                await c.list_prompts()

    async def test_whatever_a_server_answers_is_a_value_or_an_error_of_ours(self):
        dice = rng("answers")
        keys = ["tools", "content", "contents", "messages", "completion", "values", "name", "type",
                "text", "blob", "uri", "structuredContent", "isError", "result", "nextCursor"]  # fmt: skip

        def anything(depth=0):
            kind = dice.randrange(8 if depth < 4 else 5)
            if kind < 5:
                return [None, True, 5, "text", "%"][kind]
            if kind == 5:
                return [anything(depth + 1) for _ in range(dice.randrange(3))]
            return {dice.choice(keys): anything(depth + 1) for _ in range(dice.randrange(4))}

        def react(msg):
            return [{"jsonrpc": "2.0", "id": msg["id"], "result": anything()}]

        methods = ("tools/list", "tools/call", "resources/read", "prompts/get", "completion/complete")
        async with scripted_client(dict.fromkeys(methods, react)) as (c, _):
            for _ in range(100):
                for work in (c.list_tools, lambda: c.call("x"), lambda: c.read("a://b"),
                             lambda: c.get_prompt("x"), lambda: c.complete("x", "y", "z")):  # fmt: skip
                    with contextlib.suppress(m.MCPError):
                        await work()
            assert await c.ping() < 20

    async def test_a_channel_that_cannot_be_read_is_closed(self):
        class Broken(ScriptedServer):
            async def read(self):
                if (items := await super().read()) == [b"break"]:
                    raise OSError("it is broken")
                return items

        end = Broken(greetings(V4))
        async with m.Client(end, revision=V4) as c:
            end.put("break")
            await until(lambda: end.closed)
            with pytest.raises(m.ConnectionClosed, match="cannot be read: .*it is broken"):
                await c.call("x")

    async def test_a_batch_is_sent_whole_or_not_at_all(self):
        async with scripted_client(revision=V2) as (c, fake):
            before = len(fake.sent)
            with pytest.raises(TypeError):
                await c.batch([("ping", None), ("acme/x", {"x": object()})])
            assert len(fake.sent) == before and await c.batch([]) == []
            assert await c.batch([("ping", None)] * 1000) == [{}] * 1000
            assert await c.batch([("ping", None)] * 1001) == [{}] * 1001  # one by one
            leap = time_machine()
            asked = asyncio.ensure_future(c.batch([("acme/a", None), ("acme/b", None)]))
            await until(lambda: "acme/b" in fake.methods())
            leap(21)
            with pytest.raises(m.RequestTimeout):
                await asked
            await until(lambda: fake.methods().count("notifications/cancelled") == 2)

    async def test_mistakes_of_the_program_are_told(self):
        with pytest.raises(ValueError, match="revision 'x' is not one of 2024-11-05"):
            m.Client(m.Server(), revision="x")
        with pytest.raises(TypeError, match="cannot connect to 5"):
            await m.Client(5).connect()
        c = m.Client(m.Server())
        for work in (c.call("x"), c.ping(), c.notify("x"), c.batch([("ping", None)]),
                     c.subscribe("a://b"), c.listen(tools=True)):  # fmt: skip
            with pytest.raises(m.ConnectionClosed, match="not connected yet"):
                await work
        await c.close()
        async with m.Client(demo()) as c:
            with pytest.raises(TypeError, match=r"^call\('add', {...}\), with all arguments in the dict: got array, not a dict$"):
                await c.call("add", [1])
            with pytest.raises(TypeError, match=r"progress= is called with \(done, total, message\), but takes"):
                await c.call("add", {"a": 1}, progress=lambda done: None)
            with pytest.raises(TypeError, match=r"no option 'raise_on_error'; write call\(\), which raises ToolError, or"):
                await c.call_tool("add", {"a": 1}, raise_on_error=False)
            with pytest.raises(ValueError, match="timeout=datetime.timedelta.*: must be a number >= 0"):
                await c.call("add", {"a": 1}, timeout=datetime.timedelta(seconds=3))
            with pytest.raises(ZeroDivisionError):
                async with m.Client(demo()):
                    raise ZeroDivisionError


FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer", "default": 7}}}
ONE_FIELD = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
ACTION = {"type": "object", "properties": {"action": {"type": "string"}}}
# What elicit= gives for a form, and what the server gets.
FORM_ANSWERS = [
    ({"ok": True}, FORM, {"action": "accept", "content": {"ok": True, "n": 7}}),
    (True, FORM, {"action": "accept", "content": {"n": 7}}),
    (True, ONE_FIELD, {"action": "accept", "content": {"ok": True}}),
    (None, FORM, {"action": "decline"}),
    (False, FORM, {"action": "decline"}),
    ("decline", FORM, {"action": "decline"}),
    ("cancel", FORM, {"action": "cancel"}),
    ({"action": "decline"}, FORM, {"action": "decline"}),
    ({"action": "cancel", "content": None}, FORM, {"action": "cancel"}),
    ({"action": "accept", "content": {"n": 3}}, FORM, {"action": "accept", "content": {"n": 3}}),
    ({"action": "decline"}, ACTION, {"action": "accept", "content": {"action": "decline"}}),
]


class TestQuestions:
    """What a server asks its client: forms, pages, texts of a model, roots."""

    test_legacy = client_conversations("""
A question is answered by the function that was given for it.
[legacy >= 2025-06-18] spec: client/elicitation
    <-- "q" elicitation/create {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    --> "q" {"action": "accept", "content": {"name": "Ann"}}

A request to open a page is answered by the function that was given for pages.
[= 2025-11-25] spec: client/elicitation#url-mode-elicitation-requests
    <-- 1 elicitation/create {"mode": "url", "message": "Pay", "url": "https://pay.example", "elicitationId": "e"}
    --> 1 {"action": "accept"}
    <-- 2 elicitation/create {"mode": "url", "message": "Pay"}
    --> 2 error -32602 "url"
    <-- 3 elicitation/create {"mode": "url", "message": "Pay", "url": "javascript://x/%0aalert(1)", "elicitationId": "e"}
    --> 3 error -32602 "only http and https"

A text that the sampling function returns becomes a message of the assistant.
[legacy] spec: client/sampling
    <-- 1 sampling/createMessage {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 5}
    --> 1 {"role": "assistant", "model": "mcp_lite", "content": {"type": "text", "text": "well"}, ...}

Tools in sampling are refused where they were not declared.
[= 2025-11-25] spec: client/sampling#capabilities
    <-- 1 sampling/createMessage {"messages": [], "maxTokens": 5, "tools": []}
    --> 1 error -32602 "does not sample with tools"

null in a question stands for what is absent.
[legacy]
    <-- 1 sampling/createMessage {"messages": [], "maxTokens": 5, "tools": null, "toolChoice": null, "systemPrompt": null}
    --> 1 {"role": "assistant", "model": "mcp_lite", "content": {"type": "text", "text": "well"}, ...}
    <-- 2 sampling/createMessage {"messages": [], "maxTokens": null}
    --> 2 error -32602 "maxTokens"

The client refuses methods that no server may ask it, and answers a ping.
[legacy]
    <-- 1 acme/x
    --> 1 error -32601 ""
    <-- 2 tools/list
    --> 2 error -32601 ""
    <-- 3 ping
    --> 3 {}

The client refuses a question with malformed parameters.
[legacy >= 2025-06-18]
    <-- 1 elicitation/create {"message": "x", "requestedSchema": {"properties": 5}}
    --> 1 error -32602 ""
    <-- 2 sampling/createMessage {"messages": 5, "maxTokens": 5}
    --> 2 error -32602 ""
    <-- 3 elicitation/create {"message": 5}
    --> 3 error -32602 ""

A field of a form that is no schema takes any answer.
[legacy >= 2025-06-18]
    <-- 1 elicitation/create {"message": "x", "requestedSchema": {"type": "object", "properties": {"name": true}}}
    --> 1 {"action": "accept", "content": {"name": "Ann"}}
""", elicit=lambda message, schema: {"name": "Ann"}, elicit_url=lambda message, url: True,
        sample=lambda params: "well")  # fmt: skip

    test_undeclared = client_conversations("""
The client refuses a question of a capability that it did not declare.
[legacy]
    <-- 1 sampling/createMessage {"messages": [], "maxTokens": 5}
    --> 1 ...
    <-- 2 roots/list
    --> 2 ...
""")
    test_unsupported = client_conversations("""
The client refuses a question of a capability that it declared without a function for it.
[legacy]
    <-- 1 sampling/createMessage {"messages": [], "maxTokens": 5}
    --> 1 error -32602 "does not support sampling"
    <-- 2 roots/list
    --> 2 error -32602 "does not support roots"
""", capabilities={"sampling": {}, "roots": {}})

    ROUNDS = """
Questions in a result are answered in the next round, which has the state as it came.
[modern] spec: basic/patterns/mrtr
    >>> c.call("x", {"a": 1})
    --> ?1 tools/call {"name": "x", "arguments": {"a": 1}}
    <-- ?1 {"resultType": "input_required", "requestState": "s", "inputRequests": {
          "k": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}},
          "m": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}}}
    --> ?2 tools/call {"name": "x", "arguments": {"a": 1}, "requestState": "s", "inputResponses": {
          "k": {"action": "accept", "content": {...}}, "m": {"role": "assistant", ...}}}
    <-- ?2 {"resultType": "input_required", "inputRequests": {
          "k2": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}}}
    --> ?3 tools/call {"name": "x", "arguments": {"a": 1}, "inputResponses": {"k2": {"action": "accept", ...}}}
    <-- ?3 {"content": []}
    None

The client makes the next round at once if a result has a requestState and asks nothing.
[modern]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "input_required", "requestState": "s"}
    --> ?2 tools/call {"name": "x", "arguments": {}, "requestState": "s", ...}
    <-- ?2 {"content": []}
    None

A question that cannot be answered ends the call.
[modern]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "input_required", "inputRequests": {"k": {"method": "acme/x", "params": {}}}}
    ProtocolError: asked something unknown

A result is an error if its resultType is unknown, or if it is input_required and asks nothing.
[modern] spec: basic#resulttype
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "strange", "content": []}
    ProtocolError: strange
    >>> c.call("x")
    --> ?2 tools/call {...}
    <-- ?2 {"resultType": "input_required"}
    ProtocolError: input_required

The client does not answer a request of a modern server, which may send none.
[modern] spec: basic/patterns
    <-- 1 elicitation/create {"message": "x", "requestedSchema": {"type": "object", "properties": {}}}
    quiet
"""
    test_rounds = client_conversations(ROUNDS, elicit=lambda *_: {}, sample=lambda params: "x")

    test_ask = client_conversations("""
A function given as ask= answers every question that a legacy server sends.
[legacy >= 2025-06-18]
    <-- 1 elicitation/create {"message": "x", "requestedSchema": {"type": "object", "properties": {}}}
    --> 1 {"action": "cancel"}

A function given as ask= answers every question in a result of a modern server.
[modern]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "input_required", "inputRequests": {
          "k": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}}}
    --> ?2 tools/call {"name": "x", "arguments": {}, "inputResponses": {"k": {"action": "cancel"}}}
    <-- ?2 {"content": []}
    None
""", ask=lambda method, params: {"action": "cancel"})

    test_wrong_ask = client_conversations("""
A legacy server gets an error for what a function given as ask= returns in place of an answer.
[legacy >= 2025-06-18]
    <-- 1 elicitation/create {"message": "x", "requestedSchema": {"type": "object", "properties": {}}}
    --> 1 error -32603 "what ask= returned is not valid: action: is required"
    <-- 2 sampling/createMessage {"messages": [], "maxTokens": 5}
    --> 2 error -32603 "what ask= returned is not valid: content: is required"

A modern server gets no such answer: the call fails.
[modern]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "input_required", "inputRequests": {
          "k": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}}}
    ToolError: what ask= returned is not valid: action: is required
""", ask=lambda method, params: {})

    @pytest.mark.parametrize("value, form, said", FORM_ANSWERS, ids=repr)
    def test_the_value_of_a_callback_becomes_the_answer_to_a_form(self, value, form, said):
        ask = {"message": "?", "requestedSchema": form}
        text = f"P.\n[2025-11-25]\n    <-- 1 elicitation/create {json.dumps(ask)}\n    --> 1 {json.dumps(said)}"
        run(with_client(read_conversation(text), "2025-11-25", {"elicit": lambda *_: value}))

    @pytest.mark.parametrize("count, end", [(16, "None"), (17, "ProtocolError: asked more than 16 times")])
    async def test_a_call_has_sixteen_rounds_at_most(self, count, end):
        lines = ["P.", "[modern]", '>>> c.call("x")', "--> ?0 tools/call {...}"]
        for n in range(count):
            lines += [f'<-- ?{n} {{"resultType": "input_required", "requestState": "s"}}']
            lines += [f"--> ?{n + 1} tools/call {{...}}"] if n < 16 else []
        lines += ['<-- ?16 {"content": []}'] if count == 16 else []
        text = "\n    ".join([*lines, end]).replace("    [modern]", "[modern]")
        await with_client(read_conversation(text), "2026-07-28", {})

    @pytest.mark.parametrize("count", [100, 101])
    async def test_a_hundred_questions_at_once_are_answered_and_no_more(self, count):
        question = {"method": "elicitation/create",
                    "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}  # fmt: skip
        asked = json.dumps({"resultType": "input_required",
                            "inputRequests": {str(n): question for n in range(count)}})  # fmt: skip
        answered = "--> ?2 tools/call {...}\n    <-- ?2 {\"content\": []}\n    None"
        end = answered if count == 100 else "ProtocolError: more than 100 questions at once"
        text = f'P.\n[modern]\n    >>> c.call("x")\n    --> ?1 tools/call {{...}}\n    <-- ?1 {asked}\n    {end}'
        await with_client(read_conversation(text), "2026-07-28", {"elicit": lambda *_: {}})

    @newest_revisions
    async def test_a_callback_that_fails_fails_its_question_and_nothing_else(self, revision, caplog):
        def elicit(message, schema):
            raise RuntimeError("callback broke")

        async with m.Client(demo(), revision=revision, elicit=elicit) as c:
            with pytest.raises((m.ToolError, RuntimeError)):
                await c.call("ask", {"text": "?"})
            assert await c.call("add", {"a": 1}) == 1

    @newest_revisions
    @pytest.mark.parametrize("http", [False, True])
    async def test_a_call_is_not_given_up_while_the_user_answers_its_question(self, revision, http):
        app, leap = m.Server("demo"), time_machine()

        @app.tool
        async def ask(ctx: m.Context) -> str:
            answer = await ctx.elicit("Go on?", bool)
            leap(45)  # the time begins anew with the answer
            await idle()
            return answer.action

        async def think(message, schema):
            for _ in range(3):
                leap(50)
                await idle()
            return True

        async with app.http(port=0) as s:
            async with m.Client(s.url if http else app, revision=revision, elicit=think) as c:
                assert await c.call("ask") == "accept"

    async def test_a_question_in_a_session_that_takes_too_long_names_its_timeout(self):
        app, never = m.Server("demo"), asyncio.Event()

        @app.tool
        async def ask(ctx: m.Context) -> str:
            with pytest.raises(m.RequestTimeout) as late:
                await ctx.elicit("?", int, timeout=0.05)
            return str(late.value)

        async with m.Client(app, revision=V4, elicit=lambda *_: never.wait()) as c:
            told = await c.call("ask")
        assert told.endswith(" did not answer elicitation/create within 0.05 seconds; timeout=N waits longer")

    async def test_a_timeout_that_max_timeout_shortens_names_max_timeout(self):
        async with scripted_client(max_timeout=5) as (c, lines):
            leap = time_machine()
            call = asyncio.ensure_future(c.call_tool("work"))
            await lines.take()
            leap(6)
            with pytest.raises(m.RequestTimeout, match="within 5 seconds; max_timeout=N waits longer"):
                await call

    async def test_a_question_holds_up_a_call_for_no_longer_than_max_timeout(self):
        never = asyncio.Event()
        async with scripted_client(revision=V4, timeout=5, max_timeout=12, roots=never.wait) as (c, lines):
            leap = time_machine()
            call = asyncio.ensure_future(c.call_tool("work"))
            await lines.take()
            lines.put(request_of(1, "roots/list"))
            await until(lambda: not lines.inbox.qsize())
            for _ in range(2):
                leap(5.5)
                await idle()
                assert not call.done()
            leap(2)
            with pytest.raises(m.RequestTimeout, match="within 12 seconds; max_timeout=N waits longer"):
                await call

    async def test_if_one_question_fails_the_other_prompts_end(self):
        ended, asked = [], asyncio.Event()

        async def elicit(message, schema):
            if message == "wait":
                try:
                    asked.set()
                    await asyncio.sleep(3600)
                finally:
                    ended.append(message)
            await asked.wait()
            raise RuntimeError("no person is here")

        app = m.Server()

        @app.tool
        async def two(ctx: m.Context) -> str:
            await asyncio.gather(ctx.elicit("wait", bool), ctx.elicit("fail", bool))

        async with m.Client(app, elicit=elicit) as c:
            with pytest.raises(RuntimeError, match="no person is here"):
                await c.call("two")
            await until(lambda: ended == ["wait"])

    @pytest.mark.parametrize("given", ["/tmp", {"uri": "file:///tmp", "name": "tmp"}], ids=str)
    async def test_a_single_folder_is_a_list_of_one(self, given):
        app = m.Server("demo")

        @app.tool
        async def folders(ctx: m.Context) -> list:
            return [root["uri"] for root in await ctx.roots()]

        async with m.Client(app, roots=given) as c:
            wanted = pathlib.Path("/tmp").absolute().as_uri() if given == "/tmp" else "file:///tmp"
            assert await c.call("folders") == [wanted]
            await c.roots_changed("/srv")
            assert await c.call("folders") == [pathlib.Path("/srv").absolute().as_uri()]

    async def test_the_result_of_a_model_becomes_content_as_that_of_a_tool_does(self):
        async with m.Client(demo(), sample=lambda params: {"total": 5}) as c:
            assert await c.call("model", {"text": "?"}) == '{"total":5}'

    @pytest.mark.parametrize("revision", DATES)
    async def test_capabilities_follow_from_the_callbacks(self, revision):
        everything = {"roots": lambda: [], "sample": print, "elicit": print, "elicit_url": print,
                      "capabilities": {"experimental": {"a": {}}, "sampling": {"tools": {}}}}  # fmt: skip
        seen = []

        app = m.Server()

        @app.tool(structured=False)
        async def look(ctx: m.Context):
            seen.append(ctx.client_capabilities)

        for options in ({}, everything):
            async with m.Client(app, revision=revision, **options) as c:
                await c.call("look")
        modern = revision in MODERN_DATES
        extension = TASKS_EXTENSION if modern else {}
        assert seen[0] == extension
        assert seen[1] == {
            "roots": {} if modern else {"listChanged": True}, "sampling": {"tools": {}},
            "elicitation": {"form": {}, "url": {}}, "experimental": {"a": {}}, **extension,
        }  # fmt: skip


class TestFollowing:
    """A call that becomes a task, in the modern era."""

    test_it_goes_as_written = client_conversations("""
The client polls a task until it has ended, and the task's result is the result of the call.
[modern]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "task", "taskId": "t1", "status": "working", "pollIntervalMs": 1}
    --> ?2 tasks/get {"taskId": "t1"}
    <-- ?2 {"taskId": "t1", "status": "working", "pollIntervalMs": 1}
    --> ?3 tasks/get {"taskId": "t1"}
    <-- ?3 {"taskId": "t1", "status": "completed", "result": {"content": [{"type": "text", "text": "a"}]}}
    "a"

A task that failed fails the call.
[modern]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "task", "taskId": "t1", "status": "working", "pollIntervalMs": 1}
    --> ?2 tasks/get {"taskId": "t1"}
    <-- ?2 {"taskId": "t1", "status": "failed", "error": {"code": -32000, "message": "no disk"}}
    RemoteError: no disk

Each question of a task is answered once.
[modern]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "task", "taskId": "t1", "status": "working", "pollIntervalMs": 1}
    --> ?2 tasks/get {"taskId": "t1"}
    <-- ?2 {"taskId": "t1", "status": "input_required", "pollIntervalMs": 1, "inputRequests": {
          "k": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}}}
    --> ?3 tasks/update {"taskId": "t1", "inputResponses": {"k": {"action": "accept", "content": {}}}}
    <-- ?3 {}
    --> ?4 tasks/get {"taskId": "t1"}
    <-- ?4 {"taskId": "t1", "status": "input_required", "pollIntervalMs": 1, "inputRequests": {
          "k": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}}}
    --> ?5 tasks/get {"taskId": "t1"}
    <-- ?5 {"taskId": "t1", "status": "completed", "result": {"content": []}}
    None

The client cancels a task when its caller is cancelled.
[modern]
    >>> asyncio.wait_for(c.call("x"), 5)
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "task", "taskId": "t1", "status": "working", "pollIntervalMs": 30000}
    later 6 s
    --> ?2 tasks/cancel {"taskId": "t1"}
    <-- ?2 {}
    TimeoutError:

A task as the answer to another method than tools/call is an error.
[modern]
    >>> c.get_prompt("x")
    --> ?1 prompts/get {...}
    <-- ?1 {"resultType": "task", "taskId": "t1", "status": "working"}
    ProtocolError: answered prompts/get with a 'task' result
""", elicit=lambda *_: {})

    test_too_many_questions = client_conversations("""
A task lists 100 questions at most, with those that are answered.
[modern]
    >>> c.call("x")
    --> ?1 tools/call {...}
    <-- ?1 {"resultType": "task", "taskId": "t1", "status": "working", "pollIntervalMs": 1}
    --> ?2 tasks/get {"taskId": "t1"}
    <-- ?2 {"taskId": "t1", "status": "input_required", "pollIntervalMs": 1, "inputRequests": SIXTY}
    --> ?3 tasks/update {...}
    <-- ?3 {}
    --> ?4 tasks/get {"taskId": "t1"}
    <-- ?4 {"taskId": "t1", "status": "input_required", "pollIntervalMs": 1, "inputRequests": TWICE}
    --> ?5 tasks/cancel {"taskId": "t1"}
    <-- ?5 {}
    ProtocolError: asked more than 100 questions at once
""".replace("SIXTY", json.dumps(dict.fromkeys(map(str, range(60)), {"method": "roots/list"})))
   .replace("TWICE", json.dumps(dict.fromkeys(map(str, range(120)), {"method": "roots/list"}))), roots=[])


class TestNews:
    """What a server says unasked, and who is told."""

    test_subscriptions = client_conversations("""
A subscription yields the updates of its resource, and of what lies below it, until it is closed.
[legacy] spec: server/resources#subscriptions
    >>> (s := c.subscribe("note://a")).open()
    --> ?1 resources/subscribe {"uri": "note://a"}
    <-- ?1 {}
    ...
    <-- notifications/resources/updated {"uri": "note://b"}
    <-- notifications/resources/updated {"uri": "note://a/part"}
    >>> s.__anext__()
    {"uri": "note://a/part"}
    >>> s.close()
    --> ?2 resources/unsubscribe {"uri": "note://a"}
    <-- ?2 {}
    None
    >>> s.__anext__()
    StopAsyncIteration:

A subscription of the modern era is a request that stays open, and its updates have its id.
[modern] spec: basic/patterns/subscriptions
    >>> (s := c.subscribe("note://a")).open()
    --> ?s subscriptions/listen {"notifications": {"resourceSubscriptions": ["note://a"]}}
    <-- notifications/subscriptions/acknowledged {"_meta": {"io.modelcontextprotocol/subscriptionId": ?s},
          "notifications": {"resourceSubscriptions": ["note://a"]}}
    ...
    <-- notifications/resources/updated {"_meta": {"io.modelcontextprotocol/subscriptionId": "other"}, "uri": "note://a"}
    <-- notifications/resources/updated {"_meta": {"io.modelcontextprotocol/subscriptionId": ?s}, "uri": "note://a/part"}
    >>> s.__anext__()
    {"uri": "note://a/part", ...}
    >>> s.close()
    --> notifications/cancelled {"requestId": ?s, ...}
    None

A subscription that is refused is an error, and forgotten.
[modern]
    >>> c.subscribe("note://a").open()
    --> ?1 subscriptions/listen {...}
    <-- ?1 error -32602 "no such note"
    RemoteError: no such note

A subscription that the server does not acknowledge is an error, too, and is cancelled.
[modern]
    >>> c.subscribe("note://a").open()
    --> ?1 subscriptions/listen {...}
    later 60 s
    --> notifications/cancelled {"requestId": ?1, ...}
    RequestTimeout: did not acknowledge a subscription within 60 seconds; timeout=N waits longer

A subscription that is refused for now is an error, too, if it was never open.
[modern]
    >>> c.listen(tools=True).open()
    --> ?1 subscriptions/listen {...}
    <-- ?1 error 503 "too busy"
    RemoteError: too busy

A subscription that the server ends on a pipe is not opened again.
[modern] spec: basic/patterns/subscriptions#graceful-closure
    >>> (s := c.listen(tools=True)).open()
    --> ?s subscriptions/listen {"notifications": {"toolsListChanged": true}}
    <-- notifications/subscriptions/acknowledged {"_meta": {"io.modelcontextprotocol/subscriptionId": ?s},
          "notifications": {"toolsListChanged": true}}
    ...
    <-- ?s {}
    later 60 s
    >>> s.__anext__()
    StopAsyncIteration:

The server may end a subscription.
[modern] spec: basic/patterns/cancellation
    >>> (s := c.listen(tools=True)).open()
    --> ?s subscriptions/listen {"notifications": {"toolsListChanged": true}}
    <-- notifications/subscriptions/acknowledged {"_meta": {"io.modelcontextprotocol/subscriptionId": ?s},
          "notifications": {"toolsListChanged": true}}
    ...
    <-- notifications/cancelled {"requestId": ?s, "reason": "enough"}
    >>> s.__anext__()
    StopAsyncIteration:

The client subscribes again where a server was too busy, and reports everything as changed meanwhile.
[modern]
    >>> (s := c.listen(tools=True)).open()
    --> ?s subscriptions/listen {"notifications": {"toolsListChanged": true}}
    <-- notifications/subscriptions/acknowledged {"_meta": {"io.modelcontextprotocol/subscriptionId": ?s},
          "notifications": {"toolsListChanged": true}}
    ...
    <-- ?s error 503 "shutting down"
    later 3 s
    --> ?t subscriptions/listen {"notifications": {"toolsListChanged": true}}
    <-- notifications/subscriptions/acknowledged {"_meta": {"io.modelcontextprotocol/subscriptionId": ?t},
          "notifications": {"toolsListChanged": true}}
    >>> s.__anext__()
    {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": ?t}}}

A subscription ends with its connection.
[legacy]
    >>> (s := c.subscribe("note://a")).open()
    --> ?1 resources/subscribe {...}
    <-- ?1 {}
    ...
    cut
    >>> s.__anext__()
    StopAsyncIteration:
""")

    async def test_a_function_hears_whatever_it_is_told_to_hear(self):
        heard = asyncio.Queue()
        async with scripted_client(log=lambda *args: heard.put_nowait(args)) as (c, fake):
            c.on("notifications/acme")(heard.put_nowait)
            log = {"level": "info", "data": {"a": 1}, "logger": "db"}
            fake.put({"jsonrpc": "2.0", "method": "notifications/message", "params": log},
                     notification("notifications/acme", x=1))  # fmt: skip
            assert [await heard.get(), await heard.get()] == [("info", {"a": 1}, "db"), {"x": 1}]

    async def test_two_who_want_the_same_both_ask_and_the_last_one_ends_it(self):
        heard = []
        async with scripted_client({"resources/subscribe": {}, "resources/unsubscribe": {}}) as (c, fake):
            one = await c.subscribe("a://b", heard.append)
            two = await c.subscribe("a://b", heard.append)
            fake.put(notification("notifications/resources/updated", uri="a://b"))
            await until(lambda: len(heard) == 2)
            await one.close()
            assert "resources/unsubscribe" not in fake.methods()
            await two.close()
            assert fake.methods().count("resources/subscribe") == 2
            assert fake.methods().count("resources/unsubscribe") == 1

    async def test_a_subscription_that_was_refused_does_not_look_open(self):
        def refuse(msg):
            return [{"jsonrpc": "2.0", "id": msg["id"], "error": {"code": -32602, "message": "no"}}]

        async with scripted_client({"resources/subscribe": refuse}) as (c, _):
            subscription = c.subscribe("a://b")
            for _ in range(2):
                with pytest.raises(m.RemoteError):
                    await subscription
            with pytest.raises(m.RemoteError):
                await c.subscribe("a://b")

    async def test_a_slow_reader_loses_the_oldest_updates_and_no_memory(self):
        async with scripted_client({"resources/subscribe": {}, "resources/unsubscribe": {}}) as (c, fake):
            updates = await c.subscribe("a://b")
            for n in range(1001):
                params = {"uri": "a://b", "n": n}
                fake.put({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
            await c.ping()
            assert (await updates.__anext__())["n"] == 1

    @pytest.mark.parametrize("dies", [True, False])
    async def test_who_hears_of_changes_hears_as_well_when_the_server_is_gone(self, dies, caplog):
        c = child(RAW + "serve(lambda msg: os._exit(3))", on_tools_changed=lambda: None)
        await c.connect()
        if dies:
            with pytest.raises(m.ConnectionClosed):
                await c.call("x")
            await until(lambda: caplog.messages)
        await c.close()
        assert len(caplog.messages) == dies
        assert not dies or re.fullmatch("no more announcements: .* exited with status 3", caplog.messages[0])

    async def test_a_listener_that_raises_is_logged_and_harms_nothing(self, caplog):
        async with scripted_client() as (c, fake):
            @c.on("notifications/acme")
            async def fail(params):
                raise RuntimeError("callback broke")

            fake.put(notification("notifications/acme"))
            await c.ping()
        assert "callback broke" in caplog.text

    @newest_revisions
    async def test_close_works_from_any_task_from_a_callback_and_twice(self, revision):
        async def close(level, data, logger):
            await c.close()

        async with m.Client(demo(), log=close, revision=revision) as c:
            call = asyncio.ensure_future(c.call("wait"))
            await idle()
            with contextlib.suppress(m.ConnectionClosed):
                await c.call("say", {"level": "error", "text": "now"})
            with pytest.raises(m.ConnectionClosed):
                await call
            await asyncio.gather(c.close(), asyncio.ensure_future(c.close()))
            assert c.lost is not None

    async def test_a_server_in_memory_gets_no_period_of_grace(self):
        """When its client is gone, nobody can hear an answer."""
        app = m.Server()

        @app.tool
        async def stay() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)
            await asyncio.sleep(3600)

        async with m.Client(app) as c:
            call = asyncio.ensure_future(c.call("stay"))
            await idle()
            began = time.monotonic()
        assert time.monotonic() - began < 1.9
        with pytest.raises(m.ConnectionClosed):
            await call


########################
# T28. Child processes
########################

# A server in a process of its own, which needs no mcp_lite and no time to start. It speaks one era.
RAW = """
import json, os, signal, subprocess, sys, time
def say(msg_id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": msg_id, "result": result}), flush=True)
def text(msg_id, value):
    say(msg_id, {"content": [{"type": "text", "text": value}]})
hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
         "serverInfo": {"name": "raw", "version": "1"}}
def serve(react):
    for line in sys.stdin:
        msg = json.loads(line)
        if msg["method"] == "initialize":
            say(msg["id"], hello)
        elif "id" in msg:
            react(msg)
"""
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
PID = RAW + "serve(lambda msg: text(msg['id'], str(os.getpid())))\n"


def child(code, **options):
    """Return a client of the legacy era whose server is a Python process."""
    options = {"revision": "2025-11-25", "stderr": lambda line: None, "exit_seconds": 20, **options}
    return m.Client([sys.executable, "-c", code], **options)


async def failure(code, **options):
    """Return the text of the error with which a client fails."""
    c = child(code, **options)
    with pytest.raises(m.MCPError) as caught:
        await c.connect()
        await c.call("x")
    await c.close()
    return str(caught.value)


class TestChild:
    """The client's end: a child process, from its start to its end."""

    @pytest.mark.parametrize("revision", [None, *DATES])
    async def test_a_client_starts_a_server_and_calls_it(self, revision, tmp_path):
        path = tmp_path / "server.py"
        path.write_text(SERVER + "app.run()")
        targets = [str(path), path, [sys.executable, str(path)], f"{sys.executable} {shlex.quote(str(path))}"]
        for target in targets if revision is None else [path]:
            async with m.Client(target, revision=revision) as c:
                assert str(await c.call("add", {"a": 1, "b": 2})) == "3"
                assert c.revision == (revision or "2026-07-28")

    def test_it_works_in_any_thread(self):
        async def main():
            async with child(PID) as c:
                return await c.call("x")

        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(asyncio.run(main(), debug=True)))
        thread.start()
        thread.join(20)
        assert outcome and outcome[0].isdigit()

    async def test_a_server_may_colour_its_messages(self):
        coloured = RAW.replace("print(json.dumps(", "print('\\ufeff\\x1b[32m' + json.dumps(").replace("}), flush", "}) + '\\x1b[0m', flush")
        code = "import sys; sys.stdout.reconfigure(encoding='utf-8')\n" + coloured + "serve(lambda msg: text(msg['id'], 'green'))"
        async with child(code) as c:
            assert await c.call("any") == "green"

    async def test_ten_megabytes_go_there_and_back(self):
        text = "x" * 5_000_000
        async with child(RAW + "serve(lambda msg: text(msg['id'], msg['params']['arguments']['t']))") as c:
            assert await c.call("x", {"t": text}) == text

    async def test_large_calls_at_once_wait_their_turn(self):
        """Before 3.10.6 asyncio lets one task wait for a writer, and no other."""
        async with child(RAW + "serve(lambda msg: text(msg['id'], str(len(msg['params']['arguments']['t']))))") as c:
            calls = (c.call("x", {"t": "x" * 500_000}) for _ in range(10))
            assert await asyncio.gather(*calls) == ["500000"] * 10

    async def test_a_call_that_was_given_up_before_it_was_sent_is_not_cancelled(self, tmp_path):
        """spec: basic/patterns/cancellation#behavior-requirements -- the request was issued before"""
        reads_on = tmp_path / "reads on"
        code = RAW + f"""
asked = []
for line in sys.stdin:
    msg = json.loads(line)
    if msg["method"] == "initialize":
        say(msg["id"], hello)
    elif msg["method"] == "notifications/cancelled":
        asked.remove(msg["params"]["requestId"])
    elif msg["method"] == "tools/call":
        if msg["params"]["name"] == "asked":
            text(msg["id"], str(asked))
        asked.append(msg["id"])
        while not os.path.exists({str(reads_on)!r}):
            time.sleep(0.01)
"""
        async with child(code) as c:
            calls = [c.call("x", {"t": "x" * 200_000}, timeout=0.5) for _ in range(6)]
            errors = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(error) for error in errors} == {m.RequestTimeout}
            reads_on.touch()
            assert await c.call("asked") == "[]"

    async def test_a_thousand_calls_at_once_are_answered(self):
        async with child(PID) as c:
            assert len({*await asyncio.gather(*(c.call("x") for _ in range(1000)))}) == 1

    async def test_an_answer_over_the_limit_fails_its_request_and_no_other(self):
        code = RAW + "serve(lambda msg: text(msg['id'], 'x' * msg['params']['arguments']['n']))"
        async with child(code, max_message_bytes=1000) as c:
            with pytest.raises(m.LimitExceeded, match="1000 bytes"):
                await c.call("x", {"n": 1000})
            assert await c.call("x", {"n": 5}) == "xxxxx"

    @pytest.mark.parametrize(
        "code, text",
        [
            ("", "exited with status 0"),
            ("import os; os._exit(3)", "exited with status 3"),
            ("exit('no such file: x')", 'exited with status 1; its last words: "no such file: x"'),
            ("import os; os.kill(os.getpid(), 9)", "was killed by signal 9" if os.name != "nt" else "exited with status 9"),
            ("print('usage: x'); exit(2)", 'exited with status 2; it printed to stdout: "usage: x"'),
            ("import sys; sys.stderr.buffer.write(b'caf\\xe9'); exit(5)", 'its last words: "caf\\xe9"'),
        ],
    )
    async def test_a_server_that_ends_is_explained(self, code, text):
        assert text in await failure(code)

    @pytest.mark.skipif(os.name != "nt", reason="batch files are of Windows")
    async def test_arguments_of_a_batch_file_reach_it_as_they_are(self, tmp_path):
        (tmp_path / "server.py").write_text(RAW + "serve(lambda msg: text(msg['id'], json.dumps(sys.argv[1:])))")
        batch = tmp_path / "a server.cmd"
        batch.write_text(f'@"{sys.executable}" "{tmp_path / "server.py"}" %*\r\n')
        words = ["http://h/?a=1&b=2", "a b", "x|more", "^", "<in>out", '{"a": 1}', "", "!PATH!", "(x)"]
        words += ["C:\\", '\\\\a\\"b\\', "c"]
        async with m.Client([str(batch), *words], revision=V4) as c:
            assert json.loads(await c.call("x")) == words
        for bad in ("%PATH%", "a\nb"):
            with pytest.raises(m.ConnectionClosed, match="% or newline"):
                await m.Client([str(batch), bad]).connect()

    @pytest.mark.skipif(os.name != "nt", reason="elsewhere, Path is not PATH")
    async def test_a_program_is_found_on_the_path_however_windows_spells_that(self, tmp_path):
        (tmp_path / "server.py").write_text(PID)
        (tmp_path / "my-server.cmd").write_text(f'@"{sys.executable}" "{tmp_path / "server.py"}"\r\n')
        async with m.Client("my-server", env={"Path": str(tmp_path)}, revision=V4) as c:
            assert int(await c.call("x"))

    def test_a_server_may_end_while_we_write_on_uvloop(self):
        uvloop = pytest.importorskip("uvloop")

        async def main():
            async with child(RAW + "serve(lambda msg: os._exit(0))") as c:
                calls = (c.call("x", {"pad": "y" * 100_000}) for _ in range(30))
                return {type(each) for each in await asyncio.gather(*calls, return_exceptions=True)}

        assert uvloop.run(main()) == {m.ConnectionClosed}

    async def test_the_last_response_of_a_server_arrives_whole_although_it_ends_while_we_write(self):
        code = RAW + "serve(lambda msg: (text(msg['id'], 'x' * 3_000_000), os._exit(0)))"
        async with child(code) as c:
            first, *others = (c.call("x", {"pad": "y" * 100_000}) for _ in range(30))
            first, *others = await asyncio.gather(first, *others, return_exceptions=True)
            assert first == "x" * 3_000_000
            assert {type(each) for each in others} == {m.ConnectionClosed}

    @pytest.mark.parametrize("dies", [True, False])
    @pytest.mark.parametrize("how, last", [
        ("sys.exit(0)", "status 0"),
        ("sys.exit('what?')", 'its last words: "what\\?"'),
        ("sys.exit('cannot serve HTTP, by the way: call app.run')", 'by the way: call app.run"'),
        ("raise RuntimeError('before initialization')", 'RuntimeError: before initialization"'),  # as an SDK says
        ("sys.exit('ExpectedInitializeRequest')", 'ExpectedInitializeRequest"'),  # as another says
    ])  # fmt: skip
    async def test_a_legacy_server_that_ends_at_the_first_question_is_started_once_more(
        self, tmp_path, dies, how, last
    ):
        log = tmp_path / "starts"
        code = f"open({str(log)!r}, 'a').write('x')\n" + RAW
        code += f"sys.stdin.readline()\n{how}" if dies else (
            f"line = sys.stdin.readline()\nif 'discover' in line: {how}\n"
            "say(json.loads(line)['id'], hello)\nserve(lambda msg: text(msg['id'], 'old'))")  # fmt: skip
        c = child(code, revision=None)
        if dies:
            with pytest.raises(m.ConnectionClosed, match=f"exited with (?s:.*){last}$"):
                await c.connect()
        else:
            async with c:
                assert (await c.call("x"), c.revision) == ("old", "2025-11-25")
        assert log.read_text() == "xx"

    @pytest.mark.parametrize("how", ["raise KeyError('DATABASE')", "sys.exit(2)", "raise KeyError('Initializing ...')"])
    async def test_a_command_that_would_fail_again_is_not_started_again(self, tmp_path, how):
        code = f"import sys\nopen({str(tmp_path / 'starts')!r}, 'a').write('x')\n{how}"
        with pytest.raises(m.ConnectionClosed, match="exited with status"):
            await child(code, revision=None).connect()
        assert (tmp_path / "starts").read_text() == "x"

    async def test_a_server_that_ends_is_not_started_once_more_where_a_revision_was_chosen(self, tmp_path):
        code = f"open({str(tmp_path / 'starts')!r}, 'a').write('x')\n" + RAW + "sys.stdin.readline()\nsys.exit('what?')"
        for revision in ("2025-11-25", "2026-07-28"):
            (tmp_path / "starts").write_text("")
            with pytest.raises(m.ConnectionClosed, match='its last words: "what\\?"'):
                await child(code, revision=revision).connect()
            assert (tmp_path / "starts").read_text() == "x"

    async def test_a_server_that_dies_in_a_call_fails_the_call_with_its_last_words(self):
        code = RAW + "serve(lambda msg: sys.exit('out of memory'))"
        text = await failure(code)
        assert text.endswith('exited with status 1; its last words: "out of memory"')

    @posix
    async def test_a_server_that_dies_is_noticed_although_its_own_child_holds_the_pipes(self):
        code = RAW + "serve(lambda msg: (subprocess.Popen(['sleep', '60']), os._exit(7)))"
        assert "exited with status 7" in await failure(code)

    async def test_lines_on_stdout_that_are_not_messages_are_skipped_with_one_warning(self, caplog):
        printed = "[INFO] listening\n\n{'a': 1}\n[]\n5\n\ufeff{}"
        async with child(f"print({ascii(printed)})\n" + PID, env={"PYTHONIOENCODING": "utf-8"}) as c:
            assert (await c.call("x")).isdigit()
        said = [record for record in caplog.records if "listening" in record.getMessage()]
        assert len(said) == 1 and len(caplog.records) == 1

    async def test_the_stderr_of_a_server_that_never_answers_is_quoted(self):
        c = child("print('listening on port 80', flush=True); import time; time.sleep(60)",
                  exit_seconds=0, timeout=5)  # fmt: skip
        leap = time_machine()
        connecting = asyncio.ensure_future(c.connect())
        await eventually(lambda: c.transport and "listening" in c.transport.explain())
        leap(6)
        with pytest.raises(m.RequestTimeout, match='it printed to stdout: "listening on port 80"'):
            await connecting

    def test_stderr_goes_to_ours_to_a_function_or_nowhere(self, capsys):
        code = "import sys; sys.stderr.write('one\\n\\ntwo\\n' + 'x' * 33000 + '\\n2')"
        lines = []
        run(failure(code, stderr=lines.append))
        assert lines == ["one", "", "two", "x" * 32768, "x" * 232, "2"]  # pieces of 32 KiB at most
        assert capsys.readouterr().err == ""
        run(failure("import sys; sys.stderr.write('one\\n\\ntwo')", stderr=None))
        assert capsys.readouterr().err == "one\n\ntwo\n"

    @posix
    def test_without_a_stderr_of_ours_its_lines_go_nowhere(self):
        server = "import sys; print('noise', file=sys.stderr)\n" + RUN
        program = f"""{PRELUDE}
async def main():
    async with m.Client([sys.executable, "-c", {server!r}]) as c:
        print(await c.call("add", {{"a": 1}}))
asyncio.run(main())"""
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", program]
        assert subprocess.run(command, stdout=subprocess.PIPE, timeout=20).stdout == b"1\n"

    async def test_a_stderr_function_that_fails_is_logged_and_the_server_goes_on(self, caplog):
        noise = "import sys, time; sys.stderr.write('what serves http: one\\n' * 20); time.sleep(0.1)\n"
        async with child(noise + PID, stderr=[].pop) as c:
            await c.call("x")
        assert "stderr" in caplog.text

    async def test_the_environment_is_a_safe_minimum_and_env(self, monkeypatch):
        for name, value in {"SECRET_TOKEN": "x", "LANG": "C",
                            "HTTPS_PROXY": "http://me:secret@proxy:3128"}.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        code = RAW + "serve(lambda msg: text(msg['id'], json.dumps(dict(os.environ))))"

        async def environment(**options):
            async with child(code, **options) as c:
                return json.loads(await c.call("x"))

        monkeypatch.setenv("PYTHONUTF8", "1")
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "x")
        seen = await environment(env={"MINE": "1"})
        assert (seen["PYTHONUTF8"], seen["PYTHONDONTWRITEBYTECODE"]) == ("1", "x")
        assert (seen["MINE"], seen["PATH"], seen["LANG"]) == ("1", os.environ["PATH"], "C")
        assert "SECRET_TOKEN" not in seen
        assert "secret" not in seen.get("HTTPS_PROXY", "")
        assert (await environment(env={"LANG": "D"}))["LANG"] == "D"

    async def test_a_legacy_server_that_dies_of_the_first_request_is_started_again(self):
        code = RAW + """
answers = {"initialize": hello, "tools/list": {"tools": []}}
for line in sys.stdin:
    msg = json.loads(line)
    if "id" in msg:
        say(msg["id"], answers[msg["method"]])
"""
        command = [sys.executable, "-c", code]
        for target in (command, m.StdioTransport(command, stderr=[].append)):
            async with m.Client(target) as c:
                for _ in range(3):  # the end of the first process is not that of the second
                    assert (c.revision, await c.list_tools()) == ("2025-11-25", [])
                    await asyncio.sleep(0.2)
                process = c.transport.process
            assert process.poll() is not None

    async def test_the_folder_is_chosen_by_cwd(self, tmp_path):
        async with child(RAW + "serve(lambda msg: text(msg['id'], os.getcwd()))", cwd=tmp_path) as c:
            assert await c.call("x") == str(tmp_path.resolve())

    @pytest.mark.parametrize(
        "target, options, text",
        [
            (["no-such-program-anywhere"], {}, "cannot start 'no-such-program-anywhere'"),
            ("no-such-program-anywhere --fast", {}, "cannot start 'no-such-program-anywhere'"),
            ("no_such_file.py", {}, "file .*no_such_file.py.*No such file"),
            pytest.param([sys.executable, "-c", ""], {"cwd": "/no/such/folder"}, "/no/such/folder", marks=posix),
            ([__file__ + "/x"], {}, "cannot start"),
            ([sys.executable], {"cwd": "no such folder"}, "no such folder"),
        ],
    )  # fmt: skip
    async def test_a_command_that_cannot_be_started_is_reported(self, target, options, text):
        with pytest.raises(m.ConnectionClosed, match=text):
            await m.Client(target, **options).connect()

    @pytest.mark.parametrize(
        "program, hint",
        [
            (["127.0.0.1:80/mcp"], "; a URL begins with http:// or https://"),
            ([str(HERE / "absent" / "program")], ""),
            ([str(HERE / "absent.js")], "; node starts .js files"),
        ],
    )
    async def test_the_error_of_a_program_ends_with_a_hint_that_fits(self, program, hint):
        with pytest.raises(m.ConnectionClosed) as raised:
            await m.Client(program).connect()
        reason = str(raised.value.__cause__)
        assert str(raised.value).endswith(f"{reason}{hint}")

    def test_an_option_that_is_unknown_is_refused_at_once(self):
        for target in (["server"], m.Server(), "https://127.0.0.1/mcp"):
            with pytest.raises(TypeError, match=r"Client\(.*\): no option 'elict'; did you mean elicit?"):
                m.Client(target, elict=print)
        with pytest.raises(TypeError, match=r"Client\('https://127.0.0.1/mcp'\): no option 'cwd'; available: .*, headers, token, ssl, auth$"):
            m.Client("https://127.0.0.1/mcp", cwd="/")
        with pytest.raises(ValueError, match="token= must be a str of visible ASCII"):
            m.Client("https://127.0.0.1/mcp", token="Bearer x")
        for token in (123, b"secret", [b"secret"], {1: "ann"}):
            for make, target in (m.Client, "https://127.0.0.1/mcp"), (m.ASGIApp, m.Server()):
                with pytest.raises(ValueError, match="token= must be a str of visible ASCII"):
                    make(target, token=token)

    async def test_an_option_that_is_none_is_as_if_it_were_not_passed(self):
        options = dict.fromkeys(["token", "auth", "headers", "ssl", "env", "cwd", "stderr", "exit_seconds"])
        m.Client(m.Server(), **options)
        m.Client("https://127.0.0.1/mcp", **options)
        async with child(PID, **options) as c:
            assert (await c.call("x")).isdigit()

    @pytest.mark.parametrize("target", ["", []])
    async def test_an_empty_command_is_refused(self, target):
        with pytest.raises((ValueError, TypeError), match="empty|cannot connect"):
            await m.Client(target).connect()

    @pytest.mark.skipif(sys.version_info < (3, 11, 4), reason="Popen itself loses pipes there")
    async def test_without_descriptors_nothing_is_started_and_nothing_is_left(self):
        resource = pytest.importorskip("resource")
        before = (open_descriptors(), child_processes(), lasting_threads())
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

        os.close(free := os.dup(0))
        for room in range(8):
            resource.setrlimit(resource.RLIMIT_NOFILE, (free + room, hard))
            try:
                with contextlib.suppress(m.MCPError, OSError):
                    async with child(PID):
                        pass
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        check_nothing_left(before)


class TestChildEnds:
    """spec: basic/transports/stdio#shutdown -- close its input, wait, SIGTERM, SIGKILL"""

    async def last_line(self, code, **options):
        """Connect, call, close; return what the call said, and the last line on stderr."""
        lines = []
        async with child(code, stderr=lines.append, **options) as c:
            pid = int(await c.call("x"))
        wait_until(lambda: not is_alive(pid))
        return lines[-1:]

    async def test_a_server_ends_when_its_input_is_closed(self):
        assert await self.last_line(PID + "sys.exit('good bye')") == ["good bye"]

    async def test_a_server_that_still_writes_is_not_blocked(self):
        code = PID + "print('x' * 1_000_000, flush=True); sys.exit('good bye')"
        assert await self.last_line(code) == ["good bye"]

    @posix
    async def test_a_server_that_stays_gets_sigterm(self):
        code = "import signal, sys\nsignal.signal(15, lambda *_: sys.exit('got SIGTERM'))\n" + PID
        assert await self.last_line(code + "time.sleep(60)", exit_seconds=1) == ["got SIGTERM"]

    async def test_a_child_that_never_sent_a_message_is_not_waited_for(self):
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        with pytest.raises(m.RequestTimeout):
            await m.Client(command, timeout=0.2, exit_seconds=600).connect()

    async def test_a_server_that_ignores_sigterm_is_killed(self):
        code = PID.replace("hello =", STUBBORN + "hello =") + "while True: time.sleep(60)"
        assert await self.last_line(code, exit_seconds=0.01) == []

    @pytest.mark.parametrize("steps", range(8))
    async def test_closing_a_client_ends_its_connecting(self, steps):
        c = child("import sys; sys.stdin.read()")
        connecting = asyncio.ensure_future(c.connect())
        for _ in range(steps):
            await asyncio.sleep(0)
        await c.close()
        with pytest.raises((m.ConnectionClosed, RuntimeError), match="has closed the connection|connects once"):
            await connecting
        assert c.transport is None or c.transport.process is None or c.transport.process.poll() is not None

    @pytest.mark.parametrize("wait", ["", "p.wait()"])
    async def test_the_processes_that_a_server_has_started_are_ended_too(self, wait):
        """An npx or a shell in between dies at once, and the server it started would live on."""
        code = RAW + "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        code += f"serve(lambda msg: text(msg['id'], str(p.pid)))\n{wait}"
        await self.last_line(code, exit_seconds=0.1)

    async def test_close_is_finished_although_its_caller_is_cancelled(self):
        c = child(PID)
        await c.connect()
        pid = int(await c.call("x"))
        closing = asyncio.ensure_future(c.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await c.close()
        wait_until(lambda: not is_alive(pid))

    @pytest.mark.parametrize("closing", [True, False])
    def test_a_program_whose_loop_ends_leaves_no_process(self, closing):
        found = []

        async def main():
            code = PID.replace("hello =", STUBBORN + "hello =") + "while True: time.sleep(60)"
            c = child(code, exit_seconds=60)
            await c.connect()
            found.append(int(await c.call("x")))
            if closing:
                asyncio.ensure_future(c.close())  # noqa: RUF006 -- asyncio.run() cancels it
                await asyncio.sleep(0)

        before = (open_descriptors(), child_processes(), lasting_threads())
        asyncio.run(main())
        wait_until(lambda: not is_alive(found[0]))
        check_nothing_left(before)

    def test_a_server_ends_when_its_client_is_killed(self):
        code = PRELUDE + f"""
async def main():
    async with m.Client([sys.executable, "-c", {PID!r}], revision={V4!r}) as c:
        print(await c.call("x"), flush=True)
        await asyncio.sleep(3600)
asyncio.run(main())
"""
        with python(code) as client:
            server = int(client.stdout.readline())
            client.kill()
            wait_until(lambda: not is_alive(server))

    async def test_a_server_that_is_killed_fails_what_is_pending_at_once(self):
        code = RAW + "serve(lambda msg: msg['params']['name'] == 'pid' and text(msg['id'], str(os.getpid())))"
        async with child(code) as c:
            pending = asyncio.ensure_future(c.call("never"))
            os.kill(int(await c.call("pid")), 9)
            with pytest.raises(m.ConnectionClosed, match="(killed by signal|exited with status) 9"):
                await pending
            with pytest.raises(m.ConnectionClosed, match="(killed by signal|exited with status) 9"):
                await c.call("pid")

    async def test_a_client_may_be_cancelled_at_any_moment(self):
        """Nothing is left behind: no process, no descriptor, no thread."""

        async def work():
            async with m.Client([sys.executable, "-c", SERVER + "app.run()"], exit_seconds=0.05) as c:
                await c.call("add", {"a": 1})

        for steps in [*range(12), 15, 20, 30, 50, 80]:
            task = asyncio.ensure_future(work())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def test_a_handler_is_cancelled_before_the_pipe_closes(self, tmp_path):
        """A server that is told hears of it at once, and not after its period of grace."""
        log = tmp_path / "log"
        code = SERVER + f"""
@app.tool
async def long() -> str:
    try:
        await asyncio.sleep(60)
    finally:
        open({str(log)!r}, "a").write("cancelled")
app.run()
"""

        async with m.Client([sys.executable, "-c", code], exit_seconds=20) as c:
            call = asyncio.ensure_future(c.call("long"))
            await c.call("add", {"a": 1})
        with pytest.raises(m.ConnectionClosed):
            await call
        assert log.read_text() == "cancelled"


########################
# T42. HTTP
########################
# All of Part VI, seen from a socket, from an ASGI server, or from a Client. Nothing that is not public
# is used but SSEDecoder and the encoding of header values, grammars that no wire shows whole, and in one test Listener.


def ways(data):
    """Return a message whole, byte by byte, and cut at random."""
    dice = rng(f"ways {len(data)}")
    cuts = sorted(dice.choices(range(len(data) + 1), k=4))
    some = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
    return [[data], [data[i : i + 1] for i in range(len(data))], [piece for piece in some if piece]]


def sample_app(**options):
    """A server with a tool for everything that HTTP has to carry."""
    app = m.Server("demo", **options)
    app.waiting, app.log = {}, []

    def gate_of(name):
        """A future by which a test holds a tool back; made in the loop of whoever asks first."""
        if name not in app.waiting:
            app.waiting[name] = asyncio.get_running_loop().create_future()
        return app.waiting[name]

    app.gate_of = gate_of

    @app.tool
    async def echo(text: str) -> str:
        return text

    @app.tool
    async def count(to: int, ctx: m.Context) -> int:
        for number in range(1, to + 1):
            await ctx.notify("acme/n", {"n": number})
        return to

    @app.tool
    async def wait(gate: str, ctx: m.Context, say: bool = False, after: bool = False) -> str:
        app.log.append(f"{gate} begins")
        if say:
            await ctx.notify("acme/before")
        try:
            await gate_of(gate)
        except asyncio.CancelledError:
            app.log.append(f"{gate} cancelled")
            raise
        if after:
            await ctx.notify("acme/after")
        app.log.append(f"{gate} ends")
        return gate

    @app.tool
    async def poll(gate: str, ctx: m.Context) -> bool:
        closed = await ctx.close_stream(5)
        await gate_of(gate)
        return closed

    @app.tool
    def thread(gate: str, ctx: m.Context) -> None:
        app.log.append(f"{gate} begins")
        deadline = time.monotonic() + 20
        while not ctx.cancelled and time.monotonic() < deadline:
            time.sleep(0.001)
        app.log.append(f"{gate} cancelled" if ctx.cancelled else f"{gate} goes on")

    @app.tool
    async def where(region: typing.Annotated[str, m.Header("Region")] = "none", count: int = 0) -> str:
        return f"{region} {count}"

    @app.tool
    async def ask(ctx: m.Context) -> str:
        answer = await ctx.elicit("Really?", bool)
        return f"{answer.action} {answer.data}"

    @app.tool
    async def who(ctx: m.Context) -> list:
        return [ctx.principal, ctx.headers.get("authorization"), ctx.headers.get("x-test")]

    app.add_resource("note://{name}", lambda name: name, name="note")
    return app


def call_of(req_id, tool, arguments=None, **more):
    return request_of(req_id, "tools/call", name=tool, arguments=arguments or {}, **more)


@contextlib.asynccontextmanager
async def http_calling(app=None, *, opened=True, revision=V4, headers=None, **options):
    """Serve an app and give (caller, server)."""
    async with (app or sample_app()).http(port=0, **options) as server:
        async with Caller(server.url, revision) as caller:
            caller.headers.update(headers or {})
            if opened:
                await caller.open()
            yield caller, server


@pytest.fixture
def app():
    """The server of `caller`."""
    return sample_app()


@pytest.fixture
@contextlib.asynccontextmanager
async def caller(app):
    async with http_calling(app) as (caller, _):
        yield caller


@pytest.fixture
@contextlib.asynccontextmanager
async def stranger():
    """A caller that has not shaken hands."""
    async with http_calling(opened=False) as (caller, _):
        yield caller


def pages():
    """A server with a page that shows what its request was."""
    app = m.Server("pages")
    app.served = []

    async def show(request):
        app.served.append(request.method)
        return {"method": request.method, "path": request.path, "query": request.query,
                "body": request.body.decode("latin-1"), **request.headers}  # fmt: skip

    for method in ("GET", "POST"):
        app.route(method, "/a", public=True, any_host=True)(show)
    return app


@contextlib.asynccontextmanager
async def one_page(handler, **options):
    """Serve a page at /p that anybody may have; give its server."""
    app = m.Server()
    app.route("GET", "/p", public=True)(handler)
    async with app.http(port=0, **options) as server:
        yield server


@pytest.fixture
@contextlib.asynccontextmanager
async def wire():
    """A connection to the server of pages()."""
    async with pages().http(port=0) as server, await Wire.open(server.url) as wire:
        yield wire


G, P = b"GET /a HTTP/1.1\r\nHost: h\r\n", b"POST /a HTTP/1.1\r\nHost: h\r\n"
CHUNKED = P + b"Transfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET /a HTTP/1.1\r\nHost: next\r\n\r\n"

#: A request, and what its page must see of it.
ACCEPTED = [
    (G + b"\r\n", {"method": "GET", "path": "/a", "query": "", "host": "h", "body": ""}),
    (b"\r\n" + G + b"\r\n", {"host": "h"}),  # RFC 9112 §2.2
    (b"GET /a?b=%20&c HTTP/1.1\r\nhOST:\th \r\n\r\n", {"query": "b=%20&c", "host": "h"}),
    (b"GET http://real:81/a?x HTTP/1.1\r\nHost: other\r\n\r\n", {"host": "real:81", "query": "x"}),
    (b"GET /a HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n", {"host": "[::1]:8000"}),
    (G + b"X-A: 1\r\nx-a: 2\r\nX-B:\r\n\r\n", {"x-a": "1, 2", "x-b": ""}),
    (G + b"X-A: \xe9\t\"x\"  \r\n\r\n", {"x-a": "\xe9\t\"x\""}),
    (P + b"Content-Length: 0\r\n\r\n", {"body": ""}),
    (P + b"Content-Length: 0000000000000000005\r\n\r\nhello", {"body": "hello"}),
    (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", {"body": "hello"}),
    (CHUNKED + b"00A;x=\"y\"\r\nhellohello\r\n1 ;z\r\n!\r\n0\r\n\r\n", {"body": "hellohello!"}),
    (CHUNKED + b"1\r\n\n\r\n0\r\nTrailer: is dropped\r\nHost: x\r\n\r\n", {"body": "\n", "host": "h"}),
    (P + b"Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", {"body": ""}),
    (G + b"Connection: close, TE\r\n\r\n", {"connection": "close, TE"}),
    (b"GET /a HTTP/1.0\r\n\r\n", {"method": "GET"}),
    (b"GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", {"method": "GET"}),
]

REQUEST_LINES = [
    b" GET /a HTTP/1.1", b"\r\n\r\nGET /a HTTP/1.1", b"GET  /a HTTP/1.1", b"GET /a\tHTTP/1.1",
    b"GET /a HTTP/1.1 ", b"GET /a x HTTP/1.1", b"GET /a", b"GET", b"G\xcbT /a HTTP/1.1",
    b"GE(T /a HTTP/1.1", b"GET /\xe9 HTTP/1.1", b"GET /a\x00 HTTP/1.1", b"GET /a#b HTTP/1.1",
    b"GET /a http/1.1", b"GET /a HTTP/1.1x", b"GET /a HTTP/11", b"GET /a HTTP/1.\xb2",
    b"GET /a HTTP/0.9", b"GET /a HTTP/2.0", b"PRI * HTTP/2.0", b"CONNECT a:443 HTTP/1.1", b"GET a HTTP/1.1",
    b"GET * HTTP/1.1", b"GET ftp://h/a HTTP/1.1", b"GET http:///a HTTP/1.1",
    b"GET http://u:p@h/a HTTP/1.1", b"GET /a HTTP/1.1\rX: y", b"GET /a HTTP/1.1\nX: y",
]  # fmt: skip
HOSTS = [b"", b"Host:\r\n", b"Host: a, b\r\n", b"Host: a/b\r\n", b"Host: u@a\r\n", b"Host: ::1\r\n",
         b"Host: a:x\r\n", b"Host: a\r\nhost: a\r\n", b"Host: a b\r\n"]  # fmt: skip
FIELDS = [
    b"X : b", b"X\t: b", b"X: b\r\n c", b" X: b", b"\tX: b", b"nonsense", b": b", b"X\x00: b", b"X\xaa: b",
    b"X(y): b", b"X: \x00", b"X: \x0b", b"X: \x7f", b"X: b\rc", b"X: b\nY: c", b"X: b\r", b"\nX: b",
    b"Content-Type: a/b\r\nContent-Type: c/d", b"Authorization: a\r\nAuthorization: b",
    b"Origin: http://a\r\nOrigin: http://b", b"Mcp-Session-Id: 1\r\nmcp-session-id: 2",
    b"Mcp-Method: a\r\nMcp-Method: b", b"Mcp-Name: a\r\nMcp-Name: b", b"Last-Event-ID: 1\r\nLast-Event-ID: 2",
    b"MCP-Protocol-Version: 1\r\nMCP-Protocol-Version: 2",
]  # fmt: skip
FRAMINGS = [
    b"Content-Length: 1\r\nContent-Length: 1", b"Content-Length: +5", b"Content-Length: -1",
    b"Content-Length: 5, 5", b"Content-Length: 5 5", b"Content-Length: 0x5", b"Content-Length: 1_0",
    b"Content-Length: 5.0", b"Content-Length: \xb2", b"Content-Length: five", b"Content-Length:",
    b"Content-Length: 00000000000000000005", b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"Transfer-Encoding: identity\r\nContent-Length: 5",
    b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked, identity", b"Transfer-Encoding: gzip", b"Transfer-Encoding: xchunked",
    b'Transfer-Encoding: "chunked"', b"Transfer-Encoding: chunked;q=1", b"Transfer-Encoding: chunked,",
    b"Transfer-Encoding:", b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding : chunked",
    b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: , chunked",
]  # fmt: skip
#: What stands where chunks should: RFC 9112 §7.1
BAD_CHUNKS = [
    b"x\r\n", b"\r\nhello", b"0x5\r\nhello\r\n", b"+5\r\nhello\r\n", b"-5\r\nhello\r\n", b" 5\r\nhello\r\n",
    b"5 \r\nhello\r\n", b"1_0\r\nhello\r\n", b"5\nhello\r\n", b"5;a\nhello\r\n", b"5;\x00\r\nhello\r\n",
    b"5;a\rb\r\nhello\r\n", b"\xb2\r\nhe\r\n", b"00000000000000005\r\nhello\r\n", b"5\r\nhelloXX",
    b"5\r\nhello\n0", b"5\r\nhello!\r\n", b"5\r\nhell\r\n0\r\n\r\n", b"0\r\n\n", b"0\r\nX: y\n",
    b"0\r\nGET / HTTP/1.1\r\n", b"0\r\n X: y\r\n", b"0\r\nX : y\r\n",
]  # fmt: skip
DOUBTFUL = [
    *(line + b"\r\nHost: h\r\n\r\n" for line in REQUEST_LINES),
    *(b"GET /a HTTP/1.1\r\n" + host + b"\r\n" for host in HOSTS),
    *(G + field + b"\r\n\r\n" for field in FIELDS), b"GET http://h/a HTTP/1.1\r\n\r\n",
    # Five bytes that are a body of that length, and chunks as well.
    *(P + field + b"\r\n\r\n0\r\n\r\n" for field in FRAMINGS), *(CHUNKED + data for data in BAD_CHUNKS),
    b"POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
]  # fmt: skip


def with_size(size):
    """Return a request with a head of so many bytes."""
    return G + b"X: %b\r\n\r\n" % (b"x" * (size - len(G) - 7))


#: What is limited: the most that passes, what makes a request of such a size, and the status.
HTTP_LIMITS = [
    ("bytes of a head", 32 * 1024, with_size, 431),
    ("bytes before a chunk", 256, lambda n: CHUNKED + b"1;%b\r\nx\r\n0\r\n\r\n" % (b"x" * (n - 4)), 400),
    ("bytes of a trailer", 32 * 1024, lambda n: CHUNKED + b"0\r\nX: %b\r\n\r\n" % (b"x" * (n - 7)), 400),
    ("bytes of a body", 20_000, lambda n: P + b"Content-Length: %d\r\n\r\n%b" % (n, b"x" * n), 413),
    ("bytes of chunks", 20_000, lambda n: CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (n, b"x" * n), 413),
]  # fmt: skip


class TestHTTPMessages:
    """RFC 9112, strictly: two readers of the same bytes must see the same messages."""

    async def test_a_request_is_read_however_it_is_cut(self):
        async with pages().http(port=0) as server:
            for data, wanted in ACCEPTED:
                for pieces in ways(data):
                    async with await Wire.open(server.url) as wire:
                        await wire.send_pieces(pieces)
                        status, _, body = await wire.answer()
                    assert status == 200, (data, body)
                    seen = json.loads(body)
                    assert {**seen, **wanted} == seen, (data, pieces)

    async def test_whatever_is_doubtful_is_refused_and_ends_the_connection(self):
        """The error names no value, and what stands behind the request is not served."""
        app = pages()
        async with app.http(port=0) as server:
            for data in DOUBTFUL:
                for pieces in ways(data):
                    async with await Wire.open(server.url) as wire:
                        await wire.send_pieces([*pieces, NEXT])
                        status, headers, body = await wire.answer()
                        assert status in (400, 501, 505), (data, status)
                        assert headers["connection"] == "close" and b"hello" not in body
                        assert json.loads(body)["error"]["message"] and await wire.everything() == b"", data
        assert app.served == []

    @pytest.mark.parametrize("what, most, make, status", HTTP_LIMITS, ids=[x[0] for x in HTTP_LIMITS])
    async def test_a_limit_holds_at_its_value_and_one_beyond(self, what, most, make, status):
        async with pages().http(port=0, max_body=20_000) as server:
            for size, wanted in ((most, {200}), (most + 1, {status})):
                async with await Wire.open(server.url) as wire:
                    wire.send(make(size))
                    assert (await wire.answer())[0] in wanted, (what, size)

    @pytest.mark.parametrize("data", [
        G + b"x" * 33_000, b"x" * 33_000, CHUNKED + b"1;" + b"x" * 300,
        P + b"Content-Length: 9999999999\r\n\r\n", CHUNKED + b"ffffffffffffffff\r\n",
    ])  # fmt: skip
    async def test_a_request_that_never_ends_is_refused_in_time(self, data):
        async with pages().http(port=0, max_body=20_000) as server, await Wire.open(server.url) as wire:
            wire.send(data)
            assert (await wire.answer())[0] in (400, 413, 414, 431)
            assert await wire.everything() == b""

    async def test_random_changes_of_requests_get_one_clean_answer_each(self):
        """Fuzz: no 500, no hanging, nothing served twice."""
        dice, app = rng("requests"), pages()
        async with app.http(port=0) as server:
            leap = time_machine()
            for _ in range(300):
                data = bytearray(dice.choice(ACCEPTED)[0])
                for _ in range(dice.randint(1, 3)):
                    at = dice.randrange(len(data))
                    data[at : at + dice.randint(0, 2)] = dice.choice([b"", b"\r", b"\n", b" ", b":", b"\0", b"5"])
                async with await Wire.open(server.url) as wire:
                    wire.send(bytes(data))
                    await arrived()
                    leap(80)  # what is missing does not come
                    text = await wire.everything()
                assert re.match(rb"(HTTP/1\.1 (200|4\d\d|50[15]) |$)", text), (data, text)


class TestServedConnections:
    """A connection serves one request at a time, in order."""

    async def test_pipelined_requests_are_answered_in_order_and_others_have_their_turn(self):
        async with pages().http(port=0) as server, await Wire.open(server.url) as wire:
            other = await Wire.open(server.url)
            wire.send(b"".join(b"GET /a?%d HTTP/1.1\r\nHost: h\r\n\r\n" % n for n in range(300)))
            await wire.read_head()
            other.send(NEXT)
            first = asyncio.ensure_future(other.answer())
            done = []
            for number in range(300):
                if number:
                    await wire.read_head()
                assert json.loads(await wire.body())["query"] == str(number)
                done.append(first.done())
            assert (await first)[0] == 200
            other.drop()

    async def test_requests_that_wait_for_a_response_are_bounded_in_bytes_and_not_in_time(self, app, caller):
        wire = await caller.begin("POST", call_of(1, "wait", {"gate": "g"}))
        await until(lambda: app.log)
        wire.writer.transport.set_write_buffer_limits(0)
        wire.send(NEXT * 500_000)
        stuck = asyncio.ensure_future(wire.writer.drain())
        for _ in range(50):
            await idle()
        assert not stuck.done()  # the server does not read on
        app.gate_of("g").set_result(None)
        assert (await wire.answer())[0] == 200
        stuck.cancel()

    async def test_the_next_request_waits_until_the_last_answer_is_read(self):
        app, served = m.Server(), []

        @app.route("GET", "/big", public=True)
        async def big(request):
            served.append(request.query)
            return b"x" * 20_000_000

        async with app.http(port=0) as server, await Wire.open(server.url) as wire:
            wire.send(b"".join(b"GET /big?%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % n for n in range(3)))
            for number in range(3):
                await wire.read_head()
                for _ in range(10):
                    await idle()
                assert served == [str(n) for n in range(number + 1)]
                assert len(await wire.body()) == 20_000_000

    @pytest.mark.parametrize("data, kept", [
        (G, True), (G + b"Connection: keep-alive\r\n", True), (G + b"Connection: x, Close\r\n", False),
        (b"GET /a HTTP/1.0\r\n", False), (b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n", True),
    ])  # fmt: skip
    async def test_a_connection_lives_as_long_as_the_client_says(self, data, kept, wire):
        wire.send(data + b"\r\n")
        status, headers, _ = await wire.answer()
        assert status == 200 and (headers.get("connection") != "close") == kept
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", headers["date"])
        if kept:
            wire.send(NEXT)
            assert (await wire.answer())[0] == 200
        else:
            assert await wire.everything() == b""

    async def test_a_tls_client_at_a_plain_port_is_answered_at_once(self, wire):
        wire.send(b"\x16\x03\x01\x02\x00\x01")  # and more of a ClientHello, which need not come
        status, _, body = await wire.answer()
        assert status == 400 and b"TLS" in body

    async def test_a_client_that_waits_for_100_continue_gets_it_unless_the_head_is_refused(self):
        """RFC 9110 §10.1.1"""
        async with pages().http(port=0, max_body=20) as server:
            for size, wanted in ((5, 100), (21, 413)):
                async with await Wire.open(server.url) as wire:
                    wire.send(P + b"Expect: 100-Continue\r\nContent-Length: %d\r\n\r\n" % size)
                    assert (await wire.read_head()).status == wanted
                    if wanted == 100:
                        wire.send(b"hello")
                        assert json.loads((await wire.answer())[2])["body"] == "hello"

    async def test_head_has_the_length_but_no_body(self, wire):
        wire.send(b"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n" + NEXT)
        status, headers, _ = await wire.answer("HEAD")
        assert status == 200 and int(headers["content-length"]) > 20
        assert (await wire.answer())[0] == 200

    @pytest.mark.parametrize("methods", ["GET HEAD", "HEAD GET"])
    async def test_a_page_may_answer_head_by_itself(self, methods):
        app = m.Server()
        for method in methods.split():
            app.route(method, "/own")(lambda request, method=method: (200, {"x-from": method}, ""))
        async with app.http(port=0) as server, await Wire.open(server.url) as wire:
            for method in methods.split():
                wire.send(f"{method} /own HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                assert (await wire.answer(method))[1]["x-from"] == method

    @pytest.mark.parametrize("status", [204, 304])
    async def test_an_answer_without_content_has_no_body(self, status):
        app = pages()
        app.route("GET", "/none", public=True, any_host=True)(lambda request: (status, "text/plain", "x"))
        async with app.http(port=0) as server, await Wire.open(server.url) as wire:
            wire.send(NEXT.replace(b"/a", b"/none") + NEXT)
            head = await wire.read_head()
            assert head.status == status and "content-length" not in head.headers
            assert (await wire.answer())[0] == 200

    async def test_in_http_1_0_a_stream_ends_with_its_connection(self):
        async with http_calling() as (caller, _):
            wire = await caller.begin("POST", call_of(1, "count", {"to": 2}), version="1.0", connection="keep-alive")
            headers = (await wire.read_head()).headers
            assert "transfer-encoding" not in headers and headers["connection"] == "close"
            assert [msg.get("id") for msg in await Events(wire).messages()] == [None, None, 1]

    async def test_a_client_hears_why_its_body_is_refused_though_it_goes_on_sending(self):
        """RFC 9112 §9.6: what still comes is read for 5 seconds, and thrown away."""
        async with pages().http(port=0, max_body=1000) as server:
            leap = time_machine()
            async with await Wire.open(server.url) as wire:
                wire.send(P + b"Content-Length: 9000000\r\n\r\n" + b"x" * 9_000_000)
                await wire.writer.drain()
                assert (await wire.answer())[0] == 413
            async with await Wire.open(server.url) as wire:
                wire.send(P + b"Content-Length: 2000\r\n\r\n")
                assert (await wire.answer())[0] == 413
                leap(7)
                await eventually(lambda: wire.send(b"x" * 1000) or wire.writer.is_closing())

    @pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\0", " a", "\u20ac"])
    async def test_no_header_can_be_injected(self, value, caplog):
        async with one_page(lambda request: (200, {"x-page": value}, "text")) as server:
            status, headers, _ = await ask(server.url, target="/p")
        assert status == 500 and "x-evil" not in headers
        with pytest.raises((ValueError, m.MCPError)):
            await m.Client("http://127.0.0.1:1/mcp", headers={"x-a": value}).connect()

    async def test_a_public_page_of_a_server_with_a_token_does_not_see_the_token(self):
        async with one_page(lambda request: str(request.headers.get("authorization")), token="secret") as server:
            assert (await ask(server.url, target="/p", authorization="Bearer secret"))[2] == b"None"

    async def test_one_server_does_not_answer_for_another_with_the_same_head(self):
        one, two = m.Server("one"), m.Server("two")
        async with one.http(port=0, token="secret") as first, two.http(port=0) as second:
            for _ in range(2):
                assert (await ask(first.url))[0] == 401
                assert (await ask(second.url))[0] == 400

    @pytest.mark.parametrize("problem", [ValueError, SystemExit])
    async def test_a_handler_that_fails_gives_500_without_its_reason(self, problem):
        async def page(request):
            raise problem("secret")

        async with one_page(page) as server:
            for _ in range(2):
                status, _, body = await ask(server.url, target="/p")
                assert status == 500 and b"secret" not in body

    async def test_context_variables_of_one_request_are_not_seen_by_the_next(self):
        seen, mine = [], contextvars.ContextVar("mine", default=0)

        async def page(request):
            seen.append(mine.get())
            mine.set(len(seen))
            return ""

        async with one_page(page) as server, await Wire.open(server.url) as wire:
            for _ in range(3):
                wire.send(b"GET /p HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await wire.answer()
        assert seen == [0, 0, 0]

    @newest_revisions
    async def test_a_request_leaves_nothing_for_the_garbage_collector(self, revision):
        async with http_calling(opened=revision == V4) as (caller, _):
            msg, fields = modern_call(1, "echo", {"text": "a"})
            msg, fields = (msg, fields) if revision == V5 else (call_of(1, "echo", {"text": "a"}), {})
            wire = await caller.begin("POST", msg, **fields)
            await wire.answer()
            wire.send(wire.sent)
            assert (await wire.answer())[0] == 200
            gc.collect()
            gc.disable()
            try:
                for _ in range(50):
                    wire.send(wire.sent)
                    await wire.answer()
                assert gc.collect() < 50
            finally:
                gc.enable()

    async def test_a_request_is_not_forgotten_while_nobody_holds_it_but_us(self):
        """asyncio only has weak references to tasks."""
        app, waited = m.Server(), []

        async def wait():
            future = asyncio.get_running_loop().create_future()
            waited.append(weakref.ref(future))
            await future

        @app.tool
        async def alone() -> None:
            await wait()

        @app.route("GET", "/page", public=True)
        async def page(request):
            await wait()
            return "done"

        async with http_calling(app) as (caller, _):
            asked = caller.post(call_of(1, "alone")), caller.ask("GET", target="/page")
            asked = [asyncio.ensure_future(each) for each in asked]
            await until(lambda: len(waited) == 2)
            await idle()
            gc.collect()
            for future in waited:
                future().set_result(None)
            assert [(await each)[0] for each in asked] == [200, 200]



#: What a client sends, and what has come of it after so many seconds (and not before).
DEADLINES = [
    ("half a head", [b"GET /a HT"], 20, 408),
    ("a head by single bytes", [b"GET /a HT", b"T", b"P"], 20, 408),
    ("half a body", [P + b"Content-Length: 5\r\n\r\nhel"], 60, 408),
    ("half a chunk", [CHUNKED + b"5\r\nhel"], 60, 408),
    ("a body by single bytes", [P + b"Content-Length: 5\r\n\r\nhel", b"l"], 60, 408),
    ("no next request", [NEXT], 75, None),
]


class TestTimeOnConnections:
    """Every wait has a deadline, which no byte renews."""

    @pytest.mark.parametrize("what, pieces, seconds, status", DEADLINES, ids=[x[0] for x in DEADLINES])
    async def test_a_connection_that_is_silent_too_long_is_answered_or_closed(self, what, pieces, seconds, status, wire):
        leap = time_machine()
        await idle()
        for piece, share in zip(pieces, [0.9, 0.1, 0] if len(pieces) > 1 else [1]):
            wire.send(piece)
            await arrived()
            if piece is NEXT:
                await wire.answer()
            leap((seconds - 3) * share)  # what comes after the first piece comes late
            await arrived()
        assert not wire.reader.at_eof() and not wire.reader._buffer
        leap(6)
        if status is not None:
            got, headers, _ = await asyncio.wait_for(wire.answer(), 10)
            assert got == status and headers["connection"] == "close"
        assert await wire.everything() == b""

    async def test_a_request_that_is_served_has_no_deadline_and_a_comment_keeps_its_connection(self, app, caller):
        leap = time_machine()
        wire = await caller.begin("POST", call_of(1, "wait", {"gate": "g"}))
        await until(lambda: app.log)
        leap(16)
        await wire.read_head()  # an answer that takes long becomes a stream
        events = Events(wire)
        assert wire.head.headers["content-type"] == "text/event-stream"
        assert "id:" in await events.block()
        for _ in range(3):
            leap(17)
            assert await events.block() == ":"
        leap(300)
        app.gate_of("g").set_result(None)
        assert (await events.messages())[0]["id"] == 1

    async def test_a_client_may_send_more_requests_at_once_than_are_read_at_once(self):
        async with pages().http(port=0) as server, await Wire.open(server.url) as wire:
            wire.send(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10_000)
            for _ in range(10_000):
                assert (await wire.answer())[0] == 200

    @pytest.mark.parametrize("size", [10, 100_000, 400_000])
    async def test_a_modern_request_ends_with_its_connection_however_long_it_is(self, size):
        app, log = m.Server(), []

        @app.tool
        async def wait(pad: str) -> str:
            log.append("began")
            try:
                await asyncio.sleep(3600)
            finally:
                log.append("ended")

        async with http_calling(app, opened=False) as (caller, _):
            msg, headers = modern(1, "tools/call", {"name": "wait", "arguments": {"pad": "x" * size}})
            wire = await caller.begin("POST", msg, **headers)
            await eventually(lambda: log)
            wire.writer.close()
            await eventually(lambda: log == ["began", "ended"], seconds=10)  # before a comment would notice it

    @pytest.mark.skipif(os.name == "nt", reason="a Proactor loop, which run() does not use, cannot tell")
    async def test_a_client_that_does_not_read_an_open_stream_is_cut_off_in_spite_of_its_comments(self):
        app, log = m.Server(), []

        @app.tool
        async def work(ctx: m.Context) -> None:
            await ctx.info("x" * 8_000_000)
            log.append("sent")

        async with http_calling(app) as (caller, _):
            leap = time_machine()
            wire = await caller.send("POST", call_of(1, "work", {}))
            wire.writer.transport.pause_reading()
            await arrived()
            for _ in range(8):
                leap(14)
                await arrived()
            wire.writer.transport.resume_reading()
            assert len(await wire.everything()) < 8_000_000

    @pytest.mark.skipif(os.name == "nt", reason="a Proactor loop, which run() does not use, cannot tell")
    async def test_a_client_that_does_not_read_is_cut_off_after_30_seconds(self):
        app = m.Server()

        @app.route("GET", "/big", public=True)
        async def big(request):
            return b"x" * 30_000_000

        async with app.http(port=0) as server:
            leap = time_machine()
            for reads in (False, True):
                async with await Wire.open(server.url) as wire:
                    wire.send(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    await wire.read_head()
                    wire.writer.transport.pause_reading()
                    await arrived()
                    for _ in range(3):
                        leap(12)
                        await arrived()
                        if reads:
                            wire.writer.transport.resume_reading()
                            for _ in range(20):
                                wire.left -= len(await wire.reader.read(200_000))
                            wire.writer.transport.pause_reading()
                            await arrived()
                    leap(12)
                    await arrived()
                    wire.writer.transport.resume_reading()
                    if reads:
                        assert len(await wire.reader.readexactly(wire.left)) == wire.left
                    else:
                        assert len(await wire.everything()) < wire.left

    async def test_a_tls_handshake_that_does_not_come_is_not_waited_for(self, certificate):
        async with pages().http(port=0, ssl=certificate) as server, await Wire.open(server.url) as wire:
            leap = time_machine()
            await arrived()
            leap(6)
            assert await wire.everything() == b""

    async def test_unfinished_bodies_do_not_make_the_server_refuse_small_ones(self, monkeypatch):
        monkeypatch.setattr(m, "HELD_BYTES", 100_000)
        async with contextlib.AsyncExitStack() as stack, http_calling() as (caller, _):
            for _ in range(8):
                wire = await stack.enter_async_context(await Wire.open(caller.url))
                wire.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          b"Content-Length: 1000000\r\n\r\n" + b" " * 90_000)  # fmt: skip
                await arrived()
            for _ in range(5):
                assert await caller.status("POST", PING) == 200

    async def test_a_get_has_a_small_body(self, wire):
        wire.send(b"GET /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        assert (await wire.answer())[0] == 413

    async def test_a_client_that_waits_with_its_body_makes_room_for_another(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_CLIENTS", 3)
        async with contextlib.AsyncExitStack() as stack:
            server = await stack.enter_async_context(pages().http(port=0))
            wires = []
            for _ in range(5):
                wires.append(await stack.enter_async_context(await Wire.open(server.url)))
                wires[-1].send(b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n")
                await arrived()
            assert [wire.reader.at_eof() or bool(wire.reader.exception()) for wire in wires] == [True] * 2 + [False] * 3
            assert (await ask(server.url, target="/a"))[0] == 200

    @pytest.mark.parametrize("tls", [False, True])
    async def test_responses_that_nobody_reads_are_bounded_and_the_oldest_are_cut_off(self, tls, monkeypatch, request):
        monkeypatch.setattr(m, "HELD_BYTES", 6_000_000)
        app, certificate = m.Server(), request.getfixturevalue("certificate") if tls else None
        app.route("GET", "/big", public=True)(lambda request: b"x" * 10_000_000)
        context = tls and ssl.create_default_context(cafile=certificate[0])
        async with app.http(port=0, ssl=certificate) as server:
            wires = [await Wire.open(server.url, ssl=context or None) for _ in range(8)]
            for wire in wires:
                wire.send(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for wire in wires:
                await wire.read_head()
                wire.writer.transport.pause_reading()
            await arrived()
            whole = 0
            for wire in wires:
                wire.writer.transport.resume_reading()
                with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
                    whole += len(await wire.reader.readexactly(wire.left)) > 0
                wire.drop()
            assert 0 < whole < 6

    async def test_a_server_takes_a_context_for_tls_too(self, certificate):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        async with sample_app().http(port=0, ssl=context) as server:
            async with m.Client(server.url, ssl=certificate[0]) as c:
                assert server.url.startswith("https://") and await c.list_tools()

    def test_a_refusal_reaches_a_client_that_is_sending_a_long_body_over_tls(self, certificate):
        import http.client

        server = sample_app().start_in_thread("http", port=0, ssl=certificate, token="hush")
        try:
            context = ssl.create_default_context(cafile=certificate[0])
            conn = http.client.HTTPSConnection(urllib.parse.urlsplit(server.url).netloc, timeout=20, context=context)
            conn.request("POST", "/mcp", b"x" * 8_000_000, {"Content-Type": "application/json"})
            assert conn.getresponse().status == 401
            conn.close()
        finally:
            server.stop()

    async def test_a_client_that_does_not_read_does_not_keep_a_server_that_is_to_end(self):
        begun, ended = [], []

        @contextlib.asynccontextmanager
        async def lifespan(app):
            yield
            ended.append(1)

        app = m.Server(lifespan=lifespan)

        @app.tool(structured=False)
        async def big() -> str:
            begun.append(1)
            return "x" * 12_000_000

        async with app.http(port=0, grace=0.3) as server, Caller(server.url) as caller:
            await caller.open()
            wires = [await caller.begin("POST", call_of(n, "big")) for n in range(5)]
            for wire in wires:
                wire.writer.transport.pause_reading()
            await until(lambda: len(begun) == 5)
            await arrived()
            since = time.monotonic()
            await server.__aexit__(None, None, None)
            assert time.monotonic() - since < 2 and ended == [1]
            for wire in wires:
                wire.drop()

    async def test_a_writer_waits_for_its_reader_and_everything_arrives(self):
        app = m.Server()

        @app.tool
        async def flood(ctx: m.Context) -> int:
            for number in range(200):
                await ctx.notify("acme/n", {"n": number, "text": "x" * 100_000})
                app.sent = number
            return 0

        async with http_calling(app) as (caller, _):
            app.sent = 0
            events = await caller.events("POST", call_of(1, "flood"))
            events.answer.writer.transport.pause_reading()
            await until(lambda: app.sent)
            await arrived()
            assert app.sent < 199
            events.answer.writer.transport.resume_reading()
            found = await events.messages()
            assert [msg["params"]["n"] for msg in found[:-1]] == [*range(200)]


class TestLostConnections:
    """Clients vanish at any moment, and leave nothing behind."""

    async def test_clients_that_vanish_at_any_byte_leave_nothing(self):
        app = sample_app()
        async with http_calling(app) as (caller, server):
            msg = json.dumps(call_of(1, "echo", {"text": "x"})).encode()
            head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {caller.headers['mcp-session-id']}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(msg)}\r\n\r\n"
            data = head.encode() + msg
            for size in range(0, len(data) + 1, 3):
                wire = await Wire.open(server.url)
                wire.send(data[:size])
                await asyncio.sleep(0)
                (wire.reset if size % 2 else wire.drop)()
            assert (await caller.post(call_of(2, "echo", {"text": "y"})))[0] == 200

    async def test_a_stream_whose_handler_refuses_is_cut_off(self):
        async def handle(request, response):
            await response.send(200, {}, b"x", True)
            raise m.ProtocolError("no")

        listener = m.Listener(handle)
        async with await Wire.open(await listener.start("127.0.0.1", 0)) as wire:
            wire.send(NEXT)
            data = await asyncio.wait_for(wire.everything(), 20)
            assert data.endswith(b"\r\n\r\n1\r\nx\r\n")
        await listener.stop(0)

    async def test_writing_to_a_lost_client_is_harmless(self, caplog):
        app = sample_app()

        @app.tool
        async def babble(ctx: m.Context) -> str:
            app.log.append("begins")
            for number in range(50):
                await ctx.notify("acme/n", {"n": number})
                await asyncio.sleep(0)
            app.log.append("ends")
            return ""

        async with http_calling(app) as (caller, _):
            events = await caller.events("POST", call_of(1, "babble"))
            events.answer.reset()
            await eventually(lambda: "ends" in app.log)
        assert not [record for record in caplog.records if record.name == "asyncio"]

    async def test_a_long_answer_to_a_client_that_has_just_gone_is_harmless(self, caplog):
        app = m.Server()

        @app.route("GET", "/big", public=True, any_host=True)
        async def big(request):
            sock.close()  # which resets it; the loop is busy, and does not see it
            return b"x" * 1_000_000

        async with app.http(port=0) as server:
            where = urllib.parse.urlsplit(server.url)
            sock = socket.create_connection((where.hostname, where.port))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii" if os.name != "nt" else "hh", 1, 0))
            sock.sendall(NEXT.replace(b"/a", b"/big"))
            await until(lambda: sock.fileno() < 0)
            await idle()
        assert not [record for record in caplog.records if record.name == "asyncio"]

    async def test_a_lost_connection_cancels_nothing_in_a_session(self, app, caller):
        """spec 2025-11-25: basic/transports -- "Disconnection SHOULD NOT be interpreted as" that"""
        wire = await caller.begin("POST", call_of(1, "wait", {"gate": "g"}))
        await until(lambda: app.log)
        wire.drop()
        await arrived()
        app.gate_of("g").set_result(None)
        await eventually(lambda: app.log == ["g begins", "g ends"])

    @pytest.mark.parametrize("tool, more", [("wait", {}), ("wait", {"say": True}), ("thread", {})])
    async def test_a_lost_connection_is_the_cancellation_where_there_are_no_sessions(self, tool, more):
        """spec: basic/transports/streamable-http#cancellation"""
        app = sample_app()
        async with http_calling(app, opened=False) as (caller, _):
            msg, fields = modern_call(1, tool, {"gate": "g", **more})
            wire = await caller.begin("POST", msg, **fields)
            await until(lambda: app.log)
            wire.drop()
            await eventually(lambda: app.log == ["g begins", "g cancelled"])


#: WHATWG HTML §9.2.6: a stream, and its events as (data, type, last id).
SSE_STREAMS = [
    (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("YHOO\n+2\n10", "message", "")]),
    (b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
     [("first event", "message", "1"), ("second event", "message", ""), (" third event", "message", "")]),
    (b"data\n\ndata\ndata\n\ndata:", [("", "message", ""), ("\n", "message", "")]),
    (b"data: a\r\rdata: b\r\n\r\ndata: c\n\n", [(x, "message", "") for x in "abc"]),
    (b"data: a\rdata: b\ndata: c\r\n\r", [("a\nb\nc", "message", "")]),
    (b":data: a\n:\n\n", []), (b"Data: a\n data: b\ndata : c\ndatas: d\nfoo\n\n", []),
    (b"data: a:b: c\n\n", [("a:b: c", "message", "")]),
    (b"event: x\ndata: a\n\ndata: b\n\n", [("a", "x", ""), ("b", "message", "")]),
    (b"event: x\nevent: y\ndata: a\n\n", [("a", "y", "")]), (b"event\ndata: a\n\n", [("a", "message", "")]),
    (b"event: x\n\ndata: a\n\n", [("a", "message", "")]),
    (b"id: 1\ndata: a\n\ndata: b\n\n", [("a", "message", "1"), ("b", "message", "1")]),
    (b"id: 1\n\ndata: a\n\n", [("a", "message", "1")]),
    (b"id: 1\nid: 2\x00\ndata: a\n\n", [("a", "message", "1")]),
    (b"id: 7\nretry: 500\ndata:\n\n", [("", "message", "7")]),
    ("data: \u20ac\U0001f600\n\n".encode(), [("\u20ac\U0001f600", "message", "")]),
    (b"data: \xff\xe2\x82\n\n", [("\ufffd\ufffd", "message", "")]),
    (b"data: \xc2\x85\xe2\x80\xa8\x0b\x0c\n\n", [("\x85\u2028\x0b\x0c", "message", "")]),
    (b"data: a\n\ndata: b\n", [("a", "message", "")]), (b"data: a", []), (b"", []),
    # One byte order mark is passed over, at the begin of a stream.
    (b"\xef\xbb\xbfdata: x\n\n", [("x", "message", "")]),
    (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\ndata: y\n\n", [("y", "message", "")]),
    (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [("x", "message", "")]),
]  # fmt: skip
RETRIES = [
    (b"0", 0), (b"1500", 1500), (b"0000000000000000000012", 12), (b"3600001", 3_600_000),
    (b"9" * 10_000, 3_600_000), (b"", None), (b"-1", None), (b"+1", None), (b"1_0", None), (b"1.5", None),
    (b"1 ", None), (b"  1", None), (b"0x1", None), ("\u0661".encode(), None),
]  # fmt: skip


def events_in(pieces, decoder=None):
    """Return what SSEDecoder makes of the pieces of a stream: the data and the type of each event."""
    decoder = decoder or m.SSEDecoder()
    return [(data, kind) for piece in pieces for kind, data in decoder.feed(piece)]


def ids_in(data):
    """Return the last id after each event of a stream that comes byte by byte."""
    decoder = m.SSEDecoder()
    return [decoder.last_id for i in range(len(data)) for _ in decoder.feed(data[i : i + 1])]


def reference_events(data):
    """Return the events of a whole stream: WHATWG HTML §9.2.6, word for word, no decoder."""
    *lines, _ = re.split("\r\n|\r|\n", data.decode("utf-8", "replace"))
    out, data_buffer, event_type, last_id = [], "", "", ""
    for line in lines:
        if line == "":
            if data_buffer:
                out.append((data_buffer[:-1], event_type or "message", last_id))
            data_buffer, event_type = "", ""
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "data":
                data_buffer += value + "\n"
            elif field == "event":
                event_type = value
            elif field == "id" and "\0" not in value:
                last_id = value
    return out


class TestServerSentEvents:
    """WHATWG HTML §9.2.6, "Interpreting an event stream"."""

    @pytest.mark.parametrize("data, expected", SSE_STREAMS)
    def test_a_stream_however_it_is_cut(self, data, expected):
        for pieces in cuttings(data):
            assert events_in(pieces) == [event[:2] for event in expected], pieces
        assert ids_in(data) == [event[2] for event in expected]

    @pytest.mark.parametrize("end", [b"\n\n", b"\r\r", b"\r\n\r", b"\n\r"])
    def test_an_event_does_not_wait_for_the_next_byte(self, end):
        decoder = m.SSEDecoder()
        assert events_in([b"data: a" + end], decoder) == [("a", "message")]
        assert events_in([b"\ndata: b\n\n"], decoder) == [("b", "message")]

    def test_an_id_counts_once_its_event_is_complete(self):
        """§9.2.5: or else what a cut swallowed would never be sent again."""
        decoder = m.SSEDecoder("3")
        assert events_in([b"data: a\n\nid: 4\ndata: lost"], decoder) == [("a", "message")]
        assert decoder.last_id == "3"
        assert events_in([b"\n\n"], decoder) == [("lost", "message")] and decoder.last_id == "4"
        assert events_in([b"id: 5\n\n"], decoder) == [] and decoder.last_id == "5"

    @pytest.mark.parametrize("value, expected", RETRIES)
    def test_retry_is_ascii_digits(self, value, expected):
        decoder = m.SSEDecoder()
        assert decoder.feed(b"retry:" + value + b"\n") == [] and decoder.retry_ms == expected

    @pytest.mark.parametrize("data", [b"data: 78901234567890\n\n", b"data: 789\ndata: 7890\n\n", b"x" * 21])
    def test_an_event_has_a_limit(self, data):
        class Short(m.SSEDecoder):
            limit = 20

        for pieces in ways(data):
            with pytest.raises(m.LimitExceeded):
                events_in([b"data: a\n\n", b": ping\n" * 20, *pieces], Short())
        assert events_in([data[:-3] + b"\n\n"], Short()) is not None

    def test_random_streams_against_the_reference(self):
        dice, parts = rng("sse"), [b"\r", b"\n", b"\r\n", b"\n\n", b":", b" ", b"data", b"data: ", b"event: ",
                                   b"id: ", b"id", b"retry: 9", b"x", b"\x00", b"\xe2\x82", b"\xff"]  # fmt: skip
        for _ in range(3000):
            data = b"".join(dice.choices(parts, k=dice.randint(1, 25)))
            cuts = sorted(dice.choices(range(len(data) + 1), k=3))
            pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
            expected = reference_events(data)
            assert events_in(pieces) == [event[:2] for event in expected], pieces
            assert ids_in(data) == [event[2] for event in expected], data


SESSION_STATUSES = [  # method, path, headers that differ, status; None leaves a header out
    ("POST", "/mcp", {}, 202), ("POST", "/mcp/", {}, 202), ("POST", "/nowhere", {}, 404),
    ("POST", "/nowhere", {"host": "elsewhere.example"}, 404),
    ("POST", "/mcp", {"content_type": "application/json; charset=utf-8"}, 202),
    ("POST", "/mcp", {"content_type": "text/plain"}, 415), ("POST", "/mcp", {"content_type": None}, 415),
    ("POST", "/mcp", {"accept": "*/*"}, 202),
    ("POST", "/mcp", {"accept": None}, 202), ("POST", "/mcp", {"accept": "application/json"}, 202),
    ("POST", "/mcp", {"accept": "application/json;q=0.5, TEXT/event-stream"}, 202),
    ("POST", "/mcp", {"mcp_session_id": None}, 400), ("POST", "/mcp", {"mcp_session_id": "unknown"}, 404),
    ("POST", "/mcp", {"mcp_protocol_version": "1999-01-01"}, 400),
    ("POST", "/mcp", {"mcp_protocol_version": None}, 202),
    ("GET", "/mcp", {"mcp_session_id": None}, 400),
    ("GET", "/mcp", {"mcp_session_id": "unknown"}, 404), ("GET", "/mcp", {"mcp_protocol_version": V5}, 405),
    ("GET", "/mcp", {"last_event_id": "x"}, 400), ("GET", "/mcp", {"last_event_id": "0123456789abcdef-2"}, 400),
    ("PUT", "/mcp", {}, 405), ("DELETE", "/mcp", {"mcp_session_id": "unknown"}, 404),
    ("DELETE", "/mcp", {"mcp_protocol_version": V5}, 405), ("DELETE", "/mcp", {}, 204),
    ("OPTIONS", "/mcp", {}, 204), ("OPTIONS", "/nowhere", {}, 404),
]  # fmt: skip
# What differs in the headers, in _meta and in the rest of a call; status, code. None leaves something out. The
# metadata come before the headers, the revision before the rest of them, and all of them before the handler.
MODERN_STATUSES = [
    ({}, {}, {}, 200, None), ({"mcp_name": "=?base64?ZWNobw==?="}, {}, {}, 200, None),
    ({"mcp_session_id": "whatever", "last_event_id": "1-1"}, {}, {}, 200, None),
    ({}, {}, {"_meta": None}, 400, -32602), ({}, {"protocolVersion": None}, {}, 400, -32602),
    ({}, {"protocolVersion": 5}, {}, 400, -32602), ({}, {"clientCapabilities": None}, {}, 400, -32602),
    ({}, {"clientCapabilities": []}, {}, 400, -32602), ({}, {"clientInfo": "me"}, {}, 400, -32602),
    ({}, {"logLevel": "loud"}, {}, 400, -32602), ({"mcp_method": None}, {"clientCapabilities": None}, {}, 400, -32602),
    ({"mcp_protocol_version": "v999"}, {"clientCapabilities": None}, {}, 400, -32602),
    ({"mcp_protocol_version": None}, {}, {}, 400, -32020), ({"mcp_protocol_version": V4}, {}, {}, 400, -32020),
    ({}, {"protocolVersion": "v999"}, {}, 400, -32020),
    ({"mcp_protocol_version": None}, {"protocolVersion": "v999"}, {}, 400, -32020),
    ({"mcp_protocol_version": "v999"}, {"protocolVersion": "v999"}, {}, 400, -32022),
    ({"mcp_protocol_version": V4}, {"protocolVersion": V4}, {}, 400, -32022),
    ({"mcp_protocol_version": "v999", "mcp_method": None}, {"protocolVersion": "v999"}, {"method": "no/such"}, 400, -32022),
    ({"mcp_method": None}, {}, {}, 400, -32020), ({"mcp_method": "tools/list"}, {}, {}, 400, -32020),
    ({"mcp_method": "TOOLS/CALL"}, {}, {}, 400, -32020), ({"mcp_method": "x"}, {}, {"method": "no/such"}, 400, -32020),
    ({"mcp_name": None}, {}, {}, 400, -32020), ({"mcp_name": "other"}, {}, {}, 400, -32020),
    ({"mcp_name": "ECHO"}, {}, {}, 400, -32020), ({"mcp_name": "=?base64?%%%?="}, {}, {}, 400, -32020),
    ({"mcp_name": "\xe4dd"}, {}, {}, 400, -32020), ({"mcp_name": "echo"}, {}, {"name": "nowhere"}, 400, -32020),
    ({}, {}, {"method": "no/such"}, 404, -32601), ({}, {}, {"name": "nowhere"}, 400, -32602),
    ({}, {}, {"name": None}, 400, -32602), ({}, {}, {"name": "ask", "arguments": {}}, 400, -32021),
    ({}, {}, {"name": "where", "arguments": {"region": "eu"}}, 400, -32020),
    ({}, {}, {"name": "where", "arguments": {"region": "eu", "count": []}}, 400, -32020),
]  # fmt: skip
ERRORS = [  # a call's error, and its status in a session and without
    (-32601, 200, 404), (-32602, 200, 400), (-32000, 200, 200), (-1, 200, 200),
    (-32002, 200, 400), (-32021, 200, 400), (-32042, 200, 200),
]  # fmt: skip


class TestMessagesOverHTTP:
    """Which message is it, and what comes back?"""

    @pytest.mark.parametrize("method, path, headers, status", SESSION_STATUSES)
    async def test_statuses_in_a_session(self, method, path, headers, status, caller):
        body = INITIALIZED if method in ("POST", "PUT") else b""
        got, fields, answer = await caller.ask(method, body, path, **headers)
        assert got == status, answer
        if status == 405:  # RFC 9110 §15.5.6
            assert "POST" in fields["allow"] and method not in fields["allow"]
        if status >= 400:
            assert answer["error"]["message"]

    @pytest.mark.parametrize("headers, meta, changes, status, code", MODERN_STATUSES)
    async def test_headers_and_body_agree_where_there_are_no_sessions(self, headers, meta, changes, status, code, stranger):
        """spec: basic/transports/streamable-http#server-validation"""
        msg, _ = modern_call(7, "echo", {"text": "x"})
        msg["method"] = changes.get("method", msg["method"])
        msg["params"]["_meta"].update({META + name: value for name, value in meta.items()})
        msg["params"].update({name: value for name, value in changes.items() if name != "method"})
        for place in (msg["params"], msg["params"].get("_meta") or {}):
            for name in [name for name, value in place.items() if value is None]:
                del place[name]
        for _ in range(2):  # the second finds the same head again
            got, fields, answer = await stranger.post(msg, **{**mirrored(msg), **headers})
            assert (got, answer.get("error", {}).get("code"), answer["id"]) == (status, code, 7)
            assert fields["content-type"] == "application/json" and "mcp-session-id" not in fields

    @pytest.mark.parametrize("meta", [{}, {"progressToken": 1}])
    async def test_an_unknown_revision_in_the_header_alone_is_answered_with_ours(self, meta):
        """streamable-http#protocol-version-header: "listing its supported versions"."""
        async with http_calling(opened=False) as (caller, _):
            msg = request_of(1, "tools/list", _meta=meta)
            status, _, answer = await caller.post(msg, mcp_protocol_version="2099-01-01")
        data = {"supported": DATES[::-1], "requested": "2099-01-01"}
        assert (status, answer["id"], answer["error"]["code"], answer["error"]["data"]) == (400, 1, -32022, data)

    @pytest.mark.parametrize("change, code", [({"method": 5}, -32600), ({"params": [1]}, -32602), ({"jsonrpc": "1.0"}, -32600)])
    async def test_a_malformed_request_is_refused_with_its_id(self, change, code, stranger):
        """basic/index#error-responses: "MUST include the same ID" where it can be read."""
        msg, fields = modern(4, "tools/list")
        status, _, answer = await stranger.post({**msg, **change}, **fields)
        assert (status, answer["id"], answer["error"]["code"]) == (400, 4, code)

    @pytest.mark.parametrize("code, legacy, modern", ERRORS)
    async def test_an_error_has_the_status_of_its_era(self, code, legacy, modern):
        app = m.Server()

        @app.tool
        async def refuse() -> str:
            raise m.RPCError(code, "no")

        async with http_calling(app) as (caller, _):
            assert (await caller.post(call_of(1, "refuse")))[0] == legacy
            msg, fields = modern_call(1, "refuse")
            assert (await caller.post(msg, **fields, mcp_session_id=None))[0] == modern

    @pytest.mark.parametrize("body, code", [(b"{", -32700), (b"\xff", -32700), (b"[]", -32600), (b"5", -32600),
                                            (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600)])  # fmt: skip
    async def test_a_body_that_is_not_a_message_is_a_bad_request(self, body, code, caller):
        status, _, answer = await caller.post(body)
        assert (status, answer["error"]["code"]) == (400, code)

    @pytest.mark.parametrize("revision", LEGACY_DATES[1:])
    async def test_an_answer_is_json_until_something_is_said_first(self, revision):
        async with http_calling(revision=revision) as (caller, _):
            status, headers, answer = await caller.post(call_of(7, "echo", {"text": "é"}))
            assert (status, headers["content-type"]) == (200, "application/json") and answer["id"] == 7
            assert "mcp-session-id" not in headers
            events = await caller.events("POST", call_of(8, "count", {"to": 3}))
            assert "no-cache" in events.head.headers["cache-control"]
            assert events.head.headers["x-accel-buffering"] == "no"
            text = await events.block()  # only the revision with polling primes the stream
            assert bool(re.fullmatch(r"id: \S+-0\nretry: \d+\ndata: ?", text)) == (revision == V4)
            assert len(await events.messages()) == (4 if revision == V4 else 3)

    async def test_notifications_and_answers_are_accepted_without_a_body(self, caller):
        for msg in (INITIALIZED, {"jsonrpc": "2.0", "id": 5, "result": {}}):
            assert (await caller.post(msg))[::2] == (202, b"")
        msg, fields = {"jsonrpc": "2.0", "id": 5, "result": {}}, {"mcp_protocol_version": V5}
        assert await caller.status("POST", msg, **fields) == 400
        assert await caller.status("POST", {**msg, "params": [1]}) == 202
        assert await caller.status("POST", [modern(1, "tools/list")[0]], **fields) == 400
        # A modern client cancels by closing; the notification says nothing to us.
        msg = notification("notifications/cancelled", requestId=1)
        assert await caller.status("POST", msg, **fields) == 202

    async def test_no_notification_cancels_a_request_where_there_are_no_sessions(self):
        """Anybody may send it, and ids are of one client each."""
        app = sample_app()
        async with http_calling(app, opened=False) as (caller, _):
            msg, fields = modern_call(1, "wait", {"gate": "g"})
            wire = await caller.begin("POST", msg, **fields)
            await until(lambda: app.log)
            msg = notification("notifications/cancelled", requestId=1)
            assert await caller.status("POST", msg, mcp_protocol_version=V5) == 202
            msg, fields = modern_call(1, "echo", {"text": "x"})
            assert (await caller.post(msg, **fields))[0] == 200, "another client may use the same id"
            app.gate_of("g").set_result(None)
            assert json.loads((await wire.answer())[2])["result"] and app.log == ["g begins", "g ends"]

    @pytest.mark.parametrize("revision, status", [(V2, 200), (V3, 400), (V4, 400)])
    async def test_a_batch_is_answered_in_one_array_where_the_revision_has_batches(self, revision, status):
        async with http_calling(revision=revision) as (caller, _):
            got, _, answer = await caller.post([PING, INITIALIZED, {**PING, "id": 2}])
            assert got == status
            if status == 200:
                assert sorted(msg["id"] for msg in answer) == [1, 2]
                assert (await caller.post([INITIALIZED, INITIALIZED]))[::2] == (202, b"")
                events = await caller.events("POST", [call_of(3, "count", {"to": 1}), PING])
                assert {type(msg) for msg in await events.messages()} == {dict, list}

    async def test_a_handshake_is_legacy_whatever_its_headers_say(self, stranger):
        status, headers, answer = await stranger.post(hello(V4), mcp_protocol_version=V5)
        assert status == 200 and answer["result"]["protocolVersion"] == V4 and headers["mcp-session-id"]

    async def test_an_id_that_is_in_use_is_refused(self, app, caller):
        wire = await caller.begin("POST", call_of(1, "wait", {"gate": "g"}))
        await until(lambda: app.log)
        assert (await caller.post(PING))[2]["error"]["code"] == -32600
        app.gate_of("g").set_result(None)
        assert json.loads((await wire.answer())[2])["result"]

    async def test_a_cancelled_request_ends_its_post_without_an_answer(self, app, caller):
        for say in (False, True):
            wire = await caller.begin("POST", call_of(1, "wait", {"gate": "g", "say": say}))
            await until(lambda: app.log[-1:] == ["g begins"])
            msg = notification("notifications/cancelled", requestId=1)
            assert await caller.status("POST", msg) == 202
            status, headers, body = await wire.answer()
            assert (status, headers["content-type"]) == (200, "text/event-stream") and b'"id":1' not in body
            await until(lambda: app.log[-1:] == ["g cancelled"])
            app.waiting.clear()

    async def test_the_server_asks_on_the_calls_own_stream_and_is_answered_by_another_post(self, stranger):
        await stranger.open(elicitation={})
        events = await stranger.events("POST", call_of(1, "ask"))
        question = await events.message()
        assert question["method"] == "elicitation/create"
        result = {"action": "accept", "content": {"value": True}}
        assert await stranger.status("POST", result_of(question, **result)) == 202
        assert (await events.message())["result"]["content"][0]["text"] == "accept True"


class TestSessionsOverHTTP:
    """spec 2025-11-25: basic/transports#session-management"""

    async def test_an_id_cannot_be_guessed_and_goes_with_the_answer_to_initialize_only(self, stranger):
        found = [(await stranger.post(hello()))[1]["mcp-session-id"] for _ in range(20)]
        assert len(set(found)) == 20 and all(re.fullmatch(r"[\x21-\x7e]{20,}", each) for each in found)
        broken = hello()
        del broken["params"]["clientInfo"]
        _, headers, answer = await stranger.post({**broken, "params": {"protocolVersion": 5}})
        assert "error" in answer and "mcp-session-id" not in headers

    async def test_delete_ends_it_and_what_runs_in_it(self, app, caller):
        wire = await caller.begin("POST", call_of(1, "wait", {"gate": "g"}))
        stream = await caller.events("GET")
        await until(lambda: app.log)
        assert await caller.status("DELETE") == 204
        assert await stream.messages() == []
        assert "error" in json.loads((await wire.answer())[2])
        await until(lambda: app.log == ["g begins", "g cancelled"])
        assert await caller.status("POST", PING) == 404

    async def test_an_idle_one_expires_and_a_used_one_does_not(self):
        app = sample_app()
        async with http_calling(app, session_seconds=100) as (caller, _):
            async with Caller(caller.url) as other:
                await other.open()
                leap = time_machine()
                for _ in range(3):
                    leap(60)
                    await arrived()
                    assert await caller.status("POST", PING) == 200
                assert await other.status("POST", PING) == 404
                stream = await caller.events("GET")  # whoever reads a stream uses it
                leap(200)
                await arrived()
                assert await caller.status("POST", PING) == 200
                stream.drop()

    async def test_an_idle_one_holds_4_kib(self):
        import tracemalloc

        body = json.dumps(hello()).encode()
        data = (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body))  # fmt: skip
        async with m.Server("demo").http(port=0) as server, await Wire.open(server.url) as wire:
            for _ in range(2):  # the first ones fill what is shared by all
                gc.collect()
                tracemalloc.start()
                for _ in range(300):
                    wire.send(data)
                    assert (await wire.answer())[0] == 200
                gc.collect()
                held = tracemalloc.get_traced_memory()[0] / 300
                tracemalloc.stop()
        assert held < (4096 if sys.version_info >= (3, 11) else 5632)  # in Python 3.9, each object has a dict

    async def test_a_legacy_client_without_a_session_cannot_be_asked_and_the_error_says_why(self):
        app = m.Server()
        app.tool(lambda ctx: ctx.elicit("Sure?"), name="ask")
        async with http_calling(app, opened=False, sessions=False) as (caller, _):
            result = (await caller.post(call_of(1, "ask", {})))[2]["result"]
        said = "without sessions, clients before 2026-07-28 cannot be asked"
        assert result == {"content": [{"type": "text", "text": said}], "isError": True}
        greeting = hello()
        greeting["params"]["clientInfo"] = {}
        async with lines_to(app, None) as lines:  # a session, of a client without a name
            lines.put(greeting, INITIALIZED)
            lines.call(1, "ask")
            await lines.take()
            [block] = (await lines.take())["result"]["content"]
        assert block["text"] == "the client did not declare the capability 'elicitation'"

    async def test_without_sessions_a_request_ends_with_its_functions_of_at_end(self):
        app, ended = m.Server(), []

        @app.tool
        async def work(ctx: m.Context) -> None:
            ctx.at_end(lambda: ended.append(1))

        async with http_calling(app, opened=False, sessions=False) as (caller, _):
            assert await caller.status("POST", call_of(1, "work", {})) == 200
            await eventually(lambda: ended == [1])

    async def test_without_sessions_every_request_stands_alone(self):
        async with http_calling(sample_app(), opened=False, sessions=False) as (caller, _):
            status, headers, answer = await caller.post(hello())
            assert status == 200 and "mcp-session-id" not in headers
            assert "listChanged" not in answer["result"]["capabilities"]["tools"]
            assert (await caller.post(call_of(1, "echo", {"text": "x"})))[2]["result"]
            assert await caller.status("GET") == 405 and await caller.status("DELETE") == 405
            events = await caller.events("POST", call_of(1, "count", {"to": 2}))
            assert len(await events.messages()) == 3

    async def test_another_principals_session_is_not_there(self):
        """CVE-2026-52869, CVE-2026-52870"""
        tokens = {"a": {"sub": "alice"}, "b": {"sub": "bob"}, "c": {"sub": "alice", "scope": "write"}}
        async with http_calling(token=tokens, headers={"authorization": "Bearer a"}) as (caller, _):
            assert await caller.status("POST", PING, authorization="Bearer c") == 200
            for method, body in (("POST", PING), ("GET", b""), ("DELETE", b"")):
                assert await caller.status(method, body, authorization="Bearer b") == 404
            assert await caller.status("POST", PING) == 200

    async def test_a_request_in_a_session_that_does_not_exist_is_refused_under_its_id(self):
        async with http_calling() as (caller, _):
            status, _, answer = await caller.post(call_of(7, "echo", {"text": "x"}), mcp_session_id="unknown")
            assert (status, answer["id"]) == (404, 7)


class TestStreamsOverHTTP:
    """spec 2025-11-25: basic/transports#resumability-and-redelivery"""

    async def test_messages_that_no_request_caused_come_on_the_standalone_stream(self, app, caller):
        app.tools_changed()  # what is announced before it is opened waits for it
        events = await caller.events("GET")
        assert "list_changed" in (await events.message())["method"]
        app.tools_changed()
        assert "list_changed" in (await events.message())["method"]
        assert await caller.status("GET") == 409  # a second reader
        events.drop()
        await idle()
        app.tools_changed()
        again = await caller.events("GET", last_event_id="")  # as if it were absent
        assert "list_changed" in (await again.message())["method"]

    async def test_an_announcement_from_before_the_first_reader_can_be_resumed_after(self, app, caller):
        app.tools_changed()
        events = await caller.events("GET")
        seen = [await events.next(), await events.next()]
        assert "list_changed" in seen[1].data
        app.tools_changed()
        rest = await caller.events("GET", last_event_id=seen[1].id)
        assert "list_changed" in (await rest.message())["method"]

    async def test_a_session_that_ends_leaves_nothing_behind(self):
        app, held = sample_app(), []

        @app.tool
        async def hold(ctx: m.Context) -> None:
            ctx.state["thing"] = m.Elicited("accept", {})
            held.append(weakref.ref(ctx.state["thing"]))

        async with http_calling(app) as (caller, server):
            await caller.post(call_of(1, "hold"))
            events = await caller.events("GET")
            app.tools_changed()
            await events.message()
            assert len(server.kept) == 1
            assert await caller.status("DELETE") == 204
            events.drop()
            del events
            await until(lambda: not server.kept and gc.collect() >= 0 and held[0]() is None)

    async def test_a_client_that_resumes_gets_the_missed_events_once_even_while_another_reads(self, app, caller):
        first = await caller.events("GET")
        seen = [await first.next()]
        for _ in range(3):
            app.tools_changed()
            seen.append(await first.next())
        second = await caller.events("GET", last_event_id=seen[1].id)
        assert [(await second.next()).id for _ in range(2)] == [event.id for event in seen[2:]]
        assert await first.next() is None  # its stream is another's now

    @pytest.mark.parametrize("revision", LEGACY_DATES[1:])
    async def test_an_answer_that_was_cut_is_taken_up_after_any_event(self, revision):
        async with http_calling(revision=revision) as (caller, _):
            for after in range(4):
                events = await caller.events("POST", call_of(1, "count", {"to": 3}))
                seen = [event for event in [await events.next() for _ in range(4 + (revision == V4))] if event.data]
                rest = await caller.events("GET", last_event_id=seen[after].id)
                assert [event.data for event in seen[after + 1 :]] == [
                    (await rest.next()).data for _ in seen[after + 1 :]]  # fmt: skip
                assert await rest.next() is None

    async def test_a_cut_before_the_answer_loses_nothing(self, app, caller):
        events = await caller.events("POST", call_of(1, "wait", {"gate": "g", "say": True, "after": True}))
        primed, said = await events.next(), await events.next()
        assert primed.data == "" and "before" in said.data
        events.answer.reset()
        await idle()
        app.gate_of("g").set_result(None)
        await until(lambda: "g ends" in app.log)
        rest = await caller.events("GET", last_event_id=said.id)
        assert [msg.get("id", msg.get("method")) for msg in await rest.messages()] == ["acme/after", 1]

    async def test_a_stream_closed_on_purpose_is_polled(self):
        app = sample_app()
        async with http_calling(app) as (caller, _):
            events = await caller.events("POST", call_of(1, "poll", {"gate": "g"}))
            seen = [await events.next(), await events.next()]
            assert seen[0].id and seen[1].retry == "5" and await events.next() is None
            rest = await caller.events("GET", last_event_id=seen[0].id)
            app.gate_of("g").set_result(None)
            assert (await rest.messages())[0]["result"]["structuredContent"] == {"result": True}
        async with http_calling(app, revision=V3) as (caller, _):  # nobody would come back
            app.waiting.clear()
            asked = asyncio.ensure_future(caller.post(call_of(1, "poll", {"gate": "g"})))
            await until(lambda: app.waiting)
            app.gate_of("g").set_result(None)
            assert (await asked)[2]["result"]["structuredContent"] == {"result": False}

    async def test_kept_events_are_bounded_and_a_client_that_resumes_too_late_is_refused(self):
        app = m.Server()

        @app.tool
        async def flood(ctx: m.Context) -> int:
            for _ in range(80):
                await ctx.notify("acme/n", {"text": "x" * 1_000_000})
            return 0

        async with http_calling(app) as (caller, _):
            events = await caller.events("POST", call_of(1, "flood"))
            first = await events.next()
            seen = []
            while (event := await events.next()) is not None:
                seen.append(event.id)
            assert await caller.status("GET", last_event_id=first.id) == 400
            rest = await caller.events("GET", last_event_id=seen[-2])
            assert len(await rest.messages()) == 1

    async def test_kept_events_are_bounded_over_all_sessions(self, monkeypatch):
        monkeypatch.setattr(m, "HELD_BYTES", 500_000)
        app = m.Server()

        @app.tool
        async def say(ctx: m.Context) -> int:
            await ctx.notify("acme/n", {"text": "x" * 300_000})
            return 0

        async with app.http(port=0) as server, Caller(server.url) as one, Caller(server.url) as two:
            firsts = []
            for caller in (one, two):
                await caller.open()
                events = await caller.events("POST", call_of(1, "say"))
                firsts.append((await events.next()).id)
                await events.messages()
            assert await one.status("GET", last_event_id=firsts[0]) == 400
            assert len(await (await two.events("GET", last_event_id=firsts[1])).messages()) == 2

    async def test_the_first_revision_has_a_pair_of_urls(self):
        """spec 2024-11-05: basic/transports#http-with-sse"""
        app = sample_app()
        async with http_calling(app, opened=False) as (caller, _):
            events = await caller.events("GET", b"", "/sse")
            first = await events.next()
            assert first.event == "endpoint" and first.data.startswith("/messages?session_id=")
            where = first.data
            status, _, body = await caller.ask("POST", hello(V1), where)
            assert (status, body) == (202, b"Accepted")
            assert (await events.message())["result"]["protocolVersion"] == V1
            assert await caller.status("POST", INITIALIZED, where) == 202
            await caller.ask("POST", call_of(1, "count", {"to": 2}), where)
            assert [(await events.message()).get("id") for _ in range(3)] == [None, None, 1]
            app.tools_changed()
            assert "list_changed" in (await events.message())["method"]
            await caller.ask("POST", b"{", where)
            assert (await events.message())["error"]["code"] == -32700
            assert await caller.status("POST", INITIALIZED, where, content_type="text/plain") == 415
            for wrong in ("/messages", "/messages?session_id=x"):
                assert await caller.status("POST", INITIALIZED, wrong) == 404
            await caller.ask("POST", call_of(3, "wait", {"gate": "g"}), where)
            await until(lambda: app.log)
            events.drop()
            await eventually(lambda: app.log == ["g begins", "g cancelled"])
            assert await caller.status("POST", INITIALIZED, where) == 404
        async with http_calling(opened=False, sessions=False) as (caller, _):
            assert await caller.status("GET", b"", "/sse") == 404

    async def test_a_client_that_does_not_read_its_sse_stream_has_its_next_post_wait(self):
        app = m.Server()

        @app.tool(structured=False)
        async def big() -> str:
            return "x" * 8_000_000

        async with http_calling(app, opened=False) as (caller, _):
            events = await caller.events("GET", b"", "/sse")
            where = (await events.next()).data
            await caller.status("POST", hello(V1), where)
            await events.message()
            await caller.status("POST", INITIALIZED, where)
            events.answer.writer.transport.pause_reading()
            await caller.status("POST", call_of(1, "big"), where)
            await arrived()
            stuck = asyncio.ensure_future(caller.status("POST", PING, where))
            await arrived()
            assert not stuck.done()
            events.answer.writer.transport.resume_reading()
            assert (await events.message())["id"] == 1 and await stuck == 202

    async def test_a_question_that_is_given_up_before_its_client_has_read_it_is_cancelled(self):
        """spec 2025-11-25: basic/utilities/cancellation -- else the user is asked in vain"""
        app, given_up = m.Server(), asyncio.Event()

        @app.tool
        async def impatient(ctx: m.Context) -> None:
            await ctx.notify("acme/begins")
            await asyncio.sleep(0.1)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(ctx.elicit("?" * 15_000_000, bool), 0.5)
            given_up.set()

        async with http_calling(app, opened=False) as (caller, _):
            await caller.open(elicitation={})
            events = await caller.events("POST", call_of(1, "impatient"))
            events.answer.writer.transport.pause_reading()
            await given_up.wait()
            events.answer.writer.transport.resume_reading()
            methods = [(await events.message())["method"] for _ in range(3)]
            assert methods == ["acme/begins", "elicitation/create", "notifications/cancelled"]


HOSTS_AND_ORIGINS = [  # options, Host, Origin, status of a ping without a session (400) or a refusal (403)
    ({}, "localhost", None, 400), ({}, "LOCALHOST:1", None, 400), ({}, "127.0.0.1:8000", None, 400),
    ({}, "[::1]:80", None, 400), ({}, "evil.example", None, 403), ({}, "localhost.evil.example", None, 403),
    ({}, "192.0.2.7", None, 400), ({}, "[2001:db8::1]:81", None, 400), ({}, "1.2.3.4.evil.example", None, 403),
    ({}, "localhost", "http://localhost:3000", 400), ({}, "localhost", "https://evil.example", 403),
    ({}, "localhost", "null", 403), ({}, "localhost", "nonsense", 403), ({}, "localhost", "", 403),
    ({"allowed_hosts": "a.example"}, "A.example:81", None, 400), ({"allowed_hosts": "a.example"}, "b.example", None, 403),
    ({"allowed_hosts": "a.example"}, "192.0.2.7", None, 403), ({"allowed_hosts": "a.example"}, "localhost", None, 400),
    ({"allowed_hosts": "a.example"}, "a.example", "https://a.example", 400),
    ({"allowed_hosts": "*"}, "evil.example", None, 400),
    ({"allowed_hosts": "*"}, "evil.example", "https://evil.example", 403),
    ({"allowed_origins": "https://app.example"}, "localhost", "https://app.example", 400),
    ({"allowed_origins": "https://app.example"}, "localhost", "https://app.example.evil", 403),
    ({"allowed_origins": "*"}, "localhost", "https://any.example", 400),
    ({"token": "t"}, "evil.example", None, 401),  # a page that binds its name has no token
    ({"token": "t"}, "evil.example", "https://evil.example", 403),
]  # fmt: skip
#: Options that are refused when the server is made.
BAD_OPTIONS = [
    {"token": ""}, {"token": []}, {"token": "a b"}, {"token": {"a": None}}, {"path": "mcp"}, {"path": "/{who}/mcp"}, {"path": "/sse"},
    {"port": 70000}, {"port": "80"}, {"host": ""}, {"max_body": 1 << 30}, {"auth": "oauth"},
    {"nonsense": 1}, {"ssl": ""}, {"allowed_hosts": ["*.example.com"]}, {"allowed_hosts": "example.com:*"}, {"allowed_hosts": [""]},
    {"allowed_origins": ["http://localhost:*"]},
]  # fmt: skip


class TestWhoMayComeIn:
    """Host, Origin and token, in this order, before the body."""

    @pytest.mark.parametrize("options, host, origin, status", HOSTS_AND_ORIGINS)
    async def test_hosts_and_origins(self, options, host, origin, status):
        """DNS rebinding: a page binds its own name to our address."""
        async with http_calling(opened=False, **options) as (caller, _):
            for _ in range(2):
                got, headers, answer = await caller.post(PING, host=host, origin=origin)
                assert got == status, answer
                assert status != 403 or "allowed_" in answer["error"]["message"]
                if origin and status != 403:  # a page can read the answer
                    assert headers["access-control-allow-origin"] == origin
                    assert "Mcp-Session-Id" in headers["access-control-expose-headers"]

    async def test_a_page_for_any_host_lets_no_origin_read_it(self):
        async with pages().http(port=0) as server:
            status, headers, _ = await ask(server.url, target="/a", origin="https://evil.example")
            assert status == 200 and "access-control-allow-origin" not in headers
            assert headers["vary"] == "Origin"

    async def test_a_preflight_needs_no_token_but_its_origin_and_a_page_can_read_a_refusal(self):
        origin = "http://localhost:3000"
        async with http_calling(opened=False, token="t") as (caller, _):
            status, headers, _ = await caller.ask("OPTIONS", host="mcp.example", origin="https://evil.example",
                                                  access_control_request_method="POST")  # fmt: skip
            assert status == 403 and "access-control-allow-origin" not in headers
            status, headers, _ = await caller.ask("OPTIONS", host="mcp.example", origin=origin,
                                                  access_control_request_method="POST", access_control_request_headers="mcp-param-x")  # fmt: skip
            assert status == 204 and headers["access-control-allow-origin"] == origin
            assert headers["access-control-allow-headers"] == "mcp-param-x"
            assert "POST" in headers["access-control-allow-methods"]
            status, headers, _ = await caller.post(PING, origin=origin)
            assert status == 401 and headers["access-control-allow-origin"] == origin
            assert headers["www-authenticate"].startswith("Bearer")

    async def test_a_token_says_who_it_is_and_no_handler_sees_it(self):
        def verify(token):
            return {"sub": token[2:]} if token.startswith("v-") else None

        for options, token, wanted in (
            ({"token": "t"}, "t", "bearer-1"), ({"token": ["s", "t"]}, "t", "bearer-2"),
            ({"token": {"t": {"name": "ann"}}}, "t", {"name": "ann"}), ({"verify": verify}, "v-ann", {"sub": "ann"}),
        ):  # fmt: skip
            fields = {"authorization": f"bearer {token}", "x-test": "yes"}
            async with http_calling(headers=fields, **options) as (caller, _):
                answer = (await caller.post(call_of(1, "who")))[2]
                assert answer["result"]["structuredContent"]["result"] == [wanted, None, "yes"]
                for wrong in ("Bearer", "Bearer x", "Basic t", "t", None, f"Bearer x{token}"):
                    assert await caller.status("POST", PING, authorization=wrong) == 401

    async def test_whoever_has_no_right_token_is_refused_before_the_body_is_read(self):
        judged = []

        async def verify(token):
            judged.append(token)
            if token == "bad":
                raise ValueError("the judge is ill")
            return token == "right" and "ann"

        async with sample_app().http(port=0, verify=verify) as server:
            for token, body, wanted in (
                ("wrong", b"Content-Length: 999999\r\n\r\n", 401), ("wrong", b"Transfer-Encoding: chunked\r\n\r\n", 401),
                ("bad", b"Content-Length: 999999\r\n\r\n", 503),
                ("right", b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n", 100),
                ("wrong", b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n", 401),
            ):  # fmt: skip
                async with await Wire.open(server.url) as wire:
                    wire.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                              b"Authorization: Bearer " + token.encode() + b"\r\n" + body)  # fmt: skip
                    head = await wire.read_head()
                    assert head.status == wanted
                    if wanted == 100:
                        wire.send(b"{}")
                        assert (await wire.answer())[0] == 400
                    else:
                        await wire.body()
                        assert await wire.everything() == b""
        assert judged == ["wrong", "wrong", "bad", "right", "wrong"], "each is judged once"

    async def test_http_1_0_expects_nothing(self):
        async with sample_app().http(port=0) as server, await Wire.open(server.url) as wire:
            wire.send(b"POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")  # fmt: skip
            await idle()
            wire.send(b"{}")
            assert (await wire.read_head()).status == 400

    async def test_a_client_that_leaves_while_its_token_is_judged_leaves_nothing(self):
        begun = []

        async def verify(token):
            begun.append(asyncio.get_running_loop().create_future())
            await begun[-1]
            return "ann"

        app = sample_app()
        async with http_calling(app, opened=False, verify=verify) as (caller, server):
            msg, fields = modern_call(1, "wait", {"gate": "g"})
            for method, body, more in (("POST", hello(), {}), ("GET", b"", {}), ("POST", msg, fields)):
                wire = await caller.begin(method, body, authorization="Bearer x", **more)
                await until(lambda: begun)
                wire.reset() if more else wire.drop()
                await arrived()
                begun.pop().set_result(None)
                await idle()
            assert app.log in ([], ["g begins", "g cancelled"])

    @pytest.mark.parametrize("options", BAD_OPTIONS)
    async def test_an_option_that_nobody_can_mean_is_an_error_at_the_start(self, options):
        with pytest.raises((ValueError, TypeError, OverflowError, m.CannotServe)):
            async with m.Server().http(**{"port": 0, **options}):
                pass

    @pytest.mark.parametrize("host", ["", None])
    def test_an_empty_host_is_refused_before_anything_begins(self, host):
        with pytest.raises(ValueError, match="^host=.*: an address is required; 0.0.0.0 means all addresses$"):
            m.Server().http(host=host, port=0)

    @pytest.mark.parametrize("port", [-1, 65536, 99999, "8000", None])
    def test_a_port_is_an_integer_that_a_port_can_have(self, port):
        with pytest.raises(ValueError, match="must be an integer from 0 to 65535"):
            m.Server().run("http", port=port)

    @pytest.mark.parametrize("prefix", ["日", "é", "a\r\nx-a: b", " a", "a\n", "\x7f"])
    def test_a_session_prefix_is_what_the_id_of_a_session_may_contain(self, prefix):
        for make in (m.Server().http, m.Server().asgi_with):
            with pytest.raises(ValueError, match="session_prefix=.*visible ASCII"):
                make(session_prefix=prefix)

    async def test_pages_beside_the_endpoint(self):
        app = m.Server()
        bodies = {"/text": "hé", "/bytes": b"\0", "/json": {"a": [1]}, "/all": (404, "text/x", "y"),
                  "/missing": (404, "application/json", {"a": 1}), "/headers": (302, {"location": "/x"}, b""),
                  "/fresh": (200, {"cache-control": "no-store"}, {"a": 1}), "/none": (204, "text/plain", ""),
                  "/untyped": (200, "", "x"), "/same": (304, {"etag": '"1"'}, None)}  # fmt: skip
        for path, value in bodies.items():
            app.route("GET", path, public=path != "/text")(lambda request, value=value: value)
        with pytest.raises(ValueError, match="already|has a page"):
            app.route("GET", "/text")(lambda request: "")
        async with app.http(port=0, token="t", healthz=True) as server:
            found = {path: await ask(server.url, target=path) for path in bodies}
            assert found.pop("/text")[0] == 401
            assert [(status, headers.get("content-type"), body) for status, headers, body in found.values()] == [
                (200, "text/plain; charset=utf-8", b"\0"), (200, "application/json", {"a": [1]}),
                (404, "text/x", b"y"), (404, "application/json", {"a": 1}), (302, None, b""),
                (200, "application/json", {"a": 1}), (204, "text/plain", b""),
                (200, "text/plain; charset=utf-8", b"x"), (304, None, b"")]  # fmt: skip
            assert (await ask(server.url, target="/text", authorization="Bearer t"))[2] == "hé".encode()
            async with await Wire.open(server.url) as wire:  # a probe calls by an address, without a token
                wire.send(b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                assert (await wire.answer())[::2] == (200, b"ok\n")
            assert (await ask(server.url, target="/readyz"))[0] == 200


class TestRunningAPort:
    """TCP, Unix sockets and TLS; how it ends."""

    @contextlib.contextmanager
    def server(self, before=""):
        """Start a server that serves HTTP in a process of its own; give the process and the URL."""
        code = before + "import mcp_lite as m\napp = m.Server()\napp.tool(lambda: 1, name='one')\napp.run('http', port=0)"
        with started([sys.executable, "-c", code], cwd=HERE, stderr=subprocess.PIPE) as process:
            yield process, re.search(r"http://\S+", process.stderr.readline().decode())[0]

    async def call(self, url):
        async with m.Client(url) as client:
            assert await client.call("one") == "1"

    def test_a_server_goes_on_listening_although_many_connections_are_reset(self):
        with self.server() as (process, url):
            where = urllib.parse.urlsplit(url)
            for _ in range(200):
                with socket.create_connection((where.hostname, where.port)) as sock:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii" if os.name != "nt" else "hh", 1, 0))
                    sock.sendall(b"GET /")
            reader = threading.Thread(target=process.stderr.read)
            reader.start()
            try:
                asyncio.run(self.call(url))
            finally:
                process.kill()
                reader.join()

    @posix
    def test_a_process_that_may_open_64_files_serves(self):
        with self.server("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n") as (_, url):
            asyncio.run(self.call(url))

    @posix
    async def test_a_unix_socket(self, tmp_path):
        path = str(tmp_path / "s")
        for _ in range(2):  # a stale one is replaced
            async with sample_app().http(uds=path) as server, Caller(server.url, uds=path) as caller:
                await caller.open()
                assert (await caller.post(PING))[0] == 200

    async def test_a_socket_of_somebody_elses(self):
        sock = socket.create_server(("127.0.0.1", 0))
        try:
            async with sample_app().http(sock=sock) as server, m.Client(server.url) as client:
                assert await client.call("echo", {"text": "x"}) == "x"
        finally:
            sock.close()

    async def test_both_ends_speak_tls(self, certificate, tmp_path):
        context = ssl.create_default_context(cafile=certificate[0])
        async with sample_app().http(port=0, ssl=certificate) as server:
            assert server.url.startswith("https://")
            for trust in (certificate[0], context):
                async with m.Client(server.url, ssl=trust) as client:
                    assert await client.call("echo", {"text": "x" * 100_000}) == "x" * 100_000
                    assert await client.call("count", {"to": 2}) == 2
            with pytest.raises(m.ConnectionClosed, match=r"(?s)cannot reach https.*certificate"):
                await m.Client(server.url).connect()
            with pytest.raises(m.ConnectionClosed):
                await m.Client(server.url.replace("https", "http")).connect()
            async with await Wire.open(server.url) as wire:  # garbage in place of a handshake
                wire.send(b"GET / HTTP/1.1\r\n\r\n")
                await wire.everything()
            async with await Wire.open(server.url, ssl=context) as wire:
                wire.send(b"POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 1x\r\n\r\n")
                assert (await wire.answer())[0] == 400
        for bad in (str(tmp_path / "none.pem"), __file__):
            with pytest.raises((ValueError, m.MCPError, OSError), match=re.escape(bad)):
                async with m.Server().http(port=0, ssl=bad):
                    pass

    async def test_a_tls_server_ends_without_a_lost_answer(self, certificate):
        app = sample_app()
        context = ssl.create_default_context(cafile=certificate[0])
        async with app.http(port=0, ssl=certificate, grace=5) as server:
            url = server.url
            wire = await Wire.open(url, ssl=context)
            data = json.dumps(hello()).encode()
            wire.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Content-Length: %d\r\n\r\n%b" % (len(data), data))  # fmt: skip
            assert (await wire.answer())[0] == 200
        assert await wire.everything() == b""
        wire.drop()

    async def test_a_connection_that_is_reset_under_tls_does_not_delay_the_end(self, certificate):
        context = ssl.create_default_context(cafile=certificate[0])
        async with sample_app().http(port=0, ssl=certificate, grace=100) as server:
            wire = await Wire.open(server.url, ssl=context)
            wire.reset()
            await arrived()  # the server hears of it before it ends

    async def test_new_work_is_refused_and_what_runs_finishes_within_the_grace(self):
        app = sample_app()
        server = await app.http(port=0, grace=10, healthz=True).__aenter__()
        async with Caller(server.url) as caller, Caller(server.url) as other:
            other.headers = (await caller.open()).headers
            stream = await caller.events("GET")
            call = asyncio.ensure_future(other.post(call_of(7, "wait", {"gate": "x"})))
            await until(lambda: app.log)
            ending = asyncio.ensure_future(server.__aexit__(None, None, None))
            assert await stream.messages() == []  # who only listens is let go at once
            assert (await caller.ask("GET", target="/readyz"))[0] == 503
            status, headers, answer = await caller.post(hello(), mcp_session_id=None)
            assert (status, headers["retry-after"], headers["connection"]) == (503, "2", "close")
            assert answer["error"]["message"] == "the server is shutting down"
            assert await caller.status("POST", INITIALIZED) == 202
            assert await caller.status("GET", b"", "/sse") == 503
            app.gate_of("x").set_result(None)
            assert (await call)[2]["result"]["content"][0]["text"] == "x"
            await ending

    @pytest.mark.parametrize("kind", ["session", "modern", "alone"])
    async def test_a_request_that_outlasts_the_grace_is_cancelled_and_gets_an_error(self, kind):
        app = sample_app()
        server = await app.http(port=0, grace=0, sessions=kind != "alone").__aenter__()
        async with Caller(server.url) as caller:
            if kind == "session":
                await caller.open()
            msg, fields = modern_call(7, "wait", {"gate": "x"})
            msg, fields = (msg, fields) if kind == "modern" else (call_of(7, "wait", {"gate": "x"}), {})
            call = asyncio.ensure_future(caller.post(msg, **fields))
            await until(lambda: app.log)
            await server.__aexit__(None, None, None)
            assert (await call)[2]["error"]["message"] == "the server is shutting down"
            assert app.log == ["x begins", "x cancelled"]

    async def test_a_subscription_ends_with_a_result(self):
        """spec: basic/patterns/subscriptions#graceful-closure"""
        server = await sample_app().http(port=0, grace=3600).__aenter__()
        async with Caller(server.url) as caller:
            msg, fields = modern_call(7, "none")
            msg["method"] = fields["mcp_method"] = "subscriptions/listen"
            msg["params"]["notifications"] = {"toolsListChanged": True}
            events = await caller.events("POST", msg, **{**fields, "mcp_name": None})
            assert "acknowledged" in (await events.message())["method"]
            await server.__aexit__(None, None, None)
            [last] = await events.messages()
            assert last["id"] == 7 and "result" in last

    async def test_an_open_door_is_pointed_out(self, caplog):
        async with m.Server().http(host="0.0.0.0", port=0):
            assert "without authentication" in caplog.text
        caplog.clear()
        async with m.Server().http(host="0.0.0.0", port=0, token="t"):
            assert "without authentication" not in caplog.text


@contextlib.asynccontextmanager
async def asgi_app(app, **options):
    """The app as an ASGI application whose lifespan is held open."""
    asgi = app.asgi_with(**options)
    events, said = asyncio.Queue(), asyncio.Queue()
    events.put_nowait({"type": "lifespan.startup"})
    task = asyncio.ensure_future(asgi({"type": "lifespan"}, events.get, said.put))
    assert (await said.get())["type"] == "lifespan.startup.complete"
    try:
        yield asgi
    finally:
        events.put_nowait({"type": "lifespan.shutdown"})
        assert (await said.get())["type"] == "lifespan.shutdown.complete"
        await task


@pytest.fixture
def asgi():
    return asgi_app(sample_app())


async def asgi_session(asgi):
    """Shake hands; return the headers of further requests."""
    _, headers, _ = await ASGI(asgi, body=hello()).answer()
    session = {"mcp_session_id": headers["mcp-session-id"], "mcp_protocol_version": V4}
    assert (await ASGI(asgi, body=INITIALIZED, **session).answer())[0] == 202
    return session


class TestASGI:
    """The same endpoint under a server of somebody else's."""

    async def test_a_session(self):
        async with asgi_app(sample_app(), max_body=1000) as asgi:
            status, headers, answer = await ASGI(asgi, body=hello(), pieces=7, x_test=" ").answer()
            assert status == 200 and answer["result"]["protocolVersion"] == V4
            session = {"mcp_session_id": headers["mcp-session-id"], "mcp_protocol_version": V4}
            assert (await ASGI(asgi, body=INITIALIZED, **session).answer())[0] == 202
            status, headers, answer = await ASGI(asgi, body=call_of(1, "echo", {"text": "x"}), **session).answer()
            assert int(headers["content-length"]) > 20 and answer["id"] == 1
            status, headers, body = await ASGI(asgi, body=call_of(2, "count", {"to": 2}), **session).answer()
            assert headers["content-type"] == "text/event-stream" and body.count(b"acme/n") == 2
            assert (await ASGI(asgi, body=call_of(1, "echo", {"text": "x" * 1000}), **session).answer())[0] == 413
            assert (await ASGI(asgi, "GET", "/nowhere").answer())[0] == 404
            assert (await ASGI(asgi, body=hello(), host="evil.example").answer())[0] == 403
            assert (await ASGI(asgi, "DELETE", **session).answer())[0] == 204

    async def test_a_lost_client_cancels_nothing_in_a_session_and_its_call_elsewhere(self):
        app = sample_app()
        async with asgi_app(app) as asgi:
            session = await asgi_session(asgi)
            for msg, fields, end in ((call_of(1, "wait", {"gate": "a"}), session, "a ends"),
                                     (*modern_call(1, "wait", {"gate": "b"}), "b cancelled")):  # fmt: skip
                asked = ASGI(asgi, body=msg, **fields)
                await until(lambda: app.log and app.log[-1].endswith("begins"))
                asked.disconnect()
                await asked.task
                app.gate_of(end[0]).done() or app.gate_of(end[0]).set_result(None)
                await until(lambda end=end: app.log[-1] == end)
            stream = ASGI(asgi, "GET", **session)
            await until(lambda: stream.status)
            stream.disconnect()
            await stream.task
            again = ASGI(asgi, "GET", **session)  # the standalone stream has no reader now
            await until(lambda: again.status == 200)
        await again.task  # and ends with the server

    async def test_a_request_that_the_asgi_server_cuts_off_ends_in_order(self):
        app = sample_app()
        async with asgi_app(app) as asgi:
            session = await asgi_session(asgi)
            msg, fields = modern_call(1, "wait", {"gate": "a"})
            call, stream = ASGI(asgi, body=msg, **fields), ASGI(asgi, "GET", **session)
            await until(lambda: app.log and stream.status)
            for asked in (call, stream):
                asked.task.cancel()
            status, _, answer = await call.answer()
            assert (status, answer["error"]["message"]) == (503, "the server is shutting down")
            assert (await stream.answer())[0] == 200 and stream.done

    async def test_a_session_that_ends_while_the_server_sends_still_gives_an_error(self):
        class Slow(ASGI):
            async def send(self, message):
                begun.set()
                await gate.wait()
                await super().send(message)

        begun, gate = asyncio.Event(), asyncio.Event()
        async with asgi_app(sample_app()) as asgi:
            session = await asgi_session(asgi)
            asked = Slow(asgi, body=call_of(1, "count", {"to": 2}), **session)
            await begun.wait()
            assert (await ASGI(asgi, "DELETE", **session).answer())[0] == 204
            await idle()
            gate.set()
            status, headers, body = await asked.answer()
        assert (status, headers["content-type"]) == (200, "text/event-stream") and b"the session has ended" in body

    async def test_a_websocket_is_refused_before_it_is_accepted(self):
        """ASGI, HTTP & WebSocket: to close it answers 403."""
        came, said = asyncio.Queue(), []

        async def say(message):
            said.append(message)

        came.put_nowait({"type": "websocket.connect"})
        await m.Server().asgi({"type": "websocket", "path": "/mcp", "headers": []}, came.get, say)
        assert said == [{"type": "websocket.close"}] and came.empty()

    async def test_a_client_that_is_gone_before_its_request_is_whole_gets_nothing(self, asgi):
        asked = ASGI(asgi, body=hello(), whole=False)
        await idle()
        asked.disconnect()
        await asked.task
        assert asked.status is None

    @pytest.mark.parametrize("problem", [OSError, RuntimeError])
    async def test_a_client_to_which_nothing_can_be_sent_is_gone(self, problem, caplog):
        class Gone(ASGI):
            async def send(self, message):
                raise problem("the client is gone")

        async with asgi_app(sample_app()) as asgi:
            await Gone(asgi, body=hello()).task
        assert not [record for record in caplog.records if record.levelname == "ERROR"]

    async def test_responses_that_nobody_reads_are_bounded_and_the_oldest_are_cut_off(self, monkeypatch):
        """An ASGI server buffers a piece, and then waits until its client reads."""
        monkeypatch.setattr(m, "HELD_BYTES", 600_000)

        class Slow(ASGI):
            async def send(self, message):
                await super().send(message)
                if len(self.body) > 100_000:
                    await asyncio.wait([reads])

        app, reads = m.Server(), asyncio.get_running_loop().create_future()
        app.route("GET", "/big", public=True)(lambda request: b"x" * 1_000_000)
        async with asgi_app(app) as asgi:
            found = [Slow(asgi, "GET", "/big") for _ in range(4)]
            await until(lambda: all(each.body for each in found) and sum(each.task.done() for each in found) == 2)
            reads.set_result(None)
            await asyncio.gather(*(each.task for each in found))
            assert sorted(each.done for each in found) == [False, False, True, True]
            assert {len(each.body) for each in found if each.done} == {1_000_000}

    async def test_a_stream_that_nobody_reads_is_cut_off_after_30_seconds(self):
        class Deaf(ASGI):
            async def send(self, message):
                await super().send(message)
                if b"data: {" in message.get("body", b""):
                    await asyncio.wait([self.gone])

        app = sample_app()
        async with asgi_app(app) as asgi:
            session = await asgi_session(asgi)
            leap, stream = time_machine(), Deaf(asgi, "GET", **session)
            await until(lambda: stream.status == 200)
            app.add_tool(lambda: 1, name="new")  # which is announced
            await until(lambda: b"list_changed" in stream.body)
            leap(29)
            await idle()
            assert not stream.task.done()
            leap(2)
            await stream.task

    async def test_a_long_page_whose_end_nobody_reads_is_cut_off_after_30_seconds(self):
        class Deaf(ASGI):
            async def send(self, message):
                await super().send(message)
                if len(self.body) == 100_000:
                    await asyncio.wait([self.gone])

        app = m.Server()
        app.route("GET", "/big", public=True)(lambda request: b"x" * 100_000)
        async with asgi_app(app) as asgi:
            leap, page = time_machine(), Deaf(asgi, "GET", "/big")
            await until(lambda: len(page.body) == 100_000)
            leap(29)
            await idle()
            assert not page.task.done()
            leap(2)
            await page.task

    async def test_a_header_may_come_in_parts_and_with_blanks(self, asgi):
        """RFC 9110 §5.3, §5.5"""
        _, headers, _ = await ASGI(asgi, body=hello()).answer()
        asked = ASGI(asgi, body=PING, mcp_session_id=headers["mcp-session-id"], accept="application/json",
                     mcp_protocol_version=f" {V4}\t")  # fmt: skip
        asked.scope["headers"].append((b"Accept", b"text/event-stream"))
        assert (await asked.answer())[0] == 200

    async def test_mounted_somewhere(self, asgi):
        # Some servers leave the root out of the path.
        for path, root in (("/app/mcp", "/app"), ("/app", "/app"), ("/app/", "/app"), ("/mcp", "/app"), ("/mcp", "/m")):
            assert (await ASGI(asgi, path=path, root=root, body=hello()).answer())[0] == 200, (path, root)
        stream = ASGI(asgi, "GET", "/app/sse", root="/app")
        await until(lambda: stream.body)
        assert b"data: /app/messages?session_id=" in stream.body
        stream.disconnect()
        await stream.task

    async def test_it_starts_without_a_lifespan_and_once_for_all_who_wait(self, caplog):
        entered = []

        @contextlib.asynccontextmanager
        async def life(app):
            entered.append("in")
            await asyncio.sleep(0)
            yield
            entered.append("out")

        app = sample_app(lifespan=life)
        asgi = app.asgi_with()
        found = [ASGI(asgi, body=hello()) for _ in range(5)]
        assert [(await each.answer())[0] for each in found] == [200] * 5 and entered == ["in"]
        assert [each.levelname for each in caplog.records] == ["WARNING"]
        assert "pass on that of the mounted object, as in FastAPI(lifespan=app.asgi.lifespan)" in caplog.text
        await asgi.close()
        assert entered == ["in", "out"]
        async with asgi.lifespan(None):  # for the application that it is mounted in
            assert (await ASGI(asgi, body=hello()).answer())[0] == 200
        assert entered == ["in", "out"] * 2
        caplog.clear()
        async with app.asgi.lifespan():
            assert (await ASGI(app.asgi, body=hello()).answer())[0] == 200
        assert not caplog.records

    async def test_a_lifespan_that_failed_is_opened_again_for_the_next_request(self):
        tries = []

        @contextlib.asynccontextmanager
        async def life(app):
            tries.append(1)
            if len(tries) == 1:
                raise ValueError("no database yet")
            yield

        asgi = sample_app(lifespan=life).asgi_with()
        first = [ASGI(asgi, body=hello()) for _ in range(2)]
        for each in first:
            with pytest.raises(ValueError, match="no database yet"):
                await each.task
        await asgi.close()
        assert (await ASGI(asgi, body=hello()).answer())[0] == 200 and len(tries) == 2
        await asgi.close()

    async def test_the_lifespan_is_left_although_the_end_is_cut_short(self):
        left = []

        @contextlib.asynccontextmanager
        async def life(app):
            yield
            left.append(1)

        app = sample_app(lifespan=life)
        asgi = app.asgi_with(grace=60)
        call, fields = modern_call(1, "wait", {"gate": "g"})
        asked = ASGI(asgi, body=call, **fields)
        await until(lambda: app.log)
        end = asyncio.ensure_future(asgi.close())
        await idle()
        end.cancel()
        await asyncio.wait([end])
        app.gate_of("g").set_result(None)
        assert (await asked.answer())[0] == 200 and left == [1]

    async def test_a_lifespan_that_fails_is_told(self):
        @contextlib.asynccontextmanager
        async def life(app):
            raise ValueError("no database")
            yield

        events, said = asyncio.Queue(), []

        async def say(message):
            said.append(message)

        events.put_nowait({"type": "lifespan.startup"})
        asgi = sample_app(lifespan=life).asgi_with()
        await asgi({"type": "lifespan"}, events.get, say)
        assert said == [{"type": "lifespan.startup.failed", "message": "no database"}]


def framed(kind, data, status="200 OK", more=""):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n{more}\r\n"
    return head.encode() + data


def as_json(msg, status="200 OK", more=""):
    return framed("application/json", json.dumps(msg).encode(), status, more)


def http_answer(body, more="", **result):
    """The bytes of a JSON answer to the request in `body`."""
    return as_json(result_of(json.loads(body), **result), more=more)


def greeting(body, more=""):
    """The bytes of the answer to `initialize`."""
    revision = json.loads(body)["params"]["protocolVersion"]
    return http_answer(body, more, protocolVersion=revision, capabilities={"tools": {}},
                       serverInfo={"name": "s", "version": "1"})  # fmt: skip


NO_BODY = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
NOT_HERE = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
SESSION = "Mcp-Session-Id: s1\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
JSON_OK = OK + b"Content-Type: application/json\r\n"


class Scripted:
    """A server by hand: `on_call(wire, head, msg)` answers what is not for the era, by default with {}."""

    def __init__(self, on_call=None, *, more=SESSION, on_get=None):
        self.on_call, self.more, self.on_get = on_call, more, on_get
        self.seen = []  # (method, headers, message)

    async def __call__(self, wire):
        while True:
            head, body = await wire.request()
            msg = json.loads(body) if body else None
            self.seen.append((head.method, head.headers, msg))
            if head.method == "GET" and self.on_get is not None:
                await self.on_get(wire, head)
            elif head.method != "POST":
                wire.send(NOT_HERE)
            elif msg.get("method") == "initialize":
                wire.send(greeting(body, self.more() if callable(self.more) else self.more))
            elif msg.get("method") == "server/discover":
                wire.send(http_answer(body, resultType="complete", supportedVersions=[V5], capabilities=ANSWERED))
            elif "id" not in msg or "method" not in msg:
                wire.send(NO_BODY)
            elif self.on_call is None:
                wire.send(as_json(result_of(msg)))
            else:
                await self.on_call(wire, head, msg)

    def methods(self):
        return [msg.get("method") if msg else method for method, _, msg in self.seen]


@contextlib.asynccontextmanager
async def talking(script, **options):
    """Give a client that is connected to a scripted server."""
    async with scripted(script) as url:
        async with m.Client(url, revision=options.pop("revision", V4), **options) as client:
            yield client


def talk(script, work, **options):
    """Run `await work(client)` against a scripted server."""

    async def main():
        async with talking(script, **options) as client:
            return await work(client)

    return run(main())


def answering(serve):
    """Return a script that answers each request with serve(head, msg): a result, or the code of an error."""

    async def on_call(wire, head, msg):
        found = serve(head, msg)
        answer = {"jsonrpc": "2.0", "id": msg["id"]}
        if isinstance(found, int):
            answer["error"] = {"code": found, "message": "no"}
        else:
            answer["result"] = {"resultType": "complete", "contents": [], "messages": [], "content": [], **found}
        wire.send(as_json(answer, "400 No" if isinstance(found, int) else "200 OK"))

    return Scripted(on_call)


def sse(msg, id=None):
    return (f"id: {id}\n" if id else "").encode() + f"data: {json.dumps(msg)}\n\n".encode()


EVENT, E1, E2 = (STREAM + b"retry: 1\n\n" + sse(notification("acme/n"), id) for id in (None, "e1", "e2"))


#: What a server answers a request with; ANSWER is a message with its answer, SIZE the length of that.
GOOD_ANSWERS = [
    JSON_OK + b"Content-Length: SIZE\r\n\r\nANSWER",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + JSON_OK + b"Content-Length: SIZE\r\n\r\nANSWER",
    JSON_OK + b"Transfer-Encoding: chunked\r\n\r\n1;x=y\r\n \r\nHEXA\r\nANSWER\r\n0\r\nT: dropped\r\n\r\n",
    JSON_OK + b"Connection: close\r\n\r\nANSWER", b"HTTP/1.0 200 fine\r\nContent-Type: application/json\r\n\r\nANSWER",
    b"HTTP/1.1 200\r\nContent-Type: Application/JSON; charset=utf-8\r\nContent-Length: SIZE\r\n\r\nANSWER",
    STREAM + b": hi\n\nevent: other\ndata: {}\n\ndata: ANSWER\n\n", STREAM + b"data: ANSWER\r\r",
    OK + b"Content-Type: text/event-stream; x\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata: \r\nHEXA\r\nANSWER\r\n2\r\n\n\n\r\n0\r\n\r\n",
    STREAM + b"data: [ANSWER]\n\n", STREAM + b"data: ANSWER\n\ngarbage\xff\n\ndata: {\n\n",
    OK + b"Content-Length: SIZE\r\n\r\nANSWER", OK + b"Content-Type: text/plain\r\nConnection: close\r\n\r\n\xef\xbb\xbf ANSWER",
    STREAM + b"data: ping\n\ndata: [DONE]\n\ndata: ANSWER\n\n",
]  # fmt: skip
BAD_ANSWERS = [
    (b"", "ended|reset"), (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "ended"), (b"HTTP/2 200 OK\r\n\r\n", ""),
    (b"HTTP/1.1  200 OK\r\n\r\n", ""), (b"HTTP/1.1 20 OK\r\n\r\n", ""), (b"HTTP/1.1 600 OK\r\n\r\n", ""),
    (b"HTTP/1.1 200 O\x00K\r\n\r\n", ""), (b"SSH-2.0-OpenSSH_9\r\n\r\n", ""),
    (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n\r\n\r\n", ""), (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, ""),
    (JSON_OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "twice"), (JSON_OK + b"Content-Length: 1, 1\r\n\r\nx", ""),
    (JSON_OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", ""), (JSON_OK + b"Transfer-Encoding: gzip\r\n\r\n", ""),
    (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ""), (OK + b" X: y\r\n\r\n", ""),
    (JSON_OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", ""),
    (JSON_OK + b"Content-Length: 999\r\n\r\n{", "ended"), (JSON_OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx", "ended"),
    (b"HTTP/1.1 200 OK\r\n", "ended"), (OK + b"X: y\r\n" * 200 + b"\r\n", ""), (OK + b"X: " + b"y" * 40_000, ""),
    (JSON_OK + b"Content-Length: 1\r\n\r\n{", "JSON|message"), (JSON_OK + b"Content-Length: 2\r\n\r\n[]", ""),
    (framed("text/html", b"<h1>a proxy</h1>"), "<h1>a proxy"), (OK + b"Content-Length: 0\r\n\r\n", "content type"),
    (framed("text/plain", b"out of order", "500 Broken"), "500 Broken: out of order"),
    (framed("text/plain", b"", "404 Not Found"), "session|404"), (framed("text/plain", b"who?", "401 No"), "401"),
    (framed("text/plain", b"", "403 Forbidden"), "403"), (STREAM + b"data: {}\n\n", ""), (STREAM, "without answering"),
    (JSON_OK + b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", "sent 'gzip', which was not requested"),
    (framed("text/plain", b"slower", "429 Slow", "Retry-After: 7\r\n"), "429 Slow, retry after 7: slower"),
    (STREAM + b"data: " + b"x" * 17_000_000, ""), (STREAM + b"data: [5]\n\n", ""),
]  # fmt: skip
PROXIES = [  # the variables, the scheme of the URL, whether the proxy is asked
    ({"HTTP_PROXY": "P"}, "http", True),
    # The variables of Windows have one name in either case.
    *[({"http_proxy": "P", "HTTP_PROXY": "http://127.0.0.1:1"}, "http", True)] * (os.name != "nt"),
    ({"HTTPS_PROXY": "P"}, "http", False), ({"ALL_PROXY": "P"}, "http", True), ({"https_proxy": "P"}, "https", True),
    ({"HTTP_PROXY": "P", "NO_PROXY": "*"}, "http", False), ({"HTTP_PROXY": "P", "NO_PROXY": "b.c, invalid"}, "http", False),
    ({"HTTP_PROXY": "P", "no_proxy": ".invalid"}, "http", False), ({"HTTP_PROXY": "P", "no_proxy": "nvalid"}, "http", True),
    ({"HTTP_PROXY": "P", "REQUEST_METHOD": "GET"}, "http", False),
]  # fmt: skip


@pytest.fixture
def no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


class Url:
    """A URL as pydantic.AnyUrl is one."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


class TestClientOverHTTP:
    """A Client, and servers of every kind."""

    @newest_revisions
    def test_a_client_and_a_server_may_run_on_uvloop(self, revision):
        uvloop = pytest.importorskip("uvloop")

        async def main():
            async with demo().http(port=0) as server, m.Client(server.url, revision=revision) as c:
                return await c.call("echo", {"text": "x" * 1_000_000})

        assert len(uvloop.run(main())) == 1_000_000

    @pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28", None])
    async def test_a_refusal_is_the_same_error_whatever_revision_is_wanted(self, revision):
        """No server refuses a revision by 401 or 403, and none that cannot be reached refuses one."""

        async def error(url, **options):
            with pytest.raises(m.MCPError) as caught:
                async with m.Client(url, revision=revision, timeout=20, **options):
                    pass
            return caught.value

        async with m.Server().http(port=0, token="good") as s:
            refused = [await error(s.url, token="bad"),
                       await error(s.url, token="good", headers={"Origin": "http://evil.example"})]  # fmt: skip
            missed = await error(s.url + "x", token="good")
        assert [(type(exc), exc.code) for exc in refused] == [(m.AuthError, 401), (m.AuthError, 403)]
        assert "nothing is here: the endpoint is at /mcp" in str(missed)
        assert type(await error(s.url)) is m.ConnectionClosed

    async def test_an_answer_is_read_however_it_is_framed_and_cut(self):
        async def on_call(wire, head, msg):
            data = json.dumps(result_of(msg, n=msg["params"]["n"])).encode()
            row = GOOD_ANSWERS[msg["params"]["n"]].replace(b"HEXA", b"%x" % len(data))
            row = row.replace(b"SIZE", b"%d" % len(data)).replace(b"ANSWER", data)
            await wire.send_pieces(ways(row)[msg["params"]["way"]])
            if b"\r\nTransfer" not in row and b"\r\nContent-Length" not in row:
                await wire.writer.drain()
                wire.writer.close()

        async with talking(Scripted(on_call)) as client:
            for n in range(len(GOOD_ANSWERS)):
                for way in range(3):
                    assert await client.request("acme/x", {"n": n, "way": way}) == {"n": n}, (n, way)

    @pytest.mark.parametrize("data, match", BAD_ANSWERS, ids=[x[0][:40].decode("latin-1") + str(i) for i, x in enumerate(BAD_ANSWERS)])
    async def test_a_malformed_response_fails_the_request_with_a_reason(self, data, match):
        """And it is not sent again: nobody knows whether it was served."""

        async def on_call(wire, head, msg):
            await wire.send_pieces(ways(data)[2])
            await wire.writer.drain()
            wire.writer.close()

        script = Scripted(on_call, more="")
        async with talking(script) as client:
            with pytest.raises(m.MCPError, match=match or "."):
                await client.request("acme/x", timeout=20)
        assert script.methods().count("acme/x") == 1

    async def test_a_client_closes_although_its_function_for_headers_fails(self):
        fails = []

        def headers():
            if fails:
                raise LookupError("no headers any more")
            return {"x-a": "b"}

        script = Scripted()
        async with scripted(script) as url:
            client = m.Client(url, revision=V4, headers=headers)
            await client.connect()
            await client.request("acme/x")
            fails.append(1)
            await client.close()
            with pytest.raises(m.ConnectionClosed):
                await client.request("acme/x")
        assert "DELETE" not in [method for method, _, _ in script.seen]

    @pytest.mark.parametrize("revision", [V2, V4])
    async def test_a_client_sends_these_headers_with_each_request(self, revision):
        script = Scripted()
        async with talking(script, headers={"X-A": "b"}, token=lambda: "secret", revision=revision) as client:
            await client.request("acme/x")
        methods = [method for method, _, _ in script.seen]
        assert methods == ["POST", "POST", "GET", "POST", "DELETE"]
        for method, headers, _ in script.seen:
            assert headers["x-a"] == "b" and headers["authorization"] == "Bearer secret"
            assert headers["accept-encoding"] == "identity" and headers["user-agent"]
            if method == "POST":
                assert headers["content-type"] == "application/json" and headers["accept"] == JSON_BOTH
        assert ["mcp-session-id" in headers for _, headers, _ in script.seen] == [False, True, True, True, True]
        assert {headers["mcp-protocol-version"] for _, headers, _ in script.seen[1:]} == {revision}

    @pytest.mark.parametrize("streams", [False, True])
    async def test_a_response_may_have_its_id_as_text(self, streams):
        async def on_call(wire, head, msg):
            answer = {**result_of(msg, n=1), "id": str(msg["id"])}
            wire.end(STREAM + sse(answer) if streams else as_json(answer))

        async with talking(Scripted(on_call)) as client:
            assert await client.request("acme/x") == {"n": 1}

    async def test_a_server_may_ping_before_it_answers_initialize(self):
        ponged = asyncio.Event()

        class Pinging(Scripted):
            async def __call__(self, wire):
                head, body = await wire.request()
                msg = json.loads(body or b"{}")
                if msg.get("method") == "initialize":
                    wire.send(STREAM + sse(request_of("p", "ping")))
                    await ponged.wait()
                    wire.send(sse(json.loads(greeting(body).partition(b"\r\n\r\n")[2])))
                else:
                    if msg.get("id") == "p" and msg["result"] == {}:
                        ponged.set()
                    wire.end(NO_BODY)

        async with talking(Pinging(None)) as client:
            assert client.server_info["name"] == "s"

    async def test_connections_are_used_again_unless_something_came_unasked_or_they_are_old(self, monkeypatch):
        wires, now = [], time.time()

        async def on_call(wire, head, msg):
            wires.append(wire)
            answers = as_json(result_of(msg))
            if msg["method"] == "acme/more":
                answers += as_json(result_of({"id": msg["id"] + 1}, evil=1))
            wire.send(answers)

        async with talking(Scripted(on_call)) as client:
            for method in ("acme/x", "acme/x", "acme/more"):
                await client.request(method)
            assert len(set(map(id, wires))) == 1
            assert await client.request("acme/x") == {}
            assert len(set(map(id, wires))) == 2
            monkeypatch.setattr(time, "time", lambda: now + 40)  # this machine may have slept
            assert await client.request("acme/x") == {}
            assert len(set(map(id, wires))) == 3

    async def test_a_connection_is_used_again_when_its_stream_ended_with_the_answer(self):
        wires = []

        async def on_call(wire, head, msg):
            wires.append(wire)
            event = sse(result_of(msg))
            wire.send(STREAM[:-2] + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(event), event))

        async with talking(Scripted(on_call)) as client:
            for _ in range(3):
                await client.request("acme/x")
        assert len(set(map(id, wires))) == 1

    @pytest.mark.parametrize("method, count", [("tools/list", 2), ("tools/call", 1), ("acme/x", 1)])
    async def test_only_what_reads_is_sent_once_more_when_its_connection_ends(self, method, count):
        """RFC 9110 §9.2.2"""

        async def on_call(wire, head, msg):
            wire.drop()

        script = Scripted(on_call)
        async with talking(script) as client:
            with pytest.raises(m.ConnectionClosed):
                await client.request(method, {"name": "x"})
        assert script.methods().count(method) == count

    @pytest.mark.parametrize("status, location, fine", [
        (307, "/b?c", True), (308, "//HOST/b", True), (307, "http://HOST/b#x", True), (302, "/b", False),
        (307, "http://localhost:1/b", False), (307, "ftp://x/", False), (307, "https://HOST/b", False), (307, "/", False),
    ])  # fmt: skip
    async def test_redirects_stay_within_the_origin_and_end(self, status, location, fine):
        seen = []

        async def serve(wire):
            while True:
                head, body = await wire.request()
                seen.append(head.target)
                if head.target == "/":
                    where = location.replace("HOST", head.headers["host"])
                    wire.send(f"HTTP/1.1 {status} Go\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode())
                else:
                    wire.send(greeting(body) if b'"initialize"' in body else NO_BODY if body else NOT_HERE)

        async with scripted(serve) as url:
            client = m.Client(url, revision=V4)
            if fine:
                async with client:
                    assert seen[1].startswith("/b")
            else:
                with pytest.raises(m.MCPError, match="redirects (to another origin|a POST to /b by 302|more than)"):
                    await client.connect()
                assert {*seen} == {"/"} and (location == "/") == (len(seen) > 1)

    async def test_a_stream_that_is_cut_is_taken_up_after_its_last_event(self):
        asked = []

        async def on_call(wire, head, msg):
            asked.append(msg)
            wire.end(STREAM + b"retry: 5\n\n" + sse(notification("acme/1"), "e1") + b"id: lost\ndata: {")

        async def on_get(wire, head):
            asked.append(head.headers.get("last-event-id"))
            if not isinstance(asked[0], dict):
                wire.send(NOT_HERE)
                asked.clear()
            elif asked[-1] == "e1":
                wire.end(STREAM + sse(notification("acme/2"), "e2"))
            else:
                wire.send(STREAM + sse(result_of(asked[0], n=3), "e3"))

        heard = []
        async with talking(Scripted(on_call, on_get=on_get)) as client:
            for method in ("acme/1", "acme/2"):
                client.on(method)(lambda params, method=method: heard.append(method))
            assert await client.request("acme/x") == {"n": 3}
        assert asked[1:] == ["e1", "e2"] and heard == ["acme/1", "acme/2"]

    @pytest.mark.parametrize("refused, match", [
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "answer is lost"),
        (b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n", "400"),
    ])  # fmt: skip
    async def test_a_call_whose_answer_is_lost_is_not_made_twice(self, refused, match):
        async def on_call(wire, head, msg):
            wire.end(STREAM + b"retry: 1\nid: e1\ndata:\n\n")

        async def on_get(wire, head):
            wire.send(refused if "last-event-id" in head.headers else NOT_HERE)

        script = Scripted(on_call, on_get=on_get)
        async with talking(script) as client:
            with pytest.raises(m.ConnectionClosed, match=match):
                await client.request("tools/call", {"name": "x"})
        assert script.methods().count("tools/call") == 1 and script.methods().count("initialize") == 1

    async def test_a_response_that_is_resumed_in_vain_is_not_reported_as_missed_announcements(self, caplog):
        async def on_call(wire, head, msg):
            wire.end(STREAM + b"retry: 1\nid: e1\ndata:\n\n")

        async def on_get(wire, head):
            if "last-event-id" in head.headers:
                wire.drop()
            else:
                wire.send(NOT_HERE)

        script = Scripted(on_call, on_get=on_get)
        async with talking(script) as client:
            # Under Wine, a connection takes so long that a leap would time it out.
            leap = (lambda seconds: None) if m.WINDOWS else time_machine()
            call = asyncio.ensure_future(client.request("tools/call", {"name": "x"}, timeout=3000))
            await eventually(lambda: leap(5) or call.done())
            with pytest.raises(m.ConnectionClosed, match="without answering"):
                await call
        assert script.methods().count("GET") == 7 and "announcements" not in caplog.text

    async def test_an_id_that_no_header_can_carry_is_not_sent(self):
        asked = []

        async def on_call(wire, head, msg):
            wire.end(STREAM + b"retry: 1\nid: a\x01b\ndata:\n\n")

        async def on_get(wire, head):
            asked.append(head.headers)
            wire.send(NOT_HERE)

        async with talking(Scripted(on_call, on_get=on_get)) as client:
            with pytest.raises(m.ConnectionClosed):
                await client.request("acme/x")
        assert len(asked) == 1

    async def test_a_stream_is_opened_again_no_sooner_than_the_server_says(self):
        gets = []

        async def on_get(wire, head):
            gets.append(1)
            wire.end(STREAM + b"retry: 60000\nid: e1\n\n")

        async with talking(Scripted(on_get=on_get)):
            await eventually(lambda: gets)
            await arrived()
            leap = time_machine()
            leap(55)
            await arrived()
            assert len(gets) == 1
            await eventually(lambda: leap(1) or len(gets) == 2)

    @pytest.mark.parametrize("refusal", [
        framed("text/plain", b"", "404 Gone"), framed("text/plain", b"Unknown Session", "400 Bad Request"),
        framed("application/json", b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message":'
               b' "Bad Request: No valid session ID provided"}}', "400 Bad Request"),
    ])  # fmt: skip
    async def test_an_expired_session_is_renewed_once_for_all_and_messages_wait_for_it(self, refusal):
        sessions, calls = [], []

        async def on_call(wire, head, msg):
            if head.headers["mcp-session-id"] == "s1":
                wire.send(refusal)
            else:
                calls.append(head.headers["mcp-session-id"])
                wire.send(as_json(result_of(msg)))

        def more():
            sessions.append(f"s{len(sessions) + 1}")
            return f"Mcp-Session-Id: {sessions[-1]}\r\n"

        async with talking(Scripted(on_call, more=more)) as client:
            await asyncio.gather(*(client.request("tools/call", {"name": "x"}) for _ in range(5)))
        assert sessions == ["s1", "s2"] and calls == ["s2"] * 5

    @staticmethod
    def expiring(live, header):
        """Return a server whose sessions are header(1), header(2), ...; it knows only one of them."""
        count = itertools.count(1)

        async def on_call(wire, head, msg):
            known = head.headers.get("mcp-session-id") == live
            wire.send(as_json(result_of(msg)) if known else framed("text/plain", b"", "404 Gone"))

        return Scripted(on_call, more=lambda: header(next(count)))

    async def test_messages_wait_until_there_is_a_session(self):
        said = []

        def header(number):
            if number == 2:
                said.append(asyncio.ensure_future(client.notify("acme/n")))
            return f"Mcp-Session-Id: s{number}\r\n"

        script = self.expiring("s2", header)
        async with talking(script) as client:
            await client.request("acme/x")
            await asyncio.gather(*said)
        [headers] = [headers for _, headers, msg in script.seen if msg and msg["method"] == "acme/n"]
        assert headers.get("mcp-session-id") == "s2"

    @pytest.mark.parametrize("revision", [V4, "2025-03-26"])
    async def test_a_session_that_could_not_be_renewed_is_renewed_by_the_next_request(self, revision):
        def header(number):
            return "Content-Length: x\r\n" if number == 2 else f"Mcp-Session-Id: s{number}\r\n"

        async with talking(self.expiring("s3", header), revision=revision) as client:
            with pytest.raises(m.MCPError):
                await client.request("acme/x")
            assert (await client.request("acme/x"), client.revision) == ({}, revision)

    #: What standalone streams are answered with in turn, the last of which stays open; the ID from which each
    #: goes on; how often the lists count as changed, for what may have been missed.
    STREAMS = [
        ("without IDs", [EVENT, EVENT], [None, None], 1),
        ("whose events are kept", [E1, E2], [None, "e1"], 0),
        ("whose events are no longer kept", [E1, framed("text/plain", b"", "400 No"), E1], [None, "e1", None], 1),
        ("whose server is away", [E1, E2, framed("text/plain", b"", "503 Later"), E2], [None, "e1", "e2", "e2"], 0),
        ("with an ID that is not text", [STREAM + b"retry: 1\nid: a\x01b\n\n", EVENT], [None, None], 1),
        ("with an ID that is too long", [STREAM + b"retry: 1\nid: %b\n\n" % (b"a" * 9000), EVENT], [None, None], 1),
    ]

    @pytest.mark.parametrize("what, answers, wanted, changes", STREAMS, ids=[x[0] for x in STREAMS])
    async def test_a_standalone_stream_that_ends_goes_on(self, what, answers, wanted, changes):
        gets, heard, changed = [], [], []

        async def on_get(wire, head):
            gets.append(head.headers.get("last-event-id"))
            if len(gets) < len(answers):
                wire.end(answers[len(gets) - 1])
            else:
                wire.send(answers[-1])
                await wire.reader.read()

        async with talking(Scripted(on_get=on_get), on_tools_changed=lambda: changed.append(1)) as client:
            client.on("acme/n")(lambda params: heard.append(1))
            leap = time_machine()
            news = sum(b"acme/n" in answer for answer in answers)
            await eventually(lambda: leap(0.5) or len(gets) == len(answers) and len(heard) == news)
            await client.request("acme/x")
        assert (gets, len(changed)) == (wanted, changes)

    @pytest.mark.parametrize("status, again", [(405, False), (404, False), (400, False), (409, True), (429, True), (503, True)])
    async def test_a_standalone_stream_that_is_refused_is_asked_for_again_where_that_may_pass(self, status, again):
        """Though the reason that it is refused never comes whole."""
        gets = []

        async def on_get(wire, head):
            gets.append(1)
            wire.send(f"HTTP/1.1 {status} X\r\nContent-Length: 9\r\n\r\nlater".encode())

        async with talking(Scripted(on_get=on_get)) as client:
            leap = time_machine()
            for _ in range(5):
                leap(20)
                await arrived()
            await client.request("acme/x")
        assert (1 < len(gets) < 12) == again  # and not without a pause

    @pytest.mark.parametrize("answer", [
        framed("text/html", b"<html>", "200 OK"), b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n: it has no end",
    ])  # fmt: skip
    async def test_a_response_that_is_not_a_standalone_stream_is_reported_once_and_not_asked_for_again(self, answer, caplog):
        gets, changed = [], []

        async def on_get(wire, head):
            gets.append(1)
            wire.send(answer)

        async with talking(Scripted(on_get=on_get), on_tools_changed=lambda: changed.append(1)) as client:
            leap = time_machine()
            await eventually(lambda: gets)
            await eventually(lambda: "sends no announcements" in caplog.text)
            for _ in range(5):
                leap(40)
                await client.request("acme/x")
        assert (len(gets), changed, caplog.text.count("sends no announcements")) == (1, [], 1)

    async def test_a_malformed_message_on_the_standalone_stream_loses_itself_alone(self, caplog):
        heard = asyncio.Event()

        async def on_get(wire, head):
            wire.send(STREAM + b"data: {\"x\": 1e999}\n\n" + sse(notification("acme/n")))
            await wire.reader.read()

        script = Scripted(on_get=on_get)
        async with talking(script) as client:
            client.on("acme/n")(lambda params: heard.set())
            await heard.wait()
        assert "not JSON" in caplog.text and script.methods().count("GET") == 1

    async def test_a_refusal_of_http_says_its_status_and_when_to_try_again(self):
        """Of an error in JSON-RPC, the code is that of JSON-RPC."""
        answers = [
            b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nslow",
            b"HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n",
            framed("application/json", b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "slow"}}',
                   "429 X\r\nRetry-After: 7"),
        ]  # fmt: skip

        async def on_call(wire, head, msg):
            wire.send(answers.pop(0))

        async with talking(Scripted(on_call)) as client:
            for kind, code, text in [
                (m.ConnectionClosed, 429, "answered 429 Too Many Requests, retry after 7: slow"),
                (m.ConnectionClosed, 503, "answered 503 Away"), (m.RemoteError, -32000, "slow .HTTP 429 X, retry after 7"),
            ]:  # fmt: skip
                with pytest.raises(kind, match=text) as caught:
                    await client.request("acme/x")
                assert caught.value.code == code

    @pytest.mark.parametrize("status, path, text", [(500, "mcp", "database session lost"), (409, "session/mcp", "busy")])
    async def test_a_call_that_failed_is_not_repeated_because_it_speaks_of_a_session(self, status, path, text):
        async def on_call(wire, head, msg):
            wire.send(framed("text/plain", text.encode(), f"{status} X"))

        script = Scripted(on_call)
        async with scripted(script) as url, m.Client(url.rstrip("/") + f"/{path}", revision=V4) as client:
            with pytest.raises(m.ConnectionClosed, match=f"{status} X: {text}"):
                await client.request("tools/call", {"name": "x"})
        assert script.methods().count("tools/call") == 1

    async def test_a_subscription_that_http_refuses_for_good_is_not_opened_again(self):
        asked = []

        async def on_call(wire, head, msg):
            asked.append(msg["id"])
            if len(asked) == 1:
                granted = {"_meta": {META + "subscriptionId": msg["id"]}, "notifications": msg["params"]["notifications"]}
                wire.end(STREAM + sse({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": granted}))
            else:
                wire.send(framed("text/plain", b"gone", "410 Gone"))

        async with talking(Scripted(on_call), revision=V5) as client:
            subscription = await client.listen(tools=True)
            leap = time_machine()
            ended = asyncio.ensure_future(subscription.__anext__())
            await eventually(lambda: leap(1) or ended.done())
            with pytest.raises(StopAsyncIteration):
                await ended
        assert len(asked) == 2

    async def test_a_connection_that_the_server_closes_after_a_large_result_is_not_used_again(self):
        gone = []

        async def server(wire):
            while True:
                _, body = await wire.request()
                if b"tools/call" in body:
                    wire.end(http_answer(body, content=[{"type": "text", "text": "x" * 2_000_000}]))
                    gone.append(await wire.everything())
                    return
                wire.send(greeting(body) if b"initialize" in body and b'"id"' in body else NO_BODY)

        async with scripted(server) as url, m.Client(url, revision=V4) as client:
            for n in range(2):
                assert len(await client.call("big")) == 2_000_000
                await eventually(lambda n=n: len(gone) > n)  # the client has closed it, too

    async def test_an_abandoned_modern_request_closes_its_connection(self):
        closed = []

        async def on_call(wire, head, msg):
            closed.append(await wire.reader.read())

        script = Scripted(on_call)
        async with talking(script, revision=V5) as client:
            with pytest.raises(m.RequestTimeout):
                await client.request("acme/x", timeout=0.05)
            await eventually(lambda: closed == [b""])
        assert "notifications/cancelled" not in script.methods()

    @pytest.mark.parametrize("events, match", [
        (b"", "ended"), (b"event: endpoint\ndata: http://elsewhere.example/x\n\n", "elsewhere"),
        (b"event: endpoint\ndata: ftp://x/\n\n", "URL|endpoint"), (b"data: {}\n\n", "ended"),
    ])  # fmt: skip
    async def test_the_pair_of_the_first_revision_must_name_an_endpoint_of_its_origin(self, events, match):
        async def old(wire):
            head, _ = await wire.request()
            if head.method == "POST":
                wire.send(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                wire.end(STREAM + events)

        async with scripted(old) as url:
            with pytest.raises((m.MCPError, ValueError), match=match):
                await m.Client(url).connect()

    @pytest.mark.parametrize("revision", [None, V5, V4])
    @pytest.mark.parametrize("status", ["401 Unauthorized", "429 Too Many Requests", "500 Broken", "502 Bad Gateway", "503 Busy"])
    async def test_the_pair_is_not_looked_for_where_a_later_post_may_succeed(self, status, revision):
        methods = []

        async def busy(wire):
            head, _ = await wire.request()
            methods.append(head.method)
            if head.method == "POST":
                wire.send(framed("text/plain", b"come back", status))
            else:
                wire.send(STREAM)
                await wire.reader.read()

        async with scripted(busy) as url:
            with pytest.raises(m.MCPError, match=f"answered {status}: come back"):
                await m.Client(url, revision=revision).connect()
        assert {*methods} == {"POST"}

    @pytest.mark.parametrize("status, revision", [(400, None), (403, None), (410, None), (501, None), (0, V1)])
    async def test_the_pair_is_found_whatever_refuses_the_post_and_at_once_for_the_first_revision(self, status, revision):
        """A server that does not answer a POST is not waited for where the revision is known."""
        stream = asyncio.get_running_loop().create_future()

        async def old(wire):
            head, body = await wire.request()
            if head.method == "GET":
                wire.send(STREAM + b"event: endpoint\ndata: /post\n\n")
                stream.set_result(wire)
                await wire.reader.read()
            elif head.target == "/post":
                wire.send(NO_BODY)
                if b'"id"' in body:
                    (await stream).send(sse(json.loads(greeting(body, "").partition(b"\r\n\r\n")[2])))
            elif status:
                wire.send(framed("text/plain", b"no", f"{status} No"))
            else:
                await wire.reader.read()

        async with scripted(old) as url:
            async with m.Client(url, revision=revision, timeout=10) as client:
                assert client.server_info["name"] == "s"

    async def test_a_server_that_refuses_only_the_question_for_its_revision_gets_the_handshake(self):
        async def gateway(wire):
            while True:
                head, body = await wire.request()
                known = b"discover" not in body and body
                wire.send(NO_BODY if b'"id"' not in body else greeting(body) if known
                          else framed("text/plain", b"no such method", "403 Forbidden"))  # fmt: skip

        async with scripted(gateway) as url:
            async with m.Client(url) as client:
                assert client.revision == V4

    @newest_revisions
    async def test_subscriptions_go_on_with_a_server_that_was_restarted(self, revision):
        """A client that only listens notices it, and learns what it may have missed."""
        app, heard, changed = m.Server(), asyncio.Queue(), asyncio.Event()
        app.resource("note://a", name="a")(lambda: "a")

        @app.tool
        async def say(ctx: m.Context) -> None:
            await ctx.info("left out")
            await ctx.error("hello")

        options = {"on_tools_changed": changed.set, "log": lambda *said: heard.put_nowait(said)}
        async with app.http(port=0) as server:
            client = m.Client(server.url, revision=revision, **options)
            await client.connect()
            await client.set_log_level("error")
            await client.subscribe("note://a", heard.put_nowait)
        leap = time_machine()
        async with app.http(port=urllib.parse.urlsplit(server.url).port):
            await eventually(lambda: leap(0.5) or heard.qsize() and changed.is_set())
            assert (await heard.get())["uri"] == "note://a"
            app.resource_updated("note://a")
            assert (await heard.get())["uri"] == "note://a"
            await client.call("say")
            assert (await heard.get())[:2] == ("error", "hello")
            await client.close()

    async def test_a_url_may_be_an_object_of_another_library(self):
        app = m.Server()
        app.add_resource("note://a", "hello")
        guard = m.Guard(verify={"t": {"subject": "ann"}}.get, issuers=[Url("https://as.example")],
                        resource_url=Url("https://mcp.example/mcp"))  # fmt: skip
        async with app.http(port=0, auth=guard) as server:
            page = (await ask(server.url.replace("/mcp", RESOURCE_PAGE)))[2]
            assert page["authorization_servers"] == ["https://as.example"] and page["resource"] == "https://mcp.example/mcp"
            for era in ("2025-11-25", "2026-07-28"):
                async with m.Client(server.url, token="t", revision=era) as c:
                    assert await c.read(Url("note://a")) == "hello"
                    for updates in (c.subscribe(Url("note://a")), c.listen(uris=[Url("note://a")])):
                        await updates
                        app.resource_updated("note://a")
                        assert "note://a" in str(await updates.__anext__())

    async def test_each_of_many_subscriptions_hears_once_of_a_restart(self):
        app, heard, changed = m.Server(), [], []
        app.resource("note://{name}", name="a")(lambda name: name)
        app.add_tool(lambda: 1, name="one")
        async with app.http(port=0) as server:
            client = m.Client(server.url, on_tools_changed=lambda: changed.append(1))
            await client.connect()
            for n in range(20):
                await client.subscribe(f"note://{n}", lambda params: heard.append(params["uri"]))
        leap = time_machine()
        async with app.http(port=urllib.parse.urlsplit(server.url).port):
            await eventually(lambda: leap(0.5) or len({*heard}) == 20 and changed)
            await client.ping()
            assert (len(heard), len(changed)) == (20, 1)
            await client.close()

    async def test_a_subscription_outlives_a_server_that_lets_a_call_end_before_it_restarts(self):
        app, heard, gate = m.Server(), [], asyncio.Event()
        app.resource("note://a", name="a")(lambda: "a")

        @app.tool
        async def slow() -> str:
            gate.set()
            await asyncio.sleep(1.5)
            return "slept"

        async with app.http(port=0) as server:
            client = m.Client(server.url, revision=V5)
            await client.connect()
            await client.subscribe("note://a", heard.append)
            call = asyncio.ensure_future(client.call("slow"))
            await gate.wait()
        assert await call == "slept"
        async with app.http(port=urllib.parse.urlsplit(server.url).port):
            await eventually(lambda: heard)  # it is back
            heard.clear()
            app.resource_updated("note://a")
            await eventually(lambda: heard)
            await client.close()

    async def test_https_to_a_server_without_tls_and_http_to_one_with_it_are_told(self, certificate):
        async with sample_app().http(port=0) as server:
            with pytest.raises(m.ConnectionClosed, match="for a server without TLS, write http://"):
                await m.Client(server.url.replace("http", "https")).connect()
        async with sample_app().http(port=0, ssl=certificate) as server:
            with pytest.raises(m.ConnectionClosed, match="if the server speaks TLS, write https://"):
                await m.Client(server.url.replace("https", "http")).connect()

    @pytest.mark.parametrize("said, scheme, told", [
        (b"", "http", "write https://"), (b"\x15\3\3\0\2\2\x46", "http", "write https://"), (b"SSH-2.0\r\n", "http", ""),
        (b"", "https", "write http://"),
    ])  # fmt: skip
    async def test_a_server_that_only_ends_the_connection_may_speak_the_other_scheme(self, said, scheme, told):
        async def serve(wire):
            await wire.reader.read(5)
            wire.end(said)

        async with scripted(serve) as url:
            with pytest.raises(m.ConnectionClosed, match="connection") as caught:
                await m.Client(url.replace("http", scheme)).connect()
        assert told in str(caught.value) and ("write http" in str(caught.value)) == bool(told)

    async def test_a_connection_that_is_lost_later_says_nothing_of_tls(self):
        async def on_call(wire, head, msg):
            wire.drop()

        async with talking(Scripted(on_call)) as client:
            with pytest.raises(m.ConnectionClosed) as caught:
                await client.request("acme/x")
        assert "https" not in str(caught.value)

    async def test_connecting_to_nobody_says_where(self, no_proxies):
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
        with pytest.raises(m.ConnectionClosed, match=f"cannot reach http://127.0.0.1:{port}/mcp"):
            await m.Client(f"http://127.0.0.1:{port}/mcp").connect()
        no_proxies.setenv("HTTP_PROXY", "http://me:secret@127.0.0.1:1")
        with pytest.raises(m.ConnectionClosed, match="through the proxy http://127.0.0.1:1/") as caught:
            await m.Client("http://server.invalid/mcp").connect()
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("name, options", [
        ("a", {"token": "secret"}), ("b", {"headers": {"Authorization": "Basic secret"}}),
        ("c", {"headers": lambda: {"authorization": "x"}}),
    ])  # fmt: skip
    async def test_a_token_that_others_can_read_on_its_way_is_warned_of_once(self, name, options, no_proxies, caplog):
        url = f"http://{name}.invalid/mcp"
        for each in (url, url, f"https://{name}.invalid/mcp", "http://localhost:1/mcp"):
            with pytest.raises(m.ConnectionClosed):
                await m.Client(each, revision=V4, **options).connect()
        assert caplog.messages == [f"the token for {url} is sent unencrypted: use https"]

    @pytest.mark.parametrize("headers", ["x", 5, ["a: b"], {1: "x"}, {b"a": "b"}, {"vary": ["a", "b"]}])
    async def test_headers_that_are_not_a_dict_of_texts_are_refused(self, headers):
        says = re.escape('headers must be a dict of texts: {"name": "value"}')
        with pytest.raises(TypeError, match=says):
            m.Client("http://localhost:1/mcp", headers=headers)
        with pytest.raises(m.ConnectionClosed, match=says):
            await m.Client("http://localhost:1/mcp", headers=lambda: headers).connect()

    @pytest.mark.parametrize("url", ["http://", "http://a b/", "http://u:p@h/", "http://h:99999/", "http://h/#x"])
    async def test_a_url_that_cannot_be_is_an_error(self, url):
        with pytest.raises(ValueError):
            await m.Client(url).connect()

    async def test_closing_does_not_wait_for_a_server_that_is_silent(self):
        async def on_call(wire, head, msg):
            await wire.reader.read()

        async with talking(Scripted(on_call)) as client:
            asked = asyncio.ensure_future(client.request("acme/x"))
            await idle()
            await client.close()
            with pytest.raises(m.ConnectionClosed):
                await asked

    async def test_connecting_does_not_wait_for_a_server_that_is_silent_after_its_greeting(self):
        async def serve(wire):
            head, body = await wire.request()
            if b"initialize\"" in body:
                wire.send(greeting(body))
            await wire.reader.read()

        async with scripted(serve) as url:
            with pytest.raises(m.RequestTimeout, match="did not accept notifications/initialized within 0.3 seconds; timeout=N"):
                await asyncio.wait_for(m.Client(url, revision=V4, timeout=0.3).connect(), 15)

    @pytest.mark.parametrize("variables, scheme, through", PROXIES)
    async def test_which_proxy_is_asked(self, no_proxies, variables, scheme, through):
        """Plain HTTP in absolute form, RFC 9112 §3.2.2; TLS through a tunnel, RFC 9110 §9.3.6."""
        seen = []

        async def proxy(wire):
            head, _ = await wire.request()
            seen.append(head)
            wire.send(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        async with scripted(proxy) as url:
            mine = url.replace("//", "//us%40er:pa@") + "/"
            for name, value in variables.items():
                no_proxies.setenv(name, mine if value == "P" else value)
            with pytest.raises(m.MCPError, match="407|cannot reach"):
                await m.Client(f"{scheme}://server.invalid:81/mcp", revision=V4).connect()
        assert bool(seen) == through
        if seen:
            wanted = "http://server.invalid:81/mcp" if scheme == "http" else "server.invalid:81"
            assert seen[0].target == wanted and seen[0].headers["host"] == "server.invalid:81"
            assert seen[0].headers["proxy-authorization"] == "Basic dXNAZXI6cGE="

    @pytest.mark.parametrize("proxy", ["socks5://p:1", "https://me:secret@p:1", "http://p:1/path", "p:1:2"])
    async def test_a_proxy_that_cannot_be_used_is_an_error_without_its_password(self, no_proxies, proxy):
        no_proxies.setenv("HTTP_PROXY", proxy)
        with pytest.raises(ValueError, match="proxy|host") as caught:
            await m.Client("http://server.invalid/").connect()
        assert "secret" not in str(caught.value)

    async def test_tls_goes_through_a_tunnel_that_the_proxy_cannot_read(self, no_proxies, certificate):
        seen = []
        name = "tunnel.invalid"  # which the proxy is to resolve
        async with sample_app().http(port=0, ssl=certificate, allowed_hosts="*") as server:

            async def proxy(wire):
                seen.append(await wire.reader.readuntil(b"\r\n\r\n"))
                wire.send(b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n")

                async def pump(source, sink):
                    with contextlib.suppress(ConnectionError):
                        while data := await source.reader.read(65536):
                            seen.append(data)
                            sink.send(data)
                    sink.drop()

                async with await Wire.open(server.url) as there:
                    await asyncio.gather(pump(wire, there), pump(there, wire))

            context = ssl.create_default_context(cafile=certificate[0])
            context.check_hostname = False
            async with scripted(proxy) as url:
                no_proxies.setenv("https_proxy", url)
                async with m.Client(f"https://{name}:44/mcp", ssl=context, token="secret") as client:
                    for _ in range(3):
                        assert await client.call("echo", {"text": "x" * 1000}) == "x" * 1000
        assert seen[0].startswith(f"CONNECT {name}:44 HTTP/1.1\r\n".encode())
        assert b"secret" not in b"".join(seen)

    async def test_bytes_before_tls_begins_are_not_a_response_of_the_server(self, no_proxies):
        async def proxy(wire):
            await wire.read_head()
            wire.send(b"HTTP/1.1 200 ok\r\n\r\n" + framed("text/plain", b"forged"))
            await wire.everything()

        async with scripted(proxy) as url:
            no_proxies.setenv("https_proxy", url)
            with pytest.raises(m.ConnectionClosed, match="before TLS"):
                await m.Client("https://server.invalid/mcp").connect()


# What an annotation of the value `bad` makes invalid: property schema, beside a right one of name R.
BAD_MIRRORS = {
    "empty": {"a": {"type": "string", "x-mcp-header": ""}},
    "with a space": {"a": {"type": "string", "x-mcp-header": "My Region"}},
    "with a colon": {"a": {"type": "string", "x-mcp-header": "a:b"}},
    "with a line break": {"a": {"type": "string", "x-mcp-header": "a\r\nb"}},
    "beyond ASCII": {"a": {"type": "string", "x-mcp-header": "Größe"}},
    "no text": {"a": {"type": "string", "x-mcp-header": 5}},
    "twice": {"a": {"type": "string", "x-mcp-header": "r"},
              "b": {"type": "string", "x-mcp-header": "R"}},
    "of a number": {"a": {"type": "number", "x-mcp-header": "R"}},
    "of an object": {"a": {"type": "object", "x-mcp-header": "R"}},
    "of no type": {"a": {"x-mcp-header": "R"}},
    "inside items": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "R"}}},
    "inside anyOf": {"a": {"anyOf": [{"type": "string", "x-mcp-header": "R"}]}},
    "inside not": {"a": {"not": {"type": "string", "x-mcp-header": "R"}}},
    "below items": {"a": {"items": {"properties": {"b": {"type": "string", "x-mcp-header": "R"}}}}},
}  # fmt: skip
# spec: basic/transports/streamable-http#value-encoding
ENCODED = [
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("us west 1", "us west 1"),
    ("", ""),
    ("a\tb", "=?base64?YQli?="),
]
# Arguments, the header that mirrors one of them, and whether they agree.
COMPARED = [
    ({"n": 42}, "42", True), ({"n": 42}, "42.0", True), ({"n": 42.0}, "42", True),
    ({"n": 42}, "042", True), ({"n": -7}, "-7", True), ({"n": 42}, "43", False),
    ({"n": 42}, "42.5", False), ({"n": 42}, "x", False), ({"n": 42}, None, False),
    ({"n": None}, None, True), ({}, None, True), ({"n": None}, "42", False), ({}, "42", False),
    ({"n": 2**53 - 1}, str(2**53 - 1), True), ({"n": 2**53 - 1}, str(2**53 - 2), False),
    ({"b": True}, "true", True), ({"b": False}, "false", True), ({"b": True}, "True", False),
    ({"b": True}, "1", False), ({"s": "a"}, "a", True), ({"s": "a"}, "A", False),
    ({"s": "é"}, "=?base64?w6k=?=", True), ({"s": "é"}, "\xe9", False),
    ({"s": ""}, "", True), ({"s": ""}, None, False), ({"s": "42"}, "42.0", False),
    ({"o": {"p": "q"}}, "q", True), ({"o": {"p": "q"}}, "r", False), ({"o": {}}, None, True),
    ({"o": None}, None, True), ({"o": "text"}, None, True), ({"o": {"p": {}}}, None, True),
]  # fmt: skip


class TestMirroring:
    """streamable-http#request-metadata: headers repeat the body, for whoever reads only those."""

    def test_values_travel_as_the_page_shows(self):
        for value, header in ENCODED:
            assert (m.encode_header_value(value), m.decode_header_value(header)) == (header, value)
        for header in ("=?BASE64?YQ==?=", "=?base64?YQ==", "base64?YQ==?="):  # markers are exact
            assert m.decode_header_value(header) == header
        for header in ("=?base64?%%%?=", "=?base64?a?=", "=?base64?/w==?=", "\xe9", "a\x7f"):
            with pytest.raises(m.RPCError) as caught:
                m.decode_header_value(header)
            assert caught.value.code == -32020

    def test_arbitrary_texts_survive_the_header(self):
        dice = rng("header values")
        for _ in range(500):
            text = "".join(dice.choices("aB =?b64/\t\r\n\x00é世\U0001f600", k=dice.randint(0, 12)))
            header = m.encode_header_value(text)
            assert re.fullmatch(r"[\x20-\x7e]*", header) and header == header.strip(" ")
            assert m.decode_header_value(header) == text

    def test_an_annotation_that_breaks_the_rules_is_refused_at_registration(self):
        marked = {"type": "string", "x-mcp-header": "R"}
        schemas = [{"properties": properties} for properties in BAD_MIRRORS.values()]
        for keyword in ("$defs", "if", "then", "else", "additionalProperties"):
            schemas.append({"properties": {}, keyword: {"properties": {"a": marked}}})
        for schema in schemas:
            with pytest.raises(m.SchemaError):
                m.Server().add_tool(lambda **a: 1, name="x", input_schema={"type": "object", **schema})

    async def test_an_argument_may_be_called_like_the_keyword(self):
        app = m.Server()
        schema = {"properties": {"x-mcp-header": {"type": "string"}, "properties": {"type": "string"}, "default": {}}}
        for keyword in ("const", "default"):  # nor is it the keyword in a value
            schema["properties"]["default"][keyword] = {"x-mcp-header": "R"}
        for keyword in ("enum", "examples"):
            schema["properties"]["default"][keyword] = [{"x-mcp-header": "R"}]
        app.add_tool(lambda **a: "1", name="x", input_schema=schema)
        async with http_calling(app, opened=False) as (caller, _):
            msg, fields = modern_call(1, "x", {"x-mcp-header": "a", "properties": "b"})
            assert (await caller.post(msg, **fields))[0] == 200
            msg, fields = modern(1, "tools/list", {"": "a parameter without a name"})
            assert (await caller.post(msg, **fields))[0] == 200

    @pytest.mark.parametrize("number, fits", [
        (2**53 - 1, True), (-(2**53) + 1, True), (2**53, False), (-(2**53), False), (1e300, False),
    ])  # fmt: skip
    async def test_an_integer_in_a_header_is_one_that_everybody_reads_alike(self, number, fits):
        """streamable-http#schema-extension: "within the safe range for JavaScript"."""
        app, heard = m.Server("big"), []

        @app.tool
        def count(n: typing.Annotated[int, m.Header("N")]) -> None:
            heard.append(n)

        async with http_calling(app, opened=False) as (caller, server):
            msg, fields = modern_call(1, "count", {"n": number})
            status, _, answer = await caller.post(msg, mcp_param_n=f"{number:.0f}", **fields)
            assert (status, answer.get("error", {}).get("code")) == ((200, None) if fits else (400, -32020))
            msg["params"]["_meta"][META + "protocolVersion"] = fields["mcp_protocol_version"] = "2099-01-01"
            _, _, answer = await caller.post(msg, mcp_param_n=f"{number:.0f}", **fields)
            assert answer["error"]["code"] == -32022, "the revision is judged first"
            async with m.Client(server.url) as c:
                await c.list_tools()
                with contextlib.nullcontext() if fits else pytest.raises(m.RPCError, match="9007199"):
                    await c.call("count", {"n": number})
        async with m.Client(app) as c:  # where there are no headers, all integers pass
            await c.call("count", {"n": number})
        assert heard == [number] * (3 if fits else 1)

    async def test_a_server_compares_header_and_argument(self):
        """streamable-http#server-behavior-for-custom-headers: the table, and numbers as numbers."""
        app = m.Server()
        kinds = {"n": "integer", "b": "boolean", "s": "string"}
        properties = {name: {"type": kind, "x-mcp-header": name} for name, kind in kinds.items()}
        properties["o"] = {"properties": {"p": {"type": "string", "x-mcp-header": "p"}}}
        app.add_tool(lambda **given: "fine", name="x", input_schema={"type": "object", "properties": properties})
        async with http_calling(app, opened=False) as (caller, _):
            for arguments, header, fine in COMPARED:
                name = "p" if "o" in arguments else next(iter(arguments), "n")
                msg, fields = modern_call(1, "x", arguments)
                _, _, answer = await caller.post(msg, **fields, **{f"mcp_param_{name}": header})
                assert answer.get("error", {}).get("code") == (None if fine else -32020), (arguments, header)

    async def test_the_class_header_marks_an_argument(self):
        """server/tools#x-mcp-header; `Annotated[str, Header("Region")]`"""
        async with http_calling(opened=False) as (caller, server):
            msg, fields = modern("a", "tools/list")
            listed = (await caller.post(msg, **fields))[2]["result"]["tools"]
            schema = next(tool for tool in listed if tool["name"] == "where")["inputSchema"]
            assert schema["properties"]["region"]["x-mcp-header"] == "Region"
            for more, said in (({"mcp_param_region": "eu"}, "eu 0"), ({"Mcp_Param_REGION": "eu"}, "eu 0"),
                               ({"mcp_param_region": "us"}, None), ({"mcp_param_region": "=?base64?ZXU=?="}, "eu 0")):  # fmt: skip
                msg, fields = modern_call(2, "where", {"region": "eu"})
                _, _, answer = await caller.post(msg, **fields, **more)
                assert ("error" in answer) == (said is None), more
                assert said is None or answer["result"]["content"][0]["text"] == said
            msg, fields = modern_call(3, "where")  # a header that marks nothing is forwarded
            assert (await caller.post(msg, **fields, mcp_param_other="x"))[0] == 200
            async with m.Client(server.url, revision=V4) as c:  # the legacy era needs no mirrors
                assert await c.call("where", {"region": "eu"}) == "eu 0"

    async def test_a_client_repeats_what_is_marked_and_nothing_else(self):
        """streamable-http#client-behavior"""
        def serve(head, msg):
            properties = {
                "s": {"type": "string", "x-mcp-header": "S"},
                "n": {"type": "integer", "x-mcp-header": "N"},
                "b": {"type": "boolean", "x-mcp-header": "B"},
                "o": {"properties": {"p": {"type": "string", "x-mcp-header": "Deep"}}},
                "plain": {"type": "string"},
            }
            return {"tools": [{"name": "tüte", "inputSchema": {"type": "object", "properties": properties}}]}

        script = answering(serve)
        async with talking(script, revision=None) as c:
            await c.list_tools()
            for arguments in (
                {"s": "é", "n": 42, "b": False, "o": {"p": "q"}, "plain": "x"},
                {"s": None, "o": {}}, {"n": 42.0, "s": ""}, {},
            ):  # fmt: skip
                await c.call_tool("tüte", arguments)
            await c.read_resource("file:///a%20b/ü")
            await c.get_prompt("x")
        seen = [{k: v for k, v in headers.items() if k.startswith("mcp-")} for _, headers, _ in script.seen]
        called = {"mcp-protocol-version": V5, "mcp-method": "tools/call", "mcp-name": "=?base64?dMO8dGU=?="}
        assert seen[0] == {"mcp-protocol-version": V5, "mcp-method": "server/discover"}
        assert [{k: v for k, v in head.items() if k not in called} for head in seen[2:6]] == [
            {"mcp-param-s": "=?base64?w6k=?=", "mcp-param-n": "42", "mcp-param-b": "false", "mcp-param-deep": "q"},
            {}, {"mcp-param-n": "42", "mcp-param-s": ""}, {},
        ]  # fmt: skip
        assert all(called.items() <= head.items() for head in seen[2:6])
        assert seen[6]["mcp-name"] == "=?base64?ZmlsZTovLy9hJTIwYi/DvA==?=" and seen[7]["mcp-name"] == "x"

    async def test_a_client_leaves_out_invalid_tools_with_a_warning(self, caplog):
        """streamable-http#schema-extension: "MUST exclude", "SHOULD log a warning"."""
        bad = [{"name": f"bad {what}", "inputSchema": {"type": "object", "properties": properties}}
               for what, properties in BAD_MIRRORS.items()]  # fmt: skip
        tools = [*bad, {"name": "good", "inputSchema": {"type": "object"}}]
        async with talking(answering(lambda head, msg: {"tools": tools}), revision=None) as c:
            assert [tool["name"] for tool in await c.list_tools()] == ["good"]
            assert [tool["name"] for tool in bad if f"{tool['name']!r} is left out" not in caplog.text] == []
        # What older servers mean by that keyword is theirs; where there are no headers, nothing is wrong with them.
        async with talking(answering(lambda head, msg: {"tools": tools})) as c:
            assert len(await c.list_tools()) == len(tools)
        answers = {"tools/list": {"resultType": "complete", "tools": tools}}
        async with scripted_client(answers, revision=V5) as (c, _):
            assert len(await c.list_tools()) == len(tools)

    @pytest.mark.parametrize("changes", [True, False])
    async def test_a_header_mismatch_has_the_tools_read_again_and_one_more_attempt(self, changes):
        """streamable-http#client-behavior: "SHOULD call tools/list ... then retry"."""
        log = []

        def serve(head, msg):
            log.append(msg["method"])
            mark = {"x-mcp-header": "Region"} if changes and "tools/call" in log else {}
            properties = {"region": {"type": "string", **mark}}
            if msg["method"] == "tools/call" and not (changes and head.headers.get("mcp-param-region") == "eu"):
                return -32020
            return {"tools": [{"name": "x", "inputSchema": {"type": "object", "properties": properties}}],
                    "content": [], "ttlMs": 60_000, "cacheScope": "public"}  # fmt: skip

        async with talking(answering(serve), revision=None) as c:
            await c.list_tools()
            with contextlib.nullcontext() if changes else pytest.raises(m.RemoteError) as failed:
                await c.call_tool("x", {"region": "eu"})
        assert changes or failed.value.code == -32020
        assert log == ["tools/list", "tools/call", "tools/list", "tools/call"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost and 127.0.0.1, and its key, made by the openssl command."""
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    command += " -keyout key.pem -out cert.pem -subj /CN=localhost"
    command += " -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    try:
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as exc:
        pytest.skip(f"no certificate, so TLS is not tested: {exc!r}")
    return str(folder / "cert.pem"), str(folder / "key.pem")


########################
# T48. Authorization
########################
# Sections 47 to 52. A real Client logs in at an authorization server that tells the truth, or one
# lie; a real Server is guarded. Documents, challenges and tokens stand as text in tables.
#
# What is lost easily, and the test that holds it:
#   the URL that a browser opens is quoted         no_character_of_the_page_means_anything_to_a_shell
#   one consent for one request                    a_token_that_is_refused_at_once_costs_one_consent
#   no private address, no http                    a_public_server_leads_to_no_private_place
#   state, then iss, then error and code           a_lie_ends_the_login..., a_redirect_that_anybody...
#   the resource covers our URL; one slash         a_lie_ends_the_login..., an_issuer_is_compared_as_it_is...
#   whose the client ID is, for all who share it   a_secret_is_shown_to_its_issuer_alone
#   refreshing: locked, saved, shielded            programs_that_share..., a_refreshed_token..., a_refused_refresh...
#   localhost is 127.0.0.1                         we_listen_where_redirect_uri_says...
#   4xx goes on, 5xx stops; bounds of a fetch      metadata_are_looked_for..., an_outage..., a_document_...
#   JWTs                                           TestTokens, TestJudges
#   503, the cache, the query, scopes held         TestGuard
#   files: the owner's, whole, 0600 in 0700        files_are_whole_and_for_their_owner_alone

RESOURCE_PAGE = "/.well-known/oauth-protected-resource/mcp"
SERVER_PAGE = "/.well-known/oauth-authorization-server"
NOW = 1_500_000_000.0


@pytest.fixture
def later(monkeypatch):
    """Stop the clock on the wall at NOW; give a function that sets it and the steady one forward."""
    leaps, steady = [], time.monotonic
    monkeypatch.setattr(time, "time", lambda: NOW + sum(leaps))
    monkeypatch.setattr(time, "monotonic", lambda: steady() + sum(leaps))

    def leap(seconds):
        asyncio.get_running_loop().time = steady  # nothing that is under way takes longer by that
        leaps.append(seconds)

    return leap


class Asked(typing.NamedTuple):
    """A request over HTTP; names of headers are lowercase."""

    method: str
    path: str
    query: str
    headers: dict
    body: bytes

    @property
    def form(self):
        return read_form(self.body.decode())


def read_form(text):
    return dict(urllib.parse.parse_qsl(text, keep_blank_values=True))


@contextlib.asynccontextmanager
async def web(answer, **options):
    """Serve on loopback: answer(Asked) gives status, headers, body."""

    async def serve(wire):
        while True:
            head, body = await wire.request()
            query = head.target.partition("?")[2]
            status, more, data = await answer(Asked(head.method, head.path, query, head.headers, body))
            data = data if isinstance(data, bytes) else data.encode()
            lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", *(f"{k}: {v}" for k, v in more.items())]
            wire.send("\r\n".join([*lines, "", ""]).encode() + data)

    async with scripted(serve, **options) as root:
        yield root


class World:
    """An MCP server at /mcp that wants tokens, its authorization server, and a person who agrees.

    `resource` and `server` are the metadata, `pages` what some paths answer instead, `redirect`
    what the browser brings back instead; `seen` and `requests` are all that was asked for.
    """

    def __init__(self):
        self.seen, self.requests, self.asked, self.opened, self.browsing = [], [], [], [], []
        self.pages, self.redirect, self.tokens, self.refreshers, self.codes = {}, {}, {}, {}, {}
        self.needs = {}  # by method of MCP: the scope that it needs
        self.life, self.serial, self.refreshes = 3600, 0, True
        self.held = None  # or a list: pages that nobody has agreed to yet
        self.challenge = f'Bearer resource_metadata="{{root}}{RESOURCE_PAGE}"'

    @contextlib.asynccontextmanager
    async def running(self, **options):
        async with web(self.answer, **options) as root:
            self.root = root
            self.resource = {"resource": root + "/mcp", "authorization_servers": [root]}
            self.server = {
                "issuer": root, "authorization_endpoint": root + "/authorize",
                "token_endpoint": root + "/token", "registration_endpoint": root + "/register",
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }  # fmt: skip
            yield self
            await asyncio.gather(*self.browsing)

    async def answer(self, request):
        self.seen.append(f"{request.method} {request.path}")
        self.requests.append(request)
        page = self.pages.get(request.path)
        page = page(request) if callable(page) else page
        page = await page if inspect.isawaitable(page) else page
        if page is None:
            known = {RESOURCE_PAGE: (200, self.resource), SERVER_PAGE: (200, self.server)}
            name = {"/mcp": self.mcp, "/token": self.token, "/register": self.register}
            page = known.get(request.path) or name.get(request.path, lambda _: (404, ""))(request)
        status, body, *headers = page
        fields = {name: value.replace("{root}", self.root) for more in headers for name, value in more.items()}
        return status, fields, body if isinstance(body, (str, bytes)) else json.dumps(body)

    def mcp(self, request):
        token = request.headers.get("authorization", "").partition(" ")[2]
        msg = json.loads(request.body or b"{}")
        if request.method == "DELETE":
            return 200, ""
        if token not in self.tokens:
            error = ', error="invalid_token"' if token else ""
            return 401, "who are you?", {"www-authenticate": self.challenge + error}
        needed = self.needs.get(msg.get("method"), "")
        if not set(needed.split()) <= set(self.tokens[token].split()):
            return 403, "more", {"www-authenticate": f'Bearer error="insufficient_scope", scope="{needed}"'}
        if "id" not in msg:
            return (405, "", {"allow": "POST"}) if request.method == "GET" else (202, "")
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "w", "version": "1"}}  # fmt: skip
        result = result if msg["method"] == "initialize" else {"tools": []}
        return 200, result_of(msg, **result), {"content-type": "application/json"}

    def register(self, request):
        self.serial += 1
        return 201, {"client_id": f"client-{self.serial}", "issuer": "https://evil.example"}

    def token(self, request):
        form = request.form
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], {})
            proof = hashlib.sha256(form["code_verifier"].encode()).digest()
            if asked.get("code_challenge", "") != base64.urlsafe_b64encode(proof).decode().rstrip("="):
                return 400, {"error": "invalid_grant"}
            return self.give(asked.get("scope", ""))
        if form["grant_type"] == "refresh_token":
            scope = self.refreshers.pop(form["refresh_token"], None)
            return (400, {"error": "invalid_grant"}) if scope is None else self.give(scope)
        return self.give(form.get("scope", ""))

    def give(self, scope):
        self.serial += 1
        token, refresher = f"access-{self.serial}", f"refresh-{self.serial}"
        self.tokens[token] = scope
        doc = {"access_token": token, "token_type": "Bearer", "expires_in": self.life}
        if self.refreshes:
            self.refreshers[refresher] = scope
            doc["refresh_token"] = refresher
        return 200, doc

    def agree(self, url):
        """Be the person; return where the browser is sent."""
        self.opened.append(url)
        asked = read_form(url.partition("?")[2])
        self.asked.append(asked)
        code = f"code-{len(self.asked)}"
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.root, **self.redirect}
        pairs = [f"{name}={value}" for name, value in answer.items() if value is not None]
        return asked["redirect_uri"] + "?" + "&".join(pairs)

    def open(self, url):
        """Be the browser that shows a page and comes back."""
        if self.held is not None and self.asked:  # the first login is not held back
            self.held.append(url)
        else:
            self.browsing.append(asyncio.ensure_future(ask(self.agree(url))))

    def oauth(self, **options):
        return m.OAuth(**{"store": m.TokenStore(), "open_browser": self.open, **options})

    def client(self, auth=None, **options):
        options = {"revision": "2025-11-25", "timeout": 20, **options}
        return m.Client(self.root + "/mcp", auth=auth or self.oauth(), **options)

    async def log_in(self, auth=None, **options):
        async with self.client(auth, **options) as client:
            await client.request("tools/list")

    async def refused(self, why, auth=None, **options):
        """Fail to log in; return what the error says."""
        with pytest.raises((m.AuthError, m.ConnectionClosed), match=why) as caught:
            await self.log_in(auth, **options)
        return str(caught.value)

    def forget(self):
        """Take back all tokens."""
        self.tokens.clear()
        self.refreshers.clear()

    def forms(self, path="/token"):
        return [request.form for request in self.requests if request.path == path]

    def count(self, what):
        return self.seen.count(what)


@pytest.fixture
def world():
    return World().running()


@contextlib.asynccontextmanager
async def world_with_tls(certificate, monkeypatch, name):
    """Give a World whose name is resolved to 127.0.0.1, and the options of a client that trusts it."""
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=certificate[0])
    theirs.load_cert_chain(*certificate)
    ours.check_hostname = False
    resolve, suffix = socket.getaddrinfo, name[name.rindex(".") :]

    def getaddrinfo(host, *rest, **options):
        return resolve("127.0.0.1" if str(host).endswith(suffix) else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    async with World().running(ssl=theirs) as world:
        root = world.root.replace("127.0.0.1", name)
        for doc in (world.resource, world.server):
            doc.update(json.loads(json.dumps(doc).replace(world.root, root)))
        world.redirect["iss"], world.root = root, root
        yield world, ours


def load_example(path):
    """Return a program of examples/ as a module."""
    file = HERE / "examples" / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    return module


@pytest.fixture(scope="module")
def keys():
    """It signs, and has more ways to a token."""
    return load_example("authorization/keys.py")


@pytest.fixture(autouse=True)
def tokens_folder(tmp_path, monkeypatch):
    """No test reads or writes the logins of whoever runs it."""
    monkeypatch.setenv("MCP_LITE_TOKENS", str(tmp_path / "tokens"))


class TestLoggingIn:
    """From the refusal to the answer."""

    async def test_the_certificates_to_trust_are_read_once(self, monkeypatch, certificate):
        """It takes a tenth of a second, in which the loop stands still."""
        made, make, theirs = [], ssl.create_default_context, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(*certificate)
        monkeypatch.setattr(ssl, "create_default_context", lambda **options: made.append(1) or make(**options))
        async with World().running(ssl=theirs) as world:
            await world.log_in(ssl=certificate[0])
        assert made == [1]

    async def test_the_whole_way(self):
        async with World().running() as world:
            world.resource["scopes_supported"] = ["a", "b"]
            await world.log_in()
        assert world.seen[:6] == [
            "POST /mcp", f"GET {RESOURCE_PAGE}", f"GET {SERVER_PAGE}", "POST /register", "POST /token",
            "POST /mcp",
        ]  # fmt: skip
        [asked], [form], registration = world.asked, world.forms(), json.loads(world.requests[3].body)
        uri = asked["redirect_uri"]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/callback", uri)
        assert registration == {
            "client_name": "mcp_lite", "redirect_uris": [uri], "response_types": ["code"],
            "grant_types": ["authorization_code", "refresh_token"], "scope": "a b",
            "token_endpoint_auth_method": "none", "application_type": "native",
        }  # fmt: skip
        assert len(asked.pop("state")) >= 43 and len(asked.pop("code_challenge")) == 43
        assert asked == {
            "response_type": "code", "client_id": "client-1", "redirect_uri": uri, "scope": "a b",
            "resource": world.root + "/mcp", "code_challenge_method": "S256",
        }  # fmt: skip
        assert re.fullmatch(r"[\w.~-]{43,128}", form.pop("code_verifier"))
        assert form == {
            "grant_type": "authorization_code", "code": "code-1", "client_id": "client-1",
            "redirect_uri": uri, "resource": world.root + "/mcp",
        }  # fmt: skip
        mcp = [request for request in world.requests if request.path == "/mcp"]
        assert [request.headers.get("authorization") for request in mcp[:2]] == [None, "Bearer access-2"]
        assert mcp[0].body == mcp[1].body, "the same bytes, and the same id in them"
        for request in world.requests[1:5]:
            assert request.headers["user-agent"].startswith("mcp_lite/")
            assert request.headers["accept-encoding"] == "identity"
        assert not [request for request in world.requests if "access-" in request.query]

    @pytest.mark.parametrize("challenge, scope", [
        ('Bearer scope="b"', "b"),
        ('bEARER Scope = "x y" , error=e', "x y"),
        ('Basic realm="a, Bearer scope=c", Bearer scope="x"', "x"),
        ("Negotiate abc==, Bearer scope=x", "x"),
        (r'Bearer realm="a \" b, scope=c", scope="x"', "x"),
        ('DPoP algs="ES256", Bearer scope="x"', "x"),
        ('Basic realm="a", scope=c', None),
        ("Bearer resource_metadata=ROOT/0 scope='c' error=invalid_token", "c"),
        ("Bearer", None),
        ("", None),
    ])  # fmt: skip
    async def test_a_challenge_is_read_as_its_grammar_says(self, challenge, scope, world):
        """RFC 9110 §11.6.1"""
        world.challenge = challenge.replace("ROOT/0", "{root}" + RESOURCE_PAGE)
        await world.log_in()
        assert world.asked[0].get("scope") == scope

    @pytest.mark.parametrize("challenge, resource, server, chosen, wanted", [
        ("c", ["a", "b"], [], None, "c"), ("", ["a", "b"], [], None, "a b"), ("", [], ["x"], None, None),
        ("", ["a", "offline_access"], [], None, "a"), ("c", [], ["offline_access"], None, "c offline_access"),
        ("", [], ["offline_access"], ["x", "y"], "x y"), ("c", ["a"], [], "x y", "x y c"),
        ("", ["a", 'b"', 7, "a"], [], None, "a"),
    ])  # fmt: skip
    async def test_the_scope_is_the_challenge_s_else_all_that_the_server_names(
        self, challenge, resource, server, chosen, wanted, world
    ):
        """spec: basic/authorization/index#scope-selection-strategy"""
        world.challenge += f', scope="{challenge}"'
        world.resource["scopes_supported"], world.server["scopes_supported"] = resource, server
        await world.log_in(world.oauth(scopes=chosen))
        assert world.asked[0].get("scope") == wanted

    #: Who lies, or which page; the lie; what the error says.
    LIES = [
        ("resource", '{"resource": "https://evil.example/mcp"}', "resource is"),
        ("resource", '{"resource": "{root}/mcp2"}', "resource is"),
        ("resource", '{"resource": "{root}/mc"}', "resource is"),
        ("resource", '{"resource": null}', "resource is null"),
        ("resource", '{"authorization_servers": []}', "authorization_servers of .* without a usable one"),
        ("resource", '{"authorization_servers": ["http://evil.example"]}', "https://"),
        ("resource", '{"authorization_servers": ["{root}?x=y"]}', "issuer"),
        (RESOURCE_PAGE, "404", "has no metadata"),
        (RESOURCE_PAGE, "200 <html>", "no metadata"),
        (RESOURCE_PAGE, "302 location=https://evil.example/", "redirects to another origin"),
        (SERVER_PAGE, "503", "503"),
        (SERVER_PAGE, "404", "has no metadata at http"),
        (SERVER_PAGE, "200 []", "has no metadata at http"),
        (SERVER_PAGE, "302 location=https://evil.example/", "redirects to another origin"),
        ("server", '{"issuer": "https://evil.example"}', "issuer is"),
        ("server", '{"issuer": "{root}//"}', "issuer is"),
        ("server", '{"token_endpoint": "http://evil.example/t"}', "token_endpoint is .*https"),
        ("server", '{"authorization_endpoint": "javascript:alert(1)"}', "authorization_endpoint is"),
        ("server", '{"authorization_endpoint": "https://a@b.example/"}', "authorization_endpoint is"),
        ("server", '{"code_challenge_methods_supported": null}', "assume_pkce"),
        ("server", '{"code_challenge_methods_supported": ["plain"]}', "S256"),
        ("server", '{"registration_endpoint": null}', "client_id="),
        ("/register", '400 {"error": "invalid_redirect_uri"}', "invalid_redirect_uri"),
        ("/register", "404", "token="),
        ("/register", '201 {"client_id": ""}', "client_id is"),
        ("/register", "307 location=/r2", "redirects"),
        ("redirect", '{"iss": "https://evil.example"}', "iss is"),
        ("redirect", '{"iss": "{root}/"}', "iss is"),
        ("redirect", '{"iss": null}', "iss is 'missing'"),
        ("redirect", '{"code": null, "error": "access_denied"}', "access_denied"),
        ("redirect", '{"code": null}', "neither"),
        ("redirect", '{"code": null, "error": "evil", "iss": "https://evil.example"}', "iss is"),
        ("redirect", '{"code": null, "error": "%1b[2J%0Aevil"}', "refused"),
        ("/token", "307 location=/t2", "redirects"),
        ("/token", '400 {"error": "invalid_grant"}', "invalid_grant"),
        ("/token", r'400 {"error": "\u001b[2J", "error_description": "a\r\nb"}', "answered 400"),
        ("/token", '200 {"error": "bad_verification_code"}', "bad_verification_code"),
        ("/token", '200 {"token_type": "Bearer"}', "access_token"),
        ("/token", '200 {"access_token": "hush", "token_type": "mac"}', "token_type is"),
        ("/token", '200 {"access_token": "hush"}', "token_type is null"),
        ("/token", r'200 {"access_token": "hush\r\nb", "token_type": "Bearer"}', "access_token"),
        ("/token", '200 {"access_token": "hush, hush", "token_type": "Bearer"}', "access_token"),
        ("/token", "200 <html>", "/token: access_token"),
        ("/token", '400 {"error": "x", "error_description": "code-1 is unknown"}', "is unknown"),
    ]  # fmt: skip
    #: The steps of a login, and who may lie in each.
    STEPS = {
        "POST /mcp": "", f"GET {RESOURCE_PAGE}": f"resource {RESOURCE_PAGE}", f"GET {SERVER_PAGE}": f"server {SERVER_PAGE}",
        "POST /register": "/register", "a person agrees": "redirect", "POST /token": "/token",
    }  # fmt: skip

    @pytest.mark.parametrize("who, lie, why", LIES)
    async def test_a_lie_ends_the_login_where_it_is_told_and_costs_one_consent(self, who, lie, why):
        async with World().running() as world:
            lie = lie.replace("{root}", world.root)
            if who.startswith("/"):
                status, _, rest = lie.partition(" ")
                where = {"location": rest[9:]} if rest.startswith("location=") else {}
                world.pages[who] = int(status), "" if where else rest, where
            else:
                getattr(world, who).update(json.loads(lie))
            said = await world.refused(why, revision=None)
        seen = [*world.seen, *["a person agrees"] * bool(world.asked)]
        assert who in self.STEPS[[step for step in self.STEPS if step in seen][-1]].split()
        assert len(world.asked) <= 1 and not {"POST /r2", "POST /t2"} & set(seen)
        assert said.isprintable() and len(said) < 800
        state = world.asked[0]["state"] if world.asked else "code-1"
        assert not [secret for secret in (state, "code-1", "hush") if secret in said]

    @pytest.mark.parametrize("published, issuer, fine", [
        ("{root}/", "{root}", True), ("{root}", "{root}/", True), ("{root}/t", "{root}/t/", False),
        ("{root}/t/", "{root}/t", False), ("{root}", "{root}/t", False), ("{root}/t", "{root}/t", True),
    ])  # fmt: skip
    async def test_an_issuer_is_compared_as_it_is_but_for_one_slash_without_a_path(
        self, published, issuer, fine, world
    ):
        published, issuer = (text.replace("{root}", world.root) for text in (published, issuer))
        world.resource["authorization_servers"] = [published]
        world.server["issuer"] = world.redirect["iss"] = issuer
        world.pages[SERVER_PAGE + "/t"] = 200, world.server
        await (world.log_in() if fine else world.refused("issuer is"))

    #: What the challenge names; the issuer's path; the places in order, of which each kind's last is right.
    PLACES = [
        ("", "", [RESOURCE_PAGE], [SERVER_PAGE]),
        ("", "", [RESOURCE_PAGE, RESOURCE_PAGE[:-4]], [SERVER_PAGE]),
        ("/there", "", ["/there"], [SERVER_PAGE]),
        ("", "", [RESOURCE_PAGE], [SERVER_PAGE, "/.well-known/openid-configuration"]),
        ("", "/t", [RESOURCE_PAGE], [
            SERVER_PAGE + "/t", "/.well-known/openid-configuration/t", "/t/.well-known/openid-configuration",
        ]),
    ]  # fmt: skip

    @pytest.mark.parametrize("missing", [(404, ""), (405, ""), (200, "<html>")])
    @pytest.mark.parametrize("named, path, resources, servers", PLACES)
    async def test_metadata_are_looked_for_in_one_order(self, named, path, resources, servers, missing, world):
        """spec: basic/authorization/authorization-server-discovery"""
        world.challenge = f'Bearer resource_metadata="{{root}}{named}"' if named else "Bearer"
        issuer = world.server["issuer"] = world.redirect["iss"] = world.root + path
        world.resource["resource"] = world.root if len(resources) > 1 else world.root + "/mcp"
        world.resource["authorization_servers"] = [issuer]
        world.pages = dict.fromkeys([*resources, *servers], missing)
        world.pages[resources[-1]], world.pages[servers[-1]] = (200, world.resource), (200, world.server)
        await world.log_in()
        assert world.seen[1 : world.seen.index("POST /register")] == [f"GET {page}" for page in resources + servers]
        assert world.asked[0]["resource"] == world.resource["resource"], "as published"

    @pytest.mark.parametrize("target, places", [
        ("/", [""]), ("/mcp/", ["/mcp", "/mcp/", ""]), ("/mcp?a=b", ["/mcp?a=b", ""]),
        ("/mcp/?a=b", ["/mcp/?a=b", ""]), ("/?a=b", ["?a=b", ""]),
    ])  # fmt: skip
    async def test_a_slash_and_a_query_of_the_url_are_in_the_place_of_its_metadata(self, target, places, world):
        """RFC 9728 §3.1; some servers ignore a slash at the end of a path."""
        world.challenge = "Bearer"
        world.pages = {"/": world.mcp, "/mcp/": world.mcp, RESOURCE_PAGE: (404, ""), SERVER_PAGE: (503, "")}
        with pytest.raises(m.AuthError, match="503"):
            async with m.Client(world.root + target, auth=world.oauth()):
                pass
        asked = [request.path + "?" * bool(request.query) + request.query for request in world.requests]
        assert [place for place in asked if RESOURCE_PAGE[:-4] in place] == [RESOURCE_PAGE[:-4] + each for each in places]

    @pytest.mark.parametrize("page", [RESOURCE_PAGE, SERVER_PAGE])
    async def test_an_outage_leads_to_no_other_place(self, page, world):
        world.challenge, world.pages[page] = "Bearer", (500, "")
        await world.refused("500")
        assert world.seen[-1] == f"GET {page}"

    @pytest.mark.parametrize("size, fine", [(1024 * 1024, True), (1024 * 1024 + 1, False)])
    async def test_a_document_has_a_megabyte_at_most(self, size, fine, world):
        text = json.dumps(world.resource)
        world.pages[RESOURCE_PAGE] = 200, text + " " * (size - len(text))
        await (world.log_in() if fine else world.refused("longer"))

    @pytest.mark.parametrize("redirects, fine", [(3, True), (4, False)])
    async def test_a_document_redirects_three_times_at_most_within_its_origin(self, redirects, fine, world):
        for number in range(redirects):
            world.pages[f"/{number}"] = 307, "", {"location": f"/{number + 1}"}
        world.pages[f"/{redirects}"] = 200, world.resource
        world.challenge = 'Bearer resource_metadata="{root}/0"'
        await (world.log_in() if fine else world.refused("more than 3"))

    async def test_a_document_that_does_not_end_is_given_up(self, world):
        began, over = asyncio.Event(), asyncio.Event()

        async def page(request):
            began.set()
            await over.wait()
            return 404, ""

        world.pages[RESOURCE_PAGE] = page
        failing = asyncio.ensure_future(world.refused("20 seconds"))
        await began.wait()
        time_machine()(20.5)
        await failing
        over.set()

    @pytest.mark.parametrize("metadata", [True, False])
    async def test_a_server_of_2025_03_26_is_its_own_authorization_server(self, metadata, world):
        """spec 2025-03-26: basic/authorization#fallbacks-for-servers-without-metadata-discovery"""
        world.challenge, world.pages[RESOURCE_PAGE] = "Bearer", (404, "")
        if not metadata:
            world.pages[SERVER_PAGE], world.redirect["iss"] = (404, ""), None
        await world.log_in()
        assert world.asked[0]["resource"] == world.forms()[0]["resource"] == world.root + "/mcp"
        assert world.opened[0].startswith(world.root + "/authorize?")

    async def test_no_character_of_the_page_means_anything_to_a_shell(self, world):
        """CVE-2025-6514"""
        world.server["authorization_endpoint"] = world.root + "/$(x)'y;{z}|`?q='&a=b"
        await world.log_in()
        assert re.fullmatch(r"[A-Za-z0-9%/?:@!&*+,;=~\[\]._-]+", world.opened[0])
        assert world.asked[0].items() >= {"q": "'", "a": "b"}.items(), "a query that is there stays"

    @pytest.mark.parametrize("target, method", [
        ("/favicon.ico", "GET"), ("/callback", "GET"), ("/callback?state=x&code=y", "GET"),
        ("{home}&code=second", "GET"), ("{home}&state=second", "GET"), ("{home}", "POST"),
    ])  # fmt: skip
    async def test_a_redirect_that_anybody_could_have_sent_means_nothing(self, target, method):
        async with World().running() as world:
            answers = []

            async def browse(url):
                where = urllib.parse.urlsplit(world.agree(url))
                root, home = f"http://{where.netloc}", f"{where.path}?{where.query}"
                answers.append(await ask(root + target.replace("{home}", home), method))
                answers.append(await ask(root + home))

            opened = lambda url: world.browsing.append(asyncio.ensure_future(browse(url)))  # noqa: E731
            await world.log_in(world.oauth(open_browser=opened))
        (refused, _, _), (done, headers, page) = answers
        assert (refused, done, len(world.forms())) == (404, 200, 1)
        assert b"code" not in page and headers["cache-control"] == "no-store"

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
    async def test_we_listen_where_redirect_uri_says_or_say_who_does(self, host, world):
        taken = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        uri = f"http://{host}:{taken.sockets[0].getsockname()[1]}/back"
        auth = world.oauth(client_id="c", redirect_uri=uri)
        await world.refused(f"port {uri.split(':')[2][:-5]}.*redirect_uri", auth)
        taken.close()
        await taken.wait_closed()
        await world.log_in(auth)
        assert world.asked[0]["redirect_uri"] == world.forms()[0]["redirect_uri"] == uri

    @pytest.mark.parametrize("uri", [None, "https://me.example/back"])
    @pytest.mark.parametrize("pasted, why", [
        ("{where}", ""), (" {where}#_=_\r\n", ""), ("{where}&state=x", "belongs to another login"),
        ("done\n", "belongs to another login"), (None, "must return where"), (" \n", "must return where"),
    ])  # fmt: skip
    async def test_a_browser_on_another_machine_ends_at_an_address_that_is_pasted(self, uri, pasted, why, world):
        def browse(url):
            return pasted and pasted.replace("{where}", world.agree(url))

        if waits := uri is None and why == "must return where":  # a browser of this machine may come
            why = "nobody logged in"
        auth = world.oauth(client_id="c", redirect_uri=uri, open_browser=browse, timeout=0.05 if waits else 300)
        await (world.refused(why, auth) if why else world.log_in(auth))
        assert len(world.forms()) == (not why)

    async def test_each_login_registers_anew(self, world):
        """So nothing depends on whether the server still knows who registered formerly."""
        auth, answer = world.oauth(), {"error": "invalid_client"}
        world.pages["/token"] = lambda request: (401, answer) if b"client_id=client-1" in request.body else None
        await world.refused("invalid_client", auth)
        await world.log_in(auth)
        assert world.count("POST /register") == 2

    async def test_a_person_has_some_time_which_no_request_s_timeout_cuts_short(self, capsys, world):
        auth = world.oauth(open_browser=world.opened.append, timeout=0.05)
        await world.refused(r"nobody logged in within 0.05 seconds", auth)
        assert world.opened[0] in capsys.readouterr().err and world.forms() == []

        def slowly(url):
            time_machine()(25)
            asyncio.get_running_loop().call_later(0.01, world.open, url)

        await world.log_in(world.oauth(open_browser=slowly))

    async def test_without_a_person_an_error_says_what_to_type(self, world):
        await world.refused("login http://127.*/mcp", world.oauth(interactive=False))
        assert world.seen == ["POST /mcp"]

    async def test_a_token_that_is_refused_at_once_costs_one_consent(self, world):
        world.give = lambda scope: (200, {"access_token": "bad", "token_type": "bearer"})
        await world.refused("refused the token")
        assert len(world.asked) == 1 and world.count("POST /mcp") == 2

    async def test_more_scope_is_asked_for_with_what_was_asked_for_before(self, world):
        """spec: basic/authorization/index#step-up-authorization-flow"""
        world.resource["scopes_supported"] = ["a"]
        async with world.client() as client:
            world.needs["tools/list"] = "b"
            await client.request("tools/list")
            assert [asked["scope"] for asked in world.asked] == ["a", "a b"]
            world.token = lambda request: world.give("")  # from now on it never gives what was asked for
            world.needs["tools/list"] = "c"
            with pytest.raises(m.AuthError):
                await client.request("tools/list")
            assert [asked["scope"] for asked in world.asked[2:]] == ["a b c"]
            world.pages["/mcp"] = 403, "no"
            with pytest.raises(m.AuthError, match="403"):
                await client.request("tools/list")
            world.pages.clear()
        assert len(world.asked) == 3, "a 403 without a reason is an error"

    async def test_requests_refused_together_wait_for_one_login_that_outlives_each_of_them(self, world):
        world.held = []
        async with world.client() as client:
            world.forget()
            requests = [asyncio.ensure_future(client.request("tools/list")) for _ in range(4)]
            await eventually(lambda: world.held)
            requests.pop(0).cancel()
            await idle()
            await ask(world.agree(world.held[0]))
            await asyncio.gather(*requests)
        assert len(world.held) == 1

    async def test_closing_ends_a_login_and_begins_none(self, world):
        world.held = []
        async with world.client() as client:
            world.forget()
            request = asyncio.ensure_future(client.request("tools/list"))
            await eventually(lambda: world.held)
        with pytest.raises(m.MCPError):
            await request
        assert len(world.held) == 1

    @pytest.mark.parametrize("revision", ["2026-07-28", "2025-03-26"])
    async def test_a_guarded_server_and_our_client_agree_in_each_era(self, revision, world):
        app = m.Server("guarded")

        @app.tool
        def read(ctx: m.Context) -> str:
            return f"{ctx.principal.subject} {ctx.headers.get('authorization')}"

        @app.tool(scopes=["write"])
        def write() -> str:
            return "written"

        def verify(token):
            return m.Principal(world.root, "alice", scopes=world.tokens[token].split()) if token in world.tokens else None

        guard = m.Guard(verify=verify, issuers=[world.root], scopes=["read"])
        async with app.http(port=0, auth=guard) as server:
            async with m.Client(server.url, revision=revision, auth=world.oauth()) as client:
                assert await client.call("read") == "alice None", "no handler sees the token"
                assert await client.call("write") == "written"
        assert [asked["scope"] for asked in world.asked] == ["read", "read write"]

    @pytest.mark.parametrize("address, public", [
        ("8.8.8.8", True), ("2606:4700::1", True), ("10.0.0.1", False), ("127.0.0.1", False),
        ("169.254.169.254", False), ("100.64.0.1", False), ("0.0.0.0", False), ("224.0.0.1", False),
        ("::1", False), ("fe80::1%eth0", False), ("fd00::1", False), ("::ffff:127.0.0.1", False),
        ("::ffff:8.8.8.8", True), ("64:ff9b::a00:1", False), ("64:ff9b::808:808", True),
        ("::10.0.0.1", False), ("fec0::1", False), ("64:ff9b:1::a00:1", False),
    ])  # fmt: skip
    def test_which_addresses_are_public(self, address, public):
        assert m.is_public(address) is public

    @pytest.mark.parametrize("who, lie, why", [
        ("resource", '{"authorization_servers": ["https://127.0.0.1:{port}"]}', "private address 127.0.0.1"),
        ("resource", '{"authorization_servers": ["https://as.example:{port}"]}', "private address 127.0.0.1"),
        ("resource", '{"authorization_servers": ["http://127.0.0.1:{port}"]}', "must begin with https://"),
        ("server", '{"authorization_endpoint": "https://10.0.0.1/"}', "private address 10.0.0.1"),
        ("server", '{"authorization_endpoint": "http://localhost/"}', "must begin with https://"),
        ("server", '{"token_endpoint": "https://as.example:{port}/token"}', "private address 127.0.0.1"),
    ])  # fmt: skip
    async def test_a_public_server_leads_to_no_private_place(self, who, lie, why, certificate, monkeypatch):
        """RFC 9728 §7.7: the address is judged where the socket connects, whatever the name says."""
        wire = asyncio.sslproto._SSLProtocolTransport
        peer_of = wire.get_extra_info

        def get_extra_info(transport, name, default=None):
            found = peer_of(transport, name, default)
            tls = peer_of(transport, "ssl_object")
            far = name == "peername" and tls and tls.server_hostname == "mcp.example"
            return ("93.184.216.34", *found[1:]) if far else found

        monkeypatch.setattr(wire, "get_extra_info", get_extra_info)
        async with world_with_tls(certificate, monkeypatch, "mcp.example") as (world, ours):
            port = world.root.rpartition(":")[2]
            await world.log_in(ssl=ours)
            world.forget()
            before = len(world.seen)
            getattr(world, who).update(json.loads(lie.replace("{port}", port)))
            said = await world.refused(why, ssl=ours)
            assert "allow_private=True" in said or "https" in said
            allowed = {"POST /mcp", f"GET {RESOURCE_PAGE}", *([f"GET {SERVER_PAGE}", "POST /register"] * (who == "server"))}
            assert set(world.seen[before:]) <= allowed
            assert len(world.asked) == (2 if "token_endpoint" in lie else 1)
            await world.log_in(world.oauth(allow_private=True), ssl=ours) if "as.example" in lie and who == "server" else None

    async def test_a_login_on_a_private_network_is_refreshed_by_another_process(
        self, certificate, monkeypatch, tmp_path, later
    ):
        async with world_with_tls(certificate, monkeypatch, "mcp.corp") as (world, ours):
            for _ in range(2):
                await world.log_in(world.oauth(store=m.FileStore(tmp_path)), ssl=ours)
                later(3600)
            assert len(world.asked) == 1 and world.count("POST /token") == 2


class TestWhoWeAre:
    """Registered by the user, named by a document, or without a person."""

    #: How the user registered, and what the server lists; the header and the form of the token request.
    WAYS = [
        (None, ["none"], None, "c d"), (None, None, None, "c d"),
        ("s:ä", None, "c+d:s%3A%C3%A4", None),
        ("s", ["client_secret_basic", "client_secret_post"], "c+d:s", None),
        ("s", ["private_key_jwt", "client_secret_post"], None, "c d s"),
    ]

    @pytest.mark.parametrize("secret, listed, header, fields", WAYS)
    async def test_a_secret_goes_one_way_and_never_two(self, secret, listed, header, fields, world):
        """RFC 6749 §2.3.1"""
        world.server["token_endpoint_auth_methods_supported"] = listed
        await world.log_in(world.oauth(client_id="c d", client_secret=secret, issuer=world.root))
        [request] = [each for each in world.requests if each.path == "/token"]
        form = request.form
        told = " ".join(form[name] for name in ("client_id", "client_secret") if name in form)
        header = header and f"Basic {base64.b64encode(header.encode()).decode()}"
        assert (request.headers.get("authorization"), told or None) == (header, fields)
        assert world.asked[0]["client_id"] == "c d" and "POST /register" not in world.seen

    async def test_a_registered_secret_is_used_though_no_way_is_named(self, world):
        """RFC 7591 §2: client_secret_basic is the default."""
        world.pages["/register"] = 201, {"client_id": "c", "client_secret": "s"}
        await world.log_in()
        [request] = [each for each in world.requests if each.path == "/token"]
        assert request.headers["authorization"] == "Basic " + base64.b64encode(b"c:s").decode()

    async def test_a_token_may_come_with_201_and_a_challenge_may_name_a_page_that_is_not_there(self, world):
        world.challenge = 'Bearer resource_metadata="{root}/nowhere"'
        world.resource["authorization_servers"] = world.root  # no list
        world.server["code_challenge_methods_supported"] = "S256"
        world.pages["/token"] = lambda request: (201, {**world.token(request)[1], "error": None, "scope": ["a"]})
        await world.log_in()
        assert f"GET {RESOURCE_PAGE}" in world.seen

    @pytest.mark.parametrize("listed, wanted", [
        (None, "none"), (["client_secret_post", "none"], "none"), (["client_secret_post"], "client_secret_post"),
        (["private_key_jwt", "client_secret_basic"], "client_secret_basic"),
    ])  # fmt: skip
    async def test_a_registration_asks_for_a_way_that_the_server_lists(self, listed, wanted, world):
        world.server["token_endpoint_auth_methods_supported"] = listed
        world.pages["/register"] = 200, {"client_id": "c9", "client_secret": "s", "client_secret_expires_at": 0}
        await world.log_in()
        assert json.loads(world.requests[3].body)["token_endpoint_auth_method"] == wanted
        assert world.asked[0]["client_id"] == "c9"

    @pytest.mark.parametrize("supported, wanted", [
        (True, "https://me.example/id.json"), ("yes", "client-1"), (None, "client-1"),
    ])  # fmt: skip
    async def test_a_document_is_a_client_id_where_the_server_takes_such(self, supported, wanted, world):
        world.server["client_id_metadata_document_supported"] = supported
        await world.log_in(world.oauth(client_metadata_url="https://me.example/id.json"))
        assert world.asked[0]["client_id"] == wanted

    @pytest.mark.parametrize("options, why", [
        ({"client_secret": "s"}, "client_id="), ({"client_id": "c", "client_secret": "s"}, "issuer="),
        ({"client_id": "c", "assertion": str}, "issuer="), ({"redirect_uri": "http://evil.example/cb"}, "redirect_uri"),
        ({"redirect_uri": "app:/callback"}, "redirect_uri"), ({"scopes": 'a"b'}, "scope"),
    ])  # fmt: skip
    def test_options_of_a_login_that_could_not_work_are_refused_at_once(self, options, why):
        with pytest.raises(ValueError, match=why):
            m.OAuth(**options)
        with pytest.raises(ValueError, match="issuer="):
            m.ClientCredentials("me", "s")

    def test_the_class_stands_for_an_oauth_without_arguments(self):
        transport = m.HTTPTransport("http://127.0.0.1:1/mcp", auth=m.OAuth)
        assert isinstance(transport.auth, m.Login) and transport.auth.oauth.client_id is None

    async def test_tokens_go_by_https_alone_but_on_this_machine(self):
        with pytest.raises(m.AuthError, match="https://"):
            async with m.Client("http://a.example/mcp", auth=m.OAuth(store=m.TokenStore())):
                pass

    async def test_an_id_or_a_secret_is_sent_to_its_issuer_alone(self, world):
        async with World().running() as evil:
            given = {"client_id": "c", "client_secret": "s", "issuer": world.root}
            evil.resource["authorization_servers"] = [evil.root, "https://other.example"]
            for auth in (evil.oauth(**given), m.ClientCredentials("c", "s", issuer=world.root)):
                await evil.refused(f"without {world.root}", auth)
            evil.pages[RESOURCE_PAGE], evil.challenge = (404, ""), ""  # then it is its own authorization server
            evil.pages["/.well-known/oauth-protected-resource"] = 404, ""
            await evil.refused(f"without {world.root}", evil.oauth(**given))
            world.resource["authorization_servers"] = ["https://other.example", world.root]
            await world.log_in(world.oauth(**given))
            assert world.count("POST /token") == 1 and "POST /token" not in evil.seen

    async def test_urls_of_a_login_may_be_objects_of_another_library(self, later, world):
        await world.log_in(world.oauth(client_id="c", client_secret="s", issuer=Url(world.root)))
        world.server["client_id_metadata_document_supported"] = True
        await world.log_in(world.oauth(client_metadata_url=Url("https://me.example/id.json")))
        assert [asked["client_id"] for asked in world.asked] == ["c", "https://me.example/id.json"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            uri = f"http://127.0.0.1:{free.getsockname()[1]}/back"
        await world.log_in(world.oauth(redirect_uri=Url(uri)))
        assert world.asked[2]["redirect_uri"] == uri
        verify = judge_of(issuer=Url("https://as.example"), audience=Url("https://a.example/mcp"))
        assert await verify(jwt('{"alg":"ES256"}', claims()))

    async def test_the_first_login_fixes_the_issuer_of_an_id(self, world):
        async with World().running() as second:
            auth = world.oauth(client_id="c")
            await world.log_in(auth)
            world.forget()
            world.resource["authorization_servers"] = [second.root]
            await world.refused(f"without {world.root}", world.oauth(client_id="c", store=auth.store))
            await world.refused(f"without {world.root}", auth)
            await second.refused(f"without {world.root}", auth)  # clients share the object
            assert "POST /token" not in second.seen

    async def test_a_login_of_another_issuer_is_not_used(self, world):
        store = m.TokenStore()
        await world.log_in(world.oauth(client_id="c", store=store))
        world.tokens.clear()
        auth = world.oauth(client_id="c", client_secret="s", issuer="https://as.example", store=store)
        await world.refused("without https://as.example", auth)
        assert world.count("POST /token") == 1

    @pytest.mark.parametrize("resource, sent", [(None, None), ("api://x", "api://x")])
    async def test_the_user_may_choose_the_resource_and_add_parameters(self, resource, sent, world):
        await world.log_in(world.oauth(resource=resource, extra={"prompt": "consent"}))
        assert world.asked[0].get("resource") == world.forms()[0].get("resource") == sent
        assert world.asked[0]["prompt"] == "consent"
        del world.server["code_challenge_methods_supported"]
        await world.log_in(world.oauth(assume_pkce=True))

    async def test_a_program_logs_in_with_its_secret_or_what_its_platform_gives(self, keys, later, world):
        del world.server["authorization_endpoint"], world.server["code_challenge_methods_supported"]
        world.refreshes = False
        async with world.client(m.ClientCredentials("me", "s", scopes="a", issuer=world.root)) as client:
            later(3600)
            await client.request("tools/list")
        jwts = iter(["jwt-1", "jwt-2"])
        await world.log_in(keys.WorkloadIdentity("me", lambda: next(jwts), issuer=world.root))
        first, again, platform = world.forms()
        assert first == again == {
            "grant_type": "client_credentials", "scope": "a", "resource": world.root + "/mcp",
        }  # fmt: skip
        assert platform == {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "jwt-1",
            "client_id": "me", "resource": world.root + "/mcp",
        }  # fmt: skip
        assert world.asked == [] and "POST /register" not in world.seen

    @pytest.mark.parametrize("kind, fine", [("id-jag", True), ("access_token", False)])
    async def test_a_company_vouches_for_a_person(self, kind, fine, keys, world):
        kind = "urn:ietf:params:oauth:token-type:" + kind
        world.pages["/idp"] = 200, {"access_token": "jag", "token_type": "N_A", "issued_token_type": kind}
        auth = keys.IdentityAssertion(
            "me", "s", idp_token_endpoint=world.root + "/idp", idp_client_id="i", id_token="theirs", issuer=world.root
        )
        await (world.log_in(auth) if fine else world.refused("issued_token_type", auth))
        assert world.forms("/idp") == [{
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "client_id": "i",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag", "subject_token": "theirs",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token", "audience": world.root,
            "resource": world.root + "/mcp",
        }]  # fmt: skip
        assert [form["assertion"] for form in world.forms()] == ["jag"] * fine

    #: PKCS #8 of the private number 1, by hand: what `openssl pkcs8` writes, without the public key.
    PEM = ("-----BEGIN PRIVATE KEY-----\n" "MEECAQAwEwYHKoZIzj0CAQYIKoZIzj0DAQcEJzAlAgEBBCAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQ=="
           "\n-----END PRIVATE KEY-----")  # fmt: skip

    async def test_a_signed_assertion_takes_the_place_of_a_secret(self, keys, world):
        proof = keys.assertion_of(self.PEM, "me")
        await world.log_in(m.ClientCredentials("me", assertion=proof, issuer=world.root))
        await world.log_in(world.oauth(client_id="me", assertion=lambda issuer: f"for {issuer}", issuer=world.root))
        first, second = world.forms()
        signed, _, signature = first["client_assertion"].rpartition(".")
        claims = json.loads(base64.urlsafe_b64decode(signed.split(".")[1] + "=="))
        assert (claims["aud"], claims["iss"], claims["sub"]) == (world.root, "me", "me")
        right = base64.urlsafe_b64decode(signature + "==")
        assert m.signed_by([EC_JWK], "ES256", signed.encode(), right)
        assert second["client_assertion"] == f"for {world.root}" and "client_id" not in first

    async def test_a_login_by_dpop_proves_its_key_with_each_request(self, keys, world):
        """RFC 9449 §8, §9"""
        def token(request):
            proof = claims_of(request)
            if "nonce" not in proof:
                return 400, {"error": "use_dpop_nonce"}, {"dpop-nonce": "n1"}
            status, doc = world.token(request)
            return status, {**doc, "token_type": "DPoP"}

        def claims_of(request):
            signed, _, signature = request.headers["dpop"].rpartition(".")
            header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in signed.split("."))
            assert m.signed_by([header["jwk"]], "ES256", signed.encode(), base64.urlsafe_b64decode(signature + "=="))
            return claims

        world.challenge, world.pages["/token"] = "DPoP", token
        await world.log_in(keys.DPoP(store=m.TokenStore(), open_browser=world.open))
        [*_, last] = [request for request in world.requests if "dpop" in request.headers]
        bearer = last.headers["authorization"].partition(" ")
        claims = claims_of(last)
        assert bearer[0] == "DPoP" and claims["htu"] == world.root + "/mcp" and claims["nonce"] == "n1"
        assert claims["ath"] == url64(hashlib.sha256(bearer[2].encode()).digest())
        assert len(world.asked) == 1

    @pytest.mark.parametrize("revision", [None, "2025-11-25"])
    @pytest.mark.parametrize("options, told", [
        ({}, '; pass token= (or --token), headers= or auth="oauth"'), ({"token": "wrong"}, ""), ({"auth": "wrong"}, ""),
        ({"headers": {"Authorization": "Bearer wrong"}}, ""),
    ])  # fmt: skip
    async def test_who_has_passed_nothing_is_told_what_to_pass(self, options, told, revision, world):
        with pytest.raises(m.AuthError, match="answered 401") as caught:
            async with m.Client(world.root + "/mcp", revision=revision, **options):
                pass
        assert str(caught.value).partition("who are you?")[2] == told

    async def test_a_token_from_elsewhere_is_a_text_or_what_a_function_gives_each_time(self, world):
        world.tokens.update(t1="", t2="")
        given = iter(["old", "t1", "t1", "t2", "t2", "t2", "t2"])
        await world.log_in("t1")
        await world.log_in(lambda: next(given))
        sent = {request.headers.get("authorization") for request in world.requests}
        assert sent == {"Bearer t1", "Bearer old", "Bearer t2"} and world.asked == []
        with pytest.raises(ValueError, match='visible ASCII, without blanks or "Bearer"') as caught:
            await world.log_in("hush\n")
        assert "hush" not in str(caught.value)


class TestTokensInUse:
    """Kept, refreshed, and shown to nobody."""

    @pytest.mark.parametrize("body", ["", "{}"])
    async def test_a_login_lasts_beyond_the_process_and_ends_with_the_logout(self, body, tmp_path, later, world, caplog):
        world.server["revocation_endpoint"] = world.root + "/revoke"
        world.pages["/revoke"] = 200, body
        for _ in range(2):
            await world.log_in(world.oauth(store=m.FileStore(tmp_path / "x")))
        assert len(world.asked) == 1 and world.count("POST /token") == 1
        later(3600)
        del world.tokens["access-2"]
        await world.log_in(world.oauth(store=m.FileStore(tmp_path / "x")))
        assert world.count(f"GET {RESOURCE_PAGE}") == 1, "it knows that the token has expired"
        auth = world.oauth(store=m.FileStore(tmp_path / "x"))
        assert await m.logout(world.root + "/mcp", auth=auth) is True
        assert world.forms("/revoke") == [{"token": "refresh-3", "client_id": "client-1"}]
        assert await m.logout(world.root + "/mcp", auth=auth) is False and caplog.text == ""
        await world.log_in(auth)
        assert len(world.asked) == 2

    async def test_a_logout_that_cannot_revoke_the_tokens_says_so(self, world, caplog):
        world.server["revocation_endpoint"] = world.root + "/revoke"
        world.pages["/revoke"] = 503, ""
        auth = world.oauth()
        await world.log_in(auth)
        assert await m.logout(world.root + "/mcp", auth=auth) is True
        assert f"the tokens of {world.root}/mcp are not revoked: {world.root}/revoke answered 503" in caplog.text

    async def test_a_token_is_refreshed_once_for_all_before_it_expires(self, later, world):
        async with world.client() as client:
            later(3594)
            await client.request("tools/list")
            assert world.count("POST /token") == 1
            later(1.5)
            await asyncio.gather(*(client.request("tools/list") for _ in range(5)))
        assert world.forms()[1:] == [{
            "grant_type": "refresh_token", "refresh_token": "refresh-2", "client_id": "client-1",
            "resource": world.root + "/mcp",
        }]  # fmt: skip

    @not_under_wine("msvcrt.locking fails with errno 0")
    async def test_programs_that_share_a_store_refresh_once(self, tmp_path, world):
        one, two = (world.client(world.oauth(store=m.FileStore(tmp_path / "x"))) for _ in range(2))
        async with one, two:
            world.tokens.clear()
            await asyncio.gather(*(client.request("tools/list") for client in (one, two) * 3))
            assert world.count("POST /token") == 2 and len(world.asked) == 1
            world.forget()
            world.refreshers["mine"] = ""
            await world.log_in(world.oauth(store=m.FileStore(tmp_path / "x")))
            asked = len(world.asked)
            await asyncio.gather(one.request("tools/list"), two.request("tools/list"))
            assert len(world.asked) == asked, "a login of another program is found"

    async def test_a_refreshed_token_is_saved_before_it_is_used_though_its_request_is_cancelled(self, world):
        came, gate, saved = asyncio.Event(), asyncio.Event(), []

        class Store(m.TokenStore):
            async def save(self, key, value):
                saved.append(json.dumps(value))
                await super().save(key, value)

        async with world.client(world.oauth(store=Store())) as client:
            world.tokens.clear()

            async def slowly(request):
                came.set()
                await gate.wait()

            world.pages["/token"] = slowly
            asking = asyncio.ensure_future(client.request("tools/list"))
            await came.wait()
            asking.cancel()
            await asyncio.wait([asking])
            closing = asyncio.ensure_future(client.close())
            await idle()
            gate.set()
            await closing
        assert "refresh-3" in saved[-1], "to close waits for it"

    async def test_a_refreshed_token_is_not_used_before_it_is_saved(self, world):
        saving, gate = asyncio.Event(), asyncio.Event()

        class Store(m.TokenStore):
            async def save(self, key, value):
                if "refresh-3" in json.dumps(value):
                    saving.set()
                    await gate.wait()
                await super().save(key, value)

        async with world.client(world.oauth(store=Store())) as client:
            world.tokens.pop("access-2")
            requests = [asyncio.ensure_future(client.request("tools/list"))]
            await saving.wait()
            before = world.count("POST /mcp")
            requests.append(asyncio.ensure_future(client.request("tools/list")))
            await eventually(lambda: world.count("POST /mcp") > before)
            assert world.requests[-1].headers["authorization"] == "Bearer access-2"
            gate.set()
            await asyncio.gather(*requests)
        assert world.count("POST /token") == 2

    @pytest.mark.parametrize("answer, logins", [
        ('400 {"error": "invalid_grant"}', 2), ('401 {"error": "invalid_client"}', 2),
        ('400 {"error": "invalid_scope"}', 2), ("404", 2), ('200 {"error": "x"}', 2), ("200 <html>", 2),
        ("500", 1), ("502 <html>", 1), ("429", 1),
    ])  # fmt: skip
    async def test_a_refused_refresh_costs_a_login_and_an_outage_none(self, answer, logins, world):
        async with world.client() as client:
            world.tokens.clear()
            status, _, text = answer.partition(" ")
            world.pages["/token"] = lambda request: (int(status), text) if b"refresh_token" in request.body else None
            if logins == 2:
                await client.request("tools/list")
            else:
                with pytest.raises(m.MCPError):
                    await client.request("tools/list")
                world.pages.clear()
                await client.request("tools/list")
        assert len(world.asked) == logins

    async def test_a_token_is_used_to_its_end_where_it_cannot_be_refreshed_early(self, later, world):
        async with world.client() as client:
            for page in ("503", "400"):
                world.pages["/token"] = int(page), ""
            later(3596)
            await client.request("tools/list")
            assert world.count("POST /token") == 2
            del world.pages["/token"]
            world.challenge += ', scope="now"'
            world.refreshers.clear()
            later(30)
            await client.request("tools/list")
        assert len(world.asked) == 2 and world.asked[1]["scope"] == "now", "the challenge says what is needed"

    @pytest.mark.parametrize("change", [
        {"tokens": {}}, {"server": None}, {"client": {}}, {"tokens": None}, {"tokens": []}, {"asked": ["a"]},
        {"tokens": {"access_token": "a", "expires_at": "soon"}}, {"tokens": {"access_token": 7}},
        {"client": {"client_id": "c", "client_secret": 7}}, {"server": {"issuer": ["x"]}},
    ])  # fmt: skip
    async def test_a_damaged_login_costs_a_warning_and_a_login(self, change, tmp_path, caplog, world):
        store = m.FileStore(tmp_path)
        await world.log_in(world.oauth(store=store))
        [file] = tmp_path.glob("*.json")
        doc = json.loads(file.read_text())
        doc["value"].update(change)
        doc["value"] = {name: value for name, value in doc["value"].items() if value is not None}
        file.write_text(json.dumps(doc))
        world.tokens.clear()
        await world.log_in(world.oauth(store=store))
        assert len(world.asked) == 2 and "damaged" in caplog.text

    async def test_a_login_that_was_kept_for_another_server_is_not_used(self, tmp_path, caplog):
        store, here, there = m.FileStore(tmp_path), ("login", "https://a.example"), ("login", "https://b.example")
        await store.save(here, {"a": 1})
        os.replace(store.file(here), store.file(there))
        assert await store.load(there) is None and "another server" in caplog.text
        for damaged in (b"", b'{"key', b"\xff\xfe", b"[" * 100_000, b"null", b'{"key": 1}'):
            pathlib.Path(store.file(there)).write_bytes(damaged)
            assert await store.load(there) is None
        assert caplog.text.count("cannot be read") == 7

    async def test_an_answer_without_a_refresh_token_leaves_the_old_one(self, world):
        async with world.client() as client:
            for _ in range(2):
                world.tokens.clear()
                world.refreshers["refresh-2"], world.refreshes = "", False
                await client.request("tools/list")
        assert [form.get("refresh_token") for form in world.forms()] == [None, "refresh-2", "refresh-2"]

    async def test_a_refresh_token_that_no_form_can_have_is_not_kept(self, world):
        world.pages["/token"] = lambda request: (200, {**world.give("a")[1], "refresh_token": "\ud800"})
        auth = world.oauth()
        await world.log_in(auth)
        await m.logout(world.root + "/mcp", auth=auth)
        world.tokens.clear()
        await world.log_in(auth)
        assert len(world.asked) == 2

    async def test_an_expired_token_is_not_sent(self, later, world):
        """The TypeScript SDK's example answers 500 to it, so no login would follow."""
        world.refreshes = False
        auth = world.oauth()
        await world.log_in(auth)
        later(3601)
        await world.log_in(auth)
        sent = [request.headers.get("authorization") for request in world.requests if request.path == "/mcp"]
        assert len(world.asked) == 2 and sent.count(None) == 2

    #: What the token endpoint says of the token's life; how many seconds later it is good, then not.
    LIVES = [('"60"', 54, 56), ("100", 94, 96)]

    @pytest.mark.parametrize("life, good, old", LIVES)
    async def test_how_long_a_token_is_used(self, life, good, old, later, world):
        world.life = json.loads(life)
        async with world.client() as client:
            later(good)
            await client.request("tools/list")
            assert world.count("POST /token") == 1
            later(old - good)
            await client.request("tools/list")
            assert world.count("POST /token") == 2

    @pytest.mark.parametrize("life", ["0", "-1", '"nan"', '"inf"', "1e300", "true"])
    async def test_a_life_that_is_none_means_that_nothing_is_known_of_it(self, life, later, world):
        world.life = json.loads(life)
        async with world.client() as client:
            later(7200)
            await client.request("tools/list")
            assert world.count("POST /token") == len(world.asked) == 1

    async def test_whoever_logs_out_is_not_logged_in_by_a_program_that_still_runs(self, later, world):
        auth = world.oauth()
        async with world.client(auth) as client:
            await m.logout(world.root + "/mcp", auth=auth)
            later(3600)
            await client.request("tools/list")
        assert len(world.asked) == 2 and not [form for form in world.forms() if "refresh_token" in form]

    async def test_nothing_secret_is_shown(self, caplog, capsys, world):
        shown = []
        caplog.set_level(0)
        m.set_trace(lambda *what: shown.append(what))
        try:
            auth = world.oauth(client_id="c", client_secret="hush-secret", issuer=world.root)
            async with world.client(auth) as client:
                world.tokens.clear()
                await client.request("tools/list")
                world.pages["/token"] = 400, {"error": "invalid_grant", "error_description": "not hush-secret"}
                world.tokens.clear()
                with pytest.raises(m.AuthError) as caught:
                    await client.request("tools/list")
                shown.append((repr(auth), repr(client), str(caught.value)))
        finally:
            m.set_trace(None)
        form = world.forms()[0]
        text = repr(shown) + caplog.text + capsys.readouterr().err.replace(world.opened[0], "").replace(world.opened[1], "")
        secrets = ["access-", "refresh-", "code-", "hush", form["code_verifier"], *(a["state"] for a in world.asked)]
        assert "/token" in text and not [secret for secret in secrets if secret in text]

    @pytest.mark.parametrize("secret", ["hush" * 200, 'hush"\\é'])
    async def test_an_error_does_not_show_a_part_of_a_secret_that_it_repeats(self, secret, world):
        world.pages["/token"] = 400, {"error": "x", "error_description": f"unknown: {secret}"}
        auth = world.oauth(client_id="c", client_secret=secret, issuer=world.root)
        assert "hush" not in await world.refused("unknown: ...", auth)

    @pytest.mark.parametrize("make", [m.TokenStore, m.FileStore])
    async def test_a_store_gives_back_what_it_was_given(self, make, tmp_path):
        store, key = make(), ("x", "https://a.example/é")
        for value in ({"a": [1.5, None, "é"]}, {"b": {}}):
            await store.save(key, value)
            for other in (("x",), (*key, ""), ("y", key[1])):
                assert await store.load(other) is None
            assert await store.load(key) == value
        await store.save(key, None)
        await store.save(key, None)
        assert await store.load(key) is None

    async def test_a_login_is_saved_although_another_program_reads_the_old_one(self, tmp_path):
        store, key = m.FileStore(tmp_path), ("x", "https://a.example/mcp")
        await store.save(key, {"a": 1})
        with open(store.file(key), "rb") as reader:  # on Windows, nobody can replace the file meanwhile
            asyncio.get_running_loop().call_later(0.1, reader.close)
            await store.save(key, {"a": 2})
        assert await m.FileStore(tmp_path).load(key) == {"a": 2}
        assert len(os.listdir(tmp_path)) == 1

    @posix
    async def test_files_are_whole_and_for_their_owner_alone(self, tmp_path, monkeypatch, caplog):
        store, key = m.FileStore(), ("x", "https://a.example/mcp")
        before = os.umask(0)
        try:
            await store.save(key, {"a": 1})
        finally:
            os.umask(before)
        folder = tmp_path / "tokens"
        [file] = [each for each in folder.iterdir() if each.name.endswith(".json")]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert "a.example" not in file.name
        uid = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
        assert await store.load(key) is None, "a login of another user is none"
        monkeypatch.undo()
        await store.save(key, {"a": 1})
        file.write_text('{"half": ')
        assert await store.load(key) is None and "login" in caplog.text
        await store.save(key, {"a": 2})
        assert await store.load(key) == {"a": 2}

    async def test_an_old_login_is_not_read_again_where_the_new_one_cannot_be_written(self, tmp_path, monkeypatch):
        store, key = m.FileStore(tmp_path), ("x", "https://a.example/mcp")
        await store.save(key, {"a": 1})

        def replace(*paths):
            raise OSError("read-only")

        monkeypatch.setattr(os, "replace", replace)
        await store.save(key, {"a": 2})
        assert await store.load(key) == {"a": 2}
        monkeypatch.undo()
        await store.save(key, {"a": 3})
        assert await store.load(key) == await m.FileStore(tmp_path).load(key) == {"a": 3}

    async def test_where_no_file_can_be_written_a_login_lasts_as_long_as_the_process(self, tmp_path, caplog, world):
        (tmp_path / "file").write_text("")
        store = m.FileStore(tmp_path / "file" / "tokens")
        for _ in range(2):
            await world.log_in(world.oauth(store=store))
        assert len(world.asked) == 1 and "MCP_LITE_TOKENS" in caplog.text


#: The base point of P-256 is the public key of the number 1. FIPS 186-4 §D.1.2.3
G_X = 0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296
G_Y = 0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def url64(data):
    data = data.to_bytes((data.bit_length() + 7) // 8, "big") if isinstance(data, int) else data
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


EC_JWK = {"kty": "EC", "crv": "P-256", "x": url64(G_X), "y": url64(G_Y)}
#: RFC 7515 §A.3
EXAMPLE_JWK = {
    "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
}  # fmt: skip


def es256(data, number=1):
    """Sign with the nonce 1, which gives the key away, and needs no arithmetic on the curve."""
    digest = int.from_bytes(hashlib.sha256(data).digest(), "big")
    return G_X.to_bytes(32, "big") + ((digest + G_X * number) % P256_ORDER).to_bytes(32, "big")


def rsa(bits, hash_name="sha256", pad=b"\xff"):
    """Return a JWK, and a function that signs: with a prime modulus, whose private part is at hand."""
    info = {"sha256": "3031300d060960864801650304020105000420", "sha384": "3041300d060960864801650304020205000430",
            "sha512": "3051300d060960864801650304020305000440"}[hash_name]  # fmt: skip
    n, size = 2**bits - 1, (bits + 7) // 8

    def sign(data):
        end = b"\0" + bytes.fromhex(info) + hashlib.new(hash_name, data).digest()
        number = int.from_bytes(b"\0\1" + pad * (size - 2 - len(end)) + end, "big")
        return pow(number, pow(65537, -1, n - 1), n).to_bytes(size, "big")

    return {"kty": "RSA", "n": url64(n), "e": "AQAB"}, sign


def jwt(header, claims, sign=es256):
    """Return a token; header and claims are JSON as text."""
    signed = f"{url64(header.encode())}.{url64(claims.encode())}".encode()
    return f"{signed.decode()}.{url64(sign(signed))}"


CLAIMS = {"iss": "https://as.example", "aud": "https://a.example/mcp", "sub": "alice", "exp": NOW + 60}


def claims(change="{}"):
    """Return good claims as JSON, with a change; null takes one away."""
    changed = {**CLAIMS, **json.loads(change.replace("now", str(int(NOW))))}
    return json.dumps({name: value for name, value in changed.items() if value is not None})


def judge_of(**options):
    options = {"audience": "https://a.example/mcp", "keys": [EC_JWK], **options}
    return m.jwt_verifier(options.pop("issuer", "https://as.example"), **options)


class TestTokens:
    """RFC 7515, 7518, 7519 by the rules of RFC 8725 and RFC 9068."""

    #: A header, and whether a token with it may be believed.
    HEADERS = [
        ('{"alg":"ES256"}', True), ('{"alg":"ES256","typ":"JWT"}', True), ('{"alg":"ES256","typ":"at+jwt"}', True),
        ('{"alg":"ES256","typ":"application/AT+JWT"}', True), ('{"alg":"ES256","kid":"k"}', False),
        ('{"alg":"none"}', False), ('{"alg":"HS256"}', False), ('{"alg":"es256"}', False), ("{}", False),
        ('{"alg":["ES256"]}', False), ('{"alg":"RS256"}', False), ('{"alg":"ES256","crit":["b64"]}', False),
        ('{"alg":"ES256","typ":"dpop+jwt"}', False), ('{"alg":"ES256","typ":7}', False), ("[]", False),
        ('{"alg":"ES256","alg":"none"}', False), ('{"alg":"ES256"', False), ("\udcff", False),
        (json.dumps({"alg": "ES256", "jwk": EC_JWK, "jku": "https://evil.example", "x5u": "https://evil.example"}), True),
    ]  # fmt: skip

    @pytest.mark.parametrize("header, fine", HEADERS)
    async def test_a_header_chooses_nothing_that_was_not_offered(self, header, fine, later):
        token = jwt(header.encode("utf-8", "surrogateescape").decode("latin-1"), claims())
        assert bool(await judge_of()(token)) is fine
        assert not await judge_of(keys=[EXAMPLE_JWK])(token), "a key that the token brings counts for nothing"

    #: Changes of good claims; whether they are good still. Clocks may differ by 30 seconds.
    CLAIMS = [
        ("{}", True), ('{"aud": ["x", "https://a.example/mcp"]}', True), ('{"nbf": now, "iat": now}', True),
        ('{"scope": {"a": 1}}', True),
        ('{"sub": null, "client_id": "c"}', True), ('{"exp": 1499999971}', True), ('{"exp": 1499999970}', False),
        ('{"nbf": 1500000030}', True), ('{"nbf": 1500000031}', False), ('{"iat": 1500000031}', False),
        ('{"exp": null}', False), ('{"exp": "never"}', False), ('{"exp": true}', False), ('{"exp": 1e400}', False),
        ('{"nbf": "x"}', False), ('{"iss": "https://as.example/"}', False), ('{"iss": null}', False),
        ('{"iss": ["https://as.example"]}', False), ('{"aud": "https://a.example/mcp/"}', False),
        ('{"aud": "https://a.example"}', False), ('{"aud": null}', False), ('{"aud": []}', False),
        ('{"aud": [["https://a.example/mcp"]]}', False), ('{"aud": {}}', False), ('{"sub": null}', False),
        ('{"sub": 7}', False), ('{"cnf": {"jkt": "x"}}', False),
    ]  # fmt: skip

    @pytest.mark.parametrize("change, fine", CLAIMS)
    async def test_claims_are_our_issuer_s_for_us_and_for_now(self, change, fine, later, caplog):
        caplog.set_level(logging.INFO)
        token = jwt('{"alg":"ES256"}', claims(change))
        assert bool(await judge_of()(token)) is fine
        assert ("token is refused" in caplog.text) is not fine and token.split(".")[2] not in caplog.text

    def test_any_other_signature_is_wrong(self, later):
        signed = jwt('{"alg":"ES256"}', claims()).rpartition(".")[0]
        right, dice = es256(signed.encode()), rng("bits")
        order, zero = P256_ORDER.to_bytes(32, "big"), bytes(32)
        wrong = [b"", right[:63], right + b"\0", zero + right[32:], right[:32] + zero, order + right[32:],
                 right[:32] + order, es256(signed.encode(), 2), es256(b"other")]  # fmt: skip
        wrong += [(int.from_bytes(right, "big") ^ 1 << dice.randrange(512)).to_bytes(64, "big") for _ in range(5)]
        for number, signature in enumerate([right, *wrong]):
            assert bool(run(judge_of()(f"{signed}.{url64(signature)}"))) is (number == 0), number

    #: The hardest of Wycheproof's ecdsa_secp256r1_sha256_p1363_test.json: what is hard, whether the
    #: signature is right, x and y of the key, the data, r and s of the signature; all in hex.
    HARD = [
        ("Edge case for Shamir multiplication", True, "2927b10512bae3eddcfe467828128bad2903269919f7086069c8c4df6c732838",
         "c7787964eaac00e5921fb1498a60f4606766b3d9685001558d1a974e7341513e", "3639383139",
         "64a1aab5000d0e804f3e2fc02bdee9be8ff312334e2ba16d11547c97711c898e", "6af015971cc30be6d1a206d4e013e0997772a2f91d73286ffd683b9bb2cf4f1b"),
        ("special case hash", True, "2927b10512bae3eddcfe467828128bad2903269919f7086069c8c4df6c732838",
         "c7787964eaac00e5921fb1498a60f4606766b3d9685001558d1a974e7341513e", "3131303230383333373736",
         "2f7a5e9e5771d424f30f67fdab61e8ce4f8cd1214882adb65f7de94c31577052", "ac4e69808345809b44acb0b2bd889175fb75dd050c5a449ab9528f8f78daa10c"),
        ("k*G has a large x-coordinate", True, "0ad99500288d466940031d72a9f5445a4d43784640855bf0a69874d2de5fe103",
         "c5011e6ef2c42dcd50d5d3d29f99ae6eba2c80c9244f4c5422f0979ff0c3ba5e", "313233343030",
         "000000000000000000000000000000004319055358e8617b0c46353d039cdaab", "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc63254e"),
        ("r and s^-1 have a large Hamming weight", True, "80984f39a1ff38a86a68aa4201b6be5dfbfecf876219710b07badf6fdd4c6c56",
         "11feb97390d9826e7a06dfb41871c940d74415ed3cac2089f1445019bb55ed95", "313233343030",
         "7ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffd", "909135bdb6799286170f5ead2de4f6511453fe50914f3df2de54a36383df8dd4"),
        ("point at infinity during verify", False, "b533d4695dd5b8c5e07757e55e6e516f7e2c88fa0239e23f60e8ec07dd70f287",
         "1b134ee58cc583278456863f33c3a85d881f7d4a39850143e29d4eaf009afe47", "313233343030",
         "7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8", "555555550000000055555555555555553ef7a8e48d07df81a693439654210c70"),
        ("u1 == n - 1", True, "d8adc00023a8edc02576e2b63e3e30621a471e2b2320620187bf067a1ac1ff32",
         "33e2b50ec09807accb36131fff95ed12a09a86b4ea9690aa32861576ba2362e1", "313233343030",
         "555555550000000055555555555555553ef7a8e48d07df81a693439654210c70", "44a5ad0ad0636d9f12bc9e0a6bdd5e1cbcb012ea7bf091fcec15b0c43202d52e"),
        ("u2 == 1", True, "3623ac973ced0a56fa6d882f03a7d5c7edca02cfc7b2401fab3690dbe75ab785",
         "8db06908e64b28613da7257e737f39793da8e713ba0643b92e9bb3252be7f8fe", "313233343030",
         "555555550000000055555555555555553ef7a8e48d07df81a693439654210c70", "555555550000000055555555555555553ef7a8e48d07df81a693439654210c70"),
        ("point duplication during verification", True, "5b812fd521aafa69835a849cce6fbdeb6983b442d2444fe70e134c027fc46963",
         "838a40f2a36092e9004e92d8d940cf5638550ce672ce8b8d4e15eba5499249e9", "313233343030",
         "6f2347cab7dd76858fe0555ac3bc99048c4aacafdfb6bcbe05ea6c42c4934569", "bb726660235793aa9957a61e76e00c2c435109cf9a15dd624d53f4301047856b"),
        ("duplication bug", False, "5b812fd521aafa69835a849cce6fbdeb6983b442d2444fe70e134c027fc46963",
         "7c75bf0c5c9f6d17ffb16d2726bf30a9c7aaf31a8d317472b1ea145ab66db616", "313233343030",
         "6f2347cab7dd76858fe0555ac3bc99048c4aacafdfb6bcbe05ea6c42c4934569", "bb726660235793aa9957a61e76e00c2c435109cf9a15dd624d53f4301047856b"),
        ("point with x-coordinate 0", False, "6adda82b90261b0f319faa0d878665a6b6da497f09c903176222c34acfef72a6",
         "47e6f50dcc40ad5d9b59f7602bb222fad71a41bf5e1f9df4959a364c62e488d9", "313233343030",
         "0000000000000000000000000000000000000000000000000000000000000001", "555555550000000055555555555555553ef7a8e48d07df81a693439654210c70"),
        ("extreme value for k and edgecase s", True, "4fea55b32cb32aca0c12c4cd0abfb4e64b0f5a516e578c016591a93f5a0fbcc5",
         "d7d3fd10b2be668c547b212f6bb14c88f0fecd38a8a4b2c785ed3be62ce4b280", "313233343030",
         "7cf27b188d034f7e8a52380304b51ac3c08969e277f21b35a60b48fc47669978", "555555550000000055555555555555553ef7a8e48d07df81a693439654210c70"),
        ("public key shares x-coordinate with generator", False, "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296",
         "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5", "313233343030",
         "bb5a52f42f9c9261ed4361f59422a1e30036e7c32b270c8807a419feca605023", "249249246db6db6ddb6db6db6db6db6dad4591868595a8ee6bf5f864ff7be0c2"),
        ("public key shares x-coordinate with generator", False, "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296",
         "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5", "313233343030",
         "44a5ad0ad0636d9f12bc9e0a6bdd5e1cbcb012ea7bf091fcec15b0c43202d52e", "249249246db6db6ddb6db6db6db6db6dad4591868595a8ee6bf5f864ff7be0c2"),
        ("x-coordinate of the public key is small", True, "00000003fa15f963949d5f03a6f5c7f86f9e0015eeb23aebbff1173937ba748e",
         "1099872070e8e87c555fa13659cca5d7fadcfcb0023ea889548ca48af2ba7e71", "4d657373616765",
         "b7c81457d4aeb6aa65957098569f0479710ad7f6595d5874c35a93d12a5dd4c7", "b7961a0b652878c2d568069a432ca18a1a9199f2ca574dad4b9e3a05c0a1cdb3"),
        ("r = 5 + n, x = 5 is invalid", False, "264d796a0dab9b376d34eea6fe297dde1c7b73e53944bc96c8f1e8a6850bb6c9",
         "cf5308020eed460c649ddae61d4ef8bb79958113f106befaf4f18876d12a5e64", "68656c6c6f2c20776f726c64",
         "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632556", "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc63254e"),
        ("r = 2^256 - n + 5, x = 5 is invalid", False, "d42ce21e730f3d2a84e949828574b4dceeb77d4f89556735f34fba03028ee3ed",
         "32daf8bfd3f0a7a0821170840f4e032056722386b35d9bdd4f4f450696f4fb52", "68656c6c6f2c20776f726c64",
         "00000000ffffffff00000000000000004319055258e8617b0c46353d039cdab4", "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc63254e"),
    ]  # fmt: skip

    @pytest.mark.parametrize("name, fine, x, y, data, r, s", HARD, ids=[row[0] for row in HARD])
    def test_a_signature_that_is_hard_to_verify_is_judged_right(self, name, fine, x, y, data, r, s):
        jwk = {"kty": "EC", "crv": "P-256", "x": url64(bytes.fromhex(x)), "y": url64(bytes.fromhex(y))}
        assert m.signed_by([jwk], "ES256", bytes.fromhex(data), bytes.fromhex(r + s)) is fine

    def test_every_signature_of_wycheproof_is_judged_right(self):
        """Of ES256, RS256, RS384 and RS512, against a checkout of C2SP/wycheproof in WYCHEPROOF."""
        if "WYCHEPROOF" not in os.environ:
            pytest.skip("WYCHEPROOF does not name a checkout of Wycheproof: nothing checked")
        folder, number = pathlib.Path(os.environ["WYCHEPROOF"]) / "testvectors_v1", 0
        names = [f"rsa_signature_{size}_sha{bits}" for size in (2048, 3072, 4096, 8192) for bits in (256, 384, 512)]
        for name in ("ecdsa_secp256r1_sha256_p1363", *names):
            for group in json.loads((folder / f"{name}_test.json").read_text())["testGroups"]:
                alg = "ES256" if name.startswith("ecdsa") else "RS" + name[-3:]
                members = {"x": "wx", "y": "wy"} if alg == "ES256" else {"n": "modulus", "e": "publicExponent"}
                jwk = {one: url64(int(group["publicKey"][two], 16)) for one, two in members.items()}
                for test in group["tests"]:
                    data, signature = bytes.fromhex(test["msg"]), bytes.fromhex(test["sig"])
                    fine = test["result"] == "valid"  # "acceptable": without a NULL that RFC 8017 demands
                    assert m.signed_by([jwk], alg, data, signature) is fine, (name, test["tcId"])
                    number += 1
        assert number > 3000

    @pytest.mark.parametrize("token", [
        "", "a", "a.b", "e30.e30", "e30.e30.", "e30.e30.e30.e30", "{good}=", "{good}.", " {good}", "{good}\n",
        "{good}A", "{twin}", "é.é.é", "{long}",
    ])  # fmt: skip
    async def test_a_form_that_is_not_a_jwt_s(self, token, later):
        good = jwt('{"alg":"ES256"}', claims())
        assert await judge_of()(good)
        twin = good[:-1] + chr(ord(good[-1]) + 1)  # bits that no byte needs: the same signature
        assert base64.urlsafe_b64decode(twin[-86:] + "==") == base64.urlsafe_b64decode(good[-86:] + "==")
        token = token.replace("{good}", good).replace("{twin}", twin).replace("{long}", good + "A" * 8192)
        assert not await judge_of()(token)

    @pytest.mark.parametrize("bits, hash_name, pad, fine", [
        (2203, "sha256", b"\xff", True), (2203, "sha384", b"\xff", True), (2203, "sha512", b"\xff", True),
        (2203, "sha256", b"\xfe", False), (1279, "sha256", b"\xff", False),
    ])  # fmt: skip
    async def test_rsa_has_one_right_padding_and_2048_bits_at_least(self, bits, hash_name, pad, fine, later):
        """RFC 8017 §9.2"""
        jwk, sign = rsa(bits, hash_name, pad)
        alg = "RS" + hash_name[3:]
        token, every = jwt(f'{{"alg":"{alg}"}}', claims(), sign), ["RS256", "RS384", "RS512"]
        assert bool(await judge_of(keys=[jwk], algorithms=every)(token)) is fine
        for other in {*every, "ES256"} - {alg}:
            wrong = jwt(f'{{"alg":"{other}"}}', claims(), sign)
            assert not await judge_of(keys=[jwk, EC_JWK], algorithms=[*every, "ES256"])(wrong)

    @pytest.mark.parametrize("size, fine", [(1024, True), (1025, False)])
    async def test_rsa_has_8192_bits_at_most(self, size, fine, later):
        keys = []

        def sign(data):
            """Make a key for a signature: the signature's cube, less what is signed, is the modulus."""
            end = bytes.fromhex("003031300d060960864801650304020105000420") + hashlib.sha256(data).digest()
            text = int.from_bytes(b"\0\1" + b"\xff" * (size - 2 - len(end)) + end, "big")
            signature = 2 ** (8 * size // 3) + (text + 1) % 2
            keys.append({"kty": "RSA", "n": url64(signature**3 - text), "e": "Aw"})
            return signature.to_bytes(size, "big")

        token = jwt('{"alg":"RS256"}', claims(), sign)
        assert bool(await judge_of(keys=keys)(token)) is fine

    @pytest.mark.parametrize("change, fine", [
        ('{"use": "sig"}', True), ('{"use": "enc"}', False), ('{"alg": "ES256"}', True), ('{"alg": "ES384"}', False),
        ('{"crv": "P-384"}', False), ('{"kty": "oct"}', False), ('{"y": "AA"}', False), ('{"x": "!"}', False),
        ('{"x": null}', False), ('{"kid": "other"}', False), ('{"kid": "k"}', True),
    ])  # fmt: skip
    async def test_a_key_must_fit_and_be_a_point_of_the_curve(self, change, fine, later):
        """RFC 8725 §3.4"""
        token = jwt('{"alg":"ES256","kid":"k"}', claims())
        keys = [None, "x", {}, {**EC_JWK, "kid": "k", **json.loads(change)}]
        assert bool(await judge_of(keys=keys)(token)) is fine

    async def test_without_a_kid_one_key_alone_may_fit(self, later, caplog):
        """Otherwise each forged token would be tried with all of them."""
        assert not await judge_of(keys=[EXAMPLE_JWK, EC_JWK])(jwt('{"alg":"ES256"}', claims()))
        assert "it has no kid, and 2 keys fit" in caplog.text
        keys = [{**EXAMPLE_JWK, "kid": "a"}, {**EC_JWK, "kid": "b"}]
        for given in (keys, {"keys": keys}, keys[1]):
            assert await judge_of(keys=given)(jwt('{"alg":"ES256","kid":"b"}', claims()))

    async def test_forged_tokens_do_not_hold_up_the_loop(self, later):
        verify, forged = judge_of(), jwt('{"alg":"ES256"}', claims(), lambda data: es256(data, 2))
        work, longest = asyncio.gather(*(verify(forged) for _ in range(100))), 0.0
        while not work.done():
            since = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - since)
        assert longest < 0.2 and not any(await work)

    @pytest.mark.parametrize("change, scopes", [
        ('{"scope": "a b"}', "a b"), ('{"scope": ["a", "b", 7]}', "a b"), ('{"scp": ["a"]}', "a"), ('{"scp": "a b"}', "a b"),
        ("{}", ""),
    ])  # fmt: skip
    async def test_a_right_token_is_a_principal(self, change, scopes, later):
        who = await judge_of()(jwt('{"alg":"ES256"}', claims(change)))
        assert (who.issuer, who.subject, who.expires_at) == ("https://as.example", "alice", NOW + 60)
        assert who.scopes == set(scopes.split()) and who.claims["aud"] == "https://a.example/mcp"
        assert who == m.Principal("https://as.example", "alice", scopes=["z"]) != m.Principal("https://as.example", "bob")
        assert len({who, m.Principal("https://as.example", "alice")}) == 1 and "alice" in repr(who)

    @pytest.mark.parametrize("value", [m.Principal("https://as.example", "alice"), m.Elicited("accept", 1), m.Header("Region")])
    def test_another_class_may_say_that_it_equals_ours(self, value):
        assert value == unittest.mock.ANY and value != 1 and value != "alice"

    @pytest.mark.parametrize("options, why", [
        ({"audience": ""}, "audience="), ({"audience": []}, "audience="), ({"audience": [""]}, "audience="),
        ({"algorithms": ["HS256"]}, "HS256"), ({"algorithms": ["none", "RS256"]}, "none"),
        ({"algorithms": []}, "algorithms="),
        ({"issuer": "http://as.example"}, "https://"),
        ({"keys": json.dumps(EC_JWK)}, "keys="), ({"keys": {"k": EC_JWK}}, "keys="), ({"keys": b"PEM"}, "keys="),
    ])  # fmt: skip
    def test_a_verifier_that_lets_everybody_or_nobody_in_cannot_be_made(self, options, why):
        """CVE-2026-116684, CVE-2025-69196"""
        with pytest.raises((ValueError, TypeError), match=why):
            judge_of(**options)
        with pytest.raises(TypeError):
            m.jwt_verifier("https://as.example")


class Issuer(World):
    """The authorization server as a judge of tokens sees it: its keys are at /jwks, if it has them."""

    def __init__(self):
        super().__init__()
        self.kids, self.status, self.gate, self.jwks = ["k1"], 200, None, None
        self.pages = {SERVER_PAGE: (404, ""), "/.well-known/openid-configuration": self.about, "/jwks": self.keys}

    def about(self, request):
        return 200, {"issuer": self.root, "jwks_uri": self.root + "/jwks"}

    async def keys(self, request):
        if self.gate:
            await self.gate.wait()
        return self.jwks or (self.status, {"keys": [{**EC_JWK, "kid": kid} for kid in self.kids]})

    def judge(self, **options):
        return judge_of(issuer=self.root, keys=None, jwks_uri=self.root + "/jwks", **options)

    def token(self, kid="k1", number=1, header="{}"):
        header = {"alg": "ES256", "kid": kid, **json.loads(header)}
        return jwt(json.dumps(header), claims(json.dumps({"iss": self.root})), lambda data: es256(data, number))


@pytest.fixture
def issuer():
    return Issuer().running()


class TestJudges:
    """Keys that are fetched, and RFC 7662."""

    async def test_keys_are_found_by_the_issuer_s_metadata(self, later, issuer):
        verify = judge_of(issuer=issuer.root, keys=None)
        assert await verify(issuer.token()) and await verify(issuer.token())
        assert issuer.seen == [f"GET {page}" for page in (SERVER_PAGE, "/.well-known/openid-configuration", "/jwks")]
        await verify(issuer.token(number=2, header=f'{{"jku": "{issuer.root}/evil"}}'))
        assert "GET /evil" not in issuer.seen

    async def test_a_token_that_is_refused_by_its_header_costs_no_fetch(self, issuer):
        for token in ("", "a.b.c", issuer.token(header='{"alg": "none"}'), issuer.token(header='{"crit": ["x"]}')):
            assert not await issuer.judge()(token)
        assert issuer.seen == []

    async def test_unknown_keys_cause_a_fetch_every_30_seconds_and_known_ones_every_10_minutes(self, later, issuer):
        verify = issuer.judge()
        assert await verify(issuer.token())
        issuer.kids.append("k2")
        assert not await verify(issuer.token("k2"))
        assert len(issuer.seen) == 1
        later(31)
        issuer.gate = asyncio.Event()
        waiting = [asyncio.ensure_future(verify(issuer.token("k2"))) for _ in range(3)]
        await eventually(lambda: len(issuer.seen) == 2)
        issuer.gate.set()
        assert all(await asyncio.gather(*waiting)) and len(issuer.seen) == 2
        assert not await verify(issuer.token("k3")) and len(issuer.seen) == 2
        later(28)
        assert await verify(issuer.token())
        assert len(issuer.seen) == 2

    async def test_a_key_that_was_replaced_under_its_name_is_fetched_when_a_signature_fails(self, later, issuer):
        verify, old = issuer.judge(), {**EXAMPLE_JWK, "kid": "k1"}
        issuer.jwks = 200, {"keys": [old]}
        assert not await verify(issuer.token())
        issuer.jwks = None
        assert not await verify(issuer.token()), "not with each forged token"
        later(31)
        assert await verify(issuer.token()) and len(issuer.seen) == 2

    async def test_an_issuer_that_differs_by_a_slash_is_named_in_a_warning(self, later, caplog, issuer):
        verify = judge_of(issuer=issuer.root + "/", keys=None)
        assert not await verify(issuer.token())
        assert f"issuer is \"{issuer.root}\", not {issuer.root}/" in caplog.text
        assert f"iss is \"{issuer.root}\", not {issuer.root}/" in caplog.text

    async def test_old_keys_stay_while_the_issuer_is_down(self, later, caplog, issuer):
        verify = issuer.judge()
        assert await verify(issuer.token())
        issuer.status, token = 500, jwt('{"alg":"ES256","kid":"k1"}', claims(json.dumps({"iss": issuer.root, "exp": NOW + 900})))
        later(601)
        assert await verify(token)
        await eventually(lambda: len(issuer.seen) == 2 and "keys" in caplog.text)

    @pytest.mark.parametrize("page", ["500", "200 {}", "200 <html>", "404"])
    async def test_without_any_keys_it_is_503_and_not_401(self, page, later, caplog, issuer):
        issuer.jwks = int(page[:3]), page[4:]
        verify = issuer.judge()
        for _ in range(3):
            with pytest.raises(m.ProtocolError) as caught:
                await verify(issuer.token())
            assert caught.value.http_status == 503
        assert issuer.seen == ["GET /jwks"], "it is not asked with each token"
        assert caplog.text.count("cannot be verified") == 1

    @pytest.mark.parametrize("answer, who", [
        ('{"active": true, "aud": "us", "sub": "alice", "scope": "a"}', "alice"),
        ('{"active": true, "aud": ["x", "us"], "client_id": "c"}', "c"), ('{"active": false}', None),
        ('{"active": "true", "aud": "us", "sub": "a"}', None), ("{}", 503), ('{"active": true, "sub": "a"}', None),
        ('{"active": true, "aud": "them", "sub": "a"}', None), ('{"active": true, "aud": "us", "sub": "a", "exp": 1}', None),
        ('{"active": true, "aud": "us", "sub": "a", "iss": "https://evil.example"}', None),
        ('{"active": true, "aud": "us"}', None), ("[]", 503), ("500", 503), ("302", 503),
    ])  # fmt: skip
    async def test_introspection(self, answer, who):
        """examples/authorization/introspection.py"""
        example, asked = load_example("authorization/introspection.py"), []

        async def respond(request):
            asked.append(request)
            return (int(answer), {"location": "/x"}, "") if answer.isdigit() else (200, {}, answer)

        async with web(respond) as root:
            verify = example.introspection(root + "/check", "me", "s", audience="us", issuer=root)
            if who == 503:
                with pytest.raises((OSError, ValueError)):
                    await verify("tok")
            else:
                found = await verify("tok")
                assert (found and found.subject) == who
        [request] = asked
        assert request.form["token"] == "tok" and request.headers["authorization"] == "Basic bWU6cw=="
ALICE = ("https://as.example", "alice")
PRINCIPALS = {
    "r": m.Principal(*ALICE, scopes=["read"]), "r2": m.Principal(*ALICE, scopes=["read"]),
    "rw": m.Principal(*ALICE, scopes="read write"), "bare": m.Principal(*ALICE),
    "bob": m.Principal("https://as.example", "bob", scopes=["read"]),
}  # fmt: skip


def guarded_app(**options):
    app = m.Server("guarded", **options)
    app.ran = []

    @app.tool(scopes=["write"])
    def write(ctx: m.Context) -> str:
        app.ran.append(ctx.principal.subject)
        return str(ctx.headers.get("authorization"))

    @app.tool
    def maybe(deep: bool, ctx: m.Context) -> str:
        if deep:
            ctx.require("deep")
        return "shallow"

    return app


def guard_of(**options):
    return m.Guard(**{"verify": PRINCIPALS.get, "issuers": ["https://as.example"], "scopes": ["read"], **options})


@pytest.fixture
def guarded():
    return guarded_app().http(port=0, auth=guard_of())


async def greet(url, token):
    """Shake hands with a guarded server; return (status, headers, body)."""
    return await ask(url, "POST", hello(), authorization=token and f"Bearer {token}")


class TestGuard:
    """RFC 6750 and RFC 9728: who is let in, and what is said to the rest."""

    #: A token, what stands in the query; the status, and what the challenge says besides.
    REFUSALS = [
        (None, "", 401, 'scope="read"'), ("wrong", "", 401, 'scope="read", error="invalid_token"'),
        ("bare", "", 403, 'scope="read", error="insufficient_scope"'),
        ("a b", "", 401, 'scope="read", error="invalid_token"'),
        (None, "?access_token=r", 401, 'scope="read"'),
        ("r", "?access_token=w", 200, None), ("r", "", 200, None),
    ]  # fmt: skip

    @pytest.mark.parametrize("token, query, status, said", REFUSALS)
    async def test_a_refusal_says_what_is_wanted_and_an_error_only_where_there_was_one(
        self, token, query, status, said, guarded
    ):
        """RFC 6750 §3.1"""
        found, headers, _ = await greet(guarded.url + query, token)
        assert (found, headers.get("www-authenticate")) == (status, said and f"Bearer {said}")

    async def test_one_guard_may_guard_several_servers(self):
        guard = guard_of()
        for _ in range(2):
            async with guarded_app().http(port=0, auth=guard) as server:
                page = await ask(server.url.replace("/mcp", RESOURCE_PAGE))
                assert page[2]["resource"] == server.url

    @pytest.mark.parametrize("path, url, named", [
        ("/mcp", "https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"),
        ("/mcp", "https://a.example/api/mcp", "https://a.example/api/mcp/.well-known/oauth-protected-resource"),
        ("/", "https://a.example/mcp/", "https://a.example/mcp/.well-known/oauth-protected-resource"),
        ("/", "https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
        ("/mcp", "https://a.example/mcp?a=b", "https://a.example/.well-known/oauth-protected-resource/mcp?a=b"),
    ])  # fmt: skip
    async def test_behind_a_prefix_the_metadata_page_is_below_the_endpoint(self, path, url, named):
        """A proxy takes the prefix away; what stands outside of it is perhaps another program's."""
        guard = guard_of(resource_url=url, scopes=[])
        async with guarded_app().http(port=0, path=path, auth=guard) as server:
            told = (await greet(server.url, None))[1]["www-authenticate"]
            assert told == f'Bearer resource_metadata="{named}"'
            below = named.removeprefix(url.rstrip("/").removesuffix(path.rstrip("/")))
            below = below if below.startswith("/") else RESOURCE_PAGE
            for page in {below, "/.well-known/oauth-protected-resource", RESOURCE_PAGE.replace("/mcp", path.rstrip("/"))}:
                status, _, body = await ask(server.url.removesuffix(path) + page)
                assert (status, body["resource"]) == (200, url), page

    async def test_on_this_machine_a_client_may_say_localhost(self, guarded):
        for name in ("localhost", "127.0.0.1"):
            where = guarded.url.replace("127.0.0.1", name)
            page = await ask(where.replace("/mcp", RESOURCE_PAGE))
            assert page[2]["resource"] == where

    @pytest.mark.parametrize("end, status", [(4e9, 200), (None, 200), (1e9, 401), (0, 401)])
    async def test_a_principal_that_has_expired_does_not_come_in(self, end, status):
        who = {"subject": "bob", "scopes": ["read"], "expires_at": end}
        ways = {"token": {"any": who}}, {"verify": {"any": who}.get}, {"auth": guard_of(verify={"any": who}.get)}
        for way in ways:
            async with guarded_app().http(port=0, **way) as server:
                assert (await greet(server.url, "any"))[0] == status

    async def test_the_metadata_are_public_and_name_the_url_that_was_configured(self):
        guard = guard_of(resource_url="https://a.example/mcp", offered=["write"])
        async with guarded_app().http(port=0, auth=guard) as server:
            for path in (RESOURCE_PAGE, RESOURCE_PAGE[:-4]):
                status, headers, _ = await ask(server.url.replace("/mcp", path), "OPTIONS", origin="https://x.example")
                assert status in (200, 204) and headers["access-control-allow-origin"], "a preflight"
                status, headers, body = await ask(server.url.replace("/mcp", path), x_forwarded_host="evil.example")
                assert status == 200 and headers["access-control-allow-origin"] == "*"
                assert body == {
                    "resource": "https://a.example/mcp", "authorization_servers": ["https://as.example"],
                    "scopes_supported": ["read", "write"], "bearer_methods_supported": ["header"],
                }  # fmt: skip
        async with guarded_app().http(port=0, auth=guard_of()) as server:
            status, _, body = await ask(server.url.replace("/mcp", RESOURCE_PAGE))
            assert body["resource"] == server.url, "on this machine the URL is known"
        with pytest.raises(ValueError, match="resource_url="):
            async with guarded_app().http(host="0.0.0.0", port=0, auth=guard_of()):
                pass

    @pytest.mark.parametrize("path, encoded", [("日本", "%E6%97%A5%E6%9C%AC"), ('a"b', "a%22b"), ("é", "%C3%A9")])
    async def test_a_challenge_names_our_metadata_in_ascii_whatever_the_resource_url(self, path, encoded):
        guard = guard_of(resource_url=f"https://a.example/{path}")
        async with guarded_app().http(port=0, auth=guard) as server:
            status, headers, _ = await greet(server.url, None)
            where = f"https://a.example/{encoded}{RESOURCE_PAGE[:-4]}"
            assert status == 401 and f'resource_metadata="{where}"' in headers["www-authenticate"]

    def test_one_issuer_and_one_algorithm_need_no_list(self):
        assert guard_of(issuers="https://as.example").issuers == ["https://as.example"]
        assert callable(m.jwt_verifier("https://as.example", audience="us", algorithms="RS256"))

    @pytest.mark.parametrize("options, why", [
        ({"scopes": ['a"b']}, "scope"),
        ({"issuers": ["http://as.example"]}, "https"), ({"issuers": ["https://as.example?x"]}, "query"),
        ({"resource_url": "http://a.example/mcp"}, "https"),
    ])  # fmt: skip
    def test_a_guard_that_no_client_could_use_is_refused_at_once(self, options, why):
        with pytest.raises(ValueError, match=why):
            guard_of(**options)

    @both_eras
    @pytest.mark.parametrize("tool, arguments, scope", [
        ("write", {}, "read write"), ("maybe", {"deep": True}, "read deep"),
    ])  # fmt: skip
    async def test_a_tool_that_needs_more_is_403_before_it_runs(self, era, tool, arguments, scope):
        """spec: basic/authorization/index#runtime-insufficient-scope-errors"""
        app = guarded_app()
        reader, writer = {"authorization": "Bearer r"}, {"authorization": "Bearer rw"}
        async with http_calling(app, opened=era == V4, headers=reader, auth=guard_of(offered=["read", "write"])) as (caller, _):
            msg, fields = (call_of(1, tool, arguments), {}) if era == V4 else modern_call(1, tool, arguments)
            status, headers, body = await caller.post(msg, **fields)
            assert status == 403 and body["error"]["code"] == 403 and app.ran == []
            assert f'scope="{scope}", error="insufficient_scope"' in headers["www-authenticate"]
            if tool == "maybe":
                _, headers, _ = await caller.post(msg, **fields, **writer)
                assert 'scope="read write deep"' in headers["www-authenticate"], "what it has already is named"
                msg["params"]["arguments"] = {"deep": False}
            status, _, body = await caller.post(msg, **fields, **writer)
            assert status == 200 and app.ran == ["alice"] * (tool == "write") and "Bearer" not in str(body)

    async def test_a_token_is_judged_once_a_minute_and_never_after_its_end(self, later):
        judged = []

        def verify(token):
            judged.append(token)
            ends = {"short": NOW + 20, "none": None}.get(token, NOW + 500)
            return m.Principal(*ALICE, scopes=["read"], expires_at=ends) if time.time() < (ends or 1e12) else None

        async with guarded_app().http(port=0, auth=guard_of(verify=verify)) as server:
            for leap, token, status, times in (
                (0, "short", 200, 1), (0, "short", 200, 1), (21, "short", 401, 2), (0, "none", 200, 1), (0, "none", 200, 1),
                (0, "long", 200, 1), (0, "long", 200, 1), (59, "long", 200, 1), (2, "long", 200, 2),
            ):  # fmt: skip
                later(leap)
                assert (await greet(server.url, token))[0] == status
                assert judged.count(token) == times, (leap, token)

    async def test_a_token_that_cannot_be_judged_is_503_with_retry_after(self, caplog):
        def verify(token):
            raise OSError("the database is down")

        async with guarded_app().http(port=0, auth=guard_of(verify=verify)) as server:
            status, headers, body = await greet(server.url, "r")
            assert status == 503 and int(headers["retry-after"]) > 0 and "www-authenticate" not in headers
            assert "database" not in str(body) and "database" in caplog.text

    async def test_without_a_guard_nobody_may_call_what_needs_a_scope_but_in_this_process(self):
        for options in ({}, {"token": "t"}):
            async with guarded_app().http(port=0, **options) as server:
                async with m.Client(server.url, auth=options.get("token")) as client:
                    with pytest.raises(m.AuthError, match="403"):
                        await client.call("write")
        async with m.Client(guarded_app()) as client:
            assert await client.call("maybe", {"deep": True}) == "shallow"

    async def test_it_guards_under_an_asgi_server_too(self):
        app = m.ASGIApp(guarded_app(), auth=guard_of(resource_url="https://a.example/mcp"), allowed_hosts=["a.example"])

        async def visit(method, path, body=b"", **options):
            status, headers, body = await ASGI(app, method, path, body, host="a.example", **options).answer()
            return status, headers.get("www-authenticate"), body

        status, _, page = await visit("GET", RESOURCE_PAGE)
        assert (status, page["resource"]) == (200, "https://a.example/mcp")
        status, challenge, _ = await visit("POST", "/mcp", b"{")
        assert status == 401 and 'resource_metadata="https://a.example/.well-known' in challenge
        # Mounted at /mcp, where another application has the well-known place.
        status, challenge, _ = await visit("POST", "/mcp", b"{", root="/mcp")
        named = 'resource_metadata="https://a.example/mcp/.well-known/oauth-protected-resource"'
        assert status == 401 and named in challenge
        assert (await visit("GET", "/mcp/.well-known/oauth-protected-resource", root="/mcp"))[0] == 200
        await app.close()

    async def test_over_a_unix_socket_scopes_are_needed_too(self):
        """An ASGI server does not say who is there: uvicorn --uds."""
        app = m.ASGIApp(guarded_app(), allowed_hosts=map(str.strip, "a.example, b.example".split(",")))
        msg, fields = modern_call(1, "write")
        asked = ASGI(app, body=msg, host="a.example", **fields)
        asked.scope["client"] = None
        assert (await asked.answer())[0] == 403
        await app.close()


########################
# T53. The command line
########################

#: What stands beside a person who types: a server, one that is slow to end, one of somebody else.
CLI_FILES = {
    "quiet.py": "import sys\nsys.stdin.read()\n",
    "shop.py": f"""
import asyncio, json, os, sys, types
sys.path.insert(0, {str(HERE)!r})
from typing import Annotated, List, Literal, Optional
from mcp_lite import Audio, Context, Header, Image, Server, ToolError

app = Server("shop", version="2.1", instructions="Ask \\x1b[31mnicely\\x1b[0m.")

@app.tool
def add(a: int, b: int = 0) -> int:
    '''Add two \\x1b[2Jnumbers.

    Both are small.

    Args:
        a: the first
    '''
    return a + b

@app.tool
def describe(tags: List[int], size: Literal["s", "l"] = "s", note: Optional[str] = None,
             sure: bool = False) -> str:
    return f"{{tags}} {{size}} {{note!r}} {{sure}}"

@app.tool
async def copy(ctx: Context, password: str = "") -> str:
    await ctx.report_progress(1, 2, "copying")
    await ctx.warning("disk \\x1b[2Jis full")
    return "done"

@app.tool
def fail() -> str:
    raise ToolError("out of \\x1b]0;x\\x07stock")

@app.tool
async def order(ctx: Context) -> str:
    schema = {{"type": "object", "required": ["count", "gift"], "properties": {{
        "count": {{"type": "integer", "maximum": 9, "title": "How \\x1b[2Jmany"}},
        "gift": {{"type": "boolean"}}, "size": {{"type": "string", "enum": ["s", "l"], "default": "s"}}}}}}
    return json.dumps((await ctx.elicit("Your \\x1b]0;x\\x07order?", schema)).data, sort_keys=True)

@app.tool
async def paint(ctx: Context, coats: Annotated[int, types.SimpleNamespace(ge=1, le=5)] = 1) -> str:
    '''Paint it.

    Args:
        coats: how many
    '''
    schema = {{"type": "object", "required": ["colour", "coats"], "properties": {{
        "colour": {{"type": "string", "oneOf": [{{"const": "r", "title": "Red"}}, {{"const": "g", "title": "Green"}}]}},
        "coats": {{"type": "integer", "minimum": 1, "maximum": 5, "description": "How many?"}}}}}}
    return json.dumps((await ctx.elicit("What?", schema)).data, sort_keys=True)

@app.tool
async def zip(ctx: Context) -> str:
    schema = {{"type": "object", "required": ["code"], "properties": {{"code": {{"type": "string", "minLength": 5}}}}}}
    return json.dumps((await ctx.elicit("Where?", schema)).data)

@app.tool
async def leave(ctx: Context) -> str:
    return (await ctx.elicit("Really?", None)).action

@app.tool
async def think(ctx: Context) -> str:
    return (await ctx.sample("why?"))["content"]["text"]

@app.tool
def stack(boxes: Annotated[int, Header("Boxes")]) -> int:
    return boxes

@app.tool
async def visit(ctx: Context) -> str:
    return (await ctx.elicit_url("Please pay", "https://example.com/pay")).action

@app.tool
async def where(ctx: Context) -> str:
    roots = [root["name"] for root in await ctx.roots()]
    return f"{{os.path.basename(os.getcwd())}} {{os.environ.get('COLOUR')}} {{ctx.revision}} {{roots}}"

@app.tool
async def wait(ctx: Context) -> str:
    for second in range(3600):  # Python may notice a Ctrl-C with the next event only
        await ctx.report_progress(second, None, f"waiting {{os.getpid()}}")
        await asyncio.sleep(1)

@app.resource("shop://sign")
def sign() -> str:
    "What the sign says."
    return "open"

@app.resource("shop://table", mime_type="text/csv")
def table() -> str:
    return "a,b\\n1,2\\n"

@app.resource("shop://logo", mime_type="image/png")
def logo() -> bytes:
    return b"\\x89PNG\\r\\n"

@app.resource("shop://urlsafe")
def urlsafe() -> dict:
    return {{"contents": [{{"uri": "shop://urlsafe", "blob": "-_8"}}]}}

@app.resource("shop://item/{{id}}")
def item(id: str) -> str:
    return f"item \\x1b[2J{{id}}"

@app.prompt
def offer(item: str, tone: Literal["loud", "low"] = "low") -> str:
    return f"Praise {{item}}, {{tone}}"

@app.complete("offer", "item")
def items(value: str) -> list:
    return [item for item in ("milk", "melon", "tea") if item.startswith(value)]

if __name__ == "__main__":
    app.run()
""",
    "two.py": "from mcp_lite import Server\none, other = Server('one'), Server('other')\n",
    "none.py": "import asyncio, sys\nprint('once', file=sys.stderr)\n",
    "mcp_greet.py": "import mcp_lite\ndef main(argv):\n    print('hello', *argv)\n    return len(argv)\n",
    "deaf.py": f"""
import os, signal, sys, threading
sys.path.insert(0, {str(HERE)!r})
import asyncio, mcp_lite
app = mcp_lite.Server("deaf")

@app.tool
async def wait() -> str:
    print("waiting", os.getpid(), file=sys.stderr, flush=True)
    await asyncio.sleep(60)

signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Thread(target=app.run, daemon=True).start()
while True:
    signal.pause()
""",
    # A server that offers tools only.
    "tiny.py": f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from mcp_lite import Server

app = Server("tiny", "1.0")

@app.tool
def one() -> int:
    return 1

if __name__ == "__main__":
    app.run()
""",
    # A server of HTTP: it reads nothing from its standard input.
    "web.py": f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from mcp_lite import Server

Server("web").run("http", port=0)
""",
    # A server that cannot begin, and needs what is not there.
    "missing.py": "import no_such_module",
    "closed.py": "open('/no/such/file')",
    # A server whose folder has no copy of the library.
    "lonely.py": """raise ModuleNotFoundError("No module named 'mcp_lite'")""",
    # A server that reports progress in text that no terminal can show in a line of 80 columns.
    "wide.py": """
import json, sys

def send(**msg):
    print(json.dumps({"jsonrpc": "2.0", **msg}), flush=True)

for line in sys.stdin:
    msg = json.loads(line)
    if msg["method"] == "initialize":
        send(id=msg["id"], result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                   "serverInfo": {"name": "wide", "version": "1"}})
    elif msg["method"] == "tools/list":
        send(id=msg["id"], result={"tools": []})
    elif msg["method"] == "tools/call":
        token = msg["params"]["_meta"]["progressToken"]
        send(method="notifications/progress", params={
            "progressToken": token, "progress": 1, "message": "\\ud800" + "\\u6f22" * 79})
        send(id=msg["id"], result={"content": [{"type": "text", "text": "done"}]})
    elif "id" in msg:
        send(id=msg["id"], error={"code": -32601, "message": "no"})
""",
    # A legacy server whose pattern takes hours, and whose results are odd.
    "odd.py": """
import json, sys

SCHEMA = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
RESULTS = {
    "slow": {"content": [{"type": "text", "text": "done"}]},
    "null": {"content": None, "structuredContent": {"a": 1}},
}
for line in sys.stdin:
    msg = json.loads(line)
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "odd", "version": "1"}},
        "tools/list": {"tools": [{"name": name, "inputSchema": SCHEMA} for name in RESULTS]},
        "tools/call": RESULTS.get(msg.get("params", {}).get("name")),
    }
    if "id" in msg:
        answer = {"result": results.get(msg["method"])}
        if answer["result"] is None:
            answer = {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], **answer}), flush=True)
""",
    # A legacy server whose schemas are of another library, or hostile; a call returns its arguments.
    "foreign.py": """
import json, sys

MOVE = {"type": "object", "properties": {
    "from": {"type": "string"}, "to": {"$ref": "#/properties/from"}, "by": {"$ref": "#/definitions/step"},
    "n": {"type": "integer"}, "ids": {"type": "array", "items": {"type": "string"}},
    "code": {"type": "string", "pattern": "^[A-Z]+$", "enum": ["AB", "gr\\u00fcn"]}},
    "definitions": {"step": {"type": "string"}}}
deep = {"type": "string"}
for _ in range(12):
    deep = {"type": ["array"] * 9, "items": deep}
TOOLS = [{"name": "move", "inputSchema": MOVE},
         {"name": "deep", "inputSchema": {"type": "object", "properties": {"x": deep}}}]
for line in sys.stdin:
    msg = json.loads(line)
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "foreign", "version": "1"}},
        "tools/list": {"tools": TOOLS},
        "tools/call": {"content": [{"type": "text", "text": json.dumps(msg.get("params", {}).get("arguments"))}]},
    }
    if "id" in msg:
        answer = {"result": results.get(msg["method"])}
        if answer["result"] is None:
            answer = {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], **answer}), flush=True)
""",
    # A server of something else, which answers everything with an error.
    "refuser.py": """
import json, sys
for line in sys.stdin:
    msg = json.loads(line)
    if "id" in msg:
        error = {"code": -32601, "message": "Method \\x1b[2Jnot found"}
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "error": error}), flush=True)
""",
}

#: What is typed, and what comes of it: stdout, then stderr after `!`, then the status if it is not 0.
#: `...` stands for anything, in a line or in place of lines.
TRANSCRIPTS = r"""
A tool is shown as a signature, with the first paragraph of what it says of itself.
    $ tools shop.py
    add(a: integer, b: integer = 0) -> integer
        Add two numbers.
    describe(tags: [integer], size: "s" | "l" = "s", note: string | null = null, sure: boolean = false) -> string
    ...

A tool that is named is told whole, each argument with its description.
    $ tools add shop.py
    add(a: integer, b: integer = 0) -> integer
        Add two numbers.
        Both are small.
      a: integer
          the first
      b: integer = 0

The bounds of an argument are shown with its description.
    $ tools paint shop.py
    paint(coats: integer = 1) -> string
        Paint it.
      coats: integer = 1
          how many (minimum 1, maximum 5)

Resources, templates and prompts are listed, too.
    $ resources shop.py
    shop://sign
        What the sign says.
    shop://table text/csv
    shop://logo image/png
    shop://urlsafe
    $ templates shop.py
    shop://item/{id}
    $ prompts offer shop.py
    offer(item: string, tone?: string)
      item: string
      tone?: string

Who the server is, and all that it offers.
    $ info shop.py
    shop 2.1, revision 2026-07-28
    capabilities: ...
    Ask nicely.

    TOOLS
    ...
    RESOURCES
    ...
    TEMPLATES
    ...
    PROMPTS
    offer(item: string, tone?: string)

What a server does not offer is not there.
    $ info tiny.py
    tiny 1.0, revision 2026-07-28
    capabilities: logging, tools

    TOOLS
    one() -> integer
    $ prompts tiny.py
    (none)

A call: the schema says what a word means, and stdout has the answer alone.
    $ call add a=1 b=2 shop.py
    3
    $ call describe tags=1,2 size=l sure=yes shop.py
    [1, 2] l None True
    $ call describe 'tags=[1]' note=null shop.py
    [1] s 'null' False
    $ call describe tags=1 tags=2,3 tags=4 shop.py
    [1, 2, 3, 4] s None False
    $ call describe '{"tags": [7], "note": null}' size=l shop.py
    [7] l None False
    $ call copy --log error shop.py
    done
    ! 1/2 copying
    $ call copy shop.py
    done
    ! 1/2 copying
    ! [warning] server: disk is full

A file may be served without a run() of its own, and a command stands at the very end.
    $ call add a=1 shop.py:app
    1
    $ call add a=1 -- PYTHON shop.py
    1
    $ call add a=1 URL
    1

A tool that fails is status 1; with --json the result is on stdout as it was sent.
    $ call fail shop.py
    ! error: out of stock
    [1]
    $ call fail --json shop.py
    {
    ...
      "isError": true,
    ...
    }
    [1]
    $ call add a=x shop.py
    ! error: a: expected integer, got string
    [1]

A result may lack its content, and an argument that no header can carry is not the server's fault.
    $ call null --json odd.py
    {
      "content": null,
    ...
    }
    $ call null odd.py
    {"a":1}
    $ call stack boxes=99999999999999999999 URL
    ! error: Header mismatch: an integer is above 9007199254740991 (-32020)
    [3]

A file that cannot be imported shows where, as Python does.
    $ tools missing.py:app
    ...
    ! | ModuleNotFoundError: No module named 'no_such_module'
    ! error: the server 'missing.py:app' exited with status 1
    [3]
    $ tools lonely.py
    ...
    ! error: the server 'lonely.py' exited with status 1; put mcp_lite.py beside it, or write FILE.py:APP
    [3]
    $ tools closed.py:app
    ...
    ! | FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'
    ! error: the server 'closed.py:app' exited with status 1
    [3]

What does not exist is told with the nearest that does.
    $ call ad a=1 shop.py
    ! error: no tool 'ad'; did you mean add?
    [2]
    $ call add aa=1 shop.py
    ! error: no argument 'aa'; available: a, b
    [2]
    $ call add tags=1 shop.py
    ! error: no argument 'tags'; available: a, b
    [2]
    $ tools session shop.py
    ! error: no tool 'session'; available: add, ...
    [2]
    $ list_tools shop.py
    ! error: no verb 'list_tools'; available: info, tools, ...
    [2]
    $ tools --session x shop.py
    ! error: tools has no option '--session'; available: --json, ...
    [2]
    $ prompt offre shop.py
    ! error: no prompt 'offre'; did you mean offer?
    [2]
    $ tols shop.py
    ! error: no verb 'tols'; did you mean tools?
    [2]
    $ tools --jsn shop.py
    ! error: tools has no option '--jsn'; did you mean --json?
    [2]
    $ call add --a 1 shop.py
    ! error: call takes KEY=VALUE, and has no option '--a'; available: --json, ...
    [2]
    $ call add --jsn shop.py
    ! error: call takes KEY=VALUE, and has no option '--jsn'; did you mean --json?
    [2]
    $ serve --port 8000 shop.py
    ! error: serve has no option '--port'; available: --http, --token, --trace
    [2]
    $ serve --env KEY=x shop.py
    ! error: serve has no option '--env'; available: --http, --token, --trace
    [2]
    $ tools --http 0 shop.py
    ! error: tools has no option '--http'; available: --json, ...
    [2]
    $ tools --token 'Bearer x' http://127.0.0.1/mcp
    ! error: token= must be a str of visible ASCII, without blanks or "Bearer"
    [2]
    $ tools --header 'Authorization=Bearer secret' URL
    ! error: --header: expected NAME:VALUE
    [2]
    $ tools --env A shop.py
    ! error: --env: expected KEY=VALUE
    [2]
    $ logout shop.py
    ! error: cannot log out of shop.py: a ... is http(s)://host...
    [2]
    $ logout http://[::1/
    ! error: cannot log out of http://[::1/: a ... is http(s)://host...
    [2]
    $ logout -- shop.py
    ! error: cannot log out of ['shop.py']: a ... is http(s)://host...
    [2]
    $ tools shop.py:ap
    ! | error: no Server in shop.py that is named 'ap'; did you mean app?
    ! error: the server 'shop.py:ap' exited with status 2
    [3]
    $ serve two.py
    ! error: no Server in two.py that is named 'app'; available: one, other
    [2]
    $ serve none.py
    ! once
    ! error: no Server in none.py that is named 'app'; available: none
    [2]

A wrong command line is one sentence that says what is wrong.
    $ tools localhost:80/mcp
    ! error: 'localhost:80/mcp' is not a target; usage: mcp_lite.py tools [NAME ...] [options] TARGET. TARGET is http(s)://..., FILE.py or FILE.py:APP; or end the line with -- COMMAND ...
    [2]
    $ call add shop.py a=1
    ! error: 'a=1' is not a target; usage: ...
    [2]
    $ tools shop.pyc
    ! error: 'shop.pyc' is not a target; usage: ...
    [2]
    $ read shop.py
    ! error: URI is missing; usage: mcp_lite.py read URI [options] TARGET. ...
    [2]
    $ read shop://sign
    ! error: TARGET is missing; usage: ...
    [2]
    $ call add
    ! error: TARGET is missing; usage: ...
    [2]
    $ call shop.py
    ! error: NAME is missing; usage: ...
    [2]
    $ call -- PYTHON shop.py
    ! error: NAME is missing; usage: ...
    [2]
    $ read shop://sign again shop.py
    ! error: 'again' is one word too many; usage: mcp_lite.py read URI [options] TARGET. ...
    [2]
    $ tools
    ! error: TARGET is missing; usage: ...
    [2]
    $ tools HTTP://127.0.0.1:1/mcp
    ! error: cannot reach http://127.0.0.1:1/mcp: ...
    [3]
    $ call add '{"a": 1' shop.py
    ! error: '{"a": 1' is neither KEY=VALUE nor a JSON object; signature: add(a: integer, b: integer = 0) -> integer
    [2]
    $ call describe tags=[1 shop.py
    ! error: ...expected array...
    [1]
    $ call add a=1 a=2 shop.py
    ! error: a: expected integer, got array
    [1]
    $ call add 1 shop.py
    ! error: '1' is neither KEY=VALUE nor a JSON object; signature: add(a: integer, b: integer = 0) -> integer
    [2]
    $ tools --timeout x shop.py
    ! error: --timeout: expected SECONDS
    [2]
    $ tools shop.py --timeout
    ! error: --timeout: expected SECONDS
    [2]
    $ tools --json=1 shop.py
    ! error: --json: expected no value
    [2]
    $ tools --trace=all shop.py
    ! error: --trace: expected [=full]
    [2]
    $ tools --token= URL
    ! error: --token: expected TOKEN
    [2]
    $ tools --revision 1999 shop.py
    ! error: revision '1999' is not one of 2024-11-05, ...
    [2]
    $ serve shop.py --http 0.0.0.0
    ! error: --http: expected [HOST:]PORT
    [2]
    $ serve shop.py --http=²
    ! error: --http: expected [HOST:]PORT
    [2]
    $ serve shop.py --http 99999
    ! error: --http, --token or $MCP_LITE_TOKEN: port=99999: must be an integer from 0 to 65535
    [2]
    $ serve shop.py --http 0 --token 'a b'
    ! error: --http, --token or $MCP_LITE_TOKEN: token= must be a str of visible ASCII, without blanks or "Bearer"
    [2]
    $ serve shop.py --http=
    ! error: --http: expected [HOST:]PORT
    [2]
    $ serve shop.py --http 0 --token ''
    ! error: --token: expected TOKEN
    [2]
    $ tools --log warn shop.py
    ! error: 'warn' is not a log level; available: debug, info, notice, warning, ...
    [2]
    $ serve -- shop.py
    ! error: serve takes FILE.py or FILE.py:APP, not a command after --
    [2]
    $ serve nothing.py
    ! error: nothing.py: no such file
    [2]

A connection that fails, and an error of the server, are status 3.
    $ tools nothing.py
    ! | ...can't open file ...
    ! error: the server 'nothing.py' exited with status 2
    [3]
    $ tools none.py
    ! | once
    ! error: the server 'none.py' exited with status 0: it must call app.run() at its end (or, in a shell, write FILE.py:APP)
    [3]
    $ tools web.py
    ! | web serves http://...
    ! error: the server 'web.py' serves HTTP, by run("http"): pass its ..., or (in a shell) write FILE.py:APP
    [3]
    $ info --timeout 0.4 quiet.py
    ! error: the server 'quiet.py' did not answer initialize within 0.2 seconds; --timeout N waits longer
    [3]
    $ tools -- localhost:80/mcp
    ! error: cannot start 'localhost:80/mcp' in ... begins with http:// or https://...
    [3]
    $ tools refuser.py
    ! error: ...Method not found...
    [3]
    $ read shop://nothing shop.py --json
    ! {"error": {"message": "...", "code": -32602, ..."status": 3}}
    [3]

A resource, a prompt, a completion; the answer may go into a file.
    $ read shop://item/7 -o item.txt shop.py
    $ read shop://sign shop.py
    open
    $ prompt offer item=milk tone=loud shop.py
    user: Praise milk, loud

Where nobody is there to answer, a question is declined.
    $ call order shop.py
    null
    ! The server asks: Your order?
    ! declined; to answer in advance: --answer count=...
    $ call visit shop.py
    decline
    ! The server wants a page of example.com opened: https://example.com/pay
    ! The server asks: Please pay
    ! declined; to answer in advance: --answer agree=..., or --yes to agree
    $ call think shop.py
    ! error: ...the client did not declare the capability 'sampling'...
    [3]

A question can be answered in advance; what a form does not need takes its default.
    $ call order --answer count=3 --yes shop.py
    {"count": 3, "gift": true, "size": "s"}
    ! The server asks: Your order?
    $ call order --answer count=3 --answer gift=no --answer size=l shop.py --revision 2025-11-25
    {"count": 3, "gift": false, "size": "l"}
    ! The server asks: Your order?
    $ call zip --answer code=123 shop.py
    ! The server asks: Where?
    ! declined; to answer in advance: --answer code=...
    ! error: --answer code: must have 5 or more characters
    [2]
    $ call order --answer count=12 shop.py
    ! The server asks: Your order?
    ! declined; ...
    ! error: --answer count: ...
    [2]
    $ call order --answer count=3 --answer sise=l --yes shop.py
    {"count": 3, "gift": true, "size": "s"}
    ! The server asks: Your order?
    ! error: no question 'sise'; did you mean size?
    [2]
    $ call leave --yes shop.py
    accept
    ! The server asks: Really?
    $ call leave --answer agree=no shop.py
    decline
    ! The server asks: Really?

What the server is told: its folder, its environment, the revision, the roots.
    $ call where --cwd FOLDER --env COLOUR=red --revision 2025-03-26 --root FOLDER shop.py
    BASE red 2025-03-26 ['BASE']

A file inherits the environment, as a script does; a command after -- inherits little of it.
    $ call where --revision 2025-03-26 --root FOLDER shop.py
    BASE blue 2025-03-26 ['BASE']
    $ call where --revision 2025-03-26 --root FOLDER -- PYTHON shop.py
    BASE None 2025-03-26 ['BASE']

Arguments become what schemas of other libraries say, and hostile ones are shown.
    $ call move from=12 to=34 by=5 n=6 code=AB ids=7,8 foreign.py
    {"from": "12", "to": "34", "by": "5", "n": 6, "code": "AB", "ids": ["7", "8"]}
    $ tools foreign.py
    move(...code?: "AB" | "grün")
    deep(x?: [[[[[[[[[[[[string]]]]]]]]]]]])

A trace is a line for each message, without secrets, on stderr; or all of it.
    $ call copy password=hunter2 --trace shop.py --revision 2025-11-25
    done
    ! ... --> initialize #1 ...
    ! ... <-- result of initialize #1, ... ms {...
    ...
    ! ... --> tools/call copy #3 {"arguments": {"password": "[redacted]"}}
    ! ... <-- notifications/progress ...
    ! 1/2 copying
    ...
    ! ... <-- result of tools/call copy #3, ...
    $ call copy password=hunter2 --trace=full shop.py
    done
    ...
    ! ... --> tools/call copy #3
    ! {
    ...
    !       "password": "[redacted]"
    ...

The trace shows the heads of HTTP.
    $ call add a=1 --trace URL
    1
    ...
    ! ... ==> POST http://.../mcp {...
    ...
    ! ... <== 200, to POST http://.../mcp {"content-type": "application/json"...
    ...

The help of all, and of a verb.
    $ help
    usage: ...
    ...
    $ --help
    usage: python... mcp_lite.py VERB ... [options] TARGET
    ...
      call NAME [KEY=VALUE ...]    call a tool; arguments may be JSON, too: '{...}'
    ...
      --json                       print the result, or the error, as JSON
      -o FILE                      write the result to a file, binary data as it is
    ...
      --trace[=full]               show each message in a line, or in full
    ...
    $ call --help
    usage: python... mcp_lite.py VERB ... [options] TARGET
    ...
    $ call add --help shop.py
    usage: python... mcp_lite.py VERB ... [options] TARGET
    ...
"""


@pytest.fixture(scope="class")
def counter(tmp_path_factory):
    """Give a folder with CLI_FILES in it."""
    folder = tmp_path_factory.mktemp("counter")
    for name, text in CLI_FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="class")
def stall(counter):
    """Give a URL at which the shop is served."""
    served = m.load_app(str(counter / "shop.py")).start_in_thread("http", port=0)
    yield served.url
    served.stop()


@pytest.fixture
def cli(capsys):
    """Give a function that runs a command line and returns (status, stdout, stderr)."""

    def call(*argv):
        before = (open_descriptors(), child_processes(), lasting_threads())
        try:
            status = m.main(argv)
        except SystemExit as exc:
            status = exc.code
        check_nothing_left(before)
        return (status, *capsys.readouterr())

    return call


#: As the installed `mcp-lite` does it: a file that Python is given by name it compiles each time.
COMMAND = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(HERE)!r}); import mcp_lite as m; sys.exit(m.main())"]
# A child gets less time than two seconds to end by itself, and then by SIGTERM.
HASTY = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import mcp_lite as m; m.StdioTransport.__init__.__kwdefaults__.update(exit_seconds=0.1)
sys.exit(m.main())
"""


def transcripts():
    """Yield the first line of each transcript, and its text."""
    for text in re.split(r"\n\n(?=\S)", TRANSCRIPTS.strip()):
        promise, _, rest = text.partition("\n")
        yield pytest.param(textwrap.dedent(rest), id=promise.replace(" ", "_"))


class TestTranscripts:
    """What is typed, and what comes of it."""

    @pytest.mark.parametrize("text", [*transcripts()])
    def test_as_it_is_written(self, text, cli, counter, stall, monkeypatch):
        monkeypatch.chdir(counter)
        monkeypatch.setenv("COLUMNS", "110")
        monkeypatch.setenv("COLOUR", "blue")
        words = {"URL": stall, "FOLDER": counter.as_posix(), "BASE": counter.name,
                 "PYTHON": pathlib.Path(sys.executable).as_posix()}  # fmt: skip
        text = re.sub("|".join(words), lambda hit: words[hit[0]], text)
        for command, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n?)*)", text, re.M):
            status, out, err = cli(*shlex.split(command))
            shown = out + "".join(f"! {line}\n" for line in err.splitlines()) + f"[{status}]\n" * bool(status)
            pattern = re.escape(wanted.rstrip("\n") + "\n" * bool(wanted.strip()))
            pattern = re.sub(r"(?m)^\\\.\\\.\\\.\\\n", "(?s:.*?)", pattern).replace(r"\.\.\.", ".*")
            assert re.fullmatch(pattern, shown), f"$ {command}\n{shown}"

    def test_a_pattern_of_a_server_is_not_applied(self, counter):
        words = ["call", "slow", f"x={'a' * 40}!", "odd.py"]
        done = subprocess.run([*COMMAND, *words], cwd=counter, capture_output=True, timeout=30)
        assert (done.returncode, unix(done.stdout), done.stderr) == (0, b"done\n", b"")

    async def test_a_timeout_names_the_option_of_the_command_line(self, capsys):
        async with scripted_client(max_timeout=5) as (c, lines):
            leap = time_machine()
            call = asyncio.ensure_future(c.call_tool("work"))
            await lines.take()
            leap(6)
            with pytest.raises(m.RequestTimeout) as late:
                await call
        assert m.complain(late.value) == 3
        assert capsys.readouterr().err.endswith(" within 5 seconds; --max-timeout N waits longer\n")

    def test_an_empty_answer_in_advance_is_an_answer(self):
        schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
        assert run(m.Person(["a=", "b="]).elicit("?", schema)) == {"a": "", "b": ""}

    def test_a_binary_answer_goes_into_a_file_or_a_pipe_as_it_is(self, counter, stall, capfdbinary):
        assert m.main(["read", "shop://logo", stall]) == 0
        assert capfdbinary.readouterr().out == b"\x89PNG\r\n"
        path = counter / "logo.png"
        assert m.main(["read", "shop://logo", "-o", str(path), stall]) == 0
        assert (path.read_bytes(), capfdbinary.readouterr().out) == (b"\x89PNG\r\n", b"")
        assert m.main(["read", "shop://urlsafe", "-o", str(path), stall]) == 0
        assert path.read_bytes() == b"\xfb\xff", "as Client.read() returns it"
        assert m.main(["read", "shop://table", "-o", str(path), stall]) == 0
        assert path.read_bytes() == b"a,b\n1,2\n"

    @pytest.mark.parametrize("columns", ["0", "4"])
    def test_a_terminal_that_says_it_is_narrow_shows_a_list_all_the_same(self, cli, counter, columns, monkeypatch):
        monkeypatch.chdir(counter)
        monkeypatch.setenv("COLUMNS", columns)
        status, out, err = cli("tools", "shop.py")
        assert (status, err) == (0, "") and "Add two numbers." in out

    def test_a_logout_trusts_the_certificates_of_its_option(self, cli):
        status, out, err = cli("logout", "--ca", "no-such-file.pem", "https://127.0.0.1:9/mcp")
        assert (status, out) == (2, "") and "no-such-file.pem" in err

    def test_a_certificate_that_is_not_trusted_can_be_passed_by_an_option(self, cli, certificate):
        server = sample_app().start_in_thread("http", port=0, ssl=certificate)
        status, out, err = cli("tools", server.url)
        server.stop()
        assert (status, out) == (3, "") and "pass its certificate: --ca FILE, or SSL_CERT_FILE=FILE" in err

    def test_a_certificate_for_another_host_is_not_asked_for(self, cli, certificate):
        server = sample_app().start_in_thread("http", host="127.0.0.2", port=0, ssl=certificate)
        status, out, err = cli("tools", "--ca", certificate[0], server.url)
        server.stop()
        assert (status, out) == (3, "") and "not valid for '127.0.0.2'" in err and "--ca" not in err

    def test_a_pipe_gets_text_as_it_is(self, cli, stall):
        assert cli("read", "shop://item/7", stall)[1] == "item \x1b[2J7\n"

    def test_a_verb_that_is_not_in_the_file_is_a_program_beside_it(self, cli, counter, monkeypatch):
        monkeypatch.setattr(m, "__file__", str(counter / "mcp_lite.py"))
        assert cli("greet", "a", "--json") == (2, "hello a --json\n", "")
        problem = "error: shell is a separate program: copy examples/programs/mcp_shell.py of the repository to "
        assert cli("shell", "shop.py")[::2] == (2, f"{problem}{counter}\n")
        assert "did you mean serve?" in cli("server", "shop.py")[2]

    def test_the_version_has_the_digest_of_the_file(self, cli):
        digest = hashlib.sha256(pathlib.Path(m.__file__).read_bytes()).hexdigest()
        assert cli("--version")[1] == f"mcp_lite {m.__version__} sha256 {digest[:12]}\n"

    @pytest.mark.parametrize(
        "hostile, harmless",
        [
            ("\x1b[31mred\x1b[0m", "red"), ("\x1b[2J\x1b[1;1Hgone", "gone"),
            ("\x1b]0;title\x07text", "text"), ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]52;c;never ended", "]52;c;never ended"), ("\x1bP1$r\x1b\\dcs", "dcs"),
            ("\x9b31mred", "red"), ("\x1bcreset", "reset"), ("a\rb\x08\x7f\x00c", "abc"),
            ("safe\u202egpj.exe", "safegpj.exe"),
            ("a\u200bb\u2028c\u2029d\u2060e\ufefff\U000e0041g", "abcdefg"),
            ("joiners \u06cc\u200c\u062e \u2764\u200d\u2764", "joiners \u06cc\u200c\u062e \u2764\u200d\u2764"),
            ("tab\tand\nnewline stay, as do ä and 漢", "tab\tand\nnewline stay, as do ä and 漢"),
        ],
    )  # fmt: skip
    def test_control_sequences_are_taken_out(self, hostile, harmless):
        assert m.plain(hostile) == harmless

    @pytest.mark.parametrize(
        "shown, secret",
        [
            ({"password": "hunter2"}, True), ({"headers": {"Authorization": "x hunter2"}}, True),
            ({"text": "curl -H 'Authorization: Bearer hunter2'"}, True),
            ({"args": ["--token=hunter2", "https://me:hunter2@host/"]}, True),
            ({"text": '{"passphrase": "I\'m hunter2"}'}, True), ({"text": '{"secret": "a\\"b hunter2"}'}, True),
            ({"text": "password=P@hunter2"}, True), ({"text": '{"passphrase": "a hunter2 b"}'}, True),
            ({"uri": "https://me:a@hunter2@host/"}, True),
            ({"text": '{"api_key": "hunter2"}'}, True), ({"cookie": "a=hunter2"}, True),
            ({"uri": "a://b?access_token=hunter2"}, True),
            ({"inputSchema": {"properties": {"password": {"title": "hunter2"}}}}, False),
            ({"progressToken": "hunter2"}, False), ({"max_tokens": "hunter2"}, False),
            ({"x": "hunter2"}, False),
        ],
    )  # fmt: skip
    def test_a_trace_hides_what_has_the_name_of_a_secret(self, shown, secret):
        stream = io.StringIO()
        m.trace_to(stream, full=True)(">", "x", {"id": 1, "method": "a/b", "params": shown})
        assert ("hunter2" in stream.getvalue()) != secret

    @pytest.mark.parametrize("where, count", [("trace", 4), ("0", 0)])
    def test_any_program_is_traced_to_a_file_by_the_environment_unless_it_says_0(self, where, count, counter):
        script = f"import sys; sys.path.insert(0, {str(HERE)!r}); import mcp_lite as m; m.main(['tools', 'shop.py'])"
        env = {**os.environ, "MCP_LITE_TRACE": where, "PYTHONWARNINGS": "error"}
        done = subprocess.run([sys.executable, "-c", script], cwd=counter, env=env, timeout=30, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        lines = (counter / where).read_text() if (counter / where).exists() else ""
        steps = re.findall("(-->|<--) (?:result of )?([a-z/]+)", lines)
        assert steps == [(way, name) for name in ("server/discover", "tools/list") for way in ("-->", "<--")][:count]

    @pytest.mark.parametrize("full", [False, True])
    def test_anything_can_be_traced(self, full):
        odd = [5, [], [[]], {}, {"method": []}, {"method": {}, "id": {}}, {"id": [], "result": 5},
               {"error": 5}, {"method": "tools/call", "params": []}, m.ProtocolError("not\nJSON"),
               {"method": "a", "id": 1, "params": {"name": [1], "x": "\x1b[2J\u202e\ud800" * 99}}]  # fmt: skip
        stream = io.StringIO()
        for msg in odd:
            m.trace_to(stream, full)("<", "x", msg)
        assert stream.getvalue().count(" <--") == len(odd) and "\x1b" not in stream.getvalue()

    async def test_headers_of_the_protocol_are_traced_and_the_query_of_an_endpoint_is_not(self):
        stream = io.StringIO()
        async with sample_app().http(port=0) as server:
            m.set_trace(m.trace_to(stream, full=True))
            try:
                async with m.Client(server.url + "?api_key=hush1") as c:
                    await c.list_tools()
                    await c.call("where", {"region": "eu"})
            finally:
                m.set_trace(None)
        assert "POST http://" in stream.getvalue() and "hush" not in stream.getvalue()
        assert '"mcp-method": "tools/call"' in stream.getvalue() and '"mcp-param-region": "eu"' in stream.getvalue()

    async def test_the_code_in_a_redirect_is_not_shown(self):
        shown, where = [], "https://a.example/callback?code=hush1&state=hush2#hush3"
        m.set_trace(lambda *what: shown.append(what))
        try:
            async with one_page(lambda request: (303, {"location": where}, b"")) as server:
                assert (await ask(server.url, target="/p"))[1]["location"] == where
        finally:
            m.set_trace(None)
        assert "https://a.example/callback" in repr(shown) and "hush" not in repr(shown)


class Typist:
    """A command line at a terminal, and somebody who types."""

    def __init__(self, *argv, cwd, command=None):
        ours, theirs = os.openpty()
        self.fd, self.seen, self.done = ours, b"", 0
        env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "MCP_LITE_TOKENS": str(cwd)}
        self.running = started(
            [*(command or COMMAND), *argv], stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=env,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
        )  # fmt: skip
        self.process = self.running.__enter__()
        os.close(theirs)

    def more(self, again=b""):
        """Read what comes; return whether there is more to come. If nothing comes, type `again`."""
        if again and not select.select([self.fd], [], [], 5)[0]:
            os.write(self.fd, again)
        assert select.select([self.fd], [], [], 20)[0], self.seen[self.done :]
        with contextlib.suppress(OSError):  # Linux: it has ended
            self.seen += os.read(self.fd, 65536)
            return True
        return False

    def types(self, keys, *wanted, again=b""):
        """Type, and wait until the screen shows what is wanted, one after the other."""
        os.write(self.fd, keys)
        for text in wanted:
            while text not in self.seen[self.done :]:
                assert self.more(again), (text, self.seen)
            self.done = self.seen.index(text, self.done) + len(text)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        try:
            while exc[0] is None and self.more():
                pass
            self.status = self.process.wait(20) if exc[0] is None else None
        finally:
            self.running.__exit__(None, None, None)
            os.close(self.fd)


@posix
class TestTerminals:
    """At a terminal a person is asked, and nothing that a server says is obeyed."""

    #: A tool that asks; what a person types, and what the screen shows then.
    TYPED = {
        "a form is filled in": ("order", [
            (b"", b"The server asks: Your order?", b"How many: (maximum 9) integer [] (Ctrl-D declines)"),
            (b"many\n", b"expected integer"), (b"12\n", b"must be at most 9"), (b"3\n", b"gift: y/n []"),
            (b"\n", b'size: "s" | "l" [s]'), (b"l\n", b'{"count": 3, "gift": false, "size": "l"}'),
        ]),
        "a field that is skipped after a wrong value does not have it": ("order", [
            (b"", b"How many:"), (b"3\n", b"gift: y/n []"), (b"\n", b'size: "s" | "l" [s]'),
            (b"huge\n", b'got "huge"'), (b"\n", b'{"count": 3, "gift": false, "size": "s"}'),
        ]),
        "a choice is shown with its title, and a number with its bounds": ("paint", [
            (b"", b'colour: "r" (Red) | "g" (Green)'), (b"g\n", b"coats: How many? (minimum 1, maximum 5)"),
            (b"2\n", b'{"coats": 2, "colour": "g"}'),
        ]),
        "Ctrl-D declines": ("order", [(b"", b"How many:"), (b"\x04", b"declined", b"null")]),
        "consent, and a page": ("visit", [
            (b"", b"a page of example.com opened: https://example.com/pay", b"agree: y/n"),
            (b"sure\n", b"y or n"), (b"y\n", b"accept"),
        ]),
    }  # fmt: skip

    @pytest.mark.parametrize("what", TYPED)
    def test_a_person_is_asked(self, what, counter):
        tool, steps = self.TYPED[what]
        with Typist("call", tool, "shop.py", cwd=counter) as person:
            for keys, *wanted in steps:
                person.types(keys, *wanted)
        assert person.status == 0 and b"\x1b]0;" not in person.seen and b"\x1b[2J" not in person.seen

    def test_a_file_that_is_served_by_hand_says_how_to_try_it(self, counter):
        with Typist("serve", "shop.py", cwd=counter) as person:
            person.types(b"", b"python3 mcp_lite.py tools shop.py\r\n")
            person.types(b"\x04")
        assert person.status == 0

    def test_progress_in_wide_characters_stays_in_one_line(self, counter):
        with Typist("call", "any", "wide.py", cwd=counter) as person:
            person.types(b"", b"done")
        text = person.seen.decode()
        assert "?\u6f22" in text and text.count("\u6f22") <= 39 and "Traceback" not in text

    @pytest.mark.parametrize("tool, shown", [("wait", b"waiting "), ("order", b"How many:")])
    def test_ctrl_c_ends_the_call_and_the_server(self, tool, shown, counter):
        with Typist("call", tool, "shop.py", cwd=counter) as person:
            person.types(b"", shown)
            person.types(b"\x03", b"")
        assert person.status == 130 and b"Traceback" not in person.seen and b"Fatal" not in person.seen
        for pid in re.findall(rb"waiting (\d+)", person.seen):
            assert not is_alive(int(pid))

    @pytest.mark.parametrize("words", ["read shop://item/7", "info", "call fail", "call copy", "tools"])
    def test_a_terminal_only_shows_what_a_server_says(self, counter, words):
        with Typist(*words.split(), "--log", "debug", "--trace=full", "shop.py", cwd=counter) as person:
            pass
        assert not re.findall(rb"\x1b(?!\[K)|\x9b", person.seen), person.seen


@posix
class TestEnds:
    """However it ends: with a status, quietly, and no process stays behind."""

    @contextlib.contextmanager
    def calling_the_deaf(self, code, folder):
        """Start a command line whose server does not heed the end of its input; give both."""
        command, server = [sys.executable, "-c", code, "call", "wait", "deaf.py"], 0
        with started(command, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                line = next(line for line in process.stderr if b"waiting" in line)
                server = int(line.split()[-1])
                yield process, server
            finally:
                if server and is_alive(server):
                    os.kill(server, 9)

    @pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
    def test_a_signal_ends_a_server_too_that_ignores_the_end_of_its_input(self, counter, name):
        number = getattr(signal, name)
        with self.calling_the_deaf(HASTY, counter) as (process, server):
            process.send_signal(number)
            assert process.stderr.read() == b""
            assert process.wait(20) == 128 + number and not is_alive(server)

    def test_in_the_background_of_a_script_ctrl_c_is_not_for_us(self, counter):
        """A shell ignores SIGINT for what runs there, and its group gets the signal nevertheless."""
        code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + HASTY
        with self.calling_the_deaf(code, counter) as (process, server):
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)  # as the second, it would leave the server running
            assert process.wait(20) == 128 + signal.SIGTERM and not is_alive(server)

    @pytest.mark.parametrize(
        "redirection, status, told",
        [
            ("| true", 0, b""), (">&-", 3, b"error: standard output is closed\n"),
            (">/dev/full", 3, b"error: [Errno 28] No space left on device\n"), ("2>&-", 0, b""),
        ],
    )  # fmt: skip
    def test_an_answer_that_nobody_reads(self, counter, redirection, status, told):
        """`head` closes the pipe and is content; a full disk is not."""
        words = [*COMMAND, "info", "shop.py"]
        script = f'set -o pipefail; "$@" {redirection}'
        ran = subprocess.run(["bash", "-c", script, "bash", *words], cwd=counter, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, timeout=30)  # fmt: skip
        assert (ran.returncode, ran.stderr) == (status, told)


def test_the_output_of_the_command_line_is_utf8_in_a_pipe(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")  # as on Windows
    (tmp_path / "file.py").write_text(SERVER + "@app.tool\ndef check() -> str: return '\\u2713'\n")
    done = run_python(m.__file__, "call", "check", f"{tmp_path / 'file.py'}:app")
    assert (done.returncode, done.stdout, done.stderr) == (0, "✓\n".encode(), b"")


class TestServe:
    """serve FILE.py[:APP]: on stdio, and over HTTP."""

    async def test_on_stdio(self, counter, monkeypatch):
        monkeypatch.chdir(counter)
        async with m.Client([*COMMAND, "serve", "shop.py"]) as c:
            assert await c.call("add", {"a": 1}) == 1

    def test_over_http_with_a_token_to_ask_for(self, cli, counter, monkeypatch):
        monkeypatch.chdir(counter)
        monkeypatch.delenv("MCP_LITE_TOKEN", raising=False)
        command = [*COMMAND, "serve", "shop.py:app", "--http", "0", "--token", "hush"]
        with started(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            url = re.search(r"http://\S+", process.stderr.readline().decode())[0]
            call = ("call", "add", "a=1", url)
            status, out, err = cli(*call)
            assert (status, out) == (3, "") and f"login {url}" in err
            with pytest.raises(m.AuthError, match="401 Unauthorized: a bearer token is needed"):
                asyncio.run(m.Client(url).connect())
            status, out, err = cli(*call, "--token", "wrong")
            assert (status, err) == (3, f"error: {url} answered 401 Unauthorized: the bearer token is not valid\n")
            assert cli(*call, "--token", "hush")[:2] == (0, "1\n")
            assert cli(*call, "--header", "Authorization: Bearer hush")[:2] == (0, "1\n")
            monkeypatch.setenv("MCP_LITE_TOKEN", "hush")
            assert cli(*call)[:2] == (0, "1\n")
            process.terminate()
            assert b"Traceback" not in process.stderr.read()

    def test_over_http_an_empty_token_does_not_open_the_server_to_all(self, cli, counter, monkeypatch):
        monkeypatch.chdir(counter)
        monkeypatch.setenv("MCP_LITE_TOKEN", "")
        status, out, err = cli("serve", "shop.py", "--http", "0")
        assert (status, out) == (2, "") and "$MCP_LITE_TOKEN: token= is empty" in err

    @pytest.mark.parametrize("call", ["app.run()", "app.run('http', port=0)", "import asyncio; asyncio.run(app.serve_stdio())"])
    async def test_over_http_a_file_whose_run_is_not_guarded_is_served_with_our_options(self, call, tmp_path):
        text = CLI_FILES["tiny.py"].replace('if __name__ == "__main__":\n    app.run()', call)
        (tmp_path / "open.py").write_text(text)
        command = [*COMMAND, "serve", str(tmp_path / "open.py"), "--http", "0", "--token", "hush"]
        with started(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            line = next(line for line in process.stderr if b"http://" in line)
            url = re.search(r"http://\S+", line.decode())[0]
            with pytest.raises(m.AuthError):
                await m.Client(url).connect()
            async with m.Client(url, token="hush") as c:
                assert await c.call("one") == 1

    @pytest.mark.parametrize("guard", ['token="own"', 'verify={"own": "ann"}.get'])
    async def test_over_http_without_a_token_a_file_whose_run_is_not_guarded_keeps_its_own(self, guard, tmp_path):
        text = CLI_FILES["tiny.py"].replace('if __name__ == "__main__":\n    app.run()', f"app.run('http', port=1, {guard})")
        (tmp_path / "open.py").write_text(text)
        env = {name: value for name, value in os.environ.items() if name != "MCP_LITE_TOKEN"}
        command = [*COMMAND, "serve", str(tmp_path / "open.py"), "--http", "0"]
        with started(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
            line = next(line for line in process.stderr if b"http://" in line)
            url = re.search(r"http://\S+", line.decode())[0]
            with pytest.raises(m.AuthError):
                await m.Client(url).connect()
            async with m.Client(url, token="own") as c:
                assert await c.call("one") == 1

    def test_over_http_without_any_token_it_says_so(self, counter, monkeypatch):
        monkeypatch.delenv("MCP_LITE_TOKEN", raising=False)
        with started([*COMMAND, "serve", "shop.py", "--http", "0"], cwd=counter, stdin=subprocess.DEVNULL,
                     stderr=subprocess.PIPE) as process:  # fmt: skip
            assert process.stderr.readline().rstrip() == b"no token is required, whatever the file passes to run(); --token requires one"
            assert b" serves http://" in process.stderr.readline()

    async def test_a_file_with_another_copy_of_mcp_lite_beside_it(self, tmp_path):
        copy_mcp_lite(tmp_path / "mcp_lite.py")
        copy_mcp_lite(tmp_path / "vendored.py")
        (tmp_path / "own.py").write_text("import vendored\napp = vendored.Server('own')\n")
        async with m.Client([sys.executable, str(tmp_path / "mcp_lite.py"), "serve", "own.py"], cwd=tmp_path) as c:
            assert c.server_info["name"] == "own"

    async def test_a_server_of_a_class_of_its_author_is_served(self, tmp_path):
        (tmp_path / "own.py").write_text(
            "from mcp_lite import Server\nclass Shop(Server): pass\napp = Shop('own')\n"
        )
        async with m.Client([sys.executable, str(HERE / "mcp_lite.py"), "serve", "own.py"], cwd=tmp_path) as c:
            assert c.server_info["name"] == "own"

    async def test_a_served_file_gets_the_copy_of_mcp_lite_that_serves_it(self, tmp_path):
        (tmp_path / "mcp_lite.py").write_text("raise ImportError('another copy')\n")
        (tmp_path / "own.py").write_text("import mcp_lite\napp = mcp_lite.Server('own')\n")
        async with m.Client([sys.executable, str(HERE / "mcp_lite.py"), "serve", "own.py"], cwd=tmp_path) as c:
            assert c.server_info["name"] == "own"


@pytest.fixture
def login_example(monkeypatch):
    """Give the modules of examples/authorization, which have names that others have, too."""
    names = ("server", "third_party", "client")
    monkeypatch.syspath_prepend(HERE / "examples" / "authorization")
    found = types.SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    assert found.server.PASSWORD_WORK >= 2**14
    monkeypatch.setattr(found.server, "PASSWORD_WORK", 2)  # that of our passwords is lost time
    yield found
    for name in names:
        del sys.modules[name]


class TestLogins:
    """login, logout: with the server of examples/authorization."""

    async def test_a_login_is_remembered_until_the_logout(self, login_example, monkeypatch, capsys):
        import webbrowser

        monkeypatch.delenv("MCP_LITE_TOKEN", raising=False)
        server, client = login_example.server, login_example.client
        asked = []

        def browse(url):
            asked.append(url)
            asyncio.run(ask(client.browse(url, "alice", "correct horse")))

        async def verb(*words):
            status = await asyncio.get_running_loop().run_in_executor(None, m.main, words)
            return (status, *capsys.readouterr())

        monkeypatch.setattr(webbrowser, "open", browse)
        port = client.free_port()
        app, authority, guard = server.build(f"http://127.0.0.1:{port}")
        authority.add_person("alice", "correct horse")
        with contextlib.closing(authority.db):
            async with app.http(port=port, auth=guard) as thread:
                await self.play(verb, thread.url)
        assert len(asked) == 1

    async def play(self, verb, url):
        status, out, err = await verb("call", "notes", url)
        assert status == 3 and f"{m.PYTHON} mcp_lite.py login {url}" in err, "nobody can be asked"
        status, out, err = await verb("login", url)
        assert (status, out.splitlines()[-1]) == (0, f"{url} lets us in") and "/authorize?" in err
        assert (await verb("call", "notes", url))[0] == 0
        assert (await verb("logout", url))[:2] == (0, f"logged out of {url}\n")
        assert (await verb("logout", url))[:2] == (0, f"not logged in to {url}\n")
        assert (await verb("call", "notes", url))[0] == 3


class Visitor:
    """A client and a browser in one, for the pages of examples/authorization."""

    BACK = "https://app.example/back"

    def __init__(self, authority):
        self.authority, self.cookie = authority, ""
        self.verifier = "v" * 43
        self.asked = {
            "response_type": "code", "redirect_uri": self.BACK, "state": "s", "scope": "notes:read",
            "code_challenge": m.code_challenge(self.verifier), "code_challenge_method": "S256",
            "resource": authority.root + "/mcp",
        }  # fmt: skip

    async def ask(self, page, query="", body="", **fields):
        """Ask for a page: (status, headers, text)."""
        text = body or urllib.parse.urlencode(fields)
        head = m.RequestHead("?", "/", query, {"cookie": self.cookie}, {}, 0, 1, False)
        request = m.HTTPRequest(head, "::1", "http")
        request.body = text.encode()
        return await self.authority.safely(page)(request)

    async def register(self):
        doc = json.dumps({"redirect_uris": [self.BACK], "client_name": "<script>"})
        status, _, answer = await self.ask(self.authority.register, body=doc)
        assert status == 201
        self.asked["client_id"] = json.loads(answer)["client_id"]
        return self

    async def form(self, **changes):
        """Return the secret of the page's form; or the status if there is no page."""
        query = urllib.parse.urlencode({**self.asked, **changes})
        status, headers, page = await self.ask(self.authority.ask, query)
        if status != 200:
            return status
        assert "<script>" not in page and "frame-ancestors 'none'" in headers["content-security-policy"]
        self.cookie = headers["set-cookie"].partition(";")[0]
        return re.search('name="form" value="([^"]+)"', page)[1]

    async def agree(self, form, answer="yes", **fields):
        """Send the form; return status and the parameters of where it leads."""
        fields = {"person": "alice", "password": "pw", **fields}
        found = await self.ask(self.authority.answer, form=form, answer=answer, **fields)
        where = found[1].get("location", "")
        return found[0], where.partition("?")[0], read_form(where.partition("?")[2])

    async def token(self, **form):
        form = {"client_id": self.asked["client_id"], "resource": self.asked["resource"], **form}
        status, _, answer = await self.ask(self.authority.token, **form)
        return status, json.loads(answer)

    async def redeem(self, code, **changes):
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.BACK,
                "code_verifier": self.verifier, **changes}  # fmt: skip
        return await self.token(**form)

    async def refresh(self, token, **changes):
        return await self.token(grant_type="refresh_token", refresh_token=token, **changes)


class TestAuthorizationExample:
    """examples/authorization is safe to copy."""

    @pytest.fixture
    @contextlib.asynccontextmanager
    async def visitor(self, login_example):
        authority = login_example.server.Authority("http://127.0.0.1:1", ":memory:")
        authority.add_person("alice", "pw")
        yield await Visitor(authority).register()
        authority.db.close()

    async def test_nobody_is_sent_to_where_the_client_is_not_at_home(self, login_example, visitor):
        for change in ({"redirect_uri": visitor.BACK + "/x"}, {"redirect_uri": ""},
                       {"client_id": "other"}, {"code_challenge": ""},
                       {"code_challenge_method": "plain"}, {"response_type": "token"},
                       {"resource": "https://other.example"}, {"scope": "all"}):  # fmt: skip
            assert await visitor.form(**change) == 400, change
        for uris in (["http://evil.example"], ["javascript:alert(1)"], [], "x", [7], None):
            doc = json.dumps({"redirect_uris": uris})
            assert (await visitor.ask(visitor.authority.register, body=doc))[0] == 400
        long = json.dumps({"redirect_uris": ["https://app.example/" + "x" * 2000]})
        assert (await visitor.ask(visitor.authority.register, body=long))[0] == 400
        for body in ("{", "[]", "a=b&a=c", "[" * 100_000):
            for page in (visitor.authority.register, visitor.authority.token):
                assert (await visitor.ask(page, body=body))[0] == 400

    async def test_a_form_is_good_once_in_its_browser_and_for_the_right_password(self, visitor):
        form, cookie = await visitor.form(), visitor.cookie
        visitor.cookie = "browser=of-somebody-else"
        assert (await visitor.agree(form))[0] == 400
        visitor.cookie = cookie
        assert (await visitor.agree(form))[0] == 400, "it was used"
        status, where, answer = await visitor.agree(await visitor.form())
        assert (status, where, answer["state"]) == (303, visitor.BACK, "s")
        assert answer["iss"] == visitor.authority.root and answer["code"]
        _, _, answer = await visitor.agree(await visitor.form(), "no")
        assert answer["error"] == "access_denied" and "code" not in answer
        assert (await visitor.agree(await visitor.form(), password="x"))[0] == 403
        visitor.authority.wrong["alice"] += 60  # however slow we are
        assert (await visitor.agree(await visitor.form()))[0] == 429, "within a second"

    async def test_forms_that_nobody_sends_have_a_bound_and_the_oldest_gives_way(self, login_example, monkeypatch, visitor):
        monkeypatch.setattr(login_example.server, "MAX_WAITING", 2)
        forms = [await visitor.form() for _ in range(3)]
        assert len(visitor.authority.forms) == 2
        assert [(await visitor.agree(form, "no"))[0] for form in forms] == [400, 303, 303]

    async def test_two_logins_of_one_person_at_the_same_time_are_both_answered(self, login_example, monkeypatch, visitor):
        forms, wrong = [await visitor.form() for _ in "ab"], visitor.authority.wrong
        began = asyncio.Event()

        async def slow(fn, *args):
            wrong["alice"] -= 2  # as if it took that long
            if not began.is_set():
                began.set()
                await eventually(lambda: wrong.get("alice") is None)
            return fn(*args)

        monkeypatch.setattr(login_example.server.asyncio, "to_thread", slow)
        first = asyncio.ensure_future(visitor.agree(forms[0]))
        await began.wait()
        assert (await visitor.agree(forms[1]))[0] == 303 == (await first)[0]

    async def test_a_code_is_good_once_for_its_client_and_its_proof(self, login_example, visitor):
        async def code():
            return (await visitor.agree(await visitor.form()))[2]["code"]

        for change in ({"code_verifier": "w" * 43}, {"client_id": "x"}, {"code": "x"},
                       {"redirect_uri": "https://app.example/"}, {"resource": "x"}):  # fmt: skip
            status, answer = await visitor.redeem(await code(), **change) if (
                "code" not in change) else await visitor.redeem(**change)
            assert (status, answer) == (400, {"error": "invalid_grant"}), change
        first = await code()
        status, tokens = await visitor.redeem(first)
        assert status == 200 and tokens["scope"] == "notes:read"
        verify = visitor.authority.verify
        who = await verify(tokens["access_token"])
        assert (who.subject, who.scopes) == ("alice", {"notes:read"})
        dump = "\n".join(visitor.authority.db.iterdump())
        for secret in (*tokens.values(), first):
            assert secret == "notes:read" or str(secret) not in dump or len(str(secret)) < 20
        assert (await visitor.redeem(first))[0] == 400
        assert await verify(tokens["access_token"]) is None, "what it gave has ended"

    async def test_a_refresh_token_that_comes_twice_ends_the_family(self, visitor):
        code = (await visitor.agree(await visitor.form()))[2]["code"]
        _, one = await visitor.redeem(code)
        assert (await visitor.refresh(one["refresh_token"], client_id="x"))[0] == 400
        status, two = await visitor.refresh(one["refresh_token"])
        assert status == 200 and await visitor.authority.verify(two["access_token"])
        assert (await visitor.refresh(one["refresh_token"]))[0] == 400
        assert (await visitor.refresh(two["refresh_token"]))[0] == 400
        assert await visitor.authority.verify(two["access_token"]) is None

    # A third party.

    @contextlib.asynccontextmanager
    async def delegating(self, login_example):
        """A visitor of ours, and the authority of the third party."""
        root = "http://127.0.0.1:1"
        async with login_example.client.serving_third_party(root) as (third, theirs):
            ours = login_example.third_party.Delegating(root, ":memory:", third)
            visitor = await Visitor(ours).register()
            visitor.example = login_example
            yield visitor, theirs
            ours.db.close()

    @staticmethod
    async def walk(visitor, **options):
        """Agree here, log in there; return the query of the address at which we come back."""
        status, where, params = await visitor.agree(await visitor.form())
        assert status == 303 and where == visitor.authority.third.authorize
        page = f"{where}?{urllib.parse.urlencode(params)}"
        browse = visitor.example.client.browse
        back = await asyncio.to_thread(browse, page, "alice", "correct horse")
        assert back.startswith(visitor.authority.root + "/callback?")
        return back.partition("?")[2]

    async def log_in(self, visitor):
        found = await visitor.ask(visitor.authority.come_back, await self.walk(visitor))
        answer = read_form(found[1]["location"].partition("?")[2])
        return (await visitor.redeem(answer["code"]))[1]

    async def test_only_the_browser_that_agreed_comes_back_and_once(self, login_example):
        async with self.delegating(login_example) as (visitor, _):
            back = visitor.authority.come_back
            assert (await visitor.ask(back, "code=x&state=guessed"))[0] == 403
            query, cookie = await self.walk(visitor), visitor.cookie
            for other in ("", "browser=evil", "other=1"):
                visitor.cookie = other
                assert (await visitor.ask(back, query))[0] == 403
            visitor.cookie = f"a=b; {cookie}; c=d"
            status, fields, _ = await visitor.ask(back, query)
            assert status == 303 and fields["location"].startswith(visitor.BACK + "?")
            assert (await visitor.ask(back, query))[0] == 403, "a second time"

    @pytest.mark.parametrize(
        "change", [("code=", "code=x"), ("iss=", "iss=https%3A%2F%2Fevil.example&x="),
                   ("code=", "error=access_denied&x=")],
    )  # fmt: skip
    async def test_an_answer_that_is_not_the_third_partys_gives_no_code(self, login_example, change):
        async with self.delegating(login_example) as (visitor, _):
            query = (await self.walk(visitor)).replace(*change)
            _, fields, _ = await visitor.ask(visitor.authority.come_back, query)
            answer = read_form(fields["location"].partition("?")[2])
            assert answer["error"] == "access_denied" and "code" not in answer
            assert not visitor.authority.sessions

    async def test_our_tokens_count_as_long_as_the_third_partys(self, login_example, monkeypatch):
        """spec 2025-03-26: basic/authorization#session-binding-requirements"""
        async with self.delegating(login_example) as (visitor, theirs):
            ours, tokens = visitor.authority, await self.log_in(visitor)
            [session] = ours.sessions.values()
            assert session.access not in json.dumps(tokens), "no client sees it"
            assert session.access not in "\n".join(ours.db.iterdump())
            assert (await ours.verify(tokens["access_token"])).subject == "alice"
            monkeypatch.setattr(login_example.third_party, "CHECK_SECONDS", -1.0)
            assert await ours.verify(tokens["access_token"])
            theirs.db.execute("UPDATE tokens SET until = 1 WHERE kind = 'access'")
            assert await ours.verify(tokens["access_token"]), "it was renewed"
            assert [each.access for each in ours.sessions.values()] != [session.access]
            theirs.db.execute("DELETE FROM tokens")
            assert await ours.verify(tokens["access_token"]) is None
            assert (await visitor.refresh(tokens["refresh_token"]))[0] == 400
            assert not ours.sessions and not ours.turns

    async def test_a_third_party_that_is_down_lets_nobody_in_and_ends_nothing(self, login_example, monkeypatch):
        async with self.delegating(login_example) as (visitor, _):
            ours, tokens = visitor.authority, await self.log_in(visitor)
            monkeypatch.setattr(login_example.third_party, "CHECK_SECONDS", -1.0)
            where, ours.third.me = ours.third.me, "http://127.0.0.1:1/me"
            with pytest.raises(OSError):
                await ours.verify(tokens["access_token"])
            assert (await visitor.refresh(tokens["refresh_token"]))[0] == 503
            ours.third.me = where
            assert (await visitor.refresh(tokens["refresh_token"]))[0] == 200

    async def test_a_login_that_nobody_used_is_forgotten(self, login_example):
        async with self.delegating(login_example) as (visitor, _):
            await self.log_in(visitor)
            ours = visitor.authority
            ours.tidy(time.time())
            assert len(ours.sessions) == 1
            ours.tidy(time.time() + 100 * 86400)
            assert not ours.sessions


class TestExamples:
    """The programs in examples/ do what they say."""

    EXAMPLES = HERE / "examples"

    async def test_quickstart_never_leaves_its_folder(self, tmp_path):
        (tmp_path / "outside.txt").write_text("needle")
        folder = tmp_path / "folder"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "a.txt").write_text("hay\nneedle here\n")
        with contextlib.suppress(OSError, NotImplementedError):
            (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
        steps = []

        target = [sys.executable, str(self.EXAMPLES / "quickstart.py"), str(folder)]
        async with m.Client(target, progress=lambda *step: steps.append(step)) as c:
            for files in ("*", "../*", "**/*.txt"):
                found = await c.call("search", {"text": "NEEDLE", "files": files})
                assert "outside" not in found and "link" not in found
            assert await c.call("search", {"text": "NEEDLE"}) == "sub/a.txt:2: needle here"
            assert await c.call("read_file", {"path": "sub/a.txt", "first": 2}) == "needle here"
            assert await c.read("folder://sub/a.txt") == "hay\nneedle here"
            for path in ("../outside.txt", str(tmp_path / "outside.txt"), "link.txt", "none"):
                with pytest.raises(m.ToolError, match="there is no file"):
                    await c.call("read_file", {"path": path})
            with pytest.raises(m.RemoteError):
                await c.read("folder://../outside.txt")
        assert (1, 1, "sub/a.txt") in steps

    @pytest.mark.parametrize("options, pages", [([], 2), (["--third-party"], 4)])  # to read, and to write
    def test_the_whole_login_is_played_and_shows_no_secret(self, options, pages):
        command = [sys.executable, str(self.EXAMPLES / "authorization" / "client.py"), *options]
        ran = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True)
        said = unix(ran.stdout).decode()
        assert said.count("Agree Refuse") == said.count("the page says") == pages
        assert "alice has written 'it works'" in said and said.endswith("=== logging out\n True\n")
        for path in ("oauth-protected-resource/mcp", "oauth-authorization-server", "/register",
                     "/token", "/revoke"):  # fmt: skip
            assert path in said
        assert not re.search("Bearer ey|access_token|code_verifier|correct horse", said)

    def test_host_runs_tools_on_its_main_thread_and_ends(self):
        command = [sys.executable, str(self.EXAMPLES / "embed_in_host.py"), "--demo"]
        done = subprocess.run(command, timeout=30, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            "cube is at (2.5, 0.0, 0.0), says the MainThread",
            "1 of 4", "2 of 4", "3 of 4", "4 of 4",
            "cube is at (2.5, 0.0, 0.0), says the MainThread",
        ]  # fmt: skip

    @pytest.mark.parametrize("word", ["A=1", "A=", "A= deep red ", "A=b=c", "A", "=1"])
    def test_install_reads_a_variable_as_the_other_verbs_do(self, word, cli, tmp_path):
        file = tmp_path / "file.py"
        file.write_text(SERVER + "import os\n@app.tool\ndef read() -> str: return repr(os.environ.get('A'))\n")
        called = cli("call", "read", "--env", word, f"{file}:app")
        installed = cli("install", "cursor", "--env", word, f"{file}:app")
        assert called[0] == installed[0]
        if called[0]:
            assert all("expected KEY=VALUE" in err for _, _, err in (called, installed))
        else:
            [entry] = json.loads(installed[1])["mcpServers"].values()
            assert called[1] == f"{entry['env']['A']!r}\n"

    @pytest.mark.parametrize("word", ["Region: eu", "Region:eu ", "Region", ":eu", "Authorization=secret"])
    def test_install_reads_a_header_as_the_other_verbs_do(self, word, cli):
        status, out, err = cli("install", "cursor", "--header", word, "http://127.0.0.1:1/mcp")
        refused = "expected NAME:VALUE" in cli("tools", "--header", word, "http://127.0.0.1:1/mcp")[2]
        assert (status == 2, "expected NAME:VALUE" in err) == (refused, refused)
        assert "secret" not in err
        if not refused:
            [entry] = json.loads(out)["mcpServers"].values()
            assert entry["headers"] == {"Region": "eu"}

    async def test_host_serves_on_its_own_streams_too(self):
        async with m.Client([sys.executable, str(self.EXAMPLES / "embed_in_host.py")]) as c:
            assert "MainThread" in await c.call("move", {"name": "cube", "x": 1})


class TestProduction:
    """examples/production: a page whose commands work, metrics and spans whose names are right."""

    FOLDER = HERE / "examples" / "production"

    @pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
    def test_the_commands_of_the_page_do_what_it_says(self, tmp_path):
        page = (self.FOLDER / "README.md").read_text("utf-8")
        (block,) = re.findall(r"<!-- test: run -->\n```sh\n(.*?)```", page, re.S)
        with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
            ports = [str(each.getsockname()[1]) for each in (a, b)]
        block = block.replace("8000", ports[0]).replace("9000", ports[1])
        block = block.replace("python3", sys.executable).replace("access.log", f"{tmp_path}/log")
        ran = subprocess.run(["bash", "-e", "-c", block], cwd=HERE, capture_output=True, timeout=60)
        ready, answer, counted, logged = ran.stdout.decode().splitlines()
        assert (ran.returncode, ready, answer) == (0, "ok", "3")
        assert counted.startswith("mcp_server_operation_duration_seconds_count{") and counted.endswith(" 1")
        assert json.loads(logged)["principal"] == "operator"
        assert "a-long-secret" not in (tmp_path / "log").read_text()

    async def test_metrics_have_a_series_for_each_tool_that_there_is_and_one_for_all_others(self):
        app, lines = m.Server(), []
        loaded = load_example("production/metrics.py")
        metrics = loaded.Metrics(app)
        loaded.observe(app, metrics.observe, loaded.access_log(lines.append))
        app.tool(lambda: "1", name='a"b')

        @app.tool
        async def fail():
            raise m.ToolError("no")

        async with m.Client(app) as c:
            await c.call('a"b')
            with pytest.raises(m.ToolError):
                await c.call("fail")
            for n in range(3):  # no client makes time series, or forges them
                for method in (f'x"}} 1\nforged{n}', "tools/call"):
                    with pytest.raises(m.RemoteError):
                        await c.request(method, {"name": f"unknown{n}"})
        name = "mcp_server_operation_duration_seconds"
        page = metrics.text()
        assert page.startswith(f"# TYPE {name} histogram\n") and "forged" not in page and "unknown" not in page
        series = {line.split("{")[1].split("}")[0] for line in page.splitlines() if "_count" in line}
        call, era = 'mcp_method_name="tools/call",gen_ai_tool_name=', ',mcp_protocol_version="2026-07-28"'
        assert series >= {f'{call}"a\\"b"{era}', f'{call}"fail",error_type="tool_error"{era}',
                          f'{call}"_other",error_type="-32602"{era}',
                          f'mcp_method_name="_other",error_type="-32601"{era}'}  # fmt: skip
        told = [json.loads(line) for line in lines]
        assert [(line["method"], line["outcome"]) for line in told][1:3] == [("tools/call", "result"), ("tools/call", "tool_error")]

    async def test_a_span_is_the_child_of_the_clients_span(self):
        written, app, loaded = [], m.Server(), load_example("production/metrics.py")
        loaded.observe(app, loaded.Spans(written.append, "shop").observe)
        app.tool(lambda: "1", name="add")
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        async with m.Client(app) as c:
            await c.call_tool("add", {}, meta={"traceparent": parent})
        sent = json.loads(written[-1])["resourceSpans"][0]
        (span,) = sent["scopeSpans"][0]["spans"]
        assert (span["traceId"], span["parentSpanId"]) == (parent[3:35], parent[36:52])
        assert (span["name"], span["kind"], span["status"]) == ("tools/call add", 2, {"code": 0})
        assert int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"])


class TestNotes:
    """examples/notes: a server that people run."""

    FILE = HERE / "examples" / "notes" / "notes.py"

    @pytest.fixture(params=["FTS5", "LIKE"])
    def notes(self, request, tmp_path, monkeypatch):
        """The module, with a database and a folder of its own."""
        monkeypatch.setenv("NOTES_DB", str(tmp_path / "notes.db"))
        monkeypatch.setenv("NOTES_FOLDER", str(tmp_path / "folder"))
        monkeypatch.setattr(sys, "path", [*sys.path])
        spec = importlib.util.spec_from_file_location("notes", self.FILE)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "notes", module)
        spec.loader.exec_module(module)
        if request.param == "LIKE":
            module.WORDS = module.WORDS.replace("fts5", "an_extension_that_is_absent")
        return module

    @staticmethod
    def titles(found):
        return [note["title"] for note in found]

    async def test_a_word_finds_the_notes_that_have_it_or_begin_so(self, notes):
        async with m.Client(notes.app) as c:
            await c.call("add", {"title": "Garden", "text": "Ask Ann about the_tulips: 100%"})
            await c.call("add", {"title": "Shop", "text": "milk\r\nbread", "topic": "home"})
            for words, found in {
                "the_tul": ["Garden"], "ANN gard": ["Garden"],
                "milk ann": [], "": ["Shop", "Garden"], "100%": ["Garden"], '"': ["Shop", "Garden"],
                "a' OR 1 --": [], "NEAR(": [],
            }.items():  # fmt: skip
                assert self.titles(await c.call("search", {"words": words})) == found, words
            assert len(await c.call("search", {"words": "", "limit": 1})) == 1
            edited = await c.call("edit", {"id": 1, "text": "roses"})
            assert (edited["title"], edited["text"]) == ("Garden", "roses")
            assert await c.call("search", {"words": "the_tulips"}) == []
            assert self.titles(await c.call("search", {"words": "rose"})) == ["Garden"]
            assert await c.read("note://2") == "# Shop\n\nmilk\nbread\n"
            assert await c.read("notes://index") == "note://1 general: Garden\nnote://2 home: Shop"

    async def test_errors_say_what_to_do(self, notes):
        async with m.Client(notes.app) as c:
            with pytest.raises(m.ToolError, match="there is no note 7: `search` finds"):
                await c.call("edit", {"id": 7, "title": "x"})
            with pytest.raises(m.RemoteError, match="there is no note 7"):
                await c.read("note://7")
            with pytest.raises(m.RemoteError, match="nothing is noted on 'work'"):
                await c.get_prompt("digest", {"topic": "work"})
            for wrong in ({"topic": "../up"}, {"title": ""}, {"text": "x" * 1_000_001}):
                with pytest.raises(m.ToolError, match=next(iter(wrong))):
                    await c.call("add", {"title": "x", "text": "x", **wrong})
            await c.call("add", {"title": "x", "text": "y"})
            with pytest.raises(m.ToolError, match="the user must agree"):
                await c.call("delete", {"id": 1})

    @newest_revisions
    async def test_a_note_is_deleted_when_the_user_agrees(self, notes, revision):
        answers, asked = [None, {"value": False}, {"value": True}], []

        def elicit(message, schema):
            asked.append(message)
            return answers.pop(0)

        async with m.Client(notes.app, elicit=elicit, revision=revision) as c:
            await c.call("add", {"title": "Shop", "text": "milk"})
            assert "still there" in await c.call("delete", {"id": 1})
            assert "still there" in await c.call("delete", {"id": 1})
            assert await c.call("delete", {"id": 1}) == "Note 1 is deleted."
            assert await c.call("search", {"words": "milk"}) == []
        assert asked == ["Delete note 1, 'Shop'?"] * 3

    @newest_revisions
    async def test_a_client_that_subscribed_is_told_of_a_change(self, notes, revision):
        heard = []

        async with m.Client(notes.app, revision=revision) as c:
            await c.call("add", {"title": "Shop", "text": "milk"})
            await c.subscribe("note://1", heard.append)
            await c.call("add", {"title": "Other", "text": ""})
            await c.call("edit", {"id": 1, "text": "bread"})
            await eventually(lambda: heard)
        assert [each["uri"] for each in heard] == ["note://1"]

    async def test_an_export_is_imported_once_and_its_folders_are_topics(self, notes, tmp_path):
        steps, folder = [], tmp_path / "folder"

        async with m.Client(notes.app, progress=lambda *step: steps.append(step)) as c:
            await c.call("add", {"title": "Shop", "text": "\nmilk", "topic": "home"})
            assert await c.call("export_notes") == f"1 notes are in {folder}."
            assert (folder / "home" / "1.md").read_text() == "# Shop\n\nmilk\n"
            (folder / "plain.md").write_text("no title")
            (tmp_path / "outside.md").write_text("secret")
            with contextlib.suppress(OSError, NotImplementedError):
                (folder / "link.md").symlink_to(tmp_path / "outside.md")
            assert await c.call("import_notes") == "1 of 2 files were new."
            assert await c.call("import_notes") == "0 of 2 files were new."
            assert await c.complete("digest", "topic", "g") == ["general"]
            prompt = await c.get_prompt("digest", {"topic": "general"})
            texts = [msg["content"]["resource"]["text"] for msg in prompt["messages"][1:]]
            assert texts == ["# plain\n\nno title\n"]
        assert steps[:2] == [(1, 1, "Shop"), (1, 2, "1.md")] and (2, 2, "plain.md") in steps

    async def test_an_import_that_is_cancelled_ends_and_keeps_what_it_has(self, notes, tmp_path):
        (tmp_path / "folder").mkdir()
        for number in range(20):
            (tmp_path / "folder" / f"{number}.md").write_text("text")
        began, go_on = threading.Event(), threading.Event()
        change = notes.Notes.change

        def slow(self, *args):
            began.set()
            assert go_on.wait(20)
            return change(self, *args)

        notes.Notes.change = slow

        async with m.Client(notes.app, revision=V4) as c:
            job = asyncio.ensure_future(c.call("import_notes"))
            await eventually(began.is_set)
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
            await c.ping()  # now the server has heard of it
            go_on.set()
        with contextlib.closing(notes.sqlite3.connect(str(notes.DATABASE))) as database:
            assert database.execute("SELECT count(*) FROM notes").fetchall() == [(1,)]

    async def test_a_note_outlives_the_server(self, notes):
        async with m.Client(notes.app) as c:
            await c.call("add", {"title": "Shop", "text": "milk"})
        async with m.Client(notes.app) as c:
            assert self.titles(await c.call("search", {"words": "milk"})) == ["Shop"]


class TestReadme:
    """What README.md prints is true."""

    TEXT = (HERE / "README.md").read_text("utf-8") if (HERE / "README.md").exists() else ""
    REFERENCE = HERE / "examples" / "reference" / "README.md"
    SHEET = REFERENCE.read_text("utf-8") if REFERENCE.exists() else ""

    @pytest.fixture
    def folder(self, tmp_path):
        """A folder with mcp_lite.py and the README's programs, as printed."""
        copy_mcp_lite(tmp_path / "mcp_lite.py")
        blocks = re.findall(r"<!-- ci: python (\S+) -->\n```python\n(.*?)```", self.TEXT, re.DOTALL)
        assert [name for name, _ in blocks] == ["server.py", "client.py", "admin_server.py", "shop.py", "test_shop.py"]
        for name, text in blocks:
            (tmp_path / name).write_text(text, "utf-8")
        return tmp_path

    def test_the_client_prints_what_the_server_answers(self, folder):
        done = run_python("-W", "error", "client.py", cwd=folder, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")

    async def test_functions_of_a_script_become_tools(self, folder):
        script = """
            def disk_usage(path: str = "/") -> dict[str, int]:
                return {"free": len(path)}

            def restart(name):
                return f"restarted {name!r}"
        """
        (folder / "admin.py").write_text(textwrap.dedent(script), "utf-8")
        async with m.Client(str(folder / "admin_server.py")) as c:
            assert await c.call("disk_usage", {"path": "/home"}) == {"free": 5}
            assert await c.call("restart_service", {"name": [1]}) == "restarted [1]"
            with pytest.raises(m.ToolError, match="path: expected string"):
                await c.call("disk_usage", {"path": [1]})

    def test_the_test_of_the_shop_passes(self, folder):
        (command,) = re.findall(r"`python3 (-m pytest .*?)`", self.TEXT)
        done = run_python(*shlex.split(command), cwd=folder, text=True)
        assert done.returncode == 0 and "1 passed" in done.stdout

    def test_the_commands_print_what_is_shown(self, folder):
        blocks = "".join(re.findall(r"```console\n(.*?)```", self.TEXT, re.DOTALL))
        steps = re.findall(r"^\$ python3 (.+)\n((?:(?!\$ ).*\n)*)", blocks, re.MULTILINE)
        assert len(steps) == 2
        for command, shown in steps:
            done = run_python(*shlex.split(command), cwd=folder, text=True)
            assert (done.returncode, done.stdout, done.stderr) == (0, shown, "")

    def test_the_commands_of_the_command_line_work(self, folder):
        section = self.TEXT.partition("\n## From the command line\n")[2].partition("\n## ")[0]
        (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
        lines = [line for line in block.splitlines() if not re.search(r"\b(serve|login) ", line)]
        assert len(lines) == 4
        for line in lines:
            words = [sys.executable, *shlex.split(line, comments=True)[1:]]
            done = subprocess.run(words, cwd=folder, timeout=60, capture_output=True)
            assert done.returncode == 0 and done.stdout, line

    def test_the_entry_for_an_application_is_the_one_that_install_prints(self, folder, cli):
        (shown,) = re.findall(r'```json\n(\{"mcpServers": .*?)```', self.TEXT, re.DOTALL)
        status, out, _ = cli("install", "cursor", str(folder / "server.py"))
        printed = json.loads(out)
        for entry in printed["mcpServers"].values():
            assert entry == {"command": sys.executable, "args": [str(folder / "server.py")]}
            entry.update(command="python3", args=["/path/to/server.py"])
        assert (status, printed) == (0, json.loads(shown))

    def test_fragments_compile(self):
        blocks = re.findall(r"```python\n(.*?)```", self.TEXT + self.SHEET, re.DOTALL)
        assert len(blocks) > 8
        for block in blocks:
            compile(block, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    @pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
    async def test_a_plain_function_asks_before_it_deletes_files(self, tmp_path, revision, monkeypatch):
        (block,) = re.findall(r"```python\n(import os\n\nimport admin\n[^`]*?\ndef clean_up.*?)```", self.TEXT, re.DOTALL)
        old, runs = [str(tmp_path / f"{n}.old") for n in range(2)], []
        for name in old:
            pathlib.Path(name).touch()
        admin = types.SimpleNamespace(old_files=lambda folder: runs.append(folder) or old)
        scope = {"app": m.Server("admin")}
        monkeypatch.setitem(sys.modules, "admin", admin)
        exec(block, scope)
        seen, answers, arguments = [], [False, True], {"folder": "tmp"}

        def answer(message, schema):
            seen.append(message)
            return {"value": answers.pop(0)}

        async with m.Client(scope["app"], revision=revision) as c:
            with pytest.raises(m.ToolError, match=r"must delete these files: \['.*0.old', '.*1.old'\]"):
                await c.call("clean_up", arguments)
        async with m.Client(scope["app"], revision=revision, elicit=answer, progress=lambda *step: seen.append(step[0])) as c:
            assert await c.call("clean_up", arguments) == "nothing was deleted" and len([*tmp_path.iterdir()]) == 2
            assert await c.call("clean_up", arguments) == "deleted 2 files" and not [*tmp_path.iterdir()]
        assert (seen, runs) == (["Delete 2 files?"] * 2 + [1, 2], ["tmp"] * 3)

    async def test_parallel_calls_share_the_database_of_the_lifespan(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path.parent)  # as applications do
        (block,) = re.findall(r"```python\n(import contextlib\n.*?)```", self.TEXT, re.DOTALL)
        scope = {"__file__": str(tmp_path / "shop.py")}
        exec(block, scope)
        app = scope["app"]

        @app.tool
        def order(ctx: m.SyncContext) -> int:
            with ctx.lifespan as db:
                db.execute("CREATE TABLE IF NOT EXISTS orders (item)")
                db.execute("INSERT INTO orders VALUES ('tea')")
                return db.execute("SELECT count(*) FROM orders").fetchone()[0]

        async with m.Client(app) as c:
            numbers = await asyncio.gather(*[c.call("order") for _ in range(100)])
        assert sorted(numbers) == [*range(1, 101)] and (tmp_path / "shop.db").exists()

    def test_the_test_of_scopes_passes(self):
        (block,) = re.findall(r"```python\n(def test_erasing.*?)```", self.SHEET, re.DOTALL)
        app = m.Server("shop")
        app.add_tool(lambda item: "erased", name="erase", scopes=["write"])
        scope = {**vars(m), "app": app, "asyncio": asyncio, "pytest": pytest}
        exec(block, scope)
        scope["test_erasing_needs_a_scope"]()

    def test_the_cuts_are_made_before_headings(self):
        names = re.findall(r"^\| `((?:Part |\.\* ).+?)` \|", self.SHEET, re.MULTILINE)
        cuts = [re.search(f"^# {name}.*\n# ?[=-]*#*$", SOURCE, re.MULTILINE) for name in names]
        assert len(cuts) == 6 and all(cuts)
        assert [cut.start() for cut in cuts] == sorted(cut.start() for cut in cuts)

    def test_links_of_every_page_lead_somewhere(self):
        for page in [HERE / "README.md", *(HERE / "examples").rglob("*.md")]:
            text = page.read_text("utf-8")
            for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
                target = page.parent / path if path else page
                assert target.exists(), f"{page}: {path}"
                if anchor:
                    assert anchor in anchors(target.read_text("utf-8")), f"{page}: {path}#{anchor}"

    def test_the_sections_that_the_lessons_name_exist(self):
        lessons = HERE / "examples" / "lessons"
        titles = re.findall(r"(?m)^# \d+\. (.*)$", SOURCE)
        table = re.findall(r"(?m)^\| \d+ \|.*\| (.*) \|$", (lessons / "README.md").read_text("utf-8"))
        heads = [re.search(r"does it properly in([^:]*?(?:: )?.*?)\nExercise", path.read_text("utf-8"), re.S)[1]
                 for path in sorted(lessons.glob("[0-9]*.py"))]  # fmt: skip
        assert len(table) == len(heads) == 11
        for named in table + heads:
            assert set(re.findall(r'"([A-Z][^"]*)"', named)) <= {*titles}, named

    # Public names that only other sections use; a user has no need of them.
    INNER = {
        m.Server: "",
        m.Context: "finish input_required job journal suspended title unfinished",
        m.Client: "catch_up modern",
    }

    def test_the_reference_has_every_public_name(self):
        """As code: a word of the prose does not count."""
        code = " ".join(re.findall(r"`[^`\n]+`", self.SHEET))
        shown = {*re.findall(r"\w+", code)}
        assert [name for name in m.__all__ if name not in shown] == []
        for cls, inner in self.INNER.items():
            public = {name for name in dir(cls) if not name.startswith("_")}
            assert public - shown - {*inner.split()} == set(), cls
            assert {*inner.split()} <= public, cls

    def test_the_reference_has_no_name_that_is_gone(self):
        classes = (m.Server, m.Context, m.Client, m.HTTPRequest)
        names = {*m.__all__, *(name for cls in classes for name in dir(cls)), "fn"}
        callables = [*vars(m).values(), *(getattr(cls, name) for cls in classes for name in dir(cls))]
        options = {"size", "KEY"}  # a field of a resource; a word of the command line
        for fn in filter(callable, callables):
            with contextlib.suppress(TypeError, ValueError):
                options.update(inspect.signature(fn).parameters)
        rows = [line.split(" | ")[0] for line in self.SHEET.splitlines() if line.startswith("| ")]
        code = " ".join(text for row in rows for text in re.findall(r"`([^`]*)`", row))
        assert {*re.findall(r"(?<![\w.@\"/=])([a-z_]\w+)(?=\()", code)} - names == set()
        assert {*re.findall(r"\b(\w+)=", code)} - options == set()

    async def test_the_names_beside_those_of_the_sdk_exist(self):
        page = (HERE / "examples" / "porting" / "README.md").read_text("utf-8")
        ours = " ".join(line.split(" | ")[1] for line in page.splitlines() if " | " in line)
        found = re.findall(r"\b(app|ctx|c)\.(\w+)", ours)
        assert len(found) > 20
        app, seen = m.Server("x"), {}

        app.add_tool(lambda ctx: seen.update(ctx=dir(ctx)), name="see")

        async with m.Client(app) as c:
            await c.call("see")
            seen.update(app=dir(app), c=dir(c))
        assert [(name, word) for name, word in found if word not in seen[name]] == []
        options = {
            word for fn in (m.Server, m.Server.include, m.Server.route, m.HTTPServer, m.Endpoint,
                            m.Guard, m.Tool, m.Context.sample, m.Context.elicit_url, m.Context.log,
                            m.Image, m.Message, m.Client, m.jwt_verifier, m.Principal,
                            m.StdioTransport, m.HTTPTransport)
            for word in inspect.signature(fn).parameters
        }  # fmt: skip
        assert {*re.findall(r"\b(\w+)=", ours)} - options == {"ge", "multiple_of"}  # of Field()

    async def test_the_keywords_beside_those_of_pydantic_are_the_same(self):
        """What pydantic's Field() carries is read by its names."""
        page = (HERE / "examples" / "porting" / "README.md").read_text("utf-8")
        rows = re.findall(r"^\| `(Field\(.*?\))`.*\| `(Annotated\[.*\])` \|$", page, re.MULTILINE)
        assert len(rows) == 7
        for field, annotation in rows:
            note = eval(field, {"Field": types.SimpleNamespace})
            ours = eval(annotation, {**vars(typing)})
            theirs = typing.Annotated[(typing.get_args(ours)[0], note)]
            schemas, app = [], m.Server("x")
            for hint in ours, theirs:
                def check(value): ...
                check.__annotations__["value"] = hint
                app.add_tool(check)
                async with m.Client(app) as c:
                    schemas += [tool["inputSchema"] for tool in await c.list_tools()]
            assert schemas[0] == schemas[1] and len(schemas[0]["properties"]["value"]) > 1

    async def test_a_middleware_measures_a_call_with_a_question_once(self, caplog):
        page = (HERE / "examples" / "porting" / "README.md").read_text("utf-8")
        (block,) = re.findall(r"```python\n([^`]*def measure.*?)```", page, re.DOTALL)
        app, logger = m.Server("x"), logging.getLogger("test.measure")
        exec(block, {**vars(m), **vars(typing), "app": app, "time": time, "logger": logger})

        @app.tool
        async def ask(ctx: m.Context) -> bool:
            return (await ctx.elicit("Sure?", bool)).data

        with caplog.at_level("INFO", "test.measure"):
            async with m.Client(app, elicit=lambda message, schema: {"value": True}) as c:
                assert await c.call("ask") is True
        lines = [record.getMessage() for record in caplog.records if record.name == "test.measure"]
        assert [line.split()[0] for line in lines] == ["server/discover", "tools/call"]

    def test_the_reference_has_every_verb_and_option(self, cli):
        for verb in m.VERBS:
            assert re.search(f"`{verb}[ `]", self.SHEET), verb
        for option in m.OPTIONS:
            assert option in self.SHEET, option

    def test_every_option_is_in_the_reference(self):
        shown = {*re.findall(r"\b(\w+)=", self.SHEET)}
        for fn in (m.Server, m.Server.route, m.HTTPServer, m.ASGIApp, m.Endpoint,
                   m.Client, m.StdioTransport, m.HTTPTransport):  # fmt: skip
            options = inspect.signature(fn).parameters.values()
            assert {each.name for each in options if each.kind is each.KEYWORD_ONLY} <= shown, fn

    def test_limits_are_the_ones_in_the_file(self):
        table = self.SHEET.partition("\n## Limits\n")[2].partition("\n## ")[0]
        assert 10 < len(re.findall(r"^\| (?!what|---)", table, re.MULTILINE)) <= 40
        for limit in (m.MAX_ELEMENTS, m.MAX_DEPTH, m.MAX_IN_FLIGHT, m.MAX_MESSAGE_BYTES >> 20):
            assert f"{limit:,}" in table


########################
# T99. The file as a book
########################
#
# mcp_lite.py is to be read from top to bottom. What that needs and a machine can see is checked
# here; the thresholds were measured on the protocol code that is most admired for being readable.

BANNER = re.compile(r"^#{4,24}\n# (T?)(\d+)\. (.+)\n#+\n", re.M)
SOURCE = pathlib.Path(m.__file__).read_text(encoding="utf-8")
LINES = SOURCE.splitlines()


class Part(typing.NamedTuple):
    """One numbered section of a file: mcp_lite.py or this one."""

    number: int
    title: str
    first: int  # line number of its banner
    last: int
    text: str

    @property
    def intro(self):
        """The comment that follows the banner."""
        lines = self.text.splitlines()[3:]
        return list(itertools.takewhile(lambda line: line.startswith("#"), lines))


def sections_of(text):
    """Return the sections of a file in order; the text above the first banner is number 0."""
    marks = [(0, 0, "Preface")]
    marks += [(hit.start(), int(hit[2]), hit[3]) for hit in BANNER.finditer(text)]
    ends = [mark[0] for mark in marks[1:]] + [len(text)]
    parts, lines = [], 0
    for (start, number, title), end in zip(marks, ends):
        above, lines = lines, lines + text.count("\n", start, end)
        parts.append(Part(number, title, above + 1, lines, text[start:end]))
    return parts


SECTIONS = sections_of(SOURCE)
NUMBERED = SECTIONS[1:]


@functools.cache
def whole_tree():
    """Return the syntax tree of mcp_lite.py."""
    return ast.parse(SOURCE)


@functools.cache
def nodes_of(part):
    """Return the syntax trees of a section's statements."""
    return [node for node in whole_tree().body if part.first <= node.lineno <= part.last]


@functools.cache
def walked(part):
    """Return all nodes of those trees."""
    return [*itertools.chain.from_iterable(map(ast.walk, nodes_of(part)))]


@functools.cache
def tables_of(part):
    """Return what Python knows of the names in a section, in its functions and in its classes."""
    tree = ast.parse(part.text)
    for node in ast.walk(tree):  # annotations are for the reader
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(0)
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
    tables = [symtable.symtable(ast.unparse(tree), "mcp_lite.py", "exec")]
    for table in tables:
        tables += table.get_children()
    return tables


@functools.cache
def globals_used(part, *, inside=False):
    """Return the module-level names that a section refers to; `inside`: in function bodies only."""
    used = set()
    for table in tables_of(part):
        module = table.get_type() == "module"
        if not (module and inside):
            names = [name for name in table.get_symbols() if name.is_referenced()]
            used |= {name.get_name() for name in names if module or name.is_global()}
    return used


def statements(node):
    """Return the statements and `except` clauses right inside of a node."""
    kinds = ("body", "orelse", "handlers", "finalbody")
    return [child for kind in kinds for child in getattr(node, kind, [])]


def functions(tree):
    """Yield (qualified name, node) of all functions, methods and nested functions."""
    todo = [(child, "") for child in statements(tree)]
    while todo:
        node, where = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield where + node.name, node
        name = f"{where}{node.name}." if hasattr(node, "name") and node.name else where
        todo += [(child, name) for child in statements(node)]


@functools.cache
def docstring_lines():
    """Return the numbers of the lines that are docstrings."""
    found = set()
    for node in itertools.chain([whole_tree()], *map(walked, SECTIONS)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found |= set(range(body[0].lineno, body[0].end_lineno + 1))
    return found


@functools.cache
def code_and_narrative():
    """Return two sets of line numbers; a line with code and a comment is only in the first."""
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    docs = docstring_lines()
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(SOURCE).readline):
        if token.type not in quiet and token.type != tokenize.ENDMARKER:
            code |= set(range(token.start[0], token.end[0] + 1))
    words = {n for n, line in enumerate(LINES, 1) if any(c.isalnum() for c in line)}
    code -= docs
    return code, words - code


def size(node):
    """Return how many lines of code a function or class has."""
    code, _ = code_and_narrative()
    return len(code.intersection(range(node.lineno, node.end_lineno + 1)))


def nesting(node):
    """Return how deep the compound statements of a function are nested; `elif` is no deeper."""
    deeper = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.AsyncFor, ast.AsyncWith)
    deeper += (ast.FunctionDef, ast.AsyncFunctionDef)
    depth = 0
    for child in statements(node):
        below = nesting(child)
        is_elif = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        depth = max(depth, below + (isinstance(child, deeper) and not is_elif))
    return depth


CITATION = re.compile(r"\bspec(?: (\d{4}-\d\d-\d\d))?: ([\w./-]*\w)(?:#([\w-]+))?")


def citations():
    """Yield (line number, revision, page, anchor, quotation) of what cites the specification."""
    for number, line in enumerate(LINES, 1):
        for hit in CITATION.finditer(line):
            rest = line[hit.end() :]
            for following in LINES[number : number + 4]:  # a quotation may run on
                if rest.count('"') != 1:
                    break
                rest += " " + following.strip(" #")
            quote = re.match(r' -- [^"]*"([^"]+)"', rest)
            yield number, hit[1] or "2026-07-28", hit[2], hit[3], quote and quote[1]


def prose(markdown):
    """Return text without markup, spaces made one: what a quotation must be found in."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return " ".join(re.sub(r"[*_`>]", "", text).split()).casefold()


def anchors(markdown):
    """Return the anchors of a page's headings, as GitHub and the specification's site make them."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", markdown, re.M):
        found.add(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"))
    return found


class Stage(typing.NamedTuple):
    """mcp_lite.py cut off after a section."""

    names: frozenset  # of the module
    own: frozenset  # those of them that the section itself defines
    exported: tuple  # its __all__
    examples: int  # of its doctests
    failures: str  # of those


@functools.cache
def stages():
    """Run mcp_lite.py section by section, and their doctests; return {number: Stage}."""
    cut = types.ModuleType("mcp_lite")
    cut.__file__ = m.__file__
    found, names = {}, frozenset(vars(cut))
    sys.modules["mcp_lite"] = cut
    try:
        for part in SECTIONS:
            text = "\n" * (part.first - 1) + part.text
            # `from __future__ import annotations` holds as it does for this file.
            exec(compile(text, m.__file__, "exec"), vars(cut))
            own = frozenset(vars(cut)) - names
            names |= own
            exported = tuple(vars(cut).get("__all__", ()))
            found[part.number] = Stage(names, own, exported, *examples(cut, own))
    finally:
        sys.modules["mcp_lite"] = m
    return found


def examples(module, names):
    """Run the doctests of some of a module's names; return their number, and what fails."""
    parser, runner, report = doctest.DocTestParser(), doctest.DocTestRunner(), io.StringIO()
    number = 0
    for name in sorted(names):
        thing = vars(module)[name]
        if getattr(thing, "__module__", None) != "mcp_lite":
            continue
        members = vars(thing) if isinstance(thing, type) else ()
        for each in (thing, *(getattr(thing, key) for key in members)):
            if (callable(each) or isinstance(each, property)) and ">>> " in (each.__doc__ or ""):
                test = parser.get_doctest(each.__doc__, dict(vars(module)), name, None, None)
                number += runner.run(test, out=report.write).attempted
    return number, report.getvalue()


class TestReadingOrder:
    """A section uses only what stands above it: you can stop at any banner and have a working thing."""

    def test_sections_stand_in_order(self):
        numbers = [part.number for part in NUMBERED]
        assert numbers == sorted(set(numbers))

    def test_the_map_has_every_part(self):
        listed = m.__doc__.partition("THE MAP")[2].partition("THE LIFE")[0]
        parts = re.findall(r"(?m)^# Part ([IVX]+)\. (.*)$", SOURCE)
        assert len(parts) == 8
        for number, title in parts:
            assert re.search(rf"(?m)^ +Part {number} +{title}  ", listed), title

    def test_every_section_says_what_it_is_for_before_code(self):
        silent = [part.title for part in NUMBERED if not any(line.startswith("# Problem.") for line in part.intro)]
        assert silent == []

    def test_cut_off_after_any_section_every_name_resolves_and_examples_are_right(self):
        known = set(vars(builtins))
        unknown = {part.title: globals_used(part, inside=True) - stages()[part.number].names - known for part in NUMBERED}
        assert {title: names for title, names in unknown.items() if names} == {}
        assert {number: stage.failures for number, stage in stages().items() if stage.failures} == {}


class TestCuts:
    """The table of cuts in the reference: what the file is when it is cut off before a Part."""

    def cut(self, name):
        """Cut as the sed command of the reference does: from the first line that begins so."""
        return SOURCE[: re.search(rf"^# {name}\b", SOURCE, re.M).start()] if name else SOURCE

    def test_a_part_begins_with_three_lines(self):
        parts = re.findall(r"^# (Part [IVX]+)\. ", SOURCE, re.M)
        banners = re.findall(r"^# ={6}\n# (Part [IVX]+)\. \w.*\n# ={6}\n\n#{4}\n", SOURCE, re.M)
        assert parts == banners and len(parts) > 5

    @pytest.mark.parametrize("name", re.findall(r"^# (Part [IVX]+)\.", SOURCE, re.M)[1:])
    def test_each_cut_imports_whole(self, name):
        """Every section before it has run by itself, and `import *` finds all that it shall."""
        line = self.cut(name).count("\n")
        stage = stages()[max(part.number for part in NUMBERED if part.first < line)]
        assert len({*stage.exported}) == len(stage.exported) > 10
        assert {*stage.exported} <= stage.names


#: Accesses to underscore names of other classes that are still there; it must only go down.
FOREIGN_NAMES = 0
#: What Python itself offers under such a name and has no other name for.
PYTHONS_OWN = {
    "os._exit", "sys._current_frames",  # both are documented
    "asyncio._get_running_loop",  # asyncio exports it
    "child._handle",  # what a Popen keeps of a process on Windows
    "value._value_",  # the value of a member of an Enum, also where the class redefines `value`
}  # fmt: skip


def foreign_names(node, own=("self", "cls", "super()")):
    """Yield each access to an underscore name of something that is not the class itself."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Attribute) and re.match(r"_(?!.*__$)", child.attr):
            if child.attr != "_fields" and ast.unparse(child.value) not in own:  # of a NamedTuple
                yield ast.unparse(child)
        inner = (*own, child.name) if isinstance(child, ast.ClassDef) else own
        yield from foreign_names(child, inner)


class TestProportions:
    """What can be read at one sitting; .ci/sizes reports sizes as a whole."""

    def test_sections_can_be_read_at_one_sitting(self):
        sizes = {part.title: part.last - part.first + 1 for part in NUMBERED}
        assert {title: size for title, size in sizes.items() if size > 600} == {}

    def test_functions_are_short(self):
        sizes = {f"{name}, line {node.lineno}": size(node) for name, node in functions(whole_tree())}
        assert {name: n for name, n in sizes.items() if n > 50} == {}

    def test_nesting_is_shallow(self):
        depths = {f"{name}, line {node.lineno}": nesting(node) for name, node in functions(whole_tree())}
        assert {name: depth for name, depth in depths.items() if depth > 4} == {}
        assert len([depth for depth in depths.values() if depth == 4]) <= 2

    def test_classes_fit_in_the_head(self):
        nodes = itertools.chain(*map(walked, SECTIONS))
        classes = {node.name: size(node) for node in nodes if isinstance(node, ast.ClassDef)}
        assert {name: lines for name, lines in classes.items() if lines > 300} == {}

    def test_nobody_reaches_into_another_class(self):
        """An underscore says that a name belongs to its class. The aim is none but Python's own."""
        found = [text for text in foreign_names(whole_tree()) if text not in PYTHONS_OWN]
        assert len(found) <= FOREIGN_NAMES, "\n".join(sorted(set(found)))

    def test_lines_are_short(self):
        assert {n: len(line) for n, line in enumerate(LINES, 1) if len(line) > 100} == {}


class TestWords:
    """Names, dates, examples and citations."""

    def test_public_names_exist_and_are_explained(self):
        assert [name for name in m.__all__ if not getattr(vars(m)[name], "__doc__", None)] == []
        assert len(set(m.__all__)) == len(m.__all__)

    def test_a_class_explains_the_options_that_it_has(self):
        classes = filter(inspect.isclass, vars(m).values())
        explained = [cls for cls in classes if re.search("(?m)^ *Args:$", cls.__doc__ or "")]
        assert {m.Server, m.Client, m.OAuth, m.Guard} <= {*explained}
        for cls in explained:
            text = inspect.cleandoc(cls.__doc__).partition("\nArgs:\n")[2]
            told = {*re.findall(r"\w+", " ".join(re.findall(r"^    ([\w, ]+):", text, re.M)))}
            known = inspect.signature(cls).parameters
            options = {name for name, each in known.items() if each.kind is each.KEYWORD_ONLY}
            assert options <= told <= {*known}, cls

    def test_protocol_history_is_data(self):
        """Only section 4 names revisions; a citation must say which one it cites."""
        date = re.compile("|".join(m.REVISIONS))
        for part in SECTIONS:
            if part.number in (0, 4):
                continue
            for number, line in enumerate(part.text.splitlines(), part.first):
                assert not date.search(CITATION.sub("", line)), f"line {number}: {line}"

    def test_no_date_but_the_tables_is_in_the_code(self):
        """All dates of all string literals are in section 4, citations and examples aside."""
        dates = [
            part.number for part in SECTIONS for node in walked(part) if isinstance(node, ast.Constant)
            and isinstance(node.value, str) and re.search(r"\b20\d\d-\d\d-\d\d", node.value)
            and node.lineno not in docstring_lines()
        ]  # fmt: skip
        assert dates == [4] * len(m.REVISIONS)

    async def test_the_call_in_the_preface_is_what_crosses_the_wire(self):
        text = m.__doc__.partition("ONE CALL ON THE WIRE")[2].partition("Either era")[0]
        shown = re.findall(r"^    (-->|<--) (.+(?:\n     .+)*)", text, re.M)
        messages = [(arrow, json.loads(line)) for arrow, line in shown]
        app = m.Server("demo", "1.0")

        @app.tool
        def add(a: int, b: int = 0) -> int:
            return a + b

        assert len(messages) == 7
        for begin in (0, 5):  # the legacy era, then the modern one
            async with lines_to(app, revision=None) as lines:
                for arrow, msg in messages[begin : begin + 5]:
                    if arrow == "-->":
                        lines.put(msg)
                    else:  # the members in the same order, too
                        assert json.dumps(await lines.take()) == json.dumps(msg)

    def test_a_name_has_one_meaning(self):
        """A second assignment would take the first one's place in every section."""
        given = []
        for node in whole_tree().body:
            given += [node.name] if hasattr(node, "name") else []
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                leaves = [leaf for target in targets for leaf in ast.walk(target)]
                names = [leaf for leaf in leaves if isinstance(leaf, ast.Name)]
                given += [name.id for name in names if isinstance(name.ctx, ast.Store)]
        assert sorted({name for name in given if given.count(name) > 1}) == []

    def test_words_that_say_nothing_do_not_occur(self):
        vague = re.compile(r"\b(TODO|FIXME|XXX)\b|\bclass \w+(Manager|Helper|Utils?|Base|Mixin)\b")
        assert [n for n, line in enumerate(LINES, 1) if vague.search(line)] == []
        named_handler = re.findall(r"^class (\w*Handler)\b(?!\(logging\.Handler\))", SOURCE, re.M)
        assert named_handler == []

    def test_citations_lead_somewhere(self):
        """Pages, anchors and quotations, against a checkout of the specification in MCP_SPEC."""
        if "MCP_SPEC" not in os.environ:
            pytest.skip("MCP_SPEC does not name a checkout of the specification: nothing checked")
        root = pathlib.Path(os.environ["MCP_SPEC"]) / "docs/specification"
        lost = []
        for line, revision, page, anchor, quote in citations():
            files = [root / revision / f"{page}.mdx", root / revision / page / "index.mdx"]
            file = next((file for file in files if file.exists()), None)
            text = file.read_text("utf-8") if file else ""
            if file is None:
                lost.append(f"line {line}: no page {revision}/{page}")
            elif anchor and anchor not in anchors(text):
                lost.append(f"line {line}: no anchor #{anchor} in {revision}/{page}")
            elif quote and prose(quote) not in prose(text):
                lost.append(f"line {line}: {revision}/{page} does not say {quote!r}")
        assert not lost, "\n".join(lost)


def strictly(node, name=""):
    """Return a schema whose objects have no members but those that it names, as `_meta` may."""
    if not isinstance(node, dict):
        return [strictly(item) for item in node] if isinstance(node, list) else node
    inner = {key: strictly(value, key) for key, value in node.items() if key != "properties"}
    if "properties" in node:
        inner["properties"] = {key: strictly(node["properties"][key], key) for key in node["properties"]}
        free = "inputSchema outputSchema structuredContent arguments experimental metadata _meta "
        free += "additionalProperties"
        if node.get("type") == "object" and name not in free.split():
            more = {"_meta": {}} if name.endswith(("arams", "Result")) else {}
            more = {"id": {}, "jsonrpc": {}} if name.endswith(("Request", "Notification")) else more
            inner.update(properties={**more, **inner["properties"]}, additionalProperties=False)
    return {"type": ["integer", "number"], **inner} if inner.get("type") == "number" else inner


async def say_everything(revision):
    """Let an app and a client of some revision say all that they can to each other."""
    told = {"icons": [ICON], "title": "T", "meta": {"a/b": 1}}
    icons = [{**ICON, "theme": None}]  # as a model has it, dumped
    app = m.Server("s", "1", title="S", description="D", icons=icons, website_url="https://x.example")
    marks = {"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-01T00:00:00Z"}

    @app.tool(annotations={"readOnlyHint": True}, **told)
    async def give(ctx: m.Context) -> list:
        await ctx.report_progress(1, 2, "half")
        await ctx.info({"a": 1}, logger="l")
        link = m.Link("x://a", "a", size=3, mime_type="a/b", annotations=marks, **told)
        rest = [m.Image(PNG, annotations=marks), m.Audio(PNG), m.Resource("x://a", "t", meta={})]
        return ["text", {"type": "text", "text": "t", "_meta": {}}, link, *rest]

    @app.tool
    def structured() -> Spot:
        return Spot(1)

    @app.tool
    async def ask(ctx: m.Context) -> None:
        talk = [m.Message(["a", m.Image(PNG)]), m.Message(m.Audio(PNG), role="assistant")]
        tools = [{"name": "t", "inputSchema": {"type": "object"}}]
        for question in (
            lambda: ctx.elicit("Who?", Person), lambda: ctx.elicit_url("Pay", "https://x.example/"),
            lambda: ctx.sample(talk, system="s", temperature=1, stop=["."], metadata={"a": 1},
                               model_preferences={"hints": [{"name": "m"}], "costPriority": 1}),
            lambda: ctx.sample("?", tools=tools, tool_choice={"mode": "auto"}), ctx.roots,
        ):  # fmt: skip
            with contextlib.suppress(m.CapabilityMissing):
                await question()

    app.add_resource("x://a", "t", annotations=marks, **told)
    app.add_resource("y://{part}", lambda part: part.encode(), name="y", annotations=marks, **told)

    @app.prompt(**told)
    def greet(topic: str, size: typing.Literal["s", "m"] = "s"):
        return [m.Message([m.Audio(PNG), m.Link("x://a", **told)], role="assistant"), topic]

    options = {"elicit": lambda text, form: {"name": "Ann"}, "elicit_url": lambda text, url: True,
               "sample": lambda params: ["a", m.Audio(PNG)],
               "log": lambda *args: None, "progress": lambda *args: None,
               "roots": [{"uri": "file:///a", "name": "A", "_meta": {}}],
               "capabilities": {"sampling": {"tools": {}, "context": {}}}}  # fmt: skip
    async with m.Client(app, revision=revision, **options) as c:
        await c.set_log_level("debug")
        for name in ("give", "structured", "ask"):
            await c.call_tool(name)
        for listed in (c.list_tools, c.list_resources, c.list_templates, c.list_prompts, c.ping):
            await listed()
        subscription = await c.subscribe("x://a")
        for uri in ("x://a", "y://b"):
            await c.read_resource(uri)
        await c.get_prompt("greet", {"topic": "t"})
        await c.complete("greet", "size", "s", {"topic": "t"})
        await c.roots_changed([])
        app.resource_updated("x://a")
        app.prompts_changed()
        await c.ping()
        await subscription.close()


class TestTables:
    """What the file says, and the specification or another file says too, is the same."""

    def test_every_method_of_the_specification_is_a_row(self):
        if "MCP_SPEC" not in os.environ:
            pytest.skip("MCP_SPEC does not name a checkout of the specification: nothing checked")
        for name in m.REVISIONS:
            schema = pathlib.Path(os.environ["MCP_SPEC"]) / "schema" / name / "schema.ts"
            theirs = set(re.findall(r'method: "([\w/]+)"', schema.read_text("utf-8")))
            # Tasks were an experiment of one revision, and are an extension since.
            theirs = {method for method in theirs if "tasks/" not in method}
            ours = {row.name for row in m.METHODS.values() if name in row.revisions}
            assert {method for method in ours if "tasks" not in method} == theirs

    @pytest.mark.parametrize("revision", LEGACY_DATES)
    async def test_every_message_is_that_of_its_schema(self, revision):
        """All that an app and a client can say to each other; in the newest revision, and no more."""
        if "MCP_SPEC" not in os.environ:
            pytest.skip("MCP_SPEC does not name a checkout of the specification: nothing checked")
        path = pathlib.Path(os.environ["MCP_SPEC"]) / "schema" / revision / "schema.json"
        schema = json.loads(path.read_text("utf-8"))
        schema = strictly(schema) if revision == V4 else schema
        home = "definitions" if "definitions" in schema else "$defs"
        names = {each["properties"]["method"]["const"]: name for name, each in schema[home].items()
                 if "const" in each.get("properties", {}).get("method", {})}  # fmt: skip

        def problem(name, value):
            try:
                m.compile_schema({**schema, "$ref": f"#/{home}/{name}"}).check(value)
            except m.SchemaError as exc:
                return f"{name}: {exc} in {json.dumps(value)[:300]}"

        with on_the_wire() as sent:
            await say_everything(revision)
        asked, seen, problems = {}, set(), []
        for msg in sent:
            if "method" in msg:
                name = names[msg["method"]]
                problems.append(problem(name, msg))
                asked.setdefault(msg.get("id"), []).append(name.replace("Request", "Result"))
            else:  # both ends number from 1, so that there may be two requests of this id
                kinds = [name if name in schema[home] else "EmptyResult" for name in asked[msg["id"]]]
                found = [problem(name, msg["result"]) for name in kinds]
                problems.append(None if None in found else found[0])
                name = kinds[0]
            seen.add(name)
        assert list(filter(None, problems)) == []
        assert len(seen) > 30

    def test_every_row_has_its_handler(self):
        rows = [row for row in m.METHODS.values() if not row.name.startswith("notifications/")]
        rows = [row for row in rows if row.sender != "server"]
        legacy = {row.name for row in rows if set(row.revisions) & set(m.LEGACY)}
        assert legacy <= set(m.HANDLERS) <= {row.name for row in rows}


class TestImport:
    """`import mcp_lite` costs little more than `import asyncio, json`."""

    # What is not loaded by asyncio and json themselves, on some Python that we run on.
    ALLOWED = {"mcp_lite", "__future__", "typing", "_typing"}  # from 3.15 on, asyncio imports no typing

    def test_import_loads_nothing_that_only_some_users_need(self):
        code = (
            "import asyncio, json; before = set(sys.modules); import mcp_lite;"
            "print(*sorted(set(sys.modules) - before))"
        )
        code = f"import sys; sys.path.insert(0, {str(HERE)!r}); {code}"
        command = [sys.executable, "-I", "-c", code]
        said = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True).stdout
        assert set(said.decode().split()) - self.ALLOWED == set()
