"""The verbs of mcp_lite.py, line by line in one session: python3 mcp_lite.py shell TARGET

    $ python3 mcp_lite.py shell server.py
    mcp> call add a=1 b=2
    3

The server keeps what it knows from line to line, and what it announces is shown. Tab completes
verbs, names and arguments. Ctrl-C ends what is running, or clears the line; Ctrl-D (on Windows
Ctrl-Z, Enter) ends the shell. Lines may come through a pipe, too; the status is that of the last
one then.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import shlex
import sys
import threading
from functools import partial
from typing import Any

from mcp_lite import (
    VERBS,
    MCPError,
    Person,
    UsageError,
    client_of,
    complain,
    parse_line,
    perform,
    plain,
)

try:
    import readline
except ImportError:  # Windows
    readline = None  # type: ignore[assignment]

LINES = [verb for verb, row in VERBS.items() if inspect.iscoroutinefunction(row[0])]


class Shell(Person):
    """One session. Lines are read in the main thread, which alone gets Ctrl-C; the Client lives in
    the loop of another thread."""

    prompt = ""  # while a line is typed
    found: list[str] = []  # by the completion that goes on

    def __init__(self, args: Any) -> None:
        super().__init__()
        news = {f"on_{kind}_changed": partial(self.say, f"the {kind} have changed")
                for kind in ("tools", "prompts", "resources")}  # fmt: skip
        self.client, self.loop = client_of(args, self, **news), asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def say(self, text: object, end: str = "\n") -> None:
        """Write a line, above the one that is being typed."""
        self.bar = self.bar or bool(self.prompt)  # it is wiped first
        super().say(text, end)
        if self.prompt:
            super().say(self.prompt + readline.get_line_buffer(), end="")

    async def ask(self, question: str) -> str | None:
        """Decline a question that comes between the lines."""
        return None if self.prompt else await super().ask(question)

    def wait(self, work: Any, seconds: float | None = None) -> Any:
        """Run a coroutine beside the Client; Ctrl-C cancels it."""
        task = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return task.result(seconds)
        finally:
            task.cancel()

    def read(self) -> Any:
        """Return what the next line says; None if it says nothing."""
        prompt = "mcp> " if sys.stdin.isatty() else ""
        try:
            self.prompt = prompt if readline else ""
            words = shlex.split(input(prompt), comments=True)
        finally:
            self.prompt = ""
        if words and words[0] not in LINES:
            raise UsageError(f"{words[0]!r} is none of {', '.join(LINES)}")
        with contextlib.suppress(SystemExit):  # after --help
            return parse_line(words, target=False) if words else None

    def run(self) -> int:
        """Obey lines until they end; return the status of the last."""
        status = 0
        while True:
            try:
                args = self.read()
                if args:
                    self.prepare(args.answer, args.yes)
                    status = self.wait(perform(self.client, args, self))
            except EOFError:
                return status
            except KeyboardInterrupt:
                print(file=sys.stderr)
                status = 130
            except (MCPError, ValueError) as exc:  # of shlex: an open quotation
                status = complain(exc)

    def complete(self, begun: str, state: int) -> str | None:
        """Return a candidate for the word that is typed, as readline asks for them."""
        if state == 0:
            words, self.found = readline.get_line_buffer()[: readline.get_begidx()].split(), []
            with contextlib.suppress(Exception):  # it is no more than a convenience
                found = self.wait(self.candidates(words, begun), 2.0)
                self.found = [plain(each) for each in found if each.startswith(begun)]
        return dict(enumerate(self.found)).get(state)

    async def candidates(self, words: list[str], begun: str) -> list[str]:
        """Return what the last word of a line may become."""
        if not words:
            return [f"{verb} " for verb in LINES]
        kinds = {"call": "tools", "read": "resources", "prompt": "prompts"}
        items = await getattr(self.client, f"list_{kinds.get(words[0], words[0])}")()
        named = {it.get("uri") or it.get("uriTemplate") or it["name"]: it for it in items}
        if len(words) == 1:
            return [f"{name} " for name in named]
        item, (key, equals, value) = named[words[1]], begun.partition("=")
        fields = item.get("inputSchema", {}).get("properties")
        fields = fields or {each["name"]: {} for each in item["arguments"]}
        if not equals:
            return [f"{name}=" for name in fields]
        values = fields[key].get("enum") or await self.client.complete(words[1], key, value)
        return [f"{key}={each} " for each in values]


def main(argv: list[str]) -> int:
    """Run the shell; return the exit status."""
    VERBS["shell"] = (main, "", "the verbs, line by line in one session")
    if "--help" in argv:
        print(f"usage: mcp_shell.py [options] TARGET\n\n{__doc__}")
        return 0
    shell = Shell(parse_line(["shell", *argv]))
    if readline:
        readline.set_completer(shell.complete)
        readline.set_completer_delims(" \t")
        editline = "libedit" in str(readline.__doc__)  # of macOS
        readline.parse_and_bind("bind ^I rl_complete" if editline else "tab: complete")
    try:
        shell.wait(shell.client.connect())
        return shell.run()
    finally:
        shell.wait(shell.client.close())
        shell.loop.call_soon_threadsafe(shell.loop.stop)
        shell.thread.join()
        shell.loop.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
