"""The server that the Dockerfile beside this file starts.

TOKEN is required: a container listens on all addresses. HOSTS are the names by which clients call
it, separated by commas; without them, any name will do for whoever has the token.
"""

import os
import sys

from mcp_lite import Server

app = Server("in-a-container", "1.0")


@app.tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    if not os.environ.get("TOKEN"):
        sys.exit("the variable TOKEN is not set")
    app.run(
        "http",
        host="0.0.0.0",
        port=int(os.environ.get("PORT", "8000")),
        token=os.environ["TOKEN"],
        allowed_hosts=list(filter(None, os.environ.get("HOSTS", "").split(","))) or None,
        healthz=True,
        grace=8,  # Docker kills after 10 seconds
    )
