"""Read events as they come, line by line, over HTTP/1.1 with chunks."""

import asyncio
import importlib
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import came
from server import app

lesson = importlib.import_module("08_http_by_hand")  # for post() and message()


async def chunks(reader):
    """Yield the data of each chunk."""
    while True:
        size = int(await reader.readline(), 16)
        data = await reader.readexactly(size + 2)
        if size == 0:
            return
        yield data[:-2]


async def events(reader):
    """Yield the message of each event, as soon as its empty line has come."""
    rest = b""
    async for data in chunks(reader):
        *blocks, rest = (rest + data).split(b"\n\n")
        for block in blocks:
            text = b"\n".join(re.findall(rb"(?m)^data: ?(.*)$", block))
            if text:
                came(text)
                yield json.loads(text)


async def main():
    async with app.http(port=0) as server:
        port = int(re.search(r":(\d+)/", server.url)[1])
        hello = lesson.message(1, "initialize", lesson.HELLO)
        _, headers, _ = await lesson.exchange(port, lesson.post(), hello)
        call = {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": "p"}}
        body = lesson.message(2, "tools/call", call)
        head = lesson.post(f"Mcp-Session-Id: {headers['mcp-session-id']}",
                           f"Content-Length: {len(body)}", "", "")  # fmt: skip
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write("\r\n".join(head).encode() + body)
        await reader.readuntil(b"\r\n\r\n")
        clock, times = asyncio.get_running_loop().time, []
        async for msg in events(reader):
            times.append(clock())
            if "id" in msg:
                break
        writer.close()
    assert len(times) == 4 and times[-1] - times[0] > 0.05
    print(f"four messages, within {times[-1] - times[0]:.2f} seconds, each when it came")


asyncio.run(main())
