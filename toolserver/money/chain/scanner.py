"""Reads USDC transfers to and from our addresses into the book of the chain, within the limits of RPC servers.

Three readings, each cheaper than reading everything, and together complete:

    newest   every 20 s       logs of the blocks that are not final, for addresses that may be paid now: with an open
                              quote, or with money that moved within a day, of very many the newest. A transfer that is
                              gone becomes `undone`.
    final    every 10 minutes logs of the blocks that became final, for all addresses with money in the last 90 days.
                              Dust is summed here, because final blocks do not change.
    cold     once a day       the balances of all addresses that ever had money, of unpaid quotes that ended since, and
                              of the newest ones, many in one request; of older unpaid quotes a 32nd part. Logs are
                              read only where a balance is not what the book says, so a quote that nobody pays costs
                              no logs.

A block is final when the chain says so. The blocks above it are read again each time, so a
reorganisation needs no treatment of its own: what was there before and is not there now is
gone, once its block is seen to have another hash. A server that merely lags says nothing
about a block that it does not have.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolserver.clock import Clock
from toolserver.money.chain.balances import compare_balances
from toolserver.money.chain.sql_chain_book import (
    BalanceDifference,
    BookRules,
    ChainTransfer,
    HotAddresses,
    ScanMark,
    SqlChainBook,
)
from toolserver.money.chain.transfer_states import DUST, Dust, find_final, name_transfers
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool
from toolserver.money.purchases.matching import ChainHeads, LoggedTransfer
from toolserver.sql.leases import LeaseLost, Turn, is_our_turn

log = logging.getLogger(__name__)

SCAN_S, FINAL_S, COLD_S = 20.0, 600.0, 86_400.0
FINAL, COLD = "final", "cold"  # the names of the marks
EVER_DAYS = 36_500  # the first reading looks at every address that was ever paid
EARLIER_S = 300  # how long before our first document reading starts: clocks differ


class ScanTerms(NamedTuple):
    """The limits of a request, and for how many days an address with money is read by logs."""

    addresses: int = 1_000
    blocks: int = 10_000
    hot_days: int = 90


class ScanHealth(NamedTuple):
    """How far the chain is read: the last final block and the time (epoch seconds) at which it was read, or None before
    the first; whether the last attempt failed; and how many addresses do not add up.
    """

    block: int | None = None
    read_at: float | None = None
    is_failing: bool = False
    differences: int = 0


class ChainScanner:
    """Keeps the book up to date, on the instance whose `turn` it is."""

    def __init__(
        self,
        book: SqlChainBook,
        chain: RpcPool,
        clock: Clock,
        rules: BookRules,
        terms: ScanTerms | None = None,
        turn: Turn | None = None,
    ) -> None:
        self._book, self._chain, self._clock, self._rules = book, chain, clock, rules
        self._terms, self._turn = terms or ScanTerms(), turn
        self.health = ScanHealth()

    def measure(self) -> tuple[int, float, int, bool]:
        """Return the last final block that this instance has read (0: none yet), the seconds since, how many addresses
        do not add up, and whether the last attempt failed.
        """
        block, read_at, is_failing, differences = self.health
        age = 0.0 if read_at is None else max(0.0, self._clock.time() - read_at)
        return block or 0, age, differences, is_failing

    async def run(self) -> None:
        """Read until cancelled. The first reading follows the start after a pause, so that sales come first."""
        while True:
            await self._clock.sleep(SCAN_S)
            try:
                if await is_our_turn(self._turn):
                    await self.look()
                    self.health = self.health._replace(is_failing=False)
            except ChainDown as down:
                self._note_failure(str(down))
            except LeaseLost as lost:
                log.info("another instance reads the chain", extra={"reason": str(lost)})
            except Exception:
                log.exception("the chain could not be read")
                self.health = self.health._replace(is_failing=True)

    def _note_failure(self, reason: str) -> None:
        """Log the first of several failures in a row."""
        if not self.health.is_failing:
            log.warning("the chain could not be read", extra={"reason": reason})
        self.health = self.health._replace(is_failing=True)

    async def look(self) -> None:
        """Read once what is due. Raises ChainDown if no server answers, and LeaseLost."""
        heads = await self._chain.read_heads()
        final = await self._book.find_mark(FINAL)
        if final is None:
            start = await self._find_first_block(heads)
            if start is None:
                return
            final = ScanMark(start - 1, 0)
            await self._book.set_mark(COLD, final)
        before = final.at  # no later than the last reading, by whichever instance
        cold = await self._book.find_mark(COLD) or ScanMark(final.block, 0)
        now = self._now()
        is_final_due = now - final.at >= FINAL_S * 1000
        if is_final_due:
            final = await self._read_final(final, heads, days=self._terms.hot_days if cold.at else EVER_DAYS)
        await self._read_newest(final.block + 1, heads)
        await self._book.decide_recent(heads, self._now(), before, with_held=is_final_due)
        self.health = self.health._replace(block=final.block, read_at=final.at / 1000)
        if is_final_due and now - cold.at >= COLD_S * 1000:
            await self._compare_balances(cold, final, heads)

    async def _find_first_block(self, heads: ChainHeads) -> int | None:
        """Return the block from which on money can have come, found by bisection; None before the first document."""
        since = await self._book.find_start()
        if since is None:
            return None
        low, high = 0, find_final(heads)
        while low < high:
            middle = (low + high) // 2
            block = await self._chain.read_block(middle)
            is_older = block is not None and block.time < since // 1000 - EARLIER_S
            low, high = (middle + 1, high) if is_older else (low, middle)
        return low

    async def _read_final(self, mark: ScanMark, heads: ChainHeads, *, days: int) -> ScanMark:
        """Read the blocks that became final, and return how far they are read now."""
        height = find_final(heads)
        addresses = await self._book.list_hot(heads.latest.number, self._now(), days)
        for first, last in _cut(mark.block + 1, height, self._terms.blocks):
            if not await is_our_turn(self._turn):
                raise LeaseLost("another instance reads the chain now")
            await self._read_range(addresses, first, last, heads, is_final=True)
            mark = ScanMark(last, self._now())
            await self._book.set_mark(FINAL, mark)
        mark = mark._replace(at=self._now())
        await self._book.set_mark(FINAL, mark)
        return mark

    async def _read_newest(self, first: int, heads: ChainHeads) -> None:
        """Read the blocks that are not final."""
        addresses = await self._book.list_watched(heads.latest.number, self._now())
        for start, last in _cut(first, heads.latest.number, self._terms.blocks):
            await self._read_range(addresses, start, last, heads, is_final=False)

    async def _read_range(
        self, addresses: HotAddresses, first: int, last: int, heads: ChainHeads, *, is_final: bool
    ) -> None:
        """Record the transfers of these addresses in a range of blocks, and find those that are no longer there."""
        scanned = set(addresses.receiving) | set(addresses.sending)
        missing = {row.id: row for row in await self._book.list_in_blocks(first, last) if _is_of(row, scanned)}
        counted = await self._book.list_dust_counted() if is_final else {}
        dust: dict[bytes, Dust] = {}
        for outward, group in self._group(addresses):
            for logged in await self._read_logs(group, first, last, outward=outward):
                large = [each for each in logged if each.amount >= DUST]
                placed = name_transfers(await self._find_times(large))
                await self._book.record(placed, heads, self._now())
                for one in placed:
                    missing.pop(one.id, None)
                for each in logged:
                    address = each.payer if outward else each.payee
                    if is_final and each.amount < DUST and each.block_number > counted.get(address, -1):
                        dust[address] = dust.get(address, Dust()).add(each, outward=outward)
        if dust:
            await self._book.add_dust(dust)
        await self._find_gone(list(missing.values()), heads)

    def _group(self, addresses: HotAddresses) -> Iterator[tuple[bool, Sequence[bytes]]]:
        """Yield as many addresses as one request may name, with whether they are looked for as payers."""
        for outward, all_ in ((False, addresses.receiving), (True, addresses.sending)):
            for at in range(0, len(all_), self._terms.addresses):
                yield outward, all_[at : at + self._terms.addresses]

    async def _read_logs(
        self, group: Sequence[bytes], first: int, last: int, *, outward: bool
    ) -> list[list[LoggedTransfer]]:
        """Return the transfers of a range in parts. A range that a server refuses is read in halves, and a single block
        that it refuses is read for half of the addresses at a time.

        Raises:
            ChainDown: no server answers, or all refuse a single block of a single address.
        """
        logged = await self._chain.read_transfers(group, first, last, outward=outward)
        if logged is not None:
            return [logged] if logged else []
        if first < last:
            middle = (first + last) // 2
            lower = await self._read_logs(group, first, middle, outward=outward)
            return lower + await self._read_logs(group, middle + 1, last, outward=outward)
        if len(group) == 1:
            raise ChainDown("a server refuses the logs of one block and one address")
        half = len(group) // 2
        lower = await self._read_logs(group[:half], first, last, outward=outward)
        return lower + await self._read_logs(group[half:], first, last, outward=outward)

    async def _find_times(self, logged: Sequence[LoggedTransfer]) -> list[LoggedTransfer]:
        """Return the transfers with the times of their blocks, which are read where the server did not say them."""
        times: dict[int, int] = {}
        for number in {each.block_number for each in logged if each.block_time is None}:
            block = await self._chain.read_block(number)
            if block is None:
                raise ChainDown("a server has the logs of a block, but not the block")
            times[number] = block.time
        return [
            each if each.block_time is not None else each._replace(block_time=times[each.block_number])
            for each in logged
        ]

    async def _find_gone(self, missing: Sequence[ChainTransfer], heads: ChainHeads) -> None:
        """Record as undone those transfers whose block is another one now."""
        hashes: dict[int, bytes | None] = {}
        for number in {row.block_number for row in missing}:
            block = await self._chain.read_block(number)
            hashes[number] = None if block is None else block.hash
        gone = [row.id for row in missing if hashes[row.block_number] not in (None, row.block_hash)]
        for row in missing:
            if hashes[row.block_number] == row.block_hash:
                log.warning("a server leaves out a transfer of a block", extra={"tx": f"0x{row.tx_hash.hex()}"})
        if gone:
            log.warning("transfers are gone from the chain", extra={"count": len(gone)})
            await self._book.record_gone(gone, heads, self._now())

    async def _compare_balances(self, cold: ScanMark, final: ScanMark, heads: ChainHeads) -> None:
        """Compare what the addresses of this day hold with their transfers, and read the logs of those that differ.

        They are read since the last comparison, and where that does not explain it, from the beginning. What still
        differs is a case. The first comparison is of every address.
        """
        await self._open_wallets(final)
        due = await self._book.list_compared(cold.at, self._now()) if cold.at else None
        differing = (await compare_balances(self._book, self._chain, final.block, due)).differences
        beginning = await self._find_first_block(heads) or 0
        for first in sorted({cold.block + 1, beginning}, reverse=True):
            if differing and first == beginning:
                await self._book.forget_dust([each.address for each in differing])
            differing = await self.read_differing(differing, first, final.block, heads)
        for each in differing:
            log.error("an address does not hold what its transfers say", extra={"address": f"0x{each.address.hex()}"})
        mark = ScanMark(final.block, self._now())
        await self._book.decide_all(heads, self._now())
        await self._book.set_differences(differing, mark)
        await self._book.set_mark(COLD, mark)
        self.health = self.health._replace(differences=len(differing))

    async def read_differing(
        self, differing: Sequence[BalanceDifference], first: int, through: int, heads: ChainHeads
    ) -> list[BalanceDifference]:
        """Read the logs of addresses that differ, in a range of final blocks, and return those that still differ.

        Raises ChainDown.
        """
        if not differing:
            return []
        named = [each.address for each in differing]
        for start, last in _cut(first, through, self._terms.blocks):
            await self._read_range(HotAddresses(named, named), start, last, heads, is_final=True)
        return (await compare_balances(self._book, self._chain, through, named)).differences

    async def _open_wallets(self, final: ScanMark) -> None:
        """Record what each wallet held beside the transfers that were read, once: it is older than our documents."""
        for wallet in await self._book.list_unopened():
            (held,), (booked,) = (
                await self._chain.balances_at([wallet], final.block),
                await self._book.sum_booked([wallet], final.block),
            )
            await self._book.open_wallet(wallet, held - booked, ScanMark(final.block, self._now()))

    def _now(self) -> int:
        return int(self._clock.time() * 1000)


def _cut(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of at most `size` blocks that make up a range, in order."""
    for start in range(first, last + 1, size):
        yield start, min(start + size - 1, last)


def _is_of(row: ChainTransfer, addresses: set[bytes]) -> bool:
    return bool(row.inward and row.payee in addresses) or bool(row.outward and row.payer in addresses)
