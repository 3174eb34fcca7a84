"""Lesson 4. Results and errors: whose fault is it?

A call can go wrong in two ways. The tool failed, or the arguments do not fit its schema: that is a
result with `isError`, for the model, which can try again. Anything else that is wrong with the
request is an error with a code, for the program that sent it.

mcp_lite.py does it properly in "Errors", whose function handler_error() decides what the
other end receives, and in "Methods".
Exercise: write a function blame(answer) that returns "nobody", "the call" (the tool failed, or the
model called it wrongly), or "the client".
"""

from course import Pipe, say, teach


async def ask(method, params=None):
    """Open a session, send one request, return its answer."""
    async with Pipe() as pipe:
        await pipe.shake_hands()
        return await pipe.ask(1, method, params)


async def lesson():
    async with Pipe() as pipe:
        await pipe.shake_hands()
        say("We divide by zero. The tool says that it cannot, and that is its result:")
        call = {"name": "divide", "arguments": {"a": 1, "b": 0}}
        answer = await pipe.ask(1, "tools/call", call)
        assert answer["result"]["isError"] is True
        say("The model reads this text; it may ask the user for another number.")
        say("Now we call a tool that does not exist. No tool has failed, so it is an error:")
        answer = await pipe.ask(2, "tools/call", {"name": "dvide", "arguments": {}})
        assert answer["error"]["code"] == -32602
        say("Code -32602 says that the method is right and its parameters are wrong. The model "
            "never sees this, unless the client shows it.")  # fmt: skip


async def unknown_method():
    """The method does not exist. Is the code -32602 again?"""
    answer = await ask("tools/destroy")
    assert answer["error"]["code"] == -32601
    return "No: -32601, method not found. The parameters were not even looked at."


async def missing_parameter():
    """tools/call without `name`: does the server guess, crash, or tell us?"""
    answer = await ask("tools/call", {"arguments": {}})
    assert answer["error"]["code"] == -32602 and "name" in answer["error"]["message"]
    return f"It tells: {answer['error']['message']!r}."


async def unknown_resource():
    """A resource is something to read, under a URI. This one does not exist: result or error?"""
    answer = await ask("resources/read", {"uri": "word://nothing"})
    assert answer["error"]["code"] == -32002
    return ("An error, -32002: there is no result that a resource could fail with. (From the "
            "newest revision on, the code is -32602.)")  # fmt: skip


if __name__ == "__main__":
    teach(__doc__, lesson, unknown_method, missing_parameter, unknown_resource)
