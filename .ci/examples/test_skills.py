"""examples/skills; the official suite's scenarios run beside this (.ci/run)."""

import asyncio
import hashlib
import json

import pytest

from mcp_lite import Client, RemoteError


def write_skill(folder, head):
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{head}\n---\nDo it.\n", "utf-8")


def test_a_skill_is_listed_with_files_that_match_their_digests(example, revision):
    async def main():
        async with Client(example("skills/skills.py"), revision=revision) as c:
            skills = (await c.request("skills/list"))["skills"]
            assert [skill["frontmatter"]["name"] for skill in skills] == ["code-review", "release-notes"]
            assert skills[0]["frontmatter"]["metadata"] == {"author": "mcp_lite", "version": "1.0"}
            for entry in skills[0]["resources"]:
                data = (await c.read(entry["uri"])).encode()
                assert entry["size"] == len(data)
                assert entry["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
            one = await c.request("skills/get", {"uri": "skill://release-notes/SKILL.md"})
            assert one["skill"] == skills[1]
            with pytest.raises(RemoteError, match="no skill has the URI"):
                await c.request("skills/get", {"uri": "skill://other/SKILL.md"})
            found = await c.request("resources/directory/read", {"uri": "skill://code-review"})
            assert [child["mimeType"] for child in found["resources"]] == ["text/markdown", "inode/directory"]
            for outside in ("skill://..", "skill://code-review/SKILL.md", "skill://", "file:///"):
                with pytest.raises(RemoteError, match="is not a folder of a skill"):
                    await c.request("resources/directory/read", {"uri": outside})

    asyncio.run(main())


def test_a_link_that_leads_out_of_a_skill_is_not_served(example, tmp_path):
    (tmp_path / "secret").write_text("secret")
    write_skill(tmp_path / "skills" / "one", "name: one\ndescription: Do one thing.")
    (tmp_path / "skills" / "one" / "link").symlink_to(tmp_path / "secret")

    async def main():
        async with Client(example("skills/skills.py", str(tmp_path / "skills"))) as c:
            assert [each["uri"] for each in await c.list_resources()] == ["skill://one/SKILL.md"]
            assert "secret" not in json.dumps(await c.request("skills/list"))

    asyncio.run(main())


@pytest.mark.parametrize(
    "head, says",
    [
        ("name: one\ndescription: x: y", "put 'x: y' in double quotes"),
        ("name: one\ndescription: true", "put 'true' in double quotes"),
        ("name: two\ndescription: x", "must be named like its folder, not 'two'"),
        ("name: one", "a name and a description are required"),
    ],
)
def test_a_head_that_cannot_be_read_is_refused_with_its_reason(example, tmp_path, head, says):
    write_skill(tmp_path / "one", head)
    lines = []

    async def main():
        async with Client(example("skills/skills.py", str(tmp_path)), stderr=lines.append):
            pass

    with pytest.raises(Exception):  # noqa: B017  # the server ends before it serves
        asyncio.run(main())
    assert says in "\n".join(lines)
