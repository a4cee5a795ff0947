"""What a call costs when its sections fail one by one, all together, are stale, empty or broken: by the table."""

from typing import Any

import pytest
from pydantic import BaseModel

from tests.requirements import named, proves
from tests.size import a_share
from tests.specified import PREMIUM
from tests.tools.premium.sections import SECTIONS, beside, shown
from tests.tools.premium.store import FUNDS, Store, T, store
from toolserver.registry.registry import Registry
from toolserver.world.model import Edits

WHOLE = {"briefing": "history=24h", "macro": "history=30d", "crypto-deep": "history=30d"}
ALONE = [
    (name, section)
    for name, sections in SECTIONS.items()
    for section in sections
    if name != "code-host-velocity" and section != "blocks_scanned"
]
ON_CHAIN = ("whales", "exchange-flows")
CHAIN_S = 150  # how long the newest block that is known may be called new
WHALE = Edits(events=[{"kind": "btc_tx", "value_btc": 77, "at": T - 3}])
UNDISTURBED: dict[str, Any] = {}


@pytest.fixture
async def shop(tmp_path):
    async with store(tmp_path) as s:
        yield s


async def undisturbed(folder: Any, name: str) -> Any:
    """The payload when nothing is wrong."""
    if name not in UNDISTURBED:
        async with store(folder / "other") as s:
            s.upstreams.state.edits = WHALE
            UNDISTURBED[name] = (await s.buy(name, WHOLE.get(name, ""))).json()
    return UNDISTURBED[name]


def comparable(found: Any) -> Any:
    """Without what hangs on a price of another section, or on how long a source was waited for."""
    if isinstance(found, dict):
        return {name: value for name, value in found.items() if name != "as_of"}
    items = found if isinstance(found, list) else []
    return [i for i in items if not isinstance(i, dict)] + [
        {k: v for k, v in i.items() if k != "value_usd"} for i in items if isinstance(i, dict)
    ] or found


async def settled(shop: Store, answer: Any, name: str, reason: str | None) -> None:
    """Balance, headers, receipt and public account agree on what a single call came to."""
    price = PREMIUM[name].credits
    charged = 0 if reason else price
    receipt = await shop.verified(answer)

    assert await shop.balance() == FUNDS - charged == int(answer.headers["x-credits-remaining"])
    assert (receipt["cost"], receipt["credits_charged"], receipt["no_charge_reason"]) == (price, charged, reason)
    assert (receipt["endpoint"], receipt["status"]) == (f"/api/pro/{name}", answer.status_code)
    assert receipt["freshness_sla_s"] == PREMIUM[name].sla_s
    assert await shop.uncharged() == ({reason: 1} if reason else {})
    assert await shop.service.money.ledger.check() == []


@proves("price.*", "charge.once", "pro.exactly")
@pytest.mark.parametrize("name", a_share(named("price."), 3))
async def test_a_call_costs_its_price_and_the_answer_lasts_as_long_as_documented(shop, name):
    row = PREMIUM[name]
    operation = shop.service.registry[row.tool]
    first = await shop.buy(name)
    await settled(shop, first, name, None)
    lives_short = name in ON_CHAIN or "warning" in first.json()  # half a minute, which is when the next call comes
    again = first if lives_short else await shop.buy(name)
    shop.clock.advance(row.ttl_s + 1)
    later = await shop.buy(name)

    ours = {"limit"}  # which we add wherever there is a list
    assert tuple(n for n in operation.arguments.model_fields if n not in ours) == row.parameters
    assert (operation.longest_ttl, operation.sla_s) == (row.ttl_s, row.sla_s)
    assert again.content == first.content
    assert later.json()["generated_at"] > first.json()["generated_at"]
    assert {o.endpoint for o in shop.service.registry if o.credits} == {f"/api/pro/{each}" for each in PREMIUM}


@proves("charge.partial", "pro.sections-alone")
@pytest.mark.parametrize(("name", "section"), a_share(ALONE, 4))
async def test_a_section_that_fails_alone_is_null_and_named_and_the_rest_is_sold(shop, tmp_path, name, section):
    usual = await undisturbed(tmp_path, name)
    shop.upstreams.state.edits = WHALE
    shop.down(*SECTIONS[name][section])
    answer = await shop.buy(name, WHOLE.get(name, ""))
    body = answer.json()

    assert answer.status_code == 200
    assert shown(usual, name, section) is not None
    assert shown(body, name, section) is None
    assert section.removesuffix(f".{section.split('.')[-1]}") in str(body["warning"])
    for other in beside(name, section):
        if name != "world-deltas":  # whose events are of other instants
            assert comparable(shown(body, name, other)) == comparable(shown(usual, name, other)), other
    await settled(shop, answer, name, None)


@proves("charge.partial")
async def test_one_search_of_two_is_sold(shop):
    shop.down("GitHub.search_repositories", kind="status", code=500, after=1)
    answer = await shop.buy("code-host-velocity")
    lists = [answer.json()[name] is None for name in ("trending_repos", "ai_ml_repos_active_30d")]

    assert sorted(lists) == [False, True]
    assert {w["code"] for w in answer.json()["warning"]} == {"section_unavailable"}
    await settled(shop, answer, "code-host-velocity", None)


@proves("charge.all-failed", "no-charge.5xx", "errors.upstream_unavailable", "pro.all-down")
@pytest.mark.parametrize("name", a_share(PREMIUM, 3, first=1))
async def test_with_all_sources_down_nothing_is_sold(shop, name):
    shop.upstreams.all_down()
    answer = await shop.buy(name, WHOLE.get(name, ""))

    assert (answer.status_code, answer.json()["error"]) == (503, "upstream_unavailable")
    assert int(answer.headers["retry-after"]) > 0
    await settled(shop, answer, name, "5xx")


@proves("charge.all-failed")
async def test_flows_without_blocks_are_not_sold(shop):
    shop.down(*SECTIONS["exchange-flows"]["blocks_scanned"])
    answer = await shop.buy("exchange-flows")

    assert answer.status_code == 503
    await settled(shop, answer, "exchange-flows", "5xx")


@proves("sla.*", "no-charge.stale")
@pytest.mark.parametrize("name", a_share(named("sla."), 3, first=2))
async def test_values_are_charged_within_the_sla_and_free_beyond_it(shop, name):
    row = PREMIUM[name]
    operation = shop.service.registry[row.tool]
    await shop.buy(name)
    shop.upstreams.all_down()
    shop.clock.advance(CHAIN_S if name in ("whales", "exchange-flows") else row.sla_s - 45)
    within = await shop.buy(name)
    fresh_s = 0.0 if name in ON_CHAIN else max(source.fresh_s for source in operation.sources)  # a block never changes
    shop.clock.advance(fresh_s + row.sla_s)
    beyond = await shop.buy(name)
    receipts = [await shop.verified(answer) for answer in (within, beyond)]

    assert (within.status_code, beyond.status_code) == (200, 200)
    assert (within.json()["stale"], beyond.json()["stale"]) == (False, True)
    assert [r["no_charge_reason"] for r in receipts] == [None, "stale_data"]
    assert [r["credits_charged"] for r in receipts] == [row.credits, 0]
    assert within.json()["captured_at"] <= "2027-01-15T08:00:59Z"
    assert beyond.json()["captured_at"] <= "2027-01-15T08:00:59Z"
    assert "stale" in {source["status"] for source in beyond.json()["_meta"]["sources"]}
    assert await shop.balance() == FUNDS - 2 * row.credits
    assert await shop.uncharged() == {"stale_data": 1}


QUIET = {f"{chain}.quiet": [(0, T * 2, 1)] for chain in ("btc", "eth", "headlines")}
MARKETS = set().union(*(SECTIONS["agent-context"][s] for s in SECTIONS["agent-context"] if "infrastructure" not in s))
EMPTY: dict[str, tuple[str, set[str]]] = {
    "crypto-deep": ("coins=NOSUCHCOIN", set()),
    "sentiment": (
        "",
        {"HackerNewsAlgolia.stories_24h"}
        | SECTIONS["sentiment"]["market_indices.crypto_fear_greed"]
        | SECTIONS["sentiment"]["market_indices.stocks_vix"],
    ),
    "world-deltas": ("since=2027-01-15T08:00:30Z", {*SECTIONS["world-deltas"]["space_launch"]}),
    "agent-context": ("", MARKETS),
    "correlation-matrix": ("", {"FRED.graph_csv", "Treasury.par_yield_curve", "FederalReserve.broad_dollar_index"}),
    "whales": ("", set()),
    "exchange-flows": ("", set()),
}
"""How an answer becomes empty: the parameters, and who is down. The other three have no empty answer."""


@proves("charge.empty", "pro.empty")
@pytest.mark.parametrize("name", a_share(EMPTY, 3))
async def test_an_empty_result_is_given_and_free(shop, name):
    query, down = EMPTY[name]
    shop.upstreams.state.edits = Edits(pins=QUIET)
    shop.down(*down)
    answer = await shop.buy(name, query)

    assert answer.status_code == 200, answer.text
    assert answer.json()["stale"] is False
    await settled(shop, answer, name, "empty_result")


class Wrong(BaseModel):
    """What no premium payload is."""

    notes: int = 7


@proves("no-charge.schema")
@pytest.mark.parametrize("name", a_share(PREMIUM, 3, first=1))
async def test_a_payload_that_breaks_its_schema_is_an_error_of_ours_and_free(shop, name):
    operation = shop.service.registry[PREMIUM[name].tool]

    async def broken(ctx: Any, **_: Any) -> Wrong:
        return Wrong()

    with changed(shop.service.registry, operation.name, broken):
        answer = await shop.buy(name)
        assert answer.status_code == 500
        assert "notes" not in answer.text
        await settled(shop, answer, name, "schema_failure")


def changed(registry: Registry, name: str, function: Any) -> Any:
    """The tool with another function in it, for a while."""
    operation = registry[name]
    before = operation.function

    class Changed:
        def __enter__(self) -> None:
            object.__setattr__(operation, "function", function)

        def __exit__(self, *_: object) -> None:
            object.__setattr__(operation, "function", before)

    return Changed()


@proves("charge.partial")
@pytest.mark.parametrize("kind", ["malformed", "html200", "drift", "zeros"])
async def test_a_source_that_breaks_its_form_is_a_section_that_failed_or_a_fallback(shop, kind):
    shop.down("AlternativeMe.fear_greed", "CoinGecko.markets", kind=kind)
    answer = await shop.buy("briefing", "include=fear-greed,btc")
    mood = answer.json()["sections"]["fear_greed"]

    assert mood is None or kind == "drift"
    assert answer.json()["sections"]["btc"]["price_usd"] > 1000
    await settled(shop, answer, "briefing", None)
