#!/usr/bin/env python3
"""Complete an argument of a prompt, or of a resource template.

    python3 mcp_lite.py complete offer item=m tone=loud server.py
    milk
    melon

The first KEY=BEGUN is completed; the others are what is known already. A template is named by its
URI, as in `complete 'shop://item/{id}' id=1 server.py`. All options of mcp_lite.py may be used.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

from mcp_lite import (
    VERBS,
    Client,
    Person,
    UsageError,
    client_of,
    complain,
    parse_line,
    perform,
)


async def do_complete(client: Client, args: Any) -> tuple[Any, str]:
    """Return a completion as it was sent, and its values in lines."""
    ref, *words = args.words
    known = dict(word.partition("=")[::2] for word in words)
    key, begun = next(iter(known.items()))
    names = {
        prompt["name"]: [each["name"] for each in prompt.get("arguments", ())]
        for prompt in await client.list_prompts()
    } if "prompts" in client.server_capabilities else {}  # fmt: skip
    there = names.get(ref) or re.findall(r"\{[+#./;?&]?([\w.]+)\*?\}", ref)
    if key not in there:
        raise UsageError(f"{ref!r} has no argument {key!r}; it has {', '.join(there) or 'none'}")
    values = await client.complete(ref, key, begun, {k: v for k, v in known.items() if k != key})
    return {"completion": {"values": values}}, "\n".join(values) or "(none)"


async def talk(args: Any) -> int:
    person = Person(args.answer, args.yes)
    async with client_of(args, person) as client:
        return await perform(client, args, person)


def main(argv: list[str]) -> int:
    """Run the verb; return the exit status."""
    VERBS["complete"] = (do_complete, "REF KEY=BEGUN [KEY=VALUE ...]", "complete an argument")
    if "--help" in argv or "-h" in argv:
        print(f"usage: mcp_complete.py REF KEY=BEGUN [KEY=VALUE ...] [options] TARGET\n\n{__doc__}")
        return 0
    try:
        return asyncio.run(talk(parse_line(["complete", *argv])))
    except UsageError as exc:
        return complain(exc)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
