"""Define the settings of serving: limits, MCP, logs, metrics, webhooks, several instances and storage."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator

from toolserver.core.outbound import normalize_proxy
from toolserver.settings.part import SettingsPart


class LimitSettings(SettingsPart):
    """Limits of the free tier and of requests."""

    enabled: bool = Field(True, description="Whether limits apply; switch off for benchmarks only")
    daily: int = Field(100_000, ge=1, description="Calls per day and client over all free endpoints")
    spacing_s: float = Field(
        30,
        ge=0,
        description="Seconds between two calls of one client to one endpoint; see spacing_scope; 0: none",
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
    page_tries_per_minute: int = Field(
        12, ge=1, description="Free tools that the pages of tools try per minute and address (IPv6: /48)"
    )
    page_tries_per_day: int = Field(200, ge=1, description="The same per day")
    visitor_cheap_per_day: int = Field(
        3, ge=0, description="Visitor tokens per day (UTC) and address that take no proof of work"
    )
    visitor_work_bits: int = Field(
        14, ge=1, le=64, description="Bits of work for the next visitor token; each further one takes a bit more"
    )
    visitor_per_day: int = Field(200, ge=0, description="Visitor tokens per day and address (IPv6: /64)")
    visitor_network_per_day: int = Field(2000, ge=0, description="Visitor tokens per day and IPv6 /48")
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


class ServingSettings(SettingsPart):
    """The life of the process that serves."""

    drain_s: float = Field(
        5,
        ge=0,
        le=300,
        description="Seconds after SIGTERM in which /readyz answers 503 and calls are still taken, for balancers to"
        " notice; the demo sets 0",
    )


class McpSettings(SettingsPart):
    """The MCP endpoint."""

    allowed_hosts: list[str] = Field([], description="Additional Host names that are accepted on loopback")
    allowed_origins: list[str] = Field([], description="Additional browser origins that are accepted on loopback")
    strict_versions: bool = Field(
        False, description="Refuse messages of the modern protocol that carry a legacy version header"
    )
    events_dialect: Literal["sketch", "extension"] = Field(
        "sketch",
        description="Error codes of MCP Events, and what ending an unknown subscription answers: sketch as the hosts "
        "of today read them, extension as the text of the official extension has them",
    )


class LogSettings(SettingsPart):
    """Structured logs on stderr."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe level that is written"
    )
    format: Literal["auto", "json", "text"] = Field("auto", description="auto: text on a terminal, JSON elsewhere")


class TracingSettings(SettingsPart):
    """Traces of calls, by OpenTelemetry."""

    enabled: bool = Field(
        False, description="Trace calls; needs the extra 'otel'. OTEL_EXPORTER_OTLP_ENDPOINT says where to"
    )


class MetricsSettings(SettingsPart):
    """Prometheus metrics, on an address of their own."""

    enabled: bool = Field(True, description="Serve /metrics")
    host: str = Field("127.0.0.1", description="Address for /metrics")
    port: int = Field(
        0, ge=0, le=65535, description="Port for /metrics; 0 picks a free one, which the ready line names"
    )


class WebhookSettings(SettingsPart):
    """Push delivery of premium payloads."""

    enabled: bool = Field(True, description="Accept subscriptions and deliver webhooks")
    allow_loopback: bool = Field(
        False, description="For development: also deliver to this machine, at any port and without TLS"
    )
    proxy: SecretStr | None = Field(
        None,
        description="HTTP proxy for webhooks and the documents of OAuth clients, http://[user:password@]host:port; "
        "the proxies of the environment never apply to them. The proxy is given checked addresses, not names",
    )

    @field_validator("proxy")
    @classmethod
    def _is_http_proxy(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not normalize_proxy(value.get_secret_value()).startswith("http://"):
            raise ValueError("must be an http proxy")
        return value

    @property
    def proxy_address(self) -> str | None:
        """The proxy with its password, or None."""
        return None if self.proxy is None else normalize_proxy(self.proxy.get_secret_value())


REDIS_SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")


def _require_redis(value: SecretStr) -> SecretStr:
    scheme = urlsplit(value.get_secret_value()).scheme
    if scheme in ("redis+cluster", "rediss+cluster"):
        raise ValueError("names a Redis Cluster, which is not supported: name a single server, or its Sentinels")
    if scheme not in REDIS_SCHEMES:
        raise ValueError("must begin with redis://, rediss://, unix:// or redis+sentinel://")
    return value


RedisUrl = Annotated[SecretStr, AfterValidator(_require_redis)]


class ScalingSettings(SettingsPart):
    """Several instances of one service, which share a Redis or a database."""

    instances: int = Field(
        1,
        ge=1,
        le=10_000,
        description="Instances that share redis_url; while Redis is lost, each allows its share of the limits",
    )
    redis_deadline_s: float = Field(
        0.5,
        gt=0,
        le=5,
        description="Seconds without an answer after which Redis counts as lost and no call waits for it",
    )
    redis_prefix: str = Field(
        "toolserver:",
        pattern="^[A-Za-z0-9_.:{}-]{1,64}$",
        description="Prefix of all keys in Redis; services that share a Redis but no data need different prefixes",
    )
    keys_dir: Path | None = Field(
        None,
        description="Folder of the keys that all instances with the same database_url share, such as a mounted secret;"
        " `keys make` writes it. null: keys in data_dir",
    )


class StorageSettings(SettingsPart):
    """The disk that the data directory is on."""

    least_free_mb: float = Field(
        4,
        ge=0,
        description="Megabytes that must be free on the disk; with less, nothing is sold and /readyz says so",
    )

    statement_cache: int = Field(
        256,
        ge=0,
        le=10_000,
        description="Prepared statements kept per connection to database_url; 0 to treat the"
        " server as a pooler in transaction mode, which is also found out by itself",
    )

    migrate: Literal["start", "manual"] = Field(
        "start",
        description="When the tables of an older version are brought up to date: `start` of the service, or `manual`:"
        " a start refuses, and `toolserver migrate` does it",
    )

    archive_dir: Path | None = Field(
        None, description="Folder for the archives of closed months; null: archive in data_dir"
    )
    keep_months: int | None = Field(
        None, ge=3, description="Number of whole archived months whose calls stay in the database; null: all stay"
    )

    @property
    def least_free_bytes(self) -> int:
        """The same in bytes."""
        return int(self.least_free_mb * 1_000_000)
