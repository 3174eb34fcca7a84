"""Lesson 2. The handshake.

Before they work, the two ends agree on a revision of the protocol and say what each can do. A
revision is the protocol as it stood on a date, and the date is its name. The client sends
`initialize`, the server answers, the client confirms. This opens a session. (In the newest
revision there is no handshake: lesson 10.)

mcp_lite.py does it properly in "Lifecycle".
Exercise: a client that speaks only 2025-03-26 and 2024-11-05. It asks for the newer one of the
two, and hangs up if the server answers with a revision that it does not know. (To see it hang up,
let it ask for a date of your own.)
"""

from course import Pipe, say, teach


async def lesson():
    async with Pipe() as pipe:
        say("We ask for a revision, declare that the user at our end can fill in forms, and say "
            "who we are:")  # fmt: skip
        answer = await pipe.ask(1, "initialize", {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "learner", "version": "1"},
        })  # fmt: skip
        offers = ", ".join(answer["result"]["capabilities"])
        say(f"The server agrees to the revision, and declares what it has: {offers}. We may use "
            "that, and nothing else. Then we confirm; a notification is not answered:")  # fmt: skip
        await pipe.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        say("The session is open. From here on, either end may send requests.")


async def unknown_revision():
    """The client asks for a revision that no server knows. Is that an error?"""
    async with Pipe() as pipe:
        answer = await pipe.shake_hands("1999-01-01")
        assert answer["result"]["protocolVersion"] == "2025-11-25"
    return ("No. The server answers with the newest revision that it speaks and that has a "
            "handshake. The client decides whether it can live with that.")  # fmt: skip


async def older_revision():
    """The client asks for 2024-11-05, the first revision of all. Which one do they speak?"""
    async with Pipe() as pipe:
        answer = await pipe.shake_hands("2024-11-05")
        assert answer["result"]["protocolVersion"] == "2024-11-05"
        assert "completions" in answer["result"]["capabilities"]
    return ("The first one: a server that knows a revision must agree to it. Look at the "
            "capabilities: its clients do not know `completions`, and pass over it.")  # fmt: skip


async def twice():
    """What if the client sends a second handshake?"""
    async with Pipe() as pipe:
        await pipe.shake_hands()
        answer = await pipe.shake_hands()
        assert answer["error"]["code"] == -32600
    return "Error -32600, an invalid request: there is one handshake in a session."


if __name__ == "__main__":
    teach(__doc__, lesson, unknown_revision, older_revision, twice)
