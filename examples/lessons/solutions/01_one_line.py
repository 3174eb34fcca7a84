"""Two requests at once, with the ids 1 and "1": the type of an id comes back as well."""

import asyncio
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from course import Pipe


async def main():
    async with Pipe() as pipe:
        for req_id, method in ((1, "ping"), ("1", "tools/list")):
            await pipe.send({"jsonrpc": "2.0", "id": req_id, "method": method})
        answers = [await pipe.receive() for _ in range(2)]
    by_id = {json.dumps(answer["id"]): answer["result"] for answer in answers}
    assert by_id["1"] == {} and "tools" in by_id['"1"']
    print("1 was the ping, \"1\" the list: they are two ids, and a client must not mix them up.")


asyncio.run(main())
