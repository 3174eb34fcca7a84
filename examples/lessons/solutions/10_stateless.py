"""The client's loop: call, answer all inputRequests, call again, until it is complete."""

import asyncio
import importlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import Pipe

lesson = importlib.import_module("10_stateless")
ROUNDS = 16  # more questions than that are a loop


def person(question):
    """Return what a person answers."""
    wanted = question["params"]["requestedSchema"]["properties"]["value"]
    value = True if wanted["type"] == "boolean" else "tea"
    return {"action": "accept", "content": {"value": value}}


async def complete(pipe, name, arguments, answer):
    """Return the result of a call; `answer(question)` answers what is asked meanwhile."""
    params = {"name": name, "arguments": arguments, "_meta": lesson.META}
    more = {}
    for number in range(1, ROUNDS + 1):
        result = (await pipe.ask(number, "tools/call", {**params, **more}))["result"]
        if result["resultType"] == "complete":
            return result
        asked = result.get("inputRequests", {})
        more = {"inputResponses": {key: answer(question) for key, question in asked.items()}}
        if "requestState" in result:
            more["requestState"] = result["requestState"]
    raise RuntimeError(f"more than {ROUNDS} rounds")


async def main():
    async with Pipe() as pipe:
        result = await complete(pipe, "lunch", {"dish": "soup"}, person)
    print(result["content"][0]["text"])
    assert "soup with tea, now" in result["content"][0]["text"]


asyncio.run(main())
