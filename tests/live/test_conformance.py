"""The official conformance suites: all they score on our server with fixtures, and what the real one can have of it.

The real server is that of production: stateless, one JSON document for an answer, the fast path before the SDK. Tools
with names of the suite's fixtures come from a package beside ours (conformance_tools); what no tool can stand for is
listed by name, with the reason, in clients/conformance-production-*.yml.
"""

import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.processes import UNLIMITED, Program, started
from tests.live.programs import CLIENTS, NODE, installed, ran
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

SUITE_2025 = CLIENTS / "node_modules" / "conformance-2025"
SUITE_2026 = CLIENTS / "node_modules" / "conformance-2026"
BASELINE = CLIENTS / "conformance-baseline.yml"
GENERIC = {
    "2026-07-28": [
        "tools-list",
        "http-header-validation",
        "dns-rebinding-protection",
        "server-stateless",
        "caching",
        "server-sse-multiple-streams",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
        "resources-list",
        "sep-2164-resource-not-found",
    ],
    "2025-11-25": ["server-initialize", "ping", "tools-list", "dns-rebinding-protection", "resources-list"],
}
SKILLS = {"sep-2640-skills-enumeration": 32, "sep-2640-skills-manifest": 6, "sep-2640-skills-directory": 1}
ASKING = [
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
]


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started("serve", folder=tmp_path_factory.mktemp("fixtures"), module="tests.conformance") as program:
        yield program.ready["mcp_url"]


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    packages = {"TOOLSERVER_TOOLS": '["tools", "tests.live.conformance_tools"]'}
    with started("demo", folder=tmp_path_factory.mktemp("production"), **UNLIMITED, **packages) as program:
        yield program


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started("demo", folder=tmp_path_factory.mktemp("real")) as program:
        yield program.ready["mcp_url"]


def run_suite(suite: Path, url: str, output: Path, *arguments: Any) -> tuple[set[str], str]:
    """The scenarios that passed, and all that the suite said. It must be content as a whole."""
    installed(NODE, suite)
    command = (NODE, suite / "dist" / "index.js", "server", "--url", url, *arguments)
    done = ran(*command, timeout=250, TMPDIR=str(output))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    return set(re.findall(r"^✓ ([\w-]+): \d+ passed, 0 failed", said, re.MULTILINE)), said


@pytest.mark.parametrize(("version", "scored"), [("2026-07-28", 37), ("2025-11-25", 30)])
def test_every_scored_scenario_of_a_version_passes(fixtures: str, tmp_path: Path, version: str, scored: int) -> None:
    passed, _ = run_suite(SUITE_2026, fixtures, tmp_path, "--requirements", version, "-o", tmp_path)
    required = yaml.safe_load((SUITE_2026 / "requirements" / f"{version}.yaml").read_text())["server"]

    assert len(required) == scored
    assert set(required) <= passed
    assert "json-schema-2020-12" in passed
    assert version == "2025-11-25" or set(ASKING) <= passed
    assert version == "2025-11-25" or {"http-header-validation", "http-custom-header-server-validation"} <= passed


def test_every_scenario_of_the_first_suite_passes(fixtures: str, tmp_path: Path) -> None:
    passed, said = run_suite(SUITE_2025, fixtures, tmp_path, "--suite", "all", "-o", tmp_path)

    assert "✗" not in said
    assert len(passed) == 32


@pytest.mark.parametrize(
    ("version", "scenario"), [(version, scenario) for version, names in GENERIC.items() for scenario in names]
)
def test_the_real_server_passes_what_is_generic(real: str, tmp_path: Path, version: str, scenario: str) -> None:
    named = ("--scenario", scenario, "--spec-version", version, "--expected-failures", BASELINE, "-o", tmp_path)
    _, said = run_suite(SUITE_2026, real, tmp_path, *named)

    assert "stale" not in said.lower()


@proves("resources.skills")
@pytest.mark.parametrize(("scenario", "checks"), SKILLS.items())
def test_the_real_server_passes_the_scenarios_of_skills(real: str, tmp_path: Path, scenario: str, checks: int) -> None:
    _, said = run_suite(SUITE_2026, real, tmp_path, "--scenario", scenario, "-o", tmp_path)

    assert f"Passed: {checks}/{checks}, 0 failed, 0 warnings" in said


def messages_answered(program: Program) -> Counter[str]:
    """How many messages each way of answering took."""
    with urllib.request.urlopen(program.ready["metrics_url"]) as answer:
        text = answer.read().decode()
    found = re.findall(r'^toolserver_mcp_messages_total{answered="(\w+)"} (\d+)', text, re.MULTILINE)
    return Counter({way: int(count) for way, count in found})


@pytest.mark.parametrize(("version", "passing", "by_sdk"), [("2026-07-28", 9, 18), ("2025-11-25", 7, 3)])
def test_production_passes_all_that_tools_can_stand_for_and_nearly_all_of_it_without_the_sdk(
    production: Program, tmp_path: Path, version: str, passing: int, by_sdk: int
) -> None:
    baseline = CLIENTS / f"conformance-production-{version}.yml"
    before = messages_answered(production)
    options = ("--requirements", version, "--expected-failures", baseline, "-o", tmp_path)
    passed, said = run_suite(SUITE_2026, production.ready["mcp_url"], tmp_path, *options)
    answered = messages_answered(production) - before
    required = set(yaml.safe_load((SUITE_2026 / "requirements" / f"{version}.yaml").read_text())["server"])
    print(f"{version}: {dict(answered)}")

    assert "stale" not in said.lower()
    expected = {line.partition(":")[0] for line in yaml.safe_load(baseline.read_text())["server"]}
    assert required - expected <= passed
    assert len(required - expected) == passing
    assert answered.total() > 90
    assert answered["sdk"] <= by_sdk


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_each_thing_that_production_cannot_have_has_its_reason(version: str) -> None:
    text = (CLIENTS / f"conformance-production-{version}.yml").read_text()
    reason = ""
    for line in text.partition("server:\n")[2].splitlines():
        is_reason = line.startswith("  # ")
        assert is_reason or (line.startswith("  - ") and reason)
        reason = line if is_reason else reason


def test_the_baseline_is_short_and_gives_its_reasons() -> None:
    lines = BASELINE.read_text().splitlines()

    assert len(yaml.safe_load(BASELINE.read_text())["server"]) <= 7
    assert sum("needs the fixture" in line or "asked for though" in line for line in lines) == 4
