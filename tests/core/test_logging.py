"""Log lines: one JSON object or one line of text, and never a secret."""

import json
import logging
import sys

import pytest

from toolserver.core.logging import CauseLimit, JsonLines, Text, event_of, hidden, set_up
from toolserver.sql.errors import StorageFailed

TOKEN = "svc_live_" + "a" * 64


def record_of(message="source is down", *args, error=None, **extra):
    record = logging.LogRecord("toolserver.x", logging.WARNING, "file.py", 1, message, args, error)
    record.created = 1_800_000_000.123
    vars(record).update(extra)
    return record


@pytest.fixture
def logging_restored():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:], root.level = handlers, level


def test_a_json_line_has_time_level_logger_event_and_the_extra_fields():
    line = JsonLines().format(record_of("%s is down", "A", source="A.b", count=3))
    assert json.loads(line) == {
        "at": "2027-01-15T08:00:00.123Z",
        "level": "warning",
        "logger": "toolserver.x",
        "event": "A is down",
        "source": "A.b",
        "count": 3,
    }
    assert "\n" not in line


def test_a_text_line_has_the_time_of_day_the_level_the_event_and_the_extra_fields():
    assert Text().format(record_of(source="A.b")) == "08:00:00 warning source is down  source=A.b"


@pytest.mark.parametrize("form", [JsonLines(), Text()])
def test_an_exception_is_part_of_the_entry(form):
    try:
        raise ValueError("what happened")
    except ValueError:
        line = form.format(record_of(error=sys.exc_info()))
    assert "ValueError: what happened" in line


@pytest.mark.parametrize("form", [JsonLines(), Text()])
@pytest.mark.parametrize("place", ["message", "field", "exception"])
def test_a_secret_is_hidden_wherever_it_stands(form, place):
    try:
        raise ValueError(TOKEN if place == "exception" else "x")
    except ValueError:
        error = sys.exc_info()
    line = form.format(
        record_of(TOKEN if place == "message" else "x", error=error, field=TOKEN if place == "field" else "x")
    )
    assert "a" * 8 not in line
    assert "[hidden]" in line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"token {TOKEN}.", "token [hidden]."),
        ("svc_buy_0123456789abcdef", "[hidden]"),
        ("whsec_0123456789abcdef", "[hidden]"),
        ("https://a.example/?x=1&api_key=s3cret&y=2", "https://a.example/?x=1&api_key=[hidden]&y=2"),
        ("svc_live_ is how tokens begin", "svc_live_ is how tokens begin"),
    ],
)
def test_what_looks_like_a_secret_is_hidden_and_nothing_else(text, shown):
    assert hidden(text) == shown


@pytest.mark.parametrize(
    ("form", "is_terminal", "formatter"),
    [("json", True, JsonLines), ("text", False, Text), ("auto", True, Text), ("auto", False, JsonLines)],
)
def test_logging_is_set_up_once_in_the_form_that_fits(logging_restored, monkeypatch, form, is_terminal, formatter):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    set_up("info", form)
    (handler,) = logging_restored.handlers
    assert (type(handler.formatter), handler.stream) == (formatter, sys.stderr)
    assert (logging_restored.level, logging.getLogger("httpx").level) == (logging.INFO, logging.WARNING)


class Stopwatch:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def failed(message, failure):
    return record_of(message, error=(type(failure), failure, None))


def test_so_many_lines_of_one_cause_are_written_in_a_minute_and_the_next_says_what_was_left_out():
    watch = Stopwatch()
    limit = CauseLimit(3, monotonic=watch)
    assert [limit.filter(record_of("refused %s", n)) for n in range(5)] == [True] * 3 + [False] * 2
    assert limit.filter(record_of("another cause"))
    assert limit.filter(failed("refused %s", ValueError("of another kind")))

    watch.now = 60.0
    first, second = record_of("refused %s", 6), record_of("refused %s", 7)
    assert limit.filter(first)
    assert limit.filter(second)
    assert event_of(first)["left_out"] == 2
    assert "left_out" not in event_of(second)


def test_however_many_causes_there_are_they_are_counted_in_bounded_memory():
    limit = CauseLimit(2, causes=10, monotonic=Stopwatch())
    assert sum(limit.filter(record_of(f"cause {n}")) for n in range(100)) == 12


def test_a_failure_of_the_storage_is_named_and_has_no_traceback():
    record = failed("could not be kept", StorageFailed("the disk is full"))
    assert CauseLimit(monotonic=Stopwatch()).filter(record)
    assert event_of(record)["reason"] == "the disk is full"
    assert "exception" not in event_of(record)
