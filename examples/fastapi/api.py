"""Tools in a FastAPI application that has a lifespan and routes of its own.

    pip install fastapi uvicorn
    uvicorn --app-dir examples/fastapi api:api --timeout-graceful-shutdown 5

The endpoint is http://127.0.0.1:8000/ai/mcp. Routes and tools share one database.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]  # where mcp_lite.py may be

from mcp_lite import Server, SyncContext, ToolError  # noqa: E402


@contextlib.asynccontextmanager
async def lifespan(api: FastAPI) -> AsyncIterator[None]:
    """Open what routes and tools share, then begin to serve MCP; end both in the other order."""
    with contextlib.closing(sqlite3.connect(":memory:", check_same_thread=False)) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)")
        api.state.database = database
        async with mcp.lifespan():
            yield


api = FastAPI(lifespan=lifespan)
lock = threading.Lock()  # routes and tools run in threads, and have one connection


@api.get("/orders")
def orders(request: Request) -> list[str]:
    with lock:
        return [item for (item,) in request.app.state.database.execute("SELECT item FROM orders")]


async def shared(server: Server) -> AsyncIterator[sqlite3.Connection]:
    """Hand the database to the tools, as ctx.lifespan."""
    yield api.state.database


app = Server("shop", "1.0", lifespan=shared)


@app.tool
def order(item: str, ctx: SyncContext) -> int:
    """Order something; return the number of the order."""
    if not item:
        raise ToolError("the item has no name")
    with lock, ctx.lifespan as database:  # commits
        return database.execute("INSERT INTO orders (item) VALUES (?)", (item,)).lastrowid


# The token is optional. Behind a proxy, add allowed_hosts=["mcp.example.com"].
mcp = app.asgi_with(token=os.environ.get("MCP_TOKEN") or None)
api.mount("/ai", mcp)
