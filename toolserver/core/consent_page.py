"""The page on which a person lets an OAuth client spend credits, as values: one face decides them, another draws it."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal, NamedTuple

ConsentStep = Literal["choose", "pay", "confirming", "bought", "closed"]


class ConsentPayment(NamedTuple):
    """A purchase on the page. `uri` is what the QR code holds; `confirmations` and `required` are None before the chain
    has the transaction.
    """

    wallet: str
    amount_usd: str
    credits: int
    uri: str
    expires_at: datetime
    review: str | None = None
    tx_hash: str = ""
    confirmations: int | None = None
    required: int | None = None


class ConsentView(NamedTuple):
    """One state of the page.

    `secret` is what its forms carry, `action` where they go. `target` is where the client will be told, in words;
    `identity` names the client by its own address if it has one. `token` is shown after a purchase, this once.
    `problem` is what was wrong with the last form. `back` leads to the client when the page is closed. After
    `refresh_s` seconds the browser looks at `page` anew. `watched`: a payment is seen by itself; `by_hash` is then the
    address of the same page with the form for a transaction's hash.
    """

    step: ConsentStep
    action: str = ""
    secret: str = ""
    client: str = ""
    identity: str | None = None
    target: str = ""
    local: bool = False
    credits: int = 0
    days: int = 0
    sells: bool = False
    payment: ConsentPayment | None = None
    token: str | None = None
    problem: str | None = None
    title: str = ""
    back: str | None = None
    refresh_s: int | None = None
    page: str = ""
    watched: bool = False
    by_hash: str = ""


DrawConsent = Callable[[ConsentView], bytes]
