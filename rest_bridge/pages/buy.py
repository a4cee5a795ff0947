"""Writes /buy, where readers buy credits step by step with a USDC transfer from their own
wallet, and answers what the page asks that is no tool: the watch for a payment, the demo
wallet's payment, and a link to a call in a chat.
"""

from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from rest_bridge import headers as h
from rest_bridge.asgi import ParsedRequest, Scope
from rest_bridge.json_post import json_post
from rest_bridge.pages.remembered_browser import RememberedBrowsers, mount_remembering
from rest_bridge.pages.render import render_page
from rest_bridge.routes import Mounted
from toolserver.calls.payment_links import MOST_TEXT, PaymentLinks, describe, refuse_payer
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.clock import Clock, SystemClock
from toolserver.core.caller import Addresses, bearer
from toolserver.core.models import iso
from toolserver.errors import InvalidArguments
from toolserver.money.ledger.state import AccountRef
from toolserver.money.purchases.credit_price import CREDITS_PER_USD
from toolserver.money.purchases.credit_sales import Claim, CreditSales
from toolserver.money.purchases.demo import pay_by_demo_wallet
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import (
    ACCOUNT,
    BUY,
    DEMO_PAY,
    LINK,
    PAY_CALL,
    PAYMENTS,
    QR,
    RECEIPTS,
    WATCH,
    Document,
    SiteFacts,
    price,
)


def buy_page(registry: Registry, facts: SiteFacts) -> Document:
    """Return the page. On a simulated chain it offers to pay from a demo wallet."""
    priced = [operation for operation in registry.listed if operation.credits]
    first = next((one for one in priced if not one.input_schema.get("required")), None)
    demo = facts.sales is not None and facts.sales.demo_wallet
    terms = facts.sales.terms if facts.sales else None
    shop = {
        "credits_per_usd": CREDITS_PER_USD,
        "prices": sorted({one.credits for one in priced}),
        "demo_pay": DEMO_PAY if demo else None,
        "watch": WATCH if facts.sales is not None and facts.sales.sees_payments else None,
        "quote_s": terms.quote_minutes * 60 if terms else None,
        "pay_call": PAY_CALL if terms else None,
        "link": LINK,
        "qr": QR,
        "first": {"path": first.path, "title": first.title, "price": price(first)} if first else None,
        "first_call": facts.url(first.path) if first else facts.url("/api/payment/balance"),
    }
    return render_page(
        "buy.html",
        registry,
        facts,
        path=BUY,
        title="Buy credits",
        about="Credits for the paid tools, bought with USDC on Base: no account, no subscription.",
        scripts=["buy.js"] if facts.sales and facts.sales.transfer else [],
        shop=shop,
        sales=facts.sales,
        demo=demo,
        prices=shop["prices"],
        credits_per_usd=CREDITS_PER_USD,
        payments=PAYMENTS,
        account=ACCOUNT,
        receipts=RECEIPTS,
    )


Pay = Callable[[str, float], Awaitable[str]]
"""Sends US dollars to an address and returns the hash of the transaction. Raises CallRejected."""


def mount_buying(
    facts: SiteFacts,
    payments: CreditSales,
    world_url: str | None,
    limits: PersonalLimits,
    addresses: Addresses,
    links: PaymentLinks | None = None,
    clock: Clock | None = None,
) -> dict[str, Mounted]:
    """Return the mounted apps by path. `world_url` is the address of the simulated world, or None without one.

    `clock` is the machine's if none is given.
    """
    apps: dict[str, Mounted] = {}
    if links is not None:
        browsers = RememberedBrowsers(links, facts, clock or SystemClock())
        apps |= mount_remembering(browsers, links, facts, limits, addresses)
        apps[PAY_CALL] = call_payment(links, browsers, payments, facts, limits, addresses)
    if facts.sales is not None and facts.sales.sees_payments:
        apps[WATCH] = payment_watch(payments, facts, limits, addresses)
    if facts.sales is not None and facts.sales.demo_wallet and world_url is not None:
        apps[DEMO_PAY] = demo_wallet(partial(pay_by_demo_wallet, world_url), facts)
    return apps


def payment_watch(payments: CreditSales, facts: SiteFacts, limits: PersonalLimits, addresses: Addresses) -> Mounted:
    """Answer `POST {"nonce"}` with `{"tx_hash"}`: the transaction that paid the purchase, or null if none has yet.

    Calls count toward the limit of the payment tools. The memo is a secret, so it never appears in an address.
    """

    async def answer(scope: Scope, request: ParsedRequest, message: Mapping[str, Any]) -> Mapping[str, Any]:
        limits.take(_find_client(scope, request, addresses), "payment")
        memo = message.get("nonce")
        if not isinstance(memo, str):
            raise InvalidArguments("Send the memo of the quote as `nonce`.", errors=[])
        return {"tx_hash": await payments.find_payment(memo)}

    return json_post(answer, facts)


def call_payment(
    links: PaymentLinks,
    browsers: RememberedBrowsers,
    payments: CreditSales,
    facts: SiteFacts,
    limits: PersonalLimits,
    addresses: Addresses,
) -> Mounted:
    """Answer `POST {"link"}` with what a link to a call in a chat says, and with a bearer token do what it is for.

    A link of one call lets its chat spend the price from the token: `{"paid": true,
    "credits"}`, the price. For a link of an account the token proves that the browser may buy
    for that account: `{"proved": true}`. A browser that is remembered for that account gets
    `"remembered": true`, and buys without a token: `{"link", "amount_usd"}` is answered with
    `{"credits", "transfer"}` as a top-up is, and `{"link", "tx_hash", "nonce"}` with
    `{"credits", "late"}`. Calls count toward the limit of the payment tools.
    """

    async def answer(scope: Scope, request: ParsedRequest, message: Mapping[str, Any]) -> Mapping[str, Any]:
        client = _find_client(scope, request, addresses)
        limits.take(client, "payment")
        text, token = message.get("link"), bearer(h.text(request.authorization))
        if not isinstance(text, str):
            raise InvalidArguments("Send the `link` of the page's address.", errors=[])
        link = links.read(text)
        if token is None:
            browser = browsers.find(scope)
            is_remembered = browser is not None and link.account == bytes.fromhex(browser.account)
            if "amount_usd" in message or "tx_hash" in message:
                if browser is None or not is_remembered:
                    raise refuse_payer()
                return await _buy_for(AccountRef(browser.account), payments, message)
            remembered = {"remembered": True} if is_remembered else {}
            return {**describe(link, links.name_tool(link)), **remembered}
        if link.account is not None:
            await links.prove(link, token)
            return {"proved": True}
        await links.pay_call(link, token)
        return {"paid": True, "credits": link.credits}

    return json_post(answer, facts, most_bytes=MOST_TEXT + 100)


async def _buy_for(account: AccountRef, payments: CreditSales, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Offer credits for an account, or credit what was paid for them."""
    if "tx_hash" in message:
        tx_hash, memo, signature = (message.get(name) for name in ("tx_hash", "nonce", "payer_signature"))
        if not isinstance(tx_hash, str) or not isinstance(memo, str) or not isinstance(signature, str | None):
            raise InvalidArguments("Send `tx_hash` and `nonce`, and `payer_signature` if asked for it.", errors=[])
        bought = await payments.confirm_topup(account, Claim(tx_hash, memo, None, signature))
        return {"credits": bought.credits, "late": bought.late}
    amount = message["amount_usd"]
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise InvalidArguments("Send `amount_usd` as a number.", errors=[])
    quote = await payments.quote_topup(account, Decimal(str(amount)))
    transfer = {
        "wallet": quote.wallet,
        "memo": quote.memo,
        "amount_atomic": quote.amount,
        "payment_uri": quote.uri,
        "expires_at": iso(quote.expires_at),
        "review": quote.review,
    }
    return {"credits": quote.credits, "transfer": transfer}


def _find_client(scope: Scope, request: ParsedRequest, addresses: Addresses) -> str:
    """Return the address that a request counts for."""
    peer = scope.get("client") or ("unknown", 0)
    return addresses.client(peer[0], h.text(request.forwarded))


def demo_wallet(pay: Pay, facts: SiteFacts) -> Mounted:
    """Answer `POST {"to", "amount_usd"}` with `{"tx_hash"}`: a payment on the simulated chain."""

    async def answer(scope: Scope, request: ParsedRequest, message: Mapping[str, Any]) -> Mapping[str, Any]:
        to, amount = message.get("to"), message.get("amount_usd")
        if not isinstance(to, str) or isinstance(amount, bool) or not isinstance(amount, int | float):
            raise InvalidArguments("Send `to` (an address) and `amount_usd` (a number).", errors=[])
        return {"tx_hash": await pay(to, amount)}

    return json_post(answer, facts)
