"""What the owner of a ledger answers its sister services: the two routes as they are on the wire, and who may ask."""

import asyncio
import json
import threading
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import FOLLOWED, KEY_ID, OWNER_URL, SECRET, faults, token
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import InsufficientCredits
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.client.messages import (
    ALLOWANCES,
    COMMIT,
    REPLY_SIGNATURE,
    VALIDATE,
    authorization,
    reply_mac,
    signature,
)
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.server.api import internal_app
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.settings import LedgerSettings as Settings

RICH, POOR = token(1), token(2)
CALL = "call_" + "1" * 32
OTHER = {
    "keys": {"k1": "1" * 32, "k2": "2" * 32, "c-1": "3" * 32},
    "services": {"k1": ["b"], "k2": ["b"], "c-1": ["c"]},
}


class Caller:
    """Signs and sends."""

    def __init__(self, client, clock):
        self.client, self.clock = client, clock

    async def post(self, path, body, *, key=KEY_ID, secret=SECRET, late_s=0, signed_path=None, **headers):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        at = int(self.clock.time()) - late_s
        sent = {"authorization": authorization(key, secret, signed_path or path, at, content)} | headers
        return await self.client.post(path, content=content, headers=sent)

    async def validate(self, **body):
        answer = await self.post(VALIDATE, {"token": RICH, "cost": 2, "call_id": CALL} | body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def commit(self, **body):
        answer = await self.post(COMMIT, {"call_id": CALL} | body)
        assert answer.status_code == 200, answer.text
        return answer.json()


@asynccontextmanager
async def owner(folder, settings=FOLLOWED):
    clock = ManualClock(START)
    async with open_ledger(folder / FILE, clock) as ledger:
        await ledger.mint(RICH, 10, cause="rich")
        await ledger.mint(POOR, 1, cause="poor")
        app = internal_app(ledger, settings, clock)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=OWNER_URL) as client:
            yield ledger, Caller(client, clock)
        assert await faults(ledger) == []


@proves("ledger.internal")
async def test_credits_are_set_aside_and_charged_as_the_contract_has_it(tmp_path):
    async with owner(tmp_path) as (ledger, caller):
        standing = await ledger.standing(RICH)
        said = await caller.validate(service="b", endpoint="/api/pro/macro", ttl_s=300)
        assert said == {
            "ok": True,
            "sufficient": True,
            "reservation_id": CALL,
            "credits_remaining": 8,
            "expires_at": "2027-01-15T08:05:00.000Z",
            "account_ref": standing.ref.ref,
            "token_fp": standing.fingerprint,
            "payer": standing.payer,
            "issued_at": "2027-01-15T08:00:00.000Z",
            "state": "open",
            "replayed": False,
        }
        done = {"ok": True, "state": "posted", "credits_charged": 2, "balance_after": 8, "no_charge_reason": None}
        whole = {"reservation_id": CALL, "token": RICH, "cost": 2, "endpoint": "/api/pro/macro", "outcome": "charge"}
        assert await caller.commit(**whole, receipt_id="rcpt_1", response_sha256="0" * 64) == {
            **done,
            "replayed": False,
        }
        assert await caller.commit(**whole, no_charge_reason=None) == {**done, "replayed": True}


@proves("ledger.internal")
@pytest.mark.parametrize("left", [VALIDATE, COMMIT])
async def test_a_step_whose_caller_waits_no_longer_is_finished_and_found_so_when_it_asks_again(tmp_path, left):
    async with owner(tmp_path) as (ledger, caller):
        apply, is_taken, may_go_on = ledger.apply_group, threading.Event(), threading.Event()

        def apply_late(*group):
            is_taken.set()
            assert may_go_on.wait(10)
            return apply(*group)

        async def leave(step):
            """Wait no longer when the owner writes."""
            ledger.apply_group = apply_late
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(step)
                assert await anyio.to_thread.run_sync(is_taken.wait, 10)
                tasks.cancel_scope.cancel()
            ledger.apply_group = apply
            may_go_on.set()

        if left == VALIDATE:
            await leave(caller.validate)
        assert (await caller.validate())["ok"]
        if left == COMMIT:
            await leave(caller.commit)
        said = await caller.commit()
        assert (said["credits_charged"], said["balance_after"]) == (2, 8)


async def test_cost_0_only_asks(tmp_path):
    async with owner(tmp_path) as (ledger, caller):
        said = await caller.validate(cost=0)
        assert (said["ok"], said["credits_remaining"]) == (True, 10)
        assert "reservation_id" not in said
        assert (await caller.validate(cost=0, token=None, account_ref=said["account_ref"]))["credits_remaining"] == 10
        await ledger.revoke(said["token_fp"], "leaked")
        assert await caller.validate(cost=0) == {"ok": False, "reason": "expired"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"token": token(9)}, {"ok": False, "reason": "invalid_token"}),
        ({"token": "nonsense"}, {"ok": False, "reason": "invalid_token"}),
        ({"token": token(9), "cost": 0}, {"ok": False, "reason": "invalid_token"}),
        (
            {"token": POOR},
            {"ok": False, "reason": "insufficient_credits", "credits_remaining": 1, "sufficient": False},
        ),
    ],
)
async def test_a_refusal_is_an_answer(tmp_path, given, said):
    async with owner(tmp_path) as (_, caller):
        assert await caller.validate(**given) == said


async def test_callers_of_the_old_kind_are_served(tmp_path):
    """They name no call and no outcome."""
    async with owner(tmp_path) as (ledger, caller):
        answer = await caller.post(VALIDATE, {"token": RICH, "cost": 2})
        id = answer.json()["reservation_id"]
        assert id.startswith("call_")
        old = {"token": RICH, "cost": 2, "endpoint": "/x", "reservation_id": id}
        said = (await caller.post(COMMIT, old)).json()
        assert (said["credits_charged"], said["balance_after"]) == (2, 8)
        free = {**old, "no_charge_reason": "empty_result"}
        said = (await caller.post(COMMIT, free)).json()
        assert (said["credits_charged"], said["balance_after"], said["no_charge_reason"]) == (0, 10, "empty_result")
        assert await ledger.holds() == []


@proves("sister.named-commit")
async def test_a_commit_that_names_no_call_is_refused_however_often_it_comes_and_charges_nothing(tmp_path):
    async with owner(tmp_path) as (ledger, caller):
        for more in ({}, {"outcome": "charge"}, {"outcome": "release"}, {"no_charge_reason": "5xx"}):
            for _ in range(3):
                answer = await caller.post(COMMIT, {"token": RICH, "cost": 3, "endpoint": "/x", **more})
                assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
                assert "call_id or reservation_id" in answer.json()["detail"]
        assert await ledger.balance(RICH) == 10


@proves("sister.named-commit")
@pytest.mark.parametrize("name", ["call_id", "reservation_id"])
async def test_a_commit_that_names_its_call_by_either_id_is_charged_once_however_often_it_comes(tmp_path, name):
    async with owner(tmp_path) as (ledger, caller):
        id = (await caller.validate(call_id=None))["reservation_id"]
        asked = {name: id, "token": RICH, "cost": 2}
        answers = await asyncio.gather(*(caller.post(COMMIT, asked) for _ in range(20)))
        assert {(each.status_code, each.json()["credits_charged"]) for each in answers} == {(200, 2)}
        assert sorted(each.json()["replayed"] for each in answers) == [False] + [True] * 19
        assert await ledger.balance(RICH) == 8


@proves("sister.any-reason")
@pytest.mark.parametrize("reason", ["stale_data", "empty_result", "never heard of", "", "null", 0, False, [], {"a": 1}])
@pytest.mark.parametrize("outcome", [None, "charge", "release"])
async def test_whatever_the_reason_is_nothing_is_charged(tmp_path, reason, outcome):
    async with owner(tmp_path) as (_, caller):
        await caller.validate()
        said = await caller.commit(no_charge_reason=reason, outcome=outcome)
        assert (said["state"], said["credits_charged"], said["balance_after"]) == ("voided", 0, 10)
        assert said["no_charge_reason"] == (reason if isinstance(reason, str) else str(reason))


async def test_a_release_without_a_reason_is_one_and_dominates(tmp_path):
    async with owner(tmp_path) as (_, caller):
        await caller.validate()
        assert (await caller.commit())["credits_charged"] == 2
        said = await caller.commit(outcome="release")
        assert (said["state"], said["balance_after"], said["no_charge_reason"]) == ("reversed", 10, "unspecified")
        assert (await caller.commit(outcome="charge"))["credits_charged"] == 0
        again = await caller.validate()
        assert (again["replayed"], again["state"], again["credits_remaining"]) == (True, "reversed", 10)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"call_id": "call_other"}, "reservation_not_found"),
        ({"call_id": "call_other", "token": RICH, "cost": 2}, "reservation_not_found"),
        ({"call_id": "call_other", "token": RICH, "cost": 200}, "reservation_not_found"),
        ({"token": RICH, "cost": 3}, "reservation_mismatch"),
        ({"token": POOR, "cost": 2}, "reservation_mismatch"),
        ({"token": token(9), "cost": 2}, "reservation_mismatch"),
    ],
)
async def test_a_commit_that_fits_no_reservation_does_nothing(tmp_path, given, reason):
    async with owner(tmp_path) as (ledger, caller):
        await caller.validate()
        assert await caller.commit(**given, outcome="charge") == {"ok": False, "reason": reason}
        assert (await caller.commit(**given, outcome="release")).get("credits_charged", 0) == 0
        assert [(h.credits, h.fingerprint) for h in await ledger.holds()] == [
            (2, (await ledger.standing(RICH)).fingerprint)
        ]
        assert await ledger.balance(RICH) == 8


async def test_a_revoked_tokens_calls_are_settled_as_ever(tmp_path):
    async with owner(tmp_path) as (ledger, caller):
        await caller.validate()
        await ledger.revoke((await ledger.standing(RICH)).fingerprint, "leaked")
        assert (await caller.commit(token=RICH, cost=2))["credits_charged"] == 2


async def test_a_call_id_names_one_call(tmp_path):
    async with owner(tmp_path) as (_, caller):
        await caller.validate()
        for other in ({"cost": 3}, {"token": POOR}):
            answer = await caller.post(VALIDATE, {"token": RICH, "cost": 2, "call_id": CALL} | other)
            assert (answer.status_code, answer.json()["error"]) == (409, "call_reused")


BAD = {
    "no json": b"{",
    "no object": b"[]",
    "no cost": {"token": RICH},
    "half a credit": {"token": RICH, "cost": 0.5},
    "a truth": {"token": RICH, "cost": True},
    "fewer than none": {"token": RICH, "cost": -1},
    "nobody": {"cost": 1},
    "two": {"token": RICH, "account_ref": "acct_x", "cost": 1},
    "for ever": {"token": RICH, "cost": 1, "ttl_s": 10**9},
    "no time": {"token": RICH, "cost": 1, "ttl_s": 0},
    "a name with a colon": {"token": RICH, "cost": 1, "call_id": "b:x"},
    "no name": {"token": RICH, "cost": 1, "call_id": ""},
}
BAD_COMMITS = {
    "another outcome": {"call_id": CALL, "outcome": "refund"},
    "two names": {"call_id": CALL, "reservation_id": "call_other"},
    "no name and no token": {"outcome": "charge"},
    "no name": {"token": RICH, "cost": 2},
    "no cost": {"call_id": CALL, "token": RICH},
}


@pytest.mark.parametrize(
    ("path", "body"),
    [(VALIDATE, b) for b in BAD.values()] + [(COMMIT, b) for b in BAD_COMMITS.values()],
    ids=[*BAD, *BAD_COMMITS],
)
async def test_what_makes_no_sense_is_refused_and_changes_nothing(tmp_path, path, body):
    async with owner(tmp_path) as (ledger, caller):
        answer = await caller.post(path, body)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
        assert RICH not in answer.text
        assert (await ledger.balance(RICH), await ledger.holds()) == (10, [])


async def test_allowances_are_created_listed_and_refused_over_their_own_route(tmp_path):
    async with owner(tmp_path) as (_, caller):
        asked = {"action": "create", "token": RICH, "hash": "c" * 64, "terms": {"name": "robot", "credits": 5}}
        made = await caller.post(ALLOWANCES, asked)
        listed = await caller.post(ALLOWANCES, {"action": "list", "token": RICH})
        assert (made.status_code, made.json()["ok"]) == (200, True)
        assert made.json() == listed.json()
        assert (made.json()["allowances"][0]["hash"], made.json()["allowances"][0]["credits"]) == ("c" * 64, 5)
        refused = await caller.post(ALLOWANCES, {"action": "revoke", "token": RICH, "id": "alw_0"})
        assert (refused.status_code, refused.json()["ok"], refused.json()["reason"]) == (200, False, "not_found")
        wrong = await caller.post(ALLOWANCES, {"action": "create", "token": RICH})
        assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_request")
        assert (await caller.post(ALLOWANCES, {"action": "steal", "token": RICH})).status_code == 400


@pytest.mark.parametrize(
    "more",
    [
        {"action": "create", "hash": "c" * 64, "terms": {"name": "robot", "credits": 5}},
        {"action": "list"},
        {"action": "change", "change": [["credits"], {"name": "x", "credits": 9}]},
        {"action": "revoke"},
    ],
    ids=lambda more: more["action"],
)
async def test_allowances_are_not_managed_with_a_reference_of_an_account(tmp_path, more):
    """A sister service has one from every call, and for ever."""
    async with owner(tmp_path) as (ledger, caller):
        made = await ledger.create_allowance(RICH, "d" * 64, AllowanceTerms("own", 5))
        ref = (await caller.validate(cost=0))["account_ref"]
        for who in ({"account_ref": ref}, {"account_ref": ref, "token": RICH}, {}):
            answer = await caller.post(ALLOWANCES, {"id": made.id, **more, **who})
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), answer.text
        assert await ledger.list_allowances(RICH) == [made]


@proves("allowance.followed", "allowance.sister")
async def test_what_a_sister_service_allows_is_worth_nothing_elsewhere_and_is_seen_and_revoked_everywhere(tmp_path):
    child = token(1000)
    async with owner(tmp_path, Settings(port=0, **OTHER)) as (ledger, caller):
        b, c = {"key": "k1", "secret": "1" * 32}, {"key": "c-1", "secret": "3" * 32}
        asked = {"action": "create", "token": RICH, "hash": token_hash(child).hex()}
        (made,) = (await caller.post(ALLOWANCES, {**asked, "terms": {"name": "robot", "credits": 5}}, **b)).json()[
            "allowances"
        ]
        spend = {"token": child, "cost": 2, "call_id": CALL}
        with pytest.raises(InsufficientCredits):  # at the owner's own premium tools
            await ledger.charge("c1", child, 2, endpoint="/x")
        refused = (await caller.post(VALIDATE, spend, **c)).json()
        assert (refused["ok"], refused["cap"]) == (False, "service")
        assert (
            await caller.post(VALIDATE, {**spend, "token": None, "account_ref": made["ref"]}, **c)
        ).json() == refused
        assert (await caller.post(VALIDATE, spend, **b)).json()["ok"]
        assert (await caller.post(VALIDATE, spend, key="k2", secret="2" * 32)).json()["replayed"]

        (seen,) = (await caller.post(ALLOWANCES, {"action": "list", "token": RICH}, **c)).json()["allowances"]
        assert seen == {**made, "spent": 2, "spent_today": 2, "last_used_at": made["created_at"], "hash": "", "ref": ""}
        change = {"action": "change", "token": RICH, "id": made["id"]}
        change["change"] = [["credits"], {"name": "x", "credits": 9}]
        assert (await caller.post(ALLOWANCES, change, **c)).json()["reason"] == "allowance_conflict"
        assert (await ledger.list_allowances(RICH))[0].service == "b"
        revoke = {"action": "revoke", "token": RICH, "id": made["id"]}
        assert (await caller.post(ALLOWANCES, revoke, **c)).json()["ok"]
        assert (await caller.post(VALIDATE, {**spend, "call_id": "c2"}, **b)).json()["reason"] == "expired"


async def test_a_sister_service_cannot_take_the_hash_of_a_callers_token_for_an_allowance(tmp_path):
    async with owner(tmp_path) as (ledger, caller):
        hash = (await caller.validate(cost=0))["payer"]
        asked = {"action": "create", "hash": hash, "terms": {"name": "stolen", "credits": 5}}
        for by in (RICH, POOR):
            said = (await caller.post(ALLOWANCES, {**asked, "token": by})).json()
            assert (said["ok"], said["reason"]) == (False, "allowance_conflict")
        assert (await ledger.charge("c1", RICH, 2, endpoint="/x")).remaining == 8
        await ledger.create_allowance(RICH, "d" * 64, AllowanceTerms("own", 5))


TEN_YEARS_ON = int(START.timestamp() * 1000) + 3653 * 86_400_000


@pytest.mark.parametrize("end", [TEN_YEARS_ON + 1, 253_402_387_139_000, 10**30, -1, -(10**17)])
async def test_an_end_of_an_allowance_that_leaves_the_calendar_is_no_request_of_a_sister(tmp_path, end):
    async with owner(tmp_path) as (ledger, caller):
        asked = {"action": "create", "token": RICH, "hash": "c" * 64, "terms": {"name": "robot", "credits": 5}}
        asked["terms"]["expires_at"] = end
        assert (await caller.post(ALLOWANCES, asked)).status_code == 400
        assert await ledger.list_allowances(RICH) == []
        asked["terms"]["expires_at"] = TEN_YEARS_ON
        (made,) = (await caller.post(ALLOWANCES, asked)).json()["allowances"]
        change = [["expires_at"], {"name": "x", "credits": 1, "expires_at": end}]
        again = {"action": "change", "token": RICH, "id": made["id"], "change": change}
        assert (await caller.post(ALLOWANCES, again)).status_code == 400
        assert [each.expires_at for each in await ledger.list_allowances(RICH)] == [TEN_YEARS_ON]


@pytest.mark.parametrize("name", ["hash", "parent", "spent", "__class__", "check"])
async def test_a_change_of_an_allowance_names_its_terms_and_nothing_else_of_it(tmp_path, name):
    async with owner(tmp_path) as (ledger, caller):
        made = await ledger.create_allowance(RICH, "c" * 64, AllowanceTerms("robot", 5))
        change = [[name], {"name": "x", "credits": 1}]
        asked = {"action": "change", "token": RICH, "id": made.id, "change": change}
        assert (await caller.post(ALLOWANCES, asked)).status_code == 400
        assert await ledger.list_allowances(RICH) == [made]


async def test_an_answer_is_json_that_is_kept_nowhere_and_a_refusal_says_why(tmp_path):
    async with owner(tmp_path) as (_, caller):
        answer = await caller.post(VALIDATE, {"token": RICH, "cost": 0})
        headers = {"content-type": "application/json", "content-length": str(len(answer.content))}
        signed = answer.headers.pop(REPLY_SIGNATURE)
        assert signed == reply_mac(SECRET, signature(answer.request.headers["authorization"]).mac, 200, answer.content)
        assert dict(answer.headers) == {**headers, "cache-control": "no-store"}
        answer = await caller.post(VALIDATE, {"token": RICH, "cost": 1, "call_id": "b:x"})
        detail = "a call_id must have 1 to 100 letters, digits, dots, dashes and underscores"
        assert answer.json() == {"ok": False, "error": "invalid_request", "detail": detail}
        assert (await caller.post("/api/internal/mint", {})).json() == {"ok": False, "error": "not_found"}


@pytest.mark.parametrize(("size", "status"), [(65_536, 200), (65_537, 413)])
async def test_a_request_has_at_most_64_kib(tmp_path, size, status):
    async with owner(tmp_path) as (_, caller):
        body = json.dumps({"token": RICH, "cost": 0}).encode().ljust(size)
        assert (await caller.post(VALIDATE, body)).status_code == status


async def test_there_is_nothing_else_at_that_address(tmp_path):
    async with owner(tmp_path) as (_, caller):
        assert (await caller.post("/api/internal/mint", {})).status_code == 404
        assert (await caller.client.get(VALIDATE)).status_code == 405
        assert (await caller.client.get("/openapi.json")).status_code == 404
        assert (await caller.post(VALIDATE, b"x" * 70_000)).status_code == 413


# --- who may ask ---


@proves("ledger.owner", "sister.clock")
@pytest.mark.parametrize(
    "given",
    [
        {"secret": "x" * 32},
        {"key": "unknown"},
        {"key": "unknown", "secret": ""},
        {"late_s": 61},
        {"late_s": -61},
        {"signed_path": COMMIT},
        {"authorization": ""},
        {"authorization": "Bearer " + SECRET},
        {"authorization": "SvcHMAC keyId=b-1"},
        {"authorization": "SvcHMAC keyId=b-1,ts=now,sig=0"},
        {"authorization": "SvcHMAC keyId=b-1,ts=1800000000,sig=é".encode("latin-1")},
        {"authorization": "", "x-internal-auth": SECRET},
    ],
    ids=str,
)
async def test_without_a_good_signature_nobody_is_heard(tmp_path, given, caplog):
    async with owner(tmp_path) as (ledger, caller):
        answer = await caller.post(VALIDATE, {"token": RICH, "cost": 2}, **given)
        assert (answer.status_code, answer.json()) == (401, {"ok": False, "error": "unauthorized"})
        assert await ledger.balance(RICH) == 10
    assert SECRET not in caplog.text
    assert RICH not in caplog.text


@proves("sister.clock")
async def test_a_signature_covers_the_body(tmp_path):
    async with owner(tmp_path) as (_, caller):
        signed = authorization(KEY_ID, SECRET, VALIDATE, int(caller.clock.time()), b'{"token": "x", "cost": 1}')
        answer = await caller.client.post(
            VALIDATE, content=b'{"token": "x", "cost": 9}', headers={"authorization": signed}
        )
        assert answer.status_code == 401


@proves("sister.clock")
@pytest.mark.parametrize("late_s", [60, -60])
async def test_clocks_may_differ_by_a_minute(tmp_path, late_s):
    async with owner(tmp_path) as (_, caller):
        assert (await caller.post(VALIDATE, {"token": RICH, "cost": 0}, late_s=late_s)).status_code == 200


async def test_a_request_with_a_nonce_is_heard_once_within_its_window(tmp_path):
    async with owner(tmp_path) as (_, caller):
        content, at = b'{"token": "x", "cost": 0}', int(caller.clock.time())

        async def send(nonce, at=at):
            signed = authorization(KEY_ID, SECRET, VALIDATE, at, content, nonce)
            answer = await caller.client.post(VALIDATE, content=content, headers={"authorization": signed})
            assert answer.headers[REPLY_SIGNATURE] == reply_mac(
                SECRET, signature(signed).mac, answer.status_code, answer.content
            )
            return answer.status_code

        assert [await send("a" * 32), await send("a" * 32), await send("b" * 32)] == [200, 401, 200]
        caller.clock.advance(59)
        assert await send("a" * 32) == 401
        caller.clock.advance(120)
        assert await send("a" * 32, at) == 401, "its time is over"
        assert await send("a" * 32, int(caller.clock.time())) == 200


async def test_two_keys_live_at_a_time_and_both_settle_the_same_calls(tmp_path):
    async with owner(tmp_path, Settings(port=0, **OTHER)) as (_, caller):
        await caller.post(VALIDATE, {"token": RICH, "cost": 2, "call_id": CALL}, key="k1", secret="1" * 32)
        said = await caller.post(COMMIT, {"call_id": CALL}, key="k2", secret="2" * 32)
        assert said.json()["credits_charged"] == 2


@proves("ledger.owner")
async def test_a_service_touches_nothing_of_another_one_or_of_ours(tmp_path):
    async with owner(tmp_path, Settings(port=0, **OTHER)) as (ledger, caller):
        b, c = {"key": "k1", "secret": "1" * 32}, {"key": "c-1", "secret": "3" * 32}
        await ledger.reserve("call_ours", RICH, 1, endpoint="/x", ttl_s=60)
        await caller.post(VALIDATE, {"token": RICH, "cost": 2, "call_id": CALL}, **b)
        for call_id in (CALL, "call_ours"):
            said = await caller.post(COMMIT, {"call_id": call_id, "outcome": "release"}, **c)
            assert said.json() == {"ok": False, "reason": "reservation_not_found"}
        other = await caller.post(VALIDATE, {"token": RICH, "cost": 2, "call_id": CALL, "service": "b"}, **c)
        assert (other.status_code, other.json()["error"]) == (403, "forbidden")
        assert (await caller.post(COMMIT, {"call_id": CALL, "service": "b"}, **c)).status_code == 403
        own = await caller.post(VALIDATE, {"token": RICH, "cost": 3, "call_id": CALL}, **c)
        assert own.json()["ok"] is True
        assert sorted((h.call_id, h.service) for h in await ledger.holds()) == [
            (f"b:{CALL}", "b"),
            (f"c:{CALL}", "c"),
            ("call_ours", ""),
        ]


async def test_a_key_for_several_services_settles_what_it_reserved_for_any(tmp_path):
    settings = Settings(port=0, keys={KEY_ID: SECRET}, services={KEY_ID: ["b", "b-jobs"]})
    async with owner(tmp_path, settings) as (ledger, caller):
        await caller.validate(service="b-jobs")
        ((name, service),) = [(h.call_id, h.service) for h in await ledger.holds()]
        assert (name, service) == (f"b:{CALL}", "b-jobs")
        for _ in range(2):
            assert (await caller.commit(token=RICH, cost=2))["credits_charged"] == 2


async def test_a_bare_key_is_taken_only_where_that_is_switched_on(tmp_path):
    settings = Settings(port=0, compat_internal_auth=True, **OTHER)
    async with owner(tmp_path, settings) as (_, caller):
        ask = b'{"token": "' + RICH.encode() + b'", "cost": 0}'
        for key, status in (("2" * 32, 200), ("4" * 32, 401), ("", 401), ("é" * 32, 401)):
            headers = {"x-internal-auth": key.encode()}
            assert (await caller.client.post(VALIDATE, content=ask, headers=headers)).status_code == status
        wrong = {"x-internal-auth": "2" * 32, "authorization": "SvcHMAC nonsense"}
        assert (await caller.client.post(VALIDATE, content=ask, headers=wrong)).status_code == 401


def test_a_header_is_read_back_as_it_was_written():
    assert signature(authorization("k", "s" * 32, VALIDATE, 12, b"", "0f" * 16)).nonce == "0f" * 16
    assert signature(authorization("k", "s" * 32, VALIDATE, 12, b""))[:2] == ("k", 12)


# --- when the ledger itself fails ---


async def test_a_ledger_that_is_out_of_order_is_503_and_no_refusal(tmp_path, caplog):
    async with owner(tmp_path) as (ledger, caller):
        await ledger.file.alone(lambda db: db.execute("ALTER TABLE token RENAME TO lost") and None)
        for path, body in (
            (VALIDATE, {"token": RICH, "cost": 2}),
            (VALIDATE, {"token": RICH, "cost": 0}),
            (COMMIT, {"token": RICH, "cost": 2, "call_id": CALL}),
        ):
            answer = await caller.post(path, body)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        await ledger.file.alone(lambda db: db.execute("ALTER TABLE lost RENAME TO token") and None)


class MistakenLedger(MemoryLedger):
    """A ledger with a mistake, whose message holds a token."""

    async def reserve(self, *args, **named):
        raise ZeroDivisionError(RICH)


async def test_a_mistake_of_ours_is_500_and_says_nothing():
    clock = ManualClock(START)
    app = internal_app(MistakenLedger(clock), FOLLOWED, clock)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=OWNER_URL) as client:
        answer = await Caller(client, clock).post(VALIDATE, {"token": RICH, "cost": 2})
        assert (answer.status_code, answer.json()) == (500, {"ok": False, "error": "internal_error"})


async def test_a_request_that_ends_early_is_none():
    said = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        said.append(message)

    scope = {"type": "http", "method": "POST", "path": VALIDATE, "headers": []}
    await internal_app(None, FOLLOWED, ManualClock(START))(scope, receive, send)
    assert said[0]["status"] == 400


async def test_the_application_lives_and_dies_with_its_server(tmp_path):
    app = internal_app(None, FOLLOWED, ManualClock(START))
    heard, said = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}], []

    async def receive():
        return heard.pop(0) if heard else {"type": "websocket.connect"}

    async def send(message):
        said.append(message["type"])

    await app({"type": "lifespan"}, receive, send)
    await app({"type": "websocket"}, receive, send)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]
