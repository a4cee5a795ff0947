"""Receipts as a caller meets them: over REST and MCP, kept, shown to their owner, verified, after every mishap."""

import base64
import hashlib
import json
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from nacl.exceptions import BadSignatureError

from tests.calls.parts import POOR, RICH
from tests.calls.shop import BEARER, DOWN, shop
from tests.calls.toy import FIRST, SECOND
from tests.money.receipts.old_log import make_old_log
from tests.requirements import proves
from toolserver.calls.arguments import Call, build_cache_key
from toolserver.calls.paid_call import PaidCall, PaidCallResult, split_sale, unpack_sale
from toolserver.calls.response import RenderedResponse
from toolserver.core.caller import Caller, token_hash
from toolserver.money.books.sql_months import remove_receipts
from toolserver.money.receipts.keys import (
    LOOK_S,
    PUBLISH_AHEAD_S,
    RECEIPT_KEYS,
    KeyFileBroken,
    make_key,
    read_keys,
    revoke_key,
    rotate_keys,
    unb64,
    write,
)
from toolserver.money.receipts.service import LOG_PATH, TRUSTED, read_trusted_keys
from toolserver.money.receipts.sign import MOST_BYTES, compact, encode, request_text, signing_input
from toolserver.sql.errors import StorageFailed

KEY_SET = "/.well-known/service-receipt-keys.json"
KEY = "/.well-known/service-receipt-key.json"


def core_of(answer):
    """What the receipt in the headers of an answer says."""
    return read_core(answer.headers["x-service-receipt"])


def read_core(jws):
    return json.loads(unb64(jws.split(".")[1]))


def sha256(body):
    return hashlib.sha256(body).hexdigest()


@proves("premium.receipt", "headers.receipt")
async def test_a_paid_answer_carries_its_receipt_and_the_digest_of_exactly_its_bytes(tmp_path):
    async with shop(tmp_path) as s:
        answer = await s.buy("/api/pro/report?history=30d", x_agent_nonce="run 7")
        found = await s.verify(answer.headers["x-service-receipt"], body_sha256=sha256(answer.content))

    digest = base64.b64encode(hashlib.sha256(answer.content).digest()).decode()
    assert answer.headers["content-digest"] == f"sha-256=:{digest}:"
    assert answer.headers["cache-control"] == "private, no-store"
    assert "receipt" not in answer.json()
    core = core_of(answer)
    assert core["response_sha256"] == sha256(answer.content)
    assert core["response_bytes"] == len(answer.content)
    assert core["request_hash"] == sha256(b"GET /api/pro/report?history=30d")
    assert core["token_fp"] == token_hash(RICH).hex()[:16]
    assert core["id"] == answer.headers["x-service-receipt-id"]
    assert (core["balance_after"], core["credits_charged"]) == (98, 2)
    assert (core["agent_nonce"], core["captured_at"]) == ("run 7", answer.json()["captured_at"])
    assert (found["valid"], found["checks"]["body"], found["core"]) == (True, True, core)


@proves("charge.head")
async def test_head_checks_a_paid_call_and_neither_composes_nor_charges(tmp_path, monkeypatch):
    async with shop(tmp_path) as s:
        made = await s.buy("/api/pro/report?history=30d")
        left = int(made.headers["x-credits-remaining"])
        bearer = {"authorization": made.request.headers["authorization"]}
        monkeypatch.setattr(s.pipeline.answers, "compose", lambda *_: pytest.fail("composed"))
        before = await s.ledger.totals()
        for path in ("/api/pro/report?history=30d", "/api/pro/report", "/api/pro/broken"):
            found = await s.rest.head(path, headers=bearer)
            assert (found.status_code, found.content) == (200, b"")
            assert found.headers["x-credits-remaining"] == str(left)
            assert "x-service-receipt" not in found.headers
        wrong = await s.rest.head("/api/pro/report?history=x", headers=bearer)
        unknown = await s.rest.head("/api/pro/report", headers={"authorization": f"Bearer svc_live_{'0' * 64}"})
        nobody = await s.rest.head("/api/pro/report")
        assert [answer.status_code for answer in (wrong, unknown, nobody)] == [400, 402, 402]
        assert await s.ledger.totals() == before


@pytest.mark.parametrize("accept", ["gzip, br, zstd", "identity", "*"])
async def test_a_paid_answer_is_sent_as_it_was_signed_whatever_codings_the_client_takes(tmp_path, accept):
    async with shop(tmp_path) as s:
        await s.buy()
        async with s.rest.stream("GET", "/api/pro/report", headers=BEARER | {"accept-encoding": accept}) as answer:
            raw = b"".join([chunk async for chunk in answer.aiter_raw()])
    assert "content-encoding" not in answer.headers
    assert core_of(answer)["response_sha256"] == sha256(raw)


@proves("mcp.receipt", "charge.cached")
async def test_over_mcp_the_receipt_is_about_the_text_which_says_what_is_left(tmp_path):
    async with shop(tmp_path) as s:
        for left in (98, 96):
            result = await s.tell("premium_report", {"history": "30d"}, agent_nonce="run 8")
            text = result["content"][0]["text"]
            core = read_core(result["_meta"]["receipt"])
            assert json.loads(text)["_meta"]["credits_remaining"] == left == core["balance_after"]
            assert core["response_sha256"] == sha256(text.encode())
            assert core["response_bytes"] == len(text.encode())
            assert core["request_hash"] == sha256(b"GET /api/pro/report?history=30d")
            assert core["agent_nonce"] == "run 8"
            assert result["_meta"]["receipt_id"] == core["id"]
            assert (await s.verify(result["_meta"]["receipt"], body_sha256=sha256(text.encode())))["valid"]


async def test_free_answers_are_neither_signed_nor_stored(tmp_path, monkeypatch):
    async with shop(tmp_path) as s:
        monkeypatch.setattr(s.evidence, "sign", None)
        answer = await s.rest.get("/api/number", headers=BEARER)
        again = await s.rest.get("/api/number")
    assert answer.status_code == again.status_code == 200
    assert not {"x-service-receipt", "x-service-receipt-id", "content-digest"} & answer.headers.keys()


@proves("no-charge.5xx", "no-charge.schema", "charge.empty")
@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/api/pro/broken", 500, "5xx"),
        ("/api/pro/liar", 500, "schema_failure"),
        ("/api/pro/void", 200, "empty_result"),
    ],
)
async def test_a_call_that_is_not_charged_has_a_receipt_that_says_so(tmp_path, path, status, reason):
    async with shop(tmp_path) as s:
        answer = await s.buy(path, x_agent_nonce="mine")
        found = await s.verify(answer.headers["x-service-receipt"])
        told = await s.tell(path.replace("/api/pro/", "premium_"))
        left = await s.ledger.balance(RICH)
        await s.close_hour()
        later = await s.verify(answer.headers["x-service-receipt"])
    core = found["core"]
    assert (answer.status_code, core["status"], core["agent_nonce"]) == (status, status, "mine")
    assert (core["kind"], core["settlement"], core["no_charge_reason"]) == ("no_charge", "released", reason)
    assert (core["cost"], core["credits_charged"], core["balance_after"]) == (3, 0, 100)
    assert core["response_sha256"] == (sha256(answer.content) if status == 200 else None)
    assert (found["valid"], found["checks"]["in_log"]) == (True, None)  # its hour is not over
    assert (later["valid"], later["checks"]["in_log"]) == (True, True)
    assert answer.headers["x-credits-remaining"] == "100"
    assert read_core(told["_meta"]["receipt"])["no_charge_reason"] == reason
    assert left == 100


@proves("errors.upstream_unavailable")
async def test_an_answer_of_old_data_and_one_that_could_not_be_made_have_receipts_too(tmp_path):
    async with shop(tmp_path) as s:
        await s.buy()
        s.internet.serves(FIRST, DOWN)
        s.internet.serves(SECOND, DOWN)
        s.clock.advance(1000)
        stale = await s.buy()
        s.clock.advance(4000)
        nothing = await s.buy()
    assert (stale.status_code, core_of(stale)["no_charge_reason"]) == (200, "stale_data")
    assert core_of(stale)["response_sha256"] == sha256(stale.content)
    assert (nothing.status_code, core_of(nothing)["no_charge_reason"]) == (503, "5xx")
    assert nothing.headers["retry-after"] == "15"


@proves("receipt.refused")
async def test_a_refused_payment_has_no_receipt(tmp_path):
    async with shop(tmp_path) as s:
        poor = await s.rest.get("/api/pro/report", headers={"authorization": f"Bearer {POOR}"})
        none = await s.rest.get("/api/pro/report")
        wrong = await s.buy("/api/pro/report?history=1d")
    assert [poor.status_code, none.status_code, wrong.status_code] == [402, 402, 400]
    for answer in (poor, none, wrong):
        assert "x-service-receipt" not in answer.headers


@proves("errors.internal_error")
@pytest.mark.parametrize("name", ["broken", "liar"])
async def test_a_fault_of_ours_takes_no_credit_over_rest_and_mcp_and_says_nothing_of_its_cause(tmp_path, name):
    async with shop(tmp_path) as s:
        before = await s.ledger.balance(RICH)
        over_rest = await s.buy(f"/api/pro/{name}", x_request_id="trace-1234567")
        over_mcp = await s.tell(f"premium_{name}")
        assert await s.ledger.balance(RICH) == before == 100
        calls = await s.file.read(lambda db: db.execute("SELECT state, reason FROM reservation").fetchall())
        moved = await s.file.read(
            lambda db: db.execute("SELECT kind, sum(amount) FROM transfer GROUP BY kind ORDER BY kind").fetchall()
        )
        assert await s.ledger.check() == []

    reason = {"broken": "5xx", "liar": "schema_failure"}[name]
    assert [tuple(call) for call in calls] == [("voided", reason)] * 2
    assert [tuple(row) for row in moved] == [("pending", 6), ("posted", 101), ("void", 6)]
    said = over_rest.json(), json.loads(over_mcp["content"][0]["text"])
    assert (over_rest.status_code, over_mcp["isError"], "structuredContent" in over_mcp) == (500, True, False)
    assert said[0]["request_id"] == "trace-1234567"
    for body in said:
        assert (body["error"], body["status"]) == ("internal_error", 500)
        assert body.keys() <= {"type", "title", "status", "error", "detail", "request_id", "next"}
        assert not re.search(r"inside|Traceback|Error:|found|\.py", json.dumps(body))
    assert (core_of(over_rest)["credits_charged"], core_of(over_rest)["no_charge_reason"]) == (0, reason)


@proves("receipt.stored")
async def test_the_bearer_that_paid_can_read_the_receipt_later_and_nobody_else(tmp_path):
    async with shop(tmp_path) as s:
        bought = await s.buy()
    async with shop(tmp_path) as s:  # after a restart
        url = f"/api/receipt/{bought.headers['x-service-receipt-id']}"
        mine = await s.rest.get(url, headers=BEARER)
        head = await s.rest.head(url, headers=BEARER)
        others = await s.rest.get(url, headers={"authorization": f"Bearer {POOR}"})
        nobody = await s.rest.get(url)
        odd = await s.rest.get(url, headers={"authorization": "Bearer nonsense"})
        missing = await s.rest.get("/api/receipt/rcpt_" + "0" * 32, headers=BEARER)
        again = await s.verify(mine.json()["receipt"])

    assert mine.json()["jws"] == bought.headers["x-service-receipt"]
    assert mine.headers["cache-control"] == "private, no-store"
    assert (head.status_code, head.content) == (200, b"")
    assert (again["valid"], again["core"]) == (True, core_of(bought))
    assert "log_proof" not in mine.json()
    assert [others.status_code, missing.status_code] == [404, 404]
    assert others.json() | {"request_id": ""} == missing.json() | {"request_id": ""}
    assert [(a.status_code, a.json()["error"]) for a in (nobody, odd)] == [
        (402, "missing_token"),
        (402, "invalid_token"),
    ]


async def test_a_receipt_that_is_only_in_an_archive_is_gone_and_verified_all_the_same(tmp_path):
    async with shop(tmp_path) as s:
        bought = await s.buy()
        id, end = bought.headers["x-service-receipt-id"], int(s.clock.time() * 1000) + 1
        await s.file.alone(lambda db: remove_receipts(db, 0, end, 10))
        shown = await s.rest.get(f"/api/receipt/{id}", headers=BEARER)
        by_id = await s.rest.get("/api/receipt/verify", params={"id": id})
        stranger = await s.rest.get(f"/api/receipt/{id}", headers={"authorization": f"Bearer {'svc_live_' + '9' * 64}"})
        verified = await s.verify(bought.headers["x-service-receipt"])
    for answer in (shown, by_id):
        assert (answer.status_code, answer.json()["error"], answer.json()["month"]) == (
            410,
            "receipt_archived",
            "2027-01",
        )
    assert stranger.status_code == 402
    assert (verified["valid"], verified["checks"]["signature"]) == (True, True)


async def test_receipts_are_read_sixty_times_a_minute_and_keys_and_tiles_at_any_rate(tmp_path):
    async with shop(tmp_path, limited=True) as s:
        url = f"/api/receipt/{(await s.buy('/api/pro/void')).headers['x-service-receipt-id']}"
        found = [(await s.rest.get(url, headers=BEARER)).status_code for _ in range(61)]
        verified = await s.rest.get("/api/receipt/verify", params={"id": "rcpt_" + "0" * 32}, headers=BEARER)
        asked = await s.rest.post("/api/receipt/verify", json={"receipt": "x"}, headers=BEARER)
        without = await s.rest.post("/api/receipt/verify", json={"receipt": "x"})
        open_to_all = [(await s.rest.get(path)).status_code for path in (KEY_SET, KEY) for _ in range(70)]
        s.clock.advance(60)
        after = await s.rest.get(url, headers=BEARER)
    assert found == [200] * 60 + [429]
    assert (verified.status_code, asked.status_code, after.status_code) == (404, 429, 200)
    assert without.status_code == 400  # the address has a count of its own, to which readings by address belong
    assert set(open_to_all) == {200}


@pytest.mark.parametrize("id", ["", "x", "rcpt_", "rcpt_x/y", "%00", "*", "../x", "rcpt_" + "0" * 5000])
async def test_odd_receipt_ids_are_simply_not_there(tmp_path, id):
    async with shop(tmp_path) as s:
        assert (await s.rest.get(f"/api/receipt/{id}", headers=BEARER)).status_code == 404


async def test_a_receipt_cannot_be_written_to(tmp_path):
    async with shop(tmp_path) as s:
        answer = await s.rest.post("/api/receipt/rcpt_" + "0" * 32, headers=BEARER)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


async def test_a_stored_receipt_can_be_verified_by_its_id_without_showing_what_it_says(tmp_path):
    async with shop(tmp_path) as s:
        id = (await s.buy("/api/pro/void")).headers["x-service-receipt-id"]
        await s.close_hour()
        found = await s.rest.get("/api/receipt/verify", params={"id": id})
        missing = await s.rest.get("/api/receipt/verify", params={"id": "rcpt_" + "0" * 32})
        odd = await s.rest.get("/api/receipt/verify", params={"id": "x"})
    assert (found.json()["valid"], found.json()["core"], found.json()["checks"]["in_log"]) == (True, None, True)
    assert [missing.status_code, odd.status_code] == [404, 400]


@proves("premium.keys")
async def test_the_published_keys_verify_what_was_signed(tmp_path):
    async with shop(tmp_path) as s:
        jws = (await s.buy()).headers["x-service-receipt"]
        answer = await s.rest.get(KEY_SET)
        unchanged = await s.rest.get(KEY_SET, headers={"if-none-match": answer.headers["etag"]})
        single = (await s.rest.get(KEY)).json()
        signed = await s.verify(jws)
    keys = answer.json()["keys"]
    assert [key["kid"] for key in keys] == [single["kid"]] == [signed["key_id"]]
    assert answer.headers["cache-control"] == "public, max-age=3600"
    assert unchanged.status_code == 304
    assert not any("d" in key for key in [*keys, single])


@proves("receipt.retired-keys")
async def test_receipts_outlive_the_key_that_signed_them(tmp_path):
    async with shop(tmp_path) as s:
        old = (await s.buy()).headers["x-service-receipt"]
        write(tmp_path / RECEIPT_KEYS, rotate_keys(read_keys(tmp_path / RECEIPT_KEYS), s.clock.time()))
        s.clock.advance(PUBLISH_AHEAD_S + LOOK_S)
        new = (await s.buy()).headers["x-service-receipt"]
        verdicts = [await s.verify(jws) for jws in (old, new)]
        published = (await s.rest.get(KEY_SET)).json()["keys"]
    assert [found["valid"] for found in verdicts] == [True, True]
    assert [found["key_id"] for found in verdicts] == [key["kid"] for key in reversed(published)]


async def test_nothing_is_signed_by_a_key_after_its_end(tmp_path):
    async with shop(tmp_path) as s:
        receipt = (await s.buy()).headers["x-service-receipt"]
        url = f"/api/receipt/{read_core(receipt)['id']}"
        before = (await s.rest.get(url, headers=BEARER)).json()
        write(tmp_path / RECEIPT_KEYS, rotate_keys(read_keys(tmp_path / RECEIPT_KEYS), s.clock.time()))
        s.clock.advance(PUBLISH_AHEAD_S + LOOK_S)
        after = (await s.rest.get(url, headers=BEARER)).json()
    assert read_keys(tmp_path / RECEIPT_KEYS)[0].seed is not None, "its private half is still here"
    assert before["receipt"].keys() - after["receipt"].keys() == {"signature", "key_id"}
    assert after["jws"] == before["jws"] == receipt, "what was signed before stays signed"


@proves("receipt.revoked-key")
async def test_after_a_revocation_only_receipts_on_record_from_before_count(tmp_path):
    async with shop(tmp_path) as s:
        genuine = (await s.buy()).headers["x-service-receipt"]
        shown = (await s.rest.get(f"/api/receipt/{read_core(genuine)['id']}", headers=BEARER)).json()["receipt"]
        (stolen,) = read_keys(tmp_path / RECEIPT_KEYS)
        s.clock.advance(100)
        write(tmp_path / RECEIPT_KEYS, revoke_key([stolen], stolen.kid, s.clock.time()))
        s.clock.advance(LOOK_S)
        payload = encode(read_core(genuine) | {"id": "rcpt_" + "f" * 32, "credits_charged": 0})
        forged = compact(stolen.kid, payload, stolen.sign(signing_input(stolen.kid, payload)))
        payload = encode(read_core(genuine) | {"balance_after": 1000})
        altered = compact(stolen.kid, payload, stolen.sign(signing_input(stolen.kid, payload)))
        verdicts = [await s.verify(jws) for jws in (genuine, shown, forged, altered)]
        new = await s.verify((await s.buy()).headers["x-service-receipt"])
    assert [found["valid"] for found in verdicts] == [True, True, False, False]
    assert [found["checks"]["key_time"] for found in verdicts[2:]] == [False, False]
    assert (new["valid"], new["key_id"] == stolen.kid) == (True, False)


@proves("receipt.trusted-keys")
async def test_a_receipt_of_a_sister_service_is_verified_with_the_key_the_operator_put_there(tmp_path):
    sister, stranger = make_key(), make_key()
    async with shop(tmp_path) as s:
        ours = core_of(await s.buy("/api/pro/void"))
    write(tmp_path / "keys" / "trusted" / "sister.json", [sister])
    async with shop(tmp_path) as s:
        verdicts = []
        for key in (sister, stranger):
            payload = encode(ours | {"service": "sister.example"})
            verdicts.append(await s.verify(compact(key.kid, payload, key.sign(signing_input(key.kid, payload)))))
    assert [found["valid"] for found in verdicts] == [True, False]
    assert verdicts[0]["checks"]["in_log"] is None  # it names a place in the sister's log, which is not here
    assert verdicts[1]["checks"]["key_known"] is False


async def test_a_receipt_from_before_there_were_buckets_comes_with_the_proof_of_its_own_leaf(tmp_path):
    folder = tmp_path / "old"
    old = make_old_log(folder, 2)
    core = read_core(old.receipts[1])
    async with shop(folder) as s:
        shown = (await s.rest.get(f"/api/receipt/{core['id']}", headers=BEARER)).json()
        found = await s.verify(old.receipts[1])
        (key,) = read_keys(folder / RECEIPT_KEYS)
        payload = encode(core | {"log": core["log"] | {"index": 0}})
        other = await s.verify(compact(key.kid, payload, key.sign(signing_input(key.kid, payload))))
    assert shown.keys() == {"receipt", "jws", "log_proof"}
    assert (shown["log_proof"]["leaf"], shown["log_proof"]["size"]) == (json.loads(old.entries[1]), 2)
    assert [each["checks"]["in_log"] for each in (found, other)] == [True, False]


def test_the_keys_of_sister_services_are_read_from_every_file_of_their_folder(tmp_path):
    keys = [make_key() for _ in range(3)]
    assert read_trusted_keys(tmp_path) == {}
    write(tmp_path / "a.json", keys[:2])
    write(tmp_path / "b.json", keys[2:])
    (tmp_path / "notes.txt").write_text("not a key")
    assert read_trusted_keys(tmp_path) == {key.kid: key for key in keys}
    (tmp_path / "c.json").mkdir()
    with pytest.raises(KeyFileBroken, match="cannot be read"):
        read_trusted_keys(tmp_path)
    assert (LOG_PATH, TRUSTED) == ("/api/payment/no-charge-log", "keys/trusted")


async def test_a_receipt_that_names_another_place_in_the_log_is_found_out_even_if_signed(tmp_path):
    async with shop(tmp_path) as s:
        core = core_of(await s.buy("/api/pro/void"))
        (key,) = read_keys(tmp_path / RECEIPT_KEYS)
        verdicts = []
        others = [{"key": "0" * 64}, {"hour": "2027-01-15T07:00:00Z"}, {"hour": "9999-12-31T23:00:00Z"}]
        places = [core["log"] | other for other in others] + [{"origin": "o", "index": n} for n in (0, 2**53 - 1)]
        for hours in range(2):
            for place in places:
                payload = encode(core | {"log": place})
                signature = key.sign(signing_input(key.kid, payload))
                verdicts.append(await s.verify(compact(key.kid, payload, signature)))
            if not hours:
                await s.close_hour()
    assert [(found["valid"], found["checks"]["in_log"]) for found in verdicts] == [(False, False)] * 10


@proves("premium.verifier", "receipt.verdict")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"receipt": None}, 400),
        ({"receipt": 5}, 400),
        ({"receipt": ["x"]}, 400),
        ({"receipt": "x" * (MOST_BYTES + 1)}, 400),
        ({"receipt": {"x": "y" * MOST_BYTES}}, 400),
        ({"receipt": "x", "body_sha256": "short"}, 400),
        ({"receipt": "x" * MOST_BYTES}, 400),
        ({"receipt": ""}, 400),
        ({"receipt": {}}, 400),
        ({"receipt": {"a": {"b": [{}] * 100}}}, 400),
    ],
    ids=range(11),
)
async def test_a_malformed_receipt_is_400(tmp_path, body, status):
    async with shop(tmp_path) as s:
        answer = await s.rest.post("/api/receipt/verify", json=body)
    assert answer.status_code == status
    assert answer.json()["error"] == "invalid_arguments"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"receipt":' + b'{"a":' * 5000, b"\xff"])
async def test_a_body_that_is_no_json_object_is_400(tmp_path, body):
    async with shop(tmp_path) as s:
        assert (await s.rest.post("/api/receipt/verify", content=body)).status_code == 400


@proves("premium.verifier", "receipt.verdict")
async def test_an_agent_verifies_a_receipt_over_mcp(tmp_path):
    async with shop(tmp_path) as s:
        bought = await s.tell("premium_report")
        text = bought["content"][0]["text"]
        given = {"receipt": bought["_meta"]["receipt"], "body_sha256": sha256(text.encode())}
        right = await s.tell("receipt_verify", given)
        wrong = await s.tell("receipt_verify", given | {"body_sha256": "0" * 64})
        shown = await s.rest.get(f"/api/receipt/{bought['_meta']['receipt_id']}", headers=BEARER)
        whole = await s.tell("receipt_verify", {"receipt": shown.json()["receipt"]})
    assert right["structuredContent"]["valid"] is whole["structuredContent"]["valid"] is True
    assert "error" not in right["structuredContent"]
    assert (wrong["isError"], wrong["structuredContent"]["valid"]) == (False, False)
    assert wrong["structuredContent"]["error"] == "The receipt is for a different body."


@proves("charge.idempotent")
async def test_a_repeated_call_has_the_same_receipt_and_one_charge(tmp_path):
    async with shop(tmp_path) as s:
        first = await s.buy(idempotency_key="k")
        again = await s.buy(idempotency_key="k")
        other = await s.buy(idempotency_key="l")
        assert await s.ledger.balance(RICH) == 96
    assert first.content == again.content
    assert first.headers["x-service-receipt"] == again.headers["x-service-receipt"]
    assert first.headers["x-service-receipt"] != other.headers["x-service-receipt"]


@proves("charge.idempotent", "idempotency.restart")
async def test_a_call_repeated_after_a_restart_has_the_same_bytes_and_receipt(tmp_path):
    async with shop(tmp_path) as s:
        first = await s.buy(idempotency_key="k")
        stale = await s.buy("/api/pro/void", idempotency_key="v")
    async with shop(tmp_path) as s:
        again = await s.buy(idempotency_key="k")
        void = await s.buy("/api/pro/void", idempotency_key="v")
        over_mcp = await s.tell("premium_report", idempotency_key="k")
        assert await s.ledger.balance(RICH) == 98
    assert first.content == again.content
    for name in ("x-service-receipt", "x-service-receipt-id", "x-credits-remaining", "content-digest"):
        assert first.headers[name] == again.headers[name]
    assert stale.headers["x-service-receipt"] == void.headers["x-service-receipt"]
    assert over_mcp["_meta"]["receipt"] == first.headers["x-service-receipt"]


async def test_work_done_again_after_a_crash_is_charged_once_and_has_a_receipt_for_what_is_handed_over(tmp_path):
    async with shop(tmp_path) as s:
        operation = s.registry["premium_report"]
        caller = Caller("192.0.2.1", RICH, limited=False)
        arguments = operation.arguments()
        call = Call(operation, arguments, build_cache_key(operation, arguments), caller)
        order = PaidCall(call, RICH, "call_" + "a" * 32)
        first = await s.pipeline.paid_calls.run(order)
        same = await s.pipeline.paid_calls.run(order)
        s.clock.advance(100)
        second = await s.pipeline.paid_calls.run(order)
        assert await s.ledger.balance(RICH) == 98
        verdicts = [await s.verify(sold.receipt) for sold in (first, second)]
    assert first.receipt == same.receipt
    assert first.rendered.payload != second.rendered.payload
    assert first.receipt_id != second.receipt_id
    for sold, found in zip((first, second), verdicts, strict=True):
        assert found["valid"]
        assert found["core"]["response_sha256"] == sha256(sold.rendered.payload)
        assert found["core"]["call_id"] == order.call_id


def test_a_sale_that_was_kept_is_told_again_as_it_was():
    rendered = RenderedResponse(
        '{"a":"\\n\u00e4","_meta":{}}'.encode(), 1.5, 2.5, None, stale=True, no_charge="empty_result"
    )
    for sold in (
        PaidCallResult(rendered, 2, 98, None, "rcpt_x", "a.b.c"),
        PaidCallResult(rendered, 0, None, "stale_data"),
    ):
        again = unpack_sale(split_sale(sold).whole)
        assert replace(again, rendered=sold.rendered) == sold
        assert [getattr(again.rendered, name) for name in ("payload", "etag", "stale", "no_charge", "oldest_at")] == [
            getattr(rendered, name) for name in ("payload", "etag", "stale", "no_charge", "oldest_at")
        ]


async def test_every_one_of_many_concurrent_calls_has_its_own_receipt(tmp_path):
    async with shop(tmp_path) as s:
        await s.ledger.mint(RICH, 1000, cause="more")
        answers = []

        async def one():
            answers.append(await s.buy())

        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(one)
        ids = {answer.headers["x-service-receipt-id"] for answer in answers}
        stored = await s.file.read(lambda db: db.execute("SELECT count(*) FROM packed_receipt").fetchone()[0])
    assert len(ids) == stored == 200
    assert all(core_of(answer)["credits_charged"] == 2 for answer in answers)


@proves("charge.receipted")
async def test_without_a_receipt_there_is_no_charge(tmp_path, monkeypatch):
    async with shop(tmp_path) as s:

        async def broken(sale):
            raise StorageFailed("disk I/O error")

        def unwritable(*given):
            raise OSError("the key file is gone")

        monkeypatch.setattr(s.evidence, "sign", broken)
        monkeypatch.setattr(s.evidence.issuer, "sign", unwritable)
        composed, from_memory = [(await s.buy()).status_code for _ in range(2)]
        assert (composed, from_memory) == (503, 500), "the store is away; the key is gone"
        assert (await s.buy("/api/pro/broken")).status_code == 500
        assert await s.ledger.balance(RICH) == 100


async def test_a_ledger_that_does_not_answer_leaves_a_receipt_that_claims_no_charge(tmp_path, monkeypatch):
    async with shop(tmp_path) as s:
        monkeypatch.setattr("toolserver.calls.paid_call.SETTLE_S", 0.05)

        async def hangs(call_id, *, no_charge, undelivered):
            await anyio.sleep(10)

        monkeypatch.setattr(s.ledger, "settle", hangs)
        answer = await s.buy("/api/pro/void")
        core = core_of(answer)
    assert answer.status_code == 200
    assert (core["settlement"], core["credits_charged"], core["balance_after"]) == ("pending", 0, None)
    assert "x-credits-remaining" not in answer.headers


async def test_a_caller_who_hangs_up_while_being_charged_gets_the_credits_back(tmp_path, monkeypatch):
    async with shop(tmp_path) as s:
        settle = s.ledger.settle

        async with anyio.create_task_group() as tasks:

            async def settled_late(call_id, *, no_charge, undelivered=False):
                if no_charge is None:
                    tasks.cancel_scope.cancel()
                return await settle(call_id, no_charge=no_charge, undelivered=undelivered)

            monkeypatch.setattr(s.ledger, "settle", settled_late)
            tasks.start_soon(s.buy)
        assert await s.ledger.balance(RICH) == 100
        assert await s.file.read(lambda db: db.execute("SELECT count(*) FROM packed_receipt").fetchone()) == (0,)


@pytest.mark.parametrize("statement", ["UPDATE packed_receipt SET owner=owner", "UPDATE packed_receipt SET facts=x''"])
async def test_the_database_itself_refuses_to_change_a_receipt(tmp_path, statement):
    async with shop(tmp_path) as s:
        await s.buy()
    db = sqlite3.connect(tmp_path / "ledger.sqlite3")
    with pytest.raises(sqlite3.IntegrityError, match="a receipt is never changed"):
        db.execute(statement)
    db.close()


async def test_no_token_is_in_any_file(tmp_path):
    async with shop(tmp_path) as s:
        await s.buy(idempotency_key="k")
        await s.buy("/api/pro/broken")
        held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert RICH.encode() not in held
    assert RICH.removeprefix("svc_live_").encode() not in held


async def test_the_verification_in_the_documents_works_as_written(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "receipts.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    written = {}
    exec(code, written)
    async with shop(tmp_path) as s:
        answer = await s.buy("/api/pro/report?history=30d")
        key_set = (await s.rest.get(KEY_SET)).json()
    jws = answer.headers["x-service-receipt"]
    assert written["verified"](jws, key_set, answer.content) == core_of(answer)
    for forged, body in ((jws[:-6] + "AAAAAA", answer.content), (jws, b"{}")):
        with pytest.raises((BadSignatureError, AssertionError)):
            written["verified"](forged, key_set, body)
    assert all(f"`{name}`" in page for name in core_of(answer))
    line = "GET /api/pro/briefing?history=24h&include=btc%2Cfear-greed"
    assert line in page
    assert request_text("GET", "/api/pro/briefing", {"include": ["btc", "fear-greed"], "history": "24h"}) == line


@proves("receipt.reference")
async def test_a_caller_who_prefers_a_reference_gets_the_id_and_finds_the_receipt_later(tmp_path):
    async with shop(tmp_path) as s:
        first = await s.buy()  # not cached yet
        for path in ("/api/pro/report", "/api/pro/report?history=30d"):
            again = await s.buy(path, prefer="receipt=reference")
            assert again.headers["preference-applied"] == "receipt=reference"
            assert "x-service-receipt" not in again.headers
            kept = await s.rest.get(f"/api/receipt/{again.headers['x-service-receipt-id']}", headers=BEARER)
            assert read_core(kept.json()["jws"])["response_sha256"] == sha256(again.content)
        told = await s.tell("premium_report", receipt="reference")

    assert "preference-applied" not in first.headers
    assert set(told["_meta"]) == {"credits_remaining", "credits_charged", "receipt_id", "response_sha256"}
    assert told["_meta"]["response_sha256"] == sha256(told["content"][0]["text"].encode())


async def test_a_repeated_call_may_choose_anew_how_it_gets_its_receipt(tmp_path):
    async with shop(tmp_path) as s:
        named = await s.buy(idempotency_key="k1", prefer="receipt=reference")
        whole = await s.buy(idempotency_key="k1")

    assert "x-service-receipt" not in named.headers
    assert core_of(whole)["id"] == named.headers["x-service-receipt-id"]
    assert whole.headers["x-credits-remaining"] == named.headers["x-credits-remaining"]
