"""Credits for a signed payment: once, on the right token, and to nobody but whoever paid."""

from dataclasses import replace

import anyio
import httpx
import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.money.x402.parts import NOW, PAYER, REPORT, TERMS, Chain, Desk, Script, desk, signed
from tests.requirements import proves
from toolserver.core.caller import Caller, token_hash
from toolserver.errors import (
    AlreadyCredited,
    ChainUnavailable,
    IdempotencyConflict,
    InvalidArguments,
    PayerProofRequired,
    PaymentRequired,
    PaymentUsed,
    SettlementPending,
)
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.x402 import wire
from toolserver.money.x402.records import ChainTopup, NonceUsed, TopupCredit, begin_recovered
from toolserver.money.x402.settlement import AuthorisationState

TWO = 2 * ATOMIC
KEY = "a-long-idempotency-key"
TX = bytes([9]) * 32
PAYERS_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"  # of every local chain; opens nothing


def proof(payment: str) -> str:
    """The signature of whoever paid."""
    text = f"data.example top-up {wire.read_payment(payment).id.hex()} chain 8453"
    return "0x" + Account.sign_message(encode_defunct(text=text), PAYERS_KEY).signature.hex()


async def test_without_a_payment_it_says_what_to_sign(tmp_path):
    async with desk(tmp_path) as d:
        with pytest.raises(PaymentRequired) as caught:
            await d.topup(None)
        offer = wire.unheader(caught.value.headers[wire.REQUIRED])
        assert caught.value.code == "payment_required"
        assert offer["resource"]["url"] == "https://data.example/api/payment/topup"
        assert offer["accepts"][0]["amount"] == "2000000"
        assert wire.RESPONSE not in caught.value.headers


@proves("x402.topup")
async def test_a_payment_becomes_a_new_token(tmp_path):
    async with desk(tmp_path) as d:
        bought = await d.topup(signed(TWO))

        assert bought.credits == 100
        assert await d.ledger.balance(bought.token) == 100
        assert f"0x{bought.tx.hex()}" in d.script.made.values()
        assert await d.minted() == 100
        stored = await d.rows("SELECT token, sealed FROM x402_payment")
        assert stored == [(token_hash(bought.token).hex(), None)]


@proves("x402.topup")
async def test_a_payment_tops_up_the_token_that_is_sent_along(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        first = await d.topup(signed(TWO))
        for _ in range(3):
            again = await d.topup(payment, token=first.token)
            assert (again.token, again.credits) == (first.token, 100)
        assert await d.ledger.balance(first.token) == 200
        assert d.script.settlements == 2


@pytest.mark.parametrize(("amount", "credits"), [(ATOMIC, 50), (1_999_999, 99), (1_020_001, 51)])
async def test_credits_are_rounded_down(tmp_path, amount, credits):
    async with desk(tmp_path) as d:
        payment = signed(amount)
        found = await d.topups.buy(amount, Caller("192.0.2.1", payment=payment))
        assert found.credits == credits


@pytest.mark.parametrize("token", ["", "svc_live_0", f"svc_live_{'0' * 64}"])
async def test_nothing_is_paid_onto_a_token_that_is_not_good(tmp_path, token):
    async with desk(tmp_path) as d:
        with pytest.raises(PaymentRequired) as caught:
            await d.topup(signed(TWO), token=token)
        assert caught.value.code == "invalid_token"
        assert d.script.asked == []


async def test_nothing_is_paid_onto_a_revoked_token(tmp_path):
    async with desk(tmp_path) as d:
        first = await d.topup(signed(TWO))
        await d.ledger.revoke(token_hash(first.token).hex()[:16], "stolen")
        with pytest.raises(PaymentRequired) as caught:
            await d.topup(signed(TWO), token=first.token)
        assert caught.value.code == "expired"
        assert d.script.settlements == 1


async def test_more_than_is_sold_at_once_is_not_asked_for(tmp_path):
    async with desk(tmp_path) as d:
        with pytest.raises(InvalidArguments, match="at most 1000"):
            await d.topup(None, 1001)


async def test_a_payment_for_another_amount_is_refused(tmp_path):
    async with desk(tmp_path) as d:
        with pytest.raises(PaymentRequired, match="value_mismatch"):
            await d.topup(signed(TWO), 3)
        assert d.script.asked == []


# --- the same payment again: one mint, and the token is only for whoever sent it first ---


async def test_twenty_twins_mint_once(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        found, refused = [], []

        async def topup() -> None:
            try:
                found.append(await d.topup(payment, key=KEY))
            except PayerProofRequired as refusal:
                refused.append(refusal)

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(topup)

        assert len({bought.token for bought in found}) == 1
        assert (len(found), len(refused)) == (20, 0)
        assert (await d.minted(), d.script.settlements) == (100, 1)


async def test_the_key_of_the_first_request_gets_the_same_token_even_after_a_restart(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        first = await d.topup(payment, key=KEY)
    async with desk(tmp_path) as d:
        assert await d.topup(payment, key=KEY) == first
        assert d.script.asked == []


@pytest.mark.parametrize("key", [None, "another-long-idempotency-key", "short"])
async def test_a_stranger_who_saw_the_payment_gets_no_token(tmp_path, key):
    """After settlement all of it stands on the chain."""
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        first = await d.topup(payment, key=KEY)
        with pytest.raises(PayerProofRequired) as caught:
            await d.topup(payment, key=key)
        assert first.token not in str(caught.value)
        assert await d.minted() == 100


async def test_a_short_key_is_no_secret(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        await d.topup(payment, key="1")
        with pytest.raises(PayerProofRequired):
            await d.topup(payment, key="1")


async def test_a_stranger_cannot_have_a_payment_put_on_a_token_of_theirs(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        theirs = await d.topup(signed(TWO))
        await d.topup(payment)
        with pytest.raises(AlreadyCredited):
            await d.topup(payment, token=theirs.token)
        assert await d.ledger.balance(theirs.token) == 100


@proves("x402.topup-again")
@pytest.mark.parametrize("after_s", [1, 180, 3600, 86_400])
@pytest.mark.parametrize("is_used", [False, True])
async def test_the_key_of_the_first_request_gets_the_token_again_for_a_day_and_nothing_is_credited_twice(
    tmp_path, after_s, is_used
):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        first = await d.topup(payment, key=KEY)
        if is_used:
            await d.ledger.charge("call_1", first.token, 2, endpoint="/api/pro/x")
        d.clock.advance(after_s)
        assert await d.topup(payment, key=KEY) == first
        assert (await d.minted(), d.script.settlements) == (100, 1)


@proves("x402.topup-again")
@pytest.mark.parametrize("is_used", [False, True])
async def test_after_a_day_the_key_is_forgotten_and_the_credits_stand(tmp_path, is_used):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        first = await d.topup(payment, key=KEY)
        if is_used:
            await d.ledger.charge("call_1", first.token, 2, endpoint="/api/pro/x")
        d.clock.advance(86_401)
        with pytest.raises(AlreadyCredited if is_used else PayerProofRequired, match="was used for 100 credits"):
            await d.topup(payment, key=KEY)
        assert await d.ledger.balance(first.token) == (98 if is_used else 100)


@proves("x402.payer-proof")
@pytest.mark.parametrize("after_s", [1, 180, 3600, 100_000])
async def test_a_stranger_who_rebuilds_a_payment_from_the_chain_gets_neither_token_nor_offer(tmp_path, after_s):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        first = await d.topup(payment)
        theirs = await d.topup(signed(TWO))
        d.clock.advance(after_s)
        with pytest.raises(PayerProofRequired, match="was used for 100 credits") as refused:
            await d.topup(payment)
        with pytest.raises(AlreadyCredited, match="was used for 100 credits on another token") as other:
            await d.topup(payment, token=theirs.token)
        for caught in (refused, other):
            assert wire.REQUIRED not in caught.value.headers
            assert first.token not in str(caught.value)
        with pytest.raises(PaymentUsed):
            await d.topup(signed(TWO, nonce=f"0x{wire.read_payment(payment).nonce.hex()}", validBefore="1"))
        assert await d.minted() == 200


@pytest.mark.parametrize("after_s", [1, 180, 3600, 100_000])
async def test_a_top_up_of_a_known_token_is_confirmed_again_without_end(tmp_path, after_s):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        token = (await d.topup(signed(TWO))).token
        first = await d.topup(payment, token=token)
        d.clock.advance(after_s)
        assert await d.topup(payment, 3, token=token) == first
        assert await d.ledger.balance(token) == 200


async def test_a_known_payment_is_answered_whatever_may_be_bought_by_now(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        first = await d.topup(payment, key=KEY)
    async with desk(tmp_path, terms=replace(TERMS, most=ATOMIC)) as d:
        assert await d.topup(payment, key=KEY) == first


@proves("x402.payer-proof")
async def test_whoever_paid_gets_a_new_token_for_one_that_never_came(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        lost = await d.topup(payment)
        again = await d.topup(payment, signature=proof(payment))
        assert again.token != lost.token
        assert await d.ledger.balance(again.token) == 100
        with pytest.raises(PaymentRequired):
            await d.ledger.balance(lost.token)
        assert await d.minted() == 100
        await d.ledger.charge("call_1", again.token, 2, endpoint="/api/pro/x")
        with pytest.raises(AlreadyCredited):
            await d.topup(payment, signature=proof(payment))


@proves("x402.payer-proof")
@pytest.mark.parametrize("signature", ["0x", "0x" + "1" * 130, "zz", "other"])
async def test_another_signature_proves_nothing(tmp_path, signature):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        lost = await d.topup(payment)
        with pytest.raises(PayerProofRequired) as caught:
            await d.topup(payment, signature=proof(signed(TWO)) if signature == "other" else signature)
        assert wire.read_payment(payment).id.hex() in str(caught.value)
        assert await d.ledger.balance(lost.token) == 100


async def test_a_payment_for_a_call_is_no_top_up_and_the_other_way_round(tmp_path):
    call, topup = signed(REPORT), signed(TWO)
    async with desk(tmp_path) as d:
        await d.buy(call)
        await d.topup(topup)
        with pytest.raises(AlreadyCredited, match="was used for GET /api/pro/report"):
            await d.topup(call)
        with pytest.raises(IdempotencyConflict, match="was used for a top-up"):
            await d.buy(topup)
        assert d.script.settlements == 2


# --- nobody knows ---


async def pending(d: Desk, payment: str, **named) -> None:
    d.script.settles = httpx.ReadTimeout("slow")
    with pytest.raises(SettlementPending) as caught:
        await d.topup(payment, **named)
    assert wire.REQUIRED not in caught.value.headers
    d.script.settles = None


@pytest.mark.parametrize("how", ["key", "signature", "token"])
async def test_a_pending_top_up_is_credited_to_its_sender(tmp_path, how):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        named = {"key": {"key": KEY}, "signature": {}, "token": {"token": (await d.topup(signed(TWO))).token}}[how]
        await pending(d, payment, **named)
    async with desk(tmp_path, script=Script()) as d:
        more = {"signature": proof(payment)} if how == "signature" else named
        bought = await d.topup(payment, **more)
        assert bought.credits == 100
        assert await d.ledger.balance(bought.token) == (200 if how == "token" else 100)


async def test_a_pending_top_up_is_nobody_elses(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        mallory = (await d.topup(signed(TWO))).token
        await pending(d, payment)
        with pytest.raises(PayerProofRequired):
            await d.topup(payment)
        with pytest.raises(AlreadyCredited):
            await d.topup(payment, token=mallory)
        assert await d.states() == ["settled", "settling"]


async def test_a_top_up_that_was_settled_unheard_is_found_on_the_chain(tmp_path):
    payment, chain = signed(TWO), Chain()
    async with desk(tmp_path, chain=chain) as d:
        d.script.loses = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending):
            await d.topup(payment, key=KEY)
        chain.seen = AuthorisationState("paid", TX)
        assert (await d.topup(payment, key=KEY)).tx == TX
        assert await d.minted() == 100


async def test_a_facilitator_that_is_down_takes_nothing(tmp_path):
    async with desk(tmp_path) as d:
        d.script.verifies = httpx.ConnectError("refused")
        with pytest.raises(ChainUnavailable):
            await d.topup(signed(TWO))
        assert (await d.minted(), await d.states()) == (0, [])


async def test_no_secret_is_logged(tmp_path, caplog):
    caplog.set_level("DEBUG")
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        bought = await d.topup(payment, key=KEY)
        await pending(d, signed(TWO))
    told = caplog.text + repr([vars(record) for record in caplog.records if record.name.startswith("toolserver")])
    assert bought.token not in told
    assert KEY not in told
    assert payment not in told


def test_the_payers_key_is_the_payers():
    assert bytes.fromhex(Account.from_key(PAYERS_KEY).address[2:]) == PAYER


async def test_a_token_that_is_revoked_while_it_is_paid_for_gets_nothing(tmp_path, caplog):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        token = (await d.topup(signed(TWO))).token
        revoked = []

        async def settle(*given: object) -> bytes:
            revoked.append(await d.ledger.revoke(token_hash(token).hex()[:16], "stolen"))
            return await real(*given)

        real, d.settling.settle = d.settling.settle, settle
        with pytest.raises(PaymentUsed, match="its token was revoked"):
            await d.topup(payment, token=token)
        assert revoked == [True]
        assert "could not be credited" in caplog.text


async def test_a_token_that_is_used_while_it_is_replaced_stays(tmp_path, monkeypatch):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        first = await d.topup(payment)
        kept = await d.settling.find_stored(wire.read_payment(payment))
        await d.ledger.charge("call_1", first.token, 2, endpoint="/api/pro/x")

        async def before(payment: wire.Payment) -> object:
            return kept

        monkeypatch.setattr(d.settling, "find_stored", before)
        with pytest.raises(AlreadyCredited):
            await d.topup(payment, signature=proof(payment))
        assert await d.ledger.balance(first.token) == 98


async def test_a_payment_is_credited_once_whoever_asks(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        bought = await d.topup(payment)
        credit = TopupCredit(wire.read_payment(payment).id, bought.tx, "a" * 64, 100, None, None, 0)
        for given in (credit, credit._replace(payload=bytes(32))):
            with pytest.raises(NonceUsed):
                await d.settling.store.credit_topup(given)
        assert await d.minted() == 100


async def test_a_recovered_payment_that_is_sent_again_gets_no_offer_and_its_payer_another_token(tmp_path):
    payment = signed(TWO)
    read, token = wire.read_payment(payment), f"svc_live_{'d' * 64}"
    async with desk(tmp_path) as d:
        begun = begin_recovered(ChainTopup(read.payer, read.nonce, read.amount), NOW * 1000)
        credit = TopupCredit(begun.payload, bytes(32), token_hash(token).hex(), 100, None, None, NOW * 1000)
        await d.settling.store.credit_recovered([(begun, credit)])
        with pytest.raises(PayerProofRequired, match="was used for 100 credits") as refused:
            await d.topup(payment)
        assert wire.REQUIRED not in refused.value.headers
        with pytest.raises(IdempotencyConflict, match="used for a top-up"):
            await d.buy(payment)
        again = await d.topup(payment, signature=proof(payment))
        assert (await d.ledger.balance(again.token), await d.minted()) == (100, 100)
        assert d.script.settlements == 0
