"""The settings about money: selling credits, x402, and whose books they are in."""

import ipaddress
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

_SERVICE = "^[a-z0-9][a-z0-9._-]{0,31}$"
Secret = Annotated[SecretStr, Field(min_length=32)]


class Part(BaseModel):
    """Base of every group of settings: a name that is not known is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Payments(Part):
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


class X402(Part):
    """Payments by x402: USDC authorisations signed by the caller, for one call or for credits."""

    enabled: bool = Field(False, description="Take x402 payments; needs facilitator_url and pay_to")
    facilitator_url: str | None = Field(
        None, description="Service that verifies and settles payments (https, or http on this machine)"
    )
    facilitator_token: SecretStr | None = Field(None, description="Bearer token for it, if it wants one")
    pay_to: str | None = Field(None, pattern="^0x[0-9a-fA-F]{40}$", description="Address on Base that is paid")
    most_usd: int = Field(1000, ge=1, le=1_000_000, description="Largest top-up in one payment")
    max_timeout_seconds: int = Field(
        120, ge=60, le=3600, description="How long an authorisation is to be good for: a call and its settlement"
    )
    verify_s: float = Field(5, gt=0, le=30, description="How long the facilitator may take to verify")
    settle_s: float = Field(20, gt=0, le=60, description="How long it may take to settle; then the outcome is pending")

    @field_validator("facilitator_url")
    @classmethod
    def _reachable(cls, value: str | None) -> str | None:
        if value is None:
            return None
        url = urlsplit(value)
        plain = url.scheme == "http" and url.hostname is not None and is_loopback(url.hostname)
        if not (plain or (url.scheme == "https" and url.hostname)) or url.query or url.fragment or url.username:
            raise ValueError("must be an https address without query, or http on this machine")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _complete(self) -> "X402":
        if self.enabled and not (self.facilitator_url and self.pay_to):
            raise ValueError("to take x402 payments, set facilitator_url and pay_to")
        return self


class Ledger(Part):
    """Whose books credits are in: our own, which others may follow, or those of a sister service."""

    url: str | None = Field(None, description="Internal address of the ledger that is followed; null: own books")
    service: str = Field("toolserver", pattern=_SERVICE, description="Our name among the services that share a ledger")
    key_id: str | None = Field(None, pattern="^[A-Za-z0-9._-]+$", description="Name of the key we follow with")
    secret: Secret | None = Field(None, description="That key, 32 characters or more; the owner has the same")
    public_url: str | None = Field(None, description="Where the owner sells credits; null: none can be bought here")
    host: str = Field("127.0.0.1", description="Address of the internal listener for those who follow us")
    port: int | None = Field(None, ge=0, le=65535, description="Its port, 0 for a free one; null: nobody follows us")
    keys: dict[str, Secret] = Field({}, description="Keys of those who follow us, by name; two for each while rotating")
    services: dict[str, list[str]] = Field({}, description="Which services each of these keys may charge for")
    compat_internal_auth: bool = Field(False, description="Also take a bare key, in X-Internal-Auth")

    @field_validator("url", "public_url")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        url = urlsplit(value or "http://none")
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query or url.fragment:
            raise ValueError("must be an http address without user, query or fragment")
        return value.rstrip("/") if value else None

    @model_validator(mode="after")
    def _complete(self) -> "Ledger":
        if self.url and (self.port is not None or not (self.key_id and self.secret)):
            raise ValueError("to follow a ledger, set key_id and secret, and no port: whoever follows is not followed")
        if self.port is not None and not self.keys:
            raise ValueError("to be followed, set keys and services")
        names = [name for each in self.services.values() for name in each]
        if self.keys.keys() != self.services.keys() or not all(self.services.values()):
            raise ValueError("services names, for each of the keys, at least one service")
        if not all(re.fullmatch(_SERVICE, name) for name in names):
            raise ValueError("a service is named by a-z, 0-9, dot, dash and underscore")
        return self


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
