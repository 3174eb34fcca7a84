"""What checks.py drives: `app.asgi` alone, and `mounted` in a Starlette application."""

import asyncio
import contextlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from processes import resident_mb
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from mcp_lite import Context, Server

told = {"cancelled": 0, "lives": 0, "flooded": 0}


@contextlib.asynccontextmanager
async def lifespan(server):
    told["lives"] += 1
    yield "alive"
    print("the lifespan ended", flush=True)


app = Server("asgi", lifespan=lifespan)


@app.tool
async def count(to: int, ctx: Context, pause: float = 0.02) -> str:
    """Count, reporting every number."""
    try:
        for number in range(1, to + 1):
            await asyncio.sleep(pause)
            await ctx.report_progress(number, to)
    except asyncio.CancelledError:
        told["cancelled"] += 1
        raise
    return str(ctx.lifespan)


@app.tool
async def flood(megabytes: int, ctx: Context) -> str:
    """Log as fast as the client reads."""
    for _ in range(megabytes * 4):
        await ctx.error("x" * 2**18)
        told["flooded"] += 1
    return "flooded"


@app.route("GET", "/state")
async def state(request) -> dict:
    """What is alive in this process."""
    endpoint = app.asgi
    return {
        **told,
        "streams": len(endpoint.live),
        "sessions": len(endpoint.sessions),
        "tasks": len(asyncio.all_tasks()),
        "fds": len(os.listdir("/proc/self/fd")),
        "mb": resident_mb(),
    }


async def page(request):
    return PlainTextResponse("a page of the application around it")


mounted = Starlette(
    routes=[Route("/", page), Mount("/tools", app=app.asgi)],
    lifespan=app.asgi.lifespan,
)
