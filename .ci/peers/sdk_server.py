"""The contract's server on another's library, whichever is installed:

    sdk_server.py stdio | streamable-http PORT | sse PORT

The official SDK 1.x (its FastMCP) or 2.x (MCPServer), or FastMCP 4.
"""

import asyncio
import base64
import json
import sys

try:
    from fastmcp import Context, FastMCP
    from fastmcp.exceptions import ToolError
    from fastmcp.prompts import Message as message

    KIND, UNSTRUCTURED = "fastmcp", {"output_schema": None}
except ModuleNotFoundError:
    try:
        from mcp.server.fastmcp import Context, FastMCP
        from mcp.server.fastmcp.exceptions import ToolError

        KIND = "1.x"
    except ModuleNotFoundError:
        from mcp.server.mcpserver import Context
        from mcp.server.mcpserver import MCPServer as FastMCP
        from mcp.server.mcpserver.exceptions import ToolError

        KIND = "2.x"
    UNSTRUCTURED = {"structured_output": False}

    def message(content):
        return {"role": "user", "content": content}


from mcp import types
from pydantic import BaseModel

PNG = (  # one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt ").decode()

mcp = FastMCP("fastmcp" if KIND == "fastmcp" else "official")


def block(kind, **fields):
    kinds = {
        "text": types.TextContent,
        "image": types.ImageContent,
        "audio": types.AudioContent,
        "resource": types.EmbeddedResource,
    }
    return kinds[kind].model_validate({"type": kind, **fields})


def file(uri, mime="text/plain", text="This is an embedded resource content."):
    return block("resource", resource={"uri": uri, "mimeType": mime, "text": text})


@mcp.tool()
def test_simple_text() -> str:
    return "This is a simple text response for testing."


class Weather(BaseModel):
    celsius: float


@mcp.tool()
def test_structured_content() -> Weather:
    return Weather(celsius=21.5)


@mcp.tool(**UNSTRUCTURED)
def test_image_content():
    return block("image", data=PNG, mimeType="image/png")


@mcp.tool(**UNSTRUCTURED)
def test_audio_content():
    return block("audio", data=WAV, mimeType="audio/wav")


@mcp.tool(**UNSTRUCTURED)
def test_embedded_resource():
    return file("test://embedded-resource")


@mcp.tool(**UNSTRUCTURED)
def test_multiple_content_types():
    mixed = file("test://mixed-content-resource", "application/json", '{"test":"data"}')
    return [block("text", text="Mixed:"), block("image", data=PNG, mimeType="image/png"), mixed]


@mcp.tool()
def test_error_handling() -> str:
    raise ToolError("This tool intentionally returns an error for testing")


@mcp.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    for step in (0, 50, 100):
        await ctx.report_progress(step, 100)
        # The TypeScript SDK's client forgets progress that comes together with the answer.
        await asyncio.sleep(0.2)
    return "done"


@mcp.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
    return "done"


@mcp.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    message = types.SamplingMessage(role="user", content=block("text", text=prompt))
    result = await ctx.session.create_message([message], max_tokens=100)
    return f"LLM response: {result.content.text}"


@mcp.tool()
async def test_list_roots(ctx: Context) -> str:
    return str([str(root.uri) for root in (await ctx.session.list_roots()).roots])


class User(BaseModel):
    username: str
    email: str


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    verified: bool = True


async def ask(ctx, message, schema):
    result = await ctx.elicit(message, schema)
    data = json.dumps(result.data.model_dump()) if result.action == "accept" else "none"
    return f"User response: action={result.action}, content={data}"


@mcp.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    return await ask(ctx, message, User)


@mcp.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    return await ask(ctx, "Please check", Defaults)


@mcp.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@mcp.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return base64.b64decode(PNG)


@mcp.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    return json.dumps({"id": id, "templateTest": True})


@mcp.prompt()
def test_simple_prompt() -> str:
    return "This is a simple prompt for testing."


@mcp.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1={arg1!r}, arg2={arg2!r}"


@mcp.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list:
    return [message(file(resourceUri)), message(block("text", text="Please process it."))]


@mcp.prompt()
def test_prompt_with_image() -> list:
    image = block("image", data=PNG, mimeType="image/png")
    return [message(image), message(block("text", text="Please analyze it."))]


@mcp.completion()
async def complete(ref, argument, context):
    words = [word for word in ("test", "text", "other") if word.startswith(argument.value)]
    return types.Completion(values=words)


def main(transport, port=None):
    if transport == "stdio":
        mcp.run()
    elif KIND == "1.x":
        mcp.settings.port = int(port)
        mcp.run(transport)
    else:
        mcp.run(transport, port=int(port))


main(*sys.argv[1:])
