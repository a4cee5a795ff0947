"""Reads private keys on a machine without a network, from a file of their owner or from an environment variable.

A key has one of three forms: a single private key (64 hexadecimal digits), an account's
extended private key (`xprv…`, at m/44'/60'/account'), or the words of a wallet (BIP-39). No
error and no log line repeats any part of it.
"""

import hashlib
import hmac
import os
import stat
import unicodedata
from pathlib import Path
from typing import NamedTuple, Protocol

from eth_keys.constants import SECPK1_N
from eth_keys.datatypes import PrivateKey

from toolserver.money.purchases.deposit import ACCOUNT_DEPTH, HARDENED, NotAnAccountKey, base58check

_PRIVATE_VERSION = bytes.fromhex("0488ade4")
_DIGITS = frozenset("0123456789abcdefABCDEF")
_WORDS = (12, 15, 18, 21, 24)


class KeyRefused(ValueError):
    """The key cannot be used. The message never repeats any part of the key."""


class Signer(Protocol):
    """Keys to sign with."""

    def find_key(self, path: str | None) -> PrivateKey:
        """Return the key at a path below the account, such as `0/7`. Raises KeyRefused."""
        ...


class SingleKey(NamedTuple):
    """One private key, which is returned for every path."""

    key: PrivateKey

    def find_key(self, path: str | None) -> PrivateKey:
        return self.key


class ExtendedKey(NamedTuple):
    """An extended private key (BIP-32), from which all keys below it are derived."""

    key: bytes
    chain_code: bytes

    def find_key(self, path: str | None) -> PrivateKey:
        if path is None:
            raise KeyRefused("the paying account is not a deposit address: sign with the private key of that account")
        key = self
        for part in path.split("/"):
            if not part.isdecimal() or len(part) > 10 or int(part) >= HARDENED:
                raise KeyRefused(f"{path[:40]!r} is not a path below an account")
            key = key.child(int(part))
        return PrivateKey(key.key)

    def child(self, index: int) -> "ExtendedKey":
        """Return the child key at an index (BIP-32 CKDpriv). Raises KeyRefused for one index in 2^127."""
        own = bytes([0]) + self.key
        serial = own if index >= HARDENED else PrivateKey(self.key).public_key.to_compressed_bytes()
        digest = hmac.digest(self.chain_code, serial + index.to_bytes(4, "big"), "sha512")
        tweak = int.from_bytes(digest[:32], "big")
        number = (tweak + int.from_bytes(self.key, "big")) % SECPK1_N
        if tweak >= SECPK1_N or not number:
            raise KeyRefused("this index has no key")
        return ExtendedKey(number.to_bytes(32, "big"), digest[32:])


def read_key_file(path: Path) -> str:
    """Return the text of a key file. Raises KeyRefused if anyone but its owner can read it, or if it cannot be read."""
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeyRefused(f"{path} can be read by others: run chmod 600 on it")
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyRefused(f"{path} cannot be read: {type(error).__name__}") from None


def read_key_variable(name: str) -> str:
    """Return the text of an environment variable. Raises KeyRefused if it is not set or empty."""
    text = os.environ.get(name, "").strip()
    if not text:
        raise KeyRefused(f"the environment variable {name} is not set")
    return text


def read_private_key(text: str) -> PrivateKey:
    """Read a single private key of 64 hexadecimal digits, with or without 0x. Raises KeyRefused."""
    digits = text.strip().removeprefix("0x")
    if len(digits) != 64 or not _DIGITS.issuperset(digits) or not 0 < int(digits, 16) < SECPK1_N:
        raise KeyRefused("this is not a private key: a key has 64 hexadecimal digits")
    return PrivateKey(bytes.fromhex(digits))


def read_signer(text: str, *, account: int = 0) -> Signer:
    """Return the keys of a text in any of the three forms. `account` matters only for words. Raises KeyRefused."""
    text = text.strip()
    if text.startswith("xprv"):
        return _read_extended(text)
    words = unicodedata.normalize("NFKD", text).split()
    return _from_words(words, account) if len(words) in _WORDS else SingleKey(read_private_key(text))


def _read_extended(text: str) -> ExtendedKey:
    try:
        data = base58check(text)
    except NotAnAccountKey as refused:
        raise KeyRefused(str(refused)) from None
    if len(data) != 78 or data[:4] != _PRIVATE_VERSION or data[4] != ACCOUNT_DEPTH or data[45]:
        raise KeyRefused("this is not the private key of an account (m/44'/60'/account', depth 3)")
    return ExtendedKey(data[46:], data[13:45])


def _from_words(words: list[str], account: int) -> ExtendedKey:
    """Return the account's key. A mistyped word leads to other keys, which match no address of a plan."""
    seed = hashlib.pbkdf2_hmac("sha512", " ".join(words).encode(), b"mnemonic", 2048)
    digest = hmac.digest(b"Bitcoin seed", seed, "sha512")
    key = ExtendedKey(digest[:32], digest[32:])
    for number in (44, 60, account):
        key = key.child(HARDENED + number)
    return key
