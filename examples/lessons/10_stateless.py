"""Lesson 10. The stateless era: rounds and replay.

In the newest revision there is no handshake and no session: every request says in its `_meta` all
that the server must know. The server sends no requests, either. A tool that asks ends its call
with the question; the client makes the call again, with the answer; the tool runs again from the
top. The answers so far travel along in `requestState`, signed by the server.

mcp_lite.py does it properly in "Rounds", the one to read twice.
Exercise: write the client's loop: call, answer all inputRequests, call again, until it is complete.
"""

import base64
import json

from course import Pipe, say, teach

MCP = "io.modelcontextprotocol/"
META = {MCP + "protocolVersion": "2026-07-28", MCP + "clientCapabilities": {"elicitation": {}}}


async def lunch(pipe, req_id, dish="soup", **more):
    """Make one round of a call; return its result, or error."""
    params = {"name": "lunch", "arguments": {"dish": dish}, **more, "_meta": META}
    answer = await pipe.ask(req_id, "tools/call", params)
    return answer.get("result") or answer["error"]


def answered(result, value, state=None):
    """Return the members that answer the question of a round."""
    (name,) = result["inputRequests"]
    responses = {name: {"action": "accept", "content": {"value": value}}}
    return {"inputResponses": responses, "requestState": state or result["requestState"]}


async def lesson():
    async with Pipe() as pipe:
        say("No handshake. The first thing that we say is the call:")
        first = await lunch(pipe, 1)
        assert first["resultType"] == "input_required"
        say("The call has ended, with a question. We make it again, as a new request, with the "
            "answer under the question's name, and the state as it came. (It is longer than it "
            "is shown here.)")  # fmt: skip
        second = await lunch(pipe, 2, **answered(first, "tea"))
        assert second["resultType"] == "input_required"
        record = json.loads(base64.urlsafe_b64decode(second["requestState"].split(".")[0]))
        say("The tool ran from the top, got `tea` without asking, cooked, and asked the second "
            "question. The state is signed, but it is not secret. What it keeps:")  # fmt: skip
        for name, value in record["record"]["kept"].items():
            print(f"      {name.split('(')[0][:30]}: {json.dumps(value)}")
        third = await lunch(pipe, 3, **answered(second, True))
        assert third["resultType"] == "complete"
        assert "1 cooked in all" in third["content"][0]["text"]
        say("Three runs of the tool, one dish: ctx.once() kept the cook from cooking again. The "
            "server remembered nothing: any process with its key could have gone on.")  # fmt: skip


async def other_arguments():
    """We have agreed about soup. Can we use that state to order steak?"""
    async with Pipe() as pipe:
        first = await lunch(pipe, 1)
        refused = await lunch(pipe, 2, dish="steak", **answered(first, "tea"))
        assert refused["code"] == -32602 and "for this request" in refused["message"]
    return "No. The state is bound to the method and the parameters of its call."


async def forged():
    """We change one letter of the state. Who notices?"""
    async with Pipe() as pipe:
        first = await lunch(pipe, 1)
        state = first["requestState"]
        state = ("A" if state[0] != "A" else "B") + state[1:]
        refused = await lunch(pipe, 2, **answered(first, "tea", state))
        assert refused["code"] == -32602
    return "The server: the signature is wrong, and only it has the key."


async def without_metadata():
    """We leave out the capabilities in `_meta`. May the server guess?"""
    async with Pipe() as pipe:
        meta = {MCP + "protocolVersion": "2026-07-28"}
        answer = await pipe.ask(1, "tools/list", {"_meta": meta})
        assert answer["error"]["code"] == -32602
    return "No: -32602. Without a session, there is nothing that the server could remember."


if __name__ == "__main__":
    teach(__doc__, lesson, other_arguments, forged, without_metadata)
