"""The official SDK's client, 1.x or 2.x as installed.

sdk_client.py stdio COMMAND ARGUMENT... | streamable-http URL | sse URL
"""

import asyncio
import contextlib
import sys

import contract
import mcp
from mcp import ClientSession, StdioServerParameters, types
from mcp.client import streamable_http
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client

try:
    from mcp.shared.exceptions import MCPError
except ImportError:  # 1.x
    from mcp.shared.exceptions import McpError as MCPError
V2 = hasattr(mcp, "Client")


def wire(model):
    """Return the dict that was on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def refusing(awaitable):
    try:
        return wire(await awaitable)
    except MCPError as exc:
        raise contract.Refused(exc.error.code, exc.error.message) from exc


class Official:
    """The contract's view of a ClientSession."""

    def __init__(self, session, seen, hello):
        self.session, self.seen, self.capabilities = session, seen, hello["capabilities"]

    async def ping(self):
        await self.session.send_ping()

    async def set_level(self, level):
        await self.session.set_logging_level(level)

    async def list(self, kind):
        method = {"resourceTemplates": "resource_templates"}.get(kind, kind)
        items, cursor = [], None
        while True:
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = wire(await getattr(self.session, f"list_{method}")(params=params))
            items += page[kind]
            cursor = page.get("nextCursor")
            if cursor is None:
                return items

    async def call(self, name, arguments):
        async def progress(progress, total, message):
            self.seen.progress.append(progress)

        return await refusing(self.session.call_tool(name, arguments, progress_callback=progress))

    async def read(self, uri):
        return await refusing(self.session.read_resource(uri))

    async def subscribe(self, uri):
        await self.session.subscribe_resource(uri)

    async def unsubscribe(self, uri):
        await self.session.unsubscribe_resource(uri)

    async def prompt(self, name, arguments):
        return await refusing(self.session.get_prompt(name, arguments))

    async def complete(self, prompt, argument, value):
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        answer = await self.session.complete(ref, {"name": argument, "value": value})
        return wire(answer)["completion"]


def callbacks(seen):
    async def elicit(context, params):
        return types.ElicitResult(action="accept", content=seen.elicit(wire(params)))

    async def sample(context, params):
        text = types.TextContent(type="text", text=seen.sample(wire(params)))
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    async def roots(context):
        return types.ListRootsResult.model_validate({"roots": [{"uri": contract.ROOT}]})

    async def log(params):
        seen.log.append(params.data)

    async def message(message):
        if isinstance(message, Exception):
            raise message  # what the SDK could not understand
        message = getattr(message, "root", message)
        seen.changed.append(getattr(message, "method", ""))

    return {
        "elicitation_callback": elicit,
        "sampling_callback": sample,
        "list_roots_callback": roots,
        "logging_callback": log,
        "message_handler": message,
    }


@contextlib.asynccontextmanager
async def connected(transport, target):
    """Yield the two streams of a connection."""
    if transport == "stdio":
        opening = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    elif transport == "sse":
        opening = sse_client(*target)
    else:  # its third value, in 1.x, is of no use here
        opening = streamable_http.streamable_http_client(*target)
    async with opening as streams:
        yield streams[:2]


async def main(transport, *target):
    seen = contract.Seen()
    async with connected(transport, list(target)) as streams:
        async with ClientSession(*streams, **callbacks(seen)) as session:
            hello = wire(await session.initialize())
            done = await contract.exercise(Official(session, seen, hello), seen)
    print(f"   {done} checks, {hello['serverInfo']['name']}, revision {hello['protocolVersion']}")
    if V2 and transport != "sse":  # it asks for the stateless revision first, and falls back
        if transport == "stdio":
            target = [StdioServerParameters(command=target[0], args=list(target[1:]))]
        async with mcp.Client(*target, mode="auto") as client:
            result = wire(await client.call_tool("test_simple_text", {}))
            assert "simple text" in result["content"][0]["text"], result
            print(f"   found revision {client.session.protocol_version} by itself")


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 240))
