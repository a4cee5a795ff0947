"""Every setting, with its default and what it does. Flags win over the environment, it over toolserver.toml."""

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

from toolserver.money_settings import X402, Ledger, Part, Payments, is_loopback

__all__ = ["X402", "Ledger", "Limits", "Payments", "Settings", "Sources", "Upstream", "is_loopback"]

PREFIX = "TOOLSERVER_"
FILE = "toolserver.toml"
KEYS = (
    "FINNHUB_API_KEY", "FRED_API_KEY", "BLS_API_KEY", "ETHERSCAN_API_KEY", "ETH_RPC_URL", "SOLANA_RPC_URL",
    "FIRMS_MAP_KEY", "ABUSE_CH_AUTH_KEY", "GITHUB_TOKEN", "COINGECKO_API_KEY", "CMC_API_KEY", "LL2_TOKEN",
    "OPENMETEO_API_KEY", "GOOGLE_NEWS",
)  # fmt: skip


class Upstream(Part):
    """How upstreams are asked."""

    via: str | None = Field(
        None, description="Send every upstream request to this address instead (the simulated world)"
    )
    contact: str | None = Field(
        None, description="An address the User-Agent names; some public services refuse without"
    )
    hedge_after_s: float = Field(
        2.5, gt=0, description="Start the next source when the first has not answered for so long"
    )

    @field_validator("via")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).scheme not in ("http", "https"):
            raise ValueError("must be an http address")
        return value


class Sources(Part):
    """Which sources may be used."""

    keys: dict[str, SecretStr] = Field({}, description=f"API keys by name, all optional: {', '.join(KEYS)}")
    licence_policy: Literal["any", "no_forbidden", "commercial"] = Field(
        "any", description="any: all; no_forbidden: not those that bar redistribution; commercial: only the free ones"
    )


class Limits(Part):
    """Limits of the free tier and of requests."""

    enabled: bool = Field(True, description="Off for benchmarks only")
    daily: int = Field(100_000, ge=1, description="Calls a day and client over all free endpoints")
    spacing_s: float = Field(30, gt=0, description="One call per endpoint and client in so many seconds")
    personal_per_minute: int = Field(60, ge=1, description="Payment, receipt and account calls a minute and client")
    premium_per_minute: int = Field(600, ge=1, description="Premium calls a minute and token")
    trusted_proxies: list[str] = Field([], description="Networks whose X-Forwarded-For is believed")
    body_bytes: int = Field(65_536, ge=1024, description="Largest request body")
    clients: int = Field(200_000, ge=100, description="Clients remembered per limit; the oldest are forgotten beyond")


class Mcp(Part):
    """The MCP endpoint."""

    allowed_hosts: list[str] = Field([], description="Host names answered besides base_url's, when bound to loopback")
    allowed_origins: list[str] = Field(
        [], description="Browser origins answered besides base_url's, when bound to loopback"
    )
    strict_versions: bool = Field(False, description="Refuse modern messages under a legacy version header")


class Logs(Part):
    """Structured logs on stderr."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe level written")
    format: Literal["auto", "json", "text"] = Field("auto", description="auto: text on a terminal, JSON elsewhere")


class Probes(Part):
    """What internet_pulse measures."""

    targets: dict[str, str] = Field(
        {
            "US East": "dynamodb.us-east-1.amazonaws.com",
            "US West": "dynamodb.us-west-2.amazonaws.com",
            "Europe": "dynamodb.eu-central-1.amazonaws.com",
            "Asia": "dynamodb.ap-northeast-1.amazonaws.com",
            "Cloudflare DNS": "1.1.1.1",
            "Google DNS": "8.8.8.8",
        },
        max_length=12,
        description="Hosts whose TCP port 443 is connected to, by the name they are shown under",
    )


class Onchain(Part):
    """What is read of Ethereum for premium_whales and premium_exchange_flows."""

    blocks: int = Field(5, ge=1, le=20, description="Newest blocks that are looked through, 12 seconds of chain each")


class MetricsBind(Part):
    """Prometheus metrics, on an address of their own."""

    enabled: bool = Field(True, description="Serve /metrics")
    host: str = Field("127.0.0.1", description="Address for /metrics")
    port: int = Field(0, ge=0, le=65535, description="Port for /metrics; 0 picks a free one, named in the ready line")


class Settings(BaseSettings):
    """The whole tree. Environment names: TOOLSERVER_LIMITS__DAILY=… and so on."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", toml_file=FILE, extra="forbid", frozen=True
    )

    host: str = Field("127.0.0.1", description="Address to listen on")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 picks a free one")
    base_url: str | None = Field(None, description="Public address; every URL we give out starts with it")
    server: Literal["hypercorn", "uvicorn"] = Field("hypercorn", description="uvicorn needs the extra 'fast'")
    workers: int = Field(1, ge=1, description="Processes; more than one needs PostgreSQL and Redis")
    data_dir: Path = Field(default_factory=lambda: default_data_dir(), description="Where keys and databases live")
    tools: list[str] = Field(["tools"], description="Packages whose tools are served")
    token: SecretStr | None = Field(None, description="Bearer token used by stdio and call")
    upstream: Upstream = Upstream()
    sources: Sources = Sources()
    limits: Limits = Limits()
    payments: Payments = Payments()
    x402: X402 = X402()
    ledger: Ledger = Ledger()
    mcp: Mcp = Mcp()
    logs: Logs = Logs()
    metrics: MetricsBind = MetricsBind()
    probes: Probes = Probes()
    onchain: Onchain = Onchain()

    @field_validator("base_url")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).netloc):
            raise ValueError("must be an absolute http address")
        return value.rstrip("/") if value else None

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
        """The API keys that are set: from `sources.keys`, else from the environment under their own names."""
        named = {name.upper(): secret.get_secret_value() for name, secret in self.sources.keys.items()}
        return {k: v for k in KEYS if (v := named.get(k) or os.environ.get(k, ""))}

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach us."""
        return is_loopback(self.host)


class _Environment(EnvSettingsSource):
    """The environment, in which a name we do not know is an error rather than a setting that does nothing."""

    def __call__(self) -> dict[str, Any]:
        known = {name.upper() for name in self.settings_cls.model_fields}
        for name in os.environ:
            if name.startswith(PREFIX):
                first = name.removeprefix(PREFIX).split("__")[0]
                if first not in known:
                    raise ValueError(f"{name} is not a setting")
        return super().__call__()


def default_data_dir() -> Path:
    """The platform's place for an application's data."""
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "toolserver"
    if os.uname().sysname == "Darwin":
        return Path.home() / "Library" / "Application Support" / "toolserver"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "toolserver"
