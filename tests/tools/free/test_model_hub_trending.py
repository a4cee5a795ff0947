"""The tool for models that are liked now."""

import anyio
import pytest

import tools.simulated.huggingface  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tests.tools.faulty.skipping import SkippingLoop
from tests.truth.stage import Case, Fault, Stage, simulated_time
from tools.free.model_hub_trending import model_hub_trending
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, World

HUB = "HuggingFace.models_liked_7d"


async def test_models_come_in_the_order_of_the_hub_and_equal_the_world(compose):
    made = await compose(model_hub_trending)

    expected = ROUTES.expectations["model-hub-trending"](World(1, NOW), {})
    assert [{k: m[k] for k in ("id", "likes", "downloads", "pipeline", "author")} for m in made.json] == expected
    assert len(expected) == 15
    assert all(m["url"] == f"https://huggingface.co/{m['id']}" for m in made.json)
    assert all(m["updated"].endswith("Z") for m in made.json)
    assert not made.notes.warnings


async def test_when_the_hub_sorts_by_its_own_score_the_answer_says_so(compose):
    made = await compose(model_hub_trending, forms={HUB: "drift"})
    assert {m["updated"] for m in made.json} == {None}
    assert [w.code for w in made.notes.warnings] == ["degraded_fallback"]


@pytest.mark.parametrize("faults", [{"down": {"*"}}, {"forms": {HUB: "empty"}}, {"forms": {HUB: "limited"}}])
async def test_when_the_hub_does_not_answer_nothing_is_invented(compose, faults):
    with pytest.raises(SourceError):
        await compose(model_hub_trending, **faults)


def compose_under(*faults: Fault):
    """The answer of an engine that has never heard of the hub, and nothing else."""
    with simulated_time():
        case = Case("model_hub_trending", (), faults)
        return anyio.run(Stage().compose, case, backend_options={"loop_factory": SkippingLoop}).answer


def test_a_hub_that_has_stood_still_for_hours_is_found_out_at_the_first_look():
    frozen, alive = compose_under(Fault(HUB, "frozen", since=21 * 3600)), compose_under()

    assert (frozen["stale"], [w["code"] for w in frozen["warning"]]) == (True, ["stale_data"])
    assert "newest is from 2027-01-14" in frozen["warning"][0]["message"]
    assert (alive["stale"], alive.get("warning")) == (False, None)
