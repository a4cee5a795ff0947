"""What premium payloads must say of the bodies the upstreams gave: worked out from the wire, by no code of ours."""

import csv
import json
from collections import Counter
from datetime import UTC, date, datetime
from itertools import combinations, pairwise
from typing import Any

from tests.tools.premium.store import Recorded, T
from tests.tools.scipys import pearsonr

CODES = ("EUR", "JPY", "GBP", "CHF")
Json = Any


def told(up: Recorded, part: str) -> Json:
    return json.loads(up.body(part))


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def quakes_in(listed: Json) -> list[Json]:
    return [f for f in listed["features"] if f["properties"]["type"] == "earthquake" and f["properties"]["mag"]]


def binary(market: Json) -> list[float] | None:
    """Yes and no of an open yes/no market that is not settled yet."""
    yes, no = map(float, json.loads(market["outcomePrices"]))
    return [yes, no] if json.loads(market["outcomes"]) == ["Yes", "No"] and 0.005 < yes < 0.995 else None


def traded(up: Recorded) -> list[tuple[Json, list[float]]]:
    """The open yes/no markets with their prices, the most traded first."""
    found = [(m, both) for m in told(up, "gamma-api")["markets"] if (both := binary(m)) is not None]
    return sorted(found, key=lambda pair: -float(pair[0]["volume24hr"]))


def briefing(up: Recorded) -> Json:
    stats, mood = told(up, "BTC-USD/stats"), told(up, "alternative.me")["data"][0]
    last, before = float(stats["last"]), float(stats["open"])
    quakes = quakes_in(told(up, "2.5_day"))
    latest = max(quakes, key=lambda f: f["properties"]["time"])["properties"]
    humans = [p["name"] for p in told(up, "astronauts")["results"] if p["type"]["name"] != "Non-Human"]
    known = {int(hit["objectID"]) for hit in told(up, "hn.algolia")["hits"]}
    page = [story for story in told(up, "topstories") if story in known][:30]
    ended = [row for row in told(up, "granularity=3600") if row[0] + 3600 <= T][:24]
    top = [
        {
            "question": m["question"],
            "volume_24hr": round(float(m["volume24hr"]), 2),
            "outcomes": [{"name": "Yes", "price": both[0]}, {"name": "No", "price": both[1]}],
        }
        for m, both in traded(up)[:5]
    ]
    return {
        "sections": {
            "btc": {
                "price_usd": last,
                "change_24h_percent": round((last / before - 1) * 100, 2),
                "volume_24h": round(float(stats["volume"]) * last),
                "high_24h": float(stats["high"]),
                "low_24h": float(stats["low"]),
            },
            "fear_greed": {"value": int(mood["value"]), "label": mood["value_classification"]},
            "earthquakes": {
                "count": len(quakes),
                "latest": {"magnitude": latest["mag"], "place": latest["place"], "time": latest["time"]},
            },
            "tech_news": {"top_story_count": len(page)},
            "humans_in_space": {"count": len(humans), "names": sorted(humans)},
            "predictions": {"count": len(traded(up)), "top": top},
        },
        "series": {"btc_24h": [{"ts": row[0] * 1000, "price": row[4]} for row in reversed(ended)]},
    }


def table(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(text.decode().splitlines()))


def chart(up: Recorded, name: str) -> dict[date, float]:
    rows = table(up.body("fredgraph"))
    return {date.fromisoformat(r["observation_date"]): float(r[name]) for r in rows if r[name] not in ("", ".")}


def yields(up: Recorded, tenor: str) -> dict[date, float]:
    rows = [row for year in ("2026/all", "2027/all") for row in table(up.body(year))]
    return {datetime.strptime(r["Date"], "%m/%d/%Y").date(): float(r[tenor]) for r in rows if r[tenor]}


def economic(up: Recorded) -> dict[str, tuple[str, dict[date, float]]]:
    """Each figure's source and everything that was published of it."""
    labour = {
        s["seriesID"]: {
            date(int(d["year"]), int(d["period"][1:]), 1): float(d["value"])
            for d in s["data"]
            if d["period"] != "M13" and d["value"] != "-"
        }
        for s in told(up, "api.bls.gov")["Results"]["series"]
    }
    gdp = told(up, "api.db.nomics")["series"]["docs"][0]
    quarters = {
        date(int(p[:4]), 3 * int(p[-1]) - 2, 1): v
        for p, v in zip(gdp["period"], gdp["value"], strict=True)
        if v != "NA"
    }
    fed = {date.fromisoformat(r["effectiveDate"]): r["percentRate"] for r in told(up, "effr/last")["refRates"]}
    return {
        "fed_rate": ("nyfed:EFFR", fed),
        "cpi": ("bls:CUSR0000SA0", labour["CUSR0000SA0"]),
        "unemployment": ("bls:LNS14000000", labour["LNS14000000"]),
        "gdp_growth": ("dbnomics:BEA/NIPA-T10101/A191RL-Q", quarters),
        "treasury_10y": ("treasury:BC_10YEAR", yields(up, "10 Yr")),
    }


def dated(found: dict[date, float]) -> list[Json]:
    return [{"date": str(day), "value": found[day]} for day in sorted(found)[-30:]]


def newest(found: dict[date, float]) -> Json:
    day = max(found)
    return {"value": found[day], "date": str(day)}


def quote(row: Json) -> Json:
    last, before = float(row["last"].replace(",", "")), float(row["previous_day_closing"].replace(",", ""))
    return {
        "price": last,
        "change": round(last - before, 2),
        "change_percent": round((last / before - 1) * 100, 2),
    }


def quoted(up: Recorded) -> list[Json]:
    return list(told(up, "quote.cnbc.com")["FormattedQuoteResult"]["FormattedQuote"])


def macro(up: Recorded) -> Json:
    rates = told(up, "api.frankfurter.dev")["rates"]
    quotes = {row["symbol"].lstrip("."): row for row in quoted(up)}
    oil, gas = newest(chart(up, "DCOILWTICO")), newest(chart(up, "DHHNGSP"))
    return {
        "economic": {
            name: newest(found) | {"source": source, "series": dated(found)}
            for name, (source, found) in economic(up).items()
        },
        "forex": {
            "base": "USD",
            "date": max(rates),
            "rates": {code: rates[max(rates)][code] for code in CODES},
            "series": {code: [{"date": d, "value": rates[d][code]} for d in sorted(rates)[-30:]] for code in CODES},
        },
        "commodities": {
            "gold": {"price_usd": told(up, "api.gold-api.com")["price"]},
            "silver": None,
            "oil": {"price_usd": oil["value"], "date": oil["date"]},
            "nat_gas": {"price_usd": gas["value"], "date": gas["date"]},
        },
        "markets": {name: quote(quotes[name.upper()]) for name in ("spy", "dia", "qqq", "vix")},
    }


def world_deltas(up: Recorded) -> Json:
    """At the first look, when stories are those submitted within the hour."""
    quakes = {f["id"]: f for f in quakes_in(told(up, "2.5_day")) if f["properties"]["mag"] >= 4}
    events = [
        ("earthquake", q["properties"]["time"] / 1000, graded(q["properties"]["mag"], 5, 6), q["id"])
        for q in quakes.values()
        if q["properties"]["time"] / 1000 > T - 3600
    ]
    events += [
        ("tech_news_story", T, graded(hit["points"], 25, 100), int(hit["objectID"]))
        for hit in told(up, "hn.algolia")["hits"]
        if hit["created_at_i"] > T - 3600
    ]
    for m in told(up, "gamma-api")["markets"]:
        moved = abs(m.get("oneHourPriceChange") or 0)
        opened = seconds(m["createdAt"]) > T - 3600
        if binary(m) and float(m["volume24hr"]) >= 10_000 and (moved >= 0.01 or opened):
            events.append(("prediction_market_update", T, graded(moved, 0.05, 0.10), m["id"]))
    for flight in told(up, "ll.thespacedevs.com")["results"]:
        crewed = any(word in json.dumps(flight["mission"]).lower() for word in ("crew", "human exploration"))
        failed = "fail" in flight["status"]["name"].lower()
        timed = flight["net_precision"]["abbrev"] in ("SEC", "MIN", "HR")
        if timed and -3600 <= seconds(flight["net"]) - T <= 12 * 3600:
            severity = "major" if crewed or failed else "moderate"
            events.append(("space_launch", seconds(flight["net"]), severity, flight["id"]))
    return events


def graded(value: float, moderate: float, major: float) -> str:
    return "major" if value >= major else "moderate" if value >= moderate else "minor"


def correlations(up: Recorded) -> dict[frozenset[str], tuple[float, int]]:
    """r by SciPy and the number of returns, for each pair of assets."""
    since = date(2027, 1, 15).toordinal() - 75
    assets = {
        "OIL_WTI": chart(up, "DCOILWTICO"),
        "TREASURY_10Y": yields(up, "10 Yr"),
        "TREASURY_2Y": yields(up, "2 Yr"),
        "USD_INDEX": chart(up, "DTWEXBGS"),
    }
    found = {}
    for (a, one), (b, other) in combinations(assets.items(), 2):
        days = [d for d in sorted(one.keys() & other.keys()) if d.toordinal() >= since][-31:]
        returns = [[series[d] / series[c] - 1 for c, d in pairwise(days)] for series in (one, other)]
        found[frozenset((a, b))] = (pearsonr(*returns).statistic, len(days) - 1)
    return found


def repository(item: Json) -> Json:
    return {
        "full_name": item["full_name"],
        "language": item["language"],
        "topics": item["topics"][:10],
        "license": None if item["license"] in (None, {}) else spdx(item["license"]["spdx_id"]),
        "owner": item["owner"]["login"],
        "owner_type": item["owner"]["type"],
        "stars": item["stargazers_count"],
        "forks": item["forks_count"],
        "open_issues": item["open_issues_count"],
        "created_at": item["created_at"],
    }


def spdx(name: str) -> str | None:
    return None if name == "NOASSERTION" else name


def velocity(up: Recorded, searched_at: float) -> Json:
    def best(part: str, most: int) -> list[Json]:
        own = [i for i in told(up, part)["items"] if not (i["fork"] or i["archived"])]
        return sorted(own, key=lambda i: (-i["stargazers_count"], i["full_name"]))[:most]

    trending = []
    for item in best("q=created", 30):
        age = round(max(1.0, (searched_at - seconds(item["created_at"])) / 86400), 1)
        speed = round(item["stargazers_count"] / age, 1)
        trending.append(repository(item) | {"age_days": age, "stars_per_day": speed})
    languages = Counter(repo["language"] or "unknown" for repo in trending)
    topics = Counter(topic for repo in trending for topic in repo["topics"])
    return {
        "trending_repos": trending,
        "ai_ml_repos_active_30d": [repository(item) for item in best("q=topic", 15)],
        "languages": dict(languages),
        "topics": sorted(topics.values(), reverse=True)[:20],
        "stars": sum(repo["stars"] for repo in trending),
    }
