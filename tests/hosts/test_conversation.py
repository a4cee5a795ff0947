"""Ten everyday questions in each host over each transport: the model gets the value that the world expects."""

from collections.abc import Callable

import pytest

from tests.hosts.conftest import Report, door_to
from tests.hosts.conversation import Person
from tests.hosts.hosts import HOSTS, Door, Host
from tests.hosts.model_server import Player
from tests.hosts.reader import Reader
from tests.hosts.tables import Row
from tests.live.processes import Program, control

pytestmark = [pytest.mark.live, pytest.mark.extra("CONVERSATIONS"), pytest.mark.timeout(900)]

TRANSPORTS = ("http", "bridge", "oauth")
Open = Callable[[type[Host], Door, Player], Host]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_ten_everyday_questions(
    host: type[Host], transport: str, service: Program, open_host: Open, report: Report
) -> None:
    with control(service.ready["world_url"]) as world:
        chat = open_host(host, door_to(service, transport, whole=host.defers), Reader(host.of_server))
        person = Person(chat, service, world)
        person.converse()
    for sentence, why in person.rows:
        report(Row(host.name, transport, sentence[:60], not why, why[:200]))
    assert [row for row in person.rows if row[1]] == []
    assert len(person.rows) == 11
