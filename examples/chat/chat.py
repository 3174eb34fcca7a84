#!/usr/bin/env python3
"""A chat in which a model uses the tools of MCP servers.

    python3 chat.py TARGET...      TARGET is a .py file, a URL or a quoted command

The loop is in `Chat.turn`. The model is a function: it gets the messages and the tools, and returns
a message. `ScriptedModel` plays one without a network, for a try and for tests; README.md shows how
to ask a real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import re
import sys
from collections.abc import Awaitable
from typing import Any, Callable

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]  # where mcp_lite.py may be

from mcp_lite import Client, MCPError  # noqa: E402

Message = dict[str, Any]
#: model(messages, tools) returns {"text": ..., "calls": [{"id", "name", "arguments"}]}.
Model = Callable[[list[Message], list[Message]], Awaitable[Message]]

MAX_ROUNDS = 20  # of tool calls for one line of the user
MAX_CHARS = 20_000  # of one result, for the model


class Chat:
    """A conversation of a user, a model, and the servers whose tools it may use."""

    def __init__(self, model: Model, ask: Callable[[str], bool]) -> None:
        self.model = model
        self.ask = ask  # ask(question) returns whether the user agrees
        self.messages: list[Message] = []
        self.tools: dict[str, tuple[Client, Message]] = {}  # by the name that the model sees

    async def add(self, client: Client) -> None:
        """Offer the tools of a server to the model."""
        server = re.sub(r"\W", "_", client.server_info.get("name", "server"))
        for tool in await client.list_tools():
            # Two servers may have tools of one name; models accept 64 characters.
            name = re.sub(r"[^\w-]", "_", f"{server}__{tool['name']}")[:64]
            self.tools[name] = client, tool

    def offered(self) -> list[Message]:
        """Return the tools as most models want them."""
        shown = []
        for name, (_, tool) in self.tools.items():
            about = tool.get("description", "")
            shown.append({"name": name, "description": about, "schema": tool["inputSchema"]})
        return shown

    async def turn(self, text: str) -> str:
        """Answer a line of the user: let the model call tools until it has an answer."""
        self.messages.append({"role": "user", "text": text})
        for _ in range(MAX_ROUNDS):
            reply = await self.model(self.messages, self.offered())
            self.messages.append({"role": "assistant", **reply})
            if not reply.get("calls"):
                return reply["text"]
            # Calls of one message do not depend on each other.
            results = await asyncio.gather(*map(self.use, reply["calls"]))
            self.messages.append({"role": "tool", "results": results})
        return "I gave up: too many tool calls."

    async def use(self, call: Message) -> Message:
        """Call a tool. Whatever goes wrong is a text that the model reads."""
        client, tool = self.tools.get(call["name"], (None, {}))
        if client is None:
            return result_of(call, f"there is no tool {call['name']}", failed=True)
        if not tool.get("annotations", {}).get("readOnlyHint"):
            arguments = json.dumps(call["arguments"], ensure_ascii=False)
            question = f"Let the model use {call['name']} {arguments}?"
            if not await asyncio.to_thread(self.ask, question):
                return result_of(call, "the user declined", failed=True)
        try:
            result = await client.call_tool(tool["name"], call["arguments"])
        except MCPError as exc:
            return result_of(call, str(exc), failed=True)
        return result_of(call, text_of(result), failed=bool(result.get("isError")))


def text_of(result: Message) -> str:
    """Return the text of a result; this model sees no images."""
    parts = []
    for part in result["content"]:
        kind = part["type"]
        parts.append(part["text"] if kind == "text" else f"[{kind}]")
    return "\n".join(parts)


def result_of(call: Message, text: str, failed: bool) -> Message:
    if len(text) > MAX_CHARS:
        text = f"{text[:MAX_CHARS]}\n[{len(text) - MAX_CHARS} more characters]"
    return {"id": call["id"], "text": text, "failed": failed}


class ScriptedModel:
    """A model that reads a line `use NAME {...}` as a wish to call a tool."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, messages: list[Message], tools: list[Message]) -> Message:
        last = messages[-1]
        if last["role"] == "tool":
            return {"text": "; ".join(result["text"] for result in last["results"]), "calls": []}
        calls = []
        for name, words in re.findall(r"use (\S+) (\{.*?\})", last["text"]):
            self.count += 1
            arguments = json.loads(words)
            full = next((t["name"] for t in tools if t["name"].endswith(name)), name)
            calls.append({"id": f"call-{self.count}", "name": full, "arguments": arguments})
        return {"text": f"I have {len(tools)} tools.", "calls": calls}


def confirm(question: str) -> bool:
    return input(f"{question} [y/N] ").strip().lower() == "y"


def elicit(message: str, schema: Message) -> Message | None:
    """Answer a form of a server: one line a field. Servers ask the user, never the model."""
    print(f"A server asks: {message}")
    answers = {}
    for name, field in schema.get("properties", {}).items():
        text = input(f"  {field.get('title', name)}: ")
        if not text:
            return None
        is_text = field.get("type", "string") == "string"
        answers[name] = text if is_text else json.loads(text)
    return answers


async def main(targets: list[str]) -> None:
    chat = Chat(ScriptedModel(), confirm)
    async with contextlib.AsyncExitStack() as stack:
        for target in targets:
            await chat.add(await stack.enter_async_context(Client(target, elicit=elicit)))
        while True:
            try:
                text = await asyncio.to_thread(input, "> ")
            except EOFError:
                return
            print(await chat.turn(text))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
