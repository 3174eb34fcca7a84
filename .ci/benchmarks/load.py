"""Load on a port of loopback: by wrk if it is installed, else by a loop of our own.

The latter takes as much CPU as the servers that it measures, so that ratios come out too near to 1.
"""

import asyncio
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time

WRK = shutil.which("wrk")
# The requests in flight have ids of their own, as the specification demands. They take turns, for
# wrk would spend as much time as a server on making each of them anew.
IDS = 256
MARK = 4242424242
SCRIPT = """
local before, after = [==[%s]==], [==[%s]==]
local requests, last = {}, 0
%s
function init()
  for id = 1, %d do requests[id] = wrk.format("POST", nil, nil, before .. id .. after) end
end
function request()
  last = last %% #requests + 1
  return requests[last]
end
"""


def rate(port, headers, call, seconds, connections):
    """Return the answered POSTs of `call(id)` per second over so many keep-alive connections."""
    if WRK is None:
        return asyncio.run(_rate(port, headers, call, seconds, connections))
    fields = "".join(f'wrk.headers["{name}"] = "{value}"\n' for name, value in headers.items())
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        # An id that occurs nowhere else shows where the others go.
        before, after = call(MARK).decode().split(str(MARK))
        script.write(SCRIPT % (before, after, fields, IDS))
        script.flush()
        options = ["-t1", f"-c{connections}", f"-d{seconds}s", "-s", script.name]
        command = [WRK, *options, f"http://127.0.0.1:{port}/mcp"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise OSError(said)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])


async def _rate(port, headers, call, seconds, connections):
    requests = [encode(port, "POST", headers, call(1 + n)) for n in range(connections)]
    until = time.perf_counter() + seconds
    answered = await asyncio.gather(*(_one(port, data, until) for data in requests))
    return sum(answered) / seconds


async def _one(port, data, until):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    answered = 0
    while time.perf_counter() < until:
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:16]:
            raise OSError(head)
        await reader.readexactly(content_length(head))
        answered += 1
    writer.close()
    return answered


def encode(port, method, headers, body=b""):
    """Return the bytes of a request."""
    fields = {"Host": f"127.0.0.1:{port}", **headers, "Content-Length": len(body)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


def content_length(head):
    found = re.search(rb"(?i)content-length: *(\d+)", head)
    return int(found[1]) if found else 0


class Connection:
    """A connection that blocks."""

    def __init__(self, port):
        self.port = port
        self.connect()

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), 30)
        self.buffer = b""

    def send(self, method, headers, body=b""):
        """Send a request and return the head of its answer."""
        waiting = select.poll()
        waiting.register(self.socket, select.POLLIN)
        if waiting.poll(0):  # nothing is due: it has hung up, as some servers do after five seconds
            self.close()
            self.connect()
        self.socket.sendall(encode(self.port, method, headers, body))
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return head

    def post(self, headers, body):
        """Return the head and the body of the answer to a POST."""
        head = self.send("POST", headers, body)
        length = content_length(head)
        while len(self.buffer) < length:
            self._more()
        answer, self.buffer = self.buffer[:length], self.buffer[length:]
        return head, answer

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the server closed the connection")
        self.buffer += data

    def close(self):
        self.socket.close()
