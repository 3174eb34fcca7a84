"""A server with every shape of type, for the converters of hosts: python3 .ci/hosts/shapes.py"""

import dataclasses
import datetime
import decimal
import enum
import pathlib
import sys
import uuid
from collections.abc import Mapping
from typing import Any, Literal, Optional, TypedDict, Union

import pydantic

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from mcp_lite import Server

app = Server("shapes")


@dataclasses.dataclass
class Node:
    value: int
    children: list["Node"] = dataclasses.field(default_factory=list)


class Order(pydantic.BaseModel):
    model_config = {"extra": "forbid"}
    amount: int = pydantic.Field(ge=1)
    note: Optional[str] = None
    more: dict[str, Any] = {}


class Link(pydantic.BaseModel):
    value: int
    next: Optional["Link"] = None


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Part(TypedDict, total=False):
    size: int


@app.tool
def plain(a: int, b: str = "x", *, c: float = 1.0, d: bool = False) -> str:
    """Plain types."""
    return f"{a} {b} {c} {d}"


@app.tool
def sums(amount: decimal.Decimal) -> str:
    """A decimal."""
    return str(amount)


@app.tool
def lists(a: list, b: list[int], c: tuple[int, str], d: tuple[int, ...], e: set[str],
          f: list[Any], g: tuple[int, int]) -> list:  # fmt: skip
    """Arrays."""
    return [a, b, c, d, e, f, g]


@app.tool
def tree(node: Node) -> Node:
    """A class that contains itself."""
    return node


@app.tool
def order(order: Order) -> Order:
    """A model."""
    return order


@app.tool
def chain(link: Link) -> Link:
    """A model that contains itself."""
    return link


@app.tool
def choice(a: Literal["x", "y"], b: Literal[1, 2], c: Literal[1, "a", None], d: Color) -> Color:
    """Choices."""
    return d


@app.tool
def texts(a: datetime.datetime, b: datetime.date, c: uuid.UUID, d: pathlib.Path, e: bytes) -> str:
    """Values whose JSON is a text."""
    return f"{a} {b} {c} {d} {e!r}"


@app.tool
def open_objects(
    a: dict, b: dict[str, int], c: Part, d: Mapping[str, list[dict[str, int]]]
) -> dict:
    """Objects with any members."""
    return {"a": a, "b": b, "c": c, "d": d}


@app.tool
def optional(
    a: Optional[int] = None, b: Union[int, str] = 1, c: Optional[Node] = None
) -> Optional[int]:
    """What may be absent."""
    return a


@app.tool
def open_more(a: int, **more: int) -> int:
    """Further arguments."""
    return a + len(more)


@app.tool
def anything(a, b: Any = None) -> None:
    """No types."""


if __name__ == "__main__":
    app.run()
