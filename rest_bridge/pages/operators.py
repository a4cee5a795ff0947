"""Serves the operators' page at the address of the metrics: only to this machine, and never through the public face.

Another site could point its own name at this address (DNS rebinding), and a proxy could make
the page public. Both are refused. The page says what needs attention, today's money, and what
is pending. It has no script and no form.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from rest_bridge import headers as h
from rest_bridge.asgi import PlainReply, Receive, Scope, Send, parse_request, send
from rest_bridge.discovery import as_json
from rest_bridge.headers import without_entity
from rest_bridge.pages.day_strip import draw_strip, write_share
from rest_bridge.pages.render import render_text
from rest_bridge.pages.status import STATE_CLASSES, STATE_WORDS, every_few_seconds, write_span, write_uptime
from rest_bridge.routes import Handler
from rest_bridge.static_files import PREFIX, static_handler
from toolserver.clock import Clock
from toolserver.errors import NotFound
from toolserver.registry.site_facts import HTML, SOURCES_PAGE, STATUS, Document, SiteFacts, duration

CASE_WORDS = {
    "unapplied": "money that bought nothing",
    "undone": "a payment undone on the chain",
    "unsettled": "a signed payment that is not settled",
    "uncredited": "a signed payment without its credits",
    "unanswered": "a signed payment whose call was not answered",
    "disputed": "RPC servers disagree about the payment",
    "held": "held because it exceeds a ceiling",
}
WAYS = {
    "by_transfer": "by transfer",
    "by_x402_topup": "signed, to top up (x402)",
    "by_x402_call": "signed, for a call (x402)",
    "uncredited_x402": "signed, not credited",
    "unapplied": "bought nothing",
    "undone_on_chain": "undone on the chain",
    "paid_back": "paid back",
    "to_pay_back": "to pay back",
}


def operators_page(facts: SiteFacts, report: dict[str, Any]) -> Document:
    """Return the page of an operators' report. Healthy sources are listed only on the public page."""
    unwell = [source for source in report["sources"] if source["state"] != "up" or source["past_day"]["fresh"] != 1]
    page = render_text(
        "operators.html",
        facts=facts,
        report=report,
        verdict=write_advice_verdict(report),
        unwell=unwell,
        case_words=CASE_WORDS,
        ways=WAYS,
        state_words=STATE_WORDS,
        state_classes=STATE_CLASSES,
        draw_strip=draw_strip,
        write_share=write_share,
        write_span=write_span,
        write_usd=write_usd,
        status_url=facts.url(STATUS),
        sources_url=facts.url(SOURCES_PAGE),
        shown_uptime=write_uptime(report["service"]["uptime_s"]),
        duration=duration,
    )
    return Document(page.encode(), HTML)


def write_advice_verdict(report: dict[str, Any]) -> str:
    """Say in a sentence whether an operator has to act."""
    urgent = sum(each["urgent"] for each in report["advice"])
    if urgent:
        return f"{urgent} {'findings need' if urgent > 1 else 'finding needs'} your attention."
    return (
        "Nothing needs your attention; there is some advice." if report["advice"] else "Nothing needs your attention."
    )


def write_usd(amount: str | float) -> str:
    """Return US dollars with two decimals, or with six if two would hide a part."""
    value = float(amount)
    return f"{value:,.2f}" if round(value, 2) == value else f"{value:,.6f}"


PAGE, AS_JSON = "/", "/operators.json"
NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
PROXY_MARKS = frozenset({b"x-forwarded-for", b"x-forwarded-host", b"forwarded", b"via"})
_ALWAYS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]

ReadReport = Callable[[], Awaitable[dict[str, Any]]]


class OperatorsFace:
    """The page and its JSON as an ASGI callable. `bound_to` is the address it listens on;
    `is_private` says whether only this machine can reach that address.
    """

    def __init__(self, facts: SiteFacts, read: ReadReport, clock: Clock, *, bound_to: str, is_private: bool) -> None:
        self._bound_to, self._is_private = bound_to, is_private
        self._pages: dict[str, Handler] = {
            PAGE: every_few_seconds(lambda report: operators_page(facts, report), read, clock),
            AS_JSON: every_few_seconds(as_json, read, clock),
        }
        self._static = static_handler()

    async def __call__(self, scope: Scope, receive: Receive, send_: Send) -> None:
        refused = self._refuse(scope)
        reply = refused or await self._answer(scope)
        headers = [*_ALWAYS, *reply.headers, (b"content-length", b"%d" % len(reply.body))]
        if reply.status == 304:
            headers = without_entity(headers)
        await send(send_, reply.status, headers, reply.body, head=scope["method"] == "HEAD" or reply.status == 304)

    def _refuse(self, scope: Scope) -> PlainReply | None:
        """Return the refusal of a request that may come from another machine, or None."""
        headers = dict(scope["headers"])
        name = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._is_private:
            return _say(
                403,
                f"The operators' page is available only on this machine, but metrics.host is {self._bound_to}."
                " Set it to 127.0.0.1.",
            )
        if name.rpartition(":")[0] not in NAMES and name not in NAMES:
            return _say(421, "This server does not answer to that host name.")
        if PROXY_MARKS & headers.keys():
            return _say(403, "This page is not available through a proxy. Open it on this machine or through `ssh -L`.")
        return None if scope["method"] in ("GET", "HEAD") else _say(405, "This page is read-only.")

    async def _answer(self, scope: Scope) -> PlainReply:
        path: str = scope["path"]
        handler = self._static if path.startswith(PREFIX) else self._pages.get(path)
        try:
            if handler is None:
                raise NotFound("There is nothing at this address.")
            reply = await handler(scope, parse_request(scope))
        except NotFound as error:
            return _say(404, f"{error.detail} Try / or /metrics.")
        if handler is not self._static:
            reply.headers = [header for header in reply.headers if header[0] != h.NO_STORE[0]] + [h.NO_STORE]
        return reply


def _say(status: int, text: str) -> PlainReply:
    return PlainReply(status, f"{text}\n".encode(), [(b"content-type", b"text/plain; charset=utf-8"), h.NO_STORE])
