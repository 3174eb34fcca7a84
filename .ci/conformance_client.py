"""The client that the official conformance suite starts: one process for each scenario.

    python conformance_client.py URL          # the suite sets the environment, and appends the URL

It lists and calls what the scenario's server offers. Nothing here is special to a scenario but
the names of the tools and the answers that the suite expects of a person.
"""

import asyncio
import http.client
import json
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "authorization"))

from keys import DPoP, IdentityAssertion, WorkloadIdentity, assertion_of

from mcp_lite import Client, ClientCredentials, MCPError, OAuth, TokenStore

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")

#: What to call in each scenario, besides listing the tools.
CALLS = {
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sse-retry": [("test_reconnection", {})],
    "request-metadata": [("add_numbers", {"a": 5, "b": 3})],
    "sep-2322-client-request-state": [
        (name, {})
        for name in (
            "test_mrtr_echo_state",
            "test_mrtr_unrelated",
            "test_mrtr_no_state",
            "test_mrtr_no_result_type",
        )
    ],
    "http-standard-headers": [("test_headers", {}), ("my-hyphenated-tool", {})],
    "http-invalid-tool-headers": [("valid_tool", {"region": "us-west1"})],
}
#: Scenarios may name calls of their own.
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))


def answer(message: str, schema: dict) -> object:
    """Answer a form: with its defaults, and yes to what has none."""
    fields = schema.get("properties", {})
    return {
        name: True for name, field in fields.items()
        if field.get("type") == "boolean" and "default" not in field
    }  # fmt: skip


def visit(url: str) -> str:
    """Be the browser: the scenario's server agrees at once. Return where it sends us."""
    address = urlsplit(url)
    line = http.client.HTTPConnection(address.netloc, timeout=30)
    line.request("GET", f"{address.path}?{address.query}")
    where = line.getresponse().headers["Location"]
    line.close()
    return where


def issuer_of(url: str) -> str:
    """Return the first authorization server of an MCP server."""
    where = urlsplit(url)
    line = http.client.HTTPConnection(where.netloc, timeout=30)
    for path in (where.path, ""):
        line.request("GET", "/.well-known/oauth-protected-resource" + path)
        answer = line.getresponse()
        body = answer.read()
        if answer.status == 200:
            return json.loads(body)["authorization_servers"][0]
    return f"{where.scheme}://{where.netloc}"


def login() -> OAuth:
    """Return how to log in, with what the scenario gives for it."""
    context = {key: CONTEXT[key] for key in ("client_id", "client_secret") if key in CONTEXT}
    if context:  # whoever has a secret knows for whom; the suite leaves us to find that out
        context["issuer"] = CONTEXT.get("issuer") or issuer_of(sys.argv[-1])
    if SCENARIO == "auth/client-credentials-jwt":
        proof = assertion_of(CONTEXT["private_key_pem"], context["client_id"])
        return ClientCredentials(**context, assertion=proof)
    if SCENARIO == "auth/client-credentials-basic":
        return ClientCredentials(**context)
    if SCENARIO == "auth/wif-jwt-bearer":
        return WorkloadIdentity(**context, jwt=CONTEXT["valid_jwt"])
    if SCENARIO == "auth/enterprise-managed-authorization":
        idp = {key: CONTEXT[key] for key in ("idp_token_endpoint", "idp_client_id")}
        return IdentityAssertion(**context, **idp, id_token=CONTEXT["idp_id_token"])
    kind = DPoP if "dpop" in SCENARIO else OAuth
    return kind(
        **context,
        client_metadata_url="https://conformance-test.local/client-metadata.json",
        open_browser=lambda url: asyncio.to_thread(visit, url),
        store=TokenStore(),
    )


async def look_around(client: Client) -> None:
    """Read what else the server offers."""
    if "resources" in client.server_capabilities:
        for resource in await client.list_resources():
            await client.read(resource["uri"])
    if "prompts" in client.server_capabilities:
        for prompt in await client.list_prompts():
            await client.get_prompt(prompt["name"])


async def main(url: str) -> None:
    """Run one scenario."""
    client = Client(
        url,
        revision=REVISION,
        elicit=answer,
        sample=lambda params: "a model would say something here",
        roots=["file:///tmp"],
        timeout=30,
        auth=login() if SCENARIO.startswith("auth/") else None,
    )
    async with client:
        if "tools" not in client.server_capabilities:
            return
        tools = await client.list_tools()
        calls = list(CALLS.get(SCENARIO, ()))
        calls += [(call["name"], call["arguments"]) for call in CONTEXT.get("toolCalls", ())]
        if SCENARIO.startswith("auth/"):
            calls += [(tool["name"], {}) for tool in tools]
        if SCENARIO == "json-schema-2020-12-preservation":
            found = {tool["name"]: tool["inputSchema"] for tool in tools}
            schema = found["json_schema_2020_12_tool"]
            calls.append(("json_schema_echo", {"schema": schema}))
        for name, arguments in calls:
            try:
                print(name, await client.call(name, arguments))
            except MCPError as exc:
                print(name, "failed:", exc)
        if SCENARIO == "http-standard-headers":
            await look_around(client)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
