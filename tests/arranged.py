"""Build a service as the product does, from parts that a test provides: nothing on disk, and no running clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from toolserver.app import Service, ServiceParts
from toolserver.clock import Clock
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.money import MoneyParts
from toolserver.settings import LimitSettings, Settings, WebhookSettings
from toolserver.upstream.source import SourceReader

FACTS = SiteFacts(base_url="https://data.example", source="data.example")


class GivenSettings(Settings):
    """Only what a test gives: thousands of tests would look for variables and a file, for 2 ms each."""

    model_config = SettingsConfigDict(toml_file=None)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def arrange_settings(**settings: Any) -> Settings:
    """What is not given is as the product has it, but without limits and webhooks."""
    shared = {"data_dir": Path(), "webhooks": WebhookSettings(enabled=False), "limits": LimitSettings(enabled=False)}
    return GivenSettings(**(shared | settings))


@asynccontextmanager
async def arrange_service(
    registry: Registry,
    clock: Clock,
    *,
    facts: SiteFacts = FACTS,
    transport: httpx.AsyncBaseTransport | None = None,
    reader: SourceReader | None = None,
    money: MoneyParts | None = None,
    whole: Settings | None = None,
    **settings: Any,
) -> AsyncIterator[Service]:
    """The service of a registry. Its settings are `whole`, or those that `arrange_settings` makes of the others."""
    assert not (whole and settings), "settings beside whole ones would be ignored"
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
    async with Service.build(whole or arrange_settings(**settings), parts) as service:
        yield service


def client_of(app: Any, base_url: str = FACTS.base_url, *, peer: str = "127.0.0.1") -> httpx.AsyncClient:
    """An HTTP client of an ASGI callable in this process."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app, client=(peer, 1)), base_url=base_url)
