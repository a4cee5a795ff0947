"""Run the consent page: what a person does between an authorization request and its answer.

    choose ── token ──────────────────────────────▶ allowance, code, back to the client
      ├─ amount ─▶ pay ── transaction ─▶ confirming ─▶ bought ─┘
      └─ free ─────────────────────────────▶ visitor token, code, back to the client

The transaction is found automatically if each purchase has its own address; otherwise the person enters its hash.

Every step calls the same tools as any other caller, through the pipeline, so that limits and
charging are the same. The token that a person enters is used only for the call that creates
the allowance, and is not stored.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from toolserver.calls.pipeline import Pipeline
from toolserver.calls.visitor_tokens import VisitorIssuer
from toolserver.clock import milliseconds
from toolserver.core.caller import Caller
from toolserver.core.consent_page import ConsentPayment, ConsentStep, ConsentView
from toolserver.errors import CallRejected, ChainUnavailable, InvalidArguments, NotFound, PaymentPending, RateLimited
from toolserver.mcp.oauth.clients import is_client_url
from toolserver.mcp.oauth.grants import OAuthGrants
from toolserver.mcp.oauth.metadata import CONSENT, RESOURCE
from toolserver.mcp.oauth.redirects import add_answer, describe_redirect
from toolserver.mcp.oauth.store import ConsentRequest, hash_secret, seal_under, unseal_with
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts

MOST_CREDITS, MOST_DAYS, MOST_ALLOWANCE_NAME, MOST_HASH = 10**6, 365, 100, 100
REFRESH_S = 4
BY_HASH = "hash"  # the parameter with which the page asks for a transaction and does not reload itself
CLOSED = "This request has ended"
FindPayment = Callable[[str], Awaitable[str | None]]
"""Finds the hash of the transaction that paid a purchase, by its memo; None if none is seen. Raises CallRejected."""

_WAITS = (PaymentPending, ChainUnavailable, RateLimited)


class ConsentDefaults(NamedTuple):
    """The terms of an allowance unless the person changes them."""

    credits: int = 250
    days: int = 30


class Visit(NamedTuple):
    """A visit to a request's page: the secret of the page, the request, and the visitor."""

    secret: str
    request: ConsentRequest
    caller: Caller


class Redirected(NamedTuple):
    """Sends the browser to this URL. `outside` says that it leads to the client."""

    url: str
    outside: bool = True


@dataclass(frozen=True, slots=True)
class ConsentPurchase:
    """A purchase during a request, until its token arrives: the secret memo of its quote, and what the page shows.

    `payment.tx_hash` is the transaction that paid it, according to the person or found on the chain.
    """

    memo: str
    payment: ConsentPayment

    @classmethod
    def of_quote(cls, quote: Mapping[str, Any]) -> "ConsentPurchase":
        """Make a purchase from the answer of payment_buy_credits."""
        payment = ConsentPayment(
            wallet=quote["wallet"],
            amount_usd=f"{quote['amount_atomic'] / 1_000_000:.6f}".rstrip("0").rstrip("."),
            credits=quote["quote"]["credits"],
            uri=quote["payment_uri"],
            expires_at=datetime.fromisoformat(quote["expires_at"]).astimezone(UTC),
            review=quote.get("review"),
        )
        return cls(quote["memo"], payment)

    @classmethod
    def read(cls, stored: str) -> "ConsentPurchase":
        """Read a purchase that `write` wrote."""
        fields = json.loads(stored)
        memo, ends = fields.pop("memo"), datetime.fromisoformat(fields.pop("expires_at")).astimezone(UTC)
        return cls(memo, ConsentPayment(expires_at=ends, **fields))

    def write(self) -> str:
        """Write the purchase for storage. The caller encrypts it, because the memo is a secret."""
        payment = self.payment
        fields = {
            "wallet": payment.wallet,
            "memo": self.memo,
            "amount_usd": payment.amount_usd,
            "credits": payment.credits,
            "uri": payment.uri,
            "expires_at": payment.expires_at.isoformat(),
            "review": payment.review,
            "tx_hash": payment.tx_hash,
        }
        return json.dumps(fields)

    def paid_by(self, tx_hash: str) -> "ConsentPurchase":
        """Return the same purchase with its transaction."""
        return ConsentPurchase(self.memo, self.payment._replace(tx_hash=tx_hash[:MOST_HASH]))

    @property
    def claim(self) -> dict[str, str]:
        """The arguments of payment_confirm."""
        return {"tx_hash": self.payment.tx_hash, "nonce": self.memo}


class ConsentSteps:
    """What each form of the page does. The answer is a view to draw or a redirect.

    Without `find_payment`, or if purchases share an address, payments are not found automatically.
    """

    def __init__(
        self,
        registry: Registry,
        pipeline: Pipeline,
        grants: OAuthGrants,
        issuer: VisitorIssuer,
        *,
        facts: SiteFacts,
        defaults: ConsentDefaults,
        find_payment: FindPayment | None = None,
    ) -> None:
        self._registry = registry
        self._pipeline = pipeline
        self._store = grants.store
        self._grants = grants
        self._issuer = issuer
        self._facts, self._clock, self._defaults = facts, pipeline.answers.clock, defaults
        self._now = milliseconds(self._clock)
        buys = registry.get("payment_buy_credits") is not None
        self._sells = buys and facts.sales is not None and facts.sales.transfer
        self._find_payment = find_payment if facts.sales is not None and facts.sales.sees_payments else None

    async def open(self, secret: str, browser: str, caller: Caller) -> Visit | ConsentView:
        """Return the request of a page, or why it cannot be answered. `browser` is the secret of the cookie."""
        request = await self._store.find_request(hash_secret(secret)) if secret else None
        if request is None or request.browser != hash_secret(browser):
            return close_page("It belongs to another browser or does not exist. Connect again from the app.")
        if request.answered_at is not None:
            return close_page("It has already been answered. You can close this page, or connect again from the app.")
        if request.expires_at <= self._now():
            return close_page("It has expired. Connect again from the app. A payment that you made is not lost.")
        return Visit(secret, request, caller)

    async def show(self, visit: Visit, *, by_hash: bool = False) -> ConsentView:
        """Return the page in its current state. If a payment is expected or in progress, query the chain.

        With `by_hash`, the page asks for the transaction of an expected payment and waits for the person.
        """
        bought = self._read_purchase(visit)
        if bought is None:
            return self._view(visit, "choose")
        if not bought.payment.tx_hash and not by_hash:
            tx_hash = await self._look_for_payment(visit, bought)
            if tx_hash is not None:
                bought = bought.paid_by(tx_hash)
                await self._keep_purchase(visit, bought)
        if bought.payment.tx_hash:
            return await self._confirm_payment(visit, bought)
        view = self._view(visit, "pay")._replace(payment=bought.payment)
        if self._find_payment is None or by_hash:
            return view
        return view._replace(watched=True, refresh_s=REFRESH_S, by_hash=f"{view.page}&{BY_HASH}=1")

    async def _look_for_payment(self, visit: Visit, bought: ConsentPurchase) -> str | None:
        if self._find_payment is None:
            return None
        try:
            if visit.caller.limited:
                self._pipeline.personal.take(visit.caller.client, "payment")
            return await self._find_payment(bought.memo)
        except CallRejected:  # the chain is unavailable or was queried too often: the page tries again in a few seconds
            return None

    async def act(self, visit: Visit, form: Mapping[str, str]) -> ConsentView | Redirected:
        """Do what a form asks for."""
        steps = {"allow": self._allow, "free": self._visit, "buy": self._buy, "paid": self._note_payment}
        steps |= {"unpaid": self._forget_payment, "back": self._forget_purchase}
        step = form.get("do", "")
        if step == "deny":
            return await self._deny(visit)
        try:
            return await steps[step](visit, form) if step in steps else await self.show(visit)
        except CallRejected as rejected:
            view = (await self.show(visit, by_hash=step == "paid"))._replace(problem=explain(rejected))
            typed = _typed(form)
            return view._replace(credits=typed.get("credits", view.credits), days=typed.get("days", view.days))

    async def _allow(self, visit: Visit, form: Mapping[str, str]) -> ConsentView | Redirected:
        """Create an allowance with the token of the form, and a grant that uses it. Raises CallRejected."""
        credits = _whole(form, "credits", MOST_CREDITS)
        days = _whole(form, "days", MOST_DAYS)
        token = "".join(form.get("token", "").split())
        if not token:
            raise _refuse("token", "Paste your token, or buy credits to get one.")
        ends = self._clock.now() + timedelta(days=days)
        owner = _as(visit.caller, token)
        terms = {"name": self._name(visit.request), "credits": credits, "expires_at": ends.isoformat()}
        allowance = await self._call("allowance_create", terms, owner)
        code = await self._grants.allow(visit.request, allowance["token"], int(ends.timestamp() * 1000))
        if code is None:  # the same page was submitted twice at once
            await self._call("allowance_revoke", {"id": allowance["id"]}, owner)
            return close_page("It has already been answered in another window.")
        return self._answer(visit.request, {"code": code})

    async def _visit(self, visit: Visit, form: Mapping[str, str]) -> ConsentView | Redirected:
        """Give the client a visitor token, for which the browser's address may have to work. Raises CallRejected."""
        challenge, solution = form.get("challenge"), form.get("solution")
        try:
            visitor = await self._issuer.issue(visit.caller.client, challenge or None, solution)
        except RateLimited as refused:
            if (work := refused.extra.get("work")) is None:
                raise
            return self._view(visit, "choose")._replace(challenge=work["challenge"], work_bits=work["bits"])
        code = await self._grants.allow_visitor(visit.request, visitor)
        if code is None:
            return close_page("It has already been answered in another window.")
        return self._answer(visit.request, {"code": code})

    async def _deny(self, visit: Visit) -> ConsentView | Redirected:
        if not await self._store.deny_request(visit.request.id, self._now()):
            return close_page("It has already been answered in another window.")
        return self._answer(visit.request, {"error": "access_denied", "error_description": "the person said no"})

    async def _buy(self, visit: Visit, form: Mapping[str, str]) -> Redirected:
        """Get a quote for the amount of the form. Raises CallRejected."""
        amount = form.get("amount_usd", "").strip()
        quote = await self._call("payment_buy_credits", {"amount_usd": amount}, visit.caller)
        await self._keep_purchase(visit, ConsentPurchase.of_quote(quote))
        return self._again(visit)

    async def _note_payment(self, visit: Visit, form: Mapping[str, str]) -> ConsentView:
        """Store the transaction of the form and check it, now and while this page is open. Raises CallRejected."""
        bought = self._read_purchase(visit)
        tx_hash = form.get("tx_hash", "").strip()
        if not tx_hash:
            raise _refuse("tx_hash", "Paste the hash of your transfer: your wallet shows it once it is sent.")
        if bought is None:
            return self._view(visit, "choose")
        bought = bought.paid_by(tx_hash)
        await self._keep_purchase(visit, bought)
        return self._view(visit, "confirming")._replace(payment=bought.payment, refresh_s=1)

    async def _forget_payment(self, visit: Visit, form: Mapping[str, str]) -> Redirected:
        bought = self._read_purchase(visit)
        if bought is not None:
            await self._keep_purchase(visit, bought.paid_by(""))
        return self._again(visit)

    async def _forget_purchase(self, visit: Visit, form: Mapping[str, str]) -> Redirected:
        await self._store.keep_purchase(visit.request.id, None)
        return self._again(visit)

    async def _confirm_payment(self, visit: Visit, bought: ConsentPurchase) -> ConsentView:
        try:
            confirmed = await self._call("payment_confirm", bought.claim, visit.caller)
        except _WAITS as waits:
            payment = bought.payment._replace(
                confirmations=waits.extra.get("confirmations"), required=waits.extra.get("required")
            )
            view = self._view(visit, "confirming")._replace(payment=payment, refresh_s=REFRESH_S)
            return view if isinstance(waits, PaymentPending) else view._replace(problem=explain(waits))
        except CallRejected as rejected:
            return self._view(visit, "pay")._replace(payment=bought.payment, problem=explain(rejected))
        view = self._view(visit, "bought")
        credits = min(view.credits, confirmed["credits"])
        return view._replace(token=confirmed["token"], payment=bought.payment, credits=credits)

    def _view(self, visit: Visit, step: ConsentStep) -> ConsentView:
        request, target = visit.request, describe_redirect(visit.request.redirect_uri)
        return ConsentView(
            step,
            action=self._facts.href(CONSENT),
            secret=visit.secret,
            client=request.client_name,
            identity=request.client_id if is_client_url(request.client_id) else None,
            target=target.shown,
            local=target.local,
            credits=self._defaults.credits,
            days=self._defaults.days,
            sells=self._sells,
            page=page_url(self._facts, visit.secret),
        )

    def _answer(self, request: ConsentRequest, answer: Mapping[str, str]) -> Redirected:
        issuer = self._facts.url(RESOURCE)
        return Redirected(add_answer(request.redirect_uri, answer, state=request.state, issuer=issuer))

    def _again(self, visit: Visit) -> Redirected:
        return Redirected(page_url(self._facts, visit.secret), outside=False)

    def _name(self, request: ConsentRequest) -> str:
        """Return the name that the owner reads in the list of allowances."""
        return f"{request.client_name} ({describe_redirect(request.redirect_uri).shown})"[:MOST_ALLOWANCE_NAME]

    async def _call(self, tool: str, arguments: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """Return the answer of a tool. Raises CallRejected."""
        operation = self._registry.get(tool)
        if operation is None:
            raise NotFound("This server does not offer that.")
        outcome = await self._pipeline.call(operation, arguments, caller)
        answer: dict[str, Any] = json.loads(outcome.rendered.payload)
        return answer

    async def _keep_purchase(self, visit: Visit, bought: ConsentPurchase) -> None:
        await self._store.keep_purchase(visit.request.id, seal_under(visit.secret, bought.write()))

    def _read_purchase(self, visit: Visit) -> ConsentPurchase | None:
        sealed = visit.request.purchase
        opened = None if sealed is None else unseal_with(visit.secret, sealed)
        return None if opened is None else ConsentPurchase.read(opened)


def page_url(facts: SiteFacts, secret: str) -> str:
    """Return the URL of a request's page. Its secret opens nothing without the browser's cookie."""
    return f"{facts.href(CONSENT)}?request={secret}"


def close_page(text: str, title: str = CLOSED, back: str | None = None) -> ConsentView:
    """Return a page that only shows a message."""
    return ConsentView("closed", title=title, problem=text, back=back)


def leave_page(request: ConsentRequest, url: str) -> ConsentView:
    """Return the page from which the person opens the client's program, with its answer, by a click."""
    return ConsentView(
        "leave", client=request.client_name, target=describe_redirect(request.redirect_uri).shown, back=url
    )


def explain(rejected: CallRejected) -> str:
    """Describe a refusal in words for the person at the page."""
    text = rejected.detail
    if isinstance(rejected, InvalidArguments):
        text = text.partition(": ")[2] or text
        text = text[:1].upper() + text[1:]
    return text


def _as(caller: Caller, token: str) -> Caller:
    return Caller(client=caller.client, token=token, agent=caller.agent, transport=caller.transport)


def _typed(form: Mapping[str, str]) -> dict[str, int]:
    """Return the numbers of a refused form, so that the person need not type them again."""
    return {
        name: int(form[name]) for name in ("credits", "days") if form.get(name, "").isdecimal() and len(form[name]) < 8
    }


def _whole(form: Mapping[str, str], name: str, most: int) -> int:
    text = form.get(name, "").strip()
    value = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    if not 1 <= value <= most:
        raise _refuse(name, f"{name.capitalize()} must be a whole number from 1 to {most:,}.")
    return value


def _refuse(name: str, text: str) -> InvalidArguments:
    return InvalidArguments(f"{name}: {text}", errors=[{"loc": name, "msg": text, "type": "value_error"}])
