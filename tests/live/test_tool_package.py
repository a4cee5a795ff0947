"""A package of tools by somebody else: built as a wheel, installed, and served beside ours on every face."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.live.processes import ROOT, UNLIMITED, Program, ran, started
from tests.live.wheels import build_wheel, install_wheel
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

PACKAGE = ROOT / "examples" / "toolserver-tides"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example's wheel is installed into. Nothing is downloaded."""
    folder = tmp_path_factory.mktemp("package")
    wheel = build_wheel(PACKAGE, folder)
    assert wheel.name == "toolserver_tides-0.1.0-py3-none-any.whl"
    return install_wheel(wheel, folder / "site")


def path_of(installed: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{ROOT}:{installed}"}


@pytest.fixture(scope="module")
def program(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **UNLIMITED, **path_of(installed)) as program:
        yield program


@pytest.fixture
def client(program: Program) -> Iterator[httpx.Client]:
    owner = {"authorization": f"Bearer {program.ready['token']}"}
    with httpx.Client(base_url=program.url, headers=owner, timeout=20, trust_env=False) as client:
        yield client


def rpc(client: httpx.Client, method: str, **params: object) -> dict[str, object]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/api/mcp?toolset=all", json=message).raise_for_status().json()["result"]


@proves("operations.one-registry")
def test_its_free_tool_answers_over_rest_and_mcp_from_its_own_simulated_provider(client: httpx.Client) -> None:
    rest = client.get("/api/tide").raise_for_status().json()
    called = rpc(client, "tools/call", name="tide", arguments={})

    assert 0.5 < rest["data"]["level_m"] < 5.5
    assert [source["name"] for source in rest["_meta"]["sources"]] == ["Harbour.water_levels"]
    assert called["structuredContent"]["data"] == rest["data"]


def test_its_paid_tool_costs_a_credit_and_leaves_a_receipt(client: httpx.Client) -> None:
    balance = client.get("/api/payment/balance").raise_for_status().json()["credits"]
    answer = client.get("/api/pro/tide").raise_for_status()

    assert answer.json()["lowest_m"] < answer.json()["highest_m"]
    assert int(answer.headers["x-credits-remaining"]) == balance - 1
    receipt = client.post("/api/receipt/verify", json={"receipt": answer.headers["x-service-receipt"]}).json()
    assert (receipt["valid"], receipt["core"]["endpoint"]) == (True, "/api/pro/tide")
    assert client.get("/api/pro/tide", headers={"authorization": ""}).status_code == 402


def test_both_are_in_the_definitions_the_documents_and_the_command_line(
    client: httpx.Client, installed: Path, tmp_path: Path
) -> None:
    listed = {tool["name"] for tool in rpc(client, "tools/list")["tools"]}
    assert {"tide", "premium_tide"} <= listed
    for path in ("/api/llm-tools?format=openai&toolset=all", "/openapi.json", "/llms-full.txt", "/docs"):
        text = client.get(path).raise_for_status().text
        assert "premium_tide" in text or "/api/pro/tide" in text, path
        assert "tide" in text, path
    printed = json.loads(ran("tools", folder=tmp_path, **path_of(installed)).stdout)
    assert "premium_tide" in {tool["name"] for tool in printed}


def test_it_depends_on_our_distribution_and_not_on_another_of_the_name_of_our_package() -> None:
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["dependencies"] == [ours]
