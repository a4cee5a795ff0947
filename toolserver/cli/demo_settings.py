"""Turn the settings of a service into those of a demo, and fund the demo's token."""

from collections.abc import Awaitable, Callable

from toolserver.app import Service
from toolserver.calls.idempotency import fingerprint
from toolserver.money.purchases.demo import demo_payments
from toolserver.settings import Settings, SourceSettings, WebhookSettings

DEMO_CREDITS = 500
FILL_S = 11.0  # the longest wait for first values; what is missing then comes later


def make_demo_settings(settings: Settings, world_url: str, *, spaced: bool = False) -> Settings:
    """Return the settings of a service that uses the simulated world at this address and sells credits on its chain.

    Free calls are spaced only with `spaced`, or if the settings say how: who tries a demo asks again at once. It stops
    at once too, unless the settings say otherwise: no balancer is before it.
    """
    upstream = settings.upstream.model_copy(update={"via": world_url})
    changed = {"upstream": upstream, "payments": demo_payments(world_url), "webhooks": _demo_webhooks(settings)}
    limits = settings.limits
    if not spaced and "spacing_s" not in limits.model_fields_set:
        limits = limits.model_copy(update={"spacing_s": 0})
    serving = settings.serving
    if "drain_s" not in serving.model_fields_set:
        serving = serving.model_copy(update={"drain_s": 0})
    return settings.model_copy(
        update=changed | {"sources": _demo_sources(settings), "limits": limits, "serving": serving}
    )


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
