"""A server with one of everything: a tour of the API, and the fixture of the conformance suite.

    python everything_server.py               # speaks MCP on its stdin and stdout
    python everything_server.py --http 8000   # serves http://127.0.0.1:8000/mcp

The names and texts of what begins with `test_` are prescribed by the official conformance suite
(@modelcontextprotocol/conformance), which drives this file. Read it from top to bottom: results,
then progress and logging, questions to the client, resources, prompts, and lists that change.
"""

import asyncio
import base64
import datetime
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # mcp_lite.py is one level up

from mcp_lite import (
    Audio,
    Context,
    Image,
    Link,
    Message,
    Resource,
    RPCError,
    Server,
    SyncContext,
    ToolError,
)

app = Server(
    "everything",
    version="1.0",
    title="Everything",
    instructions="One tool, resource and prompt for each thing that a server can do.",
)

RED_DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==")

# ---- Results: what a function returns becomes content -------------------------------------------


@app.tool
def test_simple_text() -> str:
    """Return text."""
    return "This is a simple text response for testing."


@app.tool
def test_image_content() -> Image:
    """Return an image."""
    return Image(RED_DOT, format="png")


@app.tool
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(SILENCE, format="wav")


@app.tool
def test_embedded_resource() -> Resource:
    """Return the contents of a resource."""
    return Resource("test://embedded-resource", "This is an embedded resource content.")


@app.tool
def test_multiple_content_types():
    """Return text, an image and a resource."""
    data = json.dumps({"test": "data", "value": 123}, separators=(",", ":"))
    return [
        "Multiple content types test:",
        Image(RED_DOT, format="png"),
        Resource("test://mixed-content-resource", data, mime_type="application/json"),
    ]


@app.tool
def test_resource_link() -> Link:
    """Return a link to a resource, for the client to read if it likes."""
    return Link("test://static-text", "static-text", mime_type="text/plain")


@dataclass
class Weather:
    """A result with a shape: clients get a schema for it, and the data beside the text."""

    city: str
    celsius: float
    sky: Literal["clear", "cloudy"]
    measured: datetime.datetime


@app.tool(title="Weather of yesterday", annotations={"readOnlyHint": True})
def test_structured_content(city: Annotated[str, "a city, any city"] = "Bern") -> Weather:
    """Return data that fits the tool's output schema."""
    measured = datetime.datetime(2025, 11, 25, 12, tzinfo=datetime.timezone.utc)
    return Weather(city, 21.5, "clear", measured)


@app.tool
def test_error_handling() -> str:
    """Fail: the model reads the text of the exception."""
    raise ToolError("This tool intentionally returns an error for testing")


# ---- Schemas: taken from the types, or given -----------------------------------------------------


@app.tool
def test_x_mcp_header(region: Annotated[str, {"x-mcp-header": "Region"}] = "") -> str:
    """Take an argument that HTTP clients repeat in a header, for routers on the way to read.

    Args:
        region: where to go, as in eu
    """
    return f"region: {region}"


ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@app.tool(input_schema=PERSON)
def json_schema_2020_12_tool(**arguments) -> str:
    """Take arguments that a schema of your own describes."""
    return f"checked: {json.dumps(arguments)}"


# ---- While it runs: progress, log messages -------------------------------------------------------


@app.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress; without await in a `def` tool, which runs in a thread."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"{done} of 100")
        await asyncio.sleep(0.2)
    return "Progress was reported."


@app.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Send log messages to the client."""
    await ctx.info("Tool execution started")
    await asyncio.sleep(0.05)
    await ctx.info("Tool processing data")
    await asyncio.sleep(0.05)
    await ctx.info("Tool execution completed")
    return "Log messages were sent."


@app.tool
def test_logging_tool(ctx: SyncContext) -> str:
    """Log from a thread; clients get it if they want this level."""
    ctx.info("The logging tool was called")
    return "A message was sent."


@app.tool
async def test_reconnection(ctx: Context) -> str:
    """Take long, and let the client come back for the answer rather than wait on the line."""
    await ctx.close_stream(retry_ms=500)
    await asyncio.sleep(0.1)
    return "The answer arrived all the same."


# ---- Questions to the client: a model's text, the user's answer, folders ------------------------
# The same lines work in every revision. Where the protocol cannot ask back, the client repeats the
# call with the answers so far, and the function runs again from its top: `key` names the questions.


def form(required=None, **properties):
    """Return the JSON Schema of a form."""
    return {"type": "object", "properties": properties, "required": required or list(properties)}


def words(sampled: dict) -> str:
    """Return the text of what a model wrote."""
    content = sampled["content"]
    blocks = content if isinstance(content, list) else [content]
    return "".join(block.get("text", "") for block in blocks)


def report(answer) -> str:
    return f"action={answer.action}, content={json.dumps(answer.data)}"


@app.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Let the client's model write.

    Args:
        prompt: what the model is asked
    """
    return "LLM response: " + words(await ctx.sample(prompt, max_tokens=100))


@app.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user to fill in a form, given as a schema.

    Args:
        message: what the user is asked
    """
    text = {"type": "string"}
    answer = await ctx.elicit(message, form(username=text, email=text))
    return f"User response: {report(answer)}"


@app.tool
async def test_elicitation_by_type(ctx: Context) -> str:
    """Ask for a value of a Python type; `answer.data` is one, too."""
    answer = await ctx.elicit("Which colour?", Literal["red", "green", "blue"])
    return f"User response: {report(answer)}"


@app.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with defaults of every kind."""
    statuses = ["active", "inactive", "pending"]
    wanted = form(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": statuses, "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    answer = await ctx.elicit("Please check these values", wanted)
    return f"Elicitation completed: {report(answer)}"


@app.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask for choices of every kind."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"{n}. value"} for n in (1, 2, 3)]
    wanted = form(
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option one", "Option two", "Option three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    answer = await ctx.elicit("Please choose", wanted)
    return f"Elicitation completed: {report(answer)}"


@app.tool
async def test_elicitation_url(ctx: Context) -> str:
    """Ask the user to visit a page: for what must not pass through the client."""
    answer = await ctx.elicit_url("Please sign in", "https://example.com/sign-in")
    return f"User response: action={answer.action}"


@app.tool
async def test_list_roots(ctx: Context) -> str:
    """Ask which folders the client works in."""
    return "Roots: " + ", ".join(root["uri"] for root in await ctx.roots())


NAME = form(name={"type": "string"})


def name_in(answer) -> str:
    return answer.data["name"] if answer.action == "accept" else "whoever you are"


@app.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("What is your name?", NAME, key="user_name")
    return f"Hello, {name_in(answer)}!"


@app.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask a model."""
    question = "What is the capital of France?"
    return words(await ctx.sample(question, max_tokens=100, key="capital_question"))


@app.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for folders."""
    return "Roots: " + ", ".join(root["uri"] for root in await ctx.roots(key="client_roots"))


@app.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask for a confirmation. What happened before it is remembered by the client, signed by us."""
    await ctx.elicit("Go on?", form(ok={"type": "boolean"}), key="confirm")
    return "state-ok"


@app.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """The same; a client that changes what it was to remember gets an error."""
    await ctx.elicit("Go on?", form(ok={"type": "boolean"}), key="confirm")
    return "state-ok"


@app.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask three things at once, in one round."""
    answer, greeting, roots = await asyncio.gather(
        ctx.elicit("What is your name?", NAME, key="user_name"),
        ctx.sample("Generate a greeting", max_tokens=50, key="greeting"),
        ctx.roots(key="client_roots"),
    )
    return f"{words(greeting)} {name_in(answer)}, who works in {len(roots)} folders."


@app.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one thing after the other. What must happen only once goes through ctx.once()."""
    colour = form(color={"type": "string"})
    began = await ctx.once(lambda: datetime.datetime.now().isoformat(timespec="seconds"))
    first = await ctx.elicit("Step 1: What is your name?", NAME, key="step1")
    second = await ctx.elicit("Step 2: What is your favorite color?", colour, key="step2")
    likes = second.data["color"] if second.action == "accept" else "no colour"
    return f"{name_in(first)} likes {likes}, and was asked at {began}."


@app.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask only for what the client said that it can be asked."""
    asked = []
    if "sampling" in ctx.client_capabilities:
        asked.append(ctx.sample("Say hello", max_tokens=20, key="hello"))
    if "elicitation" in ctx.client_capabilities:
        asked.append(ctx.elicit("What is your name?", NAME, key="user_name"))
    return f"{len(await asyncio.gather(*asked))} answers"


@app.tool
async def test_missing_capability(ctx: Context) -> str:
    """Ask without looking: a client without sampling gets an error that names what is missing."""
    return words(await ctx.sample("Are you there?", max_tokens=20))


@app.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Say something first, then ask."""
    await ctx.report_progress(1, 2, "about to ask")
    return f"Hello, {name_in(await ctx.elicit('What is your name?', NAME, key='user_name'))}!"


# ---- Resources: what a client may read -----------------------------------------------------------


@app.resource("test://static-text", name="static-text", mime_type="text/plain")
def static_text() -> str:
    """A resource of text."""
    return "This is the content of the static text resource."


# A value does as well as a function.
app.add_resource(
    "test://static-binary",
    RED_DOT,
    name="static-binary",
    description="A resource of bytes.",
    mime_type="image/png",
    size=len(RED_DOT),
)


@app.resource("test://template/{id}/data", name="template", mime_type="application/json")
def template_data(id: str) -> str:
    """One resource for each id."""
    data = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
    return json.dumps(data, separators=(",", ":"))


@app.complete("test://template/{id}/data", "id")
def complete_id(value: str) -> list:
    """Suggest ids that begin with `value`."""
    return [id for id in ("1", "12", "123", "2") if id.startswith(value)]


visits = 0


@app.resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched() -> str:
    """A resource that changes; clients that subscribed are notified."""
    return f"Visits: {visits}"


@app.tool
def test_update_watched_resource() -> str:
    """Change the watched resource."""
    global visits
    visits += 1
    app.resource_updated("test://watched-resource")
    return f"Visits: {visits}"


# ---- Prompts: what a user may choose -------------------------------------------------------------


@app.prompt
def test_simple_prompt() -> str:
    """A prompt of one message."""
    return "This is a simple prompt for testing."


@app.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments.

    Args:
        arg1: the first
        arg2: the second
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.complete("test_prompt_with_arguments", "arg1")
def complete_arg1(value: str, arguments: dict) -> list:
    """Suggest values; `arguments` are those filled in so far."""
    known = ["paris", "park", "party", "test", arguments.get("arg2", "")]
    return [word for word in known if word and word.startswith(value)]


@app.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list:
    """A prompt that brings a resource along.

    Args:
        resourceUri: the URI of the resource
    """
    text = "Embedded resource content for testing."
    return [
        Message(Resource(resourceUri, text)),
        Message("Please process the embedded resource above."),
    ]


@app.prompt
def test_prompt_with_image() -> list:
    """A prompt that brings an image along."""
    return [Image(RED_DOT, format="png"), "Please analyze the image above."]


@app.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks first, as a tool may."""
    wanted = form(context={"type": "string"})
    answer = await ctx.elicit("What context should the prompt use?", wanted, key="user_context")
    return f"Use this context: {answer.data['context'] if answer.data else 'none'}"


# ---- Lists that change while clients look --------------------------------------------------------


@app.tool
async def test_trigger_tool_change() -> str:
    """Offer one more tool for a moment; clients are notified each time."""
    app.add_tool(lambda: "gone already", name="test_passing_tool", description="Not for long.")
    app.remove_tool("test_passing_tool")
    return "The list of tools changed twice."


@app.tool
async def test_trigger_prompt_change() -> str:
    """Offer one more prompt for a moment."""
    app.add_prompt(lambda: "gone already", name="test_passing_prompt", description="Not for long.")
    app.remove_prompt("test_passing_prompt")
    return "The list of prompts changed twice."


# ---- Tasks: calls that outlive their request, where clients know them ---------------------------


@app.tool
def greet(name: str) -> str:
    """Greet somebody: a call like any other.

    Args:
        name: whom
    """
    return f"Hello, {name}!"


@app.tool(task=True)
async def slow_compute(seconds: float = 1, label: str = "work") -> str:
    """Take long; the client may go away and look again.

    Args:
        seconds: how long
        label: what it is called
    """
    await asyncio.sleep(seconds)
    return f"{label} is done."


@app.tool(task="required")
async def failing_job() -> str:
    """Fail after a while: a result for the model to read."""
    await asyncio.sleep(1)
    raise ToolError("This job always fails.")


@app.tool(task=True)
async def protocol_error_job() -> str:
    """End in an error of the protocol."""
    await asyncio.sleep(0.1)
    raise RPCError(-32603, "This job cannot be done.")


@app.tool(task=True)
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Ask, in the middle of a task.

    Args:
        filename: of the file that is not deleted
    """
    sure = form(confirm={"type": "boolean"})
    answer = await ctx.elicit(f"Delete {filename}?", sure, key="confirm")
    return f"{filename}: {answer.action}"


@app.tool(task=True)
async def multi_input(ctx: Context) -> str:
    """Ask two things at once."""
    one, two = await asyncio.gather(
        ctx.elicit("The first name?", form(name={"type": "string"}), key="first"),
        ctx.elicit("The second name?", form(name={"type": "string"}), key="second"),
    )
    return f"{one.action}, {two.action}"


@app.tool(task=True)
async def test_tool_with_task(ctx: Context) -> str:
    """Run as a task, with the answer that was asked for before the task began."""
    await asyncio.sleep(0.1)
    return f"The task is done, {name_in(ctx.state['answer'])}."


@app.middleware
async def ask_before_the_task(ctx: Context, call_next):
    """Ask in rounds what a tool needs before it becomes a task."""
    if ctx.method == "tools/call" and ctx.params["name"] == "test_tool_with_task":
        asked = form(name={"type": "string"})
        ctx.state["answer"] = await ctx.elicit("What is your name?", asked, key="user_name")
    return await call_next(ctx)


# ---- Around every request, and beyond the protocol -----------------------------------------------


@app.middleware
async def keep_count(ctx: Context, call_next):
    """Count the requests of a session; a middleware may also change or refuse them."""
    ctx.state["requests"] = ctx.state.get("requests", 0) + 1
    return await call_next(ctx)


@app.method("everything/count")
def count(ctx: Context, params: dict) -> dict:
    """Answer a method of our own."""
    return {"requests": ctx.state["requests"]}


if __name__ == "__main__":
    if "--http" in sys.argv[1:]:
        app.run("http", port=int(sys.argv[sys.argv.index("--http") + 1]))
    else:
        app.run()
