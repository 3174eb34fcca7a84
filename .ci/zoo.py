"""Let our client use published servers, pinned, in both eras: python3 .ci/zoo.py [NAME...]

Each is started as its readers start it, lists what it has, and answers one call: once in the newest
revision that both know, once in an older one. What needs the network or an account answers with an
error of its own, which is as good. Some minutes at first: they are installed from npm and PyPI.
"""

import asyncio
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from install import Missing, install_node, install_python

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from mcp_lite import Client, MCPError

NODE = {
    "@azure/mcp-linux-x64": "2.0.5",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
    "@notionhq/notion-mcp-server": "2.5.2",
    "@playwright/mcp": "0.0.83",
    "@upstash/context7-mcp": "4.1.1",
    "mcp-time-linux-x64": "0.4.0",
    "mongodb-mcp-server": "3.0.4",
}
FAST = """
from fastmcp import FastMCP
app = FastMCP("fast")
@app.tool
def add(a: int, b: int) -> int:
    return a + b
app.run(show_banner=False)
"""
SECONDS = 120  # for one server in one era
LEGACY = "2025-03-26"  # the newest of a server that is made with an old mcp-go
OFFLINE = "ENOTFOUND|EAI_AGAIN|fetch failed|[Nn]etwork|resolve"
#: What starts it, below node_modules or in the bin of a requirement; the tool to call and its
#: arguments; a pattern of what comes back. FOLDER is a git repository with the file here.txt.
ZOO = {
    "everything": (".bin/mcp-server-everything", "echo", {"message": "hi"}, "hi$"),
    "filesystem": (
        ".bin/mcp-server-filesystem FOLDER", "list_directory", {"path": "FOLDER"}, "here.txt"),
    "memory": (".bin/mcp-server-memory", "read_graph", {}, "entities"),
    "playwright": (".bin/playwright-mcp", "browser_close", {}, "(?i)no open|page|not found"),
    "context7": (
        ".bin/context7-mcp", "resolve-library-id",
        {"query": "asyncio", "libraryName": "python"}, f"(?i)error|{OFFLINE}"),
    "notion": (".bin/notion-mcp-server", "API-get-self", {}, f"unauthorized|{OFFLINE}"),
    "mongodb": (".bin/mongodb-mcp-server", "list-connections", {}, "onnection"),
    "azure, .NET": (
        "@azure/mcp-linux-x64/dist/azmcp server start", "get_azure_bestpractices",
        {"intent": "list", "learn": True}, "resource"),
    "time, Go": (
        "mcp-time-linux-x64/bin/mcp-time", "current_time", {"timezone": "Europe/Berlin"}, "20"),
    "time": (
        "mcp-server-time==2026.10.19 mcp-server-time", "get_current_time",
        {"timezone": "Europe/Berlin"}, "Europe/Berlin"),
    "git": (
        "mcp-server-git==2026.10.19 mcp-server-git", "git_status", {"repo_path": "FOLDER"},
        "here.txt"),
    "excel": (
        "excel-mcp-server==2.2.2 excel-mcp-server stdio", "create_workbook",
        {"path": "FOLDER/a.xlsx"}, "a.xlsx"),
    "fastmcp 3": ("fastmcp==3.4.0 python FOLDER/fast.py", "add", {"a": 1, "b": 2}, "3"),
    "fastmcp 4": ("fastmcp==4.1.2 python FOLDER/fast.py", "add", {"a": 1, "b": 2}, "3"),
}  # fmt: skip


def make_folder(folder):
    """Fill the folder that servers work in."""
    path = pathlib.Path(folder)
    (path / "here.txt").write_text("here")
    (path / "fast.py").write_text(FAST)
    subprocess.run(["git", "init", "-q", folder], check=True)


def command_of(start, modules, folder):
    """Return the command of a server, which is installed if it is one of PyPI."""
    first, *words = [word.replace("FOLDER", folder) for word in start.split()]
    if "==" not in first:
        return [f"{modules}/{first}", *words]
    return [f"{os.path.dirname(install_python(first))}/{words[0]}", *words[1:]]


async def visit(command, revision, tool, arguments, pattern):
    """Use a server; return (what was seen, what is wrong or None)."""
    said = []
    async with Client(
        command, revision=revision, stderr=said.append, log=lambda *_: None, timeout=SECONDS
    ) as client:
        seen = [client.revision, f"{len(await client.list_tools())} tools"]
        for what, has in ("resources", client.list_resources), ("prompts", client.list_prompts):
            if what in client.server_capabilities:
                seen.append(f"{len(await has())} {what}")
        try:
            answer = str(await client.call(tool, arguments))
        except MCPError as exc:
            answer = f"{type(exc).__name__}: {exc}"
    seen.append(f"{tool}: {' '.join(answer.split())[:70]}")
    return ", ".join(seen), None if re.search(pattern, answer) else f"{tool} answered {answer}"


def main(names):
    failed = []
    try:
        modules = f"{install_node('zoo', NODE)[1]}/node_modules"
    except Missing as exc:
        print(exc)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        os.environ["MEMORY_FILE_PATH"] = f"{folder}/memory.json"
        for name in names or ZOO:
            start, tool, arguments, pattern = ZOO[name]
            arguments = {
                key: value.replace("FOLDER", folder) if isinstance(value, str) else value
                for key, value in arguments.items()
            }
            for revision in None, LEGACY:
                began = time.monotonic()
                try:
                    command = command_of(start, modules, folder)
                    visiting = visit(command, revision, tool, arguments, pattern)
                    seen, problem = asyncio.run(asyncio.wait_for(visiting, SECONDS))
                except (Missing, MCPError, OSError, asyncio.TimeoutError) as exc:
                    seen, problem = "", f"{type(exc).__name__}: {exc}"
                print(f"   {name}: {seen}  ({time.monotonic() - began:.1f} s)", flush=True)
                if problem:
                    failed.append(name)
                    print(f"   {name}, {revision or 'newest'}: FAILED: {problem}", flush=True)
    print(f"{len(names or ZOO) - len(set(failed))} of {len(names or ZOO)} servers work")
    return int(bool(failed))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
