"""Read documents of transfers, sign them with a key that is never printed, and find the server to send them to."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from eth_keys.datatypes import PrivateKey

from toolserver.cli.options import add_options
from toolserver.money.purchases.chain.ethereum import address_from, checksum_address
from toolserver.money.purchases.listing import show_usd
from toolserver.money.purchases.offline_key import KeyRefused, Signer, read_key_file, read_key_variable
from toolserver.money.purchases.transfer_authorization import Authorization, UnusableDocument, read_document
from toolserver.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

document_argument = click.argument("document", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
_KEY_FLAGS = (
    click.option("--key-file", type=click.Path(path_type=Path), help="File with the key, readable by its owner only"),
    click.option("--key-env", metavar="NAME", help="Environment variable with the key, instead of a file"),
)


def key_options(function: F) -> F:
    """Add the flags that say where a key is."""
    return add_options(_KEY_FLAGS, function)


def read_key(key_file: Path | None, key_env: str | None) -> str:
    """Return the text of the key that the flags name."""
    if (key_file is None) == (key_env is None):
        raise click.UsageError("say where the key is: either --key-file or --key-env")
    return read_key_file(key_file) if key_file is not None else read_key_variable(str(key_env))


def load_document(path: Path) -> tuple[Any, list[tuple[dict[str, Any], Authorization]]]:
    """Load a document and its authorisations, each with its entry; `-` is standard input. Raises UnusableDocument."""
    text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UnusableDocument(f"{path} is not JSON: {error}") from None
    return document, read_document(document)


def sign_document(path: Path, signer: Signer, recipients: Sequence[str]) -> Any:
    """Sign every entry of a document, once a person has confirmed who gets the money, and return the document."""
    document, entries = load_document(path)
    keys = [_find_own_key(entry, one, signer) for entry, one in entries]
    _agree_on_recipients([one for _, one in entries], recipients)
    for (entry, one), key in zip(entries, keys, strict=True):
        entry["signature"] = f"0x{one.sign(key).hex()}"
    return document


def read_signature(entry: dict[str, Any], one: Authorization) -> bytes:
    """Return the signature of an entry, made by the account that pays. Raises UnusableDocument."""
    try:
        signature = bytes.fromhex(str(entry["signature"]).removeprefix("0x"))
    except (KeyError, ValueError):
        raise UnusableDocument("an entry has no signature: sign the document first") from None
    if not one.is_signed(signature):
        raise UnusableDocument(f"the signature was not made by {checksum_address(one.payer)}")
    return signature


def find_rpc(settings: Settings, url: str | None) -> str:
    """Return the RPC server to send transactions to: `url`, or the first in the settings. Raises ValueError."""
    if url is None and not settings.payments.rpc_urls:
        raise ValueError("no RPC server is configured: set payments.rpc_urls or pass --rpc")
    return url or settings.payments.rpc_urls[0].get_secret_value()


def _find_own_key(entry: dict[str, Any], one: Authorization, signer: Signer) -> PrivateKey:
    key = signer.find_key(entry.get("path"))
    if key.public_key.to_canonical_address() != one.payer:
        raise KeyRefused(
            f"the key is not the key of {checksum_address(one.payer)}: another account, or a mistyped word"
        )
    return key


def _agree_on_recipients(entries: Sequence[Authorization], recipients: Sequence[str]) -> None:
    """Make the person who signs name the recipients, so that a tampered document is caught."""
    sums: Counter[bytes] = Counter()
    for one in entries:
        sums[one.payee] += one.amount
    for payee, amount in sums.items():
        click.echo(f"{show_usd(amount)} USDC to {checksum_address(payee)}", err=True)
    if recipients:
        if others := sums.keys() - {address_from(text) for text in recipients}:
            raise UnusableDocument(f"the document also pays {', '.join(map(checksum_address, sorted(others)))}")
    elif sums:
        click.confirm("Are these the right recipients?", abort=True, err=True)
