"""The page on which a person lets an OAuth client spend credits. It works without a script and loads nothing else."""

import io

from markupsafe import Markup

from rest_bridge.pages.render import render_text
from rest_bridge.static_files import static_path
from toolserver.core.consent_page import ConsentView, DrawConsent
from toolserver.core.credit_price import CREDITS_PER_USD
from toolserver.registry.site_facts import PAYMENTS, SiteFacts


def make_consent_page(facts: SiteFacts) -> DrawConsent:
    """What draws the page of a service."""

    def draw(view: ConsentView) -> bytes:
        return render_text(
            "consent.html",
            view=view,
            facts=facts,
            title=view.title if view.step == "closed" else f"Connect {view.client}",
            stylesheet=facts.href(static_path("css/consent.css")),
            credits_per_usd=CREDITS_PER_USD,
            qr=draw_qr(view.payment.uri) if view.step == "pay" and view.payment else "",
            documentation=PAYMENTS,
        ).encode()

    return draw


def draw_qr(text: str) -> Markup:
    """A QR code as SVG, dark on white in both colour schemes, as cameras expect it."""
    import segno

    drawn = io.BytesIO()
    code = segno.make(text, error="m", micro=False)
    code.save(drawn, kind="svg", xmldecl=False, svgns=False, omitsize=True, border=2, title="Payment as a QR code")
    return Markup(drawn.getvalue().decode())  # nosec B704 # segno writes modules, not the text
