"""Log in to examples/authorization with the TypeScript SDK: ts_login.py NODE FOLDER sdk|client"""

import asyncio
import json
import pathlib
import sys

from our_example import browse, serving_example


async def main(node, folder, package):
    """Serve the example, and be the person for a client in another process."""
    script, pages = str(pathlib.Path(__file__).with_suffix(".cjs")), 0
    async with serving_example() as url:
        process = await asyncio.create_subprocess_exec(
            node, script, folder, package, url, stdin=-1, stdout=-1
        )
        async for line in process.stdout:
            said = json.loads(line)
            if "open" in said:
                pages += 1
                where = await asyncio.to_thread(browse, said["open"], "alice", "pw")
                process.stdin.write(f"{where}\n".encode())
        assert await process.wait() == 0, process.returncode
    assert "from TypeScript" in said["notes"] and pages == 2, (said, pages)
    print("   logged in, stepped up, wrote and read", said["notes"])


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 240))
