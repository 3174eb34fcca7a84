"""The tests of this folder can import mcp_lite.py and the programs of examples/programs."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "examples" / "programs"
sys.path[:0] = [str(ROOT), str(PROGRAMS)]
