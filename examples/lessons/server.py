"""The server that the lessons talk to: python3 server.py serves standard input and output."""

import asyncio
import pathlib
import sys
from typing import Literal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # where mcp_lite.py is
from mcp_lite import Context, Link, Server, ToolError

app = Server("classroom", version="1.0", page_size=3)
kitchen = []  # the dishes that were cooked


@app.tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b


@app.tool
def divide(a: float, b: float) -> float:
    """Divide, if that is possible."""
    if b == 0:
        raise ToolError("nothing can be divided by zero")
    return a / b


@app.tool
async def count(to: int, ctx: Context) -> str:
    """Count slowly, and tell how far it is."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, "counting")
        await asyncio.sleep(0.05)
    return f"counted to {to}"


def cook(dish: str) -> int:
    """Cook a dish; return how many were cooked by now."""
    kitchen.append(dish)
    return len(kitchen)


@app.tool
async def lunch(dish: str, ctx: Context) -> str:
    """Ask for a drink, cook, ask whether to serve."""
    drink = await ctx.elicit(f"Which drink goes with {dish}?", ["water", "tea"])
    if drink.action != "accept":
        return "no lunch today"
    number = await ctx.once(cook, dish)
    serve = await ctx.elicit("Serve it now?", bool)
    when = "now" if serve.data else "later"
    return f"dish {number}: {dish} with {drink.data}, {when}; {len(kitchen)} cooked in all"


@app.tool
def where(name: str) -> Link:
    """Return a link to a word."""
    return Link(f"word://{name}", name)


WORDS = ("client", "server", "tool", "resource", "prompt", "sampling", "elicitation")
for word in WORDS:
    app.add_resource(f"word://{word}", f"What {word} means stands in mcp_lite.py.")


@app.prompt
def translate(word: str, language: Literal["French", "Finnish", "German"]) -> str:
    """Ask for a translation."""
    return f"Translate {word} into {language}."


@app.complete("translate", "word")
def words_that_begin(begun: str) -> list:
    """Return the words that the user may mean."""
    return [word for word in WORDS if word.startswith(begun)]


if __name__ == "__main__":
    app.run()
