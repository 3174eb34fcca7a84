#!/usr/bin/env python3
"""Offer resources as tools, too, for hosts that show nothing but tools to their models.

`add_resource_tools(app)` adds two tools: `list_resources` and `read_resource`. Run this file, and
try them on two resources and a template:

    python3 mcp_lite.py call list_resources examples/resources_as_tools.py
    python3 mcp_lite.py call read_resource uri=stock://tea examples/resources_as_tools.py
"""

from __future__ import annotations

import pathlib
import sys
from typing import Annotated, Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # where mcp_lite.py may be

from mcp_lite import Client, Context, MCPError, RPCError, Server, ToolError  # noqa: E402

READ_ONLY = {"readOnlyHint": True, "openWorldHint": False}


def line(item: dict[str, Any]) -> str:
    """Describe a resource or a template in one line."""
    uri = item.get("uri") or item["uriTemplate"]
    about = item.get("description") or item.get("title") or item["name"]
    return f"{uri}: {' '.join(about.split())}"


def content_of(part: dict[str, Any]) -> dict[str, Any]:
    """Turn a part of a resource into a part of a result."""
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    return {"type": "resource", "resource": part}


def add_resource_tools(app: Server) -> None:
    """Let models list and read the resources of a server by tools."""

    @app.tool(annotations=READ_ONLY, structured=False)
    async def list_resources() -> str:
        """List what can be read with read_resource. In a template, replace {name} by a value."""
        async with Client(app) as c:  # in memory; so all pages are read
            found = [*await c.list_resources(), *await c.list_templates()]
        return "\n".join(map(line, found)) or "there are no resources"

    @app.tool(annotations=READ_ONLY, structured=False)
    async def read_resource(uri: Annotated[str, "A URI from list_resources"], ctx: Context) -> Any:
        """Read a resource."""
        try:
            # As the caller of this tool, with its principal; so nothing is readable that was not.
            contents = await ctx.read_resource(uri)
        except MCPError as exc:
            raise ToolError(f"{uri} cannot be read: {exc}. Use list_resources") from None
        return {"content": [content_of(each) for each in contents]}


app = Server("shop", "1.0")
stock = {"tea": 5, "coffee": 0}


@app.resource("shop://rules")
def rules() -> str:
    """The rules of the shop."""
    return "Pay before you drink."


@app.resource("shop://logo", mime_type="image/gif")
def logo() -> bytes:
    """The logo of the shop."""
    return b"GIF89a"


@app.resource("stock://{item}")
def amount_of(item: str) -> str:
    """How many packets of an item there are."""
    if item not in stock:
        raise RPCError(-32002, "Resource not found")
    return str(stock[item])


add_resource_tools(app)

if __name__ == "__main__":
    app.run()
