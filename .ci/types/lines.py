"""What a type checker finds in a program that uses mcp_lite: nothing, but for the marked lines.

`mypy --strict` reports each `type: ignore` that hides no fault of its code: so each mark is a fault
that must be found, and no other may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_lite import Client, Context, Elicited, Server, SyncContext, ToolError

app = Server("types", version="1.0")
misspelled = Server("types", verison="1.0")  # type: ignore[arg-type]


@dataclass
class Order:
    item: str
    amount: int = 1


@app.tool
def add(a: int, b: int = 0) -> int:
    return a + b


@app.tool(title="Order", annotations={"destructiveHint": True}, scopes=["shop"])
async def order(item: str, ctx: Context) -> Order:
    await ctx.report_progress(1, 2, "asking")
    answer = await ctx.elicit("How many?", Order)
    if answer.data is None:
        raise ToolError("nobody says how many")
    amount: int = answer.data.amount
    return Order(item, amount)


@app.tool("by_name")
async def sloppy(item: str, ctx: Context) -> int:
    ctx.info("forgotten")  # type: ignore[unused-coroutine]
    ctx.once(add, 1)  # type: ignore[unused-coroutine]
    answer = await ctx.elicit("How many?", Order)
    print(answer.dta)  # type: ignore[attr-defined]
    print(answer.data.amount)  # type: ignore[union-attr]
    choice: Elicited[Any] = await ctx.elicit("Which?", ["a", "b"])
    await ctx.report_progress("half")  # type: ignore[arg-type]
    await ctx.sample("hello", max_token=5)  # type: ignore[call-arg]
    return choice.data  # type: ignore[return-value]


@app.tool(titel="Add")  # type: ignore[call-overload, untyped-decorator]
def misnamed(a: int) -> int:
    return a


@app.tool
def threaded(ctx: SyncContext) -> str:
    ctx.info("said at once", logger="shop")
    print(ctx.once(add, 1) + 1)
    answer = ctx.elicit("How many?", Order)
    print(answer.data)
    return str(ctx.roots()[0]["uri"])


@app.resource("note://{name}", mime_type="text/plain")
def note(name: str) -> str:
    return name


@app.resource("note://{name}", mimetype="text/plain")  # type: ignore[call-arg]
def misnamed_note(name: str) -> str:
    return name


@app.prompt(description="Review code.")
def review(code: str) -> str:
    return code


@app.complete("review", "code")
def codes(value: str) -> list[str]:
    return [value]


@app.middleware
async def around(ctx: Context, call_next: Any) -> Any:
    return await call_next(ctx)


total: int = add(1, 2)
text: str = add(1, 2)  # type: ignore[assignment]
text = note("x")
add("1")  # type: ignore[arg-type]


async def main() -> None:
    async with Client(app) as c:
        print(await c.call("add", {"a": 1}))
        c.call("add", {"a": 1})  # type: ignore[unused-coroutine]
        names = [tool["name"] for tool in await c.list_tools()]
        print(names)


async def ask() -> None:
    async with Client(app, token="t", revision="2025-11-25") as c:
        await c.call("add", {"a": 1}, timeout=5)
        await c.call("add", {"a": 1}, timout=5)  # type: ignore[call-arg]
    Client("server.py", evn={"A": "1"})  # type: ignore[call-arg]
    async with app.http(port=0, token="t") as server:
        print(server.url)
    app.asgi_with(healthz=True)
    app.asgi_with(port=8000)  # type: ignore[call-arg]


def serve() -> None:
    app.run("http", port=8000, allowed_hosts=["mcp.example.com"], ssl=("cert.pem", "key.pem"))
    app.run("http", prot=8000)  # type: ignore[call-arg]
    app.start_in_thread(port="8000")  # type: ignore[arg-type]
