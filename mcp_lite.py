"""mcp_lite: all of the Model Context Protocol in one file.

A client and a server, for every revision of the protocol, over memory, stdio and HTTP, with
nothing but Python's standard library and asyncio. Copy the file beside a script, and that script
is a server, a client, or both. The file is meant to be read as well: from top to bottom, it is the
textbook of the protocol.

It is not a framework: no HTTP/2, no templates, no process manager, no schema language but JSON
Schema 2020-12 (and draft-07). It speaks HTTP/1.1 as far as MCP needs it, and serves under any ASGI
server where one listener is not enough.


A SERVER                                      A CLIENT

    from mcp_lite import Server                   import asyncio
                                                  from mcp_lite import Client
    app = Server("demo")
                                                  async def main():
    @app.tool                                         async with Client("server.py") as c:
    def add(a: int, b: int = 0) -> int:                   print(await c.call("add", {"a": 1}))
        '''Add two numbers.'''
        return a + b                              asyncio.run(main())

    app.run()      # or run("http", port=8000)    # or a command, a URL, a Server object


THE NOUNS OF MCP

    client      the program that has the model: an editor, a chat, an agent
    server      the program that has something to offer to it; often a child process of the client
    tool        a function that the model may call: a name, a JSON Schema of its arguments, a result
    resource    something to read, under a URI: a file, a row, a page
    template    a URI with holes, "note://{name}", for a whole family of resources
    prompt      a text with parameters that a person picks, as from a menu
    completion  values that an argument of a prompt or a template may take, while it is typed
    content     pieces of a result: text, image, audio, a resource, a link to one
    sampling    the server asks the client's model to write something
    elicitation the server asks the person at the client: a form to fill in, or a URL to open
    roots       the folders in which the client works; the server may ask for them
    progress    how far a running request is; cancellation ends it early
    news        the server announces what no request has caused: a list has changed, or a resource
    task        a call that goes on after its first answer; the client comes back for the result
    principal   the person or program that was authenticated, where somebody was
    capability  what one end declares that the other may use
    session     one conversation from its handshake to its end, in the legacy era
    revision    the protocol as it stood on a date; there are five
    era         legacy: a handshake opens a session, and both ends send requests. Modern: only the
                client sends requests, and each one says everything that it takes to answer it
    round       in the modern era, a question ends a call, and the client makes the same call again
                with the answer: each time is a round
    transport   the channel of a conversation: memory, a pipe (stdio), or HTTP


ONE CALL ON THE WIRE   --> is the client's line, <-- the server's. `...` leaves something out.

    Legacy: a handshake first, and then the call.

    --> {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": ...,
         "capabilities": {"elicitation": {}}, "clientInfo": {"name": "me", "version": "1"}}}
    <-- {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": ...,
         "capabilities": {"tools": {}}, "serverInfo": {"name": "demo", "version": "1.0"}}}
    --> {"jsonrpc": "2.0", "method": "notifications/initialized"}
    --> {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add",
         "arguments": {"a": 1, "b": 2}}}
    <-- {"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "3"}],
         "structuredContent": {"result": 3}}}

    Modern: the same call, and nothing has to come before it. `_meta` says in every request what
    the handshake says once. (A client may ask first what there is: `server/discover`.)

    --> {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add",
         "arguments": {"a": 1, "b": 2}, "_meta": {
             "io.modelcontextprotocol/protocolVersion": ...,
             "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}}
    <-- {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete",
         "content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}, ...}}

    Either era: the client gives a call up. The server stops its work, and sends no answer: nobody
    waits for it. (Over HTTP, a modern client closes the connection of the request instead.)

    --> {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}


THE MAP      A section uses only what stands above it. Whoever stops before the name of a Part, as a
             reader or with a pair of scissors, has a complete product.

     1  Names
    Part I    Messages
     2  Errors
     3  JSON-RPC
     4  Revisions and methods
    Part II   One conversation
     5  Requests in flight
     6  Lifecycle
     7  Tasks and threads
     8  Channels
     9  Requests of ours
    10  Peer
    Part III  A server
    11  JSON Schema
    12  Schema documents
    13  Python annotations
    14  Python signatures
    15  URI templates
    16  Content and forms
    17  Rounds
    18  Context
    19  Registrations
    20  Lifespans
    21  Records
    22  Server
    23  Handlers
    24  Tasks, the extension
    Part IV   stdio
    25  Lines and pipes
    26  Standard streams
    Part V    A client
    27  Questions and announcements
    28  One request
    29  Client
    30  Child processes
    Part VI   HTTP
    31  HTTP/1.1, heads and values
    32  HTTP/1.1, messages
    33  Server-sent events
    34  HTTP rules
    35  Mirrored headers
    36  Connections
    37  Listeners
    38  Streams and sessions
    39  Entrances
    40  The endpoint
    41  Engines
    42  HTTP client
    43  Streamable HTTP, the client's end
    Part VII  Authorization
    44  OAuth rules
    45  Keys and tokens
    46  Keeping, listening, fetching
    47  Logging in
    48  Guarding a server
    Part VIII Forwarding
    49  Cutting to measure
    50  The far end
    51  Forwarding
    Part IX   The command line
    53  Showing
    54  The trace
    55  The person
    56  Verbs
    57  Applications
    58  Options
    59  Rules for servers
    60  Checks
    61  A proxy
    62  Main


THE LIFE OF ONE CALL, as a server on stdio sees it; the number is the section

    [25] A StreamReader brings bytes from a pipe, LineDecoder cuts them into lines.
    [10] Peer.run() hands each line to Peer.receive(), with `send`, the way back.
    [ 3] decode() checks the bounds, then parses; classify() says that it is a request.
    [10] Peer.accept() makes it an Exchange (5), which can be cancelled from now on; a task begins.
    [22] Conversation.serve() asks admit() (6) whether this may be called, and checks parameters.
    [22] A Context (18) is made: it holds the facts of the session, or of the request itself.
    [23] HANDLERS leads, through the author's middlewares, to call_tool().
    [19] Tool.bind() validates (12); Signature.call_args() (14) turns JSON into Python values.
    [19] Entry.call() runs the function, on the loop or in a thread (7).
    [18] What it reports meanwhile goes out by `send`: progress, logs, questions.
    [19] Tool.result() makes content and structured output; strip_unknown() (4) takes out what
         the client's revision does not know.
    [10] Peer.reply() sends the answer, unless the request was cancelled.


NOTATION

    msg         one JSON-RPC message as a dict, exactly as on the wire
    params, result, meta    the dicts of those names in a message; their keys stay camelCase
    req_id      a request id, int or str, never changed
    rev         a Revision: one row of the table of history
    send        where everything goes that a message causes before its answer
    peer        the other end; ours and theirs, outgoing and incoming are seen from here
    legacy      revisions that begin with a handshake; modern: every request says it all
    head, body, data, line are bytes; text is str

    # spec: basic/patterns/progress#progress-flow       a page of the newest specification
    # spec 2025-11-25: basic/lifecycle#shutdown         a page of an older one
    # RFC 9112 §6.3                                     stands where the rule is obeyed


THE FIRST HOUR   Read Parts I and II from the start. They are 2,800 lines; section 7 can wait.
Section 2 says who is to blame for an error, and 3 what a message is. Section 4 is the whole history
of the protocol in a few tables: read its METHODS row by row. Sections 5 and 6 are the two small
state machines, of a request and of a session. Sections 8 to 10 put them on a channel: after them,
two programs talk. Then read section 17 for the one idea that is not obvious: how a call that asks
is run again.

To add a method: one row in 4, one function in 22. A limit stands at the head of the section that
enforces it. `python3 mcp_lite.py --trace ...` shows the wire while you read.
"""

###############################################################################
# 1. Names
###############################################################################
# Problem.  A reader wants every import, every public name and every alias in one place.
# Rules.    1. Imports that only some users need (ssl, hashlib, argparse, subprocess ...) are made
#              where they are needed, so that `import mcp_lite` costs little more than asyncio.
#           2. `__all__` is the contract, and grows with the sections. Other names are there to be
#              read, not to be relied on.
#           3. Every limit and deadline of the file is a constant with its unit and the reason for
#              its size. It stands at the head of the section that enforces it, and is checked
#              before memory is spent.
# Plan.     Imports; version; the log; aliases; the reserved keys of `_meta`.
# Not here. Protocol revisions and methods: they are data, and stand in section 4.

from __future__ import annotations

import asyncio
import base64
import contextlib
import contextvars
import errno
import functools
import inspect
import itertools
import json
import logging
import os
import re
import signal
import stat
import sys
import threading
import time
import types
import typing
from collections import OrderedDict, deque
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    NamedTuple,
    NoReturn,
    Optional,
    Sequence,
    Union,
)

if typing.TYPE_CHECKING:  # for checkers only: Python has it since 3.11
    from typing_extensions import Unpack

__version__ = "0.2.0"

#: The public names; each section adds its own.
__all__: list[str] = []

logger = logging.getLogger("mcp_lite")


class LastResort(logging.Handler):
    """Shows our warnings and errors on stderr, unless the program has set up logging.

    Python has such a handler, too, but its lines do not say where they come from.
    """

    def __init__(self, level: int = logging.WARNING, form: str = "%(name)s: %(message)s") -> None:
        super().__init__(level)
        self.setFormatter(logging.Formatter(form))

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, if nobody else does."""
        heard = [*logging.getLogger(record.name).handlers, *logger.handlers, *logging.root.handlers]
        if sys.stderr is not None and all(isinstance(each, LastResort) for each in heard):
            with contextlib.suppress(OSError, ValueError):  # stderr is closed
                print(self.format(record), file=sys.stderr, flush=True)


logger.addHandler(LastResort())

#: Any value that JSON can say: None, bool, int, float, str, list, dict.
JSON = Any
#: One JSON-RPC message, exactly as on the wire.
Msg = dict[str, Any]
#: A request id: int or str, never bool, float or None.
ReqId = Union[int, str]
#: Where everything goes that a message causes before its answer. It awaits the number of bytes that
#: were taken, 0 if nobody is there to take them, or None where nobody counts.
Send = Callable[[Msg], Awaitable[Optional[int]]]


PREFIX = "io.modelcontextprotocol/"  # of the keys in `_meta` that the specification owns
PROTOCOL_VERSION = PREFIX + "protocolVersion"
CLIENT_INFO = PREFIX + "clientInfo"
CLIENT_CAPABILITIES = PREFIX + "clientCapabilities"
LOG_LEVEL = PREFIX + "logLevel"
SERVER_INFO = PREFIX + "serverInfo"
TASKS = PREFIX + "tasks"  # the extension
SUBSCRIPTION_ID = PREFIX + "subscriptionId"

# =============================================================================
# Part I. Messages
# =============================================================================

###############################################################################
# 2. Errors
###############################################################################
# Pure. Uses section 1.
#
# Problem.  When a call fails, the first question is whose fault it was: our caller's, our own,
#           the peer's program, the peer's protocol, or the line between us.
# Rules.    1. Everything raised on purpose is an MCPError; misuse of the Python API is a TypeError,
#              ValueError or RuntimeError, as everywhere in Python.
#           2. RPCError is ours to send; RemoteError is what a peer sent us. They are siblings, so
#              that an error from one server never leaves our own server as if it were ours.
#           3. A class exists only where someone will `except` it; codes are numbers.
#           4. The peer never sees a traceback, nor the text of an exception not raised for it.
# Plan.     The classes, the codes, and wire_error(): the one function from exception to wire error.
# Not here. HTTP status codes of errors: section 34 has the table.

__all__ += [
    "MCPError", "RPCError", "RemoteError", "ToolError", "SchemaError", "ProtocolError",
    "LimitExceeded", "ConnectionClosed", "RequestTimeout", "CapabilityMissing", "AuthError",
]  # fmt: skip

PARSE_ERROR = -32700  # not JSON
INVALID_REQUEST = -32600  # JSON, but not a message that is allowed here
METHOD_NOT_FOUND = -32601  # no such method, or the capability for it was not declared
INVALID_PARAMS = -32602  # the method exists, its parameters are wrong
INTERNAL_ERROR = -32603  # the handler failed
RESOURCE_NOT_FOUND = -32002  # legacy only; modern revisions say INVALID_PARAMS
# spec: basic/index#error-codes -- -32020 to -32099 belong to the specification
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
# Ours, outside every reserved range, and named like their cousins in HTTP.
FORBIDDEN = 403  # the token of whoever asks does not allow this
TOO_FAST = 429  # the session's rate limit is used up
TOO_BUSY = 503  # too many requests of this peer are being served


class MCPError(Exception):
    """The root of every error that this library raises on purpose."""


class WireError(MCPError):
    """An error object of JSON-RPC: {"code": code, "message": message, "data": data}."""

    def __init__(self, code: int, message: str, data: JSON = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class RPCError(WireError):
    """An error of ours for the peer: raise it in a handler and it is sent as it stands.

    >>> RPCError(-32602, "b: expected integer, got string").code
    -32602
    """


class RemoteError(WireError):
    """The peer answered our request with this error."""


class ToolError(MCPError):
    """A tool failed: its result has `isError`.

    Raised by a tool, its text goes to the model as it is. Raised by Client.call(), `result` is the
    whole result as the server sent it.
    """

    def __init__(self, message: str, result: Msg | None = None) -> None:
        super().__init__(message)
        self.result = result


class SchemaError(MCPError):
    """A JSON value does not satisfy its schema, or a schema is not one that we can use.

    `path` leads to the offending value: "items[2].price", or "" for the value itself.

    >>> str(SchemaError("b", "expected integer, got string"))
    'b: expected integer, got string'
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


class ProtocolError(MCPError):
    """Bytes or messages from the peer broke the rules.

    `code` and `http_status` say how to answer, where an answer is possible.
    """

    #: the first bytes of a message that was too long to be read
    start = b""
    #: further headers of the HTTP answer
    headers: Mapping[str, str] = types.MappingProxyType({})

    def __init__(
        self, message: str, code: int = INVALID_REQUEST, http_status: int = 400, data: JSON = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.http_status = http_status
        self.data = data


class LimitExceeded(ProtocolError):
    """A message, or something in it, is too big, too deep, or one too many."""


class ConnectionClosed(MCPError):
    """The connection ended; the message says why, with the child's last words if it was one."""


class SessionExpired(ConnectionClosed):
    """The server has forgotten our HTTP session; Client opens another one by itself, once."""


class RequestTimeout(MCPError):
    """We gave up waiting for an answer, and told the peer so."""


class CapabilityMissing(MCPError):
    """The peer did not declare the capability that this needs, so it was not even asked.

    `capability` is a dotted path such as "sampling.tools". A handler may catch it and do without.
    `why` replaces the usual text, where there is another cause.
    """

    def __init__(self, whose: str, capability: str, why: str = "") -> None:
        super().__init__(why or f"the {whose} did not declare the capability {capability!r}")
        self.capability = capability


class AuthError(MCPError):
    """The server wants authorization that we do not have."""


#: The errors whose text is meant for the peer. Every other exception is told to the log only.
FOR_THE_PEER = (RPCError, ProtocolError, SchemaError, CapabilityMissing, ToolError)


def wire_error(exc: BaseException) -> Msg:
    """Return the error object that tells the peer about `exc`: {"code", "message", "data"?}.

    >>> wire_error(RPCError(-32602, "b is missing"))
    {'code': -32602, 'message': 'b is missing'}
    >>> wire_error(CapabilityMissing("client", "sampling"))["data"]
    {'requiredCapabilities': {'sampling': {}}}
    >>> wire_error(KeyError("/etc/passwd"))
    {'code': -32603, 'message': 'Internal error'}
    """
    if isinstance(exc, (RPCError, ProtocolError)):
        problem: Msg = {"code": exc.code, "message": exc.message}
        if exc.data is not None:
            problem["data"] = exc.data
        return problem
    if isinstance(exc, SchemaError):
        return {"code": INVALID_PARAMS, "message": str(exc)}
    if isinstance(exc, ToolError):  # of a resource or a prompt; a tool's becomes a result
        return {"code": INTERNAL_ERROR, "message": str(exc)}
    if isinstance(exc, CapabilityMissing):
        # spec: basic/index#_meta -- "data.requiredCapabilities lists the missing capabilities"
        needed: Msg = {}
        for key in reversed(exc.capability.split(".")):
            needed = {key: needed}
        data = {"requiredCapabilities": needed}
        return {"code": MISSING_CAPABILITY, "message": str(exc), "data": data}
    return {"code": INTERNAL_ERROR, "message": "Internal error"}

###############################################################################
# 3. JSON-RPC
###############################################################################
# Pure. Uses sections 1 and 2.
#
# Problem.  Two programs exchange JSON objects. Some ask, some answer, some only tell; any of them
#           may be malformed, enormous or hostile.
# Rules.    1. A message is the JSON object itself, as a dict. Every field survives, known or not.
#           2. classify() alone decides what a message is; after it nobody asks `"id" in msg`.
#           3. An id is an int or a str, echoed with its type; never bool, float or null.
#           4. Decoding is strict: UTF-8 without BOM, no NaN, no duplicate keys, no lone surrogates,
#              bounded size, depth, element count and digits, all checked before the parser runs.
#           5. Encoding never emits a newline, NaN or invalid UTF-8, and leaves absent keys out.
# Plan.     Four constructors, classify(), decode(), encode(); then JSON values and their types.
# Not here. Which methods exist and when: section 4. Who awaits an answer: sections 5 and 9.

MAX_MESSAGE_BYTES = 16 * 1024 * 1024  # one JSON-RPC message; a 10 MB file in base64 fits
MAX_DEPTH = 128  # nesting of arrays and objects; human-made JSON stays below 20
MAX_ELEMENTS = 250_000  # members of arrays and objects in one message; about 50 MB when parsed
MAX_INT_DIGITS = 4300  # CPython's own default since 3.11; int() of more is quadratic

REQUEST, NOTIFICATION, RESULT, ERROR = "request", "notification", "result", "error"


def request(req_id: ReqId, method: str, params: Msg | None = None) -> Msg:
    """Build a request.

    >>> request(1, "ping")
    {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}
    """
    msg: Msg = {"jsonrpc": "2.0", "id": req_id, "method": method}
    if params is not None:
        msg["params"] = params
    return msg


def notification(method: str, params: Msg | None = None) -> Msg:
    """Build a notification.

    >>> notification("notifications/initialized")
    {'jsonrpc': '2.0', 'method': 'notifications/initialized'}
    """
    msg: Msg = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        msg["params"] = params
    return msg


def result(req_id: ReqId, value: Msg) -> Msg:
    """Build the answer to a request that succeeded.

    >>> result("a", {})
    {'jsonrpc': '2.0', 'id': 'a', 'result': {}}
    """
    return {"jsonrpc": "2.0", "id": req_id, "result": value}


def error(req_id: ReqId | None, problem: Msg) -> Msg:
    """Build the answer to a request that failed; `problem` is what wire_error() returns.

    `req_id` is None if the message was so broken that its id could not be read.

    >>> error(1, {"code": -32601, "message": "no such method"})["error"]["code"]
    -32601
    """
    if req_id is None:
        return {"jsonrpc": "2.0", "error": problem}
    return {"jsonrpc": "2.0", "id": req_id, "error": problem}


def is_id(value: JSON) -> bool:
    """Return whether `value` may be a request id (or a progress token).

    >>> [is_id(value) for value in (7, "7", 0, "", True, 7.0, None)]
    [True, True, True, True, False, False, False]
    """
    return type(value) is int or type(value) is str  # a bool is an int to isinstance()


def classify(msg: JSON) -> str:
    """Return which of REQUEST, NOTIFICATION, RESULT, ERROR a decoded message is.

    Afterwards `method` is a str, `params` a dict if present, `id` an id, `result` a dict, and
    `error` has an int `code` and a str `message`. Raises ProtocolError otherwise.

    >>> classify({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    'request'
    """
    if type(msg) is not dict:
        raise ProtocolError("a message must be a JSON object")
    if msg.get("jsonrpc") != "2.0":
        raise ProtocolError('a message must have "jsonrpc": "2.0"')
    if "method" in msg:
        return _classify_call(msg)
    if not is_id(msg.get("id")):
        # spec: basic/index#error-responses -- an error may lack the id it could not read
        if "error" not in msg or msg.get("id") is not None:
            raise ProtocolError("a message needs a method, or an id with a result or an error")
    if ("result" in msg) == ("error" in msg):
        raise ProtocolError("a response must have either a result or an error")
    if "result" in msg:
        if type(msg["result"]) is not dict:
            raise ProtocolError("a result must be an object")
        return RESULT
    problem = msg["error"]
    if type(problem) is not dict or type(problem.get("code")) is not int:
        raise ProtocolError("an error must be an object with an integer code")
    if type(problem.get("message")) is not str:
        raise ProtocolError("an error must have a message")
    return ERROR


def _classify_call(msg: Msg) -> str:
    if type(msg["method"]) is not str:
        raise ProtocolError("method must be a string")
    if "params" in msg and type(msg["params"]) is not dict:
        raise ProtocolError("params must be an object", code=INVALID_PARAMS)
    if "result" in msg or "error" in msg:
        raise ProtocolError("a message cannot be both a request and a response")
    if "id" not in msg:
        return NOTIFICATION
    # spec: basic/index#requests -- "Requests MUST include a string or integer ID", never null
    if not is_id(msg["id"]):
        raise ProtocolError("id must be a string or an integer")
    return REQUEST


def readable_id(msg: JSON) -> ReqId | None:
    """Return the id of a message that classify() refused, if one can be made out.

    >>> readable_id({"id": 3, "method": 5}), readable_id([]), readable_id({"id": None})
    (3, None, None)
    """
    if type(msg) is dict and "method" in msg and is_id(msg.get("id")):
        return msg["id"]  # type: ignore[no-any-return]
    return None


def encode(msg: Msg | list[Msg]) -> bytes:
    """Return a message, or a batch, as one line of UTF-8 without its newline.

    Raises TypeError or ValueError for values that JSON cannot say, and LimitExceeded if the line
    would be longer than what we would read ourselves.
    spec: basic/transports/stdio#sending-messages

    >>> encode({"text": "a\\nb é"})
    b'{"text":"a\\\\nb \\xc3\\xa9"}'
    """
    # A lone surrogate has no UTF-8 form; it becomes "?" rather than a broken message.
    data = _to_json(msg).encode("utf-8", "replace")
    if len(data) > MAX_MESSAGE_BYTES:
        size = f"{len(data)} bytes long; a message may have {MAX_MESSAGE_BYTES}"
        raise LimitExceeded(f"it is {size}", code=INTERNAL_ERROR)
    return data


def _one_encoder() -> Callable[[JSON], str]:
    """Return a function from value to JSON. The standard one builds a C encoder for each call."""
    whole = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    make = json.encoder.c_make_encoder  # type: ignore[attr-defined]
    if make is None:  # no C accelerator, as on PyPy
        return whole.encode
    quote = json.encoder.encode_basestring
    once = make(None, whole.default, quote, None, ":", ",", False, False, False)

    def to_text(value: JSON) -> str:
        try:
            return "".join(once(value, 0))
        except RecursionError:
            raise ValueError("it contains itself, or is nested too deep for JSON") from None

    return to_text


_to_json = _one_encoder()


def decode(data: bytes) -> JSON:
    """Return the JSON value in `data`: an object, or a list for a batch.

    Raises LimitExceeded or ProtocolError with code -32700; nothing else.

    >>> decode(b'{"id": 1}')
    {'id': 1}
    >>> decode(b'{"id": 1, "id": 2}')
    Traceback (most recent call last):
        ...
    mcp_lite.ProtocolError: not JSON: the key 'id' occurs twice in one object
    """
    _check_bounds(data)
    try:
        text = data.decode("utf-8").strip(" \t\r\n")
        value, end = _scan(text, 0)
        if end < len(text):
            raise ValueError(f"something follows the value, at {end}")
        # Escapes such as "\ud800" alone are JSON by the grammar, and text by no standard.
        if b"\\" in data and _SURROGATE_ESCAPE.search(data):
            _to_json(value).encode("utf-8")
    except StopIteration:
        raise ProtocolError("not JSON: no value", code=PARSE_ERROR) from None
    except (ValueError, RecursionError) as exc:
        # RecursionError cannot happen below MAX_DEPTH; a caller deep in its own stack may see it.
        raise ProtocolError(f"not JSON: {exc}", code=PARSE_ERROR) from None
    return value


def _unique(pairs: list[tuple[str, JSON]]) -> Msg:
    """Build an object, refusing duplicate keys: two parsers could read two different messages."""
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = sorted(key for key, _ in pairs)
        double = next(key for key, following in zip(keys, keys[1:]) if key == following)
        raise ValueError(f"the key {double[:40]!r} occurs twice in one object")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if number * 0 != 0:  # NaN, Infinity, and 1e999, which no peer would get back from us
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


_scan = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_finite
).scan_once  # type: ignore[attr-defined]
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_ALL_BUT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
# Looked for from the start of a number only: from each of its digits would be quadratic.
_DIGITS = re.compile(rb"(?<![0-9])[0-9]{%d}" % (MAX_INT_DIGITS + 1))


# An answer, as every known implementation writes one: its id stands at the start, or at the end.
_ID = rb'"id"\s*:\s*(-?[0-9]{1,19}|"[^"\\]{0,200}")\s*'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_OUTCOME = rb'"(?:result|error)"\s*:'
_ID_FIRST = re.compile(
    rb"\s*\{\s*(?:%b,\s*)?%b,\s*(?:%b,\s*)?%b" % (_VERSION, _ID, _VERSION, _OUTCOME)
)
_OUTCOME_FIRST = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b" % (_VERSION, _OUTCOME))
_ID_LAST = re.compile(rb",\s*%b(?:,\s*%b)?\}\s*$" % (_ID, _VERSION))


def find_answer(data: bytes) -> tuple[bool, ReqId | None]:
    """Return whether bytes that decode() refuses look like an answer, and the id if there is one.

    >>> find_answer(b'{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}')
    (True, 7)
    >>> find_answer(b'{"result": {"x": NaN}, "id": "a", "jsonrpc": "2.0"}')
    (True, 'a')
    >>> find_answer(b"Listening on port 80"), find_answer(b'{"id": 7, "method": "a", "x": NaN}')
    ((False, None), (False, None))
    """
    found = _ID_FIRST.match(data)
    if found is None and _OUTCOME_FIRST.match(data):
        found = _ID_LAST.search(data[-300:])
    if found is not None:
        return True, json.loads(found[1].decode("utf-8", "replace"))
    an_object = data.lstrip()[:1] == b"{" and b'"method"' not in data
    return an_object and (b'"result"' in data or b'"error"' in data), None


def _check_bounds(data: bytes) -> None:
    """Refuse what would cost too much to parse. Most messages pass on the first comparisons."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise LimitExceeded(f"a message is longer than {MAX_MESSAGE_BYTES} bytes")
    if len(data) <= MAX_INT_DIGITS and data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    # What stands inside strings does not count: without escapes, every second piece is a string.
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    quotes = 4 * MAX_ELEMENTS  # each element has two strings at most, its key and its value
    pieces = data.split(b'"', quotes + 1)
    if len(pieces) > quotes + 1:
        raise LimitExceeded(f"a message has more than {MAX_ELEMENTS} elements")
    bare = b"".join(pieces[::2])
    if _DIGITS.search(bare):
        raise LimitExceeded(f"a number has more than {MAX_INT_DIGITS} digits")
    brackets = bare.translate(None, _ALL_BUT_BRACKETS)
    if len(brackets) // 2 + bare.count(b",") > MAX_ELEMENTS:
        raise LimitExceeded(f"a message has more than {MAX_ELEMENTS} elements")
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise LimitExceeded(f"a message is nested deeper than {MAX_DEPTH} levels")


# JSON values. Python and JSON disagree on a few of them: 1.0 is an integer in JSON, and True is
# not 1. These functions see values as JSON does.

#: The types of JSON, by the class of the Python value.
KINDS = {dict: "object", list: "array", str: "string", int: "integer", float: "number",
         bool: "boolean", type(None): "null"}  # fmt: skip


def kind_of(value: Any) -> str:
    """Return the JSON type of `value`, the narrowest there is; "unknown" for what JSON has not.

    >>> kind_of(2.0), kind_of(2.5), kind_of(True), kind_of(b"")
    ('integer', 'number', 'boolean', 'unknown')
    """
    if isinstance(value, float) and value.is_integer():
        return "integer"  # JSON Schema 2020-12, core §6.3: "Mathematical Integers"
    return next((KINDS[base] for base in type(value).__mro__ if base in KINDS), "unknown")


def canonical(value: JSON, spend: Callable[[int], Any] | None = None) -> str:
    """Return one text for all spellings of a JSON value: equal values have equal texts.

    JSON Schema 2020-12, core §4.2.2, says which values are equal.
    `spend` is told of the work before it is done, in steps (see CheckRun). A text is what gets
    compared and hashed, because Python hashes a str with a secret: nobody can make texts collide.

    >>> canonical({"b": 1.0, "a": True}) == canonical({"a": True, "b": 1})
    True
    """
    if isinstance(value, (list, dict, str)) and spend:
        spend(1 + (len(value) >> 6 if isinstance(value, str) else 4 * len(value)))
    if isinstance(value, list):
        return "[" + ",".join([canonical(item, spend) for item in value]) + "]"
    if isinstance(value, dict):
        members = sorted((repr(key), canonical(item, spend)) for key, item in value.items())
        return "{" + ",".join(f"{key}:{item}" for key, item in members) + "}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # Hexadecimal, because decimal text takes quadratic time.
    return hex(value) if type(value) is int else repr(value)


def show_json(value: Any) -> str:
    """Return `value` for a message: short, as JSON; a container by its type only.

    >>> show_json("red"), show_json([1, 2]), show_json(10**100)
    ('"red"', 'array', 'an integer of 333 bits')
    """
    if isinstance(value, (list, dict)):
        return kind_of(value)
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    value = value[:50] if isinstance(value, str) else value
    return json.dumps(value, ensure_ascii=False, default=kind_of)[:60]


def join_path(step: str | int, path: str = "") -> str:
    """Put one step, a name or an index, before a path.

    >>> join_path("items", join_path(2, "price"))
    'items[2].price'
    """
    if isinstance(step, int) or not re.fullmatch(r"[\w$-]{1,64}", step):
        step = f"[{show_json(step)}]"
    return step + path if not path or path[0] == "[" else f"{step}.{path}"

###############################################################################
# 4. Revisions and methods
###############################################################################
# Pure. Uses sections 1 to 3.
#
# Problem.  The protocol has five revisions. Fields, methods and whole mechanisms came and went,
#           and a peer may speak any of them.
# Rules.    1. History is data. Four tables say what each revision has: its mechanisms, its methods,
#              the fields and the content types it knows. No other line of the file names a date.
#           2. Code asks for a property (`rev.batching`), never compares revisions.
#           3. A peer never receives a field, a content type or a method that its revision does not
#              know: fields are left out, content becomes text, methods are refused.
# Plan.     REVISIONS, METHODS, FIELDS, CONTENT; then the functions that cut a message down to what
#           a revision knows.
# Not here. Which revision a conversation speaks: section 6.

V24_11, V25_03 = "2024-11-05", "2025-03-26"
V25_06, V25_11 = "2025-06-18", "2025-11-25"
V26_07 = "2026-07-28"


class Revision(NamedTuple):
    """What one revision of the protocol has."""

    name: str
    #: every request carries its own metadata; no handshake, no sessions, no server requests
    modern: bool = False
    #: JSON-RPC batches must be understood (spec 2025-03-26: basic/index#batching)
    batching: bool = False
    #: HTTP requests name the revision (spec 2025-06-18: basic/transports#protocol-version-header)
    version_header: bool = False
    #: an error about an unreadable message leaves the id out; before, it was null
    #: (spec 2025-11-25: basic/index#error-responses)
    error_without_id: bool = False
    #: tool arguments that break the schema are the model's to correct: a result with isError
    input_errors_as_results: bool = False
    #: elicitation by URL, titled and multiple choices, defaults of every kind
    rich_elicitation: bool = False
    #: knows every field and type of content that there is
    rich_content: bool = False
    #: sampling with tools, and messages of several content blocks
    rich_sampling: bool = False
    #: SSE answers begin with an event that has an id and no data, so that they can be polled
    sse_priming: bool = False
    #: capabilities which cannot be declared yet, and so need not be
    undeclared: tuple[str, ...] = ()
    #: the code for a resource that does not exist (spec: server/resources#error-handling)
    resource_not_found: int = RESOURCE_NOT_FOUND


REVISIONS: dict[str, Revision] = {
    row.name: row
    for row in (
        Revision(V24_11, undeclared=("completions",)),
        Revision(V25_03, batching=True),
        Revision(V25_06, version_header=True),
        Revision(
            V25_11,
            version_header=True,
            error_without_id=True,
            input_errors_as_results=True,
            rich_content=True,
            rich_elicitation=True,
            rich_sampling=True,
            sse_priming=True,
        ),
        Revision(
            V26_07,
            modern=True,
            version_header=True,
            error_without_id=True,
            input_errors_as_results=True,
            rich_content=True,
            rich_elicitation=True,
            rich_sampling=True,
            resource_not_found=INVALID_PARAMS,
        ),
    )
}
#: Names of the handshake revisions, newest first.
LEGACY = tuple(name for name in reversed(tuple(REVISIONS)) if not REVISIONS[name].modern)
NEWEST_LEGACY = REVISIONS[LEGACY[0]]
#: The newest of all.
NEWEST = REVISIONS[V26_07]
#: What an HTTP request without a version header speaks.
HEADERLESS = REVISIONS[V25_03]

BOTH, CLIENT, SERVER = "both", "client", "server"


class Listing(NamedTuple):
    """A result that holds a list of objects."""

    #: the member of the result that is the list; "" where there is none
    key: str = ""
    #: the member, a str, that each object must have
    each_has: str = ""
    #: the kind of the objects, in FIELDS
    kind: str = ""
    #: the attribute of Server with the entries that are listed
    registry: str = ""


class Method(NamedTuple):
    """One method: who may send it, since when, what it takes, and what its result may be."""

    name: str
    kind: str  # REQUEST or NOTIFICATION
    sender: str  # CLIENT, SERVER or BOTH
    revisions: tuple[str, ...]  # names of the revisions that have it
    #: what it is for, as its sender would say it
    about: str
    #: the capability that must be declared, as a dotted path: by the receiver of a request, by the
    #: sender of a notification
    capability: str = ""
    #: parameters that must be there, and their type
    required: Mapping[str, Any] = {}
    #: parameters that may be there, and their type
    optional: Mapping[str, Any] = {}
    #: the result may be a question to the client (spec: basic/patterns/mrtr#supported-requests)
    may_ask: bool = False
    #: the result says how long it may be kept (spec: server/utilities/caching#cacheable-results)
    cacheable: bool = False
    #: the list in the result
    lists: Listing = Listing()
    #: the parameter that the HTTP header `mcp-name` repeats
    #: (spec: basic/transports/streamable-http#standard-request-headers)
    mirrors: str = ""
    #: of a question: the member that its answer must have, and the schema of this member
    answer: Mapping[str, Msg] = {}


def _since(first: str, last: str = V26_07) -> tuple[str, ...]:
    return tuple(name for name in REVISIONS if first <= name <= last)


_ALL, _LEGACY, _MODERN = _since(V24_11), _since(V24_11, V25_11), _since(V26_07)

METHODS: dict[str, Method] = {
    row.name: row
    for row in (
        # The conversation.
        Method("initialize", REQUEST, CLIENT, _LEGACY,
               about="agree on a revision and on capabilities, and so open a session",
               required={"protocolVersion": str, "capabilities": dict, "clientInfo": dict}),
        Method("notifications/initialized", NOTIFICATION, CLIENT, _LEGACY,
               about="the client is ready: the handshake is over"),
        Method("ping", REQUEST, BOTH, _LEGACY,
               about="is the other end alive?"),
        Method("server/discover", REQUEST, CLIENT, _MODERN,
               about="which revisions and capabilities does the server have?",
               cacheable=True),
        Method("notifications/cancelled", NOTIFICATION, BOTH, _ALL,
               about="the answer to this request is not wanted any more"),
        Method("notifications/progress", NOTIFICATION, BOTH, _ALL,
               about="so far has the request of this token come"),
        # Tools.
        Method("tools/list", REQUEST, CLIENT, _ALL,
               about="which functions can a model call here, and with what arguments?",
               capability="tools", optional={"cursor": str}, cacheable=True,
               lists=Listing("tools", each_has="name", kind="Tool", registry="tools")),
        Method("tools/call", REQUEST, CLIENT, _ALL,
               about="call a tool, and get its result for the model",
               capability="tools", required={"name": str}, optional={"arguments": dict},
               may_ask=True, mirrors="name"),
        Method("notifications/tools/list_changed", NOTIFICATION, SERVER, _ALL,
               about="there are other tools now: list them again",
               capability="tools"),
        # Resources.
        Method("resources/list", REQUEST, CLIENT, _ALL,
               about="which documents are here to be read?",
               capability="resources", optional={"cursor": str}, cacheable=True,
               lists=Listing("resources", each_has="uri", kind="Resource", registry="resources")),
        Method("resources/templates/list", REQUEST, CLIENT, _ALL,
               about="which families of documents, whose URIs have parameters?",
               capability="resources", optional={"cursor": str}, cacheable=True,
               lists=Listing("resourceTemplates", each_has="uriTemplate", kind="Resource",
                             registry="templates")),
        Method("resources/read", REQUEST, CLIENT, _ALL,
               about="read a document",
               capability="resources", required={"uri": str},
               may_ask=True, cacheable=True, lists=Listing("contents"), mirrors="uri"),
        Method("notifications/resources/list_changed", NOTIFICATION, SERVER, _ALL,
               about="there are other resources now: list them again",
               capability="resources"),
        Method("resources/subscribe", REQUEST, CLIENT, _LEGACY,
               about="tell me whenever this document changes",
               capability="resources.subscribe", required={"uri": str}),
        Method("resources/unsubscribe", REQUEST, CLIENT, _LEGACY,
               about="tell me no more of this document",
               capability="resources.subscribe", required={"uri": str}),
        Method("notifications/resources/updated", NOTIFICATION, SERVER, _ALL,
               about="a document that is subscribed to has changed",
               capability="resources"),
        # Prompts, and what a person may type for their arguments.
        Method("prompts/list", REQUEST, CLIENT, _ALL,
               about="which prepared messages can a person choose from?",
               capability="prompts", optional={"cursor": str}, cacheable=True,
               lists=Listing("prompts", each_has="name", kind="Prompt", registry="prompts")),
        Method("prompts/get", REQUEST, CLIENT, _ALL,
               about="fill in a prompt, and get its messages",
               capability="prompts", required={"name": str}, optional={"arguments": dict},
               may_ask=True, lists=Listing("messages", each_has="role"), mirrors="name"),
        Method("notifications/prompts/list_changed", NOTIFICATION, SERVER, _ALL,
               about="there are other prompts now: list them again",
               capability="prompts"),
        Method("completion/complete", REQUEST, CLIENT, _ALL,
               about="suggest values for an argument of a prompt or a template",
               capability="completions", required={"ref": dict, "argument": dict},
               optional={"context": dict}),
        # The log, and the stream of announcements.
        Method("logging/setLevel", REQUEST, CLIENT, _LEGACY,
               about="from which severity on shall log messages be sent?",
               capability="logging", required={"level": str}),
        Method("notifications/message", NOTIFICATION, SERVER, _ALL,
               about="a line of the server's log",
               capability="logging"),
        Method("subscriptions/listen", REQUEST, CLIENT, _MODERN,
               about="open a stream of announcements, of the kinds that are named",
               required={"notifications": dict}),
        Method("notifications/subscriptions/acknowledged", NOTIFICATION, SERVER, _MODERN,
               about="this part of the announcements will be sent"),
        # Questions. A legacy server sends these three as requests. A modern server sends no
        # requests: it puts them as questions into the result of a call (section 17).
        Method("roots/list", REQUEST, SERVER, _ALL,
               about="which folders may the server work in?",
               capability="roots",
               answer={"roots": {"type": "array", "items": {"type": "object"}}}),
        Method("notifications/roots/list_changed", NOTIFICATION, CLIENT, _LEGACY,
               about="there are other folders now: list them again",
               capability="roots"),
        Method("sampling/createMessage", REQUEST, SERVER, _ALL,
               about="let the client's model write a message",
               capability="sampling", required={"messages": list, "maxTokens": int},
               answer={"content": {"type": ["object", "array"]}}),
        Method("elicitation/create", REQUEST, SERVER, _since(V25_06),
               about="let the client ask a person to fill in a form, or to open a URL",
               capability="elicitation", required={"message": str},
               answer={"action": {"enum": ["accept", "decline", "cancel"]}}),
        Method("notifications/elicitation/complete", NOTIFICATION, SERVER, (V25_11,),
               about="the person is done with what the URL showed",
               capability="elicitation"),
        # Tasks, an extension.
        Method("tasks/get", REQUEST, CLIENT, _MODERN,
               about="how is this task doing, and what came of it?",
               required={"taskId": str}, mirrors="taskId"),
        Method("tasks/update", REQUEST, CLIENT, _MODERN,
               about="answer what a task has asked",
               required={"taskId": str, "inputResponses": dict}, mirrors="taskId"),
        Method("tasks/cancel", REQUEST, CLIENT, _MODERN,
               about="end a task before its time",
               required={"taskId": str}, mirrors="taskId"),
        Method("notifications/tasks", NOTIFICATION, SERVER, _MODERN,
               about="a task has a new status"),
    )
}  # fmt: skip

#: The fields that objects of each kind gained after the first revision: field -> the first
#: revision that knows it.
FIELDS: dict[str, dict[str, str]] = {
    "Tool": {"annotations": V25_03, "title": V25_06, "outputSchema": V25_06, "_meta": V25_06,
             "icons": V25_11},
    "Resource": {"title": V25_06, "_meta": V25_06, "icons": V25_11},
    "Prompt": {"title": V25_06, "_meta": V25_06, "icons": V25_11},
    "PromptArgument": {"title": V25_06},
    "Implementation": {"title": V25_06, "description": V25_11, "icons": V25_11,
                       "websiteUrl": V25_11},
    "Annotations": {"lastModified": V25_06},
    "Content": {"_meta": V25_06, "icons": V25_11, "title": V25_06},
    "Contents": {"_meta": V25_06},
    "Root": {"_meta": V25_06},
    "Result": {"resultType": V26_07, "ttlMs": V26_07, "cacheScope": V26_07},
    "CallToolResult": {"structuredContent": V25_06},
    "Progress": {"message": V25_03},
    "Complete": {"context": V25_06},
    "Sampling": {"tools": V25_11, "toolChoice": V25_11},
    "SamplingMessage": {"_meta": V25_11},
    "ClientCapabilities": {"elicitation": V25_06, "extensions": V26_07},
    "ServerCapabilities": {"completions": V25_03, "extensions": V26_07},
}
#: Content types that came after the first revision.
CONTENT = {"audio": V25_03, "resource_link": V25_06, "tool_use": V25_11, "tool_result": V25_11}

_UNKNOWN = {
    (kind, name): frozenset(field for field, since in fields.items() if since > name)
    for kind, fields in FIELDS.items()
    for name in REVISIONS
}


def check_params(row: Method, params: Msg) -> None:
    """Raise RPCError -32602 when a required parameter is missing or any is of the wrong type.

    >>> check_params(METHODS["tools/call"], {"name": 5})
    Traceback (most recent call last):
        ...
    mcp_lite.RPCError: tools/call: name: expected string, got integer (-32602)
    """
    for fields in (row.required, row.optional):
        for name, kind in fields.items():
            value = params.get(name)
            if type(value) is kind or (name not in params and fields is row.optional):
                continue
            if kind is int and type(value) is float and value.is_integer():
                continue  # 100.0 is an integer, to JSON Schema as to JavaScript
            problem = f"expected {kind_of(kind())}, got {kind_of(params.get(name))}"
            problem = problem if name in params else "is missing"
            raise RPCError(INVALID_PARAMS, f"{row.name}: {name}: {problem}")


def declares(capabilities: Msg, path: str) -> bool:
    """Return whether `capabilities` declares what the dotted `path` names.

    >>> declares({"resources": {"subscribe": True}}, "resources.subscribe")
    True
    >>> declares({"tools": {}}, "tools"), declares({"tools": {}}, "tools.listChanged")
    (True, False)
    """
    node: JSON = capabilities
    for key in path.split("."):
        node = node.get(key) if isinstance(node, dict) else None
    return node is not None and node is not False


def strip_unknown(kind: str, obj: Msg, rev: Revision) -> Msg:
    """Return `obj` without the fields that `rev` does not know; `obj` itself when it knows all.

    >>> strip_unknown("Tool", {"name": "add", "title": "Add", "icons": []}, REVISIONS["2025-06-18"])
    {'name': 'add', 'title': 'Add'}
    """
    unknown = _UNKNOWN[kind, rev.name]
    if not unknown or unknown.isdisjoint(obj):
        return obj
    return {key: value for key, value in obj.items() if key not in unknown}


def fit_content(block: Msg, rev: Revision) -> Msg:
    """Return a content block as `rev` can understand it, as text if need be.

    >>> link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    >>> fit_content(link, REVISIONS["2025-03-26"])
    {'type': 'text', 'text': 'a: file:///a'}
    """
    if block.keys() == {"type", "text"}:
        return block  # most blocks are plain text, which every revision knows
    if CONTENT.get(block.get("type", ""), "") > rev.name:
        return {"type": "text", "text": text_of(block)}
    block = strip_unknown("Content", block, rev)
    if isinstance(block.get("annotations"), dict):
        block = {**block, "annotations": strip_unknown("Annotations", block["annotations"], rev)}
    if block.get("type") == "resource" and isinstance(block.get("resource"), dict):
        block = {**block, "resource": strip_unknown("Contents", block["resource"], rev)}
    return block


def text_of(block: Msg) -> str:
    """Return what a content block says, for a reader that only understands text.

    >>> text_of({"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="})
    '[audio, audio/wav, 8 characters of base64]'
    """
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource_link":
        return f"{block.get('title') or block.get('name')}: {block.get('uri')}"
    if kind == "resource":
        contents = block.get("resource", {})
        return str(contents.get("text", f"[resource, {contents.get('uri')}]"))
    if "data" in block:
        return f"[{kind}, {block.get('mimeType')}, {len(block['data'])} characters of base64]"
    return f"[{kind}]"


def fit_message(message: Msg, rev: Revision) -> Msg:
    """Return a message of a prompt or of sampling as `rev` knows it: older ones have one block.

    >>> pair = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    >>> fit_message({"role": "user", "content": pair}, REVISIONS[LEGACY[-1]])["content"]
    {'type': 'text', 'text': 'a\\nb'}
    """
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    blocks = [fit_content(block, rev) for block in blocks if isinstance(block, dict)]
    if len(blocks) != 1 and not rev.rich_sampling:
        blocks = [{"type": "text", "text": "\n".join(map(text_of, blocks))}]
    content = blocks[0] if len(blocks) == 1 else blocks
    return {**strip_unknown("SamplingMessage", message, rev), "content": content}


def fit_form(schema: Msg, rev: Revision) -> Msg:
    """Return an elicitation schema as `rev` can show it: plain enums, defaults only of booleans.

    Raises RPCError for multiple choices, which a revision without them has no way to ask for.

    >>> choice = {"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"}
    >>> fit_form({"type": "object", "properties": {"x": choice}}, REVISIONS["2025-06-18"])
    {'type': 'object', 'properties': {'x': {'type': 'string', 'enum': ['a'], 'enumNames': ['A']}}}
    """
    if rev.rich_elicitation:
        return schema
    fields = schema.get("properties", {}).items()
    return {**schema, "properties": {name: _fit_field(name, field, rev) for name, field in fields}}


def _fit_field(name: str, field: Msg, rev: Revision) -> Msg:
    if field.get("type") == "array":
        problem = f"revision {rev.name} cannot ask for several choices"
        raise RPCError(INVALID_PARAMS, f"{name}: {problem}")
    field = dict(field)
    if field.get("type") != "boolean":
        field.pop("default", None)
    options = field.pop("oneOf", None)
    if options:
        field["enum"] = [option.get("const") for option in options]
        field["enumNames"] = [str(option.get("title", option.get("const"))) for option in options]
    return field


def is_modern(msg: Msg) -> bool:
    """Return whether a request carries its own metadata, and so belongs to the modern era.

    >>> is_modern({"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "x"}}})
    True
    >>> is_modern({"params": {"_meta": {"progressToken": 1}}})
    False
    """
    params = msg.get("params")
    meta = params.get("_meta") if type(params) is dict else None
    return type(meta) is dict and PROTOCOL_VERSION in meta

# =============================================================================
# Part II. One conversation
# =============================================================================

###############################################################################
# 5. Requests in flight
###############################################################################
# Pure. Uses sections 1, 3 and 4.
#
# Problem.  Both ends ask and answer at the same time. Answers come late, twice, or never; callers
#           lose patience; a peer may flood us with progress.
# Rules.    1. What we asked (Outgoing) and what we serve are two tables, never one: both ends
#              number their requests from 1.
#           2. The life of a request is a table. A cancelled request is never answered: whoever
#              cancelled it has forgotten its id, and an answer would belong to nothing. For the
#              same reason an answer that comes too late changes nothing.
#           3. Progress renews a request's deadline up to a maximum; it must grow, and stops with
#              the answer.
#           4. Time is an argument, `now`, in seconds of any steady clock.
# Plan.     EXCHANGE, the table; Exchange, a request that we serve; Pending and Outgoing, requests
#           that we sent; Budget, a rate; ProgressMeter, which spaces the reports of a handler;
#           HeldMessages, requests that wait until there is room for them.
# Not here. Futures, tasks and timers: section 9 attaches them.

MAX_HELD_BYTES = 32 * 1024 * 1024  # of requests that wait because so many are being served
HELD_OVERHEAD = 512  # bytes that are added to the size of each, for the objects around it
PROGRESS_RATE = (50, 1.0)  # reports, seconds: faster than a screen is flooding
REQUEST_SECONDS = 60.0  # for an answer, or for the next sign of progress
LONGEST_REQUEST_SECONDS = 3600.0  # ... in all, however much progress is reported

RUNNING, DONE, CANCELLED = "running", "done", "cancelled"

# (state, event) -> state.
#   RUNNING --answer--> DONE
#   RUNNING --cancel--> CANCELLED
#   DONE --cancel--> DONE
#   CANCELLED --answer--> CANCELLED
#   CANCELLED --cancel--> CANCELLED
EXCHANGE = {
    (RUNNING, "answer"): DONE,
    (RUNNING, "cancel"): CANCELLED,
    # spec: basic/patterns/cancellation#timing-considerations -- the races end here
    (DONE, "cancel"): DONE,
    (CANCELLED, "answer"): CANCELLED,
    (CANCELLED, "cancel"): CANCELLED,
}


class Caller(NamedTuple):
    """The sender of a message, as far as the channel knows it.

    A pipe knows nothing of its other end: there the caller is NOBODY. HTTP makes one for each
    request.
    """

    #: the HTTP headers of the request, names in lower case
    headers: Mapping[str, str] = types.MappingProxyType({})
    #: the value that stands for who was authenticated, or None
    principal: Any = None
    #: a stable key of the principal, "" where nobody was authenticated; all that belongs to a
    #: principal is bound to this key
    owner: str = ""
    #: the network address, "" where there is none
    address: str = ""
    #: "http" or "https", "" where there is no HTTP
    scheme: str = ""


NOBODY = Caller()


class Exchange:
    """One request of the peer, from its arrival to our answer."""

    __slots__ = ("msg", "req_id", "method", "params", "send", "caller", "modern",
                 "facts", "key", "state", "task", "reason", "pause")  # fmt: skip

    def __init__(
        self, msg: Msg, send: Send, caller: Caller = NOBODY, modern: bool | None = None
    ) -> None:
        self.msg = msg
        self.req_id: ReqId = msg["id"]
        self.method: str = msg["method"]
        self.params: Msg = msg.get("params") or {}
        #: where everything goes that this request causes before its answer
        self.send = send
        #: who sent it
        self.caller = caller
        #: whether it carries its own metadata, or says in a header that it does
        self.modern = is_modern(msg) if modern is None else modern
        #: its Facts (section 6), if the transport has checked them already
        self.facts: Any = None
        #: its place among the requests that its Peer serves
        self.key: Any = self.req_id
        self.state = RUNNING
        #: the task that serves it, for whoever must cancel it
        self.task: Any = None
        #: why the peer cancelled it, or why we have cut it off, if the peer was told so
        self.reason: str | None = None
        #: await pause(retry_ms) ends the connection but not the answer: the client comes back for
        #: it. Returns whether that was possible.
        self.pause: Callable[[int], Awaitable[bool]] | None = None

    @property
    def meta(self) -> Msg:
        """The `_meta` of the parameters, or an empty dict."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def title(self) -> str:
        """The method, and the name of its tool, prompt or resource, for messages and logs.

        >>> Exchange(request(1, "tools/call", {"name": "add"}), print).title
        "tools/call of 'add'"
        """
        name = self.params.get("name", self.params.get("uri"))
        return self.method if name is None else f"{self.method} of {repr(name)[:200]}"

    def advance(self, event: str) -> str:
        """Apply an event and return the new state; an event that cannot happen is a bug of ours.

        >>> exchange = Exchange(request(1, "ping"), print)
        >>> exchange.advance("cancel"), exchange.advance("answer")
        ('cancelled', 'cancelled')
        """
        try:
            self.state = EXCHANGE[self.state, event]
        except KeyError:
            raise RuntimeError(f"request {self.req_id!r}: {event} while {self.state}") from None
        return self.state


class Pending:
    """One request of ours that has no answer yet."""

    __slots__ = ("req_id", "method", "patience", "deadline", "last_deadline", "progress",
                 "on_progress", "reports", "waiter", "timer", "sending")  # fmt: skip

    def __init__(
        self, req_id: ReqId, method: str, now: float, patience: float, longest: float
    ) -> None:
        self.req_id = req_id
        self.method = method
        #: seconds from now, or from the last progress, to the deadline
        self.patience = patience
        self.deadline = now + patience
        self.last_deadline = now + max(patience, longest)
        self.progress = float("-inf")
        self.on_progress: Callable[..., Any] | None = None
        #: progress callbacks still running, to be awaited before the answer is given out
        self.reports: set[Any] = set()
        #: the future that the caller awaits, the timer that ends its patience, the task that sends
        self.waiter: Any = None
        self.timer: Any = None
        self.sending: Any = None


class Outgoing:
    """The requests that we sent and that are not answered."""

    def __init__(self) -> None:
        self.pending: dict[ReqId, Pending] = {}
        self.last_id = 0

    def open(
        self,
        method: str,
        now: float,
        patience: float = REQUEST_SECONDS,
        longest: float = LONGEST_REQUEST_SECONDS,
    ) -> Pending:
        """Number a new request and remember it; the number is its progress token as well.

        >>> out = Outgoing()
        >>> [out.open("ping", now=0.0).req_id for _ in range(2)]
        [1, 2]
        """
        self.last_id += 1
        pending = Pending(self.last_id, method, now, patience, longest)
        self.pending[pending.req_id] = pending
        return pending

    def settle(self, req_id: JSON) -> Pending | None:
        """Forget a request; return None if it was not open: a late, second or invented answer.

        >>> out = Outgoing()
        >>> out.open("ping", now=0.0).method, out.settle(1).method, out.settle(1)
        ('ping', 'ping', None)
        """
        # True == 1 to a dict, so the type is checked as well.
        return self.pending.pop(req_id, None) if is_id(req_id) else None

    def renew(self, params: Msg, now: float) -> Pending | None:
        """Note a progress notification; return its request, or None if it is to be ignored."""
        token: JSON = params.get("progressToken")
        progress: JSON = params.get("progress")
        pending = self.pending.get(token) if is_id(token) else None
        if pending is None or type(progress) not in (int, float):
            return None
        # spec: basic/patterns/progress#progress-flow -- "MUST increase with each notification"
        if not progress > pending.progress:
            return None
        pending.progress = progress
        # spec: basic/patterns/cancellation#timeouts -- a maximum "regardless of progress"
        pending.deadline = min(now + pending.patience, pending.last_deadline)
        return pending


class Budget:
    """A rate: so many calls in so many seconds, saved up when unused.

    >>> budget = Budget(2, 1.0)
    >>> [budget.take(now) for now in (0.0, 0.0, 0.0, 0.6)]
    [True, True, False, True]
    """

    __slots__ = ("calls", "seconds", "left", "since", "refused")

    def __init__(self, calls: float, seconds: float) -> None:
        self.calls, self.seconds = calls, seconds
        self.left = float(calls)
        self.since: float | None = None
        self.refused = 0  # calls that were refused since the last one that was granted

    def take(self, now: float) -> bool:
        """Use one call; return False if none is left."""
        if self.since is not None:
            earned = (now - self.since) * self.calls / self.seconds
            self.left = min(float(self.calls), self.left + earned)
        self.since = now
        if self.left < 1:
            self.refused += 1
            return False
        self.left -= 1
        return True

    @property
    def wait(self) -> float:
        """How many seconds it takes, from the last take(), until there is a call again.

        >>> budget = Budget(2, 1.0)
        >>> [budget.take(0.0) for _ in range(3)], budget.wait
        ([True, True, False], 0.5)
        """
        return max(0.0, (1 - self.left) * self.seconds / self.calls)


class ProgressMeter:
    """Decides which of a handler's progress reports are sent, and when.

    >>> meter = ProgressMeter("t", Budget(1, 1.0))
    >>> meter.report(1, 4, None, now=0.0)
    {'progressToken': 't', 'progress': 1, 'total': 4}
    >>> meter.report(2, 4, None, now=0.1), meter.report(3, 4, "nearly", now=0.2)
    (None, None)
    >>> meter.flush()
    {'progressToken': 't', 'progress': 3, 'total': 4, 'message': 'nearly'}
    """

    __slots__ = ("token", "budget", "last", "held")

    def __init__(self, token: ReqId, budget: Budget) -> None:
        self.token = token
        self.budget = budget
        self.last = float("-inf")
        self.held: Msg | None = None

    def report(
        self, progress: float, total: float | None, message: str | None, now: float
    ) -> Msg | None:
        """Return the parameters of a notification to send now; None when it is held or pointless.

        A value that does not grow is dropped: the protocol forbids to send it.
        """
        if not progress > self.last:
            return None
        self.last = progress
        params: Msg = {"progressToken": self.token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.held = params
        # spec: basic/patterns/progress#implementation-notes -- "rate limiting to prevent flooding"
        return self.flush() if self.budget.take(now) else None

    def flush(self) -> Msg | None:
        """Return what was held back, if anything: the last value always arrives."""
        params, self.held = self.held, None
        return params


def may_wait(msg: JSON) -> bool:
    """Return whether a message is a request that may wait, or a batch with such a request.

    A ping never waits. A message with an id but no method is an answer, and does not wait either.

    >>> [may_wait(request(1, name)) for name in ("tools/call", "ping")]
    [True, False]
    """
    if type(msg) is list:
        return any(type(item) is dict and "method" in item and "id" in item for item in msg)
    if type(msg) is not dict or not is_id(msg.get("id")):
        return False
    return bool(msg.get("method", "ping") != "ping")


class HeldMessages:
    """Messages that wait until there is room for them, oldest first, bounded in bytes.

    They are kept encoded: decoded, they could take many times as much.
    """

    def __init__(self) -> None:
        #: by the id of the request; a batch has a key of its own
        self.messages: OrderedDict[Any, tuple[bytes, Send, Caller]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self.messages)

    def __contains__(self, key: Any) -> bool:
        return key in self.messages

    def put(self, key: Any, data: bytes, send: Send, caller: Caller) -> bool:
        """Keep a message; return False if there is no room for it."""
        size = self.size + len(data) + HELD_OVERHEAD
        if size > MAX_HELD_BYTES:
            return False
        self.messages[key], self.size = (data, send, caller), size
        return True

    def take(self) -> tuple[bytes, Send, Caller]:
        """Give out the oldest message."""
        _, message = self.messages.popitem(last=False)
        self.size -= len(message[0]) + HELD_OVERHEAD
        return message

    def drop(self, key: Any) -> bool:
        """Forget a message; return False if there is none of that key."""
        message = self.messages.pop(key, None)
        if message is not None:
            self.size -= len(message[0]) + HELD_OVERHEAD
        return message is not None

    def clear(self) -> None:
        """Forget all."""
        self.messages.clear()
        self.size = 0

###############################################################################
# 6. Lifecycle
###############################################################################
# Pure. Uses sections 1 to 4.
#
# Problem.  Before anything else the two ends must agree on a revision and on what each can do. The
#           legacy revisions do so once, with a handshake that opens a session; the modern one
#           says it again in every request.
# Rules.    1. The session's states are a table, seen alike from both ends.
#           2. A server answers `initialize` with the revision that was asked for, or with its
#              newest legacy one. It never refuses. The client decides whether to go on.
#           3. We ask a peer only for what it has declared. Otherwise CapabilityMissing is raised,
#              and nothing is sent.
#           4. A handler gets Facts, whether they come from a session or from the request itself.
# Plan.     Facts; SESSION and Session; admit(), which says whether a method may be called; the
#           metadata of a modern request.
# Not here. HTTP's headers and session ids: sections 34 and 38. How a client finds out which era a
#           server speaks: section 28.

#: The severities of RFC 5424, mildest first.
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


#: The revisions that we speak, newest first, as `server/discover` tells them.
SUPPORTED = list(reversed(REVISIONS))


class Facts(NamedTuple):
    """What a request may rely on, whichever era it came from."""

    rev: Revision
    client_info: Msg
    client_capabilities: Msg
    #: the mildest severity to send, or None for silence
    log_level: str | None


START, OFFERED, AGREED, READY = "start", "offered", "agreed", "ready"

# (state, event) -> state; an event is what crosses the wire.
#   START --initialize--> OFFERED
#   OFFERED --result--> AGREED
#   OFFERED --error--> START
#   AGREED --notifications/initialized--> READY
#   READY --notifications/initialized--> READY
SESSION = {
    (START, "initialize"): OFFERED,
    (OFFERED, "result"): AGREED,
    (OFFERED, "error"): START,
    (AGREED, "notifications/initialized"): READY,
    (READY, "notifications/initialized"): READY,  # said twice by some clients; harmless
}


class Session:
    """The facts of a legacy conversation: its state, and what each end has declared."""

    __slots__ = ("state", "rev", "client_info", "client_capabilities", "server_capabilities",
                 "log_level", "subscriptions", "resumed")  # fmt: skip

    def __init__(self) -> None:
        self.state = START
        #: whether the session began without a handshake here: nothing is known of the client
        self.resumed = False
        #: before the handshake: the newest revision that has a handshake
        self.rev = NEWEST_LEGACY
        self.client_info: Msg = {}
        self.client_capabilities: Msg = {}
        self.server_capabilities: Msg = {}
        # spec 2025-11-25: server/utilities/logging#setting-log-level -- unset, the server decides
        self.log_level: str | None = "info"
        #: URIs that the client wants to hear of
        self.subscriptions: set[str] = set()

    def advance(self, event: str) -> None:
        """Apply an event of the handshake.

        >>> session = Session()
        >>> session.advance("notifications/initialized")
        Traceback (most recent call last):
            ...
        mcp_lite.ProtocolError: notifications/initialized came while the session was at its start
        """
        try:
            self.state = SESSION[self.state, event]
        except KeyError:
            where = "at its start" if self.state == START else self.state
            raise ProtocolError(f"{event} came while the session was {where}") from None

    def resume(self, rev: Revision) -> None:
        """Begin as if a handshake had just ended."""
        self.state, self.rev, self.resumed = READY, rev, True

    def facts(self) -> Facts:
        """Return what a request of this session may rely on."""
        return Facts(self.rev, self.client_info, self.client_capabilities, self.log_level)


def choose_revision(requested: str) -> Revision:
    """Return the revision with which a server answers `initialize`.

    spec 2025-11-25: basic/lifecycle#version-negotiation -- "the server MUST respond with another
    protocol version it supports. This SHOULD be the latest"

    >>> choose_revision("the first") is NEWEST_LEGACY
    True
    """
    return REVISIONS[requested] if requested in LEGACY else NEWEST_LEGACY


def lacks(capabilities: Msg, path: str, rev: Revision) -> bool:
    """Return whether `capabilities` should declare what the dotted `path` names, and does not.

    A revision may not have a way to declare it; then it is taken as declared.

    >>> lacks({}, "completions", REVISIONS[LEGACY[-1]]), lacks({}, "completions", NEWEST)
    (False, True)
    """
    return bool(path) and path not in rev.undeclared and not declares(capabilities, path)


def check_capability(whose: str, capabilities: Msg, path: str, rev: Revision) -> None:
    """Raise CapabilityMissing if `capabilities` lacks what the dotted `path` names.

    >>> check_capability("client", {"roots": {}}, "sampling", NEWEST_LEGACY)
    Traceback (most recent call last):
        ...
    mcp_lite.CapabilityMissing: the client did not declare the capability 'sampling'
    """
    if lacks(capabilities, path, rev):
        raise CapabilityMissing(whose, path)


def admit(
    method: str, sender: str, rev: Revision, capabilities: Msg, custom: Iterable[str] = ()
) -> Method | None:
    """Return the row of a method that `sender` calls on us; None for one of `custom`.

    `capabilities` are ours. Raises RPCError -32601 if the revision does not have the method, if
    only the other side may call it, or if it needs a capability that we did not declare.

    >>> admit("tools/list", CLIENT, NEWEST_LEGACY, {})
    Traceback (most recent call last):
        ...
    mcp_lite.RPCError: tools/list: the capability 'tools' was not declared (-32601)
    """
    row = METHODS.get(method)
    if row is None or row.kind != REQUEST:
        if method in custom:
            return None
        raise RPCError(METHOD_NOT_FOUND, f"unknown method: {method}")
    if rev.name not in row.revisions:
        # A client whose `initialize` is refused should learn which revisions it can speak.
        # spec: basic/versioning#backward-compatibility-with-initialization-based-versions
        ours = f"; this server speaks {', '.join(SUPPORTED)}" if method == "initialize" else ""
        raise RPCError(METHOD_NOT_FOUND, f"{method} does not exist in revision {rev.name}{ours}")
    if row.sender not in (sender, BOTH) or (rev.modern and sender == SERVER):
        # spec: basic/transports/stdio#receiving-messages
        raise RPCError(METHOD_NOT_FOUND, f"a {sender} cannot call {method}")
    if lacks(capabilities, row.capability, rev):
        problem = f"the capability {row.capability!r} was not declared"
        raise RPCError(METHOD_NOT_FOUND, f"{method}: {problem}")
    return row


def read_metadata(msg: Msg) -> Facts:
    """Return what the `_meta` of a modern request says; RPCError -32602 if it is not complete.

    The revision may be one that is not served: check_version() comes later.

    spec: basic/index#_meta -- "A request missing any required field is malformed"

    >>> meta = {PROTOCOL_VERSION: SUPPORTED[0], CLIENT_CAPABILITIES: {"roots": {}}}
    >>> read_metadata({"params": {"_meta": meta}}).client_capabilities
    {'roots': {}}
    """
    meta = (msg.get("params") or {}).get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    name: Any = meta.get(PROTOCOL_VERSION)
    capabilities: Any = meta.get(CLIENT_CAPABILITIES)
    info, level = meta.get(CLIENT_INFO, {}), meta.get(LOG_LEVEL)
    problem = ""
    if type(name) is not str:
        problem = f"{PROTOCOL_VERSION} is missing or no string"
    elif type(capabilities) is not dict:
        problem = f"{CLIENT_CAPABILITIES} is missing or no object"
    elif type(info) is not dict:
        problem = f"{CLIENT_INFO} is no object"
    elif level is not None and level not in LOG_LEVELS:
        problem = f"{LOG_LEVEL}: not one of {', '.join(LOG_LEVELS)}"
    if problem:
        raise RPCError(INVALID_PARAMS, f"_meta: {problem}")
    return Facts(REVISIONS.get(name) or NEWEST._replace(name=name), info, capabilities, level)


def check_version(name: str) -> None:
    """Raise RPCError -32022 unless `name` is a modern revision.

    spec: basic/versioning#protocol-version-negotiation

    >>> check_version("the first")
    Traceback (most recent call last):
        ...
    mcp_lite.RPCError: Unsupported protocol version (-32022)
    """
    if name in LEGACY or name not in REVISIONS:
        data = {"supported": SUPPORTED, "requested": name}
        raise RPCError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def check_modern_request(msg: Msg) -> Facts:
    """Check the metadata of a modern request, then its revision, and return its facts.

    >>> meta = {PROTOCOL_VERSION: "the first", CLIENT_CAPABILITIES: {}}
    >>> check_modern_request({"method": "tools/list", "params": {"_meta": meta}})
    Traceback (most recent call last):
        ...
    mcp_lite.RPCError: Unsupported protocol version (-32022)
    """
    facts = read_metadata(msg)
    check_version(facts.rev.name)
    return facts

###############################################################################
# 7. Tasks and threads
###############################################################################
# Uses sections 1, 2 and 5.
#
# Problem.  A task that nobody owns is lost when it fails, and left behind when we stop. Functions
#           that block must not run on the loop, nor keep the process alive when it should end, nor
#           take all threads from everybody else.
# Rules.    1. Every task is in a Tasks. The owner of the Tasks closes it, and then nothing is left.
#           2. CancelledError is caught only to clean up, and raised again.
#           3. Worker threads are daemons: a tool that sleeps must not keep Ctrl-C waiting, and the
#              threads of concurrent.futures are joined at exit.
#           4. A thread that waits for the loop gives its place in the pool to another thread, since
#              the loop may be waiting for one.
#           5. Nobody gets more than half of the threads that the others have left over. So there is
#              a thread for the next one who comes, however many calls of one principal sleep.
#           6. When an event loop stands still, a warning says where. And such a loop cannot keep a
#              process alive that should end.
# Plan.     Tasks, a set that owns tasks; Threads, a bounded pool; Shares, a rate for each client;
#           Watchdog, which ends a process that does not end by itself; LoopWatch, which warns when
#           the event loop stands still.
# Not here. asyncio.TaskGroup and timeout(): Python 3.9 has neither, and we need less than they do.

TOOL_THREADS = 40  # worker threads for `def` handlers, as many as anyio grants
MAX_BLOCKED_THREADS = 400  # ... and besides, threads that wait for the loop: 30 KB or so each
GRACE_SECONDS = 2.0  # for running requests when the peer has gone
MAX_CLIENTS = 10_000  # whose rates are remembered; the one silent for longest is forgotten
BLOCKED_SECONDS = 1.0  # for which the event loop may stand still before somebody is told
_EAGER: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}


def _uncancel(task: asyncio.Task[Any]) -> None:
    """Take back a cancellation that was caught and dealt with. Python 3.10 does not count them."""
    if sys.version_info >= (3, 11):
        task.uncancel()


class Tasks:
    """A set that owns its tasks: it reports their failures, and can end them all.

    `ended` is called whenever a task has ended.
    """

    def __init__(self, ended: Callable[[], None] | None = None) -> None:
        self.running: set[asyncio.Task[Any]] = set()
        self.ended = ended
        self.closing = False

    def spawn(self, coro: Any) -> asyncio.Task[Any]:
        """Run a coroutine as a task of this set. From Python 3.12 on, it begins at once.

        While the set is being closed, the new task is cancelled like those before it.
        """
        loop = asyncio.get_running_loop()
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **_EAGER)
        if task.done():
            self._report(task)
        else:
            self.running.add(task)
            task.add_done_callback(self._report)
            if self.closing:
                task.cancel()
        return task

    def _report(self, task: asyncio.Task[Any]) -> None:
        self.running.discard(task)
        if self.ended is not None:
            self.ended()
        if task.cancelled():
            return
        exc = task.exception()
        if exc is not None and not isinstance(exc, ConnectionClosed):
            logger.error("a background task failed", exc_info=exc)

    def others(self) -> set[asyncio.Task[Any]]:
        """Return the running tasks, without the one that asks."""
        return self.running - {asyncio.current_task()}

    async def drain(self, seconds: float | None) -> None:
        """Wait until all tasks have ended of themselves, at most so long (None: for ever).

        That includes tasks which others spawn before they end.
        """
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        waiting = self.others()
        while waiting:
            left = None if deadline is None else max(0.0, deadline - loop.time())
            await asyncio.wait(waiting, timeout=left)
            waiting = set() if left == 0 else self.others()

    async def close(self) -> None:
        """Cancel all tasks and wait until they are gone; one that will not go is reported."""
        self.closing = True  # what a task spawns while it ends is cancelled as well
        try:
            for task in self.others():
                task.cancel()
            await self.drain(GRACE_SECONDS)
        finally:
            self.closing = False
        stubborn = self.others()
        if stubborn:
            example = next(iter(stubborn))
            logger.warning("%d tasks ignore their cancellation: %r", len(stubborn), example)


class ThreadJob(NamedTuple):
    """One call of a function, for a worker thread."""

    owner: str
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    call: Callable[[], Any]
    #: the queue from which the thread that runs it takes its jobs
    hands: Any


class Threads:
    """A bounded pool of daemon threads for functions that block.

    The functions see the context variables of their caller. A call that is cancelled while it waits
    for a thread is forgotten. If it runs, it is no longer awaited, but its thread goes on: Python
    cannot stop it.
    """

    def __init__(self, limit: int = TOOL_THREADS) -> None:
        self.limit = limit
        #: in a worker thread: `job`, the ThreadJob that it runs
        self.local = threading.local()
        self.lock = threading.Lock()
        #: who waits for the end of all jobs
        self.drains: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = []
        self._start_over()

    def _start_over(self) -> None:
        self.process = os.getpid()
        #: a queue.SimpleQueue from which the threads take their jobs; None before the first
        self.hands: Any = None
        self.threads = self.idle = 0
        #: how many threads work for each owner, and how many of them wait for the loop meanwhile
        self.working: dict[str, int] = {}
        self.blocking: dict[str, int] = {}
        #: by owner, the jobs for which there is no thread yet, oldest first
        self.waiting: OrderedDict[str, OrderedDict[asyncio.Future[Any], ThreadJob]] = OrderedDict()

    async def run(self, fn: Callable[..., Any], *args: Any, owner: str = "") -> Any:
        """Return what fn(*args) returns, from a thread.

        `owner` is for whom: a stable key of the principal, or "" for calls that are not counted.
        Raises RuntimeError if there is no thread and none can be started.
        """
        if self.process != os.getpid():  # a fork copies no threads
            self.lock, self.drains = threading.Lock(), []
            self._start_over()
        loop = asyncio.get_running_loop()
        call = functools.partial(contextvars.copy_context().run, fn, *args)
        with self.lock:
            if self.hands is None:
                import queue

                self.hands = queue.SimpleQueue()
            job = ThreadJob(owner, loop, loop.create_future(), call, self.hands)
            self.waiting.setdefault(owner, OrderedDict())[job.future] = job
            try:
                self._assign()
            except RuntimeError:
                self._forget(job)
                raise
        try:
            return await job.future
        except asyncio.CancelledError:
            with self.lock:
                self._forget(job)
            raise

    def _forget(self, job: ThreadJob) -> None:
        """Drop a job that no thread has taken."""
        jobs = self.waiting.get(job.owner)
        if jobs is not None:
            jobs.pop(job.future, None)
            if not jobs:
                del self.waiting[job.owner]

    def _assign(self) -> None:
        """Give the waiting jobs to threads, in turn to each owner, as far as its share allows."""
        while True:
            free = (owner for owner in self.waiting if self._may_work(owner))
            owner = next(free, None)
            if owner is None:
                return
            if not self.idle:
                name = f"mcp_lite-{self.threads + 1}"
                thread = threading.Thread(None, self._work, name, (self.hands,), daemon=True)
                thread.start()  # counted only if it could be started
                self.threads += 1
                self.idle += 1
            jobs = self.waiting.pop(owner)
            _, job = jobs.popitem(last=False)
            if jobs:
                self.waiting[owner] = jobs  # behind the others
            self.idle -= 1
            self.working[owner] = self.working.get(owner, 0) + 1
            self.hands.put(job)

    def _may_work(self, owner: str) -> bool:
        limit, mine = self.limit, self.working.get(owner, 0)
        others = sum(self.working.values()) - mine
        return mine < (limit - others if not owner else share_of(limit, others))

    def _work(self, hands: Any) -> None:
        settle: Callable[[], None] | None
        while True:
            job = hands.get()
            if job is None:
                return
            self.local.job = job
            try:  # a job that was cancelled before its turn is not called
                value = None if job.future.cancelled() else job.call()
                settle = functools.partial(_settle, job.future, value, None)
            except BaseException as exc:  # the caller decides what to do about it
                settle = functools.partial(_settle, job.future, None, exc)
            stays = self._finish(job)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                job.loop.call_soon_threadsafe(settle)
            # An idle thread must not keep results alive.
            self.local.job = job = value = settle = None
            if not stays:
                return

    def _finish(self, job: ThreadJob) -> bool:
        """Note that a job is done; return whether its thread is wanted for another one."""
        with self.lock:
            if job.hands is not self.hands:  # a closed pool's thread works off its own queue
                return True
            _count(self.working, job.owner, -1)
            stays = self.threads - sum(self.blocking.values()) <= self.limit
            if stays:
                self.idle += 1
            else:
                self.threads -= 1
            with contextlib.suppress(RuntimeError):  # no new thread can start: this one goes on
                self._assign()
            if not self.working and not self.blocking:
                self._end_drains()
            return stays

    def _end_drains(self) -> None:
        for loop, future in self.drains:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, future, None, None)

    @contextlib.contextmanager
    def blocked(self) -> Generator[None, None, None]:
        """Let another thread work while this one waits for the loop; elsewhere it does nothing.

        Raises RPCError -- too busy -- when too many threads wait already.
        """
        job: ThreadJob | None = getattr(self.local, "job", None)
        if job is None or job.hands is not self.hands:
            yield
            return
        with self.lock:
            mine = self.blocking.get(job.owner, 0)
            others = sum(self.blocking.values()) - mine
            most = MAX_BLOCKED_THREADS
            if mine >= (most - others if not job.owner else share_of(most, others)):
                raise RPCError(TOO_BUSY, "too many threads of this server wait for an answer")
            _count(self.working, job.owner, -1)
            _count(self.blocking, job.owner, 1)
            with contextlib.suppress(RuntimeError):  # the next call of run() will say so
                self._assign()
        try:
            yield
        finally:
            with self.lock:
                if job.hands is self.hands:
                    _count(self.blocking, job.owner, -1)
                    _count(self.working, job.owner, 1)  # more than the limit, for a while

    async def drain(self, seconds: float | None) -> bool:
        """Wait until no job runs or waits, at most so long (None: for ever).

        Returns whether all are done. close() ends the waiting.
        """
        loop = asyncio.get_running_loop()
        entry = loop, loop.create_future()
        with self.lock:
            if not self.working and not self.blocking:
                return True
            self.drains.append(entry)
        try:
            done, _ = await asyncio.wait({entry[1]}, timeout=seconds)
            return bool(done)
        finally:
            with self.lock, contextlib.suppress(ValueError):
                self.drains.remove(entry)

    def close(self) -> None:
        """Let the threads end when all jobs are done; run() starts new threads."""
        with self.lock:
            for jobs in self.waiting.values():
                for job in jobs.values():
                    self.hands.put(job)
            for _ in range(self.threads):
                self.hands.put(None)
            self._end_drains()
            self._start_over()


def share_of(limit: int, others: int) -> int:
    """Return how many of `limit` places one owner may take, when `others` are taken by others.

    It is half of what is left over, and at least one.

    >>> [share_of(40, others) for others in (0, 20, 30, 39, 40)]
    [20, 10, 5, 1, 1]
    """
    return max(1, (limit - others + 1) // 2)


def _count(counts: dict[str, int], owner: str, change: int) -> None:
    """Change a count; a count of nothing is left out."""
    counts[owner] = counts.get(owner, 0) + change
    if not counts[owner]:
        del counts[owner]


def _settle(future: asyncio.Future[Any], value: Any, exc: BaseException | None) -> None:
    if future.done():
        return
    if exc is None:
        future.set_result(value)
    elif isinstance(exc, (StopIteration, GeneratorExit, SystemExit, KeyboardInterrupt)):
        # A future cannot carry the first, the second would close the coroutines that wait for it
        # instead of being raised in them, and the loop would end with the others.
        problem = RuntimeError(f"{type(exc).__name__} was raised: {exc}")
        problem.__cause__ = exc
        future.set_exception(problem)
    else:
        future.set_exception(exc)


class Shares:
    """A Budget for each client, by a stable key: its owner, or its address.

    >>> shares = Shares((1, 60.0))
    >>> [shares.of(who).take(0.0) for who in ("alice", "bob", "alice")]
    [True, True, False]
    """

    def __init__(self, rate: tuple[float, float]) -> None:
        self.rate, self.lock = rate, threading.Lock()
        #: the one that was silent for longest first
        self.budgets: OrderedDict[str, Budget] = OrderedDict()

    def of(self, client: str) -> Budget:
        """Return the budget of a client; called from any thread."""
        with self.lock:
            budget = self.budgets.setdefault(client, Budget(*self.rate))
            self.budgets.move_to_end(client)
            if len(self.budgets) > MAX_CLIENTS:
                self.budgets.popitem(last=False)
        return budget


class Watchdog:
    """Ends the process, from a thread of its own, when it has not ended in time.

    A handler may swallow its cancellation, or block the event loop: a server that was told to end
    must not live on with it.
    """

    def __init__(self) -> None:
        self.timer: threading.Timer | None = None

    def begin(self, seconds: float, status: int = 1) -> None:
        """End the process in so many seconds, unless that is due already."""
        if self.timer is None:
            self.timer = threading.Timer(seconds, self._bite, (status,))
            self.timer.daemon = True
            self.timer.start()

    def _bite(self, status: int) -> None:
        logger.error("a handler did not end in time: the process ends without it")
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)

    def stop(self) -> None:
        """Let the process live: it has ended its serving."""
        if self.timer is not None:
            self.timer.cancel()


class LoopWatch:
    """A thread that warns when something does not let an event loop go on.

    It costs the work on the loop nothing: once a second it asks the loop for a sign of life, and
    only while `busy()`. `place` tells where a thread stands.
    """

    def __init__(
        self, busy: Callable[[], Any], place: Callable[[types.FrameType | None], str]
    ) -> None:
        self.busy, self.place = busy, place
        #: whether nobody waits for this process any more; where that is so, and the loop stands
        #: still, the process ends
        self.deserted: Callable[[], bool] | None = None
        self.loop, self.thread = asyncio.get_running_loop(), threading.get_ident()
        self.alive, self.stopped = threading.Event(), threading.Event()
        thread = threading.Thread(None, self._watch, "mcp_lite watch", daemon=True)
        with contextlib.suppress(RuntimeError):  # no more threads are to be had
            thread.start()

    def stop(self) -> None:
        """Watch no longer."""
        self.stopped.set()
        self.alive.set()

    def _watch(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while not self.stopped.wait(BLOCKED_SECONDS):
                if self.busy() and not self._goes_on():
                    self._tell()
                    self._outlast()

    def _goes_on(self) -> bool:
        """Return whether the loop has a turn for us in time."""
        self.alive.clear()
        self.loop.call_soon_threadsafe(self.alive.set)
        # A whole process that was stopped, and goes on, deserves a second look.
        return self.alive.wait(BLOCKED_SECONDS) or self.alive.wait(BLOCKED_SECONDS / 10)

    def _tell(self) -> None:
        if not self.stopped.is_set():
            frame = sys._current_frames().get(self.thread)
            remedy = "a handler that blocks is to be a plain `def`: it runs in a thread"
            logger.warning("the event loop stands still: %s; %s", self.place(frame), remedy)

    def _outlast(self) -> None:
        """Wait until the loop goes on; end the process if nobody waits for it any more."""
        watchdog = Watchdog()
        while not self.alive.wait(BLOCKED_SECONDS):
            if self.deserted is not None and self.deserted():
                watchdog.begin(GRACE_SECONDS)
        watchdog.stop()


###############################################################################
# 8. Channels
###############################################################################
# Uses sections 1 to 3 and 7.
#
# Problem.  A conversation needs a channel. The channel should know nothing of what it carries.
#           Much may be said at once to a reader who is slow.
# Rules.    1. A Transport carries messages and knows nothing of what they mean.
#           2. News that wait for a reader are bounded, in number and in bytes. The same thing said
#              twice is said once. A reader who is too slow is let go.
# Plan.     Outbox, the news for one reader; Transport, and the pair in memory.
# Not here. Pipes: section 25. HTTP: sections 38 and 43. What is done with a message: section 10.

__all__ += ["Transport", "memory_transports"]

MAX_WAITING = 2500  # announcements for one reader: everything that it may watch, at once
MAX_WAITING_BYTES = 4 * 1024 * 1024  # ... in all; a single one may have any size
MAX_INBOX = 1000  # messages waiting in an in-memory transport; a writer waits beyond that



#: Announcements that only say that something has changed.
STATES = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}
STATES |= {"notifications/resources/updated", "notifications/tasks"}
#: Numbers for the keys of messages that are never said twice.
_serial = itertools.count()


def subject_of(msg: Msg) -> tuple[str, Any]:
    """Return what a notification is about: of two with one subject, the later says it all.

    >>> subject_of({"method": "notifications/resources/updated", "params": {"uri": "note://a"}})
    ('notifications/resources/updated', 'note://a')
    """
    params, method = msg.get("params", {}), msg["method"]
    if method not in STATES:  # a line of a log, say: each is news
        return method, next(_serial)
    return method, params.get("uri", params.get("taskId"))


class Outbox:
    """Messages that no request caused, on their way to one reader.

    put() is called from any thread. In that thread `wake` is called when there is something to
    send: deliver() must follow, on the loop. `too_slow` is called once, when more waits than may.
    """

    __slots__ = ("send", "wake", "too_slow", "held", "lock", "waiting", "size", "awake",
                 "closed")  # fmt: skip

    def __init__(
        self, send: Send, wake: Callable[[], Any], too_slow: Callable[[], Any] | None = None,
        held: bool = False,
    ) -> None:  # fmt: skip
        self.send, self.wake, self.too_slow = send, wake, too_slow
        #: whether the reader is not ready yet; release() says when
        self.held = held
        self.lock = threading.Lock()
        #: by subject, each with its size in bytes
        self.waiting: dict[Any, tuple[Msg, int]] = {}
        self.size = 0
        #: whether deliver() is running, or about to
        self.awake = False
        self.closed = False

    def put(self, msg: Msg, size: int) -> bool:
        """Take a message of so many bytes; return False if there is no room for it."""
        record = msg["method"] == "notifications/message"
        with self.lock:
            if self.closed:
                return False
            # Log records leave half of the room to what the client relies on.
            fits = self._keep(msg, size, 2 if record else 1)
        if fits:
            self._wake()
        elif not record:
            self.close()
            if self.too_slow is not None:
                self.too_slow()
        return fits

    def _keep(self, msg: Msg, size: int, share: int) -> bool:
        subject = subject_of(msg)
        before = self.waiting.get(subject)
        total = self.size + size - (before[1] if before else 0)
        if self.waiting and total > MAX_WAITING_BYTES // share:
            return False
        if before is None and len(self.waiting) >= MAX_WAITING // share:
            return False
        self.waiting[subject], self.size = (msg, size), total
        return True

    def _wake(self) -> None:
        with self.lock:
            if self.awake or self.held or not self.waiting:
                return
            self.awake = True
        self.wake()

    def release(self) -> None:
        """Begin to send: the reader is ready."""
        self.held = False
        self._wake()

    async def deliver(self) -> None:
        """Send what waits, and what comes meanwhile, one after the other."""
        try:
            msg = self._next()
            while msg is not None:
                await self.send(msg)
                msg = self._next()
        except BaseException as exc:
            self.close()
            if not isinstance(exc, ConnectionClosed):
                raise

    def _next(self) -> Msg | None:
        with self.lock:
            self.awake = bool(self.waiting)
            if not self.awake:
                return None
            msg, size = self.waiting.pop(next(iter(self.waiting)))
            self.size -= size
            return msg

    def close(self) -> None:
        """Forget what waits, and take no more."""
        with self.lock:
            self.closed, self.size = True, 0
            self.waiting.clear()


class Transport:
    """A channel for one conversation. Subclass it to bring your own; read() and write() are due.

    An end is used from one event loop, by one reader and any number of writers.
    """

    #: what to call the other end in messages
    name = "peer"
    #: whom to tell that a request of ours cannot be answered, and why; set by the Peer (section 10)
    failed: Callable[[ReqId, MCPError], None] = staticmethod(lambda req_id, exc: None)
    #: whom to tell that announcements may have been missed, and whether the session is gone as
    #: well; set by the Client (section 29)
    interrupted: Callable[[bool], Any] = staticmethod(lambda expired: None)
    #: whether the channel goes on when the server at its other end is started again
    outlives_server = False
    #: whether asked_in() knows which request of ours a question belongs to
    links_questions = False
    #: seconds that running requests get when the channel has ended; None for as long as it takes
    grace: float | None = GRACE_SECONDS
    #: whether it waits for a person who logs in: no request is given up meanwhile
    waits_for_person = False
    #: whether the other end has ended before it read anything: our words are not the reason
    deaf = False

    async def open(self) -> None:
        """Connect; raise ConnectionClosed with the reason if that fails."""

    async def read(self) -> list[Any]:
        """Return the next messages, encoded; a ProtocolError among them for one that could not be
        read; [] when the channel has ended."""
        raise NotImplementedError

    async def write(self, msg: Msg | list[Msg]) -> int | None:
        """Send a message or a batch; wait while the other end is slow. May return its bytes.

        Raises ConnectionClosed if the channel has ended, TypeError or ValueError for a message
        that JSON cannot say.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """End the channel; from any task, any number of times."""

    def abandon(self, req_id: ReqId) -> bool:
        """Hear that an answer is not wanted; return True if the channel itself tells the server.

        Over HTTP it does, in the modern era: the connection of the request is closed.
        """
        return False

    def asked_in(self, req_id: JSON) -> ReqId | None:
        """Return the request of ours in whose answer a question came; None if nobody knows."""
        return None

    def renew(self) -> None:
        """Forget what was agreed, before a new handshake."""

    def agreed(self, rev: Revision) -> None:
        """Hear which revision the conversation speaks, once that is settled."""

    def learn_tool(self, tool: Msg) -> None:
        """Hear of a tool of a modern server; raise SchemaError if this channel cannot call it."""

    def explain(self) -> str:
        """Return why the channel ended, as the end of a sentence."""
        return "closed the connection"

    def hint(self) -> str:
        """Return what may be amiss while an answer is missing, or an empty string."""
        return ""


class MemoryTransport(Transport):
    """One end of a pair in memory. Messages are encoded and decoded, as on any wire."""

    name = "in-memory peer"

    def __init__(self) -> None:
        self.other: MemoryTransport = self
        self.inbox: deque[bytes] = deque()
        self.closed = False
        #: futures to settle when something was put into the inbox, and taken out; with their loops
        self.readers: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = deque()
        self.writers: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = deque()

    async def read(self) -> list[Any]:
        """Return the messages that have come."""
        await _sleep_until(lambda: self.inbox or self.closed, self.readers)
        items = []
        while self.inbox:
            items.append(self.inbox.popleft())
        _wake_all(self.writers)
        return items

    async def write(self, msg: Msg | list[Msg]) -> int | None:
        """Put a message into the other end's inbox, when there is room."""
        data = encode(msg)
        other = self.other
        await _sleep_until(lambda: len(other.inbox) < MAX_INBOX or other.closed, other.writers)
        if self.closed or other.closed:
            raise ConnectionClosed(f"the {self.name} {self.explain()}")
        other.inbox.append(data)
        _wake_all(other.readers)
        return len(data)

    async def close(self) -> None:
        """End both directions."""
        for end in (self, self.other):
            end.closed = True
            _wake_all(end.readers)
            _wake_all(end.writers)


async def _sleep_until(ready: Callable[[], Any], sleepers: deque[Any]) -> None:
    loop = asyncio.get_running_loop()
    while not ready():
        future = loop.create_future()
        sleepers.append((loop, future))
        if not ready():  # the other end, in its thread, may have woken all just before
            await future


def _wake_all(sleepers: deque[Any]) -> None:
    while sleepers:
        with contextlib.suppress(IndexError, RuntimeError):  # woken already; its loop has ended
            loop, future = sleepers.popleft()
            loop.call_soon_threadsafe(_settle, future, None, None)


def memory_transports() -> tuple[Transport, Transport]:
    """Return the two ends of a channel in memory; they may be used in two threads."""
    ours, theirs = MemoryTransport(), MemoryTransport()
    ours.other, theirs.other = theirs, ours
    return ours, theirs

###############################################################################
# 9. Requests of ours
###############################################################################
# Uses sections 1 to 3, 5 and 7.
#
# Problem.  Both ends of a conversation send requests, client and server alike. Whoever sends one
#           waits for its answer, and may be cancelled, lose patience, or lose the channel.
# Rules.    1. One class asks, for client and server. It knows no channel: every request comes with
#              `send`, the way to the peer.
#           2. Whoever gives a request up tells the peer so, and drops the answer if it still comes.
#           3. A user's callback harms nothing: what it raises goes to the log.
# Plan.     The trace hook; Asker: ask(), and what ends its waiting.
# Not here. The requests of the peer, and the channel: section 10.

MAX_REPORTS = 100  # progress callbacks of one request that run at once; more are left out


#: Sees every message of every conversation: trace(direction, peer's name, message).
#: The direction is ">" for what we send, "<" for what we receive.
Trace = Callable[[str, str, JSON], None]
_trace: Trace | None = None


def set_trace(trace: Trace | None) -> None:
    """Show every message to `trace`; None ends it."""
    global _trace
    _trace = trace


class Asker:
    """The half of a conversation that asks: requests of ours, and what becomes of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.outgoing = Outgoing()
        self.tasks = Tasks(self.make_room)
        #: why nothing more can be sent, once the channel has ended
        self.lost: ConnectionClosed | None = None
        self.transport: Transport | None = None

    def make_room(self) -> None:
        """Hear that a task has ended, or that the peer must be heard: more may be read now."""

    async def ask(
        self,
        method: str,
        params: Msg | None,
        send: Send,
        *,
        patience: float = REQUEST_SECONDS,
        longest: float = LONGEST_REQUEST_SECONDS,
        on_progress: Callable[..., Any] | None = None,
    ) -> Msg:
        """Send a request and return its result.

        Raises RemoteError, RequestTimeout or ConnectionClosed. When the caller is cancelled or
        loses patience, the peer is told to stop.
        """
        if self.lost is not None:
            raise ConnectionClosed(str(self.lost))
        loop, params = asyncio.get_running_loop(), dict(params or {})
        meta = dict(params.get("_meta", {}))
        pending = self.outgoing.open(method, loop.time(), patience, longest)
        pending.on_progress = on_progress
        pending.waiter = loop.create_future()
        pending.timer = loop.call_at(pending.deadline, self._expire, pending, send)
        # Progress renews the deadline, so every request asks for it.
        params["_meta"] = {**meta, "progressToken": pending.req_id}
        # As a task, since the deadline holds for a peer that has stopped reading, too.
        delivery = self._deliver(request(pending.req_id, method, params), pending.waiter, send)
        pending.sending = self.tasks.spawn(delivery)
        self.make_room()  # the answer must be read, however much is running here
        try:
            answer: Msg = await pending.waiter
            if pending.reports:
                await asyncio.wait(pending.reports)
            return answer
        except asyncio.CancelledError:
            self._abandon(pending, send, "the caller was cancelled")
            raise
        finally:
            self.outgoing.settle(pending.req_id)
            pending.timer.cancel()

    async def _deliver(self, msg: Msg, waiter: asyncio.Future[Any], send: Send) -> None:
        try:
            await send(msg)
        except Exception as exc:
            _settle(waiter, None, exc)

    def _expire(self, pending: Pending, send: Send) -> None:
        loop = asyncio.get_running_loop()
        if self.transport is not None and self.transport.waits_for_person:
            pending.deadline = loop.time() + pending.patience
        if loop.time() < pending.deadline:  # progress came meanwhile
            pending.timer = loop.call_at(pending.deadline, self._expire, pending, send)
            return
        self._abandon(pending, send, "timeout")
        waited = f"{self.name} did not answer {pending.method} within {pending.patience:g} seconds"
        hint = self.transport.hint() if self.transport else ""
        problem = RequestTimeout("; ".join(filter(None, (waited, hint))))
        _settle(pending.waiter, None, problem)

    def _abandon(self, pending: Pending, send: Send, reason: str) -> None:
        """Tell the peer that an answer is no longer wanted."""
        open_still = self.outgoing.settle(pending.req_id)
        pending.sending.cancel()
        if self.transport is not None and self.transport.abandon(pending.req_id):
            return
        # spec 2025-11-25: basic/utilities/cancellation#behavior-requirements -- never initialize
        if open_still and pending.method != "initialize" and self.lost is None:
            params = {"requestId": pending.req_id, "reason": reason}
            self.tasks.spawn(send(notification("notifications/cancelled", params)))

    def settle(self, msg: Msg) -> None:
        """Give an answer to whoever waits for it; a late one is dropped."""
        pending = self.outgoing.settle(msg.get("id"))
        if pending is None:
            if msg.get("id") is None:
                logger.warning("%s could not read a message of ours: %s", self.name, msg["error"])
        elif "result" in msg:
            _settle(pending.waiter, msg["result"], None)
        else:
            problem = msg["error"]
            exc = RemoteError(problem["code"], problem["message"], problem.get("data"))
            _settle(pending.waiter, None, exc)

    def progress(self, params: Msg) -> None:
        """Report progress to whoever waits, and wait longer."""
        pending = self.outgoing.renew(params, asyncio.get_running_loop().time())
        if pending is None or pending.on_progress is None:
            return
        if len(pending.reports) >= MAX_REPORTS:
            return  # the callback is too slow, and reports may be left out
        report = (params["progress"], params.get("total"), params.get("message"))
        self.call(pending.on_progress, *report, into=pending.reports)

    def call(self, callback: Callable[..., Any], *args: Any, into: set[Any] | None = None) -> None:
        """Call a user's callback, plain or async; what it raises goes to the log.

        Tasks of async callbacks are put `into` a set while they run.
        """
        try:
            outcome = callback(*args)
        except Exception:
            logger.exception("the callback %r failed", callback)
            return
        if inspect.isawaitable(outcome):
            task = self.tasks.spawn(_await(outcome))
            if into is not None and not task.done():
                into.add(task)
                task.add_done_callback(into.discard)


async def _await(outcome: Awaitable[Any]) -> Any:
    return await outcome


###############################################################################
# 10. Peer
###############################################################################
# Uses sections 1 to 3, 5 to 7 and 9.
#
# Problem.  The other half of a conversation: the peer sends requests and cancels them, and it may
#           send them faster than they can be served.
# Rules.    1. A Peer knows one conversation and no channel: the way back, `send`, comes with each
#              message. On a pipe it is the same for all; on HTTP it is that POST's answer.
#           2. One task per incoming request. Everything else is done on the spot.
#           3. A full server still hears: cancellations, pings and answers are read at once. New
#              requests wait, up to a bound in bytes, and are refused beyond it.
#           4. When the channel ends, what we asked fails at once, saying why; what we serve has a
#              period of grace.
#           5. Whatever a handler raises is the answer to its request, and harms nothing else.
# Plan.     Peer: a message arrives; requests of the peer; the channel. Then answers that cannot be
#           sent as they are.
# Not here. What requests mean: Conversation (section 22) and Client (28) give a Peer its `serve`.

MAX_BATCH = 1000  # messages in one batch; JSON-RPC names no bound
MAX_IN_FLIGHT = 1024  # requests of one peer being served at once; more wait for their turn
FAREWELL_SECONDS = 0.5  # for the last answers of a conversation to leave


class Peer(Asker):
    """One conversation: the requests in flight both ways, over any channel.

    `serve(exchange)` answers a request, `on_notification(msg, send, caller)` hears a notification.
    With `many_clients` the Peer serves requests of many clients, whose ids may be the same: none
    can be cancelled by its id. The modern era over HTTP is served by one such Peer.
    """

    def __init__(
        self,
        name: str,
        serve: Callable[[Exchange], Awaitable[Msg]],
        on_notification: Callable[[Msg, Send, Caller], None],
        max_in_flight: int = MAX_IN_FLIGHT,
        many_clients: bool = False,
    ) -> None:
        super().__init__(name)
        self.serve = serve
        self.on_notification = on_notification
        self.max_in_flight = max_in_flight
        self.many_clients = many_clients
        self.session = Session()
        self.incoming: dict[Any, Exchange] = {}
        #: called once, when the channel has ended
        self.on_lost: Callable[[], Any] = nothing
        #: watch(exchange) begins the record of a request (section 21), or gives None
        self.watch: Callable[[Exchange], Any] | None = None
        #: on_refusal(msg, caller, answer) hears of a message that was not taken on
        self.on_refusal: Callable[..., Any] = nothing
        self._room: asyncio.Future[Any] | None = None
        #: what waits until there is room for it
        self.held = HeldMessages()
        self.resuming = False

    # A message arrives.

    def receive(self, data: Any, send: Send, caller: Caller = NOBODY) -> None:
        """Take one message, encoded or decoded, or a ProtocolError in its place, off the wire."""
        try:
            if isinstance(data, ProtocolError):
                raise data
            msg = decode(data) if isinstance(data, bytes) else data
        except ProtocolError as exc:
            self.show("<", exc)
            if not self._answer_is_broken(data if isinstance(data, bytes) else exc.start, exc):
                self.refuse(exc, send)
            return
        self.show("<", msg)
        full = self.held or len(self.incoming) >= self.max_in_flight
        if full and may_wait(msg) and not self._depends_on_the_peer():
            self._hold(data if isinstance(data, bytes) else encode(data), msg, send, caller)
        else:
            self._take(msg, send, caller)

    def _take(self, msg: JSON, send: Send, caller: Caller) -> None:
        """Do what a decoded message, or a batch, asks for."""
        if type(msg) is not list:
            self.dispatch(msg, send, caller)
            return
        try:
            self.check_batch(msg)
        except ProtocolError as exc:
            if not [item for item in msg[:MAX_BATCH] if self._is_broken(item, exc)]:
                self.refuse(exc, send)
        else:
            self.tasks.spawn(self.reply_batch(msg, send, caller))

    # A server that is full still hears cancellations, pings and answers. New requests wait.

    def _depends_on_the_peer(self) -> bool:
        """Return whether all that is served waits for answers of the peer.

        The peer may be waiting for its next request in turn, so that one must not wait too.
        """
        return len(self.outgoing.pending) >= len(self.incoming)

    def _hold(self, data: bytes, msg: JSON, send: Send, caller: Caller) -> None:
        """Keep a message until there is room for it; refuse it if too many wait already."""
        key = object() if type(msg) is list else msg["id"]
        if key in self.held or key in self.incoming:
            problem = RPCError(INVALID_REQUEST, f"a request with id {key!r} is still running")
            self.refuse(problem, send, msg, caller)
        elif not self.held.put(key, data, send, caller):
            problem = RPCError(TOO_BUSY, "too many requests wait for their turn")
            self.refuse(problem, send, msg, caller)

    def _resume(self) -> None:
        """Take on what waits, oldest first, as far as there is room."""
        if self.resuming:  # a request that ends at once comes here from the loop below
            return
        self.resuming = True
        try:
            while self.held and (self._has_room() or self._depends_on_the_peer()):
                data, send, caller = self.held.take()
                self._take(decode(data), send, caller)
        finally:
            self.resuming = False

    def _has_room(self) -> bool:
        return len(self.incoming) < self.max_in_flight and not self._crowded()

    def show(self, direction: str, msg: Any) -> None:
        """Show a message to the trace, if there is one."""
        if _trace is not None:
            _trace(direction, self.name, msg)

    def dispatch(self, msg: JSON, send: Send, caller: Caller = NOBODY) -> None:
        """Do what one message asks for; answers go to `send`."""
        try:
            kind = classify(msg)
            exchange = self.accept(msg, send, caller) if kind is REQUEST else None
        except (ProtocolError, RPCError) as exc:
            self.refuse(exc, send, msg, caller)
            return
        if exchange is not None:
            self.tasks.spawn(self.reply(exchange))
        elif kind is NOTIFICATION:
            self._hear(msg, send, caller)
        else:
            self.settle(msg)

    def check_batch(self, batch: list[JSON]) -> None:
        """Raise ProtocolError for a batch that the revision, or reason, does not allow."""
        rev = self.session.rev
        if not rev.batching:
            # Only one revision has batches.
            raise ProtocolError(f"revision {rev.name} has no batches; send one message at a time")
        if not batch:
            raise ProtocolError("a batch must not be empty")
        if len(batch) > MAX_BATCH:
            raise LimitExceeded(f"a batch has more than {MAX_BATCH} messages")

    def reply_batch(
        self, batch: list[JSON], send: Send, caller: Caller = NOBODY
    ) -> Awaitable[None]:
        """Take on the messages of a batch; the awaitable sends their answers as one batch."""
        answers: list[Msg | None] = []
        running: list[tuple[Exchange, asyncio.Task[Msg | None]]] = []
        for msg in batch:
            try:
                if classify(msg) is not REQUEST:
                    self.dispatch(msg, send, caller)
                elif msg["method"] == "initialize":
                    # spec 2025-03-26: basic/lifecycle#initialization -- never part of a batch
                    raise RPCError(INVALID_REQUEST, "initialize must not be part of a batch")
                else:
                    exchange = self.accept(msg, send, caller)
                    running.append((exchange, self.tasks.spawn(self._handle_watched(exchange))))
            except (RPCError, ProtocolError) as exc:
                answers.append(self.refusal(exc, msg))
        return self._send_batch(answers, running, send)

    async def _handle_watched(self, exchange: Exchange) -> Msg | None:
        """Serve a request of a batch: how many bytes its own answer has, nobody counts."""
        answer, watch = None, self.watch and self.watch(exchange)
        try:
            answer = await self.handle(exchange)
            return answer
        finally:
            if watch is not None:
                watch.end(answer, None)

    async def _send_batch(
        self,
        answers: list[Msg | None],
        running: list[tuple[Exchange, asyncio.Task[Msg | None]]],
        send: Send,
    ) -> None:
        if running:
            await asyncio.wait([task for _, task in running])
        for exchange, task in running:
            answer = None if task.cancelled() else task.result()
            answers.append(answer and sayable(exchange, answer))
        batch = [answer for answer in answers if answer is not None]
        # JSON-RPC 2.0 §6: "the Server MUST NOT return an empty Array"
        if not batch:
            return
        try:
            await send(batch)  # type: ignore[arg-type]
        except LimitExceeded as exc:
            problem = {"code": INTERNAL_ERROR, "message": f"the batch cannot be answered: {exc}"}
            batch = [error(answer.get("id"), problem) for answer in batch]
            await send(batch)  # type: ignore[arg-type]

    def refuse(
        self, exc: MCPError, send: Send, msg: JSON = None, caller: Caller = NOBODY
    ) -> None:
        """Send the error for a message that cannot be taken, if it may be answered."""
        answer = self.refusal(exc, msg)
        if answer is not None:
            self.on_refusal(msg, caller, answer)
            self.tasks.spawn(send(answer))

    def refusal(self, exc: MCPError, msg: JSON = None) -> Msg | None:
        """Return the error for a message that cannot be taken; None if it is never answered.

        An answer is never answered: the caller who waits for it gets an exception instead. Nor is
        a notification whose parameters are malformed.
        """
        if self._is_broken(msg, exc):
            return None
        logger.warning("%s sent a message that cannot be taken: %s", self.name, exc)
        known = msg if type(msg) is dict else {}
        answer = error(readable_id(msg), wire_error(exc))
        # spec: basic/patterns/cancellation#error-handling -- "Malformed notifications" are ignored
        if answer["error"]["code"] == INVALID_PARAMS and "method" in known and "id" not in known:
            return None
        if "id" not in answer and not self.session.rev.error_without_id:
            answer["id"] = None  # JSON-RPC 2.0 §5: "it MUST be Null"
        return answer

    def _answer_is_broken(self, data: bytes, exc: ProtocolError) -> bool:
        """Do the same as _is_broken() for bytes that cannot be decoded."""
        is_answer, req_id = find_answer(data)
        return is_answer and self._is_broken({"id": req_id, "result": None}, exc)

    def _is_broken(self, msg: JSON, exc: MCPError) -> bool:
        """Return whether a message that cannot be taken is an answer; then its request fails.

        An answer without an id belongs to the only request in flight, if there is only one.
        """
        if type(msg) is not dict or "method" in msg or not ("result" in msg or "error" in msg):
            return False
        logger.warning("%s sent an answer that cannot be taken: %s", self.name, exc)
        req_id, pending = msg.get("id"), self.outgoing.pending
        if req_id is None and len(pending) == 1:
            req_id = next(iter(pending))
        request = self.outgoing.settle(req_id)
        if request is not None:
            problem = f"{self.name} answered {request.method} with a malformed message: {exc}"
            _settle(request.waiter, None, ProtocolError(problem))
        return True

    # Requests of the peer.

    def accept(
        self, msg: Msg, send: Send, caller: Caller = NOBODY, modern: bool | None = None
    ) -> Exchange:
        """Take a request on; from now on it can be cancelled. handle() or reply() must follow.

        Raises RPCError if its id is taken or too many requests are running.
        """
        exchange = Exchange(msg, send, caller, modern)
        if self.many_clients:
            exchange.key = object()
        if exchange.key in self.incoming:
            # spec: basic/index#requests -- the id "MUST NOT match the ID of any other request"
            raise RPCError(INVALID_REQUEST, f"a request with id {msg['id']!r} is still running")
        if len(self.incoming) >= self.max_in_flight and exchange.method != "ping":
            raise RPCError(TOO_BUSY, f"more than {self.max_in_flight} requests are running")
        self.incoming[exchange.key] = exchange
        return exchange

    async def reply(self, exchange: Exchange) -> None:
        """Serve a request and send the answer."""
        watch, answer = self.watch and self.watch(exchange), None
        size: int | None = 0
        try:
            answer = await self.handle(exchange)
            if answer is None:
                return
            try:
                size = await exchange.send(answer)
            except UNSAYABLE as exc:
                answer = error_in_place(exchange, answer, exc)
                size = await exchange.send(answer)
        finally:
            if watch is not None:
                watch.end(answer, size)

    async def handle(self, exchange: Exchange) -> Msg | None:
        """Serve a request and return the answer, or None when it was cancelled."""
        exchange.task = exchange.task or asyncio.current_task()
        try:
            if exchange.state is CANCELLED:  # before this task could start
                return None
            answer = result(exchange.req_id, await self.serve(exchange))
        except asyncio.CancelledError:
            if exchange.state is not RUNNING or self.lost is not None:
                raise
            # A handler awaited something that somebody else cancelled.
            problem = {"code": INTERNAL_ERROR, "message": "the handler was cancelled"}
            answer = error(exchange.req_id, problem)
        except BaseException as exc:  # a handler ends neither the process nor another request
            if isinstance(exc, GeneratorExit) and not _runs(exchange.task):
                raise  # the loop has ended, and this coroutine is thrown away
            if not isinstance(exc, FOR_THE_PEER) and self.lost is None:
                logger.error("%s failed", exchange.title, exc_info=exc)
            answer = error(exchange.req_id, wire_error(exc))
        finally:
            del self.incoming[exchange.key]
            if self.held:
                self._resume()
        if exchange.state is DONE:  # _cut_off() has answered
            return None
        # spec: basic/patterns/cancellation#behavior-requirements -- "Not send a response"
        return None if exchange.advance("answer") is CANCELLED else answer

    def cancel(self, req_id: JSON, reason: JSON = None) -> bool:
        """Cancel a request that we serve; return False if there is none to cancel.

        spec: basic/patterns/cancellation#error-handling -- unknown, finished and malformed ones
        are ignored.
        """
        if not is_id(req_id):
            return False
        if self.held.drop(req_id):  # it never had its turn
            return True
        exchange = self.incoming.get(req_id)
        # spec 2025-11-25: basic/utilities/cancellation#behavior-requirements -- never initialize
        if exchange is None or exchange.method == "initialize" or exchange.state is CANCELLED:
            return False
        exchange.reason = reason if isinstance(reason, str) else None
        self.stop(exchange)
        return True

    def stop(self, exchange: Exchange) -> None:
        """Cancel a request: its client does not want the answer. One that is answered stays so."""
        if exchange.state is not RUNNING:
            return
        what = repr(exchange.req_id)[:100], repr(exchange.reason)[:200]  # the peer wrote both
        logger.info("%s cancelled request %s: %s", self.name, *what)
        exchange.advance("cancel")
        if exchange.task is not None:
            exchange.task.cancel()

    def _hear(self, msg: Msg, send: Send, caller: Caller) -> None:
        params = msg.get("params", {})
        if msg["method"] == "notifications/cancelled":
            if not self.cancel(params.get("requestId"), params.get("reason")):
                # by this a server may end a subscription of its client
                self.call(self.on_notification, msg, send, caller)
        elif msg["method"] == "notifications/progress":
            self.progress(params)
        else:
            self.call(self.on_notification, msg, send, caller)

    # The channel.

    async def run(self, transport: Transport, grace: float | None = 0, farewell: str = "") -> None:
        """Read messages off a channel until it ends, then wind up the conversation.

        `grace` is how many seconds the requests that we serve get to finish; None for any number.
        `farewell` is the error that answers those that did not.
        """
        self.attach(transport)
        send = self.traced(transport.write)
        try:
            while True:
                items = await transport.read()
                if not items:
                    break
                for item in items:
                    await self._until_room()
                    self.receive(item, send)
            self.lose(ConnectionClosed(f"{self.name} {transport.explain()}"))
            await self.tasks.drain(grace)
        finally:
            await self.close(farewell)

    def _crowded(self) -> bool:
        """Return whether too many answers wait for the peer to read them."""
        # A request that is served has its own bound, and one of ours needs an answer to be read.
        busy = len(self.incoming) + len(self.outgoing.pending)
        return len(self.tasks.running) - busy >= self.max_in_flight

    async def _until_room(self) -> None:
        """Wait while the peer does not read what it was sent."""
        while self._crowded():
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def make_room(self) -> None:
        """Read on, and take on what waits, as far as there is room."""
        if self._room is not None:
            _settle(self._room, None, None)
        if self.held:
            self._resume()

    def attach(self, transport: Transport) -> None:
        """Let a channel tell what becomes of our requests."""
        self.transport = transport
        transport.failed = self.fail

    def fail(self, req_id: ReqId, exc: MCPError) -> None:
        """Fail a request of ours that the channel could not get answered."""
        pending = self.outgoing.settle(req_id)
        if pending is not None:
            _settle(pending.waiter, None, exc)

    def lose(self, reason: ConnectionClosed) -> None:
        """Fail everything that we asked for: no answer can come any more."""
        if self.lost is None:
            self.lost = reason
            self.on_lost()
        for pending in list(self.outgoing.pending.values()):
            self.outgoing.settle(pending.req_id)
            _settle(pending.waiter, None, self.lost)

    async def close(self, farewell: str = "") -> None:
        """End the conversation: fail what we asked for, cancel what we serve, with an error that
        says `farewell` if that is given."""
        self.lose(ConnectionClosed(f"the connection to {self.name} is closed"))
        if farewell:
            await self._cut_off(farewell)
        self.held.clear()
        mine = asyncio.current_task()
        for exchange in list(self.incoming.values()):
            # Over HTTP a request is served by the task of its connection, which is not ours.
            if exchange.task not in self.tasks.running and exchange.task is not mine:
                self.stop(exchange)
        await self.tasks.close()

    async def _cut_off(self, farewell: str) -> None:
        """Answer what is still running: whoever asked need not wait for the channel's end."""
        sending = set()
        for exchange in list(self.incoming.values()):
            if exchange.state is RUNNING and exchange.task is not None:
                exchange.advance("answer")
                sending.add(self.tasks.spawn(self._tell_end(exchange, farewell)))
        if sending:
            await asyncio.wait(sending, timeout=FAREWELL_SECONDS)

    async def _tell_end(self, exchange: Exchange, farewell: str) -> None:
        answer = error(exchange.req_id, {"code": TOO_BUSY, "message": farewell})
        if await exchange.send(answer) != 0:
            exchange.reason = farewell

    def traced(self, write: Callable[[Any], Awaitable[int | None]]) -> Send:
        """Return `write`, showing what it writes to the trace if there is one."""
        if _trace is None:
            return write

        async def send(msg: Any) -> int | None:
            if _trace is not None:
                _trace(">", self.name, msg)
            return await write(msg)

        return send


#: What a channel raises for a message that cannot be sent as it is.
UNSAYABLE = (TypeError, ValueError, RecursionError, LimitExceeded)


def error_in_place(exchange: Exchange, answer: Msg, exc: Exception) -> Msg:
    """Return the error that takes the place of an answer which cannot be sent, and say so.

    >>> exchange = Exchange(request(1, "tools/call", {"name": "dump"}), print)
    >>> error_in_place(exchange, {}, LimitExceeded("it is too long"))["error"]["message"]
    "the answer to tools/call of 'dump' cannot be sent: it is too long"
    """
    problem = f"the answer to {exchange.title} cannot be sent: {exc}"
    if isinstance(exc, LimitExceeded) and "structuredContent" in answer.get("result", {}):
        problem += "; a tool's result travels twice, as text and as structured content"
    logger.error("%s", problem)
    return error(exchange.req_id, {"code": INTERNAL_ERROR, "message": problem})


def sayable(exchange: Exchange, answer: Msg) -> Msg:
    """Return an answer, or the error in its place if it cannot be sent."""
    try:
        encode(answer)
    except UNSAYABLE as exc:
        return error_in_place(exchange, answer, exc)
    return answer


def nothing(*_: Any) -> Any:
    """Take any news, and do nothing."""


def _runs(task: Any) -> bool:
    """Return whether a task is the one that runs now."""
    with contextlib.suppress(RuntimeError):  # no loop runs at all
        return asyncio.current_task() is task
    return False

# =============================================================================
# Part III. A server
# =============================================================================

###############################################################################
# 11. JSON Schema
###############################################################################
# Pure. Uses sections 1 and 3.
#
# Problem.  A tool is described to a model by a JSON Schema, and what the model sends has to be
#           checked against it. The values come from strangers, and so do some of the schemas.
# Rules.    1. A schema is compiled once, into functions. Checking a value only calls them.
#           2. JSON's types decide, not Python's: 1.0 is an integer and equals 1; true is not 1.
#           3. `$ref` stays inside the document. Nothing is ever fetched.
#           4. Schema and value may both be hostile. Depth, size and work are bounded, and nothing
#              but SchemaError comes out, whatever goes in.
# Plan.     Failures, and the budget of one validation; patterns; the keywords, and their table
#           KEYWORDS. A keyword is compiled for a `doc`, the SchemaDocument of section 12: it
#           compiles the schemas inside a keyword, and doc.need() refuses what makes no sense.
# Not here. References between schemas: section 12. `format` and `content*`: by default they only
#           annotate. Dialects other than 2020-12 and draft-07. Regular expressions of ECMA 262 that
#           Python does not have.

__all__ += ["compile_schema", "Validator"]

MAX_VALIDATION_STEPS = 2_000_000  # work of one validation; about a second, see CheckRun
MAX_FAILURES = 8  # violations that are reported of one value; nobody reads more
MAX_PATH_STEPS = 32  # of the path to a violation that is reported; the rest is left out
MAX_PATTERN_CHARS = 1024  # one regular expression in a schema
MAX_PATTERN_INPUT_CHARS = 10_000  # text matched with one that may take the square of its length

#: A schema that is not just true or false.
Schema = dict[str, Any]
#: Steps from a value to a part of it, as (first step, the steps after it); () is the value itself.
#: A step in front of many paths costs the same as in front of one.
Path = tuple[Any, ...]

# A schema is an object of keywords. Some of them hold further schemas. Each schema becomes one
# function, its Check, which calls the checks of its keywords:
#
#     {"type": "array",                  check_schema
#      "items": {"minimum": 0,               check_type      an array?
#                "maximum": 9}}              check_inside    for each item:
#                                                check_schema
#                                                    check_limit   at least 0?
#                                                    check_limit   at most 9?
#
# A check returns a list of failures, which is empty for a value that is valid. It does not raise,
# because a failure is not always bad: `anyOf` tries its next schema then, and `not` wants one.


class Failure(NamedTuple):
    """One way in which a value falls short."""

    path: Path
    message: str
    expected: str = ""  #: the types or values that would fit, in words; "" if that is not the point
    kinds: frozenset[str] = frozenset()  #: ... and their JSON types


class Undecided(Exception):
    """A validation was given up, and nobody knows whether the value is valid.

    It is raised, not returned: `not` and `anyOf` would take a failure for an answer.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.path: Path = ()


class CheckRun:
    """The budget of one validation, and the scopes that it is in.

    A step is half a microsecond of work, on a machine of 2024. All work is paid for that schema and
    value can multiply: with references, a small schema can take a value apart for ever.
    """

    __slots__ = ("depth", "scopes", "steps")

    def __init__(self) -> None:
        self.steps, self.depth = MAX_VALIDATION_STEPS, 0
        self.scopes: tuple[str, ...] = ()  # URIs of the scopes; see SchemaDocument

    def spend(self, steps: int) -> None:
        """Pay for work before it is done."""
        self.steps -= steps
        if self.steps < 0:
            raise Undecided("takes too much work to check: simplify the schema or the value")


#: The names or indexes of the members that a keyword has evaluated. It is None unless a schema
#: around has `unevaluatedProperties` or `unevaluatedItems`, which need to know.
Seen = Optional["set[Any]"]
#: (value, run, seen) -> failures. What a check adds to `seen` counts if the check finds no failure.
Check = Callable[[Any, CheckRun, Seen], "list[Failure]"]
#: (value, run, seen) -> pairs of a member's name or index, and the check for that member.
Select = Callable[[Any, CheckRun, Seen], "Iterable[tuple[Any, Check]]"]
#: The checks of the schemas `true` and `false`.
TRIVIAL: dict[bool, Check] = {
    True: lambda *_: [], False: lambda *_: [Failure((), "is not allowed here")]}  # fmt: skip

#: The types of value that a keyword speaks of; "unknown" is a Python value that JSON does not have.
ANY, NUMBER = (*KINDS.values(), "unknown"), ("integer", "number")
TEXT, ARRAY, OBJECT = ("string",), ("array",), ("object",)


def path_text(path: Path) -> str:
    """Return a path as people write it.

    >>> path_text(("items", (2, ("price", ()))))
    'items[2].price'
    """
    steps: list[int | str] = []
    text = ""
    while path and len(steps) < MAX_PATH_STEPS:
        step, path = path
        steps.append(step if isinstance(step, (int, str)) else str(step))
    for step in reversed(steps):
        text = join_path(step, text)
    return text


def _any_of(values: Iterable[JSON]) -> str:
    """Return at most ten values for a message."""
    shown = [show_json(value) for value in itertools.islice(values, 11)]
    return " or ".join(shown[:10] + ["..."] * (len(shown) > 10))


def _mismatch(expected: str, kinds: Iterable[str], got: str) -> list[Failure]:
    return [Failure((), f"expected {expected}, got {got}", expected, frozenset(kinds))]


def _is_names(argument: Any) -> bool:
    return isinstance(argument, list) and all(isinstance(name, str) for name in argument)


def _is_number(argument: Any) -> bool:
    return kind_of(argument) in NUMBER


def _is_count(argument: Any) -> bool:
    return kind_of(argument) == "integer" and argument >= 0


def _classes_of(kinds: Any) -> dict[type, str]:
    """Return the rows of KINDS that the argument of `type` admits: every integer is a number."""
    named = set(kinds if isinstance(kinds, list) else [kinds])
    named |= {"integer"} if "number" in named else set()
    return {cls: kind for cls, kind in KINDS.items() if kind in named}


def ratio_of(number: Any) -> tuple[int, int]:
    """Return a finite number as a fraction, exactly as it is written in decimal.

    >>> ratio_of(7), ratio_of(0.1)
    ((7, 1), (1, 10))
    """
    if isinstance(number, int):
        return number, 1
    from fractions import Fraction

    fraction = Fraction(repr(number))
    return fraction.numerator, fraction.denominator


# An escape, or a class such as [a-z]: parts of a regular expression in which signs like * and (
# have no meaning of their own.
_ESCAPE_OR_CLASS = r"\\.|\[(?:\\.|[^]\\])*\]"


def python_pattern(text: str) -> str:
    r"""Translate an ECMA 262 regular expression, as far as that is cheap.

    >>> python_pattern(r"^(?<year>[0-9]+)$")
    '^(?P<year>[0-9]+)\\Z'
    """

    def translate(token: re.Match[str]) -> str:
        word = token[0]
        if word[0] == "[":  # Python warns of these signs in a class: it may give them a meaning
            return "[" + re.sub(r"(?s)\\.|[\[&|~]", lambda sign: sign[0].rjust(2, "\\"), word[1:])
        if word.startswith("\\k<"):
            return f"(?P={word[3:-1]})"
        return {"$": r"\Z", "(?<": "(?P<"}.get(word, word)

    return re.sub(rf"(?s)\\k<\w+>|\(\?<(?![=!])|{_ESCAPE_OR_CLASS}|\$", translate, text)


def is_linear_pattern(text: str) -> bool:
    """Tell whether searching for a pattern surely takes time linear in the length of the text.

    It does if nothing is repeated; or if the pattern is tried at the start of the text only, and
    repeats one thing. Groups are not looked into.

    >>> [is_linear_pattern(text) for text in ("^data:", "^[a-z]+$", "[a-z]+$", "^a*b*$", "^(a|b)+")]
    [True, True, False, False, False]
    """
    bare = re.sub("(?s)" + _ESCAPE_OR_CLASS, "x", text)
    once = r"\^[^*+?{()|]*(?:[*+?]|\{[0-9,]*\})\??[^*+?{()|]*"
    return re.fullmatch(rf"(?s)[^*+?{{()]*|{once}", bare) is not None


def _comparison(fits: Callable[[Any], bool], holds: Callable[[Any, Any], bool], text: str) -> Any:
    """Return a function that compiles a keyword that compares.

    A value is valid if `holds(value, argument)`. Otherwise `text` is the failure.
    """

    def _kw_comparison(doc: SchemaDocument, schema: Schema, word: str) -> Check:
        argument = schema[word]
        doc.need(fits(argument), f"{word} cannot be {show_json(argument)}")
        failures = [Failure((), text.format(show_json(argument)))]
        return lambda value, run, seen: [] if holds(value, argument) else failures
    return _kw_comparison


def _inside(select: Select, weight: int = 1) -> Check:
    """Return the check of the members or items that `select` chooses; each costs `weight`."""

    def check_inside(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        run.spend(len(value) * weight)
        found: list[Failure] = []
        for key, check in select(value, run, seen):
            if seen is not None:
                seen.add(key)
            try:
                failures = check(value[key], run, None)
            except Undecided as exc:
                exc.path = (key, exc.path)
                raise
            if failures:
                run.spend(8 * len(failures))
                found += [Failure((key, f.path), *f[1:]) for f in failures]
            if len(found) >= MAX_FAILURES:
                break
        return found
    return check_inside


def _explain(value: Any, missed: list[list[Failure]]) -> list[Failure]:
    """Say why no alternative fits, in the words of the one of the right type that nearly does."""
    near = [failures for failures in missed if failures[0].path or not failures[0].kinds]
    if not near:
        expected = " or ".join(dict.fromkeys(failures[0].expected for failures in missed))[:400]
        kinds = frozenset().union(*(failures[0].kinds for failures in missed))
        kind = kind_of(value)
        return _mismatch(expected, kinds, show_json(value) if kind in kinds else kind)
    near.sort(key=len)
    if len(near) == 1 or len(near[0]) < len(near[1]):
        return near[0]
    return [Failure((), f"matches none of the {len(missed)} alternatives")]


# A function _kw_...(doc, schema, word) returns the check of a keyword, or of some that are alike.
# The argument of a keyword can be anything: doc.need() refuses those that make no sense.
#
# Keywords for values of all types.


def _kw_type(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    names = schema[word] if isinstance(schema[word], list) else [schema[word]]
    fits = _is_names(names) and len(names) == len({*names} & {*KINDS.values()}) > 0
    doc.need(fits, f"type must be one or more of {', '.join(KINDS.values())}")
    right, expected = _classes_of(names), " or ".join(names)
    kinds = right.values()
    failures = {kind: _mismatch(expected, kinds, kind) for kind in ANY if kind not in kinds}

    def check_type(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        return [] if type(value) in right else failures.get(kind_of(value), [])
    return check_type


def _kw_enum(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    """Compile enum, or const, which is an enum of one."""
    values = [schema[word]] if word == "const" else schema[word]
    doc.need(isinstance(values, list), f"{word} must be a list")
    texts, expected = {canonical(item) for item in values}, _any_of(values)
    kinds = frozenset(map(kind_of, values))

    def check_enum(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        if canonical(value, run.spend) in texts:
            return []
        run.spend(12)
        return _mismatch(expected, kinds, show_json(value))
    return check_enum


def _kw_all(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    checks = doc.compile_list(schema, word)

    def check_all(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        run.spend(len(checks))
        return [f for check in checks for f in check(value, run, seen)]
    return check_all


def _kw_any(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    """Compile anyOf, or oneOf, where no more than a single one may fit."""
    checks, single = doc.compile_list(schema, word), word == "oneOf"

    def check_any(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        run.spend(len(checks))
        tried = []
        for check in checks:
            tried.append(check(value, run, seen))
            # With `seen`, all that fit have to be asked what they have evaluated.
            if not (tried[-1] or single or seen is not None):
                return []
        if [] not in tried:
            run.spend(20 + 12 * len(checks))
            return _explain(value, tried)
        too_many = single and tried.count([]) > 1
        return [Failure((), "matches more than one of the alternatives")] if too_many else []
    return check_any


def _kw_not(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    check = doc.compile_one(schema, word)
    failures = [Failure((), "matches what it must not match")]
    return lambda value, run, seen: [] if check(value, run, None) else failures


def _kw_if(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    """Compile if. In the table, then and else come before it: they are compiled already."""
    test = doc.compile_one(schema, word)
    yes, no = (doc.checks.get((*doc.place, word), TRIVIAL[True]) for word in ("then", "else"))
    return lambda v, run, seen: (no if test(v, run, seen) else yes)(v, run, seen)


# Keywords for values of one type.


def _kw_multiple(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    argument = schema[word]
    fits = _is_number(argument) and 0 < argument < float("inf")
    doc.need(fits, f"{word} cannot be {show_json(argument)}")
    above, below = ratio_of(argument)
    failures = [Failure((), f"must be a multiple of {show_json(argument)}")]

    def check_multiple(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        run.spend(2 + (value.bit_length() >> 6) if isinstance(value, int) else 60)
        if value - value != 0:  # infinite, or not a number: JSON has neither
            return failures
        value_above, value_below = ratio_of(value)
        return failures if value_above * below % (value_below * above) else []
    return check_multiple


def _pattern(doc: SchemaDocument, text: Any) -> Callable[[Any, CheckRun], bool]:
    """Return a function that tells whether a regular expression is found in a text."""
    doc.need(isinstance(text, str), "a pattern must be a string")
    doc.need(len(text) <= MAX_PATTERN_CHARS, "this pattern is too long to be safe")
    bare = re.sub("(?s)" + _ESCAPE_OR_CLASS, "x", text)
    doc.need(not re.search(r"\(\?[aiLmsux-]", bare), "a pattern cannot have flags")
    # Python makes a table of 65,536 characters of a class that goes beyond Latin-1.
    classes = re.findall(r"(?s)\\.|(\[(?:\\.|[^]\\])*\])", text)
    wide = [each for each in classes if re.search(r"[^\x00-\xff]|\\[uUN]", each)]
    doc.count((len(text) >> 4) + 200 * len(wide))
    search = re.compile(python_pattern(text), re.ASCII).search
    is_linear = is_linear_pattern(text)

    def is_found(value: Any, run: CheckRun) -> bool:
        if not isinstance(value, str):
            return False  # the name of a member, of a Python value that JSON does not have
        size = len(value)
        if not is_linear and size > MAX_PATTERN_INPUT_CHARS:
            # Python's engine backtracks, and has no deadline. This bounds the expressions that
            # take the square of the time. Nothing bounds the exponential ones: expressions of
            # strangers must not be used at all.
            limit = f"{MAX_PATTERN_INPUT_CHARS} characters"
            raise Undecided(f"is too long for its pattern: more than {limit}")
        run.spend(size >> 5 if is_linear else size * size >> 7)
        return search(value) is not None
    return is_found


def _kw_pattern(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    is_found = _pattern(doc, schema[word])
    failures = [Failure((), f"must match {show_json(schema[word])}")]
    return lambda value, run, seen: [] if is_found(value, run) else failures


def _kw_unique(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    doc.need(isinstance(schema[word], bool), f"{word} must be true or false")

    def check_unique(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        run.spend(2 * len(value))
        first: dict[str, int] = {}
        for i, item in enumerate(value):
            text = canonical(item, run.spend)
            if first.setdefault(text, i) != i:
                return [Failure((i, ()), f"is the same as item {first[text]}")]
        return []
    return check_unique if schema[word] else TRIVIAL[True]


def _kw_prefix(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    checks = doc.compile_list(schema, word)
    return _inside(lambda v, run, seen: zip(range(len(v)), checks))


def _kw_items(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    if doc.is_draft_07 and isinstance(schema[word], list):
        return _kw_prefix(doc, schema, word)
    is_list = isinstance(schema[word], list)
    doc.need(not is_list, f"{word} must be one schema: use prefixItems for a list")
    return _rest_of_items(doc, schema, word, schema.get("prefixItems", ()))


def _kw_additional_items(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    """Compile draft-07's keyword for the items behind those that a list of `items` names."""
    items = schema.get("items")
    if not doc.is_draft_07 or not isinstance(items, list):
        return TRIVIAL[True]
    return _rest_of_items(doc, schema, word, items)


def _rest_of_items(doc: SchemaDocument, schema: Schema, word: str, before: Sequence[Any]) -> Check:
    checks, start = itertools.repeat(doc.compile_one(schema, word)), len(before)
    return _inside(lambda v, run, seen: zip(range(start, len(v)), checks))


def _kw_contains(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    check = doc.compile_one(schema, word)
    least, most = schema.get("minContains", 1), schema.get("maxContains", sys.maxsize)
    doc.need(_is_count(least) and _is_count(most), "minContains, maxContains must be numbers")

    def check_contains(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        run.spend(len(value))
        fit = [i for i, item in enumerate(value) if not check(item, run, None)]
        if seen is not None:
            seen.update(fit)
        if least <= len(fit) <= most:
            return []
        bound = f"at least {least}" if len(fit) < least else f"at most {most}"
        return [Failure((), f"must have {bound} items of a certain kind, has {len(fit)}")]
    return check_contains


def _kw_required(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    return _required(doc, schema[word], word)


def _required(doc: SchemaDocument, names: Any, word: str) -> Check:
    doc.need(_is_names(names), f"{word} must be a list of strings")

    def check_required(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        run.spend(len(names) >> 1)
        missing = [name for name in names if name not in value]
        return [Failure((name, ()), "is required") for name in missing[:MAX_FAILURES]]
    return check_required


def _kw_dependent(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    """Compile dependentRequired, dependentSchemas, or draft-07's dependencies, which is both."""
    doc.need(isinstance(schema[word], dict), f"{word} must be an object")
    checks = {
        name: _required(doc, argument, word) if isinstance(argument, list)
        else doc.compile(argument, word, name)
        for name, argument in schema[word].items()
    }  # fmt: skip

    def check_dependent(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        run.spend(len(checks))
        present = [name for name in checks if name in value]
        return [f for name in present for f in checks[name](value, run, seen)]
    return check_dependent


def _kw_properties(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    checks = doc.compile_map(schema, word)
    return _inside(lambda v, run, seen: [(n, checks[n]) for n in v if n in checks])


def _kw_patterns(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    pairs = [(_pattern(doc, t), check) for t, check in doc.compile_map(schema, word).items()]

    def select(value: Any, run: CheckRun, seen: Seen) -> Iterable[Any]:
        return [(n, check) for n in value for is_found, check in pairs if is_found(n, run)]
    return _inside(select, 1 + len(pairs))


def _kw_additional(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    """Compile additionalProperties: for all that the two keywords above do not name."""
    check, named = doc.compile_one(schema, word), schema.get("properties", {})
    patterns = [_pattern(doc, text) for text in schema.get("patternProperties", ())]
    known = f": expected {_any_of(named)}" if named and not patterns else ""
    unexpected = [Failure((), "unexpected property" + known)]
    other: Check = (lambda *_: unexpected) if schema[word] is False else check

    def select(value: Any, run: CheckRun, seen: Seen) -> Iterable[Any]:
        names = [name for name in value if name not in named]
        return [(n, other) for n in names if not any(found(n, run) for found in patterns)]
    inside = _inside(select, 1 + len(patterns))
    return lambda v, run, seen: [] if v.keys() <= named.keys() else inside(v, run, seen)


def _kw_names(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    check = doc.compile_one(schema, word)

    def check_names(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
        run.spend(len(value))
        bad = [name for name in value if check(name, run, None)]
        return [Failure((n, ()), "is not allowed as a name") for n in bad[:MAX_FAILURES]]
    return check_names


def _kw_unevaluated(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    check = doc.compile_one(schema, word)

    def select(value: Any, run: CheckRun, seen: Any) -> Iterable[Any]:
        keys = value if isinstance(value, dict) else range(len(value))
        return [(key, check) for key in keys if key not in seen]
    return _inside(select)

def _kw_schema(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    return doc.compile_one(schema, word)


def _kw_map(doc: SchemaDocument, schema: Schema, word: str) -> dict[str, Check]:
    return doc.compile_map(schema, word)


def _kw_ref(doc: SchemaDocument, schema: Schema, word: str) -> Check:
    return doc.compile_ref(schema, word)


_size = functools.partial(_comparison, _is_count)
_bound = functools.partial(_comparison, _is_number)
#: The types of value that a keyword speaks of, and what compiles it. The first failure is the one
#: that people read, so keywords that tell most stand first; a wrong value tells more than a name
#: too many. `unevaluated...` comes last: it needs to know what all others have evaluated.
KEYWORDS: dict[str, tuple[tuple[str, ...], Callable[[Any, Schema, str], Any]]] = {
    "$defs": ((), _kw_map), "definitions": ((), _kw_map),
    "type": (ANY, _kw_type), "enum": (ANY, _kw_enum), "const": (ANY, _kw_enum),
    "minimum": (NUMBER, _bound(lambda v, n: v >= n, "must be at least {}")),
    "maximum": (NUMBER, _bound(lambda v, n: v <= n, "must be at most {}")),
    "exclusiveMinimum": (NUMBER, _bound(lambda v, n: v > n, "must be more than {}")),
    "exclusiveMaximum": (NUMBER, _bound(lambda v, n: v < n, "must be less than {}")),
    "multipleOf": (NUMBER, _kw_multiple),
    "minLength": (TEXT, _size(lambda v, n: len(v) >= n, "must have at least {} characters")),
    "maxLength": (TEXT, _size(lambda v, n: len(v) <= n, "must have at most {} characters")),
    "pattern": (TEXT, _kw_pattern),
    "minItems": (ARRAY, _size(lambda v, n: len(v) >= n, "must have at least {} items")),
    "maxItems": (ARRAY, _size(lambda v, n: len(v) <= n, "must have at most {} items")),
    "prefixItems": (ARRAY, _kw_prefix), "items": (ARRAY, _kw_items),
    "additionalItems": (ARRAY, _kw_additional_items),
    "contains": (ARRAY, _kw_contains), "uniqueItems": (ARRAY, _kw_unique),
    "minProperties": (OBJECT, _size(lambda v, n: len(v) >= n, "must have at least {} members")),
    "maxProperties": (OBJECT, _size(lambda v, n: len(v) <= n, "must have at most {} members")),
    "properties": (OBJECT, _kw_properties), "patternProperties": (OBJECT, _kw_patterns),
    "additionalProperties": (OBJECT, _kw_additional),
    "propertyNames": (OBJECT, _kw_names), "required": (OBJECT, _kw_required),
    "dependentRequired": (OBJECT, _kw_dependent),
    "dependentSchemas": (OBJECT, _kw_dependent), "dependencies": (OBJECT, _kw_dependent),
    "allOf": (ANY, _kw_all), "anyOf": (ANY, _kw_any), "oneOf": (ANY, _kw_any),
    "not": (ANY, _kw_not), "then": ((), _kw_schema), "else": ((), _kw_schema),
    "if": (ANY, _kw_if), "$ref": (ANY, _kw_ref), "$dynamicRef": (ANY, _kw_ref),
    "unevaluatedItems": (ARRAY, _kw_unevaluated),
    "unevaluatedProperties": (OBJECT, _kw_unevaluated),
}  # fmt: skip


###############################################################################
# 12. Schema documents
###############################################################################
# Pure. Uses sections 1 to 3 and 11.
#
# Problem.  Schemas refer to each other, by URIs, anchors and pointers, and to places further out.
# Rules.    1. `$ref` stays inside the document: nothing is ever fetched.
#           2. Depth, size and the work of compiling are bounded, like the work of checking.
# Plan.     SchemaDocument walks a schema once and joins references to their targets; KEYWORDS says
#           which function compiles which keyword; Validator; compile_schema().
# Not here. What single keywords mean: the section before.

MAX_SCHEMA_DEPTH = 64  # schemas inside schemas; compiling takes about four frames for each
MAX_SUBSCHEMAS = 10_000  # in one document; MCP's own schema has 900
MAX_SCHEMA_URI_CHARS = 8192  # of an $id, with the one that it is relative to; joined 10,000 times
MAX_VALIDATION_DEPTH = 256  # schemas being applied at once; stops a $ref that leads to itself
DIALECT = "https://json-schema.org/draft/2020-12/schema"
DRAFT_07 = "http://json-schema.org/draft-07/schema"



# References. A subschema is known by its place: the steps from the root of the document, as in a
# JSON pointer. `$id` gives a subschema a URI and makes it a scope: references inside it are
# relative to that URI, and `$anchor` gives a subschema a name in the scope that it stands in.
#
#     {"$id": "http://x.test/a",                          place ()                URI .../a
#      "$defs": {"item": {"$anchor": "i"},                place ($defs, item)     .../a#i
#                "other": {"$id": "b",                    place ($defs, other)    URI .../b
#                          "items": {"$ref": "a#i"}}}}    leads to ($defs, item)
#
# `$ref` always leads to the same place. `$dynamicRef` does not: where several scopes have a
# $dynamicAnchor of that name, it leads to the one in the scope that the validation entered first.
# So a schema of trees can be extended from outside. This is why a run knows the scopes it is in.

#: Keywords that draft-07 does not know, and ignores.
NOT_IN_DRAFT_07 = {
    "$anchor", "$dynamicAnchor", "$dynamicRef", "prefixItems", "dependentRequired", "minContains",
    "dependentSchemas", "maxContains", "unevaluatedItems", "unevaluatedProperties"}  # fmt: skip


class SchemaDocument:
    """A schema being compiled; `check` is what becomes of it.

    Raises SchemaError for a document that is not a usable schema.
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        self.place: tuple[str, ...] = ()  # of the subschema that is being compiled
        self.scopes = [""]  # the URI of its scope, behind those of the schemas around it
        self.size = 0  # subschemas so far
        self.checks: dict[tuple[str, ...], Check] = {}  # by place
        self.homes: dict[tuple[str, ...], str] = {}  # by place, the URI of the scope
        #: places by URI of the scope and anchor; the scope itself has the anchor ""
        self.names: dict[tuple[str, str], tuple[str, ...]] = {("", ""): ()}
        self.dynamic: set[tuple[str, str]] = set()  # those names that are a $dynamicAnchor
        self.later: list[Callable[[], None]] = []  # references, until all names are known
        declared = root.get("$schema", DIALECT) if isinstance(root, dict) else DIALECT
        dialect = str(declared).rstrip("#").replace("https:", "http:")
        self.is_draft_07 = dialect == DRAFT_07
        known = self.is_draft_07 or dialect == DIALECT.replace("https:", "http:")
        self.need(known, f"$schema must be {DIALECT} or {DRAFT_07}#")
        try:
            self.check = self.compile(root)
            while self.later:
                self.later.pop()()
        except SchemaError:
            raise
        except Exception as exc:  # of URIs, of regular expressions; RecursionError; a warning
            self.need(False, f"is not usable: {exc}")

    def need(self, condition: Any, message: str) -> None:
        """Raise SchemaError, with a JSON pointer to where we are, unless the condition holds."""
        if not condition:
            steps = [step.replace("~", "~0").replace("/", "~1") for step in self.place]
            raise SchemaError("/".join(["#", *steps])[:200], message)

    def count(self, subschemas: int) -> None:
        """Count subschemas, or what takes as long to compile."""
        self.size += subschemas
        self.need(self.size <= MAX_SUBSCHEMAS, f"has more than {MAX_SUBSCHEMAS} subschemas")

    def compile(self, schema: Any, *steps: str) -> Check:
        """Return the check of the subschema that is `steps` away from where we are."""
        outer, self.place = self.place, self.place + steps
        self.need(isinstance(schema, (dict, bool)), "a schema must be an object, true or false")
        if isinstance(schema, dict):
            self.count(1)
            fits = len(self.scopes) <= MAX_SCHEMA_DEPTH + 1
            self.need(fits, f"nested deeper than {MAX_SCHEMA_DEPTH} schemas")
            schema = self._as_of_2020(schema) if self.is_draft_07 else schema
            self.scopes.append(self._enter(schema))
            check = self._compile_keywords(schema)
            self.scopes.pop()
        else:
            check = TRIVIAL[schema]
        self.checks[self.place] = check
        self.place = outer
        return check

    def compile_one(self, schema: Schema, word: str) -> Check:
        """Compile the schema that a keyword holds."""
        return self.compile(schema[word], word)

    def compile_list(self, schema: Schema, word: str) -> list[Check]:
        """Compile the list of schemas that a keyword holds."""
        argument = schema[word]
        fits = isinstance(argument, list) and (argument or self.is_draft_07)
        self.need(fits, f"{word} must be a list of schemas")
        return [self.compile(inner, word, str(i)) for i, inner in enumerate(argument)]

    def compile_map(self, schema: Schema, word: str) -> dict[str, Check]:
        """Compile the object of schemas that a keyword holds."""
        argument = schema[word]
        self.need(isinstance(argument, dict), f"{word} must be an object")
        return {name: self.compile(inner, word, name) for name, inner in argument.items()}

    def _as_of_2020(self, schema: Schema) -> Schema:
        """Return a schema of draft-07 as 2020-12 would write it; `items` differs in its method."""
        if "$ref" in schema:  # which hides what stands beside it
            return {w: schema[w] for w in ("$ref", "definitions", "$defs") if w in schema}
        schema = {word: a for word, a in schema.items() if word not in NOT_IN_DRAFT_07}
        if str(schema.get("$id")).startswith("#"):
            schema["$anchor"] = schema.pop("$id")[1:]
        return schema

    def _enter(self, schema: Schema) -> str:
        """Note the names that a subschema gives itself; return the URI of its scope."""
        names = [schema.get(word, "") for word in ("$id", "$anchor", "$dynamicAnchor")]
        self.need(_is_names(names), "$id and anchors must be strings")
        own, anchor, dynamic = names
        without_fragment = own.partition("#")[0]
        uri = self._absolute(without_fragment)
        if without_fragment:
            self.names[uri, ""] = self.place
        self.names.update({(uri, name): self.place for name in (anchor, dynamic) if name})
        if dynamic:
            self.dynamic.add((uri, dynamic))
        self.homes[self.place] = uri
        return uri

    def _absolute(self, uri: str) -> str:
        """Return what a relative URI means in the scope that we are in; "" means the scope."""
        base = self.scopes[-1]
        if not uri:
            return base
        from urllib.parse import urljoin

        # Checked before they are joined: many subschemas may each add to the same long URI.
        fits = len(base) + len(uri) <= MAX_SCHEMA_URI_CHARS
        self.need(fits, f"{show_json(uri)}... is too long for a URI")
        self.count(len(base) + len(uri) >> 6)
        return urljoin(base, uri)

    def _find(self, ref: str) -> tuple[Any, tuple[str, ...], str]:
        """Return the schema that a reference means, its place, and the URI of its scope."""
        from urllib.parse import unquote

        without_fragment, _, fragment = ref.partition("#")
        uri = self._absolute(without_fragment)
        # spec: basic/index#json-schema-usage
        self.need((uri, "") in self.names, f"{show_json(ref)} is not fetched: put it under $defs")
        anchor, *pointer = unquote(fragment).split("/")
        start = self.names.get((uri, anchor))
        lost = f"{show_json(ref)} leads nowhere: check its spelling"
        self.need(start is not None, lost)
        target, place = self.root, start or ()
        for step in place:
            target = target[int(step) if isinstance(target, list) else step]
        for step in pointer:
            step = step.replace("~1", "/").replace("~0", "~")  # RFC 6901 §4
            if isinstance(target, list) and re.fullmatch("0|[1-9][0-9]{0,7}", step):
                target = target[int(step)] if int(step) < len(target) else None
            else:
                target = target.get(step) if isinstance(target, dict) else None
            place += (step,)
            uri = self.homes.get(place, uri)
        self.need(isinstance(target, (dict, bool)), lost)
        return target, place, uri

    def _join(self, ref: str, dynamic: bool) -> Check:
        """Return the check that a reference leads to, now that all names are known."""
        target, place, uri = self._find(ref)
        if place not in self.checks:  # it stands under a keyword that is not ours
            self.place, self.scopes = place, [uri]
            self.compile(target)
        name = ref.partition("#")[2]
        # An ordinary anchor makes a $dynamicRef an ordinary reference.
        if not dynamic or (uri, name) not in self.dynamic or self.names[uri, name] != place:
            return self.checks[place]

        def check_dynamic(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
            run.spend(len(run.scopes))
            homes = (outer for outer in run.scopes if (outer, name) in self.dynamic)
            return self.checks[self.names[next(homes, uri), name]](value, run, seen)
        return check_dynamic

    def compile_ref(self, schema: Schema, word: str) -> Check:
        """Compile a reference; it is joined to its target at the end, when all names are known."""
        ref, where, found = schema[word], (self.place, self.scopes[-1:]), []
        self.need(isinstance(ref, str), f"{word} must be a string")

        def join() -> None:
            self.place, self.scopes = where
            found.append(self._join(ref, word == "$dynamicRef"))

        self.later.append(join)
        return lambda value, run, seen: found[0](value, run, seen)

    def _compile_keywords(self, schema: Schema) -> Check:
        """Return the check of a schema: it calls those keywords that speak of the value's type."""
        used = [word for word in KEYWORDS if word in schema]
        self.count(len(used) // 4)
        made: dict[str, Check] = {word: KEYWORDS[word][1](self, schema, word) for word in used}
        if used == ["type"]:
            return made["type"]  # half of all subschemas; whoever calls it has paid for the call
        by_kind = {kind: [made[w] for w in used if kind in KEYWORDS[w][0]] for kind in ANY}
        cost = 2 + len(used) // 2
        watched = "unevaluatedItems" in schema or "unevaluatedProperties" in schema
        scope, dynamic = (self.scopes[-1],), self.dynamic

        def check_schema(value: Any, run: CheckRun, seen: Seen) -> list[Failure]:
            run.spend(cost)
            run.depth += 1
            if run.depth > MAX_VALIDATION_DEPTH:
                raise Undecided("is nested too deeply to check")
            ours: Seen = set() if watched or seen is not None else None
            outer = run.scopes
            if dynamic and outer[-1:] != scope:
                run.scopes = outer + scope
            found: list[Failure] = []
            for check in by_kind[KINDS.get(type(value)) or kind_of(value)]:
                found += check(value, run, ours)
            run.scopes = outer
            run.depth -= 1
            if ours and seen is not None and not found:
                run.spend(len(ours))
                seen |= ours
            return found[:MAX_FAILURES] if found else found
        return check_schema


def _plain_members(schema: Any) -> dict[str, dict[type, str]]:
    """Return the members of an object of which a schema asks no more than a type, and those."""
    asked = KEYWORDS.keys() & schema.keys() if isinstance(schema, dict) else set()
    is_plain = asked <= {"type", "properties", "required", "additionalProperties", "$defs"}
    if not is_plain or "properties" not in asked or schema.get("type") != "object":
        return {}
    return {
        name: _classes_of(member["type"])
        for name, member in schema["properties"].items()
        if isinstance(member, dict) and KEYWORDS.keys() & member.keys() == {"type"}
    }


class Validator:
    """A compiled schema."""

    __slots__ = ("_check", "_plain", "_required", "schema")

    def __init__(self, schema: JSON) -> None:
        self.schema = schema
        self._check = SchemaDocument(schema).check
        self._plain = _plain_members(schema)
        self._required = tuple(schema.get("required", ())) if self._plain else ()

    def failures(self, value: JSON, run: CheckRun | None = None) -> list[Failure]:
        """Return what errors() reports, as data; validations may share the budget of one run."""
        run = run or CheckRun()
        run.depth, run.scopes = 0, ()
        try:
            return self._check(value, run, None)
        except Undecided as exc:
            return [Failure(exc.path, exc.message)]
        except RecursionError:  # a value deeper than the wire allows, or a caller deep in frames
            return [Failure((), "is nested too deeply to check")]

    def check(self, value: JSON) -> None:
        """Raise SchemaError for the first thing wrong with `value`."""
        # The arguments of most tools need no more than this: 1 us, where the walk takes 6 to 12.
        given = value.__contains__ if self._plain and type(value) is dict else None
        if given is not None and all(map(given, self._required)):
            for name, member in value.items():
                if type(member) not in self._plain.get(name, ()):
                    break
            else:
                return
        for error in self.errors(value):
            raise error

    def errors(self, value: JSON) -> list[SchemaError]:
        """Return what is wrong with `value`: everything, but at most MAX_FAILURES things."""
        return [SchemaError(path_text(f.path), f.message) for f in self.failures(value)]


def compile_schema(schema: JSON) -> Validator:
    """Return the validator for a JSON Schema; raise SchemaError if it is not a usable one.

    >>> compile_schema({"properties": {"b": {"type": "integer"}}}).check({"b": "x"})
    Traceback (most recent call last):
    ...
    mcp_lite.SchemaError: b: expected integer, got string
    """
    return Validator(schema)

###############################################################################
# 13. Python annotations
###############################################################################
# Pure. Uses sections 1 to 3 and 12.
#
# Problem.  Authors write Python functions with annotations. Models call them with JSON. The schemas
#           of the arguments have to be written, and values converted in both directions.
# Rules.    1. An annotation that JSON cannot express is an error when the function is registered.
#              The message names the parameter and the remedy. A model's call is too late for that.
#           2. An annotation gives a schema and a reader, and these agree: whatever JSON the schema
#              admits, the reader turns into a value. It is called with valid JSON only, and refuses
#              no more than a schema cannot say, such as the 30th of February.
#           3. Results are converted by their values alone: a function may return something other
#              than its annotation promises.
# Plan.     An AnnotationReader finds the Shape of an annotation: its schema and its reader.
#           schema_of() and converter_of() give the one and the other. to_json() goes the other way.
# Not here. Functions, their parameters and docstrings: section 14.

__all__ += ["Header"]

EMPTY = inspect.Parameter.empty  # no annotation, or no default

class Header(NamedTuple):
    """`Annotated[str, Header("Region")]`: clients repeat this argument in an HTTP header."""

    name: str


class Shape(NamedTuple):
    """How an annotation looks in JSON."""

    schema: Schema
    read: Callable[[Any], Any] | None = None  #: from JSON to the value; None if they are the same


#: Names of members or parameters, and the functions that read their JSON.
Readers = list[tuple[str, Callable[[Any], Any]]]
#: Name, annotation and default of a record's member or a function's parameter. The default is
#: EMPTY if the member is required, and `...` if it may be absent and has no default.
Member = tuple[str, Any, Any]


def _is_class(hint: Any) -> bool:
    return isinstance(hint, type) and typing.get_origin(hint) is None  # not list[int], before 3.11


def _is_record(hint: Any) -> bool:
    """Tell whether `hint` is a dataclass, a NamedTuple or a TypedDict."""
    marks = ("__dataclass_fields__", "_field_defaults", "__required_keys__")
    return _is_class(hint) and any(hasattr(hint, mark) for mark in marks)


def _hints_of(thing: Any, names: Any, known: Any = None) -> dict[str, Any]:
    """Return the annotations of a function or class, with the strings in them evaluated."""
    try:
        return typing.get_type_hints(thing, names, known, include_extras=True)
    except NameError as exc:
        raise TypeError(f"{exc}: define it at module level, not under TYPE_CHECKING") from None
    except Exception as exc:
        is_union = sys.version_info < (3, 10) and isinstance(exc, TypeError) and "|" in str(exc)
        remedy = "; before Python 3.10 write Optional[int]" if is_union else ""
        raise TypeError(f"{exc}{remedy}") from None


def _resolve(hint: Any, names: Any) -> Any:
    """Return an annotation, evaluated if it is a string."""

    def holder() -> None: ...

    holder.__annotations__ = {"x": hint}
    return _hints_of(holder, names)["x"]


def _unwrap(hint: Any) -> tuple[Any, list[Any]]:
    """Strip Annotated, NotRequired, NewType and their kin; return what is left, and the notes."""
    notes: list[Any] = []
    while True:
        # typing and typing_extensions each have such a form, so names are compared
        form = getattr(typing.get_origin(hint), "_name", "")
        if hasattr(hint, "__metadata__"):
            hint, notes = hint.__origin__, [*hint.__metadata__, *notes]
        elif form in ("Required", "NotRequired", "ReadOnly"):
            hint, notes = typing.get_args(hint)[0], [*notes, typing.get_origin(hint)]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        else:
            return hint, notes


def _mentions(hint: Any, classes: tuple[type, ...]) -> bool:
    hint, _ = _unwrap(hint)
    if _is_class(hint):
        return issubclass(hint, classes)
    return any(_mentions(arg, classes) for arg in typing.get_args(hint))


def _field_names(record: Any) -> Sequence[str]:
    """Return the names of a dataclass's or NamedTuple's members."""
    if hasattr(record, "_fields"):
        return record._fields  # type: ignore[no-any-return]
    from dataclasses import fields

    return [field.name for field in fields(record)]


def _members_of(cls: Any, output: bool) -> list[Member]:
    """Return the members that a constructor takes; for `output`, those that to_json() gives."""
    hints = _hints_of(cls, None, {cls.__name__: cls})  # bases may come from other modules
    if issubclass(cls, dict):
        members = []
        for name, hint in hints.items():
            # Where annotations are strings, __required_keys__ knows nothing of NotRequired.
            forms = [getattr(note, "_name", "") for note in _unwrap(hint)[1]]
            needed = "Required" in forms or name in cls.__required_keys__
            required = needed and "NotRequired" not in forms
            members.append((name, hint, EMPTY if required else ...))
        return members
    names = _field_names(cls)
    if output:  # to_json() gives all members, those with a default as well
        return [(name, hints.get(name, Any), EMPTY) for name in names]
    given = inspect.signature(cls).parameters.values()
    return [(p.name, hints.get(p.name, Any), p.default) for p in given if p.name in names]


def _read_value(make: Callable[..., Any], *args: Any) -> Any:
    """Call a function that makes a value; turn its errors into SchemaError."""
    try:
        return make(*args)
    except (TypeError, ValueError, ArithmeticError, LookupError) as exc:
        raise SchemaError("", f"is not usable: {exc}") from None


def _read_inside(step: str | int, read: Callable[[Any], Any] | None, value: Any) -> Any:
    """Read a member or item; put the way to it before the path of an error."""
    try:
        return read(value) if read else value
    except SchemaError as exc:
        raise SchemaError(join_path(step, exc.path), exc.message) from None


def _read_members(readers: Readers, members: Schema) -> Schema:
    """Return a copy of an object, with the members read that have a reader."""
    values = dict(members)
    for name, read in readers:
        if name in values:
            values[name] = _read_inside(name, read, values[name])
    return values


def _read_iso(cls: Any, text: str) -> Any:
    """Read a date or time of RFC 3339; before 3.11, Python knows no "Z" and no odd fractions."""
    text = re.sub(r"[zZ]\Z", "+00:00", text)
    text = re.sub(r"\.([0-9]{1,6})[0-9]*", lambda found: "." + found[1].ljust(6, "0"), text)
    return cls.fromisoformat(text)


#: The types that are JSON as they are, and functions that make them from their subclasses.
PLAIN: dict[type, Any] = {
    str: str.__str__, bool: bool, int: int.__int__, float: float.__float__,
    type(None): lambda value: None,
}  # fmt: skip
#: Further classes that are one JSON scalar: the schema, and a function from class and JSON to the
#: value. They are known by name, so that no module is imported that no annotation mentions.
SCALARS: dict[str, tuple[Schema, Any]] = {
    "builtins.bytes": ({"type": "string", "contentEncoding": "base64"},
                       lambda cls, value: base64.b64decode(value, validate=True)),
    "datetime.datetime": ({"type": "string", "format": "date-time"}, _read_iso),
    "datetime.date": ({"type": "string", "format": "date"}, _read_iso),
    "datetime.time": ({"type": "string", "format": "time"}, _read_iso),
    "uuid.UUID": ({"type": "string", "format": "uuid"}, lambda cls, value: cls(value)),
    "os.PathLike": ({"type": "string"}, lambda cls, value: cls(value)),
    "decimal.Decimal": ({"type": ["string", "number"]}, lambda cls, value: cls(str(value))),
}  # fmt: skip
#: Annotations of arrays, and the classes of their values; annotations of objects, and of unions.
ARRAYS: dict[Any, Any] = {list: list, tuple: tuple, set: set, frozenset: frozenset}
ARRAYS.update({typing.get_origin(kind): list for kind in (Sequence, Iterable, typing.Collection)})
OBJECTS = (dict, typing.get_origin(Mapping), typing.get_origin(typing.MutableMapping))
UNIONS = (Union, getattr(types, "UnionType", Union))


def _scalar_shape(hint: Any) -> Shape | None:
    """Return the shape of an annotation that means one JSON scalar, or anything; else None."""
    if hint in (Any, EMPTY, object):
        return Shape({})
    cls = type(None) if hint is None else hint
    if not _is_class(cls):
        return None
    if cls in PLAIN:  # 3.0 is an integer for JSON Schema, and not for range()
        return Shape({"type": KINDS[cls]}, int if cls is int else None)
    name = f"{cls.__module__}.{cls.__qualname__}"
    row = SCALARS.get("os.PathLike" if issubclass(cls, os.PathLike) else name)
    return Shape(row[0], functools.partial(_read_value, row[1], cls)) if row else None


class AnnotationReader:
    """Finds the shapes of annotations.

    Schemas stand inline, because models understand that best. Only a class that contains itself
    becomes a definition under `$defs`, with references to it.
    """

    def __init__(self, output: bool = False) -> None:
        self.output = output  # whether schemas are of what to_json() gives, not of what is read
        self.names: dict[Any, str] = {}  # of classes in `defs`, and of those being looked at
        self.defs: dict[str, Schema] = {}  # the definitions; empty while they are being written
        self.readers: dict[str, Any] = {}  # ... and the readers of their values

    def whole(self, schema: Schema) -> Schema:
        """Return a schema with the definitions that it may refer to."""
        return {**schema, "$defs": self.defs} if self.defs else schema

    def shape(self, annotation: Any) -> Shape:
        """Return the shape of an annotation; raise TypeError if it has none."""
        hint, notes = _unwrap(annotation)
        schema, read = self._bare(hint)
        schema = dict(schema)
        for note in notes:
            if isinstance(note, Header):
                note = {"x-mcp-header": note.name}
            elif isinstance(note, str):
                note = {"description": note}
            schema.update(note if isinstance(note, dict) else {})
        return Shape(schema, read)

    def _bare(self, hint: Any) -> Shape:
        origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
        scalar = _scalar_shape(hint)
        if scalar:
            return scalar
        if origin is typing.Literal or hasattr(hint, "__members__"):
            return self._choice(args or [*hint.__members__.values()])
        if origin in UNIONS:
            return self._union([self.shape(arg) for arg in args])
        if origin in ARRAYS:
            return self._array(origin, args)
        if origin in OBJECTS:
            return self._mapping(*(args or (str, Any)))
        if type(hint).__name__ == "TypeAliasType":
            return self._named(hint, lambda: self.shape(hint.__value__))
        if _is_record(hint):
            return self._named(hint, lambda: self._record(hint))
        # before Python 3.11, the string in list["Node"] stays a string
        remedy = "quote all of it" if isinstance(hint, str) else "use a dataclass or a plain type"
        raise TypeError(f"{hint!r} has no JSON Schema: {remedy}")

    def _choice(self, choices: Sequence[Any]) -> Shape:
        values = [to_json(choice) for choice in choices]
        kinds = sorted({kind_of(value) for value in values})
        by_text = {canonical(value): choice for value, choice in zip(values, choices)}
        schema = {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}
        return Shape(schema, lambda value: by_text[canonical(value)])

    def _union(self, shapes: list[Shape]) -> Shape:
        schema = {"anyOf": [shape.schema for shape in shapes]}
        if self.output or not any(shape.read for shape in shapes):
            return Shape(schema)

        @functools.cache  # called when all definitions are known
        def validators() -> list[Validator]:
            return [compile_schema(self.whole(shape.schema)) for shape in shapes]

        def read_union(value: Any) -> Any:
            # The first alternative that fits is taken. "2026-02-30" fits the schema of a date,
            # but cannot be read as one: in a union with str, it is a str.
            problem = SchemaError("", "fits no alternative")
            for validator, shape in zip(validators(), shapes):
                if not validator.failures(value):
                    try:
                        return shape.read(value) if shape.read else value
                    except SchemaError as exc:
                        problem = exc
            raise problem
        return Shape(schema, read_union)

    def _array(self, origin: Any, args: tuple[Any, ...]) -> Shape:
        build, fixed = ARRAYS[origin], origin is tuple and args and args[-1] is not ...
        shapes = [self.shape(arg) for arg in args if arg is not ...] or [Shape({})]
        schema: Schema = {"type": "array"}
        if fixed:
            first, count = [shape.schema for shape in shapes], len(shapes)
            schema.update(prefixItems=first, minItems=count, maxItems=count)
        elif shapes[0].schema:
            schema["items"] = shapes[0].schema
        if build in (set, frozenset):
            schema["uniqueItems"] = True
        if build is list and not shapes[0].read:
            return Shape(schema)

        def read_array(value: list[Any]) -> Any:
            each = zip(shapes if fixed else itertools.repeat(shapes[0]), value)
            found = [_read_inside(i, shape.read, item) for i, (shape, item) in enumerate(each)]
            return _read_value(build, found)
        return Shape(schema, read_array)

    def _mapping(self, key: Any, value: Any) -> Shape:
        (names, read_key), (members, read) = self.shape(key), self.shape(value)
        if names.pop("type", "") != "string":
            raise TypeError(f"the keys of a JSON object are strings, not {key!r}")
        schema = {"type": "object", "propertyNames": names, "additionalProperties": members}
        schema = {word: held for word, held in schema.items() if held}

        def read_mapping(value: Schema) -> Any:
            return {
                _read_inside(name, read_key, name): _read_inside(name, read, held)
                for name, held in value.items()
            }
        return Shape(schema, read_mapping if read_key or read else None)

    def _named(self, hint: Any, make: Callable[[], Shape]) -> Shape:
        """Return the shape of a class that may contain itself: if so, a reference to its schema.

        While make() runs, the class has a name but no definition. If make() comes back to the
        class, an empty definition is put there: this tells that the class contains itself.
        """
        if hint not in self.names:
            name = hint.__name__
            while name in self.names.values():
                name += "_"
            self.names[hint] = name
            schema, self.readers[name] = made = make()
            if name not in self.defs:
                del self.names[hint]
                return made
            self.defs[name] = schema
        name = self.names[hint]
        self.defs.setdefault(name, {})
        reference = {"$ref": f"#/$defs/{name}"}
        return Shape(reference, lambda value: self.readers[name](value))  # known later

    def _record(self, cls: Any) -> Shape:
        schema, readers = self.members(_members_of(cls, self.output))
        if not self.output and not issubclass(cls, dict):
            schema["additionalProperties"] = False
        return Shape(schema, lambda members: _read_value(
            lambda: cls(**_read_members(readers, members))
        ))  # fmt: skip

    def members(self, members: list[Member]) -> tuple[Schema, Readers]:
        """Return the schema of an object with these members, and their readers."""
        properties, readers = {}, []
        for name, hint, default in members:
            try:
                schema, read = self.shape(hint)
            except TypeError as exc:
                raise TypeError(f"{name!r}: {exc}") from None
            properties[name] = schema
            with contextlib.suppress(TypeError, ValueError):  # a default beyond JSON is left out
                value = to_json(default)
                json.dumps(value, allow_nan=False)
                # and so is None where the annotation does not admit it, as in `x: int = None`
                if value is not None or "null" in schema.get("type", "null"):
                    schema["default"] = value
            if read:
                readers.append((name, read))
        required = [name for name, _, default in members if default is EMPTY]
        schema = {"type": "object", "properties": properties}
        return {**schema, "required": required} if required else schema, readers


def schema_of(annotation: Any, *, output: bool = False) -> Schema:
    """Return the JSON Schema of an annotation; raise TypeError if it has none.

    `output` is for what to_json() gives: there, members with a default are always present.

    >>> schema_of(Optional[list[int]])
    {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
    """
    reader = AnnotationReader(output)
    return reader.whole(reader.shape(annotation).schema)


def converter_of(annotation: Any) -> Any:
    """Return the function that turns valid JSON into the Python value, or raises SchemaError.

    It is None if the JSON is the value.

    >>> converter_of(dict[str, bytes])({"a": "aGk="})
    {'a': b'hi'}
    """
    return AnnotationReader().shape(annotation).read


def to_json(value: Any) -> JSON:
    """Return a Python value as JSON; raise TypeError, with the way to it, for what has none.

    >>> to_json({"tags": {"b", "a"}, "raw": b"hi"})
    {'tags': ['a', 'b'], 'raw': 'aGk='}
    """
    try:
        return _json_of(value)
    except SchemaError as exc:
        where = f" at {exc.path}" if exc.path else ""
        raise TypeError(f"{exc.message}{where} has no JSON form: convert it first") from None
    except RecursionError:
        raise TypeError("the value contains itself, or is nested too deeply for JSON") from None


def _json_of(value: Any) -> JSON:
    if type(value) in PLAIN:
        return value
    if hasattr(value, "_value_"):  # an Enum, which may also be an int or a str
        return _json_of(value._value_)
    if isinstance(value, Mapping):
        return _json_of_mapping(value)
    if _is_record(type(value)):
        return {name: _json_inside(name, getattr(value, name)) for name in _field_names(value)}
    for base, plain in PLAIN.items():
        if isinstance(value, base):
            return plain(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (Sequence, set, frozenset)):
        found = [_json_inside(i, item) for i, item in enumerate(value)]
        if not isinstance(value, Sequence):
            with contextlib.suppress(TypeError):  # an order that repeats, for caches and tests
                found.sort()
        return found
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if getattr(_scalar_shape(type(value)), "schema", None):
        return str(value)
    raise SchemaError("", type(value).__name__)


def _json_of_mapping(value: Mapping[Any, Any]) -> JSON:
    """Return an object. A key is text in JSON, or an integer, written as json.dumps() does."""
    found = {}
    for key, item in value.items():
        name = _json_inside("(key)", key)
        if type(name) is int:
            name = str(name)
        if type(name) is not str:
            raise SchemaError("", f"a key of type {type(key).__name__}")
        if name in found:
            raise SchemaError("", f"the key {show_json(name)}, which occurs twice,")
        found[name] = _json_inside(name, item)
    return found


def _json_inside(step: str | int, value: Any) -> JSON:
    return value if type(value) in PLAIN else _read_inside(step, _json_of, value)


###############################################################################
# 14. Python signatures
###############################################################################
# Pure. Uses sections 1 to 3 and 13.
#
# Problem.  A function has a name, parameters and a docstring; a model needs a schema of them.
# Rules.    1. A parameter that JSON cannot fill is an error when the function is registered. The
#              error names function, parameter and remedy.
#           2. A name that the author has bound, as by functools.partial, is not for the model.
#           3. The context is not an argument. It goes to the parameter whose annotation names its
#              class, or to a parameter `ctx` that has no annotation.
# Plan.     read_docstring() finds what the author wrote about parameters; parameters_of() sorts
#           parameters by who fills them; signature_of() puts all together.
# Not here. The class of the context (section 18): the caller passes it in.
#
# A function, and the schema of its arguments:
#
#     def search(words: str, limit: int = 10, ctx: Context = None) -> list[str]:
#         """Search the archive.
#
#         Args:
#             words: what to look for
#         """
#
#     {"type": "object",
#      "properties": {"words": {"type": "string", "description": "what to look for"},
#                     "limit": {"type": "integer", "default": 10}},
#      "required": ["words"], "additionalProperties": false}

CONTEXT_NAME = "ctx"  # a parameter of this name without an annotation takes the context
MAX_LAYERS = 100  # callables inside one another; objects that invent attributes have no end



#: Three ways to describe parameters in a docstring: the block that does so, and one entry in it.
DOCSTRING_STYLES = [
    (  # Google: "Args:", and indented below it "name (type): words", or with a dash for the colon
        r"^(?:Args|Arguments|Parameters|Params):[ \t]*\n((?:[ \t]+\S.*(?:\n|\Z)|[ \t]*\n)+)",
        r"^\*{0,2}(\w+)[ \t]*(?:\(.*?\))?(?::|[ \t]+(?:--?|\u2013|\u2014)[ \t])"
        r"(.*(?:\n[ \t]+.*|\n[ \t]*$)*)",
    ),
    (  # NumPy: "Parameters" underlined, "name : type", and indented words
        r"^(?:Other )?Parameters[ \t]*\n-{3,}[ \t]*\n((?:(?!.*\n-{3,}).+(?:\n|\Z)|[ \t]*\n)+)",
        r"^\*{0,2}(\w+)(?:[ \t]*:.*)?((?:\n[ \t]+.*|\n[ \t]*$)*)",
    ),
    (  # reST: ":param type name: words"
        r"^(:(?:param|type)[ \t].*(?:\n[ \t]+.*)*(?:\n|\Z))",
        r"^:(?:param|type)[ \t]+(?:[^:\n]*[ \t])?\*{0,2}(\w+):((?:.*\n?)*)",
    ),
]


def _take_entries(entry: str, found: dict[str, str], block: re.Match[str]) -> str:
    """Put the entries of a block into `found`; return what is left of it: all, or nothing."""
    body = inspect.cleandoc("\n" + block[1])
    if not body.startswith(":type"):
        for name, words in re.findall(entry, body, re.MULTILINE):
            found[name] = " ".join(words.split())
    return block[0] if re.sub(entry, "", body, flags=re.MULTILINE).strip() else ""


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its parameters, and the description of each parameter.

    A block in which something stands that is no entry stays in the docstring: nothing gets lost.

    >>> read_docstring("Add.\\n\\nArgs:\\n    a (int): the first\\n    b - the\\n        second")
    ('Add.', {'a': 'the first', 'b': 'the second'})
    """
    text = inspect.cleandoc(text)
    found: dict[str, str] = {}
    for block, entry in DOCSTRING_STYLES:
        take = functools.partial(_take_entries, entry, found)
        text = re.sub(block, take, text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip(), found


def _layers(fn: Any) -> list[Any]:
    """Return a callable and each one inside it, outermost first: partials, wrappers, methods."""
    layers = [fn]
    while len(layers) < MAX_LAYERS:
        inner = fn.func if isinstance(fn, functools.partial) else None
        inner = inner or getattr(fn, "__wrapped__", None) or getattr(fn, "__func__", None)
        if inner is None and not inspect.isroutine(fn) and not isinstance(fn, type):
            inner = type(fn).__call__  # of an object that can be called
        if inner is None:
            break
        fn = inner
        layers.append(fn)
    return layers


def _names_around(fn: Any) -> dict[str, Any]:
    """Return the names that the annotations of a function may use."""
    home = getattr(fn, "__module__", None)  # which a method of a C class lacks
    return getattr(fn, "__globals__", None) or vars(sys.modules.get(home or "", typing))


def _takes_context(parameter: inspect.Parameter, names: Any, hidden: type) -> bool:
    """Tell whether a parameter takes the context, an object of the class `hidden`."""
    hint = parameter.annotation
    if hint is EMPTY:
        return parameter.name == CONTEXT_NAME
    if isinstance(hint, str):
        # The class may be imported for type checkers only, and `Context | None` fails on 3.9.
        # Such a string cannot be evaluated, but it can be read.
        word = rf"(\w+\.)*{hidden.__name__}"
        if re.fullmatch(rf"{word}|{word} *\| *None|(\w+\.)*Optional\[{word}\]", hint):
            return True
    try:
        return _mentions(_resolve(hint, names), (hidden,))
    except TypeError:  # an annotation that cannot be found is not the context's
        return False


class Parameters(NamedTuple):
    """The parameters of a function, by who fills them."""

    values: list[inspect.Parameter]  #: those that arguments fill, in order
    context: str | None  #: the one that takes the context
    args: str | None  #: the name of *args, if there is one
    kwargs: str | None  #: the name of **kwargs, if there is one
    positional: list[inspect.Parameter]  #: those before "/"; the context may be among them
    bound: frozenset[str]  #: filled already, by partial() or as a method's `self`
    returns: Any  #: the return annotation; EMPTY if there is none

    def call_args(self, values: Schema, context: Any = None) -> tuple[list[Any], Schema]:
        """Return what to call the function with, as fn(*args, **kwargs)."""
        if self.context is not None:
            values = {**values, self.context: context}
        if not self.positional:
            return [], values
        values = dict(values)
        return [values.pop(p.name, p.default) for p in self.positional], values


def parameters_of(fn: Callable[..., Any], hidden: type | None = None) -> Parameters:
    """Return the parameters of a callable; raise ValueError for one in C that hides them.

    A parameter takes the context if its annotation names the class `hidden`, or if it is called
    `ctx` and has no annotation. Without `hidden`, no parameter does. Two of them are a TypeError.

    >>> def add(a: int, ctx, *, b=0): ...
    >>> found = parameters_of(functools.partial(add, b=1), hidden=dict)
    >>> [p.name for p in found.values], found.context, found.bound
    (['a'], 'ctx', frozenset({'b'}))
    """
    layers, signature = _layers(fn), inspect.signature(fn)
    partials = [layer for layer in layers if isinstance(layer, functools.partial)]
    keywords = {name for partial in partials for name in partial.keywords}
    given = [p for p in signature.parameters.values() if p.name not in keywords]
    names = _names_around(layers[-1])
    values: list[inspect.Parameter] = []
    contexts: list[inspect.Parameter] = []
    for p in given:
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            is_context = hidden is not None and _takes_context(p, names, hidden)
            (contexts if is_context else values).append(p)
    if len(contexts) > 1:
        first, second = contexts[0].name, contexts[1].name
        raise TypeError(f"parameter {second!r}: {first!r} is the context already")
    by_kind = {p.kind: p.name for p in given}
    # Names of the function itself that its signature does not show: somebody has filled them.
    code = getattr(layers[-1], "__code__", None)
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    return Parameters(
        values, contexts[0].name if contexts else None,
        by_kind.get(inspect.Parameter.VAR_POSITIONAL),
        by_kind.get(inspect.Parameter.VAR_KEYWORD),
        [p for p in given if p.kind is p.POSITIONAL_ONLY],
        frozenset({*keywords, *own} - {p.name for p in given}),
        signature.return_annotation,
    )  # fmt: skip


class Signature(NamedTuple):
    """How a function is called with JSON."""

    parameters: Parameters
    schema: dict[str, Any]  #: of the arguments; an object
    returns: Any  #: the return annotation, evaluated; EMPTY if there is none
    description: str  #: the docstring, without its parameters
    converters: Readers  #: of parameters whose JSON is not yet their value
    whole: str | None  #: the parameter that takes all arguments as one dict, if one does

    def bind(self, arguments: Schema) -> Schema:
        """Return valid arguments as Python values; raise SchemaError for what cannot be one."""
        if self.whole is not None:
            return {self.whole: arguments}
        # **kwargs would let a caller replace what partial() has set: who is asking, say.
        taken = self.parameters.bound & arguments.keys()
        if taken:
            raise SchemaError(join_path(min(taken)), "unexpected property")
        return _read_members(self.converters, arguments)

    def call_args(self, arguments: Schema, context: Any = None) -> tuple[list[Any], Schema]:
        """Return what to call the function with, as fn(*args, **kwargs)."""
        return self.parameters.call_args(self.bind(arguments), context)


def _resolve_result(hint: Any, names: Any, optional: Any) -> Any:
    """Return the annotation of a result, evaluated; EMPTY if it is `optional` and cannot be."""
    try:
        return hint if hint is EMPTY else _resolve(hint, names)
    except TypeError:
        if not optional:
            raise
        return EMPTY


def signature_of(
    fn: Callable[..., Any], hidden: type | None = None, schema: Schema | None = None
) -> Signature:
    """Read a function: the schema of its parameters, and how to call it with JSON.

    `hidden` is the class of the context, which is not an argument; see parameters_of().
    Where a `schema` of the arguments is given, annotations only say how values are read. If the
    function has one parameter only, and the schema does not name it, that parameter takes all
    arguments as one dict.
    Raises TypeError, naming function, parameter and remedy, for what JSON cannot fill.

    >>> def add(a: int, b: int = 0) -> int: ...
    >>> signature_of(add).schema["required"]
    ['a']
    """
    target, reader = _layers(fn)[-1], AnnotationReader()
    names, whole, members, at = _names_around(target), None, [], ""
    try:
        parameters = parameters_of(fn, hidden)
        if schema is not None and len(parameters.values) == 1:
            name = parameters.values[0].name
            whole = None if name in schema.get("properties", ()) else name
        for p in () if whole else parameters.values:
            at = f"parameter {p.name!r}: "
            members.append((p.name, _resolve(p.annotation, names), p.default))
        if parameters.args and not whole:
            at = f"parameter {parameters.args!r}: "
            raise TypeError("JSON names every argument: take one list instead")
        at = "parameter "
        own, converters = reader.members(members)
        own = reader.whole({**own, "additionalProperties": parameters.kwargs is not None})
        at = "its result: "
        returns = _resolve_result(parameters.returns, names, whole)
    except (TypeError, ValueError, NameError, SchemaError) as exc:
        name, remedy = getattr(target, "__qualname__", repr(fn)), "; or pass input_schema="
        raise TypeError(f"{name}(): {at}{exc}{remedy if schema is None else ''}") from None
    of_class = fn.__doc__ if target.__name__ == "__call__" else ""
    description, described = read_docstring(target.__doc__ or of_class or "")
    for name, words in described.items():
        if words:
            own["properties"].get(name, {}).setdefault("description", words)
    return Signature(
        parameters, own if schema is None else schema, returns, description, converters, whole
    )

###############################################################################
# 15. URI templates
###############################################################################
# Pure. Follows RFC 6570. Uses section 1.
#
# Problem.  "note://{name}" names a family of resources. A URI has to be taken apart into the values
#           of the variables. A handler may open files with these values, whoever wrote the URI.
# Rules.    1. A URI matches a template in at most one way. Matching takes time linear in the length
#              of the URI: no regular expression is made of a template, and no place is tried twice.
#           2. Values are percent-decoded once, after matching.
#           3. No value leads out of the folder that a handler joins it to, whether it comes from a
#              path or from a query. A URI does not match if one of its values has a part "..",
#              begins with a slash or a drive ("C:/"), or has a control character. A backslash
#              counts as a slash here. `{name}` has no slash at all, not even an escaped one. The
#              one exception are file URIs: `file://{+path}` gives absolute paths.
# Plan.     In a template, literals and variables alternate. One variable at most is deep: it may
#           hold slashes. Literals before it are looked for from the left, those after it from the
#           right.
# Not here. `{#x} {;x} {&x} {x:3}` and lists: they are refused, with a message that says what to
#           write. What rule 3 does not promise: symbolic links, names that Windows reserves ("NUL",
#           "C:x"), "~", and what a shell, a database or a page of HTML may read into a value. A
#           handler that opens files must resolve links and check where it arrived.

MAX_URI_CHARS = 8192  # a longer resource URI, counted as it is sent, matches no template
MAX_TEMPLATE_CHARS = 1000  # one URI template; people write less than 100
MAX_TEMPLATE_NAMES = 32  # variables of one URI template

#: What may stand in a URI as it is: RFC 3986 §2, and "%", which begins an escape.
IN_URIS = "-._~!$&'()*+,;=:@/?#[]%"
#: Characters that no value has: the controls of ASCII and Latin-1, and Unicode's line separators.
CONTROL_CHARS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def percent_encode(text: str) -> str:
    """Return a URI with the UTF-8 of all that may not stand in URIs as %XX; escapes stay.

    Raises ValueError for a lone surrogate.

    >>> percent_encode("x://café au lait%21")
    'x://caf%C3%A9%20au%20lait%21'
    """
    from urllib.parse import quote

    return quote(text, safe=IN_URIS)


def percent_decode(text: str) -> str:
    """Return `text` with its escapes decoded, once; raise ValueError for a bad one or bad UTF-8.

    >>> percent_decode("caf%C3%A9 100%2525")
    'café 100%25'
    """
    from urllib.parse import unquote_to_bytes

    if re.search("%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(f"a percent sign without two hexadecimal digits in {text!r}")
    return unquote_to_bytes(text).decode()


def stays_inside(value: str, may_be_absolute: bool = False) -> bool:
    """Tell whether a value is free of controls and stays in the folder that it is joined to.

    >>> [stays_inside(value) for value in ("a/b", "../b", "a\\\\..\\\\b", "/a", "C:/a", "a\\0")]
    [True, False, False, False, False, False]
    """
    parts = value.replace("\\", "/").split("/")
    # Windows takes ".. " for "..".
    if CONTROL_CHARS.search(value) or any(part.strip(" ") == ".." for part in parts):
        return False
    is_absolute = len(parts) > 1 and re.fullmatch("([A-Za-z]:)?", parts[0])
    return may_be_absolute or not is_absolute


class Template:
    """A URI template, taken apart once; `names` are its variables, usable as Python parameters.

    {name}       one or more characters without a slash; likewise {a,b} {/a,b} {.ext}
    {+path}      also with slashes; likewise {path*} and {/path*}; one of these per template
    {?q,lang}    query parameters at the end, in any order, each at most once, each may be absent

    Where a literal occurs more than once, the deep variable gets as much as it can, and the others
    as little. Raises ValueError, with a remedy, for a template that is not one of these.

    >>> Template("file:///{path*}.{ext}").match("file:///etc/conf.d/my%20app.toml")
    {'path': 'etc/conf.d/my app', 'ext': 'toml'}
    >>> Template("x://find/{what}{?q,lang}").match("x://find/b?lang=en")
    {'what': 'b', 'lang': 'en'}
    >>> Template("note://{name}").match("note://..%2Fetc%2Fpasswd") is None
    True
    """

    __slots__ = ("deep", "literals", "names", "query", "start", "text", "variables")

    def __init__(self, text: str) -> None:
        self.text = text
        self.literals = [""]  # one before each variable of the path, and one behind the last
        self.variables: list[tuple[str, bool]] = []  # of the path: name, and whether it is deep
        if len(text) > MAX_TEMPLATE_CHARS:
            raise ValueError(f"a URI template may have {MAX_TEMPLATE_CHARS} characters")
        if not re.match("[A-Za-z][A-Za-z0-9+.-]*:", text):
            raise self._refuse("begin with a scheme, such as note://{name}")
        path, _, query = text.partition("{?")
        self.query = self._variable_names(query[:-1]) if query.endswith("}") else []
        if query and not self.query or self.query and "?" in path:
            raise self._refuse("write {?a,b} once, at the end, and no other question mark")
        for i, piece in enumerate(re.split(r"\{([^{}]*)\}", path)):
            if i % 2:
                self._add_expression(piece)
            elif "{" in piece or "}" in piece:
                raise self._refuse("a brace lacks its partner; a literal one is %7B or %7D")
            else:
                self.literals[-1] += percent_encode(piece)
        #: every URI that matches begins with this. It ends before the first escape, because an
        #: escape may be spelled in two ways
        self.start = self.literals[0].partition("%")[0]
        self.names = [name for name, _ in self.variables] + self.query
        deep = [i for i, (_, is_deep) in enumerate(self.variables) if is_deep]
        self.deep = deep[0] if deep else len(self.variables) - 1  # the one that takes the rest
        if len(deep) > 1 or "" in self.literals[1:-1]:
            raise self._refuse("put text between variables; only one may have + or *")
        if len(set(self.names)) != len(self.names) or len(self.names) > MAX_TEMPLATE_NAMES:
            raise self._refuse(f"name each variable once, and {MAX_TEMPLATE_NAMES} at most")

    def _refuse(self, remedy: str) -> ValueError:
        return ValueError(f"URI template {self.text!r}: {remedy}")

    def _variable_names(self, text: str, star: str = "") -> list[str]:
        for name in text.split(","):
            if not re.fullmatch(f"[A-Za-z_][A-Za-z0-9_]*{star}", name):
                raise self._refuse(f"write {{name}}, {{+path}}, {{path*}} or {{?q}}: not {name!r}")
        return text.split(",")

    def _add_expression(self, text: str) -> None:
        """Note the variables that stand in one pair of braces, and the literals between them."""
        operator = text[:1] if text[:1] in ("+", ".", "/") else ""
        # RFC 6570 §3.2.1: the text before the first value, and the text between two values
        first, between = (operator, operator) if operator in (".", "/") else ("", ",")
        for i, name in enumerate(self._variable_names(text[len(operator) :], r"\*?")):
            self.literals[-1] += between if i else first
            self.literals.append("")
            self.variables.append((name.rstrip("*"), operator == "+" or name.endswith("*")))

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded values by name, or None if `uri` is not one of this template's."""
        # A server asks all of its templates: most must say no before they look at the whole URI.
        if not uri.startswith(self.start) or len(uri) > MAX_URI_CHARS:
            return None
        with contextlib.suppress(ValueError):
            uri = percent_encode(uri)  # as a client does when it expands a template
            path, _, query = uri.partition("?") if self.query else (uri, "", "")
            if len(uri) <= MAX_URI_CHARS:
                return {**self._decode_path(path), **self._decode_query(query)}
        return None

    def _decode_query(self, query: str) -> dict[str, str]:
        pairs = [pair.partition("=") for pair in query.split("&")] if query else []
        values = {name: percent_decode(value) for name, _, value in pairs}
        if len(values) != len(pairs) or not values.keys() <= set(self.query):
            raise ValueError("a query parameter that is not ours, or that stands there twice")
        if not all(map(stays_inside, values.values())):
            raise ValueError("a value that would leave its folder")
        return values

    def _decode_path(self, path: str) -> dict[str, str]:
        values = {}
        for i, ((name, is_deep), raw) in enumerate(zip(self.variables, self._split_path(path))):
            value = values[name] = percent_decode(raw)
            # RFC 8089 §2: the path of a file URI is absolute.
            if not stays_inside(value, is_deep and self.literals[i] in ("file:", "file://")):
                raise ValueError("a value that would leave its folder")
            # "?" and "#" end a path, where they are not escaped.
            if not is_deep and (set("/\\") & set(value) or value == "." or set("?#") & set(raw)):
                raise ValueError("more than a name")
        return values

    def _split_path(self, path: str) -> list[str]:
        """Return the values, not yet decoded: find each literal once, from both ends."""
        literals, last = self.literals, len(self.variables)
        if last == 0 and path == literals[0]:
            return []
        if last == 0 or not (path.startswith(literals[0]) and path.endswith(literals[-1])):
            raise ValueError("another beginning or end")
        # The first place where a literal stands counts. A later one makes the value before it
        # longer, and a longer value has all the slashes that the shorter one was refused for.
        left, start = [], len(literals[0])
        for literal in literals[1 : self.deep + 1]:
            left.append(path[start : path.index(literal, start + 1)])
            start += len(left[-1] + literal)
        # Behind the deep variable the same is done from the right.
        right, stop = [], len(path) - len(literals[-1])
        for literal in reversed(literals[self.deep + 1 : last]):
            begin = path.rindex(literal, start, max(stop - 1, 0))
            right.append(path[begin + len(literal) : stop])
            stop = begin
        if start >= stop:
            raise ValueError("a variable without a value")
        return [*left, path[start:stop], *reversed(right)]

###############################################################################
# 16. Content and forms
###############################################################################
# Uses sections 1 to 4, 12 and 13.
#
# Problem.  Authors return texts, images, records; the wire wants content blocks. And a person is
#           asked by a form, made from a type.
# Rules.    1. Content is the wire's dict, made by a class with the right name.
#           2. A form asks for what every client can show: flat fields of primitive types.
# Plan.     The content classes; blocks_of(), messages_of(), contents_of(); answers to questions;
#           Form; InputRequired.
# Not here. When a form is sent: sections 17 and 18.

__all__ += ["Image", "Audio", "Resource", "Link", "Message", "Elicited", "InputRequired"]


class Content(dict[str, Any]):
    """A content block of a result, as on the wire: {"type": ..., ...}."""

    def to_content(self) -> Msg:
        """Return the block."""
        return self


class Image(Content):
    """An image in a result: Image(data, format="png") or Image(path="plot.png")."""

    kind, usual = "image", "png"

    def __init__(
        self, data: bytes | None = None, *, path: str | os.PathLike[str] | None = None,
        format: str | None = None, mime_type: str | None = None, **fields: Any,
    ) -> None:
        if (data is None) == (path is None):
            raise ValueError(f"{type(self).__name__} needs either data or path")
        if data is None:
            with open(path, "rb") as file:  # type: ignore[arg-type]
                data = file.read()
        suffix = os.path.splitext(str(path or ""))[1][1:].lower()
        suffix = {"jpg": "jpeg", "mp3": "mpeg", "svg": "svg+xml"}.get(suffix, suffix)
        super().__init__(type=self.kind, data=base64.b64encode(data).decode())
        self["mimeType"] = mime_type or f"{self.kind}/{format or suffix or self.usual}"
        self.update(wire_fields(self.kind, fields, ("annotations", "meta")))


class Audio(Image):
    """A sound in a result: Audio(data, format="wav") or Audio(path="hello.wav")."""

    kind, usual = "audio", "wav"


class Resource(Content):
    """The contents of a resource, in a result: Resource("file:///a.txt", "text")."""

    def __init__(
        self, uri: str, text: str | None = None, data: bytes | None = None, *,
        mime_type: str | None = None, annotations: Msg | None = None, meta: Msg | None = None,
    ) -> None:
        if (text is None) == (data is None):
            raise ValueError("Resource needs either text or data")
        usual = "text/plain" if data is None else "application/octet-stream"
        kind, blob = mime_type or usual, None if data is None else base64.b64encode(data).decode()
        contents = without_none(uri=uri, mimeType=kind, text=text, blob=blob, _meta=meta)
        super().__init__(without_none(type="resource", resource=contents, annotations=annotations))


class Link(Content):
    """A pointer to a resource, in a result: Link("file:///a.txt", "a.txt")."""

    def __init__(self, uri: str, name: str | None = None, **fields: Any) -> None:
        fields = wire_fields("link", fields, RESOURCE_FIELDS)
        super().__init__(type="resource_link", uri=uri, name=name or uri, **fields)


class Message(dict[str, Any]):
    """One message of a prompt: Message("text"), Message(Image(...), role="assistant")."""

    def __init__(self, content: Any, role: str = "user") -> None:
        if role not in ("user", "assistant"):
            raise ValueError('the role of a message is "user" or "assistant"')
        super().__init__(role=role, content=blocks_of(content))


#: From the type of a content block to the member that it cannot do without.
BLOCKS = {"text": "text", "image": "data", "audio": "data", "resource": "resource",
          "resource_link": "uri", "tool_use": "input", "tool_result": "content"}
#: The keyword arguments that describe what is registered, besides its name.
PROMPT_FIELDS = ("title", "description", "icons", "meta")
TOOL_FIELDS = (*PROMPT_FIELDS, "annotations")
RESOURCE_FIELDS = (*TOOL_FIELDS, "mime_type", "size")


def without_none(**fields: Any) -> Msg:
    """Keep the fields that are not None: absent keys are left out, never null."""
    return {name: value for name, value in fields.items() if value is not None}


def wire_fields(what: str, fields: Msg, known: Sequence[str]) -> Msg:
    """Turn keyword arguments into wire fields: mime_type -> mimeType, meta -> _meta."""
    for name in fields.keys() - {*known}:
        raise TypeError(f"a {what} has no field {name!r}; it has {', '.join(known)}")
    names = {"mime_type": "mimeType", "meta": "_meta"}
    return without_none(**{names.get(name, name): value for name, value in fields.items()})


def _is_block(value: Any) -> bool:
    return isinstance(value, dict) and BLOCKS.get(str(value.get("type"))) in value


def blocks_of(value: Any) -> list[Msg]:
    """Return the value of a handler as content blocks; a value that is no content becomes text.

    >>> blocks_of("hello"), blocks_of({"total": 3})
    ([{'type': 'text', 'text': 'hello'}], [{'type': 'text', 'text': '{"total":3}'}])
    """
    if value is None:
        return []
    if _is_block(value):
        return [value]
    if isinstance(value, (list, tuple)) and any(map(_is_block, value)):
        return [block for item in value for block in blocks_of(item)]
    value = to_json(value)
    return [{"type": "text", "text": value if isinstance(value, str) else _to_json(value)}]


def _as_blocks(content: Any) -> list[Msg]:
    """Return one member of a message's `content` as blocks; blocks that we do not know pass."""
    known = isinstance(content, dict) and "type" in content
    return [content] if known else blocks_of(content)


def messages_of(value: Any, rev: Revision, together: bool = False) -> list[Msg]:
    """Return messages as `rev` can understand them, from texts, content, Messages or dicts.

    `together` leaves several blocks in one message; otherwise each becomes one of its own.
    """
    messages = []
    for item in value if isinstance(value, (list, tuple)) else [value]:
        if not (isinstance(item, dict) and "role" in item):
            item = Message(item)
        content = item["content"] if isinstance(item["content"], list) else [item["content"]]
        blocks = [fit_content(block, rev) for each in content for block in _as_blocks(each)]
        contents = [blocks] if together and len(blocks) > 1 else blocks
        item = strip_unknown("SamplingMessage", item, rev)
        messages += [{**item, "content": each} for each in contents]
    return messages


def _is_contents(value: Any) -> bool:
    raw = isinstance(value, dict) and "uri" in value and ("text" in value or "blob" in value)
    return raw or isinstance(value, Resource)


def contents_of(uri: str, value: Any, mime_type: str | None) -> list[Msg]:
    """Return the value of a resource function as the `contents` of resources/read.

    >>> contents_of("x://a", {"n": 1}, None)
    [{'uri': 'x://a', 'mimeType': 'application/json', 'text': '{"n":1}'}]
    """
    if isinstance(value, (list, tuple)) and any(map(_is_contents, value)):
        return [contents for item in value for contents in contents_of(uri, item, mime_type)]
    if isinstance(value, Image):
        return [{"uri": uri, "mimeType": mime_type or value["mimeType"], "blob": value["data"]}]
    if isinstance(value, (bytes, bytearray)):
        value = Resource(uri, data=bytes(value), mime_type=mime_type)
    elif not _is_contents(value):
        usual = "text/plain" if isinstance(value, str) else "application/json"
        value = value if isinstance(value, str) else _to_json(to_json(value))
        value = Resource(uri, value, mime_type=mime_type or usual)
    return [value["resource"] if isinstance(value, Resource) else value]


class Elicited(NamedTuple):
    """The answer of a person: `data` is None unless `action` is "accept"."""

    action: str
    data: Any = None


def check_answer(method: str, answer: Msg) -> Msg:
    """Return the answer to a question; raise SchemaError if it is none."""
    wanted = METHODS[method].answer
    compile_schema({"properties": dict(wanted), "required": [*wanted]}).check(answer)
    return answer


# spec: client/elicitation#requested-schema -- "limited to flat objects with primitive properties"
FORM_TYPES = ("string", "number", "integer", "boolean", "array")
FORM_FORMATS = ("email", "uri", "date", "date-time")
FORM_WORDS = frozenset(
    "type title description default enum enumNames oneOf items format pattern minLength maxLength "
    "minimum maximum minItems maxItems".split()
)


def is_result(value: Any) -> bool:
    """Return whether a tool returned its result as the wire has it, and not data of its own.

    The wire's result is a dict that has only the wire's members, and whose `content` is a list of
    content blocks. An empty list says nothing: then another of the members must be there.

    >>> is_result({"content": [{"type": "text", "text": "hi"}]}), is_result({"content": ["hi"]})
    (True, False)
    >>> is_result({"content": [], "isError": True}), is_result({"content": []})
    (True, False)
    """
    others = {"structuredContent", "isError", "_meta"}
    if not isinstance(value, dict) or value.keys() - others != {"content"}:
        return False
    content = value["content"]
    if not isinstance(content, list) or not all(map(_is_block, content)):
        return False
    return bool(content) or len(value) > 1


class Form:
    """A form for a person to fill in, made from a type or a schema."""

    def __init__(self, wanted: Any) -> None:
        self.convert: Callable[[Any], Any] | None = None
        #: fields that may be None in Python, and so be absent: a form has no null
        self.nullable: set[str] = set()
        if isinstance(wanted, (list, tuple)):
            wanted = {"type": "string", "enum": list(wanted)}
        elif wanted is not None and not isinstance(wanted, dict):
            self.convert, wanted = converter_of(wanted), schema_of(wanted)
        wanted = wanted or {"properties": {}}
        self.wrapped = "properties" not in wanted
        if self.wrapped:
            wanted = {"properties": {"value": wanted}, "required": ["value"]}
        fields = {name: self._field(name, field) for name, field in wanted["properties"].items()}
        required = [name for name in wanted.get("required", ()) if name not in self.nullable]
        needed = without_none(required=required or None)
        self.schema = {"type": "object", "properties": fields, **needed}
        self.check = compile_schema(self.schema).check

    def _field(self, name: str, field: Msg) -> Msg:
        options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
        if len(options) == 1:
            self.nullable.add(name)
            field = {**options[0], **field}
        choices = field.get("enum", ["any"])
        if field.get("type") == "array":
            items = field.get("items", {})
            choices = items.get("enum") or [part.get("const") for part in items.get("anyOf", ())]
        strings = choices and all(isinstance(choice, str) for choice in choices)
        if field.get("type") not in FORM_TYPES or not strings:
            raise TypeError(f"a form cannot ask for {name!r}: use str, int, float, bool, date, a "
                            "Literal or Enum of str, or a list of one of these two")
        return {word: value for word, value in field.items() if word in FORM_WORDS
                and value is not None and (word != "format" or value in FORM_FORMATS)}

    def read(self, answer: Msg) -> Elicited:
        """Return an ElicitResult as Python values; raise SchemaError if it is none."""
        action = check_answer("elicitation/create", answer)["action"]
        if action != "accept":
            return Elicited(action)
        content = answer.get("content")
        if content is not None and not isinstance(content, dict):
            raise SchemaError("content", f"expected object, got {kind_of(content)}")
        fields = self.schema["properties"].items()
        defaults = {name: field["default"] for name, field in fields if "default" in field}
        content = {**defaults, **(content or {})}
        self.check(content)
        if self.convert is not None:
            content = {**dict.fromkeys(self.nullable), **content}
        value = content["value"] if self.wrapped else content
        return Elicited(action, value if self.convert is None else self.convert(value))


class InputRequired(NamedTuple):
    """The return value of a handler that makes its rounds by hand, without ctx.elicit() and so on.

    `requests` are {name: {"method": "elicitation/create", "params": {...}}}. The handler is called
    again, with the answers in ctx.input_responses and `state`, any JSON, in ctx.request_state.
    """

    requests: Msg
    state: JSON = None

###############################################################################
# 17. Rounds
###############################################################################
# Uses sections 1 to 5 and 13.
#
# Problem.  In the modern era a server sends no requests. A handler that must ask the client in the
#           middle of a call cannot wait for the answer: the call has to end with the question. The
#           client then makes the same call again with the answer, and the handler runs again.
# Rules.    1. One call is made of rounds. Each round runs the handler once, from the top.
#           2. An answer counts only for the question that it was given to. A digest of the method
#              and the parameters of the question is kept with each answer. A run that asks
#              something else under the same key asks the client again.
#           3. once() keeps the result of a function that must not run in every round. The name of
#              the function and a digest of its arguments are kept with the result.
#           4. The record of the call travels through the client in `requestState`: signed, bound
#              to the method, the parameters and the principal, and short-lived. The server itself
#              keeps nothing, so that another process can serve the next round.
# Plan.     A timeline; Run, one run of a handler; Rounds, the record of a call; the sealed state;
#           Asking, the ways of a question to the client.
# Not here. ctx.elicit() and its siblings: section 18. Questions of tasks: section 24.
#
# A tool that asks twice and calls a function once:
#
#     async def move(name: str, ctx: Context) -> str:
#         where = await ctx.elicit("Where to?", str)
#         slot = await ctx.once(reserve, name)
#         sure = await ctx.elicit(f"Take slot {slot}?")
#         return "moved" if sure.action == "accept" else "left alone"
#
# One call of it takes three rounds. Each request repeats the method and the arguments.
#
#     client                                     server
#     tools/call {"name": "move", ...}   ---->   Run 1. "Where to?" has no answer: the run ends.
#                                        <----   input_required
#                                                  inputRequests {"elicitation-1": "Where to?"}
#                                                  requestState  asked   elicitation-1
#     The person types "attic".
#     tools/call {"name": "move", ...    ---->   Run 2. "Where to?": "attic", from this request.
#       inputResponses {"elicitation-1"}         reserve() is called and returns 7.
#       requestState   as it came                "Take slot 7?" has no answer: the run ends.
#                                        <----   input_required
#                                                  inputRequests {"elicitation-2": "Take slot 7?"}
#                                                  requestState  answers elicitation-1 "attic"
#                                                                done    reserve() 7
#                                                                asked   elicitation-2
#     The person agrees.
#     tools/call {"name": "move", ...    ---->   Run 3. "Where to?": "attic", from the record.
#       inputResponses {"elicitation-2"}         reserve() is not called: 7, from the record.
#       requestState   as it came                "Take slot 7?": accepted, from this request.
#                                        <----   complete: "moved"
#
# Questions that are asked together, as by asyncio.gather(), go out in one round.
#
# What once() promises: a result that an earlier round recorded is not computed again. What it does
# not promise: a client may send one round twice, as it may call any tool twice, and then the
# function of that round runs twice. `ctx.call_id` helps here. It is the same in all rounds of one
# call, and no client can choose it: use it as the key of the payment, the order or the row, and a
# second attempt finds the first. Nothing in the record is secret: the client cannot change it, but
# can read it. So a result of once() must not contain anything that the client may not see.

MAX_STATE_BYTES = 256 * 1024  # of a requestState; every round carries it both ways
MAX_ROUNDS = 16  # rounds of questions in one call, before it is taken for a loop
ASK_SECONDS = 600.0  # for an answer from a person: elicitation, sampling, roots
STATE_SECONDS = 900.0  # for which a requestState is good: people take their time to answer

#: Whether a function that was given to Context.once() is running; it may not ask the client.
IN_ONCE: contextvars.ContextVar[bool] = contextvars.ContextVar("mcp_lite.once", default=False)


class Run:
    """One run of a handler: from its start to its answer, or to the question that ends it."""

    __slots__ = ("exchange", "loop", "over", "suspended", "due", "busy", "waiting")

    def __init__(self, exchange: Exchange, loop: asyncio.AbstractEventLoop) -> None:
        self.exchange, self.loop = exchange, loop
        #: whether the handler has ended: nothing more may be said for it
        self.over = False
        #: whether a question has ended it
        self.suspended = False
        #: whether a question is to end it, as soon as nothing is `busy`
        self.due = False
        #: the functions of once() that are running; their results are recorded first
        self.busy: set[object] = set()
        #: futures of threads, and tasks that wait for an answer: they end with the run
        self.waiting: set[Any] = set()

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants the answer any more."""
        return self.over or self.exchange.state is CANCELLED

    def report(self, text: str) -> None:
        """Hear how far the handler is. Only a TaskRun (section 24) shows it to somebody."""

    def start_task(self) -> None:
        """Become a task of the protocol. Only a TaskRun (section 24) does."""

    def suspend_soon(self) -> None:
        """End this run, when all that is asked together has been asked."""
        if not self.due:
            self.due = True
            # Questions that are asked together, as in a gather, come in one turn of the loop: the
            # run ends one turn later.
            self.loop.call_soon(self.loop.call_soon, self._suspend)

    def _suspend(self) -> None:
        """End this run as if it were cancelled: its `finally` blocks run."""
        if not self.over and not self.busy:
            self.due, self.suspended = False, True
            self.exchange.task.cancel()

    @contextlib.contextmanager
    def busy_once(self) -> Generator[None, None, None]:
        """Hold the end of this run off while a function of once() is running."""
        token, mark = IN_ONCE.set(True), object()
        self.busy.add(mark)
        try:
            yield
        finally:
            self.busy.discard(mark)
            IN_ONCE.reset(token)
            if self.due:
                self.loop.call_soon_threadsafe(self._suspend)

    def end(self) -> None:
        """Say no more, and end the questions of threads that still wait."""
        self.over = True
        if self.waiting:
            self.release()

    def release(self) -> None:
        """End everything that waits for the client, in threads and in tasks of the handler."""
        for future in list(self.waiting):
            future.cancel()


class Rounds:
    """The record of one call: its questions, its answers, and the results of once().

    >>> name = "elicitation/create", {"message": "Name?"}
    >>> first = Rounds({}, {})
    >>> first.answer(first.claim_key("who", name[0]), *name) is None
    True
    >>> first.ask("who", *name)
    >>> first.requests
    {'who': {'method': 'elicitation/create', 'params': {'message': 'Name?'}}}
    >>> second = Rounds(first.record(), {"who": {"action": "decline"}})
    >>> second.answer(second.claim_key("who", name[0]), *name)
    {'action': 'decline'}

    Another question under the same key has no answer:

    >>> second.answer("who", name[0], {"message": "Age?"}) is None
    True
    """

    __slots__ = ("call_id", "answers", "done", "requests", "claimed", "counted", "custom")

    def __init__(self, record: Msg, responses: Msg) -> None:
        #: the same in all rounds of one call
        self.call_id: str = record.get("call") or os.urandom(16).hex()
        asked: dict[str, str] = record.get("asked", {})
        # spec: basic/patterns/mrtr#error-handling -- a response without a question is ignored
        new = {key: [digest, responses[key]] for key, digest in asked.items()
               if isinstance(responses.get(key), dict)}
        #: by key: the digest of a question, and its answer; the first answer stays
        self.answers: dict[str, list[Any]] = {**new, **record.get("answers", {})}
        #: by the number of a call of once(): its mark, and its result if there is one
        self.done: dict[str, list[Any]] = dict(record.get("done", {}))
        #: the questions of this round
        self.requests: Msg = {}
        self.claimed: list[str] = []  # the keys that the handler used in this run
        self.counted = 0  # how many times this run has used once()
        #: state of a handler that makes its rounds by hand
        self.custom: JSON = record.get("custom")

    def claim_key(self, key: str | None, method: str) -> str:
        """Return the key of the next question: the author's, or its kind and its number."""
        kind, number = method.partition("/")[0], len(self.claimed) + 1
        own = (f"{kind}-{n}" for n in itertools.count(number))
        name = key if key is not None else next(name for name in own if name not in self.claimed)
        if name in self.claimed:
            raise ValueError(f"the key {name!r} names two questions of one request")
        self.claimed.append(name)
        return name

    def answer(self, key: str, method: str, params: Msg) -> Msg | None:
        """Return the answer to this very question, if there is one."""
        if key not in self.answers:
            return None
        digest, answer = self.answers[key]
        if digest == digest_of(method, params):
            return dict(answer)
        logger.warning("the question %r is not that of the round before: it is asked again", key)
        return None

    def ask(self, key: str, method: str, params: Msg) -> None:
        """Note that a question must be asked, or asked again."""
        self.answers.pop(key, None)
        self.requests[key] = {"method": method, "params": params}

    def once(self, mark: str) -> list[Any]:
        """Return the record of the next once(): [mark], or [mark, result] if it was computed.

        `mark` says what is called. Raises RPCError if an earlier round called something else here.
        """
        self.counted += 1
        turn = self.done.setdefault(str(self.counted), [mark])
        if turn[0] != mark:
            raise RPCError(
                INTERNAL_ERROR, "the handler took another path than in the round before: "
                f"its ctx.once() number {self.counted} was {turn[0]}, and now is {mark}",
            )
        return turn

    def record(self) -> Msg:
        """Return the record for the next round."""
        asked = {key: digest_of(**question) for key, question in self.requests.items()}
        done = {turn: row for turn, row in self.done.items() if len(row) == 2}
        record: Msg = {"call": self.call_id, "answers": self.answers, "asked": asked, "done": done}
        if self.custom is not None:
            record["custom"] = self.custom
        return record


def mark_of(fn: Callable[..., Any], args: Sequence[Any]) -> str:
    """Return a text that tells one call of once() from another: the function, a digest of `args`.

    An argument that has no JSON form counts by its type: connections differ from run to run.

    >>> mark_of(len, ["abc"]) == mark_of(len, ["abc"]), mark_of(len, ["abd"])
    (True, 'builtins.len(2ae93b990b686442)')
    """
    named: Any = fn
    while isinstance(named, functools.partial):
        named, args = named.func, (*named.args, named.keywords, *args)
    line = getattr(getattr(named, "__code__", None), "co_firstlineno", 0)
    named = named if hasattr(named, "__qualname__") else type(named)
    where = f":{line}" if named.__qualname__.endswith("<lambda>") else ""
    said = []
    for value in args:
        try:
            said.append(json.dumps(to_json(value), sort_keys=True))
        except (TypeError, ValueError, RecursionError):
            said.append(type(value).__qualname__)
    return f"{named.__module__}.{named.__qualname__}{where}({digest_of('', {'': said})[:16]})"


def seal(key: bytes, payload: Msg) -> str:
    """Return a payload as text that only the holder of `key` can have made: "json.mac", base64.

    spec: basic/patterns/mrtr#server-requirements-basic-workflow -- "servers MUST protect its
    integrity"

    >>> unseal(b"key", seal(b"key", {"n": 1}))
    {'n': 1}
    >>> unseal(b"key", seal(b"other", {"n": 1})) is None
    True
    """
    import hmac

    body = base64.urlsafe_b64encode(encode(payload))
    mac = base64.urlsafe_b64encode(hmac.digest(key, body, "sha256"))
    return (body + b"." + mac).decode()


def unseal(key: bytes, text: str) -> Msg | None:
    """Return the payload of a sealed text, or None if it is not one.

    >>> unseal(b"key", "anything") is None
    True
    """
    import hmac

    body, _, mac = text.encode("ascii", "replace").partition(b".")
    right = base64.urlsafe_b64encode(hmac.digest(key, body, "sha256"))
    if not hmac.compare_digest(mac, right):
        return None
    payload = decode(base64.urlsafe_b64decode(body))
    return payload if isinstance(payload, dict) else None


def digest_of(method: str, params: Msg) -> str:
    """Return a digest of a method and its parameters, without those that change between rounds.

    >>> digest_of("ping", {"a": 1}) == digest_of("ping", {"a": 1, "_meta": {}})
    True
    """
    import hashlib

    skip = ("_meta", "inputResponses", "requestState")
    bare = {name: value for name, value in sorted(params.items()) if name not in skip}
    text = json.dumps([method, bare], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_state(key: bytes, bound: list[str], record: Msg) -> str:
    """Return a requestState: a record that only the same request can bring back, and soon.

    `bound` is the digest of the request, and the key of its principal.
    """
    expires = int(time.time() + STATE_SECONDS)
    text = seal(key, {"bound": bound, "expires": expires, "record": record})
    if len(text) > MAX_STATE_BYTES:
        raise RPCError(INTERNAL_ERROR, f"the request's state is over {MAX_STATE_BYTES} bytes")
    return text


def read_state(key: bytes, bound: list[str], text: JSON) -> Msg:
    """Return the record in a requestState; RPCError -32602 if it is not ours for this request."""
    if text is None:
        return {}
    sound = isinstance(text, str) and len(text) <= MAX_STATE_BYTES
    payload = unseal(key, text) if sound else None
    # spec: basic/patterns/mrtr#server-requirements-basic-workflow -- another principal's, a
    # lapsed one, another request's
    if payload is None:
        problem = "not one that this server gave"
    elif payload["bound"] != bound:
        problem = "it belongs to another request"
    elif payload["expires"] < time.time():
        problem = "it has expired; begin again"
    else:
        record: Msg = payload["record"]
        return record
    raise RPCError(INVALID_PARAMS, f"requestState: {problem}")


class Question(NamedTuple):
    """One question of a handler to the client."""

    method: str
    params: Msg
    #: the author's name for it
    key: str | None
    #: seconds for the answer, where it can be waited for
    timeout: float
    #: returns the answer as the handler gets it; SchemaError if it is none
    read: Callable[[Msg], Any]


class Asking:
    """How the questions of a handler reach its client. A Context has one."""

    #: whether a question ends the run, and its answer begins another from the top
    replays = False

    async def ask(self, question: Question) -> Any:
        """Return the answer to a question."""
        raise NotImplementedError

    def turn(self, fn: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
        """Return where the result of once(fn, *args) is kept: [mark], or [mark, result]."""
        return [""]


class AskNever(Asking):
    """The modern era, for methods that cannot end in a question.

    spec: basic/patterns/mrtr#supported-requests
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem

    async def ask(self, question: Question) -> Any:
        """Raise RuntimeError, which says why."""
        raise RuntimeError(self.problem)


class AskByRequest(Asking):
    """The legacy era: a question is a request to the client, whose answer is awaited."""

    def __init__(self, peer: Peer, send: Send) -> None:
        self.peer, self.send = peer, send

    async def ask(self, question: Question) -> Any:
        """Send the question, and wait."""
        method, params, _, timeout, read = question
        answer = await self.peer.ask(method, params, self.send, patience=timeout, longest=timeout)
        return read(answer)


class AskInRounds(Asking):
    """The modern era: the answer comes from an earlier round, or the question ends this run."""

    replays = True

    def __init__(self, rounds: Rounds, run: Run) -> None:
        self.rounds, self.run = rounds, run

    async def ask(self, question: Question) -> Any:
        """Return the answer that is there, or end the run."""
        key = self.rounds.claim_key(question.key, question.method)
        answer = self.rounds.answer(key, question.method, question.params)
        if answer is not None:
            with contextlib.suppress(SchemaError):
                return question.read(to_json(answer))  # a copy: the record must not change
        # spec: basic/patterns/mrtr#error-handling -- missing information is requested again
        self.rounds.ask(key, question.method, question.params)
        self.run.suspend_soon()
        await self.run.loop.create_future()  # until the run ends

    def turn(self, fn: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
        """Return the record of this turn of once()."""
        return self.rounds.once(mark_of(fn, args))


def questions_of(wanted: InputRequired) -> dict[str, tuple[str, Msg]]:
    """Return the questions that a handler makes by hand: {key: (method, parameters)}.

    >>> questions_of(InputRequired({"where": {"method": "roots/list"}}))
    {'where': ('roots/list', {})}
    """
    questions: dict[str, tuple[str, Msg]] = {}
    for key, ask in wanted.requests.items():
        method = ask.get("method") if isinstance(ask, dict) else None
        params = ask.get("params", {} if method == "roots/list" else None) if method else None
        row = METHODS.get(method) if isinstance(method, str) else None
        if row is None or not row.answer or type(params) is not dict:
            raise TypeError(f"{ask!r:.200} is no request for input: it needs method and params")
        questions[key] = (row.name, params)
    return questions

###############################################################################
# 18. Context
###############################################################################
# Uses sections 1 to 6, 8, 13, 16 and 17.
#
# Problem.  A handler wants to know of its request, to report while it runs, and to ask the client
#           for something. It should not see the era, the transport, or which thread it runs in.
# Rules.    1. The eras meet in two places: where a Context is made, and where it is decided how
#              questions reach the client (ways_to_ask).
#           2. Nothing is said for a request after its answer.
#           3. A `def` handler runs in a worker thread. There, each method of Context waits for the
#              loop by itself; in an `async def` handler the same method is awaited.
#           4. A record of the program's log goes to the client whose request caused it. A record
#              without a request might be somebody else's secret.
# Plan.     Context: the facts of the request; saying; asking; the record of the call, with once().
#           LogHandler.
# Not here. Who makes a Context: section 22. How a function gets one: section 19.

__all__ += ["Context", "LogHandler"]

RETRY_MS = 1000  # what we ask a reader to wait before it comes back, or wait ourselves


if typing.TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    Given = ParamSpec("Given")


def _from_threads(
    method: Callable[Concatenate[Context, Given], Any],
) -> Callable[Concatenate[Context, Given], Any]:
    """Let a method of Context be awaited on the loop, and simply be called in a worker thread.

    To a type checker its result is Any: on the loop it is to be awaited, in a thread it is there.
    """

    @functools.wraps(method)
    def either(self: Context, /, *args: Given.args, **kwargs: Given.kwargs) -> Any:
        return self._on_loop(method(self, *args, **kwargs))

    return either


def is_async(fn: Any) -> bool:
    """Return whether a callable gives a coroutine: async def, in a partial, or as a method."""
    call = getattr(fn, "__call__", None)  # noqa: B004 -- the method itself is wanted
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(call)


def _at_level(level: str) -> Callable[..., Any]:
    def log(self: Context, data: JSON, logger: str | None = None) -> Any:
        return self.log(level, data, logger)

    log.__doc__ = f"Send a log message of level {level!r}, as log() does."
    return log


class Context:
    """The way of a handler to its client: facts of the request, messages, questions.

    Annotate a parameter `ctx: Context` to get it. In an `async def` handler the methods are
    awaited; a `def` handler runs in a thread and calls them without await.
    """

    # Attributes that most requests never change stand here.
    _meter: ProgressMeter | None = None
    _timer: asyncio.TimerHandle | None = None
    _rounds: Rounds | None = None
    #: how questions reach the client; None until one is asked
    asking: Asking | None = None

    def __init__(self, conversation: Conversation, exchange: Exchange, facts: Facts) -> None:
        self.server, self.facts = conversation.server, facts
        self.request_id, self.method = exchange.req_id, exchange.method
        #: the parameters; their `_meta`: progress token, trace context, whatever the client sent
        self.params, self.meta = exchange.params, exchange.meta
        self.revision = facts.rev.name  #: a date
        #: the client's own words about itself, and what it can be asked; nothing is verified
        self.client_info, self.client_capabilities = facts.client_info, facts.client_capabilities
        #: a dict that lives as long as the client's session; in the modern era, as the request
        self.state: dict[str, Any] = {} if facts.rev.modern else conversation.state
        self.lifespan = conversation.lifespan  #: the value that the server's lifespan yielded
        #: who was authenticated, or None; the HTTP headers, names in lower case
        self.principal, self.headers = exchange.caller.principal, exchange.caller.headers
        #: a stable key of the principal, "" for nobody
        self.owner = exchange.caller.owner
        #: how long, in ms, and by whom the result may be kept; for resources that say so
        self.cache: Msg = {}
        #: for the sections that serve: the client's conversation, the request, this run of it
        self.conversation, self.exchange = conversation, exchange
        self.run = Run(exchange, conversation.loop)
        #: tasks whose messages must leave before the answer does
        self._sending: set[asyncio.Task[Any]] = set()

    def require(self, *scopes: str) -> None:
        """Raise RPCError unless whoever asks may do what needs these scopes.

        Over HTTP that becomes 403, by which a client asks its user for more. Where there is no
        network between us, as over stdio, there are no scopes either.
        """
        missing = self.lacks(scopes)
        if missing:
            # spec: basic/authorization/index#runtime-insufficient-scope-errors
            problem = f"this needs the scope {' '.join(sorted(missing))}"
            raise RPCError(FORBIDDEN, problem, {"scope": " ".join(scopes)})

    def lacks(self, scopes: Iterable[str]) -> set[str]:
        """Return which of these scopes whoever asks has not; see require()."""
        caller = self.exchange.caller
        if not caller.address and caller.principal is None:
            return set()
        return set(scopes).difference(getattr(caller.principal, "scopes", ()))

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants the answer any more; a thread should look now and then."""
        return self.run.cancelled

    def _on_loop(self, coro: Any) -> Any:
        """Return a coroutine on the loop; in another thread, have it run there, and wait."""
        if threading.get_ident() == self.conversation.thread:
            return coro
        import concurrent.futures

        waiting = self.run.waiting
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self.server.threads.blocked())
                future = asyncio.run_coroutine_threadsafe(coro, self.conversation.loop)
            except (RPCError, RuntimeError):  # too many wait; the loop has ended before this thread
                coro.close()
                raise
            waiting.add(future)
            try:
                return future.result()
            except concurrent.futures.CancelledError:
                # That one is an Exception: a handler's `except Exception` would catch it, go on.
                raise asyncio.CancelledError from None
            finally:
                waiting.discard(future)

    # Saying.

    @_from_threads
    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far this is; nothing happens if it did not ask to know.

        `progress` must grow from call to call. Many calls in a short time are thinned out, but
        the last one always arrives.
        """
        of = f"/{total:g}" if total else ""
        self.run.report(message or f"{progress:g}{of}")
        token, loop = self.meta.get("progressToken"), self.conversation.loop
        if not is_id(token):
            return
        if self._meter is None:
            self._meter = ProgressMeter(token, Budget(*PROGRESS_RATE))  # type: ignore[arg-type]
        await self._send_progress(self._meter.report(progress, total, message, loop.time()))
        if self._meter.held is not None and self._timer is None:
            self._timer = loop.call_later(PROGRESS_RATE[1], self._flush_later, self._meter)

    def _flush_later(self, meter: ProgressMeter) -> None:
        self._timer = None
        self._spawn(self._send_progress(meter.flush()))

    async def _send_progress(self, params: Msg | None) -> None:
        if params is not None:
            fitted = strip_unknown("Progress", params, self.facts.rev)
            await self._say(notification("notifications/progress", fitted))

    async def _say(self, msg: Msg) -> None:
        # spec: basic/patterns/progress#behavior-requirements -- nothing after the answer. A call
        # that becomes a task is answered early.
        if self.exchange.state is RUNNING and not self.run.over:
            with contextlib.suppress(ConnectionClosed):  # the client has gone since
                await self.exchange.send(msg)

    def _spawn(self, coro: Any) -> None:
        """Send from a task of its own, but before the answer."""
        task = self.conversation.peer.tasks.spawn(coro)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def say_soon(self, msg: Msg, size: int) -> None:
        """Send a notification of so many bytes before the answer, but do not wait for that.

        From any thread. More than a client reads in time is dropped.
        """
        self._outbox.put(msg, size)

    @functools.cached_property
    def _outbox(self) -> Outbox:
        return Outbox(self._say, functools.partial(self.conversation.call_on_loop, self._deliver))

    def _deliver(self) -> None:
        self._spawn(self._outbox.deliver())

    @property
    def holds_back(self) -> bool:
        """Whether something is yet to be sent before the answer: call flush()."""
        return bool(self._sending) or self._meter is not None

    async def flush(self) -> None:
        """Send the messages that were held back."""
        if self._timer is not None:
            self._timer.cancel()
        if self._sending:
            await asyncio.wait(self._sending)
        if self._meter is not None:
            await self._send_progress(self._meter.flush())

    @_from_threads
    async def log(self, level: str, data: JSON, logger: str | None = None) -> None:
        """Send a log message, if the client wants its level; `data` is any JSON value."""
        if level not in LOG_LEVELS:
            raise ValueError(f"{level!r} is no log level; they are {', '.join(LOG_LEVELS)}")
        if self.conversation.wants_log(level, self.facts.log_level, self.exchange.caller):
            params = {**without_none(level=level, logger=logger), "data": to_json(data)}
            await self._say(notification("notifications/message", params))

    debug, info, notice = _at_level("debug"), _at_level("info"), _at_level("notice")
    warning, error, critical = _at_level("warning"), _at_level("error"), _at_level("critical")

    @_from_threads
    async def notify(self, method: str, params: Msg | None = None) -> None:
        """Send any other notification, if the client's revision has it or it is your own."""
        if method not in METHODS or self.revision in METHODS[method].revisions:
            await self._say(notification(method, params))

    @_from_threads
    async def start_task(self) -> None:
        """Go on as a task, in a tool with task="manual": the client gets a handle, and polls.

        Questions before this come in rounds of the request, questions after it in the task.
        """
        self.run.start_task()

    @_from_threads
    async def close_stream(self, retry_ms: int = RETRY_MS) -> bool:
        """End the connection that waits for this request; the client comes back for the answer.

        Returns False where that cannot be: outside HTTP, and in revisions without it.
        spec 2025-11-25: basic/transports#sending-messages-to-the-server
        """
        pause = self.exchange.pause
        return bool(pause and await pause(retry_ms))

    @_from_threads
    async def read_resource(self, uri: str) -> list[Msg]:
        """Return the `contents` of one of this server's own resources."""
        cache = self.cache
        try:
            return await self.server.read_resource(self, uri)
        finally:
            self.cache = cache  # how long those may be kept says nothing of this request

    # Asking.

    @_from_threads
    async def elicit(
        self, message: str, wanted: Any = None, *, key: str | None = None,
        timeout: float = ASK_SECONDS,
    ) -> Elicited:
        """Ask the person at the client for a value of a type, or of a JSON Schema.

        `wanted` is a dataclass, TypedDict, primitive, Literal, Enum, a list of choices, a schema,
        or None for a plain confirmation. In the modern era, `key` names the question.

        Raises CapabilityMissing, or SchemaError if the client's answer does not fit the form.
        """
        form, mode = Form(wanted), "form" if self.facts.rev.rich_elicitation else None
        params = without_none(mode=mode, message=message, requestedSchema=form.schema)
        answer: Elicited = await self._ask("elicitation/create", params, key, timeout, form.read)
        return answer

    @_from_threads
    async def elicit_url(
        self, message: str, url: str, *, id: str | None = None, key: str | None = None,
        timeout: float = ASK_SECONDS,
    ) -> Elicited:
        """Ask the person to open a URL. "accept" means that they agreed, not that they are done.

        When they are: ctx.notify("notifications/elicitation/complete", {"elicitationId": id}).
        """
        number = None if self.facts.rev.modern else id or os.urandom(16).hex()
        params = without_none(mode="url", message=message, url=url, elicitationId=number)
        answer = await self._ask("elicitation/create", params, key, timeout)
        return Elicited(answer["action"])

    @_from_threads
    async def sample(
        self, messages: Any, *, max_tokens: int = 1000, system: str | None = None,
        temperature: float | None = None, stop: Sequence[str] | None = None,
        model_preferences: Msg | None = None, include_context: str | None = None,
        tools: Sequence[Msg] | None = None, tool_choice: Msg | None = None,
        metadata: Msg | None = None, key: str | None = None, timeout: float = ASK_SECONDS,
    ) -> Msg:
        """Let the client's model write: a text, a Message, a message dict, or a list of them.

        Returns {"role", "content", "model", "stopReason"?}. Raises CapabilityMissing.
        """
        rich = self.facts.rev.rich_sampling
        if rich and not declares(self.client_capabilities, "sampling.context"):
            include_context = None  # spec: client/sampling#capabilities -- "SHOULD NOT" be used
        params = without_none(
            messages=messages_of(messages, self.facts.rev, together=rich), maxTokens=max_tokens,
            systemPrompt=system, temperature=temperature, modelPreferences=model_preferences,
            stopSequences=list(stop) if stop else None, includeContext=include_context,
            tools=list(tools) if tools else None, toolChoice=tool_choice or None, metadata=metadata,
        )
        return dict(await self._ask("sampling/createMessage", params, key, timeout))

    @_from_threads
    async def roots(self, *, key: str | None = None, timeout: float = ASK_SECONDS) -> list[Msg]:
        """Return the folders that the client works in: [{"uri", "name"?}]; spec: client/roots."""
        return list((await self._ask("roots/list", {}, key, timeout))["roots"])

    def check_question(self, method: str, params: Msg) -> None:
        """Raise CapabilityMissing if the client, or its revision, cannot be asked this."""
        rev, declared, row = self.facts.rev, self.client_capabilities, METHODS[method]
        if not rev.modern and self.conversation.session.resumed:
            why = f"this server keeps no sessions, so it cannot ask a client of revision {rev.name}"
            raise CapabilityMissing("client", row.capability, f"{why}: see sessions=")
        needed = {row.capability: rev.name in row.revisions}
        if params.get("mode") == "url":
            needed = {"elicitation.url": rev.rich_elicitation}
        elif method == "elicitation/create" and declared.get("elicitation"):
            # spec: client/elicitation#capabilities -- "an empty capabilities object" means forms
            needed["elicitation.form"] = True
        elif "tools" in params or "toolChoice" in params:
            needed["sampling.tools"] = rev.rich_sampling
        for capability, known in needed.items():
            check_capability("client", declared if known else {}, capability, rev)

    def ways_to_ask(self) -> Asking:
        """Return how questions reach the client: by request, or in rounds of this call.

        Here, and where a Context is made, the eras differ.
        """
        if self.asking is None:
            row = METHODS.get(self.method)
            if not self.facts.rev.modern:
                self.asking = AskByRequest(self.conversation.peer, self.exchange.send)
            elif row is not None and row.may_ask:
                self.asking = AskInRounds(self.rounds(), self.run)
            else:
                problem = f"in {self.revision} {self.method} cannot ask the client"
                self.asking = AskNever(problem)
        return self.asking

    async def _ask(
        self, method: str, params: Msg, key: str | None, timeout: float,
        read: Callable[[Msg], Any] | None = None,
    ) -> Any:
        """Ask the client, and return what `read` makes of the answer."""
        self.check_question(method, params)
        if IN_ONCE.get():
            raise RuntimeError("ask before ctx.once(), not in it: answers are kept by themselves")
        if self.cancelled:  # a thread that has not noticed
            raise asyncio.CancelledError
        read = read or functools.partial(check_answer, method)
        if "requestedSchema" in params:
            schema = fit_form(params["requestedSchema"], self.facts.rev)
            params = {**params, "requestedSchema": schema}
        task, waiting = asyncio.current_task(), self.run.waiting
        waiting.add(task)
        try:
            question = Question(method, params, key, timeout, read)
            return await self.ways_to_ask().ask(question)
        finally:
            waiting.discard(task)

    async def ask_by_hand(self, wanted: InputRequired) -> None:
        """Carry out an InputRequired: end this run with it, or ask the client here and now."""
        questions, rounds = questions_of(wanted), self.rounds()
        for method, params in questions.values():
            self.check_question(method, params)
        rounds.custom = to_json(wanted.state)
        if not self.ways_to_ask().replays:
            for key, question in questions.items():
                answer = await self._ask(*question, key, ASK_SECONDS, dict)
                rounds.answers[key] = [digest_of(*question), answer]
            return
        for key, question in questions.items():
            rounds.ask(key, *question)
        self.run.suspended = True
        raise asyncio.CancelledError  # as an awaited question ends the run

    # The record of the call.

    def rounds(self) -> Rounds:
        """Return the record of the earlier rounds of this call, checked."""
        if self._rounds is None:
            params = self.params if self.facts.rev.modern else {}
            responses, text = params.get("inputResponses"), params.get("requestState")
            record = read_state(self.server.state_key, self._bound(), text)
            self._rounds = Rounds(record, responses if isinstance(responses, dict) else {})
        return self._rounds

    def _bound(self) -> list[str]:
        """Return what a requestState of this request is bound to."""
        return [digest_of(self.method, self.params), self.owner]

    @property
    def used_rounds(self) -> bool:
        """Whether the result may depend on earlier rounds of this call."""
        return self._rounds is not None

    def input_required(self) -> Msg:
        """Return the result of a run that a question has ended."""
        rounds = self.rounds()
        asked = without_none(inputRequests=rounds.requests or None)
        state = write_state(self.server.state_key, self._bound(), rounds.record())
        return {"resultType": "input_required", **asked, "requestState": state}

    @property
    def call_id(self) -> str:
        """A random name of this call, the same in all its rounds, for databases of your own.

        Use it as the key of an order or a payment: a client may send one round twice.
        """
        return self.rounds().call_id

    @property
    def input_responses(self) -> Msg:
        """The client's answers by name, for handlers that make their rounds by hand.

        They answer what this call has asked, and nothing else. But what the handler would ask now
        may be another question: answer_to() compares, or `state` of InputRequired says what the
        question was about.
        """
        return {key: answer for key, (_, answer) in self.rounds().answers.items()}

    def answer_to(self, key: str, request: Msg) -> Msg | None:
        """Return the answer to this very request of an InputRequired, or None if there is none."""
        ((_, question),) = questions_of(InputRequired({key: request})).items()
        return self.rounds().answer(key, *question)

    @property
    def request_state(self) -> JSON:
        """The state that an earlier round of this request returned, or None."""
        return self.rounds().custom

    def once(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Return fn(*args), JSON, from the record if an earlier round of this call computed it.

        `fn` must not ask. Raises RPCError if an earlier round called another function here, or
        the same with other arguments: so give `fn` all that it depends on in `args`. A client that
        sends one round twice runs `fn` twice; give it `call_id` to find that out. The client can
        read the result, so it must hold no secrets. In the legacy era `fn` is simply called.
        """
        if is_async(fn) or threading.get_ident() == self.conversation.thread:
            return self._on_loop(self._once(fn, *args))
        turn = self._turn(fn, args)
        if len(turn) == 1:
            with self.run.busy_once():  # in this thread: no other may be free
                turn.append(to_json(fn(*args)))
        return to_json(turn[1])

    async def _once(self, fn: Callable[..., Any], *args: Any) -> JSON:
        turn = self._turn(fn, args)
        if len(turn) == 1:
            with self.run.busy_once():
                turn.append(to_json(await self.server.call(fn, *args)))
        return to_json(turn[1])

    def _turn(self, fn: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
        inside = IN_ONCE.get()  # the result of the outer once() is kept, and is enough
        return [""] if inside else self.ways_to_ask().turn(fn, args)


#: The request that is being served, for log records written on its behalf.
CURRENT: contextvars.ContextVar[Context] = contextvars.ContextVar("mcp_lite.context")


class LogHandler(logging.Handler):
    """Forward log records to the clients; make one with Server.log_handler().

    A record that is written on behalf of a request goes to the client of that request. Others, as
    from a thread that run_in_executor() took, might tell one client what belongs to another: they
    go to all clients, but to none once a client was authenticated, unless `everyone` says so.
    """

    def __init__(self, server: Server, level: int = logging.INFO, everyone: bool = False) -> None:
        super().__init__(level)
        self.server, self.everyone = server, everyone

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record; never raises, never blocks."""
        if record.name.split(".")[0] == "mcp_lite":
            return  # what we log about sending must not be sent
        ctx = CURRENT.get(None)
        if ctx is not None and ctx.server is not self.server:
            return  # it belongs to a request of another server in this process
        try:
            steps = ((50, "critical"), (40, "error"), (30, "warning"), (20, "info"), (0, "debug"))
            level = next(level for number, level in steps if record.levelno >= number)
            params = {"level": level, "logger": record.name, "data": self.format(record)}
            msg = notification("notifications/message", params)
            if ctx is not None:
                ctx.conversation.forward(level, msg, ctx)
            elif self.everyone or not self.server.guarded:
                for conversation in list(self.server.conversations):
                    conversation.forward(level, msg)
        except Exception:
            self.handleError(record)

###############################################################################
# 19. Registrations
###############################################################################
# Uses sections 1 to 4 and 11 to 18.
#
# Problem.  Authors have plain functions, and want to offer them as tools, resources and prompts
#           without learning the protocol.
# Rules.    1. A decorator makes an entry, puts it into a registry, and gives the function back.
#           2. Everything that can be computed from a function is computed when it is registered:
#              its schema, its validator, its converters, and how it is listed.
#           3. Arguments are checked against the schema that was published, then converted.
# Plan.     relax(), which helps arguments that are nearly right; output_schema_of(), the schema of
#           a tool's result; Entry, and its kinds Tool, Prompt and ResourceEntry; Registry;
#           Registrations, the half of a server that knows what it offers.
# Not here. The other half, which serves: section 22. The methods that list and call: section 23.

MAX_ARGUMENTS = 1000  # members of one `arguments` object
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749 §3.3

def relax(arguments: Schema, schema: Schema | Validator) -> Schema:
    """Return arguments as the model probably meant them; to be called when they are not valid.

    Models write "3" for 3, and prompts and URIs have nothing but text. A string is read as JSON
    where the schema admits no string there, but does admit the value that is read. A null that is
    not admitted is left out, unless the argument is required. Nothing else is changed.

    >>> schema = {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
    >>> relax({"n": "3", "s": "3"}, schema)
    {'n': 3, 's': '3'}
    """
    try:
        validator = schema if isinstance(schema, Validator) else compile_schema(schema)
    except SchemaError:
        return arguments
    required = validator.schema.get("required", ()) if isinstance(validator.schema, dict) else ()
    run = CheckRun()  # one budget for all arguments

    def admitted_instead(name: str, value: JSON) -> frozenset[str]:
        """Return the types of what is admitted, if the type of the value is not."""
        failures = validator.failures({name: value}, run)
        return next((f.kinds for f in failures if f.path == (name, ())), frozenset())

    relaxed = dict(arguments)
    for name, value in arguments.items():
        kinds = admitted_instead(name, value)
        if kinds and value is None and name not in required:
            del relaxed[name]
        elif kinds and isinstance(value, str) and "string" not in kinds:
            with contextlib.suppress(ProtocolError, UnicodeError):
                read = decode(value.encode())
                if value == value.strip() and not admitted_instead(name, read):
                    relaxed[name] = read
    return relaxed


def output_schema_of(
    annotation: Any, opaque: tuple[type, ...] = ()
) -> tuple[Schema | None, bool]:
    """Return the schema of a tool's `structuredContent`, and whether that wraps the value.

    Only an object can stand there: anything else becomes {"result": value}. The schema is None
    where there is nothing to say: no annotation, None, Any, or one of the `opaque` classes inside.

    >>> output_schema_of(int)[0]["properties"]
    {'result': {'type': 'integer'}}
    """
    says_nothing = _unwrap(annotation)[0] in (EMPTY, Any, object, None, type(None))
    if says_nothing or _mentions(annotation, opaque):
        return None, False
    schema = schema_of(annotation, output=True)
    defs = schema.pop("$defs", {})
    if "$ref" in schema:
        schema = {**defs[schema.pop("$ref").rpartition("/")[2]], **schema}
    wrapped = schema.get("type") != "object"
    if wrapped:
        schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return ({**schema, "$defs": defs} if defs else schema), wrapped


class Entry:
    """Something registered: a function, how to call it, and how it is listed."""

    what = "entry"  # a word for messages
    serial = 0  # its place in lists

    def __init__(self, key: str, name: str, fn: Any, fields: Msg, schema: Any = None) -> None:
        self.name, self.fn, self.is_async = name, fn, is_async(fn)
        self.definition: Msg = {key: name, **fields}
        if fn is None:
            return
        self.signature = signature_of(fn, Context, schema)
        self.schema = self.signature.schema
        self.validator = compile_schema(self.schema)
        if self.signature.description:
            self.definition.setdefault("description", self.signature.description)

    @property
    def label(self) -> str:
        """What messages call it: "tool 'add'"."""
        return f"{self.what} {self.name!r}"

    def bind(self, given: Msg, ctx: Context) -> tuple[list[Any], Msg]:
        """Return the arguments for fn(*args, **kwargs); raise SchemaError if `given` is wrong."""
        if len(given) > MAX_ARGUMENTS:
            raise SchemaError("", f"more than {MAX_ARGUMENTS} arguments")
        try:
            self.validator.check(given)
        except SchemaError:
            # Models write "3" for 3, and prompts and URIs have nothing but text. Where the schema
            # leaves no doubt about the meaning, such values are understood.
            given = relax(given, self.validator)
            self.validator.check(given)
        return self.signature.call_args(given, ctx)

    async def call(self, ctx: Context, args: list[Any], kwargs: Msg) -> Any:
        """Call the function; call it again after each InputRequired that it returns."""
        for _ in range(MAX_ROUNDS + 1):
            if self.is_async:
                value = await self.fn(*args, **kwargs)
            else:
                value = await ctx.server.call(self.fn, *args, **kwargs)
            if not isinstance(value, InputRequired):
                return value
            await ctx.ask_by_hand(value)
        raise RPCError(INTERNAL_ERROR, f"{ctx.method} asked more than {MAX_ROUNDS} times")


#: Checks of later sections on each tool that is registered; each may raise SchemaError.
TOOL_CHECKS: list[Callable[[Any], None]] = []


class Tool(Entry):
    """A registered tool."""

    what = "tool"
    #: arguments that HTTP headers repeat; section 35 finds them
    mirrors: Sequence[Any] = ()

    def __init__(
        self, fn: Callable[..., Any], *, name: str | None = None, input_schema: Msg | None = None,
        output_schema: Msg | None = None, structured: bool = True, task: bool | str = False,
        scopes: str | Sequence[str] = (), **fields: Any,
    ) -> None:
        self.scopes = (scopes,) if isinstance(scopes, str) else tuple(scopes)
        if not all(map(SCOPE.fullmatch, self.scopes)):
            raise ValueError(f"scopes={scopes!r}: each is one word, without quotes")
        if task not in (False, True, "required", "manual"):
            raise ValueError(f'task={task!r}: give True, "required" or "manual"')
        fields = wire_fields("tool", fields, TOOL_FIELDS)
        super().__init__("name", name or _name_of(fn), fn, fields, input_schema)
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", self.name):
            # spec: server/tools#tool-names -- SHOULD, so it is said and not refused
            logger.warning("tool name %r: use 1 to 128 of A-Z a-z 0-9 _ - .", self.name)
        self.task, self.structured, self.wrapped = task, structured, False
        returns = self.signature.returns
        if output_schema is None and structured:
            output_schema, self.wrapped = output_schema_of(returns, (Content, Message))
        self.check_output = compile_schema(output_schema).check if output_schema else None
        #: the one type that is right as it stands: such results need no conversion and no check
        self.plain = returns if self.wrapped and returns in (str, int, float, bool) else None
        self.definition["inputSchema"] = self.schema
        self.definition.update(without_none(outputSchema=output_schema))
        for check in TOOL_CHECKS:
            check(self)

    def result(self, value: Any) -> Msg:
        """Return the CallToolResult for the value of the function; raise SchemaError."""
        if self.plain is not None and type(value) is self.plain and value == value:
            text = value if self.plain is str else _to_json(value)
            content = [{"type": "text", "text": text}]
            return {"content": content, "structuredContent": {"result": value}}
        answer: Msg = value
        if not is_result(value):
            answer = {"content": blocks_of(value)}
            if self.check_output is not None:
                out = to_json(value)
                answer["structuredContent"] = {"result": out} if self.wrapped else out
            elif self.structured and isinstance(value, dict) and not _is_block(value):
                answer["structuredContent"] = to_json(value)
        # spec: server/tools#output-schema -- results "MUST" conform; those of failures need not
        if self.check_output is not None and not answer.get("isError"):
            if "structuredContent" not in answer:
                raise SchemaError("structuredContent", "is missing; say structured=False if meant")
            self.check_output(answer["structuredContent"])
        return answer


class Prompt(Entry):
    """A registered prompt."""

    what = "prompt"

    def __init__(self, fn: Callable[..., Any], *, name: str | None = None, **fields: Any) -> None:
        fields = wire_fields("prompt", fields, PROMPT_FIELDS)
        super().__init__("name", name or _name_of(fn), fn, fields)
        required, arguments = self.schema.get("required", ()), []
        for key, field in self.schema["properties"].items():
            about = without_none(description=field.get("description"), title=field.get("title"))
            arguments.append({"name": key, **about, "required": key in required})
        self.definition.update(without_none(arguments=arguments or None))


class ResourceEntry(Entry):
    """A registered resource or resource template; `value` is its function or its contents."""

    what = "resource"

    def __init__(
        self, uri: str, value: Any, *, name: str | None = None, ttl_ms: int | None = None,
        cache_scope: str | None = None, **fields: Any,
    ) -> None:
        fields = wire_fields("resource", fields, RESOURCE_FIELDS)
        self.value, self.cache = value, without_none(ttlMs=ttl_ms, cacheScope=cache_scope)
        check_hints(self.cache)
        template, fn = Template(uri), value if callable(value) else None
        self.template = template if template.names else None
        super().__init__("uriTemplate" if self.template else "uri", uri, fn, fields)
        self.definition["name"] = name or (_name_of(fn) if fn else uri)
        if isinstance(value, (str, bytes)):
            data = value.encode("utf-8", "replace") if isinstance(value, str) else value
            self.definition.setdefault("size", len(data))
        # spec: server/resources#resource-templates
        schema, names = self.schema if fn else {"properties": ()}, {*template.names}
        for problem, odd in (
            ("the function has no parameter", names - {*schema["properties"]}),
            ("the template has no", {*schema.get("required", ())} - names),
        ):
            if odd:
                raise TypeError(f"resource {uri!r}: {problem} {', '.join(sorted(odd))}")

    async def fetch(self, ctx: Context, found: Msg) -> Any:
        """Return the value of the resource, for the variables that were found in its URI."""
        ctx.cache = self.cache
        if self.fn is None:
            return self.value
        try:
            args, kwargs = self.bind(found, ctx)
        except SchemaError as exc:  # the URI is wrong, not the function
            raise RPCError(INVALID_PARAMS, str(exc)) from exc
        return await self.call(ctx, args, kwargs)

    def contents(self, uri: str, value: Any) -> list[Msg]:
        """Return a value as the `contents` of resources/read."""
        return contents_of(uri, value, self.definition.get("mimeType"))


def _name_of(fn: Any) -> str:
    name = getattr(fn, "__name__", None) or getattr(getattr(fn, "func", None), "__name__", None)
    if not name or name == "<lambda>":
        raise TypeError(f"{fn!r} has no name of its own: pass name=")
    return str(name)


def check_hints(hints: Msg) -> Msg:
    """Return hints on keeping a result, {"ttlMs"?, "cacheScope"?}; ValueError for wrong ones."""
    ms, scope = hints.get("ttlMs", 0), hints.get("cacheScope", "private")
    # spec: server/utilities/caching#time-to-live-ttl-field -- "MUST provide a ttlMs value that is
    # >= 0"
    if not isinstance(ms, int) or ms < 0:
        raise ValueError(f"ttl_ms={ms!r}: give a number of milliseconds, 0 or more")
    if scope not in ("public", "private"):
        raise ValueError(f'cache_scope={scope!r}: give "public" or "private"')
    return hints


class Registry(dict[str, Any]):
    """Entries by name, each with a serial number that never comes again, for stable pages."""

    def __init__(self, what: str, make: Callable[..., Entry], changed: Callable[[], None]) -> None:
        super().__init__()
        self.what, self.make, self.changed, self.last = what, make, changed, 0

    def offer(self, fn: Any, options: Msg) -> Any:
        """Register a function and give it back; for a name or nothing, return a decorator."""
        if not callable(fn):
            options = {**without_none(name=fn), **options}
            return lambda given: self.offer(given, options)
        self.add(self.make(fn, **options))
        return fn

    def add(self, entry: Entry) -> None:
        """Register an entry; one of the same name is replaced, in its place."""
        self.last += 1
        entry.serial = self.last
        if entry.name in self:
            again = "the %s %r was registered again: the last one counts"
            logger.warning(again, self.what, entry.name)
            entry.serial = self[entry.name].serial
        self[entry.name] = entry
        self.changed()

    def drop(self, name: str) -> None:
        """Remove an entry; KeyError names it if it is not there."""
        if self.pop(name, None) is None:
            raise KeyError(f"no {self.what} {name!r}")
        self.changed()

    def find(self, name: str) -> Any:
        """Return an entry; RPCError -32602 suggests the nearest name if there is none."""
        entry = self.get(name)
        if entry is None:
            import difflib

            near = difflib.get_close_matches(name[:200], list(self), 1)
            suggestion = f"; did you mean {near[0]!r}?" if near else ""
            raise RPCError(INVALID_PARAMS, f"Unknown {self.what}: {name}{suggestion}")
        return entry


class Route(NamedTuple):
    """A page beside the MCP endpoint."""

    fn: Callable[..., Any]
    public: bool
    any_host: bool = False


async def call_plain(fn: Callable[..., Any], ctx: Context, *values: Any) -> Any:
    """Call a function with as many of the values as it takes, and ctx if it wants it."""
    parameters = parameters_of(fn, Context)
    named = {p.name: value for p, value in zip(parameters.values, values)}
    args, kwargs = parameters.call_args(named, ctx)
    return await ctx.server.call(fn, *args, **kwargs)


class Registrations:
    """What a server offers: tools, prompts, resources, completions, and methods of its own."""

    def __init__(self, capabilities: Msg | None = None) -> None:
        # changed("tools") is a function that calls list_changed("tools")
        changed = functools.partial(functools.partial, self.list_changed)
        self.tools = Registry("tool", Tool, changed("tools"))
        self.prompts = Registry("prompt", Prompt, changed("prompts"))
        self.resources = Registry("resource", ResourceEntry, changed("resources"))
        self.templates = Registry("resource template", ResourceEntry, changed("resources"))
        self.completions: dict[tuple[str, str], Callable[..., Any]] = {}
        self.methods: dict[str, Callable[..., Any]] = {}
        self.listeners: dict[str, Callable[..., Any]] = {}
        self.middlewares: list[Callable[..., Any]] = []
        self.routes: dict[tuple[str, str], Route] = {}
        self.extra_capabilities = capabilities or {}
        self._capabilities: Msg | None = None  # None again when something comes or goes
        self._offered: Msg = {}  # those that were declared before: they stay

    def list_changed(self, kind: str) -> None:
        """Hear that something of a kind ("tools", "prompts", "resources") came or went."""
        self._capabilities = None  # made again when they are asked for

    def tool(self, fn: Any = None, **options: Any) -> Any:
        """Offer a function as a tool: @app.tool, @app.tool("name") or @app.tool(title=...).

        Options: name, title, description, annotations, icons, meta; input_schema, output_schema
        replace what the types say; structured=False sends text only. task=True lets it run as a
        task where the client can, "required" only there, "manual" from ctx.start_task() on.
        `scopes` are those that a token must have, over HTTP: see Context.require().
        """
        return self.tools.offer(fn, options)

    def prompt(self, fn: Any = None, **options: Any) -> Any:
        """Offer a function that returns a str, a Message, or a list of them, as a prompt.

        Options: name, title, description, icons, meta.
        """
        return self.prompts.offer(fn, options)

    def resource(self, uri: str, **options: Any) -> Any:
        """Offer the value of a function as a resource, or as a template: "note://{name}".

        Options: name, title, description, mime_type, size, annotations, icons, meta. The function
        gives str, bytes, Resource, a list of Resource, or any JSON value.
        """
        if callable(uri):
            raise TypeError('write @app.resource("scheme://path") with the URI')
        return functools.partial(self.add_resource, uri, **options)

    def add_resource(self, uri: str, source: Any, **options: Any) -> Any:
        """Offer a function or a value as a resource, at any time; clients that listen are told."""
        entry = ResourceEntry(uri, source, **options)
        (self.templates if entry.template else self.resources).add(entry)
        return source

    add_tool, add_prompt = tool, prompt

    def remove_tool(self, name: str) -> None:
        """Offer a tool no longer."""
        self.tools.drop(name)

    def remove_prompt(self, name: str) -> None:
        """Offer a prompt no longer."""
        self.prompts.drop(name)

    def remove_resource(self, uri: str) -> None:
        """Offer a resource or a template no longer."""
        (self.templates if uri in self.templates else self.resources).drop(uri)

    def complete(self, ref: str, argument: str) -> Callable[[Any], Any]:
        """Complete an argument of a prompt (by name) or a template (by URI) with a function.

        fn(value), or fn(value, arguments) to see the other arguments, gives a list of str.
        """
        return functools.partial(_enter, self.completions, (ref, argument))

    def method(self, name: str) -> Callable[[Any], Any]:
        """Serve a method of your own: fn(ctx, params) gives the result, a dict."""
        if name in METHODS:
            raise ValueError(f"{name} is a method of the protocol")
        return functools.partial(_enter, self.methods, name)

    def on(self, name: str) -> Callable[[Any], Any]:
        """Hear a notification of the client: fn(params)."""
        return functools.partial(_enter, self.listeners, name)

    def route(
        self, method: str, path: str, *, public: bool = False, any_host: bool = False
    ) -> Callable[[Any], Any]:
        """Serve a page beside the endpoint, over HTTP: fn(request) gives str, bytes or JSON.

        It may also give (status, content type, body) or (status, headers, body). `public` pages
        need no token. With `any_host`, their Host and Origin are not checked either, because
        probes call a server by its address. Plain functions run in threads of their own, and so
        wait for no tool.
        """

        def enter(fn: Any) -> Any:
            try:
                inspect.signature(fn).bind(None)
            except TypeError:
                raise TypeError(f"{_name_of(fn)}: a page's function takes the request") from None
            return _enter(self.routes, (method.upper(), path), Route(fn, public, any_host)).fn

        return enter

    def middleware(self, fn: Any) -> Any:
        """Wrap every request: async def fn(ctx, call_next): return await call_next(ctx)."""
        self.middlewares.append(fn)
        return fn

    def capabilities(self) -> Msg:
        """Return what this server offers, as `initialize` declares it."""
        if self._capabilities is None:
            listed, sources = {"listChanged": True}, self.resources or self.templates
            # A capability stays when its last entry goes: a client that hears of the change reads
            # the list, and finds it empty.
            self._offered.update(without_none(
                tools=listed if self.tools else None,
                resources={"subscribe": True, **listed} if sources else None,
                prompts=listed if self.prompts else None,
                completions={} if self.prompts or self.templates else None,
            ))
            tasks = any(tool.task for tool in list(self.tools.values()))
            now = without_none(logging={}, extensions={TASKS: {}} if tasks else None)
            self._capabilities = {**now, **self._offered, **self.extra_capabilities}
        return self._capabilities

    def find_resource(self, uri: str, rev: Revision) -> tuple[ResourceEntry, Msg]:
        """Return what is registered for a URI, and the variables of its template in it."""
        if uri in self.resources:
            return self.resources[uri], {}
        for entry in list(self.templates.values()):
            found = entry.template.match(uri)
            if found is not None:
                return entry, found
        # spec 2025-11-25: server/resources#error-handling
        code = rev.resource_not_found
        raise RPCError(code, f"Resource not found: {uri}", {"uri": uri})

    async def read_resource(self, ctx: Context, uri: str) -> list[Msg]:
        """Return the `contents` of a resource; RPCError if there is none at this URI."""
        entry, found = self.find_resource(uri, ctx.facts.rev)
        return entry.contents(uri, await entry.fetch(ctx, found))


def _enter(table: dict[Any, Any], key: Any, value: Any) -> Any:
    table[key] = value
    return value


def place_of(frame: types.FrameType | None) -> str:
    """Return where a stack of calls stands: in which request, and where in its handler."""
    ours, stack = place_of.__code__.co_filename, []
    while frame is not None:
        stack.append(frame)
        frame = frame.f_back
    if not stack:
        return "nobody knows where"
    own = [n for n, each in enumerate(stack) if each.f_code.co_filename == ours]
    request, at = "", stack[0]
    for each in stack:
        ctx = each.f_locals.get("ctx")
        if isinstance(ctx, Context):
            name = ctx.params.get("name", ctx.params.get("uri", ""))
            request, at = f"{ctx.method} {name!r}, ", stack[max(own[0] - 1, 0)]
            break
    return f"{request}{at.f_code.co_name}() in {at.f_code.co_filename}, line {at.f_lineno}"


###############################################################################
# 20. Lifespans
###############################################################################
# Uses sections 1, 7 and 19.
#
# Problem.  A server opens things before it serves, and closes them afterwards: in the right order,
#           for each event loop that it serves on.
# Rules.    1. The first conversation on a loop opens the lifespan, the last one closes it. It never
#              opens while the old one is leaving.
#           2. What a lifespan holds (connections, say) belongs to its loop: each has its own.
#           3. The bus brings announcements from other processes. One loop at a time hears it;
#              when that loop ends, another takes over. What it raises goes to the log.
# Plan.     Life, a lifespan that is open; Lives, those of a server; Bus.
# Not here. The threads of a server: section 7.

CLEANUP_SECONDS = 1.0  # for threads that were told to end, to see it and to clean up



class Life:
    """A lifespan that is open on one event loop: a task of its own enters it and leaves it."""

    def __init__(self, manager: Any) -> None:
        self.loop = asyncio.get_running_loop()
        #: how many need it; their tasks that go on after an answer
        self.users, self.tasks = 0, Tasks()
        self.leave, self.leaving = asyncio.Event(), False
        #: how many requests are being served on this loop: it is watched only meanwhile
        self.running = 0
        self.watch = LoopWatch(lambda: self.running, place_of)
        #: what the lifespan yields
        self.entered: asyncio.Future[Any] = self.loop.create_future()
        self.task = asyncio.ensure_future(self._live(manager))

    async def _live(self, manager: Any) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                value = await stack.enter_async_context(manager) if manager else None
                _settle(self.entered, value, None)
                await self.leave.wait()
        except Exception as exc:
            if self.entered.done():
                raise
            _settle(self.entered, None, exc)  # raised by whoever waits for it

    async def close(self) -> None:
        """Leave the lifespan; what it raises meanwhile is raised here."""
        self.leave.set()
        if not self.entered.done():
            self.task.cancel()
        await asyncio.wait({self.task})
        if not self.task.cancelled():
            self.task.result()


class Lives:
    """The open lifespans of a server: one on each event loop that serves.

    The first who needs one opens it, the last closes it.
    """

    def __init__(self, manager: Callable[[], Any] | None, bus: Bus, threads: Threads) -> None:
        #: makes the author's context manager, if there is one
        self.manager = manager
        self.bus, self.threads = bus, threads
        self.lock = threading.Lock()
        self.open: dict[asyncio.AbstractEventLoop, Life] = {}
        #: the one on whose loop the bus is heard: a bus may hold a connection, too
        self.hearer: Life | None = None

    def here(self) -> Life:
        """Return the one that is open on the running loop; RuntimeError if there is none."""
        life = self.open.get(asyncio.get_running_loop())
        if life is None:
            problem = "the lifespan of the server is not open on this event loop: "
            raise RuntimeError(problem + "serve within `async with app.lifespan_open()`")
        return life

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Hold the lifespan of this loop open."""
        loop = asyncio.get_running_loop()
        while loop in self.open and self.open[loop].leaving:  # the next one opens when it has left
            await asyncio.wait({self.open[loop].task})
        life = self.open[loop] if loop in self.open else self._begin()
        life.users += 1
        try:
            await asyncio.shield(life.entered)
            yield
        finally:
            life.users -= 1
            if not life.users:
                await self._end(life)

    def _begin(self) -> Life:
        life = Life(self.manager() if self.manager else None)
        life.task.add_done_callback(lambda task: self.open.pop(life.loop))
        with self.lock:
            if all(each.leaving for each in self.open.values()):
                self.bus.open()
            self.open[life.loop] = life
        self._choose_hearer()
        return life

    async def _end(self, life: Life) -> None:
        life.leaving = True
        life.watch.stop()
        last = all(each.leaving for each in list(self.open.values()))
        try:
            await life.tasks.close()
            if last:
                self.bus.close()
                # Functions that look at ctx.cancelled get the time to see it, and to clean up.
                await self.threads.drain(CLEANUP_SECONDS)
                self.threads.close()
            else:
                self._choose_hearer()
        finally:
            await life.close()

    def _choose_hearer(self) -> None:
        """Let the bus be heard on one loop, as long as there is any."""
        if self.bus.carrier is None:
            return
        with self.lock:
            if self.hearer is not None and not self.hearer.leaving:
                return
            alive = [life for life in self.open.values() if not life.leaving]
            self.hearer = alive[0] if alive else None
        if self.hearer is not None:
            with contextlib.suppress(RuntimeError):  # its loop ended badly
                self.hearer.loop.call_soon_threadsafe(self._hear, self.hearer)

    def _hear(self, life: Life) -> None:
        if life.leaving:  # since it was chosen
            self._choose_hearer()
        else:
            life.tasks.spawn(self.bus.hear())


class Bus:
    """The way of announcements from process to process: the author's carrier, if there is one."""

    def __init__(self, carrier: Any, tell: Callable[[str, Msg], None]) -> None:
        self.carrier, self.tell = carrier, tell
        #: marks our own events; "" while nobody here is served, and so has been told of anything
        self.origin = ""

    def open(self) -> None:
        """Begin to publish. Not before: processes may be forked after the server was made."""
        self.origin = os.urandom(8).hex()

    def close(self) -> None:
        """Publish no more."""
        self.origin = ""

    def publish(self, capability: str, msg: Msg) -> None:
        """Tell the other processes; an error of the carrier goes to the log."""
        if self.carrier is None or not self.origin:
            return
        try:
            self.carrier.publish({"from": self.origin, "capability": capability, "msg": msg})
        except Exception:
            logger.exception("the bus did not take %s", msg["method"])

    async def hear(self) -> None:
        """Pass on what other processes announce."""
        async for event in self.carrier:
            try:
                if event["from"] != self.origin:
                    self.tell(event["capability"], event["msg"])
            except Exception as exc:  # another version of us may speak otherwise
                logger.warning("the bus brought what is no event of ours: %r", exc)

###############################################################################
# 21. Records
###############################################################################
# Uses sections 1 to 3, 5 and 10.
#
# Problem.  Who runs a server wants to know what was asked, by whom, how long it took, and how it
#           ended. A status of HTTP does not tell: a tool that failed is a 200.
# Rules.    1. Each request gives one record, when its answer has left or when it is clear that it
#              has none. A request over HTTP that is refused at the door gives one, too.
#           2. A record holds no arguments, no results, no headers and no tokens.
#           3. What the peer has named is bounded in length, and cannot begin a line of its own in
#              a log.
#           4. Where nobody observes and nobody reads the log, nothing is made.
# Plan.     Record; Watch, a request on its way to its record; AccessLog, which writes records;
#           Observers, who get them.
# Not here. Where requests begin and end: Peer (section 10). Metrics and spans: examples/production
#           makes them of records.

__all__ += ["Record"]

MAX_NAME_CHARS = 200  # of a name in a record: of a tool, a URI, a client, a principal
MAX_BAGGAGE_CHARS = 8192  # of `tracestate` and `baggage`: as much as W3C Baggage §3.3.2 asks for

access_logger = logging.getLogger("mcp_lite.access")

TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}"
)


class Record(NamedTuple):
    """What became of one request. The texts are "" where there is nothing to say."""

    time: float  #: when it came, in seconds since 1970
    method: str  #: "" for a request that was refused at the door
    target: str  #: the name of the tool or prompt, the URI; or method and path, as "POST /mcp"
    #: "result"; "tool_error"; "error", with its `code`; "cancelled" by the client; "lost", when the
    #: client went away before it; "input_required" or "task", as the result says; "refused", with
    #: the status as its `code`
    outcome: str
    code: int | None
    ms: float  #: from the request, when its turn came, until its answer was taken
    bytes: int  #: of the answer; 0 where the channel does not count
    principal: str  #: its subject, or its key
    session: str  #: the beginning of the session's id: who reads it cannot use it
    request_id: ReqId | None
    client: str  #: its own words: "name/version"
    era: str  #: "legacy" or "modern"
    revision: str
    address: str  #: of the client, behind trusted proxies too
    scheme: str  #: "http" or "https" where it came over HTTP
    #: spec: basic/index#_meta -- the W3C trace context that the client sent
    traceparent: str
    tracestate: str
    baggage: str

    @property
    def trace_id(self) -> str:
        """The id of the trace to which the request belongs: 32 hexadecimal digits, or ""."""
        return self.traceparent[3:35]

    @property
    def parent_id(self) -> str:
        """The id of the client's span, which caused this: 16 hexadecimal digits, or ""."""
        return self.traceparent[36:52]

    def fields(self) -> Msg:
        """Return what a log says of it, as JSON: all that is there, but for the baggage.

        >>> record = refused_record(0.0, "POST /mcp", 401, "192.0.2.1", "https")
        >>> logfmt({**record.fields(), "time": "now"})
        'time=now target="POST /mcp" outcome=refused code=401 ms=0.0 bytes=0 address=192.0.2.1 \
scheme=https'
        """
        whole, ms = divmod(round(self.time * 1000), 1000)
        clock = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{ms:03}Z"
        row = {**self._asdict(), "time": clock, "ms": round(self.ms, 1), "trace": self.trace_id}
        for name in ("era", "traceparent", "tracestate", "baggage"):
            del row[name]
        return {name: value for name, value in row.items() if value is not None and value != ""}


def refused_record(when: float, target: str, status: int, address: str, scheme: str) -> Record:
    """Return the record of a request over HTTP that was refused before its message was read."""
    nothing = Record(when, "", _named(target), "refused", status, *(0.0, 0, "", "", None, ""),
                     *("", "", "", "", "", "", ""))  # fmt: skip
    return nothing._replace(address=address, scheme=scheme)


def logfmt(fields: Msg) -> str:
    """Return fields as one line of text. Values that could be mistaken are written as in JSON.

    >>> logfmt({"method": "tools/call", "target": "a b", "ms": 1.5, "client": "x\\nmethod=y"})
    'method=tools/call target="a b" ms=1.5 client="x\\\\nmethod=y"'
    """
    plain = re.compile(r"[!#-<>-\[\]-~]+")  # visible ASCII but for quotes, `=` and backslashes
    texts = {key: str(value) for key, value in fields.items()}
    return " ".join(
        f"{key}={text if plain.fullmatch(text) else json.dumps(text)}"
        for key, text in texts.items()
    )


def _named(value: JSON, most: int = MAX_NAME_CHARS) -> str:
    return value[:most] if isinstance(value, str) else ""


def target_of(params: Msg) -> str:
    """Return what a request is about: the name of a tool or prompt, or a URI.

    >>> target_of({"name": "add"}), target_of({"ref": {"type": "ref/prompt", "name": "review"}})
    ('add', 'review')
    """
    ref = params.get("ref")
    where = ref if isinstance(ref, dict) else params
    return _named(where.get("name", where.get("uri", params.get("taskId"))))


def principal_name(caller: Caller) -> str:
    """Return who a principal is, for a log: a text, the subject, or the key; "" for nobody.

    >>> principal_name(Caller(principal={"iss": "https://a", "sub": "alice"}, owner="subject ..."))
    'alice'
    """
    principal = caller.principal
    if isinstance(principal, Mapping):
        subject = principal.get("sub", principal.get("subject"))
    else:
        subject = getattr(principal, "subject", principal)
    return _named(subject) or _named(caller.owner)


def outcome_of(exchange: Exchange, answer: Msg | None, delivered: bool) -> tuple[str, int | None]:
    """Return how a request ended, and the code of its error if there is one.

    >>> exchange = Exchange(request(1, "tools/call"), print)
    >>> outcome_of(exchange, {"result": {"content": [], "isError": True}}, True)
    ('tool_error', None)
    >>> outcome_of(exchange, {"error": {"code": -32602, "message": "no such tool"}}, True)
    ('error', -32602)
    """
    if answer is None and exchange.state is DONE and exchange.reason is not None:  # cut off
        return "error", TOO_BUSY
    if answer is None:
        return ("cancelled" if exchange.state is CANCELLED else "lost"), None
    if not delivered:
        return "lost", None
    if "error" in answer:
        return "error", answer["error"]["code"]
    kind = answer["result"].get("resultType", "complete")
    if kind != "complete":
        return _named(kind), None
    failed = exchange.method == "tools/call" and answer["result"].get("isError") is True
    return ("tool_error" if failed else "result"), None


class Watch:
    """A request on its way to its record."""

    __slots__ = ("conversation", "exchange", "time", "began")

    def __init__(self, conversation: Conversation, exchange: Exchange) -> None:
        self.conversation, self.exchange = conversation, exchange
        self.time, self.began = time.time(), time.perf_counter()

    def end(self, answer: Msg | None, size: int | None) -> None:
        """Make the record, of an answer of so many bytes, and give it to the observers.

        `size` is 0 if nobody has taken the answer, and None if nobody knows.
        """
        took = (time.perf_counter() - self.began) * 1000
        self.conversation.server.observers.tell(self._record(answer, size, took))

    def _record(self, answer: Msg | None, size: int | None, took: float) -> Record:
        exchange, caller, meta = self.exchange, self.exchange.caller, self.exchange.meta
        outcome, code = outcome_of(exchange, answer, size != 0)
        if outcome == "cancelled" and self.conversation.peer.lost is not None:
            outcome = "lost"
        modern = exchange.modern
        facts = exchange.facts if modern else self.conversation.session.facts()
        client = facts.client_info if facts is not None else {}
        about = [_named(client.get(name)) for name in ("name", "version")]
        traceparent = _named(meta.get("traceparent"))
        traced = TRACEPARENT.fullmatch(traceparent) is not None
        more = [_named(meta.get(name), MAX_BAGGAGE_CHARS) for name in ("tracestate", "baggage")]
        return Record(
            self.time, exchange.method[:MAX_NAME_CHARS], target_of(exchange.params), outcome, code,
            took, size or 0, principal_name(caller), self.conversation.label, exchange.req_id,
            "/".join(filter(None, about)), "modern" if modern else "legacy",
            facts.rev.name if facts is not None else "", caller.address, caller.scheme,
            traceparent if traced else "", more[0] if traced else "", more[1],
        )  # fmt: skip


def watch_refusal(conversation: Conversation, msg: JSON, caller: Caller, answer: Msg) -> None:
    """Make the record of a request that was not taken on."""
    if type(msg) is dict and is_id(msg.get("id")) and isinstance(msg.get("method"), str):
        params = msg.get("params")
        known = {**msg, "params": params if isinstance(params, dict) else {}}
        watch = conversation.watch(Exchange(known, nothing, caller))
        if watch is not None:
            watch.end(answer, None)


class AccessLog:
    """Writes each record as one line of the log `mcp_lite.access`, at level INFO.

    `style` is True for a line of key=value pairs, "json" for one of JSON; then it is written even
    if the program has not configured logging. With None it is written where the log `mcp_lite`
    shows INFO, with False never. A logging.LogRecord has the fields as a dict, `record.mcp`.
    """

    def __init__(self, style: bool | str | None) -> None:
        if style not in (None, False, True, "json"):
            raise ValueError(f'access_log={style!r}: give True, False, "json" or None')
        self.style = style
        if style:
            if access_logger.level == logging.NOTSET:
                access_logger.setLevel(logging.INFO)
            if not access_logger.handlers:
                access_logger.addHandler(LastResort(logging.INFO, "%(message)s"))

    def wanted(self) -> bool:
        """Return whether anybody would read a line now."""
        if self.style:
            return access_logger.isEnabledFor(logging.INFO)
        return self.style is None and logger.isEnabledFor(logging.INFO)

    def write(self, record: Record) -> None:
        """Write a record."""
        fields = record.fields()
        line = json.dumps(fields) if self.style == "json" else logfmt(fields)
        access_logger.info("%s", line, extra={"mcp": fields})


class Observers:
    """The functions that get the records of a server, and its access log."""

    def __init__(self, access_log: bool | str | None) -> None:
        self.functions: list[Callable[[Record], Any]] = []
        self.log = AccessLog(access_log)

    def wanted(self) -> bool:
        """Return whether anybody observes."""
        return bool(self.functions) or self.log.wanted()

    def tell(self, record: Record) -> None:
        """Give a record to all. What one of them raises goes to the log, and harms nobody."""
        for fn in self.functions:
            try:
                fn(record)
            except Exception:
                logger.exception("the observer %s failed", getattr(fn, "__name__", fn))
        if self.log.wanted():
            self.log.write(record)

###############################################################################
# 22. Server
###############################################################################
# Uses sections 1 to 8, 10, 16 and 18 to 21.
#
# Problem.  What was registered is to be served: to clients of any revision, many at a time, over
#           any transport, in a loop or a thread of the author's choice.
# Rules.    1. Handlers never see the era: what they need is in Context, which is made in one place.
#           2. A request is checked before its handler runs: may the client call this, how often,
#              with these parameters? All that one client asks, by whatever transport and in however
#              many sessions, is counted together.
#           3. Announcements may come from any thread. A reader who is too slow for them is let go.
#           4. A server that is told to end answers what it does not finish, and ends in time.
# Plan.     HANDLERS; Conversation, what the server keeps for one client; the options; Server,
#           for the author; ServerThread.
# Not here. How bytes come and go: sections 26 and 41 register themselves in RUNNERS and ENGINES.

__all__ += ["Server"]

LOG_RATE = (500, 1.0)  # log messages for one client, seconds: the rest is counted and dropped
PAGE_SIZE = 100  # items of one page of a list
SHUTTING_DOWN = "the server is shutting down"  # answers a request that its end cuts off

#: From method to the function that answers it: `await HANDLERS[method](ctx)` is the result.
HANDLERS: dict[str, Callable[[Context], Awaitable[Msg]]] = {}


def handles(*methods: str) -> Callable[[Any], Any]:
    """Make a function the one that answers these methods."""

    def enter(fn: Any) -> Any:
        HANDLERS.update(dict.fromkeys(methods, fn))
        return fn

    return enter


async def call_custom(ctx: Context) -> Msg:
    """Answer a method that the author has added."""
    answer: Msg = await ctx.server.call(ctx.server.methods[ctx.method], ctx, ctx.params)
    return answer


def whole_result(ctx: Context, answer: Msg) -> Msg:
    """Return a modern result whole: its type, who made it, how long it may be kept."""
    if ctx.run.suspended:
        answer = ctx.input_required()
    else:
        answer = {"resultType": "complete", **answer}
        hints = ctx.server.hints.get(ctx.method)
        if hints is not None and answer["resultType"] == "complete":
            # spec: server/utilities/caching#cache-key -- what depends on answers is not kept
            once = {"ttlMs": 0} if ctx.used_rounds else {}
            answer = {**hints, **ctx.cache, **once, **answer}
    # spec: basic/index#_meta -- serverInfo "in every result's _meta"
    answer["_meta"] = {SERVER_INFO: ctx.server.info, **answer.get("_meta", {})}
    return answer


class Conversation:
    """What the server keeps for one client: a Peer, and what was agreed."""

    def __init__(
        self, server: Server, name: str, opener: Caller = NOBODY, many_clients: bool = False
    ) -> None:
        self.server, self.principal = server, opener.principal
        #: who began the conversation
        self.opener = opener
        limit = server.max_in_flight
        self.peer = Peer(name, self.serve, self.on_notification, limit, many_clients)
        self.peer.on_lost, self.peer.watch = self.leave, self.watch
        self.peer.on_refusal = functools.partial(watch_refusal, self)
        #: called when the client has gone, by who wants to hear of it
        self.farewells: dict[Any, Callable[[], Any]] = {self: self.end_feeds}
        self.readiness: asyncio.Future[None] | None = None  # for until_ready()
        self.label = ""  # what records call it: the beginning of a session's id
        self.session = self.peer.session
        self.loop, self.thread = asyncio.get_running_loop(), threading.get_ident()
        #: what no request caused, once there is a channel for it: see listen()
        self.outbox: Outbox | None = None
        self.state: dict[str, Any] = {}
        self.life = server.lives.here()
        self.lifespan = self.life.entered.result()
        #: methods that were let in, and under which revision and capabilities
        self._admitted: dict[str, tuple[Revision, Msg]] = {}
        #: the key of the client's share, where the channel does not know its client
        self.number = f"conversation {next(_serial)}"

    def watch(self, exchange: Exchange) -> Watch | None:
        """Begin the record of a request, if anybody observes."""
        return Watch(self, exchange) if self.server.observers.wanted() else None

    async def serve(self, exchange: Exchange) -> Msg:
        """Answer one request: check that it may be asked, make its Context, run its handler."""
        server, session, method = self.server, self.session, exchange.method
        greeting = method in ("initialize", "ping")
        if exchange.modern:
            exchange.facts = facts = exchange.facts or check_modern_request(exchange.msg)
            ours = server.capabilities()
        else:
            facts = session.facts()
            ours = session.server_capabilities or server.capabilities()
            # spec 2025-11-25: basic/lifecycle#initialization -- "MUST be the first interaction"; a
            # line piped into a server has no handshake, and is answered unless we are strict.
            if session.state is START and server.strict and not greeting:
                raise RPCError(INVALID_REQUEST, f"{method} came before initialize: send that first")
        if exchange.caller.principal is not None:
            server.guarded = True
        if server.request_shares is not None and not greeting:
            server.count_request(self.client_of(exchange.caller))
        self.admit(exchange, facts.rev, ours)
        ctx = Context(self, exchange, facts)
        step = self.handler(ctx)
        for middleware in reversed(server.middlewares):
            step = functools.partial(middleware, call_next=step)
        token = CURRENT.set(ctx)
        self.life.running += 1
        answer: Msg = {}
        try:
            answer = await step(ctx)
        except asyncio.CancelledError:
            # A run that a question has ended has an answer. It is sent even if the input has ended:
            # a line piped into a server has a reader.
            if not ctx.run.suspended or exchange.state is CANCELLED:
                raise
            _uncancel(exchange.task)
        finally:
            self.life.running -= 1
            CURRENT.reset(token)
            if ctx.holds_back:
                await ctx.flush()
            ctx.run.end()
        if not isinstance(answer, dict):
            raise TypeError(f"{method} was answered with {type(answer).__name__}, not a dict")
        return whole_result(ctx, answer) if facts.rev.modern else answer

    def handler(self, ctx: Context) -> Callable[[Context], Awaitable[Msg]]:
        """Return what answers a request."""
        if "requestState" in ctx.params and ctx.facts.rev.modern:
            ctx.rounds()  # a forged one is refused, whether or not the handler asks
        return HANDLERS.get(ctx.method, call_custom)

    def admit(self, exchange: Exchange, rev: Revision, ours: Msg) -> None:
        """Refuse a method that the client may not call, or not so; see admit()."""
        method = exchange.method
        if self._admitted.get(method) != (rev, ours):
            admit(method, CLIENT, rev, ours, self.server.methods)
            self._admitted[method] = rev, ours
        if method in METHODS:
            check_params(METHODS[method], exchange.params)

    def on_notification(self, msg: Msg, send: Send, caller: Caller) -> None:
        """Hear a notification of the client, after the requests that came before it."""
        self.peer.tasks.spawn(self._on_notification(msg, send, caller))

    async def _on_notification(self, msg: Msg, send: Send, caller: Caller) -> None:
        if msg["method"] == "notifications/initialized" and self.session.state is not START:
            self.session.advance(msg["method"])
            if self.outbox is not None:
                self.outbox.release()
            if self.readiness is not None:
                _settle(self.readiness, None, None)
        listener = self.server.listeners.get(msg["method"])
        if listener is not None:
            ctx = Context(self, Exchange({"id": "", **msg}, send, caller), self.session.facts())
            await call_plain(listener, ctx, ctx.params)

    def leave(self) -> None:
        """Hear that the client has gone."""
        for farewell in list(self.farewells.values()):
            farewell()

    async def until_ready(self) -> None:
        """Wait until a legacy client has ended its handshake."""
        if self.session.state is not READY:
            self.readiness = self.readiness or self.loop.create_future()
            await asyncio.shield(self.readiness)

    def end_feeds(self) -> None:
        """End the subscriptions of this client: nothing else would."""
        for feed in list(self.server.feeds):
            if feed.ctx.conversation is self:
                feed.end()

    def client_of(self, caller: Caller) -> str:
        """Return the key under which the client's share of everything is counted."""
        return caller.owner or caller.address or self.number

    def wants_log(self, level: str, threshold: str | None, caller: Caller) -> bool:
        """Return whether a log message of this level is to be sent now; from any thread."""
        if threshold is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(threshold):
            return False
        budget = self.server.log_shares.of(self.client_of(caller))
        if not budget.take(time.monotonic()):
            # spec: server/utilities/logging#implementation-considerations -- "Rate limit"
            return False
        if budget.refused:
            count, budget.refused = budget.refused, 0
            logger.warning("%d log messages for %s were dropped", count, self.peer.name)
        return True

    def listen(self, send: Send, let_go: Callable[[], Awaitable[Any]]) -> None:
        """Send from now on what no request caused; `let_go` ends it for a reader too slow."""
        wake = functools.partial(self.call_on_loop, self._deliver)
        too_slow = functools.partial(self.call_on_loop, self._let_go, let_go)
        self.outbox = Outbox(send, wake, too_slow, held=self.session.state is not READY)

    def _deliver(self) -> None:
        if self.outbox is not None:
            self.peer.tasks.spawn(self.outbox.deliver())

    def _let_go(self, let_go: Callable[[], Awaitable[Any]]) -> None:
        logger.warning("%s reads too slowly for what is announced: it is let go", self.peer.name)
        self.peer.tasks.spawn(let_go())

    def call_on_loop(self, fn: Callable[..., None], *args: Any) -> None:
        """Call fn(*args) on this conversation's loop, from any thread."""
        if threading.get_ident() == self.thread:
            fn(*args)
        else:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(fn, *args)

    def announce(self, capability: str, msg: Msg, size: int) -> None:
        """Send a notification of so many bytes that no request caused, if the client may hear it
        and wants to; from any thread."""
        session, uri = self.session, msg.get("params", {}).get("uri")
        if self.outbox is None or session.state not in (AGREED, READY):
            return
        # spec 2025-11-25: basic/lifecycle#operation -- only what was "successfully negotiated"
        if declares(session.server_capabilities, capability):
            if uri is None or uri in session.subscriptions:
                self.outbox.put(msg, size)

    def forward(self, level: str, msg: Msg, ctx: Context | None = None) -> None:
        """Send a record of the program's log, on behalf of a request or of none."""
        threshold = self.session.log_level if ctx is None else ctx.facts.log_level
        caller = self.opener if ctx is None else ctx.exchange.caller
        if not self.wants_log(level, threshold, caller):
            return
        size = len(encode(msg))
        if ctx is None or ctx.cancelled:
            self.announce("logging", msg, size)
        else:
            ctx.say_soon(msg, size)


class StdioOptions(typing.TypedDict, total=False):
    """Options of serving on the standard streams."""

    watch_parent: bool  # end when the process that started us is gone
    max_message_bytes: int


class ASGIOptions(typing.TypedDict, total=False):
    """Options of serving over HTTP, whoever listens."""

    path: str  # of the endpoint
    token: Any  # a bearer token, several, or a mapping from token to principal
    verify: Callable[[str], Any] | None  # awaits the principal of a token, or None to refuse it
    key: Callable[[Any], Any] | None  # a stable key of a principal; see owner_of()
    auth: Any  # a Guard: tokens that an authorization server gives
    allowed_hosts: Iterable[str] | None
    allowed_origins: Iterable[str]
    local: bool  # whether only this machine can reach us
    sessions: bool  # False keeps nothing between requests, for a server behind a balancer
    session_seconds: float
    session_prefix: str  # of the ids of sessions, by which a balancer finds the process
    max_sessions: int
    trusted_proxies: str | Iterable[str]  # addresses and networks that may say who the client is
    legacy_sse: bool  # whether the transport of the first revision is served, too
    max_body: int  # bytes
    grace: float  # seconds that running requests get when the server is to end


class HTTPOptions(ASGIOptions, total=False):
    """Options of serving over HTTP on a port of ours."""

    host: str
    port: int  # 0 takes a free one
    uds: str | None  # the path of a Unix socket, in place of host and port
    uds_mode: int
    ssl: Any  # an ssl.SSLContext, or (certificate file, key file)


class RunOptions(HTTPOptions, StdioOptions, total=False):
    """Options of run() and start_in_thread(): those of the transport."""


#: Transports that Server.run() and start_in_thread() know by name: a coroutine function of the
#: server, a callable to report the URL (or None) to when it is ready, and options.
RUNNERS: dict[str, Callable[..., Awaitable[None]]] = {}
#: What Server.http() and Server.asgi make: classes that take the server and options.
ENGINES: dict[str, Callable[..., Any]] = {}


class Server(Registrations):
    """An MCP server: register functions with its decorators, then run() it.

    `lifespan(server)` is an async context manager around the serving; what it yields is
    `ctx.lifespan`. `strict` refuses requests before the handshake. `mask_errors` hides the text
    of exceptions that are not ToolError. `call_sync(fn)` awaits the result of fn(), where a host
    wants its functions to run. `rate_limit` is (requests, seconds) per client. `capabilities`
    are declared besides those that follow from what is registered when a client comes. `ttl_ms`
    and `cache_scope` ("public", "private"), for all or by method, say how long and by whom results
    may be kept. `state_key` signs what travels between the rounds of a request. `bus` carries
    announcements from process to process; replicas share both. It is an async iterable of events,
    which is iterated on one event loop at a time, and has publish(event), which is called from any
    thread and does not block. An event is a dict that JSON can say; one that comes back to the
    server it is from is skipped. `access_log` is True, "json", None or False; see AccessLog. With
    `hide_forbidden`, lists show what a token may call.
    """

    def __init__(
        self, name: str = "mcp_lite", version: str = __version__, *, title: str | None = None,
        description: str | None = None, icons: Sequence[Msg] | None = None,
        website_url: str | None = None, instructions: str | None = None,
        lifespan: Callable[[Server], Any] | None = None, strict: bool = False,
        mask_errors: bool = False, page_size: int = PAGE_SIZE,
        call_sync: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None,
        rate_limit: tuple[int, float] | None = None, max_in_flight: int = MAX_IN_FLIGHT,
        threads: int = TOOL_THREADS, capabilities: Msg | None = None,
        ttl_ms: int | Mapping[str, int] = 0, cache_scope: str | Mapping[str, str] = "private",
        state_key: str | bytes | None = None, bus: Any = None, hide_forbidden: bool = False,
        access_log: bool | str | None = None,
    ) -> None:
        super().__init__(capabilities)
        self.name, self.instructions = name, instructions
        about = without_none(
            title=title, description=description, icons=icons, websiteUrl=website_url
        )
        self.info = {"name": name, "version": version, **about}
        self.strict, self.mask_errors, self.rate_limit = strict, mask_errors, rate_limit
        self.page_size, self.max_in_flight = page_size, max_in_flight
        self.hide_forbidden = hide_forbidden
        #: by cacheable method, how long and by whom its results may be kept
        self.hints: dict[str, Msg] = {}
        for method in [row.name for row in METHODS.values() if row.cacheable]:
            ms = ttl_ms.get(method, 0) if isinstance(ttl_ms, Mapping) else ttl_ms
            scope = cache_scope
            if isinstance(scope, Mapping):
                scope = scope.get(method, "private")
            self.hints[method] = check_hints({"ttlMs": ms, "cacheScope": scope})
        if hide_forbidden and self.hints["tools/list"]["cacheScope"] == "public":
            raise ValueError("hide_forbidden=True: then tools/list is not the same for all")
        key = os.urandom(32) if state_key is None else state_key
        if not key:
            raise ValueError("state_key is empty: anybody could sign with it")
        self.state_key = key.encode() if isinstance(key, str) else key
        self.conversations: set[Conversation] = set()
        self.feeds: set[Feed] = set()
        self.jobs: dict[str, Job] = {}
        if rate_limit is not None and not (rate_limit[0] > 0 and rate_limit[1] > 0):
            raise ValueError(f"rate_limit={rate_limit}: give (requests, seconds), both above 0")
        #: what each client may still ask, and may still be told of the log
        self.request_shares = Shares(rate_limit) if rate_limit is not None else None
        self.log_shares = Shares(LOG_RATE)
        #: whether a client was ever authenticated: then logs are nobody's but their client's
        self.guarded = False
        self.observers = Observers(access_log)
        self.threads = Threads(threads)
        self.bus = Bus(bus, self.tell)
        self.lives = Lives(functools.partial(lifespan, self) if lifespan else None,
                           self.bus, self.threads)  # fmt: skip
        self._call_sync = call_sync or self._in_thread

    # Announcing; from any thread.

    def tools_changed(self) -> None:
        """Tell the clients that listen that the list of tools changed."""
        self.list_changed("tools")

    def prompts_changed(self) -> None:
        """Tell the clients that listen that the list of prompts changed."""
        self.list_changed("prompts")

    def resources_changed(self) -> None:
        """Tell the clients that listen that the list of resources or templates changed."""
        self.list_changed("resources")

    def resource_updated(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource that it changed."""
        msg = notification("notifications/resources/updated", {"uri": uri})
        self._announce("resources.subscribe", msg)

    def list_changed(self, kind: str) -> None:
        """Announce that a list has changed."""
        super().list_changed(kind)
        msg = notification(f"notifications/{kind}/list_changed")
        self._announce(f"{kind}.listChanged", msg)

    def _announce(self, capability: str, msg: Msg) -> None:
        self.tell(capability, msg)  # not by way of the bus, which may be out of order
        self.bus.publish(capability, msg)

    def tell(self, capability: str, msg: Msg) -> None:
        """Pass an announcement on to the clients of this process."""
        conversations, feeds = list(self.conversations), list(self.feeds)
        if conversations or feeds:
            size = len(encode(msg))
            for conversation in conversations:
                conversation.announce(capability, msg, size)
            for feed in feeds:
                feed.put(msg, size)

    def log_handler(self, level: int = logging.INFO, *, everyone: bool = False) -> LogHandler:
        """Return a logging.Handler that forwards a program's own log records to the clients.

        A record goes to the client whose request caused it. Records that no request caused go to
        all, until a client is authenticated; with `everyone` also then.
        """
        return LogHandler(self, level, everyone)

    def observe(self, fn: Callable[[Record], Any]) -> Callable[[Record], Any]:
        """Have a function called with the Record of each request, when that has ended.

        It is called on the event loop, so it must be quick, and a plain function.
        """
        if is_async(fn):
            raise TypeError("an observer is a plain function: it is called on the event loop")
        self.observers.functions.append(fn)
        return fn

    # Serving.

    async def call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return what fn(*args, **kwargs) gives: awaited on the loop, or run in a thread."""
        if is_async(fn):
            return await fn(*args, **kwargs)
        job = functools.partial(contextvars.copy_context().run, fn, *args, **kwargs)
        value = await self._call_sync(job)
        return await value if inspect.isawaitable(value) else value

    async def _in_thread(self, job: Callable[[], Any]) -> Any:
        ctx = CURRENT.get(None)
        return await self.threads.run(job, owner="" if ctx is None else ctx.owner)

    def lifespan_open(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold the lifespan open; the first to come opens it, the last to go closes it."""
        return self.lives.hold()

    def count_request(self, client: str) -> None:
        """Count a request against the rate limit; RPCError 429 says when to come back."""
        if self.request_shares is not None:
            budget = self.request_shares.of(client)
            if not budget.take(time.monotonic()):
                calls, seconds = self.request_shares.rate
                problem = f"more than {calls} requests in {seconds:g} seconds"
                raise RPCError(TOO_FAST, problem, {"retryAfter": int(budget.wait) + 1})

    def converse(
        self, name: str, opener: Caller = NOBODY, many_clients: bool = False
    ) -> Conversation:
        """Return a new conversation with a client."""
        return Conversation(self, name, opener, many_clients)

    async def serve(self, transport: Transport) -> None:
        """Serve one conversation, until its channel ends."""
        try:
            async with self.lifespan_open():
                conversation = self.converse(transport.name)
                self.conversations.add(conversation)
                try:
                    await transport.open()
                    conversation.listen(conversation.peer.traced(transport.write), transport.close)
                    await conversation.peer.run(transport, transport.grace, SHUTTING_DOWN)
                finally:
                    self.conversations.discard(conversation)
        finally:
            await transport.close()

    async def serve_on(
        self, transport: str | Transport, ready: Callable[[Any], None], **options: Any
    ) -> None:
        """Serve on a transport, or on one of RUNNERS by name; `ready` hears its URL or None."""
        if isinstance(transport, Transport):
            ready(None)
            await self.serve(transport)
        elif transport in RUNNERS:
            await RUNNERS[transport](self, ready, **options)
        else:
            raise ValueError(f"no transport {transport!r}; there is {', '.join(RUNNERS) or 'none'}")

    def run(
        self, transport: str | Transport = "stdio", **options: Unpack[RunOptions]
    ) -> None:
        """Serve until the client goes away or a signal comes; blocks.

        The process is ours meanwhile. Signals end it in good order, and it ends even if a handler
        blocks the event loop or swallows its cancellation.
        """
        check_no_loop()
        if transport == "stdio":
            hint_for_a_terminal(self.name)
        watchdog = Watchdog()

        async def main() -> None:
            try:
                await self.serve_on(transport, lambda url: None, signals=True, **options)
            finally:
                watchdog.begin(GRACE_SECONDS)

        try:
            asyncio.run(main())
        finally:
            watchdog.stop()

    def http(self, **options: Unpack[HTTPOptions]) -> Any:
        """Return a server on a port: `async with app.http(port=0) as server: server.url`."""
        return ENGINES["http"](self, **options)

    @functools.cached_property
    def asgi(self) -> Any:
        """This server as an ASGI application; see asgi_with() for options."""
        return self.asgi_with()

    def asgi_with(self, **options: Unpack[ASGIOptions]) -> Any:
        """Return an ASGI application."""
        return ENGINES["asgi"](self, **options)

    async def serve_stdio(self, **options: Unpack[StdioOptions]) -> None:
        """Serve one client on the standard streams, inside a running loop."""
        await self.serve_on("stdio", lambda url: None, **options)

    async def serve_http(self, **options: Unpack[HTTPOptions]) -> None:
        """Serve on a port until cancelled, inside a running loop."""
        await self.serve_on("http", lambda url: None, **options)

    def start_in_thread(
        self, transport: str | Transport = "http", **options: Unpack[RunOptions]
    ) -> ServerThread:
        """Serve in a thread with a loop of its own; what is returned has `.url` and `.stop()`."""
        return ServerThread(self, transport, {**options})


def check_no_loop() -> None:
    """Raise RuntimeError if an event loop is running here, in which run() cannot begin another."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "run() begins an event loop, and one is running here: in it, use "
        "`async with app.http(...)` or `await app.serve_stdio()`"
    )


def hint_for_a_terminal(name: str) -> None:
    """Tell a person who has started a server by hand what it waits for, and what to type."""
    if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
        return
    library = "mcp_lite" if __name__ == "__main__" else __name__
    script = sys.argv[0] or "SERVER.py"
    print(
        f"{name} is an MCP server: it waits for messages of a client on its standard input.\n"
        f"Try it with: python3 -m {library} tools {script}\nEnd it with Ctrl-D.", file=sys.stderr,
    )  # fmt: skip


class ServerThread:
    """A server that runs in a thread of its own."""

    def __init__(self, server: Server, transport: str | Transport, options: Msg) -> None:
        import concurrent.futures

        #: the URL, once there is one
        self._ready: concurrent.futures.Future[str | None] = concurrent.futures.Future()
        self._stop: Callable[[], Any] = bool
        main = self._main(server, transport, options)
        name = f"mcp_lite {server.name}"
        self._thread = threading.Thread(None, self._work, name, (main,), daemon=True)
        self._thread.start()
        self.url = self._ready.result()

    async def _main(self, server: Server, transport: str | Transport, options: Msg) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._stop = functools.partial(loop.call_soon_threadsafe, task.cancel)
        await server.serve_on(transport, self._ready.set_result, **options)

    def _work(self, main: Any) -> None:
        try:
            asyncio.run(main)
        except BaseException as exc:
            if not self._ready.done():
                self._ready.set_exception(exc)
            elif not isinstance(exc, asyncio.CancelledError):
                logger.error("the server in a thread failed", exc_info=exc)
        finally:
            self._ready.cancel()  # a transport that was never ready

    def stop(self, timeout: float | None = 10.0) -> None:
        """End the server and wait for its thread; from any thread, any number of times."""
        with contextlib.suppress(RuntimeError):  # its loop is closed already, or this is its thread
            self._stop()
            self._thread.join(timeout)

###############################################################################
# 23. Handlers
###############################################################################
# Uses sections 1 to 4, 6, 8, 12, 15, 16, 19 and 22.
#
# Problem.  Each method of the protocol has its answer.
# Rules.    1. One function answers a method. Its parameters are checked before. Its result has
#              nothing that the client's revision does not know.
#           2. A tool that fails is a result with `isError`, for the model to read. A request that
#              is wrong is an error, for the client. Tracebacks go to the log only.
#           3. A list is told in pages. The list may change between two pages: what stays in it is
#              told exactly once.
# Plan.     The handshake; pages and lists; calling, reading, completing; announcements.
# Not here. Methods of the extension for tasks: section 24.

MAX_COMPLETIONS = 100  # spec: server/utilities/completion#completion-results -- a MUST
MAX_SUBSCRIPTIONS = 1000  # resources that one session may watch
MAX_CLIENT_BYTES = 64 * 1024  # what a session keeps of its client: its name and capabilities


@handles("initialize")
async def initialize(ctx: Context) -> Msg:
    server, session, params = ctx.server, ctx.conversation.session, ctx.params
    if session.state is not START:
        raise RPCError(INVALID_REQUEST, "initialize was already done in this session")
    info = bounded_info(params["clientInfo"], params["capabilities"])
    session.advance("initialize")
    session.rev = rev = choose_revision(params["protocolVersion"])
    session.client_info, session.client_capabilities = info, params["capabilities"]
    session.server_capabilities = strip_unknown("ServerCapabilities", server.capabilities(), rev)
    session.advance("result")
    answer = {"protocolVersion": rev.name, "capabilities": session.server_capabilities,
              "serverInfo": strip_unknown("Implementation", server.info, rev)}  # fmt: skip
    return {**answer, **without_none(instructions=server.instructions)}


def bounded_info(info: Msg, capabilities: Msg) -> Msg:
    """Return what is kept of `clientInfo`: without icons if they are large; RPCError if that is
    still too much."""
    room = MAX_CLIENT_BYTES - len(encode(capabilities))
    if len(encode(info)) > room:
        info = {key: value for key, value in info.items() if key != "icons"}
    if len(encode(info)) > room:
        problem = f"clientInfo and capabilities have more than {MAX_CLIENT_BYTES} bytes"
        raise RPCError(INVALID_PARAMS, problem)
    return info


@handles("ping")
async def ping(ctx: Context) -> Msg:
    return {}


@handles("server/discover")
async def discover(ctx: Context) -> Msg:
    answer = {"supportedVersions": SUPPORTED, "capabilities": ctx.server.capabilities()}
    return {**answer, **without_none(instructions=ctx.server.instructions)}


def encode_cursor(kind: str, serial: int) -> str:
    """Return the cursor that stands after item `serial` of the list `kind`.

    spec: server/utilities/pagination#pagination-model -- "an opaque string token"

    >>> encode_cursor("tools/list", 42)
    'dG9vbHMvbGlzdDo0Mg'
    """
    return base64.urlsafe_b64encode(f"{kind}:{serial}".encode()).rstrip(b"=").decode()


def decode_cursor(kind: str, text: JSON) -> int:
    """Return the serial number in a cursor of the list `kind`; raise RPCError if it is not one.

    >>> decode_cursor("tools/list", "dG9vbHMvbGlzdDo0Mg")
    42
    """
    # spec: server/utilities/pagination#error-handling
    with contextlib.suppress(ValueError):
        if isinstance(text, str) and len(text) <= 100:
            serial = int(base64.urlsafe_b64decode(text + "==").decode().rpartition(":")[2])
            if encode_cursor(kind, serial) == text:  # exactly what we made, for this list
                return serial
    raise RPCError(INVALID_PARAMS, f"invalid cursor for {kind}: ask for the first page again")


def page(kind: str, items: Iterable[Any], cursor: JSON, size: int) -> tuple[list[Any], str | None]:
    """Return up to `size` items after `cursor` (None: the first), and the next cursor, if any.

    `items` are (serial, item) with growing serials; the list may change from call to call, and what
    stays in it is told exactly once.

    >>> first, cursor = page("tools/list", [(1, "a"), (4, "b"), (5, "c")], None, 2)
    >>> first, page("tools/list", [(1, "a"), (5, "c"), (6, "d")], cursor, 2)
    (['a', 'b'], (['c', 'd'], None))
    """
    after = -1 if cursor is None else decode_cursor(kind, cursor)
    rest = list(itertools.islice((row for row in items if row[0] > after), size + 1))
    following = encode_cursor(kind, rest[size - 1][0]) if len(rest) > size else None
    return [item for _, item in rest[:size]], following


@handles(*(row.name for row in METHODS.values() if row.lists.registry))
async def list_entries(ctx: Context) -> Msg:
    lists = METHODS[ctx.method].lists
    entries = list(getattr(ctx.server, lists.registry).values())
    if ctx.server.hide_forbidden:
        entries = [entry for entry in entries if not ctx.lacks(getattr(entry, "scopes", ()))]
    listed = [(entry.serial, entry.definition) for entry in entries]
    items, cursor = page(ctx.method, listed, ctx.params.get("cursor"), ctx.server.page_size)
    items = [fit_definition(lists.kind, item, ctx.facts.rev) for item in items]
    return {lists.key: items, **without_none(nextCursor=cursor)}


def fit_definition(kind: str, item: Msg, rev: Revision) -> Msg:
    """Return a listed definition, and the objects in it, as `rev` knows them."""
    item = strip_unknown(kind, item, rev)
    if "arguments" in item:
        arguments = [strip_unknown("PromptArgument", field, rev) for field in item["arguments"]]
        item = {**item, "arguments": arguments}
    if "annotations" in item:
        item = {**item, "annotations": strip_unknown("Annotations", item["annotations"], rev)}
    return item


#: From the `task=` of a tool to the function that runs it: section 24 has one for tasks. Any other
#: tool is run by run_tool().
TOOL_RUNNERS: dict[Any, Callable[[Tool, Context, Any, Msg], Awaitable[Msg]]] = {}


@handles("tools/call")
async def call_tool(ctx: Context) -> Msg:
    tool: Tool = ctx.server.tools.find(ctx.params["name"])
    rev, given = ctx.facts.rev, ctx.params.get("arguments", {})
    if tool.scopes:
        ctx.require(*tool.scopes)
    try:
        args, kwargs = tool.bind(given, ctx)
    except SchemaError as exc:
        # spec: server/tools#error-handling -- input validation errors are the model's to
        # mend; spec 2025-06-18: server/tools#error-handling -- they are protocol errors
        if not rev.input_errors_as_results:
            raise
        return failure_of(tool, ctx, ToolError(str(exc)))
    return await TOOL_RUNNERS.get(tool.task, run_tool)(tool, ctx, args, kwargs)


async def run_tool(tool: Tool, ctx: Context, args: Any, kwargs: Msg) -> Msg:
    """Return the CallToolResult of a call with checked arguments."""
    rev = ctx.facts.rev
    try:
        value = await tool.call(ctx, args, kwargs)
    except BaseException as exc:  # whatever a tool raises becomes a result
        return failure_of(tool, ctx, exc)
    try:
        answer = strip_unknown("CallToolResult", tool.result(value), rev)
    except SchemaError as exc:
        problem = f"tool {tool.name!r} broke its output schema: {exc}"
        raise RPCError(INTERNAL_ERROR, problem) from exc
    except Exception as exc:
        return failure_of(tool, ctx, unsayable(tool, value, exc))
    if rev.rich_content:
        return answer
    return {**answer, "content": [fit_content(block, rev) for block in answer["content"]]}


def unsayable(entry: Entry, value: Any, exc: Exception) -> MCPError:
    """Return the error for a value that a handler returned and that has no JSON form."""
    if inspect.iscoroutine(value):
        value.close()  # nobody will await it
        return MCPError(f"{entry.label} returned a coroutine: await it first")
    kind = type(value).__name__
    return MCPError(f"{entry.label} returned a value of type {kind} that JSON cannot say: {exc}")


def check_failure(exc: BaseException, ctx: Context) -> None:
    """Raise what is not the failure of a handler: the end of its task, or an error for the peer.

    A handler may raise anything, GeneratorExit too. But that is also how Python ends a coroutine
    whose task is dropped, and then no task is running.
    """
    if isinstance(exc, (asyncio.CancelledError, RPCError)):
        raise exc
    if isinstance(exc, CapabilityMissing) and ctx.facts.rev.modern:
        raise exc
    if isinstance(exc, GeneratorExit):
        try:
            running = asyncio.current_task()
        except RuntimeError:
            running = None
        if running is None:
            raise exc


def log_failure(entry: Entry, ctx: Context, exc: BaseException) -> None:
    """Tell the log that a handler has failed.

    What this library raises, as when the client refuses a question, is no bug of the handler: it
    needs no traceback. A ToolError is meant for the client, and needs no log.
    """
    if not isinstance(exc, (ToolError, CapabilityMissing)):
        trace = None if isinstance(exc, MCPError) else exc
        logger.error("%s: %s failed: %r", ctx.method, entry.label, exc, exc_info=trace)


def failure_of(tool: Tool, ctx: Context, exc: BaseException) -> Msg:
    """Return the result of a tool that raised; raise what is an error of the protocol."""
    check_failure(exc, ctx)
    log_failure(tool, ctx, exc)
    text = str(exc) or type(exc).__name__
    if isinstance(exc, KeyError) and exc.args:
        text = f"KeyError: {exc}"  # the text of a KeyError is only the key
    if ctx.server.mask_errors and not isinstance(exc, (ToolError, CapabilityMissing)):
        text = f"the tool {tool.name!r} failed"
    # spec: server/tools#error-handling -- for the model to read, not an error of the protocol
    return {"content": [{"type": "text", "text": text}], "isError": True}


def error_of(entry: Entry, ctx: Context, exc: BaseException) -> RPCError:
    """Return the error for a prompt or a resource that raised.

    Its text is that of an error of this library, such as ToolError. The text of any other exception
    was not written for the client.
    """
    check_failure(exc, ctx)
    log_failure(entry, ctx, exc)
    meant = isinstance(exc, (ToolError, CapabilityMissing))
    if meant or (isinstance(exc, MCPError) and not ctx.server.mask_errors):
        return RPCError(INTERNAL_ERROR, str(exc) or f"{entry.label} failed")
    return RPCError(INTERNAL_ERROR, "Internal error")


@handles("prompts/get")
async def get_prompt(ctx: Context) -> Msg:
    prompt: Prompt = ctx.server.prompts.find(ctx.params["name"])
    args, kwargs = prompt.bind(ctx.params.get("arguments", {}), ctx)
    try:
        value = await prompt.call(ctx, args, kwargs)
    except BaseException as exc:
        raise error_of(prompt, ctx, exc) from exc
    answer = value if isinstance(value, dict) and "messages" in value else {"messages": value}
    try:
        messages = messages_of(answer["messages"], ctx.facts.rev)
    except Exception as exc:
        raise error_of(prompt, ctx, unsayable(prompt, value, exc)) from exc
    about = without_none(description=prompt.definition.get("description"))
    return {**about, **answer, "messages": messages}


@handles("resources/read")
async def get_resource(ctx: Context) -> Msg:
    uri, rev = ctx.params["uri"], ctx.facts.rev
    resource, found = ctx.server.find_resource(uri, rev)
    try:
        value = await resource.fetch(ctx, found)
    except BaseException as exc:
        raise error_of(resource, ctx, exc) from exc
    try:
        contents = resource.contents(uri, value)
    except Exception as exc:
        raise error_of(resource, ctx, unsayable(resource, value, exc)) from exc
    return {"contents": [strip_unknown("Contents", item, rev) for item in contents]}


@handles("completion/complete")
async def complete(ctx: Context) -> Msg:
    ref, argument, server = ctx.params["ref"], ctx.params["argument"], ctx.server
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str):
        raise RPCError(INVALID_PARAMS, "argument: needs a name and a value, both strings")
    if ref.get("type") == "ref/prompt":
        entry = server.prompts.find(str(ref.get("name")))
    elif ref.get("type") == "ref/resource":
        uri = str(ref.get("uri"))
        entry = server.templates.get(uri) or server.resources.find(uri)
    else:
        raise RPCError(INVALID_PARAMS, 'ref.type: expected "ref/prompt" or "ref/resource"')
    values = await completions_of(ctx, entry, name, value)
    # spec: server/utilities/completion#completion-results -- "Maximum 100 items"
    more = len(values) > MAX_COMPLETIONS
    found = {"values": values[:MAX_COMPLETIONS], "total": len(values), "hasMore": more}
    return {"completion": found}


async def completions_of(ctx: Context, entry: Entry, name: str, value: str) -> list[str]:
    """Return all that an argument may become: the author's function knows, or its schema."""
    fn = ctx.server.completions.get((entry.name, name))
    if fn is not None:
        known = ctx.params.get("context", {}).get("arguments")
        found = await call_plain(fn, ctx, value, known if isinstance(known, dict) else {})
        return [str(item) for item in found or ()]
    field = entry.schema["properties"].get(name, {}) if entry.fn else {}
    return [text for text in choices_of(field) if text.lower().startswith(value.lower())]


def choices_of(schema: Msg) -> list[str]:
    """Return the texts of the values that a schema names one by one; none if it names none."""
    if schema.get("type") == "boolean":
        return ["true", "false"]
    choices = [str(choice) for choice in schema.get("enum", ()) if choice is not None]
    return choices + [choice for part in schema.get("anyOf", ()) for choice in choices_of(part)]


#: Which announcement a subscriber gets for which field of its filter.
#: spec: basic/patterns/subscriptions#notification-filter
FILTERS = {
    "toolsListChanged": ("notifications/tools/list_changed", "tools.listChanged"),
    "promptsListChanged": ("notifications/prompts/list_changed", "prompts.listChanged"),
    "resourcesListChanged": ("notifications/resources/list_changed", "resources.listChanged"),
    "resourceSubscriptions": ("notifications/resources/updated", "resources.subscribe"),
    "taskIds": ("notifications/tasks", "extensions"),
}


#: From a field of the filter to a function that returns the part of it that a client may hear.
FILTER_CHECKS: dict[str, Callable[[Context, Any], Any]] = {}


class Feed:
    """One subscriptions/listen: announcements on their way to a modern client."""

    def __init__(
        self, ctx: Context, checks: Mapping[str, Callable[[Context, Any], Any]] = FILTER_CHECKS
    ) -> None:
        self.ctx, asked = ctx, ctx.params["notifications"]
        names = {"type": ["array", "null"], "maxItems": MAX_SUBSCRIPTIONS,
                 "items": {"type": "string", "maxLength": MAX_URI_CHARS}}  # fmt: skip
        fields: Msg = dict.fromkeys(FILTERS, {"type": ["boolean", "null"]})
        fields.update(resourceSubscriptions=names, taskIds=names)
        schema = {"properties": {"notifications": {"properties": fields}}}
        compile_schema(schema).check({"notifications": asked})
        for name in asked.keys() & checks.keys():
            asked = {**asked, name: checks[name](ctx, asked[name])}
        ours = ctx.server.capabilities()
        #: the part of the filter that is honoured
        self.wanted = {name: asked[name] for name, (_, capability) in FILTERS.items()
                       if asked.get(name) and declares(ours, capability)}  # fmt: skip
        self.methods = {FILTERS[name][0]: wanted for name, wanted in self.wanted.items()}
        self.ended, self.woken = False, asyncio.Event()
        # on_loop(fn) is a function that has fn called on the loop, from any thread
        on_loop = functools.partial(functools.partial, ctx.conversation.call_on_loop)
        self.outbox = Outbox(self.send, on_loop(self.woken.set), on_loop(self.end))

    def put(self, msg: Msg, size: int) -> None:
        """Take an announcement, from any thread."""
        method, subject = subject_of(msg)
        wanted = self.methods.get(method, ())
        if wanted is True or subject in wanted:
            self.outbox.put(msg, size)

    def end(self) -> None:
        """End the subscription with a result, as a server that stops does."""
        self.ended = True
        self.woken.set()

    async def run(self) -> None:
        """Send what is announced, until end()."""
        while not self.ended:
            await self.woken.wait()
            self.woken.clear()
            await self.outbox.deliver()

    async def send(self, msg: Msg) -> None:
        """Send a notification, marked as belonging to this subscription."""
        params = msg.get("params", {})
        meta = {**params.get("_meta", {}), SUBSCRIPTION_ID: self.ctx.request_id}
        await self.ctx.exchange.send(notification(msg["method"], {**params, "_meta": meta}))


@handles("subscriptions/listen")
async def listen(ctx: Context) -> Msg:
    return await run_feed(Feed(ctx))


async def run_feed(feed: Feed) -> Msg:
    """Send announcements until the client cancels, or the server stops."""
    ctx = feed.ctx
    ctx.server.feeds.add(feed)
    if ctx.conversation.peer.lost is not None:  # before this task could begin
        feed.end()
    try:
        # spec: basic/patterns/subscriptions#acknowledgment -- "as the first message"
        agreed = {"notifications": feed.wanted}
        await feed.send(notification("notifications/subscriptions/acknowledged", agreed))
        await feed.run()
    finally:
        ctx.server.feeds.discard(feed)
    # spec: basic/patterns/subscriptions#graceful-closure
    return {"_meta": {SUBSCRIPTION_ID: ctx.request_id}}


@handles("resources/subscribe", "resources/unsubscribe")
async def subscribe(ctx: Context) -> Msg:
    """Note which resource a legacy client wants to hear of, or no longer wants to."""
    uri, wanted = ctx.params["uri"], ctx.conversation.session.subscriptions
    if ctx.method == "resources/unsubscribe":
        wanted.discard(uri)
        return {}
    ctx.server.find_resource(uri, ctx.facts.rev)
    if len(wanted) >= MAX_SUBSCRIPTIONS and uri not in wanted:
        raise RPCError(TOO_BUSY, f"more than {MAX_SUBSCRIPTIONS} subscriptions")
    wanted.add(uri)
    return {}


@handles("logging/setLevel")
async def set_level(ctx: Context) -> Msg:
    level = ctx.params["level"]
    if level not in LOG_LEVELS:
        raise RPCError(INVALID_PARAMS, f"level: not one of {', '.join(LOG_LEVELS)}")
    ctx.conversation.session.log_level = level
    return {}

###############################################################################
# 24. Tasks, the extension
###############################################################################
# Uses sections 1 to 3, 7, 16, 17, 22 and 23.
#
# Problem.  Some tools run for minutes or days. No request should be open for so long.
# Rules.    1. A call that becomes a task is answered at once, with a handle. The client comes back
#              to look (tasks/get), to answer questions (tasks/update) or to end it (tasks/cancel).
#           2. A tool says whether it may be a task, the client whether it knows tasks.
#           3. A task is nobody's business but its principal's.
#           4. A task that has ended does not change. Its result is kept for a time, if there is
#              room.
#           5. One principal gets at most half of the places that the others have left over. Where
#              results take too many bytes, the principal that holds most loses its oldest.
# Plan.     Job, a task of the protocol; TaskRun, the run behind it; the three methods.
# Not here. asyncio's tasks: section 7. Notifications of tasks: the feeds of section 23 carry them.
#
# Two things are called tasks. The words and the wire of this section mean tasks of the protocol. In
# the code, such a task is a Job, and `asyncio.Task` is the other thing.
#
# spec: basic/versioning#extension-negotiation; the extension is io.modelcontextprotocol/tasks

MAX_TASKS = 1000  # of one server, running or kept for their results
MAX_TASK_BYTES = 64 * 1024 * 1024  # of all results that one server keeps, as they are sent
TASK_TTL_MS = 3_600_000  # for which a task's result is kept
POLL_MS = 500  # between two looks at a task


def timestamp() -> str:
    """Return the time of day as ISO 8601 has it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Job(Asking):
    """A tool call that has become a task: its client has a handle, and comes back to look."""

    known = False  # whether the client has seen how it ended
    size = 0  # bytes of its outcome

    def __init__(self, run: TaskRun) -> None:
        ctx = run.ctx
        self.server, self.owner = ctx.server, ctx.owner
        self._make_room(self.server.jobs)
        self.run: TaskRun | None = run  # until it ends: a request may be large
        self.id: str = os.urandom(16).hex()
        self.status, self.message = "working", ""
        self.created = self.updated = timestamp()
        self.expires: float = time.time() + TASK_TTL_MS / 1000
        self.outcome: Msg = {}  # "result" or "error", once there is one
        self.requests: Msg = {}  # questions without an answer
        self.waiters: dict[str, asyncio.Future[Any]] = {}  # for their answers
        self.named: set[str] = set()  # the names of all its questions
        self.server.jobs[self.id] = self

    def _make_room(self, jobs: dict[str, Job]) -> None:
        """Let old tasks give way to this one; raise RPCError if too many are running."""
        now = time.time()
        for old in [job for job in jobs.values() if job.expires < now]:
            old.cancel()
            del jobs[old.id]
        mine = [job for job in jobs.values() if job.owner == self.owner]
        others = len(jobs) - len(mine)
        share = share_of(MAX_TASKS, others) if self.owner else MAX_TASKS - others
        if len(mine) >= share:
            _drop_one(jobs, mine, share)
        elif len(jobs) >= MAX_TASKS:  # each of many owners has a small share
            _drop_one(jobs, jobs.values(), MAX_TASKS)

    def change(self, status: str, message: str = "", **outcome: Msg) -> None:
        """Note a new status, and tell the feeds; a task that has ended does not change."""
        if self.status in ("working", "input_required"):
            if status == "working" and self.requests:
                status = "input_required"
            self.status, self.message, self.outcome = status, message, outcome
            self.updated = timestamp()
            if status not in ("working", "input_required"):
                self.run = None
                self._keep()
            told = notification("notifications/tasks", self.details())
            self.server.tell("extensions", told)

    def _keep(self) -> None:
        """Keep the outcome of the task, if JSON can say it and there is room."""
        problem = ""
        try:
            self.size = len(encode(self.outcome))
            if self.size > MAX_TASK_BYTES // 2:
                problem = f"is longer than {MAX_TASK_BYTES // 2} bytes"
        except (TypeError, ValueError) as exc:
            problem = f"cannot be sent as JSON: {exc}"
        if problem:
            self.message = f"the result of the task {problem}"
            logger.error("the task %s: %s", self.id, self.message)
            self.status = "failed"
            self.outcome = {"error": wire_error(RPCError(INTERNAL_ERROR, self.message))}
            self.size = len(encode(self.outcome))
        jobs = self.server.jobs
        while sum(job.size for job in jobs.values()) > MAX_TASK_BYTES:
            held = {self.owner: self.size}
            others = [job for job in jobs.values() if job.size and job is not self]
            for job in others:
                _count(held, job.owner, job.size)
            most = max((job.owner for job in others), key=lambda owner: held[owner])
            _drop_one(jobs, [job for job in others if job.owner == most], 0)

    def details(self, begun: bool = False) -> Msg:
        """Return the task, with its questions or its outcome unless it has just `begun`."""
        task = without_none(
            taskId=self.id, status=self.status, statusMessage=self.message or None,
            createdAt=self.created, lastUpdatedAt=self.updated, ttlMs=TASK_TTL_MS,
            pollIntervalMs=POLL_MS,
        )
        asked = {"inputRequests": {**self.requests}} if self.status == "input_required" else {}
        return task if begun else {**task, **asked, **self.outcome}

    async def ask(self, question: Question) -> Any:
        """Ask the client, which finds the question when it looks, until the answer is right.

        Raises RequestTimeout. A question that nobody waits for any more is not asked any more.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + question.timeout
        while True:
            name = question.key or question.method
            while name in self.named:  # a name must never stand for two questions of one task
                name = f"{name}-{len(self.named) + 1}"
            self.named.add(name)
            waiter = self.waiters[name] = loop.create_future()
            self.requests[name] = {"method": question.method, "params": question.params}
            self.change("input_required")
            try:
                answer = await asyncio.wait_for(waiter, deadline - loop.time())
            except asyncio.TimeoutError:
                waited = f"within {question.timeout:g} seconds"
                problem = f"the client did not answer {question.method} {waited}"
                raise RequestTimeout(problem) from None
            finally:
                self._withdraw(name)
            with contextlib.suppress(SchemaError):
                return question.read(answer)

    def _withdraw(self, name: str) -> None:
        """Ask a question no longer."""
        self.waiters.pop(name, None)
        if self.requests.pop(name, None) is not None and not self.requests:
            self.change("working")

    def update(self, responses: Msg) -> None:
        """Take answers; those that nobody waits for are ignored."""
        for name, answer in responses.items():
            if name in self.requests and isinstance(answer, dict):
                waiter = self.waiters[name]
                self._withdraw(name)
                _settle(waiter, answer, None)

    def cancel(self) -> None:
        """End the task, if it has not ended."""
        run = self.run
        self.change("cancelled")
        if run is not None and run.call is not None:
            run.call.cancel()


def _drop_one(jobs: dict[str, Job], some: Iterable[Job], limit: int) -> None:
    """Forget one of some tasks that has ended: the oldest, or rather the oldest that its client
    has seen the end of. Raise RPCError if none has ended."""
    ended = [job for job in some if job.run is None]
    if not ended:
        raise RPCError(TOO_BUSY, f"more than {limit} tasks are running")
    del jobs[min(ended, key=lambda job: not job.known).id]


class TaskRun(Run):
    """The run of a tool that may become a task, and then outlives the answer to its request."""

    __slots__ = ("ctx", "begun", "job", "call")

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx.exchange, ctx.run.loop)
        self.waiting = ctx.run.waiting
        self.ctx: Context = ctx
        #: settled when it has become a task
        self.begun: asyncio.Future[Any] = self.loop.create_future()
        self.job: Job | None = None
        #: the task of asyncio in which the tool runs
        self.call: asyncio.Task[Msg | Exception] | None = None

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants the result any more."""
        return super().cancelled if self.job is None else self.job.status == "cancelled"

    def report(self, text: str) -> None:
        """Show whoever looks at the task how far it is."""
        if self.job is not None:
            self.job.change("working", text)

    def start_task(self) -> None:
        """Become a task: the request is answered now, and questions wait in the task."""
        if self.job is None:
            self.job = self.ctx.asking = Job(self)
            _settle(self.begun, None, None)

    def end(self) -> None:
        """Say no more for the request; a task goes on."""
        self.over = True
        if self.job is None:
            self.release()

    async def keep_outcome(self, call: Awaitable[Msg]) -> Msg | Exception:
        """Await a call and return its outcome, which the task keeps if it is one."""
        try:
            result = await call
            if self.job is not None:
                self.job.change("completed", result=result)
            return result
        except asyncio.CancelledError:
            if self.job is not None:
                self.job.change("cancelled")
            raise
        except Exception as exc:
            if self.job is not None:
                problem = wire_error(exc)
                self.job.change("failed", problem["message"], error=problem)
                if not isinstance(exc, MCPError):
                    logger.error("the task %s failed", self.job.id, exc_info=exc)
            return exc
        finally:
            self.release()


async def run_as_task(tool: Tool, ctx: Context, args: Any, kwargs: Msg) -> Msg:
    """Run a tool as a task if the client supports them, else as any tool."""
    required = tool.task == "required"
    if not ctx.facts.rev.modern or not knows_tasks(ctx, required):
        return await run_tool(tool, ctx, args, kwargs)
    run = ctx.run = TaskRun(ctx)
    if tool.task != "manual":
        run.start_task()
    call = run.keep_outcome(run_tool(tool, ctx, args, kwargs))
    run.call = ctx.conversation.life.tasks.spawn(call)
    try:
        await asyncio.wait([run.call, run.begun], return_when=asyncio.FIRST_COMPLETED)
    finally:
        if run.job is None:
            run.call.cancel()
            await asyncio.wait([run.call])
    if run.job is not None:
        return {"resultType": "task", **run.job.details(begun=True)}
    outcome = run.call.result()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


TOOL_RUNNERS.update(dict.fromkeys((True, "required", "manual"), run_as_task))


def knows_tasks(ctx: Context, required: bool = True) -> bool:
    """Return whether the client declared the extension; RPCError -32021 if that is required."""
    extensions = ctx.client_capabilities.get("extensions")
    known = isinstance(extensions, dict) and TASKS in extensions
    if required and not known:
        data: Msg = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        problem = f"the client did not declare the extension {TASKS}"
        raise RPCError(MISSING_CAPABILITY, problem, data)
    return known


def job_of(ctx: Context, job_id: str) -> Job | None:
    """Return a task, which is nobody's business but its principal's."""
    job = ctx.server.jobs.get(job_id)
    known = job is not None and job.owner == ctx.owner and job.expires >= time.time()
    return job if known else None


def own_tasks(ctx: Context, job_ids: list[str] | None) -> list[str]:
    """Return those of the tasks that a client may hear of."""
    knows_tasks(ctx)
    return [job_id for job_id in job_ids or () if job_of(ctx, job_id)]


FILTER_CHECKS["taskIds"] = own_tasks


@handles("tasks/get", "tasks/update", "tasks/cancel")
async def serve_task(ctx: Context) -> Msg:
    """Look at a task, give it answers, or end it."""
    knows_tasks(ctx)
    job = job_of(ctx, ctx.params["taskId"])
    if job is None:
        raise RPCError(INVALID_PARAMS, f"Unknown task: {ctx.params['taskId'][:100]}")
    if ctx.method == "tasks/get":
        job.known = job.run is None
        return job.details()
    if ctx.method == "tasks/update":
        job.update(ctx.params["inputResponses"])
    else:
        job.cancel()
    return {}

# =============================================================================
# Part IV. stdio
# =============================================================================

###############################################################################
# 25. Lines and pipes
###############################################################################
# Uses sections 1 to 3 and 8.
#
# Problem.  A read returns any number of bytes, cut anywhere. A pipe carries one message per line,
#           and its other end may be slow, or gone.
# Rules.    1. Every decoder has the same two verbs: feed(data) returns the items that are complete,
#              eof() says that nothing more will come and returns what the end completes.
#           2. "Need more", "the end" and "broken" are three channels: a bare yield, eof(), and
#              ProtocolError. Items decoded before an error are returned first; the error is
#              raised by the next call, and by every call after it.
#           3. Limits are checked on what has arrived, before more is kept.
#           4. What is written in one turn of the loop leaves in one piece. A slow reader makes
#              writers wait, never memory grow.
#           5. asyncio's StreamReader and StreamWriter carry every byte. The loop watches pipes and
#              sockets for them. It cannot watch a regular file, which always seems ready; nor a
#              terminal without changing a flag that other programs on it see; nor the null device;
#              nor, on Windows, any pipe that a process inherits. There a thread that blocks takes
#              the loop's place below the same two streams.
# Plan.     Decoder and LineDecoder; LineReader and LineWriter, over a stream each; two transports
#           that let a thread read or write; read_lines() and write_lines(), which choose between
#           the loop and a thread; LineTransport. Only the last is a Transport of section 8. The
#           others are transports in asyncio's sense: they move bytes.
# Not here. Whose pipes they are: sections 26 and 30.

READ_BYTES = 64 * 1024  # taken by one read(); a pipe holds as much
MAX_UNSENT_BYTES = 1024 * 1024  # written, and not yet taken by a slow reader; then writers wait
FLUSH_SECONDS = 2.0  # for a slow reader to take what is unsent when a channel is closed


class Decoder:
    """Turn bytes cut anywhere into whole items.

    A subclass writes its grammar as a generator that reads with `yield from self._exactly(n)`,
    `self._until(...)` or `self._some(n)` and appends to `self.items`.
    """

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.buffer = bytearray()
        self.ended = False
        self.error: ProtocolError | None = None
        self.grammar: Generator[None, None, None] | None = self._grammar()

    def _grammar(self) -> Generator[None, None, None]:
        raise NotImplementedError

    def feed(self, data: bytes) -> list[Any]:
        """Return the items that `data` completes; raise ProtocolError if it breaks the grammar."""
        self.buffer += data
        return self._run()

    def eof(self) -> list[Any]:
        """Return the items that the end of input completes; raise if it cut one short."""
        self.ended = True
        return self._run()

    def _run(self) -> list[Any]:
        if self.error is not None:
            raise self.error
        if self.grammar is not None:
            try:
                next(self.grammar)
            except StopIteration:
                self.grammar = None
            except ProtocolError as exc:
                self.error, self.grammar = exc, None
                if not self.items:
                    raise
        items, self.items = self.items, []
        return items

    def _until(
        self, mark: bytes, limit: int, what: str, status: int = 400
    ) -> Generator[None, None, bytes]:
        """Read up to and including `mark`; at most `limit` bytes, `mark` included."""
        seen = 0
        while True:
            at = self.buffer.find(mark, max(0, seen - len(mark) + 1))
            seen = len(self.buffer)
            if (at + len(mark) if at >= 0 else seen) > limit:
                raise LimitExceeded(f"{what} is longer than {limit} bytes", http_status=status)
            if at >= 0:
                return self._take(at + len(mark))
            if self.ended:
                raise ProtocolError(f"the connection ended inside {what}")
            yield

    def _exactly(self, size: int, what: str) -> Generator[None, None, bytes]:
        """Read exactly `size` bytes."""
        while len(self.buffer) < size:
            if self.ended:
                raise ProtocolError(f"the connection ended inside {what}")
            yield
        return self._take(size)

    def _some(self, most: int) -> Generator[None, None, bytes]:
        """Read what there is, 1 to `most` bytes; b"" only at the end of input."""
        while not self.buffer and not self.ended:
            yield
        return self._take(min(most, len(self.buffer)))

    def _take(self, size: int) -> bytes:
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data


class LineDecoder(Decoder):
    """Split a byte stream into lines, for the stdio transport.

    An item is a line without its newline, or a LimitExceeded for a line that was too long: the
    stream goes on after it. Blank lines are dropped, and so is the CR of a CRLF.

    spec: basic/transports/stdio -- "Messages are delimited by newlines"

    >>> decoder = LineDecoder()
    >>> decoder.feed(b'{"id":1}\\r\\n\\n{"id"'), decoder.feed(b":2}\\n")
    ([b'{"id":1}'], [b'{"id":2}'])
    >>> decoder.feed(b"cut short"), decoder.eof()
    ([], [b'cut short'])
    """

    def __init__(self, limit: int = MAX_MESSAGE_BYTES) -> None:
        self.limit = limit
        self.skipping = False  # inside a line that is over the limit
        super().__init__()

    def feed(self, data: bytes) -> list[Any]:
        """Return the lines that `data` completes."""
        # Most reads are a few whole lines, and those need no buffer.
        if data.endswith(b"\n") and not (self.buffer or self.skipping or len(data) > self.limit):
            return [line for line in (part.rstrip(b"\r") for part in data.split(b"\n")) if line]
        return super().feed(data)

    def _grammar(self) -> Generator[None, None, None]:
        seen = 0  # so much of the buffer holds no newline: a long line is scanned once
        while True:
            at = self.buffer.find(b"\n", seen)
            if at < 0 and self.ended:
                at = len(self.buffer)
            if at > self.limit or (at < 0 and len(self.buffer) > self.limit):
                if not self.skipping:
                    problem = LimitExceeded(f"a line is longer than {self.limit} bytes")
                    problem.start = bytes(self.buffer[:1000])  # shows whose answer it was
                    self.items.append(problem)
                self.skipping = True
            if at >= 0:
                line = bytes(self.buffer[:at]).rstrip(b"\r")
                del self.buffer[: at + 1]
                if line and not self.skipping:
                    self.items.append(line)
                self.skipping, seen = False, 0
                if self.buffer or not self.ended:
                    continue
                return
            if self.skipping:
                self.buffer.clear()
            seen = len(self.buffer)
            yield


class LineReader:
    """The lines that come from a pipe."""

    def __init__(
        self, stream: asyncio.StreamReader, transport: asyncio.ReadTransport, limit: int
    ) -> None:
        self.stream, self.transport = stream, transport
        self.decoder = LineDecoder(limit)
        self.ended = False

    async def read(self) -> list[Any]:
        """Return the next lines (a LimitExceeded for one that is too long); [] at the end."""
        items: list[Any] = []
        while not (items or self.ended):
            try:
                data = await self.stream.read(READ_BYTES)
            except OSError:  # EIO, ECONNRESET: nobody will write any more
                data = b""
            self.ended = not data
            items = self.decoder.feed(data) if data else self.decoder.eof()
        return items

    def drop(self) -> None:
        """End the lines here, but go on reading, so that the writer does not block."""
        self.transport.set_protocol(asyncio.Protocol())  # it ignores all that comes
        self.transport.resume_reading()
        self.stream.feed_eof()

    def close(self) -> None:
        """Close the descriptor. The lines that have arrived can still be read."""
        self.transport.close()


class LineWriter:
    """Lines on their way into a pipe."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self.stream = stream
        self.pipe: Any = stream.transport
        self.pipe.set_write_buffer_limits(high=MAX_UNSENT_BYTES)
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()  # before 3.11 only one task may wait in drain()
        self._batch: list[bytes] = []  # of this turn of the loop
        self._batch_bytes = 0

    async def write(self, data: bytes) -> None:
        """Send `data` when what is unsent allows it; raise BrokenPipeError if nobody reads."""
        if not self._batch:
            if self._turn.locked() or self.unsent() > MAX_UNSENT_BYTES:
                await self._until_taken()
            if self.pipe.is_closing():
                raise BrokenPipeError
            self._loop.call_soon(self._flush)
        self._batch.append(data)
        self._batch_bytes += len(data)
        if self._batch_bytes > READ_BYTES:
            self._flush()

    def unsent(self) -> int:
        """Return how many bytes were written, and not yet taken."""
        unsent: int = self._batch_bytes + self.pipe.get_write_buffer_size()
        return unsent

    async def _until_taken(self) -> None:
        async with self._turn:
            with contextlib.suppress(OSError):  # the pipe is broken, which write() will see
                await self.stream.drain()

    def _flush(self) -> None:
        """Write what was said in this turn of the loop, in one piece."""
        if self._batch:
            self.stream.write(b"".join(self._batch))
            self._batch.clear()
            self._batch_bytes = 0

    async def close(self) -> None:
        """Send what is left, for FLUSH_SECONDS at most, and close the descriptor."""
        self._flush()
        self.stream.close()
        closed = asyncio.gather(self.stream.wait_closed(), return_exceptions=True)
        try:
            await asyncio.wait({closed}, timeout=FLUSH_SECONDS)
        finally:
            self.abort()
        await closed

    def abort(self) -> None:
        """Close the descriptor now."""
        if self.pipe.get_write_buffer_size():
            self.pipe.abort()
        else:
            self.pipe.close()


class ThreadedReadTransport(asyncio.ReadTransport):
    """The transport below a StreamReader if the loop cannot watch the file: a daemon thread reads.

    The thread makes one read() for each turn that it is given, so that nothing is read ahead. It
    closes the file itself. If the file were closed in the middle of a read(), the system could give
    the number of the descriptor to another file.
    """

    def __init__(self, file: Any, protocol: asyncio.StreamReaderProtocol) -> None:
        super().__init__()
        self._file, self._loop = file, asyncio.get_running_loop()
        self._protocol: Any = protocol
        self._turns = threading.Semaphore(1)
        self._busy = True  # it was given a turn, and what it read has not arrived
        self._paused = self._closing = False
        _start_thread(self._work)
        protocol.connection_made(self)

    def _work(self) -> None:
        with self._file, contextlib.suppress(RuntimeError):  # the loop is closed
            while self._turns.acquire() and not self._closing:
                try:
                    data = self._file.read(READ_BYTES)
                except OSError:  # EIO: the terminal is gone
                    data = b""
                self._loop.call_soon_threadsafe(self._arrived, data)

    def _arrived(self, data: bytes) -> None:
        self._busy = False
        if self._closing:
            return
        if data:
            self._protocol.data_received(data)
            self._next()
        else:
            self.close()

    def _next(self) -> None:
        if not (self._busy or self._paused or self._closing):
            self._busy = True
            self._turns.release()

    def pause_reading(self) -> None:
        """Read no more for now."""
        self._paused = True

    def resume_reading(self) -> None:
        """Go on reading."""
        self._paused = False
        self._next()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Give what comes from now on to another protocol."""
        self._protocol = protocol

    def is_closing(self) -> bool:
        """Return whether the end has come, or close() was called."""
        return self._closing

    def close(self) -> None:
        """Let the thread end, and the file be closed, after a read() that is under way."""
        if not self._closing:
            self._closing = True
            self._turns.release()
            self._loop.call_soon(self._protocol.connection_lost, None)


class ThreadedWriteTransport(asyncio.WriteTransport):
    """The transport below a StreamWriter if the loop cannot watch the file: a thread writes."""

    def __init__(self, file: Any, protocol: asyncio.StreamReaderProtocol) -> None:
        import queue

        super().__init__()
        self._file, self._protocol, self._loop = file, protocol, asyncio.get_running_loop()
        self._pieces: Any = queue.SimpleQueue()  # b"" is the end
        self._unsent, self._high = 0, MAX_UNSENT_BYTES
        self._paused = self._closing = self._lost = False
        _start_thread(self._work)
        protocol.connection_made(self)

    def _work(self) -> None:
        problem = None
        with self._file, contextlib.suppress(RuntimeError):  # the loop is closed
            try:
                for piece in iter(self._pieces.get, b""):
                    self._write_out(memoryview(piece))
                    self._loop.call_soon_threadsafe(self._sent, len(piece))
            except OSError as exc:  # EPIPE, ENOSPC
                problem = exc
            self._loop.call_soon_threadsafe(self._lose, problem)

    def _write_out(self, left: memoryview) -> None:
        while left and not self._lost:
            left = left[self._file.write(left) :]

    def _sent(self, size: int) -> None:
        self._unsent -= size
        if self._paused and self._unsent <= self._high // 4:
            self._paused = False
            self._protocol.resume_writing()

    def _lose(self, exc: Exception | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._unsent = 0
            self._protocol.connection_lost(exc)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Say how much may be unsent before writers wait; they go on at a quarter of it."""
        self._high = MAX_UNSENT_BYTES if high is None else high

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are unsent."""
        return self._unsent

    def write(self, data: Any) -> None:
        """Have data written, after what was given before."""
        if data and not self._closing:
            self._unsent += len(data)
            self._pieces.put(bytes(data))
            if self._unsent > self._high and not self._paused:
                self._paused = True
                self._protocol.pause_writing()

    def is_closing(self) -> bool:
        """Return whether the other end is gone, or close() was called."""
        return self._closing

    def close(self) -> None:
        """Close the file when everything is written."""
        if not self._closing:
            self._closing = True
            self._pieces.put(b"")

    def abort(self) -> None:
        """Drop what is unsent; the file is closed after a write() that is under way."""
        self.close()
        self._loop.call_soon(self._lose, None)


def _start_thread(work: Callable[[], Any]) -> None:
    """Start a thread that does not keep the process alive; raise RuntimeError if none can be."""
    threading.Thread(target=work, name="mcp_lite stdio", daemon=True).start()


async def read_lines(fd: int, limit: int, *, in_thread: bool = False) -> LineReader:
    """Return a reader of the lines that come from a descriptor, which it owns from now on."""
    stream = asyncio.StreamReader(READ_BYTES)
    protocol = asyncio.StreamReaderProtocol(stream)
    connect = None if in_thread else asyncio.get_running_loop().connect_read_pipe
    transport = await _connect(connect, ThreadedReadTransport, open(fd, "rb", 0), protocol)
    return LineReader(stream, transport, limit)


async def write_lines(fd: int, *, in_thread: bool = False) -> LineWriter:
    """Return a writer of lines into a descriptor, which it owns from now on."""
    loop = asyncio.get_running_loop()
    # A protocol for both directions. Its reader stays empty, and ends when nobody reads the pipe.
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    connect = None if in_thread else loop.connect_write_pipe
    transport = await _connect(connect, ThreadedWriteTransport, open(fd, "wb", 0), protocol)
    return LineWriter(asyncio.StreamWriter(transport, protocol, None, loop))


async def _connect(connect: Any, adapter: Any, file: Any, protocol: Any) -> Any:
    """Return the loop's transport for a pipe or a socket, and the adapter for anything else."""
    try:
        mode = os.fstat(file.fileno()).st_mode
        # Windows' loop wants pipes that were made for it, and a process inherits plain ones.
        if connect and os.name != "nt" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            with contextlib.suppress(NotImplementedError):  # a loop that cannot watch them
                return (await connect(lambda: protocol, file))[0]
        if os.name != "nt":
            os.set_blocking(file.fileno(), True)
        return adapter(file, protocol)
    except Exception:
        file.close()
        raise


class LineTransport(Transport):
    """A channel that carries one message per line over two descriptors.

    spec: basic/transports/stdio -- "Messages are delimited by newlines, and MUST NOT contain
    embedded newlines."
    """

    reader: LineReader
    writer: LineWriter

    def __init__(self, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self.max_message_bytes = max_message_bytes
        self._closing: asyncio.Future[None] | None = None

    async def read(self) -> list[Any]:
        """Return the next messages."""
        return await self.reader.read()

    async def write(self, msg: Msg | list[Msg]) -> int | None:
        """Send a message, with others that are written in the same turn of the loop."""
        data = encode(msg) + b"\n"
        try:
            await self.writer.write(data)
            return len(data)
        except BrokenPipeError:
            await self._let_it_end()
            raise ConnectionClosed(f"{self.name} {self.explain()}") from None

    async def close(self) -> None:
        """End the channel. It is ended to the last step, even if the caller is cancelled."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._end())
        await asyncio.shield(self._closing)

    async def _let_it_end(self) -> None:
        """Wait until explain() knows what there is to know."""

    async def _end(self) -> None:
        raise NotImplementedError

###############################################################################
# 26. Standard streams
###############################################################################
# Uses sections 1 to 3, 7, 22 and 25.
#
# Problem.  A client starts this process as its server and talks to it over the standard streams.
#           Anything else that prints or reads is in the way.
# Rules.    1. The server takes both streams for itself: meanwhile descriptor 0 is empty and 1 is
#              stderr, so that neither print() nor a tool's child processes touch the conversation.
#           2. The end of input, a signal or the death of the parent ends the server in good order:
#              it reads no more, gives running requests a period of grace, sends their answers, and
#              gives the streams back.
# Plan.     claimed_streams(); ServerStdio; the signals; serve_stdio(), which runs it all.
# Not here. What grace running requests get: Transport.grace, and Peer.run() obeys it.

PARENT_POLL_SECONDS = 2.0  # how often a server looks whether its parent lives


@contextlib.contextmanager
def claimed_streams() -> Generator[tuple[int, int], None, None]:
    """Take standard input and output for ourselves; give the descriptors of the real ones.

    Meanwhile descriptor 0 is the null device and descriptor 1 is stderr, for Python, for C
    libraries and for child processes; what is printed shows at once.

    spec: basic/transports/stdio -- "The server MUST NOT write anything to its stdout that is not a
    valid MCP message."
    """
    if sys.__stdin__ is None or sys.__stdout__ is None:  # descriptors 0 and 1 are something else
        raise ConnectionClosed("there is no standard input and output to serve on")
    # Copies are not inheritable: no child process can hold the conversation open.
    # spec: basic/transports/stdio#shutdown
    real = (os.dup(0), os.dup(1))
    # The flag belongs to the open file, which other processes may hold: it is put back.
    blocking = [os.name == "nt" or os.get_blocking(fd) for fd in real]
    buffering = getattr(sys.stdout, "line_buffering", False)
    _set_line_buffering(True)  # flushes, too
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        os.dup2(null, 1)
    os.close(null)
    try:
        yield real
    finally:
        _set_line_buffering(buffering)
        for number, fd in enumerate(real):
            if os.name != "nt":
                os.set_blocking(fd, blocking[number])
            os.dup2(fd, number)
            os.close(fd)


def _set_line_buffering(on: bool) -> None:
    # Whatever the host has put into sys.stdout: a stream without a descriptor need not change.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()
        sys.stdout.reconfigure(line_buffering=on)  # type: ignore[union-attr]


class ServerStdio(LineTransport):
    """This process's own standard streams: the server's end.

    spec: basic/transports/stdio#shutdown -- "Servers SHOULD exit promptly when their standard input
    is closed or reads return end-of-file."
    """

    name = "the client"

    def __init__(
        self, *, watch_parent: bool = True, max_message_bytes: int = MAX_MESSAGE_BYTES
    ) -> None:
        super().__init__(max_message_bytes)
        self.watch_parent = watch_parent
        self._held = contextlib.AsyncExitStack()
        self._opened = False
        self._input = -1  # the descriptor of the real standard input

    async def open(self) -> None:
        """Take the standard streams."""
        if self._opened:
            return
        self._opened = True
        stdin, stdout = self._held.enter_context(claimed_streams())
        self._input = stdin
        # To learn that nobody reads its output, a loop watches the output for reading. So it cannot
        # watch one socket for both directions. And a terminal's flags are those of our stderr, too.
        shared = os.path.sameopenfile(stdin, stdout)
        self.reader = await read_lines(os.dup(stdin), self.max_message_bytes, in_thread=shared)
        self._held.callback(self.reader.close)
        self.writer = await write_lines(os.dup(stdout), in_thread=shared)
        self._held.push_async_callback(self._stop, asyncio.ensure_future(self._until_unread()))
        self._held.push_async_callback(self.writer.close)
        if stat.S_ISREG(os.fstat(stdin).st_mode):
            self.grace = None  # server.py < requests.jsonl: the end of a file is no farewell
        elif self.watch_parent:
            # Another child of the client may have inherited the other end of our stdin. Then our
            # input does not end when the client dies.
            watching = asyncio.ensure_future(self._until_orphaned(os.getppid()))
            self._held.push_async_callback(self._stop, watching)

    def deserted(self) -> bool:
        """Return whether the client is gone, though we may not have read that yet."""
        return self._input >= 0 and nobody_writes(self._input)

    async def _until_unread(self) -> None:
        """End the input when nobody reads the output: there is nobody left to serve."""
        with contextlib.suppress(OSError):
            await self.writer.stream.wait_closed()
        self.reader.close()

    async def _until_orphaned(self, parent: int) -> None:
        while os.getppid() == parent:
            await asyncio.sleep(PARENT_POLL_SECONDS)
        logger.warning("the parent process is gone: ending")
        self.reader.close()

    async def _stop(self, task: asyncio.Future[None]) -> None:
        task.cancel()
        await asyncio.wait({task})

    async def _end(self) -> None:
        self._input = -1
        await self._held.aclose()


def nobody_writes(fd: int) -> bool:
    """Return whether a pipe has lost its last writer; what is left in it may be unread.

    A thread can ask this while the event loop stands still. Without poll(), as on Windows, the
    answer is always False.
    """
    import select

    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(fd, 0)  # POLLHUP is told even to those who ask for nothing
    return any(event & select.POLLHUP for _, event in poll.poll(0))


async def until_signalled(work: Awaitable[None], stop: Callable[[], None]) -> bool:
    """Await `work`, and return whether a signal came meanwhile.

    SIGINT or SIGTERM calls `stop`, and a second one ends the process at once.

    For the main thread; elsewhere there are no signals. Work that goes on longer than the
    period of grace allows is cancelled.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    caught: list[int] = []
    watchdog = Watchdog()

    def begin_to_end() -> None:
        stop()
        loop.call_later(GRACE_SECONDS * 1.5, task.cancel)  # the last half is for cleaning up

    def on_signal(number: int, frame: Any) -> None:
        # A handler of Python's own, not the loop's: it runs also while something blocks the loop.
        if caught:
            os._exit(128 + number)  # the shells' convention for death by a signal
        caught.append(number)
        watchdog.begin(GRACE_SECONDS * 2, 128 + number)
        loop.call_soon_threadsafe(begin_to_end)

    former: dict[int, Any] = {}
    try:
        with contextlib.suppress(ValueError):  # not in the main thread
            for each in (signal.SIGINT, signal.SIGTERM):
                former[each] = signal.signal(each, on_signal)
        await task
    except asyncio.CancelledError:
        if not caught:
            raise
    finally:
        watchdog.stop()
        for number, handler in former.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
    return bool(caught)


async def serve_stdio(
    app: Server, ready: Callable[[Any], None], *, signals: bool = False, **options: Any
) -> None:
    """Serve one client on this process's standard streams; the options are ServerStdio's."""
    transport = ServerStdio(**options)
    try:
        await transport.open()  # before the lifespan begins, which may print
        ready(None)
        if not signals:
            await app.serve(transport)
            return
        async with contextlib.AsyncExitStack() as stack:
            opening = stack.enter_async_context(app.lifespan_open())
            if not await until_signalled(opening, transport.reader.close):
                app.lives.here().watch.deserted = transport.deserted
                await until_signalled(app.serve(transport), transport.reader.close)
    finally:
        await transport.close()


RUNNERS["stdio"] = serve_stdio

# =============================================================================
# Part V. A client
# =============================================================================

###############################################################################
# 27. Questions and announcements
###############################################################################
# Uses sections 1 to 8, 12, 13, 16, 18 and 23.
#
# Problem.  A server does not only answer. It asks its client: a form, a text from a model, the
#           roots. And it announces: this changed, the progress, a log line. Connections break
#           meanwhile, and servers are started again.
# Rules.    1. What comes back is checked for its shape. A server can make a call fail, with an
#              MCPError, and do nothing else to the program.
#           2. A question is answered by the function that was given for it, or refused.
#           3. A subscription outlives its connection. It is opened again when the server is back,
#              and the program hears of the gap, in which changes may have been missed.
#           4. All that is kept for a server has a bound: questions at once, results, announcements.
# Plan.     Parts of answers; Pace; Cache; Answers; Subscription and Announcements.
# Not here. The requests that all this belongs to: the Client of the next section sends them.

MAX_QUESTIONS = 100  # that a server may ask at once, in one result; people answer one at a time
MAX_CACHED = 1000  # results that a client keeps
MAX_CACHED_BYTES = 16 * 1024 * 1024  # of them all, as JSON; as much as one message may have
MAX_TTL_MS = 86_400_000  # a day, for which it keeps one at most
MAX_RESUMES = 5  # attempts in a row to take up a stream that was cut
RETRY_SECONDS = 1.0  # at least, between two attempts to open a stream again, in the long run
FREE_RETRIES = 5  # attempts that may follow each other sooner, if the server says so
STEADY_SECONDS = 5.0  # for which a stream stands that was worth opening, though nothing came
STALL_SECONDS = 30.0  # for a peer to take what we write; the longest pause between two attempts
PROBE_SECONDS = 5.0  # for a silent server to say what era it speaks, or to subscribe us again

#: A function of the user's, plain or async.
Callback = Optional[Callable[..., Any]]


def member(answer: Msg, key: str, kind: type, of: str = "answer") -> Any:
    """Return a member of an answer; raise ProtocolError if it is not of this kind."""
    value = answer.get(key)
    if type(value) is not kind:
        expected = f"{key} should be {kind_of(kind())}, not {kind_of(value)}"
        raise ProtocolError(f"the server sent a malformed {of}: {expected}")
    return value


def objects(answer: Msg, key: str, needs: str = "") -> list[Msg]:
    """Return the list `key`, of objects which each have the str `needs`; ProtocolError otherwise.

    >>> objects({"tools": [{"name": "add"}]}, "tools", "name")
    [{'name': 'add'}]
    """
    found: list[Msg] = member(answer, key, list)
    for item in found:
        if type(item) is not dict:
            raise ProtocolError(f"the server sent {kind_of(item)} as one of its {key}")
        if needs:
            member(item, needs, str, f"item of {key}")
    return found


def object_of(answer: Msg, key: str) -> Msg:
    """Return a member of an answer if it is an object; else an empty object."""
    value = answer.get(key)
    return value if isinstance(value, dict) else {}


def root_of(root: Any) -> Msg:
    """Return a root as the wire has it, from a path, a URI or a dict.

    >>> root_of("file:///home/me/project")
    {'uri': 'file:///home/me/project'}
    """
    if isinstance(root, dict):
        return root
    if isinstance(root, str) and "://" in root:
        return {"uri": root}
    from pathlib import Path

    path = Path(root).absolute()
    return {"uri": path.as_uri(), "name": path.name}


async def together(coros: Iterable[Awaitable[Any]]) -> list[Any]:
    """Return the results of all, in their order; if one fails, none goes on."""
    tasks = [asyncio.ensure_future(coro) for coro in coros]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


async def _maybe_await(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def value_from(source: Any) -> Any:
    """Return a value as it is, or what a function, plain or async, gives when it is called."""
    return await _maybe_await(source() if callable(source) else source)


class Pace:
    """How long to wait before something that ended is opened again: never less than told.

    Where nothing came, each wait is twice the last. Where something came, a few may follow each
    other as fast as the server says; in the long run it is once a second.

    >>> pace = Pace()
    >>> [pace.wait(0, good=True, now=10.0) for _ in range(6)]
    [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    >>> [pace.wait(None, good=False, now=99.0) for _ in range(6)]
    [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    """

    def __init__(self) -> None:
        self.due = float("-inf")  # one that came every second would come now
        self.failures = 0  # in a row

    def wait(self, told_ms: int | None, good: bool, now: float) -> float:
        """Return for how many seconds; `good` says that something came."""
        self.failures = 0 if good else self.failures + 1
        told_ms = RETRY_MS if told_ms is None else told_ms
        self.due = max(self.due, now - FREE_RETRIES * RETRY_SECONDS) + RETRY_SECONDS
        least = max(0.0, self.due - now)
        if self.failures:
            doubled = max(told_ms, RETRY_MS) / 1000 * 2 ** min(self.failures, 16)
            least = max(least, min(doubled, STALL_SECONDS))
        return max(told_ms / 1000, least)


class Cache:
    """Results for as long as they say. spec: server/utilities/caching#cacheable-model"""

    def __init__(self, limit: int, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self.limit, self.max_bytes = limit, max_bytes
        self.size = 0  # of all texts and their keys
        self.changes = 0  # announcements heard: a result that one overtook is not kept
        self.kept: OrderedDict[str, tuple[float, str]] = OrderedDict()  # until when, and as JSON

    def key(self, method: str, params: Msg | None) -> str:
        """Return the key of a result; an empty string for one that must not be kept."""
        inputs = {"inputResponses", "requestState"} & (params or {}).keys()
        row = METHODS.get(method)
        if row is None or not row.cacheable or inputs:
            return ""
        return json.dumps([method, params], sort_keys=True)

    def find(self, key: str) -> Msg | None:
        """Return a copy of the result kept under `key`, since callers may change what they get."""
        until, text = self.kept.get(key, (0.0, ""))
        return json.loads(text) if time.monotonic() < until else None

    def keep(self, key: str, answer: Msg) -> None:
        """Keep a result; the oldest gives way."""
        ttl_ms = answer.get("ttlMs")
        if isinstance(ttl_ms, (int, float)) and ttl_ms > 0:
            until = time.monotonic() + min(ttl_ms, MAX_TTL_MS) / 1000
            self.forget(key)
            self.kept[key] = (until, json.dumps(answer))
            self.size += len(key) + len(self.kept[key][1])
        while len(self.kept) > self.limit or self.size > self.max_bytes:
            self.forget(next(iter(self.kept)))

    def forget(self, key: str) -> None:
        """Keep a result no longer."""
        _, text = self.kept.pop(key, (0.0, None))
        if text is not None:
            self.size -= len(key) + len(text)

    def clear(self) -> None:
        """Keep nothing: a change may have been announced while we could not hear it."""
        self.changes += 1
        self.kept.clear()
        self.size = 0

    def drop(self, method: str, params: Msg) -> None:
        """Forget the results that a notification makes stale."""
        # spec: server/utilities/caching#interaction-with-notifications
        if not method.endswith(("/list_changed", "/updated")):
            return
        self.changes += 1
        kind, uri = method.split("/")[1], json.dumps(str(params.get("uri")))[1:-1]
        for key in [key for key in self.kept if key.startswith(f'["{kind}/')]:
            if method.endswith("/list_changed") or uri in key:
                self.forget(key)


class Answers:
    """Answers to the questions of a server, from the functions that a program gave for them."""

    def __init__(self, model: str, roots: Any, callbacks: Mapping[str, Callback]) -> None:
        self.model = model  # the name of the model, for texts whose function does not say it
        self.roots, self.asked_for_roots = roots, False
        #: by capability: sampling, elicitation.form, elicitation.url
        self.callbacks = callbacks

    def capabilities(self, rev: Revision) -> Msg:
        """Return the capabilities that there are functions for."""
        ours: Msg = {}
        for path, callback in {"roots": self.roots, **self.callbacks}.items():
            name, _, mode = path.partition(".")
            if callback is not None:
                ours.setdefault(name, {}).update({mode: {}} if mode else {})
        if "roots" in ours and not rev.modern:
            ours["roots"] = {"listChanged": True}
        return ours

    async def answer_all(self, asked: Msg, session: Session) -> Msg:
        """Return the answers to questions, all put at the same time; ProtocolError for too many."""
        if len(asked) > MAX_QUESTIONS:
            many = f"{len(asked)} questions at once; at most {MAX_QUESTIONS}"
            raise ProtocolError(f"the server asked {many}")
        answers = await together(self.answer(each, session) for each in asked.values())
        return dict(zip(asked, answers))

    async def answer(self, asked: JSON, session: Session) -> Msg:
        """Return the answer to a question: a request of the server, or part of a result."""
        method, params = self.read(asked, session.client_capabilities)
        return await ASKED[method](self, params, session)

    def read(self, asked: JSON, capabilities: Msg) -> tuple[str, Msg]:
        """Return the method and the parameters of a question to a client of such capabilities."""
        method = asked.get("method") if isinstance(asked, dict) else None
        if not isinstance(method, str) or method not in ASKED:
            raise ProtocolError(f"the server asked something unknown: {asked!r:.200}")
        row, params = METHODS[method], object_of(asked, "params")
        check_capability("client", capabilities, row.capability, NEWEST)
        check_params(row, params)
        return method, params

    def callback(self, capability: str) -> Callable[..., Any]:
        """Return the function for a capability; RPCError if there is none."""
        found = self.callbacks.get(capability)
        if found is None:
            raise RPCError(INVALID_PARAMS, f"this client does not do {capability}")
        return found

    async def list_roots(self, params: Msg, session: Session) -> Msg:
        """Answer roots/list."""
        self.asked_for_roots = True
        found = await value_from(self.roots) or ()
        return {"roots": [strip_unknown("Root", root_of(root), session.rev) for root in found]}

    async def sample(self, params: Msg, session: Session) -> Msg:
        """Answer sampling/createMessage: a function may return a text, or a whole result."""
        sample = self.callback("sampling")
        if "tools" in params or "toolChoice" in params:
            # spec 2025-11-25: client/sampling#capabilities -- tools "MUST" be declared
            if not declares(session.client_capabilities, "sampling.tools"):
                raise RPCError(INVALID_PARAMS, "this client does not sample with tools")
        answer = await _maybe_await(sample(params))
        if not isinstance(answer, dict) or "content" not in answer:
            answer = {"content": blocks_of(answer), "stopReason": "endTurn"}
        return fit_message({"role": "assistant", "model": self.model, **answer}, session.rev)

    async def elicit(self, params: Msg, session: Session) -> Msg:
        """Answer elicitation/create: a form to fill in, or a URL to open."""
        if params.get("mode") == "url":
            # spec 2025-11-25: client/elicitation#url-mode-elicitation-requests -- "MUST specify"
            url, schema = params.get("url"), None
            if not isinstance(url, str) or not url:
                raise RPCError(INVALID_PARAMS, "an elicitation by URL needs a url, a string")
            answer = await _maybe_await(self.callback("elicitation.url")(params["message"], url))
        else:
            elicit = self.callback(f"elicitation.{params.get('mode', 'form')}")
            schema = member(params, "requestedSchema", dict, "form")
            answer = await _maybe_await(elicit(params["message"], schema))
        try:
            return answer_of(answer, schema)
        except SchemaError as exc:
            logger.error("the answer of elicit() does not fit the form: %s", exc)
            raise RPCError(INTERNAL_ERROR, f"the answer does not fit the form: {exc}") from exc


#: The questions that a server may ask, and the functions that answer them.
ASKED: dict[str, Callable[[Answers, Msg, Session], Awaitable[Msg]]] = {
    "roots/list": Answers.list_roots,
    "sampling/createMessage": Answers.sample,
    "elicitation/create": Answers.elicit,
}


def answer_of(answer: Any, schema: Msg | None) -> Msg:
    """Return the result of an elicitation, made of the value that a callback returned.

    The value may be an action ("accept", "decline", "cancel"), a pair (action, content), a result
    dict, None or False to decline, True to accept, or the content itself. Members that are missing
    in the content get the defaults of the schema.

    >>> schema = {"properties": {"age": {"type": "integer", "default": 7}}}
    >>> answer_of({}, schema), answer_of(None, schema)
    ({'action': 'accept', 'content': {'age': 7}}, {'action': 'decline'})
    """
    actions = ("accept", "decline", "cancel")
    action, content = "accept", answer
    if answer is None or answer is False:
        action = "decline"
    elif isinstance(answer, str) and answer in actions:
        action, content = answer, None
    elif isinstance(answer, (tuple, list)) and len(answer) == 2 and answer[0] in actions:
        action, content = answer
    elif isinstance(answer, dict) and answer.get("action") in actions:
        action, content = answer["action"], answer.get("content")
    if action != "accept" or schema is None:
        return {"action": action}
    fields = {k: v for k, v in object_of(schema, "properties").items() if isinstance(v, dict)}
    if content is True and [field.get("type") for field in fields.values()] != ["boolean"]:
        content = None  # no more than consent
    content = {} if content is None else to_json(content)
    if not isinstance(content, dict) and len(fields) == 1:
        content = dict.fromkeys(fields, content)  # the only thing that was asked for
    if isinstance(content, dict):
        defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
        content = {**defaults, **content}
    checker_of({"type": "object", **schema})(content)
    return {"action": action, "content": content}


def checker_of(schema: Msg) -> Callable[[JSON], None]:
    """Return a function that checks a value by a server's schema; SchemaError for an unusable one.

    A schema with regular expressions is not applied at all. The text may be the server's as well,
    and some expressions take years for some texts.
    """
    return (lambda value: None) if _has_patterns(schema) else compile_schema(schema).check


def _has_patterns(node: JSON) -> bool:
    if isinstance(node, list):
        return any(map(_has_patterns, node))
    if not isinstance(node, dict):
        return False
    own = isinstance(node.get("pattern"), str) or "patternProperties" in node
    return own or any(map(_has_patterns, node.values()))


class Subscription:
    """The updates of resources and lists that a program wants to hear of.

    `async for`, `async with` or `await` open it; client.subscribe() and client.listen() make them.
    It ends when it is closed, when the connection is closed, and when the server refuses it; not
    when the server is started again, if the connection can outlive that, as over HTTP.
    """

    def __init__(self, client: Client, wanted: Msg, callback: Callback, whole: bool) -> None:
        self.client, self.wanted, self.callback = client, wanted, callback
        self.uris: list[str] = wanted.get("resourceSubscriptions", [])
        self.methods = {FILTERS[name][0] for name in wanted}
        self.whole = whole  # give out messages, not only their parameters
        self.updates: deque[Msg] = deque(maxlen=MAX_INBOX)  # the oldest say no more than the last
        #: modern: the request that brings the updates, and its id
        self.task: asyncio.Task[Any] | None = None
        self.req_id: ReqId = ""
        self.agreed_to = False  # modern: by the server, since the request was sent last
        self._state = START

    async def open(self) -> Subscription:
        """Subscribe; returns when the server agreed."""
        if self._state is not START:
            return self
        self._state, self.news = READY, asyncio.Event()
        self._agreed = asyncio.get_running_loop().create_future()
        self.client.subscriptions.append(self)
        try:
            if self.client.peer.session.rev.modern:
                self.task = self.client.tasks.spawn(self._listen())
                await self._agreed
            else:
                await self._tell_server("resources/subscribe")
        except BaseException:
            self.end()
            raise
        return self

    async def close(self) -> None:
        """Subscribe no longer."""
        if self._state is READY:
            self.end()
            if self.task is None and self.client.peer.lost is None:
                await self._tell_server("resources/unsubscribe")

    def end(self) -> None:
        """End the subscription on our side: no more updates will come."""
        self._state = DONE
        self.client.announcements.missing.discard(self)
        with contextlib.suppress(ValueError):
            self.client.subscriptions.remove(self)
        if self.task is not None:
            self.task.cancel()
        self.news.set()

    def __await__(self) -> Generator[Any, None, Subscription]:
        return self.open().__await__()

    __aenter__ = open

    async def __aexit__(self, *exc: Any) -> None:
        await self.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Msg:
        await self.open()
        while not self.updates:
            if self._state is DONE or self.client.peer.lost is not None:
                raise StopAsyncIteration
            self.news.clear()
            await self.news.wait()
        return self.updates.popleft()

    def agree(self, notifications: Msg) -> None:
        """Note the kinds of updates that the server agreed to send."""
        self.agreed_to = True
        self.client.announcements.back(self)
        _settle(self._agreed, None, None)
        refused = ", ".join(self.wanted.keys() - notifications.keys())
        if refused:
            logger.warning("%s will not tell of %s", self.client.peer.name, refused)

    def push(self, msg: Msg) -> None:
        """Take an announcement, if it is one of those that were wanted."""
        params = msg.get("params", {})
        uri, known = params.get("uri"), [uri.rstrip("/") + "/" for uri in self.uris]
        # An update may name a part of the resource that was subscribed to: x://a/1 for x://a.
        if msg["method"] in self.methods and (uri is None or f"{uri}/".startswith(tuple(known))):
            item = msg if self.whole else params
            if self.callback is not None:
                self.client.peer.call(self.callback, item)
            else:
                self.updates.append(item)
                self.news.set()

    async def _tell_server(self, method: str) -> None:
        """Legacy: ask to hear of each resource, or no longer, unless another here wants it too."""
        others = [item for item in self.client.subscriptions if item is not self]
        for uri in set(self.uris).difference(*(item.uris for item in others)):
            await self.client.request(method, {"uri": uri})

    async def _listen(self) -> None:
        """Modern: keep a subscriptions/listen open, and open it again when its stream is lost."""
        client, clock, pace = self.client, asyncio.get_running_loop().time, Pace()
        problem, goes_on = None, True
        while goes_on:
            self.agreed_to, since = False, clock()
            problem, goes_on = await self._listen_once()
            goes_on = goes_on and self._agreed.done() and client.peer.lost is None
            if goes_on:
                client.announcements.cut(self, problem)
                good = self.agreed_to and clock() - since >= STEADY_SECONDS
                await asyncio.sleep(pace.wait(None, good, clock()))
        if self._agreed.done() and client.peer.lost is None:
            logger.warning("a subscription has ended: %s", problem)
        _settle(self._agreed, None, problem)
        self.end()

    async def _listen_once(self) -> tuple[MCPError, bool]:
        """Modern: hear updates until they end; return why, and if it makes sense to try again."""
        client, params = self.client, {"notifications": self.wanted}
        try:
            await client.send_request(
                "subscriptions/listen", params, self._send, timeout=float("inf")
            )
        except MCPError as exc:
            return exc, isinstance(exc, ConnectionClosed)
        # spec: basic/patterns/subscriptions#graceful-closure -- the server ended it. Over HTTP that
        # may be because it is started again; on a pipe, the pipe ends as well.
        ended = ConnectionClosed(f"{client.peer.name} ended the subscription")
        return ended, client.transport.outlives_server

    async def _send(self, msg: Msg) -> None:
        self.req_id = msg.get("id", self.req_id)  # a cancellation has none
        await self.client.send(msg)


class Announcements:
    """What a server announces: who hears it, and how it comes again after a loss."""

    def __init__(self, client: Client, on_reconnect: Callback) -> None:
        self.client, self.on_reconnect = client, on_reconnect
        self.subscriptions: list[Subscription] = []
        #: by notification: functions of its parameters
        self.listeners: dict[str, list[Callable[[Msg], Any]]] = {}
        self.missing: set[Subscription] = set()  # modern: those whose streams are lost, for now

    def hear(self, msg: Msg) -> None:
        """Take a notification to all who want it."""
        method, params = msg["method"], msg.get("params", {})
        mark = object_of(params, "_meta").get(SUBSCRIPTION_ID)
        if method == "notifications/cancelled":
            # spec: basic/patterns/cancellation#behavior-requirements -- it ends a subscription
            mark = params.get("requestId")
        owners = [item for item in self.subscriptions if str(item.req_id) == str(mark)]
        if method == "notifications/cancelled":
            peer = self.client.peer
            problem = ProtocolError(f"{peer.name} cancelled it: {params.get('reason')}")
            for item in owners:
                peer.fail(item.req_id, problem)
        elif method == "notifications/subscriptions/acknowledged":
            for item in owners:
                item.agree(object_of(params, "notifications"))
        else:
            # spec: basic/patterns/subscriptions#receiving-notifications -- unmarked: for all
            for item in list(self.subscriptions) if mark is None else owners:
                item.push(msg)
            # For changed lists, the listeners have a subscription of their own: see begin().
            if mark is None or (owners and method == "notifications/resources/updated"):
                self.tell_listeners(msg)

    def tell_listeners(self, msg: Msg) -> None:
        """Call the functions that want a notification."""
        for listener in self.listeners.get(msg["method"], ()):
            self.client.peer.call(listener, msg.get("params", {}))

    async def begin(self) -> None:
        """Subscribe to what there are listeners for; legacy servers announce it unasked."""
        client = self.client
        wanted: Msg = {what: True for what in ("tools", "prompts", "resources")
                       if f"notifications/{what}/list_changed" in self.listeners
                       and declares(client.server_capabilities, f"{what}.listChanged")}  # fmt: skip
        if wanted and client.peer.session.rev.modern:
            changes = client.listen(**wanted, callback=self.tell_listeners).open()
            try:  # before anything else, so that nothing is missed
                await asyncio.wait_for(changes, PROBE_SECONDS)
            except (MCPError, asyncio.TimeoutError) as exc:
                logger.warning("changes will not be heard of: %r", exc)

    async def restore(self) -> None:
        """Legacy: ask in a new session for the log level and the updates that the old one had."""
        client = self.client
        asked = [("logging/setLevel", {"level": client.log_level})] if client.log_level else []
        uris = {uri: None for item in self.subscriptions for uri in item.uris}
        asked += [("resources/subscribe", {"uri": uri}) for uri in uris]
        await together(self._ask_again(method, params) for method, params in asked)

    async def _ask_again(self, method: str, params: Msg) -> None:
        client = self.client
        try:
            patience = min(client.timeout, PROBE_SECONDS)
            await client.peer.ask(method, params, client.send, patience=patience)
        except MCPError as exc:
            what = f"the subscription to {params['uri']}" if "uri" in params else "the log level"
            logger.warning("%s lost %s: %s", client.peer.name, what, exc)
            for item in [item for item in self.subscriptions if params.get("uri") in item.uris]:
                item.end()

    def cut(self, subscription: Subscription, reason: MCPError) -> None:
        """Hear that the stream of a subscription is lost; it will be opened again."""
        if subscription not in self.missing:
            logger.info("no updates for the time being: %s", reason)
            self.missing.add(subscription)

    def back(self, subscription: Subscription) -> None:
        """Hear that a subscription is open again, or ended."""
        if subscription in self.missing:
            self.missing.remove(subscription)
            if not self.missing:
                self.reconnected()

    def reconnected(self) -> None:
        """Go on after a gap, in which announcements may have been missed."""
        self.client.forget_lists()
        if self.on_reconnect is not None:
            self.client.peer.call(self.on_reconnect)

    def lose(self, reason: MCPError | None) -> None:
        """End everything: the connection is gone for good; None if that needs no telling."""
        changes = [name for name in self.listeners if name.endswith(("_changed", "/updated"))]
        if reason is not None and (changes or self.subscriptions):
            logger.warning("nothing that the server announces will be heard any more: %s", reason)
        for subscription in list(self.subscriptions):
            subscription.news.set()  # the iterator looks again

###############################################################################
# 28. One request
###############################################################################
# Uses sections 1 to 3, 5, 6, 8, 16, 17, 22, 24 and 27.
#
# Problem.  One request of the program may take many messages: rounds of questions, looks at a task,
#           and sometimes a new session.
# Rules.    1. No request is sent that the program did not ask for, with two exceptions: `ping`,
#              where a server may ask for roots first; and one `tools/list`, when the server says
#              that headers do not fit a tool as it is now.
#           2. max_timeout is the longest that one request takes: with all its progress, its rounds
#              of questions, the looks at its task.
# Plan.     decide_era(); Connector, from a target to a Transport; Call, one request to its end;
#           Renewal, a session begun anew.
# Not here. The program's side of it, Client: section 29. Kinds of targets: later sections add
#           themselves to CONNECTORS.

MAX_POLL_SECONDS = 1.0  # between two looks at a task, if the server does not ask for more


# A client learns the era of a server from the answer to its first request, `server/discover`. A
# result, or an error with a code that only the modern era has, is a modern server's. Any other
# answer, and silence, is a legacy server's.
# spec: basic/transports/stdio#backward-compatibility,
# basic/transports/streamable-http#backward-compatibility
MODERN_CODES = (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION)


def decide_era(outcome: Any) -> str:
    """Return the era of a server, "modern" or "legacy", from what came of `server/discover`.

    `outcome` is its result, or the exception that came instead. "retry" is for a modern server
    that wants to be asked in another revision.

    >>> decide_era({"supportedVersions": SUPPORTED}), decide_era(RemoteError(-32601, "what?"))
    ('modern', 'legacy')
    >>> decide_era(RemoteError(-32022, "no", {"supported": SUPPORTED}))
    'retry'
    """
    if isinstance(outcome, dict):
        return "modern" if isinstance(outcome.get("supportedVersions"), list) else "legacy"
    if isinstance(outcome, RemoteError) and outcome.code in MODERN_CODES:
        return "retry" if outcome.code == UNSUPPORTED_VERSION else "modern"
    return "legacy"


class Connector(NamedTuple):
    """A kind of target, and the Transport that reaches it."""

    name: str
    takes: Callable[[Any], Any]  # is a target of this kind?
    make: Callable[..., Transport]  # from the target and keyword options

    def check(self, options: Msg) -> None:
        """Raise TypeError for an option that this kind of target does not have."""
        known = [p.name for p in inspect.signature(self.make).parameters.values()
                 if p.kind is p.KEYWORD_ONLY]  # fmt: skip
        for name in options:
            if name not in known:
                can = f"; it can have {', '.join(known)}" if known else ""
                raise TypeError(f"a Client of {self.name} has no option {name!r}{can}")


#: The first that takes a target makes its Transport; later sections put theirs here.
CONNECTORS = [
    Connector("a Server", lambda target: isinstance(target, Server), lambda target: target),
    Connector("a Transport", lambda target: isinstance(target, Transport), lambda target: target),
]


def connector_of(target: Any) -> Connector:
    """Return the Connector for a target; TypeError if there is none."""
    found = next((each for each in CONNECTORS if each.takes(target)), None)
    if found is None:
        can = "give a Server, a command, a path, a URL or a Transport"
        raise TypeError(f"cannot connect to {target!r}: {can}")
    return found


def value_of(answer: Msg) -> Any:
    """Return what a tool's result says, as a Python value; raise ToolError if it failed.

    >>> value_of({"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}})
    3
    >>> value_of({"content": [{"type": "text", "text": "hello"}]})
    'hello'
    """
    blocks = answer.get("content", [])
    values = [block.get("text") if block.get("type") == "text" else block for block in blocks]
    if answer.get("isError"):
        text = "\n".join(value for value in values if isinstance(value, str))
        raise ToolError(text or "the tool failed without a message", answer)
    if "structuredContent" in answer:
        out = answer["structuredContent"]
        return out["result"] if is_wrapped(out, values) else out
    return values[0] if len(values) == 1 else values or None


def is_wrapped(out: JSON, values: list[Any]) -> bool:
    """Return whether an object {"result": ...} stands for the value inside.

    Numbers, texts and lists travel so, since the wire wants an object. Nothing marks them; but the
    text beside is that of the value, and for an object that is really like this, of the object.

    >>> is_wrapped({"result": 5}, ["5"]), is_wrapped({"result": 5}, ['{"result": 5}'])
    (True, False)
    >>> is_wrapped({"result": []}, []), is_wrapped({"result": [5]}, [])
    (True, False)
    """
    if not isinstance(out, dict) or out.keys() != {"result"}:
        return False
    for text in values:
        with contextlib.suppress(ProtocolError, AttributeError):  # no JSON; no text
            if text.lstrip()[:1] == "{" and decode(text.encode("utf-8", "replace")) == out:
                return False
    return bool(values) or out["result"] in (None, [], "")


def poll_seconds(told_ms: JSON, waited: float) -> float:
    """Return how long to wait before the next look at a task that has run for `waited` seconds.

    At least as long as the server says, in milliseconds; and a tenth of the time that the task has
    taken so far, up to a second.

    >>> poll_seconds(1, 0.0), poll_seconds(1, 2.0), poll_seconds(1, 60.0), poll_seconds(5000, 60.0)
    (0.001, 0.2, 1.0, 5.0)
    >>> poll_seconds(None, 0.0), poll_seconds(10**9, 0.0)
    (0.5, 30.0)
    """
    wish_ms = told_ms if type(told_ms) is int and told_ms > 0 else POLL_MS
    return max(min(wish_ms, 1000 * STALL_SECONDS) / 1000, min(waited / 10, MAX_POLL_SECONDS))


class Call:
    """One request of ours, until there is a result: its rounds of questions, or its task."""

    def __init__(
        self, client: Client, method: str, send: Send, patience: float, longest: float,
        on_progress: Callback,
    ) -> None:  # fmt: skip
        self.client, self.method, self.send = client, method, send
        self.patience, self.longest, self.on_progress = patience, longest, on_progress
        self.clock = asyncio.get_running_loop().time
        self.until = 0.0  # when it must be over; known once the first round is sent

    async def ask(self, params: Msg) -> Msg:
        """Send the request, or the next round of it, and return the answer."""
        now = self.clock()
        self.until = self.until or now + self.longest
        left = self.until - now
        if left <= 0:
            raise self.overdue()
        return await self.client.peer.ask(
            self.method, params, self.send, patience=min(self.patience, left), longest=left,
            on_progress=self.on_progress,
        )  # fmt: skip

    def overdue(self) -> RequestTimeout:
        """Return the error for a request that has taken as long as it may."""
        name = self.client.peer.name
        return RequestTimeout(f"{name} did not end {self.method} within {self.longest:g} seconds")

    async def result(self, params: Msg) -> Msg:
        """Return the result, over as many rounds as it takes."""
        client, session = self.client, self.client.peer.session
        try:
            if session.state is not READY:  # it could not be renewed before
                raise SessionExpired(f"there is no session with {client.peer.name}")
            answer = await self.ask(params)
        except SessionExpired:
            # spec 2025-11-25: basic/transports#session-management -- "it MUST start a new session"
            await client.renewal.renew(session)
            answer = await self.ask(params)
        return await self.see_through(params, answer) if session.rev.modern else answer

    async def see_through(self, params: Msg, answer: Msg) -> Msg:
        """Answer the questions of the server, and follow its task, until there is a result."""
        for rounds in itertools.count():
            kind = answer.get("resultType", "complete")
            if kind == "complete":
                return answer
            if kind == "task":
                return await self.follow(answer)
            state = without_none(requestState=answer.get("requestState"))
            asked = object_of(answer, "inputRequests")
            name = self.client.peer.name
            if kind != "input_required" or not (asked or state):
                # spec: basic/index#resulttype -- "MUST be considered invalid"
                raise ProtocolError(f"{name} gave a result that means nothing: {kind!r}")
            if rounds == MAX_ROUNDS:
                raise ProtocolError(f"{name} asked more than {MAX_ROUNDS} times in one request")
            # spec: server/utilities/caching#cache-key -- "they depend on inputs that are not part"
            self.client.cache.changes += 1
            # spec: basic/patterns/mrtr#client-requirements-basic-workflow -- the state as it came
            params = {key: params[key] for key in params if key != "requestState"}
            params.update(state, inputResponses=await self.answer_all(asked))
            answer = await self.ask(params)
        raise AssertionError("count() has no end")

    async def answer_all(self, asked: Msg) -> Msg:
        """Return the answers to the questions of one round."""
        return await self.client.answers.answer_all(asked, self.client.peer.session)

    async def follow(self, task: Msg) -> Msg:
        """Return the result of a task: look at it now and then, and answer what it asks."""
        # The extension: only a tool call may become a task, and only where we can follow it.
        client = self.client
        able = TASKS in object_of(client.peer.session.client_capabilities, "extensions")
        if self.method != "tools/call" or not able or not isinstance(task.get("taskId"), str):
            raise ProtocolError(f"{client.peer.name} answered {self.method} with a task")
        handle = {"taskId": task["taskId"]}
        try:
            task = await self.poll(handle, task)
        except BaseException as exc:
            if client.peer.lost is None and not isinstance(exc, (RemoteError, ConnectionClosed)):
                client.tasks.spawn(client.request("tasks/cancel", handle))
            raise
        if task.get("status") == "completed":
            return object_of(task, "result")
        problem = object_of(task, "error")
        code, text = problem.get("code"), problem.get("message") or f"it was {task.get('status')}"
        code = code if isinstance(code, int) else INTERNAL_ERROR
        raise RemoteError(code, str(text), problem.get("data"))

    async def poll(self, handle: Msg, task: Msg) -> Msg:
        """Return a task as it is when it has ended."""
        answered: set[str] = set()
        since, told = self.clock(), None
        if task.get("status") != "working":  # its end, and its questions, are told only here
            task = await self.look(handle)
        while task.get("status") in ("working", "input_required"):
            if self.on_progress is not None and task.get("statusMessage") not in (None, told):
                told = task["statusMessage"]
                self.client.peer.call(self.on_progress, 0, None, told)
            asked = object_of(task, "inputRequests")
            fresh = {name: asked[name] for name in asked if name not in answered}
            if fresh:
                responses = await self.answer_all(fresh)
                await self.client.request("tasks/update", {**handle, "inputResponses": responses})
                answered.update(fresh)
            wait = poll_seconds(task.get("pollIntervalMs"), self.clock() - since)
            await asyncio.sleep(min(wait, max(0.0, self.until - self.clock())))
            if self.clock() >= self.until:
                raise self.overdue()
            task = await self.look(handle)
        return task

    async def look(self, handle: Msg) -> Msg:
        """Return a task as it is; a connection that is lost meanwhile takes nothing from it."""
        pace, failures = Pace(), 0
        while True:
            try:
                return await self.client.request("tasks/get", handle)
            except ConnectionClosed:
                if self.client.peer.lost is not None or failures == MAX_RESUMES:
                    raise
            failures += 1
            await asyncio.sleep(pace.wait(None, False, self.clock()))


def text_or_bytes(item: Msg) -> str | bytes:
    """Return what one of the contents of a resource holds; ProtocolError if it holds neither.

    >>> text_or_bytes({"uri": "x://a", "blob": "aGk="})
    b'hi'
    """
    if "blob" not in item:
        return str(member(item, "text", str, "resource"))
    try:
        return base64.b64decode(member(item, "blob", str, "resource"), validate=True)
    except ValueError:
        problem = f"the server sent a blob of {item.get('uri')} that is not Base64"
        raise ProtocolError(problem) from None


def reference_to(name: str) -> Msg:
    """Return what is to be completed: a template, by its URI, or a prompt, by its name.

    >>> reference_to("note://{name}"), reference_to("review")
    ({'type': 'ref/resource', 'uri': 'note://{name}'}, {'type': 'ref/prompt', 'name': 'review'})
    """
    if "://" in name or "{" in name:
        return {"type": "ref/resource", "uri": name}
    return {"type": "ref/prompt", "name": name}


class Batch:
    """Requests that travel as one array, which is sent when the last of them has come."""

    def __init__(self, size: int, send: Send) -> None:
        self.size, self.send = size, send
        self.messages: list[Msg] = []

    async def __call__(self, msg: Msg) -> None:
        """Take a message; send a cancellation, or a second try, by itself."""
        if len(self.messages) == self.size:
            await self.send(msg)
        elif "id" in msg:
            self.messages.append(msg)
            if len(self.messages) == self.size:
                await self.send(self.messages)  # type: ignore[arg-type]


async def result_or_refusal(answer: Awaitable[Msg]) -> Msg | RemoteError:
    """Return the result of a request, or the error with which the server refused it."""
    try:
        return await answer
    except RemoteError as exc:
        return exc


#: The notifications that Client() takes callbacks for, and the arguments of each callback.
HEARD: dict[str, Callable[[Msg], Iterable[Any]]] = {
    "notifications/message": lambda params: map(params.get, ("level", "data", "logger")),
    "notifications/resources/updated": lambda params: (params,),
    "notifications/resources/list_changed": lambda params: (),
    "notifications/tools/list_changed": lambda params: (),
    "notifications/prompts/list_changed": lambda params: (),
}

class Renewal:
    """A legacy session is begun anew, when the server knows the old one no longer."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.task: asyncio.Task[Any] | None = None

    async def renew(self, expired: Session) -> None:
        """Shake hands again, once for all requests that found the same session gone."""
        if self.task is None or self.task.done():
            session = self.client.peer.session
            if session is not expired and session.state is READY:
                return  # that has happened by now
            self.task = self.client.tasks.spawn(self._begin_again(expired.rev))
        await asyncio.shield(self.task)

    async def _begin_again(self, rev: Revision) -> None:
        await self.client.handshake(rev)
        await self.client.announcements.restore()
        self.client.announcements.reconnected()

    def interrupted(self, expired: bool) -> None:
        """Hear that announcements may have been missed, and whether the session is gone."""
        if expired:
            self.client.tasks.spawn(self._revive(self.client.peer.session))
        else:
            self.client.announcements.reconnected()

    async def _revive(self, expired: Session) -> None:
        """Renew a session that no request has found gone, however long the server is away."""
        client, pace = self.client, Pace()
        while client.state is not DONE:
            try:
                return await self.renew(expired)
            except (ConnectionClosed, RequestTimeout) as exc:
                logger.info("the session is not renewed yet: %s", exc)
            except MCPError as exc:
                return logger.warning("%s announces nothing any more: %s", client.peer.name, exc)
            await asyncio.sleep(pace.wait(None, False, asyncio.get_running_loop().time()))


###############################################################################
# 29. Client
###############################################################################
# Uses sections 1 to 8, 10, 13, 16, 22, 23, 27 and 28.
#
# Problem.  A program wants to use a server: connect, list, call, and answer what the server asks,
#           with one clear error when something goes wrong.
# Rules.    1. One task owns the connection. close() works from any task, any number of times.
#           2. Capabilities are declared from the callbacks that were given; what the server did
#              not declare is not asked for.
#           3. Lists are read page by page, and a server that goes round in circles is caught.
# Plan.     Client: the connection, asking, lists, using, being told.
# Not here. How a target becomes a Transport: later sections add themselves to CONNECTORS.

__all__ += ["Client"]

MAX_PAGES = 1000  # of one list, before a client takes it for endless; 100,000 items at our size
MAX_LIST_BYTES = 64 * 1024 * 1024  # of all pages of one list; four of the longest messages
NOT_CONNECTED = "not connected yet: use `async with`, or await connect()"


class Client:
    """An MCP client: `async with Client(target) as c: await c.call("add", {"a": 1, "b": 2})`.

    The target is a Server, a command (string or list), a path to a .py file, a URL or a Transport.
    `revision` pins a protocol revision. Callbacks are plain or async functions. Some answer the
    server: elicit(message, schema), elicit_url(message, url), sample(params), roots (a list, or a
    function that returns one). Others hear it: log(level, data, logger), progress(progress, total,
    message), on_tools_changed(), on_resources_changed(), on_prompts_changed(),
    on_resource_updated(params), and on_reconnect() when announcements come again after a gap: the
    server was started again, say, and changes may have been missed.

    A request fails with RequestTimeout when `timeout` seconds pass without an answer or progress,
    and in any case after `max_timeout` seconds. `options` depend on the target: env, cwd, stderr
    and others of StdioTransport; headers, token, ssl, uds and others of HTTPTransport.
    """

    def __init__(
        self, target: Any, *, name: str = "mcp_lite", version: str = __version__,
        revision: str | None = None, elicit: Callback = None, elicit_url: Callback = None,
        sample: Callback = None, roots: Any = None, log: Callback = None,
        progress: Callback = None, on_tools_changed: Callback = None,
        on_resources_changed: Callback = None, on_prompts_changed: Callback = None,
        on_resource_updated: Callback = None, on_reconnect: Callback = None,
        timeout: float = REQUEST_SECONDS,
        max_timeout: float = LONGEST_REQUEST_SECONDS, capabilities: Msg | None = None,
        cache: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        if revision is not None and revision not in REVISIONS:
            raise ValueError(f"revision {revision!r} is not one of {', '.join(REVISIONS)}")
        self.target, self.options, self.pinned = target, options, revision
        self.connector = connector_of(target)
        self.connector.check(options)
        self.info = {"name": name, "version": version}
        self.timeout, self.max_timeout, self.progress = timeout, max_timeout, progress
        callbacks = {"sampling": sample, "elicitation.form": elicit, "elicitation.url": elicit_url}
        self.answers = Answers(name, roots, callbacks)
        self.announcements = Announcements(self, on_reconnect)
        self.subscriptions = self.announcements.subscriptions
        changed = on_resources_changed, on_tools_changed, on_prompts_changed
        for (method, pick), fn in zip(HEARD.items(), (log, on_resource_updated, *changed)):
            if fn is not None:
                self.on(method)(lambda params, fn=fn, pick=pick: fn(*pick(params)))
        #: from the answer to initialize or server/discover
        self.server_info: Msg = {}
        self.server_capabilities: Msg = {}
        self.instructions: str | None = None
        #: the level that was asked for by set_log_level()
        self.log_level: str | None = None
        self.cache = Cache(MAX_CACHED if cache else 0)
        self._extra_capabilities = capabilities or {}
        #: by name of a tool that was listed: its output schema, or the function that checks by it
        self._outputs: dict[str, Any] = {}
        self.renewal = Renewal(self)
        self.state = START  # READY when it is connected, DONE when the program has closed it
        self.transport: Any = None  # the Transport, once there is one
        self.peer = Peer("the server", self._serve, self._on_notification)
        self.tasks = Tasks()
        #: why the server was started a second time: some end at a first message that is new to them
        self.started_again = ""

    # The connection.

    @property
    def revision(self) -> str:
        """The protocol revision that was agreed on, a date."""
        return self.peer.session.rev.name

    async def __aenter__(self) -> Client:
        await self.connect()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.close()

    def __enter__(self) -> NoReturn:
        raise TypeError("a Client is used in a coroutine: `async with Client(...) as c`")

    def __exit__(self, *exc: Any) -> None:
        """Exist, since `with` looks for this method before it calls __enter__()."""

    async def connect(self) -> None:
        """Connect and agree on a revision; done by `async with`."""
        if self.transport is not None:
            raise RuntimeError("a Client connects once; make another")
        try:
            await self._open()
            await self._agree()
            await self.announcements.begin()
            await self._settle_roots()
            self.state = READY
        except BaseException:
            await self.close()
            raise

    async def _open(self) -> None:
        """Reach the server."""
        if isinstance(self.target, Server):
            self.transport, theirs = memory_transports()
            theirs.grace = 0  # when we are gone, nobody can hear an answer
            self.tasks.spawn(self._serve_here(self.target, theirs))
        else:
            self.transport = self.connector.make(self.target, **self.options)
        self.transport.interrupted = self.renewal.interrupted
        self.peer.name = self.transport.name
        self.peer.attach(self.transport)
        await self.transport.open()
        self.send = self.peer.traced(self.transport.write)
        self.tasks.spawn(self._run(self.peer, self.transport))

    async def _serve_here(self, server: Server, transport: Transport) -> None:
        try:
            await server.serve(transport)
        except Exception as exc:
            self.peer.lose(ConnectionClosed(f"the server failed: {type(exc).__name__}: {exc}"))
            logger.error("the server failed", exc_info=exc)

    async def _run(self, peer: Peer, transport: Transport) -> None:
        await peer.run(transport)
        if peer is self.peer:
            self.announcements.lose(peer.lost if self.state is READY else None)
        await transport.close()

    async def close(self) -> None:
        """Disconnect: end what is running, and the server if we started it."""
        self.state = DONE
        if self.transport is not None:
            await self.transport.close()
        await self.tasks.drain(GRACE_SECONDS)
        await self.peer.close()
        await self.tasks.close()

    async def _agree(self) -> None:
        """Find out which era the server speaks, and agree on a revision."""
        if self.pinned in LEGACY:
            return await self.handshake(REVISIONS[self.pinned])
        outcome = await self._discover(self.timeout if self.pinned else PROBE_SECONDS)
        if outcome is None:
            return
        if self.pinned:
            problem = f"{self.peer.name} does not speak revision {self.pinned}"
            raise ProtocolError(f"{problem}: {outcome}")
        try:
            # spec: basic/transports/stdio#backward-compatibility -- "Fall back to the initialize"
            await self.handshake(NEWEST_LEGACY)
        except RemoteError:
            slow = isinstance(outcome, RequestTimeout)  # a modern server that was slow to start?
            if not slow or await self._discover(self.timeout) is not None:
                raise

    async def _discover(self, patience: float) -> Any:
        """Agree on a modern revision and return None; or return the answer of a legacy server."""
        self._speak(NEWEST)
        try:
            outcome: Any = await self._ask_who(min(patience, self.timeout))
        except MCPError as exc:
            if isinstance(exc, AuthError):
                raise
            outcome = exc
        if self.peer.lost is not None:
            await self._start_again(self.peer.lost)
        era = decide_era(outcome)
        if era == "retry":
            theirs = outcome.data.get("supported") if isinstance(outcome.data, dict) else None
            rev = self._common(theirs, SUPPORTED)
            if rev.modern:
                self._speak(rev)
                era, outcome = "modern", await self._ask_who(self.timeout)
        if era != "modern":
            return outcome
        if isinstance(outcome, MCPError):
            raise outcome
        self._learn(outcome, object_of(object_of(outcome, "_meta"), SERVER_INFO))

    async def _ask_who(self, patience: float) -> Msg:
        return await self.send_request("server/discover", timeout=patience)

    async def _start_again(self, lost: ConnectionClosed) -> None:
        """Some legacy servers end at a first message that is not `initialize`."""
        if self.pinned or self.transport.deaf or isinstance(self.target, (Server, Transport)):
            raise ConnectionClosed(str(lost))
        logger.info("%s; it is started again", lost)
        self.started_again = str(lost)
        self.peer = Peer("the server", self._serve, self._on_notification)
        await self._open()

    def _speak(self, rev: Revision) -> None:
        """Use a modern revision from now on; there is nothing to agree on."""
        self.peer.session.resume(rev)
        self.peer.session.client_capabilities = self.declare(rev)
        self.transport.agreed(rev)

    def _common(self, theirs: JSON, ours: Iterable[str]) -> Revision:
        """Return the newest revision that both ends speak."""
        ours = [name for name in ours if self.pinned in (None, name)]
        for name in ours:
            if isinstance(theirs, list) and name in theirs:
                return REVISIONS[name]
        known = f"we speak {', '.join(ours)}"
        raise ProtocolError(f"{self.peer.name} speaks revision {theirs!r:.200}; {known}")

    def _learn(self, answer: Msg, info: Msg) -> None:
        """Note the server's name, capabilities and instructions."""
        self.server_info, instructions = info, answer.get("instructions")
        self.server_capabilities = member(answer, "capabilities", dict)
        self.instructions = instructions if isinstance(instructions, str) else None

    async def handshake(self, wanted: Revision) -> None:
        """Begin a legacy session: say hello, and agree on a revision."""
        self.peer.session = session = Session()
        self.transport.renew()
        session.client_capabilities = self.declare(wanted)
        params = {"protocolVersion": wanted.name, "capabilities": session.client_capabilities,
                  "clientInfo": self.info}  # fmt: skip
        session.advance("initialize")
        answer = await self.peer.ask("initialize", params, self.send, patience=self.timeout)
        # spec 2025-11-25: basic/lifecycle#version-negotiation -- "it SHOULD disconnect"
        session.rev = self._common([answer.get("protocolVersion")], LEGACY)
        self._learn(answer, object_of(answer, "serverInfo"))
        session.advance("result")
        self.transport.agreed(session.rev)
        session.advance("notifications/initialized")
        await self.notify("notifications/initialized")

    def declare(self, rev: Revision) -> Msg:
        """Return our capabilities, as they are declared to the server."""
        tasks: Msg = {"extensions": {TASKS: {}}}  # which nobody has to know of: we poll
        ours = {**tasks, **self.answers.capabilities(rev), **self._extra_capabilities}
        return strip_unknown("ClientCapabilities", ours, rev)

    async def _settle_roots(self) -> None:
        """Let a server that wants the roots at once have them, before anything else is asked.

        It asks when it hears that the handshake is over: by the time it answers a ping, its
        question is here. A second ping gives it time to use the answer.
        """
        if self.answers.roots is None or self.peer.session.rev.modern:
            return
        patience = min(self.timeout, PROBE_SECONDS)
        for _ in range(2):
            with contextlib.suppress(RemoteError, RequestTimeout):
                await self.peer.ask("ping", None, self.send, patience=patience)
            if not self.answers.asked_for_roots:
                return
            answering = {x.task for x in self.peer.incoming.values() if x.task is not None}
            if answering:
                await asyncio.wait(answering, timeout=patience)

    def forget_lists(self) -> None:
        """Forget all results and schemas that are kept: they may have changed unheard."""
        self.cache.clear()
        self._outputs = {}

    # Asking.

    async def request(
        self, method: str, params: Msg | None = None, *, timeout: float | None = None,
        progress: Callback = None, meta: Msg | None = None,
    ) -> Msg:  # fmt: skip
        """Send any request and return its result.

        `timeout` seconds begin again with each progress(progress, total, message); all in all it
        takes no longer than the Client's max_timeout, or `timeout` if that is more. Raises
        RemoteError, RequestTimeout, ConnectionClosed; CapabilityMissing before anything is sent.
        """
        self._check(method)
        key = self.cache.key(method, params)
        answer = self.cache.find(key)
        if answer is None:
            changes = self.cache.changes
            answer = await self.send_request(
                method, params, timeout=timeout, progress=progress, meta=meta
            )
            row = METHODS.get(method)
            if row is not None and row.lists.key:
                objects(answer, row.lists.key, row.lists.each_has)
            if key and changes == self.cache.changes:
                self.cache.keep(key, answer)
        return answer

    def _check(self, method: str) -> None:
        """Raise CapabilityMissing if the server did not say that it can be asked for `method`."""
        if self.transport is None:
            raise ConnectionClosed(NOT_CONNECTED)
        rev, row = self.peer.session.rev, METHODS.get(method)
        if row is not None:
            if rev.name not in row.revisions:
                raise CapabilityMissing("server", f"{method}, which revision {rev.name} lacks")
            # spec 2025-11-25: basic/lifecycle#operation
            check_capability("server", self.server_capabilities, row.capability, rev)

    async def send_request(
        self, method: str, params: Msg | None = None, send: Send | None = None, *,
        timeout: float | None = None, progress: Callback = None, meta: Msg | None = None,
    ) -> Msg:  # fmt: skip
        """Send a request and return its result, whatever is kept or declared."""
        said = self._metadata() if self.peer.session.rev.modern else {}
        given = params or {}
        params = {**given, "_meta": {**given.get("_meta", {}), **said, **(meta or {})}}
        patience = min(self.timeout, self.max_timeout) if timeout is None else timeout
        longest = max(patience, self.max_timeout)
        call = Call(self, method, send or self.send, patience, longest, progress or self.progress)
        return await call.result(params)

    def _metadata(self) -> Msg:
        """Return the metadata of every modern request. spec: basic/index#_meta"""
        session, listeners = self.peer.session, self.announcements.listeners
        wants_log = "notifications/message" in listeners
        meta = {PROTOCOL_VERSION: session.rev.name, CLIENT_INFO: self.info,
                CLIENT_CAPABILITIES: session.client_capabilities}  # fmt: skip
        return {**meta, LOG_LEVEL: session.log_level} if wants_log else meta

    async def notify(self, method: str, params: Msg | None = None) -> None:
        """Send any notification."""
        if self.transport is None or self.peer.lost is not None:
            raise ConnectionClosed(str(self.peer.lost or NOT_CONNECTED))
        await self.send(notification(method, params))

    async def batch(self, calls: Iterable[tuple[str, Msg | None]]) -> list[Any]:
        """Send several requests together; return results and RemoteErrors in their order.

        They travel as one array where the revision has batches, one by one elsewhere. Any other
        error of one, such as a timeout, is raised at once, and the others are cancelled.
        """
        calls = list(calls)
        if len(calls) > MAX_BATCH:
            raise ValueError(f"{len(calls)} calls in one batch; at most {MAX_BATCH}")
        for method, _ in calls:
            self._check(method)
        encode([{"params": params} for _, params in calls])  # all can be said, or none is
        whole = self.peer.session.rev.batching
        send = Batch(len(calls), self.send) if whole else self.send
        sent = (self.send_request(method, params, send) for method, params in calls)
        return await together(map(result_or_refusal, sent))

    async def ping(self) -> float:
        """Return how many seconds the server took to answer."""
        clock, modern = asyncio.get_running_loop().time, self.peer.session.rev.modern
        start = clock()
        await (self._ask_who(self.timeout) if modern else self.request("ping"))
        return clock() - start

    # Lists.

    async def _pages(self, method: str) -> AsyncIterator[Msg]:
        lists = METHODS[method].lists
        params: Msg | None = None
        seen: set[str] = set()
        size = 0
        while len(seen) < MAX_PAGES:
            answer = await self.request(method, params)
            for item in answer[lists.key]:
                yield item
            # spec: server/utilities/pagination#implementation-guidelines -- no cursor, no more
            if answer.get("nextCursor") is None:
                return
            size += len(encode(answer))
            if size > MAX_LIST_BYTES:
                raise LimitExceeded(f"{method}: more than {MAX_LIST_BYTES} bytes in all")
            cursor = member(answer, "nextCursor", str)
            if cursor in seen:
                raise ProtocolError(f"{method}: the server gave the cursor {cursor!r} twice")
            seen.add(cursor)
            params = {"cursor": cursor}
        raise LimitExceeded(f"{method}: more than {MAX_PAGES} pages")

    async def tools(self) -> AsyncIterator[Msg]:
        """Iterate over the tools: {"name", "inputSchema", ...}; pages are fetched as needed."""
        async for tool in self._pages("tools/list"):
            # spec: basic/transports/streamable-http#schema-extension -- invalid ones are left out
            try:
                if self.peer.session.rev.modern:
                    self.transport.learn_tool(tool)
                yield tool
            except SchemaError as exc:
                logger.warning("tool %r is left out: %s", tool["name"], exc)

    def resources(self) -> AsyncIterator[Msg]:
        """Iterate over the resources: {"uri", "name", ...}."""
        return self._pages("resources/list")

    def templates(self) -> AsyncIterator[Msg]:
        """Iterate over the resource templates: {"uriTemplate", "name", ...}."""
        return self._pages("resources/templates/list")

    def prompts(self) -> AsyncIterator[Msg]:
        """Iterate over the prompts: {"name", "arguments"?, ...}."""
        return self._pages("prompts/list")

    async def list_tools(self) -> list[Msg]:
        """Return all tools; their output schemas are kept, to check results against."""
        tools = [tool async for tool in self.tools()]
        self._outputs = {tool["name"]: tool.get("outputSchema") for tool in tools}
        return tools

    async def list_resources(self) -> list[Msg]:
        """Return all resources."""
        return [item async for item in self.resources()]

    async def list_templates(self) -> list[Msg]:
        """Return all resource templates."""
        return [item async for item in self.templates()]

    async def list_prompts(self) -> list[Msg]:
        """Return all prompts."""
        return [item async for item in self.prompts()]

    # Using.

    async def call(
        self, name: str, arguments: Msg | None = None, *, timeout: float | None = None,
        progress: Callback = None, meta: Msg | None = None, **unknown: NoReturn,
    ) -> Any:  # fmt: skip
        """Call a tool and return its value; raise ToolError if it failed.

        The value is the structured output if there is one, else the text of a single text block,
        else the list of content blocks. Options as for request().
        """
        if unknown:
            shown = ", ".join(f'"{key}": ...' for key in unknown)
            raise TypeError(f'a tool\'s arguments are one dict: call("{name}", {{{shown}}})')
        answer = await self.call_tool(
            name, arguments, timeout=timeout, progress=progress, meta=meta
        )
        return value_of(answer)

    async def call_tool(
        self, name: str, arguments: Msg | None = None, *, timeout: float | None = None,
        progress: Callback = None, meta: Msg | None = None,
    ) -> Msg:  # fmt: skip
        """Call a tool and return its result as sent; options as for request().

        Structured output is checked if list_tools() has told of the tool's output schema.
        """
        params = {"name": name, "arguments": to_json({} if arguments is None else arguments)}
        if type(params["arguments"]) is not dict:
            raise TypeError(f"the arguments of a tool are a dict, not {arguments!r:.100}")
        options: Any = {"timeout": timeout, "progress": progress, "meta": meta}
        try:
            answer = await self.request("tools/call", params, **options)
        except RemoteError as exc:
            if exc.code != HEADER_MISMATCH:
                raise
            # spec: basic/transports/streamable-http#client-behavior -- the tool may have changed
            await self._list_again(self.timeout if timeout is None else timeout)
            answer = await self.request("tools/call", params, **options)
        if "content" in answer or "structuredContent" not in answer:  # some leave out the former
            objects(answer, "content")
        if "structuredContent" in answer and not answer.get("isError"):
            self._check_output(name, answer["structuredContent"])
        return answer

    async def _list_again(self, patience: float) -> None:
        self.cache.drop("notifications/tools/list_changed", {})
        try:
            await asyncio.wait_for(self.list_tools(), patience)
        except asyncio.TimeoutError:
            problem = f"{self.peer.name} did not list its tools within {patience:g} seconds"
            raise RequestTimeout(problem) from None

    def _check_output(self, name: str, out: JSON) -> None:
        # spec: server/tools#output-schema -- "Clients SHOULD validate structured results"
        check = self._outputs.get(name)
        try:
            if isinstance(check, dict):
                check = self._outputs[name] = checker_of(check)
        except MCPError as exc:  # the call itself has succeeded
            logger.warning("the output of %r is not checked: %s", name, exc)
            self._outputs[name] = None
            return
        try:
            if callable(check):
                check(out)
        except SchemaError as exc:
            raise ProtocolError(f"tool {name!r} broke its own output schema: {exc}") from exc

    async def read_resource(self, uri: str) -> Msg:
        """Read a resource and return the result as sent: {"contents": [...]}."""
        return await self.request("resources/read", {"uri": uri})

    async def read(self, uri: str) -> Any:
        """Read a resource: str or bytes, or a list of them if it has several contents."""
        values = [text_or_bytes(item) for item in (await self.read_resource(uri))["contents"]]
        return values[0] if len(values) == 1 else values

    async def get_prompt(self, name: str, arguments: Mapping[str, Any] | None = None) -> Msg:
        """Return a prompt: {"messages": [{"role", "content"}], "description"?}."""
        texts = {key: value if isinstance(value, str) else _to_json(to_json(value))
                 for key, value in (arguments or {}).items()}  # fmt: skip
        return await self.request("prompts/get", {"name": name, "arguments": texts})

    async def complete_full(
        self, ref: Any, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> Msg:
        """Return completions as sent: {"values", "total"?, "hasMore"?}."""
        ref = reference_to(ref) if isinstance(ref, str) else ref
        known = {"arguments": dict(context)} if context else None
        params = without_none(ref=ref, argument={"name": argument, "value": value}, context=known)
        params = strip_unknown("Complete", params, self.peer.session.rev)
        found: Msg = member(await self.request("completion/complete", params), "completion", dict)
        if not all(isinstance(text, str) for text in member(found, "values", list)):
            raise ProtocolError("the server sent completions that are no strings")
        return found

    async def complete(
        self, ref: Any, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> list[str]:
        """Return values for an argument of a prompt (by name) or a template (by its URI)."""
        return (await self.complete_full(ref, argument, value, context))["values"]  # type: ignore

    def subscribe(self, uri: str, callback: Callback = None) -> Subscription:
        """Hear of updates: `await` it with a callback, or iterate over it."""
        return Subscription(self, {"resourceSubscriptions": [uri]}, callback, False)

    def listen(
        self, *, tools: bool = False, prompts: bool = False, resources: bool = False,
        uris: Iterable[str] = (), callback: Callback = None,
    ) -> Subscription:  # fmt: skip
        """Hear of changed lists and resources: `async for msg in client.listen(tools=True)`.

        `resources` is about the list of resources; `uris` are those whose updates are wanted.
        """
        for name, given in (("tools", tools), ("prompts", prompts), ("resources", resources)):
            if not isinstance(given, bool):
                raise TypeError(f"listen({name}=...) is True or False; for updates use uris=[...]")
        if isinstance(uris, str):
            raise TypeError(f"listen(uris=...) is a list: [{uris!r}]")
        wanted: Msg = dict(zip(FILTERS, (tools, prompts, resources, list(uris))))
        return Subscription(self, {k: v for k, v in wanted.items() if v}, callback, True)

    async def unsubscribe(self, uri: str) -> None:
        """Hear of a resource's updates no longer."""
        for subscription in list(self.subscriptions):
            if subscription.uris == [uri]:
                await subscription.close()

    async def set_log_level(self, level: str) -> None:
        """Say how severe a log message must be to be sent: "debug" to "emergency"."""
        if level not in LOG_LEVELS:
            raise ValueError(f"{level!r} is no log level; they are {', '.join(LOG_LEVELS)}")
        self.peer.session.log_level = self.log_level = level
        if not self.peer.session.rev.modern:  # there, every request says it
            await self.request("logging/setLevel", {"level": level})

    async def roots_changed(self, roots: Any = None) -> None:
        """Replace the roots, if new ones are given, and tell the server."""
        session = self.peer.session
        needed = "roots" if session.rev.modern else "roots.listChanged"
        check_capability("client", session.client_capabilities, needed, session.rev)
        if roots is not None:
            self.answers.roots = roots
        if not session.rev.modern:  # there, the server asks when it needs them
            await self.notify("notifications/roots/list_changed")

    # Being told and asked.

    def on(self, method: str) -> Callable[[Any], Any]:
        """Hear a notification of the server: fn(params), plain or async."""

        def decorate(fn: Any) -> Any:
            self.announcements.listeners.setdefault(method, []).append(fn)
            return fn

        return decorate

    def _on_notification(self, msg: Msg, send: Send, caller: Caller) -> None:
        method, params = msg["method"], msg.get("params", {})
        self.cache.drop(method, params)
        if method == "notifications/tools/list_changed":
            self._outputs = {}
        self.announcements.hear(msg)

    async def _serve(self, exchange: Exchange) -> Msg:
        """Answer a request of the server."""
        session = self.peer.session
        if session.rev.modern:
            # spec: basic/patterns/index -- "clients do not send JSON-RPC responses"
            logger.warning("%s sent a request, %s", self.peer.name, exchange.method)
            exchange.advance("cancel")
            return {}
        admit(exchange.method, SERVER, session.rev, session.client_capabilities)
        return {} if exchange.method == "ping" else await self.answers.answer(exchange.msg, session)

###############################################################################
# 30. Child processes
###############################################################################
# Uses sections 1 to 3, 7, 25 and 28.
#
# Problem.  A client starts a server as a child process. The child may live or die as it likes.
#           The program that was started is often not the server: npx, uv or a shell starts the
#           server as a child of its own, and a signal that ends the one leaves the other running.
# Rules.    1. The client starts the child in a session of its own, and so in a process group of
#              its own. Whatever the child starts belongs to this group, too. The client ends the
#              whole group: it closes stdin, sends SIGTERM, then SIGKILL, each after a deadline.
#              This works from any loop in any thread, and leaves no zombie.
#           2. Whatever ends the conversation is told by its name: exit status, signal, last words.
# Plan.     Its environment; its command line; StdioTransport, and its connector.
# Not here. Starting it again: that is up to the user.

__all__ += ["StdioTransport"]

MAX_LAST_WORDS = 10  # lines of a child's stderr that are kept for messages
MAX_STDERR_LINE_BYTES = 16 * 1024  # one of them
EXIT_SECONDS = 2.0  # for a child to end by itself when its input is closed, as in the official SDKs
TERM_SECONDS = 2.0  # ... and when it has got SIGTERM; then it is killed
LAST_WORDS_SECONDS = 1.0  # from the end of a child's output to its exit status and last words
DRAIN_SECONDS = 0.2  # to read what a child has left in its pipes; its own children may hold them

# What a child may see of our environment: enough to run and to find its files and the network, none
# of the secrets that happen to be there (the address of a proxy goes without user and password).
# The official SDKs pass the first line and the last two.
INHERITED_VARIABLES = """
    HOME LOGNAME PATH SHELL TERM USER  LANG LC_ALL LC_CTYPE TZ TMPDIR XDG_RUNTIME_DIR
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS  COMSPEC PATHEXT WINDIR
    APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PROCESSOR_ARCHITECTURE PROGRAMDATA PROGRAMFILES
    SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE
""".split()

Command = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a child may see, without secrets.

    >>> inherited({"HTTPS_PROXY": "http://me:secret@proxy:3128", "API_KEY": "secret"})
    {'HTTPS_PROXY': 'http://proxy:3128'}
    """
    found = {}
    for name in INHERITED_VARIABLES:
        value = environment.get(name, "()")
        if name.lower().endswith("_proxy"):
            value = re.sub(r"^([\w+.-]+://)?.*@", r"\1", value)
        if not value.startswith("()"):  # "() { ..." is a function, which an old bash would run
            found[name] = value
    return found


def command_line(command: Command, cwd: str | None, path: str | None) -> list[str]:
    """Return the arguments that start `command`, with the program as it was found on `path`.

    A string is split as a shell would, unless it is a file's name. Python runs what ends in .py.
    """
    import shlex
    import shutil

    if not isinstance(command, (str, os.PathLike)):
        argv = [os.fspath(part) for part in command]
    elif os.path.isfile(os.path.join(cwd or "", command)) or isinstance(command, os.PathLike):
        argv = [os.fspath(command)]
    elif os.name == "nt":  # where a backslash is no escape
        argv = [part.strip('"') for part in shlex.split(command, posix=False)]
    else:
        argv = shlex.split(command)
    if not argv:
        raise ValueError("the command is empty")
    if argv[0].endswith(".py"):
        # Inside an application sys.executable is that application, or nothing.
        ours = os.path.basename(sys.executable or "").startswith(("python", "pypy"))
        argv.insert(0, sys.executable if ours else "python" if os.name == "nt" else "python3")
    if os.name == "nt" or not os.path.dirname(argv[0]):
        found = shutil.which(argv[0], path=path)
        if found is None:
            raise ConnectionClosed(f"cannot start {argv[0]!r}: it is not on the PATH, {path}")
        argv[0] = found
    if argv[0].lower().endswith((".bat", ".cmd")) and set('&|<>^%!"\r\n') & set("".join(argv[1:])):
        # cmd.exe runs those, and takes its arguments apart by rules of its own.
        raise ValueError(f"an argument of {argv[0]!r} has a character that cmd.exe may interpret")
    return argv


class StdioTransport(LineTransport):
    """A server that we start as a child process: the client's end.

    `command` is a string, a list of arguments, or the path of a .py file. The child sees `env` and
    those variables of ours that INHERITED_VARIABLES names: PATH, HOME, the locale, proxies without
    their passwords. Anything else that it needs (an API key, DATABASE_URL, PYTHONPATH) is given in
    `env`; with `env_replace` it sees `env` alone. Its stderr goes line by
    line to ours, to a function `stderr(line)`, or nowhere ("null"), and the last lines are kept
    for messages; "inherit" or a file hands it over instead. close() ends the child.
    """

    name = "the server"

    def __init__(
        self, command: Command, *, env: Mapping[str, str] | None = None, env_replace: bool = False,
        cwd: str | os.PathLike[str] | None = None, stderr: Any = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES, exit_seconds: float = EXIT_SECONDS,
        term_seconds: float = TERM_SECONDS,
    ) -> None:  # fmt: skip
        super().__init__(max_message_bytes)
        parts: Any = command.split() if isinstance(command, str) else command
        parts = [command] if isinstance(command, os.PathLike) else parts
        words = [os.path.basename(part) for part in parts] or [""]
        self.name = f"the server {next((w for w in words if w.endswith('.py')), words[0])!r}"
        ours = {} if env_replace else inherited(os.environ)
        self.command, self.env, self.stderr = command, {**ours, **(env or {})}, stderr
        self.cwd = None if cwd is None else os.fspath(cwd)
        self.exit_seconds, self.term_seconds = exit_seconds, term_seconds
        self.process: Any = None
        self.heard = False  # whether any message has come from it
        self.garbage = ""  # the first line of its stdout that is no message
        self.last_words: deque[str] = deque(maxlen=MAX_LAST_WORDS)
        #: whether explain() repeats them, which is too much for who has just read them
        self.repeats = True
        self._group_lives = True
        #: a copy of our end of its stdin, until it says something or ends
        self._spare = -1
        self._errors: LineReader | None = None
        self._held: list[Callable[[], None]] = []  # closes our ends of the pipes
        self._tasks = Tasks()
        self._exited: asyncio.Future[None] | None = None
        self._listening: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Start the child; raise ConnectionClosed if that is impossible."""
        argv = command_line(self.command, self.cwd, self.env.get("PATH"))
        script = argv[1] if len(argv) > 1 and argv[1].endswith(".py") else ""
        if script and not os.path.isfile(os.path.join(self.cwd or "", script)):
            raise ConnectionClosed(f"cannot start {self.name}: there is no file {script!r}")
        self._exited = asyncio.get_running_loop().create_future()
        with contextlib.ExitStack() as theirs:  # the child's ends of the pipes: it has copies
            try:
                await self._start(argv, theirs)
            except BaseException as exc:
                self._let_go()
                if isinstance(exc, (OSError, RuntimeError, ValueError)):
                    raise ConnectionClosed(f"cannot start {argv[0]!r}: {exc}") from exc
                raise
        self._tasks.spawn(self._keep(self._exited))
        if self._errors is not None:
            self._listening = self._tasks.spawn(self._listen(self._errors))

    async def _start(self, argv: list[str], theirs: contextlib.ExitStack) -> None:
        # Before 3.12, and off Linux, asyncio waits for a child in a thread. If there can be no
        # threads, it is better to know before there is a child.
        _start_thread(int)
        stdin, ours = os.pipe()
        theirs.callback(os.close, stdin)
        self._spare = os.dup(ours)
        self._held.append(self._drop_spare)
        self.writer = await write_lines(ours)
        self._held.append(self.writer.abort)
        stdout, self.reader = await self._hear_from(self.max_message_bytes, theirs)
        stderr = None if self.stderr == "inherit" else self.stderr
        if self.stderr in (None, "null") or callable(self.stderr):
            stderr, self._errors = await self._hear_from(MAX_STDERR_LINE_BYTES, theirs)
        apart: Any = {"start_new_session": True}  # also, Ctrl-C is for us alone
        if os.name == "nt":
            apart = {"creationflags": 0x08000200}  # CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP
        streams: Any = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        place: Any = {"cwd": self.cwd, "env": self.env}
        try:
            start = asyncio.create_subprocess_exec
            self.process = await start(argv[0], *argv[1:], **streams, **place, **apart)
        except NotImplementedError:
            self.process = ThreadedProcess(argv, **streams, **place, **apart)

    async def _hear_from(
        self, limit: int, theirs: contextlib.ExitStack
    ) -> tuple[int, LineReader]:
        """Return the child's end of a pipe, and the lines that come out of ours."""
        ours, end = os.pipe()
        theirs.callback(os.close, end)
        reader = await read_lines(ours, limit)
        self._held.append(reader.close)
        return end, reader

    async def _keep(self, exited: asyncio.Future[None]) -> None:
        """Wait until the child has exited, and then until what it wrote is read."""
        try:
            await self.process.wait()
            self.deaf = unread_bytes(self._spare) > 0
        except asyncio.CancelledError:  # our loop ends, and nobody has called close()
            self.kill()
            last = asyncio.ensure_future(self.process.wait())
            await asyncio.wait({last}, timeout=LAST_WORDS_SECONDS)
            raise
        else:
            # The number of a group without members may be given to another: see if it has any.
            self._signal(0)
            _settle(exited, None, None)
            # Pipes that a child of the child holds never end.
            await asyncio.sleep(DRAIN_SECONDS)
        finally:
            _settle(exited, None, None)
            self._let_go()

    def _drop_spare(self) -> None:
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def _let_go(self) -> None:
        """Close our ends of the pipes."""
        while self._held:
            self._held.pop()()

    async def _listen(self, errors: LineReader) -> None:
        """Pass the child's stderr on, until it ends."""
        # spec: basic/transports/stdio -- "The client MAY capture, forward, or ignore" it
        while True:
            lines = await errors.read()
            if not lines:
                return
            for line in lines:
                self._hear(line)

    def _hear(self, data: Any) -> None:
        line = data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)
        self.last_words.append(line)
        try:
            if callable(self.stderr):
                self.stderr(line)
            elif self.stderr is None and sys.stderr is not None:
                print(line, file=sys.stderr, flush=True)
        except Exception:
            logger.exception("the stderr callback failed")

    async def read(self) -> list[Any]:
        """Return the next messages; lines that cannot be any are skipped."""
        while True:
            items = await self.reader.read()
            messages = [item for item in items if self._is_message(item)]
            if messages:
                self.heard = True
                self._drop_spare()
                return messages
            if not items:
                await self._let_it_end()
                return []

    def _is_message(self, line: Any) -> bool:
        # The server's libraries print what it must not. And "[INFO] ready" is no batch.
        if not isinstance(line, bytes) or re.match(rb'\s*(\[\s*)?\{\s*"', line):
            return True
        if not self.garbage:
            self.garbage = line[:200].decode("utf-8", "replace")
            logger.warning("%s printed to stdout, which is skipped: %r", self.name, self.garbage)
        return False

    async def _let_it_end(self) -> None:
        if self._closing is None:
            await self._until_over(LAST_WORDS_SECONDS)

    async def _until_over(self, seconds: float) -> None:
        """Wait until the child has exited and its last words are heard."""
        ends = {end for end in (self._exited, self._listening) if end is not None}
        await asyncio.wait(ends, timeout=seconds)

    def explain(self) -> str:
        """Return how the child ended, and its last words."""
        # spec: basic/transports/stdio#unexpected-termination -- restarting is up to our user
        status = self.process.returncode if self.process else None
        if status is None:
            how = "was closed" if self._closing else "closed its output"
        elif status < 0:
            with contextlib.suppress(ValueError):
                status = signal.Signals(-status).name
            how = f"was killed by {status}"
        else:
            how = f"exited with status {status}"
            if status == 0 and not self.heard and ".py'" in self.name:
                how += " without a word: it should call app.run() at its end"
                how += " (or give the command line FILE.py:APP, which needs no run())"
        words = "\n".join(self.last_words)
        said = f'its last words: "{words}"' if words and self.repeats else ""
        if "No module named 'mcp_lite'" in words:
            how += ": mcp_lite.py is to stand beside it"
            how += " (or give the command line FILE.py:APP, which brings its own)"
        return "; ".join(filter(None, (how, said, self.hint())))

    def hint(self) -> str:
        """Return the first line on its stdout that was no message, if there is one."""
        return f'it printed to stdout: "{self.garbage}"' if self.garbage else ""

    async def _end(self) -> None:
        # spec: basic/transports/stdio#shutdown -- "Closing the input stream to the child process"
        # spec 2025-11-25: basic/lifecycle#stdio -- "sending SIGTERM if the server does not exit
        # within a reasonable time", and then SIGKILL
        if self.process is None or self._exited is None:
            return
        loop = asyncio.get_running_loop()
        try:
            self._drop_spare()
            self.reader.drop()
            await self.writer.close()
            await asyncio.wait({self._exited}, timeout=self.exit_seconds)
            if self._signal(signal.SIGTERM):
                deadline = loop.time() + self.term_seconds
                while self._signal(0) and loop.time() < deadline:
                    await asyncio.sleep(0.01)
            self.kill()
            await self._until_over(LAST_WORDS_SECONDS)
        finally:
            self.kill()  # if we were cancelled
            await asyncio.wait({self._exited}, timeout=LAST_WORDS_SECONDS)
            await self._tasks.close()

    def kill(self) -> None:
        """Kill the child and its children at once: for a process that is itself told to end."""
        if self.process is not None:
            self._signal(SIGKILL)

    def _signal(self, number: int) -> bool:
        """Send a signal to the child and its children (0: none); return whether any are left."""
        if self._group_lives and os.name == "nt":
            self._group_lives = self.process.returncode is None
            if self._group_lives and number:
                import subprocess

                subprocess.call(["taskkill", "/F", "/T", "/PID", str(self.process.pid)])
        elif self._group_lives:
            try:
                os.killpg(self.process.pid, number)
            except (ProcessLookupError, PermissionError):  # macOS: EPERM if all are zombies
                self._group_lives = False
        return self._group_lives


SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has one way only


def unread_bytes(fd: int) -> int:
    """Return how many bytes nobody has read from a pipe; 0 where that cannot be known."""
    try:
        import fcntl
        import termios

        return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
    except (ImportError, OSError, ValueError):
        return 0


class ThreadedProcess:
    """A child process for a loop that cannot watch any: a thread waits for it."""

    def __init__(self, argv: list[str], **options: Any) -> None:
        from subprocess import Popen

        self._popen, self._loop = Popen(argv, **options), asyncio.get_running_loop()
        self._exited = self._loop.create_future()
        self.pid = self._popen.pid
        _start_thread(self._wait)

    @property
    def returncode(self) -> int | None:
        """Its exit status; the negative number of the signal that ended it; None while it runs."""
        return self._popen.returncode

    def _wait(self) -> None:
        self._popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(_settle, self._exited, None, None)

    async def wait(self) -> int | None:
        """Wait until it has exited; return its status."""
        await asyncio.shield(self._exited)
        return self.returncode


def is_command(target: Any) -> bool:
    """Return whether a target is a command, a list of arguments, or the path of a .py file.

    >>> is_command("python3 server.py"), is_command(["server"]), is_command("https://a/mcp")
    (True, True, False)
    """
    if isinstance(target, str) and re.match("[A-Za-z]+://", target):
        return False
    parts = target if isinstance(target, (list, tuple)) else [target]
    return all(isinstance(part, (str, os.PathLike)) for part in parts)


CONNECTORS.append(Connector("a command", is_command, StdioTransport))

# =============================================================================
# Part VI. HTTP
# =============================================================================

###############################################################################
# 31. HTTP/1.1, heads and values
###############################################################################
# Pure. Uses sections 1 and 2.
#
# Problem.  Two programs that read the same bytes as different messages can be played against each
#           other: what one takes for a body, the other takes for the next request.
# Rules.    1. One grammar, no lenient mode. Lines end in CRLF; whatever RFC 9112 lets a recipient
#              repair, we refuse, save one empty line before a request.
#           2. A body has exactly one framing. Any doubt about it is an error, and after an error
#              nothing more is read: answer, and close.
#           3. A field that steers us may occur once. All others are joined with commas.
#           4. Numbers go through an ASCII regex; sizes are judged before anything is kept.
#           5. What we write must read back as exactly the fields that were meant.
# Plan.     Whole blocks first: fields, heads, the framing of bodies, targets, values. Then the two
#           decoders, which only cut; then the encoders.
# Not here. What a header means to MCP: section 34. Sockets, deadlines, `Date`: section 36.
#           Content codings, upgrades and ranges are never offered.

MAX_FIELDS = 100  # header or trailer fields of one message, as in Apache; browsers send 20
TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # RFC 9110 §5.6.2
# `^` holds only after a line feed, which no part of the pattern matches: a match is a whole line.
FIELD_LINE = re.compile(rf"(?m)^({TOKEN}):([\t\x20-\x7e\x80-\xff]*)\r\n")
REQUEST_LINE = re.compile(rf"({TOKEN}) ([\x21\x22\x24-\x7e]+) HTTP/([0-9]\.[0-9])")
STATUS_LINE = re.compile(r"HTTP/(1\.[0-9]) ([1-5][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?")
AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._~-]+)(?::([0-9]{0,5}))?")
ABSOLUTE_FORM = re.compile(r"(?ai)(https?)://([^/?#]*)((?:[/?][^#]*)?)")
LENGTH = re.compile("[0-9]{1,19}")  # int() would take "+5", "1_0" and other digits
# A quote that is never closed reaches to the end: so the patterns cannot fail, nor backtrack.
COMMA_PIECE = re.compile(r'(?:[^",]+|"(?:[^"\\]|\\.)*"?)+')
SEMICOLON_PIECE = re.compile(r'(?:[^";]+|"(?:[^"\\]|\\.)*"?)+')

#: Fields of which a second one could change what the first one says.
SINGLETONS = frozenset(
    "authorization content-length content-type host last-event-id location mcp-method mcp-name"
    " mcp-protocol-version mcp-session-id origin retry-after".split()
)
#: A line that FIELD_LINE does not match: the first of these that it matches says why.
BAD_FIELDS = (
    (r"[^\r]*\Z", "ends in a bare line feed"),
    (r"[ \t]", "continues the line before it"),
    (r"[^:]*\Z", "has no colon"),
    (r"[^:]*[ \t]:", "has a space before its colon"),
    (rf"(?!{TOKEN}:)", "has a name with forbidden characters"),
    (r"", "has control characters in its value"),
)
#: Framings other than a number of bytes.
CHUNKED, UNTIL_CLOSE = -1, -2

REASONS = {
    200: "OK", 202: "Accepted", 204: "No Content", 302: "Found",
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict",
    413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type",
    429: "Too Many Requests", 431: "Request Header Fields Too Large",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
}  # fmt: skip


class RequestHead(NamedTuple):
    """A request without its body. Names of headers are lowercase; values are latin-1 text."""

    method: str
    #: "/path?query", or "*"; an absolute URL has become this and the Host
    target: str
    version: tuple[int, int]
    headers: Mapping[str, str]
    # What follows from these, found out once for all requests that begin alike:
    path: str = ""  # percent-decoded
    query: str = ""  # as sent
    size: int = 0  # of the body in bytes, or CHUNKED
    keep_alive: bool = True


class ResponseHead(NamedTuple):
    """A response without its body."""

    status: int
    reason: str
    version: tuple[int, int]
    headers: dict[str, str]


def parse_fields(text: str) -> dict[str, str]:
    r"""Return the fields of a head or a trailer, in which every line ends with CRLF.

    RFC 9110 §5.3, RFC 9112 §5

    >>> parse_fields("Host: a:1\r\nACCEPT: text/html \r\naccept: */*\r\n")
    {'host': 'a:1', 'accept': 'text/html, */*'}
    """
    count = text.count("\n")
    if count > MAX_FIELDS:
        raise LimitExceeded(f"there are more than {MAX_FIELDS} header fields", http_status=431)
    lines = FIELD_LINE.findall(text)
    if len(lines) != count:
        number, bad = next(
            (n, line)
            for n, line in enumerate(text.split("\n"), 1)
            if not FIELD_LINE.fullmatch(line + "\n")
        )
        why = next(why for pattern, why in BAD_FIELDS if re.match(pattern, bad))
        raise ProtocolError(f"header line {number} {why}")
    fields: dict[str, str] = {}
    for name, value in lines:
        name, value = name.lower(), value.strip(" \t")
        if name in fields:
            if name in SINGLETONS:
                raise ProtocolError(f"the header {name} is given twice")
            value = f"{fields[name]}, {value}"
        fields[name] = value
    return fields


def parse_authority(text: str) -> tuple[str, int | None]:
    """Return the host, lowercase and without IPv6's brackets, and the port of "host:port".

    >>> parse_authority("[::1]:8000"), parse_authority("Example.com")
    (('::1', 8000), ('example.com', None))
    """
    found = AUTHORITY.fullmatch(text)
    if found is None:
        raise ValueError(f"not a host, nor host:port: {text!r}")
    return found[1].lower().strip("[]"), int(found[2]) if found[2] else None


def parse_target(target: str) -> tuple[str, str]:
    """Return the path, percent-decoded, and the query, as sent.

    Dot segments, control characters, and slashes that are escaped or lean back are errors: whoever
    looked at the path before us, a proxy with rules, say, may have seen another one.

    >>> parse_target("/caf%C3%A9?q=%20"), parse_target("/mcp")
    (('/café', 'q=%20'), ('/mcp', ''))
    """
    path, _, query = target.partition("?")
    if "%" in path:
        from urllib.parse import unquote

        if re.search("%(?![2-9A-Fa-f][0-9A-Fa-f])|%7[Ff]|%2[Ff]", path):
            raise ProtocolError("the path has a bad percent-escape")
        try:
            path = unquote(path, errors="strict")
        except UnicodeDecodeError:
            raise ProtocolError("the path is not UTF-8") from None
    if "\\" in path:
        raise ProtocolError("the path has a backslash in it")
    if "/." in path and not {".", ".."}.isdisjoint(path.split("/")):
        raise ProtocolError("the path has . or .. in it")
    return path, query


def parse_request_head(block: bytes) -> RequestHead:
    r"""Return the head that `block` is, from the request line to the empty line.

    >>> parse_request_head(b"GET http://a/mcp?x HTTP/1.1\r\nHost: b\r\n\r\n")[:4]
    ('GET', '/mcp?x', (1, 1), mappingproxy({'host': 'a'}))
    """
    # RFC 9112 §2.2 -- "ignore at least one empty line (CRLF) received prior to the request-line"
    line, _, rest = block[2 * block.startswith(b"\r\n") :].decode("latin-1").partition("\r\n")
    found = REQUEST_LINE.fullmatch(line)
    if found is None:
        raise ProtocolError("the request line is not: METHOD TARGET HTTP/1.1")
    method, target, version = found.groups()
    if version[0] != "1":
        raise ProtocolError(f"HTTP/{version} is not spoken here", http_status=505)
    if not block.endswith(b"\r\n\r\n"):
        raise ProtocolError("the head does not end in an empty line")
    headers = parse_fields(rest[:-2])
    host = headers.get("host")
    # RFC 9112 §3.2 -- 400 to any request "that lacks a Host header field"
    if host is None and version != "1.0":
        raise ProtocolError("the header host is missing")
    if method == "CONNECT":
        raise ProtocolError("this is not a proxy: CONNECT is not served", http_status=501)
    if target[0] != "/" and (target, method) != ("*", "OPTIONS"):
        found = ABSOLUTE_FORM.fullmatch(target)
        if found is None:
            raise ProtocolError("the target is neither a path nor an http URL")
        # RFC 9112 §3.2.2 -- "MUST ignore the received Host header field"
        _, host, target = found.groups()
        headers["host"], target = host, target if target.startswith("/") else "/" + target
    if host is not None and not AUTHORITY.fullmatch(host):
        raise ProtocolError("the host is not a name or address, with a port or without")
    shared = types.MappingProxyType(headers)  # by all requests that begin alike
    head = RequestHead(method, target, (1, 0) if version == "1.0" else (1, 1), shared)
    path, query = parse_target(target)
    return head._replace(path=path, query=query, size=declared_body(head),
                         keep_alive=is_keep_alive(head))  # fmt: skip


#: The same, for short heads: a client sends the same one again and again.
known_request_head = functools.lru_cache(maxsize=128)(parse_request_head)


def parse_response_head(block: bytes) -> ResponseHead:
    r"""Return the head that `block` is, from the status line to the empty line.

    >>> parse_response_head(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n")
    ResponseHead(status=200, reason='OK', version=(1, 1), headers={'server': 'x'})
    """
    line, _, rest = block.decode("latin-1").partition("\r\n")
    found = STATUS_LINE.fullmatch(line)
    if found is None or not block.endswith(b"\r\n\r\n"):
        raise ProtocolError("the answer is not HTTP/1.1")
    version, status, reason = found.groups("")
    headers = parse_fields(rest[:-2])
    return ResponseHead(int(status), reason, (1, 0) if version == "1.0" else (1, 1), headers)


def declared_body(head: RequestHead | ResponseHead, otherwise: int = 0) -> int:
    """Return the size of a body in bytes, or CHUNKED; `otherwise` if the head says nothing of it.

    RFC 9112 §6.3

    >>> declared_body(RequestHead("POST", "/", (1, 1), {"content-length": "5"}))
    5
    """
    length = head.headers.get("content-length")
    coding = head.headers.get("transfer-encoding")
    if coding is not None:
        if length is not None:
            raise ProtocolError("content-length and transfer-encoding exclude each other")
        if head.version == (1, 0):
            raise ProtocolError("transfer-encoding does not exist in HTTP/1.0")
        codings = [item.strip(" \t") for item in coding.lower().split(",")]
        if codings[-1] != "chunked" or codings.count("chunked") > 1:
            raise ProtocolError("the one and last transfer-encoding must be chunked")
        if len(codings) > 1:
            raise ProtocolError("no transfer-encoding but chunked is known", http_status=501)
        return CHUNKED
    if length is None:
        return otherwise
    if not LENGTH.fullmatch(length):
        raise ProtocolError("content-length is not a number")
    return int(length)


def body_of_response(head: ResponseHead, method: str) -> int:
    """Return the size of the body of this answer to `method`, or CHUNKED or UNTIL_CLOSE.

    >>> body_of_response(ResponseHead(200, "OK", (1, 0), {}), "GET") == UNTIL_CLOSE
    True
    """
    if method == "HEAD" or head.status < 200 or head.status in (204, 304):
        return 0
    if method == "CONNECT" and head.status < 300:
        return 0  # what follows is the tunnel
    return declared_body(head, UNTIL_CLOSE)


def is_keep_alive(head: RequestHead | ResponseHead) -> bool:
    """Return whether the connection is meant to live on after this message. RFC 9112 §9.3

    >>> is_keep_alive(RequestHead("GET", "/", (1, 1), {"connection": "Close, TE"}))
    False
    """
    connection = head.headers.get("connection")
    if connection is None:
        return head.version >= (1, 1)
    options = parse_list(connection.lower())
    return "close" not in options and (head.version >= (1, 1) or "keep-alive" in options)


def wants_continue(head: RequestHead) -> bool:
    """Return whether the client holds its body back for CONTINUE. RFC 9110 §10.1.1

    >>> wants_continue(RequestHead("POST", "/", (1, 1), {"expect": "100-Continue"}))
    True
    """
    return head.version >= (1, 1) and head.headers.get("expect", "").lower() == "100-continue"


def parse_list(text: str) -> list[str]:
    """Return the elements of a comma-separated value. RFC 9110 §5.6.1

    >>> parse_list('a, ,"b, c";d')
    ['a', '"b, c";d']
    """
    pieces = [piece.strip(" \t") for piece in COMMA_PIECE.findall(text)]
    return [piece for piece in pieces if piece]


def parse_params(pieces: Iterable[str]) -> dict[str, str]:
    r"""Return what `name=value` pieces say, names lowercase, quotes undone, the first of two.

    RFC 9110 §5.6.6

    >>> parse_params(['Q=1', ' a = "x\\"y"', "b"])
    {'q': '1', 'a': 'x"y'}
    """
    params: dict[str, str] = {}
    for piece in pieces:
        name, equals, value = (part.strip(" \t") for part in piece.partition("="))
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        if equals:
            params.setdefault(name.lower(), value)
    return params


def parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """Return the type, lowercase, and its parameters. RFC 9110 §8.3.1

    >>> parse_media_type('Application/JSON; charset="utf-8"')
    ('application/json', {'charset': 'utf-8'})
    """
    name, *pieces = SEMICOLON_PIECE.findall(text) or [""]
    return name.strip(" \t").lower(), parse_params(pieces)


@functools.lru_cache(maxsize=64)  # clients send the same one every time
def accepts(accept: str, *media_types: str) -> bool:
    """Return whether an Accept value admits all of some types: the most specific range decides.

    RFC 9110 §12.5.1

    >>> accepts("application/json, text/*;q=0.5", "text/event-stream")
    True
    >>> accepts("*/*, text/html;q=0", "text/html")
    False
    """
    ranges: dict[str, bool] = {}
    for item in parse_list(accept):
        name, params = parse_media_type(item)
        wanted = not re.fullmatch(r"0(\.0*)?", params.get("q", "1"))
        ranges[name] = ranges.get(name, False) or wanted

    def admits(kind: str) -> bool:
        names = (kind, kind.split("/")[0] + "/*", "*/*")
        return next((ranges[name] for name in names if name in ranges), False)

    return all(map(admits, media_types))


###############################################################################
# 32. HTTP/1.1, messages
###############################################################################
# Pure. Uses sections 1 to 3, 25 and 31.
#
# Problem.  Messages come in pieces, and two readers must find the same end of each.
# Rules.    1. A body has exactly one framing. Any doubt about it is an error, and after an error
#              nothing more is read: answer, and close.
#           2. What we write must read back as exactly the fields that were meant.
# Plan.     The two decoders, which only cut; then the encoders; URLs.
# Not here. Sockets, deadlines and `Date`: the section on connections.

MAX_START_LINE_BYTES = 8192  # the request line; RFC 9112 §3 wants 8000 at least
MAX_HEAD_BYTES = 32 * 1024  # start line and fields; nginx's 4 x 8 KiB, twice what Node allows
MAX_KNOWN_HEAD_BYTES = 2048  # a head that is remembered, for the next request that begins alike
MAX_INTERIM = 16  # interim answers before the real one; 100 and 103 come once or twice
MAX_CHUNK_LINE_BYTES = 256  # a chunk's size and its extensions, which nobody uses
MAX_CHUNKS = 16_384  # chunks of one request; 16 MiB in pieces of 1 KiB. More is a waste of CPU
MAX_TRAILER_BYTES = 8192  # the fields after the last chunk; they are read and dropped

CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\r\n")


class HTTPDecoder(Decoder):
    """What the two decoders share: cutting out heads and bodies."""

    def _head(self) -> Generator[None, None, bytes]:
        """Read a head with its empty line; b"" if the input ends before it begins."""
        seen = 0
        while True:
            end = self.buffer.find(b"\r\n\r\n", max(0, seen - 3)) + 4
            size = end if end >= 4 else len(self.buffer)
            begin = 2 * self.buffer.startswith(b"\r\n")  # the empty line that may come first
            if (self.buffer.find(b"\n", begin, size) + 1 or size) - begin > MAX_START_LINE_BYTES:
                raise LimitExceeded("the first line is too long", http_status=414)
            if size > MAX_HEAD_BYTES:
                raise LimitExceeded("the header fields are too long", http_status=431)
            # Found early, it is answered; a head in such lines would never end, and time out.
            feeds = self.buffer.count(b"\n", seen, size)
            if feeds != self.buffer.count(b"\r\n", max(0, seen - 1), size):
                raise ProtocolError("a line of the head ends in a bare line feed")
            if end >= 4:
                return self._take(end)
            if self.ended:
                if not self.buffer or self.buffer == b"\r\n":
                    return b""
                raise ProtocolError("the connection ended inside a head")
            seen = size
            yield

    def _data(self, size: int, put: Callable[[bytes], object]) -> Generator[None, None, None]:
        """Pass `size` bytes to `put` as they come."""
        while size:
            piece = yield from self._some(size)
            if not piece:
                raise ProtocolError("the connection ended inside a body")
            put(piece)
            size -= len(piece)

    def _chunks(
        self, put: Callable[[bytes], object], max_bytes: int, max_chunks: int
    ) -> Generator[None, None, None]:
        """Pass the data of chunks to `put` as they come. RFC 9112 §7.1"""
        while True:
            line = yield from self._until(b"\n", MAX_CHUNK_LINE_BYTES, "the line before a chunk")
            found = CHUNK_LINE.fullmatch(line)
            if found is None:
                raise ProtocolError("a chunk does not begin with its size")
            size = int(found[1], 16)
            if not size:
                break
            max_bytes, max_chunks = max_bytes - size, max_chunks - 1
            if max_bytes < 0 or max_chunks < 0:
                raise LimitExceeded("the body is too big, or in too many chunks", http_status=413)
            yield from self._data(size, put)
            if (yield from self._exactly(2, "a body")) != b"\r\n":
                raise ProtocolError("a chunk does not end where its size says")
        left = MAX_TRAILER_BYTES
        while True:
            line = yield from self._until(b"\n", left, "the rest of the trailer", 431)
            if line == b"\r\n":
                return
            # Fields that come this late steer nothing: they are read and dropped.
            parse_fields(line.decode("latin-1"))
            left -= len(line)


class RequestDecoder(HTTPDecoder):
    r"""Turn what a client sends into (head, body) pairs, one at a time.

    After a pair it stops until resume(), and only keeps what is fed: so pipelining costs the memory
    of the bytes, and an error is raised by the call that meets it. `head` is set while a body is
    missing: the time for CONTINUE, or for a refusal.

    >>> decoder = RequestDecoder()
    >>> [(head, body)] = decoder.feed(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /mcp HTTP/1.1\r\n")
    >>> head.target, body, decoder.resume()
    ('/', b'', [])
    >>> decoder.feed(b"Host: a\r\nContent-Length: 2\r\n\r\n{"), decoder.head.method
    ([], 'POST')
    >>> decoder.feed(b"}")[0][1]
    b'{}'
    """

    def __init__(self, max_body: int = MAX_MESSAGE_BYTES) -> None:
        self.max_body = max_body
        self.head: RequestHead | None = None
        self.paused = False
        super().__init__()

    def feed(self, data: bytes) -> list[Any]:
        """Return the request that `data` completes, if any."""
        # Most reads are one whole request, which needs no buffer.
        end = data.find(b"\r\n\r\n") + 4
        begun = self.buffer or self.paused or self.head or self.error
        if 4 <= end <= MAX_KNOWN_HEAD_BYTES and not begun:
            try:
                head = known_request_head(data[:end])
                if head.size == len(data) - end <= self.max_body:
                    self.paused = True
                    return [(head, data[end:])]
            except ProtocolError:  # the grammar will meet it again, and keep it
                pass
        return super().feed(data)

    def resume(self) -> list[Any]:
        """Go on with the next request: return it if it is there already."""
        self.paused = False
        return self._run() if self.buffer else []

    def _run(self) -> list[Any]:
        return [] if self.paused else super()._run()

    def _grammar(self) -> Generator[None, None, None]:
        while True:
            block = yield from self._head()
            if not block:
                return
            head = parse_request_head(block)
            if head.size > self.max_body:
                what = f"the body is longer than {self.max_body} bytes"
                raise LimitExceeded(what, http_status=413)
            self.head = head
            if head.size == CHUNKED:
                whole = bytearray()
                yield from self._chunks(whole.extend, self.max_body, MAX_CHUNKS)
                body = bytes(whole)
            else:
                body = yield from self._exactly(head.size, "a body")
            self.items.append((head, body))
            self.head, self.paused = None, True
            yield


class ResponseDecoder(HTTPDecoder):
    r"""Turn the answer to one request into its head, an attribute, and the pieces of its body.

    Interim answers are passed over. The body is not bounded here, since a stream of events has no
    end: whoever collects the pieces counts them. `done` says that all of it has come; what follows
    stays in `buffer` (the first bytes of a tunnel, after CONNECT).

    >>> decoder = ResponseDecoder("POST")
    >>> decoder.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
    [b'hel']
    >>> decoder.head.status, decoder.feed(b"lo\r\n0\r\n\r\n"), decoder.done, decoder.reusable
    (200, [b'lo'], True, True)
    """

    def __init__(self, method: str) -> None:
        self.method = method
        self.head: ResponseHead | None = None
        self.done = False
        super().__init__()

    @property
    def reusable(self) -> bool:
        """Whether the connection can take another request: nothing is missing, nothing is left."""
        if self.head is None or not self.done or self.ended or self.buffer:
            return False
        return is_keep_alive(self.head)

    def _grammar(self) -> Generator[None, None, None]:
        head = ResponseHead(100, "", (1, 1), {})
        interim = -1
        while head.status < 200:
            interim += 1
            if interim > MAX_INTERIM:
                raise LimitExceeded(f"more than {MAX_INTERIM} interim answers")
            block = yield from self._head()
            if not block:
                raise ProtocolError("the connection ended before the answer")
            head = parse_response_head(block)
            if head.status == 101:
                raise ProtocolError("the server changed to another protocol, unasked")
        size = body_of_response(head, self.method)
        self.head = head
        if size == CHUNKED:
            yield from self._chunks(self._emit, sys.maxsize, sys.maxsize)
        elif size == UNTIL_CLOSE:
            while piece := (yield from self._some(sys.maxsize)):
                self._emit(piece)
        else:
            yield from self._data(size, self._emit)
        self.done = True

    def _emit(self, piece: bytes) -> None:
        self.items.append(piece)  # feed() puts a new list there each time


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


@functools.lru_cache(maxsize=256)  # most answers have the same few headers
def header_lines(fields: tuple[tuple[str, str], ...]) -> tuple[str, bool]:
    r"""Return header lines, and whether they frame the body; ValueError for what cannot be sent.

    >>> header_lines((("Accept", "*/*"), ("Content-Length", "0")))
    ('Accept: */*\r\nContent-Length: 0\r\n', True)
    """
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
    found = [name for name, _ in FIELD_LINE.findall(lines)]
    if found != [name for name, _ in fields] or lines.count("\n") != len(found):
        raise ValueError("a header has a name or a value that cannot be sent: a line break?")
    if any(value != value.strip(" \t") for _, value in fields):
        raise ValueError("a header's value begins or ends with white space, which gets lost")
    names = {name.lower() for name in found}
    if len(names) < len(found):
        raise ValueError("a header is given twice, in upper and in lower case")
    return lines, "content-length" in names or "transfer-encoding" in names


def encode_head(start: str, headers: Mapping[str, str], size: int | None) -> bytes:
    r"""Return a head with `size` as Content-Length; ValueError if it would read back otherwise.

    >>> encode_head("HTTP/1.1 200 OK", {"Vary": "Origin"}, 2)
    b'HTTP/1.1 200 OK\r\nVary: Origin\r\nContent-Length: 2\r\n\r\n'
    """
    lines, framed = header_lines(tuple(headers.items()))
    if size is not None:
        if framed:
            raise ValueError("leave Content-Length and Transfer-Encoding to the encoder")
        lines += f"Content-Length: {size}\r\n"
    return f"{start}\r\n{lines}\r\n".encode("latin-1")


def encode_request(
    method: str, target: str, headers: Mapping[str, str], body: bytes = b""
) -> bytes:
    r"""Return a whole request; ValueError if a part of it cannot be sent.

    >>> encode_request("POST", "/mcp", {"Host": "a"}, b"{}")
    b'POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}'
    """
    start = f"{method} {target} HTTP/1.1"
    if not REQUEST_LINE.fullmatch(start):
        raise ValueError(f"not a method and a target that can be sent: {start!r}")
    # RFC 9110 §8.6 -- a method that anticipates a body says 0 for none
    sized = bool(body) or method in ("POST", "PUT", "PATCH")
    return encode_head(start, headers, len(body) if sized else None) + body


def encode_response(status: int, headers: Mapping[str, str], body: bytes | None = b"") -> bytes:
    r"""Return a whole response; with None for a body the head alone, framed as its headers say.

    >>> encode_response(200, {"Content-Type": "application/json"}, b"{}")
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
    """
    bodiless = status < 200 or status in (204, 304)
    if bodiless and body:
        raise ValueError(f"a response with status {status} has no body")
    size = None if bodiless or body is None else len(body)
    start = f"HTTP/1.1 {status:03d} {REASONS.get(status, '')}"
    return encode_head(start, headers, size) + (body or b"")


def encode_chunk(data: bytes) -> bytes:
    r"""Return one chunk of a body; nothing for no data, which would end the body.

    >>> encode_chunk(b"data: 1\n\n"), encode_chunk(b"")
    (b'9\r\ndata: 1\n\n\r\n', b'')
    """
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


class URL(NamedTuple):
    """Where a request goes."""

    scheme: str
    #: for Host, and for comparing origins: the port only if it is not the scheme's own
    authority: str
    host: str
    port: int
    #: the path and the query, percent-encoded
    target: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(url: str) -> URL:
    """Return the parts of an http or https URL; ValueError says what is wrong with it.

    >>> parse_url("HTTP://[::1]?x")
    URL(scheme='http', authority='[::1]', host='::1', port=80, target='/?x')
    """
    from urllib.parse import quote

    found = ABSOLUTE_FORM.fullmatch(url)
    if found is None or re.search(r"[\x00-\x20\x7f]", url):
        raise ValueError("a URL is http(s)://host[:port]/path, without blanks and #fragment")
    if "@" in found[2]:
        raise ValueError("a URL has no user and password here: send them with headers=")
    scheme, (host, given) = found[1].lower(), parse_authority(found[2])
    default = 443 if scheme == "https" else 80
    port = default if given is None else given
    if not 0 < port < 65536:
        raise ValueError(f"there is no port {port}")
    authority = (f"[{host}]" if ":" in host else host) + ("" if port == default else f":{port}")
    target = quote(found[3], safe="%/?:@!$&'()*+,;=~[]")
    return URL(scheme, authority, host, port, target if target[:1] == "/" else "/" + target)

###############################################################################
# 33. Server-sent events
###############################################################################
# Pure. Uses sections 1 to 3 and 25.
#
# Problem.  A response that never ends carries messages; after a cut the client must be able to say
#           which one it saw last.
# Rules.    1. The grammar is WHATWG's, HTML §9.2.6, where every input is valid: unknown fields and
#              comments are passed over, bad UTF-8 is replaced, an event cut short is dropped.
#           2. An event's id counts once its empty line has come, with data or without.
#           3. What we write is one event, whatever is in it.
# Plan.     Event and SSEDecoder; encode_event() and encode_comment().
# Not here. Event numbering and replay: section 38.

MAX_EVENT_BYTES = MAX_MESSAGE_BYTES + 4096  # one event: a message, and its id and name
MAX_RETRY_MS = 3_600_000  # an hour; the longest that a server may tell a client to stay away


class Event(NamedTuple):
    """One event: its data, its type, and the last id seen by then (its own, or an older one's)."""

    data: str
    event: str = "message"
    id: str = ""


class SSEDecoder(Decoder):
    r"""Turn a stream of bytes into Events.

    `last_id` is what a reconnecting client sends as Last-Event-ID; `retry_ms` how long the server
    asks it to wait before, or None. Both also change without an event. HTML §9.2.5, §9.2.6

    spec 2025-11-25: basic/transports#resumability-and-redelivery

    >>> decoder = SSEDecoder()
    >>> decoder.feed(b": hello\nid: 7\ndata: {\rdata: }\r\n\r\nretry: 500\n")
    [Event(data='{\n}', event='message', id='7')]
    >>> decoder.last_id, decoder.retry_ms, decoder.feed(b"id: 8\n\n"), decoder.last_id
    ('7', 500, [], '8')
    """

    def __init__(self, last_id: str = "", limit: int = MAX_EVENT_BYTES) -> None:
        self.last_id = last_id
        self.retry_ms: int | None = None
        self.limit = limit
        self._after_cr = False
        super().__init__()

    def feed(self, data: bytes) -> list[Any]:
        """Return the events that `data` completes."""
        # A CR ends its line at once, since an event must not wait for what may never come; a LF
        # that follows it, perhaps in the next read, belongs to it.
        rest = data[1:] if self._after_cr and data.startswith(b"\n") else data
        self._after_cr = data.endswith(b"\r") if data else self._after_cr
        return super().feed(rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))

    def eof(self) -> list[Any]:
        """Drop what is incomplete, as WHATWG says; there are never items."""
        self.grammar = None
        return super().eof()

    def _grammar(self) -> Generator[None, None, None]:
        first, next_id = True, self.last_id
        lines: list[str] = []
        event, size = "", 0
        while True:
            line = yield from self._until(b"\n", self.limit, "a line of an event")
            if first:
                line, first = line.removeprefix(b"\xef\xbb\xbf"), False
            name, _, value = line[:-1].decode("utf-8", "replace").partition(":")
            value = value[value.startswith(" ") :]
            if line == b"\n":
                self.last_id = next_id
                # One empty `data` line is enough for an event, whose data is "" then.
                if lines:
                    self.items.append(Event("\n".join(lines), event or "message", next_id))
                lines, event, size = [], "", 0
            elif name == "data":
                lines.append(value)
                size += len(line)
                if size > self.limit:
                    raise LimitExceeded(f"an event is longer than {self.limit} bytes")
            elif name == "event":
                event = value
            elif name == "id" and "\0" not in value:
                next_id = value
            elif name == "retry" and re.fullmatch("[0-9]+", value):
                self.retry_ms = min(int(value.lstrip("0")[:9] or 0), MAX_RETRY_MS)


def encode_event(
    data: str | bytes, event: str | None = None, id: str | None = None, retry: int | None = None
) -> bytes:
    r"""Return one event, with one `data` line for each line of the data. `retry` is in ms.

    ValueError for a name or an id that would end its line, or be ignored.

    >>> encode_event(b'{"id":1}', event="message", id="s1-4")
    b'event: message\nid: s1-4\ndata: {"id":1}\n\n'
    >>> encode_event("", id="s1-0", retry=500)
    b'id: s1-0\nretry: 500\ndata: \n\n'
    """
    head = ""
    for name, value in (("event", event), ("id", id)):
        if value is not None:
            if re.search(r"[\r\n\0]", value):
                raise ValueError(f"line breaks and NUL cannot be sent in an {name}: {value!r}")
            head += f"{name}: {value}\n"
    if retry is not None:
        head += f"retry: {retry:d}\n"
    body = data.encode() if isinstance(data, str) else data
    if b"\n" in body or b"\r" in body:
        body = re.sub(rb"\r\n|\r|\n", b"\ndata: ", body)
    return b"%bdata: %b\n\n" % (head.encode(), body)


def encode_comment(text: str = "") -> bytes:
    r"""Return a comment, which keeps a connection alive and means nothing.

    >>> encode_comment()
    b':\n\n'
    """
    if re.search(r"[\r\n]", text):
        raise ValueError(f"a comment is one line: {text!r}")
    return f":{text and ' ' + text}\n\n".encode()

###############################################################################
# 34. HTTP rules
###############################################################################
# Pure. Uses sections 1, 2, 4, 13 and 31.
#
# Problem.  Anybody who can open a socket can send us a request: a browser on behalf of a web site,
#           a client of another revision, a thief of session ids.
# Rules.    1. One gate stands before every route: Host, Origin, then credentials. A refusal names
#              the setting that would allow it.
#           2. A request is refused by the first rule that it breaks, before its body is looked at
#              where that is possible.
#           3. Ids that somebody could guess, or ask for in another's name, are worth nothing:
#              sessions belong to a principal.
#           4. A proxy may say for whom it speaks. It is believed if the author trusts it.
# Plan.     Gate, for Host and Origin; Proxies; what a POST and a GET must say; ids of events and
#           sessions.
# Not here. Sockets, sessions and streams: sections 36 and 38.

LOOPBACK = re.compile(r"localhost|127(\.[0-9]{1,3}){3}|::1")
SESSION_HEADER, VERSION_HEADER = "mcp-session-id", "mcp-protocol-version"
JSON_TYPE, EVENT_TYPE = "application/json", "text/event-stream"


def is_loopback(host: str) -> bool:
    """Return whether a host name or address can only mean this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("localhost.evil.org")
    (True, False, False)
    """
    return LOOPBACK.fullmatch(host.lower()) is not None


class Gate:
    """Which Host and Origin are let in.

    `local` says that only this machine can reach us; then loopback names are right, with any port.

    >>> Gate(True).check({"host": "localhost:8000", "origin": "http://localhost:3000"})
    >>> Gate(True).check({"host": "evil.example.com"})
    Traceback (most recent call last):
        ...
    mcp_lite.ProtocolError: the host 'evil.example.com' is not served here: see allowed_hosts
    """

    def __init__(
        self, local: bool, hosts: str | Iterable[str] | None = None,
        origins: str | Iterable[str] = (),
    ) -> None:  # fmt: skip
        hosts = (hosts,) if isinstance(hosts, str) else hosts
        origins = (origins,) if isinstance(origins, str) else origins
        self.local = local
        self.hosts = None if hosts is None else {host.lower() for host in hosts}
        self.origins = {origin.lower().rstrip("/") for origin in origins}
        self._seen: set[tuple[str | None, str | None]] = set()

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise ProtocolError with status 403 for a Host or an Origin that is not let in."""
        pair = (headers.get("host"), headers.get("origin"))
        if pair in self._seen:
            return
        host, origin = pair
        if host is not None and not self._host(host):
            problem = f"the host {host[:100]!r} is not served here: see allowed_hosts"
            raise ProtocolError(problem, http_status=403)
        # spec: basic/transports/streamable-http#security--endpoint -- "HTTP 403 Forbidden"
        if origin is not None and not self.allows(origin):
            problem = f"the origin {origin[:100]!r} is not allowed here: see allowed_origins"
            raise ProtocolError(problem, http_status=403)
        if len(self._seen) < MAX_FIELDS:
            self._seen.add(pair)

    def _host(self, text: str) -> bool:
        host = text.lower()
        try:
            name = parse_authority(host)[0]
        except ValueError:  # which our own decoder does not let through, but others may
            return False
        if self.local and is_loopback(name):
            return True
        if self.hosts is None:
            return not self.local  # a public name that nobody told us
        return "*" in self.hosts or host in self.hosts or name in self.hosts

    def allows(self, origin: str) -> bool:
        """Return whether pages of this origin may talk to us."""
        origin = origin.lower()
        if origin in self.origins or "*" in self.origins:
            return True
        found = re.fullmatch(r"https?://([^/?#@\s]+)", origin)
        if found is None:
            return False
        try:
            name = parse_authority(found[1])[0]
        except ValueError:
            return False
        if self.local and is_loopback(name):
            return True
        return self.hosts is not None and not self.hosts.isdisjoint((found[1], name))


class Origin(NamedTuple):
    """Where a request came from, as the first proxy that we trust has seen it."""

    address: str
    scheme: str
    host: str = ""  # that the client asked for, where a proxy says so


class Proxies:
    """The proxies whose word about their clients is taken: addresses, networks, or "unix".

    "unix" stands for whoever connects to our Unix socket. ValueError for anything else.

    >>> proxies = Proxies(["127.0.0.1", "10.0.0.0/8"])
    >>> proxies.origin("127.0.0.1", "http", {
    ...     "x-forwarded-for": "192.0.2.1, 198.51.100.7, 10.2.3.4", "x-forwarded-proto": "https"})
    Origin(address='198.51.100.7', scheme='https', host='')
    >>> proxies.origin("192.0.2.9", "http", {"x-forwarded-for": "127.0.0.1"}).address
    '192.0.2.9'
    """

    def __init__(self, trusted: str | Iterable[str]) -> None:
        from ipaddress import ip_network

        names = {trusted} if isinstance(trusted, str) else {*trusted}
        self.unix = "unix" in names
        try:
            self.networks = [ip_network(name) for name in names - {"unix"}]
        except ValueError as exc:
            problem = f'trusted_proxies: {exc}; give addresses, networks or "unix"'
            raise ValueError(problem) from None
        self._known: dict[str, bool] = {}

    def trusts(self, address: str) -> bool:
        """Return whether an address is that of a trusted proxy."""
        if address in ("", "local"):
            return self.unix
        known = self._known.get(address)
        if known is None:
            parsed = parse_address(address)
            known = parsed is not None and any(parsed in network for network in self.networks)
            if len(self._known) < MAX_FIELDS:
                self._known[address] = known
        return known

    def origin(self, address: str, scheme: str, headers: Mapping[str, str]) -> Origin:
        """Return where a request really came from, if the peer at `address` is trusted.

        Proxies add to the right of what they were sent, so that all is read from there: the first
        address that is no trusted proxy is the client. What stands to the left of it, anybody may
        have written. A proxy writes `X-Forwarded-...` or `Forwarded`, and may pass the other on
        as the client sent it: where they disagree, neither is believed.
        """
        if not self.trusts(address):
            return Origin(address, scheme)
        hops = forwarded_hops(headers.get("forwarded", ""))
        last = hops[-1] if hops else {}
        # RFC 7239 §4, §7.4
        addresses = [each.get("for", "") for each in hops]
        old = [name.strip() for name in headers.get("x-forwarded-for", "").split(",")]
        said = {self._client(address, row) for row in (addresses, old) if row not in ([], [""])}
        schemes = {last.get("proto"), _last(headers, "x-forwarded-proto")} & {"http", "https"}
        hosts = {last.get("host"), _last(headers, "x-forwarded-host")} - {None, ""}
        return Origin(
            said.pop() if len(said) == 1 else address,
            schemes.pop() if len(schemes) == 1 else scheme,  # type: ignore[arg-type]
            ", ".join(sorted(filter(None, hosts))),  # of two, the gate lets neither in
        )

    def _client(self, address: str, hops: list[str]) -> str:
        """Return the first address from the right that is no trusted proxy."""
        for hop in reversed(hops):
            parsed = parse_address(hop)
            if parsed is None:  # "unknown", or a name that a proxy made up: RFC 7239 §6
                break
            address = str(parsed)
            if not self.trusts(address):
                break
        return address


def _last(headers: Mapping[str, str], name: str) -> str | None:
    return headers[name].rpartition(",")[2].strip().lower() if name in headers else None


def parse_address(text: str) -> Any:
    """Return the IP address in a text, which may have a port; None if there is none.

    >>> parse_address("192.0.2.1:4711"), parse_address("[2001:db8::1]:80"), parse_address("_x")
    (IPv4Address('192.0.2.1'), IPv6Address('2001:db8::1'), None)
    """
    from ipaddress import ip_address

    found = re.fullmatch(r"\[([0-9A-Fa-f:.]+)\](?::\d+)?|([0-9.]+):\d+", text)
    try:
        parsed = ip_address(found[1] or found[2] if found else text)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


def forwarded_hops(text: str) -> list[dict[str, str]]:
    """Return what each proxy said in a Forwarded header. RFC 7239 §4

    >>> forwarded_hops('for="[2001:db8::1]:80";proto=https, for=192.0.2.1; Host=a.example')
    [{'for': '[2001:db8::1]:80', 'proto': 'https'}, {'for': '192.0.2.1', 'host': 'a.example'}]
    """
    hops = [parse_params(hop.split(";")) for hop in text.split(",")] if text else []
    return [{key.lower(): value.lower() for key, value in hop.items()} for hop in hops]


def cors_headers(origin: str) -> dict[str, str]:
    """Return what lets a page of an origin that the gate let in read our answer.

    >>> cors_headers("http://localhost:3000")["access-control-allow-origin"]
    'http://localhost:3000'
    """
    return {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate",
        "vary": "Origin",
    }


def preflight_headers(methods: str, wanted: str | None) -> dict[str, str]:
    """Return the answer to a browser that asks what a page may send: any header that it wants.

    >>> preflight_headers("POST", "mcp-param-x")["access-control-allow-headers"]
    'mcp-param-x'
    """
    return {
        "access-control-allow-methods": methods,
        "access-control-allow-headers": wanted or "Content-Type, Authorization",
        "access-control-max-age": "600",
    }


def check_json(headers: Mapping[str, str]) -> None:
    """Raise ProtocolError 415 for a body that is not said to be JSON.

    A page may send "simple" types to anybody without asking: this keeps them out.

    >>> check_json({"content-type": "text/plain"})
    Traceback (most recent call last):
        ...
    mcp_lite.ProtocolError: content-type must be application/json
    """
    kind = headers.get("content-type", "")
    if kind != JSON_TYPE and parse_media_type(kind)[0] != JSON_TYPE:
        raise ProtocolError(f"content-type must be {JSON_TYPE}", http_status=415)


def check_accept(headers: Mapping[str, str], *types: str) -> None:
    """Raise ProtocolError 406 for a request that cannot take all of these types as the answer.

    >>> check_accept({"accept": "text/html"}, EVENT_TYPE)
    Traceback (most recent call last):
        ...
    mcp_lite.ProtocolError: accept must list text/event-stream
    """
    if not accepts(headers.get("accept", "*/*"), *types):
        raise ProtocolError(f"accept must list {' and '.join(types)}", http_status=406)


def header_revision(headers: Mapping[str, str]) -> Revision | None:
    """Return the revision that a request names, None if it names none; ProtocolError if unknown.

    spec 2025-11-25: basic/transports#protocol-version-header -- "MUST respond with 400"

    >>> header_revision({}), header_revision({VERSION_HEADER: LEGACY[0]}).modern
    (None, False)
    """
    name = headers.get(VERSION_HEADER)
    if name is None:
        return None
    if name not in REVISIONS:
        raise ProtocolError(f"revision {name[:40]!r} is not one of {', '.join(REVISIONS)}")
    return REVISIONS[name]


def bearer_of(headers: Mapping[str, str]) -> str | None:
    """Return the token of an Authorization header. RFC 6750 §2.1

    >>> bearer_of({"authorization": "bearer abc"}), bearer_of({"authorization": "Basic x"})
    ('abc', None)
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def owner_of(principal: Any, key: Callable[[Any], Any] | None = None) -> str:
    """Return a stable key of a principal: all that belongs to the principal is bound to it.

    That is key(principal); else its issuer and subject (`iss` and `sub` in a dict), so that a
    token that was refreshed changes nothing; else its whole value as JSON. TypeError for an
    object that has none of them.

    >>> owner_of({"iss": "https://a", "sub": "7", "iat": 1}) == owner_of(
    ...     {"iss": "https://a", "sub": "7", "iat": 2})
    True
    >>> owner_of("alice"), owner_of(object())
    Traceback (most recent call last):
        ...
    TypeError: a principal of type object has no stable key: give it issuer and subject, or key=
    """
    kind, value = type(principal).__name__, principal
    if key is not None:
        kind, value = "key", key(principal)
    elif isinstance(principal, Mapping):
        names = ("iss", "sub") if "iss" in principal else ("issuer", "subject")
        if all(principal.get(name) is not None for name in names):
            kind, value = "subject", [principal[name] for name in names]
    elif None not in (pair := [getattr(principal, x, None) for x in ("issuer", "subject")]):
        kind, value = "subject", pair
    try:
        text = json.dumps(to_json(value), sort_keys=True)
    except (TypeError, ValueError):
        problem = f"a principal of type {type(principal).__name__} has no stable key"
        raise TypeError(f"{problem}: give it issuer and subject, or key=") from None
    from hashlib import sha256

    return f"{kind} {text}" if len(text) <= 80 else f"{kind} {sha256(text.encode()).hexdigest()}"


def parse_event_id(text: str) -> tuple[str, int]:
    """Return stream and number of the event whose id we gave; ProtocolError if we did not.

    >>> parse_event_id("0f1e2d3c4b5a6978-17")
    ('0f1e2d3c4b5a6978', 17)
    """
    found = re.fullmatch(r"([0-9a-f]{16})-([0-9]{1,15})", text)
    if found is None:
        raise ProtocolError("last-event-id is not an id that this server gave")
    return found[1], int(found[2])


###############################################################################
# 35. Mirrored headers
###############################################################################
# Pure. Uses sections 1, 2, 4, 6, 19, 31 and 34.
#
# Problem.  Proxies and balancers read headers, not bodies. So a modern request repeats parts of its
#           body in headers, and a server must not be fooled by headers that say something else.
# Rules.    1. Header and body must agree. The order of the checks decides which fault is told.
#           2. A tool may name arguments to repeat; a schema that does so wrongly is refused.
# Plan.     Values in headers; the checks of a request; mirrored arguments of tools.
# Not here. Who checks: the endpoint. Who sends: the client's end.


#: Statuses that belong to errors of the modern era; all others are 200.
MODERN_STATUS = {
    METHOD_NOT_FOUND: 404, PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400, MISSING_CAPABILITY: 400, UNSUPPORTED_VERSION: 400,
}  # fmt: skip


def encode_header_value(text: str) -> str:
    """Return a value as a header can carry it: as it is, or in Base64 between markers.

    spec: basic/transports/streamable-http#value-encoding

    >>> encode_header_value("us west 1"), encode_header_value(" padded ")
    ('us west 1', '=?base64?IHBhZGRlZCA=?=')
    """
    plain = re.fullmatch(r"[\x20-\x7e]*", text) and text == text.strip(" ")
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


@functools.lru_cache(maxsize=256)  # a few names, again and again
def decode_header_value(text: str) -> str:
    """Return what encode_header_value() was given; RPCError -32020 if it cannot be undone.

    >>> decode_header_value("=?base64?SGVsbG8=?="), decode_header_value("=?base64?SGVsbG8=")
    ('Hello', '=?base64?SGVsbG8=')
    """
    if not re.fullmatch(r"[\t\x20-\x7e]*", text):
        raise RPCError(HEADER_MISMATCH, "Header mismatch: a value has characters beyond ASCII")
    if not (text.startswith("=?base64?") and text.endswith("?=") and len(text) >= 11):
        return text
    try:
        return base64.b64decode(text[9:-2], validate=True).decode()
    except ValueError:
        raise RPCError(HEADER_MISMATCH, "Header mismatch: a value is not valid Base64") from None


def mirrored_name(method: str, params: Msg) -> str | None:
    """Return the parameter that `mcp-name` repeats; None if the method has none.

    >>> mirrored_name("resources/read", {"uri": "x://a"}), mirrored_name("tools/list", {})
    ('x://a', None)
    """
    row = METHODS.get(method)
    name = params.get(row.mirrors) if row is not None and row.mirrors else None
    return name if isinstance(name, str) else None


def check_modern_post(msg: Msg, headers: Mapping[str, str]) -> Facts:
    """Check a modern request and the headers that repeat it, step by step; return its facts.

    The order decides which of several faults is told: metadata (-32602), header and metadata agree
    (-32020), the revision is served (-32022), the other headers (-32020).

    spec: basic/transports/streamable-http#server-validation

    >>> meta = {PROTOCOL_VERSION: SUPPORTED[0], CLIENT_CAPABILITIES: {}}
    >>> msg = {"method": "tools/list", "params": {"_meta": meta}}
    >>> check_modern_post(msg, {VERSION_HEADER: SUPPORTED[0]})
    Traceback (most recent call last):
        ...
    mcp_lite.RPCError: Header mismatch: mcp-method is missing (-32020)
    """
    facts = read_metadata(msg)
    check_mirror(headers, VERSION_HEADER, facts.rev.name)
    check_version(facts.rev.name)
    check_mirror(headers, "mcp-method", msg["method"])
    name = mirrored_name(msg["method"], msg["params"])
    if name is not None:
        check_mirror(headers, "mcp-name", name)
    return facts


def check_mirror(headers: Mapping[str, str], name: str, value: str) -> None:
    """Raise RPCError -32020 unless a header says what the body says.

    >>> check_mirror({"mcp-method": "TOOLS/LIST"}, "mcp-method", "tools/list")
    Traceback (most recent call last):
        ...
    mcp_lite.RPCError: Header mismatch: mcp-method does not say what the body says (-32020)
    """
    given = headers.get(name)
    if given is None:
        raise RPCError(HEADER_MISMATCH, f"Header mismatch: {name} is missing")
    if name == "mcp-name":
        given = decode_header_value(given)
    if given != value:
        raise RPCError(HEADER_MISMATCH, f"Header mismatch: {name} does not say what the body says")


class Mirror(NamedTuple):
    """A tool argument that is repeated in a header."""

    header: str  # "mcp-param-region"
    path: tuple[str, ...]  # of `properties` keys
    kind: str  # string, integer or boolean


def mirrors_of(schema: JSON) -> list[Mirror]:
    """Return the arguments that an inputSchema mirrors; SchemaError if an annotation is invalid.

    spec: basic/transports/streamable-http#schema-extension

    >>> mirrors_of({"properties": {"a": {"type": "string", "x-mcp-header": "Region"}}})
    [Mirror(header='mcp-param-region', path=('a',), kind='string')]
    """
    found: list[Mirror] = []
    _find_mirrors(schema, (), True, found)
    names = [mirror.header for mirror in found]
    if len(set(names)) < len(names):
        raise SchemaError("", "two arguments are mirrored in the same header")
    return found


#: Keywords whose values are schemas by names of the author's: such a name is no keyword.
SCHEMAS_BY_NAME = ("$defs", "definitions", "patternProperties", "dependentSchemas")


def _find_mirrors(node: JSON, path: tuple[str, ...], reachable: bool, found: list[Mirror]) -> None:
    if isinstance(node, list):
        for item in node:
            _find_mirrors(item, path, False, found)
    if not isinstance(node, dict):
        return
    if "x-mcp-header" in node:
        found.append(_mirror(node, path, reachable))
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):
            for name, field in value.items():
                _find_mirrors(field, (*path, name), reachable, found)
        elif key in SCHEMAS_BY_NAME and isinstance(value, dict):
            for field in value.values():
                _find_mirrors(field, path, False, found)
        elif key not in ("const", "enum", "default", "examples"):
            _find_mirrors(value, path, False, found)


def _mirror(node: Msg, path: tuple[str, ...], reachable: bool) -> Mirror:
    name, kind, where = node["x-mcp-header"], node.get("type"), ".".join(path)
    if not reachable or not path:
        raise SchemaError(where, "x-mcp-header stands where no plain path of properties leads")
    if not isinstance(name, str) or not re.fullmatch(TOKEN, name):
        raise SchemaError(where, "x-mcp-header is no header name")
    if kind not in ("string", "integer", "boolean"):
        raise SchemaError(where, "x-mcp-header needs type string, integer or boolean")
    return Mirror("mcp-param-" + name.lower(), path, kind)


def _note_mirrors(tool: Any) -> None:
    """Note which arguments of a tool headers repeat."""
    tool.mirrors = mirrors_of(tool.schema)


TOOL_CHECKS.append(_note_mirrors)


def mirrored_value(mirror: Mirror, arguments: JSON) -> str | None:
    """Return what the header must say for these arguments; None for no header.

    >>> mirrored_value(Mirror("mcp-param-n", ("a", "n"), "integer"), {"a": {"n": 42}})
    '42'
    """
    value = arguments
    for key in mirror.path:
        value = value.get(key) if isinstance(value, dict) else None
    if value is None or isinstance(value, (dict, list)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def check_mirrors(
    mirrors: Iterable[Mirror], headers: Mapping[str, str], arguments: JSON
) -> None:
    """Raise RPCError -32020 unless the Mcp-Param headers say what the arguments say.

    spec: basic/transports/streamable-http#server-behavior-for-custom-headers

    >>> mirror = Mirror("mcp-param-n", ("n",), "integer")
    >>> check_mirrors([mirror], {"mcp-param-n": "42.0"}, {"n": 42})
    """
    for mirror in mirrors:
        value, given = mirrored_value(mirror, arguments), headers.get(mirror.header)
        if given is not None:
            given = decode_header_value(given)
        if mirror.kind == "integer" and given is not None and value is not None:
            # "42.0" and "42" are the same number
            number = re.fullmatch(r"(-?[0-9]{1,19})(\.0*)?", given)
            given = str(int(number[1])) if number else given
        if given != value:
            problem = f"{mirror.header} does not say what the arguments say"
            raise RPCError(HEADER_MISMATCH, f"Header mismatch: {problem}")


def mirror_headers(msg: Msg, mirrors: Mapping[str, list[Mirror]]) -> dict[str, str]:
    """Return the headers that repeat a modern request. spec:
    basic/transports/streamable-http#client-behavior

    >>> mirror_headers({"method": "prompts/get", "params": {"name": "été"}}, {})
    {'mcp-method': 'prompts/get', 'mcp-name': '=?base64?w6l0w6k=?='}
    """
    method, params = msg["method"], msg.get("params", {})
    headers = {"mcp-method": method}
    name = mirrored_name(method, params)
    if name is not None:
        headers["mcp-name"] = encode_header_value(name)
        for mirror in mirrors.get(name, ()) if method == "tools/call" else ():
            value = mirrored_value(mirror, params.get("arguments"))
            if value is not None:
                headers[mirror.header] = encode_header_value(value)
    return headers

###############################################################################
# 36. Connections
###############################################################################
# Uses sections 1 to 3, 7, 25, 27, 31, 32 and 34.
#
# Problem.  Between HTTP messages and sockets stand time and trouble: clients that send a byte a
#           minute, readers that do not read, connections that are half gone, TLS.
# Rules.    1. One task serves a connection, one request at a time; a request costs no other task.
#              Pipelined requests wait in the reader. An answer may outlive its connection, and is
#              told at once when the client is lost.
#           2. Every wait has a deadline. One sweep a second looks at all of them, so that a
#              request costs no timer.
#           3. After a protocol error there is one answer, and the connection closes.
# Plan.     HTTPRequest and Response, which a handler gets; ClientReader and Connection, on
#           asyncio's streams; Listener.
# Not here. What is served: section 40. HTTP/2, compression, cookies, Upgrade.

WRITE_BUFFER_BYTES = 64 * 1024  # unsent bytes of one connection before a writer waits
HEAD_SECONDS = 20.0  # for a request's head, from its first byte
BODY_SECONDS = 60.0  # for a request's body
IDLE_SECONDS = 75.0  # for the next request of a connection, as nginx waits
LINGER_SECONDS = 5.0  # for input after a refused request, before the connection closes
MAX_LINGER_BYTES = 4 * MAX_MESSAGE_BYTES  # ... which is read and thrown away
MAX_SPARED_BYTES = 64 * 1024  # a refused body up to this is read, and the connection goes on
MAX_UNFINISHED_BYTES = 256 * 1024 * 1024  # bodies on their way, of all requests: 16 of the longest

TOO_MANY_BODIES = "too many requests are being sent: try again later"


class HTTPRequest(NamedTuple):
    """A request as a handler sees it, whichever engine took it in."""

    method: str
    path: str  # percent-decoded
    query: str
    headers: Mapping[str, str]
    body: bytes
    address: str
    root: str = ""  # the path before ours, where we are mounted
    scheme: str = "http"
    who: Any = None  # what the engine's look at the head has found out


# The states of a response.
#   UNSENT --send--> FINISHING          the whole answer is handed over
#   UNSENT --start--> STREAMING      its head is handed over
#   STREAMING --end--> FINISHING        its last piece is
#   FINISHING --(written)--> SENT
#   any but SENT --lose--> LOST      the client is gone; to write is harmless
UNSENT, STREAMING, FINISHING, SENT, LOST = "unsent", "streaming", "ending", "sent", "lost"


class Response:
    """The answer to one request: send() it whole, or start(), write() and end() a stream.

    `on_lost` is called when the client goes away before it has all. An engine supplies _put().
    """

    headers: Mapping[str, str] = {}  # for every answer: CORS
    status = 0
    state = UNSENT
    on_lost: Callable[[], None] | None = None
    #: the task in which it is made, where that is known: to ask asyncio takes 1 us before 3.12
    task: asyncio.Task[Any] | None = None
    _over: asyncio.Future[Any] | None = None

    @property
    def started(self) -> bool:
        """Whether something is sent, or nothing can be sent any more."""
        return self.state is not UNSENT

    @property
    def done(self) -> bool:
        """Whether all is written, or nothing can be written any more."""
        return self.state is SENT or self.state is LOST

    @property
    def lost(self) -> bool:
        """Whether the client went away before it had all."""
        return self.state is LOST

    async def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a whole answer."""
        if self.state is UNSENT:
            self.state, self.status = FINISHING, status
            try:
                await self._put(status, self._fields(headers), body, False)
            except ValueError:  # a header that cannot be sent: so nothing was
                self.state = UNSENT
                raise
            self._finish(SENT)

    async def start(self, status: int, headers: Mapping[str, str], data: bytes = b"") -> None:
        """Begin a stream, with its first piece if there is one."""
        if self.state is UNSENT:
            self.state, self.status = STREAMING, status
            await self._put(status, self._fields(headers), data, True)

    def _fields(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        return {**headers, **self.headers} if self.headers else headers

    async def write(self, data: bytes) -> None:
        """Send a piece of the stream; wait while the reader is slow."""
        if data and self.state is STREAMING:
            await self._put(0, {}, data, True)

    async def end(self, data: bytes = b"", hang_up: bool = False) -> None:
        """End the stream, after a last piece; `hang_up` frees the connection at once.

        Otherwise it takes no other request while the handler of this one is running.
        """
        if self.state is STREAMING:
            self.state = FINISHING
            await self._put(0, {}, data, False)
            self._finish(SENT)
            if hang_up:
                self._hang_up()

    def _hang_up(self) -> None:
        """Close the connection, where it is ours."""

    async def room(self) -> None:
        """Wait while the reader is slow."""

    async def _put(self, status: int, headers: Mapping[str, str], data: bytes, more: bool) -> None:
        """Write a head, if there is a status, and data, in the order of the calls.

        `more` says that a stream goes on.
        """
        raise NotImplementedError

    def lose(self) -> None:
        """Note that the client is gone."""
        if not self.done:
            on_lost = self.on_lost
            self._finish(LOST)
            if on_lost is not None:
                on_lost()

    def _finish(self, state: str) -> None:
        if self.state is not LOST:
            self.state = state
        self.on_lost = None  # which knows the request, which knows this response
        if self._over is not None:
            _settle(self._over, None, None)

    async def finished(self) -> None:
        """Wait until the answer is complete or its reader is gone."""
        if not self.done:
            self._over = asyncio.get_running_loop().create_future()
            await self._over


#: What serves requests, in the task of the connection; a stream may go on after it has returned.
Handle = Callable[[HTTPRequest, Response], Coroutine[Any, Any, None]]


@functools.lru_cache(maxsize=256)  # most answers begin with the same bytes
def response_head(status: int, fields: tuple[tuple[str, str], ...]) -> bytes:
    """Return the head of a response, up to its last field."""
    return encode_response(status, dict(fields), None)[:-2]


class SocketResponse(Response):
    """A response that goes out on a connection of ours."""

    def __init__(self, connection: Connection, head: RequestHead) -> None:
        self.connection, self.head, self.task = connection, head, connection.task
        self.keep = head.keep_alive
        self.chunked = head.version >= (1, 1)

    async def _put(self, status: int, headers: Mapping[str, str], data: bytes, more: bool) -> None:
        connection = self.connection
        if status:
            data = self._begin(status, headers, data, more)
        elif self.chunked:
            data = encode_chunk(data) + (b"" if more else LAST_CHUNK)
        connection.writer.write(data)
        if connection.transport.get_write_buffer_size() > WRITE_BUFFER_BYTES:
            await connection.drain()

    def _begin(self, status: int, headers: Mapping[str, str], data: bytes, more: bool) -> bytes:
        listener, fields = self.connection.listener, (*headers.items(),)
        if listener.stopping or (more and not self.chunked):
            self.keep = False  # HTTP/1.0: the end of the connection ends a stream
        if not self.keep:
            fields += (("connection", "close"),)
        length = b""
        if more and self.chunked:
            fields += (("transfer-encoding", "chunked"),)
            data = encode_chunk(data)
        elif not more and status >= 200 and status not in (204, 304):
            length = b"content-length: %d\r\n" % len(data)
        if self.head.method == "HEAD":
            data = b""
        # RFC 9110 §6.6.1 -- an origin server with a clock sends Date
        return b"%b%b%b\r\n%b" % (response_head(status, fields), listener.date, length, data)

    async def room(self) -> None:
        """Wait while the reader is slow."""
        if self.connection.transport.get_write_buffer_size() > WRITE_BUFFER_BYTES:
            await self.connection.drain()

    def _hang_up(self) -> None:
        self.connection.close()


@types.coroutine
def isolated(
    coro: Coroutine[Any, Any, Any], context: contextvars.Context
) -> Generator[Any, Any, Any]:
    """Run a coroutine in this task, but with these context variables; return its result.

    A connection's task serves many requests, perhaps of many users behind one proxy: what a
    handler sets for one of them, the next must not see. It costs 1 us, a task of its own 15 us.
    """
    step = context.run
    resume, value = coro.send, None
    while True:
        try:
            awaited = step(resume, value)
        except StopIteration as exc:
            return exc.value
        try:
            value, resume = (yield awaited), coro.send
        except BaseException as exc:
            value, resume = exc, coro.throw


class ClientReader(asyncio.StreamReader):
    """The input of a connection, which tells at once when it ends: asyncio tells the next read."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(WRITE_BUFFER_BYTES, connection.listener.loop)
        self.connection = connection

    def feed_eof(self) -> None:
        """Hear that the client sends no more, or is gone."""
        super().feed_eof()
        self.connection.hear_end()

    def set_exception(self, exc: BaseException) -> None:
        """Hear that the connection broke."""
        super().set_exception(exc)  # type: ignore[arg-type]  # typeshed wants an Exception
        self.connection.hear_end()


#: Seconds to wait for what is missing.
PATIENCE = {"body": BODY_SECONDS, "head": HEAD_SECONDS, "request": IDLE_SECONDS}


class Connection:
    """One client's connection: requests in, answers out, one after the other.

    One task reads, decodes and answers. The sweep of the listener keeps its deadlines.
    """

    __slots__ = ("listener", "reader", "writer", "transport", "decoder", "address", "response",
                 "deadline", "waiting_for", "turn", "unsent", "discard_left", "ended",
                 "held", "task", "context", "who", "refused")  # fmt: skip

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.reader = ClientReader(self)
        self.decoder = RequestDecoder(listener.max_body)
        self.address, self.waiting_for = "local", ""
        self.response: SocketResponse | None = None
        self.deadline = listener.now + IDLE_SECONDS
        self.unsent = -1  # bytes that the client had not taken when somebody last looked
        self.held = 0  # bytes of a body that is not complete
        self.turn = asyncio.Lock()  # before Python 3.10.5, one alone can drain
        #: bytes that are still thrown away after a refused request, once there was one
        self.discard_left: int | None = None
        self.ended = False  # the client will send no more
        #: of a request whose head was looked at before its body came: where that was done, what it
        #: found out, and whether it was the answer, so that the body is thrown away
        self.context: contextvars.Context | None = None
        self.who: Any = None
        self.refused = False

    def begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin to serve a client, if there is room for another connection."""
        self.writer, self.transport = writer, writer.transport
        peer = writer.get_extra_info("peername")
        if isinstance(peer, tuple) and peer:
            self.address = str(peer[0])
        self.transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        if self.listener.admit(self):
            self.listener.tasks.spawn(self.run())
        else:
            self.transport.abort()

    def hear_end(self) -> None:
        """Hear that the client sends no more or, if the transport is closing, that it is gone."""
        self.ended, response = True, self.response
        # Who reads a stream, or can cancel by closing, does not half-close.
        gone = self.transport.is_closing()
        if response is not None and (gone or response.started or response.on_lost is not None):
            response.lose()
            if not gone:
                self.transport.close()
        if gone:
            self.listener.forget(self)  # though its request may go on

    async def run(self) -> None:
        """Serve requests until no more can come, then see the connection closed."""
        self.task: Any = asyncio.current_task()
        try:
            with contextlib.suppress(OSError):  # the client is gone
                await self._serve_all()
        finally:
            self._hold(0)
            self.close()
            try:
                with contextlib.suppress(OSError):
                    await self.writer.wait_closed()
            finally:
                self.transport.abort()  # TLS, before 3.11, wants to be told that we know
                self.listener.forget(self)

    async def _serve_all(self) -> None:
        try:
            while not self.transport.is_closing():
                request = await self._next()
                if request is None:
                    break
                if self.refused:  # that was its body
                    self.refused = False
                else:
                    await self._answer(*request)
        except ProtocolError as exc:
            self.refuse(exc)
        # Closing with input unread would reset the connection, and the answer be lost: what still
        # comes is taken for a moment, and thrown away. RFC 9112 §9.6
        while self.discard_left is not None:
            data = await self.reader.read(READ_BYTES)
            if not data:
                break
            self.discard_left -= len(data)
            if self.discard_left < 0:
                self.transport.abort()

    # Requests.

    async def _next(self) -> tuple[RequestHead, bytes] | None:
        """Return the next request; None if there is none."""
        decoder, items = self.decoder, self.decoder.resume()
        if items:  # pipelined: a thousand such requests must not keep the loop for themselves
            await asyncio.sleep(0)
        elif self.transport.get_write_buffer_size() > WRITE_BUFFER_BYTES:
            await self.drain()
        while not items:
            # The first byte of a head starts its clock, and its end the body's; no byte renews it.
            head = decoder.head
            what = "body" if head is not None else "head" if decoder.buffer else "request"
            if what != self.waiting_for:
                self.waiting_for, self.unsent = what, -1
                if head is not None:
                    await self._expect_body(head)
                patience = LINGER_SECONDS if self.refused else PATIENCE[what]
                self.deadline = self.listener.now + patience
            data = await self.reader.read(READ_BYTES)
            if not data or self.discard_left is not None:  # the latter: its time was up
                return None
            items = decoder.feed(data)
            if head is not None:
                self._hold(0 if items else len(data))
        self.waiting_for = ""
        return items[0]  # type: ignore[no-any-return]

    async def _expect_body(self, head: RequestHead) -> None:
        """Let the rest of a request come, unless its head is reason enough to refuse it."""
        self.deadline = float("inf")  # who asks others about a token has a deadline of its own
        self.context = contextvars.copy_context()
        look = self.listener.screen(self._request(head, b""))
        try:
            self.who = await isolated(look, self.context)
        except ProtocolError as exc:
            # RFC 9112 §9.3 -- the connection can go on if the whole body is read; a short one is
            # on its way already, unless the client waits to be told
            if not head.keep_alive or wants_continue(head) or self.listener.stopping:
                raise
            if not 0 <= head.size <= MAX_SPARED_BYTES:
                raise
            self._write_refusal(exc)
            self.refused, self.context = True, None
            return
        self._hold(len(self.decoder.buffer))
        if wants_continue(head) and not self.decoder.buffer:
            self.writer.write(CONTINUE)

    def _hold(self, size: int) -> None:
        """Count the bytes of a body that is not complete; 0 ends the count."""
        before, self.held = self.held, self.held + size if size else 0
        self.listener.unfinished += self.held - before
        if self.listener.unfinished > MAX_UNFINISHED_BYTES and size:
            raise ProtocolError(TOO_MANY_BODIES, TOO_BUSY, http_status=503)

    def _request(self, head: RequestHead, body: bytes) -> HTTPRequest:
        known = (head.method, head.path, head.query, head.headers, body, self.address)
        return HTTPRequest(*known, "", self.listener.scheme, self.who)

    async def _answer(self, head: RequestHead, body: bytes) -> None:
        """Answer one request, and decide whether there may be another."""
        listener = self.listener
        self.response = response = SocketResponse(self, head)
        self.deadline = float("inf")
        began = listener.loop.time() if logger.isEnabledFor(logging.DEBUG) else 0
        request = self._request(head, body)
        context, self.context, self.who = self.context or contextvars.copy_context(), None, None
        if self.transport.is_closing():
            response.lose()
        try:
            await isolated(listener.handle(request, response), context)
            if not response.done:
                await response.finished()
        except ProtocolError:
            if not response.started:
                raise
        except Exception as exc:
            logger.error("%s %s failed", head.method, head.path, exc_info=exc)
            response.keep = False
            await response.send(500, {})
        finally:
            self.response = None
            if began:
                took = (listener.loop.time() - began) * 1000
                path = head.target.partition("?")[0]  # a query may hold a session's id, or a code
                line = (self.address, head.method, path, response.status, took)
                logger.debug("%s %s %s %d %.1f ms", *line)
        if response.state is not SENT:  # cut short: the client must not take it for whole
            self.transport.abort()
        elif not response.keep or listener.stopping:
            self.close()

    def refuse(self, exc: ProtocolError) -> None:
        """Answer what cannot be understood, and serve nothing more. RFC 9112 §6.3"""
        self._write_refusal(exc, ("connection", "close"))
        self.waiting_for, self.discard_left = "", MAX_LINGER_BYTES
        self.decoder.buffer.clear()
        self._hold(0)
        self.deadline = self.listener.loop.time() + LINGER_SECONDS
        if self.writer.can_write_eof():
            self.writer.write_eof()

    def _write_refusal(self, exc: ProtocolError, *more: tuple[str, str]) -> None:
        logger.info("%s refused: %d %s", self.address, exc.http_status, exc)
        body = encode(error(None, wire_error(exc)))
        fields = (*refusal_headers(exc).items(), *more)
        head, length = response_head(exc.http_status, fields), b"content-length: %d" % len(body)
        self.writer.write(b"%b%b%b\r\n\r\n%b" % (head, self.listener.date, length, body))

    # Time.

    async def drain(self) -> None:
        """Wait while the client is slow to read, but not for ever."""
        loop = self.listener.loop
        async with self.turn:
            self.unsent = self.transport.get_write_buffer_size()
            self.deadline = loop.time() + STALL_SECONDS
            try:
                with contextlib.suppress(OSError):  # the client is gone: the response knows
                    await self.writer.drain()
            finally:
                self.deadline = float("inf") if self.response else loop.time() + IDLE_SECONDS

    def close(self) -> None:
        """Close when what is written has been taken."""
        if not self.transport.is_closing():  # closing TLS twice would forget to end it
            self.unsent = self.transport.get_write_buffer_size()
            self.transport.close()
            self.deadline = self.listener.loop.time() + STALL_SECONDS

    def expire(self, now: float) -> None:
        """Close after a deadline: with 408 if a request was on its way, else without a word."""
        unsent = self.transport.get_write_buffer_size()
        if self.waiting_for in ("head", "body") and not self.refused:
            self.refuse(ProtocolError("the request did not come in time", http_status=408))
        elif unsent and unsent != self.unsent:  # slow, but not dead
            self.unsent, self.deadline = unsent, now + STALL_SECONDS
        else:
            self.transport.abort()


def refusal_headers(exc: ProtocolError) -> dict[str, str]:
    """Return the headers of the answer to what is refused."""
    challenge = {"www-authenticate": "Bearer"} if exc.http_status == 401 else {}
    return {"content-type": JSON_TYPE, **challenge, **exc.headers}  # RFC 9110 §15.5.2


###############################################################################
# 37. Listeners
###############################################################################
# Uses sections 1, 3, 7, 10, 34 and 36.
#
# Problem.  Many connections at once, from everywhere, on TCP, Unix sockets and TLS.
# Rules.    1. One sweep a second looks at all deadlines, so that a request costs no timer.
#           2. What all clients may take together is bounded, and what one address may take.
# Plan.     Listener; sockets; certificates.
# Not here. What is served: the endpoint.

MAX_CONNECTIONS = 10_000  # to one listener; each idle one costs about 10 KiB
MAX_CONNECTIONS_PER_HOST = 1_000  # from one address that is not this machine
LAST_SECONDS = 0.2  # for what is written to leave, when a listener stops
SWEEP_SECONDS = 1.0  # between two looks at all deadlines of a listener



async def _pass(request: HTTPRequest) -> None:
    """Let every request come."""


class Listener:
    """Listening sockets and their connections."""

    def __init__(
        self, handle: Handle, max_body: int = MAX_MESSAGE_BYTES,
        screen: Callable[..., Coroutine[Any, Any, Any]] = _pass,
    ) -> None:  # fmt: skip
        self.handle, self.max_body = handle, max_body
        #: screen(request) may refuse a request before its body is there; what
        #: it returns is the request's `who`. It is not asked where head and body come as one.
        self.screen = screen
        self.scheme = "http"
        #: whether many clients come from an address: that of a proxy
        self.may_be_many: Callable[[str], Any] = nothing
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.addresses: dict[str, int] = {}  # how many connections from each
        self.tasks = Tasks()
        self.stopping = False
        self.now = self.loop.time()  # as the last sweep saw it: near enough for deadlines
        self.unfinished = 0  # bytes of bodies that are not complete
        self.date = b""  # its header line
        self._server: Any = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._uds: str | None = None

    async def start(
        self, host: str, port: int, uds: str | None = None, ssl: Any = None, uds_mode: int = 0o600
    ) -> str:
        """Listen; return the URL of the root."""
        options: Msg = {"backlog": 1024}
        if ssl:
            options.update(ssl=server_ssl(ssl), ssl_handshake_timeout=HEAD_SECONDS)
        make, self.scheme = self._streams, "https" if ssl else "http"
        if uds is None:
            try:
                self._server = await self.loop.create_server(make, host, port, **options)
            except OSError as exc:
                problem = f"cannot listen on port {port} of {host}: {exc.strerror}"
                hint = "; port=0 finds a free one" if exc.errno == errno.EADDRINUSE else ""
                raise OSError(exc.errno, problem + hint) from None
            name, at = f"[{host}]" if ":" in host else host, self._server.sockets[0].getsockname()
            root = f"{self.scheme}://{name}:{at[1]}"
        else:
            sock, self._uds, root = unix_socket(uds, uds_mode), uds, f"{self.scheme}://localhost"
            self._server = await self.loop.create_unix_server(make, sock=sock, **options)
        self._sweep()
        return root

    def _streams(self) -> asyncio.StreamReaderProtocol:
        """Return what asyncio.start_server() would, with a reader of ours."""
        connection = Connection(self)
        return asyncio.StreamReaderProtocol(connection.reader, connection.begin, self.loop)

    def admit(self, connection: Connection) -> bool:
        """Count a new connection in; return False if there are too many."""
        address = connection.address
        same = self.addresses.get(address, 0)
        if self.stopping or len(self.connections) >= MAX_CONNECTIONS:
            return False
        many = address == "local" or is_loopback(address) or self.may_be_many(address)
        if same >= MAX_CONNECTIONS_PER_HOST and not many:
            return False
        self.connections.add(connection)
        self.addresses[address] = same + 1
        return True

    def forget(self, connection: Connection) -> None:
        """Count a connection out."""
        if connection in self.connections:
            self.connections.remove(connection)
            self.addresses[connection.address] -= 1
            if not self.addresses[connection.address]:
                del self.addresses[connection.address]

    def _sweep(self) -> None:
        """Look at all deadlines."""
        from email.utils import formatdate

        self.now = now = self.loop.time()
        self.date = f"date: {formatdate(usegmt=True)}\r\n".encode()  # RFC 9110 §5.6.7
        for connection in [item for item in self.connections if item.deadline < now]:
            connection.expire(now)
        self._sweeper = self.loop.call_later(SWEEP_SECONDS, self._sweep)

    def close(self) -> None:
        """Take no new connections and no new requests."""
        if self._uds is not None and not self.stopping:  # a successor may listen there in a moment
            with contextlib.suppress(OSError):
                os.unlink(self._uds)
        self.stopping = True
        self._server.close()
        for connection in list(self.connections):
            if connection.response is None:
                connection.close()

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Let running requests finish within the grace period, then close everything."""
        until = self.loop.time() + grace
        self.close()
        await self.tasks.drain(grace)
        for connection in list(self.connections):
            if connection.response is not None:
                connection.task.cancel()
        # What is written may still be on its way.
        await self.tasks.drain(max(LAST_SECONDS, until - self.loop.time()))
        for connection in list(self.connections):
            connection.transport.abort()
        await self.tasks.close()
        if self._sweeper is not None:
            self._sweeper.cancel()


def unix_socket(path: str, mode: int) -> Any:
    """Return a socket bound to a path, with these permissions; a stale one of that name goes."""
    import socket

    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise FileExistsError(f"{path} exists and is no socket")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            else:
                raise FileExistsError(f"another server listens on {path}")
    sock = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o777 & ~mode)
    try:
        sock.bind(path)
    except BaseException:
        sock.close()
        raise
    finally:
        os.umask(mask)
    return sock


def server_ssl(ssl: Any) -> Any:
    """Return an SSLContext from one, or from the paths of a certificate and its key."""
    from ssl import PROTOCOL_TLS_SERVER, SSLContext, TLSVersion

    if isinstance(ssl, SSLContext):
        return ssl
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.minimum_version = TLSVersion.TLSv1_2  # RFC 8996 -- the older ones are not to be used
    files = (ssl,) if isinstance(ssl, (str, os.PathLike)) else ssl
    for file in files[:2]:
        with open(file, "rb"):  # an error of load_cert_chain() names no file
            pass
    context.load_cert_chain(*files)
    return context

###############################################################################
# 38. Streams and sessions
###############################################################################
# Uses sections 1 to 5, 7, 18, 33 to 35 and 37.
#
# Problem.  The same conversations over HTTP: every message of the client is a POST, every answer a
#           JSON body or a stream of events, and connections may be cut at any byte.
# Rules.    1. An answer is JSON until something is said first; then the same response becomes a
#              stream. A handler that takes long says something: a comment, to keep it alive.
#           2. In a session a lost connection cancels nothing. Events are numbered per stream and
#              kept; a GET with Last-Event-ID goes on exactly after the last one. In the modern era
#              closing the response is the cancellation.
#           3. What is kept has a bound per stream, per session and per server.
#           4. Sessions have ids that cannot be guessed, and are bounded in number: in all, and for
#              each owner.
# Plan.     EventStream, and KeptStream, which can be taken up again; Reply, where the answer to one
#           POST goes; HTTPSession and its kinds: ModernClients, PassingSession, KeptSession and
#           PairSession; SessionTable.
# Not here. Who opens and ends sessions: section 40.

MAX_KEPT_EVENTS = 1000  # of one stream, for a reader who comes back
MAX_KEPT_BYTES = 1024 * 1024  # ... in all; the newest is kept whatever its size
MAX_KEPT_STREAMS = 8  # finished streams of one session, whose end may not have arrived
MAX_SESSION_BYTES = 4 * 1024 * 1024  # kept events of one session, those of running streams included
MAX_SERVER_BYTES = 64 * 1024 * 1024  # ... of all sessions of an endpoint
MAX_SESSIONS = 10_000  # of one endpoint; an idle one costs about 4 KiB
MAX_OWNER_SESSIONS = 1000  # ... of one principal, or of one address of another machine
LABEL_CHARS = 7  # of a session's id, in logs: of 22, so that nobody can guess the rest

JSON_HEADERS: Mapping[str, str] = {"content-type": JSON_TYPE}
STREAM_HEADERS = {
    "content-type": EVENT_TYPE,
    "cache-control": "no-cache, no-transform",
    # spec: basic/transports/streamable-http#receiving-messages -- else proxies hold events back
    "x-accel-buffering": "no",
}


class EventStream:
    """A stream of events that goes to one response, and ends with it."""

    __slots__ = ("session", "response", "complete", "written")

    def __init__(self, session: HTTPSession) -> None:
        self.session = session
        self.response: Response | None = None
        self.complete = False  # its last event has been put
        self.written = 0.0

    async def begin(self, response: Response, first: bytes = b"") -> None:
        """Send the stream to its reader, with a first piece."""
        await self.attach(response, first)

    async def attach(self, response: Response, first: bytes) -> None:
        """Make `response` the reader; whoever read before is let go."""
        if response.lost:  # while its token was looked at: nobody would tell us again
            return
        endpoint = self.session.endpoint
        before, self.response = self.response, response
        if before is not None:
            endpoint.tasks.spawn(before.end())
        response.on_lost = functools.partial(self._detach, response, response.on_lost)
        endpoint.streams.add(self)
        self.written = endpoint.loop.time()
        await response.start(200, {**STREAM_HEADERS, **self.session.headers}, first)

    def _detach(self, response: Response, then: Callable[[], None] | None) -> None:
        if self.response is response:
            self._let_go()
            self.session.touch()
        if then is not None:
            then()

    def _let_go(self) -> Response | None:
        response, self.response = self.response, None
        self.session.endpoint.streams.discard(self)
        return response

    async def put(self, msg: Msg | list[Msg], final: bool = False) -> int:
        """Send a message, if somebody reads; return its bytes."""
        data = encode_event(encode(msg))
        size = len(data) if self.response is not None else 0
        await self._write(data, final)
        return size

    async def _write(self, data: bytes, last: bool = False) -> None:
        self.written = self.session.endpoint.loop.time()
        response = self._let_go() if last else self.response
        if response is not None:
            await (response.end(data) if last else response.write(data))

    async def keep_alive(self) -> None:
        """Send a comment, which means nothing."""
        await self._write(encode_comment())

    def forget_all(self) -> None:
        """Forget what is kept: nothing."""

    async def end(self, retry_ms: int | None = None) -> None:
        """End the response."""
        response = self._let_go()
        if response is not None and retry_ms is not None:
            await response.end(b"retry: %d\n\n" % retry_ms, hang_up=True)
        elif response is not None:
            await response.end()


class KeptStream(EventStream):
    """A stream of a session: it outlives its connection, and can be taken up in another.

    Its events are numbered, and kept for a reader who comes back.
    """

    __slots__ = ("keeper", "name", "events", "size", "last", "sent", "flushing")

    def __init__(self, session: KeptSession) -> None:
        from secrets import token_hex

        super().__init__(session)
        self.keeper = session
        #: the first part of its events' ids; who knows it has read the stream
        self.name = token_hex(8)
        self.events: deque[bytes] = deque()  # numbered up to `last`
        self.size = self.last = self.sent = 0  # bytes in `events`; numbers of events
        self.flushing = False

    async def begin(self, response: Response, first: bytes = b"") -> None:
        """Send the stream to a new reader: first what nobody has read."""
        self.sent = max(self.sent, self.last - len(self.events))
        if self.session.conversation.session.rev.sse_priming:
            # spec 2025-11-25: basic/transports#sending-messages-to-the-server -- "immediately
            # send an SSE event consisting of an event ID and an empty data field"
            first = encode_event("", id=f"{self.name}-{self.sent}", retry=RETRY_MS)
        await self._go_on(response, first)

    async def resume(self, response: Response, after: int) -> None:
        """Send the stream to a reader who comes back, from event `after` on."""
        if not self.last - len(self.events) <= after <= self.last:
            raise ProtocolError("the events after last-event-id are no longer kept")
        self.sent = after
        await self._go_on(response)

    async def _go_on(self, response: Response, first: bytes = b"") -> None:
        await self.attach(response, first)
        await self.flush()
        if self.complete and self.response is response:
            await self.end()

    async def put(self, msg: Msg | list[Msg], final: bool = False) -> int:
        """Number a message, keep it, and send it if somebody reads; return its bytes."""
        if self.keeper.ended:
            return 0
        self.last += 1
        self.complete = final
        data = encode_event(encode(msg), id=f"{self.name}-{self.last}")
        self.events.append(data)
        self.size += len(data)
        while len(self.events) > 1 and (
            self.size - len(data) > MAX_KEPT_BYTES or len(self.events) > MAX_KEPT_EVENTS
        ):
            self.forget()
        self.keeper.endpoint.kept.add(self.keeper, self, len(data))
        if self is not self.keeper.listening or not self.flushing:
            await self.flush()
        return len(data)

    def forget(self) -> None:
        """Forget the oldest event."""
        data = self.events.popleft()
        self.size -= len(data)
        self.keeper.endpoint.kept.remove(self.keeper, len(data))

    def forget_all(self) -> None:
        """Forget all events."""
        while self.events:
            self.forget()

    async def flush(self) -> None:
        """Send what the reader has not got yet, in order."""
        self.flushing = True
        try:
            while self.response is not None and self.sent < self.last:
                missing = self.last - self.sent
                if missing > len(self.events):  # a slow reader was overtaken; it will notice
                    await self.end()
                    return
                self.sent += 1
                last = self.complete and self.sent == self.last
                await self._write(self.events[-missing], last)
        finally:
            self.flushing = False


class Reply:
    """Where everything goes that one POST causes: JSON if that is all, else a stream."""

    __slots__ = ("session", "response", "caller", "stream", "since")

    def __init__(self, session: HTTPSession, response: Response, caller: Caller) -> None:
        self.session, self.response, self.caller = session, response, caller
        self.stream: EventStream | None = None
        endpoint = session.endpoint
        self.since = endpoint.now
        endpoint.waiting.add(self)

    async def __call__(self, msg: Msg | list[Msg]) -> int:
        """Send a message; one that is an answer is the last. Return its bytes, 0 if it is lost."""
        session = self.session
        session.conversation.peer.show(">", msg)
        final = type(msg) is list or "method" not in msg
        if self.stream is not None or not final:
            stream = self.stream or await self.open()
            return await stream.put(msg, final)
        status, headers, body = 200, JSON_HEADERS, encode(msg)
        session.endpoint.waiting.discard(self)
        if session.unannounced or "error" in msg:
            status, headers = session.head_of(msg, self.caller.principal)
        await self.response.send(status, headers, body)
        return 0 if self.response.lost else len(body)

    async def keep_alive(self) -> None:
        """Say something, unless that has happened by now."""
        if self.stream is None and not self.response.started:
            await self.open()

    async def open(self) -> EventStream:
        """Make the answer a stream."""
        self.session.endpoint.waiting.discard(self)
        self.stream = stream = self.session.new_stream()
        if not self.response.lost:
            await stream.begin(self.response)
        return stream

    async def drop(self) -> None:
        """End the answer if it is not complete: a cancelled request has none."""
        self.session.endpoint.waiting.discard(self)
        if self.stream is not None:
            self.stream.complete = True
            await self.stream.end()
        else:
            await self.response.send(200, STREAM_HEADERS)

    async def pause(self, retry_ms: int) -> bool:
        """End the connection but not the stream, so that the client comes back for the rest."""
        if not self.session.resumable:
            return False  # the client would not know where to come back to
        stream = self.stream or await self.open()
        await stream.end(retry_ms)
        return True


class HTTPSession:
    """A conversation over HTTP, and where its answers go. Its kinds follow."""

    __slots__ = ("endpoint", "conversation", "headers")

    #: whether it speaks for the modern era
    modern = False
    #: whether the client has yet to be told of the session
    unannounced = False

    def __init__(self, endpoint: Endpoint, caller: Caller, many_clients: bool = False) -> None:
        self.endpoint = endpoint
        #: for the answer that opens the session, and for its streams
        self.headers: Mapping[str, str] = {}
        self.conversation = endpoint.server.converse(caller.address, caller, many_clients)

    @property
    def resumable(self) -> bool:
        """Whether a client knows how to come back for the rest of a stream."""
        return False

    @property
    def busy(self) -> bool:
        """Whether requests are being served, besides one whose task asks."""
        mine = asyncio.current_task()
        return any(item.task is not mine for item in self.conversation.peer.incoming.values())

    def touch(self) -> None:
        """Note that the session is used."""

    def new_stream(self) -> EventStream:
        """Return a stream for the answer to a POST."""
        return EventStream(self)

    def head_of(self, msg: Any, principal: Any) -> tuple[int, Mapping[str, str]]:
        """Return status and headers of an answer that is an error, or the first of a session."""
        problem = msg.get("error") if type(msg) is dict else None
        if problem is not None and problem["code"] == TOO_FAST:  # RFC 6585 §4
            return 429, {**JSON_HEADERS, "retry-after": str(problem["data"]["retryAfter"])}
        if problem is not None and problem["code"] == FORBIDDEN:
            wants = self.endpoint.entrance.wants(problem["data"]["scope"], principal)
            return 403, {**JSON_HEADERS, **wants}
        return self.status_of(problem), JSON_HEADERS

    def status_of(self, problem: Msg | None) -> int:
        """Return the status that belongs to an error, or to none."""
        return 200

    async def end(self, farewell: str = "the session has ended") -> None:
        """End the session: cancel the requests that run, saying why."""
        peer = self.conversation.peer
        peer.lose(ConnectionClosed(farewell))
        await peer.close(farewell)
        for exchange in list(peer.incoming.values()):  # those whose answer was the farewell
            if exchange.task is not None and exchange.task is not asyncio.current_task():
                exchange.task.cancel()
        await self.endpoint.quiet([self], GRACE_SECONDS)


class ModernClients(HTTPSession):
    """All clients of the modern era: it has no sessions, each request says everything."""

    __slots__ = ()
    modern = True

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint, Caller(address="a client"), many_clients=True)
        self.conversation.session.resume(NEWEST)
        self.conversation.peer.max_in_flight = MAX_CONNECTIONS

    def status_of(self, problem: Msg | None) -> int:
        """Return the status that belongs to an error, or to none."""
        return 200 if problem is None else MODERN_STATUS.get(problem["code"], 200)


class PassingSession(HTTPSession):
    """One request of a legacy client, where the server keeps no sessions."""

    __slots__ = ()


class KeptSession(HTTPSession):
    """A legacy session: an id, its streams, and when it was used."""

    __slots__ = ("id", "owner", "share", "unannounced", "streams", "listening", "used", "ended")

    def __init__(self, endpoint: Endpoint, id: str, caller: Caller) -> None:
        super().__init__(endpoint, caller)
        #: whose it is, and under which name it is counted; see SessionTable
        self.id, self.owner, self.share = id, caller.owner, counted_as(caller)
        self.headers = {SESSION_HEADER: id}
        self.conversation.label = id[: len(endpoint.sessions.prefix) + LABEL_CHARS]
        self.unannounced = True
        #: the answers to POSTs that became streams, by name
        self.streams: dict[str, KeptStream] = {}
        #: the standalone stream, for what no request caused
        self.listening: EventStream | None = None
        self.used = endpoint.now
        self.ended = False

    def touch(self) -> None:
        """Note that the session is used."""
        self.used = self.endpoint.now
        if self.id in self.endpoint.sessions:
            self.endpoint.sessions.move_to_end(self.id)

    @property
    def resumable(self) -> bool:
        """Whether a client knows how to come back for the rest of a stream."""
        return self.conversation.session.rev.sse_priming

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nobody reads."""
        if self.conversation.peer.incoming or (self.listening and self.listening.response):
            return False
        return not any(stream.response for stream in self.streams.values())

    def head_of(self, msg: Any, principal: Any) -> tuple[int, Mapping[str, str]]:
        """Tell the id of the session with the answer that opens it."""
        if "result" not in msg or not self.unannounced:
            return super().head_of(msg, principal)
        # spec 2025-11-25: basic/transports#session-management -- "on the HTTP response containing
        # the InitializeResult"
        self.unannounced = False
        return 200, {**JSON_HEADERS, **self.headers}

    # Streams.

    def new_stream(self) -> EventStream:
        """Return a stream for the answer to a POST; the oldest finished ones are forgotten."""
        old = [item for item in self.streams.values() if item.complete and not item.response]
        size = sum(item.size for item in old)
        for left, item in zip(range(len(old), 0, -1), old):
            if left > MAX_KEPT_STREAMS or size > MAX_KEPT_BYTES:
                size -= item.size
                item.forget_all()
                del self.streams[item.name]
        stream = KeptStream(self)
        self.streams[stream.name] = stream
        return stream

    def listen(self) -> EventStream:
        """Return the standalone stream, which begins with the first who wants it."""
        if self.listening is None:
            self.listening = self.new_listening()
            self.conversation.listen(self.announce, self.end)
        return self.listening

    def new_listening(self) -> EventStream:
        """Return a standalone stream."""
        return KeptStream(self)

    def kept_stream(self, name: str) -> KeptStream | None:
        """Return the stream whose events' ids begin with a name, if there is one."""
        stream = self.streams.get(name, self.listening)
        return stream if isinstance(stream, KeptStream) and stream.name == name else None

    async def announce(self, msg: Msg | list[Msg]) -> int:
        """Send a message on the standalone stream; return its bytes."""
        self.conversation.peer.show(">", msg)
        return await self.listening.put(msg) if self.listening is not None else 0

    def make_room(self, limit: int, but: KeptStream) -> None:
        """Forget the oldest events, down to so many bytes, but not the newest of one stream."""
        for stream in (*self.streams.values(), self.listening):
            if isinstance(stream, KeptStream):
                least = 1 if stream is but else 0
                while len(stream.events) > least and self.endpoint.kept.of(self) > limit:
                    stream.forget()

    async def end(self, farewell: str = "the session has ended") -> None:
        """End the session: cancel what runs, end the streams."""
        self.endpoint.sessions.discard(self)
        self.endpoint.server.conversations.discard(self.conversation)
        await super().end(farewell)
        self.ended = True
        for stream in (*self.streams.values(), self.listening):
            if stream is not None:
                await stream.end()
                stream.forget_all()


class PairSession(KeptSession):
    """A session of HTTP+SSE, the first revision's transport: all answers come on one stream."""

    __slots__ = ("turn",)

    def __init__(self, endpoint: Endpoint, id: str, caller: Caller) -> None:
        super().__init__(endpoint, id, caller)
        self.turn = asyncio.Lock()  # one message after the other, at the pace of the reader

    async def room(self) -> None:
        """Wait until the reader has taken what was said."""
        async with self.turn:
            if self.listening is not None and self.listening.response is not None:
                await self.listening.response.room()

    async def announce(self, msg: Msg | list[Msg]) -> int:
        """Send a message on the stream."""
        async with self.turn:
            return await super().announce(msg)

    def new_listening(self) -> EventStream:
        """Return a stream that ends with its connection."""
        return EventStream(self)


class KeptBytes:
    """How much is kept of events, for each session and in all; the oldest make room."""

    def __init__(self) -> None:
        self.total = 0
        #: bytes of each session; the one that was silent for longest first
        self.sizes: OrderedDict[KeptSession, int] = OrderedDict()

    def add(self, session: KeptSession, stream: KeptStream, size: int) -> None:
        """Count an event in, which is the newest of its stream, and keep to the bounds."""
        self.total += size
        self.sizes[session] = self.sizes.get(session, 0) + size
        self.sizes.move_to_end(session)
        if self.sizes[session] > MAX_SESSION_BYTES:
            session.make_room(MAX_SESSION_BYTES, stream)
        for other in list(self.sizes) if self.total > MAX_SERVER_BYTES else ():
            too_much = self.total - MAX_SERVER_BYTES
            if too_much > 0:
                other.make_room(max(0, self.sizes[other] - too_much), stream)

    def of(self, session: KeptSession) -> int:
        """Return how much a session keeps."""
        return self.sizes.get(session, 0)

    def remove(self, session: KeptSession, size: int) -> None:
        """Count an event out."""
        self.total -= size
        self.sizes[session] -= size
        if not self.sizes[session]:
            del self.sizes[session]


class SessionTable(OrderedDict[str, KeptSession]):
    """The sessions of an endpoint by id, the least recently used first."""

    def __init__(self, most: int, prefix: str) -> None:
        super().__init__()
        self.most, self.prefix = most, prefix
        self.shares: dict[str, int] = {}  # how many sessions are counted under each name

    def new_id(self) -> str:
        """Return an id that nobody can guess."""
        from secrets import token_urlsafe

        return self.prefix + token_urlsafe(16)

    def add(self, session: KeptSession) -> None:
        """Enter a session."""
        self[session.id] = session
        self.shares[session.share] = self.shares.get(session.share, 0) + 1

    def discard(self, session: KeptSession) -> None:
        """Take a session out, if it is there."""
        if self.pop(session.id, None) is not None:
            self.shares[session.share] -= 1
            if not self.shares[session.share]:
                del self.shares[session.share]

    def victim(self, share: str) -> KeptSession | None:
        """Return the session that must end before one of this share may begin, if one must.

        It is the idle one that was unused for longest: of the owner who has used up a share, else
        of the owner who has most. ProtocolError 503 if none is idle.
        """
        full = len(self) >= self.most
        if share and self.shares.get(share, 0) >= min(MAX_OWNER_SESSIONS, self.most):
            whose: str | None = share
        elif full:
            most = max(self.shares, key=self.shares.__getitem__)
            whose = most if self.shares[most] > 1 else None
        else:
            return None
        idle = (item for item in self.values() if item.idle and whose in (None, item.share))
        found = next(idle, None)
        if found is None and whose != share:
            found = next((item for item in self.values() if item.idle), None)
        if found is None:
            raise ProtocolError("too many sessions are busy", TOO_BUSY, http_status=503)
        return found


def counted_as(caller: Caller) -> str:
    """Return the name under which sessions are counted; "" for none, where many share an address.

    >>> counted_as(Caller(address="192.0.2.1")), counted_as(Caller(address="127.0.0.1"))
    ('192.0.2.1', '')
    """
    here = caller.address in ("", "local") or is_loopback(caller.address)  # perhaps a proxy
    return caller.owner or ("" if here else caller.address)

###############################################################################
# 39. Entrances
###############################################################################
# Uses sections 1, 2, 27 and 34.
#
# Problem.  Somebody sends a request: who is it, and may they come in?
# Rules.    1. A token is right or wrong; known ones are compared in constant time.
#           2. All that belongs to a principal is bound to a stable key of the principal, so that a
#              token which was refreshed changes nothing.
# Plan.     Identity; Entrance, who may come in.
# Not here. Tokens that an authorization server gives: section 48.

class Identity(NamedTuple):
    """Who sent a request, as its token says."""

    principal: Any = None
    owner: str = ""  # the stable key of the principal


ANYBODY = Identity()


class Entrance:
    """Who may come in.

    `token` is a bearer token, several, or a mapping from token to principal; `verify(token)` gives
    or awaits a principal, or None to refuse. `key(principal)` is its stable key, see owner_of().
    A Guard (section 48) is an entrance that knows who gives tokens out.
    """

    def __init__(
        self, token: Any = None, verify: Callable[[str], Any] | None = None,
        key: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self.verify, self.key = verify, key
        self.url = ""  # of the endpoint, as clients know it
        tokens = [token] if isinstance(token, str) else token
        if tokens is not None and not isinstance(tokens, dict):
            tokens = {item: f"bearer-{number}" for number, item in enumerate(tokens, 1)}
        self.tokens: Mapping[str, Any] = tokens or {}
        self.closed = tokens is not None or verify is not None
        for principal in self.tokens.values():
            owner_of(principal, key)  # one without a stable key is an error at the start

    async def identify(self, headers: Mapping[str, str], query: str) -> Identity:
        """Return whose token a request has; ProtocolError 401 without a right one."""
        from hmac import compare_digest

        token = bearer_of(headers)
        if token is not None:
            # All are compared, each in constant time: how long it takes says nothing.
            same = [who for known, who in self.tokens.items()
                    if compare_digest(known.encode(), token.encode())]  # fmt: skip
            if not same and self.verify is not None:
                principal = await _maybe_await(self.verify(token))
                same = [] if principal is None else [principal]
            if same:
                return Identity(same[0], owner_of(same[0], self.key))
        raise ProtocolError("a valid bearer token is needed", http_status=401)

    def wants(self, scope: str, principal: Any) -> dict[str, str]:
        """Return the header that tells a principal of a missing scope. RFC 6750 §3.1"""
        return {"www-authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}

    def pages(self, path: str, local: bool) -> dict[str, Callable[..., Any]]:
        """Return the pages, by path, that tell everybody how to come in to the endpoint's path."""
        return {}

###############################################################################
# 40. The endpoint
###############################################################################
# Uses sections 1 to 7, 13, 18, 19, 21, 22, 27 and 31 to 39.
#
# Problem.  Requests arrive from any engine: which message is it, whose session, may it come in?
# Rules.    1. One Endpoint serves every engine: our own listener, and any ASGI server.
#           2. Host, Origin and token are checked in this order, before anything else is looked at;
#              and before the body is read.
#           3. Sessions belong to whoever opened them, and expire when idle.
# Plan.     Endpoint; PairRoutes, HTTP+SSE.
# Not here. Who may come in: section 39.

KEEP_ALIVE_SECONDS = 15.0  # between comments on a quiet stream; proxies cut after 30 to 60
SESSION_SECONDS = 1800.0  # for which a session may be idle
PAGE_THREADS = 4  # for pages that are plain functions: a health check waits for no tool


class Endpoint:
    """The MCP endpoint as a function of requests, for any engine.

    `local` says that only this machine can reach us. `token`, `verify` and `key` say who may come
    in, see Entrance; `auth` is another one. All ids of sessions begin with `session_prefix`, by
    which a balancer finds the process that has them. `trusted_proxies` are believed when they say
    for whom they speak, see Proxies.
    """

    def __init__(
        self, server: Server, *, local: bool = True, path: str = "/mcp",
        allowed_hosts: str | Iterable[str] | None = None,
        allowed_origins: str | Iterable[str] = (), token: Any = None,
        verify: Callable[[str], Any] | None = None, key: Callable[[Any], Any] | None = None,
        auth: Entrance | None = None, sessions: bool = True, legacy_sse: bool = True,
        session_seconds: float = SESSION_SECONDS, max_sessions: int = MAX_SESSIONS,
        session_prefix: str = "", trusted_proxies: str | Iterable[str] = (),
    ) -> None:  # fmt: skip
        # spec 2025-11-25: basic/transports#session-management -- "MUST only contain visible ASCII"
        if not re.fullmatch(r"[\x21-\x7e]*", session_prefix):
            raise ValueError(f"session_prefix={session_prefix!r}: give visible ASCII characters")
        self.server, self.path = server, path.rstrip("/")
        self.gate = Gate(local, allowed_hosts, allowed_origins)
        self.proxies = Proxies(trusted_proxies) if trusted_proxies else None
        self.entrance = auth or Entrance(token, verify, key)
        self.stateful, self.session_seconds = sessions, session_seconds
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time()  # as the last sweep saw it: near enough for what takes minutes
        self.sessions = SessionTable(max_sessions, session_prefix)
        self.kept = KeptBytes()
        self.modern = ModernClients(self)
        self.streams: set[EventStream] = set()  # that somebody reads
        #: streams that end with a token: when (a time of day), and how
        self.expiring: dict[Response, tuple[float, Callable[[], None]]] = {}
        self.waiting: set[Reply] = set()  # that have said nothing yet
        self.tasks = Tasks()
        self.pages = Threads(PAGE_THREADS)
        #: set while somebody waits for requests to end: settled whenever one has
        self.on_quiet: asyncio.Future[None] | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        streams = {"GET": self.get, "DELETE": self.delete} if sessions else {}
        self.routes: dict[str, dict[str, Callable[..., Awaitable[None]]]] = {
            self.path: {"POST": self.post, **streams}
        }
        if legacy_sse:
            pair = PairRoutes(self)
            self.routes.update({"/sse": {"GET": pair.open}, "/messages": {"POST": pair.post}})
        self.public: set[tuple[str, str]] = set()
        self.any_host: set[tuple[str, str]] = set()
        for (method, where), route in server.routes.items():
            self._add_page(method, where.rstrip("/"), route)
        for where, page in self.entrance.pages(self.path, local).items():
            self._add_page("GET", where, Route(page, True, True))

    def _add_page(self, method: str, where: str, route: Route) -> None:
        # RFC 9110 §9.3.2 -- HEAD is GET without the body
        for each in ("GET", "HEAD") if method == "GET" else (method,):
            call = functools.partial(self.page, route.fn)
            self.routes.setdefault(where, {})[each] = call
            if route.public:
                self.public.add((each, where))
            if route.any_host:
                self.any_host.add((each, where))

    async def __call__(self, request: HTTPRequest, response: Response) -> None:
        """Answer one request; a stream that it began may go on afterwards."""
        if self._sweeper is None:
            self.now = self.loop.time()
            self._sweeper = self.loop.call_later(SWEEP_SECONDS, self._sweep)
        method = request.method
        try:
            if self.proxies is not None:
                request = self.unwrap(request, self.proxies)
            who, headers = request.who, request.headers
            if who is None:
                who = await self.identify(request)
            if "origin" in headers:
                response.headers = cors_headers(headers["origin"])
            methods = self.routes[request.path.rstrip("/")]
            if method not in methods:
                await self._other(method, methods, request, response)
                return
            if who is not ANYBODY:
                # spec: basic/authorization/index#token-handling -- it is for us, and for nobody
                # whom a handler may call
                headers = {key: headers[key] for key in headers if key != "authorization"}
            caller = Caller(headers, who.principal, who.owner, request.address, request.scheme)
            await methods[method](request, response, caller)
        except ProtocolError as exc:
            self.note_refusal(request, exc)
            await self.refuse(response, exc)

    def check_host(self, method: str, where: str, headers: Mapping[str, str]) -> None:
        """Raise ProtocolError 403 for a Host or an Origin that is not let in."""
        if not self.any_host or (method, where) not in self.any_host:
            self.gate.check(headers)

    async def screen(self, request: HTTPRequest) -> Identity:
        """Return who sends a request, for an engine that asks before the body is there."""
        try:
            if self.proxies is not None:
                request = self.unwrap(request, self.proxies)
            return await self.identify(request)
        except ProtocolError as exc:
            self.note_refusal(request, exc)
            raise

    def unwrap(self, request: HTTPRequest, proxies: Proxies) -> HTTPRequest:
        """Return a request as its client made it, before it came through trusted proxies.

        The Host that the proxy asked for must be let in, too: proxies pass on what they do not
        know, and a page whose name was bound to the proxy's address could send any header.
        """
        origin = proxies.origin(request.address, request.scheme, request.headers)
        headers = request.headers
        if origin.host:
            self.check_host(request.method, request.path.rstrip("/"), headers)
            headers = {**headers, "host": origin.host}
        return request._replace(address=origin.address, scheme=origin.scheme, headers=headers)

    async def identify(self, request: HTTPRequest) -> Identity:
        """Return who sends a request; ProtocolError if it is refused, whatever its body will be."""
        method, headers, where = request.method, request.headers, request.path.rstrip("/")
        self.check_host(method, where, headers)
        try:
            known = method in self.methods_at(where)  # who only asks what there is, is not asked
            if known and self.entrance.closed and (method, where) not in self.public:
                return await self.entrance.identify(headers, request.query)
            return ANYBODY
        except ProtocolError as exc:
            if "origin" in headers:  # a page must be able to read why
                exc.headers = {**exc.headers, **cors_headers(headers["origin"])}
            raise
        except Exception as exc:
            logger.error("whose token it is cannot be found out", exc_info=exc)
            problem = "whose token it is cannot be found out"
            raise ProtocolError(problem, INTERNAL_ERROR, http_status=500) from exc

    def note_refusal(self, request: HTTPRequest, exc: ProtocolError) -> None:
        """Let a request that is refused have its record."""
        observers = self.server.observers
        if observers.wanted():
            target, status = f"{request.method[:20]} {request.path}", exc.http_status
            known = (target, status, request.address, request.scheme)
            observers.tell(refused_record(time.time(), *known))

    def methods_at(self, where: str) -> dict[str, Callable[..., Awaitable[None]]]:
        """Return what serves a path, by method."""
        if where not in self.routes:
            there = where[:100] or "/"
            hint = f": the endpoint is at {self.path!r}"
            raise ProtocolError(f"nothing is at {there!r}{hint}", http_status=404)
        return self.routes[where]

    async def _other(
        self, method: str, methods: Iterable[str], request: HTTPRequest, response: Response
    ) -> None:
        """Answer OPTIONS, and methods that a path does not have."""
        allowed = ", ".join((*methods, "OPTIONS"))
        if method != "OPTIONS":  # RFC 9110 §15.5.6 -- 405 "MUST generate an Allow header field"
            problem = ProtocolError(f"{method[:20]} is not served here", http_status=405)
            await self.refuse(response, problem, {"allow": allowed})
            return
        wanted = request.headers.get("access-control-request-headers")
        await response.send(204, {"allow": allowed, **preflight_headers(allowed, wanted)})

    async def refuse(
        self, response: Response, exc: ProtocolError, headers: Mapping[str, str] = {}
    ) -> None:
        """Answer with an error that has no id, and the status that belongs to it."""
        body = encode(error(None, wire_error(exc)))
        await response.send(exc.http_status, {**refusal_headers(exc), **headers}, body)

    # Messages.

    async def post(self, request: HTTPRequest, response: Response, caller: Caller) -> None:
        """Take a message, or a batch, of a client."""
        headers = request.headers
        check_json(headers)
        check_accept(headers, JSON_TYPE, EVENT_TYPE)
        msg = decode(request.body)
        if self.is_modern(headers, msg):
            await self.post_modern(msg, response, caller)
            return
        opening = type(msg) is dict and msg.get("method") == "initialize" and "id" in msg
        kind = None if type(msg) is list else classify(msg)
        session = self.find(caller, header_revision(headers), opening)
        peer = session.conversation.peer
        peer.show("<", msg)
        if kind is REQUEST:
            await self._serve(msg, Reply(session, response, caller))
            if opening and session.conversation.session.state is START:
                await session.end()  # the handshake failed
        elif kind is None:
            await self.post_batch(msg, session, response, caller)
        else:
            peer.dispatch(msg, _nowhere, caller)
            await response.send(202, {})

    async def post_modern(self, msg: Msg, response: Response, caller: Caller) -> None:
        """Take a message that needs no session."""
        peer = self.modern.conversation.peer
        peer.show("<", msg)
        try:
            kind = classify(msg)
        except ProtocolError as exc:
            body = encode(error(readable_id(msg), wire_error(exc)))
            await response.send(exc.http_status, JSON_HEADERS, body)
            return
        if kind is REQUEST:
            await self._serve(msg, Reply(self.modern, response, caller))
        elif kind is NOTIFICATION:
            # The specification has none for here: what closes its connection is cancelled.
            if msg["method"] not in METHODS:
                peer.dispatch(msg, _nowhere, caller)
            await response.send(202, {})
        else:
            # spec: basic/transports/streamable-http#sending-messages
            raise ProtocolError("in this revision a client sends no responses")

    async def post_batch(
        self, batch: list[JSON], session: HTTPSession, response: Response, caller: Caller
    ) -> None:
        """Take a batch: 202 if nothing in it wants an answer."""
        peer = session.conversation.peer
        peer.check_batch(batch)
        if not any(wants_answer(msg) for msg in batch):
            for msg in batch:
                peer.dispatch(msg, _nowhere, caller)
            await response.send(202, {})
            return
        reply = Reply(session, response, caller)
        try:
            await peer.reply_batch(batch, reply, reply.caller)
        finally:
            await reply.drop()
            if self.on_quiet is not None:
                _settle(self.on_quiet, None, None)

    def is_modern(self, headers: Mapping[str, str], msg: JSON) -> bool:
        """Return whether a message belongs to the modern era, by its metadata or its header."""
        if type(msg) is not dict or is_modern(msg):
            return type(msg) is dict
        rev = REVISIONS.get(headers.get(VERSION_HEADER, ""))
        # A handshake is legacy, whatever headers a client that speaks both eras gives it.
        return rev is not None and rev.modern and msg.get("method") != "initialize"

    async def _serve(self, msg: Msg, reply: Reply) -> None:
        """Serve a request in the task of its connection, which may be gone by the end."""
        session, response = reply.session, reply.response
        peer, modern = session.conversation.peer, session.modern
        if modern and response.lost:  # before it could be told
            self.waiting.discard(reply)
            return
        try:
            facts = self.check_headers(msg, reply.caller.headers) if modern else None
            exchange = peer.accept(msg, reply, reply.caller, modern)
            exchange.facts, exchange.pause, exchange.task = facts, reply.pause, response.task
        except RPCError as exc:
            answer = error(msg["id"], wire_error(exc))
            peer.on_refusal(msg, reply.caller, answer)
            await reply(answer)
            return
        if modern:
            # spec: basic/transports/streamable-http#cancellation -- "Closing the SSE response
            # stream MUST be treated by the server as cancellation"
            response.on_lost = functools.partial(peer.stop, exchange)
            if msg["method"] == "subscriptions/listen":
                self.at_expiry(reply.caller, response, functools.partial(peer.stop, exchange))
        try:
            await peer.reply(exchange)
        except asyncio.CancelledError:
            if exchange.state is not CANCELLED and peer.lost is None:
                raise  # it is the connection that was cancelled, by Listener.stop()
            _uncancel(exchange.task)
        finally:
            if reply.stream is not None or not response.started:
                await reply.drop()
            if self.on_quiet is not None:
                _settle(self.on_quiet, None, None)

    def check_headers(self, msg: Msg, headers: Mapping[str, str]) -> Facts:
        """Check a modern request and what its headers repeat of it; return its facts."""
        facts = check_modern_post(msg, headers)
        if msg["method"] == "tools/call":
            tool = self.server.tools.get(msg["params"].get("name"))
            if tool is not None and tool.mirrors:
                check_mirrors(tool.mirrors, headers, msg["params"].get("arguments", {}))
        return facts

    # Sessions.

    def find(self, caller: Caller, rev: Revision | None, opening: bool = False) -> HTTPSession:
        """Return the session of a request; ProtocolError 400 or 404 if it has none."""
        if not self.stateful:
            session = PassingSession(self, caller)
            if not opening:
                # spec 2025-11-25: basic/transports#protocol-version-header -- what to assume
                session.conversation.session.resume(rev or HEADERLESS)
            return session
        id = caller.headers.get(SESSION_HEADER)
        if id is None and opening:
            return self.open_session(KeptSession, caller)
        return self.session_of(id, caller)

    def session_of(self, id: str | None, caller: Caller) -> KeptSession:
        """Return the session with an id; ProtocolError 404 if there is none for this caller."""
        if id is None:
            raise ProtocolError(f"the header {SESSION_HEADER} is missing: send initialize first")
        session = self.sessions.get(id)
        if session is None or session.owner != caller.owner:
            # spec 2025-11-25: basic/transports#session-management -- "MUST respond to requests
            # containing that session ID with HTTP 404"; who asks for a session of somebody else
            # learns nothing more
            if session is not None:
                logger.info("a session was asked for by another owner than the one who opened it")
            raise ProtocolError("there is no such session: initialize again", http_status=404)
        session.touch()
        return session

    def open_session(self, kind: type[KeptSession], caller: Caller) -> KeptSession:
        """Make a session; when there are too many, one that is not used makes room."""
        victim = self.sessions.victim(counted_as(caller))
        if victim is not None:
            self.end_soon(victim)
        session = kind(self, self.sessions.new_id(), caller)
        self.sessions.add(session)
        self.server.conversations.add(session.conversation)
        return session

    def end_soon(self, session: KeptSession) -> None:
        """End a session, without waiting for it."""
        self.sessions.discard(session)
        self.tasks.spawn(session.end())

    async def get(self, request: HTTPRequest, response: Response, caller: Caller) -> None:
        """Open the standalone stream, or take any stream up again after Last-Event-ID."""
        check_accept(request.headers, EVENT_TYPE)
        rev = header_revision(request.headers)
        if rev is not None and rev.modern:
            problem = ProtocolError("this revision has no GET", http_status=405)
            await self.refuse(response, problem, {"allow": "POST, OPTIONS"})
            return
        session = self.session_of(request.headers.get(SESSION_HEADER), caller)
        last_id = request.headers.get("last-event-id")
        if last_id is not None:
            name, after = parse_event_id(last_id)
            kept = session.kept_stream(name)
            if kept is None:
                raise ProtocolError("the stream of last-event-id is no longer kept")
            self.at_expiry(caller, response, functools.partial(self.end_stream, kept, response))
            await kept.resume(response, after)
            return
        stream = session.listen()
        if stream.response is not None:
            # Somebody who only knows the session's id must not take its stream away.
            raise ProtocolError("this session's stream is being read", http_status=409)
        self.at_expiry(caller, response, functools.partial(self.end_stream, stream, response))
        await stream.begin(response)

    async def delete(self, request: HTTPRequest, response: Response, caller: Caller) -> None:
        """End a session."""
        header_revision(request.headers)
        session = self.session_of(request.headers.get(SESSION_HEADER), caller)
        await session.end()
        await response.send(204, {})

    # Pages.

    async def page(
        self, fn: Callable[..., Any], request: HTTPRequest, response: Response, caller: Caller
    ) -> None:
        """Serve a page: str, bytes, a JSON value, or (status, content type, body).

        Headers, as a dict, may stand in the place of the content type.
        """
        request = request._replace(headers=caller.headers)
        if is_async(fn):
            value = await fn(request)
        else:
            value = await _maybe_await(await self.pages.run(fn, request))
        status, headers, body = read_page(value)
        await response.send(status, headers, body)

    # Time.

    def at_expiry(self, caller: Caller, response: Response, end: Callable[[], None]) -> None:
        """End a stream when the token that opened it expires; another token opens another."""
        expires = getattr(caller.principal, "expires_at", None)
        if expires is not None:
            self.expiring[response] = expires, end

    def end_stream(self, stream: EventStream, response: Response) -> None:
        """End a stream, if it still goes to this response."""
        if stream.response is response:
            self.tasks.spawn(stream.end())

    def _sweep(self) -> None:
        """Look at everything that may have waited too long."""
        self.now = now = self.loop.time()
        for reply in [item for item in self.waiting if now - item.since > KEEP_ALIVE_SECONDS]:
            self.waiting.discard(reply)
            if not reply.response.lost:
                self.tasks.spawn(reply.keep_alive())
        for stream in [item for item in self.streams if now - item.written > KEEP_ALIVE_SECONDS]:
            self.tasks.spawn(stream.keep_alive())
        for response, (expires, end) in list(self.expiring.items()):
            if response.done:
                del self.expiring[response]
            elif expires <= time.time():
                end()
        old = itertools.takewhile(
            lambda item: now - item.used > self.session_seconds, self.sessions.values()
        )
        for session in list(old):
            if session.idle:
                self.end_soon(session)
            else:
                session.touch()
        # A task that was spawned just now has not opened its stream yet.
        busy = self.sessions or self.streams or self.waiting or self.tasks.running
        self._sweeper = self.loop.call_later(SWEEP_SECONDS, self._sweep) if busy else None

    async def quiet(self, sessions: Iterable[HTTPSession], seconds: float) -> None:
        """Wait until these sessions serve no request, at most so long."""
        until = self.loop.time() + seconds
        while any(session.busy for session in sessions) and self.loop.time() < until:
            self.on_quiet = self.on_quiet or self.loop.create_future()
            await asyncio.wait([self.on_quiet], timeout=until - self.loop.time())
            self.on_quiet = None

    async def close(self, grace: float = 0) -> None:
        """Let running requests finish within the grace period; end all streams and sessions."""
        self.modern.conversation.end_feeds()
        sessions: list[HTTPSession] = [*self.sessions.values(), self.modern]
        for kept in self.sessions.values():
            if isinstance(kept.listening, KeptStream):
                await kept.listening.end()
        until = self.loop.time() + grace
        await self.quiet(sessions, grace)
        await self.tasks.drain(max(0, until - self.loop.time()))
        for session in [*self.sessions.values(), self.modern]:
            await session.end(SHUTTING_DOWN)
        await self.tasks.close()
        self.pages.close()
        if self._sweeper is not None:
            self._sweeper.cancel()


class PairRoutes:
    """HTTP+SSE, the transport of the first revision, at an endpoint.

    A GET opens the stream on which all answers come; its first event says where to POST.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    async def open(self, request: HTTPRequest, response: Response, caller: Caller) -> None:
        """Open the stream."""
        check_accept(request.headers, EVENT_TYPE)
        if response.lost:
            return
        endpoint = self.endpoint
        session = endpoint.open_session(PairSession, caller)
        response.on_lost = functools.partial(endpoint.end_soon, session)
        where = f"{request.root}/messages?session_id={session.id}"
        # spec 2024-11-05: basic/transports#http-with-sse -- "MUST send an endpoint event"
        stream = session.listen()
        end = functools.partial(endpoint.end_stream, stream, response)
        endpoint.at_expiry(caller, response, end)
        await stream.begin(response, encode_event(where, event="endpoint"))

    async def post(self, request: HTTPRequest, response: Response, caller: Caller) -> None:
        """Take a message; its answer comes on the stream."""
        check_json(request.headers)
        id = parse_params(request.query.split("&")).get("session_id", "")
        session = self.endpoint.session_of(id, caller)
        if isinstance(session, PairSession):
            await session.room()  # who does not read answers asks nothing more
        session.conversation.peer.receive(request.body, session.announce, caller)
        await response.send(202, {"content-type": "text/plain"}, b"Accepted")


def read_page(value: Any) -> tuple[int, Mapping[str, str], bytes]:
    """Return status, headers and body of what a page's function gave; TypeError says what is wrong.

    >>> read_page((404, "text/plain", "not here"))
    (404, {'content-type': 'text/plain'}, b'not here')
    """
    status, kind = 200, "text/plain; charset=utf-8"
    if isinstance(value, tuple):
        if len(value) != 3:
            raise TypeError(f"a page gave a tuple of {len(value)}: status, content type and body")
        status, kind, value = value
        if type(status) is not int or not 200 <= status <= 599:
            raise TypeError(f"a page gave the status {status!r}: give a number from 200 to 599")
    elif not isinstance(value, (str, bytes)):
        kind, value = JSON_TYPE, _to_json(to_json(value))  # which may be longer than a message
    body = value.encode("utf-8", "replace") if isinstance(value, str) else value
    headers = kind if isinstance(kind, dict) else {"content-type": kind}
    if not isinstance(body, bytes):
        raise TypeError(f"a page gave a {type(body).__name__} as its body: give str or bytes")
    if not all(isinstance(text, str) for pair in headers.items() for text in pair):
        raise TypeError(f"a page gave the headers {headers!r}: names and values are str")
    header_lines(tuple(headers.items()))
    return status, headers, b"" if status in (204, 304) else body


def wants_answer(msg: JSON) -> bool:
    """Return whether a member of a batch is answered: a request, or what is no message at all."""
    try:
        return classify(msg) is REQUEST
    except ProtocolError:
        return True



async def _nowhere(msg: Msg) -> None:
    """Take what a notification or a response causes: nothing."""

###############################################################################
# 41. Engines
###############################################################################
# Uses sections 1 to 3, 7, 22, 26, 34, 36, 37, 39 and 40.
#
# Problem.  The endpoint needs somebody who takes requests in: a port of ours, or an ASGI server.
# Rules.    1. Lifespan, endpoint and listener begin and end in this order, whatever fails.
# Plan.     HTTPServer and its runner; ASGIApp.
# Not here. What is served: section 40.


#: Annotations of options that can be checked, and what may be given.
PLAIN_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool,), "int": (int,), "float": (int, float), "str": (str,),
    "str | None": (str, type(None)),
}  # fmt: skip


def check_kinds(maker: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise TypeError for an option of a wrong kind, as the signature of its maker says.

    >>> check_kinds(HTTPServer, {"port": "8000"})
    Traceback (most recent call last):
        ...
    TypeError: port='8000': give int
    """
    for name, parameter in inspect.signature(maker).parameters.items():
        kinds = PLAIN_KINDS.get(parameter.annotation)
        if kinds is None or name not in given:
            continue
        value = given[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeError(f"{name}={value!r:.100}: give {parameter.annotation}")


def check_options(max_body: int, options: Msg) -> None:
    """Raise TypeError or ValueError for options that no Endpoint takes."""
    inspect.signature(Endpoint).bind(None, **options)
    check_kinds(Endpoint, options)
    Proxies(options.get("trusted_proxies", ()))
    Entrance(*(options.get(name) for name in ("token", "verify", "key")))
    if max_body > MAX_MESSAGE_BYTES:
        problem = f"max_body={max_body}: a message is at most {MAX_MESSAGE_BYTES} bytes"
        raise ValueError(f"{problem}; send large data in pieces, or as a link")


def warn_of_open_door(host: str) -> None:
    """Say that anybody can come in."""
    logger.warning(
        "serving %s without authentication: anybody who can reach it can use its tools; "
        "pass token= or verify=, or bind to 127.0.0.1", host,
    )  # fmt: skip


class HTTPServer:
    """A server on a port of ours: `async with app.http(port=0) as server: server.url`."""

    def __init__(
        self, server: Server, *, host: str = "127.0.0.1", port: int = 8000, uds: str | None = None,
        uds_mode: int = 0o600, ssl: Any = None, grace: float = GRACE_SECONDS,
        max_body: int = MAX_MESSAGE_BYTES, **options: Any,
    ) -> None:  # fmt: skip
        check_kinds(HTTPServer, dict(host=host, port=port, uds=uds, uds_mode=uds_mode, grace=grace,
                                     max_body=max_body))  # fmt: skip
        check_options(max_body, options)
        if not 0 <= port <= 65535:
            raise ValueError(f"port={port}: give 0 to 65535; 0 takes a free one")
        self.server, self.options = server, options
        self.host, self.port, self.uds, self.ssl = host, port, uds, ssl
        self.uds_mode = uds_mode
        self.grace, self.max_body = grace, max_body
        self.url = ""

    async def __aenter__(self) -> HTTPServer:
        local = self.uds is not None or is_loopback(self.host)
        if not local and not any(self.options.get(name) for name in ("token", "verify", "auth")):
            warn_of_open_door(self.host)
        self._stack = contextlib.AsyncExitStack()
        await self._stack.enter_async_context(self.server.lifespan_open())
        try:
            self.endpoint = Endpoint(self.server, **{"local": local, **self.options})
            self.listener = Listener(self.endpoint, self.max_body, self.endpoint.screen)
            if self.endpoint.proxies is not None:
                self.listener.may_be_many = self.endpoint.proxies.trusts
            root = await self.listener.start(
                self.host, self.port, self.uds, self.ssl, uds_mode=self.uds_mode
            )
        except BaseException:
            await self._stack.aclose()
            raise
        self.url = root + self.endpoint.path
        self.endpoint.entrance.url = self.endpoint.entrance.url or self.url
        return self

    async def __aexit__(self, *exc: Any) -> None:
        until = self.endpoint.loop.time() + self.grace
        try:
            self.listener.close()
            await self.endpoint.close(self.grace)
        finally:
            await self.listener.stop(max(0, until - self.endpoint.loop.time()))
            await self._stack.aclose()


async def serve_http(
    app: Server, ready: Callable[[Any], None], *, signals: bool = False, **options: Any
) -> None:
    """Serve on a port until cancelled or, with `signals`, until one comes."""
    end = asyncio.Event()

    async def ended() -> None:
        await end.wait()

    async with HTTPServer(app, **options) as running:
        ready(running.url)
        if signals:
            print(f"{app.name} serves {running.url}", file=sys.stderr)
            await until_signalled(ended(), end.set)
        else:
            await end.wait()


RUNNERS["http"] = serve_http
ENGINES["http"] = HTTPServer


class ASGIResponse(Response):
    """A response that an ASGI server sends."""

    def __init__(self, send: Callable[[Msg], Awaitable[None]]) -> None:
        self._send = send
        self._turn = asyncio.Lock()  # first come, first served

    async def _put(self, status: int, headers: Mapping[str, str], data: bytes, more: bool) -> None:
        fields = dict(headers)
        if not more and status not in (204, 304):
            fields["content-length"] = str(len(data))
        pairs = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in fields.items()]
        start = {"type": "http.response.start", "status": status, "headers": pairs}
        try:
            async with self._turn:
                if status:
                    await self._send(start)
                await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except (OSError, RuntimeError):  # servers raise the one or the other when a client is gone
            self.lose()


class ASGIRun:
    """An ASGI application in one event loop: the lifespan that it holds open, and its endpoint."""

    def __init__(self, server: Server, options: Msg) -> None:
        self.server, self.options = server, options
        self.endpoint: Endpoint | None = None
        self.stack = contextlib.AsyncExitStack()
        self.starting: asyncio.Future[None] | None = None

    async def start(self) -> Endpoint:
        """Enter the server's lifespan; all requests that come meanwhile wait for it."""
        while self.starting is not None and not self.starting.done():
            await asyncio.wait([self.starting])
        if self.starting is None:
            self.starting = asyncio.get_running_loop().create_future()
            try:
                await self.stack.enter_async_context(self.server.lifespan_open())
            except BaseException:
                starting, self.starting = self.starting, None
                starting.cancel()  # the next one tries again
                raise
            self.starting.set_result(None)
        if self.endpoint is None:
            self.endpoint = Endpoint(self.server, **self.options)
        return self.endpoint

    async def close(self, grace: float) -> None:
        """End all sessions, then the lifespan."""
        if self.endpoint is not None:
            await self.endpoint.close(grace)
        self.starting = self.endpoint = None
        await self.stack.aclose()


class ASGIApp:
    """A server as an ASGI application, for uvicorn, hypercorn, granian, or a mount."""

    def __init__(
        self, server: Server, *, max_body: int = MAX_MESSAGE_BYTES, grace: float = GRACE_SECONDS,
        **options: Any,
    ) -> None:  # fmt: skip
        check_kinds(ASGIApp, {"max_body": max_body, "grace": grace})
        check_options(max_body, options)
        self.server, self.options, self.max_body, self.grace = server, options, max_body, grace
        self._runs: dict[asyncio.AbstractEventLoop, ASGIRun] = {}
        self._warned = False
        self._unfinished = 0  # bytes of bodies that are not complete, of all requests

    async def __call__(self, scope: Msg, receive: Any, send: Any) -> None:
        """Serve one connection of an ASGI server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            raise RuntimeError(f"mcp_lite serves no {scope['type']}")

    async def _lifespan(self, receive: Any, send: Any) -> None:
        while True:
            event = (await receive())["type"]
            try:
                await (self.run_here().start() if event == "lifespan.startup" else self.close())
            except Exception as exc:
                await send({"type": event + ".failed", "message": str(exc)})
                return
            await send({"type": event + ".complete"})
            if event == "lifespan.shutdown":
                return

    def run_here(self) -> ASGIRun:
        """Return what serves in this event loop: each has its own."""
        loop = asyncio.get_running_loop()
        if loop not in self._runs:
            for old in [each for each in self._runs if each.is_closed()]:
                del self._runs[old]
            self._runs[loop] = ASGIRun(self.server, self.options)
        return self._runs[loop]

    async def close(self) -> None:
        """End all sessions of this event loop, and the lifespan."""
        run = self._runs.pop(asyncio.get_running_loop(), None)
        if run is not None:
            await run.close(self.grace)

    async def _serve(self, scope: Msg, receive: Any, send: Any) -> None:
        # A mounted application is told of no lifespan.
        endpoint, response = await self.run_here().start(), ASGIResponse(send)
        request = self._request(scope, endpoint.path)
        self._warn(scope, endpoint)
        try:
            who = await endpoint.screen(request)
            body = await self._body(receive)
        except ProtocolError as exc:
            await endpoint.refuse(response, exc)
            return
        if body is None:
            return
        # In tasks of their own: whatever becomes of this connection, the request goes on.
        request = request._replace(body=body, who=who)
        endpoint.tasks.spawn(self._answer(endpoint, request, response))
        if response.done:
            return
        watch = asyncio.ensure_future(self._watch(receive, response))
        try:
            await response.finished()
        finally:
            response.lose()
            watch.cancel()
            await asyncio.wait([watch])

    def _warn(self, scope: Msg, endpoint: Endpoint) -> None:
        """Say once that others than this machine can come in, if nothing keeps them out."""
        host = (scope.get("server") or ("localhost",))[0] or "localhost"
        if not self._warned and not endpoint.entrance.closed and not is_loopback(host):
            if scope["server"][1] is not None:  # None for a Unix socket
                self._warned = True
                warn_of_open_door(host)

    def _request(self, scope: Msg, endpoint_path: str) -> HTTPRequest:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            # RFC 9110 §5.5 -- white space around a value is none of it; not all servers know
            key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        root, path = scope.get("root_path", "").rstrip("/"), scope["path"]
        if root and f"{path}/".startswith(f"{root}/"):
            path = path[len(root) :]
        if root and path in ("", "/"):
            path = endpoint_path  # mounted where the endpoint is to be
        client = scope.get("client") or ("",)
        query = scope.get("query_string", b"").decode("latin-1")
        return HTTPRequest(scope["method"], path, query, headers, b"", str(client[0]), root,
                           scope.get("scheme", "http"))  # fmt: skip

    async def _answer(self, endpoint: Endpoint, request: HTTPRequest, response: Response) -> None:
        try:
            await endpoint(request, response)
        except Exception as exc:
            logger.error("%s %s failed", request.method, request.path, exc_info=exc)
            await response.send(500, {})
        except asyncio.CancelledError:
            response.lose()
            raise

    async def _body(self, receive: Any) -> bytes | None:
        body = bytearray()
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                piece = message.get("body", b"")
                body += piece
                self._unfinished += len(piece)
                if len(body) > self.max_body:
                    problem = f"the body is longer than {self.max_body} bytes"
                    raise LimitExceeded(problem, http_status=413)
                if not message.get("more_body"):
                    return bytes(body)
                if self._unfinished > MAX_UNFINISHED_BYTES:
                    raise ProtocolError(TOO_MANY_BODIES, TOO_BUSY, http_status=503)
        finally:
            self._unfinished -= len(body)

    async def _watch(self, receive: Any, response: Response) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        response.lose()


ENGINES["asgi"] = ASGIApp

###############################################################################
# 42. HTTP client
###############################################################################
# Uses sections 1 to 3, 25, 31, 32 and 34.
#
# Problem.  A client wants its request answered, over connections that are kept alive, through
#           proxies and TLS, by servers that may close at any moment.
# Rules.    1. A client sends a request once: whether one that got no answer was served, nobody
#              knows.
#           2. Redirects stay within the origin; so do credentials.
# Plan.     HTTPAnswer, one answer being read; HTTPClient, the pool; proxies.
# Not here. HTTP/2, compression, cookies.

MAX_IDLE_CONNECTIONS = 32  # that a client keeps to one server
MAX_REDIRECTS = 5  # of one request, and only within the origin
CONNECT_SECONDS = 10.0  # to reach a server
HEADERS_SECONDS = 60.0  # for the head of its answer, where no request's patience applies
REUSE_SECONDS = 30.0  # for which an idle connection is trusted; servers close after 60 or so
LOOK_SECONDS = 1.0  # of idleness, after which the loop has to look at the socket first


def client_ssl(ssl: Any) -> Any:
    """Return an SSLContext from one, from the path of a CA file, or with the system's roots."""
    from ssl import SSLContext, create_default_context

    return ssl if isinstance(ssl, SSLContext) else create_default_context(cafile=ssl or None)


#: The two ends of a stream connection.
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def is_quiet(reader: asyncio.StreamReader) -> bool:
    """Return whether nothing has come, and nothing ended, while nobody was reading.

    A first step into read() comes back at once with what is there, or else waits. If it waits, it
    is ended, which leaves no trace; what it has read is lost with its connection.
    """
    reading = reader.read(1)
    try:
        reading.send(None)
    except (StopIteration, OSError):
        return False
    reading.close()
    return True


class HTTPAnswer:
    """The answer to a request of ours, while it is read."""

    def __init__(
        self, url: URL, method: str, stream: Stream, done: Callable[[HTTPAnswer], None]
    ) -> None:
        self.url, self.stream = url, stream
        self.decoder = ResponseDecoder(method)
        self.pieces: deque[bytes] = deque()
        self.head = ResponseHead(0, "", (1, 1), {})
        self._done: Callable[[HTTPAnswer], None] | None = done

    async def read_head(self) -> None:
        """Read until the head is there."""
        while self.decoder.head is None:
            await self._more()
        self.head = self.decoder.head

    async def _more(self) -> None:
        try:
            if self.decoder.error is not None:  # it came in the same read as the last pieces
                raise self.decoder.error
            data = await self.stream[0].read(READ_BYTES)
            self.pieces += self.decoder.feed(data) if data else self.decoder.eof()
        except (OSError, ProtocolError) as exc:
            raise ConnectionClosed(f"{self.url}: {exc}") from exc

    async def piece(self) -> bytes:
        """Return the next piece of the body; b"" at its end."""
        while not self.pieces and not self.decoder.done:
            await self._more()
        return self.pieces.popleft() if self.pieces else b""

    async def body(self, limit: int = MAX_MESSAGE_BYTES) -> bytes:
        """Return the rest of the body; LimitExceeded if it is longer than `limit`."""
        whole = bytearray()
        while piece := await self.piece():
            whole += piece
            if len(whole) > limit:
                raise LimitExceeded(f"{self.url}: the answer is longer than {limit} bytes")
        return bytes(whole)

    def close(self) -> None:
        """Give the connection back if it can be used again, else close it."""
        done, self._done = self._done, None
        if done is not None:
            done(self)


class IdleConnection(NamedTuple):
    """A connection without a request, and for how long it is trusted."""

    since: float
    until: float
    stream: Stream


def trust_seconds(headers: Mapping[str, str]) -> float:
    """Return for how long a connection is trusted after an answer; its server may say for less.

    >>> trust_seconds({}), trust_seconds({"keep-alive": "timeout=5, max=100"})
    (30.0, 4.0)
    """
    told = re.search(r"\btimeout=([0-9]{1,6})\b", headers.get("keep-alive", ""))
    # A second less, since the request must arrive before the server hangs up.
    return min(REUSE_SECONDS, max(float(told[1]) - 1, 0.0)) if told else REUSE_SECONDS


class HTTPClient:
    """Connections to one server, kept alive and used again."""

    def __init__(
        self, url: URL, *, ssl: Any = None, uds: str | None = None,
        admit: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.url, self.uds = url, uds
        #: looks at the address that was reached, and raises ConnectionClosed if nothing may be
        #: sent there; a proxy reaches the server in our place, so nobody can look then
        self.admit = admit
        self.ssl: Any = client_ssl(ssl) if url.scheme == "https" else None
        self.proxy = None if uds else proxy_for(url, os.environ)
        self.idle: list[IdleConnection] = []
        self.busy: set[HTTPAnswer] = set()
        self.stopped = False

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"",
        patience: float | None = HEADERS_SECONDS, redirects: int = MAX_REDIRECTS,
    ) -> HTTPAnswer:  # fmt: skip
        """Send a request and return its answer when the head is there.

        So many redirects within the origin are followed. Raises ConnectionClosed with the URL and
        the reason.
        """
        for _ in range(redirects + 1):
            answer = await self._send(method, target, headers, body, patience)
            target = self._redirected(answer, method)
            if not target:
                return answer
            answer.close()
        raise ConnectionClosed(f"{self.url} redirects more than {redirects} times")

    def _redirected(self, answer: HTTPAnswer, method: str) -> str:
        """Return the target of a redirect that can be followed; "" if the answer is none."""
        from urllib.parse import urldefrag, urljoin

        status, location = answer.head.status, answer.head.headers.get("location")
        if status not in (301, 302, 303, 307, 308) or location is None:
            return ""
        try:
            where = parse_url(urldefrag(urljoin(str(answer.url), location))[0])
        except ValueError as exc:
            problem = f"nowhere: {exc}"
        else:
            problem = ""
            if where[:4] != self.url[:4]:  # headers and body may hold secrets: they stay here
                problem = f"another origin, {where}: refused"
            elif method != "GET" and status not in (307, 308):  # RFC 9110 §15.4 -- becomes a GET
                problem = f"a GET of {where} in place of a {method}: use {where}"
        if problem:
            answer.close()
            raise ConnectionClosed(f"{answer.url} redirects to {problem}")
        return where.target

    async def _send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes,
        patience: float | None,
    ) -> HTTPAnswer:  # fmt: skip
        url, fields = self.url._replace(target=target), {"host": self.url.authority}
        if self.proxy and url.scheme == "http":
            target = str(url)
            fields.update(self.proxy.headers)
        data = encode_request(method, target, {**fields, **headers}, body)
        answer = HTTPAnswer(url, method, await self._connection(), self._take_back)
        self.busy.add(answer)
        try:
            await asyncio.wait_for(self._talk(answer, data), patience)
        except BaseException as exc:
            answer.close()
            if isinstance(exc, asyncio.TimeoutError):
                problem = f"{url} sent no answer within {patience:g} seconds"
                raise ConnectionClosed(problem) from None
            if isinstance(exc, OSError):
                raise ConnectionClosed(f"{url}: {exc}") from exc
            raise
        return answer

    async def _talk(self, answer: HTTPAnswer, data: bytes) -> None:
        answer.stream[1].write(data)
        await answer.stream[1].drain()
        await answer.read_head()

    async def _connection(self) -> Stream:
        now = asyncio.get_running_loop().time()
        while self.idle:
            since, until, (reader, writer) = self.idle.pop()
            if now - since > LOOK_SECONDS:
                # A connection that the server has closed is found out before anything is sent on
                # it: the loop looks at the socket once, and tells the reader in its next round.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            # RFC 9112 §9.2 -- data that nobody asked for "MUST NOT" be taken for an answer
            usable = not writer.is_closing() and now < until
            if usable and is_quiet(reader):
                return reader, writer
            writer.close()
        try:
            return await asyncio.wait_for(self._open(), CONNECT_SECONDS)
        except asyncio.TimeoutError:
            reason: Any = f"no connection within {CONNECT_SECONDS:g} seconds"
        except (OSError, UnicodeError) as exc:  # the latter for names that no DNS can have
            reason = exc
        raise ConnectionClosed(f"cannot reach {self.url}: {reason}")

    def _take_back(self, answer: HTTPAnswer) -> None:
        self.busy.discard(answer)
        good = answer.decoder.reusable and not self.stopped
        if good and len(self.idle) < MAX_IDLE_CONNECTIONS:
            now = asyncio.get_running_loop().time()
            until = now + trust_seconds(answer.head.headers)
            self.idle.append(IdleConnection(now, until, answer.stream))
        else:
            answer.stream[1].transport.abort()

    async def _open(self) -> Stream:
        secure: Msg = {"ssl": self.ssl, "server_hostname": self.url.host} if self.ssl else {}
        if self.uds is not None:
            return await asyncio.open_unix_connection(self.uds, **secure)
        if self.proxy is None:
            stream = await asyncio.open_connection(self.url.host, self.url.port, **secure)
            try:
                if self.admit is not None:
                    self.admit(stream[1].get_extra_info("peername")[0])
            except BaseException:
                stream[1].transport.abort()
                raise
            return stream
        stream = await asyncio.open_connection(self.proxy.url.host, self.proxy.url.port)
        return await self._tunnel(stream, self.proxy) if self.ssl else stream

    async def _tunnel(self, stream: Stream, proxy: Proxy) -> Stream:
        """Ask a proxy for a tunnel to the server, and begin TLS inside it. RFC 9110 §9.3.6"""
        reader, writer = stream
        try:
            host = f"[{self.url.host}]" if ":" in self.url.host else self.url.host
            target = f"{host}:{self.url.port}"
            answer = HTTPAnswer(proxy.url, "CONNECT", stream, lambda answer: None)
            fields = {"host": target, **proxy.headers}
            await self._talk(answer, encode_request("CONNECT", target, fields))
            if not answer.head.status < 300:
                problem = f"the proxy {proxy.url} refused: status {answer.head.status}"
                raise ConnectionClosed(problem)
            if sys.version_info >= (3, 11):
                await writer.start_tls(self.ssl, server_hostname=self.url.host)
                return stream
            # Before 3.11, a stream inside the tunnel is put together from its public parts.
            loop = asyncio.get_running_loop()
            reader = asyncio.StreamReader(loop=loop)
            protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
            inside: Any = await loop.start_tls(
                writer.transport, protocol, self.ssl, server_hostname=self.url.host
            )
            protocol.connection_made(inside)
            return reader, asyncio.StreamWriter(inside, protocol, reader, loop)
        except BaseException:
            writer.transport.abort()
            raise

    async def close(self) -> None:
        """Close all connections."""
        self.stopped = True
        for answer in list(self.busy):
            answer.close()
        for connection in self.idle:
            connection.stream[1].transport.abort()
        self.idle.clear()
        await asyncio.sleep(0)  # lets the transports go before the loop does


class Proxy(NamedTuple):
    """Where requests go instead, and what the proxy wants to be told."""

    url: URL
    headers: dict[str, str]


def proxy_for(url: URL, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that the environment names for a URL, if any.

    HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, in upper or lower case, less what NO_PROXY excepts;
    never for this machine itself. ValueError for one that is not reached by plain HTTP.
    """
    if is_loopback(url.host):
        return None

    def setting(name: str) -> str:
        # HTTP_PROXY in upper case can be set by the "Proxy" header of a CGI request.
        cgi = name == "http_proxy" and "REQUEST_METHOD" in environ
        return environ.get(name) or ("" if cgi else environ.get(name.upper(), ""))

    for pattern in re.split(r"[\s,]+", setting("no_proxy").lower()):
        name = pattern.partition(":")[0].lstrip("*.")
        if pattern == "*" or (name and f".{url.host}".endswith(f".{name}")):
            return None
    text = setting(f"{url.scheme}_proxy") or setting("all_proxy")
    if not text:
        return None
    found = re.fullmatch(r"(?:http://)?(?:([^@]*)@)?([^/@]+)/?", text, re.IGNORECASE)
    if found is None:
        raise ValueError(f"not a usable proxy, http://[user:password@]host:port: {text!r}")
    headers = {}
    if found[1] is not None:
        from urllib.parse import unquote_to_bytes

        secret = base64.b64encode(unquote_to_bytes(found[1])).decode()
        headers["proxy-authorization"] = f"Basic {secret}"  # RFC 7617 §2
    return Proxy(parse_url(f"http://{found[2]}"), headers)

###############################################################################
# 43. Streamable HTTP, the client's end
###############################################################################
# Uses sections 1 to 3, 7, 8, 27, 28, 31 to 36 and 42.
#
# Problem.  The client's end of the conversation: every message is a POST, answers come as JSON or
#           events, and connections may be cut at any byte.
# Rules.    1. A stream that was cut is taken up again after its last event, if the revision can.
#           2. Each request is answered or failed, whatever becomes of its connection.
#           3. A server that is down is not hammered. Whatever it says, a stream that ends at once,
#              each time, costs about one request a second at most, and fewer where nothing comes.
# Plan.     EventReader, one stream of events; Authorizer; StandaloneStream; HTTPTransport, and
#           its connector.
# Not here. Shaking hands again when the session is gone: the Client does that.

LISTEN_SECONDS = 2.0  # for the head of the standalone stream, before the first request


class EventReader:
    """The events of one answer, as they come. It begins where an earlier one was cut."""

    def __init__(self, answer: HTTPAnswer, earlier: EventReader | None = None) -> None:
        self.answer = answer
        self.decoder = SSEDecoder(earlier.last_id if earlier else "")
        self.decoder.retry_ms = earlier.retry_ms if earlier else None
        self.found: deque[Event] = deque()
        self.since = asyncio.get_running_loop().time()
        self.fruitful = False  # has it brought anything

    @property
    def last_id(self) -> str:
        """The id of the last event, for Last-Event-ID."""
        return self.decoder.last_id

    @property
    def retry_ms(self) -> int | None:
        """How long the server asks us to wait before the stream is opened again."""
        return self.decoder.retry_ms

    async def next(self) -> Event | None:
        """Return the next event; None when the stream has ended or was cut."""
        while not self.found:
            try:
                data = await self.answer.piece()
            except ConnectionClosed:
                return None
            if not data:
                return None
            before = self.last_id
            self.found += self.decoder.feed(data)
            self.fruitful = self.fruitful or bool(self.found) or self.last_id != before
        return self.found.popleft()

    def was_good(self) -> bool:
        """Return whether the stream brought anything, or at least stood for a while."""
        stood = asyncio.get_running_loop().time() - self.since
        return self.fruitful or stood >= STEADY_SECONDS


class Authorizer:
    """What a server wants to see in our requests before it lets them in; here, nothing.

    Section 47 derives from it what logs in.
    """

    async def headers(self, method: str, target: str, ask: bool) -> dict[str, str]:
        """Return what to send with a request to the server; a person may be asked if `ask`."""
        return {}

    async def settle(
        self, answer: HTTPAnswer, sent: Mapping[str, str], steps: list[str]
    ) -> bool:
        """Look at the answer to a request that had the headers `sent`; True to send it once more.

        `steps` notes what was done about this request so far. Raises AuthError.
        """
        return False

    async def close(self) -> None:
        """Stop asking a person, and finish what must not be lost."""

    async def send(
        self, transport: HTTPTransport, method: str, target: str, headers: Mapping[str, str],
        body: bytes = b"", patience: float | None = HEADERS_SECONDS,
    ) -> HTTPAnswer:  # fmt: skip
        """Send a request with what authorizes it, once more where a refusal has been mended."""
        steps: list[str] = []
        while True:
            own = await self.headers(method, target, not transport.closed)
            answer = await transport.http.send(method, target, {**headers, **own}, body, patience)
            again = None
            try:
                again = not transport.closed and await self.settle(answer, own, steps)
            finally:
                if again is not False:
                    # A login takes minutes, and servers close what is idle for seconds.
                    answer.stream[1].transport.abort()
                    answer.close()
            if not again:
                return answer


#: Each makes an Authorizer, for a transport, of what `auth=` was given; or None, for the next.
AUTHORIZERS: list[Callable[[HTTPTransport, Any], Authorizer | None]] = []


def authorizer_of(transport: HTTPTransport, auth: Any) -> Authorizer:
    """Return the Authorizer that a transport was given; TypeError if nothing makes one of it."""
    found = (make(transport, auth) for make in AUTHORIZERS if auth is not None)
    made = next((each for each in found if each is not None), None)
    if auth is not None and made is None:
        raise TypeError(f"auth={type(auth).__name__}: see section 47 for what it can be")
    return made or Authorizer()


class StandaloneStream:
    """The stream on which a legacy server says what belongs to no request of ours."""

    def __init__(self, transport: HTTPTransport) -> None:
        self.transport = transport
        self.listening: asyncio.Task[Any] | None = None

    async def begin(self) -> None:
        """Open the stream; messages may need it, so its head is waited for a moment."""
        if self.listening is not None:
            self.listening.cancel()
        opened = asyncio.get_running_loop().create_future()
        self.listening = self.transport.tasks.spawn(self._listen(opened))
        await asyncio.wait([opened, self.listening], timeout=LISTEN_SECONDS,
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip

    async def _listen(self, opened: asyncio.Future[Any]) -> None:
        """Keep the stream open, for as long as the server has one."""
        clock, pace = asyncio.get_running_loop().time, Pace()
        events: EventReader | None = None
        goes_on = True
        # `closed` is asked each time, since wait_for() may swallow a cancellation before 3.12.
        while goes_on and not self.transport.closed:
            before = events
            try:
                events, goes_on = await self._listen_once(events, opened)
            except AuthError as exc:
                logger.warning("%s announces nothing any more: %s", self.transport.url, exc)
                goes_on = False
            except MCPError as exc:
                logger.info("the standalone stream failed: %s", exc)
            _settle(opened, None, None)
            if goes_on:
                good = events is not None and events is not before and events.was_good()
                retry_ms = events.retry_ms if events else None
                await asyncio.sleep(pace.wait(retry_ms, good, clock()))

    async def _listen_once(
        self, before: EventReader | None, opened: asyncio.Future[Any]
    ) -> tuple[EventReader | None, bool]:
        """Read the stream until it ends; return how far it came, and whether there is more."""
        transport = self.transport
        async with transport.get_stream(before.last_id if before else "", None) as answer:
            if answer.head.status != 200:
                return before, self._may_come_back(answer.head, before)
            _settle(opened, None, None)
            events = EventReader(answer, before)
            await transport.read_events(events, None)
            return events, True

    def _may_come_back(self, head: ResponseHead, events: EventReader | None) -> bool:
        """Return whether to ask for the stream again, when it was refused.

        `events` is how far it came, if it was ever there.
        """
        if is_passing(head.status):
            return True
        if events is None:  # the server has no such stream, and says so, mostly by 405
            return False
        if head.status == 400 and events.last_id:  # the events that we have not seen are lost
            events.decoder.last_id = ""
            self.transport.interrupted(False)
            return True
        if head.status == 404 and self.transport.session_id is not None:
            # spec 2025-11-25: basic/transports#session-management -- the session is over
            self.transport.interrupted(True)
        else:
            problem = f"status {head.status} {head.reason}".rstrip()
            logger.warning("%s announces nothing any more: %s", self.transport.url, problem)
        return False


class HTTPTransport(Transport):
    """The client's end: every message is a POST, answers come as JSON or events.

    `headers` are sent with every request; a callable, plain or async, is asked each time. `ssl`
    is an SSLContext or the path of a CA file, `uds` the path of a Unix socket. `token`, or what it
    returns if it is callable, is sent as a Bearer token; `auth` says how to log in: section 47.
    """

    outlives_server = links_questions = True

    def __init__(
        self, url: str, *, headers: Any = None, token: Any = None, ssl: Any = None,
        uds: str | None = None, auth: Any = None,
    ) -> None:  # fmt: skip
        self.url = parse_url(url)
        self.name = url
        self.ssl = ssl
        self.http = HTTPClient(self.url, ssl=ssl, uds=uds)
        self._headers, self._token = headers, token
        self.auth = authorizer_of(self, auth)
        self.session_id: str | None = None
        self.rev: Revision | None = None
        #: by tool, the arguments that headers repeat
        self.mirrors: dict[str, list[Mirror]] = {}
        self.inbox: deque[Any] = deque()
        self.closed = False
        self.tasks = Tasks()
        #: requests of ours being answered: who sees to it, and which others share the answer
        self.running: dict[ReqId, tuple[asyncio.Task[Any], set[ReqId]]] = {}
        #: by the id of a question that came in an answer, the request of ours
        self.questions: dict[ReqId, ReqId] = {}
        self._sleeper: asyncio.Future[Any] | None = None
        self._room: asyncio.Future[Any] | None = None
        self._standalone = StandaloneStream(self)
        self._closing: asyncio.Task[Any] | None = None
        self._messages_target: str | None = None  # of the first revision's transport
        self._opening: asyncio.Future[Any] | None = None  # while there is no session yet
        self._reason = "closed the connection"

    async def read(self) -> list[Any]:
        """Return the messages that have come."""
        while not self.inbox and not self.closed:
            self._sleeper = asyncio.get_running_loop().create_future()
            await self._sleeper
        items, self.inbox = list(self.inbox), deque()
        if self._room is not None:
            _settle(self._room, None, None)
        return items

    async def _deliver(self, item: Any) -> None:
        while len(self.inbox) >= MAX_INBOX and not self.closed:
            if self._room is None or self._room.done():
                self._room = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._room])  # several streams may wait
        self.inbox.append(item)
        if self._sleeper is not None:
            _settle(self._sleeper, None, None)

    async def write(self, msg: Msg | list[Msg]) -> None:
        """POST a message. What goes wrong with a request is told to `failed`, by its id."""
        if self.closed:
            raise ConnectionClosed(f"{self.url} {self.explain()}")
        ids = {item["id"] for item in (msg if isinstance(msg, list) else [msg])
               if "method" in item and "id" in item}  # fmt: skip
        if self._opening is not None and not is_opening(msg):
            await asyncio.wait([self._opening])  # to know the session
        if not ids:
            await self._tell(msg)
            if isinstance(msg, dict) and msg.get("method") == "notifications/initialized":
                if self._messages_target is None:
                    await self._standalone.begin()
            return
        task = self.tasks.spawn(self._exchange(msg, ids))
        if not task.done():
            self.running.update((req_id, (task, ids)) for req_id in ids)

    async def _tell(self, msg: Msg | list[Msg]) -> None:
        """POST what wants no answer; a request has a patience of its own."""
        try:
            await asyncio.wait_for(self._post(msg, set()), HEADERS_SECONDS)
        except asyncio.TimeoutError:
            problem = f"{self.url} did not take a message within {HEADERS_SECONDS:g} seconds"
            raise ConnectionClosed(problem) from None

    async def _exchange(self, msg: Msg | list[Msg], ids: set[ReqId]) -> None:
        """POST requests, and see to it that each is answered or failed."""
        asked = set(ids)
        try:
            await self._post(msg, ids)
        except Exception as exc:
            problem = exc if isinstance(exc, MCPError) else ConnectionClosed(f"{self.url}: {exc!r}")
            problem.__cause__ = exc.__cause__ if problem is exc else exc
            for req_id in ids:  # those that are not answered by now
                self.failed(req_id, problem)
        finally:
            for req_id in asked:
                self.running.pop(req_id, None)
            gone = [key for key, req_id in self.questions.items() if req_id in asked]
            for key in gone:
                del self.questions[key]
            if self._opening is not None and is_opening(msg):
                _settle(self._opening, None, None)

    def abandon(self, req_id: ReqId) -> bool:
        """Stop waiting for an answer; in the modern era that tells the server."""
        if req_id in self.running:
            task, ids = self.running[req_id]
            ids.discard(req_id)
            if not ids:
                task.cancel()
        return self.rev is not None and self.rev.modern

    def asked_in(self, req_id: JSON) -> ReqId | None:
        """Return the request of ours in whose answer a question came; None if nobody knows."""
        return self.questions.get(req_id)

    async def fields(self, **more: str | None) -> dict[str, str]:
        """Return the headers of a request."""
        own, token = await value_from(self._headers), await value_from(self._token)
        out = {name.lower(): value for name, value in (own or {}).items()}
        if token is not None:
            out["authorization"] = f"Bearer {token}"  # RFC 6750 §2.1
        out["user-agent"] = out.get("user-agent", f"mcp_lite/{__version__}")
        if self.rev is not None and self.rev.version_header:
            out[VERSION_HEADER] = self.rev.name
        if self.session_id is not None:
            out[SESSION_HEADER] = self.session_id
        out["accept-encoding"] = "identity"  # a small answer must not unfold into a large one
        for name, value in more.items():
            if value is not None:  # an event id may be any text: UTF-8 goes as it is
                out[name.replace("_", "-")] = value.encode().decode("latin-1")
        return out

    async def _post(self, msg: Msg | list[Msg], ids: set[ReqId]) -> None:
        opening = is_opening(msg)
        headers = await self.fields(content_type=JSON_TYPE, accept=f"{JSON_TYPE}, {EVENT_TYPE}")
        if self.rev is not None and self.rev.modern and isinstance(msg, dict):
            headers.update(mirror_headers(msg, self.mirrors))
        target = self._messages_target or self.url.target
        answer = await self.auth.send(self, "POST", target, headers, encode(msg), None)
        try:
            status = answer.head.status
            if status >= 400:
                # spec 2025-11-25: basic/transports#backwards-compatibility -- "If it fails with the
                # following HTTP status codes"
                if opening and status in (400, 404, 405) and await self._fall_back(msg):
                    return
                if status == 404 and SESSION_HEADER in headers and not opening:
                    raise SessionExpired(f"{self.url} knows our session no longer")
                raise await self._problem(answer)
            if opening:
                self.session_id = answer.head.headers.get(SESSION_HEADER)
            if ids and self._messages_target is None:
                await self._read_answer(answer, ids)
            else:
                with contextlib.suppress(asyncio.TimeoutError):  # it says nothing, or ought to
                    await asyncio.wait_for(answer.body(), LINGER_SECONDS)
        finally:
            answer.close()

    async def _problem(self, answer: HTTPAnswer) -> MCPError:
        """Return the error that an HTTP status stands for; a JSON-RPC error in the body counts."""
        body = await answer.body()
        status = answer.head.status
        if status in (401, 403):  # whatever the body says, no other message would get further
            told = f"{answer.url} answered {status} {answer.head.reason}".rstrip()
            return AuthError(f"{told}: {first_line(body)}")
        with contextlib.suppress(ProtocolError):
            msg = decode(body)
            if classify(msg) is ERROR and status != 401:
                problem = msg["error"]
                text = problem["message"]
                if msg.get("id") is None:  # it may come from whatever stands between
                    text += f" (HTTP {status} from {answer.url})"
                return RemoteError(problem["code"], text, problem.get("data"))
        text = f"{answer.url} answered {status} {answer.head.reason}".rstrip()
        text += f": {first_line(body)}" if body.strip() else ""
        return ConnectionClosed(text)

    async def _read_answer(self, answer: HTTPAnswer, ids: set[ReqId]) -> None:
        """Read JSON or events, over many connections if need be, until `ids` are answered."""
        kind = parse_media_type(answer.head.headers.get("content-type", ""))[0]
        if kind == JSON_TYPE:
            body = await answer.body()
            try:
                await self._take(body, ids)
            except ProtocolError as exc:
                problem = f"{answer.url} answered with {exc}: {first_line(body)}"
                raise ConnectionClosed(problem) from None
        elif kind != EVENT_TYPE:
            what = f"{kind or 'no content type'}: {first_line(await answer.body())}"
            raise ConnectionClosed(f"{answer.url} answered with {what}")
        else:
            await self._read_stream(EventReader(answer), ids)
        if ids:
            raise ConnectionClosed(f"{answer.url} ended its answer without a response")

    async def _read_stream(self, events: EventReader, ids: set[ReqId]) -> None:
        """Read events until `ids` are answered; take the stream up again where it was cut."""
        clock, pace, failures = asyncio.get_running_loop().time, Pace(), 0
        await self.read_events(events, ids)
        # spec: basic/transports/streamable-http#receiving-messages -- "Resumable SSE streams
        # via Last-Event-ID are not supported", any more
        modern = self.rev is not None and self.rev.modern
        while ids and sendable(events.last_id) and failures < MAX_RESUMES and not modern:
            # spec 2025-11-25: basic/transports#sending-messages-to-the-server -- "The client MUST
            # respect the retry field"
            await asyncio.sleep(pace.wait(events.retry_ms, failures == 0, clock()))
            before = events.last_id
            events = await self._resume(events, ids)
            failures = failures + 1 if events.last_id == before else 0

    async def _resume(self, events: EventReader, ids: set[ReqId]) -> EventReader:
        """Take a stream up again after its last event; return how far it came."""
        problem: MCPError | None = None
        with contextlib.suppress(ConnectionClosed):  # the server may be there the next time
            async with self.get_stream(events.last_id, HEADERS_SECONDS) as answer:
                if answer.head.status == 200:
                    events = EventReader(answer, events)
                    await self.read_events(events, ids)
                else:
                    problem = await self._problem(answer)
        if problem is not None:
            raise problem
        return events

    @contextlib.asynccontextmanager
    async def get_stream(self, last_id: str, patience: float | None) -> AsyncIterator[HTTPAnswer]:
        """Ask for a stream of events, those after the event with `last_id`."""
        headers = await self.fields(accept=EVENT_TYPE, last_event_id=sendable(last_id))
        answer = await self.auth.send(self, "GET", self.url.target, headers, b"", patience)
        try:
            yield answer
        finally:
            answer.close()

    async def read_events(self, events: EventReader, ids: set[ReqId] | None) -> None:
        """Deliver the messages of a stream, until it ends or all of `ids` are answered."""
        while ids is None or ids:
            event = await events.next()
            if event is None:
                return
            if event.event == "message" and event.data:
                await self._take(event.data.encode(), ids)

    async def _take(self, data: bytes, ids: set[ReqId] | None) -> None:
        """Deliver a message, noting which of our requests it answers."""
        msg = decode(data)
        items = msg if isinstance(msg, list) else [msg]
        # Some servers answer with an array whatever the revision: its messages are taken singly.
        singly = self.rev is not None and not self.rev.batching
        if ids and len(ids) == 1 and isinstance(msg, dict) and "method" in msg and "id" in msg:
            self.questions[msg["id"]] = next(iter(ids))
        for item in items if singly else [msg]:
            await self._deliver(item)
        for item in items:
            if ids and isinstance(item, dict) and "method" not in item and is_id(item.get("id")):
                ids.discard(item["id"])

    # HTTP+SSE, the transport of the first revision.

    async def _fall_back(self, msg: Msg | list[Msg]) -> bool:
        """Try the first revision's transport; return whether the server speaks it."""
        if self._messages_target is not None:
            return False
        found = asyncio.get_running_loop().create_future()
        reading = self.tasks.spawn(self._read_pair(found))
        try:
            self._messages_target = await asyncio.wait_for(found, CONNECT_SECONDS)
        except asyncio.TimeoutError:
            reading.cancel()
            raise ConnectionClosed(f"{self.url} sent no endpoint event") from None
        if self._messages_target is None:
            return False
        await self._post(msg, set())
        return True

    async def _read_pair(self, found: asyncio.Future[Any]) -> None:
        """Read the one stream on which everything comes, until it ends.

        `found` gets the target for what we say; None if the server has no such stream.
        """
        reached = False
        try:
            async with self.get_stream("", HEADERS_SECONDS) as answer:
                kind = parse_media_type(answer.head.headers.get("content-type", ""))[0]
                if answer.head.status != 200 or kind != EVENT_TYPE:
                    return
                reached, events = True, EventReader(answer)
                while (event := await events.next()) is not None:
                    await self._hear_pair(event, found)
                self._reason = "ended its stream"
        except (MCPError, ValueError) as exc:
            if reached:
                self._reason = f"sent a stream that cannot be read: {exc}"
            elif isinstance(exc, AuthError):
                _settle(found, None, exc)
        finally:
            if found.done():
                self._end()
            elif reached:
                found.set_exception(ConnectionClosed(f"{self.url} {self._reason}"))
            else:
                found.set_result(None)

    async def _hear_pair(self, event: Event, found: asyncio.Future[Any]) -> None:
        from urllib.parse import urljoin

        if event.event == "endpoint":
            where = parse_url(urljoin(str(self.url), event.data))
            if where[:4] != self.url[:4]:  # it gets our messages, and our credentials
                raise ProtocolError(f"it names an endpoint elsewhere, {where}")
            _settle(found, where.target, None)
        elif event.event == "message" and event.data:
            await self._deliver(event.data.encode())

    # The end.

    def agreed(self, rev: Revision) -> None:
        """Hear the revision, which later requests name."""
        self.rev = rev

    def learn_tool(self, tool: Msg) -> None:
        """Note which arguments of a tool go into headers, too."""
        self.mirrors[tool["name"]] = mirrors_of(tool.get("inputSchema"))

    def renew(self) -> None:
        """Forget the session, before a new handshake."""
        self.session_id, self.rev = None, None
        self._opening = asyncio.get_running_loop().create_future()

    def explain(self) -> str:
        """Return why the channel ended."""
        return self._reason

    def _end(self) -> None:
        self.closed = True
        for waiter in (self._sleeper, self._room, self._opening):
            if waiter is not None:
                _settle(waiter, None, None)

    async def close(self) -> None:
        """End the session, if there is one, and all connections."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._end()
        if self.session_id is not None:
            with contextlib.suppress(MCPError, ValueError, asyncio.TimeoutError):
                await asyncio.wait_for(self._delete(), GRACE_SECONDS)
        await self.auth.close()
        await self.tasks.close()
        await self.http.close()

    async def _delete(self) -> None:
        # spec 2025-11-25: basic/transports#session-management -- "SHOULD send an HTTP DELETE"
        answer = await self.auth.send(self, "DELETE", self.url.target, await self.fields())
        answer.close()


def is_opening(msg: Msg | list[Msg]) -> bool:
    """Return whether a message begins a handshake."""
    return isinstance(msg, dict) and msg.get("method") == "initialize"


def is_passing(status: int) -> bool:
    """Return whether a status speaks of a trouble that will pass: too much, or not now.

    >>> [status for status in (200, 400, 404, 405, 409, 429, 503) if is_passing(status)]
    [409, 429, 503]
    """
    return status in (409, 429) or status >= 500


def sendable(event_id: str) -> str | None:
    """Return an event's id if a header can carry it."""
    return None if not event_id or re.search(r"[\x00-\x08\x0a-\x1f\x7f]", event_id) else event_id


def first_line(body: bytes) -> str:
    """Return the beginning of a body, for an error message."""
    return body.decode("utf-8", "replace").strip().split("\n")[0][:200]


def is_url(target: Any) -> bool:
    """Return whether a target is the URL of a server.

    >>> is_url("https://example.com/mcp"), is_url("python3 server.py")
    (True, False)
    """
    return isinstance(target, str) and re.match(r"https?://", target, re.IGNORECASE) is not None


CONNECTORS.append(Connector("a URL", is_url, HTTPTransport))

# =============================================================================
# Part VII. Authorization
# =============================================================================

###############################################################################
# 44. OAuth rules
###############################################################################
# Pure. Uses sections 1, 2, 19, 31, 32 and 34.
#
# Problem.  A server answers 401. Its client must find out who gives tokens for this server, get
#           one that is good for nothing else, and let nobody lead it astray on the way.
# Rules.    1. A document counts only if it names what it was asked for: the metadata of a resource
#              name the resource, the metadata of an authorization server name the issuer.
#           2. Every URL is https, or http to this machine. None is used that did not pass here.
#           3. Names are compared as they are, without any folding; the one exception says why.
#           4. An answer that anybody could have sent to us is no answer: `state` and `iss` decide
#              before anything else in it is looked at.
#           5. Every refusal names the field, the value and what was expected.
# Plan.     In the order of a login: the challenge and what follows from it; metadata of the
#           resource; metadata of the authorization server; scope; registration; the request that
#           a browser carries, and its answer; the token request, and its answer.
# Not here. Fetching and keeping: section 46. Waiting: section 47. Signatures: section 45. The
#           server's side: section 48.
#
# The parties have names. The *resource* is the MCP server. The *authorization server* gives tokens
# for it, and its name is its *issuer*, a URL. The *client* is this program. RFC 6749 §1.1

MAX_TOKEN_BYTES = 8192  # an access token: it goes into a header, and heads end at 32 KiB
MAX_SCOPE_CHARS = 2000  # all scopes together; they go into a URL, and many servers take 8 KiB
LONGEST_LIFE_SECONDS = 10 * 365 * 86400  # of a token, whatever the server says
REFRESH_SECONDS = 30  # before a token expires it is refreshed; a tenth of its life if that is less
MAX_SAID_CHARS = 200  # of a server's own words in an error of ours: a sentence

ACCESS_TOKEN = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+")  # no quotes, no commas
AUTH_PARAM = re.compile(
    rf'({TOKEN})[ \t]*=[ \t]*(?:({TOKEN})|"((?:[^"\\]|\\.)*)")(?=[ \t]*(?:,|$))'
)
AUTH_SCHEME = re.compile(rf"({TOKEN})(?: +([\w.~+/-]+=*)(?=[ \t]*(?:,|$)))?(?=[ \t,]|$)", re.ASCII)
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
SERVER_METADATA = "/.well-known/oauth-authorization-server"
OPENID_METADATA = "/.well-known/openid-configuration"

# The challenge.


class Challenge(NamedTuple):
    """One way to be let in, of those that a 401 or a 403 offers. RFC 9110 §11.3"""

    scheme: str  # lowercase
    params: dict[str, str]  # names lowercase; `token68`, if the scheme takes such a text


def parse_challenges(text: str) -> list[Challenge]:
    """Return the challenges of a WWW-Authenticate field, up to what is not one. RFC 9110 §11.6.1

    >>> parse_challenges('Basic realm="a, Bearer b=c", bearer Scope = "x y", error=e')[1]
    Challenge(scheme='bearer', params={'scope': 'x y', 'error': 'e'})
    >>> parse_challenges("Negotiate abc==")
    [Challenge(scheme='negotiate', params={'token68': 'abc=='})]
    """
    found: list[Challenge] = []
    at = 0
    while True:
        while at < len(text) and text[at] in " \t,":
            at += 1
        param = AUTH_PARAM.match(text, at) if found else None
        if param is not None:
            quoted = re.sub(r"\\(.)", r"\1", param[3] or "")
            found[-1].params.setdefault(param[1].lower(), param[2] or quoted)
            at = param.end()
            continue
        scheme = AUTH_SCHEME.match(text, at)
        if scheme is None:  # the end, or something that nobody can read
            return found
        found.append(Challenge(scheme[1].lower(), {"token68": scheme[2]} if scheme[2] else {}))
        at = scheme.end()


def our_challenge(text: str) -> Challenge:
    """Return the challenge that we act upon: Bearer, else DPoP; an empty Bearer if there is none.

    >>> our_challenge('DPoP algs="ES256", Bearer scope="a"')
    Challenge(scheme='bearer', params={'scope': 'a'})
    """
    challenges = parse_challenges(text)
    for scheme in ("bearer", "dpop"):
        for challenge in challenges:
            if challenge.scheme == scheme:
                return challenge
    return Challenge("bearer", {})


#: What is done about a refused request: by status, `error`, and whether it carried a token. The
#: first step of a row that is possible, and not used up for this request, is taken.
#: spec: basic/authorization/index#error-handling
STEPS: dict[tuple[int, str, bool], tuple[str, ...]] = {
    (401, "", False): ("log in",),
    (401, "", True): ("repeat", "refresh", "log in"),
    (401, "use_dpop_nonce", True): ("nonce", "repeat", "refresh", "log in"),
    (403, "insufficient_scope", False): ("log in",),
    (403, "insufficient_scope", True): ("step up",),
}
#: How often, for one request.
#: spec: basic/authorization/index#step-up-authorization-flow -- "no more than a few times"
STEP_LIMITS = {"nonce": 1, "repeat": 1, "refresh": 1, "log in": 1, "step up": 2}


def next_step(
    status: int, error: str, token: bool, possible: Iterable[str], steps: Sequence[str]
) -> str:
    """Return what to do about a refusal, "" for nothing: see STEPS.

    >>> next_step(401, "invalid_token", True, ["refresh", "log in"], [])
    'refresh'
    >>> next_step(401, "invalid_token", True, ["refresh", "log in"], ["refresh", "log in"])
    ''
    """
    row = STEPS.get((status, error, token)) or STEPS.get((status, "", token), ())
    for step in row:
        if step in possible and steps.count(step) < STEP_LIMITS[step]:
            return step
    return ""


# URLs.


def show(value: JSON) -> str:
    r"""Return a value of the other side for an error message: one line, bounded, no controls.

    >>> show("a\x1b[2J\nb"), show(7)
    ('"a\\u001b[2J\\nb"', '7')
    """
    return json.dumps(value, default=str)[:MAX_SAID_CHARS]


def oauth_url(value: JSON, what: str) -> URL:
    """Return a URL that a document or a user named, as `what`; AuthError if it must not be used.

    spec: basic/authorization/security-considerations#communication-security

    >>> str(oauth_url("https://As.example/token?a=b", "token_endpoint"))
    'https://as.example/token?a=b'
    >>> oauth_url("http://as.example/token", "token_endpoint")
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: token_endpoint is "http://as.example/token": it must begin with https://
    """
    try:
        url = parse_url(value if isinstance(value, str) else "")
    except ValueError as exc:
        raise AuthError(f"{what} is {show(value)}: {exc}") from None
    if url.scheme != "https" and not is_loopback(url.host):
        raise AuthError(f"{what} is {show(value)}: it must begin with https://")
    return url._replace(authority=url.authority.lower(), host=url.host.lower())


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the Internet, not to a machine or a network in it.

    >>> is_public("93.184.216.34"), is_public("169.254.169.254"), is_public("::ffff:10.0.0.1")
    (True, False, False)
    """
    from ipaddress import IPv6Address, ip_address

    found: Any = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        # What these carry is where the packets go in the end.
        inner: Any = found.ipv4_mapped or found.sixtofour or (found.teredo and found.teredo[1])
        if int(found) >> 32 == 0x64FF9B << 64:  # 64:ff9b::/96, RFC 6052 §2.1
            inner = ip_address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return bool(found.is_global and not found.is_multicast)


# The metadata of the resource. RFC 9728


def resource_metadata_urls(server: URL) -> list[str]:
    """Return where a server's metadata are, if its challenge names no place. RFC 9728 §3.1

    >>> resource_metadata_urls(parse_url("https://a.example/mcp"))[0]
    'https://a.example/.well-known/oauth-protected-resource/mcp'
    """
    root = f"{server.scheme}://{server.authority}{RESOURCE_METADATA}"
    rest = server.target[1:] if server.target[:2] in ("/", "/?") else server.target
    # spec: basic/authorization/authorization-server-discovery
    # #protected-resource-metadata-discovery-requirements -- the path form, then the root form
    return [root + rest, root] if rest else [root]


def covers(resource: URL, server: URL) -> bool:
    """Return whether a resource is the server's URL, or a parent of it on the same origin.

    RFC 9728 §3.3 wants them to be equal. Servers of MCP publish parents, too.

    >>> covers(parse_url("https://a.example"), parse_url("https://a.example/mcp"))
    True
    >>> covers(parse_url("https://a.example/mcp"), parse_url("https://a.example/mcp2"))
    False
    """
    if (resource.scheme, resource.host.lower(), resource.port) != (
        server.scheme, server.host.lower(), server.port,
    ):  # fmt: skip
        return False
    if "?" in resource.target:
        return resource.target == server.target
    path = server.target.partition("?")[0]
    return f"{path.rstrip('/')}/".startswith(f"{resource.target.rstrip('/')}/")


class ProtectedResource(NamedTuple):
    """What is known of the server that wants a token. RFC 9728 §2"""

    resource: str  # the name of it that requests carry
    issuers: list[str]
    scopes: list[str]
    dpop: bool  # tokens must be bound to a key of ours


def read_protected(doc: JSON, server: URL, where: str) -> ProtectedResource:
    """Check the metadata of a resource, found at `where`; AuthError if they must not be used.

    >>> read_protected({"resource": "https://evil.example"}, parse_url("https://a.example"), "x")
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: x: resource is "https://evil.example", not https://a.example/
    """
    doc = doc if isinstance(doc, dict) else {}
    resource = doc.get("resource")
    # RFC 9728 §3.3 -- "MUST NOT be used" if it names another
    if not covers(oauth_url(resource, f"{where}: resource"), server):
        raise AuthError(f"{where}: resource is {show(resource)}, not {server}")
    issuers = strings(doc, "authorization_servers")
    if not issuers:
        raise AuthError(f"{where}: authorization_servers names none")
    bound = doc.get("dpop_bound_access_tokens_required") is True
    return ProtectedResource(str(resource), issuers, strings(doc, "scopes_supported"), bound)


def strings(doc: Msg, name: str) -> list[str]:
    """Return a member that is a list of strings, without what is none.

    >>> strings({"a": ["x", 1, "x"]}, "a"), strings({}, "a")
    (['x'], [])
    """
    value = doc.get(name)
    items = value if isinstance(value, list) else []
    return list(dict.fromkeys(item for item in items if isinstance(item, str)))


# The metadata of the authorization server. RFC 8414, OpenID Connect Discovery 1.0


def server_metadata_urls(issuer: str) -> list[str]:
    """Return where the metadata of an issuer are, in the order in which to look.

    spec: basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery

    >>> for url in server_metadata_urls("https://as.example/tenant1"): print(url)
    https://as.example/.well-known/oauth-authorization-server/tenant1
    https://as.example/.well-known/openid-configuration/tenant1
    https://as.example/tenant1/.well-known/openid-configuration
    """
    url = oauth_url(issuer, "the issuer")
    if "?" in url.target:  # RFC 8414 §2; a fragment was refused already
        raise AuthError(f"the issuer is {show(issuer)}: it must have no query")
    root, path = f"{url.scheme}://{url.authority}", url.target.rstrip("/")
    found = [root + SERVER_METADATA + path, root + OPENID_METADATA + path]
    return [*found, root + path + OPENID_METADATA] if path else found


def same_issuer(given: JSON, asked: str) -> bool:
    """Return whether metadata name the issuer that they were asked of.

    They must be identical. RFC 8414 §3.3. We let one slash pass at the end of an issuer without a
    path: Google's servers publish `https://accounts.google.com/` as the resource's issuer and
    name themselves without the slash; others do the reverse; and both forms have the same
    well-known URL, so that no other document could be meant. Nowhere else is this done.

    >>> same_issuer("https://a.example", "https://a.example/")
    True
    >>> same_issuer("https://a.example/t/", "https://a.example/t")
    False
    """
    if given == asked:
        return True
    if not isinstance(given, str) or not re.fullmatch(r"https?://[^/]+/?", given):
        return False
    return given.rstrip("/") == asked.rstrip("/")


def read_server_metadata(doc: JSON, issuer: str, where: str) -> Msg:
    """Check the metadata of an authorization server and return them; AuthError if they are wrong.

    >>> read_server_metadata({"issuer": "https://b.example"}, "https://a.example", "x")
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: x: issuer is "https://b.example", not https://a.example
    """
    found: Msg = doc if isinstance(doc, dict) else {}
    if not same_issuer(found.get("issuer"), issuer):
        raise AuthError(f"{where}: issuer is {show(found.get('issuer'))}, not {issuer}")
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint",
                 "revocation_endpoint", "jwks_uri"):  # fmt: skip
        if found.get(name) is not None:
            oauth_url(found[name], f"{where}: {name}")
    return found


def default_server(server: URL) -> Msg:
    """Return what a server without any metadata is taken to be: its own authorization server.

    spec 2025-03-26: basic/authorization#fallbacks-for-servers-without-metadata-discovery

    >>> default_server(parse_url("https://a.example/mcp"))["token_endpoint"]
    'https://a.example/token'
    """
    root = f"{server.scheme}://{server.authority}"
    return {
        "issuer": root,
        "authorization_endpoint": root + "/authorize",
        "token_endpoint": root + "/token",
        "registration_endpoint": root + "/register",
        # That revision requires PKCE of everybody, so nobody announces it.
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", *SECRET_METHODS],
    }


# Scope.


def wanted_scope(
    challenge: Challenge, resource: ProtectedResource, server: Msg,
    chosen: Sequence[str] | None = None, before: str = "",
) -> str:  # fmt: skip
    """Return the scope to ask for, "" for none: the user's choice, the challenge's, or all.

    What was asked for `before` stays in it, so that more is never less.
    spec: basic/authorization/index#scope-selection-strategy

    >>> resource = ProtectedResource("r", [], ["c"], False)
    >>> wanted_scope(Challenge("bearer", {"scope": "b"}), resource, {}, before="a b")
    'a b'
    >>> wanted_scope(Challenge("bearer", {}), resource, {"scopes_supported": ["offline_access"]})
    'c offline_access'
    """
    named = challenge.params.get("scope", "").split()
    scopes = [*before.split(), *(chosen or ()), *named]
    if chosen is None and not named and not before:
        scopes = [scope for scope in resource.scopes if scope != "offline_access"]
    # spec: basic/authorization/index#refresh-tokens -- only if the authorization server lists it
    if "offline_access" in strings(server, "scopes_supported") and chosen is None:
        scopes.append("offline_access")
    text = " ".join(dict.fromkeys(scope for scope in scopes if SCOPE.fullmatch(scope)))
    if len(text) > MAX_SCOPE_CHARS:
        raise AuthError(f"{resource.resource} wants {len(text)} characters of scopes: name some")
    return text


# Registration. RFC 7591

SECRET_METHODS = ("client_secret_basic", "client_secret_post")


def registration(server: Msg, name: str, redirect_uri: str, scope: str) -> Msg:
    """Return what registers us as a client: a program on somebody's machine.

    >>> registration({}, "x", "http://127.0.0.1:1/callback", "")["application_type"]
    'native'
    """
    methods = strings(server, "token_endpoint_auth_methods_supported") or ["none"]
    # Without a secret, if that may be; else the server's first: some know their first one best.
    can = [each for each in methods if each in SECRET_METHODS]
    can = ["none"] if "none" in methods else can
    url = parse_url(redirect_uri)
    doc = {
        "client_name": name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": can[0] if can else methods[0],
        # spec: basic/authorization/client-registration
        # #application-type-and-redirect-uri-constraints
        "application_type": "native" if is_loopback(url.host) else "web",
    }
    return {**doc, "scope": scope} if scope else doc


def read_client(doc: JSON, asked: Msg, where: str) -> Msg:
    """Check the answer to a registration: what we are from now on. RFC 7591 §3.2.1

    >>> read_client({"client_id": "c"}, {"token_endpoint_auth_method": "none"}, "x")
    {'client_id': 'c', 'token_endpoint_auth_method': 'none'}
    """
    doc = doc if isinstance(doc, dict) else {}
    keep: Msg = {"client_id": doc.get("client_id")}
    if not isinstance(keep["client_id"], str) or not keep["client_id"]:
        raise AuthError(f"{where}: client_id is {show(keep['client_id'])}, not a name")
    secret, until = doc.get("client_secret"), doc.get("client_secret_expires_at")
    if isinstance(secret, str) and secret:
        keep["client_secret"] = secret
    if isinstance(until, (int, float)) and until > 0:  # 0 is never
        keep["client_secret_expires_at"] = until
    method = doc.get("token_endpoint_auth_method", asked.get("token_endpoint_auth_method"))
    if method in SECRET_METHODS and "client_secret" not in keep:
        raise AuthError(f"{where}: token_endpoint_auth_method is {method}, without client_secret")
    return {**keep, "token_endpoint_auth_method": method}


# The authorization request, and its answer. RFC 6749 §4.1, RFC 7636, RFC 8707, RFC 9207


def base64url(data: bytes) -> str:
    """Return data in the alphabet of URLs, without padding. RFC 7515 §2

    >>> base64url(bytes([3, 236, 255, 224, 193]))
    'A-z_4ME'
    """
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def code_challenge(verifier: str) -> str:
    """Return what tells nothing of a verifier, and proves it later. RFC 7636 §4.2

    >>> code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    from hashlib import sha256

    return base64url(sha256(verifier.encode()).digest())


def check_pkce(server: Msg, assume: bool) -> None:
    """Raise AuthError if a server does not say that it checks the proof.

    spec: basic/authorization/security-considerations#authorization-code-protection -- "MUST refuse"

    >>> check_pkce({"code_challenge_methods_supported": ["S256"]}, False)
    """
    methods = strings(server, "code_challenge_methods_supported")
    if "S256" not in methods and not (assume and not methods):
        raise AuthError(
            f"{server['issuer']}: code_challenge_methods_supported is {show(methods)}, without "
            "S256: a code could be stolen. If you know that it checks PKCE: OAuth(assume_pkce=True)"
        )


def authorization_url(server: Msg, params: Mapping[str, str], extra: Mapping[str, str]) -> str:
    """Return what a browser opens: made of parts that were parsed, of characters that are safe.

    >>> authorization_url({"authorization_endpoint": "https://a.example/?x='"}, {"b": "c d"}, {})
    'https://a.example/?x=%27&b=c+d'
    """
    from urllib.parse import parse_qsl, quote, urlencode

    url = oauth_url(server.get("authorization_endpoint"), "authorization_endpoint")
    path, _, query = url.target.partition("?")
    taken = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    twice = [name for name in (*taken, *extra) if name in params]
    if twice:
        raise AuthError(f"{url}: {twice[0]} is given already, in authorization_endpoint or extra=")
    query = "&".join(filter(None, (query, urlencode({**params, **extra}))))
    # CVE-2025-6514 -- whatever opens it must see no quote, no blank, and no option
    return quote(f"{url.scheme}://{url.authority}{path}?{query}", safe="%/?:@!&*+,;=~[]")


#: Whether `iss` must be compared with the recorded issuer: by whether the server announces it
#: (authorization_response_iss_parameter_supported), and whether it was sent.
#: spec: basic/authorization/index#authorization-response-validation
ISS = {
    (True, True): "compare",
    (True, False): "reject",
    (False, True): "compare",
    (False, False): "go on",
}


def read_query(query: str) -> dict[str, str]:
    """Return the parameters of a redirect; ValueError if one is there twice.

    >>> read_query("code=a%20b&state=c")
    {'code': 'a b', 'state': 'c'}
    """
    from urllib.parse import parse_qsl

    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=20)
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a parameter is there twice")
    return dict(pairs)


def is_answer(params: Mapping[str, str], state: str) -> bool:
    """Return whether a redirect answers the request that had this state.

    >>> is_answer({"state": "abc"}, "abc"), is_answer({}, "abc")
    (True, False)
    """
    from hmac import compare_digest

    return compare_digest(params.get("state", "").encode(), state.encode())


def code_of(params: Mapping[str, str], server: Msg) -> str:
    """Return the code of an answer whose state was right; AuthError if it has none for us.

    >>> code_of({"code": "x", "iss": "evil"}, {"issuer": "https://a.example"})
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: the redirect comes from another server: iss is "evil", not https://a.example
    """
    issuer, given = server["issuer"], params.get("iss")
    promised = server.get("authorization_response_iss_parameter_supported") is True
    rule = ISS[promised, given is not None]
    if rule == "reject":
        raise AuthError(f"the redirect has no iss, which {issuer} promises to send")
    if rule == "compare" and given != issuer:
        text = f"the redirect comes from another server: iss is {show(given)}, not {issuer}"
        raise AuthError(text)
    if "error" in params:
        raise AuthError(f"{issuer} refused: {said(params)}")
    if not params.get("code"):
        raise AuthError(f"{issuer} sent neither a code nor an error")
    return params["code"]


def said(doc: Mapping[str, Any]) -> str:
    """Return what an error of OAuth says: its code, and the description if there is one.

    >>> said({"error": "access_denied", "error_description": "not today"})
    '"access_denied", "not today"'
    """
    words = [doc.get("error"), doc.get("error_description")]
    return ", ".join(show(word) for word in words if isinstance(word, str)) or "without a reason"


# The token request, and its answer. RFC 6749 §3.2, §5


def client_credentials(client: Msg, server: Msg) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and the form fields by which a client says who it is.

    A client that was not told how takes the first way that the server lists and it can go.
    RFC 8414 §2 -- a server that lists none takes client_secret_basic. RFC 6749 §2.3.1

    >>> client_credentials({"client_id": "a b", "client_secret": "c:d"}, {})[0]
    {'authorization': 'Basic YStiOmMlM0Fk'}
    """
    from urllib.parse import quote_plus

    id, secret = client["client_id"], client.get("client_secret") or ""
    known = strings(server, "token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    can = SECRET_METHODS if secret else ("none",)
    fitting = [method for method in known if method in can]
    method = client.get("token_endpoint_auth_method") or (fitting or can)[0]
    if method == "client_secret_basic":
        # Nothing of it in the form as well: strict servers take that for two ways at once.
        pair = f"{quote_plus(id)}:{quote_plus(secret)}".encode()
        return {"authorization": f"Basic {base64.b64encode(pair).decode()}"}, {}
    if method == "client_secret_post":
        return {}, {"client_id": id, "client_secret": secret}
    if method == "none":
        return {}, {"client_id": id}
    raise AuthError(f"{server.get('issuer')}: token_endpoint_auth_method is {show(method)}: we "
                    "know none, client_secret_basic and client_secret_post")  # fmt: skip


def read_token(doc: JSON, now: float, scope: str, dpop: bool, where: str) -> Msg:
    """Check a token answer and return what is kept of it, with an absolute expiry. RFC 6749 §5.1

    >>> doc = {"access_token": "t", "token_type": "bearer", "expires_in": "60"}
    >>> read_token(doc, 1000, "a", False, "x")["expires_at"]
    1060
    """
    doc = doc if isinstance(doc, dict) else {}
    token, kind = doc.get("access_token"), doc.get("token_type")
    if not isinstance(token, str) or not ACCESS_TOKEN.fullmatch(token):
        raise AuthError(f"{where}: access_token is not a text that a header can carry")
    if len(token) > MAX_TOKEN_BYTES:
        raise AuthError(f"{where}: access_token is longer than {MAX_TOKEN_BYTES} bytes")
    kinds = {"bearer": "Bearer", **({"dpop": "DPoP"} if dpop else {})}
    # RFC 6749 §7.1 -- "The client MUST NOT use an access token if it does not understand the type"
    if not isinstance(kind, str) or kind.lower() not in kinds:
        raise AuthError(f"{where}: token_type is {show(kind)}, not {' or '.join(kinds.values())}")
    given = doc.get("scope")
    kept: Msg = {"access_token": token, "token_type": kinds[kind.lower()],
            "scope": given if isinstance(given, str) and given else scope}  # fmt: skip
    refresh, life = doc.get("refresh_token"), doc.get("expires_in")
    if isinstance(refresh, str) and refresh:
        kept["refresh_token"] = refresh
    if isinstance(life, str) and re.fullmatch("[0-9]{1,12}", life):
        life = int(life)
    if isinstance(life, (int, float)) and life is not True and life is not False:
        life = min(max(life, 0), LONGEST_LIFE_SECONDS)
        kept["expires_at"] = now + life
        kept["refresh_at"] = now + life - min(REFRESH_SECONDS, life / 10)
    return kept

###############################################################################
# 45. Keys and tokens
###############################################################################
# Pure. Uses sections 1 to 3 and 44.
#
# Problem.  A token is worth what its signature is worth; and there is no cryptography beyond
#           hashes in the standard library.
# Rules.    1. A token is believed in one order: its form, the algorithm (from our list, fitting the
#              key), the signature, then what it says. RFC 8725 §3
#           2. Nothing is done because a token says so: no key that it brings, no address that it
#              names, no algorithm that we did not choose.
#           3. Random numbers come from the caller. Those of signatures follow from key and message,
#              so that bad luck cannot give the key away. RFC 6979
#           4. Python's integers are not constant-time: how long they take tells something of their
#              size. So a key that signs here is a client's own. It signs a few times in an hour, on
#              its own machine, nothing that somebody else chose. Whoever can measure that, closely
#              and often, could read the key from memory. Signatures that are only verified hold no
#              secret. A server that signs for others needs a real library: pass a function to it.
# Plan.     Numbers and bytes; P-256; RSA; keys from JWK and PEM; JWT: reading, checking, making.
# Not here. EdDSA, ES384, encryption, certificates. `verify=` takes any function, for those.
#           Fetching keys: section 48. RFC 7515, 7517, 7518 and 7519 give all names here.

MAX_RSA_BITS = 8192  # of a key; verifying with 8192 takes 3 ms
MIN_RSA_BITS = 2048  # RFC 7518 §3.3 -- "MUST be used"
MAX_KEYS_TRIED = 10  # for a token that does not say which key
LEEWAY_SECONDS = 30.0  # that clocks may differ by
MAX_LEEWAY_SECONDS = 60.0  # ... whatever the user says: a token must end

# Numbers and bytes.

HASHES = {"256": "sha256", "384": "sha384", "512": "sha512"}


def from_base64url(text: JSON, what: str = "the token") -> bytes:
    """Return what base64url() was given; AuthError for anything else. RFC 7515 §2

    >>> from_base64url("A-z_4ME").hex()
    '03ecffe0c1'
    """
    if isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9_-]*", text) and len(text) % 4 != 1:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        if base64url(data) == text:  # the bits that no byte needs are zero: one form, not four
            return data
    raise AuthError(f"{what} is not base64url")


def digest(bits: str, *parts: bytes) -> bytes:
    """Return the SHA-2 hash of some bytes: by "256", "384" or "512".

    >>> digest("256", b"abc").hex()[:8]
    'ba7816bf'
    """
    import hashlib

    return hashlib.new(HASHES[bits], b"".join(parts)).digest()


# P-256, also called prime256v1 or secp256r1. FIPS 186-4 §D.1.2.3

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # points of the curve
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B  # y^2 = x^3 - 3x + B
#: A point (X : Y : Z) is x = X / Z^2, y = Y / Z^3, which spares divisions; Z = 0 is infinity.
Point = tuple[int, int, int]
G: Point = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
    1,
)
INFINITY: Point = (1, 1, 0)


def _double(point: Point) -> Point:
    x, y, z = point
    yy = y * y % P
    s, m = 4 * x * yy % P, 3 * (x - z * z) * (x + z * z) % P
    xx = (m * m - 2 * s) % P
    return xx, (m * (s - xx) - 8 * yy * yy) % P, 2 * y * z % P


def _add(one: Point, two: Point) -> Point:
    if not one[2] or not two[2]:
        return two if not one[2] else one
    (x1, y1, z1), (x2, y2, z2) = one, two
    a, b = z1 * z1 % P, z2 * z2 % P
    u1, s1 = x1 * b % P, y1 * z2 * b % P
    h, r = (x2 * a - u1) % P, (y2 * z1 * a - s1) % P
    if not h:
        return INFINITY if r else _double(one)
    hh = h * h % P
    hhh, v = h * hh % P, u1 * hh % P
    x3 = (r * r - hhh - 2 * v) % P
    return x3, (r * (v - x3) - s1 * hhh) % P, z1 * z2 * h % P


def _affine(point: Point) -> tuple[int, int]:
    inverse = pow(point[2], -1, P)
    return point[0] * inverse**2 % P, point[1] * inverse**3 % P


def _multiply(k: int) -> tuple[int, int]:
    """Return k times G. Each bit costs one addition and one doubling, whatever it is."""
    k += N if (k + N).bit_length() == 257 else 2 * N  # the same point; always as many bits
    low, high = G, _double(G)  # they differ by G: Montgomery's ladder
    for bit in bin(k)[3:]:
        if bit == "1":
            low, high = _add(low, high), _double(high)
        else:
            low, high = _double(low), _add(low, high)
    return _affine(low)


class ECKey(NamedTuple):
    """A key on P-256; `d` is the private part, 0 for a public key. RFC 7518 §6.2"""

    x: int
    y: int
    d: int = 0

    def __repr__(self) -> str:
        return f"<{'private' if self.d else 'public'} EC key>"

    def verify(self, alg: str, data: bytes, signature: bytes) -> bool:
        """Return whether a signature, r and s of 32 bytes each, is right. RFC 7518 §3.4"""
        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        if alg != "ES256" or len(signature) != 64 or not (0 < r < N and 0 < s < N):
            return False
        w, point = pow(s, -1, N), (self.x, self.y, 1)
        u, v = int.from_bytes(digest("256", data), "big") * w % N, r * w % N
        both, total = _add(G, point), INFINITY  # Shamir's trick: both products in one pass
        for i in reversed(range(256)):
            total = _double(total)
            which = (u >> i & 1, v >> i & 1)
            if any(which):
                total = _add(total, {(1, 0): G, (0, 1): point, (1, 1): both}[which])
        return bool(total[2]) and _affine(total)[0] % N == r

    def sign(self, data: bytes) -> bytes:
        """Return the signature with ES256, the same each time for the same data. RFC 6979 §3.2"""
        h = int.from_bytes(digest("256", data), "big")
        for k in _nonces(self.d, h % N):
            r = _multiply(k)[0] % N
            s = pow(k, -1, N) * (h + r * self.d) % N
            if r and s:
                return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        raise AssertionError("no nonce does")


def _nonces(d: int, h: int) -> Generator[int, None, None]:
    """Yield the numbers between 0 and N that follow from a key and a hash. RFC 6979 §3.2"""
    from hmac import digest as mac

    seed = d.to_bytes(32, "big") + h.to_bytes(32, "big")
    key, value = bytes(32), b"\1" * 32
    for mark in (b"\0", b"\1"):
        key = mac(key, value + mark + seed, "sha256")
        value = mac(key, value, "sha256")
    while True:
        value = mac(key, value, "sha256")
        if 0 < int.from_bytes(value, "big") < N:
            yield int.from_bytes(value, "big")
        key = mac(key, value + b"\0", "sha256")
        value = mac(key, value, "sha256")


def ec_key(d: int) -> ECKey:
    """Return the key pair of a private number, which must be random, and below N.

    >>> hex(ec_key(1).x)[:10], ec_key(1)
    ('0x6b17d1f2', <private EC key>)
    """
    if not 0 < d < N:
        raise AuthError("the private part of the EC key is out of range")
    return ECKey(*_multiply(d), d)


# RSA. RFC 8017

#: What says in a signature which hash was signed. RFC 8017 §9.2, note 1
DIGEST_INFO = {
    "256": "3031300d060960864801650304020105000420",
    "384": "3041300d060960864801650304020205000430",
    "512": "3051300d060960864801650304020305000440",
}


class RSAKey(NamedTuple):
    """An RSA key; d and its primes are the private part. RFC 7518 §6.3"""

    n: int
    e: int
    d: int = 0
    p: int = 0
    q: int = 0

    def __repr__(self) -> str:
        return f"<{'private' if self.d else 'public'} RSA key of {self.n.bit_length()} bits>"

    @property
    def size(self) -> int:
        """Bytes of the modulus, and of each signature."""
        return (self.n.bit_length() + 7) // 8

    def verify(self, alg: str, data: bytes, signature: bytes) -> bool:
        """Return whether a signature is right. RFC 8017 §8.1.2, §8.2.2"""
        number, bits = int.from_bytes(signature, "big"), alg[2:]
        if bits not in HASHES or len(signature) != self.size or number >= self.n:
            return False
        found = pow(number, self.e, self.n).to_bytes(self.size, "big")
        if alg[:2] == "PS":
            return _is_pss(found, data, bits, self.n.bit_length() - 1)
        # The one right encoding is made and compared. A parser could be talked into another.
        return alg[:2] == "RS" and found == _pkcs1(data, bits, self.size)

    def sign(self, data: bytes) -> bytes:
        """Return the signature with RS256. RFC 8017 §8.2.1"""
        number = int.from_bytes(_pkcs1(data, "256", self.size), "big")
        # Modulo each prime, and both joined: four times as fast. RFC 8017 §5.2.1
        one, two = (pow(number, self.d % (r - 1), r) for r in (self.p, self.q))
        signed = two + self.q * ((one - two) * pow(self.q, -1, self.p) % self.p)
        if pow(signed, self.e, self.n) != number:  # one wrong bit here would give the key away
            raise AuthError("the private RSA key does not fit its public part")
        return signed.to_bytes(self.size, "big")


def _pkcs1(data: bytes, bits: str, size: int) -> bytes:
    """Return the one encoding of a hash for PKCS #1 v1.5. RFC 8017 §9.2"""
    info = bytes.fromhex(DIGEST_INFO[bits]) + digest(bits, data)
    return b"\0\1" + b"\xff" * (size - 3 - len(info)) + b"\0" + info


def _is_pss(found: bytes, data: bytes, bits: str, em_bits: int) -> bool:
    """Return whether this encodes the data, with a salt as long as the hash. RFC 8017 §9.1.2"""
    length, size = int(bits) // 8, (em_bits + 7) // 8
    if found[: len(found) - size].strip(b"\0") or size < 2 * length + 2 or found[-1:] != b"\xbc":
        return False
    masked, h = found[len(found) - size : -length - 1], found[-length - 1 : -1]
    blocks = (digest(bits, h, i.to_bytes(4, "big")) for i in range(len(masked) // length + 1))
    mask = b"".join(blocks)[: len(masked)]
    free = 8 * size - em_bits  # bits at the left that must be zero, before and after
    db = int.from_bytes(masked, "big") ^ int.from_bytes(mask, "big")
    if masked[0] >> (8 - free):
        return False
    db &= (1 << (8 * len(masked) - free)) - 1
    padding, salt = divmod(db, 1 << (8 * length))
    return padding == 1 and digest(bits, bytes(8), digest(bits, data),
                                   salt.to_bytes(length, "big")) == h  # fmt: skip


def rsa_key(n: int, e: int, d: int = 0, p: int = 0, q: int = 0) -> RSAKey:
    """Return an RSA key; AuthError for one that is too weak or too costly.

    >>> rsa_key(2**1023 + 1, 65537)
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: an RSA key has 2048 to 8192 bits here, not 1024
    """
    if not MIN_RSA_BITS <= n.bit_length() <= MAX_RSA_BITS:
        size = f"{MIN_RSA_BITS} to {MAX_RSA_BITS} bits here, not {n.bit_length()}"
        raise AuthError(f"an RSA key has {size}")
    if not (e % 2 and 3 <= e < 2**32 and n % 2) or (d and p * q != n):
        raise AuthError("the numbers of the RSA key do not fit each other")
    return RSAKey(n, e, d, p, q)


# Keys as JSON and as PEM.

Key = Union[ECKey, RSAKey]


def read_jwk(jwk: Msg) -> Key:
    """Return the public key of a JWK; AuthError for kinds that are not spoken here. RFC 7517 §4

    >>> read_jwk({"kty": "oct", "k": "AAAA"})
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: a key is RSA, or EC on P-256; this one is "oct"
    """

    def number(name: str) -> int:
        return int.from_bytes(from_base64url(jwk.get(name), f"the key's {name}"), "big")

    if jwk.get("kty") == "RSA":
        return rsa_key(number("n"), number("e"))
    if jwk.get("kty") != "EC" or jwk.get("crv") != "P-256":
        raise AuthError(f"a key is RSA, or EC on P-256; this one is {show(jwk.get('kty'))}")
    return _on_curve(number("x"), number("y"))


def _on_curve(x: int, y: int) -> ECKey:
    """Return a public key; AuthError for a point that is not on the curve. RFC 8725 §3.4"""
    if not (0 <= x < P and 0 <= y < P and (y * y - x * x * x + 3 * x - B) % P == 0):
        raise AuthError("the EC key is not a point of P-256")
    return ECKey(x, y)


def jwk_of(key: Key) -> Msg:
    """Return the public part of a key as a JWK.

    >>> jwk_of(ec_key(1))["x"]
    'axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY'
    """
    if isinstance(key, ECKey):
        x, y = (base64url(number.to_bytes(32, "big")) for number in key[:2])
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y}
    n, e = (base64url(i.to_bytes((i.bit_length() + 7) // 8, "big")) for i in key[:2])
    return {"kty": "RSA", "n": n, "e": e}


INTEGER, BITS, OCTETS, OID, SEQUENCE = 2, 3, 4, 6, 0x30  # of DER, as far as keys need it
RSA_OID, EC_OID = bytes.fromhex("2a864886f70d010101"), bytes.fromhex("2a8648ce3d0201")
P256_OID = bytes.fromhex("2a8648ce3d030107")


def _der(data: bytes, *tags: int) -> list[bytes]:
    """Return the contents of the first elements; ValueError unless their tags are these."""
    found = []
    for tag in tags:
        if len(data) < 2 or data[0] != tag:
            raise ValueError(f"element {tag} is missing")
        size, at = data[1], 2
        if size & 0x80:
            at += size & 0x7F
            size = int.from_bytes(data[2:at], "big")
        if at + size > len(data):
            raise ValueError("an element is cut off")
        found.append(data[at : at + size])
        data = data[at + size :]
    return found


def _rsa_der(data: bytes) -> Key:
    numbers = _der(_der(data, SEQUENCE)[0], *[INTEGER] * 6)  # PKCS #1, RFC 8017 §A.1.2
    _, n, e, d, p, q = (int.from_bytes(number, "big") for number in numbers)
    return rsa_key(n, e, d, p, q)


def _ec_der(data: bytes) -> Key:
    return ec_key(int.from_bytes(_der(_der(data, SEQUENCE)[0], INTEGER, OCTETS)[1], "big"))


def _pkcs8_der(data: bytes) -> Key:
    _, kind, inner = _der(_der(data, SEQUENCE)[0], INTEGER, SEQUENCE, OCTETS)  # RFC 5208 §5
    return (_rsa_der if _is_rsa(kind) else _ec_der)(inner)


def _public_der(data: bytes) -> Key:
    kind, bits = _der(_der(data, SEQUENCE)[0], SEQUENCE, BITS)  # RFC 5280 §4.1
    if _is_rsa(kind):
        n, e = _der(_der(bits[1:], SEQUENCE)[0], INTEGER, INTEGER)
        return rsa_key(int.from_bytes(n, "big"), int.from_bytes(e, "big"))
    if len(bits) != 66 or bits[1] != 4:
        raise ValueError("the point is compressed")
    return _on_curve(int.from_bytes(bits[2:34], "big"), int.from_bytes(bits[34:], "big"))


def _is_rsa(kind: bytes) -> bool:
    if _der(kind, OID)[0] == RSA_OID:
        return True
    if _der(kind, OID, OID) != [EC_OID, P256_OID]:
        raise ValueError("it is neither RSA nor EC on P-256")
    return False


PEM_KINDS: dict[str, Callable[[bytes], Key]] = {
    "PRIVATE KEY": _pkcs8_der,
    "RSA PRIVATE KEY": _rsa_der,
    "EC PRIVATE KEY": _ec_der,
    "PUBLIC KEY": _public_der,
}


def read_pem(text: str) -> Key:
    """Return the key in a PEM text: PKCS #8, PKCS #1, SEC 1, or a public key. RFC 7468

    >>> read_pem("hunter2")
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: no key: PEM text with -----BEGIN PRIVATE KEY----- is needed, unencrypted
    """
    for kind, body in re.findall(r"-----BEGIN ([A-Z ]+)-----([^-]+)-----END \1-----", text):
        if kind in PEM_KINDS:
            try:
                return PEM_KINDS[kind](base64.b64decode("".join(body.split()), validate=True))
            except ValueError as exc:  # it says nothing of what is in the key
                raise AuthError(f"the {kind} cannot be read: {exc}") from None
    raise AuthError("no key: PEM text with -----BEGIN PRIVATE KEY----- is needed, unencrypted")


# JSON Web Tokens. RFC 7519

ALGORITHMS = ("RS256", "PS256", "ES256")  # that are believed unless somebody says otherwise
KEY_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC"}  # which key an algorithm needs


class JWT(NamedTuple):
    """A token, taken apart; nothing in it is believed yet."""

    header: Msg
    claims: Msg
    signed: bytes
    signature: bytes


def read_jwt(token: str) -> JWT:
    """Return the parts of a token; AuthError for a form that is not a JWT's. RFC 7519 §7.2

    >>> read_jwt("e30.e30.").header
    {}
    """
    parts = token.split(".")
    if len(token) > MAX_TOKEN_BYTES or len(parts) != 3:
        raise AuthError(f"it is not a JWT of up to {MAX_TOKEN_BYTES} bytes")
    header, claims, signature = map(from_base64url, parts)
    try:
        docs = [decode(header), decode(claims)]
    except ProtocolError as exc:
        raise AuthError(f"its JSON cannot be read: {exc}") from None
    if not all(isinstance(doc, dict) for doc in docs):
        raise AuthError("its header and its claims are not both objects")
    return JWT(docs[0], docs[1], token.rpartition(".")[0].encode(), signature)


def keys_for(jwt: JWT, jwks: Sequence[JSON], algorithms: Sequence[str]) -> list[Key]:
    """Return which of an issuer's keys a token may be signed with, [] if there is none.

    The header chooses among what we allow, and brings nothing of its own. RFC 8725 §3.1, §3.10

    >>> keys_for(JWT({"alg": "none"}, {}, b"", b""), [], ALGORITHMS)
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: alg is "none", not one of RS256, PS256, ES256
    """
    alg, kid = jwt.header.get("alg"), jwt.header.get("kid")
    if not isinstance(alg, str) or alg not in algorithms:
        raise AuthError(f"alg is {show(alg)}, not one of {', '.join(algorithms)}")
    if "crit" in jwt.header:  # RFC 7515 §4.1.11 -- we understand no extension
        raise AuthError("its header has crit")
    # RFC 8725 §3.11, RFC 9068 §4 -- another kind of JWT must not pass for an access token
    kind = jwt.header.get("typ", "JWT")
    if str(kind).lower().replace("application/", "") not in ("jwt", "at+jwt"):
        raise AuthError(f"typ is {show(kind)}, not at+jwt")
    found = []
    for jwk in jwks:
        if isinstance(jwk, dict) and _fits(jwk, alg) and kid in (None, jwk.get("kid")):
            with contextlib.suppress(AuthError):  # a set may hold keys for others
                found.append(read_jwk(jwk))
    return found[:MAX_KEYS_TRIED]


def _fits(jwk: Msg, alg: str) -> bool:
    """Return whether a key is meant to verify an algorithm's signatures. RFC 7517 §4.2 to §4.4"""
    operations = jwk.get("key_ops", ["verify"])
    return (jwk.get("kty") == KEY_KINDS[alg[:2]] and jwk.get("use", "sig") == "sig"
            and isinstance(operations, list) and "verify" in operations
            and jwk.get("alg", alg) == alg)  # fmt: skip


def check_signature(jwt: JWT, keys: Iterable[Key]) -> None:
    """Raise AuthError unless one of the keys has signed the token.

    >>> check_signature(JWT({"alg": "ES256"}, {}, b"x", bytes(64)), [ec_key(1)])
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: its signature is not right
    """
    if not any(key.verify(jwt.header["alg"], jwt.signed, jwt.signature) for key in keys):
        raise AuthError("its signature is not right")


def check_claims(
    claims: Msg, issuer: str, audience: Sequence[str], now: float, leeway: float = LEEWAY_SECONDS
) -> None:
    """Raise AuthError unless the claims are an issuer's, for us, and for now. RFC 9068 §4

    >>> check_claims({"iss": "i", "aud": ["a", "b"], "exp": 100}, "i", ["b"], 99)
    >>> check_claims({"iss": "i", "aud": "b", "exp": 100}, "i", ["b"], 130)
    Traceback (most recent call last):
        ...
    mcp_lite.AuthError: it has expired
    """
    if claims.get("iss") != issuer:
        raise AuthError(f"iss is {show(claims.get('iss'))}, not {issuer}")
    aud = claims.get("aud")
    meant = aud if isinstance(aud, list) else [aud]
    if not any(isinstance(each, str) and each in audience for each in meant):
        raise AuthError(f"aud is {show(aud)}, not {' or '.join(audience)}")
    times = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
    for name, value in times.items():
        if type(value) not in (int, float) or not abs(value) < 1e15:
            raise AuthError(f"{name} is {show(value)}, not a time")
    if "exp" not in times:
        raise AuthError("it never expires: exp is missing")
    if now >= times["exp"] + leeway:
        raise AuthError("it has expired")
    for name in ("nbf", "iat"):
        if times.get(name, now) > now + leeway:
            raise AuthError(f"{name} is in the future")


def make_jwt(header: Msg, claims: Msg, key: Key) -> str:
    """Return a signed token: ES256 or RS256, as the key is.

    >>> make_jwt({"typ": "JWT"}, {"iss": "me"}, ec_key(1)).split(".")[1]
    'eyJpc3MiOiJtZSJ9'
    """
    alg = "ES256" if isinstance(key, ECKey) else "RS256"
    text = ".".join(base64url(encode(part)) for part in ({"alg": alg, **header}, claims))
    return f"{text}.{base64url(key.sign(text.encode()))}"


def client_assertion(
    key: Key, client_id: str, issuer: str, now: float, jti: str, kid: str | None = None
) -> str:
    """Return what proves that we are a client, in place of a secret. RFC 7523 §3

    Its audience is the issuer, and nothing else: a token endpoint could be anybody's.

    >>> read_jwt(client_assertion(ec_key(1), "me", "https://a.example", 100, "j")).claims["aud"]
    'https://a.example'
    """
    claims = {"iss": client_id, "sub": client_id, "aud": issuer, "jti": jti,
              "iat": int(now), "exp": int(now) + 60}  # fmt: skip
    return make_jwt({"typ": "JWT", **({"kid": kid} if kid else {})}, claims, key)


def dpop_proof(
    key: Key, method: str, url: str, now: float, jti: str, token: str = "", nonce: str = ""
) -> str:
    """Return the proof that a request comes from the owner of a key. RFC 9449 §4.2

    >>> read_jwt(dpop_proof(ec_key(1), "POST", "https://a.example/x?y", 1, "j")).claims["htu"]
    'https://a.example/x'
    """
    claims: Msg = {"jti": jti, "htm": method, "htu": re.split(r"[?#]", url)[0], "iat": int(now)}
    if token:
        claims["ath"] = base64url(digest("256", token.encode()))
    if nonce:
        claims["nonce"] = nonce
    return make_jwt({"typ": "dpop+jwt", "jwk": jwk_of(key)}, claims, key)

###############################################################################
# 46. Keeping, listening, fetching
###############################################################################
# Uses sections 1 to 3, 7, 9, 32, 34, 36, 42, 44 and 45.
#
# Problem.  A login needs three things of this machine: a place for what must not be lost or read by
#           others, a door through which a browser comes back, and a way to documents that a server
#           names, whoever it is.
# Rules.    1. A login is kept by a key of the whole names, never of a part of them. What is written
#              is there as a whole or not at all, for its owner alone. CVE-2026-51996
#           2. Whatever knocks at the door without the right `state` means nothing.
#           3. A fetch is bounded in bytes, time and redirects, and asks for nothing compressed. A
#              public server does not send us to private addresses.
#           4. A trace shows every request, and no secret in it.
# Plan.     TokenStore, FileStore; RedirectListener, the browser, the terminal; Fetcher.
# Not here. Keychains of operating systems: TokenStore is what to subclass.

__all__ += ["TokenStore", "FileStore"]

FETCH_SECONDS = 10.0  # for a document or a token, all in; a person waits for it
MAX_DOCUMENT_BYTES = 1024 * 1024  # metadata, or a set of keys; real ones have 1 to 20 KiB
MAX_FETCH_REDIRECTS = 3  # of metadata, within their origin; token requests follow none
LOCK_SECONDS = 30.0  # to wait for another process that refreshes; a refresh takes 10 at most
LOCK_POLL_SECONDS = 0.02  # between two looks at a lock, which no event loop can wait for
MAX_CALLBACK_BYTES = 16 * 1024  # what a browser may send to the redirect listener
MAX_STORED_BYTES = 64 * 1024  # one entry of a store: two tokens, ids and metadata
STORE_VARIABLE = "MCP_LITE_TOKENS"  # names the folder of logins
SECRETS = frozenset(  # form fields and members that no trace shows
    ("access_token", "refresh_token", "id_token", "code", "code_verifier", "state", "assertion",
     "client_secret", "client_assertion", "subject_token", "token", "registration_access_token")
)  # fmt: skip
DONE_PAGE = b"""<!doctype html><meta charset="utf-8"><title>mcp_lite</title>
<p>That is all. You can close this page, and go back to the program."""

# Stores.


class TokenStore:
    """Where logins are kept: JSON objects by keys, which are tuples of strings. This one forgets
    them with the process; subclass it for a keychain or a database."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, ...], str] = {}
        self.locked: set[tuple[str, ...]] = set()

    async def load(self, key: tuple[str, ...]) -> Msg | None:
        """Return what was saved, or None."""
        text = self.kept.get(key)
        return None if text is None else dict(json.loads(text))

    async def save(self, key: tuple[str, ...], value: Msg | None) -> None:
        """Keep a value; None forgets it. It is safe when this returns."""
        if value is None:
            self.kept.pop(key, None)
        else:
            self.kept[key] = json.dumps(value)

    async def clear(self) -> None:
        """Forget everything."""
        self.kept.clear()

    def try_lock(self, key: tuple[str, ...]) -> Callable[[], None] | None:
        """Return what gives a lock back; None if somebody else has it."""
        if key in self.locked:
            return None
        self.locked.add(key)
        return functools.partial(self.locked.discard, key)

    @contextlib.asynccontextmanager
    async def lock(self, key: tuple[str, ...]) -> AsyncIterator[None]:
        """Be the only one who changes a value, of all processes that share the store."""
        until = time.monotonic() + LOCK_SECONDS
        while (release := self.try_lock(key)) is None:
            if time.monotonic() > until:
                raise AuthError(f"another program is refreshing for {LOCK_SECONDS:g} seconds now")
            await asyncio.sleep(LOCK_POLL_SECONDS)
        try:
            yield
        finally:
            release()


class FileStore(TokenStore):
    """Logins as files that only their owner can read, in a folder that only he can enter.

    The folder is `path`, else the one that MCP_LITE_TOKENS names, else one for this user. Where it
    cannot be written, logins last as long as the process, and a warning says so.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        super().__init__()
        self.path = os.fspath(path or os.environ.get(STORE_VARIABLE) or default_folder())

    def file(self, key: tuple[str, ...], end: str = ".json") -> str:
        """Return the path for a key: no name of a server becomes the name of a file."""
        return os.path.join(self.path, digest("256", encode(list(key))).hex() + end)  # type: ignore

    async def load(self, key: tuple[str, ...]) -> Msg | None:
        """Return what the file says. One that cannot be believed is put aside, with a warning."""
        path = self.file(key)
        try:
            with open(path, "rb") as file:
                mine = not hasattr(os, "getuid") or os.fstat(file.fileno()).st_uid == os.getuid()
                doc = decode(file.read(MAX_STORED_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            return await super().load(key)
        except (OSError, ProtocolError):
            mine, doc = False, None
        value = doc.get("value") if isinstance(doc, dict) and doc.get("key") == list(key) else None
        if mine and isinstance(value, dict):
            return value
        logger.warning("%s is not a login of ours: it is put aside, as .bad", path)
        with contextlib.suppress(OSError):
            os.replace(path, path + ".bad")
        return None

    async def save(self, key: tuple[str, ...], value: Msg | None) -> None:
        """Keep or forget one login."""
        path = self.file(key)
        await super().save(key, None)
        try:
            if value is None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                return
            self.make_folder()
            write_whole(path, encode({"key": list(key), "value": value}))
        except OSError as exc:
            problem = "logins cannot be kept in %s (%s): see %s"
            logger.warning(problem, self.path, exc, STORE_VARIABLE)
            await super().save(key, value)

    def make_folder(self) -> None:
        """Make the folder, or see to it that it is ours alone."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        if stat.S_IMODE(os.stat(self.path).st_mode) & 0o077:
            os.chmod(self.path, 0o700)

    async def clear(self) -> None:
        """Forget everything."""
        await super().clear()
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self.path):
                if re.fullmatch(r"[0-9a-f]{64}\.json(\.bad)?", name):
                    os.unlink(os.path.join(self.path, name))

    def try_lock(self, key: tuple[str, ...]) -> Callable[[], None] | None:
        """Lock a file beside the entry, which stays: the system unlocks it if we die."""
        try:
            self.make_folder()
            file = open(self.file(key, ".lock"), "ab")  # noqa: SIM115 -- it stays open
        except OSError:  # no folder, no other process
            return super().try_lock(key)
        try:
            lock_file(file.fileno())
        except OSError:
            file.close()
            return None
        return file.close


def lock_file(descriptor: int) -> None:
    """Lock a file until it is closed; OSError if somebody else has locked it."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]


def write_whole(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write beside a file and put that in its place: there is a whole one at any time; OSError."""
    beside = f"{path}.{os.getpid()}-{threading.get_ident()}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(beside, flags, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, mode)  # which os.open() gives only as far as the umask lets it
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def default_folder() -> str:
    """Return this user's folder of logins: state, not configuration, and not worth a backup."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or home
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = os.environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
    return os.path.join(base, "mcp_lite", "tokens")


# The redirect.


class RedirectListener:
    """Waits on this machine for a browser to come back: RFC 8252 §7.3.

    Whatever comes without the right `state` is answered, and means nothing: any web page can send
    a browser here.
    """

    def __init__(self, state: str, path: str = "/callback") -> None:
        self.state, self.path = state, path
        self.answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self.server: Any = None
        self.tasks = Tasks()

    async def open(self, port: int, host: str = "127.0.0.1") -> int:
        """Listen on a port of this machine, 0 for one that the kernel chooses; return it."""
        self.server = await asyncio.start_server(
            lambda *stream: self.tasks.spawn(self._serve(*stream)) and None, host, port
        )
        return int(self.server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder = RequestDecoder(MAX_CALLBACK_BYTES)
        found: list[Any] = []
        try:
            while not found and (data := await asyncio.wait_for(reader.read(4096), FETCH_SECONDS)):
                found = decoder.feed(data)
            status = self.judge(found[0][0]) if found else 400
            fields = {"content-type": "text/html; charset=utf-8", "connection": "close",
                      "content-security-policy": "default-src 'none'", "cache-control": "no-store",
                      "referrer-policy": "no-referrer"}  # fmt: skip
            page = DONE_PAGE if status == 200 else b"This is not what was waited for."
            writer.write(encode_response(status, fields, page))
            await asyncio.wait_for(writer.drain(), LINGER_SECONDS)
        except (OSError, ProtocolError, asyncio.TimeoutError):
            pass  # it was no browser
        finally:
            writer.close()

    def judge(self, head: RequestHead) -> int:
        """Return the status for a request; the right one ends the waiting."""
        if head.path != self.path:
            return 404
        if head.method != "GET":
            return 405
        try:
            params = read_query(head.query)
        except ValueError:
            return 400
        if self.answer.done() or not is_answer(params, self.state):
            return 400
        self.answer.set_result(params)
        return 200

    async def close(self) -> None:
        """Listen no more."""
        if self.server is not None:
            self.server.close()
        await self.tasks.drain(LINGER_SECONDS)
        await self.tasks.close()


def open_browser(url: str) -> None:
    """Open the user's browser, if there is one, in a thread: some of them block until they end."""
    import webbrowser

    def work() -> None:
        with contextlib.suppress(Exception):  # there is none, or no display: the URL was printed
            webbrowser.open(url)

    threading.Thread(target=work, daemon=True).start()


def pasted_answer(line: str, state: str) -> dict[str, str] | None:
    """Return the parameters of an address, or of its query, if it is the answer to our login."""
    line = line.strip().partition("#")[0]
    try:
        params = read_query(line.partition("?")[2] or line)
    except ValueError:
        return None
    return params if is_answer(params, state) else None


async def pasted(state: str) -> dict[str, str]:
    """Return the parameters of a redirect that somebody pastes into the terminal; or never."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str]()
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        await loop.create_future()
    try:
        loop.add_reader(sys.stdin, lambda: lines.put_nowait(sys.stdin.readline()))
    except NotImplementedError:  # Windows
        await loop.create_future()
    sys.stderr.write("If the browser is elsewhere, paste here the address where it ended up.\n")
    try:
        while line := await lines.get():
            params = pasted_answer(line, state)
            if params is not None:
                return params
            sys.stderr.write("That is not the answer to this login.\n")
        return await loop.create_future()  # type: ignore[no-any-return]
    finally:
        loop.remove_reader(sys.stdin)


# Fetching.


class Fetcher:
    """Fetches documents that a server names, and posts to endpoints that they name."""

    def __init__(
        self, server: URL, ssl: Any = None, uds: str | None = None, allow_private: bool = False
    ) -> None:
        self.server, self.ssl, self.uds, self.allow_private = server, ssl, uds, allow_private
        # Until it has been met. Behind a proxy nobody knows, and names may be private there.
        self.public = not (uds or is_loopback(server.host) or proxy_for(server, os.environ))

    def met(self, address: str) -> None:
        """Hear the server's address: one on a private network may name others there."""
        self.public = is_public(address)

    def admit(self, address: str) -> None:
        """Raise ConnectionClosed where a public server leads us into a private network."""
        if self.public and not self.allow_private and not is_public(address):
            problem = f"{self.server} leads to the private address {address}: refused"
            raise ConnectionClosed(f"{problem}; if that is meant, pass allow_private=True")

    def check(self, url: URL) -> None:
        """Raise MCPError for a URL to which the server may not lead us or our browser.

        spec: basic/authorization/security-considerations#communication-security
        """
        if self.server.scheme == "https" != url.scheme and not self.allow_private:
            raise AuthError(f"{self.server} leads to {url}: it must begin with https://")
        with contextlib.suppress(ValueError):  # a name: whoever connects to it will see
            self.admit("127.0.0.1" if is_loopback(url.host) else url.host)

    async def fetch(
        self, method: str, url: URL, headers: Mapping[str, str], body: JSON = None,
        write: Callable[[JSON], Any] = encode,
    ) -> tuple[int, str, JSON]:  # fmt: skip
        """Send one request of OAuth: (status, DPoP-Nonce, JSON). Raises MCPError."""
        self.check(url)
        data = b"" if body is None else write(body)
        data = data.encode() if isinstance(data, str) else data
        fields = {"accept": JSON_TYPE, "accept-encoding": "identity",
                  "user-agent": f"mcp_lite/{__version__}", **headers}  # fmt: skip
        uds = self.uds if url[:4] == self.server[:4] else None
        http = HTTPClient(url, ssl=self.ssl, admit=self.admit, uds=uds)
        trace_oauth(">", f"{method} {url}", body)
        try:
            return await asyncio.wait_for(self._fetch(http, method, fields, data), FETCH_SECONDS)
        except asyncio.TimeoutError:
            raise ConnectionClosed(f"{url} took longer than {FETCH_SECONDS:g} seconds") from None
        finally:
            await http.close()

    async def _fetch(
        self, http: HTTPClient, method: str, headers: Mapping[str, str], data: bytes
    ) -> tuple[int, str, JSON]:
        redirects = MAX_FETCH_REDIRECTS if method == "GET" else 0
        answer = await http.send(method, http.url.target, headers, data, FETCH_SECONDS, redirects)
        try:
            status, body = answer.head.status, await answer.body(MAX_DOCUMENT_BYTES)
        except LimitExceeded as exc:
            raise ConnectionClosed(str(exc)) from None
        finally:
            answer.close()
        doc: JSON = None
        try:
            doc = decode(body)
        except ProtocolError as exc:
            if 200 <= status < 300:
                raise ConnectionClosed(f"{http.url} answered with no JSON: {exc}") from None
        trace_oauth("<", f"{status} of {http.url}", doc)
        return status, answer.head.headers.get("dpop-nonce", ""), doc

    async def first_of(self, urls: Iterable[str], what: str) -> tuple[str, JSON]:
        """Return the first document that is there; ("", None) if all answered 4xx.

        Anything else is an error: an outage must not lead to guesses.
        """
        for text in urls:
            url = oauth_url(text, what)
            status, _, doc = await self.fetch("GET", url, {})
            if status == 200:
                return str(url), doc
            if not 400 <= status < 500:
                raise ConnectionClosed(f"{url} answered {status}: no {what}")
        return "", None


def origin_of(url: URL) -> str:
    """Return the origin of a URL: the part that decides who gets a secret."""
    return f"{url.scheme}://{url.authority}"


def trace_oauth(direction: str, title: str, body: JSON) -> None:
    """Show a request of OAuth or its answer to the trace, without what is secret in it."""
    if _trace is not None:
        shown = body if body is None else _veiled(body)
        _trace(direction, "authorization", {"method": title, "params": shown})


def _veiled(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: "[redacted]" if key in SECRETS else _veiled(item)
                for key, item in value.items()}  # fmt: skip
    return [_veiled(item) for item in value] if isinstance(value, list) else value

###############################################################################
# 47. Logging in
###############################################################################
# Uses sections 1, 2, 7, 27, 32, 34 and 43 to 46.
#
# Problem.  A server refuses a request. Whoever may use it must be asked, in a browser, which may
#           take minutes; and nobody wants to be asked again tomorrow.
# Rules.    1. A token goes to the origin of its server, in the one header, and nowhere else: into
#              no URL, log, trace, exception or repr().
#           2. Logins belong to (resource, issuer, client). Who gave us an id or a secret gets it
#              back, and nobody else does.
#           3. One refresh at a time, across tasks and processes. What it gave is kept before it is
#              used: a refresh token that is shown twice ends the whole family.
#           4. Nothing is lost by a network that fails. Nothing is retried for ever.
# Plan.     Login, which obeys challenges; the ways to a token: OAuth with a person, three grants
#           without; what `auth=` can be; logout().
# Not here. Device codes, of which the specification knows nothing. Checks: section 44.

__all__ += ["OAuth", "ClientCredentials", "IdentityAssertion", "WorkloadIdentity", "logout"]

LOGIN_SECONDS = 300.0  # for a person to log in
MAX_LOGINS, LOGINS_SECONDS = 5, 60.0  # logins to one server in so many seconds; then it is a loop
NEVER = float("inf")  # when a token expires whose server does not say
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"  # RFC 7523 §2.1
TOKEN_TYPE = "urn:ietf:params:oauth:token-type:"  # RFC 8693 §3


class TokenRefused(AuthError):
    """A token endpoint of `issuer` refused with this `error`. RFC 6749 §5.2"""

    def __init__(self, message: str, error: str, issuer: str) -> None:
        super().__init__(message)
        self.error, self.issuer = error, issuer


# Obeying challenges.


class Login(Authorizer):
    """What one transport knows of its login: the tokens, where they are from, how to get others."""

    def __init__(self, transport: HTTPTransport, settings: OAuth) -> None:
        self.transport, self.settings, self.store = transport, settings, settings.store
        self.url = oauth_url(str(transport.url), "the server's URL")
        self.fetcher = Fetcher(transport.url, transport.ssl, transport.http.uds,
                               settings.allow_private)  # fmt: skip
        transport.http.admit = self.fetcher.met
        #: what is kept: key, tokens, asked (scope), client, server, resource, dpop
        self.entry: Msg | None = None
        self.loaded = False
        self.dpop_key: ECKey | None = None  # to which tokens are bound, if a server wants that
        self.work: asyncio.Task[None] | None = None  # the login or the refresh under way
        self.nonces: dict[str, str] = {}  # by origin: RFC 9449 §8.2
        self.logins: deque[float] = deque(maxlen=MAX_LOGINS)

    # What the transport asks.

    @property
    def tokens(self) -> Msg:
        """The tokens that we have, perhaps none."""
        return self.entry["tokens"] if self.entry else {}

    def usable(self) -> str:
        """Return the access token, "" if there is none that is still good."""
        good = time.time() < self.tokens.get("expires_at", NEVER)
        return str(self.tokens.get("access_token", "")) if good else ""

    async def headers(self, method: str, target: str, ask: bool) -> dict[str, str]:
        """Return the header with the token, refreshed if it is about to expire."""
        if not self.loaded:
            self.entry, self.loaded = await self.load(), True
            if self.entry and self.entry.get("dpop"):
                self.dpop_key = ec_key(int(self.entry["dpop"], 16))
        tokens = self.tokens
        if ask and tokens and time.time() >= tokens.get("refresh_at", NEVER):
            if "refresh_token" in tokens or not self.settings.person:
                await self.together("refresh", Challenge("bearer", {}), tokens["access_token"])
                tokens = self.tokens
        token = self.usable()
        if not token:
            return {}
        kind = tokens["token_type"]
        fields = {"authorization": f"{kind} {token}"}
        if kind == "DPoP":
            fields["dpop"] = self.proof(method, str(self.url._replace(target=target)), token)
        return fields

    async def settle(
        self, answer: HTTPAnswer, sent: Mapping[str, str], steps: list[str]
    ) -> bool:
        """Do what a refusal demands, as far as that may help."""
        head, used = answer.head, sent.get("authorization", "").partition(" ")[2]
        nonce = head.headers.get("dpop-nonce", "")
        if nonce:
            self.nonces[origin_of(self.url)] = nonce
        if head.status not in (401, 403):
            return False
        challenge = our_challenge(head.headers.get("www-authenticate", ""))
        possible = {"log in", "step up"}
        possible |= {"nonce"} if nonce and challenge.scheme == "dpop" else set()
        possible |= {"repeat"} if self.usable() not in ("", used) else set()
        possible |= {"refresh"} if "refresh_token" in self.tokens else set()
        error = challenge.params.get("error", "")
        step = next_step(head.status, error, bool(used), possible, steps)
        if not step and head.status == 403:
            return False  # more of a login would not help: the transport tells what the server said
        if not step:
            why = said(challenge.params)
            raise AuthError(f"{self.url} refuses the token that was got for it: {why}")
        steps.append(step)
        if step not in ("nonce", "repeat"):
            await self.together(step, challenge, used)
        return True

    async def together(self, step: str, challenge: Challenge, used: str) -> None:
        """Do one step for all requests that wait for it; it goes on if one of them is cancelled."""
        if self.work is None or self.work.done():
            self.work = asyncio.ensure_future(self.do(step, challenge, used))
            self.work.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self.work)

    async def do(self, step: str, challenge: Challenge, used: str) -> None:
        """Refresh, or else log in; for more scope if that is the step."""
        if self.usable() not in ("", used):
            return  # somebody has done it
        if step == "refresh" and await self.refresh(used):
            return
        before = self.entry["asked"] if self.entry and step == "step up" else ""
        self.transport.waits_for_person = self.settings.person
        try:
            await self.log_in(challenge, before)
        except TokenRefused as exc:
            if exc.error != "invalid_client" or self.settings.client_id:
                raise
            await self.store.save(("client", exc.issuer), None)  # it is known there no longer
            await self.log_in(challenge, before)
        finally:
            self.transport.waits_for_person = False

    async def close(self) -> None:
        """Stop asking; but let a token answer arrive that may hold a new refresh token."""
        if self.work is not None and not self.work.done():
            if self.transport.waits_for_person:
                self.work.cancel()
            await asyncio.wait([self.work], timeout=GRACE_SECONDS)
            self.work.cancel()
            await asyncio.wait([self.work])

    # Keeping.

    @property
    def place(self) -> tuple[str, ...]:
        """The key under which stands where this server's login is kept."""
        return "at", str(self.url)

    async def load(self) -> Msg | None:
        """Return the entry that is kept for this server, if it is for the client that we are."""
        place = await self.store.load(self.place)
        entry = None if place is None else await self.store.load(tuple(place["key"]))
        mine = entry and entry["client"]["client_id"] == self.settings.client_id
        return entry if mine or not self.settings.client_id else None

    async def keep(self, entry: Msg) -> None:
        """Save an entry, then use it."""
        await self.store.save(tuple(entry["key"]), entry)
        await self.store.save(self.place, {"key": entry["key"]})
        self.entry = entry

    async def forget(self) -> bool:
        """Revoke the tokens if the server can, and forget them; return whether there were any."""
        entry = await self.load()
        if entry is None:
            return False
        where, tokens = entry["server"].get("revocation_endpoint"), entry["tokens"]
        token = tokens.get("refresh_token") or tokens["access_token"]
        if where:
            with contextlib.suppress(MCPError):  # RFC 7009 -- gone here, whatever happens there
                await self.token_request(entry["server"], entry["client"], {"token": token}, where)
        await self.store.save(tuple(entry["key"]), None)
        await self.store.save(self.place, None)
        return True

    # Tokens.

    async def refresh(self, used: str) -> bool:
        """Get another access token without a person; return False if that cannot be."""
        if self.entry is None or "refresh_token" not in self.tokens:
            return False
        key = tuple(self.entry["key"])
        async with self.store.lock(key):
            entry = await self.store.load(key) or self.entry
            if entry["tokens"]["access_token"] != used:  # another process was faster
                self.entry = entry
                return True
            fields = {"grant_type": "refresh_token",
                      "refresh_token": entry["tokens"]["refresh_token"]}  # fmt: skip
            try:
                form = self.with_resource(fields, entry["resource"])
                doc = await self.token_request(entry["server"], entry["client"], form)
            except TokenRefused as exc:
                if exc.error not in ("invalid_grant", "invalid_client"):
                    raise
                await self.store.save(key, None)
                if exc.error == "invalid_client":
                    await self.store.save(("client", exc.issuer), None)
                self.entry = None
                return False
            old = entry["tokens"]
            tokens = self.read_tokens(doc, old["scope"], entry["server"])
            tokens.setdefault("refresh_token", old["refresh_token"])
            await self.keep({**entry, "tokens": tokens})
        return True

    def read_tokens(self, doc: Msg, scope: str, server: Msg) -> Msg:
        """Check a token answer."""
        bound = self.dpop_key is not None
        return read_token(doc, time.time(), scope, bound, str(server.get("token_endpoint")))

    def with_resource(self, fields: dict[str, str], resource: str | None) -> dict[str, str]:
        """Name the server that the token is for: RFC 8707 §2.2, unless the user says otherwise."""
        if self.settings.resource is not FROM_METADATA:
            resource = self.settings.resource
        return {**fields, "resource": resource} if resource else fields

    async def log_in(self, challenge: Challenge, before: str) -> None:
        """Find out who gives tokens for this server, and get one."""
        if self.settings.person and not self.settings.interactive:
            login = f"python3 mcp_lite.py login {self.url}, or give a token"
            raise AuthError(f"{self.url} wants a login: {login}")
        now = time.monotonic()
        if len(self.logins) == MAX_LOGINS and now - self.logins[0] < LOGINS_SECONDS:
            raise AuthError(f"{self.url} wanted {MAX_LOGINS} logins within a minute: no more")
        self.logins.append(now)
        resource, server = await self.discover(challenge)
        scope = wanted_scope(challenge, resource, server, self.settings.scopes, before)
        if before and set(scope.split()) == set(before.split()):
            raise AuthError(f"{self.url} wants scope {show(scope)}, which was asked for already")
        if (resource.dpop or challenge.scheme == "dpop") and self.dpop_key is None:
            from secrets import randbelow

            self.dpop_key = ec_key(1 + randbelow(N - 1))
        tokens, client = await self.settings.obtain(self, resource, server, scope)
        issuer, key = server["issuer"], self.dpop_key
        await self.keep({
            "key": [resource.resource, issuer, client["client_id"]],
            "tokens": tokens, "asked": scope, "client": client, "server": server,
            "resource": resource.resource, "dpop": hex(key.d) if key else None,
        })  # fmt: skip

    def proof(self, method: str, url: str, token: str = "") -> str:
        """Return a proof for one request, with the last nonce that its server gave."""
        from secrets import token_urlsafe

        assert self.dpop_key is not None
        nonce = self.nonces.get(origin_of(parse_url(url)), "")
        return dpop_proof(self.dpop_key, method, url, time.time(), token_urlsafe(16), token, nonce)

    async def token_request(
        self, server: Msg, client: Msg, fields: Mapping[str, str], where: str | None = None
    ) -> Msg:
        """Send a token request; TokenRefused if the answer is an error. RFC 6749 §3.2"""
        from urllib.parse import urlencode

        url = oauth_url(where or server.get("token_endpoint"), "token_endpoint")
        headers, more = await self.settings.identify(client, server)
        headers["content-type"] = "application/x-www-form-urlencoded"
        form = {**fields, **more}
        for last in (False, True):
            proof = {"dpop": self.proof("POST", str(url))} if self.dpop_key else {}
            sent = {**headers, **proof}
            status, nonce, doc = await self.fetcher.fetch("POST", url, sent, form, urlencode)
            if nonce:
                self.nonces[origin_of(url)] = nonce
            error = doc.get("error") if isinstance(doc, dict) else None
            if error != "use_dpop_nonce" or not nonce or last:  # RFC 9449 §8
                break
        if status == 200 and isinstance(doc, dict):
            return doc
        if isinstance(error, str) and status < 500:
            raise TokenRefused(f"{url} refused: {said(doc)}", error, server["issuer"])
        raise ConnectionClosed(f"{url} answered {status}")

    # Discovery and registration.

    async def discover(self, challenge: Challenge) -> tuple[ProtectedResource, Msg]:
        """Return the metadata of the server, and of the authorization server that it names."""
        named = challenge.params.get("resource_metadata")
        where, doc = await self.fetcher.first_of(
            [named] if named else resource_metadata_urls(self.url), "resource metadata"
        )
        if where:
            resource = read_protected(doc, self.url, where)
            issuer = self.settings.choose(resource.issuers, str(self.url))
        elif named:
            raise AuthError(f"{named}: the metadata that {self.url} names are not there")
        else:  # the first revision with authorization: the server is its own
            resource = ProtectedResource(str(self.url), [], [], False)
            issuer = origin_of(self.url)
        where, doc = await self.fetcher.first_of(server_metadata_urls(issuer), "server metadata")
        if where:
            server = read_server_metadata(doc, issuer, where)
        elif resource.issuers:
            raise AuthError(f"{issuer}: none of {', '.join(server_metadata_urls(issuer))} is there")
        else:
            server = default_server(self.url)
        self.settings.choose([server["issuer"]], str(self.url))
        if self.settings.client_id and self.settings.issuer is None:
            self.settings.issuer = server["issuer"]  # the first who is shown it, and no other
        return resource, server

    async def register(self, server: Msg, redirect_uri: str, scope: str) -> Msg:
        """Register with an authorization server, and remember what we are there."""
        url = oauth_url(server["registration_endpoint"], "registration_endpoint")
        asked = registration(server, self.settings.client_name, redirect_uri, scope)
        status, _, doc = await self.fetcher.fetch("POST", url, {"content-type": JSON_TYPE}, asked)
        if status not in (200, 201):
            why = said(doc) if isinstance(doc, dict) else "without a reason"
            raise AuthError(f"{url} did not register us: {status}, {why}")
        client = read_client(doc, asked, str(url))
        kept = {**client, "redirect_uri": redirect_uri}
        await self.store.save(("client", server["issuer"]), kept)
        return client


# Ways to a token.

FROM_METADATA = "(from metadata)"


class OAuth:
    """How to log in: `Client(url, auth=OAuth(...))`; `auth="oauth"` is OAuth() without arguments.

    `client_id` and `client_secret` are for servers where somebody registered us, at `issuer`, or at
    the first issuer that is met; `client_metadata_url` is a client ID that is a document;
    `private_key`, a PEM text, replaces the secret. `scopes` and `resource` replace what the server
    names; resource=None leaves it out. `redirect_uri` and `port` are for servers that compare them,
    `extra` is added to the request. `store` keeps logins. open_browser(url) shows the page;
    ask_for_redirect(url) returns where the browser ended up, and nothing listens. Without
    `interactive`, AuthError is raised at once.
    """

    person = True  # who must agree, in a browser

    def __init__(
        self, *, client_id: str | None = None, client_secret: str | None = None,
        issuer: str | None = None, client_metadata_url: str | None = None,
        client_name: str = "mcp_lite", scopes: Sequence[str] | None = None,
        resource: str | None = FROM_METADATA, redirect_uri: str | None = None, port: int = 0,
        store: TokenStore | None = None, open_browser: Callable[[str], Any] = open_browser,
        ask_for_redirect: Callable[[str], Any] | None = None,
        extra: Mapping[str, str] | None = None, private_key: str | None = None,
        assume_pkce: bool = False, allow_private: bool = False, timeout: float = LOGIN_SECONDS,
        interactive: bool = True,
    ) -> None:  # fmt: skip
        self.client_id, self.client_secret, self.issuer = client_id, client_secret, issuer
        self.client_metadata_url, self.client_name = client_metadata_url, client_name
        self.scopes, self.resource = scopes, resource
        self.redirect_uri, self.port = redirect_uri, port
        self.store = store or (FileStore() if self.person else TokenStore())
        self.open_browser, self.ask_for_redirect = open_browser, ask_for_redirect
        self.extra, self.assume_pkce, self.allow_private = extra or {}, assume_pkce, allow_private
        self.timeout, self.interactive = timeout, interactive
        self.private_key = None if private_key is None else read_pem(private_key)
        # spec: basic/authorization/security-considerations#communication-security
        if redirect_uri is not None:
            oauth_url(redirect_uri, "redirect_uri")
        # spec: basic/authorization/client-registration#client-id-metadata-documents
        if not re.match("https://[^/]+/.", client_metadata_url or "https://x/y"):
            raise AuthError(f"client_metadata_url={client_metadata_url!r}: give https and a path")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.client_id or ''}>"

    def choose(self, issuers: Sequence[str], server: str) -> str:
        """Return the issuer to use: ours, or the first. What belongs to one is shown to no other.

        spec: basic/authorization/client-registration#authorization-server-binding
        """
        if self.issuer is None:
            return issuers[0]
        for issuer in issuers:
            if same_issuer(issuer, self.issuer):
                return issuer
        raise AuthError(f"{server} names {show(issuers)}; the client_id is for {self.issuer} only")

    async def identify(self, client: Msg, server: Msg) -> tuple[dict[str, str], dict[str, str]]:
        """Return headers and form fields that say who we are."""
        if self.private_key is None:
            return client_credentials(client, server)
        from secrets import token_urlsafe

        proof = client_assertion(self.private_key, client["client_id"], server["issuer"],
                                 time.time(), token_urlsafe(16))  # fmt: skip
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        return {}, {"client_assertion_type": kind, "client_assertion": proof}

    def known_client(self, server: Msg) -> Msg | None:
        """Return what we are without registering: told by the user, or named by a document."""
        if self.client_id:
            secret = {"client_secret": self.client_secret} if self.client_secret else {}
            return {"client_id": self.client_id, **secret}
        if self.client_metadata_url and server.get("client_id_metadata_document_supported") is True:
            return {"client_id": self.client_metadata_url, "token_endpoint_auth_method": "none"}
        return None

    async def obtain(
        self, login: Login, resource: ProtectedResource, server: Msg, scope: str
    ) -> tuple[Msg, Msg]:
        """Ask a person, by way of a browser; return the tokens, and the client they are for."""
        from secrets import token_urlsafe

        check_pkce(server, self.assume_pkce)
        state, verifier = token_urlsafe(32), token_urlsafe(48)
        door = RedirectListener(state)
        try:
            client, redirect_uri = await self._enter(login, door, server, scope)
            fields = {
                "response_type": "code", "client_id": client["client_id"],
                "redirect_uri": redirect_uri, "state": state,
                "code_challenge": code_challenge(verifier), "code_challenge_method": "S256",
                **({"scope": scope} if scope else {}),
            }  # fmt: skip
            fields = login.with_resource(fields, resource.resource)
            page = authorization_url(server, fields, self.extra)
            login.fetcher.check(parse_url(page))
            answer = await self._ask(page, door)
        except AuthError:  # some servers say so on their page alone that they know us no longer
            await login.store.save(("client", server["issuer"]), None)
            raise
        finally:
            await door.close()
        form = {"grant_type": "authorization_code", "code": code_of(answer, server),
                "redirect_uri": redirect_uri, "code_verifier": verifier}  # fmt: skip
        form = login.with_resource(form, resource.resource)
        doc = await login.token_request(server, client, form)
        return login.read_tokens(doc, scope, server), client

    async def _enter(
        self, login: Login, door: RedirectListener, server: Msg, scope: str
    ) -> tuple[Msg, str]:
        """Listen where the browser will come back, and be a client that may name that place."""
        kept = await login.store.load(("client", server["issuer"])) or {}
        if kept.get("client_secret_expires_at", time.time() + 1) <= time.time():
            kept = {}
        uri = self.redirect_uri or await self._listen(door, kept.get("redirect_uri"))
        if self.redirect_uri and self.ask_for_redirect is None:
            url = parse_url(self.redirect_uri)
            if url.scheme != "http" or not is_loopback(url.host):
                raise AuthError(f"redirect_uri={uri} is not on this machine: ask_for_redirect= too")
            door.path = url.target
            await self._open(door, url.port, url.host)
        client = self.known_client(server)
        if client is None and kept.get("redirect_uri") == uri:
            client = {key: value for key, value in kept.items() if key != "redirect_uri"}
        if client is None and not server.get("registration_endpoint"):
            raise AuthError(
                f"{server['issuer']} registers nobody by itself: register {uri} there, and pass "
                f"OAuth(client_id=..., issuer={server['issuer']!r}, redirect_uri=...)"
            )
        return client or await login.register(server, uri, scope), uri

    async def _listen(self, door: RedirectListener, former: str | None) -> str:
        """Listen, where we are registered if that is free; return the redirect URI."""
        if self.ask_for_redirect is not None:
            return "http://127.0.0.1/callback"
        port = parse_url(former).port if former and not self.port else 0
        try:
            port = await door.open(port or self.port)
        except OSError:  # somebody has it now: another port, and another registration
            port = await self._open(door, self.port)
        return f"http://127.0.0.1:{port}{door.path}"

    async def _open(self, door: RedirectListener, port: int, host: str = "localhost") -> int:
        try:
            return await door.open(port, "127.0.0.1" if host == "localhost" else host)
        except OSError as exc:
            problem = f"port {port} for the redirect cannot be had: {exc}"
            raise AuthError(f"{problem}; OAuth(port=) or redirect_uri= choose another") from None

    async def _ask(self, url: str, door: RedirectListener) -> dict[str, str]:
        """Show the page, and return what the browser comes back with."""
        if self.ask_for_redirect is not None:
            where = await asyncio.wait_for(_maybe_await(self.ask_for_redirect(url)), self.timeout)
            answer = pasted_answer(str(where), door.state)
            if answer is None:
                raise AuthError("the redirect is not the answer to this login: state is different")
            return answer
        sys.stderr.write(f"To log in, open this page:\n\n    {url}\n\n")
        self.open_browser(url)
        paste = asyncio.ensure_future(pasted(door.state))
        try:
            ways: set[Any] = {door.answer, paste}
            done, _ = await asyncio.wait(
                ways, timeout=self.timeout, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            paste.cancel()
            await asyncio.wait([paste])
        if not done:
            raise AuthError(f"nobody logged in within {self.timeout:g} seconds")
        return dict(done.pop().result())


class ClientCredentials(OAuth):
    """A program that logs in as itself, with a secret or a private key. RFC 6749 §4.4"""

    person = False

    def __init__(self, client_id: str, client_secret: str | None = None, **options: Any) -> None:
        super().__init__(client_id=client_id, client_secret=client_secret, **options)

    async def obtain(
        self, login: Login, resource: ProtectedResource, server: Msg, scope: str
    ) -> tuple[Msg, Msg]:
        """Ask for a token in our own name."""
        client = self.known_client(server) or {}
        form = {**await self.grant(login, resource, server), **({"scope": scope} if scope else {})}
        form = login.with_resource(form, resource.resource)
        doc = await login.token_request(server, client, form)
        doc.pop("refresh_token", None)  # RFC 6749 §4.4.3 -- we ask again, with what we have
        return login.read_tokens(doc, scope, server), client

    async def grant(self, login: Login, resource: ProtectedResource, server: Msg) -> dict[str, str]:
        """Return the fields that say why we get a token."""
        return {"grant_type": "client_credentials"}


class WorkloadIdentity(ClientCredentials):
    """A program whose platform vouches for it: `assertion` is a JWT, or gives one. RFC 7523"""

    def __init__(self, client_id: str, assertion: Any, **options: Any) -> None:
        super().__init__(client_id, **options)
        self.assertion = assertion

    async def grant(self, login: Login, resource: ProtectedResource, server: Msg) -> dict[str, str]:
        """Show the platform's token."""
        return {"grant_type": JWT_BEARER, "assertion": str(await value_from(self.assertion))}


class IdentityAssertion(ClientCredentials):
    """A person whose company vouches for them: `id_token` is theirs, or gives it. It is exchanged
    at the company's provider for a grant that our server's authorization server takes: ID-JAG."""

    def __init__(
        self, client_id: str, client_secret: str | None = None, *, idp_token_endpoint: str,
        idp_client_id: str, id_token: Any, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(client_id, client_secret, **options)
        self.idp = {"issuer": idp_token_endpoint, "token_endpoint": idp_token_endpoint}
        self.idp_client = {"client_id": idp_client_id, "token_endpoint_auth_method": "none"}
        self.id_token = id_token

    async def grant(self, login: Login, resource: ProtectedResource, server: Msg) -> dict[str, str]:
        """Exchange the person's token for a grant. RFC 8693 §2.1"""
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": TOKEN_TYPE + "id-jag",
            "subject_token": str(await value_from(self.id_token)),
            "subject_token_type": TOKEN_TYPE + "id_token",
            "audience": server["issuer"],
            "resource": resource.resource,
        }
        doc = await login.token_request(self.idp, self.idp_client, form)
        kind, grant = doc.get("issued_token_type"), doc.get("access_token")
        if kind != TOKEN_TYPE + "id-jag" or not isinstance(grant, str):
            raise AuthError(f"{self.idp['issuer']}: issued_token_type is {show(kind)}, not id-jag")
        return {"grant_type": JWT_BEARER, "assertion": grant}


# What `auth=` can be.


class TokenAuthorizer(Authorizer):
    """A token from elsewhere: a text, or what a function gives, plain or async, each time."""

    def __init__(self, token: Any) -> None:
        self.token = token

    async def headers(self, method: str, target: str, ask: bool) -> dict[str, str]:
        """Return the header with the token."""
        token = await value_from(self.token)
        if not isinstance(token, str) or not ACCESS_TOKEN.fullmatch(token):
            raise AuthError("auth= gives no text that a header can carry")
        return {"authorization": f"Bearer {token}"}

    async def settle(
        self, answer: HTTPAnswer, sent: Mapping[str, str], steps: list[str]
    ) -> bool:
        """Ask a function once more: its token may have been renewed."""
        if answer.head.status != 401 or steps or not callable(self.token):
            return False
        steps.append("repeat")
        return await self.headers("", "", False) != sent


def make_authorizer(transport: HTTPTransport, auth: Any) -> Authorizer | None:
    """Return what `auth=` stands for: "oauth", OAuth(...), a token, or a function."""
    if auth == "oauth":
        auth = OAuth()
    if isinstance(auth, OAuth):
        return Login(transport, auth)
    return TokenAuthorizer(auth) if isinstance(auth, str) or callable(auth) else None


AUTHORIZERS.append(make_authorizer)


async def logout(url: str, *, auth: OAuth | None = None, ssl: Any = None) -> bool:
    """Forget the login to a server, and revoke it if that can be done; False if there was none."""
    transport = HTTPTransport(url, ssl=ssl)
    try:
        return await Login(transport, auth or OAuth(interactive=False)).forget()
    finally:
        await transport.close()

###############################################################################
# 48. Guarding a server
###############################################################################
# Uses sections 1, 2, 16, 19, 27, 32, 34, 39 and 44 to 47.
#
# Problem.  A server on the Internet takes tokens that somebody else gave out. It must know that
#           they are right, that they are meant for it and not for its neighbour, and what their
#           owner may do; and it must tell a client where to get one.
# Rules.    1. In doubt nobody comes in. Who the tokens must be from and for is configured, never
#              read from a request.
#           2. A refusal says what RFC 6750 says, and nothing of our reasons: those are in the log.
#           3. A token that cannot be judged now is 503. With 401 every client would log in again.
#           4. Handlers see a Principal. The token itself goes no further than here.
# Plan.     Principal; the judges of tokens: jwt_verifier(), introspection(); Guard.
# Not here. Giving out tokens: examples/authorization shows how little that takes.

__all__ += ["Guard", "Principal", "jwt_verifier", "introspection"]

MAX_CACHED_TOKENS = 10_000  # that were found right; about 1 KiB each
CACHE_SECONDS = 60.0  # for which a token is right without a second look, even if it is revoked
KEYS_SECONDS = 600.0  # for which an issuer's keys are used before they are fetched again
REFETCH_SECONDS = 30.0  # between two fetches of keys that tokens with unknown ids cause
ANY_SERVER = "(any server)"  # the audience of tokens that are for no server in particular
RETRY_AFTER_SECONDS = 10  # that a client is told to wait while tokens cannot be judged


class Principal:
    """Who sent a request, as a token says. Equal to another by issuer, subject and client.

    `scopes` are what its owner may do, `expires_at` is a time or None, `claims` is all the rest.
    """

    def __init__(
        self, issuer: str, subject: str, client_id: str = "", scopes: Iterable[str] = (),
        expires_at: float | None = None, claims: Msg | None = None,
    ) -> None:  # fmt: skip
        self.issuer, self.subject, self.client_id = issuer, subject, client_id
        self.scopes, self.expires_at, self.claims = frozenset(scopes), expires_at, claims or {}

    def name(self) -> tuple[str, str, str]:
        """Return what makes it itself."""
        return self.issuer, self.subject, self.client_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Principal) and self.name() == other.name()

    def __hash__(self) -> int:
        return hash(self.name())

    def __repr__(self) -> str:
        return f"Principal({self.issuer!r}, {self.subject!r}, {self.client_id!r})"


def principal_of(claims: Msg, issuer: str) -> Principal:
    """Return the principal that the claims of a token, or of an introspection, speak of."""
    # RFC 9068 §2.2: `client_id`; OpenID Connect: `azp`. RFC 8693 §4.2: `scope`; others: `scp`
    client = claims.get("client_id") or claims.get("azp") or ""
    scope = claims.get("scope", claims.get("scp", ""))
    scopes = scope.split() if isinstance(scope, str) else strings({"x": scope}, "x")
    subject = claims.get("sub") or client
    if not (isinstance(subject, str) and isinstance(client, str) and subject):
        raise AuthError("it has neither sub nor client_id")
    return Principal(issuer, subject, client, scopes, claims.get("exp"), claims)


class Refused(ProtocolError):
    """A request that is not let in, with the HTTP headers that say why."""

    def __init__(self, message: str, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(message, http_status=status)
        self.headers = headers


def not_now(exc: Exception) -> Refused:
    """Return the refusal of a token that nobody can judge at the moment."""
    logger.warning("tokens cannot be judged: %s", exc)
    return Refused("tokens cannot be checked at the moment", 503,
                   {"retry-after": str(RETRY_AFTER_SECONDS)})  # fmt: skip


# Judges of tokens: functions from a token to a Principal, or to None.


class KeySet:
    """The keys of one issuer, fetched when they are needed, and kept while it is down."""

    def __init__(self, issuer: str, uri: str | None, ssl: Any) -> None:
        self.issuer, self.uri = issuer, uri
        # Who configured the issuer may well have it on a private network.
        where = oauth_url(uri or issuer, "jwks_uri" if uri else "issuer")
        self.fetcher = Fetcher(where, ssl, allow_private=True)
        self.keys: list[JSON] | None = None
        self.fetched = self.tried = float("-inf")
        self.work: asyncio.Task[None] | None = None

    async def get(self, anew: bool = False) -> list[JSON]:
        """Return the keys, fetched `anew` unless that was done just now; Refused without any."""
        now = time.monotonic()
        old = now - self.fetched > KEYS_SECONDS
        if self.keys is None or ((old or anew) and now - self.tried > REFETCH_SECONDS):
            loop = asyncio.get_running_loop()
            if self.work is None or self.work.done() or self.work.get_loop() is not loop:
                self.tried = now
                self.work = loop.create_task(self._fetch())
            try:
                await asyncio.shield(self.work)
            except MCPError as exc:
                if self.keys is None:
                    raise not_now(exc) from None
                logger.warning("the keys of %s stay as they were: %s", self.issuer, exc)
        return self.keys or []

    async def _fetch(self) -> None:
        uri = self.uri
        if uri is None:
            where, doc = await self.fetcher.first_of(
                server_metadata_urls(self.issuer), "server metadata"
            )
            uri = read_server_metadata(doc, self.issuer, where or self.issuer).get("jwks_uri")
        _, doc = await self.fetcher.first_of([str(uri)], "jwks_uri")
        if not isinstance(doc, dict) or not isinstance(doc.get("keys"), list):
            raise AuthError(f"{uri} has no keys")
        self.keys, self.fetched = doc["keys"], time.monotonic()


def jwt_verifier(
    issuer: str, *, audience: str | Sequence[str], jwks_uri: str | None = None,
    keys: Sequence[Msg] | None = None, algorithms: Sequence[str] = ALGORITHMS,
    leeway: float = LEEWAY_SECONDS, claims: Callable[[Msg], bool] | None = None, ssl: Any = None,
) -> Callable[[str], Awaitable[Principal | None]]:  # fmt: skip
    """Return what judges the JWTs of an issuer that are meant for `audience`: for Guard(verify=).

    The keys come from `keys` (JWKs), from `jwks_uri`, or from the issuer's metadata. claims(dict)
    may refuse what is right otherwise. RFC 9068 §4, RFC 8725
    """
    meant = [audience] if isinstance(audience, str) else list(audience)
    if not meant or not all(meant):
        raise ValueError("audience= is needed: without it, tokens for other servers come in")
    unknown = set(algorithms) - {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256"}
    if unknown or not algorithms:
        raise ValueError(f"algorithms= has {sorted(unknown)}: there are RS..., PS... and ES256")
    if not 0 <= leeway <= MAX_LEEWAY_SECONDS:
        raise ValueError(f"leeway={leeway}: give 0 to {MAX_LEEWAY_SECONDS:g} seconds")
    key_set = KeySet(issuer, jwks_uri, ssl)

    async def find_keys(jwt: JWT) -> list[Key]:
        if keys is not None:
            return keys_for(jwt, keys, algorithms)
        keys_for(jwt, [], algorithms)  # a header that is refused costs no fetch
        return keys_for(jwt, await key_set.get(), algorithms) or keys_for(
            jwt, await key_set.get(anew=True), algorithms
        )

    async def verify(token: str) -> Principal | None:
        try:
            jwt = read_jwt(token)
            found = await find_keys(jwt)
            if not found:
                raise AuthError("no key of the issuer fits it")
            check_signature(jwt, found)
            check_claims(jwt.claims, issuer, meant, time.time(), leeway)
            if "cnf" in jwt.claims:  # RFC 7800 §3 -- whoever stole it could not prove possession
                raise AuthError("it is bound to a key, and no proof is checked here")
            if claims is not None and not claims(jwt.claims):
                raise AuthError("its claims are refused by claims=")
            return principal_of(jwt.claims, issuer)
        except AuthError as exc:
            logger.info("a token is refused: %s", exc)
            return None

    return verify


def introspection(
    endpoint: str, client_id: str, client_secret: str, *, audience: str | Sequence[str] | None,
    issuer: str | None = None, ssl: Any = None,
) -> Callable[[str], Awaitable[Principal | None]]:  # fmt: skip
    """Return what asks an authorization server about tokens that only it can read. RFC 7662

    `audience` must be in the answer; None lets every token of that server in, whomever it is for.
    """
    from urllib.parse import urlencode

    url = oauth_url(endpoint, "endpoint")
    meant = [audience] if isinstance(audience, str) else audience
    client = {"client_id": client_id, "client_secret": client_secret}
    headers, _ = client_credentials(client, {})
    headers["content-type"] = "application/x-www-form-urlencoded"
    fetcher = Fetcher(url, ssl, allow_private=True)

    async def verify(token: str) -> Principal | None:
        form = {"token": token, "token_type_hint": "access_token"}
        try:
            status, _, doc = await fetcher.fetch("POST", url, headers, form, urlencode)
        except MCPError as exc:
            raise not_now(exc) from None
        if status != 200 or not isinstance(doc, dict):
            raise not_now(AuthError(f"{url} answered {status}"))
        try:
            if doc.get("active") is not True:
                raise AuthError("it is not active")
            now = time.time()
            named = issuer or doc.get("iss") or origin_of(url)
            told = {"iss": named, "exp": now + CACHE_SECONDS, **doc}
            if meant is None:
                told["aud"] = ANY_SERVER
            check_claims(told, named, meant or [ANY_SERVER], now)
            return principal_of(doc, named)
        except AuthError as exc:
            logger.info("a token is refused: %s", exc)
            return None

    return verify


# The guard.


class Guard(Entrance):
    """Lets requests in: `app.run("http", auth=Guard(...))`, or the same for ASGI.

    `resource_url` is our URL as clients know it, behind whatever proxies; it may be left out where
    only this machine can reach us. `issuers` give the tokens, which verify(token) judges: plain or
    async, it gives a Principal, or None. `scopes` are those that every request needs; `offered` are
    those to name besides. expand(scopes) gives all that some scopes imply.
    """

    def __init__(
        self, *, verify: Callable[[str], Any], issuers: Sequence[str] = (),
        resource_url: str | None = None, scopes: Sequence[str] = (), offered: Sequence[str] = (),
        expand: Callable[[frozenset[str]], Iterable[str]] | None = None,
        documentation: str | None = None, key: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(None, verify, key)
        if resource_url is not None:
            oauth_url(resource_url, "resource_url")
        for issuer in issuers:
            server_metadata_urls(issuer)  # which refuses what cannot be one
        for scope in (*scopes, *offered):
            # spec: basic/authorization/index#refresh-tokens -- it is no business of a resource
            if not SCOPE.fullmatch(scope) or scope == "offline_access":
                raise ValueError(f"{scope!r} is no scope of a server")
        self.url, self.judge_token, self.issuers = resource_url or "", verify, list(issuers)
        self.scopes, self.offered, self.expand = list(scopes), list(offered), expand
        self.documentation = documentation
        self.cache: OrderedDict[bytes, tuple[float, Identity]] = OrderedDict()

    def challenge(self, error: str = "", scope: str | None = None) -> dict[str, str]:
        """Return the header that says what is wanted. RFC 6750 §3, RFC 9728 §5.1

        A request without a token has made no error, and hears of none.
        """
        fields = {}
        if self.issuers and self.url:
            fields["resource_metadata"] = resource_metadata_urls(parse_url(self.url))[0]
        wanted = " ".join(self.scopes) if scope is None else scope
        fields.update({"scope": wanted} if wanted else {})
        fields.update({"error": error} if error else {})
        text = ", ".join(f'{name}="{value}"' for name, value in fields.items())
        return {"www-authenticate": f"Bearer {text}".rstrip()}

    def token_of(self, headers: Mapping[str, str], query: str = "") -> str:
        """Return the token of a request; Refused if there is none, or more than one."""
        token = bearer_of(headers)
        if token is None:  # one in the query alone is none: RFC 6750 §5.3
            raise Refused("a token is needed", 401, self.challenge())
        if re.search("[ ,]", token) or re.search("(?:^|&)access_token=", query):
            problem = "one token, in one Authorization header"
            raise Refused(problem, 400, self.challenge("invalid_request"))
        return token

    def known(self, headers: Mapping[str, str], query: str = "") -> Identity | None:
        """Return whose a token is that was judged a moment ago, else None; Refused without one."""
        found = self.cache.get(digest("256", self.token_of(headers, query).encode()))
        return found[1] if found is not None and found[0] > time.time() else None

    async def identify(self, headers: Mapping[str, str], query: str = "") -> Identity:
        """Return whose token a request has; Refused if it is not right, or may do nothing here."""
        who = self.known(headers, query)
        if who is None:
            token = self.token_of(headers)
            principal = await self.judge(token)
            who = Identity(principal, owner_of(principal, self.key))
            ends = getattr(principal, "expires_at", None)
            until = min(time.time() + CACHE_SECONDS, NEVER if ends is None else ends)
            self.cache[digest("256", token.encode())] = (until, who)
            self.cache.move_to_end(digest("256", token.encode()))
            if len(self.cache) > MAX_CACHED_TOKENS:
                self.cache.popitem(last=False)
        if not set(self.scopes) <= getattr(who.principal, "scopes", frozenset()):
            problem = "the token has too little scope"
            raise Refused(problem, 403, self.wants("", who.principal))
        return who

    async def judge(self, token: str) -> Any:
        """Return the principal of a token; Refused if verify() knows none."""
        try:
            principal = await _maybe_await(self.judge_token(token))
        except ProtocolError:
            raise
        except Exception as exc:  # whatever it is, nobody comes in by it
            raise not_now(exc) from exc
        if principal is None:
            raise Refused("the token is not valid here", 401, self.challenge("invalid_token"))
        if self.expand is not None and isinstance(principal, Principal):
            principal.scopes = frozenset(self.expand(principal.scopes)) | principal.scopes
        return principal

    def wants(self, scope: str, principal: Any) -> dict[str, str]:
        """Return the header that tells of a missing scope, and of all that we need anyway.

        spec: basic/authorization/index#runtime-insufficient-scope-errors
        """
        held = getattr(principal, "scopes", ())
        # spec 2025-11-25: basic/authorization#runtime-insufficient-scope-errors -- "to prevent
        # clients from losing previously granted permissions": they ask for what is named here
        kept = [each for each in self.offered if each in held]
        wanted = dict.fromkeys((*self.scopes, *kept, *scope.split()))
        return self.challenge("insufficient_scope", " ".join(wanted))

    def pages(self, path: str, local: bool) -> dict[str, Callable[..., Any]]:
        """Return the page with our metadata, at the place for the path and at the root."""
        if not self.issuers:
            return {}
        if not self.url and not local:
            raise ValueError("Guard(resource_url=) is needed: our URL, as clients know it")

        async def page(request: Any) -> Any:
            if not self.url:  # under an ASGI server: nobody told us
                return 500, "text/plain", "Guard(resource_url=) is needed here"
            return self.metadata()

        return dict.fromkeys((RESOURCE_METADATA + path, RESOURCE_METADATA), page)

    def metadata(self) -> tuple[int, dict[str, str], str]:
        """Return the page that says who gives tokens for us. RFC 9728 §3.2"""
        scopes = list(dict.fromkeys((*self.scopes, *self.offered)))
        doc = without_none(
            resource=self.url, authorization_servers=self.issuers or None,
            scopes_supported=scopes or None, bearer_methods_supported=["header"],
            resource_documentation=self.documentation,
        )  # fmt: skip
        headers = {"content-type": JSON_TYPE, "cache-control": "max-age=3600",
                   "access-control-allow-origin": "*"}  # fmt: skip
        return 200, headers, json.dumps(doc)

# =============================================================================
# Part VIII. Forwarding
# =============================================================================

###############################################################################
# 49. Cutting to measure
###############################################################################
# Uses sections 1, 2, 4, 23 and 27.
#
# Problem.  A program stands between an application and a server, and passes on what each of them
#           says. The two may speak different revisions.
# Rules.    1. Nobody receives a field, a content type or a code of an error that the revision does
#              not know. All else passes as it is.
#           2. Anything may come from a server: what is not of the expected shape passes as it is.
# Plan.     Results; questions of a server, and their answers; errors.
# Not here. The tables of what a revision knows: section 4.


def fit_result(method: str, answer: Msg, rev: Revision) -> Msg:
    """Return the result of a method as `rev` knows it.

    >>> fit_result("tools/call", {"content": [], "structuredContent": {}}, REVISIONS[LEGACY[-1]])
    {'content': []}
    """
    row, answer = METHODS.get(method), strip_unknown("Result", answer, rev)
    if not rev.modern and SERVER_INFO in object_of(answer, "_meta"):
        answer = {**answer, "_meta": {**answer["_meta"]}}
        del answer["_meta"][SERVER_INFO]
        if not answer["_meta"]:
            del answer["_meta"]
    key = row.lists.key if row is not None else ""
    items = answer.get(key)
    if row is not None and isinstance(items, list) and all(isinstance(x, dict) for x in items):
        if row.lists.kind:
            items = [fit_definition(row.lists.kind, _legal_output(x, rev), rev) for x in items]
        elif method == "prompts/get" and not rev.rich_content:
            items = [fit_message(x, rev) for x in items]
        elif method == "resources/read":
            items = [strip_unknown("Contents", x, rev) for x in items]
        answer = {**answer, key: items}
    elif method == "tools/call":
        answer = strip_unknown("CallToolResult", answer, rev)
        if not rev.modern and not isinstance(answer.get("structuredContent", {}), dict):
            answer = {k: v for k, v in answer.items() if k != "structuredContent"}
        blocks = answer.get("content")
        if isinstance(blocks, list) and all(isinstance(x, dict) for x in blocks):
            answer = {**answer, "content": [fit_content(x, rev) for x in blocks]}
    return answer


def _legal_output(tool: Msg, rev: Revision) -> Msg:
    """Return a tool whose output is an object, as all legacy revisions want it."""
    schema = tool.get("outputSchema")
    if rev.modern or not isinstance(schema, dict) or schema.get("type") == "object":
        return tool
    return {key: value for key, value in tool.items() if key != "outputSchema"}


def fit_question(method: str, params: Msg, rev: Revision) -> Msg:
    """Return the parameters of a question as `rev` knows them; RPCError if it cannot ask this."""
    meta = {k: v for k, v in object_of(params, "_meta").items() if k != "progressToken"}
    params = {**params, **({"_meta": meta} if meta else {})}
    if not meta:
        params.pop("_meta", None)
    if method == "sampling/createMessage":
        params = strip_unknown("Sampling", params, rev)
        messages = [fit_message(x, rev) for x in params["messages"] if isinstance(x, dict)]
        return {**params, "messages": messages}
    if method == "elicitation/create" and params.get("mode") == "url":
        own = {} if rev.modern else {"elicitationId": os.urandom(16).hex()}
        params = {**own, **params}
        if rev.modern:  # there, an answer to the call says that the person is done
            params.pop("elicitationId", None)
    elif method == "elicitation/create":
        schema = fit_form(object_of(params, "requestedSchema"), rev)
        params = {**params, "requestedSchema": schema}
        if not rev.rich_elicitation:
            params.pop("mode", None)
    return params


def fit_answer(method: str, answer: Msg, rev: Revision) -> Msg:
    """Return the answer to a question as `rev` knows it.

    >>> rich = {"roots": [{"uri": "file:///a", "_meta": {}}]}
    >>> fit_answer("roots/list", rich, REVISIONS[LEGACY[-1]])
    {'roots': [{'uri': 'file:///a'}]}
    """
    answer = strip_unknown("Result", answer, rev)
    if method == "roots/list" and isinstance(answer.get("roots"), list):
        roots = [strip_unknown("Root", x, rev) for x in answer["roots"] if isinstance(x, dict)]
        return {**answer, "roots": roots}
    return fit_message(answer, rev) if method == "sampling/createMessage" else answer


def refusal_of(exc: Exception, rev: Revision) -> RPCError:
    """Return the error that tells the other leg what became of a request on this one.

    >>> str(refusal_of(RemoteError(-32002, "Resource not found"), NEWEST))
    'Resource not found (-32602)'
    """
    if isinstance(exc, RPCError):
        return exc
    if not isinstance(exc, RemoteError):
        return RPCError(INTERNAL_ERROR, str(exc) or type(exc).__name__)
    code = rev.resource_not_found if exc.code == RESOURCE_NOT_FOUND else exc.code
    return RPCError(code, exc.message, exc.data)

###############################################################################
# 50. The far end
###############################################################################
# Uses sections 1 to 7, 16 to 18, 22, 23, 27 to 29 and 49.
#
# Problem.  An application and a server do not fit together: one speaks stdio and the other HTTP,
#           one is of the legacy era and the other of the modern one. A program between the two has
#           a near client and a far server. It asks the one in the name of the other.
# Rules.    1. The far server is told the name and the capabilities of the near client, and nothing
#              of ours.
#           2. A question of the far server goes to the near client whose request it belongs to. In
#              doubt it is refused, and the far server goes on.
#           3. A legacy server asks in the middle of a call. A modern client is asked in the result
#              of its call, and calls again: the call of the far server waits meanwhile, under a
#              random name that is good once, for the same client and the same request.
#           4. Where nobody knows which call a question belongs to, as over a pipe, such calls are
#              made one at a time. A call that waits for answers lets the next one begin.
# Plan.     Passage, a request on its way; FarQuestions and FarNews, what comes back; FarEnd, a
#           connection to the far server on behalf of one near client.
# Not here. Which near client has which connection, and for how long: section 51.

MAX_HELD_CALLS = 100  # calls of one client that wait for its answers; the oldest gives way
HELD_SECONDS = STATE_SECONDS  # for which they wait in all, over all rounds of one call

#: Members of `_meta` that belong to one leg of the way, and are not passed on.
OWN_META = {PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, "progressToken"}
#: Capabilities that are not passed on: tasks as one legacy revision had them, for a trial.
UNSPOKEN = {"tasks"}
#: The capabilities of a client that can be asked something.
ASKING = {METHODS[method].capability for method in ASKED}


def unmarked(msg: Msg) -> Msg:
    """Return an announcement without the mark of the subscription that it came by."""
    params = dict(msg.get("params", {}))
    meta = {k: v for k, v in object_of(params, "_meta").items() if k != SUBSCRIPTION_ID}
    params.pop("_meta", None)
    return notification(msg["method"], {**params, "_meta": meta} if meta else params or None)


def announce_to(near: Conversation, msg: Msg) -> None:
    """Send a legacy client what no request of its own caused."""
    if near.outbox is not None and near.session.state in (AGREED, READY):
        near.outbox.put(msg, len(encode(msg)))


class Passage:
    """One request on its way to the far server and back."""

    def __init__(self, far: FarEnd, ctx: Context) -> None:
        #: the near request; of a call with rounds, the last one
        self.far, self.ctx = far, ctx
        #: what the request is called on the far leg
        self.far_id: ReqId = ""
        #: whether it waits for the near client to come back with answers
        self.held = False
        #: questions by name, with futures of their answers
        self.questions: dict[str, tuple[Msg, asyncio.Future[Any]]] = {}
        self.asked = 0  # how many there were
        #: settled when there is a question for the near client
        self.news: asyncio.Future[Any] | None = None
        self.task: asyncio.Task[Any] | None = None
        #: what the requestState is bound to, and until when it is good
        self.bound = [ctx.owner, digest_of(ctx.method, ctx.params)]
        self.until = 0.0

    async def ask(self, params: Msg) -> Msg:
        """Send the request to the far server, and return its result."""
        far, ctx = self.far, self.ctx
        far.passages[self] = None
        try:
            call = PassedCall(
                far, ctx.method, self.send, far.timeout, far.max_timeout, self.report
            )
            call.untouched = ctx.facts.rev.modern
            return await call.result(params)
        finally:
            del far.passages[self]
            far.used = far.loop.time()

    async def send(self, msg: Msg) -> None:
        """Send a message of this request to the far server."""
        self.far_id = msg.get("id", self.far_id)  # a cancellation has none
        await self.far.send(msg)

    async def report(self, progress: float, total: Any, message: Any) -> None:
        """Pass progress on, to whoever waits now."""
        message = message if isinstance(message, str) else None
        await self.ctx.report_progress(progress, total, message)

    # Rounds: the near client is modern, the far server is not.

    def start(self, params: Msg) -> None:
        """Send the request in a task of its own, which outlives this round."""
        self.task = self.far.tasks.spawn(self._outcome(params))

    async def _outcome(self, params: Msg) -> Msg | MCPError:
        try:
            return await self.ask(params)
        except MCPError as exc:
            return exc

    async def hold(self, method: str, params: Msg) -> Msg:
        """Ask the near client in the result of its call; return what its next call answers."""
        self.asked += 1
        name = f"{method.partition('/')[0]}-{self.asked}"
        waiter = asyncio.get_running_loop().create_future()
        self.questions[name] = ({"method": method, "params": params}, waiter)
        if self.news is not None:
            _settle(self.news, None, None)
        try:
            answer: Msg = await waiter
            return answer
        finally:
            del self.questions[name]

    async def round(self, ctx: Context, responses: Msg) -> Msg | None:
        """Give answers; return the result, or None when there are questions to be asked."""
        assert self.task is not None
        self.ctx, self.news = ctx, asyncio.get_running_loop().create_future()
        for name, (_, waiter) in self.questions.items():
            # spec: basic/patterns/mrtr#error-handling -- the others are ignored
            if isinstance(responses.get(name), dict):
                _settle(waiter, responses[name], None)
        while not self.task.done() and not self.open_questions():
            self.news = asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait([self.task, self.news], return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(0)  # what is asked together comes together
            except asyncio.CancelledError:
                self.task.cancel()
                raise
        if not self.task.done():
            return None
        outcome = self.task.result()
        if isinstance(outcome, MCPError):
            raise outcome
        return dict(outcome)

    def open_questions(self) -> Msg:
        """Return the questions that are not answered."""
        return {name: asked for name, (asked, waiter) in self.questions.items()
                if not waiter.done()}  # fmt: skip


class PassedCall(Call):
    """A request whose result goes to somebody else."""

    #: whether the near client makes its rounds itself, and follows its tasks
    untouched = False

    async def see_through(self, params: Msg, answer: Msg) -> Msg:
        """Answer the questions of a modern server, if the near client is of the legacy era."""
        return answer if self.untouched else await super().see_through(params, answer)


class FarQuestions(Answers):
    """The questions of a far server are answered by the near client."""

    def __init__(self, far: FarEnd) -> None:
        super().__init__("", None, {})
        self.far = far

    async def answer(self, asked: JSON, session: Session) -> Msg:
        """Return the near client's answer; RPCError or CapabilityMissing if it gives none."""
        passage = None if session.rev.modern else self.far.passage_of(asked.get("id"))
        if passage is not None:
            ctx = passage.ctx
        elif session.rev.modern:  # the question belongs to the request that is running here
            ctx = CURRENT.get()
        else:
            ctx = await self.far.near_context()
        method, params = self.read(asked, ctx.client_capabilities)
        ctx.check_question(method, params)
        params = fit_question(method, params, ctx.facts.rev)
        if passage is not None and ctx.facts.rev.modern:
            return fit_answer(method, await passage.hold(method, params), session.rev)
        peer, send = ctx.conversation.peer, ctx.exchange.send
        try:
            answer = await peer.ask(method, params, send, patience=ASK_SECONDS, longest=ASK_SECONDS)
        except (RemoteError, RequestTimeout, ConnectionClosed) as exc:
            raise refusal_of(exc, session.rev) from exc
        return fit_answer(method, answer, session.rev)


class FarNews(Announcements):
    """What a far server announces is passed on to the near client."""

    def __init__(self, far: FarEnd) -> None:
        super().__init__(far, far.catch_up)
        self.far = far

    def hear(self, msg: Msg) -> None:
        """Take a notification to all who want it."""
        super().hear(msg)
        method, far = msg["method"], self.far
        if method == "notifications/message":
            far.log(msg)
        elif method not in METHODS or method == "notifications/elicitation/complete":
            far.tell(msg)

    def lose(self, reason: MCPError | None) -> None:
        """End the subscriptions of near clients: they subscribe again, and so connect anew."""
        for feed in list(self.far.feeds):
            feed.end()
        super().lose(None)


class FarEnd(Client):
    """A connection to the far server, on behalf of one near client, or of many.

    `near` is the conversation with which it begins; None where many share it.
    """

    opening: asyncio.Future[RPCError | None]  # what connects; its result is the error
    timer: asyncio.TimerHandle | None = None  # until it is seen whether it is idle

    def __init__(
        self, forwarder: Forwarder, near: Conversation | None, key: Any, facts: Facts
    ) -> None:
        patience: Any = {"timeout": LONGEST_REQUEST_SECONDS, "max_timeout": LONGEST_REQUEST_SECONDS}
        super().__init__(forwarder.target, cache=False, **{**patience, **forwarder.options})
        self.forwarder, self.key, self.loop = forwarder, key, asyncio.get_running_loop()
        #: the near client, if there is one that has a conversation of its own
        self.near = None if near is None or near.session.resumed else near
        self.alone = near is not None  # whether it serves one near client
        self.near_capabilities = facts.client_capabilities if self.alone else {}
        self.info = facts.client_info if self.alone and facts.client_info else self.info
        self.answers = FarQuestions(self)
        self.announcements = FarNews(self)
        self.subscriptions = self.announcements.subscriptions
        self.passages: dict[Passage, None] = {}  # in the order in which they began
        self.held: OrderedDict[str, tuple[Passage, asyncio.TimerHandle]] = OrderedDict()
        self.turn = asyncio.Lock()  # of the call that may ask, where nobody knows which one asks
        self.used = self.loop.time()
        #: subscriptions/listen of modern clients
        self.feeds: set[Feed] = set()
        #: by legacy client and URI, "" for the lists; None while it is not agreed to
        self.followed: dict[tuple[Conversation, str], Subscription | None] = {}

    @property
    def ended(self) -> bool:
        """Whether the connection was there, and is no longer."""
        return self.state is DONE or self.state is READY and self.peer.lost is not None

    async def end(self) -> None:
        """Disconnect, also while that is still connecting."""
        if self.timer is not None:
            self.timer.cancel()
        if not self.opening.done() and self.opening is not asyncio.current_task():
            self.opening.cancel()
            await asyncio.wait([self.opening])
        for name in list(self.held):
            self.give_up(name)
        await self.close()

    def declare(self, rev: Revision) -> Msg:
        """Return the near client's capabilities: we have none of our own."""
        near = {k: v for k, v in self.near_capabilities.items() if k not in UNSPOKEN}
        return strip_unknown("ClientCapabilities", near, rev)

    def offered(self) -> Msg:
        """Return the far server's capabilities, and those that its revision cannot declare."""
        implied: Msg = dict.fromkeys(self.peer.session.rev.undeclared, {})
        far = {k: v for k, v in self.server_capabilities.items() if k not in UNSPOKEN}
        return {**(implied if {"prompts", "resources"} & far.keys() else {}), **far}

    # Requests.

    @property
    def idle(self) -> bool:
        """Whether nothing is on its way, and nobody has subscribed to anything."""
        watched = self.feeds or any(uri for _, uri in self.followed)
        return self.opening.done() and not (self.passages or watched)

    def metadata(self, ctx: Context) -> Msg:
        """Return the `_meta` of a request that is passed on."""
        meta = {key: value for key, value in ctx.meta.items() if key not in OWN_META}
        if self.peer.session.rev.modern:
            near, level = ctx.client_capabilities, ctx.facts.log_level
            if not ctx.facts.rev.modern:  # its own default is the server's choice: ours
                level = self.log_level or "info"
            meta.update({
                PROTOCOL_VERSION: self.revision, CLIENT_INFO: ctx.client_info or self.info,
                CLIENT_CAPABILITIES: {k: near[k] for k in near if k not in UNSPOKEN},
                **without_none(**{LOG_LEVEL: level}),
            })
        return meta

    async def pass_on(self, ctx: Context, params: Msg) -> Msg:
        """Return the far server's result of a request, which may be a question."""
        rev, near = self.peer.session.rev, ctx.facts.rev
        params = {**params, "_meta": self.metadata(ctx)}
        if ctx.method == "completion/complete":
            params = strip_unknown("Complete", params, rev)
        if not near.modern or rev.modern:
            return await self._pass_once(ctx, params)
        await self.want_log(ctx.facts.log_level)
        state, responses = params.pop("requestState", None), params.pop("inputResponses", None)
        row = METHODS.get(ctx.method)
        if row is None or not row.may_ask or not self.near_capabilities.keys() & ASKING:
            return await self._pass_once(ctx, params)
        async with contextlib.AsyncExitStack() as stack:
            if not self.transport.links_questions:
                await stack.enter_async_context(self.turn)
            passage = Passage(self, ctx) if state is None else self.take(ctx, state)
            if state is None:
                passage.start(params)
            answer = await passage.round(ctx, responses if isinstance(responses, dict) else {})
            return self.park(passage) if answer is None else answer

    async def _pass_once(self, ctx: Context, params: Msg) -> Msg:
        try:
            answer = await Passage(self, ctx).ask(params)
        except RemoteError as exc:
            if exc.code != HEADER_MISMATCH or ctx.method != "tools/call":
                raise
            # spec: basic/transports/streamable-http#client-behavior -- the tool may have changed
            await self.list_tools()
            answer = await Passage(self, ctx).ask(params)
        if ctx.method == "tools/list" and self.peer.session.rev.modern:
            answer = {**answer, "tools": list(filter(self._can_call, objects(answer, "tools")))}
        return answer

    def _can_call(self, tool: Msg) -> bool:
        try:
            self.transport.learn_tool(tool)
        except (SchemaError, KeyError) as exc:
            logger.warning("the tool %r is left out: %s", tool.get("name"), exc)
            return False
        return True

    async def want_log(self, level: str | None) -> None:
        """Ask a legacy server for the log, down to the mildest level that was wanted so far."""
        if level is None or "logging" not in self.server_capabilities:
            return
        former = self.log_level
        if former is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(former):
            await self.set_log_level(level)

    # Calls that wait for the near client's answers.

    def park(self, passage: Passage) -> Msg:
        """Let a call wait; return the result that asks the near client."""
        loop, name = asyncio.get_running_loop(), os.urandom(16).hex()
        passage.until = passage.until or loop.time() + HELD_SECONDS
        if len(self.held) >= MAX_HELD_CALLS:
            self.give_up(next(iter(self.held)))
        passage.held = True
        self.held[name] = passage, loop.call_at(passage.until, self.give_up, name)
        asked = passage.open_questions()
        return {"resultType": "input_required", "inputRequests": asked, "requestState": name}

    def take(self, ctx: Context, name: JSON) -> Passage:
        """Return the call that waits under a name, once; RPCError if none does."""
        found, bound = self.held.get(str(name)), [ctx.owner, digest_of(ctx.method, ctx.params)]
        if found is None or found[0].bound != bound:
            problem = "no call waits under this name: it was used or has expired, or the server"
            problem += " was started again; call again from the beginning"
            if found is not None:
                problem = "it belongs to another request"
            raise RPCError(INVALID_PARAMS, f"requestState: {problem}")
        passage, timer = self.held.pop(str(name))
        timer.cancel()
        passage.held = False
        return passage

    def give_up(self, name: str) -> None:
        """End a call whose answers did not come."""
        passage, timer = self.held.pop(name)
        timer.cancel()
        if passage.task is not None:
            passage.task.cancel()

    # What comes back.

    def passage_of(self, question_id: JSON) -> Passage | None:
        """Return the request to which a question of a legacy server belongs; RPCError in doubt."""
        link = self.transport.asked_in(question_id)
        running = [item for item in self.passages if link in (None, item.far_id)]
        running = [item for item in running if not item.held] or running[-1:]
        if len(running) > 1 and running[0].ctx.facts.rev.modern:
            running = [x for x in running if METHODS[x.ctx.method].may_ask]
            if len(running) > 1:
                problem = f"{len(running)} requests are running: which of them asks?"
                raise RPCError(INTERNAL_ERROR, problem)
        return running[-1] if running else None

    async def near_context(self) -> Context:
        """Return a way to ask the near client what belongs to no request; RPCError for none."""
        near = self.near
        if near is None or near.session.resumed or not near.session.client_capabilities:
            raise RPCError(INTERNAL_ERROR, "no request of the client is running: it is not asked")
        await asyncio.wait_for(near.until_ready(), ASK_SECONDS)
        if near.outbox is None:
            raise RPCError(INTERNAL_ERROR, "the client hears nothing outside of its requests")
        nothing = Exchange({"id": "", "method": ""}, near.outbox.send, near.opener, modern=False)
        return Context(near, nothing, near.session.facts())

    def last_context(self) -> Context | None:
        """Return the near request that began last; None if none is running, or of many clients."""
        passage = next(reversed(self.passages), None) if self.alone else None
        return None if passage is None or passage.held else passage.ctx

    def log(self, msg: Msg) -> None:
        """Pass a log message on, if the near client wants its level."""
        ctx, level = self.last_context(), object_of(msg, "params").get("level")
        near = ctx.conversation if ctx is not None else self.near
        if near is not None and level in LOG_LEVELS:
            near.forward(level, msg, ctx)

    def tell(self, msg: Msg) -> None:
        """Pass a notification on, if the near client's revision has it."""
        ctx, row = self.last_context(), METHODS.get(msg["method"])
        rev = ctx.facts.rev if ctx is not None else self.near and self.near.session.rev
        if rev and (row is None or rev.name in row.revisions):
            if ctx is not None:
                ctx.say_soon(msg, len(encode(msg)))
            elif self.near is not None:
                announce_to(self.near, msg)

    # Announcements.

    async def attach(self, near: Conversation) -> None:
        """Let a legacy client hear of changed lists, and of what it heard of before."""
        session, self.followed[near, ""] = near.session, None
        try:
            await self.follow(near, "")
            if session.state is READY and session.subscriptions:
                await together(self.follow(near, uri) for uri in session.subscriptions)
            if session.state is READY and session.log_level not in (None, LOG_LEVELS[0]):
                await self.want_log(session.log_level)
        except MCPError as exc:
            logger.warning("%s does not tell all that it did before: %s", self.peer.name, exc)
        if session.state is READY:
            self.catch_up()

    async def detach(self, near: Conversation) -> None:
        """Hear that a client has gone which shares this connection with others."""
        for who, uri in list(self.followed):
            if who is near:
                await self.unfollow(near, uri)

    async def follow(self, near: Conversation, uri: str) -> None:
        """Let a legacy client hear of a resource; "" stands for all lists."""
        offers = self.server_capabilities
        wanted: Msg = {"resourceSubscriptions": [uri]} if uri else {
            name: True for name, (_, capability) in FILTERS.items()
            if capability.endswith(".listChanged") and declares(offers, capability)
        }  # fmt: skip
        if wanted and self.followed.get((near, uri)) is None:
            tell = functools.partial(announce_to, near)
            self.followed[near, uri] = await self.subscribe_to(wanted, tell)

    async def unfollow(self, near: Conversation, uri: str) -> None:
        """Let a legacy client hear of a resource no longer."""
        subscription = self.followed.pop((near, uri), None)
        if subscription is not None:
            await subscription.close()

    async def feed(self, feed: Feed) -> Msg:
        """Let a modern client hear of what it listens to, until it is cancelled or we end."""

        def tell(msg: Msg) -> None:
            feed.outbox.put(msg, len(encode(msg)))

        self.feeds.add(feed)
        subscription: Subscription | None = None
        try:
            if feed.wanted:
                subscription = await self.subscribe_to(feed.wanted, tell)
            return await run_feed(feed)
        finally:
            self.feeds.discard(feed)
            if subscription is not None and self.peer.lost is None:
                self.tasks.spawn(subscription.close())

    async def subscribe_to(self, wanted: Msg, tell: Callable[[Msg], Any]) -> Subscription:
        """Subscribe to what a filter names; `tell` gets the announcements."""

        def pass_on(msg: Msg) -> None:
            announced = self.forwarder.announcement(unmarked(msg))
            if announced is not None:
                tell(announced)

        return await Subscription(self, wanted, pass_on, True).open()

    def catch_up(self) -> None:
        """Announce that everything may have changed, after a gap."""
        for item in list(self.subscriptions):
            for method in item.methods - {"notifications/tasks", "notifications/resources/updated"}:
                item.push(notification(method))
            for uri in item.uris:
                item.push(notification("notifications/resources/updated", {"uri": uri}))

###############################################################################
# 51. Forwarding
###############################################################################
# Uses sections 1 to 7, 22, 23, 29, 40, 49 and 50.
#
# Problem.  Near clients come and go, in any number. Each needs the far server, and must find it
#           again when it was started anew.
# Rules.    1. Nothing of one near client reaches another. Each has a connection of its own. It
#              begins with the client's first request and ends with the client: when that says
#              goodbye, when its session ends, when its connection is cut, when we end.
#           2. The end of the far server answers all open calls, and says why. The next request
#              connects anew, and subscribes again to what the near client had subscribed to.
#           3. A tool call that may have reached the far server is never sent again.
# Plan.     Forwarder, which has a FarEnd for each near client; Relay, the conversation with a near
#           client; ProxyServer, the Server that forwards all. For other sections:
#             Forwarder(target, *, shared=False, **options)        options as of Client
#             async with forwarder.hold(): ...                     all connections end with it
#             await forwarder.reach(conversation, facts, caller)   the FarEnd of a client, opened
#             await forwarder.relay(ctx, params=None)              a result, cut to measure
#             forwarder.learn(far), forwarder.announcement(msg)    to be overridden
# Not here. One connection: section 50. Several servers as one: section 52.

__all__ += ["Forwarder", "ProxyServer"]

MAX_FAR_ENDS = 100  # connections of one Forwarder; each may be a process


class Forwarder:
    """The way to a far server, for any number of near clients.

    The target and the options are those of a Client. Each near client has a connection of its own;
    with `shared`, all have one, and then a legacy server cannot ask them anything. Over HTTP, a
    connection ends after `idle_seconds` without a request; the next request opens another.
    """

    def __init__(
        self, target: Any, *, shared: bool = False, idle_seconds: float = SESSION_SECONDS,
        **options: Any,
    ) -> None:  # fmt: skip
        Client(target, **options)  # which checks them
        self.target, self.shared, self.options = target, shared, options
        self.idle_seconds = idle_seconds
        #: by loop, near client, and what it declares
        self.far_ends: dict[Any, FarEnd] = {}
        #: by loop, what opens and closes connections
        self.tasks: dict[asyncio.AbstractEventLoop, Tasks] = {}
        self.modern = False  # whether the far server is, as was last seen

    def learn(self, far: FarEnd) -> None:
        """Hear what a far server offers, whenever a connection is open."""

    def announcement(self, msg: Msg) -> Msg | None:
        """Return an announcement of the far server as near clients get it; None to drop it."""
        return msg

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Let there be connections in this event loop, which end with the block."""
        loop = asyncio.get_running_loop()
        tasks = self.tasks[loop] = Tasks()
        try:
            yield
        finally:
            for far in [far for far in self.far_ends.values() if far.loop is loop]:
                self.drop(far)
            await tasks.drain(None)
            del self.tasks[loop]

    # Connections.

    def key_of(self, near: Conversation, facts: Facts, caller: Caller) -> tuple[Any, Any, str]:
        """Return the key of the connection that a near client has."""
        if self.shared:
            return near.loop, None, ""
        # A legacy server hears once what it may ask for, a modern one with each request.
        once = facts.rev.modern and not self.modern
        declared = canonical(facts.client_capabilities) if once else ""
        if near.session.resumed:  # the client keeps no session
            return near.loop, (near.client_of(caller), canonical(facts.client_info)), declared
        return near.loop, near, declared

    async def reach(self, near: Conversation, facts: Facts, caller: Caller) -> FarEnd:
        """Return the connection of a near client to the far server; RPCError if there is none."""
        key = self.key_of(near, facts, caller)
        far = self.far_ends.get(key)
        if far is not None and far.ended:
            self.drop(far)
            far = None
        far = far or self._begin(key, near, facts)
        if far.state is not READY:
            problem = await asyncio.shield(far.opening)
            if problem is not None:
                raise problem
        if (near, "") not in far.followed and not (facts.rev.modern or near.session.resumed):
            await far.attach(near)
        return far

    def _begin(self, key: tuple[Any, Any, str], near: Conversation, facts: Facts) -> FarEnd:
        """Begin to connect."""
        if len(self.far_ends) >= MAX_FAR_ENDS:
            idle = [far for far in self.far_ends.values() if far.idle]
            if not idle:
                raise RPCError(TOO_BUSY, f"more than {MAX_FAR_ENDS} connections are in use")
            self.drop(min(idle, key=lambda far: far.used))
        far = FarEnd(self, None if self.shared else near, key, facts)
        self.far_ends[key] = far
        near.farewells[self] = functools.partial(self.leave, near)
        # Outside of this request: the connection outlives it, and serves others.
        spawn = self.tasks[near.loop].spawn
        far.opening = contextvars.Context().run(spawn, self._open(far))
        if near.opener is not NOBODY:  # over a pipe, the client says when it ends
            self._end_when_idle(far)
        return far

    async def _open(self, far: FarEnd) -> RPCError | None:
        """Connect; return the error if that fails."""
        try:
            await far.connect()
        except Exception as exc:  # whatever a target raises; it has disconnected by now
            if self.far_ends.get(far.key) is far:
                del self.far_ends[far.key]
            logger.warning("no connection to the far server: %s", exc)
            return refusal_of(exc, NEWEST)
        far.used = far.loop.time()
        self.modern = far.peer.session.rev.modern
        general = (*far.key[:2], "")
        if self.modern and general not in self.far_ends and self.far_ends.get(far.key) is far:
            del self.far_ends[far.key]
            self.far_ends[general], far.key = far, general
        self.learn(far)
        return None

    def drop(self, far: FarEnd) -> None:
        """End a connection to the far server."""
        if self.far_ends.get(far.key) is far:
            del self.far_ends[far.key]
            self.tasks[far.loop].spawn(far.end())

    def leave(self, near: Conversation) -> None:
        """Hear that a near client has gone."""
        for far in list(self.far_ends.values()):
            if far.key[1] is near:
                self.drop(far)
            elif (near, "") in far.followed:
                self.tasks[far.loop].spawn(far.detach(near))

    def _end_when_idle(self, far: FarEnd) -> None:
        """Look, when it may be so, whether a connection was idle for too long."""
        if self.far_ends.get(far.key) is not far:
            return
        now = far.loop.time()
        due = (far.used if far.idle else now) + self.idle_seconds
        if due > now:
            far.timer = far.loop.call_at(due, self._end_when_idle, far)
        else:
            self.drop(far)

    # Requests.

    async def relay(self, ctx: Context, params: Msg | None = None) -> Msg:
        """Pass a request on to the far server, and return its result as the near client knows it.

        `params` takes the place of the request's parameters. Raises RPCError.
        """
        params = {**(ctx.params if params is None else params)}
        row, rev = METHODS.get(ctx.method), ctx.facts.rev
        while True:
            far = await self.reach(ctx.conversation, ctx.facts, ctx.exchange.caller)
            try:
                return fit_result(ctx.method, await far.pass_on(ctx, params), rev)
            except ConnectionClosed as exc:
                # What only reads can be asked again, of a server that was started anew.
                reads = row is not None and row.lists.key
                if not reads or not far.ended or "again" in ctx.state:
                    raise refusal_of(exc, rev) from exc
                ctx.state["again"] = True
            except MCPError as exc:
                raise refusal_of(exc, rev) from exc


class Relay(Conversation):
    """A conversation of a ProxyServer: what a near client asks is passed on."""

    def __init__(
        self, forwarder: Forwarder, server: Server, name: str, opener: Caller, many_clients: bool
    ) -> None:
        super().__init__(server, name, opener, many_clients)
        self.forwarder = forwarder
        # A server decides what it logs, until its client says so: the far one does.
        self.session.log_level = LOG_LEVELS[0]
        #: what is answered here
        self.own = {
            **{method: HANDLERS[method] for method in ("initialize", "ping", "server/discover")},
            "logging/setLevel": self.set_level, "subscriptions/listen": self.listen_for,
            "resources/subscribe": self.subscribe, "resources/unsubscribe": self.subscribe,
        }  # fmt: skip

    async def serve(self, exchange: Exchange) -> Msg:
        """Answer one request."""
        facts, params = self.session.facts(), exchange.params
        if exchange.modern:
            facts = exchange.facts = exchange.facts or check_modern_request(exchange.msg)
        elif exchange.method == "initialize":
            check_params(METHODS[exchange.method], params)
            facts = facts._replace(
                client_info=params["clientInfo"], client_capabilities=params["capabilities"]
            )
        try:
            if exchange.method != "ping":  # from here on it is known what the far server offers
                await self.forwarder.reach(self, facts, exchange.caller)
            return await super().serve(exchange)
        except MCPError as exc:
            raise exc if isinstance(exc, FOR_THE_PEER) else refusal_of(exc, facts.rev) from exc

    def admit(self, exchange: Exchange, rev: Revision, ours: Msg) -> None:
        """Refuse what the far server has not; it judges methods of its own."""
        if exchange.method in METHODS:
            super().admit(exchange, rev, ours)

    def handler(self, ctx: Context) -> Callable[[Context], Awaitable[Msg]]:
        """Return what answers a request."""
        return self.own.get(ctx.method, self.forwarder.relay)

    def on_notification(self, msg: Msg, send: Send, caller: Caller) -> None:
        """Hear a notification of the client; the far server hears what is not ours alone."""
        super().on_notification(msg, send, caller)
        method = msg["method"]
        if method in METHODS and method != "notifications/roots/list_changed":
            return
        for far in list(self.forwarder.far_ends.values()):
            knows = method not in METHODS or far.revision in METHODS[method].revisions
            if far.key[1] is self and far.state is READY and knows:
                self.peer.tasks.spawn(far.notify(method, msg.get("params")))

    async def _far(self, ctx: Context) -> FarEnd:
        return await self.forwarder.reach(self, ctx.facts, ctx.exchange.caller)

    async def set_level(self, ctx: Context) -> Msg:
        """Answer logging/setLevel."""
        answer = await HANDLERS[ctx.method](ctx)
        far, level = await self._far(ctx), ctx.params["level"]
        await (far.want_log(level) if self.forwarder.shared else far.set_log_level(level))
        return answer

    async def subscribe(self, ctx: Context) -> Msg:
        """Answer resources/subscribe and resources/unsubscribe."""
        far, uri, wanted = await self._far(ctx), ctx.params["uri"], self.session.subscriptions
        if ctx.method == "resources/unsubscribe":
            wanted.discard(uri)
            await far.unfollow(self, uri)
        elif len(wanted) >= MAX_SUBSCRIPTIONS and uri not in wanted:
            raise RPCError(TOO_BUSY, f"more than {MAX_SUBSCRIPTIONS} subscriptions")
        else:
            await far.follow(self, uri)
            wanted.add(uri)
        return {}

    async def listen_for(self, ctx: Context) -> Msg:
        """Answer subscriptions/listen: a subscription there for each one here."""
        return await (await self._far(ctx)).feed(Feed(ctx, {}))


class ProxyServer(Server):
    """A Server that is another server: `ProxyServer("https://example.com/mcp").run()`.

    The target and the options are those of a Client; `shared` and `idle_seconds` those of a
    Forwarder.
    """

    def __init__(self, target: Any, **options: Any) -> None:
        self.forwarder = Forwarder(target, **options)
        self.forwarder.learn = self.learn  # type: ignore[method-assign]
        super().__init__("proxy", lifespan=lambda server: self.forwarder.hold())

    def learn(self, far: FarEnd) -> None:
        """Take on what the far server says of itself."""
        self.info, self.instructions = far.server_info, far.instructions
        self.extra_capabilities = far.offered()

    def capabilities(self) -> Msg:
        """Return what the far server offers."""
        return self.extra_capabilities

    def converse(
        self, name: str, opener: Caller = NOBODY, many_clients: bool = False
    ) -> Conversation:
        """Return a new conversation with a near client."""
        return Relay(self.forwarder, self, name, opener, many_clients)

# =============================================================================
# Part IX. The command line
# =============================================================================

###############################################################################
# 53. Showing
###############################################################################
# Uses sections 1, 2 and 54.
#
# Problem.  A server's words are shown to a person at a terminal, or go into a pipe.
# Rules.    1. What a server says is hostile to terminals until it went through plain().
# Plan.     Text for terminals; Screen; lists and results as text; details().
# Not here. What is asked for: section 56.

# Escape sequences (CSI; OSC and its kin; others), control characters except tab and newline, and
# what reorders text: with these, a tool's description could lie about what is on the screen.
CONTROLS = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-Z^-~]"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
PIPE_COLUMNS = 100  # where there is no screen
LEAST_COLUMNS = 40  # of a screen; what says that it has fewer may not know
READABLE_COLUMNS = 120  # of running text: longer lines are hard to follow with the eye
MOST_LEFT_COLUMNS = 27  # of the left one of two columns: a third of a screen
MOST_CHOICES = 9  # of an enum in a signature; more would hide the rest of it
MOST_SHOWN_DEPTH = 5  # of objects in objects; a schema may contain itself
MOST_SHOWN_LINES = 500  # of the arguments of one tool; some have schemas without a bottom
MOST_SHOWN_CHARS = 20_000  # of a whole description: ten screens
SHOWN_ABOUT_CHARS = 2000  # of a description in a list; a screen. To wrap text takes quadratic time

# What the words of a schema say of a value.
BOUNDS = {
    "minimum": ">= {}", "exclusiveMinimum": "> {}", "maximum": "<= {}", "exclusiveMaximum": "< {}",
    "multipleOf": "a multiple of {}", "minLength": "{} characters or more",
    "maxLength": "{} characters or fewer", "pattern": "matches {}", "format": "{}",
    "minItems": "{} items or more", "maxItems": "{} items or fewer",
}  # fmt: skip
# What a tool's annotations say, if they are true and if they are false.
HINTS = {
    "readOnlyHint": ("only reads", "changes something"),
    "destructiveHint": ("may destroy", "destroys nothing"),
    "idempotentHint": ("may be called again without harm", "each call counts"),
    "openWorldHint": ("reaches out to the world", "stays in a world of its own"),
}
# Values of the formats, for examples.
EXAMPLES = {"email": "me@example.com", "uri": "https://example.com", "date": "2030-12-31",
            "date-time": "2030-12-31T12:00:00Z"}  # fmt: skip
# The members of an item that details() shows in words.
DESCRIBED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations",
             "arguments", "uri", "uriTemplate", "mimeType")  # fmt: skip


class UsageError(MCPError):
    """The command line asks for what is not there; the message says what is.

    `words` are a command line, less the target, that shows it.
    """

    def __init__(self, message: str, *words: str) -> None:
        super().__init__(message)
        self.words = words


def plain(text: object) -> str:
    r"""Return text that a terminal will only show, whatever it says.

    >>> plain("\x1b[2Jall \x1b]0;title\x07\x1b[31mred\x1b[0m\r\n")
    'all red\n'
    """
    return CONTROLS.sub("", str(text))


def one_line(text: object) -> str:
    """Return plain text as one line."""
    return " ".join(plain(text).split())


def as_json(value: JSON) -> str:
    """Return JSON, on one line, that is safe to show."""
    return plain(json.dumps(value, ensure_ascii=False))


def pick(what: str, name: str, known: Mapping[str, Any], *words: str) -> Any:
    """Return what has this name; UsageError suggests the nearest, or says what there is."""
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, 1)
        there = ", ".join([*known][:SHOWN_MEMBERS]) + ", ..." * (len(known) > SHOWN_MEMBERS)
        hint = f"did you mean {near[0]}?" if near else f"there is: {there or 'none'}"
        raise UsageError(f"no {what} {name!r}; {hint}", *words)
    return known[name]


class Screen:
    """Where text is shown: how wide it is, and whether it can be bold and in colour.

    The colours are those that can be read on black and on white.
    """

    BOLD, DIM, RED, GREEN, BLUE, CYAN = "1", "2", "1;31", "1;32", "1;34", "36"

    def __init__(self, stream: Any, width: int = 0) -> None:
        import shutil

        self.terminal = stream is not None and stream.isatty()
        columns = shutil.get_terminal_size().columns if self.terminal else PIPE_COLUMNS
        self.width = width or max(columns, LEAST_COLUMNS)
        self.colour = self.terminal and os.environ.get("TERM") != "dumb"
        if os.environ.get("NO_COLOR"):  # https://no-color.org
            self.colour = False
        elif os.environ.get("FORCE_COLOR"):
            self.colour = os.environ["FORCE_COLOR"] != "0"

    def paint(self, style: str, text: str) -> str:
        """Return text in a style, where there are styles."""
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and style and text else text

    def safe(self, text: str) -> str:
        """Return text as a terminal can show it without harm; a pipe gets it as it is."""
        return plain(text) if self.terminal else text

    def wrap(self, text: str, first: int = 0, later: int | None = None) -> list[str]:
        """Return text as lines that end at words, the first and the later ones indented so."""
        import textwrap

        more = len(text) - SHOWN_ABOUT_CHARS
        return textwrap.wrap(
            text[:SHOWN_ABOUT_CHARS] + "..." * (more > 0), min(self.width, READABLE_COLUMNS),
            initial_indent=" " * first, break_on_hyphens=False,
            subsequent_indent=" " * (first if later is None else later),
        )  # fmt: skip

    def columns(self, rows: Sequence[tuple[str, str]]) -> list[str]:
        """Return words and what they mean as two columns."""
        left = min(max([len(word) for word, _ in rows], default=0), MOST_LEFT_COLUMNS)
        lines = []
        for word, about in rows:
            first, *later = self.wrap(about, 4 + max(left, len(word)), 4 + left) or [""]
            lines += [f"  {self.paint(self.BOLD, word)}{first[2 + len(word) :]}", *later]
        return lines


def type_words(schema: JSON, depth: int = 0) -> str:
    """Return a schema as a short type.

    >>> type_words({"type": ["array", "null"], "items": {"enum": ["a", "b"]}})
    '["a" | "b"] | null'
    """
    if not isinstance(schema, dict) or depth > 4:
        return "any"
    options = schema.get("anyOf") or schema.get("oneOf")
    if "enum" in schema or "const" in schema:
        words = [json.dumps(value) for value in schema.get("enum", [schema.get("const")])]
    elif options:
        words = [type_words(option, depth + 1) for option in options]
    elif "$ref" in schema:
        words = [schema["$ref"].rpartition("/")[2]]
    else:
        kinds: Any = schema.get("type") or ("object" if "properties" in schema else "any")
        shapes = {"array": f"[{type_words(schema.get('items'), depth + 1)}]"}
        if schema.get("properties"):
            shapes["object"] = f"{{{parameters(schema, depth + 1)}}}"
        words = [shapes.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    return " | ".join(dict.fromkeys(words[:MOST_CHOICES])) + " | ..." * (len(words) > MOST_CHOICES)


def parameter(name: str, field: JSON, required: bool, depth: int = 0) -> str:
    """Return a property as a parameter; `?` marks what may be left out.

    >>> parameter("a", {"type": "integer"}, True), parameter("b", {"default": 0}, False)
    ('a: integer', 'b: any = 0')
    """
    given = isinstance(field, dict) and "default" in field
    value = f" = {as_json(field['default'])}" if given else ""
    return f"{name}{'' if given or required else '?'}: {type_words(field, depth)}{value}"


def parameters(schema: Msg, depth: int = 0) -> str:
    """Return the properties of an object as parameters."""
    required = schema.get("required") or ()
    fields = (schema.get("properties") or {}).items()
    return ", ".join(parameter(name, field, name in required, depth) for name, field in fields)


def headline(item: Msg) -> str:
    """Return a tool, a prompt, a resource or a template as one line.

    >>> a_b = {"a": {"type": "integer"}, "b": {"type": "integer", "default": 0}}
    >>> headline({"name": "add", "inputSchema": {"properties": a_b, "required": ["a"]},
    ...           "outputSchema": {"properties": {"result": {"type": "integer"}}}})
    'add(a: integer, b: integer = 0) -> integer'
    """
    uri, out = item.get("uri") or item.get("uriTemplate"), item.get("outputSchema") or {}
    if uri:
        return one_line(f"{uri} {item.get('mimeType', '')}")
    asked = item.get("arguments") or ()  # of a prompt: they are text
    words = ", ".join(each["name"] + "?" * (not each.get("required")) for each in asked)
    text = f"{item['name']}({words or parameters(item.get('inputSchema') or {})})"
    fields = out.get("properties") or {}
    result = type_words(fields["result"] if [*fields] == ["result"] else out)
    return one_line(f"{text} -> {result}" if out else text)


def heading(item: Msg, screen: Screen) -> list[str]:
    """Return the headline of an item as lines, its name in bold."""
    name = one_line(item.get("uri") or item.get("uriTemplate") or item["name"])
    first, *later = screen.wrap(headline(item), 0, 8)
    if first.startswith(name):
        first = screen.paint(screen.BOLD, name) + first[len(name) :]
    return [first, *later]


def table(items: list[Msg], screen: Screen) -> str:
    """Return a paragraph for each item: its headline and, indented, what it says of itself."""
    lines = []
    for item in items:
        about = (item.get("description") or item.get("title") or "").strip().partition("\n\n")[0]
        lines += [*heading(item, screen), *screen.wrap(one_line(about[: 2 * SHOWN_ABOUT_CHARS]), 4)]
    return "\n".join(lines) or "(none)"


def prompt_schema(prompt: Msg) -> Msg:
    """Return the arguments of a prompt, which are text, as the schema of a tool has them."""
    asked = {each["name"]: each for each in prompt.get("arguments") or ()}
    fields = {name: {**each, "type": "string"} for name, each in asked.items()}
    required = [name for name, each in asked.items() if each.get("required")]
    return {"properties": fields, "required": required}


def resolved(schema: JSON, root: JSON) -> Msg:
    """Return a schema, or the one of the same document that it refers to."""
    for _ in range(MOST_SHOWN_DEPTH):
        ref = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(ref, str) or not ref.startswith("#"):
            break
        schema = root
        for key in filter(None, ref[1:].split("/")):
            schema = schema.get(key) if isinstance(schema, dict) else None
    return schema if isinstance(schema, dict) else {}


def bounds(field: Msg) -> str:
    """Return what a schema says of a value besides its type.

    >>> bounds({"type": "integer", "minimum": 1, "maximum": 9, "description": "How many."})
    'How many. (>= 1, <= 9)'
    """
    said = [words.format(as_json(field[key])) for key, words in BOUNDS.items() if key in field]
    choices = field.get("enum")
    if isinstance(choices, list) and len(choices) > MOST_CHOICES:
        said.append(f"one of {', '.join(map(as_json, choices))}")
    about = one_line(field.get("description") or field.get("title") or "")
    return f"{about} ({', '.join(said)})".strip() if said else about


def field_lines(schema: Msg, root: Msg, screen: Screen, depth: int = 1) -> list[str]:
    """Return the properties of an object as lines, with those of the objects in them below."""
    lines: list[str] = []
    required = schema.get("required") or ()
    for name, given in (schema.get("properties") or {}).items():
        field = resolved(given, root)
        text = one_line(parameter(name, given, name in required, 2))
        first, *later = screen.wrap(text, 2 * depth, 2 * depth + 4)
        shown = screen.paint(screen.BOLD, one_line(name))
        lines += [first.replace(one_line(name), shown, 1), *later]
        lines += screen.wrap(bounds(field), 2 * depth + 4)
        inner = resolved(field.get("items"), root) if "items" in field else field
        if depth < MOST_SHOWN_DEPTH and len(lines) < MOST_SHOWN_LINES:
            lines += field_lines(inner, root, screen, depth + 2)
    return lines[:MOST_SHOWN_LINES]


def hints(annotations: Msg) -> str:
    """Return what a tool hints at, in words.

    >>> hints({"readOnlyHint": True, "openWorldHint": False})
    'only reads; stays in a world of its own'
    """
    said = [HINTS[key][not value] for key, value in annotations.items() if key in HINTS]
    said += [f"{key}: {as_json(it)}" for key, it in annotations.items() if key not in HINTS]
    return "; ".join(said)


def example_of(given: JSON, root: JSON, depth: int = 0) -> JSON:
    """Return a value that a schema allows, or one that shows its shape.

    >>> example_of({"type": "array", "items": {"enum": ["a", "b"]}}, {})
    ['a']
    """
    schema = resolved(given, root)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, list) and options and depth < MOST_SHOWN_DEPTH:
        return example_of(options[0], root, depth + 1)
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kind = kinds[0] if isinstance(kinds, list) and kinds else kinds
    if kind == "array" and depth < MOST_SHOWN_DEPTH:
        return [example_of(schema.get("items"), root, depth + 1)]
    if kind == "object" and depth < MOST_SHOWN_DEPTH:
        fields = schema.get("properties") or {}
        return {name: example_of(fields.get(name), root, depth + 1)
                for name in schema.get("required") or ()}  # fmt: skip
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return min(max(least, 1), schema.get("maximum", least + 1))
    usual: Msg = {"boolean": True, "null": None, "array": [], "object": {}}
    text = EXAMPLES.get(str(schema.get("format")), "text")
    return usual.get(str(kind), text.ljust(min(schema.get("minLength", 0), SHOWN_CHARS), "x"))


def details(item: Msg, screen: Screen) -> str:
    """Return all that a tool, a prompt, a resource or a template says of itself."""
    lines = heading(item, screen)
    if item.get("title"):
        lines += screen.wrap(one_line(item["title"]), 4)
    for row in plain(item.get("description") or "")[:MOST_SHOWN_CHARS].splitlines():
        margin = 4 + len(row) - len(row.lstrip())
        lines += screen.wrap(row.strip(), min(margin, screen.width // 2)) or [""]
    asks = item["inputSchema"] if "inputSchema" in item else prompt_schema(item)
    for title, schema in (("arguments", asks), ("result", item.get("outputSchema"))):
        rows = field_lines(schema, schema, screen) if schema else []
        lines += ["", screen.paint(screen.BOLD, title), *rows] if rows else []
    annotations = item.get("annotations") or {}
    told = [("hints", hints(annotations))] if annotations else []
    told += [(key, as_json(item[key])) for key in item if key not in DESCRIBED]
    return "\n".join([*lines, *[""] * bool(told), *screen.columns(told)])


def content_text(block: Msg) -> str:
    """Return a content block, or one of the contents of a resource, as text for show()."""
    inner = block["resource"] if block.get("type") == "resource" else block
    if "text" in inner:
        return str(inner["text"])
    if block.get("type") == "resource_link":
        return one_line(f"[{block['name']}: {block['uri']}]")
    data = inner.get("data") or inner.get("blob") or ""
    size = len(data.rstrip("=")) * 3 // 4
    what = f"{inner.get('uri') or block.get('type')} {inner.get('mimeType', '')}"
    return one_line(f"[{what}, {size:,} bytes]")

###############################################################################
# 54. The trace
###############################################################################
# Uses sections 1, 9, 10 and 53.
#
# Problem.  Whoever learns the protocol, or looks for a fault, wants to see every message.
# Rules.    1. A trace shows whole messages, but neither secrets nor pages of base64.
#           2. What it says of the wire, it says without control characters.
# Plan.     redact(); layout(); TraceView; start_trace().
# Not here. Where messages pass: Peer, section 10.

SECRET_WORDS = (
    "authorization|credential|pass(?:word|wd|phrase)|secret|(?:api|private|access)[-_]?key"
    r"|(?<![a-z])(?:auth|pwd|jwt)(?![a-z])|(?<!progress)(?<!max)(?<!max_)tokens?\b"
)
SECRET_KEY = re.compile(rf"(?i){SECRET_WORDS}|cookie")
#: `Bearer x`, `password: x`, `"api_key": "x"`, `?access_token=x`, `https://user:x@host`
SECRET_TEXT = re.compile(
    rf"(?i)(\b(?:bearer|basic)\s+|(?:{SECRET_WORDS})"
    r"\\?[\"']?\s*[:=]\s*\\?[\"']?(?:(?:bearer|basic)\s+)?|://(?=[^/\s@]+@))[^\s\"'\\@]{3,}"
)
REDACTED = "[redacted]"
SHOWN_CHARS = 200  # of one string in a trace: a sentence or two, not an image
SHOWN_MEMBERS = 20  # of one list or object in a trace: enough to see what the rest is like


def redact(value: JSON, key: str = "", parent: str = "") -> JSON:
    """Return a copy of `value` for showing: secrets redacted, long things shortened.

    >>> redact({"password": "hunter2", "args": ["--token=abcdef"]})
    {'password': '[redacted]', 'args': ['--token=[redacted]']}
    """
    # In a schema, `password` is the name of a field and describes a secret, but holds none.
    described = parent == "properties" and isinstance(value, dict)
    if SECRET_KEY.search(key) and not described and value not in (None, True, False):
        return REDACTED
    if isinstance(value, str):
        text = SECRET_TEXT.sub(rf"\g<1>{REDACTED}", value)
        more = len(text) - SHOWN_CHARS
        return text if more <= 0 else f"{text[:SHOWN_CHARS]}... ({more:,} more characters)"
    if not isinstance(value, (dict, list)):
        return value
    more = len(value) - SHOWN_MEMBERS
    rest = [f"... {more:,} more"] * (more > 0)
    if isinstance(value, list):
        return [redact(item) for item in value[:SHOWN_MEMBERS]] + rest
    shown = {name: redact(value[name], name, key) for name in list(value)[:SHOWN_MEMBERS]}
    return {**shown, **dict.fromkeys(rest, "")}


def layout(value: JSON, at: int = 0, width: int = 100) -> str:
    """Return JSON that begins in column `at`: on one line where it fits, else aligned.

    >>> print(layout({"id": 1, "method": "x", "params": {"a": [1, 2]}}, 0, 30))
    {"id": 1, "method": "x",
     "params": {"a": [1, 2]}}
    """
    flat = as_json(value)
    if at + len(flat) <= width or not isinstance(value, (dict, list)) or not value:
        return flat
    rows: list[str] = []
    for key, member in value.items() if isinstance(value, dict) else [(None, it) for it in value]:
        label = "" if key is None else f"{as_json(key)}: "
        text = as_json(member)
        if rows and "\n" not in rows[-1] and at + len(rows[-1] + label + text) + 4 <= width:
            rows[-1] += f", {label}{text}"
            continue
        if text[0] in "[{" and at + 1 + len(label + text) > width:
            text = layout(member, at + 2 if label else at + 1, width)
            if label:  # it is too long to stand beside its name, and goes below
                text = f"{text[0]}\n{' ' * (at + 3)}{text[1:]}"
        rows.append(label + text)
    return flat[0] + (",\n" + " " * (at + 1)).join(rows) + flat[-1]


class TraceView:
    """Show each message as it passes: when, which way, what it is or answers, and its JSON.

    Made for set_trace(). Colours are for terminals, unless NO_COLOR is set.
    """

    # A string, perhaps a key; or another scalar.
    TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(: )?|(\b(?:true|false|null)\b|-?\d[\d.eE+-]*)')
    BLUE, GREEN, RED, YELLOW, CYAN, DIM = "1;34", "1;32", "1;31", "33", "36", "2"

    def __init__(self, stream: typing.TextIO) -> None:
        import shutil

        self.stream, terminal = stream, stream.isatty()
        self.width = min(max(shutil.get_terminal_size().columns, 60), 140) if terminal else 100
        dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self.colour = terminal and not dull
        self.began, self.first = 0.0, ""  # when, and with whom: other peers are named
        #: requests without an answer yet: (peer, direction, id as JSON) -> (title, when)
        self.asked: dict[tuple[str, str, str], tuple[str, float]] = {}

    def __call__(self, direction: str, name: str, msg: JSON) -> None:
        """Show a message or a batch that went out (">") or came in ("<")."""
        now = time.monotonic()
        self.began, self.first = self.began or now, self.first or name
        batch = msg if isinstance(msg, list) else [msg]
        titles = ", ".join(self.title(direction, name, item, now) for item in batch)
        arrow, style = ("-->", self.BLUE) if direction == ">" else ("<--", self.GREEN)
        if any(not isinstance(item, dict) or "error" in item for item in batch):
            style = self.RED
        head = f"{arrow} {'batch: ' * isinstance(msg, list)}{one_line(titles)}"
        peer = self.paint(self.DIM, f"  ({one_line(name)})") if name != self.first else ""
        shown = "" if isinstance(msg, Exception) else layout(redact(msg), 10, self.width)
        text = shown and f"{'':10}{shown}\n"
        when = self.paint(self.DIM, f"{now - self.began:8.3f}")
        with contextlib.suppress(OSError, ValueError):  # a conversation outlives its audience
            text = self.TOKEN.sub(self.paint_token, text)
            self.stream.write(f"{when}  {self.paint(style, head)}{peer}\n{text}")
            self.stream.flush()

    def title(self, direction: str, name: str, msg: JSON, now: float) -> str:
        """Return what a message is: its method, or what it answers and how long that took."""
        if not isinstance(msg, dict):
            return f"not a message: {msg}"
        req_id, params = json.dumps(msg.get("id")), msg.get("params")
        if "method" not in msg:
            asked = (name, "<" if direction == ">" else ">", req_id)
            title, since = self.asked.pop(asked, ("an unknown request", now))
            kind = "error for" if "error" in msg else "result of"
            return f"{kind} {title}, {1000 * (now - since):.1f} ms"
        named = isinstance(params, dict) and (params.get("name") or params.get("uri"))
        title = f"{msg['method']} {named or ''}".strip()
        if "id" in msg:
            title += f" #{req_id}"
            self.asked[name, direction, req_id] = (title, now)
            if len(self.asked) > MAX_IN_FLIGHT:  # some are never answered
                del self.asked[next(iter(self.asked))]
        return title

    def paint(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and style else text

    def paint_token(self, token: re.Match[str]) -> str:
        style = self.CYAN if token[2] else self.YELLOW if token[3] else ""
        return self.paint(self.RED if REDACTED in token[0] else style, token[0])


def start_trace(where: str) -> None:
    """Show every message from now on: on stderr if `where` is "1", else at the end of that file."""
    stream: typing.TextIO | None = sys.stderr
    if where != "1":
        import atexit

        stream = open(where, "a", encoding="utf-8", errors="backslashreplace")
        atexit.register(stream.close)
    if stream is not None:
        set_trace(TraceView(stream))


if os.environ.get("MCP_LITE_TRACE"):  # for any program that uses this file
    start_trace(os.environ["MCP_LITE_TRACE"])

###############################################################################
# 55. The person
###############################################################################
# Uses sections 1 to 3, 7, 27 and 53.
#
# Problem.  While a verb is at work, a person wants to see how far it is and what the server says;
#           and the server may ask the person something.
# Rules.    1. All of it goes to stderr; if that is closed, the work goes on.
#           2. Where there is no person, a question is declined.
# Plan.     convert(), values from words; Person.
# Not here. The answer to the verb: section 56.

YES_NO = {"true": True, "yes": True, "y": True, "on": True,
          "false": False, "no": False, "n": False, "off": False}  # fmt: skip


def convert(text: str, schema: JSON) -> JSON:
    """Return the JSON value that a person means by `text` where `schema` is asked for.

    Text stays text where a string is allowed, and where it fits nothing, for the validator to
    complain of. Otherwise it is JSON, or a list with commas.

    >>> convert("1", {"type": "integer"}), convert("1", {"type": "string"}), convert("{}", {})
    (1, '1', {})
    >>> convert("1,2", {"type": "array", "items": {"type": "number"}})
    [1, 2]
    """
    schema = schema if isinstance(schema, dict) else {}
    options = [schema, *(schema.get("anyOf") or schema.get("oneOf") or ())]
    kinds = str([option.get("type") for option in options])  # of a name or a list of names
    if "string" in kinds or any(text in option.get("enum", ()) for option in options):
        return text
    if "boolean" in kinds and text.lower() in YES_NO:
        return YES_NO[text.lower()]
    value: JSON = text
    with contextlib.suppress(ProtocolError):  # as strict as the wire: no NaN, no bottomless nesting
        value = decode(text.encode("utf-8", "replace"))
    if "array" in kinds and not isinstance(value, list):
        items: JSON = next((option["items"] for option in options if "items" in option), {})
        value = [convert(part.strip(), items) for part in text.split(",")]
    return value


class Person:
    """Whoever sits at the terminal: sees progress and log lines, and answers questions."""

    def __init__(self) -> None:
        self.tenths = -1
        self.screen = Screen(sys.stderr)
        self.turn: Any = None  # a Lock: one question at a time
        self.there = True  # whether the person may be asked

    def line(self, text: object, end: str = "\n") -> None:
        """Write a line, or several, for the person, if there is anybody to read them."""
        with contextlib.suppress(OSError, AttributeError):  # stderr is closed, or its disk is full
            sys.stderr.write(plain(text).rstrip("\r\n") + end)
            sys.stderr.flush()

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Write how far it is, for each tenth of the way where the way is known."""
        tenths = int(10 * done / total) if total else -1
        if tenths < 0 or tenths != self.tenths:
            far = f"{done:g}/{total:g}" if total else f"{done:g}"
            self.line(one_line(f"progress: {far} {message or ''}"))
        self.tenths = tenths

    def log(self, level: str, data: JSON, source: str | None) -> None:
        """Write a log message of the server."""
        text = data if isinstance(data, str) else as_json(data)
        self.line(f"{level}: {source + ': ' if source else ''}{text}")

    async def ask(self, question: str) -> str | None:
        """Return the line that a person types; None after Ctrl-D, or if there is no person."""
        if not self.there or sys.stdin is None or not sys.stdin.isatty():
            return None
        async with self.turn:
            self.line(question, end="")
            # Not sys.stdin.readline(): CPython aborts when it ends while a thread waits in there.
            threads = Threads(1)
            line: bytes = await threads.run(os.read, sys.stdin.fileno(), 65536)
            threads.close()
        return line.decode(errors="replace").strip() if line else None

    async def elicit(self, message: str, schema: Msg) -> Msg | None:
        """Let the person fill in a form; None declines."""
        self.line(f"The server asks: {message}  (Ctrl-D declines)")
        fields, content = schema.get("properties") or {}, {}
        if not fields:
            agreed = YES_NO.get((await self.ask("  Agree? [y/N] ") or "").lower())
            return {} if agreed else None
        for name, field in fields.items():
            about = field.get("description") or field.get("title") or ""
            field_alone = {**schema, "properties": {name: field}}
            label = f"{parameters(field_alone)} {about and f'({about})'}"
            while name not in content:
                text = await self.ask(f"{one_line(label)} > ")
                if text is None:
                    return None
                if not text and ("default" in field or name not in schema.get("required", ())):
                    break  # a default is filled in for us
                value = convert(text, field)
                try:
                    checker_of(field)(value)
                    content[name] = value
                except SchemaError as exc:
                    self.line(f"  {exc}")
        return content

    async def elicit_url(self, message: str, url: str) -> Msg | None:
        """Let the person open a page; None declines."""
        return await self.elicit(f"{message}\n  Open {url}", {})

    async def sample(self, params: Msg) -> str:
        """Let the person answer in the place of a model."""
        for message in params["messages"]:
            blocks = message["content"]
            for block in blocks if isinstance(blocks, list) else [blocks]:
                self.line(f"{message['role']}: {content_text(block)}")
        text = await self.ask("The server asks a model; you answer for it (Ctrl-D declines): ")
        if text is None:
            # spec: client/sampling#error-handling
            raise RPCError(-1, "User rejected sampling request")
        return text

###############################################################################
# 56. Verbs
###############################################################################
# Uses sections 1 to 6, 16, 22, 27 to 29, 32, 34, 43, 46, 47, 53 and 55.
#
# Problem.  A person at a shell wants to see what a server offers, call it, and watch the protocol
#           while it works; a script wants the same as JSON, with an exit status.
# Rules.    1. stdout has the answer and nothing else. Progress, log lines, questions and the trace
#              go to stderr.
# Plan.     Arguments from words; CommandLine, with a method for each verb; what to serve; VERBS.
# Not here. How a command line is read: section 58. How it ends: 62.

def json_argument(text: str) -> Msg:
    """Return the object that --json gives, itself or as @FILE or -; ValueError if it is none."""
    try:
        if text == "-" and sys.stdin is not None:
            text = sys.stdin.read()
        elif text.startswith("@"):
            with open(text[1:], encoding="utf-8") as file:
                text = file.read()
        value = decode(text.encode("utf-8", "replace"))
    except (OSError, ProtocolError) as exc:
        raise ValueError(str(exc)) from None
    if not isinstance(value, dict):
        raise ValueError("it must be an object: {...}")
    return value


def read_arguments(
    words: Sequence[str], schema: Msg, usage: str, given: Msg | None = None
) -> Msg:
    """Return the arguments that are given as JSON, and those that KEY=VALUE words mean.

    Raises UsageError for an argument that is given twice, and for what breaks the schema.
    """
    fields = schema.get("properties") or {}
    given = dict(given or {})
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} is not KEY=VALUE; as in {usage}")
        if key in given:
            raise UsageError(f"{key!r} is given twice; several values are {key}=1,2 or --json")
        if fields and key not in fields and not schema.get("additionalProperties"):
            pick(f"argument of {usage}", key, fields)
        given[key] = convert(text, fields.get(key))
    with contextlib.suppress(SchemaError):  # of one that we cannot use: the server will judge
        check = checker_of(schema)
        try:
            check(given)
        except SchemaError as exc:
            raise UsageError(f"{exc}; as in {usage}") from None
    return given


def program() -> str:
    """Return how this command line is begun: as it was typed, where that is known."""
    import shlex

    name = sys.argv[0] if sys.argv else ""
    if os.path.basename(name) in ("mcp-lite", "mcp-lite.exe"):
        return "mcp-lite"
    here = os.path.basename(name) == os.path.basename(globals().get("__file__") or "")
    return f"python3 {shlex.quote(name)}" if here else "python3 mcp_lite.py"


def typed(args: Any, *words: str) -> str:
    """Return a command line about the target of this one."""
    import shlex

    return f"{program()} {' '.join(map(shlex.quote, words))} {args.typed}".strip()


def example_words(schema: Msg) -> list[str]:
    """Return the words that give the required arguments of a schema example values.

    >>> tags = {"type": "array", "items": {"type": "string"}}
    >>> example_words({"properties": {"tags": tags, "n": {}}, "required": ["tags"]})
    ['tags=text']
    """
    fields = schema.get("properties") or {}
    required = [name for name in schema.get("required") or () if name in fields]
    values = {name: example_of(fields[name], schema) for name in required}
    words = []
    for key, value in values.items():
        texts = [value] if isinstance(value, str) else [as_json(value)]
        texts[:0] = [",".join(map(str, value))] if isinstance(value, list) else []
        words += [f"{key}={text}" for text in texts if convert(text, fields[key]) == value][:1]
    return words if len(words) == len(values) else ["--json", as_json(values)]


#: Lists that a server may have, and their names in the result.
LISTS = {"tools": "tools", "resources": "resources", "templates": "resourceTemplates",
         "prompts": "prompts"}  # fmt: skip
# What a verb gives: its result as JSON, and as text for people; bytes for a binary resource.
Shown = tuple[Any, Union[str, bytes]]


def given_to(args: Any) -> tuple[Msg, Msg]:
    """Return the environment and the headers that options give to a server."""
    lines: list[str] = sum(args.header_file, [])
    pairs = [word.partition(":") for word in (*lines, *args.header)]
    headers = {name.strip(): value.strip() for name, _, value in pairs}
    return dict(word.partition("=")[::2] for word in args.env), headers


def header_file(path: str) -> list[str]:
    """Return the lines `Name: value` of a file; ValueError if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return [line for line in map(str.strip, file) if line and line[0] != "#"]
    except (OSError, UnicodeError) as exc:
        raise UsageError(str(exc)) from None


def filled_in(text: str) -> str:
    """Return a text with variables of the environment for each ${NAME}; UsageError without one."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise UsageError(f"{text!r}: the variable {found[1]} is not set")
        return os.environ[found[1]]

    return re.sub(r"\$\{(\w+)\}", value, text)


def target_options(args: Any, stderr: Any = None) -> Msg:
    """Return the options of a Client that talks to the target; UsageError for no target."""
    env, headers = given_to(args)
    try:
        connector_of(args.target)
    except TypeError as exc:  # a URL of another scheme
        raise UsageError(str(exc)) from None
    if not is_url(args.target):
        return {"stderr": stderr, "cwd": args.cwd, "env": env}
    headers = {name: filled_in(value) for name, value in headers.items()}
    return {"headers": headers, "auth": auth_of(args, headers)}


class CommandLine:
    """A command line at work: a method for each verb, and one for all that the server may ask."""

    def __init__(self, args: Any) -> None:
        self.args, self.words = args, args.words
        self.out, self.person = Screen(sys.stdout), Person()
        person = self.person
        options = target_options(args, self.pass_on)
        self.c = Client(
            args.target, revision=args.revision, roots=args.root or None, timeout=args.timeout,
            elicit=person.elicit, elicit_url=person.elicit_url, sample=person.sample,
            log=person.log, progress=person.progress, cache=False, **options,
        )  # fmt: skip

    def pass_on(self, text: str) -> None:
        """Write a line of the server's stderr, which no error need repeat to a person."""
        self.c.transport.repeats = self.args.json
        self.person.line(text)

    async def run(self) -> int:
        """Do it within --max-time; return the exit status."""
        try:
            return await asyncio.wait_for(self.work(), self.args.max_time)
        except asyncio.TimeoutError:
            limit = f"{self.args.max_time:g} seconds"
            raise RequestTimeout(f"not done within {limit} (--max-time)") from None

    async def work(self) -> int:
        """Connect, do what the verb says, show what came of it; return the exit status."""
        self.person.turn = asyncio.Lock()  # here: before 3.10 it belongs to a loop
        try:
            await self.c.connect()
        except (TypeError, ValueError) as exc:
            raise UsageError(str(exc)) from exc
        except RemoteError as exc:
            raise ProtocolError(f"{self.c.peer.name} did not take our handshake: {exc}") from exc
        try:
            if self.args.log is not None:
                await self.c.set_log_level(self.args.log)
            result, text = await VERBS[self.args.verb].method(self)
        except (LookupError, TypeError, ValueError, AttributeError) as exc:
            raise ProtocolError(f"the server's answer makes no sense: {exc!r}") from exc
        finally:
            await self.c.close()
        failed = self.args.verb == "call" and result.get("isError") is True
        if failed and not self.args.json:
            self.person.line(f"error: {text}")
        else:
            self.show(json.dumps(result, indent=2) if self.args.json else text)
        return int(failed)

    def show(self, text: str | bytes) -> None:
        """Write the answer; ConnectionClosed if nobody takes it."""
        out = sys.stdout
        if out is None:
            raise ConnectionClosed("standard output is closed: nobody gets the answer")
        try:
            if isinstance(text, str):
                encoding = out.encoding or "utf-8"  # which may lack some of the letters
                print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
            else:
                out.buffer.write(text)
                out.flush()
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise ConnectionClosed(f"cannot write the answer: {exc}") from exc

    async def listed(self, verb: str) -> list[Msg]:
        """Return a list of the server; an empty one if it does not even declare such things."""
        if verb.replace("templates", "resources") not in self.c.server_capabilities:
            return []
        items: list[Msg] = await getattr(self.c, f"list_{verb}")()
        return items

    async def list(self) -> Shown:
        """List them as signatures; or tell all of those that are named."""
        verb = self.args.verb
        items = await self.listed(verb)
        if not self.words:
            return {LISTS[verb]: items}, table(items, self.out)
        known = {item["name"]: item for item in items}
        known.update({it.get("uri") or it.get("uriTemplate") or it["name"]: it for it in items})
        items = [pick(verb[:-1], word, known, verb) for word in self.words]
        return {LISTS[verb]: items}, "\n\n".join(map(self.about, items))

    def about(self, item: Msg) -> str:
        """Return all that an item says of itself, and a command line that uses it."""
        if "uri" in item or "uriTemplate" in item:
            uri = item.get("uri") or re.sub(r"{\W?(\w+)[^}]*}", r"\1", item["uriTemplate"])
            words = ["read", uri]
        else:
            verb = "call" if "inputSchema" in item else "prompt"
            schema = item["inputSchema"] if verb == "call" else prompt_schema(item)
            words = [verb, item["name"], *example_words(schema)]
        title = self.out.paint(self.out.BOLD, "try")
        return f"{details(item, self.out)}\n\n{title}\n  {one_line(typed(self.args, *words))}"

    async def info(self) -> Shown:
        """Tell who the server is, what it speaks, and all that it offers."""
        c, era = self.c, "modern" if REVISIONS[self.c.revision].modern else "legacy"
        info, has = c.server_info, c.server_capabilities
        found: Msg = {"revision": c.revision, "era": era, "serverInfo": info, "capabilities": has}
        name = f"{info.get('name')} {info.get('version') or ''}"
        text = [one_line(f"{name}, revision {c.revision} ({era})")]
        text += [one_line(f"capabilities: {', '.join(has)}")]
        if c.instructions:
            found["instructions"] = c.instructions
            text += [plain(c.instructions)]
        for verb, key in LISTS.items():
            if verb.replace("templates", "resources") in has:
                found[key] = await self.listed(verb)
                title = self.out.paint(self.out.BOLD, verb.upper())
                text += ["", title, table(found[key], self.out)]
        return found, "\n".join(text)

    def entry(self, what: str, items: Iterable[Msg]) -> Msg:
        """Return the tool or the prompt that was named."""
        known = {item["name"]: item for item in items}
        return pick(what, self.words[0], known, f"{what}s")  # type: ignore

    def arguments(self, item: Msg, schema: Msg) -> Msg:
        """Return the arguments that were given for a tool or a prompt."""
        given: Msg | None = self.args.arguments
        if given is not None and len(self.words) == 1:
            return given  # as it is: the server judges
        return read_arguments(self.words[1:], schema, headline(item), given)

    async def call(self) -> Shown:
        """Call a tool; its schema converts and checks the arguments."""
        tool = self.entry("tool", await self.c.list_tools())
        given = self.arguments(tool, tool["inputSchema"])
        try:
            result = await self.c.call_tool(tool["name"], given)
        except (RPCError, RemoteError) as exc:
            # What a tool asks may be refused. Only in the legacy era, it hears of that and fails.
            if isinstance(exc, RemoteError) and exc.code != MISSING_CAPABILITY:
                raise
            result = {"content": blocks_of(str(exc)), "isError": True}
        return result, self.out.safe("\n".join(map(content_text, result.get("content", ()))))

    async def read(self) -> Shown:
        """Read a resource; a binary one goes into a pipe as it is."""
        result = await self.c.read_resource(self.words[0])
        contents = result["contents"]
        if len(contents) == 1 and "blob" in contents[0] and not sys.stdout.isatty():
            return result, base64.b64decode(contents[0]["blob"])
        return result, self.out.safe("\n".join(map(content_text, contents)))

    async def prompt(self) -> Shown:
        """Show the messages of a prompt."""
        prompt = self.entry("prompt", await self.c.list_prompts())
        given = self.arguments(prompt, prompt_schema(prompt))
        result = await self.c.get_prompt(prompt["name"], given)
        lines = [f"{each['role']}: {content_text(each['content'])}" for each in result["messages"]]
        return result, self.out.safe("\n".join(lines))

    async def complete(self) -> Shown:
        """Complete the first KEY=BEGUN; the others are what is known already."""
        (key, _, begun), *others = [word.partition("=") for word in self.words[1:]]
        known = {name: value for name, _, value in others}
        found = await self.c.complete_full(self.words[0], key, begun, known)
        return {"completion": found}, "\n".join(map(one_line, found["values"]))

    async def login(self) -> Shown:
        """Tell whether there is a login now: to connect was to make one."""
        done = isinstance(self.c.transport.auth, Login) and self.c.transport.auth.entry is not None
        text = f"logged in to {self.args.target}" if done else f"{self.args.target} wants no login"
        return {"loggedIn": done}, one_line(text)

    async def ping(self) -> Shown:
        """Measure how long an answer takes."""
        seconds = await self.c.ping()
        return {"seconds": seconds}, f"an answer took {1000 * seconds:.1f} ms"


def load_app(target: str) -> Any:
    """Return the Server in FILE.py[:APP], or one whose tools are the functions of the file."""
    import importlib.util

    stem, _, wanted = target.partition(".py:")
    path = stem + ".py" * (not stem.endswith(".py"))
    name = os.path.basename(path)[:-3]
    spec = importlib.util.spec_from_file_location(name, path)
    if not os.path.exists(path) or spec is None or not spec.loader:
        raise UsageError(f"{path}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)  # dataclasses look for their module there
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    # By its name: another copy of this file, beside the program, has a Server class of its own.
    found = {key: value for key, value in vars(module).items() if type(value).__name__ == "Server"}
    if found and (wanted in found or not wanted and len(set(map(id, found.values()))) == 1):
        return found.get(wanted) or [*found.values()][0]
    if found or wanted:
        there = ", ".join(f"{path}:{key}" for key in found) or "none"
        raise UsageError(f"which server? There is: {there}")
    app = Server(name, instructions=inspect.getdoc(module))
    for key, value in vars(module).items():
        public = inspect.isfunction(value) and not key.startswith("_")
        if public and value.__module__ == name and value.__annotations__:
            app.add_tool(value, name=key)
    if not app.tools:
        raise UsageError(f"{path} has neither a Server nor public functions with annotations")
    return app


def auth_of(args: Any, headers: Mapping[str, str]) -> Any:
    """Return how to log in to a URL: as was said; else by OAuth, where that can be safe."""
    given = args.auth or args.token or os.environ.get(TOKEN_VARIABLE)
    if given == "none" or "authorization" in map(str.lower, headers):
        return None
    if given not in (None, "oauth"):
        return given
    try:
        url = parse_url(args.target)
    except ValueError:  # the Client says what is wrong with it
        return None
    if given is None and url.scheme != "https" and not is_loopback(url.host):
        return None
    person = bool(sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty())
    browser: Any = {"open_browser": lambda url: None} if args.no_browser else {}
    return OAuth(
        client_id=args.client_id, scopes=args.scope or None, port=args.port, **browser,
        interactive=person or args.verb in ("login", "proxy") or given == "oauth",
    )  # fmt: skip


def log_out(args: Any) -> None:
    """Forget one login, or all of them."""
    if args.all:
        asyncio.run(FileStore().clear())
        print("all logins are forgotten")
    else:
        done = asyncio.run(logout(args.target))
        print(f"logged out of {args.target}" if done else f"no login to {args.target} was kept")


def serve(args: Any) -> None:
    """Be a server, of FILE.py[:APP] or of any module with annotated functions."""
    serve_as_asked(load_app(args.target), args)


def serve_as_asked(app: Any, args: Any) -> None:
    """Serve on standard input and output, or over HTTP."""
    if args.http is None:
        app.run()
        return
    host, _, port = args.http.rpartition(":")
    if not re.fullmatch("[0-9]{1,5}", port):
        raise UsageError(f"--http {args.http}: it takes PORT, or HOST:PORT")
    try:
        app.run("http", host=host.strip("[]") or "127.0.0.1", port=int(port), token=args.token)
    except (OSError, OverflowError) as exc:
        raise ConnectionClosed(f"cannot serve on {args.http}: {exc}") from exc


def seconds(text: str) -> float:
    """Return a time that an option gives; ValueError unless it is one that can pass."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError("it must be more than 0")
    return value


def one_of(*known: str) -> Callable[[str], str]:
    """Return what reads an option that takes one of these words."""

    def read(text: str) -> str:
        if text not in known:
            raise UsageError(f"{text!r} is not one of {', '.join(known)}")
        return text

    return read


class Verb(NamedTuple):
    """A word of the command line."""

    method: Any  #: the function that does it: of what `talks`, or of the arguments
    form: str  #: the words that it takes, besides the target
    about: str
    example: str  #: command lines, less the program; they end with a target
    target: str = "TARGET"
    talks: Any = CommandLine  #: the class of what talks to the target as a client, if it does


class Option(NamedTuple):
    """An option of the command line."""

    name: str
    value: str  #: the words that follow it, for the help; none for a switch
    verbs: str  #: which verbs take it; "*": all, "+": all that talk to a server
    about: str
    read: Callable[[str], Any] = str  #: makes the value; ValueError if it cannot
    default: Any = None  #: a list if the option may be given more than once


TOKEN_VARIABLE = "MCP_LITE_TOKEN"  # a bearer token for URLs
PAIRS = "[KEY=VALUE ...]"
FILE, REMOTE = "server.py", "https://example.com/mcp"  # targets of examples
VERBS: dict[str, Verb] = {
    "info": Verb(CommandLine.info, "", "Tell who the server is, and all that it offers.",
                 f"info {FILE}\ninfo {REMOTE}"),
    "tools": Verb(CommandLine.list, "[NAME ...]", "List the tools, or tell all of some.",
                  f"tools {FILE}\ntools add {FILE}"),
    "resources": Verb(CommandLine.list, "[URI ...]", "List the resources, or tell all of some.",
                      f"resources {FILE}"),
    "templates": Verb(CommandLine.list, "[URI ...]", "List the templates, or tell all of some.",
                      f"templates {FILE}"),
    "prompts": Verb(CommandLine.list, "[NAME ...]", "List the prompts, or tell all of some.",
                    f"prompts {FILE}\nprompts review {FILE}"),
    "call": Verb(CommandLine.call, f"NAME {PAIRS}", "Call a tool.",
                 f"call add a=1 b=2 {FILE}\ncall add --json '{{\"a\": 1}}' {REMOTE}"),
    "read": Verb(CommandLine.read, "URI", "Read a resource, as text or as it is into a pipe.",
                 f"read note://milk {FILE}\nread shop://logo {FILE} >logo.png"),
    "prompt": Verb(CommandLine.prompt, f"NAME {PAIRS}", "Show the messages of a prompt.",
                   f"prompt review style=kind code=x=1 {FILE}"),
    "complete": Verb(CommandLine.complete, f"REF KEY=BEGUN {PAIRS}",
                     "Complete the first; the others are known already.",
                     f"complete review style=k {FILE}"),
    "ping": Verb(CommandLine.ping, "", "Measure how long an answer takes.", f"ping {REMOTE}"),
    "login": Verb(CommandLine.login, "", "Log in to a URL, in a browser; it is remembered.",
                  f"login {REMOTE}", "URL"),
    "logout": Verb(log_out, "", "Forget the login to a URL; with --all, to all.",
                   f"logout {REMOTE}\nlogout --all", "URL", None),
    "serve": Verb(serve, "", "Be the server in FILE.py[:APP], or one of a file's functions.",
                  f"serve {FILE}\nserve {FILE}:app --http 8000", "FILE.py[:APP]", None),
}  # fmt: skip
OPTIONS = [
    Option("--arguments", "JSON", "call prompt", "the same as --json '{...}'", json_argument),
    Option("--json", "", "+ config", "print the result, and an error, as JSON"),
    Option("--timeout", "SECONDS", "+", "how long an answer may take; progress grants more",
           seconds, REQUEST_SECONDS),
    Option("--max-time", "SECONDS", "+", "how long all of it may take, whatever comes", seconds),
    Option("--env", "KEY=VALUE", "+ config proxy", "for the server's process", str, []),
    Option("--cwd", "FOLDER", "+ proxy", "where to start the server"),
    Option("--root", "FOLDER", "+", "a folder to tell the server about", str, []),
    Option("--log", "LEVEL", "+", f"which log messages to ask for: {', '.join(LOG_LEVELS)}",
           one_of(*LOG_LEVELS)),
    Option("--revision", "DATE", "+ proxy", f"the one to speak: {', '.join(REVISIONS)}",
           one_of(*REVISIONS)),
    Option("--header", "'NAME: VALUE'", "+ config proxy",
           "for a URL, with every request; ${VAR} is filled in", str, []),
    Option("--header-file", "FILE", "+ config proxy", "lines with such headers", header_file, []),
    Option("--token", "TEXT", "+ serve proxy",
           f"a bearer token for a URL, or ${TOKEN_VARIABLE}; serve --http asks for it"),
    Option("--auth", "oauth|none|TOKEN", "+ proxy", "how to log in to a URL"),
    Option("--client-id", "ID", "+ proxy", "for a login: what we are, where nobody can register"),
    Option("--scope", "NAME", "+ proxy", "for a login: ask for this alone", str, []),
    Option("--port", "N", "+ proxy", "for a login: where the browser comes back", int, 0),
    Option("--no-browser", "", "+ proxy", "for a login: print the address only"),
    Option("--all", "", "logout", "forget all logins"),
    Option("--http", "[HOST:]PORT", "serve proxy", "serve there, not on standard input and output"),
    Option("--trace", "", "*", "show every message on stderr"),
]

###############################################################################
# 57. Applications
###############################################################################
# Uses sections 1 to 3, 27, 30, 32, 43, 46, 53, 54 and 56.
#
# Problem.  An application that starts servers reads in a file of its own how to start them. Each
#           has another file and another form, and starts them where little is found.
# Rules.    1. What is written is absolute: an application may have no PATH, and work in any folder.
#           2. Such a file belongs to somebody else. One entry is put into its text, and every other
#              character stays: comments, order, settings of all kinds. A copy of the file is kept.
#           3. Where there is a doubt (a link, a file that makes no sense, another entry of that
#              name), nothing is written.
# Plan.     APPLICATIONS; where their files are; entries; text with one entry more; the verb.
# Not here. How a client uses such files.

class Application(NamedTuple):
    """A program that starts MCP servers, and the file that tells it which."""

    title: str
    #: by sys.platform, "" for all others; the first without an unset variable counts, and every
    #: folder that a pattern with `*` finds
    files: dict[str, tuple[str, ...]]
    project: str = ""  #: the file for one folder of work
    key: str = "mcpServers"  #: the member that has the servers
    url: str = "url"  #: the member of an entry that has the URL; "" if it takes commands only
    typed: bool = False  #: whether an entry says "stdio" or "http"
    command: str = ""  #: the application's own command that adds {name} with {entry}


def _in_config(folder: str, base: str = "") -> dict[str, tuple[str, ...]]:
    """Return where Electron applications keep a file."""
    mac = f"~/Library/Application Support/{folder}"
    linux = f"$XDG_CONFIG_HOME/{folder}", f"~/.config/{folder}"
    return {"darwin": (mac,), "win32": (f"$APPDATA/{folder}",), "": linux}


CLAUDE_FILE = "claude_desktop_config.json"
#: As their manuals, sources and users had it in November 2026.
APPLICATIONS = {
    "claude-desktop": Application("Claude Desktop", {
        **_in_config(f"Claude/{CLAUDE_FILE}"),
        "win32": (  # one from the Microsoft Store sees folders of its own
            f"$APPDATA/Claude/{CLAUDE_FILE}",
            f"$LOCALAPPDATA/Packages/Claude_*/LocalCache/Roaming/Claude/{CLAUDE_FILE}",
            f"$LOCALAPPDATA/Claude-Data/claude_*/{CLAUDE_FILE}",
        ),
    }, url=""),
    "claude-code": Application("Claude Code", {"": ("~/.claude.json",)}, ".mcp.json", typed=True,
                               command="claude mcp add-json {name} {entry}"),
    "cursor": Application("Cursor", {"": ("~/.cursor/mcp.json",)}, ".cursor/mcp.json"),
    "vscode": Application("VS Code", _in_config("Code/User/mcp.json"), ".vscode/mcp.json",
                          "servers", typed=True, command="code --add-mcp {named}"),
    "devin": Application("Devin Desktop", {"": ("~/.codeium/windsurf/mcp_config.json",)},
                         url="serverUrl"),
    "zed": Application("Zed", {
        "": ("$XDG_CONFIG_HOME/zed/settings.json", "~/.config/zed/settings.json"),
        "darwin": ("~/.config/zed/settings.json",), "win32": ("$APPDATA/Zed/settings.json",),
    }, ".zed/settings.json", "context_servers"),
    "gemini": Application("Gemini CLI", {"": ("~/.gemini/settings.json",)},
                          ".gemini/settings.json", url="httpUrl"),
    "codex": Application("Codex CLI", {"": ("$CODEX_HOME/config.toml", "~/.codex/config.toml")},
                         ".codex/config.toml", "mcp_servers"),
}  # fmt: skip
APPLICATIONS["windsurf"] = APPLICATIONS["devin"]  # its former name


def files_of(app: Application, platform: str = sys.platform) -> list[str]:
    """Return the files in which an application looks on a platform; only the first may be new."""
    import glob

    plain_file, found = "", []
    for pattern in app.files.get(platform) or app.files[""]:
        path = os.path.normpath(os.path.expanduser(os.path.expandvars(pattern)))
        if "*" in pattern:
            folder, name = os.path.split(path)
            found += [os.path.join(each, name) for each in sorted(glob.glob(folder))]
        elif "$" not in path and not plain_file:
            plain_file = path
    if plain_file and (os.path.exists(plain_file) or not found):
        found.insert(0, plain_file)
    return found


# Entries.

#: Programs that start a server which is named by one of their arguments.
STARTERS = r"(python[\d.]*|py|node|npx|npm|bunx|uvx?|deno|docker|cmd)(\.\w+)?"
RUN_WORDS = ("run", "exec", "serve", "tool", "/c")


def name_for(target: Any) -> str:
    """Return a short name for a server, of letters, digits and hyphens: all applications take it.

    >>> name_for(["npx", "-y", "@scope/server-files@1.2", "/tmp"]), name_for("https://a.b.com/mcp")
    ('server-files', 'a-b-com')
    """
    if is_url(target):
        words = [parse_url(target).host]
    else:
        words = [target] if isinstance(target, str) else target
        words = [w for w in words if ".py:" in w] or words
        words = [w for w in words if w[:1] != "-" and w not in RUN_WORDS]
        words = [w for w in words if not re.fullmatch(STARTERS, os.path.basename(w))] or words
        words = [re.sub(r"(\.py(:\w+)?|\.\w{1,4}|(?<=.)[@=].*)$", "", os.path.basename(word))
                 for word in words[:1]]  # fmt: skip
    return re.sub("[^a-z0-9]+", "-", "".join(words).lower()).strip("-")[:20].strip("-") or "server"


def absolute(word: str) -> str:
    """Return a word of a command; one that names what is in this folder, from the root.

    A mere word, without a slash, is the name of a file here, but never that of a folder.
    """
    path, colon, app = word.rpartition(":") if re.search(r"\.py:\w+$", word) else (word, "", "")
    slash = os.path.dirname(path) or path in (".", "..")
    if os.path.isfile(path) or (slash and os.path.exists(path)):
        return os.path.abspath(path) + colon + app
    return word


def entry_of(app: Application, target: Any, env: Msg, headers: Msg) -> Msg:
    """Return how `app` is told of a target; UsageError where it cannot be."""
    if is_url(target):
        if not app.url:
            raise UsageError(f"{app.title} starts commands only, and {target} is a URL")
        entry: Msg = {"type": "http"} if app.typed else {}
        entry[app.url] = target
        if headers:
            entry["http_headers" if app.key == "mcp_servers" else "headers"] = headers
        return entry
    if isinstance(target, str) and not os.path.isfile(target):
        raise UsageError(f"{target}: no such file; give a command after `--`")
    try:
        words = [target] if isinstance(target, str) else [*target]
        argv = command_line([*map(absolute, words)], None, os.environ.get("PATH"))
    except (ConnectionClosed, ValueError) as exc:
        raise UsageError(str(exc)) from None
    if argv[0].lower().endswith((".cmd", ".bat")):  # no program, but a text for cmd.exe
        argv = ["cmd", "/c", *argv]
    entry = {"type": "stdio"} if app.typed else {}
    return {**entry, "command": argv[0], "args": argv[1:], **({"env": env} if env else {})}


def as_toml(table: str, entry: Msg) -> str:
    """Return an entry as a table of TOML.

    >>> print(as_toml("mcp_servers.a", {"command": "x", "args": ["1"], "env": {"K": "v"}}))
    [mcp_servers.a]
    command = "x"
    args = ["1"]
    env = { "K" = "v" }
    """
    lines = [f"[{table}]"]
    for key, value in entry.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict):
            pairs = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items())
            text = f"{{ {pairs} }}"
        lines.append(f"{key} = {text}")
    return "\n".join(lines)


# Text with one entry more.

_STRING = r'"(?:[^"\\]|\\.)*"'


def blanked(text: str) -> str:
    """Return JSON with comments as JSON: blanks for comments, and for commas before a bracket.

    Every character that is left stands where it stood.

    >>> blanked('{"a//": [1, /* 2 */ ], } // end')
    '{"a//": [1          ]  }       '
    """
    for other in (r"//[^\r\n]*|/\*.*?\*/", r",(?=\s*[}\]])"):
        keep = re.compile(f"(?s){_STRING}|{other}")
        text = keep.sub(
            lambda hit: hit[0] if hit[0][0] == '"' else re.sub(r"[^\r\n]", " ", hit[0]), text
        )
    return text


def members_of(text: str, at: int) -> dict[str, tuple[int, int]]:
    """Return where the value of each member of the object at `at` begins and ends in JSON text.

    >>> members_of('{"a": 1, "b": {}}', 0)
    {'a': (6, 7), 'b': (14, 16)}
    """
    read, blank, found = json.JSONDecoder().raw_decode, re.compile(r"[\s:,]*"), {}
    at = blank.match(text, at + 1).end()  # type: ignore[union-attr]
    while text[at] != "}":
        key, at = read(text, at)
        start = blank.match(text, at).end()  # type: ignore[union-attr]
        _, end = read(text, start)
        found[key] = (start, end)
        at = blank.match(text, end).end()  # type: ignore[union-attr]
    return found


def read_settings(text: str) -> Msg:
    """Return the object in JSON with comments; ProtocolError if there is none, {} in a blank."""
    bare = blanked(text)
    settings = decode(bare.encode("utf-8", "replace")) if bare.strip() else {}
    if not isinstance(settings, dict):
        raise ProtocolError("it is no JSON object")
    return settings


def put_member(text: str, path: Sequence[str], value: JSON) -> str:
    """Return the text of a JSON object in which `path` leads to `value`; all else is as it was.

    >>> put_member('{"a": 1.50} // mine', ["b", "c"], [])
    '{\\n  "b": {\\n    "c": []\\n  },\\n  "a": 1.50} // mine'
    """
    bare, at, depth = blanked(text), 0, 1
    if not bare.strip():
        text, bare = text + "{}\n", bare + "{}\n"
    at = bare.index("{")
    while path[0] in (there := members_of(bare, at)) and len(path) > 1:
        (at, _), path, depth = there[path[0]], path[1:], depth + 1
        if bare[at] != "{":
            raise ProtocolError(f"its {path[0]!r} stands in what is no object")
    eol = "\r\n" if "\r\n" in text else "\n"
    indent = re.match(r"\s*\{[^\S\n]*\n([ \t]+)", bare)
    unit = indent[1] if indent else "  "
    for key in reversed(path[1:]):
        value = {key: value}
    lines = json.dumps({path[0]: value}, indent=unit, ensure_ascii=False).split("\n")[1:-1]
    new = "".join(f"{eol}{unit * (depth - 1)}{line}" for line in lines)
    if path[0] in there:
        (start, end), label = there[path[0]], json.dumps(path[0], ensure_ascii=False)
        return text[:start] + new.lstrip()[len(label) + 2 :] + text[end:]
    rest = text[at + 1 :]
    if "\n" not in bare[at + 1 :][: len(bare[at + 1 :]) - len(bare[at + 1 :].lstrip())]:
        rest = f"{eol}{unit * (depth - (not there))}{rest.lstrip(' ')}"
    return text[: at + 1] + new + "," * bool(there) + rest


def write_entry(path: str, key: str, name: str, entry: Msg, force: bool) -> str:
    """Put an entry into a file of settings, and return what was done; UsageError: nothing was."""
    before, mode = b"", 0o600  # of a new file: an entry may hold a secret
    if os.path.islink(path):
        raise UsageError(f"{path} is a link to {os.path.realpath(path)}: change that by hand")
    try:
        with open(path, "r+b") as file:  # as one that we may write
            before, mode = file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        text = before.decode("utf-8")
        mark, text = text[: text.startswith("\ufeff")], text.lstrip("\ufeff")
        settings = read_settings(text)
        there = settings.get(key, {})
        if there.get(name) == entry:
            return f"{path} has {name} as it is"
        if name in there and not force:
            raise UsageError(f"{path} has another {name!r}: give --name, or --force to replace it")
        text = put_member(text, [key, name], entry)
        if read_settings(text) != {**settings, key: {**there, name: entry}}:
            raise ProtocolError("the entry does not fit into its text")
    except (ProtocolError, ValueError, AttributeError) as exc:
        raise UsageError(f"{path} is left alone: {exc}") from exc
    if before:
        write_whole(path + ".bak", before, mode)
        with open(path, "rb") as file:
            if file.read() != before:  # the application has written meanwhile
                raise UsageError(f"{path} is changing: close the application and try again")
    write_whole(path, (mark + text).encode(), mode)
    return f"{path} has {name} now" + f"; as it was: {path}.bak" * bool(before)


# The verb.


def servers_in(path: str, key: str) -> Msg:
    """Return the servers that a file of settings names; OSError or ValueError if it cannot be."""
    with open(path, encoding="utf-8-sig") as file:
        text = file.read()
    if path.endswith(".toml"):
        if sys.version_info < (3, 11):
            raise ValueError("Python has no parser of TOML before 3.11")
        import importlib

        settings: Any = importlib.import_module("tomllib").loads(text)
    else:
        settings = read_settings(text)
    return object_of(settings, key)


def list_configured(args: Any) -> None:
    """Show which servers are configured for which application, here and for this user."""
    found = []
    for app in {id(app): app for app in APPLICATIONS.values()}.values():
        for path in [*files_of(app), *([app.project] if app.project else [])]:
            if not os.path.exists(path):
                continue
            row: Msg = {"application": app.title, "file": os.path.abspath(path)}
            try:
                servers = servers_in(path, app.key)
                row["servers"] = {name: redact(servers[name]) for name in servers}
            except (OSError, ValueError, ProtocolError) as exc:
                row["error"] = str(exc)
            found.append(row)
    if args.json:
        print(json.dumps(found, indent=2))
        return
    for row in found:
        print(one_line(f"{row['application']}: {row['file']}"))  # a name may be hostile
        for name, entry in row.get("servers", {row.get("error", ""): {}}).items():
            entry = entry if isinstance(entry, dict) else {}
            words = [entry.get("command", ""), *entry.get("args", ())]
            url = [entry[key] for key in ("url", "serverUrl", "httpUrl") if key in entry]
            print("   ", one_line(f"{name}: {' '.join(map(str, url or words))}"))


def configure(args: Any) -> None:
    """Show the entry of a server for an application, or write it; or list all that there are."""
    if args.list:
        return list_configured(args)
    app: Application = pick("application", args.words[0], APPLICATIONS)
    name, entry = args.name or name_for(args.target), entry_of(app, args.target, *given_to(args))
    paths = [app.project] if args.project else files_of(app)
    if not paths or not paths[0]:
        raise UsageError(f"{app.title} has no such file here")
    toml = app.key == "mcp_servers"
    if args.write and toml:
        raise UsageError(f"add it to {paths[0]} by hand: only JSON can be written")
    if args.write:
        for path in paths:
            try:
                print(write_entry(path, app.key, name, entry, args.force))
            except OSError as exc:
                raise UsageError(f"{path} is left alone: {exc}") from exc
        return
    import shlex

    text = json.dumps({app.key: {name: entry}}, indent=2)
    print(as_toml(f"{app.key}.{name}", entry) if toml else text)
    hints = f"in {' and '.join(paths)}" + ("" if toml else "; --write puts it there")
    if app.command and not args.project:
        own = {"entry": json.dumps(entry), "named": json.dumps({"name": name, **entry})}
        hints += "; or: " + app.command.format(name=name, **{k: shlex.quote(own[k]) for k in own})
    sys.stderr.write(one_line(hints) + "\n")


VERBS["config"] = Verb(
    configure, "APP", "Show how an application is told of a server, or tell it.",
    f"config cursor {FILE}\nconfig claude-desktop {FILE} --write\nconfig --list", talks=None,
)
OPTIONS += [
    Option("--write", "", "config", "put it into the application's file"),
    Option("--project", "", "config", "for this folder, not for all that I do"),
    Option("--name", "NAME", "config", "how the application calls the server"),
    Option("--force", "", "config", "replace what has that name"),
    Option("--list", "", "config", "show what is configured, and where"),
]

###############################################################################
# 58. Options
###############################################################################
# Uses sections 1, 2, 43, 53 and 56.
#
# Problem.  The words of a command line say what to do, with which server, and how. Whoever types
#           them wrong wants to be told what would be right, in one line.
# Rules.    1. Options may stand anywhere before `--`. After it comes the command of a server.
#           2. An option that a verb has no use for is refused: it would be lost in silence.
# Plan.     read_options(); parse_command_line(); the target among the words; our own command;
#           the help, and the next command to type after an error.
# Not here. What the verbs do: section 56.

SHORT_OPTIONS = {"-h": "--help", "-o": "--output"}


def options_of(verb: str) -> list[Option]:
    """Return the options that a verb takes."""
    marks = {verb, "*", "+" if VERBS[verb].talks else "*"}
    return [row for row in OPTIONS if marks & {*row.verbs.split()}]


def spell_out(argv: Sequence[str]) -> list[str]:
    """Return a command line with `--arguments` for each `--json` that is not about the output."""
    words = list(argv)
    for i, word in enumerate(words[1:]):
        if words[i] == "--json" and re.match(r"[{\[@]|-$", word):
            words[i] = "--arguments"
    return words


def read_options(words: Sequence[str]) -> tuple[list[str], Msg]:
    """Return the words that are no options, and the values of the options by their names."""
    known = {row.name: row for row in OPTIONS}
    known.update({name: Option(name, "", "*", "") for name in ("--help", "--version")})
    others: list[str] = []
    given: Msg = {}
    rest = deque(words)
    while rest:
        word = rest.popleft()
        name, equals, value = word.partition("=")
        if not re.match(r"--?[a-z]", word):
            others.append(word)
            continue
        row = pick("option", SHORT_OPTIONS.get(name, name), known)
        if row.value and not equals:
            if not rest or rest[0] in known:
                raise UsageError(f"{name} {row.value}: the value is missing")
            value = rest.popleft()
        read_option(row, value, given)
    return others, given


def read_option(row: Option, text: str, given: Msg) -> None:
    """Add the value of one option to what is given."""
    name = "--json" if row.name == "--arguments" else row.name
    try:
        value = row.read(text) if row.value else True
    except (ValueError, UsageError) as exc:
        problem = str(exc) if isinstance(exc, UsageError) or row.read is json_argument else ""
        raise UsageError(f"{name}: {problem or f'{text!r} is no {row.value}'}") from None
    if isinstance(row.default, list):
        given.setdefault(row.name, []).append(value)
    elif row.name in given and row.value:
        raise UsageError(f"{name} is given twice")
    else:
        given[row.name] = value


def parse_command_line(argv: Sequence[str]) -> Any:
    """Return verb, words, target and options; UsageError or SystemExit if they make no sense."""
    end = argv.index("--") if "--" in argv else len(argv)
    words, given = read_options(argv[:end])
    if "--version" in given:
        print(f"mcp_lite {__version__}")
        raise SystemExit(0)
    if not words or "--help" in given:
        out = sys.stdout if "--help" in given else sys.stderr
        print(help_text(words[0] if words else "", Screen(out)), file=out)
        raise SystemExit(0 if "--help" in given else 2)
    verb, *words = words
    row = pick("verb", verb, VERBS)
    takes = options_of(verb)
    for name in given.keys() - {option.name for option in takes}:
        raise UsageError(f"{verb} does not take {name}", verb, "--help")
    values = {option.name: option.default for option in OPTIONS} | given
    args = types.SimpleNamespace(verb=verb, words=words)
    for name, value in values.items():
        setattr(args, name[2:].replace("-", "_"), value)
    find_target(args, row, list(argv[end + 1 :]))
    return args


def find_target(args: Any, row: Verb, command: list[str]) -> None:
    """Set the target, as it was typed and as the Client takes it; UsageError if there is none."""
    form = f"as in: mcp_lite {args.verb} {row.form + ' ' * bool(row.form)}{row.target}"
    if command:
        import shlex

        args.typed = f"-- {' '.join(map(shlex.quote, command))}"
        args.target = command
    else:
        args.typed = take_target(args.words) or ""
        args.target = args.typed
    if row.target == "TARGET" and re.search(r"\.py:\w+$", args.typed):
        args.target = [*own_command(), "serve", args.typed]
    if row.target == "URL" and not is_url(args.target) and not (args.all and not args.typed):
        raise UsageError(form, args.verb, "--help")
    needed = len(re.sub(r"\[.*?\]", "", row.form).split())
    few = len(args.words) < needed or not (args.target or args.all)
    few = few and not (args.list and not args.typed)
    many = len(args.words) > needed and "..." not in row.form
    if few or many or row.target.startswith("FILE") and command:
        raise UsageError(form, args.verb, "--help")


def take_target(words: list[str]) -> str | None:
    """Take the target out of the words: the last, or the first if only that looks like one."""
    if not words:
        return None
    looks = re.compile(r"https?://|[^=]*\.py(:\w+)?$")
    return words.pop(0 if looks.match(words[0]) and not looks.match(words[-1]) else -1)


def own_command() -> list[str]:
    """Return the command that starts this command line in another process."""
    path = os.path.abspath(globals().get("__file__") or "")
    if os.path.isfile(path):
        return [sys.executable, path]
    folder, name = os.path.split(path)  # inside a zip archive, from which Python imports
    if not os.path.isfile(folder):
        raise UsageError("FILE.py:APP needs mcp_lite.py as a file: give `-- COMMAND ...` instead")
    code = f"import sys; sys.path.insert(0, {folder!r}); import {name[:-3]} as m; m.exit_as_main()"
    return [sys.executable, "-c", code]


ABOUT = "Talk to an MCP server, or be one."
TARGETS = "TARGET is a URL, FILE.py, FILE.py:APP or, at the very end, -- COMMAND [ARGUMENT ...]."
STATUSES = ("Exit status: 0 done; 1 the tool failed; 2 wrong command line; "
            "3 connection or protocol; 130 interrupted.")  # fmt: skip


def help_text(verb: str, screen: Screen) -> str:
    """Return the help of a verb, or of all if it is ""."""
    row = pick("verb", verb, VERBS) if verb else Verb(None, "... [options]", ABOUT, "", "TARGET")
    usage = f"{program()} {verb or 'VERB'} {row.form} {'[options] ' * bool(verb)}{row.target}"
    lines = [*screen.wrap(row.about), "", f"usage: {' '.join(usage.split())}"]

    def add(title: str, rows: list[tuple[str, str]]) -> None:
        lines.extend(["", screen.paint(screen.BOLD, title), *screen.columns(rows)])

    if verb:
        lines += ["", screen.paint(screen.BOLD, "examples")]
        lines += [f"  {program()} {example}" for example in row.example.split("\n")]
        add("options", [(f"{it.name} {it.value}".strip(), it.about) for it in options_of(verb)])
    else:
        add("verbs", [(f"{name} {it.form}".strip(), it.about) for name, it in VERBS.items()])
        about = "VERB --help shows the options of a verb, and examples."
        lines += ["", *screen.wrap(about)]
    return "\n".join([*lines, "", *screen.wrap(TARGETS), *screen.wrap(STATUSES)])


def advice(exc: MCPError, args: Any) -> str:
    """Return the command to type after an error; "" where its message has one."""
    if args is None or isinstance(exc, UsageError) and exc.words[1:] == ("--help",):
        return f"{program()} {' '.join(getattr(exc, 'words', ())) or '--help'}"
    if isinstance(exc, AuthError):
        return "" if " login " in str(exc) else f"{program()} login {args.typed}"
    if isinstance(exc, RequestTimeout):
        more = "--max-time" if args.max_time else "--timeout"
        limit = args.max_time or args.timeout
        return typed(args, args.verb, *args.words, more, f"{10 * limit:g}")
    if isinstance(exc, UsageError):
        return typed(args, *exc.words) if exc.words else f"{program()} {args.verb} --help"
    return typed(args, args.verb, *args.words, "--trace")

###############################################################################
# 59. Rules for servers
###############################################################################
# Pure. Uses sections 1 to 4, 12, 27 and 35.
#
# Problem.  A server can obey the protocol, and still be of no use to a model, or be refused by an
#           application. Its author finds out late, from users, and one application at a time.
# Rules.    1. All that is known stands in one table, with the day on which it was read, and the
#              place where it was read: applications change without notice.
#           2. A finding says what is wrong, where, for whom, and what to do about it.
#           3. What a server has sent may be anything; a judgement of it raises nothing.
# Plan.     Rule and RULES; Finding; a walk through schemas; judgements of names, words, schemas
#           and annotations; findings_of(), which makes them all.
# Not here. Faults that only show while a server is at work: section 60.

RULES_READ = "2026-11-22"  # the day on which the sources of RULES were read

ERROR, WARNING, NOTE = "error", "warning", "note"  # a note is nobody's fault
PROFILES = ("claude", "openai", "gemini", "cursor", "vscode")

MAX_INSTRUCTIONS_CHARS = 2048  # of which an application shows its model anything
MAX_DESCRIPTION_CHARS = 1024  # that a provider takes for a tool
MAX_CURSOR_NAME_CHARS = 60  # of the server's name and the tool's together

#: What a tool may be called.
NAME_PATTERNS = {
    "claude": "[a-zA-Z0-9_-]{1,64}", "openai": "[a-zA-Z0-9_-]{1,64}",
    "gemini": "[a-zA-Z_][a-zA-Z0-9_.:-]{0,62}", "vscode": ".{1,64}",
}  # fmt: skip
#: How many tools there may be, of all servers together.
MOST_TOOLS = {"cursor": 40, "openai": 128, "vscode": 128}
#: Keywords that a declaration of a function cannot have, for Gemini.
NOT_FOR_GEMINI = frozenset(
    "$ref $defs const oneOf not if propertyNames patternProperties exclusiveMinimum"
    " exclusiveMaximum dependentSchemas".split()
)
GEMINI_FORMATS = frozenset("enum date-time int32 int64 float double".split())


class Rule(NamedTuple):
    """One thing that can be wrong, or unwise."""

    name: str
    level: str
    text: str
    remedy: str
    #: a page of the specification, or "owner/repository#number", or a name
    source: str
    #: who suffers, of PROFILES; everybody, if it is empty
    breaks: tuple[str, ...] = ()


RULES: dict[str, Rule] = {
    row.name: row
    for row in (
        # What the lists say.
        Rule("same-name", ERROR, "two have one name: only one can be reached",
             "rename one", "spec: server/tools#tool-names"),
        Rule("tool-name", WARNING, "the name of a tool has other characters, or is too long",
             "1 to 128 of A-Z a-z 0-9 _ - .", "spec: server/tools#tool-names"),
        Rule("refused-name", WARNING, "applications refuse the name, or all tools because of it",
             "at most 60 of a-z 0-9 _ -, and a letter first", "openai/codex#8694",
             tuple(NAME_PATTERNS)),
        Rule("long-name", WARNING, "the server's and the tool's name are too long together: the "
             "tool vanishes", "shorten one of them", "sparfenyuk/mcp-proxy#45", ("cursor",)),
        Rule("many-tools", WARNING, "there are more tools than an application takes",
             "join tools that belong together, or split the server",
             "microsoft/vscode-copilot-release#11653", tuple(MOST_TOOLS)),
        Rule("no-description", WARNING, "there is no description: the model has the name alone",
             "say when to use it, and what comes back", "7shep/mcp-linter"),
        Rule("silent-arguments", NOTE, "arguments have no description",
             "describe each: its meaning, its form, an example", "7shep/mcp-linter"),
        Rule("long-description", WARNING, "the description is longer than a provider takes",
             f"at most {MAX_DESCRIPTION_CHARS:,} characters", "cejor6/mcpconform", ("openai",)),
        Rule("long-instructions", WARNING, "the instructions are cut off",
             f"at most {MAX_INSTRUCTIONS_CHARS:,} characters", "measured with Claude Code 2.1.285",
             ("claude",)),
        Rule("contradiction", WARNING, "the annotations contradict each other",
             "destructiveHint and idempotentHint are for tools that change something",
             "spec: server/tools#tool"),
        Rule("no-uri", ERROR, "this is no URI", "scheme:path", "spec: server/resources#resource"),
        # Schemas.
        Rule("bad-schema", ERROR, "this is no usable JSON Schema", "JSON Schema 2020-12",
             "spec: basic/index#json-schema-usage"),
        Rule("no-object", ERROR, "an inputSchema is a schema of an object",
             '{"type": "object", "additionalProperties": false} for no arguments',
             "spec: server/tools#tool"),
        Rule("required-unknown", ERROR, "an argument is required that the schema does not have",
             "add it to properties, or take it out of required", "cejor6/mcpconform"),
        Rule("choice-on-top", ERROR, "oneOf, anyOf or allOf at the top of an inputSchema: all "
             "tools are refused, or this one vanishes", "put the choice into a property",
             "anthropics/claude-code#95504", ("claude", "openai")),
        Rule("no-items", WARNING, "an array without items: the tool is refused",
             "say what the array holds", "microsoft/vscode#246119",
             ("gemini", "openai", "vscode")),
        Rule("any-value", WARNING, "an argument without a type: models guess",
             "give it a type, an enum, or a choice of types", "7shep/mcp-linter"),
        Rule("bad-default", WARNING, "the default does not fit its own schema",
             "correct one of them", "JSON Schema 2020-12 §9.2"),
        Rule("not-for-gemini", WARNING, "keywords that a declaration of a function has not",
             "say it in simpler ones, or in the description",
             "taylorwilsdon/google_workspace_mcp#1099", ("gemini",)),
        Rule("bad-header", ERROR, "x-mcp-header is used wrongly: clients must drop the tool",
             "a header name, unique, on a string, an integer or a boolean",
             "spec: server/tools#x-mcp-header"),
        Rule("output-not-object", WARNING, "the outputSchema is not of an object: clients before "
             "the newest revision may drop all tools", '{"type": "object", ...}',
             "opentokenz/mcpx#28"),
        Rule("unseen", NOTE, "older revisions do not have it: it is left out there",
             "let the descriptions stand without it", "spec: basic/versioning"),
        # What a server does.
        Rule("stdout", ERROR, "it prints to standard output, which is the protocol's",
             "print to standard error", "spec: basic/transports/stdio"),
        Rule("slow-start", WARNING, "it is slow to start: applications give up after 10 s or so",
             "import and connect when the first call needs it", "openai/codex"),
        Rule("ends-early", WARNING, "it ends when the first message is not `initialize`; newer "
             "clients begin with server/discover", "answer with an error",
             "spec: basic/transports/stdio#backward-compatibility"),
        Rule("no-list", ERROR, "a list that was declared cannot be read",
             "answer it, or do not declare it", "spec: server/tools#capabilities"),
        Rule("endless", ERROR, "the pages of a list do not end",
             "no nextCursor on the last page", "spec: server/utilities/pagination"),
        Rule("order", WARNING, "a list comes in another order when it is read again",
             "sort it: caches of clients and models depend on it",
             "spec: server/tools#capabilities"),
        Rule("bad-hint", WARNING, "ttlMs or cacheScope makes no sense",
             "a number from 0 on; public or private", "spec: server/utilities/caching"),
        Rule("wrong-code", WARNING, "what cannot be is not refused as it should be",
             "answer with the error code that is due", "spec: server/tools#error-handling"),
        Rule("silence", ERROR, "a request that makes no sense gets no answer",
             "answer every request", "JSON-RPC 2.0 §5"),
        Rule("death", ERROR, "it ended", "a request must not end a server", "JSON-RPC 2.0 §5"),
        Rule("blocks", WARNING, "it answers nothing else meanwhile: it blocks its event loop",
             "make the handler a plain `def`, or await what it waits for",
             "modelcontextprotocol/python-sdk#1839"),
        Rule("failed-call", WARNING, "a call without arguments failed", "see its message",
             "spec: server/tools#error-handling"),
        Rule("bad-output", ERROR, "structuredContent does not fit the outputSchema",
             "correct one of them", "spec: server/tools#output-schema"),
        Rule("no-text", WARNING, "there is structuredContent, and no text for older clients",
             "add it as JSON in a text block", "spec: server/tools#structured-content"),
        Rule("long-result", WARNING, "the result is longer than an application takes",
             "give less, and pages", "measured with Claude Code 2.1.285", ("claude",)),
        Rule("origin", ERROR, "any web page may call it: a foreign Origin is let in",
             "answer 403 to an Origin that is not yours",
             "spec: basic/transports/streamable-http"),
        Rule("host", ERROR, "any web page may call it: a foreign Host is let in on loopback",
             "check Host, too: DNS can be rebound",
             "spec: basic/transports/streamable-http"),
        Rule("open-door", WARNING, "it is not on loopback, and wants no login",
             "ask for a token", "spec: basic/transports/streamable-http"),
        Rule("headers", ERROR, "headers that contradict the body are let in",
             "answer 400", "spec: basic/transports/streamable-http#server-validation"),
        Rule("no-metadata", ERROR, "a 401 does not lead to the resource metadata",
             "WWW-Authenticate: Bearer resource_metadata=...",
             "spec: basic/authorization/authorization-server-discovery"),
    )
}  # fmt: skip


class Finding(NamedTuple):
    """A rule that is broken somewhere."""

    rule: Rule
    #: as in "tool 'add'"
    place: str
    #: what it is there, in a few words
    detail: str
    #: who suffers here; everybody, if it is empty
    breaks: tuple[str, ...]

    def as_json(self) -> Msg:
        """Return the finding as one object."""
        rule = self.rule
        return {"rule": rule.name, "level": rule.level, "place": self.place, "text": rule.text,
                "detail": self.detail, "breaks": list(self.breaks), "remedy": rule.remedy,
                "source": link(rule.source)}  # fmt: skip


def finding(
    name: str, place: str, detail: object = "", breaks: Sequence[str] | None = None
) -> Finding:
    """Return that a rule is broken at a place.

    >>> finding("many-tools", "tools", 200).rule.level
    'warning'
    """
    rule = RULES[name]
    return Finding(rule, place, str(detail), rule.breaks if breaks is None else tuple(breaks))


def link(source: str) -> str:
    """Return the source of a rule as the address of a page, where it is one.

    >>> link("openai/codex#8694"), link("RFC 9110 §5.5")
    ('https://github.com/openai/codex/issues/8694', 'RFC 9110 §5.5')
    """
    page = source.partition("spec: ")[2]
    if page:
        return f"https://modelcontextprotocol.io/specification/{NEWEST.name}/{page}"
    found = re.fullmatch(r"([\w-]+/[\w.-]+)(?:#(\d+))?", source)
    if found is None:
        return source
    return f"https://github.com/{found[1]}" + (f"/issues/{found[2]}" if found[2] else "")


def schemas_in(schema: JSON) -> list[tuple[str, Msg]]:
    """Return all schemas in a schema, each with its place; itself first.

    >>> schemas_in({"properties": {"a": {"items": {"type": "string"}}}})[1:]
    [('a', {'items': {'type': 'string'}}), ('a[]', {'type': 'string'})]
    """
    todo = [("", schema)]
    for place, node in todo:  # which grows meanwhile
        if not isinstance(node, dict):
            continue
        for key in ("properties", "$defs", "definitions", "patternProperties"):
            for name, field in object_of(node, key).items():
                todo.append((f"{place}.{name}".lstrip("."), field))
        for key in ("items", "additionalProperties", "not", "if", "then", "else", "contains"):
            todo.append((place + "[]" * (key == "items"), node.get(key)))
        for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            options = node.get(key)
            todo += [(place, option) for option in options] if isinstance(options, list) else []
    return [(place, node) for place, node in todo if isinstance(node, dict)]


def findings_of(offer: Msg) -> list[Finding]:
    """Return what is wrong or unwise in what a server offers.

    `offer` has "tools", "resources", "resourceTemplates" and "prompts" as they were listed, and
    "instructions" and "serverInfo" as the server gave them; what is absent is not judged.

    >>> add = {"name": "add.2", "inputSchema": {"type": "object"}}
    >>> [found.rule.name for found in findings_of({"tools": [add]})]
    ['refused-name', 'no-description']
    """
    found = list(same_names(offer))
    server = str(object_of(offer, "serverInfo").get("name") or "")
    for tool in offer.get("tools", ()):
        place = f"tool {tool['name']!r}"
        found += judge_name(place, server, tool["name"])
        found += judge_words(place, tool, arguments_of(tool.get("inputSchema")))
        found += judge_input(place, tool.get("inputSchema"))
        found += judge_output(place, tool.get("outputSchema"))
        found += judge_annotations(place, tool.get("annotations"))
    for prompt in offer.get("prompts", ()):
        fields = prompt.get("arguments")
        named = {str(field.get("name")): field for field in fields if isinstance(field, dict)
                 } if isinstance(fields, list) else {}  # fmt: skip
        found += judge_words(f"prompt {prompt['name']!r}", prompt, named)
    for resource in offer.get("resources", ()):
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", resource["uri"]):
            found.append(finding("no-uri", f"resource {resource['uri']!r}"))
    found += judge_whole(offer)
    return [*found, *unseen(offer)]


def same_names(offer: Msg) -> Iterable[Finding]:
    """Find what is listed twice.

    >>> [found.place for found in same_names({"tools": [{"name": "a"}, {"name": "a"}]})]
    ["tool 'a'"]
    """
    kinds = {"tools": ("tool", "name"), "prompts": ("prompt", "name"),
             "resources": ("resource", "uri"), "resourceTemplates": ("template", "uriTemplate")}
    for key, (what, has) in kinds.items():
        seen: dict[str, int] = {}
        for item in offer.get(key, ()):
            seen[item[has]] = seen.get(item[has], 0) + 1
        for name, count in seen.items():
            if count > 1:
                yield finding("same-name", f"{what} {name!r}", f"{count} times")


def judge_name(place: str, server: str, name: str) -> Iterable[Finding]:
    """Judge the name of a tool.

    >>> [found.detail for found in judge_name("here", "", "a b")][0]
    'a b'
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", name):
        yield finding("tool-name", place, name)
    refused: dict[str, list[str]] = {}
    for profile, pattern in NAME_PATTERNS.items():
        if not re.fullmatch(pattern, name):
            refused.setdefault(pattern, []).append(profile)
    for pattern, who in refused.items():
        yield finding("refused-name", place, f"it is not {pattern}", who)
    length = len(server) + len(name)
    if length > MAX_CURSOR_NAME_CHARS:
        yield finding("long-name", place, f"{length} characters with {server!r}")


def arguments_of(schema: JSON) -> dict[str, Any]:
    """Return the arguments that an inputSchema names.

    >>> arguments_of({"properties": {"a": {}}}), arguments_of(None)
    ({'a': {}}, {})
    """
    return object_of(schema, "properties") if isinstance(schema, dict) else {}


def judge_words(place: str, item: Msg, arguments: Mapping[str, Any]) -> Iterable[Finding]:
    """Judge how a tool or a prompt, and its arguments, are described.

    >>> [found.rule.name for found in judge_words("here", {}, {"a": {}})]
    ['no-description', 'silent-arguments']
    """
    text = item.get("description")
    if not isinstance(text, str) or not text.strip():
        yield finding("no-description", place)
    elif len(text) > MAX_DESCRIPTION_CHARS and "inputSchema" in item:
        yield finding("long-description", place, f"{len(text):,} characters")
    silent = [name for name, field in arguments.items()
              if isinstance(field, dict) and not field.get("description")]  # fmt: skip
    if silent:
        yield finding("silent-arguments", place, ", ".join(silent))


def judge_input(place: str, schema: JSON) -> Iterable[Finding]:
    """Judge an inputSchema.

    >>> [found.rule.name for found in judge_input("here", {"type": "array"})]
    ['no-object', 'no-items']
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield finding("no-object", place)
    if not isinstance(schema, dict):
        return
    try:
        compile_schema(schema)
    except SchemaError as exc:
        yield finding("bad-schema", place, f"inputSchema: {exc}")
        return
    try:
        mirrors_of(schema)
    except SchemaError as exc:
        yield finding("bad-header", place, exc)
    on_top = [key for key in ("oneOf", "anyOf", "allOf") if key in schema]
    if on_top:
        yield finding("choice-on-top", place, ", ".join(on_top))
    odd: dict[str, None] = {}
    for where, node in schemas_in(schema):
        yield from judge_schema(f"{place}, {where}" if where else place, node)
        odd.update(dict.fromkeys(f"{where}: {word}".lstrip(": ") for word in odd_for_gemini(node)))
    if odd:
        yield finding("not-for-gemini", place, ", ".join(odd))
    for name, field in arguments_of(schema).items():
        typed = "type enum const anyOf oneOf allOf $ref not if".split()
        if not isinstance(field, dict) or not any(key in field for key in typed):
            yield finding("any-value", f"{place}, {name}")


def judge_schema(place: str, node: Msg) -> Iterable[Finding]:
    """Judge one of the schemas in a schema.

    >>> [found.detail for found in judge_schema("here", {"type": "integer", "default": "a"})]
    ["'a': expected integer, got string"]
    """
    kinds = node.get("type")
    if "array" in (kinds if isinstance(kinds, list) else [kinds]):
        if "items" not in node and "prefixItems" not in node:
            yield finding("no-items", place)
    required = node.get("required")
    if isinstance(required, list) and "patternProperties" not in node:
        unknown = [str(name) for name in required if name not in object_of(node, "properties")]
        if unknown and ("properties" in node or node.get("type") == "object"):
            yield finding("required-unknown", place, ", ".join(unknown))
    if "default" in node and "$ref" not in node:
        try:
            compile_schema(node).check(node["default"])
        except SchemaError as exc:
            yield finding("bad-default", place, f"{node['default']!r:.40}: {exc}")


def odd_for_gemini(node: Msg) -> list[str]:
    """Return what a schema has that a declaration of a function for Gemini cannot have.

    >>> odd_for_gemini({"type": ["string", "null"], "format": "uri"})
    ['a list of types', 'format uri']
    """
    odd = sorted(NOT_FOR_GEMINI & node.keys())
    if isinstance(node.get("type"), list):
        odd.append("a list of types")
    if isinstance(node.get("format"), str) and node["format"] not in GEMINI_FORMATS:
        odd.append(f"format {node['format']}")
    choices = node.get("enum")
    if isinstance(choices, list) and not all(isinstance(each, str) for each in choices):
        odd.append("an enum of other values than strings")
    return odd


def judge_output(place: str, schema: JSON) -> Iterable[Finding]:
    """Judge an outputSchema, or None.

    >>> [found.rule.name for found in judge_output("here", {"type": "array"})]
    ['output-not-object']
    """
    if schema is None:
        return
    try:
        compile_schema(schema)
    except SchemaError as exc:
        yield finding("bad-schema", place, f"outputSchema: {exc}")
        return
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield finding("output-not-object", place)


def judge_annotations(place: str, hints: JSON) -> Iterable[Finding]:
    """Judge the annotations of a tool, or None.

    >>> hints = {"readOnlyHint": True, "destructiveHint": True}
    >>> [found.detail for found in judge_annotations("here", hints)]
    ['readOnlyHint and destructiveHint']
    """
    hints = hints if isinstance(hints, dict) else {}
    for name, value in hints.items():
        if name.endswith("Hint") and not isinstance(value, bool):
            yield finding("contradiction", place, f"{name} is {value!r:.40}, not a boolean")
    if hints.get("readOnlyHint") is True and hints.get("destructiveHint") is True:
        yield finding("contradiction", place, "readOnlyHint and destructiveHint")


def judge_whole(offer: Msg) -> Iterable[Finding]:
    """Judge what is said once, and how much there is.

    >>> [found.breaks for found in judge_whole({"tools": [{}] * 41})]
    [('cursor',)]
    """
    count, text = len(offer.get("tools", ())), offer.get("instructions")
    few = [profile for profile, most in MOST_TOOLS.items() if count > most]
    if few:
        most = ", ".join(f"{who} {MOST_TOOLS[who]}" for who in few)
        yield finding("many-tools", f"{count} tools", f"at most: {most}", few)
    if isinstance(text, str) and len(text) > MAX_INSTRUCTIONS_CHARS:
        yield finding("long-instructions", "instructions", f"{len(text):,} characters")


def unseen(offer: Msg) -> Iterable[Finding]:
    """Find what older revisions leave out.

    >>> [found.place for found in unseen({"tools": [{"title": "A"}, {"title": "B"}]})]
    ['title of 2 tools']
    """
    kinds = {"tools": "Tool", "prompts": "Prompt", "resources": "Resource",
             "resourceTemplates": "Resource"}  # fmt: skip
    for key, kind in kinds.items():
        for field, since in FIELDS[kind].items():
            count = sum(field in item for item in offer.get(key, ()))
            if count:
                words = re.sub(r"([A-Z])", r" \1", key).lower()
                yield finding("unseen", f"{field} of {count} {words}", f"before {since}")

###############################################################################
# 60. Checks
###############################################################################
# Uses sections 1 to 4, 7, 19, 27, 29, 32, 34, 35, 42 to 44, 53, 56 and 59.
#
# Problem.  What is wrong with a server shows when somebody uses it: it prints where it must not,
#           goes round in circles, dies of a wrong word, stands still while it works. Whoever writes
#           it wants to know first, at a terminal, and in the CI of the project.
# Rules.    1. Nothing is called that may change something: only tools that say so themselves, and
#              only if that is asked for.
#           2. Nobody is asked anything: where a server asks, it hears no.
#           3. Status 0: no error was found (with --strict, no warning either). 1: some were.
# Plan.     NONSENSE, what is asked to see how a server refuses; Checkup; results of calls; the
#           report, and the verb.
# Not here. What is judged by the lists alone: section 59.

SLOW_START_SECONDS = 5.0  # half of what some applications wait for
PING_SECONDS = 0.1  # between two pings, while a tool is at work
REFUSAL_SECONDS = 10.0  # for an answer to what makes no sense
MAX_RESULT_CHARS = 50_000  # of text, that an application shows to its model
MAX_ALIKE = 12  # findings of one rule that are shown; the others are counted

#: What makes no sense: what it is, method, parameters, and the error codes that may answer it.
NONSENSE: tuple[tuple[str, str, Msg, tuple[int, ...]], ...] = (
    ("an unknown method", "check/nothing", {}, (METHOD_NOT_FOUND,)),
    ("an unknown tool", "tools/call", {"name": "check-nothing", "arguments": {}},
     (INVALID_PARAMS,)),
    ("a call without a name", "tools/call", {"arguments": {}}, (INVALID_PARAMS,)),
    ("an unknown cursor", "tools/list", {"cursor": "check-nothing"}, (INVALID_PARAMS,)),
    ("an unknown prompt", "prompts/get", {"name": "check-nothing"}, (INVALID_PARAMS,)),
    ("an unknown resource", "resources/read", {"uri": "check://nothing"},
     (INVALID_PARAMS, RESOURCE_NOT_FOUND)),
)  # fmt: skip
FOREIGN = "check.invalid"  # a name that nobody can have. RFC 6761 §6.4


def read_profiles(text: str) -> list[str]:
    """Return the applications that --for names; ValueError says which there are.

    >>> read_profiles("claude,gemini"), read_profiles("protocol")
    (['claude', 'gemini'], [])
    """
    known = dict.fromkeys((*PROFILES, "protocol"))
    names = [str(pick("application", name.strip(), {name: name for name in known}))
             for name in text.split(",")]  # fmt: skip
    return [name for name in names if name != "protocol"]


class Checkup:
    """A look at one server, through a Client that is not connected yet.

    With `call`, the tools that only read, and need no arguments, are called.
    """

    def __init__(self, client: Client, call: bool = False) -> None:
        self.c, self.call = client, call
        self.found: list[Finding] = []
        #: how many there were of what was looked at
        self.seen: dict[str, int] = {}

    def find(self, name: str, place: str, detail: object = "") -> None:
        """Note that a rule is broken."""
        self.found.append(finding(name, place, detail))

    async def run(self) -> None:
        """Connect, look at everything, and disconnect; AuthError without a login."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            await self.c.connect()
            seconds = clock() - began
            if seconds > SLOW_START_SECONDS:
                self.find("slow-start", "the server", f"{seconds:.1f} s")
            if self.c.started_again:
                self.find("ends-early", "the server", self.c.started_again)
            await self.look()
        except AuthError:
            await self.knock_unknown(self.c.transport)
            raise
        finally:
            await self.c.close()
        garbage = getattr(self.c.transport, "garbage", "")
        if garbage:
            self.find("stdout", "the server", repr(garbage))

    async def look(self) -> None:
        """Look at a server that is connected, for as long as it lives."""
        place = "the lists"
        try:
            offer = await self.read_offer()
            self.found += findings_of(offer)
            for tool in filter(is_harmless, offer["tools"] if self.call else ()):
                place = f"tool {tool['name']!r}"
                await self.try_tool(place, tool)
            for row in NONSENSE:
                place = row[0]
                await self.refuse(*row)
            place = "over HTTP"
            if isinstance(self.c.transport, HTTPTransport):
                await self.knock(self.c.transport)
                await self.knock_unknown(self.c.transport)
        except ConnectionClosed as exc:
            self.find("death", place, exc)
        except MCPError as exc:
            self.find("silence", place, exc)

    # The lists.

    async def read_offer(self) -> Msg:
        """Return all that the server offers, as findings_of() judges it."""
        offer: Msg = {"tools": [], "serverInfo": self.c.server_info,
                      "instructions": self.c.instructions}  # fmt: skip
        rev = self.c.peer.session.rev
        for row in METHODS.values():
            lists = row.lists.registry and rev.name in row.revisions
            if lists and declares(self.c.server_capabilities, row.capability):
                offer[row.lists.key] = items = await self.read_list(row)
                self.seen[row.lists.registry] = len(items)
        return offer

    async def read_list(self, row: Method) -> list[Msg]:
        """Return all pages of a list, and look at them as pages."""
        key, place, items = row.lists.key, row.name, []
        seen: set[str] = set()
        params: Msg | None = None
        try:
            while True:
                answer = await self.c.request(row.name, params)
                items += answer[key]
                self.judge_hints(place, answer)
                if params is None:
                    await self.read_again(row, answer)
                cursor = answer.get("nextCursor")
                if cursor is None:
                    return items
                if not isinstance(cursor, str) or cursor in seen or len(seen) >= MAX_PAGES:
                    self.find("endless", place, f"after {len(seen) + 1} pages: {cursor!r:.60}")
                    return items
                seen.add(cursor)
                params = {"cursor": cursor}
        except (RemoteError, ProtocolError) as exc:
            self.find("no-list", place, exc)
            return items

    async def read_again(self, row: Method, first: Msg) -> None:
        """Read the first page again, and compare the order."""
        again = await self.c.request(row.name)
        ours, theirs = ([item[row.lists.each_has] for item in answer[row.lists.key]]
                        for answer in (first, again))  # fmt: skip
        if ours != theirs and sorted(ours) == sorted(theirs):
            self.find("order", row.name)

    def judge_hints(self, place: str, answer: Msg) -> None:
        """Judge how long, and by whom, an answer may be kept."""
        try:
            check_hints(answer)
        except ValueError as exc:
            self.find("bad-hint", place, exc)

    # What the server does.

    async def refuse(self, what: str, method: str, params: Msg, codes: tuple[int, ...]) -> None:
        """Ask for what makes no sense."""
        row = METHODS.get(method)
        if row is not None and not declares(self.c.server_capabilities, row.capability):
            return
        due = f"where {' or '.join(map(str, codes))} is due"
        try:
            await self.c.send_request(method, params, timeout=REFUSAL_SECONDS)
        except RemoteError as exc:
            if exc.code not in codes:
                self.find("wrong-code", what, f"{exc.code}, {due}")
        except RequestTimeout as exc:
            self.find("silence", what, exc)
        else:
            self.find("wrong-code", what, f"a result, {due}")
        try:
            await self.c.ping()
        except RequestTimeout as exc:
            raise ConnectionClosed(f"a ping after it was not answered: {exc}") from exc

    async def try_tool(self, place: str, tool: Msg) -> None:
        """Call a tool, and see whether the server answers others meanwhile."""
        clock = asyncio.get_running_loop().time
        params = {"name": tool["name"], "arguments": {}}
        call = asyncio.ensure_future(self.c.request("tools/call", params))
        slowest = 0.0
        try:
            while not call.done():
                began = clock()
                await self.c.ping()
                slowest = max(slowest, clock() - began)
                await asyncio.wait({call}, timeout=PING_SECONDS)
            self.found += result_findings(place, tool, await call)
            self.seen["calls"] = self.seen.get("calls", 0) + 1
        except (RemoteError, RequestTimeout, ProtocolError) as exc:
            self.find("failed-call", place, exc)
        finally:
            call.cancel()
            await asyncio.wait({call})
        if slowest > BLOCKED_SECONDS:
            self.find("blocks", place, f"for {slowest:.1f} s")

    # Over HTTP.

    def sample_request(self) -> Msg:
        """Return a request that every server of this revision answers."""
        if not self.c.peer.session.rev.modern:
            return request(1, "ping")
        meta = {PROTOCOL_VERSION: self.c.revision, CLIENT_INFO: self.c.info,
                CLIENT_CAPABILITIES: {}}  # fmt: skip
        return request(1, "server/discover", {"_meta": meta})

    async def knock(self, transport: HTTPTransport) -> None:
        """Send requests that are to be refused, as the client that we are."""
        msg, rev = self.sample_request(), self.c.peer.session.rev
        accept = f"{JSON_TYPE}, {EVENT_TYPE}"
        headers = await transport.fields(content_type=JSON_TYPE, accept=accept)
        if rev.modern:
            headers.update(mirror_headers(msg, {}))
        odd = [("origin", {"origin": f"https://{FOREIGN}"})]
        if is_loopback(transport.url.host):
            odd.append(("host", {"host": FOREIGN}))
        if rev.modern:
            odd.append(("headers", {"mcp-method": "tools/list"}))
        for rule, fields in odd:
            answer = await transport.auth.send(
                transport, "POST", transport.url.target, {**headers, **fields}, encode(msg),
                REFUSAL_SECONDS,
            )  # fmt: skip
            answer.close()
            if answer.head.status < 400:
                self.find(rule, str(transport.url), f"status {answer.head.status}")

    async def knock_unknown(self, transport: HTTPTransport) -> None:
        """Send a request as somebody whom the server does not know."""
        url, http = transport.url, HTTPClient(transport.url, ssl=transport.ssl)
        fields = {"content-type": JSON_TYPE, "accept": f"{JSON_TYPE}, {EVENT_TYPE}"}
        msg = self.sample_request()
        if self.c.peer.session.rev.modern:
            fields.update({VERSION_HEADER: self.c.revision, **mirror_headers(msg, {})})
        try:
            answer = await http.send("POST", url.target, fields, encode(msg), REFUSAL_SECONDS)
            status, headers = answer.head.status, answer.head.headers
            answer.close()
            challenge = our_challenge(headers.get("www-authenticate", ""))
            if status == 401 and "resource_metadata" not in challenge.params:
                if not await self.metadata_stands(http, url):
                    self.find("no-metadata", str(url), "neither named nor at the usual place")
            elif status < 400 and not is_loopback(url.host):
                self.find("open-door", str(url))
        finally:
            await http.close()

    async def metadata_stands(self, http: HTTPClient, url: URL) -> bool:
        """Return whether the resource metadata stands where it is looked for."""
        for each in resource_metadata_urls(url):
            fields = {"accept": JSON_TYPE}
            answer = await http.send("GET", parse_url(each).target, fields, b"", REFUSAL_SECONDS)
            answer.close()
            if answer.head.status == 200:
                return True
        return False


def is_harmless(tool: Msg) -> bool:
    """Return whether a tool says that it changes nothing, and needs no arguments.

    >>> is_harmless({"annotations": {"readOnlyHint": True}, "inputSchema": {"required": ["a"]}})
    False
    """
    schema = object_of(tool, "inputSchema")
    return object_of(tool, "annotations").get("readOnlyHint") is True and not schema.get("required")


def result_findings(place: str, tool: Msg, result: Msg) -> list[Finding]:
    """Return what is wrong with the result of a call.

    >>> schema = {"outputSchema": {"required": ["n"]}}
    >>> result = {"content": [{"type": "text", "text": "{}"}], "structuredContent": {}}
    >>> [each.detail for each in result_findings("here", schema, result)]
    ['n: is required']
    """
    blocks = result.get("content")
    texts = [str(block["text"]) for block in (blocks if isinstance(blocks, list) else ())
             if isinstance(block, dict) and "text" in block]  # fmt: skip
    if result.get("isError"):
        return [finding("failed-call", place, f"{' '.join(texts)!r:.200}")]
    found, schema = [], tool.get("outputSchema")
    if sum(map(len, texts)) > MAX_RESULT_CHARS:
        found.append(finding("long-result", place, f"{sum(map(len, texts)):,} characters"))
    if "structuredContent" in result and not texts:
        found.append(finding("no-text", place))
    if isinstance(schema, dict):
        try:
            if "structuredContent" not in result:
                raise SchemaError("", "there is no structuredContent")
            checker_of(schema)(result["structuredContent"])
        except SchemaError as exc:
            found.append(finding("bad-output", place, exc))
    return found


def report_text(found: Sequence[Finding], seen: Mapping[str, int], screen: Screen) -> str:
    """Return findings for a person: each rule once, with its places; then how much was seen.

    >>> report_text([], {"tools": 3}, Screen(None))
    '0 errors, 0 warnings, 0 notes; looked at tools: 3'
    """
    lines: list[str] = []
    levels = {ERROR: screen.RED, WARNING: screen.BOLD, NOTE: screen.DIM}
    for rule in sorted(RULES.values(), key=lambda rule: [*levels].index(rule.level)):
        places = [each for each in found if each.rule is rule]
        if not places:
            continue
        who = sorted({name for each in places for name in each.breaks})
        head = f"{rule.level}: {rule.text}" + f" ({', '.join(who)})" * bool(who)
        first, *more = screen.wrap(head, 0, 2)
        lines += [screen.paint(levels[rule.level], rule.level) + first[len(rule.level) :], *more]
        for each in places[:MAX_ALIKE]:
            text = f"{each.place}: {each.detail}" if each.detail else each.place
            lines += screen.wrap(one_line(text), 4, 6)
        if len(places) > MAX_ALIKE:
            lines.append(f"    ... and {len(places) - MAX_ALIKE} more")
        lines += [*screen.wrap(f"-> {rule.remedy}", 2, 5), f"     {link(rule.source)}", ""]
    counts = [sum(each.rule.level == level for each in found) for level in levels]
    words = [f"{count} {level}{'s' * (count != 1)}" for count, level in zip(counts, levels)]
    looked = ", ".join(f"{what}: {count}" for what, count in seen.items())
    return "\n".join([*lines, f"{', '.join(words)}; looked at {looked or 'nothing'}"])


class CheckLine(CommandLine):
    """The verb `check`: a command line that asks nobody, and reports what was found."""

    def __init__(self, args: Any) -> None:
        super().__init__(args)
        self.person.there = False

    async def work(self) -> int:
        """Look at the server, show what was found, and return the exit status."""
        checkup = Checkup(self.c, self.args.call)
        try:
            await checkup.run()
        except (TypeError, ValueError) as exc:
            raise UsageError(str(exc)) from exc
        except AuthError:
            self.report(checkup)
            raise
        return self.report(checkup)

    def report(self, checkup: Checkup) -> int:
        """Show what was found for the applications that matter; return the exit status."""
        apps = vars(self.args)["for"]
        profiles = {*PROFILES} if apps is None else {*apps}
        found = [each for each in checkup.found if not each.breaks or profiles & {*each.breaks}]
        if not self.args.json:
            self.show(report_text(found, checkup.seen, self.out))
        for each in found if self.args.json else ():
            self.show(json.dumps(each.as_json()))
        bad = {ERROR, WARNING} if self.args.strict else {ERROR}
        return int(any(each.rule.level in bad for each in found))


VERBS["check"] = Verb(
    CheckLine.work, "", "Tell what is wrong with a server, or unwise, and for whom.",
    f"check {FILE}\ncheck --call --strict --for claude,vscode {REMOTE}", talks=CheckLine,
)  # fmt: skip
OPTIONS += [
    Option("--for", "APP,...", "check",
           f"whose limits matter, of {', '.join(PROFILES)}; `protocol` for nobody's",
           read_profiles),
    Option("--call", "", "check", "call the tools that only read and need no arguments"),
    Option("--strict", "", "check", "end with status 1 for a warning, too"),
]

###############################################################################
# 61. A proxy
###############################################################################
# Uses sections 1, 51, 53 and 56.
#
# Problem.  An application starts servers as commands, and the server is at a URL and wants a login.
#           Or a server is a command, and is wanted at a URL.
# Rules.    1. Whoever comes in and whoever is talked to have secrets of their own: with --http,
#              --token is asked for here, and --auth is for the target.
# Plan.     The verb.
# Not here. How it is done: section 51.


def proxy(args: Any) -> None:
    """Be a server that passes on what it is asked to another server."""
    far = args
    if args.http is not None:
        far = types.SimpleNamespace(**{**vars(args), "token": None})
    elif args.shared:
        raise UsageError("--shared is for --http: one client is alone", "proxy", "--help")
    options = target_options(far)
    try:
        app = ProxyServer(args.target, shared=args.shared, revision=args.revision, **options)
    except (TypeError, ValueError) as exc:
        raise UsageError(str(exc)) from exc
    serve_as_asked(app, args)


VERBS["proxy"] = Verb(
    proxy, "", "Be a server on standard input and output, or at a URL, that is the target.",
    f"proxy {REMOTE}\nproxy {REMOTE} --header 'X-Key: ${{KEY}}'\n"
    "proxy --http 8000 -- npx -y some-server", talks=None,
)  # fmt: skip
OPTIONS += [
    Option("--shared", "", "proxy", "with --http: one connection to the target for all clients"),
]

###############################################################################
# 62. Main
###############################################################################
# Uses sections 1, 2, 9, 16, 53, 54, 56 and 58.
#
# Problem.  A command line ends in many ways: done, wrong, failed, interrupted, nobody reads it.
#           A shell and a script want to know which, and no process may stay behind.
# Rules.    1. Status 0: done. 1: the tool failed. 2: the command line is wrong, and the message
#              says what would be right. 3: connection or protocol. 130: interrupted.
# Plan.     interruptible(); main().
# Not here. What the verbs do: section 56.

#: Signals that end the command line; Windows has not all of them.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP")
               if hasattr(signal, name))  # fmt: skip


async def interruptible(work: Awaitable[int]) -> int:
    """Return the status that `work` ends with; a signal cancels it, and a second one kills us.

    Cancelled, the client ends the server that it started. Left to itself, a server that ignores
    the end of its input would live on.
    """
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    caught: list[int] = []

    def on_signal(number: int, frame: Any) -> None:
        caught.append(number)
        # a handler of Python's own, not the loop's: it is there before 3.11, and on Windows
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT
                      else signal.SIG_DFL)  # fmt: skip
        loop.call_soon_threadsafe(task.cancel)

    with contextlib.suppress(ValueError):  # not in the main thread: there are no signals
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks
                signal.signal(number, on_signal)
    try:
        return await task
    except asyncio.CancelledError:
        return 128 + caught[0] if caught else 130  # the shells' convention


def tell(exc: MCPError, args: Any, as_json: bool) -> int:
    """Write what went wrong, in one line, and what to type next; return the exit status."""
    status = 2 if isinstance(exc, UsageError) else 3
    message, step = one_line(exc), one_line(advice(exc, args))
    if as_json:
        kind = type(exc).__name__
        code = exc.code if isinstance(exc, (RemoteError, ProtocolError, RPCError)) else None
        problem = {"kind": kind, "code": code, "message": message, "status": status, "next": step}
        text = json.dumps({"error": without_none(**problem)})
    else:
        screen = Screen(sys.stderr)
        message += "." * (bool(step) and message[-1:] not in ".?!")
        text = f"{screen.paint(screen.RED, 'error')}: {message}{' Try: ' * bool(step)}{step}"
    with contextlib.suppress(OSError, AttributeError):  # stderr is closed, or its disk is full
        sys.stderr.write(text + "\n")
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    former, handlers = _trace, [(number, signal.getsignal(number)) for number in ENDING]
    words, args = spell_out(sys.argv[1:] if argv is None else argv), None
    try:
        args = parse_command_line(words)
        if args.trace:
            start_trace("1")
        verb = VERBS[args.verb]
        if verb.talks is not None:
            return asyncio.run(interruptible(verb.talks(args).run()))
        verb.method(args)
        return 0
    except SystemExit as exc:  # the help has been shown
        return exc.code if isinstance(exc.code, int) else 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has had enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MCPError as exc:
        return tell(exc, args, "--json" in words)
    finally:
        set_trace(former)
        with contextlib.suppress(ValueError, TypeError):  # another thread; not one of Python's own
            for number, handler in handlers:
                signal.signal(number, handler)


def exit_as_main() -> None:
    """Run the command line of this process, and end it."""
    # A file that we serve imports this module, not another copy of it.
    sys.modules["mcp_lite"] = sys.modules[__name__]
    sys.exit(main())


if __name__ == "__main__":
    exit_as_main()
