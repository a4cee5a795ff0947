"""The stocks tool: one board, filled from several providers."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

import tools.simulated.cboe
import tools.simulated.finnhub
import tools.simulated.stocks
import tools.simulated.yahoo  # noqa: F401 - serves
from tools.free.stocks import SHARES, QuoteBoard, canonical, stocks
from tools.parsing.stock_quotes import StockQuote
from tools.shared.companies import UnknownCompany, find_symbol
from tools.simulated import stocks as truth
from tools.sources.cnbc import INDICES
from toolserver.errors import InvalidArguments
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, Edits, World

CNBC, YAHOO, CBOE, FINNHUB = "CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote", "Finnhub.quote"
OPEN = World(1, datetime(2027, 1, 14, 18, tzinfo=UTC).timestamp())
KEYS = {"FINNHUB_API_KEY": "sim-1"}


def prices(rows):
    return [{key: row[key] for key in ("symbol", "price", "previous_close")} for row in rows]


async def test_the_default_symbols_are_the_worlds_with_changes_computed(compose):
    made = await compose(stocks, world=OPEN)

    assert prices(made.json["quotes"]) == ROUTES.expectations["stocks"](OPEN, {})["quotes"]
    for row in made.json["quotes"]:
        assert row["change"] == pytest.approx(row["price"] - row["previous_close"], abs=0.006)
        assert row["change_percent"] == pytest.approx(row["change"] / row["previous_close"] * 100, abs=0.1)
    assert [row["symbol"] for row in made.json["indices"]] == list(INDICES)
    assert made.json["unknown_symbols"] == []
    assert made.notes.warnings == []
    assert len(made.desk.asked) == 1


async def test_gainers_rise_and_losers_fall_most_first_and_at_most_five(compose):
    made = (await compose(stocks, world=OPEN)).json

    gains, losses = ([row["change_percent"] for row in made[name]] for name in ("gainers", "losers"))
    assert 0 < len(gains) <= 5
    assert 0 < len(losses) <= 5
    assert gains == sorted(gains, reverse=True)
    assert losses == sorted(losses)
    assert min(gains) > 0 > max(losses)
    assert gains[0] == max(row["change_percent"] for row in made["quotes"])


async def test_a_providers_own_change_is_not_taken(compose):
    made = (await compose(stocks, {"symbols": "RIVN"}, world=OPEN)).json["quotes"][0]  # printed there as 0.00 %

    assert made["change_percent"] == pytest.approx((made["price"] / made["previous_close"] - 1) * 100, abs=0.01)
    assert made["change_percent"] != 0


async def test_a_price_that_has_not_moved_is_neither_gainer_nor_loser(compose):
    still = World(1, OPEN.now, Edits(pins={"price.AAPL": [(-1e12, 1e12, 200.0)]}))
    made = (await compose(stocks, {"symbols": "AAPL"}, world=still)).json

    assert made["quotes"][0]["change_percent"] == 0
    assert (made["gainers"], made["losers"]) == ([], [])


async def test_symbols_of_the_caller_are_the_universe_and_the_indices_stay(compose):
    made = await compose(stocks, {"symbols": "msft, ibm,AAPL,vix,brk.b,ibm"}, world=OPEN)

    assert [row["symbol"] for row in made.json["quotes"]] == ["AAPL", "BRK.B", "IBM", "MSFT", "VIX"]
    assert len(made.json["gainers"]) + len(made.json["losers"]) == 5
    assert [row["symbol"] for row in made.json["indices"]] == list(INDICES)
    assert [query.names for name, query in made.desk.asked if name == CNBC][1:] == [("BRK.B", "IBM")]


async def test_an_unknown_symbol_is_named_and_no_warning(compose):
    made = await compose(stocks, {"symbols": "AAPL,NOPE"}, world=OPEN)

    assert made.json["unknown_symbols"] == ["NOPE"]
    assert [row["symbol"] for row in made.json["quotes"]] == ["AAPL"]
    assert made.notes.warnings == []


async def test_a_symbol_that_could_not_be_asked_for_is_missing_and_not_unknown(compose):
    names = "AAPL,AB,AC,AD,AE,AG,AH,AI,AJ,AK,IBM"  # more than are asked for one by one
    made = await compose(stocks, {"symbols": names}, world=OPEN, down={CNBC, YAHOO})

    assert "IBM" not in made.json["unknown_symbols"]
    assert "IBM" in next(w.message for w in made.notes.warnings if w.code == "missing_symbols")


async def test_one_by_one_the_symbols_of_the_caller_come_first(compose):
    made = await compose(stocks, {"symbols": "IBM,KO"}, world=OPEN, down={CNBC, YAHOO})

    assert [row["symbol"] for row in made.json["quotes"]] == ["IBM", "KO"]


async def test_a_penny_stock_keeps_its_digits(compose):
    made = (await compose(stocks, {"symbols": "SNDL"}, world=OPEN)).json["quotes"][0]

    assert 0 < made["price"] < 1
    assert made["price"] == truth.trade(OPEN, "SNDL").last


async def test_what_are_no_symbols_is_refused_before_anything_is_asked(compose):
    for text in ("", " ", "AAPL, ,T", ",", "AAPL,", "A" * 41, ",".join(f"A{n}" for n in range(36))):
        with pytest.raises(ValidationError):
            await compose(stocks, {"symbols": text})
    for text in ("A B", "1A", "ABCDEFGHIJK", "AAPL;MSFT"):
        with pytest.raises(InvalidArguments, match="no ticker"):
            await compose(stocks, {"symbols": text})


async def test_names_of_companies_and_indices_stand_for_their_tickers(compose):
    made = await compose(stocks, {"symbols": "Apple, tesla,ALPHABET, coca-cola, Dow Jones"}, world=OPEN)

    assert [row["symbol"] for row in made.json["quotes"]] == ["AAPL", "DJI", "GOOGL", "KO", "TSLA"]
    assert made.json["unknown_symbols"] == []


async def test_what_may_mean_several_companies_or_is_misspelt_is_refused_with_names_that_are_known(compose):
    for text, meant in {
        "united": ["United Airlines", "UnitedHealth", "United Parcel Service"],
        "Morgan": ["JPMorgan Chase", "Morgan Stanley"],
        "AAPL,microsft": ["Microsoft", "Micron"],
        "zzzzzz": [],
    }.items():
        with pytest.raises(InvalidArguments) as refused:
            await compose(stocks, {"symbols": text}, world=OPEN)
        assert refused.value.extra["did_you_mean"] == meant
        assert not any(isinstance(find_symbol(name), UnknownCompany) for name in meant)


def test_the_same_symbols_are_the_same_question():
    assert canonical(" aal, a ,A") == canonical("A,american airlines") == "A,AAL"


async def test_yahoo_answers_for_cnbc_in_two_batches(compose):
    made = await compose(stocks, world=OPEN, down={CNBC})

    assert prices(made.json["quotes"]) == ROUTES.expectations["stocks"](OPEN, {})["quotes"]
    assert [len(query.names) for name, query in made.desk.asked if name == YAHOO] == [20, 16]
    assert [w.code for w in made.notes.warnings] == ["fallback_used", "field_missing"]


async def test_what_a_stand_in_does_not_say_is_named_and_names_come_from_our_list(compose):
    whole = await compose(stocks, world=OPEN)
    made = await compose(stocks, world=OPEN, down={CNBC})

    assert "field_missing" not in {w.code for w in whole.notes.warnings}
    (lacking,) = [w for w in made.notes.warnings if w.code == "field_missing"]
    assert lacking.section == "data.quotes"
    assert lacking.message == (
        "Not known from the providers that answered: as_of of 36 of 36 quotes, name of 5 of 36 quotes, delayed of 36"
        " of 36 quotes."
    )
    names = {row["symbol"]: row["name"] for row in made.json["quotes"]}
    assert (names["AAPL"], names["GOOGL"], names["SPY"]) == ("Apple", "Alphabet", None)
    assert made.json["indices"][0]["name"] == "S&P 500"


async def test_cboe_is_asked_for_ten_at_most_and_the_others_are_counted_missing(compose):
    made = await compose(stocks, world=OPEN, down={CNBC, YAHOO})

    assert sum(name == CBOE for name, _ in made.desk.asked) == 10
    assert [row["symbol"] for row in made.json["indices"]] == ["SPX", "DJI", "RUT", "VIX"]
    assert all(row["delayed"] for row in made.json["quotes"])
    warnings = {w.code: w for w in made.notes.warnings}
    assert warnings["missing_symbols"].message.startswith("26 without a quote")


async def test_finnhub_helps_when_there_is_a_key(compose):
    made = await compose(stocks, world=OPEN, down={CNBC, YAHOO, CBOE}, keys=KEYS)

    assert len(made.json["quotes"]) == 10
    assert made.json["indices"] == []
    assert {n.source.name: n.status for n in made.notes.sources if n.section == "data"} == {
        FINNHUB: "fallback", CNBC: "error", YAHOO: "error", CBOE: "error",
    }  # fmt: skip


async def test_a_provider_that_refuses_twice_is_left_alone(compose):
    made = await compose(stocks, world=OPEN, down={CNBC, YAHOO, CBOE}, keys=KEYS)

    assert sum(name == CBOE for name, _ in made.desk.asked) <= 4


async def test_when_nobody_answers_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(stocks, world=OPEN, down={"*"})


async def test_after_hours_and_on_weekends_prices_stand_and_are_not_stale(compose):
    night = await compose(stocks, world=World(1, datetime(2027, 1, 16, 3, tzinfo=UTC).timestamp()))
    sunday = await compose(stocks, world=World(1, datetime(2027, 1, 17, 20, tzinfo=UTC).timestamp()))

    assert night.json == sunday.json
    assert not any(row["stale"] for row in sunday.json["quotes"])


def held(*, age_s=0.0, traded_s=0.0, now=OPEN.time, **more):
    quote = StockQuote("AAPL", 100.0, 99.0, as_of=now - timedelta(seconds=traded_s), **more)
    return QuoteBoard({"AAPL": quote}, {"AAPL": now - timedelta(seconds=age_s)}).old("AAPL", now)


def test_a_quote_is_stale_when_it_was_fetched_long_ago_in_market_hours():
    assert held(age_s=721)
    assert not held(age_s=719)
    assert not held(age_s=721, now=datetime(2027, 1, 16, 18, tzinfo=UTC))


def test_a_quote_is_stale_when_it_stands_still_while_the_market_trades():
    assert held(traded_s=721, trading=True)
    assert not held(traded_s=721, trading=False)
    assert not held(traded_s=1000, trading=True, delayed=True)
    assert held(traded_s=2000, trading=True, delayed=True)


def test_there_are_thirty_one_default_shares():
    assert len(SHARES) == len(set(SHARES)) == 31
    assert set(SHARES) <= set(truth.SHARES)
