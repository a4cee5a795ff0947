"""The short form of `python -m tests.deploy.fault_matrix`, and that its judge sees what must not happen."""

from dataclasses import replace

import pytest

from tests.deploy.clock_rows import SLACK_MS, judge_times
from tests.deploy.fault_matrix import FAULTS, Row, choose_faults, judge, try_faults
from tests.deploy.fault_stage import OFF_S
from tests.deploy.pager import FOLDER, find_prometheus, shorten
from tests.deploy.proxies import PROXIES, find_proxy
from tests.deploy.test_alarms import listed_alarms
from tests.hostile.instances_load import KINDS, Call
from tests.size import sized
from toolserver.clock import TOLERANCE_S

SHORT = {"nginx": ("fails over",), "caddy": ("drained",)}
WHOLE = dict.fromkeys(PROXIES, ())
CHOSEN = sized(SHORT, fast=SHORT, long=WHOLE)


@pytest.mark.live
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("proxy", PROXIES)
def test_behind_the_shipped_proxies_faults_cost_no_free_call_and_no_credit_and_are_named(tmp_path, proxy):
    if find_proxy(proxy) is None or find_prometheus() is None:
        pytest.skip("a proxy or prometheus is not here")
    run = try_faults(tmp_path, proxy, seconds=1.0, faults=choose_faults(CHOSEN[proxy]))
    run.print()
    assert run.wrong == []
    assert run.charged > 100


def test_each_fault_has_an_alert_that_is_shipped():
    assert {fault.alert for fault in FAULTS} <= set(listed_alarms())
    assert len(FAULTS) == 12
    assert choose_faults([])[-1].name == "PostgreSQL fails over"


def test_alerts_wait_for_a_part_of_their_time_and_are_else_as_shipped():
    rules = (FOLDER / "rules.yml").read_text()
    assert shorten(rules, 1) == rules
    sooner = shorten(rules, 60)
    assert len(sooner.splitlines()) == len(rules.splitlines())
    changed = [(old, new) for old, new in zip(rules.splitlines(), sooner.splitlines(), strict=True) if old != new]
    assert all(old.lstrip().startswith("for: ") for old, _ in changed)
    assert shorten("for: 1h\nfor: 5m\nfor: 0m\nfor: 10s", 60) == "for: 60s\nfor: 5s\nfor: 0s\nfor: 1s"


def row_of(name, *calls):
    fault = next(each for each in FAULTS if name in each.name)
    answered = [Call(kind, 0, 1.0, 0.1, "200") for kind in KINDS]
    return Row(fault, [*answered, *calls], paged_s=1.0, quiet_s=1.0, named="a line", shown="a code", lacked="a part")


@pytest.mark.parametrize(
    ("name", "kind", "said", "is_wrong"),
    [
        ("is stopped", "free", "503 storage_unavailable", True),
        ("is stopped", "paid", "402 billing_unavailable", False),
        ("is stopped", "paid", "402 insufficient_credits", True),
        ("is stopped", "paid, MCP", "cut", True),
        ("Redis is full", "paid", "402 billing_unavailable", True),
        ("instance is killed", "free", "502", True),
        ("instance is killed", "free, MCP", "502", True),
        ("instance is killed", "paid, MCP", "502", False),
        ("instance is killed", "paid, MCP", "cut", False),
        ("is drained", "free, MCP", "502", True),
        ("is drained", "paid", "cut", True),
    ],
)
def test_a_call_is_excused_only_where_the_fault_explains_it(name, kind, said, is_wrong):
    assert judge(row_of(name)) == []
    assert bool(judge(row_of(name, Call(kind, 0, 1.0, 0.1, said)))) is is_wrong


def test_a_fault_that_nobody_names_is_wrong():
    row = row_of("is drained")
    assert judge(replace(row, paged_s=-1.0)) == ["ToolserverDown did not fire within 120 s"]
    assert judge(replace(row, named="")) == ["doctor does not name it"]
    assert judge(replace(row, shown="")) == []
    assert judge(replace(row_of("clock"), shown="")) == ["the operators' page does not name it"]
    assert judge(replace(row_of("clock"), lacked="")) == ["/readyz does not list clock"]
    assert judge(replace(row, lacked="")) == []
    assert judge(replace(row, quiet_s=-1.0)) == ["not well again within 120 s"]
    assert "no call was answered: free" in judge(replace(row, calls=[]))


def test_a_row_of_an_instances_own_clock_is_wrong_whichever_way_it_is_off():
    began, ended, off_ms = 1_800_000_000_000, 1_800_000_005_000, int(OFF_S * 1000)
    assert off_ms > 5 * SLACK_MS  # else it would prove nothing
    assert OFF_S > TOLERANCE_S
    assert judge_times({"a sale": began, "a quote": ended}, began, ended) == []
    assert len(judge_times({"a sale": began + off_ms, "a quote": ended - off_ms}, began, ended)) == 2
