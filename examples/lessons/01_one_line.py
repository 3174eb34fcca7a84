"""Lesson 1. One line of JSON over a pipe.

Two programs talk MCP over a pipe by writing lines. Each line is one JSON object, a message of
JSON-RPC 2.0. A message with a `method` and an `id` is a request. Its answer has the same `id`.

mcp_lite.py does it properly in "JSON-RPC" and "Lines and pipes".
Exercise: send two pings at once, with the ids 1 and "1". Which answer belongs to which?
"""

import asyncio
import json
import sys

from course import SERVER, came, say, sent, teach


async def start():
    """Start the server as a child process, whose standard streams are pipes to us."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        sys.executable, SERVER, stdin=pipe, stdout=pipe, stderr=null
    )


async def write(server, line):
    """Send bytes, ended by a newline."""
    sent(line)
    server.stdin.write(line + b"\n")
    await server.stdin.drain()


async def read(server):
    """Return the next line as a Python value."""
    line = await server.stdout.readline()
    came(line)
    return json.loads(line)


async def end(server):
    """Close the server's input. For a server on a pipe that is the end."""
    server.stdin.close()
    await server.wait()


async def lesson():
    server = await start()
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    say(f"The server runs. We write {len(ping)} bytes and a newline to its standard input:")
    await write(server, ping)
    say("It answers with a line on its standard output:")
    answer = await read(server)
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": {}}
    say("The id says which request this answers; an empty result is all that a ping needs.")
    await end(server)
    say(f"We closed its input, and it ended with status {server.returncode}.")


async def not_json():
    """A line is not JSON. Does the server die, keep silent, or answer?"""
    server = await start()
    await write(server, b"hello?")
    answer = await read(server)
    assert answer["error"]["code"] == -32700 and "id" not in answer
    await write(server, b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
    assert (await read(server))["id"] == 2
    await end(server)
    return "It answers with error -32700, without an id, since it could read none; and lives on."


async def no_id():
    """A message has a method and no id. Is it answered?"""
    server = await start()
    await write(server, b'{"jsonrpc":"2.0","method":"notifications/whatever"}')
    await write(server, b'{"jsonrpc":"2.0","id":3,"method":"ping"}')
    assert (await read(server))["id"] == 3
    await end(server)
    return "No. It is a notification, and nobody answers those; the line that came is the ping's."


async def two_lines():
    """JSON may be spread over several lines. May a message?"""
    server = await start()
    await write(server, b'{"jsonrpc":"2.0",\n"id":4,"method":"ping"}')
    codes = [(await read(server))["error"]["code"] for _ in range(2)]
    assert codes == [-32700, -32700]
    await end(server)
    return "No. The newline ends a message, so these are two messages, and both are broken."


if __name__ == "__main__":
    teach(__doc__, lesson, not_json, no_id, two_lines)
