"""What generated documents share: the facts no registry entry holds, the list of pages, and the form of a document."""

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from toolserver.registry.registry import Operation, Registry, Tier

SERVICE = "toolserver"
DISTRIBUTION = "agent-toolserver"  # on the package index, where the shorter name is somebody else's
READYZ = "/readyz"
SIGN_IN = "/api/mcp/auth"  # the MCP endpoint for hosts that sign in by OAuth
LIVE = "/live.json"
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
    """A finished document, the same bytes for every reader."""

    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """The figures of CONTRACT section 4, as they are set on this server."""

    free_per_day: int = 100_000
    free_spacing_s: int = 30
    payment_per_minute: int = 60
    premium_per_minute: int = 600


@dataclass(frozen=True, slots=True)
class PurchaseTerms:
    """Of purchases by transfer, as they are set here. `shared_wallet`: one address, with proof of the payer."""

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

    `terms` is None where a sister service sells, whose terms are not known here. `x402_most_usd` is the largest top-up.
    `demo_wallet`: the chain is simulated, and a wallet of the demo can pay on it.
    """

    transfer: bool = True
    terms: PurchaseTerms | None = PurchaseTerms()
    x402_most_usd: int | None = None
    demo_wallet: bool = False

    @property
    def sees_payments(self) -> bool:
        """Whether a payment can be found by its address: each purchase has its own, and they are sold here."""
        return self.transfer and self.terms is not None and not self.terms.shared_wallet


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What documents say about this very server. `base_url` is the public one, `source` its host name in answers.

    `sales` is None where no credits are sold.
    """

    base_url: str
    source: str
    contact: str | None = None
    simulated: bool = False
    ledger: str = "embedded"
    limits: LimitFacts = field(default_factory=LimitFacts)
    sales: Sales | None = None
    oauth: bool = False
    """Whether hosts can sign in at /api/mcp/auth."""
    licence_policy: str = "any"

    def url(self, path: str) -> str:
        """The public, absolute URL of a path."""
        return self.base_url.rstrip("/") + path

    def href(self, path: str) -> str:
        """The URL of a path for a page's own links: without scheme and host."""
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
TOOL_TIERS = (Tier.FREE.value, Tier.PREMIUM.value)  # what `tier` of /api/llm-tools may be
PAYMENTS = "/docs/payments"
API_CATALOG = "/.well-known/api-catalog"
RECEIPT_KEYS = "/.well-known/service-receipt-keys.json"
RECEIPT_KEY = "/.well-known/service-receipt-key.json"
PAYMENTS_MARKDOWN = f"{PAYMENTS}.md"
BUY, ACCOUNT, RECEIPTS, NO_CHARGE = "/buy", "/account", "/receipts", "/no-charge"
QR, WATCH, DEMO_PAY = f"{BUY}/qr.svg", f"{BUY}/payment", f"{BUY}/demo-payment"
PREMIUM_FACTS = "/api/meta/pro"
SOURCES = "/api/sources"


def link_header(facts: SiteFacts) -> str:
    """The value of the header `Link` of every answer: the API description, and the licence of the data."""
    return f'<{facts.url("/openapi.json")}>; rel="service-desc", <{facts.url("/docs")}#licence>; rel="license"'


def auth(operation: Operation) -> Literal["none", "bearer"]:
    """Whether a call needs a token: premium and account tools do, and reading one's balance."""
    if operation.tier is Tier.PAYMENT:
        return "bearer" if operation.reads_only else "none"
    return "none" if operation.tier is Tier.FREE else "bearer"


def tool_path(operation: Operation) -> str:
    """Where the page of a tool is."""
    return f"/t/{operation.name}"


def sells(registry: Registry) -> bool:
    """Whether any tool here needs a token, so that documents speak of credits at all."""
    return any(auth(operation) == "bearer" for operation in registry)


def price(operation: Operation) -> str:
    """The price of a call in words."""
    if not operation.credits:
        return "free"
    return f"{operation.credits} credit{'' if operation.credits == 1 else 's'}"


_LABEL = re.compile(r"\n(?=(?:Shape|Units|Chart|Sources?|Licence|Errors|Args): )")


def paragraphs(operation: Operation) -> list[str]:
    """The docstring for people: its paragraphs, and each labelled line (`Shape: …`, `Source: …`) as one of its own."""
    blocks = (part for block in operation.text.split("\n\n") for part in _LABEL.split(block))
    return [" ".join(block.split()) for block in blocks]


def duration(seconds: float) -> str:
    """`90 s`, `5 min`, `12 h`: the largest unit that leaves a whole number."""
    whole = round(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if whole >= size and whole % size == 0:
            return f"{whole // size} {unit}"
    return f"{whole} s"
