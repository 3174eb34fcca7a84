"""1,000 calls by way of our gateway while the far server is killed and started again.

Each call has an answer, or one error that says why. No call reaches the server twice.
"""

import asyncio
import os
import pathlib
import random
import signal
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2]))
import mcp_lite as m  # noqa: E402

CALLS, AT_ONCE, MOST = 1000, 8, 60  # calls between two deaths
SERVER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from mcp_lite import Server

app = Server("mortal")
with open(sys.argv[2] + "/pid", "w") as file:
    file.write(str(os.getpid()))

@app.tool
async def note(number: int) -> int:
    with open(sys.argv[2] + "/calls", "a") as file:
        file.write(f"{number}\\n")
    return number

app.run()
"""


async def kill_again_and_again(folder, ended, deaths):
    """Kill the server whenever some more calls have ended, in the middle of others."""
    dice = random.Random("mortal")
    while True:
        many = sum(map(len, ended)) + dice.randrange(MOST)
        while sum(map(len, ended)) < many:
            await asyncio.sleep(0.001)
        await asyncio.sleep(dice.random() / 100)
        try:
            os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
            deaths.append(1)
        except (OSError, ValueError):  # it is starting
            pass


async def main(near):
    with tempfile.TemporaryDirectory() as name:
        folder, answers, errors, deaths = pathlib.Path(name), [], [], []
        (folder / "server.py").write_text(SERVER)
        server = [sys.executable, str(folder / "server.py"), str(HERE.parents[2]), name]
        gateway = [sys.executable, str(HERE.parents[2] / "mcp_lite.py"), "gateway", "--", *server]
        numbers = iter(range(CALLS))
        async with m.Client(gateway, revision=near, stderr=lambda line: None) as c:

            async def work():
                for number in numbers:
                    try:
                        answer = await c.call_tool("note", {"number": number}, timeout=60)
                        assert answer["content"][0]["text"] == str(number), answer
                        answers.append(number)
                    except m.RemoteError as exc:
                        assert "mortal" in str(exc) or "server.py" in str(exc), exc
                        errors.append(number)

            killer = asyncio.ensure_future(kill_again_and_again(folder, (answers, errors), deaths))
            await asyncio.gather(*(work() for _ in range(AT_ONCE)))
            killer.cancel()
            last = {"number": CALLS}
            try:
                await c.call_tool("note", last)
            except m.RemoteError:  # the last death may come to light only now; no other follows
                last["number"] += 1
                await c.call_tool("note", last)
        made = (folder / "calls").read_text().split()
        assert len(made) == len(set(made)), "a call was made twice"
        assert set(map(int, made)) >= set(answers) and len(answers) + len(errors) == CALLS
        assert deaths
    print(f"   revision {near}: {len(answers)} answers, {len(errors)} errors, {len(deaths)} deaths")


for revision in ("2025-11-25", "2026-07-28"):
    asyncio.run(asyncio.wait_for(main(revision), 240))
