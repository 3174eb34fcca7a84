"""Pass a server's tools to the converters of model hosts: python3 .ci/hosts

Installs the group "hosts" of pyproject.toml below $MCP_LITE_CI_CACHE (~/.cache/mcp-lite-ci);
a Python of 3.10 or newer is needed. Prints how many tools each converter takes; a tool that one
refuses is a failure, but for objects with any members, which OpenAI's strict mode cannot express.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from install import group, install_python

HERE = pathlib.Path(__file__).resolve().parent
OPEN = {"open_objects", "open_more"}


async def convert():
    """Convert the tools with each library; return what was refused."""
    import copy

    from agents.strict_schema import ensure_strict_json_schema
    from google.genai._mcp_utils import mcp_to_gemini_tools
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.tools import load_mcp_tools
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from pydantic_ai.models.test import _JsonSchemaTestData

    server = StdioServerParameters(command=sys.executable, args=[str(HERE / "shapes.py")])
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        loaded = {tool.name: tool for tool in await load_mcp_tools(session)}
    converters = {
        "google-genai": lambda tool: mcp_to_gemini_tools([tool]),
        "OpenAI, strict": lambda tool: ensure_strict_json_schema(copy.deepcopy(tool.inputSchema)),
        "LangChain": lambda tool: convert_to_openai_tool(loaded[tool.name]),
        "pydantic-ai": lambda tool: _JsonSchemaTestData(tool.inputSchema, seed=1).generate(),
    }
    refused = []
    for name, converter in converters.items():
        taken = 0
        for tool in tools:
            try:
                converter(tool)
                taken += 1
            except Exception as exc:
                if name != "OpenAI, strict" or tool.name not in OPEN:
                    refused.append(f"{name}: {tool.name}: {type(exc).__name__}: {exc}"[:300])
        print(f"{name}: {taken} of {len(tools)} tools")
    return refused


def main():
    if "--inside" in sys.argv:
        import asyncio

        refused = asyncio.run(convert())
        print(*refused, sep="\n")
        return bool(refused)
    python = install_python(*group("hosts"))
    return subprocess.run([python, str(HERE), "--inside"], timeout=300).returncode


if __name__ == "__main__":
    sys.exit(main())
