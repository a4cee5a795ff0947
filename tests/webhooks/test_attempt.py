import pytest

from toolserver.webhooks.records import Attempt


def test_refusals_of_the_receiver_are_worth_fewer_attempts():
    assert Attempt(410, "http_410", 1).tries_allowed == 1
    assert Attempt(None, "target_refused", 1).tries_allowed == 1
    assert Attempt(404, "http_404", 1).tries_allowed == 2
    for status, error in ((429, "http_429"), (408, "http_408"), (500, "http_500"), (302, "redirect"), (None, "dns")):
        assert Attempt(status, error, 1).tries_allowed == 4


def test_an_attempt_without_an_error_is_a_delivery():
    assert Attempt(204, None, 1).delivered
    assert not Attempt(500, "http_500", 1).delivered
    assert Attempt(410, "http_410", 1).gone


@pytest.mark.parametrize(
    ("error", "read"),
    [
        *(("http_500", True), ("redirect", True), ("timeout", True), ("closed", True), ("tls", True)),
        *(("dns", False), ("connect", False), ("target_refused", False), ("internal_error", False)),
    ],
)
def test_a_body_counts_as_read_unless_it_cannot_have_been_sent(error, read):
    assert Attempt(None, error, 1).maybe_read is read
    assert Attempt(None, error, 1, challenge=True).maybe_read is False
