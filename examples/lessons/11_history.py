"""Lesson 11. Batches, and the history of the protocol.

There are five revisions. Each added something, and some took something away. Batches, several
messages in one JSON array, exist in 2025-03-26 alone; the newest has no handshake. A peer never
gets a method or a kind of content that its revision does not know, so a server must know what was
new when. A member of an object that the peer does not know does no harm.

mcp_lite.py does it properly in "Revisions and methods": all of history is one table.
Exercise: print a table of all methods by revision, from METHODS and REVISIONS of mcp_lite.
"""

import json

from course import Pipe, came, say, sent, teach

HISTORY = """
      2024-11-05     2025-03-26     2025-06-18     2025-11-25   |   2026-07-28
    --------------+--------------+--------------+---------------+----------------------
      stdio                                                     |
      HTTP+SSE      streamable HTTP ............................|.. without sessions
      handshake ................................................|.. every request says it
      sampling, roots              elicitation    URLs to open  |   questions end a call
                    batches        (gone)                       |   subscriptions/listen
                    audio          resource links, icons        |
                    annotations    structured     tasks, as an  |   tasks, as an
                    of tools       results        experiment    |   extension
                    OAuth 2.1      resource       client ID     |
                                   metadata       documents     |
                       the legacy era                           |   the modern era
"""
BATCH = [
    {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "method": "notifications/whatever"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
     "params": {"name": "add", "arguments": {"a": 1, "b": 2}}},
]  # fmt: skip


async def send_batch(pipe, batch):
    """Send an array as one line, and return the line that comes back."""
    line = json.dumps(batch).encode() + b"\n"
    sent(line)
    pipe.server.stdin.write(line)
    answer = await pipe.server.stdout.readline()
    came(answer)
    return json.loads(answer)


async def lesson():
    print(HISTORY.rstrip())
    async with Pipe() as pipe:
        say("A session of 2025-03-26:")
        await pipe.shake_hands("2025-03-26")
        say("In this revision we may send several messages at once:")
        answers = await send_batch(pipe, BATCH)
        assert sorted(answer["id"] for answer in answers) == [1, 2]
        say("Two answers to three messages, in one array: the notification has none. The result "
            "of the call has a structuredContent, which came one revision later: this client may "
            "ignore it.")  # fmt: skip
    say("A link in a result is a kind of content, new in 2025-06-18. Here it is, for a client "
        "that knows it:")  # fmt: skip
    async with Pipe() as pipe:
        await pipe.shake_hands("2025-06-18")
        await pipe.ask(1, "tools/call", {"name": "where", "arguments": {"name": "tool"}})


async def batch_later():
    """We send a batch in 2025-11-25. What happens?"""
    async with Pipe() as pipe:
        await pipe.shake_hands("2025-11-25")
        answer = await send_batch(pipe, BATCH)
        assert answer["error"]["code"] == -32600
    return "One error for all of it: the revisions after 2025-03-26 took batches out again."


async def empty_batch():
    """And an empty batch, where there are batches?"""
    async with Pipe() as pipe:
        await pipe.shake_hands("2025-03-26")
        answer = await send_batch(pipe, [])
        assert answer["error"]["code"] == -32600 and "id" not in answer
    return ("An error without an id. JSON-RPC 2.0 writes null there; MCP knows no such id, and "
            "says since 2025-11-25 that an error may have none.")  # fmt: skip


async def new_content():
    """A tool returns a link, new in 2025-06-18. What does an older client get?"""
    call = {"name": "where", "arguments": {"name": "tool"}}
    kinds = []
    for revision in ("2025-03-26", "2025-06-18"):
        async with Pipe() as pipe:
            await pipe.shake_hands(revision)
            answer = await pipe.ask(1, "tools/call", call)
            kinds.append(answer["result"]["content"][0]["type"])
    assert kinds == ["text", "resource_link"]
    return "A text that says the same. Nothing is lost, and the client can read all that comes."


if __name__ == "__main__":
    teach(__doc__, lesson, batch_later, empty_batch, new_content)
