"""What the simulated world would have answered to a recorded request, keys removed and all."""

import json

from toolserver.cli.source_probe import SEEDS, simulate_bodies
from toolserver.core.recorded_exchange import REMOVED, RecordedExchange

AT = 1_800_000_000.5


def asked(url, **parts):
    return RecordedExchange("Any", parts.pop("method", "GET"), url, sent_at=AT, **parts)


def test_there_is_a_body_for_each_seed():
    bodies = simulate_bodies(asked("https://api.kraken.com/0/public/OHLC?pair=XBTUSD&interval=60"))
    assert len(bodies) == len(set(bodies)) == len(SEEDS)
    assert all("XXBTZUSD" in json.loads(body)["result"] for body in bodies)


def test_a_posted_question_is_asked_as_it_was():
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    bodies = simulate_bodies(asked("https://ethereum-rpc.publicnode.com/", method="POST", sent_json=call))
    assert all(json.loads(body)["result"].startswith("0x") for body in bodies)


def test_what_stands_in_place_of_a_key_is_taken_for_one():
    url = f"https://api.stlouisfed.org/fred/series/observations?series_id=DFF&limit=10&sort_order=desc&file_type=json&api_key={REMOVED}"
    assert len(simulate_bodies(asked(url))) == len(SEEDS)
    assert simulate_bodies(asked(url.replace(REMOVED, "other"))) == []


def test_a_path_that_is_escaped_is_found():
    url = "https://query1.finance.yahoo.com/v8/finance/chart/GC%3DF?range=5d&interval=1d"
    assert len(simulate_bodies(asked(url))) == len(SEEDS)


def test_what_is_not_simulated_has_none():
    assert simulate_bodies(asked("https://nowhere.example/")) == []
