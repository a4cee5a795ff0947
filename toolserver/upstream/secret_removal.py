"""Removes secrets from recorded exchanges: API keys wherever they occur, and headers that are entirely secret."""

import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from toolserver.core.recorded_exchange import REMOVED, RecordedExchange
from toolserver.upstream.http_sender import SHORTEST_KEY
from toolserver.upstream.source import Keys

SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "set-cookie2"})

LONGEST_WORD = 20  # characters


class SecretRemover:
    """Removes the values of these keys from exchanges, in every form in which they may be written."""

    def __init__(self, keys: Keys) -> None:
        written = {form for value in keys.values() for secret in _secrets_of(value) for form in _forms_of(secret)}
        self._forms = sorted(written, key=len, reverse=True)  # a secret may begin with another secret
        self._bytes = [form.encode() for form in self._forms]

    def clean(self, exchange: RecordedExchange) -> RecordedExchange:
        """Return the exchange with secrets replaced by REMOVED."""
        return replace(
            exchange,
            url=self.clean_text(exchange.url),
            sent_headers={name: self._clean_header(name, value) for name, value in exchange.sent_headers.items()},
            sent_json=self._clean_json(exchange.sent_json),
            headers=[(name, self._clean_header(name, value)) for name, value in exchange.headers],
            body=self._clean_bytes(exchange.body),
            failure=self.clean_text(exchange.failure),
        )

    def clean_text(self, text: str) -> str:
        """Return a text without secrets."""
        for form in self._forms:
            text = text.replace(form, REMOVED)
        return text

    def is_in(self, body: bytes) -> bool:
        """Return True if a body contains one of the keys."""
        return any(form in body for form in self._bytes)

    def _clean_header(self, name: str, value: str) -> str:
        return REMOVED if name.lower() in SECRET_HEADERS else self.clean_text(value)

    def _clean_json(self, value: Any) -> Any:
        return None if value is None else json.loads(self.clean_text(json.dumps(value, ensure_ascii=False)))

    def _clean_bytes(self, body: bytes) -> bytes:
        for form in self._bytes:
            body = body.replace(form, REMOVED.encode())
        return body


def _secrets_of(value: str) -> Iterable[str]:
    """Yield the secret parts of a key's value: the whole value, or of an address the parts that its host issued."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https", "ws", "wss"):
        if len(value) >= SHORTEST_KEY:  # shorter ones are switches
            yield value
        return
    pieces = [parts.username, parts.password, *(text for _, text in parse_qsl(parts.query)), *parts.path.split("/")]
    yield from (piece for piece in pieces if piece and _looks_random(piece))


def _looks_random(piece: str) -> bool:
    """Return True if a part of an address may be a key rather than a word."""
    return len(piece) >= LONGEST_WORD or (len(piece) >= SHORTEST_KEY and any(letter.isdigit() for letter in piece))


def _forms_of(secret: str) -> Iterable[str]:
    """Yield a secret in its forms in headers and text, in URLs, in JSON, and in basic authentication."""
    yield secret
    yield quote(secret)
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    for pair in (secret, f"{secret}:", f":{secret}"):
        yield base64.b64encode(pair.encode()).decode().rstrip("=")
