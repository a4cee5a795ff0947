"""OpenPhish's community feed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.openphish  # noqa: F401 - registers its routes
from tests.desk import NOW, ask, fetch
from tools.simulated.openphish import phishing_urls
from tools.sources.openphish import PHISHING_URLS, parse, request
from toolserver.errors import SourceChanged, SourceEmpty
from toolserver.upstream.bodies import parsed
from toolserver.world.model import World


def test_a_recorded_feed_gives_every_line(sample):
    text = sample("openphish/feed-2026-08.txt").decode()
    found = parse(text, None)
    assert len(found) == 300
    assert list(found) == text.split()


@given(st.lists(st.from_regex(r"https?://[a-z]{1,9}\.example/[a-z&;\x0c\x85]{0,9}", fullmatch=True)))
def test_no_line_is_invented_or_dropped(urls):
    assert len(parse("\n".join(urls), None)) == len(urls)


@pytest.mark.parametrize("body", ["Not found", "http://a.example/\nSorry", "<html></html>", '{"error": 1}'])
def test_anything_but_urls_is_a_change_of_format(body):
    with pytest.raises(SourceChanged):
        parse(body, None)


def test_the_twin_lists_the_urls_of_the_world():
    assert list(ask(PHISHING_URLS)) == phishing_urls(World(1, NOW))
    with pytest.raises(SourceChanged):
        ask(PHISHING_URLS, form="error200")


def test_a_feed_of_a_few_lines_is_no_success():
    with pytest.raises(SourceEmpty):
        parsed(PHISHING_URLS, request(None, {}), None, b"http://a.example/\n")


def test_an_empty_body_is_refused():
    with pytest.raises((SourceChanged, SourceEmpty)):
        parsed(PHISHING_URLS, request(None, {}), None, fetch(World(1, NOW), request(None, {}), form="empty").body)
