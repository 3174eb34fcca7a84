"""mcp_install: the entry of a server in the file of an application."""

import asyncio
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import threading
import zipfile

import mcp_install
import pytest
from conftest import ROOT

import mcp_lite

SERVER = """
from mcp_lite import Server
app = Server("shop")
@app.tool
def add(a: int) -> int:
    "Add."
    return a
if __name__ == "__main__":
    app.run()
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Work in a new folder, with a server, and with an empty home beside it."""
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    pathlib.Path("shop.py").write_text(SERVER)
    shutil.copy(ROOT / "mcp_lite.py", "mcp_lite.py")
    return tmp_path / "home"


@pytest.fixture
def url():
    """Serve the shop at a URL, for a token."""
    app = mcp_lite.Server("tea shop")

    @app.tool
    def add(a: int) -> int:
        return a

    served = app.start_in_thread("http", port=0, token="secret")
    yield served.url
    served.stop()


def start(entry, **options):
    """Start the command of an entry as an application does, and return what its tool returns."""

    async def call():
        command = [entry["command"], *entry["args"]]
        async with mcp_lite.Client(command, env=entry.get("env"), cwd="/", **options) as client:
            return await client.call("add", {"a": 1})

    return asyncio.run(call())


@pytest.fixture
def install(capsys):
    """Return what runs the program: exit status, stdout, stderr."""

    def run(*argv):
        capsys.readouterr()
        try:
            status = mcp_install.main([*argv])
        except SystemExit as exc:
            status = exc.code
        return (status, *capsys.readouterr())

    return run


def test_it_prints_the_entry_and_says_where_it_goes(install, home):
    status, out, err = install("claude-desktop", "shop.py", "--env", "K=v")
    entry = {"command": sys.executable, "args": [os.path.abspath("shop.py")], "env": {"K": "v"}}
    assert (status, json.loads(out)) == (0, {"mcpServers": {"shop": entry}})
    assert err == f"in {home}/.config/Claude/claude_desktop_config.json\n"
    assert os.listdir(home) == [], "nothing is written"


@pytest.mark.parametrize(
    "app, words, entry",
    [
        ("cursor", ["http://127.0.0.1:1/mcp", "--header", "K:v"],
         {"mcpServers": {"127-0-0-1-1": {"url": "http://127.0.0.1:1/mcp", "headers": {"K": "v"}}}}),
        ("vscode", ["http://127.0.0.1:1/mcp"], {"servers": {"127-0-0-1-1": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}}),
        ("gemini", ["http://127.0.0.1:1/mcp"], {"mcpServers": {"127-0-0-1-1": {"httpUrl": "http://127.0.0.1:1/mcp"}}}),
        ("claude-desktop", ["http://127.0.0.1:1/mcp", "--name", "h"],
         {"mcpServers": {"h": {"command": sys.executable,
                               "args": [str(ROOT / "mcp_lite.py"), "gateway", "http://127.0.0.1:1/mcp"]}}}),
        ("zed", ["--name", "n", "--", sys.executable, "shop.py", "here", "work"],
         {"context_servers": {"n": {"command": sys.executable, "args": ["SHOP", "here", "work"]}}}),
    ],
)  # fmt: skip
def test_each_application_has_a_form_of_its_own(install, app, words, entry):
    status, out, err = install(app, *words)
    assert (status, "cannot reach http://127.0.0.1:1/mcp" in err) == ((0, False) if app == "zed" else (3, True))
    assert json.loads(out) == json.loads(json.dumps(entry).replace("SHOP", os.path.abspath("shop.py")))


def test_codex_reads_toml_which_is_printed_only(install):
    status, out, _ = install("codex", "shop.py", "--env", "K=v")
    assert out.splitlines() == [
        "[mcp_servers.shop]", f'command = "{sys.executable}"',
        f'args = ["{os.path.abspath("shop.py")}"]', 'env = { "K" = "v" }',
    ]  # fmt: skip
    assert install("codex", "shop.py", "--name", "a shop")[1].startswith('[mcp_servers."a shop"]\n')
    status, out, err = install("codex", "shop.py", "--write")
    assert (status, out) == (2, "") and "by hand" in err


@pytest.mark.parametrize("target", ["shop.py", "shop.py:app"])
def test_an_application_without_a_path_can_start_what_is_written(install, target):
    entry = json.loads(install("cursor", target)[1])["mcpServers"]["shop"]
    assert start(entry) == 1


@pytest.mark.parametrize("words", [
    ["--token", "secret"], ["--header", "Authorization: Bearer secret"], ["--env", "MCP_LITE_TOKEN=secret"],
], ids=["token", "header", "variable"])  # fmt: skip
def test_a_url_and_a_token_give_an_entry_that_works_where_only_commands_are_started(install, home, url, words):
    assert install("claude-desktop", url, *words, "--write")[0] == 0
    file = home / ".config" / "Claude" / "claude_desktop_config.json"
    [entry] = json.loads(file.read_text())["mcpServers"].values()
    assert [*json.loads(file.read_text())["mcpServers"]] == ["tea-shop"], "it is called as it calls itself"
    assert "secret" not in str(entry["args"]), "a list of processes shows these"
    assert start(entry) == 1


@pytest.mark.parametrize("app", ["claude-desktop", "cursor"])
def test_every_header_reaches_the_server_at_the_url(install, app):
    seen = []

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append([self.headers[name] for name in ("x-key", "path")])
            self.send_error(503)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{served.server_port}/mcp"
        assert install(app, url, "--header", "X-Key: a b", "--header", "Path:c:d")[0] == 3
        served.shutdown()
    assert seen[0] == ["a b", "c:d"]


@pytest.mark.parametrize("app", ["claude-desktop", "vscode", "cursor"])
def test_a_certificate_that_ca_names_is_trusted_now_and_by_the_entry(install, certificate, app):
    shop = mcp_lite.Server("tea shop")

    @shop.tool
    def add(a: int) -> int:
        return a

    served = shop.start_in_thread("http", port=0, token="secret", ssl=certificate)
    try:
        words = [app, served.url, "--token", "secret"]
        status, _, err = install(*words, "--write")
        assert status == 3 and "to trust it, pass its certificate: --ca FILE" in err
        status, out, _ = install(*words, "--ca", os.path.relpath(certificate[0]))
        [[entry]] = [each.values() for each in json.loads(out).values()]
        assert (status, start(entry)) == (0, 1)
    finally:
        served.stop()


@pytest.mark.parametrize("words", [["--token", "secret"], ["--header", "authorization: Bearer secret", "--token", "x"]])
def test_a_token_becomes_a_header_where_urls_are_used(install, url, words):
    status, out, _ = install("cursor", url, *words)
    [(name, entry)] = json.loads(out)["mcpServers"].items()
    assert (status, name, entry["url"]) == (0, "tea-shop", url)
    assert [*entry["headers"].values()] == ["Bearer secret"]


@pytest.mark.parametrize("app", ["cursor", "claude-desktop"])
def test_a_token_that_is_not_valid_is_not_written(install, home, url, app):
    status, out, err = install(app, url, "--token", "guess", "--write")
    assert (status, out) == (3, "") and "the bearer token is not valid" in err
    assert os.listdir(home) == []


@pytest.mark.parametrize("app", ["cursor", "claude-desktop", "codex"])
def test_a_server_that_wants_a_token_and_has_no_login_is_not_written_without_one(install, home, url, app):
    status, out, err = install(app, url, "--write")
    assert (status, out) == (3, "") and f"{url} needs a token: pass it by --token" in err
    assert err.count(url) == 2 - (app != "claude-desktop") and err.endswith("nothing is written\n")
    assert {*os.listdir(home)} <= {".local"}, "where logins are"
    assert install(app, url)[0] == 3


@contextlib.contextmanager
def refusing(pages, challenge):
    """Serve pages, by path, beside an endpoint that refuses everybody; give its URL."""

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(401)
            self.send_header("www-authenticate", challenge)
            self.send_header("content-length", "0")
            self.end_headers()

        def do_GET(self):
            body = pages.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}/a/mcp"
        served.shutdown()


METADATA = json.dumps({"resource": "http://127.0.0.1/a/mcp", "authorization_servers": ["http://127.0.0.1:1"]})


@pytest.mark.parametrize("pages, challenge, logs_in", [
    ({}, "Bearer", False),
    ({}, 'Bearer realm="x", resource_metadata="http://127.0.0.1:1/about"', True),
    ({"/.well-known/oauth-protected-resource/a/mcp": METADATA}, "Bearer", True),
    ({"/.well-known/oauth-protected-resource": METADATA}, "Bearer", True),
    ({"/.well-known/oauth-authorization-server": METADATA}, "Bearer", True),
    ({"/.well-known/oauth-protected-resource": "<p>Welcome to our shop</p>"}, "Bearer", False),
    ({"/.well-known/oauth-protected-resource": "[]"}, "Bearer", False),
])  # fmt: skip
def test_an_application_that_logs_in_itself_gets_a_url_that_has_a_login(install, home, pages, challenge, logs_in):
    with refusing(pages, challenge) as url:
        status, out, err = install("cursor", url, "--write")
        assert status == (0 if logs_in else 3)
        assert ("needs a token" in err) != logs_in
        assert [*home.rglob("mcp.json")] == [home / ".cursor" / "mcp.json"] * logs_in
        status, out, err = install("claude-desktop", url, "--write")
        assert (status, out) == (3, "") and f"mcp_lite.py login {url}" in err


@pytest.mark.parametrize("target, text, problem", [
    ("shop.py:nix", SERVER, "no Server in "), ("shop.py:nix", SERVER, "that is named 'nix'; available: app"),
    ("shop.py", "import argparse\nargparse.ArgumentParser().parse_args()\n", "it must call app.run()"),
    ("shop.py", SERVER.replace("import Server", "import NoServer"), "cannot import name 'NoServer'"),
    ("shop.py", SERVER.replace("add(a", "add(ctx, ctx2, *a"), "error: "),
])  # fmt: skip
@pytest.mark.parametrize("app", ["cursor", "codex", "mcpb"])
def test_what_cannot_start_is_not_written_and_its_entry_is_still_printed(install, home, app, target, text, problem):
    pathlib.Path("shop.py").write_text(text)
    for more in ([], ["--write"]):
        status, out, err = install(app, target, *more)
        assert f"it was started in the folder {os.sep}: an application may choose any folder\n" in err
        assert status == 3 and problem in err and "Traceback" not in out
        assert ("shop.py" in out) == (app != "mcpb" and not more)
    assert os.listdir(home) == [] and not [*pathlib.Path().glob("*.mcpb")]


def test_a_url_needs_the_gateway_beside_the_file(tmp_path, home, url):
    for path in ROOT / "mcp_lite.py", ROOT / "examples" / "programs" / "mcp_install.py":
        shutil.copy(path, tmp_path / "work")
    words = [sys.executable, "mcp_lite.py", "install", "claude-desktop", url, "--token", "secret", "--write"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "copy examples/programs/mcp_gateway.py" in done.stderr
    assert done.stderr.endswith("\nnothing is written\n") and os.listdir(home) == []


@pytest.mark.parametrize("called, words, name", [
    ("tea shop", ["shop.py"], "tea-shop"), ("tea shop", ["--", sys.executable, "shop.py"], "tea-shop"),
    ("tea shop", ["shop.py", "--name", "mine"], "mine"), ("\u8336", ["shop.py:app"], "shop"), (None, ["shop.py"], "shop"),
])  # fmt: skip
def test_the_entry_has_the_servers_own_name_or_that_of_its_file(install, called, words, name):
    made = "Server()" if called is None else f"Server({called!r})"
    pathlib.Path("shop.py").write_text(SERVER.replace('Server("shop")', made), "utf-8")
    assert [*json.loads(install("cursor", *words)[1])["mcpServers"]] == [name]
    bundle = words[:1] + words[1:] * ("--name" in words)
    if bundle != ["--"]:
        assert json.loads(install("mcpb", *bundle)[1])["name"] == name


def test_a_batch_file_is_started_by_cmd(install):
    """Under Windows' rules, quotes around the first word of `cmd /c` would be lost."""
    folder = pathlib.Path("Program Files (x86)")
    folder.mkdir()
    batch = folder / "npx.cmd"
    batch.write_text(f'@"{sys.executable}" -c "import sys; print(sys.argv[1:])" %*\n')
    batch.chmod(0o755)
    entry = json.loads(install("cursor", "--name", "n", "--", str(batch), "-y", "a b")[1])["mcpServers"]["n"]
    assert entry == {"command": "cmd", "args": ["/c", "call", os.path.abspath(batch), "-y", "a b"]}
    if os.name == "nt":
        shown = subprocess.run([entry["command"], *entry["args"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert shown.stdout.strip() == b"['-y', 'a b']"


# Files of others.


@pytest.fixture
def settings(home):
    """Return Cursor's file, in a folder that is there."""
    (home / ".cursor").mkdir()
    return home / ".cursor" / "mcp.json"


def test_where_a_file_cannot_be_replaced_nothing_stays_beside_it(install, home, monkeypatch):
    def refuse(source, target):
        raise PermissionError(f"{target} is in use")

    monkeypatch.setattr(os, "replace", refuse)
    status, out, err = install("cursor", "shop.py", "--env", "K=secret", "--write")
    assert (status, out) == (2, "") and "is in use" in err
    assert os.listdir(home / ".cursor") == []


def test_the_rest_of_a_file_stays_with_its_mode_and_a_copy(install, home):
    path = home / ".config" / "zed" / "settings.json"
    path.parent.mkdir(parents=True)
    before = (
        '// "context_servers": {\n{\n    "theme": "dark", // nice\n    "n": 1.50,\n'
        '    "context_servers": {\n        "x": {"args": [1,]},\n    },\n}\n'
    )
    path.write_text(before)
    path.chmod(0o644)
    status, out, err = install("zed", "shop.py", "--write")
    assert (status, out) == (0, f"{path} has shop now; as it was: {path}.bak\n")
    assert err == "Restart zed, or reload its servers.\n"
    entry = (
        f'\n        "shop": {{\n            "command": "{sys.executable}",\n            "args": [\n'
        f'                "{os.path.abspath("shop.py")}"\n            ]\n        }},'
    )
    assert path.read_text() == before.replace("{\n        ", "{" + entry + "\n        ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert pathlib.Path(f"{path}.bak").read_text() == before
    assert sorted(os.listdir(path.parent)) == ["settings.json", "settings.json.bak"]
    install("zed", "shop.py", "--name", "second", "--write")  # the copy stays as it was at first
    assert pathlib.Path(f"{path}.bak").read_text() == before
    assert entry in pathlib.Path(f"{path}.bak1").read_text()


@pytest.mark.parametrize(
    "before",
    [
        "", "{}", "{ }", "{}\n", '{"a": 1}', '{"mcpServers": {}}', '{"mcpServers":{"a":{}}}',
        '{\r\n\t"a": [1],\r\n}', '/* { */ {"b": {"mcpServers": {}}, "mcpServers": {}}',
        '{"s": "// no comment \\" /*", "mcpServers": {/* none */}}',
    ],
)  # fmt: skip
def test_whatever_the_form_of_the_file_the_entry_is_found_in_it(install, settings, before):
    settings.write_bytes(before.encode())
    assert install("cursor", "shop.py", "--write")[0] == 0
    after = json.loads(mcp_install.blanked(settings.read_bytes().decode()))
    wanted = json.loads(mcp_install.blanked(before) or "{}")
    added = after["mcpServers"].pop("shop")
    assert added["args"] == [os.path.abspath("shop.py")]
    assert after == {"mcpServers": {}, **wanted}


@pytest.mark.parametrize("before, after", [
    ('{"mcpServers": {"old": {"command": "x"}}}\n', '{"mcpServers": {"shop": NEW, "old": {"command": "x"}}}\n'),
    ('{ "a": 1 }', '{ "mcpServers": {"shop": NEW}, "a": 1 }'),
    ('{"a": 1,\n "b": 2}', '{"mcpServers": {"shop": NEW}, "a": 1,\n "b": 2}'),
    ('{\n  "mcpServers": {"old": {}}\n}\n', '{\n  "mcpServers": {"shop": NEW, "old": {}}\n}\n'),
])  # fmt: skip
def test_an_entry_beside_others_on_one_line_stands_on_that_line(install, settings, before, after):
    settings.write_text(before)
    assert install("cursor", "shop.py", "--write")[0] == 0
    new = json.dumps({"command": sys.executable, "args": [os.path.abspath("shop.py")]})
    assert settings.read_text() == after.replace("NEW", new)


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_a_new_file_is_for_its_owner_alone(install, home):
    assert install("cursor", "shop.py", "--write")[0] == 0
    path = home / ".cursor" / "mcp.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*json.loads(path.read_text())["mcpServers"]] == ["shop"]
    assert os.listdir(path.parent) == ["mcp.json"]


def test_an_entry_of_that_name_is_not_replaced(install, settings):
    install("cursor", "shop.py", "--write")
    before = settings.read_text()
    status, out, err = install("cursor", "shop.py", "--write", "--env", "A=b")
    assert (status, out) == (2, "") and "it has 'shop': pass --replace, or another --name" in err
    assert settings.read_text() == before
    assert install("cursor", "shop.py", "--write", "--name", "second")[0] == 0
    assert [*json.loads(settings.read_text())["mcpServers"]] == ["second", "shop"]


@pytest.mark.parametrize("before, after", [
    ('{"mcpServers": {"shop": {"command": "x"}, "old": {}}}\n', '{"mcpServers": {"shop": NEW, "old": {}}}\n'),
    ('{"shop": {"command": "x"},\n "mcpServers": {"shop":null,},}', '{"shop": {"command": "x"},\n "mcpServers": {"shop":NEW,},}'),
    ('{"mcpServers": { // "shop": 1\n  "shop": [1, "}"] /* mine */\n}}', '{"mcpServers": { // "shop": 1\n  "shop": NEW /* mine */\n}}'),
    ('{\n  "mcpServers": {\n    "shop": {\n      "command": "x"\n    },\n    "old": {}\n  }\n}\n',
     '{\n  "mcpServers": {\n    "shop": LONG,\n    "old": {}\n  }\n}\n'),
    ('{"mcpServers": {"old": {}}}', '{"mcpServers": {"shop": NEW, "old": {}}}'),
])  # fmt: skip
def test_an_entry_is_replaced_where_it_stands(install, settings, before, after):
    settings.write_text(before)
    assert install("cursor", "shop.py", "--write", "--replace")[0] == 0
    new = {"command": sys.executable, "args": [os.path.abspath("shop.py")]}
    long = json.dumps(new, indent=2).replace("\n", "\n    ")
    assert settings.read_text() == after.replace("NEW", json.dumps(new)).replace("LONG", long)
    assert pathlib.Path(f"{settings}.bak").read_text() == before


@pytest.mark.parametrize(
    "text",
    ["[]", '{"mcpServers": []}', '{"mcpServers": null}', '{"mcpServers": {}', '{"mcpServers": {}} x',
     b"\xff\xfe{\0}\0", '{"a": ' + "[" * 100_000],
    ids=range(7),
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_left_alone(install, settings, text):
    before = text if isinstance(text, bytes) else text.encode()
    settings.write_bytes(before)
    status, out, err = install("cursor", "shop.py", "--write")
    assert (status, out) == (2, "")
    assert f"{settings} is left alone: " in err and "Traceback" not in err
    assert settings.read_bytes() == before
    assert os.listdir(settings.parent) == ["mcp.json"]


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_link_is_refused(install, settings, home):
    (home / "dotfiles.json").write_text("{}")
    settings.symlink_to(home / "dotfiles.json")
    status, _, err = install("cursor", "shop.py", "--write")
    assert status == 2 and f"is a link to {os.path.realpath(home / 'dotfiles.json')}" in err
    assert (home / "dotfiles.json").read_text() == "{}" and settings.is_symlink()


def test_a_project_has_a_file_of_its_own(install):
    for app, path in (("claude-code", ".mcp.json"), ("vscode", ".vscode/mcp.json")):
        assert install(app, "shop.py", "--write", "--project")[0] == 0
        assert os.path.abspath("shop.py") in pathlib.Path(path).read_text()
    status, _, err = install("devin", "shop.py", "--write", "--project")
    assert status == 2 and "devin has no file for a folder: leave --project out" in err


@pytest.mark.parametrize(
    "words, problem",
    [
        (["emacs", "shop.py"], "no application 'emacs'; available: claude-desktop, claude-code, cursor, "),
        (["claude", "shop.py"], "no application 'claude'; did you mean claude-desktop or claude-code?"),
        (["curser", "shop.py"], "no application 'curser'; did you mean cursor?"),
        (["cursor", "shop.py", "--file", "shop.py"], "--file is for a bundle"),
        (["mcpb", "shop.py", "--file", "none.csv"], "there is no file none.csv beside shop.py"),
        (["mcpb", "shop.py", "--file", "../home"], "../home is not in the folder of shop.py"),
        (["cursor"], "required: target"),
        (["cursor", "none.py"], "there is no file none.py"),
        (["cursor", "no-such-program"], "there is no program 'no-such-program'"),
        (["cursor", "none.py", "--write"], "install: error: there is no file none.py"),
        (["cursor", "https://"], "a URL is http(s)://host"),
        (["cursor", "https://h/mcp", "https://i/mcp"], "'https://i/mcp' is one word too many"),
        (["cursor", "https://h/mcp", "--env", "K=v"], "use --token or --header in place of --env"),
        (["cursor", "http://127.example/", "--token", "t"], "is not https: its token"),
        (["cursor", "shop.py", "--header", "K:v"], "for a command, use --env KEY=VALUE"),
        (["mcpb", "shop.py", "--token", "t"], "for a command, use --env KEY=VALUE"),
        (["cursor", "shop.py", "--ca", "shop.py"], "for a command, use --env KEY=VALUE"),
        (["cursor", "https://h/mcp", "--ca", "none.pem"], "there is no file none.pem"),
    ],
)
def test_a_wrong_command_line_says_what_is_right(install, words, problem):
    status, out, err = install(*words)
    assert (status, out) == (2, "")
    assert problem in err


#: What a manifest may have, by mcpb-manifest-v0.3.schema.json of @anthropic-ai/mcpb 2.1.2.
TEXT = {"type": "string"}


def strict(required, /, **fields):
    return {"type": "object", "properties": fields, "required": required.split(), "additionalProperties": False}


TEXTS = {"type": "object", "additionalProperties": TEXT}
COMMAND = {"command": TEXT, "args": {"type": "array", "items": TEXT}, "env": TEXTS}
OVERRIDES = {"type": "object", "additionalProperties": strict("", **COMMAND)}
MANIFEST = strict(
    "manifest_version name version description author server",
    manifest_version={"const": "0.3"}, name=TEXT, display_name=TEXT, version=TEXT, description=TEXT,
    author=strict("name", name=TEXT), tools={"type": "array", "items": strict("name", name=TEXT, description=TEXT)},
    server=strict("type entry_point mcp_config", type={"enum": ["python", "node", "binary"]}, entry_point=TEXT,
                  mcp_config=strict("command", platform_overrides=OVERRIDES, **COMMAND)),
    compatibility=strict("", runtimes=strict("", python=TEXT)),
    user_config={"type": "object", "additionalProperties": strict(
        "type title description", type={"enum": ["string"]}, title=TEXT, description=TEXT,
        sensitive={"type": "boolean"}, required={"type": "boolean"})},
)  # fmt: skip


def test_a_bundle_has_all_that_the_server_needs_and_a_manifest(install, tmp_path):
    pathlib.Path("stock").mkdir()
    pathlib.Path("stock/__init__.py").write_text("from . import tea\n")
    pathlib.Path("stock/tea.py").write_text("TEA = 1\n")
    pathlib.Path("other.py").write_text("SECRET = 1\n")
    pathlib.Path("shop.py").write_text("import stock\n" + SERVER)
    status, out, _ = install("mcpb", "shop.py", "--env", "API_KEY=hush", "--author", "Ann")
    manifest = json.loads(out)
    mcp_lite.compile_schema(MANIFEST).check(manifest)
    assert status == 0 and "hush" not in out and not pathlib.Path("shop.mcpb").exists()
    assert manifest["tools"] == [{"name": "add", "description": "Add."}]
    assert manifest["server"]["mcp_config"]["env"] == {"API_KEY": "${user_config.api_key}"}
    assert manifest["user_config"]["api_key"]["sensitive"] is True
    status, out, _ = install("mcpb", "shop.py:app", "--write", "--name", "tea-shop")
    assert status == 0 and "other.py" not in out
    with zipfile.ZipFile("tea-shop.mcpb") as bundle:
        bundle.extractall(tmp_path / "out")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    mcp_lite.compile_schema(MANIFEST).check(manifest)
    args = [each.replace("${__dirname}", str(tmp_path / "out")) for each in manifest["server"]["mcp_config"]["args"]]

    async def call():
        async with mcp_lite.Client([sys.executable, *args]) as client:
            return await client.call("add", {"a": 4})

    assert asyncio.run(call()) == 4
    status, _, err = install("mcpb", "shop.py", "--write", "--name", "tea-shop")
    assert status == 2 and "tea-shop.mcpb is there: pass --replace, or another --name" in err
    assert install("mcpb", "shop.py", "--write", "--name", "tea-shop", "--replace")[0] == 0


@pytest.mark.parametrize("begun_in", [".", ".."])
def test_a_bundle_has_the_files_that_are_named_where_they_were_and_says_so(install, monkeypatch, tmp_path, begun_in):
    for name in ("prices.csv", "pages/a/one.html", "pages/two.html", "left.txt"):
        pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(name).write_text(name)
    monkeypatch.chdir(begun_in)
    target = os.path.relpath(tmp_path / "work" / "shop.py")
    status, out, _ = install("mcpb", target, "--write", "--file", "prices.csv", "--file", "pages")
    assert status == 0
    others = "server/pages/a/one.html, server/pages/two.html, server/prices.csv"
    assert out == (
        f"shop.mcpb has manifest.json, server/mcp_lite.py, {others}, server/shop.py; --file adds what else it reads\n"
    )
    with zipfile.ZipFile("shop.mcpb") as bundle:
        assert bundle.read("server/pages/a/one.html") == b"pages/a/one.html"
    status, out, _ = install("mcpb", target, "--write", "--replace")
    assert status == 0 and "prices.csv" not in out


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_no_link_leads_into_a_bundle_or_out_of_one(install, tmp_path):
    (tmp_path / "secret").write_text("hush")
    pathlib.Path("data").mkdir()
    os.symlink(tmp_path / "secret", "data/link")
    status, _, err = install("mcpb", "shop.py", "--write", "--file", "data")
    assert status == 2 and "data/link is a link out of the folder of shop.py" in err
    os.symlink(tmp_path / "secret", "shop.mcpb")
    status, _, err = install("mcpb", "shop.py", "--write", "--replace")
    assert status == 2 and "shop.mcpb is a link to" in err and (tmp_path / "secret").read_text() == "hush"


def test_a_bundle_takes_a_file_from_before_1980(install):
    pathlib.Path("shop.mcpb").write_bytes(b"old")
    pathlib.Path("old.txt").write_text("x")
    os.utime("old.txt", (0, 0))  # 1970: a zip file begins in 1980
    assert install("mcpb", "shop.py", "--write", "--replace", "--file", "old.txt")[0] == 0
    assert zipfile.is_zipfile("shop.mcpb")


@pytest.mark.parametrize("words", [["http://127.0.0.1:1/mcp"], ["--", "npx", "x"], ["none.py"]])
def test_a_bundle_has_one_file_of_python_that_works(install, words):
    assert install("mcpb", "--write", *words)[0] == 2
