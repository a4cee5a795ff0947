"""Check what `serve` and `demo` refuse before they bind or open anything. Imports little, for the supervisor."""

import logging
import sys

from toolserver.registry.licence_table import write_plain_table
from toolserver.serving.packaged_texts import read_licence_table
from toolserver.settings import Settings

log = logging.getLogger(__name__)


def check_before_serving(settings: Settings) -> None:
    """Raise SystemExit, with a sentence or a table, if the service must not start with these settings."""
    require_licence_decision(settings)
    require_what_workers_share(settings)
    if settings.upstream.contact is None and settings.upstream.via is None:
        log.warning("upstream.contact is not set: some public services refuse requests without a contact")


def require_what_workers_share(settings: Settings) -> None:
    """Raise SystemExit if several workers or instances lack a shared store, and say what to set."""
    if settings.scaling.instances > 1 and settings.redis_url is None:
        raise SystemExit(
            f"scaling.instances is {settings.scaling.instances}: instances share a Redis. Set redis_url"
            " (TOOLSERVER_REDIS_URL), or leave scaling.instances at 1"
        )
    if settings.workers == 1:
        return
    if settings.ledger.url is not None:
        raise SystemExit(
            f"{settings.workers} workers cannot follow a ledger: with ledger.url, one process keeps a journal in its"
            " data directory. Leave workers at 1, or start several services, each with its own data directory"
        )
    wanted = {"database_url": settings.database_url, "redis_url": settings.redis_url}
    missing = [f"{name} (TOOLSERVER_{name.upper()})" for name, value in wanted.items() if value is None]
    if missing:
        raise SystemExit(
            "more than one worker needs PostgreSQL and Redis: with SQLite, one process owns the data. Set"
            f" {' and '.join(missing)}, or leave workers at 1"
        )


def require_licence_decision(settings: Settings) -> None:
    """Print what each policy leaves and raise SystemExit with status 2 if credits are sold without a decision.

    To sell answers is to redistribute the data of others for money. No default decides which terms to accept.
    """
    sells = settings.payments.enabled or settings.x402.enabled
    if not sells or "licence_policy" in settings.sources.model_fields_set:
        return
    print(
        "payments are on, but sources.licence_policy is not set: decide which sources' data may be resold.\n\n"
        f"{write_plain_table(read_licence_table())}\n\n"
        "Set TOOLSERVER_SOURCES__LICENCE_POLICY, or licence_policy under [sources] in toolserver.toml.",
        file=sys.stderr,
    )
    raise SystemExit(2)
