"""Identifiers: unique, ordered where order pays, and no stranger's text taken for one."""

import re
import time

import pytest

from toolserver.core.caller import is_sane_request_id, new_call_id, new_request_id


def test_request_ids_differ_and_have_one_form():
    made = {new_request_id() for _ in range(1000)}

    assert len(made) == 1000
    assert all(re.fullmatch(r"req_[0-9a-f]{22}", each) for each in made)


def test_call_ids_differ_and_begin_with_the_time(monkeypatch):
    made = []
    for nanoseconds in (1_000_000, 2_000_000, 3_000_000):
        monkeypatch.setattr(time, "time_ns", lambda at=nanoseconds: at)
        made += [new_call_id() for _ in range(400)]

    assert len(set(made)) == 1200
    assert all(re.fullmatch(r"call_[0-9a-f]{32}", each) for each in made)
    assert [each[5:17] for each in made[::400]] == ["000000000001", "000000000002", "000000000003"]


@pytest.mark.parametrize("given", ["my-request-1", "a.b:c_d-e", "x" * 128])
def test_a_callers_own_request_id_may_be_used(given):
    assert is_sane_request_id(given)


@pytest.mark.parametrize("given", ["", "short", "x" * 129, 'quote"quote', "new\nline1", "ünïcödé1", "with space"])
def test_anything_else_may_not(given):
    assert not is_sane_request_id(given)
