"""Two programs, one ledger: what is bought at one is spent at the other, and no failure between them costs anybody."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.buying import bought
from tests.live.processes import UNLIMITED, Program, ran, started
from tests.live.signing_in import SigningIn
from tests.live.test_webhooks import Inbox
from tests.ports import reserve_port
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(150)]

SECRET = "0123456789abcdef" * 4
BRIEFING, MACRO = "/api/pro/briefing", "/api/pro/macro"


class Sisters:
    """An owner, which can be taken away and put back, and its follower."""

    def __init__(self, folder: Path, world: str) -> None:
        self.folder, self.world, self._ports = folder, world, (reserve_port(), reserve_port())
        self._owner = ExitStack()
        self.shared = {**UNLIMITED, "TOOLSERVER_UPSTREAM__VIA": world, "TOOLSERVER_SOURCES__LICENCE_POLICY": "any"}
        self.owner: Program

    def come(self) -> None:
        keys = {"TOOLSERVER_LEDGER__KEYS": json.dumps({"b-1": SECRET}), "TOOLSERVER_LEDGER__SERVICES": '{"b-1": ["b"]}'}
        chain = json.dumps([f"{self.world}/u/mainnet.base.org/", f"{self.world}/u/base-rpc.publicnode.com/"])
        sells = {"ENABLED": "true", "RPC_URLS": chain, "XPUB": xpub()}
        selling = {f"TOOLSERVER_PAYMENTS__{name}": value for name, value in sells.items()}
        flags = ("--port", str(self._ports[0]), "--data-dir", str(self.folder / "owner"))
        inner = {"TOOLSERVER_LEDGER__PORT": str(self._ports[1])}
        environment = {**self.shared, **keys, **inner, **selling}
        self.owner = self._owner.enter_context(started("serve", *flags, folder=self.folder, **environment))

    def go(self) -> None:
        self._owner.close()

    @property
    def follows(self) -> dict[str, str]:
        own = {
            "URL": f"http://127.0.0.1:{self._ports[1]}",
            "PUBLIC_URL": f"http://127.0.0.1:{self._ports[0]}",
            "SERVICE": "b",
            "KEY_ID": "b-1",
            "SECRET": SECRET,
        }
        return self.shared | {f"TOOLSERVER_LEDGER__{name}": value for name, value in own.items()}


def xpub() -> str:
    from toolserver.money.purchases.demo import XPUB

    return XPUB


@pytest.fixture(scope="module")
def sisters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sisters, Program]]:
    folder = tmp_path_factory.mktemp("sisters")
    with started("world", folder=folder) as world:
        pair = Sisters(folder, world.url)
        pair.come()
        with started("serve", folder=folder, **pair.follows) as follower:
            yield pair, follower
        pair.go()


def call(at: Program, path: str, token: str, **headers: str) -> httpx.Response:
    auth = {"Authorization": f"Bearer {token}", **headers}
    return httpx.get(f"{at.url}{path}", headers=auth, timeout=30, trust_env=False)


def balance(at: Program, token: str) -> Any:
    return call(at, "/api/payment/balance", token).json().get("credits")


@proves("sister.shared")
def test_a_token_bought_at_either_works_at_both_and_is_charged_once(sisters: tuple[Sisters, Program]) -> None:
    pair, follower = sisters
    for at, other in ((pair.owner, follower), (follower, pair.owner)):
        token = bought(at, pair.world)
        spent = [call(other, BRIEFING, token), call(at, BRIEFING, token)]
        assert [answer.status_code for answer in spent] == [200, 200]
        assert [int(answer.headers["x-credits-remaining"]) for answer in spent] == [99, 98]
        assert balance(at, token) == balance(other, token) == 98
    core = call(
        follower, f"/api/receipt/{call(follower, BRIEFING, token).headers['x-service-receipt-id']}", token
    ).json()
    assert (core["receipt"]["credits_charged"], core["receipt"]["balance_after"]) == (1, 97)


def test_a_host_signs_in_at_a_follower_and_its_owner_ends_that_at_the_other(sisters: tuple[Sisters, Program]) -> None:
    pair, follower = sisters
    token = bought(pair.owner, pair.world)
    with SigningIn(follower.url) as host:
        host.allow(token, 5)
        assert json.loads(host.call("premium_briefing").json()["result"]["content"][0]["text"])["sections"]
        assert json.loads(host.call("payment_balance").json()["result"]["content"][0]["text"])["credits"] == 4
        host.exchange(grant_type="refresh_token", refresh_token=host.tokens["refresh_token"])
        (made,) = call(pair.owner, "/api/payment/allowances", token).json()["allowances"]
        assert (made["name"], made["spent"]) == ("A host (a program on this device (127.0.0.1:9))", 1)
        auth = {"Authorization": f"Bearer {token}"}
        httpx.delete(f"{pair.owner.url}/api/payment/allowances/{made['id']}", headers=auth, trust_env=False)
        until = time.monotonic() + 30
        while (refused := host.call("btc_price")).status_code != 401:
            assert time.monotonic() < until, refused.text
            time.sleep(0.5)


@proves("sister.away")
def test_while_the_ledger_is_away_nothing_is_sold_and_afterwards_it_goes_on_by_itself(
    sisters: tuple[Sisters, Program],
) -> None:
    pair, follower = sisters
    token = bought(pair.owner, pair.world)
    assert call(follower, BRIEFING, token).status_code == 200
    pair.go()

    refused = [call(follower, BRIEFING, token) for _ in range(8)]
    assert {(answer.status_code, answer.json()["error"]) for answer in refused} == {(402, "billing_unavailable")}
    assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
    free = httpx.get(f"{follower.url}/api/btc-price", trust_env=False)
    assert free.status_code == 200
    assert "toolserver_ledger_up 0.0" in httpx.get(follower.ready["metrics_url"], trust_env=False).text

    pair.come()
    until = time.monotonic() + 75
    while (again := call(follower, BRIEFING, token)).status_code != 200:
        assert time.monotonic() < until, follower.said
        time.sleep(0.5)
    assert int(again.headers["x-credits-remaining"]) == 98  # 100 less the two that were answered
    assert balance(pair.owner, token) == 98
    checked = ran("ledger", "check", "--json", "--data-dir", str(pair.folder / "owner"), folder=pair.folder)
    assert json.loads(checked.stdout)["ok"]


@proves("webhook.followed")
def test_webhooks_of_a_follower_are_charged_at_the_owner_once_even_when_it_is_killed(
    sisters: tuple[Sisters, Program], tmp_path: Path
) -> None:
    pair, _ = sisters
    token, inbox = bought(pair.owner, pair.world), Inbox()
    follows = pair.follows | {"TOOLSERVER_WEBHOOKS__ALLOW_LOOPBACK": "true"}
    with pytest.raises(AssertionError, match="ended with -9"):
        deliver_and_kill(pair, follows, token, inbox, tmp_path)
    with started("serve", folder=tmp_path, **follows) as again:
        assert balance(again, token) == balance(pair.owner, token) == 99, "what was delivered stays charged"
    inbox.close()


def deliver_and_kill(pair: Sisters, follows: dict[str, str], token: str, inbox: Inbox, folder: Path) -> None:
    """A follower that is killed as soon as one delivery was taken and charged."""
    with started("serve", folder=folder, **follows) as follower:
        when = {"path": "sections.btc.price_usd", "above": 1}
        asked = {"endpoint": "briefing", "webhook_url": inbox.url, "when": when}
        auth = {"Authorization": f"Bearer {token}"}
        made = httpx.post(f"{follower.url}/api/pro/subscribe", json=asked, headers=auth, timeout=30)
        assert made.status_code == 201, made.text
        ((headers, body),) = inbox.wait(1)
        assert json.loads(body)["condition"]["state"] == "fired"
        receipt = wait_for_receipt(follower, token, headers["x-service-receipt-id"])
        assert (receipt["kind"], receipt["credits_charged"], receipt["balance_after"]) == ("webhook", 1, 99)
        assert balance(pair.owner, token) == 99
        follower.stop(signal.SIGKILL)


def wait_for_receipt(at: Program, token: str, id: str) -> Any:
    until = time.monotonic() + 20
    while (answer := call(at, f"/api/receipt/{id}", token)).status_code != 200:
        assert time.monotonic() < until, answer.text
        time.sleep(0.1)
    return answer.json()["receipt"]
