"""Live mode in a network of its own: every upstream by its name, over TLS and HTTP/2, directly and through a proxy."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from tests.core.company_proxy import PASSWORD
from tests.rehearsal.agents import AGENT, FACILITATOR, NAME
from tests.rehearsal.private_net import run_in_net

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

TRUE_OF_ALL = {"truncated"}  # a longer list was shortened as asked
AT_FIRST = {"premium_world_deltas": {"incomplete_window"}}  # needs prices of an hour ago, and nobody keeps them for us
BOUGHT = 250  # credits for 5 USDC
PROXIED = {"internet_pulse": {"own_network_suspect"}}  # it measures connections of its own, which a proxy hides
PLAIN = {"mainnet.base.org", "base-rpc.publicnode.com", FACILITATOR, AGENT}  # of sales and sign-ins: by HTTP/1.1


@pytest.fixture(scope="module", params=["directly", "proxy"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("net")
    found = run_in_net("tests.rehearsal.private_net", folder, request.param, within_s=170)
    return found | {"way": request.param}


@pytest.mark.parametrize("number", [0, 1])
def test_every_tool_answers_fresh_and_whole_the_first_and_the_second_time(seen, number):
    answers, excused = seen["rounds"][number], AT_FIRST | (PROXIED if seen["way"] == "proxy" else {})
    assert sum(answer["tier"] == "premium" for answer in answers.values()) == 10
    assert sum(answer["tier"] == "free" for answer in answers.values()) == 33  # and health, which asks nobody
    amiss = {
        name: answer
        for name, answer in answers.items()
        if (answer["status"], answer["stale"]) != (200, False)
        or {warning["code"] for warning in answer["warnings"]} - TRUE_OF_ALL - excused.get(name, set())
    }
    assert amiss == {}


def test_sources_are_spoken_to_over_http2_and_none_is_asked_for_what_it_has_not(seen):
    spoken = seen["spoken"]
    assert len(spoken) > 50
    assert {host for host, protocols in spoken.items() if protocols != ["HTTP/2.0"]} <= PLAIN
    assert seen["unmatched"] == []


def test_what_was_bought_over_the_same_net_pays_for_each_premium_answer_once(seen):
    charged = sum(answer["credits"] for answers in seen["rounds"] for answer in answers.values())
    assert charged > 0
    assert seen["balance"]["credits"] == BOUGHT - charged


def test_the_bridge_reaches_a_service_by_its_name_over_tls_and_only_with_its_authority(seen):
    if seen["way"] == "directly":
        assert (seen["bridge"]["exit"], seen["bridge_untrusting"]["exit"]) == (0, 1), seen["bridge"]
        assert json.loads(seen["bridge"]["said"])["data"]["count"] > 20
        assert "certificate" in seen["bridge_untrusting"]["said"]
    else:
        assert "bridge" not in seen


def test_a_program_signs_in_by_the_document_at_its_public_name_and_none_by_one_that_is_inside(seen):
    if seen["way"] == "directly":
        said = seen["signing_in"]
        assert said["offered"] is True
        assert (said["good"][0], NAME in said["good"][1], AGENT in said["good"][1]) == (200, True, True), said["good"]
        assert (said["inside"][0], "could not be read" in said["inside"][1]) == (400, True), said["inside"]
        assert seen["spoken"][AGENT]
        assert seen["unmatched"] == []  # nothing was asked of what is inside
    else:
        assert "signing_in" not in seen


def test_one_call_is_paid_by_a_signature_that_a_facilitator_settles_by_its_name(seen):
    if seen["way"] == "directly":
        paying = seen["paying"]
        assert seen["spoken"][FACILITATOR]
        assert (paying["refused"], paying["status"]) == (402, 200), paying
        assert paying["endpoint"]
        assert paying["settled"]["success"] is True
        assert paying["again"] == [200, True]
    else:
        assert "paying" not in seen


def test_behind_a_wall_every_host_is_reached_through_the_proxy_and_none_without_it(seen):
    if seen["way"] == "proxy":
        assert seen["tunnels"] == sorted(seen["spoken"])
        assert "(no_dns)" in seen["doctor_without"]
        assert "(no_dns)" not in seen["doctor"]
        assert "(servers_count_as_one)" in seen["doctor"]
    else:
        assert "tunnels" not in seen


def test_the_password_of_the_proxy_is_in_no_log_and_in_no_report(seen):
    said = seen.get("log", "") + seen.get("doctor", "") + seen.get("doctor_without", "")
    assert bool(said) is (seen["way"] == "proxy")
    assert [word for word in (PASSWORD, unquote(PASSWORD)) if word in said] == []
