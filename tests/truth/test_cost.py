"""Proofs cost at most a twentieth more upstream requests and work of the processor."""

from collections import Counter
from unittest.mock import Mock

import pytest

from tests.truth import cost
from tests.truth.cost import MOST, Day, before_proofs, compare, main, report
from tools.shared import front_page
from toolserver.upstream import fetcher
from toolserver.upstream.outlier_guard import SizeGuard


@pytest.mark.slow("a quarter of an hour of every tool, asked at its TTL, with proofs and without")
@pytest.mark.timeout(900)
def test_truth_costs_little():
    before, now = compare(0.25)
    print(*report(before, now), sep="\n")

    assert now.answers >= 400
    assert before.asked < now.asked <= (1 + MOST) * before.asked
    assert 0 < now.calls <= (1 + MOST) * before.calls


def test_without_proofs_nothing_is_checked_and_afterwards_everything_is():
    page, life, size = front_page.proved_page, fetcher._judge_life, SizeGuard.check
    with before_proofs():
        assert front_page.require_young((), None) == ()
        assert front_page.proved_page is not page
        assert SizeGuard().check(None, "", [], None) is None
    assert (front_page.proved_page, fetcher._judge_life, SizeGuard.check) == (page, life, size)


@pytest.mark.parametrize(("requests", "calls", "code"), [(105, 2100, 0), (106, 2000, 1), (100, 2101, 1)])
def test_what_is_dearer_is_said_and_is_a_failure(monkeypatch, capsys, requests, calls, code):
    before = Day(Counter({"A.one": 97, "B.two": 3}), 10, 2.0, 2000)
    now = Day(Counter({"A.one": 97, "B.two": 1, "C.three": requests - 98}), 10, 2.0, calls)
    monkeypatch.setattr(cost, "compare", Mock(return_value=(before, now)))
    monkeypatch.setattr("sys.argv", ["cost"])

    assert main() == code
    said = capsys.readouterr().out
    assert f"upstream requests: 100 before, {requests} with proofs, {requests - 100:+.2f}%" in said
    assert "B.two: 3 before, 1 with proofs" in said
    assert "A.one" not in said
