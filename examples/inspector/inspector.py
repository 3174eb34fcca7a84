#!/usr/bin/env python3
"""See an MCP server at work, in a browser: python3 inspector.py [OPTION...] TARGET...

A TARGET is FILE.py, FILE.py:APP, a URL or, at the very end, `-- COMMAND ARGUMENT...`. With
`--config FILE` the servers of an application's mcp.json are targets, too. The page lists what they
offer, makes forms of their schemas, answers what they ask, and shows each message on the wire.

It serves one page on 127.0.0.1. The address that it prints has a random token behind the `#`; who
does not have that gets nothing, and a page from elsewhere gets nothing either. The page can choose
among the targets of the command line, and add URLs. It can never start a command of its own.
"""

import argparse
import asyncio
import contextlib
import contextvars
import itertools
import json
import os
import pathlib
import re
import secrets
import signal
import sys
import time
import webbrowser
from collections import deque

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE, HERE.parents[1]):  # copied beside it, or in its repository
    if (folder / "mcp_lite.py").exists():
        sys.path.insert(0, str(folder))
import mcp_lite as m  # noqa: E402 -- it was not on the path before

MAX_FRAMES = 100_000  # messages that are kept; about 100 MB if they are small
MAX_FRAME_BYTES = 256 * 1024 * 1024  # ... in all, as JSON
POLL_FRAMES = 2000  # messages that the page gets at once
POLL_BYTES = 1024 * 1024  # ... in all; one more may follow
POLL_SECONDS = 20.0  # for which it waits for news
GATHER_SECONDS = 0.03  # for which further news are gathered, so that a flood comes in few answers
SHOWN_BYTES = 4000  # of one message in a list; the whole is fetched when it is looked at
SHOWN_MEMBERS = 200  # of one list or object in it
WHOLE_BYTES = 4 * 1024 * 1024  # of one message or result that is looked at
MAX_CALLS = 4  # that wait at once: a browser makes six requests at a time, and needs two itself
LIST_ROWS = 200  # of a list; a search finds the others
CALL_SECONDS = 3600.0  # for a call: the user decides when to give up
COMPARE_SECONDS = 30.0  # for a call that is made in both eras
COMPARE_FRAMES = 500  # of each of them
TASKS = "io.modelcontextprotocol/tasks"  # the extension; the client follows tasks by itself

LANE = contextvars.ContextVar("LANE", default=0)  # the HTTP request whose answer is being read
#: Pages of the specification about a method, by its first word.
PAGES = {
    "initialize": "basic/lifecycle", "notifications/initialized": "basic/lifecycle",
    "ping": "basic/utilities/ping", "server/discover": "server/discover",
    "tools": "server/tools", "resources": "server/resources", "prompts": "server/prompts",
    "completion": "server/utilities/completion", "logging": "server/utilities/logging",
    "sampling": "client/sampling", "elicitation": "client/elicitation", "roots": "client/roots",
    "subscriptions": "basic/patterns/subscriptions", "tasks": "basic/versioning",
    "notifications/progress": "basic/patterns/progress",
    "notifications/cancelled": "basic/patterns/cancellation",
    "notifications/message": "server/utilities/logging",
    "notifications/tools": "server/tools", "notifications/prompts": "server/prompts",
    "notifications/resources": "server/resources", "notifications/roots": "client/roots",
    "notifications/elicitation": "client/elicitation",
    "notifications/subscriptions": "basic/patterns/subscriptions",
    "notifications/tasks": "basic/versioning",
}  # fmt: skip


# -- Frames: everything that happens, in order ---------------------------------------------------


class Recorder:
    """The frames of all connections, numbered; and a file to which they go as well."""

    def __init__(self, file=None):
        self.frames = deque()  # pairs: a frame, and its bytes as JSON
        self.size = 0
        self.last = 0
        self.began = time.monotonic()
        self.file = file
        self.news = asyncio.Event()

    def add(self, conn, what, /, **fields):
        """Note that something happened on a connection."""
        when = round((time.monotonic() - self.began) * 1000, 2)
        frame = self.keep({"t": when, "c": conn, "k": what, **fields})
        if self.file is not None:
            self.file.write(json.dumps(without_secrets(frame)) + "\n")
            self.file.flush()
        self.news.set()

    def keep(self, frame):
        """Number a frame and keep it; the oldest go when there are too many."""
        self.last += 1
        frame = {"n": self.last, **{key: value for key, value in frame.items() if key != "n"}}
        size = len(json.dumps(frame))
        self.frames.append((frame, size))
        self.size += size
        while len(self.frames) > MAX_FRAMES or self.size > max(MAX_FRAME_BYTES, size):
            self.size -= self.frames.popleft()[1]
        return frame

    def load(self, lines):
        """Keep the frames of a recording."""
        for line in filter(str.strip, lines):
            frame = json.loads(line)
            if not isinstance(frame, dict):
                raise ValueError("a line of the recording is not a JSON object")
            self.keep(frame)

    def after(self, number):
        """Return the next frames after a number, shortened; and how many are gone already."""
        if not self.frames:
            return [], 0
        first = self.frames[0][0]["n"]
        begin = max(number, first - 1)
        found, left = [], POLL_BYTES
        for frame, size in itertools.islice(self.frames, begin + 1 - first, None):
            found.append(frame if size <= SHOWN_BYTES else {**shortened(frame), "size": size})
            left -= min(size, SHOWN_BYTES)
            if left <= 0 or len(found) == POLL_FRAMES:
                break
        return found, begin - number

    def whole(self, number):
        """Return one frame as it is, but for what would be too long to be looked at; or None."""
        first = self.frames[0][0]["n"] if self.frames else 1
        if not first <= number <= self.last:
            return None
        frame, size = self.frames[number - first]
        return frame if size <= WHOLE_BYTES else shortened(frame, WHOLE_BYTES // 40)

    async def wait(self, number):
        """Wait for a frame after a number, but not forever."""
        if self.last <= number:
            self.news.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.news.wait(), POLL_SECONDS)
        if self.last <= number + POLL_FRAMES:
            await asyncio.sleep(GATHER_SECONDS)


def recording_of(frames):
    """Return frames as lines of JSON, without secrets."""
    return "".join(json.dumps(without_secrets(frame)) + "\n" for frame, _ in frames)


def shortened(value, chars=SHOWN_BYTES):
    """Return JSON that is cut to about so many characters; it says how much is missing."""
    left = chars

    def cut(value):
        nonlocal left
        if isinstance(value, str):
            kept, more = value[: max(left, 40)], len(value) - max(left, 40)
            left -= len(kept)
            return kept if more <= 0 else f"{kept}... ({more:,} more characters)"
        if isinstance(value, list):
            out = []
            for item in itertools.islice(value, SHOWN_MEMBERS):
                if left <= 0:
                    break
                out.append(cut(item))
            more = len(value) - len(out)
            return out + [f"... {more:,} more"] * (more > 0)
        if isinstance(value, dict):
            out = {}
            for name, member in itertools.islice(value.items(), SHOWN_MEMBERS):
                if left <= 0:
                    break
                left -= len(name)
                out[name[:100]] = cut(member)
            return out
        left -= 8
        return value

    return cut(value)


def presentable(value):
    """Return a result as a page can bear it."""
    return value if len(json.dumps(value)) <= WHOLE_BYTES else shortened(value, WHOLE_BYTES // 40)


def without_secrets(value, key=""):
    """Return JSON whose secrets are redacted: passwords, tokens, keys, by the names they have."""
    if isinstance(value, dict):
        return {name: without_secrets(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return [without_secrets(item, key) for item in value]
    if isinstance(value, str):
        if re.search(m.SECRET_KEY, key):
            return m.REDACTED
        return re.sub(m.SECRET_TEXT, rf"\g<1>{m.REDACTED}", value)
    return value


# -- Transports that are watched -----------------------------------------------------------------


class Watched:
    """What the two transports below have in common: each message is noted."""

    note = staticmethod(lambda what, /, **fields: None)

    async def read(self):
        """Return the next messages, and note them."""
        items = await super().read()
        for item in items:
            self.note("msg", d="<", m=readable(item))
        return items

    async def write(self, msg):
        """Note a message, and send it."""
        self.note("msg", d=">", m=msg)
        await super().write(msg)


def readable(item):
    """Return a message as JSON; what is none as {"unreadable": ...}."""
    try:
        return m.decode(item) if isinstance(item, bytes) else json.loads(json.dumps(item))
    except (m.ProtocolError, TypeError, ValueError) as exc:
        text = item[:1000].decode("utf-8", "replace") if isinstance(item, bytes) else str(item)
        return {"unreadable": text, "why": str(exc)}


def with_prefix(headers, *prefixes):
    """Return the headers whose names begin so."""
    return {name: value for name, value in headers.items() if name.startswith(prefixes)}


class WatchedStdio(Watched, m.StdioTransport):
    """A child process; its log is noted, too."""


class WatchedHTTP(Watched, m.HTTPTransport):
    """A URL; its HTTP requests are noted, too, and with each message the request that it is on."""

    def __init__(self, url, **options):
        super().__init__(url, **options)
        self.numbers = itertools.count(1)
        send = self.http.send

        async def noted(method, target, headers, body=b"", *args, **options):
            number = next(self.numbers)
            LANE.set(number)
            shown = with_prefix(headers, "mcp-", "last-event", "accept", "content-type")
            self.note("http", d=">", i=number, verb=method, target=target, h=shown)
            if body:
                self.note("msg", d=">", i=number, m=readable(body))
            try:
                answer = await send(method, target, headers, body, *args, **options)
            except Exception as exc:
                self.note("http", d="<", i=number, status=0, why=str(exc))
                raise
            head = answer.head
            shown = with_prefix(head.headers, "mcp-", "content-type", "www-auth", "retry-after")
            self.note("http", d="<", i=number, status=head.status, why=head.reason, h=shown)
            self.watch_body(answer, number)
            return answer

        put = self.inbox.put

        async def delivered(item):
            self.note("msg", d="<", i=LANE.get(), m=readable(item))
            return await put(item)

        self.http.send, self.inbox.put = noted, delivered

    async def write(self, msg):
        """Send a message; it is noted with its HTTP request."""
        await m.HTTPTransport.write(self, msg)

    async def read(self):
        """Return the next messages; they were noted as they came."""
        return await m.HTTPTransport.read(self)

    def watch_body(self, answer, number):
        """Note the ids of events, and the end of a stream; and know what comes on it."""
        stream = answer.head.headers.get("content-type", "").startswith("text/event-stream")
        piece = answer.next_piece

        async def noted():
            data = await piece()
            LANE.set(number)
            for found in re.findall(rb"(?m)^(id|retry): ?(.*?)\r?$", data if stream else b""):
                self.note("sse", d="<", i=number, field=found[0].decode(),
                          value=found[1].decode("utf-8", "replace"))  # fmt: skip
            if stream and not data:
                self.note("sse", d="<", i=number, field="end", value="")
            return data

        answer.next_piece = noted


# -- Connections ---------------------------------------------------------------------------------


class Target:
    """Something that the command line named."""

    def __init__(self, name, what, **options):
        self.name, self.what, self.options = name, what, options

    @property
    def is_url(self):
        return isinstance(self.what, str) and bool(re.match(r"https?://", self.what))

    def transport(self):
        """Return a new transport to it."""
        make = WatchedHTTP if self.is_url else WatchedStdio
        return make(self.what, **self.options)


class Connection:
    """One conversation with a server, and what the user is asked in it."""

    numbers = itertools.count(1)

    def __init__(self, inspector, target, revision):
        self.inspector, self.target, self.revision = inspector, target, revision
        self.id = next(self.numbers)
        self.lists, self.calls, self.subscriptions = {}, {}, {}
        self.client, self.problem = None, ""

    def note(self, what, /, **fields):
        """Note what happens here."""
        self.inspector.recorder.add(self.id, what, **fields)

    async def open(self):
        """Connect, and tell the page how it went."""
        transport = self.target.transport()
        transport.note = self.note
        if hasattr(transport, "stderr"):
            transport.stderr = lambda line: self.note("log", text=line)
        self.client = m.Client(
            transport, revision=self.revision or None, timeout=CALL_SECONDS,
            max_timeout=CALL_SECONDS, name="mcp_lite inspector",
            elicit=lambda message, schema: self.ask("elicit", message=message, schema=schema),
            elicit_url=lambda message, url: self.ask("url", message=message, url=url),
            sample=self.sample, capabilities={"extensions": {TASKS: {}}},
            roots=[os.getcwd()], log=lambda level, data, logger: None,
            on_tools_changed=lambda: self.forget("tools"),
            on_resources_changed=lambda: self.forget("resources", "templates"),
            on_prompts_changed=lambda: self.forget("prompts"),
        )  # fmt: skip
        self.note("state", state="connecting", name=self.target.name)
        try:
            await asyncio.wait_for(self.client.connect(), 60)
        except Exception as exc:
            self.problem = str(exc) or type(exc).__name__
            self.note("state", state="failed", why=self.problem)
            return
        self.note("state", state="open", name=self.target.name)

    def forget(self, *kinds):
        """Fetch lists anew when they are looked at next, since they have changed."""
        for kind in kinds:
            self.lists.pop(kind, None)

    async def sample(self, params):
        """Answer as the model whatever the user types."""
        answer = await self.ask("sample", params=params)
        if answer is None:
            # spec: client/sampling#error-handling
            raise m.RPCError(-1, "User rejected sampling request")
        return answer

    async def ask(self, kind, **fields):
        """Put a question of the server to the user, and return the answer."""
        number, waiter = next(self.inspector.numbers), asyncio.get_running_loop().create_future()
        self.inspector.questions[number] = waiter
        self.note("ask", q=number, kind=kind, **fields)
        try:
            return await waiter
        finally:
            del self.inspector.questions[number]
            self.note("asked", q=number)

    def about(self):
        """Return what the page shows of the connection."""
        client = self.client
        known = client is not None and not self.problem and client.server_info
        rev = client.revision if known else ""
        return {
            "id": self.id, "name": self.target.name, "problem": self.problem, "revision": rev,
            "era": ("modern" if rev == m.NEWEST else "legacy") if rev else "",
            "server": client.server_info if known else {},
            "capabilities": client.server_capabilities if known else {},
            "instructions": client.instructions if known else None,
            "lost": bool(client and client.peer.lost),
        }  # fmt: skip

    async def close(self):
        """End the conversation."""
        if self.client is not None:
            await self.client.close()
        self.note("state", state="closed", name=self.target.name)

    async def rows(self, kind, query, again):
        """Return the first rows of a list that have all words of a query; and how many have."""
        if again or kind not in self.lists:
            self.lists[kind] = await getattr(self.client, f"list_{kind}")()
        words, about = query.lower().split(), ("name", "title", "uri", "uriTemplate", "description")
        found = []
        for item in self.lists[kind]:
            text = " ".join(str(item.get(key, "")) for key in about).lower()
            if all(word in text for word in words):
                found.append(item)
        return {"rows": presentable(found[:LIST_ROWS]), "count": len(found),
                "total": len(self.lists[kind])}  # fmt: skip

    async def call(self, number, method, params, timeout=None):
        """Send a request; return {"result"} or {"error"}, and how long it took."""
        if len(self.calls) >= MAX_CALLS:
            raise ValueError(f"{MAX_CALLS} calls are under way: wait for one, or cancel it")
        began = time.monotonic()

        def progress(*report):
            self.note("progress", call=number, report=report)

        request = self.client.request(method, params, timeout=timeout, progress=progress)
        task = asyncio.ensure_future(request)
        self.calls[number] = task
        try:
            outcome = {"result": presentable(await task)}
        except asyncio.CancelledError:
            outcome = {"error": {"message": "you cancelled it"}}
        except (m.MCPError, TypeError, ValueError) as exc:
            code = getattr(exc, "code", None)
            outcome = {"error": {"code": code, "message": str(exc), "kind": type(exc).__name__}}
        finally:
            self.calls.pop(number, None)
        return {**outcome, "ms": round((time.monotonic() - began) * 1000, 1)}


class Inspector:
    """The state behind the page."""

    def __init__(self, targets, recorder):
        self.targets, self.recorder = targets, recorder
        self.connections, self.questions = {}, {}
        self.numbers = itertools.count(1)
        self.tasks = set()
        self.guide = guide()

    async def do(self, wish):
        """Do what the page wants; the answer is JSON."""
        action = getattr(self, f"do_{wish.get('do')}", None)
        if action is None:
            raise ValueError(f"nothing can do {wish.get('do')!r}")
        return await action(wish)

    def conn(self, wish):
        """Return the connection that is meant."""
        found = self.connections.get(wish.get("conn"))
        if found is None or found.client is None:
            raise ValueError("this connection is closed")
        return found

    async def do_hello(self, wish):
        """Return what a page must know that has just been opened."""
        return {
            "targets": [{"name": each.name, "url": each.is_url} for each in self.targets],
            "connections": [each.about() for each in self.connections.values()],
            "revisions": list(m.REVISIONS), "legacy": list(m.LEGACY), "guide": self.guide,
            "last": self.recorder.last, "version": m.__version__,
        }  # fmt: skip

    async def do_poll(self, wish):
        """Return the next frames; wait for one if there is none."""
        after = int(wish.get("after", 0))
        await self.recorder.wait(after)
        frames, skipped = self.recorder.after(after)
        return {"frames": frames, "skipped": skipped, "last": self.recorder.last}

    async def do_whole(self, wish):
        """Return one frame without anything left out."""
        return self.recorder.whole(int(wish["n"]))

    async def do_connect(self, wish):
        """Connect to a target of the command line, or to a URL."""
        if "url" in wish:
            if not re.match(r"https?://", str(wish["url"])):
                raise ValueError("a page may only name an http or https URL")
            target = Target(wish["url"], wish["url"])
        else:
            target = self.targets[int(wish["target"])]
        revision = wish.get("revision") or ""
        if revision and revision not in m.REVISIONS:
            raise ValueError(f"there is no revision {revision!r}")
        conn = Connection(self, target, revision)
        self.connections[conn.id] = conn
        await conn.open()
        return conn.about()

    async def do_close(self, wish):
        """End a connection."""
        conn = self.connections.pop(wish["conn"], None)
        if conn is not None:
            await conn.close()
        return {}

    async def do_about(self, wish):
        """Return what is known of a connection."""
        return self.conn(wish).about()

    async def do_list(self, wish):
        """Return a page of a list, found by a search."""
        kind = wish["kind"]
        if kind not in ("tools", "resources", "templates", "prompts"):
            raise ValueError(f"there is no list of {kind!r}")
        return await self.conn(wish).rows(kind, str(wish.get("query", "")), wish.get("again"))

    async def do_call(self, wish):
        """Send a request, and return what came of it."""
        return await self.conn(wish).call(wish["call"], wish["method"], wish.get("params"),
                                          wish.get("timeout"))  # fmt: skip

    async def do_cancel(self, wish):
        """Give a request up."""
        task = self.conn(wish).calls.get(wish["call"])
        if task is not None:
            task.cancel()
        return {}

    async def do_answer(self, wish):
        """Answer what a server asked."""
        waiter = self.questions.get(wish["q"])
        if waiter is not None and not waiter.done():
            waiter.set_result(wish["answer"])
        return {}

    async def do_check(self, wish):
        """Return what is wrong with a value, by its schema; patterns of a server are not used."""
        try:
            m.checker_of(wish["schema"])(wish["value"])
        except m.SchemaError as exc:
            return {"errors": [{"path": exc.path, "message": exc.message}]}
        return {"errors": []}

    async def do_subscribe(self, wish):
        """Hear of a resource's updates, or no longer; they show on the wire."""
        conn, uri = self.conn(wish), wish["uri"]
        if wish["on"]:
            conn.subscriptions[uri] = await conn.client.subscribe(uri, lambda params: None)
        elif uri in conn.subscriptions:
            await conn.subscriptions.pop(uri).close()
        return {"on": uri in conn.subscriptions}

    async def do_level(self, wish):
        """Ask for log messages from a level on."""
        await self.conn(wish).client.set_log_level(wish["level"])
        return {}

    async def do_send(self, wish):
        """Send a message that was written by hand, as it is; what answers it shows on the wire."""
        if not isinstance(wish["message"], (dict, list)):
            raise ValueError("a message is a JSON object, or a batch of them")
        await self.conn(wish).client.transport.write(wish["message"])
        return {}

    async def do_compare(self, wish):
        """Make the same call in both eras; return the frames of each."""
        target = self.conn(wish).target
        columns = {}
        for era, revision in (("legacy", m.LEGACY[0]), ("modern", m.NEWEST)):
            frames = []
            conn = Connection(self, target, revision)
            conn.note = lambda what, /, frames=frames, conn=conn, **fields: (
                frames.append({"k": what, **fields}), Connection.note(conn, what, **fields))
            self.connections[conn.id] = conn
            try:
                await conn.open()
                if not conn.problem:
                    call = conn.call(0, wish["method"], wish.get("params"), COMPARE_SECONDS)
                    await asyncio.wait_for(call, COMPARE_SECONDS + 1)
            finally:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(conn.close(), 10)
                self.connections.pop(conn.id, None)
            columns[era] = {"frames": [shortened(frame) for frame in frames[:COMPARE_FRAMES]],
                            "problem": conn.problem, "revision": revision}  # fmt: skip
        return columns

    async def close(self):
        """End everything."""
        for conn in list(self.connections.values()):
            with contextlib.suppress(Exception):
                await conn.close()


def guide():
    """Return what the file says of each method: what for, who, since when, rules, section."""
    source = pathlib.Path(m.__file__).read_text("utf-8")
    marks = [(hit.start(), f"{hit[1]}. {hit[2]}")
             for hit in re.finditer(r"^####\n# (\d+)\. (.+)", source, re.M)]  # fmt: skip
    tables = next((at for at, name in marks if name.startswith("5.")), 0)
    cited = re.findall(
        r"# spec(?: (\d{4}-\d\d-\d\d))?: ([\w./-]*\w)(#[\w-]+)?(?: -- (.*))?", source
    )
    lines = [0, *itertools.accumulate(len(line) + 1 for line in source.split("\n"))]

    def place(name):
        """Return where the file handles a method: its handler, else where it is first named."""
        handler = m.HANDLERS.get(name)
        if handler is not None:
            return lines[handler.__code__.co_firstlineno - 1]
        return source.find(f'"{name}"', tables)

    out = {}
    for name, row in m.METHODS.items():
        names = (name, name.rpartition("/")[0], name.split("/")[0])
        page = next((PAGES[each] for each in names if each in PAGES), "")
        section = next((title for mark, title in reversed(marks) if mark <= place(name)), "")
        pages = (page, str(page).replace("patterns", "utilities"))  # now, and in older revisions
        rules = [[f"{revision or m.NEWEST}/{where}{anchor}", quote]
                 for revision, where, anchor, quote in cited if where in pages]  # fmt: skip
        out[name] = {
            "about": getattr(row, "about", ""), "sender": row.sender,
            "kind": "notification" if name.startswith("notifications/") else "request",
            "capability": row.capability, "revisions": list(row.revisions), "page": page,
            "section": section, "rules": rules[:6],
        }  # fmt: skip
    return out


# -- The page, and who may have it ---------------------------------------------------------------


REFUSED = 403, "application/json", b"{}"


def foreign(request):
    """Return whether a request comes from a page that is not ours; other hosts never get here."""
    origin = request.headers.get("origin")
    return origin is not None and origin != f"http://{request.headers.get('host')}"


def make_app(inspector):
    """Return the server of the page."""
    app = m.Server("mcp_lite inspector")

    @app.route("GET", "/", public=True)
    async def page(request):
        nonce = secrets.token_urlsafe(16)
        text = (HERE / "inspector.html").read_text("utf-8").replace("{{nonce}}", nonce)
        rules = (f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
                 "connect-src 'self'; img-src data:; media-src data:; base-uri 'none'; "
                 "form-action 'none'; frame-ancestors 'none'")  # fmt: skip
        headers = {"content-type": "text/html; charset=utf-8", "content-security-policy": rules,
                   "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
                   "cache-control": "no-store"}  # fmt: skip
        return 200, headers, text.encode()

    @app.route("POST", "/api")
    async def api(request):
        if foreign(request):
            return REFUSED
        try:
            wish = m.decode(request.body)
            answer = await inspector.do(wish)
        except asyncio.TimeoutError:
            answer = {"problem": "it took too long"}
        except (m.MCPError, TypeError, ValueError, LookupError) as exc:
            answer = {"problem": str(exc) or type(exc).__name__}
        return 200, "application/json", json.dumps(answer).encode()

    @app.route("POST", "/recording")
    async def recording(request):
        if foreign(request):
            return REFUSED
        frames = tuple(inspector.recorder.frames)  # a thread, since it may take seconds
        text = await asyncio.get_running_loop().run_in_executor(None, recording_of, frames)
        return 200, "application/jsonl", text.encode()

    return app


def targets_of(args):
    """Return the targets that a command line names."""
    found = []
    for word in args.targets:
        if re.search(r"\.py:\w+$", word):
            command = [sys.executable, m.__file__, "serve", word]
            found.append(Target(word, command))
        else:
            found.append(Target(word, word))
    if args.command:
        found.append(Target(" ".join(args.command), args.command))
    for path in args.config:
        servers = json.loads(pathlib.Path(path).read_text("utf-8")).get("mcpServers", {})
        for name, entry in servers.items():
            entry = with_variables(entry)
            if "url" in entry:
                found.append(Target(name, entry["url"], headers=entry.get("headers")))
            else:
                command = [entry["command"], *entry.get("args", [])]
                found.append(Target(name, command, env=entry.get("env")))
    return found


def with_variables(value):
    """Return JSON with ${NAME} replaced by the environment's variables."""
    if isinstance(value, dict):
        return {name: with_variables(member) for name, member in value.items()}
    if isinstance(value, list):
        return [with_variables(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda hit: os.environ.get(hit[1], ""), value)
    return value


def parse(argv):
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--config", action="append", default=[], metavar="FILE", help="an mcp.json")
    parser.add_argument("--port", type=int, default=0, help="else one that is free")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("--record", metavar="FILE", help="write all that happens, without secrets")
    parser.add_argument("--replay", metavar="FILE", help="show what was recorded")
    argv, _, command = (*partition(argv),)
    args = parser.parse_args(argv)
    args.command = command
    return args


def partition(argv):
    """Split a command line at `--`."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], "--", argv[at + 1 :]


async def main(argv):
    """Serve the page until Ctrl-C or SIGTERM."""
    with contextlib.suppress(NotImplementedError):  # on Windows
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    args = parse(argv)
    file = open(args.record, "w", encoding="utf-8") if args.record else None
    recorder = Recorder(file)
    if args.replay:
        with open(args.replay, encoding="utf-8") as lines:
            recorder.load(lines)
    inspector = Inspector(targets_of(args), recorder)
    token = secrets.token_urlsafe(24)
    app = make_app(inspector)
    try:
        # The page itself needs no token: loopback names alone may lead to it.
        options = {"port": args.port, "token": token, "path": "/mcp", "allowed_hosts": "localhost"}
        async with app.http(**options) as server:
            url = f"{server.url[: -len('/mcp')]}/#{token}"
            print(f"The inspector is at {url}\nCtrl-C ends it.", flush=True)
            if not args.no_browser:
                await asyncio.get_running_loop().run_in_executor(None, webbrowser.open, url)
            try:
                await asyncio.Event().wait()
            finally:
                await inspector.close()
    finally:
        if file is not None:
            file.close()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(main(sys.argv[1:]))
