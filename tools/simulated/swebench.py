"""Simulate SWE-bench's leaderboards on the wire: one document, with more boards than the source needs."""

from collections.abc import Mapping
from typing import Any

from tools.simulated.benchmarks import MINI, Score, swe_bench
from toolserver.world.model import Ask, Reply, World, expects, serves

HOST, PATH = "raw.githubusercontent.com", "/SWE-bench/swe-bench.github.io/master/data/leaderboards.json"
NAMELESS = "Secret Agent (2026-01-01)"  # states no model
PAIR = "Relay + two models"


def _boards(boards: Mapping[str, list[dict[str, Any]]]) -> Reply:
    body = {"leaderboards": [{"name": name, "results": rows} for name, rows in boards.items()]}
    return Reply.json(body, content_type="text/plain; charset=utf-8")


FORMS = {
    "empty": _boards({"bash-only": [], "Verified": []}),
    # other boards
    "error200": _boards({"Lite": []}),
}


@serves("SWEbench.leaderboards", HOST, PATH, forms=FORMS)
def leaderboards(world: World, ask: Ask) -> Reply:
    scores = swe_bench(world)
    verified = [_row(f"{s.harness} + {s.model} ({s.day})", [s.model], s) for s in scores]
    verified.append(_row(NAMELESS, [], Score("", "", 41.5, "2026-01-01")))
    verified.append(_row(PAIR, ["gpt-5-2025-08-07", "o3-2025-04-16"], Score("", "", 61.2, "2026-01-02")))
    bash_only = [_row(f"{s.model} ({s.day})", [s.model], s) for s in scores if s.harness == MINI]
    return _boards({"bash-only": bash_only, "Test": verified[:3], "Verified": verified, "Lite": [], "Multimodal": []})


def _row(name: str, models: list[str], score: Score) -> dict[str, Any]:
    return {
        "name": name,
        "logo": ["https://images.example/logo.png"],
        "site": "https://agents.example/",
        "folder": f"{score.day.replace('-', '')}_{score.harness}",
        "resolved": score.percent,
        "date": score.day,
        "logs": None,
        "trajs": None,
        "trajs_docent": False,
        "cost": None,
        "instance_cost": None,
        "instance_calls": None,
        "os_model": False,
        "os_system": True,
        "checked": score.harness == MINI,
        "tags": [*(f"Model: {model}" for model in models), "Org: Example", "System: Attempts - 1"],
        "warning": None,
    }


@expects("harnesses")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return what `/api/harnesses?view=summary` must show first when SWE-bench answers."""
    best = swe_bench(world)[0]
    top = {"harness": best.harness, "model": best.model, "score": best.percent}
    return {"benchmarks": [{"id": "swe_bench_verified", "top": top}]} if params.get("view") == "summary" else {}
