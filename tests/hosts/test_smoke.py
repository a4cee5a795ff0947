"""One everyday question in each real host: its model gets the answer, and only what our server and the host show it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.hosts.conftest import Report, door_to
from tests.hosts.hosts import HOSTS, Door, Host
from tests.hosts.model_server import Player, Result
from tests.hosts.reader import Reader, objects
from tests.hosts.tables import Row
from tests.live.processes import Program, control

pytestmark = [pytest.mark.live, pytest.mark.extra("HOSTS"), pytest.mark.timeout(120)]

QUESTION = "What is the price of bitcoin?"
Open = Callable[[type[Host], Door, Player], Host]


def payload_of(result: Result) -> dict[str, Any]:
    """Return the answer of the server, as it stands in the text that the model got."""
    return next(one for one in objects(result.text) if "source" in one)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_a_question_in_a_host_is_answered(host: type[Host], service: Program, open_host: Open, report: Report) -> None:
    chat = open_host(host, door_to(service, "http"), Reader(host.of_server))
    answer = chat.say(QUESTION)

    with control(service.ready["world_url"]) as world:
        expected = world.get("expect/btc-price")["price_usd"]
    shown = payload_of(chat.model.turns[-1].results[-1])["data"]["price_usd"]
    report(Row(host.name, "http", QUESTION, shown == pytest.approx(expected, rel=0.02)))
    assert shown == pytest.approx(expected, rel=0.02)
    assert str(shown).removesuffix(".0") in answer
