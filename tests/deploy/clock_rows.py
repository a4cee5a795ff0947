"""What an instance dates while its machine's clock is off: each row in the database has the database's time.

A buyer asks this instance for a quote, pays, calls a tool that costs credits, subscribes and has a webhook sent. Each
time that any of it left, in a row, in the receipt or in the head of the delivery, must lie between two readings of the
database's clock.
"""

from collections.abc import Iterator
from datetime import datetime

import httpx

from tests.deploy.fault_stage import Stage
from tests.live.buying import read_core
from tests.live.inbox import Inbox
from toolserver.core.caller import token_hash

USD, WITHIN_S = 2, 60
SLACK_MS = 2000  # two clocks of one machine, a second of rounding, and half of the time that a reading took
_NOW = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
_SALE = """SELECT p.created_at, p.expires_at - p.created_at, c.credited_at, t.issued_at
  FROM tx_credit c JOIN purchase p ON p.id = c.purchase JOIN token t ON t.hash = c.token WHERE c.token = '{}'"""
_CHARGE = "SELECT r.settled_at, t.at FROM reservation r JOIN transfer t ON t.seq = r.transfer WHERE r.call_id = '{}'"
_HOOK = """SELECT s.created_at, f.created_at, f.sent_at, f.finished_at
  FROM webhook_subscription s JOIN webhook_fire f ON f.subscription = s.id WHERE s.id = '{}'"""


def check_rows(stage: Stage, at: int) -> list[str]:
    """Buy, call and subscribe at an instance, and return each time that is not the database's."""
    began = _read_time(stage)
    with httpx.Client(base_url=stage.scene.instances[at].url, timeout=WITHIN_S, trust_env=False) as client:
        times = dict(_sell(stage, client))
    ended = _read_time(stage)
    return judge_times(times, began, ended) + judge_lives(stage)


def judge_times(times: dict[str, int], began: int, ended: int) -> list[str]:
    """Return what lies outside of these, all in ms. Each is named with how far it is off."""
    wrong = [f"{what} is dated {at - ended:+d} ms after the end" for what, at in times.items() if at > ended + SLACK_MS]
    return wrong + [f"{what} is dated {at - began:+d} ms" for what, at in times.items() if at < began - SLACK_MS]


def judge_lives(stage: Stage) -> list[str]:
    """Return what is wrong about how long quotes hold: as long from every instance."""
    lives = {life for (life,) in stage.scene.shop.rows("SELECT expires_at - created_at FROM purchase")}
    return [] if len(lives) == 1 else [f"quotes hold for {sorted(lives)} ms"]


def _read_time(stage: Stage) -> int:
    ((now,),) = stage.scene.shop.rows(_NOW)
    return int(now)


def _sell(stage: Stage, client: httpx.Client) -> Iterator[tuple[str, int]]:
    """Sell at the instance of the client, and yield what was dated and when, in ms."""
    quote = client.post("/api/payment/buy-credits", json={"amount_usd": USD}).raise_for_status().json()
    claim = {"tx_hash": stage.sim.paid(quote["wallet"], USD), "nonce": quote["memo"]}
    token = str(client.post("/api/payment/confirm", json=claim).raise_for_status().json()["token"])
    client.headers["authorization"] = f"Bearer {token}"
    ((created, life, credited, issued),) = stage.scene.shop.rows(_SALE.format(token_hash(token).hex()))
    yield from {"a quote": created, "a sale": credited, "a token": issued}.items()
    yield "the deadline that the buyer was given", int(_read_iso(quote["expires_at"]) - life)

    answer = client.get("/api/pro/macro").raise_for_status()
    core = read_core(answer.headers["x-service-receipt"])
    ((settled, moved),) = stage.scene.shop.rows(_CHARGE.format(core["call_id"]))
    yield from {"a receipt": _read_iso(core["issued_at"]), "a charge": settled, "its transfer": moved}.items()

    inbox = Inbox()
    asked = {"endpoint": "macro", "webhook_url": inbox.url}
    id = str(client.post("/api/pro/subscribe", json=asked).raise_for_status().json()["id"])
    client.post(f"/api/pro/subscribe/{id}/test").raise_for_status()  # which this instance delivers
    ((head, _),) = inbox.wait(1)
    inbox.close()
    ((subscribed, *fired),) = stage.scene.shop.rows(_HOOK.format(id))
    yield "a subscription", subscribed
    yield from zip(("a fire", "its sending", "its end"), fired, strict=True)
    yield "the signature of a delivery", int(head["webhook-timestamp"]) * 1000
    client.delete(f"/api/pro/subscribe/{id}").raise_for_status()


def _read_iso(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)
