"""Claims that are malformed or come from somebody else: memos, verifiers, signatures, one address for all."""

import anyio
import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.money.purchases.parts import (
    OTHER,
    PAYER,
    TX,
    TX2,
    Server,
    address_of,
    desk,
    observed,
    paid,
    receipt,
    transfer_log,
)
from tests.money.purchases.wallet import private_key
from tests.requirements import proves
from toolserver.errors import (
    AlreadyCredited,
    InvalidArguments,
    NoMatchingTransfer,
    NotFound,
    PayerProofRequired,
)
from toolserver.money.purchases.matching import TRANSFER_SELECTOR, Transaction
from toolserver.money.purchases.quotes import challenge_of, commitment
from toolserver.money.purchases.service import Rules, text_to_sign
from toolserver.money.purchases.units import USDC

HEX = f"{int.from_bytes(TX, 'big'):064x}"


@pytest.fixture
def server() -> Server:
    return Server()


# --- claims that are none


@pytest.mark.parametrize("tx", ["", "0x", "hello", HEX[:-1], f"{HEX}00", "0x" + "zz" * 32])
async def test_a_hash_of_the_wrong_form_is_an_argument_that_is_wrong(tmp_path, server, tx):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        with pytest.raises(InvalidArguments) as refused:
            await d.confirm(tx, quote.memo)
        assert refused.value.extra["errors"][0]["loc"] == "tx_hash"


@pytest.mark.parametrize("memo", ["", "svc_buy_", "svc_buy_" + "G" * 32, "svc_buy_" + "0" * 31, "svc_buy_" + "A" * 32])
async def test_a_memo_of_the_wrong_form_is_too(tmp_path, server, memo):
    async with desk(tmp_path, [server]) as d:
        with pytest.raises(InvalidArguments) as refused:
            await d.confirm(TX, memo)
        assert refused.value.extra["errors"][0]["loc"] == "nonce"
        assert len(memo) < 9 or memo not in str(refused.value)


async def test_a_memo_that_was_never_given_out_is_not_found_and_nobody_is_asked(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        said = []
        for digit in "ab":
            with pytest.raises(NotFound) as refused:
                await d.confirm(TX, "svc_buy_" + digit * 32)
            said.append((str(refused.value), refused.value.extra))
        assert said[0] == said[1]
        assert server.asked == 0


@proves("purchase.verifier")
async def test_a_quote_with_a_challenge_is_claimed_with_its_verifier_only(tmp_path, server):
    verifier = "v" * 43
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote(challenge=challenge_of(verifier))
        server.sees(paid(address_of(quote), 5))
        for wrong in (None, "", "w" * 43, "é" * 20):
            with pytest.raises(PayerProofRequired):
                await d.confirm(TX, quote.memo, verifier=wrong)
        assert (await d.confirm(TX, quote.memo, verifier=verifier)).credits == 250
        with pytest.raises(PayerProofRequired):
            await d.confirm(TX, quote.memo)


# --- a memo on the chain


def call_with(tail: bytes) -> Transaction:
    return Transaction(USDC, TRANSFER_SELECTOR + bytes(64) + tail)


async def test_a_memo_written_on_the_chain_is_credited_once_and_its_token_never_given_again(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, sent=call_with(quote.memo.encode())))
        await d.confirm(TX, quote.memo)
        assert await d.rows("SELECT memo_public, sealed FROM tx_credit") == [(1, None)]
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, quote.memo)


async def test_where_a_signature_cannot_be_checked_a_public_memo_is_taken_for_public(tmp_path):
    class Deaf(Server):
        async def accepts(self, account, digest, signature):
            self.down = True
            return await super().accepts(account, digest, signature)

    deaf = Deaf()
    async with desk(tmp_path, [deaf]) as d:
        quote = await d.quote()
        deaf.sees(paid(address_of(quote), 5, sent=call_with(quote.memo.encode())))
        assert (await d.confirm(TX, quote.memo, signature="0x" + "11" * 65)).credits == 250
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, quote.memo)


async def test_the_commitment_written_on_the_chain_reveals_nothing(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, sent=call_with(commitment(quote.memo))))
        bought = await d.confirm(TX, quote.memo)
        assert await d.confirm(TX, quote.memo) == bought


async def test_a_verifier_or_a_signature_makes_a_public_memo_harmless(tmp_path, server):
    verifier, payer = "v" * 43, Account.from_key(private_key(7))
    async with desk(tmp_path, [server]) as d:
        locked = await d.quote(challenge=challenge_of(verifier))
        server.sees(paid(address_of(locked), 5, sent=call_with(locked.memo.encode())))
        bought = await d.confirm(TX, locked.memo, verifier=verifier)
        assert await d.confirm(TX, locked.memo, verifier=verifier) == bought
        signed = await d.quote()
        log = transfer_log(address_of(signed), 5, payer=bytes.fromhex(payer.address[2:]))
        server.sees(observed(receipt(log, tx=TX2), sent=call_with(signed.memo.encode())))
        text = text_to_sign("localhost", signed.memo, TX2)
        signature = f"0x{payer.sign_message(encode_defunct(text=text)).signature.hex().removeprefix('0x')}"
        bought = await d.confirm(TX2, signed.memo, signature=signature)
        assert await d.confirm(TX2, signed.memo, signature=signature) == bought


async def test_a_strangers_signature_does_not_make_a_public_memo_harmless(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, sent=call_with(quote.memo.encode())))
        text = text_to_sign("localhost", quote.memo, TX)
        signed = Account.from_key(private_key(8)).sign_message(encode_defunct(text=text)).signature
        signature = f"0x{signed.hex().removeprefix('0x')}"
        assert (await d.confirm(TX, quote.memo, signature=signature)).credits == 250
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, quote.memo, signature=signature)


# --- one address for all


SHARED = bytes([0xD0]) * 20
SHARING = Rules(wait_s=0, shared=True, host="data.example")


@proves("quote.shared")
async def test_where_the_address_is_shared_a_payment_without_proof_is_nobodys(tmp_path, server):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote = await d.quote()
        server.sees(paid(SHARED, 5))
        with pytest.raises(PayerProofRequired) as refused:
            await d.confirm(TX, quote.memo)
        assert f"data.example confirm <nonce> 0x{TX.hex()} chain 8453" in str(refused.value)
        assert quote.memo not in str(refused.value)
        assert await d.minted() == 0


@proves("quote.shared")
async def test_the_payers_signature_is_proof_and_nobody_elses(tmp_path, server):
    payer, thief = Account.from_key(private_key(7)), Account.from_key(private_key(8))
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote, other = await d.quote(), await d.quote()
        server.sees(observed(receipt(transfer_log(SHARED, 5, payer=bytes.fromhex(payer.address[2:])))))

        def sign(account, memo):
            text = f"data.example confirm {memo} 0x{TX.hex()} chain 8453"
            return f"0x{account.sign_message(encode_defunct(text=text)).signature.hex().removeprefix('0x')}"

        for signature in (sign(thief, quote.memo), sign(payer, other.memo), "0x" + "00" * 65, "0x" + "ff" * 70):
            with pytest.raises(PayerProofRequired):
                await d.confirm(TX, quote.memo, signature=signature)
        assert (await d.confirm(TX, quote.memo, signature=sign(payer, quote.memo))).credits == 250
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, other.memo, signature=sign(payer, other.memo))
        assert await d.minted() == 250


async def test_a_contract_account_vouches_for_its_own_signatures(tmp_path, server):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote = await d.quote()
        server.sees(paid(SHARED, 5))
        with pytest.raises(PayerProofRequired):
            await d.confirm(TX, quote.memo, signature="0x" + "11" * 65)
        server.signed = {PAYER}
        assert (await d.confirm(TX, quote.memo, signature="0x" + "11" * 65)).credits == 250


async def test_a_transaction_that_pays_nothing_to_the_shared_address_is_no_match(tmp_path, server):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote = await d.quote()
        server.sees(paid(OTHER, 5))
        with pytest.raises(NoMatchingTransfer):
            await d.confirm(TX, quote.memo)


async def test_two_buyers_of_one_shared_transaction_cannot_both_be_credited(tmp_path, server):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        first, second = await d.quote(), await d.quote()
        server.sees(paid(SHARED, 5))
        server.signed = {PAYER}
        got = []

        async def claim(memo):
            try:
                got.append(await d.confirm(TX, memo, signature="0x" + "11" * 65))
            except AlreadyCredited:
                got.append(None)

        async with anyio.create_task_group() as tasks:
            for memo in (first.memo, second.memo) * 5:
                tasks.start_soon(claim, memo)
        assert len([each for each in got if each]) == 5
        assert len({each.token for each in got if each}) == 1
        assert await d.minted() == 250


@pytest.mark.parametrize("signature", ["", "0x", "11" * 65, "0x" + "11" * 64, "0x" + "zz" * 65, "0x" + "11" * 3000])
async def test_a_signature_of_the_wrong_form_is_an_argument_that_is_wrong(tmp_path, server, signature):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote = await d.quote()
        with pytest.raises(InvalidArguments):
            await d.confirm(TX, quote.memo, signature=signature)
