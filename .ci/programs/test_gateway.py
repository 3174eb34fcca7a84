"""A gateway between clients and servers: every pairing of eras, and nobody gets what is another's."""

import asyncio
import contextlib
import contextvars
import json
import os
import pathlib
import random
import subprocess
import sys

import gateway_far
import mcp_gateway
import pytest
from conftest import ROOT
from mcp_gateway import Gateway

import mcp_lite as m

HERE = pathlib.Path(__file__).resolve().parent
NEAR = ["2025-03-26", "2025-11-25", "2026-07-28"]
FAR = ["2024-11-05", "2025-11-25", "2026-07-28"]
COMMAND = [sys.executable, str(HERE / "gateway_far.py")]
GATEWAY = [sys.executable, str(ROOT / "mcp_lite.py"), "gateway"]
OLD, NEW = "2025-11-25", "2026-07-28"


def run(main, seconds=60):
    """Run a test; nothing it began may be left."""

    async def whole():
        await asyncio.wait_for(main(), seconds)
        for _ in range(100):
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if not left:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"left running: {left}")

    asyncio.run(whole())


async def eventually(condition):
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come")


@contextlib.asynccontextmanager
async def reach(gateway, way, revision, **options):
    """Give a client of a gateway, in memory or over HTTP."""
    async with gateway.http(port=0) as server:
        target = gateway if way == "memory" else server.url
        async with m.Client(target, revision=revision, **options) as client:
            yield client


@contextlib.asynccontextmanager
async def behind(way, far_revision):
    """Give a Gateway before a server that is an object, a child, or at a URL; and the object."""
    app = gateway_far.make()
    if way == "http":
        async with app.http(port=0) as server:
            yield Gateway({"far": server.url}, revision=far_revision), app
    else:
        target = app if way == "memory" else COMMAND
        yield Gateway({"far": target}, revision=far_revision), app


def elicit(message, schema):
    return {"value": {"name?": "Ann", "size": "L", "Really?": "yes"}[message.split(": ")[-1].split(" of ")[0]]}


@pytest.mark.parametrize("far_way", ["memory", "stdio", "http"])
@pytest.mark.parametrize("near_way", ["memory", "http"])
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("near", NEAR)
def test_all_passes_in_every_pairing(near, far, near_way, far_way):
    steps, logs = [], []
    asks = near >= "2025-06" and far >= "2025-06"
    options = {
        "sample": lambda params: "text", "roots": ["file:///tmp"], "name": "near one",
        "progress": lambda *step: steps.append(step), "log": lambda *said: logs.append(said),
        **({"elicit": elicit} if near >= "2025-06" else {}),
    }  # fmt: skip

    async def main():
        async with behind(far_way, far) as (gateway, app):
            async with reach(gateway, near_way, near, **options) as c:
                names = [tool["name"] for tool in await c.list_tools()]
                assert names[0] == "far__add" and len(names) == 8
                assert [p["name"] for p in await c.list_prompts()] == ["far__question"]
                assert [r["uri"] for r in await c.list_resources()] == ["x://a"]
                assert [t["uriTemplate"] for t in await c.list_templates()] == ["n://{x}"]
                assert (await c.call_tool("far__add", {"a": 1, "b": 2}))["content"][0]["text"] == "3"
                assert await c.read("n://7") == "7" and await c.read("x://a") == "A"
                said = await c.get_prompt("far__question", {"topic": "tea"})
                assert said["messages"][0]["content"]["text"] == "About tea"
                assert await c.complete("far__question", "topic", "t") == ["tea", "toast"]
                assert await c.complete("n://{x}", "x", "") == ["1", "2"]
                assert await c.call("far__inquire") == "text file:///tmp"
                if asks:
                    assert await c.call("far__order", {"user": "u"}) == "u Ann L"
                if near == NEW:
                    await c.set_log_level("info")
                assert await c.call("far__steps") == "done"
                assert steps[-1][:2] == (4, 4)
                await eventually(lambda: logs)
                assert logs[0] == ("info", "between", "far")
                about = (await c.call_tool("far__facts", meta={"acme/x": 1}))["content"][0]["text"]
                about = json.loads(about)
                assert about["client"] == "near one" and about["meta"] == {"acme/x": 1}
                assert {"roots", "sampling"} <= {*about["can"]}
                with pytest.raises(m.ToolError, match="it broke"):
                    await c.call("far__fail")
                for wrong in ("far__no", "no__add"):
                    with pytest.raises(m.MCPError, match="Unknown tool"):
                        await c.call(wrong)
                with pytest.raises(m.RemoteError, match="not found"):
                    await c.read("y://none")

    run(main)


@pytest.mark.parametrize("near", NEAR)
@pytest.mark.parametrize("far_way", ["stdio", "http"])
def test_the_program_stands_between_standard_streams_and_both(near, far_way):
    options = {"elicit": elicit} if near >= "2025-06" else {}

    async def main():
        async with contextlib.AsyncExitStack() as stack:
            words = ["--", *COMMAND]
            if far_way == "http":
                words = [(await stack.enter_async_context(gateway_far.make().http(port=0))).url]
            command = [*GATEWAY, *words]
            async with m.Client(command, revision=near, **options) as c:
                assert await c.call("add", {"a": 2}) in (2, "2")
                if options:
                    assert await c.call("order", {"user": "u"}) == "u Ann L"

    run(main)


@pytest.mark.parametrize("far_way", ["memory", "stdio", "http"])
@pytest.mark.parametrize("near_way", ["memory", "http"])
@pytest.mark.parametrize("far", [OLD, NEW])
@pytest.mark.parametrize("near", [OLD, NEW])
def test_six_users_at_once_get_their_own_answers(near, far, near_way, far_way):
    async def user(number, target):
        name = f"u{number}"

        async def answer(message, schema):
            assert message.startswith(f"{name}: "), message
            await asyncio.sleep(0.001 * (number % 3))
            return {"value": f"{name}{message.split(': ')[1][0]}"}

        seen = []
        options = {"elicit": answer, "name": name, "progress": lambda *step: seen.append(step[2])}
        async with m.Client(target, revision=near, **options) as c:
            for _ in range(3):
                calls = (c.call("far__order", {"user": name}) for _ in range(2))
                assert await asyncio.gather(*calls) == [f"{name} {name}n {name}s"] * 2
            assert {*filter(None, seen)} == {name}
            about = await c.call("far__facts")
            assert about["client"] == name

    async def main():
        async with behind(far_way, far) as (gateway, app), gateway.http(port=0) as server:
            target = gateway if near_way == "memory" else server.url
            await asyncio.gather(*(user(n, target) for n in range(6)))
            assert len(gateway.held) == 0

    run(main)


@pytest.mark.parametrize("far", [OLD, NEW])
def test_users_of_one_name_without_sessions_never_get_the_questions_of_each_other(far):
    """Nothing tells them apart, so no two calls that may ask share a connection."""

    async def user(number, url):
        async def answer(message, schema):
            assert message.startswith(f"u{number}: "), message
            await asyncio.sleep(0)
            return {"value": f"u{number}"}

        async with m.Client(url, elicit=answer) as c:
            for _ in range(3):
                text = await c.call("far__order", {"user": f"u{number}"})
                assert text == f"u{number} u{number} u{number}"

    async def main():
        async with behind("http", far) as (gateway, app):
            async with gateway.http(port=0) as server:
                await asyncio.gather(*(user(n, server.url) for n in range(6)))

    run(main)


@pytest.mark.parametrize("far", [OLD, NEW])
@pytest.mark.parametrize("near", [OLD, NEW])
def test_a_server_in_memory_asks_for_the_scopes_of_whoever_calls(near, far):
    app = m.Server("secret")
    app.tool(lambda: "wiped", name="wipe", scopes=["admin"])
    app.tool(lambda ctx: ctx.principal.subject, name="who")
    people = {name: m.Principal("i", name, scopes=[name]) for name in ("admin", "guest")}

    async def main():
        async with Gateway({"s": app}, revision=far).http(port=0, token=people) as server:
            async with m.Client(server.url, token="admin", revision=near) as c:
                assert [await c.call("s__wipe"), await c.call("s__who")] == ["wiped", "admin"]
            async with m.Client(server.url, token="guest", revision=near) as c:
                assert await c.call("s__who") == "guest"
                with pytest.raises(m.MCPError, match="this needs the scope admin"):
                    await c.call("s__wipe")

    run(main)


@pytest.mark.parametrize("far_way", ["memory", "http"])
@pytest.mark.parametrize("far", [OLD, NEW])
@pytest.mark.parametrize("near", [OLD, NEW])
def test_a_call_that_is_cancelled_is_cancelled_at_the_server(near, far, far_way):
    async def main():
        asked = asyncio.Event()

        async def never(message, schema):
            asked.set()
            await asyncio.Event().wait()

        async with behind(far_way, far) as (gateway, app):
            async with reach(gateway, "memory", near, elicit=never) as c:
                call = asyncio.ensure_future(c.call("far__wait"))
                await eventually(lambda: app.running)
                call.cancel()
                await eventually(lambda: app.cancelled == ["wait"])
                call = asyncio.ensure_future(c.call("far__ask_and_wait"))
                await asked.wait()
                call.cancel()
                if near == OLD and far == OLD:  # elsewhere nothing runs while the person is asked
                    await eventually(lambda: app.cancelled == ["wait", "ask"])
                await asyncio.wait([call])
                assert await c.call_tool("far__add", {"a": 1})

    run(main)


@pytest.mark.parametrize("far_way", ["memory", "http"])
@pytest.mark.parametrize("near", [OLD, NEW])
def test_a_connection_belongs_to_no_request_not_even_to_the_one_that_opened_it(near, far_way):
    who = contextvars.ContextVar("who", default="nobody")

    async def main():
        async with behind(far_way, OLD) as (gateway, app):
            app.add_tool(lambda: who.get(), name="who")
            who.set("ann")
            async with reach(gateway, "memory", near) as c:
                first = asyncio.ensure_future(c.call("far__add", {"a": 1}))
                while not gateway.links:
                    await asyncio.sleep(0)
                second = asyncio.ensure_future(c.call("far__who"))
                first.cancel()
                assert await second == "nobody" and len(gateway.links) == 1

    run(main)


@pytest.mark.parametrize("far", [OLD, NEW])
def test_a_server_is_told_what_the_client_can_but_not_of_tasks_that_one_revision_had(far):
    async def main():
        async with behind("memory", far) as (gateway, app):
            options = {"elicit": elicit, "capabilities": {"tasks": {"list": {}}}}
            async with reach(gateway, "memory", OLD, **options) as c:
                about = (await c.call_tool("far__facts"))["content"][0]["text"]
                assert json.loads(about)["can"] == ["elicitation", *["extensions"] * (far == NEW)]

    run(main)


@pytest.mark.parametrize("near", [OLD, NEW])
def test_answers_are_taken_once_and_from_whoever_was_asked(near):
    async def main():
        people = {name: m.Principal("i", name) for name in ("ann", "bob")}
        async with behind("memory", OLD) as (gateway, app):
            async with gateway.http(port=0, token=people) as server:
                async with m.Client(server.url, token="ann", elicit=elicit) as ann, \
                        m.Client(server.url, token="bob", elicit=elicit) as bob:  # fmt: skip
                    ask = {"name": "far__ask_and_wait", "arguments": {}}
                    meta = {f"io.modelcontextprotocol/{key}": value for key, value in {
                        "protocolVersion": NEW, "clientInfo": {"name": "x", "version": "1"},
                        "clientCapabilities": {"elicitation": {"form": {}}}}.items()}  # fmt: skip
                    first = await ann.peer.ask("tools/call", {**ask, "_meta": meta}, ann.send)
                    (name,) = first["inputRequests"]
                    again = {**ask, "_meta": meta, "requestState": first["requestState"],
                             "inputResponses": {name: {"action": "accept", "content": {"value": "v"}}}}  # fmt: skip
                    with pytest.raises(m.RemoteError, match="start the call again"):
                        await bob.peer.ask("tools/call", again, bob.send)
                    done = await ann.peer.ask("tools/call", again, ann.send)
                    assert done["content"][0]["text"] == "v"
                    with pytest.raises(m.RemoteError, match="call again"):
                        await ann.peer.ask("tools/call", again, ann.send)

    run(main)


@pytest.mark.parametrize("near", [OLD, NEW])
def test_news_reach_those_who_want_them(near):
    async def main():
        heard, updates = [], []
        async with behind("http", None) as (gateway, app):
            async with reach(gateway, "http", near, on_tools_changed=lambda: heard.append(1)) as c:
                await c.list_tools()
                following = await c.subscribe("x://a", lambda params: updates.append(params["uri"]))
                app.add_tool(lambda: 1, name="more")
                app.resource_updated("x://a")
                await eventually(lambda: heard and updates)
                assert "far__more" in [tool["name"] for tool in await c.list_tools()]
                await following.close()
                assert updates[0] == "x://a"

    run(main)


@pytest.mark.parametrize("near", [OLD, NEW])
def test_a_dead_server_is_left_out_and_comes_back(near, tmp_path):
    async def main():
        served = tmp_path / "server.py"
        served.write_text("raise SystemExit('not today')\n")
        gateway = Gateway({"alive": gateway_far.make(), "dead": (str(served), {"stderr": print})})
        async with m.Client(gateway, revision=near) as c:
            names = [tool["name"] for tool in await c.list_tools()]
            assert names and all(name.startswith("alive__") for name in names)
            with pytest.raises(m.RemoteError, match="dead: "):
                await c.call("dead__pid")
            served.write_text(
                f"import os, sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom mcp_lite import Server\n"
                "app = Server()\napp.tool(os.getpid, name='pid', input_schema={'type': 'object'})\napp.run()\n"
            )
            assert "dead__pid" in [tool["name"] for tool in await c.list_tools()]
            pid = int(await c.call("dead__pid"))
            os.kill(pid, 9)
            for _ in range(200):  # the death comes to light, and another one is started
                with contextlib.suppress(m.RemoteError):
                    if int(await c.call("dead__pid")) != pid:
                        break
                await asyncio.sleep(0.01)
            else:
                raise AssertionError("it did not come back")

    run(main)


MORTAL = """
import os, pathlib, sys
sys.path.insert(0, sys.argv[1])
from mcp_lite import Server

app, folder = Server("mortal"), pathlib.Path(__file__).parent
(folder / "pid").write_text(str(os.getpid()))

@app.tool
async def note(number: int) -> int:
    with open(folder / "calls", "a") as file:
        file.write(f"{number}\\n")
    return number

app.run()
"""


@pytest.mark.parametrize("near", [OLD, NEW])
def test_each_of_many_calls_is_made_once_or_is_an_error_while_the_server_dies_again_and_again(near, tmp_path):
    answers, errors, deaths, dice = [], [], [], random.Random("mortal")
    (tmp_path / "mortal.py").write_text(MORTAL)
    server = [sys.executable, str(tmp_path / "mortal.py"), str(ROOT)]

    async def kill():
        while True:
            many = len(answers) + len(errors) + dice.randrange(60)
            while len(answers) + len(errors) < many:
                await asyncio.sleep(0.001)
            await asyncio.sleep(dice.random() / 100)
            with contextlib.suppress(OSError, ValueError):  # it is starting
                os.kill(int((tmp_path / "pid").read_text()), 9)
                deaths.append(1)

    async def call(c, number):
        try:
            assert await c.call("note", {"number": number}) == number
            answers.append(number)
        except m.RemoteError as exc:
            assert "mortal" in str(exc)
            errors.append(number)

    async def work(c, numbers):
        for number in numbers:
            await call(c, number)

    async def main():
        async with m.Client([*GATEWAY, "--", *server], revision=near, stderr=lambda line: None) as c:
            killing, numbers = asyncio.ensure_future(kill()), iter(range(500))
            await asyncio.gather(*(work(c, numbers) for _ in range(8)))
            killing.cancel()
            await call(c, 500)  # the last death may come to light only now
            await call(c, 501)
        made = [int(line) for line in (tmp_path / "calls").read_text().split()]
        assert len(made) == len({*made}) and {*made} >= {*answers}
        assert len(answers) + len(errors) == 502 and answers[-1] == 501 and deaths

    run(main)


@pytest.mark.parametrize("near", [OLD, NEW])
def test_a_slow_server_keeps_nobody_waiting_for_long(near):
    slow = m.Server("slow")

    @slow.middleware
    async def never(ctx, call_next):
        await asyncio.Event().wait()

    async def main():
        gateway = Gateway({"slow": slow, "far": gateway_far.make()}, patience=0.3)
        async with m.Client(gateway, revision=near) as c:
            assert len(await c.list_tools()) == 8
            assert await c.read("x://a") == "A"
            with pytest.raises(m.RemoteError, match="slow: it did not connect within 0.3 seconds"):
                await c.call("slow__x")

    run(main)


@pytest.mark.parametrize("far", [OLD, NEW])
@pytest.mark.parametrize("near", [OLD, NEW])
def test_a_server_that_lies_about_itself_gets_nothing_that_is_anothers(near, far):
    liar = m.Server("honest", version="9", instructions="call me honest")
    liar.tool(lambda: "liar", name="honest__add")
    liar.add_resource("x://a", "lie")

    @liar.middleware
    async def lie(ctx, call_next):
        answer = await call_next(ctx)
        if ctx.method == "initialize":
            answer["serverInfo"] = {"name": "gateway", "version": "0", "icons": "?"}
        return answer

    async def main():
        async with m.Client(Gateway({"honest": gateway_far.make(), "liar": liar}, revision=far), revision=near) as c:
            names = [tool["name"] for tool in await c.list_tools()]
            assert "liar__honest__add" in names and names.count("honest__add") == 1
            assert (await c.call_tool("honest__add", {"a": 1}))["content"][0]["text"] == "1"
            assert await c.call("liar__honest__add") == "liar"
            assert await c.read("x://a") == "A"  # the first one that has it
            assert c.server_info["name"] == "gateway" and c.server_info["version"] != "0"

    run(main)


def test_a_configuration_may_name_several_servers_and_variables(tmp_path, monkeypatch):
    config = tmp_path / "mcp.json"

    async def main():
        async with gateway_far.make().http(port=0, token="secret") as server:
            monkeypatch.setenv("KEY", "secret")
            monkeypatch.setenv("FAR_URL", server.url)
            config.write_text(json.dumps({"mcpServers": {
                "My Child": {"command": "${PY:-" + sys.executable + "}", "args": COMMAND[1:]},
                "site": {"url": "${FAR_URL}", "headers": {"Authorization": "Bearer ${env:KEY}"}},
                "off": {"command": "no such command", "disabled": True},
            }}))  # fmt: skip
            async with m.Client(Gateway(str(config))) as c:
                names = {tool["name"].partition("__")[0] for tool in await c.list_tools()}
                assert names == {"My-Child", "site"}
                assert await c.call("My-Child__add", {"a": 1}) == await c.call("site__add", {"a": 1}) == 1

    run(main)


@pytest.mark.parametrize("text, wrong", [
    ("{}", "names no servers"), ("[]", "names no servers"), ("{", "line 1"),
    ('{"mcpServers": {"a": 5}}', "a: it needs a command or a url"),
    ('{"mcpServers": {"a": {}}}', "a: it needs a command or a url"),
    ('{"mcpServers": {"a": {"command": "${NO_SUCH_NAME}"}}}', "the variable NO_SUCH_NAME is not set"),
])  # fmt: skip
def test_a_configuration_that_makes_no_sense_is_refused_in_a_sentence(tmp_path, text, wrong, capsys):
    config = tmp_path / "mcp.json"
    config.write_text(text)
    with pytest.raises(ValueError, match=wrong):
        Gateway(str(config))
    with pytest.raises(SystemExit):
        mcp_gateway.main([str(config)])
    assert wrong in capsys.readouterr().err


@pytest.mark.parametrize("near", [OLD, NEW])
def test_a_configuration_that_names_the_gateway_itself_ends(tmp_path, near):
    config = tmp_path / "mcp.json"
    mine = {"command": sys.executable, "args": [*GATEWAY[1:], str(config)]}
    config.write_text(json.dumps({"mcpServers": {"me": mine, "far": {"command": sys.executable, "args": COMMAND[1:]}}}))

    async def main():
        async with m.Client([*GATEWAY, str(config)], revision=near, stderr=lambda line: None) as c:
            assert {tool["name"].partition("__")[0] for tool in await c.list_tools()} == {"far"}
            with pytest.raises(m.RemoteError, match="me: "):
                await c.call("me__far__add", {"a": 1})

    run(main)


@pytest.mark.parametrize("near", [OLD, NEW])
def test_a_gateway_that_is_its_own_server_at_a_url_ends_at_a_number_of_connections(near):
    async def main():
        gateway = Gateway({"far": gateway_far.make(), "me": "http://127.0.0.1:9/mcp"}, patience=3)
        async with gateway.http(port=0) as server:
            gateway.targets["me"] = server.url, {}
            async with m.Client(server.url, revision=near) as c:
                assert "far__add" in {tool["name"] for tool in await c.list_tools()}
                assert len(gateway.links) <= mcp_gateway.MAX_LINKS

    run(main)


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("near", NEAR)
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_an_only_server_introduces_itself(near, far, way):
    about = {"title": "Tea Shop", "version": "1.2", "website_url": "https://shop.example", "description": "It sells tea."}
    shop = gateway_far.make("shop", icons=[{"src": "https://shop.example/i.png"}], **about)

    async def main():
        async with shop.http(port=0) as far_server:
            gateway = Gateway(far_server.url, revision=far)
            async with reach(gateway, "memory" if way == "stdio" else "http", near) as c:
                assert c.server_info == shop.info and c.instructions == "use shop well"
            if way == "stdio":
                async with m.Client([*GATEWAY, far_server.url], revision=near) as c:
                    assert c.server_info == shop.info and c.instructions == "use shop well"

    run(main)


@pytest.mark.parametrize("near", NEAR)
def test_the_instructions_of_several_servers_stand_under_their_names(near):
    targets = {"one": gateway_far.make("a"), "two": m.Server("mute"), "none": "http://127.0.0.1:1/mcp", "four": gateway_far.make("b")}

    async def main():
        async with m.Client(Gateway(targets), revision=near) as c:
            assert c.instructions == "# one\n\nuse a well\n\n# four\n\nuse b well"
            assert c.server_info["name"] == "gateway"

    run(main)


@pytest.mark.parametrize("near", NEAR)
@pytest.mark.parametrize("target", ["http://127.0.0.1:1/mcp", m.Server("slow")], ids=["absent", "slow"])
def test_an_only_server_that_is_not_there_is_introduced_as_the_gateway(near, target, caplog):
    async def never(ctx, call_next):
        await asyncio.Event().wait()

    if isinstance(target, m.Server):
        target.middleware(never)

    async def main():
        async with m.Client(Gateway(target, patience=0.3), revision=near) as c:
            assert (c.server_info["name"], c.instructions) == ("gateway", None)
        assert not caplog.records, "the next request fails, and says why"

    run(main)


ASKING = """
import json, sys
for line in sys.stdin:
    msg = json.loads(line)
    if msg.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "files", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": result}), flush=True)
    elif msg.get("method") == "notifications/initialized":
        print(json.dumps({"jsonrpc": "2.0", "id": "asked", "method": "roots/list"}), flush=True)
    elif msg.get("id") == "asked":
        roots = msg
    elif msg.get("method") == "tools/list":
        while "roots" not in globals():
            roots = json.loads(sys.stdin.readline())
        [root] = roots.get("result", {"roots": [{"uri": "refused"}]})["roots"]
        tool = {"name": root["uri"], "inputSchema": {"type": "object"}}
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": {"tools": [tool]}}), flush=True)
"""


def test_what_a_server_asks_when_it_is_connected_waits_for_the_first_request_of_the_client(tmp_path):
    """The reference server of files wants the roots at once, and may have no folder without them."""
    (tmp_path / "asking.py").write_text(ASKING)

    async def main():
        gateway = Gateway([sys.executable, str(tmp_path / "asking.py")], revision=OLD)
        async with m.Client(gateway, revision=OLD, roots=["file:///tmp"]) as c:
            assert c.server_info["name"] == "files"
            await asyncio.sleep(0.2)
            assert [tool["name"] for tool in await c.list_tools()] == ["file:///tmp"]

    run(main)


@pytest.mark.parametrize("near", NEAR)
def test_a_connection_that_is_dropped_while_it_opens_fails_no_handshake(near):
    slow = m.Server("slow")

    @slow.middleware
    async def never(ctx, call_next):
        await asyncio.Event().wait()

    async def main():
        gateway = Gateway(slow, patience=50)
        client = m.Client(gateway, revision=near)
        connecting = asyncio.ensure_future(client.connect())
        await eventually(lambda: gateway.links)
        gateway.drop()
        await asyncio.wait_for(connecting, 5)
        assert client.server_info["name"] == "gateway"
        await client.close()

    run(main)


def test_one_server_keeps_its_names_and_own_tools_stay(tmp_path):
    async def main():
        async with m.Client(Gateway(gateway_far.make())) as c:
            assert [tool["name"] for tool in await c.list_tools()][0] == "add"
            assert await c.call("add", {"a": 1}) == 1
        gateway = Gateway({"far": gateway_far.make()})
        gateway.tool(lambda: "mine", name="own")
        gateway.add_resource("own://r", "mine")
        async with m.Client(gateway) as c:
            names = [tool["name"] for tool in await c.list_tools()]
            assert names[:2] == ["own", "far__add"]
            assert [await c.call("own"), await c.read("own://r"), await c.read("x://a")] == ["mine", "mine", "A"]

    run(main)


@pytest.mark.parametrize("near", [OLD, NEW])
def test_connections_are_opened_anew_after_drop(near):
    async def main():
        heard = []
        gateway = Gateway(gateway_far.make())
        async with m.Client(gateway, revision=near, on_tools_changed=lambda: heard.append(1)) as c:
            assert (await c.call_tool("add", {"a": 1}))["content"]
            before = list(gateway.links)
            gateway.drop()
            await eventually(lambda: heard)
            assert (await c.call_tool("add", {"a": 1}))["content"]
            assert gateway.links and not {*gateway.links} & {*before}

    run(main)


WAYS = [
    (["--token", "secret"], {}), ([], {"MCP_LITE_TOKEN": "secret"}),
    (["--header", "Authorization: Bearer secret"], {}), (["--header", "Authorization:${KEY}"], {"KEY": "Bearer secret"}),
]  # fmt: skip


@pytest.mark.parametrize("words, env", WAYS, ids=["option", "variable", "header", "header with a variable"])
def test_a_token_is_sent_to_the_url_of_the_command_line(words, env):
    async def main():
        async with gateway_far.make().http(port=0, token="secret") as server:
            async with m.Client([*GATEWAY, server.url, *words], env=env) as c:
                assert await c.call("add", {"a": 2}) == 2

    run(main)


@contextlib.asynccontextmanager
async def at_a_url(*words, **env):
    """Start the program with --http, and give its URL."""
    command = [*GATEWAY, "--http", "0", *words]
    child = await asyncio.create_subprocess_exec(*command, env={**os.environ, **env}, stderr=subprocess.PIPE)
    try:
        yield (await child.stderr.readline()).decode().split()[-1]
    finally:
        child.terminate()
        await child.communicate()


@pytest.mark.parametrize("words, env", WAYS[:2], ids=["option", "variable"])
def test_with_http_the_token_is_what_clients_must_send_and_no_server_gets_it(words, env):
    async def main():
        async with gateway_far.make().http(port=0, token="secret") as far, at_a_url(far.url, *words, **env) as url:
            with pytest.raises(m.AuthError):
                await m.Client(url, token="other").connect()
            async with m.Client(url, token="secret") as c:
                with pytest.raises(m.RemoteError, match=f"{far.url} needs a token"):
                    await c.list_tools()

    run(main)


@pytest.mark.parametrize("near", NEAR)
def test_the_error_of_an_only_server_is_not_an_empty_list(near):
    async def main():
        async with m.Client(Gateway("http://127.0.0.1:1/mcp"), revision=near) as c:
            for listed in (c.list_tools, c.list_prompts, c.list_resources, c.list_templates):
                with pytest.raises(m.RemoteError, match="^cannot reach http://127.0.0.1:1/mcp"):
                    await listed()
            with pytest.raises(m.RemoteError, match="^cannot reach http://127.0.0.1:1/mcp"):
                await c.call("add")

    run(main)


def test_servers_of_one_line_have_names_that_applications_accept_and_errors_of_one_line(tmp_path):
    (tmp_path / "no.server_here.py").write_text("raise SystemExit('not today')\n")
    said = []

    async def main():
        async with gateway_far.make().http(port=0) as server:
            words = [server.url, COMMAND[1], str(tmp_path / "no.server_here.py")]
            async with m.Client([*GATEWAY, *words], stderr=said.append) as c:
                names = {tool["name"].partition("__")[0] for tool in await c.list_tools()}
                port = server.url.split(":")[2].partition("/")[0]
                assert names == {f"127-0-0-1-{port}", "gateway-far"}

    run(main)
    problem = "no-server-here is left out of tools/list: the server 'no.server_here.py' exited with status 1"
    assert said.count(problem) == 1 and not any("last words" in line for line in said)


@pytest.mark.parametrize("words, wrong", [
    ([], "give a URL"), (["--http"], "expected one argument"),
    (["a/shop.py", "b/shop.py"], "two servers have the name shop: name them in an mcp.json"),
    (["https://h/a", "https://h/b"], "two servers have the name h"),
    (["--token", "t", "shop.py"], "--token without --http, are for one URL"),
    (["https://h/a", "--header", "K:v", "https://i/a"], "--header, and"),
    (["https://h/a", "--header", "K"], "expected NAME:VALUE"),
    (["https://h/a", "--header", "Authorization=secret"], ": --header: expected NAME:VALUE\n"),
    (["https://h/a", "--header", "K:${NO_SUCH_NAME}"], "--header: the variable NO_SUCH_NAME is not set"),
    (["http://localhost.example/a", "--token", "t"], "is not https: the token"),
    (["--http", "0", "shop.py", "--token", ""], "the token is empty"),
    (["--http", "99999", "shop.py"], "--http=99999: expected [HOST:]PORT"),
    (["--http", "h:x", "shop.py"], "--http=h:x: expected [HOST:]PORT"),
])  # fmt: skip
def test_wrong_words_are_refused_in_a_sentence(words, wrong):
    done = subprocess.run([*GATEWAY, *words], input="", capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and wrong in done.stderr and "Traceback" not in done.stderr


def test_a_uri_is_asked_of_each_server_whatever_the_others_say():
    failing, right = m.Server("failing"), m.Server("right")
    right.add_resource("x://a", "A")

    @failing.resource("x://{name}")
    def broken(name: str) -> str:
        raise m.ToolError("no such name here")

    async def main():
        async with m.Client(Gateway({"one": m.Server("tools only"), "two": failing, "three": right})) as c:
            assert await c.read("x://a") == "A"
            with pytest.raises(m.RemoteError, match="no such name here"):
                await c.read("x://b")

    run(main)
