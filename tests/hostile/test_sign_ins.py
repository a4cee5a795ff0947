"""The attack of `python -m tests.hostile.sign_ins` in small: documents that never arrive, and sign-ins beside them."""

import pytest

from tests.deploy.proxies import PROXIES, find_proxy
from tests.hostile.fronts import DIRECT, SERVERS
from tests.hostile.sign_ins import CROWDS, run

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
SECONDS = 8.0


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("server", SERVERS)
def test_sign_ins_whose_documents_never_arrive_hold_nobody_up(tmp_path, server, crowd):
    figures = run(server, DIRECT, crowd, SECONDS, tmp_path)

    assert figures.unanswered == {}, str(figures)
    assert figures.sign_ins["answered"] >= 6
    assert figures.most_hanging >= 4, "no document hung, so this was no attack"


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("proxy", PROXIES)
def test_behind_a_proxy_strangers_hold_up_nobody_either(tmp_path, server, proxy):
    if find_proxy(proxy) is None:
        pytest.skip(f"{proxy} is not here")
    figures = run(server, proxy, "several", SECONDS, tmp_path)

    assert figures.unanswered == {}, str(figures)
    assert figures.sign_ins["answered"] >= 6
    assert figures.most_hanging >= 4
