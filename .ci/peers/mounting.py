"""A server that has nothing but what is mounted in it:

    mounting.py [--http PORT] [--revision DATE] -- COMMAND ...
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from mcp_lite import Server

end = sys.argv.index("--")
options = dict(zip(sys.argv[1:end:2], sys.argv[2:end:2]))
app = Server("mounting")
app.mount(sys.argv[end + 1 :], revision=options.get("--revision"))
if "--http" in options:
    app.run("http", port=int(options["--http"]))
else:
    app.run()
