"""How a source that failed says why."""

import pytest

from toolserver.upstream import source_errors
from toolserver.upstream.source_errors import HostRefused, SourceDown, SourceError, first_source_error
from toolserver.upstream.source_health import CircuitOpen
from toolserver.upstream.throttle import RequestWithheld


def test_a_reason_is_a_word_and_at_most_a_hundred_characters_of_detail():
    assert SourceDown().reason == "connect"
    assert SourceDown("refused", word="http_503").reason == "http_503: refused"
    assert SourceDown("x" * 500).reason == "connect: " + "x" * 100
    assert SourceError("odd").reason == "changed: odd"


def test_a_refusal_of_ours_says_nothing_about_the_upstream():
    assert [error.was_sent for error in (SourceDown(), RequestWithheld(), CircuitOpen())] == [True, False, False]


def test_it_says_when_the_upstream_is_to_be_asked_again():
    assert (SourceDown().retry_after_s, SourceDown(retry_after_s=5).retry_after_s) == (None, 5)


def test_a_host_was_asked_unless_it_refused_lately():
    assert [HostRefused("http 403").was_sent, HostRefused("lately", was_sent=False).was_sent] == [True, False]
    assert HostRefused("http 403").reason == "refused: http 403"


def test_of_errors_in_groups_the_first_is_found_and_what_is_none_of_a_source_is_raised():
    down = SourceDown("refused")
    assert first_source_error(ExceptionGroup("a", [down, SourceError()])) is down
    assert first_source_error(ExceptionGroup("a", [ExceptionGroup("b", [down]), KeyError()])) is down
    bug = ExceptionGroup("a", [KeyError("a bug"), down])
    with pytest.raises(ExceptionGroup) as raised:
        first_source_error(bug)
    assert raised.value is bug


def test_each_kind_of_failure_has_its_word():
    kinds = [each for each in vars(source_errors).values() if isinstance(each, type) and issubclass(each, SourceError)]
    assert {kind.__name__: kind.word for kind in kinds} == {
        "SourceError": "changed",
        "SourceDown": "connect",
        "SourceLimited": "rate_limited",
        "SourceRefused": "refused",
        "HostRefused": "refused",
        "SourceChanged": "changed",
        "SourceEmpty": "empty",
        "SourceUnproved": "unproved_empty",
        "SourceFrozen": "frozen",
        "SourceTooLarge": "too_large",
        "SourceImplausible": "implausible",
        "SourceExcluded": "licence",
        "SourceUnusable": "no_key",
    }
