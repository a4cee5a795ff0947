"""Writes the operators' page: what needs attention, today's money, what is pending. It has no script and no form."""

from typing import Any

from rest_bridge.pages.day_strip import draw_strip, write_share
from rest_bridge.pages.render import render_text
from rest_bridge.pages.status import STATE_CLASSES, STATE_WORDS, write_span, write_uptime
from rest_bridge.static_files import static_path
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
        stylesheet=static_path("css/style.css"),
        icon=static_path("favicon.svg"),
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
