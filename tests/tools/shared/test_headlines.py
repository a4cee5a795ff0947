"""Headlines of feeds and stories of a page are items of one kind."""

from datetime import UTC, datetime

import pytest

from tools.parsing.stories import Story
from tools.shared.headlines import items_of

AT = datetime(2027, 1, 15, tzinfo=UTC)
TALK = "https://news.ycombinator.com/item?id=7"


@pytest.mark.parametrize(("url", "shown"), [("https://a.example/1", "https://a.example/1"), (None, TALK)])
def test_a_story_leads_to_its_article_or_else_to_its_discussion(url, shown):
    (item,) = items_of("hacker_news", [Story(7, "A title", url, 1, None, "author", AT)])
    assert (item.url, item.at) == (shown, AT)
