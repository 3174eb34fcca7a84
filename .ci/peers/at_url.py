"""A gateway before a server at a URL: at_url.py PORT COMMAND... -- OPTION...

The command serves at that port. The gateway has our standard streams; both end together.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from processes import end, serving, started  # noqa: E402

port, *words = sys.argv[1:]
split = words.index("--")
gateway = [sys.executable, str(HERE / "between.py"), *words[split + 1 :]]
with serving(words[:split], int(port), PORT=port):
    with started([*gateway, f"http://127.0.0.1:{port}/mcp"]) as process:
        try:
            status = process.wait()
        finally:
            end(process, 10)
sys.exit(status)
