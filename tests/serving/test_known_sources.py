"""What this machine has seen of sources is stored by `doctor`, read again by a running service, and never simulated."""

from datetime import date

import pytest

from tests.arranged import arrange_service
from tests.calls.parts import START
from tests.calls.toy import FIRST, ONE, REGISTRY
from tests.internet import Internet
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.registry.source_facts import Announced, GoneMember, Sighting, read_facts
from toolserver.serving.known_sources import SOURCE_FACTS, KnownSources
from toolserver.serving.packaged_texts import read_shipped_facts
from toolserver.upstream.http_sender import Announcement

TODAY = date(2027, 1, 15)
ENDS = Announcement(ONE.name, "sunset", "Mon, 01 Mar 2027 00:00:00 GMT", START.timestamp())


@pytest.fixture
async def service():
    internet = Internet()
    internet.serves(FIRST, {"value": 3})
    async with arrange_service(REGISTRY, ManualClock(START), transport=internet.transport) as made:
        yield made


class Gone:
    """A watch that misses a member of the source."""

    def list_gone(self):
        return [(ONE.name, "Number.at", START.timestamp() - 86400)]


async def test_what_answered_and_what_was_announced_is_stored_and_added_to_what_is_shipped(service, tmp_path):
    known = KnownSources(tmp_path, service.fetcher, Gone())
    before = known.read([])
    assert known.keep([ONE.name], [ENDS], TODAY) == tmp_path / SOURCE_FACTS
    facts = known.read([])
    assert facts.keys() - before.keys() <= {ONE.name}
    assert facts[ONE.name].seen == Sighting(TODAY, "live call")
    assert facts[ONE.name].announced == (Announced("sunset", ENDS.text, TODAY),)
    assert facts[ONE.name].gone == (GoneMember("Number.at", date(2027, 1, 14)),)
    assert read_facts((tmp_path / SOURCE_FACTS).read_bytes()).keys() == {ONE.name}
    assert facts["Kalshi.open_events"] == read_shipped_facts()["Kalshi.open_events"]


async def test_a_later_run_without_an_answer_keeps_the_earlier_sighting(service, tmp_path):
    known = KnownSources(tmp_path, service.fetcher, service.cache.member_watch)
    known.keep([ONE.name], [ENDS], date(2027, 1, 14))
    known.keep([], [], TODAY)
    assert known.read([])[ONE.name].seen == Sighting(date(2027, 1, 14), "live call")
    assert known.read([])[ONE.name].announced[0].text == ENDS.text


async def test_a_running_service_shows_what_doctor_stored_meanwhile_and_what_it_has_seen_itself(service, tmp_path):
    running, doctor = (KnownSources(tmp_path, service.fetcher, service.cache.member_watch) for _ in range(2))
    assert ONE.name not in running.read([])
    doctor.keep(["Other.source"], [], TODAY)
    assert running.read([])["Other.source"].seen == Sighting(TODAY, "live call")
    await service.pipeline.call(REGISTRY["number"], {}, Caller("192.0.2.1", limited=False))
    assert running.read([ONE.name])[ONE.name].seen == Sighting(TODAY, "live call")


async def test_on_a_simulated_world_nothing_is_stored_and_nothing_counts_as_seen(service):
    known = KnownSources(None, service.fetcher, Gone())
    await service.pipeline.call(REGISTRY["number"], {}, Caller("192.0.2.1", limited=False))
    assert known.keep([ONE.name], [ENDS], TODAY) is None
    assert known.read([ONE.name]) == read_shipped_facts()


async def test_a_damaged_file_is_reported_and_replaced(service, tmp_path, caplog):
    (tmp_path / SOURCE_FACTS).write_text("{")
    known = KnownSources(tmp_path, service.fetcher, service.cache.member_watch)
    assert known.read([]) == read_shipped_facts()
    assert "cannot be read" in caplog.text
    known.keep([ONE.name], [], TODAY)
    assert read_facts((tmp_path / SOURCE_FACTS).read_bytes()).keys() == {ONE.name}
