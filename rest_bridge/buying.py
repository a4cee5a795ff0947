"""Answers the requests of the page /buy that are not tools: the watch for a payment, and the demo wallet's payment."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from rest_bridge.asgi import ParsedRequest, Scope
from rest_bridge.json_post import json_post
from rest_bridge.routes import Mounted
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.core.caller import Addresses
from toolserver.core.credit_sales import CreditSales
from toolserver.errors import InvalidArguments
from toolserver.registry.site_facts import DEMO_PAY, WATCH, SiteFacts

Pay = Callable[[str, float], Awaitable[str]]
"""Sends US dollars to an address and returns the hash of the transaction. Raises CallRejected."""


def mount_buying(
    facts: SiteFacts, payments: CreditSales, world_url: str | None, limits: PersonalLimits, addresses: Addresses
) -> dict[str, Mounted]:
    """Return the mounted apps by path. `world_url` is the address of the simulated world, or None without one."""
    found: dict[str, Mounted] = {}
    if facts.sales is not None and facts.sales.sees_payments:
        found[WATCH] = payment_watch(payments, facts, limits, addresses)
    if facts.sales is not None and facts.sales.demo_wallet and world_url is not None:
        from toolserver.money.purchases.demo import pay_by_demo_wallet

        found[DEMO_PAY] = demo_wallet(partial(pay_by_demo_wallet, world_url), facts)
    return found


def payment_watch(payments: CreditSales, facts: SiteFacts, limits: PersonalLimits, addresses: Addresses) -> Mounted:
    """Answer `POST {"nonce"}` with `{"tx_hash"}`: the transaction that paid the purchase, or null if none has yet.

    Calls count toward the limit of the payment tools. The memo is a secret, so it never appears in an address.
    """

    async def answer(scope: Scope, found: ParsedRequest, given: Mapping[str, Any]) -> Mapping[str, Any]:
        peer = scope.get("client") or ("unknown", 0)
        forwarded = found.forwarded.decode("latin-1") if found.forwarded else None
        limits.take(addresses.client(peer[0], forwarded), "payment")
        memo = given.get("nonce")
        if not isinstance(memo, str):
            raise InvalidArguments("Send the memo of the quote as `nonce`.", errors=[])
        return {"tx_hash": await payments.find_payment(memo)}

    return json_post(answer, facts)


def demo_wallet(pay: Pay, facts: SiteFacts) -> Mounted:
    """Answer `POST {"to", "amount_usd"}` with `{"tx_hash"}`: a payment on the simulated chain."""

    async def answer(scope: Scope, found: ParsedRequest, given: Mapping[str, Any]) -> Mapping[str, Any]:
        to, amount = given.get("to"), given.get("amount_usd")
        if not isinstance(to, str) or isinstance(amount, bool) or not isinstance(amount, int | float):
            raise InvalidArguments("Send `to` (an address) and `amount_usd` (a number).", errors=[])
        return {"tx_hash": await pay(to, amount)}

    return json_post(answer, facts)
