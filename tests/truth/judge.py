"""Runs cases and says what is false in their answers."""

import logging
from collections.abc import Iterable
from typing import NamedTuple

import anyio

from tests.tools.faulty.skipping import SkippingLoop
from tests.truth.expected import Expectations
from tests.truth.facts import falsehoods
from tests.truth.said import Said
from tests.truth.stage import Case, Stage, simulated_time


class Verdict(NamedTuple):
    """How many cases were judged, and what was false."""

    cases: int
    false: list[str]


async def judge(cases: Iterable[Case]) -> Verdict:
    """Compose the answer of each case and compare it with the world."""
    stage = Stage()
    expectations = Expectations(stage)
    found: list[str] = []
    count = 0
    for case in cases:
        said = Said(case, await stage.compose(case))
        sentences = [*falsehoods(said), *await expectations.falsehoods(said)]
        found += [f"{case}: {sentence}" for sentence in sentences]
        count += 1
    return Verdict(count, found)


def run_judge(cases: Iterable[Case]) -> Verdict:
    """`judge` on an event loop of simulated time, without logs."""
    logging.disable(logging.CRITICAL)
    try:
        with simulated_time():
            return anyio.run(judge, list(cases), backend_options={"loop_factory": SkippingLoop})
    finally:
        logging.disable(logging.NOTSET)
