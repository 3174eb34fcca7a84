"""A port that passes bytes on to a server, until it is cut: what a network does at its worst."""

import asyncio
import contextlib
from urllib.parse import urlsplit


class Relay:
    """Connections to `url` go through here; open() first."""

    def __init__(self, url):
        self.target = urlsplit(url)
        self.url = ""
        self.server = None
        self.writers = set()

    async def open(self):
        """Listen; from now on `url` leads to the server, too."""
        self.server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.url = self.target._replace(netloc=f"127.0.0.1:{port}").geturl()
        return self

    def cut(self):
        """Break all connections; new ones can be made."""
        for writer in list(self.writers):
            writer.transport.abort()

    def close(self):
        """Break all connections, for ever."""
        self.server.close()
        self.cut()

    async def _pass_on(self, reader, writer):
        with contextlib.suppress(OSError):
            there = await asyncio.open_connection(self.target.hostname, self.target.port)
            ends = {writer, there[1]}
            self.writers |= ends
            try:
                await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
            finally:
                self.writers -= ends
        writer.close()


async def _copy(reader, writer):
    try:
        while True:
            data = await reader.read(65536)
            if not data:
                break
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
