"""Simulate METR's time horizons on the wire: nested mappings in YAML, keys in alphabetical order."""

from tools.simulated.benchmarks import MODELS, minutes
from toolserver.world.model import Ask, Reply, World, serves

HEAD = """benchmark_name: METR-Horizon-v1.1
doubling_time_in_days: # excludes points with central estimate p50 > 16 hrs
  from_2023_on:
    ci_high: 158.012
    ci_low: 104.428
    point_estimate: 128.744
results:
"""
MODEL = """  {key}:
    benchmark_name: METR-Horizon-v1.1
    metrics:
      average_score:
        estimate: 0.5
      is_sota: {able}
      p50_horizon_length:
        ci_high: {high}
        ci_low: {low}
        estimate: {estimate}
      p80_horizon_length:
        estimate: {low}
    release_date: {day}
    scaffolds:
    - mtb/start_metr_task,metr_agents/react
"""


def _document(models: str) -> Reply:
    return Reply.text(HEAD + models, content_type="text/yaml")


FORMS = {
    "empty": _document(""),
    # the next version of the file
    "error200": Reply.text("benchmark_name: METR-Horizon-v2.0\nmodels: {}\n", content_type="text/yaml"),
}


@serves("METR.time_horizons", "metr.org", "/assets/benchmark_results_1_1.yaml", forms=FORMS)
def horizons(world: World, ask: Ask) -> Reply:
    return _document("".join(_model(world, name, day, able) for name, day, able in MODELS))


def key_of(name: str) -> str:
    """Return a model's name in METR's spelling."""
    return name.replace("-", "_").replace(".", "_")


def _model(world: World, name: str, day: str, able: float) -> str:
    estimate = minutes(world, name, able)
    return MODEL.format(
        key=key_of(name),
        able=str(able > 0.7).lower(),
        high=round(estimate * 2, 3),
        low=round(estimate / 2, 3),
        estimate=estimate,
        day=day,
    )
