"""`toolserver purchases` and `toolserver sweep-plan`: what operators see of sales, and how the money is collected."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from toolserver.settings import Settings

R = TypeVar("R")

_DATA_DIR = click.option("--data-dir", type=click.Path(path_type=Path), help="Where keys and databases live")
_STATES = click.Choice(["quoted", "credited", "reorged"])


@click.command()
@_DATA_DIR
@click.option("--state", type=_STATES, help="Only these; reorged: paid, and undone on the chain")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--cases", "only_cases", is_flag=True, help="Instead, money that bought nothing and credits undone")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text")
def purchases(data_dir: Path | None, state: str | None, limit: int, only_cases: bool, as_json: bool) -> None:
    """List purchases of credits, the newest first; with --cases, what a person has to look at, the oldest first."""
    from toolserver.payments import cases, listing

    if only_cases and state is not None:
        raise click.UsageError("--cases are of no state")
    if only_cases:
        found = _read(data_dir, cases.cases)[:limit]
    else:
        found = _read(data_dir, lambda db: listing.purchases(db, state, limit))
    rows = [_shown(row) for row in found]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo("  ".join(str(value) for value in row.values() if value is not None))
    if not rows:
        click.echo("nothing needs a person" if only_cases else "no purchases")


@click.command("sweep-plan")
@_DATA_DIR
@click.option("--to", required=True, metavar="ADDRESS", help="Where everything is to be collected")
@click.option(
    "--least-usd", type=click.IntRange(1), default=1, show_default=True, help="Leave addresses with less alone"
)
def sweep_plan(data_dir: Path | None, to: str, least_usd: int) -> None:
    """Print what has to be signed offline to collect the deposits: EIP-3009 authorisations, as JSON.

    Nothing is moved and no private key is needed here. Sign each `typed_data` with the key at `path` below
    m/44'/60'/account'; anyone may then submit the signed authorisations to the token.
    """
    import anyio

    settings = _settings(data_dir)
    _ledger(settings)
    with _readable():
        plan = anyio.run(_plan, settings, to, least_usd)
    click.echo(json.dumps(plan, indent=2))


async def _plan(settings: "Settings", to: str, least_usd: int) -> Any:
    from toolserver.billing.sqlite import opened_ledger
    from toolserver.clock import SystemClock
    from toolserver.payments.cashier import sweep_plan

    clock = SystemClock()
    async with opened_ledger(_ledger(settings), clock) as ledger:
        return await sweep_plan(settings.payments, ledger=ledger, clock=clock, to=to, least_usd=least_usd)


def _read(data_dir: Path | None, job: Callable[[sqlite3.Connection], R]) -> R:
    """From the ledger as it is at this moment, whether the service runs or not."""
    from toolserver.storage.durable import snapshot

    path = _ledger(_settings(data_dir))
    with _readable():
        return snapshot(path, job)


def _ledger(settings: "Settings") -> Path:
    from toolserver.billing.sqlite import FILE

    path = settings.data_dir / FILE
    if not path.exists():
        raise click.ClickException(f"there is no ledger in {settings.data_dir}")
    return path


def _settings(data_dir: Path | None) -> "Settings":
    """Ends with a sentence that repeats no value when a setting is wrong: one may be a key."""
    from pydantic import ValidationError

    from toolserver.settings import Settings

    try:
        return Settings() if data_dir is None else Settings(data_dir=data_dir)
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
        raise click.ClickException("a setting is wrong: " + "; ".join(wrong)) from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None


@contextmanager
def _readable() -> Iterator[None]:
    """What goes wrong, in a sentence."""
    from toolserver.errors import ToolserverError

    try:
        yield
    except (ToolserverError, ValueError, sqlite3.Error, OSError) as error:
        raise click.ClickException(str(error)) from None


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: value if value is None else _FORMS.get(name, _same)(value) for name, value in row.items()}
    return {"amount_usd" if name == "amount" else name: value for name, value in told.items()}


def _time(milliseconds: int) -> str:
    from toolserver.payloads import iso

    return iso(datetime.fromtimestamp(milliseconds // 1000, UTC))


def _usd(amount: int) -> str:
    return f"{amount // 1_000_000}.{amount % 1_000_000:06}"


def _hex(value: bytes | str) -> str:
    return value if isinstance(value, str) else f"0x{value.hex()}"


def _address(value: bytes | str) -> str:
    from toolserver.payments.deposit import checksummed

    return checksummed(bytes.fromhex(value[2:]) if isinstance(value, str) else value)


def _same(value: Any) -> Any:
    return value


_FORMS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("created", "expires", "at"), _time),
    **dict.fromkeys(("address", "wallet"), _address),
    "amount": _usd,
    "tx": _hex,
}
