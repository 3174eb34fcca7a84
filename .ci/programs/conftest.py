"""The tests of this folder can import mcp_lite.py and the programs of examples/programs."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "examples" / "programs"
sys.path[:0] = [str(ROOT), str(PROGRAMS)]


@pytest.fixture
def certificate(tmp_path):
    """A certificate for 127.0.0.1 that nobody else has signed, and its key."""
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -out cert.pem -keyout key.pem"
    command += " -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True, timeout=60)
    return tuple(map(str, files))
