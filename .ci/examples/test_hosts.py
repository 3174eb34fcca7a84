"""examples/chat, examples/resources_as_tools.py and examples/large_results.py."""

import asyncio
import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

from mcp_lite import Client, Server, ToolError

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def load(path):
    """Import an example."""
    spec = importlib.util.spec_from_file_location(f"example_{pathlib.Path(path).stem}", EXAMPLES / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def chat():
    """The chat example with a server of two tools, a script in place of the model, and a log of questions."""
    module = load("chat/chat.py")
    app = Server("my shop", "1.0")
    app.asked = []

    @app.tool(annotations={"readOnlyHint": True})
    def look(item: str) -> str:
        if item == "gold":
            raise ToolError("there is no gold")
        return item * 3

    @app.tool
    def buy(item: str) -> str:
        return f"bought {item}"

    async def talk(*lines, agree=True):
        def ask(question):
            app.asked.append(question)
            return agree

        talk.chat = module.Chat(module.ScriptedModel(), ask)
        async with Client(app) as client:
            await talk.chat.add(client)
            return [await talk.chat.turn(line) for line in lines]

    talk.asked = app.asked
    return talk


def test_a_model_uses_tools_until_it_has_an_answer(chat):
    said = asyncio.run(chat("hello", 'use look {"item": "ab"} and use buy {"item": "tea"}'))
    assert said == ["I have 2 tools.", "ababab; bought tea"]
    assert [tool["name"] for tool in chat.chat.offered()] == ["my_shop__look", "my_shop__buy"]


def test_only_a_tool_that_may_change_something_asks_the_user_first(chat):
    said = asyncio.run(chat('use look {"item": "ab"}', 'use buy {"item": "tea"}', agree=False))
    assert said == ["ababab", "the user declined"]
    assert chat.asked == ['Let the model use my_shop__buy {"item": "tea"}?']


def test_what_fails_is_a_text_for_the_model(chat):
    said = asyncio.run(chat('use look {"item": "gold"}', 'use look {"x": 1}', 'use steal {"x": 1}'))
    assert said[0] == "there is no gold" and "item" in said[1] and said[2] == "there is no tool steal"


def test_a_long_result_is_cut_and_a_model_that_never_ends_is_stopped(chat):
    (said,) = asyncio.run(chat('use look {"item": "%s"}' % ("x" * 10_000)))
    assert said.endswith("x\n[10000 more characters]")

    async def endless(messages, tools):
        return {"text": "", "calls": [{"id": "1", "name": "none", "arguments": {}}]}

    chat.chat.model = endless
    assert "too many" in asyncio.run(chat.chat.turn("go"))


def test_the_program_talks_at_the_terminal():
    command = [sys.executable, str(EXAMPLES / "chat" / "chat.py"), str(EXAMPLES / "quickstart.py")]
    done = subprocess.run(command, input="hello\n", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and re.search(r"I have \d tools", done.stdout)


def test_resources_are_listed_and_read_by_tools(example, revision):
    async def main():
        async with Client(example("resources_as_tools.py"), revision=revision) as c:
            assert (await c.call("list_resources")).splitlines() == [
                "shop://rules: The rules of the shop.",
                "shop://logo: The logo of the shop.",
                "stock://{item}: How many packets of an item there are.",
            ]
            assert await c.call("read_resource", {"uri": "stock://tea"}) == "5"
            (logo,) = (await c.call_tool("read_resource", {"uri": "shop://logo"}))["content"]
            assert logo["resource"]["mimeType"] == "image/gif"
            for uri in ("stock://gold", "nowhere", "file:///etc/passwd"):
                with pytest.raises(ToolError, match="cannot be read.*Use list_resources"):
                    await c.call("read_resource", {"uri": uri})

    asyncio.run(main())


def test_a_long_text_is_cut_and_can_be_read_to_its_end(example, revision):
    async def main():
        async with Client(example("large_results.py"), revision=revision) as c:
            assert await c.call("numbers", {"count": 3}) == "0\n1\n2"
            text, whole = await c.call("numbers", {"count": 10_000}), ""
            while True:
                more = re.search(r"\n\[[\d,]+ more characters: read_more\(id='(.+)', start=(\d+)\)\]$", text)
                if more is None:
                    break
                whole += text[: more.start()]
                text = await c.call("read_more", {"id": more[1], "start": int(more[2])})
            assert (whole + text).splitlines() == [str(number) for number in range(10_000)]
            with pytest.raises(ToolError, match="no longer here"):
                await c.call("read_more", {"id": "other", "start": 0})

    asyncio.run(main())


def test_a_cut_text_belongs_to_the_principal_that_asked_for_it():
    app = load("large_results.py").app

    async def main():
        async with app.http(port=0, token={"a": "ann", "b": "bob"}) as server:
            async with Client(server.url, token="a") as ann, Client(server.url, token="b") as bob:
                text = await ann.call("numbers", {"count": 10_000})
                wanted = {"id": re.search(r"id='(.+)',", text)[1], "start": 20_000}
                assert await ann.call("read_more", wanted)
                with pytest.raises(ToolError, match="no longer here"):
                    await bob.call("read_more", wanted)

    asyncio.run(main())
