"""Defines what generated documents share: facts that are not in the registry, and the form of a document."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal
from urllib.parse import urlsplit

from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.upstream.rights import EVERYTHING, Rights

SERVICE = "toolserver"
DISTRIBUTION = "agent-toolserver"  # on the package index, where the shorter name is taken
READYZ = "/readyz"
LIVEZ = "/livez"
LEDGER_HEALTH = "/healthz/ledger"
HEALTH = frozenset({READYZ, LIVEZ, LEDGER_HEALTH})
SIGN_IN = "/api/mcp/auth"  # the MCP endpoint for hosts that sign in by OAuth
LIVE = "/live.json"
FRONT = "/front.html"
STATUS = "/status"
STATUS_JSON = "/status.json"
STATUS_FEED = "/status.atom"
SOURCES_PAGE = "/sources"
JSON = "application/json"
HTML = "text/html; charset=utf-8"
MARKDOWN = "text/markdown; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
ATOM = "application/atom+xml; charset=utf-8"
LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'


FREE_LICENCE = (
    "Free answers may be used for any purpose, subject to the terms of each source they name in"
    " `_meta.sources[].licence`; give the credit that `_meta.attribution` asks for."
)
PREMIUM_LICENCE = (
    "Premium answers are licensed for inference and reasoning only: no training, no fine-tuning, no distillation, no"
    " redistribution. Purchases are final; there is no subscription, and credits do not expire."
)


TIER_HEADINGS = {
    Tier.FREE: "Free tools",
    Tier.PREMIUM: "Premium tools",
    Tier.PAYMENT: "Payment tools",
    Tier.ACCOUNT: "Account tools",
}


@dataclass(frozen=True, slots=True)
class Document:
    """A finished document with the same bytes for every reader."""

    body: bytes
    content_type: str


WriteDocument = Callable[[], Document]


class LazyDocuments(Mapping[str, Document]):
    """Documents by path. Each is written when it is first read, so that nobody waits for those of others.

    Threads that read the same document at the same time may each write it; the bytes are the same.
    """

    def __init__(self, writers: Mapping[str, WriteDocument]) -> None:
        self._writers, self._written = writers, dict[str, Document]()

    def __getitem__(self, path: str) -> Document:
        if path not in self._written:
            self._written[path] = self._writers[path]()
        return self._written[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._writers)

    def __len__(self) -> int:
        return len(self._writers)

    def __contains__(self, path: object) -> bool:
        return path in self._writers  # the inherited test would write the document

    def __or__(self, others: "LazyDocuments") -> "LazyDocuments":
        """Return the documents of both; of a path that both have, that of `others`."""
        return LazyDocuments({path: partial(both.__getitem__, path) for both in (self, others) for path in both})


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """The figures of CONTRACT section 4, as configured on this server."""

    free_per_day: int = 100_000
    free_spacing_s: int = 30
    payment_per_minute: int = 60
    premium_per_minute: int = 600
    page_tries_per_minute: int = 12
    page_tries_per_day: int = 200


@dataclass(frozen=True, slots=True)
class PurchaseTerms:
    """The terms of purchases by transfer on this server. `shared_wallet` means one address, with proof of the payer."""

    quote_minutes: int = 30
    grace_minutes: int = 10
    credits_late: bool = True
    shared_wallet: bool = False
    confirmations: int = 3
    safe_from_usd: int = 100
    finalized_from_usd: int = 10_000


@dataclass(frozen=True, slots=True)
class Sales:
    """How credits can be bought on this server: by a transfer, by x402, or both.

    `terms` is None if a sister service sells, whose terms are not known here. `x402_most_usd`
    is the largest top-up. `demo_wallet` says that the chain is simulated and that a demo
    wallet can pay on it.
    """

    transfer: bool = True
    terms: PurchaseTerms | None = PurchaseTerms()
    x402_most_usd: int | None = None
    demo_wallet: bool = False

    @property
    def sees_payments(self) -> bool:
        """True if a payment can be found by its address: each purchase has its own, and this server sells."""
        return self.transfer and self.terms is not None and not self.terms.shared_wallet


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What documents say about this server. `base_url` is its public URL, `source` its host name in answers.

    `sales` is None if the server sells no credits.
    """

    base_url: str
    source: str
    contact: str | None = None
    simulated: bool = False
    ledger: str = "embedded"
    limits: LimitFacts = field(default_factory=LimitFacts)
    sales: Sales | None = None
    oauth: bool = False
    """True if hosts can sign in at /api/mcp/auth."""
    rights: Rights = EVERYTHING
    """What the operator may use of each source: the licence policy, contracts, own servers."""

    def url(self, path: str) -> str:
        """Return the public, absolute URL of a path."""
        return self.base_url.rstrip("/") + path

    def href(self, path: str) -> str:
        """Return the URL of a path for links within pages, without scheme and host."""
        return urlsplit(self.base_url).path.rstrip("/") + path


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text to paste into a host (an MCP client) so that it uses this server. `link` installs it with one click."""

    host: str
    transport: Literal["http", "stdio"]
    where: str
    text: str
    link: str | None = None


TOOL_FORMATS = ("both", "raw", "openai", "anthropic", "openai-responses", "gemini", "bedrock", "routes")
TOOL_TIERS = (Tier.FREE.value, Tier.PREMIUM.value)  # the values of `tier` of /api/llm-tools
PAYMENTS = "/docs/payments"
API_CATALOG = "/.well-known/api-catalog"
SERVER_CARD, AI_CATALOG = "/api/mcp/server-card", "/.well-known/ai-catalog.json"
RECEIPT_KEYS = "/.well-known/service-receipt-keys.json"
RECEIPT_KEY = "/.well-known/service-receipt-key.json"
PAYMENTS_MARKDOWN = f"{PAYMENTS}.md"
BUY, ACCOUNT, RECEIPTS, NO_CHARGE = "/buy", "/account", "/receipts", "/no-charge"
QR, WATCH, DEMO_PAY = f"{BUY}/qr.svg", f"{BUY}/payment", f"{BUY}/demo-payment"
REMEMBERED = f"{ACCOUNT}/browser"  # where /account asks to remember a browser for buying
PAY_CALL, LINK = f"{BUY}/call", "p"  # where /buy asks about a link to a call in a chat, and the link's parameter
VISITOR_TOKENS = "/api/payment/visitor-token"  # issues free identities; no tool, as nobody pays for it
CODE_HISTORY = "/changelog/code"
DESIGN = "/design"
CARDS = "/cards/"  # the pictures of tools in previews of links
SAMPLES = "/docs/samples"  # whole answers of premium tools from the simulated world, by name
TRY = "/t/try"  # where the pages of tools try a free tool
PREMIUM_FACTS = "/api/meta/pro"
SOURCES = "/api/sources"


def link_header(facts: SiteFacts) -> str:
    """Return the `Link` header of every answer: the API description, and the licence of the data."""
    return f'<{facts.url("/openapi.json")}>; rel="service-desc", <{facts.url("/docs")}#licence>; rel="license"'


def auth(operation: Operation) -> Literal["none", "bearer"]:
    """Return whether a call needs a token, as premium and account tools and the balance do."""
    if operation.tier is Tier.PAYMENT:
        return "bearer" if operation.reads_only else "none"
    return "none" if operation.tier is Tier.FREE else "bearer"


def tool_path(operation: Operation) -> str:
    """Return the path of a tool's page."""
    return f"/t/{operation.name}"


def sells(registry: Registry) -> bool:
    """Return True if any tool needs a token, so that documents mention credits."""
    return any(auth(operation) == "bearer" for operation in registry)


def price(operation: Operation) -> str:
    """Return the price of a call as text."""
    if not operation.credits:
        return "free"
    return f"{operation.credits} credit{'' if operation.credits == 1 else 's'}"


_LABEL = re.compile(r"\n(?=(?:Shape|Units|Chart|Sources?|Licence|Errors|Args): )")


def paragraphs(operation: Operation) -> list[str]:
    """Return the docstring's paragraphs for people, with each labelled line (`Shape: …`, `Source: …`) separate."""
    blocks = (part for block in operation.text.split("\n\n") for part in _LABEL.split(block))
    return [" ".join(block.split()) for block in blocks]


def duration(seconds: float) -> str:
    """Return a duration as `90 s`, `5 min` or `12 h`, in the largest unit that leaves a whole number."""
    whole = round(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if whole >= size and whole % size == 0:
            return f"{whole // size} {unit}"
    return f"{whole} s"
