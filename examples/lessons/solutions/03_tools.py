"""Calls of `add` that its schema forbids: a is missing, a type is wrong, a name is unknown."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import Pipe

REFUSED = [{}, {"b": 2}, {"a": None}, {"a": 1.5}, {"a": [1]}, {"a": "one"}, {"a": 1, "b": "x"},
           {"a": 1, "c": 3}, {"A": 1}]  # fmt: skip
TAKEN = [{"a": 1}, {"a": 1.0}, {"a": 1, "b": 2}, {"a": "1"}, {"a": 1, "b": None}]


async def main():
    async with Pipe() as pipe:
        await pipe.shake_hands()
        for number, arguments in enumerate(REFUSED + TAKEN, 1):
            params = {"name": "add", "arguments": arguments}
            result = (await pipe.ask(number, "tools/call", params))["result"]
            assert bool(result.get("isError")) == (arguments in REFUSED), arguments
    print("1.0 is an integer to JSON Schema. A null that may be absent is taken for absent.")


asyncio.run(main())
