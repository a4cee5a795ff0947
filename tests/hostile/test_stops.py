"""One stop of `python -m tests.hostile.stops` for each server: each takes as long as a call may."""

import pytest

from tests.hostile.fronts import DIRECT, SERVERS
from tests.hostile.stops import stop_once

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


@pytest.mark.parametrize("server", SERVERS)
def test_a_stop_answers_every_call_in_progress_and_refuses_half_a_body_in_words(tmp_path, server):
    stop = stop_once(server, DIRECT, tmp_path)

    assert stop.wrong == [], str(stop)
    assert (stop.calls.total(), stop.halves.total()) == (6, 2)
