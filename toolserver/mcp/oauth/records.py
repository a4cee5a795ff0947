"""Define what OAuth stores: clients, requests that wait for a person, grants, and the secrets that use a grant.

A reader of these records cannot spend anything. A secret (a code, an access token, a refresh token) is stored as its
SHA-256. Beside it is the token of the allowance, encrypted under a key derived from the secret itself. Times are in
milliseconds since 1970.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token

SecretKind = Literal["code", "access", "refresh"]
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


class OAuthClient(NamedTuple):
    """A client. `secret_hash` is None for public clients; `document` says that it describes itself at its id, a URL.

    `owner` is who registered it, an address or the /48 of one; it is stored until the client is used first.
    """

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    created_at: int
    auth_method: str = "none"
    secret_hash: bytes | None = None
    used_at: int | None = None
    document: bool = False
    owner: str = ""


class ConsentRequest(NamedTuple):
    """A valid authorization request that waits for a person.

    `id` and `browser` are hashes of secrets that only that person's browser has. `purchase` is the person's purchase
    during the request, encrypted under the id. `owner` is who began it, an address or the /48 of one.
    """

    id: bytes
    browser: bytes
    client_id: str
    client_name: str
    redirect_uri: str
    state: str | None
    challenge: str
    created_at: int
    expires_at: int
    purchase: bytes | None = None
    answered_at: int | None = None
    owner: str = ""


class OAuthGrant(NamedTuple):
    """What a person allowed a client. `child` is the SHA-256 (hex) of the allowance's token."""

    id: str
    client_id: str
    redirect_uri: str
    challenge: str
    child: str
    created_at: int
    expires_at: int
    revoked_at: int | None = None


@dataclass(frozen=True, slots=True)
class GrantSecret:
    """A code, an access token or a refresh token. Codes and refresh tokens are used only once."""

    hash: bytes
    grant: str
    kind: SecretKind
    sealed: bytes
    expires_at: int
    used_at: int | None = None


class FoundSecret(NamedTuple):
    """A presented secret and its grant."""

    secret: GrantSecret
    grant: OAuthGrant


def new_secret(kind: SecretKind) -> str:
    """Return a secret of 256 random bits. Logs recognise its shape and mask it."""
    return f"svc_{kind}_{secrets.token_hex(32)}"


def hash_secret(secret: str) -> bytes:
    """Return the hash that is stored instead of a secret. 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def seal_under(secret: str, text: str) -> bytes:
    """Encrypt a text under a secret."""
    return encrypt_token(text, _key(secret))


def unseal_with(secret: str, sealed: bytes) -> str | None:
    """Decrypt the text; None if the secret is another one."""
    return decrypt_token(sealed, _key(secret))


def make_secret(kind: SecretKind, grant: str, child: str, expires_at: int) -> tuple[str, GrantSecret]:
    """Make a new secret of a grant and its stored form. `child` is the token of the allowance."""
    secret = new_secret(kind)
    return secret, GrantSecret(hash_secret(secret), grant, kind, seal_under(secret, child), expires_at)


def _key(secret: str) -> bytes:
    return hmac.digest(b"toolserver oauth secret", secret.encode(errors="replace"), "sha256")
