"""Lesson 9. Sessions, a cut connection, and Last-Event-ID.

Connections break. In a session the server keeps what it wanted to say: each event has an id, and
a client that comes back says which one it saw last. The call itself goes on all the while. (Of
plain answers only the head is printed here, and of streams only the events.)

mcp_lite.py does it properly in the section "Streams and sessions".
Exercise: cut the connection after every single event, until the answer has come.
"""

import asyncio
import contextlib
import json
import re

from course import HELLO, came, say, sent, teach
from server import app

COUNT = {"name": "count", "arguments": {"to": 5}, "_meta": {"progressToken": "p"}}


class Learner:
    """A client that sends bytes, and reads what it wants of the answer."""

    def __init__(self, url):
        self.port = int(re.search(r":(\d+)/", url)[1])
        self.session = []  # the header line with our session, once we know it

    async def send(self, method, *more, body=b""):
        """Open a connection and send a request; return both ends of the stream."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = [f"{method} /mcp HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json",
                "Accept: application/json, text/event-stream", *self.session, *more,
                f"Content-Length: {len(body)}", "", ""]  # fmt: skip
        data = "\r\n".join(head).encode() + body
        sent(data)
        writer.write(data)
        return reader, writer

    async def post(self, req_id, method, params):
        msg = {"jsonrpc": "2.0", "method": method, "params": params}
        return await self.send("POST", body=json.dumps({**msg, **req_id}).encode())

    async def status(self, stream):
        """Return the status of an answer and its head, and hang up."""
        head = await stream[0].readuntil(b"\r\n\r\n")
        came(head)
        stream[1].close()
        return int(head.split()[1]), head.decode("latin-1")

    async def shake_hands(self):
        _, head = await self.status(await self.post({"id": 0}, "initialize", HELLO))
        self.session = ["Mcp-Session-Id: " + re.search(r"mcp-session-id: (.*)\r", head)[1]]
        await self.status(await self.post({}, "notifications/initialized", {}))


async def next_event(reader):
    """Return the id and the data of the next event."""
    number = data = None
    while data is None:
        line = (await reader.readline()).strip()  # the sizes of chunks pass by as well
        name, _, value = line.decode().partition(":")
        if name in ("id", "data", "retry"):
            came(line)
        number = value.strip() if name == "id" else number
        data = value.strip() if name == "data" else data
    return number, data


@contextlib.asynccontextmanager
async def classroom():
    async with app.http(port=0) as server:
        await (learner := Learner(server.url)).shake_hands()
        yield learner


async def lesson():
    async with classroom() as learner:
        say("The session is open. A tool counts to 5; we read two of its reports:")
        reader, writer = await learner.post({"id": 1}, "tools/call", COUNT)
        for _ in range(3):  # the first event has an id and no data
            last, data = await next_event(reader)
        writer.close()
        say(f"We hang up. The last event that we saw is {last}. We come back with a GET:")
        reader, writer = await learner.send("GET", f"Last-Event-ID: {last}")
        while "result" not in data:
            _, data = await next_event(reader)
        writer.close()
        assert json.loads(data)["result"]["structuredContent"] == {"result": "counted to 5"}
        say("Missed reports, then the answer: in a session, a cut cancels nothing.")


async def stolen():
    """Somebody makes up a session id. Which status do they get?"""
    async with classroom() as learner:
        learner.session = ["Mcp-Session-Id: 12345"]
        assert (await learner.status(await learner.post({"id": 1}, "tools/list", {})))[0] == 404
    return "404. The ids are random and long; who does not know one gets nowhere."


async def ended():
    """We DELETE the session, and then use it. Which status?"""
    async with classroom() as learner:
        assert (await learner.status(await learner.send("DELETE")))[0] == 204
        status, _ = await learner.status(await learner.post({"id": 1}, "tools/list", {}))
        assert status == 404
    return "404 again: a client that gets it starts a new session."


async def forgotten():
    """Last-Event-ID names an event that never was. What now?"""
    async with classroom() as learner:
        stream = await learner.send("GET", "Last-Event-ID: 0000000000000000-7")
        assert (await learner.status(stream))[0] == 400
    return "400. Better no events than the wrong ones; the client must make its call again."


if __name__ == "__main__":
    teach(__doc__, lesson, stolen, ended, forgotten)
