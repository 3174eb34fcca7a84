"""A client that gives up on a call of which it hears nothing for 0.2 seconds."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import Pipe

SILENCE = 0.2  # seconds without a word of a call


async def call(pipe, req_id, params):
    """Return the result of a call; None if it was silent for too long."""
    meta = {"_meta": {"progressToken": req_id}}
    msg = {"jsonrpc": "2.0", "id": req_id, "method": "tools/call", "params": {**params, **meta}}
    await pipe.send(msg)
    while True:
        try:
            msg = await asyncio.wait_for(pipe.receive(), SILENCE)
        except asyncio.TimeoutError:
            gone = {"requestId": req_id, "reason": "silence"}
            method = "notifications/cancelled"
            await pipe.send({"jsonrpc": "2.0", "method": method, "params": gone})
            return None
        if msg.get("id") == req_id:  # every report begins the wait anew
            return msg["result"]


async def main():
    async with Pipe() as pipe:
        await pipe.shake_hands(elicitation={})
        counting = {"name": "count", "arguments": {"to": 8}}  # takes longer, but reports
        assert await call(pipe, 1, counting) is not None
        # The question of this tool comes at once; then it waits for us, in silence.
        assert await call(pipe, 2, {"name": "lunch", "arguments": {"dish": "soup"}}) is None
    print("the call that reported was waited for; the silent one was cancelled")


asyncio.run(main())
