"""The servers that bench.py compares: servers.py floor|lite|sdk, over stdio.

They stand apart from the benchmark, so that its imports do not count as theirs.
"""

import asyncio
import json
import pathlib
import sys


def serve_floor():
    """Answer `tools/call` as fast as asyncio streams and json allow."""
    asyncio.run(floor())


async def floor():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    pipe = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(*pipe, None, loop)
    while True:
        line = await reader.readline()
        if not line:
            return
        msg = json.loads(line)
        if "id" not in msg:
            continue
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}
        if msg["method"] == "tools/call":
            text = msg["params"]["arguments"]["text"]
            content = [{"type": "text", "text": text}]
            result = {"content": content, "structuredContent": {"result": text}, "isError": False}
        answer = {"jsonrpc": "2.0", "id": msg["id"], "result": result}
        writer.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        await writer.drain()


def serve_lite():
    """Serve one tool with mcp_lite."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from mcp_lite import Server

    app = Server("bench")

    @app.tool
    async def echo(text: str) -> str:
        return text

    app.run()


def serve_sdk():
    """Serve the same tool with the official SDK, 1.x or 2.x."""
    try:
        from mcp.server.fastmcp import FastMCP
    except ImportError:
        from mcp.server.mcpserver import MCPServer as FastMCP
    app = FastMCP("bench", log_level="WARNING")

    @app.tool()
    async def echo(text: str) -> str:
        return text

    app.run()


if __name__ == "__main__":
    {"floor": serve_floor, "lite": serve_lite, "sdk": serve_sdk}[sys.argv[1]]()
