"""A client of two old revisions, which hangs up on a server that speaks neither."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import Pipe

OURS = ("2025-03-26", "2024-11-05")  # newest first


def agreed(answer):
    """Return the revision of a handshake; ConnectionError if we do not know it."""
    theirs = answer["result"]["protocolVersion"]
    if theirs not in OURS:
        raise ConnectionError(f"the server speaks {theirs}, we speak {' and '.join(OURS)}")
    return theirs


async def main():
    async with Pipe() as pipe:
        print("we speak", agreed(await pipe.shake_hands(OURS[0])))
    async with Pipe() as pipe:
        answer = await pipe.shake_hands("1999-01-01")  # as if it knew none of ours
        try:
            agreed(answer)
        except ConnectionError as exc:
            print("hung up:", exc)
        else:
            raise AssertionError("it should not have agreed")


asyncio.run(main())
