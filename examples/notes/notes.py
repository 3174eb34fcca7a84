"""Notes in a database: a server that people run, for themselves or for a team.

    python notes.py                                         # for an application that starts it
    python ../../mcp_lite.py serve --http 8000 notes.py     # for several, at a URL

NOTES_DB names the database (~/notes.db), NOTES_FOLDER the folder for import and export (~/notes).
"""

import asyncio
import contextlib
import os
import re
import sqlite3
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # mcp_lite.py is two levels up

from mcp_lite import Resource, Server, SyncContext, ToolError

DATABASE = Path(os.environ.get("NOTES_DB", "~/notes.db")).expanduser()
FOLDER = Path(os.environ.get("NOTES_FOLDER", "~/notes")).expanduser().resolve()
TABLES = """
PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, text TEXT NOT NULL,
    topic TEXT NOT NULL, changed TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE INDEX IF NOT EXISTS notes_title ON notes (title);
"""
# An index of all words. Triggers keep it, so that it is right whoever writes.
NEW = "INSERT INTO words (rowid, title, text) VALUES (new.id, new.title, new.text)"
OLD = "INSERT INTO words (words, rowid, title, text) VALUES ('delete', old.id, old.title, old.text)"
WORDS = f"""
BEGIN IMMEDIATE;
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(title, text, content=notes, content_rowid=id);
CREATE TRIGGER IF NOT EXISTS words_add AFTER INSERT ON notes BEGIN {NEW}; END;
CREATE TRIGGER IF NOT EXISTS words_edit AFTER UPDATE ON notes BEGIN {OLD}; {NEW}; END;
CREATE TRIGGER IF NOT EXISTS words_delete AFTER DELETE ON notes BEGIN {OLD}; END;
INSERT INTO words (words) VALUES ('rebuild');
COMMIT;
"""
SELECT = "SELECT notes.id, notes.title, notes.text, topic, changed FROM "


@dataclass
class Note:
    """Tools return it: clients get a schema for it, and the data beside the text."""

    id: int
    title: str
    text: str
    topic: str
    changed: str

    def markdown(self) -> str:
        return f"# {self.title}\n\n{self.text}\n"


class Notes:
    """The database. Its methods block, and may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.Lock()  # one connection, used by one thread at a time
        self.db = sqlite3.connect(path, check_same_thread=False, timeout=10)
        self.db.executescript(TABLES)
        find = "SELECT 1 FROM sqlite_master WHERE name = 'words'"
        if not self.rows(find):
            with contextlib.suppress(sqlite3.OperationalError):  # SQLite was built without FTS5
                self.db.executescript(WORDS)
            self.db.rollback()
        self.indexed = bool(self.rows(find))

    def rows(self, sql: str, *values: object) -> list[tuple]:
        with self.lock:
            return self.db.execute(sql, values).fetchall()

    def change(self, sql: str, *values: object) -> sqlite3.Cursor:
        with self.lock, self.db:  # all of it, or nothing
            return self.db.execute(sql, values)

    def get(self, id: int) -> Note:
        for row in self.rows(SELECT + "notes WHERE id = ?", id):
            return Note(*row)
        raise ToolError(f"there is no note {id}: `search` finds the numbers of notes")

    def search(self, text: str, limit: int) -> list[Note]:
        """Find the notes that have all the words, or words that begin so."""
        words = re.findall(r"\w+", text)
        tables, where, order, values = "notes", "1", "changed DESC, id DESC", []
        if words and self.indexed:
            tables, order = "words JOIN notes ON notes.id = words.rowid", "words.rank"
            where, values = "words MATCH ?", [" ".join(f'"{word}"*' for word in words)]
        elif words:
            where = " AND ".join(["title || ' ' || text LIKE ? ESCAPE '!'"] * len(words))
            values = ["%" + word.replace("_", "!_") + "%" for word in words]
        sql = f"{SELECT}{tables} WHERE {where} ORDER BY {order} LIMIT ?"
        return [Note(*row) for row in self.rows(sql, *values, limit)]


async def open_notes(server: Server):
    """Open the database for the first client, and close it after the last."""
    notes = await asyncio.to_thread(Notes, DATABASE)
    with contextlib.closing(notes.db):
        yield notes  # handlers find it in ctx.lifespan


ABOUT = "The user's notes. Search before you add, so that nothing is noted twice."
app = Server("notes", version="1.0", instructions=ABOUT, lifespan=open_notes)
INDEX = "notes://index"
TOPIC = {"description": "one word, as in work", "pattern": r"^\w[\w-]{0,39}$"}  # a folder's name
Id = Annotated[int, {"description": "the number of the note", "minimum": 1}]
TITLE = {"description": "one line", "minLength": 1, "maxLength": 200}
TEXT = {"description": "the note, in Markdown", "maxLength": 1_000_000}
Words = Annotated[str, {"description": "what to look for; an empty text finds the newest notes"}]
Limit = Annotated[int, {"description": "how many to return", "minimum": 1, "maximum": 100}]
LOCAL = {"openWorldHint": False}


def plain(title: str, text: str) -> tuple[str, str]:
    """Return a title of one line, and a text as it comes back from a file."""
    return " ".join(title.split()), text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")


def announce(id: int) -> None:
    app.resource_updated(f"note://{id}")  # the clients that subscribed are notified
    app.resource_updated(INDEX)


# The handlers are `def`, since SQLite blocks: each call has a thread.
@app.tool(annotations={**LOCAL, "readOnlyHint": True})
def search(words: Words, ctx: SyncContext, limit: Limit = 20) -> list[Note]:
    """Find the notes that have all these words, or words that begin so; the best come first."""
    return ctx.lifespan.search(words, limit)


@app.tool(annotations={**LOCAL, "destructiveHint": False})
def add(
    title: Annotated[str, TITLE], text: Annotated[str, TEXT], ctx: SyncContext,
    topic: Annotated[str, TOPIC] = "general",
) -> Note:  # fmt: skip
    """Write a new note."""
    sql = "INSERT INTO notes (title, text, topic) VALUES (?, ?, ?)"
    id = ctx.lifespan.change(sql, *plain(title, text), topic).lastrowid
    announce(id)
    return ctx.lifespan.get(id)


@app.tool(annotations={**LOCAL, "idempotentHint": True})
def edit(
    id: Id, ctx: SyncContext, title: Annotated[Optional[str], TITLE] = None,
    text: Annotated[Optional[str], TEXT] = None, topic: Annotated[Optional[str], TOPIC] = None,
) -> Note:  # fmt: skip
    """Change a note. What is left out stays as it is."""
    sql = """UPDATE notes SET changed = CURRENT_TIMESTAMP, title = coalesce(?, title),
        text = coalesce(?, text), topic = coalesce(?, topic) WHERE id = ?"""
    new_title, new_text = plain(title or "", text or "")
    ctx.lifespan.change(sql, new_title or None, None if text is None else new_text, topic, id)
    announce(id)
    return ctx.lifespan.get(id)


@app.tool(annotations={**LOCAL, "destructiveHint": True})
def delete(id: Id, ctx: SyncContext) -> str:
    """Delete a note, if the user agrees."""
    note = ctx.lifespan.get(id)
    if "elicitation" not in ctx.client_capabilities:
        raise ToolError("the user must agree, and this application cannot ask: nothing is deleted")
    if not ctx.elicit(f"Delete note {id}, {note.title!r}?", bool).data:
        return "The user did not agree: the note is still there."
    ctx.lifespan.change("DELETE FROM notes WHERE id = ?", id)
    announce(id)
    return f"Note {id} is deleted."


# Two long jobs. Which folder they use is its owner's choice: clients never name a file.
@app.tool(annotations={**LOCAL, "destructiveHint": False, "idempotentHint": True})
def import_notes(ctx: SyncContext) -> str:
    """Add the Markdown files of the folder that are not notes yet; its folders are topics."""
    added, sql = 0, """INSERT INTO notes (title, text, topic) SELECT ?, ?, ?
        WHERE NOT EXISTS (SELECT 1 FROM notes WHERE title = ? AND text = ?)"""
    paths = [path for path in sorted(FOLDER.rglob("*.md")) if FOLDER in path.resolve().parents]
    for number, path in enumerate(paths, 1):
        if ctx.cancelled:
            break
        first, _, rest = path.read_text("utf-8", "replace").partition("\n")
        titled = first.startswith("# ") and first[2:].strip()
        title, text = plain(first[2:], rest) if titled else plain(path.stem, f"{first}\n{rest}")
        folder = path.parent.name if path.parent != FOLDER else ""
        topic = folder if re.match(TOPIC["pattern"], folder) else "general"
        added += ctx.lifespan.change(sql, title, text, topic, title, text).rowcount
        ctx.report_progress(number, len(paths), path.name)
    app.resource_updated(INDEX)
    return f"{added} of {len(paths)} files were new."


@app.tool(annotations={**LOCAL, "destructiveHint": False, "idempotentHint": True})
def export_notes(ctx: SyncContext) -> str:
    """Write each note into a Markdown file in the folder, under its topic."""
    notes = ctx.lifespan.search("", sys.maxsize)
    for number, note in enumerate(notes, 1):
        if ctx.cancelled:
            break
        path = FOLDER / note.topic / f"{note.id}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note.markdown(), "utf-8")
        ctx.report_progress(number, len(notes), note.title)
    return f"{len(notes)} notes are in {FOLDER}."


@app.resource(INDEX, mime_type="text/plain")
def index(ctx: SyncContext) -> str:
    """All notes: the URI, the topic and the title in each line."""
    rows = ctx.lifespan.rows("SELECT id, topic, title FROM notes ORDER BY id")
    return "\n".join(f"note://{id} {topic}: {title}" for id, topic, title in rows)


@app.resource("note://{id}", mime_type="text/markdown")
def note(id: int, ctx: SyncContext) -> str:
    """One note."""
    return ctx.lifespan.get(id).markdown()


@app.prompt
def digest(topic: Annotated[str, TOPIC], ctx: SyncContext) -> list:
    """Sum up what is noted on a topic."""
    rows = ctx.lifespan.rows(SELECT + "notes WHERE topic = ? ORDER BY id DESC LIMIT 100", topic)
    if not rows:
        raise ToolError(f"nothing is noted on {topic!r}")
    notes = [Note(*row) for row in rows]
    return ["Sum up these notes.", *(Resource(f"note://{n.id}", n.markdown()) for n in notes)]


@app.complete("digest", "topic")
def complete_topic(value: str, arguments: dict, ctx: SyncContext) -> list:
    rows = ctx.lifespan.rows("SELECT DISTINCT topic FROM notes ORDER BY topic")
    return [topic for (topic,) in rows if topic.startswith(value)]


if __name__ == "__main__":
    app.run()
