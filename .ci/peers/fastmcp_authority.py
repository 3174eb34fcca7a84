"""A server of FastMCP that is its own authorization server: fastmcp_authority.py PORT

Its person always agrees; registration, PKCE and the checks are those of the official SDK.
"""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions, RevocationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

PORT = int(sys.argv[1])
mcp = FastMCP("guarded", auth=InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{PORT}", required_scopes=["use"],
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["use"]),
    revocation_options=RevocationOptions(enabled=True),
))  # fmt: skip


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b


mcp.run("http", port=PORT)
