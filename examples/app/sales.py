#!/usr/bin/env python3
"""An MCP App: a tool whose result is shown as a page, in hosts that can.

The extension is `io.modelcontextprotocol/ui`. A tool names a resource `ui://...` in its `_meta`;
the host shows that page in a sandboxed frame, and sends it the arguments and the result. Hosts
without the extension, and the model, see the result as always.

    python3 mcp_lite.py call sales months=3 examples/app/sales.py
"""

from __future__ import annotations

import pathlib
import sys
from dataclasses import dataclass
from typing import Annotated

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]  # where mcp_lite.py may be

from mcp_lite import Server  # noqa: E402

PAGE = "ui://sales/chart.html"
SOLD = [12, 17, 9, 21, 25, 19, 14, 30, 28, 22, 26, 33]
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()

app = Server("sales", "1.0", capabilities={"extensions": {"io.modelcontextprotocol/ui": {}}})


@dataclass
class Month:
    name: str
    sold: int


@app.tool(
    annotations={"readOnlyHint": True},
    # "app": the page may call this tool, too. With ["app"] alone, the model would not see it.
    meta={"ui": {"resourceUri": PAGE, "visibility": ["model", "app"]}},
)
def sales(months: Annotated[int, {"minimum": 1, "maximum": 12}] = 6) -> list[Month]:
    """Return how much was sold in the last months."""
    return [Month(*pair) for pair in zip(MONTHS[-months:], SOLD[-months:])]


@app.resource(
    PAGE,
    mime_type="text/html;profile=mcp-app",
    # The page loads nothing from anywhere: so there is no "csp" with domains here.
    meta={"ui": {"prefersBorder": True}},
)
def chart() -> str:
    """A bar chart of the sales."""
    return (HERE / "chart.html").read_text("utf-8")


if __name__ == "__main__":
    app.run()
