"""Calls by family of agents over the past day."""

from datetime import UTC, datetime, timedelta

import pytest

from toolserver.core.usage_stats import KEEP_H, OTHER, RECENT, Usage

START = datetime(2027, 1, 15, 8, 0, 30, tzinfo=UTC)


class Day:
    """A usage count whose clock is set by hand."""

    def __init__(self):
        self.now = START
        self.usage = Usage(lambda: self.now)

    def count(self, agent="curl/8", endpoint="/forex", status=200):
        self.usage.count(agent, endpoint, status, "free", self.now.timestamp())


@pytest.fixture
def day():
    return Day()


@pytest.mark.parametrize(
    ("agent", "family"),
    [
        ("Mozilla/5.0 (compatible; GPTBot/1.2)", "GPTBot"),
        ("claude-code/2.1", "Claude Code"),
        ("Claude-User/1.0", "Claude-User"),
        ("CURL/8.4", "curl"),
        ("Mozilla/5.0 (X11)", "browser"),
        ("something else", OTHER),
        ("", OTHER),
    ],
)
def test_an_agent_is_counted_by_its_family(day, agent, family):
    day.count(agent)
    assert day.usage.counted().agents == {family: 1}


def test_families_come_most_frequent_first_then_by_name(day):
    for agent in ("wget", "curl", "axios", "curl"):
        day.count(agent)
    counted = day.usage.counted()
    assert (counted.total, list(counted.agents.items())) == (4, [("curl", 2), ("axios", 1), ("wget", 1)])


def test_a_call_drops_out_after_a_day_and_is_forgotten_after_two(day):
    day.count()
    day.now += timedelta(hours=23)
    assert day.usage.counted().total == 1
    day.now += timedelta(hours=1)
    assert day.usage.counted().total == 0
    assert len(day.usage.rows()) == 1
    day.now = START + timedelta(hours=KEEP_H)
    day.count("wget")
    assert [family for _, family, _ in day.usage.rows()] == ["wget"]


def test_the_last_calls_come_newest_first_by_the_minute_and_are_bounded(day):
    for number in range(RECENT + 5):
        day.count(endpoint=f"/{number}", status=402)
    recent = day.usage.counted().recent
    assert (len(recent), recent[0].endpoint, recent[-1].endpoint) == (RECENT, f"/{RECENT + 4}", "/5")
    assert (recent[0].at, recent[0].status, recent[0].tier) == (START.replace(second=0), 402, "free")


def test_since_is_when_counting_began_if_that_is_less_than_a_day_ago(day):
    assert day.usage.counted().since == START
    day.now += timedelta(hours=30)
    assert day.usage.counted().since == day.now - timedelta(hours=24)


def test_stored_hours_are_added_to_what_was_counted_meanwhile(day):
    day.count()
    ((hour, family, hits),) = day.usage.rows()
    day.usage.restore([(hour, family, hits + 4), (hour - 3, "wget", 1)])
    counted = day.usage.counted()
    assert counted.agents == {"curl": 6, "wget": 1}
    assert counted.since == datetime.fromtimestamp((hour - 3) * 3600, UTC)
