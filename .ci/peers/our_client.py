"""Our client against another's server: our_client.py contract|everything|through COMMAND... | URL

`through` is the contract by way of a gateway.
"""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import contract

from mcp_lite import Client, RemoteError

NEWEST = "2025-11-25"  # of those with a handshake
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18")
URL = "https://example.com/login"


class Ours:
    """The contract's view of our Client."""

    def __init__(self, client, seen):
        self.client, self.seen, self.capabilities = client, seen, client.server_capabilities

    async def ping(self):
        await self.client.ping()

    async def set_level(self, level):
        await self.client.set_log_level(level)

    async def list(self, kind):
        lists = {"resourceTemplates": "templates"}
        return await getattr(self.client, f"list_{lists.get(kind, kind)}")()

    async def call(self, name, arguments):
        def progress(progress, total, message):
            self.seen.progress.append(progress)

        return await refusing(self.client.call_tool(name, arguments, progress=progress))

    async def read(self, uri):
        return await refusing(self.client.read_resource(uri))

    async def subscribe(self, uri):
        def updated(*_):
            self.seen.changed.append("notifications/resources/updated")

        self.updates = await self.client.subscribe(uri, updated)

    async def unsubscribe(self, uri):
        await self.updates.close()

    async def prompt(self, name, arguments):
        return await refusing(self.client.get_prompt(name, arguments))

    async def complete(self, prompt, argument, value):
        ref, argument = {"type": "ref/prompt", "name": prompt}, {"name": argument, "value": value}
        params = {"ref": ref, "argument": argument}
        return (await self.client.request("completion/complete", params))["completion"]


async def refusing(awaitable):
    try:
        return await awaitable
    except RemoteError as exc:
        raise contract.Refused(exc.code, exc.message) from exc


async def everything(client, seen):
    """Use every feature of @modelcontextprotocol/server-everything that belongs to no extension."""

    async def text(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        assert not result.get("isError"), (tool, result)
        return " ".join(block.get("text", "") for block in result["content"])

    async def kinds(tool, **arguments):
        return [block["type"] for block in (await client.call_tool(tool, arguments))["content"]]

    await client.set_log_level("debug")
    assert await text("echo", message="äöü\n\u2028 ") == "Echo: äöü\n\u2028 "
    assert "sum of 2 and 3 is 5" in await text("get-sum", a=2, b=3)
    assert "PATH" in await text("get-env")
    weather = await client.call("get-structured-content", {"location": "Chicago"})
    assert set(weather) == {"temperature", "conditions", "humidity"}, weather
    assert await kinds("get-tiny-image") == ["text", "image", "text"]
    assert "image" in await kinds("get-annotated-message", messageType="error", includeImage=True)
    assert await kinds("get-resource-links", count=2) == ["text"] + ["resource_link"] * 2
    reference = await kinds("get-resource-reference", resourceType="Text", resourceId=1)
    assert "resource" in reference, reference
    data = "data:text/plain;base64,aGVsbG8="
    assert await kinds("gzip-file-as-resource", name="a.gz", data=data) == ["resource_link"]
    assert isinstance(await client.read("demo://resource/session/a.gz"), bytes)
    assert contract.ROOT in await text("get-roots-list")
    assert "sampled: " in await text("trigger-sampling-request", prompt="why?")
    assert "Raw result" in await text("trigger-elicitation-request")
    assert "completed" in await text("trigger-url-elicitation", url=URL)
    assert seen.asked == ["sampling/createMessage", "elicitation/create", URL], seen.asked

    steps = []
    await client.call(
        "trigger-long-running-operation",
        {"duration": 0.4, "steps": 4},
        progress=lambda progress, total, message: steps.append((progress, total)),
    )
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)], steps
    slow = asyncio.ensure_future(client.call("trigger-long-running-operation", {"duration": 60}))
    await asyncio.wait({slow}, timeout=0.1)
    slow.cancel()  # and nothing that follows waits for it

    await text("toggle-simulated-logging")
    updated = asyncio.Event()
    uri = "demo://resource/dynamic/text/1"
    updates = await client.subscribe(uri, lambda *_: updated.set())
    await text("toggle-subscriber-updates")
    await asyncio.wait_for(updated.wait(), 60)
    await text("toggle-subscriber-updates")
    await updates.close()
    await text("toggle-simulated-logging")
    assert seen.log, "no log arrived"
    # gzip-file-as-resource added one.
    assert "notifications/resources/list_changed" in seen.changed, seen.changed

    assert "plaintext" in await client.read(uri)
    assert isinstance(await client.read("demo://resource/dynamic/blob/1"), bytes)
    assert len(await client.list_templates()) >= 2
    documents = [r["uri"] for r in await client.list_resources() if "/static/" in r["uri"]]
    assert "#" in await client.read(documents[0])
    args = {"resourceType": "Text", "resourceId": "1"}
    for name, arguments, word in (
        ("simple-prompt", None, "simple prompt"),
        ("args-prompt", {"city": "Rome", "state": "x"}, "Rome"),
        ("completable-prompt", {"department": "Sales", "name": "Eve"}, "Eve"),
        ("resource-prompt", args, "resource"),
    ):
        prompt = await client.get_prompt(name, arguments)
        assert word in str(prompt["messages"]), prompt
    assert await client.complete("completable-prompt", "department", "S") == ["Sales", "Support"]
    context = {"department": "Sales"}
    assert await client.complete("completable-prompt", "name", "E", context) == ["Eve"]
    template = "demo://resource/dynamic/text/{resourceId}"
    assert await client.complete(template, "resourceId", "7") == ["7"]


async def use(what, target, revision=None):
    """Use every feature of a server, in a revision, or else the one that the two agree on."""
    seen = contract.Seen()

    def changed(kind):
        return lambda *_: seen.changed.append(f"notifications/{kind}/list_changed")

    async with Client(
        target,
        revision=revision,
        elicit=lambda message, schema: seen.elicit({"requestedSchema": schema}),
        elicit_url=lambda message, url: seen.elicit({"mode": "url", "url": url}) or True,
        sample=seen.sample,
        roots=[contract.ROOT],
        log=lambda level, data, logger: seen.log.append(data),
        on_tools_changed=changed("tools"),
        on_resources_changed=changed("resources"),
    ) as client:
        if what == "everything":
            await everything(client, seen)
            done = "every feature"
        else:
            # The others' servers here ask by sending requests, as they could up to NEWEST.
            # A gateway asks a client of any revision for them.
            asks = client.revision <= NEWEST or client.server_info["name"] == "everything"
            asks = asks or what == "through"
            done = f"{await contract.exercise(Ours(client, seen), seen, asks)} checks"
        print(f"   {done}, {client.server_info['name']}, revision {client.revision}")
        return client.revision


async def main(what, *target):
    target = target[0] if target[0].startswith("http://") else list(target)
    await use(what, target, NEWEST)
    async with Client(target) as client:
        found = client.revision
    if found != NEWEST and what != "everything" or what == "through":
        await use(what, target)
    tool = ("echo", {"message": "x"}) if what == "everything" else ("test_simple_text", {})
    for revision in OLDER:
        async with Client(target, revision=revision) as client:
            await client.call(*tool)
            assert client.revision == revision, client.revision
    print(f"   and one call in each of {', '.join(OLDER)}")


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 240))
