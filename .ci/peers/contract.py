"""What a client must see of a server, whoever wrote either of the two.

The servers offer what the official conformance suite asks of an "everything server"; the clients
are wrapped so that they speak in the wire's own dicts. So each check is written once, and the
official client against the official server shows that it is a fair one.
"""

import asyncio

# What a server may leave out, as the one on the official SDK does here; said aloud if it happens.
OPTIONAL_TOOLS = {
    "test_elicitation_sep1330_enums", "test_elicitation_url", "test_resource_link",
    "test_reconnection",
}  # fmt: skip
# Tools that ask the client something.
ASKING = (
    "test_sampling", "test_list_roots", "test_elicitation", "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums", "test_elicitation_url",
)  # fmt: skip
ROOT = "file:///tmp/project"


class Refused(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code, message):
        super().__init__(f"{code} {message}")
        self.code = code


class Seen:
    """What the server asked and told the client meanwhile; and the client's answers."""

    def __init__(self):
        self.log, self.progress, self.asked, self.changed = [], [], [], []

    def elicit(self, params):
        if params.get("mode") == "url":
            self.asked.append(params["url"])
            return None
        self.asked.append("elicitation/create")
        schema = params["requestedSchema"]
        return {name: answer(prop) for name, prop in schema["properties"].items()}

    def sample(self, params):
        self.asked.append("sampling/createMessage")
        return "sampled: " + params["messages"][0]["content"]["text"]

    async def hears(self, method):
        """Has this notification come, or does it in the next seconds?"""
        for _ in range(3000):
            if method in self.changed:
                return True
            await asyncio.sleep(0.01)
        return False


SAMPLES = {
    "boolean": True,
    "integer": 7,
    "number": 7.5,
    "string": "someone@example.com",
    "uri": "https://example.com/",
    "date": "2000-01-01",
}


def answer(schema):
    """Answer one property of an elicitation as a user in a hurry would."""
    if "default" in schema:
        return schema["default"]
    if schema["type"] == "array":
        return [answer({"type": "string", **schema["items"]})]
    for choice in schema.get("oneOf", schema.get("anyOf", [])):
        return choice["const"]
    sample = SAMPLES.get(schema.get("format")) or SAMPLES[schema["type"]]
    return schema.get("enum", [sample])[0]


def has(expected, given):
    """Is everything in `expected` also in `given`? Strings need only be contained."""
    if isinstance(expected, dict):
        return all(key in given and has(value, given[key]) for key, value in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(given) and all(map(has, expected, given))
    return expected in given if isinstance(expected, str) else expected == given


TEXT_FILE = {"type": "resource", "resource": {"mimeType": "text/plain", "text": "content"}}
CALLS = [  # tool, arguments, content blocks (in part)
    ("test_simple_text", None, [{"type": "text", "text": "This is a simple text response"}]),
    ("test_image_content", {}, [{"type": "image", "mimeType": "image/png"}]),
    ("test_audio_content", {}, [{"type": "audio", "mimeType": "audio/wav"}]),
    ("test_embedded_resource", {}, [TEXT_FILE]),
    ("test_multiple_content_types", {}, [{"type": t} for t in ("text", "image", "resource")]),
    ("test_sampling", {"prompt": "why?"}, [{"text": "sampled: why?"}]),
    ("test_elicitation", {"message": "who?"}, [{"text": "action=accept"}]),
    ("test_elicitation", {"message": "who?"}, [{"text": "someone@example.com"}]),
    ("test_elicitation_sep1034_defaults", {}, [{"text": "John Doe"}]),
    ("test_elicitation_sep1034_defaults", {}, [{"text": "95.5"}]),
    ("test_elicitation_sep1330_enums", {}, [{"text": "action=accept"}]),
    ("test_elicitation_url", {}, [{"text": "accept"}]),
    ("test_resource_link", {}, [{"type": "resource_link"}]),
    ("test_reconnection", {}, [{"text": "arrived all the same"}]),  # over HTTP: on another stream
    ("test_list_roots", {}, [{"text": ROOT}]),
    ("test_tool_with_progress", {}, [{"type": "text"}]),
    ("test_tool_with_logging", {}, [{"type": "text"}]),
]
READS = [
    ("test://static-text", {"mimeType": "text/plain", "text": "static text resource"}),
    ("test://static-binary", {"mimeType": "image/png", "blob": "iVBOR"}),
    ("test://template/123/data", {"mimeType": "application/json", "text": "123"}),
]
PROMPTS = [
    ("test_simple_prompt", None, ["text"]),
    ("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"}, ["text"]),
    ("test_prompt_with_embedded_resource", {"resourceUri": "test://x"}, ["resource", "text"]),
    ("test_prompt_with_image", None, ["image", "text"]),
]


class Checks:
    """Counts the checks, and stops at the first that fails."""

    def __init__(self):
        self.done = 0

    def __call__(self, what, good, *given):
        assert good, f"{what}: {given}"
        self.done += 1


async def exercise(client, seen, asks=True):
    """Run every check with a connected client; return how many there were.

    `asks` says that the server can ask the client, in this revision.
    """
    check = Checks()
    await client.ping()
    tools = {tool["name"]: tool for tool in await client.list("tools")}
    check("tools have schemas", all(t["inputSchema"]["type"] == "object" for t in tools.values()))
    missing = {call[0] for call in CALLS} - set(tools)
    check("tools are offered", missing <= OPTIONAL_TOOLS, missing)
    for name in sorted(missing):
        print(f"   not offered by this server: {name}")
    if not asks:
        print(f"   not asked by this server: {', '.join(ASKING)}")
        tools = {name: tool for name, tool in tools.items() if name not in ASKING}
    await exercise_tools(client, seen, check, tools)
    if asks:
        asked = {"sampling/createMessage", "elicitation/create"}
        check("server asked", asked <= set(seen.asked), seen.asked)
    await exercise_resources(client, seen, check, tools)
    await exercise_prompts(client, check)
    await exercise_errors(client, check)
    await client.ping()
    return check.done


async def exercise_tools(client, seen, check, tools):
    if "logging" in client.capabilities:  # the official SDK's servers log without saying so
        await client.set_level("debug")
    for name, arguments, blocks in CALLS:
        if name in tools:
            result = await client.call(name, arguments)
            check(name, not result.get("isError") and has(blocks, result["content"]), result)
    check("progress arrived", seen.progress == [0, 50, 100], seen.progress)
    check("log arrived", len(seen.log) >= 3, seen.log)
    if "test_trigger_tool_change" in tools:
        await client.call("test_trigger_tool_change", {})
        check("change told", await seen.hears("notifications/tools/list_changed"), seen.changed)
    result = await client.call("test_structured_content", {})
    check("structured", "celsius" in result["structuredContent"], result)
    check("its schema", "celsius" in str(tools["test_structured_content"]["outputSchema"]))
    failed = await client.call("test_error_handling", {})
    check("tool error", failed["isError"] and "intentionally" in failed["content"][0]["text"])


async def exercise_resources(client, seen, check, tools):
    uris = {resource["uri"] for resource in await client.list("resources")}
    check("resources", {"test://static-text", "test://static-binary"} <= uris, uris)
    templates = {t["uriTemplate"] for t in await client.list("resourceTemplates")}
    check("templates", "test://template/{id}/data" in templates, templates)
    for uri, contents in READS:
        result = await client.read(uri)
        check(uri, has([contents], result["contents"]), result)
    if "test_update_watched_resource" in tools and client.capabilities["resources"]["subscribe"]:
        await client.subscribe("test://watched-resource")
        await client.call("test_update_watched_resource", {})
        check("update told", await seen.hears("notifications/resources/updated"), seen.changed)
        await client.unsubscribe("test://watched-resource")


async def exercise_prompts(client, check):
    prompts = {prompt["name"]: prompt for prompt in await client.list("prompts")}
    check("arguments", len(prompts["test_prompt_with_arguments"]["arguments"]) == 2, prompts)
    for name, arguments, kinds in PROMPTS:
        messages = (await client.prompt(name, arguments))["messages"]
        check(name, [message["content"]["type"] for message in messages] == kinds, messages)
    result = await client.complete("test_prompt_with_arguments", "arg1", "test")
    check("completion", isinstance(result["values"], list), result)


async def exercise_errors(client, check):
    # Where errors belong (a result or a JSON-RPC error, and which code) differs between
    # revisions and implementations; that they arrive as errors, and harm nothing, does not.
    for wrong in (
        client.call("no_such_tool", {}),
        client.call("test_sampling", {"prompt": 5}),
        client.read("test://no-such-resource"),
        client.prompt("no_such_prompt", None),
        client.prompt("test_prompt_with_arguments", {}),
    ):
        try:
            result = await wrong
            check("an error", result.get("isError"), result)
        except Refused as refused:
            check("an error", refused.code < 0 or refused.code == 0, refused)
