"""OpenPhish's community feed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.openphish  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated.openphish import phishing_urls
from tools.sources.openphish import PHISHING_URLS, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceEmpty
from toolserver.world.model import World


def test_a_recorded_feed_gives_every_line(sample):
    text = sample("openphish/feed-2026-08.txt").decode()
    found = parse(text, None)
    assert len(found) == 300
    assert list(found) == text.split()


@given(st.lists(st.from_regex(r"https?://[a-z]{1,9}\.example/[a-z&;\x0c\x85]{0,9}", fullmatch=True), min_size=1))
def test_no_line_is_invented_or_dropped(urls):
    assert len(parse("".join(f"{url}\n" for url in urls), None)) == len(urls)


@pytest.mark.parametrize(
    "body", ["Not found\n", "<html></html>\n", '{"error": 1}', "", "http://a.example/\nhttp://b.exa"]
)
def test_anything_but_urls_is_a_change_of_format(body):
    with pytest.raises(SourceChanged):
        parse(body, None)


def test_a_line_that_is_no_url_is_left_out():
    assert parse("http://a.example/\nSorry\n", None) == ("http://a.example/",)


def test_the_twin_lists_the_urls_of_the_world():
    assert list(ask(PHISHING_URLS)) == phishing_urls(World(1, NOW))
    with pytest.raises(SourceChanged):
        ask(PHISHING_URLS, form="error200")


def test_a_feed_of_a_few_lines_is_no_success():
    with pytest.raises(SourceEmpty):
        parse_body(PHISHING_URLS, PHISHING_URLS.request, None, b"http://a.example/\n")


def test_an_empty_body_is_refused():
    with pytest.raises((SourceChanged, SourceEmpty)):
        parse_body(
            PHISHING_URLS, PHISHING_URLS.request, None, fetch(World(1, NOW), PHISHING_URLS.request, form="empty").body
        )
