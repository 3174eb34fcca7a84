"""mcp_doctor: what is wrong with a server."""

import contextlib
import http.server
import json
import random
import sys
import threading

import mcp_doctor
import pytest
from conftest import ROOT

import mcp_lite


def tool(name="look", schema=None, **more):
    """Return a tool with which nothing is wrong, but for what is given."""
    schema = {"type": "object", **(schema or {})}
    hints = {"readOnlyHint": True}
    return {"name": name, "description": "Look.", "inputSchema": schema, "annotations": hints, **more}


def argument(**schema):
    return tool(schema={"properties": {"a": {"description": "It.", "type": "string", **schema}}})


def found(*tools, **offer):
    findings = mcp_doctor.findings_of({"tools": list(tools), **offer})
    return [(each["rule"], each["place"], each["detail"], tuple(each["breaks"])) for each in findings]


# What a server lists.


def test_a_good_server_has_no_faults():
    prompt = {"name": "p", "description": "Ask.", "arguments": [{"name": "a", "description": "b"}]}
    assert found() == []
    assert [] == found(
        tool("other"), argument(type="integer", default=3), prompts=[prompt],
        instructions="Ask nicely.", serverInfo={"name": "s"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "name, rules",
    [
        ("get_User-2", []),
        ("a" * 60, []),
        ("a.b", [("refused-name", ("claude", "openai"))]),
        ("2nd", [("refused-name", ("gemini",))]),
        ("a" * 61, [("long-name", ("cursor",))]),
        ("a" * 64, [("refused-name", ("gemini",)), ("long-name", ("cursor",))]),
        ("a b", [("refused-name", ("claude", "openai", "gemini"))]),
    ],
)
def test_names_that_applications_refuse(name, rules):
    assert [(rule, who) for rule, _, _, who in found(tool(name))] == rules


def test_the_name_of_the_server_counts_for_cursor():
    rules = [row[0] for row in found(tool("a" * 50), serverInfo={"name": "b" * 11})]
    assert rules == ["long-name"]


@pytest.mark.parametrize(
    "bad, rule, place, detail",
    [
        (tool(description=" "), "no-description", "tool 'look'", ""),
        (tool(description="x" * 1025), "long-description", "tool 'look'", ""),
        (tool(inputSchema=None), "no-object", "tool 'look'", ""),
        (tool(schema={"type": "string"}), "no-object", "tool 'look'", ""),
        (tool(schema={"properties": 5}), "bad-schema", "tool 'look'", None),
        (tool(schema={"required": ["b"]}), "required-unknown", "tool 'look'", "b"),
        (argument(type="object", required=["b"]), "required-unknown", "tool 'look', a", "b"),
        (tool(schema={"properties": {"a": {"title": "A", "default": 1}}}), "no-type",
         "tool 'look', a", ""),
        (tool(schema={"properties": {"a": True}}), "no-type", "tool 'look', a", ""),
        (tool(schema={"anyOf": [{}], "allOf": [{}]}), "choice-on-top", "tool 'look'",
         "anyOf, allOf"),
        (argument(type="array", items={"type": "array"}), "no-items", "tool 'look', a[]", ""),
        (argument(type="array", prefixItems=[{}]), "no-items", "tool 'look', a", ""),
        (argument(type=["string", "null"]), "list-of-types", "tool 'look', a", "string, null"),
        (tool(annotations={"title": "Look"}), "no-safety", "tool 'look'", ""),
        (tool(annotations=None), "no-safety", "tool 'look'", ""),
        (argument(default=5), "bad-default", "tool 'look', a", None),
        (argument(const="x"), "not-for-gemini", "tool 'look', a", "const"),
        (argument(format="uri"), "not-for-gemini", "tool 'look', a", "format uri"),
        (tool(outputSchema={"type": "array"}), "output-not-object", "tool 'look'", ""),
        (tool(outputSchema={"type": 5}), "bad-schema", "tool 'look'", None),
    ],
)  # fmt: skip
def test_a_tool_that_models_or_applications_cannot_use(bad, rule, place, detail):
    rows = [row[:3] for row in found(bad)]
    assert (rule, place) in [row[:2] for row in rows]
    assert detail is None or (rule, place, detail) in rows


def test_a_property_may_have_the_name_of_a_keyword():
    schema = {"properties": {"not": {"type": "string"}, "default": {"type": "array"}}}
    assert [row[:2] for row in found(tool(schema=schema))] == [("no-items", "tool 'look', default")]


def test_what_is_said_once_has_its_limits_too():
    most = [tool(f"t{n}") for n in range(129)]
    assert found(*most[:40]) == []
    assert found(*most[:41]) == [("many-tools", "tools", "41", ("cursor",))]
    assert found(*most)[0][3] == ("cursor", "openai", "vscode")
    assert found(instructions="x" * 2048) == []
    assert [row[0] for row in found(instructions="x" * 2049)] == ["long-instructions"]
    assert found(tool(), tool()) == [("same-name", "tool 'look'", "2 times", ())]


def test_whatever_a_server_lists_a_judgement_comes_of_it():
    words = "type properties required items anyOf default enum $ref format const description odd".split()
    dice = random.Random("lists")

    def anything(depth=0):
        kind = dice.randrange(7 if depth < 4 else 5)
        if kind == 5:
            return [anything(depth + 1) for _ in range(dice.randrange(3))]
        if kind == 6:
            return {dice.choice(words): anything(depth + 1) for _ in range(dice.randrange(4))}
        return (None, True, 3.5, dice.choice(["object", "array", "string", "a", ""]), 10**30)[kind]

    for _ in range(2000):
        item = {"inputSchema": anything(), "outputSchema": anything(), "annotations": anything(),
                "description": anything(), "arguments": anything()}  # fmt: skip
        offer = {"tools": [{**item, "name": "t"}], "prompts": [{**item, "name": "p"}],
                 "instructions": anything(), "serverInfo": {"name": anything()}}  # fmt: skip
        json.dumps([*mcp_doctor.findings_of(offer)])


def test_every_rule_says_what_to_do_and_where_that_is_written():
    for rule in mcp_doctor.RULES.values():
        assert rule.text and rule.remedy and rule.source
        assert rule.level in ("error", "warning") and {*rule.breaks} <= {*mcp_doctor.PROFILES}


# A server at work.

#: A server of an older revision. ANSWERS has, by method, what it answers; None is no answer.
FAKE = '''
import json, sys
LISTS = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources",
         "resources/templates/list": "resourceTemplates"}
HELLO = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "fake", "version": "1"},
         "capabilities": {"tools": {}, "prompts": {}, "resources": {}}}
ANSWERS = %r
for line in sys.stdin:
    msg = json.loads(line)
    method, params = msg["method"], msg.get("params", {})
    answer = {"error": {"code": -32602 if method in LISTS or "/" in method else -32601, "message": "no"}}
    if method in ("server/discover", "check/nothing"):
        answer["error"]["code"] = -32601
    if method in LISTS and "cursor" not in params:
        answer = {"result": {LISTS[method]: []}}
    if method in ("initialize", "ping"):
        answer = {"result": HELLO}
    key = method + " " + params.get("name", "")
    for key in (method, method + " " + str(params.get("name"))):
        answer = ANSWERS.get(key, answer)
    if answer == "die":
        sys.exit(3)
    if "id" in msg and answer is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], **answer}), flush=True)
'''


@pytest.fixture
def doctor(tmp_path, capsys):
    """Return what looks at a fake server, or another target: exit status and findings."""

    def look(target, *more):
        if isinstance(target, dict):
            (tmp_path / "fake.py").write_text(FAKE % target)
            target = str(tmp_path / "fake.py")
        capsys.readouterr()
        status = mcp_doctor.main(["--json", target, *more])
        rows = map(json.loads, capsys.readouterr().out.splitlines())
        return status, [(each["rule"], each["place"], each["detail"]) for each in rows]

    return look


def test_an_older_server_that_does_it_right_has_no_faults(doctor):
    assert doctor({}, "--call", "--strict") == (0, [])


@pytest.mark.parametrize(
    "answers, finding",
    [
        ({"check/nothing": {"result": {}}},
         ("wrong-code", "an unknown method", "a result, where -32601 is due")),
        ({"tools/call": {"error": {"code": -32603, "message": "oops"}}},
         ("wrong-code", "an unknown tool", "-32603, where -32602 is due")),
        ({"prompts/list": {"error": {"code": -32603, "message": "oops"}}},
         ("no-list", "prompts", "oops (-32603)")),
    ],
)  # fmt: skip
def test_an_answer_that_should_be_another(doctor, answers, finding):
    assert finding in doctor(answers)[1]


def test_a_server_that_dies_of_a_wrong_word(doctor):
    status, rows = doctor({"check/nothing": "die"})
    assert status == 3
    assert [row[:2] for row in rows] == [("death", "an unknown method")]


def test_a_server_that_answers_nothing_to_nonsense(doctor, monkeypatch):
    monkeypatch.setattr(mcp_doctor, "REFUSAL_SECONDS", 0.5)
    status, rows = doctor({"prompts/get": None})
    assert status == 1
    assert ("silence", "an unknown prompt") in [row[:2] for row in rows]


def test_a_server_that_ends_at_a_word_that_is_new_to_it(doctor):
    assert doctor({"server/discover": "die"}, "--strict") == (1, [("ends-early", "the server", "")])


def test_results_are_judged_only_of_tools_that_change_nothing(doctor):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [
        tool("fails"),
        tool("wrong", outputSchema=schema),
        tool("writes", annotations={"destructiveHint": True}),
        tool("asks", {"properties": {"a": {"type": "string"}}, "required": ["a"]}),
    ]
    answers = {
        "tools/list": {"result": {"tools": tools}},
        "tools/call fails": {"result": {"content": [{"type": "text", "text": "no disk"}],
                                        "isError": True}},
        "tools/call wrong": {"result": {"content": [{"type": "text", "text": "{}"}],
                                        "structuredContent": {"n": "x"}}},
        "tools/call writes": "die",
        "tools/call asks": "die",
    }  # fmt: skip
    nonsense = ("wrong-code", "an unknown cursor", "a result, where -32602 is due")
    status, rows = doctor(answers, "--call")
    assert (status, rows[0], rows[2:]) == (1, ("failed-call", "tool 'fails'", "no disk"), [nonsense])
    assert rows[1][:2] == ("bad-output", "tool 'wrong'")
    assert doctor(answers)[1] == [nonsense]


@pytest.mark.parametrize("more, rules", [
    ({}, ["long-result"]), ({"_meta": {"anthropic/maxResultSizeChars": 60_000}}, []),
])  # fmt: skip
def test_a_result_that_is_too_long_for_an_application(more, rules):
    result = {"content": [{"type": "text", "text": "x" * 30_000}] * 2}
    assert [each["rule"] for each in mcp_doctor.judge_result("t", tool(**more), result)] == rules


def test_a_tool_that_lets_the_server_answer_nobody_is_told(doctor, tmp_path, monkeypatch):
    monkeypatch.setattr(mcp_doctor, "BLOCKED_SECONDS", 0.2)
    path = tmp_path / "still.py"
    path.write_text(
        f"import sys, threading\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from mcp_lite import Server\napp = Server('still')\n"
        "@app.tool(annotations={'readOnlyHint': True})\nasync def block() -> int:\n"
        "    'Block.'\n    threading.Event().wait(0.8)\n    return 1\napp.run()\n"
    )
    status, rows = doctor(str(path), "--call")
    assert [row[:2] for row in rows] == [("blocks", "tool 'block'")]


PRINTS = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
print("ready\\x1b[2J")
from mcp_lite import Server
app = Server("shop")
@app.tool(name="a.b", annotations={{"destructiveHint": False}})
def look() -> str:
    "Look."
app.run()
"""


def test_it_reports_for_a_person_and_ends_with_a_status(capsys, tmp_path):
    path = tmp_path / "shop.py"
    path.write_text(PRINTS)
    assert mcp_doctor.main([str(path)]) == 1
    out = capsys.readouterr().out
    assert "error: it prints to standard output, which is the protocol's\n    the server: ready" in out
    assert "warning: applications refuse the name, or all tools because of it (claude, openai)\n" in out
    assert "\x1b" not in out
    assert out.endswith("\nerrors: 1, warnings: 1; looked at tools: 1\n")
    path.write_text(PRINTS.replace("print(", "str("))
    assert mcp_doctor.main([str(path)]) == 0
    assert mcp_doctor.main([str(path), "--strict"]) == 1
    assert mcp_doctor.main([str(path), "--strict", "--for", "cursor"]) == 0
    capsys.readouterr()


def test_a_command_and_an_app_in_a_file_are_targets_too(doctor, tmp_path):
    path = tmp_path / "shop.py"
    path.write_text(PRINTS.replace("print(", "str(").replace("app.run()", ""))
    assert [row[0] for row in doctor(f"{path}:app")[1]] == ["refused-name"]
    path.write_text(PRINTS)
    assert [row[0] for row in doctor("--", sys.executable, str(path))[1]] == ["refused-name", "stdout"]


def test_a_parameter_without_annotation_is_reported_until_it_has_one(doctor, tmp_path):
    path = tmp_path / "shop.py"
    path.write_text(PRINTS.replace("print(", "str(").replace("look()", "look(a, b=1)"))
    assert [row[:2] for row in doctor(str(path))[1][1:]] == [("no-type", f"tool 'a.b', {name}") for name in "ab"]
    path.write_text(path.read_text().replace("look(a, b=1)", "look(a: str, b: int = 1)"))
    assert [row[0] for row in doctor(str(path))[1]] == ["refused-name"]


def test_a_server_gets_its_variables_whenever_it_is_started(doctor, tmp_path):
    path = tmp_path / "shop.py"
    path.write_text(PRINTS.replace("print(", "import os; os.environ['SHOP_KEY'] == 'a b' or sys.exit(2); str("))
    assert doctor(str(path))[0] == 3
    assert [row[0] for row in doctor(str(path), "--env", "SHOP_KEY=a b")[1]] == ["refused-name"]


@pytest.mark.parametrize("words, wrong", [
    (["https://h/mcp", "--env", "K=v"], "for a URL, use --header or --token"),
    (["shop.py", "--header", "K:v"], "for a command, use --env"), (["shop.py", "--token", "t"], "for a command, use --env"),
    (["shop.py", "--ca", "shop.py"], "for a command, use --env"), (["https://h/mcp", "--ca", "none.pem"], "there is no file none.pem"),
    (["http://localhost.example/", "--token", "t"], "is not https: the token"),
    (["https://"], "a URL is http(s)://host"), (["shop.py", "--env", "K"], "expected KEY=VALUE"),
    (["https://h/mcp", "--header", "Authorization=secret"], "argument --header: expected NAME:VALUE\n"),
])  # fmt: skip
def test_a_wrong_command_line_is_refused_in_a_sentence(words, wrong, capsys):
    with pytest.raises(SystemExit) as refused:
        mcp_doctor.main(words)
    assert refused.value.code == 2 and wrong in capsys.readouterr().err


def test_what_cannot_be_used_is_told_with_a_status_of_its_own(capsys, tmp_path):
    assert mcp_doctor.main([str(tmp_path / "none.py")]) == 3
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")
    with pytest.raises(SystemExit) as wrong:
        mcp_doctor.main(["server.py", "--for", "emacs"])
    assert wrong.value.code == 2


# Whom a server lets in over HTTP.


@contextlib.contextmanager
def serving(app, **options):
    served = app.start_in_thread("http", port=0, **options)
    try:
        yield served.url
    finally:
        served.stop()


def test_a_server_of_ours_keeps_web_pages_out(doctor):
    with serving(mcp_lite.Server("closed")) as url:
        assert doctor(url, "--strict") == (0, [])


def test_a_server_that_wants_a_token_gets_it(doctor, monkeypatch):
    with serving(mcp_lite.Server("closed"), token="opensesame") as url:
        assert doctor(url, "--header", "Authorization: Bearer opensesame") == (0, [])
        assert doctor(url, "--token", "opensesame") == (0, [])
        assert doctor(url)[0] == doctor(url, "--token", "guess")[0] == 3
        monkeypatch.setenv("MCP_LITE_TOKEN", "opensesame")
        assert doctor(url) == (0, [])
        assert doctor({}, "--call", "--strict") == (0, []), "for a URL alone"


def test_a_certificate_that_ca_names_is_trusted_by_every_look(doctor, certificate, capsys):
    options = {"ssl": certificate, "token": "secret", "allowed_origins": "*"}
    with serving(mcp_lite.Server("open"), **options) as url:
        words = [url, "--header", "Authorization: Bearer secret"]
        assert mcp_doctor.main(words) == 3 and "pass its certificate: --ca FILE" in capsys.readouterr().err
        assert doctor(*words, "--ca", certificate[0]) == (0, [])
    with serving(mcp_lite.Server("open"), **{**options, "token": None}) as url:
        assert doctor(url, "--ca", certificate[0]) == (1, [("origin", url, "")])


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_a_server_that_looks_at_no_header_is_open_to_web_pages(doctor, revision):
    class Open(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            msg = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method, modern = msg["method"], revision == "2026-07-28"
            who = {"serverInfo": {"name": "open", "version": "1"}, "capabilities": {}}
            answer = {"error": {"code": -32601, "message": "no"}}
            if method == "server/discover" and modern:
                answer = {"result": {"supportedVersions": [revision], **who, "resultType": "complete",
                                     "ttlMs": 0, "cacheScope": "private"}}  # fmt: skip
            if method in ("initialize", "ping") and not modern:
                answer = {"result": {"protocolVersion": revision, **who}}
            data = json.dumps({"jsonrpc": "2.0", "id": msg.get("id"), **answer}).encode()
            self.send_response(200 if "id" in msg else 202)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data) if "id" in msg else 0))
            self.end_headers()
            self.wfile.write(data if "id" in msg else b"")

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Open) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            status, rows = doctor(f"http://127.0.0.1:{server.server_port}/mcp")
        finally:
            server.shutdown()
            thread.join()
    rules = ["origin", "host", "headers"] if revision == "2026-07-28" else ["origin", "host"]
    assert (status, [row[0] for row in rows]) == (1, rules)


@pytest.mark.parametrize("name, errors", [("quickstart", 0), ("everything_server", 1)])
def test_the_examples_pass(doctor, name, errors):
    """The one error is asked for by the official suite: a schema with everything in it."""
    status, rows = doctor(str(ROOT / "examples" / f"{name}.py"), "--call")
    assert status == errors
    rows = [row[:2] for row in rows if mcp_doctor.RULES[row[0]].level == "error"]
    assert rows == [("choice-on-top", "tool 'json_schema_2020_12_tool'")] * errors
