"""Cut mcp_lite.py as the reference says, and let each cut do its job: python3 .ci/peers/cuts.py

The peer is the official SDK, at both ends. A cut has the examples and the checks beside it, and
nothing else of the project.
"""

import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from install import Missing, install_python
from processes import ROOT, Failed, free_port, passes, run, serving

SDK = "mcp==2.3.0"
SECONDS = 300  # for one conversation; most take two
HTTP = "streamable-http"

IN_MEMORY = """
import asyncio, json
from mcp_lite import *

app = Server("cut")

@app.tool
def add(a: int, b: int = 0) -> int:
    return a + b

async def main():
    ours, theirs = memory_transports()
    serving = asyncio.ensure_future(app.serve(theirs))

    async def answer_to(msg):
        await ours.write({"jsonrpc": "2.0", **msg})
        return json.loads((await ours.read())[0])["result"] if "id" in msg else None

    hello = {"protocolVersion": "2025-11-25", "capabilities": {},
             "clientInfo": {"name": "by hand", "version": "1"}}
    await answer_to({"id": 1, "method": "initialize", "params": hello})
    await answer_to({"method": "notifications/initialized"})
    call = {"name": "add", "arguments": {"a": 1, "b": 2}}
    answer = await answer_to({"id": 2, "method": "tools/call", "params": call})
    assert answer["structuredContent"] == {"result": 3}, answer
    await ours.close()
    await serving
    print("   an app answers in memory")

asyncio.run(main())
"""


class Cut:
    """A folder with a cut file, and what it is made to do."""

    def __init__(self, folder, sdk):
        self.folder, self.sdk = folder, sdk
        self.server = [sys.executable, str(folder / "examples/everything_server.py")]
        self.checks = folder / ".ci/peers"

    def program(self, code):
        code = f"import sys; sys.path.insert(0, {str(self.folder)!r})\n{code}"
        return run([sys.executable, "-W", "error", "-c", code], SECONDS)

    def imports(self):
        names = "'  ', len(mcp_lite.__all__), 'public names'"
        return self.program(f"import mcp_lite; from mcp_lite import *; print({names})")

    def in_memory(self):
        return self.program(IN_MEMORY)

    def stdio_server(self):
        return run([self.sdk, str(self.checks / "sdk_client.py"), "stdio", *self.server], SECONDS)

    def our_client(self, *target):
        client = [sys.executable, str(self.checks / "our_client.py"), "contract", *target]
        return run(client, SECONDS)

    def stdio_ends(self):
        theirs = [self.sdk, str(self.checks / "sdk_server.py"), "stdio"]
        return self.our_client(*self.server) + self.our_client(*theirs)

    def http_server(self, client=None):
        port = free_port()
        with serving([*self.server, "--http", str(port)], port, {0}):
            url = f"http://127.0.0.1:{port}/mcp"
            theirs = [self.sdk, str(self.checks / "sdk_client.py"), HTTP, url]
            return client(url) if client else run(theirs, SECONDS)

    def http_ends(self):
        port = free_port()
        theirs = [self.sdk, str(self.checks / "sdk_server.py"), HTTP, str(port)]
        with serving(theirs, port):
            said = self.our_client(f"http://127.0.0.1:{port}/mcp")
        return said + self.http_server(self.our_client)


#: What a cut must do, by its name in the reference; each does what the ones above do, too.
JOBS = {
    "Part IV[.]": Cut.in_memory, "Part V[.]": Cut.stdio_server, "Part VI[.]": Cut.stdio_ends,
    ".* HTTP client$": Cut.http_server, "Part VII[.]": Cut.http_ends, "Part VIII[.]": Cut.http_ends,
}  # fmt: skip


def cuts():
    """Return the names in the table of the reference, and its command, which is for one of them."""
    text = (ROOT / "examples/reference/README.md").read_text("utf-8")
    names = re.findall(r"^\| `((?:Part |\.\* ).+?)` \|", text, re.M)
    command = re.search(r"^    (sed '/\^# Part V\[\.\]/,\$d' mcp_lite.py) >.*$", text, re.M)
    if not names or command is None:
        raise Failed("examples/reference has no table of cuts, or no sed command")
    return names, command[1]


def cut_bytes(name, command, folder):
    """Return a cut of the file in a folder, made by the command of the reference."""
    words = ["sh", "-c", command.replace("Part V[.]", name)]
    return subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, check=True).stdout


def make(name, command, folder):
    """Make a cut in a folder, which gets the examples and the checks, too."""
    for wanted in ("mcp_lite.py", "examples/everything_server.py", ".ci/peers", ".ci/processes.py"):
        source, copy = ROOT / wanted, folder / wanted
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
    (folder / "mcp_lite.py").write_bytes(cut_bytes(name, command, folder))


def main():
    """Try all cuts; return an exit status."""
    try:
        sdk = install_python(SDK)
    except Missing as exc:
        print(f"SKIPPED: {exc}")
        return 1
    names, command = cuts()

    def attempt(name):
        with tempfile.TemporaryDirectory() as folder:
            cut = Cut(pathlib.Path(folder), sdk)
            make(name, command, cut.folder)
            said = cut.imports() + JOBS[name](cut)  # and the log of the peer's servers
            return "\n".join(re.findall(r"^   [a-z0-9].*", said, re.M))

    went = [passes(f"cut before {name}", functools.partial(attempt, name)) for name in names]
    return 0 if all(went) else 1


if __name__ == "__main__":
    sys.exit(main())
