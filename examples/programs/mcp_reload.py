#!/usr/bin/env python3
"""Serve a file, and start it again whenever a Python file of its folder is saved.

    python3 mcp_lite.py reload server.py
    python3 mcp_lite.py reload server.py:app --http 8000

Each version is served by a process of its own, so whatever the last one has come to, the next save
repairs it. Over stdio this needs mcp_gateway.py beside this file: the client keeps its session, and
is told that all lists have changed. Over HTTP a client begins anew, as after any restart.

Limits: files are watched in the folder itself, and in the folders of that. Over HTTP, the process
that serves goes on if this one is killed by SIGKILL.
"""

import argparse
import asyncio
import os
import pathlib
import signal
import sys
from collections.abc import Sequence
from typing import Optional

HERE = pathlib.Path(__file__).resolve().parent
if HERE.name == "programs":  # mcp_lite.py lies two folders up, as in its repository
    sys.path += [str(HERE), str(HERE.parents[1])]

import mcp_lite  # noqa: E402

TOKEN = "MCP_LITE_TOKEN"  # a variable: the token that `serve --http` requires
WATCH_SECONDS = 0.3  # between two looks at the files
#: Python knows a compiled file by the second and the size of its source: two versions may agree.
ENV = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


def times(folder: pathlib.Path) -> dict[pathlib.Path, int]:
    """Return when each Python file was written."""
    paths = [*folder.glob("*.py"), *folder.glob("*/*.py")]
    return {path: path.stat().st_mtime_ns for path in paths if path.exists()}


async def change(folder: pathlib.Path) -> None:
    """Wait until a Python file has changed."""
    before = times(folder)
    while times(folder) == before:
        await asyncio.sleep(WATCH_SECONDS)


async def serve_http(command: list[str], folder: pathlib.Path) -> None:
    """Serve at a port, with one process after the other."""
    while True:
        child = await asyncio.create_subprocess_exec(*command, env=ENV)
        try:
            await change(folder)
        finally:
            if child.returncode is None:  # a version with an error has ended by itself
                child.terminate()
            await child.wait()


async def serve_stdio(command: list[str], folder: pathlib.Path) -> None:
    """Serve on standard input and output, through a gateway to one process after the other."""
    try:
        from mcp_gateway import Gateway
    except ModuleNotFoundError as exc:
        raise mcp_lite.UsageError(f"{exc}: put it beside this file") from None

    gateway = Gateway(command, env=ENV, patience=60.0)  # requests wait for it

    async def watch() -> None:
        while True:
            await change(folder)
            gateway.drop()

    watching = asyncio.ensure_future(watch())
    await gateway.serve_stdio()
    watching.cancel()


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Serve the file that the command line names."""
    parser = argparse.ArgumentParser(
        "reload", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", help="FILE.py, or FILE.py:APP")
    parser.add_argument("--http", metavar="[HOST:]PORT", help="serve there")
    parser.add_argument("--token", help="with --http: what clients must send as a bearer token; "
                        f"${TOKEN} is safer")  # fmt: skip
    args = parser.parse_args(argv)
    if args.token is not None:
        if not args.http:
            parser.error("--token is for --http")
        ENV[TOKEN] = args.token
    command = [sys.executable, mcp_lite.__file__, "serve", args.target]
    folder = pathlib.Path(args.target).resolve().parent
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    serve, more = (serve_http, ["--http", args.http]) if args.http else (serve_stdio, [])
    try:
        asyncio.run(serve(command + more, folder))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
