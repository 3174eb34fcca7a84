#!/usr/bin/env python3
"""Serve a folder of Agent Skills: the extension `io.modelcontextprotocol/skills` (SEP-2640).

    python3 skills.py [FOLDER]         on stdin and stdout
    python3 skills.py [FOLDER] --http PORT

A skill is a folder with a file SKILL.md, which begins with its name and description. Clients list
the skills, read the files as resources, and check them by their sha256.
"""

import hashlib
import json
import mimetypes
import pathlib
import re
import sys
import urllib.parse
from functools import partial

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]  # where mcp_lite.py may be

from mcp_lite import Context, RPCError, Server  # noqa: E402

INVALID_PARAMS = -32602
EXTENSION = "io.modelcontextprotocol/skills"
NAME = re.compile(r"(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
NOT_TEXT = re.compile(r"[-+.\d].*|(?i:true|false|yes|no|on|off|null|~)|[\[{&*!|>%@`].*")


def scalar(text: str) -> str:
    """Read a text of YAML; refuse what YAML would take for something else."""
    if text.startswith('"'):
        return str(json.loads(text))
    if re.fullmatch("'.*'", text):
        return text[1:-1].replace("''", "'")
    if not text or NOT_TEXT.fullmatch(text) or ": " in text or " #" in text:
        raise ValueError(f"put {text!r} in double quotes")
    return text


def frontmatter(text: str) -> dict:
    """Read the head of SKILL.md: lines of `key: text`, and mappings of such lines."""
    head = re.match(r"---\r?\n(.*?)\r?\n---[ \t]*(\r?\n|$)", text, re.DOTALL)
    if head is None:
        raise ValueError("a SKILL.md begins with `---`, name, description and `---`")
    found: dict = {}
    inner = None
    for line in filter(str.strip, head[1].splitlines()):
        key, _, value = line.strip().partition(":")
        if not line.startswith(" "):
            inner = found if value.strip() else found.setdefault(key, {})
            if value.strip():
                found[key] = scalar(value.strip())
        elif inner is found or inner is None:
            raise ValueError(f"this line belongs to nothing: {line!r}")
        else:
            inner[key] = scalar(value.strip())
    if not found.get("name") or not found.get("description"):
        raise ValueError("a name and a description are required")
    return found


class Skills:
    """The skills in a folder, and the methods by which clients find them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder.resolve()
        self.names = {}  # URI of each SKILL.md -> the folder of the skill
        for path in sorted(self.folder.glob("**/SKILL.md")):
            name = frontmatter(path.read_text("utf-8"))["name"]
            if name != path.parent.name or not NAME.fullmatch(name):
                raise ValueError(f"{path}: the skill must be named like its folder, not {name!r}")
            self.names[self.uri(path)] = path.parent

    def uri(self, path: pathlib.Path) -> str:
        return "skill://" + urllib.parse.quote(path.relative_to(self.folder).as_posix())

    def files(self, skill: pathlib.Path) -> list:
        """Return the files of a skill; a link that leads out of its folder is not one."""
        found = [path for path in skill.glob("**/*") if path.is_file()]
        return sorted(path for path in found if skill in path.resolve().parents)

    def entry(self, uri: str) -> dict:
        skill = self.names[uri]
        resources = []
        for path in self.files(skill):
            data = path.read_bytes()
            digest = "sha256:" + hashlib.sha256(data).hexdigest()
            resources.append({"uri": self.uri(path), "digest": digest, "size": len(data)})
        head = frontmatter((skill / "SKILL.md").read_text("utf-8"))
        return {"uri": uri, "frontmatter": head, "resources": resources}

    def add_to(self, app: Server) -> None:
        """Add the files as resources, and the methods of the extension."""
        for skill in self.names.values():
            head = frontmatter((skill / "SKILL.md").read_text("utf-8"))
            for path in self.files(skill):
                name = path.relative_to(skill).as_posix()
                about = {"name": name, "mime_type": mime_type(path)}
                if name == "SKILL.md":
                    about.update(name=head["name"], description=head["description"])
                app.add_resource(self.uri(path), partial(read, path), **about)
        app.method("skills/list")(self.list)
        app.method("skills/get")(self.get)
        app.method("resources/directory/read")(self.directory)

    def list(self, ctx: Context, params: dict) -> dict:
        return cached(ctx, {"skills": [self.entry(uri) for uri in self.names]})

    def get(self, ctx: Context, params: dict) -> dict:
        if params.get("uri") not in self.names:
            raise RPCError(INVALID_PARAMS, f"no skill has the URI {params.get('uri')!r}")
        return cached(ctx, {"skill": self.entry(params["uri"])})

    def directory(self, ctx: Context, params: dict) -> dict:
        """List a folder of a skill."""
        wanted = str(params.get("uri", "")).rstrip("/")
        for skill in self.names.values():
            for folder in {parent for path in self.files(skill) for parent in path.parents}:
                if skill in [folder, *folder.parents] and self.uri(folder) == wanted:
                    inside = [x for x in sorted(folder.iterdir()) if skill in x.resolve().parents]
                    children = [self.child(path) for path in inside]
                    return cached(ctx, {"resources": children})
        raise RPCError(INVALID_PARAMS, f"{wanted!r} is not a folder of a skill")

    def child(self, path: pathlib.Path) -> dict:
        kind = "inode/directory" if path.is_dir() else mime_type(path)
        return {"uri": self.uri(path), "name": path.name, "mimeType": kind}


def cached(ctx: Context, result: dict) -> dict:
    """Add what 2026-07-28 demands: how long, and by whom, a result may be kept."""
    modern = ctx.revision >= "2026-07-28"
    return {**result, "ttlMs": 0, "cacheScope": "private"} if modern else result


def mime_type(path: pathlib.Path) -> str:
    if path.suffix == ".md":
        return "text/markdown"
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"


def read(path: pathlib.Path) -> object:
    data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def main() -> None:
    words = sys.argv[1:]
    port = int(words.pop(words.index("--http") + 1)) if "--http" in words else None
    folder = pathlib.Path(next((word for word in words if word != "--http"), HERE / "skills"))
    app = Server("skills", "1.0", capabilities={"extensions": {EXTENSION: {"directoryRead": True}}})
    Skills(folder).add_to(app)
    app.run() if port is None else app.run("http", port=port)


if __name__ == "__main__":
    main()
