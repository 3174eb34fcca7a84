"""Let the official implementations and ours talk to each other over stdio: python3 .ci/peers

Installs them, pinned, below $MCP_LITE_CI_CACHE (default ~/.cache/mcp-lite-ci); a Python of 3.10
or newer is needed for the SDK, Node for the npm server. What cannot be installed is skipped, aloud;
with CI=true in the environment that is a failure.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = pathlib.Path(os.environ.get("MCP_LITE_CI_CACHE", "~/.cache/mcp-lite-ci")).expanduser()
SDKS = ("1.30.0", "2.3.0")
EVERYTHING = "@modelcontextprotocol/server-everything"
EVERYTHING_VERSION = "2026.8.31"


class Missing(Exception):
    """A peer cannot be installed here."""


def install(what, folder, command):
    """Run an installer once; raise Missing with its last words if it fails."""
    done = folder / ".done"
    if done.exists():
        return
    print(f"installing {what}", flush=True)
    said = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if said.returncode:
        lines = [x for x in said.stderr.splitlines() if not x.startswith("WARNING")]
        raise Missing(f"{what}: " + "\n".join(lines[-3:]))
    done.touch()


def sdk(version):
    """Return a Python that has this version of the official SDK."""
    folder = CACHE / f"mcp-{version}-{sys.version_info[0]}.{sys.version_info[1]}"
    python = folder / "bin/python"
    if sys.version_info < (3, 10):
        raise Missing(f"mcp {version}: needs Python 3.10, this is {sys.version.split()[0]}")
    if not (folder / ".done").exists():
        venv.create(folder, with_pip=True, clear=True)
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    install(f"mcp {version}", folder, [*pip, f"mcp=={version}"])
    return str(python)


def everything():
    """Return the command of the npm server."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not (node and npm):
        raise Missing(f"{EVERYTHING}: no node and npm on the PATH")
    folder = CACHE / f"everything-{EVERYTHING_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"]
    install(EVERYTHING, folder, [npm, "install", *options, f"{EVERYTHING}@{EVERYTHING_VERSION}"])
    return [node, str(folder / "node_modules" / EVERYTHING / "dist/index.js"), "stdio"]


def run(title, command):
    """Run one pair; return whether it went well. Whatever it started is gone afterwards."""
    print(f"== {title}", flush=True)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    try:
        output = process.communicate(timeout=90)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0] + "\n   no end after 90 s"
    if process.returncode:
        print(output[-6000:], "   FAILED", sep="\n", flush=True)
        return False
    # What the clients report is indented by three; the rest is the servers' logs.
    print("\n".join(re.findall(r"^   \S.*", output, re.M)), flush=True)
    return True


def main():
    """Run all pairs; return an exit status."""
    CACHE.mkdir(parents=True, exist_ok=True)
    ours = [sys.executable, str(ROOT / "examples/everything_server.py")]
    our_client = [sys.executable, str(HERE / "our_client.py")]
    good, missing = True, []
    for version in SDKS:
        try:
            python = sdk(version)
        except Missing as exc:
            missing.append(exc)
            continue
        theirs = [python, str(HERE / "sdk_server.py")]
        client = [python, str(HERE / "sdk_client.py")]
        good &= run(f"sdk {version} client, sdk {version} server", [*client, *theirs])
        good &= run(f"sdk {version} client, our server", [*client, *ours])
        good &= run(f"our client, sdk {version} server", [*our_client, "contract", *theirs])
    good &= run("our client, our server", [*our_client, "contract", *ours])
    try:
        good &= run("our client, server-everything", [*our_client, "everything", *everything()])
    except Missing as exc:
        missing.append(exc)
    for exc in missing:
        print(f"SKIPPED: {exc}")
    return 0 if good and not (missing and os.environ.get("CI")) else 1


if __name__ == "__main__":
    sys.exit(main())
