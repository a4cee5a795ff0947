"""What is true of the simulated world, looked up once for each scenario and instant."""

from functools import lru_cache

from tests.served import all_tools
from tests.truth.leaves import Leaves, collect
from tests.truth.stage import Case, world_of
from tools.simulated.disasters import SimDisaster, disasters
from tools.simulated.hackernews import front_page
from tools.simulated.usgs import SimQuake, quakes
from toolserver.world.model import ROUTES

PAGE = 60  # stories: two pages, since a front page of a moment ago held some of the second


@lru_cache(1000)
def quakes_since(scenario: str, now: float, since: float) -> tuple[SimQuake, ...]:
    """Earthquakes after `since` and up to `now`, newest first."""
    return tuple(quakes(world_of(scenario, now), since))


@lru_cache(1000)
def disasters_since(scenario: str, now: float, since: float) -> tuple[SimDisaster, ...]:
    """Disasters that went on after `since`, the last begun first."""
    return tuple(disasters(world_of(scenario, now), since))


@lru_cache(1000)
def stories_of(scenario: str, now: float) -> frozenset[object]:
    """Ids and titles of what is on the front page and the next."""
    return frozenset(each for story in front_page(world_of(scenario, now), PAGE) for each in (story.id, story.title))


def expected_of(case: Case, at: float) -> Leaves:
    """The values that the world expects in the answer of a case, by path."""
    return _expected(case.tool, case.arguments, case.scenario, at)


@lru_cache(1000)
def _expected(tool: str, arguments: tuple[tuple[str, object], ...], scenario: str, at: float) -> Leaves:
    expectation = ROUTES.expectations.get(all_tools()[tool].endpoint.removeprefix("/api/"))
    asked = {name: str(value) for name, value in arguments}
    return {} if expectation is None else collect(expectation(world_of(scenario, at), asked))
