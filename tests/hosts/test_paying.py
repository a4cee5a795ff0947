"""A call without credits in real hosts: who asks the person and opens the page, and what those show who do not.

Claude Code speaks the modern era and can open addresses: in a terminal it asks, and without one it cancels by itself.
Codex says that it can open addresses, but speaks the legacy era, where a server without sessions cannot ask: in a
terminal, too, it opens nothing, and shows the refusal.
"""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.hosts.conftest import Report, door_to
from tests.hosts.hosts import ClaudeCode, Codex, CommandLineHost, Door, Host
from tests.hosts.model_server import Call, Player, Turn
from tests.hosts.reader import SEARCHES, find_problem
from tests.hosts.tables import Row
from tests.live.processes import Program
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.extra("HOSTS"), pytest.mark.timeout(300)]

TOOL, PRICE = "premium_macro", 2
QUESTION = "Give me the macro report."
DONE = "Finished"
KEYS = {"Decline": "\r", "again": "\r", DONE: "/exit\r"}
"""What a person types: Enter on "Open in browser", Enter on "I'm done, continue" beside "Open again", and good-bye."""
CODEX_KEYS = {
    "Meet": "\x1b[B\r",
    "is not shown": f"\x1b[200~{QUESTION}\x1b[201~\r",
    DONE: "\x1b[200~/quit\x1b[201~\r",
}
"""To Codex: "Use existing model" if it advertises one, the question again if its tools come later than the first turn,
and good-bye. What is typed quickly it takes for a paste, which Enter does not send, unless it is marked as one."""
Open = Callable[[type[Host], Door, Player], Host]


def call_once(turn: Turn) -> Call | str:
    """Plays a model that calls the tool, which it searches for if it is not shown, and says no more than that."""
    if any(TOOL in result.call.name and result.call.name not in SEARCHES for result in turn.results):
        return f"{DONE}."
    shown = next((tool for tool in turn.tools if tool.name.endswith(TOOL)), None)
    if shown is not None:
        return Call(shown.name, {}, shown.namespace)
    search = next((tool for tool in turn.tools if tool.name in SEARCHES), None)
    return Call(search.name, {"query": TOOL}) if search and len(turn.results) < 3 else f"{TOOL} is not shown."


def read_result(chat: Host) -> str:
    """What the host showed its model of the call."""
    return chat.model.turns[-1].results[-1].text


def read_credits(program: Program) -> int:
    bearer = {"authorization": f"Bearer {program.ready['token']}"}
    balance: dict[str, Any] = httpx.get(f"{program.url}/api/payment/balance", headers=bearer, trust_env=False).json()
    return int(balance["credits"])


@proves("elicitation.hosts")
def test_claude_code_asks_opens_the_page_and_gets_the_answer_once_it_is_paid(
    service: Program, open_host: Open, report: Report
) -> None:
    chat = open_host(ClaudeCode, door_to(service, "http", whole=True), call_once)
    assert isinstance(chat, ClaudeCode)
    before = read_credits(service)
    screen = chat.run_in_terminal(QUESTION, answers=KEYS)

    [opened] = chat.read_opened()
    answer = read_result(chat)
    is_right = "yield_curve" in answer and read_credits(service) == before - PRICE
    report(Row(chat.name, "http, terminal", "a call without credits is paid on the page", is_right, answer[:200]))
    assert opened.startswith(f"{service.url}/buy?p=")
    assert "code" in screen, "what a person compares is not cut off"
    assert is_right


@proves("elicitation.hosts")
def test_codex_in_a_terminal_opens_nothing_and_shows_the_refusal_to_model_and_person(
    service: Program, open_host: Open, report: Report
) -> None:
    chat = open_host(Codex, door_to(service, "http", whole=True), call_once)
    assert isinstance(chat, Codex)
    before = read_credits(service)
    screen = chat.run_in_terminal("--no-alt-screen", QUESTION, answers=CODEX_KEYS)

    problem = find_problem(read_result(chat)) or {}
    is_right = problem.get("error") == "missing_token" and problem.get("signup") == f"{service.url}/docs/payments"
    report(Row(chat.name, "http, terminal", "a call without credits is refused", is_right, json.dumps(problem)[:200]))
    assert is_right
    assert "missing_token" in screen
    assert chat.read_opened() == []
    assert read_credits(service) == before


@proves("elicitation.hosts")
@pytest.mark.parametrize("host", [ClaudeCode, Codex], ids=lambda host: host.name)
def test_who_opens_nothing_shows_what_to_do_and_where(
    host: type[CommandLineHost], service: Program, open_host: Open, report: Report
) -> None:
    chat = open_host(host, door_to(service, "http", whole=True), call_once)
    before = read_credits(service)
    chat.say(QUESTION)

    problem = find_problem(read_result(chat)) or {}
    is_right = problem.get("error") == "missing_token" and problem.get("signup") == f"{service.url}/docs/payments"
    report(
        Row(chat.name, "http", "a call without credits is refused with the link", is_right, json.dumps(problem)[:200])
    )
    assert is_right
    assert chat.read_opened() == []
    assert read_credits(service) == before
