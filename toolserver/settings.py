"""Define every setting. Flags take precedence over the environment, and the environment over toolserver.toml."""

import os
import re
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

from toolserver.core.settings_groups import (
    LedgerSettings,
    OAuthSettings,
    PaymentSettings,
    RedisUrl,
    ScalingSettings,
    SettingsPart,
    StorageSettings,
    X402Settings,
    is_loopback,
)

__all__ = [
    "LedgerSettings",
    "LimitSettings",
    "OAuthSettings",
    "PaymentSettings",
    "ScalingSettings",
    "Settings",
    "SourceSettings",
    "StorageSettings",
    "UpstreamSettings",
    "WebhookSettings",
    "X402Settings",
    "is_loopback",
]

PREFIX = "TOOLSERVER_"
FILE = "toolserver.toml"
KEYS = (
    "FINNHUB_API_KEY", "FRED_API_KEY", "BLS_API_KEY", "ETHERSCAN_API_KEY", "ETH_RPC_URL", "SOLANA_RPC_URL",
    "FIRMS_MAP_KEY", "ABUSE_CH_AUTH_KEY", "GITHUB_TOKEN", "COINGECKO_API_KEY", "CMC_API_KEY", "LL2_TOKEN",
    "OPENMETEO_API_KEY", "GOOGLE_NEWS",
)  # fmt: skip


class UpstreamSettings(SettingsPart):
    """How upstreams are requested."""

    via: str | None = Field(
        None, description="Send every upstream request to this address instead (the simulated world)"
    )
    contact: str | None = Field(
        None, description="Contact address in the User-Agent; some public services refuse requests without one"
    )
    hedge_after_s: float = Field(
        2.5, gt=0, description="Seconds without an answer after which the next source is requested too"
    )

    @field_validator("via")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).scheme not in ("http", "https"):
            raise ValueError("must be an http or https URL")
        return value


class SourceSettings(SettingsPart):
    """Which sources may be used."""

    keys: dict[str, SecretStr] = Field({}, description=f"API keys by name, all optional: {', '.join(KEYS)}")
    licence_policy: Literal["any", "no_forbidden", "commercial"] = Field(
        "any",
        description="any: all; no_forbidden: none that prohibit redistribution; commercial: only those free to use",
    )


class LimitSettings(SettingsPart):
    """Limits of the free tier and of requests."""

    enabled: bool = Field(True, description="Whether limits apply; switch off for benchmarks only")
    daily: int = Field(100_000, ge=1, description="Calls per day and client over all free endpoints")
    spacing_s: float = Field(
        30, gt=0, description="Seconds between two calls of one client to one endpoint; see spacing_scope"
    )
    spacing_scope: Literal["endpoint", "question"] = Field(
        "endpoint",
        description="What spacing_s applies to for callers without a token: calls to one endpoint, or calls with the"
        " same arguments. For callers with a token: calls with the same arguments, at most 12 different ones at a time",
    )
    personal_per_minute: int = Field(60, ge=1, description="Payment, receipt and account calls per minute and client")
    premium_per_minute: int = Field(600, ge=1, description="Premium calls per minute and token")
    uncharged_per_hour: int = Field(
        10,
        ge=1,
        description="Premium calls per hour, payer (a token with its allowances) and tool that may end uncharged, and"
        " webhook bodies per hour and payer that may be refused",
    )
    trusted_proxies: list[str] = Field([], description="Networks of proxies whose X-Forwarded-For is trusted")
    body_bytes: int = Field(65_536, ge=1024, description="Largest request body in bytes")
    connections: int = Field(
        4096, ge=8, description="Maximum of open connections; the limit of file descriptors may be lower"
    )
    connections_per_client: int = Field(
        256, ge=1, description="Maximum of open connections per client, except for trusted proxies"
    )
    head_s: float = Field(10, gt=0, description="Seconds for a request line and its headers to arrive")
    body_s: float = Field(20, gt=0, description="Seconds for a request body to arrive")
    idle_s: float = Field(75, gt=0, description="Seconds that a connection stays open between requests")
    write_s: float = Field(60, gt=0, description="Seconds for a client to read what was sent to it")
    clients: int = Field(200_000, ge=100, description="Clients counted per limit; beyond that, the oldest is dropped")


class McpSettings(SettingsPart):
    """The MCP endpoint."""

    allowed_hosts: list[str] = Field([], description="Additional Host names that are accepted on loopback")
    allowed_origins: list[str] = Field([], description="Additional browser origins that are accepted on loopback")
    strict_versions: bool = Field(
        False, description="Refuse messages of the modern protocol that carry a legacy version header"
    )


class LogSettings(SettingsPart):
    """Structured logs on stderr."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe level that is written"
    )
    format: Literal["auto", "json", "text"] = Field("auto", description="auto: text on a terminal, JSON elsewhere")


class ProbeSettings(SettingsPart):
    """The hosts that internet_pulse probes."""

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
        description="Hosts whose TCP port 443 is probed, by display name",
    )


class OnchainSettings(SettingsPart):
    """How much of Ethereum premium_whales and premium_exchange_flows read."""

    blocks: int = Field(5, ge=1, le=20, description="Number of newest blocks to read, 12 seconds each")


class WebhookSettings(SettingsPart):
    """Push delivery of premium payloads."""

    enabled: bool = Field(True, description="Accept subscriptions and deliver webhooks")
    allow_loopback: bool = Field(
        False, description="For development: also deliver to this machine, at any port and without TLS"
    )


class MetricsSettings(SettingsPart):
    """Prometheus metrics, on an address of their own."""

    enabled: bool = Field(True, description="Serve /metrics")
    host: str = Field("127.0.0.1", description="Address for /metrics")
    port: int = Field(
        0, ge=0, le=65535, description="Port for /metrics; 0 picks a free one, which the ready line names"
    )


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
        None, description="Redis or Valkey that instances share: redis://, rediss://, unix://; needs the extra 'redis'"
    )
    tools: list[str] = Field(
        ["tools"], description="Packages whose tools are served, in addition to installed entry points"
    )
    token: SecretStr | None = Field(None, description="Bearer token that stdio and call pay with")
    upstream: UpstreamSettings = UpstreamSettings()
    sources: SourceSettings = SourceSettings()
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
        known = {name.upper() for name in self.settings_cls.model_fields}
        for name in os.environ:
            if name.startswith(PREFIX):
                first = name.removeprefix(PREFIX).split("__")[0]
                if first not in known:
                    raise UnknownVariable(name)
        return super().__call__()


_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\]")
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*/?")


def normalize_base_url(given: str) -> str:
    """Return a public address with scheme and host in lower case and without a last slash.

    Raises:
        ValueError: the address is not http or https, or has more than a host, a port and a plain path. The message
            does not repeat the address.
    """
    parts = urlsplit(given)
    host, _, _ = parts.netloc.rpartition(":") if re.search(r":\d*$", parts.netloc) else (parts.netloc, "", "")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("must be an absolute http or https URL")
    if "@" in parts.netloc or "?" in given or "#" in given:
        raise ValueError("must have neither a user nor a query nor a fragment")
    if not _HOST.fullmatch(host) or parts.hostname is None or parts.port == 0 or parts.netloc.endswith(":"):
        raise ValueError("must name a host, and perhaps a port; names in other scripts are written as xn--…")
    if not _PATH.fullmatch(parts.path) or given.lower() != f"{parts.scheme}://{parts.netloc}{parts.path}".lower():
        raise ValueError("must have a plain path, or none: letters, digits, and - . _ ~ between slashes")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def default_data_dir() -> Path:
    """Return the platform's directory for an application's data."""
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "toolserver"
    if os.uname().sysname == "Darwin":
        return Path.home() / "Library" / "Application Support" / "toolserver"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "toolserver"
