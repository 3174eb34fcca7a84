"""The tests of this folder can import mcp_lite.py and the programs of examples/programs."""

import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "examples" / "programs"
sys.path[:0] = [str(ROOT), str(PROGRAMS)]


@pytest.fixture
def beside(tmp_path):
    """Return what copies mcp_lite.py and a program into a new folder, and returns the folder."""

    def copy(name):
        folder = tmp_path / "fresh"
        folder.mkdir()
        shutil.copy(ROOT / "mcp_lite.py", folder)
        shutil.copy(PROGRAMS / name, folder)
        return folder

    return copy
