"""Lesson 8. HTTP by hand: a POST, a stream, events.

Over HTTP every message of the client is a POST to one URL. The answer is JSON; or, if the server
has more to say than the answer, a stream of server-sent events, each of which holds one message.

mcp_lite.py does it properly in Part VI: "HTTP/1.1", "Server-sent events", "HTTP rules" and
"The endpoint".
Exercise: read events as they come, line by line, instead of waiting for the end of the stream.
"""

import asyncio
import json
import re

from course import HELLO, came, say, sent, teach
from server import app


async def exchange(port, head, body=b""):
    """Send one HTTP request on a connection of its own; return status, headers and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [*head, f"Content-Length: {len(body)}", "Connection: close", "", ""]
    data = "\r\n".join(lines).encode() + body
    sent(data)
    writer.write(data)
    answer = await reader.read()  # to the end: we asked the server to close
    writer.close()
    came(answer)
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *fields = head.decode("latin-1").split("\r\n")
    pairs = [field.split(": ", 1) for field in fields]
    headers = {name.lower(): value for name, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        body = unchunk(body)
    return int(status.split()[1]), headers, body


def unchunk(body):
    """Return the data of chunks: each is its size in hexadecimal, a line break, and the bytes."""
    data = b""
    while not body.startswith(b"0\r\n"):
        size, _, rest = body.partition(b"\r\n")
        data += rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]
    return data


def events(data):
    """Return the messages in a stream of events: an empty line ends an event."""
    blocks = [re.findall(r"^data: ?(.*)$", block, re.M) for block in data.decode().split("\n\n")]
    return [json.loads(text) for lines in blocks for text in ["\n".join(lines)] if text]


def post(*more, host="127.0.0.1", kind="application/json"):
    """Return the head of a POST."""
    return ["POST /mcp HTTP/1.1", f"Host: {host}", f"Content-Type: {kind}",
            "Accept: application/json, text/event-stream", *more]  # fmt: skip


def message(req_id, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": req_id, "method": method, "params": params}).encode()


async def lesson():
    async with app.http(port=0) as server:
        port = int(re.search(r":(\d+)/", server.url)[1])
        say("We shake hands, with bytes on a socket. Accept says that we can read both kinds:")
        status, headers, body = await exchange(port, post(), message(1, "initialize", HELLO))
        session = headers["mcp-session-id"]
        assert status == 200 and json.loads(body)["id"] == 1
        say("The answer was all there was to say, so it is JSON. It names our session; we send "
            "that along. A notification needs no answer: 202.")  # fmt: skip
        ours = f"Mcp-Session-Id: {session}"
        ready = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
        assert (await exchange(port, post(ours), ready))[0] == 202
        say("Now a call that reports progress. The same POST, but another kind of answer:")
        call = {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": "p"}}
        _, headers, body = await exchange(port, post(ours), message(2, "tools/call", call))
        assert headers["content-type"] == "text/event-stream"
        *reports, answer = events(body)
        assert len(reports) == 2 and answer["id"] == 2
        say("Chunks are HTTP's way to send something without knowing its length. In them are "
            "events; lines that begin with `data:` hold the messages. The first event has an id "
            "and no data: lesson 9 tells what for.")  # fmt: skip


async def try_out(head, body):
    async with app.http(port=0) as server:
        return await exchange(int(re.search(r":(\d+)/", server.url)[1]), head, body)


async def other_host():
    """The owner of evil.example lets that name lead to 127.0.0.1. Are its pages served?"""
    status, _, body = await try_out(post(host="evil.example"), message(1, "initialize", HELLO))
    assert status == 403
    why = json.loads(body)["error"]["message"]
    return f"No: 403. A browser writes the page's own host into Host, and {why}."


async def no_session():
    """We ask for the tools without a handshake. Do we hear about them?"""
    status, _, _ = await try_out(post(), message(1, "tools/list", {}))
    assert status == 400
    return "No: 400, and the text says to send initialize first."


async def plain_text():
    """The body is JSON, but we say that it is text. Does the server read it?"""
    head = post(kind="text/plain")
    status, _, _ = await try_out(head, message(1, "initialize", HELLO))
    assert status == 415
    return ("No: 415. A browser lets any page send text to any server; for JSON it first asks "
            "that server. So this rule keeps the pages of strangers out.")  # fmt: skip


if __name__ == "__main__":
    teach(__doc__, lesson, other_host, no_session, plain_text)
