"""A service as the product puts it together, of parts that a test arranges: nothing on disk, no clock that runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from toolserver.app import Service, ServiceParts
from toolserver.clock import Clock
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.server.money import MoneyParts
from toolserver.settings import LimitSettings, Settings, WebhookSettings
from toolserver.upstream.reading import SourceReader

FACTS = SiteFacts(base_url="https://data.example", source="data.example")


@asynccontextmanager
async def arrange_service(
    registry: Registry,
    clock: Clock,
    *,
    facts: SiteFacts = FACTS,
    transport: httpx.AsyncBaseTransport | None = None,
    reader: SourceReader | None = None,
    money: MoneyParts | None = None,
    **settings: Any,
) -> AsyncIterator[Service]:
    """The service of a registry. What is not given is as the product has it, but without limits and webhooks."""
    shared = {"data_dir": Path(), "webhooks": WebhookSettings(enabled=False), "limits": LimitSettings(enabled=False)}
    parts = ServiceParts(
        facts=facts,
        registry=registry,
        clock=clock,
        transport=transport,
        reader=reader,
        money=money,
        in_memory=True,
        background=False,
    )
    async with Service.build(Settings(**(shared | settings)), parts) as service:
        yield service


def client_of(app: Any, base_url: str = FACTS.base_url, *, peer: str = "127.0.0.1") -> httpx.AsyncClient:
    """An HTTP client of an ASGI callable in this process."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app, client=(peer, 1)), base_url=base_url)
