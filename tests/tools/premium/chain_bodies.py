"""The same for what happened on chains: from raw blocks and transactions."""

import math
from collections import Counter

from tests.tools.premium.bodies import Json, iso, told
from tests.tools.premium.store import Recorded
from tools.simulated.ethereum_chain import WALLETS

OWNERS = {address: name for name, known in WALLETS.items() for address in known}
ETHER = 10**18


def moves(up: Recorded, least_eth: float) -> list[tuple[Json, Json, float]]:
    """Block, transaction and ETH of the transfers of that size, newest block first."""
    blocks = sorted(up.calls("eth_getBlockByNumber"), key=lambda block: -int(block["number"], 16))
    found = [(b, t, int(t["value"], 16) / ETHER) for b in blocks for t in b["transactions"]]
    return [each for each in found if each[2] >= least_eth]


def whales(up: Recorded) -> Json:
    btc_usd, eth_usd = (float(told(up, f"{name}-USD/stats")["last"]) for name in ("BTC", "ETH"))
    btc = []
    for tx in told(up, "unconfirmed-transactions")["txs"]:
        payers = {i["prev_out"]["addr"] for i in tx["inputs"]}
        total = sum(o["value"] for o in tx["out"]) / 1e8
        moved = sum(o["value"] for o in tx["out"] if o.get("addr") not in payers) / 1e8
        if moved >= 10:
            vsize = math.ceil(tx["weight"] / 4)
            btc.append(
                {
                    "tx_hash": tx["hash"],
                    "value_btc": moved,
                    "value_btc_total": total,
                    "value_usd": round(moved * btc_usd),
                    "fee_sats": tx["fee"],
                    "vsize": vsize,
                    "fee_sat_per_vb": round(tx["fee"] / vsize, 2),
                    "first_seen": iso(tx["time"]),
                }
            )
    large = sorted(moves(up, 100), key=lambda each: -each[2])
    return {
        "spot_prices": {"btc_usd": btc_usd, "eth_usd": eth_usd},
        "btc_whales_unconfirmed": sorted(btc, key=lambda each: -each["value_btc"]),
        "eth_whales_latest_block": [
            {
                "tx_hash": t["hash"],
                "from": t["from"],
                "to": t["to"],
                "from_label": OWNERS.get(t["from"]),
                "to_label": OWNERS.get(t["to"]),
                "value_eth": round(value, 6),
                "value_usd": round(value * eth_usd),
                "block_number": int(b["number"], 16),
                "block_time": iso(int(b["timestamp"], 16)),
            }
            for b, t, value in large
        ],
        "aggregate": {
            "btc_whale_count": len(btc),
            "btc_whale_total_btc": sum(each["value_btc"] for each in btc),
            "eth_whale_count": len(large),
            "eth_whale_total_eth": round(sum(value for *_, value in large), 6),
        },
    }


def scanned(up: Recorded) -> list[Json]:
    blocks = sorted(up.calls("eth_getBlockByNumber"), key=lambda block: -int(block["number"], 16))
    return [
        {"number": int(b["number"], 16), "time": iso(int(b["timestamp"], 16)), "tx_count": len(b["transactions"])}
        for b in blocks
    ]


def exchange_flows(up: Recorded) -> Json:
    usd = float(told(up, "ETH-USD/stats")["last"])
    came, went, between = Counter[str](), Counter[str](), 0
    counts = Counter[tuple[str, str]]()
    for _, t, value in moves(up, 5):
        payer, paid = OWNERS.get(t["from"]), OWNERS.get(t["to"])
        if payer and paid:
            between += payer != paid
        elif paid:
            came[paid] += value
            counts[paid, "in"] += 1
        elif payer:
            went[payer] += value
            counts[payer, "out"] += 1
    inflow, outflow = sum(came.values()), sum(went.values())
    net = inflow - outflow
    calm = abs(net) < max(10, 0.1 * (inflow + outflow))
    return {
        "spot_eth_usd": usd,
        "blocks_scanned": scanned(up),
        "by_exchange": {
            name: [round(came[name], 4), round(went[name], 4), counts[name, "in"], counts[name, "out"]]
            for name in WALLETS
        },
        "aggregate": {
            "transfer_count": sum(counts.values()),
            "inter_exchange_count": between,
            "total_inflow_eth": round(inflow, 4),
            "total_outflow_eth": round(outflow, 4),
            "net_flow_eth": round(net, 4),
            "net_flow_usd": round(net * usd),
            "bias": "balanced" if calm else "inflow_dominant" if net > 0 else "outflow_dominant",
        },
    }
