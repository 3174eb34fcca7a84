"""examples/app, in Chromium; this file plays the host."""

import asyncio
import os
import shutil
import time

import pytest

from mcp_lite import Client

# A page as hosts have it: a frame without any rights, and messages to and from it.
HOST = """
const [html] = arguments, frame = document.createElement("iframe");
window.heard = [];
addEventListener("message", event => event.source === frame.contentWindow && heard.push(event.data));
window.say = message => frame.contentWindow.postMessage({jsonrpc: "2.0", ...message}, "*");
frame.sandbox = "allow-scripts";
frame.srcdoc = html;
document.body.append(frame);
"""


@pytest.fixture
def driver(tmp_path):
    browser = pytest.importorskip("browser", reason="selenium is not installed", exc_type=ImportError)
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        assert not os.environ.get("CI"), "there is no chromium"
        pytest.skip("there is no chromium")
    with browser.chromium(tmp_path) as driver:
        yield driver


class Host:
    """What a host does: it shows the page of a tool, and passes on what the page asks for."""

    def __init__(self, driver, client):
        self.driver, self.client, self.taken, self.seen = driver, client, 0, []

    def say(self, **message):
        self.driver.execute_script("say(arguments[0])", message)

    async def hear(self, method):
        """Return the next message of a method, answering what comes before it."""
        limit = time.monotonic() + 30
        while time.monotonic() < limit:
            for message in self.driver.execute_script("return heard.slice(arguments[0])", self.taken):
                self.taken += 1
                self.seen.append(message)
                if message.get("method") == method:
                    return message
            await asyncio.sleep(0.02)
        raise AssertionError(f"{method} did not come: {self.seen}")

    def inside(self, script, *args):
        self.driver.switch_to.frame(0)
        try:
            return self.driver.execute_script(script, *args)
        finally:
            self.driver.switch_to.default_content()


async def play(driver, client, revision):
    (tool,) = await client.list_tools()
    ui = tool["_meta"]["ui"]
    (page,) = (await client.read_resource(ui["resourceUri"]))["contents"]
    assert page["mimeType"] == "text/html;profile=mcp-app"
    driver.get("about:blank")
    driver.execute_script(HOST, page["text"])
    host = Host(driver, client)

    hello = await host.hear("ui/initialize")
    assert hello["params"]["protocolVersion"] == "2026-01-26"
    host.say(id=hello["id"], result={"protocolVersion": "2026-01-26", "hostInfo": {"name": "test", "version": "1"},
                                     "hostCapabilities": {"serverTools": {}}, "hostContext": {}})  # fmt: skip
    await host.hear("ui/notifications/initialized")
    host.say(method="ui/notifications/tool-input", params={"arguments": {"months": 3}})
    host.say(method="ui/notifications/tool-result", params=await client.call_tool("sales", {"months": 3}))
    size = await host.hear("ui/notifications/size-changed")
    assert size["params"]["height"] > 100
    text = host.inside("return document.body.innerText")
    assert "81 sold" in text and "Oct" in text and "Sep" not in text

    # The user changes the number; the page calls the tool by its host.
    change = "let m = document.getElementById('months'); m.value = arguments[0]; m.dispatchEvent(new Event('change'))"
    host.inside(change, 1)
    call = await host.hear("tools/call")
    assert call["params"] == {"name": "sales", "arguments": {"months": 1}}
    host.say(id=call["id"], result=await client.call_tool(**call["params"]))
    await host.hear("ui/notifications/size-changed")
    assert "33 sold" in host.inside("return document.body.innerText")

    # What fails is shown, as text.
    host.inside(change, 2)
    call = await host.hear("tools/call")
    host.say(id=call["id"], error={"code": -32000, "message": "<b>declined</b>"})
    host.say(id=99, method="ping")
    while not any(message.get("id") == 99 for message in host.driver.execute_script("return heard")):
        await asyncio.sleep(0.02)
    assert "<b>declined</b>" in host.inside("return document.body.innerText")


def test_the_page_of_a_tool_is_shown_and_calls_the_tool_by_its_host(driver, example, revision):
    async def main():
        async with Client(example("app/sales.py"), revision=revision) as client:
            await play(driver, client, revision)

    asyncio.run(main())
