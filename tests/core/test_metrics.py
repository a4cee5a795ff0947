"""What operators read at /metrics."""

from datetime import UTC, datetime, timedelta

import pytest

from toolserver.core.metrics import KEEP_H, OTHER, RECENT, Metrics, Usage


@pytest.fixture
def metrics():
    return Metrics()


def lines(metrics, name):
    """The samples of a metric, without their help."""
    return sorted(line for line in metrics.text().decode().splitlines() if line.startswith(name))


def test_an_exchange_counts_and_tells_whether_the_source_is_up(metrics):
    metrics.fetched("A", "ok", 0.1, True)
    metrics.fetched("A", "http_500", 0.1, True)
    assert lines(metrics, "toolserver_source_up") == ['toolserver_source_up{source="A"} 0.0']
    metrics.fetched("A", "ok", 0.1, True)
    assert lines(metrics, "toolserver_source_up") == ['toolserver_source_up{source="A"} 1.0']
    assert lines(metrics, "toolserver_source_fetches_total") == [
        'toolserver_source_fetches_total{outcome="http_500",source="A"} 1.0',
        'toolserver_source_fetches_total{outcome="ok",source="A"} 2.0',
    ]


def test_a_refusal_of_our_own_counts_but_says_nothing_about_the_source(metrics):
    metrics.fetched("A", "ok", 0.1, True)
    metrics.fetched("A", "budget", 0.0, False)
    metrics.fetched("B", "budget", 0.0, False)
    assert lines(metrics, "toolserver_source_up") == ['toolserver_source_up{source="A"} 1.0']
    assert lines(metrics, "toolserver_source_seconds_count") == ['toolserver_source_seconds_count{source="A"} 1.0']
    assert len(lines(metrics, "toolserver_source_fetches_total")) == 3


def test_calls_are_counted_by_tool_tier_and_outcome_and_hits_are_added_when_metrics_are_read(metrics):
    metrics.called("forex", "free", "ok", 0.01)
    metrics.called("forex", "free", "ok", 0.01)
    for _ in range(3):
        metrics.hit("forex", "free")
    expected = [
        'toolserver_calls_total{outcome="hit",tier="free",tool="forex"} 3.0',
        'toolserver_calls_total{outcome="ok",tier="free",tool="forex"} 2.0',
    ]
    assert lines(metrics, "toolserver_calls_total") == expected
    assert lines(metrics, "toolserver_calls_total") == expected
    assert lines(metrics, "toolserver_call_seconds_count") == ['toolserver_call_seconds_count{tool="forex"} 2.0']


def test_credits_are_charged_or_released_with_a_reason(metrics):
    metrics.settled("briefing", 5, None)
    metrics.settled("briefing", 5, None)
    metrics.settled("briefing", 3, "stale_data")
    assert lines(metrics, "toolserver_credits_charged_total") == [
        'toolserver_credits_charged_total{tool="briefing"} 10.0'
    ]
    metrics.attempted("ok")
    metrics.attempted("dns")
    assert lines(metrics, "toolserver_webhook_attempts_total") == [
        'toolserver_webhook_attempts_total{outcome="dns"} 1.0',
        'toolserver_webhook_attempts_total{outcome="ok"} 1.0',
    ]
    assert lines(metrics, "toolserver_credits_released_total") == [
        'toolserver_credits_released_total{reason="stale_data"} 3.0'
    ]


@pytest.mark.parametrize(("state", "is_up"), [("closed", 1.0), ("open", 0.0), ("half_open", 0.0)])
def test_a_sister_ledger_is_up_while_its_circuit_is_closed(metrics, state, is_up):
    assert lines(metrics, "toolserver_ledger") == []
    metrics.follow(lambda: (state, 2, 12.5, 7, None))
    assert lines(metrics, "toolserver_ledger") == [
        "toolserver_ledger_away 2.0",
        "toolserver_ledger_outbox 7.0",
        "toolserver_ledger_rejected 0.0",
        f"toolserver_ledger_up {is_up}",
    ]


def test_two_services_in_one_process_do_not_mix_their_numbers(metrics):
    Metrics().called("forex", "free", "ok", 0.01)
    assert lines(metrics, "toolserver_calls_total") == []


def test_the_backlog_of_signed_payments_is_measured_when_it_is_asked_for():
    metrics, backlog = Metrics(), (3, 61.5, 1)
    metrics.watch_payments(lambda: backlog)
    text = metrics.text().decode()
    for line in ("pending 3.0", "pending_age_seconds 61.5", "in_review 1.0"):
        assert f"toolserver_payments_{line}" in text
    backlog = (0, 0.0, 0)
    assert "toolserver_payments_pending 0.0" in metrics.text().decode()


def test_the_book_of_the_chain_is_measured_when_it_is_asked_for():
    metrics, measured = Metrics(), (41_000_000, 61.5, 2, True)
    metrics.watch_chain_book(lambda: measured)
    text = metrics.text().decode()
    for line in ("block 4.1e+07", "age_seconds 61.5", "differences 2.0", "failing 1.0"):
        assert f"toolserver_chain_book_{line}" in text
    measured = (41_000_300, 0.0, 0, False)
    assert "toolserver_chain_book_failing 0.0" in metrics.text().decode()


def test_the_budgets_of_hosts_are_those_of_the_moment_of_reading():
    metrics, left = Metrics(), [10]
    metrics.follow_budgets(lambda: [("noaa", "api.weather.gov", 60, left[0], 3)])
    metrics.text()
    left[0] = 9
    assert lines(metrics, "toolserver_host_budget_left") == [
        'toolserver_host_budget_left{host="api.weather.gov",hosts="noaa",lane="all"} 9.0',
        'toolserver_host_budget_left{host="api.weather.gov",hosts="noaa",lane="callers"} 3.0',
    ]


def test_the_times_of_calls_are_bounds_that_so_many_of_them_ended_within(metrics):
    assert (metrics.call_times().timed, metrics.call_times().within(0.5)) == (0, None)
    for seconds in [0.004] * 90 + [0.3] * 8 + [5.0] * 2:
        metrics.called("forex", "free", "ok", seconds)
    metrics.called("weather", "free", "ok", 0.0005)
    for _ in range(7):
        metrics.hit("forex", "free")
    metrics.text()
    metrics.hit("forex", "free")
    times = metrics.call_times()
    assert (times.calls, times.hits, times.timed) == (109, 8, 101)
    assert (times.within(0.5), times.within(0.95), times.within(1)) == (0.005, 0.5, 10.0)


def test_a_call_that_took_longer_than_every_bound_has_none(metrics):
    metrics.called("forex", "free", "ok", 60.0)
    assert metrics.call_times().within(0.5) is None


def test_what_is_left_alone_is_shown_with_the_seconds_that_are_left(metrics):
    left = {"a.example": 60.0}
    metrics.follow_closed(lambda: [(host, 403, seconds) for host, seconds in left.items()], lambda: [("Test.one", 0.0)])
    assert lines(metrics, "toolserver_host_refused_seconds") == [
        'toolserver_host_refused_seconds{host="a.example",status="403"} 60.0'
    ]
    assert lines(metrics, "toolserver_source_closed_seconds") == [
        'toolserver_source_closed_seconds{source="Test.one"} 0.0'
    ]
    left.clear()
    assert lines(metrics, "toolserver_host_refused_seconds") == []


def test_mcp_messages_are_told_by_what_answered_them() -> None:
    metrics = Metrics()
    metrics.mcp_messages.taken += 5
    metrics.mcp_messages.by_sdk += 2
    first, again = metrics.text().decode(), metrics.text().decode()

    for text in (first, again):
        assert 'toolserver_mcp_messages_total{answered="fast"} 3.0' in text
        assert 'toolserver_mcp_messages_total{answered="sdk"} 2.0' in text


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
