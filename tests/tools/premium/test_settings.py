"""What can be set about the premium payloads: how much of the chain is looked through, and one feed more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.tools.premium.store import store
from tools.shared.sentiment import _CONTEXT, _MATCHERS, CONTEXT, TICKERS, find_tickers
from toolserver.settings import OnchainSettings, Settings, SourceSettings

WORDS = sorted(
    {w for t in TICKERS for w in (*t.symbols, *t.names, *t.unclear_symbols, *t.unclear_names)} | {*CONTEXT, "up", "$"}
)


@pytest.mark.parametrize(("name", "member"), [("whales", "eth_blocks_scanned"), ("exchange-flows", "blocks_scanned")])
@pytest.mark.parametrize("count", [1, 7])
async def test_as_many_blocks_are_looked_through_as_the_service_says(tmp_path, name, member, count):
    async with store(tmp_path, onchain=OnchainSettings(blocks=count)) as s:
        body = (await s.buy(name)).json()

    assert len(body[member]) == count


@pytest.mark.parametrize("count", [0, 21])
def test_it_is_between_one_block_and_twenty(count):
    assert Settings().onchain.blocks == 5
    with pytest.raises(ValidationError):
        OnchainSettings(blocks=count)


async def test_the_news_search_is_asked_where_it_is_switched_on(tmp_path):
    async with store(tmp_path, sources=SourceSettings(keys={"GOOGLE_NEWS": "on"})) as s:
        body = (await s.buy("sentiment")).json()

    assert any(url.startswith("news.google.com") for url, _, _ in s.upstreams.bodies)
    assert body["sample_size"]["sources_ok"] == 14


@given(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from([" ", "", ", ", "$"]), st.booleans())
def test_looking_only_where_a_name_may_be_finds_what_looking_everywhere_finds(words, between, finance):
    title = between.join(words)
    context = _CONTEXT.search(title) is not None
    everywhere = tuple(s for s, matches in _MATCHERS.items() if matches(title, context, finance))

    assert find_tickers(title, finance=finance) == everywhere
