"""Builds and reads transfers of USDC that the owner of an address authorises by a signature (EIP-3009, EIP-712).

    plan (here, without keys) → sign (offline) → submit `transferWithAuthorization` (any account with a little ether)

Anyone can submit a signed authorisation. A document lists authorisations as JSON; signing
adds a `signature` to each. Each works once, because its nonce is used up.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from toolserver.money.purchases.chain.ethereum import address_from, checksum_address, keccak, recover_address
from toolserver.money.purchases.units import CHAIN_ID, USDC, USDC_TEXT

if TYPE_CHECKING:
    from eth_keys.datatypes import PrivateKey

VALID_S = 7 * 86_400
_FIELDS = (
    ("from", "address"),
    ("to", "address"),
    ("value", "uint256"),
    ("validAfter", "uint256"),
    ("validBefore", "uint256"),
    ("nonce", "bytes32"),
)
# transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)
SELECTOR = bytes.fromhex("e3ee160e")
DOMAIN = {"name": "USD Coin", "version": "2", "chainId": CHAIN_ID, "verifyingContract": USDC_TEXT}
TYPES = {
    "EIP712Domain": [
        {"name": "name", "type": "string"},
        {"name": "version", "type": "string"},
        {"name": "chainId", "type": "uint256"},
        {"name": "verifyingContract", "type": "address"},
    ],
    "TransferWithAuthorization": [{"name": name, "type": kind} for name, kind in _FIELDS],
}


class UnusableDocument(ValueError):
    """The document contains something that must not be signed or submitted here. The text says what."""


class Authorization(NamedTuple):
    """A transfer to authorise: payer, payee, amount in 0.000001 USDC, end of validity (epoch
    seconds), and the nonce that it uses up.
    """

    payer: bytes
    payee: bytes
    amount: int
    valid_before: int
    nonce: bytes

    @property
    def typed_data(self) -> dict[str, Any]:
        """The typed data that wallets sign (EIP-712)."""
        message = {
            "from": checksum_address(self.payer),
            "to": checksum_address(self.payee),
            "value": self.amount,
            "validAfter": 0,
            "validBefore": self.valid_before,
            "nonce": f"0x{self.nonce.hex()}",
        }
        return {"types": TYPES, "primaryType": "TransferWithAuthorization", "domain": DOMAIN, "message": message}

    @property
    def digest(self) -> bytes:
        """The 32 bytes that are signed: the hash of the typed data."""
        return keccak(b"\x19\x01" + _domain_hash() + keccak(_type_hash() + b"".join(self._words())))

    def sign(self, key: "PrivateKey") -> bytes:
        """Return the signature of 65 bytes: r, s, v."""
        signed = key.sign_msg_hash(self.digest).to_bytes()
        return signed[:64] + bytes([27 + signed[64]])

    def is_signed(self, signature: bytes) -> bool:
        """Return True if the signature is that of the account that pays."""
        return signature[64:] in (b"\x1b", b"\x1c") and recover_address(self.digest, signature) == self.payer

    def call(self, signature: bytes) -> bytes:
        """Return the data of the call to the USDC contract that moves the money.

        Raises ValueError unless the signature has 65 bytes.
        """
        if len(signature) != 65:
            raise ValueError("a signature must have 65 bytes")
        signed = bytes(31) + signature[64:] + signature[:64]
        return SELECTOR + b"".join(self._words()) + signed

    def _words(self) -> Iterator[bytes]:
        yield bytes(12) + self.payer
        yield bytes(12) + self.payee
        for number in (self.amount, 0, self.valid_before):
            yield number.to_bytes(32, "big")
        yield self.nonce


def read_document(document: Any) -> list[tuple[dict[str, Any], Authorization]]:
    """Return the authorisations of a document, each with its entry. Raises UnusableDocument."""
    try:
        entries = document["authorizations"]
        chain, token = document["chain_id"], address_from(document["token"])
        authorizations = [(entry, _read_typed_data(entry["typed_data"])) for entry in entries]
    except (LookupError, TypeError, AttributeError, OverflowError) as error:
        raise UnusableDocument(f"this is not a plan: {type(error).__name__}") from None
    if (chain, token) != (CHAIN_ID, USDC):
        raise UnusableDocument("the plan is for another chain or token")
    return authorizations


def _read_typed_data(typed: dict[str, Any]) -> Authorization:
    """Read one authorisation. Everything in it besides its five values must be exactly as we write it.

    Raises UnusableDocument, LookupError, TypeError, ValueError.
    """
    message = typed["message"]
    read = Authorization(
        address_from(message["from"]),
        address_from(message["to"]),
        int(message["value"]),
        int(message["validBefore"]),
        bytes.fromhex(message["nonce"].removeprefix("0x")),
    )
    if len(read.nonce) != 32 or read.amount < 1 or read.typed_data != typed:
        raise UnusableDocument("an entry is not a plain transfer of USDC that is valid from now on")
    return read


def _domain_hash() -> bytes:
    kinds = ",".join(f"{field['type']} {field['name']}" for field in TYPES["EIP712Domain"])
    words = [keccak(b"USD Coin"), keccak(b"2"), CHAIN_ID.to_bytes(32, "big"), bytes(12) + USDC]
    return keccak(keccak(f"EIP712Domain({kinds})".encode()) + b"".join(words))


def _type_hash() -> bytes:
    fields = ",".join(f"{kind} {name}" for name, kind in _FIELDS)
    return keccak(f"TransferWithAuthorization({fields})".encode())
