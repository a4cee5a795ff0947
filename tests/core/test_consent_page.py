"""The consent page as values."""

from toolserver.core.consent_page import ConsentView


def test_a_view_says_nothing_that_it_was_not_given():
    view = ConsentView("closed", problem="over")
    assert (view.token, view.payment, view.secret, view.refresh_s, view.back) == (None, None, "", None, None)
