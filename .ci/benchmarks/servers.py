"""The servers that bench.py compares: servers.py bare|lite|sdk [PORT]: stdio, or HTTP on a port.

They stand apart from the benchmark, so that its imports do not count as theirs.
"""

import asyncio
import json
import pathlib
import sys

PORT = int(sys.argv[2]) if sys.argv[2:] else None


def bare_answer(msg):
    """Answer `tools/call` with its text, and anything else as if it were `initialize`."""
    result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}
    if msg["method"] == "tools/call":
        text = msg["params"]["arguments"]["text"]
        content = [{"type": "text", "text": text}]
        result = {"content": content, "structuredContent": {"result": text}, "isError": False}
    answer = {"jsonrpc": "2.0", "id": msg["id"], "result": result}
    return json.dumps(answer, separators=(",", ":")).encode()


async def bare_stdio():
    """Do what asyncio streams and json cost, over pipes."""
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
        if "id" in msg:
            writer.write(bare_answer(msg) + b"\n")
            await writer.drain()


async def bare_connection(reader, writer):
    """Do the least HTTP that suffices for one well-behaved client: no checks, no sessions."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            headers = {}
            for line in head.split(b"\r\n")[1:-2]:
                name, _, value = line.partition(b":")
                headers[name.lower()] = value.strip()
            if head.startswith(b"GET"):
                stream = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
                writer.write(stream + b"id: 0\ndata:\n\n")
                continue
            msg = json.loads(await reader.readexactly(int(headers.get(b"content-length", 0))))
            if "id" not in msg:
                writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                continue
            body = bare_answer(msg)
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            writer.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def bare_http():
    server = await asyncio.start_server(
        bare_connection, "127.0.0.1", PORT, limit=2**20, backlog=1024
    )
    await server.serve_forever()


def serve_bare():
    asyncio.run(bare_stdio() if PORT is None else bare_http())


def serve_lite():
    """Serve one tool with mcp_lite."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from mcp_lite import Server

    app = Server("bench")

    @app.tool
    async def echo(text: str) -> str:
        return text

    app.run() if PORT is None else app.run("http", port=PORT)


def serve_sdk():
    """Serve the same tool with the official SDK, 1.x or 2.x."""
    try:
        from mcp.server.fastmcp import FastMCP

        first = True
    except ImportError:
        from mcp.server.mcpserver import MCPServer as FastMCP

        first = False
    options = {"json_response": True, "port": PORT}
    app = FastMCP("bench", log_level="WARNING", **(options if first and PORT else {}))

    @app.tool()
    async def echo(text: str) -> str:
        return text

    if PORT is None:
        app.run()
    else:
        app.run("streamable-http", **({} if first else options))


if __name__ == "__main__":
    {"bare": serve_bare, "lite": serve_lite, "sdk": serve_sdk}[sys.argv[1]]()
