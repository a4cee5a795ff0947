"""Derive this server's public facts from the settings: its address, its limits, and how credits are bought."""

from urllib.parse import urlsplit

from toolserver.registry.site_facts import LimitFacts, PurchaseTerms, Sales, SiteFacts
from toolserver.settings import Settings
from toolserver.upstream.rights import Rights


def read_public_facts(settings: Settings, base_url: str) -> SiteFacts:
    """Return the facts from which every generated document and the `source` of every answer are written."""
    return SiteFacts(
        base_url=base_url,
        source=urlsplit(base_url).hostname or "localhost",
        contact=settings.upstream.contact,
        simulated=settings.upstream.via is not None,
        ledger="embedded" if settings.ledger.url is None else "followed",
        sales=read_sales(settings),
        rights=read_rights(settings),
        limits=LimitFacts(
            free_per_day=settings.limits.daily,
            free_spacing_s=int(settings.limits.spacing_s),
            payment_per_minute=settings.limits.personal_per_minute,
            premium_per_minute=settings.limits.premium_per_minute,
            page_tries_per_minute=settings.limits.page_tries_per_minute,
            page_tries_per_day=settings.limits.page_tries_per_day,
        ),
    )


def read_rights(settings: Settings) -> Rights:
    """Return what the operator may use of each source."""
    sources = settings.sources
    return Rights(sources.licence_policy, tuple(sorted(sources.contracts.items())), frozenset(settings.keys))


def read_sales(settings: Settings) -> Sales | None:
    """Return how credits can be bought here; None if they cannot. A sister service's terms are unknown here."""
    own, x402 = settings.payments, settings.x402
    follows = settings.ledger.url is not None
    transfer = settings.ledger.public_url is not None if follows else own.enabled
    if not transfer and not x402.enabled:
        return None
    terms = PurchaseTerms(
        quote_minutes=own.quote_minutes,
        grace_minutes=own.grace_minutes,
        credits_late=own.late == "credit",
        shared_wallet=own.binding == "shared_wallet",
        confirmations=own.confirmations,
        safe_from_usd=own.safe_from_usd,
        finalized_from_usd=own.finalized_from_usd,
    )
    demo = transfer and not follows and _is_chain_simulated(settings)
    return Sales(transfer, None if follows else terms, x402.most_usd if x402.enabled else None, demo)


def _is_chain_simulated(settings: Settings) -> bool:
    """Return True if every RPC server is the simulated world's, so that payments are not real money."""
    world, servers = settings.upstream.via, [url.get_secret_value() for url in settings.payments.rpc_urls]
    return world is not None and bool(servers) and all(url.startswith(f"{world}/u/") for url in servers)
