"""A program with a main loop of its own, as a GUI or a 3D editor has, that is also an MCP server.

    python embed_in_host.py --demo    # a client calls the tools, then everything ends
    python embed_in_host.py           # the same host, served on stdin and stdout

The server lives in a thread beside the host. Tools that touch the host's objects must run on the
host's main thread: `call_sync` takes them there.
"""

import asyncio
import concurrent.futures
import contextlib
import queue
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # mcp_lite.py is one level up

from mcp_lite import Client, Context, Server, ToolError, memory_transports

# ---- The host: a scene that only the main thread may touch, and a loop that waits for events -----

events: queue.SimpleQueue = queue.SimpleQueue()  # stands for the toolkit's own queue
scene = {"cube": (0.0, 0.0, 0.0)}


def main_loop() -> None:
    """Do one event after the other, as a toolkit's main loop does; None ends it."""
    while True:
        event = events.get()
        if event is None:
            return
        event()


# ---- The bridge: ten lines ----------------------------------------------------------------------


async def on_main_thread(fn):
    """Run fn() in the main loop; return its result. Qt, Tk, bpy.app.timers: only put() differs."""
    future: concurrent.futures.Future = concurrent.futures.Future()

    def event() -> None:
        if future.set_running_or_notify_cancel():  # False if the client has cancelled meanwhile
            try:
                future.set_result(fn())
            except BaseException as exc:
                future.set_exception(exc)

    events.put(event)
    return await asyncio.wrap_future(future)


@contextlib.asynccontextmanager
async def quit_with_the_server(server):
    """End this host when its client has gone; one with a window would stay."""
    try:
        yield
    finally:
        events.put(None)


# ---- The server ---------------------------------------------------------------------------------

app = Server("host", version="1.0", call_sync=on_main_thread, lifespan=quit_with_the_server)


@app.tool
def move(name: str, x: float = 0, y: float = 0, z: float = 0) -> str:
    """Move an object of the scene."""
    assert threading.current_thread() is threading.main_thread()
    if name not in scene:
        raise ToolError(f"there is no {name}; there is {', '.join(scene)}")
    old = scene[name]
    scene[name] = (old[0] + x, old[1] + y, old[2] + z)
    return f"{name} is at {scene[name]}, says the {threading.current_thread().name}"


@app.tool
async def orbit(name: str, ctx: Context) -> str:
    """Move an object in small steps; between them, the host goes on."""
    for step in range(4):
        await ctx.report_progress(step + 1, 4)
        x, y = ((1, 0), (0, 1), (-1, 0), (0, -1))[step]
        said = await on_main_thread(lambda x=x, y=y: move(name, x, y))
    return said


# ---- A client, which would be another program ---------------------------------------------------


def show_progress(done, total, message) -> None:
    print(done, "of", total)


async def demo(transport) -> None:
    async with Client(transport, progress=show_progress) as c:
        print(await c.call("move", {"name": "cube", "x": 2.5}))
        print(await c.call("orbit", {"name": "cube"}))


def main() -> None:
    client = None
    if "--demo" in sys.argv[1:]:
        ours, theirs = memory_transports()
        server = app.start_in_thread(theirs)
        client = threading.Thread(target=lambda: asyncio.run(demo(ours)))
        client.start()
    else:
        server = app.start_in_thread("stdio")
    main_loop()  # the main thread is the host's, from here to the end
    server.stop()
    if client is not None:
        client.join()


if __name__ == "__main__":
    main()
