"""`_meta` is a small part of the nine core answers, whatever happens in the world, as long as it answers."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.calls.parts import engine
from tests.served import all_tools
from tests.size import sized
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.faulty.upstreams import VIA, Pages, Upstreams
from tests.truth.stage import edits_of
from toolserver.settings import UpstreamSettings
from toolserver.world.state import scenarios

pytestmark = pytest.mark.usefixtures("simulated_time")

T = 1_800_000_000
CORE = "briefing btc_price earthquakes find_tools forex service_status stocks tech_news weather".split()
MOST, MOST_FAILED = 0.15, 0.2  # the second where every chain's first source fails: each is named with its reason
DEMO = {"simulated": True, "sources_digest": "00000000"}  # what a demonstration has in every answer
SILENT = {"all_down", "rate_limited", "html_storm", "cold_start_offline"}
"""Scenarios in which nobody answers: an answer is then little but `_meta`."""
ANSWERING = [name for name in scenarios() if name not in SILENT]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


def size(value: Mapping[str, Any]) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.parametrize("scenario", sized(ANSWERING, fast=["quiet", "busy"]))
async def test_meta_is_a_small_part_of_the_core_answers(scenario: str) -> None:
    clock = LoopClock(datetime.fromtimestamp(T, UTC))
    upstreams = Upstreams(clock, Pages())
    upstreams.state.edits = edits_of(scenario)
    for rule in scenarios()[scenario].rules:
        upstreams.state.faults.add({"match": rule["match"], **rule}, upstreams.state.world())
    meta = whole = 0
    async with engine(all_tools(), internet=upstreams, clock=clock, upstream=UpstreamSettings(via=VIA)) as e:
        for name in CORE:
            answer = json.loads((await e.call(name, {})).rendered.payload)
            answer["_meta"] |= DEMO
            meta, whole = meta + size(answer["_meta"]), whole + size(answer)

    assert meta <= (MOST_FAILED if scenario == "primary_down" else MOST) * whole, f"{meta} of {whole} bytes"
