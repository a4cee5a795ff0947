"""Traces of calls: spans, where they come from and go to, and the lines of the log that belong to them."""

import asyncio
import json
import logging
import sys
import threading
from collections.abc import Iterator

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.arranged import client_of
from tests.calls.shop import BASE_URL, BEARER, shop
from toolserver.core import tracing
from toolserver.core.logging import JsonLines
from toolserver.core.tracing import TracingMissing
from toolserver.serving.connections import STOP_S

MOST_S = 15 - STOP_S  # of the 15 seconds of a stop, requests in progress have the rest
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PAID = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "premium_report", "arguments": {}}}


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.switch_on(provider)
    try:
        yield exporter
    finally:
        tracing.switch_off()
        provider.shutdown()


async def test_a_paid_mcp_call_is_one_trace_of_call_source_ledger_and_delivery(tmp_path, exporter):
    async with shop(tmp_path) as open_shop:
        face = open_shop.app

        async def traced(scope, receive, send):
            await tracing.serve(face, scope, receive, send)

        async with client_of(traced, BASE_URL) as client:
            sent = {**BEARER, "traceparent": f"00-{TRACE}-{PARENT}-01"}
            answer = await client.post("/api/mcp", json=PAID, headers=sent)
        assert not answer.json()["result"].get("isError"), answer.text
        spans = {span.name: span for span in exporter.get_finished_spans() if f"{span.context.trace_id:032x}" == TRACE}
    assert {"POST /api/mcp", "call", "source", "ledger", "delivery"} <= spans.keys()
    assert f"{spans['POST /api/mcp'].parent.span_id:016x}" == PARENT
    assert spans["call"].attributes["toolserver.tool"] == "premium_report"
    assert spans["call"].attributes["toolserver.request_id"] == answer.headers["x-request-id"]
    assert spans["delivery"].attributes["http.response.status_code"] == 200
    assert "svc_live" not in "".join(span.to_json() for span in exporter.get_finished_spans())


def test_a_line_of_the_log_names_the_trace_and_the_request(exporter):
    line = logging.makeLogRecord({"msg": "odd", "levelname": "WARNING"})
    assert "trace_id" not in json.loads(JsonLines().format(line))
    named = tracing.request_id.set("req-12345678")
    try:
        with tracing.span("call") as current:
            event = json.loads(JsonLines().format(line))
            assert tracing.headers()["traceparent"].split("-")[1] == event["trace_id"]
    finally:
        tracing.request_id.reset(named)
    assert event["trace_id"] == f"{current.get_span_context().trace_id:032x}"
    assert event["request_id"] == "req-12345678"


class Ending:
    """A provider whose end takes as long as its collector lets it."""

    def __init__(self) -> None:
        self.may_end, self.is_asked, self.has_ended = threading.Event(), threading.Event(), threading.Event()

    def get_tracer(self, name: str) -> "Ending":
        return self

    def shutdown(self) -> None:
        self.is_asked.set()
        self.may_end.wait()
        self.has_ended.set()


@pytest.fixture
def ending() -> Iterator[Ending]:
    provider = Ending()
    tracing.switch_on(provider)
    try:
        yield provider
    finally:
        provider.may_end.set()
        tracing.switch_off()


async def test_the_end_of_a_process_waits_for_a_silent_collector_no_longer_than_it_may(ending, monkeypatch):
    assert 0 < tracing.LAST_S <= MOST_S
    monkeypatch.setattr(tracing, "LAST_S", 0.1)
    finishing = asyncio.create_task(tracing.finish())
    await asyncio.wait([finishing], timeout=MOST_S)  # it would wait for ever
    was_in_time, had_ended = finishing.done(), ending.has_ended.is_set()
    ending.may_end.set()
    await finishing
    assert (was_in_time, had_ended) == (True, False)
    assert ending.is_asked.is_set()
    assert tracing.tracer is None


async def test_spans_that_wait_are_sent_before_a_process_ends_even_by_a_cancelled_task(ending, monkeypatch):
    monkeypatch.setattr(tracing, "LAST_S", 60)
    threading.Timer(0.05, ending.may_end.set).start()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await tracing.finish()
    assert ending.has_ended.is_set()


def test_without_the_packages_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(TracingMissing, match=r"agent-toolserver\[otel\]"):
        tracing.switch_on()
    assert tracing.tracer is None
