"""/docs/payments: prices, how credits are bought, when a call is free. Where every 402 leads."""

from rest_bridge.pages.html import Html, prose, table, tag
from rest_bridge.pages.layout import link, page
from toolserver.documents import PAYMENTS, PREMIUM_LICENCE, USD_PER_CREDIT, Document, Facts, price
from toolserver.registry import Operation, Registry

_STEPS = (
    "`POST /api/payment/buy-credits` with `amount_usd` (at least 1). The answer holds a deposit address and a memo.",
    "Send that much USDC on Base to the address, in one transfer.",
    "`POST /api/payment/confirm` with the transaction's hash and the memo. The answer holds your token: keep it.",
    "Call premium tools with `Authorization: Bearer svc_live_…`, over REST or MCP.",
)
_NO_CHARGE = (
    "Arguments are checked before anything is reserved: a typo never costs anything.",
    "A call that fails on our side, breaks its own schema, or holds stale data is not charged.",
    "If only some sources fail, the answer says in `warning` which parts are missing, and the call is charged.",
    "Repeating a call with the same `Idempotency-Key` brings the same bytes and no second charge.",
    "Every paid call carries a signed receipt.",
)


def payments(registry: Registry, facts: Facts) -> Document:
    priced = [operation for operation in registry if operation.credits]
    return page(
        registry,
        facts,
        PAYMENTS,
        "Credits and payments",
        tag("h1", "Credits and payments"),
        tag("p", "1 USD buys 50 credits. No subscription, no expiry; purchases are final.", class_="lead"),
        tag("h2", "Prices"),
        table(("Tool", "Price", "In USD"), (_row(operation, facts) for operation in priced)),
        tag("h2", "Buying credits"),
        tag("ol", *(tag("li", prose(step)) for step in _STEPS)),
        tag("h2", "When a call is charged"),
        tag("ul", *(tag("li", prose(rule)) for rule in _NO_CHARGE)),
        tag("h2", "Keeping the token"),
        tag(
            "p",
            prose("Whoever holds the token can spend its credits. If it leaks, buy a new pack."),
        ),
        tag("h2", "Licence of premium answers"),
        tag("p", prose(PREMIUM_LICENCE)),
        _errors(facts),
    )


def _row(operation: Operation, facts: Facts) -> list[object]:
    usd = f"{operation.credits * USD_PER_CREDIT:.2f}"
    return [link(facts, f"/docs#{operation.name}", operation.name), price(operation), usd]


def _errors(facts: Facts) -> Html:
    return tag("p", "When a call is refused: ", link(facts, "/problems", "error codes"), ".")
