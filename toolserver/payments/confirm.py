"""Turning a payment into a token: who says so, is it on the chain, is it enough, has it been credited before.

    parse → find the purchase → look at the chain until it is settled → one transaction: credit, mint, token

Whatever can go wrong on the way can be asked again: nothing is written before the last step, and the token of a
response that was lost is given once more to whoever has both memo and transaction, until it is used.
"""

import hmac
import logging
import re
import secrets
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from toolserver.access import token_hash
from toolserver.clock import Clock
from toolserver.errors import (
    AlreadyCredited,
    BelowMinimum,
    ChainUnavailable,
    NoMatchingTransfer,
    NotFound,
    PayerProofRequired,
    PaymentPending,
)
from toolserver.payments import books, proof
from toolserver.payments.books import Credit, Credited, Purchase, Reason, Taken
from toolserver.payments.matching import (
    Paid,
    Proofs,
    commitment,
    paid_to,
    paid_with_proof,
    says_memo,
    transfers,
)
from toolserver.payments.memos import MEMO, challenge_of, memo_hash, sealing_key, tx_hash_of
from toolserver.payments.offers import Bought, Claim
from toolserver.payments.policy import Policy, Progress, Sighting
from toolserver.payments.quotes import invalid
from toolserver.payments.sealing import sealed, unsealed
from toolserver.payments.servers import ChainDown, Servers
from toolserver.payments.units import LEAST, credits_for
from toolserver.storage.durable import Durable

log = logging.getLogger(__name__)

ASK_AGAIN_S, RETRY_S = 15 * 60, 3
SKEW_S = 120  # how far the clocks of the chain and of this machine may differ
WINDOW_S = 30 * 86_400
_SIGNATURE = re.compile(r"0x(?:[0-9a-fA-F]{2}){65,2048}")


@dataclass(frozen=True)
class Rules:
    """How claims are judged. `host` stands in the text that payers sign; times are in seconds.

    A claim waits `wait_s` for the chain, and by the clock on the wall `answer_s` more for servers that do not answer.
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
    """A claim that is well formed and concerns a purchase of ours."""

    claim: Claim
    tx_hash: bytes
    purchase: Purchase


class _Found(NamedTuple):
    """A payment as it is now."""

    seen: Sighting
    paid: Paid
    progress: Progress


class Confirmations:
    """Answers claims."""

    def __init__(self, file: Durable, chain: Servers, clock: Clock, rules: Rules) -> None:
        self._file, self._chain, self._clock, self._rules = file, chain, clock, rules

    async def confirm(self, claim: Claim) -> Bought:
        """The token of a purchase that was paid.

        Raises:
            InvalidArguments, NotFound, PaymentRefused, ChainUnavailable.
        """
        case = await self._case(claim)
        if case.purchase.state == "credited":
            return await self._again(case)
        found = await self._settled(case)
        return await self._credited(case, found)

    async def has_token(self, token: str) -> None:
        """Whoever shows a token has it: it is not given out again."""
        hashed = token_hash(token).hex()
        if await self._file.read(lambda db: books.is_waiting(db, hashed)):
            await self._file.alone(lambda db: books.forget_token(db, hashed))

    async def _case(self, claim: Claim) -> _Case:
        tx_hash = tx_hash_of(claim.tx_hash)
        if tx_hash is None:
            raise invalid("tx_hash", "must be 64 hexadecimal digits, with or without 0x")
        if not MEMO.fullmatch(claim.memo):
            raise invalid("nonce", "must be the memo of a quote: svc_buy_ and 32 hexadecimal digits")
        if claim.signature is not None and not _SIGNATURE.fullmatch(claim.signature):
            raise invalid("payer_signature", "must be 0x and at least 65 bytes in hexadecimal digits")
        hashed = memo_hash(claim.memo)
        purchase = await self._file.read(lambda db: books.find(db, hashed))
        if purchase is None:
            raise NotFound("There is no purchase with this memo.")
        given = challenge_of(claim.verifier) if claim.verifier else ""
        if purchase.challenge is not None and not hmac.compare_digest(given, purchase.challenge):
            raise PayerProofRequired("The quote was asked for with claim_challenge: send the claim_verifier behind it.")
        return _Case(claim, tx_hash, purchase)

    async def _settled(self, case: _Case) -> _Found:
        """The payment, once it may be credited. Looks again and again, for some seconds. Raises PaymentRefused."""
        rules = self._rules
        last: _Found | ChainDown | None = ChainDown("no answer in time")
        with anyio.move_on_after(rules.wait_s + rules.answer_s):
            for turn in range(1 + int(rules.wait_s / rules.poll_s)):
                if turn:
                    await self._clock.sleep(rules.poll_s)
                try:
                    last = await self._look(case)
                except ChainDown as down:
                    last = down
                if isinstance(last, _Found) and last.progress.enough:
                    return last
        if isinstance(last, ChainDown):
            log.warning("the chain cannot be read", extra={"reason": str(last)})
            raise unavailable()
        raise _pending(last.progress if last else Progress(0, rules.policy.blocks, False))

    async def _look(self, case: _Case) -> _Found | None:
        """The payment as it is now; None when it is not seen. Raises PaymentRefused for what waiting will not mend."""
        policy = self._rules.policy
        seen = await self._chain.sight(case.tx_hash)
        if seen is None or not seen.settled:  # what a fork says is neither a payment nor a refusal
            return None
        paid = await self._paid(case, seen)
        progress = policy.progress(seen, paid.amount)
        if not progress.enough or not policy.needs_agreement(paid.amount):
            return _Found(seen, paid, progress)
        agreed = await self._chain.sight(case.tx_hash, voices=2)
        if agreed is None or not agreed.settled:
            return _Found(seen, paid, Progress(progress.confirmations, progress.confirmations + 1, False))
        paid = await self._paid(case, agreed)
        return _Found(agreed, paid, policy.progress(agreed, paid.amount))

    async def _paid(self, case: _Case, seen: Sighting) -> Paid:
        """What counts of the transaction for this purchase. Raises PaymentRefused."""
        purchase = case.purchase
        if self._rules.shared:
            paid = await self._proven(case, seen)
        else:
            paid = paid_to(seen.receipt, purchase.address)
        if paid is None or paid.amount == 0:
            raise NoMatchingTransfer("The transaction moves no USDC to the address of this purchase.")
        if seen.block_time < purchase.created_at // 1000 - SKEW_S:
            raise NoMatchingTransfer("The transaction is older than the quote.")
        if paid.amount < LEAST:
            await self._unapplied(case, seen, paid.amount, "below_minimum")
            raise BelowMinimum("Less than 1 USDC arrived. Pay at least 1 USDC, in one transfer.")
        if self._too_late(seen, purchase):
            await self._unapplied(case, seen, paid.amount, "late")
            raise NoMatchingTransfer("The payment came after the end of the quote. Ask the operator about it.")
        return paid

    def _late(self, seen: Sighting, purchase: Purchase) -> bool:
        return seen.block_time > purchase.expires_at // 1000 + self._rules.grace_s

    def _too_late(self, seen: Sighting, purchase: Purchase) -> bool:
        ended = purchase.expires_at // 1000
        if self._rules.credit_late:
            return self._clock.time() > ended + WINDOW_S
        return self._late(seen, purchase)

    async def _proven(self, case: _Case, seen: Sighting) -> Paid | None:
        """Where the address is shared: what is shown to be for this purchase. Raises PayerProofRequired."""
        address, receipt = case.purchase.address, seen.receipt
        ours = [t for t in transfers(receipt) if t.payee == address]
        if not ours:
            return None
        signers = await self._signers(case, frozenset(t.payer for t in ours))
        paid = paid_with_proof(receipt, seen.transaction, address, Proofs(commitment(case.claim.memo), signers))
        if paid is None:
            text = proof.text_to_sign(self._rules.host, "<nonce>", case.tx_hash)
            asked = f"Send payer_signature: the signature (EIP-191) of the account that paid, of the text “{text}”,"
            raise PayerProofRequired(f"{asked} with the memo in place of <nonce>.")
        return paid

    async def _signers(self, case: _Case, payers: frozenset[bytes]) -> frozenset[bytes]:
        """Which of the payers signed for this purchase and transaction."""
        if case.claim.signature is None:
            return frozenset()
        text = proof.text_to_sign(self._rules.host, case.claim.memo, case.tx_hash)
        signature = bytes.fromhex(case.claim.signature[2:])
        signer = proof.signer(text, signature)
        if signer is not None and signer in payers:
            return frozenset([signer])
        digest = proof.digest(text)
        return frozenset([p for p in sorted(payers)[:4] if await self._chain.accepts(p, digest, signature)])

    async def _signed(self, case: _Case, paid: Paid) -> bool:
        """Whether the payer is known to have made this claim."""
        try:
            return bool(await self._signers(case, paid.payers))
        except ChainDown:
            return False

    async def _credited(self, case: _Case, found: _Found) -> Bought:
        """Credit it, in one transaction; or say how it was credited by a twin of this call."""
        purchase, seen, policy = case.purchase, found.seen, self._rules.policy
        token, now = f"svc_live_{secrets.token_hex(32)}", int(self._clock.time() * 1000)
        public = says_memo(seen.transaction, case.claim.memo) and purchase.challenge is None
        asked_again = not public or await self._signed(case, found.paid)
        key = sealing_key(case.claim.memo, case.tx_hash)
        credit = Credit(
            purchase.id,
            case.tx_hash,
            token_hash(token).hex(),
            seen,
            found.paid,
            credits_for(found.paid.amount),
            policy.finality(found.paid.amount),
            self._late(seen, purchase),
            public,
            sealed(token, key) if asked_again else None,
            now + ASK_AGAIN_S * 1000 if asked_again else None,
        )
        try:
            credits = await self._file.alone(lambda db: books.credit(db, credit, now))
        except Taken:
            return await self._again(case, found)
        facts = {"amount": found.paid.amount, "credits": credits, "tx": f"0x{case.tx_hash.hex()}"}
        log.info("purchase credited", extra=facts | {"late": credit.late, "memo_public": public})
        return Bought(token, credits, credit.late)

    async def _again(self, case: _Case, found: _Found | None = None) -> Bought:
        """The same token once more, for the same memo and transaction. Raises AlreadyCredited."""
        before = await self._file.read(lambda db: books.credited(db, case.purchase.id))
        if before is not None and before.tx_hash == case.tx_hash and (token := self._token(case, before)):
            return Bought(token, before.credits, bool(before.late))
        if before is None or before.tx_hash != case.tx_hash:
            await self._second(case, found, "transaction_used" if before is None else "second_transfer")
        raise AlreadyCredited("This purchase or this transaction was credited before; its token was given out then.")

    def _token(self, case: _Case, before: Credited) -> str | None:
        """The token, unless its time is over or it was used."""
        if before.sealed is None or before.used or self._clock.time() * 1000 > (before.sealed_until or 0):
            return None
        return unsealed(before.sealed, sealing_key(case.claim.memo, case.tx_hash))

    async def _second(self, case: _Case, found: _Found | None, reason: Reason) -> None:
        """Keep a record of money that came twice, if it did come."""
        if found is not None:
            await self._unapplied(case, found.seen, found.paid.amount, reason)
            return
        try:
            seen = await self._chain.sight(case.tx_hash)
        except ChainDown:
            return
        paid = paid_to(seen.receipt, case.purchase.address) if seen and not self._rules.shared else None
        if seen and paid and paid.amount:
            await self._unapplied(case, seen, paid.amount, reason)

    async def _unapplied(self, case: _Case, seen: Sighting, amount: int, reason: Reason) -> None:
        tx_hash, purchase, now = seen.receipt.tx_hash, case.purchase.id, int(self._clock.time() * 1000)
        await self._file.alone(lambda db: books.unapplied(db, tx_hash, purchase, amount, reason, now))
        log.warning("a payment bought nothing", extra={"reason": reason, "amount": amount, "tx": f"0x{tx_hash.hex()}"})


def unavailable(
    detail: str = "The chain cannot be read at the moment. A payment that was made is not lost.",
) -> ChainUnavailable:
    return ChainUnavailable(detail, headers={"Retry-After": "10"}, retry_after_seconds=10)


def _pending(progress: Progress) -> PaymentPending:
    return PaymentPending(
        "The transfer is not confirmed often enough yet. Confirm again with the same tx_hash and nonce.",
        headers={"Retry-After": str(RETRY_S)},
        confirmations=progress.confirmations,
        required=progress.required,
        retry_after_seconds=RETRY_S,
    )
