"""The short form of `python -m tests.hostile.instances`, and that its audit finds what it looks for."""

import base64
import json
from types import SimpleNamespace

import pytest

from tests.hostile.instances import FAULTS, Judge, Run, try_faults
from tests.hostile.instances_audit import Audit
from tests.hostile.instances_load import Call, Record
from tests.hostile.instances_scene import Instance
from tests.size import sized

PATIENCE_S = 8.0
KILLS, SECONDS = sized((2, 1.0), fast=(1, 1.0), long=(50, 5.0))


@pytest.mark.live
@pytest.mark.timeout(400 + 15 * KILLS + 2 * len(FAULTS) * SECONDS)
def test_faults_under_three_instances_lose_no_charge_make_none_twice_and_end_by_themselves(tmp_path):
    run = try_faults(tmp_path, kills=KILLS, seconds=SECONDS, patience_s=PATIENCE_S)
    run.print()
    assert run.wrong == []
    assert run.rows["an instance is killed"].times == KILLS
    assert len(run.rows) == len(FAULTS) + 1
    assert run.answers > 100
    assert run.given_back <= 9 * KILLS, "what a dead instance had sent since its last commit"


@pytest.mark.parametrize("said", ["402 insufficient_credits", "error insufficient_credits"])
def test_a_run_whose_buyers_have_nothing_left_says_so_and_tries_no_more(said):
    record = Record(calls=[Call("paid", 0, n, 1, "200") for n in range(300)])
    assert not record.has_spent_all()
    record.calls.append(Call("paid", 0, 300, 1, said))
    assert record.has_spent_all()
    record.calls.append(Call("free", 0, 301, 1, "200"))
    assert record.has_spent_all()


def signed(call_id, credits, sha256=""):
    core = {"call_id": call_id, "credits_charged": credits, "response_sha256": sha256}
    return "." + base64.urlsafe_b64encode(json.dumps(core).encode()).decode().rstrip("=") + "."


def test_callers_notice_two_prices_two_calls_for_a_key_and_half_an_answer():
    record = Record()
    assert record.hold(signed("call_1", 2), None) == "call_1"
    record.hold_keyed("k", "call_1")
    record.hold_keyed("k", "call_1")
    assert record.wrong == []
    record.hold(signed("call_1", 3), None)
    record.hold_keyed("k", "call_2")
    record.hold(signed("call_3", 1, "00"), b"half of it")
    assert [text.partition(":")[0] for text in record.wrong] == [
        "two prices", "two calls for one key", "cut short, and taken for whole",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ([("a", "posted", 2), ("b", "posted", 1)], []),
        ([("a", "posted", 2), ("b", "reversed", 1)], []),
        ([("a", "posted", 2), ("b", "posted", 1), ("c", "posted", 1)], ["charged, and never answered: c"]),
        ([("a", "posted", 2)], ["answered, and nobody knows it: b"]),
        ([("a", "posted", 2), ("b", "posted", 2)], ["b: 2 credits charged, 1 by the receipt"]),
        ([("a", "posted", 2), ("b", "posted", 1), ("c", "open", 1)], []),
        ([("a", "posted", 2), ("b", "open", 1)], ["answered, and still reserved: b"]),
    ],
)
def test_the_audit_finds_a_charge_without_its_answer_and_an_answer_without_its_charge(stored, said):
    scene = SimpleNamespace(buyers=["t"], shop=SimpleNamespace(rows=lambda sql: stored))
    audit = Audit(scene, Record(whole={"a": 2, "b": 1, "free": 0}))
    assert audit.check_calls() == said


@pytest.mark.parametrize(
    ("kept", "posted", "arrived", "said"),
    [
        ({"a": "charged"}, "a", "a", []),
        ({"a": "charged"}, "ab", "ab", []),  # only the last fires of a subscription are kept
        ({"a": "released"}, "", "", []),
        ({"a": "charged"}, "a", "", ["a fire was charged and never arrived: call_a"]),
        ({"a": "released"}, "", "a", ["a fire arrived and was not charged: call_a"]),
        ({}, "", "a", ["a fire arrived and was not charged: call_a"]),
        ({"a": "charged"}, "", "", ["fires and charges differ: call_a"]),
        ({"a": "released"}, "a", "a", ["fires and charges differ: call_a"]),
    ],
)
def test_the_audit_finds_a_fire_without_its_charge_and_a_charge_without_its_fire(kept, posted, arrived, said):
    def rows(sql):
        if "reservation" in sql:
            return [(f"call_{id}", "posted", 1) for id in posted]
        return [] if "'open'" in sql else [(f"call_{id}", state) for id, state in kept.items()]

    inbox = SimpleNamespace(ids=lambda: {f"msg_{id}" for id in arrived})
    scene = SimpleNamespace(hooked="t", inbox=inbox, shop=SimpleNamespace(rows=rows))
    assert Audit(scene, Record()).check_fires() == said


@pytest.mark.parametrize(
    ("fault", "call", "said"),
    [
        ("PostgreSQL hangs", Call("paid", 0, 5, 1, "402 billing_unavailable"), None),
        ("PostgreSQL hangs", Call("free", 0, 5, 1, "503 storage_unavailable"), "free was told 503"),
        ("PostgreSQL hangs", Call("paid", 0, 5, 1, "500 internal_error"), "paid was told 500"),
        ("PostgreSQL hangs", Call("paid, key", 0, 5, 1, "402 insufficient_credits"), "paid, key was told 402"),
        ("PostgreSQL hangs", Call("paid", 0, 5, 1, "cut"), "paid was told cut"),
        ("Redis hangs", Call("paid", 0, 5, 1, "402 billing_unavailable"), "paid was told 402"),
        ("Redis hangs", Call("free, MCP", 1, 5, 1, "cut"), None),
        ("Redis hangs", Call("free, MCP", 1, 7, 1, "cut"), "free, MCP was told cut"),
    ],
)
def test_a_refusal_is_excused_where_the_fault_explains_it(fault, call, said):
    found = next(each for each in FAULTS if each.name == fault)
    instances = [Instance.__new__(Instance), Instance.__new__(Instance)]
    for at, each in enumerate(instances):
        each.killed_at, each.started_at = ([5.5] if at else []), [0.0, 6.5]
    judge = Judge(SimpleNamespace(instances=instances), None, seconds=1, recovers_s=1, run=Run())
    wrong = judge.judge(found, [call, Call("free", 0, 5, 1, "200")])
    assert (wrong == []) if said is None else (said in wrong[0])


def test_only_where_postgres_fails_paid_calls_may_be_refused_and_no_free_one():
    assert [fault.name for fault in FAULTS if fault.refuses] == [each.name for each in FAULTS if "Postgre" in each.name]
