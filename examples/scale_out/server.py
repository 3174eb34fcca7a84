"""One of several workers: uvicorn --port 8001 server:asgi, with its name in the variable WORKER.

See README.md in this folder. Nothing here is special but the last lines.
"""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # where mcp_lite.py is

from mcp_lite import Context, Server

WORKER = os.environ.get("WORKER", "a")
app = Server("scale-out", version="1.0")


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
    """Book seats, if the person at the client agrees."""
    answer = await ctx.elicit(f"Book {seats} seats with {WORKER}?", bool)
    return "booked" if answer.action == "accept" and answer.data else "left alone"


bookings = 0


@app.resource("bookings://count", mime_type="text/plain")
def count_bookings() -> str:
    """How often confirm() was called in this worker; those who subscribed are told."""
    return str(bookings)


@app.tool
async def confirm() -> int:
    """Confirm a booking."""
    global bookings
    bookings += 1
    app.resource_updated("bookings://count")
    return bookings


@app.route("GET", "/healthz")
def health(request) -> dict:
    """For the balancer's health checks."""
    return {"worker": WORKER}


# Session ids begin with the worker's name, so that nginx finds the way back to it. Workers listen
# on loopback; the names that clients use must be listed, else their requests are refused.
asgi = app.asgi_with(
    session_prefix=f"{WORKER}.",
    allowed_hosts=os.environ.get("HOSTS", "localhost").split(","),
)
