"""Trace calls with OpenTelemetry: spans for request, call, source, ledger and delivery. Off unless `tracing.enabled`.

`tracer` is None while tracing is off, and callers look at it before they call anything here,
so that it costs nothing. Exporter, sampling and the service's name are set by the variables
that OpenTelemetry defines (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`,
`OTEL_SERVICE_NAME`). A `traceparent` is taken from callers and given to receivers of webhooks;
sources, which belong to others, get none.

A collector that is slow, silent or hostile costs spans and nothing else: they wait in a queue of limited length, little
is read of what it answers, and a process that ends does not wait for it.
"""

import asyncio
import functools
import importlib
import io
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from toolserver.errors import ToolserverError

P = ParamSpec("P")
R = TypeVar("R")

NAME = "toolserver"
MOST_ANSWER = 65_536  # bytes that are read of a collector's answer
MOST_PATH = 200  # characters of a path in the name of a span: callers choose it, and thousands of spans may wait
LAST_S = 3.0  # how long a process that ends waits for a collector
tracer: Any = None
_provider: Any = None
request_id: ContextVar[str] = ContextVar("request_id", default="")  # for lines of the log, with or without traces


class TracingMissing(ToolserverError):
    """`tracing.enabled` is set, but the packages of OpenTelemetry are not installed."""


def switch_on(provider: Any = None) -> None:
    """Start tracing in this process, to a provider or to the one that the variables describe. Raises TracingMissing."""
    global tracer, _provider
    _provider = provider or _make_provider()
    tracer = _provider.get_tracer(NAME)


def switch_off() -> None:
    """End tracing in this process. Spans that wait are not sent."""
    global tracer, _provider
    tracer = _provider = None


async def finish() -> None:
    """Send the spans that wait, for LAST_S at most, and end tracing in this process. Nothing happens if it is off."""
    provider = _provider
    switch_off()
    if provider is None:
        return
    import anyio  # here, since every command imports this module

    loop, is_sent = asyncio.get_running_loop(), asyncio.Event()

    def send() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # the loop has ended: nobody waits any more
            loop.call_soon_threadsafe(is_sent.set)

    threading.Thread(target=send, daemon=True).start()  # does not hold up the end of the process
    with anyio.move_on_after(LAST_S, shield=True):
        await is_sent.wait()


def _make_provider() -> Any:
    try:
        otlp = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise TracingMissing(
            "tracing.enabled (TOOLSERVER_TRACING__ENABLED) needs OpenTelemetry: pip install 'agent-toolserver[otel]',"
            " or unset it"
        ) from None
    named = Resource.create({"service.name": NAME}).merge(OTELResourceDetector().detect())  # OTEL_SERVICE_NAME wins
    provider = TracerProvider(resource=named, shutdown_on_exit=False)  # which would wait for 30 s
    has_own_session = any(name.endswith("_CREDENTIAL_PROVIDER") for name in os.environ)
    session = None if has_own_session else make_session()
    provider.add_span_processor(BatchSpanProcessor(otlp.OTLPSpanExporter(session=session)))
    return provider


def make_session() -> Any:
    """Return a session of `requests` that reads at most MOST_ANSWER bytes of an answer, and decompresses none."""
    adapters = importlib.import_module("requests.adapters")
    sessions = importlib.import_module("requests.sessions")
    urllib3 = importlib.import_module("urllib3")

    class ShortAnswers(adapters.HTTPAdapter):  # type: ignore[name-defined,misc]
        def build_response(self, request: Any, answer: Any) -> Any:
            body = answer.read(MOST_ANSWER, decode_content=False)
            answer.close()
            kept = {name: value for name, value in answer.headers.items() if name.lower() != "content-encoding"}
            short = urllib3.HTTPResponse(io.BytesIO(body), kept, answer.status, preload_content=False)
            return super().build_response(request, short)

    session = sessions.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, ShortAnswers())
    return session


@contextmanager
def span(name: str, kind: str = "INTERNAL", parent: Any = None, **attributes: str) -> Iterator[Any]:
    """Run the block in a span. `kind` is a name of OpenTelemetry's SpanKind. Only while tracing is on."""
    from opentelemetry.trace import SpanKind

    named = {f"{NAME}.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(name, context=parent, kind=SpanKind[kind], attributes=named) as current:
        yield current


def wrap(
    function: Callable[P, Awaitable[R]], name: str, kind: str = "INTERNAL", **attributes: str
) -> Callable[P, Awaitable[R]]:
    """Return the function as one that runs in a span."""

    @functools.wraps(function)
    async def traced(*args: P.args, **named: P.kwargs) -> R:
        with span(name, kind, **attributes):
            return await function(*args, **named)

    return traced


async def serve(app: Any, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
    """Serve an HTTP request in a span that continues the trace of its `traceparent`, if it has one.

    The span `delivery` in it lasts from the head of the answer to its last byte.
    """
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
    delivery: list[Any] = []

    async def send_traced(event: Mapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            delivery.append(tracer.start_span("delivery", attributes={"http.response.status_code": event["status"]}))
        await send(event)
        if event["type"] == "http.response.body" and not event.get("more_body") and delivery:
            delivery.pop().end()

    parent = TraceContextTextMapPropagator().extract(carrier)
    with span(f"{scope['method']} {scope['path'][:MOST_PATH]}", "SERVER", parent):
        try:
            await app(scope, receive, send_traced)
        finally:
            for unfinished in delivery:  # the caller has left
                unfinished.end()


def headers() -> dict[str, str]:
    """Return the headers that continue the current trace elsewhere."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier


def log_fields() -> dict[str, str]:
    """Return the trace of the current call, for a line of the log."""
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"} if context.is_valid else {}
