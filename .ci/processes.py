"""Servers and commands for the checks in this folder. Whatever they start is gone afterwards.

That holds also when the check itself is killed: a process of its own, which reads a pipe from us
until we are gone, ends the groups that are left.
"""

import contextlib
import functools
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
START_SECONDS = 60
STOP_SECONDS = 30
TELLING = threading.Lock()


class Failed(Exception):
    """A check did not go well; the text says what was printed."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def resident_mb(pid="self"):
    """Return how much memory a process has."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


#: Reads the numbers of process groups: one that comes twice has ended.
UNDERTAKER = """
import os, signal, sys
left = set()
for line in sys.stdin:
    left ^= {int(line)}
for group in left:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


@functools.cache
def undertaker():
    """Return the process that ends what we leave behind."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", UNDERTAKER], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def tell_undertaker(group):
    """Say that a process group has begun, or that it has ended."""
    with TELLING:
        os.write(undertaker().stdin.fileno(), b"%d\n" % group)


@contextlib.contextmanager
def started(command, **options):
    """Start a process in a group of its own, which does not outlive us; yield it."""
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        tell_undertaker(process.pid)
        try:
            yield process
        finally:
            with contextlib.suppress(OSError):  # mostly nobody is left in it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            tell_undertaker(process.pid)


def end(process, seconds):
    """Ask a process to end, and end its group if it does not; return whether it did."""
    process.terminate()
    try:
        process.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def wait_for_port(process, port):
    """Wait until a process listens."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.1)
    raise Failed("the server does not listen")


def passes(title, check, *failures):
    """Do a check, and print what it returns; return whether it went well."""
    print(f"== {title}", flush=True)
    began = time.monotonic()
    try:
        said = check()
    except (Failed, *failures) as exc:
        print(exc, "   FAILED", sep="\n", flush=True)
        return False
    if said:
        print(said)
    print(f"   {time.monotonic() - began:.1f} s", flush=True)
    return True


@contextlib.contextmanager
def serving(command, port, statuses=None, **environ):
    """Run a server; yield its process when it listens.

    If it must end cleanly, `statuses` are the exit statuses that are right.
    """
    with tempfile.TemporaryFile("w+") as log:

        def said():
            log.seek(0)
            return log.read()

        with started(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT,
            env={**os.environ, **environ},
        ) as process:  # fmt: skip
            try:
                wait_for_port(process, port)
                yield process
            except Exception as exc:
                end(process, STOP_SECONDS)
                problem = None if isinstance(exc, Failed) else exc
                raise Failed(f"{said()[-3000:]}\n{exc}") from problem
            finally:
                ended = process.poll() is not None or end(process, STOP_SECONDS)
        if statuses is not None:
            if not ended:
                raise Failed(f"{said()[-3000:]}\nthe server did not end within {STOP_SECONDS} s")
            if process.returncode not in statuses or "Traceback" in said():
                raise Failed(f"{said()[-3000:]}\nthe server ended with {process.returncode}")


def run(command, seconds, **environ):
    """Run a command and return what it printed; Failed if its status is not 0."""
    with started(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True, cwd=ROOT, env={**os.environ, **environ},
    ) as process:  # fmt: skip
        try:
            output = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0] + f"\nno end after {seconds} s"
    if process.returncode:
        raise Failed(output[-6000:])
    return output
