"""Draws the page on which a person lets an OAuth client spend credits. It works without a script.

Only while it waits for the chain, a script checks for changes so that the page does not have
to reload. If a network has got several visitor tokens today, another script does the work that
the next one takes.
"""

from rest_bridge.pages.qr import draw_qr
from rest_bridge.pages.render import render_text
from rest_bridge.static_files import static_path
from toolserver.core.consent_page import ConsentView, DrawConsent
from toolserver.money.purchases.credit_price import CREDITS_PER_USD
from toolserver.registry.site_facts import PAYMENTS, SiteFacts


def make_consent_page(facts: SiteFacts) -> DrawConsent:
    """Return the function that draws the page of a service."""

    def draw(view: ConsentView) -> bytes:
        return render_text(
            "consent.html",
            view=view,
            facts=facts,
            title=_choose_title(view),
            script=facts.href(static_path("js/consent.js")),
            work_script=facts.href(static_path("js/consent_work.js")),
            credits_per_usd=CREDITS_PER_USD,
            qr=draw_qr(view.payment.uri) if view.step == "pay" and view.payment else "",
            documentation=PAYMENTS,
        ).encode()

    return draw


def _choose_title(view: ConsentView) -> str:
    if view.step == "closed":
        return view.title
    return f"{'Return to' if view.step == 'leave' else 'Connect'} {view.client}"
