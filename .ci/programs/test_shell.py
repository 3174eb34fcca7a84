"""mcp_shell: the verbs, line by line in one session."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

from test_mcp_lite import Typist

SERVER = """
import asyncio
from typing import Literal
from mcp_lite import Context, Server, ToolError

app, count = Server("shop"), []

@app.tool
def add(a: int, size: Literal["small", "large"] = "small") -> int:
    count.append(a)
    return sum(count)

@app.tool
def fail() -> str:
    raise ToolError("out of \\x1b[2Jstock")

@app.tool
async def ask(ctx: Context) -> str:
    return (await ctx.elicit("Sure?", None)).action

@app.tool
async def wait(ctx: Context) -> str:
    await ctx.warning("waiting")
    await asyncio.sleep(3600)

@app.tool
async def grow() -> str:
    async def later():
        await asyncio.sleep(0.3)
        app.add_tool(lambda: 1, name="more")
    count.append(asyncio.ensure_future(later()) and 0)
    return "soon"

@app.resource("shop://sign")
def sign() -> str:
    return "open"

@app.prompt
def offer(tone: Literal["loud", "low"] = "low") -> str:
    return tone


@app.complete("offer", "tone")
def tones(value: str) -> list:
    return [tone for tone in ("loud", "low") if tone.startswith(value)]

if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "server.py").write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{SERVER}")
    return tmp_path


def shell(folder, lines, *argv):
    """Type lines into a pipe: exit status, stdout, stderr."""
    command = [sys.executable, "-W", "error", str(ROOT / "mcp_lite.py"), "shell", *argv, "server.py"]
    done = subprocess.run(command, input=lines, cwd=folder, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_lines_of_a_pipe_are_one_session_and_the_last_gives_the_status(folder):
    assert shell(folder, "call add a=1\n\n# a comment\ncall add a=2  # and another\n") == (0, "1\n3\n", "")
    assert shell(folder, "call fail\n") == (1, "", "error: out of stock\n")
    status, out, err = shell(folder, "read shop://sign\ncall ad\n")
    assert (status, out, err) == (2, "open\n", "error: no tool 'ad'; did you mean add?\n")


def test_a_wrong_line_is_told_and_the_next_is_read(folder):
    lines = "cal add\ncall 'add\nread\nserve x\ntools add --json\ncall ask --yes\ncall ask\n"
    status, out, err = shell(folder, lines)
    assert status == 0 and out.endswith("accept\ndecline\n")
    assert [line[:30] for line in err.splitlines()[:4]] == [
        "error: 'cal' is none of info, ", "error: No closing quotation",
        "error: URI is missing; usage: ", "error: 'serve' is none of info",
    ]  # fmt: skip


def test_a_server_that_is_not_there_and_a_trace(folder):
    command = [sys.executable, str(ROOT / "mcp_lite.py"), "shell", "nothing.py"]
    done = subprocess.run(command, cwd=folder, input="", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "") and "nothing.py" in done.stderr
    status, out, err = shell(folder, "tools\n", "--trace", "--revision", "2025-11-25")
    assert status == 0 and "--> initialize #1" in err and "--> tools/list" in err


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals here")
def test_tab_completes_announcements_stand_above_the_line_and_ctrl_c_ends_a_call(folder, monkeypatch):
    monkeypatch.setenv("INPUTRC", str(folder / "inputrc"))
    command = [sys.executable, str(ROOT / "mcp_lite.py"), "shell"]
    with Typist("server.py", command=command, cwd=folder) as person:
        person.types(b"", b"mcp> ")
        person.types(b"inf\t", b"info ")
        # readline overlooks a signal just before it waits
        person.types(b"\x03", b"mcp> ", again=b"\x03")
        person.types(b"call ad\t", b"call add ")
        person.types(b"a\t", b"a=")
        person.types(b"1 size=l\t", b"size=large ")
        person.types(b"\n", b"1\r\n", b"mcp> ")
        person.types(b"prompt offer tone=lou\t", b"tone=loud ")
        person.types(b"\n", b"user: loud\r\n", b"mcp> ")
        person.types(b"read shop\t", b"shop://sign ")
        person.types(b"\n", b"open\r\n", b"mcp> ")
        person.types(b"call wa", b"call wa")
        person.types(b"it\n", b"waiting")
        person.types(b"\x03", b"mcp> ")
        person.types(b"call ask\n", b"agree:")
        person.types(b"\x03", b"mcp> ")
        person.types(b"call ask\n", b"agree:")
        person.types(b"yes\n", b"accept\r\n", b"mcp> ")
        person.types(b"call grow\n", b"soon\r\n", b"mcp> ")
        person.types(b"call ad", b"call ad", b"the tools have changed\r\nmcp> call ad")
        person.types(b"d a=2\n", b"3\r\n", b"mcp> ")
        person.types(b"\x04")
    assert person.status == 0 and b"Traceback" not in person.seen
