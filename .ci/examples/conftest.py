"""The tests of examples/: each starts an example as a user would."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / ".ci")]

import mcp_lite  # noqa: E402


@pytest.fixture
def example():
    """A function that returns the command of an example."""
    return lambda *words: [sys.executable, str(ROOT / "examples" / words[0]), *words[1:]]


@pytest.fixture(params=mcp_lite.REVISIONS[-2:])
def revision(request):
    """The newest revision of each era."""
    return request.param
