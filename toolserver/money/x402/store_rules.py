"""Decides what every store of signed payments has to decide alike. Pure: a store loads facts and writes decisions."""

from toolserver.money.ledger.operations import Mint
from toolserver.money.ledger.protocol import new_ref
from toolserver.money.purchases.manual_review import CaseKind, ReviewCase
from toolserver.money.purchases.store_rules import TakeBack
from toolserver.money.purchases.units import NETWORK
from toolserver.money.x402.store import NonceUsed, StoredPayment, TopupCredit, describe_request

OWED_MS = 600_000  # how long after its settlement a payment may have neither credits nor an answer
PATIENCE_MS = 3_600_000  # how long a payment may be unsettled before a person looks at it
TOKEN_REPLACED = "replaced for the account that paid"


def judge_case(stored: StoredPayment, now: int) -> CaseKind | None:
    """Return why a person has to look at a payment at `now` (epoch milliseconds), or None if nobody has to.

    `unsettled`: for an hour it has not been known whether it was made. `uncredited`: a top-up was paid, but its sender
    never came back for the credits, or the token was revoked. `unanswered`: a call was paid and got no answer.
    """
    if stored.settled_at is None:
        return "unsettled" if now - stored.begun_at >= PATIENCE_MS else None
    if now - stored.settled_at < OWED_MS:
        return None
    if stored.request.startswith("topup "):
        return "uncredited" if stored.token is None else None
    return "unanswered" if stored.answered_at is None else None


def show_payment_case(stored: StoredPayment, payer: bytes, amount: int, now: int) -> ReviewCase | None:
    """Return a payment as a case for a person, or None if it is none. `amount` is in 0.000001 USDC."""
    kind = judge_case(stored, now)
    if kind is None:
        return None
    at = stored.begun_at if stored.settled_at is None else stored.settled_at
    return ReviewCase(kind, stored.tx_hash, payer, amount, describe_request(stored.request), None, at)


def mint_topup(credit: TopupCredit, payer: bytes, nonce: bytes, credited_to: str | None) -> Mint:
    """Return the operation that mints a top-up's credits, whose cause lets an authorisation mint once.

    Raises NonceUsed if it was credited to a token already.
    """
    if credited_to is not None:
        raise NonceUsed("credited before")
    return Mint(credit.token, credit.credits, f"x402:{NETWORK}:0x{payer.hex()}:0x{nonce.hex()}", new_ref())


def withdraw_unused(old: str, stored: StoredPayment | None, credits: int) -> TakeBack:
    """Return the operation that takes back the credits of a token that its buyer never used.

    Raises NonceUsed if it was used, or if it is not the payment's token.
    """
    if stored is None or (stored.token, stored.credits) != (old, credits) or stored.used:
        raise NonceUsed("used before")
    return TakeBack(old, credits, TOKEN_REPLACED)


def mint_replacement(old: str, credit: TopupCredit, taken: int) -> Mint:
    """Return the operation that mints the same credits on the new token.

    Raises NonceUsed if some could not be taken back.
    """
    if taken != credit.credits:
        raise NonceUsed("used before")
    return Mint(credit.token, credit.credits, f"x402:replaces:{old}", new_ref())
