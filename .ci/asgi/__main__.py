"""Run `app.asgi` under real ASGI servers: python .ci/asgi

This Python needs uvicorn, httptools, uvloop, hypercorn, granian and starlette.

For each server: the official suite's server scenarios, our client's whole contract over both
transports, and what checks.py does to it, alone and mounted in a Starlette application.
"""

import functools
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from processes import ROOT, free_port, passes, run, serving

HERE = pathlib.Path(__file__).resolve().parent
UVICORN = "uvicorn --log-level warning --timeout-graceful-shutdown 25 --port PORT"
SERVERS = {
    "uvicorn, h11": f"{UVICORN} --loop asyncio --http h11",
    "uvicorn, httptools, uvloop": f"{UVICORN} --loop uvloop --http httptools",
    "hypercorn": "hypercorn --graceful-timeout 3 --bind 127.0.0.1:PORT",
    "granian": "granian --interface asgi --log-level warning --host 127.0.0.1 --port PORT",
}
ENDED = {0, -15}  # uvicorn ends itself by the signal that it was sent


def serve(server, app, folder, more=()):
    """Return a context: the server, serving an application on a port."""
    port = free_port()
    words = SERVERS[server].replace("PORT", str(port)).split()
    command = [sys.executable, "-m", *words, *more, app]
    return port, serving(command, port, ENDED, PYTHONPATH=str(folder))


def conformance(server):
    command = f"{sys.executable} -m {SERVERS[server].replace('PORT', '$PORT')}"
    suite = [sys.executable, str(HERE.parent / "conformance.py"), "server"]
    suite += ["--server", f"{command} everything_server:app.asgi"]
    return run(suite, 300, PYTHONPATH=str(ROOT / "examples"))


def contract(server):
    said = ""
    for path in ("mcp", "sse"):
        port, running = serve(server, "everything_server:app.asgi", ROOT / "examples")
        with running:
            script, url = HERE.parent / "peers/our_client.py", f"http://127.0.0.1:{port}/{path}"
            said += run([sys.executable, str(script), "contract", url], 300)
    return said


def checks(server):
    said = ""
    for app, root in (("app:app.asgi", ""), ("app:mounted", "/tools")):
        port, running = serve(server, app, HERE)
        with running:
            script = str(HERE / "checks.py")
            said += run([sys.executable, script, f"http://127.0.0.1:{port}", root], 300)
    return said


def main():
    """Check all; return an exit status."""

    def attempt(check, server):
        return "\n".join(re.findall(r"^(?:server|   ).*", check(server), re.M))

    went = [
        passes(f"{server}: {check.__name__}", functools.partial(attempt, check, server))
        for server in SERVERS
        for check in (conformance, contract, checks)
    ]
    return 0 if all(went) else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
