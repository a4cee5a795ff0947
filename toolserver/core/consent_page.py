"""Defines the values of the OAuth consent page, which one face decides and another draws."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal, NamedTuple

ConsentStep = Literal["choose", "pay", "confirming", "bought", "leave", "closed"]


class ConsentPayment(NamedTuple):
    """A purchase on the page. The QR code contains `uri`. `confirmations` and `required` are
    None until the chain has the transaction.
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

    The forms carry `secret` and go to `action`. `target` says where the client gets its
    answer; `identity` is the client's own address if it has one. `token` is shown once, after
    a purchase. `problem` is the error in the last form. `back` leads to the client when the
    page is closed, or when the person leaves it for a program. After `refresh_s` seconds the
    browser reloads `page`. If `watched`, payments are detected automatically, and `by_hash`
    is the address of the page with the form for a transaction's hash. With `challenge`, the
    browser has to do work of `work_bits` bits to go on without credits.
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
    challenge: str = ""
    work_bits: int = 0


DrawConsent = Callable[[ConsentView], bytes]
