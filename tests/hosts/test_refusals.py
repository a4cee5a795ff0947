"""Every refusal is shown to the model of each host: the code, the reason and the next step, with x402 and without."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hosts.conftest import Report, door_to
from tests.hosts.hosts import HOSTS, Door, Host
from tests.hosts.model_server import Call, Json, Player, Turn
from tests.hosts.reader import SEARCHES, find_problem
from tests.hosts.tables import Row
from tests.live.processes import UNLIMITED, Program, started
from toolserver.registry.error_codes import PROBLEMS

pytestmark = [pytest.mark.live, pytest.mark.extra("CONVERSATIONS"), pytest.mark.timeout(900)]

Open = Callable[[type[Host], Door, Player], Host]
Refusal = tuple[str, str, Json]
NOBODYS = f"svc_live_{'0' * 64}"
X402 = {
    "TOOLSERVER_X402__ENABLED": "true",
    "TOOLSERVER_X402__FACILITATOR_URL": "http://127.0.0.1:9",
    "TOOLSERVER_X402__PAY_TO": f"0x{'11' * 20}",
}


@pytest.fixture(scope="module", params=["x402 off", "x402 on"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Program]]:
    """The demo with the refusing tool."""
    more = UNLIMITED | (X402 if request.param == "x402 on" else {})
    more |= {"TOOLSERVER_TOOLS": json.dumps(["tools", "tests.hosts.refusing"])}
    folder: Path = tmp_path_factory.mktemp("demo")
    with started("demo", folder=folder, **more) as program:
        yield request.param, program


def refusals(token: str) -> list[Refusal]:
    """The expected code, the tool and the arguments: every code by a tool that confuses, some as users meet them."""
    every = [(code, "sample_refusal", {"code": code, "token": token}) for code in PROBLEMS]
    return [
        ("missing_token", "premium_briefing", {}),
        ("invalid_token", "premium_briefing", {"token": NOBODYS}),
        ("invalid_arguments", "health", {"detailed": True}),
        *every,
    ]


def player_of(script: list[Refusal]) -> Player:
    """Calls one tool after the other, and searches for one that is not shown."""

    def play(turn: Turn) -> Call | str:
        done = sum(result.call.name not in SEARCHES for result in turn.results)
        if done == len(script) or len(turn.results) > 2 * len(script):
            return "I have tried everything."
        _, name, arguments = script[done]
        shown = next((tool for tool in turn.tools if tool.name.endswith(name)), None)
        if shown is not None:
            return Call(shown.name, arguments)
        search = next((tool for tool in turn.tools if tool.name in SEARCHES), None)
        return Call(search.name, {"query": name}) if search else f"{name} is not shown."

    return play


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_every_refusal_is_shown(host: type[Host], shop: tuple[str, Program], open_host: Open, report: Report) -> None:
    x402, program = shop
    script = refusals(program.ready["token"])
    chat = open_host(host, door_to(program, "http", whole=True), player_of(script))
    chat.say("Try everything.")

    results = [one for one in chat.model.turns[-1].results if one.call.name not in SEARCHES]
    hidden = []
    for (code, name, _), result in zip(script, results, strict=True):
        problem = find_problem(result.text) or {}
        step = PROBLEMS[code].next_tool
        if problem.get("error") != code or not problem.get("detail"):
            hidden.append(f"{name} {code}: {result.text[:300]}")
        elif step and (problem.get("next") or {}).get("tool") != step:
            hidden.append(f"{name} {code} names no next step: {result.text[:300]}")
    report(Row(host.name, f"http, {x402}", f"{len(script)} refusals are shown", not hidden, "; ".join(hidden)[:200]))
    assert hidden == []
