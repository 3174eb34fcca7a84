"""Is run by Pyodide, in whose Python there are no threads, sockets and processes."""
import doctest
import inspect
import logging
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, "/work")
import mcp_lite as m  # noqa: E402 -- it was not on the path before


class Strict(logging.Handler):
    """Keep what is logged as a warning or worse: none is expected."""

    said = []

    def emit(self, record):
        self.said.append(self.format(record))


async def inline(job):
    """Run a plain function where its thread would be."""
    return job()


app = m.Server("wasm", call_sync=inline)


@app.tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@app.tool
async def greet(ctx: m.Context) -> str:
    """Greet a person by name."""
    return f"Hello, {(await ctx.elicit('Your name?', str)).data}!"


async def main():
    """Try it; `run.mjs` awaits this."""
    logging.getLogger().addHandler(Strict(logging.WARNING))
    done, failed = 0, 0
    for finder in doctest.DocTestFinder(exclude_empty=True).find(m, "mcp_lite"):
        outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(finder)
        done, failed = done + outcome.attempted, failed + outcome.failed
    version = sys.version.split()[0]
    print(f"   CPython {version}: {done} examples of the docstrings, {failed} failed")
    written = len(re.findall(r"(?m)^ *>>> ", inspect.getsource(m)))
    assert done == written > 0 and not failed
    for revision in m.SUPPORTED:
        can_ask = revision > "2025-06"
        options = {"revision": revision, "elicit": lambda text, schema: {"value": "Ann"}}
        async with m.Client(app, **options) as c:
            assert c.revision == revision
            assert (await c.call_tool("add", {"a": 2}))["content"][0]["text"] == "3"
            if can_ask:
                assert await c.call("greet") == "Hello, Ann!"
        print(f"   {revision}: a call{' and a question' if can_ask else ''}")
    assert not Strict.said, "\n".join(Strict.said)
