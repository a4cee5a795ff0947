"""Simulate DBnomics: one series, with periods and values as parallel lists since 1947."""

from typing import Any

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

SINCE = 1990


def _answer(documents: list[dict[str, Any]]) -> Reply:
    series = {"docs": documents, "limit": 1000, "num_found": len(documents), "offset": 0}
    return Reply.json({"_meta": {"version": "22.1.17"}, "series": series})


FORMS = {
    "empty": _answer([]),
    "status:404": Reply.json({"errors": [{"message": "Series not found"}], "message": "Series not found"}, 404),
}


@serves("DBnomics.us_real_gdp_growth", "api.db.nomics.world", "/v22/series/BEA/NIPA-T10101/A191RL-Q", forms=FORMS)
def growth(world: World, ask: Ask) -> Reply:
    quarters = macro.periods_out(world, SINCE, 3, macro.growth_release)
    document = {
        "@frequency": "quarterly",
        "dataset_code": "NIPA-T10101",
        "dataset_name": "Table 1.1.1. Percent Change From Preceding Period in Real Gross Domestic Product",
        "indexed_at": world.time.strftime("%Y-%m-%dT00:00:00.000Z"),
        "period": ["1946-Q4", *(f"{q.year}-Q{(q.month + 2) // 3}" for q in quarters)],
        "period_start_day": ["1946-10-01", *(q.isoformat() for q in quarters)],
        "provider_code": "BEA",
        "series_code": "A191RL-Q",
        "series_name": "Gross domestic product - Quarterly",
        "value": ["NA", *(macro.gdp_growth(world, q) for q in quarters)],
    }
    return _answer([document])
