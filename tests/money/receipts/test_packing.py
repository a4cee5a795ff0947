"""A receipt comes back from the database with every byte that was signed, in a fifth of the space."""

import json
import sqlite3
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.quick_files import migrate_copied
from toolserver.core.caller import find_call_time, new_call_id, pack_call_name, unpack_call_name
from toolserver.money.receipts.issue import (
    NewReceipt,
    PackedReceipt,
    ReceiptForm,
    make_template,
    number_form,
    pack_id,
    pack_receipt,
    unpack_id,
    unpack_receipt,
)
from toolserver.money.receipts.log import LogBucket
from toolserver.money.receipts.sign import (
    SAFE,
    Body,
    Sale,
    StoredReceipt,
    core_of,
    encode,
    list_own,
    list_shared,
    receipt_id,
)
from toolserver.money.receipts.sql_store import find_receipts, store_receipts
from toolserver.sql.errors import RowsRewritten

KID = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
hashes = st.binary(min_size=32, max_size=32).map(bytes.hex)
BUCKET = LogBucket(496_000, bytes(range(32)), bytes(16))
PLACE = BUCKET.place("data.example/log")


def stored(sale, *, now, log=None, id=None, service="data.example"):
    """A receipt of a sale, unsigned."""
    core = core_of(sale, service=service, now=now, log=log, id=id)
    return StoredReceipt(core["id"], sale.owner, encode(core), KID, bytes(64), int(now * 1000))


def packed(receipt):
    new = pack_receipt(receipt)
    return unpack_receipt(new.form.terms, new.row), new.row


sales = st.builds(
    Sale,
    call_id=texts | hashes.map(lambda digits: f"call_{digits[:32]}"),
    owner=hashes,
    endpoint=texts,
    request=texts,
    cost=st.integers(0, SAFE),
    charged=st.integers(0, SAFE),
    remaining=st.none() | st.integers(0, SAFE),
    method=texts,
    reason=st.none() | texts,
    status=st.integers(100, 599),
    body=st.none() | st.builds(Body, hashes | texts, st.integers(0, SAFE)),
    captured_at=st.none() | st.floats(0, 4e9),
    sla_s=st.none() | st.floats(0, 1e9),
    nonce=st.none() | texts,
    pending=st.booleans(),
)


@given(
    sales,
    st.floats(0, 4e9),
    st.sampled_from([None, PLACE, {"origin": "data.example/log", "index": 3}]),
    st.booleans(),
)
def test_whatever_a_receipt_says_comes_back(sale, now, log, is_remade):
    receipt = stored(sale, now=now, log=log, id=receipt_id(new_call_id()) if is_remade else None)
    assert packed(receipt)[0] == receipt


@given(sales, st.floats(0, 4e9), st.none() | st.just(BUCKET), texts)
@example(Sale("%b", "ab" * 32, '/"100%b"', "%s", 2, 2, None, reason="%%"), 1.0, BUCKET, "%d")
def test_a_template_writes_the_bytes_of_canonical_json_and_the_same_row(sale, now, bucket, service):
    id, place = receipt_id(new_call_id()), bucket and bucket.place("data.example/log")
    whole = stored(sale, now=now, log=place, id=id, service=service)
    own = list_own(sale, now=now, log=place, id=id)
    template = make_template(KID, list_shared(sale, service), bucket and "data.example/log")
    assert template.write(own) == whole.core
    assert NewReceipt(whole, template.form, template.pack(whole, own)) == pack_receipt(whole)


SALE = Sale(new_call_id(), "ab" * 32, "/api/pro/report", "GET /api/pro/report", 2, 2, 98, body=Body("cd" * 32, 900))


def test_a_usual_receipt_takes_a_fifth_of_its_bytes():
    receipt = stored(SALE, now=1_800_000_000.5)
    row = packed(receipt)[1]
    assert (len(row.id), len(row.owner), len(row.facts)) == (16, 32, 77)
    assert len(row.facts) * 8 < len(receipt.core)


@pytest.mark.parametrize("core", [b"{}", b'{"id": "rcpt_1"}', encode({**core_of(SALE, service="x", now=1.0), "v2": 1})])
def test_a_core_of_another_shape_is_stored_whole(core):
    receipt = StoredReceipt("rcpt_1", "ab" * 32, core, KID, b"", 0)
    back, row = packed(receipt)
    assert (back, row.facts) == (receipt, core)


def test_a_core_that_is_not_written_as_we_write_it_is_stored_whole():
    spaced = json.dumps(core_of(SALE, service="x", now=1.0)).encode()
    receipt = StoredReceipt(receipt_id(SALE.call_id), SALE.owner, spaced, KID, b"", 1000)
    assert packed(receipt)[0] == receipt


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | hashes.map(lambda digits: digits[:32])
)
def test_names_of_calls_come_back_and_no_two_are_stored_alike(name):
    assert unpack_call_name(pack_call_name(name)) == name
    assert unpack_id(pack_id(f"rcpt_{name}")) == f"rcpt_{name}"


def test_names_are_stored_in_the_order_of_their_times():
    early, late = f"{1:012x}{9:020x}", f"{2:012x}{0:020x}"
    assert pack_call_name(early) < pack_call_name(late)
    assert (find_call_time(f"call_{late}"), find_call_time(late), find_call_time("call_1")) == (2, None, None)
    assert find_call_time(f"sister:call_{late}") is None


def test_forms_differ_in_number_when_they_differ_in_anything():
    parts = [("a", None, None), ("b", None, None), ("a", (), None), ("a", None, "a")]
    forms = [ReceiptForm(*each) for each in parts]
    assert len({number_form(form) for form in forms}) == 4
    assert all(0 <= number_form(form) < 2**63 for form in forms)
    assert number_form(ReceiptForm("a", None, None)) == 2_273_130_511_528_386_588  # rows in use have it


def test_rows_are_read_as_files_in_use_have_them():
    terms = '["kid",[1,"data.example","call","/api/pro/x","GET",200,2,2,"charged",null,300],null]'
    facts = bytes.fromhex("9862ce6b49d200c420" + "ab" * 32 + "c420" + "cd" * 32 + "cd0384a36e2d31c0c0")
    row = PackedReceipt(1_800_000_000_500, 7, bytes(16), bytes(32), facts, b"s")
    receipt = unpack_receipt(terms, row)
    assert (receipt.id, receipt.owner, receipt.signer) == ("rcpt_" + "0" * 32, "0" * 64, "kid")
    assert receipt.core.decode() == (
        '{"agent_nonce":"n-1","balance_after":98,"call_id":"call_'
        + "0" * 32
        + '","captured_at":"2027-01-15T08:00:00Z",'
        '"cost":2,"credits_charged":2,"endpoint":"/api/pro/x","freshness_sla_s":300,"id":"rcpt_' + "0" * 32 + '",'
        '"issued_at":"2027-01-15T08:00:00.500Z","kind":"call","log":null,"method":"GET","no_charge_reason":null,'
        '"request_hash":"' + "ab" * 32 + '","response_bytes":900,"response_sha256":"' + "cd" * 32 + '",'
        '"service":"data.example","settlement":"charged","status":200,"token_fp":"' + "0" * 16 + '","v":1}'
    )


def test_a_receipt_whose_form_is_gone_is_not_shown():
    receipt = stored(SALE, now=1_800_000_000.5)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        store_receipts(db, [receipt, stored(SALE, now=1.0, id=receipt_id(new_call_id()))])
        assert db.execute("SELECT count(*) FROM receipt_form").fetchone() == (1,)
        assert find_receipts(db, [receipt.id]) == {receipt.id: receipt}
        db.execute("DROP TRIGGER receipt_form_is_never_deleted")
        db.execute("DELETE FROM receipt_form")
        with pytest.raises(RowsRewritten, match=receipt.id):
            find_receipts(db, [receipt.id])
