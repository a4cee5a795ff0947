"""Simulate mempool.space on the wire: the height as bare text, precise and whole fees, the ten newest transactions."""

import math
from typing import Any

from tools.simulated import bitcoin
from toolserver.world.model import Ask, Reply, World, serves

NAME, HOST = "Mempool.network", "mempool.space"
OWN = "mempool.example"  # a possible value of MEMPOOL_URL: https://mempool.example
FEES = ("fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee")
RECENT = 10


def backlog(world: World) -> dict[str, Any]:
    count, vsize, fee = bitcoin.waiting(world)
    rate = bitcoin.next_block_fee(world)
    steps = [[round(rate * share, 3), 50_000 + n] for n, share in enumerate((1.2, 1, 0.8, 0.6))]
    return {"count": count, "vsize": vsize, "total_fee": fee, "fee_histogram": steps}


def recent(world: World) -> list[dict[str, Any]]:
    newest = bitcoin.newest(world, RECENT)
    return [{"txid": tx.txid, "fee": tx.fee_sat, "vsize": tx.weight / 4, "value": tx.total_sat} for tx in newest]


REFUSALS = {
    "limited": Reply.text("Too many requests", 429),
    "status:503": Reply.text("<html><body>503 Service Temporarily Unavailable</body></html>", 503, "text/html"),
}
NO_FIGURES = REFUSALS | {"empty": Reply.json({})}


@serves(NAME, HOST, "/api/blocks/tip/height", forms=REFUSALS | {"empty": Reply.text("")})
def tip(world: World, ask: Ask) -> Reply:
    return Reply.text(str(bitcoin.height(world)))


@serves(NAME, HOST, "/api/v1/fees/precise", forms=NO_FIGURES)
def precise(world: World, ask: Ask) -> Reply:
    return Reply.json(dict(zip(FEES, bitcoin.fees(world), strict=True)))


@serves(NAME, HOST, "/api/v1/fees/recommended", forms=NO_FIGURES)
def recommended(world: World, ask: Ask) -> Reply:
    """Return whole fees, at least 1."""
    return Reply.json({name: max(1, math.ceil(fee)) for name, fee in zip(FEES, bitcoin.fees(world), strict=True)})


@serves(NAME, HOST, "/api/v1/mining/hashrate/3d", forms=NO_FIGURES)
def mining(world: World, ask: Ask) -> Reply:
    days = [world.at(world.now - world.now % bitcoin.DAY - n * bitcoin.DAY) for n in (2, 1, 0)]
    hard = {"time": int(days[0].now), "difficulty": bitcoin.difficulty(days[0]), "height": bitcoin.height(days[0])}
    return Reply.json(
        {
            "hashrates": [{"timestamp": int(day.now), "avgHashrate": int(bitcoin.hashrate(day, 1))} for day in days],
            "difficulty": [hard | {"timestamp": hard["time"], "adjustment": 1.01}],
            "currentHashrate": int(bitcoin.hashrate(world, 7)),
            "currentDifficulty": bitcoin.difficulty(world),
        }
    )


@serves(NAME, HOST, "/api/mempool", forms=NO_FIGURES)
def mempool(world: World, ask: Ask) -> Reply:
    return Reply.json(backlog(world))


@serves(NAME, HOST, "/api/mempool/recent", forms=REFUSALS | {"empty": Reply.json([])})
def newest(world: World, ask: Ask) -> Reply:
    return Reply.json(recent(world))


@tip.form("drift")
def height_with_a_line_end(world: World, ask: Ask) -> Reply:
    return Reply.text(f"{bitcoin.height(world)}\n")


@precise.form("drift")
def fees_as_text(world: World, ask: Ask) -> Reply:
    """Return fees as text, in another order, with one more member."""
    fees = dict(zip(FEES, bitcoin.fees(world), strict=True))
    return Reply.json({"updated": 1} | {name: str(value) for name, value in reversed(fees.items())})


@recommended.form("drift")
def whole_fees_as_text(world: World, ask: Ask) -> Reply:
    fees = {name: max(1, math.ceil(fee)) for name, fee in zip(FEES, bitcoin.fees(world), strict=True)}
    return Reply.json({name: str(value) for name, value in reversed(fees.items())})


@mining.form("drift")
def floats(world: World, ask: Ask) -> Reply:
    """Return numbers with an exponent, and only the two members that the source needs."""
    figures = {"currentDifficulty": str(bitcoin.difficulty(world)), "currentHashrate": bitcoin.hashrate(world, 7)}
    return Reply.json({"hashrates": []} | figures)


@mempool.form("drift")
def no_histogram(world: World, ask: Ask) -> Reply:
    return Reply.json({name: str(value) for name, value in reversed(backlog(world).items()) if name != "fee_histogram"})


@newest.form("drift")
def more_members(world: World, ask: Ask) -> Reply:
    return Reply.json([{"rate": row["fee"] / row["vsize"], **row, "value": str(row["value"])} for row in recent(world)])


for _path, _route in {
    "/api/blocks/tip/height": tip,
    "/api/v1/fees/precise": precise,
    "/api/v1/fees/recommended": recommended,
    "/api/v1/mining/hashrate/3d": mining,
    "/api/mempool": mempool,
    "/api/mempool/recent": newest,
}.items():
    serves(NAME, OWN, _path)(_route.handler).forms |= _route.forms
