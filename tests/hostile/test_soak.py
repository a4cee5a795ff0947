"""The short form of `python -m tests.hostile.soak`."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.hostile.soak import SERVERS, Honest, Soak, Use, soak_server
from tests.hostile.soak_clients import CLIENTS
from tests.size import sized

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

SECONDS = sized(9, fast=9, long=60)


@pytest.mark.parametrize("server", SERVERS)
def test_all_hostile_clients_at_once_keep_no_honest_one_from_its_answer(tmp_path, server):
    run = soak_server(server, SECONDS, tmp_path)
    assert run.wrong == []
    assert len(run.strangers["acted"]) == len(CLIENTS), "every kind of client has acted"
    assert run.honest.statuses.total() > (0 if run.is_starved else 5), (
        "each of them was answered, and well: see `wrong`"
    )


GOOD = Soak("s", Use(100, 50, 0), 0.01, [Use(120, 400, 10)] * 9, Honest(), {"statuses": {"400": 1}}, recovered_s=4)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"uses": [Use(120, 50 + 60 * n, 10) for n in range(9)]}, "descriptors rise"),
        ({"uses": [Use(251, 50, 10)]}, "251 MB"),
        ({"uses": [Use(120, 50, 10_000_001)]}, "of log"),
        ({"strangers": {"statuses": {"503": 1}}}, "503"),
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
    assert replace(slow, honest=Honest(), after_p99_s=0.3).slow == ["p99 afterwards 300 ms"]
    assert replace(slow, waited_share=0.5).slow == []
