#!/usr/bin/env python3
"""Count the processor's instructions for one call, with valgrind.

    python3 .ci/benchmarks/instructions.py [MCP_LITE.PY ...]

Counts client and server together, in one process and on one event loop, for each file (that of this
tree, if none is named). A count differs by about 0.1 percent from run to run, whatever else the
machine does, so it shows a loss that the times of bench.py cannot show. To compare two files:

    git show HEAD~1:mcp_lite.py >/tmp/before.py
    python3 .ci/benchmarks/instructions.py /tmp/before.py mcp_lite.py
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FEW, MANY = 200, 800  # calls
WAYS = ["memory 2025-06-18", "memory 2026-07-28", "http 2025-06-18", "http 2026-07-28"]

CHILD = """
import asyncio, sys
from mcp_lite import Client, Server

way, revision, calls = sys.argv[1:]
app = Server("bench")

@app.tool
async def echo(text: str) -> str:
    return text

async def call(target):
    async with Client(target, revision=revision) as client:
        for number in range(int(calls)):
            assert await client.call("echo", {"text": "hello"}) == "hello"

async def main():
    if way == "memory":
        return await call(app)
    async with app.http(port=0) as server:
        await call(server.url)

asyncio.run(main())
"""


def instructions(folder, words):
    """Return how many instructions a run of CHILD takes."""
    valgrind = "valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null".split()
    environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(folder)}
    done = subprocess.run([*valgrind, sys.executable, "-c", CHILD, *words], cwd=folder, env=environ,
                          timeout=600, capture_output=True, text=True)  # fmt: skip
    found = re.search(r"I +refs: +([\d,]+)", done.stderr)
    if done.returncode or not found:
        sys.exit(done.stderr)
    return int(found[1].replace(",", ""))


def main():
    files = sys.argv[1:] or [ROOT / "mcp_lite.py"]
    jobs = {}
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(
        os.cpu_count()
    ) as pool:
        for number, file in enumerate(files):
            folder = pathlib.Path(scratch, str(number))
            folder.mkdir()
            shutil.copy(file, folder / "mcp_lite.py")
            for way in WAYS:
                for calls in (FEW, MANY):
                    words = [*way.split(), str(calls)]
                    jobs[number, way, calls] = pool.submit(instructions, folder, words)
        print("instructions per call |", " | ".join(map(str, files)))
        for way in WAYS:
            counts = [(jobs[number, way, MANY].result() - jobs[number, way, FEW].result())
                      / (MANY - FEW) for number in range(len(files))]  # fmt: skip
            shown = [f"{count:,.0f} ({count / counts[0]:.3f})" for count in counts]
            print(f"{way} |", " | ".join(shown), flush=True)


if __name__ == "__main__":
    main()
