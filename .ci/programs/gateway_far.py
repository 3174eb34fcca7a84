"""The server behind the gateways of test_gateway.py: it asks, tells, and knows who calls it."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from mcp_lite import Context, Server  # noqa: E402


def make(name="far", **options):
    app = Server(name, instructions=f"use {name} well", **options)
    app.cancelled, app.running = [], []

    @app.tool
    def add(a: int, b: int = 0) -> int:
        return a + b

    @app.tool
    def facts(ctx: Context) -> dict:
        return {"client": ctx.client_info.get("name"), "can": sorted(ctx.client_capabilities),
                "meta": {k: v for k, v in ctx.meta.items() if k.startswith("acme/")}}  # fmt: skip

    @app.tool
    async def order(user: str, ctx: Context) -> str:
        """Ask twice, and tell who answered."""
        await ctx.report_progress(1, 2, user)
        first = await ctx.elicit(f"{user}: name?", str)
        await asyncio.sleep(0)
        second = await ctx.elicit(f"{user}: size of {first.data}?", str)
        return f"{user} {first.data} {second.data}"

    @app.tool
    async def inquire(ctx: Context) -> str:
        text = await ctx.sample("Write.", max_tokens=5)
        roots = await ctx.roots()
        block = text["content"]
        return f"{block['text']} {roots[0]['uri']}"

    @app.tool
    async def steps(ctx: Context) -> str:
        for step in (1, 2, 3):
            await ctx.report_progress(step, 3, f"step {step}")
        await ctx.info("between", logger="far")
        await ctx.report_progress(4, 4, "last")
        return "done"

    @app.tool
    async def wait(ctx: Context) -> str:
        app.running.append(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            app.cancelled.append("wait")
            raise

    @app.tool
    async def ask_and_wait(ctx: Context) -> str:
        try:
            return (await ctx.elicit("Really?", str)).data
        except asyncio.CancelledError:
            app.cancelled.append("ask")
            raise

    @app.tool
    def fail() -> str:
        raise ValueError("it broke")

    app.add_resource("x://a", "A")
    app.add_resource("n://{x}", lambda x: x, name="n")
    app.add_prompt(lambda topic: f"About {topic}", name="question")
    app.complete("question", "topic")(lambda value: ["tea", "toast"])
    app.complete("n://{x}", "x")(lambda value: ["1", "2"])
    return app


if __name__ == "__main__":
    app = make()
    app.run() if len(sys.argv) == 1 else app.run("http", port=int(sys.argv[1]))
