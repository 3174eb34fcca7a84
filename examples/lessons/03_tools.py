"""Lesson 3. Tools and their schemas.

A tool is a function that a model may call. The server lists its tools with a JSON Schema of their
arguments. The model reads names, descriptions and schemas, and writes JSON that fits them.

mcp_lite.py does it properly in the sections "JSON Schema", "Functions" (how a
function becomes a schema) and "Entries".
Exercise: write down, from the schema alone, every call of `add` that must be refused. Try them.
"""

from course import Pipe, say, teach


async def lesson():
    async with Pipe() as pipe:
        await pipe.shake_hands()
        say("We ask for the tools. A page of the list comes back (lesson 7 is about pages):")
        answer = await pipe.ask(1, "tools/list")
        tool = answer["result"]["tools"][0]
        say(f"The first is {tool['name']!r}. Its description was a function's docstring, and its "
            "inputSchema the annotations. `a` is required, `b` has a default.")  # fmt: skip
        answer = await pipe.ask(2, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        result = answer["result"]
        assert result["content"][0]["text"] == "3" and result["structuredContent"] == {"result": 3}
        say("The result came twice: `content` is for the model to read, `structuredContent` for "
            "a program, and fits the outputSchema of the list. A number is not an object, so it is "
            'wrapped as {"result": 3}.')  # fmt: skip


async def call(arguments):
    async with Pipe() as pipe:
        await pipe.shake_hands()
        answer = await pipe.ask(1, "tools/call", {"name": "add", "arguments": arguments})
        return answer["result"]


async def wrong_type():
    """`a` is a word, not a number. Who gets the error: the program, or the model, in a result?"""
    result = await call({"a": "one"})
    assert result["isError"] and "expected integer" in result["content"][0]["text"]
    return ("A result with `isError`, and a text that says what is wrong: the model reads it and "
            "can do better.")  # fmt: skip


async def number_as_text():
    """Models like to write "3" for 3. Does mcp_lite refuse it?"""
    result = await call({"a": "3"})
    assert result["structuredContent"] == {"result": 3}
    return ("No: where the schema admits no string, there is no doubt about the meaning. Where "
            "it admits one, the string stays a string.")  # fmt: skip


async def unknown_argument():
    """The call has an argument `c`, which the schema does not know. Is it ignored?"""
    result = await call({"a": 1, "c": 3})
    assert result["isError"] and "c: unexpected property" in result["content"][0]["text"]
    return ("No. A function takes the arguments that it names: a misspelt one that is silently "
            "dropped would be hard to find.")  # fmt: skip


if __name__ == "__main__":
    teach(__doc__, lesson, wrong_type, number_as_text, unknown_argument)
