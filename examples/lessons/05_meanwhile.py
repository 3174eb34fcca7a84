"""Lesson 5. Meanwhile: notifications, progress, cancellation.

A call may take long. Beside its parameters proper stands `_meta`, which is not for the tool. With
a progress token in it, the server tells how far the call is. The client can also cancel a call.
Report and cancellation are notifications: they are sent, and nobody answers.

mcp_lite.py does it properly in "Requests in flight" and "Peer".
Exercise: a client that gives up on any call of which it has heard nothing for a second. Try it
with `count` to 40: with a progress token, and without.
"""

from course import Pipe, say, teach

CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled",
          "params": {"requestId": 1, "reason": "the learner lost patience"}}  # fmt: skip


def count(req_id, to, **meta):
    """Return a call of the slow tool."""
    params = {"name": "count", "arguments": {"to": to}, **({"_meta": meta} if meta else {})}
    return {"jsonrpc": "2.0", "id": req_id, "method": "tools/call", "params": params}


async def lesson():
    async with Pipe() as pipe:
        await pipe.shake_hands()
        say("We let it count to 3, and give it a token to put on its reports:")
        await pipe.send(count(1, 3, progressToken="mine"))
        msg = await pipe.receive()
        while "id" not in msg:
            assert msg["params"]["progressToken"] == "mine"
            msg = await pipe.receive()
        say("Three notifications, then the answer. The token says which call they are about, "
            "since several calls may run at once.")  # fmt: skip
        say("Now to 100, and we change our mind at the first report:")
        await pipe.send(count(2, 100, progressToken=2))
        await pipe.receive()
        await pipe.send({**CANCEL, "params": {"requestId": 2}})
        say("A cancelled request is never answered. To see that, we ask something else:")
        msg = await pipe.ask(3, "ping")
        while msg.get("id") != 3:  # reports that were under way
            msg = await pipe.receive()


async def without_token():
    """The call has no progress token. Does the server report all the same?"""
    async with Pipe() as pipe:
        await pipe.shake_hands()
        await pipe.send(count(1, 3))
        assert (await pipe.receive())["id"] == 1
    return "No: the first message that comes is the answer. Without a token, no reports."


async def too_late():
    """The cancellation comes after the answer. What happens?"""
    async with Pipe() as pipe:
        await pipe.shake_hands()
        await pipe.send(count(1, 1))
        assert (await pipe.receive())["id"] == 1
        await pipe.send(CANCEL)
        assert (await pipe.ask(2, "ping"))["id"] == 2
    return "Nothing. The two crossed on the way; that is nobody's mistake, and must do no harm."


async def meanwhile():
    """While the server counts, it gets a ping. Which answer comes first?"""
    async with Pipe() as pipe:
        await pipe.shake_hands()
        await pipe.send(count(1, 5))
        await pipe.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert [(await pipe.receive())["id"] for _ in range(2)] == [2, 1]
    return "The ping's. Requests run side by side, and ids tell their answers apart."


if __name__ == "__main__":
    teach(__doc__, lesson, without_token, too_late, meanwhile)
