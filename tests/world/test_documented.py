"""The page for users says everything there is."""

import re
from pathlib import Path

from toolserver.world.control import COMMANDS, EVENT_KINDS
from toolserver.world.faults import KINDS
from toolserver.world.state import scenarios

PAGE = (Path(__file__).parents[2] / "docs" / "simulated-world.md").read_text()


def test_every_kind_of_fault_and_each_of_its_parameters_is_in_the_table():
    for kind, parameters in KINDS.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{kind}` |"))
        for name in parameters:
            assert f"`{name}`" in row


def test_every_scenario_is_in_the_table_and_no_other():
    table = PAGE[PAGE.index("## Scenarios") :]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(scenarios())


def test_every_control_request_and_kind_of_event_is_named():
    named = set(re.findall(r"/_sim/(\w+)", PAGE)) | {""}
    assert named == {name for _, name in COMMANDS}
    assert all(kind in PAGE for kind in EVENT_KINDS)
