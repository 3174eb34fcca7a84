"""Play a person's session with the inspector in a real browser: python .ci/inspector

This Python needs selenium; the machine needs Chromium and its driver. Everything is on loopback.

The first half uses examples/everything_server.py over stdio and HTTP in both eras. The second
half looks at hostile.py, and asks for the page as somebody would who may not have it.
"""

import contextlib
import functools
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from browser import chromium
from processes import ROOT, STOP_SECONDS, Failed, end, free_port, passes, serving, started

HERE = pathlib.Path(__file__).resolve().parent
EVERYTHING = ROOT / "examples/everything_server.py"
INSPECTOR = ROOT / "examples/inspector/inspector.py"
PATIENCE = 60.0  # seconds for anything that a page has to show
CLICK_SECONDS = 20.0  # in which a click must be answered, whatever a server does
FLOOD_SECONDS = 4.0  # for which it is used while notifications come
FLOOD_RATE = 100  # messages a second that the page must take in meanwhile, at least
LEGACY, MODERN = "2025-11-25", "2026-07-28"


@contextlib.contextmanager
def inspector(*args):
    """Run the inspector; yield its address."""
    with started(
        [sys.executable, str(INSPECTOR), "--no-browser", *args], stdout=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield re.search(r"http\S+", process.stdout.readline())[0]
        finally:
            good = end(process, STOP_SECONDS)
    if not good:
        raise Failed(f"the inspector did not end within {STOP_SECONDS} s")


class Page:
    """The page, as a person uses it."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, url):
        self.driver.get("about:blank")
        self.driver.get(url)
        self.until("state.hello", "the page begins")

    def js(self, text, *args):
        return self.driver.execute_script(text, *args)

    def until(self, condition, what, seconds=PATIENCE):
        """Wait until JavaScript is true."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            with contextlib.suppress(WebDriverException):
                if self.js(f"return !!({condition})"):
                    return
            time.sleep(0.02)
        shown = self.driver.find_element(By.TAG_NAME, "body").text
        raise Failed(f"{shown[-1500:]}\nthis did not come within {seconds:g} s: {what}")

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector):
        """Click on something as soon as it is there and stays where it is."""
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                return self.find(selector).click()
            except WebDriverException:
                if time.monotonic() > limit:
                    raise
            time.sleep(0.02)

    def press(self, text, within="body"):
        """Press the button with a text."""
        path = f"//{within}//button[normalize-space(.)={text!r}]"
        self.driver.find_elements(By.XPATH, path)[-1].click()

    def fill(self, within, fields):
        for label, value in fields.items():
            box = self.find(f"{within} [aria-label='{label}']")
            if box.tag_name != "select":
                box.clear()
            box.send_keys(value)

    def connect(self, target, revision):
        self.click("#connect")
        choose = "for (const [label, value] of Object.entries(arguments[0])) { const box = "
        choose += "document.querySelector(`dialog [aria-label=${label}]`); box.value = value; "
        choose += "box.dispatchEvent(new Event('change')); }"
        self.js(choose, {"Server": str(target), "Revision": revision})
        before = self.js("return state.now")
        self.press("Connect", "dialog")
        ready = f"state.now !== {before} && current() && current().revision === {revision!r}"
        self.until(ready, f"a connection in {revision}")

    def call(self, name, fields=None):
        """Call a tool with the form."""
        self.click("[data-tab=tools]")
        self.click(f"[data-key='{name}']")
        self.fill("#pane", fields or {})
        self.click("#pane [data-send]")

    def outcome(self, text, kind="result"):
        """Wait for the outcome of a call."""
        card = f"(document.querySelector('[data-outcome={kind}]') || {{}}).textContent || ''"
        self.until(f"({card}).includes({json.dumps(text)})", f"an outcome with {text!r}")

    def heard(self, method, least=1):
        """Wait for messages with a method on the wire of this connection."""
        found = f"state.frames.filter(each => each.c === state.now && each.method === {method!r})"
        self.until(f"{found}.length >= {least}", f"{least} of {method}")

    def count(self, method):
        return self.js("return state.frames.filter(each => each.c === state.now && each.m "
                       "&& each.m.method === arguments[0]).length", method)  # fmt: skip

    def close(self):
        """Leave the page; Failed if the browser's console says anything against it."""
        self.driver.get("about:blank")
        said = [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE"]  # fmt: skip
        if said:
            raise Failed("\n".join(said))


# -- A session -----------------------------------------------------------------------------------


def form(page):
    """A form with a nested argument, once wrong and once right; sent by the keyboard."""
    page.call("json_schema_2020_12_tool", {"name": "Ann", "city": "Bern"})
    page.until("document.querySelector('#pane [role=alert]').textContent", "what is wrong")
    page.fill("#pane", {"contactMethod": "email", "email": "ann@example.com"})
    page.find("#pane [aria-label=email]").send_keys(Keys.CONTROL, Keys.ENTER)
    page.outcome('"address"')
    page.outcome("Bern")


def progress(page):
    """A bar that moves."""
    page.js("state.seen = []; new MutationObserver(() => { const bar = "
            "document.querySelector('[role=progressbar] + span'); if (bar) "
            "state.seen.push(bar.textContent); }).observe(document.getElementById('pane'), "
            "{ subtree: true, childList: true, characterData: true });")  # fmt: skip
    page.call("test_tool_with_progress")
    page.outcome("Progress was reported.")
    page.heard("notifications/progress", 3)
    page.until("state.seen.some(text => /50 \\/ 100|100 \\/ 100/.test(text))", "a bar that moves")


def cancel(page):
    """A call that the person gives up."""
    page.call("slow_compute", {"seconds": "60"})
    page.until("document.querySelector('[role=progressbar]')", "a call that runs")
    page.press("Cancel")
    page.outcome("you cancelled it", "error")


def elicitation(page):
    """A question to the person, answered; and one whose dialog is just closed."""
    page.call("test_elicitation", {"message": "Who are you?"})
    page.until("document.querySelector('dialog [aria-label=username]')", "a dialog")
    page.fill("dialog", {"username": "ann", "email": "ann@example.com"})
    page.press("Accept", "dialog")
    page.outcome("action=accept")
    page.click("#pane [data-send]")
    page.until("document.querySelector('dialog [aria-label=username]')", "another dialog")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.outcome("action=cancel")


def sampling(page):
    """A question to the model, answered by the person."""
    page.call("test_sampling", {"prompt": "Say hello"})
    page.until("document.querySelector('dialog textarea')", "a dialog")
    page.find("dialog textarea").send_keys("hello, says the person")
    if "Say hello" not in page.find("dialog").text:
        raise Failed("the dialog does not show what the server says to the model")
    page.press("Answer", "dialog")
    page.outcome("hello, says the person")


def list_change(page):
    """A list that changes is fetched anew."""
    before = page.count("tools/list")
    page.call("test_trigger_tool_change")
    page.heard("notifications/tools/list_changed")
    page.heard("tools/list", before + 1)


def wire(page):
    """A message is looked at: what it says, what it is for, where the file handles it."""
    page.fill("#right", {"Filter messages": "tools/call"})
    page.until("state.shown.length && state.shown.every(each => /tools\\/call/.test(each.title))",
               "the filter")  # fmt: skip
    page.find("#wire").send_keys(Keys.ARROW_DOWN)
    page.js("const wire = document.getElementById('wire'); wire.scrollTop = wire.scrollHeight")
    page.until("document.querySelector('.frame')", "a row")
    page.click(".frame:last-child")
    page.until("/section \\d+/.test(document.getElementById('detail').textContent)", "the guide")
    page.js("const filter = document.getElementById('filter'); filter.value = ''; filter.oninput()")


def side_by_side(page):
    """The same call in both eras."""
    page.click("[data-tab=tools]")
    page.click("[data-key=test_simple_text]")
    page.press("Both eras")
    page.until("document.querySelector('dialog .eras')", "both eras")
    said = page.find("dialog .eras").text
    for word in ("initialize", "server/discover", "This is a simple text response"):
        if word not in said:
            raise Failed(f"{said[:2000]}\nnot in the comparison: {word}")
    page.press("Close", "dialog")


def session(page, target, revision):
    page.connect(target, revision)
    parts = [form, progress, cancel, elicitation, sampling, list_change, wire]
    if revision == MODERN:
        parts.append(side_by_side)
    for part in parts:
        part(page)


def recording(page, folder):
    """Save, reload, load; return the file. What is seen is the same each time."""
    page.press("Save")
    saved = folder / "conversation.jsonl"
    limit = time.monotonic() + PATIENCE
    while not saved.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    frames = [json.loads(line) for line in saved.read_text("utf-8").splitlines()]
    page.driver.refresh()
    page.until(f"state.frames.length >= {len(frames)}", "the frames again after a reload")
    page.until("state.conns.size === 4", "the connections again after a reload")
    page.find("#file").send_keys(str(saved))
    page.until(f"state.loaded && state.frames.length === {len(frames)}", "the recording")
    return saved, len(frames)


def everything(page, folder):
    port = free_port()
    server = [sys.executable, str(EVERYTHING), "--http", str(port)]
    with serving(server, port), inspector(str(EVERYTHING), f"http://127.0.0.1:{port}/mcp") as url:
        page.open(url)
        page.js("document.querySelectorAll('dialog').forEach(each => each.close())")
        for target, name in enumerate(("stdio", "HTTP")):
            for revision in (LEGACY, MODERN):
                began = time.monotonic()
                session(page, target, revision)
                print(f"   {name}, {revision}: {time.monotonic() - began:.1f} s", flush=True)
        lanes = page.js("return state.frames.filter(each => each.k === 'msg' && each.i).length")
        saved, count = recording(page, folder)
        page.close()
    with inspector("--replay", str(saved)) as url:
        page.open(url)
        page.until(f"state.frames.length === {count}", "the recording without a server")
        page.close()
    print(f"   {count} frames saved, loaded and replayed; {lanes} messages with their request")


# -- Hostility -----------------------------------------------------------------------------------


def unharmed(page):
    if page.js("return window.pwned !== undefined || ({}).polluted !== undefined"):
        raise Failed("a script of the server was executed")


def quick(page, tab, least):
    """Click on a tab; return the seconds until the page shows it."""
    began = time.monotonic()
    page.find(f"[data-tab={tab}]").click()
    page.until(f"document.getElementById('pane').textContent.includes({least!r})", tab)
    took = time.monotonic() - began
    if took > CLICK_SECONDS:
        raise Failed(f"a click on {tab} was answered after {took:.1f} s")
    return took


def hostile(page, folder):
    with inspector(str(HERE / "hostile.py")) as url:
        page.open(url)
        page.until("current() && current().revision", "a connection")
        page.click("[data-tab=tools]")
        page.until("document.getElementById('pane').textContent.includes('100000')",
                   "100,000 tools")  # fmt: skip
        page.call("evil")
        page.js("for (const box of document.querySelectorAll('details')) box.open = true")
        page.click("#pane [data-send]")  # all the same, though it breaks the schema
        page.outcome("window.pwned")
        for tab in ("resources", "templates", "prompts", "log", "history", "overview"):
            page.click(f"[data-tab={tab}]")
            page.until("document.getElementById('pane').textContent.includes('onerror')", tab)
            unharmed(page)
        page.call("ask")
        page.until("document.querySelectorAll('dialog').length === 1", "one dialog at a time")
        while page.js("return questions.length"):
            page.js("document.querySelector('dialog')?.close()")
        began = time.monotonic()
        page.call("big")
        page.outcome("more characters")
        print(f"   10 MB are shown after {time.monotonic() - began:.1f} s")
        flooded(page)
        unharmed(page)
        page.close()


def flooded(page):
    """Use the page while notifications come without an end."""
    page.click("[data-tab=raw]")  # the list of tools is not fetched again and again, for now
    page.js("state.frames = []; api({ do: 'call', conn: state.now, call: 1, "
            "method: 'tools/call', params: { name: 'flood' } })")  # fmt: skip
    page.until("state.frames.length > 2000", "the flood")
    began, before = time.monotonic(), page.js("return state.after")
    slowest = 0.0
    while time.monotonic() < began + FLOOD_SECONDS:
        for tab, least in (("log", "stderr"), ("overview", "It declares"), ("raw", "Sent as")):
            slowest = max(slowest, quick(page, tab, least))
    rate = (page.js("return state.after") - before) / (time.monotonic() - began)
    if rate < FLOOD_RATE:
        raise Failed(f"the page takes only {rate:.0f} messages a second")
    for tab, least in (("tools", "being fetched"), ("log", "stderr")):  # all 100,000 again
        slowest = max(slowest, quick(page, tab, least))
    page.press("Pause")
    page.js("document.getElementById('wire').scrollTop = 0")
    page.click(".frame")
    page.until("document.getElementById('detail').textContent", "a message among others")
    print(f"   flood: {rate:.0f} messages a second, slowest click {slowest:.2f} s")


def refused(page, folder):
    """Whoever has no token, or comes from elsewhere, gets nothing."""
    with inspector(str(EVERYTHING)) as url:
        where, token = re.fullmatch(r"http://([\w.:]+)/#(.+)", url).groups()
        right = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        wrong = {**right, "Authorization": f"Bearer {token[:-1]}"}
        asked = (
            ("the right token", right, {200}),
            ("no token", {"Content-Type": "application/json"}, {401}),
            ("a wrong token", wrong, {401}),
            ("a foreign origin", {**right, "Origin": "http://evil.example"}, {403}),
            ("another port's origin", {**right, "Origin": "http://127.0.0.1:1"}, {403}),
            ("another host", {**right, "Host": "evil.example"}, {403, 421}),
        )
        for what, headers, expected in asked:
            for path in ("/api", "/recording"):
                status = status_of(where, "POST", path, headers)
                if status not in expected:
                    raise Failed(f"{path} with {what} was answered with {status}")
        if status_of(where, "GET", "/", {"Host": "evil.example"}) not in (403, 421):
            raise Failed("the page is given to another host")


def status_of(where, method, path, headers):
    """Return the status of an HTTP request."""
    connection = http.client.HTTPConnection(where, timeout=PATIENCE)
    try:
        connection.request(method, path, b'{"do": "hello"}', headers)
        return connection.getresponse().status
    finally:
        connection.close()


def main():
    """Check all; return an exit status."""
    with tempfile.TemporaryDirectory() as name, chromium(name) as driver:
        driver.set_script_timeout(PATIENCE)

        def fresh(check):
            check(Page(driver), pathlib.Path(name))

        went = [
            passes(check.__name__, functools.partial(fresh, check), WebDriverException)
            for check in (everything, hostile, refused)
        ]
    return 0 if all(went) else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
