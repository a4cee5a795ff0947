"""Draws QR codes of payments on this server, so that no other service learns what is bought."""

import io
import re

from markupsafe import Markup

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope, from_query
from rest_bridge.serving import ServedDocument
from toolserver.errors import InvalidArguments
from toolserver.registry.site_facts import Document

_PAYMENT = re.compile(r"ethereum:0x[0-9a-fA-F]{40}@[0-9]{1,9}/transfer\?address=0x[0-9a-fA-F]{40}&uint256=[0-9]{1,16}")


def draw_qr(text: str) -> Markup:
    """Return a QR code as inline SVG, dark on white in both colour schemes, as cameras expect."""
    return Markup(_draw(text, alone=False).decode())  # nosec B704 # segno writes modules, not the text


async def serve_qr(scope: Scope, request: ParsedRequest) -> PlainReply:
    """Serve the QR code of `?payment=`, an EIP-681 transfer. Raise InvalidArguments for any other text."""
    payment = from_query(scope["query_string"]).get("payment", "")
    if not _PAYMENT.fullmatch(payment):
        message = "must be an EIP-681 transfer"
        errors = [{"loc": "payment", "msg": message, "type": "value_error"}]
        raise InvalidArguments(f"payment: {message}", errors=errors)
    picture = Document(_draw(payment, alone=True), "image/svg+xml")
    return ServedDocument(picture).reply(request, cache_control=b"private, max-age=3600")


def _draw(text: str, *, alone: bool) -> bytes:
    import segno  # only where something is sold

    drawn = io.BytesIO()
    code = segno.make(text, error="m", micro=False)
    title = "Payment as a QR code"
    code.save(drawn, kind="svg", xmldecl=False, svgns=alone, omitsize=True, border=2, title=title)
    return drawn.getvalue()
