"""Run the programs of examples/porting, before and after: python3 .ci/porting.py

Both versions of a server answer the same calls with the same values, over stdio. Fewer things are
compared where the protocol leaves a choice: the texts of errors, titles, the form of a schema. Both
versions of a client print the same.
"""

import asyncio
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from install import Missing, install_python

from mcp_lite import Client, MCPError, ToolError

ROOT = pathlib.Path(__file__).resolve().parents[1]
REVISION = "2025-11-25"  # FastMCP cannot ask the user in the one after it
LIBRARIES = {"fastmcp": "fastmcp==4.1.2", "sdk": "mcp==2.3.0", "sdk 1": "mcp==1.30.0"}
SERVERS = {"fastmcp": "fastmcp", "fleet": "fastmcp", "sdk": "sdk", "lowlevel": "sdk 1"}
CLIENTS = ["fastmcp", "sdk"]
CALLS = {
    "fastmcp": [
        ("find", {"text": "E"}), ("find", {"text": "E", "limit": 1}),
        ("find", {"text": "E", "limit": 0}), ("lend", {"title": "Persuasion"}),
        ("lend", {"title": "Emma"}), ("lend", {}),
    ],
    "sdk": [
        ("find", {"text": "emma"}), ("find", {}), ("lend", {"titles": ["Persuasion"]}),
        ("lend", {"titles": ["Persuasion", "Emma"]}),
    ],
    "fleet": [
        ("state", {"van": "V1"}), ("state", {"van": "V9"}), ("send", {"van": "V1", "hours": 2}),
        ("state", {"van": "V1"}), ("reports_count", {"states": ["a", "b", "a"]}),
    ],
    "lowlevel": [
        ("count", {"item": "nails"}), ("count", {"item": "bolts"}), ("take", {"item": "nails"}),
        ("take", {"item": "nails"}), ("count", {"item": "nails"}),
    ],
}  # fmt: skip
URIS = {"fastmcp": "book://Persuasion", "sdk": "library://rules", "lowlevel": "stock://screws"}


async def observe(name, command):
    """Return what a client sees of a server."""
    seen, heard = [], []
    async with Client(
        command, revision=REVISION,
        elicit=lambda text, schema: heard.append(text) or {"value": True},
        progress=lambda *step: heard.append(step[:2]), env={"FASTMCP_SHOW_SERVER_BANNER": "false"},
        stderr=lambda line: None,
    ) as c:  # fmt: skip
        seen.append((c.server_info["name"], c.instructions))
        for tool in await c.list_tools():
            shown = tool["name"], tool["description"], tool.get("annotations")
            seen.append((*shown, tool["inputSchema"].get("required")))
        for tool, arguments in CALLS[name]:
            try:
                seen.append(await c.call(tool, arguments))
            except ToolError as exc:
                known = re.search("\\w+ is not (available|one of our vans)", str(exc))
                seen.append(("failed", known and known[0]))
        if name in URIS:
            seen.append(await c.read(URIS[name]))
        if name == "lowlevel":
            seen += [(each["name"], each["description"]) for each in await c.list_templates()]
            seen.append(await c.complete("stock://{item}", "item", "s"))
        elif name in URIS:
            prompt = await c.get_prompt("recommend", {"taste": "boats"})
            seen.append((prompt["description"], prompt["messages"]))
    return [*seen, heard]


def same_output(programs, library):
    """Run both clients; return whether they print the same."""
    printed = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "mcp_lite.py", folder)
        server = pathlib.Path(folder) / "server.py"
        server.write_text(programs["fastmcp after"], "utf-8")
        their_python = install_python(LIBRARIES[library])
        for when, python in ("before", their_python), ("after", sys.executable):
            path = pathlib.Path(folder) / f"{when}.py"
            path.write_text(programs[f"{library} client {when}"], "utf-8")
            run = [python, path, server]
            done = subprocess.run(run, capture_output=True, text=True, timeout=60)
            printed.append(done.stdout)
            print(f"   {library} client {when}:", done.stdout, done.stderr, sep="\n")
    return printed[0] == printed[1] and len(printed[0].splitlines()) == 9


def main():
    page = (ROOT / "examples/porting/README.md").read_text("utf-8")
    programs = dict(re.findall(r"<!-- porting: ([\w ]+) -->\n```python\n(.*?)```", page, re.DOTALL))
    failed = len(programs) != 2 * (len(SERVERS) + len(CLIENTS))
    for name, library in SERVERS.items():
        try:
            python = install_python(LIBRARIES[library])
        except Missing as exc:
            print(f"SKIPPED: {exc}")
            return 1
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / "mcp_lite.py", folder)
            seen = {}
            for when, runs in ("before", python), ("after", sys.executable):
                path = pathlib.Path(folder) / f"{when}.py"
                path.write_text(programs[f"{name} {when}"], "utf-8")
                try:
                    seen[when] = asyncio.run(observe(name, [runs, str(path)]))
                except MCPError as exc:
                    seen[when] = [exc]
        same = seen["before"] == seen["after"] and len(seen["before"]) > 5
        failed |= not same
        for old, new in zip(*seen.values()):
            print(f"   {name}: {old}", end="\n" if old == new else f"\n!! after: {new}\n")
    return int(failed or not all([same_output(programs, library) for library in CLIENTS]))


if __name__ == "__main__":
    sys.exit(main())
