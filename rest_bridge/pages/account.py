"""Writes /account: what is left on a token, what may spend it, and a visitor token for those who have none.

A token stays in the memory of the page. Visitor tokens come from a path that programs use too.
"""

from collections.abc import Mapping
from typing import Any

from rest_bridge import headers as h
from rest_bridge.asgi import ParsedRequest, Scope
from rest_bridge.json_post import json_post
from rest_bridge.pages.render import render_page
from rest_bridge.routes import Mounted
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.calls.visitor_tokens import VisitorIssuer
from toolserver.core.caller import Addresses
from toolserver.core.models import iso
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.site_facts import ACCOUNT, BUY, PAYMENTS, REMEMBERED, VISITOR_TOKENS, Document, SiteFacts
from toolserver.webhooks.credit_alerts import CREDIT_ALERTS


def account_page(registry: Registry, facts: SiteFacts, *, guide: bool = False) -> Document:
    """Return the page. `guide` says whether the document about webhooks is served."""
    paid = [operation for operation in registry.listed if operation.tier is Tier.PREMIUM]
    return render_page(
        "account.html",
        registry,
        facts,
        path=ACCOUNT,
        title="Your account",
        about="Balance, statement, limits, allowances and webhooks of a token, which is kept only in the page.",
        scripts=["account.js"],
        paid_tools=paid,
        delivered=[operation for operation in paid if not operation.input_schema.get("required")],
        credit_alerts=CREDIT_ALERTS,
        sells=facts.sales is not None,
        remembers=REMEMBERED if facts.sales is not None and facts.sales.terms else None,
        visitor_tokens=VISITOR_TOKENS,
        buy=BUY,
        webhook_guide="/docs/webhooks#conditions" if guide else PAYMENTS,
    )


def mount_visitor_tokens(
    facts: SiteFacts, issuer: VisitorIssuer, limits: PersonalLimits, addresses: Addresses
) -> dict[str, Mounted]:
    """Return the app, by path, that answers `POST {"challenge", "solution"}` with `{"token", "expires_at"}`.

    Both members are needed only where a refusal gave a challenge. Requests count toward the
    limit of the payment tools.
    """

    async def answer(scope: Scope, request: ParsedRequest, message: Mapping[str, Any]) -> Mapping[str, Any]:
        peer = scope.get("client") or ("unknown", 0)
        client = addresses.client(peer[0], h.text(request.forwarded))
        await limits.count(client, "visitor token")
        unknown = [name for name in message if name not in ("challenge", "solution")]
        unreadable = [name for name, value in message.items() if not isinstance(value, str)]
        if unknown or unreadable or len(message) == 1:
            errors = [{"loc": name[:80], "msg": "is no text, or unknown", "type": "value_error"} for name in message]
            raise InvalidArguments("Send nothing, or `challenge` and `solution` as texts.", errors=errors)
        issued = await issuer.issue(client, message.get("challenge"), message.get("solution"))
        return {"token": issued.token, "expires_at": iso(issued.expires_at)}

    return {VISITOR_TOKENS: json_post(answer, facts)}
