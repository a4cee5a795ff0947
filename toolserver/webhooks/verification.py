"""Verify that a receiver of MCP Events wants what a stranger may have asked for in its name: it repeats a nonce.

The verification carries no data and costs nothing. It is signed, so that the receiver knows whose question it is.
"""

import hmac
import secrets
from typing import Any

import msgspec

from toolserver.webhooks.delivery import WebhookSender
from toolserver.webhooks.egress import TargetRefused
from toolserver.webhooks.events import SUBSCRIPTION_HEADER
from toolserver.webhooks.records import Attempt, WebhookSubscription
from toolserver.webhooks.signing import SecretBoxKey, standard_headers


async def verify_receiver(
    sender: WebhookSender, key: SecretBoxKey, subscription: WebhookSubscription, now: int
) -> Attempt:
    """Ask the receiver of a subscription of MCP Events to repeat a nonce, once. The caller holds a turn of its host.

    An answer of another kind is the error `challenge_failed`. What the receiver answered is shown to nobody.
    """
    terms, unsealed, nonce = subscription.event_terms, key.unseal(subscription.sealed), secrets.token_urlsafe(32)
    assert terms is not None, "a subscription of MCP Events"
    body = msgspec.json.encode({"type": "verification", "challenge": nonce})
    headers = standard_headers(
        unsealed.secret,
        unsealed.older(now),
        message_id=f"msg_verification_{secrets.token_hex(16)}",
        timestamp=now // 1000,
        body=body,
    )
    try:
        url = sender.lane.guard.check_url(subscription.url)
    except TargetRefused:
        return Attempt(None, "target_refused", 0)
    attempt, answer = await sender.ask(url, body, {**headers, SUBSCRIPTION_HEADER: terms.id})
    if attempt.delivered and not repeats(answer, nonce):
        return attempt._replace(error="challenge_failed")
    return attempt


def repeats(answer: bytes, nonce: str) -> bool:
    """Return True if an answer is a JSON object whose `challenge` is the nonce. Compares in constant time."""
    try:
        said: Any = msgspec.json.decode(answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    repeated = said.get("challenge") if isinstance(said, dict) else None
    return isinstance(repeated, str) and hmac.compare_digest(repeated.encode(), nonce.encode())
