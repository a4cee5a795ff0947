"""Traces of a running service, as a collector receives them: OTLP, read by OpenTelemetry's own messages."""

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.live.buying import bought
from tests.live.inbox import Inbox
from tests.live.killing import selling
from tests.live.processes import UNLIMITED, started
from tests.live.test_shared_database import subscribe
from tests.ports import reserve_port

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PAID = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "premium_briefing", "arguments": {}}}
pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


class Collector(ThreadingHTTPServer):
    """Keeps the spans that are sent to it, each with the name of the service that sent it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.spans: list[tuple[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def keep(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {each.key: each.value.string_value for each in group.resource.attributes}
            self.spans += [(named["service.name"], span) for scope in group.scope_spans for span in scope.spans]


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == "/v1/traces"
        assert isinstance(self.server, Collector)
        self.server.keep(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        collector.shutdown()
        collector.server_close()


def attributes_of(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_a_collector_gets_the_trace_of_a_paid_call_and_of_a_webhook_with_the_standard_variables(tmp_path):
    with collecting() as collector, started("world", folder=tmp_path) as world:
        own = {
            **UNLIMITED,
            **selling(world.url),
            "TOOLSERVER_UPSTREAM__VIA": world.url,
            "TOOLSERVER_WEBHOOKS__ALLOW_LOOPBACK": "true",
            "TOOLSERVER_TRACING__ENABLED": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_SERVICE_NAME": "mine",
        }
        inbox = Inbox()
        with started("serve", folder=tmp_path, forked=False, **own) as server:
            token = bought(server, world.url)
            headers = {"authorization": f"Bearer {token}", "traceparent": f"00-{TRACE}-{PARENT}-01"}
            answer = httpx.post(f"{server.url}/api/mcp", json=PAID, headers=headers, timeout=60, trust_env=False)
            assert "isError" not in answer.json()["result"] or not answer.json()["result"]["isError"], answer.text
            id = subscribe(server, token, inbox)
            fire = {"authorization": f"Bearer {token}"}
            httpx.post(f"{server.url}/api/pro/subscribe/{id}/test", headers=fire, trust_env=False).raise_for_status()
            until = time.monotonic() + 20
            while not inbox.ids() and time.monotonic() < until:
                time.sleep(0.1)
            assert inbox.ids(), "the test delivery arrived"
        inbox.close()  # the spans that are left are sent when the service stops
        mine = [span for service, span in collector.spans if service == "mine" and span.trace_id.hex() == TRACE]
        spans = {span.name: span for span in mine}
        assert {"POST /api/mcp", "call", "source", "ledger", "delivery"} <= spans.keys()
        assert spans["POST /api/mcp"].parent_span_id.hex() == PARENT
        by_id = {span.span_id: span for span in mine}
        for name in ("call", "ledger", "delivery"):
            span = spans[name]
            while span.parent_span_id in by_id:
                span = by_id[span.parent_span_id]
            assert span.name == "POST /api/mcp", name
        assert attributes_of(spans["call"])["toolserver.request_id"] == answer.headers["x-request-id"]
        assert attributes_of(spans["delivery"])["http.response.status_code"] == 200
        assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in mine)
        delivered = [span for service, span in collector.spans if service == "mine" and span.name == "delivery"]
        assert [span.kind for span in delivered].count(Span.SPAN_KIND_CLIENT) == 1, "to the receiver of the webhook"
        assert token not in "".join(map(str, collector.spans))
        print(f"\n{len(mine)} spans: {', '.join(sorted(span.name for span in mine))}")


def test_a_collector_that_is_away_costs_no_call(tmp_path):
    away = {
        **UNLIMITED,
        "TOOLSERVER_TRACING__ENABLED": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{reserve_port()}",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    with started("world", folder=tmp_path) as world:
        own = {**away, "TOOLSERVER_UPSTREAM__VIA": world.url}
        with started("serve", folder=tmp_path, forked=False, **own) as server:
            statuses = [
                httpx.get(f"{server.url}/api/health", timeout=10, trust_env=False).status_code for _ in range(20)
            ]
    assert statuses == [200] * 20
