"""Simulate benchmarks of coding agents: fixed tables of models and harnesses, scores from the seed."""

from typing import NamedTuple

from toolserver.world.model import World

MODELS = (  # name, release date, ability
    ("gpt-4o-2024-05-13", "2024-05-13", 0.35),
    ("claude-3-5-sonnet-20241022", "2024-10-22", 0.5),
    ("o1-2024-12-17", "2024-12-17", 0.5),
    ("deepseek-r1", "2025-01-20", 0.5),
    ("claude-3-7-sonnet-20250219", "2025-02-24", 0.6),
    ("gemini-2.5-pro", "2025-06-17", 0.65),
    ("o3-2025-04-16", "2025-04-16", 0.66),
    ("claude-sonnet-4-20250514", "2025-05-22", 0.7),
    ("gpt-5-2025-08-07", "2025-08-07", 0.75),
    ("claude-sonnet-4-5-20250929", "2025-09-29", 0.8),
    ("qwen3-coder-480b", "2025-07-22", 0.62),
    ("kimi-k2-0711", "2025-07-11", 0.6),
)
HARNESSES = ("OpenHands", "SWE-agent", "Sonar Agent v2", "Moatless Tools")
FORMATS = ("diff", "whole")
MINI = "mini-SWE-agent"


class Score(NamedTuple):
    """The score of a harness with a model, in percent."""

    harness: str
    model: str
    percent: float
    day: str


def swe_bench(world: World) -> list[Score]:
    """Return half of all pairs, and every model with the small harness; best first."""
    pairs = [(h, m) for h in HARNESSES for m in MODELS if world.u("swe.submitted", f"{h}.{m[0]}") < 0.5]
    scores = [_score(world, harness, model) for harness, model in [*pairs, *((MINI, m) for m in MODELS)]]
    return sorted(scores, key=lambda score: -score.percent)


def polyglot(world: World) -> list[Score]:
    """Return every model in both formats."""
    return [_score(world, f"Aider/{form}", model) for model in MODELS for form in FORMATS]


def minutes(world: World, model: str, able: float) -> float:
    """Return the length of task at which a model succeeds half the time."""
    return round(2 ** (12 * able + world.between("metr", model, -1, 0)), 6)


def _score(world: World, harness: str, model: tuple[str, str, float]) -> Score:
    name, day, able = model
    percent = round(100 * able * world.between("benchmark", f"{harness}.{name}", 0.75, 1.05), 1)
    return Score(harness, name, percent, day)
