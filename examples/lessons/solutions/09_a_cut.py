"""Cut the connection after every single event, until the answer has come."""

import asyncio
import importlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
lesson = importlib.import_module("09_a_cut")


async def main():
    async with lesson.classroom() as learner:
        reader, writer = await learner.post({"id": 1}, "tools/call", lesson.COUNT)
        last, data = await lesson.next_event(reader)
        cuts = 0
        while "result" not in data:
            writer.close()
            cuts += 1
            reader, writer = await learner.send("GET", f"Last-Event-ID: {last}")
            last, data = await lesson.next_event(reader)
        writer.close()
    assert cuts == 6
    print(f"{cuts} cuts, and nothing was lost")


asyncio.run(main())
