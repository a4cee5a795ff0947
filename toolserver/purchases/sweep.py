"""Collecting what was paid: authorisations to be signed offline, one per deposit address (EIP-3009).

The addresses hold USDC and nothing to pay fees with, and their keys are not here. So the plan says what each key has to
sign; it is carried to where the keys are, and what comes back is sent by any account that has a little ether:

    plan (here) → sign (offline, from the seed) → submit `transferWithAuthorization` (any relayer)
"""

import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from eth_utils.crypto import keccak

from toolserver.purchases.batch_balances import BATCH
from toolserver.purchases.deposit import DepositKey, checksum_address
from toolserver.purchases.units import CHAIN_ID, USDC

VALID_S = 7 * 86_400
SELECTOR = keccak(
    text="transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
)[:4]
DOMAIN = {"name": "USD Coin", "version": "2", "chainId": CHAIN_ID, "verifyingContract": checksum_address(USDC)}
TYPES = {
    "EIP712Domain": [
        {"name": "name", "type": "string"},
        {"name": "version", "type": "string"},
        {"name": "chainId", "type": "uint256"},
        {"name": "verifyingContract", "type": "address"},
    ],
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ],
}


class Deposit(NamedTuple):
    """A deposit address and what is on it."""

    hd_index: int
    address: bytes
    amount: int


async def find_funded(
    known: Iterable[tuple[int, bytes]], balances: Callable[[Sequence[bytes]], Awaitable[list[int]]], *, least: int = 1
) -> list[Deposit]:
    """The deposit addresses that hold at least so much, `BATCH` to a request. Raises ChainDown."""
    found: list[Deposit] = []
    listed = list(known)
    for at in range(0, len(listed), BATCH):
        part = listed[at : at + BATCH]
        amounts = await balances([address for _, address in part])
        pairs = zip(part, amounts, strict=True)
        found += [Deposit(index, address, amount) for (index, address), amount in pairs if amount >= least]
    return found


def plan(
    deposits: Iterable[Deposit], to: bytes, key: DepositKey, *, now: int, valid_s: int = VALID_S
) -> dict[str, Any]:
    """What has to be signed to move everything to one address: a document for the offline signer.

    `path` is the key to sign with, below m/44'/60'/account'; `typed_data` is what wallets sign (EIP-712). Deposits of
    another account key, one that was in use before, are named apart: nobody is to sign for what cannot be checked.
    """
    own: list[Deposit] = []
    others: list[Deposit] = []
    for deposit in deposits:
        (own if key.address(deposit.hd_index) == deposit.address else others).append(deposit)
    return {
        "chain_id": CHAIN_ID,
        "token": checksum_address(USDC),
        "to": checksum_address(to),
        "total": sum(deposit.amount for deposit in own),
        "authorizations": [_authorization(deposit, to, now + valid_s) for deposit in own],
        "of_other_keys": [
            {"index": one.hd_index, "address": checksum_address(one.address), "value": one.amount} for one in others
        ],
    }


def _authorization(deposit: Deposit, to: bytes, valid_before: int) -> dict[str, Any]:
    message = {
        "from": checksum_address(deposit.address),
        "to": checksum_address(to),
        "value": deposit.amount,
        "validAfter": 0,
        "validBefore": valid_before,
        "nonce": f"0x{secrets.token_hex(32)}",
    }
    typed = {"types": TYPES, "primaryType": "TransferWithAuthorization", "domain": DOMAIN, "message": message}
    return {"index": deposit.hd_index, "path": f"0/{deposit.hd_index}", "typed_data": typed}


def calldata(message: dict[str, Any], signature: bytes) -> bytes:
    """The call that a relayer sends to the token: a signed authorisation. `signature` is r, s, v."""
    if len(signature) != 65:
        raise ValueError("a signature has 65 bytes")
    numbers = [int(message[name]) for name in ("value", "validAfter", "validBefore")]
    words = [bytes(12) + bytes.fromhex(message[name][2:]) for name in ("from", "to")]
    words += [number.to_bytes(32, "big") for number in numbers]
    words += [bytes.fromhex(message["nonce"][2:]), bytes(31) + signature[64:], signature[:32], signature[32:64]]
    return SELECTOR + b"".join(words)
