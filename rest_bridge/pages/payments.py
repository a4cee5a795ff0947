"""/docs/payments: prices, how credits are bought, when a call is free. Where every 402 leads.

Written once, from the registry and the facts, for people (HTML) and for agents (Markdown).
"""

from collections.abc import Iterator

from rest_bridge.pages.blocks import Block, Code, Heading, Points, Rows, Words, as_html, as_markdown
from rest_bridge.pages.layout import page
from toolserver.documents import (
    MARKDOWN,
    PAYMENTS,
    PAYMENTS_MARKDOWN,
    PREMIUM_LICENCE,
    USD_PER_CREDIT,
    Document,
    Facts,
    Sales,
    Terms,
)
from toolserver.problems import PROBLEMS
from toolserver.registry import Operation, Registry

TITLE = "Credits and payments"
USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"

NO_CHARGE = {
    "5xx": ("the call failed, or no source of the payload answered", "500 or 503"),
    "circuit_breaker": ("the ledger could not be reached", "402 `billing_unavailable`"),
    "schema_failure": ("the answer broke the tool's own schema", "500"),
    "stale_data": ("a part of the answer is older than the tool promises", "200, with `stale: true`"),
    "empty_result": ("there is nothing in the answer", "200"),
    "cancelled": ("you hung up before the answer was there", "none"),
    "delivery_failed": ("the answer could not be handed over", "none"),
}
"""Every reason not to charge a call: when, and what the caller gets."""

_OF_CALLS = (
    *("missing_token", "invalid_token", "expired", "insufficient_credits", "billing_unavailable", "payment_required"),
    *("idempotency_conflict", "upstream_unavailable"),
)
_OF_PURCHASES = (
    *("payment_pending", "no_matching_transfer", "below_minimum", "already_credited", "payer_proof_required"),
    "chain_unavailable",
)
_CHARGED = (
    "Arguments are checked first: a call with a wrong one is refused and costs nothing.",
    "Then the price is set aside, before anything is fetched, and charged once the answer is there. An answer that is"
    " at hand is charged in one step. A price that nothing came of is free again after 5 minutes at most.",
    "If only some sources fail, the answer says in `warning` which parts are missing, and the call is charged.",
    "An answer from the cache costs the same; `captured_at` tells how old its data are.",
    "Send an `Idempotency-Key` (on MCP `_meta.idempotency_key`) to be able to repeat a call: for 24 hours the same key"
    " and arguments bring the same bytes and the same receipt, charged once. Other arguments under it are a 422.",
    "`X-Credits-Remaining` (on MCP `_meta.credits_remaining`) says what can be spent after the call.",
)
_RECEIPTS = (
    "Every paid answer carries a signed receipt in `X-Service-Receipt` (a JWS, Ed25519; on MCP `_meta.receipt`): what"
    " was asked, the SHA-256 of the answer, what was charged and what is left. So does a call that failed and cost"
    " nothing.",
    "The keys are at `/.well-known/service-receipt-keys.json`. `POST /api/receipt/verify` verifies a receipt for you,"
    " and `GET /api/receipt/<id>` shows one again to the bearer that paid.",
    "Calls that were not charged are public, without naming anybody, in a log that cannot be rewritten:"
    " `GET /api/payment/no-charge-stats` and `/api/payment/no-charge-log/checkpoint`.",
)
_TOKEN = (
    "Whoever has the token can spend its credits. It is stored here as a hash only, so nobody can tell it to you again."
    " Keep it like a password. If it leaks, spend what is left or leave it, and buy a new pack: tokens are not"
    " exchanged."
)


def payments(registry: Registry, facts: Facts) -> Document:
    """The page for people."""
    content = as_html(TITLE, _blocks(registry, facts))
    return page(registry, facts, PAYMENTS, TITLE, *content, markdown=PAYMENTS_MARKDOWN)


def payments_markdown(registry: Registry, facts: Facts) -> Document:
    """The same for agents."""
    return Document(as_markdown(TITLE, _blocks(registry, facts)).encode(), MARKDOWN)


def _blocks(registry: Registry, facts: Facts) -> Iterator[Block]:
    priced = [operation for operation in registry if operation.credits]
    sales = facts.sales
    yield Words(_opening(sales), lead=True)
    if sales is not None and facts.simulated:
        yield Words(
            "This server runs on a simulated world: so are its chain and the USDC on it. Credits cost nothing here, and"
            " the data are invented."
        )
    yield from _prices(priced, facts)
    if sales is not None:
        yield from _buying(sales, priced, facts)
    yield Heading("When a call is charged")
    yield Points(_CHARGED)
    yield Heading("When a call is free")
    yield Rows(("Reason", "When", "What you get"), [(f"`{reason}`", *told) for reason, told in NO_CHARGE.items()])
    yield Words("A refused call (a wrong argument, a token that cannot pay, too many calls) is never charged either.")
    yield Heading("Receipts")
    yield Points(_RECEIPTS)
    yield Heading("When something is refused")
    yield Rows(("Code", "Status", "What to do"), [_refusal(code, facts) for code in _refusals(sales)])
    yield Heading("Limits")
    yield Words(_limits(registry, facts))
    yield Heading("Keeping the token")
    yield Words(_TOKEN)
    yield Heading("Terms")
    yield Words(PREMIUM_LICENCE)


def _opening(sales: Sales | None) -> str:
    if sales is None:
        return "This server sells no credits. The prices are what calls cost whoever has a token that is accepted here."
    return (
        "1 USD buys 50 credits, paid in USDC on Base. No account and no subscription; credits do not expire, and"
        " purchases are final."
    )


def _prices(priced: list[Operation], facts: Facts) -> Iterator[Block]:
    yield Heading("Prices")
    yield Rows(
        ("Tool", "What", "Call", "Credits", "USD"),
        [
            (
                f"[{operation.name}]({facts.url(f'/docs#{operation.name}')})",
                operation.title,
                f"`{operation.method} {operation.path}`",
                str(operation.credits),
                f"{operation.credits * USD_PER_CREDIT:.2f}",
            )
            for operation in priced
        ],
    )
    included = ", buying credits and asking for the balance included" if facts.sales else ""
    yield Words(f"Every other tool is free of charge{included}.")


def _buying(sales: Sales, priced: list[Operation], facts: Facts) -> Iterator[Block]:
    if sales.transfer:
        yield Heading("Buying credits in four steps")
        yield from _quote(sales, facts)
        yield from _pay(sales)
        yield from _confirm(sales, facts)
        yield from _call(priced, facts)
    if sales.x402_most_usd is not None:
        yield Heading("Buying by x402")
        yield Words(
            "A program with an x402 wallet needs no quote: `POST /api/payment/topup` turns one signed payment into a"
            f" token, up to {sales.x402_most_usd:,} USD at once, and every call in the table above can be paid for by"
            " itself. What to sign stands in the header `PAYMENT-REQUIRED` of every 402; `/.well-known/x402.json` lists"
            " all of it."
        )


def _quote(sales: Sales, facts: Facts) -> Iterator[Block]:
    minutes = f" {sales.terms.quote_minutes} minutes from then" if sales.terms else " when the quote ends"
    yield Heading("1. Ask for a quote", 3)
    yield Code(_post(facts, "/api/payment/buy-credits", '{"amount_usd": 5}'))
    yield Code(
        '{"wallet": "0x…", "memo": "svc_buy_…", "quote": {"amount_usd": 5.0, "credits": 250, "chain": "base"},'
        ' "expires_at": "…", …}',
        "json",
    )
    yield Words(
        f"`wallet` is where to pay, `expires_at` is{minutes}, and `memo` is a secret: whoever has it can claim the"
        " token. Keep it, and put it nowhere on the chain. To lock the purchase besides, send `claim_challenge`, the"
        " base64url SHA-256 of a secret of your own; step 3 then needs that secret as `claim_verifier`."
    )


def _pay(sales: Sales) -> Iterator[Block]:
    shared = sales.terms is not None and sales.terms.shared_wallet
    where = "" if shared else ", from any wallet or exchange"
    yield Heading("2. Pay", 3)
    yield Words(
        f"Send the amount in USDC on Base (chain 8453, contract `{USDC}`) to `wallet`, **in one transfer**{where}."
        " `payment_uri` says the same to wallets (EIP-681). What arrives is credited, be it more or less than quoted,"
        " from 1 USDC on, fractions of a credit rounded down. A second transfer for the same purchase buys nothing."
    )
    if shared:
        yield Words(
            "All purchases share one address here, so the transfer has to show which one it pays: append"
            " `memo_commitment` to a plain `transfer` call, use it as the nonce of an EIP-3009 authorisation, or"
            " confirm with `payer_signature`. From an exchange you can do none of these."
        )


def _confirm(sales: Sales, facts: Facts) -> Iterator[Block]:
    yield Heading("3. Confirm", 3)
    yield Code(_post(facts, "/api/payment/confirm", '{"tx_hash": "0x…", "nonce": "svc_buy_…"}'))
    yield Code('{"token": "svc_live_…", "credits": 250, "late": false}', "json")
    yield Words(
        "It waits some seconds for the chain. On `payment_pending` send the same again after `Retry-After`; it goes on"
        " until the payment is as safe as its amount asks for. If the answer is lost, the same request gives the same"
        " token for 15 minutes, until the token is used."
    )
    if sales.terms:
        yield from _waiting(sales.terms)


def _waiting(terms: Terms) -> Iterator[Block]:
    safe, final = f"{terms.safe_from_usd:,}", f"{terms.finalized_from_usd:,}"
    yield Rows(
        ("Amount", "Waits for", "About"),
        [
            (f"below {safe} USD", f"{terms.confirmations} blocks on top", f"{2 * terms.confirmations} s"),
            (f"from {safe} USD", "a safe block", "2 min"),
            (f"from {final} USD", "a finalized block", "20 min"),
        ],
    )
    if terms.credits_late:
        told = "A payment is credited if you confirm it within 30 days of `expires_at`; one that was made more than"
        yield Words(f"{told} {terms.grace_minutes} minutes after it carries `late: true`.")
    else:
        told = f"A payment is in time until {terms.grace_minutes} minutes after `expires_at`, whenever you confirm it."
        yield Words(f"{told} A later one is not credited.")


def _call(priced: list[Operation], facts: Facts) -> Iterator[Block]:
    yield Heading("4. Call", 3)
    easy = [one for one in priced if one.reads_only and not one.input_schema.get("required")]
    for operation in easy[:1]:
        yield Code(f'curl -i {facts.url(operation.path)} \\\n  -H "Authorization: Bearer svc_live_…"')
    yield Words(
        "MCP clients send the same header. Over MCP the steps are the tools `payment_buy_credits` and"
        " `payment_confirm`; `payment_balance` (`GET /api/payment/balance`) tells what is left, and asking is free."
    )


def _post(facts: Facts, path: str, body: str) -> str:
    return f"curl {facts.url(path)} \\\n  -H 'Content-Type: application/json' -d '{body}'"


def _refusals(sales: Sales | None) -> tuple[str, ...]:
    if sales is None:
        return _OF_CALLS
    return (*_OF_CALLS, *_OF_PURCHASES, *(("settlement_pending",) if sales.x402_most_usd is not None else ()))


def _refusal(code: str, facts: Facts) -> tuple[str, str, str]:
    problem = PROBLEMS[code]
    return f"[{code}]({facts.url(f'/problems/{code}')})", str(problem.status), problem.advice


def _limits(registry: Registry, facts: Facts) -> str:
    figures = facts.limits
    told = f"{figures.premium_per_minute} paid calls a minute for each token, {figures.payment_per_minute} calls of"
    told += " payment tools a minute for each client."
    quote = registry.get("payment_buy_credits")
    if quote is not None and facts.sales is not None:
        quotas = " and ".join(f"{calls} in {round(seconds / 60)} min" for calls, seconds in quote.quotas)
        told += f" Quotes: {quotas}." if quotas else ""
    return f"{told} Beyond: 429 with `Retry-After`."
