"""List Ethereum addresses that exchanges pay from and collect to, as public label lists know them.

Only addresses on which two lists agree are included: lists often contradict each other, and a
wrong label is worse than none. Deposit addresses, one for every customer, are not included.
"""

from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

TAGS_AND_DUNE = "Etherscan name tags; Dune Spellbook cex_evms_addresses"
DUNE_AND_LLAMA = "Dune Spellbook cex_evms_addresses; DefiLlama (reserves the exchange declares)"
CHECKED_ON = date(2026, 8, 21)


class Wallet(NamedTuple):
    """One hot wallet. `address` is lower-case; `checked_on` is the date of the latest list that was compared."""

    exchange: str
    address: str
    label_source: str
    checked_on: date


def _wallets(exchange: str, *addresses: str, source: str = TAGS_AND_DUNE) -> Iterable[Wallet]:
    return (Wallet(exchange, address, source, CHECKED_ON) for address in addresses)


WALLETS: tuple[Wallet, ...] = (
    *_wallets(
        "Binance",
        "0x28c6c06298d514db089934071355e5743bf21d60",
        "0x21a31ee1afc51d94c2efccaa2092ad1028285549",
        "0xdfd5293d8e347dfe59e90efd55b2956a1343963d",
        "0x56eddb7aa87536c09ccc2793473599fd21a8b17f",
        "0xf977814e90da44bfa03b6295a0616a897441acec",
    ),
    *_wallets(
        "Coinbase",
        "0xa9d1e08c7793af67e9d92fe308d5697fb81d3e43",
        "0x71660c4005ba85c37ccec55d0c4493e66fe775d3",
        "0x503828976d22510aad0201ac7ec88293211d23da",
        "0xddfabcdc4d8ffc6d5beaf154f18b778f892a0740",
    ),
    *_wallets(
        "Kraken",
        "0x2910543af39aba0cd09dbb2d50200b3e800a63d2",
        "0x267be1c1d684f78cb4f6a176c4911b741e4ffdc0",
    ),
    *_wallets(
        "OKX",
        "0x6cc5f688a315f3dc28a7781717a9a798a59fda7b",
        "0x236f9f97e0e62388479bf9e5ba4889e46b0273c3",
        "0xa7efae728d2936e78bda97dc267687568dd593f3",
    ),
    *_wallets("Bybit", "0xf89d7b9c864f589bbf53a82105107622b35eaa40", source=DUNE_AND_LLAMA),
    *_wallets(
        "Crypto.com",
        "0x6262998ced04146fa42253a5c0af90ca02dfd2a3",
        "0x46340b20830761efd32832a74d7169b29feb9758",
        "0x72a53cdbbcc1b9efa39c834a540550e23463aacb",
    ),
    *_wallets("KuCoin", "0xd6216fc19db775df9774a6e33526131da7d19a2c"),
    *_wallets(
        "Gate.io",
        "0x0d0707963952f2fba59dd06f2b425ace40b492fe",
        "0x1c4b70a3968436b9a0a9cf5205c787eb81bb558c",
    ),
)

EXCHANGES: dict[str, str] = {wallet.address: wallet.exchange for wallet in WALLETS}
"""Address in lower case -> exchange."""
