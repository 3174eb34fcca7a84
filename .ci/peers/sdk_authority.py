"""A server of the official SDK that is its own authorization server: sdk_authority.py PORT

It runs on 1.x and 2.x. Registration, PKCE, the pages' checks and the bearer's are the SDK's. What
it leaves to the author is here: codes and tokens, kept in memory, and a person who always agrees.
"""

import secrets
import sys
import time

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthToken

try:
    from mcp.server.mcpserver import MCPServer
except ModuleNotFoundError:
    from mcp.server.fastmcp import FastMCP as MCPServer


class Provider:
    """What the SDK asks of an author."""

    def __init__(self):
        self.clients, self.codes, self.tokens, self.refreshers = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, asked):
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code, client_id=client.client_id, scopes=asked.scopes or [],
            expires_at=time.time() + 60, code_challenge=asked.code_challenge,
            redirect_uri=asked.redirect_uri, resource=asked.resource,
            redirect_uri_provided_explicitly=asked.redirect_uri_provided_explicitly,
        )  # fmt: skip
        return construct_redirect_uri(str(asked.redirect_uri), code=code, state=asked.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        return self.give(client, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        return self.refreshers.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        del self.refreshers[token.token]
        return self.give(client, scopes, URL)

    def give(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        until = int(time.time()) + 600
        names = {"client_id": client.client_id, "scopes": scopes, "expires_at": until}
        self.tokens[access] = AccessToken(token=access, resource=resource, **names)
        self.refreshers[refresh] = RefreshToken(token=refresh, **names)
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=600, scope=" ".join(scopes)
        )

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        self.tokens.clear()
        self.refreshers.clear()


PORT = int(sys.argv[1])
ISSUER, URL = f"http://127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT}/mcp"
strict = {"validate_token_resource": True}
settings = AuthSettings(
    issuer_url=ISSUER, resource_server_url=URL, required_scopes=["use"],
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["use"]),
    revocation_options=RevocationOptions(enabled=True),
    **{name: value for name, value in strict.items() if name in AuthSettings.model_fields},
)  # fmt: skip
mcp = MCPServer("guarded", auth_server_provider=Provider(), auth=settings)


@mcp.tool()
def add(a: int, b: int) -> int:
    return a + b


if hasattr(mcp.settings, "port"):
    mcp.settings.port = PORT
    mcp.run("streamable-http")
else:
    mcp.run("streamable-http", port=PORT)
