"""The operator's wallet as it would be offline: a mnemonic, its account key, the private keys of deposit addresses."""

import hashlib

from eth_account import Account
from eth_account.hdaccount import seed_from_mnemonic
from eth_account.hdaccount.deterministic import derive_child_key, hmac_sha512
from eth_keys import keys

MNEMONIC = "test test test test test test test test test test test junk"  # of every local chain; holds nothing
DEPOSITS = 7  # the account whose addresses are given out; the chain's own people have account 0
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

Account.enable_unaudited_hdwallet_features()


def private_key(index: int, account: int = DEPOSITS) -> bytes:
    """The key of an address, derived by another library."""
    return bytes(Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/{account}'/0/{index}").key)


def address(index: int) -> bytes:
    return keys.PrivateKey(private_key(index)).public_key.to_canonical_address()


def extended(path: tuple[int, ...] = (44 + 2**31, 60 + 2**31, DEPOSITS + 2**31), version: str = "0488b21e") -> str:
    """The extended public key at a path (or, with its version, the private one), as base58."""
    from eth_account.hdaccount.deterministic import HardNode, SoftNode

    digest = hmac_sha512(b"Bitcoin seed", seed_from_mnemonic(MNEMONIC, ""))
    key, code, parent = digest[:32], digest[32:], bytes(4)
    for number in path:
        parent = hashlib.new("ripemd160", hashlib.sha256(_public(key)).digest()).digest()[:4]
        node = HardNode(number - 2**31) if number >= 2**31 else SoftNode(number)
        key, code = derive_child_key(key, code, node)
    secret = version == "0488ade4"
    last = path[-1].to_bytes(4, "big") if path else bytes(4)
    return base58check(
        bytes.fromhex(version) + bytes([len(path)]) + parent + last + code + (b"\0" + key if secret else _public(key))
    )


def _public(key: bytes) -> bytes:
    return keys.PrivateKey(key).public_key.to_compressed_bytes()


def base58check(data: bytes) -> str:
    data += hashlib.sha256(hashlib.sha256(data).digest()).digest()[:4]
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text


XPUB = extended()
