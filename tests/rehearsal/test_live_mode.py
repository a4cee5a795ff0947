"""Live mode in a network of its own: every upstream by its name, over TLS and HTTP/2."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.deploy.proxies import find_proxy
from tests.extras import is_asked_for, without_extra
from tests.live.processes import ROOT, environment

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

TRUE_OF_ALL = {"truncated"}  # a longer list was shortened as asked
AT_FIRST = {"premium_world_deltas": {"incomplete_window"}}  # needs prices of an hour ago, and nobody keeps them for us
BOUGHT = 250  # credits for 5 USDC
CHAIN = {"mainnet.base.org", "base-rpc.publicnode.com"}  # of sales, which are written over HTTP/1.1


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if not is_asked_for("REHEARSAL") or find_proxy("unshare") is None or find_proxy("nginx") is None:
        without_extra("REHEARSAL")
    folder = tmp_path_factory.mktemp("net")
    words = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.rehearsal.private_net", str(folder)]
    ended = subprocess.run(words, env=environment({}, folder), cwd=ROOT, capture_output=True, timeout=170)
    assert ended.returncode == 0, ended.stderr.decode()
    found: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    return found


@pytest.mark.parametrize("number", [0, 1])
def test_every_tool_answers_fresh_and_whole_the_first_and_the_second_time(seen, number):
    answers = seen["rounds"][number]
    assert sum(answer["tier"] == "premium" for answer in answers.values()) == 10
    assert sum(answer["tier"] == "free" for answer in answers.values()) == 33  # and health, which asks nobody
    amiss = {
        name: answer
        for name, answer in answers.items()
        if (answer["status"], answer["stale"]) != (200, False)
        or {warning["code"] for warning in answer["warnings"]} - TRUE_OF_ALL - AT_FIRST.get(name, set())
    }
    assert amiss == {}


def test_sources_are_spoken_to_over_http2_and_none_is_asked_for_what_it_has_not(seen):
    spoken = seen["spoken"]
    assert len(spoken) > 50
    assert {host for host, protocols in spoken.items() if protocols != ["HTTP/2.0"]} <= CHAIN
    assert seen["unmatched"] == []


def test_what_was_bought_over_the_same_net_pays_for_each_premium_answer_once(seen):
    charged = sum(answer["credits"] for answers in seen["rounds"] for answer in answers.values())
    assert charged > 0
    assert seen["balance"]["credits"] == BOUGHT - charged
