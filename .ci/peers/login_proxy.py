"""An application that only starts commands uses a server that wants a login, by our gateway.

The server is that of examples/authorization; its own client plays the person and the browser.
The gateway asks nobody: without a login it says what to type. That is typed, and undone at the end.
"""

import asyncio
import os
import pathlib
import re
import sys
import tempfile
import urllib.request

from our_example import browse, serving_example

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2]))
import mcp_lite as m  # noqa: E402

PROGRAM = [sys.executable, str(HERE.parents[2] / "mcp_lite.py")]
LOGIN = re.compile(r"https?://\S+code_challenge=\S+")


def log_in(url):
    """Agree, and go where that leads: back to the verb `login`."""
    where = browse(url, "alice", "pw")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(where, timeout=60).close()


async def use(url, environ):
    """Let an application call a tool; return whether it could."""
    command = [*PROGRAM, "gateway", url]
    async with m.Client(command, env=environ, stderr=lambda line: None) as application:
        try:
            names = [tool["name"] for tool in await application.list_tools()]
        except m.RemoteError as exc:
            assert f"mcp_lite.py login {url}" in str(exc), exc
            return False
        said = await application.call(names[0], {})
        print(f"   {len(names)} tools, {names[0]}: {str(said)[:40]!r}")
        return True


async def type_words(environ, *words):
    """Run a verb, and be the browser of a login."""
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, *words, env={**os.environ, **environ}, stderr=asyncio.subprocess.PIPE
    )
    async for line in process.stderr:
        found = LOGIN.search(line.decode())
        if found:
            await asyncio.to_thread(log_in, found[0])
    assert await process.wait() == 0


async def main():
    with tempfile.TemporaryDirectory() as folder:
        environ = {"HOME": folder, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
        async with serving_example() as url:
            assert not await use(url, environ)
            await type_words(environ, "login", "--no-browser", url)
            assert await use(url, environ)
            await type_words(environ, "logout", url)
            assert not await use(url, environ)


asyncio.run(asyncio.wait_for(main(), 240))
