"""What the drift report says of bodies that real upstreams sent, other years and other versions among them."""

import pytest

from tests.tools.desk import fetch
from tests.tools.test_samples import NOW, READ, REFUSED, asked, recorded
from toolserver.upstream.decode import read_body
from toolserver.upstream.drift import Drift, Question, find_drift
from toolserver.upstream.source import SourceError
from toolserver.world.model import World
from toolserver.world.providers import load_providers

BY_FILE = {row.file: row for row in (*READ, *REFUSED)}
SAME = (
    "alternative-me/fng-limit2.json",
    "bybit/tickers-linear-BTCUSDT.json",
    "kraken/ticker-XXBTZUSD.json",
    "mempool/fees-recommended.json",
    "fred/fredgraph-DCOILWTICO.csv",
    "gdacs/rss.xml",
    "usgs-earthquakes/2.5_day-2026-07.json",
)


def drift(file: str) -> list[Drift] | None:
    """The report of one recorded body, as `doctor --record` makes it."""
    load_providers()
    row = BY_FILE[file]
    request, body = asked(row.source, row.query), recorded(file)
    replies = [fetch(World(seed, NOW), request) for seed in (1, 2, 3)]
    try:
        is_read = not read_body(row.source, request, row.query, body).dropped
    except SourceError:
        is_read = False
    simulated = [reply.body for reply in replies if reply.status == 200]
    return find_drift(Question(row.source, request, row.query), body, simulated, is_read=is_read)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("binance/premiumIndex-BTCUSDT-2026.json", ("the whole body", "object instead of array", "parse fails")),
        (
            "coingecko/markets-top20-24h-7d.json",
            ("[].price_change_percentage_1h_in_currency", "absent", "answers change"),
        ),
        (
            "kalshi/events-nested-markets.json",
            ("cursor", "absent", "answers change"),
        ),
        ("etherscan/gasoracle-result-2020.json", ("result", "absent", "parse fails")),
        (
            "solana/getRecentPerformanceSamples-docs.json",
            ("result[].numNonVoteTransactions", "absent", "answers change"),
        ),
        ("yahoo/chart-AAPL-empty-weekend-1m.json", ("chart.result[].timestamp", "absent", "answers change")),
        (
            "open-meteo/forecast-fahrenheit-mph-2026-03.json",
            ("current.relative_humidity_2m", "absent", "parse fails"),
        ),
        (
            "rocketlaunch-live/next5-result-array-2022-05.json",
            ("the whole body", "array instead of object", "parse fails"),
        ),
        ("thespacedevs/launch-upcoming-list-2026-07.json", ("results[].rocket", "absent", "answers change")),
        ("huggingface/models-trending.json", ("[].lastModified", "absent", "answers change")),
        (
            "cisa-kev/kev-2023-04-trimmed.json",
            ("vulnerabilities[].knownRansomwareCampaignUse", "absent", "answers change"),
        ),
        ("gold/goldprice-dbXRates-USD.json", ("price", "absent", "parse fails")),
        ("steam/GetMostPlayedGames-3.json", ("response.ranks[].concurrent_in_game", "absent", "parse fails")),
        ("dydx/perpetualMarkets-wrapped.json", ("markets", "absent", "parse fails")),
    ],
)
def test_a_body_of_another_schema_is_told_by_the_field(sample, file, told):
    sample(file)
    found = drift(file)
    assert found is not None
    assert Drift(*told, is_schema=True) in found
    assert found[0].is_schema  # what matters stands first


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (
            "eth-rpc/eth_getBlockByNumber-testchain.json",
            ("result.transactions[].to", "null in 3 of 4 instead of string", "read all the same"),
        ),
        (
            "harnesses/swebench-leaderboards-2025-11.json",
            ("leaderboards[].results[].site", "array in 1 of 294 instead of string", "read all the same"),
        ),
        ("noaa-swpc/kp-index-listform-2026-02.json", ("[]", "array instead of object", "parse fails")),
    ],
)
def test_another_form_that_is_read_is_no_drift_of_the_schema(sample, file, told):
    sample(file)
    found = drift(file)
    assert found is not None
    assert Drift(*told, is_schema=False) in found
    assert not any(each.is_schema for each in found)


@pytest.mark.parametrize("file", SAME)
def test_a_body_of_the_same_schema_has_no_drift(sample, file):
    sample(file)
    found = drift(file)
    assert found is not None
    assert [each for each in found if each.effect != "not read"] == []
