"""examples/rest_api, examples/fastapi and examples/docker."""

import asyncio
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from processes import free_port

from mcp_lite import AuthError, Client, ToolError

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@contextlib.contextmanager
def running(*command, **env):
    """Run a server, its stderr kept; end it by SIGTERM, and in any case."""
    process = subprocess.Popen(
        command, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.said = process.communicate(timeout=20)[0]
        finally:
            process.kill()


def fetch(url, seconds=20):
    """Return a page, as soon as there is one."""
    limit = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return response.read().decode()
        except OSError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.05)


@pytest.fixture
def weather(example):
    """A client of the REST example, in front of its stand-in."""

    @contextlib.contextmanager
    def begin(key="secret-key"):
        with running(*example("rest_api/stand_in.py", "0", "secret-key")) as api:
            url = api.stdout.readline().strip()
            lines = []
            env = {"WEATHER_URL": url, "WEATHER_KEY": key}
            yield Client(example("rest_api/weather.py"), env=env, stderr=lines.append)
            assert key not in "\n".join(lines)

    return begin


def test_a_rest_api_answers_through_tools_without_fields_that_no_model_needs(weather):
    async def main(client):
        async with client as c:
            assert await c.call("weather", {"city": "Oslo"}) == {"city": "Oslo", "degrees": -3.5, "sky": "snow"}
            assert len(await c.call("forecast", {"city": "Rome", "days": 2})) == 2
            with pytest.raises(ToolError, match="no such city: check the spelling") as error:
                await c.call("weather", {"city": "Nowhere"})
            assert "table" not in str(error.value)
            with pytest.raises(ToolError, match="days"):
                await c.call("forecast", {"city": "Rome", "days": 8})

    with weather() as client:
        asyncio.run(main(client))


def test_a_wrong_key_is_reported_and_not_shown(weather):
    async def main(client):
        async with client as c:
            with pytest.raises(ToolError, match="refused our key") as error:
                await c.call("weather", {"city": "Oslo"})
            assert "wrong-key" not in str(error.value)

    with weather("wrong-key") as client:
        asyncio.run(main(client))


def test_routes_and_tools_of_a_fastapi_application_share_its_database():
    pytest.importorskip("fastapi")
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES / "fastapi"), "api:api"]

    async def main():
        url = f"http://127.0.0.1:{port}/ai/mcp"
        async with Client(url, token="secret") as c:
            assert await c.call("order", {"item": "tea"}) == 1
            calls = [c.call("order", {"item": "tea"}) for _ in range(200)]
            assert sorted(await asyncio.gather(*calls)) == [*range(2, 202)]
        with pytest.raises(AuthError):
            async with Client(url) as c:
                await c.list_tools()

    with running(*command, "--port", str(port), "--timeout-graceful-shutdown", "5", MCP_TOKEN="secret") as server:
        assert json.loads(fetch(f"http://127.0.0.1:{port}/orders")) == []
        asyncio.run(main())
        assert json.loads(fetch(f"http://127.0.0.1:{port}/orders")) == ["tea"] * 201
    assert "Application shutdown complete" in server.said and "Traceback" not in server.said


def test_the_server_of_the_container_needs_a_token_is_probed_and_ends_in_order(tmp_path):
    text = (EXAMPLES / "docker" / "Dockerfile").read_text()
    for name in re.search(r"^COPY (.+) \./$", text, re.M)[1].split():
        where = EXAMPLES / "docker" / name
        shutil.copy(where if where.exists() else EXAMPLES.parent / name, tmp_path)
    server, port = [sys.executable, str(tmp_path / "server.py")], free_port()
    refused = subprocess.run(server, env={**os.environ, "TOKEN": ""}, capture_output=True, text=True, timeout=20)
    assert (refused.returncode, refused.stderr) == (1, "the variable TOKEN is not set\n")

    async def main():
        async with Client(f"http://127.0.0.1:{port}/mcp", token="secret") as c:
            assert await c.call("add", {"a": 1, "b": 2}) == 3

    with running(*server, TOKEN="secret", PORT=str(port)) as process:
        fetch(f"http://127.0.0.1:{port}/healthz")
        asyncio.run(main())
    assert process.returncode == 0 and "Traceback" not in process.said


def test_the_dockerfile_passes_its_linter():
    hadolint = shutil.which("hadolint", path=str(pathlib.Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([hadolint, str(EXAMPLES / "docker" / "Dockerfile")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_tokens_of_colleagues_are_found_wherever_the_server_is_started(tmp_path):
    page = (EXAMPLES / "production" / "README.md").read_text()
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "tokens.txt" in block]
    shown = "class app:\n    def run(transport, *, token, ssl, **options):\n        print([*token], *ssl)\n"
    (tmp_path / "server.py").write_text(shown + code)
    (tmp_path / "tokens.txt").write_text("ann 0a\nbob 1b\n")
    command = [sys.executable, str(tmp_path / "server.py")]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=60)
    assert done.stdout == f"['0a', '1b'] {tmp_path}/cert.pem {tmp_path}/key.pem\n", done.stderr
