"""Serves receipts over plain HTTP: the keys, a caller's own receipts, the log of uncharged calls."""

import hashlib
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rest_bridge import headers as h
from rest_bridge.asgi import Header, ParsedRequest, PlainReply, Scope, from_query
from rest_bridge.etag import etag_of, holds_etag
from rest_bridge.pages.render import render_page
from rest_bridge.routes import Handler
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.core.caller import Addresses, Caller, bearer, well_formed
from toolserver.core.waiting_room import waiting_client
from toolserver.errors import InvalidArguments, InvalidToken, MissingToken, NotFound, ReceiptArchived
from toolserver.money.receipts.log import HOUR_SHAPE, read_hour
from toolserver.money.receipts.merkle import tile_at
from toolserver.money.receipts.service import LOG_PATH, ReceiptService
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.site_facts import PAYMENTS, RECEIPT_KEY, RECEIPT_KEYS, RECEIPTS, Document, SiteFacts

ABOUT = "Check the signed receipt of a paid call in your browser. No part of it is sent anywhere."


def receipts_page(registry: Registry, facts: SiteFacts, *, guide: bool = False) -> Document:
    """Return the page. `guide` says whether the document about receipts is served."""
    paid = [operation for operation in registry.listed if operation.tier is Tier.PREMIUM]
    return render_page(
        "receipts.html",
        registry,
        facts,
        path=RECEIPTS,
        title="Verify a receipt",
        about=ABOUT,
        scripts=["receipts.js"],
        example=paid[0] if paid else next(iter(registry)),
        key_set=RECEIPT_KEYS,
        guide="/docs/receipts" if guide else PAYMENTS,
        guide_title="Receipts and the no-charge log" if guide else "Credits and payments",
    )


TokenCheck = Callable[[str], Awaitable[object]]
Identify = Callable[[Caller], Awaitable[str]]

KEY_SET, KEY = RECEIPT_KEYS, RECEIPT_KEY
RECEIPT = "/api/receipt/"
VERIFY = "/api/receipt/verify"

_ID = re.compile(r"rcpt_[0-9a-f]{32}")
_HASH = re.compile(r"[0-9a-f]{64}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
_KEYS_FOR = b"public, max-age=3600"
_FOREVER = b"public, max-age=31536000, immutable"
_A_WHILE = b"public, max-age=3600"
_SECONDS = b"public, max-age=5"
_BYTES: Header = (b"content-type", b"application/octet-stream")
_TEXT: Header = (b"content-type", b"text/plain; charset=utf-8")


def receipt_handlers(
    evidence: ReceiptService,
    limits: PersonalLimits | None = None,
    addresses: Addresses | None = None,
    check_token: TokenCheck | None = None,
    identify: Identify | None = None,
) -> dict[str, Handler]:
    """Return handlers by path. Reading receipts counts toward the limit of the payment tools; keys and tiles do not.

    `check_token` raises PaymentRequired for a token that the ledger does not know. `identify`
    returns the client that a call counts for: the payer of a valid token, or the address.
    """
    of = _Pages(evidence, limits, addresses or Addresses([]), check_token, identify)
    return {
        KEY_SET: of.key_set,
        KEY: of.key,
        VERIFY: of.verify,
        RECEIPT + "*": of.receipt,
        LOG_PATH + "/checkpoint": of.checkpoint,
        LOG_PATH + "/inclusion": of.inclusion,
        LOG_PATH + "/consistency": of.consistency,
        LOG_PATH + "/bucket": of.bucket,
        LOG_PATH + "/tile/*": of.tile,
    }


class _Pages:
    def __init__(
        self,
        evidence: ReceiptService,
        limits: PersonalLimits | None,
        addresses: Addresses,
        check_token: TokenCheck | None,
        identify: Identify | None,
    ) -> None:
        self._evidence, self._limits, self._addresses = evidence, limits, addresses
        self._check_token, self._identify = check_token, identify

    async def _count(self, scope: Scope, request: ParsedRequest, token: str | None = None) -> None:
        """Count a call for its address, or for the payer of a valid token. Raise RateLimited over the limit."""
        if self._limits is not None:
            peer = scope.get("client") or ("unknown", 0)
            forwarded = request.forwarded.decode("latin-1") if request.forwarded else None
            client = self._addresses.client(peer[0], forwarded)
            waiting_client.set(client)
            if token is not None and self._identify is not None:
                client = await self._identify(Caller(client, token))
            await self._limits.count(client, "receipt")

    async def key_set(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Return every key that has ever signed a receipt."""
        return _reply_keys(self._evidence.key_set(), request)

    async def key(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Return the key in use."""
        return _reply_keys(self._evidence.key_in_use(), request)

    async def verify(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Return the verdict on a stored receipt, by `?id=`, without its contents."""
        await self._count(scope, request)
        id = _read_id(from_query(scope["query_string"]).get("id", ""))
        verdict = await self._evidence.verify_stored(id)
        if verdict is None:
            raise await self._make_missing(id)
        return _reply_json(verdict, h.NO_STORE)

    async def receipt(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Return a stored receipt to the holder of the token that paid, even if the token has since expired.

        Any other token gets NotFound, and an unknown token is refused.
        """
        token = bearer(request.authorization.decode("latin-1") if request.authorization else None)
        await self._count(scope, request, token)
        if token is None:
            raise MissingToken("A receipt is shown only to the holder of the token that paid. Send that token.")
        if not well_formed(token):
            raise InvalidToken("The token is malformed or unknown.")
        id = scope["path"].removeprefix(RECEIPT)
        receipt = await self._evidence.receipt(id, token)
        if receipt is None:
            if self._check_token is not None:
                await self._check_token(token)
            raise await self._make_missing(id)
        return _reply_json(receipt, h.PRIVATE)

    async def _make_missing(self, id: str) -> NotFound | ReceiptArchived:
        """Return the error for a receipt that is not stored: it is in an archive, or there never was one."""
        month = await self._evidence.find_month(id)
        return _make_not_found() if month is None else ReceiptArchived(f"It is in the archive of {month}.", month=month)

    async def checkpoint(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Return the signed state of the log."""
        signed = await self._evidence.log.checkpoint()
        return PlainReply(200, signed.note.encode(), [_TEXT, (b"cache-control", _SECONDS)])

    async def tile(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Return a tile of the tree or of the entries. The content of a served tile never changes."""
        tile = tile_at(scope["path"].removeprefix(LOG_PATH + "/tile/"))
        body = await self._evidence.log.tile(tile) if tile is not None else None
        if tile is None or body is None:
            raise NotFound("The log has no such tile.")
        return PlainReply(200, body, [_BYTES, (b"cache-control", _FOREVER if tile.full else _A_WHILE)])

    async def inclusion(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Return the proof that the log contains a leaf at a given size."""
        index, size = _read_numbers(scope, "index", "size")
        path = await self._evidence.log.inclusion(index, size)
        return _reply_proof({"index": index, "size": size}, path)

    async def consistency(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Return the proof that the log at one size is a prefix of the log at another."""
        first, second = _read_numbers(scope, "first", "second")
        path = await self._evidence.log.consistency(first, second)
        return _reply_proof({"first": first, "second": second}, path)

    async def bucket(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Return the proof that the log contains the bucket that a receipt names, and the receipt if its hash is given.

        Raises NotFound if there is none. If the hour is not in the log yet, `Retry-After` says when it will be.
        """
        await self._count(scope, request)
        query, log = from_query(scope["query_string"]), self._evidence.log
        hour, key, receipt = read_hour(query.get("hour", "")), _read_hash(query, "key"), None
        if hour is None:
            if re.fullmatch(HOUR_SHAPE, query.get("hour", "")):  # 30 February, for example
                raise NotFound("That hour does not exist in the calendar.")
            raise _make_refusal("hour", "must be an hour in UTC, such as 2027-01-15T08:00:00Z")
        if "receipt" in query:
            receipt = _read_hash(query, "receipt")
        proof = await log.prove_bucket(hour, key, receipt)
        if proof is not None:
            return _reply_json(proof, h.NO_STORE)
        seconds = await log.due_in(hour)
        if seconds is None:
            raise NotFound("The log has no such bucket, or the bucket does not contain that receipt.")
        raise NotFound("That hour is not in the log yet.", headers={"Retry-After": str(math.ceil(seconds))})


def _reply_keys(document: Mapping[str, Any], request: ParsedRequest) -> PlainReply:
    body = _write_body(document)
    tag = etag_of(hashlib.sha256(body).hexdigest()[:32], None)
    headers = [h.JSON_TYPE, (b"cache-control", _KEYS_FOR), (b"etag", tag)]
    same = request.if_none_match is not None and holds_etag(request.if_none_match, tag)
    return PlainReply(304, b"", headers) if same else PlainReply(200, body, headers)


def _reply_proof(about: Mapping[str, int], path: list[bytes] | None) -> PlainReply:
    if path is None:
        raise NotFound("The log has no such state.")
    return _reply_json({**about, "path": [step.hex() for step in path]}, (b"cache-control", _FOREVER))


def _reply_json(value: Mapping[str, Any], caching: Header) -> PlainReply:
    return PlainReply(200, _write_body(value), [h.JSON_TYPE, caching])


def _write_body(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _read_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise _make_refusal("id", "must be `rcpt_` followed by 32 hexadecimal digits")
    return text


def _read_hash(query: Mapping[str, str], name: str) -> bytes:
    if not _HASH.fullmatch(query.get(name, "")):
        raise _make_refusal(name, "must be 64 hexadecimal digits")
    return bytes.fromhex(query[name])


def _read_numbers(scope: Scope, *names: str) -> list[int]:
    query = from_query(scope["query_string"])
    for name in names:
        if not _NUMBER.fullmatch(query.get(name, "")):
            raise _make_refusal(name, "must be a whole number")
    return [int(query[name]) for name in names]


def _make_refusal(name: str, what: str) -> InvalidArguments:
    return InvalidArguments(f"{name}: {what}", errors=[{"loc": name, "msg": what, "type": "value_error"}])


def _make_not_found() -> NotFound:
    return NotFound("There is no such receipt, or another token paid for it.")
