"""Define the settings of money: selling credits, x402, OAuth and the ledger."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from toolserver.settings.addresses import is_loopback
from toolserver.settings.part import SettingsPart

_SERVICE = "^[a-z0-9][a-z0-9._-]{0,31}$"
Secret = Annotated[SecretStr, Field(min_length=32)]


class PaymentSettings(SettingsPart):
    """Selling credits for USDC on Base."""

    enabled: bool = Field(False, description="Sell credits; needs rpc_urls and xpub, or shared_wallet")
    rpc_urls: list[SecretStr] = Field(
        [], description="JSON-RPC servers of Base (chain 8453), from independent providers; large sums need two"
    )
    binding: Literal["deposit", "shared_wallet"] = Field(
        "deposit",
        description="deposit: a new address for each purchase; shared_wallet: one address, with proof of payment",
    )
    xpub: SecretStr | None = Field(
        None, description="Account-level public key (m/44'/60'/n') that deposit addresses are derived from"
    )
    shared_wallet: str | None = Field(
        None, pattern="^0x[0-9a-fA-F]{40}$", description="The address that all buyers pay, for shared_wallet"
    )
    quote_minutes: int = Field(30, ge=5, le=1440, description="Minutes for which a quote is valid")
    keep_unpaid_days: int = Field(
        30,
        ge=1,
        description="Days until an expired, unpaid quote is archived; its memo can still claim it",
    )
    quotes_per_minute: int = Field(600, ge=1, description="Quotes per minute for all callers together")
    grace_minutes: int = Field(
        10, ge=0, le=1440, description="Minutes after a quote expires in which a payment still counts as on time"
    )
    late: Literal["credit", "reject"] = Field("credit", description="How a later payment is handled")
    wait_s: float = Field(
        10,
        ge=0,
        le=20,
        description="Seconds that payment_confirm waits for the chain before it answers that the payment is pending",
    )
    confirmations: int = Field(3, ge=1, le=1000, description="Blocks required on top of a payment below safe_from_usd")
    safe_from_usd: int = Field(100, ge=1, description="Payments from this amount wait for a safe block (2 minutes)")
    finalized_from_usd: int = Field(
        10_000, ge=1, description="Payments from this amount wait for a finalized block (20 minutes)"
    )
    agree_from_usd: int | None = Field(
        1000, ge=1, description="From this amount, two RPC servers must agree; null: one server, your own, is enough"
    )
    ceiling_purchase_usd: int | None = Field(
        20_000, ge=1, description="Largest purchase, by transfer or x402; null: no limit"
    )
    ceiling_hour_usd: int | None = Field(
        20_000,
        ge=1,
        description="Maximum sold to all buyers in an hour; payments beyond it wait for review by a person",
    )
    ceiling_day_usd: int | None = Field(100_000, ge=1, description="The same for 24 hours")
    receipt_algorithm: Literal["EdDSA", "Ed25519"] = Field(
        "EdDSA",
        description="Name of the signature algorithm in receipts: EdDSA (RFC 8037), which every library reads, or "
        "Ed25519 (RFC 9864), its newer name",
    )
    scan: bool = Field(
        True, description="Read every transfer of USDC to or from our addresses into the book of the chain"
    )
    log_addresses: int = Field(
        1_000, ge=1, le=100_000, description="Addresses that one search of logs may name, as the RPC servers allow"
    )
    log_blocks: int = Field(
        10_000, ge=1, le=1_000_000, description="Blocks that one search of logs may span, as the RPC servers allow"
    )
    first_index: int = Field(
        0, ge=0, lt=2**31, description="Index of the first deposit address; raise it after restoring a backup"
    )

    @field_validator("rpc_urls")
    @classmethod
    def _servers(cls, value: list[SecretStr]) -> list[SecretStr]:
        urls = [each.get_secret_value() for each in value]
        if any(urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname for url in urls):
            raise ValueError("each must be an http or https URL")
        if len(set(urls)) < len(urls):
            raise ValueError("a server is named twice")
        return value

    @model_validator(mode="after")
    def _complete(self) -> "PaymentSettings":
        wallet = self.xpub if self.binding == "deposit" else self.shared_wallet
        if self.enabled and not (wallet and self.rpc_urls):
            raise ValueError("to sell credits, set rpc_urls and xpub (or binding and shared_wallet)")
        return self


class X402Settings(SettingsPart):
    """Payments by x402: USDC authorisations signed by the caller, for one call or for credits."""

    enabled: bool = Field(False, description="Accept x402 payments; needs facilitator_url and pay_to")
    facilitator_url: str | None = Field(
        None, description="Service that verifies and settles payments (https, or http on this machine)"
    )
    facilitator_token: SecretStr | None = Field(None, description="Bearer token for the facilitator, if it needs one")
    pay_to: str | None = Field(
        None, pattern="^0x[0-9a-fA-F]{40}$", description="Address on Base that receives the payments"
    )
    most_usd: int = Field(1000, ge=1, le=1_000_000, description="Largest top-up in one payment")
    max_timeout_seconds: int = Field(
        120,
        ge=60,
        le=3600,
        description="Seconds for which an authorisation must be valid: enough for a call and its settlement",
    )
    verify_s: float = Field(5, gt=0, le=30, description="Seconds that the facilitator may take to verify")
    settle_s: float = Field(
        20,
        gt=0,
        le=60,
        description="Seconds that the facilitator may take to settle; after that the payment is pending",
    )

    @field_validator("facilitator_url")
    @classmethod
    def _reachable(cls, value: str | None) -> str | None:
        if value is None:
            return None
        url = urlsplit(value)
        plain = url.scheme == "http" and url.hostname is not None and is_loopback(url.hostname)
        if not (plain or (url.scheme == "https" and url.hostname)) or url.query or url.fragment or url.username:
            raise ValueError("must be an https URL without query, or http on this machine")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _complete(self) -> "X402Settings":
        if self.enabled and not (self.facilitator_url and self.pay_to):
            raise ValueError("to take x402 payments, set facilitator_url and pay_to")
        return self


class OAuthSettings(SettingsPart):
    """OAuth 2.1 at /api/mcp/auth, for hosts that support nothing else. It is on where credits are sold over https."""

    enabled: bool = Field(True, description="Let hosts sign in at /api/mcp/auth")
    credits: int = Field(
        250, ge=1, le=1_000_000, description="Credits that a host may spend, unless the user changes the number"
    )
    days: int = Field(
        30, ge=1, le=365, description="Days until the allowance of a host ends, unless the user changes the number"
    )


class LedgerSettings(SettingsPart):
    """Where credits are kept: in our own ledger, which others may follow, or in a sister service's."""

    url: str | None = Field(
        None, description="Internal address of the ledger to follow; null: the service has its own ledger"
    )
    service: str = Field(
        "toolserver", pattern=_SERVICE, description="Name of this service among those that share a ledger"
    )
    key_id: str | None = Field(
        None, pattern="^[A-Za-z0-9._-]+$", description="Name of the key that signs requests to that ledger"
    )
    secret: Secret | None = Field(None, description="The key itself, 32 characters or more; the owner has the same key")
    public_url: str | None = Field(
        None, description="Public address of the owner, which sells the credits; null: no credits are sold here"
    )
    host: str = Field("127.0.0.1", description="Address of the internal listener for services that follow this ledger")
    port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="Port of the internal listener, 0 for a free one; null: no service follows this ledger",
    )
    keys: dict[str, Secret] = Field(
        {}, description="Keys of the services that follow this ledger, by name; two for each service during a rotation"
    )
    services: dict[str, list[str]] = Field({}, description="Services that each of these keys may charge for")
    require_signed_replies: bool = Field(
        False, description="Take only replies that the owner signed; else from its first signed reply on"
    )
    compat_internal_auth: bool = Field(False, description="Also accept an unsigned key in X-Internal-Auth")

    @field_validator("url", "public_url")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        url = urlsplit(value or "http://none")
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query or url.fragment:
            raise ValueError("must be an http or https URL without user, query or fragment")
        return value.rstrip("/") if value else None

    @model_validator(mode="after")
    def _complete(self) -> "LedgerSettings":
        if self.url and (self.port is not None or not (self.key_id and self.secret)):
            raise ValueError(
                "to follow a ledger, set key_id and secret, and no port: a service that follows one cannot be followed"
            )
        if self.port is not None and not self.keys:
            raise ValueError("to be followed, set keys and services")
        names = [name for each in self.services.values() for name in each]
        if self.keys.keys() != self.services.keys() or not all(self.services.values()):
            raise ValueError("services names, for each of the keys, at least one service")
        if not all(re.fullmatch(_SERVICE, name) for name in names):
            raise ValueError("the name of a service consists of a-z, 0-9, dot, dash and underscore")
        return self
