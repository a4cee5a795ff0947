"""Sign deliveries by the rule of our specification and by Standard Webhooks, both over the same bytes.

A secret `whsec_<32 hex digits>` serves both. Our own rule uses the whole text as its key;
Standard Webhooks decodes the part after the prefix as base64, which yields 24 bytes.
"""

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"
SIGNATURE_HEADER = "X-Service-Signature"
PREVIOUS_HEADER = "X-Service-Signature-Previous"
TIMESTAMP_HEADER = "X-Service-Timestamp"
SUBSCRIPTION_HEADER = "X-Service-Subscription"
RECEIPT_HEADER = "X-Service-Receipt-Id"
TOLERANCE_S = 300


def new_secret() -> str:
    """Return a new signing secret with 128 random bits."""
    return PREFIX + secrets.token_hex(16)


def sign_service(secret: str, timestamp: int, body: bytes) -> str:
    """Return the value of X-Service-Signature: hex HMAC-SHA256 over the timestamp, a dot and the body."""
    return "sha256=" + hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()


def sign_standard(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return one Standard Webhooks signature: base64 HMAC-SHA256 over id, timestamp and body, joined by dots."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = hmac.new(key, b"%s.%d." % (message_id.encode(), timestamp) + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(signed).decode()


def signature_headers(
    secret: str, previous: str | None, *, message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the headers that prove who sent `body`, at a time in Unix seconds.

    While a secret is being rotated (`previous` is the old one), Standard Webhooks gets both
    signatures in its single header. Our own rule puts the older signature into a separate
    header.
    """
    keys = [secret] if previous is None else [secret, previous]
    headers = {
        SIGNATURE_HEADER: sign_service(secret, timestamp, body),
        TIMESTAMP_HEADER: str(timestamp),
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign_standard(key, message_id, timestamp, body) for key in keys),
    }
    return headers if previous is None else {**headers, PREVIOUS_HEADER: sign_service(previous, timestamp, body)}


def verify_service(secret: str, signature: str, timestamp: str, body: bytes, *, now: float) -> bool:
    """Check what a receiver checks: the signature in constant time, and a timestamp at most five minutes away."""
    if not timestamp.isascii() or not timestamp.isdigit() or abs(now - int(timestamp)) > TOLERANCE_S:
        return False
    return hmac.compare_digest(sign_service(secret, int(timestamp), body).encode(), signature.encode())
