"""Lesson 6. The server asks back.

In the middle of a call the server may need something from the client: a decision of the user
(elicitation), a text from its model (sampling), its folders (roots). Then the server sends a
request, and we answer it. Its ids are its own: a question of the server may have
the id of our call.

mcp_lite.py does it properly in the section "Context", and for the client in Part V.
Exercise: answer sampling/createMessage, too: declare `sampling`, and let a function be the model.
The classroom has no tool that samples. Write one, with `await ctx.sample("...")`, after the
pattern of `lunch` in server.py.
"""

from course import Pipe, say, teach

LUNCH = {"name": "lunch", "arguments": {"dish": "soup"}}


def accept(question, **content):
    """Return the answer to an elicitation."""
    result = {"action": "accept", "content": content}
    return {"jsonrpc": "2.0", "id": question["id"], "result": result}


async def lesson():
    async with Pipe() as pipe:
        say("In the handshake we declare that we can show forms. Else we would not be asked.")
        await pipe.shake_hands(elicitation={})
        say("We call a tool that asks. What comes is not a response: it has a method.")
        question = await pipe.ask(1, "tools/call", LUNCH)
        assert question["method"] == "elicitation/create"
        form = question["params"]["requestedSchema"]
        say(f"It wants {', '.join(form['required'])}, and a schema says of which kind. A client "
            "makes a form of it, and shows it to the user. We take tea:")  # fmt: skip
        await pipe.send(accept(question, value="tea"))
        question = await pipe.receive()
        say("The tool goes on where it waited, and asks again:")
        await pipe.send(accept(question, value=True))
        answer = await pipe.receive()
        assert answer["id"] == 1
        say("Only now comes the answer to our own request 1.")


async def decline():
    """The person declines. Has the call failed?"""
    async with Pipe() as pipe:
        await pipe.shake_hands(elicitation={})
        question = await pipe.ask(1, "tools/call", LUNCH)
        no = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        await pipe.send(no)
        answer = await pipe.receive()
        assert answer["result"]["content"][0]["text"] == "no lunch today"
    return "No. To decline is an answer like others, and the tool decides what follows from it."


async def undeclared():
    """We did not declare `elicitation`. Does the question come all the same?"""
    async with Pipe() as pipe:
        await pipe.shake_hands()
        answer = await pipe.ask(1, "tools/call", LUNCH)
        assert answer["id"] == 1 and answer["result"]["isError"]
    return "No. The tool learns that it cannot ask, and here it fails; it might do without."


async def nonsense():
    """The form offers water and tea. We answer with wine. Does the tool get it?"""
    async with Pipe() as pipe:
        await pipe.shake_hands(elicitation={})
        question = await pipe.ask(1, "tools/call", LUNCH)
        await pipe.send(accept(question, value="wine"))
        answer = await pipe.receive()
        assert answer["result"]["isError"] and "wine" in answer["result"]["content"][0]["text"]
    return "No. The server checks answers against the form that it sent."


if __name__ == "__main__":
    teach(__doc__, lesson, decline, undeclared, nonsense)
