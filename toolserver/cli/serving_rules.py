"""What `serve` and `demo` refuse before anything is bound or opened. Imports little, for the supervisor of workers."""

import logging
import sys

from toolserver.registry.licence_table import write_plain_table
from toolserver.server.listen import refuse_public
from toolserver.server.packaged_texts import read_licence_table
from toolserver.settings import Settings

log = logging.getLogger(__name__)


def check_before_serving(settings: Settings, *, everything: bool) -> None:
    """Raises SystemExit, with a sentence or a table, where the service must not be started as it is set."""
    if everything:
        refuse_public(settings, "--everything")
    require_licence_decision(settings)
    require_what_workers_share(settings)
    if settings.upstream.contact is None and settings.upstream.via is None:
        log.warning("no upstream.contact is set: some public services refuse requests without one")


def require_what_workers_share(settings: Settings) -> None:
    """Raises SystemExit where several workers or instances lack what they have in common, and says what to set."""
    if settings.scaling.instances > 1 and settings.redis_url is None:
        raise SystemExit(
            f"scaling.instances is {settings.scaling.instances}: instances share a Redis. Set redis_url"
            " (TOOLSERVER_REDIS_URL), or leave scaling.instances at 1"
        )
    if settings.workers == 1:
        return
    if settings.ledger.url is not None:
        raise SystemExit(
            f"{settings.workers} workers cannot follow a ledger: with ledger.url one process keeps a journal in its"
            " data directory. Leave workers at 1, or start several services, each with a data directory of its own"
        )
    wanted = {"database_url": settings.database_url, "redis_url": settings.redis_url}
    missing = [f"{name} (TOOLSERVER_{name.upper()})" for name, value in wanted.items() if value is None]
    if missing:
        raise SystemExit(
            "more than one worker needs PostgreSQL and Redis: with SQLite one process owns the data. Set"
            f" {' and '.join(missing)}, or leave workers at 1"
        )


def require_licence_decision(settings: Settings) -> None:
    """Raises SystemExit with status 2, and prints what each policy leaves, where credits are sold without a decision.

    Selling answers passes the data of others on, for money. Which terms are accepted is not decided by a default.
    """
    sells = settings.payments.enabled or settings.x402.enabled
    if not sells or "licence_policy" in settings.sources.model_fields_set:
        return
    print(
        "payments are on, and sources.licence_policy is not set: decide which sources may be sold on.\n\n"
        f"{write_plain_table(read_licence_table())}\n\n"
        "Set TOOLSERVER_SOURCES__LICENCE_POLICY, or licence_policy under [sources] in toolserver.toml.",
        file=sys.stderr,
    )
    raise SystemExit(2)
