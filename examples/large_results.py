#!/usr/bin/env python3
"""Cut long results, and let the model read on where it wants to.

Hosts refuse or cut results of more than some 25,000 tokens, and a model seldom needs them whole.
`cut_results(app)` sends the beginning of a long text, and keeps the rest for the tool `read_more`.

    python3 mcp_lite.py call numbers count=100000 examples/large_results.py
"""

from __future__ import annotations

import collections
import pathlib
import secrets
import sys
from typing import Annotated, Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # where mcp_lite.py may be

from mcp_lite import Context, Server, ToolError  # noqa: E402

MAX_CHARS = 20_000  # of one result: about 5,000 tokens
MAX_KEPT = 50_000_000  # characters of all texts that are kept; the oldest go first


class Kept:
    """The texts that were cut, for whoever got their beginning."""

    def __init__(self) -> None:
        self.texts: collections.OrderedDict[str, tuple[Any, str]] = collections.OrderedDict()
        self.chars = 0

    def add(self, owner: Any, text: str) -> str:
        """Keep a text; return its id, which cannot be guessed."""
        key = secrets.token_urlsafe(12)
        self.texts[key] = owner, text
        self.chars += len(text)
        while self.chars > MAX_KEPT:
            _, (_, oldest) = self.texts.popitem(last=False)
            self.chars -= len(oldest)
        return key

    def piece(self, owner: Any, key: str, start: int) -> str:
        """Return a piece of a text, and say where the next one begins."""
        found_owner, text = self.texts.get(key, (None, None))
        if text is None or found_owner != owner:
            raise ToolError("this text is no longer here: call the first tool again")
        end = start + MAX_CHARS
        if end >= len(text):
            return text[start:]
        more = f"read_more(id={key!r}, start={end})"
        return f"{text[start:end]}\n[{len(text) - end:,} more characters: {more}]"


def cut_results(app: Server) -> None:
    """Cut the long texts of all tools that send text only (`structured=False`)."""
    kept = Kept()

    @app.tool(annotations={"readOnlyHint": True}, structured=False)
    def read_more(id: str, start: Annotated[int, {"minimum": 0}], ctx: Context) -> str:
        """Read on in a text that was too long for one result."""
        return kept.piece(who(ctx), id, start)

    @app.middleware
    async def cut(ctx: Context, call_next: Any) -> Any:
        result = await call_next(ctx)
        if ctx.method != "tools/call" or ctx.params.get("name") == "read_more":
            return result
        # Structured data has a schema, and cannot be cut.
        if isinstance(result, dict) and "content" in result and "structuredContent" not in result:
            content = [shorter(part, who(ctx)) for part in result["content"]]
            return {**result, "content": content}
        return result

    def shorter(part: dict[str, Any], owner: Any) -> dict[str, Any]:
        if part["type"] != "text" or len(part["text"]) <= MAX_CHARS:
            return part
        return {**part, "text": kept.piece(owner, kept.add(owner, part["text"]), 0)}


def who(ctx: Context) -> Any:
    """Return whose text it is. In the modern era, clients without a token have but the id."""
    return ctx.owner if ctx.principal is not None else None


app = Server("numbers", "1.0")
cut_results(app)


@app.tool(structured=False)
def numbers(count: Annotated[int, {"minimum": 0, "maximum": 1_000_000}]) -> str:
    """Return the first numbers, one a line."""
    return "\n".join(map(str, range(count)))


if __name__ == "__main__":
    app.run()
