"""One of several workers: `WORKER=a uvicorn --port 8001 worker:asgi`.

See several-workers.md beside this file. Only the first lines and the last differ from any server.
"""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # where mcp_lite.py is

from redis_bus import RedisBus

from mcp_lite import Context, Server

WORKER = os.environ.get("WORKER", "a")
REDIS_URL = os.environ.get("REDIS_URL")  # by which the workers tell each other what has changed
STATE_KEY = os.environ.get("STATE_KEY")  # any worker that has it goes on where another one asked
bus = RedisBus(REDIS_URL, channel="workers") if REDIS_URL else None
app = Server("workers", version="1.0", lifespan=bus and bus.lifespan, state_key=STATE_KEY)


@app.tool
def whoami() -> str:
    """Return the name of the worker that answers."""
    return WORKER


@app.tool
async def count(to: int, ctx: Context, pause: float = 0.05) -> str:
    """Count, reporting every number."""
    for number in range(1, to + 1):
        await asyncio.sleep(pause)
        await ctx.report_progress(number, to)
    return f"{WORKER} counted to {to}"


@app.tool
async def book(seats: int, ctx: Context) -> str:
    """Book seats, if the user agrees."""
    answer = await ctx.elicit(f"Book {seats} seats with {WORKER}?", bool)
    return "booked" if answer.action == "accept" and answer.data else "left alone"


bookings = 0


@app.resource("bookings://count", mime_type="text/plain")
def count_bookings() -> str:
    """How often confirm() was called in this worker. Subscribers are notified."""
    return str(bookings)


@app.tool
async def confirm() -> int:
    """Confirm a booking."""
    global bookings
    bookings += 1
    (bus or app).resource_updated("bookings://count")
    return bookings


holds = 0


async def hold() -> str:
    global holds
    holds += 1
    return WORKER


@app.tool
async def reserve(seats: int, ctx: Context) -> list[str]:
    """Reserve seats: hold them, ask two questions, and tell which worker did what.

    Without sessions this runs from the top with every answer, each time in any worker.
    """
    first = await ctx.once(hold)
    name = await ctx.elicit(f"{seats} seats in whose name?", str)
    second = await ctx.once(whoami)
    await ctx.elicit(f"{seats} seats for {name.data}?", bool)
    return [first, second, WORKER]


@app.route("GET", "/healthz")
def health(request) -> dict:
    """For the balancer's health checks."""
    return {"worker": WORKER, "holds": holds}


# Session ids begin with the worker's name, so that nginx finds the way back to it. Workers listen
# on loopback; the names that clients use must be listed, else their requests are refused.
asgi = app.asgi_with(
    session_prefix=f"{WORKER}.",
    allowed_hosts=os.environ.get("HOSTS", "localhost").split(","),
)
