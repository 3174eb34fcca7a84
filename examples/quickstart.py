"""A server for the text files of one folder: it searches them, reads them, and asks for summaries.

    python quickstart.py [FOLDER]

speaks MCP on its stdin and stdout. Without FOLDER it serves the current folder, and never anything
outside it.
"""

import asyncio
import sys
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # mcp_lite.py is one level up

from mcp_lite import Context, Server, ToolError

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
app = Server("quickstart", version="1.0", instructions=f"Files of the folder {FOLDER.name}.")


def is_inside(path: Path) -> bool:
    """Links are followed first, so neither `..` nor a link leads out of the folder."""
    path = path.resolve()
    return path.is_file() and FOLDER in path.parents


@app.tool(annotations={"readOnlyHint": True})
async def search(text: str, ctx: Context, files: str = "*") -> str:
    """Find the lines that contain a text, in upper or lower case.

    Args:
        text: what to look for
        files: which files to look into, as in *.py
    """
    paths = [path for path in sorted(FOLDER.rglob(files)) if is_inside(path)]
    found = []
    for number, path in enumerate(paths, 1):
        name = path.relative_to(FOLDER).as_posix()
        await ctx.report_progress(number, len(paths), name)
        content = await asyncio.to_thread(path.read_text, "utf-8", "replace")
        for at, line in enumerate(content.splitlines(), 1):
            if text.lower() in line.lower():
                found.append(f"{name}:{at}: {line.strip()}")
    return "\n".join(found[:100]) or f"nothing found in {len(paths)} files"


@app.tool(annotations={"readOnlyHint": True})
def read_file(path: str, first: int = 1, lines: int = 200) -> str:
    """Return some lines of a file.

    Args:
        path: of the file, inside the folder
        first: the number of the first line, from 1
        lines: how many there may be
    """
    if not is_inside(FOLDER / path):
        raise ToolError(f"there is no file {path!r} in this folder")
    content = (FOLDER / path).read_text("utf-8", "replace")
    return "\n".join(content.splitlines()[first - 1 : first - 1 + lines])


@app.resource("folder://{+path}", mime_type="text/plain")
def file_of_the_folder(path: str) -> str:
    """A file of the folder."""
    return read_file(path, lines=sys.maxsize)


@app.prompt
def summarize(path: str, style: Literal["brief", "detailed"] = "brief") -> str:
    """Ask for a summary of a file.

    Args:
        path: of the file, inside the folder
        style: how long it is to be
    """
    return f"Write a {style} summary of {path}:\n\n{read_file(path, lines=sys.maxsize)}"


if __name__ == "__main__":
    app.run()
