"""The attack of `python -m tests.hostile.unfinished` in small: 300 connections for 192 places."""

from itertools import product

import pytest

from tests.deploy.proxies import PROXIES, find_proxy
from tests.hostile.fronts import DIRECT, SERVERS
from tests.hostile.unfinished import Attack, run
from tests.size import sized

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
SECONDS, PLACES = 4.0, 192
ALL = list(product(SERVERS, PROXIES, [False, True]))  # with our file, and where bodies are passed on as they come
BEHIND = sized([ALL[0], ALL[3], ALL[5], ALL[6]], fast=ALL[:1], long=ALL)  # each pair of two


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", ["bodies", "mixed"])
def test_strangers_who_never_finish_a_request_lose_their_own_places_and_everyone_else_is_answered(
    tmp_path, server, kind
):
    figures = run(server, DIRECT, Attack(5, 60, descriptors=256, kind=kind, opens=PLACES + 1), SECONDS, tmp_path)

    assert figures.unanswered == {}, str(figures)
    assert figures.calls["200"] >= 6
    assert figures.opened > PLACES, "there was a place for every stranger, so this was no attack"


@pytest.mark.parametrize(("server", "proxy", "is_careless"), BEHIND)
def test_one_stranger_behind_a_proxy_takes_no_place_from_others(tmp_path, server, proxy, is_careless):
    if find_proxy(proxy) is None:
        pytest.skip(f"{proxy} is not here")
    figures = run(
        server, proxy, Attack(1, 300, descriptors=256, is_careless=is_careless, opens=PLACES + 1), SECONDS, tmp_path
    )

    assert figures.unanswered == {}, str(figures)
    assert figures.calls["200"] >= 6
    assert figures.opened > PLACES
