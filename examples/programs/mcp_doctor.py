#!/usr/bin/env python3
"""Tell what is wrong with an MCP server, or unwise, and which applications suffer.

    python3 mcp_lite.py doctor server.py
    python3 mcp_lite.py doctor --call --strict --for claude https://example.com/mcp
    python3 mcp_lite.py doctor --env KEY=secret -- npx -y some-server

What a server lists is judged by findings_of(), which is pure. The rest shows when the server is at
work: how it starts, how it refuses nonsense, whom it lets in over HTTP. Nothing is called that may
change something, and the server may ask nothing.

The exit status is 0 if no error was found (with --strict: no warning either), 1 if some were,
2 if the command line is wrong, and 3 if the server cannot be used.
"""

import argparse
import asyncio
import functools
import http.client
import inspect
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from subprocess import DEVNULL, PIPE
from typing import Any, NamedTuple, Optional

HERE = pathlib.Path(__file__).resolve().parent
if HERE.name == "programs":  # mcp_lite.py lies two folders up, as in its repository
    sys.path.append(str(HERE.parents[1]))

import mcp_lite as mcp  # noqa: E402

SPECIFICATION = "https://modelcontextprotocol.io/specification/2026-07-28/"
MODERN = "2026-07-28"  # the first revision without a handshake
#: What a client says first, to a server that it does not know, and to one with a handshake.
DISCOVER = """{"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "mcp_doctor", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {}}}}""".replace("\n", "")
INITIALIZE = """{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {},
    "clientInfo": {"name": "mcp_doctor", "version": "1"}}}"""
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
DISCOVER_HEADERS = {"mcp-protocol-version": MODERN, "mcp-method": "server/discover", **HEADERS}

MAX_INSTRUCTIONS_CHARS = 2048  # of a server's instructions: Claude Code cuts off the rest
MAX_DESCRIPTION_CHARS = 1024  # of a tool: OpenAI takes no more
MAX_CURSOR_NAME_CHARS = 60  # of the server's name and the tool's together
SLOW_START_SECONDS = 5.0  # half of what some applications wait for
CALL_SECONDS = 30.0  # for the result of a tool
REFUSAL_SECONDS = 10.0  # for an answer to what makes no sense
PING_SECONDS = 0.1  # from the call of a tool to a ping
MAX_RESULT_CHARS = 50_000  # Claude Code writes what is longer to a file, and shows its beginning
RESULT_LIMIT = "anthropic/maxResultSizeChars"  # in _meta of a tool: lifts that limit
BLOCKED_SECONDS = 1.0  # for an answer to a ping, while a tool is at work

PROFILES = ("claude", "openai", "gemini", "cursor", "vscode")
#: The names that a tool may have.
NAME_PATTERNS = {
    "claude": "[a-zA-Z0-9_-]{1,64}", "openai": "[a-zA-Z0-9_-]{1,64}",
    "gemini": "[a-zA-Z_][a-zA-Z0-9_.:-]{0,62}", "vscode": ".{1,64}",
}  # fmt: skip
#: How many tools there may be, of all servers together.
MOST_TOOLS = {"cursor": 40, "openai": 128, "vscode": 128}
#: What a declaration of a function for Gemini cannot have, and the formats that it can have.
NOT_FOR_GEMINI = set(
    "$ref $defs const oneOf not if propertyNames patternProperties exclusiveMinimum"
    " exclusiveMaximum dependentSchemas".split()
)
GEMINI_FORMATS = "enum date-time int32 int64 float double".split()
#: Keywords that only describe: every value fits them.
ANNOTATIONS = set("title description default examples deprecated $comment".split())

METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND = -32601, -32602, -32002
#: Requests that make no sense: what they are, the method, the parameters.
NONSENSE: list[Any] = [
    ("an unknown method", "check/nothing", {}),
    ("an unknown tool", "tools/call", {"name": "check-nothing", "arguments": {}}),
    ("an unknown cursor", "tools/list", {"cursor": "check-nothing"}),
    ("an unknown prompt", "prompts/get", {"name": "check-nothing"}),
    ("an unknown resource", "resources/read", {"uri": "check://nothing"}),
]
TOKEN = "MCP_LITE_TOKEN"  # a variable: what --token says, where no list of processes shows it
LOOPBACK = r"https?://(localhost|127[.\d]+|\[::1\])([:/]|$)"
FOREIGN = "check.invalid"  # a name that no host can have. RFC 6761 §6.4


class Rule(NamedTuple):
    """One thing that can be wrong, or unwise."""

    level: str
    text: str
    remedy: str
    source: str  # "spec: " and a page of the specification, or another place
    breaks: Sequence[str] = ()  # who suffers, of PROFILES; everybody, if it is empty


#: As their sources had it on 2026-11-22.
RULES = {
    # What is listed.
    "same-name": Rule(
        "error", "two have one name: only one can be reached", "rename one",
        "spec: server/tools#tool-names"),
    "refused-name": Rule(
        "warning", "applications refuse the name, or all tools because of it",
        "at most 60 of a-z 0-9 _ -, and a letter first", "https://github.com/openai/codex/issues/8694",
        [*NAME_PATTERNS]),
    "long-name": Rule(
        "warning", "the server's and the tool's name are too long together: the tool vanishes",
        "shorten one of them", "https://github.com/sparfenyuk/mcp-proxy/issues/45", ["cursor"]),
    "many-tools": Rule(
        "warning", "there are more tools than an application takes",
        "join tools that belong together, or split the server",
        "https://github.com/microsoft/vscode-copilot-release/issues/11653", [*MOST_TOOLS]),
    "no-description": Rule(
        "warning", "there is no description: the model has the name alone",
        "say when to use it, and what comes back", "spec: server/tools#tool"),
    "long-description": Rule(
        "warning", "the description is longer than a provider takes",
        f"at most {MAX_DESCRIPTION_CHARS:,} characters",
        "https://github.com/cejor6/mcpconform", ["openai"]),
    "long-instructions": Rule(
        "warning", "the instructions are cut off",
        f"at most {MAX_INSTRUCTIONS_CHARS:,} characters", "measured with Claude Code 2.1.285",
        ["claude"]),
    # Schemas.
    "bad-schema": Rule(
        "error", "this is no usable JSON Schema", "JSON Schema 2020-12",
        "spec: basic/index#json-schema-usage"),
    "no-object": Rule(
        "error", "an inputSchema is a schema of an object",
        '{"type": "object", "additionalProperties": false} for no arguments',
        "spec: server/tools#tool"),
    "required-unknown": Rule(
        "error", "an argument is required that the schema does not have",
        "add it to properties, or take it out of required", "https://github.com/cejor6/mcpconform"),
    "no-type": Rule(
        "warning", "an argument without a type: what the model sends is not checked",
        "annotate the parameter, or give its schema a type",
        "spec: server/tools#security-considerations"),
    "choice-on-top": Rule(
        "error", "oneOf, anyOf or allOf at the top of an inputSchema: all tools are refused, or "
        "this one vanishes", "put the choice into a property",
        "https://github.com/anthropics/claude-code/issues/95504", ["claude", "openai"]),
    "no-items": Rule(
        "warning", "an array without items: the tool is refused", "say what the array holds",
        "https://github.com/microsoft/vscode/issues/246119", ["gemini", "openai", "vscode"]),
    "list-of-types": Rule(
        "warning", "a list of types: some agent frameworks lose all tools of the server",
        "anyOf, with one type each; or leave the null away",
        "measured with AutoGen, DSPy and Semantic Kernel in November 2026"),
    "no-safety": Rule(
        "warning", "neither readOnlyHint nor destructiveHint: applications take it for destructive,"
        " and ask before each call", "annotations={\"readOnlyHint\": True}, or what is true",
        "spec: schema#toolannotations", ["claude", "openai", "vscode"]),
    "bad-default": Rule(
        "warning", "the default does not fit its own schema", "correct one of them",
        "JSON Schema 2020-12 §9.2"),
    "not-for-gemini": Rule(
        "warning", "keywords that a declaration of a function has not",
        "say it in simpler ones, or in the description",
        "https://github.com/taylorwilsdon/google_workspace_mcp/issues/1099", ["gemini"]),
    "output-not-object": Rule(
        "warning", "the outputSchema is not of an object: clients before the newest revision may "
        "drop all tools", '{"type": "object", ...}', "https://github.com/opentokenz/mcpx/issues/28"),
    # A server at work.
    "stdout": Rule(
        "error", "it prints to standard output, which is the protocol's",
        "print to standard error", "spec: basic/transports/stdio"),
    "slow-start": Rule(
        "warning", "it is slow to start: applications give up after 10 s or so",
        "import and connect when the first call needs it", "https://github.com/openai/codex"),
    "ends-early": Rule(
        "warning", "it does not answer a first message other than `initialize`: newer clients "
        "begin with server/discover", "answer with an error",
        "spec: basic/transports/stdio#backward-compatibility"),
    "no-list": Rule(
        "error", "a list that was declared cannot be read", "answer it, or do not declare it",
        "spec: server/tools#capabilities"),
    "wrong-code": Rule(
        "warning", "what cannot be is not refused as it should be",
        "answer with the error code that is due", "spec: server/tools#error-handling"),
    "silence": Rule(
        "error", "a request that makes no sense gets no answer", "answer every request",
        "JSON-RPC 2.0 §5"),
    "death": Rule(
        "error", "it ended", "a request must not end a server", "JSON-RPC 2.0 §5"),
    "blocks": Rule(
        "warning", "it answers nothing else meanwhile: it blocks its event loop",
        "let what blocks run in a thread: with mcp_lite, a plain `def` does",
        "https://github.com/modelcontextprotocol/python-sdk/issues/1839"),
    "failed-call": Rule(
        "warning", "a call without arguments failed", "see its message",
        "spec: server/tools#error-handling"),
    "long-result": Rule(
        "warning", "the result is longer than an application shows to the model",
        f"return less, or pages; or _meta={{{RESULT_LIMIT!r}: ...}} of the tool",
        "https://code.claude.com/docs/en/mcp", ["claude"]),
    "bad-output": Rule(
        "error", "structuredContent does not fit the outputSchema", "correct one of them",
        "spec: server/tools#output-schema"),
    "origin": Rule(
        "error", "any web page may call it: a foreign Origin is let in",
        "answer 403 to an Origin that is not yours", "spec: basic/transports/streamable-http"),
    "host": Rule(
        "error", "any web page may call it: a foreign Host is let in on loopback",
        "check Host, too: DNS can be rebound", "spec: basic/transports/streamable-http"),
    "open-door": Rule(
        "warning", "it is not on loopback, and wants no login", "ask for a token",
        "spec: basic/transports/streamable-http"),
    "headers": Rule(
        "error", "headers that contradict the body are let in", "answer 400",
        "spec: basic/transports/streamable-http#server-validation"),
}  # fmt: skip

Finding = dict[str, Any]


def finding(name: str, place: str, detail: object = "", *breaks: str) -> Finding:
    """Return that a rule is broken at a place, as in "tool 'add'", and for whom."""
    level, text, remedy, source, who = RULES[name]
    return {"rule": name, "level": level, "place": place, "text": text, "detail": str(detail),
            "breaks": breaks or who, "remedy": remedy,
            "source": source.replace("spec: ", SPECIFICATION)}  # fmt: skip


# What a server lists. It may have sent anything: no judgement raises an exception.


def as_dict(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def findings_of(offer: Mapping[str, Any]) -> Iterator[Finding]:
    """Judge what a server offers.

    `offer` has "tools" and "prompts" as they were listed, and "instructions" and "serverInfo" as
    the server gave them; what is absent is not judged.
    """
    tools = offer.get("tools", ())
    for kind in ("tool", "prompt"):
        items = offer.get(f"{kind}s", ())
        for name, count in Counter(item["name"] for item in items).items():
            if count > 1:
                yield finding("same-name", f"{kind} {name!r}", f"{count} times")
        for item in items:
            if not str(item.get("description") or "").strip():
                yield finding("no-description", f"{kind} {item['name']!r}")
    few = [profile for profile, most in MOST_TOOLS.items() if len(tools) > most]
    if few:
        yield finding("many-tools", "tools", len(tools), *few)
    if len(str(offer.get("instructions"))) > MAX_INSTRUCTIONS_CHARS:
        yield finding("long-instructions", "instructions")
    server = str(as_dict(offer.get("serverInfo")).get("name", ""))
    for tool in tools:
        place, name = f"tool {tool['name']!r}", tool["name"]
        refused = [who for who, form in NAME_PATTERNS.items() if not re.fullmatch(form, name)]
        if refused:
            yield finding("refused-name", place, "", *refused)
        if len(server + name) > MAX_CURSOR_NAME_CHARS:
            yield finding("long-name", place, f"{len(server + name)} characters with {server!r}")
        if len(str(tool.get("description"))) > MAX_DESCRIPTION_CHARS:
            yield finding("long-description", place)
        yield from judge_schemas(place, tool)


def judge_schemas(place: str, tool: Mapping[str, Any]) -> Iterator[Finding]:
    """Judge the annotations and the schemas of a tool."""
    if not {"readOnlyHint", "destructiveHint"} & as_dict(tool.get("annotations")).keys():
        yield finding("no-safety", place)
    schema = as_dict(tool.get("inputSchema"))
    output = tool.get("outputSchema", {"type": "object"})
    for rule, each in (("no-object", schema), ("output-not-object", output)):
        if as_dict(each).get("type") != "object":
            yield finding(rule, place)
        try:
            mcp.compile_schema(each)
        except mcp.SchemaError as exc:
            yield finding("bad-schema", place, exc)
            return
    on_top = [key for key in ("oneOf", "anyOf", "allOf") if key in schema]
    if on_top:
        yield finding("choice-on-top", place, ", ".join(on_top))
    for name, field in as_dict(schema.get("properties")).items():
        if not as_dict(field).keys() - ANNOTATIONS:
            yield finding("no-type", f"{place}, {name}")
    for where, node in schemas_in(schema):
        yield from judge_node(f"{place}, {where}".rstrip(", "), node)


def schemas_in(schema: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all schemas in a schema, itself first, and their places, such as "a.b[]"."""
    yield place, schema
    for key, value in schema.items():
        if key in ("properties", "$defs"):  # by names that are the author's
            for name, field in as_dict(value).items():
                yield from schemas_in(as_dict(field), f"{place}.{name}".lstrip("."))
        elif key not in ("default", "const", "enum", "examples"):
            for each in [value, *as_list(value)]:
                if isinstance(each, dict):
                    yield from schemas_in(each, place + "[]" * (key == "items"))


def judge_node(place: str, node: dict[str, Any]) -> Iterator[Finding]:
    """Judge one of the schemas in a schema."""
    kind, known = node.get("type"), as_dict(node.get("properties"))
    if "array" in (kind, *as_list(kind)) and "items" not in node:
        yield finding("no-items", place)
    if isinstance(kind, list):
        yield finding("list-of-types", place, ", ".join(map(str, kind)))
    unknown = [name for name in map(str, as_list(node.get("required"))) if name not in known]
    if unknown and kind == "object" and "patternProperties" not in node:
        yield finding("required-unknown", place, ", ".join(unknown))
    if "default" in node and "$ref" not in str(node):  # what it refers to stands elsewhere
        try:
            mcp.compile_schema(node).check(node["default"])
        except mcp.SchemaError as exc:
            yield finding("bad-default", place, exc)
    odd = sorted(NOT_FOR_GEMINI & node.keys())
    if node.get("format", "enum") not in GEMINI_FORMATS:
        odd.append(f"format {node['format']}")
    if not all(isinstance(each, str) for each in as_list(node.get("enum"))):
        odd.append("an enum of other values than strings")
    if odd:
        yield finding("not-for-gemini", place, ", ".join(odd))


def judge_result(
    place: str, tool: Mapping[str, Any], result: Mapping[str, Any]
) -> Iterator[Finding]:
    """Judge the result of a call."""
    text = "".join(str(as_dict(each).get("text", "")) for each in as_list(result.get("content")))
    if result.get("isError"):
        yield finding("failed-call", place, text[:200])
        return
    if len(text) > as_dict(tool.get("_meta")).get(RESULT_LIMIT, MAX_RESULT_CHARS):
        yield finding("long-result", place, f"{len(text):,} characters")
    try:
        mcp.compile_schema(tool.get("outputSchema", {})).check(result.get("structuredContent"))
    except mcp.SchemaError as exc:
        yield finding("bad-output", place, exc)


# A server at work.


class Checkup:
    """A look at one server, through a Client that is not connected yet."""

    def __init__(self, client: mcp.Client) -> None:
        self.client, self.revision = client, MODERN
        self.found: list[Finding] = []
        self.seen: Counter[str] = Counter()  # how many there were of what was looked at

    def find(self, name: str, place: str, detail: object = "") -> None:
        """Note that a rule is broken."""
        self.found.append(finding(name, place, detail))

    async def run(self, call: bool = False) -> str:
        """Look at the server; return why it cannot be used, or ""."""
        began = time.monotonic()
        try:
            await self.client.connect()
            self.revision = self.client.revision
            seconds = time.monotonic() - began
            if seconds > SLOW_START_SECONDS:
                self.find("slow-start", "the server", f"{seconds:.1f} s")
            for tool in await self.read_lists():
                only_reads = as_dict(tool.get("annotations")).get("readOnlyHint") is True
                if call and only_reads and not as_dict(tool.get("inputSchema")).get("required"):
                    await self.try_tool(f"tool {tool['name']!r}", tool)
            for place, method, params in NONSENSE:
                await self.ask_nonsense(place, method, params)
        except mcp.MCPError as exc:
            return str(exc)
        finally:
            await self.client.close()
        return ""

    async def read_lists(self) -> list[Any]:
        """Judge all lists, and return the tools."""
        offer: dict[str, Any] = {"serverInfo": self.client.server_info, "tools": [],
                                 "instructions": self.client.instructions}  # fmt: skip
        for kind in ("tools", "prompts", "resources", "templates"):
            try:
                offer[kind] = await getattr(self.client, f"list_{kind}")()
                self.seen[kind] = len(offer[kind])
            except mcp.CapabilityMissing:  # the server has no such list
                pass
            except mcp.MCPError as exc:
                self.find("no-list", kind, exc)
        self.found += findings_of(offer)
        return list(offer["tools"])

    async def try_tool(self, place: str, tool: Mapping[str, Any]) -> None:
        """Call a tool, and see whether the server answers others meanwhile."""
        params = {"name": tool["name"], "arguments": {}}
        call = asyncio.ensure_future(self.client.request("tools/call", params))
        try:
            await asyncio.wait({call}, timeout=PING_SECONDS)
            seconds = await self.client.ping()
            if seconds > BLOCKED_SECONDS:
                self.find("blocks", place, f"for {seconds:.1f} s")
            self.found += judge_result(place, tool, await call)
        except mcp.MCPError as exc:
            self.find("failed-call", place, exc)
        finally:
            call.cancel()
            await asyncio.wait({call})

    async def ask_nonsense(self, place: str, method: str, params: dict[str, Any]) -> None:
        """Send a request of NONSENSE, and see how it is refused."""
        codes = [INVALID_PARAMS, RESOURCE_NOT_FOUND]
        if method == "check/nothing":
            codes = [METHOD_NOT_FOUND]
        got: Any = codes[0]
        try:
            await self.client.request(method, params, timeout=REFUSAL_SECONDS)
            got = "a result"
        except mcp.CapabilityMissing:  # the server did not say that it can be asked
            pass
        except mcp.RemoteError as exc:
            got = exc.code
        except mcp.RequestTimeout as exc:
            self.find("silence", place, exc)
        except mcp.ConnectionClosed as exc:
            self.find("death", place, exc)
            raise
        if got not in codes:
            self.find("wrong-code", place, f"{got}, where {codes[0]} is due")


def stdio_findings(words: list[str], env: Mapping[str, str]) -> Iterator[Finding]:
    """Start a server by hand, greet it as new clients do, and read all that it prints."""
    if re.search(r"\.py:\w+$", words[0]):
        words = [inspect.getfile(mcp.Client), "serve", *words]
    python = [sys.executable] * words[0].endswith(".py")
    child: Any = subprocess.Popen(python + words, 0, stdin=PIPE, stdout=PIPE, stderr=DEVNULL,
                                  env={**os.environ, **env})  # fmt: skip
    killer = threading.Timer(REFUSAL_SECONDS, child.kill)
    killer.start()
    with child:
        child.stdin.write(f"{DISCOVER}\n".encode())
        for line in child.stdout:
            if line.lstrip().startswith(b"{"):
                break
            yield finding("stdout", "the server", line.decode(errors="replace")[:200])
        else:
            yield finding("ends-early", "the server")
    killer.cancel()


def knock(url: str, headers: Mapping[str, str], body: str, ca: Optional[str]) -> int:
    """Send one request by hand, and return the status of its answer."""
    scheme, _, host, *path = url.split("/", 3)
    connection = http.client.HTTPConnection(host, timeout=REFUSAL_SECONDS)
    if scheme == "https:":
        trust = ssl.create_default_context(cafile=ca)
        connection = http.client.HTTPSConnection(host, timeout=REFUSAL_SECONDS, context=trust)
    try:
        connection.request("POST", "/" + "".join(path), body, dict(headers))
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 400  # no answer is a refusal, too
    finally:
        connection.close()


def http_findings(url: str, revision: str, ca: Optional[str]) -> Iterator[Finding]:
    """Knock as a web page can, which knows no token; and with headers that are wrong."""
    modern = revision >= MODERN
    usual, body = (DISCOVER_HEADERS, DISCOVER) if modern else (HEADERS, INITIALIZE)
    loopback = re.match(LOOPBACK, url, re.I)
    odd = {"origin": {"origin": f"https://{FOREIGN}"}}
    if loopback:
        odd["host"] = {"host": FOREIGN}
    if modern:
        odd["headers"] = {"mcp-method": "tools/list"}
    for name, more in odd.items():
        if knock(url, {**usual, **more}, body, ca) < 400:
            yield finding(name, url)
    if not loopback and knock(url, usual, body, ca) < 400:
        yield finding("open-door", url)


# The command line.


def harmless(text: str) -> str:
    """Return text that a terminal only shows, whatever a server has put into it."""
    return "".join(char if char.isprintable() else " " for char in text)


def report(found: Sequence[Finding], seen: Mapping[str, int]) -> None:
    """Print each rule once, with its places; then how much was seen."""
    for name, rule in RULES.items():
        places = [each for each in found if each["rule"] == name]
        if places:
            who = ", ".join(sorted({app for each in places for app in each["breaks"]}))
            print(f"{rule.level}: {rule.text}" + f" ({who})" * bool(who))
            for each in places:
                print("   ", harmless(f"{each['place']}: {each['detail']}".rstrip(": ")))
            print(f"  -> {rule.remedy}\n     {places[0]['source']}\n")
    counts = Counter(each["level"] for each in found)
    looked = ", ".join(f"{what}: {count}" for what, count in seen.items())
    print(f"errors: {counts['error']}, warnings: {counts['warning']}; looked at {looked}")


def split_at(form: str, word: str) -> tuple[str, str]:
    """Return the two parts of a word KEY=VALUE or NAME:VALUE, as mcp_lite.py reads it."""
    sign = re.sub(r"\w", "", form)
    name, found, value = word.partition(sign)
    if not (name and found):
        raise argparse.ArgumentTypeError(f"expected {form}")  # it may be a secret
    return name, value.strip() if sign == ":" else value


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the Client for a command line; ValueError: it is wrong."""
    url, env, headers = args.target[0], dict(args.env), dict(args.header)
    token = args.token or os.environ.get(TOKEN)
    if not re.match("(?i)https?://", url):
        if headers or args.token or args.ca:
            raise ValueError("--header, --token and --ca are for a URL: for a command, use --env")
        return {"env": env}
    if env:
        raise ValueError("--env is for a command: for a URL, use --header or --token")
    if token and "authorization" not in map(str.lower, headers):
        if not re.match(f"https:|{LOOPBACK}", url, re.I):
            raise ValueError(f"{url} is not https: the token of --token or ${TOKEN} is not sent")
        headers["Authorization"] = f"Bearer {token}"
    if args.ca and not os.path.isfile(args.ca):
        raise ValueError(f"there is no file {args.ca}")
    return {"headers": headers, "ssl": args.ca}


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Look at the server that the command line names, and print what was found."""
    parser = argparse.ArgumentParser(
        "doctor", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("target", nargs="+", help="a URL, FILE.py, FILE.py:APP, or `-- COMMAND ...`")
    add("--for", action="append", choices=PROFILES, dest="apps",
        help="whose limits matter (default: everybody's)")  # fmt: skip
    for option, form, what in (
        ("env", "KEY=VALUE", "set a variable for a command"), ("header", "NAME:VALUE", "for a URL"),
    ):  # fmt: skip
        add(f"--{option}", type=functools.partial(split_at, form), action="append", default=[],
            metavar=form, help=what)  # fmt: skip
    add("--token", help=f"bearer token for a URL; ${TOKEN} is safer")
    add("--ca", metavar="FILE", help="certificates to trust for a URL, in PEM")
    add("--call", action="store_true", help="call tools that only read and need no arguments")
    add("--strict", action="store_true", help="end with status 1 for a warning, too")
    add("--json", action="store_true", help="print an object a line for each finding")
    args = parser.parse_args(argv)
    apps, words = {*(args.apps or PROFILES)}, args.target
    try:
        options = options_of(args)
        client = mcp.Client(words if words[1:] else words[0], timeout=CALL_SECONDS,
                            max_timeout=CALL_SECONDS, **options)  # fmt: skip
    except (TypeError, ValueError) as exc:
        parser.error(str(exc))
    url = words[0] if "headers" in options else ""
    checkup = Checkup(client)
    why, found = asyncio.run(checkup.run(args.call)), checkup.found
    if not why:
        found += (http_findings(url, checkup.revision, args.ca) if url
                  else stdio_findings(words, options["env"]))  # fmt: skip
    found = [each for each in found if not each["breaks"] or apps & {*each["breaks"]}]
    if args.json:
        print(*map(json.dumps, found), sep="\n", end="\n" * bool(found))
    elif found or not why:
        report(found, checkup.seen)
    if why:
        print(f"error: {harmless(why).replace(' ssl=FILE', ' --ca FILE')}", file=sys.stderr)
        return 3
    bad = ("error", "warning")[: 1 + args.strict]
    return int(any(each["level"] in bad for each in found))


if __name__ == "__main__":
    sys.exit(main())
