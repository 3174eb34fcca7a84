"""What the lessons share: how they print and check, and what earlier lessons built by hand."""

import asyncio
import json
import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))  # where mcp_lite.py is
SERVER = str(HERE / "server.py")
#: the parameters of a handshake, of lesson 2
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {},
         "clientInfo": {"name": "learner", "version": "1"}}  # fmt: skip


def say(text):
    """Print a paragraph of explanation."""
    print("\n" + textwrap.fill(" ".join(text.split()), 88))


def sent(data):
    """Show bytes that we sent."""
    _show("  --> ", data)


def came(data):
    """Show bytes that came back."""
    _show("  <-- ", data)


def _show(arrow, data):
    for line in data.decode("utf-8", "replace").splitlines() or [""]:
        # A long text without a space, such as a signed state, is for no human eye.
        line = re.sub(r"[\w=.-]{80,}", lambda blob: f"{blob[0][:20]}...{blob[0][-8:]}", line)
        # 90 characters at most; where there is a comma or a space, a row ends after it
        for row in re.findall(r".{1,90}$|.{1,89}[ ,]|.{1,90}", line) or [""]:
            print(arrow + row)
            arrow = "      "


def teach(about, lesson, *questions):
    """Run a lesson, then put its questions; with --check, prove the answers to them instead.

    A question is a coroutine function: its docstring asks, it tries, and returns the answer.
    """
    if "--check" not in sys.argv[1:]:
        print(about.strip())
        asyncio.run(lesson())
        print("\nThree questions. Guess first; then run this lesson with --check.")
        for number, question in enumerate(questions, 1):
            print(textwrap.indent(textwrap.fill(f"{number}. {_text(question)}", 84), "  "))
        return
    for number, question in enumerate(questions, 1):
        say(f"QUESTION {number}. {_text(question)}")
        say("ANSWER. " + asyncio.run(question()))


def _text(question):
    return " ".join(question.__doc__.split())


class Pipe:
    """The child process of lesson 1: one JSON message per line, both ways."""

    async def __aenter__(self):
        pipe = asyncio.subprocess.PIPE
        self.server = await asyncio.create_subprocess_exec(
            sys.executable, SERVER, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
        )
        return self

    async def __aexit__(self, *exc):
        self.server.stdin.close()  # the end of its input is the end of the conversation
        await self.server.wait()

    async def send(self, msg):
        line = json.dumps(msg).encode() + b"\n"
        sent(line)
        self.server.stdin.write(line)
        await self.server.stdin.drain()

    async def receive(self):
        line = await self.server.stdout.readline()
        came(line)
        return json.loads(line)

    async def ask(self, req_id, method, params=None):
        """Send a request and return the next message."""
        msg = {"jsonrpc": "2.0", "id": req_id, "method": method}
        await self.send({**msg, "params": params} if params is not None else msg)
        return await self.receive()

    async def shake_hands(self, revision="2025-11-25", **capabilities):
        """Do what lesson 2 is about."""
        hello = {**HELLO, "protocolVersion": revision, "capabilities": capabilities}
        answer = await self.ask(0, "initialize", hello)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer
