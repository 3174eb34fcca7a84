"""A client that gives up on a call of which it hears nothing for a second."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import Pipe

SILENCE = 1.0  # seconds without a word of a call


async def call(pipe, req_id, params):
    """Return the result of a call; None if it was silent for too long."""
    await pipe.send({"jsonrpc": "2.0", "id": req_id, "method": "tools/call", "params": params})
    while True:
        try:
            msg = await asyncio.wait_for(pipe.receive(), SILENCE)
        except asyncio.TimeoutError:
            gone = {"requestId": req_id, "reason": "silence"}
            method = "notifications/cancelled"
            await pipe.send({"jsonrpc": "2.0", "method": method, "params": gone})
            return None
        if "method" not in msg and msg["id"] == req_id:  # a report begins the wait anew
            return msg["result"]


async def main():
    async with Pipe() as pipe:
        await pipe.shake_hands()
        counting = {"name": "count", "arguments": {"to": 40}}  # takes longer than that
        reporting = {**counting, "_meta": {"progressToken": "mine"}}
        assert await call(pipe, 1, reporting) is not None
        assert await call(pipe, 2, counting) is None
    print("the call that reported was waited for; the silent one was cancelled")


asyncio.run(main())
