"""Simulate Aider's polyglot leaderboard on the wire: hand-written YAML with comments and quotes."""

from tools.simulated.benchmarks import Score, polyglot
from toolserver.world.model import Ask, Reply, World, serves

HOST, PATH = "raw.githubusercontent.com", "/Aider-AI/aider/main/aider/website/_data/polyglot_leaderboard.yml"
YAML = "text/plain; charset=utf-8"
ROW = """- dirname: {day}-20-23-07--{model} # as it was run
  test_cases: 225
  model: {model}
  edit_format: {form}
  commit_hash: 2fccd47
  pass_rate_1: 20.4
  pass_rate_2: {percent}
  pass_num_1: 46
  percent_cases_well_formed: 100.0
  command: "aider --model {model} # via example"
  date: {day}
  versions: 0.75.2.dev
  seconds_per_case: 34.8
  total_cost: 0 # incorrect: 6.3174

"""


@serves("Aider.polyglot_leaderboard", HOST, PATH, forms={"empty": Reply.text("[]\n", content_type=YAML)})
def leaderboard(world: World, ask: Ask) -> Reply:
    return Reply.text("".join(_row(score) for score in polyglot(world)), content_type=YAML)


@leaderboard.form("drift")
def other_order(world: World, ask: Ask) -> Reply:
    """Return keys in another order, one new key, indented lists, quoted text."""
    rows = (
        f'  - date: "{s.day}"\n    new_key: 1\n    pass_rate_2: {s.percent}\n'
        f"    edit_format: '{s.harness.removeprefix('Aider/')}'\n    model: {s.model}\n"
        for s in polyglot(world)
    )
    return Reply.text("# results\n" + "".join(rows), content_type=YAML)


def _row(score: Score) -> str:
    form = score.harness.removeprefix("Aider/")
    return ROW.format(day=score.day, model=score.model, form=form, percent=score.percent)
