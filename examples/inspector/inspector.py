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
import itertools
import json
import os
import pathlib
import re
import secrets
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
MAX_BEHIND = 20_000  # messages that a page may be behind; it skips the rest, and says so
POLL_FRAMES = 1000  # ... that it gets at once
POLL_SECONDS = 20.0  # for which it waits for news
SHOWN_CHARS = 20_000  # of one string in a frame; the whole is fetched when it is looked at
SHOWN_MEMBERS = 2000  # of one list or object
WHOLE_BYTES = 4 * 1024 * 1024  # of one message that is looked at
LIST_ROWS = 200  # of a list; a search finds the others
CALL_SECONDS = 3600.0  # for a call: the person decides when to give up
COMPARE_SECONDS = 30.0  # for a call that is made in both eras

SECRET_KEY = m.SECRET_KEY
SECRET_TEXT = m.SECRET_TEXT
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
        self.frames = deque(maxlen=MAX_FRAMES)
        self.last = 0
        self.began = time.monotonic()
        self.file = file
        self.news = asyncio.Event()

    def add(self, conn, kind, **fields):
        """Note that something happened on a connection."""
        self.last += 1
        when = round((time.monotonic() - self.began) * 1000, 2)
        frame = {"n": self.last, "t": when, "c": conn, "k": kind, **fields}
        self.frames.append(frame)
        if self.file is not None:
            self.file.write(json.dumps(without_secrets(frame)) + "\n")
            self.file.flush()
        self.news.set()

    def after(self, number):
        """Return the next frames after a number, shortened; and how many had to be skipped."""
        if not self.frames:
            return [], 0
        first = self.frames[0]["n"]
        begin = max(number, first - 1, self.last - MAX_BEHIND)
        found = itertools.islice(self.frames, begin + 1 - first, begin + 1 - first + POLL_FRAMES)
        return [shortened(frame) for frame in found], begin - number

    def whole(self, number):
        """Return one frame as it is, or None."""
        first = self.frames[0]["n"] if self.frames else 1
        return self.frames[number - first] if first <= number <= self.last else None

    async def wait(self, number):
        """Wait for a frame after a number, but not for ever."""
        if self.last <= number:
            self.news.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.news.wait(), POLL_SECONDS)


def shortened(value):
    """Return JSON whose long parts are cut; a string says how much is missing."""
    if isinstance(value, str):
        more = len(value) - SHOWN_CHARS
        return value if more <= 0 else f"{value[:SHOWN_CHARS]}... ({more:,} more characters)"
    if isinstance(value, list):
        rest = [f"... {len(value) - SHOWN_MEMBERS:,} more"] * (len(value) > SHOWN_MEMBERS)
        return [shortened(item) for item in value[:SHOWN_MEMBERS]] + rest
    if isinstance(value, dict):
        members = itertools.islice(value.items(), SHOWN_MEMBERS)
        return {str(name)[:SHOWN_CHARS]: shortened(member) for name, member in members}
    return value


def without_secrets(value, key=""):
    """Return JSON whose secrets are redacted: passwords, tokens, keys, by the names they have."""
    if isinstance(value, dict):
        return {name: without_secrets(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return [without_secrets(item, key) for item in value]
    if isinstance(value, str):
        if SECRET_KEY.search(key):
            return m.REDACTED
        return SECRET_TEXT.sub(rf"\g<1>{m.REDACTED}", value)
    return value


# -- Transports that are watched -----------------------------------------------------------------


class Watched:
    """What the two transports below have in common: each message is noted."""

    note = staticmethod(lambda kind, **fields: None)

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
    """A URL; its HTTP requests are noted, too."""

    def __init__(self, url, **options):
        super().__init__(url, **options)
        self.numbers = itertools.count(1)
        send = self.http.send

        async def noted(method, target, headers, body=b"", *args, **options):
            number = next(self.numbers)
            shown = with_prefix(headers, "mcp-", "last-event", "accept", "content-type")
            self.note("http", d=">", i=number, verb=method, target=target, h=shown)
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

        self.http.send = noted

    def watch_body(self, answer, number):
        """Note the ids of events, and the end of a stream."""
        if not answer.head.headers.get("content-type", "").startswith("text/event-stream"):
            return
        piece = answer.piece

        async def noted():
            data = await piece()
            for found in re.findall(rb"(?m)^(id|retry): ?(.*?)\r?$", data):
                self.note("sse", d="<", i=number, field=found[0].decode(),
                          value=found[1].decode("utf-8", "replace"))  # fmt: skip
            if not data:
                self.note("sse", d="<", i=number, field="end", value="")
            return data

        answer.piece = noted


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
    """One conversation with a server, and what the person is asked in it."""

    numbers = itertools.count(1)

    def __init__(self, inspector, target, revision):
        self.inspector, self.target, self.revision = inspector, target, revision
        self.id = next(self.numbers)
        self.lists, self.calls, self.subscriptions = {}, {}, {}
        self.client, self.problem = None, ""

    def note(self, kind, **fields):
        """Note what happens here."""
        self.inspector.recorder.add(self.id, kind, **fields)

    async def open(self):
        """Connect, and tell the page how it went."""
        transport = self.target.transport()
        transport.note = self.note
        if hasattr(transport, "stderr"):
            transport.stderr = lambda line: self.note("log", text=line)
        self.client = m.Client(
            transport, revision=self.revision or None, timeout=CALL_SECONDS,
            max_timeout=CALL_SECONDS, name="mcp_lite inspector", cache=False,
            elicit=lambda message, schema: self.ask("elicit", message=message, schema=schema),
            elicit_url=lambda message, url: self.ask("url", message=message, url=url),
            sample=lambda params: self.ask("sample", params=params),
            roots=[os.getcwd()], log=lambda level, data, logger: None,
            # without these, a server of the modern era would not be asked for announcements
            on_tools_changed=int, on_resources_changed=int, on_prompts_changed=int,
        )  # fmt: skip
        self.note("state", state="connecting", name=self.target.name)
        try:
            await asyncio.wait_for(self.client.connect(), 60)
        except Exception as exc:
            self.problem = str(exc) or type(exc).__name__
            self.note("state", state="failed", why=self.problem)
            return
        self.note("state", state="open", name=self.target.name)

    async def ask(self, kind, **fields):
        """Put a question of the server to the person, and return the answer."""
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
            "era": ("modern" if m.REVISIONS[rev].modern else "legacy") if rev else "",
            "server": client.server_info if known else {},
            "capabilities": client.server_capabilities if known else {},
            "instructions": client.instructions if known else None,
            "lost": bool(client and client.peer.lost),
        }  # fmt: skip

    async def close(self):
        """End the conversation."""
        if self.client is not None:
            await self.client.close()
        self.note("state", state="closed")

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
        return {"rows": shortened(found[:LIST_ROWS]), "count": len(found),
                "total": len(self.lists[kind])}  # fmt: skip

    async def call(self, number, method, params, timeout=None):
        """Send a request; return {"result"} or {"error"}, and how long it took."""
        began = time.monotonic()

        def progress(*report):
            self.note("progress", call=number, report=report)

        request = self.client.request(method, params, timeout=timeout, progress=progress)
        task = asyncio.ensure_future(request)
        self.calls[number] = task
        try:
            outcome = {"result": await task}
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
        frame = self.recorder.whole(int(wish["n"]))
        text = json.dumps(frame, ensure_ascii=False)
        return frame if len(text) <= WHOLE_BYTES else shortened(frame)

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
        """Return what is wrong with a value, by its schema."""
        try:
            errors = m.compile_schema(wish["schema"]).errors(wish["value"])
        except m.SchemaError as exc:
            errors = [exc]
        return {"errors": [{"path": error.path, "message": error.message} for error in errors]}

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

    async def do_compare(self, wish):
        """Make the same call in both eras; return the frames of each."""
        target = self.conn(wish).target
        columns = {}
        for era, revision in (("legacy", m.LEGACY[0]), ("modern", m.NEWEST.name)):
            frames = []
            conn = Connection(self, target, revision)
            conn.note = lambda kind, frames=frames, conn=conn, **fields: (
                frames.append({"k": kind, **fields}), Connection.note(conn, kind, **fields))
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
            columns[era] = {"frames": shortened(frames), "problem": conn.problem,
                            "revision": revision}  # fmt: skip
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
             for hit in re.finditer(r"^# (\d+)\. (.+)\n#{79}", source, re.M)]  # fmt: skip
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
        rules = [[f"{revision or m.NEWEST.name}/{where}{anchor}", quote]
                 for revision, where, anchor, quote in cited if where in pages]  # fmt: skip
        out[name] = {
            "about": getattr(row, "about", ""), "kind": row.kind, "sender": row.sender,
            "capability": row.capability, "revisions": list(row.revisions), "page": page,
            "section": section, "rules": rules[:6],
        }  # fmt: skip
    return out


# -- The page, and who may have it ---------------------------------------------------------------


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
        try:
            wish = m.decode(request.body)
            answer = await inspector.do(wish)
        except asyncio.TimeoutError:
            answer = {"problem": "it took too long"}
        except (m.MCPError, TypeError, ValueError, LookupError) as exc:
            answer = {"problem": str(exc) or type(exc).__name__}
        return 200, "application/json", json.dumps(answer).encode()

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
    """Serve the page until Ctrl-C."""
    args = parse(argv)
    file = open(args.record, "w", encoding="utf-8") if args.record else None
    recorder = Recorder(file)
    if args.replay:
        with open(args.replay, encoding="utf-8") as lines:
            for line in lines:
                frame = json.loads(line)
                recorder.frames.append({**frame, "n": recorder.last + 1})
                recorder.last += 1
    inspector = Inspector(targets_of(args), recorder)
    token = secrets.token_urlsafe(24)
    app = make_app(inspector)
    try:
        async with app.http(port=args.port, token=token, path="/mcp") as server:
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
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1:]))
