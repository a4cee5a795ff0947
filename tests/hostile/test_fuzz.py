"""The short form of `python -m tests.hostile.fuzz`."""

import pytest

from tests.hostile.fuzz import Findings, fuzz
from tests.hostile.fuzz_inputs import DESCRIBED, TOOLS

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

INPUTS = 6000


def test_changed_requests_and_settings_find_nothing_wrong():
    found = fuzz(INPUTS, seed=7)
    assert found.sent.total() > INPUTS * 0.99
    assert len(found.sent) == 7
    assert found.statuses[200] > INPUTS / 20, "some inputs are good ones, so that more than the first check is reached"
    assert len(TOOLS) > 40
    assert len(DESCRIBED) > 40
    assert not found.wrong


@pytest.mark.parametrize(
    ("statuses", "wrong"), [([200, 400], {}), ([500], {"status 500": 1}), ([400, 503], {"status 503": 1})]
)
def test_an_answer_that_is_our_fault_is_a_finding(statuses, wrong):
    found = Findings()
    found.judge("JSON-RPC", b"{", statuses)
    assert dict(found.wrong) == wrong
