"""An application that only starts commands uses a server that wants a login, by our proxy.

The server is that of examples/authorization; its own client plays the person and the browser.
The proxy is started twice: only the first one asks for a login. Then the login is forgotten.
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
    """Agree, and go where that leads: back to the proxy."""
    where = browse(url, "alice", "pw")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(where, timeout=60).close()


async def use(url, environ):
    """Let an application call a tool; return how many logins that took."""
    logins = []

    def hear(line):
        found = LOGIN.search(line)
        if found:
            logins.append(asyncio.ensure_future(asyncio.to_thread(log_in, found[0])))

    command = [*PROGRAM, "proxy", "--no-browser", url]
    async with m.Client(command, env=environ, stderr=hear) as application:
        names = [tool["name"] for tool in await application.list_tools()]
        said = await application.call(names[0], {})
    await asyncio.gather(*logins)
    print(f"   {len(names)} tools, {names[0]}: {str(said)[:40]!r}, {len(logins)} logins")
    return len(logins)


async def main():
    with tempfile.TemporaryDirectory() as folder:
        environ = {"HOME": folder, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
        async with serving_example() as url:
            assert await use(url, environ) == 1
            assert await use(url, environ) == 0
            gone = await asyncio.create_subprocess_exec(
                *PROGRAM, "logout", url, env={**os.environ, **environ}
            )
            assert await gone.wait() == 0
            assert await use(url, environ) == 1


asyncio.run(asyncio.wait_for(main(), 240))
