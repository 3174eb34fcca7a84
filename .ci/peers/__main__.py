"""Let other implementations and ours talk to each other: python3 .ci/peers [WORD...]

Over stdio, streamable HTTP and the HTTP+SSE of 2024-11-05; and with our gateway between a client
and a server, of one era or of two. With words, only the pairs whose titles contain them all. A pair
that fails is tried once more, aloud, since the others' programs have races of their own; no more
than SECOND_TRIES are. What cannot be installed is skipped, aloud; with CI=true that is a failure.
"""

import concurrent.futures
import functools
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from install import Missing, install_node, install_python
from processes import ROOT, free_port, passes, run, serving

HERE = pathlib.Path(__file__).resolve().parent
PYTHON_PEERS = {
    "sdk 1.30.0": "mcp==1.30.0",
    "sdk 2.3.0": "mcp==2.3.0",
    "fastmcp 4.1.2": "fastmcp==4.1.2",
}
NODE_PEERS = {
    "@modelcontextprotocol/sdk": "1.32.2",
    "@modelcontextprotocol/client": "2.4.0",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "oidc-provider": "9.13.3",
}
HTTP, SSE = "streamable-http", "sse"
PATHS = {HTTP: "/mcp", SSE: "/sse"}
PAIR_SECONDS = 300  # for one pair; most take two
AT_ONCE = 2  # pairs
SECOND_TRIES = 3  # pairs
QUIET = {"FASTMCP_SHOW_SERVER_BANNER": "false", "FASTMCP_CHECK_FOR_UPDATES": "off"}


def pair(client, server, transport):
    """Let a client drive a server; return what it reports."""
    port = free_port()
    if getattr(server, "url", False):
        with serving(server.behind(HTTP, port), port, PORT=str(port), **QUIET):
            gateway = server("stdio", target=[f"http://127.0.0.1:{port}/mcp"])
            said = run(client("stdio", *gateway), PAIR_SECONDS, **QUIET)
    elif transport == "stdio":
        said = run(client("stdio", *server("stdio")), PAIR_SECONDS, **QUIET)
    else:
        ours = our_server in (server, getattr(server, "behind", None))  # theirs may say Traceback
        statuses = {0} if ours else None
        with serving(server(transport, port), port, statuses, PORT=str(port), **QUIET):
            url = f"http://127.0.0.1:{port}{PATHS[transport]}"
            said = run(client(transport, url), PAIR_SECONDS, **QUIET)
    # What the clients report is indented by three; the rest is the servers' logs.
    return "\n".join(re.findall(r"^   [a-z0-9].*", said, re.M))


def our_server(transport, port=None):
    options = [] if port is None else ["--http", str(port)]
    return [sys.executable, str(ROOT / "examples/everything_server.py"), *options]


def behind(server, *options, url=False):
    """Return our gateway before a server that is a command, or one at a URL."""

    def gateway(transport, port=None, target=None):
        where = [] if port is None else ["--http", str(port)]
        program = [sys.executable, str(HERE / "between.py")]
        return [*program, *where, *options, *(target or ["--", *server("stdio")])]

    gateway.behind, gateway.url = server, url
    return gateway


def our_client(what):
    return lambda transport, *target: [sys.executable, str(HERE / "our_client.py"), what, *target]


def our_login(*where):
    return (
        "our client, logging in",
        lambda *target: [sys.executable, str(HERE / "our_login.py"), *where],
    )


def pairs():
    """Return (title, client, server, transport) of what can be run here, and what is missing."""
    found, missing = [], []
    clients, servers = {}, {}  # to stand before and behind our gateway
    ours = ("our server", our_server)
    example = ("our example's server", lambda transport: [])  # which the client starts itself

    def add(client, server, *transports):
        for transport in transports:
            title = f"{client[0]}, {server[0]}, {transport}"
            found.append((title, client[1], server[1], transport))

    add(("our client", our_client("contract")), ours, "stdio", HTTP, SSE)
    for name, requirement in PYTHON_PEERS.items():
        try:
            python = install_python(requirement)
        except Missing as exc:
            missing.append(exc)
            continue
        theirs = (
            f"{name} server",
            lambda transport, *port, python=python: [
                python, str(HERE / "sdk_server.py"), transport, *map(str, port)],
        )  # fmt: skip
        add(("our client", our_client("contract")), theirs, "stdio", HTTP)
        servers[name] = theirs[1]
        if not name.startswith("sdk"):
            authority = (f"{name} authorization server", example[1])
            add(our_login("python", python), authority, "stdio")
            continue
        client = (
            f"{name} client",
            lambda *target, python=python: [python, str(HERE / "sdk_client.py"), *target],
        )
        clients[name] = client[1]
        add(client, theirs, "stdio", HTTP)  # shows that the contract is a fair one
        add(client, ours, "stdio", HTTP)
        login = (
            f"{name} client, logging in",
            lambda *target, python=python: [python, str(HERE / "sdk_login.py")],
        )
        add(login, example, "stdio")
        if name.startswith("sdk 1"):
            add(("our client", our_client("contract")), theirs, SSE)
            add(client, ours, SSE)
    try:
        node, folder = install_node("node-peers", NODE_PEERS)
    except Missing as exc:
        add_gateways(add, clients, servers)
        return found, [*missing, exc]
    for package in ("sdk", "client"):
        client = (
            f"typescript {package} client",
            lambda *target, package=package: [
                sys.executable, str(HERE / "ts_client.py"), node, folder, package, *target],
        )  # fmt: skip
        clients[f"typescript {package}"] = client[1]
        add(client, ours, "stdio", HTTP, SSE)
        login = (
            f"typescript {package} client, logging in",
            lambda *target, package=package: [
                sys.executable, str(HERE / "ts_login.py"), node, folder, package],
        )  # fmt: skip
        add(login, example, "stdio")
    add(our_login("typescript", node, folder), ("typescript sdk's example", example[1]), "stdio")
    for algorithm in ("RS256", "ES256"):
        provider = (f"our Guard, tokens of oidc-provider, {algorithm}", example[1])
        add(our_login("oidc", node, folder, algorithm), provider, "stdio")
    script = f"{folder}/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    kinds = {"stdio": "stdio", HTTP: "streamableHttp", SSE: "sse"}
    everything = ("server-everything", lambda transport, *_: [node, script, kinds[transport]])
    add(("our client", our_client("everything")), everything, "stdio", HTTP, SSE)
    servers["everything"] = everything[1]
    add_gateways(add, clients, servers)
    return found, missing


def add_gateways(add, clients, servers):
    """Add pairs with our gateway between them."""
    legacy, modern = ("--revision", "2025-11-25"), ("--revision", "2026-07-28")
    for name, client in clients.items():
        near = (f"{name} client", client)
        add(near, ("our gateway and server", behind(our_server)), "stdio", HTTP)
        add(near, ("our gateway and modern server", behind(our_server, *modern)), "stdio")
        add(near, ("our gateway and server at a URL", behind(our_server, url=True)), "stdio")
    for name, server in servers.items():
        what = "everything" if name == "everything" else "through"
        near = ("our client", our_client(what))
        add(near, (f"our gateway and {name} server", behind(server, *legacy)), "stdio", HTTP)
        if what == "through":
            there = behind(server, *legacy, url=True)
            add(near, (f"our gateway and {name} server at a URL", there), "stdio")
            for other, client in clients.items():
                between = f"our gateway and {name} server"
                add((f"{other} client", client), (between, behind(server, *legacy)), "stdio")
    login = [sys.executable, str(HERE / "login_proxy.py")]
    add(("a login", lambda *_: login), ("our gateway", lambda *_: []), "stdio")


def main(words):
    """Run all pairs; return an exit status."""
    found, missing = pairs()
    found = [item for item in found if all(word in item[0] for word in words)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(pair, *item[1:]) for item in found]
        said = [passes(item[0], future.result) for item, future in zip(found, futures)]
    failed = [item for item, good in zip(found, said) if not good]
    if len(failed) <= SECOND_TRIES:
        again = [(item, functools.partial(pair, *item[1:])) for item in failed]
        failed = [item for item, talk in again if not passes(f"again: {item[0]}", talk)]
    for exc in missing:
        print(f"SKIPPED: {exc}")
    print(f"{len(found) - len(failed)} of {len(found)} pairs get on")
    return 1 if failed or not found or (missing and os.environ.get("CI")) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # at once: the threads would finish their pairs
    sys.exit(main(sys.argv[1:]))
