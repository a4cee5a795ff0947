"""What nobody should send, made from what somebody might: valid requests, changed by a seeded random choice.

Every input is the bytes of a whole request. All but those of `raw` are framed well, so that one connection takes many.
"""

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from rest_bridge.openapi.document import openapi
from tests.money.x402.parts import payload
from tests.served import all_tools
from toolserver.registry.site_facts import SiteFacts

DESCRIBED = openapi(all_tools(), SiteFacts(base_url="https://data.example", source="data.example"))["paths"]
PATHS = sorted(DESCRIBED)
POSTED = sorted(path for path, item in DESCRIBED.items() if "post" in item)
TOOLS = [operation.name for operation in all_tools()]
ARGUMENTS = sorted({name for operation in all_tools() for name in operation.input_schema["properties"]})
WORDS = (
    "", " ", "0", "-1", "1", "90.0001", "-0", "1e999", "nan", "Infinity", "0x10", "1_000", "١", "９９", "true", "null",
    "[]", "{}", '{"a":1}', "a,b,,c", ",", "btc", "BTC,ETH", "AAPL", "tornado warning", "ca", "1.1.1.1", "127.0.0.1",
    "0177.0.0.1", "::1", "::ffff:1.2.3.4", "2027-01-15T07:30:00Z", "9999-12-31T23:59:60+99:99", "../../etc/passwd",
    "' OR 1=1 --", "<script>", "${jndi:ldap://x}", "%00", "%", "\0", "\r\nX: y", "\u202e", "\U000e0041", "\u115f",
    "\ufffe", "é" * 300, "a" * 4000, "9" * 400, "wh_0123456789abcdef", "svc_buy_" + "0" * 32, "0x" + "0" * 64,
    "https://example.com/hook", "http://[::1", "24h", "30d", "core", "all", "*", "-", "😀",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *WORDS, None, True, False, 0, -1, 1, 2**31, 2**63, -(2**64), 10**40, 0.1, 1e308, 5e-324, [], {}, [[]], [None],
    {"": ""}, {"a": {"b": [1]}}, ["x"] * 200, {str(n): n for n in range(200)},
)  # fmt: skip
PIECES = (
    b"\r\n", b"\n", b"\0", b"\xff", b":", b" ", b"\t", b"%", b"&", b"=", b'"', b"{", b"[", b",", b"\\u0000", b"1e9",
    b";", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"HTTP/1.1", b"\r\n\r\n", b"0\r\n\r\n", b"\x80",
    b"Expect: 100-continue\r\n", b"Connection: upgrade\r\n", b"Upgrade: h2c\r\n", b"ffffffffffffffffffff\r\n",
)  # fmt: skip
HEADERS = (
    "Accept", "Accept-Encoding", "Authorization", "Idempotency-Key", "If-None-Match", "If-Modified-Since", "Prefer",
    "Range", "X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Request-Id", "Origin", "Host2", "Cookie",
    "User-Agent", "MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-ID", "traceparent",
    "Content-Type", "Content-Encoding", "PAYMENT-SIGNATURE", "X-PAYMENT", "Access-Control-Request-Method",
)  # fmt: skip

GOOD_PAYMENT = payload(40_000)


def changed_bytes(rng: random.Random, data: bytes) -> bytes:
    """The same with a few bytes flipped, removed, doubled or put in."""
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 40))
        change = rng.randrange(5)
        if change == 0:
            data = data[:at] + data[at + length :]
        elif change == 1:
            data = data[:at] + rng.choice(PIECES) + data[at:]
        elif change == 2:
            data = data[:at] + data[at : at + length] * 2 + data[at + length :]
        elif change == 3:
            data = data[:at] + rng.randbytes(length) + data[at + length :]
        else:
            data = data[:at] + bytes(byte ^ 1 << rng.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]
    return data


def changed_json(rng: random.Random, value: Any) -> Any:
    """The same with one member or item changed, removed, added or put deeper."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(list(value))
        kept = dict(value)
        change = rng.randrange(6)
        if change == 0:
            del kept[name]
        elif change == 1:
            kept[rng.choice((*ARGUMENTS, *WORDS))] = rng.choice(VALUES)
        elif change == 2:
            kept[name] = rng.choice(VALUES)
        else:
            kept[name] = changed_json(rng, kept[name])
        return kept
    if isinstance(value, list) and value and rng.random() < 0.6:
        at = rng.randrange(len(value))
        return [*value[:at], changed_json(rng, value[at]), *value[at + 1 :]]
    return [value] if rng.random() < 0.1 else rng.choice(VALUES)


def token68(value: Any) -> str:
    """JSON in base64, as payments travel."""
    return base64.b64encode(json.dumps(value).encode()).decode()


@dataclass(frozen=True)
class Fuzzer:
    """Makes inputs. `token` can pay, `receipt` was signed by the service that is asked."""

    rng: random.Random
    token: str
    receipt: str

    @property
    def kinds(self) -> dict[str, tuple[Callable[[], bytes], float]]:
        """Each kind of input, and its share of all."""
        return {
            "raw HTTP": (self.raw, 0.15),
            "JSON-RPC": (self.rpc, 0.27),
            "REST query": (self.query, 0.2),
            "REST body": (self.body, 0.18),
            "x402 headers": (self.payment, 0.1),
            "receipts and headers": (self.header, 0.1),
        }

    def raw(self) -> bytes:
        """Bytes of which nobody knows where a request ends."""
        if self.rng.random() < 0.1:
            return self.rng.randbytes(self.rng.randrange(1, 400))
        valid = self.rng.choice((self.rpc, self.query, self.body, self.header, self._chunked, self._old))
        sent = valid()
        return changed_bytes(self.rng, sent + valid() if self.rng.random() < 0.1 else sent)

    def rpc(self) -> bytes:
        """A message to the MCP endpoint."""
        message: Any = self.rng.choice((self._tool_call, self._tool_call, self._other_message))()
        for _ in range(self.rng.randrange(3)):
            message = changed_json(self.rng, message)
        body = json.dumps(message).encode()
        if self.rng.random() < 0.3:
            body = changed_bytes(self.rng, body)
        address = "/api/mcp"
        if self.rng.random() < 0.1:
            address += f"?{self.rng.choice(('toolset', 'tools', 'meta', 'x'))}={self._quoted()}"
        more = {"Accept": "application/json, text/event-stream"}
        if self.rng.random() < 0.3:
            more |= self._odd_header()
        return self._request("POST", address, body, more)

    def query(self) -> bytes:
        """A GET with arguments."""
        named = self.rng.choice(PATHS).replace("{", "").replace("}", "")
        path = named if self.rng.random() < 0.9 else named + self._quoted()
        pairs = [f"{self._name()}={self._quoted()}" for _ in range(self.rng.choice((0, 1, 1, 2, 3)))]
        line = path + ("?" + "&".join(pairs) if pairs else "")
        if self.rng.random() < 0.1:
            bad = changed_bytes(self.rng, line.encode())
            line = "/" + "".join(chr(byte) for byte in bad if 0x20 < byte < 0x7F)
        return self._request(self.rng.choice(("GET", "GET", "GET", "HEAD", "OPTIONS")), line, b"", self._maybe_paid())

    def body(self) -> bytes:
        """A POST with a body that is JSON or nearly so."""
        path = self.rng.choice(POSTED).replace("{id}", "wh_0123456789abcdef")
        value: Any = {self._name(): self.rng.choice(VALUES) for _ in range(self.rng.randrange(4))}
        if self.rng.random() < 0.7:
            value = self._good_body(path) | (value if self.rng.random() < 0.3 else {})
        body = json.dumps(changed_json(self.rng, value) if self.rng.random() < 0.8 else value).encode()
        if self.rng.random() < 0.3:
            body = changed_bytes(self.rng, body)
        more = self._maybe_paid() | (self._odd_header() if self.rng.random() < 0.2 else {})
        return self._request(self.rng.choice(("POST", "POST", "POST", "PUT", "DELETE", "PATCH")), path, body, more)

    def payment(self) -> bytes:
        """A call or a top-up that is paid for by a signed authorisation, or nearly so."""
        value: Any = GOOD_PAYMENT
        for _ in range(self.rng.randrange(1, 4)):
            value = changed_json(self.rng, value)
        text = token68(value)
        if self.rng.random() < 0.3:
            text = changed_bytes(self.rng, text.encode()).decode("latin-1")
        more = {self.rng.choice(("PAYMENT-SIGNATURE", "X-PAYMENT")): text}
        if self.rng.random() < 0.3:
            return self._request("POST", "/api/payment/topup", json.dumps({"amount_usd": 2}).encode(), more)
        return self._request("GET", self.rng.choice([p for p in PATHS if p.startswith("/api/pro/")]), b"", more)

    def header(self) -> bytes:
        """Receipts to verify, and calls with odd headers."""
        if self.rng.random() < 0.5:
            text = changed_bytes(self.rng, self.receipt.encode()).decode("latin-1")
            value: Any = {"receipt": text}
            if self.rng.random() < 0.5:
                value = changed_json(self.rng, {"receipt": {"signature": text, "key_id": "x", "core": {"a": 1}}})
            return self._request("POST", "/api/receipt/verify", json.dumps(value).encode(), {})
        more: dict[str, str] = self._maybe_paid()
        for _ in range(self.rng.randrange(1, 4)):
            more |= self._odd_header()
        return self._request("GET", self.rng.choice(PATHS).replace("{", "").replace("}", ""), b"", more)

    def _request(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> bytes:
        """A framed request. What would break the framing is taken out of the values."""
        given = {"Host": "localhost", "Content-Type": "application/json"} | headers
        if body or method in ("POST", "PUT", "PATCH"):
            given["Content-Length"] = str(len(body))
        lines = [f"{name}: {''.join(c for c in value if c not in chr(13) + chr(10))}" for name, value in given.items()]
        head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""])
        return head.encode("utf-8", "surrogateescape") + body

    def _chunked(self) -> bytes:
        body = json.dumps(self._tool_call()).encode()
        head = "POST /api/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        chunks = b"%x\r\n%s\r\n%x;a=b\r\n%s\r\n0\r\n\r\n" % (len(body[:9]), body[:9], len(body[9:]), body[9:])
        return head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunks

    def _old(self) -> bytes:
        version = self.rng.choice(("1.0", "1.1", "2.0", "0.9", "1.2"))
        return f"GET /api/health HTTP/{version}\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n".encode()

    def _name(self) -> str:
        return self.rng.choice(ARGUMENTS) if self.rng.random() < 0.85 else self._quoted() or "x"

    def _quoted(self) -> str:
        word = quote(self.rng.choice(WORDS))
        return word if self.rng.random() < 0.95 else self.rng.choice(("%ff%fe", "%c0%80", "%", "%zz", "+", "%ed%a0%80"))

    def _odd_header(self) -> dict[str, str]:
        value = self.rng.choice((*WORDS, "*/*;q=2", "gzip;q=nan, br;q=", "Bearer ", "bytes=0-", 'W/"x"', "Basic eDp5"))
        return {self.rng.choice(HEADERS): value.replace("\0", "")}

    def _maybe_paid(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.rng.random() < 0.3 else {}

    def _tool_call(self) -> dict[str, Any]:
        arguments = {self.rng.choice(ARGUMENTS): self.rng.choice(VALUES) for _ in range(self.rng.choice((0, 0, 1, 2)))}
        params = {"name": self.rng.choice(TOOLS), "arguments": arguments}
        return {"jsonrpc": "2.0", "id": self.rng.choice((1, "a", 0)), "method": "tools/call", "params": params}

    def _other_message(self) -> dict[str, Any]:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        methods = (
            "tools/list",
            "ping",
            "server/discover",
            "resources/list",
            "prompts/get",
            "notifications/initialized",
        )
        method = self.rng.choice((*methods, "initialize", self.rng.choice(WORDS)))
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": client if method == "initialize" else {}}

    def _good_body(self, path: str) -> dict[str, Any]:
        known: dict[str, dict[str, Any]] = {
            "/api/payment/buy-credits": {"amount_usd": 2, "claim_challenge": "A" * 43},
            "/api/payment/confirm": {"tx_hash": "0x" + "1" * 64, "nonce": "svc_buy_" + "0" * 32},
            "/api/pro/subscribe": {"endpoint": "world-deltas", "webhook_url": "https://127.0.0.1:9/hook", "params": {}},
            "/api/receipt/verify": {"receipt": self.receipt},
            "/api/mcp": self._tool_call(),
        }
        return known.get(path, {"amount_usd": 2})
