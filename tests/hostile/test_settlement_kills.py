"""The short form of `python -m tests.hostile.settlement_kills`: no signed payment is lost, doubled, or out of sight."""

from collections import Counter

import pytest

from tests.hostile.payable_chain import PayableChain
from tests.hostile.settlement_kills import Sent, find_end, kill_at_points
from tests.size import sized

POINTS = sized(10, fast=3, long=100)


@pytest.mark.live
@pytest.mark.timeout(120 + 30 * POINTS)
async def test_a_settlement_that_is_killed_ends_in_an_answer_in_credits_or_with_a_person(tmp_path):
    result = await kill_at_points(POINTS, tmp_path)
    print(result.stages, result.ends)
    assert result.kills == POINTS
    assert result.ends["credited"] > 0
    assert result.wrong == []


MADE = [{"nonce": "0x01", "hash": "0xaa"}]


@pytest.mark.parametrize(
    ("kind", "made", "row", "cases", "served", "end"),
    [
        ("call", [], None, {}, False, "not taken"),
        ("call", [], None, {}, True, "!served and never paid"),
        ("call", [], ("settling", None, None), {}, False, "!pending for ever"),
        ("call", MADE, None, {}, False, "!money moved"),
        ("call", MADE, ("settled", None, None), {}, False, "!unseen"),
        ("call", MADE, ("settled", None, 1), {}, True, "answered"),
        ("new token", MADE, ("settled", None, None), {"0xaa": 1}, False, "for a person"),
        ("new token", MADE, ("settled", b"t", None), {}, True, "credited"),
    ],
)
def test_an_end_that_must_not_be_is_told_from_one_that_may(kind, made, row, cases, served, end):
    sent, reviewed = Sent(kind, "", "0x01", None, is_served=served), Counter({"0xaa": 0} | cases)
    assert find_end(PayableChain(events=made), row, sent, reviewed).startswith(end)
