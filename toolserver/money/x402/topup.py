"""Turns a signed payment into credits, on the bearer token of the request or on a new one.

After the settlement the whole authorisation, with its signature, is public on the chain. So a
caller who sends the payment again need not be its sender: a new token is given out once, and
again only to a caller who knows the Idempotency-Key of the first request or signs with the
key that paid.
"""

import logging
import secrets
from typing import NamedTuple, Protocol

from toolserver.core.caller import Caller, token_hash, well_formed
from toolserver.errors import (
    AlreadyCredited,
    InvalidArguments,
    InvalidToken,
    PayerProofRequired,
    PaymentRequired,
    PaymentUsed,
    UnpaidCall,
)
from toolserver.money.purchases.chain.ethereum import message_signer
from toolserver.money.purchases.credit_price import ATOMIC, credits_for
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token, sealing_key
from toolserver.money.purchases.units import CHAIN_ID
from toolserver.money.x402 import wire
from toolserver.money.x402.offers import Offer, offer_topup
from toolserver.money.x402.records import (
    NEW,
    SECRET_LENGTH,
    TOPUP,
    NonceUsed,
    StoredPayment,
    TopupCredit,
    describe_request,
    hash_key,
    is_same_key,
)
from toolserver.money.x402.settlement import SettlementService
from toolserver.money.x402.wire import Payment
from toolserver.registry.registry import Operation

log = logging.getLogger(__name__)

ASK_AGAIN_S = 86_400  # how many seconds a token is given again for the Idempotency-Key of the first request


class Balances(Protocol):
    """A ledger that checks tokens."""

    async def balance(self, who: str, /) -> int:
        """Return the credits that a token can spend. Raises PaymentRequired if it is not valid."""
        ...

    async def find_payer(self, token: str, /) -> str | None:
        """Return the SHA-256 (hex) of the token whose credits a token spends, or None if it is unknown.

        Raises PaymentRequired: billing_unavailable.
        """
        ...


class ToppedUp(NamedTuple):
    """Credits that were paid for, the token that has them, and the transaction that paid."""

    token: str
    credits: int
    tx: bytes


class _TopupRequest(NamedTuple):
    """A request for a top-up, with its payment."""

    payment: Payment
    offer: Offer
    request: str
    token: str | None
    key: str | None
    signature: str | None


class Topups:
    """Sells credits for signed payments."""

    def __init__(self, settling: SettlementService, ledger: Balances, operation: Operation | None = None) -> None:
        """`operation` is the tool that requests top-ups, if it is listed: offers describe it."""
        self._settling, self._ledger, self._operation = settling, ledger, operation

    def offer(self, amount: int) -> Offer:
        """Return the offer for a top-up of `amount` (0.000001 USDC). Raises InvalidArguments if it is too large."""
        terms = self._settling.terms
        if amount > (most := terms.find_most()):
            message = f"may be at most {most // ATOMIC} here"
            errors = [{"loc": "amount_usd", "msg": message, "type": "less_than_equal"}]
            raise InvalidArguments(f"amount_usd: {message}", errors=errors)
        return self._offer_of(amount)

    def _offer_of(self, amount: int) -> Offer:
        return offer_topup(self._settling.terms, amount, self._operation)

    async def buy(self, amount: int, caller: Caller, *, signature: str | None = None) -> ToppedUp:
        """Turn the payment of the request into credits, which are durable when this returns.

        Raises:
            CallRejected: this request credited nothing. Unless it is SettlementPending or PaymentUsed, it made no
                payment either.
        """
        payment = self._settling.read(caller.payment) if caller.payment is not None else None
        stored = await self._settling.find_stored(payment) if payment else None
        if stored is None and caller.token is not None:
            await self._check_token(caller.token)
        offer = self._offer_of(payment.amount) if stored and payment else self.offer(amount)
        if payment is None:
            instruction = f"Sign a payment of {amount / ATOMIC:.6f} USDC (x402) and send it as {wire.SIGNATURE}."
            raise UnpaidCall(instruction, headers={wire.REQUIRED: wire.header(offer.required(f"{instruction}"))})
        if stored is None:
            await self._settling.check_fit(payment, offer)
        whose = token_hash(caller.token).hex() if caller.token else NEW
        request = _TopupRequest(payment, offer, f"{TOPUP}{whose}", caller.token, caller.idempotency_key, signature)
        topped_up: ToppedUp = await self._settling.alone(payment, lambda: self._buy(request))
        return topped_up

    async def _check_token(self, token: str) -> None:
        """Raise PaymentRequired unless the token is valid and no allowance."""
        if not well_formed(token):
            raise InvalidToken("The token is malformed or unknown.")
        if await self._ledger.find_payer(token) not in (None, token_hash(token).hex()):
            raise InvalidToken("You cannot add credits to an allowance. Top up the token whose credits it spends.")
        await self._ledger.balance(token)

    async def _buy(self, request: _TopupRequest) -> ToppedUp:
        payment = request.payment
        stored = await self._settling.find_stored(payment)
        if stored is None:
            await self._settling.verify(payment, request.offer)
            stored = await self._settling.find_stored(payment)  # another instance may have begun it by now
        if stored is None:
            pass
        elif stored.token is not None:
            return await self._again(request, stored)
        elif stored.request != request.request:  # no offer goes with this: a client that accepts one pays twice
            raise AlreadyCredited(f"This payment was used for {describe_request(stored.request)}, not for this one.")
        elif not self._is_sender(request, stored):
            raise self._proof_wanted(payment, "was sent before")
        tx = await self._settling.settle(
            payment, request.offer, request.request, hash_key(request.key, least=SECRET_LENGTH)
        )
        await self._settling.require_finality(payment, tx)
        return await self._credit_payment(request, tx)

    async def _credit_payment(self, request: _TopupRequest, tx: bytes) -> ToppedUp:
        token = request.token or f"svc_live_{secrets.token_hex(32)}"
        credits = credits_for(request.payment.amount)
        credit = self._make_credit(request, tx, token, credits)
        try:
            await self._settling.store.credit_topup(credit)
        except NonceUsed:  # another instance has credited it
            stored = await self._settling.find_stored(request.payment)
            if stored is None or stored.token is None:
                raise
            return await self._again(request, stored)
        except PaymentRequired:  # the token was revoked after it was checked
            log.error("a settled top-up could not be credited to its token", extra={"tx": f"0x{tx.hex()}"})
            detail = "This payment was made, but its token was revoked since. It is listed for the operator to decide."
            raise PaymentUsed(detail) from None
        log.info("credits bought by x402", extra={"credits": credits, "tx": f"0x{tx.hex()}"})
        return ToppedUp(token, credits, tx)

    async def _again(self, request: _TopupRequest, stored: StoredPayment) -> ToppedUp:
        """Return the result of a payment that was credited before again, to its sender only.

        Raises AlreadyCredited, PayerProofRequired.
        """
        credits, tx = stored.credits or 0, stored.tx_hash or b""
        if self._settling.finality is not None and await self._settling.finality.is_undone(stored.payload):
            raise AlreadyCredited("This payment was made, but the chain undid it later, so its credits are gone.")
        if request.token is not None and token_hash(request.token).hex() == stored.token:
            return ToppedUp(request.token, credits, tx)
        used_for = f"was used for {credits} credits"
        if request.request != stored.request:
            raise AlreadyCredited(f"This payment {used_for} on another token.")
        token = self._unseal_token(request, stored)
        if token is not None:
            return ToppedUp(token, credits, tx)
        if stored.used:
            raise AlreadyCredited(f"This payment {used_for}. Their token was given out then and has been used.")
        if request.signature is not None and self._is_signed(request):
            return await self._replace_token(request, stored)
        raise self._proof_wanted(request.payment, used_for)

    async def _replace_token(self, request: _TopupRequest, stored: StoredPayment) -> ToppedUp:
        """Return a new token in place of one that its buyer never got. Raises AlreadyCredited if it has been used."""
        token, credits, tx = f"svc_live_{secrets.token_hex(32)}", stored.credits or 0, stored.tx_hash or b""
        credit = self._make_credit(request, tx, token, credits)._replace(payload=stored.payload)
        try:
            await self._settling.store.replace_token(str(stored.token), credit)
        except NonceUsed:
            raise AlreadyCredited(f"This payment was used for {credits} credits, which are already in use.") from None
        log.warning("a new token replaced one that its payer never got", extra={"tx": f"0x{tx.hex()}"})
        return ToppedUp(token, credits, tx)

    def _is_sender(self, request: _TopupRequest, stored: StoredPayment) -> bool:
        """Return True if a payment that is not credited yet comes from its first sender, or
        tops up a known token: only the holder of that token benefits from it.
        """
        if request.token is not None:
            return True
        return is_same_key(stored.claim, request.key, least=SECRET_LENGTH) or self._is_signed(request)

    def _unseal_token(self, request: _TopupRequest, stored: StoredPayment) -> str | None:
        """Return the new token, or None if the Idempotency-Key is another one or `sealed_until` has passed."""
        if stored.sealed is None or request.key is None or self._now() > (stored.sealed_until or 0):
            return None
        return decrypt_token(stored.sealed, sealing_key(request.key, request.payment.id))

    def _make_credit(self, request: _TopupRequest, tx: bytes, token: str, credits: int) -> TopupCredit:
        key = request.key if request.token is None and hash_key(request.key, least=SECRET_LENGTH) else None
        box = encrypt_token(token, sealing_key(key, request.payment.id)) if key else None
        now = self._now()
        until = now + ASK_AGAIN_S * 1000 if key else None
        return TopupCredit(request.payment.id, tx, token_hash(token).hex(), credits, box, until, now)

    def _is_signed(self, request: _TopupRequest) -> bool:
        """Return True if the caller signed with the key that paid."""
        try:
            signature = bytes.fromhex((request.signature or "").removeprefix("0x"))
        except ValueError:
            return False
        return message_signer(self._text(request.payment), signature) == request.payment.payer

    def _text(self, payment: Payment) -> str:
        return f"{self._settling.terms.host} top-up {payment.id.hex()} chain {CHAIN_ID}"

    def _proof_wanted(self, payment: Payment, fact: str) -> PayerProofRequired:
        return PayerProofRequired(
            f"This payment {fact}. To get its token, send the Idempotency-Key of that request, or as "
            f"payer_signature the signature (EIP-191) by the account that paid of the text “{self._text(payment)}”."
        )

    def _now(self) -> int:
        return int(self._settling.clock.time() * 1000)
