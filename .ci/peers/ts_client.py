"""The TypeScript SDK's client: ts_client.py NODE FOLDER sdk|client TRANSPORT TARGET...

The contract is written once, in Python; ts_client.cjs does what it says.
"""

import asyncio
import json
import pathlib
import sys

import contract


class TypeScript:
    """The contract's view of a client in another process."""

    def __init__(self, process, seen):
        self.process, self.seen, self.capabilities = process, seen, {}
        self.waiting = {}
        self.hello = asyncio.get_running_loop().create_future()
        self.found = None

    async def listen(self):
        """Take what the client says."""
        async for line in self.process.stdout:
            message = json.loads(line)
            if "id" in message:
                self.waiting.pop(message["id"]).set_result(message)
            elif "ask" in message:
                answer = self.answer(message["method"], message.get("params"))
                self.write({"answer": message["ask"], "result": answer})
            elif "hello" in message:
                self.capabilities = message["hello"]["capabilities"]
                self.hello.set_result(message["hello"])
            elif "found" in message:
                self.found = message["found"]
            elif message["seen"] == "progress":
                self.seen.progress.append(message["value"])
            elif message["seen"] == "notifications/message":
                self.seen.log.append(message["value"]["data"])
            else:
                self.seen.changed.append(message["seen"])
        for future in [self.hello, *self.waiting.values()]:
            if not future.done():
                future.set_exception(EOFError("the client ended"))

    def answer(self, method, params):
        """Answer what the server asks."""
        if method == "elicitation/create":
            content = self.seen.elicit(params)
            return {"action": "accept", **({} if content is None else {"content": content})}
        if method == "sampling/createMessage":
            text = {"type": "text", "text": self.seen.sample(params)}
            return {"role": "assistant", "content": text, "model": "none"}
        return {"roots": [{"uri": contract.ROOT}]}

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def perform(self, call, *args):
        """Call a method of the client; Refused if the server answered with an error."""
        number = max(self.waiting, default=0) + 1
        future = self.waiting[number] = asyncio.get_running_loop().create_future()
        self.write({"id": number, "call": call, "args": args})
        said = await future
        if "error" in said:
            raise contract.Refused(said["error"]["code"], said["error"]["message"])
        return said.get("result")

    async def ping(self):
        await self.perform("ping")

    async def set_level(self, level):
        await self.perform("setLoggingLevel", level)

    async def list(self, kind):
        items, page = [], {}
        while True:
            params = {"cursor": page["nextCursor"]} if page else {}
            page = await self.perform("list" + kind[0].upper() + kind[1:], params)
            items += page[kind]
            if "nextCursor" not in page:
                return items

    async def call(self, name, arguments):
        params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
        return await self.perform("callTool", params)

    async def prompt(self, name, arguments):
        params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
        return await self.perform("getPrompt", params)

    async def read(self, uri):
        return await self.perform("readResource", {"uri": uri})

    async def subscribe(self, uri):
        await self.perform("subscribeResource", {"uri": uri})

    async def unsubscribe(self, uri):
        await self.perform("unsubscribeResource", {"uri": uri})

    async def complete(self, prompt, argument, value):
        ref = {"type": "ref/prompt", "name": prompt}
        params = {"ref": ref, "argument": {"name": argument, "value": value}}
        return (await self.perform("complete", params))["completion"]


async def main(node, *args):
    seen = contract.Seen()
    script = str(pathlib.Path(__file__).with_suffix(".cjs"))
    process = await asyncio.create_subprocess_exec(
        node, script, *args, stdin=-1, stdout=-1, limit=2**24
    )
    client = TypeScript(process, seen)
    reading = asyncio.ensure_future(client.listen())
    hello = await client.hello
    done = await contract.exercise(client, seen)
    process.stdin.close()
    await reading
    assert await process.wait() == 0, process.returncode
    print(f"   {done} checks, {hello['server']['name']}, revision {hello['revision']}")
    if client.found:
        print(f"   found revision {client.found} by itself")


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 240))
