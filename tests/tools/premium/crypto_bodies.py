"""The same for the coin market and the state of both networks."""

import math

from tests.tools.premium.bodies import Json, told
from tests.tools.premium.store import Recorded, T

FEES = {
    "fastest": "fastestFee",
    "half_hour": "halfHourFee",
    "hour": "hourFee",
    "economy": "economyFee",
    "minimum": "minimumFee",
}


def crypto_deep(up: Recorded) -> Json:
    coins = told(up, "api.coingecko.com")[:50]
    fees, waiting = told(up, "fees/precise"), told(up, "mempool.space/api/mempool")
    power, history = told(up, "hashrate/3d"), up.calls("eth_feeHistory")[0]
    days = [row for row in told(up, "granularity=86400") if row[0] + 86400 <= T][:30]
    base = int(history["baseFeePerGas"][-1], 16)
    tips = [sorted(int(row[n], 16) for row in history["reward"] if row) for n in range(3)]
    exact = [(base + (t[len(t) // 2] + t[(len(t) - 1) // 2]) / 2) / 1e9 for t in tips]
    names = ("low", "standard", "fast")
    return {
        "coins_top50": [
            {
                "symbol": c["symbol"].upper(),
                "name": c["name"],
                "market_cap": c["market_cap"],
                "volume_24h": c["total_volume"],
                "rank": c["market_cap_rank"],
                **{
                    f"change_{span}_percent": round(c[f"price_change_percentage_{span}_in_currency"], 2)
                    for span in ("1h", "24h", "7d")
                },
            }
            for c in coins
        ],
        "exchange_top20_usdt": pairs(told(up, "ticker/24hr")),
        "network_btc": {
            "block_height": told(up, "blocks/tip/height"),
            "fees_sat_per_vb": {ours: max(1, math.ceil(fees[theirs])) for ours, theirs in FEES.items()}
            | {f"{ours}_exact": fees[theirs] for ours, theirs in FEES.items()},
            "hashrate": {
                "current_eh_s": round(power["currentHashrate"] / 1e18, 2),
                "current_difficulty": power["currentDifficulty"],
                "mean_days": 7,
            },
            "mempool": {"count": waiting["count"], "vsize": waiting["vsize"], "total_fee_sat": waiting["total_fee"]},
        },
        "eth_gas": {f"{name}_gwei": max(1, math.ceil(value)) for name, value in zip(names, exact, strict=True)}
        | {f"{name}_gwei_exact": round(value, 4) for name, value in zip(names, exact, strict=True)}
        | {"base_fee_gwei": round(base / 1e9, 4)},
        "series": {
            "btc_30d": [
                dict(zip(("ts", "low", "high", "open", "close"), (r[0] * 1000, *r[1:5]), strict=True))
                for r in reversed(days)
            ]
        },
    }


def pairs(tickers: Json) -> list[Json]:
    """The most traded coins against USDT: no money, no leveraged tokens."""
    money = {"USDC", "FDUSD", "TUSD", "DAI", "EUR", "USDP", "BUSD", "USDE", "USD1", "PYUSD", "RLUSD", "XUSD", "USDS"}
    coins = [t for t in tickers if t["symbol"].endswith("USDT") and t["symbol"][:-4] not in money]
    leveraged = ("UP", "DOWN", "BULL", "BEAR")
    coins = [t for t in coins if not (len(t["symbol"]) > 8 and t["symbol"][:-4].endswith(leveraged))]
    best = sorted(coins, key=lambda t: -float(t["quoteVolume"]))[:20]
    return [
        {
            "pair": f"{t['symbol'][:-4]}-USDT",
            "change_24h_percent": round(float(t["priceChangePercent"]), 2),
            "trades_24h": t["count"],
        }
        for t in best
    ]
