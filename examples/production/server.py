#!/usr/bin/env python3
"""A server as operators want it: see README.md beside this file.

    MCP_TOKEN=secret python3 examples/production/server.py

The environment configures it: MCP_TOKEN; MCP_HOST and MCP_PORT; MCP_HOSTS, the public names;
MCP_METRICS_PORT; MCP_GRACE, in seconds; MCP_SPANS=1 for spans on stdout.
"""

import asyncio
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from metrics import Metrics, Spans, access_log, observe

from mcp_lite import Context, Server, ToolError


def listed(name):
    """Return the words of a variable of the environment."""
    return os.environ.get(name, "").split()


async def lifespan(server):
    """Open what the tools need, and close it when the last request has ended."""
    jobs = {"running": 0}
    yield jobs


app = Server("production", "1.0", lifespan=lifespan, mask_errors=True, rate_limit=(100, 10.0))
metrics = Metrics(app)
spans = [Spans(print, "production").observe] if os.environ.get("MCP_SPANS") else []
observe(app, metrics.observe, access_log(lambda line: print(line, file=sys.stderr)), *spans)


@app.tool
def words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


@app.tool
async def job(seconds: float, ctx: Context) -> str:
    """Work for some seconds, and report."""
    if not 0 <= seconds <= 60:
        raise ToolError("a job takes from 0 to 60 seconds")
    ctx.lifespan["running"] += 1
    try:
        for second in range(int(seconds)):
            await ctx.report_progress(second, seconds)
            await asyncio.sleep(1)
        await asyncio.sleep(seconds % 1)
    finally:
        ctx.lifespan["running"] -= 1
    return f"done, for {ctx.principal or 'nobody in particular'}"


options = {
    "healthz": True,
    "token": {os.environ["MCP_TOKEN"]: "operator"} if "MCP_TOKEN" in os.environ else None,
    "allowed_hosts": listed("MCP_HOSTS") or None,
    "grace": float(os.environ.get("MCP_GRACE", 10)),
}
asgi = app.asgi_with(**options)  # uvicorn server:asgi --timeout-graceful-shutdown 5

if __name__ == "__main__":
    if "MCP_METRICS_PORT" in os.environ:
        metrics.serve(int(os.environ["MCP_METRICS_PORT"]))
    host, port = os.environ.get("MCP_HOST", "127.0.0.1"), int(os.environ.get("MCP_PORT", 8000))
    app.run("http", host=host, port=port, **options)
