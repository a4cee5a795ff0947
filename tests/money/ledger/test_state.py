"""The state that operations change: how each kind of transfer moves an account, and who is valid."""

import pytest

from tests.money.ledger.ledgers import token
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.allowance import AllowanceTerms, draft_allowance
from toolserver.money.ledger.state import ISSUED, REVENUE, AccountRef, AccountStanding, LedgerState, key_of, standing

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


@pytest.fixture
def allowance(books):
    """An allowance of 5 credits that ends at 9000; its owner has 8, and 2 of them are pending."""
    books.write("posted", ISSUED, 4, 10, cause="paid")
    books.write("pending", 4, REVENUE, 2)
    made = draft_allowance(AllowanceTerms("robot", 5, expires_at=9000), "c" * 64, 6000)
    made.parent = KEY
    books.keep_allowance(made)
    return made


def test_the_standing_of_a_token_is_its_account_and_that_of_an_allowance_what_it_may_spend(books, allowance):
    assert standing(books, KEY) == AccountStanding(8, 2, KEY[:16], AccountRef("acct_1"), 5.0, None, KEY, None)
    ref = AccountRef(allowance.ref)
    expected = AccountStanding(5, 0, "c" * 16, ref, 6.0, None, KEY, allowance.id)
    assert standing(books, allowance.hash) == standing(books, allowance.ref) == expected
    allowance.spent = 5
    assert standing(books, allowance.hash) == expected._replace(credits=0)
    books.now = 9000
    assert standing(books, allowance.hash).revoked == "allowance expired"
    assert books.revoke_allowance(allowance) is True
    assert standing(books, allowance.hash).revoked == "allowance revoked"
    books.add(books.tokens[KEY]._replace(revoked_at=6000, revoke_reason="leaked"))
    assert standing(books, allowance.hash).revoked == standing(books, KEY).revoked == "leaked"


def test_an_allowance_spends_what_its_caps_and_its_owners_balance_leave(books, allowance):
    account = books.accounts[4]
    for key in (allowance.hash, allowance.ref, allowance.id):
        assert books.find_spendable(account, key) == 5
    assert books.find_spendable(account, KEY) == books.find_spendable(account, None) == 8
    account.debits = 6
    assert books.find_spendable(account, allowance.id) == 2


def test_an_allowance_is_valid_until_it_ends_or_is_revoked(books, allowance):
    assert books.valid(allowance.hash) == books.valid(KEY)
    books.now = 8999
    books.valid(allowance.hash)
    for _ in range(2):
        books.now = 9000
        with pytest.raises(PaymentRequired) as caught:
            books.valid(allowance.hash)
        assert caught.value.code == "expired"


def test_an_allowance_is_revoked_once_and_stored_as_changed(books, allowance):
    books.changed_allowances.clear()
    assert [books.revoke_allowance(allowance), allowance.revoked_at] == [True, 5000]
    books.now = 6000
    assert [books.revoke_allowance(allowance), allowance.revoked_at] == [False, 5000]
    assert books.changed_allowances == {allowance.id: allowance}


def test_a_replaced_token_is_refused_and_the_one_between_is_not_known(books):
    for successor in ("d" * 64, "e" * 64):
        books.add(books.tokens[KEY]._replace(successor=successor))
    assert books.valid("e" * 64)[0].live == "e" * 64
    assert books.valid("acct_1") == books.valid("e" * 64)
    with pytest.raises(PaymentRequired, match="replaced"):
        books.valid(KEY)
    assert "d" * 64 not in books.tokens
    assert standing(books, KEY) == AccountStanding(
        0, 0, "e" * 16, AccountRef("acct_1"), 5.0, "replaced by another token", "e" * 64
    )
    assert standing(books, "e" * 64).revoked is None
    assert books.changed_tokens == {KEY: books.tokens[KEY]}


def test_a_new_token_gets_the_next_account_after_our_own(books):
    books.issue("f" * 64, "acct_2")
    assert (books.tokens[KEY].account, books.tokens["acct_2"].account, books.next_account) == (4, 5, 6)
    assert books.tokens["f" * 64] == ("f" * 64, 5, "acct_2", 5000, None, None, None)
    assert books.changed_accounts.keys() == {4, 5}


def test_a_transfer_says_when_and_what_it_resolves(books):
    assert books.write("post", 4, REVENUE, 3, resolves=7) == (1, "post", 4, REVENUE, 3, 7, None, 5000)
