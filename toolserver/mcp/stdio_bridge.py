"""Bridge standard input and output to a remote service over HTTP.

The token is sent automatically. It comes from the settings or from the credentials file,
where purchases store it. The model never sees it.
"""

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from toolserver.core.caller import TOKEN
from toolserver.core.http import HttpClient, Unreachable
from toolserver.core.visible_text import disarm, disarm_all
from toolserver.errors import ToolserverError
from toolserver.mcp import messages
from toolserver.mcp.credentials import CredentialsDamaged, CredentialsFile
from toolserver.mcp.messages import (
    INTERNAL_ERROR,
    MODERN,
    NEWEST_LEGACY,
    RECEIPTS,
    STATE_REFUSED,
    UNSET,
    Id,
    Message,
)

log = logging.getLogger(__name__)

PATH = "api/mcp"
ANSWER_BYTES = 16 * 1024 * 1024
ANSWER_S = 120.0  # a purchase waits for the chain
CONNECT_S = 5.0
SELLING = ("payment_confirm", "payment_topup")  # the tools whose answers hold a token to keep
SENT_ALONG = "Call it, or any other premium tool: the token is sent along from now on."
SPENT = frozenset({"insufficient_credits", "invalid_token", "expired"})  # codes that another token may fix
_ARMED = re.compile(rb"\\u00(?:[01][0-9a-f]|7f|[89][0-9a-f])|\\[bfr]|\x7f|\xc2[\x80-\x9f]", re.IGNORECASE)
"""Finds where a body may have what a terminal obeys. Hosts print texts of tools as they come."""
_SHOWN_TOKEN = re.compile(TOKEN.pattern.encode())


class Unexpected(ToolserverError):
    """The service's answer is not MCP."""


class TokenPurse:
    """The tokens for one service: the one in the settings first, then those in the credentials file."""

    def __init__(self, origin: str, file: CredentialsFile, configured: str | None = None) -> None:
        self._origin, self._file, self._configured = origin, file, configured

    def read_tokens(self) -> list[str]:
        """Return the tokens in the order in which to try them. Raises CredentialsDamaged."""
        stored = self._file.read_tokens(self._origin)
        first = self._configured
        return stored if first is None else [first, *(token for token in stored if token != first)]

    def keep(self, token: str) -> None:
        """Store a purchased token. Raises CredentialsDamaged, OSError."""
        if token != self._configured:
            self._file.add(self._origin, token)

    def set_behind(self, token: str) -> None:
        """Try the other tokens first from now on. Raises CredentialsDamaged, OSError."""
        self._file.set_behind(self._origin, token)


class StdioBridge:
    """Answers messages by sending each to the service in one request."""

    def __init__(self, url: str, http: HttpClient, purse: TokenPurse, chosen: Mapping[str, str]) -> None:
        query = urlencode(chosen)
        self.path = f"{PATH}?{query}" if query else PATH
        self._url, self._http, self.purse = url, http, purse

    def answer_from_cache(self, message: Message, *, modern: bool) -> bytes | None:
        """Return None: a bridge has no cache."""
        return None

    async def answer(self, line: bytes, message: Message | None) -> bytes | None:
        """Return the service's answer as one line; None if the message needs no answer."""
        value = None if message is None or message.id is UNSET else message.id
        try:
            return await self._ask(line, message)
        except (Unreachable, Unexpected, CredentialsDamaged, OSError) as failure:
            log.warning("no answer from %s: %s", self._url, failure)
            return _explain(f"No answer from {self._url}: {failure}", value, message)

    async def _ask(self, line: bytes, message: Message | None) -> bytes | None:
        """Send the message. If a token itself is refused, the call was not run, so try the next token.

        A receipt, and the state of a call that waited for its payment, belong to one of the tokens.
        """
        calling = message is not None and message.method == "tools/call"
        is_owned = message is not None and _reads_a_receipt(message)
        tokens: list[str | None] = [*self.purse.read_tokens()] if calling or is_owned else []
        answer: bytes | None = None
        for token in tokens or [None]:
            answer = await self._send(line, message, token)
            if answer is None or token is None:
                break
            reply = json.loads(answer)
            if _refusal(reply) in SPENT:
                self.purse.set_behind(token)
            elif not (is_owned and "error" in reply) and not _is_state_refused(reply):
                break
        if answer is not None and message is not None and calling and message.params.name in SELLING:
            answer = self._keep_token(answer)
        return answer

    async def _send(self, line: bytes, message: Message | None, token: str | None) -> bytes | None:
        headers = {"content-type": "application/json", **_protocol_headers(line, message)}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        answer = await self._http.ask("POST", self.path, body=line, headers=headers, within_s=ANSWER_S)
        if not answer.body.strip():
            if answer.status == 202:
                return None
            raise Unexpected(f"status {answer.status} without a body")
        try:
            reply = json.loads(answer.body)
            if is_armed := _ARMED.search(answer.body) is not None:
                reply = disarm_all(reply)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict) or "jsonrpc" not in reply:
            moved = disarm(answer.headers.get("location", ""))
            raise Unexpected(f"status {answer.status}{f', moved to {moved}' if moved else ''}; not an MCP service")
        if reply.get("id") is None and message is not None and message.id is not UNSET:
            return messages.encode({**reply, "id": message.id})  # a refusal of a body that the service did not read
        return messages.encode(reply) if is_armed or b"\n" in answer.body else answer.body

    def _keep_token(self, answer: bytes) -> bytes:
        """Store a purchased token in the credentials file, and put its fingerprint in its place in the answer."""
        message = json.loads(answer)
        result = message.get("result")
        payload = result.get("structuredContent") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(payload, dict):
            return answer
        sold = payload.get("token")
        if result.get("isError") or not isinstance(sold, str) or not TOKEN.fullmatch(sold):
            return answer
        self.purse.keep(sold)
        payload["token"] = f"kept for you; fingerprint {hashlib.sha256(sold.encode()).hexdigest()[:16]}"
        if isinstance(payload.get("next"), dict):
            payload["next"]["how"] = SENT_ALONG
        result["content"] = [{"type": "text", "text": json.dumps(payload, ensure_ascii=False)}]
        return _SHOWN_TOKEN.sub(b"(kept)", messages.encode(message))


def _protocol_headers(line: bytes, message: Message | None) -> dict[str, str]:
    """Return the headers that must repeat the message: the version, and for modern messages method and name."""
    if message is not None and messages.is_modern_message(message) is False:
        return {"mcp-protocol-version": NEWEST_LEGACY}
    try:
        request = json.loads(line)
        params = request.get("params") or {}
        version = (params.get("_meta") or {}).get(messages.VERSION_KEY)
    except (ValueError, AttributeError):
        return {"mcp-protocol-version": NEWEST_LEGACY}
    if not isinstance(version, str) or request.get("method") == "initialize":
        return {"mcp-protocol-version": NEWEST_LEGACY}
    headers = {"mcp-protocol-version": version if version.isascii() else MODERN}
    headers["mcp-method"] = str(request.get("method"))
    name = params.get("name") or params.get("uri")
    return headers if not isinstance(name, str) else {**headers, "mcp-name": messages.encode_header(name)}


def _reads_a_receipt(message: Message) -> bool:
    return message.method == "resources/read" and message.params.uri.startswith(RECEIPTS)


def _is_state_refused(reply: Mapping[str, Any]) -> bool:
    """Return True if the state of a call that waited for its payment does not belong to the token."""
    error = reply.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    return isinstance(data, dict) and data.get("reason") == STATE_REFUSED


def _refusal(reply: Mapping[str, Any]) -> str | None:
    """Return the code of a refused call; None for an answer.

    A service asks a person to pay (`input_required`) only where the credits of the token do not suffice.
    """
    result = reply.get("result")
    if not isinstance(result, dict):
        return None
    if result.get("resultType") == "input_required":
        return "insufficient_credits"
    if result.get("resultType") == "payment_required":
        offer = result.get("paymentRequired")
        return offer.get("error") if isinstance(offer, dict) else None
    if not result.get("isError"):
        return None
    try:
        problem = json.loads(result["content"][0]["text"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return problem.get("error") if isinstance(problem, dict) else None


def _explain(text: str, value: Id | None, message: Message | None) -> bytes | None:
    """Report the failure: to the model if it called a tool, else to the host."""
    if message is None or value is None:
        return None if message is not None else messages.failure(None, INTERNAL_ERROR, text)
    if message.method != "tools/call":
        return messages.failure(value, INTERNAL_ERROR, text)
    core = b'{"content":' + messages.encode([{"type": "text", "text": text}]) + b',"isError":true'
    return messages.response(value, core, messages.end(modern=messages.is_modern_message(message) is True))
