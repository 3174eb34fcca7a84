#!/usr/bin/env python3
"""Put an MCP server into the configuration of an application, or into a bundle.

    python3 mcp_lite.py install cursor server.py             show the entry, and where it belongs
    python3 mcp_lite.py install cursor server.py --write     put it into Cursor's own file
    python3 mcp_lite.py install zed --name files -- npx -y some-server /tmp
    python3 mcp_lite.py install claude-desktop https://example.com/mcp --token SECRET --write
    python3 mcp_lite.py install mcpb server.py --write       write NAME.mcpb, a bundle

The file of an application belongs to somebody else: one entry is put into its text, every other
character stays, and a copy is kept beside it (.bak, .bak1, ...). Nothing is written in doubt: a
link, a file that cannot be read as settings, an entry of that name without --replace, a server that
cannot be used.
What is written is absolute, for an application may have no PATH, and work in any folder.

The server is started first as the application will start it, and its tools are listed. The entry
has the server's own name, or else that of its host or its file. If the server cannot be used, the
status is 3, and the entry is only printed.

A bundle is a zip file that applications install with one click: the server, the modules of its
folder that it imports, the files of --file, mcp_lite.py, and a manifest. The user needs Python 3.9
or later. The application asks the user for each --env; its VALUE is only used here, to list the
tools. Keep data that change elsewhere: an update of the bundle replaces its folder.

Limits: TOML (of Codex) is printed, not written. A bundle has no packages of pip.
"""

import argparse
import ast
import asyncio
import difflib
import functools
import getpass
import glob
import http.client
import inspect
import io
import itertools
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

HERE = pathlib.Path(__file__).resolve().parent
if HERE.name == "programs":  # mcp_lite.py lies two folders up, as in its repository
    sys.path.append(str(HERE.parents[1]))

import mcp_lite as mcp  # noqa: E402

Entry = dict[str, Any]
LOGIN_SECONDS = 10.0  # for each page that may tell of a login


class Application(NamedTuple):
    """A program that starts MCP servers, and the file that tells it which."""

    #: by sys.platform, "" for all others: those that exist count, or else the first
    files: dict[str, tuple[str, ...]]
    project: str = ""  # the file for one folder of work
    key: str = "mcpServers"  # the member that has the servers
    url: str = "url"  # the member of an entry that has the URL; "" if it takes commands only
    typed: bool = False  # whether an entry says "stdio" or "http"


def in_config(path: str) -> dict[str, tuple[str, ...]]:
    """Return where Electron applications keep a file."""
    return {"darwin": (f"~/Library/Application Support/{path}",), "win32": (f"$APPDATA/{path}",),
            "": (f"$XDG_CONFIG_HOME/{path}", f"~/.config/{path}")}  # fmt: skip


#: As their manuals, sources and users had it in November 2026.
APPLICATIONS = {
    "claude-desktop": Application({
        **in_config("Claude/claude_desktop_config.json"),
        "win32": (
            "$APPDATA/Claude/claude_desktop_config.json",
            "$LOCALAPPDATA/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json",
        ),
    }, url=""),
    "claude-code": Application({"": ("~/.claude.json",)}, ".mcp.json", typed=True),
    "cursor": Application({"": ("~/.cursor/mcp.json",)}, ".cursor/mcp.json"),
    "vscode": Application(in_config("Code/User/mcp.json"), ".vscode/mcp.json", "servers", "url",
                          True),
    "devin": Application({"": ("~/.codeium/windsurf/mcp_config.json",)}, url="serverUrl"),
    "zed": Application({
        "": ("$XDG_CONFIG_HOME/zed/settings.json", "~/.config/zed/settings.json"),
        "win32": ("$APPDATA/Zed/settings.json",),
    }, ".zed/settings.json", "context_servers"),
    "gemini": Application({"": ("~/.gemini/settings.json",)}, ".gemini/settings.json",
                          url="httpUrl"),
    "codex": Application({"": ("$CODEX_HOME/config.toml", "~/.codex/config.toml")},
                         ".codex/config.toml", "mcp_servers"),
}  # fmt: skip


def files_of(app: Application) -> list[str]:
    """Return the files in which an application looks; if there is none, the one to be made."""
    patterns = app.files.get(sys.platform) or app.files[""]
    paths = [os.path.expanduser(os.path.expandvars(pattern)) for pattern in patterns]
    there = [hit for path in paths for hit in glob.glob(path)]
    return there or [path for path in paths if "$" not in path][:1]  # "$": a variable is not set


# Entries.


def entry_of(
    app: Application, words: list[str], env: Entry, headers: Entry, ca: Optional[str] = None
) -> Entry:
    """Return how an application is told of a URL, or of a command; ValueError if it cannot be.

    No application has a place for certificates to trust: with `ca`, it starts a gateway.
    """
    if is_url(words[0]):
        if app.url and not ca:
            if env:
                raise ValueError("this application connects to the URL itself: use --token or "
                                 "--header in place of --env")  # fmt: skip
            if words[1:]:
                raise ValueError(f"{words[1]!r} is one word too many")
            key = "http_headers" if app.key == "mcp_servers" else "headers"
            entry: Entry = {"type": "http"} if app.typed else {}
            return {**entry, app.url: words[0], **({key: headers} if headers else {})}
        # In variables, for a list of processes shows the words of a command.
        names = {name: f"HEADER_{re.sub('[^A-Z0-9]', '_', name.upper())}" for name in headers}
        env = {**{names[name]: value for name, value in headers.items()}, **env}
        more = [f"--header={name}:${{{variable}}}" for name, variable in names.items()]
        trust = ["--ca", ca] if ca else []
        words = [inspect.getfile(mcp.Client), "gateway", *words, *more, *trust]
    elif headers or ca:
        raise ValueError("--header, --token and --ca are for a URL: for a command, use "
                         "--env KEY=VALUE")  # fmt: skip
    if re.search(r"\.py:\w+$", words[0]):
        words = [inspect.getfile(mcp.Client), "serve", *words]
    if words[0].endswith(".py"):
        words = [sys.executable, *words]
    program = shutil.which(words[0])
    if program is None:
        raise ValueError(f"there is no program {words[0]!r} here")
    argv = [*map(absolute, (program, *words[1:]))]
    if argv[0].lower().endswith((".cmd", ".bat")):  # no program, but a text for cmd.exe
        argv = ["cmd", "/c", "call", *argv]  # without `call`, it takes quotes for its own
    entry = {"type": "stdio"} if app.typed else {}
    return {**entry, "command": argv[0], "args": argv[1:], **({"env": env} if env else {})}


def is_url(word: str) -> bool:
    """Return whether a target is a URL."""
    return bool(re.match("(?i)https?://", word))


def headers_of(args: argparse.Namespace) -> Entry:
    """Return the headers of a command line; its token becomes one."""
    headers, url = dict(args.header), args.target[0]
    if args.token is None or "authorization" in map(str.lower, headers):
        return headers
    if re.match(r"(?i)http://(?!(localhost|127[.\d]+|\[::1\])([:/]|$))", url):
        raise ValueError(f"{url} is not https: its token could be read on the way. "
                         "--header 'Authorization: Bearer ...' is at your own risk")  # fmt: skip
    return {**headers, "Authorization": f"Bearer {args.token}"}


def absolute(word: str) -> str:
    """Return a word of a command; if it is a file, or a path with a slash, from the root."""
    path = re.sub(r"(?<=\.py):\w+$", "", word)
    if os.path.isfile(path) or (os.path.dirname(path) and os.path.exists(path)):
        return os.path.abspath(path) + word[len(path) :]
    if path.endswith(".py"):
        raise ValueError(f"there is no file {path}")
    return word


def as_toml(key: str, name: str, entry: Entry) -> str:
    """Return an entry as a table of TOML, whose strings and lists are those of JSON."""
    lines = [f"[{key}.{name if re.fullmatch('[A-Za-z0-9_-]+', name) else json.dumps(name)}]"]
    for key, value in entry.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict):
            pairs = (f"{json.dumps(name)} = {json.dumps(each)}" for name, each in value.items())
            text = f"{{ {', '.join(pairs)} }}"
        lines.append(f"{key} = {text}")
    return "\n".join(lines)


# A look at the server.


async def offer_of(client: mcp.Client) -> Entry:
    """Connect to a server, and return what a manifest says of it."""
    async with client:
        about = (client.instructions or "").strip().split("\n")[0]
        tools = [
            {key: tool[key] for key in ("name", "description") if key in tool}
            for tool in await client.list_tools()
        ] if "tools" in client.server_capabilities else []  # fmt: skip
        name, version = (str(client.server_info.get(key)) for key in ("name", "version"))
        return {
            "display_name": name, "version": version,
            "description": about or f"The MCP server {name}", "tools": tools,
        }  # fmt: skip


def has_login(url: str) -> bool:
    """Return whether an application can log in: metadata that tell how are named, or are there."""
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    try:
        request = urllib.request.Request(url, ping, headers)
        urllib.request.urlopen(request, timeout=LOGIN_SECONDS).close()
    except urllib.error.HTTPError as exc:
        with exc:
            if "resource_metadata=" in str(exc.headers.get_all("www-authenticate")):
                return True
    except (OSError, http.client.HTTPException):
        pass
    parts = urllib.parse.urlsplit(url)
    known = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-"
    places = (f"protected-resource{parts.path}", "protected-resource", "authorization-server")
    return any(is_document(known + place) for place in places)


def is_document(url: str) -> bool:
    """Return whether there is a JSON object at a URL."""
    try:
        with urllib.request.urlopen(url, timeout=LOGIN_SECONDS) as page:
            return isinstance(json.load(page), dict)
    except urllib.error.HTTPError as exc:
        exc.close()
    except (OSError, ValueError, http.client.HTTPException):
        pass
    return False


def look(app: Application, entry: Entry, cwd: Optional[str]) -> tuple[Entry, int]:
    """Return what the server of an entry offers, and 0; if it cannot be used, say why: {}, 3.

    A URL that has a login can be used: the application logs in.
    """
    headers = entry.get("headers") or entry.get("http_headers")
    try:
        if "command" in entry:
            client = mcp.Client([entry["command"], *entry["args"]], env=entry.get("env"), cwd=cwd,
                                stderr=mcp.Person().quote)  # fmt: skip
        else:
            client = mcp.Client(entry[app.url], headers=headers)
        return asyncio.run(offer_of(client)), 0
    except mcp.AuthError as exc:
        url = entry[app.url]
        if not headers and has_login(url):
            return {}, 0
        needed = mcp.AuthError(f"{url} needs a token: pass it by --token")
        return {}, mcp.complain(exc if headers or exc.code != 401 else needed)
    except mcp.RequestTimeout as exc:
        return {}, mcp.complain(mcp.MCPError(str(exc).partition(";")[0]))
    except mcp.MCPError as exc:
        return {}, mcp.complain(exc)


def name_of(word: str, offer: Entry) -> str:
    """Return how an application is to call a server: as it does itself, or by its host or file."""
    named = [offer.get("display_name", "")]
    if named[0] in ("mcp_lite", "gateway", "None"):  # as all are called that have no name
        named.clear()
    named.append(word.split("/")[2] if is_url(word) else pathlib.Path(word).name.split(".py")[0])
    bare = (re.sub(r"\W+", "-", each, flags=re.ASCII).strip("-") for each in named)
    return next(filter(None, bare), "server")


# Text with one entry more.


def blanked(text: str) -> str:
    """Return JSON with comments as JSON: blanks for comments, and for commas before a bracket.

    Every character that is left stands where it stood.
    """
    string = r'"(?:[^"\\]|\\.?)*(?:"|\Z)'
    for other in (r"//[^\r\n]*|/\*.*?(?:\*/|\Z)", r",(?=\s*[}\]])"):
        text = re.sub(
            f"(?s){string}|{other}",
            lambda hit: hit[0] if hit[0][0] == '"' else re.sub(r"[^\r\n]", " ", hit[0]), text,
        )  # fmt: skip
    return text


def put_entry(text: str, key: str, name: str, entry: Entry, replace: bool = False) -> str:
    """Return the text of a JSON object in which the table `key` has `name`; all else is as it was.

    Where the entry belongs is guessed: only a guess with the right effect is taken.
    """
    bare = blanked(text)
    settings = json.loads(bare)
    servers = settings.get(key, {})
    if name in servers and not replace:
        raise ValueError(f"it has {name!r}: pass --replace, or another --name")
    wanted = {**settings, key: {**servers, name: entry}}
    unit = (re.findall(r"\n([ \t]+)(?=\S)", bare) or ["  "])[0]
    if name in servers:
        guesses = replaced(text, name, entry, unit)
    elif key in settings:
        guesses = inserted(text, json.dumps(key) + r"\s*:\s*\{", {name: entry}, unit, unit)
    else:
        guesses = inserted(text, r"\A\s*\{", {key: {name: entry}}, unit, "")
    for guess in guesses:
        if json.loads(blanked(guess)) == wanted:
            return guess
    raise ValueError("there is no place for the entry")


def replaced(text: str, name: str, entry: Entry, unit: str) -> Iterator[str]:
    """Yield the texts in which one value of a name is an entry."""
    bare = blanked(text)
    for hit in re.finditer(re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:\s*", bare):
        _, end = json.JSONDecoder().raw_decode(bare, hit.end())
        margin = re.findall(r"(?m)^[ \t]*", text[: hit.start()])[-1]
        several = "\n" in text[hit.end() : end]  # lines
        new = json.dumps(entry, indent=unit if several else None, ensure_ascii=False)
        yield text[: hit.end()] + new.replace("\n", f"\n{margin}") + text[end:]


def inserted(text: str, before: str, given: Entry, unit: str, indent: str) -> Iterator[str]:
    """Yield the texts in which what is given stands after a place that matches `before`."""
    bare = blanked(text)
    lines = json.dumps(given, indent=unit, ensure_ascii=False).split("\n")[1:-1]
    new = "".join(f"\n{indent}{line}" for line in lines)
    for hit in re.finditer(before, bare):
        head, rest = text[: hit.end()], text[hit.end() :]
        comma = "" if bare[hit.end() :].lstrip().startswith("}") else ","
        gap = "" if re.match(r"[ \t]*\r?\n", rest) else f"\n{indent}"
        inline = re.match(r'( *)"', rest)
        if inline:  # a member follows on the same line: so does it after the new one
            new = inline[1] + json.dumps(given, ensure_ascii=False)[1:-1]
            gap = "" if inline[1] else " "
        yield head + new + comma + gap + rest


def write_entry(path: str, key: str, name: str, entry: Entry, replace: bool) -> str:
    """Put an entry into a file of settings, and return what was done; ValueError: nothing was."""
    if os.path.islink(path):
        raise ValueError(f"it is a link to {os.path.realpath(path)}")
    file = pathlib.Path(path)
    there = file.exists()
    before = file.read_bytes().decode() if there else ""
    after = put_entry(before if before.strip() else "{}\n", key, name, entry, replace)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as new:
        new.write(after.encode())  # for its owner alone: an entry may hold a secret
    names = (f"{path}.bak{n or ''}" for n in itertools.count())  # the next of .bak, .bak1, .bak2
    copy = next(each for each in names if not os.path.exists(each))
    if there:
        shutil.copy2(path, copy)
        shutil.copymode(path, new.name)
    try:
        os.replace(new.name, path)
    except OSError:  # on Windows, while another program has it open
        os.unlink(new.name)
        raise
    return f"{path} has {name} now" + f"; as it was: {copy}" * there


# Bundles: https://github.com/modelcontextprotocol/mcpb/blob/main/MANIFEST.md


def modules_of(path: pathlib.Path) -> dict[str, pathlib.Path]:
    """Return a file and what it imports from its folder, by their names there."""
    found, todo = {path.name: path}, [path]
    while todo:
        names: set[str] = set()
        for node in ast.walk(ast.parse(todo.pop().read_bytes())):
            if isinstance(node, ast.Import):
                names |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").partition(".")[0])
        for name in names - {"", "mcp_lite"}:
            inner = sorted((path.parent / name).rglob("*.py"))
            for file in [path.parent / f"{name}.py", *inner]:
                place = file.relative_to(path.parent).as_posix()
                if file.is_file() and place not in found:
                    found[place] = file
                    todo.append(file)
    return {**found, "mcp_lite.py": pathlib.Path(inspect.getfile(mcp.Client))}


def manifest_of(target: str, offer: Entry, name: str, author: str, env: Entry) -> Entry:
    """Return the manifest of a bundle with a server."""
    file = "server/" + os.path.basename(re.sub(r":\w+$", "", target))
    args = ["${__dirname}/" + file]
    if re.search(r"\.py:\w+$", target):
        args = ["${__dirname}/server/mcp_lite.py", "serve", args[0] + target[target.rindex(":") :]]
    config: Entry = {
        "command": "python3", "args": args, "platform_overrides": {"win32": {"command": "python"}},
    }  # fmt: skip
    more: Entry = {}
    if env:
        config["env"] = {key: f"${{user_config.{key.lower()}}}" for key in env}
        more["user_config"] = {
            key.lower(): {"type": "string", "title": key, "description": f"The value of {key}",
                          "sensitive": True, "required": True} for key in env
        }  # fmt: skip
    return {
        "manifest_version": "0.3", "name": name, **offer, "author": {"name": author},
        "server": {"type": "python", "entry_point": file, "mcp_config": config},
        "compatibility": {"runtimes": {"python": ">=3.9"}}, **more,
    }  # fmt: skip


def files_of_bundle(target: str, named: list[str]) -> dict[str, pathlib.Path]:
    """Return a server's modules, and the files and folders named, by their places in its folder."""
    path = pathlib.Path(os.path.abspath(re.sub(r":\w+$", "", target)))
    found: dict[str, pathlib.Path] = {}
    for word in named:
        whole = pathlib.Path(os.path.abspath(path.parent / word))
        if path.parent not in whole.parents:
            raise ValueError(f"{word} is not in the folder of {path.name}")
        files = [each for each in [whole, *sorted(whole.rglob("*"))] if each.is_file()]
        if not files:
            raise ValueError(f"there is no file {word} beside {path.name}")
        for each in files:
            if path.parent.resolve() not in each.resolve().parents:
                raise ValueError(f"{each} is a link out of the folder of {path.name}")
        found.update({each.relative_to(path.parent).as_posix(): each for each in files})
    return {**found, **modules_of(path)}


def write_bundle(files: dict[str, pathlib.Path], manifest: Entry, replace: bool) -> str:
    """Write a bundle into this folder, and return what was done; ValueError if it is there."""
    name = f"{manifest['name']}.mcpb"
    if os.path.islink(name):
        raise ValueError(f"{name} is a link to {os.path.realpath(name)}")
    if os.path.exists(name) and not replace:
        raise ValueError(f"{name} is there: pass --replace, or another --name")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as bundle:
        bundle.writestr("manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False))
        for place, file in files.items():
            bundle.write(file, f"server/{place}")
        names = ", ".join(sorted(bundle.namelist()))
    pathlib.Path(name).write_bytes(data.getvalue())  # only now: a file may be missing
    return f"{name} has {names}; --file adds what else it reads"


# The command line.


def split_at(form: str, word: str) -> tuple[str, str]:
    """Return the two parts of a word KEY=VALUE or NAME:VALUE, as mcp_lite.py reads it."""
    sign = re.sub(r"\w", "", form)
    name, found, value = word.partition(sign)
    if not (name and found):
        raise argparse.ArgumentTypeError(f"expected {form}")  # it may be a secret
    return name, value.strip() if sign == ":" else value


def make_bundle(args: argparse.Namespace, offer: Entry, name: str) -> None:
    """Print the manifest of a bundle, or write the bundle."""
    author = args.author or getpass.getuser()
    manifest = manifest_of(args.target[0], offer, name, author, dict(args.env))
    files = files_of_bundle(args.target[0], args.file)
    whole = json.dumps(manifest, indent=2)
    print(write_bundle(files, manifest, args.replace) if args.write else whole)


def make_entry(args: argparse.Namespace, entry: Entry, name: str) -> None:
    """Print the entry of a server for an application, or write it into the application's files."""
    app = APPLICATIONS[args.app]
    paths = [app.project] * bool(app.project) if args.project else files_of(app)
    if args.project and not paths:
        raise ValueError(f"{args.app} has no file for a folder: leave --project out")
    toml = app.key == "mcp_servers"
    if args.write and (toml or not paths):
        raise ValueError(f"{' and '.join(paths)} is left alone: add the entry by hand")
    for path in paths * args.write:
        try:
            print(write_entry(path, app.key, name, entry, args.replace))
        except (OSError, ValueError, AttributeError, TypeError, RecursionError) as exc:
            raise ValueError(f"{path} is left alone: {exc}") from exc
    if args.write:
        print(f"Restart {args.app}, or reload its servers.", file=sys.stderr)
    else:
        whole = json.dumps({app.key: {name: entry}}, indent=2)
        print(as_toml(app.key, name, entry) if toml else whole)
        print(f"in {' and '.join(paths) or 'a file that is not known'}", file=sys.stderr)


def application(word: str) -> str:
    """Return a word that names an application, as the command line has it."""
    known = [*APPLICATIONS, "mcpb"]
    if word in known:
        return word
    near = [name for name in known if name.startswith(word)]
    near = near or difflib.get_close_matches(word, known)
    meant = f"did you mean {' or '.join(near)}?" if near else f"available: {', '.join(known)}"
    raise argparse.ArgumentTypeError(f"no application {word!r}; {meant}")


def command_line() -> argparse.ArgumentParser:
    """Return what reads a command line."""
    parser = argparse.ArgumentParser(
        "install", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("app", type=application, metavar="APP",
        help=", ".join([*APPLICATIONS, "or mcpb for a bundle"]))  # fmt: skip
    add("target", nargs="+", help="a URL, FILE.py, FILE.py:APP, or `-- COMMAND ...`")
    add("--write", action="store_true", help="put it into the application's file")
    add("--project", action="store_true", help="for this folder, not for all that I do")
    add("--replace", action="store_true", help="replace an entry of that name, or a bundle")
    add("--name", help="how the application calls the server")
    add("--author", help="of a bundle; by default your name on this machine")
    add("--file", action="append", default=[], metavar="PATH",
        help="put this into a bundle, too: a file or folder in that of the server")  # fmt: skip
    for name, form, what in (
        ("env", "KEY=VALUE", "for a command"), ("header", "NAME:VALUE", "for a URL"),
    ):  # fmt: skip
        add(f"--{name}", type=functools.partial(split_at, form), action="append", default=[],
            metavar=form, help=what)  # fmt: skip
    add("--token", help="for a URL, as --header 'Authorization: Bearer TOKEN'")
    add("--ca", metavar="FILE", help="for a URL, certificates to trust, in PEM")
    return parser


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Print or write the entry of a server for an application."""
    parser = command_line()
    args = parser.parse_args(argv)
    bundle, env = args.app == "mcpb", dict(args.env)
    try:
        if bundle:
            if args.target[1:] or not re.search(r"\.py(:\w+)?$", args.target[0]):
                raise ValueError("a bundle has one FILE.py or FILE.py:APP")
            env["PYTHONPATH"] = os.path.dirname(inspect.getfile(mcp.Client))  # as in the bundle
        elif args.file:
            raise ValueError("--file is for a bundle")
        app = APPLICATIONS.get(args.app, Application({}))
        if args.ca and not os.path.isfile(args.ca):
            raise ValueError(f"there is no file {args.ca}")
        entry = entry_of(app, args.target, env, headers_of(args), args.ca)
        offer, status = look(app, entry, None if args.project else os.sep)
        if status and not args.project and entry.get("command") and not is_url(args.target[0]):
            print(f"it was started in the folder {os.sep}: an application may choose any folder",
                  file=sys.stderr)  # fmt: skip
        if status and (bundle or args.write):
            print("nothing is written", file=sys.stderr)
            return status
        name = args.name or name_of(args.target[0], offer)
        if bundle:
            make_bundle(args, offer, name)
        else:
            make_entry(args, entry, name)
    except (OSError, SyntaxError, ValueError) as exc:
        parser.error(str(exc))
    return status


if __name__ == "__main__":
    sys.exit(main())
