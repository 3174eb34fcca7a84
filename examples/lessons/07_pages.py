"""Lesson 7. Pages and completion.

A long list comes in pages. With each page comes a cursor; who sends it back gets the next page.
A prompt is a text with parameters, which a user picks. While they type an argument of it, the
server can complete it.

mcp_lite.py does it properly in "Methods".
Exercise: an async generator that yields all resources, and notices a server whose cursors go
round in circles.
"""

from course import Pipe, say, teach


async def lesson():
    async with Pipe() as pipe:
        await pipe.shake_hands()
        say("This server puts three items on a page. We ask for the resources:")
        answer = await pipe.ask(1, "resources/list")
        say("nextCursor says that there is more. It means nothing to us; we just send it back:")
        while "nextCursor" in answer["result"]:
            cursor, req_id = answer["result"]["nextCursor"], answer["id"] + 1
            answer = await pipe.ask(req_id, "resources/list", {"cursor": cursor})
        say("The last page has no cursor.")
        say('Now a prompt. The person types "t" for its argument `word`:')
        answer = await complete(pipe, "word", "t")
        assert answer["result"]["completion"]["values"] == ["tool"]


async def complete(pipe, argument, begun):
    """Ask for the values of an argument that begin so."""
    ref = {"type": "ref/prompt", "name": "translate"}
    about = {"name": argument, "value": begun}
    return await pipe.ask(4, "completion/complete", {"ref": ref, "argument": about})


async def invented_cursor():
    """We invent a cursor. What comes back?"""
    async with Pipe() as pipe:
        await pipe.shake_hands()
        answer = await pipe.ask(1, "resources/list", {"cursor": "page 2"})
        assert answer["error"]["code"] == -32602
    return "Error -32602. Cursors are opaque: only the server knows what they mean."


async def borrowed_cursor():
    """We send the cursor of resources/list to tools/list. Does it work?"""
    async with Pipe() as pipe:
        await pipe.shake_hands()
        page = await pipe.ask(1, "resources/list")
        cursor = page["result"]["nextCursor"]
        answer = await pipe.ask(2, "tools/list", {"cursor": cursor})
        assert "tools" in answer["result"]
    return "Here it does, as a position; nobody promised it, and others answer with an error."


async def by_itself():
    """`language` may be one of three words, but nobody wrote a completion. What comes back?"""
    async with Pipe() as pipe:
        await pipe.shake_hands()
        answer = await complete(pipe, "language", "F")
        assert answer["result"]["completion"]["values"] == []
    return "An empty list, and no error. Nobody can know more of a prompt's argument than its name."


if __name__ == "__main__":
    teach(__doc__, lesson, invented_cursor, borrowed_cursor, by_itself)
