"""Tests of mcp_lite.py, in the order of its sections: T5 tests section 5.

`python3 test_mcp_lite.py` runs them, or `python3 -m pytest`; nothing but pytest is needed, no plugin.
The former installs it beside itself if there is none. Options are pytest's. Rules of this file: what
goes over the wire stands literally in the test; nothing sleeps, no port is fixed, nothing of ours
is mocked; every limit is tested at the limit and one past it; the name of a test is the sentence
it protects. A section's tests use nothing but T0 and the sections up to the tested one, so that
both files can be cut at the same place (T99 does so).
"""

from __future__ import annotations

import ast
import asyncio
import base64
import builtins
import concurrent.futures
import contextlib
import contextvars
import dataclasses
import datetime
import doctest
import enum
import functools
import gc
import importlib.util
import inspect
import io
import itertools
import json
import logging
import operator
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import symtable
import sys
import threading
import time
import tokenize
import types
import typing
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
        has_pytest = [python, "-c", "import pytest"]
        if not os.path.exists(python) or subprocess.run(has_pytest, capture_output=True).returncode:
            print(f"pytest is not installed here: installing it in {folder}", flush=True)
            try:
                subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
                pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
                subprocess.run([*pip, "pytest"], check=True)
            except subprocess.CalledProcessError:
                return "cannot install pytest: see above; or install it for this Python yourself"
    try:
        return subprocess.run([python, "-m", "pytest", *arguments], cwd=HERE).returncode
    except KeyboardInterrupt:  # pytest has heard it as well, and said so
        return 130


if __name__ == "__main__":
    sys.exit(run_by_itself(sys.argv[1:]))

import pytest

import mcp_lite as m

###############################################################################
# T0. Tools
###############################################################################


def rng(name):
    """Return a random generator that gives every run, on every Python, the same sequence."""
    return random.Random(f"mcp_lite {name}")


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
            items += decoder.eof()
            items += decoder.eof()
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


def errors_every_way(make_decoder, data, *, eof=False, same=True):
    """Feed `data` in every cutting; return the ProtocolError that ends each of them.

    The items before it must agree, and (unless `same=False`) class, message and HTTP status of the
    error too. A decoder that has failed goes on failing, with the same error.
    """
    runs = []
    for pieces in cuttings(data):
        decoder = make_decoder()
        items, error = feed_pieces(decoder, pieces, eof)
        assert error is not None, f"no error, but {items!r} for {pieces!r}"[:2000]
        for again in (lambda d=decoder: d.feed(b"x"), decoder.eof):
            with pytest.raises(type(error)) as caught:
                again()
            assert str(caught.value) == str(error)
        runs.append(([comparable(item) for item in merged(items)], error, pieces))
    first_items, first, _ = runs[0]
    for items, error, pieces in runs:
        assert items == first_items, f"cut as {pieces!r}"[:2000]
        assert not same or comparable(error) == comparable(first), f"cut as {pieces!r}"[:2000]
    return first


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
    for listing in pathlib.Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for pid in listing.read_text().split():
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                found[int(pid)] = command.replace(b"\0", b" ").decode(errors="replace")
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
        exc = context.get("exception")
        self.texts.append(f"{context['message']}: {exc!r} {context.get('future') or ''}")


async def within(coro, seconds):
    """Return the result of `coro`; fail after `seconds`, or if it leaves a task behind."""
    task = asyncio.ensure_future(coro)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        stacks = io.StringIO()
        for other in asyncio.all_tasks() - {asyncio.current_task()}:
            other.print_stack(file=stacks)
        task.cancel()
        await asyncio.wait({task}, timeout=2)
        pytest.fail(f"not done after {seconds} s\n{stacks.getvalue()}")
    for _ in range(10):  # the last steps of tasks that were cancelled, of transports that close
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if not task.cancelled() and task.exception() is None:  # otherwise that is the news
        assert not left, f"tasks left behind: {left}"
    return task.result()


@pytest.fixture(autouse=True, scope="class")
def forgotten_past():
    """Spare the collector, which `run` calls each time, what pytest and earlier tests have made."""
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def short_memory(frames=3):
    """Let asyncio's debug mode note so few frames of where a future or callback was made.

    It notes all that there are otherwise, those of pytest too, and takes most of the time for it.
    """
    depth, limit = asyncio.constants.DEBUG_STACK_DEPTH, getattr(sys, "tracebacklimit", None)
    asyncio.constants.DEBUG_STACK_DEPTH = sys.tracebacklimit = frames
    try:
        yield
    finally:
        asyncio.constants.DEBUG_STACK_DEPTH = depth
        if limit is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = limit


async def idle():
    """Let everything that can run now do so."""
    for _ in range(20):
        await asyncio.sleep(0)


async def until(condition, *, seconds=5):
    """Let the loop run until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0)


def run(coro, *, seconds=20):
    """Run a coroutine in a loop of its own, in debug mode; return its result.

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
        with short_memory():
            result = asyncio.run(main(), debug=True)
        check_nothing_left(before)
        gc.collect()  # what was dropped without a look complains now, not in another test
    finally:
        log.removeHandler(complaints)
    assert not complaints.texts, "asyncio complained:\n" + "\n".join(complaints.texts)
    return result


def check_nothing_left(before):
    """Fail if there are descriptors, children or threads that were not there before."""
    deadline = time.monotonic() + 2  # a reaped child and a joined thread take a moment to vanish
    while True:
        now = (open_descriptors(), child_processes(), lasting_threads())
        new = [{k: v for k, v in b.items() if a.get(k) != v} for a, b in zip(before, now)]
        if not any(new):
            return
        if time.monotonic() > deadline:
            pytest.fail("left behind: descriptors {}, children {}, threads {}".format(*new))
        time.sleep(0.005)


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

    def test_a_decoder_that_depends_on_the_cut_is_noticed(self):
        class Broken:
            def feed(self, data):
                return [data] if data else []

        with pytest.raises(AssertionError, match="cut as"):
            feed_every_way(Broken, b"one\ntwo\n", exact=True)


###############################################################################
# T2. Errors
###############################################################################


class TestErrors:
    """Whose fault it was, and what the peer is told of it."""

    def test_everything_raised_on_purpose_is_an_mcp_error(self):
        ours = [kind for kind in vars(m).values() if isinstance(kind, type)]
        ours = [
            kind for kind in ours if issubclass(kind, Exception) and kind.__module__ == "mcp_lite"
        ]
        assert all(issubclass(kind, m.MCPError) for kind in ours)
        assert {kind.__name__ for kind in ours} >= {
            "RPCError", "RemoteError", "ToolError", "SchemaError", "ProtocolError",
            "LimitExceeded", "ConnectionClosed", "RequestTimeout", "CapabilityMissing", "AuthError",
        }  # fmt: skip

    def test_the_codes_are_those_of_the_specifications(self):
        """JSON-RPC 2.0 §5.1; basic/index#error-codes; schema.ts of 2025-11-25."""
        assert (m.PARSE_ERROR, m.INVALID_REQUEST, m.METHOD_NOT_FOUND) == (-32700, -32600, -32601)
        assert (m.INVALID_PARAMS, m.INTERNAL_ERROR) == (-32602, -32603)
        assert (m.RESOURCE_NOT_FOUND, m.URL_ELICITATION_REQUIRED) == (-32002, -32042)
        assert (m.HEADER_MISMATCH, m.MISSING_CAPABILITY) == (-32020, -32021)
        assert m.UNSUPPORTED_VERSION == -32022

    def test_our_own_codes_are_outside_every_reserved_range(self):
        """basic/index#error-codes: new codes "SHOULD be allocated outside" -32768 to -32000."""
        assert not {m.TOO_FAST, m.TOO_BUSY} & set(range(-32768, -31999))

    @pytest.mark.parametrize(
        "exc, wire",
        [
            (m.RPCError(5, "no"), {"code": 5, "message": "no"}),
            (m.RPCError(5, "no", {"a": 1}), {"code": 5, "message": "no", "data": {"a": 1}}),
            (m.RPCError(5, "no", 0), {"code": 5, "message": "no", "data": 0}),
            (m.ProtocolError("bad"), {"code": -32600, "message": "bad"}),
            (m.ProtocolError("bad", code=-32700), {"code": -32700, "message": "bad"}),
            (
                m.ProtocolError("bad", code=-32022, data={"supported": []}),
                {"code": -32022, "message": "bad", "data": {"supported": []}},
            ),
            (m.LimitExceeded("long"), {"code": -32600, "message": "long"}),
            (m.SchemaError("a[0]", "is odd"), {"code": -32602, "message": "a[0]: is odd"}),
            (m.SchemaError("", "is odd"), {"code": -32602, "message": "is odd"}),
            (
                m.CapabilityMissing("client", "sampling.tools"),
                {
                    "code": -32021,
                    "message": "the client did not declare the capability 'sampling.tools'",
                    "data": {"requiredCapabilities": {"sampling": {"tools": {}}}},
                },
            ),
        ],
        ids=repr,
    )
    def test_an_error_meant_for_the_peer_is_sent_as_it_is(self, exc, wire):
        assert m.wire_error(exc) == wire

    @pytest.mark.parametrize(
        "exc",
        [
            ValueError("secret"),
            KeyError("secret"),
            RecursionError("secret"),
            SystemExit("secret"),
            m.MCPError("secret"),
            m.RemoteError(-32601, "secret", "secret"),
            m.ToolError("secret"),
            m.ConnectionClosed("secret"),
            m.RequestTimeout("secret"),
            m.AuthError("secret"),
        ],
        ids=lambda exc: type(exc).__name__,
    )
    def test_what_was_not_meant_for_the_peer_is_an_internal_error_without_words(self, exc):
        """Tracebacks go to the log, not to the peer; an error of another server is not ours."""
        assert m.wire_error(exc) == {"code": -32603, "message": "Internal error"}

    def test_errors_say_what_they_hold(self):
        ours, theirs = m.RPCError(-1, "a", {"b": 1}), m.RemoteError(-1, "a", {"b": 1})
        for exc in (ours, theirs):
            assert (exc.code, exc.message, exc.data, str(exc)) == (-1, "a", {"b": 1}, "a (-1)")
        assert not isinstance(ours, m.RemoteError) and not isinstance(theirs, m.RPCError)
        broken = m.LimitExceeded("long", http_status=413)
        assert (str(broken), broken.http_status, broken.code) == ("long", 413, -32600)
        assert isinstance(broken, m.ProtocolError)
        assert m.ToolError("no").result is None
        assert m.CapabilityMissing("server", "tools").capability == "tools"


###############################################################################
# T3. JSON-RPC
###############################################################################


def broken(data):
    """Return the ProtocolError with which `data` is refused; anything else fails."""
    with pytest.raises(m.ProtocolError) as caught:
        m.decode(data)
    assert len(str(caught.value)) < 300  # it is sent to the peer
    return caught.value


def nested(depth):
    """Return JSON of so many levels, arrays and objects by turns."""
    opening = "".join('[{"a":'[bool(i % 2) : 1 + 5 * (i % 2)] for i in range(depth))
    closing = "".join("}" if i % 2 else "]" for i in reversed(range(depth)))
    return (opening + ("1" if depth % 2 == 0 else "") + closing).encode()


class TestClassify:
    """basic/index#messages: what a message is, and what is none."""

    @pytest.mark.parametrize(
        "text, kind",
        [
            ('{"jsonrpc":"2.0","id":1,"method":"a"}', "request"),
            ('{"jsonrpc":"2.0","id":0,"method":"a","params":{}}', "request"),
            ('{"jsonrpc":"2.0","id":"","method":"a"}', "request"),
            ('{"jsonrpc":"2.0","id":"1","method":"a"}', "request"),
            ('{"jsonrpc":"2.0","id":-1,"method":"","x":1}', "request"),
            ('{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"a"}', "request"),
            ('{"jsonrpc":"2.0","method":"a"}', "notification"),
            ('{"jsonrpc":"2.0","method":"a","params":{"b":[]}}', "notification"),
            ('{"jsonrpc":"2.0","id":1,"result":{}}', "result"),
            ('{"jsonrpc":"2.0","id":"a","result":{"x":1},"extra":2}', "result"),
            ('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}', "error"),
            ('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a","data":[1]}}', "error"),
            ('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"a"}}', "error"),
            ('{"jsonrpc":"2.0","error":{"code":1,"message":"a"}}', "error"),
        ],
    )
    def test_a_message_is_one_of_four(self, text, kind):
        assert m.classify(m.decode(text.encode())) == kind

    @pytest.mark.parametrize(
        "text, why",
        [
            ("[]", "object"),
            ("1", "object"),
            ('"a"', "object"),
            ("null", "object"),
            ("{}", "jsonrpc"),
            ('{"id":1,"method":"a"}', "jsonrpc"),
            ('{"jsonrpc":"1.0","id":1,"method":"a"}', "jsonrpc"),
            ('{"jsonrpc":2.0,"id":1,"method":"a"}', "jsonrpc"),
            ('{"JSONRPC":"2.0","id":1,"method":"a"}', "jsonrpc"),
            ('{"jsonrpc":"2.0","id":1,"Method":"a"}', "result or an error"),
            ('{"jsonrpc":"2.0","id":1,"method":1}', "method"),
            ('{"jsonrpc":"2.0","id":1,"method":null}', "method"),
            ('{"jsonrpc":"2.0","id":null,"method":"a"}', "id"),
            ('{"jsonrpc":"2.0","id":true,"method":"a"}', "id"),
            ('{"jsonrpc":"2.0","id":1.0,"method":"a"}', "id"),
            ('{"jsonrpc":"2.0","id":1.5,"method":"a"}', "id"),
            ('{"jsonrpc":"2.0","id":[1],"method":"a"}', "id"),
            ('{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}', "params"),
            ('{"jsonrpc":"2.0","id":1,"method":"a","params":null}', "params"),
            ('{"jsonrpc":"2.0","method":"a","params":"b"}', "params"),
            ('{"jsonrpc":"2.0","id":1,"method":"a","result":{}}', "both"),
            ('{"jsonrpc":"2.0","method":"a","error":{"code":1,"message":"a"}}', "both"),
            ('{"jsonrpc":"2.0"}', "needs"),
            ('{"jsonrpc":"2.0","id":1}', "either"),
            ('{"jsonrpc":"2.0","result":{}}', "needs"),
            ('{"jsonrpc":"2.0","id":null,"result":{}}', "needs"),
            ('{"jsonrpc":"2.0","id":false,"error":{"code":1,"message":"a"}}', "needs"),
            ('{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"a"}}', "either"),
            ('{"jsonrpc":"2.0","id":1,"result":[]}', "result must be an object"),
            ('{"jsonrpc":"2.0","id":1,"result":null}', "result must be an object"),
            ('{"jsonrpc":"2.0","id":1,"error":"a"}', "code"),
            ('{"jsonrpc":"2.0","id":1,"error":{"message":"a"}}', "code"),
            ('{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"a"}}', "code"),
            ('{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":"a"}}', "code"),
            ('{"jsonrpc":"2.0","id":1,"error":{"code":1}}', "message"),
        ],
    )
    def test_everything_else_is_refused_with_the_reason(self, text, why):
        with pytest.raises(m.ProtocolError, match=why) as caught:
            m.classify(m.decode(text.encode()))
        assert caught.value.code == (-32602 if why == "params" else -32600)

    @pytest.mark.parametrize(
        "text, req_id",
        [
            ('{"id":3,"method":5}', 3),
            ('{"id":"a","method":"x"}', "a"),
            ('{"id":true,"method":"x"}', None),
            ('{"id":1.0,"method":"x"}', None),
            ('{"id":null,"method":"x"}', None),
            ('{"method":"x"}', None),
            ('{"id":3,"result":5}', None),
            ("[1]", None),
        ],
    )
    def test_the_id_of_a_refused_request_is_found_if_there_is_one(self, text, req_id):
        assert m.readable_id(m.decode(text.encode())) == req_id

    def test_constructors_make_what_classify_recognises(self):
        assert m.classify(m.request(1, "a", {})) == "request"
        assert m.classify(m.notification("a", {})) == "notification"
        assert m.classify(m.result("", {})) == "result"
        assert m.classify(m.error(None, {"code": 1, "message": "a"})) == "error"
        assert m.encode(m.request("1", "a")) == b'{"jsonrpc":"2.0","id":"1","method":"a"}'
        assert m.encode(m.notification("a", {})) == b'{"jsonrpc":"2.0","method":"a","params":{}}'


class TestDecode:
    """Strict: a message has one meaning for every parser, or none."""

    @pytest.mark.parametrize(
        "data",
        [
            b"", b" ", b"\n", b"{", b"}", b"[", b"]", b"{]", b"[}", b"nul", b"True", b"'a'",
            b"\x00",
            b'{"a":1,}', b"[1,]", b"[,]", b'{"a"}', b"{1:2}", b"[1 2]", b"1 2", b"{}{}", b"// a\n1",
            b"+1", b"01", b".5", b"1.", b"0x1", b"1_0", "١".encode(), b'"\t"', b'"\n"', b'"\x00"',
            b'"\\x"', b'"\\u12"', b'"', b'"\\', b'"\\"',
            b"\xff\xfe{\x00}\x00", "{}".encode("utf-16"), "{}".encode("utf-8-sig"), b'"\xff"',
            b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b"\xa0{}",
            b"NaN", b"[Infinity]", b"-Infinity", b'{"a":nan}', b"1e999", b"[-1e400]",
            b'"\\ud800"', b'"\\udfff"', b'"\\udc00\\ud800"', b'{"\\ud800":1}', b'"a\\uD800b"',
            b'{"a":1,"a":1}', b'{"a":1,"\\u0061":2}', b'[{"b":{"a":1,"c":2,"a":3}}]',
        ],
    )  # fmt: skip
    def test_what_is_not_json_is_a_parse_error(self, data):
        error = broken(data)
        assert error.code == -32700 and not isinstance(error, m.LimitExceeded)

    @pytest.mark.parametrize(
        "data, value",
        [
            (b' \t\r\n{ "a" : [ 1 , -0.5e-3 , true , false , null ] } \n',
             {"a": [1, -0.0005, True, False, None]}),
            (b"[]", []),
            (b'{"":{"":""}}', {"": {"": ""}}),
            (b'{"a":1,"A":2}', {"a": 1, "A": 2}),
            ('"é\\u00e9😀\\ud83d\\ude00\\u0000\\/\\b\\f\\n\\r\\t"'.encode(), "éé😀😀\0/\b\f\n\r\t"),
            (b'"\\\\ud800 \\\\\\"[{"', '\\ud800 \\"[{'),
            (b"123456789012345678901234567890", 123456789012345678901234567890),
            (b"1.0", 1.0), (b"1e308", 1e308), (b"1e-999", 0.0), (b"-0", 0),
            ('"\\u2028\u2028\x7f\ufeff"'.encode(), "\u2028\u2028\x7f\ufeff"),
        ],
    )  # fmt: skip
    def test_what_is_json_is_understood(self, data, value):
        assert m.decode(data) == value
        assert type(m.decode(data)) is type(value)

    def test_a_long_key_that_occurs_twice_is_not_sent_back(self):
        key = "k" * 100_000
        assert "occurs twice" in str(broken(f'{{"{key}":1,"{key}":2}}'.encode()))

    def test_message_at_the_size_limit_passes_and_one_byte_more_does_not(self):
        room = m.MAX_MESSAGE_BYTES - 2
        assert len(m.decode(b'"' + b"a" * room + b'"')) == room
        assert isinstance(broken(b'"' + b"a" * (room + 1) + b'"'), m.LimitExceeded)
        assert isinstance(broken(b" " * (room + 3)), m.LimitExceeded)

    @pytest.mark.parametrize("padding", ["", " " * 5000], ids=["short", "long"])
    @pytest.mark.parametrize("kind", ["[", '{"a":', "mixed"])
    def test_nesting_at_the_limit_passes_and_one_level_more_does_not(self, kind, padding):
        def make(depth):
            if kind == "mixed":
                return padding.encode() + nested(depth)
            close = {"[": "]"}.get(kind, "}")
            return (padding + kind * depth + "1" + close * depth).encode()

        m.decode(make(m.MAX_DEPTH))
        assert isinstance(broken(make(m.MAX_DEPTH + 1)), m.LimitExceeded)

    @pytest.mark.parametrize("levels", [1_000, 100_000, 200_000])
    @pytest.mark.parametrize("unit", [b"[", b'{"a":', b'[{"a":'])
    def test_absurd_nesting_is_refused_not_a_crash(self, levels, unit):
        """Rule 4 of the list: no RecursionError, on any stack."""
        assert isinstance(broken(unit * levels), m.LimitExceeded)

    def test_nesting_is_counted_where_it_is_open_not_where_it_was(self):
        beside = b"[" + b",".join([nested(m.MAX_DEPTH - 1)] * 50) + b"]"
        assert len(m.decode(beside)) == 50

    @pytest.mark.parametrize(
        "make",
        [
            lambda n: b"[" + b",".join([b"1"] * n) + b"]",
            lambda n: b'{"a":[' + b",".join([b'""'] * (n - 1)) + b"]}",
            lambda n: b"{" + b",".join(b'"%d":"%d"' % (i, i) for i in range(n)) + b"}",
            lambda n: b"[" + b",".join([b"[]"] * (n // 2)) + (b"]" if n % 2 == 0 else b",[]]"),
        ],
        ids=["numbers", "inside", "members", "empties"],
    )
    def test_elements_at_the_limit_pass_and_one_more_does_not(self, make):
        """Rule 3: millions of elements in a small message are counted before it is parsed."""
        m.decode(make(m.MAX_ELEMENTS))
        assert isinstance(broken(make(m.MAX_ELEMENTS + 1)), m.LimitExceeded)

    @pytest.mark.parametrize("unit", [b'"', b"[", b"]", b",", b'"",', b'{"":', b"[],", b'\\",'])
    def test_many_tiny_things_are_refused_before_they_are_parsed(self, unit):
        error = broken(unit * (6 * m.MAX_ELEMENTS))
        assert isinstance(error, m.LimitExceeded)

    @pytest.mark.parametrize("around", ["%s", "-%s", "[%s]", '{"a":%s}', "0.%s", "1e%s"])
    def test_digits_at_the_limit_pass_and_one_more_does_not(self, around):
        """Rule 4: a number of a million digits would keep int() busy for minutes."""
        digits = "0" * (m.MAX_INT_DIGITS - 1) + "1" if "e" in around else "1" * m.MAX_INT_DIGITS
        m.decode((around % digits).encode())
        assert isinstance(broken((around % (digits + "1")).encode()), m.LimitExceeded)
        assert isinstance(broken((around % (digits * 1000)).encode()), m.LimitExceeded)

    def test_digits_of_two_numbers_are_not_added_up(self):
        digits = "1" * m.MAX_INT_DIGITS
        assert len(m.decode(f'[{digits},{digits},-{digits},"{digits}{digits}"]'.encode())) == 4

    @pytest.mark.parametrize("text", ["[" * 1000, "]" * 1000, "1" * 5000, "," * 300_000,
                                      '[\\"{' * 1000, "\\" * 3000, "\\\\\"[" * 900])  # fmt: skip
    def test_what_stands_inside_a_string_does_not_count(self, text):
        data = json.dumps({"a": [text, text]}).encode()
        assert m.decode(data) == {"a": [text, text]}

    def test_limits_see_the_structure_that_the_parser_sees(self, monkeypatch):
        """Random documents with traps in their strings, against a count of the parsed value."""
        dice = rng("structure")
        monkeypatch.setattr(m, "MAX_DEPTH", 5)
        monkeypatch.setattr(m, "MAX_ELEMENTS", 12)
        monkeypatch.setattr(m, "MAX_INT_DIGITS", 0)  # no message is short

        def make(depth):
            if depth == 0 or dice.random() < 0.3:
                return "".join(dice.choices('\\"[]{},:a\n', k=dice.randint(0, 8)))
            items = [make(depth - 1) for _ in range(dice.randint(0, 4))]
            return items if dice.random() < 0.5 else {f'{i}\\"[': x for i, x in enumerate(items)}

        def depth_of(value):
            inner = value.values() if isinstance(value, dict) else value
            return 0 if isinstance(value, str) else 1 + max(map(depth_of, inner), default=0)

        def elements_of(value):
            inner = list(value.values() if isinstance(value, dict) else value)
            return (
                0 if isinstance(value, str) else max(len(inner), 1) + sum(map(elements_of, inner))
            )

        refused = 0
        for _ in range(3000):
            value = make(7)
            fits = depth_of(value) <= 5 and elements_of(value) <= 12
            refused += not fits
            try:
                assert m.decode(json.dumps(value).encode()) == value and fits
            except m.LimitExceeded:
                assert not fits
        assert 500 < refused < 2500

    def test_garbage_gives_a_value_or_a_protocol_error(self):
        """Rule 4: nothing a peer sends ends the process. What passes, passes any parser alike."""
        dice = rng("decode")
        seed = b'{"jsonrpc":"2.0","id":1,"method":"a\\u00e9\\n","params":{"b":[1,-2e3,"\xc3\xa9"]}}'
        atoms = [
            b'"', b"\\", b"[", b"]", b"{", b"}", b",", b":", b"1", b"e", b".", b"-", b"\\ud800",
            b"\xff", b"\xed\xa0\x80", b"NaN", b"\n", b"\x00", b" ", b"true", b"\xf0\x9f",
        ]  # fmt: skip
        passed = 0
        for _ in range(20_000):
            if dice.random() < 0.5:
                data = bytearray(seed)
                for _ in range(dice.randint(1, 4)):
                    at = dice.randrange(len(data))
                    data[at : at + dice.randint(0, 3)] = dice.choice(atoms)
            else:
                data = b"".join(dice.choices(atoms, k=dice.randint(0, 12)))
            try:
                value = m.decode(bytes(data))
            except m.ProtocolError:
                continue
            passed += 1
            assert json.loads(data) == value
            assert m.decode(m.encode(value)) == value
            with contextlib.suppress(m.ProtocolError):
                m.classify(value)
        assert passed > 500

    def test_a_parser_deep_in_the_stack_gives_an_error_not_a_crash(self):
        data, outcomes = nested(m.MAX_DEPTH), set()

        def descend():
            try:
                descend()
            except RecursionError:
                pass
            with contextlib.suppress(RecursionError):
                try:
                    m.decode(data)
                    outcomes.add("value")
                except m.ProtocolError:
                    outcomes.add("error")

        descend()
        assert "value" in outcomes


class TestEncode:
    """One line of UTF-8, whatever is in it."""

    @pytest.mark.parametrize(
        "value, data",
        [
            ({"a": [1, 2.5, True, None, "x"]}, b'{"a":[1,2.5,true,null,"x"]}'),
            ({"a": "line\r\nfeed\x0b\x0c\x1c\x85\u2028\u2029"},
             b'{"a":"line\\r\\nfeed\\u000b\\f\\u001c\xc2\x85\xe2\x80\xa8\xe2\x80\xa9"}'),
            ({"é": "😀"}, '{"é":"😀"}'.encode()),
            ({"a": "x\ud800y"}, b'{"a":"x?y"}'),
            ([{"a": 1}, {}], b'[{"a":1},{}]'),
            ({"a": (1, 2)}, b'{"a":[1,2]}'),
        ],
    )  # fmt: skip
    def test_a_message_is_one_line(self, value, data):
        assert m.encode(value) == data
        assert b"\n" not in data and b"\r" not in data
        m.decode(data)

    @pytest.mark.parametrize(
        "value",
        [{"a": float("nan")}, {"a": float("inf")}, [-float("inf")], {"a": object()}, {"a": b"x"},
         {"a": {1, 2}}, {(1, 2): 3}, {"a": 1j}],
        ids=repr,
    )  # fmt: skip
    def test_what_json_cannot_say_is_an_error_here_not_there(self, value):
        with pytest.raises((TypeError, ValueError)):
            m.encode(value)

    def test_a_circle_is_an_error(self):
        circle = {}
        circle["a"] = circle
        with pytest.raises((ValueError, RecursionError)):
            m.encode(circle)

    def test_every_character_survives(self):
        dice = rng("characters")
        for _ in range(300):
            points = [dice.randrange(0x110000) for _ in range(20)]
            text = "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)
            data = m.encode({text: text})
            assert b"\n" not in data and m.decode(data) == {text: text}


###############################################################################
# T4. Revisions and methods
###############################################################################

V1, V2, V3, V4, V5 = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"

# The method literals of schema.ts of each revision, without tasks: they were an experiment of
# 2025-11-25, and are an extension since.
IN_ALL = """
    completion/complete notifications/cancelled notifications/message notifications/progress
    notifications/prompts/list_changed notifications/resources/list_changed
    notifications/resources/updated notifications/tools/list_changed prompts/get prompts/list
    resources/list resources/read resources/templates/list roots/list sampling/createMessage
    tools/call tools/list
""".split()
IN_LEGACY = """
    initialize logging/setLevel notifications/initialized notifications/roots/list_changed ping
    resources/subscribe resources/unsubscribe
""".split()
SCHEMA_METHODS = {
    V1: {*IN_ALL, *IN_LEGACY},
    V2: {*IN_ALL, *IN_LEGACY},
    V3: {*IN_ALL, *IN_LEGACY, "elicitation/create"},
    V4: {*IN_ALL, *IN_LEGACY, "elicitation/create", "notifications/elicitation/complete"},
    V5: {*IN_ALL, "elicitation/create", "server/discover", "subscriptions/listen",
         "notifications/subscriptions/acknowledged"},
}  # fmt: skip
# The unions ServerRequest, ClientRequest, ServerNotification and ClientNotification.
SENT_BY_SERVER = {
    "roots/list", "sampling/createMessage", "elicitation/create", "notifications/message",
    "notifications/tools/list_changed", "notifications/prompts/list_changed",
    "notifications/resources/list_changed", "notifications/resources/updated",
    "notifications/elicitation/complete", "notifications/subscriptions/acknowledged",
    "notifications/tasks",
}  # fmt: skip
SENT_BY_BOTH = {"ping", "notifications/cancelled", "notifications/progress"}
# Which capability covers a method: the tables of basic/lifecycle and the feature pages.
NEEDS = {
    "tools/": "tools", "prompts/": "prompts", "completion/": "completions", "logging/": "logging",
    "resources/subscribe": "resources.subscribe", "resources/unsubscribe": "resources.subscribe",
    "resources/": "resources", "roots/": "roots", "sampling/": "sampling",
    "elicitation/": "elicitation", "message": "logging",
}  # fmt: skip
# What the objects of schema.json gained with each revision, as {kind: {revision: fields}}.
GAINED = {
    "Tool": {V2: {"annotations"}, V3: {"title", "outputSchema", "_meta"}, V4: {"icons"}},
    "Resource": {V3: {"title", "_meta"}, V4: {"icons"}},
    "Prompt": {V3: {"title", "_meta"}, V4: {"icons"}},
    "PromptArgument": {V3: {"title"}},
    "Implementation": {V3: {"title"}, V4: {"description", "icons", "websiteUrl"}},
    "Annotations": {V3: {"lastModified"}},
    "Content": {V3: {"_meta", "title"}, V4: {"icons"}},
    "Contents": {V3: {"_meta"}},
    "Root": {V3: {"_meta"}},
    "CallToolResult": {V3: {"structuredContent"}},
    "Progress": {V2: {"message"}},
    "Complete": {V3: {"context"}},
    "Sampling": {V4: {"tools", "toolChoice"}},
    "SamplingMessage": {V4: {"_meta"}},
    "ClientCapabilities": {V3: {"elicitation"}, V5: {"extensions"}},
    "ServerCapabilities": {V2: {"completions"}, V5: {"extensions"}},
}
each_revision = pytest.mark.parametrize("name", [V1, V2, V3, V4, V5])


class TestRevisions:
    """The history of the protocol is data; these are the facts it must agree with."""

    def test_there_are_five_revisions_of_two_eras(self):
        assert list(m.REVISIONS) == [V1, V2, V3, V4, V5]
        assert m.LEGACY == (V4, V3, V2, V1)
        assert m.NEWEST_LEGACY.name == V4
        assert m.HEADERLESS.name == V2  # spec 2025-11-25: basic/transports#protocol-version-header

    @pytest.mark.parametrize(
        "flag, having",
        [
            ("modern", {V5}),
            ("batching", {V2}),  # changelogs of 2025-03-26 and 2025-06-18
            ("streamable", {V2, V3, V4, V5}),
            ("version_header", {V3, V4, V5}),  # changelog of 2025-06-18
            ("error_without_id", {V4, V5}),  # `id?` in schema.ts
            ("input_errors_as_results", {V4, V5}),  # changelog of 2025-11-25: SEP-1303
            ("rich_elicitation", {V4, V5}),  # ... SEP-1036, SEP-1330, SEP-1034
            ("rich_sampling", {V4, V5}),  # ... SEP-1577
            ("sse_priming", {V4}),  # ... SEP-1699
        ],
    )
    def test_a_revision_has_what_its_changelog_says(self, flag, having):
        assert {name for name, row in m.REVISIONS.items() if getattr(row, flag)} == having

    def test_an_unknown_resource_has_a_code_of_its_own_until_the_modern_era(self):
        codes = {name: row.resource_not_found for name, row in m.REVISIONS.items()}
        assert codes == {V1: -32002, V2: -32002, V3: -32002, V4: -32002, V5: -32602}

    def test_completions_could_not_be_declared_in_the_first_revision(self):
        assert {name: row.undeclared for name, row in m.REVISIONS.items() if row.undeclared} == {
            V1: ("completions",)
        }


class TestMethods:
    """METHODS and the five schema.ts say the same."""

    @each_revision
    def test_a_revision_has_the_methods_of_its_schema(self, name):
        ours = {row.name for row in m.METHODS.values() if name in row.revisions}
        assert {method for method in ours if "tasks" not in method} == SCHEMA_METHODS[name]

    @pytest.mark.parametrize("row", m.METHODS.values(), ids=lambda row: row.name)
    def test_a_row_agrees_with_the_unions_and_tables_of_the_specification(self, row):
        assert m.METHODS[row.name] is row
        assert row.kind == ("notification" if row.name.startswith("notifications/") else "request")
        sender = "server" if row.name in SENT_BY_SERVER else "client"
        assert row.sender == ("both" if row.name in SENT_BY_BOTH else sender)
        bare = row.name[len("notifications/") :] if row.kind == "notification" else row.name
        need = next((need for prefix, need in NEEDS.items() if bare.startswith(prefix)), "")
        assert row.capability == need
        assert not set(row.required) & set(row.optional)

    @pytest.mark.parametrize(
        "method, params, problem",
        [
            ("tools/call", {"name": "a"}, None),
            ("tools/call", {"name": "a", "arguments": {}}, None),
            ("tools/call", {"name": "", "_meta": {}, "x": 1}, None),
            ("tools/call", {}, "tools/call: name: is missing"),
            ("tools/call", {"name": None}, "tools/call: name: expected string, got null"),
            ("tools/call", {"name": "a", "arguments": []},
             "tools/call: arguments: expected object, got array"),
            ("tools/call", {"name": "a", "arguments": None},
             "tools/call: arguments: expected object, got null"),
            ("tools/list", {}, None),
            ("tools/list", {"cursor": 1}, "tools/list: cursor: expected string, got integer"),
            ("tools/list", {"cursor": True}, "tools/list: cursor: expected string, got boolean"),
            ("resources/read", {"uri": 1.5}, "resources/read: uri: expected string, got number"),
            ("resources/read", {}, "resources/read: uri: is missing"),
            ("prompts/get", {"name": {}}, "prompts/get: name: expected string, got object"),
            ("completion/complete", {"ref": {}}, "completion/complete: argument: is missing"),
            ("logging/setLevel", {}, "logging/setLevel: level: is missing"),
            ("initialize", {"protocolVersion": "x", "capabilities": {}},
             "initialize: clientInfo: is missing"),
            ("sampling/createMessage", {"messages": [], "maxTokens": 1}, None),
            ("sampling/createMessage", {"messages": [], "maxTokens": True},
             "sampling/createMessage: maxTokens: expected integer, got boolean"),
        ],
    )  # fmt: skip
    def test_a_missing_or_wrong_parameter_is_named(self, method, params, problem):
        if problem is None:
            m.check_params(m.METHODS[method], params)
            return
        with pytest.raises(m.RPCError) as caught:
            m.check_params(m.METHODS[method], params)
        assert (caught.value.code, caught.value.message) == (-32602, problem)

    @pytest.mark.parametrize(
        "capabilities, path, declared",
        [
            ({"a": {}}, "a", True),
            ({"a": True}, "a", True),
            ({"a": False}, "a", False),
            ({"a": None}, "a", False),
            ({}, "a", False),
            ({"a": {"b": {}}}, "a.b", True),
            ({"a": {"b": False}}, "a.b", False),
            ({"a": {}}, "a.b", False),
            ({"a": True}, "a.b", False),
            ({"a": "b"}, "a.b", False),
        ],
    )
    def test_a_capability_is_declared_by_an_object_or_true(self, capabilities, path, declared):
        assert m.declares(capabilities, path) is declared


class TestFit:
    """Rule 3 of the section: a peer gets only what its revision knows."""

    def test_fields_are_those_of_the_schemas(self):
        gained = {
            kind: {since: set(fields) for since, fields in rows.items()}
            for kind, rows in GAINED.items()
        }
        ours = {}
        for kind, fields in m.FIELDS.items():
            for field, since in fields.items():
                ours.setdefault(kind, {}).setdefault(since, set()).add(field)
        assert ours == gained
        assert m.CONTENT == {"audio": V2, "resource_link": V3, "tool_use": V4, "tool_result": V4}

    @each_revision
    @pytest.mark.parametrize("kind", GAINED)
    def test_later_fields_are_left_out_and_others_kept(self, kind, name):
        later = {since: fields for since, fields in GAINED[kind].items() if since > name}
        obj = {field: since for since, fields in GAINED[kind].items() for field in fields}
        obj.update({"name": 1, "x-unknown": 2})
        before = dict(obj)
        unknown = set().union(*later.values()) if later else set()
        fitted = m.strip_unknown(kind, obj, m.REVISIONS[name])
        assert fitted == {key: value for key, value in before.items() if key not in unknown}
        assert obj == before
        assert (fitted is obj) == (not unknown)

    @pytest.mark.parametrize(
        "block, name, fitted",
        [
            ({"type": "text", "text": "a", "_meta": {}}, V2, {"type": "text", "text": "a"}),
            ({"type": "text", "text": "a", "_meta": {}}, V3,
             {"type": "text", "text": "a", "_meta": {}}),
            ({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}, V1,
             {"type": "text", "text": "[audio, audio/wav, 4 characters of base64]"}),
            ({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}, V2,
             {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
            ({"type": "resource_link", "uri": "a:b", "name": "n", "title": "T"}, V2,
             {"type": "text", "text": "T: a:b"}),
            ({"type": "resource_link", "uri": "a:b", "name": "n", "title": "T", "icons": []}, V3,
             {"type": "resource_link", "uri": "a:b", "name": "n", "title": "T"}),
            ({"type": "resource_link", "uri": "a:b", "name": "n", "icons": []}, V4,
             {"type": "resource_link", "uri": "a:b", "name": "n", "icons": []}),
            ({"type": "image", "data": "", "mimeType": "image/png",
              "annotations": {"priority": 1, "lastModified": "x"}}, V2,
             {"type": "image", "data": "", "mimeType": "image/png",
              "annotations": {"priority": 1}}),
            ({"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": {}}}, V1,
             {"type": "resource", "resource": {"uri": "a:b", "text": "t"}}),
            ({"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": {}}}, V5,
             {"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": {}}}),
            ({"type": "tool_use", "id": "1", "name": "n", "input": {}}, V3,
             {"type": "text", "text": "[tool_use]"}),
            ({"type": "acme", "x": 1}, V1, {"type": "acme", "x": 1}),
        ],
    )  # fmt: skip
    def test_content_becomes_what_the_reader_knows(self, block, name, fitted):
        before = json.dumps(block)
        assert m.fit_content(block, m.REVISIONS[name]) == fitted
        assert json.dumps(block) == before

    @pytest.mark.parametrize(
        "block, text",
        [
            ({"type": "text", "text": "a"}, "a"),
            ({"type": "resource", "resource": {"uri": "a:b", "text": "t"}}, "t"),
            ({"type": "resource", "resource": {"uri": "a:b", "blob": "AA"}}, "[resource, a:b]"),
            ({"type": "resource_link", "uri": "a:b", "name": "n"}, "n: a:b"),
            (
                {"type": "image", "data": "AA", "mimeType": "i/p"},
                "[image, i/p, 2 characters of base64]",
            ),
            ({"type": "acme"}, "[acme]"),
            ({}, "[None]"),
        ],
    )
    def test_every_content_block_has_a_text(self, block, text):
        assert m.text_of(block) == text

    def test_form_is_cut_down_to_plain_enums_for_the_first_revision_with_forms(self):
        """PrimitiveSchemaDefinition of the two schema.ts."""
        form = {
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"type": "string", "default": "x", "minLength": 1},
                "b": {"type": "boolean", "default": True},
                "c": {"type": "integer", "default": 1, "minimum": 0},
                "d": {"type": "string", "oneOf": [{"const": "p", "title": "P"}, {"const": "q"}]},
                "e": {"type": "string", "enum": ["p"], "default": "p"},
            },
        }
        before = json.dumps(form)
        assert m.fit_form(form, m.REVISIONS[V4]) is form
        assert m.fit_form(form, m.REVISIONS[V3]) == {
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"type": "string", "minLength": 1},
                "b": {"type": "boolean", "default": True},
                "c": {"type": "integer", "minimum": 0},
                "d": {"type": "string", "enum": ["p", "q"], "enumNames": ["P", "q"]},
                "e": {"type": "string", "enum": ["p"]},
            },
        }
        assert json.dumps(form) == before

    def test_several_choices_cannot_be_asked_of_a_revision_without_them(self):
        form = {"type": "object", "properties": {"tags": {"type": "array", "items": {}}}}
        with pytest.raises(m.RPCError, match="tags"):
            m.fit_form(form, m.REVISIONS[V3])


###############################################################################
# T5. Requests in flight
###############################################################################


class TestCaller:
    """Who sent a message: what the channel knows of it travels beside it."""

    def test_nobody_has_no_headers_no_principal_and_no_way_to_pause(self):
        caller = m.Exchange(m.request(1, "a"), print).caller
        assert caller is m.NOBODY
        assert (dict(caller.headers), caller.principal, caller.owner) == ({}, None, "")
        assert (caller.address, caller.pause) == ("", None)
        with pytest.raises(TypeError):  # it is everybody's
            caller.headers["a"] = "b"

    def test_exchange_keeps_the_caller_that_it_was_given(self):
        alice = m.Caller({"host": "a"}, principal="alice", owner="alice")
        exchange = m.Exchange(m.request(1, "a"), print, alice)
        assert exchange.caller is alice and exchange.modern is False


class TestExchange:
    """The life of a request that we serve."""

    def test_cancelled_request_is_never_answered(self):
        """basic/patterns/cancellation#behavior-requirements; random walks over the whole table."""
        dice = rng("exchange")
        for _ in range(500):
            exchange = m.Exchange(m.request(1, "a"), print)
            history = []
            for _ in range(dice.randint(1, 8)):
                event = dice.choice(["answer", "cancel"])
                before = exchange.state
                try:
                    after = exchange.advance(event)
                except RuntimeError as exc:
                    assert (before, event) == (m.DONE, "answer") and "1" in str(exc)
                    assert exchange.state == before
                    continue
                assert after == exchange.state
                history.append(event)
            if history[0] == "cancel":
                assert exchange.state == m.CANCELLED
            else:
                assert exchange.state == m.DONE

    def test_every_state_of_the_table_can_be_reached_and_knows_cancel(self):
        states = {state for state, _ in m.EXCHANGE} | set(m.EXCHANGE.values())
        assert states == {m.RUNNING, m.DONE, m.CANCELLED}
        assert all((state, "cancel") in m.EXCHANGE for state in states)

    def test_meta_is_a_dict_whatever_was_sent(self):
        for params, meta in [
            (None, {}), ({}, {}), ({"_meta": {"a": 1}}, {"a": 1}), ({"_meta": None}, {}),
            ({"_meta": []}, {}), ({"_meta": "a"}, {}),
        ]:  # fmt: skip
            exchange = m.Exchange(m.request("x", "a", params), print)
            assert exchange.meta == meta
            assert (exchange.req_id, exchange.method, exchange.params) == ("x", "a", params or {})


class TestOutgoing:
    """What we asked for, and which answers and reports count."""

    def test_ids_are_never_used_twice(self):
        out = m.Outgoing()
        seen = set()
        for _ in range(100):
            pending = out.open("a", now=0.0)
            out.settle(pending.req_id)
            seen.add(pending.req_id)
        assert len(seen) == 100 and out.pending == {}

    @pytest.mark.parametrize("answer_id", [True, 1.0, "1", None, 2, [1], {}, False, 0])
    def test_answer_with_another_id_settles_nothing(self, answer_id):
        """Ids are exact: true and 1.0 equal 1 in Python, not in JSON-RPC."""
        out = m.Outgoing()
        assert out.open("a", now=0.0).req_id == 1
        assert out.settle(answer_id) is None
        assert out.settle(1).method == "a"
        assert out.settle(1) is None

    @pytest.mark.parametrize(
        "params",
        [
            {},
            {"progress": 1},
            {"progressToken": 1},
            {"progressToken": 1, "progress": "1"},
            {"progressToken": 1, "progress": None},
            {"progressToken": 1, "progress": True},
            {"progressToken": 1, "progress": [1]},
            {"progressToken": True, "progress": 1},
            {"progressToken": 1.0, "progress": 1},
            {"progressToken": "1", "progress": 1},
            {"progressToken": None, "progress": 1},
            {"progressToken": [1], "progress": 1},
            {"progressToken": 2, "progress": 1},
        ],
    )
    def test_progress_that_is_malformed_or_unknown_changes_nothing(self, params):
        """basic/patterns/progress: tokens are strings or integers of active requests."""
        out = m.Outgoing()
        pending = out.open("a", now=0.0, patience=10.0)
        assert out.renew(params, now=5.0) is None
        assert pending.deadline == 10.0

    def test_progress_must_increase(self):
        """basic/patterns/progress#progress-flow"""
        out = m.Outgoing()
        pending = out.open("a", now=0.0, patience=10.0)
        counted = []
        for now, progress in enumerate([-5, -5, -6, 0, 0.5, 0.5, 0.25, 1, 10**400, 3]):
            renewed = out.renew({"progressToken": 1, "progress": progress}, now=float(now))
            assert renewed in (pending, None)
            if renewed:
                counted.append(progress)
                assert pending.deadline == now + 10.0
        assert counted == [-5, 0, 0.5, 1, 10**400]

    def test_progress_renews_the_deadline_up_to_a_maximum(self):
        """spec 2025-11-25: basic/lifecycle#timeouts -- a maximum timeout, regardless of progress"""
        out = m.Outgoing()
        pending = out.open("a", now=100.0, patience=10.0, longest=25.0)
        deadlines = []
        for now in (105.0, 114.0, 115.0, 116.0, 124.0):
            out.renew({"progressToken": 1, "progress": now}, now=now)
            deadlines.append(pending.deadline)
        assert deadlines == [115.0, 124.0, 125.0, 125.0, 125.0]

    def test_patience_longer_than_the_maximum_is_the_maximum(self):
        out = m.Outgoing()
        pending = out.open("a", now=0.0, patience=10.0, longest=5.0)
        assert out.renew({"progressToken": 1, "progress": 1}, now=1.0).deadline == 10.0
        assert pending.last_deadline == 10.0

    def test_progress_after_the_answer_is_ignored(self):
        """basic/patterns/progress#implementation-notes -- "MUST stop after completion" """
        out = m.Outgoing()
        out.open("a", now=0.0)
        out.settle(1)
        assert out.renew({"progressToken": 1, "progress": 1}, now=1.0) is None


class TestRates:
    """Budget and ProgressMeter: floods are thinned, the last word is kept."""

    def test_budget_is_spent_at_the_limit_and_not_one_past_it(self):
        calls, seconds = m.PROGRESS_RATE
        budget = m.Budget(calls, seconds)
        assert [budget.take(7.0) for _ in range(calls + 1)] == [True] * calls + [False]

    def test_budget_comes_back_with_time_and_is_never_more_than_full(self):
        budget = m.Budget(4, 2.0)
        assert [budget.take(0.0) for _ in range(5)] == [True] * 4 + [False]
        assert [budget.take(0.5), budget.take(0.5)] == [True, False]
        assert [budget.take(1000.0) for _ in range(5)] == [True] * 4 + [False]

    def test_refused_calls_cost_nothing(self):
        budget = m.Budget(1, 1.0)
        assert budget.take(0.0)
        assert [budget.take(now / 16) for now in range(1, 17)] == [False] * 15 + [True]

    def test_flood_of_progress_is_thinned_and_ends_with_the_last_value(self):
        """basic/patterns/progress#implementation-notes -- "rate limiting to prevent flooding" """
        meter = m.ProgressMeter("t", m.Budget(*m.PROGRESS_RATE))
        sent = [meter.report(i, 1000, None, now=0.0) for i in range(1, 1001)]
        sent = [params for params in sent if params] + [meter.flush()]
        assert len(sent) == m.PROGRESS_RATE[0] + 1
        assert sent[-1] == {"progressToken": "t", "progress": 1000, "total": 1000}
        assert meter.flush() is None

    def test_what_was_held_is_overtaken_by_a_later_value(self):
        meter = m.ProgressMeter(0, m.Budget(1, 1.0))
        assert meter.report(1, None, None, now=0.0) == {"progressToken": 0, "progress": 1}
        assert meter.report(2, None, "two", now=0.0) is None
        assert meter.report(3, None, None, now=5.0) == {"progressToken": 0, "progress": 3}
        assert meter.flush() is None

    @pytest.mark.parametrize("value", [5, 4.9, -1, float("nan"), 5.0, float("-inf")])
    def test_progress_that_does_not_grow_is_not_sent(self, value):
        meter = m.ProgressMeter(1, m.Budget(100, 1.0))
        assert meter.report(5, None, None, now=0.0)
        assert meter.report(value, None, None, now=0.0) is None
        assert meter.flush() is None


###############################################################################
# T6. Lifecycle
###############################################################################

HANDSHAKE = ["initialize", "result", "notifications/initialized"]


class TestSession:
    """basic/lifecycle, legacy: initialize, answer, initialized."""

    def test_handshake_opens_the_session(self):
        session = m.Session()
        for event in HANDSHAKE:
            session.advance(event)
        assert session.state == m.READY

    def test_failed_handshake_can_be_tried_again(self):
        session = m.Session()
        for event in ["initialize", "error", *HANDSHAKE]:
            session.advance(event)
        assert session.state == m.READY

    def test_second_initialize_is_refused_in_every_state(self):
        for steps in range(1, 4):
            session = m.Session()
            for event in HANDSHAKE[:steps]:
                session.advance(event)
            with pytest.raises(m.ProtocolError, match="initialize came while"):
                session.advance("initialize")

    def test_walks_of_any_length_stay_in_the_table(self):
        dice = rng("session")
        events = sorted({event for _, event in m.SESSION})
        for _ in range(500):
            session, path = m.Session(), []
            for _ in range(dice.randint(1, 10)):
                event, before = dice.choice(events), session.state
                try:
                    session.advance(event)
                except m.ProtocolError as exc:
                    assert (before, event) not in m.SESSION and session.state == before
                    assert event in str(exc) and exc.code == -32600
                else:
                    assert session.state == m.SESSION[before, event]
                    path.append(event)
            if session.state == m.READY:  # nobody gets there without all three steps in order
                assert [event for event in path if event != "error"][-1] == HANDSHAKE[2]
                assert [path.index(event) for event in HANDSHAKE] == sorted(
                    path.index(event) for event in HANDSHAKE
                )

    def test_before_the_handshake_a_session_speaks_the_newest_revision_that_has_one(self):
        """So that one line piped into a server is answered."""
        facts = m.Session().facts()
        assert facts.rev is m.NEWEST_LEGACY
        assert (facts.client_info, facts.client_capabilities) == ({}, {})

    @pytest.mark.parametrize(
        "requested, chosen",
        [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),  # the modern era has no handshake
            ("2099-01-01", "2025-11-25"),
            ("1.0.0", "2025-11-25"),
            ("", "2025-11-25"),
            ("2025-06-18 ", "2025-11-25"),
        ],
    )
    def test_initialize_is_never_refused_for_its_version(self, requested, chosen):
        """spec 2025-11-25: basic/lifecycle#version-negotiation"""
        assert m.choose_revision(requested).name == chosen


class TestAdmission:
    """Capability negotiation: what was not declared is neither asked nor served."""

    ALL = {
        "tools": {}, "prompts": {}, "logging": {}, "completions": {}, "roots": {}, "sampling": {},
        "elicitation": {}, "resources": {"subscribe": True},
    }  # fmt: skip

    @pytest.mark.parametrize("name", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
    def test_every_request_of_the_revision_is_admitted_from_its_sender_only(self, name):
        rev = m.REVISIONS[name]
        for row in m.METHODS.values():
            for sender in ("client", "server"):
                expected = (
                    row.kind == "request"
                    and name in row.revisions
                    and row.sender in (sender, "both")
                )
                try:
                    admitted = m.admit(row.name, sender, rev, self.ALL) is row
                except m.RPCError as exc:
                    assert exc.code == -32601 and row.name in exc.message
                    admitted = False
                assert admitted == expected, (row.name, sender)

    def test_a_method_needs_its_capability(self):
        for row in m.METHODS.values():
            if row.kind != "request" or not row.capability:
                continue
            # in the newest revision a server's requests are no requests any more
            legacy = [name for name in row.revisions if name in m.LEGACY]
            rev = m.REVISIONS[(legacy or row.revisions)[-1]]
            with pytest.raises(m.RPCError, match="not declared") as caught:
                m.admit(row.name, row.sender, rev, {})
            assert caught.value.code == -32601
            assert repr(row.capability) in caught.value.message

    def test_what_could_not_be_declared_yet_need_not_be(self):
        assert m.admit("completion/complete", "client", m.REVISIONS["2024-11-05"], {})
        with pytest.raises(m.RPCError):
            m.admit("completion/complete", "client", m.REVISIONS["2025-03-26"], {})

    def test_subscribing_needs_more_than_resources(self):
        rev = m.NEWEST_LEGACY
        assert m.admit("resources/list", "client", rev, {"resources": {}})
        with pytest.raises(m.RPCError):
            m.admit("resources/subscribe", "client", rev, {"resources": {}})

    def test_custom_methods_are_admitted_and_unknown_ones_are_not(self):
        assert m.admit("acme/x", "client", m.NEWEST_LEGACY, {}, {"acme/x"}) is None
        for method in ("acme/x", "", "tools/List", "tools", "notifications/cancelled", "__init__"):
            with pytest.raises(m.RPCError) as caught:
                m.admit(method, "client", m.NEWEST_LEGACY, self.ALL)
            assert caught.value.code == -32601

    def test_what_the_peer_did_not_declare_is_not_even_asked(self):
        rev = m.NEWEST_LEGACY
        m.check_capability("client", {"sampling": {"tools": {}}}, "sampling.tools", rev)
        m.check_capability("client", {}, "", rev)
        with pytest.raises(m.CapabilityMissing, match="client .* 'sampling.tools'") as caught:
            m.check_capability("client", {"sampling": {}}, "sampling.tools", rev)
        assert caught.value.capability == "sampling.tools"
        m.check_capability("server", {}, "completions", m.REVISIONS["2024-11-05"])

    @pytest.mark.parametrize(
        "text, modern",
        [
            ('{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}', True),
            ('{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":null}}}', True),
            ('{"params":{"_meta":{"protocolVersion":"2026-07-28"}}}', False),
            ('{"params":{"_meta":{}}}', False),
            ('{"params":{"_meta":null}}', False),
            ('{"params":{"_meta":"io.modelcontextprotocol/protocolVersion"}}', False),
            ('{"params":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}', False),
            ('{"params":{}}', False),
            ("{}", False),
        ],
    )
    def test_a_request_with_its_own_metadata_is_modern(self, text, modern):
        """basic/versioning#backward-compatibility-with-initialization-based-versions"""
        assert m.is_modern(m.decode(text.encode())) is modern


###############################################################################
# T7. Tasks and time
###############################################################################


class TestTasks:
    """Every task has an owner, and none is left behind."""

    def test_close_cancels_what_runs_and_waits_for_its_end(self):
        ended = []

        async def job(name):
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                await asyncio.sleep(0)
                ended.append(name)

        async def main():
            tasks = m.Tasks()
            jobs = [tasks.spawn(job(name)) for name in "ab"]
            await idle()
            await tasks.close()
            assert sorted(ended) == ["a", "b"] and all(task.cancelled() for task in jobs)
            assert not tasks.running
            await tasks.close()

        run(main())

    def test_task_that_fails_is_reported_and_a_lost_connection_is_not(self, caplog):
        async def fail(exc):
            raise exc

        async def main():
            tasks = m.Tasks()
            tasks.spawn(fail(ValueError("seen")))
            tasks.spawn(fail(m.ConnectionClosed("unseen")))
            await tasks.drain(None)
            await idle()
            assert not tasks.running

        run(main())
        assert "seen" in caplog.text and "unseen" not in caplog.text
        assert [record.name for record in caplog.records] == ["mcp_lite"]

    def test_task_that_ends_at_once_is_forgotten_and_told_of(self):
        ends = []

        async def nothing():
            return 1

        async def main():
            tasks = m.Tasks(lambda: ends.append(len(tasks.running)))
            assert await tasks.spawn(nothing()) == 1
            await idle()
            assert not tasks.running and ends == [0]

        run(main())

    def test_close_from_inside_one_of_the_tasks_ends_the_others(self):
        async def main():
            tasks = m.Tasks()
            other = tasks.spawn(asyncio.sleep(60))

            async def closer():
                await asyncio.sleep(0)
                await tasks.close()
                return "went on"

            assert await tasks.spawn(closer()) == "went on"
            assert other.cancelled()

        run(main())

    def test_task_that_ignores_its_cancellation_does_not_hold_up_close(self, monkeypatch, caplog):
        monkeypatch.setattr(m, "GRACE_SECONDS", 0.01)

        async def main():
            release = asyncio.Event()

            async def stubborn():
                while not release.is_set():
                    with contextlib.suppress(asyncio.CancelledError):
                        await release.wait()

            tasks = m.Tasks()
            task = tasks.spawn(stubborn())
            await idle()
            await tasks.close()
            assert not task.done() and "1 tasks ignore" in caplog.text
            release.set()
            await task

        run(main())

    def test_task_that_another_spawns_while_it_is_cancelled_is_cancelled_too(self):
        async def main():
            tasks, late = m.Tasks(), []

            async def job():
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    late.append(tasks.spawn(asyncio.sleep(60)))

            tasks.spawn(job())
            await idle()
            await tasks.close()
            assert late[0].cancelled() and not tasks.running
            assert await tasks.spawn(asyncio.sleep(0, "used again")) == "used again"

        run(main())

    def test_drain_waits_no_longer_than_it_was_told(self):
        async def main():
            tasks = m.Tasks()
            task = tasks.spawn(asyncio.sleep(60))
            await tasks.drain(0)
            await tasks.drain(0.001)
            assert not task.done()
            await tasks.close()

        run(main())


class TestThreads:
    """Functions that block: a bounded pool of daemon threads."""

    def test_function_runs_in_another_thread_with_its_caller_s_context(self):
        var = contextvars.ContextVar("var", default="none")

        def look(a, b):
            seen = (threading.get_ident(), threading.current_thread().daemon, var.get(), a, b)
            var.set("changed")
            return seen

        async def main():
            threads = m.Threads(1)
            for value in ("one", "two"):
                var.set(value)
                ident, daemon, seen, a, b = await threads.run(look, 1, 2)
                assert ident != threading.get_ident() and daemon
                assert (seen, a, b, var.get()) == (value, 1, 2, value)
            threads.close()

        run(main())

    def test_no_more_threads_than_the_limit_and_none_before_they_are_needed(self):
        async def main():
            threads = m.Threads(3)
            assert threads.threads == 0
            gate, started, lock, most = threading.Event(), [], threading.Lock(), []

            def job(i):
                with lock:
                    started.append(i)
                    most.append(len(started))
                gate.wait(10)
                with lock:
                    started.remove(i)
                return i

            jobs = [asyncio.ensure_future(threads.run(job, i)) for i in range(3)]
            await idle()
            assert threads.threads == 3
            jobs += [asyncio.ensure_future(threads.run(job, i)) for i in range(3, 20)]
            await idle()
            gate.set()
            assert await asyncio.gather(*jobs) == list(range(20))
            assert threads.threads == 3 and max(most) <= 3
            threads.close()

        run(main())

    def test_free_thread_is_used_again(self):
        async def main():
            threads = m.Threads(5)
            used = {await threads.run(threading.get_ident) for _ in range(10)}
            assert len(used) == 1 and threads.threads == 1
            threads.close()

        run(main())

    @pytest.mark.parametrize(
        "raised, seen",
        [
            (ValueError("x"), ValueError),
            (m.ToolError("x"), m.ToolError),
            (StopIteration("x"), RuntimeError),
            (StopAsyncIteration("x"), StopAsyncIteration),
            (SystemExit("x"), RuntimeError),
            (KeyboardInterrupt("x"), RuntimeError),
            (asyncio.CancelledError("x"), asyncio.CancelledError),
        ],
        ids=lambda value: getattr(value, "__name__", type(value).__name__),
    )
    def test_exception_arrives_and_neither_thread_nor_loop_ends(self, raised, seen):
        """Rule 4: a tool that calls sys.exit() must not end the server."""

        def fail():
            raise raised

        async def main():
            threads = m.Threads(1)
            with pytest.raises(seen) as caught:
                await threads.run(fail)
            if seen is RuntimeError:
                assert type(raised).__name__ in str(caught.value)
                assert caught.value.__cause__ is raised
            assert await threads.run(lambda: "alive") == "alive"
            threads.close()

        run(main())

    def test_cancelled_call_is_awaited_no_longer_and_its_thread_goes_on(self):
        async def main():
            threads, gate, done = m.Threads(1), threading.Event(), []
            loop, running = asyncio.get_running_loop(), asyncio.Event()

            def work():
                loop.call_soon_threadsafe(running.set)
                gate.wait(10)
                done.append(1)

            job = asyncio.ensure_future(threads.run(work))
            await running.wait()
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
            gate.set()
            assert await threads.run(lambda: list(done)) == [1]
            threads.close()

        run(main())

    def test_call_that_is_cancelled_before_its_turn_is_never_made(self):
        async def main():
            threads, gate, made = m.Threads(1), threading.Event(), []
            first = asyncio.ensure_future(threads.run(gate.wait, 10))
            second = asyncio.ensure_future(threads.run(made.append, "second"))
            third = asyncio.ensure_future(threads.run(made.append, "third"))
            await idle()
            second.cancel()
            gate.set()
            await asyncio.gather(first, third)
            assert made == ["third"]
            threads.close()

        run(main())

    def test_call_that_is_cancelled_before_its_turn_is_forgotten_at_once(self):
        class Argument:
            pass

        async def main():
            threads, gate = m.Threads(1), threading.Event()
            first = asyncio.ensure_future(threads.run(gate.wait, 10))
            argument = Argument()
            ref = weakref.ref(argument)
            second = asyncio.ensure_future(threads.run(id, argument))
            await idle()
            second.cancel()
            del argument
            await asyncio.wait({second})
            del second
            gc.collect()
            assert ref() is None and not threads.waiting
            gate.set()
            await first
            threads.close()

        run(main())

    def test_thread_that_waits_for_the_loop_makes_room_for_another(self):
        """Twenty calls that each need a further thread, with one thread: no deadlock."""

        async def main():
            threads, loop = m.Threads(1), asyncio.get_running_loop()

            def inner():
                return threading.get_ident()

            def outer():
                with threads.blocked():
                    call = asyncio.run_coroutine_threadsafe(threads.run(inner), loop)
                    return call.result(10), threading.get_ident()

            pairs = await asyncio.gather(*[threads.run(outer) for _ in range(20)])
            assert all(one != other for one, other in pairs)
            assert await threads.run(inner) and await threads.run(inner)
            assert threads.threads == 1 and not threads.blocking and not threads.working
            with threads.blocked():  # on the loop it means nothing
                assert not threads.blocking
            threads.close()

        run(main())

    def test_no_more_than_so_many_threads_wait_for_the_loop(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_BLOCKED_THREADS", 2)

        async def main():
            threads, gate = m.Threads(1), threading.Event()

            def outer():
                with threads.blocked():
                    return gate.wait(10)

            first = [asyncio.ensure_future(threads.run(outer)) for _ in range(2)]
            await until(lambda: sum(threads.blocking.values()) == 2)
            with pytest.raises(m.RPCError, match="too many threads") as caught:
                await threads.run(outer)
            assert caught.value.code == m.TOO_BUSY
            gate.set()
            assert await asyncio.gather(*first) == [True, True]
            assert await threads.run(outer)
            threads.close()

        run(main())

    def test_one_owner_leaves_threads_for_the_others(self):
        async def main():
            threads, gate, began = m.Threads(4), threading.Event(), []

            def job(owner):
                began.append(owner)
                gate.wait(10)
                return owner

            def start(owner, count):
                return [asyncio.ensure_future(threads.run(job, owner, owner=owner))
                        for _ in range(count)]  # fmt: skip

            jobs = start("alice", 10)
            await until(lambda: len(began) == 2)  # half of 4
            jobs += start("bob", 10)
            await until(lambda: len(began) == 3)  # half of what is left
            jobs += start("carol", 10)
            await until(lambda: len(began) == 4)
            assert began == ["alice", "alice", "bob", "carol"]
            gate.set()
            assert sorted(await asyncio.gather(*jobs)) == sorted(["alice", "bob", "carol"] * 10)
            assert threads.threads <= 4 and not threads.waiting and not threads.working
            threads.close()

        run(main())

    def test_calls_of_nobody_may_use_all_threads(self):
        async def main():
            threads, gate, began = m.Threads(3), threading.Event(), []

            def job():
                began.append(1)
                gate.wait(10)

            jobs = [asyncio.ensure_future(threads.run(job)) for _ in range(5)]
            await until(lambda: len(began) == 3)
            assert len(threads.waiting[""]) == 2
            gate.set()
            await asyncio.gather(*jobs)
            threads.close()

        run(main())

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_a_fork_has_threads_of_its_own(self):
        threads = m.Threads(1)
        assert asyncio.run(threads.run(lambda: 1)) == 1
        pid = os.fork()
        if not pid:
            code = 1
            with contextlib.suppress(BaseException):
                call = asyncio.wait_for(threads.run(lambda: 42), 5)
                code = 0 if asyncio.run(call) == 42 else 2
            os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert asyncio.run(threads.run(lambda: 2)) == 2 and threads.threads == 1
        threads.close()

    def test_drain_waits_for_what_runs_even_if_nobody_awaits_it(self):
        async def main():
            threads, gate, done = m.Threads(1), threading.Event(), []
            assert await threads.drain(None), "nothing runs"
            loop, running = asyncio.get_running_loop(), asyncio.Event()

            def work():
                loop.call_soon_threadsafe(running.set)
                gate.wait(10)
                done.append(1)

            job = asyncio.ensure_future(threads.run(work))
            await running.wait()
            job.cancel()
            assert not await threads.drain(0.001)
            assert not threads.drains
            gate.set()
            assert await threads.drain(None) and done == [1]
            gate.clear()
            job = asyncio.ensure_future(threads.run(gate.wait, 10))
            waiting = asyncio.ensure_future(threads.drain(None))
            await idle()
            threads.close()
            await waiting
            gate.set()
            await job

        run(main())

    def test_a_thread_that_cannot_be_started_is_an_error_of_that_call(self, monkeypatch):
        def refuse(self):
            raise RuntimeError("can't start new thread")

        async def main():
            threads = m.Threads(2)
            with monkeypatch.context() as patch:
                patch.setattr(threading.Thread, "start", refuse)
                with pytest.raises(RuntimeError, match="can't start"):
                    await threads.run(lambda: 1)
            assert not threads.waiting and threads.threads == 0
            assert await threads.run(lambda: 1) == 1
            threads.close()

        run(main())

    def test_close_finishes_what_was_given_and_the_pool_can_be_used_again(self):
        async def main():
            threads, gate = m.Threads(2), threading.Event()
            threads.close()
            jobs = [asyncio.ensure_future(threads.run(gate.wait, 10)) for _ in range(5)]
            await idle()
            threads.close()
            again = asyncio.ensure_future(threads.run(threading.get_ident))
            assert await again and threads.threads == 1
            gate.set()
            assert await asyncio.gather(*jobs) == [True] * 5
            threads.close()
            threads.close()

        run(main())

    def test_closed_pool_leaves_no_thread(self):
        async def main():
            threads = m.Threads(2)
            mine = [await threads.run(threading.current_thread)]
            mine += await asyncio.gather(*[threads.run(threading.current_thread) for _ in range(4)])
            threads.close()
            return mine

        for thread in run(main()):
            thread.join(5)
            assert not thread.is_alive()

    def test_answer_for_a_loop_that_has_ended_is_dropped(self):
        threads, gate = m.Threads(1), threading.Event()

        async def leave():
            job = asyncio.ensure_future(threads.run(gate.wait, 10))
            await idle()
            job.cancel()

        asyncio.run(leave())
        gate.set()

        async def main():
            assert await threads.run(lambda: 1) == 1
            threads.close()

        run(main())

    def test_idle_thread_keeps_no_result_alive(self):
        class Thing:
            pass

        async def main():
            threads = m.Threads(1)
            thing = Thing()
            ref = weakref.ref(thing)
            assert await threads.run(lambda x: x, thing) is thing
            assert await threads.run(lambda: None) is None
            del thing
            await idle()
            gc.collect()
            assert ref() is None
            threads.close()

        run(main())


###############################################################################
# T8. Peer
###############################################################################


class Line(m.Transport):
    """A channel whose other end is the test: literal lines in, literal lines out."""

    name = "the test"

    def __init__(self):
        self.inbox, self.outbox = asyncio.Queue(), asyncio.Queue()
        self.reading = asyncio.Event()  # whether the test takes what is written
        self.reading.set()

    async def read(self):
        await asyncio.sleep(0)  # what comes in comes through the loop, as on any real channel
        return await self.inbox.get()

    async def write(self, msg):
        line = m.encode(msg).decode()
        await self.reading.wait()
        self.outbox.put_nowait(line)

    async def close(self):
        self.inbox.put_nowait([])

    def explain(self):
        return "hung up"

    def hint(self):
        return "is it awake?"


class Talk:
    """A Peer, and the test as its other end."""

    def __init__(self, serve=None, told=None, *, revision="2025-11-25", grace=0, **options):
        self.heard = []
        self.peer = m.Peer("it", serve or self.echo, told or self.hear, **options)
        self.peer.session.rev = m.REVISIONS[revision]
        self.grace = grace

    async def __aenter__(self):
        self.line = Line()
        self.running = asyncio.ensure_future(self.peer.run(self.line, self.grace))
        return self

    async def __aexit__(self, *exc):
        await self.line.close()
        await self.running
        assert not self.peer.outgoing.pending and not self.peer.tasks.running

    async def echo(self, exchange):
        return {"method": exchange.method, "params": exchange.params}

    def hear(self, msg, send, caller):
        self.heard.append(msg["method"])

    def put(self, *lines):
        """Let the peer receive lines, with one read."""
        self.line.inbox.put_nowait([x.encode() if isinstance(x, str) else x for x in lines])

    async def take(self):
        """Return the next line that the peer sent, parsed; keys keep their order."""
        return await self.line.outbox.get()

    async def taken(self):
        """Return all lines that the peer has sent by the time that it has nothing more to do."""
        await idle()
        return [self.line.outbox.get_nowait() for _ in range(self.line.outbox.qsize())]

    def ask(self, method="a", params=None, **options):
        asked = self.peer.ask(method, params, self.line.write, **options)
        return asyncio.ensure_future(asked)


def request_line(req_id, method="a", params=None):
    """Return a request as a line of text; for ids that the test counts."""
    return m.encode(m.request(req_id, method, params)).decode()


def cancel_line(req_id):
    """Return the notification that cancels the request with this id, which is JSON text."""
    return (
        f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{req_id}}}}}'
    )


ASKED = '{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":1}}}'
BUSY = '"error":{"code":503,'


class Gate:
    """A handler that waits until the test lets it go, and remembers what became of it."""

    def __init__(self):
        self.open, self.log = asyncio.Event(), []

    async def __call__(self, exchange):
        self.log.append(f"{exchange.req_id!r} began")
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.log.append(f"{exchange.req_id!r} cancelled")
            raise
        self.log.append(f"{exchange.req_id!r} done")
        return {}


class TestAnswering:
    """Requests of the peer: each is answered once, with its own id."""

    @pytest.mark.parametrize("req_id", ["1", "0", "-7", '"1"', '""', '"\\"é"', "9" * 40])
    def test_answer_has_the_id_of_its_request_with_its_type(self, req_id):
        """basic/index#responses -- "MUST include the same ID" """

        async def main():
            async with Talk() as talk:
                talk.put(f'{{"jsonrpc":"2.0","id":{req_id},"method":"a"}}')
                assert await talk.take() == (
                    f'{{"jsonrpc":"2.0","id":{req_id},"result":{{"method":"a","params":{{}}}}}}'
                )

        run(main())

    def test_requests_are_served_at_the_same_time_and_answered_when_ready(self):
        async def main():
            gates = {"slow": asyncio.Event(), "fast": asyncio.Event()}

            async def serve(exchange):
                await gates[exchange.method].wait()
                return {"was": exchange.method}

            async with Talk(serve) as talk:
                talk.put(request_line(1, "slow"), request_line("1", "fast"))
                await idle()
                gates["fast"].set()
                assert await talk.take() == '{"jsonrpc":"2.0","id":"1","result":{"was":"fast"}}'
                gates["slow"].set()
                assert await talk.take() == '{"jsonrpc":"2.0","id":1,"result":{"was":"slow"}}'

        run(main())

    @pytest.mark.parametrize(
        "exc, error",
        [
            (m.RPCError(-32602, "b is missing", {"b": 1}),
             '{"code":-32602,"message":"b is missing","data":{"b":1}}'),
            (m.RemoteError(5, "other server"), '{"code":-32603,"message":"Internal error"}'),
            (KeyError("/etc/passwd"), '{"code":-32603,"message":"Internal error"}'),
            (RecursionError(), '{"code":-32603,"message":"Internal error"}'),
            (SystemExit(2), '{"code":-32603,"message":"Internal error"}'),
            (asyncio.TimeoutError(), '{"code":-32603,"message":"Internal error"}'),
            (m.RPCError(-1, "odd", object()), '{"code":-32603,"message":"Internal error"}'),
        ],
        ids=repr,
    )  # fmt: skip
    def test_handler_that_fails_is_an_error_to_the_peer_and_the_next_is_served(self, exc, error):
        """Rules 4 and 12: nothing ends the process; traceback to the log, message to the peer."""

        async def serve(exchange):
            if exchange.method == "fail":
                raise exc
            return {}

        async def main():
            async with Talk(serve) as talk:
                talk.put(request_line(1, "fail"), request_line(2))
                assert sorted([await talk.take(), await talk.take()]) == [
                    f'{{"jsonrpc":"2.0","id":1,"error":{error}}}',
                    '{"jsonrpc":"2.0","id":2,"result":{}}',
                ]

        run(main())

    def test_unforeseen_exception_is_in_the_log_with_its_traceback(self, caplog):
        async def serve(exchange):
            raise KeyError("secret")

        async def main():
            async with Talk(serve) as talk:
                talk.put(request_line(1))
                assert "secret" not in await talk.take()

        run(main())
        assert "secret" in caplog.text and "Traceback" in caplog.text

    @pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
    @pytest.mark.parametrize("kind", ["object", "nan", "bytes", "circle", "deep"])
    def test_result_that_json_cannot_say_is_an_internal_error(self, kind, revision, caplog):
        circle, deep = {}, {}
        circle["a"], inner = circle, deep
        for _ in range(100_000):
            inner["a"] = inner = {}
        value = {
            "object": object(),
            "nan": float("nan"),
            "bytes": b"",
            "circle": circle,
            "deep": deep,
        }

        async def serve(exchange):
            return {"a": value[kind]} if exchange.method == "odd" else {}

        internal = '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}'
        fine = '{"jsonrpc":"2.0","id":2,"result":{}}'

        async def main():
            async with Talk(serve, revision=revision) as talk:
                if revision == "2025-03-26":
                    talk.put(f"[{request_line(1, 'odd')},{request_line(2)}]")
                    assert await talk.take() == f"[{internal},{fine}]"
                else:
                    talk.put(request_line(1, "odd"), request_line(2))
                    assert sorted([await talk.take(), await talk.take()]) == [internal, fine]

        try:
            run(main())
        finally:
            while deep:  # a deep dict is not freed recursively on every Python
                deep = deep.pop("a")
        assert "cannot be sent as JSON" in caplog.text

    def test_handler_that_was_cancelled_by_somebody_else_is_answered_with_an_error(self):
        async def serve(exchange):
            inner = asyncio.ensure_future(asyncio.sleep(60))
            asyncio.get_running_loop().call_soon(inner.cancel)
            await inner

        async def main():
            async with Talk(serve) as talk:
                talk.put(request_line(1))
                assert await talk.take() == (
                    '{"jsonrpc":"2.0","id":1,'
                    '"error":{"code":-32603,"message":"the handler was cancelled"}}'
                )
                assert not talk.peer.incoming

        run(main())

    def test_ids_of_many_clients_may_be_the_same_and_cancel_nothing(self):
        async def main():
            serve = Gate()
            peer = m.Peer("all", serve, print, many_clients=True)
            first, second = (peer.accept(m.request(1, name), print) for name in "ab")
            tasks = [asyncio.ensure_future(peer.handle(each)) for each in (first, second)]
            await idle()
            assert not peer.cancel(1) and set(peer.incoming.values()) == {first, second}
            serve.open.set()
            assert await asyncio.gather(*tasks) == [m.result(1, {})] * 2
            assert not peer.incoming

        run(main())

    def test_caller_goes_with_each_request_and_notification_of_a_message(self):
        async def main():
            alice, told, served = m.Caller(principal="alice"), [], []

            async def serve(exchange):
                served.append((exchange.method, exchange.caller))
                return {}

            talk = Talk(serve, lambda msg, send, caller: told.append((msg["method"], caller)),
                        revision="2025-03-26")  # fmt: skip
            async with talk:
                line = talk.line
                talk.peer.receive(request_line(1, "a").encode(), line.write, alice)
                talk.peer.receive(b'{"jsonrpc":"2.0","method":"b"}', line.write, alice)
                batch = f'[{request_line(2, "c")},{{"jsonrpc":"2.0","method":"d"}}]'
                talk.peer.receive(batch.encode(), line.write, alice)
                talk.put(request_line(3, "e"), '{"jsonrpc":"2.0","method":"f"}')
                await idle()
                assert served == [("a", alice), ("c", alice), ("e", m.NOBODY)]
                assert told == [("b", alice), ("d", alice), ("f", m.NOBODY)]

        run(main())

    def test_id_that_is_still_running_is_refused_and_the_first_is_served(self):
        """basic/index#requests: unique among the requests that are not answered; 1 is not "1"."""

        async def main():
            gate = Gate()
            async with Talk(gate) as talk:
                talk.put(request_line(1), request_line("1"), request_line(1))
                assert await talk.take() == (
                    '{"jsonrpc":"2.0","id":1,"error":'
                    '{"code":-32600,"message":"a request with id 1 is still running"}}'
                )
                gate.open.set()
                answers = sorted([await talk.take(), await talk.take()])
                assert answers == [
                    '{"jsonrpc":"2.0","id":"1","result":{}}',
                    '{"jsonrpc":"2.0","id":1,"result":{}}',
                ]
                talk.put(request_line(1))
                assert await talk.take() == answers[1]

        run(main())

    def test_notification_is_heard_and_never_answered(self):
        """basic/index#notifications -- "The receiver MUST NOT send a response" """

        async def main():
            async with Talk() as talk:
                talk.put(
                    '{"jsonrpc":"2.0","method":"notifications/x"}',
                    '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}',
                    '{"jsonrpc":"2.0","method":"notifications/y","params":[1]}',
                    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}',
                )
                assert await talk.taken() == []
                assert talk.heard == ["notifications/x", "tools/call"]

        run(main())

    def test_hearing_that_fails_does_not_end_the_conversation(self, caplog):
        """CVE-2025-53366: no message may escape the per-message try."""

        def told(msg, send, caller):
            raise ValueError("deaf")

        async def main():
            async with Talk(told=told) as talk:
                talk.put('{"jsonrpc":"2.0","method":"x"}', request_line(1))
                assert '"id":1' in await talk.take()

        run(main())
        assert "deaf" in caplog.text


class TestRefusing:
    """What is no message gets an error, and the conversation goes on with the next."""

    BAD = [
        ("", -32700),
        ("{", -32700),
        ("hello", -32700),
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}', -32700),
        ('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
        ("[" * 100_000, -32600),
        ("1" * 10_000, -32600),
        ("[" + "1," * 300_000 + "1]", -32600),
        ("3", -32600),
        ("null", -32600),
        ("{}", -32600),
        ('{"foo":"boo"}', -32600),
        ('{"jsonrpc":"2.0","method":1,"params":"bar"}', -32600),
        ('{"jsonrpc":"2.0","id":null,"method":"a"}', -32600),
        ('{"jsonrpc":"2.0","id":true,"method":"a"}', -32600),
        ('{"jsonrpc":"2.0","id":1.0,"method":"a"}', -32600),
        ('{"jsonrpc":"1.0","method":"a"}', -32600),
        ("[]", -32600),
        (m.LimitExceeded("too long"), -32600),
    ]

    @pytest.mark.parametrize("revision, id", [
        ("2024-11-05", '"id":null'), ("2025-03-26", '"id":null'), ("2025-06-18", '"id":null'),
        ("2025-11-25", ""), ("2026-07-28", ""),
    ])  # fmt: skip
    def test_unreadable_message_is_answered_and_the_next_is_served(self, revision, id):
        """JSON-RPC 2.0 §5: id null; schema.ts since 2025-11-25: no id."""

        async def main():
            async with Talk(revision=revision) as talk:
                for bad, code in self.BAD:
                    talk.put(bad, request_line(7))
                    refusal, answer = sorted(
                        [await talk.take(), await talk.take()], key=lambda line: '"result"' in line
                    )
                    assert f'"error":{{"code":{code},"message":"' in refusal, bad
                    assert ('"id"' in refusal) == bool(id) and id in refusal
                    assert answer.startswith('{"jsonrpc":"2.0","id":7,"result":')
                    assert len(refusal) < 500

        run(main())

    @pytest.mark.parametrize(
        "line, code",
        [
            ('{"jsonrpc":"2.0","id":1,"method":2}', -32600),
            ('{"id":1,"method":"a"}', -32600),
            ('{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}', -32602),
            ('{"jsonrpc":"2.0","id":1,"method":"a","params":null}', -32602),
        ],
    )
    def test_malformed_request_with_a_readable_id_is_answered_to_that_id(self, line, code):
        async def main():
            async with Talk(revision="2024-11-05") as talk:
                talk.put(line)
                assert (await talk.take()).startswith(
                    f'{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},'
                )

        run(main())

    @pytest.mark.parametrize(
        "line",
        [
            '{"jsonrpc":"2.0","id":1,"result":5}',
            '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"a"}}',
            '{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"a"}}',
            '{"id":1,"result":{}}',
        ],
    )
    def test_malformed_answer_fails_its_request_at_once_and_is_never_answered(self, line):
        """Two ends that answer each other's malformed answers would never stop."""

        async def main():
            async with Talk() as talk:
                asked = talk.ask()
                assert await talk.take() == ASKED
                talk.put(line)
                with pytest.raises(m.ProtocolError, match="it answered a with a malformed message"):
                    await asked
                talk.put(line, '{"jsonrpc":"2.0","id":null,"error":5}')
                assert await talk.taken() == []

        run(main())

    def test_any_garbage_leaves_a_peer_that_answers(self):
        """Rule 4: nothing a peer sends ends the process. Random messages from a small grammar."""
        dice = rng("peer")
        values = [
            "1", '"1"', "true", "1.0", "null", "[]", "{}", '"a"', "-1", '{"requestId":7}',
            '{"progressToken":1,"progress":2}', '{"code":1,"message":"a"}', '{"code":1}',
        ]  # fmt: skip
        methods = [
            '"a"',
            '"notifications/cancelled"',
            '"notifications/progress"',
            '"initialize"',
            "1",
        ]

        def message():
            fields = [
                f'"{key}":{dice.choice(values)}' for key in ("id", "params", "result", "error")
            ]
            fields = dice.sample(fields, dice.randint(0, 4)) + ['"jsonrpc":"2.0"']
            if dice.random() < 0.7:
                fields.append(f'"method":{dice.choice(methods)}')
            return "{" + ",".join(fields) + "}"

        async def main(revision):
            async with Talk(revision=revision) as talk:
                for _ in range(150):
                    lines = [message() for _ in range(dice.randint(1, 5))]
                    talk.put(
                        *lines, f"[{','.join(lines)}]", '{"jsonrpc":"2.0","id":"end","method":"a"}'
                    )
                    while '"id":"end","result"' not in await talk.take():
                        pass
                    await talk.taken()
                    assert not talk.peer.incoming

        run(main("2025-03-26"))
        run(main("2025-11-25"))


class TestBatches:
    """JSON-RPC 2.0 §6, in the one revision that has it."""

    def test_batch_is_answered_with_one_array(self):
        async def serve(exchange):
            await asyncio.sleep(0)  # a request that is answered at once does not hold its id
            return {"method": exchange.method, "params": exchange.params}

        async def main():
            async with Talk(serve, revision="2025-03-26") as talk:
                asked = talk.ask()
                await talk.take()
                talk.put(
                    '[{"jsonrpc":"2.0","id":1,"method":"a"},'
                    '{"jsonrpc":"2.0","method":"notifications/x"},'
                    '{"jsonrpc":"2.0","id":1,"result":{"ours":1}},'
                    '{"foo":1},3,'
                    '{"jsonrpc":"2.0","id":5,"method":"a","params":[]},'
                    '{"jsonrpc":"2.0","id":1,"method":"again"},'
                    '{"jsonrpc":"2.0","id":"2","method":"b"}]'
                )
                answers = m.decode((await talk.take()).encode())
                assert await asked == {"ours": 1}
                assert talk.heard == ["notifications/x"]
                results = {repr(x["id"]): x["result"] for x in answers if "result" in x}
                assert results == {
                    "1": {"method": "a", "params": {}}, "'2'": {"method": "b", "params": {}}
                }  # fmt: skip
                errors = [(x["id"], x["error"]["code"]) for x in answers if "error" in x]
                assert sorted(errors, key=repr) == sorted(
                    [(None, -32600), (None, -32600), (5, -32602), (1, -32600)], key=repr
                )
                assert await talk.taken() == []

        run(main())

    @pytest.mark.parametrize(
        "line",
        [
            '[{"jsonrpc":"2.0","method":"notifications/x"}]',
            '[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b","params":[]}]',
            '[{"jsonrpc":"2.0","id":9,"result":{}}]',
            '[{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"late"}},'
            '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]',
        ],
    )
    def test_batch_without_requests_is_not_answered(self, line):
        async def main():
            async with Talk(revision="2025-03-26") as talk:
                talk.put(line)
                assert await talk.taken() == []

        run(main())

    @pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
    def test_batch_is_refused_where_the_revision_has_none(self, revision):
        async def main():
            async with Talk(revision=revision) as talk:
                talk.put(f"[{request_line(1)},{request_line(2)}]", request_line(3))
                first, second = sorted([await talk.take(), await talk.take()], key=len)
                assert '"id":3' in first
                assert '"code":-32600' in second and f"revision {revision} has no batches" in second
                assert await talk.taken() == []

        run(main())

    def test_empty_batch_is_an_error(self):
        async def main():
            async with Talk(revision="2025-03-26") as talk:
                talk.put("[]", "[ ]")
                for _ in range(2):
                    assert await talk.take() == (
                        '{"jsonrpc":"2.0","error":{"code":-32600,'
                        '"message":"a batch must not be empty"},"id":null}'
                    )

        run(main())

    def test_initialize_must_not_be_in_a_batch(self):
        """spec 2025-03-26: basic/lifecycle#initialization"""

        async def main():
            async with Talk(revision="2025-03-26") as talk:
                talk.put(f"[{request_line(1, 'initialize', {})},{request_line(2)}]")
                refusal, answer = m.decode((await talk.take()).encode())
                assert (refusal["id"], refusal["error"]["code"]) == (1, -32600)
                assert answer["id"] == 2 and "result" in answer

        run(main())

    def test_batch_at_the_limit_is_served_and_one_more_is_not(self):
        async def main():
            async with Talk(revision="2025-03-26") as talk:
                for size in (m.MAX_BATCH, m.MAX_BATCH + 1):
                    talk.put("[" + ",".join(request_line(i) for i in range(size)) + "]")
                assert '"code":-32600' in await talk.take()
                answers = m.decode((await talk.take()).encode())
                assert sorted(x["id"] for x in answers) == list(range(m.MAX_BATCH))

        run(main())

    def test_more_requests_in_a_batch_than_may_run_are_refused_one_by_one(self):
        async def main():
            gate = Gate()
            async with Talk(gate, revision="2025-03-26", max_in_flight=2) as talk:
                talk.put("[" + ",".join(request_line(i) for i in range(4)) + "]")
                await idle()
                gate.open.set()
                answers = m.decode((await talk.take()).encode())
                assert {x["id"]: x.get("error", {}).get("code") for x in answers} == {
                    0: None, 1: None, 2: 503, 3: 503
                }  # fmt: skip

        run(main())

    def test_cancelled_request_has_no_answer_in_the_batch(self):
        async def main():
            gate = Gate()
            async with Talk(gate, revision="2025-03-26") as talk:
                talk.put(f"[{request_line(1)},{request_line(2)}]", f"[{request_line(3)}]")
                talk.put(cancel_line(1), cancel_line(3))
                await idle()
                gate.open.set()
                assert await talk.taken() == ['[{"jsonrpc":"2.0","id":2,"result":{}}]']

        run(main())


class TestCancelling:
    """basic/patterns/cancellation: the handler stops, and no answer is sent."""

    def test_running_request_is_stopped_and_not_answered(self):
        async def main():
            gate = Gate()
            async with Talk(gate) as talk:
                talk.put(request_line(1), request_line("1"))
                await idle()
                talk.put(cancel_line(1))
                await idle()
                gate.open.set()
                assert await talk.taken() == ['{"jsonrpc":"2.0","id":"1","result":{}}']
                assert gate.log == ["1 began", "'1' began", "1 cancelled", "'1' done"]

        run(main())

    def test_request_cancelled_in_the_read_that_brought_it_is_not_answered(self):
        async def main():
            gate = Gate()
            async with Talk(gate) as talk:
                talk.put(request_line(1), cancel_line(1), request_line(1), request_line(2))
                await idle()
                gate.open.set()
                answers = await talk.taken()
                assert '{"jsonrpc":"2.0","id":2,"result":{}}' in answers
                assert "1 done" not in gate.log
                # The id may be refused as long as the cancelled request winds up.
                assert not any('"id":1,"result"' in line for line in answers)

        run(main())

    def test_answer_and_cancellation_may_cross(self):
        """basic/patterns/cancellation#timing-considerations"""

        async def main():
            async with Talk() as talk:
                talk.put(request_line(1))
                assert '"result"' in await talk.take()
                talk.put(cancel_line(1), cancel_line(1), request_line(1))
                assert '"result"' in await talk.take()
                assert await talk.taken() == []

        run(main())

    def test_handler_that_swallows_its_cancellation_is_still_not_answered(self):
        async def serve(exchange):
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                return {"late": True}

        async def main():
            async with Talk(serve) as talk:
                talk.put(request_line(1))
                await idle()
                talk.put(cancel_line(1))
                assert await talk.taken() == [] and not talk.peer.incoming

        run(main())

    def test_handler_that_fails_on_its_cancellation_is_still_not_answered(self):
        async def serve(exchange):
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                raise ValueError("while cleaning up") from None

        async def main():
            async with Talk(serve) as talk:
                talk.put(request_line(1))
                await idle()
                talk.put(cancel_line(1))
                assert await talk.taken() == []

        run(main())

    def test_second_cancellation_does_not_disturb_the_cleaning_up(self):
        async def main():
            tidy, log = asyncio.Event(), []

            async def serve(exchange):
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    await tidy.wait()
                    log.append("tidy")

            async with Talk(serve) as talk:
                talk.put(request_line(1))
                await idle()
                for _ in range(3):
                    talk.put(cancel_line(1))
                    await idle()
                tidy.set()
                assert await talk.taken() == [] and log == ["tidy"]

        run(main())

    @pytest.mark.parametrize(
        "params",
        [
            '{"requestId":2}', '{"requestId":"1"}', '{"requestId":1.0}', '{"requestId":true}',
            '{"requestId":null}', '{"requestId":[1]}', '{"requestId":{"1":1}}', "{}", '{"id":1}',
            '{"requestId":"1_0"}', '{"requestId":" 1"}', "[1]", "1", "null",
        ],
    )  # fmt: skip
    def test_unknown_or_malformed_cancellation_is_ignored(self, params):
        """basic/patterns/cancellation#error-handling; elsewhere "1_0" cancelled request 10."""

        async def main():
            gate = Gate()
            async with Talk(gate) as talk:
                talk.put(
                    request_line(1), request_line(10),
                    f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}',
                    '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
                )  # fmt: skip
                await idle()
                gate.open.set()
                assert sorted(await talk.taken()) == [
                    '{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","id":10,"result":{}}'
                ]  # fmt: skip

        run(main())

    def test_initialize_cannot_be_cancelled(self):
        """spec 2025-11-25: basic/utilities/cancellation#behavior-requirements"""

        async def main():
            gate = Gate()
            async with Talk(gate) as talk:
                talk.put(request_line(1, "initialize"), cancel_line(1))
                await idle()
                gate.open.set()
                assert await talk.taken() == ['{"jsonrpc":"2.0","id":1,"result":{}}']
                asked = talk.ask("initialize", patience=0.01)
                assert '"method":"initialize"' in await talk.take()
                with pytest.raises(m.RequestTimeout):
                    await asked
                again = talk.ask("initialize")
                await talk.take()
                again.cancel()
                assert await talk.taken() == []

        run(main())

    @pytest.mark.parametrize("reason", ['"enough"', "5", "null", '["x"]'])
    def test_reason_is_kept_if_it_is_a_text(self, reason):
        async def main():
            seen = []

            async def serve(exchange):
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    seen.append((exchange.reason, exchange.state))

            async with Talk(serve) as talk:
                talk.put(request_line(1))
                await idle()
                talk.put(
                    '{"jsonrpc":"2.0","method":"notifications/cancelled",'
                    f'"params":{{"requestId":1,"reason":{reason}}}}}'
                )
                await idle()
                assert seen == [("enough" if reason == '"enough"' else None, "cancelled")]

        run(main())

    def test_caller_that_is_cancelled_cancels_the_work_and_drops_the_late_answer(self):
        async def main():
            async with Talk() as talk:
                asked = talk.ask()
                assert await talk.take() == ASKED
                asked.cancel()
                assert await talk.take() == (
                    '{"jsonrpc":"2.0","method":"notifications/cancelled",'
                    '"params":{"requestId":1,"reason":"the caller was cancelled"}}'
                )
                with pytest.raises(asyncio.CancelledError):
                    await asked
                talk.put('{"jsonrpc":"2.0","id":1,"result":{}}', request_line(5))
                assert '"id":5' in await talk.take()
                assert await talk.taken() == []

        run(main())


class TestAsking:
    """Requests of ours: one answer each, or one exception that says why not."""

    def test_result_and_error_reach_their_callers_in_any_order(self):
        async def main():
            async with Talk() as talk:
                first, second = talk.ask("a", {"x": 1}), talk.ask("b")
                assert await talk.take() == (
                    '{"jsonrpc":"2.0","id":1,"method":"a",'
                    '"params":{"x":1,"_meta":{"progressToken":1}}}'
                )
                assert '"id":2,"method":"b"' in await talk.take()
                talk.put(
                    '{"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no","data":[1]}}',
                    '{"jsonrpc":"2.0","id":1,"result":{"y":2}}',
                )
                assert await first == {"y": 2}
                with pytest.raises(m.RemoteError) as caught:
                    await second
                assert (caught.value.code, caught.value.message, caught.value.data) == (
                    -5,
                    "no",
                    [1],
                )

        run(main())

    def test_meta_of_the_caller_is_kept_and_its_params_are_not_changed(self):
        async def main():
            params = {"x": 1, "_meta": {"acme/a": 2, "progressToken": "mine"}}
            before = json.dumps(params)
            async with Talk() as talk:
                asked = talk.ask("a", params)
                assert '"_meta":{"acme/a":2,"progressToken":1}' in await talk.take()
                assert json.dumps(params) == before
                talk.put('{"jsonrpc":"2.0","id":1,"result":{}}')
                await asked

        run(main())

    def test_both_ends_ask_at_the_same_time_with_the_same_ids(self):
        """Rule 1 of section 10: two tables, never one."""

        async def main():
            gate = Gate()
            async with Talk(gate) as talk:
                asked = talk.ask()
                assert await talk.take() == ASKED
                talk.put(request_line(1), cancel_line(2))
                await idle()
                talk.put('{"jsonrpc":"2.0","id":1,"result":{"ours":true}}')
                assert await asked == {"ours": True}
                gate.open.set()
                assert await talk.take() == '{"jsonrpc":"2.0","id":1,"result":{}}'

        run(main())

    def test_handler_may_ask_before_it_answers(self):
        async def main():
            async def serve(exchange):
                return {"got": await talk.peer.ask("roots/list", None, exchange.send)}

            async with Talk(serve) as talk:
                talk.put(request_line("x"))
                assert '"id":1,"method":"roots/list"' in await talk.take()
                talk.put('{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}')
                assert (
                    await talk.take() == '{"jsonrpc":"2.0","id":"x","result":{"got":{"roots":[]}}}'
                )

        run(main())

    @pytest.mark.parametrize(
        "line",
        [
            '{"jsonrpc":"2.0","id":true,"result":{"no":1}}',
            '{"jsonrpc":"2.0","id":1.0,"result":{"no":1}}',
            '{"jsonrpc":"2.0","id":"1","result":{"no":1}}',
            '{"jsonrpc":"2.0","id":2,"result":{"no":1}}',
            '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"what?"}}',
            '{"jsonrpc":"2.0","error":{"code":1,"message":"what?"}}',
        ],
    )
    def test_answer_to_nothing_we_asked_changes_nothing(self, line):
        """Rule 5: route by connection and id; ids exact."""

        async def main():
            async with Talk() as talk:
                asked = talk.ask()
                await talk.take()
                talk.put(line, '{"jsonrpc":"2.0","id":1,"result":{"yes":1}}', line)
                assert await asked == {"yes": 1}

        run(main())

    def test_second_answer_is_dropped(self):
        async def main():
            async with Talk() as talk:
                asked = talk.ask()
                await talk.take()
                talk.put(*[f'{{"jsonrpc":"2.0","id":1,"result":{{"n":{n}}}}}' for n in range(3)])
                assert await asked == {"n": 0}
                assert await talk.taken() == []

        run(main())

    @pytest.mark.parametrize(
        "params", [{"a": object()}, {"a": float("nan")}, {"a": b""}, {"_meta": 7}], ids=repr
    )
    def test_params_that_json_cannot_say_are_the_caller_s_error(self, params):
        async def main():
            async with Talk() as talk:
                with pytest.raises((TypeError, ValueError)):
                    await talk.ask("a", params)
                assert await talk.taken() == [] and not talk.peer.outgoing.pending

        run(main())


class TestPatience:
    """Deadlines, and the progress that renews them."""

    def test_request_that_is_not_answered_times_out_with_a_hint_and_is_cancelled(self):
        """spec 2025-11-25: basic/lifecycle#timeouts"""

        async def main():
            async with Talk() as talk:
                asked = talk.ask(patience=0.01)
                with pytest.raises(m.RequestTimeout) as caught:
                    await asked
                assert str(caught.value) == "it did not answer a within 0.01 seconds; is it awake?"
                assert await talk.take() == ASKED
                assert await talk.take() == (
                    '{"jsonrpc":"2.0","method":"notifications/cancelled",'
                    '"params":{"requestId":1,"reason":"timeout"}}'
                )
                talk.put('{"jsonrpc":"2.0","id":1,"result":{}}')
                assert await talk.taken() == []

        run(main())

    def test_peer_that_does_not_read_does_not_stretch_the_deadline(self):
        """Every wait has a deadline: also the wait for the request to be taken."""

        async def main():
            async with Talk() as talk:
                talk.line.reading.clear()
                with pytest.raises(m.RequestTimeout):
                    await talk.ask(patience=0.01)
                asked = talk.ask()
                await idle()
                asked.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asked
                talk.line.reading.set()

        run(main())

    def test_progress_is_reported_in_order_before_the_answer(self):
        async def main():
            async with Talk() as talk:
                seen = []

                async def slowly(*report):
                    await asyncio.sleep(0)
                    seen.append(report)

                asked = talk.ask(on_progress=slowly)
                plain = talk.ask(on_progress=lambda *report: seen.append(report))
                await talk.take()
                token = (
                    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'
                )
                talk.put(
                    token + '1,"progress":1}}',
                    token + '1,"progress":2.5,"total":4,"message":"half"}}',
                    token + '1,"progress":2.5}}',
                    token + '1,"progress":2}}',
                    token + '"1","progress":3}}',
                    token + 'true,"progress":3}}',
                    token + '1.0,"progress":3}}',
                    token + '3,"progress":3}}',
                    token + 'null,"progress":3}}',
                    token + '1,"progress":true}}',
                    token + '1,"progress":"3"}}',
                    '{"jsonrpc":"2.0","method":"notifications/progress"}',
                    '{"jsonrpc":"2.0","id":1,"result":{}}',
                    token + '1,"progress":9}}',
                    token + '2,"progress":-1}}',
                    '{"jsonrpc":"2.0","id":2,"result":{}}',
                )
                await asked
                assert [s for s in seen if s[0] > 0] == [(1, None, None), (2.5, 4, "half")]
                await plain
                assert (-1, None, None) in seen and len(seen) == 3
                assert talk.heard == []

        run(main())

    def test_progress_callback_that_fails_harms_nobody(self, caplog):
        async def later(*report):
            raise ValueError("later")

        def now(*report):
            raise ValueError("now")

        async def main():
            async with Talk() as talk:
                first, second = talk.ask(on_progress=later), talk.ask(on_progress=now)
                await idle()
                for n in (1, 2):
                    talk.put(
                        '{"jsonrpc":"2.0","method":"notifications/progress",'
                        f'"params":{{"progressToken":{n},"progress":1}}}}',
                        f'{{"jsonrpc":"2.0","id":{n},"result":{{}}}}',
                    )
                assert await first == await second == {}

        run(main())
        assert "later" in caplog.text and "now" in caplog.text

    def test_progress_renews_the_deadline_but_not_for_ever(self):
        """The maximum holds "regardless of progress notifications"."""

        async def main():
            async with Talk() as talk:
                loop, seen = asyncio.get_running_loop(), []

                def again(progress, total=None, message=None):
                    seen.append(progress)
                    talk.put(
                        '{"jsonrpc":"2.0","method":"notifications/progress",'
                        f'"params":{{"progressToken":1,"progress":{progress + 1}}}}}'
                    )

                began = loop.time()
                asked = talk.ask(patience=0.1, longest=0.25, on_progress=again)
                await talk.take()
                again(0)
                with pytest.raises(m.RequestTimeout):
                    await asked
                assert 0.2 < loop.time() - began and len(seen) > 2

        run(main())


class TestCrowding:
    """Rule 4 of the section: what runs and what waits to be sent is bounded."""

    def test_reading_pauses_at_the_limit_and_goes_on_when_there_is_room(self):
        async def main():
            gate = Gate()
            async with Talk(gate, max_in_flight=3) as talk:
                talk.put(*[request_line(i) for i in range(8)])
                await idle()
                assert gate.log == ["0 began", "1 began", "2 began"]
                gate.open.set()
                answers = [await talk.take() for _ in range(8)]
                assert sorted(answers) == [
                    f'{{"jsonrpc":"2.0","id":{i},"result":{{}}}}' for i in range(8)
                ]

        run(main())

    def test_default_limit_holds_at_the_limit_and_one_past_it(self):
        async def main():
            gate = Gate()
            async with Talk(gate) as talk:
                talk.put(*[request_line(i) for i in range(m.MAX_IN_FLIGHT + 1)])
                await idle()
                assert len(talk.peer.incoming) == m.MAX_IN_FLIGHT == len(gate.log)
                with pytest.raises(m.RPCError) as caught:
                    talk.peer.accept(m.request("more", "a"), talk.line.write)
                assert caught.value.code == m.TOO_BUSY
                gate.open.set()
                for _ in range(m.MAX_IN_FLIGHT + 1):
                    await talk.take()

        run(main())

    def test_handler_that_waits_for_the_peer_keeps_reading_alive_and_the_excess_is_refused(self):
        async def main():
            go = asyncio.Event()

            async def serve(exchange):
                await go.wait()
                return await talk.peer.ask("q", None, exchange.send)

            async with Talk(serve, max_in_flight=2) as talk:
                talk.put(request_line("a"), request_line("b"), request_line("c"), request_line("d"))
                assert await talk.taken() == []  # reading pauses: nobody waits for the peer yet
                go.set()
                lines = [await talk.take() for _ in range(4)]
                assert sum('"method":"q"' in line for line in lines) == 2
                refused = [line for line in lines if BUSY in line]
                assert ['"id":"c"' in line or '"id":"d"' in line for line in refused] == [True] * 2
                talk.put(*[f'{{"jsonrpc":"2.0","id":{n},"result":{{}}}}' for n in (1, 2)])
                assert sorted([await talk.take(), await talk.take()]) == [
                    '{"jsonrpc":"2.0","id":"a","result":{}}',
                    '{"jsonrpc":"2.0","id":"b","result":{}}',
                ]  # fmt: skip

        run(main())

    @pytest.mark.parametrize("line", [request_line(1), "garbage", f"[{request_line(1)}]"])
    def test_peer_that_does_not_read_its_answers_is_not_read_either(self, line):
        """Rule 3: everything bounded; a flood whose answers are not taken must not fill memory."""

        async def main():
            async with Talk(max_in_flight=10, revision="2025-03-26") as talk:
                talk.line.reading.clear()
                for _ in range(300):
                    talk.put(line)
                await idle()
                assert len(talk.peer.tasks.running) <= 10
                assert talk.line.inbox.qsize() > 200
                talk.line.reading.set()
                for _ in range(300):
                    await talk.take()

        run(main())

    def test_own_requests_that_are_not_taken_do_not_stop_the_reading(self):
        async def main():
            async with Talk(max_in_flight=2) as talk:
                talk.line.reading.clear()
                asked = [talk.ask() for _ in range(10)]
                await idle()
                talk.put('{"jsonrpc":"2.0","method":"x"}')
                await idle()
                assert talk.heard == ["x"]
                talk.line.reading.set()
                for n in range(1, 11):
                    await talk.take()
                    talk.put(f'{{"jsonrpc":"2.0","id":{n},"result":{{}}}}')
                await asyncio.gather(*asked)

        run(main())


class TestEnding:
    """Ends that vanish: every waiter is told at once, and nothing is left behind."""

    def test_peer_that_vanishes_fails_what_we_asked_and_cancels_what_we_serve(self):
        async def main():
            gate = Gate()
            async with Talk(gate) as talk:
                asked = [talk.ask() for _ in range(3)]
                talk.put(request_line(1), request_line(2, "initialize"))
                await idle()
                await talk.line.close()
                for ask in asked:
                    with pytest.raises(m.ConnectionClosed, match="^it hung up$"):
                        await ask
                await talk.running
                assert sorted(gate.log) == ["1 began", "1 cancelled", "2 began", "2 cancelled"]
                for _ in range(2):
                    with pytest.raises(m.ConnectionClosed, match="^it hung up$"):
                        await talk.ask()
                assert [ASKED in line for line in await talk.taken()].count(True) == 1

        run(main())

    def test_requests_get_their_grace_to_finish_and_are_answered(self):
        """`python server.py < requests.jsonl > answers.jsonl`"""

        async def main():
            gate = Gate()
            async with Talk(gate, grace=None) as talk:
                talk.put(request_line(1))
                await talk.line.close()
                await idle()
                assert not talk.running.done() and talk.peer.lost
                gate.open.set()
                await talk.running
                assert await talk.taken() == ['{"jsonrpc":"2.0","id":1,"result":{}}']

        run(main())

    def test_handler_that_waits_for_a_vanished_peer_ends_in_its_grace(self):
        async def main():
            async def serve(exchange):
                with pytest.raises(m.ConnectionClosed):
                    await talk.peer.ask("q", None, exchange.send)
                return {"left": "alone"}

            async with Talk(serve, grace=None) as talk:
                talk.put(request_line("x"))
                await talk.take()
                await talk.line.close()
                await talk.running
                assert await talk.taken() == [
                    '{"jsonrpc":"2.0","id":"x","result":{"left":"alone"}}'
                ]

        run(main())

    def test_grace_ends(self):
        async def main():
            gate = Gate()
            async with Talk(gate, grace=0.01) as talk:
                talk.put(request_line(1))
                await talk.line.close()
                await talk.running
                assert gate.log == ["1 began", "1 cancelled"]

        run(main())

    def test_writes_that_fail_end_nothing_but_their_own_request(self, caplog):
        """CVE-2025-53365: a closed stream must not crash the other end."""

        class Torn(Line):
            async def write(self, msg):
                raise m.ConnectionClosed("torn")

        async def main():
            talk = Talk()
            talk.line = Torn()
            running = asyncio.ensure_future(talk.peer.run(talk.line))
            talk.put(request_line(1), "garbage", request_line(2))
            with pytest.raises(m.ConnectionClosed, match="torn"):
                await talk.ask()
            await idle()
            assert not running.done() and not talk.peer.incoming
            await talk.line.close()
            await running

        run(main())
        assert "Traceback" not in caplog.text

    def test_close_works_twice_at_once_and_from_inside_handler_and_callbacks(self):
        async def main():
            async def serve(exchange):
                await talk.peer.close()
                return {}

            async def progressed(*report):
                await talk.peer.close()

            talk = Talk(serve)
            async with talk:
                asked = talk.ask(on_progress=progressed)
                await talk.take()
                talk.put(
                    '{"jsonrpc":"2.0","method":"notifications/progress",'
                    '"params":{"progressToken":1,"progress":1}}'
                )
                with pytest.raises(m.ConnectionClosed, match="is closed"):
                    await asked
                talk.put(request_line(1), request_line(2))
                await idle()
                await asyncio.gather(talk.peer.close(), talk.peer.close())
                await talk.peer.close()

        run(main())

    def test_reader_that_fails_leaves_nothing_behind(self):
        class Burst(Line):
            async def read(self):
                if self.inbox.qsize():
                    return await super().read()
                await idle()
                raise OSError("burst")

        async def main():
            gate, talk = Gate(), Talk()
            talk.peer.serve = gate
            talk.line = Burst()
            talk.put(request_line(1))
            asked = talk.ask()
            with pytest.raises(OSError, match="burst"):
                await talk.peer.run(talk.line)
            with pytest.raises(m.ConnectionClosed):
                await asked
            assert gate.log == ["1 began", "1 cancelled"]

        run(main())

    def test_run_that_is_cancelled_leaves_nothing_behind(self):
        async def main():
            gate = Gate()
            talk = Talk(gate)
            await talk.__aenter__()
            asked = talk.ask()
            talk.put(request_line(1))
            await idle()
            talk.running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await talk.running
            with pytest.raises(m.ConnectionClosed):
                await asked
            assert gate.log == ["1 began", "1 cancelled"]

        run(main())


class TestMemory:
    """The channel in memory: as on any wire, through the codec."""

    def test_messages_pass_through_encoding(self):
        async def main():
            ours, theirs = m.memory_transports()
            msg = m.notification("a", {"t": (1, 2), "s": "x\ud800"})
            await ours.write(msg)
            await ours.write([msg, msg])
            one, batch = await theirs.read()
            assert one == b'{"jsonrpc":"2.0","method":"a","params":{"t":[1,2],"s":"x?"}}'
            assert len(m.decode(batch)) == 2
            with pytest.raises(TypeError):
                await ours.write({"a": object()})
            await ours.close()

        run(main())

    def test_writer_waits_at_the_limit_of_the_inbox(self):
        async def main():
            ours, theirs = m.memory_transports()
            for i in range(m.MAX_INBOX):
                await ours.write({"n": i})
            late = asyncio.ensure_future(ours.write({"n": m.MAX_INBOX}))
            await idle()
            assert not late.done()
            assert len(await theirs.read()) == m.MAX_INBOX
            await late
            assert await theirs.read() == [b'{"n":%d}' % m.MAX_INBOX]
            await theirs.close()

        run(main())

    def test_what_was_written_before_the_end_is_read_and_then_the_end(self):
        async def main():
            ours, theirs = m.memory_transports()
            await ours.write({})
            waiting = asyncio.ensure_future(ours.read())
            await idle()
            await ours.close()
            await theirs.close()
            assert await waiting == [] == await ours.read()
            assert await theirs.read() == [b"{}"] and await theirs.read() == []
            for end in (ours, theirs):
                with pytest.raises(m.ConnectionClosed):
                    await end.write({})

        run(main())

    def test_end_wakes_a_writer_that_waits(self):
        async def main():
            ours, theirs = m.memory_transports()
            for _ in range(m.MAX_INBOX):
                await ours.write({})
            late = asyncio.ensure_future(ours.write({}))
            await idle()
            await theirs.close()
            with pytest.raises(m.ConnectionClosed):
                await late

        run(main())

    def test_two_peers_in_one_loop_ask_each_other_hundreds_of_times(self):
        async def serve(exchange):
            await asyncio.sleep(0)
            return {"n": exchange.params["n"]}

        async def main():
            ends = m.memory_transports()
            peers = [m.Peer(name, serve, print, max_in_flight=20) for name in "ab"]
            running = [asyncio.ensure_future(p.run(end)) for p, end in zip(peers, ends)]
            asks = [
                peer.ask("a", {"n": n}, end.write)
                for n in range(400)
                for peer, end in zip(peers, ends)
            ]
            outcomes = await asyncio.gather(*asks, return_exceptions=True)
            for n, outcome in enumerate(outcomes):  # served, or refused while the ends were busy
                assert outcome == {"n": n // 2} or outcome.code == m.TOO_BUSY
            await ends[0].close()
            await asyncio.gather(*running)

        run(main())

    def test_two_peers_in_two_threads(self):
        """Lost wake-ups would hang this: every message crosses from one loop to the other."""

        async def serve(exchange):
            return exchange.params

        async def answer(end):
            await m.Peer("b", serve, print).run(end)

        async def main():
            ours, theirs = m.memory_transports()
            thread = threading.Thread(target=asyncio.run, args=[answer(theirs)])
            thread.start()
            peer = m.Peer("a", serve, print)
            running = asyncio.ensure_future(peer.run(ours))
            for n in range(300):
                assert (await peer.ask("a", {"n": n}, ours.write))["n"] == n
            await ours.close()
            await running
            await asyncio.get_running_loop().run_in_executor(None, thread.join)

        run(main())


class TestTraceHook:
    """Every message passes the trace, both ways; it is off unless asked for."""

    def test_trace_sees_what_crosses_the_wire(self):
        seen = []
        m.set_trace(lambda direction, name, msg: seen.append((direction, name, msg)))
        try:

            async def main():
                ours, theirs = m.memory_transports()
                peer = m.Peer("it", Talk().echo, print)
                running = asyncio.ensure_future(peer.run(theirs))
                await ours.write(m.request(1, "a"))
                assert m.decode((await ours.read())[0])["id"] == 1
                await ours.close()
                await running

            run(main())
        finally:
            m.set_trace(None)
        assert [(direction, name) for direction, name, _ in seen] == [("<", "it"), (">", "it")]
        assert seen[0][2] == {"jsonrpc": "2.0", "id": 1, "method": "a"}
        assert seen[1][2]["result"] == {"method": "a", "params": {}}


###############################################################################
# T9. JSON Schema
###############################################################################

# The tables follow the text of JSON Schema 2020-12 (core and validation), keyword by keyword:
# (schema, values that it admits, values that it does not).
VERDICTS = [
    (True, [None, {}, []], []),
    (False, [], [None, 1, {}]),
    ({}, [None, 1, "x"], []),
    # validation 6.1: any type
    ({"type": "integer"}, [1, -3, 1.0, 10**400], [1.5, True, "1", None, [1]]),
    ({"type": "number"}, [1, 1.5], [True, "1"]),
    ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    ({"type": "null"}, [None], [0, "", False]),
    ({"type": ["string", "null"]}, ["", None], [0, []]),
    (
        {"enum": [1, "a", None, [1, {"x": 1}]]},
        [1, 1.0, "a", None, [1.0, {"x": 1}]],
        [True, "1", [1]],
    ),
    ({"enum": []}, [], [None]),
    ({"const": False}, [False], [0, None]),
    ({"const": 0}, [0, 0.0, -0.0], [False]),
    ({"const": {"a": [1, 2]}}, [{"a": [1, 2.0]}], [{"a": [2, 1]}, {"a": [1, 2], "b": 1}]),
    ({"const": 2**53}, [2**53, float(2**53)], [2**53 + 1]),
    # 6.2: numbers
    ({"multipleOf": 2}, [4, 4.0, 0, -2, "x"], [3, 2.5]),
    ({"multipleOf": 0.01}, [4.02, 0.07, 3], [4.021]),
    ({"multipleOf": 1e-8}, [12391239123], []),
    ({"multipleOf": 0.5}, [1e308, 2.5], [0.3]),
    ({"minimum": 1.5}, [1.5, 2, "0", None, True], [1, 1.4]),
    ({"maximum": 3}, [3, 3.0, -5], [3.1, 4]),
    ({"exclusiveMinimum": 3}, [3.1], [3, 2]),
    ({"exclusiveMaximum": 3}, [2], [3, 3.0]),
    # 6.3: strings; a length counts characters, not bytes or surrogates
    ({"minLength": 2}, ["ab", "\U0001f600x", 1], ["a", "\U0001f600"]),
    ({"maxLength": 1.0}, ["", "\U0001f600"], ["ab"]),
    ({"pattern": "^a*$"}, ["aa", "", 1], ["ab", "a\n"]),
    ({"pattern": "b"}, ["abc"], ["ac"]),
    ({"pattern": "^\\d+$"}, ["12"], ["\u0662"]),
    ({"pattern": "^(?<a>x)\\k<a>[[$|~&]$"}, ["xx[", "xx$"], ["xx", "xxx"]),
    # 6.4: arrays
    ({"minItems": 1}, [[1], {}, ""], [[]]),
    ({"maxItems": 1}, [[1], []], [[1, 2]]),
    (
        {"uniqueItems": True},
        [[1, True, "1", [1], None, 0, False]],
        [[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]],
    ),
    ({"uniqueItems": False}, [[1, 1]], []),
    ({"contains": {"const": 1}}, [[2, 1], {}], [[], [2, True]]),
    (
        {"contains": {"const": 1}, "minContains": 2, "maxContains": 3},
        [[1, 1], [1, 1, 1]],
        [[1], [1] * 4],
    ),
    ({"contains": {"const": 1}, "minContains": 0}, [[]], []),
    ({"minContains": 2}, [[]], []),
    # 6.5: objects
    ({"minProperties": 1}, [{"a": 1}, []], [{}]),
    ({"maxProperties": 1}, [{"a": 1}, {}], [{"a": 1, "b": 2}]),
    ({"required": ["a"]}, [{"a": None}, [], "a"], [{}, {"b": 1}]),
    ({"dependentRequired": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
    # core 10.2: in place
    ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, [2], [1, "x"]),
    ({"anyOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5, "x"], [1.5]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5], [3, 1.5]),
    ({"not": {"type": "integer"}}, ["x"], [1]),
    (
        {"if": {"minimum": 0}, "then": {"multipleOf": 2}, "else": {"maximum": -10}},
        [2, -10],
        [1, -1],
    ),
    ({"then": False, "else": False}, [1], []),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, [{}, {"a": 1, "b": 1}], [{"a": 1}]),
    # what draft-07 had for both, still allowed
    ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, [{"b": 1}], [{"a": 1}, {"c": 1}]),
    # core 10.3: inside
    ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], [], 5], [[1], ["a", 1]]),
    ({"items": {"type": "string"}}, [["a"], {}], [["a", 1]]),
    ({"properties": {"a": {"type": "string"}}}, [{}, {"a": "x", "b": 1}, []], [{"a": 1}]),
    ({"patternProperties": {"^x": {"type": "null"}}}, [{"xa": None, "a": 1}], [{"ax": 1, "xa": 1}]),
    (
        {
            "properties": {"a": True},
            "patternProperties": {"^x": True},
            "additionalProperties": False,
        },
        [{"a": 1, "xy": 2}],
        [{"b": 1}],
    ),
    ({"additionalProperties": {"type": "string"}}, [{"a": "x"}], [{"a": 1}]),
    ({"propertyNames": {"maxLength": 1}}, [{"a": 1}], [{"ab": 1}]),
    # core 11: unevaluated
    (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        [{"a": 1}, {}],
        [{"a": 1, "b": 1}],
    ),
    (
        {
            "anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": True}}],
            "unevaluatedProperties": False,
        },
        [{"a": None, "b": 1}, {"b": 1}],
        [{"a": 1, "b": 1}],
    ),
    (
        {"if": {"required": ["a"], "properties": {"a": True}}, "unevaluatedProperties": False},
        [{"a": 1}],
        [{"a": 1, "b": 1}],
    ),
    (
        {"properties": {"a": True}, "allOf": [{"unevaluatedProperties": False}]},
        [{}],
        [{"a": 1}],  # a cousin is not seen
    ),
    (
        {
            "prefixItems": [True],
            "contains": {"type": "null"},
            "unevaluatedItems": {"type": "string"},
        },
        [[1, None, "x"]],
        [[1, None, 2]],
    ),
    # core 8.2: references
    ({"$ref": "#/$defs/a%20b~1c~0", "$defs": {"a b/c~": {"type": "null"}}}, [None], [1]),
    ({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}}, [None], [1]),
    ({"$ref": "#/allOf/0", "allOf": [{"type": "null"}]}, [None], [1]),
    ({"$ref": "#/$defs/a", "minimum": 2, "$defs": {"a": {"type": "integer"}}}, [2], [1, "x"]),
    ({"$ref": "#/unknown/a", "unknown": {"a": {"type": "null"}}}, [None], [1]),
    (
        {"properties": {"next": {"$ref": "#"}, "v": {"type": "integer"}}, "required": ["v"]},
        [{"v": 1, "next": {"v": 2}}],
        [{"v": 1, "next": {}}],
    ),
    (
        {"$id": "http://x.test/a", "$ref": "b", "$defs": {"b": {"$id": "b", "type": "null"}}},
        [None],
        [1],
    ),
    (
        {
            "$id": "http://x.test/strict",
            "$dynamicAnchor": "node",
            "$ref": "tree",
            "unevaluatedProperties": False,
            "$defs": {
                "tree": {
                    "$id": "tree",
                    "$dynamicAnchor": "node",
                    "properties": {"data": True, "kids": {"items": {"$dynamicRef": "#node"}}},
                }
            },
        },
        [{"kids": [{"data": 1}]}],
        [{"kids": [{"daat": 1}]}],
    ),
    # annotations, and what is unknown, say nothing
    ({"format": "email", "title": 5, "x-what": {"type": "null"}}, ["no", 1], []),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "null"}, [None], [1]),
]

DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}
DRAFT_07_VERDICTS = [
    (
        {"items": [{"type": "null"}], "additionalItems": {"type": "string"}},
        [[None, "x"]],
        [[1], [None, 1]],
    ),
    ({"items": {"type": "null"}, "additionalItems": False}, [[None, None]], [[1]]),
    ({"items": []}, [[1]], []),
    (
        {"definitions": {"a": {"type": "null"}}, "$ref": "#/definitions/a", "minimum": 9},
        [None],
        [1],
    ),
    (
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        [{"b": 1}, {"c": 1, "d": 1}],
        [{"a": 1}, {"c": 1}],
    ),
    ({"$ref": "#foo", "definitions": {"a": {"$id": "#foo", "type": "null"}}}, [None], [1]),
    (
        {"contains": {"type": "null"}, "minContains": 2, "unevaluatedItems": False},
        [[None, 1]],
        [[1]],
    ),
    ({"prefixItems": [False], "dependentRequired": {"a": ["b"]}}, [[1], {"a": 1}], []),
]

REPORTS = [
    ({"type": "integer"}, "x", "expected integer, got string"),
    ({"type": ["integer", "null"]}, 1.5, "expected integer or null, got number"),
    ({"properties": {"b": {"type": "integer"}}}, {"b": "x"}, "b: expected integer, got string"),
    ({"required": ["b"]}, {}, "b: is required"),
    (
        {"properties": {"items": {"items": {"properties": {"price": {"minimum": 0}}}}}},
        {"items": [{}, {}, {"price": -1}]},
        "items[2].price: must be at least 0",
    ),
    (
        {"properties": {"name": {}, "age": {}}, "additionalProperties": False},
        {"nmae": 1},
        'nmae: unexpected property: expected "name" or "age"',
    ),
    ({"additionalProperties": False}, {"c": 1}, "c: unexpected property"),
    ({"properties": {"a b": {"type": "null"}}}, {"a b": 1}, '["a b"]: expected null, got integer'),
    ({"enum": ["red", "green"]}, "blue", 'expected "red" or "green", got "blue"'),
    (
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "x",
        "expected integer or null, got string",
    ),
    ({"oneOf": [{"const": "a"}, {"const": "b"}]}, "c", 'expected "a" or "b", got "c"'),
    (
        {"anyOf": [{"type": "object", "required": ["id"]}, {"type": "null"}]},
        {},
        "id: is required",  # the alternative that was meant, not "matches none of 2"
    ),
    ({"items": {"maxLength": 2}}, ["a", "abc"], "[1]: must have at most 2 characters"),
    ({"uniqueItems": True}, [1, 2, 1], "[2]: is the same as item 0"),
]

UNUSABLE = [
    5, None, [], "x",
    {"type": 5}, {"type": "int"}, {"type": []}, {"type": ["string", 5]}, {"type": [["string"]]},
    {"required": "x"}, {"required": [1]}, {"enum": 5}, {"minimum": "1"}, {"minimum": True},
    {"multipleOf": 0}, {"multipleOf": -1}, {"minLength": -1}, {"minLength": 1.5}, {"maxItems": None},
    {"pattern": 5}, {"pattern": "("}, {"pattern": "\\p{L}"}, {"pattern": "(?i)a"}, {"patternProperties": {"(": True}},
    {"uniqueItems": "yes"}, {"properties": []}, {"properties": {"a": 5}}, {"items": [True]},
    {"items": 5}, {"allOf": []}, {"anyOf": {}}, {"oneOf": [5]}, {"not": None}, {"if": 5},
    {"contains": True, "minContains": "1"}, {"dependentRequired": {"a": [1]}}, {"dependentSchemas": 1},
    {"additionalProperties": 5}, {"propertyNames": 5}, {"prefixItems": {}},
    {"unevaluatedItems": 5}, {"unevaluatedProperties": []},
    {"$ref": 5}, {"$ref": "#/nowhere"}, {"$ref": "#nowhere"}, {"$ref": "#/type", "type": "null"},
    {"$ref": "http://x.test/schema"}, {"$ref": "other.json"}, {"$ref": "http://[", "$id": "http://x"},
    {"$id": 5}, {"$anchor": 5}, {"$dynamicRef": "#nowhere"},
    {"$schema": 5}, {"$schema": "http://json-schema.org/draft-04/schema#"}, {"$schema": "x"},
    {"properties": {"a": {"items": {"type": "nothing"}}}},
]  # fmt: skip


def nested_schema(depth):
    schema = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def nested_array(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


class TestValidation:
    """JSON Schema 2020-12, and draft-07 where it is declared."""

    @pytest.mark.parametrize("schema, good, bad", VERDICTS, ids=repr)
    def test_keyword_admits_what_the_specification_says(self, schema, good, bad):
        validator = m.compile_schema(schema)
        assert [value for value in good if validator.errors(value)] == []
        assert [value for value in bad if not validator.errors(value)] == []

    @pytest.mark.parametrize("schema, good, bad", DRAFT_07_VERDICTS, ids=repr)
    def test_draft_07_is_understood_where_it_is_declared(self, schema, good, bad):
        validator = m.compile_schema({**DRAFT_07, **schema})
        assert [value for value in good if validator.errors(value)] == []
        assert [value for value in bad if not validator.errors(value)] == []

    @pytest.mark.parametrize("schema, value, report", REPORTS)
    def test_failure_names_the_path_and_what_was_expected(self, schema, value, report):
        with pytest.raises(m.SchemaError) as caught:
            m.compile_schema(schema).check(value)
        assert str(caught.value) == report

    @pytest.mark.parametrize("schema", UNUSABLE, ids=repr)
    def test_unusable_schema_is_refused_when_compiled(self, schema):
        with pytest.raises(m.SchemaError):
            m.compile_schema(schema)

    def test_unusable_schema_is_refused_with_place_and_remedy(self):
        with pytest.raises(m.SchemaError, match=r"^#/properties/a: type must be one or more of"):
            m.compile_schema({"properties": {"a": {"type": "int"}}})
        with pytest.raises(m.SchemaError, match=r"not fetched: put it under \$defs"):
            m.compile_schema({"$ref": "http://x.test/schema"})
        with pytest.raises(m.SchemaError, match="use prefixItems"):
            m.compile_schema({"items": [True]})

    def test_all_failures_are_listed_up_to_a_limit(self):
        validator = m.compile_schema({"items": {"type": "null"}})
        assert len(validator.errors([1, 2, 3])) == 3
        assert len(validator.errors([1] * 100)) == m.MAX_FAILURES

    def test_subclasses_of_json_types_are_what_they_inherit(self):
        import collections

        validator = m.compile_schema({"type": "object", "required": ["a"]})
        assert validator.errors(collections.OrderedDict(a=1)) == []
        assert len(validator.errors(collections.OrderedDict())) == 1

    def test_reference_that_leads_to_itself_is_an_error_and_not_a_hang(self):
        for loop in (
            {"$ref": "#"},
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            },
            {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
            {"not": {"$ref": "#"}},
        ):
            validator = m.compile_schema(loop)
            with pytest.raises(m.SchemaError):
                validator.check(1)

    def test_recursion_that_consumes_the_value_is_fine(self):
        validator = m.compile_schema({"type": "array", "items": {"$ref": "#"}})
        validator.check(nested_array(100))


class TestPlainMembers:
    """Objects whose members need no more than a type are checked in one go."""

    SCHEMAS = [
        {"a": {"type": "string", "description": "d", "default": "x"}, "b": {"type": "integer"}},
        {"a": {"type": "number"}, "b": {"type": "boolean", "title": "t"}},
        {"a": {"type": "string", "minLength": 2}, "b": {"type": ["string", "null"]}},
        {"a": {"enum": ["xx", 1]}, "b": True},
        {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "integer"}},
    ]
    FURTHER = [
        {},
        {"required": ["a"], "additionalProperties": False},
        {"required": ["b", "c"]},
        {"additionalProperties": {"type": "integer"}},
        {"maxProperties": 1},
        {"propertyNames": {"maxLength": 1}},
        {"not": {"required": ["a"]}},
        {"dependentRequired": {"a": ["b"]}},
    ]
    MEMBERS = ["x", "xx", "", 1, 1.0, 1.5, True, None, [1], ["x"], {}]

    def test_the_short_way_says_what_the_long_way_says(self):
        values = [
            dict(pair)
            for a in [[], *([("a", value)] for value in self.MEMBERS)]
            for b in [[], *([("b", value)] for value in self.MEMBERS)]
            for pair in (a + b, a + b + [("c", 1)], b + [("cc", "x")])
        ]
        passed = 0
        for properties, further in itertools.product(self.SCHEMAS, self.FURTHER):
            validator = m.compile_schema({"type": "object", "properties": properties, **further})
            for value in values:
                failures = validator.failures(value)
                if failures:
                    with pytest.raises(m.SchemaError) as caught:
                        validator.check(value)
                    assert caught.value.path == failures[0].path
                else:
                    assert validator.check(value) is None
                passed += not failures
        assert 1000 < passed < len(values) * 39


class TestSchemaLimits:
    """Schema and value may be hostile: each limit, at it and one past it."""

    def test_depth_of_a_schema(self):
        m.compile_schema(nested_schema(m.MAX_SCHEMA_DEPTH))
        with pytest.raises(m.SchemaError, match="nested deeper"):
            m.compile_schema(nested_schema(m.MAX_SCHEMA_DEPTH + 1))
        with pytest.raises(m.SchemaError):
            m.compile_schema(nested_schema(100_000))

    def test_number_of_subschemas(self):
        m.compile_schema({"anyOf": [{}] * (m.MAX_SUBSCHEMAS - 1)})
        with pytest.raises(m.SchemaError, match="subschemas"):
            m.compile_schema({"anyOf": [{}] * m.MAX_SUBSCHEMAS})

    def test_depth_of_a_validation(self):
        validator = m.compile_schema({"minItems": 0, "items": {"$ref": "#"}})
        fits = (m.MAX_VALIDATION_DEPTH - 1) // 2
        validator.check(nested_array(fits))
        with pytest.raises(m.SchemaError, match="nested too deeply"):
            validator.check(nested_array(fits + 1))
        with pytest.raises(m.SchemaError):
            validator.check(nested_array(100_000))

    def test_work_of_a_validation(self, monkeypatch):
        validator = m.compile_schema({"items": {"allOf": [{"minimum": 0}]}})
        monkeypatch.setattr(m, "MAX_VALIDATION_STEPS", 2 + 10 + 10 * 3)
        validator.check([1] * 10)
        with pytest.raises(m.SchemaError, match="too much work"):
            validator.check([1] * 11)

    @pytest.mark.parametrize(
        "schema, value",
        [
            ({"anyOf": [{"required": ["x"], "items": {"type": "null"}}] * 3000}, [0] * 3000),
            ({"items": {"anyOf": [{"required": ["x"] * 1000, "minimum": 1}] * 100}}, [0] * 2000),
            ({"allOf": [{"uniqueItems": True}] * 5000}, list(range(20_000))),
            (
                {"allOf": [{"additionalProperties": {"minimum": 1}}] * 5000},
                {str(i): 1 for i in range(20_000)},
            ),
            ({"allOf": [{"enum": [0]}, {"const": [0]}] * 2500}, [0] * 50_000),
            (
                {"patternProperties": {f"{i}x": True for i in range(5000)}},
                {str(i): 1 for i in range(20_000)},
            ),
            ({"allOf": [{"required": [str(i) for i in range(5000)]}] * 2000}, {}),
            ({"items": {"allOf": [{"multipleOf": 1e-300}] * 1000}}, [1.5e300] * 10_000),
            (
                {
                    "items": {
                        "anyOf": [{"properties": {"a" * 60: 1 > 0}, "additionalProperties": False}]
                        * 500
                    }
                },
                [{"a" * 59: 1}] * 10_000,
            ),
            (
                {
                    "$defs": {
                        str(i): {"$id": f"x:{i}", "$dynamicAnchor": "a", "$dynamicRef": "#a"}
                        for i in range(4000)
                    },
                    "$ref": "#/$defs/0",
                },
                1,
            ),
            ({"patternProperties": {f"{i}" + "[a-z]" * 200: True for i in range(9000)}}, {"a": 1}),
            (
                {
                    "patternProperties": {
                        f"(?i:{i}" + "[\u0000-\uffff]" * 200: True for i in range(9000)
                    }
                },
                {},
            ),
        ],
    )
    def test_product_of_big_schema_and_big_value_is_not_computed(self, schema, value, monkeypatch):
        """With a tenth of the steps, in a tenth of the time that all of them may take."""
        monkeypatch.setattr(m, "MAX_VALIDATION_STEPS", m.MAX_VALIDATION_STEPS // 10)
        started = time.perf_counter()
        with contextlib.suppress(m.SchemaError):
            m.compile_schema(schema).check(value)
        assert time.perf_counter() - started < 2

    def test_patterns_count_as_subschemas_for_the_time_they_take(self):
        each = 1003 >> 4  # subschemas' worth for a pattern of 1003 characters
        patterns = {f"{i:03}" + "a" * 1000: True for i in range((m.MAX_SUBSCHEMAS - 1) // each + 1)}
        with pytest.raises(m.SchemaError, match="subschemas"):
            m.compile_schema({"patternProperties": patterns})
        patterns.popitem()
        m.compile_schema({"patternProperties": patterns})

    def test_length_of_a_pattern_and_of_what_it_is_matched_with(self):
        m.compile_schema({"pattern": "a" * m.MAX_PATTERN_CHARS})
        with pytest.raises(m.SchemaError, match="too long"):
            m.compile_schema({"pattern": "a" * (m.MAX_PATTERN_CHARS + 1)})
        validator = m.compile_schema({"pattern": "a$"})
        validator.check("a" * m.MAX_PATTERN_INPUT_CHARS)
        with pytest.raises(m.SchemaError, match="too long for a pattern"):
            validator.check("a" * (m.MAX_PATTERN_INPUT_CHARS + 1))

    def test_length_of_the_uris_that_subschemas_join(self):
        start = "http://x.test/"
        long = start + "a" * (m.MAX_URI_CHARS - len(start))
        m.compile_schema({"$id": long})
        with pytest.raises(m.SchemaError, match="too long for a URI"):
            m.compile_schema({"$id": long + "a"})
        with pytest.raises(m.SchemaError, match="too long for a URI"):
            m.compile_schema({"$id": long, "$defs": {"a": {"$id": "b"}}})

    def test_shared_and_cyclic_python_objects_are_bounded_too(self):
        schema = {}
        schema["items"] = schema
        with pytest.raises(m.SchemaError):
            m.compile_schema(schema)
        schema = {}
        for _ in range(40):
            schema = {"allOf": [schema, schema]}
        with pytest.raises(m.SchemaError):
            m.compile_schema(schema)

    def test_garbage_gives_schema_errors_and_nothing_else(self):
        """Schemas of keywords with arguments of any make, and values of any make."""
        dice = rng("schemas")
        words = [*m.KEYWORDS, "$id", "$anchor", "$dynamicAnchor", "$schema"]
        words += ["$defs", "definitions", "then", "else", "minContains", "maxContains"]
        words += ["additionalItems", "dependencies"]  # draft-07
        scraps = [
            None,
            True,
            False,
            0,
            -1,
            1.5,
            1e308,
            10**30,
            "",
            "a",
            "#",
            "#/$defs/a",
            "(",
            "[a",
        ]
        scraps += [
            "string",
            "object",
            "http://[",
            "~2",
            "#/%zz",
            "x:y",
            DRAFT_07["$schema"],
            "\ud800",
        ]

        def thing(depth):
            roll = dice.random()
            if depth == 0 or roll < 0.3:
                return dice.choice(scraps)
            if roll < 0.5:
                return [thing(depth - 1) for _ in range(dice.randrange(4))]
            if roll < 0.6:
                return {dice.choice("abc"): thing(depth - 1) for _ in range(dice.randrange(4))}
            return {dice.choice(words): thing(depth - 1) for _ in range(dice.randrange(1, 5))}

        compiled = 0
        for _ in range(20_000):
            try:
                validator = m.compile_schema(thing(4))
                compiled += 1
                for _ in range(3):
                    validator.check(thing(3))
            except m.SchemaError:
                pass
        assert compiled > 1000


###############################################################################
# T10. Python signatures
###############################################################################


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
class Area:
    width: int
    height: int
    size: int = dataclasses.field(init=False)

    def __post_init__(self):
        if self.width < 0:
            raise ValueError("width is negative")
        self.size = self.width * self.height


class Diary(typing.TypedDict, total=False):
    day: datetime.date
    later: "Diary"


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


@dataclasses.dataclass
class Cat:
    kind: typing.Literal["cat"]
    name: str


@dataclasses.dataclass
class Dog:
    kind: typing.Literal["dog"]
    name: str


UserId = typing.NewType("UserId", int)

ANNOTATIONS = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (typing.Any, {}),
    (object, {}),
    (list, {"type": "array"}),
    (dict, {"type": "object"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (typing.Sequence[int], {"type": "array", "items": {"type": "integer"}}),
    (typing.List[typing.Any], {"type": "array"}),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (frozenset, {"type": "array", "uniqueItems": True}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (typing.Mapping[str, typing.Any], {"type": "object"}),
    (
        dict[Color, int],
        {
            "type": "object",
            "propertyNames": {"enum": ["red", "green"]},
            "additionalProperties": {"type": "integer"},
        },
    ),
    (typing.Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (typing.Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (typing.Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (typing.Literal[1, "b", None], {"type": ["integer", "null", "string"], "enum": [1, "b", None]}),
    (Color, {"type": "string", "enum": ["red", "green"]}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (datetime.datetime, {"type": "string", "format": "date-time"}),
    (datetime.date, {"type": "string", "format": "date"}),
    (datetime.time, {"type": "string", "format": "time"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (pathlib.Path, {"type": "string"}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (UserId, {"type": "integer"}),
    (typing.Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
    (
        typing.Annotated[int, {"minimum": 1}, "n", object()],
        {"type": "integer", "minimum": 1, "description": "n"},
    ),
    (typing.Annotated[str, m.Header("Region")], {"type": "string", "x-mcp-header": "Region"}),
    (
        Point,
        {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "y": {"type": "number", "default": 0.5},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["x"],
            "additionalProperties": False,
        },
    ),
    (
        Pair,
        {
            "type": "object",
            "properties": {
                "left": {"type": "integer"},
                "right": {"type": "string", "enum": ["red", "green"], "default": "red"},
            },
            "required": ["left"],
            "additionalProperties": False,
        },
    ),
    (
        Film,
        {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "when": {"type": "string", "format": "date"},
            },
            "required": ["title"],
        },
    ),
    (
        Node,
        {
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "integer"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                        "parent": {
                            "anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}],
                            "default": None,
                        },
                    },
                    "required": ["value"],
                    "additionalProperties": False,
                }
            },
        },
    ),
]

MOMENT = datetime.datetime(2026, 7, 28, 10, 0, 0, 500000, datetime.timezone.utc)
# (annotation, JSON, the Python value, the JSON of that if it differs)
CONVERSIONS = [
    (int, 3.0, 3),
    (list[int], [1.0, 2], [1, 2]),
    (float, 1, 1),
    (bytes, "aGk=", b"hi"),
    (pathlib.PurePosixPath, "/a/b", pathlib.PurePosixPath("/a/b")),
    (
        uuid.UUID,
        "12345678-1234-5678-1234-567812345678",
        uuid.UUID(int=0x12345678123456781234567812345678),
    ),
    (datetime.datetime, "2026-07-28T10:00:00.5Z", MOMENT, "2026-07-28T10:00:00.500000+00:00"),
    (datetime.datetime, "2026-07-28T10:00:00.500000+00:00", MOMENT),
    (datetime.date, "2026-07-28", datetime.date(2026, 7, 28)),
    (
        datetime.time,
        "10:30:00Z",
        datetime.time(10, 30, tzinfo=datetime.timezone.utc),
        "10:30:00+00:00",
    ),
    (Color, "green", Color.GREEN),
    (Level, 2, Level.HIGH),
    (typing.Literal[Color.RED], "red", Color.RED),
    (set[str], ["b", "a"], {"a", "b"}, ["a", "b"]),
    (tuple[int, ...], [1, 2], (1, 2)),
    (tuple[Color, bytes], ["red", "aGk="], (Color.RED, b"hi")),
    (dict[Color, bytes], {"red": "aGk="}, {Color.RED: b"hi"}),
    (typing.Optional[datetime.date], None, None),
    (typing.Optional[datetime.date], "2026-07-28", datetime.date(2026, 7, 28)),
    (typing.Union[Point, Pair], {"left": 1}, Pair(1), {"left": 1, "right": "red"}),
    (typing.Union[int, str], "3", "3"),
    (typing.Union[Cat, Dog], {"kind": "dog", "name": "Rex"}, Dog("dog", "Rex")),
    (Point, {"x": 1}, Point(1), {"x": 1, "y": 0.5, "tags": []}),
    (
        Film,
        {"title": "M", "when": "1931-05-11"},
        {"title": "M", "when": datetime.date(1931, 5, 11)},
    ),
    (
        Node,
        {"value": 1, "children": [{"value": 2, "children": [], "parent": None}], "parent": None},
        Node(1, [Node(2)]),
    ),
    (UserId, 5, 5),
    (typing.Annotated[Color, "which"], "red", Color.RED),
]


class TestAnnotations:
    """schema_of(), converter_of(), to_json(): three readings of one annotation."""

    @pytest.mark.parametrize("annotation, schema", ANNOTATIONS, ids=repr)
    def test_annotation_has_this_schema(self, annotation, schema):
        assert m.schema_of(annotation) == schema
        m.compile_schema(schema)

    @pytest.mark.parametrize("row", CONVERSIONS, ids=repr)
    def test_value_crosses_and_comes_back(self, row):
        annotation, given, value = row[:3]
        m.compile_schema(m.schema_of(annotation)).check(given)
        convert = m.converter_of(annotation) or (lambda json: json)
        assert convert(given) == value and type(convert(given)) is type(value)
        back = m.to_json(value)
        assert back == (row[3] if len(row) > 3 else given)
        m.compile_schema(m.schema_of(annotation, output=True)).check(back)
        json.dumps(back, allow_nan=False)

    @pytest.mark.parametrize(
        "annotation",
        [str, list[str], dict[str, typing.Any], typing.Optional[bool], Movie.__base__, list],
    )
    def test_plain_json_needs_no_converter(self, annotation):
        assert m.converter_of(annotation) is None

    @pytest.mark.parametrize(
        "annotation, given, report",
        [
            (bytes, "a", "is not usable: "),
            (datetime.date, "tomorrow", "is not usable: "),
            (Area, {"width": -1, "height": 1}, "is not usable: width is negative"),
            (
                list[Area],
                [{"width": 1, "height": 1}, {"width": -1, "height": 1}],
                "[1]: is not usable",
            ),
            (dict[str, list[datetime.date]], {"a": ["2026-01-01", "x"]}, "a[1]: is not usable"),
            (typing.Optional[uuid.UUID], "x", "is not usable: "),
            (Diary, {"later": {"later": {"day": "x"}}}, "later.later.day: is not usable"),
        ],
    )
    def test_failed_conversion_is_a_schema_error_with_its_path(self, annotation, given, report):
        with pytest.raises(m.SchemaError) as caught:
            m.converter_of(annotation)(given)
        assert str(caught.value).startswith(report)

    @pytest.mark.parametrize(
        "annotation",
        [threading.Thread, dict[int, str], typing.Callable[[], int], typing.TypeVar("T"), 5],
    )
    def test_annotation_that_json_cannot_say_is_a_type_error(self, annotation):
        with pytest.raises(TypeError):
            m.schema_of(annotation)

    def test_value_that_json_cannot_say_is_a_type_error_with_its_path(self):
        with pytest.raises(TypeError, match=r"^object at a\[1\]\.b has no JSON form"):
            m.to_json({"a": [1, {"b": object()}]})
        loop = []
        loop.append(loop)
        with pytest.raises(TypeError, match="contains itself"):
            m.to_json(loop)

    def test_plain_values_are_left_as_they_are_and_subclasses_made_plain(self):
        class Text(str):
            def __str__(self):
                return "something else"

        for value in (None, True, 1, 1.5, "x", [1, [2]], {"a": {"b": []}}):
            assert m.to_json(value) == value
        assert type(m.to_json(Text("x"))) is str and m.to_json(Text("x")) == "x"
        assert type(m.to_json(Level.LOW)) is int
        assert m.to_json(range(3)) == [0, 1, 2]
        assert m.to_json(Area(2, 3)) == {"width": 2, "height": 3, "size": 6}

    def test_result_that_is_no_object_is_wrapped(self):
        assert m.output_schema_of(Point)[0]["required"] == ["x", "y", "tags"]
        assert m.output_schema_of(Area)[0]["required"] == ["width", "height", "size"]
        assert m.output_schema_of(dict[str, int])[1] is False
        assert m.output_schema_of(list[int]) == (
            {
                "type": "object",
                "properties": {"result": {"type": "array", "items": {"type": "integer"}}},
                "required": ["result"],
            },
            True,
        )
        schema, wrapped = m.output_schema_of(Node)
        assert schema["type"] == "object" and "Node" in schema["$defs"] and not wrapped
        m.compile_schema(schema).check(m.to_json(Node(1, [Node(2)])))
        schema, wrapped = m.output_schema_of(typing.Optional[Node])
        assert wrapped and "Node" in schema["$defs"]
        m.compile_schema(schema).check({"result": m.to_json(Node(1))})

    @pytest.mark.parametrize(
        "annotation",
        [
            m.EMPTY,
            None,
            typing.Any,
            Color,
            list[Color],
            typing.Optional[Color],
            typing.Annotated[Color, "x"],
        ],
    )
    def test_result_without_a_schema(self, annotation):
        assert m.output_schema_of(annotation, (Color,)) == (None, False)


class FakeContext:
    """Stands for the class Context of section 15."""


def annotated_in_strings(
    a: "int", b: "typing.Optional[Node]" = None, *, c: typing.List["Point"] = ()
): ...


def google_style(a: int, b: typing.Annotated[int, "explicit"] = 1, **rest: str) -> int:
    """Add two numbers.

    At length.

    Args:
        a (int): the first: a number
            that goes on

            and on
        b: the second
        **rest: ignored

    Returns:
        the sum
    """


def numpy_style(a, b=1):
    """Add two numbers.

    Parameters
    ----------
    a : int
        the first
    b
        the second
        number

    Returns
    -------
    int
        the sum
    """


def rest_style(a, b=1):
    """Add two numbers.

    :param a: the first
    :param int b: the second
        number
    :type a: int
    :returns: the sum
    """


class Callables:
    """Say it."""

    def method(self, a: int):
        """Do it."""
        return self, a

    @classmethod
    def of_class(cls, a: int): ...

    @staticmethod
    def static(a: int): ...

    def __call__(self, a: int): ...


def wrapped(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


def positional(ctx: FakeContext, a: int, b: bytes = b"", c: int = 3, /, d: int = 4):
    return ctx, a, b, c, d


def hints_hidden_from_us(a: int, ctx: m.NoSuchModule.FakeContext): ...


def optional_context(ctx: FakeContext | None, a: int = 1): ...


def run_source(source):
    """Execute `source` without this file's `from __future__`; return its names."""
    names = {"__name__": __name__, "typing": typing, "FakeContext": FakeContext}
    exec(compile(source, "<test>", "exec", dont_inherit=True), names)
    return names


class TestSignatures:
    """What a function says about its arguments."""

    def test_parameters_become_an_object(self):
        assert m.signature_of(google_style).schema == {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "the first: a number that goes on and on"},
                "b": {"type": "integer", "description": "explicit", "default": 1},
            },
            "required": ["a"],
            "additionalProperties": True,
        }
        assert m.signature_of(google_style).returns is int
        assert m.signature_of(numpy_style).returns is m.EMPTY

    @pytest.mark.parametrize("fn", [str.upper, len])
    def test_functions_written_in_c_take_anything(self, fn):
        signature = m.signature_of(fn)
        assert [*signature.schema["properties"].values()] == [{}]
        assert signature.call_args({next(iter(signature.schema["properties"])): "x"}) == (["x"], {})

    @pytest.mark.parametrize("fn", [google_style, numpy_style, rest_style])
    def test_docstring_is_divided_into_description_and_parameters(self, fn):
        signature = m.signature_of(fn)
        assert signature.description.startswith("Add two numbers.")
        assert "first" not in signature.description and "second" not in signature.description
        assert "the sum" in signature.description
        assert signature.schema["properties"]["a"]["description"].startswith("the first")
        if fn is not google_style:
            assert signature.schema["properties"]["b"]["description"] == "the second number"

    def test_annotations_in_strings_are_resolved(self):
        schema = m.signature_of(annotated_in_strings).schema
        assert schema["properties"]["a"] == {"type": "integer"}
        assert schema["properties"]["b"]["anyOf"] == [{"$ref": "#/$defs/Node"}, {"type": "null"}]
        assert schema["properties"]["c"]["items"]["required"] == ["x"]
        assert list(schema["$defs"]) == ["Node"]
        m.compile_schema(schema).check({"a": 1, "b": {"value": 1, "children": [{"value": 2}]}})

    @pytest.mark.parametrize(
        "fn, doc",
        [
            (Callables().method, "Do it."),
            (Callables.of_class, ""),
            (Callables.static, ""),
            (Callables(), "Say it."),
            (wrapped(Callables().method), "Do it."),
            (functools.partial(Callables.method, Callables()), "Do it."),
        ],
    )
    def test_everything_that_can_be_called_has_a_signature(self, fn, doc):
        signature = m.signature_of(fn)
        assert signature.schema["properties"] == {"a": {"type": "integer"}}
        assert signature.description == doc

    def test_argument_that_a_partial_has_bound_is_not_the_models(self):
        signature = m.signature_of(functools.partial(numpy_style, b=5))
        assert list(signature.schema["properties"]) == ["a"]
        with pytest.raises(m.SchemaError, match="unexpected"):
            m.compile_schema(signature.schema).check({"a": 1, "b": 6})

    def test_what_a_partial_or_a_method_has_filled_cannot_be_replaced_through_kwargs(self):
        def pay(user, amount, **rest):
            return user, amount, rest

        class Bank:
            def pay(self, amount, **rest): ...

        class Clerk:
            def __call__(self, amount, **rest): ...

        def hide(fn):
            wrapper = wrapped(fn)
            wrapper.__signature__ = inspect.signature(functools.partial(fn, "me"))
            return wrapper

        for fn, name in (
            (functools.partial(pay, user="me"), "user"),
            (functools.partial(functools.partial(pay, user="me"), limit=1), "user"),
            (functools.partial(pay, user="me", limit=1), "limit"),
            (functools.partial(pay, "me"), "user"),
            (wrapped(functools.partial(pay, user="me")), "user"),
            (hide(pay), "user"),
            (Bank().pay, "self"),
            (Clerk(), "self"),
        ):
            for schema in (None, {"type": "object"}):
                signature = m.signature_of(fn, schema=schema)
                if signature.whole:
                    continue
                assert signature.call_args({"amount": 1, "b": 2}) == ([], {"amount": 1, "b": 2})
                with pytest.raises(m.SchemaError, match=f"^{name}: unexpected property"):
                    signature.call_args({"amount": 1, name: "root"})

    def test_a_bound_argument_is_bound_under_a_schema_of_the_authors_own_too(self):
        def pay(user, amount, note=""): ...

        schema = {"properties": {"amount": {"type": "integer"}}}
        signature = m.signature_of(functools.partial(pay, user="me"), None, schema)
        with pytest.raises(m.SchemaError, match="^user: unexpected property"):
            signature.call_args({"amount": 1, "user": "root"})

    @pytest.mark.parametrize(
        "source, context",
        [
            ("def f(a, ctx): ...", "ctx"),
            ("def f(ctx, /, a): ...", "ctx"),
            ("def f(a, *, ctx=None): ...", "ctx"),
            ("def f(a, c: FakeContext): ...", "c"),
            ("def f(a, c: 'typing.Optional[FakeContext]' = None): ...", "c"),
            ("def f(a, c: typing.Annotated[FakeContext, 'x']): ...", "c"),
            ("def f(a, context): ...", None),
            ("def f(a, ctx: str): ...", None),
        ],
    )
    def test_context_is_the_parameter_of_its_class_or_an_unannotated_ctx(self, source, context):
        fn = run_source(source)["f"]
        found = m.parameters_of(fn, FakeContext)
        assert found.context == context
        rest = {"a", "ctx", "context"} & {*inspect.signature(fn).parameters} - {context}
        assert {p.name for p in found.values} == rest
        assert m.parameters_of(fn).context is None
        assert list(m.signature_of(fn, FakeContext).schema["properties"]) == [*sorted(rest)]

    def test_two_parameters_for_the_context_are_refused(self):
        fn = run_source("def f(ctx, other: FakeContext): ...")["f"]
        with pytest.raises(TypeError, match=r"f\(\): parameter 'other': 'ctx' is the context already"):
            m.signature_of(fn, FakeContext)

    def test_one_parameter_that_a_given_schema_does_not_name_takes_all_arguments(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
        for source in (
            "def f(given): ...",
            "def f(given: 'Nowhere', ctx: FakeContext) -> 'Nowhere': ...",
            "def f(given, *rest): ...",
            "def f(given, /, ctx): ...",
        ):
            signature = m.signature_of(run_source(source)["f"], FakeContext, schema)
            assert (signature.whole, signature.schema) == ("given", schema)
            args, kwargs = signature.call_args({"a": 1, "self": 2}, "the context")
            assert [*args, *kwargs.values()][0] == {"a": 1, "self": 2}
            assert "the context" in kwargs.values() or not signature.parameters.context
        signature = m.signature_of(run_source("def f(a: bytes): ...")["f"], FakeContext, schema)
        assert signature.call_args({"a": "aGk="}) == ([], {"a": b"hi"})
        two = run_source("def f(a: 'Nowhere', b): ...")["f"]
        with pytest.raises(TypeError, match=r"^f\(\): parameter 'a'.*level, not under TYPE_CHECKING$"):
            m.signature_of(two, FakeContext, schema)

    def test_a_callable_that_invents_attributes_is_not_unwrapped_for_ever(self):
        class Endless:
            __signature__ = inspect.Signature()

            def __getattr__(self, name):
                if name == "__wrapped__":
                    return Endless()
                raise AttributeError(name)

            def __call__(self): ...

        assert len(m._layers(Endless())) == m.MAX_LAYERS

    def test_positional_only_parameters_are_passed_by_position(self):
        signature = m.signature_of(positional, FakeContext)
        assert signature.parameters.context == "ctx" and signature.schema["required"] == ["a"]
        args, kwargs = signature.call_args({"a": 1.0, "c": 5, "d": 6}, "the context")
        assert positional(*args, **kwargs) == ("the context", 1, b"", 5, 6)
        assert type(args[1]) is int
        args, kwargs = signature.call_args({"a": 1, "b": "aGk="}, "the context")
        assert positional(*args, **kwargs) == ("the context", 1, b"hi", 3, 4)

    @pytest.mark.parametrize("fn", [optional_context, hints_hidden_from_us])
    def test_context_is_found_by_its_name_where_it_cannot_be_evaluated(self, fn):
        signature = m.signature_of(fn, FakeContext)
        assert signature.parameters.context == "ctx"
        assert list(signature.schema["properties"]) == ["a"]

    def test_arguments_cannot_replace_the_context(self):
        def fn(ctx: FakeContext, **rest): ...

        fn.__annotations__["ctx"] = FakeContext
        signature = m.signature_of(fn, FakeContext)
        assert signature.call_args({"ctx": "theirs"}, "ours") == ([], {"ctx": "ours"})

    def test_bind_leaves_the_arguments_alone_and_names_the_path(self):
        names = run_source("import datetime\ndef f(a: list[datetime.date], b: int = 0): ...")
        signature = m.signature_of(names["f"])
        given = {"a": ["2026-01-01"]}
        assert signature.bind(given) == {"a": [datetime.date(2026, 1, 1)]}
        assert given == {"a": ["2026-01-01"]}
        with pytest.raises(m.SchemaError, match=r"^a\[0\]: is not usable"):
            signature.bind({"a": ["x"]})

    @pytest.mark.parametrize(
        "source, default",
        [
            ("def f(a: int = 5): ...", {"default": 5}),
            ("def f(a: int = None): ...", {}),
            ("def f(a: typing.Optional[int] = None): ...", {"default": None}),
            ("def f(a: float = float('nan')): ...", {}),
            ("def f(a=object()): ...", {}),
            ("def f(a: bytes = b'hi'): ...", {"default": "aGk="}),
        ],
    )
    def test_default_is_told_where_json_can(self, source, default):
        signature = m.signature_of(run_source(source)["f"])
        schema = signature.schema["properties"]["a"]
        assert {k: v for k, v in schema.items() if k == "default"} == default
        assert "required" not in signature.schema

    @pytest.mark.parametrize(
        "source, words",
        [
            (
                "def f(x: 'Nowhere'): ...",
                ["f()", "'x'", "Nowhere", "module level", "input_schema="],
            ),
            ("def f(x: 'int +'): ...", ["f()", "'x'", "input_schema="]),
            ("class A: ...\ndef f(x: A): ...", ["f()", "'x'", "dataclass", "input_schema="]),
            ("def f(*x): ...", ["f()", "'x'", "list", "input_schema="]),
            ("def f(a: FakeContext, b: FakeContext): ...", ["f()", "'b'", "'a'"]),
            ("def f() -> 'Nowhere': ...", ["f()", "result", "Nowhere"]),
            ("def f(x: dict[int, str]): ...", ["f()", "'x'", "strings"]),
            ("def f(x: [int]): ...", ["f()", "'x'"]),
        ],
    )
    def test_what_json_cannot_fill_is_refused_at_registration(self, source, words):
        with pytest.raises(TypeError) as caught:
            m.signature_of(run_source(source)["f"], FakeContext)
        assert [word for word in words if word not in str(caught.value)] == []

    @pytest.mark.skipif(sys.version_info >= (3, 10), reason="evaluated there")
    def test_union_in_a_string_has_a_remedy_on_python_39(self):
        with pytest.raises(TypeError, match=r"'x'.*write Optional\[int\]"):
            m.signature_of(run_source("def f(x: 'int | None'): ...")["f"])

    @pytest.mark.skipif(sys.version_info >= (3, 11), reason="evaluated there")
    def test_string_inside_a_builtin_has_a_remedy_before_python_311(self):
        with pytest.raises(TypeError, match=r"'x'.*'Node' has no JSON Schema: quote all of it"):
            m.signature_of(run_source("def f(x: list['Node']): ...")["f"])

    def test_annotation_that_is_all_a_string_is_evaluated(self):
        names = run_source("class Node(typing.TypedDict): ...\ndef f(x: 'list[Node]'): ...")
        schema = m.signature_of(names["f"]).schema["properties"]["x"]
        assert schema == {"type": "array", "items": {"type": "object", "properties": {}}}

    @pytest.mark.skipif(sys.version_info < (3, 10), reason="no such syntax")
    def test_union_with_a_bar(self):
        names = run_source("def f(x: int | None, y: 'list[str] | int' = 1): ...")
        schema = m.signature_of(names["f"]).schema["properties"]
        assert schema["x"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
        assert schema["y"]["anyOf"][0]["type"] == "array"

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="no such names")
    def test_required_and_not_required(self):
        source = (
            "class T(typing.TypedDict):\n  a: int\n  b: typing.NotRequired[bytes]\n"
            "class S(T, total=False):\n  c: typing.Required['int']\n"
            "  d: 'typing.Annotated[typing.Required[int], 0]'\n  e: int\n"
        )
        names = run_source(source)
        assert m.schema_of(names["S"])["required"] == ["a", "c", "d"]
        assert m.converter_of(names["T"])({"a": 1.0, "b": "aGk="}) == {"a": 1, "b": b"hi"}

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="no such syntax")
    def test_type_statement_may_be_recursive(self):
        names = run_source(
            "type Tree = dict[str, Tree] | int\ntype Id = int\ndef f(t: Tree, i: Id): ..."
        )
        signature = m.signature_of(names["f"])
        assert signature.schema["properties"] == {
            "t": {"$ref": "#/$defs/Tree"},
            "i": {"type": "integer"},
        }
        m.compile_schema(signature.schema).check({"t": {"a": {"b": 1}}, "i": 1})
        assert signature.bind({"t": {"a": {"b": 1.0}}, "i": 2.0}) == {"t": {"a": {"b": 1}}, "i": 2}


RELAXED = [
    ({"type": "integer"}, "3", 3),
    ({"type": "integer"}, "-3", -3),
    ({"type": "integer"}, "3.0", 3.0),
    ({"type": "integer"}, "3.5", "3.5"),
    ({"type": "integer"}, "+3", "+3"),
    ({"type": "integer"}, " 3", " 3"),
    ({"type": "integer"}, "\u0663", "\u0663"),
    ({"type": "integer"}, "1_0", "1_0"),
    ({"type": "integer"}, "9" * (m.MAX_INT_DIGITS + 1), "9" * (m.MAX_INT_DIGITS + 1)),
    ({"type": "number"}, "2.5e1", 25.0),
    ({"type": "number"}, "NaN", "NaN"),
    ({"type": "boolean"}, "true", True),
    ({"type": "boolean"}, "True", "True"),
    ({"type": "boolean"}, "1", "1"),
    ({"type": "array"}, "[1, 2]", [1, 2]),
    ({"type": "object"}, '{"a": 1}', {"a": 1}),
    ({"type": "object"}, "[1]", "[1]"),
    ({"type": "object"}, "{", "{"),
    ({"type": "array"}, "[" * 1000, "[" * 1000),
    ({"type": ["integer", "null"]}, "null", None),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", 3),
    ({"enum": [1, 2]}, "2", 2),
    ({"$ref": "#/$defs/N"}, '{"v": 1}', {"v": 1}),
    ({"type": "integer", "minimum": 5}, "3", 3),  # the check will say what is wrong with it
    ({"allOf": [{"type": "integer"}]}, "3", 3),
    ({"type": "integer"}, "true", "true"),
    # where a string may be meant, it is
    ({"type": "string"}, "3", "3"),
    ({"type": ["string", "integer"], "minLength": 2}, "3", "3"),
    ({"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer"}]}, "3", "3"),
    ({}, "3", "3"),
    (True, "3", "3"),
    ({"type": ["integer", "string"]}, "3", "3"),
    ({"anyOf": [{"type": "integer"}, {}]}, "3", "3"),
    ({"enum": [1, "x"]}, "1", "1"),
    ({"const": "x"}, "1", "1"),
    ({"$ref": "#/$defs/S"}, "3", "3"),
    ({"$ref": "http://x.test/"}, "3", "3"),
    ({"type": "integer"}, 3, 3),
]


class TestLenientInput:
    """Models send "3" for 3: understood where nothing else can be meant."""

    @pytest.mark.parametrize("schema, given, meant", RELAXED, ids=repr)
    def test_string_is_read_where_the_schema_admits_no_string(self, schema, given, meant):
        defs = {"N": {"type": "object"}, "S": {"type": "string"}}
        relaxed = m.relax({"a": given}, {"properties": {"a": schema}, "$defs": defs})
        assert relaxed == {"a": meant} and type(relaxed["a"]) is type(meant)

    def test_null_for_what_may_be_absent_is_absent(self):
        optional = {"properties": {"a": {"type": "integer"}}}
        assert m.relax({"a": None, "b": None}, optional) == {"b": None}
        assert m.relax({"a": None}, {**optional, "required": ["a"]}) == {"a": None}
        assert m.relax({"a": None}, {"properties": {"a": {"type": ["null"]}}}) == {"a": None}

    def test_valid_arguments_are_never_changed(self):
        """Seeded: whatever a schema admits, relax() returns as it is."""
        dice = rng("relax")
        kinds = ["null", "boolean", "integer", "number", "string", "array", "object"]
        values = [None, True, 3, 2.5, "3", "true", "null", "[]", "{}", [], {}]
        for _ in range(2000):
            some = dice.sample(kinds, dice.randint(1, 3))
            forms = [{"type": some}, {"anyOf": [{"type": kind} for kind in some]}]
            schema = {"properties": {"a": dice.choice(forms)}}
            given = {"a": dice.choice(values)}
            if not m.compile_schema(schema).errors(given):
                assert m.relax(given, schema) == given


###############################################################################
# T11. URI templates
###############################################################################


class TestTemplates:
    """RFC 6570, as far as resource templates need it."""

    @pytest.mark.parametrize(
        "template, uri, values",
        [
            ("note://{name}", "note://a", {"name": "a"}),
            ("note://{name}", "note://", None),
            ("note://{name}", "note://a/b", None),
            ("note://{name}", "note://a?b", None),
            ("note://{name}", "note://a#b", None),
            ("note://{name}", "note://a%3Fb", {"name": "a?b"}),
            ("note://{name}", "NOTE://a", None),
            ("note://{name}", "xnote://a", None),
            ("note://all", "note://all", {}),
            ("note://all", "note://al", None),
            ("x:a", "x:abx:a", None),
            ("x://{a}/{b}", "x://1/2", {"a": "1", "b": "2"}),
            ("x://{a}/{b}", "x://1//2", None),
            ("x://{a}/b/{c}/d", "x://1/b/2/d", {"a": "1", "c": "2"}),
            ("x://{a}/b/{c}/d", "x://1/b/2/d/", None),
            ("x://{a,b}", "x://1,2,3", {"a": "1", "b": "2,3"}),
            ("x://{a}-{b}", "x://1-2-3", {"a": "1", "b": "2-3"}),
            ("x://{a}-{b}", "x://-2", None),
            ("x://{a}-{b}", "x://--2", {"a": "-", "b": "2"}),
            ("x://{a}.{b}.z", "x://1.z.z", {"a": "1", "b": "z"}),
            ("x://{a}.{b}.z", "x://1.z", None),
            ("x://u{/a,b}", "x://u/1/2", {"a": "1", "b": "2"}),
            ("x://f{.ext}", "x://f.tar.gz", {"ext": "tar.gz"}),
            ("file:///{path*}", "file:///a/b/c", {"path": "a/b/c"}),
            ("file:///{+path}", "file:///a/b?c#d", {"path": "a/b?c#d"}),
            ("file://{+path}", "file:///a/b", {"path": "/a/b"}),
            ("file:/{/path*}", "file://a/b", {"path": "a/b"}),
            ("file:///{path*}", "file:///", None),
            ("x://{+p}/info", "x://a/info/info", {"p": "a/info"}),
            ("x://{+p}/info", "x:///info", None),
            ("x://{+p}/{name}.txt", "x://a/b/c.txt", {"p": "a/b", "name": "c"}),
            ("x://{repo}/{+p}/{name}@{rev}", "x://r/a/b/c@d@e", {"repo": "r", "p": "a/b"}),
            ("x://s{?q,lang}", "x://s", {}),
            ("x://s{?q,lang}", "x://s?", {}),
            ("x://s{?q,lang}", "x://s?q=a%26b", {"q": "a&b"}),
            ("x://s{?q,lang}", "x://s?lang=en&q=a+b=c/..d", {"q": "a+b=c/..d", "lang": "en"}),
            ("x://s{?q,lang}", "x://s?q", {"q": ""}),
            ("x://s{?q,lang}", "x://s?q=1&q=2", None),
            ("x://s{?q,lang}", "x://s?q=1&other=2", None),
            ("x://s{?q,lang}", "x://s?q=1&", None),
            ("x://s/{a}{?q}", "x://s/1?q=2", {"a": "1", "q": "2"}),
            ("x://s?q={q}", "x://s?q=1", {"q": "1"}),
            ("x://é/{a}", "x://%C3%A9/ü", {"a": "ü"}),
            ("x://é/{a}", "x://é/%C3%BC", {"a": "ü"}),
            ("x://é/{a}", "x://e/%C3%BC", None),
            ("file:{+path}", "file:/a/b", {"path": "/a/b"}),
            ("file://{path*}", "file:///C:/a", {"path": "/C:/a"}),
            ("x://{a}", "x://C:b", {"a": "C:b"}),
            ("x://{+url}", "x://ab:/c", {"url": "ab:/c"}),
            ("x://{a}", "x://a b", {"a": "a b"}),
        ],
    )
    def test_a_uri_matches_in_one_way_or_not_at_all(self, template, uri, values):
        """RFC 6570 §3.2, read backwards."""
        if values is not None and "rev}" in template:
            values = {**values, "name": "c@d", "rev": "e"}
        assert m.Template(template).match(uri) == values

    @pytest.mark.parametrize(
        "template, uri",
        [
            ("x://{a}", "x://..%2Fpasswd"),
            ("x://{a}", "x://a%2Fb"),
            ("x://{a}", "x://a%2fb"),
            ("x://{a}", "x://.."),
            ("x://{a}", "x://%2E%2e"),
            ("x://{a}", "x://."),
            ("x://{a}", "x://a%5Cb"),
            ("x://{a}", "x://..\\b"),
            ("x://{+p}", "x://a/../../etc"),
            ("x://{+p}", "x://a/%2E%2E/etc"),
            ("x://{+p}", "x://.."),
            ("x://{p*}", "x://a%5C..%5Cb"),
            ("x://{p*}", "x:///etc/passwd"),
            ("x:///{p*}", "x:////etc/passwd"),
            ("file:///{p*}", "file:////etc/passwd"),
            ("x:///{p*}", "x:///%2Fetc/passwd"),
        ],
    )
    def test_no_value_leaves_its_folder(self, template, uri):
        """Rule 3: a handler may be `open(root / name)`."""
        assert m.Template(template).match(uri) is None

    KINDS = [
        ("x://{a}", "x://%s"), ("x://d{/a}", "x://d/%s"), ("x://d{.a}", "x://d.%s"),
        ("x://{+a}", "x://%s"), ("docs:{+a}", "docs:%s"), ("x://{a*}", "x://%s"),
        ("x://{b}/{+a}", "x://1/%s"), ("x://d/{+a}.txt", "x://d/%s.txt"), ("file:{a}", "file:%s"),
        ("x://f{?a}", "x://f?a=%s"), ("x://f{?b,a}", "x://f?a=%s&b=1"),
    ]  # fmt: skip
    CLIMBING = ["..", "../../etc/passwd", "a/../../b", "a/..", "..\\b", "a\\..", ".. /b", " ../b",
                "/etc/passwd", "\\etc", "//host/share", "C:/a", "c:\\a"]  # fmt: skip
    CONTROLS = [*map(chr, range(32)), "\x7f", *map(chr, range(0x80, 0xA0)), "\u2028", "\u2029"]

    @pytest.mark.parametrize("template, uri", KINDS)
    @pytest.mark.parametrize("safe", ["", "/\\:"])
    def test_rule_3_is_true_of_every_kind_of_variable(self, template, uri, safe):
        def matched(value):
            return m.Template(template).match(uri % urllib.parse.quote(value, safe=safe))

        assert matched("good")["a"] == "good"
        for value in self.CLIMBING:
            assert matched(value) is None
        for control in self.CONTROLS:
            for value in (f"a{control}", f"{control}a", f"a{control}b"):
                assert matched(value) is None
        for other in ("\x20", "~", "\xa0", "\u2027", "\u202a"):
            assert matched(f"a{other}b")["a"] == f"a{other}b"

    @pytest.mark.parametrize("name", ["a..b", "...", "..a", ".a", "a."])
    def test_dots_within_a_name_are_only_dots(self, name):
        assert m.Template("x://{a}").match(f"x://{name}") == {"a": name}
        assert m.Template("x://{+a}").match(f"x://d/{name}") == {"a": f"d/{name}"}

    def test_values_are_decoded_exactly_once(self):
        assert m.Template("x://{a}").match("x://%2541") == {"a": "%41"}
        assert m.Template("x://{a}").match("x://%252F") == {"a": "%2F"}

    @pytest.mark.parametrize("bad", ["%", "%4", "%zz", "%+1", "%FF", "%C3", "%ED%A0%80", "\ud800"])
    def test_bad_escapes_do_not_match(self, bad):
        """UTF-8 is strict: no lone surrogates, no overlong or cut sequences."""
        for template in ("x://{a}", "x://{+a}"):
            assert m.Template(template).match(f"x://n{bad}") is None
        assert m.Template("x://n{?a}").match(f"x://n?a={bad}") is None

    @pytest.mark.parametrize(
        "template, remedy",
        [
            ("{name}", "begin with a scheme"),
            ("/users/{id}", "begin with a scheme"),
            ("", "begin with a scheme"),
            ("x://{", "brace"),
            ("x://}", "brace"),
            ("x://{a", "brace"),
            ("x://{{a}}", "brace"),
            ("x://{}", "write {name}"),
            ("x://{a,}", "write {name}"),
            ("x://{a b}", "write {name}"),
            ("x://{a.b}", "write {name}"),
            ("x://{1}", "write {name}"),
            ("x://{a:3}", "write {name}"),
            ("x://{é}", "write {name}"),
            ("x://{#a}", "write {name}"),
            ("x://{;a}", "write {name}"),
            ("x://s?a=1{&b}", "write {name}"),
            ("x://{a**}", "write {name}"),
            ("x://s{?a*}", "write {name}"),
            ("x://s{?a}/b", "write {?a,b} once, at the end"),
            ("x://s{?}", "write {name}"),
            ("x://s{?a", "write {?a,b} once, at the end"),
            ("x://s?{?a}", "write {?a,b} once, at the end"),
            ("x://s{?a}{?b}", "write {name}"),
            ("x://{a}{b}", "put text between"),
            ("x://{+a,b}", "one may have"),
            ("x://{+a}/{b*}", "one may have"),
            ("x://{a}/{a}", "each variable once"),
            ("x://{a}{?a}", "each variable once"),
        ],
    )
    def test_a_bad_template_is_refused_with_a_remedy(self, template, remedy):
        with pytest.raises(ValueError) as caught:
            m.Template(template)
        assert remedy in str(caught.value)
        assert repr(template) in str(caught.value)

    def test_a_template_has_limits(self):
        text = "x://{a}".ljust(m.MAX_TEMPLATE_CHARS, "b")
        assert m.Template(text).names == ["a"]
        with pytest.raises(ValueError, match=str(m.MAX_TEMPLATE_CHARS)):
            m.Template(text + "b")
        names = [f"v{i}" for i in range(m.MAX_TEMPLATE_NAMES + 1)]
        assert m.Template("x://{" + ",".join(names[:-1]) + "}").names == names[:-1]
        with pytest.raises(ValueError, match=str(m.MAX_TEMPLATE_NAMES)):
            m.Template("x://{" + ",".join(names) + "}")

    def test_a_uri_has_a_limit(self):
        uri = "x://".ljust(m.MAX_URI_CHARS, "a")
        assert m.Template("x://{a}").match(uri) == {"a": uri[4:]}
        assert m.Template("x://{a}").match(uri + "a") is None

    def test_the_limit_of_a_uri_counts_it_as_it_is_sent(self):
        """A character that is not ASCII is sent as up to four escapes of three characters."""
        uri = "x://" + "\U0001f600" * ((m.MAX_URI_CHARS - 4) // 12)
        assert m.Template("x://{a}").match(uri) == {"a": uri[4:]}
        assert m.Template("x://{a}").match(uri + "\U0001f600") is None

    def test_a_template_that_begins_otherwise_costs_next_to_nothing(self):
        templates = [m.Template(f"x{i}://é/{{a}}") for i in range(1000)]
        uri = "x://" + "\U0001f600" * (m.MAX_URI_CHARS - 4)
        began = time.process_time()
        assert not any(template.match(uri) for template in templates)
        assert time.process_time() - began < 0.1  # 14 seconds, when each looked at all of it

    def test_matching_takes_linear_time(self):
        """CVE-2026-0621: a regular expression made of a template can be made to hang."""
        names = [f"v{i}" for i in range(m.MAX_TEMPLATE_NAMES - 2)]
        template = m.Template("x://{" + ",".join(names) + "}/{+p}a{q}!")
        began = time.process_time()
        for uri in ("x://" + "," * 8000, "x://" + "a" * 8000, "x://" + ",a/" * 2600 + "a"):
            assert template.match(uri) is None
        assert time.process_time() - began < 1  # it takes some 3 ms; exponential is for ever

    def test_what_a_client_expands_the_server_takes_apart(self):
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
                assert values is None or set(values) <= set(template.names)


###############################################################################
# T17. Handlers
###############################################################################


class TestCursors:
    """spec: server/utilities/pagination"""

    @staticmethod
    def pages(registry, size, between=lambda: None):
        cursor = None
        while True:
            items, cursor = m.page("tools/list", registry.items(), cursor, size)
            yield items
            if cursor is None:
                return
            between()

    @pytest.mark.parametrize(
        "count, sizes", [(0, [0]), (1, [1]), (2, [2]), (3, [2, 1]), (4, [2, 2]), (5, [2, 2, 1])]
    )
    def test_the_last_page_has_no_cursor(self, count, sizes):
        registry = {i: f"tool{i}" for i in range(count)}
        pages = list(self.pages(registry, 2))
        assert [len(items) for items in pages] == sizes
        assert sum(pages, []) == list(registry.values())

    def test_a_cursor_survives_insertions_and_removals(self):
        """What existed throughout is told exactly once, also if the item of the cursor goes."""
        for seed in range(200):
            dice = rng(f"pages {seed}")
            serials = iter(range(100, 10_000))
            registry = {i: i for i in range(dice.randint(1, 30))}
            removed = set()

            def change(dice=dice, registry=registry, removed=removed, serials=serials):
                for gone in dice.sample(sorted(registry), min(len(registry), 2)):
                    removed.add(gone)
                    del registry[gone]
                if dice.random() < 0.5:
                    new = next(serials)
                    registry[new] = new

            told = sum(self.pages(registry, dice.randint(1, 4), change), [])
            assert len(told) == len(set(told))
            assert set(registry) <= set(told)
            assert told == sorted(told)

    def test_a_cursor_belongs_to_its_list(self):
        cursor = m.encode_cursor("tools/list", 3)
        assert m.decode_cursor("tools/list", cursor) == 3
        with pytest.raises(m.RPCError):
            m.decode_cursor("prompts/list", cursor)

    @pytest.mark.parametrize(
        "cursor",
        ["", "x", "dG9vbHMvbGlzdDo0Mg==", "dG9vbHMvbGlzdDo0Mh", "dG9vbHMvbGlzdDo0M", "é", "\ud800"]
        + ["dG9vbHM6", "dG9vbHMvbGlzdDorNQ", "dG9vbHMvbGlzdDrZow", "a" * 10_000]
        + [5, True, ["a"], {}, {"a": 1}, 1.5, "dG9vbHMvbGlzdDo5" + "OTk5" * 2000],
    )
    def test_an_invalid_cursor_is_an_error(self, cursor):
        """spec: server/utilities/pagination#error-handling"""
        with pytest.raises(m.RPCError) as caught:
            m.page("tools/list", [(1, "a")], cursor, 10)
        assert caught.value.code == -32602
        assert "tools/list" in caught.value.message


###############################################################################
# T19. Lines and pipes
###############################################################################


class Records(m.Decoder):
    """A grammar that uses all three ways to read: `size:`, so many bytes, then a tail to `;`."""

    def _grammar(self):
        while True:
            head = yield from self._until(b"::", 6, "a size")
            if head[:-2] == b"rest":
                break
            body = yield from self._exactly(int(head[:-2]), "a body")
            self.items.append(body.decode())
        while True:
            data = yield from self._some(4)
            if not data:
                self.items.append("end")
                return
            self.items.append(data)


class TestDecoder:
    """One generator per grammar; items, hunger and failure never mixed up."""

    def test_items_are_the_same_however_the_bytes_are_cut(self):
        items = feed_every_way(Records, b"1::a0::11::hello worldrest::", eof=True)
        assert items == ["a", "", "hello world", "end"]
        assert feed_every_way(Records, b"rest::hello world", eof=True) == [b"hello world", "end"]

    def test_some_gives_no_more_than_asked(self):
        assert Records().feed(b"rest::hello world") == [b"hell", b"o wo", b"rld"]

    @pytest.mark.parametrize(
        "data, why",
        [
            (b"1::a2::x", "the connection ended inside a body"),
            (b"1::a12", "the connection ended inside a size"),
            (b"1::a12:", "the connection ended inside a size"),
            (b"", "the connection ended inside a size"),
        ],
    )
    def test_end_in_the_middle_is_an_error_that_says_where(self, data, why):
        assert str(errors_every_way(Records, data, eof=True)) == why

    def test_mark_at_the_limit_passes_and_one_byte_later_does_not(self):
        assert feed_every_way(Records, b"0001::a") == ["a"]
        error = errors_every_way(Records, b"1::a00001::b")
        assert isinstance(error, m.LimitExceeded) and str(error) == "a size is longer than 6 bytes"

    def test_limit_is_noticed_on_what_has_arrived(self):
        decoder = Records()
        assert decoder.feed(b"000000") == []
        with pytest.raises(m.LimitExceeded):
            decoder.feed(b"0")

    def test_items_before_an_error_come_first_and_the_error_stays(self):
        decoder = Records()
        assert decoder.feed(b"1::a1::b0000000") == ["a", "b"]
        for call in (lambda: decoder.feed(b"1::c"), decoder.eof, lambda: decoder.feed(b"")):
            with pytest.raises(m.LimitExceeded):
                call()

    def test_nothing_comes_after_the_end(self):
        decoder = Records()
        decoder.feed(b"rest::")
        assert decoder.eof() == ["end"]
        assert decoder.eof() == [] and decoder.feed(b"more") == []


class TestLines:
    """basic/transports/stdio: messages are delimited by newlines."""

    @pytest.mark.parametrize(
        "data, lines",
        [
            (b'{"id":1}\n{"id":2}\n', [b'{"id":1}', b'{"id":2}']),
            (b'{"id":1}\r\n{"id":2}\r\n', [b'{"id":1}', b'{"id":2}']),
            (b"\n\n\r\n\n", []),
            (b"a\n\n\nb\n", [b"a", b"b"]),
            (b"a", []),
            (b"\xff\x00\n\x80\n", [b"\xff\x00", b"\x80"]),
            ("é\u2028\x0b\x0c\x1c\x85\n".encode(), ["é\u2028\x0b\x0c\x1c\x85".encode()]),
            (b"a\rb\n", [b"a\rb"]),
            (b"", []),
        ],
    )
    def test_lines_end_with_newlines_and_nothing_else(self, data, lines):
        assert feed_every_way(m.LineDecoder, data, exact=True) == lines

    def test_last_line_needs_no_newline(self):
        """`python server.py < requests.jsonl`, from an editor that adds none."""
        assert feed_every_way(m.LineDecoder, b"a\nb", eof=True, exact=True) == [b"a", b"b"]
        assert feed_every_way(m.LineDecoder, b"a\r\nb\r", eof=True, exact=True) == [b"a", b"b"]

    def test_line_at_the_limit_passes_and_one_byte_more_does_not(self):
        def make():
            return m.LineDecoder(limit=8)

        data = b"12345678\n123456789\nok\n12345678"
        first, second, third, last = feed_every_way(make, data, eof=True, exact=True)
        assert (first, third, last) == (b"12345678", b"ok", b"12345678")
        assert isinstance(second, m.LimitExceeded) and "8 bytes" in str(second)
        _, late = feed_every_way(make, b"ok\n123456789", eof=True, exact=True)
        assert isinstance(late, m.LimitExceeded)

    def test_default_limit_is_that_of_a_message(self):
        decoder = m.LineDecoder()
        line = b"a" * m.MAX_MESSAGE_BYTES
        assert decoder.feed(line) == [] and decoder.feed(b"\n") == [line]
        assert decoder.feed(line) == []
        assert isinstance(decoder.feed(b"a")[0], m.LimitExceeded)
        assert decoder.feed(line + b"\nnext\n") == [b"next"]

    def test_line_over_the_limit_is_told_once_and_kept_nowhere(self):
        """Rule 3: everything is bounded. The stream goes on with the next line."""
        decoder = m.LineDecoder(limit=100)
        told = []
        for _ in range(1000):
            told += decoder.feed(b"x" * 60)
            assert len(decoder.buffer) <= 160
        assert [type(item) for item in told] == [m.LimitExceeded]
        assert decoder.feed(b"tail\n{}\n") == [b"{}"]
        assert decoder.eof() == []

    def test_random_bytes_are_split_as_split_would(self):
        dice = rng("lines")
        for _ in range(30):
            data = bytes(dice.choices(b"ab\n\r", k=dice.randint(0, 60)))
            lines = [line.rstrip(b"\r") for line in data.split(b"\n")]
            assert feed_every_way(m.LineDecoder, data, eof=True, exact=True) == [
                line for line in lines if line
            ]


###############################################################################
# T23. stdio and child processes
###############################################################################

PRELUDE = f"""
import asyncio, json, logging, os, signal, subprocess, sys, threading, time
logging.getLogger("asyncio").setLevel("ERROR")  # it warns of slow callbacks, if the machine is slow
sys.path.insert(0, {str(HERE)!r})
import mcp_lite as m
"""

SERVER = (
    PRELUDE
    + """
m.Transport.grace = m.GRACE_SECONDS = 0.2
m.PARENT_POLL_SECONDS = 0.01
app = m.Server("t17")

@app.tool
def add(a: int, b: int = 0) -> int:
    return a + b

@app.tool
def noise() -> str:
    "Print in every way there is."
    print("from print")
    os.write(1, b"from a library\\n")
    subprocess.run("echo from a child; cat; echo end of cat", shell=True)
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
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid
"""
)

RUN = (
    SERVER
    + """
buffered = sys.stdout.line_buffering
app.run()
print('afterwards' if sys.stdout.line_buffering == buffered else 'sys.stdout was changed')
"""
)


def call(req_id, name, **arguments):
    """Return the line that calls a tool."""
    params = {"name": name, "arguments": arguments}
    msg = {"jsonrpc": "2.0", "id": req_id, "method": "tools/call", "params": params}
    return json.dumps(msg).encode() + b"\n"


def texts(data):
    """Return {id: text of the result} of the lines that a server wrote."""
    answers = [json.loads(line) for line in data.splitlines() if line != b"afterwards"]
    return {msg["id"]: msg["result"]["content"][0]["text"] for msg in answers if "result" in msg}


@contextlib.contextmanager
def python(code, *args, **streams):
    """Give a Python process that treats every warning as an error.

    It and its children are killed in the end, or after half a minute: so no test waits for ever.
    """

    def kill():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9) if os.name != "nt" else process.kill()

    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code, *map(str, args)]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    streams = {"stdin": -1, "stdout": -1, "stderr": -1, "start_new_session": True, **streams}
    with subprocess.Popen(command, env=env, **streams) as process:
        watchdog = threading.Timer(30, kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            kill()


def converse(code, data, **streams):
    """Return (status, stdout, stderr) of a Python process that gets `data` and then no more."""
    with python(code, **streams) as process:
        out, err = process.communicate(data, timeout=20)
        return process.returncode, out, err


def is_alive(pid):
    """Return whether a process runs; a zombie that nobody collects does not."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while it is read
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(condition):
    """Wait until something outside of our control has come about."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.002)


def is_open(fd):
    """Return whether a descriptor is open."""
    try:
        return os.fstat(fd) is not None
    except OSError:
        return False


posix = pytest.mark.skipif(os.name == "nt", reason="POSIX has it, Windows has not")


class TestServerStreams:
    """What a server's standard streams are, and who may touch them.

    spec: basic/transports/stdio
    """

    def test_a_line_piped_into_a_server_is_answered(self):
        status, out, err = converse(RUN, call(1, "add", a=1, b=2))
        assert (status, texts(out), err) == (0, {1: "3"}, b"")

    def test_the_last_line_needs_no_newline(self):
        status, out, err = converse(RUN, call(1, "add", a=1) + call(2, "add", a=2).strip())
        assert (status, texts(out), err) == (0, {1: "1", 2: "2"}, b"")

    def test_streams_may_be_files(self, tmp_path):
        """server.py < requests.jsonl > answers.jsonl; and nothing limits how long that takes."""
        requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
        requests.write_bytes(
            b"".join(call(i, "add", a=i) for i in range(300)) + call(300, "linger")
        )
        code = RUN.replace("= 0.2", "= 0")
        with requests.open("rb") as stdin, answers.open("wb") as stdout:
            with python(code, stdin=stdin, stdout=stdout) as process:
                assert (process.wait(20), process.stderr.read()) == (0, b"")
        said = answers.read_bytes()
        assert said.endswith(b"\nafterwards\n")
        assert texts(said) == {**{i: str(i) for i in range(300)}, 300: "done"}

    def test_stdin_may_be_the_null_device(self):
        status, out, err = converse(RUN, None, stdin=subprocess.DEVNULL)
        assert (status, out, err) == (0, b"afterwards\n", b"")

    @posix
    def test_streams_may_be_a_socket(self):
        ours, theirs = socket.socketpair()
        with ours, python(RUN, stdin=theirs, stdout=theirs) as process:
            theirs.close()
            ours.sendall(call(1, "big", size=1_000_000))
            ours.shutdown(socket.SHUT_WR)
            with ours.makefile("rb") as file:
                assert len(texts(file.read())[1]) == 1_000_000
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    @posix
    def test_streams_may_be_a_terminal(self):
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
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    def test_whatever_is_printed_goes_to_stderr_at_once_and_nothing_can_be_read(self):
        """The server "MUST NOT write anything to its stdout that is not a valid MCP message"."""
        with python(RUN) as process:
            process.stdin.write(call(1, "noise"))
            process.stdin.flush()
            printed = [process.stderr.readline().strip() for _ in range(4)]
            assert printed == [b"from print", b"from a library", b"from a child", b"end of cat"]
            out, err = process.communicate(timeout=20)
            assert (process.returncode, err) == (0, b"")
            assert texts(out) == {1: "read nothing"}
            assert out.endswith(b"\nafterwards\n")  # the program has its streams back

    def test_a_child_of_a_tool_does_not_hold_the_conversation_open(self):
        with python(RUN) as process:
            process.stdin.write(call(1, "spawn"))
            process.stdin.close()
            out = process.stdout.read()  # ends although the child of the tool lives
            pid = int(texts(out)[1])
            assert is_alive(pid)
            os.kill(pid, 9)
            assert process.wait(20) == 0

    @posix
    @pytest.mark.parametrize("closed", ["<&-", ">&-"])
    def test_without_streams_it_says_so(self, closed):
        code = (
            SERVER
            + "try: app.run()\nexcept m.ConnectionClosed as exc: os.write(2, str(exc).encode())"
        )
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code]
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
        assert ran.stderr == b"there is no standard input and output to serve on"
        assert ran.returncode == 0

    def test_a_line_over_the_limit_is_refused_and_the_next_is_served(self):
        line = call(1, "add", a=1)
        code = SERVER + f"app.run(max_message_bytes={len(line) - 1})"
        status, out, _ = converse(code, b" " + line + line)
        first, second = (json.loads(line) for line in out.splitlines())
        assert status == 0
        assert first["error"]["code"] == -32600 and "longer than" in first["error"]["message"]
        assert second["result"]["content"][0]["text"] == "1"

    def test_lines_of_ten_megabytes_work(self):
        lines = call(1, "length", text="x" * 10_000_000) + call(2, "big", size=10_000_000)
        status, out, _ = converse(RUN, lines)
        said = texts(out)
        assert (status, said[1], len(said[2])) == (0, "10000000", 10_000_000)


class TestServerEnds:
    """How a server ends: by end of input, a signal, a broken pipe, or its parent's death."""

    def test_what_finishes_in_the_period_of_grace_is_answered(self):
        status, out, err = converse(RUN, call(1, "linger"))
        assert (status, texts(out), err) == (0, {1: "done"}, b"")

    @pytest.mark.parametrize("tool", ["sleep", "forever"])
    def test_end_of_input_ends_a_server_whatever_runs(self, tool):
        status, out, err = converse(RUN, call(1, tool))
        assert (status, out, err) == (0, b"afterwards\n", b"asleep\n")

    @posix
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_an_idle_server_in_good_order(self, number):
        with python(RUN) as process:
            process.stdin.write(call(1, "add", a=1))
            process.stdin.flush()
            assert texts(process.stdout.readline()) == {1: "1"}
            began = time.monotonic()
            process.send_signal(number)
            assert process.stdout.read() == b"afterwards\n"  # stdin is still open
            took = time.monotonic() - began
            assert (process.wait(20), process.stderr.read()) == (0, b"")
            assert took < 0.5  # some 10 ms; the wide margin is for a busy machine

    @posix
    @pytest.mark.parametrize("tool", ["sleep", "forever"])
    def test_a_second_signal_ends_it_at_once(self, tool):
        code = SERVER.replace("= 0.2", "= 600") + "app.run()"
        with python(code) as process:
            process.stdin.write(call(1, tool))
            process.stdin.flush()
            assert process.stderr.readline() == b"asleep\n"
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM
            assert (process.stdout.read(), process.stderr.read()) == (b"", b"")

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
    def test_a_reader_that_goes_away_ends_it_quietly(self):
        with python(SERVER + "app.run()") as process:
            process.stdout.close()
            process.stdin.write(call(1, "add", a=1) + call(2, "add", a=1))
            process.stdin.flush()  # and it stays open
            assert (process.wait(20), process.stderr.read()) == (0, b"")

    @posix
    @pytest.mark.parametrize("options", ["", "watch_parent=False"])
    def test_a_server_whose_parent_died_ends_itself(self, options):
        """Also when somebody else holds the other end of its stdin."""
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

    @posix
    def test_signal_handlers_are_put_back(self):
        async def main():
            stopped = asyncio.Event()
            work = m.until_signalled(stopped.wait(), stopped.set)
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
            await work

        def nothing(number, frame):
            raise AssertionError("the wrong handler")

        numbers = (signal.SIGINT, signal.SIGTERM)
        former = {number: signal.signal(number, nothing) for number in numbers}
        try:
            run(main())
            assert [signal.getsignal(number) for number in numbers] == [nothing] * 2
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    @posix
    def test_work_that_ignores_the_first_signal_is_cancelled(self, monkeypatch):
        monkeypatch.setattr(m, "GRACE_SECONDS", 0.01)

        async def main():
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
            await m.until_signalled(asyncio.sleep(3600), lambda: None)

        run(main())

    def test_off_the_main_thread_there_are_no_signals(self):
        async def main():
            await m.until_signalled(asyncio.sleep(0), lambda: None)

        thread = threading.Thread(target=lambda: asyncio.run(main()))
        thread.start()
        thread.join(10)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


class UnwatchedLoop(asyncio.SelectorEventLoop):
    """A loop without pipe support, as on Windows: threads must do it."""

    def add_reader(self, *args):
        raise NotImplementedError

    remove_reader = add_writer = remove_writer = add_reader


def run_both_ways(main):
    """Run a coroutine function in a usual loop, and in one that cannot watch descriptors."""
    run(main())
    before = (open_descriptors(), child_processes(), lasting_threads())
    loop = UnwatchedLoop()
    try:
        loop.set_debug(True)
        loop.run_until_complete(within(main(), 20))
    finally:
        loop.close()
    check_nothing_left(before)


@posix
class TestDescriptors:
    """Source and Sink: bytes come and go, whatever the descriptor is."""

    def test_lines_come_through_a_pipe(self):
        async def main():
            theirs, ours = os.pipe()
            source, sink = m.Source(theirs, 100), m.Sink(ours, lambda: None)
            await sink.write(b"one\ntw")
            assert await source.read() == [b"one"]
            await sink.write(b"o\n\n" + b"3" * 101 + b"\n4\n")
            items = await source.read()
            assert (items[0], type(items[1]), items[2:]) == (b"two", m.LimitExceeded, [b"4"])
            await sink.write(b"half")
            await sink.finish()
            assert [await source.read(), await source.read()] == [[b"half"], []]
            source.close()
            source.close()
            sink.close()

        run_both_ways(main)

    def test_what_is_written_in_one_turn_leaves_in_one_piece(self):
        async def main():
            theirs, ours = os.pipe()
            sink = m.Sink(ours, lambda: None)
            for i in range(10):
                await sink.write(b"%d" % i)
            assert not sink.watched
            await asyncio.sleep(0)
            assert os.read(theirs, 100) == b"0123456789"
            await sink.finish()
            os.close(theirs)

        run(main())

    def test_a_slow_reader_makes_writers_wait(self):
        """MAX_UNSENT_BYTES may be unsent, and not one more."""

        async def main():
            theirs, ours = os.pipe()
            sink, source = m.Sink(ours, lambda: None), None
            os.write(ours, b"x" * 4095 + b"\n")
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(ours, b"x" * 4095 + b"\n")
            await sink.write(b"y" * (m.MAX_UNSENT_BYTES - 1) + b"\n")
            writer = asyncio.ensure_future(sink.write(b"\n"))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not writer.done()
            source = m.Source(theirs, 2 * m.MAX_UNSENT_BYTES)
            lines = []
            while not lines or not lines[-1].startswith(b"y"):
                lines += await source.read()
            await writer
            await sink.finish()
            assert await source.read() == []
            source.close()

        run(main())

    def test_a_slow_reader_makes_the_other_end_wait(self):
        async def main():
            theirs, ours = os.pipe()
            source = m.Source(theirs, 100_000)
            os.set_blocking(ours, False)
            chunk, sent = b"x" * 4095 + b"\n", 0
            assert source._resume() is None
            for _ in range(1000):
                with contextlib.suppress(BlockingIOError):
                    sent += os.write(ours, chunk)
                await asyncio.sleep(0)
            assert sent < 500_000 < 1000 * len(chunk)
            os.close(ours)
            received = 0
            while True:
                lines = await source.read()
                if not lines:
                    break
                received += sum(len(line) + 1 for line in lines)
            assert received == sent
            source.close()

        run(main())

    def test_nobody_reads(self):
        async def main():
            theirs, ours = os.pipe()
            broken = []
            sink = m.Sink(ours, lambda: broken.append(1))
            os.close(theirs)
            await sink.write(b"x")
            while not broken:
                await asyncio.sleep(0)
            with pytest.raises(BrokenPipeError):
                await sink.write(b"x")
            await sink.finish()
            assert broken == [1]

        run_both_ways(main)

    def test_a_waiting_writer_learns_that_nobody_reads(self):
        async def main():
            theirs, ours = os.pipe()
            sink = m.Sink(ours, lambda: None)
            writer = asyncio.ensure_future(sink.write(b"x" * (m.MAX_UNSENT_BYTES + 200_000)))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not writer.done()
            os.close(theirs)
            with pytest.raises(BrokenPipeError):
                await writer
            await sink.finish()

        run_both_ways(main)

    def test_a_reader_that_takes_nothing_delays_the_end_for_a_bounded_time(self, monkeypatch):
        monkeypatch.setattr(m, "FLUSH_SECONDS", 0.01)

        async def main():
            theirs, ours = os.pipe()
            sink = m.Sink(ours, lambda: None)
            await sink.write(b"x" * 500_000)
            await sink.finish()
            os.set_blocking(theirs, False)
            os.close(theirs)

        run(main())

    def test_the_blocking_flag_is_put_back(self):
        async def main():
            theirs, ours = os.pipe()
            copy = os.dup(ours)
            sink = m.Sink(ours, lambda: None)
            assert not os.get_blocking(copy)
            await sink.finish()
            assert os.get_blocking(copy)
            os.close(copy)
            os.close(theirs)

        run(main())

    def test_end_wakes_the_reader(self):
        async def main():
            theirs, ours = os.pipe()
            source = m.Source(theirs, 100)
            reader = asyncio.ensure_future(source.read())
            await asyncio.sleep(0)
            source.end()
            assert await reader == []
            source.close()
            # While a thread is in read(), nothing else may get the number of its descriptor.
            assert is_open(theirs) is not source.watchable
            os.close(ours)
            wait_until(lambda: not is_open(theirs))

        run_both_ways(main)


ECHO = (
    "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()\n"
)


def child(code, **options):
    """Return the transport to a Python process."""
    return m.StdioTransport([sys.executable, "-c", code], **options)


async def answers(transport):
    """Return the messages that come until the channel ends."""
    found = []
    while True:
        items = await transport.read()
        if not items:
            return found
        found += items


async def explanation(code, **options):
    """Return (messages, explanation) of a process that ends by itself."""
    transport = child(code, **options)
    await transport.open()
    try:
        return await answers(transport), transport.explain()
    finally:
        await transport.close()


class TestChild:
    """The client's end: a child process, from its start to its end."""

    def test_messages_go_back_and_forth(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            for msg in ({"id": 1}, {"id": 2, "text": "\n\u2028 é \U0001f600"}, [{"id": 3}]):
                await transport.write(msg)
                assert [m.decode(line) for line in await transport.read()] == [msg]
            await transport.close()
            assert await transport.read() == []
            with pytest.raises(m.ConnectionClosed, match="exited with status 0"):
                await transport.write({})

        run_both_ways(main)

    def test_it_works_in_any_thread(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            await transport.write({"id": 1})
            assert await transport.read() == [b'{"id":1}']
            await transport.close()
            return transport.process.returncode

        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(asyncio.run(main(), debug=True)))
        thread.start()
        thread.join(20)
        assert outcome == [0]

    def test_ten_megabytes_go_through(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            msg = {"text": "x" * 10_000_000}
            writer = asyncio.ensure_future(transport.write(msg))
            assert [m.decode(line) for line in await transport.read()] == [msg]
            await writer
            await transport.close()

        run(main())

    def test_a_line_over_the_limit_is_reported_in_its_place(self):
        async def main():
            messages, _ = await explanation(
                'print(\'{"a":12}\\n{"a":123}\\n{"a":1}\')', max_message_bytes=8
            )
            assert messages[::2] == [b'{"a":12}', b'{"a":1}']
            assert type(messages[1]) is m.LimitExceeded

        run(main())

    @pytest.mark.parametrize(
        "code, text",
        [
            ("", "exited with status 0"),
            ("import os; os._exit(3)", "exited with status 3"),
            ("exit('no such file: x')", 'exited with status 1; its last words: "no such file: x"'),
            ("import os; os.kill(os.getpid(), 11)", "was killed by SIGSEGV"),
            ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
            (
                "print('usage: x'); exit(2)",
                'exited with status 2; it printed to stdout: "usage: x"',
            ),
            (
                "import sys; sys.stderr.buffer.write(b'caf\\xe9'); exit(5)",
                'exited with status 5; its last words: "caf\ufffd"',
            ),
        ],
    )
    def test_a_child_that_dies_is_explained(self, code, text):
        if os.name == "nt" and "kill" in code:
            pytest.skip("Windows has no signals")
        assert run(explanation(code, stderr="null"))[1] == text

    def test_only_the_last_words_are_kept(self):
        code = "import sys\nfor i in range(1000): print(i, file=sys.stderr)"
        text = run(explanation(code, stderr="null"))[1]
        assert text.count("\n") == m.MAX_LAST_WORDS - 1
        assert text.endswith('\n999"')

    def test_half_a_line_then_death(self):
        code = 'import os; os.write(1, b\'{"id":1}\\n{"id"\'); os.kill(os.getpid(), 9)'
        messages, text = run(explanation(code))
        assert messages == [b'{"id":1}', b'{"id"']
        assert text.startswith("was killed by SIGKILL" if os.name != "nt" else "")

    def test_writing_to_a_dead_child_says_what_happened(self):
        async def main():
            transport = child("import sys; sys.stdin.close(); exit('out of memory')", stderr="null")
            await transport.open()
            with pytest.raises(m.ConnectionClosed) as caught:
                while True:
                    await transport.write({"text": "x" * 1000})
                    await asyncio.sleep(0)
            assert str(caught.value).endswith(
                'exited with status 1; its last words: "out of memory"'
            )
            await transport.close()

        run(main())

    @posix
    def test_a_child_that_dies_is_noticed_although_its_own_child_holds_the_pipes(self):
        code = "import os, subprocess, sys\np = subprocess.Popen(['sleep', '60'])\n"
        code += "print('{\"id\":%d}' % p.pid, flush=True); os._exit(7)"

        async def main():
            transport = child(code, stderr="null", term_seconds=0.1)  # the orphan is reaped late
            await transport.open()
            messages = await answers(transport)
            pid = m.decode(messages[0])["id"]
            assert transport.explain() == "exited with status 7"
            assert is_alive(pid)
            await transport.close()
            wait_until(lambda: not is_alive(pid))

        run(main())

    def test_garbage_on_stdout_is_skipped_reported_once_and_quoted(self, caplog):
        printed = "[INFO] listening\n\n{'a': 1}\n[]\n5\n\ufeff{}\n" + '{"id":1}\n [ {"id":2}]'
        code = f"print({ascii(printed)})"

        async def main():
            transport = child(code, env={"PYTHONIOENCODING": "utf-8"})
            assert transport.hint() == ""
            await transport.open()
            messages = await answers(transport)
            assert messages == [b'{"id":1}', b' [ {"id":2}]']
            assert transport.hint() == 'it printed to stdout: "[INFO] listening"'
            await transport.close()

        with caplog.at_level(logging.WARNING, "mcp_lite"):
            run(main())
        assert len(caplog.records) == 1 and "listening" in caplog.text

    def test_stderr_goes_to_ours(self, capsys):
        run(explanation("import sys; sys.stderr.write('one\\n\\ntwo')"))
        assert capsys.readouterr().err == "one\ntwo\n"

    def test_stderr_goes_nowhere(self, capfd):
        text = run(explanation("import sys; sys.stderr.write('one')", stderr="null"))[1]
        assert text == 'exited with status 0; its last words: "one"'
        assert capfd.readouterr().err == ""

    def test_stderr_goes_to_a_callback(self):
        lines = []
        code = (
            f"import sys; sys.stderr.write('one\\n' + 'x' * {m.MAX_STDERR_LINE_BYTES + 1} + '\\n2')"
        )
        run(explanation(code, stderr=lines.append))
        assert lines == ["one", f"a line is longer than {m.MAX_STDERR_LINE_BYTES} bytes", "2"]

    def test_a_callback_that_fails_is_reported_and_the_child_goes_on(self, caplog):
        code = "import sys; sys.stderr.write('one\\n' * 20); print('{\"id\":1}')"
        assert run(explanation(code, stderr=[].pop))[0] == [b'{"id":1}']
        assert "the stderr callback failed" in caplog.text

    def test_stderr_goes_to_a_file_or_is_inherited(self, tmp_path, capfd):
        with open(tmp_path / "log", "wb") as file:
            run(explanation("import sys; sys.stderr.write('one')", stderr=file))
        assert (tmp_path / "log").read_bytes() == b"one"
        run(explanation("import sys; sys.stderr.write('two')", stderr="inherit"))
        assert capfd.readouterr().err == "two"

    def test_the_environment_is_a_safe_minimum_and_env(self, monkeypatch):
        monkeypatch.setenv("SECRET_TOKEN", "x")
        monkeypatch.setenv("LANG", "C")
        monkeypatch.setenv("TERM", "() { :; }; echo shellshock")
        code = "import os, json; print(json.dumps(dict(os.environ)))"

        def environment(**options):
            return m.decode(run(explanation(code, **options))[0][0])

        seen = environment(env={"MINE": "1"})
        assert seen["MINE"] == "1" and seen["PATH"] == os.environ["PATH"] and seen["LANG"] == "C"
        assert "SECRET_TOKEN" not in seen and "TERM" not in seen
        assert environment(env={"LANG": "D"})["LANG"] == "D"
        if os.name != "nt":
            assert set(environment(env={"MINE": "1"}, env_replace=True)) <= {"MINE", "LC_CTYPE"}

    def test_the_folder_is_chosen_by_cwd(self, tmp_path):
        code = "import os, json; print(json.dumps({'cwd': os.getcwd()}))"
        messages, _ = run(explanation(code, cwd=tmp_path))
        assert m.decode(messages[0])["cwd"] == str(tmp_path.resolve())


@posix
class TestChildEnds:
    """spec 2025-11-25: basic/lifecycle#shutdown -- close its input, wait, SIGTERM, SIGKILL"""

    TERM = "import signal, sys, os\ndef bye(*_): print('got SIGTERM', file=sys.stderr); exit(4)\n"
    TERM += "signal.signal(signal.SIGTERM, bye)\n"
    READY = "print('{\"id\":%d}' % os.getpid(), flush=True)\n"
    STUBBORN = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY
    STUBBORN += "while True: signal.pause()\n"

    async def end(self, code, **options):
        """Start a child, wait for its first message, close; return what it said and its status."""
        transport = child(code, stderr="null", **options)
        await transport.open()
        first = m.decode((await transport.read())[0])
        await transport.close()
        assert not is_alive(transport.process.pid)
        return first["id"], transport.explain()

    def test_a_child_ends_when_its_input_is_closed(self):
        code = "import os, sys\n" + self.READY + "sys.stdin.read(); exit(6)"
        assert run(self.end(code, exit_seconds=20))[1] == "exited with status 6"

    def test_a_child_that_still_writes_is_not_blocked(self):
        """What it says after its input was closed is thrown away, rather than left in the pipe."""
        code = "import os, sys\n" + self.READY + "sys.stdin.read(); print('x' * 1_000_000); exit(6)"
        assert run(self.end(code, exit_seconds=20))[1] == "exited with status 6"

    def test_a_child_that_stays_gets_sigterm(self):
        code = self.TERM + self.READY + "signal.pause()"
        text = run(self.end(code, exit_seconds=0.01, term_seconds=20))[1]
        assert text == 'exited with status 4; its last words: "got SIGTERM"'

    def test_a_child_that_ignores_sigterm_is_killed(self):
        text = run(self.end(self.STUBBORN, exit_seconds=0.01, term_seconds=0.01))[1]
        assert text == "was killed by SIGKILL"

    def test_the_whole_group_is_ended(self):
        """An npx or a shell in between dies at once, and the server it started would live on."""
        inner = (
            f"import subprocess, sys; subprocess.call([sys.executable, '-c', {self.STUBBORN!r}])"
        )
        pid, text = run(self.end(inner, exit_seconds=0.01, term_seconds=0.05))
        wait_until(lambda: not is_alive(pid))
        assert text in ("was killed by SIGKILL", "was killed by SIGTERM")

    def test_what_a_child_leaves_behind_is_ended_too(self):
        code = (
            f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {self.STUBBORN!r}])\n"
        )
        pid, text = run(self.end(code + "sys.stdin.read()", term_seconds=0.05))
        wait_until(lambda: not is_alive(pid))
        assert text == "exited with status 0"

    def test_close_may_be_called_by_many_and_again(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            reader = asyncio.ensure_future(transport.read())
            await asyncio.gather(*[transport.close() for _ in range(5)])
            assert await reader == []
            await transport.close()
            assert transport.process.returncode == 0

        run_both_ways(main)

    def test_close_without_open_does_nothing(self):
        async def main():
            transport = child(ECHO)
            await transport.close()
            assert transport.explain() == "was closed"

        run(main())

    def test_close_is_finished_although_its_caller_is_cancelled(self):
        async def main():
            transport = child(ECHO)
            await transport.open()
            closing = asyncio.ensure_future(transport.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            await transport.close()
            assert transport.process.returncode == 0

        run(main())

    def test_when_everything_is_cancelled_the_child_is_killed(self):
        found = []

        async def main():
            transport = child(self.STUBBORN, exit_seconds=60)
            await transport.open()
            await transport.read()
            found.append(transport.process.pid)
            closing = asyncio.ensure_future(transport.close())
            await asyncio.sleep(0)  # and asyncio.run() cancels what is left
            assert not closing.done()

        before = (open_descriptors(), child_processes(), lasting_threads())
        asyncio.run(main())
        wait_until(lambda: not is_alive(found[0]))
        check_nothing_left(before)

    def test_a_server_ends_when_its_client_is_killed(self):
        code = (
            PRELUDE
            + f"""
async def main():
    transport = m.StdioTransport([sys.executable, "-c", {RUN!r}])
    await transport.open()
    print(transport.process.pid, flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""
        )
        with python(code) as client:
            server = int(client.stdout.readline())
            assert is_alive(server)
            client.kill()
            wait_until(lambda: not is_alive(server))

    @pytest.mark.parametrize("how", ["pass", "raise KeyboardInterrupt", "os._exit(0)"])
    def test_a_program_that_forgets_to_close_leaves_no_process(self, how):
        code = (
            PRELUDE
            + f"""
async def main():
    transport = m.StdioTransport([sys.executable, "-c", {ECHO!r}])
    await transport.open()
    await transport.write({{"id": 1}})
    await transport.read()
    print(transport.process.pid, flush=True)
    {how}
asyncio.run(main())
"""
        )
        with python(code) as client:
            server = int(client.stdout.readline())
            client.wait(20)
            wait_until(lambda: not is_alive(server))
            if how == "pass":
                assert client.stderr.read() == b""


class TestCommandLine:
    """What is started, and what is refused. users-and-competitors.md 4.4, rule 11"""

    PYTHON = sys.executable

    @pytest.mark.parametrize(
        "command, argv",
        [
            (["{python}", "a b", "c;d"], ["{python}", "a b", "c;d"]),
            (("{python}", pathlib.PurePath("x")), ["{python}", "x"]),
            ("{python} -c 'a b' \"c d\" e\\ f", ["{python}", "-c", "a b", "c d", "e f"]),
            ("server.py --flag", ["{python}", "server.py", "--flag"]),
            (["server.py", "--flag"], ["{python}", "server.py", "--flag"]),
            (pathlib.PurePath("my server.py"), ["{python}", "my server.py"]),
            ("my server.py", ["{python}", "my server.py"]),
            ("./tool 1", ["./tool", "1"]),
        ],
    )
    @posix
    def test_a_command_becomes_arguments(self, command, argv, tmp_path):
        (tmp_path / "my server.py").touch()

        def fill(part):
            return part.replace("{python}", sys.executable) if isinstance(part, str) else part

        command = fill(command) if not isinstance(command, (list, tuple)) else [*map(fill, command)]
        made = m.command_line(command, str(tmp_path), os.defpath)
        assert made == [fill(part) for part in argv]

    @posix
    def test_programs_are_found_on_the_path_of_the_child(self, tmp_path):
        (tmp_path / "tool").touch(0o755)
        assert m.command_line("tool -x", None, str(tmp_path)) == [str(tmp_path / "tool"), "-x"]
        with pytest.raises(m.ConnectionClosed, match="cannot start 'tool': it is not on the PATH"):
            m.command_line("tool", None, "/nowhere")

    def test_an_empty_command_is_refused(self):
        for empty in ("", "  ", [], ()):
            with pytest.raises(ValueError, match="empty"):
                m.command_line(empty, None, None)

    @pytest.mark.parametrize("program", ["x/npx.cmd", "x/run.BAT"])
    def test_what_cmd_exe_would_interpret_is_refused(self, program):
        """Windows runs .cmd and .bat files by cmd.exe, whatever started them (CVE-2024-24576)."""
        fine = [program, "-y", "@scope/pkg", "C:\\Program Files (x86)\\a b", "x=1"]
        if os.name != "nt":
            assert m.command_line(fine, None, None) == fine
        for char in '&|<>^%!"\r\n':
            with pytest.raises(ValueError, match=r"cmd\.exe"):
                m.command_line([program, f"a{char}b"], None, os.defpath)

    @pytest.mark.parametrize("executable", ["", None, "/opt/maya/bin/maya.bin"])
    @posix
    def test_inside_an_application_python_is_looked_for(self, monkeypatch, executable, tmp_path):
        (tmp_path / "python3").touch(0o755)
        monkeypatch.setattr(sys, "executable", executable)
        made = m.command_line("server.py", None, str(tmp_path))
        assert made == [str(tmp_path / "python3"), "server.py"]

    def test_what_cannot_be_started_is_told(self, tmp_path):
        async def main():
            transport = m.StdioTransport([str(tmp_path / "nothing")])
            with pytest.raises(m.ConnectionClosed, match="cannot start .*nothing.*No such file"):
                await transport.open()
            await transport.close()

        run(main())

    @pytest.mark.parametrize(
        "command, name",
        [
            ("npx -y @scope/pkg", "npx"),
            ("/usr/bin/python3 -u servers/notes.py --x", "notes.py"),
            (["C/python", "a b/notes.py"], "notes.py"),
            (pathlib.PurePath("a b/notes"), "notes"),
            ("", ""),
        ],
    )
    def test_messages_call_the_server_by_its_script_or_program(self, command, name):
        assert m.StdioTransport(command).name == f"the server {name!r}"

    def test_a_target_is_a_command_or_is_not_ours(self):
        for target in ("python x.py", ["python"], ("a", "b"), pathlib.PurePath("x.py")):
            assert m.connect_stdio(target, {"cwd": "/"}).command == target
        for target in ("http://localhost/mcp", "https://x", 5, None, [1], object(), b"x"):
            assert m.connect_stdio(target, {}) is None
        with pytest.raises(TypeError):
            m.connect_stdio("python x.py", {"no_such_option": 1})


class TestConversation:
    """A Client and a Server, two processes."""

    @staticmethod
    def client(code=RUN, **options):
        return m.Client([sys.executable, "-c", code], **{"stderr": "null", **options})

    def test_a_client_calls_a_server(self):
        async def main():
            lines = []
            async with self.client(stderr=lines.append) as c:
                assert [tool["name"] async for tool in c.tools()][:2] == ["add", "noise"]
                assert await c.call("add", {"a": 1, "b": 2}) == 3
                assert await c.call("noise") == "read nothing"
                assert await c.call("length", {"text": "x" * 5_000_000}) == 5_000_000
                calls = [c.call("add", {"a": i}) for i in range(500)]
                assert await asyncio.gather(*calls) == list(range(500))
                assert "from a child" in lines
                transport = c.transport
            assert transport.process.returncode == 0

        run_both_ways(main)

    @posix
    def test_a_server_that_is_killed_fails_what_is_pending_at_once(self):
        async def main():
            heard = asyncio.Event()
            async with self.client(stderr=lambda line: heard.set()) as c:
                calls = [asyncio.ensure_future(c.call(name)) for name in ("forever", "sleep")]
                await heard.wait()
                os.killpg(c.transport.process.pid, 9)
                for pending in calls:
                    with pytest.raises(m.ConnectionClosed, match="was killed by SIGKILL"):
                        await pending
                with pytest.raises(m.ConnectionClosed, match="was killed by SIGKILL"):
                    await c.call("add", {"a": 1})

        run(main())

    def test_a_server_that_fails_at_the_start_is_quoted(self):
        async def main():
            with pytest.raises(m.ConnectionClosed) as caught:
                await self.client("import no_such_module").connect()
            assert str(caught.value).endswith("No module named 'no_such_module'\"")
            assert 'exited with status 1; its last words: "Traceback' in str(caught.value)

        run(main())

    def test_what_it_printed_is_quoted_if_it_never_answers(self):
        async def main():
            client = self.client(
                "import sys; print('welcome!', flush=True); sys.stdin.read()", timeout=0.2
            )
            with pytest.raises(m.RequestTimeout, match='printed to stdout: "welcome!"'):
                await client.connect()

        run(main())

    def test_a_client_may_be_cancelled_at_any_moment(self):
        """... and leaves no process, task or descriptor, which run() checks."""

        async def use():
            async with self.client(ECHO, timeout=0.2) as c:
                await c.ping()

        async def main(steps):
            task = asyncio.ensure_future(use())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, m.MCPError):
                await task

        for steps in range(12):
            run(main(steps))

    def test_a_server_runs_in_a_thread_of_a_host(self):
        """start_in_thread("stdio"): no signals there, and stop() gives the streams back."""
        code = (
            SERVER
            + """
done = threading.Event()
app.tool(done.set, name="done")
h = app.start_in_thread("stdio")
assert sys.stdin.readline() == ""
done.wait()
h.stop()
print("stopped", file=sys.stderr, flush=True)
print("afterwards", sys.stdin.readline())
"""
        )
        with python(code) as process:
            process.stdin.write(call(1, "add", a=1))
            process.stdin.flush()
            assert texts(process.stdout.readline()) == {1: "1"}
            process.stdin.write(call(2, "done"))
            process.stdin.flush()
            assert process.stderr.readline() == b"stopped\n"
            out, err = process.communicate(b"mine", timeout=20)
            assert (process.returncode, err) == (0, b"")
            assert out.endswith(b"afterwards mine\n")


###############################################################################
# T24. HTTP/1.1
###############################################################################


class EagerRequests(m.RequestDecoder):
    """Resumes at once: all pipelined requests are items, so that every cutting gives the same."""

    def feed(self, data):
        return self.drain(super().feed(data))

    def eof(self):
        return self.drain(super().eof())

    def drain(self, items):
        more = items
        while more:
            try:
                more = self.resume()
            except m.ProtocolError:  # raised again by the next call
                break
            items = items + more
        return items


class HeadFirst(m.ResponseDecoder):
    """Puts the head before the pieces of the body, so that both are compared."""

    def __init__(self, method="GET"):
        self.told = False
        super().__init__(method)

    def feed(self, data):
        return self.tell(super().feed, data)

    def eof(self):
        return self.tell(super().eof)

    def tell(self, call, *args):
        items = []
        try:
            items = call(*args)
        except m.ProtocolError:
            if self.head is None or self.told:
                raise
        if self.head is not None and not self.told:
            self.told = True
            items = [self.head, *items]
        return items


def requests_in(data, **options):
    """Return (method, target, headers, body) of the requests in `data`, however it is cut."""
    pairs = feed_every_way(EagerRequests, data, **options)
    return [(head.method, head.target, head.headers, body) for head, body in pairs]


HOST = b"Host: a\r\n"


class TestRequests:
    """RFC 9112 §2, §3, §6, §7: what a server reads."""

    @pytest.mark.parametrize(
        "data, expected",
        [
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "/", {"host": "a"}, b"")),
            (
                b"POST /mcp?x=%20 HTTP/1.1\r\nhOST:a:80\r\nCONTENT-LENGTH: 5\r\n\r\nhello",
                ("POST", "/mcp?x=%20", {"host": "a:80", "content-length": "5"}, b"hello"),
            ),
            # a body may look like anything
            (
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n",
                ("POST", "/", {"host": "a", "content-length": "18"}, b"GET / HTTP/1.1\r\n\r\n"),
            ),
            (
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 000\r\n\r\n",
                ("POST", "/", {"host": "a", "content-length": "000"}, b""),
            ),
            # RFC 9112 §2.2: one empty line before a request is passed over
            (b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "/", {"host": "a"}, b"")),
            # §2.3: a higher minor version is 1.1; HTTP/1.0 needs no Host
            (b"GET / HTTP/1.7\r\nHost: a\r\n\r\n", ("GET", "/", {"host": "a"}, b"")),
            (b"GET / HTTP/1.0\r\n\r\n", ("GET", "/", {}, b"")),
            # §3.2: the forms of a target
            (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", ("OPTIONS", "*", {"host": "a"}, b"")),
            (
                b"GET http://b:1/p?q HTTP/1.1\r\nHost: a\r\n\r\n",
                ("GET", "/p?q", {"host": "b:1"}, b""),
            ),
            (b"GET HTTPS://b HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "/", {"host": "b"}, b"")),
            (b"GET http://b?q HTTP/1.0\r\n\r\n", ("GET", "/?q", {"host": "b"}, b"")),
            (b"GET //b/c HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "//b/c", {"host": "a"}, b"")),
            # RFC 9110 §5.5: blanks around a value are not part of it; bytes over 127 are opaque
            (
                b"GET / HTTP/1.1\r\nHost: \t [::1]:8000\t \r\nX:\r\nY: a\tb \xe9\r\n\r\n",
                ("GET", "/", {"host": "[::1]:8000", "x": "", "y": "a\tb \xe9"}, b""),
            ),
            # §5.3: lists over several lines
            (
                b"GET / HTTP/1.1\r\nAccept: a/b\r\nHost: a\r\naccept:c/d, e/f\r\n\r\n",
                ("GET", "/", {"accept": "a/b, c/d, e/f", "host": "a"}, b""),
            ),
            (b"QUERY!x / HTTP/1.1\r\nHost: a\r\n\r\n", ("QUERY!x", "/", {"host": "a"}, b"")),
        ],
    )
    def test_a_request_however_it_is_cut(self, data, expected):
        assert requests_in(data) == [expected]

    @pytest.mark.parametrize(
        "body, expected",
        [
            (b"0\r\n\r\n", b""),
            (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
            (b"00005\r\nhello\r\n1\r\n \r\n000\r\n\r\n", b"hello "),
            (b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", b"0123456789" * 2),
            (b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n"),
            # RFC 9112 §7.1.1: extensions are ignored; §7.1.2: so are trailers
            (b'5;a=1;b="x;y" ; c\r\nhello\r\n0 ;last\r\n\r\n', b"hello"),
            (b"1\r\nx\r\n0\r\nContent-Length: 9\r\nHost: evil\r\n\r\n", b"x"),
        ],
    )
    def test_a_chunked_body_however_it_is_cut(self, body, expected):
        """RFC 9112 §7.1"""
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
        headers = {"host": "a", "transfer-encoding": "Chunked"}
        assert requests_in(head + body) == [("POST", "/", headers, expected)]

    def test_pipelined_requests_come_in_order(self):
        data = (
            b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
            b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n\r\n"
            b"POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
            b"GET /4 HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        found = [(target, body) for _, target, _, body in requests_in(data, eof=True)]
        assert found == [("/1", b"{}"), ("/2", b""), ("/3", b"x"), ("/4", b"")]

    def test_nothing_is_parsed_ahead_of_the_request_being_served(self):
        decoder = m.RequestDecoder()
        get = b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n"
        [(head, _)] = decoder.feed(get % 1 + get % 2)
        assert head.target == "/1" and bytes(decoder.buffer) == get % 2
        assert decoder.feed(b"nonsense\n") == [] and decoder.eof() == []
        [(head, _)] = decoder.resume()
        assert head.target == "/2"
        with pytest.raises(m.ProtocolError):
            decoder.resume()

    def test_the_head_is_there_before_the_body(self):
        decoder = m.RequestDecoder()
        assert decoder.feed(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n") == []
        assert decoder.head is None
        assert decoder.feed(b"Content-Length: 1\r\n\r\n") == []
        assert decoder.head.target == "/" and m.wants_continue(decoder.head)
        [(head, body)] = decoder.feed(b"x")
        assert head.target == "/" and body == b"x" and decoder.head is None

    @pytest.mark.parametrize("data", [b"", b"\r\n", b"GET / HTTP/1.0\r\n\r\n"])
    def test_the_end_between_requests_is_no_error(self, data):
        assert len(feed_every_way(EagerRequests, data, eof=True)) == data.count(b"GET")

    @pytest.mark.parametrize(
        "data",
        [
            b"G",
            b"\r",
            b"\r\n\r",
            b"GET / HTTP/1.1\r\nHost: a\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        ],
    )
    def test_the_end_inside_a_request_is_an_error(self, data):
        """RFC 9112 §8"""
        assert "ended inside" in str(errors_every_way(EagerRequests, data, eof=True))

    def test_good_requests_before_a_bad_one_are_served(self):
        data = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        error = errors_every_way(EagerRequests, data)
        assert (error.http_status, str(error)) == (400, "the header host is missing")

    def test_a_head_that_came_before_is_not_parsed_again(self):
        """... if it is short: what is remembered is bounded."""

        def heads(size):
            blank = b"GET /known HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n"
            data = blank.replace(b"X: ", b"X: " + b"x" * (size - len(blank)))
            decoder = m.RequestDecoder()
            for _ in range(2):
                [(head, body)] = decoder.feed(data)
                assert (head.path, head.size, head.keep_alive, body) == ("/known", 0, True, b"")
                assert decoder.feed(data) == decoder.feed(b"") == []  # one at a time
                [(again, _)] = decoder.resume()
                assert again == head and decoder.resume() == []
                yield head

        assert operator.is_(*heads(m.MAX_KNOWN_HEAD_BYTES))
        assert operator.is_not(*heads(m.MAX_KNOWN_HEAD_BYTES + 1))

    def test_a_head_that_came_before_cannot_be_changed(self):
        [(head, _)] = m.RequestDecoder().feed(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        with pytest.raises(TypeError):
            head.headers["host"] = "b"


# RFC 9112 §11.2: request smuggling lives where two readers of the same bytes disagree. Each row is
# something that a reader somewhere accepts.
SMUGGLING = [
    # the request line
    (400, b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"\r\n\r\n", "request line"),
    (400, b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / x HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /\r\n\r\n", "request line"),
    (400, b"GET\r\nHost: a\r\n\r\n", "request line"),
    (400, b"G\xcbT / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / http/1.1\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / HTTP/1.1x\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / HTTP/11\r\nHost: a\r\n\r\n", "request line"),
    (400, b"GET / HTTP/1.\xb2\r\nHost: a\r\n\r\n", "request line"),
    (505, b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", "HTTP/0.9"),
    (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2.0"),
    # the target
    (501, b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT"),
    (400, b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    (400, b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    (400, b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "target"),
    (400, b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", "the host is not"),
    (400, b"GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n", "the host is not"),
    # Host
    (400, b"GET / HTTP/1.1\r\n\r\n", "host is missing"),
    (400, b"GET http://a/ HTTP/1.1\r\n\r\n", "host is missing"),
    (400, b"GET / HTTP/1.1\r\nHost:\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: a:x\r\n\r\n", "the host is not"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "host is given twice"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "host is given twice"),
    # header lines
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", "line 2 has a space before its colon"),
    (400, b"GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", "line 1 has a space before its colon"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", "line 3 continues the line"),
    (400, b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "line 1 continues the line"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\n\tX: b\r\n\r\n", "line 2 continues the line"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", "line 2 has no colon"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "line 2 has a name with forbidden"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX\x00: b\r\n\r\n", "line 2 has a name with forbidden"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX\xaa: b\r\n\r\n", "line 2 has a name with forbidden"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX(y): b\r\n\r\n", "line 2 has a name with forbidden"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", "line 2 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: \x0b\r\n\r\n", "line 2 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n", "line 2 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n", "line 2 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "line 1 has control characters"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n", "line 2 has control characters"),
    # bare line feeds
    (400, b"GET / HTTP/1.1\nHost: a\n\n", "bare line feed"),
    (400, b"GET / HTTP/1.1\nHost: a\r\n\r\n", "bare line feed"),
    (400, b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "bare line feed"),
    (400, b"GET / HTTP/1.1\r\nHost: a\n\r\n\r\n", "bare line feed"),
    (400, b"GET / HTTP/1.1\r\nHost: a\r\n\nX: b\r\n\r\n", "bare line feed"),
    (400, b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "bare line feed"),
    # fields that steer us
    (400, HOST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "is given twice"),
    (400, HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", "is given twice"),
    (400, HOST + b"Content-Type: a/b\r\nContent-Type: c/d\r\n\r\n", "content-type is given twice"),
    (400, HOST + b"Authorization: a\r\nAuthorization: b\r\n\r\n", "authorization is given twice"),
    (400, HOST + b"Origin: http://a\r\nOrigin: http://b\r\n\r\n", "origin is given twice"),
    (400, HOST + b"Mcp-Session-Id: 1\r\nmcp-session-id: 2\r\n\r\n", "is given twice"),
    (400, HOST + b"Mcp-Method: a\r\nMcp-Method: b\r\n\r\n", "mcp-method is given twice"),
    (400, HOST + b"Mcp-Name: a\r\nMcp-Name: b\r\n\r\n", "mcp-name is given twice"),
    (400, HOST + b"Last-Event-ID: 1\r\nLast-Event-ID: 2\r\n\r\n", "last-event-id is given twice"),
    (
        400,
        HOST + b"MCP-Protocol-Version: 1\r\nMCP-Protocol-Version: 2\r\n\r\n",
        "mcp-protocol-version is given twice",
    ),
    # the length of a body
    (400, HOST + b"Content-Length: +5\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: -1\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 5, 5\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 5 5\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 0x5\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 1_0\r\n\r\nhellohello", "content-length is not a number"),
    (400, HOST + b"Content-Length: 5.0\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length: \xb2\r\n\r\nhe", "content-length is not a number"),
    (400, HOST + b"Content-Length: five\r\n\r\nhello", "content-length is not a number"),
    (400, HOST + b"Content-Length:\r\n\r\n", "content-length is not a number"),
    (400, HOST + b"Content-Length: 00000000000000000005\r\n\r\n", "content-length is not a number"),
    # its coding
    (400, HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "exclude each other"),
    (400, HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "exclude each other"),
    (400, HOST + b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n", "exclude each other"),
    (400, HOST + b"Transfer-Encoding: chunked, chunked\r\n\r\n", "one and last"),
    (
        400,
        HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "one and last",
    ),
    (400, HOST + b"Transfer-Encoding: chunked, identity\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: chunked, gzip\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: gzip\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: xchunked\r\n\r\n", "one and last"),
    (400, HOST + b'Transfer-Encoding: "chunked"\r\n\r\n', "one and last"),
    (400, HOST + b"Transfer-Encoding: chunked;q=1\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: chunked,\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding:\r\n\r\n", "one and last"),
    (400, HOST + b"Transfer-Encoding: \x0bchunked\r\n\r\n", "line 2 has control characters"),
    (400, HOST + b"Transfer-Encoding : chunked\r\n\r\n", "line 2 has a space before its colon"),
    (501, HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "no transfer-encoding but chunked"),
    (501, HOST + b"Transfer-Encoding: , chunked\r\n\r\n", "no transfer-encoding but chunked"),
    (
        400,
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "does not exist in HTTP/1.0",
    ),
]

# What stands where chunks should: RFC 9112 §7.1
BAD_CHUNKS = [
    (b"x\r\n", "does not begin with its size"),
    (b"\r\nhello", "does not begin with its size"),
    (b"0x5\r\nhello\r\n", "does not begin with its size"),
    (b"+5\r\nhello\r\n", "does not begin with its size"),
    (b"-5\r\nhello\r\n", "does not begin with its size"),
    (b" 5\r\nhello\r\n", "does not begin with its size"),
    (b"5 \r\nhello\r\n", "does not begin with its size"),
    (b"1_0\r\nhello\r\n", "does not begin with its size"),
    (b"5\nhello\r\n", "does not begin with its size"),
    (b"5;a\nhello\r\n", "does not begin with its size"),
    (b"5;\x00\r\nhello\r\n", "does not begin with its size"),
    (b"5;a\rb\r\nhello\r\n", "does not begin with its size"),
    (b"\xb2\r\nhe\r\n", "does not begin with its size"),
    (b"00000000000000005\r\nhello\r\n", "does not begin with its size"),
    (b"5\r\nhelloXX", "does not end where its size says"),
    (b"5\r\nhello\n0", "does not end where its size says"),
    (b"5\r\nhello!\r\n", "does not end where its size says"),
    (b"5\r\nhell\r\n0\r\n\r\n", "does not end where its size says"),
    (b"0\r\n\n", "header line 1 ends in a bare line feed"),
    (b"0\r\nX: y\n", "header line 1 ends in a bare line feed"),
    (b"0\r\nGET / HTTP/1.1\r\n", "header line 1 has no colon"),
    (b"0\r\n X: y\r\n", "header line 1 continues the line before it"),
    (b"0\r\nX : y\r\n", "header line 1 has a space before its colon"),
]


class TestStrictness:
    """Issue: strict where leniency is a hole. Research 4.3 and 4.4, rule 2."""

    @pytest.mark.parametrize("status, data, why", SMUGGLING)
    def test_a_doubtful_head_is_refused(self, status, data, why):
        if data.startswith(HOST):
            data = b"POST / HTTP/1.1\r\n" + data
        error = errors_every_way(EagerRequests, data)
        assert why in str(error)
        assert error.http_status == status

    @pytest.mark.parametrize("chunks, why", BAD_CHUNKS)
    def test_a_doubtful_chunk_is_refused(self, chunks, why):
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        error = errors_every_way(EagerRequests, head + chunks)
        assert why in str(error) and error.http_status == 400
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert why in str(errors_every_way(HeadFirst, head + chunks))

    def test_after_an_error_nothing_more_is_read(self):
        """CVE-2024-49768, CVE-2022-29361"""
        decoder = m.RequestDecoder()
        with pytest.raises(m.ProtocolError):
            decoder.feed(b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for call in (decoder.resume, decoder.eof, lambda: decoder.feed(b"\r\n\r\n")):
            with pytest.raises(m.ProtocolError, match="the header host is missing"):
                call()

    def test_error_messages_repeat_no_value(self):
        """What a client sent as a secret does not come back in an answer, nor in a log."""
        for _, data, _ in SMUGGLING:
            with pytest.raises(m.ProtocolError) as caught:
                m.RequestDecoder().feed(data.replace(b"\r\n\r\n", b"\r\nX: secret\n\r\n\r\n"))
            assert "secret" not in str(caught.value) and str(caught.value).isascii()

    def test_a_whole_head_is_judged_as_strictly(self):
        """The same grammar for a block that did not come through a decoder."""
        for line, parse in (
            (b"GET / HTTP/1.0", m.parse_request_head),
            (b"HTTP/1.1 200 OK", m.parse_response_head),
        ):
            parse(line + b"\r\nX: y\r\n\r\n")
            for rest in (
                b"\r\nX: y\nZ: b\r\n\r\n",
                b"\r\nX: y\r\njunk\r\n",
                b"\r\nX: y",
                b"\r\n",
                b"",
            ):
                with pytest.raises(m.ProtocolError):
                    parse(line + rest)


def with_line(size):
    return b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * (size - 16))


def with_head(size):
    head = b"GET / HTTP/1.1\r\nHost: a\r\nX: %b\r\n\r\n"
    return head % (b"x" * (size - len(head) + 2))


def with_fields(count):
    return b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % (b"X: y\r\n" * (count - 1))


def chunked(body):
    return b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body


def with_extension(size):
    return chunked(b"1;%b\r\nx\r\n0\r\n\r\n" % (b"x" * (size - 4)))


def with_trailer(size):
    return chunked(b"0\r\nX: y\r\nX: %b\r\n\r\n" % (b"x" * (size - 13)))


class TestLimits:
    """Every limit at the limit, and one past it."""

    @pytest.mark.parametrize(
        "make, limit, status",
        [
            (with_line, m.MAX_START_LINE_BYTES, 414),
            (with_head, m.MAX_HEAD_BYTES, 431),
            (with_fields, m.MAX_FIELDS, 431),
            (with_extension, m.MAX_CHUNK_LINE_BYTES, 400),
            (with_trailer, m.MAX_TRAILER_BYTES, 431),
            (lambda n: chunked(b"1\r\nx\r\n" * n + b"0\r\n\r\n"), m.MAX_CHUNKS, 413),
        ],
    )
    def test_a_limit_of_a_request(self, make, limit, status):
        assert len(m.RequestDecoder().feed(make(limit))) == 1
        for pieces in ([make(limit + 1)], [b"%c" % byte for byte in make(limit + 1)]):
            items, error = feed_pieces(m.RequestDecoder(), pieces, False)
            assert isinstance(error, m.LimitExceeded) and error.http_status == status
            assert items == []

    def test_a_head_that_never_ends_is_refused_in_time(self):
        decoder = m.RequestDecoder()
        assert decoder.feed(b"x" * m.MAX_START_LINE_BYTES) == []
        with pytest.raises(m.LimitExceeded, match="first line"):
            decoder.feed(b"x")
        decoder = m.RequestDecoder()
        assert decoder.feed(b"GET / HTTP/1.1\r\n" + b"x" * (m.MAX_HEAD_BYTES - 16)) == []
        with pytest.raises(m.LimitExceeded, match="header fields"):
            decoder.feed(b"x")

    @pytest.mark.parametrize(
        "data",
        [
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
            chunked(b"%x\r\n"),
            chunked(b"1\r\nx\r\n%x\r\n"),
        ],
    )
    def test_a_body_is_refused_by_its_declared_size(self, data):
        limit = 10 - data.count(b"\nx")
        decoder = m.RequestDecoder(max_body=10)
        assert decoder.feed(data % limit) == [] and decoder.head is not None
        for size in (limit + 1, 10**10):
            with pytest.raises(m.LimitExceeded) as caught:
                m.RequestDecoder(max_body=10).feed(data % size)
            assert caught.value.http_status == 413

    def test_a_declared_size_allocates_nothing(self):
        """CVE-2025-13836"""
        decoder = m.RequestDecoder(max_body=10**15)
        decoder.feed(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999999\r\n\r\nx")
        assert sys.getsizeof(decoder.buffer) < 1000

    def test_interim_answers_come_a_few_times_and_not_without_end(self):
        interim, final = b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 204 \r\n\r\n"
        decoder = m.ResponseDecoder("GET")
        for _ in range(m.MAX_INTERIM):
            assert decoder.feed(interim) == []
        assert decoder.head is None and not decoder.buffer
        assert decoder.feed(final) == [] and decoder.head.status == 204
        decoder = m.ResponseDecoder("GET")
        with pytest.raises(m.LimitExceeded, match="more than 16 interim answers"):
            decoder.feed(interim * (m.MAX_INTERIM + 1) + final)

    @pytest.mark.parametrize("text", ['"' * 50_000, '"\\' * 50_000, ",;" * 50_000, "\\" * 50_000])
    def test_hostile_values_cost_linear_time(self, text):
        """CVE-2020-5236: quadratic, each would take minutes."""
        m.parse_list(text)
        m.parse_media_type(text)
        assert m.accepts(text, "a/b") is False


OK = b"HTTP/1.1 200 OK\r\n"


class TestResponses:
    """RFC 9112 §4, §6.3, §7, §9: what a client reads."""

    @pytest.mark.parametrize(
        "data, head, body",
        [
            (OK + b"Content-Length: 2\r\n\r\n{}", (200, "OK", {"content-length": "2"}), b"{}"),
            (
                b"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n",
                (404, "", {"content-length": "0"}),
                b"",
            ),
            (b"HTTP/1.1 599\r\nContent-Length: 0\r\n\r\n", (599, "", {"content-length": "0"}), b""),
            (
                b"HTTP/1.1 200 na\xefve \tOK\r\nContent-Length: 0\r\n\r\n",
                (200, "na\xefve \tOK", {"content-length": "0"}),
                b"",
            ),
            (
                OK
                + b"Transfer-Encoding: chunked\r\n\r\n3\r\n: x\r\n2;e\r\n\n\n\r\n0\r\nT: 1\r\n\r\n",
                (200, "OK", {"transfer-encoding": "chunked"}),
                b": x\n\n",
            ),
            (b"HTTP/1.1 204 No Content\r\n\r\n", (204, "No Content", {}), b""),
            (
                b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
                (304, "Not Modified", {"content-length": "9"}),
                b"",
            ),
            # RFC 9110 §15.2: interim answers come first, and are passed over
            (
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                + OK
                + b"Content-Length: 1\r\n\r\nx",
                (200, "OK", {"content-length": "1"}),
                b"x",
            ),
            # lists may stand in several lines, also with commas of their own
            (
                b"HTTP/1.1 401 U\r\nWWW-Authenticate: A x=1, y\r\nWWW-Authenticate: B\r\n"
                b"Content-Length: 0\r\n\r\n",
                (401, "U", {"www-authenticate": "A x=1, y, B", "content-length": "0"}),
                b"",
            ),
        ],
    )
    def test_a_response_however_it_is_cut(self, data, head, body):
        first, *rest = feed_every_way(HeadFirst, data)
        assert (first.status, first.reason, first.headers) == head
        assert b"".join(rest) == body
        decoder = m.ResponseDecoder("GET")
        decoder.feed(data)
        assert decoder.done and decoder.reusable
        assert feed_every_way(HeadFirst, data, eof=True)[0] == first

    @pytest.mark.parametrize("head", [OK, b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"])
    def test_without_a_length_the_body_goes_to_the_end(self, head):
        """RFC 9112 §6.3, 8."""
        items = feed_every_way(HeadFirst, head + b"\r\nGET / HTTP/1.1\r\n\r\n", eof=True)
        assert items[0].status == 200 and b"".join(items[1:]) == b"GET / HTTP/1.1\r\n\r\n"
        decoder = m.ResponseDecoder("GET")
        assert decoder.feed(head + b"\r\nx") == [b"x"] and not decoder.done
        assert decoder.eof() == [] and decoder.done and not decoder.reusable

    def test_a_stream_is_passed_on_as_it_comes(self):
        decoder = m.ResponseDecoder("POST")
        assert decoder.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n") == []
        assert decoder.head.status == 200
        assert decoder.feed(b"9\r\ndata") == [b"data"]
        assert decoder.feed(b": 1\n\n\r") == [b": 1\n\n"]
        assert decoder.feed(b"\n0\r\n") == [] and not decoder.done and not decoder.reusable
        assert decoder.feed(b"\r\n") == [] and decoder.done

    @pytest.mark.parametrize(
        "method, head, done",
        [
            ("HEAD", OK + b"Content-Length: 5\r\n\r\n", True),
            ("HEAD", OK + b"Transfer-Encoding: chunked\r\n\r\n", True),
            ("CONNECT", OK + b"\r\n", True),
            ("CONNECT", OK + b"Content-Length: 5\r\n\r\n", True),
            ("CONNECT", b"HTTP/1.1 300 No\r\nContent-Length: 5\r\n\r\n", False),
            ("GET", OK + b"Content-Length: 5\r\n\r\n", False),
            ("GET", b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", True),
        ],
    )
    def test_some_answers_have_no_body(self, method, head, done):
        """RFC 9112 §6.3, 1. and 2."""
        decoder = m.ResponseDecoder(method)
        assert decoder.feed(head) == [] and decoder.done is done
        assert decoder.feed(b"\x16\x03") == ([] if done else [b"\x16\x03"])
        assert bytes(decoder.buffer) == (b"\x16\x03" if done else b"")

    def test_what_follows_an_answer_spoils_the_connection(self):
        """An answer that nobody asked for must not become the answer to the next request."""
        decoder = m.ResponseDecoder("GET")
        decoder.feed(OK + b"Content-Length: 0\r\n\r\n" + OK)
        assert decoder.done and not decoder.reusable

    @pytest.mark.parametrize(
        "data, why",
        [
            (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "changed to another protocol"),
            (b"HTTP/2 200 OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1  200 OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 20 OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 600 OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 200OK\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 200 O\x00K\r\n\r\n", "not HTTP/1.1"),
            (b"SSH-2.0-OpenSSH_9\r\n\r\n", "not HTTP/1.1"),
            (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "bare line feed"),
            (OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "given twice"),
            (OK + b"Content-Length: 1, 1\r\n\r\nx", "not a number"),
            (OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "exclude each other"),
            (OK + b"Transfer-Encoding: gzip\r\n\r\n", "one and last"),
            (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "does not exist"),
            (OK + b"Location: /a\r\nLocation: /b\r\n\r\n", "location is given twice"),
            (OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "too big"),
        ],
    )
    def test_a_doubtful_response_is_refused(self, data, why):
        assert why in str(errors_every_way(HeadFirst, data))

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n",
            OK + b"Content-Length: 2\r\n\r\n{",
            OK + b"Transfer-Encoding: chunked\r\n\r\n",
            OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx",
            OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
        ],
    )
    def test_a_response_cut_short_is_an_error(self, data):
        """RFC 9112 §8 -- an incomplete message, not a short one"""
        assert "the connection ended" in str(errors_every_way(HeadFirst, data, eof=True))

    @pytest.mark.parametrize(
        "version, connection, expected",
        [
            ((1, 1), None, True),
            ((1, 1), "close", False),
            ((1, 1), "Keep-Alive", True),
            ((1, 1), "TE, Close", False),
            ((1, 1), "keep-alive, close", False),
            ((1, 1), "closed", True),
            ((1, 0), None, False),
            ((1, 0), "keep-alive", True),
            ((1, 0), "Keep-Alive, TE", True),
            ((1, 0), "close", False),
        ],
    )
    def test_keep_alive(self, version, connection, expected):
        """RFC 9112 §9.3"""
        headers = {} if connection is None else {"connection": connection}
        assert m.is_keep_alive(m.RequestHead("GET", "/", version, headers)) is expected
        assert m.is_keep_alive(m.ResponseHead(200, "", version, headers)) is expected

    @pytest.mark.parametrize(
        "version, expect, expected",
        [((1, 1), "100-CONTINUE", True), ((1, 0), "100-continue", False), ((1, 1), "x", False)],
    )
    def test_expect(self, version, expect, expected):
        """RFC 9110 §10.1.1 -- an expectation in an HTTP/1.0 request is ignored"""
        head = m.RequestHead("POST", "/", version, {"expect": expect})
        assert m.wants_continue(head) is expected


class TestTargetsAndURLs:
    """RFC 9112 §3.2, RFC 3986."""

    @pytest.mark.parametrize(
        "target, expected",
        [
            ("/", ("/", "")),
            ("/mcp?a=%zz&b", ("/mcp", "a=%zz&b")),
            ("/a?b?c", ("/a", "b?c")),
            ("/%6Dcp", ("/mcp", "")),
            ("/%25%32%35", ("/%25", "")),  # once, not twice
            ("/a%20b%2Fc", ("/a b/c", "")),
            ("/%E2%82%AC", ("/\u20ac", "")),
            ("/.well-known/...", ("/.well-known/...", "")),
            ("*", ("*", "")),
        ],
    )
    def test_a_target_is_decoded_once(self, target, expected):
        assert m.parse_target(target) == expected

    @pytest.mark.parametrize(
        "target",
        "/% /%4 /%zz /%+1 /%00 /%0a /%1F /%7f /%ff /%C0%AF /%ED%A0%80"
        " /.. /a/../b /./a /a/. /%2e%2e/a /a%2f..%2fb /.%2E".split(),
    )
    def test_a_doubtful_path_is_refused(self, target):
        with pytest.raises(m.ProtocolError) as caught:
            m.parse_target(target)
        assert caught.value.http_status == 400

    @pytest.mark.parametrize(
        "url, expected",
        [
            ("http://a", ("http", "a", "a", 80, "/")),
            ("http://a/", ("http", "a", "a", 80, "/")),
            ("HTTPS://A.b:443/mcp?x=/?", ("https", "a.b", "a.b", 443, "/mcp?x=/?")),
            ("http://a:443", ("http", "a:443", "a", 443, "/")),
            ("https://a:80?q", ("https", "a:80", "a", 80, "/?q")),
            ("http://[::1]:8000/x", ("http", "[::1]:8000", "::1", 8000, "/x")),
            ("http://127.0.0.1:/x", ("http", "127.0.0.1", "127.0.0.1", 80, "/x")),
            ("http://a_b:1/caf\xe9%20\\", ("http", "a_b:1", "a_b", 1, "/caf%C3%A9%20%5C")),
        ],
    )
    def test_a_url(self, url, expected):
        found = m.parse_url(url)
        assert found == expected
        assert str(found) == f"{found.scheme}://{found.authority}{found.target}"
        assert m.parse_url(str(found)) == found
        head = m.encode_request("GET", found.target, {"Host": found.authority})
        assert m.parse_request_head(head).target == found.target

    @pytest.mark.parametrize(
        "url, why",
        [
            ("", "http(s)://"),
            ("a:80", "http(s)://"),
            ("ftp://a/", "http(s)://"),
            ("http\u017f://a/", "http(s)://"),
            ("http://a/#top", "#fragment"),
            ("http://a/ b", "blanks"),
            (" http://a/", "blanks"),
            ("http://a/\r\nX: y", "blanks"),
            ("http://a\n/", "blanks"),
            ("http://a\x00/", "blanks"),
            ("http://a/\x7f", "blanks"),
            ("http://", "not a host"),
            ("http://:80/", "not a host"),
            ("http://\u0430/", "not a host"),
            ("http://a\\b/", "not a host"),
            ("http://::1/", "not a host"),
            ("http://[::1/", "not a host"),
            ("http://a:b/", "not a host"),
            ("http://a:+1/", "not a host"),
            ("http://a:0/", "no port 0"),
            ("http://a:65536/", "no port 65536"),
            ("http://a:\u0661/", "not a host"),
            ("http://user:pw@a/", "headers="),
        ],
    )
    def test_what_is_not_a_url_of_ours_is_refused(self, url, why):
        with pytest.raises(ValueError) as caught:
            m.parse_url(url)
        assert why in str(caught.value) and "pw" not in str(caught.value)

    @pytest.mark.parametrize(
        "text, expected",
        [("a", ("a", None)), ("A:1", ("a", 1)), ("[A::1]:2", ("a::1", 2)), ("a:", ("a", None))],
    )
    def test_an_authority(self, text, expected):
        assert m.parse_authority(text) == expected


class TestValues:
    """RFC 9110 §5.6, §8.3.1, §12.5.1."""

    @pytest.mark.parametrize(
        "text, expected",
        [
            ("", []),
            (" , ,", []),
            ("a", ["a"]),
            ("a,b , c", ["a", "b", "c"]),
            ('"a,b",c', ['"a,b"', "c"]),
            (r'x="a\",b", c', [r'x="a\",b"', "c"]),
            ('a, "b, c', ["a", '"b, c']),
            (
                'Bearer realm="a, b", scope="c d", DPoP',
                ['Bearer realm="a, b"', 'scope="c d"', "DPoP"],
            ),
        ],
    )
    def test_a_list(self, text, expected):
        assert m.parse_list(text) == expected

    @pytest.mark.parametrize(
        "text, expected",
        [
            ("application/json", ("application/json", {})),
            ("Text/HTML;Charset=UTF-8", ("text/html", {"charset": "UTF-8"})),
            ('text/html ; charset="utf;8" ; x', ("text/html", {"charset": "utf;8"})),
            (r'a/b;x="\"\\y"', ("a/b", {"x": '"\\y'})),
            ("a/b; x=1; X=2", ("a/b", {"x": "1"})),
            ("", ("", {})),
            (";x=1", ("x=1", {})),
        ],
    )
    def test_a_media_type(self, text, expected):
        assert m.parse_media_type(text) == expected

    @pytest.mark.parametrize(
        "accept, json_too, events_too",
        [
            ("application/json, text/event-stream", True, True),
            ("application/json", True, False),
            ("text/event-stream;q=0.1", False, True),
            ("*/*", True, True),
            ("text/*", False, True),
            ("*/*;q=0.5, text/event-stream;q=0", True, False),
            ("text/*;q=0, */*", True, False),
            ("text/event-stream, text/*;q=0, */*;q=0.000", False, True),
            ("APPLICATION/JSON;charset=utf-8;Q=1.0", True, False),
            ("application/*;q=0.001", True, False),
            ("application/jsonx, text/event-streams", False, False),
            ("application/json-seq", False, False),
            ("", False, False),
            ("json", False, False),
            ("application/json;v=1, application/json;v=2;q=0", True, False),
        ],
    )
    def test_accept(self, accept, json_too, events_too):
        assert m.accepts(accept, "application/json") is json_too
        assert m.accepts(accept, "text/event-stream") is events_too


class TestEncoding:
    """What we write: whole, and not to be injected into (research 4.4, rule 10)."""

    @pytest.mark.parametrize(
        "name, value",
        [
            ("X", "a\r\nY: b"),
            ("X", "a\nY: b"),
            ("X", "a\rb"),
            ("X", "a\r\n\r\nbody"),
            ("X", "a\r\n folded"),
            ("X", "\x00"),
            ("X", "\x7f"),
            ("X", "\u20ac"),
            ("X", "\u2028"),
            ("X", "\u010d\u010a"),  # CR and LF, to a careless encoder
            ("X\r\nY", "a"),
            ("X: a\r\nY", "b"),
            ("X:Y", "a"),
            ("X ", "a"),
            (" X", "a"),
            ("", "a"),
            ("\xe9", "a"),
        ],
    )
    def test_headers_cannot_be_injected(self, name, value):
        """CVE-2020-7695, CVE-2018-1000164"""
        for headers in ({name: value}, {"A": "b", name: value, "C": "d"}):
            with pytest.raises(ValueError):
                m.encode_request("GET", "/", headers)
            with pytest.raises(ValueError):
                m.encode_response(200, headers, None)

    @pytest.mark.parametrize(
        "method, target",
        [
            ("GET", "/ HTTP/1.1\r\nX: y\r\n"),
            ("GET", "/\r\n"),
            ("GET", "/\n"),
            ("GET", "/a b"),
            ("GET", "/\x00"),
            ("GET", "/\xe9"),
            ("GET", "/#a"),
            ("GET", ""),
            ("GET /", "/"),
            ("G\r\nX", "/"),
            ("", "/"),
            ("CONNECT", "a:443 HTTP/1.1\r\nX: y"),
        ],
    )
    def test_request_lines_cannot_be_injected(self, method, target):
        """CVE-2020-26116, CVE-2019-11236, CVE-2026-1502"""
        with pytest.raises(ValueError):
            m.encode_request(method, target, {"Host": "a"})

    @pytest.mark.parametrize(
        "headers",
        [
            {"Content-Length": "5"},
            {"content-LENGTH": "2"},
            {"Transfer-Encoding": "chunked"},
            {"Accept": "a", "ACCEPT": "b"},
        ],
    )
    def test_there_is_one_framing_and_one_of_each(self, headers):
        with pytest.raises(ValueError):
            m.encode_request("POST", "/", headers, b"{}")
        with pytest.raises(ValueError):
            m.encode_response(200, headers, b"{}")

    def test_requests(self):
        """RFC 9110 §8.6: who sends a body says its size, be it 0."""
        assert m.encode_request("GET", "/", {"Host": "a"}) == b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        for method in ("PUT", "PATCH"):
            assert m.encode_request(method, "/", {}).endswith(b"\r\nContent-Length: 0\r\n\r\n")
        assert m.encode_request("POST", "/", {}) == b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
        assert (
            m.encode_request("DELETE", "/mcp", {"X": "\xe9"}, b"ab")
            == b"DELETE /mcp HTTP/1.1\r\nX: \xe9\r\nContent-Length: 2\r\n\r\nab"
        )
        assert (
            m.encode_request("CONNECT", "[::1]:443", {"Host": "[::1]:443"})
            == b"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n"
        )

    def test_responses(self):
        """RFC 9110 §8.6 -- no Content-Length in a 1xx or 204"""
        assert m.encode_response(202, {}) == b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
        assert m.encode_response(204, {}) == b"HTTP/1.1 204 No Content\r\n\r\n"
        assert m.encode_response(299, {}) == b"HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n"
        assert (
            m.encode_response(200, {"Transfer-Encoding": "chunked"}, None)
            == b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        assert (
            m.encode_response(200, {"Content-Length": "12"}, None)
            == b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"
        )
        for status in (204, 304):
            with pytest.raises(ValueError):
                m.encode_response(status, {}, b"x")

    def test_every_status_in_the_table_reads_back(self):
        for status, reason in m.REASONS.items():
            head = m.parse_response_head(m.encode_response(status, {}))
            assert (head.status, head.reason) == (status, reason)

    def test_an_empty_chunk_does_not_end_the_body(self):
        head = m.encode_response(200, {"Transfer-Encoding": "chunked"}, None)
        pieces = [b"a", b"", b"b" * 300, b"\r\n0\r\n\r\n"]
        data = head + b"".join(map(m.encode_chunk, pieces))
        assert b"".join(feed_every_way(HeadFirst, data)[1:]) == b"".join(pieces)
        decoder = m.ResponseDecoder("GET")
        decoder.feed(data)
        assert not decoder.done
        decoder.feed(m.LAST_CHUNK)
        assert decoder.done

    def test_continue_is_an_interim_answer(self):
        decoder = m.ResponseDecoder("POST")
        decoder.feed(m.CONTINUE + m.encode_response(202, {}))
        assert decoder.head.status == 202

    def test_what_is_written_reads_back(self):
        """Differential: our encoders against our decoders, on random messages."""
        dice = rng("http round trip")
        values = [chr(c) for c in [*range(0x20, 0x7F), *range(0x80, 0x100), 9]]
        names = "abcXYZ019-_!#$%&'*+.^`|~"
        for _ in range(300):
            headers = {}
            for _ in range(dice.randint(0, 8)):
                name = "x" + "".join(dice.choices(names, k=dice.randint(0, 9))).lower()
                headers[name] = "".join(dice.choices(values, k=dice.randint(0, 30))).strip(" \t")
            body = dice.choice([b"", b"x", bytes(dice.choices(range(256), k=99))])
            data = m.encode_request(
                "POST", "/x?" + names.replace("#", ""), {"host": "a", **headers}, body
            )
            [(head, got)] = m.RequestDecoder().feed(data)
            expected = {"host": "a", **headers, "content-length": str(len(body))}
            assert (head.headers, got) == (expected, body)
            decoder = m.ResponseDecoder("POST")
            assert b"".join(decoder.feed(m.encode_response(200, headers, body))) == body
            del expected["host"]
            assert decoder.head.headers == expected and decoder.reusable

    def test_the_standard_library_reads_what_we_write(self):
        """Differential: http.client reads our responses."""
        import http.client

        class Socket:
            def __init__(self, data):
                self.data = data

            def makefile(self, mode):
                return io.BytesIO(self.data)

        whole = m.encode_response(200, {"Content-Type": "application/json"}, b'{"a": 1}')
        stream = m.encode_response(200, {"Transfer-Encoding": "chunked"}, None)
        stream += m.encode_chunk(b'{"a"') + m.encode_chunk(b": 1}") + m.LAST_CHUNK
        for data in (whole, stream):
            response = http.client.HTTPResponse(Socket(data))
            response.begin()
            assert response.status == 200 and response.read() == b'{"a": 1}'


class TestHTTPFuzz:
    """Garbage gives items or ProtocolError, nothing else."""

    SEEDS = [
        b"POST /mcp HTTP/1.1\r\nHost: a:1\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n",
        chunked(b'5;a="b"\r\nhello\r\n1\r\n \r\n0\r\nTrailer: x\r\n\r\n')
        + b"GET http://a/ HTTP/1.1\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: [::1]\r\nAccept: a/b;q=0, */*\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\nuntil the end",
    ]
    PARTS = [
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b":",
        b"\x00",
        b"0",
        b"9",
        b"f",
        b",",
        b";",
        b'"',
        b"\xff",
    ]
    PARTS += [b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"HTTP/1.1"]

    def mutate(self, dice, data):
        for _ in range(dice.randint(1, 4)):
            at, end = dice.randrange(len(data)), dice.randrange(len(data) + 1)
            part = dice.choice([*self.PARTS, data[min(at, end) : max(at, end)], b""])
            data = data[:at] + part + data[at + dice.randint(0, 3) :] or b"x"
        return data

    @pytest.mark.parametrize("make", [EagerRequests, HeadFirst])
    def test_mutated_messages(self, make):
        dice = rng(f"http fuzz {make.__name__}")
        for _ in range(4000):
            data = self.mutate(dice, dice.choice(self.SEEDS))
            cut = dice.randrange(len(data) + 1)
            outcomes = []
            for pieces in ([data], [data[:cut], data[cut:]]):
                items, error = feed_pieces(make(), pieces, True)
                outcomes.append(([comparable(x) for x in merged(items)], type(error)))
            assert outcomes[0] == outcomes[1], data

    def test_mutated_values(self):
        dice = rng("http values")
        for _ in range(3000):
            text = self.mutate(dice, b'B a="b\\"c", text/html;q=0.5;x="y;z", *').decode("latin-1")
            for item in m.parse_list(text):
                m.parse_media_type(item)
            m.accepts(text, "a/b")
            for function, error in ((m.parse_target, m.ProtocolError), (m.parse_url, ValueError)):
                with contextlib.suppress(error):
                    function("http://a/%2e%41" + text)


###############################################################################
# T25. Server-sent events
###############################################################################


def reference_events(data):
    """Return (data, event, id) of a whole stream: WHATWG HTML §9.2.6, word for word, no decoder."""
    text = data.decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        text = text[1:]
    *lines, _ = re.split("\r\n|\r|\n", text)
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


class TestReadingEvents:
    """WHATWG HTML §9.2.6, "Interpreting an event stream"."""

    @pytest.mark.parametrize(
        "data, expected",
        [
            # the examples of §9.2.6
            (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("YHOO\n+2\n10", "message", "")]),
            (
                b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
                b"data:  third event\n\n",
                [
                    ("first event", "message", "1"),
                    ("second event", "message", ""),
                    (" third event", "message", ""),
                ],
            ),
            (b"data\n\ndata\ndata\n\ndata:", [("", "message", ""), ("\n", "message", "")]),
            (b"data:test\n\ndata: test\n\n", [("test", "message", "")] * 2),
            # ends of lines, mixed
            (b"data: a\r\rdata: b\r\n\r\ndata: c\n\n", [(x, "message", "") for x in "abc"]),
            (b"data: a\rdata: b\ndata: c\r\n\r", [("a\nb\nc", "message", "")]),
            (b"data: a\n\rdata: b\r\r\n", [("a", "message", ""), ("b", "message", "")]),
            # one byte order mark, at the start
            (b"\xef\xbb\xbfdata: a\n\n", [("a", "message", "")]),
            (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
            (b"\n\xef\xbb\xbfdata: a\n\n", []),
            (b"data: \xef\xbb\xbfa\n\n", [("\ufeffa", "message", "")]),
            # comments, unknown fields, names that only look right
            (b":data: a\n:\n\n", []),
            (b"Data: a\n data: b\ndata : c\ndatas: d\nfoo\n\n", []),
            (b"data: a:b: c\n\n", [("a:b: c", "message", "")]),
            # the type
            (b"event: x\ndata: a\n\ndata: b\n\n", [("a", "x", ""), ("b", "message", "")]),
            (b"event: x\nevent: y\ndata: a\n\n", [("a", "y", "")]),
            (b"event\ndata: a\n\n", [("a", "message", "")]),
            (b"event: x\n\ndata: a\n\n", [("a", "message", "")]),
            # ids last until the next one; an id with NUL is none
            (b"id: 1\ndata: a\n\ndata: b\n\n", [("a", "message", "1"), ("b", "message", "1")]),
            (b"id: 1\n\ndata: a\n\n", [("a", "message", "1")]),
            (b"id: 1\nid: 2\x00\ndata: a\n\n", [("a", "message", "1")]),
            # a priming event: an event whose data is the empty string
            (b"id: 7\nretry: 500\ndata:\n\n", [("", "message", "7")]),
            # UTF-8, good and bad
            ("data: \u20ac\U0001f600\n\n".encode(), [("\u20ac\U0001f600", "message", "")]),
            (b"data: \xff\xe2\x82\n\n", [("\ufffd\ufffd", "message", "")]),
            (b"data: \xc2\x85\xe2\x80\xa8\x0b\x0c\n\n", [("\x85\u2028\x0b\x0c", "message", "")]),
            # what is incomplete at the end is dropped
            (b"data: a\n\ndata: b\n", [("a", "message", "")]),
            (b"data: a", []),
            (b"", []),
        ],
    )
    def test_a_stream_however_it_is_cut(self, data, expected):
        assert feed_every_way(m.SSEDecoder, data, eof=True) == expected
        assert reference_events(data) == expected

    @pytest.mark.parametrize("end", [b"\n\n", b"\r\r", b"\r\n\r", b"\n\r"])
    def test_an_event_does_not_wait_for_the_next_byte(self, end):
        decoder = m.SSEDecoder()
        assert decoder.feed(b"data: a" + end) == [("a", "message", "")]
        assert decoder.feed(b"\ndata: b\n\n") == [("b", "message", "")]

    def test_an_id_counts_once_its_event_is_complete(self):
        """§9.2.5: or else what a cut swallowed would never be sent again."""
        decoder = m.SSEDecoder("3")
        decoder.feed(b"id: 4\ndata: lost")
        assert decoder.last_id == "3"
        assert decoder.feed(b"\n\n") == [("lost", "message", "4")] and decoder.last_id == "4"
        assert decoder.feed(b"id: 5\n\n") == [] and decoder.last_id == "5"
        assert decoder.feed(b"id\n\n") == [] and decoder.last_id == ""

    def test_ids_go_on_over_a_reconnection(self):
        decoder = m.SSEDecoder("3")
        assert decoder.feed(b"data: a\n\n") == [("a", "message", "3")] and decoder.last_id == "3"

    @pytest.mark.parametrize(
        "line, expected",
        [
            (b"retry: 0", 0),
            (b"retry:1500", 1500),
            (b"retry: 0000000000000000000012", 12),
            (b"retry: 3600000", m.MAX_RETRY_MS),
            (b"retry: 3600001", m.MAX_RETRY_MS),
            (b"retry: " + b"9" * 10_000, m.MAX_RETRY_MS),
            (b"retry", None),
            (b"retry:", None),
            (b"retry: -1", None),
            (b"retry: +1", None),
            (b"retry: 1_0", None),
            (b"retry: 1.5", None),
            (b"retry: 1 ", None),
            (b"retry:  1", None),
            (b"retry: 0x1", None),
            ("retry: \u0661".encode(), None),
        ],
    )
    def test_retry_is_ascii_digits(self, line, expected):
        decoder = m.SSEDecoder()
        assert decoder.feed(line + b"\n") == []
        assert decoder.retry_ms == expected

    @pytest.mark.parametrize(
        "fits, too_long",
        [
            (b"data: 7890123456789\n\n", b"data: 78901234567890\n\n"),
            (b"data: 789\ndata: 789\n\n", b"data: 789\ndata: 7890\n\n"),
            (b"data\n" * 4 + b"\n", b"data\n" * 4 + b"data\n\n"),
            (b": 34567890123456789\n\n", b": 345678901234567890\n\n"),
            (b"id: 567890123456789\n\n", b"id: 5678901234567890\n\n"),
        ],
    )
    def test_an_event_has_a_limit(self, fits, too_long):
        feed_every_way(lambda: m.SSEDecoder(limit=20), fits * 3)
        error = errors_every_way(lambda: m.SSEDecoder(limit=20), b"data: a\n\n" + too_long)
        assert isinstance(error, m.LimitExceeded)

    def test_a_line_that_never_ends_is_refused_in_time(self):
        decoder = m.SSEDecoder(limit=20)
        assert decoder.feed(b"x" * 20) == []
        with pytest.raises(m.LimitExceeded):
            decoder.feed(b"x")

    def test_comments_without_end_are_no_event(self):
        """A keep-alive that is only a comment line, with no empty line after it, costs nothing."""
        decoder = m.SSEDecoder(limit=100)
        for _ in range(100):
            assert decoder.feed(b": ping\n") == []
        assert decoder.feed(b"data: a\n\n") == [("a", "message", "")] and not decoder.buffer

    def test_random_streams_against_the_reference(self):
        """Differential, and fuzz: every input is valid, in every cutting."""
        dice = rng("sse")
        parts = [
            b"\r",
            b"\n",
            b"\r\n",
            b"\n\n",
            b":",
            b" ",
            b"data",
            b"data: ",
            b"data:",
            b"event: ",
        ]
        parts += [b"id: ", b"id", b"retry: 9", b"x", b"\x00", b"\xef\xbb\xbf", b"\xe2\x82", b"\xff"]
        for _ in range(3000):
            data = b"".join(dice.choices(parts, k=dice.randint(1, 25)))
            expected = reference_events(data)
            for _ in range(4):
                cuts = sorted(dice.choices(range(len(data) + 1), k=3))
                pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
                assert feed_pieces(m.SSEDecoder(), pieces, True) == (expected, None), data


class TestWritingEvents:
    @pytest.mark.parametrize(
        "arguments, expected",
        [
            ({"data": b"{}"}, b"data: {}\n\n"),
            ({"data": "\u20ac"}, b"data: \xe2\x82\xac\n\n"),
            ({"data": "", "id": "1", "retry": 0}, b"id: 1\nretry: 0\ndata: \n\n"),
            ({"data": b"", "event": "endpoint", "id": ""}, b"event: endpoint\nid: \ndata: \n\n"),
            ({"data": "a\nb\r\nc\rd\n"}, b"data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"),
        ],
    )
    def test_an_event_on_the_wire(self, arguments, expected):
        assert m.encode_event(**arguments) == expected

    @pytest.mark.parametrize(
        "data",
        [
            "",
            " ",
            "  a",
            "a\n",
            "\n",
            "\n\n",
            "a\r\rb",
            "data: x",
            ":",
            "\ufeff",
            "\x00",
            "x\nid: 9\n\n",
        ],
    )
    @pytest.mark.parametrize("event, id", [(None, ""), (" e: f", " 1:2"), ("\xe9", "\u20ac")])
    def test_what_is_written_reads_back(self, data, event, id):
        wire = m.encode_event(data, event=event, id=id)
        assert m.encode_event(data.encode(), event=event, id=id) == wire
        lines = re.sub("\r\n?", "\n", data)
        expected = [(lines, event or "message", id)] * 2
        assert feed_every_way(m.SSEDecoder, wire + m.encode_comment("x") + wire) == expected

    @pytest.mark.parametrize("bad", ["a\nb", "a\r", "\r\ndata: x", "\x00"])
    def test_names_and_ids_cannot_be_injected(self, bad):
        """Research 4.4, rule 10."""
        with pytest.raises(ValueError):
            m.encode_event("a", event=bad)
        with pytest.raises(ValueError):
            m.encode_event("a", id=bad)

    def test_comments(self):
        assert m.encode_comment() == b":\n\n"
        assert m.encode_comment("still here") == b": still here\n\n"
        for bad in ("a\nb", "a\rb"):
            with pytest.raises(ValueError):
                m.encode_comment(bad)
        assert feed_every_way(m.SSEDecoder, m.encode_comment("x") * 3) == []


###############################################################################
# T26. HTTP rules
###############################################################################


def refusal(call, *args):
    """Return the HTTP status with which a rule refuses, and why; (200, "") if it does not."""
    try:
        call(*args)
    except m.ProtocolError as exc:
        return exc.http_status, str(exc)
    return 200, ""


class TestGate:
    """spec 2025-11-25: basic/transports#security-warning"""

    @pytest.mark.parametrize(
        "host, status",
        [
            ("localhost", 200), ("LOCALHOST:8000", 200), ("127.0.0.1:1", 200), ("127.9.9.9", 200),
            ("[::1]", 200), ("[::1]:65535", 200),
            ("evil.example", 403), ("localhost.evil.example", 403), ("127.0.0.1.nip.io", 403),
            ("evil.example:8000", 403), ("0.0.0.0", 403), ("192.168.0.1", 403), ("", 403),
            ("localhost, evil.example", 403), ("localhost@evil.example", 403), ("128.0.0.1", 403),
        ],
    )  # fmt: skip
    def test_a_server_of_this_machine_serves_loopback_names_only(self, host, status):
        assert refusal(m.Gate(True).check, {"host": host})[0] == status

    @pytest.mark.parametrize(
        "origin, status",
        [
            ("http://localhost:3000", 200), ("https://127.0.0.1", 200), ("http://[::1]:6274", 200),
            ("HTTP://LocalHost", 200),
            ("http://evil.example", 403), ("null", 403), ("", 403), ("file://", 403),
            ("http://localhost.evil.example", 403), ("http://localhost@evil.example", 403),
            ("http://localhost/../evil", 403), ("chrome-extension://abc", 403),
            ("http://localhost evil", 403), ("http://localhost, http://evil.example", 403),
        ],
    )  # fmt: skip
    def test_pages_of_this_machine_only_may_ask(self, origin, status):
        assert refusal(m.Gate(True).check, {"host": "localhost", "origin": origin})[0] == status

    def test_the_refusal_names_the_setting_to_change(self):
        _, why = refusal(m.Gate(True).check, {"host": "mcp.example.com"})
        assert "mcp.example.com" in why and "allowed_hosts" in why
        _, why = refusal(m.Gate(True).check, {"host": "localhost", "origin": "https://a.example"})
        assert "https://a.example" in why and "allowed_origins" in why

    @pytest.mark.parametrize(
        "host, origin, status",
        [
            ("mcp.example.com", None, 200), ("MCP.example.com:443", None, 200),
            ("mcp.example.com", "https://mcp.example.com", 200), ("other.example.com", None, 403),
            ("mcp.example.com", "https://app.example.com", 200),
            ("mcp.example.com", "http://app.example.com", 403), ("localhost", None, 403),
            ("mcp.example.com", "https://evil.example", 403), ("mcp.example.com", "null", 403),
        ],
    )  # fmt: skip
    def test_a_public_server_serves_what_it_was_told(self, host, origin, status):
        gate = m.Gate(False, ["mcp.example.com"], ["https://app.example.com/"])
        headers = {"host": host, **({"origin": origin} if origin is not None else {})}
        assert refusal(gate.check, headers)[0] == status

    def test_a_public_server_that_was_told_nothing_takes_any_host_but_no_page(self):
        assert refusal(m.Gate(False).check, {"host": "anything.example"})[0] == 200
        headers = {"host": "anything.example", "origin": "http://anything.example"}
        assert refusal(m.Gate(False).check, headers)[0] == 403, "that is what rebinding looks like"

    def test_a_star_lets_everything_in(self):
        headers = {"host": "a.example", "origin": "https://b.example"}
        assert refusal(m.Gate(True, ["*"], ["*"]).check, headers)[0] == 200
        assert refusal(m.Gate(True, ["*"]).check, headers)[0] == 403

    def test_what_was_let_in_is_remembered_within_bounds(self):
        gate = m.Gate(False)
        for number in range(1000):
            gate.check({"host": f"h{number}"})
        assert len(gate._seen) <= m.MAX_FIELDS
        assert refusal(m.Gate(True).check, {"host": "h1"})[0] == 403

    def test_a_page_that_was_let_in_can_read_the_answer_and_the_session(self):
        """Browsers hide every header that is not exposed."""
        headers = m.cors_headers("http://localhost:3000")
        assert headers["access-control-allow-origin"] == "http://localhost:3000"
        assert "Mcp-Session-Id" in headers["access-control-expose-headers"]
        assert headers["vary"] == "Origin"
        allowed = m.preflight_headers("POST", "authorization,mcp-param-region")
        assert allowed["access-control-allow-headers"] == "authorization,mcp-param-region"
        assert "Authorization" in m.preflight_headers("POST", None)["access-control-allow-headers"]


class TestWhatARequestMustSay:
    """spec 2025-11-25: basic/transports#sending-messages-to-the-server"""

    @pytest.mark.parametrize(
        "kind, status",
        [
            ("application/json", 200), ("Application/JSON; charset=utf-8", 200), ("", 415),
            ("text/plain", 415), ("application/x-www-form-urlencoded", 415),
            ("multipart/form-data; boundary=x", 415), ("application/jsonx", 415),
            ("application/json, text/plain", 415), ("text/plain; application/json", 415),
        ],
    )  # fmt: skip
    def test_a_body_must_be_json(self, kind, status):
        """CVE-2026-33252: "simple" types need no preflight, so any page could send them."""
        assert refusal(m.check_json, {"content-type": kind} if kind else {})[0] == status

    @pytest.mark.parametrize(
        "accept, post, get",
        [
            ("application/json, text/event-stream", 200, 200), (None, 200, 200), ("*/*", 200, 200),
            ("text/event-stream, application/json", 200, 200), ("application/json", 406, 406),
            ("text/event-stream", 406, 200), ("text/html", 406, 406),
            ("application/json, text/event-stream;q=0", 406, 406),
            ("application/*;q=0.1, text/*", 200, 200), ("", 406, 406),
        ],
    )  # fmt: skip
    def test_a_client_must_take_both_kinds_of_answer(self, accept, post, get):
        headers = {} if accept is None else {"accept": accept}
        assert refusal(m.check_accept, headers, m.JSON_TYPE, m.EVENT_TYPE)[0] == post
        assert refusal(m.check_accept, headers, m.EVENT_TYPE)[0] == get

    def test_the_revision_is_known_or_not_named(self):
        """spec 2025-11-25: basic/transports#protocol-version-header"""
        assert m.header_revision({}) is None
        for name, row in m.REVISIONS.items():
            assert m.header_revision({"mcp-protocol-version": name}) is row
        for name in ("", "2025-11-26", "2025-06-18, 2025-11-25", "latest", "x" * 10_000):
            status, why = refusal(m.header_revision, {"mcp-protocol-version": name})
            assert status == 400 and "2025-11-25" in why and len(why) < 300

    @pytest.mark.parametrize(
        "value, token",
        [
            ("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("BEARER a b", "a b"), (None, None),
            ("Bearer", None), ("Bearer ", None), ("Basic abc", None), ("abc", None),
        ],
    )  # fmt: skip
    def test_bearer_tokens(self, value, token):
        assert m.bearer_of({} if value is None else {"authorization": value}) == token

    @pytest.mark.parametrize(
        "text",
        ["", "-", "7", "1-2", "0123456789abcdef", "0123456789abcdef-", "0123456789ABCDEF-1",
         "0123456789abcdef--1", "0123456789abcdef-+1", "0123456789abcdef-1_0",
         "0123456789abcdef-\u0661", "0123456789abcdef-1 ", " 0123456789abcdef-1",
         "0123456789abcdef-1234567890123456"],
    )  # fmt: skip
    def test_event_ids_that_we_did_not_give(self, text):
        assert refusal(m.parse_event_id, text)[0] == 400


###############################################################################
# T27. Connections
###############################################################################


class Wire:
    """A raw connection: it sends exactly what it is told, and reads what comes."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.decoder = None
        self.rest = b""

    @classmethod
    async def open(cls, url, **options):
        where = m.parse_url(url)
        return cls(*await asyncio.open_connection(where.host, where.port, **options))

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        self.drop()
        await asyncio.sleep(0)

    def send(self, data):
        self.writer.write(data)

    def drop(self):
        self.writer.transport.abort()

    def reset(self):
        """Close so that the other end sees a reset, not an orderly end."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.drop()

    async def head(self, method="POST"):
        """Read the head of the next answer."""
        self.decoder = m.ResponseDecoder(method)
        self.pieces = self.decoder.feed(self.rest)
        self.rest = b""
        while self.decoder.head is None:
            await self._more()
        return self.decoder.head

    async def _more(self):
        data = await self.reader.read(65536)
        self.pieces += self.decoder.feed(data) if data else self.decoder.eof()
        return data

    async def answer(self, method="POST"):
        """Read a whole answer: (status, headers, body)."""
        head = await self.head(method)
        while not self.decoder.done:
            await self._more()
        self.rest = bytes(self.decoder.buffer)
        return head.status, head.headers, b"".join(self.pieces)

    async def everything(self):
        """Read until the other end closes, or resets."""
        data = self.rest
        with contextlib.suppress(ConnectionError):
            while piece := await self.reader.read(65536):
                data += piece
        return data


@contextlib.asynccontextmanager
async def listening(handle=None, *, max_body=1000, **options):
    """Serve with a handler; without one, requests are echoed and noted in `listener.seen`."""

    async def echo(request, response):
        listener.seen.append(request)
        text = f"{request.method} {request.path}?{request.query} ".encode() + request.body
        await response.send(200, {"content-type": "text/plain"}, text)

    listener = m.Listener(handle or echo, max_body)
    listener.seen = []
    listener.root = await listener.start(
        options.pop("host", "127.0.0.1"), options.pop("port", 0), **options
    )
    try:
        yield listener
    finally:
        await listener.stop(0)
        assert not listener.connections and not listener.addresses and not listener.tasks.running


def serving(listener):
    """Return the tasks of a listener that serve requests, of lost clients too."""
    idle = {connection.task for connection in listener.connections if not connection.response}
    return listener.tasks.running - idle


@contextlib.asynccontextmanager
async def scripted(serve):
    """Run `serve(wire)` for each connection to a port; gives the URL of its root."""
    tasks = set()

    async def run_one(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await serve(Wire(reader, writer))
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(run_one, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def one_request(wire):
    """Read one request in a scripted server: (head, body)."""
    decoder = m.RequestDecoder()
    items = []
    while not items:
        data = await wire.reader.read(65536)
        if not data:
            raise ConnectionResetError
        items = decoder.feed(data)
    return items[0]


GET = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"


class TestServing:
    """RFC 9112: one request after the other, on one connection."""

    def test_requests_follow_each_other_on_one_connection(self):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                for number in range(3):
                    body = b"x" * number
                    wire.send(b"POST /%d HTTP/1.1\r\nHost: x\r\n" % number)
                    wire.send(b"Content-Length: %d\r\n\r\n" % number + body)
                    status, headers, got = await wire.answer()
                    assert (status, got) == (200, b"POST /%d? " % number + body)
                    assert "connection" not in headers
                assert len(listener.connections) == 1

        run(main())

    def test_a_request_that_comes_byte_by_byte(self):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                for byte in b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok":
                    wire.send(bytes([byte]))
                    await asyncio.sleep(0)
                assert (await wire.answer())[2] == b"POST /? ok"

        run(main())

    def test_a_thousand_pipelined_requests_are_answered_in_order(self):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(b"".join(GET.replace(b"/a", b"/%d" % n) for n in range(1000)))
                for number in range(1000):
                    assert (await wire.answer("GET"))[2] == b"GET /%d?b=c " % number

        run(main())

    def test_pipelined_input_is_bounded_while_a_request_is_served(self):
        """The rest waits in the client's own buffers."""

        async def main():
            gate = asyncio.get_running_loop().create_future()

            async def slow(request, response):
                await gate
                await response.send(200, {}, b"done")

            async with listening(slow) as listener, await Wire.open(listener.root) as wire:
                wire.send(GET)
                await until(lambda: listener.connections)
                [connection] = listener.connections
                await until(lambda: connection.response)
                wire.send(GET * 100_000)
                await until(lambda: not connection.transport.is_reading())
                gate.set_result(None)
                for _ in range(2500):
                    assert (await wire.answer("GET"))[2] == b"done"

        run(main())

    def test_connection_close_is_obeyed_and_said(self):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + GET)
                status, headers, _ = await wire.answer("GET")
                assert (status, headers["connection"]) == (200, "close")
                assert await wire.everything() == b"" and len(listener.seen) == 1

        run(main())

    @pytest.mark.parametrize("keep", [False, True])
    def test_http_1_0(self, keep):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(b"GET /old HTTP/1.0\r\n" + keep * b"Connection: keep-alive\r\n" + b"\r\n")
                if keep:
                    wire.send(b"GET /old HTTP/1.0\r\n\r\n")
                    assert (await wire.answer("GET"))[2] == b"GET /old? "
                assert (await wire.answer("GET"))[2] == b"GET /old? "
                assert await wire.everything() == b""

        run(main())

    def test_a_stream_is_chunked_or_ended_by_the_connection(self):
        """RFC 9112 §6.1: no chunks for HTTP/1.0."""

        async def stream(request, response):
            await response.start(200, {"content-type": "text/plain"}, b"one ")
            await response.write(b"")
            await response.write(b"two ")
            await response.end(b"three")
            await response.write(b"never")
            await response.end()

        async def main():
            async with listening(stream) as listener:
                async with await Wire.open(listener.root) as wire:
                    for _ in range(2):
                        wire.send(GET)
                        status, headers, body = await wire.answer("GET")
                        assert (status, body) == (200, b"one two three")
                        assert headers["transfer-encoding"] == "chunked"
                async with await Wire.open(listener.root) as wire:
                    wire.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                    head, _, body = (await wire.everything()).partition(b"\r\n\r\n")
                    assert body == b"one two three" and b"chunked" not in head
                    assert b"connection: close" in head

        run(main())

    def test_head_has_the_length_and_not_the_body(self):
        """RFC 9110 §9.3.2"""

        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(b"HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
                status, headers, body = await wire.answer("HEAD")
                assert (status, headers["content-length"], body) == (200, "9", b"")
                assert (await wire.answer("GET"))[2] == b"GET /a?b=c "

        run(main())

    def test_who_waits_for_100_continue_gets_it(self):
        """RFC 9110 §10.1.1"""

        async def main():
            head = (
                b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
            )
            async with listening() as listener, await Wire.open(listener.root) as wire:
                for _ in range(2):
                    wire.send(head)
                    assert (
                        await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
                    )
                    wire.send(b"ok")
                    assert (await wire.answer())[2] == b"POST /? ok"
                wire.send(head + b"ok")  # did not wait: needs none
                assert (await wire.everything_until(b"POST /? ok")).count(b"HTTP/1.1") == 1
                wire.send(GET + head)  # pipelined
                data = await wire.everything_until(b"100 Continue\r\n\r\n")
                assert data.count(b"HTTP/1.1") == 2
                wire.send(b"ok")
                assert (await wire.answer())[2] == b"POST /? ok"

        async def everything_until(self, mark):
            return await self.reader.readuntil(mark)

        Wire.everything_until = everything_until
        run(main())

    def test_every_answer_has_a_date(self):
        """RFC 9110 §6.6.1"""

        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(GET)
                date = (await wire.answer("GET"))[1]["date"]
                wire.send(b"nonsense\r\n\r\n")
                assert (await wire.answer())[1]["date"]
            form = "%a, %d %b %Y %H:%M:%S GMT"
            then = datetime.datetime.strptime(date, form).replace(tzinfo=datetime.timezone.utc)
            assert abs((datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()) < 60

        run(main())

    def test_the_access_log_is_written_at_info(self, caplog):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(GET + b"nonsense\r\n\r\n")
                await wire.everything()

        with caplog.at_level(logging.INFO, "mcp_lite"):
            run(main())
        assert re.search(r"127\.0\.0\.1 GET /a\?b=c 200 [0-9.]+ ms", caplog.text)
        assert "refused: 400 the request line" in caplog.text

    def test_a_handler_that_fails_gives_500_without_its_reason(self, caplog):
        async def fail(request, response):
            if request.path == "/late":
                await response.start(200, {})
                await response.write(b"begun")
            raise ValueError("secret")

        async def main():
            async with listening(fail) as listener:
                async with await Wire.open(listener.root) as wire:
                    wire.send(GET)
                    data = await wire.everything()
                    assert data.startswith(b"HTTP/1.1 500 ") and b"secret" not in data
                async with await Wire.open(listener.root) as wire:
                    wire.send(b"GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
                    data = await wire.everything()
                    assert b"begun" in data and not data.endswith(b"0\r\n\r\n"), "taken for whole"

        run(main())
        assert "secret" in caplog.text

    def test_context_variables_of_one_request_are_not_seen_by_the_next(self):
        """Behind a proxy the next request on a connection may be another user's."""
        user = contextvars.ContextVar("user", default="nobody")

        async def note(request, response):
            seen.append(user.get())
            user.set("alice")
            await asyncio.sleep(0)
            seen.append(user.get())
            await response.send(200, {}, b"")

        async def main():
            async with listening(note) as listener, await Wire.open(listener.root) as wire:
                for _ in range(2):
                    wire.send(GET)
                    await wire.answer("GET")

        seen = []
        run(main())
        assert seen == ["nobody", "alice"] * 2

    def test_a_request_costs_no_task_besides_its_connections(self):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(GET)
                await wire.answer("GET")
                before = asyncio.all_tasks()
                tasks = []

                async def note(request, response):
                    tasks.extend(asyncio.all_tasks() - before)
                    await response.send(200, {}, b"")

                listener.handle = note
                wire.send(GET)
                await wire.answer("GET")
                assert tasks == []

        run(main())

    def test_pipelined_requests_let_others_have_their_turn(self):
        async def main():
            order = []

            async def note(request, response):
                order.append(request.path)
                await response.send(200, {}, b"")

            async with listening(note) as listener:
                async with await Wire.open(listener.root) as one, await Wire.open(
                    listener.root
                ) as two:
                    await until(lambda: len(listener.connections) == 2)
                    one.send(GET * 500)
                    two.send(GET.replace(b"/a", b"/b"))
                    await two.answer("GET")
                    for _ in range(500):
                        await one.answer("GET")
            assert order.index("/b") < 100

        run(main())

    def test_what_cannot_be_sent_gives_500(self, caplog):
        async def split(request, response):
            await response.send(200, {"x": "a\r\nb: c"}, b"")

        async def main():
            async with listening(split) as listener, await Wire.open(listener.root) as wire:
                wire.send(GET)
                assert (await wire.everything()).startswith(b"HTTP/1.1 500 ")

        run(main())


POST = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
# Each is followed by a second request, which must not be served.
SMUGGLED = [
    (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
    (POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    (POST + b"Content-Length: 3, 3\r\n\r\nabc", 400),
    (POST + b"Content-Length: +3\r\n\r\nabc", 400),
    (POST + b"Content-Length: -3\r\n\r\nabc", 400),
    (POST + b"Content-Length: 0x3\r\n\r\nabc", 400),
    (POST + b"Content-Length: 1_0\r\n\r\nabc", 400),
    (POST + b"Content-Length: \xb2\r\n\r\nabc", 400),
    (POST + b"Content-Length:\r\n\r\nabc", 400),
    (POST + b"Content-Length : 3\r\n\r\nabc", 400),
    (POST + b" Content-Length: 3\r\n\r\nabc", 400),
    (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    (POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
    (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (CHUNKED + b"+1\r\nx\r\n0\r\n\r\n", 400),
    (CHUNKED + b"1\nx\r\n0\r\n\r\n", 400),
    (CHUNKED + b"1\r\nxyz0\r\n\r\n", 400),
    (CHUNKED + b"1;\n\r\nx\r\n0\r\n\r\n", 400),
    (b"GET / HTTP/1.1\nHost: x\n\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX\x0b: y\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
    (b"GET /../x HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"GET /%2e%2e/x HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"GET /%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 501),
    (b"GET /" + b"a" * 8200 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 33_000 + b"\r\n\r\n", 431),
    (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 101 + b"\r\n", 431),
    (POST + b"Content-Length: 1001\r\n\r\n", 413),
    (POST + b"Content-Length: 10000000000\r\n\r\n", 413),
    (CHUNKED + b"3e9\r\n", 413),
    (CHUNKED + b"ffffffffffffffff\r\n", 413),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"\0" * 100 + b"\r\n\r\n", 400),
]  # fmt: skip


class TestRefusingRequests:
    """After any doubt: one answer, close, and nothing more is read. users-and-competitors 4.4, 2"""

    @pytest.mark.parametrize("case", range(len(SMUGGLED)))
    def test_nothing_is_served_after_a_broken_request(self, case):
        data, wanted = SMUGGLED[case]

        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(data + b"\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
                got = await wire.everything()
                assert int(got.split()[1]) == wanted
                assert got.count(b"HTTP/1.1 ") == 1 and b"connection: close" in got
                msg = json.loads(got.partition(b"\r\n\r\n")[2])
                assert msg["jsonrpc"] == "2.0" and "id" not in msg
                wire.drop()
                await until(lambda: not listener.connections)
                assert listener.seen == []

        run(main())

    def test_what_came_before_the_broken_request_is_served(self):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(GET + b"GET / HTTP/1.1\nHost: x\n\n" + GET)
                data = await wire.everything()
                assert re.findall(rb"HTTP/1.1 ([0-9]+)", data) == [b"200", b"400"]
                assert len(listener.seen) == 1

        run(main())

    def test_a_body_is_refused_at_its_limit_and_the_client_hears_it(self):
        """The rest of the body is read for a moment: closing on unread input would reset."""

        async def main():
            async with listening(max_body=1000) as listener:
                for size, status in ((1000, 200), (1001, 413)):
                    async with await Wire.open(listener.root) as wire:
                        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
                        wire.send(head % size + b"x" * size)
                        assert (await wire.answer())[0] == status
                async with await Wire.open(listener.root) as wire:
                    wire.send(head % 3_000_000)
                    for _ in range(30):
                        wire.send(b"x" * 100_000)
                        await wire.writer.drain()
                    assert (await wire.everything()).startswith(b"HTTP/1.1 413 ")

        run(main())

    def test_who_goes_on_sending_after_a_refusal_is_cut_off(self):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(b"nonsense\r\n\r\n")
                assert (await wire.answer())[0] == 400
                [connection] = listener.connections
                assert connection.deadline - listener.loop.time() <= m.LINGER_SECONDS
                connection.discard_left = 10
                wire.send(b"x" * 11)
                await until(lambda: not listener.connections)

        run(main())

    def test_lingering_ends(self):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(b"nonsense\r\n\r\n")
                await wire.answer()
                [connection] = listener.connections
                connection.deadline = 0
                listener._sweep()
                await until(lambda: not listener.connections)

        run(main())


class TestDeadlines:
    """Every wait has one; the sweep looks at all of them."""

    def expire(self, listener):
        [connection] = listener.connections
        connection.deadline = 0
        listener._sweep()
        return connection

    @pytest.mark.parametrize(
        "data, seconds",
        [
            (b"G", m.HEAD_SECONDS),
            (b"\r\n", m.HEAD_SECONDS),
            (b"GET / HTTP/1.1\r\nHost: x\r\nX: ", m.HEAD_SECONDS),
            (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", m.BODY_SECONDS),
            (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc", m.BODY_SECONDS),
            (
                b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
                m.BODY_SECONDS,
            ),
            (GET + b"G", m.HEAD_SECONDS),
            (GET + b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", m.BODY_SECONDS),
        ],
    )
    def test_a_slow_sender_gets_408(self, data, seconds):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(data)
                if data.startswith(GET):
                    await wire.answer("GET")
                await until(lambda: listener.connections)
                [connection] = listener.connections
                await until(lambda: connection.waiting_for in ("head", "body"))
                left = connection.deadline - listener.loop.time()
                assert seconds - 5 < left <= seconds
                self.expire(listener)
                data_back = await wire.everything()
                assert data_back.startswith(b"HTTP/1.1 408 ") and data_back.count(b"HTTP/1.1") == 1

        run(main())

    def test_a_byte_now_and_then_wins_no_time(self):
        async def main():
            async with listening() as listener, await Wire.open(listener.root) as wire:
                wire.send(b"GET / HTTP/1.1\r\n")
                await until(lambda: listener.connections)
                [connection] = listener.connections
                await until(lambda: connection.waiting_for == "head")
                deadline = connection.deadline
                for size in range(1, 10):
                    wire.send(b"X")
                    await until(lambda: len(connection.decoder.buffer) == 16 + size)  # noqa: B023
                assert connection.deadline == deadline

        run(main())

    def test_an_idle_connection_is_closed_without_a_word(self):
        async def main():
            async with listening() as listener:
                for data in (b"", GET):
                    async with await Wire.open(listener.root) as wire:
                        wire.send(data)
                        if data:
                            await wire.answer("GET")
                        await until(lambda: listener.connections)
                        [connection] = listener.connections
                        left = connection.deadline - listener.loop.time()
                        assert m.IDLE_SECONDS - 5 < left <= m.IDLE_SECONDS
                        self.expire(listener)
                        assert await wire.everything() == b""
                    await until(lambda: not listener.connections)

        run(main())

    def test_a_request_that_is_served_has_no_deadline(self):
        async def main():
            gate = asyncio.get_running_loop().create_future()

            async def wait(request, response):
                await gate
                await response.send(200, {}, b"")

            async with listening(wait) as listener, await Wire.open(listener.root) as wire:
                wire.send(GET)
                await until(lambda: serving(listener))
                [connection] = listener.connections
                assert connection.deadline == float("inf")
                gate.set_result(None)
                assert (await wire.answer("GET"))[0] == 200

        run(main())

    def test_who_does_not_read_is_cut_off_unless_a_little_is_read(self):
        async def main():
            lost = []

            async def flood(request, response):
                response.on_lost = lambda: lost.append("heard")
                await response.start(200, {})
                while not response.lost:
                    await response.write(b"x" * 100_000)

            async with listening(flood) as listener, await Wire.open(listener.root) as wire:
                wire.writer.transport.pause_reading()
                wire.send(GET)
                await until(lambda: [c for c in listener.connections if c.turn.locked()])
                [connection] = listener.connections
                assert 0 < connection.deadline - listener.loop.time() <= m.STALL_SECONDS
                connection.unsent += 1  # as if there had been more
                self.expire(listener)
                assert connection.deadline > listener.loop.time() and not lost
                self.expire(listener)
                await until(lambda: lost)
            assert lost == ["heard"]

        run(main())

    def test_a_slow_reader_makes_the_writer_wait_and_gets_everything(self):
        async def main():
            async def flood(request, response):
                await response.start(200, {})
                for _ in range(50):
                    await response.write(b"x" * 100_000)
                    [connection] = listener.connections
                    sizes.append(connection.transport.get_write_buffer_size())
                await response.end()

            sizes = []
            async with listening(flood) as listener, await Wire.open(listener.root) as wire:
                wire.send(GET)
                assert len((await wire.answer("GET"))[2]) == 5_000_000
            assert max(sizes) < 200_000

        run(main())


class TestLosing:
    """Clients go away at any moment; some only stop sending."""

    def test_half_closing_after_a_request_still_gets_the_answer(self):
        async def main():
            gate = asyncio.get_running_loop().create_future()

            async def wait(request, response):
                await gate
                assert not response.lost
                await response.send(200, {}, b"late")

            async with listening(wait) as listener, await Wire.open(listener.root) as wire:
                wire.send(GET + GET)
                wire.writer.write_eof()
                await until(lambda: [c for c in listener.connections if c.ended])
                gate.set_result(None)
                assert (await wire.answer("GET"))[2] == b"late"
                assert (await wire.answer("GET"))[2] == b"late"
                assert await wire.everything() == b""

        run(main())

    @pytest.mark.parametrize("way", ["half-close", "close", "reset"])
    def test_the_end_of_a_streams_reader_is_heard(self, way):
        async def main():
            heard = asyncio.get_running_loop().create_future()

            async def stream(request, response):
                response.on_lost = lambda: heard.set_result(None)
                await response.start(200, {}, b"x")

            async with listening(stream) as listener, await Wire.open(listener.root) as wire:
                wire.send(GET)
                await wire.head("GET")
                if way == "half-close":
                    wire.writer.write_eof()
                elif way == "close":
                    wire.writer.close()
                else:
                    wire.reset()
                await heard
                await until(lambda: not listener.connections)

        run(main())

    def test_who_can_cancel_by_closing_is_heard_before_the_answer(self):
        async def main():
            heard = asyncio.get_running_loop().create_future()

            async def wait(request, response):
                response.on_lost = lambda: heard.set_result(None)
                await heard
                await response.send(200, {}, b"to nobody")

            async with listening(wait) as listener:
                async with await Wire.open(listener.root) as wire:
                    wire.send(GET)
                    await until(lambda: serving(listener))
                await heard

        run(main())

    def test_clients_that_vanish_at_any_byte_leave_nothing(self):
        request = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

        async def stream(request, response):
            await response.start(200, {}, b"one")
            for _ in range(3):
                await response.write(b"more")
            await response.end(b"two")

        async def main():
            async with listening(stream) as listener:
                for size in range(len(request) + 1):
                    for way in ("close", "reset", "eof"):
                        wire = await Wire.open(listener.root)
                        wire.send(request[:size])
                        if size == len(request):
                            await wire.reader.read(20)
                        if way == "eof":
                            wire.writer.write_eof()
                            await wire.everything()
                        (wire.writer.close if way == "close" else wire.reset)()
                await until(lambda: not listener.connections and not listener.tasks.running)
                async with await Wire.open(listener.root) as wire:
                    wire.send(request)
                    assert (await wire.answer())[2] == b"onemoremoremoretwo"

        run(main())

    def test_writing_to_a_lost_client_is_harmless(self):
        async def main():
            gate = asyncio.get_running_loop().create_future()
            ended = []

            async def late(request, response):
                await gate
                await response.start(200, {}, b"x")
                for _ in range(20):
                    await response.write(b"x")
                await response.end()
                await response.send(200, {}, b"")
                ended.append(response.lost)

            async with listening(late) as listener:
                async with await Wire.open(listener.root) as wire:
                    wire.send(GET)
                    await until(lambda: serving(listener))
                    [connection] = listener.connections
                    wire.reset()
                    await until(lambda: connection.ended)
                gate.set_result(None)
                await until(lambda: ended)
            assert ended == [True]

        run(main())


class TestListeners:
    """Where to listen, for whom, and how to stop."""

    def test_connections_are_bounded_in_total(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_CONNECTIONS", 3)

        async def main():
            async with listening() as listener, contextlib.AsyncExitStack() as stack:
                wires = [
                    await stack.enter_async_context(await Wire.open(listener.root))
                    for _ in range(4)
                ]
                for wire in wires[:3]:
                    wire.send(GET)
                    assert (await wire.answer("GET"))[0] == 200
                assert await wires[3].everything() == b""
                wires[0].drop()
                await until(lambda: len(listener.connections) == 2)
                async with await Wire.open(listener.root) as wire:
                    wire.send(GET)
                    assert (await wire.answer("GET"))[0] == 200

        run(main())

    def test_connections_of_one_address_are_bounded_unless_it_is_ours(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_CONNECTIONS_PER_HOST", 2)

        async def main():
            async with listening() as listener:
                for address, wanted in (
                    ("192.0.2.1", [True, True, False, False]),
                    ("192.0.2.2", [True, True, False, False]),
                    ("127.0.0.1", [True] * 4),
                    ("local", [True] * 4),
                ):
                    callers = [m.Connection(listener) for _ in range(4)]
                    for caller in callers:
                        caller.address = address
                    assert [listener.admit(caller) for caller in callers] == wanted
                    listener.forget(callers[0])
                    assert listener.admit(callers[0])
                    for caller in callers:
                        listener.forget(caller)

        run(main())

    def test_a_unix_socket_is_for_its_owner_alone(self, tmp_path):
        path = str(tmp_path / "s")
        before = os.umask(0)
        os.umask(before)

        async def main():
            async with listening(uds=path) as listener:
                assert listener.root == "http://localhost"
                assert os.stat(path).st_mode & 0o777 == 0o600
                client = m.HTTPClient(m.parse_url("http://localhost/a"), uds=path)
                answer = await client.send("GET", "/a", {})
                assert await answer.body() == b"GET /a? "
                answer.close()
                await client.close()
                with pytest.raises(FileExistsError, match="another server listens"):
                    await m.Listener(None).start("", 0, path)
            assert not os.path.exists(path)

        run(main())
        assert os.umask(before) == before

    def test_a_stale_socket_is_replaced_and_nothing_else(self, tmp_path):
        path = tmp_path / "s"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))

        async def main():
            async with listening(uds=str(path)):
                pass
            path.write_text("precious")
            with pytest.raises(FileExistsError, match="no socket"):
                await m.Listener(None).start("", 0, str(path))

        run(main())
        assert path.read_text() == "precious"

    def test_a_port_that_is_taken_is_an_error(self):
        async def main():
            async with listening() as listener:
                port = m.parse_url(listener.root).port
                with pytest.raises(OSError):
                    await m.Listener(None).start("127.0.0.1", port)

        run(main())

    def test_stopping_lets_running_requests_finish(self):
        async def main():
            gate = asyncio.get_running_loop().create_future()

            async def wait(request, response):
                await gate
                await response.send(200, {}, b"x" * 1_000_000)

            async with listening(wait) as listener:
                busy, idle = await Wire.open(listener.root), await Wire.open(listener.root)
                half = await Wire.open(listener.root)
                half.send(b"GET /")
                busy.send(GET)
                await until(lambda: serving(listener) and len(listener.connections) == 3)
                stopping = asyncio.ensure_future(listener.stop(5))
                assert await idle.everything() == b"" and await half.everything() == b""
                with pytest.raises(OSError):
                    await Wire.open(listener.root)
                assert not stopping.done()
                gate.set_result(None)
                status, headers, body = await busy.answer("GET")
                assert (status, headers["connection"]) == (200, "close")
                assert len(body) == 1_000_000 and await busy.everything() == b""
                await stopping
                for wire in (busy, idle, half):
                    wire.drop()

        run(main())

    def test_stopping_cancels_what_is_late(self):
        async def main():
            cancelled = []

            async def never(request, response):
                try:
                    await asyncio.get_running_loop().create_future()
                except asyncio.CancelledError:
                    cancelled.append(True)
                    raise

            async with listening(never) as listener, await Wire.open(listener.root) as wire:
                wire.send(GET)
                await until(lambda: serving(listener))
                began = listener.loop.time()
                await listener.stop(0.05)
                assert listener.loop.time() - began < 1 and cancelled == [True]
                assert await wire.everything() == b""

        run(main())


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


async def fetch(client, target="/", method="GET", body=b"", **options):
    """Send a request with an HTTPClient: (status, body)."""
    answer = await client.send(method, target, options.pop("headers", {}), body, **options)
    try:
        return answer.head.status, await answer.body()
    finally:
        answer.close()


@contextlib.asynccontextmanager
async def client_of(url, **options):
    client = m.HTTPClient(m.parse_url(url), **options)
    try:
        yield client
    finally:
        await client.close()


class TestTLS:
    """Both ends, with `ssl=`."""

    def test_both_ends_speak_tls(self, certificate):
        async def main():
            async with listening(ssl=certificate) as listener:
                assert listener.root.startswith("https://127.0.0.1:")
                async with client_of(listener.root, ssl=certificate[0]) as client:
                    for _ in range(3):
                        assert await fetch(client, "/tls") == (200, b"GET /tls? ")
                    assert len(client.idle) == 1 and len(listener.connections) == 1
                    big = b"x" * 1000
                    assert await fetch(client, "/", "POST", big) == (200, b"POST /? " + big)

        run(main())

    def test_a_certificate_that_is_not_trusted_is_refused_by_name(self, certificate):
        async def main():
            # in debug mode asyncio tells of every handshake that fails
            asyncio.get_running_loop().set_exception_handler(lambda *args: None)
            async with listening(ssl=certificate) as listener:
                async with client_of(listener.root) as client:
                    with pytest.raises(m.ConnectionClosed, match="certificate verify failed"):
                        await fetch(client)

        run(main())

    def test_contexts_are_taken_as_they_are(self, certificate):
        import ssl

        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(*certificate)
        ours = ssl.create_default_context(cafile=certificate[0])

        async def main():
            async with listening(ssl=theirs) as listener:
                async with client_of(listener.root, ssl=ours) as client:
                    assert (await fetch(client))[0] == 200

        run(main())
        assert m.server_ssl(certificate).minimum_version >= ssl.TLSVersion.TLSv1_2

    def test_garbage_instead_of_a_handshake_is_dropped(self, certificate):
        async def main():
            asyncio.get_running_loop().set_exception_handler(lambda *args: None)
            async with listening(ssl=certificate) as listener:
                async with await Wire.open(listener.root) as wire:
                    wire.send(GET)
                    assert b"HTTP" not in await wire.everything()

        run(main())

    def test_a_refused_request_and_a_lost_stream_over_tls(self, certificate):
        async def main():
            heard = asyncio.get_running_loop().create_future()

            async def stream(request, response):
                response.on_lost = lambda: heard.set_result(None)
                await response.start(200, {}, b"x")

            async with listening(stream, ssl=certificate) as listener:
                context = m.client_ssl(certificate[0])
                wire = await Wire.open(listener.root, ssl=context)
                wire.send(b"nonsense\r\n\r\n")
                assert (await wire.answer())[0] == 400
                wire.drop()
                async with client_of(listener.root, ssl=certificate[0]) as client:
                    answer = await client.send("GET", "/", {})
                    assert await answer.piece() == b"x"
                    answer.close()
                    await heard

        run(main())


class TestClientConnections:
    """The pool: kept alive, used again, never trusted too long."""

    def test_a_connection_is_used_again(self):
        async def main():
            async with listening() as listener, client_of(listener.root) as client:
                for number in range(5):
                    assert (await fetch(client, f"/{number}"))[0] == 200
                assert len(listener.connections) == 1 == len(client.idle)
                await asyncio.gather(*(fetch(client) for _ in range(5)))
                assert len(listener.connections) == 5 == len(client.idle)

        run(main())

    def test_idle_connections_are_bounded(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_IDLE_CONNECTIONS", 2)

        async def main():
            async with listening() as listener, client_of(listener.root) as client:
                await asyncio.gather(*(fetch(client) for _ in range(4)))
                assert len(client.idle) == 2

        run(main())

    @pytest.mark.parametrize("how", ["closed by the server", "too old"])
    def test_an_idle_connection_that_is_gone_or_old_is_not_used(self, how):
        async def main():
            async with listening() as listener, client_of(listener.root) as client:
                await fetch(client)
                [connection] = listener.connections
                since, stream = client.idle[0]
                if how == "too old":
                    client.idle[0] = (since - m.REUSE_SECONDS - 1, stream)
                else:
                    client.idle[0] = (since - 2, stream)  # long enough to be looked at again
                    connection.transport.abort()
                    await asyncio.sleep(0)
                assert (await fetch(client, "/", "POST", b"once"))[0] == 200
                assert [request.body for request in listener.seen] == [b"", b"once"]
                assert connection not in listener.connections or how == "too old"

        run(main())

    def test_a_request_that_got_no_answer_is_not_sent_again(self):
        """It may have been served."""
        seen = []

        async def once(wire):
            seen.append(await one_request(wire))
            if len(seen) == 1:
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                seen.append(await one_request(wire))

        async def main():
            async with scripted(once) as url, client_of(url) as client:
                assert (await fetch(client))[0] == 200
                with pytest.raises(m.ConnectionClosed, match="ended before the answer"):
                    await fetch(client, "/", "POST", b"pay")
                assert [body for _, body in seen] == [b"", b"pay"]

        run(main())

    @pytest.mark.parametrize(
        "answer, status, body",
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
                200,
                b"ok",
            ),
            (b"HTTP/1.1 200 OK\r\n\r\nok", 200, b"ok"),
            (b"HTTP/1.0 200 OK\r\n\r\nok", 200, b"ok"),
            (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
            (
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                200,
                b"ok",
            ),
            (b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno!", 404, b"no!"),
        ],
    )
    def test_answers_of_every_framing(self, answer, status, body):
        async def serve(wire):
            await one_request(wire)
            wire.send(answer)
            wire.writer.close()

        async def main():
            async with scripted(serve) as url, client_of(url) as client:
                assert await fetch(client) == (status, body)

        run(main())

    @pytest.mark.parametrize(
        "answer, match",
        [
            (b"", "ended before the answer"),
            (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "ended inside"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabc", "twice"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk"),
            (b"HTTP/1.1 101 Switching\r\n\r\n", "another protocol"),
            (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", "header"),
            (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, "too long"),
        ],
    )
    def test_nonsense_is_an_error_that_names_the_url(self, answer, match):
        async def serve(wire):
            await one_request(wire)
            wire.send(answer)
            wire.writer.close()

        async def main():
            async with scripted(serve) as url, client_of(url) as client:
                with pytest.raises(m.ConnectionClosed, match=match) as caught:
                    await fetch(client, "/path")
                assert f"{url}/path" in str(caught.value) and not client.idle and not client.busy

        run(main())

    def test_an_endless_head_and_an_endless_body_end(self):
        async def serve(wire):
            head, _ = await one_request(wire)
            wire.send(b"HTTP/1.1 200 OK\r\n" + (b"\r\n" if head.target == "/body" else b""))
            while True:
                wire.send(b"X: y\r\n" * 1000)
                await wire.writer.drain()

        async def main():
            async with scripted(serve) as url, client_of(url) as client:
                with pytest.raises(m.ConnectionClosed, match="too long|more than"):
                    await fetch(client, "/head")
                answer = await client.send("GET", "/body", {})
                with pytest.raises(m.LimitExceeded, match="longer than 1000 bytes"):
                    await answer.body(1000)
                answer.close()

        run(main())

    def test_deadlines_for_connection_and_head(self, monkeypatch):
        async def silent(wire):
            await wire.reader.read()

        async def main():
            async with scripted(silent) as url, client_of(url) as client:
                with pytest.raises(m.ConnectionClosed, match=f"{url}/ sent no answer within 0.01"):
                    await fetch(client, patience=0.01)
                assert not client.busy
            with socket.socket() as full:  # whoever is beyond the backlog waits
                full.bind(("127.0.0.1", 0))
                full.listen(0)
                url = f"http://127.0.0.1:{full.getsockname()[1]}"
                monkeypatch.setattr(m, "CONNECT_SECONDS", 0.05)
                held = [socket.socket() for _ in range(5)]
                for each in held:
                    each.setblocking(False)
                    each.connect_ex(full.getsockname())
                async with client_of(url) as client:
                    with pytest.raises(m.ConnectionClosed, match="no connection within 0.05"):
                        await fetch(client)
                for each in held:
                    each.close()

        run(main())

    @pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", f"http://{'a' * 70}.invalid/x"])
    def test_a_server_that_cannot_be_reached_is_named(self, url):
        async def main():
            async with client_of(url) as client:
                with pytest.raises(m.ConnectionClosed, match=f"cannot reach {url}: "):
                    await fetch(client)

        run(main())

    def test_what_cannot_be_sent_is_an_error_before_anything_is(self):
        async def main():
            async with listening() as listener, client_of(listener.root) as client:
                for headers in ({"x": "a\r\nb: c"}, {"x\r\n": "a"}, {"content-length": "1"}):
                    with pytest.raises(ValueError):
                        await fetch(client, "/", "POST", b"x", headers=headers)
                with pytest.raises(ValueError):
                    await fetch(client, "/a b")
                assert listener.seen == [] and not client.busy

        run(main())


class TestRedirects:
    """CVE-2026-116685: headers and bodies went to another origin."""

    @pytest.mark.parametrize(
        "method, status, followed",
        [(method, status, status in (307, 308) or method == "GET")
         for method in ("GET", "POST", "DELETE") for status in (301, 302, 303, 307, 308)],
    )  # fmt: skip
    def test_within_the_origin(self, method, status, followed):
        async def move(request, response):
            if request.path == "/old":
                await response.send(status, {"location": "../new?x=1#part"}, b"moved")
            else:
                await response.send(200, {}, request.method.encode() + b" " + request.body)

        async def main():
            async with listening(move) as listener, client_of(listener.root) as client:
                body = b"body" if method == "POST" else b""
                if followed:
                    wanted = method.encode() + b" " + body
                    assert await fetch(client, "/old", method, body) == (200, wanted)
                else:
                    with pytest.raises(m.ConnectionClosed, match="use http://127.*/new"):
                        await fetch(client, "/old", method, body)

        run(main())

    @pytest.mark.parametrize(
        "location, match",
        [
            ("{other}/new", "another origin"), ("//localhost:{port}/new", "another origin"),
            ("https://127.0.0.1:{port}/new", "another origin"), ("ftp://127.0.0.1/", "nowhere"),
            ("http://user@127.0.0.1/", "nowhere"), ("http://a b/", "nowhere"),
            ("http://:x/", "nowhere"),
        ],
    )  # fmt: skip
    def test_elsewhere_nothing_is_sent(self, location, match):
        async def main():
            async with listening() as elsewhere:

                async def move(request, response):
                    port = m.parse_url(listener.root).port
                    where = location.format(other=elsewhere.root, port=port)
                    await response.send(307, {"location": where}, b"")

                async with listening(move) as listener, client_of(listener.root) as client:
                    secret = {"authorization": "Bearer secret"}
                    with pytest.raises(m.ConnectionClosed, match=match):
                        await fetch(client, "/", "POST", b"secret", headers=secret)
                assert elsewhere.seen == [] and not elsewhere.connections

        run(main())

    def test_endless_redirects_end(self):
        async def main():
            count = []

            async def move(request, response):
                count.append(request.path)
                await response.send(302, {"location": f"/{len(count)}"}, b"")

            async with listening(move) as listener, client_of(listener.root) as client:
                with pytest.raises(m.ConnectionClosed, match="more than 5 times"):
                    await fetch(client)
                assert len(count) == m.MAX_REDIRECTS + 1

        run(main())

    @pytest.mark.parametrize("redirects", [0, 2])
    def test_so_many_are_followed_as_was_said_and_no_more(self, redirects):
        async def main():
            count = []

            async def move(request, response):
                count.append(request.path)
                await response.send(307, {"location": f"/{len(count)}"}, b"")

            async with listening(move) as listener, client_of(listener.root) as client:
                with pytest.raises(m.ConnectionClosed, match=f"more than {redirects} times"):
                    await fetch(client, "/", "POST", b"secret", redirects=redirects)
                assert len(count) == redirects + 1

        run(main())

    def test_an_address_that_is_not_admitted_is_sent_nothing(self):
        async def main():
            def admit(address):
                assert address == "127.0.0.1"
                raise m.ConnectionClosed(f"{address} is private")

            async with listening() as listener, client_of(listener.root, admit=admit) as client:
                with pytest.raises(m.ConnectionClosed, match="127.0.0.1 is private"):
                    await fetch(client)
                assert listener.seen == []

        run(main())

    def test_a_redirect_without_a_location_is_an_answer(self):
        async def main():
            async def move(request, response):
                await response.send(302, {}, b"where?")

            async with listening(move) as listener, client_of(listener.root) as client:
                assert await fetch(client) == (302, b"where?")

        run(main())


class TestProxies:
    """From the environment, for everything but this machine."""

    @pytest.mark.parametrize(
        "url, environ, wanted",
        [
            ("http://a.example/", {"HTTP_PROXY": "http://p:3128"}, "http://p:3128/"),
            ("http://a.example/", {"http_proxy": "p:3128", "HTTP_PROXY": "q:1"}, "http://p:3128/"),
            ("http://a.example/", {"HTTPS_PROXY": "http://p:3128"}, None),
            ("https://a.example/", {"HTTPS_PROXY": "http://p:3128/"}, "http://p:3128/"),
            ("https://a.example/", {"ALL_PROXY": "http://p:3128"}, "http://p:3128/"),
            ("https://a.example/", {"https_proxy": "", "all_proxy": "q:1"}, "http://q:1/"),
            ("https://a.example/", {}, None),
            # never for this machine
            ("http://127.0.0.1:8000/", {"HTTP_PROXY": "p:1"}, None),
            ("http://localhost/", {"HTTP_PROXY": "p:1"}, None),
            ("http://[::1]/", {"HTTP_PROXY": "p:1"}, None),
            # exceptions
            ("http://a.example/", {"HTTP_PROXY": "p:1", "NO_PROXY": "*"}, None),
            ("http://a.example/", {"HTTP_PROXY": "p:1", "NO_PROXY": "b.example,a.example"}, None),
            ("http://a.example/", {"HTTP_PROXY": "p:1", "no_proxy": " .example "}, None),
            ("http://a.example/", {"HTTP_PROXY": "p:1", "no_proxy": "*.example"}, None),
            ("http://a.example:81/", {"HTTP_PROXY": "p:1", "no_proxy": "a.example:81"}, None),
            ("http://aa.example/", {"HTTP_PROXY": "p:1", "no_proxy": "a.example"}, "http://p:1/"),
            (
                "http://a.example/",
                {"HTTP_PROXY": "p:1", "no_proxy": "a.example.org,,"},
                "http://p:1/",
            ),
            # httpoxy: a CGI request can set HTTP_PROXY, not http_proxy
            ("http://a.example/", {"HTTP_PROXY": "evil:1", "REQUEST_METHOD": "GET"}, None),
            ("http://a.example/", {"http_proxy": "p:1", "REQUEST_METHOD": "GET"}, "http://p:1/"),
        ],
    )
    def test_which_proxy(self, url, environ, wanted):
        found = m.proxy_for(m.parse_url(url), environ)
        assert (found and str(found.url)) == wanted

    def test_credentials_of_a_proxy(self):
        environ = {"HTTP_PROXY": "http://us%40er:pa%3Ass@p:3128"}
        found = m.proxy_for(m.parse_url("http://a.example/"), environ)
        assert str(found.url) == "http://p:3128/"
        # base64 of b"us@er:pa:ss"
        assert found.headers == {"proxy-authorization": "Basic dXNAZXI6cGE6c3M="}

    @pytest.mark.parametrize("text", ["socks5://p:1", "https://p:1", "http://p:1/path", "p:1:2"])
    def test_a_proxy_that_we_cannot_use_is_an_error(self, text):
        with pytest.raises(ValueError):
            m.proxy_for(m.parse_url("http://a.example/"), {"HTTP_PROXY": text})

    def test_plain_http_is_asked_of_the_proxy_in_absolute_form(self):
        """RFC 9112 §3.2.2"""
        seen = []

        async def proxy(wire):
            while True:
                data = await wire.reader.readuntil(b"\r\n\r\n")
                seen.append(data)
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        async def main():
            async with scripted(proxy) as url, client_of("http://server.invalid:81/") as client:
                client.proxy = m.Proxy(m.parse_url(url), {"proxy-authorization": "Basic eA=="})
                for _ in range(2):
                    assert await fetch(client, "/mcp?x") == (200, b"ok")
            assert len(seen) == 2
            assert seen[0].startswith(b"GET http://server.invalid:81/mcp?x HTTP/1.1\r\n")
            assert b"host: server.invalid:81\r\n" in seen[0]
            assert b"proxy-authorization: Basic eA==\r\n" in seen[0]

        run(main())

    def test_https_goes_through_a_tunnel(self, certificate):
        """RFC 9110 §9.3.6: what is said inside, also to whom, the proxy cannot read."""
        seen = []

        async def main():
            async with listening(ssl=certificate) as listener:
                where = m.parse_url(listener.root)

                async def proxy(wire):
                    seen.append(await wire.reader.readuntil(b"\r\n\r\n"))
                    wire.send(b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n")

                    async def pump(source, sink):
                        with contextlib.suppress(ConnectionError):
                            while data := await source.reader.read(65536):
                                seen.append(data)
                                sink.send(data)
                        sink.drop()

                    async with await Wire.open(listener.root) as there:
                        await asyncio.gather(pump(wire, there), pump(there, wire))

                async with scripted(proxy) as url:
                    async with client_of(listener.root, ssl=certificate[0]) as client:
                        client.proxy = m.Proxy(
                            m.parse_url(url), {"proxy-authorization": "Basic eA=="}
                        )
                        secret = {"authorization": "secret"}
                        for _ in range(2):
                            got = await fetch(client, "/", "POST", b"x" * 1000, headers=secret)
                            assert got == (200, b"POST /? " + b"x" * 1000)
                        assert len(client.idle) == 1
                assert seen[0].startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % where.port)
                assert b"proxy-authorization: Basic eA==\r\n" in seen[0]
                assert b"secret" not in b"".join(seen)

        run(main())

    def test_a_proxy_that_refuses_is_named(self, certificate):
        async def proxy(wire):
            await wire.reader.readuntil(b"\r\n\r\n")
            wire.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

        async def main():
            async with scripted(proxy) as url:
                async with client_of("https://server.invalid/", ssl=certificate[0]) as client:
                    client.proxy = m.Proxy(m.parse_url(url), {})
                    with pytest.raises(m.ConnectionClosed, match=f"{url}/ refused: status 407"):
                        await fetch(client)

        run(main())


###############################################################################
# T32. Streamable HTTP
###############################################################################

JSON_BOTH = "application/json, text/event-stream"
NEWEST_SESSION = "2025-11-25"


def demo():
    """A server with a tool for everything that HTTP has to carry."""
    app = m.Server("demo")
    app.waiting = {}

    def gate_of(name):
        """A future by which a test holds a tool back; made in the loop of whoever asks first."""
        if name not in app.waiting:
            app.waiting[name] = asyncio.get_running_loop().create_future()
        return app.waiting[name]

    app.gate_of = gate_of
    app.log = []

    @app.tool
    async def echo(text: str) -> str:
        return text

    @app.tool
    async def count(to: int, ctx: m.Context) -> int:
        for number in range(1, to + 1):
            await ctx.exchange.send(m.notification("acme/n", {"n": number}))
        return to

    @app.tool
    async def wait(gate: str, ctx: m.Context, say: bool = False, after: bool = False) -> str:
        app.log.append(f"{gate} begins")
        if say:
            await ctx.info("before")
        try:
            await gate_of(gate)
        except asyncio.CancelledError:
            app.log.append(f"{gate} cancelled")
            raise
        if after:
            await ctx.info("after")
        app.log.append(f"{gate} ends")
        return gate

    @app.tool
    async def poll(gate: str, ctx: m.Context) -> bool:
        closed = await ctx.close_stream(5)
        app.log.append(closed)
        await gate_of(gate)
        return closed

    @app.tool
    async def ask(ctx: m.Context) -> str:
        answer = await ctx.elicit("Really?", bool)
        return f"{answer.action} {answer.data}"

    @app.tool
    async def who(ctx: m.Context) -> list:
        return [ctx.principal, ctx.headers.get("x-test")]

    return app


def call_of(req_id, tool, arguments=None, **more):
    return {
        "jsonrpc": "2.0",
        "id": req_id,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments or {}, **more},
    }


def hello(revision=NEWEST_SESSION, req_id=0, **capabilities):
    return {
        "jsonrpc": "2.0",
        "id": req_id,
        "method": "initialize",
        "params": {
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        },
    }


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Events:
    """The events of an answer, as they come."""

    def __init__(self, answer):
        self.answer = answer
        self.decoder = m.SSEDecoder()
        self.found = []

    @property
    def head(self):
        return self.answer.head

    async def next(self):
        """The next event; None at the end."""
        while not self.found:
            data = await self.answer.piece()
            if not data:
                return None
            self.found += self.decoder.feed(data)
        return self.found.pop(0)

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
        self.answer.stream[1].transport.abort()
        self.answer.close()


class Caller:
    """A client without manners: says over HTTP exactly what it is told."""

    def __init__(self, url, revision=NEWEST_SESSION, **options):
        self.url, self.revision = m.parse_url(url), revision
        self.http = m.HTTPClient(self.url, **options)
        self.headers = {}

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        await self.http.close()

    async def send(self, method, body=b"", target=None, **headers):
        """Send a request and return the answer when its head is there."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        fields = {"accept": JSON_BOTH, **self.headers}
        if body:
            fields["content-type"] = "application/json"
        fields.update((name.replace("_", "-"), value) for name, value in headers.items())
        fields = {name: value for name, value in fields.items() if value is not None}
        return await self.http.send(method, target or self.url.target, fields, body, 10)

    async def ask(self, method, body=b"", target=None, **headers):
        """Send a request and return (status, headers, JSON or text of the whole answer)."""
        answer = await self.send(method, body, target, **headers)
        try:
            data = await answer.body()
        finally:
            answer.close()
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
        if m.REVISIONS[self.revision].version_header:
            self.headers["mcp-protocol-version"] = self.revision
        assert await self.status("POST", INITIALIZED) == 202
        return self


@contextlib.asynccontextmanager
async def http_calling(app=None, *, opened=True, revision=NEWEST_SESSION, headers=None, **options):
    """Serve an app and give (caller, server)."""
    async with (app or demo()).http(port=0, **options) as server:
        async with Caller(server.url, revision) as caller:
            caller.headers.update(headers or {})
            if opened:
                await caller.open()
            yield caller, server


legacy_http = pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])


class TestRequestsOverHTTP:
    """spec 2025-11-25: basic/transports#sending-messages-to-the-server"""

    @legacy_http
    def test_a_request_that_says_nothing_first_is_answered_with_json(self, revision):
        async def main():
            async with http_calling(revision=revision) as (caller, _):
                status, headers, answer = await caller.post(call_of(7, "echo", {"text": "é"}))
                assert status == 200 and headers["content-type"] == "application/json"
                assert answer["id"] == 7 and answer["result"]["content"][0]["text"] == "é"

        run(main())

    @legacy_http
    def test_what_is_said_first_makes_it_a_stream_that_ends_with_the_answer(self, revision):
        async def main():
            async with http_calling(revision=revision) as (caller, _):
                msg = call_of(7, "count", {"to": 3})
                events = await caller.events("POST", msg)
                assert events.head.headers["cache-control"] == "no-cache, no-transform"
                assert events.head.headers["x-accel-buffering"] == "no"
                *said, answer = await events.messages()
                assert [item["params"]["n"] for item in said] == [1, 2, 3]
                assert answer["id"] == 7 and answer["result"]["content"][0]["text"] == "3"
                events.answer.close()
                assert len(caller.http.idle) == 1, "the connection can be used again"

        run(main())

    @legacy_http
    def test_only_the_revision_with_polling_primes_the_stream(self, revision):
        async def main():
            async with http_calling(revision=revision) as (caller, _):
                for method, msg in (("POST", call_of(7, "count", {"to": 1})), ("GET", b"")):
                    events = await caller.events(method, msg)
                    if revision == "2025-11-25":
                        first = await events.next()
                        assert first.data == "" and first.id and events.decoder.retry_ms == 1000
                    if method == "POST":
                        first = await events.next()
                        assert json.loads(first.data)["params"] == {"n": 1} and first.id
                    events.drop()

        run(main())

    @legacy_http
    def test_notifications_and_responses_are_accepted_without_a_body(self, revision):
        async def main():
            async with http_calling(revision=revision) as (caller, _):
                for msg in (
                    INITIALIZED,
                    {"jsonrpc": "2.0", "method": "acme/x", "params": {}},
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}},
                    {"jsonrpc": "2.0", "id": 99, "result": {}},
                    {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "m"}},
                ):
                    status, headers, body = await caller.post(msg)
                    assert (status, headers.get("content-type"), body) == (202, None, b"")

        run(main())

    @pytest.mark.parametrize(
        "body, code",
        [
            (b"{", -32700), (b"\xff", -32700), (b"", -32700), (b'{"a":1,"a":2}', -32700),
            (b"1", -32600), (b'"x"', -32600), (b"null", -32600), (b"{}", -32600),
            (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"result":5}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
            (b"[" * 200 + b"]" * 200, -32600), (b"1" * 5000, -32600), (b"[]", -32600),
        ],
    )  # fmt: skip
    def test_what_is_no_message_is_a_bad_request(self, body, code):
        async def main():
            async with http_calling() as (caller, server):
                status, _, answer = await caller.ask("POST", body, content_type="application/json")
                assert (status, answer["error"]["code"], "id" in answer) == (400, code, False)
                assert len(server.endpoint.sessions) == 1 and not server.endpoint.waiting

        run(main())

    def test_errors_of_requests_carry_their_id(self):
        async def main():
            async with http_calling() as (caller, _):
                for msg, code in (
                    ({"jsonrpc": "2.0", "id": "x", "method": "nonsense"}, -32601),
                    (call_of("x", "nobody"), -32602),
                    (hello(req_id="x"), -32600),
                ):
                    status, headers, answer = await caller.post(msg)
                    assert (status, answer["id"], answer["error"]["code"]) == (200, "x", code)
                    assert headers["content-type"] == "application/json"

        run(main())

    def test_an_id_that_is_in_use_is_refused_and_leads_no_answer_astray(self):
        """CVE-2026-25536; basic/index#requests: an id "MUST NOT match" another's. And a session
        that reuses an id must not thereby escape its rate limit."""

        async def main():
            app = demo()
            async with http_calling(app) as (caller, _):
                slow = asyncio.ensure_future(caller.post(call_of(1, "wait", {"gate": "g"})))
                await until(lambda: app.log)
                answer = (await caller.post(call_of(1, "echo", {"text": "b"})))[2]
                assert answer == {
                    "jsonrpc": "2.0", "id": 1,
                    "error": {"code": -32600, "message": "a request with id 1 is still running"},
                }  # fmt: skip
                app.gate_of("g").set_result(None)
                assert (await slow)[2]["result"]["content"][0]["text"] == "g"

        run(main())

    @pytest.mark.parametrize(
        "method, target, headers, status",
        [
            ("POST", "/mcp", {}, 202), ("POST", "/mcp/", {}, 202), ("POST", "/mcp?x=1", {}, 202),
            ("POST", "/", {}, 404), ("POST", "/mcpx", {}, 404), ("POST", "/mcp/x", {}, 404),
            ("POST", "/MCP", {}, 404), ("POST", "/%6dcp", {}, 202),
            ("PUT", "/mcp", {}, 405), ("HEAD", "/mcp", {}, 405), ("HEAD", "/mcp/", {}, 405),
            ("PATCH", "/mcp/", {}, 405), ("TRACE", "/mcp", {}, 405), ("post", "/mcp", {}, 405),
            ("HEAD", "/sse", {}, 405), ("POST", "/sse", {}, 405), ("GET", "/messages", {}, 405),
            ("POST", "/mcp", {"content-type": "text/plain"}, 415),
            ("POST", "/mcp", {"content-type": None}, 415),
            ("POST", "/mcp", {"accept": "application/json"}, 406),
            ("POST", "/mcp", {"accept": "text/event-stream"}, 406),
            ("POST", "/mcp", {"accept": None}, 202), ("POST", "/mcp", {"accept": "*/*"}, 202),
            ("GET", "/mcp", {"accept": "application/json"}, 406),
            ("GET", "/sse", {"accept": "application/json"}, 406),
            ("POST", "/mcp", {"mcp-protocol-version": "1999-01-01"}, 400),
            ("GET", "/mcp", {"mcp-protocol-version": "1999-01-01"}, 400),
            ("DELETE", "/mcp", {"mcp-protocol-version": "1999-01-01"}, 400),
            ("POST", "/mcp", {"mcp-protocol-version": None}, 202),
            ("POST", "/mcp", {"mcp-session-id": None}, 400),
            ("GET", "/mcp", {"mcp-session-id": None}, 400),
            ("DELETE", "/mcp", {"mcp-session-id": None}, 400),
            ("POST", "/mcp", {"mcp-session-id": "unknown"}, 404),
            ("GET", "/mcp", {"mcp-session-id": "unknown"}, 404),
            ("DELETE", "/mcp", {"mcp-session-id": "unknown"}, 404),
            ("DELETE", "/mcp", {}, 204),
            ("OPTIONS", "/mcp", {}, 204), ("OPTIONS", "/nowhere", {}, 404),
            ("GET", "/mcp", {"last-event-id": "1-2"}, 400),
            ("GET", "/mcp", {"last-event-id": "0123456789abcdef-2"}, 400),
        ],
    )  # fmt: skip
    def test_statuses(self, method, target, headers, status):
        async def main():
            async with http_calling() as (caller, _):
                body = INITIALIZED if method in ("POST", "PUT") else b""
                got, fields, answer = await caller.ask(method, body, target, **headers)
                assert got == status
                if status == 405:  # RFC 9110 §15.5.6
                    assert "POST" in fields["allow"] or target == "/sse"
                    assert method not in fields["allow"]
                if status >= 400 and method != "HEAD":
                    assert answer["error"]["message"] and "id" not in answer

        run(main())

    def test_a_session_that_says_another_revision_is_unharmed(self):
        async def main():
            async with http_calling() as (caller, _):
                assert (
                    await caller.status("POST", INITIALIZED, mcp_protocol_version="2025-06-18")
                    == 202
                )

        run(main())


class TestBatchesOverHTTP:
    """spec 2025-03-26: basic/transports#sending-messages-to-the-server"""

    def batch(self, *messages, revision="2025-03-26"):
        async def main():
            async with http_calling(revision=revision) as (caller, server):
                answer = await caller.post(list(messages))
                assert not server.endpoint.waiting
                return answer

        return run(main())

    def test_requests_are_answered_in_one_array(self):
        status, headers, answers = self.batch(
            call_of(1, "echo", {"text": "a"}), INITIALIZED, call_of("2", "nobody")
        )
        assert status == 200 and headers["content-type"] == "application/json"
        assert {answer["id"]: "error" in answer for answer in answers} == {1: False, "2": True}

    def test_notifications_and_responses_alone_are_accepted(self):
        status, _, body = self.batch(INITIALIZED, {"jsonrpc": "2.0", "id": 5, "result": {}})
        assert (status, body) == (202, b"")

    def test_what_is_no_message_is_answered(self):
        status, _, answers = self.batch(1, "x", INITIALIZED)
        assert status == 200 and [answer["error"]["code"] for answer in answers] == [-32600] * 2

    def test_an_empty_batch_is_a_bad_request(self):
        assert self.batch()[0] == 400

    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
    def test_later_revisions_refuse_them(self, revision):
        status, _, answer = self.batch(call_of(1, "echo", {"text": "a"}), revision=revision)
        assert status == 400 and "batch" in answer["error"]["message"]

    def test_initialize_in_a_batch_opens_nothing(self):
        async def main():
            async with http_calling(opened=False) as (caller, server):
                assert (await caller.post([hello()]))[0] == 400
                assert not server.endpoint.sessions

        run(main())

    def test_a_batch_that_says_something_first_becomes_a_stream(self):
        async def main():
            async with http_calling(revision="2025-03-26") as (caller, _):
                batch = [call_of(1, "count", {"to": 2}), call_of(2, "echo", {"text": "x"})]
                *said, answers = await (await caller.events("POST", batch)).messages()
                assert [item["params"]["n"] for item in said] == [1, 2]
                assert sorted(answer["id"] for answer in answers) == [1, 2]

        run(main())

    def test_a_batch_of_which_everything_is_cancelled_ends(self):
        async def main():
            app = demo()
            async with http_calling(app, revision="2025-03-26") as (caller, _):
                slow = asyncio.ensure_future(caller.post([call_of(1, "wait", {"gate": "g"})]))
                await until(lambda: app.log)
                cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
                await caller.post({**cancel, "params": {"requestId": 1}})
                assert (await slow)[::2] == (200, b"")

        run(main())

    def test_its_requests_know_headers_and_principal(self):
        async def main():
            auth = {"authorization": "Bearer t"}
            async with http_calling(revision="2025-03-26", headers=auth, token={"t": "ann"}) as (
                caller,
                _,
            ):
                answers = (await caller.post([call_of(1, "who")], x_test="here"))[2]
                assert answers[0]["result"]["content"][0]["text"] == '["ann","here"]'

        run(main())


    @pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
    def test_listeners_of_its_notifications_know_the_principal(self, revision):
        async def main():
            app, heard = demo(), []

            @app.on("acme/said")
            async def said(params: dict, ctx: m.Context):
                heard.append((ctx.principal, ctx.headers["x-test"]))

            headers = {"authorization": "Bearer t", "x-test": "here"}
            note = {"jsonrpc": "2.0", "method": "acme/said"}
            options = {"revision": revision, "headers": headers, "token": {"t": "ann"}}
            async with http_calling(app, **options) as (caller, _):
                assert await caller.status("POST", note) == 202
                if revision == "2025-03-26":
                    assert await caller.status("POST", [note]) == 202
                await until(lambda: len(heard) == 1 + (revision == "2025-03-26"))
                assert set(heard) == {("ann", "here")}

        run(main())


class TestSessions:
    """spec 2025-11-25: basic/transports#session-management"""

    def test_ids_are_visible_ascii_and_cannot_be_guessed(self):
        async def main():
            async with http_calling(opened=False) as (caller, server):
                ids = set()
                for _ in range(50):
                    _, headers, _ = await caller.post(hello())
                    ids.add(headers["mcp-session-id"])
                assert len(ids) == 50 and all(re.fullmatch(r"[\x21-\x7e]{22,}", id) for id in ids)
                assert set(server.endpoint.sessions) == ids
                caller.headers["mcp-session-id"] = min(ids)
                _, headers, _ = await caller.post(call_of(1, "echo", {"text": "x"}))
                assert "mcp-session-id" not in headers, "it is told once"

        run(main())

    @pytest.mark.parametrize(
        "msg",
        [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 5}},
            {"jsonrpc": "2.0", "method": "initialize", "params": {}},
            {"jsonrpc": "2.0", "id": [], "method": "initialize", "params": {}},
        ],
    )
    def test_a_failed_handshake_leaves_no_session(self, msg):
        async def main():
            async with http_calling(opened=False) as (caller, server):
                _, headers, answer = await caller.post(msg)
                assert "error" in answer and "mcp-session-id" not in headers
                assert not server.endpoint.sessions
                assert len(server.server.conversations) == 0

        run(main())

    def test_delete_ends_it_and_what_runs_in_it(self):
        async def main():
            app = demo()
            async with http_calling(app) as (caller, server):
                stream = await caller.events("GET")
                slow = asyncio.ensure_future(caller.post(call_of(1, "wait", {"gate": "g"})))
                await until(lambda: app.log)
                assert (await caller.ask("DELETE"))[::2] == (204, b"")
                assert await stream.message() is None
                assert (await slow)[::2] == (200, b"")
                assert app.log == ["g begins", "g cancelled"]
                for method in ("POST", "GET", "DELETE"):
                    body = INITIALIZED if method == "POST" else b""
                    assert await caller.status(method, body) == 404
                assert not server.endpoint.sessions and not app.conversations
                assert not server.endpoint.streams and not server.endpoint.waiting

        run(main())

    def test_a_session_belongs_to_its_principal(self):
        """CVE-2026-52869: with another valid token it does not even exist."""

        async def main():
            for token in ({"a": "ann", "b": "bob"}, ["a", "b"]):
                auth = {"authorization": "Bearer a"}
                async with http_calling(token=token, headers=auth) as (caller, server):
                    session = caller.headers["mcp-session-id"]
                    stream = await caller.events("GET")
                    for method in ("POST", "GET", "DELETE"):
                        body = INITIALIZED if method == "POST" else b""
                        got = await caller.status(method, body, authorization="Bearer b")
                        assert got == 404
                        assert await caller.status(method, body, authorization=None) == 401
                    where = f"/messages?session_id={session}"
                    assert (
                        await caller.status("POST", INITIALIZED, where, authorization="Bearer b")
                        == 404
                    )
                    assert len(server.endpoint.sessions) == 1
                    assert await caller.status("POST", INITIALIZED) == 202
                    stream.drop()

        run(main())

    def test_idle_ones_expire_and_used_ones_do_not(self):
        async def main():
            app = demo()
            async with http_calling(app, session_seconds=100) as (idle, server):
                endpoint = server.endpoint
                async with Caller(server.url) as busy, Caller(server.url) as reader:
                    await busy.open()
                    await reader.open()
                    stream = await reader.events("GET")
                    slow = asyncio.ensure_future(busy.post(call_of(1, "wait", {"gate": "g"})))
                    await until(lambda: app.log)
                    for session in endpoint.sessions.values():
                        session.used -= 101
                    endpoint._sweep()
                    await until(lambda: len(endpoint.sessions) == 2)
                    assert await idle.status("POST", INITIALIZED) == 404
                    app.gate_of("g").set_result(None)
                    assert (await slow)[0] == 200
                    # what was in use until a moment ago is not idle yet
                    for session in endpoint.sessions.values():
                        session.used -= 99
                    stream.drop()
                    await until(lambda: not endpoint.streams)
                    endpoint._sweep()
                    assert len(endpoint.sessions) == 2
                    assert await reader.status("POST", INITIALIZED) == 202

        run(main())

    def test_busy_sessions_at_the_front_do_not_keep_others_alive(self):
        async def main():
            async with http_calling(opened=False, session_seconds=100) as (caller, server):
                endpoint = server.endpoint
                for _ in range(300):
                    await caller.post(hello())
                sessions = list(endpoint.sessions.values())
                for number, session in enumerate(sessions):
                    session.used -= 200
                    if number < 150:
                        session.conversation.peer.incoming[1] = types.SimpleNamespace(task=None)
                endpoint._sweep()
                await until(lambda: len(endpoint.sessions) == 150)
                assert list(endpoint.sessions.values()) == sessions[:150]
                for session in sessions[:150]:
                    session.conversation.peer.incoming.clear()

        run(main())

    def test_their_number_is_bounded_and_the_least_used_goes(self):
        async def main():
            async with http_calling(max_sessions=3) as (first, server):
                async with contextlib.AsyncExitStack() as stack:
                    others = [await stack.enter_async_context(Caller(server.url)) for _ in range(3)]
                    for other in others[:2]:
                        await other.open()
                    assert (
                        await first.status("POST", INITIALIZED) == 202
                    )  # now the second is oldest
                    await others[2].open()
                    assert len(server.endpoint.sessions) == 3
                    assert await others[0].status("POST", INITIALIZED) == 404
                    assert await first.status("POST", INITIALIZED) == 202
                    # nobody is thrown out who is busy
                    streams = [await each.events("GET") for each in (first, *others[1:])]
                    assert (await others[0].post(hello(), mcp_session_id=None))[0] == 503
                    for stream in streams:
                        stream.drop()

        run(main())

    def test_abandoned_sessions_cost_nothing_in_the_end(self):
        """CVE-2026-59951: sessions kept for ever."""

        async def main():
            app = demo()
            async with http_calling(app, opened=False, max_sessions=20) as (caller, server):
                for _ in range(300):
                    await caller.post(hello())
                await until(lambda: not server.endpoint.tasks.running)
                assert len(server.endpoint.sessions) == 20 == len(app.conversations)

        run(main())

    def test_an_idle_session_is_small(self):
        """DESIGN section 6: at most 4 KiB."""
        import tracemalloc

        async def main():
            async with demo().http(port=0) as server:
                endpoint = server.endpoint
                request = m.HTTPRequest("POST", "/mcp", "", {}, b"", "127.0.0.1")

                def open_one():
                    session = endpoint.open_session(request, None)
                    session.conversation.session.advance("initialize")
                    session.conversation.session.client_info = {"name": "x", "version": "1"}
                    session.conversation.session.advance("result")

                open_one()
                gc.collect()
                tracemalloc.start()
                before = tracemalloc.get_traced_memory()[0]
                for _ in range(1000):
                    open_one()
                gc.collect()
                size = (tracemalloc.get_traced_memory()[0] - before) / 1000
                tracemalloc.stop()
                assert size <= 4096

        run(main())

    def test_without_sessions_every_request_stands_alone(self):
        """`sessions=False`"""

        async def main():
            app = demo()
            async with http_calling(app, opened=False, sessions=False) as (caller, server):
                status, headers, answer = await caller.post(hello("2025-06-18"))
                assert status == 200 and "mcp-session-id" not in headers
                assert answer["result"]["protocolVersion"] == "2025-06-18"
                assert await caller.status("POST", INITIALIZED) == 202
                for _ in range(2):
                    _, headers, answer = await caller.post(call_of(1, "echo", {"text": "x"}))
                    assert answer["result"]["content"][0]["text"] == "x"
                events = await caller.events(
                    "POST", call_of(1, "count", {"to": 2}), mcp_protocol_version="2025-11-25"
                )
                assert "mcp-session-id" not in events.head.headers
                assert (await events.next()).id == "", "nobody can come back for it"
                assert len(await events.messages()) == 2
                # what no header says is the revision before the header: batches and all
                status, _, answers = await caller.post([call_of(1, "echo", {"text": "x"})])
                assert status == 200 and len(answers) == 1
                for method in ("GET", "DELETE"):
                    status, headers, _ = await caller.ask(method)
                    assert (status, headers["allow"]) == (405, "POST, OPTIONS")
                assert not server.endpoint.sessions and not app.conversations

        run(main())


class TestStreams:
    """spec 2025-11-25: basic/transports#listening-for-messages-from-the-server"""

    def test_what_no_request_caused_comes_on_the_standalone_stream_only(self):
        async def main():
            app = demo()
            async with http_calling(app) as (caller, _):
                stream = await caller.events("GET")
                post = await caller.events("POST", call_of(1, "wait", {"gate": "g", "say": True}))
                assert (await post.message())["params"]["data"] == "before"
                app.tools_changed()
                method = "notifications/tools/list_changed"
                assert await stream.message() == {"jsonrpc": "2.0", "method": method}
                app.gate_of("g").set_result(None)
                assert [item["id"] for item in await post.messages()] == [1]
                stream.drop()

        run(main())

    def test_a_second_reader_is_refused_while_the_first_lives(self):
        """CVE-2026-33946: the session's id alone must not take a stream away."""

        async def main():
            app = demo()
            async with http_calling(app) as (caller, _):
                first = await caller.events("GET")
                assert await caller.status("GET") == 409
                for guess in ("0-0", "0000000000000000-0", f"{'f' * 16}-1"):
                    assert await caller.status("GET", last_event_id=guess) == 400
                app.tools_changed()
                assert await first.message()
                # who has read it is the same reader on a new connection
                second = await caller.events("GET", last_event_id=first.decoder.last_id)
                assert await first.next() is None
                app.prompts_changed()
                app.tools_changed()
                assert (await second.message())["method"] == "notifications/tools/list_changed"
                second.drop()

        run(main())

    def test_after_a_cut_a_reader_gets_what_it_missed_once(self):
        async def main():
            app = demo()
            async with http_calling(app) as (caller, server):
                first = await caller.events("GET")
                for number in range(3):
                    server.endpoint.loop.call_soon(app.tools_changed)
                    assert await first.message(), number
                seen = first.decoder.last_id
                first.drop()
                await until(lambda: not server.endpoint.streams)
                for _ in range(2):
                    app.tools_changed()
                [session] = server.endpoint.sessions.values()
                await until(lambda: session.listening.last == 5)
                second = await caller.events("GET", last_event_id=seen)
                assert await second.message() and await second.message()
                assert second.decoder.last_id.endswith("-5")
                second.drop()
                await until(lambda: not server.endpoint.streams)
                # what nobody has read goes to the first who comes, with or without an id
                app.tools_changed()
                await until(lambda: session.listening.last == 6)
                third = await caller.events("GET")
                assert await third.message() and third.decoder.last_id.endswith("-6")
                third.drop()

        run(main())

    def test_a_quiet_stream_gets_comments(self):
        async def main():
            async with http_calling() as (caller, server):
                stream = await caller.events("GET")
                await stream.next()
                [ours] = server.endpoint.streams
                server.endpoint._sweep()
                assert not server.endpoint.tasks.running
                ours.written -= m.KEEP_ALIVE_SECONDS + 1
                server.endpoint._sweep()
                assert await stream.answer.piece() == b":\n\n"
                server.endpoint._sweep()
                assert ours.written > server.endpoint.loop.time() - 1
                stream.drop()

        run(main())

    def test_an_answer_that_takes_long_becomes_a_stream(self):
        async def main():
            app = demo()
            async with http_calling(app) as (caller, server):
                answer = asyncio.ensure_future(
                    caller.events("POST", call_of(1, "wait", {"gate": "g"}))
                )
                await until(lambda: server.endpoint.waiting and app.log)
                server.endpoint._sweep()
                assert not answer.done()
                [reply] = server.endpoint.waiting
                reply.since -= m.KEEP_ALIVE_SECONDS + 1
                server.endpoint._sweep()
                events = await answer
                app.gate_of("g").set_result(None)
                assert [item["id"] for item in await events.messages()] == [1]
                assert not server.endpoint.waiting and not server.endpoint.streams

        run(main())

    def test_the_server_asks_on_the_calls_own_stream_and_is_answered_by_another_post(self):
        async def main():
            async with http_calling(opened=False) as (caller, _):
                await caller.open(elicitation={})
                events = await caller.events("POST", call_of(1, "ask"))
                asked = await events.message()
                assert asked["method"] == "elicitation/create"
                answer = {"action": "accept", "content": {"value": True}}
                reply = {"jsonrpc": "2.0", "id": asked["id"], "result": answer}
                assert await caller.status("POST", reply) == 202
                [last] = await events.messages()
                assert last["result"]["content"][0]["text"] == "accept True"

        run(main())

    def test_a_lost_connection_cancels_nothing(self):
        """spec 2025-11-25: basic/transports#sending-messages-to-the-server"""

        async def main():
            app = demo()
            async with http_calling(app) as (caller, server):
                for req_id, say in ((1, True), (2, False)):
                    gate = f"g{req_id}"
                    msg = call_of(req_id, "wait", {"gate": gate, "say": say, "after": True})
                    if say:
                        events = await caller.events("POST", msg)
                        await events.message()
                        seen = events.decoder.last_id
                        events.drop()
                    else:
                        task = asyncio.ensure_future(caller.post(msg))
                        await until(lambda: f"{gate} begins" in app.log)  # noqa: B023
                        task.cancel()
                        await asyncio.wait([task])
                    await until(lambda: not server.endpoint.streams)
                    app.gate_of(gate).set_result(None)
                    await until(lambda: f"{gate} ends" in app.log)  # noqa: B023
                    if say:
                        events = await caller.events("GET", last_event_id=seen)
                        said, answer = await events.messages()
                        assert said["params"]["data"] == "after" and answer["id"] == 1
                await until(lambda: not serving(server.listener))

        run(main())

    @pytest.mark.parametrize("say", [False, True])
    def test_a_cancelled_request_ends_its_post_without_an_answer(self, say):
        async def main():
            app = demo()
            async with http_calling(app) as (caller, server):
                msg = call_of(1, "wait", {"gate": "g", "say": say})
                post = asyncio.ensure_future(caller.events("POST", msg))
                await until(lambda: app.log)
                params = {"requestId": 1}
                cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
                assert await caller.status("POST", cancel) == 202
                assert len(await (await post).messages()) == say
                assert app.log == ["g begins", "g cancelled"]
                assert not server.endpoint.waiting and not server.endpoint.streams
                assert (await caller.post(call_of(1, "echo", {"text": "x"})))[0] == 200

        run(main())

    def test_a_stream_closed_on_purpose_is_polled(self):
        """spec 2025-11-25: basic/transports#sending-messages-to-the-server"""

        async def main():
            app = demo()
            async with http_calling(app) as (caller, _):
                standalone = await caller.events("GET")  # is no obstacle
                events = await caller.events("POST", call_of(1, "poll", {"gate": "g"}))
                assert await events.message() is None
                assert events.decoder.retry_ms == 5 and events.decoder.last_id
                app.gate_of("g").set_result(None)
                again = await caller.events("GET", last_event_id=events.decoder.last_id)
                [answer] = await again.messages()
                assert answer["id"] == 1 and app.log == [True]
                standalone.drop()

        run(main())

    @pytest.mark.parametrize(
        "options", [{"revision": "2025-06-18"}, {"sessions": False, "opened": False}]
    )
    def test_where_nobody_would_come_back_the_stream_stays_open(self, options):
        async def main():
            app = demo()
            async with http_calling(app, **options) as (caller, _):
                app.gate_of("g").set_result(None)
                assert (await caller.post(call_of(1, "poll", {"gate": "g"})))[0] == 200
                assert app.log == [False]

        run(main())


class TestResuming:
    """spec 2025-11-25: basic/transports#resumability-and-redelivery"""

    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
    def test_a_cut_at_any_byte_neither_loses_nor_doubles_anything(self, revision):
        async def main():
            async with http_calling(revision=revision) as (caller, server):
                body = json.dumps(call_of(1, "count", {"to": 3})).encode()
                fields = {"host": caller.url.authority, "accept": JSON_BOTH, **caller.headers}
                fields["content-type"] = "application/json"
                request = m.encode_request("POST", "/mcp", fields, body)

                async def cut(size):
                    """Read so many bytes of the answer; return the events that were whole."""
                    decoder, events = m.ResponseDecoder("POST"), m.SSEDecoder()
                    async with await Wire.open(server.url) as wire:
                        wire.send(request)
                        data = await wire.reader.readexactly(size)
                        return sum(map(events.feed, decoder.feed(data)), []), events.last_id

                async with await Wire.open(server.url) as wire:
                    wire.send(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
                    whole = len((await wire.everything()).replace(b"connection: close\r\n", b""))
                lost = 0
                for size in range(whole + 1):
                    events, last_id = await cut(size)
                    if last_id:
                        again = await caller.events("GET", last_event_id=last_id)
                        while (event := await again.next()) is not None:
                            events.append(event)
                        again.answer.close()
                        found = [json.loads(event.data) for event in events if event.data]
                        assert [item.get("params", item.get("id")) for item in found] == [
                            {"n": 1}, {"n": 2}, {"n": 3}, 1,
                        ], f"cut after {size} bytes"  # fmt: skip
                        assert len({event.id for event in events}) == len(events)
                    else:
                        lost = size
                assert 0 < lost < whole / 2, "before the first id there is nothing to come back to"
                [session] = server.endpoint.sessions.values()
                await until(lambda: not serving(server.listener))
                assert len(session.streams) <= m.MAX_KEPT_STREAMS + 1

        run(main())

    def test_a_stream_may_be_cut_again_and_again(self):
        async def main():
            async with http_calling() as (caller, _):
                events = await caller.events("POST", call_of(1, "count", {"to": 20}))
                found = []
                while True:
                    msg = await events.message()
                    found.append(msg)
                    last_id = events.decoder.last_id if not events.found else None
                    if "id" in msg:
                        break
                    if last_id:
                        events.drop()
                        events = await caller.events("GET", last_event_id=last_id)
                assert [msg.get("params", {}).get("n") for msg in found] == [*range(1, 21), None]

        run(main())

    @pytest.mark.parametrize(
        "limit, value, kept", [("MAX_KEPT_EVENTS", 5, 5), ("MAX_KEPT_BYTES", 500, None)]
    )
    def test_the_log_is_bounded_and_says_so(self, limit, value, kept, monkeypatch):
        monkeypatch.setattr(m, limit, value)

        async def main():
            async with http_calling() as (caller, server):
                events = await caller.events("POST", call_of(1, "count", {"to": 20}))
                ids = []
                while (event := await events.next()) is not None:
                    ids.append(event.id)
                assert len(ids) == 21 or len(ids) == 22
                [session] = server.endpoint.sessions.values()
                [stream] = session.streams.values()
                assert len(stream.events) == (kept or len(stream.events)) < 21
                assert stream.size - len(stream.events[-1]) <= m.MAX_KEPT_BYTES
                oldest = stream.last - len(stream.events)
                name = stream.name
                again = await caller.events("GET", last_event_id=f"{name}-{oldest}")
                assert len(await again.messages()) == len(stream.events)
                for gone in (oldest - 1, 0, stream.last + 1):
                    status, _, answer = await caller.ask("GET", last_event_id=f"{name}-{gone}")
                    assert status == 400 and "no longer kept" in answer["error"]["message"]

        run(main())

    def test_the_newest_event_is_kept_whatever_its_size(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_KEPT_BYTES", 10)

        async def main():
            async with http_calling() as (caller, server):
                events = await caller.events("POST", call_of(1, "count", {"to": 2}))
                await events.messages()
                [session] = server.endpoint.sessions.values()
                [stream] = session.streams.values()
                again = await caller.events("GET", last_event_id=f"{stream.name}-2")
                assert len(await again.messages()) == 1

        run(main())

    def test_a_large_answer_pushes_nothing_out(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_KEPT_BYTES", 2000)

        async def main():
            app = demo()

            @app.tool
            async def large(ctx: m.Context) -> str:
                await ctx.info("before")
                return "x" * 10_000

            async with http_calling(app) as (caller, server):
                events = await caller.events("POST", call_of(1, "large"))
                first = await events.next()
                await events.messages()
                again = await caller.events("GET", last_event_id=first.id)
                said = await again.messages()
                assert [msg.get("method", "answer") for msg in said] == [
                    "notifications/message", "answer",
                ]  # fmt: skip

        run(main())

    def test_finished_streams_are_bounded_in_number_and_size(self, monkeypatch):
        async def main():
            async with http_calling() as (caller, server):
                [session] = server.endpoint.sessions.values()
                for _ in range(30):
                    await (await caller.events("POST", call_of(1, "count", {"to": 2}))).messages()
                assert len(session.streams) == m.MAX_KEPT_STREAMS + 1
                monkeypatch.setattr(m, "MAX_KEPT_BYTES", 1)
                await (await caller.events("POST", call_of(1, "count", {"to": 2}))).messages()
                assert len(session.streams) == 1

        run(main())

    def test_a_reader_that_is_overtaken_is_cut_off_and_nothing_waits_for_it(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_KEPT_EVENTS", 3)

        async def main():
            async with http_calling() as (caller, server):
                [session] = server.endpoint.sessions.values()
                stream = await caller.events("GET")
                await stream.next()
                stream.answer.stream[1].transport.pause_reading()
                big = {"jsonrpc": "2.0", "method": "acme/big", "params": {"x": "x" * 3_000_000}}
                tasks = [asyncio.ensure_future(session.announce(big)) for _ in range(9)]
                await until(lambda: session.listening.last == 9)
                await until(lambda: sum(task.done() for task in tasks) >= 8)
                stream.answer.stream[1].transport.resume_reading()
                found = await stream.messages()
                assert 1 <= len(found) < 9, "some are lost, and the stream says so by ending"
                assert await caller.status("GET", last_event_id=stream.decoder.last_id) == 400
                fresh = await caller.events("GET")
                assert (await fresh.message())["method"] == "acme/big"
                fresh.drop()
                await asyncio.wait(tasks)

        run(main())

    def test_events_that_come_during_a_slow_replay_keep_their_order(self):
        async def main():
            async with http_calling() as (caller, server):
                [session] = server.endpoint.sessions.values()
                first = await caller.events("GET")
                start = (await first.next()).id
                first.drop()
                await until(lambda: not server.endpoint.streams)

                def say(number):
                    params = {"n": number, "x": "x" * 100_000}
                    return session.announce(
                        {"jsonrpc": "2.0", "method": "acme/n", "params": params}
                    )

                for number in range(8):
                    await say(number)
                again = await caller.events("GET", last_event_id=start)
                again.answer.stream[1].transport.pause_reading()
                more = [asyncio.ensure_future(say(number)) for number in range(8, 10)]
                await asyncio.sleep(0)
                again.answer.stream[1].transport.resume_reading()
                assert [(await again.message())["params"]["n"] for _ in range(10)] == list(
                    range(10)
                )
                await asyncio.wait(more)
                again.drop()

        run(main())


class TestSecurity:
    """One gate in front of every route. users-and-competitors.md 4.4, rule 1"""

    ROUTES = [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("OPTIONS", "/mcp"),
              ("GET", "/sse"), ("POST", "/messages"), ("GET", "/open"), ("GET", "/closed"),
              ("GET", "/nowhere")]  # fmt: skip

    def app(self):
        app = demo()

        @app.route("GET", "/open", public=True)
        async def open_page(request):
            return "for everybody"

        @app.route("POST", "/open")
        async def not_open(request):
            return "for some"

        @app.route("GET", "/closed")
        def closed_page(request):
            return {"query": request.query}

        return app

    @pytest.mark.parametrize("method, target", ROUTES)
    def test_foreign_hosts_and_origins_come_nowhere(self, method, target):
        async def main():
            async with http_calling(self.app(), opened=False) as (caller, server):
                body = hello() if method == "POST" else b""
                for headers in (
                    {"host": "evil.example"},
                    {"origin": "http://evil.example"},
                    {"origin": "null"},
                    {"host": f"evil.example:{caller.url.port}", "origin": "http://evil.example"},
                ):
                    status, fields, answer = await caller.ask(method, body, target, **headers)
                    assert status == 403 and "allowed_" in answer["error"]["message"]
                    assert "access-control-allow-origin" not in fields
                assert not server.endpoint.sessions

        run(main())

    @pytest.mark.parametrize("method, target", ROUTES)
    def test_preflight_is_answered_before_authentication(self, method, target):
        async def main():
            async with http_calling(self.app(), opened=False, token="t") as (caller, _):
                status, fields, _ = await caller.ask(
                    "OPTIONS", b"", target, origin="http://localhost:3000",
                    access_control_request_method=method,
                    access_control_request_headers="mcp-session-id,authorization,mcp-param-x",
                )  # fmt: skip
                if target == "/nowhere":
                    assert status == 404
                    return
                assert status == 204
                assert fields["access-control-allow-origin"] == "http://localhost:3000"
                assert method in fields["access-control-allow-methods"]
                assert "mcp-param-x" in fields["access-control-allow-headers"]

        run(main())

    def test_a_page_can_read_every_answer_also_refusals(self):
        async def main():
            async with http_calling(token="t", opened=False) as (caller, _):
                origin = "http://localhost:3000"
                for auth, wanted in ((None, 401), ("Bearer t", 200)):
                    status, fields, _ = await caller.post(
                        hello(), origin=origin, authorization=auth
                    )
                    assert (status, fields["access-control-allow-origin"]) == (wanted, origin)
                    assert "Mcp-Session-Id" in fields["access-control-expose-headers"]
                caller.headers.update({"authorization": "Bearer t", "origin": origin})
                await caller.open()
                stream = await caller.events("GET")
                assert stream.head.headers["access-control-allow-origin"] == origin
                stream.drop()

        run(main())

    def test_who_has_no_right_token_is_told_so_everywhere_but_on_public_pages(self):
        async def main():
            async with http_calling(self.app(), opened=False, token=["one", "two"]) as (
                caller,
                server,
            ):
                for method, target in self.ROUTES:
                    body = hello() if method == "POST" else b""
                    for auth in (
                        None,
                        "Bearer three",
                        "Bearer",
                        "Basic one",
                        "Bearer oneone",
                        "one",
                    ):
                        status, fields, _ = await caller.ask(
                            method, body, target, authorization=auth
                        )
                        if target in ("/open", "/nowhere") or method == "OPTIONS":
                            assert status in (200, 204, 404)
                        else:
                            assert (status, fields["www-authenticate"]) == (401, "Bearer")
                assert await caller.status("POST", b"{}", "/open") == 401, (
                    "another method of the path"
                )
                assert await caller.status("GET", b"", "/open/") == 200
                assert not server.endpoint.sessions
                for token in ("one", "two"):
                    assert (
                        await caller.status("POST", hello(), authorization=f"bearer {token}") == 200
                    )

        run(main())

    def test_no_token_at_all_fits_an_empty_list(self):
        async def main():
            async with http_calling(opened=False, token=[]) as (caller, _):
                for auth in (None, "Bearer x"):
                    assert await caller.status("POST", hello(), authorization=auth) == 401

        run(main())

    def test_verify_says_who_it_is(self):
        async def verify(token):
            return {"good": "ann", "kept": None}.get(token)

        async def main():
            for check in (verify, {"good": "ann"}.get):
                async with http_calling(opened=False, verify=check, token={"fixed": "bob"}) as (
                    caller,
                    _,
                ):
                    for token, name in (
                        ("good", "ann"),
                        ("fixed", "bob"),
                        ("kept", None),
                        ("x", None),
                    ):
                        auth = {"authorization": f"Bearer {token}"}
                        if name is None:
                            assert await caller.status("POST", hello(), **auth) == 401
                            continue
                        caller.headers = dict(auth)
                        await caller.open()
                        answer = (await caller.post(call_of(1, "who"), x_test="yes"))[2]
                        assert answer["result"]["structuredContent"] == {"result": [name, "yes"]}

        run(main())

    def test_a_verifier_that_fails_lets_nobody_in(self, caplog):
        async def verify(token):
            raise KeyError("secret")

        async def main():
            async with http_calling(opened=False, verify=verify) as (caller, _):
                status, _, body = await caller.post(hello(), authorization="Bearer x")
                assert status == 500 and b"secret" not in body

        run(main())

    def test_an_open_door_is_pointed_out(self, caplog):
        async def main(**options):
            caplog.clear()
            async with demo().http(port=0, **options) as server:
                assert server.url.endswith("/mcp")
            return [record.message for record in caplog.records if record.levelname == "WARNING"]

        [said] = run(main(host="0.0.0.0"))
        assert "0.0.0.0" in said and "token=" in said and "127.0.0.1" in said
        assert run(main(host="0.0.0.0", token="t")) == []
        assert run(main()) == run(main(host="localhost")) == []

    def test_pages_beside_the_endpoint(self, caplog):
        app = self.app()
        values = {"text": "é", "bytes": b"\xff", "json": [1], "all": (404, "text/html", "<p>"),
                  "split": (200, "a\r\nb: c", ""), "none": None,
                  "headers": (201, {"content-type": "a/b", "location": "/text"}, "")}  # fmt: skip

        @app.route("get", "/value/")
        async def value(request):
            return values[request.query]

        async def main():
            async with http_calling(app, opened=False) as (caller, _):
                for query, wanted in (
                    ("text", (200, "text/plain; charset=utf-8", "é".encode())),
                    ("bytes", (200, "text/plain; charset=utf-8", b"\xff")),
                    ("json", (200, "application/json", [1])),
                    ("all", (404, "text/html", b"<p>")),
                    ("none", (200, "application/json", None)),
                    ("headers", (201, "a/b", b"")),
                    ("split", (500, None, b"")),
                    ("missing", (500, None, b"")),
                ):
                    status, fields, body = await caller.ask("GET", b"", f"/value?{query}")
                    assert (status, fields.get("content-type"), body) == wanted
                assert await caller.ask("HEAD", b"", "/open")
                answer = await caller.send("GET", b"", "/value?headers")
                assert answer.head.headers["location"] == "/text"
                answer.close()
                status, fields, body = await caller.ask("GET", b"", "/closed?a=b")
                assert body == {"query": "a=b"}
                status, fields, _ = await caller.ask("DELETE", b"", "/closed")
                assert (status, fields["allow"]) == (405, "GET, HEAD, OPTIONS")

        run(main())


class TestAwkwardMoments:
    """What comes when nobody expects it, and who leaves."""

    MODERN = (
        b'POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n'
        b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %b\r\n%bContent-Length: %d\r\n\r\n%b"
    )
    META = (
        b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}'
    )
    STREAM = b"Host: localhost\r\nAuthorization: Bearer x\r\nAccept: text/event-stream\r\n"

    def modern(self, method, name, params):
        body = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":{%b,%b}}'
        body %= (method, params, self.META)
        return self.MODERN % (method, name, len(body), body)

    @pytest.mark.parametrize("kind", ["listen", "call", "sse", "get"])
    def test_who_leaves_while_its_token_is_verified_leaves_nothing_behind(self, kind):
        """spec: basic/transports/streamable-http#cancellation"""

        async def main():
            app, asked, answer = demo(), asyncio.Event(), asyncio.Event()
            answer.set()

            async def verify(token):
                asked.set()
                await answer.wait()
                return "me"

            bearer = {"authorization": "Bearer x"}
            async with http_calling(app, verify=verify, headers=bearer) as (caller, server):
                get = b"GET /mcp HTTP/1.1\r\nMcp-Session-Id: %b\r\n" + self.STREAM + b"\r\n"
                listen = b'"notifications":{"toolsListChanged":true}'
                call = b'"name":"wait","arguments":{"gate":"a"}'
                data = {
                    "listen": self.modern(b"subscriptions/listen", b"", listen),
                    "call": self.modern(b"tools/call", b"Mcp-Name: wait\r\n", call),
                    "sse": b"GET /sse HTTP/1.1\r\n" + self.STREAM + b"\r\n",
                    "get": get % caller.headers["mcp-session-id"].encode(),
                }[kind]
                asked.clear()
                answer.clear()
                before = set(server.listener.connections)
                _, writer = await asyncio.open_connection(caller.url.host, caller.url.port)
                writer.write(data)
                await asked.wait()
                sock, reset = writer.get_extra_info("socket"), struct.pack("ii", 1, 0)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                writer.transport.abort()
                await eventually(lambda: not server.listener.connections - before)
                answer.set()
                await eventually(lambda: not serving(server.listener))
                endpoint = server.endpoint
                assert not app.feeds and not endpoint.modern.conversation.peer.incoming
                assert not endpoint.streams and not endpoint.waiting and not app.log
                assert [session.idle for session in endpoint.sessions.values()] == [True]

        run(main())

    @pytest.mark.parametrize("say", [False, True])
    def test_keeping_alive_comes_too_late_for_what_has_been_said(self, say):
        """The task that is to open a stream may run when the answer has left, or begun."""

        async def main():
            app = demo()
            async with http_calling(app) as (caller, server):
                msg = call_of(1, "wait", {"gate": "a", "say": say})
                asking = asyncio.ensure_future(caller.post(msg))
                await eventually(lambda: server.endpoint.waiting or server.endpoint.streams)
                [session] = server.endpoint.sessions.values()
                [exchange] = session.conversation.peer.incoming.values()
                reply, stream = exchange.send, exchange.send.stream
                assert (stream is None) is not say
                if not say:
                    app.gate_of("a").set_result(None)
                    await asking
                await reply.keep_alive()
                assert reply.stream is stream
                if say:
                    app.gate_of("a").set_result(None)
                    await asking
                assert not server.endpoint.streams and session.idle

        run(main())

    @pytest.mark.parametrize(
        "options, fields, status, more",
        [
            ({}, b"Host: evil.example\r\n", 403, b""),
            ({}, b"Host: localhost\r\nOrigin: http://evil.example\r\n", 403, b""),
            ({"token": "t"}, b"Host: localhost\r\n", 401, b"www-authenticate: Bearer\r\n"),
            ({"path": "/elsewhere"}, b"Host: localhost\r\n", 404, b""),
        ],
    )
    def test_a_body_is_not_waited_for_where_the_head_is_reason_enough(
        self, options, fields, status, more
    ):
        async def main():
            async with demo().http(port=0, **options) as server:
                url = m.parse_url(server.url)
                reader, writer = await asyncio.open_connection(url.host, url.port)
                writer.write(b"POST /mcp HTTP/1.1\r\nExpect: 100-continue\r\n" + fields)
                writer.write(b"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
                answer = await reader.read()
                assert answer.startswith(b"HTTP/1.1 %d " % status) and more in answer
                writer.close()
                await writer.wait_closed()

        run(main())

    def test_a_rate_limit_holds_without_sessions_too(self):
        async def main():
            app = m.Server(rate_limit=(2, 3600))
            app.add_tool(lambda: 1, name="one")
            listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            async with http_calling(app, opened=False, sessions=False) as (caller, _):
                assert await caller.status("POST", hello()) == 200
                codes = [(await caller.post(listing))[2].get("error", {}).get("code")
                         for _ in range(3)]  # fmt: skip
                assert codes == [None, None, 429]
                caller.headers["mcp-protocol-version"] = "2025-03-26"
                status, _, answer = await caller.post([listing])
                assert (status, answer["error"]["code"]) == (429, 429)

        run(main())


class TestRunningOverHTTP:
    """Ways to begin, and to end in good order."""

    def test_stopping_lets_running_requests_finish_and_ends_streams(self):
        async def main():
            app = demo()
            async with app.http(port=0, grace=5) as server, Caller(server.url) as caller:
                await caller.open()
                stream = await caller.events("GET")
                said = await caller.events("POST", call_of(1, "wait", {"gate": "a", "say": True}))
                plain = asyncio.ensure_future(caller.post(call_of(2, "wait", {"gate": "b"})))
                await until(lambda: len(app.log) == 2)
                stopping = asyncio.ensure_future(server.__aexit__(None, None, None))
                assert await stream.messages() == []
                app.gate_of("a").set_result(None)
                app.gate_of("b").set_result(None)
                assert [msg.get("id") for msg in await said.messages()] == [None, 1]
                assert (await plain)[2]["id"] == 2
                await stopping
                with pytest.raises(m.ConnectionClosed):
                    await caller.post(hello())
                server.endpoint.sessions.clear()

        run(main())

    def test_stopping_cancels_what_is_late_within_the_grace_period(self):
        async def main():
            app = demo()
            for options in ({}, {"sessions": False, "opened": False}):
                app.log.clear()
                async with http_calling(app, grace=0.05, **options) as (caller, server):
                    slow = asyncio.ensure_future(caller.post(call_of(1, "wait", {"gate": "never"})))
                    await until(lambda: app.log)
                    began = time.monotonic()
                    await server.__aexit__(None, None, None)
                    assert time.monotonic() - began < 1.5
                    with contextlib.suppress(m.ConnectionClosed):
                        await slow
                    assert app.log == ["never begins", "never cancelled"]
                    server.__class__ = type("Stopped", (), {"__aexit__": None})

        with contextlib.suppress(TypeError):
            run(main())

    def test_the_ways_to_serve(self, tmp_path):
        async def talk(url, **options):
            async with m.Client(url, **options) as client:
                return await client.call("echo", {"text": "hi"})

        app = demo()
        handle = app.start_in_thread("http", port=0)
        try:
            assert run(talk(handle.url)) == "hi"
        finally:
            handle.stop()

        async def main():
            found = asyncio.get_running_loop().create_future()
            path = str(tmp_path / "s")
            serving = asyncio.ensure_future(
                app.serve_on("http", found.set_result, uds=path, path="/x/")
            )
            url = await found
            assert url == "http://localhost/x"
            assert await talk(url, uds=path) == "hi"
            serving.cancel()
            await asyncio.wait([serving])
            assert not os.path.exists(path)

        run(main())

    def test_run_serves_until_a_signal(self):
        code = (
            "import sys; sys.path.insert(0, %r); import mcp_lite as m\n"
            "app = m.Server('x')\n"
            "@app.tool\ndef one() -> int: return 1\n"
            "app.run('http', port=0)" % str(HERE)
        )
        with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as child:
            line = child.stderr.readline().decode()
            url = line.split()[-1]
            assert "serves http://127.0.0.1:" in line

            async def main():
                async with m.Client(url) as client:
                    return await client.call("one")

            assert run(main()) == 1
            child.send_signal(signal.SIGTERM)
            assert child.wait(10) == 0

    def test_tls_from_end_to_end(self, certificate):
        async def main():
            async with demo().http(port=0, ssl=certificate) as server:
                assert server.url.startswith("https://127.0.0.1:")
                async with m.Client(server.url, ssl=certificate[0]) as client:
                    assert await client.call("count", {"to": 3}) == 3
                with pytest.raises(m.ConnectionClosed, match="certificate"):
                    asyncio.get_running_loop().set_exception_handler(lambda *args: None)
                    await m.Client(server.url).connect()

        run(main())

    def test_an_open_stream_is_small(self):
        """DESIGN section 6: at most 40 KiB."""
        import tracemalloc

        async def main():
            async with http_calling(opened=False) as (caller, server):
                wires = [await Wire.open(server.url) for _ in range(40)]
                ids = []
                for _ in wires:
                    await caller.post(hello(), mcp_session_id=None)
                ids = list(server.endpoint.sessions)
                gc.collect()
                tracemalloc.start()
                before = tracemalloc.get_traced_memory()[0]
                for wire, id in zip(wires, ids):
                    wire.send(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n")
                    wire.send(f"Mcp-Session-Id: {id}\r\n\r\n".encode())
                await until(lambda: len(server.endpoint.streams) == 40)
                gc.collect()
                size = (tracemalloc.get_traced_memory()[0] - before) / 40
                tracemalloc.stop()
                assert size <= 40 * 1024
                for wire in wires:
                    wire.drop()

        run(main())


class TestFirstRevision:
    """HTTP+SSE, spec 2024-11-05: basic/transports#http-with-sse"""

    def test_everything_comes_on_the_one_stream(self):
        async def main():
            app = demo()
            async with http_calling(app, opened=False) as (caller, server):
                events = await caller.events("GET", b"", "/sse")
                first = await events.next()
                assert first.event == "endpoint" and first.data.startswith("/messages?session_id=")
                where = first.data
                status, _, body = await caller.ask("POST", hello("2024-11-05"), where)
                assert (status, body) == (202, b"Accepted")
                answer = await events.message()
                assert answer["result"]["protocolVersion"] == "2024-11-05"
                assert await caller.status("POST", INITIALIZED, where) == 202
                await caller.ask("POST", call_of(1, "count", {"to": 2}), where)
                assert [(await events.message()).get("id") for _ in range(3)] == [None, None, 1]
                app.tools_changed()
                assert "list_changed" in (await events.message())["method"]
                await caller.ask("POST", call_of(2, "who"), where, x_test="yes")
                assert "yes" in (await events.message())["result"]["content"][0]["text"]
                await caller.ask("POST", b"{", where)
                assert (await events.message())["error"]["code"] == -32700
                assert (
                    await caller.status("POST", INITIALIZED, where, content_type="text/plain")
                    == 415
                )
                assert await caller.status("POST", INITIALIZED, "/messages") == 404
                assert await caller.status("POST", INITIALIZED, "/messages?session_id=x") == 404
                await caller.ask("POST", call_of(3, "wait", {"gate": "g"}), where)
                await until(lambda: app.log)
                events.drop()
                await until(lambda: not server.endpoint.sessions)
                assert await caller.status("POST", INITIALIZED, where) == 404
                await until(lambda: app.log == ["g begins", "g cancelled"])

        run(main())

    def test_it_can_be_switched_off(self):
        async def main():
            async with http_calling(opened=False, legacy_sse=False) as (caller, _):
                assert await caller.status("GET", b"", "/sse") == 404
                assert await caller.status("POST", INITIALIZED, "/messages?session_id=x") == 404

        run(main())

    def test_our_client_falls_back_to_it(self):
        async def main():
            async with demo().http(port=0) as server:
                url = server.url.replace("/mcp", "/sse")
                async with m.Client(url, revision="2024-11-05") as client:
                    assert client.revision == "2024-11-05"
                    assert await client.call("echo", {"text": "old"}) == "old"
                    assert await client.call("count", {"to": 2}) == "2"
                    await asyncio.gather(*(client.call("echo", {"text": "x"}) for _ in range(20)))
                await until(lambda: not server.endpoint.sessions)

        run(main())

    @pytest.mark.parametrize(
        "events, match",
        [
            (b"", "ended its stream"),
            (b"event: endpoint\ndata: http://elsewhere.example/x\n\n", "endpoint elsewhere"),
            (b"event: endpoint\ndata: ftp://x/\n\n", "URL|endpoint"),
            (b"data: {}\n\n", "ended its stream"),
        ],
    )
    def test_a_bad_endpoint_is_an_error(self, events, match):
        async def old(wire):
            head, _ = await one_request(wire)
            if head.method == "POST":
                wire.send(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + events)
            wire.writer.close()

        async def main():
            async with scripted(old) as url:
                with pytest.raises((m.MCPError, ValueError), match=match):
                    await m.Client(url).connect()

        run(main())


class ASGI:
    """An ASGI server in a function: one request, fed and read in process."""

    def __init__(self, app, method="POST", path="/mcp", body=b"", *, root="", pieces=1, **headers):
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
        self.todo = [body[i : i + step] for i in range(0, len(body), step)] or [b""]
        self.gone = asyncio.get_running_loop().create_future()
        self.got, self.done = [], False
        self.status, self.headers, self.body = None, {}, b""
        self.task = asyncio.ensure_future(app(self.scope, self.receive, self.send))

    async def receive(self):
        if self.todo:
            body = self.todo.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(self.todo)}
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
            self.done = not message["more_body"]

    def disconnect(self):
        self.gone.set_result(None)

    async def answer(self):
        """Wait until the application returns: (status, headers, JSON or bytes)."""
        await self.task
        assert self.done or self.gone.done()
        kind = self.headers.get("content-type")
        body = json.loads(self.body) if kind == "application/json" else self.body
        return self.status, self.headers, body


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


class TestASGI:
    """The same endpoint under any ASGI server."""

    def test_a_session_in_process(self):
        async def main():
            app = demo()
            async with asgi_app(app) as asgi:
                status, headers, answer = await ASGI(asgi, body=hello(), pieces=7).answer()
                assert status == 200 and answer["result"]["serverInfo"]["name"] == "demo"
                assert headers["content-length"]
                session = {"mcp_session_id": headers["mcp-session-id"]}
                assert (await ASGI(asgi, body=INITIALIZED, **session).answer())[0] == 202
                call = ASGI(asgi, body=call_of(1, "count", {"to": 2}), **session)
                status, headers, body = await call.answer()
                assert headers["content-type"] == "text/event-stream"
                events = [event for event in m.SSEDecoder().feed(body) if event.data]
                assert [json.loads(event.data).get("id") for event in events] == [None, None, 1]
                for request, wanted in (
                    (ASGI(asgi, "PUT"), 405),
                    (ASGI(asgi, path="/x"), 404),
                    (ASGI(asgi, body=hello(), host="evil.example"), 403),
                    (ASGI(asgi, body=hello(), host="evil.example, localhost"), 403),
                    (ASGI(asgi, body=hello(), content_type="text/plain"), 415),
                    (ASGI(asgi, "DELETE", **session), 204),
                    (ASGI(asgi, "DELETE", **session), 404),
                    (ASGI(asgi, body=b"{"), 400),
                ):
                    assert (await request.answer())[0] == wanted

        run(main())

    def test_a_body_is_bounded(self):
        async def main():
            async with asgi_app(demo(), max_body=1000) as asgi:
                for size, wanted in ((1000, 400), (1001, 413)):
                    for pieces in (1, 10):
                        request = ASGI(asgi, body=b" " * size, pieces=pieces)
                        assert (await request.answer())[0] == wanted

        run(main())

    def test_a_client_that_goes_away_cancels_nothing(self):
        """Not even where the ASGI server cancels the application."""

        async def main():
            for way in ("disconnect", "cancel"):
                app = demo()
                async with asgi_app(app) as asgi:
                    _, headers, _ = await ASGI(asgi, body=hello()).answer()
                    session = {"mcp_session_id": headers["mcp-session-id"]}
                    msg = call_of(1, "wait", {"gate": "g", "say": True, "after": True})
                    call = ASGI(asgi, body=msg, **session)
                    await until(lambda: b"before" in call.body)  # noqa: B023
                    if way == "disconnect":
                        call.disconnect()
                        await call.answer()
                    else:
                        call.task.cancel()
                        await asyncio.wait([call.task])
                    app.gate_of("g").set_result(None)
                    await until(lambda: "g ends" in app.log)  # noqa: B023
                    events = m.SSEDecoder()
                    events.feed(call.body)
                    again = ASGI(asgi, "GET", last_event_id=events.last_id, **session)
                    _, _, body = await again.answer()
                    found = [json.loads(event.data) for event in m.SSEDecoder().feed(body)]
                    assert [msg.get("id") for msg in found] == [None, 1]

        run(main())

    def test_the_standalone_stream_ends_with_its_reader_and_with_the_server(self):
        async def main():
            app = demo()
            async with asgi_app(app) as asgi:
                _, headers, _ = await ASGI(asgi, body=hello()).answer()
                session = {"mcp_session_id": headers["mcp-session-id"]}
                await ASGI(asgi, body=INITIALIZED, **session).answer()
                first = ASGI(asgi, "GET", **session)
                await until(lambda: first.status)
                assert (await ASGI(asgi, "GET", **session).answer())[0] == 409
                first.disconnect()
                await first.answer()
                second = ASGI(asgi, "GET", **session)
                await until(lambda: second.status == 200)
                app.tools_changed()
                await until(lambda: b"list_changed" in second.body)
            assert (await second.answer())[0] == 200 and second.done

        run(main())

    def test_mounted_somewhere(self):
        """Both ways in which frameworks tell the path; no lifespan is told of."""

        async def main():
            app = demo()
            asgi = app.asgi_with()
            for root, path in (
                ("", "/mcp"),
                ("/api", "/api/mcp"),
                ("/api", "/mcp"),
                ("/api", "/api"),
                ("/api/", "/api/"),
                ("/mcp", "/mcp"),
                ("/mcp", "/mcp/"),
                ("/a", "/a/mcp/"),
            ):
                request = ASGI(asgi, path=path, root=root, body=hello())
                assert (await request.answer())[0] == 200, (root, path)
            assert (await ASGI(asgi, path="/apix/mcp", root="/api", body=hello()).answer())[
                0
            ] == 404
            sse = ASGI(asgi, "GET", "/api/sse", root="/api")
            await until(lambda: sse.body)
            assert b"data: /api/messages?session_id=" in sse.body
            sse.disconnect()
            await sse.answer()
            await asgi.close()

        run(main())

    def test_the_lifespan_is_entered_once_and_before_any_request(self):
        async def main():
            gate, log = asyncio.get_running_loop().create_future(), []

            @contextlib.asynccontextmanager
            async def lifespan(server):
                log.append("begins")
                await gate
                yield 5
                log.append("ends")

            app = m.Server("x", lifespan=lifespan)

            @app.tool
            async def five(ctx: m.Context) -> int:
                return ctx.lifespan

            asgi = app.asgi_with(sessions=False)
            calls = [ASGI(asgi, body=call_of(1, "five")) for _ in range(3)]
            await until(lambda: log)
            gate.set_result(None)
            for call in calls:
                assert (await call.answer())[2]["result"]["content"][0]["text"] == "5"
            await asgi.close()
            assert log == ["begins", "ends"]

        run(main())

    def test_a_lifespan_that_fails_is_told_and_tried_again(self):
        async def main():
            tries = []

            @contextlib.asynccontextmanager
            async def lifespan(server):
                tries.append(1)
                if len(tries) < 2:
                    raise ValueError("no database")
                yield

            asgi = m.Server("x", lifespan=lifespan).asgi_with()
            said = []

            async def receive():
                return {"type": "lifespan.startup"}

            async def send(message):
                said.append(message)

            await asgi({"type": "lifespan"}, receive, send)
            assert said == [{"type": "lifespan.startup.failed", "message": "no database"}]
            assert (await ASGI(asgi, body=hello()).answer())[0] == 200
            await asgi.close()
            with pytest.raises(RuntimeError, match="websocket"):
                await asgi({"type": "websocket"}, receive, send)

        run(main())

    def test_a_page_that_fails_is_a_500(self, caplog):
        async def main():
            app = demo()

            @app.route("GET", "/bad")
            async def bad(request):
                raise ValueError("secret")

            async with asgi_app(app) as asgi:
                status, _, body = await ASGI(asgi, "GET", "/bad").answer()
                assert (status, body) == (500, b"")

        run(main())

    def test_writes_keep_their_order_under_a_slow_server(self):
        async def main():
            app = demo()
            async with asgi_app(app) as asgi:
                _, headers, _ = await ASGI(asgi, body=hello()).answer()

                class Slow(ASGI):
                    async def send(self, message):
                        for _ in range(dice.randint(0, 5)):
                            await asyncio.sleep(0)
                        await super().send(message)

                dice = rng("slow asgi")
                session = {"mcp_session_id": headers["mcp-session-id"]}
                for _ in range(5):
                    call = Slow(asgi, body=call_of(1, "count", {"to": 20}), **session)
                    _, _, body = await call.answer()
                    found = [json.loads(e.data) for e in m.SSEDecoder().feed(body) if e.data]
                    assert [msg.get("params", {}).get("n") for msg in found] == [
                        *range(1, 21),
                        None,
                    ]

        run(main())


def http_answer(body, **result):
    """The bytes of a JSON answer to the request in `body`."""
    msg = {"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": result}
    return framed("application/json", json.dumps(msg).encode())


def framed(kind, data, status="200 OK", more=""):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n{more}\r\n"
    return head.encode() + data


def greeting(body, more=""):
    """The bytes of the answer to `initialize`."""
    result = {"protocolVersion": json.loads(body)["params"]["protocolVersion"]}
    result.update(capabilities={"tools": {}}, serverInfo={"name": "s", "version": "1"})
    msg = {"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": result}
    return framed("application/json", json.dumps(msg).encode(), more=more)


NO_BODY = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
NOT_HERE = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
SESSION = "Mcp-Session-Id: s1\r\n"


class Scripted:
    """A server by hand: `on_call(wire, head, msg)` answers what is not handshake."""

    def __init__(self, on_call, *, more=SESSION, on_get=None):
        self.on_call, self.more, self.on_get = on_call, more, on_get
        self.seen = []  # (method, headers, message)

    async def __call__(self, wire):
        while True:
            head, body = await one_request(wire)
            msg = json.loads(body) if body else None
            self.seen.append((head.method, head.headers, msg))
            if head.method == "GET" and self.on_get is not None:
                await self.on_get(wire, head)
            elif head.method != "POST":
                wire.send(NOT_HERE)
            elif msg.get("method") == "initialize":
                more = self.more() if callable(self.more) else self.more
                wire.send(greeting(body, more))
            elif "id" not in msg or "method" not in msg:
                wire.send(NO_BODY)
            else:
                await self.on_call(wire, head, msg)

    def methods(self):
        return [msg["method"] if msg else method for method, _, msg in self.seen]


def talk(script, work, **options):
    """Run `await work(client)` against a scripted server."""

    async def main():
        async with scripted(script) as url:
            async with m.Client(
                url, revision=options.pop("revision", NEWEST_SESSION), **options
            ) as c:
                return await work(c)

    return run(main())


def sse(msg, id=None):
    return m.encode_event(json.dumps(msg), id=id)


class TestClientOverHTTP:
    """spec 2025-11-25: basic/transports, the client's side"""

    def test_json_and_event_answers(self):
        async def on_call(wire, head, msg):
            answer = {"jsonrpc": "2.0", "id": msg["id"], "result": {"n": len(script.seen)}}
            if msg["method"] == "acme/json":
                wire.send(framed("Application/JSON; charset=utf-8", json.dumps(answer).encode()))
            else:
                log = {"jsonrpc": "2.0", "method": "acme/x"}
                wire.send(framed("text/event-stream", b": hi\n\n" + sse(log) + sse(answer)))

        async def work(client):
            assert (await client.request("acme/json"))["n"]
            assert (await client.request("acme/events"))["n"]

        script = Scripted(on_call)
        talk(script, work)
        for method, headers, msg in script.seen:
            if method == "POST":
                assert headers["content-type"] == "application/json"
                assert (
                    "application/json" in headers["accept"]
                    and "text/event-stream" in headers["accept"]
                )
            opening = msg is not None and msg["method"] == "initialize"
            assert headers.get("mcp-session-id") == (None if opening else "s1")
            assert headers.get("mcp-protocol-version") == (None if opening else NEWEST_SESSION)
            assert headers["accept-encoding"] == "identity"
        assert script.methods() == [
            "initialize", "notifications/initialized", "GET", "acme/json", "acme/events", "DELETE",
        ]  # fmt: skip

    def test_without_a_session_there_is_nothing_to_delete(self):
        script = Scripted(None, more="")
        talk(script, lambda client: asyncio.sleep(0))
        assert "DELETE" not in script.methods()
        assert all("mcp-session-id" not in headers for _, headers, _ in script.seen)

    @pytest.mark.parametrize(
        "status", ["405 Method Not Allowed", "404 Not Found", "400 Bad Request"]
    )
    def test_a_server_without_a_standalone_stream_is_fine(self, status):
        async def on_get(wire, head):
            wire.send(framed("text/plain", b"no", status))

        async def on_call(wire, head, msg):
            wire.send(http_answer(json.dumps(msg)))

        script = Scripted(on_call, on_get=on_get)
        talk(script, lambda client: client.ping())
        assert script.methods().count("GET") == 1, "it is not asked again"

    @pytest.mark.parametrize("how", ["static", "callable", "async"])
    def test_headers(self, how):
        calls = []

        def fresh():
            calls.append(1)
            return {"Authorization": f"Bearer {len(calls)}"}

        async def later():
            return fresh()

        given = {"static": {"Authorization": "Bearer 1"}, "callable": fresh, "async": later}[how]

        async def on_call(wire, head, msg):
            wire.send(http_answer(json.dumps(msg)))

        script = Scripted(on_call)
        talk(script, lambda client: client.ping(), headers=given)
        sent = [headers["authorization"] for _, headers, _ in script.seen]
        wanted = [f"Bearer {n}" for n in range(1, len(sent) + 1)]
        assert sent == (["Bearer 1"] * len(sent) if how == "static" else wanted)

    def test_an_authorizer_has_a_refused_request_sent_once_more(self, monkeypatch):
        """The same bytes, with its own headers, and for the standalone stream too."""

        class Knock(m.Authorizer):
            token = 0

            async def headers(self, method, ask):
                return {"authorization": f"Bearer {self.token}"} if self.token else {}

            async def settle(self, answer, sent, steps):
                if answer.head.status != 401 or len(steps) == 2:
                    return False
                steps.append("knock")
                self.token += 1
                return True

        monkeypatch.setattr(m, "AUTHORIZERS", [lambda transport, auth: auth])
        seen = []

        async def serve(wire):
            while True:
                head, body = await one_request(wire)
                seen.append((head.method, head.headers.get("authorization"), body))
                if head.headers.get("authorization") != "Bearer 2":
                    wire.send(framed("text/plain", b"no", "401 Unauthorized"))
                elif b'"initialize"' in body:
                    wire.send(greeting(body, SESSION))
                else:
                    wire.send(NO_BODY)

        async def main():
            async with scripted(serve) as url:
                async with m.Client(url, revision=NEWEST_SESSION, auth=Knock()):
                    pass
                assert [token for _, token, _ in seen[:3]] == [None, "Bearer 1", "Bearer 2"]
                assert len({body for _, _, body in seen[:3]}) == 1
                assert {method for method, token, _ in seen[3:] if token == "Bearer 2"} == {
                    "POST", "GET", "DELETE",
                }  # fmt: skip
                with pytest.raises(m.AuthError, match="401"):
                    async with m.Client(url, revision=NEWEST_SESSION, auth=Stubborn()):
                        pass

        class Stubborn(Knock):
            async def headers(self, method, ask):
                return {}

        run(main())

    def test_an_auth_that_nothing_makes_an_authorizer_of_is_a_mistake(self, monkeypatch):
        monkeypatch.setattr(m, "AUTHORIZERS", [])

        async def main():
            with pytest.raises(TypeError, match="auth=object: see section 35"):
                async with m.Client("http://127.0.0.1:9/", auth=object()):
                    pass

        run(main())

    def test_waiting_for_a_person_costs_no_request_its_timeout(self, monkeypatch):
        class Person(m.Authorizer):
            async def headers(self, method, ask):
                if not self.asked:
                    self.asked = self.transport.waits_for_person = True
                    over = asyncio.get_running_loop().time() + 0.6
                    await until(lambda: asyncio.get_running_loop().time() > over)
                    self.transport.waits_for_person = False
                return {}

            def __init__(self, transport, auth):
                self.transport, self.asked = transport, False

        monkeypatch.setattr(m, "AUTHORIZERS", [Person])

        async def on_call(wire, head, msg):
            wire.send(http_answer(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": {}})))

        talk(Scripted(on_call), lambda client: client.ping(), auth="a person", timeout=0.4)

    def test_headers_that_cannot_be_had_fail_the_request_at_once(self):
        async def on_call(wire, head, msg):
            wire.send(http_answer(json.dumps(msg)))

        broken = []

        def headers():
            if broken:
                raise KeyError("token")
            return {}

        async def work(client):
            broken.append(1)
            with pytest.raises(m.ConnectionClosed, match="KeyError"):
                await client.ping()
            broken.clear()
            assert await client.ping() >= 0

        talk(Scripted(on_call), work, headers=headers)

    @pytest.mark.parametrize(
        "answer, kind, match",
        [
            (
                framed("text/html", b"<html>\nlogin", "502 Bad Gateway"),
                m.ConnectionClosed,
                "http://127.*/ answered 502 Bad Gateway: <html>$",
            ),
            (framed("text/plain", b"", "500 Oops"), m.ConnectionClosed, "answered 500 Oops$"),
            (framed("text/plain", b"no", "401 Unauthorized"), m.AuthError, "401 Unauthorized: no"),
            (framed("text/plain", b"no", "403 Forbidden"), m.AuthError, "403"),
            (
                framed(
                    "application/json",
                    b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"}}',
                    "400 Bad",
                ),
                m.RemoteError,
                "bad .*HTTP 400",
            ),
            (
                framed("text/html", b"<p>hello\nyou"),
                m.ConnectionClosed,
                "answered with text/html: <p>hello$",
            ),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
                m.ConnectionClosed,
                "no content type: hi",
            ),
            (framed("application/json", b"<p>"), m.ConnectionClosed, "not JSON.*<p>"),
            (framed("application/json", b"{}"), m.MCPError, "without a response|malformed"),
            (framed("application/json", b"[]"), m.MCPError, "without a response"),
            (
                framed("application/json", b'{"jsonrpc":"2.0","id":999,"result":{}}'),
                m.ConnectionClosed,
                "without a response",
            ),
            (framed("text/event-stream", b""), m.ConnectionClosed, "without a response"),
            (framed("text/event-stream", b"data: {\n\n"), m.ProtocolError, "not JSON"),
            (framed("text/event-stream", b"data: 1"), m.ConnectionClosed, "without a response"),
            (NO_BODY, m.ConnectionClosed, "no content type"),
            (
                STREAM.replace(b"\r\n\r\n", b"\r\nContent-Length: 9\r\n\r\ndata"),
                m.ConnectionClosed,
                "without",
            ),
            (b"garbage\r\n\r\n", m.ConnectionClosed, "not HTTP"),
            (b"", m.ConnectionClosed, "ended before the answer"),
        ],
    )
    def test_what_is_no_answer_fails_the_request_with_a_reason(self, answer, kind, match):
        async def on_call(wire, head, msg):
            wire.send(answer)
            wire.writer.close()

        async def work(client):
            with pytest.raises(kind, match=match):
                await client.request("acme/x")

        talk(Scripted(on_call), work)

    def test_giant_events_and_bodies_end(self, monkeypatch):
        monkeypatch.setattr(m.SSEDecoder.__init__, "__defaults__", ("", 10_000))
        monkeypatch.setattr(m.HTTPAnswer.body, "__defaults__", (10_000,))

        async def on_call(wire, head, msg):
            events = msg["method"] == "acme/events"
            kind = b"text/event-stream" if events else b"application/json"
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n\r\ndata: ")
            while True:
                wire.send(b"x" * 10_000)
                await wire.writer.drain()

        async def work(client):
            for method in ("acme/events", "acme/json"):
                with pytest.raises(m.LimitExceeded, match="longer than 10000"):
                    await client.request(method)

        talk(Scripted(on_call), work)

    def test_a_stream_that_is_cut_is_resumed_after_its_last_event(self, monkeypatch):
        monkeypatch.setattr(m, "RETRY_MS", 1)
        """spec 2025-11-25: basic/transports#resumability-and-redelivery"""
        said = []

        async def on_call(wire, head, msg):
            note = {"jsonrpc": "2.0", "method": "notifications/message"}
            note["params"] = {"level": "info", "data": 1}
            wire.send(STREAM + b"retry: 1\n\n" + sse(note, "a-1") + b'id: a-2\ndata: {"half')
            script.open_id = msg["id"]
            wire.writer.close()

        async def on_get(wire, head):
            last = head.headers.get("last-event-id")
            if last is None:
                wire.send(NOT_HERE)
            elif last == "a-1" and script.methods().count("GET") == 2:
                wire.writer.close()  # no answer at all
                await wire.reader.read()
            elif last == "a-1":
                note = {"jsonrpc": "2.0", "method": "notifications/message"}
                note["params"] = {"level": "info", "data": 2}
                wire.send(STREAM + sse(note, "a-2"))
                wire.writer.close()
            else:
                assert last == "a-2"
                answer = {"jsonrpc": "2.0", "id": script.open_id, "result": {"done": True}}
                wire.send(framed("text/event-stream", sse(answer, "a-3")))

        async def work(client):
            assert await client.request("acme/x") == {"done": True}

        script = Scripted(on_call, on_get=on_get)
        talk(script, work, log=lambda level, data, logger: said.append(data))
        assert said == [1, 2] and script.methods().count("acme/x") == 1

    def test_it_gives_up_after_some_attempts(self, monkeypatch):
        monkeypatch.setattr(m, "RETRY_MS", 1)
        monkeypatch.setattr(m, "MAX_RESUMES", 2)

        async def on_call(wire, head, msg):
            wire.send(STREAM + b"retry: 1\nid: a\ndata:\n\n")
            wire.writer.close()

        async def on_get(wire, head):
            if "last-event-id" not in head.headers:
                wire.send(NOT_HERE)
            else:
                wire.send(STREAM)
                wire.writer.close()

        async def work(client):
            with pytest.raises(m.ConnectionClosed, match="without a response"):
                await client.request("acme/x")

        script = Scripted(on_call, on_get=on_get)
        talk(script, work)
        assert script.methods().count("GET") == 3

    def test_the_retry_field_is_respected(self):
        times = []

        async def on_call(wire, head, msg):
            wire.send(STREAM + b"retry: 60\nid: a\ndata:\n\n")
            script.open_id = msg["id"]
            times.append(time.monotonic())
            wire.writer.close()

        async def on_get(wire, head):
            if "last-event-id" not in head.headers:
                wire.send(NOT_HERE)
                return
            times.append(time.monotonic())
            answer = {"jsonrpc": "2.0", "id": script.open_id, "result": {}}
            wire.send(framed("text/event-stream", sse(answer)))

        script = Scripted(on_call, on_get=on_get)
        talk(script, lambda client: client.request("acme/x"))
        assert times[1] - times[0] >= 0.055

    def test_the_wait_before_a_stream_is_taken_up_is_never_shorter_than_told(self):
        """spec 2025-11-25: basic/transports#sending-messages-to-the-server"""
        pace = m.Pace()
        waits = [pace.wait(None, good, 0) for good in (True, False, False, *[False] * 9)]
        assert waits[:4] == [1, 2, 4, 8] and waits[-1] == m.STALL_SECONDS
        assert [pace.wait(60_000, good, 99) for good in (True, False, False)] == [60, 60, 60]
        pace = m.Pace()  # 0 may be meant for once, and not for a server that is in trouble
        assert [pace.wait(0, good, 0) for good in (True, False)] == [0, 2]

    def test_however_often_a_stream_is_opened_again_it_is_once_a_second_in_the_long_run(self):
        """attack 4: `retry: 0`, and an event each time"""
        pace, now, attempts = m.Pace(), 0.0, 0
        while now < 60:
            now += pace.wait(0, True, now)
            attempts += 1
        assert 60 <= attempts <= 60 + m.FREE_RETRIES

    @pytest.mark.parametrize("stream", [b"", b"id: a\ndata:\n\n"], ids=["empty", "an event"])
    def test_a_stream_that_always_ends_at_once_is_not_opened_without_pause(self, stream):
        """attack 4: 29,523 GETs in three seconds"""

        async def on_get(wire, head):
            gets.append(wire)
            wire.send(framed("text/event-stream", b"retry: 0\n\n" + stream))

        async def on_call(wire, head, msg):
            wire.send(http_answer(json.dumps(msg)))

        async def work(client):
            for _ in range(100):
                await client.ping()
            assert 1 <= len(gets) <= 1 + m.FREE_RETRIES

        gets = []
        talk(Scripted(on_call, on_get=on_get), work)

    def test_an_array_holds_the_answer_though_the_revision_has_no_batches(self):
        async def on_call(wire, head, msg):
            answer = {"jsonrpc": "2.0", "id": msg["id"], "result": {"n": 5}}
            if msg["method"] == "acme/json":
                wire.send(framed("application/json", json.dumps([answer]).encode()))
            else:
                wire.send(framed("text/event-stream", sse([answer])))

        async def work(client):
            for method in ("acme/json", "acme/events"):
                assert await client.request(method) == {"n": 5}

        talk(Scripted(on_call), work)

    def test_an_array_without_the_answer_fails_at_once(self):
        async def on_call(wire, head, msg):
            wire.send(framed("application/json", b'[{"jsonrpc":"2.0","id":99,"result":{}}]'))

        async def work(client):
            with pytest.raises(m.ConnectionClosed, match="without a response"):
                await client.request("acme/x")

        talk(Scripted(on_call), work)

    @pytest.mark.parametrize("garbage", [b"data: {\n\n", b"data: [1,\n\n", b"\xff\xfe\n\n"])
    def test_garbage_after_the_answer_does_not_fail_the_call(self, garbage):
        async def on_call(wire, head, msg):
            answer = {"jsonrpc": "2.0", "id": msg["id"], "result": {"n": 5}}
            wire.send(framed("text/event-stream", sse(answer) + garbage))

        async def work(client):
            assert await client.request("acme/x") == {"n": 5}

        talk(Scripted(on_call), work)

    def test_the_wait_that_a_server_asked_for_holds_from_the_second_reconnection_on(self):
        """mutants 10717"""

        async def on_get(wire, head):
            gets.append(time.monotonic())
            if len(gets) == 1:
                wire.send(framed("text/event-stream", b"retry: 30\nid: a\ndata:\n\n"))
            elif len(gets) < 4:
                wire.send(framed("text/event-stream", b"id: a\ndata:\n\n"))
            else:
                wire.send(STREAM)
                await wire.reader.read()

        gets = []
        talk(Scripted(None, on_get=on_get), lambda client: until(lambda: len(gets) == 4))
        waits = [b - a for a, b in zip(gets, gets[1:])]
        assert all(0.025 <= wait < 0.9 for wait in waits), waits  # not the 1 s of our own

    @pytest.mark.parametrize("how", ["text", "function", "async"])
    def test_a_token_is_sent_with_every_request(self, how):
        """newcomer-production 20"""

        async def later():
            return "s3cret"

        given = {"text": "s3cret", "function": lambda: "s3cret", "async": later}[how]

        async def on_call(wire, head, msg):
            wire.send(http_answer(json.dumps(msg)))

        script = Scripted(on_call)
        talk(script, lambda client: client.ping(), token=given)
        assert {headers["authorization"] for _, headers, _ in script.seen} == {"Bearer s3cret"}

    def test_an_id_that_no_header_can_carry_is_not_sent(self):
        assert [m.sendable(text) for text in ("a-1", "", "a\x01b", "a\tb", "\x7f")] == [
            "a-1", None, None, "a\tb", None,
        ]  # fmt: skip

    def test_what_comes_unasked_on_an_idle_connection_is_no_answer(self):
        """RFC 9112 §9.2"""

        told = []

        async def on_call(wire, head, msg):
            answer = {"jsonrpc": "2.0", "id": msg["id"], "result": {"t": "right"}}
            wire.send(framed("application/json", json.dumps(answer).encode()))
            if msg["method"] == "acme/first":
                told.append(asyncio.Event())
                await told[0].wait()
                answer = {"jsonrpc": "2.0", "id": msg["id"] + 1, "result": {"t": "wrong"}}
                wire.send(framed("application/json", json.dumps(answer).encode()))

        async def work(client):
            assert await client.request("acme/first") == {"t": "right"}
            await eventually(lambda: told and client.transport.http.idle)
            told[0].set()
            idle = client.transport.http.idle
            await eventually(lambda: not all(m.is_quiet(reader) for _, (reader, _) in idle))
            assert await client.request("acme/second") == {"t": "right"}

        talk(Scripted(on_call), work)

    def test_a_202_without_an_end_holds_nobody_up(self, monkeypatch):
        monkeypatch.setattr(m, "LINGER_SECONDS", 0.02)

        async def serve(wire):
            while True:
                head, body = await one_request(wire)
                msg = json.loads(body) if body else {"method": head.method}
                if msg["method"] == "initialize":
                    wire.send(greeting(body, SESSION))
                elif msg["method"] == "notifications/initialized":
                    wire.send(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n:\r\n")
                else:
                    wire.send(NOT_HERE)

        async def main():
            async with scripted(serve) as url:
                async with m.Client(url, revision=NEWEST_SESSION, timeout=5) as c:
                    return c.revision

        assert run(main()) == NEWEST_SESSION

    def test_an_expired_session_is_renewed_once_for_all_requests(self):
        """spec 2025-11-25: basic/transports#session-management"""
        opened = []

        def more():
            opened.append(1)
            return f"Mcp-Session-Id: s{len(opened)}\r\n"

        async def on_call(wire, head, msg):
            if head.headers["mcp-session-id"] == "s1":
                wire.send(framed("text/plain", b"gone", "404 Not Found"))
            else:
                wire.send(http_answer(json.dumps(msg), n=msg["params"]["n"]))

        async def work(client):
            jobs = [client.request("acme/x", {"n": number}) for number in range(20)]
            assert [answer["n"] for answer in await asyncio.gather(*jobs)] == list(range(20))
            assert (await client.request("acme/x", {"n": 5}))["n"] == 5

        script = Scripted(on_call, more=more)
        talk(script, work)
        assert len(opened) == 2
        assert script.seen[-1][0] == "DELETE" and script.seen[-1][1]["mcp-session-id"] == "s2"

    def test_requests_wait_while_the_session_is_renewed(self):
        """What was sent without a session would be refused."""
        opened, gate = [], []

        async def on_call(wire, head, msg):
            if head.headers["mcp-session-id"] == "s1":
                wire.send(framed("text/plain", b"gone", "404 Not Found"))
            else:
                wire.send(http_answer(json.dumps(msg)))

        async def serve(wire):
            while True:
                head, body = await one_request(wire)
                msg = json.loads(body) if body else None
                if msg and msg.get("method") == "initialize":
                    opened.append(1)
                    if len(opened) == 2:
                        gate.append(asyncio.get_running_loop().create_future())
                        await gate[0]
                    wire.send(greeting(body, f"Mcp-Session-Id: s{len(opened)}\r\n"))
                elif not msg:
                    wire.send(NOT_HERE)
                elif "id" in msg:
                    await on_call(wire, head, msg)
                else:
                    wire.send(NO_BODY)

        async def work(client):
            first = asyncio.ensure_future(client.request("acme/x"))
            await until(lambda: gate)
            second = asyncio.ensure_future(client.request("acme/x"))
            for _ in range(50):
                await asyncio.sleep(0)
            gate[0].set_result(None)
            assert await first == await second == {}

        talk(serve, work)
        assert len(opened) == 2

    def test_a_session_that_expires_again_at_once_is_an_error(self):
        async def on_call(wire, head, msg):
            wire.send(framed("text/plain", b"gone", "404 Not Found"))

        async def work(client):
            with pytest.raises(m.ConnectionClosed, match="session"):
                await client.request("acme/x")

        script = Scripted(on_call)
        talk(script, work)
        assert script.methods().count("initialize") == 2
        assert script.methods().count("acme/x") == 2

    def test_404_without_a_session_is_just_an_error(self):
        async def on_call(wire, head, msg):
            wire.send(framed("text/plain", b"what?", "404 Not Found"))

        async def work(client):
            with pytest.raises(m.ConnectionClosed, match="404 Not Found: what"):
                await client.request("acme/x")

        script = Scripted(on_call, more="")
        talk(script, work)
        assert script.methods().count("initialize") == 1

    def test_the_standalone_stream_is_kept_alive_and_resumed(self, monkeypatch):
        monkeypatch.setattr(m, "RETRY_MS", 1)
        heard = []

        async def on_get(wire, head):
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            last = head.headers.get("last-event-id")
            gets.append(last)
            if last is None:
                wire.send(STREAM + b"retry: 1\n" + sse(changed, "x-1"))
                wire.writer.close()
            elif len(gets) == 2:
                wire.send(framed("text/plain", b"busy", "503 Service Unavailable"))
            elif len(gets) == 3:
                wire.send(framed("text/plain", b"too old", "400 Bad Request"))
            else:
                wire.send(STREAM + sse(changed, "x-2"))
                await wire.reader.read()

        gets = []

        async def work(client):
            await until(lambda: len(heard) == 2 and len(gets) >= 4)

        def changed():
            heard.append(1)
            if len(heard) == 2:
                gets.append("stop")

        talk(Scripted(None, on_get=on_get), work, on_tools_changed=changed)
        assert gets[:3] == [None, "x-1", "x-1"] and gets[3] is None

    def test_an_abandoned_request_closes_its_connection_and_is_cancelled(self):
        async def on_call(wire, head, msg):
            assert await wire.reader.read() == b""
            closed.append(msg["id"])

        closed = []

        async def work(client):
            with pytest.raises(m.RequestTimeout):
                await client.request("acme/slow", timeout=0.05)
            await until(lambda: closed)
            await until(lambda: "notifications/cancelled" in script.methods())
            [cancelled] = [msg for _, _, msg in script.seen if msg and "cancelled" in msg["method"]]
            assert cancelled["params"]["requestId"] == closed[0]

        script = Scripted(on_call)
        talk(script, work)

    def test_giving_up_one_request_of_a_batch_leaves_the_others(self):
        async def on_call(wire, head, msgs):
            await gate
            answers = [{"jsonrpc": "2.0", "id": msg["id"], "result": {}} for msg in msgs]
            wire.send(framed("application/json", json.dumps(answers).encode()))

        async def main():
            nonlocal gate
            gate = asyncio.get_running_loop().create_future()

            async def serve(wire):
                head, body = await one_request(wire)
                await on_call(wire, head, json.loads(body))

            async with scripted(serve) as url:
                transport = m.HTTPTransport(url)
                failed = []
                transport.failed = lambda req_id, exc: failed.append(req_id)
                await transport.write([m.request(1, "a"), m.request(2, "b")])
                await until(lambda: transport.http.busy)
                transport.abandon(1)
                await asyncio.sleep(0)
                gate.set_result(None)
                [answers] = await transport.read()
                assert [answer["id"] for answer in answers] == [1, 2] and not failed
                await transport.close()

        gate = None
        run(main())

    def test_a_server_that_floods_is_slowed_down(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_INBOX", 10)

        async def flood(wire):
            await one_request(wire)
            wire.send(STREAM)
            while True:
                wire.send(sse({"jsonrpc": "2.0", "method": "acme/x"}) * 100)
                await wire.writer.drain()

        async def main():
            async with scripted(flood) as url:
                transport = m.HTTPTransport(url)
                await transport.write(m.request(1, "a"))
                for _ in range(5):
                    await until(lambda: len(transport.inbox) == 10)
                    for _ in range(20):
                        await asyncio.sleep(0)
                    assert len(await transport.read()) == 10
                await transport.close()

        run(main())

    def test_closing_ends_the_session_also_when_two_close(self):
        async def main():
            app = demo()
            async with app.http(port=0) as server:
                client = m.Client(server.url)
                await client.connect()
                assert len(server.endpoint.sessions) <= 1
                await asyncio.gather(client.close(), client.close())
                await until(lambda: not server.endpoint.sessions)

        run(main())

    def test_closing_does_not_wait_for_a_server_that_is_gone(self, monkeypatch):
        monkeypatch.setattr(m, "GRACE_SECONDS", 0.05)

        async def silent(wire):
            await wire.reader.read()

        async def main():
            async with scripted(silent) as url:
                transport = m.HTTPTransport(url)
                transport.session_id = "s1"
                await transport.close()

        run(main())

    def test_connecting_to_nobody_says_where(self):
        async def main():
            with pytest.raises(m.ConnectionClosed, match="cannot reach http://127.0.0.1:1/mcp"):
                await m.Client("http://127.0.0.1:1/mcp").connect()

        run(main())

    @pytest.mark.parametrize(
        "url", ["http://", "http://user:pw@x/", "http://x/#a", "http://x:99999/"]
    )
    def test_urls_that_cannot_be(self, url):
        with pytest.raises(ValueError):
            m.HTTPTransport(url)

    def test_a_client_and_a_server_that_is_restarted(self):
        """python-sdk#3556"""

        async def main():
            app = demo()
            async with app.http(port=0) as server:
                port = server.listener._server.sockets[0].getsockname()[1]
                client = m.Client(server.url, revision=NEWEST_SESSION)
                await client.connect()
                assert await client.call("echo", {"text": "a"}) == "a"
            async with app.http(port=port) as server:
                assert await client.call("echo", {"text": "b"}) == "b"
                assert len(server.endpoint.sessions) == 1
                await client.close()

        run(main())


class TestAfterARestart:
    """cold-read B2, newcomer-production 2: what a program wanted to hear goes on, or it is told."""

    @staticmethod
    def server():
        app = m.Server("restarted")

        @app.resource("note://a")
        def note() -> str:
            return "a"

        @app.tool
        async def talk(ctx: m.Context) -> str:
            await ctx.log("info", "quiet")
            await ctx.log("error", "loud")
            return "done"

        return app

    @pytest.mark.parametrize("revision", [r for r in m.REVISIONS if r != "2024-11-05"])
    def test_a_client_that_only_listens_hears_on(self, revision, monkeypatch):
        monkeypatch.setattr(m, "RETRY_MS", 1)
        heard, back, app = [], [], self.server()

        async def main():
            server = await app.http(port=0).__aenter__()
            port = m.parse_url(server.url).port
            async with m.Client(
                server.url, revision=revision, on_reconnect=lambda: back.append(1),
                on_tools_changed=lambda: heard.append("tools"),
                log=lambda level, data, logger: heard.append(data),
            ) as c:  # fmt: skip
                updates = await c.subscribe("note://a", lambda params: heard.append(params["uri"]))
                await c.set_log_level("error")
                app.resource_updated("note://a")
                app.tools_changed()
                await until(lambda: sorted(heard) == ["note://a", "tools"])
                await server.__aexit__(None, None, None)
                heard.clear()
                async with app.http(port=port):
                    # Modern: one more subscription, of the callback for tools.
                    await until(lambda: back, seconds=15)
                    app.resource_updated("note://a")
                    app.tools_changed()
                    await until(lambda: sorted(heard) == ["note://a", "tools"])
                    assert await c.call("talk") == "done"
                    await until(lambda: len(heard) == 3)
                    assert heard[2] == "loud" and len(back) == 1
                    await updates.close()

        run(main())

    def test_a_request_that_renews_the_session_brings_back_subscriptions_and_log_level(self):
        opened = []

        def more():
            opened.append(1)
            return f"Mcp-Session-Id: s{len(opened)}\r\n"

        async def on_call(wire, head, msg):
            if head.headers["mcp-session-id"] == "s1" and expired:
                wire.send(framed("text/plain", b"gone", "404 Not Found"))
            else:
                wire.send(http_answer(json.dumps(msg)))

        async def work(client):
            client.server_capabilities = {"resources": {"subscribe": True}, "logging": {}}
            await client.set_log_level("error")
            await client.subscribe("x://a")
            await client.subscribe("x://b", print)
            expired.append(1)
            del script.seen[:]
            await client.request("acme/x")

        expired, back = [], []
        script = Scripted(on_call, more=more)
        talk(script, work, on_reconnect=lambda: back.append(1))
        said = [(msg["method"], {k: v for k, v in msg["params"].items() if k != "_meta"})
                for method, headers, msg in script.seen
                if msg and headers.get("mcp-session-id") == "s2" and "id" in msg]  # fmt: skip
        assert said[0] == ("logging/setLevel", {"level": "error"})
        assert sorted(map(repr, said[1:-1])) == [
            repr(("resources/subscribe", {"uri": uri})) for uri in ("x://a", "x://b")
        ]
        assert said[-1] == ("acme/x", {}) and back == [1]

    def test_a_subscription_that_cannot_be_had_again_ends_and_is_logged(self, caplog):
        opened, seen = [], []

        def more():
            opened.append(1)
            return f"Mcp-Session-Id: s{len(opened)}\r\n"

        async def on_call(wire, head, msg):
            if head.headers["mcp-session-id"] == "s1" and seen:
                wire.send(framed("text/plain", b"gone", "404 Not Found"))
            elif msg["method"] == "resources/subscribe" and seen:
                problem = {"code": -32002, "message": "no such note"}
                answer = {"jsonrpc": "2.0", "id": msg["id"], "error": problem}
                wire.send(framed("application/json", json.dumps(answer).encode()))
            else:
                wire.send(http_answer(json.dumps(msg)))

        async def work(client):
            client.server_capabilities = {"resources": {"subscribe": True}}
            updates = await client.subscribe("x://a")
            seen.append(1)
            await client.request("acme/x")
            assert [update async for update in updates] == [] and client.subscriptions == []

        talk(Scripted(on_call, more=more), work)
        assert "lost the subscription to x://a: no such note" in caplog.text

    def test_a_handshake_that_fails_is_tried_again_by_the_next_request(self):
        opened = []

        async def serve(wire):
            while True:
                head, body = await one_request(wire)
                msg = json.loads(body) if body else {"method": head.method}
                session = head.headers.get("mcp-session-id")
                if msg["method"] == "initialize":
                    opened.append(1)
                    if len(opened) == 2:
                        wire.send(framed("text/plain", b"starting", "503 Service Unavailable"))
                    else:
                        wire.send(greeting(body, f"Mcp-Session-Id: s{len(opened)}\r\n"))
                elif "id" not in msg:
                    wire.send(NO_BODY if head.method == "POST" else NOT_HERE)
                elif session == "s3":
                    wire.send(http_answer(json.dumps(msg)))
                else:
                    wire.send(framed("text/plain", b"gone", "404 Not Found"))

        async def work(client):
            with pytest.raises(m.ConnectionClosed, match="503 Service Unavailable: starting"):
                await client.request("acme/x")
            assert await client.request("acme/x") == {}

        talk(serve, work)
        assert len(opened) == 3

    @pytest.mark.parametrize("revision", [NEWEST_SESSION, "2026-07-28"])
    def test_a_server_that_dies_in_a_call_and_stays_away_is_one_error(self, revision, monkeypatch):
        """newcomer-production 25: run() fails if asyncio complains."""
        monkeypatch.setattr(m, "RETRY_MS", 1)

        async def main():
            app = demo()
            server = await app.http(port=0, grace=0).__aenter__()
            async with m.Client(server.url, revision=revision) as c:
                call = asyncio.ensure_future(c.call("wait", {"gate": "a", "say": True}))
                await until(lambda: app.log)
                await server.__aexit__(None, None, None)
                with pytest.raises(m.MCPError):
                    await call
                with pytest.raises(m.ConnectionClosed):
                    await c.call("echo", {"text": "a"})

        run(main())


###############################################################################
# T33. OAuth rules
###############################################################################


def url_of(text):
    return m.parse_url(text)


class TestChallenges:
    """RFC 9110 §11: a list of schemes, each with its parameters."""

    @pytest.mark.parametrize(
        "text, wanted",
        [
            ("", []),
            ("Bearer", [("bearer", {})]),
            (" , ,Bearer ,", [("bearer", {})]),
            ("BEARER Realm=x", [("bearer", {"realm": "x"})]),
            ('Bearer realm = "a" ,\terror= b', [("bearer", {"realm": "a", "error": "b"})]),
            (r'Bearer realm="a \"b\" \\c"', [("bearer", {"realm": r'a "b" \c'})]),
            ('Bearer realm=""', [("bearer", {"realm": ""})]),
            ("Negotiate YWJj=, Basic", [("negotiate", {"token68": "YWJj="}), ("basic", {})]),
            ('Basic realm="x", Bearer a=b, c=d, DPoP algs="ES256"',
             [("basic", {"realm": "x"}), ("bearer", {"a": "b", "c": "d"}),
              ("dpop", {"algs": "ES256"})]),
            ("Bearer a=b, a=c", [("bearer", {"a": "b"})]),
            ("Newauth Basic, Bearer a=b", [("newauth", {"token68": "Basic"}),
                                           ("bearer", {"a": "b"})]),
            ('Bearer realm="resource_metadata=\\"https://evil.example\\""',
             [("bearer", {"realm": 'resource_metadata="https://evil.example"'})]),
            ("a=b", []),
            ("Bearer a=b c=d", [("bearer", {})]),
            ('Bearer a="b', [("bearer", {})]),
            ("Bearer, é", [("bearer", {})]),
        ],
    )  # fmt: skip
    def test_the_grammar(self, text, wanted):
        assert [tuple(each) for each in m.parse_challenges(text)] == wanted

    def test_any_text_is_read_to_an_end(self):
        dice = rng("challenges")
        for _ in range(2000):
            m.parse_challenges("".join(dice.choices('Bb=, "\\\té', k=dice.randint(0, 20))))

    def test_we_act_on_bearer_else_on_dpop(self):
        assert m.our_challenge("Basic x").scheme == "bearer"
        assert m.our_challenge("DPoP a=1, Basic").params == {"a": "1"}
        assert m.our_challenge("DPoP a=1, Bearer b=2").params == {"b": "2"}

    @pytest.mark.parametrize(
        "status, error, token, possible, steps, wanted",
        [
            (401, "", False, "log in", "", "log in"),
            (401, "invalid_token", False, "log in", "log in", ""),
            (401, "invalid_token", True, "refresh,log in", "", "refresh"),
            (401, "invalid_token", True, "repeat,refresh,log in", "", "repeat"),
            (401, "invalid_token", True, "log in", "", "log in"),
            (401, "invalid_token", True, "refresh,log in", "refresh", "log in"),
            (401, "", True, "refresh,log in", "refresh,log in", ""),
            (401, "use_dpop_nonce", True, "nonce,refresh,log in", "", "nonce"),
            (401, "use_dpop_nonce", True, "nonce,refresh,log in", "nonce", "refresh"),
            (403, "insufficient_scope", True, "step up", "step up", "step up"),
            (403, "insufficient_scope", True, "step up", "step up,step up", ""),
            (403, "", True, "step up,log in,refresh", "", ""),
            (403, "invalid_token", True, "step up,log in", "", ""),
            (403, "insufficient_scope", False, "log in", "", "log in"),
            (200, "", True, "step up,log in", "", ""),
            (500, "insufficient_scope", True, "step up,log in", "", ""),
        ],
    )
    def test_what_a_refusal_leads_to(self, status, error, token, possible, steps, wanted):
        done = [step for step in steps.split(",") if step]
        assert m.next_step(status, error, token, possible.split(","), done) == wanted


class TestAddresses:
    """Rules 1 and 2 of security: https, or this machine; and no private networks."""

    @pytest.mark.parametrize(
        "text", ["https://a.example/x?y", "http://localhost:1/", "http://127.0.0.1", "http://[::1]"]
    )
    def test_what_may_be_used(self, text):
        assert m.oauth_url(text, "x").scheme in text

    @pytest.mark.parametrize(
        "value, why",
        [
            ("http://a.example/", "must begin with https"), ("http://0.0.0.0/", "https"),
            ("http://127.0.0.1.evil.example/", "https"), ("ftp://a.example/", "http"),
            ("javascript:alert(1)", "http"), ("https://a.example/#x", "fragment"),
            ("https://u:p@a.example/", "user"), ("https://a.example/ x", "blanks"),
            ("https://a.example/\n", "blanks"), ("file:///etc/passwd", "http"), ("", "http"),
            (None, "http"), (7, "http"), (["https://a.example"], "http"), ("https://", "http|host"),
        ],
    )  # fmt: skip
    def test_what_may_not_and_the_error_says_which_and_why(self, value, why):
        with pytest.raises(m.AuthError, match=why) as caught:
            m.oauth_url(value, "token_endpoint")
        assert str(caught.value).startswith("token_endpoint is ")

    @pytest.mark.parametrize(
        "address, public",
        [
            ("8.8.8.8", True), ("2606:4700::1", True), ("10.0.0.1", False), ("127.0.0.1", False),
            ("169.254.169.254", False), ("192.168.1.1", False), ("100.64.0.1", False),
            ("0.0.0.0", False), ("224.0.0.1", False), ("::1", False), ("fe80::1%eth0", False),
            ("fd00::1", False), ("::ffff:127.0.0.1", False), ("::ffff:8.8.8.8", True),
            ("64:ff9b::a00:1", False), ("64:ff9b::808:808", True), ("2002:a00:1::", False),
        ],
    )  # fmt: skip
    def test_which_addresses_are_public(self, address, public):
        assert m.is_public(address) is public


class TestResourceMetadata:
    """RFC 9728, and what MCP makes of it."""

    @pytest.mark.parametrize(
        "server, wanted",
        [
            ("https://a.example", [""]),
            ("https://a.example/", [""]),
            ("https://a.example/mcp", ["/mcp", ""]),
            ("https://a.example/a/mcp?x=1", ["/a/mcp?x=1", ""]),
            ("https://a.example/mcp/", ["/mcp/", ""]),
            ("https://a.example?x", ["?x", ""]),
        ],
    )
    def test_the_path_form_then_the_root_form(self, server, wanted):
        root = "https://a.example/.well-known/oauth-protected-resource"
        assert m.resource_metadata_urls(url_of(server)) == [root + rest for rest in wanted]

    @pytest.mark.parametrize(
        "resource, server, covered",
        [
            ("https://a.example/mcp", "https://a.example/mcp", True),
            ("https://a.example/mcp/", "https://a.example/mcp", True),
            ("https://a.example", "https://a.example/mcp", True),
            ("HTTPS://A.example:443/mcp", "https://a.example/mcp", True),
            ("https://a.example/a", "https://a.example/a/mcp", True),
            ("https://a.example/mcp", "https://a.example/mcp?x=1", True),
            ("https://a.example/mcp", "https://a.example/mcp2", False),
            ("https://a.example/mcp", "https://a.example/", False),
            ("https://a.example/MCP", "https://a.example/mcp", False),
            ("https://a.example/mcp?x", "https://a.example/mcp", False),
            ("https://a.example/mcp?x", "https://a.example/mcp?x", True),
            ("http://a.example/mcp", "https://a.example/mcp", False),
            ("https://a.example:444/mcp", "https://a.example/mcp", False),
            ("https://b.a.example/mcp", "https://a.example/mcp", False),
        ],
    )
    def test_a_resource_is_the_url_or_a_parent_of_it(self, resource, server, covered):
        assert m.covers(url_of(resource), url_of(server)) is covered

    def test_it_is_sent_exactly_as_published(self):
        doc = {"resource": "http://localhost:1", "authorization_servers": ["https://as.example", 7],
               "scopes_supported": ["a", "b", "a"], "x": 1}  # fmt: skip
        found = m.read_protected(doc, url_of("http://localhost:1/mcp"), "x")
        assert found == ("http://localhost:1", ["https://as.example"], ["a", "b"], False)
        doc["dpop_bound_access_tokens_required"] = True
        assert m.read_protected(doc, url_of("http://localhost:1/mcp"), "x").dpop

    @pytest.mark.parametrize(
        "change, why",
        [
            ({"resource": "https://evil.example/mcp"}, "not https://a.example/mcp"),
            ({"resource": "http://a.example/mcp"}, "https://"), ({"resource": None}, "resource is"),
            ({"authorization_servers": []}, "names none"),
            ({"authorization_servers": "https://as.example"}, "names none"),
        ],
    )  # fmt: skip
    def test_metadata_of_another_resource_are_not_used(self, change, why):
        doc = {"resource": "https://a.example", "authorization_servers": ["https://as.example"]}
        with pytest.raises(m.AuthError, match=why):
            m.read_protected({**doc, **change}, url_of("https://a.example/mcp"), "https://x")
        for broken in (None, [], "x"):
            with pytest.raises(m.AuthError):
                m.read_protected(broken, url_of("https://a.example/mcp"), "https://x")


class TestServerMetadata:
    """RFC 8414 and OpenID Connect Discovery."""

    def test_without_a_path_there_are_two_forms_and_with_one_three_but_never_the_root(self):
        root = "https://a.example"
        assert m.server_metadata_urls(root) == m.server_metadata_urls(root + "/") == [
            root + "/.well-known/oauth-authorization-server",
            root + "/.well-known/openid-configuration",
        ]  # fmt: skip
        assert m.server_metadata_urls(root + "/t/1/") == [
            root + "/.well-known/oauth-authorization-server/t/1",
            root + "/.well-known/openid-configuration/t/1",
            root + "/t/1/.well-known/openid-configuration",
        ]

    @pytest.mark.parametrize("issuer", ["https://a.example?x", "https://a.example#x", "http://a.b"])
    def test_an_issuer_is_https_without_query_and_fragment(self, issuer):
        with pytest.raises(m.AuthError):
            m.server_metadata_urls(issuer)

    @pytest.mark.parametrize(
        "given, asked, same",
        [
            ("https://a.example", "https://a.example", True),
            ("https://a.example/", "https://a.example", True),
            ("https://a.example", "https://a.example/", True),
            ("https://a.example//", "https://a.example", False),
            ("https://a.example/t", "https://a.example/t", True),
            ("https://a.example/t/", "https://a.example/t", False),
            ("https://A.example", "https://a.example", False),
            ("https://a.example:443", "https://a.example", False),
            (None, "https://a.example", False),
        ],
    )
    def test_an_issuer_is_compared_as_it_is_but_for_one_slash_without_a_path(
        self, given, asked, same
    ):
        assert m.same_issuer(given, asked) is same
        if not same:
            with pytest.raises(m.AuthError, match="issuer is"):
                m.read_server_metadata({"issuer": given}, asked, "x")

    @pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri",
                                      "registration_endpoint"])  # fmt: skip
    def test_every_endpoint_is_https(self, name):
        doc = {"issuer": "https://a.example", name: "http://a.example/x"}
        with pytest.raises(m.AuthError, match=f"{name} is .*https://"):
            m.read_server_metadata(doc, "https://a.example", "x")
        doc[name] = "https://elsewhere.example/x"  # as Google does
        assert m.read_server_metadata(doc, "https://a.example", "x") == doc

    def test_without_any_metadata_the_endpoints_of_the_first_revision_with_authorization(self):
        found = m.default_server(url_of("https://a.example:8/x/mcp"))
        root = "https://a.example:8"
        assert found["authorization_endpoint"] == root + "/authorize"
        assert (found["token_endpoint"], found["registration_endpoint"]) == (
            root + "/token", root + "/register",
        )  # fmt: skip
        m.check_pkce(found, False)

    @pytest.mark.parametrize(
        "methods, assume, fine",
        [
            (["S256"], False, True), (["plain", "S256"], False, True), (None, False, False),
            (None, True, True), ([], True, True), (["plain"], True, False), (["plain"], False, False),
            ("S256", False, False),
        ],
    )  # fmt: skip
    def test_a_server_that_does_not_check_the_proof_is_refused(self, methods, assume, fine):
        server = {"issuer": "https://a.example", "code_challenge_methods_supported": methods}
        if fine:
            m.check_pkce(server, assume)
        else:
            with pytest.raises(m.AuthError, match="assume_pkce=True"):
                m.check_pkce(server, assume)


class TestScopes:
    """spec: basic/authorization/index#scope-selection-strategy, #refresh-tokens"""

    @pytest.mark.parametrize(
        "challenged, published, listed, chosen, before, wanted",
        [
            ("a b", ["c"], [], None, "", "a b"), (None, ["b", "c"], [], None, "", "b c"),
            (None, [], [], None, "", ""), ("b", ["c"], [], None, "a b", "a b"),
            (None, ["c"], [], None, "a", "a"), ("a", ["c"], [], ["x"], "", "x a"),
            (None, ["c"], [], ["x", "y"], "", "x y"), (None, ["c"], [], [], "", ""),
            (None, ["c"], ["offline_access"], None, "", "c offline_access"),
            (None, ["c", "offline_access"], [], None, "", "c"),
            ("a", [], ["offline_access", "z"], None, "", "a offline_access"),
            ("a", [], ["offline_access"], ["a"], "", "a"), ('a" b\\ c', [], [], None, "", "c"),
            ("\x1b[2J é a", [], [], None, "", "a"),
        ],
    )  # fmt: skip
    def test_choice(self, challenged, published, listed, chosen, before, wanted):
        params = {} if challenged is None else {"scope": challenged}
        resource = m.ProtectedResource("r", [], published, False)
        got = m.wanted_scope(
            m.Challenge("bearer", params), resource, {"scopes_supported": listed}, chosen, before
        )
        assert got == wanted

    def test_endless_scopes_are_refused(self):
        for size, fine in ((m.MAX_SCOPE_CHARS, True), (m.MAX_SCOPE_CHARS + 1, False)):
            challenge = m.Challenge("bearer", {"scope": "a" * size})
            resource = m.ProtectedResource("r", [], [], False)
            if fine:
                assert len(m.wanted_scope(challenge, resource, {})) == size
            else:
                with pytest.raises(m.AuthError, match="name some"):
                    m.wanted_scope(challenge, resource, {})


class TestRegistration:
    """RFC 7591, with what MCP demands."""

    def test_a_program_on_this_machine_is_native_and_public(self):
        assert m.registration({}, "me", "http://127.0.0.1:7/callback", "a b") == {
            "client_name": "me",
            "redirect_uris": ["http://127.0.0.1:7/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "scope": "a b",
        }
        doc = m.registration({}, "me", "https://app.example/back", "")
        assert doc["application_type"] == "web" and "scope" not in doc

    @pytest.mark.parametrize(
        "listed, wanted",
        [
            (["client_secret_basic", "none"], "none"),
            (["client_secret_post"], "client_secret_post"),
            (["private_key_jwt", "client_secret_basic"], "client_secret_basic"),
        ],
    )
    def test_the_way_to_authenticate_is_one_that_the_server_lists(self, listed, wanted):
        server = {"token_endpoint_auth_methods_supported": listed}
        doc = m.registration(server, "me", "http://localhost/", "")
        assert doc["token_endpoint_auth_method"] == wanted

    @pytest.mark.parametrize(
        "doc, wanted",
        [
            ({"client_id": "c", "issuer": "https://evil.example"},
             {"client_id": "c", "token_endpoint_auth_method": "none"}),
            ({"client_id": "c", "client_secret": "s", "client_secret_expires_at": 0,
              "token_endpoint_auth_method": "client_secret_post"},
             {"client_id": "c", "client_secret": "s",
              "token_endpoint_auth_method": "client_secret_post"}),
            ({"client_id": "c", "client_secret": "s", "client_secret_expires_at": 9},
             {"client_id": "c", "client_secret": "s", "client_secret_expires_at": 9,
              "token_endpoint_auth_method": "none"}),
        ],
    )  # fmt: skip
    def test_what_is_kept_of_the_answer(self, doc, wanted):
        assert m.read_client(doc, {"token_endpoint_auth_method": "none"}, "x") == wanted

    @pytest.mark.parametrize(
        "doc, why",
        [
            ({}, "client_id is null"), ({"client_id": ""}, "client_id"), ([], "client_id"),
            ({"client_id": 7}, "client_id is 7"),
            ({"client_id": "c", "token_endpoint_auth_method": "client_secret_basic"},
             "without client_secret"),
        ],
    )  # fmt: skip
    def test_an_answer_that_is_not_sufficient_for_use_is_refused(self, doc, why):
        with pytest.raises(m.AuthError, match=why):
            m.read_client(doc, {}, "https://a.example/register")


class TestAuthorizationRequest:
    """What a browser opens, and what it comes back with."""

    def test_the_proof_is_that_of_rfc_7636(self):
        """RFC 7636, appendix B."""
        verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        assert m.code_challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

    def test_a_query_that_is_there_is_kept(self):
        server = {"authorization_endpoint": "https://a.example/auth?tenant=1"}
        url = m.authorization_url(server, {"state": "a&b"}, {"prompt": "consent"})
        assert url == "https://a.example/auth?tenant=1&state=a%26b&prompt=consent"

    @pytest.mark.parametrize(
        "endpoint, extra",
        [("https://a.example/?state=1", {}), ("https://a.example/?x=1&state", {}),
         ("https://a.example/", {"state": "mine"})],
    )  # fmt: skip
    def test_what_is_ours_may_not_be_there_already(self, endpoint, extra):
        with pytest.raises(m.AuthError, match="state is given already"):
            m.authorization_url({"authorization_endpoint": endpoint}, {"state": "s"}, extra)

    @pytest.mark.parametrize(
        "endpoint",
        [
            "javascript:alert(1)", "file:///bin/sh", "http://a.example/", "https://a b/", None,
            "https://a.example/\x1b", "--upload-pack=x",
        ],
    )  # fmt: skip
    def test_only_https_and_loopback_are_opened(self, endpoint):
        """CVE-2025-6514."""
        with pytest.raises(m.AuthError, match="authorization_endpoint is"):
            m.authorization_url({"authorization_endpoint": endpoint}, {}, {})

    def test_no_character_means_anything_to_a_shell(self):
        for nasty in "'\"`$(){}|<>^\\":
            url = m.authorization_url(
                {"authorization_endpoint": f"https://a.example/{nasty}?{nasty}"}, {"a": nasty}, {}
            )
            assert nasty not in url and re.fullmatch(r"https://[\w.%/?=&~:@!*+,;\[\]-]+", url)

    @pytest.mark.parametrize(
        "promised, iss, fine",
        [
            (True, "https://a.example", True), (True, None, False), (None, None, True),
            (False, None, True), (None, "https://a.example", True),
            (True, "https://evil.example", False), (None, "https://evil.example", False),
            (None, "https://a.example/", False), (True, "https://A.example", False),
            (True, "https://a.example:443", False), (None, "", False),
        ],
    )  # fmt: skip
    def test_iss(self, promised, iss, fine):
        server = {"issuer": "https://a.example",
                  "authorization_response_iss_parameter_supported": promised}  # fmt: skip
        params = {"code": "c", **({} if iss is None else {"iss": iss})}
        if fine:
            assert m.code_of(params, server) == "c"
        else:
            with pytest.raises(m.AuthError, match="iss"):
                m.code_of(params, server)

    def test_an_error_of_another_server_is_not_shown(self):
        params = {"error": "secret words", "error_description": "x", "iss": "https://evil.example"}
        with pytest.raises(m.AuthError) as caught:
            m.code_of(params, {"issuer": "https://a.example"})
        assert "secret words" not in str(caught.value)

    def test_an_error_is_shown_on_one_line(self):
        params = {"error": "access_denied", "error_description": "no\x1b[2J\n" + "x" * 1000}
        with pytest.raises(m.AuthError, match="refused: .*access_denied") as caught:
            m.code_of(params, {"issuer": "https://a.example"})
        assert str(caught.value).isprintable() and len(str(caught.value)) < 300
        with pytest.raises(m.AuthError, match="neither a code nor an error"):
            m.code_of({"code": ""}, {"issuer": "https://a.example"})

    def test_a_parameter_that_is_there_twice_is_refused(self):
        for query in ("code=a&code=b", "state=a&code=x&state=a", "&".join(["a=b"] * 30)):
            with pytest.raises(ValueError):
                m.read_query(query)

    @pytest.mark.parametrize("state", [None, "", "abcd", "ab", "é"])
    def test_an_answer_without_the_state_is_no_answer(self, state):
        assert not m.is_answer({} if state is None else {"state": state}, "abc")
        assert m.is_answer({"state": "abc"}, "abc")


class TestTokenRequest:
    """RFC 6749 §5, and how a client says who it is."""

    BASIC = {"authorization": "Basic YSUzQWI6YyslMkY="}  # "a%3Ab:c+%2F"

    @pytest.mark.parametrize(
        "method, listed, secret, wanted",
        [
            ("client_secret_basic", [], True, (BASIC, {})),
            ("client_secret_post", [], True, ({}, {"client_id": "a:b", "client_secret": "c /"})),
            ("none", [], True, ({}, {"client_id": "a:b"})),
            (None, [], True, (BASIC, {})),
            (None, ["client_secret_post"], True,
             ({}, {"client_id": "a:b", "client_secret": "c /"})),
            (None, ["private_key_jwt", "client_secret_basic"], True, (BASIC, {})),
            (None, [], False, ({}, {"client_id": "a:b"})),
            (None, ["client_secret_basic"], False, ({}, {"client_id": "a:b"})),
        ],
    )  # fmt: skip
    def test_one_way_and_never_two(self, method, listed, secret, wanted):
        client = {"client_id": "a:b", "token_endpoint_auth_method": method}
        if secret:
            client["client_secret"] = "c /"
        server = {"token_endpoint_auth_methods_supported": listed}
        assert m.client_credentials(client, server) == wanted

    def test_a_way_that_we_cannot_go(self):
        client = {"client_id": "a", "token_endpoint_auth_method": "tls_client_auth"}
        with pytest.raises(m.AuthError, match="tls_client_auth"):
            m.client_credentials(client, {"issuer": "https://a.example"})

    DOC = {"access_token": "abc-._~+/==", "token_type": "bEaReR"}

    @pytest.mark.parametrize(
        "change, wanted",
        [
            ({}, {}), ({"expires_in": 3600}, {"expires_at": 4600, "refresh_at": 4570}),
            ({"expires_in": "100"}, {"expires_at": 1100, "refresh_at": 1090}),
            ({"expires_in": 0}, {"expires_at": 1000, "refresh_at": 1000}),
            ({"expires_in": -5}, {"expires_at": 1000, "refresh_at": 1000}),
            ({"expires_in": 1e300}, {"expires_at": 1000 + m.LONGEST_LIFE_SECONDS,
                                     "refresh_at": 970 + m.LONGEST_LIFE_SECONDS}),
            ({"expires_in": None}, {}), ({"expires_in": "soon"}, {}), ({"expires_in": True}, {}),
            ({"refresh_token": "r"}, {"refresh_token": "r"}), ({"refresh_token": 7}, {}),
            ({"scope": "a"}, {"scope": "a"}), ({"scope": ""}, {}), ({"id_token": "x"}, {}),
        ],
    )  # fmt: skip
    def test_what_is_kept_of_an_answer(self, change, wanted):
        kept = m.read_token({**self.DOC, **change}, 1000, "a b", False, "x")
        usual = {"access_token": "abc-._~+/==", "token_type": "Bearer", "scope": "a b"}
        assert kept == {**usual, **wanted}

    @pytest.mark.parametrize(
        "change, why",
        [
            ({"access_token": ""}, "header"), ({"access_token": None}, "header"),
            ({"access_token": "a\r\nb: c"}, "header"), ({"access_token": "a b"}, "header"),
            ({"access_token": "é"}, "header"), ({"access_token": "a" * 8193}, "longer"),
            ({"token_type": "mac"}, "token_type"), ({"token_type": None}, "token_type"),
            ({"token_type": "DPoP"}, "token_type"),
        ],
    )  # fmt: skip
    def test_what_is_refused_does_not_show_the_token(self, change, why):
        with pytest.raises(m.AuthError, match=why) as caught:
            m.read_token({**self.DOC, **change}, 0, "", False, "https://a.example/token")
        assert "abc-" not in str(caught.value) and "b: c" not in str(caught.value)

    def test_a_token_of_8_kib_is_the_longest(self):
        doc = {**self.DOC, "access_token": "a" * m.MAX_TOKEN_BYTES}
        assert m.read_token(doc, 0, "", False, "x")["access_token"] == "a" * m.MAX_TOKEN_BYTES

    def test_a_bound_token_needs_a_proof_that_was_sent(self):
        doc = {**self.DOC, "token_type": "dpop"}
        assert m.read_token(doc, 0, "", True, "x")["token_type"] == "DPoP"
        for broken in (None, [], "x"):
            with pytest.raises(m.AuthError):
                m.read_token(broken, 0, "", True, "x")


###############################################################################
# T34. Keys and tokens
###############################################################################

# Keys made for these tests by `openssl genrsa 2048` and `openssl ecparam -name prime256v1`.
RSA_PKCS8 = """
-----BEGIN PRIVATE KEY-----
MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQDERc+s4gc8rAsx
RFOty1l/0/3s8THdIevLUW/2fZobUFWnTDATpxoAardqV9RY9l64Ttg9hKbtDMff
3i3CK/KIgyoFn9Ho6lXMFb9EGLm+O8AgkCgaPcYuuR/UiKF0wRpfESUVuNhtiz00
kZqIT/0lEHrkJcSdShzWbLMtn6sgLI6KT3IZaq9bhmdbuOhjIn3vIPl75m2rifd6
v2u9Asr4dINWTueO9Y3pHkvDZ1vgCkFKAx7g/58bHY/eMTS7Ku2BGUHV5XJrZStm
gU8otfmJr8ekV/Z/2djxLPNXZky2tioikkfusBMlRWHNT28Ww9jN2KRH5U2Ydz94
PhuZxx17AgMBAAECggEACCSZVCPghvzgTf/2tMwt/2atL0pmdjU1Ei9jxMc7QIzZ
sOIxUG9rXb8PswLH1ZULIvxqbkr1nfocxMX0Ag1Ot6kxciBKVi56tsfkMpAQDLtv
4in47/XGJiQaFPhCMpTcYjtU3YzYtdrEBE1SKvuelg4T+ykx+hCcF61U1by9Hc2I
yrHuDJPcDqQZz+BonRviUcS2K694sTFMlo88jQ7H1gl19nba69tdZOp7Nt93TUm4
D0YFg9a+2w8kYdzj8AjpxaFfvFzKEz7P6Aylbx9QtrOo4jFx9ozr+qIGdeI2iPJD
QCU4gwzOU+E2/l8yKoxRF0yfngvV2C48TGRtGOEaOQKBgQDwv3C5YLA2+T7cE4+z
jRcmQBMfh85XCdbP1FHBLPLBvx80fKzkuTCG9qqR3UrXHGrnEtyHpLMwEqRAm1tl
6J8WYtC9jHal8sk1oAmVcbJDA7XHaBQjO/zyUYOxzkzM3FunLkEcEwm2gbKZMhMI
G1uZMZ4Hb3Vc2nB6WzvRMBN/jQKBgQDQtQ2KEYXHhNGHVGFGZNOQZWyTBPsl6nr3
dRvug1IkExRXzTjOg3Qgb5eV/lawMQaCs5zFklRG8VAHhD7Oc+/xPc9/Ih8y59BL
X2m+0idpgVP0kwrZMnSf3PQxQXsAcy6GHftuTdOdEZYXQy+MAgvrSTaqh1RdNEYu
+bpP8GorJwKBgDpLUMNCe0jEb4kgn3ItnsZfS4IeA0OmGUK3uZgaByoM2kR+T+sO
QIbdoY2yVNXjhqsvMQETS2Q/j1ApjicN/b+Q69SJ94zVTg1TFB8AqdZ6RoDjXcTu
WKBgRpA+UPBmBzdjBtcCcR6lJxbbPip/XV2p2wcX4QY7ynKGNuS/TGldAoGAXzS4
YGtt434rNti/JyWHfS9HQCndh4ZXYdsCSuOM7PfnJ8ZuS4abytAdDkdftDApECZv
NZFy8InUQBmLrRImOp4/sXcXVFl7I2b7Dhk/8VkVu1P4duwVV3erzWxZd/MTHgs/
Tyohhl0nYqU7Y1rrpQFY9qGVUo8uFO/GlgDN7bECgYAJn7u4mlYJ+LbkxPObq4iE
SHsfFy1dOgnjjU89k/QTqKKBHqTrRiRWZ9mDRGtUK72tecPqiXlQahoKYnrJw2HN
KTueXg26I1MT59OAUoS05BJCGF+x6R6IqkzZcfCx7zKTOCV0ciZlGDViozPcO5GJ
QHI3IixM3OpZ3rPx4kX9Tw==
-----END PRIVATE KEY-----
"""
RSA_PKCS1 = """
-----BEGIN RSA PRIVATE KEY-----
MIIEogIBAAKCAQEAxEXPrOIHPKwLMURTrctZf9P97PEx3SHry1Fv9n2aG1BVp0ww
E6caAGq3alfUWPZeuE7YPYSm7QzH394twivyiIMqBZ/R6OpVzBW/RBi5vjvAIJAo
Gj3GLrkf1IihdMEaXxElFbjYbYs9NJGaiE/9JRB65CXEnUoc1myzLZ+rICyOik9y
GWqvW4ZnW7joYyJ97yD5e+Ztq4n3er9rvQLK+HSDVk7njvWN6R5Lw2db4ApBSgMe
4P+fGx2P3jE0uyrtgRlB1eVya2UrZoFPKLX5ia/HpFf2f9nY8SzzV2ZMtrYqIpJH
7rATJUVhzU9vFsPYzdikR+VNmHc/eD4bmccdewIDAQABAoIBAAgkmVQj4Ib84E3/
9rTMLf9mrS9KZnY1NRIvY8THO0CM2bDiMVBva12/D7MCx9WVCyL8am5K9Z36HMTF
9AINTrepMXIgSlYuerbH5DKQEAy7b+Ip+O/1xiYkGhT4QjKU3GI7VN2M2LXaxARN
Uir7npYOE/spMfoQnBetVNW8vR3NiMqx7gyT3A6kGc/gaJ0b4lHEtiuveLExTJaP
PI0Ox9YJdfZ22uvbXWTqezbfd01JuA9GBYPWvtsPJGHc4/AI6cWhX7xcyhM+z+gM
pW8fULazqOIxcfaM6/qiBnXiNojyQ0AlOIMMzlPhNv5fMiqMURdMn54L1dguPExk
bRjhGjkCgYEA8L9wuWCwNvk+3BOPs40XJkATH4fOVwnWz9RRwSzywb8fNHys5Lkw
hvaqkd1K1xxq5xLch6SzMBKkQJtbZeifFmLQvYx2pfLJNaAJlXGyQwO1x2gUIzv8
8lGDsc5MzNxbpy5BHBMJtoGymTITCBtbmTGeB291XNpwels70TATf40CgYEA0LUN
ihGFx4TRh1RhRmTTkGVskwT7Jep693Ub7oNSJBMUV804zoN0IG+Xlf5WsDEGgrOc
xZJURvFQB4Q+znPv8T3PfyIfMufQS19pvtInaYFT9JMK2TJ0n9z0MUF7AHMuhh37
bk3TnRGWF0MvjAIL60k2qodUXTRGLvm6T/BqKycCgYA6S1DDQntIxG+JIJ9yLZ7G
X0uCHgNDphlCt7mYGgcqDNpEfk/rDkCG3aGNslTV44arLzEBE0tkP49QKY4nDf2/
kOvUifeM1U4NUxQfAKnWekaA413E7ligYEaQPlDwZgc3YwbXAnEepScW2z4qf11d
qdsHF+EGO8pyhjbkv0xpXQKBgF80uGBrbeN+KzbYvyclh30vR0Ap3YeGV2HbAkrj
jOz35yfGbkuGm8rQHQ5HX7QwKRAmbzWRcvCJ1EAZi60SJjqeP7F3F1RZeyNm+w4Z
P/FZFbtT+HbsFVd3q81sWXfzEx4LP08qIYZdJ2KlO2Na66UBWPahlVKPLhTvxpYA
ze2xAoGACZ+7uJpWCfi25MTzm6uIhEh7HxctXToJ441PPZP0E6iigR6k60YkVmfZ
g0RrVCu9rXnD6ol5UGoaCmJ6ycNhzSk7nl4NuiNTE+fTgFKEtOQSQhhfsekeiKpM
2XHwse8ykzgldHImZRg1YqMz3DuRiUByNyIsTNzqWd6z8eJF/U8=
-----END RSA PRIVATE KEY-----
"""
RSA_PUBLIC = """
-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAxEXPrOIHPKwLMURTrctZ
f9P97PEx3SHry1Fv9n2aG1BVp0wwE6caAGq3alfUWPZeuE7YPYSm7QzH394twivy
iIMqBZ/R6OpVzBW/RBi5vjvAIJAoGj3GLrkf1IihdMEaXxElFbjYbYs9NJGaiE/9
JRB65CXEnUoc1myzLZ+rICyOik9yGWqvW4ZnW7joYyJ97yD5e+Ztq4n3er9rvQLK
+HSDVk7njvWN6R5Lw2db4ApBSgMe4P+fGx2P3jE0uyrtgRlB1eVya2UrZoFPKLX5
ia/HpFf2f9nY8SzzV2ZMtrYqIpJH7rATJUVhzU9vFsPYzdikR+VNmHc/eD4bmccd
ewIDAQAB
-----END PUBLIC KEY-----
"""
EC_PKCS8 = """
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgsEFUcMDdqrsX68cp
q71qhnNyKmatg2+WcQqyygtD3QuhRANCAARlHhiXJZ+wDY2z+SJjr2w3huLrXVm+
xUJnPXwWE/M8vgMyrPpU23QxTVGkDr5zqgQaadtBBsmAY5rDP0lU0SOX
-----END PRIVATE KEY-----
"""
EC_SEC1 = """
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEILBBVHDA3aq7F+vHKau9aoZzcipmrYNvlnEKssoLQ90LoAoGCCqGSM49
AwEHoUQDQgAEZR4YlyWfsA2Ns/kiY69sN4bi611ZvsVCZz18FhPzPL4DMqz6VNt0
MU1RpA6+c6oEGmnbQQbJgGOawz9JVNEjlw==
-----END EC PRIVATE KEY-----
"""
EC_PUBLIC = """
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZR4YlyWfsA2Ns/kiY69sN4bi611Z
vsVCZz18FhPzPL4DMqz6VNt0MU1RpA6+c6oEGmnbQQbJgGOawz9JVNEjlw==
-----END PUBLIC KEY-----
"""
#: What `openssl dgst -sign` makes of b"data" with the RSA key, in base64.
SIGNED = {
    "RS256": (
        "wNp0roypEaNHB4hV0fw37IJAsHbRtk7jwvJ5IlGb9alkknRcgrdqhUgt5RRzc5tvvOHcBzrjBT+cbf7/bdtk54vr"
        "mVcHTLng+L6yVZUAp7rL1vWT6Mpsnq6hWiIyKMVWjUB1Ut2XuZ3ZEOxznOXTH2Ea8RqucNOgoGlBQySTlTOq6WIP"
        "TI2MscJhFTcJ78ie3oZGhkfjWIvSq7Zz43gBUDNNj/cIxtgiTt620B6xkjStn/LCaPdLPNsWVEdUV9r0psgllGtI"
        "dEsE8FBrj3JMm1xVRtiph+1/qMxVy5wM53FRMX8FeL+Msk/byHENyBfQgcZsmOUpE64h+QJqAZ1H/A=="
    ),
    "RS384": (
        "nylssI5LUhmdPZYkbhGz74RFqH9DkR16ERD9e0hRx5wWz/5qNYePRCU2CnuxQJpb1tW+DMwlX7bfYVm1JmFAXvVh"
        "NiUiFTWrnID3CYYOjJAaxqqWQO9/Tg2NwI36m8VEycNSrQlqKJHoww/+haF4qp6D5Nf09AZzISBX2RSLXUTifuHu"
        "ShHyZ/ropAlyE/QC267LwgFUkCffpoBumESCk7FM18Wu0fhsOdihornanSEW8IFb5EP3wsytBbSrmyYNY7I9kZIe"
        "T7J+v0RExoiK4jUAdWTY5EDHnCPnoK86ZLp5PwUb2bW1cdoqxdU7/C93G4cfJvD2Ux37kQzlLmLKwg=="
    ),
    "RS512": (
        "dxZfuPTmogQfcM3t95eo9ZmoENp5njDdiuxJZ4I3yM94Xcm4Tt5hc7/d9wVSKVla7rgVQS5YxILrEE9KIuWwn8rR"
        "4tfRYs7mChHucoAD8Yq7jPy3/14odR4Fr2Kj1TFvYOD0O3+YA2RApbKyRaP/1EqwexaScPxE2DQLejp9nTGSY9JO"
        "jTYaiJ6Re3Jof87egvQ/eiP5VxUEdtHt1rKMDWwKW/5q9rt1tLlZR7vLSjhLgFb1CuE4zRxGdvPNrY+9Xj5gll2G"
        "sLO+9OGa2crFOVWFEwJYNAKGOY9fbLpLkiz5iQF5gCMmfbeFmXKfEKbWypxvm2+q5MbNFlUW/sEK3w=="
    ),
    "PS256": (
        "IuSwD1A17vjh9s+91ZFBPL+N5aFRKv9412Yrkj/gh3bzlqJF37IJzbh3/DCjmhwWppo/OQNWwsj96xWiYEY37Atj"
        "+YqsSlbwCCigKgqbLggDWAj7bZ61cBwKViX2h/d3C5YTcbDBD6eWDNcesL8mUOBiUAIbCpSTSFiclpvH21sTjYfY"
        "o6LCInSmDpLiKikB+PseBK/t1u6fumMPjZKjSX4u0MHrnRyrsWWrMLPIVnRmriYx3kBur854rjnwotR8QW/J1XXU"
        "NbbehQHyy7EQaHLODItaNUrUp2yEs36S9lYevXPfPink8zQaZ7MT9297VSU+GZ/ch2TRznuHwih3wA=="
    ),
    "PS384": (
        "Mg+FysVi+DzNVmBrpJ7SxJY+G0P+OIHDOSfGlnjueFiYggFpZeQmNcvzvLL3MK6Jme8m74S+jteE0BjNJTWPpi1z"
        "GONVzDX2UwsF8p9cTmN5InzcikpvTmE+7Ez47hcKAMYCTrEsvTqoWGPeBYZZ8ebN7DGxCjNfWqIkBz/9qBVnDwv0"
        "XmEV9cEC0ELbQ4GGgVQz9AyZhhV6kMABuImq441WiRM7+O8PaJKUUIb8+9RTukH0EMZTM0/T1T5NBAVxQvCWgClx"
        "512qZNL07pYCf7pjGsODPYkXW9mbVn5WYzMoeMxOY23wmEvYmpzO8SDarLt80X4AvLO6XXA/Xuxvgg=="
    ),
    "PS512": (
        "pCXrOxjg4wkD/FN8At3Y7doTtAoVqsRInhGyN1oGsbU82EfSX/Uk/pbFmWLrNGroWysZFtY55AhOC9iaI/Xusf4E"
        "iUN2fivEf1mcH7Q+JfvDIKAYrRDYxrrRNxIOV2sWqCswscGpAvft0mmwQR3gKyIs40i+EZFtxjm/JAS7+06cBidt"
        "VmOFoAAg1bMMxgzWEtNj4GS33vK2ev9pZeXfdSe7SQzHvK7/AgHdkvBtDUF6fv/9LFXOaPzItXKqPOk0vOdOCDMN"
        "6qJvJKPxNZC9p/eF7mGKeCOGkSrSnNS/8mBYy5OIQf3M6nJMTc3nx8AOmJP3u4CjS7CHNh2qbILY4Q=="
    ),
    "PS256 with a short salt": (
        "MGu1GuZr7rPmJE5wK7gNCGTGG9hbIMPukHQhltf770K6uv7yELv7V7MRIPIgbllApzWZuhKdjbLGVTdhoddF/iL6"
        "CYtj3OCSmx1yZ6RYtERXAywrgieNic2RMAsAnrC3UsKttwiWIcGpJ9pOvUf4FF1y+PG6EdKq7ds49MiEfPBSSGrl"
        "W9eifSnhPPwZXspIkyQOmwgHgMkuNQAaabi6Nx7YbuDroymtRmBmE0IjaWnnCsR+pd+sjSc4qB/s1aHc4GvKRouh"
        "vxfRs0bAAjn3FrzZGX1d6PbaSB9ARg/gevvmBvS2gLR094sfCJy55/PiyElcJ95ozABYJI9nOFQeDg=="
    ),
}


def part(value):
    """One part of a JWT."""
    return m.base64url(value if isinstance(value, bytes) else json.dumps(value).encode())


class TestSigning:
    """RFC 6979, 7515, 7518, 8017."""

    @pytest.mark.parametrize(
        "message, r, s",
        [
            ("sample", "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
             "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"),
            ("test", "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367",
             "019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083"),
        ],
    )  # fmt: skip
    def test_ecdsa_is_that_of_rfc_6979(self, message, r, s):
        """RFC 6979 §A.2.5."""
        key = m.ec_key(0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721)
        assert (key.x >> 240, key.y >> 240) == (0x60FE, 0x7903)
        signature = key.sign(message.encode())
        assert signature == bytes.fromhex(r + s)
        assert key.verify("ES256", message.encode(), signature)
        assert not key.verify("ES256", b"other", signature)

    @pytest.mark.parametrize("number", [1, 2, 3, m.N - 1, m.N - 2, 2**255, 12345])
    def test_a_key_is_a_point_of_the_curve_and_its_signatures_are_right(self, number):
        key = m.ec_key(number)
        assert m.read_jwk(m.jwk_of(key)) == key[:2] + (0,)
        assert key.verify("ES256", b"data", key.sign(b"data"))

    @pytest.mark.parametrize("number", [0, m.N, -1])
    def test_a_private_number_out_of_range_is_no_key(self, number):
        with pytest.raises(m.AuthError, match="out of range"):
            m.ec_key(number)

    def test_any_flipped_bit_makes_a_signature_wrong(self):
        key, dice = m.ec_key(99), rng("bits")
        signature = key.sign(b"data")
        for _ in range(10):
            broken = bytearray(signature)
            broken[dice.randrange(64)] ^= 1 << dice.randrange(8)
            assert not key.verify("ES256", b"data", bytes(broken))
        zero, n = bytes(32), m.N.to_bytes(32, "big")
        for broken in (zero + signature[32:], signature[:32] + zero, n + signature[32:],
                       signature[:32] + n, signature[:63], signature + b"\0", b""):  # fmt: skip
            assert not key.verify("ES256", b"data", broken)
        for alg in ("ES384", "RS256", "none", "HS256"):
            assert not key.verify(alg, b"data", signature)

    @pytest.mark.parametrize("alg", [alg for alg in SIGNED if " " not in alg])
    def test_rsa_agrees_with_openssl(self, alg):
        key, signature = m.read_pem(RSA_PUBLIC), base64.b64decode(SIGNED[alg])
        assert key.verify(alg, b"data", signature)
        assert not key.verify(alg, b"datb", signature)
        for other in {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "HS256", "none"} - {alg}:
            assert not key.verify(other, b"data", signature)
        broken = bytearray(signature)
        broken[100] ^= 1
        for wrong in (bytes(broken), signature[1:], b"\0" + signature, b"", b"\xff" * 256):
            assert not key.verify(alg, b"data", wrong)

    def test_rsa_signs_as_openssl_does(self):
        assert m.read_pem(RSA_PKCS8).sign(b"data") == base64.b64decode(SIGNED["RS256"])

    def test_a_salt_of_another_length_is_refused(self):
        """RFC 7518 §3.5: as long as the hash."""
        signature = base64.b64decode(SIGNED["PS256 with a short salt"])
        assert not m.read_pem(RSA_PUBLIC).verify("PS256", b"data", signature)

    def test_only_the_one_right_padding_passes(self):
        """What a lenient parser takes: a short padding, with rubbish behind the hash."""
        key = m.read_pem(RSA_PKCS8)
        right = m._pkcs1(b"data", "256", 256)
        info = right[-51:]
        for wrong in (
            b"\0\1" + b"\xff" * 8 + b"\0" + info + bytes(256 - 11 - 51),
            b"\0\2" + right[2:], b"\0\1" + b"\xfe" + right[3:],
        ):  # fmt: skip
            assert len(wrong) == 256
            signature = pow(int.from_bytes(wrong, "big"), key.d, key.n).to_bytes(256, "big")
            assert not key.verify("RS256", b"data", signature)
        signature = pow(int.from_bytes(right, "big"), key.d, key.n).to_bytes(256, "big")
        assert key.verify("RS256", b"data", signature)

    def test_a_key_whose_parts_do_not_fit_signs_nothing(self):
        key = m.read_pem(RSA_PKCS8)
        with pytest.raises(m.AuthError, match="does not fit"):
            key._replace(d=key.d + 2).sign(b"data")


class TestKeys:
    """JWK and PEM."""

    def test_all_forms_of_a_key_are_the_same_key(self):
        rsa, ec = m.read_pem(RSA_PKCS8), m.read_pem(EC_PKCS8)
        assert rsa == m.read_pem(RSA_PKCS1) and rsa[:2] == m.read_pem(RSA_PUBLIC)[:2]
        assert ec == m.read_pem(EC_SEC1) and ec[:2] == m.read_pem(EC_PUBLIC)[:2]
        assert m.read_jwk(m.jwk_of(rsa)) == m.read_pem(RSA_PUBLIC)
        assert m.read_jwk(m.jwk_of(ec)) == m.read_pem(EC_PUBLIC)
        assert "d" not in m.jwk_of(rsa) and "d" not in m.jwk_of(ec)

    def test_a_private_key_does_not_show_itself(self):
        for key in (m.read_pem(RSA_PKCS8), m.read_pem(EC_PKCS8)):
            for text in (repr(key), str(key), f"{key}", repr([key])):
                assert str(key.d) not in text and "private" in text

    @pytest.mark.parametrize(
        "text",
        [
            "", "hunter2", RSA_PKCS8[:-60], RSA_PKCS8.replace("MII", "!!!", 1),
            "-----BEGIN PRIVATE KEY-----\nMDA=\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----",
            EC_PKCS8.replace("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE").replace(
                "END PRIVATE", "END ENCRYPTED PRIVATE"),
            EC_PKCS8.replace("PRIVATE", "RSA PRIVATE"), RSA_PKCS8.replace("PRIVATE", "EC PRIVATE"),
        ],
    )  # fmt: skip
    def test_what_is_no_key_is_refused_without_being_shown(self, text):
        with pytest.raises(m.AuthError) as caught:
            m.read_pem(text)
        assert "hunter2" not in str(caught.value) and len(str(caught.value)) < 120

    def test_any_cut_of_a_key_is_refused(self):
        whole = base64.b64decode("".join(EC_PKCS8.strip().split("\n")[1:-1]))
        for size in range(len(whole)):
            body = base64.b64encode(whole[:size]).decode()
            with pytest.raises(m.AuthError):
                m.read_pem(f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----")

    @pytest.mark.parametrize("bits, fine", [(2047, False), (2048, True), (8192, True), (8193, False)])
    def test_an_rsa_key_is_neither_weak_nor_costly(self, bits, fine):
        n = 2 ** (bits - 1) + 1
        if fine:
            assert m.rsa_key(n, 65537).n == n
        else:
            with pytest.raises(m.AuthError, match=str(bits)):
                m.rsa_key(n, 65537)

    @pytest.mark.parametrize("e", [1, 2, 4, 65536, 2**32 + 1, 0])
    def test_an_exponent_that_nobody_should_use(self, e):
        with pytest.raises(m.AuthError, match="do not fit"):
            m.rsa_key(2**2047 + 1, e)

    def test_a_point_beside_the_curve_is_no_key(self):
        """RFC 8725 §3.4."""
        jwk = m.jwk_of(m.ec_key(5))
        for change in ({"y": jwk["x"]}, {"x": m.base64url(bytes(32))}, {"crv": "P-521"},
                       {"crv": None}, {"x": "!"}, {"x": None}, {"kty": "oct"},
                       {"x": m.base64url((m.P + 5).to_bytes(33, "big"))}):  # fmt: skip
            with pytest.raises(m.AuthError):
                m.read_jwk({**jwk, **change})


class TestTokens:
    """RFC 7519 by the rules of RFC 8725."""

    RSA_JWK = {
        "kty": "RSA",
        "e": "AQAB",
        "n": (
            "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEz"
            "P1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf6"
            "3kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5Zw"
            "Kh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRW"
            "yuXpoQ"
        ),
    }
    PAYLOAD = (
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0"
        "cnVlfQ"
    )
    RS256 = (
        f"eyJhbGciOiJSUzI1NiJ9.{PAYLOAD}."
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W"
        "2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkS"
        "jtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnv"
        "Wh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
    )
    EC_JWK = {
        "kty": "EC",
        "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    }
    ES256 = (
        f"eyJhbGciOiJFUzI1NiJ9.{PAYLOAD}."
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    )

    @pytest.mark.parametrize("token, jwk", [(RS256, RSA_JWK), (ES256, EC_JWK)])
    def test_the_examples_of_rfc_7515(self, token, jwk):
        """RFC 7515 §A.2, §A.3."""
        jwt = m.read_jwt(token)
        assert jwt.claims["iss"] == "joe"
        assert m.keys_for(jwt, [self.RSA_JWK, self.EC_JWK], m.ALGORITHMS) == [m.read_jwk(jwk)]
        m.check_signature(jwt, m.keys_for(jwt, [jwk], m.ALGORITHMS))
        other = jwt._replace(signed=jwt.signed + b"x")
        with pytest.raises(m.AuthError, match="signature"):
            m.check_signature(other, m.keys_for(other, [jwk], m.ALGORITHMS))

    @pytest.mark.parametrize(
        "token",
        [
            "", "a", "a.b", "a.b.c.d", "e30.e30", "e30.e30.=", "e30=.e30.", "e31.e30.",
            part([]) + ".e30.", "e30." + part("x") + ".", part(b"\xff") + ".e30.",
            part(b'{"alg":"ES256","alg":"none"}') + ".e30.", part(b'{"a":NaN}') + ".e30.",
            "e30." + part(b"[" * 1000) + ".", "e30.e30.a", "e30 .e30.", "e30.e30.\n",
            "e30.e30." + "A" * m.MAX_TOKEN_BYTES,
        ],
    )  # fmt: skip
    def test_a_form_that_is_not_a_jwt(self, token):
        with pytest.raises(m.AuthError):
            m.read_jwt(token)

    def test_a_token_of_8_kib_is_the_longest(self):
        token = m.make_jwt({}, {"x": ""}, m.ec_key(5))
        for more, fine in ((0, True), (4, False)):
            grown = token + "A" * ((m.MAX_TOKEN_BYTES - len(token)) // 4 * 4 + more)
            if fine:
                assert m.read_jwt(grown)
            else:
                with pytest.raises(m.AuthError, match="8192"):
                    m.read_jwt(grown)

    @pytest.mark.parametrize(
        "header, why",
        [
            ({"alg": "none"}, "alg is"), ({"alg": "HS256"}, "alg is"), ({"alg": "es256"}, "alg is"),
            ({"alg": None}, "alg is"), ({}, "alg is"), ({"alg": ["ES256"]}, "alg is"),
            ({"alg": "ES256", "crit": ["b64"]}, "crit"), ({"alg": "RS512"}, "alg is"),
            ({"alg": "ES256", "typ": "dpop+jwt"}, "typ is"), ({"alg": "ES256", "typ": 7}, "typ is"),
            ({"alg": "ES256", "typ": "logout+jwt"}, "typ is"),
        ],
    )  # fmt: skip
    def test_a_header_does_not_choose_what_we_did_not_offer(self, header, why):
        with pytest.raises(m.AuthError, match=why):
            m.keys_for(m.JWT(header, {}, b"", b""), [self.EC_JWK], m.ALGORITHMS)

    @pytest.mark.parametrize("typ", [None, "JWT", "jwt", "at+jwt", "application/at+jwt", "AT+JWT"])
    def test_the_kinds_of_an_access_token(self, typ):
        header = {"alg": "ES256", **({"typ": typ} if typ else {})}
        assert m.keys_for(m.JWT(header, {}, b"", b""), [self.EC_JWK], m.ALGORITHMS)

    @pytest.mark.parametrize(
        "alg, jwk, fits",
        [
            ("ES256", {}, True), ("ES256", {"use": "sig"}, True), ("ES256", {"use": "enc"}, False),
            ("ES256", {"key_ops": ["verify"]}, True), ("ES256", {"key_ops": ["sign"]}, False),
            ("ES256", {"key_ops": "verify"}, False), ("ES256", {"alg": "ES256"}, True),
            ("ES256", {"alg": "ES384"}, False), ("RS256", {}, False), ("PS256", {}, False),
            ("ES256", {"crv": "P-384"}, False), ("ES256", {"y": "AA"}, False),
        ],
    )  # fmt: skip
    def test_a_key_must_fit_the_algorithm(self, alg, jwk, fits):
        jwt = m.JWT({"alg": alg}, {}, b"", b"")
        found = m.keys_for(jwt, [{**self.EC_JWK, **jwk}, None, "x", {}], m.ALGORITHMS)
        assert bool(found) is fits

    def test_the_key_id_chooses_and_without_one_ten_are_tried(self):
        keys = [{**m.jwk_of(m.ec_key(i)), "kid": str(i)} for i in range(1, 13)]
        jwt = m.JWT({"alg": "ES256", "kid": "7"}, {}, b"", b"")
        assert [key.x for key in m.keys_for(jwt, keys, m.ALGORITHMS)] == [m.ec_key(7).x]
        assert not m.keys_for(m.JWT({"alg": "ES256", "kid": "x"}, {}, b"", b""), keys, m.ALGORITHMS)
        jwt = m.JWT({"alg": "ES256"}, {}, b"", b"")
        assert len(m.keys_for(jwt, keys, m.ALGORITHMS)) == m.MAX_KEYS_TRIED

    def test_a_key_that_a_token_brings_is_not_looked_at(self):
        evil = m.ec_key(666)
        header = {"jwk": m.jwk_of(evil), "jku": "https://evil.example", "x5u": "https://evil.example"}
        jwt = m.read_jwt(m.make_jwt(header, {"iss": "joe"}, evil))
        with pytest.raises(m.AuthError, match="signature"):
            m.check_signature(jwt, m.keys_for(jwt, [self.EC_JWK], m.ALGORITHMS))

    CLAIMS = {"iss": "https://as.example", "aud": "https://a.example/mcp", "exp": 2000}

    @pytest.mark.parametrize(
        "change, why",
        [
            ({}, ""), ({"aud": ["x", "https://a.example/mcp"]}, ""), ({"nbf": 1530}, ""),
            ({"iat": 1530.0}, ""), ({"exp": 1471}, ""), ({"exp": 1470}, "expired"),
            ({"exp": None}, "exp is null"), ({"exp": "2000"}, "exp is"), ({"exp": True}, "exp is"),
            ({"exp": 1e400}, "exp is"), ({"exp": float("nan")}, "exp is"),
            ({"nbf": 1531}, "nbf is in the future"), ({"iat": 1531}, "iat is in the future"),
            ({"nbf": "x"}, "nbf is"), ({"iss": "https://as.example/"}, "iss is"),
            ({"iss": None}, "iss is"), ({"iss": ["https://as.example"]}, "iss is"),
            ({"aud": "https://a.example/mcp/"}, "aud is"), ({"aud": None}, "aud is"),
            ({"aud": []}, "aud is"), ({"aud": "https://a.example"}, "aud is"),
            ({"aud": [["https://a.example/mcp"]]}, "aud is"), ({"aud": {}}, "aud is"),
        ],
    )  # fmt: skip
    def test_claims(self, change, why):
        args = ({**self.CLAIMS, **change}, "https://as.example", ["https://a.example/mcp"], 1500)
        if not why:
            m.check_claims(*args)
        else:
            with pytest.raises(m.AuthError, match=why):
                m.check_claims(*args)

    def test_a_token_that_never_expires_is_refused(self):
        with pytest.raises(m.AuthError, match="exp is missing"):
            m.check_claims({"iss": "i", "aud": "a"}, "i", ["a"], 0)

    @pytest.mark.parametrize("pem", [RSA_PKCS8, EC_PKCS8], ids=["RSA", "EC"])
    def test_an_assertion_proves_who_a_client_is(self, pem):
        key = m.read_pem(pem)
        jwt = m.read_jwt(m.client_assertion(key, "me", "https://as.example", 1000.5, "j1", "k1"))
        assert jwt.header["kid"] == "k1" and jwt.header["alg"] in ("RS256", "ES256")
        assert jwt.claims == {
            "iss": "me", "sub": "me", "aud": "https://as.example", "jti": "j1", "iat": 1000,
            "exp": 1060,
        }  # fmt: skip
        m.check_signature(jwt, [key])

    def test_a_proof_of_possession(self):
        """RFC 9449 §4.2."""
        key = m.ec_key(77)
        jwt = m.read_jwt(m.dpop_proof(key, "POST", "https://a.example/mcp?x#y", 9.9, "j", "tok", "n"))
        assert jwt.header == {"alg": "ES256", "typ": "dpop+jwt", "jwk": m.jwk_of(key)}
        assert jwt.claims == {
            "jti": "j", "htm": "POST", "htu": "https://a.example/mcp", "iat": 9, "nonce": "n",
            "ath": m.code_challenge("tok"),
        }  # fmt: skip
        m.check_signature(jwt, [key])
        bare = m.read_jwt(m.dpop_proof(key, "GET", "https://a.example/", 9, "j"))
        assert set(bare.claims) == {"jti", "htm", "htu", "iat"}


###############################################################################
# T38. The command line
###############################################################################

CLI_SERVER = f"""
import asyncio, sys
sys.path.insert(0, {str(HERE)!r})
from typing import List, Literal, Optional
from mcp_lite import Context, Image, Message, Server, ToolError

app = Server("shop", version="2.1", instructions="Ask \\x1b[31mnicely\\x1b[0m.")

@app.tool
def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b

@app.tool
def describe(tags: List[str], size: Literal["s", "l"] = "s", note: Optional[str] = None) -> str:
    return f"{{tags}} {{size}} {{note}}"

@app.tool
async def copy(ctx: Context, password: str = "") -> str:
    for done in range(1, 21):
        await ctx.report_progress(done, 20, "copying")
    await ctx.warning("disk \\x1b[2Jis full")
    return "done"

@app.tool
def fail() -> str:
    raise ToolError("out of \\x1b]0;x\\x07stock")

@app.tool
async def wait(ctx: Context) -> str:
    await ctx.report_progress(1, None, "waiting")
    await asyncio.sleep(3600)

@app.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("How many?", int)
    return f"{{answer.action}} {{answer.data!r}}"

@app.tool
async def think(ctx: Context) -> str:
    return (await ctx.sample("why?"))["content"]["text"]

@app.tool
async def think_twice(ctx: Context) -> str:
    await ctx.sample(Message(["look:", Image(b"four")]))
    return "done"

@app.tool
async def locate(ctx: Context) -> str:
    return str(await ctx.roots())

@app.tool
async def visit(ctx: Context) -> str:
    return (await ctx.elicit_url("Please pay", "https://example.com/pay")).action

@app.resource("shop://sign")
def sign() -> str:
    return "open"

@app.resource("shop://logo", mime_type="image/png")
def logo() -> bytes:
    return b"\\x89PNG\\r\\n"

@app.resource("shop://item/{{id}}")
def item(id: str) -> str:
    return f"item {{id}}"

@app.prompt
def offer(item: str, tone: Literal["loud", "low"] = "low") -> str:
    return f"Praise {{item}}, {{tone}}"

if __name__ == "__main__":
    app.run()
"""

# A server that answers initialize well, and everything else with what it is given.
CLI_LIAR = """
import json, sys
for line in sys.stdin:
    msg = json.loads(line)
    if "id" in msg:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                 "serverInfo": {"name": "liar", "version": "0"}}
        result = hello if msg["method"] == "initialize" else json.loads(sys.argv[1])
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": result}), flush=True)
"""


# A server of something else, which answers everything with an error.
CLI_REFUSER = """
import json, sys
for line in sys.stdin:
    msg = json.loads(line)
    if "id" in msg:
        error = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "error": error}), flush=True)
"""


@pytest.fixture
def shop(tmp_path):
    """Give the path of a server."""
    path = tmp_path / "shop.py"
    path.write_text(CLI_SERVER)
    return str(path)


@pytest.fixture(params=["stdio", "http"])
def wire(request, shop):
    """Give a target that reaches the shop over each wire."""
    if request.param == "stdio":
        yield shop
        return
    served = m.load_app(shop).start_in_thread("http", port=0)
    yield served.url
    served.stop()


@pytest.fixture
def cli(capsys):
    """Give a function that runs a command line and returns (status, stdout, stderr)."""

    def call(*argv):
        before = (open_descriptors(), child_processes(), lasting_threads())
        status = m.main(argv)
        check_nothing_left(before)
        return (status, *capsys.readouterr())

    return call


def shell(*argv, **options):
    """Run a command line in a process of its own."""
    command = [sys.executable, m.__file__, *argv]
    return subprocess.run(
        command, timeout=30, stdin=subprocess.DEVNULL, capture_output=True, **options
    )


class TestTextForTerminals:
    """What a server says can only be shown."""

    @pytest.mark.parametrize(
        "hostile, harmless",
        [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[2J\x1b[1;1Hgone", "gone"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]52;c;never ended", "]52;c;never ended"),
            ("\x1bP1$r\x1b\\dcs", "dcs"),
            ("\x9b31mred", "red"),
            ("\x1bcreset", "reset"),
            ("a\rb\x08\x7f\x00c", "abc"),
            ("safe\u202egpj.exe", "safegpj.exe"),
            ("tab\tand\nnewline stay, as do ä and 漢", "tab\tand\nnewline stay, as do ä and 漢"),
        ],
    )
    def test_control_sequences_are_taken_out(self, hostile, harmless):
        assert m.plain(hostile) == harmless

    def test_no_control_character_survives_whatever_the_mixture(self):
        dice = rng("controls")
        for _ in range(2000):
            text = "".join(
                dice.choices("\x1b\x9b\x9d\x07\\[]P;0m\x00\r\u202e a", k=dice.randint(0, 30))
            )
            shown = m.plain(text)
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
            assert m.plain(shown) == shown

    @pytest.mark.parametrize(
        "schema, words",
        [
            ({}, "any"),
            (True, "any"),
            ({"type": "string"}, "string"),
            ({"type": ["integer", "null"]}, "integer | null"),
            ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer | null"),
            ({"const": "x"}, '"x"'),
            ({"enum": list(range(12))}, "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | ..."),
            ({"type": "array"}, "[any]"),
            ({"$ref": "#/$defs/Tree"}, "Tree"),
            (
                {"properties": {"x": {"type": "number"}, "y": {"default": "a"}}, "required": ["x"]},
                '{x: number, y: any = "a"}',
            ),
        ],
    )
    def test_schema_is_shown_as_a_type(self, schema, words):
        assert m.type_words(schema) == words

    def test_schema_that_contains_itself_many_times_ends(self):
        schema = {"type": "object", "properties": {}}
        schema["properties"]["again"] = schema
        assert len(m.type_words(schema)) < 100


class TestTrace:
    """The view of the wire."""

    def view(self, *messages, stream=None):
        stream = stream or io.StringIO()
        show = m.TraceView(stream)
        for message in messages:
            show(*message)
        return re.sub(r"\d+\.\d+(?= ms|  )", "N", stream.getvalue())

    def test_conversation_reads_like_this(self):
        call = {"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 7}}
        step = {"progressToken": 7, "progress": 1}
        content = [
            {
                "type": "text",
                "text": "a sentence that is so long that it takes a line of its own alone",
            }
        ]
        shown = self.view(
            (">", "x", {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}),
            ("<", "x", {"jsonrpc": "2.0", "method": "notifications/progress", "params": step}),
            ("<", "x", {"jsonrpc": "2.0", "id": 7, "result": {"content": content}}),
            ("<", "y", {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "\x1b[0mno"}}),
            ("<", "x", m.ProtocolError("not JSON")),
            (">", "x", [{"id": 1, "method": "ping"}, {"id": 2, "method": "ping"}]),
        )
        assert shown.splitlines() == [
            "   N  --> tools/call add #7",
            '          {"jsonrpc": "2.0", "id": 7, "method": "tools/call",',
            '           "params": {"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 7}}}',
            "   N  <-- notifications/progress",
            '          {"jsonrpc": "2.0", "method": "notifications/progress",',
            '           "params": {"progressToken": 7, "progress": 1}}',
            "   N  <-- result of tools/call add #7, N ms",
            '          {"jsonrpc": "2.0", "id": 7,',
            '           "result": {',
            '             "content": [',
            '               {"type": "text",',
            '                "text": "a sentence that is so long that it takes a line of its own alone"}]}}',
            "   N  <-- error for an unknown request, N ms  (y)",
            '          {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "\\u001b[0mno"}}',
            "   N  <-- not a message: not JSON",
            "   N  --> batch: ping #1, ping #2",
            '          [{"id": 1, "method": "ping"}, {"id": 2, "method": "ping"}]',
        ]

    @pytest.mark.parametrize(
        "secret",
        [
            {"authorization": "hunter2"},
            {"Authorization": ["hunter2"]},
            {"arguments": {"password": "hunter2"}},
            {"db_password": {"value": "hunter2"}},
            {"properties": {"password": "hunter2"}},
            {"apiKey": "hunter2", "x-api-key": "hunter2", "API_KEY": "hunter2"},
            {"access_token": "hunter2", "token": "hunter2", "client_secret": "hunter2"},
            {"text": '{"password": "hunter2", "user": "me"}'},
            {"url": "https://x/?token=hunter2&y=1", "header": "Authorization: Bearer hunter2"},
            {"command": ["login", "--password=hunter2"]},
            {"pwd": "hunter2", "auth": "hunter2", "jwt": "hunter2", "db_auth": "hunter2"},
            {"accessKey": "hunter2", "tokens": ["hunter2"], "text": "access_key=hunter2"},
            {"proxy": "https://user:hunter2@host/", "text": "at http://hunter2@host:80"},
            {"text": "password: hun&ter2 hunter", "query": "pwd=a;hunter2"},
        ],
    )
    def test_secrets_are_redacted(self, secret):
        shown = self.view((">", "x", {"method": "tools/call", "params": secret}))
        assert "hunter2" not in shown and "ter2" not in shown
        assert "[redacted]" in shown

    @pytest.mark.parametrize(
        "harmless",
        [
            {"_meta": {"progressToken": 7}},
            {"maxTokens": 100},
            {"inputSchema": {"properties": {"password": {"type": "string"}}}},
            {"nextCursor": "abc", "text": "the secretary passed a token gesture"},
            {"author": "me", "authored": "by me", "text": "see https://host/a@b, 5 tokens"},
            {"usage": {"input_tokens_count": 5}, "uri": "https://host:80/path"},
        ],
    )
    def test_what_is_no_secret_is_shown(self, harmless):
        assert m.redact(harmless) == harmless

    def test_long_values_are_shortened_at_the_limit(self):
        limit = m.SHOWN_CHARS
        assert m.redact("x" * limit) == "x" * limit
        assert m.redact("x" * (limit + 1)) == "x" * limit + "... (1 more characters)"
        full = list(range(m.SHOWN_MEMBERS))
        assert m.redact(full) == full
        assert m.redact([*full, 99]) == [*full, "... 1 more"]
        assert (
            list(m.redact({str(n): n for n in range(99)}))[-1] == f"... {99 - m.SHOWN_MEMBERS} more"
        )

    def test_a_description_is_cut_at_the_limit(self):
        """To wrap one word of 8 MB took 26 s."""
        limit = m.SHOWN_ABOUT_CHARS
        for size, more in ((limit, ""), (limit + 1, "..."), (8_000_000, "...")):
            shown = m.table([{"name": "a", "description": "x" * size}]).split("\n", 1)[1]
            assert "".join(shown.split()) == "x" * limit + more

    def test_layout_is_still_the_same_json_and_keeps_to_its_width(self):
        dice = rng("layout")

        def value(depth):
            kind = dice.randint(0, 6 if depth else 3)
            if kind > 4:
                return {f"key{n}": value(depth - 1) for n in range(dice.randint(0, 5))}
            if kind == 4:
                return [value(depth - 1) for _ in range(dice.randint(0, 5))]
            return [None, True, -1.5e3, 'quoted "text"\n'][kind]

        for _ in range(300):
            given = value(5)
            text = m.layout(given, 0, 60)
            assert json.loads(text) == given
            # But for the brackets that close what is around it, a line is never longer.
            assert max(len(line.rstrip("]},")) for line in text.splitlines()) <= 60

    def test_deep_nesting_is_laid_out_in_no_time(self):
        value = "x" * 50
        for _ in range(m.MAX_DEPTH):
            value = {"some name": value}
        assert json.loads(m.layout(value)) == value

    def test_colours_are_for_terminals_unless_no_color_is_set(self, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        message = (">", "x", {"id": 1, "method": "ping"})
        coloured = self.view(message, stream=Terminal())
        assert '\x1b[36m"id": \x1b[0m\x1b[33m1\x1b[0m' in coloured
        assert m.plain(coloured).splitlines()[1:] == self.view(message).splitlines()[1:]
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in self.view(message, stream=Terminal())

    def test_stream_that_is_closed_does_not_hurt_the_conversation(self):
        stream = io.StringIO()
        show = m.TraceView(stream)
        stream.close()
        show(">", "x", {"method": "ping"})

    def test_requests_that_are_never_answered_are_not_kept_for_ever(self):
        show = m.TraceView(io.StringIO())
        for number in range(m.MAX_IN_FLIGHT + 10):
            show(">", "x", {"id": number, "method": "ping"})
        assert len(show.asked) == m.MAX_IN_FLIGHT

    @pytest.mark.parametrize(
        "era, steps",
        [
            (
                "2025-11-25",
                ["initialize", "initialize", "notifications/initialized", "ping", "ping"],
            ),
            ("2026-07-28", 4 * ["server/discover"]),
        ],
    )
    def test_any_program_is_traced_to_a_file_by_the_environment(self, tmp_path, shop, era, steps):
        path = tmp_path / "trace"
        script = f"import sys; sys.path.insert(0, {str(HERE)!r}); import mcp_lite; mcp_lite.main(['ping', '--revision', {era!r}, {shop!r}])"
        env = {**os.environ, "MCP_LITE_TRACE": str(path), "PYTHONWARNINGS": "error"}
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, timeout=30, capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert re.findall("(?:-->|<--) (?:result of )?([a-z/]+)", path.read_text()) == steps


class TestValuesFromWords:
    """KEY=VALUE means what the schema says."""

    @pytest.mark.parametrize(
        "text, schema, value",
        [
            ("1", {"type": "integer"}, 1),
            ("1", {"type": "string"}, "1"),
            ("1", {"type": ["integer", "string"]}, "1"),
            ("1.5", {"type": "number"}, 1.5),
            ("x", {"type": "integer"}, "x"),
            ("true", {"type": "boolean"}, True),
            ("True", {"type": "boolean"}, True),
            ("yes", {"type": "boolean"}, True),
            ("off", {"type": "boolean"}, False),
            ("null", {"type": ["integer", "null"]}, None),
            ("3", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 3),
            ("a, b", {"type": "array", "items": {"type": "string"}}, ["a", "b"]),
            ("1,2", {"type": "array", "items": {"type": "integer"}}, [1, 2]),
            ('["a,b"]', {"type": "array", "items": {"type": "string"}}, ["a,b"]),
            ('{"x": 1}', {"type": "object"}, {"x": 1}),
            ("1", {"enum": [1, 2]}, 1),
            ("a", {"enum": ["a", "b"]}, "a"),
            ("1", {}, 1),
            ("word", None, "word"),
        ],
    )
    def test_text_becomes_the_value_that_the_schema_wants(self, text, schema, value):
        converted = m.convert(text, schema)
        assert (converted, type(converted)) == (value, type(value))

    @pytest.mark.parametrize(
        "words, problem",
        [
            (["a"], "'a' is not KEY=VALUE"),
            (["amount=1", "size=2"], "no argument of USAGE 'size'; there is: amount"),
            (["amont=1"], "did you mean amount?"),
            ([], "amount: is required"),
            (["amount=x"], "amount: expected integer"),
        ],
    )
    def test_what_breaks_the_schema_is_a_usage_error_that_says_how(self, words, problem):
        schema = {"properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
        with pytest.raises(m.UsageError) as caught:
            m.read_arguments(words, schema, "USAGE")
        assert problem in str(caught.value)
        assert "USAGE" in str(caught.value)

    def test_schema_that_cannot_be_used_leaves_the_judgement_to_the_server(self):
        schema = {"properties": {"a": {"$ref": "https://elsewhere/schema"}}}
        assert m.read_arguments(["a=1"], schema, "") == {"a": 1}


class TestVerbs:
    """Each verb, against a server in a process of its own."""

    def test_tools_are_signatures(self, cli, shop):
        status, out, err = cli("tools", shop)
        assert (status, err) == (0, "")
        assert "add(a: integer, b: integer = 0) -> integer\n    Add two numbers.\n" in out

    def test_info_shows_all_that_is_offered(self, cli, shop):
        status, out, err = cli("info", shop)
        assert out.startswith("shop 2.1, revision 2026-07-28 (modern)\n")
        assert "\nAsk nicely.\n" in out
        for part in (
            "\nTOOLS\n",
            "\nRESOURCES\n",
            "\nTEMPLATES\nshop://item/{id}",
            "\nPROMPTS\noffer(item, tone?)",
        ):
            assert part in out

    def test_json_is_the_result_as_it_was_sent(self, cli, shop):
        status, out, err = cli("info", "--json", shop)
        assert json.loads(out)["instructions"] == "Ask \x1b[31mnicely\x1b[0m."
        assert (json.loads(out)["revision"], json.loads(out)["era"]) == ("2026-07-28", "modern")
        assert "\x1b" not in out
        status, out, err = cli("call", "--json", "add", "a=2", shop)
        assert json.loads(out)["structuredContent"] == {"result": 2}
        assert err == ""

    def test_call_converts_checks_and_prints(self, cli, shop):
        status, out, err = cli("call", "add", "a=1", "b=2", shop)
        assert (status, out) == (0, "3\n")
        assert err.startswith("shop offers add, describe, copy")
        status, out, err = cli("call", "describe", "tags=x,y", "note=1", shop)
        assert out == "['x', 'y'] s 1\n"

    def test_call_takes_all_arguments_as_json(self, cli, shop):
        assert cli("call", "add", "--json", '{"a": 5, "b": 6}', shop)[:2] == (0, "11\n")
        assert cli("call", "add", "--arguments", '{"a": 5}', shop)[:2] == (0, "5\n")

    def test_words_and_json_are_merged_and_nothing_is_given_twice(self, cli, shop):
        assert cli("call", "add", "b=6", "--json", '{"a": 5}', shop)[:2] == (0, "11\n")
        for words in (["a=1", "--json", '{"a": 5}'], ["a=1", "a=2"]):
            status, out, err = cli("call", "add", *words, shop)
            assert (status, out) == (2, "")
            assert "error: 'a' is given twice; several values are a=1,2 or --json" in err

    @pytest.mark.parametrize(
        "text, problem",
        [
            ("{bad", "not JSON"), ('{"a": NaN}', "not JSON: NaN is not a finite number"),
            ('{"a": ' + "[" * 10_000, "nested deeper than 128 levels"),
        ],
        ids=["broken", "NaN", "deep"],
    )  # fmt: skip
    def test_json_that_is_none_is_a_wrong_command_line(self, cli, shop, text, problem):
        status, out, err = cli("call", "add", "--json", text, shop)
        assert (status, out) == (2, "")
        assert problem in err and "Traceback" not in err

    def test_a_json_argument_must_be_an_object(self, cli, shop):
        status, out, err = cli("call", "add", "--arguments", "[1]", shop)
        assert status == 2 and "it must be an object: {...}" in err

    @pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "[" * 10_000])
    def test_a_value_that_the_wire_cannot_carry_breaks_the_schema(self, cli, shop, value):
        status, out, err = cli("call", "add", f"a={value}", shop)
        assert (status, out) == (2, "")
        assert "a: expected integer, got string" in err

    def test_completion_as_json_is_the_result_as_it_was_sent(self, cli, shop):
        status, out, err = cli("complete", "offer", "tone=l", "item=tea", "--json", shop)
        assert json.loads(out)["completion"]["values"] == ["loud", "low"]

    def test_text_in_a_pipe_is_as_it_was_sent(self, tmp_path):
        path = tmp_path / "odd.py"
        path.write_text(
            "from mcp_lite import Server\napp = Server('odd')\n\n@app.tool\n"
            "def odd() -> str:\n    return 'a\\x85b\\u200e\\x1b[31mc'\n\napp.run()\n"
        )
        env = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONIOENCODING": "utf-8"}
        said = shell("call", "odd", str(path), "--env", f"PYTHONPATH={HERE}", env=env)
        assert said.stdout.decode() == "a\x85b\u200e\x1b[31mc\n"

    def test_progress_and_log_lines_go_to_stderr(self, cli, shop):
        status, out, err = cli("call", "copy", shop)
        assert out == "done\n"
        progress = [line for line in err.splitlines() if line.startswith("progress: ")]
        assert progress[0] == "progress: 1/20 copying"
        assert progress[-1] == "progress: 20/20 copying"
        assert 2 <= len(progress) <= 12
        assert "warning: disk is full\n" in err

    def test_tool_that_fails_is_status_1(self, cli, shop):
        status, out, err = cli("call", "fail", shop)
        assert (status, out) == (1, "")
        assert err.endswith("error: out of stock\n")
        status, out, err = cli("call", "fail", "--json", shop)
        assert status == 1
        assert json.loads(out)["isError"] is True

    def test_resources_prompts_and_completion(self, cli, shop):
        assert cli("resources", shop)[1].startswith("shop://sign")
        assert cli("templates", shop)[1].startswith("shop://item/{id}")
        assert cli("read", "shop://item/7", shop)[1] == "item 7\n"
        assert cli("prompts", shop)[1] == "offer(item, tone?)\n"
        assert cli("prompt", "offer", "item=tea", shop)[1] == "user: Praise tea, low\n"
        assert cli("complete", "offer", "tone=l", "item=tea", shop)[1] == "loud\nlow\n"
        assert re.fullmatch(r"an answer took \d+\.\d ms\n", cli("ping", shop)[1])

    def test_binary_resource_goes_into_a_pipe_as_it_is(self, shop):
        assert shell("read", "shop://logo", shop).stdout == b"\x89PNG\r\n"

    def test_server_that_asks_nobody_is_declined(self, cli, shop, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO("42\n"))
        status, out, err = cli("call", "ask", shop)
        assert (status, out) == (0, "decline None\n")
        assert "The server asks: How many?" in err

    @pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
    def test_tool_whose_question_is_refused_has_failed_in_either_era(self, cli, shop, era):
        status, out, err = cli("call", "think", "--revision", era, shop)
        assert (status, out) == (1, "")
        assert err.splitlines()[-1] == "error: User rejected sampling request (-1)"
        status, out, err = cli("call", "think", "--json", "--revision", era, shop)
        assert status == 1 and json.loads(out)["isError"] is True
        status, out, err = cli("call", "locate", "--revision", era, shop)  # without --root
        assert (status, out) == (1, "")
        assert "did not declare the capability 'roots'" in err.splitlines()[-1]

    @pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals here")
    @pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
    def test_person_at_a_terminal_is_asked(self, shop, era):
        ours, theirs = os.openpty()

        def answer(tool, typed):
            os.write(ours, typed)
            command = [sys.executable, "-m", "mcp_lite", "call", tool, "--revision", era, shop]
            return subprocess.run(
                command, cwd=HERE, stdin=theirs, timeout=30, capture_output=True, text=True
            )

        try:
            done = answer("ask", b"many\n42\n")  # the first is no integer: asked again
            assert (done.returncode, done.stdout) == (0, "accept 42\n")
            assert done.stderr.count("value: integer > ") == 2
            assert "expected integer, got string" in done.stderr
            done = answer("think", b"because\n")
            assert done.stdout == "because\n"
            assert "user: why?\n" in done.stderr
            done = answer("think_twice", b"because\n")
            assert "user: look:\nuser: [image image/png, 4 bytes]\n" in done.stderr
            for typed, action in ((b"yes\n", "accept"), (b"no\n", "decline"), (b"\4", "decline")):
                done = answer("visit", typed)
                assert done.stdout == f"{action}\n"
                assert "https://example.com/pay" in done.stderr
        finally:
            os.close(ours)
            os.close(theirs)

    @pytest.mark.parametrize(
        "era, opening", [("2025-11-25", "initialize"), ("2026-07-28", "server/discover")]
    )
    def test_trace_shows_every_message_and_keeps_stdout_clean(self, cli, wire, era, opening):
        secret = ["--header", "X-Pass: hunter2"] if "://" in wire else []
        argv = ("call", "copy", "password=hunter2", "--trace", "--revision", era, *secret, wire)
        status, out, err = cli(*argv)
        assert out == "done\n"
        assert "hunter2" not in err
        steps = re.findall(r"(-->|<--) (?:result of )?(\w+/\w+|initialize)", err)
        assert steps[:2] == [("-->", opening), ("<--", opening)]
        assert ("-->", "tools/call") in steps
        assert ("<--", "notifications/progress") in steps
        assert steps[-1] == ("<--", "tools/call")
        assert m._trace is None

    def test_options_reach_the_server_and_the_protocol(self, cli, tmp_path):
        script = tmp_path / "where.py"
        script.write_text(
            f"import os, sys; sys.path.insert(0, {str(HERE)!r}); import mcp_lite\n"
            "app = mcp_lite.Server()\n"
            "@app.tool\n"
            "async def where(ctx: mcp_lite.Context) -> str:\n"
            "    roots = [root['name'] for root in await ctx.roots()]\n"
            "    return f'{os.getcwd()} {os.environ.get(\"COLOUR\")} {ctx.revision} {roots}'\n"
            "app.run()\n"
        )
        folder = os.path.realpath(tmp_path)
        status, out, err = cli(
            "call", "where", "--cwd", folder, "--env", "COLOUR=red", "--revision", "2025-03-26",
            "--root", folder, str(script),
        )  # fmt: skip
        assert out == f"{folder} red 2025-03-26 ['{os.path.basename(folder)}']\n"

    def test_log_level_is_asked_for(self, cli, shop):
        assert "disk" not in cli("call", "copy", "--log", "error", shop)[2]


class TestWires:
    """Whatever the revision, and however the server is reached, a person sees the same."""

    # A process for each verb takes its time, and does not look at the revision: three of five.
    @pytest.mark.parametrize(
        "wire, era",
        [("http", era) for era in m.REVISIONS]
        + [("stdio", era) for era in ("2024-11-05", "2025-11-25", "2026-07-28")],
        indirect=["wire"],
    )
    def test_every_verb_does_the_same(self, cli, wire, era):
        def say(*argv):
            return cli(*argv, "--revision", era, wire)

        word = "modern" if m.REVISIONS[era].modern else "legacy"
        assert say("info")[1].startswith(f"shop 2.1, revision {era} ({word})\n")
        assert "add(a: integer, b: integer = 0)" in say("tools")[1]
        assert say("call", "add", "a=1", "b=2")[:2] == (0, "3\n")
        status, out, err = say("call", "copy")
        assert (status, out) == (0, "done\n")
        assert "progress: 20/20" in err and "warning: disk is full\n" in err
        status, out, err = say("call", "fail")
        assert (status, out, err.splitlines()[-1]) == (1, "", "error: out of stock")
        assert say("resources")[1].startswith("shop://sign")
        assert say("templates")[1] == "shop://item/{id}\n"
        assert say("read", "shop://item/7")[1] == "item 7\n"
        assert say("prompts")[1] == "offer(item, tone?)\n"
        assert say("prompt", "offer", "item=tea")[1] == "user: Praise tea, low\n"
        assert say("complete", "offer", "tone=l", "item=tea")[1] == "loud\nlow\n"
        assert re.fullmatch(r"an answer took \d+\.\d ms\n", say("ping")[1])
        if era >= "2025-06-18":
            assert say("call", "ask")[1] == "decline None\n"
        assert "did you mean add?" in say("call", "ad")[2]


class TestTargets:
    """What a command line may be about."""

    def test_target_stands_last_or_first_or_after_two_dashes(self, cli, shop):
        for argv in (
            ("call", "add", "a=1", shop),
            ("call", shop, "add", "a=1"),
            ("call", "add", "a=1", "--", sys.executable, shop),
            ("call", "add", "a=1", f"{shop}:app"),
        ):
            assert cli(*argv)[:2] == (0, "1\n"), argv

    def test_url_that_nothing_can_reach_is_refused_clearly(self, cli):
        status, out, err = cli("tools", "gopher://localhost:1/mcp")
        assert status == 2
        assert "cannot connect to 'gopher://localhost:1/mcp'" in err

    @pytest.mark.parametrize(
        "argv, problem",
        [
            ([], "usage: mcp_lite VERB"),
            (["tols", "x.py"], "did you mean tools?"),
            (["tools"], "as in: mcp_lite tools"),
            (["read", "x.py"], "as in: mcp_lite read URI TARGET"),
            (["call", "SHOP"], "as in: mcp_lite call NAME [KEY=VALUE ...] TARGET"),
            (["complete", "offer", "SHOP"], "as in: mcp_lite complete"),
            (["call", "ad", "SHOP"], "no tool 'ad'; did you mean add?"),
            (["call", "add", "c=1", "SHOP"], "no argument of add(a: integer"),
            (["call", "add", "SHOP"], "a: is required"),
            (["prompt", "ofer", "SHOP"], "did you mean offer?"),
            (["prompt", "offer", "SHOP"], "item: is required"),
            (["tools", "--revision", "2024-01-01", "SHOP"], "2025-11-25"),
            (["tools", "--bogus", "SHOP"], "--bogus"),
            (["serve", "nothing.py"], "no such Python file"),
            (["serve", "--", "SHOP"], "as in: mcp_lite serve"),
            (["serve", "--http", "here", "SHOP"], "it takes PORT, or HOST:PORT"),
            (["tools", "http://127.0.0.1:port/mcp"], "port"),
        ],
    )
    def test_wrong_command_line_is_status_2_and_says_what_is_right(self, cli, shop, argv, problem):
        status, out, err = cli(*[shop if word == "SHOP" else word for word in argv])
        assert (status, out) == (2, "")
        assert problem in err

    @pytest.mark.parametrize(
        "argv, problem",
        [
            (["tools", "--", sys.executable, "-c", "raise SystemExit(7)"], "exited with status 7"),
            (["tools", "--", "no-such-program-anywhere"], "no-such-program-anywhere"),
            (["tools", "--cwd", "no-such-folder", "--", sys.executable], "no-such-folder"),
            (
                ["ping", "--timeout", "0.2", "--revision", "2025-11-25", "--",
                 sys.executable, "-c", "import sys; sys.stdin.read()"],
                "did not answer",
            ),
            (["tools", "--", sys.executable, "-c", "print('usage: x')"], '"usage: x"'),
            (["tools", "--", sys.executable, "-c", CLI_REFUSER], "did not take our handshake"),
            (["tools", "--revision", "2026-07-28", "--", sys.executable, "-c", CLI_LIAR, "{}"],
             "does not speak revision 2026-07-28"),
            (["prompts", "--", sys.executable, "-c", CLI_LIAR, "{}"], "'prompts'"),
            (["tools", "http://127.0.0.1:1/mcp"], "cannot reach http://127.0.0.1:1/mcp"),
            (["read", "shop://none", "SHOP"], "Resource not found"),
        ],
    )
    def test_connection_and_protocol_failures_are_status_3(self, cli, shop, argv, problem):
        status, out, err = cli(*[shop if word == "SHOP" else word for word in argv])
        assert (status, out) == (3, "")
        assert problem in err.splitlines()[-1]

    @pytest.mark.parametrize(
        "lie",
        [
            {"tools": [{}]},
            {"tools": [None]},
            {"tools": [{"name": 7, "inputSchema": {}}]},
            {"tools": [{"name": "x", "inputSchema": 5}]},
            {"tools": [{"name": "x", "inputSchema": {"properties": [1], "required": 5}}]},
            {"tools": [{"name": "x", "inputSchema": {"type": {}}, "outputSchema": "y"}]},
        ],
    )
    def test_answer_that_makes_no_sense_never_ends_in_a_traceback(self, cli, tmp_path, lie):
        path = tmp_path / "liar.py"
        path.write_text(CLI_LIAR)
        status, out, err = cli("tools", "--", sys.executable, str(path), json.dumps(lie))
        assert status in (0, 3)
        assert "Traceback" not in err

    def test_version_and_help_are_status_0(self, cli):
        assert cli("--version") == (0, f"mcp_lite {m.__version__}\n", "")
        status, out, err = cli("--help")
        assert status == 0
        assert all(f"\n  {verb}" in out for verb in m.VERBS)


class TestServe:
    """`serve FILE.py[:APP]`"""

    def test_server_on_a_port_asks_for_its_token_and_ends_on_a_signal(self, cli, shop):
        command = [sys.executable, m.__file__, "serve", shop, "--http", "0", "--token", "opensesame"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        with server:
            url = re.fullmatch(r"shop serves (http://127\.0\.0\.1:\d+/mcp)\n", server.stderr.readline())[1]
            status, out, err = cli("call", "add", "a=1", url)
            assert (status, out) == (3, "")
            assert "401" in err and "bearer token" in err
            for right in (["--token", "opensesame"], ["--header", "authorization: Bearer opensesame"]):
                assert cli("call", "add", "a=1", *right, url)[:2] == (0, "1\n")
            server.terminate()
            assert server.wait(20) == 0

    def test_port_that_is_taken_is_status_3(self, shop):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = shell("serve", shop, "--http", f"localhost:{taken.getsockname()[1]}")
        assert done.returncode == 3
        assert done.stderr.decode().startswith("error: cannot serve on localhost:")

    def test_served_file_shares_this_very_module(self, cli, tmp_path):
        path = tmp_path / "plain_app.py"
        path.write_text(
            "import mcp_lite\nthing = mcp_lite.Server('of the file')\n@thing.tool\ndef f() -> int: return 1\n"
        )
        argv = ("call", "f", "--", sys.executable, m.__file__, "serve", str(path))
        assert cli(*argv)[:2] == (0, "1\n")

    def test_functions_of_a_plain_module_become_tools(self, cli, tmp_path):
        path = tmp_path / "sums.py"
        path.write_text(
            '"""Sums."""\nfrom os.path import join\n'
            "def double(n: int) -> int:\n    return 2 * n\n"
            "def _hidden(n: int) -> int: ...\ndef unannotated(n): ...\nclass Thing: ...\n"
        )
        serve = ("--", sys.executable, m.__file__, "serve", str(path))
        assert cli("tools", *serve)[1] == "double(n: integer) -> integer\n"
        assert cli("call", "double", "n=4", *serve)[1] == "8\n"
        assert "\nSums.\n" in cli("info", *serve)[1]

    def test_one_of_several_servers_is_chosen_by_name(self, cli, tmp_path):
        path = tmp_path / "two.py"
        path.write_text(
            "import mcp_lite\na = mcp_lite.Server('A')\nb = mcp_lite.Server('B')\nc = b\n"
        )
        assert cli("info", f"{path}:b")[1].startswith("B ")
        done = shell("serve", str(path))
        assert done.returncode == 2
        assert f"There is: {path}:a, {path}:b, {path}:c" in done.stderr.decode()
        assert shell("serve", f"{path}:d").returncode == 2

    def test_file_with_nothing_to_serve_says_so(self, tmp_path):
        path = tmp_path / "empty.py"
        path.write_text("x = 1\n")
        done = shell("serve", str(path))
        assert done.returncode == 2
        assert b"neither a Server nor public functions" in done.stderr

    def test_file_that_fails_shows_its_own_traceback(self, tmp_path):
        path = tmp_path / "broken.py"
        path.write_text("import nothing_of_this_name\n")
        done = shell("serve", str(path))
        assert done.returncode == 1
        assert b"No module named 'nothing_of_this_name'" in done.stderr

    def test_copy_of_this_file_beside_the_program_serves_too(self, cli, tmp_path):
        (tmp_path / "vendored_mcp_lite.py").write_text(
            pathlib.Path(m.__file__).read_text("utf-8"), "utf-8"
        )
        path = tmp_path / "vendored.py"
        path.write_text("import vendored_mcp_lite as v\napp = v.Server('vendored')\n")
        assert cli("info", f"{path}:app")[1].startswith("vendored ")


@pytest.mark.skipif(os.name == "nt", reason="signals and pipes of POSIX")
class TestEnds:
    """However it ends, quietly."""

    def test_interrupt_is_status_130_without_a_traceback(self, shop):
        process = subprocess.Popen(
            [sys.executable, m.__file__, "call", "wait", shop],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        with process:
            while b"waiting" not in process.stderr.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (130, b"", b"")

    @pytest.mark.skipif(os.name == "nt", reason="Windows has neither signals nor groups")
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_a_signal_ends_the_server_too_that_ignores_the_end_of_its_input(self, tmp_path, number):
        """The server is a child in a group of its own, which the terminal does not know."""
        path = tmp_path / "deaf.py"
        path.write_text(
            f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
            "import asyncio, os, signal, sys, threading, mcp_lite\n"
            "app = mcp_lite.Server('deaf')\n\n@app.tool\nasync def wait() -> str:\n"
            "    print('waiting', os.getpid(), file=sys.stderr, flush=True)\n"
            "    await asyncio.sleep(60)\n    return 'never'\n\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "threading.Thread(target=app.run, daemon=True).start()\n"
            "while True:\n    signal.pause()\n"
        )
        process = subprocess.Popen(
            [sys.executable, m.__file__, "call", "wait", str(path)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        with process:
            line = b""
            while b"waiting" not in line:
                assert process.poll() is None
                line = process.stderr.readline()
            process.send_signal(number)
            process.communicate(timeout=20)
        assert process.returncode == 128 + number
        with pytest.raises(ProcessLookupError):
            os.kill(int(line.split()[-1]), 0)

    @posix
    @pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
    def test_the_answer_comes_though_stderr_takes_nothing(self, shop, redirection):
        command = f'"$0" "$1" call add a=1 b=2 "$2" {redirection}'
        said = subprocess.run(
            ["bash", "-c", command, sys.executable, m.__file__, shop],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=30,
        )  # fmt: skip
        assert (said.returncode, said.stdout) == (0, b"3\n")

    @posix
    @pytest.mark.parametrize(
        "redirection, problem",
        [(">&-", b"standard output is closed"), (">/dev/full", b"cannot write the answer: ")],
    )
    def test_an_answer_that_nobody_gets_is_status_3(self, shop, redirection, problem):
        command = f'"$0" "$1" call add a=1 b=2 "$2" {redirection}'
        said = subprocess.run(
            ["bash", "-c", command, sys.executable, m.__file__, shop],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30,
        )  # fmt: skip
        assert said.returncode == 3
        assert b"error: " + problem in said.stderr and b"Traceback" not in said.stderr

    def test_help_survives_the_loss_of_docstrings(self):
        said = subprocess.run(
            [sys.executable, "-OO", m.__file__, "--help"], capture_output=True, timeout=30
        )
        assert said.returncode == 0
        assert b"None" not in said.stdout and b"List the tools" in said.stdout

    def test_a_server_in_a_file_can_be_called_from_inside_an_archive(self, shop, tmp_path):
        import zipfile

        archive = tmp_path / "tools.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            packed.write(m.__file__, "mcp_lite.py")
        code = "import mcp_lite, sys; sys.exit(mcp_lite.main(sys.argv[1:]))"
        said = subprocess.run(
            [sys.executable, "-c", code, "call", "add", "a=1", "b=2", f"{shop}:app"],
            env={**os.environ, "PYTHONPATH": str(archive)}, cwd=tmp_path, capture_output=True,
            timeout=30,
        )  # fmt: skip
        assert (said.returncode, said.stdout) == (0, b"3\n"), said.stderr.decode()

    def test_without_a_file_of_its_own_the_command_line_says_what_to_give(self, shop, monkeypatch):
        monkeypatch.delattr(m, "__file__")
        with pytest.raises(m.UsageError, match="give `-- COMMAND"):
            m.take_target(["x.py:app"], "tools")

    def test_reader_that_goes_away_is_no_error(self, shop):
        ours, theirs = os.pipe()
        os.close(ours)
        try:
            command = [sys.executable, m.__file__, "info", shop]
            done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=30)
        finally:
            os.close(theirs)
        assert (done.returncode, done.stderr) == (0, b"")


class TestExamples:
    """The programs in examples/ do what they say."""

    EXAMPLES = HERE / "examples"

    def test_quickstart_never_leaves_its_folder(self, tmp_path):
        (tmp_path / "outside.txt").write_text("needle")
        folder = tmp_path / "folder"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "a.txt").write_text("hay\nneedle here\n")
        with contextlib.suppress(OSError, NotImplementedError):
            (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
        steps = []

        async def main():
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

        run(main())
        assert (1, 1, "sub/a.txt") in steps

    def test_host_runs_tools_on_its_main_thread_and_ends(self):
        command = [sys.executable, str(self.EXAMPLES / "embed_in_host.py"), "--demo"]
        done = subprocess.run(command, timeout=30, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            "cube is at (2.5, 0.0, 0.0), says the MainThread",
            "1 of 4", "2 of 4", "3 of 4", "4 of 4",
            "cube is at (2.5, 0.0, 0.0), says the MainThread",
        ]  # fmt: skip

    def test_host_serves_on_its_own_streams_too(self):
        async def main():
            async with m.Client([sys.executable, str(self.EXAMPLES / "embed_in_host.py")]) as c:
                assert "MainThread" in await c.call("move", {"name": "cube", "x": 1})

        run(main())


class TestReadme:
    """What README.md prints is true."""

    TEXT = (HERE / "README.md").read_text("utf-8") if (HERE / "README.md").exists() else ""

    def test_python_blocks_run_as_printed(self, tmp_path):
        (tmp_path / "mcp_lite.py").write_bytes(pathlib.Path(m.__file__).read_bytes())
        blocks = re.findall(r"<!-- ci: python (\S+) -->\n```python\n(.*?)```", self.TEXT, re.DOTALL)
        assert [name for name, _ in blocks] == ["server.py", "client.py"]
        for name, text in blocks:
            (tmp_path / name).write_text(text, "utf-8")
        done = subprocess.run(
            [sys.executable, "client.py"], cwd=tmp_path, timeout=30, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert lines[:3] == ["add - Add two numbers.", "deploy - Deploy, if a person agrees.", "3"]
        assert lines[-3:] == ["10 10 copying", "done", "Nothing is noted under milk."]

    def test_every_verb_and_option_is_mentioned(self, cli):
        for verb in m.VERBS:
            assert re.search(f"`{verb}[ `]", self.TEXT), verb
        options = set(re.findall("--[a-z]+", cli("--help")[1]))
        for option in options - {"--help", "--arguments", "--version"}:
            assert option in self.TEXT, option

    def test_limits_are_the_ones_in_the_file(self):
        for limit in (m.MAX_ELEMENTS, m.MAX_DEPTH, m.MAX_IN_FLIGHT, m.MAX_MESSAGE_BYTES >> 20):
            assert f"{limit:,}" in self.TEXT


###############################################################################
# T40. Features, over every transport
###############################################################################
#
# Whatever works must work for every revision over every channel, so the tests of features take a
# `link`: one revision over one transport. Tests of what no channel can change use memory alone.

LEGACY_REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
LINK_REVISIONS = [*LEGACY_REVISIONS, "2026-07-28"]


class LinePipe(m.LineTransport):
    """stdio without a child process: our lines go into one pipe and come out of another."""

    name = "pipe"

    def __init__(self, fd_in, fd_out):
        super().__init__()
        self.fds = (fd_in, fd_out)

    async def open(self):
        self.source = m.Source(self.fds[0], self.max_message_bytes)
        self.sink = m.Sink(self.fds[1], self.source.end)

    async def _end(self):
        if hasattr(self, "sink"):
            self.source.close()
            await self.sink.finish()
        else:  # it was never opened
            for fd in self.fds:
                os.close(fd)


class LineSocket(m.Transport):
    """A transport as a user would write one: JSON lines over a socket."""

    name = "socket"

    def __init__(self, sock):
        sock.setblocking(False)
        self.sock, self.lines, self.lock = sock, m.LineDecoder(), asyncio.Lock()
        self.reading = self.closed = False

    async def read(self):
        items, data, self.reading = [], b"more", True
        while data and not items:
            try:
                data = await asyncio.get_running_loop().sock_recv(self.sock, 65536)
            except OSError:
                data = b""
            items = self.lines.feed(data) if data else self.lines.eof()
        self.reading = False
        if self.closed:
            self.sock.close()
        return items

    async def write(self, msg):
        async with self.lock:
            try:
                data = m.encode(msg) + b"\n"
                await asyncio.get_running_loop().sock_sendall(self.sock, data)
            except OSError:
                raise m.ConnectionClosed("the socket is closed") from None

    async def close(self):
        self.closed = True
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # ends the reads on both sides
        if not self.reading:
            self.sock.close()


def pipe_pair():
    (read_a, write_a), (read_b, write_b) = os.pipe(), os.pipe()
    return LinePipe(read_a, write_b), LinePipe(read_b, write_a)


def socket_pair():
    return tuple(map(LineSocket, socket.socketpair()))


@contextlib.asynccontextmanager
async def connected(server, ends, **options):
    """Serve one end of a channel; give a Client connected to the other."""
    ours, theirs = ends
    theirs.grace = 0
    serving = asyncio.ensure_future(server.serve(theirs))
    try:
        async with m.Client(ours, **options) as c:
            yield c
    finally:
        await ours.close()
        await theirs.close()
        await serving


@contextlib.asynccontextmanager
async def by_http(server, **options):
    async with server.http(port=0) as running, m.Client(running.url, **options) as client:
        yield client


@contextlib.asynccontextmanager
async def by_sse(server, **options):
    """HTTP+SSE, the pair of the first revision, which carries any handshake."""
    async with server.http(port=0) as running:
        async with m.Client(running.url.replace("/mcp", "/sse"), **options) as client:
            yield client


class ASGIConnection:
    """What an ASGI server does with one connection: requests, one after the other."""

    def __init__(self, asgi, reader, writer):
        self.asgi, self.reader, self.writer = asgi, reader, writer
        self.ahead = b""  # the first byte of the next request
        self.body, self.chunked = None, False

    async def serve(self):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                block = self.ahead + await self.reader.readuntil(b"\r\n\r\n")
                self.ahead = b""
                await self.request(*block.split(b"\r\n")[:-2])

    async def request(self, first, *lines):
        method, path, _ = first.decode("ascii").split(" ")
        path, _, query = path.partition("?")
        pairs = [line.partition(b": ") for line in lines]
        headers = [(name.lower(), value) for name, _, value in pairs]
        self.body = await self.reader.readexactly(int(dict(headers).get(b"content-length", 0)))
        scope = {"type": "http", "method": method, "path": path, "root_path": "",
                 "query_string": query.encode(), "headers": headers,
                 "client": self.writer.get_extra_info("peername")}  # fmt: skip
        await self.asgi(scope, self.receive, self.send)

    async def receive(self):
        if self.body is not None:
            body, self.body = self.body, None
            return {"type": "http.request", "body": body}
        with contextlib.suppress(ConnectionError):
            self.ahead = await self.reader.read(1)
            if self.ahead:
                await asyncio.Event().wait()  # a request is served to its end before the next
        return {"type": "http.disconnect"}

    async def send(self, event):
        if event["type"] == "http.response.start":
            fields = [*event["headers"]]
            self.chunked = b"content-length" not in dict(fields)
            if self.chunked:
                fields.append((b"transfer-encoding", b"chunked"))
            head = b"".join(b"%s: %s\r\n" % (name, value) for name, value in fields)
            self.writer.write(b"HTTP/1.1 %d X\r\n%s\r\n" % (event["status"], head))
            return
        body = event.get("body", b"")
        if self.chunked and body:
            body = b"%x\r\n%s\r\n" % (len(body), body)
        if self.chunked and not event.get("more_body"):
            body += b"0\r\n\r\n"
        self.writer.write(body)
        await self.writer.drain()


@contextlib.asynccontextmanager
async def by_asgi(server, **options):
    """HTTP, with an ASGI server between: this one."""
    busy = set()

    async def accepted(reader, writer):
        busy.add(asyncio.current_task())
        try:
            await ASGIConnection(server.asgi, reader, writer).serve()
        finally:
            writer.close()
            busy.discard(asyncio.current_task())

    events, said = asyncio.Queue(), asyncio.Queue()
    lifespan = asyncio.ensure_future(server.asgi({"type": "lifespan"}, events.get, said.put))
    events.put_nowait({"type": "lifespan.startup"})
    answer = await said.get()
    if answer["type"] == "lifespan.startup.failed":
        await lifespan
        raise RuntimeError(answer["message"])  # such servers end with it
    assert answer == {"type": "lifespan.startup.complete"}
    listener = await asyncio.start_server(accepted, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        async with m.Client(f"http://127.0.0.1:{port}/mcp", **options) as client:
            yield client
    finally:
        listener.close()
        if busy:
            await asyncio.wait(busy)
        events.put_nowait({"type": "lifespan.shutdown"})
        assert await said.get() == {"type": "lifespan.shutdown.complete"}
        await lifespan


#: From the name of a transport to (server, **options of Client) -> a connected Client.
LINK_TRANSPORTS = {
    "memory": lambda app, **options: m.Client(app, **options),
    "pipe": lambda app, **options: connected(app, pipe_pair(), **options),
    "socket": lambda app, **options: connected(app, socket_pair(), **options),
    "http": by_http,
    "asgi": by_asgi,
    "sse": by_sse,
}


class Link(typing.NamedTuple):
    """One revision over one transport."""

    transport: str
    revision: str

    def connect(self, server, **options):
        return LINK_TRANSPORTS[self.transport](server, revision=self.revision, **options)

    @property
    def modern(self):
        """Whether every request stands for itself, after no handshake."""
        return m.REVISIONS[self.revision].modern

    @property
    def unasked(self):
        """What a call raises whose tool asks for what the client did not declare."""
        return m.RemoteError if self.modern else m.ToolError

    @property
    def over_http(self):
        return self.transport in ("http", "asgi", "sse")

    def since(self, revision):
        """Whether a revision that this link speaks has what came with `revision`."""
        return self.revision >= revision

    def knows(self, obj, fields):
        """Check that `obj` has those of `fields`, {name: since}, that this revision knows."""
        assert {name: name in obj for name in fields} == {
            name: self.since(since) for name, since in fields.items()
        }


ALL_LINKS = [Link(transport, rev) for transport in LINK_TRANSPORTS for rev in LINK_REVISIONS]
ALL_LINKS = [link for link in ALL_LINKS if not (link.modern and link.transport == "sse")]
#: Every transport and every revision, which is enough: neither knows the other. All pairs are tested
#: when MCP_LITE_ALL_LINKS is set.
LINKS = [
    link
    for link in ALL_LINKS
    if "MCP_LITE_ALL_LINKS" in os.environ
    or link.transport == "memory"
    or link in [("pipe", "2025-03-26"), ("pipe", "2025-11-25"), ("pipe", "2026-07-28"),
                ("socket", "2025-06-18"), ("http", "2025-03-26"), ("http", "2025-11-25"),
                ("http", "2026-07-28"), ("asgi", "2024-11-05"), ("asgi", "2026-07-28"),
                ("sse", "2024-11-05")]
]


@pytest.fixture(params=LINKS, ids="-".join)
def link(request):
    return request.param


@pytest.fixture(params=[link for link in LINKS if not link.modern], ids="-".join)
def legacy_link(request):
    """Give what opens with a handshake, for what only a session can have."""
    return request.param


@contextlib.contextmanager
def on_the_wire():
    """Collect every message that goes over any wire of this process, once."""
    sent = []
    m.set_trace(lambda direction, name, msg: sent.append(msg) if direction == ">" else None)
    try:
        yield sent
    finally:
        m.set_trace(None)


def of_method(sent, method):
    """Return the parameters of the messages of one method, in order; also what a result asks for."""
    asked = [[msg, *msg.get("result", {}).get("inputRequests", {}).values()] for msg in sent]
    return [msg.get("params", {}) for msg in sum(asked, []) if msg.get("method") == method]


def bare(result):
    """Return a result without what only modern ones have: what it is, and who gave it."""
    return {key: value for key, value in result.items() if key not in ("resultType", "_meta")}


def results_of(sent, method):
    """Return the results of the requests of one method, in order."""
    ids = [msg["id"] for msg in sent if msg.get("method") == method]
    by_id = {msg["id"]: msg["result"] for msg in sent if "result" in msg}
    return [by_id[req_id] for req_id in ids if req_id in by_id]


async def eventually(condition):
    """Wait until something is true."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.0005)
    pytest.fail("it never became true")


class RawClient:
    """A client that says what it likes, for what a Client would never say."""

    def __init__(self, ours):
        self.ours, self.inbox, self.heard, self.last = ours, [], [], 0

    async def say(self, msg):
        await self.ours.write(msg)

    async def hear(self):
        """Return the next message."""
        while not self.inbox:
            items = await self.ours.read()
            assert items, "the server closed the connection"
            self.inbox += map(json.loads, items)
        return self.inbox.pop(0)

    async def ask(self, method, params=None, **extra):
        """Send a request; return what answers it, keeping what comes before in `heard`."""
        self.last += 1
        msg = {"jsonrpc": "2.0", "id": self.last, "method": method, **extra}
        await self.say(msg if params is None else {**msg, "params": params})
        while True:
            answer = await self.hear()
            if answer.get("id") == self.last and "method" not in answer:
                return answer
            self.heard.append(answer)

    async def error(self, method, params=None):
        """Send a request; return (code, message) of the error that answers it."""
        answer = await self.ask(method, params)
        assert "error" in answer, answer
        return answer["error"]["code"], answer["error"]["message"]

    async def initialize(self, revision="2025-11-25", capabilities=None):
        answer = await self.ask("initialize", raw_hello(revision, capabilities))
        await self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]


def raw_hello(revision="2025-11-25", capabilities=None):
    info = {"name": "raw", "version": "0"}
    return {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": info}


@contextlib.asynccontextmanager
async def raw_client(server):
    """Give a RawClient of a server in memory."""
    ours, theirs = m.memory_transports()
    theirs.grace = 0
    serving = asyncio.ensure_future(server.serve(theirs))
    try:
        yield RawClient(ours)
    finally:
        await ours.close()
        await serving


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


class Couple(typing.TypedDict):
    left: int
    right: str


ICON = {"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}
PNG = b"\x89PNG\r\n"


def plain_app(**options):
    """Return a server with one of each."""
    app = m.Server("plain", "1.0", **options)

    @app.tool
    def add(a: int, b: int = 0) -> int:
        """Add two numbers.

        Args:
            a: the first
            b: the second
        """
        return a + b

    @app.tool
    async def echo(text: str) -> str:
        return text

    app.add_resource("x://static", "text", name="static")

    @app.resource("x://{number}", name="numbered")
    def numbered(number: int) -> str:
        return f"<{number + 1}>"

    @app.prompt
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Greet {name}."

    return app


class TestLink:
    """spec 2025-11-25: basic/lifecycle"""

    def test_client_and_server_agree_and_talk(self, link):
        async def main():
            app = plain_app(instructions="Add things.")
            async with link.connect(app) as c:
                assert c.revision == link.revision
                assert c.server_info == {"name": "plain", "version": "1.0"}
                assert c.instructions == "Add things."
                three = 3 if link.since("2025-06-18") else "3"  # without structured output, text
                assert await c.call("add", {"a": 1, "b": 2}) == three
                assert await c.ping() < 10
            return of_method(sent, "initialize"), of_method(sent, "notifications/initialized")

        with on_the_wire() as sent:
            hellos, ready = run(main())
        if link.modern:
            assert hellos == ready == []
            asked = [msg["params"]["_meta"] for msg in sent if "method" in msg]
            said = "io.modelcontextprotocol/protocolVersion"
            assert len(asked) >= 3 and all(meta[said] == link.revision for meta in asked)
            return
        assert hellos[0]["protocolVersion"] == link.revision
        assert set(hellos[0]) >= {"protocolVersion", "capabilities", "clientInfo"}
        assert len(hellos) == len(ready) == 1

    def test_server_declares_what_it_has_and_the_revision_can_declare(self, link):
        async def main():
            async with link.connect(plain_app()) as c:
                assert c.server_capabilities == {
                    "logging": {},
                    "tools": {"listChanged": True},
                    "resources": {"subscribe": True, "listChanged": True},
                    "prompts": {"listChanged": True},
                    **({"completions": {}} if link.since("2025-03-26") else {}),
                }
            async with link.connect(m.Server()) as c:
                assert c.server_capabilities == {"logging": {}}

        run(main())

    def test_what_an_older_revision_does_not_know_of_the_server_is_left_out(self, link):
        async def main():
            app = m.Server("s", "1", title="S", description="D", icons=[ICON], website_url="u://w")
            async with link.connect(app) as c:
                link.knows(
                    c.server_info,
                    {
                        "name": "",
                        "version": "",
                        "title": "2025-06-18",
                        "description": "2025-11-25",
                        "icons": "2025-11-25",
                        "websiteUrl": "2025-11-25",
                    },
                )

        run(main())

    def test_ping_goes_both_ways(self, legacy_link):
        """spec 2025-11-25: basic/utilities/ping"""

        async def main():
            app = m.Server()

            @app.tool
            async def ping_back(ctx: m.Context) -> str:
                peer, send = ctx.conversation.peer, ctx.exchange.send
                assert await peer.ask("ping", None, send) == {}
                return "pong"

            async with legacy_link.connect(app) as c:
                assert await c.call("ping_back") == "pong"

        run(main())


class TestServerTools:
    """spec 2025-11-25: server/tools"""

    def test_a_function_is_listed_with_what_its_revision_knows(self, link):
        app = m.Server()

        @app.tool(
            title="Add",
            annotations={"title": "Add!", "readOnlyHint": True},
            icons=[ICON],
            meta={"acme/cost": 3},
        )
        def add(a: int, b: int = 0) -> int:
            """Add two numbers.

            Args:
                a: the first
            """
            return a + b

        async def main():
            async with link.connect(app) as c:
                return await c.list_tools()

        with on_the_wire() as sent:
            tools = run(main())
        (tool,) = results_of(sent, "tools/list")[0]["tools"]
        assert [tool] == tools
        assert tool["name"] == "add"
        assert tool["description"] == "Add two numbers."
        assert tool["inputSchema"] == {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "the first"},
                "b": {"type": "integer", "default": 0},
            },
            "required": ["a"],
            "additionalProperties": False,
        }
        since = {"annotations": "2025-03-26", "title": "2025-06-18", "outputSchema": "2025-06-18"}
        link.knows(tool, {**since, "_meta": "2025-06-18", "icons": "2025-11-25"})
        if link.since("2025-11-25"):
            assert tool["outputSchema"] == {
                "type": "object",
                "properties": {"result": {"type": "integer"}},
                "required": ["result"],
            }
            assert tool["annotations"] == {"title": "Add!", "readOnlyHint": True}
            assert (tool["title"], tool["icons"], tool["_meta"]) == ("Add", [ICON], {"acme/cost": 3})

    def test_results_of_every_kind_come_back_as_values_and_as_text(self, link):
        when = datetime.datetime(2025, 1, 2, 3, 4, 5)
        node = uuid.UUID(int=5)
        values = [  # (annotation, what the tool returns, structured value, text)
            (int, 3, 3, "3"),
            (float, 1.5, 1.5, "1.5"),
            (str, "é\n", "é\n", "é\n"),
            (bool, True, True, "true"),
            (typing.List[int], [1, 2], [1, 2], "[1,2]"),
            (typing.Dict[str, int], {"a": 1}, {"a": 1}, '{"a":1}'),
            (typing.Optional[int], None, None, None),
            (Colour, Colour.RED, "red", "red"),
            (Spot, Spot(1), {"x": 1, "y": 0}, '{"x":1,"y":0}'),
            (Couple, {"left": 1, "right": "b"}, {"left": 1, "right": "b"}, '{"left":1,"right":"b"}'),
            (typing.List[Spot], [Spot(1)], [{"x": 1, "y": 0}], '[{"x":1,"y":0}]'),
            (datetime.datetime, when, "2025-01-02T03:04:05", "2025-01-02T03:04:05"),
            (uuid.UUID, node, str(node), str(node)),
            (bytes, b"hi", "aGk=", "aGk="),
            (typing.Tuple[int, str], (1, "a"), [1, "a"], '[1,"a"]'),
        ]
        app = m.Server()
        for number, (annotation, value, _, _) in enumerate(values):

            def fn(value=value):
                return value

            fn.__annotations__ = {"value": typing.Any, "return": annotation}
            app.add_tool(fn, name=f"tool{number}")

        async def main():
            async with link.connect(app) as c:
                for number, (annotation, _, value, text) in enumerate(values):
                    result = await c.call_tool(f"tool{number}")
                    texts = [] if text is None else [{"type": "text", "text": text}]
                    assert result["content"] == texts, annotation
                    assert ("structuredContent" in result) == link.since("2025-06-18")
                    if link.since("2025-06-18"):
                        assert await c.call(f"tool{number}") == value
                        plain = isinstance(value, dict)
                        assert result["structuredContent"] == (value if plain else {"result": value})

        run(main())

    def test_content_becomes_what_the_revision_can_show(self, link):
        """FIELDS and CONTENT of section 4: unknown fields are left out, unknown types are text."""
        app = m.Server()
        marks = {"audience": ["user"], "priority": 1, "lastModified": "2025-01-01T00:00:00Z"}

        @app.tool
        def everything():
            return [
                "text",
                m.Image(PNG, annotations=marks, meta={"a": 1}),
                m.Audio(b"RIFF", format="wav"),
                m.Resource("x://r", "inside", mime_type="text/x", meta={"b": 2}),
                m.Resource("x://b", data=b"\0"),
                m.Link("x://l", "ell", title="Ell", mime_type="text/y", size=3, icons=[ICON]),
                {"type": "text", "text": "as it is", "_meta": {"c": 3}},
            ]

        async def main():
            async with link.connect(app) as c:
                await c.call("everything")

        with on_the_wire() as sent:
            run(main())
        (result,) = results_of(sent, "tools/call")
        text, image, audio, inside, blob, pointer, raw = result["content"]
        assert text == {"type": "text", "text": "text"}
        assert (image["type"], image["mimeType"]) == ("image", "image/png")
        assert base64.b64decode(image["data"]) == PNG
        link.knows(image, {"annotations": "", "_meta": "2025-06-18"})
        link.knows(image["annotations"], {"priority": "", "lastModified": "2025-06-18"})
        if link.since("2025-03-26"):
            assert audio == {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="}
        else:
            assert audio == {"type": "text", "text": "[audio, audio/wav, 8 characters of base64]"}
        assert inside["type"] == "resource"
        assert inside["resource"]["uri"] == "x://r"
        assert inside["resource"]["mimeType"] == "text/x"
        assert inside["resource"]["text"] == "inside"
        link.knows(inside["resource"], {"_meta": "2025-06-18"})
        assert blob["resource"] == {
            "uri": "x://b",
            "mimeType": "application/octet-stream",
            "blob": "AA==",
        }
        if link.since("2025-06-18"):
            assert pointer["type"] == "resource_link"
            assert (pointer["uri"], pointer["name"], pointer["size"]) == ("x://l", "ell", 3)
            link.knows(pointer, {"title": "2025-06-18", "icons": "2025-11-25"})
        else:
            assert pointer == {"type": "text", "text": "Ell: x://l"}
        link.knows(raw, {"text": "", "_meta": "2025-06-18"})
        assert "isError" not in result

    def test_arguments_reach_the_function_as_the_types_it_names(self, link):
        seen = {}
        app = m.Server()

        @app.tool
        def take(
            day: datetime.date,
            colour: Colour,
            point: Spot,
            points: typing.List[Spot],
            path: pathlib.Path,
            data: bytes,
            node: uuid.UUID,
            tags: typing.Set[str],
            pair: Couple,
            either: typing.Union[int, str],  # noqa: UP007
            choice: typing.Literal["a", "b"] = "a",
            maybe: typing.Optional[float] = None,
        ) -> None:
            seen.update(locals())

        node = uuid.UUID(int=7)
        arguments = {
            "day": datetime.date(2025, 1, 2),
            "colour": Colour.BLUE,
            "point": Spot(1, 2),
            "points": [Spot(3)],
            "path": pathlib.PurePosixPath("/a/b"),
            "data": b"hi",
            "node": node,
            "tags": ["a", "b"],
            "pair": {"left": 1, "right": "r"},
            "either": "5",
        }

        async def main():
            async with link.connect(app) as c:
                assert await c.call("take", arguments) is None

        with on_the_wire() as sent:
            run(main())
        (said,) = of_method(sent, "tools/call")
        assert said["arguments"]["point"] == {"x": 1, "y": 2}
        assert said["arguments"]["day"] == "2025-01-02"
        expected = {**arguments, "tags": {"a", "b"}, "path": pathlib.Path("/a/b")}
        assert {name: seen[name] for name in arguments} == expected
        assert (seen["choice"], seen["maybe"]) == ("a", None)

    @pytest.mark.parametrize(
        "given, understood",
        [
            ({"n": "3"}, {"n": 3}),
            ({"x": "1.5"}, {"x": 1.5}),
            ({"flag": "true"}, {"flag": True}),
            ({"items": "[1, 2]"}, {"items": [1, 2]}),
            ({"point": '{"x": 1}'}, {"point": {"x": 1}}),
            ({"n": "3", "text": "3"}, {"n": 3, "text": "3"}),
            ({"either": "3", "n": "4"}, {"either": "3", "n": 4}),
            ({"text": '{"x": 1}'}, {"text": '{"x": 1}'}),
            ({"n": None}, {}),
            ({"n": "x"}, None),
            ({"n": "3.5"}, None),
            ({"n": 3.5}, None),
            ({"n": True}, None),
            ({"text": 3}, None),
            ({"flag": "yes"}, None),
        ],
    )
    def test_what_models_send_as_text_is_understood_where_no_text_is_allowed(
        self, given, understood
    ):
        properties = {
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "flag": {"type": "boolean"},
            "items": {"type": "array"},
            "point": {"type": "object"},
            "text": {"type": "string"},
            "either": {"type": ["integer", "string"]},
        }
        app = m.Server()
        app.add_tool(lambda args: args, name="t", input_schema={"properties": properties})

        async def main():
            async with m.Client(app, revision="2025-11-25") as c:
                result = await c.call_tool("t", given)
                assert result.get("isError", False) == (understood is None)
                if understood is not None:
                    assert result["structuredContent"] == understood

        run(main())

    WRONG_ARGUMENTS = [
        ({}, "a"),
        ({"a": "x"}, "a: expected integer, got string"),
        ({"a": 1, "c": 2}, "c"),
        ({"a": 1, "spots": [{"x": 1}, {"x": "?"}]}, "spots[1].x: expected integer, got string"),
        ({"a": 1, "day": "2025-02-30"}, "day"),
    ]

    def test_wrong_arguments_name_the_path(self, link):
        """An error of the protocol, or since 2025-11-25 a result for the model to mend (SEP-1303).

        spec 2025-06-18: server/tools#error-handling; spec 2025-11-25: server/tools#error-handling
        """
        app = m.Server(mask_errors=True)  # which is not about what the client said

        @app.tool
        def take(a: int, day: datetime.date = None, spots: typing.List[Spot] = ()):
            pytest.fail("it must not be called")

        async def main():
            async with link.connect(app) as c:
                for arguments, problem in self.WRONG_ARGUMENTS:
                    if link.since("2025-11-25"):
                        result = await c.call_tool("take", arguments)
                        assert result["isError"] is True
                        assert problem in result["content"][0]["text"]
                        with pytest.raises(m.ToolError, match=re.escape(problem)):
                            await c.call("take", arguments)
                    else:
                        with pytest.raises(m.RemoteError, match=re.escape(problem)) as caught:
                            await c.call("take", arguments)
                        assert caught.value.code == -32602

        run(main())

    def test_a_tool_that_fails_is_a_result_and_a_wrong_request_is_an_error(self, link, caplog):
        app = m.Server()

        @app.tool
        def fail(how: str) -> int:
            if how == "value":
                raise ValueError("no such city")
            if how == "silent":
                raise KeyError
            if how == "tool":
                raise m.ToolError("try another")
            if how == "exit":
                raise SystemExit("enough")
            raise m.RPCError(-32050, "not here", {"where": "there"})

        async def main():
            async with link.connect(app) as c:
                for how, text in [("value", "no such city"), ("silent", "KeyError")]:
                    assert bare(await c.call_tool("fail", {"how": how})) == {
                        "content": [{"type": "text", "text": text}],
                        "isError": True,
                    }
                with pytest.raises(m.ToolError, match="try another") as tool_error:
                    await c.call("fail", {"how": "tool"})
                assert tool_error.value.result["isError"] is True
                with pytest.raises(m.ToolError):
                    await c.call("fail", {"how": "exit"})
                with pytest.raises(m.RemoteError) as caught:
                    await c.call("fail", {"how": "rpc"})
                assert (caught.value.code, caught.value.message) == (-32050, "not here")
                assert caught.value.data == {"where": "there"}
                with pytest.raises(m.RemoteError, match="Unknown tool: fall; did you mean 'fail'"):
                    await c.call("fall")
                with pytest.raises(m.RemoteError) as caught:
                    await c.call("xyzzy")
                assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: xyzzy")

        run(main())
        assert "no such city" in caplog.text and "Traceback" in caplog.text
        assert "try another" not in caplog.text

    def test_masked_errors_say_nothing_but_what_was_meant_to_be_said(self, caplog):
        app = m.Server(mask_errors=True)

        @app.tool
        async def leak(how: str):
            raise (m.ToolError if how == "meant" else OSError)("/etc/passwd")

        @app.prompt
        def leaky():
            raise OSError("/etc/passwd")

        app.add_resource("x://leaky", leaky)

        async def main():
            async with m.Client(app, revision="2025-11-25") as c:
                result = await c.call_tool("leak", {"how": "other"})
                assert result["content"][0]["text"] == "the tool 'leak' failed"
                assert (await c.call_tool("leak", {"how": "meant"}))["content"][0]["text"]
                for call in (c.get_prompt("leaky"), c.read("x://leaky")):
                    with pytest.raises(m.RemoteError) as caught:
                        await call
                    assert (caught.value.code, caught.value.message) == (-32603, "Internal error")

        with on_the_wire() as sent:
            run(main())
        assert json.dumps(sent).count("/etc/passwd") == 1
        assert "/etc/passwd" in caplog.text

    @pytest.mark.parametrize("value", [object(), {1, object()}, float("nan"), {"a": float("inf")}])
    def test_what_json_cannot_say_is_an_internal_error(self, value, caplog):
        app = plain_app()
        app.add_tool(lambda: value, name="bad")
        app.add_resource("x://bad", lambda: [value], name="bad")

        async def main():
            async with m.Client(app, revision="2025-11-25") as c:
                for call in (c.call("bad"), c.read("x://bad")):
                    with pytest.raises(m.RemoteError) as caught:
                        await call
                    assert caught.value.code == -32603
                assert await c.call("add", {"a": 1}) == 1  # the conversation goes on

        run(main())
        assert "has no JSON form" in caplog.text or "JSON" in caplog.text

    def test_output_that_breaks_its_own_schema_is_an_internal_error(self):
        app = m.Server()

        @app.tool
        def lie() -> int:
            return "three"

        @app.tool
        def incomplete() -> Couple:
            return {"left": 1}

        schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
        raw = {"content": [{"type": "text", "text": "x"}]}
        app.add_tool(lambda: {"n": "x"}, name="given", output_schema=schema)
        app.add_tool(lambda: raw, name="raw", output_schema=schema)
        app.add_tool(lambda: {**raw, "structuredContent": {}}, name="wrong", output_schema=schema)
        app.add_tool(lambda: {**raw, "isError": True}, name="failed", output_schema=schema)
        good = {**raw, "structuredContent": {"n": 1}, "_meta": {"a": 1}}
        app.add_tool(lambda: good, name="good", output_schema=schema)

        async def main():
            async with m.Client(app, revision="2025-11-25") as c:
                for name in ("lie", "incomplete", "given", "raw", "wrong"):
                    with pytest.raises(m.RemoteError, match="broke its output schema") as caught:
                        await c.call(name)
                    assert caught.value.code == -32603
                assert await c.call_tool("failed") == {**raw, "isError": True}
                assert await c.call_tool("good") == good

        run(main())

    def test_a_dict_is_structured_without_a_schema_unless_told_otherwise(self):
        app = m.Server()
        app.add_tool(lambda: {"a": 1}, name="dict")
        app.add_tool(lambda: {"a": 1}, name="text", structured=False)
        app.add_tool(lambda: {"type": "text", "text": "x"}, name="block")
        app.add_tool(lambda: {"type": "text", "size": 3}, name="no_block")
        app.add_tool(lambda: {"type": ["odd"]}, name="odd")

        async def main():
            async with m.Client(app, revision="2025-11-25") as c:
                out = {t["name"]: await c.call_tool(t["name"]) for t in await c.list_tools()}
            text = [{"type": "text", "text": '{"a":1}'}]
            assert out["dict"] == {"content": text, "structuredContent": {"a": 1}}
            assert out["text"] == {"content": text}
            assert out["block"] == {"content": [{"type": "text", "text": "x"}]}
            assert out["no_block"]["structuredContent"] == {"type": "text", "size": 3}
            assert out["odd"]["structuredContent"] == {"type": ["odd"]}

        run(main())

    RAW = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}

    @staticmethod
    def raw_plain(arguments: dict):
        return arguments

    @staticmethod
    def raw_with_context(ctx: m.Context, arguments: dict) -> dict:
        return {"got": arguments, "method": ctx.method}

    @staticmethod
    async def raw_unresolvable(args: Nowhere[int], ctx: m.Context) -> Neither:  # noqa: F821
        """Do it raw.

        Args:
            args: all of them
        """
        return {"got": args, "method": ctx.method}

    @staticmethod
    def named(x: int):
        return {"x": x}

    @staticmethod
    def anything(**kwargs):
        return kwargs

    @pytest.mark.parametrize(
        "name, value",
        [
            ("raw_plain", {"x": 1}),
            ("raw_with_context", {"got": {"x": 1}, "method": "tools/call"}),
            ("raw_unresolvable", {"got": {"x": 1}, "method": "tools/call"}),
            ("named", {"x": 1}),
            ("anything", {"x": 1}),
        ],
    )
    def test_input_schema_is_published_as_it_stands_and_gives_the_raw_dict(self, name, value):
        app = m.Server()
        fn = getattr(self, name)
        app.add_tool(fn, name="t", input_schema=self.RAW)

        async def main():
            async with m.Client(app, revision="2025-11-25") as c:
                (tool,) = await c.list_tools()
                assert tool["inputSchema"] == self.RAW
                if name == "raw_unresolvable":
                    assert tool["description"] == "Do it raw."
                assert await c.call("t", {"x": 1}) == value
                assert (await c.call_tool("t", {"x": "y"}))["isError"]

        run(main())

    def test_a_hint_that_cannot_be_resolved_is_an_error_with_a_remedy(self):
        with pytest.raises(TypeError, match=r"raw_unresolvable.*'args'.*Nowhere.*input_schema="):
            m.Server().add_tool(self.raw_unresolvable)

    def test_misuse_is_an_error_at_registration(self):
        app = m.Server()
        for wrong, problem in [
            (lambda: app.add_tool(lambda: 1), "pass name="),
            (lambda: app.add_tool(self.named, titel="x"), "a tool has no field 'titel'"),
            (lambda: app.prompt(self.named, mime_type="x"), "a prompt has no field"),
            (lambda: app.add_resource("x://a", 1, nam="x"), "a resource has no field"),
            (lambda: app.resource(self.named), "with the URI"),
            (lambda: app.add_resource("x://{a}", "text"), "has no|no parameter"),
            (lambda: app.add_resource("x://{a}", self.named), "no parameter a"),
            (lambda: app.add_resource("x://{x}/{y}", self.named), "no parameter y"),
            (lambda: app.add_resource("x://all", self.named), "has no x"),
            (lambda: m.Link("x://", nam="x"), "a link has no field"),
            (lambda: app.method("tools/call"), "is a method of the protocol"),
            (lambda: m.Image(), "either data or path"),
            (lambda: m.Resource("x://"), "either text or data"),
            (lambda: m.Message("x", "system"), '"user" or "assistant"'),
        ]:
            with pytest.raises((TypeError, ValueError), match=problem):
                wrong()
        assert not app.tools and not app.resources and not app.templates
        with pytest.raises(KeyError, match="no tool 'x'"):
            app.remove_tool("x")

    def test_decorators_give_the_function_back(self):
        app = m.Server()

        def fn(x: int = 0) -> int:
            return x

        assert app.tool(fn) is fn
        assert app.tool("b")(fn) is fn
        assert app.tool(name="c", title="C")(fn) is fn
        assert app.prompt(fn) is fn
        assert app.prompt("b")(fn) is fn
        assert app.resource("x://a")(fn) is fn
        assert app.complete("fn", "x")(fn) is fn
        assert app.middleware(fn) is fn
        assert app.method("acme/x")(fn) is fn
        assert app.method("acme/x")(print) is print  # the last one counts
        assert app.on("notifications/acme")(fn) is fn
        assert list(app.tools) == ["fn", "b", "c"]

    def test_images_know_their_type(self, tmp_path):
        path = tmp_path / "a.JPG"
        path.write_bytes(PNG)
        for image, mime_type in [
            (m.Image(path=path), "image/jpeg"),
            (m.Image(PNG), "image/png"),
            (m.Image(PNG, format="webp"), "image/webp"),
            (m.Image(PNG, mime_type="image/x"), "image/x"),
            (m.Audio(PNG), "audio/wav"),
        ]:
            block = image.to_content()
            assert (block["mimeType"], base64.b64decode(block["data"])) == (mime_type, PNG)

    def test_names_outside_the_alphabet_are_warned_of(self, caplog):
        """spec: server/tools#tool-names"""
        app = m.Server()
        for name in ("a" * 128, "A_z-0.9"):
            app.add_tool(self.named, name=name)
        assert caplog.text == ""
        for name in ("a" * 129, "with space", "é", "a/b"):
            app.add_tool(self.named, name=name)
            assert repr(name) in caplog.text

    def test_lists_change_at_run_time_and_clients_are_told(self, link):
        """spec 2025-11-25: server/tools#list-changed-notification"""

        async def main():
            app, told = plain_app(), []
            async with link.connect(
                app,
                on_tools_changed=lambda: told.append("tools"),
                on_resources_changed=lambda: told.append("resources"),
                on_prompts_changed=lambda: told.append("prompts"),
            ) as c:
                app.add_tool(lambda: 1, name="new")
                await eventually(lambda: told == ["tools"])
                assert [t["name"] for t in await c.list_tools()] == ["add", "echo", "new"]
                await asyncio.get_running_loop().run_in_executor(None, app.remove_tool, "add")
                await eventually(lambda: told == ["tools"] * 2)
                assert [t["name"] for t in await c.list_tools()] == ["echo", "new"]
                app.remove_resource("x://static")
                app.remove_resource("x://{number}")
                app.remove_prompt("greet")
                both = ["resources"] * (1 if link.modern else 2)  # there, equal news is told once
                await eventually(lambda: sorted(told[2:]) == ["prompts", *both])
                assert await c.list_resources() == await c.list_templates() == []
                assert await c.list_prompts() == []

        run(main())

    def test_a_name_registered_twice_keeps_its_place(self, caplog):
        app = plain_app()
        app.add_tool(lambda: 1, name="add")

        async def main():
            async with m.Client(app, revision="2025-11-25") as c:
                assert [tool["name"] for tool in await c.list_tools()] == ["add", "echo"]
                assert await c.call("add") == "1"

        run(main())
        assert "registered again" in caplog.text


class TestHandlers:
    """Where handlers run, and what Context does for them."""

    def test_def_handlers_run_in_threads_and_speak_without_await(self, link):
        app, threads = m.Server(), []
        variable = contextvars.ContextVar("variable")

        @app.middleware
        async def set_variable(ctx, call_next):
            variable.set("seen")
            return await call_next(ctx)

        @app.tool
        def work(ctx: m.Context) -> str:
            threads.append(threading.current_thread())
            ctx.report_progress(1, 2, "half")
            ctx.info({"n": 1})
            ctx.log("error", "bad", logger="work")
            assert ctx.once(lambda: 5) == 5
            assert ctx.read_resource("x://r")[0]["text"] == "inside"
            return f"{ctx.roots()[0]['uri']} {variable.get()}"

        @app.tool
        async def work_async(ctx: m.Context) -> str:
            threads.append(threading.current_thread())
            await ctx.report_progress(1, 2, "half")
            await ctx.info({"n": 1})
            await ctx.log("error", "bad", logger="work")
            assert await ctx.once(lambda: 5) == 5
            assert (await ctx.read_resource("x://r"))[0]["text"] == "inside"
            return f"{(await ctx.roots())[0]['uri']} {variable.get()}"

        app.add_resource("x://r", "inside")

        async def main():
            logs, steps = [], []
            async with link.connect(
                app,
                roots=["file:///r"],
                log=lambda *log: logs.append(log),
                progress=lambda *step: steps.append(step),
            ) as c:
                for name in ("work", "work_async"):
                    assert await c.call(name) == "file:///r seen"
            # Where a question ends the request, the handler runs again for its answer.
            runs = 4 if link.modern else 2
            assert logs == [("info", {"n": 1}, None), ("error", "bad", "work")] * runs
            assert steps == [(1, 2, "half" if link.since("2025-03-26") else None)] * runs
            assert len(threads) == runs

        run(main())
        assert threads[0] is not threading.main_thread() and threads[0].daemon
        assert threads[-1] is threading.main_thread()

    def test_call_sync_runs_functions_where_the_host_wants(self):
        """The host's own thread, as a GUI has; there, too, a handler speaks without await."""
        seen = []

        async def main():
            import queue

            jobs = queue.SimpleQueue()

            def host():
                while True:
                    job = jobs.get()
                    if job is None:
                        return
                    job()

            async def on_host(fn):
                future = concurrent.futures.Future()

                def job():
                    try:
                        future.set_result(fn())
                    except Exception as exc:
                        future.set_exception(exc)

                jobs.put(job)
                return await asyncio.wrap_future(future)

            app = m.Server(call_sync=on_host)

            @app.tool
            def move(x: int, ctx: m.Context) -> int:
                seen.append(threading.current_thread())
                ctx.report_progress(1)
                logging.getLogger("host").warning("on behalf of %s", m.CURRENT.get().method)
                if x < 0:
                    raise ValueError("negative")
                return x

            thread = threading.Thread(target=host)
            thread.start()
            try:
                steps = []
                options = {"progress": lambda *step: steps.append(step), "revision": "2025-11-25"}
                async with m.Client(app, **options) as c:
                    assert await c.call("move", {"x": 3}) == 3
                    with pytest.raises(m.ToolError, match="negative"):
                        await c.call("move", {"x": -3})
                assert steps == [(1, None, None)] * 2
                assert seen == [thread] * 2
            finally:
                jobs.put(None)
                thread.join()

        run(main())

    def test_progress_comes_before_the_answer_and_grows(self, link):
        """spec 2025-11-25: basic/utilities/progress"""
        app, kept = m.Server(), []

        @app.tool
        async def work(ctx: m.Context) -> str:
            kept.append(ctx)
            for step in (0, 1, 1, 0.5, 2):
                await ctx.report_progress(step, 2, f"step {step}")
            return "done"

        async def main():
            async with link.connect(app) as c:
                assert await c.call("work") == "done"
                await kept[0].report_progress(9)  # after the answer: never
                await kept[0].log("error", "too late")
                await c.ping()
                raw = await c.request("tools/call", {"name": "work"})
                return raw

        with on_the_wire() as sent:
            run(main())
        steps = of_method(sent, "notifications/progress")
        calls = [msg for msg in sent if msg.get("method") == "tools/call"]
        token = calls[0]["params"]["_meta"]["progressToken"]
        first = [step for step in steps if step["progressToken"] == token]
        assert [step["progress"] for step in first] == [0, 1, 2]
        assert [step["total"] for step in first] == [2] * 3
        assert all(("message" in step) == link.since("2025-03-26") for step in first)
        answered = [msg.get("id") == calls[0]["id"] and "result" in msg for msg in sent].index(True)
        last = max(i for i, msg in enumerate(sent) if msg.get("params") in first)
        assert last < answered
        assert not of_method(sent, "notifications/message")

    def test_no_token_no_progress(self):
        app = m.Server()

        @app.tool
        async def work(ctx: m.Context):
            await ctx.report_progress(1)

        async def main():
            async with raw_client(app) as raw:
                await raw.initialize()
                for meta in ({}, {"progressToken": True}, {"progressToken": 1.5}, []):
                    await raw.ask("tools/call", {"name": "work", "_meta": meta})
                    assert raw.heard == []
                meta = {"progressToken": "mine"}
                await raw.ask("tools/call", {"name": "work", "_meta": meta})
                assert raw.heard[0]["params"] == {"progressToken": "mine", "progress": 1}

        run(main())

    def test_a_flood_of_progress_is_thinned_out_but_the_last_value_arrives(self, monkeypatch):
        monkeypatch.setattr(m, "PROGRESS_RATE", (2, 3600.0))
        app = m.Server()

        @app.tool
        async def flood(ctx: m.Context):
            for step in range(1000):
                await ctx.report_progress(step)

        async def main():
            steps = []
            async with m.Client(
                app, progress=lambda n, of, text: steps.append(n), revision="2025-11-25"
            ) as c:
                await c.call("flood")
            assert steps == [0, 1, 999]

        run(main())

    def test_held_progress_is_sent_while_the_work_goes_on(self, monkeypatch):
        monkeypatch.setattr(m, "PROGRESS_RATE", (1, 0.01))
        app, steps = m.Server(), []

        @app.tool
        async def work(ctx: m.Context):
            await ctx.report_progress(1)
            await ctx.report_progress(2)
            await eventually(lambda: steps == [1, 2])

        async def main():
            async with m.Client(
                app, progress=lambda n, of, text: steps.append(n), revision="2025-11-25"
            ) as c:
                await c.call("work")

        run(main())

    def test_a_cancelled_call_ends_the_handler_and_is_not_answered(self, link):
        """spec 2025-11-25: basic/utilities/cancellation"""
        app, states = m.Server(), {}

        @app.tool
        async def wait(ctx: m.Context):
            states["wait"] = "began"
            try:
                await asyncio.Event().wait()
            finally:
                states["wait"] = f"ended, {ctx.cancelled}"

        @app.tool
        def spin(ctx: m.Context):
            states["spin"] = "began"
            while not ctx.cancelled:
                time.sleep(0.0005)
            try:  # whether the first two raise depends on the moment; the last one does
                ctx.report_progress(1)
                ctx.info("nobody hears this")
                ctx.roots()
            except asyncio.CancelledError:
                states["spin"] = "ended, True"

        async def main():
            async with link.connect(app, roots=[]) as c:
                for name in ("wait", "spin"):
                    task = asyncio.ensure_future(c.call(name))
                    await eventually(lambda name=name: states.get(name) == "began")
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                    await eventually(lambda name=name: states[name] == "ended, True")
                await c.ping()

        with on_the_wire() as sent:
            run(main())
        cancelled = of_method(sent, "notifications/cancelled")
        calls = [msg["id"] for msg in sent if msg.get("method") == "tools/call"]
        # There, the end of the connection says it.
        told = [] if link.modern and link.over_http else calls
        assert [said["requestId"] for said in cancelled] == told
        answers = {msg["id"] for msg in sent if "method" not in msg}
        assert not answers & set(calls)
        assert not of_method(sent, "roots/list") and not of_method(sent, "notifications/message")

    def test_a_thread_that_asks_for_a_cancelled_request_is_woken(self):
        app, states = m.Server(), []

        @app.tool
        def ask(ctx: m.Context):
            try:
                ctx.sample("?")
            except asyncio.CancelledError:
                states.append("woken")

        async def main():
            asked = asyncio.Event()

            async def sample(params):
                asked.set()
                await asyncio.Event().wait()

            async with m.Client(app, sample=sample, revision="2025-11-25") as c:
                task = asyncio.ensure_future(c.call("ask"))
                await asked.wait()
                task.cancel()
                await asyncio.wait({task})
                await eventually(lambda: states == ["woken"])

        run(main())

    def test_context_says_who_asks_what(self, link):
        app, seen = m.Server("s"), []

        @app.tool
        def look(ctx: m.Context, x: int = 0) -> None:
            ctx.state["calls"] = ctx.state.get("calls", 0) + 1
            seen.append(ctx)

        @app.tool
        def optional(ctx: typing.Optional[m.Context] = None) -> bool:
            return ctx is not None

        async def main():
            options = {"name": "me", "version": "7", "capabilities": {"experimental": {"a": {}}}}
            async with link.connect(app, **options) as c:
                await c.call("look", {"x": 1}, meta={"traceparent": "00-1"})
                await c.call("look")
                assert await c.call("optional") in (True, "true")
            async with link.connect(app, **options) as c:
                await c.call("look")

        run(main())
        ctx = seen[0]
        assert (ctx.server, ctx.method, ctx.revision) == (app, "tools/call", link.revision)
        assert ctx.client_info == {"name": "me", "version": "7"}
        assert ctx.client_capabilities["experimental"] == {"a": {}}
        assert ctx.meta["traceparent"] == "00-1"
        assert ctx.params["arguments"] == {"x": 1}
        assert ctx.request_id != seen[1].request_id
        if link.modern:  # every request stands for itself
            assert [each.state for each in seen] == [{"calls": 1}] * 3
        else:
            assert ctx.state is seen[1].state and ctx.state == {"calls": 2}
            assert seen[2].state == {"calls": 1}
        assert bool(ctx.headers) == link.over_http
        assert ctx.principal is None and ctx.cancelled

    def test_middleware_wraps_every_request_in_the_order_of_registration(self):
        app, seen = plain_app(), []

        @app.middleware
        async def outer(ctx, call_next):
            seen.append(ctx.method)
            if ctx.params.get("name") == "echo":
                raise m.RPCError(-32001, "not today")
            answer = await call_next(ctx)
            return {**answer, "_meta": {"outer": True, **answer.get("_meta", {})}}

        @app.middleware
        async def inner(ctx, call_next):
            answer = await call_next(ctx)
            return {**answer, "_meta": {"inner": True}}

        async def main():
            async with m.Client(app, revision="2025-11-25") as c:
                result = await c.call_tool("add", {"a": 1})
                assert result["_meta"] == {"outer": True, "inner": True}
                with pytest.raises(m.RemoteError, match="not today"):
                    await c.call("echo", {"text": "x"})

        run(main())
        assert seen == ["initialize", "tools/call", "tools/list", "tools/call"]

    def test_methods_of_ones_own(self, link):
        app, heard = m.Server(), []

        @app.method("acme/double")
        def double(ctx, params):
            return {"twice": params["n"] * 2, "method": ctx.method}

        @app.method("acme/bad")
        async def bad(ctx, params):
            return 5

        @app.on("notifications/acme")
        def plain(params):
            heard.append((params, threading.current_thread() is threading.main_thread()))

        @app.on("notifications/acme2")
        async def with_context(ctx: m.Context, params):
            heard.append((params, ctx.state.setdefault("x", 1)))

        async def main():
            async with link.connect(app) as c:
                doubled = await c.request("acme/double", {"n": 2})
                assert bare(doubled) == {"twice": 4, "method": "acme/double"}
                with pytest.raises(m.RemoteError) as caught:
                    await c.request("acme/bad")
                assert caught.value.code == -32603
                with pytest.raises(m.RemoteError, match="unknown method: acme/none") as caught:
                    await c.request("acme/none")
                assert caught.value.code == -32601
                await c.notify("notifications/acme", {"a": 1})
                await eventually(lambda: len(heard) == 1)
                await c.notify("notifications/acme2", {"b": 2})
                await eventually(lambda: len(heard) == 2)
                await c.notify("notifications/unknown")
                await c.ping()

        run(main())
        assert heard == [({"a": 1}, False), ({"b": 2}, 1)]

    def test_a_handler_may_send_notifications_of_its_own(self, link):
        app, heard = m.Server(), []

        @app.tool
        async def tell(ctx: m.Context):
            await ctx.notify("notifications/acme", {"a": 1})
            await ctx.notify("notifications/elicitation/complete", {"elicitationId": "e"})

        async def main():
            async with link.connect(app) as c:
                c.on("notifications/acme")(lambda params: heard.append(params))
                c.on("notifications/elicitation/complete")(lambda params: heard.append(params))
                await c.call("tell")

        run(main())
        assert heard == [{"a": 1}] + [{"elicitationId": "e"}] * (link.revision == "2025-11-25")


class TestResources:
    """spec 2025-11-25: server/resources"""

    def app(self):
        app = m.Server()
        app.add_resource("x://text", "héllo", mime_type="text/x")
        app.add_resource("x://bytes", b"\0\xff", name="binary", title="B")
        app.add_resource("x://json", {"a": [1]}, annotations={"lastModified": "2025-01-01T00:00:00Z"})

        @app.resource("x://fn", description="D", size=3, icons=[ICON], meta={"a": 1})
        def function() -> str:
            """Not this."""
            return "from a function"

        @app.resource("x://async/{name}/{number}")
        async def typed(name: str, number: int, ctx: m.Context) -> dict:
            """Look up."""
            return {"name": name, "number": number, "uri": ctx.params["uri"]}

        @app.resource("x://list")
        def several():
            return [m.Resource("x://list/1", "one"), {"uri": "x://list/2", "blob": "AA=="}, "three"]

        @app.resource("x://image")
        def image():
            return m.Image(PNG)

        @app.resource("files://{+path}")
        def path(path: str) -> bytes:
            return path.encode()

        return app

    def test_a_thread_that_reads_a_resource_in_another_thread_does_not_deadlock(self, link):
        async def main():
            app = m.Server(threads=2)

            @app.resource("x://slow")
            def slow() -> str:
                return "read"

            @app.tool
            def read(ctx: m.Context) -> str:
                return ctx.read_resource("x://slow")[0]["text"]

            async with link.connect(app) as c:
                answers = await asyncio.gather(*[c.call("read") for _ in range(8)])
                assert answers == ["read"] * 8

        run(main())

    def test_resources_of_every_kind_are_listed_and_read(self, link):
        async def main():
            async with link.connect(self.app()) as c:
                listed = {item["uri"]: item for item in await c.list_resources()}
                assert list(listed) == [
                    "x://text", "x://bytes", "x://json", "x://fn", "x://list", "x://image",
                ]  # fmt: skip
                assert listed["x://text"] == {
                    "uri": "x://text", "name": "x://text", "mimeType": "text/x", "size": 6,
                }  # fmt: skip
                assert (listed["x://bytes"]["name"], listed["x://bytes"]["size"]) == ("binary", 2)
                assert listed["x://fn"]["name"] == "function"
                assert listed["x://fn"]["description"] == "D"
                assert listed["x://fn"]["size"] == 3
                link.knows(listed["x://fn"], {"icons": "2025-11-25", "_meta": "2025-06-18"})
                link.knows(listed["x://bytes"], {"title": "2025-06-18"})
                link.knows(listed["x://json"]["annotations"], {"lastModified": "2025-06-18"})
                templates = {item["uriTemplate"]: item for item in await c.list_templates()}
                assert list(templates) == ["x://async/{name}/{number}", "files://{+path}"]
                assert templates["x://async/{name}/{number}"]["description"] == "Look up."
                assert await c.read("x://text") == "héllo"
                assert await c.read("x://bytes") == b"\0\xff"
                assert await c.read("x://json") == '{"a":[1]}'
                assert await c.read("x://fn") == "from a function"
                assert json.loads(await c.read("x://async/a%20b/7")) == {
                    "name": "a b", "number": 7, "uri": "x://async/a%20b/7",
                }  # fmt: skip
                assert await c.read("files://a/b/c") == b"a/b/c"
                assert await c.read("x://image") == PNG
                assert await c.read("x://list") == ["one", b"\0", "three"]
                result = await c.read_resource("x://list")
                assert [item["uri"] for item in result["contents"]] == [
                    "x://list/1", "x://list/2", "x://list",
                ]  # fmt: skip
                kinds = {}
                for uri in ("x://text", "x://bytes", "x://json", "x://image"):
                    (contents,) = (await c.read_resource(uri))["contents"]
                    kinds[uri] = contents["mimeType"]
                assert list(kinds.values()) == [
                    "text/x", "application/octet-stream", "application/json", "image/png",
                ]  # fmt: skip

        run(main())

    def test_unknown_resources_are_not_found(self, link):
        """server/resources#error-handling, of all revisions"""

        async def main():
            async with link.connect(self.app()) as c:
                for uri in ("x://none", "", "files:", "x://text/"):
                    with pytest.raises(m.RemoteError, match="not found") as caught:
                        await c.read(uri)
                    code = -32602 if link.modern else -32002
                    assert (caught.value.code, caught.value.data) == (code, {"uri": uri})
                with pytest.raises(m.RemoteError, match="number: expected integer") as caught:
                    await c.read("x://async/a/b")
                assert caught.value.code == -32602

        run(main())

    def test_subscribers_hear_of_updates_and_after_unsubscribing_nothing(self, link):
        """spec 2025-11-25: server/resources#subscriptions"""
        app = self.app()

        async def main():
            heard = []
            async with link.connect(app, on_resource_updated=lambda p: heard.append(p["uri"])) as c:
                app.resource_updated("x://text")
                await c.subscribe("x://text", lambda p: heard.append("callback"))
                async with c.subscribe("files://a/b") as updates:
                    app.resource_updated("x://text")
                    app.resource_updated("x://json")
                    await eventually(lambda: heard == ["callback", "x://text"])
                    executor = asyncio.get_running_loop().run_in_executor
                    await executor(None, app.resource_updated, "files://a/b")
                    assert bare(await updates.__anext__()) == {"uri": "files://a/b"}
                await c.unsubscribe("x://text")
                if link.modern:  # nobody answers the end of a subscription
                    await eventually(lambda: not app.feeds)
                app.resource_updated("x://text")
                app.resource_updated("files://a/b")
                await c.ping()
                assert heard[2:] == ["files://a/b"]

        with on_the_wire() as sent:
            run(main())
        assert [p["uri"] for p in of_method(sent, "notifications/resources/updated")] == [
            "x://text", "files://a/b",
        ]  # fmt: skip

    def test_an_update_on_its_way_is_not_sent_after_the_unsubscription(self):
        app = self.app()

        async def main():
            async with raw_client(app) as raw:
                await raw.initialize()
                await raw.ask("resources/subscribe", {"uri": "x://text"})
                executor = asyncio.get_running_loop().run_in_executor
                asking = asyncio.ensure_future(
                    raw.ask("resources/unsubscribe", {"uri": "x://text"})
                )
                await executor(None, app.resource_updated, "x://text")
                await asking
                await raw.ask("ping")
                late = [msg for msg in raw.heard if "updated" in msg.get("method", "")]
                assert len(late) <= 1
                del raw.heard[:]
                app.resource_updated("x://text")
                await raw.ask("ping")
                assert raw.heard == []

        run(main())

    def test_subscriptions_are_bounded_and_must_lead_somewhere(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_SUBSCRIPTIONS", 2)

        async def main():
            async with raw_client(self.app()) as raw:
                await raw.initialize()
                subscribe = "resources/subscribe"
                assert (await raw.error(subscribe, {"uri": "x://none"}))[0] == -32002
                for uri in ("x://text", "files://a", "x://text"):
                    assert (await raw.ask(subscribe, {"uri": uri}))["result"] == {}
                code, message = await raw.error(subscribe, {"uri": "files://b"})
                assert (code, message) == (503, "more than 2 subscriptions")
                await raw.ask("resources/unsubscribe", {"uri": "x://text"})
                assert "result" in await raw.ask(subscribe, {"uri": "files://b"})

        run(main())


class TestPrompts:
    """spec 2025-11-25: server/prompts"""

    def app(self):
        app = m.Server()

        @app.prompt(title="Review", icons=[ICON], meta={"a": 1})
        def review(
            code: typing.Annotated[str, {"title": "Code"}],
            lines: int = 3,
            style: typing.Literal["kind", "strict"] = "kind",
            strict: bool = False,
        ):
            """Review code.

            Args:
                code: what to look at
            """
            return f"{style}: {code!r} {lines!r} {strict!r}"

        @app.prompt
        async def talk(ctx: m.Context):
            return [
                "one",
                m.Message("two", role="assistant"),
                m.Image(PNG),
                m.Message([m.Resource("x://r", "inside"), m.Audio(b"RIFF")], role="assistant"),
                {"role": "user", "content": {"type": "text", "text": "as it is"}},
                m.Link("x://l", "ell"),
            ]

        @app.prompt
        def whole():
            message = {"role": "user", "content": {"type": "text", "text": "x"}}
            return {"description": "made", "messages": [message]}

        return app

    def test_prompts_are_listed_with_their_arguments(self, link):
        async def main():
            async with link.connect(self.app()) as c:
                review, talk, _ = await c.list_prompts()
                assert (review["name"], review["description"]) == ("review", "Review code.")
                link.knows(
                    review, {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"}
                )
                first = review["arguments"][0]
                link.knows(first, {"title": "2025-06-18"})
                assert first["description"] == "what to look at"
                assert [(a["name"], a["required"]) for a in review["arguments"]] == [
                    ("code", True), ("lines", False), ("style", False), ("strict", False),
                ]  # fmt: skip
                assert not talk.get("arguments")

        run(main())

    def test_arguments_are_strings_on_the_wire_and_typed_in_the_function(self, link):
        async def main():
            async with link.connect(self.app()) as c:
                result = await c.get_prompt("review", {"code": "3", "lines": 5, "strict": True})
                assert bare(result) == {
                    "description": "Review code.",
                    "messages": [
                        {"role": "user", "content": {"type": "text", "text": "kind: '3' 5 True"}}
                    ],
                }
                for arguments, problem in [
                    ({}, "code"),
                    ({"code": "x", "lines": "many"}, "lines: expected integer"),
                    ({"code": "x", "style": "rude"}, "style"),
                    ({"code": "x", "other": "y"}, "other"),
                ]:
                    with pytest.raises(m.RemoteError, match=problem) as caught:
                        await c.get_prompt("review", arguments)
                    assert caught.value.code == -32602
                with pytest.raises(m.RemoteError, match="Unknown prompt: revue; did you mean"):
                    await c.get_prompt("revue")

        with on_the_wire() as sent:
            run(main())
        said = of_method(sent, "prompts/get")[0]["arguments"]
        assert said == {"code": "3", "lines": "5", "strict": "true"}

    def test_messages_have_roles_and_one_block_each(self, link):
        async def main():
            async with link.connect(self.app()) as c:
                assert (await c.get_prompt("whole"))["description"] == "made"
                messages = (await c.get_prompt("talk"))["messages"]
                kinds = [(message["role"], message["content"]["type"]) for message in messages]
                assert kinds == [
                    ("user", "text"),
                    ("assistant", "text"),
                    ("user", "image"),
                    ("assistant", "resource"),
                    ("assistant", "audio" if link.since("2025-03-26") else "text"),
                    ("user", "text"),
                    ("user", "resource_link" if link.since("2025-06-18") else "text"),
                ]

        run(main())


class TestCompletion:
    """spec 2025-11-25: server/utilities/completion"""

    def app(self):
        app = m.Server()

        @app.prompt
        def paint(
            colour: Colour,
            style: typing.Optional[typing.Literal["Soft", "sharp", "solid"]] = None,
            bright: bool = True,
            city: str = "",
            free: str = "",
        ):
            return "x"

        @app.resource("x://{country}/{city}")
        def place(country: str, city: str) -> str:
            return city

        @app.complete("paint", "city")
        def city(value):
            return [f"{value}{n}" for n in range(250)]

        @app.complete("x://{country}/{city}", "city")
        async def city_of(value: str, arguments: dict, ctx: m.Context):
            if "country" in arguments:
                return (f"{value} in {arguments['country']}" for _ in range(100))
            return None

        app.add_resource("x://static", "text")
        return app

    def test_choices_complete_by_themselves_and_functions_the_rest(self, link):
        async def main():
            async with link.connect(self.app()) as c:
                assert await c.complete("paint", "colour", "") == ["red", "blue"]
                assert await c.complete("paint", "style", "s") == ["Soft", "sharp", "solid"]
                assert await c.complete("paint", "style", "SO") == ["Soft", "solid"]
                assert await c.complete("paint", "bright", "t") == ["true"]
                assert await c.complete("paint", "free", "x") == []
                assert await c.complete("paint", "none", "x") == []
                many = await c.complete_full("paint", "city", "a")
                assert many["values"] == [f"a{n}" for n in range(100)]
                assert (many["total"], many["hasMore"]) == (250, True)
                template = "x://{country}/{city}"
                assert await c.complete(template, "country", "x") == []
                assert await c.complete(template, "city", "B") == []
                few = await c.complete_full(template, "city", "B", {"country": "DE"})
                if link.since("2025-06-18"):
                    assert few == {"values": ["B in DE"] * 100, "total": 100, "hasMore": False}
                else:  # an older server would not know what the context is
                    assert few["values"] == []
                assert await c.complete("x://static", "a", "b") == []
                for ref in ("paintt", "x://{nothing}", {"type": "ref/odd"}, {}):
                    with pytest.raises(m.RemoteError) as caught:
                        await c.complete(ref, "a", "b")
                    assert caught.value.code == -32602

        run(main())

    @pytest.mark.parametrize(
        "params",
        [
            {"ref": {"type": "ref/prompt", "name": "paint"}, "argument": {"name": "city"}},
            {"ref": {"type": "ref/prompt", "name": "paint"}, "argument": {"name": 1, "value": ""}},
            {"ref": {"type": "ref/prompt"}, "argument": {"name": "a", "value": "b"}},
            {"ref": {"type": ["ref/prompt"]}, "argument": {"name": "a", "value": "b"}},
            {"ref": {"type": "ref/resource", "uri": 5}, "argument": {"name": "a", "value": "b"}},
            {"ref": "paint", "argument": {"name": "a", "value": "b"}},
            {"ref": {}, "argument": {"name": "a", "value": "b"}, "context": 5},
            {"argument": {"name": "a", "value": "b"}},
        ],
    )
    def test_malformed_requests_are_invalid_parameters(self, params):
        async def main():
            async with raw_client(self.app()) as raw:
                await raw.initialize()
                assert (await raw.error("completion/complete", params))[0] == -32602

        run(main())

    def test_a_malformed_context_counts_as_none(self):
        async def main():
            async with raw_client(self.app()) as raw:
                await raw.initialize()
                for context in ({}, {"arguments": 5}, {"arguments": None}):
                    params = {
                        "ref": {"type": "ref/resource", "uri": "x://{country}/{city}"},
                        "argument": {"name": "city", "value": "b"},
                        "context": context,
                    }
                    answer = await raw.ask("completion/complete", params)
                    assert answer["result"]["completion"]["values"] == []

        run(main())


class TestLogging:
    """spec 2025-11-25: server/utilities/logging"""

    def test_messages_above_the_threshold_are_sent(self, link):
        app = m.Server()

        @app.tool
        async def speak(ctx: m.Context):
            for level in m.LOG_LEVELS:
                await ctx.log(level, level)
            await ctx.debug(0, logger="x")
            await ctx.notice([1], logger="x")
            await ctx.warning("w")
            await ctx.error(None)
            await ctx.critical({"c": 1})
            with pytest.raises(ValueError, match="no log level"):
                await ctx.log("loud", "?")

        levels = "debug info notice warning error critical alert emergency".split()
        rest = [("debug", 0, "x"), ("notice", [1], "x"), ("warning", "w", None)]
        rest += [("error", None, None), ("critical", {"c": 1}, None)]

        async def main():
            for threshold in (None, *levels):
                heard = []
                async with link.connect(app, log=lambda *log, to=heard: to.append(log)) as c:
                    if threshold:
                        await c.set_log_level(threshold)
                    await c.call("speak")
                wanted = levels[levels.index(threshold or "info") :]
                expected = [(level, level, None) for level in wanted]
                assert heard == expected + [log for log in rest if log[0] in wanted]

        run(main())

    def test_an_unknown_level_is_invalid(self):
        async def main():
            async with raw_client(m.Server()) as raw:
                await raw.initialize()
                for params in ({"level": "loud"}, {"level": 3}, {}, {"level": ["info"]}):
                    assert (await raw.error("logging/setLevel", params))[0] == -32602

        run(main())

    def test_a_programs_own_log_reaches_the_client_that_caused_it_or_all(self, link):
        app, log = m.Server(), logging.getLogger("t15.program")
        handler = app.log_handler(logging.DEBUG)

        @app.tool
        def work():
            log.info("from %s", "a thread")
            return "done"

        @app.tool
        async def work_async():
            log.error("on the loop")
            logging.getLogger("mcp_lite").error("never this")
            return "done"

        async def main():
            first, second = [], []
            async with link.connect(app, log=lambda *args: first.append(args)) as c:
                async with link.connect(app, log=lambda *args: second.append(args)) as other:
                    await other.set_log_level("warning")
                    assert await c.call("work") == "done"
                    assert await c.call("work_async") == "done"
                    assert first == [
                        ("info", "from a thread", "t15.program"),
                        ("error", "on the loop", "t15.program"),
                    ]
                    assert second == []
                    log.warning("outside")
                    log.info("quiet")
                    if link.modern:  # what no request caused is for nobody
                        await other.ping()
                        assert (len(first), second) == (2, [])
                        return
                    await eventually(lambda: len(first) == 4 and len(second) == 1)
                    assert [args[:2] for args in first[2:]] == [
                        ("warning", "outside"),
                        ("info", "quiet"),
                    ]
                    executor = asyncio.get_running_loop().run_in_executor
                    await executor(None, log.critical, "elsewhere")
                    await eventually(lambda: len(second) == 2)
                    assert second[1][:2] == ("critical", "elsewhere")
                    log.log(35, "custom level")
                    await eventually(lambda: second[2:] == [("warning", "custom level", "t15.program")])

        log.addHandler(handler)
        logging.getLogger("mcp_lite").addHandler(handler)
        log.setLevel(logging.DEBUG)
        try:
            run(main())
            log.warning("nobody listens any more")
        finally:
            log.removeHandler(handler)
            logging.getLogger("mcp_lite").removeHandler(handler)

    def test_log_records_leave_before_the_answer(self, link):
        app, log = m.Server(), logging.getLogger("t15.order")
        log.addHandler(app.log_handler())
        log.setLevel(logging.INFO)

        @app.tool
        async def work():
            log.info("first")
            return "then"

        async def main():
            async with link.connect(app, log=lambda *args: None) as c:
                await c.call_tool("work")

        with on_the_wire() as sent:
            run(main())
        kinds = [msg.get("method") for msg in sent if "result" in msg or "logger" in str(msg)]
        assert kinds[-2:] == ["notifications/message", None]

    def test_a_flood_of_log_messages_is_cut(self, monkeypatch, caplog):
        monkeypatch.setattr(m, "LOG_RATE", (3, 3600.0))
        app = m.Server()

        @app.tool
        async def flood(ctx: m.Context):
            for n in range(100):
                await ctx.info(n)

        async def main():
            heard = []
            async with m.Client(
                app, log=lambda level, n, logger: heard.append(n), revision="2025-11-25"
            ) as c:
                await c.call("flood")
            assert heard == [0, 1, 2]

        run(main())


class TestPagination:
    """spec 2025-11-25: server/utilities/pagination"""

    def app(self, count):
        app = m.Server(page_size=3)
        for n in range(count):
            app.add_tool(lambda: 1, name=f"t{n}")
            app.add_resource(f"x://{n}", "text")
            app.add_resource(f"x://{n}/{{a}}", lambda a: "text", name=f"r{n}")
            app.add_prompt(lambda: "text", name=f"p{n}")
        return app

    def test_all_four_lists_come_in_pages(self, link):
        async def main(count):
            async with link.connect(self.app(count)) as c:
                assert [t["name"] for t in await c.list_tools()] == [f"t{n}" for n in range(count)]
                uris = [item["uri"] async for item in c.resources()]
                assert uris == [f"x://{n}" for n in range(count)]
                assert len(await c.list_templates()) == count
                names = [item["name"] for item in await c.list_prompts()]
                assert names == [f"p{n}" for n in range(count)]

        for sizes in ([1], [3], [3, 1], [3, 3, 1]):
            with on_the_wire() as sent:
                run(main(sum(sizes)))
            for method, key in [("tools/list", "tools"), ("prompts/list", "prompts")]:
                pages = results_of(sent, method)
                assert [len(page[key]) for page in pages] == sizes
                more = [True] * (len(sizes) - 1)
                assert ["nextCursor" in page for page in pages] == [*more, False]

    def test_cursors_survive_insertions_and_removals(self, link):
        async def main():
            app = self.app(7)
            async with link.connect(app) as c:
                names = []
                async for tool in c.tools():
                    names.append(tool["name"])
                    if tool["name"] == "t2":  # the last of the first page
                        app.remove_tool("t0")
                        app.remove_tool("t2")
                        app.remove_tool("t4")
                        app.add_tool(lambda: 1, name="new")
                assert names == ["t0", "t1", "t2", "t3", "t5", "t6", "new"]

        run(main())

    @pytest.mark.parametrize(
        "cursor", ["", "x", "MQ==", "-1", "dG9vbHMvbGlzdDo", "é", "A" * 1000, 5, [], {}, True]
    )
    def test_an_invalid_cursor_is_invalid_parameters(self, cursor):
        async def main():
            async with raw_client(self.app(4)) as raw:
                await raw.initialize()
                for what in ("tools", "resources", "resources/templates", "prompts"):
                    code, _ = await raw.error(f"{what}/list", {"cursor": cursor})
                    assert code == -32602

        run(main())

    def test_a_cursor_of_another_list_is_invalid(self):
        async def main():
            async with raw_client(self.app(4)) as raw:
                await raw.initialize()
                answer = await raw.ask("tools/list")
                cursor = {"cursor": answer["result"]["nextCursor"]}
                assert (await raw.error("prompts/list", cursor))[0] == -32602
                assert len((await raw.ask("tools/list", cursor))["result"]["tools"]) == 1

        run(main())


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


class TestSampling:
    """spec 2025-11-25: client/sampling"""

    def test_a_model_is_asked_through_the_client(self, link):
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

        async def main():
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

        run(main())

    def test_what_was_not_declared_is_not_asked_for(self, link):
        """spec 2025-11-25: client/sampling#capabilities"""
        tools = [{"name": "t", "inputSchema": {"type": "object"}}]
        app = asking_app(lambda ctx: ctx.sample("?"))
        with_tools = asking_app(lambda ctx: ctx.sample("?", tools=tools, tool_choice={"mode": "auto"}))

        async def main():
            async with link.connect(app) as c:
                with pytest.raises(link.unasked, match="did not declare the capability 'sampling'"):
                    await c.call("tool")
            async with link.connect(with_tools, sample=lambda params: "x") as c:
                with pytest.raises(link.unasked, match="'sampling.tools'"):
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
                    with pytest.raises(m.ToolError, match="'sampling.tools'"):
                        await c.call("tool")

        with on_the_wire() as sent:
            run(main())
        asked = of_method(sent, "sampling/createMessage")
        assert len(asked) == link.since("2025-11-25")
        assert all(params["tools"] == tools for params in asked)

    def test_messages_of_several_blocks_are_for_revisions_that_have_them(self, link):
        two = m.Message(["a", m.Image(PNG)])
        app = asking_app(lambda ctx: ctx.sample(two, include_context="thisServer"))

        async def main():
            async with link.connect(app, sample=lambda params: ["b", m.Image(PNG)]) as c:
                await c.call("tool")

        with on_the_wire() as sent:
            run(main())
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

    @pytest.mark.parametrize("answer", [{}, {"content": "x"}, {"role": "assistant", "content": 5}])
    def test_a_malformed_answer_fails_the_tool_alone(self, answer):
        app = asking_app(lambda ctx: ctx.sample("?"))

        async def main():
            async with raw_client(app) as raw:
                await raw.initialize(capabilities={"sampling": {}})
                call = asyncio.ensure_future(raw.ask("tools/call", {"name": "tool"}))
                await eventually(lambda: raw.heard)
                await raw.say({"jsonrpc": "2.0", "id": raw.heard[0]["id"], "result": answer})
                assert (await call)["result"]["isError"]

        run(main())
        assert isinstance(app.seen[0], m.MCPError)


class TestRefusedQuestions:
    """The client's error in answer to a question is no bug of the tool that asked."""

    @pytest.mark.parametrize("masked", [False, True])
    @pytest.mark.parametrize("asks", ["elicit", "sample", "roots"])
    def test_a_refused_question_is_one_line_in_the_log_without_traceback(self, asks, masked, caplog):
        args = {"elicit": ("Name?", str), "sample": ("?",), "roots": ()}[asks]
        app = asking_app(lambda ctx: getattr(ctx, asks)(*args), mask_errors=masked)
        refusal = {"code": -1, "message": "the user said no\nand left"}

        async def main():
            async with raw_client(app) as raw:
                await raw.initialize(capabilities={"elicitation": {}, "sampling": {}, "roots": {}})
                call = asyncio.ensure_future(raw.ask("tools/call", {"name": "tool"}))
                await eventually(lambda: raw.heard)
                await raw.say({"jsonrpc": "2.0", "id": raw.heard[0]["id"], "error": refusal})
                return (await call)["result"]

        result = run(main())
        assert result["isError"]
        assert ("said no" in result["content"][0]["text"]) is not masked
        assert isinstance(app.seen[0], m.RemoteError)
        (record,) = [record for record in caplog.records if "failed" in record.getMessage()]
        assert "said no" in record.getMessage() and "\n" not in record.getMessage()
        assert not record.exc_info and "Traceback" not in caplog.text


class TestRoots:
    """spec 2025-11-25: client/roots"""

    def test_roots_are_paths_uris_or_dicts_and_may_change(self, link, tmp_path):
        app = asking_app(lambda ctx: ctx.roots())
        changes = []
        app.on("notifications/roots/list_changed")(lambda params: changes.append(params))
        given = [str(tmp_path), "file:///a", {"uri": "file:///b", "name": "B", "_meta": {"c": 1}}]

        async def main():
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

        run(main())
        assert len(changes) == (not link.modern)
        here = {"uri": tmp_path.as_uri(), "name": tmp_path.name}
        first, second, third, none, missing = app.seen
        link.knows(first[2], {"_meta": "2025-06-18"})
        first[2].pop("_meta", None)
        assert first == [here, {"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]
        assert (second, third, none) == ([{"uri": "file:///new"}], [here], [])
        assert isinstance(missing, m.CapabilityMissing) and missing.capability == "roots"


FORMS = [  # what is asked for, the schema of the only field, what the client answers, the value
    (bool, {"type": "boolean"}, True, True),
    (str, {"type": "string"}, "x", "x"),
    (int, {"type": "integer"}, 5, 5),
    (float, {"type": "number"}, 1.5, 1.5),
    (typing.Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
    (Colour, {"type": "string", "enum": ["red", "blue"]}, "red", Colour.RED),
    (["a", "b"], {"type": "string", "enum": ["a", "b"]}, "a", "a"),
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

    def test_one_value_of_every_kind(self, link):
        forms = FORMS + (MULTIPLE if link.since("2025-11-25") else [])

        async def main():
            for wanted, schema, said, value in forms:
                app = asking_app(lambda ctx, wanted=wanted: ctx.elicit("Which?", wanted))
                asked = []

                def elicit(message, schema, said=said, asked=asked):
                    asked.append((message, schema))
                    return said

                async with link.connect(app, elicit=elicit) as c:
                    if not link.since(self.NEEDS):
                        with pytest.raises(m.ToolError, match="'elicitation'"):
                            await c.call("tool")
                        assert not asked
                        continue
                    await c.call("tool")
                assert app.seen == [m.Elicited("accept", value)], wanted
                ((message, form),) = asked
                assert message == "Which?"
                assert form["properties"] == {"value": schema}
                assert (form["type"], form["required"]) == ("object", ["value"])

        with on_the_wire() as sent:
            run(main())
        asked = of_method(sent, "elicitation/create")
        assert len(asked) == len(forms) * link.since(self.NEEDS)
        assert all(("mode" in params) == link.since("2025-11-25") for params in asked)

    def test_a_record_of_fields_with_defaults(self, link):
        app = asking_app(lambda ctx: ctx.elicit("Who?", Person))

        async def main():
            forms = []

            def elicit(message, schema):
                forms.append(schema)
                return {"name": "Ada", "born": "1815-12-10"}

            async with link.connect(app, elicit=elicit) as c:
                await c.call("tool")
            return forms[0]

        if not link.since(self.NEEDS):
            return
        form = run(main())
        person = Person("Ada", born=datetime.date(1815, 12, 10))
        assert app.seen == [m.Elicited("accept", person)]
        assert form["required"] == ["name"]
        fields = form["properties"]
        assert all(set(field) <= m.FORM_WORDS for field in fields.values())
        assert fields["email"]["format"] == "email"
        assert fields["born"] == {"type": "string", "format": "date"}
        assert fields["nick"] == {"type": "string"}
        assert fields["fan"]["default"] is False
        # Before 2025-11-25, only a boolean had a default.
        assert ("default" in fields["age"]) == link.since("2025-11-25")
        assert ("default" in fields["size"]) == link.since("2025-11-25")

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

    def test_a_schema_of_ones_own(self, link):
        schema = self.SCHEMA
        if not link.since("2025-11-25"):  # several choices cannot be asked for
            fields = {k: v for k, v in schema["properties"].items() if v["type"] != "array"}
            schema = {**schema, "properties": fields}
        app = asking_app(lambda ctx: ctx.elicit("?", schema))
        said = {"titled": "y", **({"many": ["b"]} if link.since("2025-11-25") else {})}

        async def main():
            async with link.connect(app, elicit=lambda message, schema: said) as c:
                await c.call("tool")

        if not link.since(self.NEEDS):
            return
        with on_the_wire() as sent:
            run(main())
        assert app.seen == [m.Elicited("accept", {"one": "a", "n": 1.5, **said})]
        (params,) = of_method(sent, "elicitation/create")
        if link.since("2025-11-25"):
            assert params["requestedSchema"] == schema
        else:
            assert params["requestedSchema"]["properties"] == {
                "one": {"type": "string", "enum": ["a", "b"]},
                "titled": {"type": "string", "enum": ["x", "y"], "enumNames": ["X", "Y"]},
                "legacy": {"type": "string", "enum": ["l"], "enumNames": ["Ell"]},
                "n": {"type": "number"},
            }

    @pytest.mark.parametrize(
        "said, action",
        [
            (None, "decline"),
            (False, "decline"),
            ("decline", "decline"),
            ("cancel", "cancel"),
            (("cancel", None), "cancel"),
            ({"action": "cancel"}, "cancel"),
            (True, "accept"),
            ("accept", "accept"),
            ({}, "accept"),
            (("accept", {}), "accept"),
            ({"action": "accept", "content": {}}, "accept"),
        ],
    )
    def test_a_person_may_decline_or_cancel(self, said, action):
        app = asking_app(lambda ctx: ctx.elicit("Sure?"))

        async def elicit(message, schema):
            return said

        async def main():
            async with m.Client(app, elicit=elicit, revision="2025-11-25") as c:
                await c.call("tool")

        run(main())
        assert app.seen == [m.Elicited(action, {} if action == "accept" else None)]

    @pytest.mark.parametrize("said", [5, "x", {"value": "x"}, {"value": None}, {"other": 1}, []])
    def test_a_client_does_not_send_what_was_not_asked_for(self, said, caplog):
        app = asking_app(lambda ctx: ctx.elicit("Sure?", bool))

        async def main():
            async with m.Client(app, elicit=lambda *_: said, revision="2025-11-25") as c:
                with pytest.raises(m.ToolError, match="does not fit the form"):
                    await c.call("tool")

        run(main())
        assert isinstance(app.seen[0], m.RemoteError) and app.seen[0].code == -32603
        assert "not asked for" in caplog.text

    @pytest.mark.parametrize(
        "answer",
        [
            {},
            {"action": "maybe"},
            {"action": 5},
            {"action": "accept"},
            {"action": "accept", "content": {}},
            {"action": "accept", "content": []},
            {"action": "accept", "content": {"value": "x"}},
        ],
    )
    def test_a_wrong_answer_fails_the_tool_alone(self, answer):
        app = asking_app(lambda ctx: ctx.elicit("How many?", int))

        async def main():
            async with raw_client(app) as raw:
                await raw.initialize(capabilities={"elicitation": {}})
                call = asyncio.ensure_future(raw.ask("tools/call", {"name": "tool"}))
                await eventually(lambda: raw.heard)
                await raw.say({"jsonrpc": "2.0", "id": raw.heard[0]["id"], "result": answer})
                assert (await call)["result"]["isError"]
                assert "result" in await raw.ask("ping")

        run(main())
        assert isinstance(app.seen[0], m.MCPError)

    @pytest.mark.parametrize(
        "wanted",
        [
            Spot,  # fine, for comparison
            typing.List[int],
            typing.Dict[str, int],
            typing.List[Spot],
            typing.Literal[1, 2],
            typing.Union[int, str],
            {"type": "object", "properties": {"a": {"type": "object"}}},
            {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        ],
    )
    def test_a_form_is_flat(self, wanted):
        """spec: client/elicitation#requested-schema"""
        if wanted is Spot:
            assert list(m.Form(wanted).schema["properties"]) == ["x", "y"]
        else:
            with pytest.raises(TypeError, match="a form cannot ask for"):
                m.Form(wanted)

    def test_a_url_may_be_opened_where_client_and_revision_can(self, link):
        app = asking_app(lambda ctx: ctx.elicit_url("Sign in", "https://example.com/", id="e1"))

        async def main():
            opened = []

            def elicit_url(message, url):
                opened.append((message, url))
                return True

            async with link.connect(app, elicit=lambda *_: None) as c:
                with pytest.raises(link.unasked, match="'elicitation.url'"):
                    await c.call("tool")
            async with link.connect(app, elicit_url=elicit_url) as c:
                if link.since("2025-11-25"):
                    await c.call("tool")
                    assert app.seen[-1] == m.Elicited("accept", None)
                    assert opened == [("Sign in", "https://example.com/")]
                else:
                    with pytest.raises(m.ToolError, match="'elicitation"):
                        await c.call("tool")
                    assert not opened

        with on_the_wire() as sent:
            run(main())
        asked = of_method(sent, "elicitation/create")
        assert len(asked) == link.since("2025-11-25")
        for params in asked:
            assert params["mode"] == "url" and ("elicitationId" in params) != link.modern
            assert link.modern or params["elicitationId"] == "e1"

    def test_a_client_that_only_opens_urls_is_not_asked_to_fill_in_forms(self):
        """spec 2025-11-25: client/elicitation#capabilities"""
        app = asking_app(lambda ctx: ctx.elicit("?", bool))

        async def main():
            async with m.Client(app, elicit_url=lambda *_: True, revision="2025-11-25") as c:
                with pytest.raises(m.ToolError, match="'elicitation.form'"):
                    await c.call("tool")

        with on_the_wire() as sent:
            run(main())
        assert not of_method(sent, "elicitation/create")
        assert of_method(sent, "initialize")[0]["capabilities"]["elicitation"] == {"url": {}}


class TestConversations:
    """The life of a conversation, as a server sees it."""

    @pytest.mark.parametrize("wanted", ["1999-01-01", "2027-01-01", "", "draft", "DRAFT-2025"])
    def test_an_unknown_revision_is_answered_with_the_newest(self, wanted):
        """spec 2025-11-25: basic/lifecycle#version-negotiation"""

        async def main():
            async with raw_client(m.Server()) as raw:
                assert (await raw.initialize(wanted))["protocolVersion"] == "2025-11-25"

        run(main())

    @pytest.mark.parametrize("wanted", LEGACY_REVISIONS)
    def test_a_known_revision_is_answered_with_itself(self, wanted):
        async def main():
            async with raw_client(m.Server("s", "1")) as raw:
                answer = await raw.initialize(wanted)
                assert answer["protocolVersion"] == wanted
                assert answer["serverInfo"] == {"name": "s", "version": "1"}
                assert "instructions" not in answer

        run(main())

    @pytest.mark.parametrize(
        "params",
        [
            {},
            {"protocolVersion": 5, "capabilities": {}, "clientInfo": {}},
            {"protocolVersion": "x", "capabilities": [], "clientInfo": {}},
            {"protocolVersion": "x", "capabilities": {}},
        ],
    )
    def test_a_malformed_initialize_is_refused_and_may_be_repeated(self, params):
        async def main():
            async with raw_client(m.Server()) as raw:
                assert (await raw.error("initialize", params))[0] == -32602
                assert (await raw.initialize())["protocolVersion"] == "2025-11-25"

        run(main())

    def test_initialize_happens_once(self):
        async def main():
            async with raw_client(plain_app()) as raw:
                await raw.initialize("2025-03-26")
                assert (await raw.error("initialize", raw_hello()))[0] == -32600
                await raw.ask("tools/call", {"name": "add", "arguments": {"a": 1}})
                answer = await raw.ask("tools/list")
                assert "title" not in answer["result"]["tools"][0]

        run(main())

    def test_requests_before_initialize_are_served_as_the_newest_handshake_revision(self):
        """One line piped into a server is answered."""

        async def main():
            async with raw_client(plain_app()) as raw:
                call = {"name": "add", "arguments": {"a": "x"}}
                assert (await raw.ask("tools/call", call))["result"]["isError"]  # as of 2025-11-25
                assert len((await raw.ask("tools/list"))["result"]["tools"]) == 2
                assert (await raw.initialize("2024-11-05"))["protocolVersion"] == "2024-11-05"
                assert (await raw.error("tools/call", call))[0] == -32602

        run(main())

    def test_strict_servers_name_the_missing_step(self):
        async def main():
            async with raw_client(plain_app(strict=True)) as raw:
                code, message = await raw.error("tools/list")
                assert code == -32600 and "initialize" in message
                assert (await raw.ask("ping"))["result"] == {}
                await raw.initialize()
                assert "result" in await raw.ask("tools/list")

        run(main())

    def test_what_is_not_offered_does_not_exist(self):
        async def main():
            async with raw_client(m.Server()) as raw:
                await raw.initialize()
                for method in (
                    "tools/list", "tools/call", "resources/list", "resources/subscribe",
                    "prompts/get", "completion/complete", "nonsense", "", "roots/list",
                    "sampling/createMessage", "server/discover", "subscriptions/listen",
                    "notifications/initialized", "rpc.discover",
                ):  # fmt: skip
                    assert (await raw.error(method))[0] == -32601, method

        run(main())

    @pytest.mark.parametrize(
        "method, params",
        [
            ("tools/call", {}),
            ("tools/call", {"name": 5}),
            ("tools/call", {"name": "add", "arguments": [1]}),
            ("tools/call", {"name": "add", "arguments": "x"}),
            ("resources/read", {}),
            ("resources/read", {"uri": 5}),
            ("resources/subscribe", {"uri": None}),
            ("prompts/get", {"name": ["greet"]}),
            ("prompts/get", {"name": "greet", "arguments": [1]}),
            ("tools/list", {"cursor": 5}),
        ],
    )
    def test_parameters_of_the_wrong_type_are_invalid(self, method, params):
        async def main():
            async with raw_client(plain_app()) as raw:
                await raw.initialize()
                assert (await raw.error(method, params))[0] == -32602
                assert "result" in await raw.ask("ping")

        run(main())

    def test_arguments_are_counted(self):
        app = m.Server()
        app.add_tool(lambda args: len(args), name="t", input_schema={"type": "object"})

        async def main():
            async with raw_client(app) as raw:
                await raw.initialize("2025-06-18")
                full = {f"a{n}": n for n in range(1000)}
                answer = await raw.ask("tools/call", {"name": "t", "arguments": full})
                assert answer["result"]["content"][0]["text"] == "1000"
                params = {"name": "t", "arguments": {**full, "more": 1}}
                assert await raw.error("tools/call", params) == (-32602, "more than 1000 arguments")

        run(main())

    def test_requests_are_rationed_per_session(self):
        """spec: server/tools#security-considerations -- "Rate limit tool invocations" """
        app = plain_app(rate_limit=(2, 3600))

        async def main():
            async with raw_client(app) as first, raw_client(app) as second:
                for raw in (first, second):
                    await raw.initialize()
                    for _ in range(2):
                        assert "result" in await raw.ask("tools/list")
                    code, message = await raw.error("tools/list")
                    assert (code, message) == (429, "more than 2 requests in 3600 seconds")
                    assert (await raw.ask("ping"))["result"] == {}

        run(main())

    def test_requests_in_flight_are_bounded(self):
        app, gate = m.Server(max_in_flight=2), []

        @app.tool
        async def wait() -> str:
            await gate[0].wait()
            return "done"

        async def main():
            gate.append(asyncio.Event())
            async with m.Client(app, revision="2025-11-25") as c:
                calls = [asyncio.ensure_future(c.call("wait")) for _ in range(5)]
                await eventually(lambda: len(next(iter(app.conversations)).peer.incoming) == 2)
                for _ in range(20):
                    await asyncio.sleep(0)
                assert len(next(iter(app.conversations)).peer.incoming) == 2
                gate[0].set()
                assert await asyncio.gather(*calls) == ["done"] * 5

        run(main())

    def test_batches_are_for_the_one_revision_that_has_them(self):
        """spec 2025-03-26: basic/index#batching"""

        async def main():
            batch = [
                {"jsonrpc": "2.0", "id": "a", "method": "ping"},
                {"jsonrpc": "2.0", "method": "notifications/acme"},
                {"jsonrpc": "2.0", "id": "b", "method": "nonsense"},
                {"jsonrpc": "2.0", "id": "c", "method": "initialize", "params": raw_hello()},
                5,
            ]
            for revision in LEGACY_REVISIONS:
                async with raw_client(m.Server()) as raw:
                    await raw.initialize(revision)
                    await raw.say(batch)
                    answer = await raw.hear()
                    if revision == "2025-03-26":
                        errors = {a.get("id"): a.get("error", {}).get("code") for a in answer}
                        assert errors == {"a": None, "b": -32601, "c": -32600, None: -32600}
                    else:
                        assert answer["error"]["code"] == -32600

        run(main())

    def test_lifespan_is_entered_once_and_left_when_the_last_has_gone(self):
        steps = []

        @contextlib.asynccontextmanager
        async def lifespan(server):
            steps.append(("enter", server.name))
            await asyncio.sleep(0)  # so that the second comes while the first is entering
            try:
                yield {"db": 1}
            finally:
                await asyncio.sleep(0)
                steps.append("leave")

        app = m.Server("s", lifespan=lifespan)
        app.add_tool(lambda ctx: ctx.lifespan, name="look")

        @app.tool
        def get(ctx: m.Context) -> dict:
            return ctx.lifespan

        async def main():
            first, second = m.Client(app, revision="2025-11-25"), m.Client(app)
            await asyncio.gather(first.connect(), second.connect())
            assert await first.call("get") == {"db": 1}
            await first.close()
            assert await second.call("get") == {"db": 1}
            assert steps == [("enter", "s")]
            await second.close()
            assert steps == [("enter", "s"), "leave"]
            async with m.Client(app) as c:
                assert await c.call("get") == {"db": 1}
            assert len(steps) == 4

        app.remove_tool("look")
        run(main())

    def test_lifespan_is_left_by_the_task_that_entered_it(self):
        """anyio's cancel scopes, and with them many libraries, demand it."""
        tasks = []

        @contextlib.asynccontextmanager
        async def lifespan(server):
            tasks.append(asyncio.current_task())
            yield
            tasks.append(asyncio.current_task())

        async def main():
            app = m.Server(lifespan=lifespan)
            first, second = m.Client(app), m.Client(app)
            await first.connect()
            await second.connect()
            await first.close()
            await second.close()

        run(main())
        assert len(tasks) == 2 and tasks[0] is tasks[1]

    def test_lifespan_that_fails_is_the_root_cause(self, link, caplog):
        @contextlib.asynccontextmanager
        async def lifespan(server):
            raise RuntimeError("no database")
            yield

        app = m.Server(lifespan=lifespan)

        async def main():
            if link.transport == "memory":
                with pytest.raises(m.ConnectionClosed, match="RuntimeError: no database"):
                    async with link.connect(app, timeout=5):
                        pass
            else:
                with pytest.raises((m.ConnectionClosed, RuntimeError)):
                    async with link.connect(app, timeout=5):
                        pass

        run(main())

    def test_lifespan_that_fails_at_the_end_is_heard_of(self, caplog):
        @contextlib.asynccontextmanager
        async def lifespan(server):
            yield
            raise RuntimeError("cannot close")

        async def main():
            async with m.Client(m.Server(lifespan=lifespan)):
                pass

        run(main())
        assert "cannot close" in caplog.text

    def test_a_server_in_a_thread_serves_a_client_elsewhere(self):
        app = plain_app()

        @app.tool
        def where() -> str:
            return threading.current_thread().name

        ours, theirs = m.memory_transports()
        handle = app.start_in_thread(theirs)

        async def main():
            async with m.Client(ours, revision="2025-11-25") as c:
                assert await c.call("add", {"a": 1}) == 1
                assert await c.call("where") != threading.current_thread().name
                changed = asyncio.Event()
                c.on("notifications/tools/list_changed")(lambda params: changed.set())
                app.add_tool(lambda: 1, name="new")  # from a thread that is not the server's
                await changed.wait()

        try:
            run(main())
            assert handle.url is None
        finally:
            handle.stop()
            handle.stop()
        with pytest.raises(ValueError, match="no transport 'pigeon'"):
            app.start_in_thread("pigeon")

    def test_a_server_in_a_thread_can_be_stopped_while_it_serves(self):
        app = m.Server()

        @app.tool
        async def wait():
            await asyncio.Event().wait()

        ours, theirs = m.memory_transports()
        handle = app.start_in_thread(theirs)

        async def main():
            async with m.Client(ours, revision="2025-11-25") as c:
                call = asyncio.ensure_future(c.call("wait"))
                await eventually(lambda: app.conversations and c.peer.outgoing.pending)
                await asyncio.get_running_loop().run_in_executor(None, handle.stop)
                with pytest.raises(m.ConnectionClosed):
                    await call

        run(main())
        assert not handle._thread.is_alive()

    def test_announcements_wait_until_the_client_is_ready(self):
        """spec 2025-11-25: basic/lifecycle#initialization -- not before `initialized`"""
        app = plain_app()

        async def main():
            async with raw_client(app) as raw:
                await raw.ask("initialize", raw_hello())
                app.add_tool(lambda: 1, name="x")
                app.remove_tool("x")
                await raw.ask("ping")
                assert raw.heard == []
                await raw.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
                told = await raw.hear()
                assert told["method"] == "notifications/tools/list_changed"
                await raw.ask("ping")
                assert raw.heard == []

        run(main())

    def test_sessions_do_not_share_their_state(self):
        """users-and-competitors 4.4, rule 5: state per connection."""
        app = plain_app()

        async def main():
            async with raw_client(app) as old, raw_client(app) as new:
                await old.initialize("2024-11-05", {"roots": {}})
                await new.initialize("2025-11-25")
                await old.ask("logging/setLevel", {"level": "emergency"})
                await old.ask("resources/subscribe", {"uri": "x://static"})
                sessions = [c.session for c in app.conversations]
                assert {s.rev.name for s in sessions} == {"2024-11-05", "2025-11-25"}
                assert {s.log_level for s in sessions} == {"emergency", "info"}
                app.resource_updated("x://static")
                await old.ask("ping")
                await new.ask("ping")
                assert len(old.heard) == 1 and new.heard == []

        run(main())
        assert not app.conversations


###############################################################################
# T41. The client
###############################################################################

NEWEST_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "fake"}}
EVERYTHING = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}


class FakeServer(m.Transport):
    """A transport with a server behind it that answers from a table, whatever it says there.

    `answers` gives for a method a result, or a function of the message that gives a list of what
    comes back: messages, or bytes. What is not in the table is not answered.
    """

    name = "fake"

    def __init__(self, answers=None, capabilities=EVERYTHING):
        hello = {**NEWEST_HELLO, "capabilities": capabilities}
        self.answers = {"initialize": hello, "ping": {}, **(answers or {})}
        self.sent = []
        self.ended = False
        self.inbox = []
        self.arrived = asyncio.Event()

    def say(self, *items):
        """Let messages or bytes come from the server."""
        for item in items:
            self.inbox.append(item if isinstance(item, bytes) else json.dumps(item).encode())
        self.arrived.set()

    async def read(self):
        while not self.inbox and not self.ended:
            self.arrived.clear()
            await self.arrived.wait()
        items, self.inbox = self.inbox, []
        return items

    async def write(self, msg):
        if self.ended:
            raise m.ConnectionClosed("the fake server is gone")
        m.encode(msg)  # what a wire could not carry must fail here, too
        for each in msg if isinstance(msg, list) else [msg]:
            self.sent.append(each)
            answer = self.answers.get(each.get("method"))
            if callable(answer):
                self.say(*answer(each))
            elif answer is not None and "id" in each:
                self.say({"jsonrpc": "2.0", "id": each["id"], "result": answer})

    async def close(self):
        self.ended = True
        self.arrived.set()

    def methods(self):
        return [msg.get("method") for msg in self.sent]


def client_of_fake(fake, **options):
    return m.Client(fake, **{"revision": "2025-11-25", "timeout": 5, **options})


def answering(result):
    """Return what answers any request with a result."""
    return lambda msg: [{"jsonrpc": "2.0", "id": msg["id"], "result": result}] if "id" in msg else []


def failing(code, message):
    problem = {"code": code, "message": message}
    return lambda msg: [{"jsonrpc": "2.0", "id": msg["id"], "error": problem}]


class TestConnecting:
    """spec 2025-11-25: basic/lifecycle"""

    @pytest.mark.parametrize("name", ["1999-01-01", "2024-11-05", 5, None, ["2025-11-25"], {}])
    def test_a_server_that_speaks_another_revision_is_left(self, name):
        async def main():
            fake = FakeServer({"initialize": {**NEWEST_HELLO, "protocolVersion": name}})
            with pytest.raises(m.ProtocolError, match="speaks revision .*we speak 2025-11-25"):
                await client_of_fake(fake).connect()
            assert fake.ended and fake.methods() == ["initialize"]

        run(main())

    @pytest.mark.parametrize("name", LEGACY_REVISIONS)
    def test_an_older_revision_is_spoken_when_none_is_pinned(self, name):
        async def main():
            fake = FakeServer(
                {
                    "initialize": {**NEWEST_HELLO, "protocolVersion": name},
                    "server/discover": failing(-32601, "what?"),
                }
            )
            async with m.Client(fake) as c:
                assert c.revision == name
            assert fake.methods()[-2:] == ["initialize", "notifications/initialized"]
            assert fake.sent[-2]["params"]["protocolVersion"] == "2025-11-25"

        run(main())

    @pytest.mark.parametrize(
        "answer",
        [
            {"protocolVersion": "2025-11-25"},
            {"protocolVersion": "2025-11-25", "capabilities": []},
            {"protocolVersion": "2025-11-25", "capabilities": None},
            {},
        ],
    )
    def test_a_malformed_handshake_is_a_protocol_error(self, answer):
        async def main():
            with pytest.raises(m.ProtocolError):
                await client_of_fake(FakeServer({"initialize": answer})).connect()

        run(main())

    def test_what_a_sloppy_server_says_of_itself_does_not_matter(self):
        async def main():
            hello = {**NEWEST_HELLO, "serverInfo": "me", "instructions": 5, "more": [1]}
            async with client_of_fake(FakeServer({"initialize": hello})) as c:
                assert (c.server_info, c.instructions, c.server_capabilities) == ({}, None, {})

        run(main())

    def test_a_refused_handshake_is_the_servers_error(self):
        async def main():
            fake = FakeServer({"initialize": failing(-32000, "not for you")})
            with pytest.raises(m.RemoteError, match=r"not for you \(-32000\)"):
                await client_of_fake(fake).connect()
            assert fake.ended

        run(main())

    def test_a_silent_server_is_given_up(self):
        class Silent(FakeServer):
            def hint(self):
                return 'it printed to stdout: "hello"'

        async def main():
            fake = Silent({"initialize": lambda msg: []})
            with pytest.raises(m.RequestTimeout, match="fake did not answer initialize.*hello"):
                await client_of_fake(fake, timeout=0.01).connect()
            assert fake.methods() == ["initialize"]  # which must not be cancelled
            assert fake.ended

        run(main())

    def test_a_server_that_dies_says_why(self):
        class Dying(FakeServer):
            def explain(self):
                return "exited with status 3; its last words: no such file"

        async def main():
            fake = Dying({"initialize": lambda msg: setattr(fake, "ended", True) or []})
            with pytest.raises(m.ConnectionClosed, match="fake exited with status 3; .*no such file"):
                await client_of_fake(fake).connect()

        run(main())

    def test_a_transport_that_cannot_open_says_why(self):
        class Unreachable(FakeServer):
            async def open(self):
                raise m.ConnectionClosed("command not found: nonesuch")

        async def main():
            fake = Unreachable()
            with pytest.raises(m.ConnectionClosed, match="nonesuch"):
                await client_of_fake(fake).connect()
            assert fake.ended and not fake.sent

        run(main())

    def test_a_connection_that_is_given_up_leaves_nothing(self):
        async def main():
            fake = FakeServer({"initialize": lambda msg: []})
            task = asyncio.ensure_future(client_of_fake(fake).connect())
            await eventually(lambda: fake.sent)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert fake.ended

        run(main())

    def test_misuse_is_told_at_once(self):
        async def main():
            with pytest.raises(ValueError, match="revision 'x' is not one of 2024-11-05"):
                m.Client(m.Server(), revision="x")
            with pytest.raises(TypeError, match="no option 'tiemout'"):
                m.Client(m.Server(), tiemout=3)
            with pytest.raises(TypeError, match="no option 'env'"):
                m.Client(FakeServer(), env={})
            with pytest.raises(TypeError, match="cannot connect to 5"):
                await m.Client(5).connect()
            c = m.Client(m.Server())
            for call in (c.call("x"), c.ping(), c.notify("x"), c.batch([("ping", None)])):
                with pytest.raises(m.ConnectionClosed, match="not connected yet"):
                    await call
            await c.close()
            fake = FakeServer()
            async with client_of_fake(fake) as c:
                with pytest.raises(RuntimeError, match="connects once"):
                    await c.connect()
            found = []
            for call in (c.ping(), c.notify("x"), c.call("x"), c.notify("x")):
                with pytest.raises(m.ConnectionClosed) as caught:
                    await call
                found.append(caught.value)
            assert len({*map(str, found)}) == 1 and c.peer.lost not in found
            assert len({*map(id, found)}) == 4  # each with a traceback of its own

        run(main())

    def test_close_works_twice_and_from_any_task(self, link):
        """users-and-competitors 2.3: a background task owns the connection"""
        app = plain_app()

        @app.tool
        async def wait():
            await asyncio.Event().wait()

        async def main():
            async with link.connect(app) as c:
                call = asyncio.ensure_future(c.call("wait"))
                await eventually(lambda: c.peer.outgoing.pending)
                await asyncio.ensure_future(c.close())
                with pytest.raises(m.ConnectionClosed):
                    await call
                await asyncio.gather(c.close(), c.close())
                await c.close()

        run(main())

    def test_close_works_in_a_callback(self):
        app = plain_app()

        @app.tool
        async def tell(ctx: m.Context):
            await ctx.info("now")
            await asyncio.Event().wait()

        async def main():
            async def log(level, data, logger):
                await c.close()

            async with m.Client(app, log=log, revision="2025-11-25") as c:
                with pytest.raises(m.ConnectionClosed):
                    await c.call("tell")

        run(main())

    def test_what_the_program_raises_goes_through(self, link):
        async def main():
            with pytest.raises(ZeroDivisionError):
                async with link.connect(plain_app()):
                    raise ZeroDivisionError

        run(main())

    def test_a_server_that_fails_is_one_exception_with_the_cause(self, caplog):
        class Broken(m.Server):
            async def serve(self, transport):
                raise OSError("disk full")

        async def main():
            with pytest.raises(m.ConnectionClosed, match="the server failed: OSError: disk full"):
                await m.Client(Broken(), timeout=5).connect()

        run(main())
        assert "disk full" in caplog.text

    def test_what_was_not_declared_is_not_asked_for(self):
        """spec 2025-11-25: basic/lifecycle#operation"""

        async def main():
            fake = FakeServer(capabilities={"resources": {}})
            async with client_of_fake(fake) as c:
                for call, capability in [
                    (c.list_tools(), "tools"),
                    (c.call("x"), "tools"),
                    (c.list_prompts(), "prompts"),
                    (c.complete("x", "y", "z"), "completions"),
                    (c.set_log_level("info"), "logging"),
                    (c.subscribe("x://").open(), "resources.subscribe"),
                    (c.batch([("ping", None), ("tools/list", None)]), "tools"),
                ]:
                    with pytest.raises(m.CapabilityMissing, match=repr(capability)) as caught:
                        await call
                    assert caught.value.capability == capability
                with pytest.raises(m.CapabilityMissing, match="server/discover"):
                    await c.request("server/discover")
            assert fake.methods() == ["initialize", "notifications/initialized"]

        run(main())

    def test_capabilities_follow_from_the_callbacks(self, link):
        everything = {
            "roots": lambda: [],
            "sample": print,
            "elicit": print,
            "elicit_url": print,
            "capabilities": {"experimental": {"a": {}}},
        }

        async def main():
            async with link.connect(m.Server()):
                pass
            async with link.connect(m.Server(), **everything):
                pass

        with on_the_wire() as sent:
            run(main())
        if link.modern:
            said = "io.modelcontextprotocol/clientCapabilities"
            asked = of_method(sent, "server/discover")
            first, second = (params["_meta"][said] for params in asked)
            tasks = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        else:
            first, second = (hello["capabilities"] for hello in of_method(sent, "initialize"))
            tasks = {}
        assert first == tasks
        assert second == {
            "roots": {} if link.modern else {"listChanged": True},
            "sampling": {},
            **({"elicitation": {"form": {}, "url": {}}} if link.since("2025-06-18") else {}),
            "experimental": {"a": {}},
            **tasks,
        }


class TestLists:
    """spec 2025-11-25: server/utilities/pagination"""

    def test_a_server_that_goes_round_in_circles_is_caught(self):
        async def main():
            for cursors in (["a"], ["a", "b"]):
                turn = itertools.cycle(cursors)
                fake = FakeServer(
                    {
                        "tools/list": lambda msg, turn=turn: answering(
                            {"tools": [], "nextCursor": next(turn)}
                        )(msg)
                    }
                )
                async with client_of_fake(fake) as c:
                    with pytest.raises(m.ProtocolError, match="gave the cursor 'a' twice"):
                        await c.list_tools()
                    assert fake.methods().count("tools/list") == len(cursors) + 1

        run(main())

    @pytest.mark.parametrize("pages, fine", [(3, True), (4, False)])
    def test_pages_without_end_are_cut(self, monkeypatch, pages, fine):
        monkeypatch.setattr(m, "MAX_PAGES", 3)

        async def main():
            count = itertools.count(1)
            seen = []

            def answer(msg):
                number = next(count)
                page = {"prompts": [{"name": "p"}]}
                if number < pages:
                    page["nextCursor"] = f"cursor {number}"
                return answering(page)(msg)

            async with client_of_fake(FakeServer({"prompts/list": answer})) as c:
                if fine:
                    assert len(await c.list_prompts()) == 3
                else:
                    with pytest.raises(m.LimitExceeded, match="more than 3 pages"):
                        async for item in c.prompts():
                            seen.append(item)
                    assert len(seen) == 3

        run(main())

    def test_a_list_may_be_left_early(self):
        app = m.Server(page_size=1)
        for n in range(5):
            app.add_tool(lambda: 1, name=f"t{n}")

        async def main():
            async with m.Client(app, revision="2025-11-25") as c:
                tools = c.tools()
                async for tool in tools:
                    if tool["name"] == "t1":
                        break
                await tools.aclose()

        with on_the_wire() as sent:
            run(main())
        assert len(of_method(sent, "tools/list")) == 2

    @pytest.mark.parametrize(
        "answer",
        [
            {},
            {"tools": None},
            {"tools": {}},
            {"tools": "x"},
            {"tools": [5]},
            {"tools": [None]},
            {"tools": [[]]},
            {"tools": [{}]},
            {"tools": [{"name": 5}]},
            {"tools": [{"name": None}]},
            {"tools": [], "nextCursor": 5},
            {"tools": [], "nextCursor": {}},
        ],
    )
    def test_what_is_no_list_is_a_protocol_error(self, answer):
        async def main():
            async with client_of_fake(FakeServer({"tools/list": answer})) as c:
                with pytest.raises(m.ProtocolError, match="malformed|sent|should be"):
                    await c.list_tools()

        run(main())

    def test_null_is_no_cursor(self):
        async def main():
            page = {"tools": [{"name": "t"}], "nextCursor": None}
            async with client_of_fake(FakeServer({"tools/list": page})) as c:
                assert await c.list_tools() == [{"name": "t"}]

        run(main())


class TestCalls:
    """spec 2025-11-25: server/tools"""

    @pytest.mark.parametrize(
        "answer, value",
        [
            ({"content": []}, None),
            ({"content": [{"type": "text", "text": "a"}]}, "a"),
            ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, ["a", "b"]),
            ({"content": [{"type": "image", "data": ""}]}, {"type": "image", "data": ""}),
            ({"content": [{"type": "new", "x": 1}]}, {"type": "new", "x": 1}),
            ({"content": [], "structuredContent": {"result": []}}, []),
            ({"content": [], "structuredContent": {"result": [1]}}, {"result": [1]}),
            ({"content": [{"type": "text", "text": "5"}], "structuredContent": {"result": 5}}, 5),
            (
                {
                    "content": [{"type": "text", "text": '{"result": 5}'}],
                    "structuredContent": {"result": 5},
                },
                {"result": 5},
            ),
            (
                {
                    "content": [{"type": "text", "text": '{"result": "x"}'}],
                    "structuredContent": {"result": '{"result": "x"}'},
                },
                '{"result": "x"}',
            ),
            ({"content": [], "structuredContent": {"result": 1, "x": 2}}, {"result": 1, "x": 2}),
            ({"structuredContent": {"a": 1}}, {"a": 1}),
            ({"content": [], "structuredContent": {}}, {}),
        ],
    )
    def test_the_value_is_the_most_telling_part(self, answer, value):
        async def main():
            fake = FakeServer({"tools/call": answer, "tools/list": {"tools": []}})
            async with client_of_fake(fake) as c:
                assert await c.call("t") == value
                assert await c.call_tool("t") == answer

        run(main())

    @pytest.mark.parametrize(
        "content, text",
        [
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
            ([], "the tool failed without a message"),
            ([{"type": "text", "text": 5}], "the tool failed without a message"),
        ],
    )
    def test_a_failure_is_raised_with_its_text_and_result(self, content, text):
        async def main():
            answer = {"content": content, "isError": True, "structuredContent": {"x": 1}}
            async with client_of_fake(FakeServer({"tools/call": answer})) as c:
                with pytest.raises(m.ToolError) as caught:
                    await c.call("t")
                assert (str(caught.value), caught.value.result) == (text, answer)

        run(main())

    def test_output_is_checked_against_the_schema_of_a_tool_that_was_listed(self, caplog):
        """spec 2025-11-25: server/tools#output-schema"""
        number = {"type": "object", "properties": {"n": {"type": "integer"}}}
        tools = [
            {"name": "good", "inputSchema": {}, "outputSchema": number},
            {"name": "free", "inputSchema": {}},
            {"name": "odd", "inputSchema": {}, "outputSchema": {"$ref": "https://elsewhere/"}},
            {"name": "none", "inputSchema": {}, "outputSchema": 5},
        ]

        async def main():
            out = {"content": [], "structuredContent": {"n": "x"}}
            fake = FakeServer({"tools/call": out, "tools/list": {"tools": tools}})
            async with client_of_fake(fake) as c:
                assert await c.call("good") == {"n": "x"}
                assert "tools/list" not in fake.methods()  # cold-read B11: nothing is hidden
                await c.list_tools()
                with pytest.raises(m.ProtocolError, match="'good' broke its own output schema: n:"):
                    await c.call("good")
                for name in ("free", "odd", "odd", "none", "hidden"):
                    assert await c.call(name) == {"n": "x"}
                assert caplog.text.count("the output of 'odd' is not checked") == 1
                fake.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                await c.ping()
                assert await c.call("good") == {"n": "x"}
                assert fake.methods().count("tools/list") == 1

        run(main())

    def test_a_call_that_takes_too_long_is_cancelled_on_both_sides(self, link):
        """spec 2025-11-25: basic/lifecycle#timeouts"""
        app, states = m.Server(), []

        @app.tool
        async def wait():
            try:
                await asyncio.Event().wait()
            finally:
                states.append("cancelled")

        async def main():
            async with link.connect(app) as c:
                with pytest.raises(m.RequestTimeout, match="tools/call within 0.02 seconds"):
                    await c.call("wait", timeout=0.02)
                await eventually(lambda: states == ["cancelled"])
                await c.ping()

        run(main())

    def test_progress_renews_a_deadline_but_not_beyond_the_last(self):
        """spec 2025-11-25: basic/lifecycle#timeouts"""

        async def main():
            fake = FakeServer({"tools/call": lambda msg: []})

            async def report():
                token = fake.sent[-1]["params"]["_meta"]["progressToken"]
                for step in itertools.count():
                    await asyncio.sleep(0.005)
                    params = {"progressToken": token, "progress": step}
                    fake.say(
                        {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
                    )

            async with client_of_fake(fake, max_timeout=0.4) as c:
                loop = asyncio.get_running_loop()
                began, steps = loop.time(), []
                call = asyncio.ensure_future(
                    c.call("t", timeout=0.1, progress=lambda *step: steps.append(step))
                )
                await eventually(lambda: "tools/call" in fake.methods())
                reporting = asyncio.ensure_future(report())
                with pytest.raises(m.RequestTimeout):
                    await call
                reporting.cancel()
                assert 0.35 < loop.time() - began < 3
                assert [step[0] for step in steps[:3]] == [0, 1, 2]

        run(main())

    def test_a_cancelled_call_is_cancelled_at_the_server(self):
        async def main():
            fake = FakeServer({"tools/call": lambda msg: []})
            async with client_of_fake(fake) as c:
                task = asyncio.ensure_future(c.call("t"))
                await eventually(lambda: "tools/call" in fake.methods())
                task.cancel()
                await asyncio.wait({task})
                await eventually(lambda: fake.methods()[-1] == "notifications/cancelled")
                assert fake.sent[-1]["params"]["requestId"] == fake.sent[-2]["id"]
                late = {"jsonrpc": "2.0", "id": fake.sent[-2]["id"], "result": {}}
                fake.say(late)  # changes nothing
                await c.ping()

        run(main())

    def test_python_values_become_json(self):
        async def main():
            fake = FakeServer(
                {"tools/call": {"content": []}, "prompts/get": {"messages": []}}
            )
            async with client_of_fake(fake) as c:
                await c.call("t", {"when": datetime.date(2025, 1, 2), "at": Spot(1), "c": Colour.RED})
                assert fake.sent[-1]["params"]["arguments"] == {
                    "when": "2025-01-02", "at": {"x": 1, "y": 0}, "c": "red",
                }  # fmt: skip
                await c.get_prompt("p", {"n": 3, "s": "3", "list": [1], "none": None})
                assert fake.sent[-1]["params"]["arguments"] == {
                    "n": "3", "s": "3", "list": "[1]", "none": "null",
                }  # fmt: skip
                before = len(fake.sent)
                with pytest.raises(TypeError, match="x: |x has|object"):
                    await c.call("t", {"x": object()})
                with pytest.raises((TypeError, ValueError)):
                    await c.request("acme/x", {"x": float("nan")})
                assert len(fake.sent) == before
                await c.ping()

        run(main())

    def test_meta_travels_beside_the_progress_token(self):
        async def main():
            fake = FakeServer({"tools/call": {"content": []}})
            async with client_of_fake(fake) as c:
                await c.call("t", meta={"traceparent": "00-1"})
                meta = fake.sent[-1]["params"]["_meta"]
                assert meta["traceparent"] == "00-1" and "progressToken" in meta

        run(main())


GARBAGE = [None, True, 5, -1.5, 10**400, "x", "", [], [5], [None], [[]], [{}], {}, {"a": 1}]


class TestHostileServers:
    """Whatever a server says, a call returns or raises an MCPError; never anything else."""

    CALLS = {
        "tools/list": lambda c: c.list_tools(),
        "resources/list": lambda c: c.list_resources(),
        "resources/templates/list": lambda c: c.list_templates(),
        "prompts/list": lambda c: c.list_prompts(),
        "tools/call": lambda c: c.call("t"),
        "resources/read": lambda c: c.read("x://"),
        "resources/subscribe": lambda c: c.subscribe("x://").open(),
        "prompts/get": lambda c: c.get_prompt("p"),
        "completion/complete": lambda c: c.complete("p", "a", "b"),
        "logging/setLevel": lambda c: c.set_log_level("info"),
        "ping": lambda c: c.ping(),
        "acme/any": lambda c: c.request("acme/any"),
    }
    MEMBERS = {
        "tools/list": ["tools", "nextCursor"],
        "resources/list": ["resources", "nextCursor"],
        "resources/templates/list": ["resourceTemplates"],
        "prompts/list": ["prompts"],
        "tools/call": ["content", "structuredContent", "isError", "_meta"],
        "resources/read": ["contents"],
        "prompts/get": ["messages", "description"],
        "completion/complete": ["completion"],
    }

    async def survives(self, call):
        try:
            return await call
        except m.MCPError as exc:
            return exc

    @pytest.mark.parametrize("method", MEMBERS)
    def test_results_with_wrong_types_everywhere(self, method):
        async def main():
            fake = FakeServer({"tools/list": {"tools": []}})
            async with client_of_fake(fake) as c:
                for key in self.MEMBERS[method]:
                    for value in GARBAGE:
                        for held in (value, [{"name": value, "uri": value, "text": value}], [value]):
                            fake.answers[method] = {key: held}
                            await self.survives(self.CALLS[method](c))
                for value in GARBAGE:
                    for inner in ("values", "total", "blob", "text", "content", "role", "type"):
                        fake.answers[method] = {
                            "completion": {inner: value},
                            "contents": [{inner: value}],
                            "messages": [{inner: value}],
                            "content": [{inner: value}],
                        }
                        await self.survives(self.CALLS[method](c))
                assert await c.ping() < 10

        run(main())

    @pytest.mark.parametrize("method", CALLS)
    def test_answers_that_are_no_answers(self, method):
        """A malformed answer fails the request that it names, and that one alone."""
        broken = [
            {"result": value} for value in GARBAGE if not isinstance(value, dict)
        ] + [
            {"error": value} for value in GARBAGE
        ] + [
            {},
            {"result": {}, "error": {"code": 1, "message": "x"}},
            {"error": {"code": "x", "message": "x"}},
            {"error": {"code": 1, "message": 5}},
            {"error": {"code": 1}},
            {"jsonrpc": "1.0", "result": {}},
        ]  # fmt: skip

        async def main():
            fake = FakeServer()
            async with client_of_fake(fake, timeout=0.05) as c:
                for answer in broken:
                    fake.answers[method] = lambda msg, answer=answer: [
                        {"jsonrpc": "2.0", "id": msg["id"], **answer}
                    ]
                    exc = await self.survives(self.CALLS[method](c))
                    assert isinstance(exc, m.MCPError), answer
                fake.answers[method] = {}
                fake.answers["ping"] = {}
                assert await c.ping() < 10

        run(main())

    def test_random_answers(self):
        dice = rng("hostile answers")
        words = ["tools", "name", "uri", "content", "type", "text", "nextCursor", "completion"]
        words += ["values", "contents", "blob", "messages", "role", "isError", "structuredContent"]
        words += ["inputSchema", "outputSchema", "prompts", "resources", "resourceTemplates", "$ref"]

        def value(depth):
            if depth == 0 or dice.random() < 0.3:
                return dice.choice([*GARBAGE, *words, "text", "resource"])
            if dice.random() < 0.4:
                return [value(depth - 1) for _ in range(dice.randrange(3))]
            return {word: value(depth - 1) for word in dice.sample(words, dice.randrange(5))}

        async def main():
            fake = FakeServer()
            async with client_of_fake(fake) as c:
                for _turn in range(600):
                    method = dice.choice(list(self.CALLS))
                    for each in self.CALLS:
                        answer = value(4)
                        fake.answers[each] = answer if isinstance(answer, dict) else {"x": answer}
                    await self.survives(self.CALLS[method](c))
                    c.subscriptions.clear()

        run(main())

    @pytest.mark.parametrize(
        "line",
        [
            b"",
            b"hello",
            b"{",
            b"\xff\xfe",
            b"5",
            b"null",
            b'"x"',
            b"[]",
            b"[[]]",
            b"{}",
            b'{"jsonrpc":"2.0"}',
            b'{"jsonrpc":"2.0","id":999,"result":{}}',
            b'{"jsonrpc":"2.0","id":"999","result":{}}',
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}',
            b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}',
            b'{"jsonrpc":"2.0","id":true,"result":{}}',
            b'{"jsonrpc":"2.0","id":1e999,"result":{}}',
            b'{"jsonrpc":"2.0","id":[1],"method":"ping"}',
            b'{"jsonrpc":"2.0","method":5}',
            b'{"jsonrpc":"2.0","method":"ping","params":5}',
            b'{"jsonrpc":"2.0","method":"x","params":{"a":1,"a":2}}',
            b'{"jsonrpc":"2.0","id":5,"result":' + b"[" * 500 + b"]" * 500 + b"}",
            b'{"jsonrpc":"2.0","id":5,"result":{"n":' + b"1" * 5000 + b"}}",
            b'[{"jsonrpc":"2.0","method":"x"}]',
        ],
    )
    def test_garbage_between_messages_does_no_harm(self, line):
        async def main():
            fake = FakeServer({"tools/call": {"content": []}})
            async with client_of_fake(fake) as c:
                fake.say(line)
                assert await c.call("t") is None
                assert await c.ping() < 10

        run(main())

    @pytest.mark.parametrize(
        "method",
        [
            "notifications/message",
            "notifications/progress",
            "notifications/cancelled",
            "notifications/resources/updated",
            "notifications/tools/list_changed",
            "notifications/elicitation/complete",
            "notifications/subscriptions/acknowledged",
            "notifications/initialized",
            "notifications",
            "x",
            "",
        ],
    )
    def test_malformed_notifications_do_no_harm(self, method):
        def listen(*args):
            heard.append(args)

        heard = []

        async def main():
            fake = FakeServer()
            async with client_of_fake(
                fake, log=listen, progress=listen, on_resource_updated=listen, on_tools_changed=listen
            ) as c:
                keys = ["uri", "level", "data", "progressToken", "progress", "requestId", "_meta"]
                for key in keys:
                    for value in GARBAGE:
                        params = {key: value, **({"progressToken": 1} if key == "progress" else {})}
                        fake.say({"jsonrpc": "2.0", "method": method, "params": params})
                fake.say({"jsonrpc": "2.0", "method": method})
                assert await c.ping() < 10

        run(main())

    def test_requests_that_no_client_serves_are_refused(self):
        asked = [
            ("roots/list", {}, -32601),  # not declared
            ("tools/list", {}, -32601),
            ("nonsense", {}, -32601),
            ("initialize", raw_hello(), -32601),
            ("sampling/createMessage", {"maxTokens": 5}, -32602),
            ("sampling/createMessage", {"messages": 5, "maxTokens": 5}, -32602),
            ("sampling/createMessage", {"messages": [], "maxTokens": "x"}, -32602),
            ("sampling/createMessage", {"messages": [], "maxTokens": 5, "tools": []}, -32602),
            ("elicitation/create", {}, -32602),
            ("elicitation/create", {"message": 5}, -32602),
            ("elicitation/create", {"message": "x", "mode": "url", "url": "u://x"}, -32602),
        ]
        malformed = [
            ("elicitation/create", {"message": "x"}),
            ("elicitation/create", {"message": "x", "requestedSchema": 5}),
            ("elicitation/create", {"message": "x", "requestedSchema": {"properties": 5}}),
            ("elicitation/create", {"message": "x", "requestedSchema": {"properties": {"a": 5}}}),
            ("elicitation/create", {"message": "x", "requestedSchema": {"$ref": "http://x/"}}),
        ]

        async def main():
            fake = FakeServer()
            async with client_of_fake(
                fake, elicit=lambda *_: {"a": 1}, sample=lambda params: "x"
            ) as c:
                for number, (method, params, code) in enumerate(asked):
                    fake.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
                    await eventually(lambda number=number: fake.sent[-1].get("id") == number)
                    assert fake.sent[-1]["error"]["code"] == code, (method, params)
                for number, (method, params) in enumerate(malformed, 100):
                    fake.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
                    await eventually(lambda number=number: fake.sent[-1].get("id") == number)
                    assert "error" in fake.sent[-1], params
                fake.say({"jsonrpc": "2.0", "id": "p", "method": "ping"})
                await eventually(lambda: fake.sent[-1] == {"jsonrpc": "2.0", "id": "p", "result": {}})
                assert await c.ping() < 10

        run(main())

    def test_a_blob_that_is_no_base64_is_a_protocol_error(self):
        async def main():
            fake = FakeServer()
            async with client_of_fake(fake) as c:
                for contents, value in [
                    ([{"uri": "x://", "blob": "AA=="}], b"\0"),
                    ([{"uri": "x://", "text": "a"}, {"uri": "x://", "blob": ""}], ["a", b""]),
                    ([], []),
                    ([{"uri": "x://", "blob": "A"}], None),
                    ([{"uri": "x://", "blob": "é"}], None),
                    ([{"uri": "x://", "blob": "A*A="}], None),
                    ([{"uri": "x://"}], None),
                ]:
                    fake.answers["resources/read"] = {"contents": contents}
                    if value is None:
                        with pytest.raises(m.ProtocolError):
                            await c.read("x://")
                    else:
                        assert await c.read("x://") == value

        run(main())


    EVIL = {"pattern": "^(a+)+$"}
    EVIL_TEXT = "a" * 60 + "!"  # a backtracking engine would be busy for years

    @pytest.mark.parametrize(
        "schema",
        [
            {"properties": {"x": EVIL}},
            {"allOf": [{"$ref": "#/$defs/evil"}], "$defs": {"evil": {"properties": {"x": EVIL}}}},
            {"additionalProperties": {"anyOf": [False, EVIL]}},
            {"propertyNames": EVIL},
            {"patternProperties": {"^(a+)+$": True}},
            {"not": {"properties": {"x": {"not": EVIL}}}},
        ],
    )
    def test_regular_expressions_of_a_server_are_not_tried(self, schema):
        """users-and-competitors 4.4, rule 9: schemas are data."""
        text = self.EVIL_TEXT

        async def main():
            tool = {"name": "t", "inputSchema": {}, "outputSchema": {"type": "object", **schema}}
            out = {"content": [], "structuredContent": {"x": text, text: 1}}
            fake = FakeServer({"tools/call": out, "tools/list": {"tools": [tool]}})
            async with client_of_fake(fake) as c:
                assert await c.call("t") == out["structuredContent"]

        run(main())
        form = {"type": "object", "properties": {"x": {"type": "string", "default": text}}}
        answer = m.answer_of({}, {**form, **schema} if "properties" not in schema else schema)
        assert answer["action"] == "accept"

    def test_a_property_may_be_called_pattern(self):
        schema = {"type": "object", "properties": {"pattern": {"type": "integer"}}}
        with pytest.raises(m.SchemaError, match="pattern: expected integer"):
            m.checker_of(schema)({"pattern": "x"})


class TestCallbacks:
    """What a program gives to be called may be plain or async, and may fail."""

    def test_a_callback_that_raises_fails_what_was_asked_and_nothing_else(self, link, caplog):
        async def ask(ctx):
            asks = [ctx.sample("?"), ctx.roots()]
            if link.since("2025-06-18"):
                asks.append(ctx.elicit("?", bool))
            return await asyncio.gather(*asks, return_exceptions=True)

        app = asking_app(ask)

        def fail(*args):
            raise RuntimeError("callback broke")

        async def fail_later(*args):
            raise RuntimeError("callback broke")

        async def main():
            for broken in (fail, fail_later):
                async with link.connect(app, sample=broken, roots=broken, elicit=broken) as c:
                    if link.modern:  # its own program asked for the answers: it hears why
                        with pytest.raises(RuntimeError, match="callback broke"):
                            await c.call("tool")
                    else:
                        await c.call("tool")
                    await c.ping()

        run(main())
        if link.modern:
            assert app.seen == []
            return
        assert len(app.seen) == 2
        for answers in app.seen:
            assert {type(answer) for answer in answers} == {m.RemoteError}
            assert {(answer.code, answer.message) for answer in answers} == {
                (-32603, "Internal error")
            }
        assert "callback broke" in caplog.text

    def test_a_listener_that_raises_is_logged(self, caplog):
        def fail(*args):
            raise RuntimeError("listener broke")

        async def main():
            fake = FakeServer()
            options = {"log": fail, "progress": fail, "on_tools_changed": fail}
            async with client_of_fake(fake, on_resource_updated=fail, **options) as c:
                for method in ("message", "tools/list_changed", "resources/updated"):
                    fake.say({"jsonrpc": "2.0", "method": f"notifications/{method}"})
                assert await c.ping() < 10

        run(main())
        assert caplog.text.count("RuntimeError: listener broke") == 3

    def test_listeners_hear_what_the_server_says(self):
        heard = []

        async def main():
            fake = FakeServer()
            async with client_of_fake(
                fake,
                log=lambda *args: heard.append(args),
                on_tools_changed=lambda: heard.append("tools"),
                on_prompts_changed=lambda: heard.append("prompts"),
                on_resources_changed=lambda: heard.append("resources"),
                on_resource_updated=lambda params: heard.append(params),
            ) as c:

                @c.on("notifications/acme")
                async def acme(params):
                    heard.append(params["n"])

                c.on("notifications/acme")(lambda params: heard.append("second"))
                for method, params in [
                    ("message", {"level": "info", "data": [1]}),
                    ("message", {"level": "error", "data": "x", "logger": "y"}),
                    ("tools/list_changed", {}),
                    ("prompts/list_changed", {}),
                    ("resources/list_changed", {}),
                    ("resources/updated", {"uri": "x://"}),
                    ("acme", {"n": 3}),
                ]:
                    fake.say(
                        {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}
                    )
                await eventually(lambda: len(heard) == 8)

        run(main())
        assert heard[:6] == [
            ("info", [1], None), ("error", "x", "y"), "tools", "prompts", "resources", {"uri": "x://"},
        ]  # fmt: skip
        assert sorted(map(str, heard[6:])) == ["3", "second"]

    @pytest.mark.parametrize(
        "said, content",
        [
            ("text", {"type": "text", "text": "text"}),
            ({"content": {"type": "text", "text": "x"}, "model": "m"}, {"type": "text", "text": "x"}),
            (m.Image(PNG), m.Image(PNG).to_content()),
            (None, []),
        ],
    )
    def test_a_sampled_message_may_be_said_in_many_ways(self, said, content):
        async def sample(params):
            return said

        async def main():
            fake = FakeServer()
            async with client_of_fake(fake, sample=sample, name="me"):
                params = {"messages": [], "maxTokens": 5}
                fake.say(
                    {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params}
                )
                await eventually(lambda: "result" in fake.sent[-1])
                result = fake.sent[-1]["result"]
                assert result["content"] == content
                assert result["role"] == "assistant"
                assert result["model"] == ("m" if type(said) is dict else "me")

        run(main())


class TestBatch:
    """spec 2025-03-26: basic/index#batching"""

    def test_several_requests_travel_together_where_they_can(self, link):
        app = plain_app()
        third = "prompts/list" if link.modern else "ping"

        async def main():
            async with link.connect(app) as c:
                assert await c.batch([]) == []
                return await c.batch(
                    [
                        ("tools/call", {"name": "echo", "arguments": {"text": "a"}}),
                        ("tools/call", {"name": "none"}),
                        (third, None),
                        ("prompts/get", {"name": "greet", "arguments": {"name": "x"}}),
                    ]
                )

        with on_the_wire() as sent:
            echoed, unknown, pong, prompt = run(main())
        assert echoed["content"] == [{"type": "text", "text": "a"}]
        assert isinstance(unknown, m.RemoteError) and unknown.code == -32602
        assert [p["name"] for p in pong["prompts"]] == ["greet"] if link.modern else pong == {}
        assert prompt["messages"][0]["content"]["text"] == "Greet x."
        arrays = [[each.get("method") for each in msg] for msg in sent if isinstance(msg, list)]
        if link.revision == "2025-03-26":
            assert arrays == [["tools/call", "tools/call", "ping", "prompts/get"], [None] * 4]
        else:
            assert arrays == []

    def test_all_of_a_batch_is_sent_or_nothing(self):
        async def main():
            hello = {**NEWEST_HELLO, "protocolVersion": "2025-03-26", "capabilities": {}}
            fake = FakeServer({"initialize": hello})
            async with client_of_fake(fake, revision="2025-03-26") as c:
                before = len(fake.sent)
                with pytest.raises(m.CapabilityMissing):
                    await c.batch([("ping", None), ("tools/list", None)])
                with pytest.raises(TypeError):
                    await c.batch([("ping", None), ("acme/x", {"x": object()})])
                with pytest.raises(ValueError, match="1001 calls in one batch; at most 1000"):
                    await c.batch([("ping", None)] * 1001)
                assert len(fake.sent) == before
                assert await c.batch([("ping", None)] * 1000) == [{}] * 1000

        run(main())

    def test_a_call_that_cannot_be_sent_fails_the_whole_batch_at_once(self):
        async def main():
            hello = {**NEWEST_HELLO, "protocolVersion": "2025-03-26"}
            fake = FakeServer({"initialize": hello})
            async with client_of_fake(fake, revision="2025-03-26", timeout=3600) as c:
                before = len(fake.sent)
                for params in ({"_meta": 5}, [1]):
                    for calls in ([("ping", None), ("x", params)], [("x", params), ("ping", None)]):
                        with pytest.raises((TypeError, AttributeError)):
                            await c.batch([*calls, ("ping", None)])
                await idle()
                assert len(fake.sent) == before and not c.peer.outgoing.pending
                assert await c.batch([("ping", None)] * 2) == [{}, {}]

        run(main())

    def test_a_batch_that_cannot_be_written_fails_at_once(self):
        class Broken(FakeServer):
            async def write(self, msg):
                if isinstance(msg, list):
                    raise m.ConnectionClosed("the pipe is broken")
                await super().write(msg)

        async def main():
            fake = Broken({"initialize": {**NEWEST_HELLO, "protocolVersion": "2025-03-26"}})
            async with client_of_fake(fake, revision="2025-03-26", timeout=3600) as c:
                with pytest.raises(m.ConnectionClosed, match="the pipe is broken"):
                    await c.batch([("ping", None)] * 3)

        run(main())

    def test_a_batch_that_is_not_answered_times_out_and_is_cancelled(self):
        async def main():
            hello = {**NEWEST_HELLO, "protocolVersion": "2025-03-26"}
            fake = FakeServer({"initialize": hello})
            async with client_of_fake(fake, revision="2025-03-26", timeout=0.02) as c:
                with pytest.raises(m.RequestTimeout):
                    await c.batch([("acme/a", None), ("acme/b", None)])
                await eventually(lambda: fake.methods().count("notifications/cancelled") == 2)

        run(main())


class TestSubscriptions:
    """spec 2025-11-25: server/resources#subscriptions"""

    ANSWERS = {"resources/subscribe": {}, "resources/unsubscribe": {}}

    @staticmethod
    def update(uri):
        params = {"uri": uri}
        return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}

    def test_updates_can_be_iterated_over_until_the_end(self):
        async def main():
            fake = FakeServer(self.ANSWERS)
            async with client_of_fake(fake) as c:
                seen = []

                async def follow(uri):
                    async for update in c.subscribe(uri):
                        seen.append(update["uri"])

                following = asyncio.ensure_future(follow("x://a"))
                await eventually(lambda: "resources/subscribe" in fake.methods())
                fake.say(self.update("x://a"), self.update("x://a/part"), self.update("x://ab"))
                fake.say(self.update("x://other"), self.update("x://a"))
                await eventually(lambda: len(seen) == 3)
                assert seen == ["x://a", "x://a/part", "x://a"]
                await c.unsubscribe("x://a")
                await following
                following = asyncio.ensure_future(follow("x://b"))
                await eventually(lambda: fake.methods()[-1] == "resources/subscribe")
            await following  # ended with the connection

        run(main())

    def test_two_who_want_the_same_are_one_subscription(self):
        async def main():
            fake = FakeServer(self.ANSWERS)
            async with client_of_fake(fake) as c:
                heard = []

                async def hear(params):
                    heard.append(params["uri"])

                async with c.subscribe("x://a") as first:
                    second = await c.subscribe("x://a", hear)
                    fake.say(self.update("x://a"))
                    assert await first.__anext__() == {"uri": "x://a"}
                    await eventually(lambda: heard == ["x://a"])
                assert fake.methods().count("resources/subscribe") == 1
                assert "resources/unsubscribe" not in fake.methods()
                await second.close()
                await second.close()
                assert fake.methods().count("resources/unsubscribe") == 1

        run(main())

    def test_a_refused_subscription_is_forgotten(self):
        async def main():
            fake = FakeServer({"resources/subscribe": failing(-32002, "no such thing")})
            async with client_of_fake(fake) as c:
                for _ in range(2):
                    with pytest.raises(m.RemoteError, match="no such thing"):
                        await c.subscribe("x://a")
                assert fake.methods().count("resources/subscribe") == 2
                assert not c.subscriptions

        run(main())

    def test_a_slow_reader_loses_the_oldest_updates_not_memory(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_INBOX", 3)

        async def main():
            fake = FakeServer(self.ANSWERS)
            async with client_of_fake(fake) as c:
                async with c.subscribe("x://a") as updates:
                    fake.say(*(self.update(f"x://a/{n}") for n in range(10)))
                    await c.ping()
                    seen = [(await updates.__anext__())["uri"] for _ in range(3)]
                assert seen == ["x://a/7", "x://a/8", "x://a/9"]

        run(main())


###############################################################################
# T42. The two eras
###############################################################################
#
# The stateless revision beside the others: one server, one pipe, one endpoint, one handler. What is
# said here of sections 11, 12, 15, 16 and 19 follows the pages of 2026-07-28, unless it names others.

STATELESS, SESSIONS = "2026-07-28", "2025-11-25"
OF_MCP = "io.modelcontextprotocol/"
ANYTHING = {"elicitation": {}, "sampling": {}, "roots": {}}
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
            "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}  # fmt: skip


def stateless(req_id, method, /, capabilities=None, meta=None, **params):
    """Return a request of the modern era, complete."""
    own = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t23", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
    }
    params = {**params, "_meta": {**own, **(meta or {})}}
    return {"jsonrpc": "2.0", "id": req_id, "method": method, "params": params}


def calling(req_id, name, /, arguments=None, **params):
    """Return the request that calls a tool, by a client that can be asked anything."""
    capabilities = params.pop("capabilities", ANYTHING)
    arguments = arguments or {}
    return stateless(req_id, "tools/call", capabilities, name=name, arguments=arguments, **params)


def again(asked, req_id, answer, responses=None):
    """Return the request that answers what a server asked back; None leaves something out."""
    result = answer["result"]
    assert result["resultType"] == "input_required", answer
    params = {**asked["params"], "inputResponses": responses or {}}
    params.pop("requestState", None)
    if "requestState" in result:
        params["requestState"] = result["requestState"]
    return {**asked, "id": req_id, "params": params}


def accept(**content):
    """Return the answer of a person who filled a form in."""
    return {"action": "accept", "content": content}


def said(answer):
    """Return the text of a tool's result."""
    assert "result" in answer, answer
    assert answer["result"]["resultType"] == "complete", answer
    return answer["result"]["content"][0]["text"]


def problem(answer):
    """Return the code of an error."""
    assert "error" in answer, answer
    return answer["error"]["code"]


class Door:
    """A way into a server for literal messages; what is said before an answer is in `heard`."""

    def __init__(self, app, **options):
        self.app, self.options, self.heard = app, options, []

    async def ask(self, msg, headers=None):
        """Return the answer to a request; `status` and `head` are those of its HTTP response."""
        raise NotImplementedError


class Pipe(Door):
    """In memory, as on stdio."""

    status, head = None, {}

    async def __aenter__(self):
        self.end, theirs = m.memory_transports()
        theirs.grace = 0
        self.serving = asyncio.ensure_future(self.app.serve(theirs))
        self.inbox = []
        return self

    async def __aexit__(self, *exc):
        await self.end.close()
        await self.serving

    async def send(self, *msgs):
        for msg in msgs:
            await self.end.write(msg)

    async def take(self):
        """Return the next message."""
        while not self.inbox:
            lines = await self.end.read()
            assert lines, "the server hung up"
            self.inbox += map(json.loads, lines)
        return self.inbox.pop(0)

    async def answer(self, req_id):
        """Return the answer to a request that was sent."""
        while True:
            msg = await self.take()
            if msg.get("id") == req_id and "method" not in msg:
                return msg
            self.heard.append(msg)

    async def ask(self, msg, headers=None):
        await self.send(msg)
        return await self.answer(msg["id"])


def http_head(msg, headers=None):
    """Return the headers of a POST; `headers` replaces some, with None removes them."""
    params = msg.get("params") or {}
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta") or {}
    own = {
        "host": "localhost",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": meta.get("io.modelcontextprotocol/protocolVersion"),
        "mcp-method": msg.get("method"),
        "mcp-name": params.get(NAMED_BY.get(msg.get("method"))),
    }
    head = {**own, **(headers or {})}
    return {name: str(value) for name, value in head.items() if value is not None}


class Post:
    """One POST of ours over a socket: its response, as it comes."""

    def __init__(self, url, msg, headers=None, method="POST"):
        self.url, self.method = m.parse_url(url), method
        self.body = b"" if msg is None else json.dumps(msg).encode()
        self.sending = http_head(msg or {}, headers)
        self.status, self.head, self.buffer = 0, {}, b""

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection(self.url.host, self.url.port)
        fields = {**self.sending, "content-length": len(self.body)}
        lines = [
            f"{self.method} {self.url.target} HTTP/1.1",
            *(f"{k}: {v}" for k, v in fields.items()),
        ]
        self.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + self.body)
        return self

    async def __aexit__(self, *exc):
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def begin(self):
        """Read the head of the response."""
        block = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = block.decode().split("\r\n")[:-2]
        self.status = int(first.split()[1])
        self.head = dict(line.lower().split(": ", 1) for line in lines)
        return self

    async def read(self):
        """Return the next piece of the body, b"" at its end."""
        if "content-length" in self.head:
            size = int(self.head.pop("content-length"))
            return await self.reader.readexactly(size)
        if "transfer-encoding" not in self.head:
            return b""
        size = int(await self.reader.readline(), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def messages(self):
        """Give the messages of the response, and comments as text."""
        if not self.status:
            await self.begin()
        if self.head.get("content-type") == "application/json":
            yield json.loads(await self.read())
            return
        while True:
            data = await self.read()
            if not data:
                return
            self.buffer += data
            *blocks, self.buffer = self.buffer.split(b"\n\n")
            for block in blocks:
                text = block.decode()
                yield text if text.startswith(":") else json.loads(text.partition("data: ")[2])

    async def take(self):
        """Return the next message of the response."""
        if not hasattr(self, "stream"):
            self.stream = self.messages()
        return await self.stream.__anext__()


class Web(Door):
    """HTTP by our own listener."""

    async def __aenter__(self):
        self.server = await self.app.http(port=0, **self.options).__aenter__()
        self.url = self.server.url
        return self

    async def __aexit__(self, *exc):
        await self.server.__aexit__(*exc)

    def post(self, msg, headers=None, **options):
        return Post(self.url, msg, headers, **options)

    async def ask(self, msg, headers=None):
        async with self.post(msg, headers) as response:
            msgs = [msg async for msg in response.messages()]
            self.status, self.head = response.status, response.head
        self.heard += msgs[:-1]
        return msgs[-1]


class Mounted(Door):
    """HTTP by an ASGI server, which is the test."""

    async def __aenter__(self):
        self.asgi = m.ASGIApp(self.app, **self.options)
        return self

    async def __aexit__(self, *exc):
        await self.asgi.close()

    async def call(self, msg, headers, receive, send):
        head = [(k.encode(), v.encode("latin-1")) for k, v in http_head(msg, headers).items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": head,
                 "query_string": b"", "client": ("127.0.0.1", 1)}  # fmt: skip
        await self.asgi(scope, receive, send)

    async def ask(self, msg, headers=None):
        sent, asked = [], [{"type": "http.request", "body": json.dumps(msg).encode()}]

        async def receive():
            return asked.pop() if asked else await asyncio.get_running_loop().create_future()

        async def send(event):
            sent.append(event)

        await self.call(msg, headers, receive, send)
        self.status = sent[0]["status"]
        self.head = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        body = b"".join(event.get("body", b"") for event in sent[1:]).decode()
        if self.head["content-type"] == "application/json":
            return json.loads(body)
        blocks = [block for block in body.split("\n\n") if block]
        msgs = [json.loads(block.partition("data: ")[2]) for block in blocks]
        self.heard += msgs[:-1]
        return msgs[-1]


def answer_to(msg, outcome):
    """Return the message that answers a request: a result, or the code of an error."""
    if isinstance(outcome, int):
        outcome = {"code": outcome, "message": "no"}
    if "code" in outcome:
        return {"jsonrpc": "2.0", "id": msg["id"], "error": outcome}
    if msg["method"] == "server/discover":
        every = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "logging": {}}
        outcome = {"supportedVersions": [STATELESS], "capabilities": every, **outcome}
    if msg["method"] == "initialize":
        outcome = {"capabilities": {"tools": {}}, "protocolVersion": SESSIONS, **outcome}
    own = {"tools/list": "tools", "resources/list": "resources", "resources/read": "contents",
           "prompts/list": "prompts", "prompts/get": "messages", "tools/call": "content"}.get(msg["method"], "resultType")  # fmt: skip
    whole = {"resultType": "complete", own: "complete" if own == "resultType" else [], **outcome}
    return {"jsonrpc": "2.0", "id": msg["id"], "result": whole}


class Script(m.Transport):
    """The channel to a server that is a function from a message to the messages it causes."""

    name = "the script"

    def __init__(self, react):
        self.react, self.sent, self.inbox = react, [], asyncio.Queue()
        self.ended = False

    async def read(self):
        item = await self.inbox.get()
        return [] if item is None else [item]

    async def write(self, msg):
        if self.ended:
            raise m.ConnectionClosed("the script is over")
        self.sent.append(msg)
        for answer in self.react(msg) or ():
            self.put(answer)

    def put(self, msg):
        self.inbox.put_nowait(None if msg is None else m.encode(msg))

    async def close(self):
        self.ended = True
        self.put(None)


@contextlib.asynccontextmanager
async def fake_http(serve):
    """Give the URL of an HTTP server that answers serve(head, msg): an outcome of answer_to().

    It may also be (status, content type, text), or an async function of the writer.
    """
    busy = set()

    async def connected(reader, writer):
        busy.add(asyncio.current_task())
        try:
            await respond(reader, writer)
        except asyncio.CancelledError:
            pass  # asyncio would complain of it
        finally:
            writer.close()
            busy.discard(asyncio.current_task())

    async def respond(reader, writer):
        while True:
            try:
                block = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            except (asyncio.IncompleteReadError, OSError):
                return
            first, *lines = block.split("\r\n")[:-2]
            head = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
            head[":method"] = first.split()[0]
            body = await reader.readexactly(int(head.get("content-length", 0)))
            msg = json.loads(body) if body else {"method": "", "id": 0}
            outcome = serve(head, msg)
            if callable(outcome):
                await outcome(writer)
                return
            status, kind = 200, "application/json"
            if isinstance(outcome, tuple):
                status, kind, text = outcome
            elif "id" not in msg:
                status, text = 202, ""
            else:
                text = json.dumps(answer_to(msg, outcome))
                code = json.loads(text).get("error", {}).get("code")
                status = {-32601: 404, None: 200}.get(code, 400)
            data = text.encode()
            fields = f"content-type: {kind}\r\ncontent-length: {len(data)}"
            writer.write(f"HTTP/1.1 {status} X\r\n{fields}\r\n\r\n".encode() + data)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for task in list(busy):
            task.cancel()
        if busy:
            await asyncio.wait(busy)
        await server.wait_closed()


each_door = pytest.mark.parametrize("door", [Pipe, Web, Mounted], ids=["pipe", "http", "asgi"])


def small_app(**options):
    """Return a server with a little of everything."""
    app = m.Server("eras", "9", ttl_ms=0, **options)

    @app.tool
    async def add(a: int, b: int = 0) -> str:
        return str(a + b)

    @app.tool
    async def where(
        region: typing.Annotated[str, m.Header("Region")] = "none", count: int = 0
    ) -> str:
        return f"{region} {count}"

    @app.tool
    async def samples(ctx: m.Context) -> str:
        return str((await ctx.sample("?"))["content"]["text"])

    @app.tool
    async def talks(ctx: m.Context) -> str:
        await ctx.log("info", "one")
        await ctx.log("error", "two")
        return "done"

    @app.resource("note://a")
    def note() -> str:
        return "a"

    @app.prompt
    def greet(name: str) -> str:
        return f"Hello, {name}"

    return app


WITHOUT = object()  # a member that is left out

# What is wrong with a request -> what a server says: code, HTTP status. Changes of the headers,
# changes of `_meta`, changes of the message. Above: what is told when two things are wrong.
LADDER = {
    "no _meta at all": ({}, None, {}, -32602, 400),
    "no version": ({}, {"protocolVersion": WITHOUT}, {}, -32602, 400),
    "version is a number": ({}, {"protocolVersion": 5}, {}, -32602, 400),
    "no capabilities": ({}, {"clientCapabilities": WITHOUT}, {}, -32602, 400),
    "capabilities are a list": ({}, {"clientCapabilities": []}, {}, -32602, 400),
    "client info is text": ({}, {"clientInfo": "me"}, {}, -32602, 400),
    "log level is none": ({}, {"logLevel": "loud"}, {}, -32602, 400),
    "metadata before the version header": (
        {"mcp-protocol-version": "v999"}, {"clientCapabilities": WITHOUT}, {}, -32602, 400),
    "header and metadata name two versions": (
        {"mcp-protocol-version": STATELESS}, {"protocolVersion": "v999"}, {}, -32020, 400),
    "no version header": ({"mcp-protocol-version": None}, {}, {}, -32020, 400),
    "version header before an unknown version": (
        {"mcp-protocol-version": None}, {"protocolVersion": "v999"}, {}, -32020, 400),
    "unknown version": ({}, {"protocolVersion": "v999"}, {}, -32022, 400),
    "a legacy version in metadata": ({}, {"protocolVersion": SESSIONS}, {}, -32022, 400),
    "unknown version before the method header": (
        {"mcp-method": "x"}, {"protocolVersion": "v999"}, {}, -32022, 400),
    "unknown version before an unknown method": (
        {}, {"protocolVersion": "v999"}, {"method": "no/such"}, -32022, 400),
    "no method header": ({"mcp-method": None}, {}, {}, -32020, 400),
    "another method header": ({"mcp-method": "tools/list"}, {}, {}, -32020, 400),
    "method header in capitals": ({"mcp-method": "TOOLS/CALL"}, {}, {}, -32020, 400),
    "method header before an unknown method": (
        {"mcp-method": "x"}, {}, {"method": "no/such"}, -32020, 400),
    "no name header": ({"mcp-name": None}, {}, {}, -32020, 400),
    "another name header": ({"mcp-name": "sub"}, {}, {}, -32020, 400),
    "name header in capitals": ({"mcp-name": "ADD"}, {}, {}, -32020, 400),
    "name header is broken Base64": ({"mcp-name": "=?base64?%%?="}, {}, {}, -32020, 400),
    "name header beyond ASCII": ({"mcp-name": "\xe4dd"}, {}, {}, -32020, 400),
    "name header before an unknown tool": (
        {"mcp-name": "add"}, {}, {"params.name": "nowhere"}, -32020, 400),
    "unknown method": ({}, {}, {"method": "no/such"}, -32601, 404),
    "unknown tool": ({}, {}, {"params.name": "nowhere"}, -32602, 400),
    "name is missing": ({}, {}, {"params.name": WITHOUT}, -32602, 400),
    "a capability that was not declared": (
        {}, {}, {"params.name": "samples", "params.arguments": {}}, -32021, 400),
    "mirrored argument without its header": (
        {}, {}, {"params.name": "where", "params.arguments": {"region": "eu"}}, -32020, 400),
    "mirrored argument before the schema": (
        {}, {}, {"params.name": "where", "params.arguments": {"region": "eu", "count": []}},
        -32020, 400),
}  # fmt: skip
# What only headers can say is not wrong where there are none: then comes this.
ON_A_PIPE = {
    "header and metadata name two versions": -32022,
    "version header before an unknown version": -32022,
    "method header before an unknown method": -32601,
    "name header before an unknown tool": -32602,
    "no version header": 0, "no method header": 0, "another method header": 0,
    "method header in capitals": 0, "no name header": 0, "another name header": 0,
    "name header in capitals": 0, "name header is broken Base64": 0, "name header beyond ASCII": 0,
    "mirrored argument without its header": 0, "mirrored argument before the schema": 0,
}  # fmt: skip
# What is for admit() and for the handlers to find out.
BEYOND_THE_LADDER = {
    "unknown method", "unknown tool", "name is missing", "a capability that was not declared",
    "mirrored argument without its header", "mirrored argument before the schema",
}  # fmt: skip


def spoilt(row):
    """Return the message and the changes of headers of a row of LADDER."""
    headers, meta, changes, code, status = LADDER[row]
    msg = stateless(7, "tools/call", name="add", arguments={"a": 1})
    params = msg["params"]
    for where, value in changes.items():
        target = params if where.startswith("params.") else msg
        target[where.replace("params.", "")] = value
    if meta is None:
        del params["_meta"]
        headers = {"mcp-protocol-version": STATELESS, **headers}
    for name, value in (meta or {}).items():
        params["_meta"][OF_MCP + name] = value
        headers = (
            {"mcp-protocol-version": STATELESS, **headers} if value in (5, WITHOUT) else headers
        )
    for place in (params, params.get("_meta", {})):
        for name in [name for name, value in place.items() if value is WITHOUT]:
            del place[name]
    return msg, headers


class TestLadder:
    """basic/index#_meta, basic/transports/streamable-http#server-validation: what is told first."""

    @pytest.mark.parametrize("row", LADDER)
    def test_pure_ladder_tells_the_first_fault(self, row):
        msg, headers = spoilt(row)
        try:
            m.check_modern_post(msg, http_head(msg, headers))
        except m.RPCError as exc:
            assert exc.code == LADDER[row][3]
        else:
            assert row in BEYOND_THE_LADDER

    @pytest.mark.parametrize("row", LADDER)
    def test_pure_ladder_without_headers_goes_on_to_the_next_fault(self, row):
        msg, _ = spoilt(row)
        try:
            m.check_modern_request(msg)
        except m.RPCError as exc:
            assert exc.code == ON_A_PIPE.get(row, LADDER[row][3])
        else:
            assert row in BEYOND_THE_LADDER or row in ON_A_PIPE

    @each_door
    def test_every_door_tells_the_same(self, door, caplog):
        async def go():
            found = {}
            async with door(small_app()) as way:
                for row in LADDER:
                    msg, headers = spoilt(row)
                    if door is Pipe and row in ("no _meta at all", "no version"):
                        continue  # there, nothing says that it is modern
                    answer = await way.ask(msg, headers)
                    assert answer["id"] == 7, row
                    code = answer["error"]["code"] if "error" in answer else 0
                    found[row] = (code, way.status)
                    assert way.head.get("content-type", "application/json") == "application/json"
            return found

        found = run(go())
        for row, (code, status) in found.items():
            expected = LADDER[row][3:]
            if door is Pipe:
                expected = (ON_A_PIPE.get(row, expected[0]), None)
            assert (code, status) == expected, row

    def test_metadata_without_client_info_is_enough(self):
        """basic/index#_meta: clientInfo is not required."""
        msg = stateless(1, "tools/list")
        del msg["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]
        assert m.check_modern_request(msg).client_info == {}

    @each_door
    def test_methods_that_were_removed_or_are_not_the_clients_do_not_exist(self, door):
        """streamable-http#protocol-version-header: 404 with -32601."""

        async def go():
            async with door(small_app()) as way:
                for method in """
                    ping logging/setLevel resources/subscribe resources/unsubscribe tasks/result
                    tasks/list roots/list sampling/createMessage elicitation/create
                    notifications/initialized
                """.split():
                    answer = await way.ask(stateless(3, method, level="info", uri="note://a"))
                    assert (problem(answer), answer["id"]) == (-32601, 3), method
                    assert way.status == (None if door is Pipe else 404)

        run(go())

    @each_door
    def test_initialize_that_cannot_be_served_names_the_versions(self, door):
        """basic/versioning#backward-compatibility-with-initialization-based-versions"""

        async def go():
            async with door(small_app()) as way:
                return await way.ask(stateless(3, "initialize", protocolVersion="x"))

        answer = run(go())
        assert problem(answer) == -32601
        for name in m.REVISIONS:
            assert name in answer["error"]["message"]

    @each_door
    def test_unsupported_version_tells_which_are_supported(self, door):
        """basic/versioning#protocol-version-negotiation"""

        async def go():
            async with door(small_app()) as way:
                meta = {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}
                refused = await way.ask(stateless(1, "tools/list", meta=meta))
                return refused, await way.ask(stateless(2, "server/discover"))

        refused, discovered = run(go())
        assert refused["error"]["data"]["requested"] == "1900-01-01"
        supported = discovered["result"]["supportedVersions"]
        assert refused["error"]["data"]["supported"] == supported
        assert supported == ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

    @each_door
    def test_missing_capability_is_named_as_a_client_declares_it(self, door):
        """basic/index#_meta: data.requiredCapabilities"""

        async def go():
            async with door(small_app()) as way:
                return await way.ask(calling(1, "samples", capabilities={}))

        answer = run(go())
        assert problem(answer) == -32021
        assert answer["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}

    @pytest.mark.parametrize("door", [Web, Mounted], ids=["http", "asgi"])
    @pytest.mark.parametrize("body, code", [
        ({"jsonrpc": "2.0", "id": 4, "method": 5}, -32600),
        ({"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": [1]}, -32602),
        ({"jsonrpc": "1.0", "id": 4, "method": "tools/list", "params": {}}, -32600),
    ])  # fmt: skip
    def test_what_is_no_request_is_refused_with_its_id(self, door, body, code):
        """basic/index#error-responses: "MUST include the same ID" where it can be read."""

        async def go():
            async with door(small_app()) as way:
                answer = await way.ask(body, {"mcp-protocol-version": STATELESS})
                return answer["id"], answer["error"]["code"], way.status

        assert run(go()) == (4, code, 400)

    def test_responses_and_batches_of_a_modern_client_are_refused(self):
        """streamable-http#sending-messages: "a single JSON-RPC request or notification"."""

        async def go():
            async with Web(small_app()) as way:
                head = {"mcp-protocol-version": STATELESS}
                answer = {"jsonrpc": "2.0", "id": 4, "result": {}}
                for body in (answer, [stateless(1, "tools/list")]):
                    wire = way.post({}, head)
                    wire.body = json.dumps(body).encode()
                    async with wire as post:
                        await post.begin()
                        assert post.status == 400, body

        run(go())

    def test_notifications_are_accepted_without_a_body(self):
        """streamable-http#sending-messages: "202 Accepted with no body"."""

        async def go():
            async with Web(small_app()) as way:
                msg = stateless(0, "notifications/acme")
                del msg["id"]
                async with way.post(msg) as post:
                    await post.begin()
                    return post.status, await post.read()

        assert run(go()) == (202, b"")

    def test_session_headers_are_ignored_and_none_is_made(self):
        """streamable-http#earlier-streamable-http-revisions"""

        async def go():
            async with Web(small_app()) as way:
                old = {"mcp-session-id": "made-up", "last-event-id": "1-1"}
                assert said(await way.ask(calling(1, "add", {"a": 2}), old)) == "2"
                assert "mcp-session-id" not in way.head
                for method in ("GET", "DELETE"):
                    head = {"mcp-protocol-version": STATELESS, "accept": "text/event-stream"}
                    async with way.post(None, head, method=method) as post:
                        await post.begin()
                        assert post.status in (400, 405), method

        run(go())


class TestResults:
    """Whatever is answered says what it is, who said it, and how long it may be kept."""

    @each_door
    def test_every_result_says_what_it_is_and_who_said_it(self, door):
        """basic/index#result-responses, basic/index#_meta: resultType, serverInfo."""
        app = small_app()

        @app.method("acme/x")
        async def custom(ctx, params):
            return {"n": 1, "_meta": {"acme/y": 2}}

        @app.middleware
        async def wrap(ctx, call_next):
            return {**await call_next(ctx), "extra": True}

        asks = [
            stateless(1, "server/discover"), stateless(2, "tools/list"),
            stateless(3, "prompts/list"), stateless(4, "resources/list"),
            stateless(5, "resources/templates/list"), stateless(6, "resources/read", uri="note://a"),
            stateless(7, "prompts/get", name="greet", arguments={"name": "a"}),
            calling(8, "add", {"a": 1}), calling(9, "add", {"a": "no"}), calling(10, "samples"),
            stateless(11, "acme/x"),
            stateless(12, "completion/complete", ref={"type": "ref/prompt", "name": "greet"},
                      argument={"name": "name", "value": "a"}),
        ]  # fmt: skip

        async def go():
            async with door(app) as way:
                return [(await way.ask(msg))["result"] for msg in asks]

        results = run(go())
        info = "io.modelcontextprotocol/serverInfo"
        kinds = [result["resultType"] for result in results]
        assert kinds == ["input_required" if msg["id"] == 10 else "complete" for msg in asks]
        assert all(result["_meta"][info] == {"name": "eras", "version": "9"} for result in results)
        assert all(result["extra"] for result in results if result["resultType"] == "complete")
        assert results[10]["_meta"]["acme/y"] == 2

    def test_legacy_results_say_none_of_it(self):
        async def go():
            async with m.Client(small_app(), revision=SESSIONS) as c:
                return await c.call_tool("add", {"a": 1}), await c.request("tools/list")

        for result in run(go()):
            assert not {"resultType", "_meta", "ttlMs", "cacheScope"} & result.keys()

    def test_server_speaks_of_a_missing_resource_as_the_revision_does(self):
        """server/resources#error-handling: -32602, and before -32002; with the URI."""

        async def go(revision):
            async with m.Client(small_app(), revision=revision) as c:
                with pytest.raises(m.RemoteError) as caught:
                    await c.read("note://nowhere")
                return caught.value.code, caught.value.data

        assert run(go(STATELESS)) == (-32602, {"uri": "note://nowhere"})
        assert run(go(SESSIONS)) == (-32002, {"uri": "note://nowhere"})

    def test_hints_are_the_servers_the_lists_or_the_resources(self):
        """server/utilities/caching#cacheable-model"""
        ttl = {"tools/list": 5, "resources/read": 7}
        app = m.Server(ttl_ms=ttl, cache_scope={"tools/list": "public"})
        app.tool(lambda: 1, name="x")
        app.prompt(lambda: "x", name="x")
        app.add_resource("a://plain", "text")
        app.add_resource("a://own", "text", ttl_ms=9, cache_scope="public")

        @app.resource("a://outer")
        async def outer(ctx: m.Context) -> str:
            return (await ctx.read_resource("a://own"))[0]["text"]

        @app.resource("a://{asks}")
        async def asks(asks: str, ctx: m.Context) -> str:
            return str((await ctx.elicit("?")).action)

        async def go():
            found = {}
            async with Pipe(app) as way:
                for method in ("server/discover", "tools/list", "prompts/list", "resources/list",
                               "resources/templates/list"):  # fmt: skip
                    found[method] = (await way.ask(stateless(1, method)))["result"]
                for uri in ("a://plain", "a://own", "a://outer"):
                    found[uri] = (await way.ask(stateless(1, "resources/read", uri=uri)))["result"]
                ask = stateless(1, "resources/read", ANYTHING, uri="a://b")
                answer = await way.ask(ask)
                found["asked"] = answer["result"]
                retry = again(ask, 2, answer, {"elicitation-1": accept()})
                found["answered"] = (await way.ask(retry))["result"]
                found["call"] = (await way.ask(calling(1, "x")))["result"]
            return {
                what: (item.get("ttlMs"), item.get("cacheScope")) for what, item in found.items()
            }

        assert run(go()) == {
            "server/discover": (0, "private"), "tools/list": (5, "public"),
            "prompts/list": (0, "private"), "resources/list": (0, "private"),
            "resources/templates/list": (0, "private"), "a://plain": (7, "private"),
            "a://own": (9, "public"), "a://outer": (7, "private"), "asked": (None, None),
            "answered": (0, "private"), "call": (None, None),
        }  # fmt: skip

    @pytest.mark.parametrize("wrong", [
        {"ttl_ms": -1}, {"ttl_ms": {"tools/list": -1}}, {"ttl_ms": "5"}, {"ttl_ms": 1.5},
        {"cache_scope": "Public"}, {"cache_scope": {"tools/list": "all"}},
    ])  # fmt: skip
    def test_hints_that_would_mean_nothing_are_refused(self, wrong):
        """server/utilities/caching#time-to-live-ttl-field: "MUST provide a ttlMs >= 0"."""
        with pytest.raises(ValueError, match="give"):
            m.Server(**wrong)
        if not isinstance(next(iter(wrong.values())), dict):
            with pytest.raises(ValueError, match="give"):
                m.Server().add_resource("a://b", "text", **wrong)

    def test_all_pages_have_the_same_scope_and_the_same_order_each_time(self):
        """server/utilities/caching#interaction-with-pagination, server/tools#capabilities"""
        app = m.Server(page_size=3, cache_scope="public")
        names = [f"t{n}" for n in range(8)]
        for name in names:
            app.tool(lambda: 1, name=name)

        async def go():
            async with Pipe(app) as way:
                for _ in range(3):
                    found, cursor = [], {}
                    while cursor is not None:
                        page = (await way.ask(stateless(1, "tools/list", **cursor)))["result"]
                        assert page["cacheScope"] == "public"
                        found += [tool["name"] for tool in page["tools"]]
                        cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
                    assert found == names

        run(go())

    @pytest.mark.parametrize("door", [Web, Mounted], ids=["http", "asgi"])
    def test_streams_are_not_buffered_by_proxies(self, door):
        """streamable-http#receiving-messages: X-Accel-Buffering: no"""

        async def go():
            async with door(small_app()) as way:
                msg = calling(1, "talks", meta={OF_MCP + "logLevel": "debug"})
                assert said(await way.ask(msg)) == "done"
                return way.head

        head = run(go())
        assert head["content-type"] == "text/event-stream"
        assert head["x-accel-buffering"] == "no"

    def test_events_have_no_ids_since_nobody_can_come_back(self):
        """streamable-http#receiving-messages: "Resumable SSE streams ... are not supported"."""

        async def go():
            async with Web(small_app()) as way:
                msg = calling(1, "talks", meta={OF_MCP + "logLevel": "debug"})
                async with way.post(msg) as post:
                    await post.begin()
                    whole = b""
                    while piece := await post.read():
                        whole += piece
                    return whole

        assert b"id:" not in run(go()).replace(b'"id":', b"")

    @pytest.mark.parametrize("level, heard", [
        (None, []), ("debug", ["one", "two"]), ("error", ["two"]), ("emergency", []),
    ])  # fmt: skip
    def test_log_messages_come_only_at_the_level_that_the_request_names(self, level, heard):
        """server/utilities/logging#per-request-log-level: "MUST NOT emit" otherwise."""

        async def go():
            async with Pipe(small_app()) as way:
                meta = {OF_MCP + "logLevel": level} if level else {}
                await way.ask(calling(1, "talks", meta=meta))
                await way.ask(calling(2, "add", {"a": 1}))
                return [msg["params"]["data"] for msg in way.heard]

        assert run(go()) == heard

    def test_quiet_streams_are_kept_alive_with_comments(self, monkeypatch):
        """streamable-http#receiving-messages: a line that begins with a colon."""
        monkeypatch.setattr(m, "KEEP_ALIVE_SECONDS", 0.0)
        monkeypatch.setattr(m, "SWEEP_SECONDS", 0.001)
        app, gate = m.Server(), []

        @app.tool
        async def slow() -> str:
            gate.append(asyncio.get_running_loop().create_future())
            await gate[0]
            return "done"

        async def go():
            async with Web(app) as way:
                async with way.post(calling(1, "slow")) as post:
                    assert (await post.take()).startswith(":")
                    assert (await post.take()).startswith(":")
                    gate[0].set_result(None)
                    last = await post.take()
                    while isinstance(last, str):
                        last = await post.take()
                    assert said(last) == "done"
                listen = stateless(2, "subscriptions/listen", notifications={})
                async with way.post(listen) as post:
                    await post.take()
                    assert (await post.take()).startswith(":")

        run(go())


class TestGivingUp:
    """basic/patterns/cancellation: closing the response, or saying so, ends the work at once."""

    def app(self):
        app = m.Server()
        app.began, app.ended = asyncio.Event(), asyncio.Event()
        app.loop, app.released = asyncio.get_running_loop(), threading.Event()

        @app.tool
        async def forever(ctx: m.Context) -> str:
            await ctx.report_progress(1)
            app.began.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                app.ended.set()

        @app.tool
        def in_a_thread(ctx: m.Context) -> str:
            app.loop.call_soon_threadsafe(app.began.set)
            deadline = time.monotonic() + 10
            while not ctx.cancelled and time.monotonic() < deadline:
                app.released.wait(0.001)
            app.loop.call_soon_threadsafe(app.ended.set)

        return app

    @pytest.mark.parametrize("meta", [{}, {"progressToken": 5}], ids=["JSON", "stream"])
    @pytest.mark.parametrize("tool", ["forever", "in_a_thread"])
    def test_closing_the_response_cancels_the_handler(self, tool, meta):
        """streamable-http#cancellation: "MUST be treated by the server as cancellation"."""

        async def go():
            app = self.app()
            async with Web(app) as way:
                async with way.post(calling(1, tool, meta=meta)) as post:
                    await app.began.wait()
                    if meta and tool == "forever":
                        assert (await post.take())["method"] == "notifications/progress"
                await app.ended.wait()
                await way.ask(stateless(2, "tools/list"))  # the server lives

        run(go())

    @pytest.mark.parametrize("tool", ["forever", "in_a_thread"])
    def test_an_asgi_servers_disconnect_cancels_the_handler(self, tool):
        async def go():
            app = self.app()
            asked = [{"type": "http.request", "body": json.dumps(calling(1, tool)).encode()}]

            async def receive():
                if asked:
                    return asked.pop()
                await app.began.wait()
                return {"type": "http.disconnect"}

            async def send(event):
                raise AssertionError(f"nobody is there to read {event}")

            async with Mounted(app) as way:
                await way.call(calling(1, tool), None, receive, send)
                await app.ended.wait()

        run(go())

    @pytest.mark.parametrize("tool", ["forever", "in_a_thread"])
    def test_on_a_pipe_the_client_says_so_and_gets_no_answer(self, tool):
        """stdio#cancellation: "MUST NOT send any further messages for it"."""

        async def go():
            app = self.app()
            async with Pipe(app) as way:
                await way.send(calling("a", tool))
                await app.began.wait()
                await way.send(m.notification("notifications/cancelled", {"requestId": "a"}))
                await app.ended.wait()
                await way.ask(stateless("b", "tools/list"))
                assert way.heard == []

        run(go())

    def test_giving_up_a_call_closes_only_its_own_response(self):
        async def go():
            app = self.app()
            async with Web(app) as way, m.Client(way.url) as c:
                assert c.revision == STATELESS
                call = asyncio.ensure_future(c.call("forever"))
                await app.began.wait()
                call.cancel()
                await app.ended.wait()
                assert [tool["name"] for tool in await c.list_tools()] == ["forever", "in_a_thread"]

        run(go())


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
    "of an array": {"a": {"type": "array", "x-mcp-header": "R"}},
    "of null": {"a": {"type": "null", "x-mcp-header": "R"}},
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


class TestMirroring:
    """streamable-http#request-metadata: headers repeat the body, for whoever reads only those."""

    @pytest.mark.parametrize("value, header", ENCODED)
    def test_values_travel_as_the_page_shows(self, value, header):
        assert m.encode_header_value(value) == header
        assert m.decode_header_value(header) == value

    @pytest.mark.parametrize("header", [
        "=?base64?%%%?=", "=?base64?a?=", "=?base64?/w==?=", "\xe9", "a\x7f",
    ])  # fmt: skip
    def test_values_that_cannot_be_read_are_a_mismatch(self, header):
        with pytest.raises(m.RPCError) as caught:
            m.decode_header_value(header)
        assert caught.value.code == -32020

    @pytest.mark.parametrize("header", ["=?BASE64?YQ==?=", "=?base64?YQ==", "base64?YQ==?="])
    def test_markers_are_exact(self, header):
        assert m.decode_header_value(header) == header

    def test_arbitrary_texts_survive_the_header(self):
        dice = rng("header values")
        for _ in range(500):
            text = "".join(dice.choices("aB =?b64/\t\r\n\x00é世\U0001f600", k=dice.randint(0, 12)))
            header = m.encode_header_value(text)
            assert re.fullmatch(r"[\x20-\x7e]*", header) and header == header.strip(" ")
            assert m.decode_header_value(header) == text

    @pytest.mark.parametrize("what", BAD_MIRRORS)
    def test_an_annotation_that_breaks_the_rules_is_invalid(self, what):
        schema = {"type": "object", "properties": BAD_MIRRORS[what]}
        with pytest.raises(m.SchemaError):
            m.mirrors_of(schema)
        with pytest.raises(m.SchemaError):
            m.Server().add_tool(lambda **a: 1, name="x", input_schema=schema)

    @pytest.mark.parametrize("keyword", ["$defs", "if", "then", "else", "additionalProperties"])
    def test_an_annotation_beside_the_chain_of_properties_is_invalid(self, keyword):
        marked = {"type": "string", "x-mcp-header": "R"}
        schema = {"properties": {}, keyword: {"properties": {"a": marked}}}
        with pytest.raises(m.SchemaError):
            m.mirrors_of(schema)

    def test_an_argument_may_be_called_like_the_keyword(self):
        schema = {
            "properties": {"x-mcp-header": {"type": "string"}, "properties": {"type": "string"}}
        }
        assert m.mirrors_of(schema) == []

    @pytest.mark.parametrize("arguments, header, fine", [
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
    ])  # fmt: skip
    def test_server_compares_header_and_argument(self, arguments, header, fine):
        """streamable-http#server-behavior-for-custom-headers: the table, and numbers as numbers."""
        kind = {"n": "integer", "b": "boolean"}.get(next(iter(arguments), "n"), "string")
        path = ("o", "p") if "o" in arguments else (next(iter(arguments), "n"),)
        mirrors = [m.Mirror("mcp-param-x", path, kind)]
        headers = {} if header is None else {"mcp-param-x": header}
        if fine:
            m.check_mirrors(mirrors, headers, arguments)
        else:
            with pytest.raises(m.RPCError) as caught:
                m.check_mirrors(mirrors, headers, arguments)
            assert caught.value.code == -32020

    @pytest.mark.parametrize("door", [Web, Mounted], ids=["http", "asgi"])
    def test_header_class_marks_an_argument(self, door):
        """server/tools#x-mcp-header; `Annotated[str, Header("Region")]`"""

        async def go():
            async with door(small_app()) as way:
                listed = (await way.ask(stateless(1, "tools/list")))["result"]["tools"]
                found = [await way.ask(calling(2, "where", {"region": "eu"}), head) for head in (
                    {"mcp-param-region": "eu"}, {"Mcp-Param-REGION": "eu"},
                    {"mcp-param-region": "us"}, {}, {"mcp-param-region": "=?base64?ZXU=?="},
                )]  # fmt: skip
                other = await way.ask(calling(3, "where"), {"mcp-param-other": "forwarded"})
                return listed, found, other

        listed, found, other = run(go())
        schema = next(tool for tool in listed if tool["name"] == "where")["inputSchema"]
        assert schema["properties"]["region"]["x-mcp-header"] == "Region"
        codes = [item["error"]["code"] if "error" in item else said(item) for item in found]
        assert codes == ["eu 0", "eu 0", -32020, -32020, "eu 0"]
        assert said(other) == "none 0"

    def test_legacy_requests_need_no_mirrors(self):
        async def go():
            async with m.Client(small_app(), revision=SESSIONS) as c:
                assert await c.call("where", {"region": "eu"}) == "eu 0"
            async with Web(small_app()) as way, m.Client(way.url, revision=SESSIONS) as c:
                assert await c.call("where", {"region": "eu"}) == "eu 0"

        run(go())

    def test_client_repeats_what_is_marked_and_nothing_else(self):
        """streamable-http#client-behavior"""
        seen = []

        def serve(head, msg):
            seen.append({k: v for k, v in head.items() if k.startswith("mcp-")})
            properties = {
                "s": {"type": "string", "x-mcp-header": "S"},
                "n": {"type": "integer", "x-mcp-header": "N"},
                "b": {"type": "boolean", "x-mcp-header": "B"},
                "o": {"properties": {"p": {"type": "string", "x-mcp-header": "Deep"}}},
                "plain": {"type": "string"},
            }
            tool = {"name": "tüte", "inputSchema": {"type": "object", "properties": properties}}
            return {"tools": [tool], "content": []}

        async def go():
            async with fake_http(serve) as url, m.Client(url) as c:
                await c.list_tools()
                for arguments in (
                    {"s": "é", "n": 42, "b": False, "o": {"p": "q"}, "plain": "x"},
                    {"s": None, "o": {}}, {"n": 42.0, "s": ""}, {},
                ):  # fmt: skip
                    await c.call_tool("tüte", arguments)
                await c.read_resource("file:///a%20b/ü")
                await c.get_prompt("x")

        run(go())
        name = "=?base64?dMO8dGU=?="
        called = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": name}
        assert seen[0] == {"mcp-protocol-version": STATELESS, "mcp-method": "server/discover"}
        assert [{k: v for k, v in head.items() if k not in called} for head in seen[2:6]] == [
            {"mcp-param-s": "=?base64?w6k=?=", "mcp-param-n": "42", "mcp-param-b": "false",
             "mcp-param-deep": "q"},
            {}, {"mcp-param-n": "42", "mcp-param-s": ""}, {},
        ]  # fmt: skip
        assert all(called.items() <= head.items() for head in seen[2:6])
        assert seen[6]["mcp-name"] == "=?base64?ZmlsZTovLy9hJTIwYi/DvA==?="
        assert seen[7]["mcp-name"] == "x"

    def test_client_leaves_out_invalid_tools_with_a_warning(self, caplog):
        """streamable-http#schema-extension: "MUST exclude", "SHOULD log a warning"."""
        bad = [{"name": f"bad {what}", "inputSchema": {"type": "object", "properties": properties}}
               for what, properties in BAD_MIRRORS.items()]  # fmt: skip
        good = {"name": "good", "inputSchema": {"type": "object"}}
        legacy = []

        def serve(head, msg):
            if msg["method"] == "server/discover" and legacy:
                return -32601
            return {"tools": [*bad, good], "protocolVersion": SESSIONS, "serverInfo": {}}

        async def names(target):
            async with m.Client(target) as c:
                return [tool["name"] for tool in await c.list_tools()]

        async def go():
            async with fake_http(serve) as url:
                assert await names(url) == ["good"]
                for tool in bad:
                    assert f"{tool['name']!r} is left out" in caplog.text
                legacy.append(1)
                # What older servers mean by that keyword is theirs.
                assert len(await names(url)) == len(bad) + 1
                legacy.clear()
            # Where there are no headers, nothing is wrong with them.
            assert (
                len(await names(Script(lambda msg: [answer_to(msg, serve({}, msg))])))
                == len(bad) + 1
            )

        run(go())

    def test_header_mismatch_reads_the_tools_again_and_retries_once(self):
        """streamable-http#client-behavior: "SHOULD call tools/list ... then retry"."""

        async def go(changes):
            log, marks = [], []

            def serve(head, msg):
                log.append(msg["method"])
                mark = {"x-mcp-header": "Region"} if marks else {}
                properties = {"region": {"type": "string", **mark}}
                tools = [{"name": "x", "inputSchema": {"type": "object", "properties": properties}}]
                if msg["method"] == "tools/call":
                    marks.append(1) if changes else None
                    if not changes or head.get("mcp-param-region") != "eu":
                        return -32020
                hints = {"ttlMs": 60_000, "cacheScope": "public"}
                return {"tools": tools, "content": [], **hints}

            async with fake_http(serve) as url, m.Client(url) as c:
                await c.list_tools()
                try:
                    await c.call_tool("x", {"region": "eu"})
                    return log, "fine"
                except m.RemoteError as exc:
                    return log, exc.code

        path = ["server/discover", "tools/list", "tools/call", "tools/list", "tools/call"]
        assert run(go(True)) == (path, "fine")
        assert run(go(False)) == (path, -32020)


class TestRounds:
    """basic/patterns/mrtr: a request that asks ends, and is sent again with the answers."""

    def app(self, **options):
        app = m.Server(state_key="a key that is long enough", **options)
        app.runs, app.count = [], 0

        def buy():
            app.count += 1
            return {"order": app.count}

        @app.tool
        async def shop(ctx: m.Context, what: str = "tea") -> str:
            app.runs.append(what)
            size = await ctx.elicit("Size?", int, key="size")
            order = await ctx.once(buy)
            words = await ctx.sample("Say thanks", max_tokens=5)
            return f"{what} {size.data} {order['order']} {words['content']['text']}"

        return app

    THANKS = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Thanks"}}

    def test_asking_ends_the_request_and_answering_continues_it(self):
        """mrtr#basic-workflow, mrtr#inputrequiredresult"""

        async def go():
            app = self.app()
            async with Pipe(app) as way:
                ask = calling(1, "shop")
                first = await way.ask(ask)
                ask2 = again(ask, 2, first, {"size": accept(value=3)})
                second = await way.ask(ask2)
                assert (
                    app.count == 1
                    and second["result"]["requestState"] != (first["result"]["requestState"])
                )
                third = await way.ask(again(ask, 3, second, {"sampling-2": self.THANKS}))
                return app, first, second, third, way.heard

        app, first, second, third, heard = run(go())
        asked = first["result"]["inputRequests"]
        assert asked == {"size": {"method": "elicitation/create", "params": {
            "mode": "form", "message": "Size?", "requestedSchema": {"type": "object", "properties": {
                "value": {"type": "integer"}}, "required": ["value"]}}}}  # fmt: skip
        assert second["result"]["inputRequests"] == {
            "sampling-2": {"method": "sampling/createMessage", "params": {
                "messages": [{"role": "user", "content": {"type": "text", "text": "Say thanks"}}],
                "maxTokens": 5}},
        }  # fmt: skip
        assert said(third) == "tea 3 1 Thanks"
        assert (app.runs, app.count, heard) == (["tea"] * 3, 1, [])

    WRONG = [
        {}, None, [], "text", {"size": None}, {"size": 5}, {"size": []}, {"size": {}}, {"other": {}},
        {"size": {"action": "yes"}}, {"size": {"action": "accept"}},
        {"size": {"action": "accept", "content": {"value": "many"}}},
        {"size": {"action": "accept", "content": {"values": 3}}},
        {"size": {"action": "accept", "content": "3"}}, {"SIZE": {"action": "decline"}},
    ]  # fmt: skip

    def test_missing_and_wrong_answers_are_asked_for_again(self):
        """mrtr#error-handling: "a new InputRequiredResult requesting the missing information"."""

        async def go():
            async with Pipe(self.app()) as way:
                ask = calling(1, "shop")
                first = await way.ask(ask)
                for responses in self.WRONG:
                    retry = again(ask, 2, first)
                    retry["params"]["inputResponses"] = responses
                    second = await way.ask(retry)
                    asked = second["result"]["inputRequests"]
                    assert asked == first["result"]["inputRequests"], responses
                third = await way.ask(again(ask, 3, second, {"size": accept(value=3)}))
                return list(third["result"]["inputRequests"])

        assert run(go()) == ["sampling-2"]

    def test_answers_to_what_was_not_asked_change_nothing(self):
        """mrtr#error-handling: "SHOULD ignore any information it does not recognize"."""

        async def go():
            async with Pipe(self.app()) as way:
                ask = calling(1, "shop")
                first = await way.ask(ask)
                more = {"size": accept(value=3), "colour": accept(value="red"), "": 5}
                second = await way.ask(again(ask, 2, first, more))
                # What was answered once stays: the order was made for it.
                more = {"size": accept(value=9), "sampling-2": self.THANKS}
                return said(await way.ask(again(ask, 3, second, more)))

        assert run(go()) == "tea 3 1 Thanks"

    SPOIL = [
        lambda p: p.update(requestState=p["requestState"] + "-TAMPERED"),
        lambda p: p.update(requestState="A" + p["requestState"][1:]),
        lambda p: p.update(requestState=p["requestState"][:-1]),
        lambda p: p.update(requestState=p["requestState"].split(".")[0]),
        lambda p: p.update(requestState=""),
        lambda p: p.update(requestState="."),
        lambda p: p.update(requestState="\u20ac"),
        lambda p: p.update(requestState=5),
        lambda p: p.update(requestState=[p["requestState"]]),
        lambda p: p["arguments"].update(what="gold"),
        lambda p: p.update(arguments={}),
        lambda p: p.update(name="twin"),
        lambda p: p.update(requestState=m.seal(b"another key", {"bound": [], "record": {}})),
        lambda p: p.update(requestState="x" * (m.MAX_STATE_BYTES + 1)),
    ]

    @each_door
    def test_state_that_is_not_ours_is_refused(self, door):
        """mrtr#server-requirements-basic-workflow: "MUST reject state that fails verification"."""

        async def go():
            app = self.app()
            app.add_tool(app.tools["shop"].fn, name="twin")
            async with door(app) as way:
                ask = calling(1, "shop", {"what": "tea"})
                right = again(ask, 2, await way.ask(ask), {"size": accept(value=3)})
                for number, spoil in enumerate(self.SPOIL):
                    retry = json.loads(json.dumps(right))
                    spoil(retry["params"])
                    assert problem(await way.ask(retry)) == -32602, number
                    assert way.status == (None if door is Pipe else 400)
                return app.count

        assert run(go()) == 0

    @pytest.mark.parametrize("method", ["prompts/get", "resources/read", "tools/list"])
    def test_state_of_another_method_is_refused(self, method):
        async def go():
            app = self.app()
            app.add_prompt(lambda: "x", name="shop")
            app.add_resource("shop://", "x")
            async with Pipe(app) as way:
                state = (await way.ask(calling(1, "shop")))["result"]["requestState"]
                params = {"name": "shop", "uri": "shop://", "arguments": {}, "requestState": state}
                return problem(await way.ask(stateless(2, method, ANYTHING, **params)))

        assert run(go()) == -32602

    def test_state_lapses(self, monkeypatch):
        """mrtr#server-requirements-basic-workflow: "a short expiry (TTL)"."""

        async def go(seconds):
            monkeypatch.setattr(m, "STATE_SECONDS", seconds)
            async with Pipe(self.app()) as way:
                ask = calling(1, "shop")
                retry = again(ask, 2, await way.ask(ask), {"size": accept(value=3)})
                answer = await way.ask(retry)
                return answer["error"]["code"] if "error" in answer else "fine"

        assert run(go(60)) == "fine"
        assert run(go(-0.001)) == -32602

    def test_state_of_another_principal_is_refused(self):
        async def go():
            async with Web(self.app(), token={"t1": "ann", "t2": "bob", "t3": "ann"}) as way:
                head = {"authorization": "Bearer t1"}
                ask = calling(1, "shop")
                retry = again(ask, 2, await way.ask(ask, head), {"size": accept(value=3)})
                found = []
                for token in ("t2", "t3", "t1"):
                    answer = await way.ask(retry, {"authorization": f"Bearer {token}"})
                    found.append(answer["error"]["code"] if "error" in answer else "fine")
                return found

        assert run(go()) == [-32602, "fine", "fine"]

    def test_state_is_limited_in_size(self, monkeypatch):
        app = m.Server()

        @app.tool
        async def big(ctx: m.Context, size: int) -> str:
            await ctx.once(lambda: "x" * size)
            await ctx.elicit("?")
            return "done"

        async def go():
            async with Pipe(app) as way:
                ask = calling(1, "big", {"size": 10})
                length = len((await way.ask(ask))["result"]["requestState"])
                monkeypatch.setattr(m, "MAX_STATE_BYTES", length)
                assert "result" in await way.ask(ask)
                monkeypatch.setattr(m, "MAX_STATE_BYTES", length - 1)
                assert problem(await way.ask(ask)) == -32603

        run(go())

    def test_what_is_asked_together_is_asked_in_one_round(self):
        app, runs = m.Server(), []

        @app.tool
        async def gathers(ctx: m.Context) -> str:
            runs.append(1)
            answers = await asyncio.gather(
                ctx.elicit("Name?", str), ctx.sample("Hi"), ctx.roots(), ctx.elicit("Age?", int)
            )
            return f"{answers[0].data} {answers[1]['model']} {len(answers[2])} {answers[3].data}"

        async def go():
            async with Pipe(app) as way:
                ask = calling(1, "gathers")
                first = await way.ask(ask)
                assert list(first["result"]["inputRequests"]) == [
                    "elicitation-1", "sampling-2", "roots-3", "elicitation-4"]  # fmt: skip
                part = {"elicitation-1": accept(value="Ann"), "roots-3": {"roots": []}}
                second = await way.ask(again(ask, 2, first, part))
                assert list(second["result"]["inputRequests"]) == ["sampling-2", "elicitation-4"]
                rest = {"sampling-2": self.THANKS, "elicitation-4": accept(value=7)}
                return said(await way.ask(again(ask, 3, second, rest)))

        assert run(go()) == "Ann m 0 7" and len(runs) == 3

    def test_keys_name_questions_and_must_differ(self):
        """mrtr#server-requirements-basic-workflow: keys "MUST be unique"."""
        app = m.Server()

        @app.tool
        async def twice(ctx: m.Context) -> str:
            await asyncio.gather(ctx.elicit("1", key="k"), ctx.elicit("2", key="k"))

        @app.tool
        async def taken(ctx: m.Context) -> str:
            await asyncio.gather(ctx.elicit("1", key="elicitation-2"), ctx.elicit("2"))

        async def go():
            async with Pipe(app) as way:
                ask = calling(1, "twice")
                wrong = await way.ask(again(ask, 2, await way.ask(ask), {"k": accept()}))
                right = (await way.ask(calling(2, "taken")))["result"]
                return wrong["result"], right

        wrong, right = run(go())
        assert wrong["isError"] and "'k' names two questions" in wrong["content"][0]["text"]
        assert list(right["inputRequests"]) == ["elicitation-2", "elicitation-3"]

    NEEDS = [
        ({}, "form", {"elicitation": {}}), ({"elicitation": {}}, "form", None),
        ({"elicitation": {"form": {}}}, "form", None),
        ({"elicitation": {"url": {}}}, "form", {"elicitation": {"form": {}}}),
        ({"elicitation": {}}, "url", {"elicitation": {"url": {}}}),
        ({"elicitation": {"url": {}}}, "url", None),
        ({}, "sample", {"sampling": {}}), ({"sampling": {}}, "sample", None),
        ({"sampling": {}}, "sample_tools", {"sampling": {"tools": {}}}),
        ({"sampling": {"tools": {}}}, "sample_tools", None), ({}, "roots", {"roots": {}}),
        ({"roots": {}}, "roots", None),
    ]  # fmt: skip

    @pytest.mark.parametrize("by_hand", [False, True], ids=["awaited", "by hand"])
    def test_only_what_was_declared_is_asked(self, by_hand):
        """mrtr#server-requirements-basic-workflow: "MUST NOT send an inputRequests" otherwise."""
        app = m.Server()
        form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        wish = {"name": "t", "inputSchema": {"type": "object"}}
        talk = {"messages": [], "maxTokens": 1}
        hand = {
            "form": ("elicitation/create", {"mode": "form", **form}),
            "url": ("elicitation/create", {"mode": "url", "message": "?", "url": "x://y"}),
            "sample": ("sampling/createMessage", talk),
            "sample_tools": ("sampling/createMessage", {**talk, "tools": [wish]}),
            "roots": ("roots/list", {}),
        }

        @app.tool
        async def ask(tool: str, ctx: m.Context) -> str:
            if by_hand:
                method, params = hand[tool]
                return m.InputRequired({"q": {"method": method, "params": params}})
            if tool == "form":
                await ctx.elicit("?")
            elif tool == "url":
                await ctx.elicit_url("?", "x://y")
            elif tool == "roots":
                await ctx.roots()
            else:
                await ctx.sample([], max_tokens=1, tools=[wish] if tool == "sample_tools" else None)

        async def go():
            async with Pipe(app) as way:
                for capabilities, tool, needs in self.NEEDS:
                    msg = calling(1, "ask", {"tool": tool}, capabilities=capabilities)
                    answer = await way.ask(msg)
                    if needs is None:
                        (asked,) = answer["result"]["inputRequests"].values()
                        assert asked["method"] == hand[tool][0]
                    else:
                        assert problem(answer) == -32021, (capabilities, tool)
                        assert answer["error"]["data"] == {"requiredCapabilities": needs}

        run(go())

    def test_prompts_and_resources_ask_too(self):
        """mrtr#supported-requests"""
        app = m.Server()

        @app.prompt
        async def tell(topic: str, ctx: m.Context) -> str:
            return f"{topic} {(await ctx.elicit('Who?', str, key='who')).data}"

        @app.resource("note://{name}")
        def note(name: str, ctx: m.Context) -> str:
            return f"{name} {ctx.elicit('Who?', str, key='who').data}"

        async def go():
            async with Pipe(app) as way:
                asks = [stateless(1, "prompts/get", ANYTHING, name="tell", arguments={"topic": "a"}),
                        stateless(3, "resources/read", ANYTHING, uri="note://a")]  # fmt: skip
                found = []
                for ask in asks:
                    first = await way.ask(ask)
                    assert (
                        not {"ttlMs", "cacheScope", "messages", "contents"} & first["result"].keys()
                    )
                    retry = again(ask, 2, first, {"who": accept(value="Ann")})
                    found.append((await way.ask(retry))["result"])
                return found

        prompt, resource = run(go())
        assert prompt["messages"][0]["content"]["text"] == "a Ann"
        assert resource["contents"][0]["text"] == "a Ann"

    @pytest.mark.parametrize("what", ["completion", "list", "custom"])
    def test_other_methods_cannot_ask(self, what, caplog):
        """mrtr#supported-requests: "MUST NOT send InputRequiredResult" on any other."""
        app = m.Server()
        app.add_prompt(lambda a: "x", name="p")

        @app.complete("p", "a")
        async def complete(value: str, ctx: m.Context) -> list:
            return [str(await ctx.roots())]

        @app.method("acme/x")
        async def custom(ctx, params):
            return {"roots": await ctx.roots()}

        @app.middleware
        async def ask(ctx, call_next):
            if ctx.method == "prompts/list":
                await ctx.roots()
            return await call_next(ctx)

        asks = {
            "completion": stateless(1, "completion/complete", ANYTHING,
                ref={"type": "ref/prompt", "name": "p"}, argument={"name": "a", "value": ""}),
            "list": stateless(1, "prompts/list", ANYTHING),
            "custom": stateless(1, "acme/x", ANYTHING),
        }  # fmt: skip

        async def go():
            async with Pipe(app) as way:
                return problem(await way.ask(asks[what]))

        assert run(go()) == -32603 and "cannot ask the client" in caplog.text

    def test_middleware_may_ask_before_a_tool(self):
        app, seen = m.Server(), []
        app.tool(lambda: "done", name="x")

        @app.middleware
        async def sure(ctx, call_next):
            try:
                if ctx.method == "tools/call" and (await ctx.elicit("Sure?")).action != "accept":
                    raise m.RPCError(-32000, "not sure")
                return await call_next(ctx)
            finally:
                seen.append(ctx.method)

        async def go():
            async with Pipe(app) as way:
                ask = calling(1, "x")
                first = await way.ask(ask)
                yes = await way.ask(again(ask, 2, first, {"elicitation-1": accept()}))
                no = await way.ask(again(ask, 3, first, {"elicitation-1": {"action": "cancel"}}))
                return said(yes), problem(no)

        assert run(go()) == ("done", -32000) and seen == ["tools/call"] * 3


class TestSuspending:
    """A run that ends to ask ends like a cancelled one, whatever the handler does about it."""

    async def converse(self, app, tool, answers, **options):
        """Return the text of a tool, and how often it was asked; `answers` go by key."""
        async with Pipe(app, **options) as way:
            ask, rounds = calling(1, tool), 0
            answer = await way.ask(ask)
            while answer.get("result", {}).get("resultType") == "input_required":
                rounds += 1
                wanted = answer["result"].get("inputRequests", {})
                answer = await way.ask(again(ask, rounds + 1, answer, {
                    key: answers.get(key, accept(value=key)) for key in wanted}))  # fmt: skip
            return answer, rounds

    def check(self, handler, text, rounds, **options):
        app = m.Server(**options)
        app.add_tool(handler, name="x")
        answer, asked = run(self.converse(app, "x", {}))
        assert (said(answer), asked) == (text, rounds)

    def test_finally_blocks_and_contexts_run(self):
        log = []

        @contextlib.asynccontextmanager
        async def opened():
            log.append("open")
            try:
                yield
            finally:
                await asyncio.sleep(0)
                log.append("close")

        async def handler(ctx: m.Context) -> str:
            try:
                async with opened():
                    return (await ctx.elicit("?", str)).data
            finally:
                log.append("end")

        self.check(handler, "elicitation-1", 1)
        assert log == ["open", "close", "end"] * 2

    @pytest.mark.parametrize("then", ["return", "raise", "tool error"])
    def test_what_a_handler_makes_of_the_cancellation_is_not_told(self, then, caplog):
        async def handler(ctx: m.Context) -> str:
            try:
                return (await ctx.elicit("?", str)).data
            except asyncio.CancelledError:
                if then == "return":
                    return "swallowed"
                raise (ValueError if then == "raise" else m.ToolError)("swallowed") from None

        self.check(handler, "elicitation-1", 1)

    def test_except_exception_does_not_see_it_in_a_coroutine_or_a_thread(self):
        caught = []

        async def handler(ctx: m.Context) -> str:
            try:
                return (await ctx.elicit("?", str)).data
            except Exception as exc:
                caught.append(exc)

        def in_thread(ctx: m.Context) -> str:
            try:
                return ctx.elicit("?", str).data
            except Exception as exc:
                caught.append(exc)

        self.check(handler, "elicitation-1", 1)
        self.check(in_thread, "elicitation-1", 1)
        assert caught == []

    def test_questions_in_finally_blocks_do_not_hang(self):
        async def handler(ctx: m.Context) -> str:
            try:
                return (await ctx.elicit("1", str, key="a")).data
            finally:
                await ctx.elicit("2", str, key="b")

        self.check(handler, "a", 1)

    def test_asks_inside_wait_for(self):
        async def handler(ctx: m.Context) -> str:
            return (await asyncio.wait_for(ctx.elicit("?", str), 60)).data

        self.check(handler, "elicitation-1", 1)

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup and timeout came with 3.11")
    def test_asks_inside_task_groups_and_timeouts(self):
        async def handler(ctx: m.Context) -> str:
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                one = group.create_task(ctx.elicit("1", str, key="a"))
                two = group.create_task(ctx.elicit("2", str, key="b"))
            three = await ctx.elicit("3", str, key="c")
            return one.result().data + two.result().data + three.data

        self.check(handler, "abc", 2)

    def test_a_question_in_a_task_of_the_handlers_own_leaves_nothing_behind(self):
        """run() fails if the task outlives the request."""
        tasks = []

        async def handler(ctx: m.Context) -> str:
            tasks.append(asyncio.ensure_future(ctx.elicit("?", str)))
            return (await asyncio.shield(tasks[-1])).data

        self.check(handler, "elicitation-1", 1)
        assert tasks[0].cancelled() and not tasks[1].cancelled()

    def test_a_question_that_nobody_awaits_is_not_asked(self):
        async def handler(ctx: m.Context) -> str:
            self.task = asyncio.ensure_future(ctx.elicit("?", str))
            await asyncio.sleep(0)
            return "done"

        self.check(handler, "done", 0)

    def test_a_handler_asks_after_progress_and_logs(self):
        app = m.Server()

        @app.tool
        async def x(ctx: m.Context) -> str:
            await ctx.report_progress(1, 2, "begun")
            await ctx.info("asking")
            name = (await ctx.elicit("?", str)).data
            await ctx.report_progress(2, 2)
            return name

        meta = {"progressToken": "p", OF_MCP + "logLevel": "info"}

        async def go():
            async with Web(app) as way:
                ask = calling(1, "x", meta=meta)
                first = await way.ask(ask)
                heard, way.heard = way.heard, []
                answer = said(
                    await way.ask(again(ask, 2, first, {"elicitation-1": accept(value="A")}))
                )
                return heard, way.heard, answer, way.status

        first, second, answer, status = run(go())
        kinds = [msg["method"].rpartition("/")[2] for msg in first]
        assert kinds == ["progress", "message"] and (answer, status) == ("A", 200)
        assert [msg["params"].get("progress", "log") for msg in second] == [1, "log", 2]

    def test_handlers_in_threads_ask_and_their_threads_are_freed(self):
        """With one thread: a run that was ended to ask has left it by its `finally`."""
        log = []

        def handler(ctx: m.Context) -> str:
            try:
                one = ctx.elicit("1", str, key="a").data
                number = ctx.once(lambda: log.append("once") or 5)
                return f"{one} {number} {ctx.elicit('2', str, key='b').data}"
            finally:
                log.append(threading.get_ident())

        self.check(handler, "a 5 b", 2, threads=1)
        assert log.count("once") == 1 and len(log) == 4, "each of three runs came to its end"

    def test_once_with_a_coroutine_function_in_a_thread(self):
        async def count():
            return 5

        def handler(ctx: m.Context) -> str:
            return f"{ctx.once(count)} {ctx.elicit('?', str, key='a').data}"

        self.check(handler, "5 a", 1)

    def test_a_host_that_runs_functions_in_a_thread_of_its_own_can_be_asked(self):
        pool = concurrent.futures.ThreadPoolExecutor(1)

        async def call_sync(fn):
            return await asyncio.get_running_loop().run_in_executor(pool, fn)

        def handler(ctx: m.Context) -> str:
            return ctx.elicit("1", str, key="a").data + ctx.elicit("2", str, key="b").data

        with pool:
            pool.submit(int).result()
            self.check(handler, "ab", 2, call_sync=call_sync)

    def test_once_is_called_once_for_each_turn(self):
        log = []

        def note(what):
            log.append(what)
            return what

        async def handler(ctx: m.Context) -> str:
            first = await ctx.once(note, 1)
            await ctx.elicit("1", key="a")
            second = await ctx.once(note, 2)
            await ctx.elicit("2", key="b")
            return f"{first} {second} {await ctx.once(note, 3)}"

        self.check(handler, "1 2 3", 2)
        assert log == [1, 2, 3]

    def test_once_in_a_gather_keeps_each_result_in_its_place(self):
        log = []

        async def slow(what):
            for _ in range(5 - what):
                await asyncio.sleep(0)
            log.append(what)
            return what

        async def handler(ctx: m.Context) -> str:
            found = await asyncio.gather(ctx.once(slow, 1), ctx.once(slow, 2), ctx.once(slow, 3))
            return f"{found} {(await ctx.elicit('1', str, key='a')).data}"

        self.check(handler, "[1, 2, 3] a", 1)
        assert sorted(log) == [1, 2, 3]

    def test_what_once_has_begun_is_recorded_before_the_run_ends(self):
        log = []

        async def charge():
            log.append("begun")
            for _ in range(20):
                await asyncio.sleep(0)
            log.append("ended")
            return 5

        async def handler(ctx: m.Context) -> str:
            amount, name = await asyncio.gather(ctx.once(charge), ctx.elicit("?", str, key="a"))
            return f"{amount} {name.data}"

        self.check(handler, "5 a", 1)
        assert log == ["begun", "ended"]

    def test_once_that_fails_is_not_recorded(self):
        log = []

        def fails():
            log.append(1)
            if len(log) < 2:
                raise OSError("not yet")
            return len(log)

        async def handler(ctx: m.Context) -> str:
            try:
                value = await ctx.once(fails)
            except OSError:
                value = "failed"
            return f"{value} {(await ctx.elicit('?', str, key='a')).data}"

        self.check(handler, "2 a", 1)

    def test_once_records_json_and_the_handler_may_change_what_it_got(self):
        async def handler(ctx: m.Context) -> str:
            items = await ctx.once(lambda: (1, 2))
            items.append(3)
            text = await ctx.sample("?", key="s")
            text["model"] += "!"
            await ctx.elicit("?", key="a")
            return f"{items} {text['model']}"

        app = m.Server()
        app.add_tool(handler, name="x")
        answer, _ = run(self.converse(app, "x", {"s": TestRounds.THANKS}))
        assert said(answer) == "[1, 2, 3] m!"

    def test_once_must_not_ask_and_says_so(self):
        async def handler(ctx: m.Context) -> str:
            return await ctx.once(lambda: 1) and await ctx.once(ask, ctx)

        async def ask(ctx):
            return (await ctx.elicit("?", str)).data

        app = m.Server()
        app.add_tool(handler, name="x")

        async def go(revision):
            async with m.Client(app, revision=revision, elicit=lambda *a: "x") as c:
                with pytest.raises(m.ToolError, match="ask before ctx.once"):
                    await c.call("x")

        for revision in (STATELESS, SESSIONS):
            run(go(revision))

    def test_once_inside_once_counts_as_one(self):
        log = []

        async def handler(ctx: m.Context) -> str:
            async def outer():
                return [await ctx.once(log.append, 1), 2]

            first = await ctx.once(outer)
            second = await ctx.once(lambda: 3)
            await ctx.elicit("?", key="a")
            return f"{first} {second}"

        self.check(handler, "[None, 2] 3", 1)
        assert log == [1]

    def test_cancelled_while_it_is_being_suspended_there_is_no_answer(self):
        app, began, ended = m.Server(), [], []

        @app.tool
        async def x(ctx: m.Context) -> str:
            try:
                await ctx.elicit("?")
            finally:
                began[0].set()
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    ended.append(1)

        async def go():
            began.append(asyncio.Event())
            async with Pipe(app) as way:
                await way.send(calling(1, "x"))
                await began[0].wait()  # its finally block is running
                await way.send(m.notification("notifications/cancelled", {"requestId": 1}))
                await way.ask(stateless(2, "tools/list"))
                return way.heard

        assert run(go()) == [] and ended == [1]

    def test_requests_that_race_do_not_mix(self):
        app = m.Server()

        @app.tool
        async def x(n: int, ctx: m.Context) -> str:
            one = await ctx.elicit(f"{n}", int, key="k")
            two = await ctx.once(lambda: n * 100)
            return f"{n} {one.data} {two} {(await ctx.elicit('', int, key='l')).data}"

        async def one(way, n):
            ask = calling(n, "x", {"n": n})
            first = await way.ask(ask)
            assert first["result"]["inputRequests"]["k"]["params"]["message"] == str(n)
            second = await way.ask(again(ask, n, first, {"k": accept(value=n)}))
            return said(await way.ask(again(ask, n, second, {"l": accept(value=n)})))

        async def go():
            async with Web(app) as way:
                return await asyncio.gather(*(one(way, n) for n in range(30)))

        assert run(go()) == [f"{n} {n} {n * 100} {n}" for n in range(30)]

    @pytest.mark.parametrize("asks, fine", [(16, True), (17, False)])
    @pytest.mark.parametrize("how", ["awaited", "by hand", "legacy, by hand"])
    def test_a_client_answers_sixteen_rounds_and_no_more(self, asks, fine, how):
        """mrtr: nothing bounds them; section 1 does."""
        app, answered = m.Server(), []

        @app.tool
        async def x(ctx: m.Context) -> str:
            if how == "awaited":
                for _ in range(asks):
                    await ctx.elicit("?", int)
                return "done"
            count = len(ctx.input_responses)
            ask = {"method": "roots/list"}
            return m.InputRequired({f"n{count}": ask}) if count < asks else "done"

        def answer(*args):
            answered.append(1)
            return 5

        async def go():
            revision = SESSIONS if "legacy" in how else STATELESS
            async with m.Client(
                app, revision=revision, elicit=answer, roots=lambda: answer() and []
            ) as c:
                return await c.call("x")

        if fine:
            assert run(go()) == "done"
        else:
            with pytest.raises(m.MCPError, match="more than 16 times"):
                run(go())
        assert len(answered) <= 17


class TestConsent:
    """An answer counts only for the question that it was given to, whatever door it comes by."""

    def app(self, files):
        """Return a server that offers to delete the first file, in every way that can ask."""
        app = m.Server(state_key="a key that is long enough")
        app.deleted = []

        def delete(name):
            app.deleted.append(name)
            files.remove(name)
            return f"deleted {name}"

        async def first(ctx, key=None):
            name = min(files)
            answer = await ctx.elicit(f"Delete {name}?", key=key)
            return delete(name) if answer.action == "accept" else "kept"

        @app.tool
        async def by_order(ctx: m.Context) -> str:
            return await first(ctx)

        @app.tool
        async def by_key(ctx: m.Context) -> str:
            return await first(ctx, "confirm")

        @app.tool
        def in_a_thread(ctx: m.Context) -> str:
            name = min(files)
            answer = ctx.elicit(f"Delete {name}?")
            return delete(name) if answer.action == "accept" else "kept"

        @app.tool
        async def by_hand(ctx: m.Context) -> str:
            name = min(files)
            ask = {"method": "elicitation/create", "params": {
                "mode": "form", "message": f"Delete {name}?",
                "requestedSchema": {"type": "object", "properties": {}}}}  # fmt: skip
            answer = ctx.answer_to("confirm", ask)
            if answer is None:
                return m.InputRequired({"confirm": ask})
            return delete(name) if answer["action"] == "accept" else "kept"

        @app.prompt
        async def in_a_prompt(ctx: m.Context) -> str:
            return await first(ctx)

        @app.resource("file://first")
        async def in_a_resource(ctx: m.Context) -> str:
            return await first(ctx)

        return app

    WAYS = ["by_order", "by_key", "in_a_thread", "by_hand", "in_a_prompt", "in_a_resource"]

    @staticmethod
    def asking(way):
        if way == "in_a_prompt":
            return stateless(1, "prompts/get", ANYTHING, name=way, arguments={})
        if way == "in_a_resource":
            return stateless(1, "resources/read", ANYTHING, uri="file://first")
        return calling(1, way)

    @staticmethod
    def question(answer):
        ((key, asked),) = answer["result"]["inputRequests"].items()
        return key, asked["params"]["message"]

    @each_door
    @pytest.mark.parametrize("way", WAYS)
    def test_a_yes_to_one_file_deletes_no_other(self, door, way):
        files = {"a.txt", "b.txt"}

        async def go():
            app = self.app(files)
            async with door(app) as entry:
                ask = self.asking(way)
                first = await entry.ask(ask)
                key, text = self.question(first)
                assert text == "Delete a.txt?"
                files.add("0-important.txt")
                second = await entry.ask(again(ask, 2, first, {key: {"action": "accept"}}))
                assert self.question(second) == (key, "Delete 0-important.txt?")
                assert app.deleted == []
                # Without an answer it is asked again, with one it is done.
                third = await entry.ask(again(ask, 3, second))
                assert self.question(third) == (key, "Delete 0-important.txt?")
                last = await entry.ask(again(ask, 4, third, {key: {"action": "accept"}}))
                assert last["result"]["resultType"] == "complete"
                return app.deleted

        assert run(go()) == ["0-important.txt"]

    @each_door
    @pytest.mark.parametrize("way", WAYS)
    def test_an_answer_to_what_was_never_asked_is_no_answer(self, door, way):
        """A client that skips the first round has no state, and so has not been asked."""

        async def go():
            app = self.app({"a.txt"})
            async with door(app) as entry:
                ask = self.asking(way)
                key = self.question(await entry.ask(ask))[0]
                ask["params"]["inputResponses"] = {key: {"action": "accept"}}
                assert self.question(await entry.ask(ask)) == (key, "Delete a.txt?")
                return app.deleted

        assert run(go()) == []

    @each_door
    def test_a_yes_in_a_gather_counts_only_for_its_own_question(self, door):
        app, names, deleted = m.Server(), ["a", "b"], []

        @app.tool
        async def clean(ctx: m.Context) -> str:
            chosen = names[:2]
            answers = await asyncio.gather(*(ctx.elicit(f"Delete {name}?") for name in chosen))
            deleted.extend(n for n, answer in zip(chosen, answers) if answer.action == "accept")
            return " ".join(deleted)

        async def go():
            async with door(app) as entry:
                ask = calling(1, "clean")
                first = await entry.ask(ask)
                names.insert(0, "0")  # now the first question is about 0, the second about a
                yes_no = {"elicitation-1": {"action": "accept"}, "elicitation-2": {"action": "decline"}}
                second = await entry.ask(again(ask, 2, first, yes_no))
                asked = second["result"]["inputRequests"].items()
                assert [(key, each["params"]["message"]) for key, each in asked] == [
                    ("elicitation-1", "Delete 0?"), ("elicitation-2", "Delete a?")]  # fmt: skip
                no = dict.fromkeys(("elicitation-1", "elicitation-2"), {"action": "decline"})
                assert said(await entry.ask(again(ask, 3, second, no))) == ""

        run(go())
        assert deleted == []

    def test_another_form_or_another_kind_of_question_is_another_question(self):
        app, runs = m.Server(), []
        asks = [("Pay?", bool), ("Pay?", int), ("Pay 10?", int)]

        @app.tool
        async def pay(ctx: m.Context) -> str:
            runs.append(1)
            if len(runs) > len(asks):
                return str(await ctx.roots(key="k"))
            text, kind = asks[len(runs) - 1]
            return f"paid {(await ctx.elicit(text, kind, key='k')).data}"

        async def go():
            async with Pipe(app) as way:
                ask, answer = calling(1, "pay"), None
                for number, value in enumerate((None, True, 1, 10), 2):
                    responses = {} if value is None else {"k": accept(value=value)}
                    answer = await way.ask(again(ask, number, answer, responses) if answer else ask)
                    assert list(answer["result"]["inputRequests"]) == ["k"]
                return answer["result"]["inputRequests"]["k"]["method"]

        assert run(go()) == "roots/list"

    def test_a_question_that_changes_in_every_round_is_said_to_the_author(self, caplog):
        app, times = m.Server(), itertools.count()

        @app.tool
        async def hurry(ctx: m.Context) -> str:
            return (await ctx.elicit(f"Now, at {next(times)}?")).action

        async def go():
            async with Pipe(app) as way:
                ask = calling(1, "hurry")
                first = await way.ask(ask)
                await way.ask(again(ask, 2, first, {"elicitation-1": {"action": "accept"}}))

        run(go())
        assert "the question 'elicitation-1' is not that of the round before" in caplog.text

    @pytest.mark.parametrize("revision", [STATELESS, SESSIONS])
    def test_an_answer_by_hand_is_found_by_its_question(self, revision):
        files = {"a.txt"}

        async def go():
            app = self.app(files)
            async with m.Client(app, revision=revision, elicit=lambda *a: {}) as c:
                return await c.call("by_hand"), app.deleted

        assert run(go()) == ("deleted a.txt", ["a.txt"])


def charge(amount, *rest):
    return {"charged": amount}


def refund(amount):
    return {"refunded": amount}


class TestOnceBelongs:
    """What once() recorded belongs to a function and its arguments; `call_id` to a call."""

    @staticmethod
    def app(calls):
        """Return a server whose tool makes the n-th of `calls` in its n-th run, and then asks."""
        app = m.Server(state_key="a key that is long enough")
        app.found = []

        @app.tool
        async def pay(ctx: m.Context) -> str:
            fn, args = calls[min(len(app.found), len(calls) - 1)]
            app.found.append(None)
            app.found[-1] = await ctx.once(fn, *args)
            return (await ctx.elicit("Sure?")).action

        @app.tool
        def pay_in_a_thread(ctx: m.Context) -> str:
            fn, args = calls[min(len(app.found), len(calls) - 1)]
            app.found.append(None)
            app.found[-1] = ctx.once(fn, *args)
            return ctx.elicit("Sure?").action

        return app

    async def second_round(self, door, calls, tool):
        app = self.app(calls)
        async with door(app) as way:
            ask = calling(1, tool)
            first = await way.ask(ask)
            yes = {"elicitation-1": {"action": "accept"}}
            return app.found, await way.ask(again(ask, 2, first, yes))

    OTHER_PATHS = {
        "another function": [(charge, [10]), (refund, [10])],
        "other arguments": [(charge, [10]), (charge, [1000])],
        "more arguments": [(charge, [10]), (charge, [10, None])],
        "a partial": [(charge, [10]), (functools.partial(charge, 10), [])][:1]
        + [(functools.partial(charge, 11), [])],
        "a lambda": [(lambda: charge(10), []),
                     (lambda: refund(10), [])],
        "keywords": [(functools.partial(dict, a=1), []), (functools.partial(dict, a=2), [])],
    }  # fmt: skip

    @each_door
    @pytest.mark.parametrize("tool", ["pay", "pay_in_a_thread"])
    @pytest.mark.parametrize("calls", OTHER_PATHS.values(), ids=OTHER_PATHS)
    def test_another_call_at_its_place_is_an_error(self, door, tool, calls):
        found, answer = run(self.second_round(door, calls, tool))
        assert "the handler took another path than in the round before" in answer["error"]["message"]
        assert problem(answer) == -32603 and found[1] is None

    SAME = {
        "a number": (charge, [10]), "a date": (str, [datetime.date(2020, 1, 2)]),
        "a set": (len, [{1, 2}]), "no arguments": (list, []),
        "a partial": (functools.partial(charge, 10), [3]),
        "a callable object": (operator.itemgetter(0), [["x"]]), "a method": ("x".upper, []),
        "a connection": (charge, [10, object()]),
    }  # fmt: skip

    @pytest.mark.parametrize("tool", ["pay", "pay_in_a_thread"])
    @pytest.mark.parametrize("call", SAME.values(), ids=SAME)
    def test_the_same_call_is_answered_from_the_record(self, tool, call):
        found, answer = run(self.second_round(Pipe, [call], tool))
        assert said(answer) == "accept" and found[0] == found[1] is not None

    def test_a_turn_that_was_skipped_does_not_get_the_result_of_another(self):
        app, skip = m.Server(), []

        @app.tool
        async def both(ctx: m.Context) -> str:
            if not skip:
                await ctx.once(charge, 1)
            skip.append(1)
            found = await ctx.once(refund, 2)
            return f"{found} {await ctx.elicit('?')}"

        async def go():
            async with Pipe(app) as way:
                ask = calling(1, "both")
                first = await way.ask(ask)
                yes = {"elicitation-1": {"action": "accept"}}
                return (await way.ask(again(ask, 2, first, yes)))["error"]["message"]

        text = run(go())
        assert "its ctx.once() number 1 was test_mcp_lite.charge(" in text
        assert "and now is test_mcp_lite.refund(" in text

    @each_door
    def test_call_id_is_the_same_in_all_rounds_and_for_a_round_sent_twice(self, door):
        app, ids = m.Server(state_key="a key that is long enough"), []

        @app.tool
        async def pay(ctx: m.Context) -> str:
            if ids:  # not looked at in the first round: it is the same all the same
                ids.append(ctx.call_id)
            else:
                ids.append(None)
            await ctx.elicit("Sure?")
            await ctx.elicit("Really?")
            return ctx.call_id

        async def go():
            async with door(app) as way:
                ask = calling(1, "pay")
                first = await way.ask(ask)
                retry = again(ask, 2, first, {"elicitation-1": {"action": "accept"}})
                second = await way.ask(retry)
                retry2 = again(ask, 3, second, {"elicitation-2": {"action": "accept"}})
                texts = [said(await way.ask({**retry2, "id": number})) for number in (3, 4)]
                await way.ask(calling(5, "pay"))
                return texts

        texts = run(go())
        assert texts[0] == texts[1] and {*ids[1:4]} == {texts[0]} and len(texts[0]) == 32
        assert len(ids) == 5 and ids[4] != texts[0]

    @pytest.mark.parametrize("revision", [STATELESS, SESSIONS])
    def test_every_call_has_a_call_id_of_its_own(self, revision):
        app = m.Server()

        @app.tool
        async def which(ctx: m.Context) -> str:
            assert ctx.call_id == ctx.call_id
            return ctx.call_id

        async def go():
            async with m.Client(app, revision=revision) as c:
                return {await c.call("which") for _ in range(5)}

        assert len(run(go())) == 5


class TestRoundsByHand:
    """`return InputRequired({...}, state=...)`, for whoever wants to see the rounds."""

    def app(self):
        app = m.Server()
        ask = {"method": "elicitation/create", "params": {
            "mode": "form", "message": "?", "requestedSchema": {
                "type": "object", "properties": {"v": {"type": "string"}}}}}  # fmt: skip

        @app.tool
        async def two(ctx: m.Context) -> str:
            answers, state = ctx.input_responses, ctx.request_state
            if "a" not in answers:
                return m.InputRequired({"a": ask}, state=("first", 1))
            if "b" not in answers:
                return m.InputRequired({"b": ask}, state={"was": state})
            texts = [answers[name]["content"]["v"] for name in ("a", "b")]
            return f"{texts} {state}"

        @app.tool
        def picky(ctx: m.Context) -> str:
            answer = ctx.input_responses.get("a", {}).get("content", {}).get("v")
            tries = (ctx.request_state or 0) + 1
            return f"{answer} {tries}" if answer == "good" else m.InputRequired({"a": ask}, tries)

        @app.tool
        async def waits(ctx: m.Context) -> str:
            tries = (ctx.request_state or 0) + 1
            return f"{tries}" if tries == 3 else m.InputRequired({}, state=tries)

        @app.tool
        async def wrong(ctx: m.Context, what: int) -> str:
            return m.InputRequired({"a": [
                {"method": "tools/list", "params": {}}, {"params": {}}, "text", {},
                {"method": "elicitation/create"}, {"method": "sampling/createMessage", "params": []},
            ][what]})  # fmt: skip

        return app

    @pytest.mark.parametrize("revision", [STATELESS, SESSIONS])
    @pytest.mark.parametrize("tool, expected", [
        ("two", "['bad', 'good'] {'was': ['first', 1]}"), ("picky", "good 3"), ("waits", "3"),
    ])  # fmt: skip
    def test_one_handler_serves_both_eras(self, revision, tool, expected):
        answers = iter(["bad", "good", "good"])

        async def go():
            elicit = lambda *args: {"v": next(answers)}  # noqa: E731
            async with m.Client(self.app(), revision=revision, elicit=elicit) as c:
                return await c.call(tool)

        if tool == "picky":
            expected = "good 3" if expected else ""
        assert run(go()) == expected

    def test_nothing_but_state_is_a_round_too(self):
        """mrtr#server-requirements-basic-workflow: "at least one of inputRequests or requestState"."""

        async def go():
            async with Pipe(self.app()) as way:
                ask = calling(1, "waits")
                first = await way.ask(ask)
                assert first["result"].keys() == {"resultType", "requestState", "_meta"}
                retry = again(ask, 2, first)
                del retry["params"]["inputResponses"]
                second = await way.ask(retry)
                return said(await way.ask(again(ask, 3, second)))

        assert run(go()) == "3"

    @pytest.mark.parametrize("what", range(6))
    @pytest.mark.parametrize("revision", [STATELESS, SESSIONS])
    def test_what_is_no_question_is_the_handlers_error(self, what, revision):
        async def go():
            app = self.app()
            async with m.Client(app, revision=revision, elicit=bool, sample=bool, roots=[]) as c:
                with pytest.raises(m.ToolError, match="no request for input"):
                    await c.call("wrong", {"what": what})

        run(go())

    def test_answers_of_a_legacy_client_are_only_those_that_it_gave(self):
        async def go():
            async with m.Client(
                self.app(), revision=SESSIONS, elicit=lambda *a: {"v": "good"}
            ) as c:
                forged = {
                    "name": "picky",
                    "requestState": 5,
                    "inputResponses": {"a": accept(v="x")},
                }
                answer = await c.request("tools/call", {**forged, "arguments": {}})
                return answer["content"][0]["text"]

        assert run(go()) == "good 2"


# The issue's headline: a tool that asks twice and counts its side effects, in a file, since the
# server may be another process.
ASKS_TWICE = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import mcp_lite as m

def count(path):
    with open(path, "a") as file:
        file.write("x")
    with open(path) as file:
        return len(file.read())

def make(path, key=None):
    app = m.Server("twice", state_key=key)

    @app.tool
    async def awaits(ctx: m.Context) -> str:
        name = await ctx.elicit("Name?", str)
        number = await ctx.once(count, path)
        size = await ctx.elicit("Size?", int)
        return f"{{name.data}} {{number}} {{size.data}}"

    @app.tool
    def blocks(ctx: m.Context) -> str:
        name = ctx.elicit("Name?", str)
        number = ctx.once(count, path)
        return f"{{name.data}} {{number}} {{ctx.elicit('Size?', int).data}}"

    return app
"""
make_asking_twice = {}
exec(ASKS_TWICE, make_asking_twice)


class TestTheHeadline:
    """One handler, both eras, every transport: the same result, and each side effect once."""

    @pytest.mark.parametrize("revision", [SESSIONS, STATELESS])
    @pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
    def test_a_tool_that_asks_twice(self, transport, revision, tmp_path):
        path = str(tmp_path / "count")
        app = make_asking_twice["make"](path)
        run_it = ASKS_TWICE + "make(sys.argv[1]).run()"
        asked = []

        def elicit(message, schema):
            asked.append(message)
            return {"Name?": "Ann", "Size?": 3}[message]

        async def use(target):
            async with m.Client(target, revision=revision, elicit=elicit) as c:
                assert c.revision == revision
                return [await c.call("awaits"), await c.call("blocks")]

        async def go():
            if transport == "memory":
                return await use(app)
            if transport == "stdio":
                return await use([sys.executable, "-W", "error", "-c", run_it, path])
            async with app.http(port=0) as server:
                return await use(server.url)

        assert run(go()) == ["Ann 1 3", "Ann 2 3"]
        assert asked == ["Name?", "Size?"] * 2
        assert pathlib.Path(path).read_text() == "xx"

    @pytest.mark.parametrize("tool", ["awaits", "blocks"])
    def test_what_one_process_begins_another_finishes(self, tool, tmp_path):
        """mrtr: "without requiring a shared storage layer"; only the key is shared."""
        path = str(tmp_path / "count")
        code = ASKS_TWICE + "make(sys.argv[1], sys.argv[2]).run()"

        def ask(msg, key="the same key in all processes"):
            command = [sys.executable, "-W", "error", "-c", code, path, key]
            line = json.dumps(msg).encode() + b"\n"
            ran = subprocess.run(command, input=line, stdout=subprocess.PIPE, timeout=20)
            assert ran.returncode == 0
            return json.loads(ran.stdout)

        call = calling(1, tool)
        first = ask(call)
        second = ask(again(call, 2, first, {"elicitation-1": accept(value="Ann")}))
        retry = again(call, 3, second, {"elicitation-2": accept(value=3)})
        assert said(ask(retry)) == "Ann 1 3"
        assert pathlib.Path(path).read_text() == "x"
        assert problem(ask(retry, "another key")) == -32602

    def test_two_servers_share_a_key_or_refuse_each_other(self, tmp_path):
        async def go(one, two):
            ones, twos = (
                make_asking_twice["make"](str(tmp_path / "count"), key) for key in (one, two)
            )
            async with Pipe(ones) as first, Pipe(twos) as second:
                ask = calling(1, "awaits")
                retry = again(ask, 2, await first.ask(ask), {"elicitation-1": accept(value="A")})
                answer = await second.ask(retry)
                return answer["error"]["code"] if "error" in answer else "fine"

        assert run(go("a shared key", "a shared key")) == "fine"
        assert run(go("a shared key", b"a shared key")) == "fine"
        assert run(go(None, None)) == -32602
        assert run(go("a shared key", "another key")) == -32602

    @pytest.mark.parametrize("key", ["", b""])
    def test_an_empty_key_is_refused(self, key):
        """As from an environment variable that is not set: anybody could sign with it."""
        with pytest.raises(ValueError, match="state_key is empty"):
            m.Server(state_key=key)


def kinds(msgs):
    """Return the last words of the methods of notifications."""
    return [msg["method"].replace("notifications/", "") for msg in msgs]


class TestListening:
    """basic/patterns/subscriptions"""

    ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True,
           "resourceSubscriptions": ["note://a"]}  # fmt: skip

    def change_all(self, app):
        app.tools_changed()
        app.prompts_changed()
        app.resources_changed()
        app.resource_updated("note://a")
        app.resource_updated("note://b")

    @pytest.mark.parametrize("req_id", [1, "listen-1", 0, ""])
    def test_acknowledged_first_then_only_what_was_asked_for_all_marked(self, req_id):
        app = small_app()

        async def go():
            async with Pipe(app) as way:
                wanted = {"toolsListChanged": True, "promptsListChanged": False,
                          "resourceSubscriptions": ["note://a"], "acme": True}  # fmt: skip
                await way.send(stateless(req_id, "subscriptions/listen", notifications=wanted))
                msgs = [await way.take()]
                self.change_all(app)
                msgs += [await way.take(), await way.take()]
                assert said(await way.ask(calling("next", "add", {"a": 1}))) == "1"
                return msgs, way.heard

        msgs, heard = run(go())
        assert kinds(msgs) == [
            "subscriptions/acknowledged", "tools/list_changed", "resources/updated"]  # fmt: skip
        mark = {"io.modelcontextprotocol/subscriptionId": req_id}
        assert all(msg["params"]["_meta"] == mark for msg in msgs) and heard == []
        agreed = {"toolsListChanged": True, "resourceSubscriptions": ["note://a"]}
        assert msgs[0]["params"]["notifications"] == agreed
        assert msgs[2]["params"]["uri"] == "note://a"

    @pytest.mark.parametrize("door", [Pipe, Web], ids=["pipe", "http"])
    def test_what_the_server_does_not_have_is_not_agreed_to(self, door):
        app = m.Server()
        app.tool(lambda: 1, name="x")

        async def go():
            async with door(app) as way:
                msg = stateless(1, "subscriptions/listen", notifications=self.ALL)
                if door is Web:
                    async with way.post(msg) as post:
                        return await post.take()
                await way.send(msg)
                return await way.take()

        assert run(go())["params"]["notifications"] == {"toolsListChanged": True}

    @pytest.mark.parametrize("wanted", [
        None, [], "all", {"toolsListChanged": "yes"}, {"toolsListChanged": 1},
        {"resourceSubscriptions": "note://a"}, {"resourceSubscriptions": True},
        {"resourceSubscriptions": [5]}, {"resourceSubscriptions": ["x"] * 1001},
    ])  # fmt: skip
    def test_filters_that_mean_nothing_are_refused(self, wanted):
        async def go():
            async with Pipe(small_app()) as way:
                msg = stateless(1, "subscriptions/listen", notifications=wanted)
                assert problem(await way.ask(msg)) == -32602 and not way.heard
                most = {"resourceSubscriptions": ["x"] * 1000}
                await way.send(stateless(2, "subscriptions/listen", notifications=most))
                assert kinds([await way.take()]) == ["subscriptions/acknowledged"]

        run(go())

    def test_several_at_once_each_get_their_own(self):
        app = small_app()

        async def go():
            async with Pipe(app) as way:
                for req_id, what in enumerate(["toolsListChanged", "promptsListChanged"] * 2):
                    wanted = {what: True}
                    await way.send(stateless(req_id, "subscriptions/listen", notifications=wanted))
                    assert kinds([await way.take()]) == ["subscriptions/acknowledged"]
                self.change_all(app)
                msgs = [await way.take() for _ in range(4)]
                await way.send(m.notification("notifications/cancelled", {"requestId": 2}))
                await way.ask(stateless("a", "tools/list"))
                app.tools_changed()
                last = await way.take()
                await way.ask(stateless("b", "tools/list"))
                return msgs, last, way.heard

        msgs, last, heard = run(go())
        mark = "io.modelcontextprotocol/subscriptionId"
        found = sorted((msg["params"]["_meta"][mark], kinds([msg])[0]) for msg in msgs)
        assert found == [(0, "tools/list_changed"), (1, "prompts/list_changed"),
                         (2, "tools/list_changed"), (3, "prompts/list_changed")]  # fmt: skip
        assert last["params"]["_meta"][mark] == 0 and heard == []

    def test_closing_the_response_ends_it(self):
        app = small_app()

        async def go():
            async with Web(app) as way:
                msg = stateless(1, "subscriptions/listen", notifications=self.ALL)
                async with way.post(msg) as post:
                    await post.take()
                    assert len(app.feeds) == 1
                while app.feeds:
                    await asyncio.sleep(0)

        run(go())

    def test_log_messages_and_progress_do_not_come_on_it(self):
        """server/utilities/logging#per-request-log-level"""

        async def go():
            async with Web(small_app()) as way:
                meta = {OF_MCP + "logLevel": "debug", "progressToken": 1}
                msg = stateless(1, "subscriptions/listen", meta=meta, notifications=self.ALL)
                async with way.post(msg) as post:
                    await post.take()
                    assert said(await way.ask(calling(2, "talks", meta=meta))) == "done"
                    way.app.tools_changed()
                    return await post.take()

        assert kinds([run(go())]) == ["tools/list_changed"]

    def test_over_http_a_stopping_server_ends_it_with_a_result(self):
        """subscriptions#graceful-closure; what was announced before still arrives."""
        app = small_app()

        async def go():
            server = await app.http(port=0).__aenter__()
            way = Web(app)
            way.url = server.url
            async with way.post(
                stateless(7, "subscriptions/listen", notifications=self.ALL)
            ) as post:
                await post.take()
                app.tools_changed()
                stopping = asyncio.ensure_future(server.__aexit__(None, None, None))
                msgs = [msg async for msg in post.stream]
                await stopping
                return msgs

        changed, last = run(go())
        assert kinds([changed]) == ["tools/list_changed"]
        meta = last["result"].pop("_meta")
        assert meta["io.modelcontextprotocol/subscriptionId"] == 7
        assert (last["id"], last["result"]) == (7, {"resultType": "complete"})

    def test_on_stdio_a_server_whose_input_ends_ends_it_with_a_result(self):
        code = ASKS_TWICE + "make('x').run()"
        line = json.dumps(stateless("s", "subscriptions/listen", notifications=self.ALL)).encode()
        command = [sys.executable, "-W", "error", "-c", code]
        ran = subprocess.run(command, input=line + b"\n", stdout=subprocess.PIPE, timeout=20)
        first, last = map(json.loads, ran.stdout.splitlines())
        assert kinds([first]) == ["subscriptions/acknowledged"]
        assert last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "s"

    def test_a_slow_reader_is_told_each_thing_once(self):
        """Whatever is announced while it does not read, no more is kept than there are things."""
        app, gate, sent = small_app(), [], []

        class Slow(m.Transport):
            async def read(self):
                if not sent:
                    sent.append("asked")
                    msg = stateless(1, "subscriptions/listen", notifications=TestListening.ALL)
                    return [json.dumps(msg).encode()]
                await gate[0]
                return []

            async def write(self, msg):
                sent.append(msg)
                await gate[0] if len(sent) == 3 else None

        async def go():
            gate.append(asyncio.get_running_loop().create_future())
            serving = asyncio.ensure_future(app.serve(Slow()))
            while len(sent) < 2:
                await asyncio.sleep(0)
            for _ in range(1000):
                self.change_all(app)
                await asyncio.sleep(0)
            (feed,) = app.feeds
            assert len(feed.waiting) <= 4
            gate[0].set_result(None)
            await serving

        run(go())
        assert sorted(kinds(sent[2:-1])) == sorted(
            ["tools/list_changed"] * 2
            + ["prompts/list_changed", "resources/list_changed", "resources/updated"]
        )

    def test_announcements_come_from_any_thread(self):
        app = small_app()

        async def go():
            async with m.Client(app) as c, c.listen(tools=True) as changes:
                thread = threading.Thread(target=app.tools_changed)
                thread.start()
                msg = await changes.__anext__()
                thread.join()
                return msg["method"]

        assert run(go()) == "notifications/tools/list_changed"

    def test_two_servers_on_one_bus_share_what_they_announce(self):
        class Bus:
            def __init__(self):
                self.queues, self.published = [], []

            def publish(self, event):
                self.published.append(json.loads(json.dumps(event)))
                for queue in self.queues:
                    queue.put_nowait(json.loads(json.dumps(event)))

            async def __aiter__(self):
                queue = asyncio.Queue()
                self.queues.append(queue)
                while True:
                    yield await queue.get()

        async def go():
            bus = Bus()
            one, two = small_app(bus=bus), small_app(bus=bus)
            assert bus.published == []  # nobody is there yet to be told of what is registered
            async with (
                m.Client(one) as c,
                m.Client(two) as d,
                m.Client(two, revision=SESSIONS) as e,
            ):
                heard = asyncio.Event()
                e.on("notifications/tools/list_changed")(lambda params: heard.set())
                async with (
                    c.listen(tools=True) as ours,
                    d.listen(tools=True, uris=["note://a"]) as theirs,
                ):
                    one.add_tool(lambda: 1, name="new")
                    one.resource_updated("note://a")
                    found = [(await ours.__anext__())["method"]]
                    found += [(await theirs.__anext__())["method"] for _ in range(2)]
                    await heard.wait()
                    assert len(bus.published) == 2
                    return found

        tools = "notifications/tools/list_changed"
        assert run(go()) == [tools, tools, "notifications/resources/updated"]

    def test_what_a_bus_fails_to_carry_or_brings_wrongly_harms_no_client_of_our_own(self, caplog):
        """One change is heard once, whether the bus is silent, echoes, or carries garbage."""
        garbage = [None, 7, [], {}, {"from": "x"}, {"from": "x", "capability": "tools", "msg": 1}]

        class Bus:
            def __init__(self):
                self.queue = asyncio.Queue()

            def publish(self, event):
                for item in (*garbage, event):  # our own comes back
                    self.queue.put_nowait(item)

            async def __aiter__(self):
                while True:
                    yield await self.queue.get()

        async def go():
            app = small_app(bus=Bus())
            async with m.Client(app) as c, c.listen(tools=True, uris=["note://a"]) as changes:
                app.tools_changed()
                found = [await changes.__anext__()]
                while not app.bus.queue.empty():
                    await asyncio.sleep(0)
                theirs = m.notification("notifications/resources/updated", {"uri": "note://a"})
                event = {"from": "x", "capability": "resources.subscribe", "msg": theirs}
                app.bus.queue.put_nowait(event)
                return [*found, await changes.__anext__()]

        methods = [msg["method"] for msg in run(go())]
        assert methods == ["notifications/tools/list_changed", "notifications/resources/updated"]
        assert caplog.text.count("no event of ours") == len(garbage)

    def test_client_opens_it_again_after_a_loss_and_never_gives_up_while_it_works(
        self, monkeypatch
    ):
        """subscriptions#graceful-closure: a transport that closes without a result."""
        monkeypatch.setattr(m, "RETRY_MS", 0)
        monkeypatch.setattr(m, "FREE_RETRIES", 100)
        opened, ids = [], []

        def serve(head, msg):
            if msg["method"] != "subscriptions/listen":
                return {}
            opened.append(msg["params"]["notifications"])
            ids.append(msg["id"])

            async def stream(writer):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
                meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": msg["id"]}}
                agreed = {"notifications": msg["params"]["notifications"]}
                for method, more in (
                    ("subscriptions/acknowledged", agreed),
                    ("tools/list_changed", {}),
                ):
                    item = m.notification("notifications/" + method, {**more, **meta})
                    writer.write(b"data: " + json.dumps(item).encode() + b"\n\n")
                if len(opened) % 2:  # lost, or ended in good order: as when the server is restarted
                    last = m.result(msg["id"], {"resultType": "complete", **meta})
                    writer.write(b"data: " + json.dumps(last).encode() + b"\n\n")

            return stream

        async def go():
            async with fake_http(serve) as url, m.Client(url) as c, c.listen(tools=True) as changes:
                return [(await changes.__anext__())["method"] for _ in range(9)]

        assert run(go()) == ["notifications/tools/list_changed"] * 9
        assert opened == [{"toolsListChanged": True}] * 9 and len(set(ids)) == 9

    def test_client_gives_up_when_the_server_refuses_to_open_it_again(self, monkeypatch, caplog):
        monkeypatch.setattr(m, "RETRY_MS", 0)
        opened = []

        def serve(head, msg):
            if msg["method"] != "subscriptions/listen":
                return {}
            opened.append(1)

            async def stream(writer):
                if len(opened) == 1:
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
                    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": msg["id"]}}
                    params = {"notifications": {}, **meta}
                    item = m.notification("notifications/subscriptions/acknowledged", params)
                    writer.write(b"data: " + json.dumps(item).encode() + b"\n\n")

            return stream if len(opened) < 4 else {"code": -32603, "message": "never again"}

        async def go():
            async with fake_http(serve) as url, m.Client(url) as c:
                return [msg async for msg in c.listen(tools=True)]

        assert run(go()) == [] and len(opened) == 4
        assert "will not tell of toolsListChanged" in caplog.text
        assert "a subscription has ended: never again" in caplog.text

    @pytest.mark.parametrize("how", ["a result", "a cancellation", "an error", "another result"])
    def test_client_hears_that_a_server_ends_it(self, how, caplog):
        """subscriptions#graceful-closure; cancellation#behavior-requirements, which says otherwise."""
        ends = {
            "a result": lambda i: m.result(i, {"resultType": "complete"}),
            "a cancellation": lambda i: m.notification("notifications/cancelled", {"requestId": i}),
            "an error": lambda i: m.error(i, {"code": -32000, "message": "enough"}),
            "another result": lambda i: m.result(i, {"resultType": "acme"}),
        }

        def react(msg):
            if msg["method"] != "subscriptions/listen":
                return [answer_to(msg, {})]
            meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": msg["id"]}}
            params = {**meta, **{"notifications": msg["params"]["notifications"]}}
            return [
                m.notification("notifications/subscriptions/acknowledged", params),
                m.notification("notifications/tools/list_changed", meta), ends[how](msg["id"]),
            ]  # fmt: skip

        async def go():
            async with m.Client(Script(react)) as c:
                found = [msg["method"] async for msg in c.listen(tools=True)]
                assert c.subscriptions == []
                await c.list_tools()
                return found

        assert run(go()) == ["notifications/tools/list_changed"]

    def test_what_belongs_to_another_subscription_is_not_given_out(self):
        """subscriptions#receiving-notifications: "clients MUST use this field to correlate"."""

        def react(msg):
            if msg["method"] != "subscriptions/listen":
                return [answer_to(msg, {})]
            meta = {"io.modelcontextprotocol/subscriptionId": msg["id"]}
            params = {"_meta": meta, "notifications": msg["params"]["notifications"]}
            return [m.notification("notifications/subscriptions/acknowledged", params)]

        def changed(req_id):
            meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": req_id}}
            return m.notification("notifications/tools/list_changed", {**meta, "of": req_id})

        async def go():
            script = Script(react)
            async with m.Client(script) as c:
                async with c.listen(tools=True) as one, c.listen(tools=True) as two:
                    first, second = (msg["id"] for msg in script.sent[-2:])
                    for req_id in (second, 999, first):
                        script.put(changed(req_id))
                    return [(await item.__anext__())["params"]["of"] - first for item in (one, two)], [
                        len(item.updates) for item in (one, two)]  # fmt: skip

        (first, second), left = run(go())
        assert first == 0 and second > 0 and left == [0, 0]

    def test_callbacks_of_a_client_hear_what_happens_right_after_connecting(self):
        app, heard = small_app(), []

        async def go(revision):
            event = asyncio.Event()

            def changed():
                heard.append(revision)
                event.set()

            async with m.Client(app, revision=revision, on_tools_changed=changed) as c:
                assert c.revision == revision
                app.tools_changed()
                await event.wait()

        run(go(STATELESS))
        run(go(SESSIONS))
        assert heard == [STATELESS, SESSIONS]

    def test_closing_a_client_ends_its_subscriptions(self):
        app = small_app()

        async def go():
            async with Web(app) as way:
                for target in (app, way.url):
                    async with m.Client(target) as c:
                        await c.listen(tools=True)
                        assert len(app.feeds) == 1
                    while app.feeds:
                        await asyncio.sleep(0)

        run(go())


class TestTheTasksExtension:
    """The extension io.modelcontextprotocol/tasks (SEP-2663)."""

    def app(self, **options):
        app = m.Server("tasks", **options)
        app.gate = asyncio.Event()
        app.log = []

        @app.tool(task=True)
        async def work(ctx: m.Context, fail: str = "") -> str:
            await ctx.report_progress(1, 3)
            try:
                await app.gate.wait()
            finally:
                app.log.append("ended")
            if fail == "tool":
                raise ValueError("broken")
            if fail == "protocol":
                raise m.RPCError(-32050, "no such thing", {"n": 1})
            return "done"

        @app.tool(task="required")
        async def required() -> str:
            return "done"

        @app.tool(task=True)
        async def asks(ctx: m.Context) -> str:
            one, two = await asyncio.gather(
                ctx.elicit("1", int, key="a"), ctx.elicit("2", int, key="b")
            )
            three = await ctx.elicit("3", int, key="a")
            return f"{one.data} {two.data} {three.data}"

        @app.tool(task=True)
        def in_thread(ctx: m.Context) -> str:
            try:
                return f"{ctx.elicit('?', int).data} {ctx.once(lambda: 5)}"
            finally:
                app.log.append("thread")

        @app.tool(task="manual")
        async def manual(ctx: m.Context, how: str = "task") -> str:
            if how == "error":
                raise m.RPCError(-32050, "no")
            name = (await ctx.elicit("Name?", str, key="name")).data
            if how == "plain":
                return name
            await ctx.start_task()
            await ctx.start_task()
            return f"{name} {(await ctx.elicit('Size?', int, key='size')).data}"

        @app.tool(task=True)
        async def by_hand(ctx: m.Context) -> str:
            if "r" in ctx.input_responses:
                return str(len(ctx.input_responses["r"]["roots"]))
            return m.InputRequired({"r": {"method": "roots/list"}})

        return app

    def get(self, task_id, method="tasks/get", **params):
        return stateless("get", method, TASKS, taskId=task_id, **params)

    def begin(self, tool, **arguments):
        return calling("begin", tool, arguments, capabilities={**ANYTHING, **TASKS})

    async def until(self, way, task_id, *statuses):
        """Return the task when it has come to one of the statuses."""
        while True:
            task = (await way.ask(self.get(task_id)))["result"]
            if task["status"] in statuses:
                return task
            await asyncio.sleep(0)

    def test_a_call_becomes_a_task_is_polled_and_gives_its_result(self):
        """SEP-2663: task creation, task polling; absent is never null."""

        async def go():
            app = self.app()
            async with Pipe(app) as way:
                made = (await way.ask(self.begin("work")))["result"]
                working = (await way.ask(self.get(made["taskId"])))["result"]
                app.gate.set()
                done = await self.until(way, made["taskId"], "completed")
                return made, working, done

        made, working, done = run(go())
        common = {"resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs",
                  "pollIntervalMs", "_meta"}  # fmt: skip
        assert made["resultType"] == "task" and made.keys() - {"statusMessage"} == common
        assert working["resultType"] == done["resultType"] == "complete"
        assert (working["status"], working["statusMessage"]) == ("working", "1/3")
        assert working.keys() == common | {"statusMessage"}
        assert done.keys() == common | {"result"}
        assert done["result"]["content"] == [{"type": "text", "text": "done"}]
        for name in ("createdAt", "lastUpdatedAt"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", done[name])
        assert type(made["ttlMs"]) is int and type(made["pollIntervalMs"]) is int

    @pytest.mark.parametrize("fail, status", [("tool", "completed"), ("protocol", "failed")])
    def test_failures_of_the_tool_and_of_the_protocol_are_told_apart(self, fail, status):
        """SEP-2663: `failed` "MUST NOT be used for non-JSON-RPC errors"."""

        async def go():
            app = self.app()
            app.gate.set()
            async with Pipe(app) as way:
                made = (await way.ask(self.begin("work", fail=fail)))["result"]
                return await self.until(way, made["taskId"], "completed", "failed")

        task = run(go())
        assert task["status"] == status
        if fail == "tool":
            assert task["result"]["isError"] and "error" not in task
        else:
            assert task["error"] == {"code": -32050, "message": "no such thing", "data": {"n": 1}}
            assert "result" not in task and task["statusMessage"] == "no such thing"

    def test_clients_that_know_no_tasks_get_none(self):
        """SEP-2663: "MUST NOT return CreateTaskResult" to them; and -32021 where it needs to."""

        async def go():
            app = self.app()
            app.gate.set()
            found = []
            async with Pipe(app) as way:
                found.append(said(await way.ask(calling(1, "work"))))
                for ask in [
                    calling(2, "required"), stateless(3, "tasks/get", taskId="x"),
                    stateless(4, "tasks/update", taskId="x", inputResponses={}),
                    stateless(5, "tasks/cancel", taskId="x"),
                    stateless(6, "subscriptions/listen", notifications={"taskIds": []}),
                    calling(7, "required", capabilities={"tasks": {}}),
                ]:  # fmt: skip
                    found.append((await way.ask(ask))["error"])
            async with m.Client(app, revision=SESSIONS) as c:
                return found, await c.call("required"), c.server_capabilities

        (text, *errors), legacy, capabilities = run(go())
        assert (text, legacy) == ("done", "done") and "extensions" not in capabilities
        needed = {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
        assert [(error["code"], error["data"]) for error in errors] == [(-32021, needed)] * 6

    def test_server_declares_the_extension_when_a_tool_needs_it(self):
        async def go(app):
            async with Pipe(app) as way:
                return (await way.ask(stateless(1, "server/discover")))["result"]["capabilities"]

        async def both():
            return [await go(small_app()), await go(self.app())]

        without, with_ = run(both())
        assert "extensions" not in without and "tasks" not in with_
        assert with_["extensions"] == {"io.modelcontextprotocol/tasks": {}}

    @pytest.mark.parametrize("task", ["yes", "Required", 2, None])
    def test_other_ways_to_run_as_a_task_do_not_exist(self, task):
        with pytest.raises(ValueError, match="task="):
            m.Server().add_tool(lambda: 1, name="x", task=task)

    def test_questions_of_a_task_are_answered_by_updates(self):
        """SEP-2663, task update requests: keys are unique for life, partial answers are taken."""

        async def go():
            async with Pipe(self.app()) as way:
                task_id = (await way.ask(self.begin("asks")))["result"]["taskId"]
                for keys, responses in [
                    (["a", "b"], {"unknown": accept(value=1), "a": accept(value="wrong")}),
                    (["a-3", "b"], {"b": accept(value=2)}),
                    (
                        ["a-3"],
                        {"a": accept(value=99), "a-3": accept(value=1), "b": accept(value=9)},
                    ),
                    (["a-4"], {"a-4": accept(value=3)}),
                ]:
                    task = await self.until(way, task_id, "input_required")
                    while sorted(task.get("inputRequests", ())) != keys:
                        task = (await way.ask(self.get(task_id)))["result"]
                    update = self.get(task_id, "tasks/update", inputResponses=responses)
                    assert (await way.ask(update))["result"].keys() == {"resultType", "_meta"}
                return await self.until(way, task_id, "completed")

        assert run(go())["result"]["content"][0]["text"] == "1 2 3"

    def test_a_task_in_a_thread_asks_and_is_answered(self):
        async def go():
            async with Pipe(self.app()) as way:
                task_id = (await way.ask(self.begin("in_thread")))["result"]["taskId"]
                (key,) = (await self.until(way, task_id, "input_required"))["inputRequests"]
                responses = {key: accept(value=1)}
                await way.ask(self.get(task_id, "tasks/update", inputResponses=responses))
                return await self.until(way, task_id, "completed")

        assert run(go())["result"]["content"][0]["text"] == "1 5"

    def test_progress_does_not_hide_an_open_question(self):
        app = m.Server()

        @app.tool(task=True)
        async def x(ctx: m.Context) -> str:
            async def report():
                await asyncio.sleep(0)
                await ctx.report_progress(1, message="still here")

            return str((await asyncio.gather(ctx.elicit("?", int), report()))[0].data)

        async def go():
            async with Pipe(app) as way:
                made = (await way.ask(self.begin("x")))["result"]
                while True:
                    task = (await way.ask(self.get(made["taskId"])))["result"]
                    if task.get("statusMessage") == "still here":
                        return task

        task = run(go())
        assert task["status"] == "input_required" and len(task["inputRequests"]) == 1

    def test_questions_before_a_task_begins_come_in_rounds(self):
        """SEP-2663: "SHOULD resolve all MRTR exchanges synchronously before"."""

        async def go():
            async with Pipe(self.app()) as way:
                ask = self.begin("manual")
                first = await way.ask(ask)
                assert "taskId" not in first["result"]
                made = (await way.ask(again(ask, 2, first, {"name": accept(value="Ann")})))[
                    "result"
                ]
                assert made["resultType"] == "task"
                assert not {"requestState", "inputRequests"} & made.keys()
                await self.until(way, made["taskId"], "input_required")
                update = {"inputResponses": {"size": accept(value=3)}}
                await way.ask(self.get(made["taskId"], "tasks/update", **update))
                done = await self.until(way, made["taskId"], "completed")
                ask = self.begin("manual", how="plain")
                retry = again(ask, 3, await way.ask(ask), {"name": accept(value="Bob")})
                return done["result"]["content"][0]["text"], said(await way.ask(retry))

        assert run(go()) == ("Ann 3", "Bob")

    def test_a_manual_task_that_fails_before_it_begins_is_an_ordinary_failure(self, caplog):
        async def go():
            async with Pipe(self.app()) as way:
                return problem(await way.ask(self.begin("manual", how="error")))

        assert run(go()) == -32050
        assert not [r for r in caplog.records if r.levelno >= logging.ERROR]

    def test_rounds_by_hand_in_a_task(self):
        async def go():
            async with Pipe(self.app()) as way:
                made = (await way.ask(self.begin("by_hand")))["result"]
                task = await self.until(way, made["taskId"], "input_required", "cancelled")
                assert list(task["inputRequests"]) == ["r"]
                update = {"inputResponses": {"r": {"roots": []}}}
                await way.ask(self.get(made["taskId"], "tasks/update", **update))
                done = await self.until(way, made["taskId"], "completed")
                return done["result"]["content"][0]["text"]

        assert run(go()) == "0"

    @pytest.mark.parametrize("tool", ["work", "asks", "in_thread"])
    def test_cancelling_ends_the_work_and_is_final(self, tool):
        """SEP-2663, task cancellation; a finished task is cancelled in vain, with the same answer."""

        async def go():
            app = self.app()
            async with Pipe(app) as way:
                made = (await way.ask(self.begin(tool)))["result"]
                if tool != "work":
                    await self.until(way, made["taskId"], "input_required")
                for _ in range(2):
                    answer = (await way.ask(self.get(made["taskId"], "tasks/cancel")))["result"]
                    assert answer.keys() == {"resultType", "_meta"}
                task = (await way.ask(self.get(made["taskId"])))["result"]
                while tool != "asks" and not app.log:
                    await asyncio.sleep(0.001)
                return task

        task = run(go())
        assert task["status"] == "cancelled"
        assert not {"result", "error", "inputRequests"} & task.keys()

    def test_a_tool_that_ignores_its_cancellation_stays_cancelled(self):
        app, began = m.Server(), []

        @app.tool(task=True)
        async def x() -> str:
            try:
                began[0].set()
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                return "done anyway"

        async def go():
            began.append(asyncio.Event())
            async with Pipe(app) as way:
                made = (await way.ask(self.begin("x")))["result"]
                await began[0].wait()
                await way.ask(self.get(made["taskId"], "tasks/cancel"))
                await asyncio.sleep(0)
                return (await way.ask(self.get(made["taskId"])))["result"]

        task = run(go())
        assert task["status"] == "cancelled" and "result" not in task

    @pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
    def test_tasks_that_do_not_exist_or_have_lapsed_are_unknown(self, method):
        """SEP-2663: -32602"""

        async def go():
            app = self.app()
            async with Pipe(app) as way:
                made = (await way.ask(self.begin("work")))["result"]
                app.jobs[made["taskId"]].expires = 0
                return [problem(await way.ask(self.get(task_id, method, inputResponses={})))
                        for task_id in ("nowhere", made["taskId"])]  # fmt: skip

        assert run(go()) == [-32602, -32602]

    def test_tasks_are_bounded_and_lapsed_ones_make_room(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_TASKS", 2)

        async def go():
            app = self.app()
            async with Pipe(app) as way:
                first = (await way.ask(self.begin("work")))["result"]["taskId"]
                assert "result" in await way.ask(self.begin("work"))
                assert problem(await way.ask(self.begin("work"))) == 503
                app.jobs[first].expires = 0
                assert "result" in await way.ask(self.begin("work"))
                await asyncio.sleep(0)
                assert app.log == ["ended"] and len(app.jobs) == 2

        run(go())

    def test_tasks_that_have_ended_make_room_first_those_that_were_looked_at(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_TASKS", 3)
        app = m.Server()

        @app.tool(task=True)
        async def quick() -> str:
            return "done"

        async def go():
            async with Pipe(app) as way:
                made = []
                for _ in range(3):
                    made.append((await way.ask(self.begin("quick")))["result"]["taskId"])
                    await eventually(lambda: app.jobs[made[-1]].status == "completed")
                    assert app.jobs[made[-1]].run is None  # with its request, which may be large
                await way.ask(self.get(made[1]))
                for gone in (made[1], made[0]):
                    assert "result" in await way.ask(self.begin("quick"))
                    assert gone not in app.jobs and len(app.jobs) == 3

        run(go())

    def test_a_look_at_a_task_that_is_lost_does_not_end_it(self, monkeypatch):
        monkeypatch.setattr(m, "RETRY_MS", 0)
        seen = []

        async def on_call(wire, head, msg):
            seen.append(msg["method"])
            polls = seen.count("tasks/get")
            if msg["method"] == "tasks/get" and polls == 2:
                wire.writer.transport.abort()
                return
            task = {"taskId": "t", "status": "working" if polls < 3 else "completed",
                    "pollIntervalMs": 1, "result": {"content": [{"type": "text", "text": "3"}]}}
            result = {
                "server/discover": {"supportedVersions": [STATELESS], "capabilities": {"tools": {}}},
                "tools/call": {**task, "resultType": "task"}, "tasks/get": task,
            }.get(msg["method"], {})
            answer = {"jsonrpc": "2.0", "id": msg["id"], "result": result}
            wire.send(framed("application/json", json.dumps(answer).encode()))

        def work(client):
            return client.call("x")

        assert talk(Scripted(on_call), work, revision=STATELESS) == "3"
        assert "tasks/cancel" not in seen and seen.count("tasks/get") == 3

    def test_a_task_is_its_principals_and_its_header_names_it(self):
        """SEP-2663: auth binding; routing headers."""

        async def go():
            app, found = self.app(), []
            async with Web(app, token={"t1": "ann", "t2": "bob"}) as way:
                ann, bob = ({"authorization": f"Bearer {token}"} for token in ("t1", "t2"))
                made = (await way.ask(self.begin("work"), ann))["result"]
                for head in (ann, bob, {**ann, "mcp-name": "x"}, {**ann, "mcp-name": None}):
                    answer = await way.ask(self.get(made["taskId"]), head)
                    found.append(answer["error"]["code"] if "error" in answer else "fine")
                wanted = {"taskIds": [made["taskId"], "nowhere"]}
                listen = stateless(5, "subscriptions/listen", TASKS, notifications=wanted)
                for head in (ann, bob):
                    async with way.post(listen, head) as post:
                        found.append((await post.take())["params"]["notifications"])
            return found, made["taskId"]

        found, task_id = run(go())
        assert found == ["fine", -32602, -32020, -32020, {"taskIds": [task_id]}, {}]

    def test_ids_cannot_be_guessed(self):
        async def go():
            async with Pipe(self.app()) as way:
                asks = [self.begin("work") for _ in range(20)]
                return [(await way.ask(ask))["result"]["taskId"] for ask in asks]

        ids = run(go())
        assert len(set(ids)) == 20 and all(re.fullmatch("[0-9a-f]{32}", task_id) for task_id in ids)

    def test_changes_of_a_task_are_announced_to_who_listens(self):
        """SEP-2663, task status notifications: "identical to what tasks/get would have returned"."""

        async def go():
            app = self.app()
            async with Pipe(app) as way:
                made = (await way.ask(self.begin("work")))["result"]
                wanted = {"taskIds": [made["taskId"]]}
                await way.send(stateless(7, "subscriptions/listen", TASKS, notifications=wanted))
                assert kinds([await way.take()]) == ["subscriptions/acknowledged"]
                app.gate.set()
                msg = await way.take()
                got = (await way.ask(self.get(made["taskId"])))["result"]
                return msg, got

        msg, got = run(go())
        assert msg["method"] == "notifications/tasks"
        mark = msg["params"].pop("_meta")
        assert mark == {"io.modelcontextprotocol/subscriptionId": 7}
        del got["_meta"], got["resultType"]
        assert msg["params"] == got and got["status"] == "completed"

    def test_parameters_of_the_old_experiment_mean_nothing(self):
        """SEP-2663: the `task` parameter is ignored; tasks/result and tasks/list are gone."""

        async def go():
            async with Pipe(small_app()) as way:
                ask = calling(1, "add", {"a": 1}, task={"ttl": 5}, capabilities=TASKS)
                return said(await way.ask(ask))

        assert run(go()) == "1"

    @pytest.mark.parametrize("transport", ["memory", "http"])
    def test_client_polls_by_itself_answers_and_shows_progress(self, transport, monkeypatch):
        monkeypatch.setattr(m, "POLL_MS", 1)
        shown = []

        def elicit(message, schema):
            return int(message)

        async def use(target, app):
            async with m.Client(target, elicit=elicit, progress=lambda *a: shown.append(a)) as c:
                assert await c.call("asks") == "1 2 3"
                assert await c.call("required") == "done"

                def report(*args):
                    shown.append(args)
                    app.gate.set()

                return await c.call("work", progress=report)

        async def go():
            app = self.app()
            if transport == "memory":
                return await use(app, app)
            async with Web(app) as way:
                return await use(way.url, app)

        assert run(go()) == "done" and (0, None, "1/3") in shown

    def test_client_hears_why_a_task_failed(self, monkeypatch):
        monkeypatch.setattr(m, "POLL_MS", 1)

        async def go():
            app = self.app()
            app.gate.set()
            async with m.Client(app) as c:
                with pytest.raises(m.ToolError, match="broken"):
                    await c.call("work", {"fail": "tool"})
                with pytest.raises(m.RemoteError, match="no such thing") as caught:
                    await c.call("work", {"fail": "protocol"})
                return caught.value.code, caught.value.data

        assert run(go()) == (-32050, {"n": 1})

    @pytest.mark.parametrize("why", ["cancelled", "timeout", "callback"])
    def test_client_that_gives_up_cancels_the_task(self, why, monkeypatch):
        monkeypatch.setattr(m, "POLL_MS", 1)

        def fail(*args):
            raise ZeroDivisionError("in the callback")

        async def go():
            app, looked = self.app(), asyncio.Event()

            @app.middleware
            async def watch(ctx, call_next):
                looked.set() if ctx.method == "tasks/get" else None
                return await call_next(ctx)

            options = {"max_timeout": 0.05} if why == "timeout" else {}
            options["timeout"] = 0.05 if why == "timeout" else 60
            async with m.Client(app, elicit=fail, **options) as c:
                call = asyncio.ensure_future(c.call("asks" if why == "callback" else "work"))
                await looked.wait()  # until then, the client knows of no task
                (job,) = app.jobs.values()
                if why == "cancelled":
                    call.cancel()
                errors = {"cancelled": asyncio.CancelledError, "timeout": m.RequestTimeout,
                          "callback": ZeroDivisionError}  # fmt: skip
                with pytest.raises(errors[why]):
                    await call
                while job.status != "cancelled":
                    await asyncio.sleep(0)

        run(go())

    @pytest.mark.parametrize("method, extension, result", [
        ("prompts/get", True, {"resultType": "task", "taskId": "t", "status": "working"}),
        ("tools/call", False, {"resultType": "task", "taskId": "t", "status": "working"}),
        ("tools/call", True, {"resultType": "task", "status": "working"}),
        ("tools/call", True, {"resultType": "task", "taskId": 5, "status": "working"}),
    ])  # fmt: skip
    def test_tasks_where_none_may_be_are_errors(self, method, extension, result):
        """SEP-2663: "MUST interpret this as an invalid response"."""

        def react(msg):
            return [answer_to(msg, result if msg["method"] == method else {})]

        async def go():
            options = {} if extension else {"capabilities": {"extensions": {}}}
            async with m.Client(Script(react), **options) as c:
                with pytest.raises(m.ProtocolError, match="with a task"):
                    await c.request(method, {"name": "x"})

        run(go())

    def test_client_asks_each_question_of_a_task_once(self, monkeypatch):
        """SEP-2663: "Clients SHOULD deduplicate inputRequests keys across consecutive polls"."""
        monkeypatch.setattr(m, "POLL_MS", 1)
        asked, polls = [], []
        question = {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "?",
                "requestedSchema": {"type": "object", "properties": {}},
            },
        }

        def react(msg):
            if msg["method"] == "tools/call":
                handle = {"resultType": "task", "taskId": "t", "status": "input_required"}
                return [answer_to(msg, {**handle, "inputRequests": {"k": question}})]
            if msg["method"] == "tasks/get":
                polls.append(1)
                if len(polls) == 4:
                    return [answer_to(msg, {"status": "completed", "result": {"content": []}})]
                return [
                    answer_to(msg, {"status": "input_required", "inputRequests": {"k": question}})
                ]
            return [answer_to(msg, {})]

        async def go():
            script = Script(react)
            async with m.Client(script, elicit=lambda *a: asked.append(1) or {}) as c:
                await c.call_tool("x")
                return [msg for msg in script.sent if msg["method"] == "tasks/update"]

        (update,) = run(go())
        assert asked == [1] and update["params"]["inputResponses"] == {"k": accept()}


REFUSED = {"code": -32022, "message": "no", "data": {"supported": [STATELESS], "requested": "x"}}
# What comes of the first modern request -> what the server is. basic/versioning, stdio, HTTP.
ERAS = [
    ({"supportedVersions": [STATELESS], "capabilities": {}}, "modern"),
    ({"supportedVersions": []}, "modern"), ({"supportedVersions": "all"}, "legacy"), ({}, "legacy"),
    (m.RemoteError(-32022, "no", {"supported": [STATELESS]}), "retry"),
    (m.RemoteError(-32022, "no"), "retry"), (m.RemoteError(-32020, "no"), "modern"),
    (m.RemoteError(-32021, "no"), "modern"), (m.RemoteError(-32601, "no"), "legacy"),
    (m.RemoteError(-32602, "no"), "legacy"), (m.RemoteError(-32600, "no"), "legacy"),
    (m.RemoteError(-32000, "no"), "legacy"), (m.RemoteError(-32001, "no"), "legacy"),
    (m.RemoteError(-32002, "no"), "legacy"), (m.RemoteError(-32603, "no"), "legacy"),
    (m.RemoteError(0, "no"), "legacy"), (m.RequestTimeout("silence"), "legacy"),
    (m.ConnectionClosed("404"), "legacy"), (m.ProtocolError("nonsense"), "legacy"),
]  # fmt: skip

# A legacy server in a process of its own, which does to the probe what {probe} says.
OLD_SERVER = """
import json, sys
for line in sys.stdin:
    msg = json.loads(line)
    if msg["method"] == "server/discover":
        {probe}
    if msg["method"] == "initialize":
        result = {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}},
                  "serverInfo": {{"name": "old", "version": "1"}}}}
    elif msg["method"] == "tools/list":
        result = {{"tools": [{{"name": "old", "inputSchema": {{"type": "object"}}}}]}}
    else:
        continue
    print(json.dumps({{"jsonrpc": "2.0", "id": msg["id"], "result": result}}), flush=True)
"""


class TestFindingTheEra:
    """basic/versioning#backward-compatibility-with-initialization-based-versions"""

    @pytest.mark.parametrize("outcome, era", ERAS, ids=lambda value: str(value)[:40])
    def test_era_is_told_from_the_first_answer(self, outcome, era):
        assert m.decide_era(outcome) == era

    async def connect(self, react, **options):
        """Return the revision that was agreed on, and the methods that were sent."""
        script = Script(react)
        try:
            async with m.Client(script, **options) as c:
                return c.revision, [msg["method"] for msg in script.sent]
        except m.MCPError as exc:
            return exc, [msg["method"] for msg in script.sent]

    @pytest.mark.parametrize(
        "code", [-32601, -32602, -32600, -32000, -32002, -32603, -32700, 0, 404]
    )
    def test_any_error_but_the_modern_ones_is_a_legacy_server(self, code):
        """stdio#backward-compatibility: "MUST NOT be keyed to one specific error code"."""

        def react(msg):
            if "id" in msg:
                return [answer_to(msg, code if msg["method"] == "server/discover" else {})]

        methods = ["server/discover", "initialize", "notifications/initialized"]
        assert run(self.connect(react)) == (SESSIONS, methods)

    @pytest.mark.parametrize("code", [-32020, -32021])
    def test_a_modern_error_is_told_and_nothing_else_is_tried(self, code):
        def react(msg):
            return [answer_to(msg, code)]

        exc, methods = run(self.connect(react))
        assert exc.code == code and methods == ["server/discover"]

    def test_a_silent_server_is_a_legacy_server_after_a_deadline(self, monkeypatch):
        monkeypatch.setattr(m, "PROBE_SECONDS", 0.01)

        def react(msg):
            if "id" in msg and msg["method"] != "server/discover":
                return [answer_to(msg, {})]

        revision, methods = run(self.connect(react))
        assert revision == SESSIONS
        assert methods == ["server/discover", "notifications/cancelled", "initialize",
                           "notifications/initialized"]  # fmt: skip

    def test_a_modern_server_that_was_only_slow_to_start_is_still_found(self, monkeypatch):
        monkeypatch.setattr(m, "PROBE_SECONDS", 0.01)
        probes = []

        def react(msg):
            if msg["method"] == "server/discover":
                probes.append(1)
                return [answer_to(msg, {})] if len(probes) == 2 else []
            if "id" in msg:
                return [answer_to(msg, -32601)]

        revision, methods = run(self.connect(react))
        assert revision == STATELESS
        assert [name for name in methods if not name.startswith("n")] == [
            "server/discover", "initialize", "server/discover"]  # fmt: skip

    @pytest.mark.parametrize("supported, revision, methods", [
        ([STATELESS, "x"], STATELESS, ["server/discover"] * 2),
        (["x", SESSIONS, "2025-06-18"], SESSIONS,
         ["server/discover", "initialize", "notifications/initialized"]),
        (["x"], None, ["server/discover"]), ([], None, ["server/discover"]),
        ("all", None, ["server/discover"]), (None, None, ["server/discover"]),
    ])  # fmt: skip
    def test_a_server_that_does_not_speak_ours_is_asked_in_its_own(
        self, supported, revision, methods
    ):
        """basic/versioning#protocol-version-negotiation"""
        told = []

        def react(msg):
            if msg["method"] == "server/discover" and not told:
                told.append(1)
                return [answer_to(msg, {**REFUSED, "data": {"supported": supported}})]
            if "id" in msg:
                return [answer_to(msg, {})]

        found, sent = run(self.connect(react))
        assert sent == methods
        assert found == revision if revision else isinstance(found, m.ProtocolError)

    @pytest.mark.parametrize("pinned", [*m.REVISIONS])
    def test_a_pinned_revision_is_the_only_one_tried(self, pinned):
        def serves(msg):
            params = msg.get("params", {})
            if "id" in msg:
                return [answer_to(msg, {"protocolVersion": params.get("protocolVersion")})]

        def refuses(msg):
            if "id" in msg:
                return [answer_to(msg, -32601)]

        first = "server/discover" if pinned == STATELESS else "initialize"
        revision, methods = run(self.connect(serves, revision=pinned))
        assert (revision, methods[0]) == (pinned, first)
        exc, methods = run(self.connect(refuses, revision=pinned))
        assert isinstance(exc, m.MCPError) and methods == [first]

    def test_a_pinned_revision_has_all_the_time_of_a_request(self, monkeypatch):
        monkeypatch.setattr(m, "PROBE_SECONDS", 0)
        waiting = []

        def react(msg):
            script = waiting[0]
            asyncio.get_running_loop().call_later(0.005, script.put, answer_to(msg, {}))

        async def go():
            waiting.append(Script(react))
            async with m.Client(waiting[0], revision=STATELESS) as c:
                return c.revision

        assert run(go()) == STATELESS

    def test_the_first_question_takes_no_longer_than_any_request(self, monkeypatch):
        monkeypatch.setattr(m, "PROBE_SECONDS", 3600)

        async def go():
            with pytest.raises(m.RequestTimeout):
                await m.Client(Script(lambda msg: None), timeout=0.01).connect()

        run(go())

    def test_a_pinned_revision_that_the_server_refuses_is_told(self):
        def react(msg):
            return [answer_to(msg, {**REFUSED, "data": {"supported": [SESSIONS]}})]

        exc, methods = run(self.connect(react, revision=STATELESS))
        assert STATELESS in str(exc) and SESSIONS in str(exc) and methods == ["server/discover"]

    @pytest.mark.parametrize("probe", [
        "print(json.dumps({'jsonrpc': '2.0', 'id': msg['id'], 'error': {'code': -32601, 'message': 'x'}}), flush=True)",
        "continue", "sys.exit('expected initialize')",
    ], ids=["errors", "silent", "crashes"])  # fmt: skip
    def test_legacy_servers_in_processes(self, probe, monkeypatch):
        """stdio#backward-compatibility; one that ends at the probe is started again."""
        monkeypatch.setattr(m, "PROBE_SECONDS", 0.3 if probe == "continue" else 20)
        command = [sys.executable, "-c", OLD_SERVER.format(probe=probe)]

        async def go():
            async with m.Client(command, stderr="null") as c:
                return c.revision, [tool["name"] for tool in await c.list_tools()]

        assert run(go()) == (SESSIONS, ["old"])

    def test_a_server_that_always_crashes_is_told_with_its_last_words(self):
        async def go():
            with pytest.raises(m.ConnectionClosed, match="no module named x"):
                await m.Client(
                    [sys.executable, "-c", "import sys; sys.exit('no module named x')"]
                ).connect()

        run(go())

    @pytest.mark.parametrize("status, kind, body", [
        (400, "text/plain", ""), (400, "text/plain", "Bad Request: no session"),
        (400, "application/json", '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}'),
        (400, "application/json", '{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}'),
        (400, "application/json", '{"error":"unsupported"}'), (400, "application/json", "[1"),
        (404, "text/html", "<h1>Not Found</h1>"), (405, "text/plain", ""),
        (404, "application/json", '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}'),
        (200, "application/json", '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}'),
        (422, "application/json", "{}"), (500, "text/plain", "oops"), (406, "text/plain", ""),
    ])  # fmt: skip
    def test_legacy_servers_over_http(self, status, kind, body):
        """streamable-http#backward-compatibility: "not a recognized modern JSON-RPC error"."""
        seen = []

        def serve(head, msg):
            seen.append((head[":method"], msg["method"], head.get("mcp-protocol-version")))
            if head[":method"] == "GET":
                return 405, "text/plain", ""
            return (status, kind, body) if msg["method"] == "server/discover" else {}

        async def go():
            async with fake_http(serve) as url, m.Client(url) as c:
                return c.revision

        assert run(go()) == SESSIONS
        assert seen[:3] == [("POST", "server/discover", STATELESS), ("POST", "initialize", None),
                            ("POST", "notifications/initialized", SESSIONS)]  # fmt: skip

    @pytest.mark.parametrize("code", [-32020, -32021, -32022])
    def test_modern_errors_over_http_are_read_from_the_body(self, code):
        seen = []

        def serve(head, msg):
            seen.append(msg["method"])
            again = code == -32022 and len(seen) > 1
            return {} if again else {**REFUSED, "code": code}

        async def go():
            async with fake_http(serve) as url:
                async with m.Client(url) as c:
                    return c.revision

        if code == -32022:
            assert run(go()) == STATELESS and seen == ["server/discover"] * 2
        else:
            with pytest.raises(m.RemoteError):
                run(go())
            assert seen == ["server/discover"]

    @pytest.mark.parametrize("status", [400, 404, 405])
    def test_then_the_transport_of_the_first_revision(self, status):
        """streamable-http#httpsse-transport-2024-11-05"""
        seen, streams = [], []

        def serve(head, msg):
            seen.append((head[":method"], msg["method"]))
            if head[":method"] == "GET":
                return stream
            if not streams:
                return status, "text/plain", "no"
            if "id" in msg:
                answer = json.dumps(answer_to(msg, {"protocolVersion": "2024-11-05"}))
                streams[0].write(b"data: " + answer.encode() + b"\n\n")
            return 202, "text/plain", "Accepted"

        async def stream(writer):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            writer.write(b"event: endpoint\ndata: /messages?x=1\n\n")
            streams.append(writer)
            await asyncio.get_running_loop().create_future()

        async def go():
            async with fake_http(serve) as url, m.Client(url) as c:
                return c.revision, await c.list_tools()

        assert run(go()) == ("2024-11-05", [])
        assert seen[:4] == [("POST", "server/discover"), ("POST", "initialize"), ("GET", ""),
                            ("POST", "initialize")]  # fmt: skip

    def test_a_token_that_is_missing_is_no_sign_of_an_era(self):
        async def go():
            async with Web(small_app(), token="secret") as way:
                with pytest.raises(m.AuthError):
                    await m.Client(way.url).connect()

        run(go())

    def test_what_was_found_is_kept(self):
        """basic/versioning: "SHOULD cache the result for the lifetime of the server process"."""

        def react(msg):
            return [answer_to(msg, {})]

        async def go():
            script = Script(react)
            async with m.Client(script) as c:
                for _ in range(3):
                    await c.list_tools()
                return [msg["method"] for msg in script.sent]

        assert run(go()) == ["server/discover"] + ["tools/list"] * 3


class TestClientOfTheModernEra:
    """What a client says, takes, keeps and refuses."""

    async def use(self, react, work, **options):
        script = Script(lambda msg: react(msg) if "id" in msg else None)
        async with m.Client(script, **options) as c:
            try:
                return await work(c), script.sent
            except m.MCPError as exc:
                return exc, script.sent

    def test_every_request_says_what_it_needs_to_say(self):
        """basic/index#_meta"""

        async def work(c):
            await c.list_tools()
            await c.call_tool("x")
            await c.read_resource("a://b")

        _, sent = run(
            self.use(lambda msg: [answer_to(msg, {})], work, roots=[], name="me", version="2")
        )
        for msg in sent:
            meta = msg["params"]["_meta"]
            assert meta["io.modelcontextprotocol/protocolVersion"] == STATELESS
            assert meta["io.modelcontextprotocol/clientInfo"] == {"name": "me", "version": "2"}
            declared = meta["io.modelcontextprotocol/clientCapabilities"]
            assert declared == {"roots": {}, **TASKS}  # in schema.ts, nothing is in it
            assert "io.modelcontextprotocol/logLevel" not in meta
        assert len({msg["id"] for msg in sent}) == len(sent) == 4

    def test_trace_context_and_other_metadata_are_sent_along(self):
        """basic/index#_meta: traceparent, tracestate, baggage; readable from ctx.meta"""
        app, trace = m.Server(), {"traceparent": "00-0af7-00f0-01", "baggage": "a=b"}

        @app.tool
        async def x(ctx: m.Context) -> str:
            await ctx.elicit("?")
            return f"{ctx.meta.get('traceparent')} {ctx.meta.get('baggage')}"

        async def go(revision):
            async with m.Client(app, revision=revision, elicit=lambda *a: True) as c:
                return await c.call("x", meta=trace)

        assert run(go(STATELESS)) == run(go(SESSIONS)) == "00-0af7-00f0-01 a=b"

    def test_log_level_is_said_with_each_request(self):
        heard = []

        async def go():
            async with m.Client(small_app(), log=lambda *args: heard.append(args[1])) as c:
                await c.call("talks")
                await c.set_log_level("error")
                await c.call("talks")
            async with m.Client(small_app()) as c:
                await c.call("talks")

        run(go())
        assert heard == ["one", "two", "two"]

    @pytest.mark.parametrize("kind", ["acme", "", None, 5, "COMPLETE", "input_required"])
    def test_results_of_unknown_type_are_errors(self, kind):
        """basic/index#resulttype: "MUST be considered invalid"; so is a question without any."""

        def react(msg):
            answer = answer_to(msg, {})
            if msg["method"] == "tools/call":
                answer["result"]["resultType"] = kind
            return [answer]

        exc, _ = run(self.use(react, lambda c: c.call_tool("x")))
        assert isinstance(exc, m.ProtocolError)

    def test_results_without_a_type_are_complete(self):
        """basic/index#resulttype: "MUST treat an absent resultType as complete"."""

        def react(msg):
            answer = answer_to(msg, {})
            del answer["result"]["resultType"]
            return [answer]

        assert run(self.use(react, lambda c: c.call_tool("x")))[0] == {"content": []}

    def rounds(self, *results):
        """Return what reacts to tools/call with one result after the other."""
        left = list(results)

        def react(msg):
            return [answer_to(msg, left.pop(0) if msg["method"] == "tools/call" else {})]

        return react

    ROOTS = {"method": "roots/list", "params": {}}

    @pytest.mark.parametrize("state", ["state", "", "\u20ac \n", None])
    def test_state_comes_back_exactly_or_not_at_all_under_a_new_id(self, state):
        """mrtr#client-requirements-basic-workflow"""
        kept = {} if state is None else {"requestState": state}
        asked = {"resultType": "input_required", "inputRequests": {"k": self.ROOTS}}
        react = self.rounds({**asked, "requestState": "old"}, {**asked, **kept}, {})
        _, sent = run(self.use(react, lambda c: c.call_tool("x", {"a": 1}), roots=["file:///r"]))
        first, second, third = sent[1:]
        assert len({msg["id"] for msg in sent}) == 4
        assert second["params"]["requestState"] == "old"
        assert third["params"].get("requestState") == state
        for msg in (second, third):
            assert msg["params"]["inputResponses"] == {"k": {"roots": [{"uri": "file:///r"}]}}
            assert (msg["params"]["name"], msg["params"]["arguments"]) == ("x", {"a": 1})
        assert not {"inputResponses", "requestState"} & first["params"].keys()

    def test_state_alone_is_sent_back_at_once(self):
        react = self.rounds({"resultType": "input_required", "requestState": "s"}, {})
        _, sent = run(self.use(react, lambda c: c.call_tool("x")))
        assert sent[2]["params"]["requestState"] == "s"

    def test_questions_are_put_at_the_same_time(self):
        """A callback that waits for the other one would hang otherwise."""
        met = []
        form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        asked = {"a": {"method": "elicitation/create", "params": form},
                 "b": {"method": "elicitation/create", "params": form}}  # fmt: skip

        async def elicit(message, schema):
            met.append(asyncio.get_running_loop().create_future())
            if len(met) == 2:
                met[0].set_result(None)
                met[1].set_result(None)
            await met[-1]
            return {}

        react = self.rounds({"resultType": "input_required", "inputRequests": asked}, {})
        _, sent = run(self.use(react, lambda c: c.call_tool("x"), elicit=elicit))
        assert sent[2]["params"]["inputResponses"] == {"a": accept(), "b": accept()}

    @pytest.mark.parametrize("bad", [
        "text", None, {}, {"method": 5}, {"method": "ping"}, {"method": "tools/list"},
        {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        {"method": "elicitation/create", "params": {}},
    ])  # fmt: skip
    def test_questions_that_cannot_be_answered_end_the_call_and_the_other_questions(self, bad):
        """Run() fails if the callback that waits for ever goes on."""
        ended = []

        async def roots():
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append(1)

        asked = {"inputRequests": {"a": self.ROOTS, "b": bad}, "resultType": "input_required"}
        exc, sent = run(
            self.use(self.rounds(asked), lambda c: c.call_tool("x"), roots=roots, elicit=bool)
        )
        assert isinstance(exc, m.MCPError) and len(sent) == 2 and len(ended) <= 1

    def test_requests_of_a_modern_server_are_not_answered(self):
        """basic/patterns: servers "MUST NOT initiate", and clients send no responses."""

        def react(msg):
            ask = m.request(99, "roots/list")
            return (
                [ask, answer_to(msg, {})] if msg["method"] == "tools/call" else [answer_to(msg, {})]
            )

        async def work(c):
            await c.call_tool("x")
            await c.call_tool("x")

        _, sent = run(self.use(react, work, roots=[]))
        assert [msg["method"] for msg in sent] == ["server/discover", "tools/call", "tools/call"]

    def test_roots_that_change_are_not_announced(self):
        """changelog: notifications/roots/list_changed was removed."""

        async def work(c):
            await c.roots_changed(["file:///new"])
            await c.call_tool("x")

        asked = {"resultType": "input_required", "inputRequests": {"k": self.ROOTS}}
        _, sent = run(self.use(self.rounds(asked, {}), work, roots=[]))
        assert [msg["method"] for msg in sent] == ["server/discover", "tools/call", "tools/call"]
        assert sent[2]["params"]["inputResponses"]["k"]["roots"] == [{"uri": "file:///new"}]

    def test_a_stream_of_a_modern_server_is_not_taken_up_again(self):
        """streamable-http#receiving-messages: "Resumable SSE streams ... are not supported"."""
        seen = []

        def serve(head, msg):
            seen.append(head[":method"])
            if msg["method"] != "tools/call":
                return {}
            return 200, "text/event-stream", "id: 5\nretry: 0\ndata: \n\n"

        async def go():
            async with fake_http(serve) as url, m.Client(url) as c:
                with pytest.raises(m.ConnectionClosed, match="without a response"):
                    await c.call_tool("x")

        run(go())
        assert "GET" not in seen

    def test_old_code_for_a_missing_resource_is_understood(self):
        """server/resources#error-handling: "SHOULD also accept -32002"."""

        def react(msg):
            return [answer_to(msg, -32002 if msg["method"] == "resources/read" else {})]

        exc, _ = run(self.use(react, lambda c: c.read("a://b")))
        assert exc.code == -32002


class TestKeepingResults:
    """server/utilities/caching: fresh while now < t_received + ttlMs."""

    async def talk(self, react, work, **options):
        counted = []

        def count(msg):
            if "id" in msg and msg["method"] != "server/discover":
                counted.append(msg["method"])
            return react(msg) if "id" in msg else None

        script = Script(count)
        async with m.Client(script, **options) as c:
            await work(c, script)
        return counted

    def hints(self, ttl_ms, **more):
        return lambda msg: [answer_to(msg, {"ttlMs": ttl_ms, "cacheScope": "public", **more})]

    @pytest.mark.parametrize("ttl_ms, asked", [
        (60_000, 1), (0, 3), (-5, 3), (None, 3), ("60000", 3), (0.5e6, 1), (10**400, 1),
    ])  # fmt: skip
    def test_results_are_kept_as_long_as_they_say(self, ttl_ms, asked):
        async def work(c, script):
            for _ in range(3):
                await c.list_tools()

        assert len(run(self.talk(self.hints(ttl_ms), work))) == asked

    def test_nothing_is_kept_when_told_so_nor_beyond_its_time(self):
        async def work(c, script):
            await c.list_tools()
            later = time.monotonic() + 0.002
            while time.monotonic() < later:
                await asyncio.sleep(0)
            await c.list_tools()

        assert len(run(self.talk(self.hints(1), work))) == 2
        assert len(run(self.talk(self.hints(60_000), work))) == 1
        assert len(run(self.talk(self.hints(60_000), work, cache=False))) == 2

    def test_the_key_is_the_method_and_its_parameters(self):
        async def work(c, script):
            for uri in ("a://a", "a://b", "a://a"):
                await c.read_resource(uri)
            for name in ("x", "x"):
                await c.get_prompt(name)
                await c.call_tool(name)
            await c.request("resources/read", {"uri": "a://a", "inputResponses": {}})
            await c.request("resources/read", {"uri": "a://a", "requestState": "s"})

        asked = run(self.talk(self.hints(60_000), work))
        assert (
            asked
            == ["resources/read"] * 2 + ["prompts/get", "tools/call"] * 2 + ["resources/read"] * 2
        )

    def test_results_that_depended_on_answers_are_not_kept(self):
        """caching#cache-key: "MUST NOT be cached"."""

        def react(msg):
            if msg["method"] == "resources/read" and "requestState" not in msg["params"]:
                return [answer_to(msg, {"resultType": "input_required", "requestState": "s"})]
            return self.hints(60_000)(msg)

        async def work(c, script):
            await c.read_resource("a://a")
            await c.read_resource("a://a")

        assert len(run(self.talk(react, work))) == 4

    @pytest.mark.parametrize("method, params, dropped", [
        ("tools/list_changed", {}, {"tools/list"}), ("prompts/list_changed", {}, {"prompts/list"}),
        ("resources/list_changed", {}, {"resources/list", "a://\u00fc", "a://b"}),
        ("resources/updated", {"uri": "a://\u00fc"}, {"a://\u00fc"}),
        ("acme", {}, set()), ("resources/updated", {"uri": "a://c"}, set()),
    ])  # fmt: skip
    def test_announcements_make_it_stale(self, method, params, dropped):
        """caching#interaction-with-notifications"""
        asked = []

        async def all_of(c):
            await c.list_tools()
            await c.list_prompts()
            await c.list_resources()
            await c.read_resource("a://\u00fc")
            await c.read_resource("a://b")

        def react(msg):
            asked.append(msg["params"].get("uri", msg["method"]))
            return self.hints(60_000)(msg)

        async def work(c, script):
            await all_of(c)
            asked.clear()
            script.put(m.notification("notifications/" + method, params))
            await c.call_tool("x")  # it has been heard by then
            await all_of(c)
            asked.remove("tools/call")

        run(self.talk(react, work))
        assert set(asked) == dropped

    def test_an_answer_that_a_change_overtook_is_not_kept(self):
        def react(msg):
            changed = m.notification("notifications/tools/list_changed")
            before = [changed] if msg["method"] == "tools/list" else []
            return [*before, *self.hints(60_000)(msg)]

        async def work(c, script):
            await c.list_tools()
            await c.list_tools()

        assert len(run(self.talk(react, work))) == 2

    def test_what_a_caller_does_to_a_result_does_not_change_what_is_kept(self):
        tools = [{"name": "x", "inputSchema": {"type": "object"}}]

        async def work(c, script):
            (await c.list_tools())[0].clear()
            (await c.list_tools())[0].clear()
            assert await c.list_tools() == tools

        assert len(run(self.talk(self.hints(60_000, tools=tools), work))) == 1

    def test_no_more_is_kept_than_fits(self, monkeypatch):
        monkeypatch.setattr(m, "MAX_CACHED", 3)

        async def work(c, script):
            for name in "abccbada":  # c drives server/discover out, d drives a out, a drives b out
                await c.read_resource(f"x://{name}")

        assert len(run(self.talk(self.hints(60_000), work))) == 5

    def test_a_ping_asks_the_server(self):
        asked = []

        def react(msg):
            asked.append(msg["method"])
            return self.hints(60_000)(msg)

        async def work(c, script):
            await c.ping()
            await c.ping()

        run(self.talk(react, work))
        assert asked == ["server/discover"] * 3

    def test_a_server_and_its_client_agree(self):
        app, reads = m.Server(ttl_ms=60_000), []

        @app.resource("count://")
        def count() -> str:
            reads.append(1)
            return str(len(reads))

        async def go():
            async with m.Client(app) as c, c.listen(uris=["count://"]) as updates:
                found = [await c.read("count://"), await c.read("count://")]
                app.resource_updated("count://")
                await updates.__anext__()
                return [*found, await c.read("count://")]

        assert run(go()) == ["1", "1", "2"]


class TestSideBySide:
    """basic/versioning: a server "MAY serve both eras concurrently on the same endpoint"."""

    def test_clients_of_all_revisions_at_once_on_one_endpoint(self):
        app = make_asking_twice["make"](os.devnull)

        @app.tool
        async def which(ctx: m.Context) -> str:
            await ctx.report_progress(1)
            return ctx.revision

        async def one(url, revision):
            seen = []
            async with m.Client(url, revision=revision, progress=lambda *a: seen.append(a)) as c:
                found = [await c.call("which") for _ in range(3)]
            assert found == [revision] * 3 and len(seen) == 3
            return revision

        async def go():
            async with app.http(port=0) as server:
                everyone = [one(server.url, revision) for revision in m.REVISIONS for _ in range(3)]
                await asyncio.gather(*everyone)
                assert not server.endpoint.modern.conversation.peer.incoming

        run(go())

    def test_both_eras_interleaved_on_one_pipe(self):
        """stdio: a session beside requests that need none; what each asks for comes in its way."""
        app = make_asking_twice["make"](os.devnull)
        info = {"name": "old", "version": "1"}
        hello = {
            "protocolVersion": SESSIONS,
            "capabilities": {"elicitation": {}},
            "clientInfo": info,
        }

        async def go():
            async with Pipe(app) as way:
                modern = calling("m1", "awaits")
                first = await way.ask(modern)  # even before the handshake
                assert (await way.ask(m.request("h", "initialize", hello)))["result"][
                    "protocolVersion"
                ]
                await way.send(m.notification("notifications/initialized"))
                await way.send(m.request("old", "tools/call", {"name": "awaits", "arguments": {}}))
                question = await way.take()
                assert question["method"] == "elicitation/create"
                second = await way.ask(
                    again(modern, "m2", first, {"elicitation-1": accept(value="new")})
                )
                await way.send(m.result(question["id"], accept(value="old")))
                question = await way.take()
                retry = again(modern, "m3", second, {"elicitation-2": accept(value=2)})
                assert said(await way.ask(retry)).startswith("new")
                await way.send(m.result(question["id"], accept(value=1)))
                old = (await way.answer("old"))["result"]
                assert old["content"][0]["text"].startswith("old") and "resultType" not in old
                assert problem(await way.ask(stateless("p", "ping"))) == -32601
                assert (await way.ask(m.request("q", "ping")))["result"] == {}

        run(go())

    def test_a_change_reaches_both_eras_each_in_its_way(self):
        app = small_app()
        info = {"name": "old", "version": "1"}
        hello = {"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": info}

        async def go():
            async with Pipe(app) as way:
                await way.ask(m.request("h", "initialize", hello))
                await way.send(m.notification("notifications/initialized"))
                wanted = {"toolsListChanged": True}
                await way.send(stateless("s", "subscriptions/listen", notifications=wanted))
                assert kinds([await way.take()]) == ["subscriptions/acknowledged"]
                app.tools_changed()
                return [await way.take(), await way.take()]

        marks = [msg.get("params", {}).get("_meta") for msg in run(go())]
        assert sorted(map(str, marks)) == sorted(
            [str(None), str({"io.modelcontextprotocol/subscriptionId": "s"})])  # fmt: skip

    def test_the_same_id_of_different_clients_over_http_is_not_the_same(self):
        app, gate, waiting = m.Server(), [], []

        @app.tool
        async def hold(n: int) -> str:
            waiting.append(n)
            if len(waiting) == 20:
                gate[0].set_result(None)
            await asyncio.shield(gate[0])
            return str(n)

        async def one(way, n):
            async with way.post(calling(1, "hold", {"n": n})) as post:
                return said(await post.take())

        async def go():
            gate.append(asyncio.get_running_loop().create_future())
            async with Web(app) as way:
                return await asyncio.gather(*(one(way, n) for n in range(20)))

        assert run(go()) == [str(n) for n in range(20)]

    def test_a_cancellation_over_http_names_nobody_elses_request(self):
        app, gate = m.Server(), []

        @app.tool
        async def hold() -> str:
            gate.append(asyncio.get_running_loop().create_future())
            return await gate[0]

        async def go():
            async with Web(app) as way, way.post(calling(1, "hold")) as post:
                while not gate:
                    await asyncio.sleep(0)
                stop = m.notification("notifications/cancelled", {"requestId": 1})
                head = {"mcp-protocol-version": STATELESS}
                async with way.post(stop, head) as other:
                    assert (await other.begin()).status == 202
                gate[0].set_result("done")
                return said(await post.take())

        assert run(go()) == "done"

    def test_state_of_a_session_is_not_there_for_requests_that_have_none(self):
        """basic/index#statelessness"""
        app = m.Server()

        @app.tool
        async def count(ctx: m.Context) -> int:
            ctx.state["n"] = ctx.state.get("n", 0) + 1
            return ctx.state["n"]

        async def go(revision):
            async with m.Client(app, revision=revision) as c:
                return [await c.call("count") for _ in range(3)]

        assert run(go(SESSIONS)) == [1, 2, 3] and run(go(STATELESS)) == [1, 1, 1]


class TestOneTable:
    """Section 4 is the only place that knows dates."""

    text = pathlib.Path(m.__file__).read_text(encoding="utf-8")

    def test_no_date_but_the_tables_is_in_the_code(self):
        """All dates of all string literals are in section 4, citations and examples aside."""
        tree = ast.parse(self.text)
        described = {id(node.body[0].value) for node in ast.walk(tree)
                     if getattr(node, "body", None) and isinstance(node.body, list)
                     and isinstance(node.body[0], ast.Expr)}  # fmt: skip
        first, last = (
            self.text.count("\n", 0, self.text.index(mark)) for mark in ("# 4. R", "# 5. R")
        )
        dates = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant)
                 and isinstance(node.value, str) and id(node) not in described
                 and re.search(r"\b20\d\d-\d\d-\d\d", node.value)]  # fmt: skip
        assert [line for line in dates if not first < line < last] == []
        assert len([line for line in dates if first < line < last]) == len(m.REVISIONS)

    def test_with_other_dates_in_the_table_everything_goes_on(self):
        """Delete every date but the table's, rename those, and let the two eras talk."""
        renamed = {name: f"x{number}" for number, name in enumerate(m.REVISIONS)}
        a, b = (self.text.index(mark) for mark in ("# 4. R", "# 5. R"))
        outside = [
            re.sub(r"\b20\d\d-\d\d-\d\d", "", text) for text in (self.text[:a], self.text[b:])
        ]
        table = re.sub(r"20\d\d-\d\d-\d\d", lambda hit: renamed[hit[0]], self.text[a:b])
        module = types.ModuleType("mcp_lite")
        module.__file__ = m.__file__
        sys.modules["mcp_lite"] = module
        try:
            exec(compile(outside[0] + table + outside[1], m.__file__, "exec"), vars(module))
            app = module.Server()

            @app.tool
            async def which(ctx: module.Context) -> str:
                return f"{ctx.revision} {(await ctx.elicit('?', str)).data}"

            async def go(target, revision):
                async with module.Client(target, revision=revision, elicit=lambda *a: "yes") as c:
                    assert c.revision == (revision or "x4")
                    return await c.call("which")

            async def everywhere():
                async with app.http(port=0) as server:
                    return [await go(target, revision) for target in (app, server.url)
                            for revision in (None, "x4", "x3", "x2")]  # fmt: skip

            assert run(everywhere()) == ["x4 yes", "x4 yes", "x3 yes", "x2 yes"] * 2
        finally:
            sys.modules["mcp_lite"] = m


###############################################################################
# T99. The book itself
###############################################################################
#
# mcp_lite.py is to be read from top to bottom. What that needs and a machine can see is checked
# here; the thresholds were measured on the protocol code that is most admired for being readable.

BANNER = re.compile(r"^#{79}\n# (T?)(\d+)\. (.+)\n#{79}\n", re.M)
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

    @property
    def pure(self):
        return self.intro[:1] != [] and self.intro[0].startswith("# Pure.")


def sections_of(text):
    """Return the sections of a file in order; the text above the first banner is number 0."""
    marks = [(0, 0, "Preface")]
    marks += [(hit.start(), int(hit[2]), hit[3]) for hit in BANNER.finditer(text)]
    ends = [mark[0] for mark in marks[1:]] + [len(text)]
    return [
        Part(
            number,
            title,
            text.count("\n", 0, start) + 1,
            text.count("\n", 0, end),
            text[start:end],
        )
        for (start, number, title), end in zip(marks, ends)
    ]


SECTIONS = sections_of(SOURCE)
NUMBERED = SECTIONS[1:]
TEST_PARTS = sections_of(pathlib.Path(__file__).read_text(encoding="utf-8"))
TEST_HEAD = TEST_PARTS[0].text + TEST_PARTS[1].text  # imports, and T0
TESTS = {part.number: part for part in TEST_PARTS[2:]}
TREE = ast.parse(SOURCE)
WANTED_HEADS = ("Problem", "Rules", "Plan", "Not here")
each_section = pytest.mark.parametrize("part", NUMBERED, ids=lambda part: f"{part.number}")


def upto(number):
    """Return the text of mcp_lite.py cut off after a section."""
    return "".join(part.text for part in SECTIONS if part.number <= number)


def nodes_of(part, *, annotations=False):
    """Return a section's syntax tree, without annotations: those are for the reader."""
    tree = ast.parse("\n" * (part.first - 1) + part.text)
    for node in ast.walk(tree) if not annotations else ():
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(0)
    return tree


def globals_used(part, *, annotations=False, inside=False):
    """Return the module-level names that a section refers to; `inside`: in function bodies only."""
    tree = ast.fix_missing_locations(nodes_of(part, annotations=annotations))
    tables = [symtable.symtable(ast.unparse(tree), "mcp_lite.py", "exec")]
    used = set()
    for table in tables:
        tables += table.get_children()
        module = table.get_type() == "module"
        if not (module and inside):
            names = [name for name in table.get_symbols() if name.is_referenced()]
            used |= {name.get_name() for name in names if module or name.is_global()}
    return used


def functions(tree):
    """Yield (qualified name, node) of all functions, methods and nested functions."""
    todo = [(child, "") for child in ast.iter_child_nodes(tree)]
    while todo:
        node, where = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield where + node.name, node
        name = f"{where}{node.name}." if hasattr(node, "name") and node.name else where
        todo += [(child, name) for child in ast.iter_child_nodes(node)]


def docstring_lines(tree):
    """Return the numbers of the lines that are docstrings."""
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found |= set(range(body[0].lineno, body[0].end_lineno + 1))
    return found


def code_and_narrative():
    """Return two sets of line numbers; a line with code and a comment is only in the first."""
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    docs = docstring_lines(TREE)
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(SOURCE).readline):
        if token.type not in quiet and token.type != tokenize.ENDMARKER:
            code |= set(range(token.start[0], token.end[0] + 1))
    words = {n for n, line in enumerate(LINES, 1) if any(c.isalnum() for c in line)}
    code -= docs
    return code, words - code


CODE, NARRATIVE = code_and_narrative()


def size(node):
    """Return how many lines of code a function or class has."""
    return len(CODE.intersection(range(node.lineno, node.end_lineno + 1)))


def nesting(node):
    """Return how deep the compound statements of a function are nested; `elif` is no deeper."""
    deeper = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.AsyncFor, ast.AsyncWith)
    deeper += (ast.FunctionDef, ast.AsyncFunctionDef)
    depth = 0
    for child in ast.iter_child_nodes(node):
        below = nesting(child)
        is_elif = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        depth = max(depth, below + (isinstance(child, deeper) and not is_elif))
    return depth


CITATION = re.compile(r"\bspec(?: (\d{4}-\d\d-\d\d))?: ([\w./-]*\w)(?:#([\w-]+))?")
OTHER_CITATION = re.compile(r"\b(RFC \d{4}|JSON-RPC 2\.0 §|WHATWG|JSON Schema 20)")


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
    """Return the anchors of a page's headings, as the specification's site makes them."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", markdown, re.M):
        found.add(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"))
    return found


@functools.cache
def cut_code(number):
    """Return the compiled mcp_lite.py, cut off after a section."""
    return compile(upto(number), m.__file__, "exec")


@contextlib.contextmanager
def cut_module(number):
    """Give the module that mcp_lite.py is when it is cut off after a section."""
    module = types.ModuleType("mcp_lite")
    module.__file__ = m.__file__
    sys.modules["mcp_lite"] = module
    try:
        exec(cut_code(number), vars(module))
        yield module
    finally:
        sys.modules["mcp_lite"] = m


@functools.cache
def names_after(number):
    """Return the module-level names of what mcp_lite.py is when cut off after a section."""
    with cut_module(number) as cut:
        return frozenset(vars(cut))


def defined(part):
    """Return the names that a section defines at module level."""
    return names_after(part.number) - names_after(SECTIONS[SECTIONS.index(part) - 1].number)


class TestReadingOrder:
    """Reading order is dependency order: you can stop at any banner and have a working thing."""

    def test_sections_stand_in_order(self):
        numbers = [part.number for part in NUMBERED]
        assert numbers == sorted(set(numbers))

    def test_contents_in_the_preface_are_the_banners(self):
        contents = re.findall(r"^ +(\d+)  ?(\S.*?)(?:  +.*)?$", m.__doc__, re.M)
        assert contents == [(str(part.number), part.title) for part in NUMBERED]

    @each_section
    def test_every_section_says_what_it_is_for_before_code(self, part):
        heads = [re.match(r"# (\w[\w ]*)\.", line) for line in part.intro]
        heads = [head[1] for head in heads if head and head[1] in WANTED_HEADS]
        assert heads == list(WANTED_HEADS)

    @each_section
    def test_cut_off_after_any_section_every_name_resolves_and_doctests_pass(self, part):
        with cut_module(part.number) as cut:
            unknown = globals_used(part, inside=True) - set(vars(cut)) - set(vars(builtins))
            assert not unknown
            finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
            for name in sorted(defined(part)):
                if getattr(vars(cut).get(name), "__module__", None) == "mcp_lite":
                    for test in finder.find(vars(cut)[name], name, cut, vars(cut)):
                        runner.run(test)
            assert not runner.failures

    # Starting pytest takes longer than most of the tests: one process runs several cuts.
    RUN_CUTS = """
import os, pytest, sys
for folder in sys.argv[1:]:
    sys.modules.pop("mcp_lite", None)
    sys.modules.pop("test_mcp_lite", None)
    sys.path[0] = folder
    os.chdir(folder)
    options = ["-q", "-x", "--tb=short", "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir=."]
    if pytest.main([*options, "test_mcp_lite.py"]):
        sys.exit(f"in {folder}")
"""

    def test_cut_off_after_any_section_up_to_the_engine_its_tests_pass(self, tmp_path):
        """Both files are cut: of the tests, T0 and the section's own remain."""
        folders = []
        for part in NUMBERED:
            if part.number <= 13 and part.number in TESTS:
                folder = tmp_path / f"T{part.number}"
                folder.mkdir()
                (folder / "mcp_lite.py").write_text(upto(part.number), "utf-8")
                tests = TEST_HEAD + TESTS[part.number].text
                (folder / "test_mcp_lite.py").write_text(tests, "utf-8")
                folders.append(str(folder))
        assert folders

        def run_tests(some):
            return subprocess.run(
                [sys.executable, "-W", "error", "-c", self.RUN_CUTS, *some],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=120,
            )

        processes = min(os.cpu_count() or 1, 4)
        with concurrent.futures.ThreadPoolExecutor(processes) as pool:
            for ran in pool.map(run_tests, [folders[i::processes] for i in range(processes)]):
                assert ran.returncode == 0, ran.stdout.decode()[-4000:]

    @each_section
    def test_a_section_uses_the_sections_that_it_names(self, part):
        if part.number == 1:
            return
        said = re.search(r"Uses sections? ([\d ,andto]+)\.", " ".join(part.intro[:3]))
        assert said, "the line below the banner must say `Uses sections ...`"
        ranges = re.findall(r"(\d+)(?: to (\d+))?", said[1])
        named = {n for a, b in ranges for n in range(int(a), int(b or a) + 1)}
        home = {}
        for other in NUMBERED:
            for name in defined(other):
                home.setdefault(name, other.number)
        needed = {home[name]: name for name in globals_used(part) if name in home}
        mentioned = {home.get(name) for name in globals_used(part, annotations=True)}
        unnamed = {n: name for n, name in needed.items() if n not in named | {part.number}}
        assert not unnamed, "needs a section that it does not name"
        assert named <= mentioned, f"names {sorted(named - mentioned)} without need"


class TestCuts:
    """README's table of cuts: what the file is when it is cut off before a Part."""

    README = (HERE / "README.md").read_text("utf-8")

    def cut(self, name):
        """Cut as the README's sed command does: from the first line that begins so."""
        return SOURCE[: re.search(rf"^# {name}\b", SOURCE, re.M).start()] if name else SOURCE

    def test_the_table_tells_the_sizes(self):
        rows = re.findall(r"^\| (?:`(.*)`|nothing) \| ([\d,]+) \| (\d+) \|", self.README, re.M)
        assert len(rows) > 5
        for name, lines, kilobytes in rows:
            text = self.cut(name)
            assert abs(int(lines.replace(",", "")) / text.count("\n") - 1) < 0.05, name
            assert abs(int(kilobytes) / (len(text.encode()) / 1000) - 1) < 0.05, name

    def test_a_part_begins_with_three_lines(self):
        parts = re.findall(r"^# (Part [IVX]+)\. ", SOURCE, re.M)
        banners = re.findall(r"^# ={77}\n# (Part [IVX]+)\. \w.*\n# ={77}\n\n#{79}\n", SOURCE, re.M)
        assert parts == banners and len(parts) > 5

    @pytest.mark.parametrize("name", re.findall(r"^# (Part [IVX]+)\.", SOURCE, re.M)[1:])
    def test_what_is_cut_off_imports_whole(self, name):
        cut = f"import sys; exec(compile(sys.stdin.read(), 'mcp_lite.py', 'exec')); {self.STARS}"
        command = [sys.executable, "-W", "error", "-c", cut]
        said = subprocess.run(command, input=self.cut(name).encode(), capture_output=True)
        assert said.returncode == 0, said.stderr.decode()

    STARS = "assert len({*__all__}) == len(__all__) > 10 and not {*__all__} - {*globals()}"


class TestPurity:
    """Half the file never awaits: no I/O, no clock, no randomness where a banner says `Pure.`"""

    BANNED = {
        "asyncio", "socket", "subprocess", "time", "random", "secrets", "logging", "logger",
        "open", "print", "input", "threading", "ssl",
    }  # fmt: skip
    BANNED_ATTRIBUTES = {"urandom", "uuid1", "uuid4", "now", "utcnow", "today", "environ", "getenv"}
    ASYNC = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)

    def test_the_protocol_itself_is_pure(self):
        assert {2, 3, 4, 5, 6, 9, 10, 11, 24, 25, 26, 33, 34} == {p.number for p in NUMBERED if p.pure}

    @pytest.mark.parametrize("part", [p for p in NUMBERED if p.pure], ids=lambda p: f"{p.number}")
    def test_pure_section_does_no_input_or_output(self, part):
        guilty = sorted(self.BANNED & globals_used(part))
        for node in ast.walk(nodes_of(part)):
            if isinstance(node, self.ASYNC):
                guilty.append(f"{node.lineno}: {type(node).__name__}")
            elif isinstance(node, ast.Attribute) and node.attr in self.BANNED_ATTRIBUTES:
                guilty.append(f"{node.lineno}: .{node.attr}")
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.name.split(".")[0] for alias in node.names}
                names.add(getattr(node, "module", None))
                guilty += [f"{node.lineno}: import {name}" for name in names & self.BANNED]
        assert not guilty


#: Accesses to underscore names of other classes that are still there; it must only go down.
FOREIGN_NAMES = 49
#: What Python itself offers under such a name and has no other name for.
PYTHONS_OWN = {
    "os._exit", "sys._current_frames",  # both are documented
    "value._value_",  # the value of a member of an Enum, also where the class redefines `value`
    # What asyncio's streams do not tell otherwise, on the Pythons that we support.
    "reader._buffer", "reader._transport", "protocol._over_ssl",
}  # fmt: skip


def foreign_names(node, own=("self", "cls", "super()")):
    """Yield each access to an underscore name of something that is not the class itself."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Attribute) and re.match(r"_(?!.*__$)", child.attr):
            # The methods of a NamedTuple have an underscore, that fields may have their names.
            if child.attr not in ("_replace", "_asdict", "_fields", "_make"):
                if ast.unparse(child.value) not in own:
                    yield ast.unparse(child)
        inner = (*own, child.name) if isinstance(child, ast.ClassDef) else own
        yield from foreign_names(child, inner)


class TestProportions:
    """Thresholds measured on h11 and websockets, the most readable of their kind."""

    def test_functions_are_short(self):
        sizes = {f"{name}, line {node.lineno}": size(node) for name, node in functions(TREE)}
        assert {name: n for name, n in sizes.items() if n > 50} == {}
        ordered = sorted(sizes.values())
        assert ordered[len(ordered) * 9 // 10] <= 25

    def test_nesting_is_shallow(self):
        depths = {f"{name}, line {node.lineno}": nesting(node) for name, node in functions(TREE)}
        assert {name: depth for name, depth in depths.items() if depth > 4} == {}
        assert len([depth for depth in depths.values() if depth == 4]) <= 2

    def test_classes_fit_in_the_head(self):
        """325 lines of code; but the client has one short method for each thing to do."""
        classes = [node for node in ast.walk(TREE) if isinstance(node, ast.ClassDef)]
        assert {node.name for node in classes if size(node) > 325} <= {"Client", "Endpoint"}
        assert max(size(node) for node in classes) <= 550

    def test_nobody_reaches_into_another_class(self):
        """An underscore says that a name belongs to its class. The aim is none but Python's own."""
        found = [text for text in foreign_names(TREE) if text not in PYTHONS_OWN]
        assert len(found) <= FOREIGN_NAMES, "\n".join(sorted(set(found)))

    def test_the_story_is_told(self):
        """The aim is one line of comment or docstring for two of code; it must not sink."""
        told = {}
        for part in NUMBERED:
            lines = set(range(part.first, part.last + 1))
            told[part.title] = round(len(NARRATIVE & lines) / len(CODE & lines), 2)
        assert len(NARRATIVE) / len(CODE) >= 0.249, f"by section: {told}"

    def test_lines_are_short(self):
        assert {n: len(line) for n, line in enumerate(LINES, 1) if len(line) > 100} == {}


class TestWords:
    """Names, dates, examples and citations."""

    def test_public_names_exist_and_are_explained(self):
        assert [name for name in m.__all__ if not getattr(vars(m)[name], "__doc__", None)] == []
        assert len(set(m.__all__)) == len(m.__all__)

    def test_doctests_pass(self):
        ran = doctest.testmod(m)
        assert ran.attempted > 50 and not ran.failed

    def test_public_pure_functions_show_an_example(self):
        silent = []
        for part in NUMBERED:
            for node in nodes_of(part).body if part.pure else ():
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    if ">>> " not in (ast.get_docstring(node) or ""):
                        silent.append(f"{node.name}, line {node.lineno}")
        assert not silent, "\n".join(silent)

    def test_protocol_history_is_data(self):
        """Only section 4 names revisions; a citation must say which one it cites."""
        date = re.compile("|".join(m.REVISIONS))
        for part in SECTIONS:
            if part.number in (0, 4):
                continue
            for number, line in enumerate(part.text.splitlines(), part.first):
                assert not date.search(CITATION.sub("", line)), f"line {number}: {line}"

    def test_words_that_say_nothing_do_not_occur(self):
        vague = re.compile(r"\b(TODO|FIXME|XXX)\b|\bclass \w+(Manager|Helper|Utils?|Base|Mixin)\b")
        assert [n for n, line in enumerate(LINES, 1) if vague.search(line)] == []
        named_handler = re.findall(r"^class (\w*Handler)\b(?!\(logging\.Handler\))", SOURCE, re.M)
        assert named_handler == []

    @pytest.mark.parametrize("number", [3, 4, 5, 6, 8, 13, 14, 17, 20, 21, 23, 24, 26, 29])
    def test_protocol_code_cites_what_it_obeys(self, number):
        """At least ten citations in a thousand lines."""
        part = next((part for part in NUMBERED if part.number == number), None)
        if part is None:
            pytest.skip(f"there is no section {number} yet")
        cited = len(CITATION.findall(part.text)) + len(OTHER_CITATION.findall(part.text))
        lines = len(part.text.splitlines())
        assert cited >= lines / 100, f"{cited} citations in {lines} lines"

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


class TestTables:
    """What the file says twice, or the specification says too, is the same."""

    @pytest.mark.parametrize("number, table", [(5, "EXCHANGE"), (6, "SESSION")])
    def test_diagram_is_the_table(self, number, table):
        text = next(part.text for part in NUMBERED if part.number == number)
        drawn = {
            (vars(m)[state], event): vars(m)[new]
            for state, event, new in re.findall(r"^#   (\w+) --(\S+)--> (\w+)$", text, re.M)
        }
        assert drawn == vars(m)[table]

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

    def test_every_row_has_its_handler(self):
        rows = [row for row in m.METHODS.values() if row.kind == "request"]
        rows = [row for row in rows if row.sender != "server"]
        legacy = {row.name for row in rows if set(row.revisions) & set(m.LEGACY)}
        assert legacy <= set(m.HANDLERS) <= {row.name for row in rows}


class TestImport:
    """`import mcp_lite` costs little more than `import asyncio, json`."""

    # What is not loaded by asyncio and json themselves, on some Python that we run on.
    ALLOWED = {"mcp_lite", "__future__"}

    def test_import_loads_nothing_that_only_some_users_need(self):
        code = (
            "import asyncio, json; before = set(sys.modules); import mcp_lite;"
            "print(*sorted(set(sys.modules) - before))"
        )
        code = f"import sys; sys.path.insert(0, {str(HERE)!r}); {code}"
        command = [sys.executable, "-I", "-c", code]
        said = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True).stdout
        assert set(said.decode().split()) - self.ALLOWED == set()
