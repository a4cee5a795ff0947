"""Every source is switched off in turn: each tool answers or says that nothing did, and names what it lacks.

Also every first few of a tool's sources together, so that each fallback is used. What the answers assert is judged in
`tests/truth`.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.served import all_tools
from tests.size import a_share
from tests.tools.desk import compose
from tests.tools.selling import sell
from toolserver.context.provenance import Caveat
from toolserver.errors import UpstreamUnavailable
from toolserver.registry.registry import Operation, Tier
from toolserver.serving.packaged_texts import read_shipped_facts
from toolserver.upstream.source import SourceError

TOOLS = [o for o in all_tools() if o.tier in (Tier.FREE, Tier.PREMIUM) and o.sources and o.name != "internet_pulse"]
PREMIUM = [operation for operation in TOOLS if operation.tier is Tier.PREMIUM]
WHOLE = {"section_unavailable", "partial", "incomplete_window", "insufficient_sample"}
"""Warnings that all of a section may be missing; others name the members that are."""


def names_of(operation: Operation) -> list[str]:
    return list(dict.fromkeys(source.name for source in operation.sources))


def list_cases(operation: Operation) -> Iterator[set[str]]:
    """Each source alone, and the first two, three … of them together."""
    names = names_of(operation)
    yield from ({name} for name in names)
    yield from (set(names[:count]) for count in range(2, len(names) + 1))


def filled(value: Any, path: str = "") -> Iterator[str]:
    """The paths of members that are not null, in any row of a list."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from filled(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for row in value:
            yield from filled(row, path)
    elif value is not None:
        yield path


def is_named(path: str, warnings: list[Caveat], down: set[str]) -> bool:
    """Whether a warning names the lost member, or says that all of the section of a failed source is missing."""
    affected = {w.section for w in warnings if w.source in down or any(name in w.message for name in down)}
    return any(
        path.rpartition(".")[2] in warning.message or (warning.code in WHOLE and warning.section in affected)
        for warning in warnings
    )


@pytest.mark.parametrize("operation", a_share(TOOLS, 3), ids=lambda operation: operation.name)
async def test_what_is_lost_with_a_source_is_named(operation):
    usual = set(filled((await compose(operation.function)).json))
    silent = []
    for down in list_cases(operation):
        try:
            made = await compose(operation.function, down=down)
        except SourceError:
            continue  # nothing answered, which the engine says with a warning and null
        lost = usual - set(filled(made.json))
        silent += [f"{path} without {sorted(down)}" for path in lost if not is_named(path, made.notes.warnings, down)]
    assert silent == []


@pytest.mark.slow("each source of each tool is off in turn")
async def test_a_source_without_a_substitute_is_said_to_be_alone_and_no_other_is():
    """A section is lost with one source alone, or has another that stands in."""
    lost: dict[str, set[str]] = {}
    for operation in TOOLS:
        for name in names_of(operation):
            try:
                made = await compose(operation.function, down={name})
            except SourceError:
                lost.setdefault(name, set()).add(operation.name)
                continue
            gone = [w.section for w in made.notes.warnings if w.code == "section_unavailable"]
            lost.setdefault(name, set()).update(f"{operation.name}: {section}" for section in gone)
    alone = {name for name, facts in read_shipped_facts().items() if facts.alone and not name.startswith("Bundled.")}
    assert {name: sections for name, sections in lost.items() if sections and name not in alone} == {}
    assert {name for name in alone if not lost.get(name)} == set()


@pytest.mark.parametrize("operation", a_share(PREMIUM, 3), ids=lambda operation: operation.name)
async def test_an_answer_is_charged_if_something_answered_and_not_if_nothing_did(operation):
    for name in names_of(operation):
        try:
            sale = await sell(operation.function, down={name})
        except UpstreamUnavailable:
            continue  # nothing answered, so there is nothing to charge
        free = sale.body.get("stale") or sale.outcome.rendered.no_charge == "empty_result"
        assert sale.paid == (0 if free else operation.credits), name
    with pytest.raises(UpstreamUnavailable):
        await sell(operation.function, down={"*"})
