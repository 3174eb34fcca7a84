"""A gateway before one server, which is spoken to in one revision:

    between.py [--http PORT] [--revision DATE] TARGET, or -- COMMAND ...
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples/programs")]
from mcp_gateway import Gateway  # noqa: E402

words = sys.argv[1:]
options = {}
while words[0].startswith("--") and words[0] != "--":
    options[words[0]] = words[1]
    del words[:2]
target = words[1:] if words[0] == "--" else words[0]
app = Gateway(target, revision=options.get("--revision"))
if "--http" in options:
    app.run("http", port=int(options["--http"]))
else:
    app.run()
