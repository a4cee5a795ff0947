"""A signed payment turned into credits: on the bearer token sent along, or on a new one.

What settles a payment is public on the chain afterwards, signature and all. So whoever shows the payment again is not
thereby its sender: a new token is given out once, and again only to whoever knows the Idempotency-Key of the first
request, or signs with the key that paid.
"""

import hashlib
import hmac
import logging
import secrets
from typing import NamedTuple, Protocol

from toolserver.access import Caller, token_hash, well_formed
from toolserver.errors import AlreadyCredited, InvalidArguments, PayerProofRequired, PaymentRequired
from toolserver.payments import proof
from toolserver.payments.sealing import sealed, unsealed
from toolserver.payments.units import ATOMIC, CHAIN_ID, credits_for
from toolserver.payments.x402 import books, wire
from toolserver.payments.x402.books import Credit, Kept, NonceUsed
from toolserver.payments.x402.offers import DESCRIPTION, TOPUP_PATH, Offer
from toolserver.payments.x402.settling import Settling
from toolserver.payments.x402.wire import Payment

log = logging.getLogger(__name__)

ASK_AGAIN_S = 15 * 60
_TOPUP, _NEW = "topup ", "new"  # what such a payment pays for, as it is stored
LEAST_KEY = 16  # characters of an Idempotency-Key that nobody guesses


class Balances(Protocol):
    """A ledger that says whether a token is good."""

    async def balance(self, who: str, /) -> int:
        """Raises PaymentRequired."""
        ...


class Toppedup(NamedTuple):
    """Credits that were paid for, and the token they are on."""

    token: str
    credits: int
    tx: bytes


class _Asked(NamedTuple):
    """A top-up that comes with a payment."""

    payment: Payment
    offer: Offer
    request: str
    token: str | None
    key: str | None
    signature: str | None


class Topups:
    """Sells credits for signed payments."""

    def __init__(self, settling: Settling, ledger: Balances) -> None:
        self._settling, self._ledger = settling, ledger

    def offer(self, amount: int) -> Offer:
        """What a top-up costs: what it is worth. Raises InvalidArguments for more than is sold at once."""
        terms = self._settling.terms
        if amount > terms.most:
            message = f"may be at most {terms.most // ATOMIC} here"
            errors = [{"loc": "amount_usd", "msg": message, "type": "less_than_equal"}]
            raise InvalidArguments(f"amount_usd: {message}", errors=errors)
        return Offer(terms.requirement(amount), terms.resource(TOPUP_PATH, DESCRIPTION))

    async def buy(self, amount: int, caller: Caller, *, signature: str | None = None) -> Toppedup:
        """Credits for the payment that came with the call.

        Raises:
            CallRejected: nothing was credited. Unless it is SettlementPending, nothing was taken either.
        """
        offer = self.offer(amount)
        if caller.token is not None:
            await self._known(caller.token)
        if caller.payment is None:
            told = f"Sign a payment of {amount / ATOMIC:.6f} USDC (x402) and send it as {wire.SIGNATURE}."
            raise PaymentRequired(
                "payment_required", told, headers={wire.REQUIRED: wire.header(offer.required(f"{told}"))}
            )
        payment = self._settling.read(caller.payment, offer)
        whose = token_hash(caller.token).hex() if caller.token else _NEW
        asked = _Asked(payment, offer, f"{_TOPUP}{whose}", caller.token, caller.idempotency_key, signature)
        found: Toppedup = await self._settling.alone(payment, lambda: self._buy(asked))
        return found

    async def _known(self, token: str) -> None:
        """Nothing is paid onto a token that is not good. Raises PaymentRequired."""
        if not well_formed(token):
            raise PaymentRequired("invalid_token", "The token is malformed or unknown.")
        await self._ledger.balance(token)

    async def _buy(self, asked: _Asked) -> Toppedup:
        payment = asked.payment
        kept = await self._settling.kept(payment)
        if kept is None:
            await self._settling.verify(payment, asked.offer)
        elif kept.token is not None:
            return await self._again(asked, kept)
        elif kept.request != asked.request:  # no offer goes with this: whoever accepts one pays twice
            raise AlreadyCredited("This payment was sent for another token, or for a call.")
        elif not self._theirs(asked, kept):
            raise self._proof_wanted(payment)
        tx = await self._settling.settle(payment, asked.offer, asked.request, _claim(asked.key))
        return await self._credited(asked, tx)

    async def _credited(self, asked: _Asked, tx: bytes) -> Toppedup:
        token = asked.token or f"svc_live_{secrets.token_hex(32)}"
        credits = credits_for(asked.payment.amount)
        credit = self._credit(asked, tx, token, credits)
        now = self._now()
        try:
            await self._settling.file.alone(lambda db: books.credit(db, credit, now))
        except PaymentRequired:  # the token was revoked since it was looked at
            log.error("a settled top-up could not be credited to its token", extra={"tx": f"0x{tx.hex()}"})
            raise
        log.info("credits bought by x402", extra={"credits": credits, "tx": f"0x{tx.hex()}"})
        return Toppedup(token, credits, tx)

    async def _again(self, asked: _Asked, kept: Kept) -> Toppedup:
        """Credited before: the same once more, to its sender. Raises AlreadyCredited, PayerProofRequired."""
        credits, tx = kept.credits or 0, kept.tx_hash or b""
        if asked.token is not None and token_hash(asked.token).hex() == kept.token:
            return Toppedup(asked.token, credits, tx)
        if kept.used or asked.request != kept.request:
            raise AlreadyCredited("This payment was turned into credits before; the token was given out then.")
        if asked.signature is not None:
            return await self._anew(asked, kept)
        token = self._unsealed(asked, kept)
        if token is None:
            raise self._proof_wanted(asked.payment)
        return Toppedup(token, credits, tx)

    async def _anew(self, asked: _Asked, kept: Kept) -> Toppedup:
        """A new token in the place of one that nobody got."""
        if not self._signed(asked):
            raise self._proof_wanted(asked.payment)
        token, credits, tx = f"svc_live_{secrets.token_hex(32)}", kept.credits or 0, kept.tx_hash or b""
        credit, now = self._credit(asked, tx, token, credits), self._now()
        try:
            await self._settling.file.alone(lambda db: books.replace(db, str(kept.token), credit, now))
        except NonceUsed:
            raise AlreadyCredited("The token of this payment has been used.") from None
        log.warning("a token was given anew to whoever paid for it", extra={"tx": f"0x{tx.hex()}"})
        return Toppedup(token, credits, tx)

    def _theirs(self, asked: _Asked, kept: Kept) -> bool:
        """Whether a payment under way was sent by whoever sends it now. A known token is of use to its holder only."""
        if asked.token is not None:
            return True
        return _same(kept.claim, asked.key) or self._signed(asked)

    def _unsealed(self, asked: _Asked, kept: Kept) -> str | None:
        """The new token, for the key it waits under, until its time is over."""
        if kept.sealed is None or asked.key is None or self._now() > (kept.sealed_until or 0):
            return None
        return unsealed(kept.sealed, _sealing_key(asked.key, asked.payment.id))

    def _credit(self, asked: _Asked, tx: bytes, token: str, credits: int) -> Credit:
        key = asked.key if asked.token is None and _claim(asked.key) else None
        box = sealed(token, _sealing_key(key, asked.payment.id)) if key else None
        until = self._now() + ASK_AGAIN_S * 1000 if key else None
        return Credit(asked.payment.id, tx, token_hash(token).hex(), credits, box, until)

    def _signed(self, asked: _Asked) -> bool:
        """Whether whoever asks has the key that paid."""
        try:
            signature = bytes.fromhex((asked.signature or "").removeprefix("0x"))
        except ValueError:
            return False
        return proof.signer(self._text(asked.payment), signature) == asked.payment.payer

    def _text(self, payment: Payment) -> str:
        return f"{self._settling.terms.host} top-up {payment.id.hex()} chain {CHAIN_ID}"

    def _proof_wanted(self, payment: Payment) -> PayerProofRequired:
        return PayerProofRequired(
            "This payment was sent before. To get its token, send the Idempotency-Key of that request, or as "
            f"payer_signature the signature (EIP-191) of the account that paid, of the text “{self._text(payment)}”."
        )

    def _now(self) -> int:
        return int(self._settling.clock.time() * 1000)


def owner_of(request: str) -> str | None:
    """The token (a hash) that a top-up is for; None when it is for a new one, or no top-up."""
    whose = request.removeprefix(_TOPUP)
    return None if whose in (request, _NEW) else whose


def _claim(key: str | None) -> bytes | None:
    """What is stored of the key by which a sender may ask again; short ones are no secrets."""
    return hashlib.sha256(key.encode()).digest() if key and len(key) >= LEAST_KEY else None


def _same(claim: bytes | None, key: str | None) -> bool:
    given = _claim(key)
    return claim is not None and given is not None and hmac.compare_digest(claim, given)


def _sealing_key(key: str, payment: bytes) -> bytes:
    """The key under which a token waits: HKDF-SHA256 of the Idempotency-Key, for one payment."""
    extracted = hmac.digest(b"toolserver sealed token", key.encode(), "sha256")
    return hmac.digest(extracted, payment + b"\1", "sha256")
