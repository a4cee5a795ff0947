"""The log of requests: newest kept, all counted, bounded."""

from toolserver.world.state import KEPT, UNMATCHED_KEPT, URL_KEPT, Entry, LoggedRequest, RequestLog


def entry(t: float, source: str | None = "A", url: str = "https://a.example/") -> Entry:
    return Entry(LoggedRequest(t, "GET", url), source)


def test_entries_are_listed_by_source_and_time_oldest_first():
    log = RequestLog()
    for t, source in ((1, "A"), (2, "B"), (3, "A")):
        log.add(entry(t, source))

    assert [each["t"] for each in log.entries()] == [1, 2, 3]
    assert [each["t"] for each in log.entries("A")] == [1, 3]
    assert [each["t"] for each in log.entries(since=2)] == [2, 3]
    assert log.served == {"A": 2, "B": 1}


def test_a_source_found_later_counts_once():
    log = RequestLog()
    log.add(late := entry(1, None))
    log.served_by(late, "C")

    assert log.served == {"C": 1}
    assert log.entries("C")[0]["source"] == "C"


def test_the_log_and_its_texts_are_bounded_and_misses_are_counted_beyond_that():
    log = RequestLog()
    for t in range(KEPT + 5):
        log.add(entry(t, url="x" * (URL_KEPT + 10)))
    for t in range(UNMATCHED_KEPT + 5):
        log.miss(LoggedRequest(t, "GET", "y" * (URL_KEPT + 10)), "r" * 1000)

    assert (len(log.entries()), log.entries()[0]["t"], log.served["A"]) == (KEPT, 5, KEPT + 5)
    assert len(log.entries()[0]["url"]) == URL_KEPT
    assert (len(log.unmatched()), log.unmatched_count) == (UNMATCHED_KEPT, UNMATCHED_KEPT + 5)
    assert (len(log.unmatched()[0]["url"]), len(log.unmatched()[0]["reason"])) == (URL_KEPT, 300)


def test_forgetting_requests_keeps_the_counts_and_clearing_does_not():
    log = RequestLog()
    log.add(entry(1))
    log.miss(LoggedRequest(1, "GET", "u"), "r")
    log.forget()
    assert (log.entries(), log.served["A"], len(log.unmatched())) == ([], 1, 1)

    log.clear()
    assert (log.served["A"], log.unmatched(), log.unmatched_count) == (0, [], 0)
