"""One answer, five doors: REST, MCP of both eras over HTTP, `toolserver call`, and `toolserver stdio`."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.live.processes import COMMAND, CORE, PATHS, STOP_S, UNLIMITED, Program, control, environment, ran, started
from tests.requirements import proves
from toolserver.mcp.messages import CAPABILITIES_KEY, MODERN, VERSION_KEY

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

LEGACY = "2025-11-25"
ENVELOPE = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A demo that nobody has asked yet, at an instant that does not pass: no answer expires between two doors."""
    with (
        started("demo", folder=tmp_path_factory.mktemp("still"), **UNLIMITED) as demo,
        control(demo.ready["world_url"]) as sim,
    ):
        sim.put("clock", {"freeze": True})
        yield demo
        sim.put("clock", {"freeze": False})


def beside(server: Program) -> dict[str, str]:
    """The environment of another process on the same world."""
    return {"TOOLSERVER_UPSTREAM__VIA": server.ready["world_url"], **UNLIMITED}


def data_dir(server: Program) -> str:
    return str(server.log.parent / "data")


def message(name: str, *, modern: bool) -> dict[str, Any]:
    meta = {"_meta": ENVELOPE} if modern else {}
    return {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name, "arguments": {}, **meta}}


def over_http(server: Program, name: str, *, modern: bool) -> httpx.Response:
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": MODERN if modern else LEGACY}
    if modern:
        headers |= {"mcp-method": "tools/call", "mcp-name": name}
    return httpx.post(
        f"{server.url}/api/mcp?toolset=all", json=message(name, modern=modern), headers=headers, timeout=20
    )


def assert_carries(answer: bytes, payload: bytes) -> None:
    """A tool result with the payload twice: as structured content, byte for byte, and as text."""
    assert b'"structuredContent":' + payload + b"," in answer
    result = json.loads(answer)["result"]
    assert result["isError"] is False
    assert [item["type"] for item in result["content"]] == ["text"]
    assert result["content"][0]["text"].encode() == payload
    assert result["structuredContent"] == json.loads(payload)


@proves("faces.same-bytes", "mcp.structured-equals-text")
@pytest.mark.parametrize("name", CORE)
def test_every_door_gives_the_same_bytes(still: Program, name: str) -> None:
    rest = httpx.get(still.url + PATHS[name], headers={"accept-encoding": "identity"}, timeout=20)
    again = httpx.get(still.url + PATHS[name], headers={"accept-encoding": "gzip"}, timeout=20)
    assert rest.status_code == again.status_code == 200
    assert rest.content == again.content
    for modern in (True, False):
        answer = over_http(still, name, modern=modern)
        assert answer.status_code == 200
        assert_carries(answer.content, rest.content)
    called = ran("call", name, "--json", "--data-dir", data_dir(still), folder=still.log.parent, **beside(still))
    assert called.returncode == 0, called.stderr
    assert called.stdout == rest.content + b"\n"
    assert "Traceback" not in called.stderr.decode()


@proves("faces.same-bytes", "mcp.structured-equals-text")
@pytest.mark.parametrize("modern", [True, False], ids=["2026-07-28", "2025-11-25"])
def test_stdio_gives_the_bytes_of_rest(still: Program, modern: bool) -> None:
    rest = {name: httpx.get(still.url + PATHS[name], timeout=20).content for name in CORE}
    start = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [] if modern else [{"jsonrpc": "2.0", "id": "start", "method": "initialize", "params": start}]
    lines += [message(name, modern=modern) for name in CORE]
    with subprocess.Popen(
        [*COMMAND, "stdio", "--data-dir", data_dir(still)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(beside(still)),
        cwd=still.log.parent,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        process.stdin.flush()
        answers = {json.loads(line)["id"]: line for line in (process.stdout.readline() for _ in lines)}
        _, errors = process.communicate(timeout=STOP_S)
    assert process.returncode == 0
    assert b"Traceback" not in errors
    for name in CORE:
        assert_carries(answers[name], rest[name])


@proves("faces.same-bytes")
def test_health_is_the_same_tool_behind_every_door(still: Program) -> None:
    rest = httpx.get(f"{still.url}/api/health").json()
    mcp = over_http(still, "health", modern=True).json()["result"]["structuredContent"]
    called = json.loads(
        ran("call", "health", "--json", "--data-dir", data_dir(still), folder=still.log.parent, **beside(still)).stdout
    )
    for other in (mcp, called):
        assert set(other) == set(rest)
        assert set(other["data"]) == set(rest["data"])
        assert other["data"]["version"] == rest["data"]["version"] == "1.15.0"
        assert other["source"] == rest["source"]


@proves("faces.same-bytes")
def test_a_refusal_says_the_same_at_every_door(still: Program) -> None:
    rest = httpx.get(f"{still.url}/api/climate/earthquakes?period=year").json()
    asked = message("climate_earthquakes", modern=False)
    asked["params"]["arguments"] = {"period": "year"}
    mcp = httpx.post(f"{still.url}/api/mcp?toolset=all", json=asked).json()["result"]
    called = ran(
        *("call", "climate_earthquakes", "--json", "--args", '{"period": "year"}', "--data-dir", data_dir(still)),
        folder=still.log.parent,
        TOOLSERVER_BASE_URL=still.url,
        **beside(still),
    )
    assert mcp["isError"] is True
    assert called.returncode == 1
    said = [rest, json.loads(mcp["content"][0]["text"]), json.loads(called.stdout)]
    assert [{k: v for k, v in one.items() if k != "request_id"} for one in said] == [
        {k: v for k, v in rest.items() if k != "request_id"}
    ] * 3
