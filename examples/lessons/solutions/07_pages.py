"""Yield all resources, page by page, and notice cursors that go round in circles."""

import asyncio
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import Pipe


async def pages(ask):
    """Yield the resources; `ask(params)` returns a page. RuntimeError for a circle."""
    seen, params = set(), {}
    while True:
        page = await ask(params)
        for resource in page["resources"]:
            yield resource
        cursor = page.get("nextCursor")
        if cursor is None:
            return
        if cursor in seen:
            raise RuntimeError(f"the cursor {cursor!r} came twice")
        seen.add(cursor)
        params = {"cursor": cursor}


async def main():
    async with Pipe() as pipe:
        await pipe.shake_hands()
        ids = itertools.count(1)  # an id is used once in a session

        async def ask(params):
            return (await pipe.ask(next(ids), "resources/list", params))["result"]

        assert len([resource async for resource in pages(ask)]) == 7

    async def circle(params):
        return {"resources": [], "nextCursor": "again"}

    try:
        async for _ in pages(circle):
            pass
    except RuntimeError as exc:
        print("seven resources; and a circle was noticed:", exc)
    else:
        raise AssertionError("the circle was not noticed")


asyncio.run(main())
