"""Two pings at once, with the ids 1 and "1": the type of an id comes back as well."""

import asyncio
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import Pipe


async def main():
    async with Pipe() as pipe:
        for req_id in (1, "1"):
            await pipe.send({"jsonrpc": "2.0", "id": req_id, "method": "ping"})
        answers = [await pipe.receive() for _ in range(2)]
    assert {json.dumps(answer["id"]) for answer in answers} == {"1", '"1"'}
    print("1 and \"1\" are two ids. Each came back once: a client must not mix them up.")


asyncio.run(main())
