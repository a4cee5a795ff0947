"""Documents on the command line: from a file or standard input, and explained when they are none."""

import io
import json
from pathlib import Path

import click
import pytest

from tests.money.purchases.test_transfer_authorization import KEY, ONE, document
from toolserver.cli.documents import load_document, read_key, read_signature, sign_document
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.offline_key import KeyRefused, SingleKey
from toolserver.money.purchases.transfer_authorization import UnusableDocument


def test_a_document_comes_from_standard_input_too(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(document())))
    _, ((_, one),) = load_document(Path("-"))
    assert one == ONE


def test_a_file_that_is_no_json_is_said_to_be_none(tmp_path):
    (tmp_path / "plan").write_text("{", encoding="utf-8")
    with pytest.raises(UnusableDocument, match="is not JSON"):
        load_document(tmp_path / "plan")


def test_every_entry_is_signed_and_its_signature_read_back(tmp_path):
    (tmp_path / "plan").write_text(json.dumps(document()), encoding="utf-8")
    made = sign_document(tmp_path / "plan", SingleKey(KEY), [checksum_address(ONE.payee)])
    (entry,) = made["authorizations"]
    assert read_signature(entry, ONE) == ONE.sign(KEY)
    with pytest.raises(UnusableDocument, match="was not made by"):
        read_signature(entry, ONE._replace(amount=9))
    with pytest.raises(UnusableDocument, match="no signature"):
        read_signature({"signature": "0xzz"}, ONE)


@pytest.mark.parametrize("flags", [(None, None), (Path("x"), "Y")])
def test_a_key_is_in_one_place(flags):
    with pytest.raises(click.UsageError, match="either"):
        read_key(*flags)
    with pytest.raises(KeyRefused):
        read_key(Path("/nowhere/key"), None)
