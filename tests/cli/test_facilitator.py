"""`toolserver facilitator`: what it refuses, and where it serves."""

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
from toolserver.serving import listen


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
    made, served = [], []

    async def serve(app: Any, port: int) -> None:
        served.append((type(app), port))

    monkeypatch.setattr(local_facilitator, "official", lambda rpc, secret: made.append((rpc, secret)))
    monkeypatch.setattr(command, "_serve", serve)
    done = CliRunner().invoke(facilitator, ["--rpc", "http://127.0.0.1:1", "--key-file", str(key), "--port", "0"])
    assert done.exit_code == 0, done.output
    assert made == [("http://127.0.0.1:1", f"0x{FEES_KEY}")]
    assert served == [(local_facilitator.LocalFacilitator, 0)]


async def test_it_serves_on_loopback_and_says_where(monkeypatch):
    said: dict[str, str] = {}
    started, asked = anyio.Event(), anyio.Event()

    def announce(**facts: str) -> None:
        said.update(facts)
        started.set()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def stop_when_asked(stop: anyio.Event) -> None:
        await asked.wait()
        stop.set()

    monkeypatch.setattr(listen, "announce", announce)
    monkeypatch.setattr(listen, "stop_signal", stop_when_asked)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks, httpx.AsyncClient() as client:
            tasks.start_soon(command._serve, app, 0)
            await started.wait()
            assert said["facilitator_url"].startswith("http://127.0.0.1:")
            assert (await client.get(said["facilitator_url"])).status_code == 204
            asked.set()
