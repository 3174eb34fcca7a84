"""What a type checker says of a program that uses mcp_lite: nothing, but for the marked lines.

`mypy --strict` must find the lines that end with a mark, with the codes that it has, and no
others. `.ci/types/check.py` compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_lite import Client, Context, Elicited, Server, SyncContext, ToolError

app = Server("types", version="1.0")
misspelled = Server("types", verison="1.0")  # wrong: call-arg


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
    ctx.info("forgotten")  # wrong: unused-coroutine
    ctx.once(add, 1)  # wrong: unused-coroutine
    answer = await ctx.elicit("How many?", Order)
    print(answer.dta)  # wrong: attr-defined
    print(answer.data.amount)  # wrong: union-attr
    choice: Elicited[Any] = await ctx.elicit("Which?", ["a", "b"])
    await ctx.report_progress("half")  # wrong: arg-type
    await ctx.sample("hello", max_token=5)  # wrong: call-arg
    return choice.data  # wrong: return-value


@app.tool(titel="Add")  # wrong: call-overload untyped-decorator
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


@app.resource("note://{name}", mimetype="text/plain")  # wrong: call-arg
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
text: str = add(1, 2)  # wrong: assignment
text = note("x")
add("1")  # wrong: arg-type


async def main() -> None:
    async with Client(app) as c:
        print(await c.call("add", {"a": 1}))
        c.call("add", {"a": 1})  # wrong: unused-coroutine
        names = [tool["name"] for tool in await c.list_tools()]
        print(names)


async def ask() -> None:
    async with Client(app, token="t", revision="2025-11-25") as c:
        await c.call("add", {"a": 1}, timeout=5)
        await c.call("add", {"a": 1}, timout=5)  # wrong: call-arg
    Client("server.py", evn={"A": "1"})  # wrong: call-arg
    async with app.http(port=0, token="t") as server:
        print(server.url)
    app.asgi_with(healthz=True)
    app.asgi_with(port=8000)  # wrong: call-arg


def serve() -> None:
    app.run("http", port=8000, allowed_hosts=["mcp.example.com"], ssl=("cert.pem", "key.pem"))
    app.run("http", prot=8000)  # wrong: call-arg
    app.start_in_thread(port="8000")  # wrong: arg-type
