"""Define the settings of upstream sources, and of the tools that measure hosts and read a chain."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from toolserver.core.outbound import normalize_proxy
from toolserver.settings.part import SettingsPart

KEYS = (
    "FINNHUB_API_KEY", "FRED_API_KEY", "BLS_API_KEY", "ETHERSCAN_API_KEY", "ETH_RPC_URL", "SOLANA_RPC_URL",
    "FIRMS_MAP_KEY", "ABUSE_CH_AUTH_KEY", "GITHUB_TOKEN", "COINGECKO_API_KEY", "CMC_API_KEY", "LL2_TOKEN",
    "OPENMETEO_API_KEY", "OPENMETEO_URL", "MEMPOOL_URL", "BITCOIN_RPC_URL", "GOOGLE_NEWS",
)  # fmt: skip


SERVERS = tuple(name for name in KEYS if name.endswith("_URL"))  # addresses of the operator's own servers


class UpstreamSettings(SettingsPart):
    """How upstreams are requested."""

    via: str | None = Field(
        None, description="Send every upstream request to this address instead (the simulated world)"
    )
    contact: str | None = Field(
        None, description="Contact address in the User-Agent; some public services refuse requests without one"
    )
    proxy: SecretStr | None = Field(
        None,
        description="Proxy for requests to sources, RPC servers, the facilitator and a bridged service: "
        "http://[user:password@]host:port; socks5:// needs the extra 'socks'. direct: none, whatever the environment "
        "says; null: HTTPS_PROXY, HTTP_PROXY or ALL_PROXY. Hosts in NO_PROXY are reached directly",
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

    @field_validator("proxy")
    @classmethod
    def _is_proxy(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and (address := value.get_secret_value()) != "direct":
            normalize_proxy(address)
        return value

    @property
    def proxy_address(self) -> str | None:
        """The proxy with its password, `direct`, or None."""
        return None if self.proxy is None else self.proxy.get_secret_value()


class SourceSettings(SettingsPart):
    """Which sources may be used."""

    keys: dict[str, SecretStr] = Field(
        {}, description=f"API keys and addresses of own servers by name, all optional: {', '.join(KEYS)}"
    )
    licence_policy: Literal["any", "no_forbidden", "commercial"] = Field(
        "any",
        description="any: all; no_forbidden: none that prohibit redistribution; commercial: only those free to use",
    )
    contracts: dict[str, str] = Field(
        {},
        description="What your contracts allow, by source (CoinGecko.markets) or publisher (CoinGecko). These are used"
        " under every policy. Everyone can read the text in /api/sources",
    )

    @field_validator("contracts")
    @classmethod
    def _said(cls, value: dict[str, str]) -> dict[str, str]:
        for party, text in value.items():
            if not text.strip():
                raise ValueError(f"{party}: say in a few words what the contract allows")
        return value


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
