"""mcp_reload: what is saved is served."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from conftest import PROGRAMS, ROOT

import mcp_lite

COMMAND = [sys.executable, str(PROGRAMS / "mcp_reload.py")]
SECONDS = 180  # for a whole test, on a busy machine


def write(path, *names, more=""):
    """Write a server with tools of these names, which answer with them."""
    tools = "".join(f"@app.tool\ndef {name}() -> str:\n    return word\n" for name in names)
    draft, words = path.with_suffix(".draft"), path.with_name("words.draft")
    words.write_text(f"word = {'+'.join(names)!r}\n")
    draft.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom mcp_lite import Server\n"
        f"from words import word\napp = Server('changing')\n{tools}{more}\n"
    )
    words.replace(path.with_name("words.py"))
    draft.replace(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "changing.py"


def run(work):
    asyncio.run(asyncio.wait_for(work, SECONDS))


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_a_client_keeps_its_session_and_is_told(path, revision):
    write(path, "one")

    async def main():
        told = asyncio.Queue()
        client = mcp_lite.Client(
            [*COMMAND, str(path)], revision=revision, on_tools_changed=lambda: told.put_nowait(1)
        )

        async def until(name, said):  # two files are saved, so there may be news of each
            while await answer(name) != said:
                await told.get()

        async def answer(name):
            try:
                return await c.call(name)
            except mcp_lite.RemoteError:
                return "an error"

        async with client as c:
            assert c.server_info["name"] == "changing"
            assert await c.call("one") == "one"
            write(path, "one", "two")
            await until("two", "one+two")
            assert [each["name"] for each in await c.list_tools()] == ["one", "two"]
            path.write_text("def broken(:\n")
            await until("one", "an error")
            with pytest.raises(mcp_lite.RemoteError, match="exited with status 1"):
                await c.list_tools()
            write(path, "three")
            await until("three", "three")
            assert [each["name"] for each in await c.list_tools()] == ["three"]

    run(main())


def test_a_server_that_hangs_gives_way_to_its_next_version(path):
    hangs = path.with_name("hangs")
    more = f"@app.tool\nasync def hang() -> None:\n    open({str(hangs)!r}, 'w').close()\n"
    write(path, more=more + "    __import__('threading').Event().wait()")

    async def main():
        async with mcp_lite.Client([*COMMAND, str(path)]) as c:
            hanging = asyncio.ensure_future(c.call("hang"))
            while not hangs.exists():
                await asyncio.sleep(0.01)
            write(path, "one")
            with pytest.raises(mcp_lite.RemoteError):
                await hanging
            assert await c.call("one") == "one"

    run(main())


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("token", [None, "secret"])
def test_over_http_the_next_version_has_the_same_address_and_token(path, token):
    write(path, "one")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    options = ["--token", token] if token else []
    server = subprocess.Popen(
        [*COMMAND, str(path), "--http", port, *options], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip

    def serves():
        for line in server.stderr:
            found = re.search(r"serves (http\S+)", line)
            if found:
                return found[1]
        raise AssertionError("it has ended")

    async def answer(name, url):
        if token:
            with pytest.raises(mcp_lite.AuthError):
                await mcp_lite.Client(url).connect()
        async with mcp_lite.Client(url, token=token) as c:
            return await c.call(name)

    with server:
        try:
            url = serves()
            assert asyncio.run(answer("one", url)) == "one"
            path.write_text("def broken(:\n")  # it ends by itself, and the next save repairs it
            assert any("SyntaxError" in line for line in server.stderr)
            write(path, "two")
            assert serves() == url
            assert asyncio.run(answer("two", url)) == "two"
            server.send_signal(signal.SIGTERM)
            server.stderr.read()  # ends when the last one has gone that could write there
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", int(port)))
        finally:
            server.kill()


def test_a_token_that_nobody_would_be_asked_for_is_refused():
    done = subprocess.run([*COMMAND, "server.py", "--token", "t"], input="", capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.endswith("error: --token is for --http\n")


def test_without_the_gateway_beside_it_it_says_what_is_missing(tmp_path):
    for name in ("mcp_lite.py", "examples/programs/mcp_reload.py"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "server.py").write_text("from mcp_lite import Server\napp = Server()\n")
    command = [sys.executable, "mcp_lite.py", "reload", "server.py:app"]
    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "error: No module named 'mcp_gateway': put it beside this file\n")
