"""What programs of agents do with a service in this network: sign in by a document of their own, and pay for one call.

The document is at a name that leads to a public address, which this machine has in this network alone. The payment is
signed by the official client of x402, and settled by a facilitator that is reached by its name.
"""

import base64
import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any

import httpx
from anyio import run

from tests.live.processes import Program
from tests.money.x402.official import PAYER_KEY, wallet
from tests.money.x402.parts import PAY_TO
from toolserver.mcp.oauth.metadata import AUTHORIZE, RESOURCE, SERVER_WELL_KNOWN
from toolserver.money.x402 import wire

AGENT, PUBLIC = "agent.example", "1.1.1.1"  # an address that live mode probes, so it is of this machine here
PROGRAM = f"https://{AGENT}/program.json"
NAME = "Rehearsing agent"
BACK = "http://127.0.0.1:3000/callback"
FACILITATOR = "x402.example"
INSIDE = "api.weather.gov"  # leads to 127.0.0.1 in this network, as a name of an attacker may
PAID_FOR = "/api/pro/macro"

SELLING = {
    "TOOLSERVER_X402__ENABLED": "true",
    "TOOLSERVER_X402__FACILITATOR_URL": f"https://{FACILITATOR}",
    "TOOLSERVER_X402__PAY_TO": f"0x{PAY_TO.hex()}",
}


def describe_site(folder: Path) -> str:
    """Return the server of nginx for the agent's site. Its workers cannot read folders of tests."""
    document = json.dumps({"client_id": PROGRAM, "client_name": NAME, "redirect_uris": [BACK]})
    certificates = f"ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;"
    program = f"location = /program.json {{ default_type application/json; return 200 '{document}'; }}"
    return f"server {{ listen 443 ssl http2; server_name {AGENT}; {certificates} {program} }}\n"


def sign_in(service: Program) -> dict[str, Any]:
    """Begin to sign in as the program, and as one whose document is inside. Return the statuses and what pages say."""
    with httpx.Client(base_url=service.url, follow_redirects=True, timeout=30) as browser:
        offered = browser.get(SERVER_WELL_KNOWN + RESOURCE).raise_for_status().json()
        good, inside = (ask_for(browser, service, id) for id in (PROGRAM, f"https://{INSIDE}/program.json"))
    return {
        "offered": offered["client_id_metadata_document_supported"],
        "good": [good.status_code, words_of(good)],
        "inside": [inside.status_code, words_of(inside)],
    }


def ask_for(browser: httpx.Client, service: Program, client_id: str) -> httpx.Response:
    """Send an authorization request and follow it to its page."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(b"v" * 64).digest()).rstrip(b"=").decode()
    asked = {"response_type": "code", "client_id": client_id, "redirect_uri": BACK, "state": "s"}
    asked |= {"code_challenge": challenge, "code_challenge_method": "S256", "resource": service.url + RESOURCE}
    return browser.get(AUTHORIZE, params=asked)


def words_of(page: httpx.Response) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.text)).split())


def pay_for_one_call(service: Program) -> dict[str, Any]:
    """Call a paid tool without a token, sign what it offers, and call again. Return what was offered and what came."""
    with httpx.Client(base_url=service.url, timeout=30) as http:
        refused = http.get(PAID_FOR)
        offer = wire.unheader(refused.headers["payment-required"])
        paid = http.get(PAID_FOR, headers={"payment-signature": run(sign, offer)})
        again = http.get(PAID_FOR, headers={"payment-signature": paid.request.headers["payment-signature"]})
    return {
        "refused": refused.status_code,
        "status": paid.status_code,
        "endpoint": paid.json().get("endpoint"),
        "settled": wire.unheader(paid.headers["payment-response"]) if "payment-response" in paid.headers else None,
        "again": [again.status_code, again.content == paid.content],
    }


async def sign(offer: dict[str, Any]) -> str:
    """Return the value of the header that pays for an offer, as the official client signs it."""
    from x402.schemas import PaymentRequired

    signed = await wallet(PAYER_KEY).create_payment_payload(PaymentRequired.model_validate(offer))
    return wire.header(signed.model_dump(mode="json", by_alias=True, exclude_none=True))
