"""A table of all methods by revision, from the tables of mcp_lite."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import course  # finds mcp_lite.py

from mcp_lite import METHODS, REVISIONS

assert course.HERE
print(f"{'':42}" + "  ".join(REVISIONS))
for row in METHODS.values():
    marks = ["x" if name in row.revisions else "" for name in REVISIONS]
    print(f"{row.name:42}" + "  ".join(f"{mark:^10}" for mark in marks).rstrip())
assert len(METHODS) > 30
