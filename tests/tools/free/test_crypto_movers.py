"""The movers tool and the selection it rests on."""

import pytest

import tools.simulated.coingecko
import tools.simulated.coinlore
import tools.simulated.coinpaprika  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.crypto_movers import crypto_movers
from tools.parsing.coins import Coin, by_symbol, movers
from toolserver.upstream.source import SourceChanged, SourceError
from toolserver.world.model import ROUTES, Edits, World


def coin(symbol, change, *, price=10.0, volume=5e6, cap=1e9, rank=1):
    return Coin(symbol, symbol, price, None, change, None, cap, volume, rank, None, None, None, None)


CROWD = [coin(f"C{i}", 0.1 * i) for i in range(10)]


def symbols(moved):
    return [m.coin.symbol for m in moved]


def test_movers_are_sorted_by_movement_in_either_direction_then_by_size():
    moved = movers(
        [*CROWD, coin("DOWN", -9), coin("SMALL", 4, cap=1), coin("LARGE", -4, cap=9e9), coin("NOCAP", 4, cap=None)]
    )
    assert symbols(moved)[:4] == ["DOWN", "LARGE", "SMALL", "NOCAP"]


def test_at_most_fifteen_move():
    assert len(movers([coin(f"C{i}", i) for i in range(40)])) == 15


@pytest.mark.parametrize(
    "left_out",
    [
        coin("USDX", 0.9, price=1.02),
        coin("WBTC", 50),
        coin("WSTETH", -50),
        coin("THIN", 50, volume=999_999),
        coin("SILENT", 50, volume=None),
        coin("UNKNOWN", None),
        coin("UNRANKED", 50, rank=None),
    ],
)
def test_stable_wrapped_thin_and_unknown_coins_are_left_out(left_out):
    assert left_out.symbol not in symbols(movers([*CROWD, left_out]))


@pytest.mark.parametrize(
    "kept", [coin("DEPEG", -1.2, price=0.985), coin("CHEAP", 50, price=1.01), coin("EDGE", 9, volume=1e6)]
)
def test_a_dollar_that_breaks_and_a_coin_that_costs_one_do_move(kept):
    assert kept.symbol in symbols(movers([*CROWD, kept]))


def test_fewer_than_five_movers_are_a_changed_source_not_a_short_list():
    assert len(movers(CROWD[:5])) == 5
    with pytest.raises(SourceChanged):
        movers(CROWD[:4])


def test_a_symbol_means_the_first_coin_of_that_name():
    assert by_symbol([coin("A", 1), coin("A", 2)], "A").change_24h_percent == 1
    with pytest.raises(LookupError):
        by_symbol([], "A")


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_movers_equal_the_world(compose, seed):
    world = World(seed, NOW)
    made = await compose(crypto_movers, world=world)

    expected = ROUTES.expectations["crypto-movers"](world, {})
    assert [{k: c[k] for k in ("symbol", "name", "change_24h_percent")} for c in made.json] == expected
    assert made.notes.warnings == []
    assert all(c["image"] and c["rank"] <= 100 and c["volume_24h_usd"] >= 1e6 for c in made.json)


async def test_a_pinned_crash_leads_the_list(compose):
    world = World(1, NOW, Edits(pins={"price.SOL": [(NOW - 60, NOW + 60, 90.0)]}))
    made = await compose(crypto_movers, world=world)
    assert made.json[0]["symbol"] == "SOL"
    assert made.json[0]["change_24h_percent"] < -40
    assert made.json[0]["price_usd"] == pytest.approx(90, rel=0.001)


@pytest.mark.parametrize(
    ("down", "used"),
    [
        ({"CoinGecko.markets"}, "Coinlore.tickers"),
        ({"CoinGecko.markets", "Coinlore.tickers"}, "CoinPaprika.tickers"),
    ],
)
async def test_the_next_list_answers_when_one_is_down(compose, down, used):
    made = await compose(crypto_movers, down=down)

    first = await compose(crypto_movers)
    assert [c["symbol"] for c in made.json[:5]] == [c["symbol"] for c in first.json[:5]]
    assert all(c["image"] is None for c in made.json)
    assert {n.source.name: n.status for n in made.notes.sources} == {used: "fallback", **dict.fromkeys(down, "error")}
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]


async def test_a_quota_text_with_200_is_passed_over(compose):
    made = await compose(crypto_movers, forms={"CoinGecko.markets": "error200"})
    assert len(made.json) == 15
    assert made.notes.sources[-1].reason == "rate_limited: quota"


async def test_when_nobody_answers_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(crypto_movers, down={"*"})
