"""Several MCP servers as one: over any transport, and of any revision, on either side.

    python3 mcp_lite.py gateway https://example.com/mcp            a URL, for what starts commands
    python3 mcp_lite.py gateway --http 8000 --token KEY server.py  a command at a URL
    python3 mcp_lite.py gateway mcp.json                           all servers of a configuration

In a program: `Gateway({"shop": "https://example.com/mcp", "files": app}).run()`. Tools and prompts
get names like `shop__buy`; a URI stays, and each server is asked for it in turn. With one target,
all names stay, that of the server too, and lists fail while it is not there. Of several, one that
is not there is left out until it is. Instructions pass, and questions, progress, the log,
announcements and cancellation.

Each client has a connection of its own to each server: by its session; where there is none, by its
principal, name and capabilities, and then no two calls that may ask share one at a time.

Limits: a task of a server is a long call; who listens hears nothing from a server that was started
again until the next request; a server is not told that roots changed; a client is told once what
servers say of themselves, when it connects; two gateways that are each other's servers stop at
MAX_LINKS; one event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import contextvars
import functools
import json
import logging
import math
import os
import pathlib
import re
import sys
import time
from typing import Any

from mcp_lite import (
    CapabilityMissing,
    Client,
    ConnectionClosed,
    Context,
    MCPError,
    OAuth,
    RemoteError,
    RequestTimeout,
    RPCError,
    Server,
    Suspended,
)

logger = logging.getLogger("mcp_gateway")
MODERN = "2026-07-28"  # from this revision on there are no sessions, and a result asks the client
MAX_LINKS, IDLE_SECONDS = 100, 300.0  # connections in all; until one that nobody uses is closed
MAX_HELD, HELD_SECONDS = 100, 900.0  # calls that wait for a client to come again with its answers
MEET_SECONDS = 5.0  # until a client's handshake leaves out one of several; some wait for ten only
NEWS_SECONDS = 0.02  # announcements of many connections that say the same in this time are one
NOT_FOUND, INTERNAL = (-32002, -32602, -32601), -32603
HANDSHAKES = {"initialize", "server/discover"}
ASKERS = {"tools/call", "prompts/get", "resources/read"}  # what may ask a modern client
TOKEN = "MCP_LITE_TOKEN"  # a variable: what --token says, where no list of processes shows it
FILES = "MCP_GATEWAY_FILES"  # a variable: the configurations that started this process
VARIABLE = r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}"
LOGIN = OAuth(interactive=False)  # one that a person has made before

Msg = dict[str, Any]


class Link(Client):
    """A connection to one server, on behalf of one client."""

    def __init__(self, gateway: Gateway, name: str, key: Any, ctx: Context, can: Msg) -> None:
        target, options = gateway.targets[name]
        self.gateway, self.title, self.key, self.own = gateway, name, key, key[1] is not None
        self.calls: list[Call] = []
        self.called = asyncio.Event()  # a call has begun that is no handshake
        self.watches: dict[Any, Any] = {}  # by URI: a subscription; or who listens
        self.used = time.monotonic()
        for kind in ("tools", "prompts", "resources"):
            news = functools.partial(gateway.announce, getattr(gateway, f"{kind}_changed"))
            options = {f"on_{kind}_changed": news, **options}
        super().__init__(
            target, name=ctx.client_info.get("name", "gateway"), ask=self.answer, log=self.pass_log,
            version=ctx.client_info.get("version", ""), capabilities=can, **options,
        )  # fmt: skip
        # In an empty context, because the connection outlives the request that began it.
        self.opening = contextvars.Context().run(asyncio.ensure_future, self.connect())
        self.opening.add_done_callback(lambda task: task.cancelled() or task.exception())

    @property
    def free(self) -> bool:
        """Whether it would be known whose question comes, if one more call might ask."""
        return self.own or not any(call.asks for call in self.calls)

    @property
    def askable(self) -> list[Call]:
        """The calls in which the client may be asked: not in its handshake."""
        calls = [call for call in self.calls if call.ctx.method != "initialize"]
        return [call for call in calls if call.asks or self.own]

    async def end(self) -> None:
        self.opening.cancel()
        await asyncio.wait([self.opening])
        await self.close()
        for call in self.calls:
            if call.task:  # its questions wait for answers
                call.task.cancel()

    async def answer(self, method: str, params: Msg) -> Any:
        """Ask the client what the server asks: a modern one in a call, another at any time."""
        if self.own and not self.askable:
            # Many ask as soon as they are connected: before the first request of the client.
            self.called.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.called.wait(), self.gateway.patience)
        calls = self.askable
        if not calls:
            raise RPCError(INTERNAL, "no request of the client is running, so it is not asked")
        return await calls[-1].ask(method, params)

    async def pass_log(self, level: str, data: Any, logger: str | None) -> None:
        if self.calls and (self.own or len(self.calls) == 1):
            await self.calls[-1].ctx.log(level, data, logger)


class Call:
    """A request on its way to a server. It outlives that of a modern client, which ends to ask."""

    def __init__(self, link: Link, ctx: Context, work: Any, asks: Any) -> None:
        self.link, self.ctx, self.work, self.asks = link, ctx, work, asks
        self.questions: Msg = {}  # by name: one, and a future of its answer
        self.asking: set[asyncio.Future[Any]] = set()  # of a client with a session
        self.news, self.state = asyncio.Event(), ""
        self.timer: Any = None  # ends it if nobody comes again
        link.calls.append(self)  # now: nobody else must take a connection that is to be alone
        if ctx.method != "initialize":
            link.called.set()
        self.task: Any = None  # of one that outlives its request
        if asks and ctx.revision >= MODERN:
            self.task = asyncio.ensure_future(self.run())
            self.task.add_done_callback(self.ended)

    async def run(self) -> Any:
        link, level, patience = self.link, self.ctx.log_level, self.link.gateway.patience
        if not link.opening.done():
            await asyncio.wait([link.opening], timeout=patience)
        if not link.opening.done():
            raise RequestTimeout(f"it did not connect within {patience:g} seconds")
        if link.opening.cancelled():
            raise ConnectionClosed("the connection was closed before it was open")
        link.opening.result()
        if level not in (None, link.log_level) and "logging" in link.server_capabilities:
            await link.set_log_level(str(level))
        return await self.work(link, self)

    def ended(self, task: Any) -> None:
        self.link.calls.remove(self)
        self.link.used = time.monotonic()
        self.link.gateway.held.pop(self.state, None)
        if self.timer is not None:
            self.timer.cancel()
        for _, waiter in self.questions.values():
            waiter.cancel()
        self.news.set()
        if task and not task.cancelled():
            task.exception()  # nobody may have waited for it

    async def ask(self, method: str, params: Msg) -> Any:
        """Return the client's answer to a question of the server."""
        name = f"{method.partition('/')[0]}-{os.urandom(8).hex()}"
        question = {"method": method, "params": params}
        if self.ctx.revision >= MODERN:
            waiter = asyncio.get_running_loop().create_future()
            self.questions[name] = question, waiter
            self.news.set()
            try:
                return await waiter
            finally:
                del self.questions[name]
        asking = asyncio.ensure_future(self.ctx.ask(method, params))
        self.asking.add(asking)
        try:
            await asyncio.wait([asking])
            if asking.cancelled():
                raise RPCError(INTERNAL, "the call in which this was asked has ended")
            return asking.result()
        except MCPError as exc:
            raise passed_on(exc) from exc
        finally:
            asking.cancel()
            self.asking.discard(asking)

    async def put(self, name: str, question: Any, waiter: Any) -> None:
        """Give the server the client's answer; without one, the client is asked."""
        if not waiter.done():
            waiter.set_result(await self.ctx.ask(question["method"], question["params"], key=name))

    async def result(self, ctx: Context) -> Any:
        """Return the result; a modern client gets the questions, and comes again with answers."""
        self.ctx = ctx
        if self.task is None:
            try:
                found = await self.run()
                if self.asking:  # for another request, perhaps: a session has one connection
                    await asyncio.wait(self.asking)
                return found
            finally:
                self.ended(None)
        try:
            self.link.gateway.hold(self)
            while not self.task.done():
                asked = self.questions.items()
                await asyncio.gather(*(self.put(name, *each) for name, each in asked))
                self.news.clear()
                await self.news.wait()
                await asyncio.sleep(0)  # questions that are asked together come together
            return self.task.result()
        except BaseException as exc:
            if not isinstance(exc, Suspended):
                self.task.cancel()
            raise


class Gateway(Server):
    """A server that is several others: `targets` by name, or one; options are of each Client.

    `patience`: seconds for a server to connect, or to tell a list, before it is left out; where it
    is the only one, the client gets the error.
    """

    def __init__(self, targets: Any, *, patience: float = 10.0, **options: Any) -> None:
        listed = {"listChanged": True}
        offered = {"tools": listed, "prompts": listed, "completions": {},
                   "resources": {"subscribe": True, **listed}}  # fmt: skip
        super().__init__("gateway", lifespan=self.hold_open, capabilities=offered)
        if str(targets).endswith(".json"):
            targets = read_config(str(targets))
        #: by name: a target, and options of its Client
        self.targets = {
            name: target if isinstance(target, tuple) else (target, options)
            for name, target in (targets if isinstance(targets, dict) else {"": targets}).items()
        }
        self.patience = patience
        self.links: list[Link] = []
        self.held: dict[str, Call] = {}
        self.closing: set[asyncio.Future[None]] = set()
        self.said: set[Any] = set()  # what is announced in a moment
        self.middleware(self.forward)

    # Connections.

    @contextlib.asynccontextmanager
    async def hold_open(self, server: Server) -> Any:
        yield
        self.close(self.links)
        while self.closing:
            await asyncio.wait(self.closing)

    def drop(self) -> None:
        """Close all connections; the next request opens others. All lists may have changed."""
        self.close(self.links)
        for changed in (self.tools_changed, self.prompts_changed, self.resources_changed):
            changed()

    def close(self, links: list[Link]) -> None:
        for link in [link for link in links if link in self.links]:
            self.links.remove(link)
            closing = asyncio.ensure_future(link.end())
            self.closing.add(closing)
            closing.add_done_callback(self.closing.discard)

    def begin(self, ctx: Context, name: str, work: Any) -> Call:
        """Choose a connection and take it, in one step: nothing may be awaited in between."""
        can = {**ctx.client_capabilities}
        can.pop("tasks", None)  # of one revision only
        has_session = ctx.revision < MODERN and ctx.client_info
        session = ctx.state.setdefault("mcp_gateway", object()) if has_session else None
        key = ctx.owner, session, name, session or str((ctx.client_info, can))
        asks = ctx.method in ASKERS and can.keys() - {"extensions"}
        for link in self.links:
            if link.key == key and not link.lost and (link.free or not asks):
                break
        else:
            idle = [link for link in self.links if not (link.calls or link.watches or link.own)]
            self.close([link for link in idle if link.used + IDLE_SECONDS < time.monotonic()])
            self.close([link for link in self.links if link.lost])
            if len(self.links) >= MAX_LINKS:
                if not idle:
                    raise RPCError(503, "too many connections are in use")
                self.close(idle[:1])
            link = Link(self, name, key, ctx, can)
            self.links.append(link)
            if link.own:
                ctx.at_end(functools.partial(self.close, [link]))
        return Call(link, ctx, work, asks)

    def hold(self, call: Call) -> None:
        """Let a call wait for its client to come again, by the name that all its rounds have."""
        if len(self.held) >= MAX_HELD:
            next(iter(self.held.values())).task.cancel()
        call.timer = call.timer or asyncio.get_running_loop().call_later(
            HELD_SECONDS, call.task.cancel
        )
        call.state = call.ctx.call_id
        self.held[call.state] = call

    def announce(self, *news: Any) -> None:
        """Announce once what many connections say: a function and its arguments."""
        if news not in self.said:
            self.said.add(news)
            asyncio.get_running_loop().call_later(NEWS_SECONDS, self.say, *news)

    def say(self, *news: Any) -> None:
        self.said.discard(news)
        news[0](*news[1:])

    # Requests.

    async def forward(self, ctx: Context, call_next: Any) -> Any:
        """Answer what the servers are to answer; a middleware."""
        if "requestState" in ctx.params and ctx.revision >= MODERN:
            call = self.held.pop(ctx.call_id, None)
            if call is None:
                raise RPCError(-32602, "no call waits for these answers any more; call again")
            return await self.outcome(call, ctx)
        if ctx.method in HANDSHAKES:
            return await self.introduce(ctx, call_next)
        if ctx.method.endswith("/list") and "cursor" not in ctx.params:
            return await self.list(ctx, call_next)
        if ctx.method in ("resources/subscribe", "resources/unsubscribe", "subscriptions/listen"):
            return await self.watch(ctx, call_next)
        params = dict(ctx.params)
        about = params.get("ref", params)
        if ctx.method not in ASKERS | {"completion/complete"}:
            return await call_next(ctx)
        if "uri" in about:
            return await self.in_turn(ctx, call_next, sending(ctx, params))
        whole = str(about.get("name"))
        name, _, bare = whole.partition("__")
        if name not in self.targets:
            name, bare = "", whole
        if name not in self.targets:
            return await call_next(ctx)
        named = {**about, "name": bare}
        work = sending(ctx, {**params, "ref": named} if "ref" in params else named)
        return await self.outcome(self.begin(ctx, name, work), ctx)

    async def outcome(self, call: Call, ctx: Context) -> Any:
        try:
            return await call.result(ctx)
        except MCPError as exc:
            raise passed_on(exc, call.link.title) from exc

    async def in_turn(self, ctx: Context, call_next: Any, work: Any) -> Any:
        """Ask each server for a URI until one has it; then ourselves."""
        problem: Any = None
        for name in self.targets:
            try:
                return await self.begin(ctx, name, work).result(ctx)
            except CapabilityMissing:
                pass
            except MCPError as exc:
                if exc.code not in NOT_FOUND:
                    problem = passed_on(exc, name)
        if problem:
            raise problem
        return await call_next(ctx)

    async def of_each(self, ctx: Context, work: Any, patience: float = math.inf) -> Any:
        """Return what each server gives; one that gives nothing in time is left out.

        The error of an only server goes to a client that asks for a list: an empty one looks right.
        """
        patience = min(patience, self.patience)

        async def of(name: str) -> Any:
            try:
                call = self.begin(ctx, name, work)
                return await asyncio.wait_for(call.result(ctx), patience)
            except Exception as exc:  # whatever a target raises
                if getattr(exc, "code", 0) in (*NOT_FOUND, -32021):
                    return None
                if isinstance(exc, asyncio.TimeoutError):
                    exc = RequestTimeout(f"no response within {patience:g} seconds")
                problem, who = passed_on(exc), name or "the server"
                if not name and ctx.method.endswith("/list"):
                    raise problem from exc
                if name or ctx.method not in HANDSHAKES:  # an only one fails the next request
                    logger.warning("%s is left out of %s: %s", who, ctx.method, problem.message)

        return await asyncio.gather(*map(of, self.targets))

    async def introduce(self, ctx: Context, call_next: Any) -> Any:
        """Answer a handshake: an only server speaks for itself, and each of several has a part."""
        answer, only = await call_next(ctx), "" in self.targets

        async def work(link: Link, call: Call) -> Any:
            return link.server_info, link.instructions

        # A client waits for an only server as if we were not there.
        answers = await self.of_each(ctx, work, math.inf if only else MEET_SECONDS)
        texts = [answer.get("instructions")]
        for name, found in zip(self.targets, answers):
            info, text = found or ({}, None)
            if only and info:
                self.info = info
            texts.append(f"# {name}\n\n{text}" if text and name else text)
        if any(texts):
            answer["instructions"] = "\n\n".join(filter(None, texts))
        return {**answer, "serverInfo": self.info} if ctx.method == "initialize" else answer

    async def list(self, ctx: Context, call_next: Any) -> Any:
        kind, answer = ctx.method.split("/")[-2], await call_next(ctx)
        key = next(iter(answer))  # the member that is the list

        async def work(link: Link, call: Call) -> Any:
            offered = ctx.method.partition("/")[0] in link.server_capabilities
            return await getattr(link, f"list_{kind}")() if offered else []

        answers = await self.of_each(ctx, work)
        for name, found in zip(self.targets, answers):
            for item in found or ():
                if name and kind in ("tools", "prompts"):
                    item["name"] = f"{name}__{item['name']}"
                answer[key].append(item)
        return answer

    async def watch(self, ctx: Context, call_next: Any) -> Any:
        """Subscribe to a resource, or no longer; or to some, for as long as a client listens."""
        asked = ctx.params.get("notifications")
        uris = [ctx.params["uri"]] if asked is None else asked.get("resourceSubscriptions") or ()
        async with contextlib.AsyncExitStack() as stack:

            def tell(params: Msg) -> None:
                self.announce(self.resource_updated, params["uri"])

            async def work(link: Link, call: Call) -> bool:
                if asked is not None:
                    link.watches[ctx] = stack.callback(link.watches.pop, ctx)
                for uri in map(str, uris):
                    if ctx.method != "resources/unsubscribe":
                        following = await link.subscribe(uri, tell)
                        if asked is None:
                            link.watches[uri] = following
                        else:
                            stack.push_async_callback(following.close)
                    elif uri in link.watches:
                        await link.watches.pop(uri).close()
                return True

            agreed = any(await self.of_each(ctx, work))
            return {} if agreed and asked is None else await call_next(ctx)


def sending(ctx: Context, params: Msg) -> Any:
    """Return what sends a request on, with the `_meta` that is not about this leg of its way."""
    meta = {name: value for name, value in ctx.meta.items()
            if not name.startswith(("io.modelcontextprotocol/", "progressToken"))}  # fmt: skip

    params.pop("_meta", None)

    async def work(link: Link, call: Call) -> Any:
        progress = lambda *step: call.ctx.report_progress(*step)  # noqa: E731 -- of the last round
        options: Msg = {"timeout": math.inf, "progress": progress, "meta": meta}
        if ctx.method == "tools/call":
            return await link.call_tool(params["name"], params.get("arguments"), **options)
        return await link.request(ctx.method, params, **options)

    return work


def passed_on(exc: Exception, name: str = "") -> RPCError:
    """Return the error that tells the one side what went wrong on the other."""
    if isinstance(exc, RemoteError):
        return RPCError(exc.code, exc.message, exc.data)
    problem = str(exc).partition("; its last words")[0]  # these are on stderr
    named = f"{name}: {problem}" if name else problem
    return exc if isinstance(exc, RPCError) else RPCError(INTERNAL, named)


def read_config(path: str, ca: str | None = None) -> Msg:
    """Return the servers of an mcp.json: {name: (target, options)}; ValueError for a wrong one."""

    files, here = os.environ.get(FILES, ""), os.path.realpath(path)
    if here in files.split(os.pathsep):
        raise ValueError(f"{path} names the gateway that reads it: take that entry out")
    doc = json.loads(pathlib.Path(path).read_text("utf-8-sig"))
    entries = isinstance(doc, dict) and doc.get("mcpServers")
    if not isinstance(entries, dict):
        raise ValueError(f'{path} names no servers: {{"mcpServers": {{name: ...}}}}')
    found: Msg = {}
    for name, entry in entries.items():
        if not isinstance(entry, dict) or not {"command", "url"} & {*entry}:
            raise ValueError(f"{path}: {name}: it needs a command or a url")
        if not entry.get("disabled"):
            entry = with_variables(entry, f"{path}: ")
            target, options = entry.get("url"), {"headers": entry.get("headers", {}), "ssl": ca}
            if "command" in entry:
                target = [entry["command"], *entry.get("args", ())]
                env = {**entry.get("env", {}), FILES: f"{files}{os.pathsep}{here}"}
                options = {"env": env, "cwd": entry.get("cwd")}
            elif "authorization" not in map(str.lower, options["headers"]):
                options["auth"] = LOGIN
            add_target(found, name, target, options)
    return found


def with_variables(value: Any, where: str) -> Any:
    """Return JSON in whose texts each ${NAME} is what the environment has for it."""

    def found(hit: re.Match[str]) -> str:
        text = os.environ.get(hit[1], hit[2])
        if text is None:
            raise ValueError(f"{where}the variable {hit[1]} is not set")
        return json.dumps(text)[1:-1]

    return json.loads(re.sub(VARIABLE, found, json.dumps(value)))


def add_target(found: Msg, name: str, target: Any, options: Msg) -> None:
    """Add a server, under a name that applications accept at the beginning of a tool's."""
    name = re.sub("[^A-Za-z0-9]+", "-", name).strip("-") or "server"
    if name in found:
        raise ValueError(f"two servers have the name {name}: name them in an mcp.json")
    found[name] = target, options


def targets_of(args: Any, command: list[str]) -> Msg:
    """Return the servers of a command line: {name: (target, options)}; ValueError: it is wrong."""
    found: Msg = {}
    for target in args.target:
        if target.endswith(".json"):
            for name, each in read_config(target, args.ca).items():
                add_target(found, name, *each)
        elif "://" in target:
            add_target(found, target.split("/")[2], target, url_options(args, target))
        else:
            add_target(found, pathlib.Path(target).stem, target, {})
    if command:
        add_target(found, pathlib.Path(command[0]).stem, command, {})
    if not found:
        raise ValueError("give a URL, a .py file, an mcp.json, or a command after --")
    if args.header or args.token and not args.http:
        if sum("://" in target for target in args.target) != 1:
            raise ValueError("--header, and --token without --http, are for one URL; for more, "
                             'write an mcp.json with "headers"')  # fmt: skip
    return found


def url_options(args: Any, url: str) -> Msg:
    """Return the options of the Client for the URL of a command line."""
    headers: Msg = {}
    options: Msg = {"headers": headers, "ssl": args.ca}
    for word in args.header:
        name, colon, text = word.partition(":")
        if not (name and colon):
            raise ValueError("--header: expected NAME:VALUE")  # it may be a secret
        headers[name] = with_variables(text.strip(), "--header: ")
    token = "" if args.http else args.token or os.environ.get(TOKEN)
    if "authorization" in map(str.lower, headers):
        return options
    if token and not re.match(r"https:|http://(localhost|127[.\d]+|\[::1\])([:/]|$)", url):
        raise ValueError(f"{url} is not https: the token of --token or ${TOKEN} is not sent. "
                         "--header 'Authorization: Bearer ...' sends it, at your risk")  # fmt: skip
    return {**options, **({"token": token} if token else {"auth": LOGIN})}


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="mcp_gateway.py",
        description="Be several MCP servers as one, on standard input and output or at a URL.",
    )  # fmt: skip
    add = parser.add_argument
    add("target", nargs="*", help="a URL, a .py file, an mcp.json; or -- COMMAND")
    add("--http", metavar="[HOST:]PORT", help="serve there, not on standard input and output")
    add("--token", help="bearer token to send to the URL; with --http, what clients must send; "
        f"${TOKEN} is safer")  # fmt: skip
    add("--header", action="append", default=[], metavar="NAME:VALUE",
        help="send it to the URL; ${NAME} is replaced from the environment")  # fmt: skip
    add("--ca", metavar="FILE", help="certificates to trust for URLs, in PEM")
    end = words.index("--") if "--" in words else len(words)
    args, command = parser.parse_intermixed_args(words[:end]), words[end + 1 :]
    try:
        if args.ca and not os.path.isfile(args.ca):
            raise ValueError(f"there is no file {args.ca}")
        found = targets_of(args, command)
        gateway = Gateway(found if len(found) > 1 else [*found.values()][0])
        token = os.environ.get(TOKEN) if args.token is None else args.token
        if args.http and token == "":  # it must not open the gateway to all
            raise ValueError(f"the token is empty: unset ${TOKEN}, or put a token into it")
        host, _, port = (args.http or "0").rpartition(":")
        if not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > 65535:
            raise ValueError(f"--http={args.http}: expected [HOST:]PORT, with a port up to 65535")
        options: Msg = {"host": host.strip("[]") or "127.0.0.1", "port": int(port), "token": token}
    except (OSError, ValueError) as exc:
        parser.error(str(exc))
    gateway.run(**({"transport": "http", **options} if args.http else {}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
