"""The client that the official conformance suite starts: one process for each scenario.

    python conformance_client.py URL          # the suite sets the environment, and appends the URL

It lists and calls what the scenario's server offers. Nothing here is special to a scenario but
the names of the tools and the answers that the suite expects of a person.
"""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # mcp_lite.py is one level up

from mcp_lite import Client

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")

#: What to call in each scenario, besides listing the tools.
CALLS = {
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sse-retry": [("test_reconnection", {})],
}


async def main(url: str) -> None:
    """Run one scenario."""
    client = Client(
        url,
        revision=REVISION,
        elicit=lambda message, schema: "accept",  # with the defaults of the form
        sample=lambda params: "a model would say something here",
        roots=["file:///tmp"],
        timeout=30,
    )
    async with client:
        if "tools" not in client.server_capabilities:
            return
        tools = await client.list_tools()
        for name, arguments in CALLS.get(SCENARIO, ()):
            print(name, await client.call(name, arguments))
        if SCENARIO == "json-schema-2020-12-preservation":
            schema = next(t["inputSchema"] for t in tools if t["name"] == "json_schema_2020_12_tool")
            print(await client.call("json_schema_echo", {"schema": schema}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
