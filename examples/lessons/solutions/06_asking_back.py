"""Answer sampling/createMessage as well: a function is the model.

The classroom's server never samples, so this brings one that does, over a pair of pipes in memory.
"""

import asyncio
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import course  # finds mcp_lite.py

from mcp_lite import Context, Server, memory_transports

app = Server("poet")


@app.tool
async def rhyme(word: str, ctx: Context) -> str:
    """Let the client's model find a rhyme."""
    return (await ctx.sample(f"What rhymes with {word}?"))["content"]["text"]


def model(params):
    """Be the model: return a CreateMessageResult."""
    asked = params["messages"][-1]["content"]["text"]
    content = {"type": "text", "text": "socket" if "pocket" in asked else "orange"}
    return {"role": "assistant", "model": "a function", "content": content}


async def main():
    ours, theirs = memory_transports()
    serving = asyncio.ensure_future(app.serve(theirs))
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"sampling": {}},
             "clientInfo": {"name": "learner", "version": "1"}}  # fmt: skip
    call = {"name": "rhyme", "arguments": {"word": "pocket"}}
    for msg in ({"id": 1, "method": "initialize", "params": hello},
                {"method": "notifications/initialized"},
                {"id": 2, "method": "tools/call", "params": call}):  # fmt: skip
        await ours.write({"jsonrpc": "2.0", **msg})
    answer = {}
    while answer.get("id") != 2 or "result" not in answer:
        for line in await ours.read():
            course.came(line)
            answer = json.loads(line)
            if answer.get("method") == "sampling/createMessage":
                result = model(answer["params"])
                await ours.write({"jsonrpc": "2.0", "id": answer["id"], "result": result})
    assert answer["result"]["content"][0]["text"] == "socket"
    await ours.close()
    await serving
    print("pocket rhymes with socket")


asyncio.run(main())
