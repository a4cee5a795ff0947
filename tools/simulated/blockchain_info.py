"""Simulate Blockchain.com on the wire: floats with exponents, the newest transactions with all outputs."""

from typing import Any

from tools.simulated import bitcoin, market
from tools.simulated.bitcoin import SimOutput, SimTx
from toolserver.world.model import Ask, Reply, World, serves

LISTED = 100
ERROR = {"error": "internal-server-error", "message": "Something went wrong."}

FORMS = {
    "error200": Reply.json(ERROR),
    "limited": Reply.text("Maximum concurrent requests for this endpoint reached. Please try again shortly.", 429),
}


@serves("BlockchainInfo.stats", "api.blockchain.info", "/stats", forms=FORMS | {"empty": Reply.json({})})
def stats(world: World, ask: Ask) -> Reply:
    return Reply.json(_stats(world))


def _stats(world: World) -> dict[str, Any]:
    height, price = bitcoin.height(world), market.price(world, "BTC", venue="blockchain")
    return {
        "market_price_usd": round(price, 2),
        "hash_rate": bitcoin.hashrate(world, 1) / 1e9,
        "total_fees_btc": -42187500000,
        "n_btc_mined": 45_000_000_000,
        "n_tx": 480_000,
        "n_blocks_mined": 144,
        "minutes_between_blocks": 9.97,
        "totalbc": 1_990_000_000_000_000,
        "n_blocks_total": height + 1,
        "blocks_size": 240_000_000,
        "miners_revenue_usd": 0.0,
        "nextretarget": (height // 2016 + 1) * 2016 - 1,
        "difficulty": bitcoin.difficulty(world),
        "timestamp": float(int((world.now - 45) * 1000)),
    }


@serves(
    "BlockchainInfo.unconfirmed_txs",
    "blockchain.info",
    "/unconfirmed-transactions",
    forms=FORMS | {"empty": Reply.json({"txs": []})},
)
def unconfirmed(world: World, ask: Ask) -> Reply:
    return Reply.json({"txs": [_listed(tx) for tx in bitcoin.newest(world, LISTED)]})


def _listed(tx: SimTx) -> dict[str, Any]:
    return {
        "hash": tx.txid,
        "ver": 2,
        "vin_sz": len(tx.inputs),
        "vout_sz": len(tx.outputs),
        "size": tx.vsize + 80,
        "weight": tx.weight,
        "fee": tx.fee_sat,
        "relayed_by": "0.0.0.0",
        "lock_time": 0,
        "tx_index": int(tx.txid[:13], 16),
        "double_spend": False,
        "time": int(tx.at),
        "block_index": None,
        "block_height": None,
        "inputs": [
            {"sequence": 4294967293, "witness": "", "script": "", "index": n, "prev_out": _side(n, spent, spent=True)}
            for n, spent in enumerate(tx.inputs)
        ],
        "out": [_side(n, output, spent=False) for n, output in enumerate(tx.outputs)],
    }


def _side(n: int, side: SimOutput, *, spent: bool) -> dict[str, Any]:
    script = "6a" if side.address is None else "0014" + side.address[4:44]
    common = {"type": 0, "spent": spent, "value": side.value_sat, "spending_outpoints": [], "n": n, "script": script}
    return common | ({} if side.address is None else {"addr": side.address})


@stats.form("drift")
def fewer_figures(world: World, ask: Ask) -> Reply:
    """Return text for numbers, and only the mining figures, in another order."""
    figures = {name: str(value) for name, value in _stats(world).items()}
    return Reply.json({name: figures[name] for name in ("timestamp", "difficulty", "hash_rate")})


@unconfirmed.form("drift")
def more_members(world: World, ask: Ask) -> Reply:
    """Return text for amounts, an empty address for none, no relay, and an additional balance."""
    listed = [_listed(tx) for tx in bitcoin.newest(world, LISTED)]
    for row in listed:
        row["out"] = [{"addr": "", **out, "value": str(out["value"])} for out in row["out"]]
        row |= {"fee": str(row["fee"]), "time": float(row["time"]), "result": 0, "balance": 0}
        del row["relayed_by"], row["size"]
    return Reply.json({"txs": listed})
