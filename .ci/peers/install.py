"""Other implementations, installed below $MCP_LITE_CI_CACHE (default ~/.cache/mcp-lite-ci)."""

import os
import pathlib
import subprocess
import sys
import venv

CACHE = pathlib.Path(os.environ.get("MCP_LITE_CI_CACHE", "~/.cache/mcp-lite-ci")).expanduser()


class Missing(Exception):
    """A peer cannot be installed here."""


def command(what, *args):
    """Run a command of the set-up and return what it printed; Missing if it fails."""
    said = subprocess.run(args, capture_output=True, text=True, timeout=300)
    if said.returncode:
        lines = [x for x in said.stderr.splitlines() if not x.startswith("WARNING")]
        raise Missing(f"{what}: " + "\n".join(lines[-3:]))
    return said.stdout.strip()


def install_python(name, requirement):
    """Return a Python that has a peer, installing it if need be."""
    if sys.version_info < (3, 10):
        raise Missing(f"{name}: needs Python 3.10, this is {sys.version.split()[0]}")
    name = requirement.replace("==", "-")
    folder = CACHE / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}"
    python = str(folder / "bin/python")
    if not (folder / ".done").exists():
        print(f"installing {requirement}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        command(requirement, *pip, requirement)
        (folder / ".done").touch()
    return python
