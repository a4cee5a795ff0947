"""Every setting, with its default and what it does. Flags win over the environment, it over toolserver.toml."""

import ipaddress
import os
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

PREFIX = "TOOLSERVER_"
FILE = "toolserver.toml"
KEYS = (
    "FINNHUB_API_KEY", "FRED_API_KEY", "BLS_API_KEY", "ETHERSCAN_API_KEY", "ETH_RPC_URL", "SOLANA_RPC_URL",
    "FIRMS_MAP_KEY", "ABUSE_CH_AUTH_KEY", "GITHUB_TOKEN", "COINGECKO_API_KEY", "CMC_API_KEY", "LL2_TOKEN",
    "OPENMETEO_API_KEY",
)  # fmt: skip


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Upstream(_Part):
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


class Sources(_Part):
    """Which sources may be used."""

    keys: dict[str, SecretStr] = Field({}, description=f"API keys by name, all optional: {', '.join(KEYS)}")
    licence_policy: Literal["any", "no_forbidden", "commercial"] = Field(
        "any", description="any: all; no_forbidden: not those that bar redistribution; commercial: only the free ones"
    )


class Limits(_Part):
    """Limits of the free tier and of requests."""

    enabled: bool = Field(True, description="Off for benchmarks only")
    daily: int = Field(100_000, ge=1, description="Calls a day and client over all free endpoints")
    spacing_s: float = Field(30, gt=0, description="One call per endpoint and client in so many seconds")
    trusted_proxies: list[str] = Field([], description="Networks whose X-Forwarded-For is believed")
    body_bytes: int = Field(65_536, ge=1024, description="Largest request body")
    clients: int = Field(200_000, ge=100, description="Clients remembered per limit; the oldest are forgotten beyond")


class Payments(_Part):
    """Selling credits for USDC on Base."""

    enabled: bool = Field(False, description="Sell credits; needs rpc_urls and xpub, or shared_wallet")
    rpc_urls: list[SecretStr] = Field(
        [], description="JSON-RPC servers of Base (chain 8453), of independent providers; two are needed for large sums"
    )
    binding: Literal["deposit", "shared_wallet"] = Field(
        "deposit", description="deposit: an address of its own for each purchase; shared_wallet: one, with proof"
    )
    xpub: SecretStr | None = Field(
        None, description="Account-level public key (m/44'/60'/n') that deposit addresses are derived from"
    )
    shared_wallet: str | None = Field(None, pattern="^0x[0-9a-fA-F]{40}$", description="The one address, if shared")
    quote_minutes: int = Field(30, ge=5, le=1440, description="How long a quote is good for")
    grace_minutes: int = Field(10, ge=0, le=1440, description="How much later than that still counts as in time")
    late: Literal["credit", "reject"] = Field("credit", description="What is done with a payment that comes later")
    wait_s: float = Field(10, ge=0, le=20, description="How long confirm waits for the chain before it says: pending")
    confirmations: int = Field(3, ge=1, le=1000, description="Blocks on top of a payment below safe_from_usd")
    safe_from_usd: int = Field(100, ge=1, description="From here on a payment waits for a safe block (2 minutes)")
    finalized_from_usd: int = Field(10_000, ge=1, description="From here on for a finalized block (20 minutes)")
    agree_from_usd: int | None = Field(
        1000, ge=1, description="From here on two RPC servers have to agree; null: believe one, which is your own"
    )
    first_index: int = Field(0, ge=0, lt=2**31, description="First deposit address; go ahead after restoring a backup")

    @field_validator("rpc_urls")
    @classmethod
    def _servers(cls, value: list[SecretStr]) -> list[SecretStr]:
        urls = [each.get_secret_value() for each in value]
        if any(urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname for url in urls):
            raise ValueError("each must be an http address")
        if len(set(urls)) < len(urls):
            raise ValueError("a server is named twice")
        return value

    @model_validator(mode="after")
    def _complete(self) -> "Payments":
        wallet = self.xpub if self.binding == "deposit" else self.shared_wallet
        if self.enabled and not (wallet and self.rpc_urls):
            raise ValueError("to sell credits, set rpc_urls and xpub (or binding and shared_wallet)")
        return self


class Mcp(_Part):
    """The MCP endpoint."""

    allowed_hosts: list[str] = Field([], description="Host names answered besides base_url's, when bound to loopback")
    allowed_origins: list[str] = Field(
        [], description="Browser origins answered besides base_url's, when bound to loopback"
    )
    strict_versions: bool = Field(False, description="Refuse modern messages under a legacy version header")


class Logs(_Part):
    """Structured logs on stderr."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe level written")
    format: Literal["auto", "json", "text"] = Field("auto", description="auto: text on a terminal, JSON elsewhere")


class Probes(_Part):
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


class MetricsBind(_Part):
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
    mcp: Mcp = Mcp()
    logs: Logs = Logs()
    metrics: MetricsBind = MetricsBind()
    probes: Probes = Probes()

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


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def default_data_dir() -> Path:
    """The platform's place for an application's data."""
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "toolserver"
    if os.uname().sysname == "Darwin":
        return Path.home() / "Library" / "Application Support" / "toolserver"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "toolserver"
