"""The server of examples/authorization, and its person, for clients that log in to it."""

import contextlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "examples" / "authorization"), str(HERE.parents[1])]

from client import browse  # noqa: E402, F401 -- it is for those who import us
from processes import free_port  # noqa: E402
from server import build  # noqa: E402


@contextlib.asynccontextmanager
async def serving_example():
    """Serve the example, to alice, whose password is pw; give its URL."""
    port = free_port()
    app, authority, guard = build(f"http://127.0.0.1:{port}")
    authority.add_person("alice", "pw")
    async with app.http(port=port, auth=guard) as server:
        yield server.url
