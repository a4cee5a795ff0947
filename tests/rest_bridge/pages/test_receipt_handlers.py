"""Receipts, keys and the log over HTTP: who may read what, for how long it may be kept, and what is refused."""

import hashlib
import json

import pytest

from rest_bridge.asgi import parse_request
from rest_bridge.pages.receipts import KEY, KEY_SET, RECEIPT, VERIFY, receipt_handlers
from tests.calls.parts import POOR, RICH, START
from tests.requirements import proves
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.clock import ManualClock
from toolserver.core.caller import Addresses, token_hash
from toolserver.errors import InvalidArguments, InvalidToken, MissingToken, NotFound, RateLimited
from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, ensure_keys
from toolserver.money.receipts.service import LOG_PATH, Issuer, ReceiptService
from toolserver.money.receipts.sign import Body, Sale
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.sql.sqlite import in_memory

FOREVER = "public, max-age=31536000, immutable"
HOUR = "public, max-age=3600"


def _call(number):
    return f"call_{number:032x}"


class Shop:
    """The pages over one service with one charged and two uncharged calls."""

    def __init__(self, folder, rows, **named):
        for name in (RECEIPT_KEYS, LOG_KEYS):
            ensure_keys(folder / name)
        self.clock = clock = ManualClock(START)
        self.evidence = ReceiptService(
            SqlReceiptStore(rows), folder, clock=clock, issuer=Issuer("https://data.example", "data.example")
        )
        self.pages = receipt_handlers(self.evidence, **named)

    async def open(self):
        owner = token_hash(RICH).hex()
        charged = Sale(_call(1), owner, "/api/pro/x", "GET /api/pro/x", 2, 2, 98, body=Body("ab" * 32, 2))
        failed = Sale(_call(2), owner, "/api/pro/x", "GET /api/pro/x", 2, 0, 98, reason="5xx", status=500)
        self.id, _ = await self.evidence.sign(charged)
        await self.evidence.sign(failed)
        await self.evidence.sign(failed._replace(call_id=_call(3), reason="stale_data"))
        self.clock.advance(3660)
        await self.evidence.log.close_hours()
        return self

    async def get(self, path, query="", client="192.0.2.1", **headers):
        fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {"path": path, "query_string": query.encode(), "headers": fields, "client": (client, 1)}
        handler = self.pages.get(path) or next(
            page for at, page in self.pages.items() if at.endswith("*") and path.startswith(at[:-1])
        )
        return await handler(scope, parse_request(scope))


@pytest.fixture
async def rows():
    async with in_memory() as rows:
        yield rows


@pytest.fixture
async def shop(tmp_path, rows):
    return await Shop(tmp_path, rows).open()


def header(reply, name):
    return dict(reply.headers)[name.encode()].decode()


async def test_a_receipt_is_shown_to_the_bearer_that_paid_and_never_stored_by_others(shop):
    reply = await shop.get(RECEIPT + shop.id, authorization=f"Bearer {RICH}")
    assert reply.status == 200
    assert json.loads(reply.body)["receipt"]["id"] == shop.id
    assert header(reply, "cache-control") == "private, no-store"


async def test_another_bearer_is_answered_as_if_there_were_no_receipt(shop):
    with pytest.raises(NotFound):
        await shop.get(RECEIPT + shop.id, authorization=f"Bearer {POOR}")
    with pytest.raises(NotFound):
        await shop.get(RECEIPT + "rcpt_" + "0" * 32, authorization=f"Bearer {RICH}")


async def test_without_a_token_or_with_a_malformed_one_the_refusal_says_which(shop):
    with pytest.raises(MissingToken):
        await shop.get(RECEIPT + shop.id)
    with pytest.raises(InvalidToken):
        await shop.get(RECEIPT + shop.id, authorization="Bearer svc_live_short")


async def test_a_stored_receipt_is_verified_by_its_id_without_showing_what_it_says(shop):
    reply = await shop.get(VERIFY, f"id={shop.id}")
    verdict = json.loads(reply.body)
    assert verdict["valid"] is True
    assert not verdict.get("core")
    assert header(reply, "cache-control") == "no-store"


@pytest.mark.parametrize("query", ["", "id=rcpt_1", "id=RCPT_" + "0" * 32, "id=rcpt_" + "g" * 32])
async def test_an_id_of_another_form_is_an_invalid_argument(shop, query):
    with pytest.raises(InvalidArguments) as refused:
        await shop.get(VERIFY, query)
    assert refused.value.extra["errors"][0]["loc"] == "id"


async def test_an_id_that_nothing_is_stored_under_is_not_found(shop):
    with pytest.raises(NotFound):
        await shop.get(VERIFY, "id=rcpt_" + "0" * 32)


@pytest.mark.parametrize("path", [KEY_SET, KEY])
async def test_keys_may_be_kept_for_an_hour_and_are_not_sent_twice(shop, path):
    reply = await shop.get(path)
    assert header(reply, "cache-control") == HOUR
    again = await shop.get(path, if_none_match=header(reply, "etag"))
    other = await shop.get(path, if_none_match='"other"')
    assert (again.status, again.body) == (304, b"")
    assert (other.status, other.body) == (200, reply.body)


async def test_the_key_set_holds_the_key_in_use_and_no_private_half(shop):
    listed = json.loads((await shop.get(KEY_SET)).body)["keys"]
    used = json.loads((await shop.get(KEY)).body)
    assert used["kid"] in [key["kid"] for key in listed]
    assert not any("d" in key for key in [*listed, used])


async def test_the_checkpoint_is_a_text_that_is_kept_for_seconds(shop):
    reply = await shop.get(LOG_PATH + "/checkpoint")
    assert reply.body.decode().splitlines()[:2] == [f"data.example{LOG_PATH}", "2"]
    assert header(reply, "cache-control") == "public, max-age=5"
    assert header(reply, "content-type") == "text/plain; charset=utf-8"


async def test_a_tile_that_may_still_grow_is_kept_for_an_hour_only(shop):
    reply = await shop.get(LOG_PATH + "/tile/0/000.p/2")
    assert len(reply.body) == 64
    assert header(reply, "cache-control") == HOUR
    assert header(reply, "content-type") == "application/octet-stream"


@pytest.mark.parametrize("tile", ["0/000", "0/000.p/3", "nonsense", "0/000.p/0", ""])
async def test_a_tile_that_the_log_does_not_have_is_not_found(shop, tile):
    with pytest.raises(NotFound):
        await shop.get(LOG_PATH + "/tile/" + tile)


async def test_proofs_of_past_states_may_be_kept_for_ever(shop):
    inclusion = await shop.get(LOG_PATH + "/inclusion", "index=0&size=2")
    consistency = await shop.get(LOG_PATH + "/consistency", "first=1&second=2")
    leaf = (await shop.get(LOG_PATH + "/tile/0/000.p/2")).body[32:].hex()
    assert json.loads(inclusion.body) == {"index": 0, "size": 2, "path": [leaf]}
    assert json.loads(consistency.body) == {"first": 1, "second": 2, "path": [leaf]}
    assert header(inclusion, "cache-control") == header(consistency, "cache-control") == FOREVER


@pytest.mark.parametrize("query", ["index=2&size=2", "index=0&size=3"])
async def test_a_state_that_the_log_never_had_is_not_found(shop, query):
    with pytest.raises(NotFound):
        await shop.get(LOG_PATH + "/inclusion", query)


@pytest.mark.parametrize(
    ("query", "wrong"), [("index=-1&size=2", "index"), ("index=0", "size"), ("index=0&size=02", "size")]
)
async def test_a_proof_is_asked_for_with_whole_numbers(shop, query, wrong):
    with pytest.raises(InvalidArguments) as refused:
        await shop.get(LOG_PATH + "/inclusion", query)
    assert refused.value.extra["errors"][0]["loc"] == wrong


@proves("limits.receipts")
async def test_reading_receipts_counts_for_the_client_that_a_trusted_proxy_names_and_keys_are_free(tmp_path, rows):
    limits = PersonalLimits(per_minute=1, monotonic=lambda: 0.0)
    shop = await Shop(tmp_path, rows, limits=limits, addresses=Addresses(["192.0.2.1/32"])).open()
    await shop.get(VERIFY, f"id={shop.id}", x_forwarded_for="198.51.100.1")
    await shop.get(VERIFY, f"id={shop.id}", x_forwarded_for="198.51.100.2")
    for query in (f"id={shop.id}", "id=wrong"):
        with pytest.raises(RateLimited):
            await shop.get(VERIFY, query, x_forwarded_for="198.51.100.1")
    with pytest.raises(RateLimited):
        await shop.get(RECEIPT + shop.id, authorization=f"Bearer {RICH}", x_forwarded_for="198.51.100.2")
    for path in (KEY_SET, KEY, LOG_PATH + "/checkpoint"):
        assert (await shop.get(path, x_forwarded_for="198.51.100.1")).status == 200


async def test_a_token_that_nobody_has_is_refused_and_one_that_has_expired_still_shows_its_receipts(tmp_path, rows):
    async def refuse(token):
        raise InvalidToken(f"unknown: {token}")

    shop = await Shop(tmp_path, rows, check_token=refuse).open()
    with pytest.raises(InvalidToken, match=POOR):
        await shop.get(RECEIPT + shop.id, authorization=f"Bearer {POOR}")
    assert (await shop.get(RECEIPT + shop.id, authorization=f"Bearer {RICH}")).status == 200


async def test_the_tag_of_the_keys_changes_with_their_bytes(shop):
    reply = await shop.get(KEY_SET)
    assert header(reply, "etag").strip('"').startswith(hashlib.sha256(reply.body).hexdigest()[:32])


async def test_an_hour_that_no_calendar_has_is_not_found_and_another_text_is_refused(shop):
    with pytest.raises(NotFound, match="does not exist in the calendar"):
        await shop.get(LOG_PATH + "/bucket", f"hour=2027-13-15T08:00:00Z&key={'0' * 64}")
    with pytest.raises(InvalidArguments):
        await shop.get(LOG_PATH + "/bucket", f"hour=yesterday&key={'0' * 64}")


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("hour=2027-01-15T08:00:00Z", "key"),
        ("hour=2027-01-15T08:00:00Z&key=" + "0" * 63, "key"),
        (f"hour=2027-01-15T08:00:00Z&key={'0' * 64}&receipt=x", "receipt"),
        (f"key={'0' * 64}", "hour"),
    ],
)
async def test_a_bucket_is_asked_for_by_hour_and_hashes(shop, query, wrong):
    with pytest.raises(InvalidArguments) as refused:
        await shop.get(LOG_PATH + "/bucket", query)
    assert [error["loc"] for error in refused.value.extra["errors"]] == [wrong]
    assert str(refused.value).startswith(f"{wrong}: must be ")


async def test_a_bucket_of_an_hour_that_is_not_over_says_when_to_ask_again_and_one_that_never_was_does_not(shop):
    with pytest.raises(NotFound, match="not in the log yet") as early:
        await shop.get(LOG_PATH + "/bucket", f"hour=2027-01-15T09:00:00Z&key={'0' * 64}")
    assert 3500 < int(early.value.headers["Retry-After"]) < 3700
    with pytest.raises(NotFound, match="no such bucket") as never:
        await shop.get(LOG_PATH + "/bucket", f"hour=2027-01-15T08:00:00Z&key={'0' * 64}")
    assert never.value.headers == {}


async def test_buckets_count_with_receipts_and_proofs_of_states_do_not(tmp_path, rows):
    shop = await Shop(tmp_path, rows, limits=PersonalLimits(per_minute=1, monotonic=lambda: 0.0)).open()
    for _ in range(2):
        await shop.get(LOG_PATH + "/inclusion", "index=0&size=2")
        await shop.get(LOG_PATH + "/consistency", "first=1&second=2")
        await shop.get(LOG_PATH + "/tile/0/000.p/2")
    with pytest.raises(InvalidArguments):
        await shop.get(LOG_PATH + "/bucket", "hour=x")
    with pytest.raises(RateLimited):
        await shop.get(LOG_PATH + "/bucket", f"hour=2027-01-15T08:00:00Z&key={'0' * 64}")


async def test_a_number_of_a_proof_has_sixteen_digits_at_most(shop):
    with pytest.raises(NotFound):
        await shop.get(LOG_PATH + "/inclusion", f"index=0&size={10**16 - 1}")
    with pytest.raises(InvalidArguments) as refused:
        await shop.get(LOG_PATH + "/inclusion", f"index=0&size={10**16}")
    assert refused.value.extra["errors"] == [{"loc": "size", "msg": "must be a whole number", "type": "value_error"}]


async def test_a_client_without_an_address_is_counted_too(tmp_path, rows):
    shop = await Shop(tmp_path, rows, limits=PersonalLimits(per_minute=1, monotonic=lambda: 0.0)).open()
    scope = {"path": VERIFY, "query_string": f"id={shop.id}".encode(), "headers": [], "client": None}
    await shop.pages[VERIFY](scope, parse_request(scope))
    with pytest.raises(RateLimited):
        await shop.pages[VERIFY](scope, parse_request(scope))


async def test_what_is_sent_is_json_without_spaces(shop):
    for path in (KEY_SET, KEY):
        reply = await shop.get(path)
        assert header(reply, "content-type") == "application/json"
        assert reply.body == json.dumps(json.loads(reply.body), separators=(",", ":"), ensure_ascii=False).encode()


async def test_with_a_token_that_the_ledger_knows_a_receipt_of_another_is_not_found(tmp_path, rows):
    checked = []

    async def know(token):
        checked.append(token)

    shop = await Shop(tmp_path, rows, check_token=know).open()
    with pytest.raises(NotFound):
        await shop.get(RECEIPT + shop.id, authorization=f"Bearer {POOR}")
    await shop.get(RECEIPT + shop.id, authorization=f"Bearer {RICH}")
    assert checked == [POOR]


async def test_a_receipt_is_written_in_its_own_letters(shop):
    sale = Sale(_call(9), token_hash(RICH).hex(), "/api/pro/é", "GET /api/pro/é", 2, 2, 96, body=Body("ab" * 32, 2))
    number, _ = await shop.evidence.sign(sale)
    reply = await shop.get(RECEIPT + number, authorization=f"Bearer {RICH}")
    assert '"/api/pro/é"' in reply.body.decode()


async def test_the_holder_of_a_token_has_a_limit_of_its_own_and_an_invented_token_counts_by_address(tmp_path, rows):
    async def identify(caller):
        return "payer" if caller.token == RICH else caller.client

    counted = []

    class Counted:
        async def count(self, client, name):
            counted.append(client)

    shop = await Shop(tmp_path, rows, limits=Counted(), identify=identify).open()
    await shop.get(RECEIPT + shop.id, authorization=f"Bearer {RICH}")
    with pytest.raises(NotFound):
        await shop.get(RECEIPT + shop.id, authorization=f"Bearer {POOR}")
    with pytest.raises(MissingToken):
        await shop.get(RECEIPT + shop.id)
    await shop.get(VERIFY, f"id={shop.id}", authorization=f"Bearer {RICH}")
    assert counted == ["payer", "192.0.2.1", "192.0.2.1", "192.0.2.1"]
