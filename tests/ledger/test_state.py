"""The state that operations change: how each kind of transfer moves an account, and who is valid."""

import pytest

from tests.ledger.ledgers import token
from toolserver.errors import PaymentRequired
from toolserver.ledger.state import ISSUED, REVENUE, AccountRef, LedgerState, key_of, standing

KEY = key_of(token(1))


@pytest.fixture
def books():
    books = LedgerState(5000)
    books.issue(KEY, "acct_1")
    return books


def moved(books, kind, debit, credit, amount=3):
    books.write(kind, debit, credit, amount)
    account = books.accounts[books.tokens[KEY].account]
    return account.credits, account.debits, account.pending


@pytest.mark.parametrize(
    ("kind", "incoming", "after"),
    [
        ("posted", True, (3, 0, 0)),
        ("posted", False, (0, 3, 0)),
        ("pending", False, (0, 0, 3)),
        ("reverse", True, (3, 0, 0)),
    ],
)
def test_a_transfer_moves_its_account_by_its_kind(books, kind, incoming, after):
    account = books.tokens[KEY].account
    debit, credit = (ISSUED if kind == "posted" else REVENUE, account) if incoming else (account, REVENUE)
    assert moved(books, kind, debit, credit) == after
    assert books.changed_accounts.keys() == {account}


@pytest.mark.parametrize(("kind", "after"), [("post", (0, 3, 0)), ("void", (0, 0, 0))])
def test_a_settlement_ends_what_was_pending(books, kind, after):
    account = books.tokens[KEY].account
    books.write("pending", account, REVENUE, 3)
    assert moved(books, kind, account, REVENUE) == after


def test_transfers_are_numbered_and_causes_remembered(books):
    account = books.tokens[KEY].account
    first = books.write("posted", ISSUED, account, 3, cause="purchase:1")
    second = books.write("posted", account, REVENUE, 1)
    assert (first.seq, second.seq, books.next_seq) == (1, 2, 3)
    assert books.causes == {"purchase:1": first}
    assert books.transfers == [first, second]


def test_a_token_is_found_by_its_hash_and_its_reference_until_it_is_revoked(books):
    assert books.valid(KEY) == books.valid("acct_1")
    token_found, _ = books.valid(KEY)
    books.add(token_found._replace(revoked_at=6000, revoke_reason="leaked"))
    for key, code in ((KEY, "expired"), ("acct_2", "invalid_token")):
        with pytest.raises(PaymentRequired) as caught:
            books.valid(key)
        assert caught.value.code == code
    assert standing(books, KEY).revoked == "leaked"


def test_a_reference_is_never_issued_as_a_token(books):
    with pytest.raises(PaymentRequired):
        books.issue("acct_2", "acct_3")


def test_a_malformed_token_has_no_key():
    assert key_of(AccountRef("acct_1")) == "acct_1"
    with pytest.raises(PaymentRequired):
        key_of("nonsense")
