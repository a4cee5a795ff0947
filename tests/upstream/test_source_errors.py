"""How a source that failed says why."""

from toolserver.upstream.source_errors import SourceDown, SourceError
from toolserver.upstream.source_health import CircuitOpen
from toolserver.upstream.throttle import RequestWithheld


def test_a_reason_is_a_word_and_at_most_a_hundred_characters_of_detail():
    assert SourceDown().reason == "connect"
    assert SourceDown("refused", word="http_503").reason == "http_503: refused"
    assert SourceDown("x" * 500).reason == "connect: " + "x" * 100
    assert SourceError("odd").reason == "changed: odd"


def test_a_refusal_of_ours_says_nothing_about_the_upstream():
    assert [error.asked for error in (SourceDown(), RequestWithheld(), CircuitOpen())] == [True, False, False]


def test_it_says_when_the_upstream_is_to_be_asked_again():
    assert (SourceDown().retry_after_s, SourceDown(retry_after_s=5).retry_after_s) == (None, 5)
