"""mcp_complete: an argument, completed by the server."""

import subprocess
import sys

import pytest
from conftest import ROOT

SERVER = """
from mcp_lite import Server

app = Server("shop")

@app.prompt
def offer(item: str, tone: str = "low") -> str:
    return item

@app.resource("shop://item/{id}")
def item(id: str) -> str:
    return id

@app.complete("offer", "item")
def items(value: str, others: dict) -> list:
    return [name + others.get("tone", "") for name in ("milk", "melon", "tea") if name.startswith(value)]

@app.complete("shop://item/{id}", "id")
def ids(value: str) -> list:
    return [value + "0"]
"""


@pytest.mark.parametrize("words, status, out, err", [
    ("offer item=m", 0, "milk\nmelon\n", ""), ("offer item=m tone=!", 0, "milk!\nmelon!\n", ""),
    ("offer item=x", 0, "(none)\n", ""), ("shop://item/{id} id=1", 0, "10\n", ""),
    ("offer itm=m", 2, "", "error: 'offer' has no argument 'itm'; it has item, tone\n"),
    ("shop://item/{id} x=1", 2, "", "error: 'shop://item/{id}' has no argument 'x'; it has id\n"),
])  # fmt: skip
def test_as_it_is_typed(words, status, out, err, tmp_path):
    (tmp_path / "server.py").write_text(SERVER)
    command = [sys.executable, str(ROOT / "mcp_lite.py"), "complete", *words.split(), f"{tmp_path}/server.py:app"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (status, out, err)
