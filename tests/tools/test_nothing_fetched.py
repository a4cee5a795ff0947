"""An answer of which nothing was ever fetched says `stale: true`, whatever of it is made without a source."""

import json
from datetime import UTC, datetime

import pytest

from tests.calls.parts import engine
from tests.specified import ENDPOINTS
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.faulty.upstreams import VIA, Pages, Upstreams
from tests.tools.test_all_free import BY_ENDPOINT, FREE, OF_ITSELF, T
from toolserver.settings import UpstreamSettings
from toolserver.world.providers import load_providers

load_providers()
MEASURED = {"internet-pulse"}  # that servers do not answer is what it measured
CHOICES = [
    *((name, row.example) for name, row in ENDPOINTS.items() if name not in OF_ITSELF | MEASURED),
    *(("harnesses", f"view={view}") for view in ("raw", "gaps", "combined")),
    ("weather", "place=Paris"),
]


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


async def test_an_answer_of_which_nothing_was_ever_fetched_is_stale():
    clock = LoopClock(datetime.fromtimestamp(T, UTC))
    upstreams = Upstreams(clock, Pages())
    upstreams.fault("*", "status", code=503)
    wrong = []
    async with engine(FREE, internet=upstreams, clock=clock, upstream=UpstreamSettings(via=VIA)) as e:
        for endpoint, query in CHOICES:
            arguments = dict(part.split("=", 1) for part in query.split("&") if part)
            outcome = await e.call(BY_ENDPOINT[endpoint].name, arguments)
            answer = json.loads(outcome.rendered.payload)
            said = (answer["stale"], answer["_meta"]["stale"], answer.get("updated_at"))
            if said != (True, True, None) or not answer.get("warning"):
                wrong.append((endpoint, query, said))
    assert wrong == []
