"""A bus by way of Redis: what changes in one worker reaches the clients of all others.

    bus = RedisBus("redis://127.0.0.1:6379")
    app = Server("my-app", lifespan=bus.lifespan)
    bus.resource_updated("note://a")     # instead of app.resource_updated("note://a")

It is PUBLISH and SUBSCRIBE on one connection, in RESP3, which Redis speaks since version 6. A
server tells its own clients by itself; so without Redis only the other workers' miss something.
What is announced meanwhile waits here until Redis is back. What the others sent while we were away
is lost to us, since Redis keeps nothing for those who are not there.
"""

import asyncio
import contextlib
import json
import logging
import os
from collections import deque
from urllib.parse import unquote, urlsplit

logger = logging.getLogger("redis_bus")

MAX_WAITING = 1000  # announcements that are not sent, and as many not confirmed; more are dropped
MAX_SIZE = 1 << 20  # bytes of a string that Redis sends, items of a list
PATIENCE = 5.0  # seconds for Redis to answer; also between questions whether it is there
LONGEST_PAUSE = 3.0  # seconds between attempts to connect


class RedisBus:
    """One server's connection to Redis, held as long as the server iterates over it."""

    def __init__(self, url, channel="mcp_lite"):
        url, self.channel = urlsplit(url), channel
        self.address, self.hello = (url.hostname or "localhost", url.port or 6379), ["HELLO", "3"]
        self.tls = True if url.scheme == "rediss" else None
        if url.password:
            self.hello += ["AUTH", unquote(url.username or "default"), unquote(url.password)]
        self._waiting = deque(maxlen=MAX_WAITING)  # commands to send; filled from any thread
        self._sent = deque()  # commands whose replies are due, in this order
        self._loop = self._writer = self._timer = None  # the timer runs once we have subscribed
        self.app, self.mark = None, os.urandom(8).hex()  # our own events are skipped

    @contextlib.asynccontextmanager
    async def lifespan(self, app):
        """Listen to the other workers while a server serves."""
        self.app = app
        listening = asyncio.ensure_future(self._listen())
        try:
            yield
        finally:
            listening.cancel()
            await asyncio.wait([listening])

    async def _listen(self):
        async for event in self:
            if isinstance(event, dict) and event.get("from") != self.mark and "uri" in event:
                self.app.resource_updated(event["uri"])

    def resource_updated(self, uri):
        """Tell the clients of all workers that a resource has changed."""
        self.app.resource_updated(uri)
        self.publish({"from": self.mark, "uri": uri})

    def publish(self, event):
        """Send an event to the others, as soon as may be; from any thread, does not block."""
        self._waiting.append(encode("PUBLISH", self.channel, json.dumps(event)))
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._flush)

    async def __aiter__(self):
        """Yield what is published, forever; a connection that is lost is made again."""
        self._loop, failures = asyncio.get_running_loop(), 0
        while True:
            try:
                reader = await self._connect()
                if failures:
                    logger.warning("redis at %s:%d is back", *self.address)
                failures = 0
                while True:
                    event = self._take(await read_value(reader))
                    if event is not None:
                        yield event
            except Exception as exc:  # whatever Redis or the network does
                if not failures:  # once is enough
                    logger.warning("redis at %s:%d is away: %r", *self.address, exc)
            finally:
                await self._disconnect()
            await asyncio.sleep(min(0.1 * 2**failures, LONGEST_PAUSE))
            failures = min(failures + 1, 10)

    async def _connect(self):
        opening = asyncio.open_connection(*self.address, ssl=self.tls)
        reader, self._writer = await asyncio.wait_for(opening, PATIENCE)
        for command in (self.hello, ["SUBSCRIBE", self.channel]):
            self._writer.write(encode(*command))
            value = await asyncio.wait_for(read_value(reader), PATIENCE)
            if isinstance(value, RedisError):
                raise value
        # Whether Redis took what it did not confirm is not known: better twice than never.
        self._waiting.extendleft(command for command in reversed(self._sent) if command != PING)
        self._sent.clear()
        self._beat()
        return reader

    def _beat(self):
        """Ask whether Redis is there; unless it still owes us the last answer."""
        if PING in self._sent:
            self._writer.transport.abort()
            return
        self._timer = self._loop.call_later(PATIENCE, self._beat)
        self._sent.append(PING)
        self._writer.write(PING)
        self._flush()

    def _flush(self):
        while self._timer and self._waiting and len(self._sent) < MAX_WAITING:
            self._sent.append(self._waiting.popleft())
            self._writer.write(self._sent[-1])

    def _take(self, value):
        """Return the event in what Redis sent; None if that is something else."""
        if isinstance(value, Push):
            with contextlib.suppress(ValueError):  # not JSON, not ours
                return json.loads(value[2]) if value[0] == b"message" else None
            return None
        if isinstance(value, RedisError):
            logger.warning("redis refused an announcement: %s", value)
        self._sent.popleft()
        self._flush()
        return None

    async def _disconnect(self):
        if self._timer is not None:
            self._timer.cancel()
        writer, self._writer, self._timer = self._writer, None, None
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(writer.wait_closed(), 1)
            writer.transport.abort()


class Push(list):
    """A list that Redis sends unrequested, such as what was published."""


class RedisError(Exception):
    """Redis refused a command."""


def encode(*words):
    """Return a command as Redis reads it."""
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in map(str.encode, words)]
    return b"*%d\r\n" % len(parts) + b"".join(parts)


PING = encode("PING")


async def read_value(reader):
    """Return the next value: bytes, int, list, Push or RedisError. EOFError, ValueError: none."""
    line = await reader.readline()
    if not line.endswith(b"\r\n"):
        raise EOFError("it hung up")
    kind, text = line[:1], line[1:-2]
    if kind in b"+-":
        return text if kind == b"+" else RedisError(text.decode(errors="replace"))
    number = int(text)
    if kind == b":":
        return number
    if kind not in b"$*>%" or not 0 <= number <= MAX_SIZE:  # the types of what we ask for
        raise ValueError(f"not what Redis would say: {line[:40]!r}")
    if kind == b"$":
        return (await reader.readexactly(number + 2))[:-2]
    items = [await read_value(reader) for _ in range(number * 2 if kind == b"%" else number)]
    return Push(items) if kind == b">" else items
