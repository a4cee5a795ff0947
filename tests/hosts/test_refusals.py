"""Every refusal is shown to the model of each host: the code, the reason and the next step, with x402 and without.

Two clients without a model judge as well, because they check results against schemas harder than hosts do.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hosts.conftest import Report, door_to
from tests.hosts.hosts import HOSTS, Door, Host
from tests.hosts.model_server import Call, Json, Player, Turn
from tests.hosts.reader import SEARCHES, find_problem, objects
from tests.hosts.tables import Row
from tests.live.processes import UNLIMITED, Program, started
from tests.live.programs import CLIENTS, NODE, ran, told
from tests.live.programs import installed as clients_installed
from toolserver.registry.error_codes import PROBLEMS

pytestmark = [pytest.mark.live, pytest.mark.extra("CONVERSATIONS"), pytest.mark.timeout(900)]

Open = Callable[[type[Host], Door, Player], Host]
Refusal = tuple[str, str, Json]
ANSWERED = ("btc_price", {"coin": "ETH"})
INSPECTOR = CLIENTS / "node_modules" / ".bin" / "mcp-inspector"
AT_ONCE = 12  # calls at a sentence
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


class Caller:
    """Plays a model that calls one tool after the other, some at each sentence, and searches for one that is not shown.

    Hosts stop a model that calls dozens of tools for one sentence, or ask it whether it is going round in circles.
    """

    def __init__(self, script: list[Refusal]) -> None:
        self.script = script
        self.texts: list[str] = []
        """What the host has shown of each call so far."""
        self._before = 0

    def __call__(self, turn: Turn) -> Call | str:
        results = [one for one in turn.results if one.call.name not in SEARCHES]
        if not turn.results:
            self._before = len(self.texts)
        self.texts[self._before :] = [one.text for one in results]
        if len(self.texts) == len(self.script) or len(results) == AT_ONCE or len(turn.results) > 3 * AT_ONCE:
            return "I have tried that."
        _, name, arguments = self.script[len(self.texts)]
        shown = next((tool for tool in turn.tools if tool.name.endswith(name)), None)
        if shown is not None:
            return Call(shown.name, arguments)
        search = next((tool for tool in turn.tools if tool.name in SEARCHES), None)
        return Call(search.name, {"query": name}) if search else f"{name} is not shown."


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_every_refusal_is_shown(host: type[Host], shop: tuple[str, Program], open_host: Open, report: Report) -> None:
    x402, program = shop
    script = refusals(program.ready["token"])
    caller = Caller(script)
    chat = open_host(host, door_to(program, "http", whole=True), caller)
    for _ in range(0, len(script), AT_ONCE):
        chat.say("Try some more.")

    hidden = list(find_hidden(script, caller.texts))
    report(Row(host.name, f"http, {x402}", "every refusal is shown", not hidden, "; ".join(hidden)[:200]))
    assert hidden == []


def find_hidden(script: list[Refusal], texts: list[str]) -> Iterator[str]:
    """The refusals whose text lacks the code, the reason or the next step, and those that were never reached."""
    if len(texts) < len(script):
        yield f"{len(texts)} of {len(script)} were called"
    for (code, name, _), text in zip(script, texts, strict=False):
        problem = find_problem(text) or {}
        step = PROBLEMS[code].next_tool
        if problem.get("error") != code or not problem.get("detail"):
            yield f"{name} {code}: {text[:300]}"
        elif step and (problem.get("next") or {}).get("tool") != step:
            yield f"{name} {code} names no next step: {text[:300]}"


def ask_typescript(url: str, script: list[Refusal]) -> tuple[list[str], list[str]]:
    """Return the tools that the TypeScript SDK 1 lists, and the texts that it returns: an answer, then refusals."""
    calls = [ANSWERED, *((name, arguments) for _, name, arguments in script)]
    seen = told(NODE, "refused.mjs", url, json.dumps(calls))
    return seen["tools"], seen["texts"]


def ask_inspector(url: str, script: list[Refusal]) -> tuple[list[str], list[str]]:
    """Return the same of the Inspector's command line, which is a process for each call and fails at a refusal."""
    target = (NODE, INSPECTOR, "--cli", url, "--transport", "http", "--protocol-era", "legacy")
    tools = told(*target, "--method", "tools/list", "--strict")["tools"]
    texts = []
    for name, arguments in [ANSWERED, *((name, arguments) for _, name, arguments in script)]:
        call = ("--method", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments))
        done = ran(*target, *call)
        texts.append(done.stdout + done.stderr)
    return [tool["name"] for tool in tools], texts


JUDGES = {"TypeScript SDK 1": ask_typescript, "Inspector CLI": ask_inspector}


@pytest.mark.parametrize("judge", JUDGES)
def test_strict_clients_list_the_tools_call_them_and_show_refusals(
    judge: str, shop: tuple[str, Program], report: Report
) -> None:
    clients_installed(NODE, INSPECTOR)
    x402, program = shop
    script = refusals(program.ready["token"])
    if judge == "Inspector CLI":  # it takes seconds a call: what users meet, and what asks for money
        script = [*script[:3], *(one for one in script[3:] if PROBLEMS[one[0]].status == 402)]
    tools, (answer, *texts) = JUDGES[judge](f"{program.ready['mcp_url']}?toolset=all", script)

    hidden = list(find_hidden(script, texts))
    answered = next((one for one in objects(answer) if one.get("symbol") == "ETH"), {})
    right = bool(answered.get("price_usd")) and "weather" in tools and not hidden
    report(Row(judge, f"http, {x402}", "every refusal is shown", right, "; ".join(hidden)[:200]))
    assert hidden == []
    assert "weather" in tools
    assert answered["price_usd"] > 0
