"""`toolserver facilitator`: what it refuses, and where it serves."""

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from click.testing import CliRunner

from tests.money.x402.chain import FEES_KEY
from toolserver.cli import facilitator as command
from toolserver.cli.facilitator import facilitator
from toolserver.money.x402 import local_facilitator
from toolserver.serving.listen import bind_socket


@pytest.mark.parametrize(
    ("text", "mode"), [("", 0o600), ("0x12", 0o600), ("zz" * 32, 0o600), (FEES_KEY, 0o644), ("é", 0o600)]
)
def test_a_key_file_that_is_refused(tmp_path, text, mode):
    path = tmp_path / "fees.key"
    path.write_text(text)
    path.chmod(mode)
    done = CliRunner().invoke(facilitator, ["--rpc", "http://127.0.0.1:1", "--key-file", str(path)])
    assert done.exit_code == 1
    assert str(path) in done.output
    assert not text or text not in done.output


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "fees.key"
    path.write_text(FEES_KEY)
    path.chmod(0o600)
    monkeypatch.setitem(sys.modules, "x402", None)
    done = CliRunner().invoke(facilitator, ["--rpc", "http://127.0.0.1:1", "--key-file", str(path)])
    assert done.exit_code == 1
    assert "pip install '.[x402]'" in done.output


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A file with a key, readable by its owner only."""
    path = tmp_path / "fees.key"
    path.write_text(FEES_KEY)
    path.chmod(0o600)
    return path


def test_it_needs_a_server_and_a_key_file(key):
    for words in (["--key-file", str(key)], ["--rpc", "http://127.0.0.1:1"]):
        assert CliRunner().invoke(facilitator, words).exit_code == 2


def test_it_makes_the_official_facilitator_with_the_key_and_the_server(key, monkeypatch):
    parts, served = [], []

    async def run_until_signal(app: Any, sock: socket.socket) -> None:
        served.append((type(app), sock.getsockname()[0]))
        sock.close()

    monkeypatch.setattr(local_facilitator, "official", lambda rpc, secret: parts.append((rpc, secret)))
    monkeypatch.setattr(command, "run_until_signal", run_until_signal)
    done = CliRunner().invoke(facilitator, ["--rpc", "http://127.0.0.1:1", "--key-file", str(key), "--port", "0"])
    assert done.exit_code == 0, done.output
    assert parts == [("http://127.0.0.1:1", f"0x{FEES_KEY}")]
    assert served == [(local_facilitator.LocalFacilitator, "127.0.0.1")]


async def test_it_says_where_it_serves_until_a_signal(capsys):
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    sock = bind_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks, httpx.AsyncClient() as client:
            tasks.start_soon(command.run_until_signal, app, sock)
            assert (await client.get(url)).status_code == 204
            os.kill(os.getpid(), signal.SIGTERM)
    assert json.loads(capsys.readouterr().out)["facilitator_url"] == url
