"""GET /api/fear-greed."""

from pydantic import Field

from tools.shared.mood import FEAR_GREED_DAYS, FEAR_GREED_SOURCES, IndexName, fear_greed_fallbacks
from toolserver import CardValue, MarketQuote, Payload, Timestamp, ToolContext, tool


class FearGreedIndex(Payload):
    value: int = Field(ge=0, le=100, description="0 extreme fear, 100 extreme greed")
    label: str = Field(description="The publisher's word for it", examples=["Fear"])
    index: IndexName = Field(description="Publisher of the index; two publishers' values are not comparable")
    as_of: Timestamp = Field(description="When the publisher set the value")
    previous_value: int | None = Field(description="The publisher's value before this one; null: not given")
    next_update_at: Timestamp | None = Field(description="When the publisher sets the next value; null: not given")


@tool(
    path="/api/fear-greed",
    title="Crypto Fear & Greed index",
    search_hint="crypto mood sentiment investors scared fearful greedy are of the market",
    ttl_s=300,
    sources=FEAR_GREED_SOURCES,
    headline=CardValue(
        "value", "", "{label}", quotes=(MarketQuote("Fear and greed, 0 to 100", "value", days=FEAR_GREED_DAYS),)
    ),
)
async def fear_greed(ctx: ToolContext) -> FearGreedIndex:
    """The crypto market's Fear & Greed index, 0 (extreme fear) to 100 (extreme greed), with its label and the value
    before it. Use it for "how is the mood in crypto?"; for prices use btc_price or crypto_movers.

    Shape: `index` names whose index it is; the two known ones differ by several points. `previous_value` and
    `next_update_at` are null where the publisher does not say.
    Source: alternative.me, one value a day; CoinMarketCap with a key when alternative.me is down.
    """
    mood = await ctx.first("data", *fear_greed_fallbacks())
    return FearGreedIndex(
        value=mood.value,
        label=mood.label,
        index=mood.index_name,
        as_of=mood.as_of,
        previous_value=mood.previous_value,
        next_update_at=mood.next_update_at,
    )
