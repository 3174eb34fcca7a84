"""Whose fault is it?"""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import Pipe


def blame(answer):
    """Return "nobody", "the call" or "the client" for the answer to tools/call."""
    if "error" in answer:
        return "the client"
    return "the call" if answer["result"].get("isError") else "nobody"


async def main():
    calls = [("divide", {"a": 1, "b": 2}, "nobody"), ("divide", {"a": 1, "b": 0}, "the call"),
             ("divide", {"a": "one"}, "the call"),
             ("dvide", {"a": 1, "b": 2}, "the client")]  # fmt: skip
    async with Pipe() as pipe:
        await pipe.shake_hands()
        for number, (name, arguments, whose) in enumerate(calls, 1):
            answer = await pipe.ask(number, "tools/call", {"name": name, "arguments": arguments})
            assert blame(answer) == whose
            print("to blame:", blame(answer))


asyncio.run(main())
