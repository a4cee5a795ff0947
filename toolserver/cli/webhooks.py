"""Implement `toolserver webhooks`: inspect and control push delivery, and receive webhooks during development."""

import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import click

from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_ledger
from toolserver.cli.load_settings import prepare_settings
from toolserver.cli.options import data_dir_option, json_option, limit_option
from toolserver.cli.printing import print_rows
from toolserver.core.models import iso_ms
from toolserver.serving.listen import describe_bind_error
from toolserver.sql.ledger_place import open_place
from toolserver.webhooks.fire_operations import FireNow, ReplayFire
from toolserver.webhooks.records import WebhookFire, WebhookSubscription
from toolserver.webhooks.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, verify_service
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscription_operations import PauseSubscription

_ID = click.argument("subscription")
MOST_RECEIVED = 2 * 1024 * 1024
SHOWN = 2000  # characters of a body


@click.group()
def webhooks() -> None:
    """Inspect and control webhook subscriptions; receive deliveries during development."""


@webhooks.command("list")
@data_dir_option
@click.option("--state", type=click.Choice(["active", "paused", "cancelled"]), help="Only subscriptions in this state")
@limit_option
@json_option
def list_command(data_dir: Path | None, state: str | None, limit: int, as_json: bool) -> None:
    """List subscriptions, newest first."""
    subscriptions = _run(data_dir, lambda store: store.all(limit, state))
    print_rows([show_row(each) for each in subscriptions], as_json, "no subscriptions")


@webhooks.command()
@_ID
@data_dir_option
@json_option
def show(subscription: str, data_dir: Path | None, as_json: bool) -> None:
    """Show one subscription."""
    row = _run(data_dir, lambda store: store.subscription(subscription))
    if row is None:
        raise click.ClickException(f"there is no subscription {subscription}")
    print_rows([show_row(row)], as_json, "")


@webhooks.command()
@_ID
@data_dir_option
@limit_option
@json_option
def deliveries(subscription: str, data_dir: Path | None, limit: int, as_json: bool) -> None:
    """List the last deliveries of a subscription, newest first."""
    fires = _run(data_dir, lambda store: store.fires(subscription, limit))
    print_rows([show_fire(each) for each in fires], as_json, "no deliveries")


@webhooks.command()
@_ID
@data_dir_option
def fire(subscription: str, data_dir: Path | None) -> None:
    """Fire an active subscription now instead of in its next slot. This fire is charged like any other."""
    _run(data_dir, lambda store: store.apply(FireNow(subscription, _now())))
    click.echo(f"{subscription} will fire when a server next checks")


@webhooks.command()
@_ID
@data_dir_option
@click.option("--reason", default="operator", show_default=True, help="pause_reason shown to the subscription's owner")
def pause(subscription: str, data_dir: Path | None, reason: str) -> None:
    """Pause a subscription until its owner resumes it."""
    paused = _run(data_dir, lambda store: store.apply(PauseSubscription(subscription, None, reason, _now())))
    click.echo(f"{paused.id} is {paused.state}")


@webhooks.command()
@click.argument("delivery")
@data_dir_option
def replay(delivery: str, data_dir: Path | None) -> None:
    """Send the payload of a delivery (msg_…) again, free of charge, while it is still stored: about an hour."""
    again = _run(data_dir, lambda store: store.apply(ReplayFire(_call_id(delivery), _now())))
    click.echo(f"{again.message_id} will be sent when a server next checks")


@webhooks.command()
@click.option("--port", type=click.IntRange(0, 65535), default=5005, show_default=True, help="0 picks a free port")
@click.option("--secret", envvar="WEBHOOK_SECRET", help="The subscription's secret [WEBHOOK_SECRET]")
@click.option(
    "--status", type=click.IntRange(200, 599), default=204, show_default=True, help="Status code to answer with"
)
@click.option("--count", type=click.IntRange(1), help="Stop after this many deliveries")
def listen(port: int, secret: str | None, status: int, count: int | None) -> None:
    """Receive, verify and print webhooks on this machine. The service must run with webhooks.allow_loopback."""

    def report(received: ReceivedWebhook) -> None:
        click.echo(received.describe())

    try:
        server = make_listener(port, secret, report, status=status, count=count)
    except OSError as error:
        raise click.ClickException(describe_bind_error(error, "127.0.0.1", port)) from None
    click.echo(f"listening on http://127.0.0.1:{server.server_address[1]}/", err=True)
    with server:
        server.serve_forever()


class ReceivedWebhook(NamedTuple):
    """A received request. `valid` says whether its signature is valid; None if no secret is known."""

    valid: bool | None
    headers: dict[str, str]
    body: bytes

    def describe(self) -> str:
        """Return a few lines for a terminal: the verdict, the ids and the beginning of the body."""
        verdict = {True: "signature valid", False: "SIGNATURE INVALID", None: "not verified (use --secret)"}[self.valid]
        names = ("webhook-id", "x-service-subscription", "x-service-timestamp", "x-service-receipt-id")
        ids = "  ".join(f"{name}={self.headers[name]}" for name in names if name in self.headers)
        return f"{verdict}  {ids}\n{_pretty(self.body)}"


def _pretty(body: bytes) -> str:
    try:
        text = json.dumps(json.loads(body), indent=2, ensure_ascii=True)
    except ValueError:
        text = ascii(body)
    return text if len(text) <= SHOWN else text[:SHOWN] + f"\n… {len(text) - SHOWN} characters more"


def make_listener(
    port: int,
    secret: str | None,
    report: Callable[[ReceivedWebhook], None],
    *,
    status: int = 204,
    count: int | None = None,
) -> ThreadingHTTPServer:
    """Return a server on 127.0.0.1 that answers `status` to validly signed requests and 401 to others.

    With `count`, `serve_forever` returns after this many requests.
    """
    answered = itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(min(length, MOST_RECEIVED))
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = ReceivedWebhook(_is_valid(secret, headers, body), headers, body)
            report(received)
            self.send_response(401 if received.valid is False else status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            if next(answered) == count:
                self.server.shutdown()

        def log_message(self, *_: Any) -> None:
            """Log nothing: requests are already reported."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def _is_valid(secret: str | None, headers: dict[str, str], body: bytes) -> bool | None:
    if secret is None:
        return None
    signature, timestamp = headers.get(SIGNATURE_HEADER.lower(), ""), headers.get(TIMESTAMP_HEADER.lower(), "")
    return verify_service(secret, signature, timestamp, body, now=time.time())


def show_row(subscription: WebhookSubscription) -> dict[str, Any]:
    """Return a subscription as operators see it: without its secret, and with only the fingerprint of its owner."""
    return {
        "id": subscription.id,
        "state": subscription.state,
        "pause_reason": subscription.pause_reason,
        "owner": subscription.owner[:16],
        "endpoint": subscription.endpoint,
        "webhook_url": subscription.url,
        "due_at": _time(subscription.due_at),
        "last_delivered_at": _time(subscription.last_delivered_at),
        "last_status": subscription.last_status,
        "last_error": subscription.last_error,
        "consecutive_failures": subscription.consecutive_failures,
        "delivered": subscription.delivered_count,
        "failed": subscription.failed_count,
    }


def show_fire(delivery: WebhookFire) -> dict[str, Any]:
    """Return a delivery as operators see it."""
    return {
        "id": delivery.message_id,
        "kind": delivery.kind,
        "state": delivery.state,
        "reason": delivery.reason,
        "created_at": _time(delivery.created_at),
        "attempts": delivery.attempts,
        "status": delivery.status,
        "error": delivery.error,
        "duration_ms": delivery.duration_ms,
    }


def _run(data_dir: Path | None, job: Callable[[WebhookStore], Awaitable[Any]]) -> Any:
    """Run a job on the store of a data directory. A refusal ends the command with its message."""

    async def run() -> Any:
        async with _open_store(data_dir) as store:
            return await job(store)

    with explain_errors():
        return anyio.run(run)


@asynccontextmanager
async def _open_store(data_dir: Path | None) -> AsyncIterator[WebhookStore]:
    async with open_place(find_ledger(prepare_settings(data_dir=data_dir).data_dir)) as file:
        yield WebhookStore(file)


def _call_id(delivery: str) -> str:
    return "call_" + delivery.removeprefix("msg_")


def _now() -> int:
    return time.time_ns() // 1_000_000


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else iso_ms(milliseconds / 1000)
