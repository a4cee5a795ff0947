"""The service status tool."""

import anyio
import pytest

import tools.simulated.aws
import tools.simulated.azure
import tools.simulated.google_cloud
import tools.simulated.slack
import tools.simulated.statuspages  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.service_status import service_status
from tools.shared.status import MAJOR_SOURCES, MAJORS, PAGES, STATUS_SOURCES, UNREACHABLE, soon
from tools.simulated.incidents import SERVICES, incidents
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceDown, SourceError
from toolserver.world.model import ROUTES, Edits, World


def expected(world):
    return ROUTES.expectations["service-status"](world, {})


def states(made):
    return [{"name": i["name"], "status": i["status"]} for i in made.json]


async def test_all_fifteen_pages_are_told_in_a_fixed_order_and_equal_the_world(compose):
    made = await compose(service_status)

    assert [i["name"] for i in made.json] == SERVICES
    assert states(made) == expected(World(1, NOW))
    assert {i["checked_at"] for i in made.json} == {"2027-01-15T08:00:00Z"}
    assert made.json[0]["url"] == "https://www.githubstatus.com"
    assert made.notes.warnings == []
    assert len(made.notes.sources) == 15


@pytest.mark.parametrize("service", SERVICES)
async def test_an_incident_shows_on_the_page_it_concerns_and_on_no_other(compose, service):
    world = World(1, NOW)
    during = world.at(incidents(world, service, NOW - 2 * 86400)[0].began + 60)

    made = await compose(service_status, world=during)

    assert states(made) == expected(during)
    if service != "OpenAI":  # whose incidents may be of ChatGPT alone
        assert states(made)[SERVICES.index(service)]["status"] in ("degraded", "partial_outage")


@pytest.mark.parametrize("impact", ["minor", "major", "critical", "maintenance"])
async def test_every_impact_is_told_as_far_as_the_page_can_tell_it(compose, impact):
    events = [{"kind": "incident", "at": NOW - 60, "page": s, "impact": impact} for s in SERVICES]
    world = World(1, NOW, Edits(events=events))

    made = await compose(service_status, world=world)

    assert states(made) == expected(world)


@pytest.mark.parametrize("index", range(15))
async def test_a_page_that_does_not_answer_is_unknown_and_the_others_are_not(compose, index):
    made = await compose(service_status, down={STATUS_SOURCES[index].name})

    item = made.json[index]
    assert (item["status"], item["description"], item["checked_at"]) == ("unknown", UNREACHABLE, None)
    assert [i["name"] for i in made.json if i["status"] == "unknown"] == [PAGES[index].name]
    (warning,) = made.notes.warnings
    assert (warning.code, warning.source) == ("section_unavailable", STATUS_SOURCES[index].name)
    assert warning.section == f"data.{PAGES[index].name.replace(' ', '')}"


async def test_when_no_page_answers_nothing_is_claimed(compose):
    with pytest.raises(SourceError):
        await compose(service_status, down={"*"})


async def test_a_slow_page_is_given_up_and_counts_as_a_timeout():
    async def never(reading):
        await anyio.sleep_forever()

    with pytest.raises(SourceDown) as caught:
        await soon(never, 0.001)(None)
    assert caught.value.reason == "timeout: no answer in 0.001 s"


def test_the_four_majors_are_those_of_the_specification():
    assert [page.name for page in MAJORS] == ["GitHub", "Cloudflare", "OpenAI", "Anthropic"]
    assert [source.name for source in MAJOR_SOURCES] == [f"Statuspage.{page.name}" for page in MAJORS]


def test_one_stale_page_of_fifteen_does_not_make_the_answer_stale():
    operation = operation_of(service_status)
    assert (operation.toolset, operation.ttl_s, operation.stale_share) == ("core", 60, 0.25)


def test_a_page_that_refuses_closes_no_other_page():
    pages = {source.hosts for source in STATUS_SOURCES if source.hosts.name == "status"}

    assert [group.each_host for group in pages] == [True]
