# SPDX-License-Identifier: MIT
# Copyright (c) 2026 mcp_lite contributors
"""mcp_lite: all of the Model Context Protocol in one file.

A client and a server, for every revision of the protocol, over memory, stdio and HTTP, with
nothing but Python's standard library. Copy the file beside a script, and that script is a server,
a client, or both. Read from top to bottom, the file is the textbook of the protocol.

It is not a framework: no HTTP/2, no HTML, no process manager, no schema language but JSON
Schema 2020-12 (and draft-07). Where one listener is not enough, it serves under any ASGI server.

A SERVER

    from mcp_lite import Server

    app = Server("demo", "1.0")

    @app.tool
    def add(a: int, b: int = 0) -> int:
        '''Add two numbers.'''
        return a + b

    app.run()  # or run("http", port=8000)

A CLIENT

    import asyncio
    from mcp_lite import Client

    async def main():
        async with Client("server.py") as c:  # or Client(a command, a URL, a Server)
            print(await c.call("add", {"a": 1}))

    asyncio.run(main())

THE NOUNS OF MCP

    request     a message with an id, to which the other end sends one response: a result or an
                error. A message without an id is a notification: it gets no response
    client      the program that has the model: an editor, a chat, an agent
    server      the program that offers something to it; often a child process of the client
    tool        a function that the model may call: a name, a JSON Schema of its arguments, a result
    resource    something to read, under a URI: a file, a row, a page
    template    a URI with holes, "note://{name}", for a family of resources
    prompt      a text with parameters that the user picks, as from a menu
    completion  values for an argument of a prompt or a template, while it is typed
    content     pieces of a result: text, image, audio, a resource, a link to one
    sampling    the server asks the client's model to write something
    elicitation the server asks the user: a form to fill in, or a URL to open
    roots       the folders in which the client works
    task        a call that goes on after its first response; the client polls for the result
    user        whoever sits at the client; many users may share one server
    principal   the user or program that a server has authenticated, if it does
    capability  what one end declares that the other may use
    revision    the protocol as it stood on a date; there are five
    era         legacy: a handshake opens a session, and both ends send requests. Modern: only the
                client sends requests, and each carries everything that is needed to answer it
    session     what a handshake opens in the legacy era, and what belongs to it
    round       one request of a call. A modern server that asks ends the request, and the client
                sends it again with the answer: that call takes two rounds, or more
    transport   the channel of a conversation: memory, a pipe (stdio), or HTTP

ONE CALL ON THE WIRE   --> is what the client sends, <-- the server; on a pipe, each in one line.

    Legacy: a handshake first, and then the call.

    --> {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
         "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
         "clientInfo": {"name": "me", "version": "1"}}}
    <-- {"jsonrpc": "2.0", "id": 1, "result": {
         "protocolVersion": "2025-11-25",
         "capabilities": {"logging": {}, "tools": {"listChanged": true}},
         "serverInfo": {"name": "demo", "version": "1.0"}}}
    --> {"jsonrpc": "2.0", "method": "notifications/initialized"}
    --> {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add",
         "arguments": {"a": 1, "b": 2}}}
    <-- {"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "3"}],
         "structuredContent": {"result": 3}}}

    Modern: the same call needs no handshake. `_meta` says with each message what a handshake says.

    --> {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add",
         "arguments": {"a": 1, "b": 2}, "_meta": {
             "io.modelcontextprotocol/protocolVersion": "2026-07-28",
             "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}}
    <-- {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete",
         "content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}, "_meta": {
             "io.modelcontextprotocol/serverInfo": {"name": "demo", "version": "1.0"}}}}

    Either era: the client cancels a call, and gets no response. (Over HTTP, a modern client closes
    the connection of the request instead.)

    --> {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}

THE MAP   A section uses only what stands above it; annotations may name a class from below. Cut off
          before the heading of a Part, the file still works. `grep -n "^# [0-9]"` on it lists
          the sections.

    Part I    Messages             errors, JSON-RPC, revisions and methods
    Part II   One conversation     lifecycle, tasks and threads, channels, Peer
    Part III  A server             JSON Schema, functions, content, rounds, context, Server
    Part IV   stdio                lines, standard streams
    Part V    A client             sessions, Client, child processes
    Part VI   HTTP                 HTTP/1.1, SSE, both ends of Streamable HTTP, ASGI
    Part VII  Authorization        OAuth, keys and tokens, logging in, Guard
    Part VIII The command line     showing, asking the user, verbs

THE LIFE OF ONE CALL

    A server on stdio: LineTransport cuts the bytes of a pipe into lines. Peer.receive() takes a
    line; decode() parses it; classify() says that it is a request. Peer.accept() makes an Exchange
    of it, in a server a Context: from now on it can be cancelled. Peer.reply(), in a task of its
    own, has it served by Conversation.answer_request(), which adds the facts of the session or of
    the request, runs the author's middlewares, asks whether this may be called, and calls
    call_tool(). Tool makes Python values of the arguments. The function runs, on the loop or in a
    thread; its progress, logs and, in the legacy era, questions go out by `send`. Tool makes a
    result of what it returns. Peer.reply() sends that, unless the request was cancelled.

    Its client: Client.call() checks that the server has declared what is needed. Peer.ask() gives
    the request an id, a deadline and a future, and writes it. Progress renews the deadline. The
    response, a result or an error, ends the wait, and call() makes a Python value of it.

NOTATION

    msg, params, result, meta   dicts, exactly as on the wire: their keys stay camelCase
    req_id, rev                 a request id, int or str; a revision of the protocol
    send                        the way back to the peer, for all that a message causes
    peer                        the other end; the class Peer is our end of a conversation with it
    handler                     the function of a server's author that answers
    head, body, data, line      bytes; text is str

    # spec: basic/patterns/progress#progress-flow       obeys this page of the newest specification
    # spec 2025-11-25: basic/lifecycle#shutdown         a page of an older one

    To add a method to the protocol: a row of METHODS, and a function under @handles. Read Parts I
    and II first, then "Rounds": the one idea that is not obvious, how a call that asks runs again.
"""

# Formatters leave this file as it is.
# fmt: off

####
# 1. Names
#
# Problem. A reader wants every import, alias and limit in one place.
# Rules.
#   1. What only some users need (ssl, hashlib, argparse ...) is imported where it is needed, so
#      that `import mcp_lite` costs little more than asyncio.
#   2. `__all__` is the contract, and grows with the sections.
#   3. Each limit is checked before memory is spent.

from __future__ import annotations

import asyncio
import atexit
import base64
import contextvars
import errno
import inspect
import io
import itertools
import json
import logging
import operator
import os
import re
import signal
import stat
import sys
import threading
import time
import typing
import weakref
from asyncio import get_running_loop
from collections import OrderedDict, deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import (
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from functools import cached_property, lru_cache, partial, partialmethod, wraps
from math import isfinite
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Generic,
    Iterable,
    Optional,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform  # in typing since Python 3.11
else:
    dataclass_transform = lambda **_: lambda cls: cls  # noqa: E731

__version__ = "0.9.0"

__all__: list[str] = []

logger = logging.getLogger("mcp_lite")

#: Control characters, without tab and newline; what breaks lines or reorders text.
HIDDEN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
cleaned = partial(re.sub, HIDDEN, "\ufffd")


def clean_record(record: logging.LogRecord) -> bool:
    """Replace what could steer a terminal in a log record: its text may be that of a peer."""
    text = record.getMessage()
    trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
    if re.search(HIDDEN, text + trace):
        record.msg, record.args, record.exc_text = cleaned(text), (), cleaned(trace)
    return True


logger.addFilter(clean_record)


JSON = Any  # None, bool, int, float, str, list, dict
Msg = dict[str, Any]  # one JSON-RPC message, exactly as on the wire
ReqId = Union[int, str]  # never a bool, float or None
Send = Callable[[Msg], Awaitable[Any]]
Payload = Union[Msg, list[Msg]]  # what is sent at once: a message, or a batch
Fields = Mapping[str, str]  # of a head of HTTP, of a form, of a query
Names = Union[str, Iterable[str]]  # one or several: of scopes, of hosts
StrPath = Union[str, "os.PathLike[str]"]
Function = Callable[..., Any]  # plain or async
Action = Callable[[], Any]
Task = asyncio.Task[Any]
Future = asyncio.Future[Any]


PREFIX = "io.modelcontextprotocol/"  # of the specification's own keys in `_meta`
PROTOCOL_VERSION = PREFIX + "protocolVersion"
CLIENT_INFO = PREFIX + "clientInfo"
CLIENT_CAPABILITIES = PREFIX + "clientCapabilities"
LOG_LEVEL = PREFIX + "logLevel"
SERVER_INFO = PREFIX + "serverInfo"
TASKS = PREFIX + "tasks"  # the extension
SUBSCRIPTION_ID = PREFIX + "subscriptionId"
WINDOWS = os.name == "nt"
PYTHON = "python" if WINDOWS else "python3"
END_KEYS = "Ctrl-Z, Enter" if WINDOWS else "Ctrl-D"  # end the input at a terminal

# The limits of all sections.

MAX_MESSAGE_BYTES = 16 * 1024 * 1024  # one JSON-RPC message; a 10 MB file in base64 fits
HELD_BYTES = 64 * 1024 * 1024  # requests of a client, results of tasks, kept events, a whole list
MAX_DOCUMENT_BYTES = 1024 * 1024  # metadata or keys for a login; real ones have 1 to 20 KiB
MAX_STATE_BYTES = 256 * 1024  # a requestState; every round carries it both ways
BUFFER_BYTES = 64 * 1024  # taken by one read(), or kept before the other side has to wait
MAX_HEAD_BYTES = 32 * 1024  # a head of HTTP, or a line on stderr; nginx has 4 x 8 KiB, Node 16 KiB
MAX_TOKEN_BYTES = 8192  # an access token: it goes into a head
MAX_TEXT = 65_536  # a request id, what a client tells of itself, data of a log message as text
MAX_PATTERN_CHARS = 10_000  # a text for a pattern, which may take the square of its length
MAX_URI_CHARS = 2048  # a URI for templates, counted as it is sent
MAX_ELEMENTS = 250_000  # members of arrays and objects in one message; about 50 MB when parsed
MAX_DEPTH = 128  # nesting of arrays and objects; human-made JSON stays below 20
MAX_DIGITS = 400  # of a number in a long message; a double has up to 309 before its point
MAX_STEPS = 1_500_000  # of one check by a schema; a step takes a microsecond
MAX_CLIENTS = 10_000  # connections, sessions, tokens, rates: a few KiB each
MAX_WAITING = 2500  # changes that wait for one reader: all that it may watch, at once
MAX_IN_FLIGHT = 1024  # requests of one peer that run at once; more wait for their turn
MAX_ITEMS = 1000  # of a list that a peer fills: a batch, subscriptions, updates
MAX_TASKS = 1000  # of all clients of a server
MAX_PAGES = 1000  # of a list
MAX_COMPLETIONS = 100  # spec: schema#completeresult
MAX_QUESTIONS = 100  # of one round
MAX_REPORTS = 100  # of progress that wait for a callback
MAX_LINES = 100  # on stderr that wait for the loop
TOOL_THREADS = 40  # worker threads for `def` handlers, as many as anyio grants
MAX_IDLE = 32  # connections to one server that a client keeps
MAX_ROUNDS = 16  # of one call
MAX_REDIRECTS = 5
MAX_RESUMES = 5  # of one stream, without an event between
MAX_ERRORS = 5  # reported of one value
LONGEST_SECONDS = 3600  # one request, even if it reports progress
STATE_SECONDS = 900.0  # a requestState is good: people take their time to answer
ASK_SECONDS = 600.0  # for the user's answer
KEYS_SECONDS = 600.0  # until the keys of an issuer are fetched anew
IDLE_SECONDS = 75.0  # for the next request of a connection, as nginx waits
REQUEST_SECONDS = 60.0  # for a response, or the next sign of progress; for a body
STALL_SECONDS = 30.0  # for a peer to take what we write; between two attempts, at most
TRUST_SECONDS = 60.0  # until a token that a Guard let in is judged again
CLOCK_SECONDS = 30.0  # by which the clock of an issuer may differ from ours
HEAD_SECONDS = 20.0  # for a request's head; for each document that a login fetches
KEEP_ALIVE_SECONDS = 15.0  # between comments on a quiet stream; proxies cut after 30 to 60
CONNECT_SECONDS = 10.0  # to reach a server
PROBE_SECONDS = 5.0  # for a first sign of a silent peer
GRACE_SECONDS = 2.0  # for running requests when the peer has gone, for a child to end
FAREWELL_SECONDS = 1.0  # for last words: responses, cancellations, what a child says
LOOK_SECONDS = 1.0  # between two looks at deadlines, or at the life of our parent
MOMENT_SECONDS = 0.2  # for what is written already to leave, or to be read
POLL_MS = 500  # between two looks at a task
RETRY_MS = 500  # until a reader opens its stream again
REPORT_RATE = (100, 1.0)  # of one request: reports of progress, log messages, in so many seconds
WARN_RATE = (10, 60.0)  # warnings about one peer in so many seconds; any message may deserve one


@dataclass_transform()
class Row:
    """A record, like a dataclass: a subclass annotates its fields; a class attribute is a default.

    Defining it is ten times as fast, and every import waits for that.
    """

    def __init__(self, *values: Any, **named: Any):
        own, names = vars(self), self.__annotations__
        if len(values) > len(names):
            raise TypeError(f"too many values for {type(self).__name__}: {values!r:.100}")
        own.update(zip(names, values), **named)
        if len(own) != len(names):  # the rest are defaults, or AttributeError
            own.update({name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(self) is type(other) else NotImplemented

    def replace(self, **changes: Any) -> Any:
        return type(self)(**{**vars(self), **changes})

# ======
# Part I. Messages
# ======

####
# 2. Errors
#
# Problem. When a call fails, the first question is whose fault it was.
# Rules.
#   1. The class says it. Our caller's: TypeError, ValueError, RuntimeError, as everywhere in
#      Python. The peer's program: RemoteError, or ToolError from a call. The peer's protocol:
#      ProtocolError. The line: ConnectionClosed, RequestTimeout. Our own: whatever else a handler
#      raises.
#   2. RPCError and RemoteError are siblings: an error from one server never leaves our own server
#      as if it were ours.
#   3. An error object on the wire has no traceback, and only texts that were raised for the peer.
#      Of a tool, the model reads every exception, unless `mask_errors`.

__all__ += [
    "MCPError", "RPCError", "RemoteError", "ToolError", "SchemaError", "ProtocolError",
    "LimitExceeded", "ConnectionClosed", "SessionExpired", "RequestTimeout", "CapabilityMissing",
    "Suspended", "AuthError", "CannotServe"
]

PARSE_ERROR = -32700  # not JSON
INVALID_REQUEST = -32600  # JSON, but not a message that is allowed here
METHOD_NOT_FOUND = -32601  # no such method, or the capability for it was not declared
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603  # the handler failed
RESOURCE_NOT_FOUND = -32002  # legacy only; modern revisions say INVALID_PARAMS
# spec: basic/index#error-codes -- of -32020 to -32099, only what it defines may be sent
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
RESERVED_CODES = range(-32099, -32022)  # the rest of them
# Ours, with HTTP's numbers: the token does not allow this; the client's rate limit is used up; too
# many requests are served.
FORBIDDEN, TOO_FAST, TOO_BUSY = 403, 429, 503


class MCPError(Exception):
    """The root of every error that this library raises on purpose."""

    code: int = INTERNAL_ERROR
    data: JSON = None


class WireError(MCPError):
    """An error object of JSON-RPC: {"code": code, "message": message, "data": data}."""

    def __init__(self, code: int, message: str, data: JSON = None):
        self.code, self.message, self.data = code, str(message), data
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class RPCError(WireError):
    """An error of ours for the peer: raise it in a handler and it is sent."""


class RemoteError(WireError):
    """The peer answered our request with this error."""


class ToolError(MCPError):
    """A tool failed: its result has `isError`.

    Raised by a tool, its text goes to the model. Raised by Client.call(), it has the whole `result`
    as the server sent it.
    """

    def __init__(self, message: str, result: Msg | None = None):
        super().__init__(message)
        self.result = result


class SchemaError(MCPError):
    """A JSON value does not satisfy its schema, or a schema cannot be used.

    `path` leads to the offending value: "items[2].price", or "" for the value itself. The text
    tells of `others`, too: further errors of the same value.
    """

    code = INVALID_PARAMS

    def __init__(
        self, path: str, message: str, expected: str = "", others: Sequence[SchemaError] = ()
    ):
        told = f"{path}: {message}" if path else message
        super().__init__("; ".join([told, *map(str, others)]))
        self.path, self.message, self.others = path, message, others
        self.expected = expected  #: the types or values that would fit, in words


class ProtocolError(MCPError):
    """Bytes or messages from the peer broke the rules.

    `code` and `http_status` are those of the response, where one is possible.
    """

    start = b""  #: the first bytes of the message, if that was too long to be read
    req_id: ReqId | None = None  #: of the request, where it could be read
    headers: Fields = {}  #: further ones of the HTTP response

    def __init__(
        self, message: str, code: int = INVALID_REQUEST, http_status: int = 400, data: JSON = None
    ):
        super().__init__(message)
        self.message, self.code, self.http_status, self.data = message, code, http_status, data


class LimitExceeded(ProtocolError):
    """A message, or something in it, is too big, too deep, or one too many."""


class HTTPError(ProtocolError):
    """A request is refused by this status; headers may say why, or what is allowed."""

    def __init__(self, message: str, status: int, headers: Fields = ProtocolError.headers):
        super().__init__(message, TOO_BUSY if status == 503 else INVALID_REQUEST, status)
        self.headers = headers


class ConnectionClosed(MCPError):
    """The connection ended; the message says why, with the child's last words if it was one."""


class SessionExpired(ConnectionClosed):
    """The server has forgotten our HTTP session; Client opens another one by itself, once."""


class RequestTimeout(MCPError):
    """We gave up waiting for a response, and notified the peer."""


class CapabilityMissing(MCPError):
    """The peer did not declare the capability that this needs, so it was not even asked.

    `capability` is a dotted path such as "sampling.tools". `why` replaces the usual text.
    """

    def __init__(self, whose: str, capability: str, why: str = ""):
        super().__init__(why or f"the {whose} did not declare the capability {capability!r}")
        self.capability = capability
        if whose == "client":
            # spec: basic/index#_meta -- "data.requiredCapabilities lists the missing capabilities"
            needed: Msg = {}
            for key in reversed(capability.split(".", 1)):  # a name may have dots
                needed = {key: needed}
            self.code, self.data = MISSING_CAPABILITY, {"requiredCapabilities": needed}


class Suspended(BaseException):
    """A question to the client ends this run of a handler; the client's answer begins the next one.

    It is not a failure: let it pass, as `try: ... finally: ...` does.
    """


class AuthError(MCPError):
    """The server wants authorization that we do not have."""


class CannotServe(MCPError, OSError):
    """Serving cannot begin: the port is taken, say, or a certificate is missing."""

    def __str__(self) -> str:
        return str(self.strerror)


#: The errors of a handler whose text the peer gets: other texts may tell of another peer.
FOR_THE_PEER = (RPCError, SchemaError, CapabilityMissing, ToolError)


def wire_error(exc: MCPError) -> Msg:
    """Return an error as JSON-RPC has it: {"code", "message", "data"?}."""
    problem = {"code": exc.code, "message": str(exc.args[0])}
    return problem if exc.data is None else {**problem, "data": exc.data}


def handler_error(what: str, exc: BaseException) -> MCPError:
    """Return the error that the peer gets for what a handler raised; log any other."""
    if isinstance(exc, FOR_THE_PEER) and isinstance(exc.code, int):
        return exc
    logger.error("%s failed", what, exc_info=exc)
    return MCPError("Internal error")

####
# 3. JSON-RPC
#
# Problem. Two programs exchange JSON objects: requests, responses and notifications. Any of them
#   may be malformed, enormous or hostile: `{"id": 1, "method": 5}`, 16 MB of "[".
# Rules.
#   1. A message is the JSON object itself, as a dict: every field survives, known or not.
#   2. classify() alone decides what a message is; only what it refuses is looked at again.
#   3. Size, depth and elements are counted before the parser runs: it would take memory.
# Limits. No NaN, no Infinity. Of a key that occurs twice in an object the last one counts.


REQUEST, NOTIFICATION, RESULT, ERROR = "request", "notification", "result", "error"


def notification(method: str, params: Msg | None = None) -> Msg:
    msg: Msg = {"jsonrpc": "2.0", "method": method}
    return msg if params is None else {**msg, "params": params}


def error(req_id: ReqId | None, exc: MCPError) -> Msg:
    """Return the response to a request that failed; without an id if that is not readable."""
    known = {} if req_id is None else {"id": req_id}
    return {"jsonrpc": "2.0", **known, "error": wire_error(exc)}


def is_id(value: JSON) -> bool:
    """Return whether `value` may be a request id (or a progress token)."""
    # a bool is an int to isinstance()
    return type(value) is int or (type(value) is str and len(value) < MAX_TEXT)


def classify(msg: JSON) -> str:
    """Return REQUEST, NOTIFICATION, RESULT or ERROR; raise ProtocolError for anything else.

    Afterwards `method` is a str, `params` (null and [] are dropped) and `result` are dicts, `id` is
    an id (of an error, perhaps None), and `error` has an int `code` and a str `message`.
    """
    if type(msg) is not dict or msg.get("jsonrpc") != "2.0":
        raise ProtocolError('a message must be a JSON object with "jsonrpc": "2.0"')
    if "method" in msg:
        if type(msg["method"]) is not str or "result" in msg or "error" in msg:
            raise ProtocolError("method must be a string; it excludes result and error")
        if "params" in msg and type(msg["params"]) is not dict:
            if msg["params"] not in (None, []):
                raise ProtocolError("params must be an object", code=INVALID_PARAMS)
            del msg["params"]
        # spec: basic/index#requests -- "Requests MUST include a string or integer ID", never null
        if "id" in msg and not is_id(msg["id"]):
            raise ProtocolError("id must be a string or an integer")
        return REQUEST if "id" in msg else NOTIFICATION
    answer, problem = msg.get("result"), msg.get("error")  # some write null for absent
    if (answer is None) == (problem is None):
        raise ProtocolError("a message must have a method, or either a result or an error")
    if problem is None:
        if not is_id(msg.get("id")) or type(answer) is not dict:
            raise ProtocolError("a result must be an object, and have the id of its request")
        return RESULT
    # spec: basic/index#error-responses -- an error may lack the id it could not read
    if (type(problem) is not dict or type(problem.get("code")) is not int
            or type(problem.get("message")) is not str
            or not (msg.get("id") is None or is_id(msg["id"]))):
        raise ProtocolError("an error must be an object with an integer code and a message, and "
                            "have the id of its request, if any")
    return ERROR


def readable_id(msg: JSON) -> ReqId | None:
    """Return the id of a request that classify() refused, if it can be read."""
    return msg["id"] if type(msg) is dict and "method" in msg and is_id(msg.get("id")) else None


def method_of(msg: JSON) -> Any:
    return msg.get("method", "") if isinstance(msg, dict) else ""


def encode(msg: Payload) -> bytes:
    """Return a message, or a batch, as one line of UTF-8 without its newline.

    Raises TypeError or ValueError for values that JSON cannot say, and LimitExceeded for a line
    of more bytes or elements than we would read. spec: basic/transports/stdio#sending-messages
    """
    # A lone surrogate has no UTF-8 form: it becomes "?".
    data = _to_json(msg).encode("utf-8", "replace")
    # This counts signs in strings, too; the exact count is slow.
    if len(data) > MAX_ELEMENTS and (
            len(data) > MAX_MESSAGE_BYTES or sum(map(data.count, b",[{")) > MAX_ELEMENTS):
        _check_bounds(data)
    return data


# JSONEncoder.encode() makes a C encoder for each call: that is a third of a short message.
_json_pieces = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, json.JSONEncoder().default, json.encoder.encode_basestring, None, ":", ",",
    False, False, False  # neither sorted keys, nor skipped ones, nor NaN
)


def _to_json(value: JSON) -> str:
    try:
        return "".join(_json_pieces(value, 0))
    except RecursionError:
        raise ValueError("it contains itself, or is nested too deep for JSON") from None
    except ValueError:  # which does not say what was wrong
        raise ValueError("JSON has no NaN, no Infinity and no integer of 4,300 digits: pass "
                         "None") from None


def _read_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text:.50} is not a number that can be read")
    return value


_read_json = json.JSONDecoder(parse_float=_read_float, parse_constant=_read_float).raw_decode


def decode(data: bytes) -> JSON:
    """Return the JSON value in `data`; raise LimitExceeded, or ProtocolError with code -32700."""
    # A program may colour its output, even after a byte order mark.
    if data.find(b"\x1b", 0, 4) >= 0:
        data = re.sub(rb"\x1b\[[\d;?]*[A-Za-z]", b"", data)
    _check_bounds(data)
    try:
        # JSONDecoder.decode() is slower: it strips blanks with two regular expressions.
        text = data.decode().strip(" \t\r\n\ufeff")
        value, end = _read_json(text)
        if end != len(text):
            raise ValueError(f"more follows after character {end}")
        return value
    except (ValueError, RecursionError) as exc:
        # RecursionError: MAX_DEPTH is checked, but the caller may be deep in its stack.
        raise ProtocolError(f"not JSON: {str(exc)[:200]}", code=PARSE_ERROR) from None


_ALL_BUT_BRACKETS = bytes({*range(256)} - {*b"[]{}"})


def _check_bounds(data: bytes) -> None:
    """Refuse a message that costs too much to parse."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise LimitExceeded(f"a message of {len(data)} bytes exceeds {MAX_MESSAGE_BYTES}")
    if len(data) <= MAX_ELEMENTS and data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return  # it is too short for so many elements, and has too few brackets to be so deep
    # What stands in strings does not count. Without escaped quotes, each second piece is a string.
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    most = 4 * MAX_ELEMENTS + 1  # pieces: an element has four quotes, of its key and its value
    pieces = unescaped.split(b'"', most)
    outside = b"".join(pieces[::2])
    brackets = outside.translate(None, _ALL_BUT_BRACKETS)
    # Before an element stands a comma, or an opening bracket.
    if len(pieces) > most or len(brackets) // 2 + outside.count(b",") > MAX_ELEMENTS:
        raise LimitExceeded(f"a message has more than {MAX_ELEMENTS} elements")
    if re.search(rb"(?<!\d)\d{%d}" % (MAX_DIGITS + 1), outside):
        raise LimitExceeded(f"a number has more than {MAX_DIGITS} digits")
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise LimitExceeded(f"a message is nested deeper than {MAX_DEPTH} levels")


_ID = rb'"id": ?(?P<id>0|-?[1-9][0-9]{0,18}|"[-.:\w]{0,200}")'


def guess_message(data: bytes) -> Msg | None:
    """Guess the id and the kind of a message that decode() refuses: a request then fails at once.
    The official SDKs write the id just before the kind, or last.

    >>> guess_message(b'{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}')
    {'id': 7, 'result': None}
    """
    start = re.match(rb'\{(?:"jsonrpc": ?"2\.0", ?%b, ?)?"(?P<kind>method|result|error)"'
                     % _ID, data)
    if not start:
        return None
    found = start if start["id"] else re.search(rb", ?%b\}\s*$" % _ID, data)
    return {"id": json.loads(found["id"]), start["kind"].decode(): None} if found else None


KINDS = {dict: "object", list: "array", str: "string", int: "integer", float: "number",
         bool: "boolean", type(None): "null"}


def kind_of(value: Any) -> str:
    """Return the narrowest JSON type of `value`; "unknown" for what JSON does not have.

    >>> kind_of(2.0), kind_of(2.5), kind_of(True), kind_of(b"")
    ('integer', 'number', 'boolean', 'unknown')
    """
    kind = KINDS.get(type(value))
    if kind is None:
        kind = next((KINDS[base] for base in type(value).__mro__ if base in KINDS), "unknown")
    # JSON Schema 2020-12, core §6.3: "Mathematical Integers"
    return "integer" if kind == "number" and value.is_integer() else kind


def object_of(value: Msg, key: str) -> Msg:
    """Return a member that is an object, or {}."""
    member = value.get(key)
    return member if isinstance(member, dict) else {}


def as_list(value: Any) -> list[Any]:
    return [*value] if isinstance(value, (list, tuple)) else [value]


def as_texts(value: Names) -> list[str]:
    """Return one text, or several, as a list."""
    return [value] if isinstance(value, str) else [*value]


def strings(value: JSON) -> list[str]:
    """Return the strings in a list; some peers send one without a list."""
    return [item for item in as_list(value) if isinstance(item, str)]


def show_json(value: Any) -> str:
    """Return `value` for a message: short, as JSON; a container by its type only."""
    if isinstance(value, (list, dict)):
        return kind_of(value)
    value = value[:50] if isinstance(value, str) else value
    return json.dumps(value, ensure_ascii=False, default=kind_of)[:60]

####
# 4. Revisions and methods
#
# Problem. A peer may speak any of five revisions: one has batches, one has no `elicitation/create`
#   yet, and one answers a missing resource with another code.
# Rules.
#   1. A revision is its date, a string: a later one is greater. What a date means has a name here,
#      and no other section names a date.
#   2. A method is one row of METHODS. A method that a revision does not have is refused.
#   3. Fields that an older peer does not know are sent to it, for its schemas are open. Content of
#      a type that it does not know would break it, and becomes text.

V24_11, V25_03, V25_06, V25_11, V26_07 = REVISIONS = (
    "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
)
SUPPORTED = [*reversed(REVISIONS)]  # newest first
NEWEST = MODERN = V26_07  # MODERN: the first of its era
LEGACY = SUPPORTED[1:]  # those with a handshake
NEWEST_LEGACY = V25_11
BATCHES = V25_03  # the only one with JSON-RPC batches (spec 2025-03-26: basic/index#batching)
COMPLETIONS = V25_03  # the first with a capability for completions
HEADERLESS = V25_03  # that of an HTTP request that names none
#: The first one with elicitation by URL and titled choices, sampling with tools, every type of
#: content, wrong arguments as results for the model, and SSE streams that can be polled.
RICH = V25_11

# Sender, revisions (a key of _ERAS), method, capability or "-", parameters ("?": may be absent),
# and words about its result: see Method.
# A legacy server sends roots/list, sampling/createMessage and elicitation/create as requests; a
# modern one puts them as questions into the result of a call.
_METHODS = """
client legacy initialize  -  protocolVersion:string capabilities:object clientInfo:object
client legacy notifications/initialized  -
both   legacy ping  -
client modern server/discover  -  cacheable
both   all    notifications/cancelled  -
both   all    notifications/progress  -
client all    tools/list  tools  cursor?:string cacheable tools[name]
client all    tools/call  tools  name:string arguments?:object may_ask
server all    notifications/tools/list_changed  tools.listChanged
client all    resources/list  resources  cursor?:string cacheable resources[uri]
client all    resources/templates/list  resources  cursor?:string \
       cacheable resourceTemplates[uriTemplate]
client all    resources/read  resources  uri:string may_ask cacheable
server all    notifications/resources/list_changed  resources.listChanged
client legacy resources/subscribe  resources.subscribe  uri:string
client legacy resources/unsubscribe  resources.subscribe  uri:string
server all    notifications/resources/updated  resources.subscribe
client all    prompts/list  prompts  cursor?:string cacheable prompts[name]
client all    prompts/get  prompts  name:string arguments?:object may_ask
server all    notifications/prompts/list_changed  prompts.listChanged
client all    completion/complete  completions  ref:object argument:object context?:object
client legacy logging/setLevel  logging  level:string
server all    notifications/message  logging
client modern subscriptions/listen  -  notifications:object
server modern notifications/subscriptions/acknowledged  -
server all    roots/list  roots
client legacy notifications/roots/list_changed  roots
server all    sampling/createMessage  sampling  messages:array maxTokens:integer
server forms  elicitation/create  elicitation  message:string
server pages  notifications/elicitation/complete  elicitation
client modern tasks/get  -  taskId:string
client modern tasks/update  -  taskId:string inputResponses:object
client modern tasks/cancel  -  taskId:string
server modern notifications/tasks  extensions
"""
_ERAS = {"all": REVISIONS, "legacy": LEGACY, "modern": (MODERN,), "forms": REVISIONS[2:],
         "pages": (V25_11,)}


class Method:
    """A row of _METHODS."""

    def __init__(self, line: str):
        self.sender, era, self.name, capability, *words = line.split()
        self.revisions: Sequence[str] = _ERAS[era]
        #: what a request's receiver, or a notification's sender, must declare: a dotted path
        self.capability = capability.strip("-")
        #: the result may be a question to the client (spec: basic/patterns/mrtr)
        self.may_ask = "may_ask" in words
        if self.may_ask:
            line += " inputResponses?:object requestState?:string"
        # name, JSON type, and whether it must be there
        takes = re.findall(r"([^\s?]+)(\??):(\w+)", line)
        self.takes = [(name, kind, not optional) for name, optional, kind in takes]
        #: the result says how long it may be kept (spec: server/utilities/caching)
        self.cacheable = "cacheable" in words
        #: the member of the result that is a list, and a string that each of its objects must have
        self.lists = re.findall(r"(\w+)\[(\w+)\]", line)
        #: the parameter that names the tool, URI or task; the HTTP header `mcp-name` repeats it
        #: (spec: basic/transports/streamable-http#standard-request-headers)
        self.mirrors: Any = next((name for name, *_ in self.takes
                                  if name in ("name", "uri", "taskId") and era != "legacy"), None)


METHODS = {row.name: row for row in map(Method, _METHODS.strip().splitlines())}
CUSTOM = Method("both all custom -")  # for methods that are not of the protocol

#: The types of content that came after the first revision, and with which one.
CONTENT = {"audio": V25_03, "resource_link": V25_06, "tool_use": V25_11, "tool_result": V25_11}


def check_params(row: Method, params: Msg) -> None:
    for name, kind, required in row.takes:
        value = params.get(name)
        if value is None and not required:
            params.pop(name, None)  # some write null for absent
        elif kind_of(value) != kind:
            found = kind_of(value) if name in params else "nothing"
            raise RPCError(INVALID_PARAMS, f"{row.name}: {name}: expected {kind}, got {found}")


def declares(capabilities: Msg, path: str) -> bool:
    """Return whether `capabilities` declares the dotted `path`: {} does, false does not. An empty
    path is declared by all."""
    node: JSON = capabilities
    for key in filter(None, path.split(".", 1)):  # the name of an extension has dots
        node = node.get(key) if isinstance(node, dict) else None
    return node is not None and node is not False


def without(obj: Mapping[str, Any], *names: str) -> Msg:
    return {key: value for key, value in obj.items() if key not in names}


def adapt_content(block: Msg, rev: str) -> Msg:
    if CONTENT.get(block.get("type", ""), "") <= rev:
        return block
    return {"type": "text", "text": text_of(block)}


def text_of(block: Msg) -> str:
    """Return what a content block says, for a reader that only understands text."""
    kind = block.get("type")
    if kind == "resource_link":
        return f"{block.get('title') or block.get('name')}: {block.get('uri')}"
    held = object_of(block, "resource") or block
    if "text" in held:
        return str(held["text"])
    data = held.get("blob", held.get("data"))
    if data is None:  # the call of a tool, or its result
        return _to_json(block)
    return (f"[{held.get('uri') or kind}, {held.get('mimeType')}, "
            f"{len(str(data))} characters of base64]")


def adapt_message(message: Msg, rev: str) -> Msg:
    """Return a message of a prompt or of sampling as `rev` knows it: older ones take one block."""
    blocks = [adapt_content(block, rev) for block in as_list(message["content"])]
    if len(blocks) != 1 and rev < RICH:
        blocks = [{"type": "text", "text": "\n".join(map(text_of, blocks))}]
    return {**message, "content": blocks[0] if len(blocks) == 1 else blocks}


def adapt_code(code: int, rev: str) -> int:
    if rev < MODERN:
        return code
    if code == RESOURCE_NOT_FOUND:
        return INVALID_PARAMS
    return INTERNAL_ERROR if code in RESERVED_CODES else code


def is_modern(params: Msg) -> bool:
    """Return whether a request carries its own metadata."""
    return PROTOCOL_VERSION in object_of(params, "_meta")

# ======
# Part II. One conversation
# ======

####
# 5. Requests in flight
#
# Problem. A request of the peer lives from its arrival until its response is written, or until the
#   peer cancels it. The peer may send too many.
# Rule. A request is over when its response begins to be written, or when it is cancelled. Nothing
#   else is sent for it then: who cancelled it has forgotten its id.


class Caller:
    """The sender of a message: NOBODY on a pipe; over HTTP, the request that brought it."""

    def __init__(self, headers: Fields = MappingProxyType({}), address: str = ""):
        self.headers = headers  #: of the request, names in lower case
        self.principal: Any = None  #: who was authenticated
        #: a key that stays the same for a principal: sessions, tasks and questions are bound to it
        self.owner = ""
        self.address = address  #: in the network


NOBODY = Caller()


class Exchange:
    """One request of the peer."""

    def __init__(self, conversation: Any, msg: Msg, send: Send, caller: Caller):
        self.conversation = conversation  #: our Peer, which serves it
        self.msg, self.send, self.caller = msg, send, caller
        self.req_id: ReqId = msg["id"]
        self.method: str = msg["method"]
        self.row = METHODS.get(self.method, CUSTOM)
        self.params: Msg = msg.get("params") or {}
        self.key: Any = object() if conversation.many_clients else self.req_id  # in Peer.incoming
        #: whose share it takes: its owner's, or that of its address
        self.client_key = caller.owner or caller.address
        self.over = False  #: whether it is answered or cancelled
        self.size = 0  #: bytes that it holds, as Peer.loads counts them
        self.facts: Any = None  #: its Facts (see Lifecycle), once they are checked
        self.task: Any = None  #: that of Peer.reply()

    def cancel(self) -> None:
        """Stop serving it, unless its response is on its way."""
        if not self.over:
            self.over = True
            if self.task:
                self.task.cancel()

    @property
    def meta(self) -> Msg:
        """The `_meta` of the parameters, or {}."""
        return object_of(self.params, "_meta")

    @property
    def title(self) -> str:
        """The method, and the name of its tool, prompt or resource: "tools/call of 'add'"."""
        name = self.params.get(self.row.mirrors)
        method = f"{self.method!r:.200}".strip("'")  # one that is not ours may be any text
        return method if name is None else f"{method} of {repr(name)[:200]}"


class RateLimit:
    """So many calls in so many seconds for each key, saved up when unused."""

    def __init__(self, calls: float, seconds: float):
        self.calls, self.seconds = calls, seconds
        #: calls used, and when that was so; silent for longest first
        self.used: dict[str, tuple[float, float]] = {}

    def take(self, key: str = "") -> bool:
        """Use one call; return False if none is left."""
        now = time.monotonic()
        used, since = self.used.pop(key, (0.0, now))
        used = max(0.0, used - (now - since) * self.calls / self.seconds)
        allowed = used + 1 <= self.calls
        self.used[key] = used + allowed, now
        if len(self.used) > MAX_CLIENTS:
            del self.used[next(iter(self.used))]
        return allowed

####
# 6. Lifecycle
#
# Problem. The two ends must agree on a revision, and on what each can do. The legacy revisions do
#   so once, with a handshake that opens a session; the modern one in every request.
# Rules.
#   1. A legacy session is at its START until `initialize` was answered. Then it is AGREED, and
#      READY when the client has said so.
#   2. A server answers `initialize` with the revision that was asked for, or with its newest legacy
#      one: the client decides whether to go on.
#   3. We ask a peer only for what it has declared.
#   4. A handler gets Facts, of a session or of the request itself.

#: The severities of RFC 5424, mildest first.
LOG_LEVELS = "debug info notice warning error critical alert emergency".split()


def check_level(level: str) -> None:
    if level not in LOG_LEVELS:
        raise ValueError(f"{level!r} is not a log level; available: {', '.join(LOG_LEVELS)}")


class Facts:
    """The facts on which a request may rely."""

    def __init__(self, rev: str, client_info: Msg, client_capabilities: Msg, log_level: str | None):
        self.rev, self.client_info = rev, client_info
        self.client_capabilities = client_capabilities
        self.log_level = log_level  #: the mildest severity to send, or None for silence


# DONE: closed by us, a client. spec 2025-11-25: basic/lifecycle
START, AGREED, READY, DONE = "start", "agreed", "ready", "done"


class Session(Facts):
    """The facts of a legacy conversation; of a modern one, only its revision."""

    subscriptions: frozenset[str] = frozenset()  #: URIs that the client watches

    def __init__(self) -> None:
        # spec 2025-11-25: schema#loggingmessagenotification -- else "the server MAY decide"
        super().__init__(NEWEST_LEGACY, {}, {}, "info")
        self.state = START
        self.server_capabilities: Msg = {}

    def resume(self, rev: str) -> None:
        """Be READY in this revision."""
        self.state, self.rev = READY, rev


def check_capability(whose: str, capabilities: Msg, path: str) -> None:
    if not declares(capabilities, path):
        raise CapabilityMissing(whose, path)


def admit(
    method: str, sender: str, rev: str, capabilities: Msg, custom: Iterable[str] = ()
) -> None:
    """Raise RPCError -32601 unless `sender` ("client" or "server") may call this method on us.

    `capabilities` are those that we declared. The author's `custom` methods are open to all.
    """
    row = METHODS.get(method)
    if row is None or method.startswith("notifications/"):
        if method in custom:
            return
        problem = f"unknown method: {method}"
    elif rev not in row.revisions:
        # spec: basic/versioning#backward-compatibility-with-initialization-based-versions
        ours = f"; this server speaks {', '.join(SUPPORTED)}" if method == "initialize" else ""
        problem = f"{method} does not exist in revision {rev}{ours}"
    elif row.sender not in (sender, "both"):
        problem = f"a {sender} cannot call {method}"
    elif not declares(capabilities, row.capability):
        problem = f"{method}: the capability {row.capability!r} was not declared"
    else:
        return
    raise RPCError(METHOD_NOT_FOUND, problem)


#: What the `_meta` of a modern request has, checked like the parameters of a method.
METADATA = Method(
    f"client modern _meta - {PROTOCOL_VERSION}:string {CLIENT_CAPABILITIES}:object "
    f"{CLIENT_INFO}?:object"
)


def read_metadata(msg: Msg) -> Facts:
    """Return the facts in the `_meta` of a modern request; RPCError -32602 if some are missing.

    check_version() follows: over HTTP the headers are compared in between.
    spec: basic/index#_meta -- "A request missing any required field is malformed"
    """
    meta = object_of(msg.get("params") or {}, "_meta")
    check_params(METADATA, meta)
    level = meta.get(LOG_LEVEL)
    if level not in (None, *LOG_LEVELS):
        raise RPCError(INVALID_PARAMS, f"_meta: {LOG_LEVEL}: not one of {', '.join(LOG_LEVELS)}")
    return Facts(meta[PROTOCOL_VERSION], meta.get(CLIENT_INFO, {}), meta[CLIENT_CAPABILITIES],
                 level)


def check_version(facts: Facts) -> Facts:
    """Return the facts; RPCError -32022 unless their revision is modern."""
    # spec: basic/versioning#protocol-version-negotiation
    if facts.rev not in METADATA.revisions:
        raise RPCError(UNSUPPORTED_VERSION, "Unsupported protocol version",
                       {"supported": SUPPORTED, "requested": facts.rev})
    return facts

####
# 7. Tasks and threads
#
# Problem. A task that nobody owns is lost when it fails, and left behind when we stop. A function
#   that blocks must stop neither the loop nor the end of the process.
# Rules.
#   1. Every task has an owner, which ends it: a Tasks, or the function that awaits it.
#   2. CancelledError is caught only to clean up, and raised again. Two classes make an error of it:
#      Deadline, if it cancelled the task, and Peer, if a handler awaited what somebody cancelled.
#      Python 3.9 has no TaskGroup and no timeout(): hence Tasks and Deadline.
#   3. Worker threads are daemons: those of concurrent.futures are joined at exit, and Ctrl-C would
#      wait for a tool that sleeps.
#   4. A thread that waits for what may need another thread is not counted.
# Limits. All callers share the threads: 40 calls of one that sleep delay the others.

_EAGER: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
_COUNTED = sys.version_info >= (3, 11)  # whether a task counts its cancellations
NEVER = float("inf")  # the time of what has no deadline


def nothing(*_: Any) -> Any:
    """Do nothing."""


class Deadline:
    """`async with Deadline(5, problem)` raises `problem` if its body takes more than 5 seconds.

    renew() begins the 5 seconds anew, until `longest` have passed in all. If paused() is true when
    the 5 are over, they begin anew by themselves.
    """

    late = False  # whether the time ran out, and the body was cancelled

    def __init__(
        self, seconds: float, problem: Any = RequestTimeout, longest: float = 0,
        paused: Action = nothing
    ):
        self.seconds, self.problem, self.paused = seconds, problem, paused
        self.loop = get_running_loop()
        self.last = self.loop.time() + max(seconds, longest)
        self.task: Any = asyncio.current_task()
        self.timer: Any = None

    async def __aenter__(self) -> Deadline:
        self.others = self.task.cancelling() if _COUNTED else 0  # cancellations, not ours
        self.renew()
        return self

    def renew(self) -> None:
        if self.timer:
            self.timer.cancel()
        seconds = max(min(self.seconds, self.last - self.loop.time()), 0)  # Pyodide refuses less
        self.timer = self.loop.call_later(seconds, self.expire)

    def expire(self) -> None:
        if self.paused() and self.loop.time() < self.last:
            self.renew()
        else:
            self.late = True
            self.task.cancel()

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        self.timer.cancel()
        if self.late:
            others = self.task.uncancel() if _COUNTED else 0  # more, if they cancelled it since
            if kind is asyncio.CancelledError and others <= self.others:
                raise self.problem from None


T = TypeVar("T")


async def within(seconds: float, work: Awaitable[T], problem: Any = RequestTimeout) -> T:
    async with Deadline(seconds, problem):
        return await work


async def poll(busy: Action, seconds: float) -> None:
    """Wait while busy(), for so long at most."""
    until = time.monotonic() + seconds
    while busy() and time.monotonic() < until:
        await asyncio.sleep(0.01)


async def maybe_await(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def call_on(loop: Any, fn: Function, *args: Any) -> None:
    """Call fn(*args) on a loop: at once if that is the running one; never if it has ended."""
    if asyncio._get_running_loop() is loop:
        fn(*args)
    else:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(fn, *args)


def settle_future(future: Future, value: Any = None, exc: BaseException | None = None) -> None:
    if future.done():
        return
    if exc is None:
        future.set_result(value)
    elif isinstance(exc, (StopIteration, GeneratorExit, SystemExit, KeyboardInterrupt)):
        # A future cannot carry StopIteration; GeneratorExit would close the coroutines that wait;
        # the other two would end the loop.
        future.set_exception(RuntimeError(f"{type(exc).__name__} was raised: {exc}"))
    else:
        future.set_exception(exc)


class Tasks:
    """The owner of tasks: it logs their failures, and can end them all."""

    def __init__(self) -> None:
        self.running: set[Task] = set()

    def spawn(self, coro: Any) -> Task:
        """Run a coroutine as a task; from Python 3.12 on, at once."""
        task = asyncio.Task(coro, loop=get_running_loop(), **_EAGER)
        if task.done():
            self._report(task)
        else:
            self.running.add(task)
            task.add_done_callback(self._report)
        return task

    def _report(self, task: Task) -> None:
        self.running.discard(task)
        exc = None if task.cancelled() else task.exception()
        if exc is not None and not isinstance(exc, MCPError):  # those are the other end's
            logger.error("a background task failed", exc_info=exc)

    async def drain(self, seconds: float | None) -> None:
        """Wait until all tasks, and those that they spawn, have ended; None is for ever."""
        with suppress(RequestTimeout):
            async with Deadline(NEVER if seconds is None else seconds):
                while waiting := self.running - {asyncio.current_task()}:
                    await asyncio.wait(waiting)

    async def close(self) -> None:
        """Cancel all tasks, and those that they still spawn; report those that will not go."""
        while waiting := self.running - {asyncio.current_task()}:
            for task in waiting:
                task.cancel()
            _, stubborn = await asyncio.wait(waiting, timeout=GRACE_SECONDS)
            if stubborn:
                logger.warning("%d tasks ignore their cancellation: %r", len(stubborn),
                               next(iter(stubborn)))
                return


class Threads:
    """A bounded pool of daemon threads for functions that block.

    A call that is cancelled before it has a thread is dropped; one that runs goes on.
    """

    def __init__(self, limit: int):
        import queue

        self.threads = 0
        self.jobs = 0  # that wait or run
        self.limit = limit  # see rule 4
        self.ceiling = limit + 10 * TOOL_THREADS  # even if many are blocked
        self.lock = threading.Lock()
        self.queue: Any = queue.SimpleQueue()

    def run(self, fn: Function, *args: Any) -> Future:
        """Return a future of what fn(*args) returns in a thread, with our context variables; raise
        RuntimeError if there is no thread, and none can start."""
        future = get_running_loop().create_future()
        call = partial(contextvars.copy_context().run, fn, *args)
        with self.lock:
            self._grow(self.jobs + 1)
            self.jobs += 1
            self.queue.put((future, call))
        return future

    def _grow(self, jobs: int) -> None:
        """Start a thread, unless there are enough for so many jobs, or too many."""
        if self.threads >= min(jobs, self.limit, self.ceiling):
            return
        try:
            threading.Thread(None, self._work, "mcp_lite", daemon=True).start()
            self.threads += 1
        except RuntimeError:  # the system has no more: the job waits for one of ours
            if not self.threads:
                raise

    def _work(self) -> None:
        for future, call in iter(self.queue.get, None):
            value = exc = None
            try:
                value = None if future.cancelled() else call()
            except BaseException as raised:  # the caller decides what to do about it
                exc = raised
            with self.lock:  # before the caller can give us the next job
                self.jobs -= 1
            call_on(future.get_loop(), settle_future, future, value, exc)
            # An idle thread would keep them alive.
            future = call = value = exc = None

    @contextmanager
    def blocked(self, count: int) -> Generator[None, None, None]:
        """Let so many other threads work while this one waits for the loop."""
        with self.lock:
            self.limit += count
            self._grow(self.jobs)
        try:
            yield
        finally:
            with self.lock:
                self.limit -= count
                self.shrink(self.limit)

    def shrink(self, most: int) -> None:
        """Let all threads but so many end, once the jobs that wait now are done."""
        while self.threads > most:
            self.queue.put(None)
            self.threads -= 1

    async def close(self, seconds: float) -> None:
        """Wait for all jobs to end, and let the idle threads end."""
        await poll(lambda: self.jobs, seconds)
        with self.lock:
            self.shrink(self.jobs)


def watchdog(seconds: float, status: int = 1) -> threading.Timer:
    """Return a timer that ends the process, for handlers that ignore their cancellation."""

    def end() -> None:
        logger.error("a handler did not end in time: the process ends without waiting for it")
        os._exit(status)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer

####
# 8. Channels
#
# Problem. A conversation needs a channel: a pipe, HTTP, memory. Much may be said at once to a
#   reader who is slow: 10,000 changes of one resource, say.
# Rules.
#   1. A Transport carries messages and does not interpret them. What little HTTP has to know
#      arrives by agreed(), abandon(), learn_tool().
#   2. Announcements that wait for a reader are bounded in number, and one replaces another about
#      the same. A reader for whom too many wait is disconnected: if it missed one, its list would
#      be stale.

__all__ += ["Transport", "memory_transports"]


async def nowhere(msg: Payload) -> None:
    """Send nothing."""


class Transport:
    """A channel for one conversation. To bring your own, subclass it: write read() and write().

    An end is used from one event loop, by one reader and any number of writers.
    """

    name = "peer"  #: what to call the other end in messages
    reason = "closed the connection"  #: what explain() says, unless a channel knows more
    ended_here = False  #: whether we stopped reading: the other end still reads
    #: seconds that running requests get when the channel has ended; None for as long as it takes
    grace: float | None = GRACE_SECONDS
    outlives_server = False  #: whether it goes on when the server is started again
    waits_for_user = 0  #: how many wait for the user: above 0, no request is given up
    # A channel calls these two, which the Peer and the Client set.
    failed: Callable[[ReqId, MCPError], None] = nothing  #: when a request cannot be answered
    #: when announcements may have been missed; True: the session has gone, too
    interrupted: Callable[[bool], Any] = nothing
    inbox: Inbox
    _closing: Future | None = None

    async def open(self) -> None:
        """Connect; raise ConnectionClosed with the reason if that fails."""

    async def read(self) -> list[Any]:
        """Return the next messages, encoded, or a ProtocolError for one that could not be read;
        return [] when the channel has ended. This one reads from `inbox`."""
        return await self.inbox.take()

    async def write(self, msg: Payload) -> None:
        """Send a message or a batch; wait while the other end is slow.

        Raises ConnectionClosed if the channel has ended, TypeError or ValueError for a message
        that JSON cannot say.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """End the channel, completely even if the caller is cancelled; may be called again."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._end())
        await asyncio.shield(self._closing)

    async def _end(self) -> None:
        """Do what it takes to end the channel."""

    def abandon(self, req_id: ReqId) -> bool:
        """Hear that an answer is not wanted; return True if the channel itself tells the server, as
        modern HTTP does by closing the connection of the request."""
        return False

    def agreed(self, rev: str | None) -> None:
        """Learn the revision of the conversation; None before a new handshake."""

    def learn_tool(self, tool: Msg) -> None:
        """Learn a tool of a modern server; raise SchemaError if this channel cannot call it."""

    def explain(self) -> str:
        """Return why the channel ended, as the end of a sentence."""
        return self.reason

    def hint(self) -> str:
        """Return what may be wrong while a response is missing: "; it ...", or an empty string."""
        return ""


#: The request that is being served. A MemoryTransport writes on behalf of its caller.
CURRENT = contextvars.ContextVar["Context"]("mcp_lite.context")


class MemoryMessage(bytes):
    caller: Caller  # on whose behalf it was written


class Inbox:
    """Messages that wait for one reader. Writers, of any thread, wait for room."""

    def __init__(self) -> None:
        self.closed = False
        self.items: deque[Any] = deque()
        self.sleepers: deque[Future] = deque()  # of those who wait for an item, or for room

    async def take(self) -> list[Any]:
        """Wait for messages, and return all that are there; [] once the inbox is closed."""
        if self.items:  # a fast writer in another thread must not stop the loop
            await asyncio.sleep(0)
        await self._sleep_until(lambda: self.items or self.closed)
        items = [self.items.popleft() for _ in range(len(self.items))]
        self._wake()
        return items

    async def put(self, item: Any) -> bool:
        """Add a message when there is room; return False if the inbox is closed."""
        await self._sleep_until(lambda: len(self.items) < MAX_ITEMS or self.closed)
        if not self.closed:
            self.items.append(item)
            self._wake()
        return not self.closed

    def close(self) -> None:
        """Take no more messages; those that are there can still be read."""
        self.closed = True
        self._wake()

    async def _sleep_until(self, ready: Action) -> None:
        while not ready():
            future = get_running_loop().create_future()
            self.sleepers.append(future)
            if not ready():  # the other end, in its thread, may have woken all just before
                await future

    def _wake(self) -> None:
        while self.sleepers:
            with suppress(IndexError):  # another thread has taken it
                future = self.sleepers.popleft()
                call_on(future.get_loop(), settle_future, future)


class MemoryTransport(Transport):
    """One end of a pair in memory. Messages are encoded, as on any wire."""

    name = "the in-memory peer"

    def __init__(self, ours: Inbox, theirs: Inbox):
        self.inbox, self.theirs = ours, theirs

    async def write(self, msg: Payload) -> None:
        message = MemoryMessage(encode(msg))
        message.caller = getattr(CURRENT.get(None), "caller", NOBODY)
        if not await self.theirs.put(message):
            raise ConnectionClosed(f"{self.name} {self.explain()}")

    async def close(self) -> None:
        self.inbox.close()
        self.theirs.close()


def memory_transports() -> tuple[Transport, Transport]:
    """Return the two ends of a channel in memory; they may be used in two threads."""
    ours, theirs = Inbox(), Inbox()
    return MemoryTransport(ours, theirs), MemoryTransport(theirs, ours)


def subject_of(msg: Msg) -> tuple[str, str | None]:
    """Return the method of an announcement, and the URI or the id of a task."""
    params = msg.get("params", {})
    return msg["method"], params.get("uri", params.get("taskId"))


class Outbox:
    """Announcements on their way to one reader; `too_slow` is called if too many wait."""

    def __init__(self, spawn: Function, too_slow: Action):
        self.spawn, self.too_slow = spawn, too_slow
        self.send: Send | None = None  # once the reader is ready
        self.sending = self.closed = False  # whether a task sends; whether nothing more is taken
        self.waiting: dict[Any, Msg] = {}  # by subject

    def put(self, msg: Msg) -> None:
        if self.closed:
            return
        self.waiting[subject_of(msg)] = msg
        if len(self.waiting) > MAX_WAITING:
            self.close()
            self.too_slow()
        elif self.send:
            self.open(self.send)

    def open(self, send: Send) -> None:
        """Send what waits, and what comes later: the reader is ready."""
        self.send = send
        if self.waiting and not self.sending:
            self.sending = True
            self.spawn(self._deliver(send))

    async def _deliver(self, send: Send) -> None:
        try:
            while self.waiting:
                await send(self.waiting.pop(next(iter(self.waiting))))
            self.sending = False
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.closed = True
        self.waiting.clear()

####
# 9. Peer
#
# Problem. Both ends of a conversation request, respond and cancel at the same time, and each may
#   time out, or lose its caller or the channel. A client may send 5,000 calls and read nothing.
# Rules.
#   1. `send`, the way back, comes with each message. On a pipe it is the same for all; over HTTP it
#      is the response to the POST that brought it.
#   2. A request is one task until its response is written. A full server reads on and queues
#      requests; it stops reading when its responses are not read.
#   3. Whatever a handler raises is the response to its request, and harms nothing else.
#   4. A request of ours that is given up is cancelled at the peer.
# Limits. Requests of one client that would take more than 64 MiB are refused. If a client has to
#   call a full server before it can answer that server's question, both wait.

#: Sees every message: trace(direction, peer's name, message), ">" for what we send, "<" for what we
#: receive. The message is decoded JSON, an exception if it could not be read, or an HTTPHead.
Trace = Callable[[str, str, JSON], None]
_trace: Trace | None = None

#: What a channel raises for a message that cannot be sent as it is.
ENCODE_ERRORS = (TypeError, ValueError, RecursionError, LimitExceeded)


def set_trace(trace: Trace | None) -> None:
    global _trace
    _trace = trace


def own_id(req_id: JSON) -> Any:
    """Return an id of ours: a peer may write "1" for 1, but not true, which equals 1."""
    if isinstance(req_id, str) and re.fullmatch(r"\d{1,18}", req_id):
        return int(req_id)
    return req_id if is_id(req_id) else None


class PendingRequest:
    """One request of ours that has no answer yet."""

    def __init__(self, method: str, deadline: Deadline, on_progress: Function | None):
        self.method, self.deadline, self.on_progress = method, deadline, on_progress
        self.send: Any = None  #: where a cancellation goes, once the request is sent
        #: a result, or an error as a value: Python logs exceptions that nobody awaits
        self.answer: asyncio.Future[Msg | MCPError] = deadline.loop.create_future()
        self.progress = float("-inf")
        #: callbacks that still run: they end before the result is returned
        self.reports: set[Any] = set()


class Requester:
    """The half of a Peer that sends requests."""

    def __init__(self, name: str):
        self.name, self.tasks = name, Tasks()
        self.lost: ConnectionClosed | None = None  #: why nothing more can be sent
        self.transport = Transport()  # until run() gets the one that is used
        self.loop: Any = None  # that of run()
        self.pending: dict[ReqId, PendingRequest] = {}
        self.ids = itertools.count(1)
        self.warnings = RateLimit(*WARN_RATE)

    async def ask(
        self, method: str, params: Msg, send: Send, *, patience: float = REQUEST_SECONDS,
        longest: float = LONGEST_SECONDS, on_progress: Function | None = None
    ) -> Msg:
        """Send a request and return its result.

        `patience` seconds begin again with each progress, until `longest` have passed in all.
        Raises RemoteError, RequestTimeout or ConnectionClosed.
        """
        if self.lost:
            raise ConnectionClosed(str(self.lost))
        if self.loop not in (None, get_running_loop()):
            raise RuntimeError(f"the connection to {self.name} belongs to another event loop, or "
                               "thread: use it where it was opened")
        req_id = next(self.ids)
        # Progress renews the deadline, so every request asks for it.
        meta = {**params.get("_meta", {}), "progressToken": req_id}
        deadline = Deadline(patience, RequestTimeout(), longest,
                            lambda: self.transport.waits_for_user)
        pending = self.pending[req_id] = PendingRequest(method, deadline, on_progress)
        try:
            async with deadline:  # which holds for a peer that has stopped reading, too
                if type(self.transport) is Transport:  # over HTTP, send() writes before it waits
                    pending.send = send
                await send({"jsonrpc": "2.0", "id": req_id, "method": method,
                            "params": {**params, "_meta": meta}})
                pending.send = send  # not before: no cancellation overtakes its request
                answer = await pending.answer
            if pending.reports:
                await asyncio.wait(pending.reports, timeout=patience)
        except asyncio.CancelledError:
            self._give_up(req_id, "the caller was cancelled")
            raise
        except RequestTimeout:
            self._give_up(req_id, "timeout")
            self.pending.pop(req_id, None)  # no progress counts any more
            await asyncio.sleep(0)  # so that it is sent before what the caller sends next
            if longest >= patience and deadline.loop.time() > deadline.last - 0.01:  # in all
                raise self.late(f"answer {method}", longest, "max_timeout") from None
            raise self.late(f"answer {method}", patience) from None
        finally:
            self.pending.pop(req_id, None)
        if isinstance(answer, MCPError):
            raise answer
        return answer

    def late(self, work: str, seconds: float, option: str = "timeout") -> RequestTimeout:
        return RequestTimeout(f"{self.name} did not {work} within {seconds:g} seconds; {option}=N "
                              f"waits longer{self.transport.hint()}")

    def _give_up(self, req_id: ReqId, reason: str) -> Task | None:
        """Give a request up; return the task that notifies the peer, if there is one."""
        pending = self.pending.get(req_id)  # None: it is answered
        # spec 2025-11-25: basic/utilities/cancellation#behavior-requirements -- never initialize
        if not pending or pending.method == "initialize" or self.lost:
            return None
        if self.transport.abandon(req_id) or pending.send is None:  # the peer knows, or need not
            return None
        return self.tasks.spawn(pending.send(notification(
            "notifications/cancelled", {"requestId": req_id, "reason": reason})))

    def resolve(self, req_id: JSON, outcome: MCPError | Msg) -> None:
        """End a request of ours, unless it has ended."""
        if pending := self.pending.pop(own_id(req_id), None):
            settle_future(pending.answer, outcome)

    def _take_progress(self, params: Msg) -> None:
        progress: Any = params.get("progress")
        pending = self.pending.get(own_id(params.get("progressToken")))
        # spec: basic/patterns/progress#progress-flow -- "MUST increase with each notification"
        if not pending or type(progress) not in (int, float) or progress <= pending.progress:
            return
        pending.progress = progress
        pending.deadline.renew()
        if pending.on_progress and len(pending.reports) < MAX_REPORTS:
            total, message = params.get("total"), params.get("message")
            total = total if type(total) in (int, float) else None
            message = message if isinstance(message, str) else None
            if task := self.call_back(pending.on_progress, progress, total, message):
                pending.reports.add(task)
                task.add_done_callback(pending.reports.discard)

    def call_back(self, callback: Function, *args: Any) -> Task | None:
        """Call a user's callback; return the task of an async one. Failures go to the log."""
        try:
            outcome = callback(*args)
        except Exception:
            logger.exception("the callback %r failed", callback)
            return None
        return self.tasks.spawn(maybe_await(outcome)) if inspect.isawaitable(outcome) else None

    def warn(self, said: str, *args: Any) -> None:
        """Log what the peer, which is named first, has done; at a bounded rate."""
        if self.warnings.take():
            logger.warning(said, self.name, *args)


class Peer(Requester):
    """Our end of a conversation.

    receive() takes each message that comes. accept() makes an Exchange of a request, and reply()
    sends what `serve(exchange)` returns for it. `on_notification(msg, send, caller)` hears a
    notification. A response ends a request of ours. refuse() answers what is none of these.
    """

    end_reason = ""  # for requests that we cut off
    #: whether it serves many clients, whose ids may be the same: all of the modern era over HTTP
    many_clients = False
    #: whether what is neither request nor response gets an error: a client sends none
    answers_garbage = False
    on_lost = nothing  # is called once, when the channel has ended
    exchange_class: Any = Exchange

    def __init__(self, name: str, serve: Function, on_notification: Function):
        super().__init__(name)
        self.serve, self.on_notification = serve, on_notification
        self.limit = MAX_IN_FLIGHT  # requests that are served at once
        self.serving = 0  # requests that have a slot
        self.unread = 0  # responses that are being written
        self.session = Session()
        self.incoming: dict[Any, Exchange] = {}  # by key
        self.loads: dict[str, int] = {}  # bytes of requests, by client
        self.queue: OrderedDict[Future, None] = OrderedDict()  # requests that wait for a slot

    # A message arrives.

    def receive(self, data: Any, send: Send, caller: Caller) -> None:
        """Take a message that came, encoded or decoded, or the ProtocolError in its place."""
        encoded = isinstance(data, bytes)
        try:
            if isinstance(data, ProtocolError):
                raise data
            msg = decode(data) if encoded else data
            if type(msg) is list:
                self.check_batch(msg)
        except ProtocolError as exc:
            self.show("<", exc)
            self.refuse(exc, send, guess_message(data if encoded else exc.start))
            return
        self.show("<", msg)
        size = len(data) if encoded else 0  # 0: to be counted, for HTTPTransport has decoded it
        if type(msg) is list:
            self.tasks.spawn(self.reply_batch(msg, send, caller, size))
        else:
            self.dispatch(msg, send, caller, size)

    def show(self, direction: str, msg: Any) -> None:
        if _trace:
            _trace(direction, self.name, msg)

    def traced(self, write: Send) -> Send:
        """Return a `write` that shows the trace what it writes."""

        def send(msg: Any) -> Awaitable[Any]:
            self.show(">", msg)
            return write(msg)

        return send

    def dispatch(self, msg: JSON, send: Send, caller: Caller, size: int = 0) -> Task | None:
        """Do what one message asks for; return the task that responds, if one does."""
        try:
            kind = classify(msg)
            if kind == REQUEST:
                size = size or len(encode(msg))
                return self.tasks.spawn(self.reply(self.accept(msg, send, caller, size)))
        except (ProtocolError, RPCError) as exc:
            return self.refuse(exc, send, msg)
        if kind == NOTIFICATION:
            self._take_notification(msg, send, caller)
        elif kind == RESULT:
            self.resolve(msg["id"], msg["result"])
        elif msg.get("id") is None:
            self.warn("%s could not read our message: %.500r", msg["error"])
        else:
            problem = msg["error"]
            self.resolve(
                msg["id"], RemoteError(problem["code"], problem["message"], problem.get("data")))
        return None

    def check_batch(self, batch: list[JSON]) -> None:
        if self.session.rev != BATCHES or not 0 < len(batch) <= MAX_ITEMS:
            raise ProtocolError(
                f"revision {self.session.rev} does not allow a batch of {len(batch)}")

    def reply_batch(self, msgs: list[JSON], send: Any, caller: Caller, size: int) -> Awaitable[Any]:
        """Take on the messages of a batch now, for the next message may cancel them; return what
        sends their answers as one batch."""
        answers: list[Msg] = []
        room = MAX_MESSAGE_BYTES // 2  # for long answers
        short = room // MAX_ITEMS  # answers of this length always fit in the other half

        async def collect(msg: Msg) -> None:
            nonlocal room
            if "method" in msg:  # progress, or a question: the answer is still to come
                await send(msg)
                return
            length = len(encode(msg))
            if length > max(room, short):
                raise LimitExceeded("the responses of this batch are too long")
            room -= length
            answers.append(msg)

        async def finish() -> None:
            if tasks:
                await asyncio.wait(tasks)
            if answers:  # JSON-RPC 2.0 §6: "the Server MUST NOT return an empty Array"
                await send(answers)

        tasks: set[Any] = {
            self.dispatch(msg, collect, caller, size // len(msgs)) for msg in msgs
        } - {None}
        return finish()

    def refuse(self, exc: MCPError, send: Send, msg: JSON) -> Task | None:
        """Send the error for a message that cannot be taken, if it may be answered.

        A malformed response is never answered: the caller that waits for it gets an exception.
        """
        self.warn("%s sent an invalid message: %s", exc)
        members = msg if type(msg) is dict else {}
        pending = None if "method" in members else self.pending.get(own_id(members.get("id")))
        if pending:
            self.resolve(members["id"], type(exc)(
                f"{self.name} answered {pending.method} with a malformed message: {exc}"))
            return None
        req_id = readable_id(msg)
        if req_id is None:  # no request that we can read
            is_response = {"result", "error"} & members.keys()
            # spec: basic/patterns/cancellation#error-handling
            is_notification = exc.code == INVALID_PARAMS
            if is_response or is_notification or not self.answers_garbage:
                return None
        return self.tasks.spawn(send(error(req_id, exc)))

    # Requests of the peer.

    def accept(self, msg: Msg, send: Send, caller: Caller, size: int) -> Exchange:
        """Take a request on; from now on it can be cancelled. reply() must follow."""
        exchange: Exchange = self.exchange_class(self, msg, send, caller)
        if exchange.key in self.incoming:
            # spec: basic/index#requests -- the id "MUST NOT match the ID of any other request"
            raise RPCError(INVALID_REQUEST, f"a request with id {msg['id']!r} is still running")
        exchange.size = size + 2048  # for its task, or its place in the queue
        load = self.loads.get(exchange.client_key, 0) + exchange.size
        if load > HELD_BYTES:
            raise RPCError(
                TOO_BUSY, f"the requests that run or wait would take more than {HELD_BYTES} bytes"
            )
        self.loads[exchange.client_key] = load
        self.incoming[exchange.key] = exchange
        return exchange

    async def reply(self, exchange: Exchange) -> None:
        """Serve a request, and send its response, if it gets one."""
        exchange.task = asyncio.current_task()
        try:
            if exchange.over:  # cancelled before this task could start
                return
            response = await self._response_to(exchange)
            # spec: basic/patterns/cancellation#behavior-requirements -- "Not send a response"
            if exchange.over:
                return
            exchange.over = True
            self.unread += 1
            try:
                await exchange.send(response)
            except ENCODE_ERRORS as exc:
                await exchange.send(self._unsendable(exchange, exc))
            finally:
                self.unread -= 1
        finally:  # only now: responses that are not read count, too
            del self.incoming[exchange.key]
            if load := self.loads.pop(exchange.client_key) - exchange.size:
                self.loads[exchange.client_key] = load

    async def _response_to(self, exchange: Exchange) -> Msg:
        """Wait for a slot, and serve a request; whatever happens is its response."""
        turn = None  # comes when another leaves its slot
        try:
            if self.serving < self.limit or exchange.method == "ping":
                self.serving += 1
            else:  # a semaphore loses slots before Python 3.11
                turn = get_running_loop().create_future()
                self.queue[turn] = None
                await turn
            return {"jsonrpc": "2.0", "id": exchange.req_id, "result": await self.serve(exchange)}
        except GeneratorExit:  # the loop has ended, and Python ends what it has left
            raise
        except BaseException as exc:  # a handler ends neither the process nor another request
            return self._failure(exchange, exc)
        finally:
            self._leave_slot(turn)

    def _leave_slot(self, turn: Future | None) -> None:
        """Pass a slot to the next in the queue, before a new request can take it."""
        if turn and turn.cancelled():  # its request has left the queue, and had no slot
            self.queue.pop(turn, None)
            return
        self.serving -= 1
        while self.queue and self.serving < self.limit:
            next_turn, _ = self.queue.popitem(last=False)
            if not next_turn.done():
                next_turn.set_result(None)
                self.serving += 1

    def _unsendable(self, exchange: Exchange, exc: Exception) -> Msg:
        """Return the error in place of a response that cannot be sent."""
        problem = f"the response to {exchange.title} cannot be sent"
        logger.error("%s: %s", problem, exc)
        if isinstance(exc, LimitExceeded):
            problem += f": {exc}; return less, or only a text: structured=False"
        return error(exchange.req_id, MCPError(problem))

    def _failure(self, exchange: Exchange, exc: BaseException) -> Msg:
        """Return the response to a request whose handler raised; raise if it gets none."""
        if isinstance(exc, asyncio.CancelledError):
            if exchange.over:
                raise exc
            if self.end_reason:
                exc = RPCError(TOO_BUSY, self.end_reason)
            else:  # the handler awaited something that was cancelled
                exc = RPCError(INTERNAL_ERROR, "the handler was cancelled")
        # A peer that leaves while its answer is awaited is no fault of the handler.
        problem = (exc if self.lost and isinstance(exc, ConnectionClosed)
                   else handler_error(exchange.title, exc))
        return error(exchange.req_id, problem)

    def _take_notification(self, msg: Msg, send: Send, caller: Caller) -> None:
        """Take what concerns a request in flight; on_notification() hears the rest."""
        method, params = msg["method"], msg.get("params", {})
        if method == "notifications/progress":
            return self._take_progress(params)
        # spec: basic/patterns/cancellation#error-handling
        req_id = params.get("requestId") if method == "notifications/cancelled" else None
        exchange = self.incoming.get(req_id) if is_id(req_id) else None
        if not exchange or exchange.method == "initialize":  # which is never cancelled
            # Cancellations, too: by one, a modern server ends a subscription.
            self.call_back(self.on_notification, msg, send, caller)
        else:
            logger.info("%s cancelled request %.100r: %.200r", self.name, req_id,
                        params.get("reason"))
            exchange.cancel()

    # The channel.

    async def run(
        self, transport: Transport, grace: float | None = 0, end_reason: str = ""
    ) -> None:
        """Read messages off a channel until it ends, then wind up the conversation.

        Requests that we serve get `grace` seconds to finish, then the error `end_reason`.
        """
        self.transport = transport
        transport.failed = self.resolve
        self.loop = get_running_loop()
        send = self.traced(transport.write)
        try:
            while items := await transport.read():
                for item in items:
                    while self._crowded():
                        await asyncio.wait(self.tasks.running, timeout=MOMENT_SECONDS,
                                           return_when=asyncio.FIRST_COMPLETED)
                    self.receive(item, send, getattr(item, "caller", NOBODY))
                del items, item  # else they stay in memory until the next ones come
            self.fail_all(f"{self.name} {transport.explain()}")
            await self.tasks.drain(grace)
            if not transport.ended_here:  # nobody would read the error
                end_reason = ""
        except Exception as exc:  # of read()
            self.fail_all(f"{self.name} cannot be read: {exc!r}")
            raise
        finally:
            await self.close(end_reason)

    def _crowded(self) -> bool:
        """Return whether too many responses wait to be read, or too much else waits to end."""
        others = len(self.tasks.running) - len(self.incoming)  # callbacks, batches, refusals
        # Callbacks may wait for responses, which we must read for them.
        most = MAX_CLIENTS if self.pending else MAX_IN_FLIGHT
        return self.unread >= self.limit or others >= most

    def fail_all(self, reason: str) -> None:
        if not self.lost:
            self.lost = ConnectionClosed(reason)
            self.on_lost()
        for req_id in list(self.pending):
            self.resolve(req_id, ConnectionClosed(reason))  # one each: they get tracebacks

    async def close(self, end_reason: str = "") -> None:
        """Give up our requests, and notify the peer; cancel what we serve, with the error
        `end_reason` if that is not empty."""
        self.end_reason = end_reason
        # First tell the peer, for fail_all() forgets our requests.
        writing: set[Any] = {self._give_up(each, "the caller has gone") for each in [*self.pending]}
        self.fail_all(f"this program has closed the connection to {self.name}")
        # Before Python 3.12, a task may not have begun yet: cancelled now, it would answer nothing.
        await asyncio.sleep(0)
        this = asyncio.current_task()  # of a handler or a callback that closes us: it may go on
        self.tasks.running.discard(this)
        served = {each.task for each in self.incoming.values()} - {None, this}
        for task in served:
            task.cancel()
        if end_reason:
            writing |= served
        else:
            for each in self.incoming.values():
                each.over = True  # it gets no response
        if writing := writing - {None}:
            await asyncio.wait(writing, timeout=FAREWELL_SECONDS)
        await self.tasks.close()  # of those that could not write in time, too

# ======
# Part III. A server
# ======

####
# 10. JSON Schema
#
# Problem. A JSON Schema tells a model which arguments a tool takes, and the arguments that the
#   model sends are checked: "x" for {"type": "integer"} gives "expected integer, got string".
#   Values come from strangers, and so do some of the schemas.
# Rules.
#   1. Compiler makes nodes of a schema once; there `$ref` is one more schema of `allOf`. Checking
#      applies a node to a value, and makes the Python value of it.
#   2. JSON's types decide, not Python's: 1.0 is an integer and equals 1; true is not 1.
#   3. Schema and value multiply, so each piece of work is paid for before it is done. A budget that
#      is spent is not a SchemaError: no `not` can catch it.
# Limits. 2020-12, and what draft-07 wrote otherwise. `$ref` stays in the document; `format` and
#   `content*` are not checked. A pattern is applied to at most 10,000 characters.

__all__ += ["compile_schema", "Validator"]


Schema = Msg
Evaluated = set[Any]  # names of members, or indexes of items


class Shape(Schema):
    """A schema of a type; `read`, if any, makes the Python value of JSON that fits it."""

    #: Whether members without a name here are refused. `additionalProperties` does not say so,
    #: because google-genai fails on a boolean there (python-genai #2393).
    is_closed = False

    def __init__(self, schema: Schema, read: Function | None = None):
        super().__init__(schema)
        self.read = read


# The metaschema: what the argument of each keyword looks like.
A_SCHEMA: Schema = {"$ref": "#"}
SCHEMAS = {"type": "array", "items": A_SCHEMA, "minItems": 1}
_STRINGS = {"type": "array", "items": {"type": "string"}}
# Bounds of 4,000 digits take a thousand times as long.
_NUMBER = {"type": "number", "minimum": -sys.float_info.max, "maximum": sys.float_info.max}
_TYPE = {"enum": [*KINDS.values()]}
KEYWORDS: dict[str, Schema] = {
    word: form
    for words, form in {
        "not if then else contains propertyNames additionalProperties additionalItems "
        "unevaluatedItems unevaluatedProperties": A_SCHEMA,
        "items": {"anyOf": [A_SCHEMA, {"type": "array", "items": A_SCHEMA}]},
        "allOf anyOf oneOf prefixItems": SCHEMAS,
        "properties patternProperties $defs definitions":
            {"type": "object", "additionalProperties": A_SCHEMA},
        "dependentSchemas dependentRequired dependencies":
            {"type": "object", "additionalProperties": {"anyOf": [A_SCHEMA, _STRINGS]}},
        "type": {"anyOf": [_TYPE, {**SCHEMAS, "items": _TYPE}]},
        "enum": {"type": "array"},
        "const": {},
        "minimum maximum exclusiveMinimum exclusiveMaximum": _NUMBER,
        "multipleOf": {**_NUMBER, "exclusiveMinimum": 0},
        "minLength maxLength minItems maxItems minContains maxContains minProperties "
        "maxProperties": {**_NUMBER, "type": "integer", "minimum": 0},
        "uniqueItems": {"type": "boolean"},
        "required": _STRINGS,
        "pattern $id $anchor $dynamicAnchor $ref $dynamicRef": {"type": "string"},
        "$schema": {"type": "string",
                    "pattern": "^https?://json-schema.org/draft(-07|/2020-12)/schema#?$"}
    }.items()
    for word in words.split()
}


def _is_multiple(value: Any, of: Any) -> bool:
    from fractions import Fraction

    # A float means its decimal: 0.07 is a multiple of 0.01.
    return Fraction(str(value)) % Fraction(str(of)) == 0


#: The keywords that compare a value or its size: its type, the comparison, the message.
MEASURES = {
    "minimum": ("number", operator.ge, "be at least {}"),
    "maximum": ("number", operator.le, "be at most {}"),
    "exclusiveMinimum": ("number", operator.gt, "be more than {}"),
    "exclusiveMaximum": ("number", operator.lt, "be less than {}"),
    "multipleOf": ("number", _is_multiple, "be a multiple of {}"),
    "minLength": ("string", operator.ge, "have {} or more characters"),
    "maxLength": ("string", operator.le, "have {} or fewer characters"),
    "minItems": ("array", operator.ge, "have {} or more items"),
    "maxItems": ("array", operator.le, "have {} or fewer items"),
    "minProperties": ("object", operator.ge, "have {} or more members"),
    "maxProperties": ("object", operator.le, "have {} or fewer members")
}


DEPENDENT = {"dependentSchemas", "dependentRequired", "dependencies"}
#: The keywords of most schemas; a schema with no others is checked faster.
FLAT = {"type", "properties", "required", "additionalProperties", "items", "$defs", "$schema"}


class Node(Schema):
    """A compiled schema: its keywords hold nodes where they held schemas.

    `enum` and `const` hold a pair: the canonical texts of the values, and a text for errors.
    """

    # A tenth faster to check.
    __slots__ = ("cost", "is_flat", "limits", "plain", "read", "scope", "types")

    def __init__(self, schema: Schema, scope: str = "", read: Function | None = None):
        super().__init__((word, schema[word]) for word in schema if word in KEYWORDS)
        self.scope, self.read = scope, read
        types = as_list(schema.get("type", []))
        #: the admitted types; all, if it is empty
        self.types = {*types, "integer"} if "number" in types else {*types}
        self.limits = [(*MEASURES[word], schema[word]) for word in schema if word in MEASURES]
        self.is_flat = self.keys() <= FLAT
        #: the classes whose values are all valid, and are read as they are
        self.plain = {cls for cls, kind in KINDS.items() if self.keys() <= {"type"}
                      and (not types or kind in self.types) and read in (None, cls)}
        #: steps to apply it, but for the size of the value
        looped = {"required", *DEPENDENT}.intersection(schema)
        self.cost = 4 + 60 * ("multipleOf" in schema) + sum([len(schema[word]) for word in looped])


ANYTHING, NOTHING = Node({}), Node({"type": "nothing"})


def canonical(value: JSON, spend: Function = nothing) -> str:
    """Return one text for all JSON values that are equal (JSON Schema 2020-12, core §4.2.2)."""
    if isinstance(value, (list, dict, str)):
        spend(1 + (len(value) >> 6 if isinstance(value, str) else 4 * len(value)))
    if isinstance(value, list):
        return "[" + ",".join([canonical(item, spend) for item in value]) + "]"
    if isinstance(value, dict):
        members = [f"{key!r}:{canonical(item, spend)}" for key, item in value.items()]
        return "{" + ",".join(sorted(members)) + "}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return repr(value)


def join_path(step: str | int, path: str = "") -> str:
    """Put a name or an index before a path: "items" before "[2].price"."""
    if isinstance(step, int) or not re.fullmatch(r"[\w$-]{1,64}", step):
        step = f"[{show_json(step)}]"
    return step + path if not path or path[0] == "[" else f"{step}.{path}"


def _mismatch(expected: str, got: str, path: str = "") -> SchemaError:
    return SchemaError(path, f"expected {expected}, got {got}", expected)


def attempt(read: Function, value: Any) -> Any:
    """Return read(value); whatever it raises becomes a SchemaError."""
    try:
        return read(value)
    except SchemaError:
        raise
    except Exception as exc:
        path, message = "", f"is not usable: {exc!s:.1000}"  # it may repeat the value
        with suppress(Exception):
            first = cast(Any, exc).errors()[0]  # pydantic's
            message = first["msg"]
            for step in reversed(first["loc"]):
                path = join_path(step, path)
        raise SchemaError(path, message) from None


def _nearest(faults: Sequence[SchemaError]) -> SchemaError:
    """Return the error of the alternative that was probably meant."""

    def nearness(fault: SchemaError) -> tuple[bool, bool, int]:
        type_fits = bool(fault.path) or not fault.expected  # a member is wrong, or a bound
        # A tag: {"pet": "dog"}, but this alternative expects "cat".
        tag = re.fullmatch('"[^"]*"', fault.expected)
        return type_fits, not tag, len(fault.path)

    best = max(faults, key=nearness)
    expected = dict.fromkeys(fault.expected for fault in faults if fault.path == best.path)
    if "" in expected or len(expected) < 2:
        return best
    got = best.message.rpartition(", got ")[2]  # all of them got the same value
    return _mismatch(" or ".join(expected)[:400], got, best.path)


@lru_cache
def pattern_of(text: str) -> re.Pattern[str]:
    """Compile a regular expression of ECMA 262, as far as Python understands it."""
    # Outside of escapes and classes, a dollar sign is the end of the text.
    ours = re.sub(r"(?s)(\\.|\[(?:\\.|[^]\\])*\])|\$", lambda token: token[1] or r"\Z", text)
    try:
        return re.compile(ours, re.ASCII)
    except re.error as exc:
        raise ValueError(f"{exc} in the pattern {show_json(text)}") from None


def _show_choices(values: Iterable[JSON]) -> str:
    return " or ".join(map(show_json, itertools.islice(values, 10)))


# A schema with `$id` is a scope: references and anchors in it are relative to that URI.
# `$dynamicRef` leads to the $dynamicAnchor of that name in the scope that the check entered first.


class Checking:
    """One walk over a value: its budget, and the scopes of the schemas that are being applied.

    To apply a schema also adds to a set the names or indexes that it has evaluated.
    """

    def __init__(self, required: set[str] | None = None):
        self.steps = MAX_STEPS  # that are left
        self.scopes = [""]
        #: if the root is the arguments of a tool: the required ones; the others may be left empty
        self.required = required

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0 or len(self.scopes) > 2 * MAX_DEPTH:
            raise LimitExceeded("it takes too long, is nested too deep, or refers to itself")

    def apply(self, node: Node, value: JSON, evaluated: Evaluated | None = None) -> Any:
        kind = kind_of(value)
        size = len(value) if kind in ("object", "array") else 0
        work = value.bit_length() >> 6 if type(value) is int else size
        self.spend(node.cost + work)
        if node.types and kind not in node.types:
            raise _mismatch(" or ".join(as_list(node["type"])), kind)
        made = value
        here: Evaluated = set()  # what this schema has evaluated
        self.scopes.append(node.scope)
        try:
            if kind == "object":
                made = self._object(node, value, here)
            elif kind == "array":
                made = self._array(node, value, here)
            if not node.is_flat:
                self._check_alone(node, value, "number" if kind == "integer" else kind)
                for read in self._apply_to_same_value(node, value, here):
                    made = made if read is value else read
                word = "unevaluatedItems" if kind == "array" else "unevaluatedProperties"
                if word in node:
                    keys = value if kind == "object" else range(size)
                    self._apply_to_parts(
                        value, [(key, node[word]) for key in keys if key not in here])
                    here.update(keys)
        finally:
            self.scopes.pop()
        if node.read:
            made = attempt(node.read, made)
        if evaluated is not None:
            evaluated |= here
        return made

    def _try(
        self, node: Node, value: JSON, evaluated: Evaluated | None = None
    ) -> tuple[SchemaError | None, Any]:
        try:
            return None, self.apply(node, value, evaluated)
        except SchemaError as exc:
            self.spend(40)
            return exc.with_traceback(None), None  # its frames would live on, in a cycle

    def _check_alone(self, node: Node, value: JSON, kind: str) -> None:
        """Check the keywords that look at no member and no item."""
        for word in ("enum", "const"):
            if word in node and canonical(value, self.spend) not in node[word][0]:
                raise _mismatch(node[word][1], show_json(value))
        for measured, holds, must, bound in node.limits:
            if measured == kind and not holds(value if kind == "number" else len(value), bound):
                raise SchemaError("", f"must {must.format(show_json(bound))}")
        pattern = node.get("pattern", "")
        if pattern and kind == "string" and not self._matches(pattern, value):
            raise SchemaError("", f"must match {show_json(pattern)}")

    def _matches(self, pattern: str, text: str) -> bool:
        if len(text) > MAX_PATTERN_CHARS:
            raise LimitExceeded(f"a text of over {MAX_PATTERN_CHARS} characters is too long")
        self.spend(1 + (len(text) * len(text) >> 8))
        return pattern_of(pattern).search(text) is not None

    def _apply_to_argument(self, node: Node, value: JSON) -> Any:
        """Apply a schema; a text that it refuses is read as JSON: models write "3" for 3."""
        try:
            return self.apply(node, value)
        except SchemaError as exc:
            if not exc.expected or not isinstance(value, str):
                raise
            self.spend(len(value) >> 2)
            try:
                meant = decode(value.encode())
            except (ProtocolError, UnicodeError):
                raise exc from None
            return self._apply_to_argument(node, meant)

    def _apply_to_parts(
        self, value: Any, parts: Iterable[tuple[Any, Node]], faults: Iterable[SchemaError] = ()
    ) -> Any:
        """Return the value with its parts as their schemas make them; raise theirs and `faults`."""
        found: list[SchemaError] = []
        required, self.required = self.required, None  # only members of the root are arguments
        made = value if required is None else value.copy()
        apply = self.apply if required is None else self._apply_to_argument
        for key, node in parts:
            item = value[key]
            if type(item) in node.plain or len(found) >= MAX_ERRORS:
                continue
            try:
                # apply() tries each type of a union
                read = attempt(float, item) if type(item) is int and float in node.plain else apply(
                    node, item)
            except SchemaError as exc:
                if required is not None and item in (None, "") and key not in required:
                    made.pop(key, None)  # twice, if a pattern fits its name, too
                else:
                    found += [SchemaError(join_path(key, fault.path), fault.message, fault.expected)
                              for fault in (exc, *exc.others)]
                continue
            if read is not item:
                if made is value:
                    made = value.copy()
                made[key] = read
        found += faults
        if found:
            first = found[0]
            raise SchemaError(first.path, first.message, first.expected, found[1:MAX_ERRORS])
        return made

    def _object(self, node: Node, value: Msg, evaluated: Evaluated) -> Any:
        properties = node.get("properties", {})
        parts = [(name, properties[name]) for name in value if name in properties]
        for pattern, part in node.get("patternProperties", {}).items():
            parts += [(name, part) for name in value if self._matches(pattern, name)]
        evaluated |= {name for name, _ in parts}
        faults = [SchemaError(join_path(name), "is required")
                  for name in node.get("required", ()) if name not in value]
        if "additionalProperties" in node:
            others = [name for name in value if name not in evaluated]
            if others and node["additionalProperties"] is NOTHING:
                expected = _show_choices(properties) or "no properties"
                faults.insert(0, SchemaError(
                    join_path(others[0]), f"unexpected property: expected {expected}"))
            else:
                parts += [(name, node["additionalProperties"]) for name in others]
                evaluated.update(others)
        made = self._apply_to_parts(value, parts, faults)
        for name in value if "propertyNames" in node else ():
            if self._try(node["propertyNames"], name)[0]:
                raise SchemaError(join_path(name), "is not allowed as a name")
        for word in DEPENDENT.intersection(node):
            for name, part in node[word].items():
                if name in value:
                    self.apply(part, value, evaluated)
        return made

    def _array(self, node: Node, value: list[Any], evaluated: Evaluated) -> Any:
        parts = node.get("prefixItems", [])[: len(value)]
        if "items" in node:
            parts += [node["items"]] * (len(value) - len(parts))
        made = self._apply_to_parts(value, enumerate(parts))
        evaluated.update(range(len(parts)))
        if "contains" in node:
            part = node["contains"]
            matching = {i for i, item in enumerate(value) if not self._try(part, item)[0]}
            evaluated |= matching
            least, most = node.get("minContains", 1), node.get("maxContains", len(value))
            if not least <= len(matching) <= most:
                raise SchemaError("", f"has {len(matching)} items that match `contains`")
        if node.get("uniqueItems"):
            if len({canonical(item, self.spend) for item in value}) < len(value):
                raise SchemaError("", "has two items that are the same")
        return made

    def _apply_to_same_value(self, node: Node, value: JSON, evaluated: Evaluated) -> list[Any]:
        """Apply the keywords that hold further schemas for this value; return what each makes."""
        parts = [*node.get("allOf", ())]
        if "$dynamicRef" in node:
            nodes, target = node["$dynamicRef"]  # by scope; and the one that $ref would lead to
            parts.append(next((nodes[name] for name in self.scopes if name in nodes), target))
        if "if" in node:
            fault, _ = self._try(node["if"], value, evaluated)
            parts.append(node.get("else" if fault else "then", ANYTHING))
        made = [self.apply(part, value, evaluated) for part in parts]
        if "not" in node and not self._try(node["not"], value)[0]:
            raise SchemaError("", "matches the schema of `not`")
        return made + [self._apply_alternatives(node, word, value, evaluated)
                       for word in ("anyOf", "oneOf") if word in node]

    def _apply_alternatives(self, node: Node, word: str, value: JSON, evaluated: Evaluated) -> Any:
        """Return what the best schema makes of a value: the first of those that match and know most
        of its members, for an open class ignores the others; raise if none matches."""
        faults, matches = [], []
        size = len(value) if isinstance(value, (dict, list)) else 0
        for part in node[word]:
            known: Evaluated = set()
            fault, read = self._try(part, value, known)
            if fault:
                faults.append(fault)
                continue
            evaluated |= known
            matches.append((len(known), read))
            if word == "anyOf" and len(known) == size:
                break
        if not matches:
            raise _nearest(faults)
        if word == "oneOf" and len(matches) > 1:
            raise SchemaError("", "matches more than one of the alternatives")
        return max(matches, key=operator.itemgetter(0))[1]


class Compiler(Checking):
    """Checks a schema by the metaschema, and makes its nodes."""

    def __init__(self, metaschema: Node):
        super().__init__()
        self.metaschema = metaschema
        self.nodes: dict[int, Node] = {}  # by id(schema)
        self.names: dict[tuple[str, str], Any] = {}  # schemas by scope and anchor, or ""
        self.anchors: dict[str, dict[str, Node]] = {}  # by $dynamicAnchor and scope
        self.references: list[tuple[Node, str]] = []  # that lead nowhere yet

    def compile(self, schema: Any, scope: str = "") -> Node:
        self.apply(self.metaschema, schema)
        node = self._node_of(schema, scope)
        while self.references:
            self._link(*self.references.pop())
        return node

    def _node_of(self, schema: Any, scope: str) -> Node:
        """Return the node of a well-formed schema, or of a list of required names."""
        if isinstance(schema, bool):
            return ANYTHING if schema else NOTHING
        self.spend(20)
        keywords: Schema = {"required": schema} if isinstance(schema, list) else schema
        if isinstance(keywords.get("items"), list):  # in draft-07
            rest = keywords.get("additionalItems", True)
            keywords = {**keywords, "prefixItems": keywords["items"], "items": rest}
        if getattr(schema, "is_closed", False):
            keywords = {**keywords, "additionalProperties": False}
        uri, _, fragment = keywords.get("$id", "").partition("#")  # draft-07: "#a" is an anchor
        dynamic = keywords.get("$dynamicAnchor", "")
        scope = self._absolute(uri, scope)
        node = self.nodes[id(schema)] = Node(keywords, scope, getattr(schema, "read", None))
        # "" names the first schema of a scope: that with its $id.
        for name in ("", fragment, keywords.get("$anchor", ""), dynamic):
            self.names.setdefault((scope, name), schema)
        if dynamic:
            self.anchors.setdefault(dynamic, {})[scope] = node
        for word, held in node.items():
            node[word] = self._compile_argument(node, word, held)
        if not node.read and node.keys() == {"anyOf"} and all(part.plain for part in node["anyOf"]):
            node.plain = set().union(*(part.plain for part in node["anyOf"]))
        return node

    def _compile_argument(self, node: Node, word: str, held: Any) -> Any:
        form, scope = KEYWORDS[word], node.scope
        if word in ("pattern", "patternProperties"):
            for text in as_texts(held):
                self.spend(50 * len(text))
                pattern_of(text)
        if form is A_SCHEMA or word == "items":
            return self._node_of(held, scope)
        if form is SCHEMAS:
            return [self._node_of(part, scope) for part in held]
        if form.get("type") == "object":
            return {name: self._node_of(part, scope) for name, part in held.items()}
        if word in ("$ref", "$dynamicRef"):
            self.references.append((node, word))
        if word in ("enum", "const"):
            values = held if word == "enum" else [held]
            return {canonical(value, self.spend) for value in values}, _show_choices(values)
        return held

    def _absolute(self, uri: str, base: str) -> str:
        if not uri:
            return base
        from urllib.parse import urljoin

        self.spend(len(base) + len(uri) >> 3)
        return urljoin(base, uri)

    def _link(self, node: Node, word: str) -> None:
        """Give a node what its reference leads to, once all names are known."""
        from urllib.parse import unquote

        ref = node.pop(word)
        self.spend(len(ref))
        uri, _, fragment = ref.partition("#")
        scope = self._absolute(uri, node.scope)
        anchor, *pointer = unquote(fragment).split("/")  # "#item", or "#/$defs/item"
        schema = self.names.get((scope, anchor))
        for step in pointer:
            if isinstance(schema, list):
                self.spend(len(schema))
                schema = {str(i): part for i, part in enumerate(schema)}
            name = step.replace("~1", "/").replace("~0", "~")  # RFC 6901 §4
            schema = schema.get(name) if isinstance(schema, dict) else None
        if not isinstance(schema, (dict, bool)):
            # spec: basic/index#ref-resolution -- a network URI is never dereferenced
            raise SchemaError("", f"{show_json(ref)} cannot be resolved: nothing is fetched, "
                              "so put it under $defs")
        # Under a keyword that is not ours it has no node yet.
        target = self.nodes.get(id(schema)) or self.compile(schema, scope)
        anchors = self.anchors.get(fragment, {})
        if word == "$dynamicRef" and anchors.get(target.scope) is target:
            node[word] = anchors, target
        else:
            node["allOf"] = [*node.get("allOf", ()), target]


@lru_cache
def _metaschema() -> Node:
    return Compiler(ANYTHING).compile({"type": ["object", "boolean"], "properties": KEYWORDS})


class Validator:
    """A compiled JSON Schema of 2020-12 or draft-07; SchemaError if it cannot be used."""

    def __init__(self, schema: JSON):
        self._node = node = attempt(Compiler(_metaschema()).compile, schema)
        # Members of most tools have a type only: to compare classes is much faster.
        is_flat = node.is_flat and "object" in node.types and not node.read
        parts = node.get("properties", {}) if is_flat else {}
        self._plain = {name: part.plain for name, part in parts.items()}
        self._required = {*node.get("required", ())}

    def check(self, value: JSON) -> None:
        """Raise SchemaError for what is wrong with `value`."""
        self.read(value)

    def read(self, value: JSON, as_arguments: bool = False) -> Any:
        """Return the Python value; SchemaError if `value` does not fit.

        `as_arguments` reads JSON in a text, too, and leaves out what is empty and not required.
        """
        if self._plain and type(value) is dict and self._required <= value.keys():
            for name in value:
                if type(value[name]) not in self._plain.get(name, ()):
                    break
            else:
                return value
        checking = Checking(self._required if as_arguments else None)
        return attempt(partial(checking.apply, self._node), value)


compile_schema = Validator

####
# 11. Types
#
# Problem. A model calls a Python function with JSON: `day: date` becomes a schema that the model
#   sees, "1969-07-20" a date, and a result JSON again.
# Rules.
#   1. What JSON cannot express is an error at registration, which names the parameter and the
#      remedy: a model's call is too late for that.
#   2. A type becomes a Shape. Its reader gets JSON that fits the schema, and refuses only what no
#      schema can exclude, such as the 30th of February.
#   3. Many hosts cannot follow `$ref`: a class stands where it is used, unless it contains itself
#      or is large.
#   4. Results become JSON by their values; Tool then checks them by their annotation.
# Limits. pydantic and msgspec are never imported: their classes are asked.

__all__ += ["Header", "converter"]

EMPTY = inspect.Parameter.empty  # no annotation, or no default
MAX_INLINE_CHARS = 4_000  # the schema of a class that stands in place of a reference
#: Name, annotation, default: EMPTY if a value is required, `...` if it may be absent.
Member = tuple[str, Any, Any]


def without_none(**fields: Any) -> Msg:
    """Return the fields that are not None: on the wire the others are absent, never null."""
    return {name: value for name, value in fields.items() if value is not None}


class Header(Row):
    """`Annotated[str, Header("Region")]`: clients repeat this argument in an HTTP header."""

    name: str


#: The classes that are JSON as they are.
PLAIN = (str, bool, int, float, type(None))
DECIMAL = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"  # no NaN, no infinity, and cheap


def _read_iso(cls: Any, text: str) -> Any:
    # Python < 3.11: "Z" is unknown, and a fraction must have 3 or 6 digits
    text = re.sub(r"(?<=:..)\.([0-9]+)", lambda digits: f".{digits[1]:0<6.6}", text)
    try:
        return cls.fromisoformat(re.sub(r"(?<=[0-9])[zZ]\Z", "+00:00", text))
    except ValueError as exc:
        raise ValueError(
            f"{exc!s:.100}; a {cls.__name__} looks like {cls.max.isoformat()}") from exc


def _read_text(cls: Any, value: Any) -> Any:
    return cls(str(value))


#: Classes that are texts, by name, so that nothing is imported for them: the schema, and a
#: function that makes a value from class and text.
TEXTS: dict[str, tuple[Schema, Function]] = {
    "builtins.bytes": ({"type": "string", "contentEncoding": "base64"},
                       lambda cls, text: base64.b64decode(text, validate=True)),
    "datetime.datetime": ({"type": "string", "format": "date-time"}, _read_iso),
    "datetime.date": ({"type": "string", "format": "date"}, _read_iso),
    "datetime.time": ({"type": "string", "format": "time"}, _read_iso),
    "uuid.UUID": ({"type": "string", "format": "uuid"}, _read_text),
    "pathlib.PurePath": ({"type": "string"}, _read_text),
    # A list of types breaks the converters of several hosts.
    "decimal.Decimal": ({"anyOf": [
        {"type": "number"}, {"type": "string", "pattern": DECIMAL}]}, _read_text)
}


def _is_class(hint: Any) -> bool:
    # Python < 3.11: list[int] is an instance of type
    return isinstance(hint, type) and get_origin(hint) is None


def _text_shape(cls: Any) -> Shape | None:
    if not _is_class(cls):
        return None
    is_path = issubclass(cls, os.PathLike) and not inspect.isabstract(cls)
    row = TEXTS.get("pathlib.PurePath" if is_path else f"{cls.__module__}.{cls.__qualname__}")
    return Shape(row[0], partial(row[1], cls)) if row else None


def refuse_foreign(cls: Any) -> None:
    """Raise TypeError for a class of an SDK: its Context and its content mean nothing here."""
    homes = {base.__module__.partition(".")[0] for base in getattr(cls, "__mro__", ())}
    if homes & {"mcp", "mcp_types", "fastmcp", "fastapi", "uncalled_for"}:  # the last: Depends
        raise TypeError(f"{cls!r} belongs to another library: import Context, Image and the like "
                        "from mcp_lite, and write other content as dicts")


# From a type to its shape.


def converter(annotation: Any) -> Callable[[JSON], Any]:
    """Return a function that reads JSON as a type; it raises SchemaError for what does not fit.

    Unlike a tool, it does not read JSON in a text. A type without a schema is a TypeError.

    >>> converter(bytes)("aGk=")
    b'hi'
    """
    return Validator(shape_of(annotation)).read


def shape_of(annotation: Any, mode: str = "validation") -> Shape:
    shapes = Shapes(mode)
    return shapes.complete(shapes.of(annotation))


class Shapes:
    """Makes the shapes of one schema, which share its `$defs`."""

    def __init__(self, mode: str = "validation"):
        self.mode = mode  # models of pydantic write other fields than they read
        self.defs: Schema = {}
        self.known: dict[Any, Shape] = {}  # by class
        self.repeated: set[Any] = set()  # of these, those used again

    def complete(self, root: Shape) -> Shape:
        """Return a schema with its `$defs`, and without a reference at its root."""
        while "$ref" in root:
            root = _merged(self.defs[root.pop("$ref")[8:]], root)  # after "#/$defs/"
        if self.defs:
            root["$defs"] = self.defs
        return root

    def of(self, annotation: Any) -> Shape:
        hint, notes = _unwrap(annotation)
        return _with_notes(self._without_notes(hint), notes, hint)

    def _without_notes(self, hint: Any) -> Shape:
        hint = type(None) if hint is None else hint
        refuse_foreign(hint)
        if hint in (Any, EMPTY, object):
            return Shape({})
        if hint in PLAIN:  # JSON's 3.0 is an integer, and 3 a number
            return Shape({"type": KINDS[hint]}, hint if hint in (int, float) else None)
        if known := _text_shape(hint) or self._self_described(hint):
            return known
        origin, args = get_origin(hint) or hint, get_args(hint)
        if origin is Union or getattr(origin, "__name__", "") == "UnionType":
            return Shape({"anyOf": [self.of(arg) for arg in args]})
        if origin is typing.Literal or hasattr(hint, "__members__"):  # an Enum
            return _choice(args or [*hint.__members__.values()])
        if type(hint).__name__ == "TypeAliasType":
            return self._named(hint, hint.__name__, lambda: self.of(hint.__value__))
        if _is_class(hint) and any(hasattr(hint, mark) for mark in RECORDS):
            return self._named(hint, hint.__name__, lambda: self._record(hint))
        if isinstance(origin, type):
            if origin in (tuple, set, frozenset) or issubclass(list, origin):  # or a Sequence
                return self._array(origin, args)
            if issubclass(dict, origin):  # or a Mapping
                key, value = args or (str, Any)
                if _unwrap(key)[0] not in (str, Any):
                    raise TypeError(f"the keys of a JSON object are strings, not {key!r}")
                values = self.of(value)
                return Shape(without_none(type="object", additionalProperties=values or None))
        # Python < 3.11: the string in list["Node"] stays one
        raise TypeError(f"{hint!r} has no JSON Schema: use a dataclass or a plain type, put it "
                        "into a model, or quote the whole annotation")

    def _array(self, origin: Any, args: tuple[Any, ...]) -> Shape:
        shapes = [self.of(arg) for arg in args if arg is not ...] or [Shape({})]
        words: Schema = {"type": "array", "items": shapes[0]}  # VS Code and Gemini want `items`
        if origin is tuple and args and args[-1] is not ...:
            words.update(minItems=len(args), maxItems=len(args))
            if args.count(args[0]) < len(args):
                words.update(prefixItems=shapes, items={})
        if origin in (set, frozenset):
            words["uniqueItems"] = True
        return Shape(words, None if issubclass(list, origin) else origin)

    def _record(self, cls: Any) -> Shape:
        shape = self.object_shape(_members_of(cls), "member ")
        shape.read = lambda given: cls(**given)
        shape.is_closed = not issubclass(cls, dict)
        return shape

    def object_shape(self, members: list[Member], what: str) -> Shape:
        properties = {}
        for name, hint, default in members:
            if default is None and hint is not Any and self.mode == "serialization":
                hint = Optional[hint]  # `x: int = None` is sent as null
            try:
                properties[name] = shape = self.of(hint)
                refuse_foreign(type(default))
                if hasattr(default, "default_factory"):  # of dataclasses.field(), pydantic.Field()
                    raise TypeError("its default is a field, not a value: move the field into "
                                    "Annotated[], and write the value, if any, after =")
            except (TypeError, SchemaError) as exc:
                raise TypeError(f"{what}{name!r}: {exc}") from None
            # A default that JSON cannot say is left out, and so is None where the annotation does
            # not admit it: `x: int = None`.
            with suppress(*ENCODE_ERRORS):
                value = to_json(default)
                _to_json(value)
                if value is not None or "null" in (_types_in(shape) or {"null"}):
                    shape["default"] = value
        return Shape(without_none(
            type="object", properties=properties,
            required=[name for name, _, default in members if default is EMPTY] or None
        ))

    def _self_described(self, cls: Any) -> Shape | None:
        """Return the shape of a class of pydantic or msgspec."""
        if hasattr(cls, "model_json_schema"):
            schema = cls.model_json_schema(mode=self.mode)
            read = partial(cls.model_validate, strict=False)  # which takes no text for a date
        elif hasattr(cls, "__struct_fields__"):
            structs = sys.modules["msgspec"]
            schema, read = structs.json.schema(cls), partial(structs.convert, type=cls)
        else:
            return None
        shape = self.adopt(schema, schema.pop("$defs", {}))
        shape.read = read
        return shape

    def adopt(self, schema: Schema, classes: Schema) -> Shape:
        """Return a schema that was made elsewhere; its `classes`, or `$defs`, become ours."""

        def ours(words: Schema) -> Shape:  # of each object, the innermost first
            shape = Shape(words)
            if isinstance(words.get("additionalProperties"), bool):  # see Shape.is_closed
                del shape["additionalProperties"]
            # OpenAI's strict mode refuses oneOf. (A property of that name is an object.)
            if classes and isinstance(words.get("oneOf"), list):
                shape["anyOf"] = shape.pop("oneOf")
            name = str(words.get("$ref"))[8:]
            if name not in classes:
                return shape
            del shape["$ref"]
            key = name, _to_json(classes[name])
            return _merged(
                self._named(key, name, lambda: self.adopt(classes[name], classes)), shape)

        return cast("Shape", json.loads(_to_json(schema), object_hook=ours))

    def _named(self, key: Any, name: str, make: Action) -> Shape:
        """Return the shape of a class; a reference if it is large, or contains itself."""
        if key in self.known:
            self.repeated.add(key)
            return self.known[key]
        while name in self.defs:
            name += "_"
        self.defs[name] = Shape({})  # so that no other class takes the name
        self.known[key] = Shape({"$ref": f"#/$defs/{name}"})
        self.defs[name] = shape = make()  # which repeats the key if it contains itself
        if len(_to_json(shape)) <= MAX_INLINE_CHARS and key not in self.repeated:
            self.known[key] = self.defs.pop(name)
        return self.known[key]


def _choice(choices: Sequence[Any]) -> Shape:
    by_text = {canonical(to_json(choice)): choice for choice in choices}
    values = [*map(to_json, by_text.values())]  # without aliases
    kinds = {*map(kind_of, values)}
    schema = without_none(type=kinds.pop() if len(kinds) == 1 else None, enum=values)
    return Shape(schema, lambda value: by_text[canonical(value)])


#: What only records have: dataclasses, NamedTuples, TypedDicts.
RECORDS = "__dataclass_fields__", "_field_defaults", "__required_keys__"


def _members_of(cls: Any) -> list[Member]:
    try:
        hints = get_type_hints(cls, None, {cls.__name__: cls}, include_extras=True)
    except Exception as exc:
        raise TypeError(f"the annotations of {cls.__name__}: {exc}: {REMEDY}") from None
    if not issubclass(cls, dict):
        return [(p.name, hints.get(p.name, Any), p.default)
                for p in inspect.signature(cls).parameters.values()]
    members = []
    for name, hint in hints.items():
        # Where annotations were strings, __required_keys__ knows nothing of NotRequired.
        text = str(hint)
        needed = re.search(r"\bRequired\[", text) or name in cls.__required_keys__
        members.append((name, hint, EMPTY if needed and "NotRequired[" not in text else ...))
    return members


REMEDY = ("define its names at module level, not under TYPE_CHECKING; before Python 3.10, write "
          "Union[A, B] for A | B")


def _resolve(hints: Msg, names: Msg) -> Msg:
    """Return annotations with their strings evaluated, or raise TypeError."""
    found = {}
    for name, hint in hints.items():
        if sys.version_info < (3, 10) and isinstance(hint, str):  # which has no "int | None"
            choices = re.sub(r"[|](?![^[]*])", ",", hint)
            # Union[] cannot take Annotated[] with a dict, which has no hash.
            hint = hint if choices == hint else f"__import__('typing').Union[{choices}]"
        holder = SimpleNamespace(__annotations__={name: hint})
        try:
            found.update(get_type_hints(holder, names, include_extras=True))
        except Exception as exc:
            raise TypeError(f"the annotation of {name!r}: {exc}: {REMEDY}") from None
    return found


def _unwrap(hint: Any) -> tuple[Any, list[Any]]:
    """Strip Annotated, NotRequired, NewType and the like; return the rest, and the notes."""
    notes: list[Any] = []
    while True:
        if hasattr(hint, "__metadata__"):
            hint, notes = hint.__origin__, [*hint.__metadata__, *notes]
        # typing and typing_extensions each have these: names are compared
        elif getattr(get_origin(hint), "_name", "") in ("Required", "NotRequired", "ReadOnly"):
            hint = get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        else:
            return hint, notes


def _mentions(hint: Any, classes: Any) -> bool:
    hint, _ = _unwrap(hint)
    if _is_class(hint):
        return issubclass(hint, classes)
    return any(_mentions(arg, classes) for arg in get_args(hint))


#: Attributes of annotated_types, pydantic.Field and msgspec.Meta, and the keywords that they mean;
#: {} stands for Items, Properties or Length.
NOTES = {
    "title": "title", "description": "description", "documentation": "description",
    "examples": "examples", "deprecated": "deprecated",
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf", "pattern": "pattern", "min_length": "min{}", "max_length": "max{}"
}
#: Keywords that check nothing.
REMARKS = (r"title|description|default|examples?|deprecated|(read|write)Only|format|\$comment|"
           r"content\w+|discriminator|enumNames|x-.*")
#: What a note may ask for and a schema cannot say.
NOT_CARRIED = ("alias validation_alias strip_whitespace to_lower to_upper strict "
               "default_factory").split()


def _keywords_of(note: Any, types: set[str]) -> Schema:
    """Return the keywords that a note in Annotated[] adds to a schema of these types."""
    if isinstance(note, dict):
        for word in note:
            if word not in KEYWORDS and not re.fullmatch(REMARKS, word):
                raise TypeError(f"{word!r} is not a keyword of JSON Schema (a name of your own "
                                "begins with x-)")
        return note
    if isinstance(note, Header):
        return {"x-mcp-header": note.name}
    if isinstance(note, str):
        return {"description": note}
    keywords = {}
    sizes = {"array": "Items", "object": "Properties", "string": "Length"}
    measures = [sizes[kind] for kind in sizes if kind in types] or ["Length"]
    for part in getattr(note, "metadata", ()):  # of pydantic's: notes of annotated_types
        keywords.update(_keywords_of(part, types))
    keywords.update(getattr(note, "json_schema_extra", None) or {})
    if isinstance(getattr(note, "discriminator", None), str):
        keywords["discriminator"] = {"propertyName": note.discriminator}
    for name, word in NOTES.items():
        if (value := getattr(note, name, None)) is not None:
            keywords.update({word.format(measure): value for measure in measures})
    lost = any(getattr(note, name, None) for name in NOT_CARRIED)
    default = repr(getattr(note, "default", ...))
    if not keywords or lost or default not in ("Ellipsis", "PydanticUndefined"):
        raise TypeError(f"{note!r:.200} in Annotated[] is not understood: write a default after =, "
                        'a bound as {"minimum": 1}, and all else in a model')
    return keywords


def _types_in(schema: Schema) -> set[str]:
    """Return the types that a schema admits, any number as "number"; none if it admits all."""
    if "type" in schema:
        return {"number" if kind == "integer" else kind for kind in as_list(schema["type"])}
    parts = [_types_in(part) for part in schema.get("anyOf", ())]
    return set().union(*parts) if all(parts) else set()


def _merged(under: Shape, over: Shape) -> Shape:
    """Return a shape with the keywords of two; `under` reads first."""
    first, second = under.read, over.read
    both = first and second and (lambda value: second(first(value)))
    merged = Shape(under | over, both or first or second)
    merged.is_closed = under.is_closed
    return merged


def _with_notes(shape: Shape, notes: list[Any], hint: Any) -> Shape:
    types, noted = _types_in(shape), Shape({})
    for note in filter(None, notes):
        noted.update(_keywords_of(note, types))
    bounds = {}  # of values that may be texts in JSON: dates, Decimals
    for word in noted.keys() & MEASURES.keys():
        kind, bound = MEASURES[word][0], noted[word]
        if kind == "number" and "string" in types and hint is not str:
            # A bound is read as its values are: the float 0.1 is above the Decimal 0.1.
            read = Validator({"properties": {word: shape}}).read
            bounds.update(read(to_json({word: noted.pop(word)})))
        elif types and kind not in types:
            raise TypeError(f"{word} bounds a {kind}, not {' or '.join(sorted(types))}")
        if kind == "number" and "number" in types:  # the bound may be a Decimal
            noted[word] = bound if type(bound) is int else float(bound)
    noted.read = partial(_bounded, bounds) if bounds else None
    return _merged(shape, noted)


def _bounded(bounds: Msg, value: Any) -> Any:
    """Return a value, or raise SchemaError: no schema says that the text "-5" is too small."""
    for word, bound in bounds.items():
        _, holds, must = MEASURES[word]
        if type(value) not in PLAIN and not holds(value, bound):
            raise SchemaError("", f"must {must.format(bound)}")
    return value


# From a value to its JSON.


def _dumped(model: Any) -> Any:
    refuse_foreign(type(model))
    return model.model_dump(mode="json", by_alias=True)


#: How to make a simpler value of an object that has this attribute.
SIMPLER: dict[str, Function] = {
    "_value_": lambda value: value._value_,  # an Enum, which may also be an int or a str
    "_asdict": operator.methodcaller("_asdict"),  # a NamedTuple
    "__dataclass_fields__": lambda record: {
        field.name: getattr(record, field.name)
        for field in sys.modules["dataclasses"].fields(record)},
    "model_dump": _dumped,  # pydantic
    "__struct_fields__": lambda value: sys.modules["msgspec"].to_builtins(value),
    "isoformat": operator.methodcaller("isoformat"),
    "keys": dict  # sqlite3.Row
}


def to_json(value: Any) -> JSON:
    """Return a Python value as JSON; TypeError for one that has none."""
    cls = type(value)
    if cls in PLAIN:
        return value
    if isinstance(value, Mapping):
        return {key if type(key) is str else str(to_json(key)): to_json(item)
                for key, item in value.items()}
    for mark, simplify in SIMPLER.items():
        if hasattr(value, mark) and not isinstance(value, type):
            return to_json(simplify(value))
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (Sequence, set, frozenset)):
        found = [to_json(item) for item in value]
        if not isinstance(value, Sequence):
            with suppress(TypeError):  # an order that repeats, for caches and tests
                found.sort()
        return found
    if _text_shape(cls):
        return str(value)
    refuse_foreign(cls)
    raise TypeError(f"{cls.__name__} has no JSON form: convert it first; raise an exception, await "
                    "a coroutine, make a list of a generator")


def text_for(value: Any) -> str:
    value = to_json(value)
    return value if isinstance(value, str) else _to_json(value)

####
# 12. Functions
#
# Problem. `def add(a: int, b: int = 0)` is called with {"a": 1}. What its author wrote for people
#   about `a` is what a model needs to know.
# Rules.
#   1. What partial() has bound is not for the model, nor is the context.
#   2. A function or an option that cannot work is refused where its author writes it.
# Limits. JSON names every argument: no *args, no parameters before "/".

CONTEXT_NAME = "ctx"  # a parameter of this name needs no annotation to take the context


def read_docstring(text: str) -> tuple[str, Fields]:
    """Return a docstring without its "Args:", and the description of each parameter.

    A block with anything else in it stays in the docstring, too.

    >>> read_docstring("Add.\\n\\nArgs:\\n    a (int): the first\\n    b - the\\n        second")
    ('Add.', {'a': 'the first', 'b': 'the second'})
    """
    entry = (
        r"(?m)^\*{0,2}(\w+)[ \t]*(?:\(.*?\))?(?::|[ \t]+[-\u2013\u2014]{1,2}[ \t])"
        r"(.*(?:\n[ \t]+.*|\n[ \t]*$)*)"
    )
    args = r"(?m)^(?:Args|Arguments|Parameters|Params):[ \t]*\n((?:[ \t]+\S.*(?:\n|\Z)|[ \t]*\n)+)"
    text = inspect.cleandoc(text)
    block = re.search(args, text)
    if not block:
        return text, {}
    body = inspect.cleandoc("\n" + block[1])
    if not re.sub(entry, "", body).strip():
        text = re.sub(r"\n{3,}", "\n\n", text.replace(block[0], "")).strip()
    return text, {name: " ".join(words.split()) for name, words in re.findall(entry, body)}


def _inner_function(fn: Any) -> tuple[Any, set[str]]:
    """Return what partials, wrappers and objects call in the end, and the names they bind."""
    bound = set()
    for _ in range(100):  # objects that invent attributes have no end
        if isinstance(fn, partial):
            bound |= {*fn.keywords}
            fn = fn.func
        elif hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        elif inspect.isroutine(fn) or isinstance(fn, type):
            break
        else:
            fn = type(fn).__call__
    return fn, bound


#: Names of other libraries, and what to write here. examples/porting has all of them.
ELSEWHERE = {name: here for names, here in re.findall("(.+?): (.+)", """
FastMCP MCPServer: Server
ClientSession stdio_client sse_client streamablehttp_client streamable_http_client: Client
StdioServerParameters StreamableHttpTransport: Client
stdio_server run_async: app.run(), app.serve_stdio() or app.serve_http()
list_tools call_tool: @app.tool, or add_tool(input_schema=); in a test, async with Client(app)
list_resources: @app.resource
list_resource_templates: @app.resource; in a client, list_templates()
list_prompts: @app.prompt
read_resource: @app.resource
get_prompt: @app.prompt
custom_route: @app.route("GET", "/path")
Middleware middleware add_middleware: @app.middleware
mount import_server: app.include
http_app sse_app streamable_http_app: app.asgi, or app.asgi_with(path=)
get_context Depends: a parameter ctx: Context
request_context lifespan_context: ctx.lifespan
session: ctx.log, ctx.elicit, ctx.sample, ctx.roots, app.tools_changed, or the Client itself
client_id: ctx.owner
get_access_token: ctx.principal
get_state set_state session_id: ctx.state
list_roots: ctx.roots
fastmcp: ctx.server
message: ctx.params
types TextContent ImageContent CallToolResult ToolResult ElicitResult: a dict, as on the wire
Completion EmbeddedResource ReadResourceContents ResourceLink: a dict, as on the wire
File: Resource(uri, data=)
ToolAnnotations: annotations={...}, a dict
UserMessage AssistantMessage PromptMessage: Message
McpError ErrorData: RPCError to raise it, RemoteError to catch it
ResourceError PromptError: ToolError
AccessToken: Principal
AuthSettings TokenVerifier StaticTokenVerifier: token=, verify= or auth=Guard(...)
BearerAuth: token=
initialize: async with Client(...)
send_ping: ping()
subscribe_resource: client.subscribe(uri); a server keeps its subscribers
unsubscribe_resource: close() of the subscription
NotificationOptions InitializationOptions create_initialization_options: app.run() alone
elicitation_callback elicitation_handler: elicit=
sampling_callback sampling_handler: sample=
logging_callback log_handler: log=
progress_callback progress_handler: progress=
list_roots_callback: roots=
message_handler: @client.on(method)
read_timeout_seconds: timeout=
raise_on_error: call(), which raises ToolError, or call_tool(), and look at isError
response_type requestedSchema: wanted=
schema: wanted= or input_schema=
system_prompt: system=
logger_name: logger=
progress: ctx.report_progress
mask_error_details: mask_errors=
structured_output: structured=
stateless_http: sessions=False
rate_limit: Server(rate_limit=)
initialize_result: server_info and server_capabilities
get_tools: app.tools, or list_tools() of a client
is_connected: lost is None
include_tags exclude_tags enabled: a middleware
exclude_args: functools.partial(fn, name=value)
tags: meta=
""") for name in names.split()}


def no_such(what: str, name: str, there: Collection[str], listed: Any = None) -> str:
    """Return "no option 'titel'; did you mean title?"; `listed` are shown if none is near."""
    import difflib

    if what in "attribute, name, option" and name in ELSEWHERE:
        return f"no {what} {name!r}; write {ELSEWHERE[name]}"
    words = {each.strip("-"): each for each in there}
    near = difflib.get_close_matches(name.strip("-"), words, 1, 0.75)
    every = f"available: {', '.join(listed or there)[:1000] or 'none'}"
    return f"no {what} {name!r}; {f'did you mean {words[near[0]]}?' if near else every}"


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Say what to import in place of a name of another library, such as FastMCP."""
        if name in ELSEWHERE:
            raise ImportError(f"{__name__} has {no_such('name', name, ())}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:  # what Python suggests for a wrong name
        return __all__


class Findable:
    """Its AttributeError lists what its class has: most attributes of instances are internal."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            known = dir(self)
            if name in known:  # a property, which failed
                return object.__getattribute__(self, name)
            known = [each for each in known if each[0] != "_"]
            listed = [each for each in known if hasattr(type(self), each)]
            error: Any = AttributeError(
                f"{type(self).__name__}: {no_such('attribute', name, known, listed)}")
            error.name = ""  # else Python adds a name of its own
            raise error


def check_options(use: str, given: Iterable[str], *makers: Function) -> None:
    there = dict.fromkeys(p.name for make in makers
                          for p in inspect.signature(make).parameters.values()
                          if p.default is not p.empty)
    for name in given:
        if name not in there:
            raise TypeError(f"{use}: {no_such('option', name, there)}")


def check_function(
    use: str, fn: Any, *names: str,
    bind: Function = lambda fn, *values: inspect.signature(fn).bind(*values)
) -> None:
    if not callable(fn):
        raise TypeError(
            f"{use} must be a function of ({', '.join(names)}), not {type(fn).__name__}")
    try:
        bind(fn, *names)
    except ValueError:  # some functions of C do not say what they take
        pass
    except TypeError:
        raise TypeError(f"{use} is called with ({', '.join(names)}), but takes "
                        f"{inspect.signature(fn)}") from None


def check_name(method: Any) -> None:
    if not isinstance(method, str):
        raise TypeError(f'@on() and @method() take the name of a method, not {method!r:.100}')


def check_numbers(**options: Any) -> None:
    for name, value in options.items():
        if not isinstance(value, (int, float)) or not value >= 0:  # or NaN
            raise ValueError(f"{name}={value!r:.100}: must be a number >= 0")


def check_parameters(use: str, names: Iterable[str], own: Schema) -> None:
    """Raise TypeError unless these names can call a function; `own` is its schema."""
    lost = {*names}.difference(own["properties"])
    needed = {*own.get("required", ())}.difference(names)
    if lost or needed:
        raise TypeError(f"{use}: missing in the function: {sorted(lost) or 'none'}; never passed "
                        f"to it: {sorted(needed) or 'none'}")


class Signature:
    """How a function is called with JSON; TypeError if JSON cannot call it."""

    context = ""  # the parameter that takes the Context, of class `hidden`
    whole = ""  # the parameter that takes all arguments as one dict

    def __init__(self, fn: Function, hidden: type, schema: Schema | None = None):
        inner, self.bound = _inner_function(fn)
        if not (schema is None or isinstance(schema, dict)
                and schema.get("type", "object") == "object"):
            raise TypeError(f"input_schema={schema!r:.100}: must be a dict of type object")
        try:
            own = self._own_shape(fn, inner, hidden, schema)
        except (TypeError, ValueError, NameError) as exc:
            name = getattr(inner, "__qualname__", repr(fn))
            raise TypeError(f"{name}(): {exc}") from None
        of_class = fn.__doc__ if inner.__name__ == "__call__" else ""
        self.description, described = read_docstring(inner.__doc__ or of_class or "")
        for name, words in described.items():
            own["properties"].get(name, {}).setdefault("description", words)
        # spec: server/tools#tool, and `inputSchema: { type: "object" }` in schema.ts
        self.schema: Schema = own if schema is None else {"type": "object", **schema}
        self._validator = Validator(self.schema)
        self._own = None if schema is None else Validator(own)  # reads; `schema` only checks

    def _own_shape(self, fn: Function, inner: Any, hidden: type, schema: Schema | None) -> Shape:
        signature = inspect.signature(fn)
        given = without(signature.parameters, *self.bound)
        hints = {name: p.annotation for name, p in given.items()}
        hints["return"] = signature.return_annotation
        hints = _resolve(hints, {hidden.__name__: hidden, **getattr(inner, "__globals__", {})})
        self.returns = hints["return"]  # EMPTY if there is none
        shapes, members = Shapes(), []
        rest = None  # the shape of **kwargs
        for name, p in given.items():
            hint = hints[name]
            if name == "self":
                raise TypeError("register the method of an object: app.add_tool(K().method)")
            if isinstance(p.default, bool) and hint is EMPTY and schema is None:
                hint = bool  # else the text "no" is true
            if p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY):
                remedy = (f"a list in place of *{name}" if p.kind is p.VAR_POSITIONAL
                          else f"no `/` after {name!r}")
                raise TypeError(f"JSON names every argument: write {remedy}")
            if p.kind is p.VAR_KEYWORD:
                rest = shapes.of(hint)
            elif (name, hint) == (CONTEXT_NAME, EMPTY) or _mentions(hint, hidden):
                self.context = name
            else:
                members.append((name, hint, p.default))
        own = shapes.object_shape(members, "parameter ")
        own.is_closed = rest is None and schema is None
        if rest:
            own["additionalProperties"] = rest
        if schema is not None:  # that one says which arguments there must be
            named = schema.get("properties", {})
            if rest is None:
                # A single parameter that it does not name takes all.
                if len(members) == 1 and members[0][0] not in named:
                    self.whole = members[0][0]
                elif "properties" in schema:
                    check_parameters("input_schema=", named, own)
            own.pop("required", None)
        return shapes.complete(own)

    def convert(self, given: Schema, context: Any) -> Schema:
        """Return the arguments as the function takes them; SchemaError if they do not fit."""
        for name in self.bound:  # else **kwargs would let a caller replace it
            if name in given and not self.whole:
                raise SchemaError(join_path(name), "unexpected property")
        if self.context:  # a copy: a function that asks may change it, and the request must not
            given = to_json(given)
        given = self._validator.read(given, True)
        if self.whole:
            given = {self.whole: given}
        if self._own:
            given = self._own.read(given)
        return {**given, self.context: context} if self.context else given

####
# 13. URI templates
#
# Problem. "note://{name}" names a family of resources. A stranger's URI becomes values, with which
#   a handler may open files.
# Rules.
#   1. A template is a regular expression with one way to match: CVE-2026-0621 made a server hang by
#      a URI that backtracks.
#   2. Values are percent-decoded once, after matching.
#   3. No value leads out of the folder that a handler joins it to: none has a part "..", begins
#      with a slash or a drive ("C:/"), or has a hidden character; `{name}` has no slash, escaped or
#      not. Only `file://{+path}` gives absolute paths.
# Limits. `{#x} {;x} {&x} {/x} {.x} {a,b} {x:3}` are refused. Symbolic links, "~" and names that
#   Windows reserves ("NUL") are left to the handler that opens files.


def percent_encode(text: str) -> str:
    """Return a part of a URI in its one spelling (RFC 3986 §6.2.2): it escapes what it must."""
    from urllib.parse import quote, unquote_to_bytes

    # RFC 3986 §2, and "%", which begins an escape
    text = quote(text, safe="-._~!$&'()*+,;=:@/?#[]%", errors="surrogatepass")
    return re.sub("%[0-9A-Fa-f]{2}", lambda x: quote(unquote_to_bytes(x[0]), safe=""), text)


def canonical_uri(uri: str) -> str:
    """Return the one spelling of a URI; its host keeps its case, for it may be a name."""
    if len(uri) > MAX_URI_CHARS:
        return uri
    scheme, colon, rest = uri.partition(":")
    return scheme.lower() + colon + percent_encode(rest)


def percent_decode(text: str) -> str:
    """Decode the escapes of a text, once; ValueError for a bad escape, or bad UTF-8."""
    from urllib.parse import unquote_to_bytes

    if re.search("%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(f"a percent sign without two hexadecimal digits in {text!r}")
    return unquote_to_bytes(text).decode()


_NAME = "[A-Za-z_][A-Za-z0-9_]*"
# A template: text and variables, no two of them side by side, and perhaps a query.
_VARIABLE = rf"\{{(\+?{_NAME}\*?)\}}"
_TEMPLATE = (rf"(?P<path>[A-Za-z][A-Za-z0-9+.-]*:([^{{}}]|{_VARIABLE}(?!\{{[^?]))*)"
             rf"(\{{\?(?P<query>{_NAME}(,{_NAME})*)\}})?")


class Template:
    """A URI template; `names` are its variables, which can be parameters in Python.

    {name}           one or more characters without a slash
    {+path} {path*}  also with slashes; one of these per template
    {?q,lang}        query parameters at the end, in any order, each may be absent

    `{name}` ends at the first character of the text behind it, but for the last variable; the deep
    one takes as much as it can.

    >>> Template("file:///{path*}/{name}.txt").match("file:///etc/conf.d/my%20app.txt")
    {'path': 'etc/conf.d', 'name': 'my app'}
    >>> Template("note://{name}").match("note://..%2Fetc%2Fpasswd") is None
    True
    """

    def __init__(self, text: str):
        form = re.fullmatch(_TEMPLATE, text)
        path, query = form.group("path", "query") if form else ("", "")
        #: literals in turn with variables: a name, "+name" or "name*"
        pieces = re.split(_VARIABLE, path)
        literals = [canonical_uri(pieces[0]), *map(percent_encode, pieces[2::2])]
        variables = [piece.strip("+*") for piece in pieces[1::2]]
        self.query = query.split(",") if query else []
        self.names = variables + self.query
        self.deep = [name for name in variables if name not in pieces[1::2]]  # had + or *
        twice = len({*self.names}) < len(self.names)
        if not form or twice or len(self.deep) > 1 or self.query and "?" in path:
            raise ValueError(
                f"URI template {text!r}: begin with a scheme, like note://{{name}}; write {{name}} "
                "and at most one {+path} or {path*}, each name once, with text between them; and "
                "{?a,b} at the end, without another question mark")
        # RFC 8089 §2: the path of a file URI is absolute.
        self.absolute = literals[0] in ("file:", "file://") and len(variables) == 1
        expression = re.escape(literals[0])
        for name, literal in zip(variables, literals[1:]):
            stop = "" if name == variables[-1] else re.escape(literal[:1])
            inside = ".+" if name in self.deep else f"[^/?#{stop}]+"
            expression += f"({inside}){re.escape(literal)}"
        self.path = re.compile(expression, re.DOTALL)
        self.start = literals[0]

    def match(self, uri: str) -> Fields | None:
        """Return the decoded values by name; None if `uri`, a canonical one, is not of it."""
        path, _, query = uri.partition("?") if self.query else (uri, "", "")
        # Most URIs differ at the start; a pattern takes three times as long.
        if not (uri.startswith(self.start) and len(uri) <= MAX_URI_CHARS
                and (found := self.path.fullmatch(path))):
            return None
        with suppress(ValueError):
            pairs = [pair.partition("=") for pair in query.split("&")] if query else []
            asked = {name: percent_decode(value) for name, _, value in pairs}
            if len(asked) == len(pairs) and asked.keys() <= {*self.query}:
                values = dict(zip(self.names, map(percent_decode, found.groups()))) | asked
                if all(map(self._is_safe, values, values.values())):
                    return values
        return None

    def _is_safe(self, name: str, value: str) -> bool:
        path = value.replace("\\", "/")
        if re.search(rf"[\t\n]|{HIDDEN}|(^|/) *\.\. *(/|$)", path):  # to Windows, ".. " is ".."
            return False
        # "C:a" has a drive on Windows only.
        if os.path.splitdrive(value)[0] or re.match("([A-Za-z]:)?/", path):
            return self.absolute and name in self.deep
        return name in self.deep + self.query or value != "." and "/" not in path

####
# 14. Content and forms
#
# Problem. Authors return texts, images and records; the wire wants content blocks. And the user
#   fills in a form: `bool` becomes {"properties": {"value": {"type": "boolean"}}, ...}.
# Rules.
#   1. A content block is a dict as on the wire. Image, Audio, Resource and Link make one. A list is
#      content only if one of its items is a block.
#   2. A form has what every client can show: flat fields of primitive types. A field that may be
#      None is not required.
# Limits. A block that is a dict is sent as it is, complete or not. Older clients know no titles of
#   choices.

__all__ += ["Image", "Audio", "Resource", "Link", "Message", "Elicited"]

#: The keyword arguments that describe an entry.
PROMPT_FIELDS = ("title", "description", "icons", "meta")
TOOL_FIELDS = (*PROMPT_FIELDS, "annotations")
RESOURCE_FIELDS = (*TOOL_FIELDS, "mime_type", "size")
#: The members of `annotations`; those of anybody else have a prefix: "shop.example/red".
ANNOTATIONS = ("title readOnlyHint destructiveHint idempotentHint openWorldHint audience priority "
               "lastModified").split()


@lru_cache
def _field_types() -> Validator:
    text, hint = {"type": "string"}, {"type": "boolean"}
    return Validator({"properties": {
        "title": text, "description": text, "mime_type": text, "meta": {"type": "object"},
        "size": {"type": "integer"}, "icons": {"type": "array", "items": {"type": "object"}},
        "annotations": {"properties": {name: hint for name in ANNOTATIONS if "Hint" in name}}
    }})


def wire_fields(made: object, fields: Msg, accepted: Sequence[str]) -> Msg:
    """Return keyword arguments under their names on the wire: mime_type is mimeType."""
    options = [*accepted, *(type(made).__init__.__kwdefaults__ or ())]
    annotations = fields.get("annotations") or {}
    refuse_foreign(type(annotations))
    for kind, given, known in (
        ("option", fields, options), ("annotation", annotations, ANNOTATIONS)
    ):
        for name in given:
            if name not in known and "/" not in name:
                raise TypeError(f"{type(made).__name__}: {no_such(kind, name, known)}")
    # A model that was dumped has null for what is absent.
    told = json.loads(_to_json(fields), object_hook=lambda held: without_none(**held))
    try:
        _field_types().check(told)
    except SchemaError as exc:
        raise TypeError(f"{type(made).__name__}: {exc}") from None
    return without_none(**without(told, "mime_type", "meta"), mimeType=told.get("mime_type"),
                        _meta=fields.get("meta"))


class Content(Msg):
    """A content block of a result."""


class Image(Content):
    """An image in a result: Image(data, format="png") or Image(path="plot.png")."""

    kind, usual = "image", "png"

    def __init__(
        self, data: bytes | None = None, *, path: StrPath | None = None,
        format: str | None = None, mime_type: str | None = None, **fields: Any
    ):
        if isinstance(data, str):
            raise TypeError(f"expected bytes, got {data!r:.100}: pass the name of a file as path=")
        if data is None:
            with open(path, "rb") as file:  # type: ignore[arg-type]
                data = file.read()
        suffix = (format or os.path.splitext(path or "")[1][1:]).lower().rpartition("/")[2]
        suffix = {"jpg": "jpeg", "mp3": "mpeg", "svg": "svg+xml"}.get(suffix, suffix)
        super().__init__(
            type=self.kind, data=base64.b64encode(data).decode(),
            mimeType=mime_type or f"{self.kind}/{suffix or self.usual}",
            **wire_fields(self, fields, ("annotations", "meta"))
        )


class Audio(Image):
    """A sound in a result: Audio(data, format="wav") or Audio(path="hello.wav")."""

    kind, usual = "audio", "wav"


class Resource(Content):
    """The contents of a resource, in a result: Resource("file:///a.txt", "text")."""

    def __init__(
        self, uri: str, text: str | None = None, data: bytes | None = None, *,
        mime_type: str | None = None, annotations: Msg | None = None, meta: Msg | None = None
    ):
        if text is None and data is None:
            raise TypeError(f"Resource({uri!r}): pass text= or data=")
        (contents,) = contents_of(uri, text if data is None else data, mime_type)
        super().__init__(without_none(
            type="resource", resource=without_none(**contents, _meta=meta), annotations=annotations
        ))


class Link(Content):
    """A pointer to a resource, in a result: Link("file:///a.txt", "a.txt")."""

    def __init__(self, uri: str, name: str | None = None, **fields: Any):
        super().__init__(type="resource_link", uri=uri, name=name or uri,
                         **wire_fields(self, fields, RESOURCE_FIELDS))


class Message(Msg):
    """One message of a prompt: Message("text"), Message(Image(...), role="assistant")."""

    def __init__(self, content: Any, role: str = "user"):
        if role not in ("user", "assistant"):
            raise SchemaError("role", f'must be "user" or "assistant", not {role!r:.40}')
        super().__init__(role=role, content=blocks_of(content))


#: The URI of bytes in a result: a resource must have one.
BYTES_URI = "result:bytes"
#: The types of content blocks; the member, and its class, that tell one from other data.
BLOCKS = {
    "text": ("text", str), "image": ("data", str), "audio": ("data", str),
    "resource": ("resource", dict), "resource_link": ("uri", str), "tool_use": ("input", dict),
    "tool_result": ("content", list)
}


def _is_block(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    member, cls = BLOCKS.get(str(value.get("type")), ("", None))
    return type(value.get(member)) is cls


def blocks_of(value: Any) -> list[Msg]:
    """Return the value of a handler as content blocks; bytes become a resource."""
    if value is None:
        return []
    if isinstance(value, (bytes, bytearray)):
        return [Resource(BYTES_URI, data=bytes(value))]
    if _is_block(value):
        return [value]
    if isinstance(value, (list, tuple)) and any(map(_is_block, value)):
        return [block for item in value for block in blocks_of(item)]
    return [{"type": "text", "text": text_for(value)}]


def messages_of(value: Any, together: bool = False) -> list[Msg]:
    """Return texts, content, Messages or dicts as messages: one per block, unless `together`."""
    messages = []
    for item in as_list(value):
        if not (isinstance(item, dict) and "role" in item):
            item = {"role": "user", "content": item}
        blocks = Message(item["content"], item["role"])["content"]
        contents = [blocks] if together and len(blocks) > 1 else blocks
        messages += [{**item, "content": each} for each in contents]
    return messages


def output_of(annotation: Any) -> tuple[Schema | None, bool]:
    """Return the schema of a tool's `structuredContent`, and whether that wraps the value.

    That is always an object: anything else becomes {"result": value}. No annotation, None, Any,
    bytes and content have no schema; nor has a bare list, which is wrapped unless it is content.
    """
    if _mentions(annotation, (bytes, bytearray, Content, Message)):
        return None, False
    schema = json.loads(_to_json(shape_of(annotation, "serialization")))  # without readers
    bare = without(schema, "title", "description")
    if bare in ({}, {"type": "null"}, {"type": "array", "items": {}}):
        return None, "items" in bare
    if schema.get("type") == "object":
        return schema, False
    defs = schema.pop("$defs", None)
    return without_none(
        type="object", properties={"result": schema}, required=["result"], **{"$defs": defs}), True


def check_question(method: str, params: Msg) -> None:
    if method != "elicitation/create":
        return
    if params.get("mode") != "url":
        if type(params.get("requestedSchema")) is not dict:
            raise SchemaError("requestedSchema", "expected object")
    # spec 2025-11-25: client/elicitation#url-mode-elicitation-requests -- "a valid URL"
    elif not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#]\S*", str(params.get("url"))):
        raise SchemaError("url", f"expected an absolute URL, got {show_json(params.get('url'))}")


def _is_contents(value: Any) -> bool:
    if isinstance(value, dict) and value.keys() <= {"uri", "mimeType", "text", "blob", "_meta"}:
        return "uri" in value and ("text" in value or "blob" in value)
    return isinstance(value, Resource)


def contents_of(uri: str, value: Any, mime_type: str | None) -> list[Msg]:
    """Return the value of a resource's function as the `contents` of resources/read."""
    if isinstance(value, (list, tuple)) and any(map(_is_contents, value)):
        return [contents for item in value for contents in contents_of(uri, item, mime_type)]
    if _is_contents(value):
        return [value.get("resource", value)]
    if isinstance(value, os.PathLike):
        return read_file(value, uri, mime_type)
    if isinstance(value, Image):
        usual, held = value["mimeType"], {"blob": value["data"]}
    elif isinstance(value, (bytes, bytearray)):
        usual, held = "application/octet-stream", {"blob": to_json(value)}
    else:
        is_text = isinstance(value := to_json(value), str)
        usual = "text/plain" if is_text else "application/json"
        held = {"text": value if is_text else _to_json(value)}
    return [{"uri": uri, "mimeType": mime_type or usual, **held}]


def not_found(uri: str) -> RPCError:
    # spec 2025-11-25: server/resources#error-handling
    return RPCError(RESOURCE_NOT_FOUND, f"Resource not found: {uri}", {"uri": uri})


def read_file(path: Any, uri: str, mime_type: str | None) -> list[Msg]:
    """Return the contents of a file as those of a resource: text if it is UTF-8."""
    from mimetypes import guess_type

    try:
        with open(path, "rb") as file:
            data: Any = file.read()
    except FileNotFoundError as exc:
        logger.warning("%s: %s", uri, exc)
        raise not_found(uri) from exc
    with suppress(UnicodeDecodeError):
        data = data.decode()
    return contents_of(uri, data, mime_type or guess_type(path)[0])


Wanted = TypeVar("Wanted")


class Elicited(Row, Generic[Wanted]):
    """The user's answer: `data` is None unless `action` is "accept"; without a form it is True."""

    action: str
    data: Wanted | None = None

    def __bool__(self) -> typing.NoReturn:  # a user who declined has answered, too
        raise TypeError("an answer is neither true nor false: use its .data or .action")


#: The member that the answer to a question must have.
ANSWERS: dict[str, Msg] = {
    "roots/list": {"roots": {"type": "array", "items": {"type": "object"}}},
    "sampling/createMessage": {"content": {"type": ["object", "array"]}},
    "elicitation/create": {"action": {"enum": ["accept", "decline", "cancel"]}}
}


def check_answer(method: str, answer: Msg) -> Any:
    """Return the answer to a question; SchemaError if it is not one."""
    wanted = ANSWERS[method]
    return Validator({"properties": wanted, "required": [*wanted]}).read(answer)


# spec: client/elicitation#requested-schema
FORM_TYPES = ("string", "number", "integer", "boolean", "array")
FORM_FORMATS = ("email", "uri", "date", "date-time")
FORM_WORDS = ("type title description default enum enumNames oneOf items format pattern minLength "
              "maxLength minimum maximum minItems maxItems").split()


def _form_field(name: str, field: Shape) -> Shape:
    """Return the shape of a field without None; TypeError if no form can ask for it."""
    options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        field = _merged(options[0], field)
        del field["anyOf"]
    choices = field.get("enum", [""])  # any text
    if field.get("type") == "array":
        items = field.get("items", {})
        choices = items.get("enum") or [part.get("const") for part in items.get("anyOf", ())]
    if field.get("type") not in FORM_TYPES or {*map(type, choices)} != {str}:
        raise TypeError(f"a form cannot ask for {name!r}: its fields are str, int, float, "
                        "bool, date, a Literal or Enum of str, or a list of such a Literal")
    return field


def form_of(wanted: Any) -> tuple[Msg, Function]:
    """Return the form for what elicit() wants, and what makes an Elicited of an ElicitResult."""
    if wanted is None:
        shape = Shape({"properties": {}}, lambda content: True)
    elif isinstance(wanted, (list, tuple)):
        shape = _choice(wanted)
    else:
        shape = Shapes().adopt(wanted, {}) if isinstance(wanted, dict) else shape_of(wanted)
    if "properties" not in shape:
        shape = Shape({"properties": {"value": shape}, "required": ["value"]},
                      operator.itemgetter("value"))
    given = shape["properties"].items()
    nullable = [name for name, field in given if {"type": "null"} in field.get("anyOf", ())]
    fields = {name: _form_field(name, field) for name, field in given}
    shown = {name: {word: value for word, value in field.items() if word in FORM_WORDS
                    and value is not None and (word != "format" or value in FORM_FORMATS)}
             for name, field in fields.items()}
    required = [name for name in shape.get("required", ()) if name not in nullable]
    schema = without_none(type="object", properties=shown, required=required or None)
    make = shape.read or dict
    checked = Validator(Shape(
        {**schema, "properties": fields},
        lambda content: make(dict.fromkeys(nullable) | content))).read

    def read(answer: Msg) -> Elicited[Any]:
        action = check_answer("elicitation/create", answer)["action"]
        if action != "accept":
            return Elicited(action)
        content = object_of(answer, "content")
        filled = {name: content.get(name, field.get("default")) for name, field in shown.items()}
        return Elicited(action, checked(without_none(**filled)))  # some write null for absent

    return schema, read


def check_hints(hints: Msg) -> Msg:
    """Return {"ttlMs"?, "cacheScope"?}; ValueError if they are wrong."""
    ms, scope = hints.get("ttlMs", 0), hints.get("cacheScope", "private")
    # spec: server/utilities/caching#time-to-live-ttl-field
    if type(ms) is not int or ms < 0 or scope not in ("public", "private"):
        raise ValueError(f"ttl_ms={ms!r}, cache_scope={scope!r}: ttl_ms must be an int >= 0, "
                         'cache_scope "public" or "private"')
    return hints


def adapt_result(method: str, result: Msg, rev: str) -> Msg:
    """Return the result of a method as `rev`, of the legacy era, knows it."""
    result = {**result}
    if method == "tools/list":
        # spec 2025-11-25: schema#tool -- "Currently restricted to type: "object" at the root level"
        result["tools"] = [tool if object_of(tool, "outputSchema").get("type") == "object"
                           else without(tool, "outputSchema") for tool in result["tools"]]
    if method == "tools/call":
        if not isinstance(result.get("structuredContent", {}), dict):
            del result["structuredContent"]
        if "content" in result:
            result["content"] = [adapt_content(x, rev) for x in result["content"]]
    if method == "prompts/get":
        result["messages"] = [adapt_message(x, rev) for x in result["messages"]]
    if method == "resources/read":
        result = without(result, "ttlMs", "cacheScope")
    return result


def adapt_question(method: str, params: Msg, rev: str) -> Msg:
    if method == "sampling/createMessage":
        return {**params, "messages": [adapt_message(x, rev) for x in params["messages"]]}
    fields = object_of(object_of(params, "requestedSchema"), "properties")
    if rev < RICH and any(object_of(fields, name).get("type") == "array" for name in fields):
        raise CapabilityMissing("client", "elicitation.form",
                                f"a client of revision {rev} cannot choose several values")
    if params.get("mode") == "url":
        if rev >= MODERN:  # the response to the call says that the user is done
            return without(params, "elicitationId")
        return {"elicitationId": os.urandom(16).hex(), **params}
    return params

####
# 15. Rounds
#
# Problem. A modern server sends no requests. A tool that must ask "Delete a.txt?" ends its request
#   with the question. The client sends the request again with the answer, and the tool runs again
#   from the top.
# Rules.
#   1. An answer counts only for the question that it was given to, by a digest of method and
#      parameters. Else a yes to a.txt could delete b.txt.
#   2. once() keeps the result of what must not happen twice, by function and arguments.
#   3. The record of both travels through the client in `requestState`, signed with the request and
#      the principal: any replica with the key can serve the next round.
# Limits. The client can read the record, which is good for 15 minutes, and 256 KiB long at most.
#
# A tool that calls a function once, and then asks, takes two rounds:
#
#     async def move(name: str, ctx: Context) -> str:
#         slot = await ctx.once(reserve, name)
#         sure = await ctx.elicit(f"Take slot {slot}?", bool)
#         return "moved" if sure.data else "left alone"
#
#     client                                     server
#     tools/call {"name": "move", ...}   ---->   Run 1. reserve() is called and returns 7.
#                                                "Take slot 7?" has no answer: the run ends.
#                                        <----   input_required
#                                                  inputRequests {"elicitation": {
#                                                    "method": "elicitation/create", "params": {
#                                                      "message": "Take slot 7?", ...}}}
#                                                  requestState  kept  reserve() 7
#                                                                asked elicitation
#     The user says yes.
#     tools/call {"name": "move", ...    ---->   Run 2. reserve() is not called: 7, from the record.
#       inputResponses {"elicitation": {         "Take slot 7?": true, from this request.
#         "action": "accept",
#         "content": {"value": true}}}
#       requestState   as it came        <----   complete: "moved"
#
# A second question would end run 2. Its record would keep the first answer, for run 3.


class Journal:
    def __init__(self, record: Msg, responses: Msg):
        #: the client cannot choose it
        self.call_id = record.get("call") or os.urandom(16).hex()
        #: answers, by name and digest of the question; results, by call_key()
        # spec: basic/patterns/mrtr#error-handling -- a response without a question is ignored
        self.kept: Msg = {f"{name} {digest}": responses[name]
                          for name, digest in record.get("asked", {}).items()
                          if isinstance(responses.get(name), dict)} | record.get("kept", {})
        self.questions: Msg = {}  # of this round: any ends this run
        self.names: set[str] = set()  # which this run has used

    def claim(self, name: str) -> str:
        """Return a name that this run has not used: "roots", then "roots-2"."""
        free, number = name, 1
        while free in self.names:
            number += 1
            free = f"{name}-{number}"
        self.names.add(free)
        return free

    def answer(self, name: str, question: Msg, read: Function) -> Any:
        """Return the answer to this very question, as `read` makes it, or raise Suspended."""
        name = self.claim(name)
        key = f"{name} {digest_of(**question)}"
        if key in self.kept:
            with suppress(SchemaError):
                return read(to_json(self.kept[key]))  # a copy: the record must not change
            del self.kept[key]
        # spec: basic/patterns/mrtr#error-handling -- missing information is requested again
        self.questions[name] = question
        raise Suspended

    def record(self) -> Msg:
        asked = {name: digest_of(**question) for name, question in self.questions.items()}
        return {"call": self.call_id, "asked": asked, "kept": self.kept}


def call_key(fn: Any, args: Sequence[Any]) -> str:
    """Return the key of a call of once(): "module.function(digest of its arguments)"."""
    while isinstance(fn, partial):
        fn, args = fn.func, (*fn.args, fn.keywords, *args)
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    shown = []
    for value in args:
        try:
            shown.append(to_json(value))
        except ENCODE_ERRORS:  # a connection, say
            shown.append(type(value).__qualname__)
    return f"{named.__module__}.{named.__qualname__}({digest_of('', {'': shown})[:16]})"


def digest(data: bytes, bits: str = "256") -> bytes:
    import hashlib

    return hashlib.new(f"sha{bits}", data).digest()


def digest_of(method: str, params: Msg) -> str:
    """Return a digest of a method and its parameters, without those that change between rounds."""
    text = json.dumps([method, without(params, "_meta", "inputResponses", "requestState")],
                      sort_keys=True)
    return digest(text.encode()).hex()[:32]


def seal(sign: Function, record: Msg) -> str:
    """Return a requestState, with the MAC that `sign` makes."""
    # spec: basic/patterns/mrtr#server-requirements-basic-workflow -- "MUST protect its integrity"
    payload = {"expires": int(time.time() + STATE_SECONDS), "record": record}
    body = base64.urlsafe_b64encode(_to_json(payload).encode(errors="replace"))
    text: str = (body + b"." + sign(body)).decode()
    if len(text) > MAX_STATE_BYTES:
        raise RPCError(INTERNAL_ERROR, "the answers and results of the earlier rounds take over "
                       f"{MAX_STATE_BYTES} bytes: return the name of large data from ctx.once()")
    return text


def unseal(sign: Function, text: JSON) -> Msg:
    """Return the record in a requestState; RPCError -32602 if it is not one for this request."""
    import hmac

    body, _, mac = str(text).encode("ascii", "replace").partition(b".")
    if hmac.compare_digest(mac, sign(body)):
        payload = decode(base64.urlsafe_b64decode(body))
        if payload["expires"] >= time.time():
            return dict(payload["record"])
    raise RPCError(INVALID_PARAMS, "requestState: not issued by this server for this request in "
                   "the last 15 minutes; start the call again")


####
# 16. Context
#
# Problem. A handler wants to know its request, to report while it runs, and to ask its client. It
#   should see neither the era, nor the transport, nor the thread that it runs in.
# Rules.
#   1. In a modern round, a question without an answer raises Suspended. It is not an Exception, so
#      that handlers do not catch it; if one does, the run ends all the same.
#   2. A log message may be secret: it goes only to the client whose request caused it.
# Limits. Nothing is sent after the response. Python cannot end a thread that was cancelled: it goes
#   on until it asks, or looks at ctx.cancelled.

__all__ += ["Context", "SyncContext"]


Fn = TypeVar("Fn", bound=Function)


class Unawaited:
    """A coroutine without a truth or attributes: `if ctx.elicit(...).data` lacks its await."""

    def __init__(self, coro: Any):
        self.coro = coro

    def __getattr__(self, name: str) -> Any:
        if hasattr(self.coro, name):  # which a task calls, or shows
            return getattr(self.coro, name)
        raise AttributeError(f"write: (await ctx.{self.coro.__name__}(...)).{name}")

    def __await__(self) -> Any:
        return self.coro.__await__()

    def __bool__(self) -> bool:
        if inspect.getcoroutinestate(self.coro) == inspect.CORO_CREATED:
            raise TypeError(f"write: await ctx.{self.coro.__name__}(...)")
        return True  # a task that shows itself asks


Coroutine.register(Unawaited)  # for asyncio.create_task()


def _sync_or_async(method: Fn) -> Fn:
    """Let a method of Context be awaited on the loop, and called without await in a thread."""

    @wraps(method)
    def either(self: Context, /, *args: Any, **kwargs: Any) -> Any:
        try:
            coro = method(self, *args, **kwargs)
        except TypeError as exc:  # of the call itself: none of its code has run
            there = [*inspect.signature(method).parameters][1:]
            problem = f"{exc}; its parameters are {', '.join(there)}"
            for name in kwargs.keys() - there:
                problem = f"{method.__qualname__}(): {no_such('option', name, there)}"
            raise TypeError(problem) from None
        return self._on_loop(coro)

    return cast("Fn", either)


def _log_at(level: str) -> Callable[..., Coroutine[Any, Any, None]]:
    def log(self: Context, data: JSON, logger: str | None = None) -> Any:
        """Send a log message of this level: see log()."""
        return Context.log.__wrapped__(self, level, data, logger)  # type: ignore[attr-defined]

    log.__qualname__ = f"Context.{level}"  # as errors name it
    return _sync_or_async(log)


def is_async(fn: Any) -> bool:
    while isinstance(fn, partial):
        fn = fn.func
    return any(map(inspect.iscoroutinefunction, (fn, type(fn).__call__)))


def _number(value: Any) -> Any:
    """Return a number as JSON has it; None for NaN and infinities."""
    if type(value) is int:
        return value
    value = float(value)
    return value if isfinite(value) else None


def member_of(principal: Any, name: str) -> Any:
    if isinstance(principal, Mapping):
        return principal.get(name)
    return getattr(principal, name, None)


def scopes_of(principal: Any) -> set[str]:
    held = member_of(principal, "scopes") or member_of(principal, "scope") or ()
    return {*(held.split() if isinstance(held, str) else held)}


def find_resource(server: Server, uri: str) -> tuple[ResourceEntry, Msg]:
    """Return a server's entry for a URI, and the values of its template."""
    wanted = canonical_uri(uri)
    if entry := server.resources.get(wanted):  # not a template: no canonical URI has braces
        return entry, {}
    for entry in [*server.resources.values()]:
        found = entry.template and entry.template.match(wanted)
        if found is not None:
            return entry, found
    raise not_found(uri)


def _fact(path: str, doc: str) -> Any:
    return property(operator.attrgetter(path), doc=doc)


class ServerExchange(Exchange):
    """A request at a server, as the sections below serve it; its handler sees the Context."""

    job: Job | None = None  # of a call that goes on as a task
    _progress = float("-inf")  # as reported last
    # What a handler may leave to finish().
    _held: Msg | None = None  # a report of progress that was not sent
    _calls: frozenset[Any] = frozenset()  # of once(), which end before the response
    _waiting: frozenset[Any] = frozenset()  # tasks that wait for the client

    @property
    def unfinished(self) -> bool:
        return bool(self._held or self._calls or self._waiting)

    async def finish(self) -> None:
        """After the handler, wait for the calls of once(), and send the progress that was held
        back; end what still waits for the client."""
        while running := {call for call in self._calls if not call.done()}:
            await asyncio.wait(running)
        await self._flush()
        for task in self._waiting:
            task.cancel()

    async def _flush(self) -> None:
        held, self._held = self._held, None
        if held:
            await self._say(held)

    async def _say(self, msg: Msg) -> None:
        # spec: basic/patterns/progress#implementation-notes -- "MUST stop after completion"
        if not self.over:
            with suppress(ConnectionClosed):  # the client has gone since
                await self.send(msg)

    @cached_property
    def journal(self) -> Journal:
        """The checked record of the earlier rounds of this call."""
        params = self.params if self.facts.rev >= MODERN else {}
        sign = self._sign
        record = unseal(sign, params["requestState"]) if "requestState" in params else {}
        return Journal(record, params.get("inputResponses", {}))

    @cached_property
    def _sign(self) -> Function:
        """Makes the MAC of a record, for the request as it was before any question. RFC 2104"""
        import hmac

        bound = json.dumps([digest_of(self.method, self.params), self.caller.owner]).encode()
        key = self.conversation.server.state_key
        return lambda body: base64.urlsafe_b64encode(hmac.digest(key, bound + body, "sha256"))

    @property
    def suspended(self) -> bool:
        """Whether a question ends this run, whatever its handler makes of it."""
        return "journal" in vars(self) and bool(self.journal.questions)

    def input_required(self) -> Msg:
        """Return the result that ends a round: its questions, and the record for the next."""
        return {"resultType": "input_required", "inputRequests": self.journal.questions,
                "requestState": seal(self._sign, self.journal.record())}


class Context(ServerExchange):
    """A request, as its handler sees it: its facts, messages and questions to its client.

    A parameter `ctx: Context` gets it. An `async def` awaits all its methods but require() and
    at_end(); a `def` awaits none.
    """

    server: Server = _fact("conversation.server", "The Server that serves it.")
    request_id = _fact("req_id", "The id of the request.")
    revision = _fact("facts.rev", "The revision that the client speaks: a date.")
    client_info = _fact("facts.client_info", "What the client says of itself; unverified.")
    client_capabilities = _fact("facts.client_capabilities", "What the client declared.")
    log_level = _fact("facts.log_level", "The mildest severity that the client wants, or None.")
    lifespan = _fact("conversation.life.value", "The value that the server's lifespan yielded.")
    principal = _fact("caller.principal", "Who was authenticated, or None.")
    owner = _fact("caller.owner", 'A stable key of the principal; "" for nobody.')
    headers = _fact("caller.headers", "The HTTP headers, names in lower case; none elsewhere.")

    def __class_getitem__(cls, types: Any) -> type:  # as for the official SDK
        return cls

    @cached_property
    def state(self) -> dict[str, Any]:
        """A dict that lives as long as the session; in the modern era, as long as the request."""
        # spec: basic/index#statelessness
        return {} if self.revision >= MODERN else self.conversation.state

    def at_end(self, fn: Action) -> None:
        """Call a plain function once, when the client's session or connection has ended.

        Modern clients over HTTP have neither: for them, when the server ends.
        """
        if self.conversation.lost:
            fn()
        else:
            self.conversation.exit_callbacks[fn] = fn

    def require(self, *scopes: str) -> None:
        """Raise RPCError, over HTTP 403, unless the client has these scopes.

        Without a network, as over stdio, none is needed.
        """
        missing = {*scopes} - scopes_of(self.principal)
        if missing and (self.caller.address or self.principal is not None):
            # spec: basic/authorization/index#runtime-insufficient-scope-errors
            raise RPCError(FORBIDDEN, f"this needs the scope {' '.join(sorted(missing))}",
                           {"scope": " ".join(scopes)})

    @property
    def cancelled(self) -> bool:
        """Whether the response is no longer wanted; a thread should check now and then."""
        return (self.job or self).over

    def _on_loop(self, coro: Any) -> Any:
        """Return a coroutine on the loop; in another thread, its result."""
        if asyncio._get_running_loop() is self.conversation.loop:
            return Unawaited(coro)
        import concurrent.futures

        # What only sends, or a question that ends this run, needs no other thread.
        sends = coro.__name__ in ("report_progress", "log", "notify", "close_stream")
        calls = coro.__name__ in ("once", "read_resource")
        with self.server.threads.blocked(not sends and (calls or not self._in_rounds)):
            future = asyncio.run_coroutine_threadsafe(coro, self.conversation.loop)
            try:
                return future.result()
            except concurrent.futures.CancelledError:
                raise asyncio.CancelledError from None  # no Exception, which handlers catch

    # Saying.

    @cached_property
    def _rate(self) -> RateLimit:
        return RateLimit(*REPORT_RATE)

    @_sync_or_async
    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, if the client asked for it; `progress` must increase.

        Of many reports in a short time some are left out, but never the last.
        """
        progress, total = _number(progress), total and _number(total)
        if progress is None:
            return
        if self.job:
            of = f"/{total:.15g}" if total else ""
            self.job.set_status("working", message or f"{progress:.15g}{of}")
        token = self.meta.get("progressToken")
        if is_id(token) and progress > self._progress:
            self._progress = progress
            held = self._held
            params = without_none(progressToken=token, progress=progress, total=total,
                                  message=message)
            self._held = notification("notifications/progress", params)
            if self._rate.take():
                await self._flush()
            elif held is None:  # else a flush is due already
                get_running_loop().call_later(
                    MOMENT_SECONDS, lambda: self.conversation.tasks.spawn(self._flush()))

    @_sync_or_async
    async def log(self, level: str, data: JSON, logger: str | None = None) -> None:
        """Send a log message of any JSON value, if the client wants its level."""
        check_level(level)
        least = self.log_level
        if least is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(least):
            return
        # spec: server/utilities/logging#implementation-considerations -- "Rate limit"
        if self._rate.take():
            try:
                encode(data := to_json(data))
            except ENCODE_ERRORS:
                data = str(data)[:MAX_TEXT]
            await self._say(notification("notifications/message", {
                **without_none(level=level, logger=logger), "data": data}))

    debug, info, notice, warning, error, critical = map(_log_at, LOG_LEVELS[:6])

    @_sync_or_async
    async def notify(self, method: str, params: Msg | None = None) -> None:
        """Send any other notification: your own, or one that the client's revision has."""
        if self.revision in METHODS.get(method, CUSTOM).revisions:
            await self._say(notification(method, params))

    @_sync_or_async
    async def close_stream(self, retry_ms: int = RETRY_MS) -> bool:
        """End the connection that waits for this request; the client comes back for the answer.

        Returns False outside HTTP, and in revisions that cannot resume a response.
        """
        # spec 2025-11-25: basic/transports#sending-messages-to-the-server
        pause = getattr(self.send, "pause", None)  # a stream over HTTP has it
        return bool(pause and await pause(retry_ms))

    @_sync_or_async
    async def read_resource(self, uri: str) -> list[Msg]:
        """Return the `contents` of one of the server's own resources, or raise ToolError."""
        try:
            entry, found = find_resource(self.server, uri)
            return list((await entry.call(self, found, uri))["contents"])
        except RPCError as exc:
            raise ToolError(exc.message) from exc

    # Asking.

    @overload
    def elicit(
        self, /, message: str, wanted: type[Wanted], *, key: str | None = ..., timeout: float = ...
    ) -> Coroutine[Any, Any, Elicited[Wanted]]: ...

    @overload
    def elicit(
        self, /, message: str, wanted: Any = ..., *, key: str | None = ..., timeout: float = ...
    ) -> Coroutine[Any, Any, Elicited[Any]]: ...

    @_sync_or_async
    async def elicit(
        self, message: str, wanted: Any = None, *, key: str | None = None,
        timeout: float = ASK_SECONDS
    ) -> Elicited[Any]:
        """Ask the user for a value of a type, or of a JSON Schema.

        `wanted` is a flat dataclass, TypedDict or model, a primitive, a date, Literal, Enum, a list
        of choices, a schema, or None for a confirmation. `key` names the question, in the modern
        era.

        Raises CapabilityMissing; and in the legacy era SchemaError for an answer that does not fit:
        a modern client is asked again.
        """
        schema, read = form_of(wanted)
        params = without_none(mode="form" if self.revision >= RICH else None, message=message,
                              requestedSchema=schema)
        return cast("Elicited[Any]", await self._ask_client(
            "elicitation/create", params, key, timeout, read))

    @_sync_or_async
    async def elicit_url(
        self, message: str, url: str, *, id: str | None = None, key: str | None = None,
        timeout: float = ASK_SECONDS
    ) -> Elicited[None]:
        """Ask the user to open a URL. "accept" means that they agreed, not that they are done:
        that is for ctx.notify("notifications/elicitation/complete", {"elicitationId": id}).
        """
        answer = await self._ask_client("elicitation/create", without_none(
            mode="url", message=message, url=url, elicitationId=id), key, timeout)
        return Elicited(answer["action"])

    @_sync_or_async
    async def sample(
        self, messages: Any, *, max_tokens: int = 1000, system: str | None = None,
        temperature: float | None = None, stop: Sequence[str] | None = None,
        model_preferences: Msg | None = None, include_context: str | None = None,
        tools: Sequence[Msg] | None = None, tool_choice: Msg | None = None,
        metadata: Msg | None = None, key: str | None = None, timeout: float = ASK_SECONDS
    ) -> Msg:
        """Let the client's model write: a text, a Message, a message dict, or a list of them.

        Returns {"role", "content", "model", "stopReason"?}. Raises CapabilityMissing.
        """
        rich = self.revision >= RICH
        if rich and not declares(self.client_capabilities, "sampling.context"):
            include_context = None  # spec: client/sampling#capabilities -- "SHOULD NOT" be used
        params = without_none(
            messages=messages_of(messages, together=rich), maxTokens=max_tokens,
            systemPrompt=system, temperature=temperature, modelPreferences=model_preferences,
            stopSequences=stop or None, includeContext=include_context, tools=tools or None,
            toolChoice=tool_choice or None, metadata=metadata
        )
        return dict(await self._ask_client("sampling/createMessage", params, key, timeout))

    @_sync_or_async
    async def roots(self, *, key: str | None = None, timeout: float = ASK_SECONDS) -> list[Msg]:
        """Return the folders that the client works in: [{"uri", "name"?}]; spec: client/roots."""
        return list((await self._ask_client("roots/list", {}, key, timeout))["roots"])

    @_sync_or_async
    async def ask(
        self, method: str, params: Msg | None = None, *, key: str | None = None,
        timeout: float = ASK_SECONDS
    ) -> Msg:
        """Ask the client by a method of the protocol, and return its answer as on the wire.

        Raises CapabilityMissing; RemoteError if the client refuses.
        """
        if method not in ANSWERS:
            raise ValueError(f"{method!r} does not ask the client; available: {', '.join(ANSWERS)}")
        return dict(await self._ask_client(method, params or {}, key, timeout))

    def _check_question(self, method: str, params: Msg) -> None:
        """Raise CapabilityMissing if this client, SchemaError if nobody can be asked this."""
        rev, row = self.revision, METHODS[method]
        check_question(method, params)
        capability, since = row.capability, min(row.revisions)
        if params.get("mode") == "url":
            capability, since = "elicitation.url", RICH
        elif method == "elicitation/create" and self.client_capabilities.get("elicitation"):
            # spec: client/elicitation#capabilities -- "an empty capabilities object" means forms
            capability = "elicitation.form"
        elif "tools" in params or "toolChoice" in params:
            capability, since = "sampling.tools", RICH
        why = ""
        if rev < MODERN and not self.facts.server_capabilities:  # a Session that resume() began
            why = f"without sessions, clients before {MODERN} cannot be asked"
        elif rev < since:
            why = f"the client speaks revision {rev}, which has no {capability}"
        if why or not declares(self.client_capabilities, capability):
            raise CapabilityMissing("client", capability, why)

    @property
    def _in_rounds(self) -> bool:
        """Whether the client answers with another round of this request."""
        return not self.job and self.revision >= MODERN

    async def _ask_client(
        self, method: str, params: Msg, key: str | None, timeout: float, read: Any = None
    ) -> Any:
        """Ask in a round, in a task, or with a request of ours; return what read() makes of it."""
        self._check_question(method, params)
        check_numbers(timeout=timeout)
        if self.cancelled:  # a thread that has not noticed
            raise asyncio.CancelledError
        read = read or partial(check_answer, method)
        name = key or method.partition("/")[0]
        params = adapt_question(method, params, self.revision)
        question = {"method": method, "params": params}
        if self._in_rounds:
            if not self.row.may_ask:  # spec: basic/patterns/mrtr#supported-requests
                raise RuntimeError(
                    f"{self.method} cannot ask the client in revision {self.revision}")
            return self.journal.answer(name, question, read)
        task = asyncio.current_task()
        self._waiting |= {task}
        try:
            if self.job:
                return await self.job.ask(name, question, timeout, read)
            return read(await self.conversation.ask(
                method, params, self.send, patience=timeout, longest=0))
        finally:
            self._waiting -= {task}

    # The record of the call.

    call_id = _fact("journal.call_id", "A random name of this call, the same in all its rounds.")

    def once(self, fn: Function, *args: Any) -> Coroutine[Any, Any, Any]:
        """Return fn(*args), JSON, from the record if an earlier round of this call computed it.

        A call is known by the name of `fn` and by `args`: pass all that it depends on. The object
        of a method does not count, and what is not JSON counts by its type. The client can read the
        result: no secrets in it. If a client sends a round twice, `fn` runs twice: pass ctx.call_id
        so that it can notice. In a task, or in the legacy era, `fn` is simply called.
        """
        if not callable(fn):
            raise TypeError("once() takes a function and its arguments")
        journal = self.journal if self._in_rounds else Journal({}, {})  # thrown away
        key, kept = journal.claim(call_key(fn, args)), journal.kept

        async def compute() -> None:
            kept[key] = to_json(await self.server.call(fn, *args))

        async def once() -> JSON:  # Unawaited tells its name
            if key not in kept:
                call = asyncio.ensure_future(compute())
                if self._in_rounds:  # a question beside it may end the run: finish() waits for it
                    self._calls |= {call}
                await call
            return to_json(kept[key])

        if is_async(fn) or asyncio._get_running_loop() is self.conversation.loop:
            return self._on_loop(once())  # type: ignore
        if key not in kept:
            kept[key] = to_json(fn(*args))  # in this thread, as sqlite3 wants it
        return to_json(kept[key])  # type: ignore


if TYPE_CHECKING:

    class SyncContext:
        def __getattr__(self, name: str) -> Any: ...

else:

    class SyncContext(Context):
        """The Context of a `def` handler: there its methods give their results at once."""


def explain(exc: Any) -> None:
    """Let the AttributeError of a Context list what there is; its __getattr__ would be slow."""
    found = isinstance(exc, AttributeError) and re.fullmatch(
        "'Context' object has no attribute '(.*)'", str(exc))
    # Python < 3.10 does not say whose attribute it is.
    if found and isinstance(getattr(exc, "obj", None), (Context, type(None))):
        there = ["method", "params", "meta", *(name for name in vars(Context) if name[0] != "_")]
        exc.args = (f"Context: {no_such('attribute', found[1], there)}",)


####
# 17. Entries
#
# Problem. An author offers plain functions, and need not know the protocol.
# Rule. One path leads from arguments to a result: Entry.call(). The kinds of entries differ in how
#   they make a result, and in what a failure is.
# Limits. A dict that is a whole result on the wire is sent as it is.

SCOPE = r"[\x21\x23-\x5b\x5d-\x7e]+"  # RFC 6749 §3.3


def scope_list(scopes: Names) -> list[str]:
    """Return the scopes in "a b", or in ["a b", "c"]; ValueError for an invalid one."""
    words = " ".join(as_texts(scopes)).split()
    for word in words:
        if not re.fullmatch(SCOPE, word):
            raise ValueError(f"{word!r} is not a valid scope: use ASCII without quotes")
    return words


def is_result(value: Any) -> bool:
    """Return whether a tool's value is the whole result as on the wire: blocks in `content`."""
    if not isinstance(value, dict) or "content" not in value:
        return False
    content = value["content"]
    is_content = isinstance(content, list) and all(map(_is_block, content))
    if others := value.keys() - {"content", "structuredContent", "isError", "_meta"}:
        if is_content and others <= {"is_error", "structured_content"}:
            raise TypeError("in a whole result, write isError and structuredContent")
        return False
    if len(value) > 1 and not is_content:
        raise TypeError("the content of a whole result must be a list of blocks")
    return is_content and value != {"content": []}  # which is data


#: What later sections add, by name; a copy of this file may be cut before them.
ADDED: dict[str, Any] = {}


def added(made: Fn) -> Fn:
    ADDED[made.__name__] = made
    return made


async def run_sync(server: Server, job: Action) -> Any:
    """Return what a plain function returns, in a thread or by call_sync."""
    return await maybe_await(await server.call_sync(job))


class Entry:
    """A registered function: how it is called, and how it is listed."""

    what: str  # its kind, in one word
    members: Sequence[str]  # of its definition, which the author may give
    result: Function  # makes the result of the method, of the function's value and the URI
    masked = False  # whether the server that it was registered at masks errors

    def __init__(self, key: str, name: str, fn: Any, fields: Msg, schema: Any = None):
        if not callable(fn):
            raise TypeError(f"{self.what} {name!r}: {fn!r:.100} is not a function")
        self.name, self.fn, self.is_async = name, fn, is_async(fn)
        self.timeout: float | None = None  # seconds for a call
        self.completions: dict[str, Function] = {}  # by argument
        self.definition = {key: name, **wire_fields(self, fields, self.members)}
        try:
            self.signature = signature = Signature(fn, Context, schema)
        except SchemaError as exc:
            raise SchemaError(f"{self.what} {name!r}", str(exc)) from None
        self.schema = signature.schema
        if signature.description:
            self.definition.setdefault("description", signature.description)

    async def call(self, ctx: Context, given: Msg, uri: str = "") -> Any:
        try:
            kwargs = self.signature.convert(given, ctx)
        except SchemaError as exc:
            # spec: server/tools#error-handling -- for the model, which can correct them
            if self.what == "tool" and ctx.revision >= RICH:
                return self.log_failure(ctx, ToolError(str(exc)))
            raise RPCError(INVALID_PARAMS, str(exc)) from exc
        try:
            work = self.fn(**kwargs) if self.is_async else run_sync(
                ctx.server, partial(self.fn, **kwargs))
            if self.timeout is not None:
                work = within(self.timeout, work, ToolError(
                    f"{self.name} took longer than {self.timeout:g} seconds"))
            value = await work
            if uri and isinstance(value, os.PathLike):  # a resource that is a file
                return await ctx.server.call(self.result, value, uri)
        except (asyncio.CancelledError, GeneratorExit, Suspended, RPCError):
            raise
        except BaseException as exc:
            is_missing = isinstance(exc, CapabilityMissing) and exc.data  # the client's
            if ctx.suspended or is_missing and ctx.revision >= MODERN:
                raise
            return self.log_failure(ctx, exc)
        try:
            return self.result(value, uri)
        except Exception as exc:
            return self.log_failure(ctx, MCPError(
                f"{self.what} {self.name!r} returned {type(value).__name__}: {exc}"))

    def log_failure(self, ctx: Context, exc: BaseException) -> Msg:
        """Log why a call failed, unless that is for the client alone, and tell the client."""
        explain(exc)
        shown = isinstance(exc, (ToolError, CapabilityMissing))  # they are for the client to read
        if not shown:  # an error of this library needs no traceback
            logger.error("%s: %s %r failed: %r", ctx.method, self.what, self.name, exc,
                         exc_info=None if isinstance(exc, MCPError) else exc)
        return self.tell_failure(exc, shown or not (self.masked or ctx.server.mask_errors))

    def tell_failure(self, exc: BaseException, shown: bool) -> Msg:
        """Return a result that says that the call failed, or raise RPCError; `shown`: and why."""
        shown = shown and (type(exc) is MCPError or isinstance(exc, FOR_THE_PEER))
        raise RPCError(INTERNAL_ERROR, str(exc) if shown else "Internal error") from exc


def failed_result(text: str) -> Msg:
    return {"content": [{"type": "text", "text": text}], "isError": True}


class Tool(Entry):
    what, members = "tool", TOOL_FIELDS
    wrapped = False  # whether the value is the member `result` of its structuredContent

    def __init__(
        self, fn: Function, *, name: str | None = None, input_schema: Msg | None = None,
        output_schema: Msg | None = None, structured: bool = True, task: bool | str = False,
        scopes: Names = (), timeout: float | None = None, **fields: Any
    ):
        if task not in (False, True, "required"):
            raise ValueError(f'task={task!r}: pass True or "required"')
        super().__init__("name", name or _name_of(fn), fn, fields, input_schema)
        check_numbers(timeout=timeout or 0)
        # spec: server/tools#tool-names
        if not re.fullmatch(r"[\w.-]{1,128}", self.name, re.ASCII):
            logger.warning("clients may refuse the tool name %r: use A-Z a-z 0-9 _ - .", self.name)
        self.task, self.structured, self.timeout = task, structured, timeout
        self.scopes, returns = scope_list(scopes), self.signature.returns
        self.check_output = None
        try:
            if output_schema is None and structured:
                output_schema, self.wrapped = output_of(returns)
            if output_schema is not None:
                self.check_output = compile_schema(output_schema).check
        except TypeError as exc:
            raise TypeError(f"{self.name}(): the return value: {exc}; or pass output_schema= or "
                            "structured=False") from None
        except SchemaError as exc:
            raise SchemaError(f"{self.name}(): output_schema=", str(exc)) from None
        #: the one type of which results need no conversion and no check
        self.plain = returns if self.wrapped and returns in (str, int, float, bool) else None
        self.definition.update(without_none(inputSchema=self.schema, outputSchema=output_schema))
        self.mirrors = ADDED.get("mirrors_of", nothing)(self.schema)  # what HTTP headers repeat

    def result(self, value: Any, uri: str) -> Msg:
        if type(value) is self.plain and value == value:  # not NaN
            text = value if self.plain is str else _to_json(value)
            return {"content": [{"type": "text", "text": text}],
                    "structuredContent": {"result": value}}
        if (not self.wrapped and isinstance(value, tuple)
                and [*map(type, value)] == [list, dict] and any(map(_is_block, value[0]))):
            # As a handler of the SDK returns it.
            value = {"content": blocks_of(value[0]), "structuredContent": to_json(value[1])}
        answer: Msg = value if is_result(value) else {
            "content": blocks_of(value),
            **without_none(structuredContent=self._structured(value))}
        # spec: server/tools#output-schema -- results "MUST" conform; failures need not
        if self.check_output and not answer.get("isError"):
            try:
                self.check_output(answer.get("structuredContent"))
            except SchemaError as exc:
                raise MCPError("its structured content does not fit the return annotation or "
                               f"output_schema=: {exc}; correct it, or pass structured=False"
                               ) from exc
        return answer

    def _structured(self, value: Any) -> JSON:
        """Return the structuredContent for a value; None for none."""
        if not self.check_output:  # a dict, or what is annotated as `list`, if it is not content
            is_data = self.wrapped or self.structured and isinstance(value, dict)
            if not is_data or any(map(_is_block, as_list(value))):
                return None
        return {"result": to_json(value)} if self.wrapped else to_json(value)

    def tell_failure(self, exc: BaseException, shown: bool) -> Msg:
        if not shown:
            return failed_result(f"the tool {self.name!r} failed")
        text = f"KeyError: {exc}" if isinstance(exc, KeyError) else str(exc)  # that is only the key
        return failed_result(text or type(exc).__name__)


class Prompt(Entry):
    what, members = "prompt", PROMPT_FIELDS

    def __init__(self, fn: Function, *, name: str | None = None, **fields: Any):
        super().__init__("name", name or _name_of(fn), fn, fields)
        arguments = [
            without_none(name=key, description=field.get("description"), title=field.get("title"),
                         required=key in self.schema.get("required", ()))
            for key, field in self.schema["properties"].items()
        ]
        self.definition.update(without_none(arguments=arguments or None))

    def result(self, value: Any, uri: str) -> Msg:
        if value is None:
            raise MCPError("return a text, a Message, or a list of them")
        answer = value if isinstance(value, dict) and "messages" in value else {"messages": value}
        return {**without_none(description=self.definition.get("description")), **answer,
                "messages": messages_of(answer["messages"])}


class ResourceEntry(Entry):
    """A resource or template, with its URI as `name`; `value` is a function or the contents."""

    what, members = "resource", RESOURCE_FIELDS

    def __init__(
        self, uri: str, value: Any, *, name: str | None = None, ttl_ms: int | None = None,
        cache_scope: str | None = None, **fields: Any
    ):
        async def constant() -> Any:
            return value

        self.hints = check_hints(without_none(ttlMs=ttl_ms, cacheScope=cache_scope))
        template = Template(uri)
        self.template = template if template.names else None
        uri = uri if self.template else canonical_uri(uri)
        fn = value if callable(value) else constant
        super().__init__("uriTemplate" if self.template else "uri", uri, fn, fields)
        self.definition["name"] = name or (_name_of(fn) if fn is value else uri)
        # spec: server/resources#resource-templates
        check_parameters(f"resource {uri!r}", template.names, self.schema)

    def result(self, value: Any, uri: str) -> Msg:
        whole = value.get("contents") if isinstance(value, dict) else None
        if isinstance(whole, list) and any(map(_is_contents, whole)):
            value = whole
        contents = contents_of(uri, value, self.definition.get("mimeType"))
        return {"contents": contents, **self.hints}


def _name_of(fn: Any) -> str:
    name = getattr(fn, "__name__", "<lambda>")
    if name == "<lambda>":
        raise TypeError(f"{fn!r:.200} is not a function, or has no name of its own: pass name=")
    return str(name)


def _enter(
    table: Msg, key: str, entry: Any, called_with: Sequence[str] = (), **bind: Function
) -> Any:
    fn = getattr(entry, "fn", entry)
    if is_async(fn) and "SyncContext" in str(inspect.signature(fn)):
        raise TypeError(f"{key!r}: an `async def` must take a Context, not a SyncContext")
    if called_with:
        check_function(f"the handler of {key!r}", fn, *called_with, **bind)
    if key in table:
        logger.warning("%r was registered again: the last one counts", key)
    table[key] = entry
    return entry


OFFERS = ("tools", "prompts", "resources")  # what a server lists


def decorate(add: Function, fn: Any, options: Msg) -> Any:
    """Register a function by `add`; for a name or nothing, return a decorator that does."""
    if fn is None or isinstance(fn, str):
        return partial(add, **{"name": fn, **options})
    return add(fn, **options)


class Registry(dict[str, Any]):
    """Entries by name; `changed` gets each that comes or goes."""

    def __init__(self, what: str, changed: Function):
        super().__init__()
        self.what, self.changed = what, changed

    def add(self, entry: Entry) -> None:
        """Register an entry, in place of one of the same name; its completions stay."""
        former = self.get(entry.name, entry)
        entry.completions = former.completions | entry.completions
        _enter(self, entry.name, entry)
        self.changed(entry)

    def unregister(self, name: str) -> None:
        if name not in self:
            raise KeyError(no_such(self.what, name, self))
        self.changed(self.pop(name))

    def find(self, name: str) -> Any:
        if name not in self:
            # spec: server/tools#error-handling, server/prompts#error-handling
            raise RPCError(INVALID_PARAMS, f"Unknown {self.what}: {name}")
        return self[name]


class Route(Row):
    fn: Function
    public: bool = False
    any_host: bool = False


def bind_some(fn: Function, *values: Any, ctx: Any = None) -> Action:
    """Bind as many of the values as a function takes, and ctx if it wants it."""
    chosen, rest = inspect.signature(fn).bind_partial(), [*values]
    for p in chosen.signature.parameters.values():
        # An annotation is a class, or its name.
        if p.name == CONTEXT_NAME or re.search(r"\b(Sync)?Context\b", str(p.annotation)):
            chosen.arguments[p.name] = ctx
        elif rest and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            chosen.arguments[p.name] = rest.pop(0)
    bound = chosen.signature.bind(*chosen.args, **chosen.kwargs)
    return partial(fn, *bound.args, **bound.kwargs)

####
# 18. Conversations
#
# Problem. A server talks with many clients, of any revision. Each request is checked before its
#   handler runs: may this client call this, so often, with these parameters?
# Rules.
#   1. check() comes first, then the middlewares: they may answer a method that the server does not
#      have. Only then answer() refuses it, or calls its handler.
#   2. Announcements come from any thread, and wait until the client can receive them.
# Limits. A request may come before the handshake. Modern clients of an HTTP endpoint share one
#   Conversation, which keeps nothing for any of them.


#: By method, what answers it: `await HANDLERS[method](ctx)` is the result.
HANDLERS: dict[str, Function] = {}


def handles(*methods: str) -> Function:
    def enter(fn: Any) -> Any:
        HANDLERS.update(dict.fromkeys(methods, fn))
        return fn

    return enter


def whole_result(ctx: Context, answer: Msg) -> Msg:
    """Return a modern result with its type, its server, and how long it may be cached."""
    answer = {"resultType": "complete", **answer}
    if ctx.row.cacheable and answer["resultType"] == "complete":
        answer = ctx.server.hints | answer
        # spec: server/utilities/caching#cache-key -- it depends on answers
        if "requestState" in ctx.params:
            answer["ttlMs"] = 0
    # spec: basic/index#_meta -- serverInfo "in every result's _meta"
    answer["_meta"] = {SERVER_INFO: ctx.server.info, **object_of(answer, "_meta")}
    return answer


class Conversation(Peer):
    """One client, as the server knows it."""

    exchange_class, answers_garbage = Context, True
    listener: Send | None = None  # takes announcements, once there is a channel for them
    disconnect: Action  # ends the conversation with a client who is too slow

    def __init__(self, server: Server, name: str):
        super().__init__(name, self.answer_request, self.take_notification)
        self.server, self.limit = server, server.max_in_flight
        self.exit_callbacks: dict[Any, Action] = {}  # when the client has gone
        self.loop = get_running_loop()
        self.outbox = Outbox(self.tasks.spawn, self._too_slow)
        self.state: dict[str, Any] = {}
        self.life = server.lifespans[self.loop]
        self._admitted: dict[str, str] = {}  # methods that were let in, for a revision

    async def answer_request(self, ctx: Any) -> Msg:
        """Check a request, have it served, and fit the result to the revision of its client."""
        self.check(ctx)
        rev, token, step = ctx.facts.rev, CURRENT.set(ctx), self.answer
        for middleware in self.server.middlewares:
            # Each calls those before it.
            step = partial(lambda fn, inner, ctx: fn(ctx, inner), middleware, step)
        try:
            answer = await step(ctx)
            if not isinstance(answer, dict):
                raise TypeError(f"{ctx.method} was answered with {type(answer).__name__}, not a "
                                "dict; in a middleware, `return await call_next(ctx)`")
            self.note_subscription(ctx)
        except BaseException as exc:
            explain(exc)
            if ctx.over or not ctx.suspended:  # else its questions end the round all the same
                if isinstance(exc, RPCError):
                    raise RPCError(adapt_code(exc.code, rev), exc.message, exc.data) from exc
                if not (isinstance(exc, ToolError) and ctx.method == "tools/call"):
                    raise
                answer = failed_result(str(exc) or "ToolError")  # raised by a middleware
        finally:
            if ctx.unfinished and not ctx.job:
                await ctx.finish()
            CURRENT.reset(token)
        if ctx.suspended:
            answer = ctx.input_required()
        return whole_result(ctx, answer) if rev >= MODERN else adapt_result(
            ctx.method, answer, rev)

    def check(self, ctx: Context) -> None:
        """Find the Facts; RPCError -32602, or for a client that is too fast."""
        limit = self.server.rate_limit
        if ctx.facts is None:  # else they agree with the headers: it came over HTTP
            ctx.facts = (check_version(read_metadata(ctx.msg)) if is_modern(ctx.params)
                         else self.session)
        if (limit and ctx.method not in ("initialize", "server/discover", "ping")
                and not limit.take(ctx.client_key or str(id(self)))):
            raise RPCError(
                TOO_FAST, f"more than {limit.calls} requests in {limit.seconds:g} seconds",
                {"retryAfter": int(limit.seconds / limit.calls) + 1})
        if ctx.method in HANDLERS and ctx.facts.rev in ctx.row.revisions:
            check_params(ctx.row, ctx.params)

    def answer(self, ctx: Context) -> Any:
        """Answer a request after all middlewares; await what is returned."""
        rev, server = ctx.facts.rev, self.server
        if self._admitted.get(ctx.method) != rev:
            admit(ctx.method, "client", rev, self.session.server_capabilities or server.declared,
                  server.methods)
            self._admitted[ctx.method] = rev
        if "requestState" in ctx.params:
            _ = ctx.journal  # refuses a forged one, even if the handler does not ask
        if ctx.method not in HANDLERS:
            return server.call(server.methods[ctx.method], ctx, ctx.params)
        return HANDLERS[ctx.method](ctx)

    def note_subscription(self, ctx: Context) -> None:
        """Note which resources a legacy client subscribes to, whoever agreed to that."""
        if ctx.row.capability == "resources.subscribe" and ctx.facts is self.session:
            wanted, uri = self.session.subscriptions, {canonical_uri(ctx.params["uri"])}
            wanted = wanted | uri if ctx.method == "resources/subscribe" else wanted - uri
            if len(wanted) > MAX_ITEMS:
                raise RPCError(TOO_BUSY, f"more than {MAX_ITEMS} subscriptions")
            self.session.subscriptions = wanted

    async def take_notification(self, msg: Msg, send: Send, caller: Caller) -> None:
        if msg["method"] == "notifications/initialized" and self.session.state != START:
            self.session.state = READY
            self.listen(self.listener)
        if listener := self.server.listeners.get(msg["method"]):
            # A modern client asks for logs in requests only.
            ctx = Context(self, {"id": "", **msg},
                          nowhere if self.session.state == START else send, caller)
            ctx.facts = self.session
            await self.server.call(bind_some(listener, ctx.params, ctx=ctx))

    def on_lost(self) -> None:
        self.server.subscribers.discard(self)
        while self.exit_callbacks:
            self.call_back(self.exit_callbacks.popitem()[1])

    # Announcements.

    def listen(self, send: Send | None) -> None:
        """Send announcements here, from the end of the handshake on."""
        self.listener = send
        if send and self.session.state == READY:
            self.outbox.open(send)

    def _too_slow(self) -> None:
        logger.warning("%s reads announcements too slowly: it is disconnected", self.name)
        self.tasks.spawn(self.disconnect())

    def announce(self, msg: Msg) -> None:
        """Send a notification that no request caused, if the client wants it."""
        method, subject = subject_of(msg)
        # spec 2025-11-25: basic/lifecycle#operation -- only what was "successfully negotiated"
        if declares(self.session.server_capabilities, METHODS[method].capability):
            if subject is None or subject in self.session.subscriptions:
                call_on(self.loop, self.outbox.put, msg)

####
# 19. Server
#
# Problem. What an author registers is served to many clients at a time, over any transport, in a
#   loop or a thread of the author's choice.
# Rules.
#   1. Capabilities only grow: a client may rely on one, and gets an empty list when its last entry
#      has gone.
#   2. Each event loop has one lifespan. The first conversation opens it, the last closes it, and
#      one task does both, as many libraries demand.
# Limits. A server that shuts down answers unfinished requests with an error.

__all__ += ["Server"]

SHUTTING_DOWN = "the server is shutting down"


def opener(lifespan: Any) -> Function:
    """Return what makes an async context manager of a lifespan, or raise TypeError."""
    check_function("lifespan=", lifespan, "server")
    inner = inspect.unwrap(lifespan)  # of a @contextmanager, the generator function
    if inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner):
        raise TypeError("lifespan= must be an `async def` with a `yield`, or return an async "
                        "context manager")
    return asynccontextmanager(lifespan) if inspect.isasyncgenfunction(lifespan) else lifespan


class Lifespan:
    users = 0

    def __init__(self, server: Server):
        self.tasks = Tasks()  # outlive their requests
        self.opened, self.closing = asyncio.Event(), asyncio.Event()
        self.task = asyncio.ensure_future(self._live(server))

    async def _live(self, server: Server) -> None:
        try:
            async with AsyncExitStack() as stack:
                enter = server.open_lifespan
                self.value = enter and await stack.enter_async_context(enter(server))
                self.opened.set()
                await self.closing.wait()
                await self.tasks.close()
                if len(server.lifespans) == 1:
                    # Functions that look at ctx.cancelled get the time to clean up.
                    await server.threads.close(FAREWELL_SECONDS)
        except SystemExit as exc:  # asyncio would stop the loop before any clean-up
            raise CannotServe(errno.ECANCELED, f"its lifespan ended the program: {exc}") from None
        finally:
            del server.lifespans[get_running_loop()]
            self.opened.set()  # for those who wait, even if it failed


@asynccontextmanager
async def lifespan_of(server: Server) -> AsyncIterator[None]:
    loop = get_running_loop()
    while (life := server.lifespans.get(loop)) and life.closing.is_set():
        await asyncio.wait({life.task})  # the one before is being closed
    if not life:
        life = server.lifespans[loop] = Lifespan(server)
    life.users += 1
    try:
        await life.opened.wait()
        if life.task.done():
            life.task.result()  # raises what kept it from opening
        yield
    finally:
        life.users -= 1
        if not life.users:
            life.closing.set()
            if not life.opened.is_set():  # we gave up while it opened
                life.task.cancel()
            if not life.task.done():  # else it has failed, and that was raised
                await asyncio.shield(life.task)


def broadcast(server: Server, method: str, params: Msg | None = None) -> None:
    """Announce something to a server's clients of this process."""
    msg = notification(method, params)
    encode(msg)  # raises where the program sees it
    for each in list(server.subscribers):  # which another thread may change
        each.announce(msg)


async def serve_on(
    server: Server, transport: str | Transport, options: Any, ready: Function = nothing,
    signals: bool = False
) -> None:
    """Serve on a transport, or by name; ready(URL or None) is called when that has begun."""
    if isinstance(transport, Transport):
        check_options(f"serving on {type(transport).__name__}", options)
        ready(None)
        await server.serve(transport)
    elif serve := ADDED.get(f"serve_{transport}"):
        await serve(server, ready, options, signals)
    else:
        raise ValueError(f'{transport!r} is not a transport: write run() for stdio, or '
                         'run("http", port=8000)')


if TYPE_CHECKING:  # at run time, Tool, Prompt and ResourceEntry check these options
    from typing_extensions import TypedDict, Unpack

    class PromptOptions(TypedDict, total=False):
        name: str | None
        title: str | None
        description: str | None
        icons: Sequence[Msg] | None
        meta: Msg | None

    class ToolOptions(PromptOptions, total=False):
        annotations: Msg | None
        input_schema: Msg | None
        output_schema: Msg | None
        structured: bool
        task: bool | str
        scopes: Names
        timeout: float | None

    class ResourceOptions(PromptOptions, total=False):
        annotations: Msg | None
        mime_type: str | None
        size: int | None
        ttl_ms: int | None
        cache_scope: str | None

    class EndpointOptions(TypedDict, total=False):
        path: str
        token: Any
        verify: Function | None
        auth: Any
        allowed_hosts: Names | None
        allowed_origins: Names
        sessions: bool
        session_seconds: float
        session_prefix: str
        healthz: bool
        grace: float
        max_body: int

    class HTTPOptions(EndpointOptions, total=False):
        host: str
        port: int
        uds: str | None
        sock: Any
        ssl: Any


class Server(Findable):
    """An MCP server: register functions with its decorators, then run() it.

    Args:
        name, version, title, description, icons, website_url, instructions: for its clients
        lifespan: lifespan(server) is an async context manager; it yields `ctx.lifespan`
        mask_errors: whether the text of exceptions other than ToolError is hidden
        page_size: items of one page of a list
        call_sync: runs plain functions: `await call_sync(job)` returns what job() returns
        rate_limit: (requests, seconds) for each client; handshakes and pings do not count
        max_in_flight: requests of one session at once; more are queued
        threads: for plain functions, unless call_sync is given
        capabilities: declared besides those of what is registered
        ttl_ms, cache_scope: how long, and by whom ("private" or "public"), results may be kept
        state_key: signs the record that travels between rounds; replicas share it
    """

    def __init__(
        self, name: str = "mcp_lite", version: str = __version__, *, title: str | None = None,
        description: str | None = None, icons: Sequence[Msg] | None = None,
        website_url: str | None = None, instructions: str | None = None,
        lifespan: Function | None = None, mask_errors: bool = False,
        page_size: int = 100, call_sync: Callable[[Action], Awaitable[Any]] | None = None,
        rate_limit: tuple[float, float] | None = None, max_in_flight: int = MAX_IN_FLIGHT,
        threads: int = TOOL_THREADS, capabilities: Msg | None = None, ttl_ms: int = 0,
        cache_scope: str = "private", state_key: str | bytes | None = None,
        **others: typing.NoReturn
    ):
        check_options('Server() (HTTP options go to run("http", port=8000))', others, Server)
        if re.match(r"\D*\s\D*\.$|[A-Za-z]+(\s+\S+){3}", str(version)):  # as of FastMCP
            raise ValueError(f"{version!r:.100} is not a version: pass it as instructions=")
        number, seconds = rate_limit or (1, 1.0)
        if min(page_size, max_in_flight, threads, number) < 1 or not seconds > 0:
            raise ValueError("page_size=, max_in_flight=, threads= and rate_limit= must be >= 1")
        self.name, self.instructions = name, instructions
        self.info = without_none(
            name=name, version=str(version), websiteUrl=website_url,
            **wire_fields(self, Msg(title=title, icons=icons, description=description),
                          PROMPT_FIELDS))
        self.mask_errors, self.page_size = mask_errors, page_size
        self.open_lifespan = lifespan and opener(lifespan)
        self.max_in_flight = max_in_flight
        self.hints = check_hints({"ttlMs": ttl_ms, "cacheScope": cache_scope})
        key = os.urandom(32) if state_key is None else state_key
        self.state_key = key = key.encode() if isinstance(key, str) else key
        if len(key) < 16:  # clients may try keys at leisure. RFC 2104 §3
            raise ValueError(f"state_key= has {len(key)} bytes: pass at least 16 random ones")
        self.declared = without_none(**{"logging": {}, **(capabilities or {})})  # for clients
        if {*map(kind_of, self.declared.values())} - {"object"}:
            raise TypeError(f"capabilities={capabilities!r:.100}: each capability must be a dict")
        _to_json([self.info, self.declared, instructions])  # raises what each handshake would
        self.tools = Registry("tool", self._changed)
        self.prompts = Registry("prompt", self._changed)
        self.resources = Registry("resource", self._changed)
        self.methods: dict[str, Function] = {}
        self.listeners: dict[str, Function] = {}
        self.middlewares: list[Function] = []  # the innermost first
        self.routes: dict[tuple[str, str], Route] = {}
        self.subscribers: set[Any] = set()  # conversations, and subscriptions of modern clients
        self.jobs: dict[str, Job] = {}  # tasks of the protocol, by id
        self.lifespans: dict[Any, Lifespan] = {}  # by event loop
        self.included = False  # in another server, without a change since
        self.rate_limit = rate_limit and RateLimit(*rate_limit)
        self.threads = Threads(threads)
        self.call_sync = self.threads.run if call_sync is None else lambda job: call_sync(
            partial(contextvars.copy_context().run, job))  # as Threads.run() does

    def __repr__(self) -> str:
        return f"Server({self.name!r})"

    # Registering, at any time: clients are notified.

    @overload
    def tool(self, fn: Fn, /) -> Fn: ...

    @overload
    def tool(
        self, name: str | None = ..., /, **options: Unpack[ToolOptions]) -> Callable[[Fn], Fn]: ...

    def tool(self, fn: Any = None, /, **options: Any) -> Any:
        """Offer a function as a tool: @app.tool, @app.tool("name") or @app.tool(title=...).

        Options: name, title, description, annotations, icons, meta; input_schema, output_schema
        replace what the types say, and a single parameter that input_schema does not name gets all
        arguments as a dict; structured=False sends text only. task=True lets it run as a task where
        the client can; "required" refuses modern clients that cannot. Over HTTP a token must have
        `scopes`. A call, or each round of a modern one, fails after `timeout` seconds, the time for
        answers included.
        """
        return decorate(self.add_tool, fn, options)

    @overload
    def prompt(self, fn: Fn, /) -> Fn: ...

    @overload
    def prompt(
        self, name: str | None = ..., /, **options: Unpack[PromptOptions]
    ) -> Callable[[Fn], Fn]: ...

    def prompt(self, fn: Any = None, /, **options: Any) -> Any:
        """Offer a function that returns a str, a Message, or a list of them, as a prompt.

        Options: name, title, description, icons, meta.
        """
        return decorate(self.add_prompt, fn, options)

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[Fn], Fn]:
        """Offer the value of a function as a resource, or as a template: "note://{name}".

        Options: name, title, description, mime_type, size, annotations, icons, meta; ttl_ms and
        cache_scope as of Server. The function gives str, bytes, a Path (to a file, which is read),
        Resource, a list of Resource, or any JSON value.
        """
        if callable(uri):
            raise TypeError('write @app.resource("scheme://path") with the URI')
        return partial(self.add_resource, uri, **options)

    def add_resource(self, uri: str, source: T, **options: Unpack[ResourceOptions]) -> T:
        """Offer a function or a value as a resource."""
        self.resources.add(ResourceEntry(uri, source, **options))
        return source

    def add_tool(self, fn: Fn, **options: Unpack[ToolOptions]) -> Fn:
        """Offer a function as a tool."""
        self.tools.add(Tool(fn, **options))
        return fn

    def add_prompt(self, fn: Fn, **options: Unpack[PromptOptions]) -> Fn:
        """Offer a function as a prompt."""
        self.prompts.add(Prompt(fn, **options))
        return fn

    def remove_tool(self, name: str) -> None:
        """Stop offering a tool."""
        self.tools.unregister(name)

    def remove_prompt(self, name: str) -> None:
        """Stop offering a prompt."""
        self.prompts.unregister(name)

    def remove_resource(self, uri: str) -> None:
        """Stop offering a resource or a template."""
        self.resources.unregister(uri if uri in self.resources else canonical_uri(uri))

    def complete(self, ref: str, argument: str) -> Callable[[Fn], Fn]:
        """Complete an argument of a prompt (by name) or a template (by URI) with a function.

        fn(value), or fn(value, arguments) to see the others, returns a list of str. A parameter
        `ctx` gets the Context.
        """
        entry = self.prompts.get(ref) or self.resources.get(ref)
        if not entry or argument not in entry.schema["properties"]:
            raise ValueError(f"complete({ref!r}, {argument!r}): no prompt or template has this "
                             "argument: register it first")
        return partial(_enter, entry.completions, argument,
                       called_with=("value", "arguments"), bind=bind_some)

    def method(self, name: str) -> Callable[[Fn], Fn]:
        """Serve a method of your own: fn(ctx, params) gives the result, a dict."""
        check_name(name)
        if name in METHODS:
            raise ValueError(f"{name} is a method of the protocol: a middleware may answer it")
        return partial(_enter, self.methods, name, called_with=("ctx", "params"))

    def on(self, name: str) -> Callable[[Fn], Fn]:
        """Take a notification of the client: fn(params)."""
        check_name(name)
        if name in METHODS and not re.search("/(initialized|cancelled|roots/.*)$", name):
            logger.warning("@on(%r) is never called", name)
        return partial(_enter, self.listeners, name, called_with=("params",), bind=bind_some)

    def route(
        self, method: str, path: str, *, public: bool = False, any_host: bool = False
    ) -> Callable[[Fn], Fn]:
        """Serve a page beside the endpoint, over HTTP: fn(request) gives str, bytes or JSON.

        It may also give (status, content type, body) or (status, headers, body). `public` pages
        need no token. `any_host` ones are for probes, which call a server by its address: Host and
        Origin are not checked. Plain functions have threads of their own, and wait for no tool.
        """
        if not re.fullmatch("/[^{}?#]*", str(path)):
            raise ValueError(
                f'route({method!r}, {path!r}): write route("GET", "/path"); a path begins with a '
                "slash, and has no parameters")
        where = method.upper(), path.rstrip("/")
        if where in self.routes:
            raise ValueError(f"{method} {path} is taken already")

        def enter(fn: Fn) -> Fn:
            check_function(f"the page {path}", fn, "request")
            self.routes[where] = Route(fn, public, any_host)
            return fn

        return enter

    def middleware(self, fn: Fn) -> Fn:
        """Wrap every request: `async def fn(ctx, call_next): return await call_next(ctx)`."""
        check_function("a middleware", fn, "ctx", "call_next")
        self.middlewares.insert(0, fn)
        return fn

    def include(self, other: Server, prefix: str = "", separator: str = "__") -> None:
        """Offer here what another server offers now: its tools, prompts, resources, completions.

        With a prefix, tools and prompts are named `prefix__name`; URIs stay. The middlewares,
        methods, pages and lifespan of the other are not used: add them here, too.
        """
        import copy

        if isinstance(other, str):
            raise TypeError(f"write include(server, {other!r})")
        if other.middlewares or other.methods or other.routes or other.open_lifespan:
            logger.warning("include(): the middlewares, methods, pages and lifespan of %s are not "
                           "used", other.name)
        for kind in OFFERS:
            for entry in map(copy.copy, [*getattr(other, kind).values()]):
                entry.masked |= other.mask_errors
                if prefix and kind != "resources":
                    entry.name = f"{prefix}{separator}{entry.name}"
                    entry.definition = {**entry.definition, "name": entry.name}
                getattr(self, kind).add(entry)
        other.included = True

    # Announcing; from any thread.

    def _changed(self, entry: Entry) -> None:
        if self.included:
            logger.warning("%r of %s was added or removed after include(): the other server does "
                           "not see it", entry.name, self.name)
            self.included = False
        kind = f"{entry.what}s"
        more = {"subscribe": True} if kind == "resources" else {}
        self.declared.setdefault(kind, {**more, "listChanged": True})
        if kind == "prompts" or "uriTemplate" in entry.definition:
            self.declared.setdefault("completions", {})
        if getattr(entry, "task", False):
            self.declared["extensions"] = {TASKS: {}, **object_of(self.declared, "extensions")}
        self._list_changed(kind)

    def _list_changed(self, kind: str) -> None:
        broadcast(self, f"notifications/{kind}/list_changed")

    tools_changed = partialmethod(_list_changed, "tools")
    prompts_changed = partialmethod(_list_changed, "prompts")
    resources_changed = partialmethod(_list_changed, "resources")

    def resource_updated(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource that it changed."""
        broadcast(self, "notifications/resources/updated", {"uri": canonical_uri(uri)})

    # Serving.

    async def call(self, fn: Function, /, *args: Any, **kwargs: Any) -> Any:
        """Return what a function returns, on the loop or in a thread."""
        if is_async(fn):
            return await fn(*args, **kwargs)
        return await run_sync(self, partial(fn, *args, **kwargs))

    async def serve(self, transport: Transport) -> None:
        """Serve one conversation, until its channel ends."""
        try:
            async with lifespan_of(self):
                conversation = Conversation(self, transport.name)
                conversation.disconnect = transport.close
                await transport.open()
                conversation.listen(conversation.traced(transport.write))
                await conversation.run(transport, transport.grace, SHUTTING_DOWN)
        finally:
            await transport.close()

    def run(self, transport: str | Transport = "stdio", **options: Unpack[HTTPOptions]) -> None:
        """Serve until the client goes away or a signal comes; blocks, and has a loop of its own.

        Options over HTTP, also of http(), serve_http() and start_in_thread(): those of
        help(mcp_lite.HTTPServer) and help(mcp_lite.Endpoint).

        If a handler blocks the loop at the end, the process is ended. If it cannot listen,
        SystemExit says why.
        """
        if asyncio._get_running_loop():
            raise CannotServe(errno.EBUSY, "an event loop runs already: await app.serve_http() or "
                              "app.serve_stdio(), or call app.start_in_thread()")
        files = [getattr(module, "__file__", None)
                 for module in set(filter(inspect.ismodule, [*sys.modules.values()]))]
        if files.count(getattr(sys.modules["__main__"], "__file__", "")) > 1:
            logger.warning("this script was imported by another file, which made a second app: "
                           "create the app in a file that both import")
        with ExitStack() as ended:

            async def main() -> None:
                try:
                    await serve_on(self, transport, options, signals=True)
                finally:  # from here until asyncio.run() returns
                    ended.callback(watchdog(GRACE_SECONDS).cancel)

            how: Msg = {}
            if WINDOWS and transport == "http":  # a proactor stops listening after resets
                if sys.version_info < (3, 12):
                    asyncio.set_event_loop_policy(
                        asyncio.WindowsSelectorEventLoopPolicy())  # type: ignore[attr-defined]
                else:
                    how["loop_factory"] = asyncio.SelectorEventLoop
            try:
                asyncio.run(main(), **how)
            except CannotServe as exc:
                sys.exit(f"{self.name}: {exc}")

    def http(self, **options: Unpack[HTTPOptions]) -> Any:
        """Return a server on a port: `async with app.http(port=0) as server: server.url`."""
        return self._engine("http", "HTTPServer", options)

    @cached_property
    def asgi(self) -> Any:
        """This server as an ASGI application; see asgi_with() for options."""
        return self.asgi_with()

    def asgi_with(self, **options: Unpack[EndpointOptions]) -> Any:
        """Return an ASGI application."""
        return self._engine("asgi", "ASGIApp", options)

    def _engine(self, use: str, name: str, options: Any) -> Any:
        if name not in ADDED:
            raise RuntimeError(f"app.{use}: this copy of mcp_lite was cut before Part VI, HTTP")
        engine = ADDED[name]
        check_options(use, options, engine, *engine.__bases__)
        return engine(self, **options)

    async def serve_stdio(self, **options: Any) -> None:
        """Serve one client on the standard streams, inside a running loop."""
        await serve_on(self, "stdio", options)

    async def serve_http(self, **options: Unpack[HTTPOptions]) -> None:
        """Serve on a port until cancelled, inside a running loop."""
        await serve_on(self, "http", options)

    def start_in_thread(
        self, transport: str | Transport = "http", **options: Unpack[HTTPOptions]
    ) -> ServerThread:
        """Serve in a thread with a loop of its own; returns what has `.url` and `.stop()`."""
        return ServerThread(self, transport, options)


class ServerThread:
    def __init__(self, server: Server, transport: str | Transport, options: Any):
        import concurrent.futures

        url: Any = concurrent.futures.Future()

        def begin(found: str | None) -> None:
            task: Any = asyncio.current_task()
            self._stop = partial(get_running_loop().call_soon_threadsafe, task.cancel)
            url.set_result(found)

        def work() -> None:
            try:
                asyncio.run(serve_on(server, transport, options, begin))
            except BaseException as exc:
                if not url.done():
                    url.set_exception(exc)
                elif not isinstance(exc, asyncio.CancelledError):  # by which stop() ends it
                    raise

        self._thread = threading.Thread(None, work, f"mcp_lite {server.name}", daemon=True)
        self._thread.start()
        self.url = url.result()

    def stop(self, timeout: float | None = 10.0) -> None:
        """End the server and wait for its thread; from any thread, any number of times."""
        with suppress(RuntimeError):  # its loop is closed, or this is its thread
            self._stop()
            self._thread.join(timeout)

####
# 20. Tasks
#
# Problem. Some tools run for hours, and no request should be open for so long. A call that becomes
#   a task is answered at once, with a handle. The client polls it (tasks/get), answers its
#   questions (tasks/update) or cancels it (tasks/cancel).
# Rules.
#   1. A task belongs to its principal: for everybody else it does not exist.
#   2. A task that has ended does not change, and keeps only its outcome.
#   3. No two questions of a task have one name: a late answer is not taken for another's.
# Limits. 1,000 tasks, and 64 MiB of results: those that ended first are deleted first. A task runs
#   for as long as it takes. It is a Job here, because asyncio has tasks, too.

def timestamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def make_room(jobs: dict[str, Job], new: int) -> None:
    ended = [job for job in jobs.values() if job.over]
    size = sum(job.size for job in ended)
    while ended and (len(jobs) + new > MAX_TASKS or size > HELD_BYTES):
        size -= jobs.pop(ended.pop(0).id).size
    if len(jobs) + new > MAX_TASKS:
        raise RPCError(TOO_BUSY, "too many tasks are running")


class Job:
    status, message = "working", ""  #: then "completed", "failed" or "cancelled"
    size = 0  # bytes of its outcome
    call: Task | None = None  # the running tool

    def __init__(self, ctx: Context):
        self.server, self.owner, self.loop = ctx.server, ctx.owner, get_running_loop()
        make_room(self.server.jobs, 1)
        self.id = os.urandom(16).hex()
        self.created = self.updated = timestamp()
        self.outcome: Msg = {}  # "result" or "error", once there is one
        #: questions without an answer, by name, and the futures of their answers
        self.questions: dict[str, tuple[Msg, Future]] = {}
        self.claim = Journal({}, {}).claim  # a name for a question
        self.server.jobs[self.id] = self

    @property
    def over(self) -> bool:
        return self.status != "working"

    def set_status(self, status: str, message: str = "", **outcome: Msg) -> None:
        """Note and announce a new status, unless the task has ended."""
        if self.over:
            return
        try:
            self.size = len(encode(outcome))
        except ENCODE_ERRORS as exc:
            logger.error("the outcome of the task %s cannot be sent: %s", self.id, exc)
            return self.fail(ToolError("the outcome of the task cannot be sent"))
        self.status, self.message, self.outcome = status, message, outcome
        self.updated = timestamp()
        if self.over:
            self.call = None  # it would keep the request
            self.server.jobs[self.id] = self.server.jobs.pop(self.id)  # behind those that ended
            make_room(self.server.jobs, 0)
        broadcast(self.server, "notifications/tasks", self.details())

    def handle(self) -> Msg:
        return without_none(
            taskId=self.id, status=self.status, statusMessage=self.message or None,
            createdAt=self.created, lastUpdatedAt=self.updated, pollIntervalMs=POLL_MS
        ) | {"ttlMs": None}  # as long as there is room

    def details(self) -> Msg:
        details = self.handle() | self.outcome
        if self.questions and not self.over:
            asked = {name: question for name, (question, _) in self.questions.items()}
            details.update(status="input_required", inputRequests=asked)
        return details

    async def ask(self, key: str, question: Msg, timeout: float, read: Function) -> Any:
        """Put a question where the client finds it when it polls, until the answer is valid."""
        async with Deadline(timeout, RequestTimeout(
                f"the client did not answer {question['method']} within {timeout:g} seconds; "
                "timeout=N waits longer")):
            while True:
                name, waiter = self.claim(key), get_running_loop().create_future()
                try:
                    self.questions[name] = question, waiter
                    self.set_status("working", self.message)
                    answer = await waiter
                finally:
                    del self.questions[name]
                    self.set_status("working", self.message)
                with suppress(SchemaError):
                    return read(answer)

    async def run(self, tool: Tool, ctx: Context, given: Msg) -> None:
        try:
            self.set_status("completed", result=await tool.call(ctx, given))
        except asyncio.CancelledError:
            self.set_status("cancelled")
            raise
        except BaseException as exc:
            self.fail(exc)
        finally:
            await ctx.finish()

    def update(self, responses: Msg) -> None:
        for name, answer in responses.items():
            if name in self.questions and isinstance(answer, dict):
                call_on(self.loop, settle_future, self.questions[name][1], answer)

    def cancel(self) -> None:
        if self.call:
            call_on(self.loop, self.call.cancel)
        self.set_status("cancelled")

    def fail(self, exc: BaseException) -> None:
        problem = wire_error(handler_error(f"task {self.id}", exc))
        problem["code"] = adapt_code(problem["code"], NEWEST)
        self.set_status("failed", problem["message"], error=problem)


KNOWING_TASKS = f"extensions.{TASKS}"


def require_tasks(ctx: Context) -> None:
    # spec: basic/versioning#extension-negotiation
    check_capability("client", ctx.client_capabilities, KNOWING_TASKS)


async def run_as_task(tool: Tool, ctx: Context, given: Msg) -> Any:
    """Let a call go on as a task, and return its handle.

    A client that does not know tasks gets the result, or an error if the tool has to be one.
    """
    if tool.task != "required" and not declares(ctx.client_capabilities, KNOWING_TASKS):
        return await tool.call(ctx, given)
    require_tasks(ctx)
    job = ctx.job = Job(ctx)
    call = ctx.conversation.life.tasks.spawn(job.run(tool, ctx, given))
    job.call = None if job.over else call  # it may have ended at once
    return {"resultType": "task", **job.handle()}


def job_of(ctx: Context, job_id: str) -> Job | None:
    job = ctx.server.jobs.get(job_id)
    return job if job and job.owner == ctx.owner else None


@handles("tasks/get", "tasks/update", "tasks/cancel")
async def serve_task(ctx: Context) -> Msg:
    require_tasks(ctx)
    job = job_of(ctx, ctx.params["taskId"])
    if not job:
        raise RPCError(INVALID_PARAMS, f"Unknown task: {ctx.params['taskId'][:100]}")
    if ctx.method == "tasks/get":
        return job.details()
    if ctx.method == "tasks/update":
        job.update(ctx.params["inputResponses"])
    else:
        job.cancel()
    return {}

####
# 21. Methods
#
# Problem. Each method of the protocol needs one function that answers it.
# Rules.
#   1. A wrong request is an error, for the client. A tool that fails is a result with `isError`,
#      for the model to read; so are wrong arguments of one, since RICH.
#   2. A subscription is answered when it ends. Before, it sends what it was asked for, and first
#      which part of that it grants.
# Limits. A list that changes between two of its pages may repeat an item, or miss one.

@handles("initialize")
async def initialize(ctx: Context) -> Msg:
    server, conversation, params = ctx.server, ctx.conversation, ctx.params
    session = conversation.session
    if session.state != START:
        raise RPCError(INVALID_REQUEST, "this session is already initialized")
    info, declared = params["clientInfo"], params["capabilities"]
    if len(encode([info, declared])) > MAX_TEXT:
        raise RPCError(INVALID_PARAMS, f"clientInfo and capabilities exceed {MAX_TEXT} bytes")
    # spec 2025-11-25: basic/lifecycle#version-negotiation -- "SHOULD be the latest"
    wanted = params["protocolVersion"]
    session.rev = wanted if wanted in LEGACY else NEWEST_LEGACY
    session.client_info, session.client_capabilities = info, declared
    # A copy: what is declared later was not negotiated. Without announcements, none are promised.
    news = ("listChanged", "subscribe") if conversation.outbox.closed else ()
    session.server_capabilities = offered = {
        name: without(each, *news) for name, each in server.declared.items()}
    session.state = AGREED
    if not conversation.lost:
        server.subscribers.add(conversation)  # until on_lost()
    return without_none(protocolVersion=session.rev, capabilities=offered, serverInfo=server.info,
                        instructions=server.instructions)


@handles("ping", "resources/unsubscribe")
async def acknowledge(ctx: Context) -> Msg:
    return {}


@handles("server/discover")
async def discover(ctx: Context) -> Msg:
    return without_none(supportedVersions=SUPPORTED, capabilities=ctx.server.declared,
                        instructions=ctx.server.instructions)


@handles("tools/list", "resources/list", "resources/templates/list", "prompts/list")
async def list_entries(ctx: Context) -> Msg:
    # spec: server/utilities/pagination#pagination-model -- "an opaque string token"
    place = re.fullmatch("at-([0-9]{1,9})", ctx.params.get("cursor", "at-0"))
    if place is None:  # spec: server/utilities/pagination#error-handling
        raise RPCError(INVALID_PARAMS, "the cursor is not valid: request the first page again")
    begin, registry = int(place[1]), getattr(ctx.server, ctx.method.split("/")[0])
    end, [(field, key)] = begin + ctx.server.page_size, ctx.row.lists
    listed = [entry.definition for entry in [*registry.values()]  # which a thread may change
              if key in entry.definition]
    return without_none(**{field: listed[begin:end]},
                        nextCursor=f"at-{end}" if len(listed) > end else None)


@handles("tools/call")
def call_tool(ctx: Context) -> Any:
    tool = ctx.server.tools.find(ctx.params["name"])
    if tool.scopes:
        ctx.require(*tool.scopes)
    given = object_of(ctx.params, "arguments")
    if tool.task and ctx.revision >= MODERN:
        return run_as_task(tool, ctx, given)
    return tool.call(ctx, given)


@handles("prompts/get")
def get_prompt(ctx: Context) -> Any:
    return ctx.server.prompts.find(ctx.params["name"]).call(
        ctx, object_of(ctx.params, "arguments"))


@handles("resources/read")
def get_resource(ctx: Context) -> Any:
    uri = ctx.params["uri"]
    resource, found = find_resource(ctx.server, uri)
    return resource.call(ctx, found, uri)


ARGUMENT = Method("client all argument - name:string value:string")


@handles("completion/complete")
async def serve_completion(ctx: Context) -> Msg:
    ref, argument, server = ctx.params["ref"], ctx.params["argument"], ctx.server
    check_params(ARGUMENT, argument)
    if ref.get("type") == "ref/prompt":
        entry = server.prompts.find(str(ref.get("name")))
    elif ref.get("type") == "ref/resource":
        entry = server.resources.find(str(ref.get("uri")))
    else:
        raise RPCError(INVALID_PARAMS, 'ref.type: expected "ref/prompt" or "ref/resource"')
    fn = entry.completions.get(argument["name"])
    others = object_of(object_of(ctx.params, "context"), "arguments")
    found = fn and await server.call(bind_some(fn, argument["value"], others, ctx=ctx))
    refuse_foreign(type(found))
    whole = found if isinstance(found, dict) else {"values": found}  # a dict: as on the wire
    values = [*map(str, as_texts(whole["values"] or ()))]
    return {"completion": {"total": len(values), "hasMore": len(values) > MAX_COMPLETIONS,
                           **without_none(**whole), "values": values[:MAX_COMPLETIONS]}}


@handles("resources/subscribe")
async def subscribe(ctx: Context) -> Msg:
    find_resource(ctx.server, ctx.params["uri"])  # it exists; see note_subscription()
    return {}


@handles("logging/setLevel")
async def set_level(ctx: Context) -> Msg:
    level = ctx.params["level"]
    if level not in LOG_LEVELS:  # spec 2025-11-25: server/utilities/logging#error-handling
        raise RPCError(INVALID_PARAMS, f"level: not one of {', '.join(LOG_LEVELS)}")
    ctx.conversation.session.log_level = level
    return {}


#: The announcements, by field of a subscriber's filter.
#: spec: basic/patterns/subscriptions#notification-filter; `taskIds` is of the extension for tasks
FILTERS = {
    **{f"{kind}ListChanged": f"notifications/{kind}/list_changed" for kind in OFFERS},
    "resourceSubscriptions": "notifications/resources/updated", "taskIds": "notifications/tasks"
}


class Feed:
    """One subscriptions/listen of a modern client."""

    def __init__(self, ctx: Context):
        self.ctx = ctx
        self.ended = asyncio.Event()
        self.outbox = Outbox(ctx.conversation.tasks.spawn, self.ended.set)
        self.wanted: Msg = {}  # the part of the filter that is honoured
        self.subjects: set[Any] = set()  # the announcements that it lets through
        for field, method in FILTERS.items():
            if not declares(ctx.server.declared, METHODS[method].capability):
                continue
            value = ctx.params["notifications"].get(field)
            names: list[Any] = strings(value)[:MAX_ITEMS]
            if field.endswith("ListChanged"):
                names = [None] if value is True else []  # such an announcement names nothing
            elif field == "taskIds" and names:
                require_tasks(ctx)
                names = [job_id for job_id in names if job_of(ctx, job_id)]
            if names:
                self.wanted[field] = value is True or names  # true, or what is granted
                self.subjects.update((method, name and canonical_uri(name)) for name in names)

    def announce(self, msg: Msg) -> None:
        if subject_of(msg) in self.subjects:
            call_on(self.ctx.conversation.loop, self.outbox.put, msg)

    async def send(self, msg: Msg) -> None:
        await self.ctx.send(notification(msg["method"], {
            **object_of(msg, "params"), "_meta": {SUBSCRIPTION_ID: self.ctx.req_id}}))


@handles("subscriptions/listen")
async def serve_listen(ctx: Context) -> Msg:
    feed, conversation = Feed(ctx), ctx.conversation
    # spec: basic/patterns/subscriptions#acknowledgment -- "as the first message"
    ctx.server.subscribers.add(feed)
    ctx.at_end(feed.ended.set)
    try:
        await feed.send(notification("notifications/subscriptions/acknowledged",
                                     {"notifications": feed.wanted}))
        feed.outbox.open(feed.send)
        await feed.ended.wait()
    finally:
        ctx.server.subscribers.discard(feed)
        conversation.exit_callbacks.pop(feed.ended.set, None)
        feed.outbox.close()
    if not conversation.many_clients:
        conversation.tasks.spawn(tell_end(ctx))
    # spec: basic/patterns/subscriptions#graceful-closure
    return {"_meta": {SUBSCRIPTION_ID: ctx.req_id}}


async def tell_end(ctx: Context) -> None:
    """Say, after its result, that a subscription is over."""
    await asyncio.wait([ctx.task])
    # spec: basic/patterns/cancellation -- "A server MUST send" it for a subscription
    await ctx.send(notification("notifications/cancelled", {
        "requestId": ctx.req_id, "reason": "the server ended the subscription"}))

# ======
# Part IV. stdio
# ======

####
# 22. Lines and pipes
#
# Problem. A read returns any number of bytes, cut anywhere. A pipe carries one message per line,
#   and its other end may be slow or gone.
# Rules.
#   1. A line has a limit, which is checked before more of it is kept.
#   2. The lines of one turn of the loop leave in one write. A writer waits for room before it
#      encodes its message: a slow reader costs no memory but for what one turn writes.
#   3. A loop can watch pipes and sockets. It cannot watch a regular file, a terminal or a pipe of
#      Windows: two threads copy between these and a socket.
# Limits. Bytes that a full disk does not take are lost.


class LineDecoder:
    """Split a byte stream into lines without their CRLF or LF.

    A line that is too long is replaced by a LimitExceeded. Blank lines are dropped.

    >>> decoder = LineDecoder()
    >>> decoder.feed(b'{"id":1}\\r\\n\\n{"id"'), decoder.feed(b":2}\\n")
    ([b'{"id":1}'], [b'{"id":2}'])
    """

    def __init__(self, limit: int = MAX_MESSAGE_BYTES):
        self.limit = limit
        self.line = bytearray()  # one that has begun

    def feed(self, data: bytes) -> list[Any]:
        *lines, rest = data.split(b"\n")
        if lines and self.line:
            lines[0] = bytes(self.line) + lines[0]
            self.line.clear()
        self.line += rest
        del self.line[self.limit + 2 :]  # so much is too long, even if a CR ends it
        lines = [line.removesuffix(b"\r") for line in lines if line.strip()]
        return [x if len(x) <= self.limit else self._too_long(x) for x in lines]

    def _too_long(self, line: bytes) -> LimitExceeded:
        problem = LimitExceeded(f"a line is longer than {self.limit} bytes")
        problem.start = line[:1000]  # shows which request it answers
        return problem


def in_thread(work: Action) -> Future:
    """Run a function in a thread that ends with it; return its future."""
    threads = Threads(1)
    future = threads.run(work)
    threads.shrink(0)
    return future


def copy_bytes(read: Function, write: Function) -> None:
    """Copy bytes until there are no more, or the other end is closed."""
    with suppress(OSError, ValueError):
        while data := read(BUFFER_BYTES):
            left = memoryview(data)
            while left:
                left = left[write(left) :]


class LineTransport(Transport):
    """A channel that carries one message per line over two raw files."""

    grace: float | None = FAREWELL_SECONDS  # clients of other SDKs kill a child after 2 seconds
    #: when read() began to wait for input; NEVER while it does not
    idle_since = NEVER

    def __init__(self, *, max_message_bytes: int = MAX_MESSAGE_BYTES):
        self.decoder = LineDecoder(max_message_bytes)
        self._batch: list[bytes] = []  # the lines of this turn of the loop
        self.end_input: Action = nothing  # stops reading; what has come can still be read
        self.written: Future  # is done when all is written, or the other end is closed

    async def use(self, source: io.FileIO, sink: io.FileIO) -> None:
        """Read from one file and write to another; both are ours to close from now on."""
        self._loop, self._lock = get_running_loop(), asyncio.Lock()
        files = [os.fstat(file.fileno()) for file in (source, sink)]
        kinds = {stat.S_IFMT(file.st_mode) for file in files}
        # A loop watches the output for reading, too: it cannot watch one socket for both.
        if WINDOWS or kinds - {stat.S_IFIFO, stat.S_IFSOCK} or os.path.samestat(*files):
            return await self._use_threads(source, sink)
        self.reader = asyncio.StreamReader(BUFFER_BYTES)
        pipe, _ = await self._loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.reader), source)
        self.end_input = pipe.close
        out, protocol = await self._loop.connect_write_pipe(  # StreamWriter needs such a protocol
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sink)
        self.writer = asyncio.StreamWriter(out, protocol, None, self._loop)
        self.written = asyncio.gather(self.writer.wait_closed(), return_exceptions=True)

    async def _use_threads(self, source: io.FileIO, sink: io.FileIO) -> None:
        import socket

        if not WINDOWS:
            for file in (source, sink):  # otherwise a read returns None
                os.set_blocking(file.fileno(), True)
        ours, theirs = socket.socketpair()
        theirs.settimeout(None)  # socket.setdefaulttimeout() is not for it
        all_written = threading.Event()

        def end_input() -> None:
            with suppress(OSError):  # it is closed already
                theirs.shutdown(socket.SHUT_WR)

        def read_all() -> None:
            with source:
                copy_bytes(source.read, theirs.send)
            end_input()
            all_written.wait()  # the other thread reads from it
            with theirs:  # closed before all is read and dropped, it loses what we sent
                copy_bytes(theirs.recv, len)

        def write_all() -> None:
            with sink:
                copy_bytes(theirs.recv, sink.write)
            all_written.set()

        self.end_input = end_input
        in_thread(read_all)
        self.written = in_thread(write_all)
        self.reader, self.writer = await asyncio.open_connection(sock=ours, limit=BUFFER_BYTES)

    async def read(self) -> list[Any]:
        while True:
            self.idle_since = self._loop.time()
            try:
                data = await self.reader.read(BUFFER_BYTES)
            except OSError:  # EIO, ECONNRESET: nobody will write any more
                data = b""
            self.idle_since = NEVER
            items = self.decoder.feed(data or b"\n")  # the last line needs no newline
            if items or not data:
                return items

    async def write(self, msg: Payload) -> None:
        if self.writer.transport.get_write_buffer_size() > BUFFER_BYTES:
            async with self._lock:  # before 3.10.6 only one task may wait in drain()
                with suppress(OSError):  # is_closing() is true then
                    await self.writer.drain()
        data = encode(msg) + b"\n"
        if self.writer.is_closing() or self.written.done():
            await self._until_explained()
            raise ConnectionClosed(f"{self.name} {self.explain()}")
        if not self._batch:
            self._loop.call_soon(self._flush)
        self._batch.append(data)
        if len(data) > BUFFER_BYTES:  # the next writer waits for room
            self._flush()

    def _flush(self) -> None:
        if self._batch and not self.writer.is_closing():
            self.writer.write(b"".join(self._batch))
        self._batch.clear()

    async def _until_explained(self) -> None:
        """Wait until explain() can say why the channel has ended."""

    async def end_output(self) -> None:
        """Write the rest; wait a moment until the other end has taken it."""
        self._flush()
        with suppress(RuntimeError):  # of uvloop, if closed
            self.writer.write_eof()
        await asyncio.wait({self.written}, timeout=GRACE_SECONDS)
        if not self.written.done():
            self.writer.transport.abort()

    async def _end(self) -> None:
        await self.end_output()
        self.end_input()
        self.writer.close()

####
# 23. Standard streams
#
# Problem. A client talks to this process over its standard streams, which nothing else may read or
#   write.
# Rules.
#   1. The server takes both streams for itself. Meanwhile descriptor 0 is empty and 1 is stderr: no
#      print(), C library or child process touches the conversation.
#   2. The end of input, a signal, a reader that is gone or the death of the parent shut the server
#      down: it reads no more, gives running requests a period of grace, sends their responses, and
#      restores the streams.


def write_stderr(text: str, stream: Any = None) -> None:
    """Write on a stream, which may be closed, None, or on a full disk."""
    stream = stream or sys.stderr
    with suppress(OSError, ValueError, AttributeError):
        stream.write(text)
        stream.flush()


def at_terminal(*streams: Any) -> bool:
    """Return whether a user is at each stream."""
    for stream in streams:
        if stream is None or not stream.isatty():  # None: it was closed
            return False
        # On Windows, NUL is a tty, too; but only a console is read by a class of its own.
        raw = getattr(getattr(stream, "buffer", None), "raw", None)
        if WINDOWS and isinstance(raw, io.FileIO):
            return False
    return True


@contextmanager
def claimed_streams() -> Generator[tuple[int, int], None, None]:
    """Take standard input and output for ourselves; yield the descriptors of the real ones."""
    if sys.__stdin__ is None or sys.__stdout__ is None:  # descriptors 0 and 1 are something else
        raise CannotServe(errno.EBADF, "standard input and output are closed")
    # Copies are not inheritable: no child process can hold the conversation open.
    real = os.dup(0), os.dup(1)
    _flush_stdout()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null if sys.__stderr__ is None else 2, 1)  # None: 2 is something else
    os.close(null)
    try:
        yield real
    finally:
        _flush_stdout()
        for number, fd in enumerate(real):
            if not WINDOWS:
                os.set_blocking(fd, True)
            os.dup2(fd, number)
            os.close(fd)


def _flush_stdout() -> None:
    """Write out what was printed; from now on each line at once, whatever its characters."""
    # sys.stdout is whatever the host has put there.
    with suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()
        sys.stdout.reconfigure(  # type: ignore[union-attr]
            line_buffering=True, errors="backslashreplace")


async def end_with_parent(transport: LineTransport, parent: int) -> None:
    while os.getppid() == parent:
        await asyncio.sleep(LOOK_SECONDS)
    logger.warning("ending: the parent process is gone")
    transport.end_input()


#: The signals that shut a program down.
ENDING = [each for each in signal.Signals if each.name in "SIGINT SIGTERM SIGHUP SIGBREAK".split()]


async def until_signalled(work: Awaitable[Any], stop: Action, grace: float = GRACE_SECONDS) -> int:
    """Await `work`, and return the number of the signal that came meanwhile; 0 for none.

    A signal calls `stop`. A second one ends the process at once, and so does work that outlasts the
    period of grace by GRACE_SECONDS. A signal that is ignored, as SIGHUP is after nohup, stays so.
    """
    loop = get_running_loop()
    caught: list[int] = []
    with ExitStack() as ended:

        def on_signal(number: int, frame: Any) -> None:
            # Not a handler of the loop's: this one runs while something blocks the loop, too.
            if caught and not frame:  # the loop has noticed it as well
                return
            caught.append(number)  # first, since another signal may come before this function ends
            if len(caught) > 1:
                os._exit(128 + number)  # the shells' convention for death by a signal
            ended.callback(watchdog(grace + GRACE_SECONDS, 128 + number).cancel)
            loop.call_soon_threadsafe(stop)

        # Not in the main thread; or on Windows, whose loop wakes anyway.
        with suppress(ValueError, NotImplementedError):
            heeded = [n for n in ENDING if signal.getsignal(n) != signal.SIG_IGN]
            for number in heeded:
                former = signal.signal(number, on_signal)
                ended.callback(signal.signal, number, former or signal.SIG_DFL)
            for number in heeded:
                # Only this makes the loop wake for a signal that comes just before it waits, or
                # that another thread receives.
                loop.add_signal_handler(number, on_signal, number, None)
                ended.callback(loop.remove_signal_handler, number)
                signal.signal(number, on_signal)
        await work
    return caught[0] if caught else 0


@added
async def serve_stdio(app: Server, ready: Function, options: Msg, signals: bool) -> None:
    """Serve one client on our standard streams; spec: basic/transports/stdio#shutdown.

    Options: `max_message_bytes` of the client; `watch_parent`, whether to end when our parent does.
    """
    watches = options.pop("watch_parent", True)
    check_options('run() on stdio, not run("http", port=8000)', options, LineTransport)
    transport, tasks = LineTransport(**options), Tasks()
    transport.name = "the client"
    if signals and at_terminal(sys.stdin):
        write_stderr(
            f"{app.name} is an MCP server: it waits for a client's messages on standard input.\n"
            f"Try it with: {PYTHON} mcp_lite.py tools {sys.argv[0] or 'SERVER.py'}\n"
            f"End it with {END_KEYS}.\n")

    def stop() -> None:
        transport.ended_here = True
        transport.end_input()

    with claimed_streams() as (stdin, stdout):  # before the lifespan begins, which may print
        is_file = stat.S_ISREG(os.fstat(stdin).st_mode)  # before a read that Windows would wait for
        await transport.use(open(os.dup(stdin), "rb", 0), open(os.dup(stdout), "wb", 0))
        # A client that reads no answers is not served.
        transport.written.add_done_callback(lambda _: transport.end_input())
        if is_file:
            transport.grace = None  # server.py < requests.jsonl: who has written a file still reads
        elif watches and not WINDOWS:  # where getppid() never changes
            # When the client dies, our input goes on if another child has inherited its other end.
            tasks.spawn(end_with_parent(transport, os.getppid()))
        try:
            ready(None)
            serving = app.serve(transport)
            await (until_signalled(serving, stop) if signals else serving)
        finally:
            await tasks.close()
            await transport.close()

# ======
# Part V. A client
# ======

####
# 24. Answers and announcements
#
# Problem. A server sends results of any shape, asks questions, and announces changes. Its
#   connection may break while a program waits for updates of a resource.
# Rules.
#   1. The shape of results is checked: a malformed one fails its call with an MCPError, and harms
#      nothing else in the program.
#   2. A subscription outlives its connection where the channel does: it is opened again when the
#      server is back.
# Limits. A subscription keeps the newest 1000 updates that nobody has read. A schema with patterns
#   checks nothing: for some texts, some patterns take years.

Callback = Optional[Function]


def member(result: Msg, key: str, kind: type) -> Any:
    """Return a member of a result; ProtocolError if it is not of this type."""
    value = result.get(key)
    if type(value) is not kind:
        raise ProtocolError(f"the server sent a malformed result: {key} should be "
                            f"{kind_of(kind())}, not {kind_of(value)}")
    return value


def check_objects(result: Msg, key: str) -> None:
    """Raise ProtocolError unless `key` is a list of objects."""
    for item in member(result, key, list):
        if type(item) is not dict:
            raise ProtocolError(f"the server sent {kind_of(item)} as one of its {key}")


async def together(coros: Iterable[Awaitable[Any]]) -> list[Any]:
    """Return the results of all, in their order; when one fails, cancel the others."""
    tasks = [asyncio.ensure_future(coro) for coro in coros]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def is_message(data: bytes) -> bool:
    """Return whether data begins like an object, or an array of objects: "[INFO]" does not."""
    return re.match(rb'(\xef\xbb\xbf|\x1b\[[\d;?]*[A-Za-z])*\s*(\[\s*)?\{\s*"', data) is not None


async def value_from(source: Any, *args: Any) -> Any:
    """Return a value, or what it returns if it is a function, plain or async."""
    return await maybe_await(source(*args) if callable(source) else source)


def elicit_result(value: Any, schema: Msg | None) -> Msg:
    """Return the result of an elicitation, made of what a callback returned.

    That is None, False, "decline" or "cancel"; True to accept; the content of the form, which may
    lack fields with a default; or the result as on the wire. For a page, `schema` is None.
    """
    properties = object_of(schema or {}, "properties")
    # A result as on the wire; a form may have a field of that name.
    if isinstance(value, dict) and "action" in value and "action" not in properties:
        value = object_of(value, "content") if value["action"] == "accept" else value["action"]
    if value in (None, False, "decline", "cancel"):
        return {"action": value or "decline"}
    if schema is None:
        if value not in (True, "accept", {}):
            raise ToolError(f"elicit_url= returned {show_json(value)}: return True or False")
        return {"action": "accept"}
    fields = {name: object_of(properties, name) for name in properties}
    if value is True:  # which also fills in a form of one boolean
        types = [field.get("type") for field in fields.values()]
        value = dict.fromkeys(fields, True) if types == ["boolean"] else {}
    content = to_json(value)
    if isinstance(content, dict):
        defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
        content = defaults | content
    checker_of(schema)(content)
    return {"action": "accept", "content": content}


def checker_of(schema: JSON) -> Function:
    """Return what checks a value by a schema; SchemaError if the schema is wrong."""
    if re.search('"pattern(": "|Properties)', json.dumps(schema)):  # a keyword, no property
        return nothing
    return compile_schema(schema).check


def sampling_result(answer: Any) -> Msg:
    """Return the result of sampling for what a callback returned: content, or {"content", ...}."""
    if not (isinstance(answer, dict) and "content" in answer):
        answer = {"stopReason": "endTurn", "content": answer}
    if not (content := blocks_of(answer["content"])):
        raise ToolError("sample= returned None: it must return a text or content")
    return {**answer, "content": content}


def root_of(root: Any) -> Msg:
    """Return a path, a URI or a dict as a root: {"uri", "name"?}."""
    from pathlib import Path

    if isinstance(root, str) and "://" in root:
        root = {"uri": root}
    if not isinstance(root, dict):
        refuse_foreign(type(root))
        path = Path(os.path.abspath(root))
        return {"uri": path.as_uri(), "name": path.name}
    uri = str(root.get("uri"))
    # spec: client/roots#root -- "This MUST be a file:// URI"
    if not uri.startswith("file://") or ".." in re.split(r"[/\\]", percent_decode(uri)):
        raise ValueError(f'roots= has {root!r:.100}: a root must be a file:// URI without ".."')
    return root


@contextmanager
def blaming(what: str) -> Generator[None, None, None]:
    """Make a SchemaError the failure of our own program, which the log shows."""
    try:
        yield
    except SchemaError as exc:
        problem = f"what {what}: {exc}"
        logger.error(problem)
        raise ToolError(problem) from exc


class Answers:
    """Answers a server's questions with `ask`, or with the `callbacks`: {capability: function}."""

    def __init__(self, model: str, callbacks: Msg, ask: Callback, capabilities: Msg | None):
        self.model = model  # the name of the model, unless the answer has one
        self.callbacks, self.ask = callbacks, ask
        if ask and capabilities is None:
            capabilities = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
        self.capabilities = capabilities or {}

    def declare(self, rev: str) -> Msg:
        """Return our capabilities, such as {"sampling": {}, "elicitation": {"form": {}}}."""
        ours: Msg = {}
        for path in self.callbacks:
            name, _, mode = path.partition(".")
            ours.setdefault(name, {}).update({mode: {}} if mode else {})
        if "roots" in ours and rev < MODERN:
            ours["roots"] = {"listChanged": True}
        ours.update(self.capabilities)
        if rev >= MODERN:  # the extension for tasks takes no callback: we poll
            ours["extensions"] = {TASKS: {}, **object_of(ours, "extensions")}
        return without_none(**ours)

    async def to_all(self, asked: Msg, session: Session, answered: Sequence[str] = ()) -> Msg:
        """Return the answers to questions, but for those that were `answered`."""
        if len(asked) > MAX_QUESTIONS:
            raise ProtocolError(f"the server asked more than {MAX_QUESTIONS} questions at once")
        asked = without(asked, *answered)
        return dict(zip(asked, await together(self.to(each, session) for each in asked.values())))

    async def to(self, asked: JSON, session: Session) -> Msg:
        """Answer a question: a request of the server, or a part of a result."""
        method = method_of(asked)
        if method not in [*ANSWERS]:  # it may be unhashable
            raise ProtocolError(f"the server asked something unknown: {asked!r:.200}")
        row, ours = METHODS[method], session.client_capabilities
        params = without_none(**object_of(asked, "params"))
        check_capability("client", ours, row.capability)
        check_params(row, params)
        check_question(method, params)
        if self.ask:
            given = await value_from(self.ask, method, params)
            with blaming("ask= returned is not valid"):
                answer = check_answer(method, {**given})  # TypeError unless it is a dict
        elif method == "roots/list":
            roots = await self._call("roots")
            one = isinstance(roots, (str, os.PathLike, dict))
            answer = {"roots": [*map(root_of, [roots] if one else roots)]}
        elif method == "sampling/createMessage":
            # spec 2025-11-25: client/sampling#capabilities -- tools "MUST" be declared
            if {"tools", "toolChoice"} & params.keys() and not declares(ours, "sampling.tools"):
                raise RPCError(INVALID_PARAMS, "this client does not sample with tools")
            answer = sampling_result(await self._call("sampling", params))
            answer = {"role": "assistant", "model": self.model, **answer}
        else:
            answer = await self._elicit(params)
        return adapt_message(answer, session.rev) if method == "sampling/createMessage" else answer

    async def _call(self, capability: str, *question: Any) -> Any:
        if capability not in self.callbacks:
            raise RPCError(INVALID_PARAMS, f"this client does not support {capability}")
        return await value_from(self.callbacks[capability], *question)

    async def _elicit(self, params: Msg) -> Msg:
        message = params["message"]
        if params.get("mode") == "url":
            url = params["url"]
            if not re.fullmatch(r"(?i)https?://[^\s\x00-\x20\x7f-\x9f]+", url):
                raise RPCError(INVALID_PARAMS, "only http and https URLs are opened")
            return elicit_result(await self._call("elicitation.url", message, url), None)
        schema = {"type": "object", **params["requestedSchema"]}
        checker_of(schema)  # a bad form is refused before it is shown
        answer = await self._call("elicitation.form", message, schema)
        with blaming("elicit= returned does not fit the form"):
            return elicit_result(answer, schema)


class Backoff:
    """How long to wait before a stream is opened again: never less than the server says.

    After each stream that was short and brought nothing, the wait doubles, up to STALL_SECONDS.
    """

    failures = 0  # such streams, in a row
    since = NEVER  # when the last wait ended
    last_id = ""  # at the last wait

    async def wait(self, last_id: str = "", retry_ms: int | None = None) -> None:
        """Wait; `last_id` is that of the newest event."""
        good = last_id != self.last_id or time.monotonic() - self.since > PROBE_SECONDS
        self.failures, self.last_id = 0 if good else self.failures + 1, last_id
        least = max(0.1, (retry_ms or RETRY_MS) / 1000)
        await asyncio.sleep(max(least, min(least * 2 ** min(self.failures, 16), STALL_SECONDS)))
        self.since = time.monotonic()


def may_pass(problem: MCPError) -> bool:
    """Return whether the same request may succeed later."""
    lost = isinstance(problem, ConnectionClosed) and problem.code < 0  # not a status of HTTP
    return lost or problem.code in (409, TOO_FAST) or problem.code >= 500


class Subscription:
    """The updates of resources and lists that a program wants: client.subscribe(), .listen().

    `async for` or `await` open it. It ends with close(), or when the server refuses it.
    """

    news: Any = None  # an Event: there is an update, or the end
    acknowledged: Any = None  # a future, from open() on
    #: modern: the request that brings the updates, and its id
    task: Task | None = None
    req_id: ReqId = ""

    def __init__(self, client: _ClientSession, wanted: Msg, callback: Callback, whole: bool):
        if callback:
            check_function("callback=", callback, "params")
        self.client, self.wanted, self.callback = client, wanted, callback
        self.whole = whole  # whether an update is the message, not only its parameters
        self.uris: list[str] = wanted.get("resourceSubscriptions", [])
        # Servers may announce a part of a resource: x://a/1 for x://a.
        self.folders = tuple(f"{canonical_uri(uri).rstrip('/')}/" for uri in self.uris)
        self.methods = {FILTERS[name] for name in wanted}
        self.updates: deque[Msg] = deque(maxlen=MAX_ITEMS)

    async def open(self) -> Subscription:
        """Subscribe, and wait until the server acknowledges it; a second call does not wait."""
        if self.acknowledged:
            return self
        client = self.client
        client.check()
        if self.uris:
            check_capability("server", client.server_capabilities, "resources.subscribe")
        self.news, self.acknowledged = asyncio.Event(), get_running_loop().create_future()
        client.subscriptions.append(self)
        try:
            if client.modern:
                self.task = client.tasks.spawn(self._listen())
                await within(client.timeout, self.acknowledged,
                             client.peer.late("acknowledge a subscription", client.timeout))
            else:
                for uri in self.uris:
                    await client.request("resources/subscribe", {"uri": uri})
        except BaseException:
            self.end()
            self.acknowledged = None  # the next open() asks again
            raise
        return self

    async def close(self) -> None:
        """End the subscription here and at the server."""
        client = self.client
        if self in client.subscriptions:
            self.end()
            watched = {uri for item in client.subscriptions for uri in item.uris}
            for uri in {*self.uris} - watched:
                if not client.modern and not client.lost:
                    await client.request("resources/unsubscribe", {"uri": uri})

    def end(self) -> None:
        """End the subscription here."""
        if self in self.client.subscriptions:
            self.client.subscriptions.remove(self)
            self.news.set()
        if self.task:
            self.task.cancel()

    def __await__(self) -> Generator[Any, None, Subscription]:
        return self.open().__await__()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Msg:
        await self.open()
        while not self.updates:
            if self not in self.client.subscriptions:
                raise StopAsyncIteration
            self.news.clear()
            await self.news.wait()
        return self.updates.popleft()

    def receive(self, msg: Msg) -> None:
        method, params, peer = msg["method"], msg.get("params", {}), self.client.peer
        uri = params.get("uri")
        if method == "notifications/cancelled":
            # spec: basic/patterns/cancellation#behavior-requirements -- it ends a subscription
            peer.resolve(self.req_id, ProtocolError(
                f"{peer.name} cancelled it: {params.get('reason')}"))
        elif method == "notifications/subscriptions/acknowledged":
            refused = ", ".join(self.wanted.keys() - object_of(params, "notifications").keys())
            if refused:
                logger.warning("%s does not announce %s", peer.name, refused)
            if self.acknowledged.done():  # the stream had been lost
                self.client.catch_up(self)
            settle_future(self.acknowledged)
        elif method in self.methods and (
                uri is None or canonical_uri(f"{uri}/").startswith(self.folders)):
            item = msg if self.whole else params
            if self.callback:
                peer.call_back(self.callback, item)
            else:
                self.updates.append(item)
                self.news.set()

    async def _listen(self) -> None:
        """Modern: keep a subscriptions/listen open."""
        client, backoff = self.client, Backoff()
        while True:
            try:
                await client.request("subscriptions/listen", {"notifications": self.wanted},
                                     timeout=NEVER, send=self._send)
                # spec: basic/patterns/subscriptions#graceful-closure -- final on a pipe
                kind = ConnectionClosed if client.transport.outlives_server else ProtocolError
                raise kind(f"{client.peer.name} ended the subscription")
            except MCPError as exc:
                problem = exc
            if client.lost or not (self.acknowledged.done() and may_pass(problem)):
                break
            if backoff.failures == 1:
                logger.warning("no announcements until the server is back: %s", problem)
            await backoff.wait()
        if self.acknowledged.done() and not client.lost:
            logger.warning("a subscription has ended: %s", problem)
        settle_future(self.acknowledged, None, problem)
        self.end()

    async def _send(self, msg: Msg) -> None:
        self.req_id = msg.get("id", self.req_id)  # a cancellation has none
        await self.client.send(msg)

####
# 25. Values of results
#
# Problem. The result of a tool is a message with content; a program wants the number in it.
# Rules.
#   1. Structured output comes before text.
#   2. Servers wrap what is not an object: `{"result": 3}` stands for 3. Nothing marks that; but
#      where a text beside it begins as that object does, nothing is wrapped.


def value_of(result: Msg) -> Any:
    """Return what a tool's result says, as a Python value; raise ToolError if it failed.

    >>> value_of({"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}})
    3
    """
    values = [value_of_block(block) for block in result.get("content") or []]
    if result.get("isError"):
        raise ToolError("\n".join(strings(values)) or "the tool failed without a message", result)
    out: JSON = result.get("structuredContent")
    if out is None and values != ["null"]:  # JSON for None; some servers write null for no output
        return values[0] if len(values) == 1 else values or None
    wrapped = isinstance(out, dict) and out.keys() == {"result"} and (
        out["result"] in values
        or not any(re.match(r'\s*\{\s*"result"\s*:', str(value)) for value in values))
    return out["result"] if wrapped else out


def value_of_block(block: Msg) -> Any:
    """Return the text of a content block, or the bytes of which a server made it; else itself."""
    if block.get("type") == "text":
        return block.get("text")
    inner = object_of(block, "resource")
    made = "blob" in inner and str(inner.get("uri")).endswith(BYTES_URI)
    return text_or_bytes(inner) if made else block


def text_or_bytes(item: Msg) -> str | bytes:
    if item.get("blob") is None:
        return str(member(item, "text", str))
    return bytes_of(member(item, "blob", str))


def bytes_of(text: str) -> bytes:
    """Return the bytes that a server sent in Base64; ProtocolError for other text."""
    # Some servers break lines, leave out the padding, or use the alphabet for URLs.
    text = re.sub(r"[\s=]", "", text).replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise ProtocolError("the server's binary data is not Base64") from None

####
# 26. Sessions of a client
#
# Problem. A program connects to a server, sends requests and answers questions. It cannot know
#   which era the server speaks, and the server may forget a session at any time.
# Rules.
#   1. Client and server speak the newest revision that both know, of any era. A client that was
#      made for one revision speaks no other.
#   2. A request that the server did not declare is not sent.
#   3. A session that the server has forgotten is renewed, once for all requests. What may have
#      changed meanwhile is announced as if the server had announced it.
#   4. max_timeout bounds a request with its progress, its questions and its task.
# Limits. Of results, only the output schemas of tools are kept. A listener is called once for each
#   subscription that brings a change. A server that takes more than 10 seconds to start is first
#   taken for a legacy one.

#: By kind of target: whether it is one, and what makes a Transport or Server of it.
CONNECTORS: list[tuple[Function, Function]] = [
    (lambda target: isinstance(target, (Server, Transport)), lambda target: target)
]


# A program that ended like this ends so again. Others are started once more.
CRASHED = (r'(?m)  File "|^\s+at |status 2\b|was killed|^the server failed|serves HTTP, by'
           r"|must call app\.run")


def resolve_target(target: Any, options: Any, owner: Any) -> Any:
    for takes, make in CONNECTORS:
        if takes(target):
            check_options(f"Client({target!r:.200})", options, owner, make)
            return make(target, **options)
    raise TypeError(f"cannot connect to {target!r}: pass a Server, a command, a path, "
                    "an http(s):// URL or a Transport")


async def serve_in_memory(client: _ClientSession, transport: Transport) -> None:
    try:
        await client.target.serve(transport)
    except Exception as exc:
        client.peer.fail_all(f"the server failed: {type(exc).__name__}: {exc}")
        logger.exception("the server failed")


async def persist(client: _ClientSession, method: str, params: Msg) -> Msg:
    """Send a request until it is answered, or cannot succeed: a task outlives a proxy's 503."""
    backoff = Backoff()
    while True:
        try:
            return await client.request(method, params)
        except MCPError as exc:
            if client.lost or not may_pass(exc):
                raise
        await backoff.wait()


async def follow_task(client: _ClientSession, task: Msg) -> Msg:
    """Poll a task and answer its questions, until there is a result."""
    handle = {"taskId": member(task, "taskId", str)}
    answered: list[str] = []  # of the questions that came last
    try:
        while True:
            interval = task.get("pollIntervalMs")
            interval = interval if type(interval) is int else POLL_MS
            await asyncio.sleep(min(max(interval, 50), 1000 * STALL_SECONDS) / 1000)
            task = await persist(client, "tasks/get", handle)
            asked = object_of(task, "inputRequests")
            if answers := await client.answers.to_all(asked, client.peer.session, answered):
                await persist(client, "tasks/update", {**handle, "inputResponses": answers})
                answered = [*asked]
            elif (status := task.get("status")) not in ("working", "input_required"):
                break
    except BaseException:  # nobody polls it any more
        client.farewells.spawn(client.request("tasks/cancel", handle))
        raise
    if status == "completed":
        return object_of(task, "result")
    problem = object_of(task, "error")
    raise RemoteError(problem.get("code", INTERNAL_ERROR),
                      problem.get("message", f"the task is {status}"), problem.get("data"))


class _ClientSession:
    """A client's conversation with one server."""

    timeout: float
    max_timeout: float
    progress: Callback
    answers: Answers
    instructions: str | None = None
    log_level: str | None = None  #: as passed to set_log_level()
    state = START  #: READY when it is connected, DONE when the program has closed it
    transport: Any = None  #: the Transport, once there is one
    _connecting: Task | None = None  # what connect() waits for, and close() ends
    _renewal: Any = None  # the task of the newest renewal of the session

    def __init__(self, target: Any, revision: str | None, info: Msg):
        self.target, self.pinned, self.info = target, revision, info
        self.listeners: dict[str, list[Function]] = {}  # fn(params), by notification
        self.server_info: Msg = {}  #: its name and version, as it says
        self.server_capabilities: Msg = {}
        self.peer = Peer("the server", self._serve, self._on_notification)
        self.tasks, self.farewells = Tasks(), Tasks()  # close() waits for the latter
        self.subscriptions: list[Subscription] = []
        self.outputs: dict[str, Function] = {}  # what checks the output of a tool

    # The connection.

    revision: str = _fact("peer.session.rev", "The negotiated revision, a date.")
    lost: ConnectionClosed | None = _fact("peer.lost", "Why the connection ended, or None.")

    @property
    def modern(self) -> bool:
        """Whether that is a revision without sessions."""
        return self.revision >= MODERN

    async def connect(self) -> None:
        """Connect and negotiate a revision; done by `async with`."""
        if self._connecting or self.state is DONE:
            raise RuntimeError("a Client connects once; make another")
        self._connecting = asyncio.ensure_future(self._connect())
        try:
            await asyncio.wait({self._connecting})
            if self._connecting.cancelled():
                raise ConnectionClosed("this program has closed the connection")
            self._connecting.result()
        except BaseException:
            await self.close()
            raise

    async def _connect(self) -> None:
        await self._open()
        await self._negotiate()
        await self._listen_to_changes(self.listeners)
        self.state = READY

    async def _open(self) -> None:
        self.transport = self.target
        if isinstance(self.target, Server):
            self.transport, theirs = memory_transports()
            theirs.grace = 0  # when we are gone, nobody reads a response
            self.tasks.spawn(serve_in_memory(self, theirs))
        self.transport.interrupted = self._interrupted
        self.peer.name = self.transport.name
        self.send = self.peer.traced(self.transport.write)
        await self.transport.open()
        self._running = self.tasks.spawn(self._run())

    async def _run(self) -> None:
        try:
            await self.peer.run(self.transport)
        finally:  # after an error of read(), too
            if self.state is READY and (self.subscriptions or self.listeners):
                logger.warning("no more announcements: %s", self.lost)
            for subscription in list(self.subscriptions):
                subscription.end()
            await self.transport.close()

    async def close(self) -> None:
        """Disconnect: end what is running, and the server if we started it."""
        self.state = DONE
        if self._connecting:
            self._connecting.cancel()
            await asyncio.wait({self._connecting})  # lets calls end that were just cancelled, too
        if self.transport:
            try:  # so that handlers are cancelled while the server still reads
                await self.farewells.drain(FAREWELL_SECONDS)
                await self.peer.close()
            finally:
                await self.transport.close()
        await self.tasks.drain(GRACE_SECONDS)
        await self.tasks.close()

    # Negotiation.

    async def _negotiate(self) -> None:
        """Find a revision that both ends speak: in the modern era first, then by a handshake.

        spec: basic/transports/stdio#backward-compatibility, and the same of streamable-http
        """
        if self.pinned in LEGACY:
            return await self._handshake(self.pinned, self.timeout)
        if self.pinned:
            try:
                return await self._discover(self.timeout)
            except (RemoteError, ProtocolError) as exc:
                raise ProtocolError(f"{self.peer.name} did not accept revision {self.pinned}: "
                                    f"{exc}", exc.code) from exc
        probe = min(CONNECT_SECONDS, self.timeout / 2)  # the rest is for a handshake
        try:
            return await self._discover(probe)
        except MCPError as exc:
            if self._is_final(exc):
                raise
            slow = isinstance(exc, RequestTimeout)
        if self.lost:
            logger.warning("%s ended at the first request, as some old servers and programs "
                           "without app.run() do: it is started again", self.peer.name)
            await asyncio.wait({self._running})  # closed, it may be opened again
            self.peer.lost = None
            await self._open()
        try:
            await self._handshake(NEWEST_LEGACY, self.timeout - probe)
        except RemoteError:
            if not slow:
                raise
            await self._discover(self.timeout)  # a modern server that was slow to start?

    def _is_final(self, exc: MCPError) -> bool:
        """Return whether a handshake would fail as server/discover did."""
        if isinstance(exc, AuthError):
            return exc.code == INTERNAL_ERROR  # a login failed; 401 or 403 may be a gateway's
        if not isinstance(exc, ConnectionClosed):
            return exc.code in (HEADER_MISMATCH, MISSING_CAPABILITY)  # modern servers only
        # Over HTTP, this request alone may have failed. On a pipe, a server may say why it ended.
        legacy = r"(before|expect) init|nitialize(R|\b)|server/discover"
        if not self.lost or re.search(legacy, str(exc)):
            return False
        return bool(re.search(CRASHED, str(exc)))

    async def _discover(self, patience: float) -> None:
        """Begin the modern era."""
        session = self.peer.session
        session.resume(NEWEST)
        session.client_capabilities = self.answers.declare(NEWEST)
        self.transport.agreed(NEWEST)
        ask = partial(self.request, "server/discover", timeout=patience)
        try:
            result = await ask()
        except RemoteError as exc:
            # spec: basic/versioning#protocol-version-negotiation -- retry with one that is listed
            if exc.code != UNSUPPORTED_VERSION or NEWEST not in str(exc.data):
                raise
            result = await ask()
        theirs = member(result, "supportedVersions", list)
        if NEWEST not in theirs:
            raise ProtocolError(f"{self.peer.name} speaks revision {theirs!r:.200}")
        self._learn(result, object_of(object_of(result, "_meta"), SERVER_INFO))

    async def _handshake(self, wanted: str, patience: float) -> None:
        """Begin a session of the legacy era."""
        self.peer.session = session = Session()
        session.rev = wanted  # a renewal tries it again if this fails
        self.transport.agreed(None)
        session.client_capabilities = self.answers.declare(wanted)
        result = await self.peer.ask("initialize", {
            "protocolVersion": wanted, "capabilities": session.client_capabilities,
            "clientInfo": self.info
        }, self.send, patience=patience)
        # spec 2025-11-25: basic/lifecycle#version-negotiation -- "it SHOULD disconnect"
        rev: Any = result.get("protocolVersion")
        if rev not in ([self.pinned] if self.pinned else LEGACY):
            raise ProtocolError(f"{self.peer.name} speaks revision {rev!r:.200}; the client wants "
                                f"revision={wanted!r}")
        self._learn(result, object_of(result, "serverInfo"))
        self.transport.agreed(rev)
        session.resume(rev)
        await within(patience, self.send(notification("notifications/initialized")),
                     self.peer.late("accept notifications/initialized", patience))

    def _learn(self, result: Msg, info: Msg) -> None:
        instructions = result.get("instructions")
        self.server_info, self.server_capabilities = info, member(result, "capabilities", dict)
        self.instructions = instructions if isinstance(instructions, str) else None

    # Legacy: the server may forget a session.

    async def _renew(self, expired: Session) -> None:
        session, renewal = self.peer.session, self._renewal
        gone = session is expired or session.state != READY  # else it is renewed already
        if gone and (not renewal or renewal.done()):
            self._renewal = renewal = self.tasks.spawn(self._restore(expired.rev))
        await asyncio.wait({renewal})
        if exc := renewal.exception():  # each request raises its own
            raise SessionExpired(f"the session could not be renewed: {exc}") from exc

    async def _restore(self, rev: str) -> None:
        """Begin a session with the subscriptions and log level of the last one."""
        await self._handshake(rev, self.timeout)
        asks = [("resources/subscribe", {"uri": uri})
                for item in self.subscriptions for uri in item.uris]
        if self.log_level:
            asks.append(("logging/setLevel", {"level": self.log_level}))
        for method, params in asks:
            try:
                await self.peer.ask(method, params, self.send, patience=PROBE_SECONDS)
            except MCPError as exc:
                logger.warning("%s did not restore %s %s: %s", self.peer.name, method, params, exc)
        self.catch_up()

    def _interrupted(self, expired: bool) -> None:
        if expired:  # if the renewal fails, the next request tries again
            self.tasks.spawn(self._renew(self.peer.session))
        else:
            self.catch_up()

    def catch_up(self, back: Subscription | None = None) -> None:
        """Announce what may have changed in a gap: to a subscription that is back, or to all."""
        mark = {"_meta": {SUBSCRIPTION_ID: back.req_id}} if back else {}
        for what in OFFERS:
            method = f"notifications/{what}/list_changed"
            if not back or method in back.methods:
                self._on_notification(notification(method, mark))
        items = [back] if back else self.subscriptions
        for uri in {uri for item in items for uri in item.uris}:
            self._on_notification(
                notification("notifications/resources/updated", {"uri": uri, **mark}))

    # Requests.

    async def request(
        self, method: str, params: Msg | None = None, *, timeout: float | None = None,
        progress: Callback = None, meta: Msg | None = None, send: Send | None = None
    ) -> Msg:
        """Send any request and return its result.

        `timeout` seconds begin again with each progress(progress, total, message), up to the
        Client's max_timeout or `timeout`. `send` takes the message in place of the connection.
        Raises RemoteError, RequestTimeout, ConnectionClosed; CapabilityMissing before it is sent.
        """
        self.check(method)
        session, clock = self.peer.session, get_running_loop().time
        given = params or {}
        said: Msg = {}
        if self.modern:  # spec: basic/index#_meta
            said = {PROTOCOL_VERSION: session.rev, CLIENT_INFO: self.info,
                    CLIENT_CAPABILITIES: session.client_capabilities}
            if "notifications/message" in self.listeners:
                said[LOG_LEVEL] = self.log_level or "info"
        params = {**given, "_meta": {**given.get("_meta", {}), **said, **(meta or {})}}
        if progress:
            check_function("progress=", progress, "done", "total", "message")
        patience = self.timeout if timeout is None else timeout
        check_numbers(timeout=patience)
        longest, since = max(patience, self.max_timeout), clock()
        ask = partial(self.peer.ask, method, send=send or self.send, patience=patience,
                      longest=self.max_timeout, on_progress=progress or self.progress)
        try:
            if session.state is not READY:  # the last renewal failed
                raise SessionExpired
            result = await ask(params)
        except SessionExpired:
            # spec 2025-11-25: basic/transports#session-management -- "it MUST start a new session"
            await self._renew(session)
            result = await ask(params)
        if self.modern and result.get("resultType") not in (None, "complete"):
            late = self.peer.late(f"end {method}", longest, "max_timeout")
            rest = self._finish(method, ask, params, result)
            result = await within(since + longest - clock(), rest, late)
        return result

    def check(self, method: str = "") -> None:
        """Raise an error unless we are connected, and the server has what a method needs."""
        if self.transport is None:
            raise ConnectionClosed("not connected yet: use `async with`, or await connect()")
        rev, row = self.peer.session.rev, METHODS.get(method, CUSTOM)
        if rev not in row.revisions:
            raise CapabilityMissing("server", row.capability or method,
                                    f"the server speaks revision {rev}, which has no {method}")
        # spec 2025-11-25: basic/lifecycle#operation
        if row.capability != "completions" or rev >= COMPLETIONS:  # before, there was none
            check_capability("server", self.server_capabilities, row.capability)

    async def _finish(self, method: str, ask: Any, params: Msg, result: Msg) -> Msg:
        """Answer the server's questions, or follow its task, until there is a result."""
        for _ in range(MAX_ROUNDS):
            kind = result["resultType"]
            if kind == "task" and method == "tools/call":  # the extension: nothing else may be one
                return await follow_task(self, result)
            state = without_none(requestState=result.get("requestState"))
            asked = object_of(result, "inputRequests")
            if kind != "input_required" or not (asked or state):
                # spec: basic/index#resulttype -- "MUST be considered invalid"
                raise ProtocolError(f"{self.peer.name} answered {method} with a {kind!r} result, "
                                    "which asks nothing")
            # spec: basic/patterns/mrtr#client-requirements-basic-workflow -- the state as it came
            params = without(params, "requestState")
            params.update(state, inputResponses=await self.answers.to_all(asked, self.peer.session))
            result = await ask(params)
            if result.get("resultType") in (None, "complete"):
                return result
        raise ProtocolError(f"{self.peer.name} asked more than {MAX_ROUNDS} times in one request: "
                            "an answer may not fit, or a question changes")

    async def notify(self, method: str, params: Msg | None = None) -> None:
        """Send any notification; it waits for a renewal of the session."""
        self.check()
        if self._renewal:
            await asyncio.wait({self._renewal})
        await self.send(notification(method, params))

    # Announcements.

    def on(self, method: str) -> Function:
        """Call fn(params), plain or async, for each such notification."""
        check_name(method)
        if method == "notifications/progress":
            logger.warning("@on(%r) is never called: pass progress= to call()", method)

        def decorate(fn: Any) -> Any:
            check_function(f"@on({method!r})", fn, "params")
            if self.state is READY and method not in self.listeners:
                call_on(self.peer.loop, self.tasks.spawn, self._listen_to_changes([method]))
            self.listeners.setdefault(method, []).append(fn)
            return fn

        return decorate

    async def _listen_to_changes(self, methods: Iterable[str]) -> None:
        wanted: Msg = {name: True for name, method in FILTERS.items()
                       if method in methods and name.endswith("ListChanged")
                       and declares(self.server_capabilities, METHODS[method].capability)}
        if wanted and self.modern:
            try:  # before anything else, so that nothing is missed
                await within(PROBE_SECONDS, Subscription(self, wanted, nothing, True).open(),
                             RequestTimeout("no response"))
            except MCPError as exc:
                logger.warning("no announcements: %s", exc)

    def _on_notification(self, msg: Msg, *_: Any) -> None:
        method, params = msg["method"], msg.get("params", {})
        mark = object_of(params, "_meta").get(SUBSCRIPTION_ID)
        if method == "notifications/cancelled":
            mark = str(params.get("requestId"))
        # spec: basic/patterns/subscriptions#receiving-notifications -- unmarked: for all
        items = [x for x in self.subscriptions if mark is None or str(x.req_id) == str(mark)]
        for item in items:
            item.receive(msg)
        if mark is None or items:
            if method == "notifications/tools/list_changed":
                self.outputs.clear()
            for listener in self.listeners.get(method, ()):
                self.peer.call_back(listener, params)

    async def _serve(self, exchange: Exchange) -> Msg:
        if self.modern:
            # spec: basic/patterns/index -- "clients do not send JSON-RPC responses"
            self.peer.warn("%s sent a request, %.100r", exchange.method)
            exchange.over = True  # the Peer does not answer it
            return {}
        session = self.peer.session
        admit(exchange.method, "server", session.rev, session.client_capabilities)
        if exchange.method == "ping":
            return {}
        self.transport.waits_for_user += 1
        try:
            return await self.answers.to(exchange.msg, session)
        finally:
            self.transport.waits_for_user -= 1
            for each in self.peer.pending.values():  # they waited for the user, too
                each.deadline.renew()

####
# 27. Client
#
# Problem. A program wants one line for each thing to do: list, call, read, subscribe.
# Limits. Lists are read to their last page, of 1000 at most.

__all__ += ["Client"]

if TYPE_CHECKING:

    class ClientOptions(TypedDict, total=False):
        env: Fields | None
        cwd: StrPath | None
        stderr: Callback
        max_message_bytes: int
        exit_seconds: float
        headers: Fields | Action | None
        token: Any
        ssl: Any
        auth: Any

    class RequestOptions(TypedDict, total=False):
        timeout: float | None
        progress: Callback
        meta: Msg | None


#: What the callbacks of a Client are called with, by option.
CALLED_WITH = {
    "elicit": "message schema", "elicit_url": "message url", "sample": "params",
    "ask": "method params", "log": "level data logger", "progress": "done total message",
    **{f"on_{what}_changed": "" for what in OFFERS}, "on_resource_updated": "params"}


class Client(_ClientSession, Findable):
    """An MCP client: `async with Client(target) as c: await c.call("add", {"a": 1, "b": 2})`.

    The target is a Server, a command (string or list), a path to a .py file, a URL or a Transport.
    Callbacks are plain or async functions. What one raises is an error for the server, and in the
    modern era for the caller. Further options are those of StdioTransport, or of HTTPTransport.

    Args:
        name, version: of this program, for the server
        revision: a protocol revision, a date, in place of the newest that both know
        elicit: fills in a form: elicit(message, schema) returns the fields as a dict, None to
            decline, "cancel", or the whole result: {"action": ..., "content": {...}}
        elicit_url: opens a page for the user: elicit_url(message, url) returns whether it did
        sample: asks a model: sample(params) returns a text, or a whole message
        roots: a list of the folders in which we work (paths, file: URIs or dicts), or a function
            that returns it
        ask: answers every question as it came, in place of these four: ask(method, params) returns
            the result, a dict. `capabilities` says which may be asked; without it, all
        log: is called with the server's log: log(level, data, logger)
        progress: is called while requests run: progress(done, total, message)
        on_tools_changed, on_resources_changed, on_prompts_changed: called when a list has changed
        on_resource_updated: called when a watched resource was updated: fn(params)
        timeout: seconds without response or progress until a request fails
        max_timeout: seconds until it fails in spite of progress
        capabilities: declared besides those that follow from the callbacks
    """

    def __init__(
        self, target: Any, *, name: str = "mcp_lite", version: str = __version__,
        revision: str | None = None, elicit: Callback = None, elicit_url: Callback = None,
        sample: Callback = None, roots: Any = None, ask: Callback = None, log: Callback = None,
        progress: Callback = None, on_tools_changed: Callback = None,
        on_resources_changed: Callback = None, on_prompts_changed: Callback = None,
        on_resource_updated: Callback = None, timeout: float = REQUEST_SECONDS,
        max_timeout: float = LONGEST_SECONDS, capabilities: Msg | None = None,
        **options: Unpack[ClientOptions]
    ):
        if revision is not None and revision not in REVISIONS:
            raise ValueError(f"revision {revision!r} is not one of {', '.join(REVISIONS)}")
        check_numbers(timeout=timeout, max_timeout=max_timeout)
        given = locals()
        for option, names in CALLED_WITH.items():
            if given[option] is not None:
                check_function(f"{option}=", given[option], *names.split())
        if callable(roots):
            check_function("roots=", roots)
        callbacks = without_none(roots=roots, sampling=sample, **{
            "elicitation.form": elicit, "elicitation.url": elicit_url})
        if ask and callbacks:
            raise TypeError("ask= answers all questions: leave out elicit=, sample= and roots=")
        super().__init__(resolve_target(target, without_none(**options), type(self)),
                         revision, {"name": name, "version": str(version)})
        self.answers = Answers(name, callbacks, ask, capabilities)
        self.timeout, self.max_timeout = min(timeout, max_timeout), max_timeout
        self.progress = progress
        for what in OFFERS:
            if changed := given[f"on_{what}_changed"]:
                self.on(f"notifications/{what}/list_changed")(lambda _, fn=changed: fn())
        if log:
            self.on("notifications/message")(
                lambda params: log(*map(params.get, CALLED_WITH["log"].split())))
        if on_resource_updated:
            self.on("notifications/resources/updated")(on_resource_updated)

    async def __aenter__(self) -> Client:
        await self.connect()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.close()

    async def batch(self, calls: Iterable[tuple[str, Msg | None]]) -> list[Any]:
        """Send several requests together; return results and RemoteErrors in their order.

        They travel as one array where the revision has batches. Any other error, such as a timeout
        of one, is raised at once, and the others are cancelled.
        """
        calls = list(calls)
        for method, _ in calls:
            self.check(method)
        encode([{"params": params} for _, params in calls])  # if one cannot be said, none is
        gathered: list[Msg] = []

        async def gather(msg: Msg) -> None:
            gathered.append(msg)
            if len(gathered) == len(calls):
                await self.send(gathered)  # type: ignore[arg-type]
            elif len(gathered) > len(calls):  # a cancellation, or a second try
                await self.send(msg)

        async def one(method: str, params: Msg | None) -> Msg | RemoteError:
            try:
                return await self.request(method, params, send=send)
            except RemoteError as exc:
                return exc

        send = gather if self.revision == BATCHES and len(calls) <= MAX_ITEMS else None
        return await together(one(*call) for call in calls)

    async def ping(self) -> float:
        """Return how many seconds the server took to respond."""
        start = time.monotonic()
        await self.request("server/discover" if self.modern else "ping")
        return time.monotonic() - start

    # Lists.

    async def _list(self, method: str) -> list[Msg]:
        items: dict[str, Msg] = {}  # by name or URI: some servers repeat pages
        cursors: list[str] = []
        params, size = Msg(), 0
        [(key, needs)] = METHODS[method].lists
        while size <= HELD_BYTES:
            result = await self.request(method, params)
            # Some write null for an empty list.
            page = [] if result.get(key, 0) is None else member(result, key, list)
            for item in page:
                if isinstance(item, dict) and isinstance(item.get(needs), str):
                    items[item[needs]] = item
                else:
                    self.peer.warn("%s sent a malformed item of %s: %.200r", key, item)
            # spec: server/utilities/pagination#implementation-guidelines
            cursor = result.get("nextCursor")
            if cursor is None or cursor in cursors:  # a loop
                return [*items.values()]
            cursors.append(member(result, "nextCursor", str))
            params = {"cursor": cursor}
            size += len(encode(result)) + HELD_BYTES // MAX_PAGES  # a page counts, too
        raise LimitExceeded(f"{method}: more than {MAX_PAGES} pages, or {HELD_BYTES} bytes")

    async def list_tools(self) -> list[Msg]:
        """Return all tools; results are checked by their output schemas from now on."""
        listed = await self._list("tools/list")
        tools, self.outputs = [], {}
        for tool in listed:
            # spec: basic/transports/streamable-http#schema-extension -- invalid ones are left out
            try:
                if self.modern:
                    self.transport.learn_tool(tool)
            except SchemaError as exc:
                logger.warning("tool %r is left out: %s", tool["name"], exc)
                continue
            tools.append(tool)
            with suppress(MCPError):  # a tool works without a schema, and with a wrong one
                self.outputs[tool["name"]] = checker_of(tool.get("outputSchema"))
        return tools

    async def list_resources(self) -> list[Msg]:
        """Return all resources."""
        return await self._list("resources/list")

    async def list_templates(self) -> list[Msg]:
        """Return all resource templates."""
        return await self._list("resources/templates/list")

    async def list_prompts(self) -> list[Msg]:
        """Return all prompts."""
        return await self._list("prompts/list")

    # Using.

    async def call(
        self, name: str, arguments: Msg | None = None, **options: Unpack[RequestOptions]
    ) -> Any:
        """Call a tool and return its value; raise ToolError if it failed. Options: see request().

        The value is the structured output, or else the content: a text, the bytes that the tool
        gave, a block of another kind, a list of several of these, or None if there is no content.
        """
        return value_of(await self.call_tool(name, arguments, **options))

    async def call_tool(
        self, name: str, arguments: Msg | None = None, **options: Unpack[RequestOptions]
    ) -> Msg:
        """Call a tool and return its result as sent."""
        given = to_json({} if arguments is None else arguments)
        known = ("timeout", "progress", "meta")
        faults = [no_such("option", option, known) for option in options if option not in known]
        if type(given) is not dict:
            faults.append(f"got {kind_of(given)}, not a dict")
        if faults:
            raise TypeError(
                f"call({name!r}, {{...}}), with all arguments in the dict: {faults[0]}")
        call = partial(self.request, "tools/call", {"name": name, "arguments": given}, **options)
        try:
            result = await call()
        except RemoteError as exc:
            if exc.code != HEADER_MISMATCH:
                raise
            # spec: basic/transports/streamable-http#client-behavior -- the tool may have changed
            await self.list_tools()
            result = await call()
        # Some servers leave out the content, or write null.
        if result.get("content") is not None or result.get("structuredContent") is None:
            check_objects(result, "content")
        if name in self.outputs and not result.get("isError"):
            # spec: server/tools#output-schema -- "Clients SHOULD validate structured results"
            try:
                self.outputs[name](result.get("structuredContent"))
            except SchemaError as exc:
                raise ProtocolError(f"tool {name!r} broke its own output schema: {exc}") from exc
        return result

    async def read_resource(self, uri: str) -> Msg:
        """Read a resource; return the result as sent: {"contents": [...]}."""
        result = await self.request("resources/read", {"uri": str(uri)})  # a pydantic.AnyUrl, too
        check_objects(result, "contents")
        return result

    async def read(self, uri: str) -> Any:
        """Read a resource; return str or bytes, or a list of them if it has several contents."""
        values = [text_or_bytes(item) for item in (await self.read_resource(uri))["contents"]]
        return values[0] if len(values) == 1 else values

    async def get_prompt(self, name: str, arguments: Mapping[str, Any] | None = None) -> Msg:
        """Return a prompt: {"messages": [{"role", "content"}], "description"?}."""
        texts = {key: text_for(value) for key, value in (arguments or {}).items()}
        result = await self.request("prompts/get", {"name": name, "arguments": texts})
        check_objects(result, "messages")
        return result

    async def complete(
        self, ref: str, argument: str, value: str, context: Fields | None = None
    ) -> list[str]:
        """Return values for an argument of a prompt (by name) or a template (by its URI)."""
        is_template = "://" in ref or "{" in ref
        params = without_none(
            ref={"type": "ref/resource", "uri": ref} if is_template
            else {"type": "ref/prompt", "name": ref},
            argument={"name": argument, "value": value},
            context={"arguments": dict(context)} if context else None)
        result = await self.request("completion/complete", params)
        return [*map(str, member(member(result, "completion", dict), "values", list))]

    def subscribe(self, uri: str, callback: Callback = None) -> Subscription:
        """Subscribe to a resource: `await` this with a callback, or iterate over it."""
        return Subscription(self, {"resourceSubscriptions": [str(uri)]}, callback, False)

    def listen(
        self, *, tools: bool = False, prompts: bool = False, resources: bool = False,
        uris: Iterable[str] = (), callback: Callback = None
    ) -> Subscription:
        """Subscribe to lists and to `uris`: `async for msg in c.listen(tools=True)`.

        `resources` is for the list of resources.
        """
        # In the order of FILTERS.
        wanted = (tools, prompts, resources, [*map(str, as_texts(uris))])
        return Subscription(
            self, {name: value for name, value in zip(FILTERS, wanted) if value}, callback, True)

    async def set_log_level(self, level: str) -> None:
        """Set the mildest level of log messages to be sent: "debug" to "emergency"."""
        check_level(level)
        self.log_level = level
        if not self.modern:  # there, every request says it
            await self.request("logging/setLevel", {"level": level})

    async def roots_changed(self, roots: Any = None) -> None:
        """Replace the roots, if any are passed, and notify the server."""
        check_capability("client", self.peer.session.client_capabilities, "roots")
        if roots is not None:
            self.answers.callbacks["roots"] = roots
        if not self.modern:  # there, the server asks when it needs them
            await self.notify("notifications/roots/list_changed")

####
# 28. Child processes
#
# Problem. A client starts a server as a child process. Often the child is npx, uv or a shell, and
#   the server is a child of that: a signal that ends the one leaves the other running.
# Rules.
#   1. The child is in a process group of its own, with all that it starts. The client ends the
#      whole group: it closes stdin, sends SIGTERM, then SIGKILL, each after a deadline.
#   2. Threads wait for the child's exit and for its stderr: that works on any loop.
#   3. An error says what ended the conversation: exit status, signal, last words.
# Limits. A proxy whose address has a password is not passed on. A client whose loop is closed
#   without close() leaves its server running for as long as the program runs. On Windows, a browser
#   that the server opens may end with it.

__all__ += ["StdioTransport"]

#: Variables that a child may see: enough to run, to find files and the network; no secrets.
INHERITED_VARIABLES = """
    HOME LOGNAME PATH SHELL TERM USER  LANG LC_ALL LC_CTYPE TZ TMPDIR XDG_RUNTIME_DIR
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS  COMSPEC PATHEXT WINDIR
    APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PROCESSOR_ARCHITECTURE PROGRAMDATA PROGRAMFILES
    SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE  PYTHONDONTWRITEBYTECODE PYTHONUTF8
""".split()


def command_line(command: Any, cwd: str) -> list[str]:
    """Return the arguments that start `command`; a string is split, unless it names a file."""
    import shlex

    if isinstance(command, str) and not os.path.isfile(os.path.join(cwd, command)):
        # On Windows a backslash does not escape.
        command = shlex.split(command.replace("\\", "\\\\") if WINDOWS else command)
    argv = [os.fspath(part) for part in as_list(command)]
    if not argv:
        raise ValueError("the command is empty: pass a program and its arguments, or a .py file")
    if argv[0].endswith(".py"):
        # In an application sys.executable is that application, or nothing.
        ours = re.search(r"(?i)(^|[/\\])(python|pypy)[^/\\]*$", sys.executable or "")
        argv.insert(0, sys.executable if ours else PYTHON)
    return argv


def killer_of(child: Any) -> Function:
    """Put a child into a job of Windows, with all that it will start; return the job's killpg()."""
    import ctypes

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    job = kernel.CreateJobObjectW(None, None)
    kernel.AssignProcessToJobObject(job, int(child._handle))

    def kill(number: int) -> None:
        if number:
            child.kill()  # the job that we are in may forbid others
            kernel.TerminateJobObject(job, 1)
            kernel.CloseHandle(job)
            raise ProcessLookupError  # none is left

    return kill


class StdioTransport(LineTransport):
    """A server that we start as a child process; close() ends it.

    `command` is a string, a list of arguments, or the path of a .py file. Of our environment, the
    child sees what INHERITED_VARIABLES names.

    Args:
        env: further variables for it: an API key, PYTHONPATH
        cwd: its working directory
        stderr: a plain function, called with each line; without it, they go to our stderr
        max_message_bytes: of a message that it sends, up to 16 MiB
        exit_seconds: how long it may take to exit when its input is closed (0.2 if it has never
            sent a message), and again after SIGTERM
    """

    process: Any = None  # a Popen
    garbage = ""  # the first line of its stdout that was not a message
    _group_lives = True
    _ends: list[Future]  # of the child and of its stderr

    def __init__(
        self, command: StrPath | Sequence[StrPath], *, env: Fields | None = None,
        cwd: StrPath | None = None, stderr: Callback = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES, exit_seconds: float = GRACE_SECONDS
    ):
        super().__init__(max_message_bytes=max_message_bytes)
        self.cwd = os.path.abspath(cwd or "")
        self.argv = argv = command_line(command, self.cwd)
        program = next((part for part in argv if part.endswith(".py")), argv[0])
        self.name = f"the server {os.path.basename(program)!r}"
        self.env = {name: value for name, value in os.environ.items()
                    if name in INHERITED_VARIABLES
                    and not ("proxy" in name.lower() and "@" in value)}
        for name, value in (env or {}).items():
            if not isinstance(value, str):
                raise TypeError(f"env=: {name} must be a str, not {value!r:.200}")
            self.env[name.upper() if WINDOWS else name] = value  # there, Path is PATH
        if stderr:
            check_function("stderr=", stderr, "line")
        self.stderr = stderr or (lambda line: write_stderr(f"{line}\n"))
        self.exit_seconds = exit_seconds
        self.last_words: deque[str] = deque(maxlen=10)  # lines of its stderr
        self._room = threading.Semaphore(MAX_LINES)  # for lines on their way to the loop
        self._patience = min(exit_seconds, MOMENT_SECONDS)

    async def open(self) -> None:
        import shutil
        from subprocess import PIPE, Popen

        program, *words = self.argv
        program = shutil.which(program, path=self.env.get("PATH")) or program  # npx is npx.cmd
        command: Any = [program, *words]
        if WINDOWS and program.lower().endswith((".bat", ".cmd")):
            # In quotes, cmd.exe takes only % for its own, programs backslashes before a quote.
            line = re.sub(r'(\\+)(?=["\0]|$)', r"\1\1", "\0".join(command))
            line = line.replace('"', '""').replace("\0", '" "')
            if re.search("[%\r\n]", line):
                raise ConnectionClosed(f"cannot start {program!r} with % or newline in an argument")
            command = f'"{line}"'
        self._loop = get_running_loop()
        try:
            child: Any = Popen(command, bufsize=0, stdin=PIPE, stdout=PIPE, stderr=PIPE,
                               cwd=self.cwd, env=self.env, start_new_session=True,
                               # Windows: without a console, in a group; Ctrl-C is for us alone
                               creationflags=0x08000200 if WINDOWS else 0)
        except (OSError, ValueError) as exc:
            text = f"cannot start {program!r} in {self.cwd!r}: {exc}"
            if program.endswith(".js"):
                text += "; node starts .js files"
            elif not os.path.isabs(program):
                text += "; a URL begins with http:// or https://"
            raise ConnectionClosed(text) from exc
        self.process, self._group_lives, self._closing = child, True, None
        self.last_words.clear()
        self._kill = killer_of(child) if WINDOWS else partial(os.killpg, child.pid)
        try:
            self._ends = [in_thread(child.wait), in_thread(lambda: self._listen(child.stderr))]
            await self.use(child.stdout, child.stdin)
        except BaseException:  # we may have been cancelled
            self._signal(9)
            self.process = None
            self.end_input()
            child.stdin.close()
            child.stdout.close()
            raise
        self._keeper = asyncio.ensure_future(self._until_exited())
        # Our loop may end without close(). A task that never began runs no `except`.
        self._keeper.add_done_callback(lambda task: self._drop() if task.cancelled() else None)

    async def _until_exited(self) -> None:
        """End the input when the child has exited and what it wrote is read."""
        await asyncio.wait({self._ends[0]})
        self._signal(0)  # a group without members is signalled no more: another may get its number
        await asyncio.sleep(MOMENT_SECONDS)  # pipes that a child of the child holds never end
        while self._loop.time() - self.idle_since < MOMENT_SECONDS:  # we are slow to read
            await asyncio.sleep(MOMENT_SECONDS)
        self.end_input()

    def _listen(self, errors: io.FileIO) -> None:
        with io.BufferedReader(errors) as lines:
            while data := lines.readline(MAX_HEAD_BYTES):
                line = data.decode("utf-8", "backslashreplace").rstrip()
                self._room.acquire(timeout=MOMENT_SECONDS)
                call_on(self._loop, self._say, line)

    def _say(self, line: str) -> None:
        self._room.release()
        self.last_words.append(line)
        ours = re.fullmatch(r".+ serves https?://\S+", line)  # as run("http") says
        if ours and self._patience < self.exit_seconds:  # it has sent nothing
            self.reason = ('serves HTTP, by run("http"): pass its URL, or (in a shell) write '
                           "FILE.py:APP")
            self.end_input()
        try:
            self.stderr(line)
        except Exception:
            logger.exception("the stderr callback failed")

    async def read(self) -> list[Any]:
        while items := await super().read():
            if messages := list(filter(self._keep, items)):
                self._patience = self.exit_seconds
                return messages
        await self._until_explained()
        return []

    def _keep(self, line: Any) -> bool:
        # Libraries of a server print to stdout, which is forbidden.
        if not isinstance(line, bytes) or is_message(line):
            return True
        if not self.garbage:
            self.garbage = line[:200].decode("utf-8", "replace")
            logger.warning("%s printed to stdout, which is skipped: %r", self.name, self.garbage)
        return False

    async def _until_explained(self) -> None:
        if self._closing is None:
            await asyncio.wait(self._ends, timeout=FAREWELL_SECONDS)

    def explain(self) -> str:
        # spec: basic/transports/stdio#unexpected-termination -- restarting is up to our user
        status = self.process.returncode if self.process else None
        if status is None:
            text = "was closed" if self._closing else self.reason
        elif status < 0:
            text = f"was killed by signal {-status}"
        else:
            text = f"exited with status {status}"
            if not status and self.argv[-1].endswith(".py"):
                text += ": it must call app.run() at its end (or, in a shell, write FILE.py:APP)"
        if words := "\n".join(self.last_words):
            text += f'; its last words: "{words}"'
        return f"{text}{self.hint()}"

    def hint(self) -> str:
        return f'; it printed to stdout: "{self.garbage}"' if self.garbage else ""

    async def _end(self) -> None:
        # spec: basic/transports/stdio#shutdown; the SIGTERM: spec 2025-11-25: basic/lifecycle#stdio
        if self.process is None:
            return
        try:
            await self.end_output()
            await asyncio.wait({self._ends[0]}, timeout=self._patience)
            if self._signal(signal.SIGTERM):
                await poll(lambda: self._signal(0), self.exit_seconds)
        finally:  # at once, if we are cancelled
            self._keeper.cancel()
            self._drop()
            await asyncio.wait(self._ends, timeout=FAREWELL_SECONDS)

    def _drop(self) -> None:
        self._signal(9)
        self.end_input()
        self.writer.close()

    def _signal(self, number: int) -> bool:
        """Signal the child and its children (0: do not); return whether any are left."""
        try:
            if self._group_lives:
                self._kill(number)
        except (ProcessLookupError, PermissionError):  # macOS: EPERM if all are zombies
            self._group_lives = False
        return self._group_lives


CONNECTORS.append((
    lambda target: isinstance(target, (str, os.PathLike, list, tuple))
    and not re.match("[A-Za-z]+://", str(target)), StdioTransport))

# ======
# Part VI. HTTP
# ======

####
# 29. HTTP/1.1
#
# Problem. Two programs that read the same bytes as different messages can be played against each
#   other: what a proxy takes for a body, the server behind it takes for the next request.
# Rules.
#   1. One grammar, no lenient mode: whatever RFC 9112 lets a recipient repair is refused, except
#      one empty line before a request.
#   2. A body has exactly one framing, and a field that steers us occurs once.
#   3. What we write must read back as exactly the fields that were meant.
# Limits. No HTTP/2, content codings, ranges, cookies or upgrades. Nothing of a path is decoded.

TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # RFC 9110 §5.6.2
# `^` holds only after a line feed, which no name or value can have: a match is a whole line.
FIELD_LINE = rf"(?m)^({TOKEN}):([\t\x20-\x7e\x80-\xff]*)\r\n"
REQUEST_LINE = rf"({TOKEN}) ([\x21\x22\x24-\x7e]+) HTTP/1\.([0-9])"
STATUS_LINE = r"HTTP/1\.([0-9]) ([1-5][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?"
AUTHORITY = r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._~-]+)(?::([0-9]{0,5}))?"
#: Its groups: scheme, host:port, host, port, path and query.
ABSOLUTE_FORM = rf"(?ai)(https?)://({AUTHORITY})((?:[/?][^#\x00-\x20\x7f]*)?)"
DEFAULT_PORTS = {"http": 80, "https": 443}
#: Fields of which a second one would contradict the first.
SINGLETONS = frozenset(
    "authorization content-length content-type host last-event-id location mcp-method mcp-name"
    " mcp-protocol-version mcp-session-id origin retry-after".split()
)
#: The size of a body that is not announced in bytes.
CHUNKED, UNTIL_CLOSE = -1, float("inf")


class RequestHead(Row):
    """A request without its body. Names of headers are lowercase; values are latin-1 text."""

    method: str
    path: str
    query: str
    headers: Fields
    #: what access_of() and check_modern_post() found out, for the next one with the same bytes
    notes: dict[Any, Any]
    size: int  #: of the body in bytes, or CHUNKED
    minor: int  #: the version is HTTP/1.minor; 2 and more are as 1
    keep_alive: bool


class ResponseHead(Row):
    status: int
    reason: str
    headers: Fields
    minor: int


def parse_fields(text: str) -> dict[str, str]:
    r"""Return the fields of a head or a trailer. RFC 9110 §5.3, RFC 9112 §5

    >>> parse_fields("Host: a:1\r\nACCEPT: text/html \r\naccept: */*\r\n")
    {'host': 'a:1', 'accept': 'text/html, */*'}
    """
    lines = re.findall(FIELD_LINE, text)
    if len(lines) != text.count("\n"):
        raise ProtocolError("a header line is malformed")
    fields: dict[str, str] = {}
    for name, value in lines:
        name, value = name.lower(), value.strip(" \t")
        if name in fields:
            if name in SINGLETONS:
                raise ProtocolError(f"the header {name} occurs twice")
            value = f"{fields[name]}, {value}"
        fields[name] = value
    return fields


def body_size(fields: Fields, minor: int, otherwise: float = 0) -> Any:
    """Return the size of a body, or CHUNKED, or else `otherwise`. RFC 9112 §6.3"""
    length, coding = fields.get("content-length"), fields.get("transfer-encoding")
    if coding is not None:
        if length is not None or minor == 0 or coding.lower() != "chunked":
            raise ProtocolError("transfer-encoding must be chunked, in HTTP/1.1, without a length")
        return CHUNKED
    if length is None:
        return otherwise
    if not re.fullmatch("[0-9]{1,19}", length):  # int() would take "+5", "1_0" and other digits
        raise ProtocolError("content-length is not a number")
    return int(length)


def is_keep_alive(fields: Fields, minor: int) -> bool:
    options = re.split("[ \t,]+", fields.get("connection", "").lower())  # RFC 9112 §9.3
    return "close" not in options and (minor > 0 or "keep-alive" in options)


def parse_request_head(block: bytes) -> RequestHead:
    # RFC 9112 §2.2 -- "ignore at least one empty line (CRLF) received prior to the request-line"
    line, _, rest = block.removeprefix(b"\r\n").decode("latin-1").partition("\r\n")
    found = re.fullmatch(REQUEST_LINE, line)
    if not found:
        raise ProtocolError("the request line is not METHOD TARGET HTTP/1.1")
    method, target, digit = found.groups()
    minor, headers = int(digit), parse_fields(rest[:-2])
    # RFC 9112 §3.2 -- 400 to any request "that lacks a Host header field"; HTTP/1.0 needs none
    if not re.fullmatch(AUTHORITY, headers.get("host", "" if minor else "localhost")):
        raise ProtocolError("the host is not a name or an address, with or without a port")
    if not target.startswith("/"):
        if not (found := re.fullmatch(ABSOLUTE_FORM, target)):
            raise ProtocolError("the target is neither a path nor an http URL")
        # RFC 9112 §3.2.2 -- "MUST ignore the received Host header field"
        headers["host"], target = found[2], f"/{found[5].removeprefix('/')}"
    path, _, query = target.partition("?")
    shared = MappingProxyType(headers)  # by equal heads: Listener.known_head
    return RequestHead(method, path, query, shared, {}, body_size(headers, minor), minor,
                       is_keep_alive(headers, minor))


def parse_response_head(block: bytes) -> ResponseHead:
    line, _, rest = block.decode("latin-1").partition("\r\n")
    found = re.fullmatch(STATUS_LINE, line)
    if not found:
        raise ProtocolError("the response is not HTTP/1.1")
    minor, status, reason = found.groups("")
    return ResponseHead(int(status), reason, parse_fields(rest[:-2]), int(minor))


@lru_cache(256)  # most messages have the same few headers
def header_lines(fields: tuple[tuple[str, str], ...]) -> bytes:
    """Return header lines; ValueError for those that would not arrive, or that frame a body."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
    meant = {name.lower(): value for name, value in fields}
    with suppress(ProtocolError):
        if parse_fields(lines) == meant and not {"content-length", "transfer-encoding"} & {*meant}:
            return lines.encode("latin-1")
    raise ValueError(f"one of the headers {', '.join(meant)} cannot be sent: a value is a str "
                     "without blanks at its ends, a name occurs once, and lengths are set for you")


def encode_request(method: str, target: str, headers: Fields, body: bytes = b"") -> bytes:
    start = f"{method} {target} HTTP/1.1\r\n".encode()
    # RFC 9110 §8.6 -- a method that anticipates a body says 0 for none
    size = b"Content-Length: %d\r\n" % len(body) if body or method == "POST" else b""
    return b"%b%b%b\r\n%b" % (start, header_lines((*headers.items(),)), size, body)


@lru_cache(256)  # most answers begin with the same bytes
def response_head(status: int, fields: tuple[tuple[str, str], ...]) -> bytes:
    """Return the head of a response without its length, its date and the empty line."""
    from http.client import responses

    return f"HTTP/1.1 {status:03d} {responses.get(status, '')}\r\n".encode() + header_lines(fields)


class URL(Row):
    scheme: str
    authority: str  #: for Host: with the port, if that is not the scheme's own
    host: str
    port: int
    target: str  #: the path and the query, percent-encoded

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"

    def join(self, where: str) -> URL | None:
        """Return the URL of a reference; None for another origin: it may not get our secrets."""
        from urllib.parse import urljoin

        with suppress(ValueError):
            url = parse_url(urljoin(str(self), where).partition("#")[0])
            if url.origin == self.origin:
                return url
        return None


def parse_url(url: str) -> URL:
    """Return the parts of an http or https URL; ValueError says what is wrong."""
    from urllib.parse import quote

    found = re.fullmatch(ABSOLUTE_FORM, url)
    port = int(found[4] or DEFAULT_PORTS[found[1].lower()]) if found else 0
    if not found or not 0 < port < 65536:
        raise ValueError("a URL is http(s)://host[:port]/path, with a port up to 65535, without "
                         "user, blanks and #fragment")
    scheme, name = found[1].lower(), found[3].lower()
    authority = name if port == DEFAULT_PORTS[scheme] else f"{name}:{port}"
    target = quote(f"/{found[5].removeprefix('/')}", safe="%/?:@!$&'()*+,;=~[]")
    return URL(scheme, authority, name.strip("[]"), port, target)

####
# 30. Input
#
# Problem. Messages come in pieces, cut anywhere: `5\r\nhel` is not a chunk yet, and the byte after
#   a body may begin the next message.
# Rules.
#   1. Client and server read with the same class, so they find the same end of each body.
#   2. The end of input is noted at once, not when it is read: so a server learns that its client
#      has left.
#   3. An announced size is checked before the body is read; without one, reading stops at the first
#      piece too many.
# Limits. Chunk extensions and trailers are read and dropped.

CHUNK_LINE = rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\r\n"


class Wire(asyncio.StreamReader):
    """A connection, at either end: from bytes, which asyncio feeds it, to heads and bodies."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Event()
        self.transport: Any = None  # once it is open
        self.buffer, self.pos = b"", 0  # what has arrived; it is unread from `pos` on
        self.ended = False  # nothing more will arrive
        self.paused = False
        self.missing: Any = 0  # bytes of the body, or of its chunk
        self.chunked = False  # whether another chunk of the body may follow
        self.in_chunks = False  # whether the CRLF after a chunk is still to be read

    def set_transport(self, transport: Any) -> None:  # once more when TLS begins in a tunnel
        self.transport = transport

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # typeshed: Iterable
        self.buffer, self.pos = self.buffer[self.pos :] + data, 0
        self.arrived.set()
        if len(self.buffer) > BUFFER_BYTES and not self.paused:
            self.paused = True
            self.transport.pause_reading()

    def set_exception(self, exc: BaseException) -> None:
        super().set_exception(exc)  # type: ignore[arg-type]  # typeshed wants an Exception
        self.transport.close()  # under TLS, before 3.11, a transport misses that it was lost
        self.feed_eof()

    def feed_eof(self) -> None:
        self.ended = True
        self.arrived.set()
        self.hang_up()  # who sends no more has left

    def hang_up(self) -> None:
        if not self.transport.is_closing():  # a second close() under TLS would not end it
            self.transport.close()

    def read_on(self) -> None:
        if self.paused and not self.transport.is_closing():
            self.paused = False
            self.transport.resume_reading()

    async def more(self, what: str) -> None:
        """Wait for more input; ProtocolError if it has ended inside of `what`."""
        if self.ended:
            raise ProtocolError(f"the connection ended inside {what}") from self.exception()
        self.read_on()
        self.arrived.clear()
        await self.arrived.wait()

    @property
    def available(self) -> int:  # bytes
        return len(self.buffer) - self.pos

    def take(self, size: int) -> bytes:
        data = self.buffer[self.pos : self.pos + size]
        self.pos += size
        if self.pos == len(self.buffer):
            self.buffer, self.pos = b"", 0
            self.read_on()  # else the end of the connection would not be noticed
        return data

    async def until(self, mark: bytes, limit: int, what: str) -> bytes:
        """Return what arrives up to and including `mark`."""
        while (end := self.buffer.find(mark, self.pos, self.pos + limit)) < 0:
            if self.available >= limit:
                raise LimitExceeded(f"{what} is longer than {limit} bytes")
            await self.more(what)
        return self.take(end + len(mark) - self.pos)

    def begin_body(self, size: float) -> None:
        """Begin a body of this size, which body_size() found."""
        self.chunked, self.in_chunks = size == CHUNKED, False
        self.missing = 0 if self.chunked else size

    @property
    def complete(self) -> bool:  # whether the body is read
        return not (self.missing or self.chunked)

    async def read_some(self) -> bytes:
        """Return the next bytes of the body; b"" at its end."""
        if self.chunked and not self.missing:
            await self._next_chunk()
        while self.missing and not self.available:
            if self.ended and self.missing == UNTIL_CLOSE:
                self.missing = 0
            else:
                await self.more("a body")
        data = self.take(min(self.missing, self.available))
        self.missing -= len(data)
        return data

    async def _next_chunk(self) -> None:
        """Read the line before the next chunk, or the trailer after the last. RFC 9112 §7.1"""
        if self.in_chunks and await self.until(b"\n", 2, "the end of a chunk") != b"\r\n":
            raise ProtocolError("a chunk does not end where its size says")
        line = await self.until(b"\n", 256, "the line before a chunk")
        if not (found := re.fullmatch(CHUNK_LINE, line)):
            raise ProtocolError("a chunk does not begin with its size")
        self.missing, self.in_chunks = int(found[1], 16), True
        if self.missing:
            return
        room = MAX_HEAD_BYTES
        while (line := await self.until(b"\n", room, "the trailer")) != b"\r\n":
            parse_fields(line.decode("latin-1"))  # fields that come this late steer nothing
            room -= len(line)
        self.chunked = False


class Buffers:
    """The bytes that an engine holds for all its clients, in and out: 4 * HELD_BYTES each."""

    received = 0  # of bodies on their way

    def __init__(self) -> None:
        self.unread: dict[Response, int] = {}  # of responses that are not read, oldest first

    @contextmanager
    def waiting(self, response: Response, size: int) -> Generator[None, None, None]:
        """Count bytes that a client does not read. Of too many, the oldest are cut off."""
        self.unread[response] = size
        while sum(self.unread.values()) > 4 * HELD_BYTES:
            oldest = next(iter(self.unread))
            del self.unread[oldest]
            oldest.cut_off()
        try:
            yield
        finally:
            self.unread.pop(response, None)


async def read_all(read_some: Function, limit: int, buffers: Buffers) -> bytes:
    body = bytearray()
    try:
        while data := await read_some():
            body += data
            buffers.received += len(data)
            if len(body) > limit:
                raise LimitExceeded(f"the body is longer than {limit} bytes", http_status=413)
            # Small bodies pass: most honest ones are small.
            if buffers.received > 4 * HELD_BYTES and len(body) > BUFFER_BYTES:
                raise HTTPError("too many requests are being sent: try again later", 503)
        return bytes(body)
    finally:
        buffers.received -= len(body)

####
# 31. Server-sent events
#
# Problem. A response that never ends carries messages; after a cut the client must say which one it
#   saw last.
# Rules.
#   1. The grammar is WHATWG's, HTML §9.2.6, where every input is valid: unknown fields and comments
#      are passed over, bad UTF-8 is replaced, an event cut short is dropped.
#   2. An event's id counts once its empty line has come, with data or without: else what a cut
#      swallowed would never be sent again.

Event = tuple[str, str]  # its type and its data


class SSEDecoder:
    r"""Turns the pieces of a stream into Events.

    `last_id` is what a client sends as Last-Event-ID when it comes back, after `retry_ms` if the
    server says so.

    >>> decoder = SSEDecoder()
    >>> decoder.feed(b": hello\nid: 7\ndata: {\rdata: }\r\n\r\nretry: 500\n")
    [('message', '{\n}')]
    >>> decoder.last_id, decoder.retry_ms, decoder.feed(b"id: 8\n\n"), decoder.last_id
    ('7', 500, [], '8')
    """

    limit = MAX_MESSAGE_BYTES + 4096  # one event: a message, and its id and name
    event, size = "", 0  # of an unfinished event: type, bytes
    after_cr = False
    encoding = "utf-8-sig"  # of the first line: a stream may begin with a byte order mark

    def __init__(self, last_id: str = "", retry_ms: int | None = None):
        self.last_id = self.next_id = last_id
        self.retry_ms = retry_ms
        self.line = bytearray()  # an unfinished one
        self.lines: list[str] = []  # of data of an unfinished event

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that `data` completes."""
        # A CR ends its line at once: a LF may come later, or never.
        rest = data[1:] if self.after_cr and data.startswith(b"\n") else data
        self.after_cr = data.endswith(b"\r")
        events: list[Event] = []
        parts = rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for number, part in enumerate(parts):
            if number:  # between two parts a line ends
                self._take(self.line.decode(self.encoding, "replace"), events)
                self.encoding = "utf-8"
                self.line.clear()
            self.line += part
            if self.size + len(self.line) > self.limit:
                raise LimitExceeded(f"an event is longer than {self.limit} bytes")
        return events

    def _take(self, line: str, events: list[Event]) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            self.last_id = self.next_id
            if self.lines:  # one empty `data` line is enough for an event, whose data is ""
                events.append((self.event or "message", "\n".join(self.lines)))
            self.event, self.lines, self.size = "", [], 0
        elif name == "data":
            self.lines.append(value)
            self.size += len(self.line) + 1  # in bytes
        elif name == "event":
            self.event = value
        elif name == "id" and "\0" not in value:
            self.next_id = value
        elif name == "retry" and re.fullmatch("[0-9]+", value):
            self.retry_ms = int(min(float(value), 1000 * LONGEST_SECONDS))

####
# 32. HTTP rules
#
# Problem. Anybody can send us a request: a browser for a web site, a thief of session ids.
# Rules.
#   1. A refusal names the setting that would allow it, where there is one.
#   2. Host and Origin are judged by name. DNS rebinding gives the name of a page our address, so
#      that the browser takes us for its server. An IP address cannot be rebound; and where a token
#      is needed, any Host will do: such a page has none.
# Limits. What a proxy says of its client (X-Forwarded-For) is not read.

ADDRESS = r"([0-9.]+|\[[0-9a-f:.]+\])(:[0-9]*)?"  # no DNS name has only digits at its end
SESSION_HEADER, VERSION_HEADER = "mcp-session-id", "mcp-protocol-version"
JSON_TYPE, EVENT_TYPE = "application/json", "text/event-stream"
JSON_HEADERS: Fields = {"content-type": JSON_TYPE}
#: What a trace shows, besides the first characters of secret headers.
TRACED_HEADERS = "content-type|last-event-id|location|mcp-.*|retry-after|www-authenticate"


class HTTPHead(Msg):
    """The head of an HTTP message, for a trace: {"http": its line, "headers": {...}}."""


def trace_head(direction: str, line: str, headers: Fields) -> None:
    if not _trace:
        return
    shown = {}
    for name, value in headers.items():
        if name in ("authorization", SESSION_HEADER):
            shown[name] = f"{value[:6]}..."
        elif re.fullmatch(TRACED_HEADERS, name):  # the query of a location has the code of a login
            shown[name] = re.split("[?#]", value)[0][:99]
    _trace(direction, "HTTP", HTTPHead(http=line.partition("?")[0], headers=shown))


def is_loopback(host: str) -> bool:
    return re.fullmatch(r"localhost|127(\.[0-9]{1,3}){3}|::1", host) is not None


def is_safe(url: URL) -> bool:
    """Return whether nobody between us and the server can read what is sent."""
    return url.scheme == "https" or is_loopback(url.host)


def checked_names(option: str, given: Names, pattern: str) -> set[str]:
    names = [name.lower().rstrip("/") for name in as_texts(given)]
    for name in names:
        if not re.fullmatch(pattern, name):
            raise ValueError(
                f'{option}= has {name!r}: pass a host, an origin like https://x.example, or "*"')
    return {*names}


class HostPolicy:
    """Decides which Host and Origin are let in. Loopback names are, with any port.

    Any other Host must be one of `hosts`; if that is None, an IP address, or anything if nobody
    gets in without a token (`locked`). Any other Origin must be in `hosts` or `origins`.
    """

    def __init__(self, hosts: Names | None, origins: Names):
        self.any_address = hosts is None
        self.hosts = checked_names("allowed_hosts", hosts or (), r"\*|[^/*]+")
        self.origins = checked_names("allowed_origins", origins, r"\*|null|[^/]+://[^/*]+")

    def check(self, headers: Fields, locked: bool) -> None:
        """Raise HTTPError 403 for a Host or an Origin that is not let in."""
        host, origin = headers.get("host", "").lower(), headers.get("origin", "").lower()
        host_fits = self._is_ours(host) or "*" in self.hosts or (
            self.any_address and (locked or re.fullmatch(ADDRESS, host)))
        site = re.sub("^https?://", "", origin)
        origin_fits = self._is_ours(site) or {origin, "*"} & self.origins
        for name, fits in (("host", host_fits), ("origin", origin_fits)):
            if name in headers and not fits:
                # spec: basic/transports/streamable-http#security--endpoint -- "HTTP 403 Forbidden"
                raise HTTPError(
                    f"the {name} {headers[name][:100]!r} is not allowed here: see allowed_{name}s",
                    403)

    def _is_ours(self, host: str) -> bool:
        """Return whether it is a loopback name or one of `hosts`, with or without a port."""
        found = re.fullmatch(AUTHORITY, host)
        return found is not None and (
            is_loopback(found[1].strip("[]")) or not self.hosts.isdisjoint((host, found[1])))


def media_type(headers: Fields) -> str:
    """Return the type of a body, without parameters. RFC 9110 §8.3.1"""
    return headers.get("content-type", "").partition(";")[0].strip(" \t").lower()


def check_json(headers: Fields) -> None:
    """Raise HTTPError 415 for other types: any page may send "simple" ones."""
    if headers.get("content-type") != JSON_TYPE != media_type(headers):
        raise HTTPError(f"content-type must be {JSON_TYPE}", 415)


def header_revision(headers: Fields) -> str:
    name = headers.get(VERSION_HEADER, "")
    # spec 2025-11-25: basic/transports#protocol-version-header -- "MUST respond with 400"
    # spec: basic/transports/streamable-http#protocol-version-header -- with the supported versions
    if name not in REVISIONS and VERSION_HEADER in headers:
        raise ProtocolError(f"revision {name[:40]!r} is not one of {', '.join(REVISIONS)}",
                            UNSUPPORTED_VERSION, data={"supported": SUPPORTED, "requested": name})
    return name


def sendable_token(token: Any) -> Any:
    """Return a token, or None; ValueError for what no header can carry."""
    if token is not None and not (isinstance(token, str) and re.fullmatch(r"[\x21-\x7e]+", token)):
        raise ValueError('token= must be a str of visible ASCII, without blanks or "Bearer"')
    return token


def sendable_headers(headers: Any) -> Fields:
    """Return headers, their names in lower case; ValueError for what no message can carry."""
    try:
        given = {str.lower(name): value for name, value in dict(headers or {}).items()}
        hash((*given.items(),))  # a list has none
    except (TypeError, ValueError):
        raise TypeError('headers must be a dict of texts: {"name": "value"}') from None
    header_lines((*given.items(),))
    return given

####
# 33. Mirrored headers
#
# Problem. Proxies and balancers read headers, not bodies. So a modern request repeats parts of its
#   body in headers, and nobody may be fooled by headers that say something else.
# Rules.
#   1. The headers for which a body asks must agree with it; others are not looked at.
#   2. A tool may name arguments to repeat; a schema that does so wrongly is refused.
# Limits. Only strings, integers and booleans are repeated, where only `properties` lead to them.

ENCODED = r"=\?base64\?(.*)\?="
SAFE_INTEGER = 2**53 - 1  # the largest that a double, as in JavaScript, tells from its neighbours
#: HTTP statuses of the modern era, by the code of an error; others have 200.
MODERN_STATUS = {
    METHOD_NOT_FOUND: 404, PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400, MISSING_CAPABILITY: 400, UNSUPPORTED_VERSION: 400
}


def encode_header_value(text: str) -> str:
    """Write a value for a header. spec: basic/transports/streamable-http#value-encoding

    >>> encode_header_value("us west 1"), encode_header_value(" padded ")
    ('us west 1', '=?base64?IHBhZGRlZCA=?=')
    """
    if re.fullmatch("([!-~]([ -~]*[!-~])?)?", text) and not re.fullmatch(ENCODED, text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


class HeaderMismatch(RPCError, ValueError):
    """A header differs from the body, or cannot repeat it."""

    def __init__(self, problem: str):
        super().__init__(HEADER_MISMATCH, f"Header mismatch: {problem}")


def decode_header_value(text: str) -> str:
    found = re.fullmatch(ENCODED, text)
    with suppress(ValueError):
        if found:
            return base64.b64decode(found[1], validate=True).decode()
        if re.fullmatch(r"[\t\x20-\x7e]*", text):  # RFC 9110 §5.5, without what is obsolete
            return text
    raise HeaderMismatch("a value is neither plain ASCII nor Base64")


#: A header, and the properties that lead to the argument that it repeats.
Mirror = tuple[str, tuple[str, ...]]
HeaderValue = Union[str, int, None]  # what a header must say; None for no header


@added
def mirrors_of(schema: JSON) -> list[Mirror]:
    """Return the mirrors that an inputSchema asks for; SchemaError if it does so wrongly.

    >>> mirrors_of({"properties": {"a": {"type": "string", "x-mcp-header": "Region"}}})
    [('mcp-param-region', ('a',))]
    """
    found = [*_find_mirrors(schema, ())]
    if len(dict(found)) < len(found):
        raise SchemaError("", "two arguments are mirrored in the same header")
    return found


def _find_mirrors(node: JSON, path: tuple[str, ...] | None) -> Iterable[Mirror]:
    """Yield the mirrors in a part of a schema; its `path` is None where mirrors are not allowed."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    elif not isinstance(node, dict):
        return
    if "x-mcp-header" in node:
        name, plain = node["x-mcp-header"], node.get("type") in ("string", "integer", "boolean")
        if not (path and plain and isinstance(name, str) and re.fullmatch(TOKEN, name)):
            raise SchemaError(".".join(path or ()), "x-mcp-header must name a header, on "
                              "a property of type string, integer or boolean")
        yield f"mcp-param-{name.lower()}", path
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):
            for name, field in value.items():
                yield from _find_mirrors(field, None if path is None else (*path, name))
        elif key not in ("const", "default", "enum", "examples"):  # values, not schemas
            yield from _find_mirrors(value, None)


def mirrored_value(path: Iterable[str], value: JSON) -> HeaderValue:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # spec: basic/transports/streamable-http#schema-extension -- "MUST be within the safe range"
    if isinstance(value, int) and abs(value) > SAFE_INTEGER:
        raise HeaderMismatch(f"an integer is above {SAFE_INTEGER}")
    return value if isinstance(value, (str, int)) else None


def mirrored_headers(msg: Msg, tools: Mapping[str, Any]) -> dict[str, HeaderValue]:
    """Return what the headers of a modern request repeat; None where a tool's must be absent.

    >>> mirrored_headers({"method": "prompts/get", "params": {"name": "été"}}, {})
    {'mcp-method': 'prompts/get', 'mcp-name': 'été'}
    """
    method, params = msg["method"], msg.get("params", {})
    headers: dict[str, HeaderValue] = {"mcp-method": method}
    name = params.get(METHODS.get(method, CUSTOM).mirrors)
    if isinstance(name, str):
        headers["mcp-name"] = name
        if method == "tools/call" and name in tools:
            for header, path in tools[name].mirrors:
                headers[header] = mirrored_value(path, params.get("arguments"))
    return headers


def check_mirror(headers: Fields, name: str, value: HeaderValue) -> None:
    """Raise HeaderMismatch unless a header says what the body says."""
    # spec: basic/transports/streamable-http#server-behavior-for-custom-headers
    sent: HeaderValue = headers.get(name)
    if isinstance(sent, str) and name.startswith(("mcp-name", "mcp-param-")):
        sent = decode_header_value(sent)
        number = re.fullmatch(r"(-?[0-9]{1,19})(\.0*)?", sent)
        if isinstance(value, int) and number:  # "42.0" and "42" are the same number
            sent = int(number[1])
    if sent != value:
        problem = "is missing" if sent is None else "does not match the body"
        raise HeaderMismatch(f"{name} {problem}")


def check_modern_post(msg: Msg, request: HTTPRequest, tools: Mapping[str, Any]) -> Facts:
    """Check a modern request and the headers that repeat it; return its facts.

    The first fault is reported: metadata (-32602), the revision's header (-32020), a revision that
    is not served (-32022), the other headers (-32020). The notes keep what was found to agree.
    spec: basic/transports/streamable-http#server-validation
    """
    facts = read_metadata(msg)
    check_mirror(request.headers, VERSION_HEADER, facts.rev)
    check_version(facts)
    mirrors = mirrored_headers(msg, tools)
    if request.notes.get("mirrors") != mirrors:
        for name, value in mirrors.items():
            check_mirror(request.headers, name, value)
        request.notes["mirrors"] = mirrors
    return facts

####
# 34. Requests and responses
#
# Problem. What serves a request need not know which engine took it: our sockets, or an ASGI server.
# Rule. send() sends a response whole, or begins a stream for write(). Both wait while the client is
#   slow to read, and do nothing once the client is gone.
# Limits. A handler gets the body whole.

__all__ += ["HTTPRequest"]

too_late = partial(HTTPError, "the request did not come in time", 408)


class HTTPRequest(Caller):
    """A request as a handler sees it, and who sends it.

    `method`, `path`, `query` (without "?"), `headers` (names in lower case), `body` (bytes),
    `principal` (who was authenticated, or None).
    """

    def __init__(self, head: RequestHead, address: str, scheme: str, root: str = ""):
        super().__init__(head.headers, address)
        self.method, self.path, self.query = head.method, head.path, head.query
        self.notes, self.scheme = head.notes, scheme  # "http" or "https"
        self.body = b""
        self.root = root  # the path before ours, where we are mounted


Head = tuple[int, Fields]  # the status and the headers of a response


class Response:
    """The response to one request. An engine defines read(), _write() and cut_off()."""

    read: Function  # await read(limit): the body of the request, of so many bytes at most
    #: _write(head or None, data, whether more follows): await its result, if there is one
    _write: Function
    cut_off: Action  # ends a response that the client does not read

    def __init__(self) -> None:
        self.cors: Fields = {}  # headers of every response
        self.begun = self.ended = False
        self.lost = False  # whether the client is gone, or cut off
        self.on_end: tuple[Action, ...] = ()

    def send(
        self, status: int, headers: Fields, data: bytes = b"", more: bool = False
    ) -> Awaitable[None]:
        """Send a whole response; with `more`, begin a stream."""
        if self.begun:  # too late for a status: it is cut off
            self.lose()
        elif _trace:
            trace_head(">", str(status), headers)
        return self.write(data, more, (status, {**headers, **self.cors}))

    async def write(self, data: bytes, more: bool = True, head: Head | None = None) -> None:
        """Send the next data of a stream, after its head if that is passed; `more` may follow."""
        if self.lost or self.ended:
            return
        waiting = self._write(head, data, more)
        data = b""  # it may be large
        self.begun, self.ended = True, not more
        if waiting:
            await waiting
        if not more:
            self.finish()

    def at_end(self, action: Action) -> None:
        """Call `action` once, when all is written or the client is gone."""
        self.on_end += (action,)
        if self.lost:
            self.finish()

    def finish(self) -> None:
        on_end, self.on_end = self.on_end, ()  # no circle of references stays
        for action in on_end:
            action()

    def lose(self) -> None:
        self.lost = True
        self.finish()


async def answer_with(
    handle: Function, request: HTTPRequest, response: Response,
    problem: ProtocolError | None = None
) -> None:
    """Answer by handle(request, response), or with the `problem`, or with what it raises."""
    try:
        if problem:
            raise problem
        await handle(request, response)
    except ProtocolError as exc:
        logger.info("%s refused: %d %s", request.address, exc.http_status, exc)
        await response.send(exc.http_status, {**JSON_HEADERS, **exc.headers},
                            encode(error(exc.req_id, exc)))
    except asyncio.CancelledError:
        response.lose()
        raise
    except (Exception, SystemExit):  # a page does not end the server
        logger.exception("%s %s failed", request.method, request.path)
        await response.send(500, {"content-type": "text/plain"}, b"The server's log says why.\n")

####
# 35. Connections
#
# Problem. Clients send a byte a minute, or do not read, or are half gone.
# Rules.
#   1. A connection serves one request at a time, each in a task of its own, which begins when its
#      head has arrived.
#   2. Every wait but that for a handler has a deadline.
#   3. A request that is malformed, or whose body is not read, gets its answer, and the connection
#      closes.
# Limits. A client that closes its side of the connection is gone: it gets no answer.
#
#     It waits for            at most                           and then
#     the next request        IDLE_SECONDS                      it is closed
#     the rest of a head      HEAD_SECONDS from its first byte  408, and it is closed
#                             or what is left of IDLE_SECONDS, if that is less
#     the rest of a body      REQUEST_SECONDS from its head     408, and it is closed
#     a slow reader           STALL_SECONDS without a byte      it is cut off
#     input while it closes   PROBE_SECONDS                     it is cut off

NO_HEAD = RequestHead("", "", "", {}, {}, 0, 1, False)  # of what was refused before it had one


class SocketResponse(Response):
    task: Task  # runs the handler; nothing else refers to it

    def __init__(self, connection: Connection, head: RequestHead):
        super().__init__()
        self.connection, self.head = connection, head
        self.chunked = False  # whether it is sent in chunks
        self.keep_alive = head.keep_alive  # whether the connection serves another request

    async def read(self, limit: int) -> bytes:
        conn = self.connection
        if conn.missing > limit:
            raise LimitExceeded(f"the body is longer than {limit} bytes", http_status=413)
        if conn.missing <= conn.available and not conn.chunked:  # all of it came with the head
            size, conn.missing = conn.missing, 0
            return conn.take(size)
        if self.head.headers.get("expect", "").lower() == "100-continue":  # RFC 9110 §10.1.1
            if self.head.minor > 0 and not conn.available:
                conn.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return await within(REQUEST_SECONDS, read_all(
            conn.read_some, limit, conn.listener.buffers), too_late())

    def _write(self, head: Head | None, data: bytes, more: bool) -> Awaitable[Any] | None:
        start = self._start(head, len(data), more) if head else b""
        if self.head.method == "HEAD":
            data = b""
        if self.chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            data += b"" if more else b"0\r\n\r\n"
        conn, data = self.connection, start + data
        transport = conn.transport
        conn.written += len(data)
        if len(data) <= BUFFER_BYTES:
            transport.write(data)
        else:
            for at in range(0, len(data), BUFFER_BYTES):  # TLS does not count a long piece
                if not transport.is_closing():  # asyncio would log each piece for a lost client
                    transport.write(data[at : at + BUFFER_BYTES])
        return self.drain() if transport.get_write_buffer_size() > BUFFER_BYTES else None

    def _start(self, head: Head, size: int, more: bool) -> bytes:
        """Return the head, and decide how the body ends."""
        conn, (status, headers), framing = self.connection, head, b""
        fields = tuple(headers.items())
        self.chunked = more and self.head.minor > 0
        if self.chunked:
            framing = b"transfer-encoding: chunked\r\n"
        elif more:  # in HTTP/1.0, a stream ends with its connection
            self.keep_alive = False
        elif status not in (204, 304):  # RFC 9110 §8.6
            framing = b"content-length: %d\r\n" % size
        if not conn.complete or conn.listener.stopping:
            self.keep_alive = False
        if not self.keep_alive:
            fields += (("connection", "close"),)
        # RFC 9110 §6.6.1 -- an origin server with a clock sends Date
        return b"%b%b%b\r\n" % (response_head(status, fields), conn.listener.date, framing)

    async def drain(self) -> None:
        conn = self.connection
        size = conn.transport.get_write_buffer_size()
        # OSError: the client is gone, and lose() was called.
        with conn.listener.buffers.waiting(self, size), suppress(OSError):
            async with conn.drain_lock:
                if conn.writer:
                    conn.renew_stall()
                    await conn.writer.drain()

    def cut_off(self) -> None:
        self.connection.transport.abort()

    def finish(self) -> None:
        super().finish()
        if self.connection.response is self:
            self.connection.next_or_close(self)


class Connection(Wire):
    """A connection to our port. Its Listener calls expire() after the `deadline`."""

    writer: asyncio.StreamWriter | None = None  # of asyncio's streams, while it is open
    sent = 0  # bytes that had left when STALL_SECONDS last began
    lingering = False  # what arrives is thrown away

    def __init__(self, listener: Listener):
        super().__init__()
        self.response: SocketResponse | None = None
        self.written = 0  # bytes
        self.listener = listener
        self.deadline = listener.now + IDLE_SECONDS
        self.drain_lock = asyncio.Lock()  # as in LineTransport

    def begin(self, writer: asyncio.StreamWriter) -> None:  # asyncio calls it
        self.writer, peer = writer, self.transport.get_extra_info("peername")
        self.address = peer[0] if isinstance(peer, tuple) else "local"
        self.listener.admit(self)

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]
        if not self.lingering:
            super().feed_data(data)
            self.next_request()

    def next_request(self) -> None:
        """Serve the next request if its head has arrived, and none is served."""
        if self.response or self.transport.is_closing():
            return
        end = self.buffer.find(b"\r\n\r\n", self.pos)
        size = (end + 4 if end >= 0 else len(self.buffer)) - self.pos
        try:
            if size > MAX_HEAD_BYTES:
                raise LimitExceeded("the head is too long", http_status=431)
            if self.buffer.startswith(b"\x16", self.pos):
                raise ProtocolError("this is TLS, and the port speaks plain HTTP")
            if end < 0:  # no later byte renews the deadline
                self.deadline = min(self.deadline, self.listener.now + HEAD_SECONDS)
                return
            head = self.listener.known_head(self.take(size))
            self.begin_body(head.size)
        except ProtocolError as exc:
            self.serve(NO_HEAD, exc)  # and no other request: RFC 9112 §6.3
        else:
            self.serve(head)

    def serve(self, head: RequestHead, problem: ProtocolError | None = None) -> None:
        listener, self.deadline = self.listener, NEVER
        request = HTTPRequest(head, self.address, listener.scheme)
        self.response = response = SocketResponse(self, head)
        coro = answer_with(listener.handle, request, response, problem)
        response.task = asyncio.Task(coro, loop=listener.loop, **_EAGER)

    def next_or_close(self, response: SocketResponse) -> None:
        self.response, self.deadline = None, self.listener.now + IDLE_SECONDS
        if response.keep_alive and not response.lost:
            self.read_on()
            if self.buffer:  # pipelined: others have their turn
                self.listener.loop.call_soon(self.next_request)
        elif self.transport.can_write_eof() or not self.complete:
            # RFC 9112 §9.6 -- unread or late input resets what is closed, and the answer is lost
            self.lingering, self.buffer, self.pos = True, b"", 0
            self.deadline = self.listener.now + PROBE_SECONDS
            with suppress(OSError, NotImplementedError):  # it was reset this moment; it is TLS
                self.transport.write_eof()
            self.read_on()
        else:
            self.hang_up()

    def feed_eof(self) -> None:
        if self.transport.is_closing():  # the connection has ended, not just its input
            self.listener.connections.pop(self, None)
            self.writer = None  # which refers to us: no cycle stays
        super().feed_eof()
        if self.response:
            self.response.lose()

    def renew_stall(self) -> None:
        self.sent = self.written - self.transport.get_write_buffer_size()
        self.deadline = self.listener.loop.time() + STALL_SECONDS

    def expire(self) -> None:
        """Do what the table says; read() has the deadline of a body."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and self.written - unsent > self.sent:  # a slow reader has read some
            self.renew_stall()
        elif self.response and not unsent:  # it waits for the handler
            self.deadline = NEVER
        elif self.buffer and not self.response:  # the rest of a head
            self.serve(NO_HEAD, too_late())
        else:
            self.transport.abort()

####
# 36. Listeners
#
# Problem. Many clients come at once, over TCP, TLS and Unix sockets.
# Rule. One connection too many: the one whose deadline is next makes room.
# Limits. A Unix socket has the permissions that the umask leaves; a second server takes it over.

class Listener:
    """Takes connections; handle(request, response) serves their requests."""

    scheme = "http"
    stopping = False  # each connection ends with its next answer
    server: Any = None

    def __init__(self, handle: Function):
        self.handle, self.limit = handle, MAX_CLIENTS
        with suppress(ImportError):  # Windows has no such limit
            import resource

            # Above that, accept() fails: a quarter is left for files.
            self.limit = min(self.limit, resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 3 // 4)
        self.loop = get_running_loop()
        self.connections: dict[Connection, None] = {}  # oldest first
        self.buffers = Buffers()
        self.known_head = lru_cache()(parse_request_head)  # a client's heads are alike
        self._sweep()

    async def start(
        self, host: str, port: int, uds: str | None = None, ssl: Any = None, sock: Any = None
    ) -> str:
        """Listen; return the URL of the root, or raise CannotServe."""

        def accept() -> asyncio.StreamReaderProtocol:
            # asyncio passes its reader, the Connection, as `self`; a bound method holds a cycle.
            begin: Any = Connection.begin
            return asyncio.StreamReaderProtocol(Connection(self), begin, self.loop)

        try:
            options = Msg(backlog=MAX_IN_FLIGHT)
            if ssl is not None:
                self.scheme = "https"
                options.update(ssl=server_ssl(ssl), ssl_handshake_timeout=PROBE_SECONDS)
            if uds:
                self.server = await self.loop.create_unix_server(accept, uds, **options)
            else:
                place = {"sock": sock} if sock else {"host": host, "port": port}
                self.server = await self.loop.create_server(accept, **place, **options)
        except (OSError, ValueError) as exc:  # ValueError: it is not a DNS name
            code, why = getattr(exc, "errno", None), getattr(exc, "strerror", None) or exc
            if code == errno.EADDRINUSE:
                why = "it is in use: choose another, or end the program that has it"
            where = uds or sock or f"port {port} of {host}"
            raise CannotServe(code, f"cannot listen on {where}: {why}") from None
        address = self.server.sockets[0].getsockname()
        if not isinstance(address, tuple):
            return f"{self.scheme}://localhost"
        name = address[0] if sock else host
        return f"{self.scheme}://{f'[{name}]' if ':' in name else name}:{address[1]}"

    def admit(self, connection: Connection) -> None:
        if len(self.connections) >= self.limit:
            # Those that wait for a handler stay; if all do, the new one goes. One whose body is
            # coming has the deadline NEVER: of these, min() returns the oldest.
            victim = min((x for x in self.connections if not (x.response and x.complete)),
                         key=lambda x: x.deadline, default=connection)
            victim.transport.abort()
            self.connections.pop(victim, None)
        self.connections[connection] = None

    def _sweep(self) -> None:
        from email.utils import formatdate

        self.now = now = self.loop.time()  # near enough, until the next sweep
        self.date = f"date: {formatdate(usegmt=True)}\r\n".encode()  # RFC 9110 §5.6.7
        self._sweeper = self.loop.call_later(LOOK_SECONDS, self._sweep)
        for connection in [item for item in self.connections if item.deadline < now]:
            connection.expire()

    async def stop(self, grace: float) -> None:
        """Let requests finish within the grace period, then close everything."""
        self.stopping = True
        if self.server:
            self.server.close()
        for connection in list(self.connections):
            if not connection.response:
                connection.hang_up()
        await poll(lambda: self.connections, grace)
        for connection in list(self.connections):
            if connection.response:
                connection.response.task.cancel()
            connection.transport.abort()
        await asyncio.sleep(0)  # lets the transports go before the loop does
        self._sweeper.cancel()


def server_ssl(ssl: Any) -> Any:
    """Return an SSLContext for one, or for the paths of a certificate and its key."""
    from ssl import PROTOCOL_TLS_SERVER, SSLContext, TLSVersion

    if isinstance(ssl, SSLContext):
        return ssl
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.minimum_version = TLSVersion.TLSv1_2  # RFC 8996
    try:
        context.load_cert_chain(*as_list(ssl))
    except OSError as exc:  # which does not name them
        raise OSError(exc.errno, f"cannot load certificate and key from {ssl}: {exc}") from None
    return context

####
# 37. Streams and sessions
#
# Problem. Every message of the client is a POST, and connections may be cut at any byte.
# Rules.
#   1. An answer is JSON, unless something must be sent before it, or a handler takes long: then the
#      response becomes a stream, and comments keep the connection.
#   2. In a session a lost connection cancels nothing, except with HTTP+SSE. Events are numbered per
#      stream and kept; a GET with Last-Event-ID goes on after the last one.
# Limits. The newest events of all sessions are kept, up to HELD_BYTES.

STREAM_HEADERS = {
    "content-type": EVENT_TYPE,
    "cache-control": "no-cache, no-transform",
    # spec: basic/transports/streamable-http#receiving-messages -- else proxies hold events back
    "x-accel-buffering": "no"
}
EVENT_BYTES = 2048  # what an event takes besides its data


class KeptEvents(OrderedDict[Any, bytes]):
    """Events of sessions, by (stream, number), oldest first."""

    size = 0  # bytes

    def keep(self, event: Any, data: bytes) -> None:
        self[event] = data
        self.size += len(data) + EVENT_BYTES
        while self.size > HELD_BYTES:
            self.forget(next(iter(self)))

    def forget(self, event: Any) -> None:
        self.size -= len(self.pop(event)) + EVENT_BYTES


class Stream:
    """The way to a client: called with each message that answers a POST, or that no request caused.

    response, but no name    a POST waits for its answer, which may be JSON
    response and name        a reader is sent each event
    name, but no response    a session keeps the events until a reader comes
    """

    name = ""  # begins the ids of its events
    newest = sent = 0  # numbers of events: the newest, and the newest that was sent
    complete = False  # whether the newest is the last

    def __init__(
        self, conversation: HTTPConversation, response: Response | None = None,
        principal: Any = None
    ):
        self.conversation, self.response, self.principal = conversation, response, principal
        self.endpoint = conversation.endpoint
        self.sent_at = self.endpoint.now
        if response:
            self.endpoint.live.add(self)

    def __call__(self, msg: Payload) -> Awaitable[Any]:
        """Send a message. After a response, the stream of a POST ends; that of HTTP+SSE goes on."""
        conversation = self.conversation
        final = "method" not in msg and self is not conversation.standalone
        conversation.show(">", msg)
        if self.name or not final:
            return self.send_event(msg, final)
        # What may raise comes first: then the response can still be an error.
        body, (status, headers) = encode(msg), conversation.head_of(msg, self.principal)
        response = self.release()  # None if the session has ended
        return response.send(status, headers, body) if response else nowhere(msg)

    async def send_event(self, msg: Payload, final: bool) -> None:
        """Send a message as an event, which a session keeps."""
        data = b"data: %b\n\n" % encode(msg)
        await self.open()
        self.newest += 1
        if self.conversation.stores_events:
            data = f"id: {self.name}-{self.newest}\n".encode() + data
            self.endpoint.kept.keep((self, self.newest), data)
        response = self.release() if final else self.response
        if response:
            self.sent, self.sent_at = self.newest, self.endpoint.now
            await response.write(data, not final)

    async def open(self) -> None:
        """Begin the response as a stream of events, unless it has begun."""
        if self.response and not self.name:
            await self.attach(self.response)

    async def attach(self, response: Response, primed: bool = False) -> None:
        """Send this reader the events that were not sent, and from now on all others.

        Unless it is primed, it gets an event without data first: an id from which to resume.
        """
        conversation, kept = self.conversation, self.endpoint.kept
        if not self.name:
            self.name = os.urandom(8).hex()
            conversation.streams[self.name] = self
        events = [kept.get((self, n), b"") for n in range(self.sent + 1, self.newest + 1)]
        if conversation.can_resume and not primed:
            # spec 2025-11-25: basic/transports#sending-messages-to-the-server
            primer = f"id: {self.name}-{self.sent}\nretry: {RETRY_MS}\ndata: \n\n"
            events.insert(0, primer.encode())
        self.sent, self.sent_at = self.newest, self.endpoint.now
        if not self.complete:
            self.response = response
            self.endpoint.live.add(self)
            response.at_end(partial(self.detach, response))
        await response.send(200, {**STREAM_HEADERS, **conversation.headers},
                            b"".join(events), not self.complete)

    def detach(self, response: Response) -> None:
        if self.response is response:
            self.release()
            self.conversation.reader_left()

    def release(self) -> Response | None:
        """Be without a reader; return the one that was there."""
        response, self.response = self.response, None
        self.endpoint.live.discard(self)
        return response

    async def keep_alive(self) -> None:
        """Send a comment, as a stream from now on."""
        self.sent_at = self.endpoint.now
        await self.open()
        if self.response:
            await self.response.write(b":\n\n")

    async def pause(self, retry_ms: int) -> bool:
        """End the connection, not the stream; return False if the client cannot come back."""
        if can_resume := self.conversation.can_resume:
            await self.open()
            await self.end(b"retry: %d\n\n" % retry_ms)
        return can_resume

    async def end(self, data: bytes = b"") -> None:
        if (response := self.release()) and response.begun:
            await response.write(data, False)
        elif response:  # without an answer, HTTP still needs a response
            await response.send(200, STREAM_HEADERS)


class HTTPConversation(Conversation):
    """A conversation over HTTP. This class itself serves one POST of a server without sessions."""

    id = ""  # of a session
    standalone: Any = None  # the stream of a session for what no request caused
    stores_events = False  # whether events are numbered and kept
    reader_left: Any = nothing  # called when the reader of a stream has gone

    def __init__(self, endpoint: Endpoint, caller: Caller):
        super().__init__(endpoint.server, caller.address)
        self.endpoint, self.loads = endpoint, endpoint.loads

    @cached_property
    def streams(self) -> Any:
        """Its streams of events, by name, while they go on or have kept events."""
        return weakref.WeakValueDictionary()

    @property  # with more than 30 attributes, CPython finds each of them more slowly
    def headers(self) -> Fields:
        """Those of the answer that opens a session, and of its streams."""
        return {SESSION_HEADER: self.id} if self.stores_events else {}  # HTTP+SSE has it in a URL

    @property
    def can_resume(self) -> bool:
        """Whether the client can come back for the rest of a stream."""
        return self.stores_events and self.session.rev >= RICH

    async def serve_post(self, msg: Any, request: Any, response: Response, size: int) -> None:
        """Serve a request, or a batch; this task may outlast its connection."""
        stream = Stream(self, response, request.principal)
        try:
            if type(msg) is list:
                await self.reply_batch(msg, stream, request, size)
                if not response.begun:  # it has no answer
                    await response.send(202, {})
            else:
                await self.reply(self.accept(msg, stream, request, size))
        except RPCError as exc:
            await stream(error(msg["id"], exc))
        finally:
            stream.complete = True  # even without an answer
            if stream.response:
                await stream.end()
        # It was for this POST alone, or its handshake has failed.
        if type(self) is HTTPConversation or self.session.state is START:
            await self.disconnect()

    def head_of(self, msg: Any, principal: Any) -> Head:
        """Return the head of an answer that is JSON."""
        if "error" not in msg:
            opening = self.session.state is not READY  # by a handshake
            return 200, {**JSON_HEADERS, **self.headers} if opening else JSON_HEADERS
        code, data = msg["error"]["code"], object_of(msg["error"], "data")
        scope = str(data.get("scope", ""))  # raised by the author: anything
        if code == FORBIDDEN and re.fullmatch(f"{SCOPE}( {SCOPE})*", scope):
            challenge = self.endpoint.authenticator.scope_challenge(scope, principal)
            return 403, {**JSON_HEADERS, **challenge}
        statuses = MODERN_STATUS if self is self.endpoint.modern else {}
        return statuses.get(code, 200), JSON_HEADERS

    async def disconnect(self, farewell: str = "the session has ended") -> None:
        self.endpoint.sessions.pop(self.id, None)
        self.fail_all(farewell)
        await self.close(farewell)
        await poll(lambda: self.incoming, GRACE_SECONDS)
        for stream in [each for each in self.endpoint.live if each.conversation is self]:
            await stream.end()
        for stream in [*self.streams.values()]:  # from the newest on: the oldest may be gone
            while (event := (stream, stream.newest)) in self.endpoint.kept:
                self.endpoint.kept.forget(event)
                stream.newest -= 1


class ModernClients(HTTPConversation):
    """All clients of the modern era: each request stands for itself."""

    many_clients = True

    def __init__(self, endpoint: Endpoint):
        super().__init__(endpoint, NOBODY)
        self.name, self.limit = "a client", MAX_CLIENTS
        self.session.resume(NEWEST)

    def accept(self, msg: Msg, stream: Any, caller: Any, size: int) -> Exchange:
        """Take a request on if its headers agree with its body."""
        facts = check_modern_post(msg, caller, self.server.tools)
        exchange = super().accept(msg, stream, caller, size)
        exchange.facts = facts
        # spec: basic/transports/streamable-http#cancellation -- by closing the response
        stream.response.at_end(exchange.cancel)
        return exchange


class HTTPSession(HTTPConversation):
    """A session of the legacy era, until it is deleted or idle for too long."""

    stores_events = True

    def __init__(self, endpoint: Endpoint, caller: Caller):
        super().__init__(endpoint, caller)
        self.id = endpoint.session_prefix + os.urandom(16).hex()
        self.owner, self.used = caller.owner, endpoint.now
        self.standalone = Stream(self)

    @property
    def idle(self) -> bool:
        return not (self.incoming or self.standalone.response)

    def touch(self) -> None:
        self.used = self.endpoint.now
        if self.id in self.endpoint.sessions:  # it has not ended
            self.endpoint.sessions.move_to_end(self.id)

    reader_left = touch

    async def resume(self, last_id: str, response: Response) -> None:
        name, _, digits = last_id.rpartition("-")
        number = int(digits) if re.fullmatch("[0-9]{1,15}", digits) else -1
        stream = self.streams.get(name)
        if not (stream and (number == stream.newest or (stream, number + 1) in self.endpoint.kept)):
            raise ProtocolError("the events after last-event-id are not kept")
        if former := stream.release():
            self.endpoint.tasks.spawn(former.write(b"", False))
        stream.sent = number
        await stream.attach(response, primed=True)


class PairSession(HTTPSession):
    """HTTP+SSE: a pair of paths, to POST to and to read from. It ends with its reader."""

    stores_events = False

    def reader_left(self) -> None:
        self.endpoint.end_soon(self)

####
# 38. Authentication and pages
#
# Problem. Somebody sends a request: who is it, and may they come in?
# Rules.
#   1. Host, Origin and token are checked in this order, before the body is read.
#   2. Known tokens are all compared, each in constant time.
#   3. No handler sees a token: it could pass it on.

class Identity(Row):
    principal: Any
    owner: str  # a key of the principal that a newer token does not change


def seconds_left(principal: Any) -> Any:
    """Return for how many seconds a principal is good, by its `expires_at`."""
    end = member_of(principal, "expires_at")
    if not isinstance(end, (int, float, type(None))):
        raise TypeError(f"expires_at of a principal must be like time.time(), not {end!r:.100}")
    return (NEVER if end is None else end) - time.time()


def identity_of(principal: Any) -> Identity:
    """Return a principal with its key: issuer and subject, or else all of it, as JSON.

    They are members or attributes, and may be called `iss` and `sub`.
    """
    if principal is True:  # all would be one, and share sessions
        raise TypeError("a principal is True: verify= and token= need a value that says who it is")
    read = partial(member_of, principal)
    if read("token") or read("access_token"):
        raise TypeError("a principal has the token: use a Principal, or a dict without it")
    seconds_left(principal)  # raises
    subject, issuer = read("subject") or read("sub"), read("issuer") or read("iss")
    try:
        key = to_json({"issuer": issuer, "subject": subject} if subject else principal)
        return Identity(principal, json.dumps(key, sort_keys=True))
    except (TypeError, ValueError):
        raise TypeError(
            f"a principal, here a {type(principal).__name__}, needs issuer and subject") from None


def principals_by_token(given: Any) -> Any:
    """Return {token: principal} for token=; without a principal, the first is "bearer-1"."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        texts = [given] if isinstance(given, (str, int)) else given
        given = {text: f"bearer-{number}" for number, text in enumerate(texts, 1)}
    # An empty token or principal would be nobody's.
    if not (given and all(given) and all(given.values())):
        raise ValueError("token= is empty, or has an empty token or principal")
    return given


cannot_verify = partial(HTTPError, "tokens cannot be verified at the moment", 503,
                        {"retry-after": "10"})
shutting_down = partial(HTTPError, SHUTTING_DOWN, 503, {"retry-after": "2"})


class Authenticator:
    """Decides who may come in, by `token` and `verify` of Endpoint. Section 48 derives Guard."""

    url = ""  # of the endpoint, as clients know it
    metadata = ""  # where clients learn how to get a token
    issuers: Sequence[str] = ()  # of tokens
    scopes: Sequence[str] = ()  # that every request needs
    offered: Sequence[str] = ()  # these, and others that a handler may need

    def __init__(self, token: Any, verify: Function | None):
        if verify is not None:
            check_function("verify=", verify, "token")
        self.verify = verify or nothing
        self.locked = token is not None or verify is not None
        self.tokens = {
            sendable_token(text).encode(): identity_of(principal)
            for text, principal in principals_by_token(token).items()}

    async def identify(self, request: HTTPRequest) -> Identity:
        """Return the sender of a request; HTTPError without a valid token with all scopes."""
        from hmac import compare_digest

        # RFC 6750 §2.1; a token in the query alone does not count: §5.3
        found = re.fullmatch("(?i)bearer +(.+)", request.headers.get("authorization", ""))
        if not found:
            raise HTTPError("a bearer token is needed", 401, self.challenge())
        token = found[1]
        known = [who for each, who in self.tokens.items()
                 if compare_digest(each, token.encode())]
        who = known[0] if known else await self.validate(token)
        if not who or seconds_left(who.principal) <= -CLOCK_SECONDS:
            raise HTTPError("the bearer token is not valid", 401, self.challenge("invalid_token"))
        if missing := {*self.scopes} - scopes_of(who.principal):
            raise HTTPError(f"the token lacks the scope {' '.join(sorted(missing))}", 403,
                            self.scope_challenge("", who.principal))
        return who

    async def validate(self, token: str) -> Identity | None:
        """Return whose token it is, None for a wrong one; HTTPError if nobody can tell now."""
        try:
            principal = await maybe_await(self.verify(token))
            return identity_of(principal) if principal else None  # False: a function that compares
        except ProtocolError:
            raise
        except Exception as exc:
            logger.warning("tokens cannot be verified: %s", exc, exc_info=True)
            raise cannot_verify() from exc

    def challenge(self, error: str = "", scope: str = "") -> Fields:
        """Return the header that says what is missing. RFC 6750 §3"""
        fields = {"resource_metadata": self.metadata,
                  "scope": scope or " ".join(self.scopes), "error": error}
        text = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
        return {"www-authenticate": f"Bearer {text}".rstrip()}

    def scope_challenge(self, scope: str, principal: Any) -> Fields:
        """Return the header that names a missing scope, and those that we need anyway."""
        # Clients ask for what is named here, and would lose what is not.
        # spec: basic/authorization/index#runtime-insufficient-scope-errors
        kept = [each for each in self.offered if each in scopes_of(principal)]
        return self.challenge("insufficient_scope",
                              " ".join(dict.fromkeys((*self.scopes, *kept, *scope.split()))))

    def pages(self, path: str) -> dict[str, Function]:
        """Return the public pages, by path."""
        return {}


async def serve_page(work: Function, request: HTTPRequest, response: Response) -> None:
    """Serve a page: text, bytes, JSON, or (status, content type or headers, body)."""
    page = await maybe_await(await work(request))
    status, kind, body = page if isinstance(page, tuple) else (200, None, page)
    headers = {} if isinstance(kind, dict) else {"content-type": "text/plain; charset=utf-8"}
    if status in (204, 304):  # they have no body: RFC 9110 §8.6
        headers, body = {}, b""
    elif not isinstance(body, (str, bytes)):
        headers, body = {"content-type": JSON_TYPE}, _to_json(to_json(body))  # of any length
    if kind:
        headers.update({"content-type": kind} if isinstance(kind, str) else kind)
    body = body.encode("utf-8", "replace") if isinstance(body, str) else body
    await response.send(status, sendable_headers(headers), body)

####
# 39. The endpoint
#
# Problem. Requests arrive from any engine: which message is it, and whose session? answer() lets a
#   request in; post() finds the conversation that serves its message.
# Rule. The id of a session cannot be guessed. Only the principal that opened the session can use
#   it; for all others it does not exist.
# Limits. Of too many sessions, the one that was idle longest ends. A stream may outlive the token
#   that opened it.

PAIR_PATH = "/messages"  # where HTTP+SSE takes messages


class Endpoint:
    """The MCP endpoint and the pages beside it, for any engine.

    Args:
        path: of the endpoint
        token: a bearer token, several, or a mapping from token to principal
        verify: a function, plain or async: the principal of a token (not True), or None
        auth: a Guard, for the tokens of an authorization server
        allowed_hosts: names in Host to let in, besides loopback names; "*" is any
        allowed_origins: origins of web pages to let in, besides loopback ones; "*" is any
        sessions: False keeps nothing between requests, nor serves HTTP+SSE at /sse and /messages
        session_seconds: how long a session may be idle
        session_prefix: of session ids, by which a balancer finds the process
        healthz: whether to serve /healthz and /readyz, for probes
        grace: seconds that running requests get to finish when the server ends
        max_body: bytes of a request, up to MAX_MESSAGE_BYTES, 16 MiB
    """

    def __init__(
        self, server: Server, *, path: str = "/mcp", token: Any = None,
        verify: Function | None = None, auth: Any = None,
        allowed_hosts: Names | None = None, allowed_origins: Names = (), sessions: bool = True,
        session_seconds: float = 1800.0, session_prefix: str = "",
        healthz: bool = False, grace: float = GRACE_SECONDS, max_body: int = MAX_MESSAGE_BYTES
    ):
        import copy

        if not re.fullmatch("/[^{}?#]*", path):
            raise ValueError(f"{path=}: a path begins with a slash, and has no parameters")
        if auth is not None and not (token is verify is None and isinstance(auth, Authenticator)):
            raise ValueError("auth= must be a Guard, without token= or verify=; for a token there "
                             "is token=")
        # spec 2025-11-25: basic/transports#session-management
        if not re.fullmatch("[!-~]*", session_prefix):
            raise ValueError(f"{session_prefix=}: must be visible ASCII")
        check_numbers(session_seconds=session_seconds, grace=grace, max_body=max_body)
        if max_body > MAX_MESSAGE_BYTES:
            raise ValueError(f"{max_body=}: must be at most {MAX_MESSAGE_BYTES}")
        self.server, self.path = server, path.rstrip("/")
        # A Guard may guard several servers, each with a URL of its own.
        self.authenticator = copy.copy(auth or Authenticator(token, verify))
        self.host_policy = HostPolicy(allowed_hosts, allowed_origins)
        self.stateful, self.session_seconds = sessions, session_seconds
        self.session_prefix, self.healthz = session_prefix, healthz
        self.grace, self.max_body = grace, max_body
        self._add_routes()  # refuses two pages in one place

    def startup(self, stack: AsyncExitStack) -> None:
        """Begin on this loop, until the stack ends."""
        self._add_routes()  # pages may have come since
        self.sessions: OrderedDict[str, HTTPSession] = OrderedDict()  # least recently used first
        self.live: set[Stream] = set()  # streams that have a response
        self.kept = KeptEvents()
        self.loads: dict[str, int] = {}  # bytes of requests, by client
        self.tasks = Tasks()
        self.draining = False  # whether new requests are refused
        self.modern = ModernClients(self)
        self._sweep()
        stack.push_async_callback(self.shutdown)

    # Routes.

    def _add_routes(self) -> None:
        self.routes: dict[str, dict[str, Route]] = {}  # by path and method
        self.threads = Threads(4)  # for pages
        self.add("POST", self.path, Route(self.post))
        if self.stateful:
            self.add("GET", self.path, Route(self.get))
            self.add("DELETE", self.path, Route(self.delete))
            self.add("GET", "/sse", Route(self.open_pair))
            self.add("POST", PAIR_PATH, Route(self.post_to_pair))
        public = self.authenticator.pages(self.path)
        if self.healthz:
            public.update({"/healthz": self.probe, "/readyz": self.probe})
        # OPTIONS asks these, too, what web pages of other origins may do.
        pages = {(method, where): Route(fn, public=True, any_host=True)
                 for where, fn in public.items() for method in ("GET", "OPTIONS")}
        for (method, where), page in [*pages.items(), *self.server.routes.items()]:
            work = page.fn if is_async(page.fn) else partial(self.threads.run, page.fn)
            route = page.replace(fn=partial(serve_page, work))
            self.add(method, where, route)
            if method == "GET":  # RFC 9110 §9.3.2 -- HEAD is GET without the body
                self.routes[where].setdefault("HEAD", route)

    def add(self, method: str, where: str, route: Route) -> None:
        methods = self.routes.setdefault(where, {})
        if method in methods and method != "HEAD":  # a page of its own replaces that of GET
            raise ValueError(f"{method} {where} is served already: choose another path")
        methods[method] = route

    async def probe(self, request: HTTPRequest) -> Any:
        if self.draining and request.path == "/readyz":
            return 503, "text/plain", "draining\n"
        return "ok\n"

    def access_of(self, request: HTTPRequest) -> Any:
        """Return (route or None, whether a token is needed, headers of any response, headers that
        a handler sees), and note it."""
        methods = self.routes.get(request.path.rstrip("/"), {})
        route = methods.get(request.method)
        # By OPTIONS, which has no route, a page asks about another method: its rules hold.
        rules = route or next(iter(methods.values()), None)
        guarded = self.authenticator.locked and not (rules and rules.public)
        headers, cors = request.headers, {"vary": "Origin"}
        if rules and not rules.any_host:
            self.host_policy.check(headers, guarded)
            if "origin" in headers:
                cors["access-control-allow-origin"] = headers["origin"]
                cors["access-control-expose-headers"] = (
                    "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate")
        if self.authenticator.locked:
            # spec: basic/authorization/index#token-handling
            headers = MappingProxyType(without(headers, "authorization"))
        return request.notes.setdefault(self, (route, guarded, cors, headers))

    async def answer(self, request: HTTPRequest, response: Response) -> None:
        if _trace:
            trace_head("<", f"{request.method} {request.path}", request.headers)
        route, guarded, cors, headers = request.notes.get(self) or self.access_of(request)
        response.cors = cors  # a page must be able to read why it is refused
        if not route:
            return await self.answer_options(request, response)
        if guarded:
            who = await self.authenticator.identify(request)
            request.principal, request.owner = who.principal, who.owner
        request.headers = headers
        request.body = await response.read(
            BUFFER_BYTES if request.method in ("GET", "HEAD") else self.max_body)
        await route.fn(request, response)

    async def answer_options(self, request: HTTPRequest, response: Response) -> None:
        """Answer OPTIONS, which needs no token, and refuse what is not there."""
        if not (methods := self.routes.get(request.path.rstrip("/"))):
            raise HTTPError(
                f"nothing is here: the endpoint is at {request.root}{self.path or '/'}", 404)
        allowed = ", ".join(dict.fromkeys((*methods, "OPTIONS")))
        if request.method != "OPTIONS":  # RFC 9110 §15.5.6
            raise HTTPError(f"{request.method[:20]} is not served here", 405, {"allow": allowed})
        await response.send(204, {
            "allow": allowed, "access-control-allow-methods": allowed,
            "access-control-allow-headers":
                request.headers.get("access-control-request-headers", "*")})

    # Messages.

    def post(self, request: HTTPRequest, response: Response) -> Awaitable[Any]:
        """Read a message or a batch; what is returned answers it."""
        check_json(request.headers)
        msg, size = decode(request.body), len(request.body)
        request.body = b""  # a session or a task may keep the request
        batch = type(msg) is list
        try:
            kind = REQUEST if batch else classify(msg)
            if kind is REQUEST and self.draining:
                raise shutting_down()
            conversation = self.conversation_of(msg, kind, request)
        except ProtocolError as exc:
            exc.req_id = readable_id(msg)
            raise
        conversation.show("<", msg)
        if batch:
            conversation.check_batch(msg)
        if kind is REQUEST:
            return conversation.serve_post(msg, request, response, size)
        if conversation is self.modern and kind is not NOTIFICATION:
            # spec: basic/transports/streamable-http#sending-messages
            raise ProtocolError("clients of this revision send no responses")
        conversation.dispatch(msg, nowhere, request)
        return response.send(202, {})

    # Sessions.

    def conversation_of(self, msg: Any, kind: str, caller: Caller) -> HTTPConversation:
        """Return what serves a message or a batch: the modern era, a session, or neither."""
        if type(msg) is dict and is_modern(object_of(msg, "params")):
            return self.modern  # accept() checks all headers
        rev = header_revision(caller.headers)
        # A handshake is legacy, whatever headers a client of both eras sends with it.
        opening = kind is REQUEST and method_of(msg) == "initialize"
        if rev >= MODERN and not opening:  # accept() misses the metadata; there are no batches
            return self.modern
        if self.stateful:
            id = caller.headers.get(SESSION_HEADER)
            if id is None and opening:
                return self.open_session(HTTPSession, caller)
            return self.session_of(id, caller)
        conversation = HTTPConversation(self, caller)
        conversation.outbox.close()  # nothing is announced after the answer
        if not opening:
            # spec 2025-11-25: basic/transports#protocol-version-header -- what to assume
            conversation.session.resume(rev or HEADERLESS)
        return conversation

    def session_of(self, id: str | None, caller: Caller) -> HTTPSession:
        if id is None:
            raise ProtocolError(f"the header {SESSION_HEADER} is missing: send initialize first")
        if not (session := self.sessions.get(id)) or session.owner != caller.owner:
            # spec 2025-11-25: basic/transports#session-management
            raise HTTPError("the session does not exist: initialize again", 404)
        session.touch()
        return session

    def open_session(self, kind: type[HTTPSession], caller: Caller) -> HTTPSession:
        if self.draining:  # as in post(), for HTTP+SSE
            raise shutting_down()
        if len(self.sessions) >= MAX_CLIENTS:
            victim = next((each for each in self.sessions.values() if each.idle), None)
            if not victim:
                raise HTTPError("too many sessions are busy", 503)
            self.end_soon(victim)
        session = kind(self, caller)
        self.sessions[session.id] = session
        return session

    def end_soon(self, session: HTTPSession) -> None:
        self.sessions.pop(session.id, None)
        self.tasks.spawn(session.disconnect())

    async def get(self, request: HTTPRequest, response: Response) -> None:
        """Open the standalone stream, or resume any stream after Last-Event-ID."""
        session = self.legacy_session(request)
        if last_id := request.headers.get("last-event-id"):
            return await session.resume(last_id, response)
        if session.standalone.response:
            # A mere id must not take the stream away.
            raise HTTPError("another request reads this stream", 409)
        await session.standalone.attach(response)
        session.listen(session.standalone)  # events have its name in their ids

    def legacy_session(self, request: HTTPRequest) -> HTTPSession:
        """Return the session of a GET or a DELETE: the modern era has neither."""
        if header_revision(request.headers) >= MODERN:
            # spec: basic/transports/streamable-http#earlier-streamable-http-revisions
            raise HTTPError(
                f"this revision has no {request.method}", 405, {"allow": "POST, OPTIONS"})
        return self.session_of(request.headers.get(SESSION_HEADER), request)

    async def delete(self, request: HTTPRequest, response: Response) -> None:
        self.end_soon(self.legacy_session(request))
        await response.send(204, {})

    async def open_pair(self, request: HTTPRequest, response: Response) -> None:
        """Open the stream of HTTP+SSE, which says first where to POST."""
        session = self.open_session(PairSession, request)
        # spec 2024-11-05: basic/transports#http-with-sse
        where = f"{request.root}{PAIR_PATH}?session_id={session.id}"
        await session.standalone.attach(response)
        await response.write(f"event: endpoint\ndata: {where}\n\n".encode())
        session.listen(session.standalone)

    async def post_to_pair(self, request: HTTPRequest, response: Response) -> None:
        """Take a message of HTTP+SSE; the stream has its answer."""
        check_json(request.headers)
        found = re.search("(?:^|&)session_id=([^&]*)", request.query)
        session = self.session_of(found[1] if found else "", request)
        stream = session.standalone
        if stream.response:
            await stream.response.write(b"")  # waits until the client has read enough
        session.receive(request.body, stream, request)
        request.body = b""
        # The first SDKs for C# wait for this text.
        await response.send(202, {"content-type": "text/plain"}, b"Accepted")

    # Time.

    def _sweep(self) -> None:
        loop = get_running_loop()
        self.now = now = loop.time()
        for stream in list(self.live):
            if now - stream.sent_at > KEEP_ALIVE_SECONDS:
                self.tasks.spawn(stream.keep_alive())
        for session in list(self.sessions.values()):
            if now - session.used <= self.session_seconds:
                break  # the rest is newer
            if session.idle:
                self.end_soon(session)
            else:
                session.touch()
        self.sweeper = loop.call_later(LOOK_SECONDS, self._sweep)

    async def shutdown(self) -> None:
        """Let requests finish within the grace period; answer the others with an error."""
        self.draining = True
        self.modern.on_lost()  # ends subscriptions
        conversations = {self.modern, *self.sessions.values(),
                         *(each.conversation for each in self.live)}
        for session in self.sessions.values():
            if session.stores_events:  # its reader comes back later
                self.tasks.spawn(session.standalone.end())
        await poll(lambda: any(each.incoming for each in conversations), self.grace)
        ends = [self.tasks.spawn(each.disconnect(SHUTTING_DOWN)) for each in conversations]
        await asyncio.wait(ends, timeout=FAREWELL_SECONDS)  # some clients do not read
        await self.tasks.close()
        await self.threads.close(0)
        self.sweeper.cancel()


####
# 40. Engines
#
# Problem. The endpoint needs somebody who takes requests in: a port of ours, or an ASGI server.
# Rules.
#   1. Lifespan, endpoint, listener start in this order; endpoint, listener, lifespan end in this
#      order, whatever fails.
#   2. Under an ASGI server a request has a task of its own, which outlasts its connection.
# Limits. An ASGI server reports its end when all connections have ended. Let it close those that
#   only listen: uvicorn --timeout-graceful-shutdown.

@added
class HTTPServer(Endpoint):
    """A server on a port of ours, as app.http() returns it.

    Args:
        host: the address to listen on; 0.0.0.0 is all of this machine
        port: 0 takes a free one
        uds: the path of a Unix socket, in place of host and port
        sock: a listening socket, in place of host and port
        ssl: an ssl.SSLContext, or (certificate file, key file)
    """

    def __init__(
        self, server: Server, *, host: str = "127.0.0.1", port: int = 8000, uds: str | None = None,
        sock: Any = None, ssl: Any = None, **options: Any
    ):
        if not host:  # to asyncio, every address
            raise ValueError(f"{host=}: an address is required; 0.0.0.0 means all addresses")
        if port not in range(65536):
            raise ValueError(f"{port=}: must be an integer from 0 to 65535")
        super().__init__(server, **options)
        self.where = host, port, uds, ssl, sock

    async def __aenter__(self) -> HTTPServer:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(lifespan_of(self.server))
            authenticator, self.listener = self.authenticator, Listener(self.answer)
            # The stack ends in reverse: startup() puts the end of the endpoint before this.
            stack.push_async_callback(self.listener.stop, FAREWELL_SECONDS / 2)
            self.startup(stack)
            root = await self.listener.start(*self.where)
            host = parse_url(root).host
            if authenticator.issuers and not (authenticator.url or is_loopback(host)):
                raise ValueError("pass Guard(resource_url=...): the server's URL for clients")
            self._end = stack.pop_all().aclose
        if not (authenticator.locked or is_loopback(host)):
            logger.warning(
                "serving %s without authentication: anybody who can reach it can use its tools; "
                "pass token= or verify=, or bind to 127.0.0.1", host)
        self.url = root + self.path
        return self

    async def __aexit__(self, *exc: Any) -> None:
        self.listener.stopping = True
        await self._end()


@added
async def serve_http(app: Server, ready: Function, options: Msg, signals: bool) -> None:
    """Serve until cancelled or, with `signals`, until one comes."""
    end, server = asyncio.Event(), app.http(**options)

    async def serving() -> None:
        async with server:
            ready(server.url)
            if signals:
                write_stderr(f"{app.name} serves {server.url}\n")
            await end.wait()

    await (until_signalled(serving(), end.set, server.grace) if signals else serving())


class ASGIResponse(Response):
    def __init__(self, app: ASGIApp, receive: Any, send: Any):
        super().__init__()
        self.buffers, self._receive, self._emit = app.buffers, receive, send
        self._start: Any = None  # the event with the head, until it is sent
        self._lock = asyncio.Lock()  # one write() at a time
        self._body_came = asyncio.Event()

    async def read(self, limit: int) -> bytes:
        return await within(REQUEST_SECONDS, read_all(
            self._read_some, limit, self.buffers), too_late())

    async def _read_some(self) -> bytes:
        while not self._body_came.is_set():
            event = await self._receive()
            if event["type"] == "http.disconnect":
                self.lose()
                raise ProtocolError("the connection ended inside a body")
            if not event.get("more_body"):
                self._body_came.set()
            data: bytes = event.get("body", b"")
            if data:
                return data
        return b""

    async def watch(self) -> None:
        """Wait until the client is gone."""
        await self._body_came.wait()  # till then read() receives
        await self._receive()  # after a body, only http.disconnect comes

    async def _write(self, head: Head | None, data: bytes, more: bool) -> None:
        if head:
            status, headers = head
            pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
            if not (more or status in (204, 304)):
                pairs.append((b"content-length", b"%d" % len(data)))
            self._start = {"type": "http.response.start", "status": status, "headers": pairs}
        pieces = [data[pos : pos + BUFFER_BYTES] for pos in range(0, len(data) or 1, BUFFER_BYTES)]
        data = b""
        try:
            async with self._lock:
                if self._start:  # perhaps of a write() that was cancelled here
                    await self._emit(self._start)
                    self._start = None
                if more or len(pieces) > 1:
                    await self._send(pieces, more)
                else:
                    await self._emit({"type": "http.response.body", "body": pieces[0]})
        # Servers raise the first or the second when a client is gone, _send() the third.
        except (OSError, RuntimeError, RequestTimeout):
            pieces.clear()  # the traceback may outlive them
            self.lose()

    async def _send(self, pieces: list[bytes], more: bool) -> None:
        """Send pieces; with each, a server may wait for its client."""
        async with Deadline(STALL_SECONDS, longest=NEVER) as self.timer:
            with self.buffers.waiting(self, len(pieces) * BUFFER_BYTES):
                while pieces:
                    data = pieces.pop(0)
                    await self._emit({"type": "http.response.body", "body": data,
                                      "more_body": more or bool(pieces)})
                    self.timer.renew()

    def cut_off(self) -> None:  # while _send() waits
        self.timer.expire()


@added
class ASGIApp(Endpoint):
    """A server as an ASGI application, for uvicorn, hypercorn, granian, or a mount."""

    loop: Any = None  # in which it has begun

    async def __call__(self, scope: Msg, receive: Any, send: Any) -> None:
        """Serve a lifespan, or a request until it is answered or its client is gone."""
        if scope["type"] == "lifespan":
            return await self._follow_lifespan(receive, send)
        if scope["type"] == "websocket":  # closed before it is accepted, it gets 403
            await receive()
            await send({"type": "websocket.close"})
            return
        if not self.loop:
            logger.warning(
                "the lifespan of %s did not run before its first request, and nothing will end it: "
                "pass on that of the mounted object, as in FastAPI(lifespan=app.asgi.lifespan)",
                self.server.name)
        await self.start()
        response, request = ASGIResponse(self, receive, send), self._request(scope)
        watcher = self.tasks.spawn(response.watch())
        response.at_end(watcher.cancel)
        self.tasks.spawn(answer_with(self.answer, request, response))
        try:
            await asyncio.wait([watcher])
        except asyncio.CancelledError:  # the ASGI server ends; it would log a traceback for this
            if response.begun:
                await response.write(b"", False)
            else:
                await answer_with(self.answer, request, response, shutting_down())
        finally:
            response.lose()

    def _request(self, scope: Msg) -> HTTPRequest:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            # RFC 9110 §5.5 -- blanks around a value are not part of it
            key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        root = scope.get("root_path", "").rstrip("/")
        path = re.sub(f"^{re.escape(root)}(?=/|$)", "", scope["path"])
        if root and path in ("", "/"):
            path = self.path  # the mount itself is the endpoint
        client = scope.get("client") or ("local",)  # over a Unix socket
        query = scope.get("query_string", b"").decode("latin-1")
        return HTTPRequest(RequestHead(scope["method"], path, query, headers, {}, 0, 1, False),
                           str(client[0]), scope.get("scheme", "http"), root)

    async def _follow_lifespan(self, receive: Any, send: Any) -> None:
        event = (await receive())["type"]
        try:
            async with self.lifespan():
                await send({"type": event + ".complete"})
                event = (await receive())["type"]
        except Exception as exc:
            await send({"type": event + ".failed", "message": str(exc)})
        else:
            await send({"type": event + ".complete"})

    async def start(self) -> None:
        """Start once, with the first request; the others wait for it."""
        if self.loop is not get_running_loop():
            self.loop, self.buffers = get_running_loop(), Buffers()
            self.starting = asyncio.ensure_future(self._begin())
        await asyncio.shield(self.starting)

    async def _begin(self) -> None:
        async with AsyncExitStack() as stack:
            stack.callback(setattr, self, "loop", None)  # the next request begins anew
            await stack.enter_async_context(lifespan_of(self.server))
            self.startup(stack)
            self._end = stack.pop_all().aclose

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """Begin and end with the application that mounts this: FastAPI(lifespan=...)."""
        await self.start()
        try:
            yield
        finally:
            await self.close()

    async def close(self) -> None:
        if self.loop:
            await self._end()

####
# 41. HTTP client
#
# Problem. A client sends requests over connections that are kept alive, through proxies and TLS, to
#   servers that may close at any moment.
# Rules.
#   1. A request is sent once: without a response, nobody knows whether it was served.
#   2. Redirects stay within the origin; so do credentials.
#   3. An idle connection that is old, lost, or brought unsolicited data is not used again.
# Limits. Proxies are reached by plain HTTP. NO_PROXY lists domains, not networks.

warn_once = lru_cache()(logger.warning)


def client_ssl(ssl: Any) -> Any:
    """Return the SSLContext passed, or one that trusts a CA file or the system's roots."""
    from ssl import SSLContext, create_default_context

    if isinstance(ssl, SSLContext):
        return ssl
    try:
        if ssl is False:
            raise FileNotFoundError("certificates are always verified: name a file to trust")
        return create_default_context(cafile=ssl)
    except OSError as exc:
        raise ValueError(f"{ssl=} is not a PEM file of certificates: {exc}") from exc


def proxy_for(url: URL) -> tuple[URL | None, Fields]:
    """Return the proxy that the environment names for a URL, and headers for it."""
    if is_loopback(url.host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None, {}
    import urllib.request

    library: Any = urllib.request  # typeshed does not know all of it
    proxies = library.getproxies_environment()
    text = proxies.get(url.scheme) or proxies.get("all")
    if not text or library.proxy_bypass_environment(url.authority):
        return None, {}
    found = re.fullmatch(r"(?i)(?:http://)?(?:([^@/]*)@)?([^/@]+)/?", text)
    if found is None:
        raise ValueError("not a usable proxy, http://[user:password@]host:port: "
                         f"{text.rpartition('@')[2]!r}")  # without the password
    headers = {}
    if found[1] is not None:
        from urllib.parse import unquote_to_bytes

        headers["proxy-authorization"] = (  # RFC 7617 §2
            f"Basic {base64.b64encode(unquote_to_bytes(found[1])).decode()}")
    return parse_url(f"http://{found[2]}"), headers


class HTTPResponse(Wire):
    """A connection to a server, and the response that is read from it."""

    url: str  # for messages
    head: ResponseHead
    since: float  # when it became idle: a time of day, for machines sleep

    def __init__(self, client: HTTPClient):
        super().__init__()
        self.client = client  # to which it is given back

    async def ask(self, url: str, data: bytes) -> None:
        """Send an encoded request, and read the head."""
        self.url = url
        self.transport.write(data)
        status = 100
        while status < 200:  # RFC 9110 §15.2 -- interim responses
            head = parse_response_head(await self.until(b"\r\n\r\n", MAX_HEAD_BYTES, "the head"))
            status = head.status
        coding = head.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise ProtocolError(f"the server sent {coding!r:.40}, which was not requested")
        self.begin_body(0 if status in (204, 304)  # RFC 9112 §6.3
                        else body_size(head.headers, head.minor, UNTIL_CLOSE))
        self.head = head

    async def next_piece(self) -> bytes:
        try:
            return await self.read_some()
        except (OSError, ProtocolError) as exc:
            raise ConnectionClosed(f"{self.url}: {exc}") from exc

    async def body(self, limit: int = MAX_MESSAGE_BYTES) -> bytes:
        return await read_all(self.next_piece, limit, Buffers())

    @property
    def reusable(self) -> bool:
        # RFC 9112 §9.2 -- unsolicited data are not a response
        return (self.complete and not (self.buffer or self.ended)
                and is_keep_alive(self.head.headers, self.head.minor))

    def close(self) -> None:
        """Give the connection back if it can be used again, else close it."""
        idle = self.client.idle
        if self.reusable and len(idle) < MAX_IDLE:
            self.since = time.time()
            idle.append(self)
        else:
            self.abort()

    def abort(self) -> None:
        self.client.open.discard(self)
        self.transport.abort()


class HTTPClient:
    """Connections to one server, kept alive and used again."""

    def __init__(self, url: URL, *, ssl: Any, admit: Function | None = None):
        self.url = url
        self.answered = False  # whether the server has ever sent a response
        self.proxy, self.proxy_headers = proxy_for(url)
        self.admit = admit  #: is called with the address that was reached, unless by a proxy
        self.ssl: Any = client_ssl(ssl) if url.scheme == "https" else None
        self.open: set[HTTPResponse] = set()  # all connections
        self.idle: list[HTTPResponse] = []  # those that wait for the next request

    async def send(
        self, method: str, target: str, headers: Fields, body: bytes, patience: float,
        redirects: int = MAX_REDIRECTS
    ) -> HTTPResponse:
        """Send a request; return its response when the head is there."""
        if "authorization" in headers and not is_safe(self.url):
            warn_once("the token for %s is sent unencrypted: use https", str(self.url))
        forwarded = self.proxy and not self.ssl  # TLS goes through a tunnel
        fields = {
            "host": self.url.authority, "user-agent": f"mcp_lite/{__version__}",
            **(self.proxy_headers if forwarded else {}), **headers,
            "accept-encoding": "identity"  # a small response must not unfold into a large one
        }
        for _ in range(redirects + 1):
            url = self.url.origin + target
            data = encode_request(method, url if forwarded else target, fields, body)
            late = ConnectionClosed(f"{url} sent no response within {patience:g} seconds")
            response = await self._connection()
            try:
                trace_head(">", f"{method} {url}", fields)
                await within(patience, response.ask(url, data), late)
                head = response.head
                trace_head("<", f"{head.status}, to {method} {url}", head.headers)
            except BaseException as exc:
                response.abort()
                if not isinstance(exc, (OSError, ProtocolError)):
                    raise
                # A port with TLS just ends the connection, or sends an alert first: 0x15.
                odd = not (self.ssl or self.answered) and response.buffer[:1] in (b"", b"\x15")
                hint = "; if the server speaks TLS, write https://" * odd
                raise ConnectionClosed(f"{url}: {exc}{hint}") from exc
            self.answered = True
            status, where = head.status, head.headers.get("location")
            if where is None or status not in (301, 302, 303, 307, 308):
                return response
            response.close()
            if (there := self.url.replace(target=target).join(where)) is None:
                raise ConnectionClosed(f"{url} redirects to another origin: {where}")
            if method != "GET" and status < 307:  # RFC 9110 §15.4
                raise ConnectionClosed(f"{url} redirects a {method} to {where} by {status}")
            target = there.target
        raise ConnectionClosed(f"{self.url} redirects more than {redirects} times")

    async def _connection(self) -> HTTPResponse:
        if self.idle:  # the loop needs two rounds to notice what the server has closed or sent
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        while self.idle:
            conn = self.idle.pop()
            if conn.reusable and time.time() - conn.since < STALL_SECONDS:
                return conn
            conn.abort()
        late = ProtocolError(f"no connection within {CONNECT_SECONDS:g} seconds")
        try:
            return await within(CONNECT_SECONDS, self._open(), late)
        except (OSError, UnicodeError, ProtocolError) as exc:  # UnicodeError: no DNS name
            reason = str(exc) or "the server ended the connection where TLS begins"
            if re.search("WRONG_VERSION|RECORD_LAYER|where TLS begins", reason):
                reason += "; for a server without TLS, write http://"
            if re.search("CERTIFICATE_VERIFY(?!.*mismatch)", reason):
                reason += "; to trust it, pass its certificate: ssl=FILE, or SSL_CERT_FILE=FILE"
        raise ConnectionClosed(f"cannot reach {self.url}"
                               f"{f' through the proxy {self.proxy}' * bool(self.proxy)}: {reason}")

    async def _open(self) -> HTTPResponse:
        import socket

        conn, proxy = HTTPResponse(self), self.proxy
        url = proxy or self.url
        options, loop = Msg(ssl=None if proxy else self.ssl), get_running_loop()
        if isinstance(loop, asyncio.BaseEventLoop) and not is_loopback(url.host):  # not uvloop's
            # RFC 8305 §5 -- of two addresses, one may be dead
            options["happy_eyeballs_delay"] = 0.25
        await loop.create_connection(
            lambda: asyncio.StreamReaderProtocol(conn), url.host, url.port, **options)
        self.open.add(conn)
        try:
            # A stream may be silent for hours: the kernel notices that its server is gone.
            with suppress(OSError, AttributeError):  # it has closed already; not on this system
                sock = conn.transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)  # seconds
            if proxy and self.ssl:
                await self._tunnel(conn, proxy)
            if self.admit and not proxy:
                self.admit(conn.transport.get_extra_info("peername")[0])
        except BaseException:
            conn.abort()
            raise
        return conn

    async def _tunnel(self, conn: HTTPResponse, proxy: URL) -> None:
        """Ask a proxy for a tunnel to the server, and begin TLS inside it. RFC 9110 §9.3.6"""
        host = self.url.authority.removesuffix(f":{self.url.port}")
        target = f"{host}:{self.url.port}"
        await conn.ask(str(proxy), encode_request(
            "CONNECT", target, {"host": target, **self.proxy_headers}))
        if conn.head.status >= 300:
            raise ConnectionClosed(f"the proxy {proxy} refused: status {conn.head.status}")
        # RFC 9112 §6.3 -- no body follows; what does would be taken for the server's response
        if conn.buffer:
            raise ConnectionClosed(f"the proxy {proxy} sent something before TLS began")
        protocol = asyncio.StreamReaderProtocol(conn)
        inside: Any = await get_running_loop().start_tls(
            conn.transport, protocol, self.ssl, server_hostname=self.url.host)
        protocol.connection_made(inside)  # start_tls() does not

    async def close(self) -> None:
        for conn in [*self.open]:
            conn.abort()
        await asyncio.sleep(0)  # as in Listener.stop()


class Authorizer:
    """Adds to our requests what authorizes them: here `token`, a str or a function, if any."""

    closing = False  # whether not to ask the user any more

    def __init__(self, http: HTTPClient, token: Any = None):
        self.http, self.token = http, token if callable(token) else sendable_token(token)

    async def headers(self, method: str, target: str, ask: bool) -> Fields:
        """Return what to send with a request; the user may be asked if `ask`."""
        token = sendable_token(await value_from(self.token))
        return {} if token is None else {"authorization": f"Bearer {token}"}  # RFC 6750 §2.1

    async def settle(self, response: HTTPResponse, sent: Fields, steps: list[str]) -> bool:
        """Handle a refusal of a request that had the headers `sent`; return whether to repeat it.

        `steps` lists what was done about it so far. Raises AuthError.
        """
        if response.head.status != 401 or steps or not callable(self.token):
            return False
        steps.append("repeat")  # the token may have been renewed
        return await self.headers("", "", False) != sent

    async def close(self) -> None:
        """Finish what must not be lost; the transport cancels the rest."""

    async def send(
        self, method: str, target: str, headers: Fields, body: bytes, patience: float
    ) -> HTTPResponse:
        """Send a request with what authorizes it; once more if settle() has mended a refusal."""
        steps: list[str] = []
        while True:
            own = await self.headers(method, target, not self.closing)
            response = await self.http.send(method, target, {**headers, **own}, body, patience)
            try:
                if self.closing or not await self.settle(response, own, steps):
                    return response
            except BaseException:
                response.abort()
                raise
            response.abort()  # no close(): after the minutes of a login, it is dead

####
# 42. Streamable HTTP, the client's end
#
# Problem. The response to a POST is JSON or a stream of events, and connections may be cut.
# Rules.
#   1. A legacy stream that was cut is resumed after its last event. A modern one fails.
#   2. Every request gets a response or an error, whatever happens to its connection. It is sent
#      again only if it just reads: the server may have served it.

#: What a POST must still get responses to: ids as text, for some servers answer 1 with "1".
#: None: of a stream that answers no POST.
Pending = Optional[set[str]]


class HTTPTransport(Transport):
    """Each message is a POST, whose response has all that belongs to it.

    The legacy era has sessions, too, a stream for what belongs to no request, and HTTP+SSE.

    Args:
        headers: of each request; a mapping, or a function, plain or async, that returns one
        token: a bearer token, or a function that returns one
        ssl: an ssl.SSLContext, or the path of a file with certificates to trust
        auth: how to log in: "oauth", or an OAuth, ClientCredentials or the like
    """

    outlives_server = True
    rev = ""  # the revision, once it is negotiated
    session: Fields = {}  # legacy: the header that names the session
    _listening: Any = None  # legacy: the task that reads what no request caused
    _pair: Any = None  # HTTP+SSE: a future of where to POST
    #: makes an Authorizer of `auth=`, or returns None; section 47 puts one here
    authorizer_of: Any = nothing

    def __init__(
        self, url: str, *, headers: Fields | Action | None = None,
        token: Any = None, ssl: Any = None, auth: Any = None
    ):
        self.url, self.name, self.ssl = parse_url(url), url, ssl
        self.http = HTTPClient(self.url, ssl=ssl)
        self._headers = headers if callable(headers) else sendable_headers(headers)
        if not (token is None or auth is None):
            raise ValueError("token= and auth= are two ways to log in: pass one of them")
        self.anonymous = token is None and auth is None and not headers
        self.auth = Authorizer(self.http, token) if auth is None else self.authorizer_of(auth)
        if self.auth is None:
            raise TypeError(f"auth= cannot be of type {type(auth).__name__}: "
                'pass "oauth", an OAuth(...), a token, or a function that returns one')
        self.tools: dict[str, Any] = {}  #: by name, what mirrored_headers() reads of them
        self.inbox, self.tasks = Inbox(), Tasks()
        self.exchanges: dict[Any, set[str]] = {}  #: by task, its `pending` requests

    # Requests.

    async def write(self, msg: Any) -> None:
        """POST a message; a request in a task of its own."""
        if self.inbox.closed:
            raise ConnectionClosed(f"{self.url} {self.reason}")
        data = encode(msg)  # the program learns here of what JSON cannot say
        method = method_of(msg)
        if method == "initialize" and msg["params"]["protocolVersion"] == REVISIONS[0]:
            await self._open_pair()  # if there is none, the POST fails
        pending = {str(item["id"]) for item in as_list(msg) if "method" in item and "id" in item}
        if pending:
            self.tasks.spawn(self._exchange(msg, data, pending))
        else:
            await self._post(msg, data, pending)
        if method == "notifications/initialized" and not self._pair:
            if self._listening:
                self._listening.cancel()
            self._listening = self.tasks.spawn(self._listen())

    async def _exchange(self, msg: Payload, data: bytes, pending: set[str]) -> None:
        task = asyncio.current_task()
        self.exchanges[task] = pending
        try:
            await self._post(msg, data, pending)
        except Exception as exc:
            problem = exc if isinstance(exc, MCPError) else ConnectionClosed(f"{self.url}: {exc!r}")
            for req_id in pending:
                self.failed(req_id, problem)
        finally:
            del self.exchanges[task]

    def abandon(self, req_id: ReqId) -> bool:
        for task, pending in self.exchanges.items():
            if pending == {str(req_id)}:  # no other request shares the response
                task.cancel()
            pending.discard(str(req_id))
        return self.rev >= MODERN

    async def fields(self, more: Fields) -> dict[str, str]:
        out = {**sendable_headers(await value_from(self._headers)), **more}
        if self.rev:
            out[VERSION_HEADER] = self.rev
        return out

    async def _post(self, msg: Any, data: bytes, pending: set[str]) -> None:
        method, more = method_of(msg), {**JSON_HEADERS, "accept": f"{JSON_TYPE}, {EVENT_TYPE}"}
        if self.rev >= MODERN and method:
            for name, value in mirrored_headers(msg, self.tools).items():
                if value is not None:
                    more[name] = encode_header_value(str(value))
        if method != "initialize":  # which opens a new session
            more.update(self.session)
        headers = await self.fields(more)
        patience = NEVER if pending else REQUEST_SECONDS  # a request has its caller's timeout
        target = self._pair.result() if self._pair else self.url.target
        send = partial(self.auth.send, "POST", target, headers, data, patience)
        try:
            response = await send()
        except ConnectionClosed:  # of an idle connection, perhaps
            if not METHODS.get(method, CUSTOM).cacheable:
                raise
            response = await send()
        with closing(response):
            if method == "initialize" and not self._pair:
                # spec 2025-11-25: basic/transports#backwards-compatibility -- 400, 404, 405; others
                may_be_old = response.head.status in {*range(400, 500), 501} - {401, 429}
                if may_be_old and await self._open_pair():
                    return await self._post(msg, data, pending)
                id = response.head.headers.get(SESSION_HEADER)
                self.session = {} if id is None else {SESSION_HEADER: id}
            # With HTTP+SSE, all responses come on the one stream.
            await self.receive(response, set() if self._pair else pending)

    # Responses.

    async def receive(self, response: HTTPResponse, pending: set[str]) -> None:
        """Read the response to a message, until no request is `pending`."""
        status, kind = response.head.status, media_type(response.head.headers)
        if status >= 400:
            raise await problem_of(response, self)
        if pending and kind == EVENT_TYPE:
            events = SSEDecoder()
            await self.read_events(response, events, pending)
            # spec: basic/transports/streamable-http#receiving-messages -- legacy only
            if self.rev < MODERN:
                await self._resume(events, pending)
        elif pending:
            body = await response.body()
            if kind != JSON_TYPE:
                odd = f"{response.url} answered {status} with {kind or 'no content type'}"
                if not is_message(body):
                    raise ConnectionClosed(f"{odd}: {first_line(body)}")
                warn_once("%s, and the body is JSON", odd)
            await self.deliver(body, pending)
        if pending:
            raise ConnectionClosed(f"{self.url} ended its response without answering the request")
        if not response.complete:  # to use the connection again
            with suppress(MCPError):
                await within(PROBE_SECONDS, response.body())

    async def read_events(
        self, response: HTTPResponse, events: SSEDecoder, pending: Pending
    ) -> None:
        """Deliver what a stream brings until no request is `pending`, or it ends or is cut."""
        with suppress(ConnectionClosed):
            while (pending is None or pending) and (data := await response.next_piece()):
                for kind, text in events.feed(data):
                    await self.deliver_event(kind, text, pending)

    async def deliver_event(self, kind: str, text: str, pending: Pending) -> None:
        data = text.encode()
        if kind == "message" and is_message(data):  # some servers send pings
            await self.deliver(data, pending)
        elif kind == "endpoint" and self._pair:
            if (url := self.url.join(text)) is None:
                raise ProtocolError(f"the endpoint event names another origin: {text}")
            settle_future(self._pair, url.target)

    async def deliver(self, data: bytes, pending: Pending) -> None:
        try:
            msg = decode(data)
        except ProtocolError as exc:
            msg = ProtocolError(f"{self.url} sent: {first_line(data)}: {exc}")
            if pending is not None:  # else it is delivered for the message
                raise msg from None
        # Some servers send an array in any revision.
        for item in as_list(msg):
            await self.inbox.put(item)
            if pending and isinstance(item, dict) and "method" not in item:
                pending.discard(str(item.get("id")))

    # Legacy: streams that a GET opens.

    async def _get_stream(self, last_id: str, patience: float = NEVER) -> HTTPResponse:
        """GET a stream of the events after `last_id`."""
        fields = await self.fields({"accept": EVENT_TYPE, **self.session})
        if sendable(last_id):
            fields["last-event-id"] = last_id.encode().decode("latin-1")
        response = await self.auth.send("GET", self.url.target, fields, b"", patience)
        status, kind = response.head.status, media_type(response.head.headers)
        if status == 200 and kind == EVENT_TYPE:
            return response
        with closing(response):
            if status == 200:  # it may have no end
                raise ProtocolError(f"{self.url} sent {kind or 'no content type'}, not events")
            problem = await problem_of(response, self)
        problem.code = status  # not that of JSON-RPC
        raise problem

    async def _resume(self, events: SSEDecoder, pending: set[str]) -> None:
        backoff = Backoff()
        while pending and sendable(events.last_id) and backoff.failures < MAX_RESUMES:
            # spec 2025-11-25: basic/transports#sending-messages-to-the-server
            await backoff.wait(events.last_id, events.retry_ms)
            events = SSEDecoder(events.last_id, events.retry_ms)
            try:
                with closing(await self._get_stream(events.last_id)) as rest:
                    await self.read_events(rest, events, pending)
            except MCPError as exc:
                if not may_pass(exc):  # a SessionExpired would repeat the request
                    raise ConnectionClosed(
                        f"{exc}: the answer is lost; call again if that does no harm") from exc

    async def _listen(self) -> None:
        """Read the standalone stream: what belongs to no request of ours."""
        events, opened, backoff = SSEDecoder(), False, Backoff()
        while not self.inbox.closed:
            try:
                with closing(await self._get_stream(events.last_id)) as stream:
                    if opened and not sendable(events.last_id):
                        self.interrupted(False)  # something may be missed
                    opened = True
                    await self.read_events(stream, events, None)
            except MCPError as exc:
                if events.last_id and exc.code == 400:  # the rest is not kept
                    events.last_id = ""
                elif not may_pass(exc):
                    if opened and isinstance(exc, SessionExpired):
                        self.interrupted(True)
                    elif opened or exc.code not in (400, 404, 405):  # which say: it has none
                        logger.warning("%s sends no announcements: %s", self.url, exc)
                    return
                elif backoff.failures == 1:
                    logger.warning("no announcements until the server is back: %s", exc)
            await backoff.wait(events.last_id, events.retry_ms)
            events = SSEDecoder(events.last_id, events.retry_ms)

    # HTTP+SSE: one stream for all that comes.

    async def _open_pair(self) -> bool:
        """Open the stream; return whether the server has one."""
        try:
            stream = await self._get_stream("", CONNECT_SECONDS)
        except MCPError:
            return False
        self._pair = get_running_loop().create_future()
        self.tasks.spawn(self._read_pair(stream))
        await within(CONNECT_SECONDS, self._pair, ConnectionClosed(
            f"{self.url} sent no endpoint event"))
        return True

    async def _read_pair(self, stream: HTTPResponse) -> None:
        self.reason = "ended its stream"
        try:
            with closing(stream):
                await self.read_events(stream, SSEDecoder(), None)
        except MCPError as exc:
            self.reason = f"sent a stream that cannot be read: {exc}"
        settle_future(self._pair, None, ConnectionClosed(f"{self.url} {self.reason}"))
        self.end()

    # The channel.

    def agreed(self, rev: str | None) -> None:
        self.rev = rev or ""

    def learn_tool(self, tool: Msg) -> None:
        self.tools[tool["name"]] = SimpleNamespace(
            mirrors=mirrors_of(tool.get("inputSchema")))

    def end(self) -> None:
        self.auth.closing = True
        self.inbox.close()

    async def _end(self) -> None:
        self.end()
        if self.session:
            with suppress(Exception):  # also one of the user's headers()
                # spec 2025-11-25: basic/transports#session-management
                fields = await self.fields(self.session)
                await within(GRACE_SECONDS, self.auth.send(
                    "DELETE", self.url.target, fields, b"", NEVER))
        await self.auth.close()
        await self.tasks.close()
        await self.http.close()


async def problem_of(response: HTTPResponse, transport: HTTPTransport) -> MCPError:
    """Return the error of a refusal: that of JSON-RPC in the body, or one with the status."""
    head, code, body, reported = response.head, response.head.status, b"", Msg()
    with suppress(MCPError):
        body = await within(PROBE_SECONDS, response.body())
        msg = decode(body)
        if classify(msg) is ERROR:
            reported = msg["error"]
    wait = head.headers.get("retry-after")
    status = f"{code} {head.reason}".rstrip() + (f", retry after {wait}" if wait else "")
    why = reported.get("message") or first_line(body)
    error_class: type[MCPError] = ConnectionClosed
    if code in (401, 403):
        error_class = AuthError
    # spec 2025-11-25: basic/transports#session-management -- 404; some servers send others
    elif transport.session and (code == 404 or (code < 500 and "session" in why.lower())):
        error_class = SessionExpired
    elif reported:
        if msg.get("id") is None or wait:  # a gateway may have sent it
            why += f" (HTTP {status}, from {response.url})"
        return RemoteError(reported["code"], why, reported.get("data"))
    text = f"{response.url} answered {status}" + (f": {why}" if why else "")
    if code == 401 and transport.anonymous:
        text += '; pass token= (or --token), headers= or auth="oauth"'
    problem = error_class(text)
    problem.code = code
    return problem


def sendable(event_id: str) -> bool:
    """Return whether a header can carry an event id: it loses blanks at its ends."""
    return not re.search(r"^$|.{8192}|[\x00-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$", event_id)


def first_line(body: bytes) -> str:
    return body.decode("utf-8", "replace").strip().split("\n")[0][:200]


def is_url(target: Any) -> bool:
    return isinstance(target, str) and target.lower().startswith(("http://", "https://"))


CONNECTORS.append((is_url, HTTPTransport))

# ======
# Part VII. Authorization
# ======

####
# 43. OAuth rules
#
# The *resource* is the MCP server. The *authorization server* issues tokens for it, and is named by
# its *issuer*, a URL. The *client* is this program. RFC 6749 §1.1
#
# Problem. After a 401 the client must find out who issues tokens for this server, and get one that
#   is valid for nothing else. On the way it reads documents of strangers, which may name another
#   server's resource, or an issuer that collects codes.
# Rules.
#   1. Metadata is used only if it names the resource or the issuer whose metadata it is.
#   2. Names are compared exactly, except for one slash: see same_issuer().
#   3. Anybody can send a browser to us: `state` and `iss` of a redirect are checked first.
# Limits. One scheme of a challenge is read. A scope with quotes is ignored.

ACCESS_TOKEN = r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{1,8192}"  # no quotes, no commas
#: A parameter, plain or quoted, or else a scheme, perhaps with a token68. RFC 9110 §11.2
CHALLENGE_PART = (
    rf'(?a)[ \t,]*(?:({TOKEN})[ \t]*=[ \t]*(?:\'?([^\s",\']+)\'?|"((?:[^"\\]|\\.)*)")(?=[ \t,]|$)'
    rf"|({TOKEN})(?: +[\w.~+/-]+=*(?=[ \t]*(?:,|$)))?(?=[ \t,]|$))"
)
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
SECRET_METHODS = ("client_secret_basic", "client_secret_post")


def challenge_of(text: str, scheme: str) -> Fields:
    """Return the parameters of one scheme's challenge in a WWW-Authenticate field. RFC 9110 §11.6.1

    >>> challenge_of('Basic realm="a, Bearer b=c", bearer Scope = "x y", error=e', "bearer")
    {'scope': 'x y', 'error': 'e'}
    """
    found: dict[str, str] = {}
    at, current = 0, ""
    while part := re.compile(CHALLENGE_PART).match(text, at):
        name, plain, quoted, other = part.groups()
        if other:
            current = other.lower()
        elif current == scheme:
            found.setdefault(name.lower(), plain or re.sub(r"\\(.)", r"\1", quoted))
        at = part.end()
    return found


def show(value: JSON) -> str:
    """Return a value of the peer for a message: one short line without control characters."""
    return json.dumps(value, default=str)[:200]


def error_text(doc: Mapping[str, Any], secrets: Iterable[str | None] = ()) -> str:
    """Return the text of an OAuth error, without the secrets that it may repeat."""
    text = ", ".join(
        json.dumps(doc[name]) for name in ("error", "error_description") if doc.get(name))
    for secret in filter(None, secrets):
        text = text.replace(json.dumps(secret)[1:-1], "...")  # before it is cut
    return text[:400] or "the body gives no reason"


class UnsafeURL(AuthError, ValueError):
    """A login cannot use this URL."""


def oauth_url(value: JSON, what: str) -> URL:
    """Return the URL that a document or the user names as `what`; UnsafeURL."""
    # spec: basic/authorization/security-considerations#communication-security
    try:
        url = parse_url(str(value))
        if not is_safe(url):
            raise ValueError("it must begin with https://")
    except ValueError as exc:
        raise UnsafeURL(f"{what} is {show(value)}: {exc}") from None
    return url


def resource_metadata_urls(server: URL) -> list[str]:
    """Return where a server's metadata may be, if its challenge does not say. RFC 9728 §3.1"""
    # spec: basic/authorization/authorization-server-discovery
    # #protected-resource-metadata-discovery-requirements
    path = re.sub(r"^/(?=\?|$)", "", server.target)  # the slash of an empty path goes
    return [*dict.fromkeys(server.origin + RESOURCE_METADATA + place
                           for place in (path.rstrip("/"), path, ""))]


def covers(resource: URL, server: URL) -> bool:
    """Return whether a resource is the server's URL, or a parent of it on the same origin.

    RFC 9728 §3.3 requires equal URLs. MCP servers also publish parents; /mcp does not cover /mcp2.
    """
    path = str(server).partition("?")[0].rstrip("/") + "/"
    return resource == server or path.startswith(str(resource).rstrip("/") + "/")


def server_metadata_urls(issuer: str) -> list[str]:
    """Return where the metadata of an issuer may be, in the order in which to look.

    spec: basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery
    """
    url = oauth_url(issuer, "the issuer")
    if "?" in url.target:  # RFC 8414 §2
        raise UnsafeURL(f"the issuer is {show(issuer)}: it must have no query")
    root, path = url.origin, url.target.rstrip("/")
    return [*dict.fromkeys((
        f"{root}/.well-known/oauth-authorization-server{path}",
        f"{root}/.well-known/openid-configuration{path}",
        f"{root}{path}/.well-known/openid-configuration"
    ))]


def same_issuer(given: JSON, asked: str) -> bool:
    """Return whether metadata names the issuer that was asked: identical, RFC 8414 §3.3.

    A slash after an issuer without a path is ignored: Google's resources name it with a slash,
    Google's metadata without. Both forms have the same well-known URL.
    """
    root = asked.rstrip("/")
    pathless = root.count("/") == 2
    return given == asked or pathless and given in (root, f"{root}/")


def default_server(server: URL) -> Msg:
    """Return the metadata of a server that has none: it is its own authorization server."""
    # spec 2025-03-26: basic/authorization#fallbacks-for-servers-without-metadata-discovery
    root = server.origin
    return {
        "issuer": root, "authorization_endpoint": root + "/authorize",
        "token_endpoint": root + "/token", "registration_endpoint": root + "/register",
        # That revision requires PKCE, so servers do not announce it.
        "code_challenge_methods_supported": ["S256"]
    }


# The client. RFC 7591, RFC 6749 §2.3


def registration(server: Msg, name: str, redirect_uri: str, scope: str) -> Msg:
    """Return the request that registers us: without a secret if the server accepts that, else by
    the method that it lists first, which some servers handle best."""
    listed = strings(server.get("token_endpoint_auth_methods_supported"))
    secret = next((each for each in listed if each in SECRET_METHODS), "none")
    return {
        "client_name": name, "redirect_uris": [redirect_uri], "response_types": ["code"],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none" if "none" in listed else secret,
        # spec: basic/authorization/client-registration
        # #application-type-and-redirect-uri-constraints
        "application_type": "native" if is_loopback(parse_url(redirect_uri).host) else "web",
        **without_none(scope=scope or None)
    }


def client_credentials(client: Msg, server: Msg) -> tuple[Fields, Fields]:
    """Return the headers and the form fields by which a client authenticates.

    RFC 8414 §2 -- a server that lists no methods accepts client_secret_basic.
    """
    from urllib.parse import quote_plus

    id, secret = client["client_id"], client.get("client_secret") or ""
    can = SECRET_METHODS if secret else ("none",)
    method = client.get("token_endpoint_auth_method") or next(
        (each for each in strings(server.get("token_endpoint_auth_methods_supported"))
         if each in can), can[0])
    if method == "client_secret_basic":
        # Strict servers take a client_id in the form for a second method.
        pair = f"{quote_plus(id)}:{quote_plus(secret)}".encode()
        return {"authorization": f"Basic {base64.b64encode(pair).decode()}"}, {}
    return {}, without_none(client_id=id, client_secret=None if method == "none" else secret)


# The authorization request and its response. RFC 6749 §4.1, RFC 7636, RFC 8707, RFC 9207


def base64url(data: bytes) -> str:
    """Return data in base64url, without padding. RFC 7515 §2"""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def code_challenge(verifier: str) -> str:
    """Return what is sent before a verifier, to be compared with it later. RFC 7636 §4.2"""
    return base64url(digest(verifier.encode()))


def authorization_url(server: Msg, params: Fields) -> str:
    from urllib.parse import quote, urlencode

    url = oauth_url(server.get("authorization_endpoint"), "authorization_endpoint")
    # CVE-2025-6514 -- a command that opens it must see no quote, no blank, and no option
    return quote(f"{url}{'&' if '?' in url.target else '?'}{urlencode(params)}",
                 safe="%/?:@!&*+,;=~[]")


def answer_in(query: str, state: str) -> Fields | None:
    """Return the parameters of a redirect if it answers the request that had this state."""
    # spec: basic/authorization/security-considerations#open-redirection
    from hmac import compare_digest
    from urllib.parse import parse_qsl

    pairs = parse_qsl(query, keep_blank_values=True)
    found = dict(pairs)
    right = compare_digest(found.get("state", "").encode(), state.encode())
    return found if right and len(found) == len(pairs) else None  # none occurs twice


def authorization_code(params: Fields, server: Msg) -> str:
    """Return the code of a redirect whose state was right; AuthError otherwise."""
    issuer = server["issuer"]
    promised = server.get("authorization_response_iss_parameter_supported") is True
    # spec: basic/authorization/index#authorization-response-validation -- an `iss` that was
    # promised must be present, and any must be right
    sender = params.get("iss", "missing" if promised else issuer)
    if sender != issuer:
        raise AuthError(f"the redirect may be from another server: iss is {sender!r}, not {issuer}")
    if "error" in params:
        raise AuthError(f"{issuer} refused: {error_text(params, (params['state'],))}")
    if not params.get("code"):
        raise AuthError(f"{issuer} sent neither a code nor an error")
    return params["code"]


def read_tokens(doc: Msg, scheme: str, where: str) -> Msg:
    """Check a token response; return what is kept of it. RFC 6749 §5.1"""
    token, kind = doc.get("access_token"), doc.get("token_type")
    if not isinstance(token, str) or not re.fullmatch(ACCESS_TOKEN, token):
        raise AuthError(f"{where}: access_token is not a valid token, or too long")
    if str(kind).lower() != scheme.lower():  # RFC 6749 §7.1
        raise AuthError(f"{where}: token_type is {show(kind)}, not {scheme}")
    kept: Msg = {"access_token": token}
    refresh = doc.get("refresh_token")
    if isinstance(refresh, str) and re.fullmatch("[ -~]+", refresh):  # RFC 6749 A.17
        kept["refresh_token"] = refresh
    with suppress(ValueError):  # it is optional
        left = float(str(doc.get("expires_in")))
        if 0 < left < 1e12:  # some servers send 0 for a token that never expires
            kept["expires_at"] = time.time() + left
    return kept

####
# 44. Keys and tokens
#
# Problem. A token is only as good as its signature, and the standard library verifies none.
# Rules.
#   1. Signatures of RS256, RS384, RS512 and ES256 are verified here, with public keys. None is
#      made, and nothing is encrypted: no secret takes part, so Python's integers need not be
#      constant-time. Hashes, HMAC and TLS are the standard library's.
#   2. A token is checked in one order: its form, the algorithm (from our list, fitting the key),
#      the signature, the claims. Keys that it brings or names are not used. RFC 8725
# Limits. The code passes the tests of Wycheproof; nobody has audited it. For another library, or
#   EdDSA, ES384, PS256, encryption and certificates, pass a function of your own: Guard(verify=).
#   The names are those of RFC 7515 and 7517 to 7519.

KEY_KINDS = {"RS256": "RSA", "RS384": "RSA", "RS512": "RSA", "ES256": "EC"}


def from_base64url(text: JSON) -> bytes:
    """Return the bytes of which base64url() makes this text; AuthError for others. RFC 7515 §2"""
    with suppress(TypeError, ValueError):  # not a text; not a possible length
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        # Python ignores other characters and surplus bits: only one form is valid.
        if base64url(data) == text:
            return data
    raise AuthError("a part of it is not base64url")


# P-256, also called prime256v1 or secp256r1. FIPS 186-4 §D.1.2.3

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # points of the curve
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B  # y^2 = x^3 - 3x + B
#: X, Y and Z of a point x = X / Z, y = Y / Z; Z = 0 is infinity. Divisions
#: would take several times as long.
Point = tuple[int, int, int]
G: Point = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
            0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5, 1)


def add_points(one: Point, two: Point) -> Point:
    """Return the sum of any two points, equal ones and infinity among them.

    Renes, Costello and Batina, "Complete addition formulas for prime order elliptic curves", §2
    """
    (x1, y1, z1), (x2, y2, z2) = one, two
    xx, yy, zz = x1 * x2, y1 * y2, z1 * z2 % P
    xy, yz, xz = x1 * y2 + x2 * y1, y1 * z2 + y2 * z1, (x1 * z2 + x2 * z1) % P
    r, s, t = 3 * (B * zz - xz) % P, 3 * (B * xz - xx - 3 * zz) % P, 3 * (xx - zz) % P
    less, more = (yy - r) % P, (yy + r) % P
    return (xy * less - yz * s) % P, (less * more + t * s) % P, (yz * more + xy * t) % P


def signed_with_p256(x: int, y: int, bits: str, data: bytes, signature: bytes) -> bool:
    """Return whether a signature, r and s of 32 bytes each, is right. RFC 7518 §3.4"""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    on_curve = x < P and y < P and (y * y - x * x * x + 3 * x - B) % P == 0
    if not on_curve or len(signature) != 64 or not (0 < r < N and 0 < s < N):  # RFC 8725 §3.4
        return False
    w, point, total = pow(s, -1, N), (x, y, 1), (0, 1, 0)
    u, v = int.from_bytes(digest(data, bits), "big") * w % N, r * w % N
    terms = (None, G, point, add_points(G, point))
    for i in reversed(range(256)):  # Shamir's trick: u * G + v * point in one pass
        total = add_points(total, total)
        if term := terms[(u >> i & 1) + 2 * (v >> i & 1)]:
            total = add_points(total, term)
    return bool(total[2]) and total[0] * pow(total[2], -1, P) % P % N == r


#: The bytes of a signature that name its hash. RFC 8017 §9.2, note 1
DIGEST_INFO = {
    "256": "3031300d060960864801650304020105000420",
    "384": "3041300d060960864801650304020205000430",
    "512": "3051300d060960864801650304020305000440"
}


def signed_with_rsa(n: int, e: int, bits: str, data: bytes, signature: bytes) -> bool:
    """Return whether a signature, of PKCS #1 v1.5, is right. RFC 8017 §8.2.2"""
    size, number = (n.bit_length() + 7) // 8, int.from_bytes(signature, "big")
    # RFC 7518 §3.3: 2048 bits "or larger"; verifying with 8192 takes 3 ms
    fine = 2048 <= n.bit_length() <= 8192 and 3 <= e < 2**32
    if not fine or len(signature) != size or number >= n:
        return False
    # The right encoding is built and compared: a parser could be made to accept another.
    end = bytes.fromhex(DIGEST_INFO[bits]) + digest(data, bits)
    wanted = b"\0\1" + b"\xff" * (size - 3 - len(end)) + b"\0" + end
    return pow(number, e, n) == int.from_bytes(wanted, "big")


def signed_by(jwks: Sequence[Msg], alg: str, data: bytes, signature: bytes) -> bool:
    """Return whether one of these keys has made a signature. RFC 7518 §3"""
    names, verify = ("xy", signed_with_p256) if alg == "ES256" else ("ne", signed_with_rsa)
    for jwk in jwks:
        with suppress(AuthError):  # a set may hold keys for others
            one, two = [int.from_bytes(from_base64url(jwk.get(name)), "big") for name in names]
            if verify(one, two, alg[2:], data, signature):
                return True
    return False


def read_jwt(token: str, algorithms: Sequence[str]) -> tuple[Msg, Msg, bytes, bytes]:
    """Return header, claims, signed bytes and signature of a token, none of them verified yet.

    AuthError for another form, or a header that is not acceptable. RFC 8725 §3.1, §3.10
    """
    parts = token.split(".")
    if len(token) > MAX_TOKEN_BYTES or len(parts) != 3:
        raise AuthError(f"it is not a JWT of up to {MAX_TOKEN_BYTES} bytes")
    head, body, signature = [from_base64url(part) for part in parts]
    try:
        header, claims = decode(head), decode(body)
    except ProtocolError as exc:
        raise AuthError(f"its JSON cannot be read: {exc}") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise AuthError("its header or its claims are not an object")
    alg, kind = header.get("alg"), header.get("typ", "JWT")
    if alg not in algorithms:
        raise AuthError(f"alg is {show(alg)}, not one of {', '.join(algorithms)}")
    if "crit" in header:  # RFC 7515 §4.1.11
        raise AuthError("its header has crit, and no extension is supported")
    # RFC 8725 §3.11, RFC 9068 §4 -- another kind of JWT is not an access token
    if str(kind).lower().replace("application/", "") not in ("jwt", "at+jwt"):
        raise AuthError(f"typ is {show(kind)}, not at+jwt")
    return header, claims, token.rpartition(".")[0].encode(), signature


def keys_for(header: Msg, jwks: Sequence[JSON]) -> list[Msg]:
    """Return which of an issuer's keys a token may be signed with. RFC 7517 §4"""
    alg, kid = header["alg"], header.get("kid")
    return [
        jwk for jwk in jwks
        if isinstance(jwk, dict) and kid in (None, jwk.get("kid")) and jwk.get("alg", alg) == alg
        and jwk.get("kty") == KEY_KINDS[alg] and jwk.get("use", "sig") == "sig"
        and jwk.get("crv", "P-256") == "P-256"  # only curves have one
    ]

####
# 45. Fetching
#
# Problem. A login reads documents at addresses that a server names: http://169.254.169.254/, say,
#   where a cloud keeps its keys.
# Rules.
#   1. A fetch is bounded in bytes, time and redirects. The address is judged where the socket
#      connects: a name may resolve to another address the next time.
#   2. A public server cannot refer us to a private address.


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the Internet, not to a private network.

    >>> is_public("93.184.216.34"), is_public("169.254.169.254"), is_public("::ffff:10.0.0.1")
    (True, False, False)
    """
    from ipaddress import ip_address

    found: Any = ip_address(address.partition("%")[0])
    number = int(found)
    if number >> 32 in (0xFFFF, 0x64FF9B << 64):  # ::ffff:0:0/96; 64:ff9b::/96, RFC 6052 §2.1
        found = ip_address(number & 0xFFFFFFFF)  # the IPv4 address that is reached
    elif found.version == 6 and (number >> 125 != 1 or found.sixtofour):
        return False  # outside of 2000::/3, the Internet; or a tunnel, perhaps to a private address
    return bool(found.is_global and not found.is_multicast)


class Fetcher:
    """Fetches documents that a server names, and posts to endpoints that they name."""

    def __init__(self, server: URL, ssl: Any, allow_private: bool):
        self.server, self.ssl, self.allow_private = server, ssl, allow_private
        # Whether the server is on the Internet. Behind a proxy nobody knows; what a saved login
        # names was judged when it was made.
        self.public = False

    def note_address(self, address: str) -> None:
        """Note the server's own address."""
        self.public = is_public(address)

    def forbid_private(self, address: str) -> None:
        """Raise ConnectionClosed if a public server refers us to a private one. RFC 9728 §7.7"""
        if self.public and not self.allow_private and not is_public(address):
            raise ConnectionClosed(f"{self.server} refers us to the private address {address}; "
                                   "to allow that, pass allow_private=True")

    def check(self, url: URL) -> None:
        """Raise MCPError for a URL to which the server must not refer us or the browser."""
        if self.server.scheme == "https" and url.scheme == "http" and not self.allow_private:
            raise AuthError(f"{self.server} refers us to {url}: it must begin with https://")
        with suppress(ValueError):  # a name is judged when we connect
            self.forbid_private("127.0.0.1" if is_loopback(url.host) else url.host)

    async def fetch(self, url: URL, headers: Fields, data: bytes = b"") -> tuple[int, Fields, Msg]:
        """GET a document, or POST data; return the status, the headers, and the document or {}."""
        self.check(url)
        http = HTTPClient(url, ssl=self.ssl, admit=self.forbid_private)
        # A code or a secret is not sent elsewhere.
        method, redirects = ("POST", 0) if data else ("GET", 3)
        late = ConnectionClosed(f"{url} took longer than {HEAD_SECONDS:g} seconds")
        try:
            async with Deadline(HEAD_SECONDS, late):
                answer = await http.send(method, url.target, {"accept": JSON_TYPE, **headers},
                                         data, NEVER, redirects)
                body = await answer.body(MAX_DOCUMENT_BYTES)
        finally:
            await http.close()
        doc = None
        with suppress(ProtocolError):
            doc = decode(body)
        return answer.head.status, answer.head.headers, doc if isinstance(doc, dict) else {}

    async def post_form(self, url: URL, headers: Fields, form: Fields) -> tuple[int, Fields, Msg]:
        from urllib.parse import urlencode

        headers = {"content-type": "application/x-www-form-urlencoded", **headers}
        return await self.fetch(url, headers, urlencode(form).encode())

    async def server_of(self, issuer: str) -> Msg:
        """Return the metadata of an authorization server, checked; {} if it has none."""
        where, doc = await self.first_of(server_metadata_urls(issuer), "server metadata")
        if not where:
            return {}
        given = doc.get("issuer")
        if given != issuer:
            differs = f"{where}: issuer is {show(given)}, not {issuer}"
            if not same_issuer(given, issuer):
                raise AuthError(differs)
            logger.warning(differs)  # by one slash; but tokens are compared exactly
        for name in ("authorization_endpoint", "token_endpoint"):  # before the user is asked
            if doc.get(name) is not None:
                oauth_url(doc[name], f"{where}: {name}")
        return doc

    async def first_of(self, urls: Iterable[str], what: str) -> tuple[str, Msg]:
        """Return the first document, and where it was; ("", {}) if all are 4xx or pages.

        Some servers answer unknown URLs with a page and 200. Any other response is an error: an
        outage must not lead to guesses.
        """
        for text in urls:
            url = oauth_url(text, what)
            # spec 2025-03-26: basic/authorization#server-metadata-discovery-headers
            status, _, doc = await self.fetch(url, {VERSION_HEADER: NEWEST})
            if status == 200 and doc:
                return str(url), doc
            if status != 200 and not 400 <= status < 500:
                raise ConnectionClosed(f"{url} answered {status}, without {what}")
        return "", {}

####
# 46. Logins
#
# Problem. The user must agree to a login in a browser, which may take minutes, and does not want to
#   do so again tomorrow. A login must be neither lost nor read by others.
# Rules.
#   1. A token goes to the origin of its server, in one header, and nowhere else: into no URL, log,
#      trace, exception or repr().
#   2. A login is saved under a hash of the whole URL of its server, with its issuer and its client.
#      A file is whole or absent, and only its owner can read it. CVE-2026-51996
#   3. One refresh at a time, across tasks and processes. Its result is saved before it is used: a
#      refresh token that is sent twice may end the login.
#   4. Any refusal of a refresh leads to a new login. A network that fails loses nothing.

__all__ += ["TokenStore", "FileStore"]

Key = tuple[str, ...]


class TokenStore:
    """A place for logins: JSON objects by keys, which are tuples of strings. This one is memory;
    subclass it for a keychain or a database."""

    def __init__(self) -> None:
        self.kept: dict[Key, Msg | None] = {}
        self.locked: set[Key] = set()

    async def load(self, key: Key) -> Msg | None:
        """Return the value that was saved, or None."""
        return self.kept.get(key)

    async def save(self, key: Key, value: Msg | None) -> None:
        """Save a value, safely once this returns; None deletes it."""
        self.kept[key] = value

    def try_lock(self, key: Key) -> Action | None:
        """Return a function that releases the lock; None if it is held elsewhere."""
        if key in self.locked:
            return None
        self.locked.add(key)
        return partial(self.locked.discard, key)

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Lock a value against the other tasks and processes that share the store."""
        async with Deadline(STALL_SECONDS, AuthError(
                f"another program has locked the login for {STALL_SECONDS:g} seconds")):
            while (release := self.try_lock(key)) is None:
                await asyncio.sleep(0.02)  # no loop can wait for the lock of a file
        try:
            yield
        finally:
            release()


class FileStore(TokenStore):
    """Logins as files that only their owner can read, in the folder `path`, else in the one that
    MCP_LITE_TOKENS names, else in one of this user's.

    If it cannot be written, logins last as long as the process, and a warning says so.
    """

    def __init__(self, path: StrPath | None = None):
        super().__init__()
        env = os.environ.get
        state = env("XDG_STATE_HOME") or env("LOCALAPPDATA") or os.path.expanduser("~/.local/state")
        self.path = os.fspath(path or env("MCP_LITE_TOKENS")
                              or os.path.join(state, "mcp_lite", "tokens"))

    def file(self, key: Key, end: str = ".json") -> str:
        return os.path.join(self.path, digest(encode(list(key))).hex() + end)  # type: ignore

    async def load(self, key: Key) -> Msg | None:
        if kept := await super().load(key):  # save() could not write it
            return kept
        path = self.file(key)
        try:
            with open(path, "rb") as file:
                doc: Any = decode(file.read())
                # Else a user who can write into the folder could log us in as somebody else.
                if not WINDOWS and os.fstat(file.fileno()).st_uid != os.getuid():
                    raise PermissionError("another user wrote it")
            if doc["key"] != list(key):
                raise ValueError("it belongs to another server")
            return dict(doc["value"])
        except FileNotFoundError:
            return None
        except (OSError, MCPError, ValueError, LookupError, TypeError) as exc:
            logger.warning("the login in %s cannot be read: %s", path, exc)
            return None

    async def save(self, key: Key, value: Msg | None) -> None:
        path = self.file(key)
        await super().save(key, None)
        try:
            if value is not None:
                os.makedirs(self.path, mode=0o700, exist_ok=True)
                await write_whole(path, encode({"key": list(key), "value": value}))
            elif os.path.exists(path):
                os.unlink(path)
        except OSError as exc:
            logger.warning("cannot save logins in %s (%s); MCP_LITE_TOKENS may name another folder",
                           self.path, exc)
            await super().save(key, value)

    def try_lock(self, key: Key) -> Action | None:
        """Lock a file beside the login. The file stays; the system unlocks it if we die."""
        with ExitStack() as stack:
            try:
                os.makedirs(self.path, mode=0o700, exist_ok=True)
                lock_file(stack.enter_context(open(self.file(key, ".lock"), "ab")).fileno())
                return stack.pop_all().close
            except BlockingIOError:
                return None
            except OSError:  # without a folder, or locks in it, other processes are not kept out
                return super().try_lock(key)


def lock_file(descriptor: int) -> None:
    """Lock a file until it is closed; BlockingIOError if it is locked."""
    if WINDOWS:
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except PermissionError as exc:
            raise BlockingIOError from exc
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def write_whole(path: str, data: bytes) -> None:
    """Replace a file, whole or not at all; OSError."""
    import tempfile

    # Others may write into the folder, so this has a random name, and mode 0600.
    descriptor, beside = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        for _ in range(30):
            with suppress(PermissionError):  # on Windows, while another process reads the old file
                return os.replace(beside, path)
            await asyncio.sleep(0.02)
        os.replace(beside, path)
    finally:
        with suppress(OSError):  # it was moved; else it holds tokens
            os.unlink(beside)


FROM_METADATA = "(from metadata)"  # stands for the resource that the server names
SECRET_FIELDS = ("code", "code_verifier", "refresh_token", "assertion", "client_assertion",
                 "subject_token", "token")


def lacks_scope(challenge: Fields) -> bool:
    """Return whether the token of a request is valid, but not for this request."""
    return challenge.get("error") == "insufficient_scope"


class Login(Authorizer):
    """The state of an OAuth at one server: tokens, where they come from, what gets new ones."""

    #: What is saved: "tokens", "client", "server" (the metadata), "asked" (the scope), "resource".
    kept: Msg | None = None  # until it is loaded; {} without a login
    work: Task | None = None  # the login or the refresh under way

    def __init__(self, oauth: OAuth, transport: HTTPTransport):
        super().__init__(transport.http)
        self.oauth, self.store, self.transport = oauth, oauth.store, transport
        self.url = oauth_url(str(transport.url), "the server's URL")
        # An SSLContext, if there is one already: it takes long to make.
        self.fetcher = Fetcher(self.url, self.http.ssl or transport.ssl, oauth.allow_private)
        transport.http.admit = self.fetcher.note_address
        self.place = "login", str(self.url)

    @property
    def tokens(self) -> Msg:
        return self.kept["tokens"] if self.kept else {}

    def usable(self) -> str:
        """Return the access token; "" without one, or if it has expired."""
        # The TypeScript SDK's example answers 500 to an expired one, which starts no login.
        return str(self.tokens.get("access_token", "")) if seconds_left(self.tokens) > 0 else ""

    # For the transport.

    async def headers(self, method: str, target: str, ask: bool) -> Fields:
        """Return the header with the token, refreshed if it soon expires."""
        if self.kept is None:
            self.kept = await self.load()
        due = seconds_left(self.tokens) <= PROBE_SECONDS
        if ask and due and "refresh_token" in self.tokens:
            # If it fails, the token may be valid still, or the challenge says what a login needs.
            with suppress(MCPError):
                await self.once(self.refresh)
        token = self.usable()
        return {"authorization": f"{self.oauth.scheme} {token}"} if token else {}

    async def settle(self, response: HTTPResponse, sent: Fields, steps: list[str]) -> bool:
        # spec: basic/authorization/index#error-handling
        status = response.head.status
        challenge = challenge_of(
            response.head.headers.get("www-authenticate", ""), self.oauth.scheme.lower())
        if status == 401 and "login" in steps:
            raise AuthError(f"{self.url} refused the token of a new login; {PYTHON} mcp_lite.py "
                            f"logout {self.url} removes the login")
        # spec: basic/authorization/index#step-up-authorization-flow -- "no more than a few times"
        may_help = status == 401 or status == 403 and lacks_scope(challenge)
        if not may_help or len(steps) >= 3:
            return False
        token = sent.get("authorization", "").partition(" ")[2]
        steps.append(await self.once(self.reauthorize, challenge, token, steps))
        return True

    async def close(self) -> None:
        """Wait for a response that may hold a new refresh token, but not for the user."""
        if self.work:
            await asyncio.wait(
                [self.work], timeout=0 if self.transport.waits_for_user else GRACE_SECONDS)

    # Another token.

    async def once(self, fn: Function, *args: Any) -> Any:
        """Call fn(*args) once for all requests that wait for it, even if one is cancelled."""
        if not self.work or self.work.done():
            self.work = self.transport.tasks.spawn(fn(*args))
        return await asyncio.shield(self.work)

    async def reauthorize(self, challenge: Fields, token: str, steps: Sequence[str]) -> str:
        """Get another token than the refused; return the way: "repeat", "refresh" or "login"."""
        if self.usable() not in ("", token):
            return "repeat"  # it came meanwhile
        may_refresh = "refresh" not in steps and not lacks_scope(challenge)
        if may_refresh and (step := await self.refresh()):
            return step
        self.transport.waits_for_user += self.oauth.person
        try:
            await self.log_in(challenge)
        except (ConnectionClosed, LimitExceeded) as exc:  # else the user would be asked again
            raise AuthError(str(exc)) from exc
        finally:
            self.transport.waits_for_user -= self.oauth.person
        return "login"

    async def refresh(self) -> str:
        """Get another access token without the user; return the way, "" without success."""
        async with self.store.lock(self.place):
            former = self.tokens.get("access_token")
            login = self.kept = await self.load()
            old = self.tokens
            if old.get("access_token", former) != former:  # another process was faster
                return "repeat"
            if "refresh_token" not in old:
                return ""
            form = {"grant_type": "refresh_token", "refresh_token": old["refresh_token"],
                    **without_none(resource=login.get("resource"))}
            try:
                new = await self.ask_tokens(login["server"], login["client"], form)
            except AuthError as exc:
                logger.warning("the login to %s cannot be refreshed: %s", self.url, exc)
                return ""
            await self.keep({**login, "tokens": {"refresh_token": old["refresh_token"], **new}})
        return "refresh"

    async def log_in(self, challenge: Fields) -> None:
        """Find out who issues tokens for this server, and get one, with the scope that it needs."""
        oauth = self.oauth
        before = self.kept.get("asked", "") if self.kept and lacks_scope(challenge) else ""
        if oauth.person and not oauth.interactive:
            raise AuthError(f"{self.url} needs a token: pass it by --token or token=, or run "
                            f"{PYTHON} mcp_lite.py login {self.url}")
        resource, scopes, server = await self.discover(challenge.get("resource_metadata"))
        scope = oauth.wanted_scope(challenge.get("scope", ""), scopes, server, before)
        if before and scope == before:
            raise AuthError(f"{self.url} needs scope {show(scope)}, which the last login requested")
        if oauth.resource is not FROM_METADATA:
            resource = oauth.resource
        about = without_none(resource=resource or None)  # RFC 8707 §2.2
        client, form = await oauth.obtain(self, server, scope, about)
        tokens = await self.ask_tokens(server, client, form)
        await self.keep(Msg(tokens=tokens, asked=scope, client=client, server=server, **about))

    async def discover(self, named: str | None) -> tuple[str | None, list[str], Msg]:
        """Return the name of the resource, its scopes, and its authorization server's metadata."""
        places = [*as_texts(named or ()), *resource_metadata_urls(self.url)]
        where, about = await self.fetcher.first_of(places, "resource metadata")
        if named and not where:
            raise AuthError(f"{named}, which {self.url} names, has no metadata")
        if where:
            resource = about.get("resource")
            issuers = strings(about.get("authorization_servers"))
            if not covers(oauth_url(resource, f"{where}: resource"), self.url):
                raise AuthError(f"{where}: resource is {show(resource)}, not {self.url}")
        else:  # the server is its own, as in the first revision with authorization
            issuers = [self.url.origin]
            # spec: basic/authorization/index#canonical-server-uri -- "without the trailing slash"
            resource = str(self.url).rstrip("/")
        # spec: basic/authorization/client-registration#authorization-server-binding
        if (issuer := next(filter(self.oauth.takes, issuers), None)) is None:
            raise AuthError(f"authorization_servers of {self.url} is {show(issuers)}, without "
                            f"{self.oauth.issuer or 'a usable one'}")
        if not (server := await self.fetcher.server_of(issuer)) and where:
            places = server_metadata_urls(issuer)
            raise AuthError(f"{issuer} has no metadata at {' or '.join(places)}")
        server = server or default_server(self.url)
        self.oauth.pin(server["issuer"])
        return resource, strings(about.get("scopes_supported")), server

    async def token_request(
        self, server: Msg, client: Msg, fields: Fields, where: str = "token_endpoint"
    ) -> Msg:
        """Send a request for tokens, or about them. RFC 6749 §3.2"""
        url = oauth_url(server.get(where), where)
        headers, more = client_credentials(client, server)
        assertion = self.oauth.assertion
        if assertion and client["client_id"] == self.oauth.client_id:
            headers, more = {}, {
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                # Its audience is the issuer: metadata can name a token endpoint of anybody.
                "client_assertion": str(await maybe_await(assertion(server["issuer"])))
            }
        form = {**fields, **more}
        status, _, doc = await self.fetcher.post_form(url, headers, form)
        if 200 <= status < 300 and doc.get("error") is None:
            return doc
        secrets = client.get("client_secret"), *map(form.get, SECRET_FIELDS)
        error = AuthError if status < 500 and status != 429 else ConnectionClosed
        raise error(f"{url} answered {status}: {error_text(doc, secrets)}")

    async def ask_tokens(self, server: Msg, client: Msg, form: Fields) -> Msg:
        return read_tokens(await self.token_request(server, client, form), self.oauth.scheme,
                           server["token_endpoint"])

    # What is kept.

    async def load(self) -> Msg:
        """Return the saved login to this server, if it is for our client and issuer; else {}."""
        if not (login := await self.store.load(self.place)):
            return {}
        tokens, client = object_of(login, "tokens"), object_of(login, "client")
        issuer: Any = object_of(login, "server").get("issuer")
        texts = [tokens.get("access_token"), client.get("client_id"), issuer,
                 client.get("client_secret") or "", login.get("asked", "")]
        if not (all(isinstance(text, str) for text in texts)
                and isinstance(tokens.get("expires_at", 0), (int, float))):
            logger.warning("the saved login to %s is damaged, and not used", self.url)
            return {}
        if self.oauth.client_id not in (None, client["client_id"]) or not self.oauth.takes(issuer):
            return {}
        self.oauth.pin(issuer)
        return login

    async def keep(self, login: Msg) -> None:
        await self.store.save(self.place, login)
        self.kept = login

    async def forget(self) -> bool:
        """Revoke the tokens if the server can, and forget them; return whether there were any."""
        async with self.store.lock(self.place):  # not during a refresh, which would save new ones
            if not (login := await self.load()):
                return False
            token = login["tokens"].get("refresh_token") or login["tokens"]["access_token"]
            try:
                await self.token_request(
                    login["server"], login["client"], {"token": token}, "revocation_endpoint")
            except MCPError as exc:  # RFC 7009 -- forgotten here, whatever happens there
                logger.warning("the tokens of %s are not revoked: %s", self.url, exc)
            await self.store.save(self.place, None)
        return True

####
# 47. Ways to a token
#
# Problem. A user logs in with a browser, which must come back to this program. A program in a
#   cluster has no user: it gets a token for a secret of its own, or for another token.
# Rules.
#   1. An id or a secret is sent to its own issuer alone, whatever a server names.
#   2. Other grants are subclasses of ClientCredentials: grant() returns what is sent.
# Limits. No device codes: the specification has none. Nothing is signed: for assertions and DPoP
#   see examples/authorization/keys.py. Each login registers a new client. What a browser prints may
#   come out on our stdout.

__all__ += ["OAuth", "ClientCredentials", "paste_redirect", "logout"]

PAGE_HEADERS = {"content-type": "text/plain", "cache-control": "no-store"}
DONE_PAGE = b"You can close this page and return to the program."
ODD_PAGE = b"The program does not wait for this login: its state is missing or different."


@asynccontextmanager
async def redirect_for(state: str, given: str | None) -> AsyncIterator[tuple[str, Future | None]]:
    """Listen at the `given` URI or at any port; yield the URI, and what will come, which is None
    for a URI of another machine. RFC 8252 §7.3"""
    url = parse_url(given or "http://127.0.0.1/callback")
    if given and (url.scheme != "http" or not is_loopback(url.host)):
        yield given, None
        return
    path = url.target.partition("?")[0]
    came = get_running_loop().create_future()

    async def serve(request: HTTPRequest, response: Response) -> None:
        """Respond with a page that repeats nothing of the request."""
        status, page = 404, ODD_PAGE
        if request.path == path and request.method == "GET" and not came.done():
            if found := answer_in(request.query, state):
                came.set_result(found)
                status, page = 200, DONE_PAGE
        await response.send(status, PAGE_HEADERS, page)

    listener = Listener(serve)
    try:
        try:
            root = await listener.start(url.host, url.port if given else 0)
        except OSError as exc:
            raise AuthError(f"cannot listen on port {url.port} for the redirect: {exc}; pass "
                            "OAuth(redirect_uri=) with another port") from exc
        listener.stopping = True  # each connection ends with its response
        yield given or root + path, came
    finally:
        await listener.stop(PROBE_SECONDS)


async def open_browser(url: str) -> None:
    """Open the user's browser, if there is one; this may take as long as the browser runs."""
    import webbrowser

    with suppress(Exception):  # the URL was printed, too
        await in_thread(partial(webbrowser.open, url))


async def typed_line() -> str:
    """Return the next line that is typed at the terminal; "" at the end of input.

    A cancelled wait leaves the line to the next reader; not so on Windows.
    """
    loop, typed, fd = get_running_loop(), asyncio.Event(), sys.stdin.fileno()
    # Not sys.stdin.readline(): CPython aborts if it exits while a thread waits there.
    read = partial(os.read, fd, BUFFER_BYTES)
    try:
        loop.add_reader(fd, typed.set)
    except (NotImplementedError, PermissionError):  # Windows; a file, or /dev/null
        return bytes.decode(await in_thread(read), errors="replace")
    try:
        await typed.wait()
    finally:
        loop.remove_reader(fd)
    return read().decode(errors="replace")


async def paste_redirect(url: str) -> str:
    """Ask at the terminal where a browser on another machine ended up: OAuth(open_browser=)."""
    write_stderr("Open it there, and paste here the address where the browser ends up:\n")
    return await typed_line()


class OAuth:
    """How to log in: `Client(url, auth=OAuth(...))`; `auth="oauth"` is OAuth() without arguments.

    Clients may share one.

    Args:
        client_id, client_secret: of a client that is registered at the authorization server
        issuer: the URL of that server; required with a secret, else the first login fixes it
        client_metadata_url: https URL of a document, our client ID for servers that accept it
        client_name: the name of this program, where it registers itself
        scopes, resource: instead of those that the server names; resource=None sends none
        redirect_uri: for servers that require a certain one
        store: where logins are kept
        open_browser: open_browser(url) shows the page; it may return the address where the browser
            ended up, which then need not be on this machine
        extra: more parameters of the authorization request
        assertion: assertion(issuer) returns a signed JWT, sent instead of a secret
        assume_pkce: whether to trust a server that does not announce PKCE
        allow_private: whether a public server may refer us to a private network
        timeout: seconds for the user to log in
        interactive: False raises AuthError where the user would have to log in
    """

    person = True  # whether the user must agree, in a browser
    scheme = "Bearer"  # of challenges, of tokens, and of the header that carries them
    state = Login  # the class of the state at one server

    def __init__(
        self, *, client_id: str | None = None, client_secret: str | None = None,
        issuer: str | None = None, client_metadata_url: str | None = None,
        client_name: str = "mcp_lite", scopes: Names | None = None,
        resource: str | None = FROM_METADATA, redirect_uri: str | None = None,
        store: TokenStore | None = None, open_browser: Callable[[str], Any] = open_browser,
        extra: Fields | None = None, assertion: Callable[[str], Any] | None = None,
        assume_pkce: bool = False, allow_private: bool = False, timeout: float = 300.0,
        interactive: bool = True
    ):
        issuer, redirect_uri, client_metadata_url = (  # which may be objects of pydantic
            url and str(url) for url in (issuer, redirect_uri, client_metadata_url))
        self.client_id, self.assertion = client_id, assertion
        self.client = {"client_id": client_id, "client_secret": client_secret}
        self.client_metadata_url, self.client_name = client_metadata_url, client_name
        self.scopes = None if scopes is None else scope_list(scopes)
        self.resource, self.redirect_uri, self.extra = resource, redirect_uri, extra or {}
        self.store = store or (FileStore() if self.person else TokenStore())
        self.open_browser, self.timeout, self.interactive = open_browser, timeout, interactive
        self.assume_pkce, self.allow_private, self.issuer = assume_pkce, allow_private, issuer
        if (client_secret or assertion or not self.person) and not (client_id and issuer):
            raise ValueError("a secret needs client_id= and issuer=, the URL of its authorization "
                             "server: it is not sent to any other")
        if redirect_uri is not None:
            oauth_url(redirect_uri, "redirect_uri")

    def takes(self, issuer: str) -> bool:
        """Return whether an issuer may receive our client ID."""
        return self.issuer is None or same_issuer(issuer, self.issuer)

    def pin(self, issuer: str) -> None:
        """Note the first issuer that receives the user's client ID."""
        if self.client_id:
            self.issuer = self.issuer or issuer

    def wanted_scope(self, named: str, offered: list[str], server: Msg, before: str) -> str:
        """Return the scope to request, "" for none: the user's and the challenge's, or else all
        that is `offered`. What was requested `before` stays in it.

        spec: basic/authorization/index#scope-selection-strategy
        """
        scopes = [*before.split(), *(self.scopes or ()), *named.split()]
        if self.scopes is None:
            scopes = scopes or [scope for scope in offered if scope != "offline_access"]
            # spec: basic/authorization/index#refresh-tokens
            if "offline_access" in strings(server.get("scopes_supported")):
                scopes.append("offline_access")
        return " ".join(dict.fromkeys(scope for scope in scopes if re.fullmatch(SCOPE, scope)))

    async def obtain(self, login: Login, server: Msg, scope: str, about: Fields) -> tuple[Msg, Msg]:
        """Get the user's consent; return our client and the form that gets it tokens."""
        from secrets import token_urlsafe

        # spec: basic/authorization/security-considerations#authorization-code-protection
        methods = strings(server.get("code_challenge_methods_supported"))
        if "S256" not in methods and (methods or not self.assume_pkce):
            raise AuthError(f"{server['issuer']}: code_challenge_methods_supported is "
                            f"{show(methods)}, without S256: a code could be stolen. If you know "
                            "that it checks PKCE, pass OAuth(assume_pkce=True)")
        state, verifier = token_urlsafe(32), token_urlsafe(48)  # 64 characters: RFC 7636 §4.1
        async with redirect_for(state, self.redirect_uri) as (uri, came):
            client = await self.client_for(login, server, uri, scope)
            page = authorization_url(server, {
                **self.extra, "response_type": "code", "client_id": client["client_id"],
                "redirect_uri": uri, "state": state, "code_challenge": code_challenge(verifier),
                "code_challenge_method": "S256", **without_none(scope=scope or None), **about
            })
            login.fetcher.check(parse_url(page))
            answer = await within(self.timeout, self.ask_user(page, state, came), AuthError(
                f"nobody logged in within {self.timeout:g} seconds"))
        return client, {
            "grant_type": "authorization_code", "code": authorization_code(answer, server),
            "redirect_uri": uri, "code_verifier": verifier, **about
        }

    async def ask_user(self, page: str, state: str, came: asyncio.Future[Fields] | None) -> Fields:
        """Show a page; return the parameters with which the browser comes back."""
        write_stderr(f"To log in, open this page:\n\n    {page}\n\nWaiting {self.timeout:g} "
                     "seconds for the browser to come back; Ctrl-C gives up.\n")
        showing = asyncio.ensure_future(maybe_await(self.open_browser(page)))
        try:
            await asyncio.wait({showing, came or showing}, return_when=asyncio.FIRST_COMPLETED)
            address = "" if came and came.done() else await showing
        finally:
            showing.cancel()
        if not isinstance(address, str) or not address.strip():
            if came is None:
                raise AuthError(f"redirect_uri={self.redirect_uri} is not on this machine: "
                                "open_browser= must return where the browser ended up")
            return await came
        answer = answer_in(address.strip().partition("#")[0].rpartition("?")[2], state)
        if answer is None:
            raise AuthError("this redirect belongs to another login: its state is different")
        return answer

    async def client_for(self, login: Login, server: Msg, uri: str, scope: str) -> Msg:
        """Return our client: the configured one, that of a document, or one registered now."""
        # spec: basic/authorization/client-registration
        named, issuer = self.client_metadata_url, server["issuer"]
        if self.client_id:
            return self.client
        if named and server.get("client_id_metadata_document_supported") is True:
            return {"client_id": named, "token_endpoint_auth_method": "none"}
        if not server.get("registration_endpoint"):
            raise AuthError(f"{issuer} does not register clients automatically: register {uri} "
                            f"there, and pass OAuth(client_id=, issuer={issuer!r}, redirect_uri=)")
        url = oauth_url(server["registration_endpoint"], "registration_endpoint")
        status, _, doc = await login.fetcher.fetch(
            url, JSON_HEADERS, encode(registration(server, self.client_name, uri, scope)))
        if not 200 <= status < 300:
            raise AuthError(f"{url} did not register this client: {status}, {error_text(doc)}; if "
                            f"{login.url} accepts a fixed token, pass it: token= or --token")
        names = ("client_id", "client_secret", "token_endpoint_auth_method")  # RFC 7591 §3.2.1
        client = {name: doc[name] for name in names if isinstance(doc.get(name), str)}
        if not client.get("client_id"):
            raise AuthError(f"{url}: client_id is {show(doc.get('client_id'))}, not a text")
        return client


class ClientCredentials(OAuth):
    """A program that logs in as itself, with a secret or a signed assertion. RFC 6749 §4.4"""

    person = False

    def __init__(self, client_id: str, client_secret: str | None = None, **options: Any):
        super().__init__(client_id=client_id, client_secret=client_secret, **options)

    async def obtain(self, login: Login, server: Msg, scope: str, about: Fields) -> tuple[Msg, Msg]:
        return self.client, {**await self.grant(login, server, about),
                             **without_none(scope=scope or None), **about}

    async def grant(self, login: Login, server: Msg, about: Fields) -> Fields:
        """Return the fields that entitle us to a token."""
        return {"grant_type": "client_credentials"}


def make_authorizer(transport: HTTPTransport, auth: Any) -> Authorizer | None:
    """Return an Authorizer from "oauth", an OAuth(...), a token, or a function."""
    auth = OAuth() if auth in ("oauth", OAuth) else auth
    if isinstance(auth, OAuth):
        return auth.state(auth, transport)
    return Authorizer(transport.http, auth) if isinstance(auth, str) or callable(auth) else None


HTTPTransport.authorizer_of = make_authorizer


async def logout(url: str, *, auth: OAuth | None = None, ssl: Any = None) -> bool:
    """Forget the login to a server, and revoke it if the server can; False if there was none."""
    transport: Any = HTTPTransport(url, ssl=ssl, auth=auth or "oauth")
    try:
        return bool(await transport.auth.forget())
    finally:
        await transport.close()

####
# 48. Guarding a server
#
# Problem. A server accepts tokens of another issuer. It must know whether they are genuine and
#   meant for it, and what their owner may do. Clients must learn where to get one.
# Rules.
#   1. In doubt a request is refused. The issuer and the audience of tokens are configured, never
#      read from a request.
#   2. A refusal contains what RFC 6750 requires. Our reasons are in the log.
#   3. If tokens cannot be verified now, it is 503. After 401 all would log in again.
#   4. Handlers see a Principal, never the token.
# Limits. A revoked token is accepted for a minute. examples/authorization shows how to issue
#   tokens, and how to ask an issuer about one.

__all__ += ["Guard", "Principal", "jwt_verifier"]


class Principal:
    """The sender of a request, as its token says; equal by issuer, subject and client.

    `scopes` are what it may do, `expires_at` is a time or None, `claims` are those of the token.
    """

    def __init__(
        self, issuer: str, subject: str, client_id: str = "", scopes: Names = (),
        expires_at: float | None = None, claims: Msg | None = None
    ):
        self.name = self.issuer, self.subject, self.client_id = issuer, subject, client_id
        self.scopes = frozenset(" ".join(as_texts(scopes)).split())
        self.expires_at, self.claims = expires_at, claims or {}

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Principal) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Principal{self.name!r}"


def principal_of(claims: Msg, issuer: str, audience: list[str]) -> Principal:
    """Return the principal of a token, if it is an issuer's, for us, and for now. RFC 9068 §4"""
    if claims.get("iss") != issuer:
        raise AuthError(f"iss is {show(claims.get('iss'))}, not {issuer}")
    aud = claims.get("aud")
    if not any(x in audience for x in as_list(aud)):
        raise AuthError(f"aud is {show(aud)}, not {' or '.join(audience)}")
    now = time.time()
    for name, default in (("exp", 0), ("nbf", now), ("iat", now)):  # without exp it has expired
        value = claims.get(name, default)
        if type(value) not in (int, float) or not abs(value) < 1e15:
            raise AuthError(f"{name} is {show(value)}, not a number of seconds")
        ahead = value - now
        wrong = ahead <= -CLOCK_SECONDS if name == "exp" else ahead > CLOCK_SECONDS
        if wrong:
            raise AuthError(f"{name} is {show(claims.get(name))}, and the time is {now:.0f}")
    if "cnf" in claims:  # RFC 7800 §3
        raise AuthError("it is bound to a key (cnf), whose proof is not checked here")
    # RFC 9068 §2.2: `client_id`; OpenID Connect: `azp`. RFC 8693 §4.2: `scope`; others: `scp`
    client = claims.get("client_id") or claims.get("azp") or ""
    subject = claims.get("sub") or client
    if not (isinstance(subject, str) and isinstance(client, str) and subject):
        raise AuthError("it has neither sub nor client_id")
    return Principal(issuer, subject, client, strings(claims.get("scope", claims.get("scp"))),
                     claims.get("exp"), claims)


class KeySet:
    """The keys of an issuer, fetched when they are needed, and kept while it is down."""

    keys: list[JSON] | None = None
    tried = -NEVER
    work: Task  # which fetches them, or did last

    def __init__(self, issuer: str, uri: str | None, ssl: Any):
        self.issuer, self.uri = issuer, uri
        # The issuer is our own choice, and may well be on a private network.
        self.fetcher = Fetcher(
            oauth_url(uri or issuer, "the issuer, or jwks_uri=,"), ssl, allow_private=True)

    async def get(self, anew: bool) -> list[JSON]:
        """Return the keys, fetched `anew` unless that was just tried; HTTPError without any."""
        now, wait = time.monotonic(), anew or self.keys is None  # else the old ones do
        if now - self.tried > (PROBE_SECONDS if wait else KEYS_SECONDS):
            self.tried, self.work = now, asyncio.ensure_future(self.fetch())
        if wait:
            await asyncio.shield(self.work)
        if self.keys is None:
            raise cannot_verify()
        return self.keys

    async def fetch(self) -> None:
        try:
            uri = self.uri or (await self.fetcher.server_of(self.issuer)).get("jwks_uri")
            _, doc = await self.fetcher.first_of([str(uri)], "jwks_uri")
            if not isinstance(doc.get("keys"), list):
                raise AuthError(f"{uri} has no keys")
            self.keys = doc["keys"]
        except MCPError as exc:
            logger.warning("tokens cannot be verified with new keys of %s: %s", self.issuer, exc)


def jwt_verifier(
    issuer: str, *, audience: str | Sequence[str], jwks_uri: str | None = None,
    keys: Sequence[Msg] | Msg | None = None, algorithms: Sequence[str] = ("RS256", "ES256"),
    ssl: Any = None
) -> Callable[[str], Awaitable[Principal | None]]:
    """Return a function for Guard(verify=): it verifies the JWTs of an issuer for `audience`.

    The keys come from `keys` (JWKs, one, or a JWK Set), `jwks_uri`, or the issuer's metadata.
    """
    meant, algorithms = [str(url or "") for url in as_list(audience)], as_list(algorithms)
    issuer = str(issuer)
    if isinstance(keys, dict):
        keys = [keys] if "kty" in keys else keys.get("keys", "")
    if isinstance(keys, (str, bytes)):
        raise TypeError("keys= takes a JWK, a list of JWKs or a JWK Set, as dicts, not as text")
    # spec: basic/authorization/security-considerations#access-token-privilege-restriction
    if not meant or not all(meant):
        raise ValueError("audience= is required: without it, tokens for other servers are valid")
    if not algorithms or not KEY_KINDS.keys() >= set(algorithms):
        raise ValueError(f"algorithms={algorithms!r}: supported are {', '.join(KEY_KINDS)}")
    key_set, thread = KeySet(issuer, jwks_uri, ssl), Threads(1)
    warnings = RateLimit(*WARN_RATE)

    async def validate(token: str) -> Principal:
        header, claims, *signed = read_jwt(token, algorithms)  # before keys are fetched for it
        tried: list[Msg] = []
        for anew in (False, True):  # a key may be new, or may have changed
            found = keys_for(header, await key_set.get(anew) if keys is None else keys)
            if len(found) > 1 and header.get("kid") is None:  # a forger could make us try them all
                raise AuthError(f"it has no kid, and {len(found)} keys fit")
            if found != tried and await thread.run(signed_by, found, header["alg"], *signed):
                return principal_of(claims, issuer, meant)
            tried = found
        raise AuthError(f"none of {len(found)} keys has signed it")

    async def verify(token: str) -> Principal | None:
        try:
            return await validate(token)
        except AuthError as exc:
            logger.log(logging.WARNING if warnings.take() else logging.INFO,
                       "a token is refused: %s", exc)
            return None

    return verify


class Guard(Authenticator):
    """Authenticates requests: `app.run("http", auth=Guard(...))`, or the same for ASGI.

    spec: basic/authorization/index#token-handling

    Args:
        verify: plain or async: verify(token) returns a Principal, or another value that identifies
            the sender, or None for an invalid token. It is called again after a minute, or when
            the Principal expires
        issuers: URLs of the authorization servers that issue the tokens
        resource_url: our URL as clients know it; optional if only this machine can reach us
        scopes: required by every request
        offered: more scopes to name in our metadata
    """

    below = ""  # where our metadata is behind a prefix

    def __init__(
        self, *, verify: Callable[[str], Any], issuers: Sequence[str] = (),
        resource_url: str | None = None, scopes: Names = (), offered: Names = ()
    ):
        super().__init__(None, verify)
        self.issuers = [str(issuer) for issuer in as_list(issuers)]
        for issuer in self.issuers:
            server_metadata_urls(issuer)  # UnsafeURL
        if resource_url:
            oauth_url(resource_url, "resource_url")
        self.scopes = scope_list(scopes)
        self.offered = [*self.scopes, *scope_list(offered)]
        self.url = str(resource_url or "")
        #: by the hash of a token: until when it need not be verified again, and whose it is
        self.cache: dict[bytes, tuple[float, Identity]] = {}

    async def identify(self, request: HTTPRequest) -> Identity:
        if request.root:  # where another application mounts us
            self.metadata = self.below
        return await super().identify(request)

    async def validate(self, token: str) -> Identity | None:
        name = digest(token.encode())
        until, who = self.cache.get(name, (0.0, None))
        if time.monotonic() >= until:
            if who := await super().validate(token):
                left = min(TRUST_SECONDS, seconds_left(who.principal))
                if len(self.cache) >= MAX_CLIENTS:
                    self.cache.clear()
                self.cache[name] = time.monotonic() + left, who
        return who

    def pages(self, path: str) -> dict[str, Function]:
        """Return the page with our metadata, at each path where clients look for it."""
        self.path, places = path, [RESOURCE_METADATA + path, RESOURCE_METADATA]
        if not self.issuers:
            return {}
        if self.url:
            url = parse_url(self.url)
            own = url.target.partition("?")[0].rstrip("/")
            self.below = url.origin + own + RESOURCE_METADATA
            # Behind a prefix, which a proxy takes away, the usual place may be another program's.
            self.metadata = self.below if own != path else resource_metadata_urls(url)[0]
            places += [path + RESOURCE_METADATA, RESOURCE_METADATA + own]
        return dict.fromkeys(places, self.page)

    async def page(self, request: HTTPRequest) -> Any:
        """Return who issues our tokens, also to pages of any origin. RFC 9728 §3.2"""
        # On this machine clients may say 127.0.0.1 or localhost, and compare.
        here = f"{request.scheme}://{request.headers.get('host')}{request.root}{self.path}"
        headers = {
            "cache-control": "max-age=3600",
            "access-control-allow-origin": "*", "access-control-allow-headers": "*"
        }
        return 200, headers, without_none(
            resource=self.url or here, authorization_servers=self.issuers,
            scopes_supported=self.offered or None, bearer_methods_supported=["header"])

# ======
# Part VIII. The command line
# ======

####
# 49. Showing
#
# Problem. A server's text reaches the user's terminal. A tool whose description has the bytes
#   `ESC ]52;c;...` would write into the user's clipboard.
# Rules.
#   1. All text of a server goes to a terminal through plain().
#   2. A pipe gets the result as it is: a program needs every byte.
# Limits. A signature shows nine choices of an enum, and follows one `$ref`: --json shows all.

__all__ += ["UsageError", "plain"]

# Escape sequences (CSI; OSC and its kin; others), HIDDEN, and more that cannot be seen. The joiners
# U+200C and U+200D stay: scripts and emoji need them.
CONTROLS = (
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-Z^-~]"
    f"|{HIDDEN}|[\u061c\u200b\u200e\u200f\u2060-\u2065\ufeff\U000e0000-\U000e007f]"
)


class UsageError(MCPError):
    """The command line is wrong; the message says what is right."""


def plain(text: object) -> str:
    r"""Return text without what controls a terminal.

    >>> plain("\x1b[2Jall \x1b]0;title\x07\x1b[31mred\x1b[0m\r\n")
    'all red\n'
    """
    return re.sub(CONTROLS, "", str(text))


def one_line(text: object) -> str:
    return " ".join(plain(text).split())


def pick(what: str, name: str, known: Mapping[str, Any]) -> Any:
    """Return known[name]; UsageError with the nearest name, or with all."""
    if name not in known:
        raise UsageError(no_such(what, name, known))
    return known[name]


def type_words(schema: JSON, defs: JSON = None) -> str:
    """Return a schema as a short type; references to `defs` are followed, but once.

    >>> type_words({"type": ["array", "null"], "items": {"enum": ["a", "b"]}})
    '["a" | "b"] | null'
    """
    if not isinstance(schema, dict):
        return "any"
    if defs and "$ref" in schema:
        return type_words(object_of(defs, str(schema["$ref"]).rpartition("/")[2]))
    if schema.keys() == {"const", "title"}:  # a choice of a form, and its name for the user
        words = [f"{_to_json(schema['const'])} ({schema['title']})"]
    elif "enum" in schema or "const" in schema:
        words = [_to_json(value) for value in schema.get("enum", [schema.get("const")])]
    elif options := schema.get("anyOf") or schema.get("oneOf"):
        words = [type_words(option, defs) for option in options]
    else:
        members = ", ".join(parameters({**schema, "$defs": defs}))
        shapes = {"array": f"[{type_words(schema.get('items'), defs)}]",
                  "object": f"{{{members}}}" if members else "object"}
        words = [shapes.get(kind, kind)  # each once: the list is a stranger's
                 for kind in dict.fromkeys(as_list(schema.get("type", "any")))]
    return " | ".join(words[:9]) + " | ..." * (len(words) > 9)


BOUNDS = ("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength "
          "pattern format minItems maxItems").split()


def about(field: Msg) -> str:
    """Return the description of a value, and its bounds."""
    bounds = ", ".join(f"{word} {field[word]}" for word in BOUNDS if word in field)
    return f"{field.get('description') or ''} {f'({bounds})' * bool(bounds)}".strip()


def parameters(schema: Msg) -> Fields:
    """Return the properties of an object as parameters, each with its description and bounds.

    >>> [*parameters({"properties": {"a": {"type": "integer"}, "b": {"default": 0}}})]
    ['a?: integer', 'b: any = 0']
    """
    shown, fields, defs = {}, object_of(schema, "properties"), schema.get("$defs")
    for name in fields:
        field = object_of(fields, name)  # {} stands for a schema that is `true`
        value = f" = {_to_json(field['default'])}" if "default" in field else ""
        mark = "" if value or name in (schema.get("required") or ()) else "?"
        shown[f"{name}{mark}: {type_words(field, defs)}{value}"] = about(field)
    return shown


def argument_schema(item: Msg) -> Msg:
    """Return the schema of a tool's arguments, or of a prompt's, which are texts."""
    if "inputSchema" in item:
        return object_of(item, "inputSchema")
    asked = item.get("arguments") or ()
    return {"properties": {each["name"]: {**each, "type": "string"} for each in asked},
            "required": [each["name"] for each in asked if each.get("required")]}


def headline(item: Msg) -> str:
    """Return a tool, prompt, resource or template as one line: "add(a: integer) -> integer"."""
    uri, out = item.get("uri") or item.get("uriTemplate"), object_of(item, "outputSchema")
    if uri:
        return one_line(f"{uri} {item.get('mimeType', '')}")
    fields = object_of(out, "properties")
    result = type_words(fields["result"] if [*fields] == ["result"] else out)
    text = f"{item['name']}({', '.join(parameters(argument_schema(item)))})"
    return one_line(f"{text} -> {result}" if out else text)


def columns() -> int:
    import shutil

    return max(shutil.get_terminal_size((100, 24)).columns, 40)  # some terminals say 0


def wrapped(text: str, indent: int) -> list[str]:
    import textwrap

    return [" " * indent + line for line in textwrap.wrap(one_line(text), columns() - indent)]


def listing(items: Iterable[Msg], full: bool = False) -> str:
    """Return the headline and description of each item; if `full`, also those of its arguments."""
    lines = []
    for item in items:
        paragraphs = (item.get("description") or "").strip().split("\n\n")
        lines.append(headline(item))
        for paragraph in paragraphs if full else paragraphs[:1]:
            lines += wrapped(paragraph, 4)
        for parameter, text in parameters(argument_schema(item)).items() if full else ():
            lines += [f"  {one_line(parameter)}", *wrapped(text, 6)]
    return "\n".join(lines) or "(none)"


####
# 50. The trace
#
# Problem. To learn the protocol, or to find a fault, one wants to see every message; and a trace is
#   pasted into bug reports.
# Rules.
#   1. A trace shows neither secrets nor pages of base64.
#   2. It has no control characters, whatever was on the wire.
# Limits. A secret is recognized by its name: a secret argument called `x` is shown.

SECRET_WORDS = (
    "authorization|credential|pass(?:word|wd|phrase)|secret|(?:api|private|access)[-_]?key"
    r"|(?<![a-z])(?:auth|pwd|jwt)(?![a-z])|(?<!progress)(?<!max)(?<!max_)tokens?\b"
)
SECRET_KEY = rf"(?i){SECRET_WORDS}|cookie"
#: `Bearer x`, `password: x`, `"api_key": "x"`, `?access_token=x`, `https://user:x@host`
SECRET_TEXT = (
    rf"(?i)(\b(?:bearer|basic)\s+(?!\w+=\\?\")|(?:{SECRET_WORDS})"
    r"\\?[\"']?\s*[:=]\s*\\?[\"']?(?:(?:bearer|basic)\s+)?|://(?=[^/\s]+@))"
    r"(?:(?<=\")(?:[^\"\\]|\\.){3,}|(?<=')(?:[^'\\]|\\.){3,}|(?<=://)[^/\s]+(?=@)|[^\s\"'\\]{3,})"
)
REDACTED = "[redacted]"


def redact(value: JSON, key: str = "", parent: str = "") -> JSON:
    """Return a copy to show: secrets are redacted, long texts and lists are shortened.

    >>> redact({"password": "hunter2", "args": ["--token=abcdef"]})
    {'password': '[redacted]', 'args': ['--token=[redacted]']}
    """
    # In a schema, `password` is a field, whose description is not a secret.
    described = parent == "properties" and isinstance(value, dict)
    if re.search(SECRET_KEY, key) and not described and value not in (None, True, False):
        return REDACTED
    if isinstance(value, str):
        text = re.sub(SECRET_TEXT, rf"\g<1>{REDACTED}", value)
        return text[:200] + f"... ({len(text):,} characters)" * (len(text) > 200)
    if isinstance(value, list):
        return [redact(item) for item in value[:20]] + ["..."] * (len(value) > 20)
    if isinstance(value, dict):
        return {name: redact(member, name, key) for name, member in value.items()}
    return value


def title_of(direction: str, name: str, msg: JSON, asked: Msg) -> str:
    """Return the method of a message, or the request that it answers and its duration.

    `asked` has title and time of each pending request, by direction, peer and id.
    """
    now = time.monotonic()
    if not isinstance(msg, dict):
        return f"not a message: {msg}"
    if "http" in msg:
        return str(msg["http"])
    req_id, params = json.dumps(msg.get("id")), object_of(msg, "params")
    if "method" not in msg:
        question = f"{'<' if direction == '>' else '>'} {name} {req_id}"
        title, since = asked.pop(question, ("an unknown request", now))
        return (f"{'error for' if msg.get('error') else 'result of'} {title}, "
                f"{1000 * (now - since):.1f} ms")
    title = f"{msg['method']} {params.get('name') or params.get('uri') or ''}".strip()
    if "id" in msg:
        title += f" #{req_id}"
        asked[f"{direction} {name} {req_id}"] = title, now
    return title


def gist_of(msg: JSON) -> str:
    """Return the rest of a message: what its title does not show."""
    if not isinstance(msg, dict):
        return ""
    said = msg.get("headers") or msg.get("error") or msg.get("params", msg.get("result"))
    if isinstance(said, dict):
        said = without(said, "_meta", "name", "uri", "resultType", "ttlMs", "cacheScope")
    return json.dumps(redact(said), ensure_ascii=False) if said else ""


def trace_to(stream: typing.TextIO, full: bool = False) -> Trace:
    """Return a function for set_trace() that shows a message, a batch or a head of HTTP in a line,
    or if `full` with its JSON as well."""
    began = time.monotonic()
    asked: Msg = {}

    def view(direction: str, name: str, msg: JSON) -> None:
        shaft = "==" if isinstance(msg, HTTPHead) else "--"
        arrow = f"{shaft}>" if direction == ">" else f"<{shaft}"
        titles = ", ".join(title_of(direction, name, item, asked) for item in as_list(msg))
        text = f"{time.monotonic() - began:8.3f} {arrow} {redact(one_line(titles))}"
        if full:
            text += "\n" + json.dumps(redact(msg), indent=2, ensure_ascii=False, default=str)
        else:
            text = f"{text} {gist_of(msg)}"[: columns()].rstrip()
        write_stderr(plain(text) + "\n", stream)

    return view


def start_trace(where: str | None) -> None:
    """Show every message: on stderr if `where` is "1" or "full", else in that file."""
    if not where or where == "0":
        return
    stream = sys.stderr
    if where not in ("1", "full"):
        stream = open(where, "a", encoding="utf-8", errors="backslashreplace")
        atexit.register(stream.close)
    set_trace(trace_to(stream, full=where != "1"))


start_trace(os.environ.get("MCP_LITE_TRACE"))  # for any program that uses this file

####
# 51. The user
#
# Problem. While a verb runs, the user wants to see its progress and the server's log. The server
#   may ask: "Deploy to production?"
# Rules.
#   1. All of it goes to stderr: stdout contains nothing but the result.
#   2. Without a terminal, a question is declined: a script never hangs.
#   3. A word means what the schema says. `7` is text where a string is valid.
# Limits. A value is typed as it is sent: there are no menus.

__all__ += ["Person"]

YES_NO = {"yes": True, "y": True, "no": False, "n": False, "": False}  # besides true and false


def pairs(words: Iterable[str], sign: str = "=") -> dict[str, str]:
    """Return the texts before and after the sign in each word."""
    return dict(word.split(sign, 1) for word in words)


def read_json(text: str) -> JSON:
    """Return the value of a text that is JSON, or a number such as .5; any other text as it is."""
    try:
        return decode(re.sub(r"^(-?)(\.\d+)$", r"\g<1>0\2", text).encode("utf-8", "replace"))
    except ProtocolError:
        return text


def convert(text: str, schema: Msg) -> JSON:
    """Return the value that the user means by `text`: the first that is valid for the schema.

    >>> convert("null", {"type": ["string", "null"]}), convert("-.5", {"enum": [1, -0.5]})
    ('null', -0.5)
    """
    value, parts = read_json(text), [part.strip() for part in text.split(",")]
    if not re.search("type|enum|const|Of|ref", " ".join(schema)):  # any value is valid
        return value
    # Patterns are taken out: where there is one, checker_of() takes any value.
    schema = json.loads(re.sub('"pattern(": "|Properties)', r'"\1', json.dumps(schema)))
    for found in (text, YES_NO.get(text.lower(), text), value, parts, [*map(read_json, parts)]):
        with suppress(MCPError):
            checker_of(schema)(found)
            return found
    return text if schema.get("type") == "string" else value


class Person:
    """The user at the terminal, for a Client: sees progress and log lines, answers questions.

    Args:
        answers: words KEY=VALUE, answers in advance by the names of fields
        yes: whether to agree in advance, with the defaults of forms
    """

    bar = False  # whether the last line shows progress
    mildest = "debug"  # log level to show
    asking: Any = None  # a Lock: one question at a time

    def __init__(self, answers: Iterable[str] = (), yes: bool = False):
        self.prepare(answers, yes)

    def prepare(self, answers: Iterable[str], yes: bool) -> None:
        """Set the answers in advance for the next line of a session."""
        self.answers, self.yes = pairs(answers), yes
        self.problem = ""  # with one of them
        self.asked: Msg = {}  # the fields of all forms, by name

    def say(self, text: object, end: str = "\n") -> None:
        """Write a line, without control sequences."""
        wipe, self.bar = "\r\x1b[K" * self.bar, False
        write_stderr(wipe + plain(text).rstrip("\n") + end)

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Show progress, on a terminal in one line that is overwritten."""
        text = one_line(f"{done:.15g}{f'/{total:.15g}' if total else ''} {message or ''}")
        if at_terminal(sys.stderr):
            # A character has as many bytes as columns, or more.
            shown = text.encode("utf-8", "replace")[: columns() - 1]
            self.say(shown.decode("utf-8", "ignore"), end="")
            self.bar = True
        else:
            self.say(text)

    def quote(self, text: str, mark: str = "|") -> None:
        """Write a server's text, its lines marked as not ours."""
        self.say(f"{mark} {text}".replace("\n", "\n| "))

    def log(self, level: str, data: JSON, source: str | None) -> None:
        if level not in LOG_LEVELS[: LOG_LEVELS.index(self.mildest)]:
            self.quote(text_for(data), f"[{level}] {source or 'server'}:")

    async def ask(self, question: str) -> str | None:
        """Return the line that the user types; None at the end of input, or without a user."""
        if not at_terminal(sys.stdin):
            return None
        self.asking = self.asking or asyncio.Lock()  # Python < 3.10: it belongs to a loop
        async with self.asking:
            self.say(question, end=" ")
            line = await typed_line()
        return line.strip() if line else None

    async def elicit(self, message: str, schema: Msg) -> Msg | None:
        """Let the user fill in a form, or agree if it has no fields; None declines."""
        self.quote(message, "The server asks:")
        content: Msg = {}
        fields = object_of(schema, "properties")
        asked = fields or {"agree": {"type": "boolean"}}
        self.asked.update(asked)
        for name, field in asked.items():
            required = not fields or name in schema.get("required", ()) and "default" not in field
            if not await self.fill_in(content, name, field, required):
                agree = ", or --yes to agree" * (field.get("type") == "boolean")
                self.say(f"declined; to answer in advance: --answer {name}=...{agree}")
                return None
        if fields:
            return content
        return {} if content["agree"] else None

    async def fill_in(self, content: Msg, name: str, field: Msg, required: bool) -> bool:
        """Put the user's value for a field into `content`; return False to decline."""
        boolean, ready = field.get("type") == "boolean", self.answers.get(name)
        if ready is None and self.yes and boolean and "default" not in field:
            ready = "yes"
        if ready is None and not required and (self.yes or self.answers):
            return True
        question = one_line(f"{field.get('title') or name}: {about(field)} "
                            f"{'y/n' if boolean else type_words(field)} "
                            f"[{field.get('default', '')}] ({END_KEYS} declines)")
        while True:
            text = await self.ask(question) if ready is None else ready
            if text is None:
                return False
            if not (text or required) and ready is None:
                return True  # Enter leaves it out
            try:
                value = convert(text, field)
                checker_of(field)(value)
                content[name] = value
                return True
            except MCPError as exc:
                if ready is not None:
                    self.problem = f"--answer {name}: {exc}"
                    return False
                self.say("y or n" if boolean else exc)

    async def elicit_url(self, message: str, url: str) -> Msg | None:
        """Let the user open a page; None declines. spec: client/elicitation#safe-url-handling"""
        place = re.split("[/?#]", url.partition("://")[2])[0]
        page = one_line(f"The server wants a page of {place.rpartition('@')[2]} opened: {url}")
        if re.search(r"(?i)[@\\]|[^\x00-\x7f]|xn--", place):
            page += "\nTake care: this address may be made to look like another one"
        self.say(page)
        return await self.elicit(message, {})

####
# 52. Verbs
#
# Problem. A user at a shell wants to see what a server offers, call it, log in to it, or serve a
#   file; a script wants the same as JSON, with an exit status.
# Rules.
#   1. A verb is a function: async fn(client, args) returns the result as it was sent, and what to
#      show of it; fn(args) is for a verb that needs no connection.
#   2. The server validates the arguments; only unknown names are refused here.
# Limits. `-o` saves the first of several binary pieces. A served file is imported here: what it
#   prints then goes to stdout.

Shown = tuple[JSON, Union[str, bytes]]
#: The lists of a server, by the verbs that show them, and the key of each in its result.
LISTS = {"tools": "tools", "resources": "resources", "templates": "resourceTemplates",
         "prompts": "prompts"}


async def listed(c: Client, kind: str) -> list[Msg]:
    try:
        return list(await getattr(c, f"list_{kind}")())
    except CapabilityMissing:
        pass
    except RemoteError as exc:  # some servers declare resources, but lack templates
        if exc.code != METHOD_NOT_FOUND:
            raise
    return []


async def do_info(c: Client, args: Any) -> Shown:
    info = c.server_info
    lines = [one_line(f"{info.get('name')} {info.get('version') or ''}, revision {c.revision}"),
             one_line(f"capabilities: {', '.join(c.server_capabilities)}")]
    lines += wrapped(c.instructions or "", 0)
    found = Msg(revision=c.revision, serverInfo=info, capabilities=c.server_capabilities,
                instructions=c.instructions)
    for kind, key in LISTS.items():
        try:
            found[key] = await listed(c, kind)
            if found[key]:
                lines += ["", kind.upper(), listing(found[key])]
        except MCPError as exc:
            lines += ["", f"{kind.upper()}: {one_line(exc)}"]
    return found, "\n".join(lines)


def by_name(items: Iterable[Msg]) -> dict[str, Msg]:
    return {it.get("uri") or it.get("uriTemplate") or it["name"]: it for it in items}


async def do_list(c: Client, args: Any) -> Shown:
    items = await listed(c, args.verb)
    if args.words:
        items = [pick(args.verb[:-1], word, by_name(items)) for word in args.words]
    return {LISTS[args.verb]: items}, listing(items, full=bool(args.words))


def arguments(args: Any, item: Msg) -> Msg:
    """Return the arguments for a tool or a prompt: of words KEY=VALUE, and of JSON objects."""
    schema, given = argument_schema(item), {}
    fields = object_of(schema, "properties")
    for word in args.words[1:]:
        value = read_json(word)
        if isinstance(value, dict):
            given.update(value)
            continue
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} is neither KEY=VALUE nor a JSON object; "
                             f"signature: {headline(item)}")
        if fields and not schema.get("additionalProperties"):
            pick("argument", key, fields)
        refs = {each: object_of(schema, each) for each in ("properties", "$defs", "definitions")}
        value = convert(text, {**refs, **object_of(fields, key)})
        if key in given:  # the server refuses a list where it wants one value
            value = [*as_list(given[key]), *as_list(value)]
        given[key] = value
    return given


def contents(blocks: Sequence[Msg], args: Any) -> str | bytes:
    """Return content as text; binary data as it is, for a file, or if alone for a pipe."""
    inner = [block.get("resource", block) for block in blocks]
    binary = [text for each in inner if (text := each.get("data", each.get("blob"))) is not None]
    if binary and (args.o or len(blocks) == 1 and not at_terminal(sys.stdout)):
        return bytes_of(binary[0])
    return "\n".join(map(text_of, blocks))


async def do_call(c: Client, args: Any) -> Shown:
    """Call a tool, or get a prompt. Some servers do not list all that they have."""
    kind, send = ("tools", c.call_tool) if args.verb == "call" else ("prompts", c.get_prompt)
    items, name = by_name(await listed(c, kind)), args.words[0]
    given = arguments(args, items.get(name) or {"name": name})
    try:
        result: Msg = await send(name, given)
    except RemoteError:
        pick(kind[:-1], name, items)
        raise
    if args.verb == "prompt":
        return result, "\n".join(
            f"{each['role']}: {text_of(each['content'])}" for each in result["messages"])
    blocks, out = result.get("content"), result.get("structuredContent")
    return result, contents(blocks or [], args) if blocks or out is None else text_for(out)


async def do_read(c: Client, args: Any) -> Shown:
    result = await c.read_resource(args.words[0])
    return result, contents(result["contents"], args)


async def do_login(c: Client, args: Any) -> Shown:
    # The connection is open: we logged in, if the server required that.
    return {"url": args.target}, f"{args.target} lets us in"


def do_logout(args: Any) -> None:
    try:
        was_in = asyncio.run(logout(str(args.target), ssl=args.ca))  # a command is not a URL
    except ValueError as exc:
        raise UsageError(f"cannot log out of {args.target}: {exc}") from exc
    print(f"{'logged out of' if was_in else 'not logged in to'} {args.target}")


def load_file(path: str) -> ModuleType:
    """Import a file; its `import mcp_lite` returns this module, not another copy."""
    import importlib.util

    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such file")
    name: Any = inspect.getmodulename(path)
    recipe: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(recipe)
    sys.modules.setdefault("mcp_lite", sys.modules[__name__])
    sys.modules.setdefault(name, module)  # dataclasses look for their module there
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    recipe.loader.exec_module(module)
    return module


def load_app(target: str) -> Any:
    """Return the Server of FILE.py[:APP]: the only one, or `app`."""
    stem, _, wanted = target.partition(".py:")
    path = stem.removesuffix(".py") + ".py"
    # Known by a method: another copy of this file has a Server class of its own.
    servers = {name: value for name, value in vars(load_file(path)).items()
               if hasattr(type(value), "asgi_with")}
    if not wanted and len({*map(id, servers.values())}) == 1:
        return next(iter(servers.values()))
    return pick(f"Server in {path} that is named", wanted or "app", servers)


TOKEN_VARIABLE = "MCP_LITE_TOKEN"  # a list of processes shows those of --token


def do_serve(args: Any) -> None:
    if isinstance(args.target, list):
        raise UsageError("serve takes FILE.py or FILE.py:APP, not a command after --")
    sys.argv[:] = [args.target]  # as if it had been started by itself
    if args.http is None:
        load_app(args.target).run()
        return
    host, _, port = args.http.rpartition(":")
    options = Msg(host=host.strip("[]") or "127.0.0.1", port=int(port), token=args.token)
    own: Msg = {}
    try:
        Server().http(**options)
    except ValueError as exc:
        raise UsageError(f"--http, --token or ${TOKEN_VARIABLE}: {exc}") from None
    os.dup2(os.open(os.devnull, 0), 0)  # so that an unguarded serve_stdio() ends
    run = Server.run
    try:  # an unguarded app.run("http") must not serve meanwhile, without our token
        Server.run = lambda *_, **given: own.update(given)  # type: ignore[method-assign]
        app = load_app(args.target)
    finally:
        Server.run = run  # type: ignore[method-assign]
    if not args.token:  # then an unguarded app.run("http", token=...) says who is let in
        guards = {name: own[name] for name in ("token", "verify", "auth") if own.get(name)}
        options.update(guards)
        if not guards:
            write_stderr("no token is required, whatever the file passes to run(); --token "
                         "requires one\n")
    app.run("http", **options)


#: By verb: its function, its words besides the target, and what it does.
VERBS: dict[str, tuple[Function, str, str]] = {
    "info": (do_info, "", "show the server, and all that it offers"),
    **{kind: (do_list, "[NAME ...]", f"list the {kind}, or show some in full") for kind in LISTS},
    "call": (do_call, "NAME [KEY=VALUE ...]", "call a tool; arguments may be JSON, too: '{...}'"),
    "read": (do_read, "URI", "read a resource"),
    "prompt": (do_call, "NAME [KEY=VALUE ...]", "show the messages of a prompt"),
    "login": (do_login, "", "log in to a URL, in a browser, and keep the login"),
    "logout": (do_logout, "", "forget the login to a URL"),
    "serve": (do_serve, "", "serve FILE.py[:APP], on stdin and stdout or over HTTP")
}

####
# 53. Options and main
#
# Problem. A user who mistypes a command line needs one sentence that says what to type. A script
#   needs to know how a call ended, and that no process is left.
# Rules.
#   1. The target is the last word, or the command after `--`.
#   2. The status is 0 for success, also if a question was declined; 1 if the tool failed, or a
#      server cannot start; 2 for a wrong command line; 3 for an error of the connection, the
#      protocol or the server; 130 after Ctrl-C.
#   3. Any other verb is a program: mcp_VERB.py, with `main(argv)`, beside this file or in
#      examples/programs.
# Limits. On Windows, a reader that ends before our output is an error.

__all__ += ["VERBS", "parse_line", "client_of", "perform", "complain", "main"]

TARGET = r"(?i)https?://.*|.+\.py(:\w+)?"
TARGETS = "TARGET is http(s)://..., FILE.py or FILE.py:APP; or end the line with -- COMMAND ..."
PROGRAMS = ("complete", "doctor", "gateway", "install", "reload", "shell")
# Option, its value, and after two blanks what it does.
_OPTIONS = f"""
--json  print the result, or the error, as JSON
-o FILE  write the result to a file, binary data as it is
--answer KEY=VALUE  answer a question of the server in advance
--yes  agree to the server's questions, with the defaults of its forms
--timeout SECONDS  limit for a response, or for the next progress
--max-timeout SECONDS  limit for a response, whatever the progress
--header NAME:VALUE  send a header to a URL
--token TOKEN  bearer token to send or to require; ${TOKEN_VARIABLE} is safer
--ca FILE  trust the certificates in a PEM file
--client-id ID  log in as this client, where clients cannot register
--no-browser  print the address for a login; do not open a browser
--env KEY=VALUE  set a variable; a COMMAND after -- inherits PATH and a few others only
--cwd FOLDER  start a command in this folder
--root FOLDER  name a folder to the server
--revision DATE  speak this revision only: {NEWEST}, or an older one
--log LEVEL  show the server's log from this level up: debug, info, ...
--trace[=full]  show each message in a line, or in full
--http [HOST:]PORT  serve over HTTP, not on stdin and stdout
"""
OPTIONS: dict[str, list[str]] = {
    name: words for name, *words in re.findall(r"(?m)^(-[\w-]+) ?(\S*)  (.*)", _OPTIONS)
}
REPEATED = ("--answer", "--header", "--env", "--root")
#: The options of the verbs without a client; those with one take all but --http.
WITHOUT_CLIENT = {"serve": ("--http", "--token", "--trace"), "logout": ("--ca", "--trace")}
#: What the text of a value must match, by the value's name. Any other must not be empty.
VALUES = {
    "": "", "[=full]": "(full)?", "SECONDS": r"\d+\.?\d*|\.\d+", "[HOST:]PORT": r"(.*:)?\d+",
    "KEY=VALUE": "[^=]+=.*", "NAME:VALUE": "[^:]+:.*"
}


def parse_line(words: Sequence[str], target: bool = True) -> Any:
    """Return the verb, words, target and options of a command line, as attributes.

    With target=False the line has none: it is about an open connection. --trace takes effect here.
    Raises UsageError.
    """
    verb, *rest = words
    pick("verb", verb, VERBS)
    known = WITHOUT_CLIENT.get(verb, without(OPTIONS, "--http"))
    args = SimpleNamespace(verb=verb, words=[], target="")
    options: Msg = {option: [] if option in REPEATED else None for option in OPTIONS}
    options["--token"] = os.environ.get(TOKEN_VARIABLE)
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        if word == "--":
            args.target, rest = rest, []
        elif not re.match("--?[a-z]", word):
            args.words.append(word)
        else:
            if option not in known:
                takes = " takes KEY=VALUE, and" * ("KEY" in VERBS[verb][1])
                raise UsageError(f"{verb}{takes} has {no_such('option', option, known)}")
            form, _ = OPTIONS[option]
            pattern = VALUES.get(form, ".+")
            if rest and not equals and not re.fullmatch(pattern, ""):
                value = rest.pop(0)
            if not re.fullmatch(pattern, value, re.ASCII | re.DOTALL):
                raise UsageError(f"{option}: expected {form or 'no value'}")
            options[option] = [*options[option], value] if option in REPEATED else value or "1"
    vars(args).update({name.strip("-").replace("-", "_"): options[name] for name in options})
    if target and not args.target and args.words and re.fullmatch(TARGET, args.words[-1]):
        args.target = args.words.pop()
    if wrong := fault_of(args, target):
        usage = one_line(f"{verb} {VERBS[verb][1]} [options] {f'TARGET. {TARGETS}' * target}")
        raise UsageError(f"{wrong}; usage: mcp_lite.py {usage}")
    start_trace(args.trace)
    return args


def fault_of(args: Any, target: bool) -> str:
    """Return what is wrong with the words and the target of a line, or ""."""
    form = VERBS[args.verb][1]
    required = form.partition("[")[0].split()
    surplus = len(args.words) - len(required)  # below 0, it counts what is missing from the end
    if target and not args.target:
        return f"{args.words[-1]!r} is not a target" if surplus > 0 else "TARGET is missing"
    if surplus < 0:
        return f"{required[surplus]} is missing"
    if surplus and "..." not in form:
        return f"{args.words[-1]!r} is one word too many"
    return ""


def program_of(verb: str) -> str:
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, f"{here}/examples/programs"):
        path = f"{folder}/mcp_{verb}.py"
        if os.path.isfile(path):
            return path
    pick("verb", verb, {**VERBS, **dict.fromkeys(PROGRAMS)})
    raise UsageError(f"{verb} is a separate program: copy examples/programs/mcp_{verb}.py of the "
                     f"repository to {here}")


def help_text() -> str:
    rows: list[Any] = [*VERBS.items(), ("", ("", "")), *OPTIONS.items()]
    lines = [f"  {f'{name} {form}'.replace(' [=', '[='):<28} {about}".rstrip()
             for name, (*_, form, about) in rows]
    return "\n".join([
        f"usage: {PYTHON} mcp_lite.py VERB ... [options] TARGET", "", *lines, "", TARGETS,
        f"More verbs, each a file mcp_VERB.py to copy beside this one: {', '.join(PROGRAMS)}."
    ])


def client_of(args: Any, person: Person, **options: Any) -> Client:
    """Return a Client, not connected yet, for what parse_line() returned.

    `options` are more options of the Client. Raises UsageError for a target that cannot be used.
    """
    try:
        person.mildest = args.log or "warning"
        check_level(person.mildest)
        if is_url(args.target):
            headers = {name: text.strip() for name, text in pairs(args.header, ":").items()}
            options.update(headers=headers, auth=auth_of(args, headers), ssl=args.ca)
        else:
            # A file sees what it sees as a script, without what is for this program.
            own = {} if isinstance(args.target, list) else without(
                os.environ, TOKEN_VARIABLE, "MCP_LITE_TRACE")
            options.update(env={**own, **pairs(args.env)}, cwd=args.cwd, stderr=person.quote)
        return Client(
            args.target, revision=args.revision, roots=args.root or None,
            timeout=float(args.timeout or REQUEST_SECONDS),
            max_timeout=float(args.max_timeout or LONGEST_SECONDS),
            elicit=person.elicit, elicit_url=person.elicit_url, log=person.log,
            progress=person.progress, **options
        )
    except (TypeError, ValueError) as exc:
        raise UsageError(str(exc)) from exc


def auth_of(args: Any, headers: Msg) -> Any:
    """Return the Client's auth=: a token, or OAuth where it is safe."""
    url = parse_url(args.target)
    if "authorization" in map(str.lower, headers):
        return None
    if not is_safe(url):
        if args.token:
            raise UsageError(f"{url} is not https: the token of --token or ${TOKEN_VARIABLE} is not"
                             " sent; --header 'Authorization: Bearer ...' sends it, at your risk")
        return None
    if args.token:
        return args.token
    show: Any = paste_redirect if args.no_browser else open_browser
    interactive = args.verb == "login" or at_terminal(sys.stdin, sys.stderr)
    return OAuth(client_id=args.client_id, interactive=interactive, open_browser=show)


async def perform(client: Client, args: Any, person: Person) -> int:
    """Run a line over an open connection, and show the result; return the exit status.

    `args` is what parse_line() returned; `person` answers what the server asks. Raises MCPError.
    """
    try:
        result, shown = await VERBS[args.verb][0](client, args)
    except MCPError:  # of which some are ValueErrors
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as exc:
        raise ProtocolError(f"the server's response is malformed: {exc!r}") from exc
    finally:
        person.say("", end="")  # clears a line of progress
    if person.problem:
        raise UsageError(person.problem)
    failed = result.get("isError") is True
    shown = json.dumps(result, indent=2) if args.json else shown
    if failed and not args.json:
        person.say(f"error: {shown!s}")
    else:
        write_answer(shown, args.o)
    for name in person.answers if person.asked else ():  # a mistyped one is not used
        pick("question", name, person.asked)
    return int(failed)


def write_answer(shown: str | bytes, path: str | None) -> None:
    if isinstance(shown, str):
        text = plain(shown) if not path and at_terminal(sys.stdout) else shown
        text += "\n" * (text[-1:] != "\n")
        shown = text.encode("utf-8", "backslashreplace")  # for any encoding of stdout
    if path:
        with open(path, "wb") as file:
            file.write(shown)
    elif sys.stdout is None:
        raise ConnectionClosed("standard output is closed")
    else:
        sys.stdout.buffer.write(shown)
        sys.stdout.flush()


async def talk(args: Any) -> int:
    person = Person(args.answer, args.yes)
    async with client_of(args, person) as client:
        if args.log:
            await client.set_log_level(args.log)
        return await perform(client, args, person)


async def interruptible(work: Awaitable[int]) -> int:
    """Return the status of `work`, which a signal cancels."""
    task = asyncio.ensure_future(work)
    number = await until_signalled(asyncio.wait([task]), task.cancel, 3 * GRACE_SECONDS)
    return 128 + number if task.cancelled() else task.result()


def complain(exc: Exception, as_json: bool = False) -> int:
    """Write what went wrong on stderr, in one line or as JSON; return the exit status."""
    status = 2 if isinstance(exc, UsageError) else 3
    # The last words of a child were shown already.
    problem, _, last_words = one_line(exc).partition("; its last words: ")
    text = f"error: {problem[:1000]}"
    text = text.replace(" timeout=N", " --timeout N").replace(
        "max_timeout=N", "--max-timeout N").replace(" ssl=FILE", " --ca FILE")
    if "No module named 'mcp_lite'" in last_words:
        text += "; put mcp_lite.py beside it, or write FILE.py:APP"
    if as_json:
        text = json.dumps({"error": Msg(
            message=one_line(exc), code=getattr(exc, "code", None), status=status)})
    write_stderr(f"{text}\n")
    return status


def run_words(words: list[str]) -> int:
    verb = words[0] if words else ""
    if verb in VERBS and "--help" not in words:
        args, work = parse_line(words), VERBS[verb][0]
        if inspect.iscoroutinefunction(work):
            return asyncio.run(interruptible(talk(args)))
        work(args)
        return 0
    if verb == "--version":
        with open(__file__, "rb") as file:  # whose digest tells it from a changed file
            print(f"mcp_lite {__version__} sha256 {digest(file.read()).hex()[:12]}")
        return 0
    if verb in (*VERBS, "", "help", "-h", "--help"):
        print(help_text())
        return 0 if words else 2
    return int(load_file(program_of(verb)).main(words[1:]) or 0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, `argv` or that of the process; return the exit status.

    Raises SystemExit where a server cannot start.
    """
    former, words = _trace, [*(sys.argv[1:] if argv is None else argv)]
    try:
        return run_words(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has exited, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (MCPError, OSError) as exc:  # the disk is full, say
        if not isinstance(exc, MCPError) and words[0] == "serve":  # show where
            raise
        return complain(exc, "--json" in words)
    finally:
        set_trace(former)


@wraps(StdioTransport)
def reach_app(target: str, **options: Any) -> StdioTransport:
    """Start this file as a server of FILE.py:APP."""
    transport = StdioTransport([sys.executable, os.path.abspath(__file__), "serve", target],
                               **options)
    transport.name = f"the server {os.path.basename(target)!r}"
    return transport


CONNECTORS.insert(0, (
    lambda target: isinstance(target, str) and re.fullmatch(r".*\.py:\w+", target), reach_app
))

if __name__ == "__main__":
    sys.exit(main())
