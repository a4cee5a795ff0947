"""Define every setting. Flags take precedence over the environment, and the environment over toolserver.toml.

`Settings` is the whole tree; each of the other modules defines groups of it.
"""

import os
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from toolserver.settings.addresses import is_loopback, normalize_base_url
from toolserver.settings.money import LedgerSettings, OAuthSettings, PaymentSettings, X402Settings
from toolserver.settings.serving import (
    LimitSettings,
    LogSettings,
    McpSettings,
    MetricsSettings,
    RedisUrl,
    ScalingSettings,
    ServingSettings,
    StorageSettings,
    TracingSettings,
    WebhookSettings,
)
from toolserver.settings.upstream import KEYS, OnchainSettings, ProbeSettings, SourceSettings, UpstreamSettings

__all__ = [
    "KEYS",
    "LedgerSettings",
    "LimitSettings",
    "LogSettings",
    "McpSettings",
    "MetricsSettings",
    "OAuthSettings",
    "OnchainSettings",
    "PaymentSettings",
    "ProbeSettings",
    "ScalingSettings",
    "ServingSettings",
    "Settings",
    "SourceSettings",
    "StorageSettings",
    "TracingSettings",
    "UnknownVariable",
    "UpstreamSettings",
    "WebhookSettings",
    "X402Settings",
    "default_data_dir",
    "is_loopback",
    "normalize_base_url",
]

PREFIX = "TOOLSERVER_"
FILE = "toolserver.toml"


class Settings(BaseSettings):
    """The whole tree. Environment names: TOOLSERVER_LIMITS__DAILY=… and so on."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", toml_file=FILE, extra="forbid", frozen=True
    )

    host: str = Field("127.0.0.1", description="Address to listen on")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 picks a free one")
    base_url: str | None = Field(None, description="Public address, the start of every URL in answers")
    server: Literal["hypercorn", "uvicorn"] = Field("hypercorn", description="uvicorn needs the extra 'fast'")
    workers: int = Field(1, ge=1, description="Worker processes; more than one needs database_url and redis_url")
    data_dir: Path = Field(default_factory=lambda: default_data_dir(), description="Directory for keys and databases")
    database_url: SecretStr | None = Field(
        None,
        description="PostgreSQL 15 or later that stores all money, for several instances: postgresql://user:password@host"
        "/database; null: a file in data_dir. Needs the extra 'postgres'",
    )
    redis_url: RedisUrl | None = Field(
        None,
        description="Redis or Valkey that instances share: redis://, rediss://, unix://, or its Sentinels:"
        " redis+sentinel://host:26379,…/0?master=name; needs the extra 'redis'",
    )
    tools: list[str] = Field(
        ["tools"], description="Packages whose tools are served, in addition to installed entry points"
    )
    token: SecretStr | None = Field(None, description="Bearer token that stdio and call pay with")
    upstream: UpstreamSettings = UpstreamSettings()
    sources: SourceSettings = SourceSettings()
    serving: ServingSettings = ServingSettings()
    limits: LimitSettings = LimitSettings()
    payments: PaymentSettings = PaymentSettings()
    x402: X402Settings = X402Settings()
    ledger: LedgerSettings = LedgerSettings()
    oauth: OAuthSettings = OAuthSettings()
    storage: StorageSettings = StorageSettings()
    scaling: ScalingSettings = ScalingSettings()
    mcp: McpSettings = McpSettings()
    logs: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    webhooks: WebhookSettings = WebhookSettings()
    probes: ProbeSettings = ProbeSettings()
    onchain: OnchainSettings = OnchainSettings()

    @field_validator("database_url")
    @classmethod
    def _is_postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and urlsplit(value.get_secret_value()).scheme not in ("postgresql", "postgres"):
            raise ValueError("must begin with postgresql://")
        return value

    @field_validator("base_url")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        return normalize_base_url(value) if value else None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, _Environment(settings_cls), TomlConfigSettingsSource(settings_cls)

    @property
    def keys(self) -> dict[str, str]:
        """The API keys that are set: from `sources.keys`, else from the environment by their own names."""
        named = {name.upper(): secret.get_secret_value() for name, secret in self.sources.keys.items()}
        return {k: v for k in KEYS if (v := named.get(k) or os.environ.get(k, ""))}

    @property
    def loopback(self) -> bool:
        """True if only this machine can reach the service."""
        return is_loopback(self.host)


class UnknownVariable(ValueError):
    """A variable with our prefix that is not a setting."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not a setting")
        self.name = name


class _Environment(EnvSettingsSource):
    """The environment, in which an unknown name is an error rather than a setting that does nothing."""

    def __call__(self) -> dict[str, Any]:
        names = {name.upper() for name in self.settings_cls.model_fields}
        for name in os.environ:
            if name.startswith(PREFIX):
                first = name.removeprefix(PREFIX).split("__")[0]
                if first not in names:
                    raise UnknownVariable(name)
        return super().__call__()


def default_data_dir() -> Path:
    """Return the platform's directory for an application's data."""
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "toolserver"
    if os.uname().sysname == "Darwin":
        return Path.home() / "Library" / "Application Support" / "toolserver"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "toolserver"
