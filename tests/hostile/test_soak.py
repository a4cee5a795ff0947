"""The short form of `python -m tests.hostile.soak`: each server, direct and behind each proxy."""

from collections import Counter
from dataclasses import replace
from ipaddress import IPv6Network
from itertools import product
from random import Random

import pytest

from tests.deploy.proxies import PROXIES, find_proxy
from tests.hostile.fronts import DIRECT, SERVERS
from tests.hostile.soak import DESCRIPTORS, Honest, Soak, Use, soak_apart
from tests.hostile.soak_clients import CLIENTS, KINDS, LEAST_ALONE, choose_address, choose_clients
from tests.size import sized

SECONDS = sized(20, fast=8, long=120)
ALL = list(product(SERVERS, [DIRECT, *PROXIES]))
SOAKED = sized(ALL[::2], fast=ALL[::2], long=ALL)  # each server and each way to it, in a minute
MOST_RATIO = 25


@pytest.mark.live
@pytest.mark.timeout(300 + 3 * SECONDS)
@pytest.mark.parametrize(("server", "proxy"), SOAKED)
def test_all_hostile_clients_at_once_keep_no_honest_one_from_its_answer(tmp_path, server, proxy):
    if proxy != DIRECT and find_proxy(proxy) is None:
        pytest.skip(f"{proxy} is not here")
    run = soak_apart(server, proxy, SECONDS, tmp_path)
    assert run["wrong"] == []
    assert len(run["strangers"]["acted"]) == len(CLIENTS), "every kind of client has acted"
    assert sum(run["strangers"]["acted"].values()) > DESCRIPTORS, "and more often than there are places"
    assert run["asked"] > (0 if run["is_starved"] else 5), "each was answered, and well: see `wrong`"
    assert run["ratio"] < MOST_RATIO or run["is_starved"]


def test_strangers_are_one_address_several_and_the_networks_of_a_48():
    rng = Random(1)
    chosen = [{choose_address(n, rng, has_network=True) for n in range(crowd, 9000, 3)} for crowd in range(3)]
    assert chosen[0] == {"127.1.0.1"}
    assert len(chosen[1]) == 500
    networks = {IPv6Network((address, 64), strict=False) for address in chosen[2]}
    assert len(networks) > 2000
    assert {network.supernet(new_prefix=48) for network in networks} == {IPv6Network("fd00:48::/48")}
    assert {choose_address(n, rng, has_network=False)[:5] for n in range(99)} == {"127.1", "127.2"}


def test_strangers_of_one_kind_alone_are_more_than_in_the_crowd():
    assert len(choose_clients(None)) == sum(CLIENTS.values()) > DESCRIPTORS
    for client, kind in zip(CLIENTS, KINDS, strict=True):
        alone = choose_clients(kind)
        assert set(alone) == {client}
        assert len(alone) >= max(LEAST_ALONE, 2 * CLIENTS[client])


THEIRS = {"statuses": {"400": 1}, "bad": []}
GOOD = Soak(
    "s",
    DIRECT,
    Use(100, 50, 0),
    0.01,
    [Use(120, 400, 10)] * 9,
    Honest(),
    {"statuses": {"400": 1}, "bad": []},
    recovered_s=4,
)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"uses": [Use(120, 50 + 60 * n, 10) for n in range(9)]}, "descriptors rise"),
        ({"uses": [Use(251, 50, 10)]}, "251 MB"),
        ({"uses": [Use(120, 50, 10_000_001)]}, "of log"),
        ({"strangers": {"bad": ["500"]}}, "fail"),
        ({"honest": Honest(Counter({200: 9}), [0.1], paid=1, sign_ins=Counter({"page: 503": 1}))}, "sign-in refused"),
        ({"recovered_s": None}, "within a minute"),
        ({"honest": Honest(Counter({200: 9, 429: 1}), [0.1], paid=1)}, "refused"),
        ({"honest": Honest(Counter({200: 9}), [0.1], Counter({"ReadTimeout": 1}), paid=1)}, "lost"),
        ({"honest": Honest(Counter({200: 9}), [0.1])}, "bought"),
    ],
)
def test_what_must_not_be_is_said(changed, said):
    good = replace(GOOD, honest=Honest(Counter({200: 9}), [0.1], paid=1))
    assert good.wrong == []
    assert any(said in what for what in replace(good, **changed).wrong)


def test_times_are_judged_only_where_the_server_had_its_processor():
    slow = replace(GOOD, honest=Honest(Counter({200: 9}), [0.3] * 9, paid=1))
    assert (slow.wrong, slow.slow) == ([], ["honest p99 300 ms"])
    assert replace(slow, proxy="nginx").slow == []
    assert replace(slow, honest=Honest(), after_p99_s=0.3).slow == ["p99 afterwards 300 ms"]
    assert replace(slow, honest=Honest(sign_ins_s=[0.1, 3.5])).slow == ["a sign-in took 3.5 s"]
    assert slow.ratio == 30
    assert replace(slow, waited_share=0.5).slow == []
