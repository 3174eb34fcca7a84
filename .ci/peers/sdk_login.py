"""Log in to examples/authorization with the official SDK's client: of version 1 or 2.

The example's own client plays the person and the browser.
"""

import asyncio
from urllib.parse import parse_qs, urlsplit

from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared import auth
from our_example import browse, serving_example

try:
    import httpx2 as httpx
except ImportError:
    import httpx


class Memory:
    """Keeps what the SDK wants kept."""

    tokens = info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.info

    async def set_client_info(self, info):
        self.info = info


class Person:
    """Opens the page and agrees; gives the SDK the answer."""

    where = ""

    async def open(self, url):
        self.where = await asyncio.to_thread(browse, url, "alice", "pw")

    async def come_back(self):
        found = {name: texts[0] for name, texts in parse_qs(urlsplit(self.where).query).items()}
        if hasattr(auth, "AuthorizationCodeResult"):
            return auth.AuthorizationCodeResult(**found)
        return found["code"], found["state"]


async def main():
    person = Person()
    about = auth.OAuthClientMetadata(
        client_name="the SDK", redirect_uris=["http://127.0.0.1:3999/callback"],
        grant_types=["authorization_code", "refresh_token"], response_types=["code"],
    )  # fmt: skip
    async with serving_example() as url:
        login = OAuthClientProvider(
            server_url=url, client_metadata=about, storage=Memory(),
            redirect_handler=person.open, callback_handler=person.come_back,
        )  # fmt: skip
        async with httpx.AsyncClient(auth=login, follow_redirects=True) as web:
            async with streamable_http_client(url, http_client=web) as streams:
                async with ClientSession(streams[0], streams[1]) as session:
                    await session.initialize()
                    await session.call_tool("write", {"text": "from the SDK"})  # needs more scope
                    answer = await session.call_tool("notes", {})
    text = answer.content[0].text
    assert "from the SDK" in text, text
    print("   logged in, stepped up, wrote and read", text)


asyncio.run(main())
