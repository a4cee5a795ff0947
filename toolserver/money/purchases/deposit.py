"""Derives a deposit address for each purchase from the operator's account-level public key (BIP-32, BIP-44, EIP-55).

The key at m/44'/60'/account' leads to every address m/44'/60'/account'/0/index; the private
keys stay offline. Never reveal the private key of one of the addresses: together with this
public key it reveals all the others.
"""

import hashlib
import hmac
from typing import NamedTuple

from toolserver.money.purchases.chain.ethereum import keccak

Point = tuple[int, int]

VERSION, ACCOUNT_DEPTH, HARDENED = bytes.fromhex("0488b21e"), 3, 2**31
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class NotAnAccountKey(ValueError):
    """The text is not an account-level extended public key. The message never repeats it."""


class PublicKey(NamedTuple):
    """An extended public key: a point of the curve, and the chain code from which its children are derived."""

    point: Point
    chain_code: bytes

    def child(self, index: int) -> "PublicKey":
        """Return the child key at an index (BIP-32 CKDpub). Raises ValueError for one index in 2^127."""
        if not 0 <= index < HARDENED:
            raise ValueError("only children below 2^31 can be derived from a public key")
        x, y = self.point
        serial = bytes([2 + y % 2]) + x.to_bytes(32, "big")
        digest = hmac.digest(self.chain_code, serial + index.to_bytes(4, "big"), "sha512")
        try:
            point = add_multiple(int.from_bytes(digest[:32], "big"), self.point)
        except ValueError:
            raise ValueError("this index has no key") from None
        return PublicKey(point, digest[32:])

    @property
    def address(self) -> bytes:
        return keccak(b"".join(part.to_bytes(32, "big") for part in self.point))[12:]


class DepositKey:
    """The operator's account key, which turns an index into an address."""

    def __init__(self, xpub: str) -> None:
        """Raise NotAnAccountKey if the text is not the extended public key of an account."""
        self._external = account_key(xpub).child(0)

    def address(self, index: int) -> bytes:
        """Return the deposit address m/44'/60'/account'/0/index."""
        return self._external.child(index).address


def account_key(xpub: str) -> PublicKey:
    """Read `xpub…`, the extended public key of an account: depth 3, and no other version of the format.

    Raises:
        NotAnAccountKey: anything else, with the reason.
    """
    data = base58check(xpub.strip())
    if data[:4] == bytes.fromhex("0488ade4"):
        raise NotAnAccountKey("this is a private key: keep it offline, and assume from now on that others know it")
    if len(data) != 78 or data[:4] != VERSION:
        raise NotAnAccountKey("an account key must start with xpub and have 78 bytes")
    if data[4] != ACCOUNT_DEPTH or int.from_bytes(data[9:13], "big") < HARDENED:
        raise NotAnAccountKey("the key is not that of an account (m/44'/60'/account', depth 3)")
    try:
        point = decompress_point(data[45:])
    except ValueError:
        raise NotAnAccountKey("the key is not a point of the curve") from None
    return PublicKey(point, data[13:45])


def base58check(text: str) -> bytes:
    """Return the bytes of a key in base58 with a checksum, without the checksum. Raises NotAnAccountKey."""
    number = 0
    for character in text:
        digit = _BASE58.find(character)
        if digit < 0 or len(text) > 120:
            raise NotAnAccountKey("the key is not base58")
        number = number * 58 + digit
    data = number.to_bytes(82, "big")[-82:] if number < 2**656 else b""
    body, check = data[:-4], data[-4:]
    if hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4] != check:
        raise NotAnAccountKey("the key has a wrong checksum: a character is missing or mistyped")
    return body


def add_multiple(factor: int, point: Point) -> Point:
    """Return the generator of secp256k1 times `factor`, plus another point.

    Raises ValueError if `factor` is 0 or not below the order of the curve, or if the sum is the point at infinity.
    """
    from cryptography.hazmat.primitives.asymmetric import ec
    from eth_keys.backends.native.jacobian import fast_add

    multiple = ec.derive_private_key(factor, ec.SECP256K1()).public_key().public_numbers()
    x, y = fast_add((multiple.x, multiple.y), point)
    if (x, y) == (0, 0):
        raise ValueError("the sum is the point at infinity")
    return x, y


def decompress_point(compressed: bytes) -> Point:
    """Return the point of secp256k1 that 33 bytes name. Raises ValueError."""
    from cryptography.hazmat.primitives.asymmetric import ec

    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), compressed).public_numbers()
    return point.x, point.y
