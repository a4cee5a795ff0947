"""Turns a payment into a token, after checks of the claim, the chain, the amount and earlier credits.

    parse → find the purchase → look at the chain until it is settled → one transaction: credit, mint, token

Whatever goes wrong on the way, the request can be repeated: nothing is credited before the last step. If the response
was lost, a caller who has both memo and transaction gets the same token again, within 15 minutes and until it is used.
"""

import hmac
import logging
import re
import secrets
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from toolserver.clock import Clock
from toolserver.core.caller import token_hash
from toolserver.errors import (
    AlreadyCredited,
    BelowMinimum,
    ChainUnavailable,
    NoMatchingTransfer,
    NotFound,
    PayerProofRequired,
    PaymentPending,
)
from toolserver.money.purchases.ceilings import SalesCeilings
from toolserver.money.purchases.chain.ethereum import message_digest, message_signer, tx_hash_of
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool
from toolserver.money.purchases.credit_price import credits_for
from toolserver.money.purchases.credit_sales import Claim, CreditedPurchase
from toolserver.money.purchases.matching import (
    MatchedPayment,
    Proofs,
    commitment,
    match_deposit,
    match_with_proof,
    says_memo,
    transfers,
)
from toolserver.money.purchases.policy import ObservedTransaction, Policy, Progress, is_older
from toolserver.money.purchases.quotes import MEMO, challenge_of, invalid, memo_hash
from toolserver.money.purchases.records import (
    NotCreditable,
    Purchase,
    Reason,
    StoredCredit,
    TransferCredit,
    UnappliedPayment,
)
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token, sealing_key
from toolserver.money.purchases.units import CHAIN_ID, LEAST

log = logging.getLogger(__name__)

ASK_AGAIN_S, RETRY_S = 15 * 60, 3
WINDOW_S = 30 * 86_400
_SIGNATURE = re.compile(r"0x(?:[0-9a-fA-F]{2}){65,2048}")


@dataclass(frozen=True)
class Rules:
    """The rules by which claims are judged. `host` is part of the text that payers sign; times are in seconds.

    A claim waits `wait_s` for the chain, and at most `answer_s` longer for servers that do not answer.
    """

    policy: Policy = field(default_factory=Policy)
    shared: bool = False
    host: str = "localhost"
    grace_s: int = 600
    credit_late: bool = True
    wait_s: float = 10.0
    poll_s: float = 1.5
    answer_s: float = 4.0


class _Case(NamedTuple):
    """A well-formed claim, with the purchase that its memo names."""

    claim: Claim
    tx_hash: bytes
    purchase: Purchase


class _SightedPayment(NamedTuple):
    """A payment as the chain shows it now."""

    seen: ObservedTransaction
    paid: MatchedPayment
    progress: Progress


class Confirmations:
    """Judges claims and credits the purchases that were paid."""

    def __init__(
        self, store: SqlPurchaseStore, chain: RpcPool, clock: Clock, rules: Rules, ceilings: SalesCeilings | None = None
    ) -> None:
        self._store, self._chain, self._clock, self._rules = store, chain, clock, rules
        self._ceilings, self._one_at_a_time = ceilings, anyio.Lock()

    async def confirm(self, claim: Claim) -> CreditedPurchase:
        """Return the token of a purchase that was paid. Token and credits are durable when this returns.

        Raises:
            InvalidArguments: the claim is malformed.
            NotFound: no purchase has its memo.
            PaymentRefused: the payment does not count, is not final enough yet, or was credited before.
            ChainUnavailable: too few servers of the chain answer.
        """
        case = await self._read_claim(claim)
        if case.purchase.state == "credited":
            return await self._give_again(case)
        sighting = await self._wait_until_settled(case)
        async with self._one_at_a_time:  # two purchases that each fit under a ceiling may not fit together
            if self._ceilings is not None:
                await self._ceilings.hold_excess(case.tx_hash, case.purchase.id, sighting.paid.amount)
            return await self._credit_purchase(case, sighting)

    async def has_token(self, token: str) -> None:
        """Record that the buyer has the token, because a request carried it. It is not given out again."""
        hashed = token_hash(token).hex()
        if await self._store.is_token_waiting(hashed):
            await self._store.forget_token(hashed)

    async def _read_claim(self, claim: Claim) -> _Case:
        tx_hash = tx_hash_of(claim.tx_hash)
        if tx_hash is None:
            raise invalid("tx_hash", "must be 64 hexadecimal digits, with or without 0x")
        if not MEMO.fullmatch(claim.memo):
            raise invalid("nonce", "must be the memo of a quote: svc_buy_ and 32 hexadecimal digits")
        if claim.signature is not None and not _SIGNATURE.fullmatch(claim.signature):
            raise invalid("payer_signature", "must be 0x and at least 65 bytes in hexadecimal digits")
        purchase = await self._store.find_purchase(memo_hash(claim.memo))
        if purchase is None:
            raise NotFound("There is no purchase with this memo.")
        challenge = challenge_of(claim.verifier) if claim.verifier else ""
        if purchase.challenge is not None and not hmac.compare_digest(challenge, purchase.challenge):
            raise PayerProofRequired("The quote has a claim_challenge. Send the claim_verifier that matches it.")
        return _Case(claim, tx_hash, purchase)

    async def _wait_until_settled(self, case: _Case) -> _SightedPayment:
        """Return the payment once it may be credited; poll for `wait_s`. Raises PaymentRefused, ChainUnavailable."""
        rules = self._rules
        last: _SightedPayment | ChainDown | None = ChainDown("no answer in time")
        with anyio.move_on_after(rules.wait_s + rules.answer_s):
            for turn in range(1 + int(rules.wait_s / rules.poll_s)):
                if turn:
                    await self._clock.sleep(rules.poll_s)
                try:
                    last = await self._look(case)
                except ChainDown as down:
                    last = down
                if isinstance(last, _SightedPayment) and last.progress.enough:
                    return last
        if isinstance(last, ChainDown):
            log.warning("the chain cannot be read", extra={"reason": str(last)})
            raise unavailable()
        raise _pending(last.progress if last else Progress(0, rules.policy.blocks, False))

    async def _look(self, case: _Case) -> _SightedPayment | None:
        """Return the payment, or None if it is not on the chain yet. Raises ChainDown, or PaymentRefused for good."""
        policy = self._rules.policy
        seen = await self._chain.observe(case.tx_hash)
        if seen is None or not seen.is_canonical:  # a transaction on a fork is neither a payment nor a reason to refuse
            return None
        paid = await self._match_payment(case, seen)
        progress = policy.progress(seen, paid.amount)
        if not progress.enough or not policy.needs_agreement(paid.amount):
            return _SightedPayment(seen, paid, progress)
        agreed = await self._chain.observe(case.tx_hash, agreeing=2)
        if agreed is None or not agreed.is_canonical:
            return _SightedPayment(seen, paid, Progress(progress.confirmations, progress.confirmations + 1, False))
        paid = await self._match_payment(case, agreed)
        return _SightedPayment(agreed, paid, policy.progress(agreed, paid.amount))

    async def _match_payment(self, case: _Case, seen: ObservedTransaction) -> MatchedPayment:
        """Return the part of the transaction that counts for this purchase. Raises PaymentRefused."""
        purchase = case.purchase
        if self._rules.shared:
            paid = await self._match_proven(case, seen)
        else:
            paid = match_deposit(seen.receipt, purchase.address)
        if paid is None or paid.amount == 0:
            raise NoMatchingTransfer("The transaction moves no USDC to the address of this purchase.")
        if is_older(seen.block_time, purchase.created_at // 1000, self._clock.time()):
            raise NoMatchingTransfer("The transaction is older than the quote.")
        if paid.amount < LEAST:
            await self._record_unapplied(case, seen, paid.amount, "below_minimum")
            raise BelowMinimum("Less than 1 USDC arrived. Pay at least 1 USDC, in one transfer.")
        if self._is_too_late(seen, purchase):
            await self._record_unapplied(case, seen, paid.amount, "late")
            raise NoMatchingTransfer("The payment was made after the quote expired. Ask the operator about it.")
        return paid

    def _is_late(self, seen: ObservedTransaction, purchase: Purchase) -> bool:
        return seen.block_time > purchase.expires_at // 1000 + self._rules.grace_s

    def _is_too_late(self, seen: ObservedTransaction, purchase: Purchase) -> bool:
        ended = purchase.expires_at // 1000
        if self._rules.credit_late:
            return self._clock.time() > ended + WINDOW_S
        return self._is_late(seen, purchase)

    async def _match_proven(self, case: _Case, seen: ObservedTransaction) -> MatchedPayment | None:
        """Return the part that proves to be for this purchase, at a shared address. Raises PayerProofRequired."""
        address, receipt = case.purchase.address, seen.receipt
        ours = [t for t in transfers(receipt) if t.payee == address]
        if not ours:
            return None
        signers = await self._find_signers(case, frozenset(t.payer for t in ours))
        paid = match_with_proof(receipt, seen.transaction, address, Proofs(commitment(case.claim.memo), signers))
        if paid is None:
            text = text_to_sign(self._rules.host, "<nonce>", case.tx_hash)
            request = f"Send payer_signature: the signature (EIP-191) by the account that paid of the text “{text}”,"
            raise PayerProofRequired(f"{request} with the memo in place of <nonce>.")
        return paid

    async def _find_signers(self, case: _Case, payers: frozenset[bytes]) -> frozenset[bytes]:
        """Return those of the payers that signed for this purchase and transaction. Raises ChainDown."""
        if case.claim.signature is None:
            return frozenset()
        text = text_to_sign(self._rules.host, case.claim.memo, case.tx_hash)
        signature = bytes.fromhex(case.claim.signature[2:])
        signer = message_signer(text, signature)
        if signer is not None and signer in payers:
            return frozenset([signer])
        digest = message_digest(text)
        return frozenset([p for p in sorted(payers)[:4] if await self._chain.accepts(p, digest, signature)])

    async def _is_signed(self, case: _Case, paid: MatchedPayment) -> bool:
        """Return True if a payer is known to have made this claim; False also when the chain cannot say."""
        try:
            return bool(await self._find_signers(case, paid.payers))
        except ChainDown:
            return False

    async def _credit_purchase(self, case: _Case, sighting: _SightedPayment) -> CreditedPurchase:
        """Credit it in one transaction, or return what a concurrent call credited. Raises AlreadyCredited."""
        purchase, seen, policy = case.purchase, sighting.seen, self._rules.policy
        token, now = f"svc_live_{secrets.token_hex(32)}", int(self._clock.time() * 1000)
        public = says_memo(seen.transaction, case.claim.memo) and purchase.challenge is None
        asked_again = not public or await self._is_signed(case, sighting.paid)
        key = sealing_key(case.claim.memo, case.tx_hash)
        credit = TransferCredit(
            purchase.id,
            case.tx_hash,
            token_hash(token).hex(),
            seen,
            sighting.paid,
            credits_for(sighting.paid.amount),
            policy.finality(sighting.paid.amount),
            self._is_late(seen, purchase),
            public,
            encrypt_token(token, key) if asked_again else None,
            now + ASK_AGAIN_S * 1000 if asked_again else None,
            now,
        )
        try:
            credits = await self._store.credit_transfer(credit)
        except NotCreditable:
            return await self._give_again(case, sighting)
        facts = {"amount": sighting.paid.amount, "credits": credits, "tx": f"0x{case.tx_hash.hex()}"}
        log.info("purchase credited", extra=facts | {"late": credit.late, "memo_public": public})
        return CreditedPurchase(token, credits, credit.late)

    async def _give_again(self, case: _Case, sighting: _SightedPayment | None = None) -> CreditedPurchase:
        """Return the same token again, for the same memo and transaction. Raises AlreadyCredited."""
        before = await self._store.find_credit(case.purchase.id)
        if before is not None and before.tx_hash == case.tx_hash and (token := self._unseal_token(case, before)):
            return CreditedPurchase(token, before.credits, before.late)
        if before is None or before.tx_hash != case.tx_hash:
            await self._record_second(case, sighting, "transaction_used" if before is None else "second_transfer")
        raise AlreadyCredited("This purchase or transaction was already credited, and its token was given out then.")

    def _unseal_token(self, case: _Case, before: StoredCredit) -> str | None:
        """Return the token, or None once it has been used or its time to be given again has ended."""
        if before.sealed is None or before.used or self._clock.time() * 1000 > (before.sealed_until or 0):
            return None
        return decrypt_token(before.sealed, sealing_key(case.claim.memo, case.tx_hash))

    async def _record_second(self, case: _Case, sighting: _SightedPayment | None, reason: Reason) -> None:
        """Record money that arrived a second time for one purchase or transaction, if it did arrive."""
        if sighting is not None:
            await self._record_unapplied(case, sighting.seen, sighting.paid.amount, reason)
            return
        try:
            seen = await self._chain.observe(case.tx_hash)
        except ChainDown:
            return
        paid = match_deposit(seen.receipt, case.purchase.address) if seen and not self._rules.shared else None
        if seen and paid and paid.amount:
            await self._record_unapplied(case, seen, paid.amount, reason)

    async def _record_unapplied(self, case: _Case, seen: ObservedTransaction, amount: int, reason: Reason) -> None:
        tx_hash, now = seen.receipt.tx_hash, int(self._clock.time() * 1000)
        await self._store.record_unapplied(UnappliedPayment(tx_hash, case.purchase.id, amount, reason, now))
        log.warning("a payment bought nothing", extra={"reason": reason, "amount": amount, "tx": f"0x{tx_hash.hex()}"})


def unavailable(
    detail: str = "The chain cannot be read at the moment. A payment that you made is not lost.",
) -> ChainUnavailable:
    return ChainUnavailable(detail, headers={"Retry-After": "10"}, retry_after_seconds=10)


def _pending(progress: Progress) -> PaymentPending:
    return PaymentPending(
        "The transfer does not have enough confirmations yet. Confirm again with the same tx_hash and nonce.",
        headers={"Retry-After": str(RETRY_S)},
        confirmations=progress.confirmations,
        required=progress.required,
        retry_after_seconds=RETRY_S,
    )


def text_to_sign(host: str, memo: str, tx_hash: bytes) -> str:
    """Return the exact text that the payer signs to claim a payment."""
    return f"{host} confirm {memo} 0x{tx_hash.hex()} chain {CHAIN_ID}"
