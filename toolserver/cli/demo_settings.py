"""Turn the settings of a service into those of a demo, and fund the demo's token."""

import hashlib
import json
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

from toolserver.app import Service
from toolserver.calls.idempotency import fingerprint
from toolserver.core.private_file import ensure_random_file, write_private
from toolserver.money.purchases.demo import demo_payments, demo_x402
from toolserver.settings import Settings, SourceSettings, WebhookSettings

DEMO_CREDITS = 500
WORLD_FILE, OPERATOR_FILE, TOKEN_KEY_FILE = "world.json", "demo.env", "demo.key"  # in the data directory
FILL_S = 11.0  # the longest wait for first values; what is missing then comes later


def make_demo_settings(settings: Settings, world_url: str, *, spaced: bool = False) -> Settings:
    """Return the settings of a service that uses the simulated world at this address and sells credits on its chain.

    It sells by x402 too, through the world's facilitator, unless the settings name another one.
    Free calls are spaced only with `spaced`, or if the settings say how: who tries a demo asks again at once. It stops
    at once too, unless the settings say otherwise: no balancer is before it.
    """
    upstream = settings.upstream.model_copy(update={"via": world_url})
    changed = {"upstream": upstream, "payments": demo_payments(world_url), "webhooks": _demo_webhooks(settings)}
    changed["x402"] = demo_x402(world_url, settings.x402)
    limits = settings.limits
    if not spaced and "spacing_s" not in limits.model_fields_set:
        limits = limits.model_copy(update={"spacing_s": 0})
    serving = settings.serving
    if "drain_s" not in serving.model_fields_set:
        serving = serving.model_copy(update={"drain_s": 0})
    return settings.model_copy(
        update=changed | {"sources": _demo_sources(settings), "limits": limits, "serving": serving}
    )


def find_token(data_dir: Path) -> str:
    """Return the demo's token on a data directory: always the same, and nowhere on the disk itself."""
    key = ensure_random_file(data_dir / TOKEN_KEY_FILE, 32)
    return f"svc_live_{hashlib.sha256(key).hexdigest()}"


def write_operator_file(settings: Settings, base_url: str) -> None:
    """Write what a shell sources so that the operator's commands work on this demo: settings, and its addresses."""
    payments, x402, world_url = settings.payments, settings.x402, str(settings.upstream.via)
    xpub = "" if payments.xpub is None else payments.xpub.get_secret_value()
    variables = {
        "TOOLSERVER_DATA_DIR": str(settings.data_dir.resolve()),
        "TOOLSERVER_BASE_URL": base_url,
        "TOOLSERVER_UPSTREAM__VIA": world_url,
        "TOOLSERVER_PAYMENTS__ENABLED": "true",
        "TOOLSERVER_PAYMENTS__RPC_URLS": json.dumps([url.get_secret_value() for url in payments.rpc_urls]),
        "TOOLSERVER_PAYMENTS__XPUB": xpub,
        "TOOLSERVER_X402__ENABLED": "true",
        "TOOLSERVER_X402__FACILITATOR_URL": str(x402.facilitator_url),
        "TOOLSERVER_X402__PAY_TO": str(x402.pay_to),
        "BASE": base_url,
        "WORLD": world_url,
    }
    lines = ["# Written by `toolserver demo` at each start. Source it, and every command works on that demo."]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    write_private(settings.data_dir / OPERATOR_FILE, "\n".join(lines) + "\n")


def fund_with(token: str) -> Callable[[Service], Awaitable[None]]:
    """Return a function that funds this token. Running it again, such as in another process, adds no more credits."""

    async def fund(service: Service) -> None:
        own = service.money.own
        assert own is not None, "the demo follows no ledger"
        await own.mint(token, DEMO_CREDITS, cause=f"demo {fingerprint(token)}")

    return fund


def _demo_webhooks(settings: Settings) -> WebhookSettings:
    """Allow deliveries to receivers on this machine, unless the settings say otherwise."""
    if "allow_loopback" in settings.webhooks.model_fields_set:
        return settings.webhooks
    return settings.webhooks.model_copy(update={"allow_loopback": True})


def _demo_sources(settings: Settings) -> SourceSettings:
    """Use every source unless the settings say otherwise: the demo sells nothing real."""
    policy = settings.sources.licence_policy
    return settings.sources.model_copy(update={"licence_policy": policy})
