"""What operators do with accounts: credits that are paid back, and tokens that replace lost ones, in every ledger."""

import pytest

from tests.money.ledger.ledgers import opened, token
from toolserver.core.caller import token_hash
from toolserver.errors import InsufficientCredits, InvalidToken, RevokedToken
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.operations import ReplaceToken, WithdrawCredits, Withdrawn
from toolserver.money.ledger.protocol import CauseReused, StatementQuery

OLD, NEW, NEWER, CHILD = token(1), token(2), token(3), token(4)
KEY, NEXT, LATEST = (token_hash(each).hex() for each in (OLD, NEW, NEWER))


@pytest.fixture(params=["memory", "sqlite"])
async def ledger(request, tmp_path):
    async with opened(request.param, tmp_path) as made:
        await made.mint(OLD, 10, cause="rich")
        yield made


async def apply(ledger, operation):
    """Apply an operation, as stores do within their transactions."""
    if isinstance(ledger, MemoryLedger):
        return operation.on(ledger.load())
    return await ledger.file.together(ledger.apply_group, operation)


# --- credits that are paid back


async def test_credits_leave_once_for_a_cause_and_stand_in_the_statement(ledger):
    asked = WithdrawCredits(KEY, 4, "refund:1:moved away")
    assert [await apply(ledger, asked) for _ in range(2)] == [(4, 6, False), (4, 6, True)]
    assert Withdrawn(4, 6) == (4, 6, False)
    page = await ledger.statement(OLD, StatementQuery())
    assert [(entry.kind, entry.credits) for entry in page.entries] == [("refund", -4), ("credit", 10)]
    assert await ledger.balance(OLD) == 6


async def test_no_more_leaves_than_can_be_spent_now(ledger):
    await ledger.reserve("c1", OLD, 3, endpoint="/x", ttl_s=60)
    with pytest.raises(InsufficientCredits) as refused:
        await apply(ledger, WithdrawCredits(KEY, 8, "refund:1:x"))
    assert refused.value.extra["credits_remaining"] == 7
    assert (await apply(ledger, WithdrawCredits(KEY, 7, "refund:1:x"))).remaining == 0
    assert (await ledger.settle("c1", no_charge=None)).charged == 3


@pytest.mark.parametrize(("credits", "cause"), [(5, "refund:1:x"), (4, "rich"), (10, "rich")])
async def test_a_cause_moves_one_sum_in_one_direction(ledger, credits, cause):
    await apply(ledger, WithdrawCredits(KEY, 4, "refund:1:x"))
    with pytest.raises(CauseReused):
        await apply(ledger, WithdrawCredits(KEY, credits, cause))
    with pytest.raises(CauseReused):
        await ledger.mint(OLD, 4, cause="refund:1:x")


async def test_credits_of_a_revoked_token_can_be_paid_back_and_those_of_an_allowance_cannot(ledger):
    await ledger.create_allowance(OLD, token_hash(CHILD).hex(), AllowanceTerms("child", 5))
    with pytest.raises(InvalidToken):
        await apply(ledger, WithdrawCredits(token_hash(CHILD).hex(), 1, "refund:1:x"))
    with pytest.raises(InvalidToken):
        await apply(ledger, WithdrawCredits("ab" * 32, 1, "refund:1:x"))
    await ledger.revoke(KEY, "leaked")
    assert (await apply(ledger, WithdrawCredits(KEY, 10, "refund:1:x"))).remaining == 0


@pytest.mark.parametrize("credits", [0, -1])
def test_nothing_is_no_number_of_credits(credits):
    with pytest.raises(ValueError, match="not a valid number"):
        WithdrawCredits(KEY, credits, "refund:1:x")


# --- tokens that replace lost ones


async def test_a_new_token_opens_the_account_and_the_old_one_is_refused(ledger):
    ref = (await ledger.standing(OLD)).ref
    assert await apply(ledger, ReplaceToken(KEY, NEXT)) is True
    assert await ledger.balance(NEW) == 10
    assert (await ledger.standing(NEW)).ref == ref
    assert await ledger.find_payer(NEW) == (await ledger.standing(NEW)).payer == NEXT
    assert (await ledger.standing(NEW)).fingerprint == NEXT[:16]
    for refused in (ledger.balance(OLD), ledger.charge("c1", OLD, 1, endpoint="/x")):
        with pytest.raises(RevokedToken, match="replaced"):
            await refused
    assert (await ledger.standing(OLD)).revoked == "replaced by another token"
    assert (await ledger.charge("c2", NEW, 3, endpoint="/x")).remaining == 7
    assert (await ledger.balance(ref)) == 7
    assert (await ledger.mint(NEW, 1, cause="more")).remaining == 8


async def test_a_call_that_began_with_the_old_token_ends_on_the_account(ledger):
    await ledger.reserve("c1", OLD, 4, endpoint="/x", ttl_s=60)
    await apply(ledger, ReplaceToken(KEY, NEXT))
    assert (await ledger.settle("c1", no_charge="5xx")).remaining == 10
    page = await ledger.statement(NEW, StatementQuery())
    assert [(entry.kind, entry.state) for entry in page.entries] == [("call", "voided"), ("credit", None)]


async def test_allowances_stay_with_the_account(ledger):
    await ledger.create_allowance(OLD, token_hash(CHILD).hex(), AllowanceTerms("child", 5))
    await apply(ledger, ReplaceToken(KEY, NEXT))
    assert (await ledger.charge("c1", CHILD, 2, endpoint="/x")).charged == 2
    (child,) = await ledger.list_allowances(NEW)
    assert (child.name, child.spent) == ("child", 2)
    assert await ledger.find_payer(CHILD) == NEXT
    await ledger.revoke_allowance(NEW, child.id)
    with pytest.raises(RevokedToken):
        await ledger.list_allowances(OLD)
    with pytest.raises(InvalidToken):
        await apply(ledger, ReplaceToken(token_hash(CHILD).hex(), LATEST))


async def test_a_token_is_replaced_once_for_each_new_one_and_never_back(ledger):
    await apply(ledger, ReplaceToken(KEY, NEXT))
    assert await apply(ledger, ReplaceToken(KEY, NEXT)) is False
    with pytest.raises(RevokedToken, match="replaced"):
        await apply(ledger, ReplaceToken(KEY, LATEST))
    assert await apply(ledger, ReplaceToken(NEXT, LATEST)) is True
    assert await ledger.balance(NEWER) == 10
    with pytest.raises(InvalidToken):
        await ledger.balance(NEW)


async def test_a_replaced_token_is_found_and_revoked_by_its_new_fingerprint(ledger):
    await apply(ledger, ReplaceToken(KEY, NEXT))
    assert await ledger.revoke(NEXT[:16], "leaked") is True
    with pytest.raises(RevokedToken):
        await ledger.balance(NEW)
    with pytest.raises(RevokedToken, match="revoked"):
        await apply(ledger, ReplaceToken(NEXT, LATEST))
    with pytest.raises(InvalidToken):
        await apply(ledger, ReplaceToken("ab" * 32, LATEST))
