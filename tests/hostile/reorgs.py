"""`python -m tests.hostile.reorgs [DEEPEST]`: reorganisations of 1 to 10 blocks, and RPC servers of which one lies.

On anvil and on the simulated chain, transfers and signed payments (x402), small and large ones, are paid just above and
just below the depth of a reorganisation. Credits come when the policy says so, and are taken back exactly where the
payment is gone. A lying server sells no more than the ceilings allow, and each of its payments is a case in a minute.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import httpx

from tests.hostile.payable_chain import PayableChain, payable_chain
from tests.money.purchases import parts as transfer_parts
from tests.money.purchases.anvil import Anvil
from tests.money.x402 import parts as payment_parts
from tests.money.x402.chain import anvil
from tests.money.x402.official import signed, spent
from tests.money.x402.parts import Script
from toolserver.clock import ManualClock
from toolserver.errors import PaymentPending, SalesCeilingReached, SettlementPending
from toolserver.money.purchases.chain.node import ChainNode
from toolserver.money.purchases.chain.reorg_watch import COMPARE_S, MISSING_S, AgreementWatch
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.quotes import Ceilings
from toolserver.money.purchases.sql_doubts import read_review_cases
from toolserver.money.purchases.units import NETWORK, USDC
from toolserver.money.x402 import wire
from toolserver.money.x402.store import read_confirmation_cases
from toolserver.world.chain import BLOCK_S

DEEPEST, SMALL, LARGE = 10, 5, 150
SAFE = 16  # blocks on top after which anvil calls a block safe; the simulated chain calls it so after 60
KEY = "a-long-idempotency-key"
CEILING, MINUTE_S, VALID_S = 40, 60, 36_000
SENDER = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")


class Ground(Protocol):
    """A chain that tests write on. Every payment is in a block of its own. `safe`: how deep a safe block is."""

    name: str
    safe: int
    urls: list[str]
    clock: ManualClock

    def renew(self) -> None:
        """Set the clock to the time of the newest block."""
        ...

    def pay(self, to: bytes, usd: int) -> str:
        """A transfer; its hash."""
        ...

    async def authorise(self, offer: dict[str, Any]) -> str:
        """A signed payment, as a header."""
        ...

    def settle(self, said: dict[str, Any]) -> str:
        """Make a signed payment that a facilitator was asked for; its hash."""
        ...

    def mine(self, blocks: int) -> None:
        """Put empty blocks on top."""
        ...

    def undo(self, blocks: int) -> None:
        """Put others in the place of the last ones."""
        ...


class LocalGround:
    """Anvil."""

    name, safe = "anvil", SAFE

    def __init__(self, chain: Anvil) -> None:
        self._chain, self.urls = chain, [chain.url]
        self.renew()

    def renew(self) -> None:
        at = int(self._chain.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        self.clock = ManualClock(datetime.fromtimestamp(at, UTC))

    def pay(self, to: bytes, usd: int) -> str:
        return self._chain.pay(to, usd)

    async def authorise(self, offer: dict[str, Any]) -> str:
        offer["accepts"][0]["maxTimeoutSeconds"] = VALID_S  # each block that is mined has a second of its own
        return wire.header(await signed(offer))

    def settle(self, said: dict[str, Any]) -> str:
        return self._chain.send(SENDER, USDC, spent(wire.read_payment(wire.header(said["paymentPayload"]))))

    def mine(self, blocks: int) -> None:
        if blocks:
            self._chain.mine(blocks)

    def undo(self, blocks: int) -> None:
        self._chain.reorganise(blocks)


class SimulatedGround:
    """The simulated chain, whose clock moves by blocks."""

    name, safe = "simulated", 60

    def __init__(self, chain: PayableChain, *others: PayableChain) -> None:
        self._chains, self._numbers = (chain, *others), count(1)
        self.urls = [each.url for each in self._chains]
        self.renew()

    def renew(self) -> None:
        self.clock = ManualClock(datetime.fromtimestamp(self._chains[0].now, UTC))

    def pay(self, to: bytes, usd: int) -> str:
        self.mine(1)
        number = next(self._numbers)
        given = {"from": f"0x{'aa' * 20}", "value": str(usd * ATOMIC), "nonce": f"0x{number:064x}"}
        event = self._chains[0].make(given)
        event["to"] = f"0x{to.hex()}"
        return str(event["hash"])

    async def authorise(self, offer: dict[str, Any]) -> str:
        valid = str(int(self.clock.time()) + VALID_S)
        return payment_parts.signed(int(offer["accepts"][0]["amount"]), validBefore=valid)

    def settle(self, said: dict[str, Any]) -> str:
        self.mine(1)
        return str(self._chains[0].make(said["paymentPayload"]["payload"]["authorization"])["hash"])

    def mine(self, blocks: int) -> None:
        for chain in self._chains:
            chain.offset_s += blocks * BLOCK_S
        self.clock.advance(blocks * BLOCK_S)

    def undo(self, blocks: int) -> None:
        self._chains[0].undo(blocks)


class Row(NamedTuple):
    """One payment and one reorganisation, with the credits before and after it."""

    chain: str
    safe: int
    way: str
    usd: int
    depth: int
    on_top: int
    before: int
    after: int

    @property
    def is_right(self) -> bool:
        """Small transfers wait for three blocks, small signed payments for none, large ones for a safe block."""
        waits = self.safe if self.usd >= LARGE else 3 if self.way == "transfer" else 0
        before = self.usd * 50 if self.on_top >= waits else 0
        return (self.before, self.after) == (before, before if self.on_top >= self.depth else 0)


class Lie(NamedTuple):
    """What a lying server sold, how many of its payments are cases, and after how many seconds the last one was."""

    usd: int
    payments: int
    cases: int
    found_s: float

    @property
    def is_bounded(self) -> bool:
        """Something was sold, no more than the ceiling, and a person knows of all of it within a minute."""
        return 0 < self.usd <= CEILING and self.cases == self.payments and self.found_s <= MINUTE_S


class Settling(Script):
    """A facilitator that makes payments on a chain, and answers after `then` more blocks."""

    def __init__(self, ground: Ground, then: int = 0) -> None:
        super().__init__()
        self._ground, self._then = ground, then

    def settle(self, said: dict[str, Any]) -> httpx.Response:
        nonce = said["paymentPayload"]["payload"]["authorization"]["nonce"]
        if nonce not in self.made:
            self.made[nonce] = self._ground.settle(said)
            self._ground.mine(self._then)
        told = {"success": True, "transaction": self.made[nonce], "network": NETWORK}
        return httpx.Response(200, json=told | {"payer": payment_parts.payer_of(said)})


@asynccontextmanager
async def nodes_of(ground: Ground) -> AsyncIterator[list[ChainNode]]:
    """The servers of a chain, connected anew."""
    nodes = [ChainNode(url, timeout_s=15) for url in ground.urls]
    try:
        yield nodes
    finally:
        for node in nodes:
            await node.aclose()


async def try_transfer(ground: Ground, folder: Path, usd: int, depth: int, on_top: int) -> Row:
    """Pay a quote, let blocks follow, confirm, and undo the last blocks."""
    async with nodes_of(ground) as nodes, transfer_parts.desk(folder, nodes, clock=ground.clock) as d:
        quote, before = await d.quote(str(usd)), 0
        tx = ground.pay(transfer_parts.address_of(quote), usd)
        ground.mine(on_top)
        with contextlib.suppress(PaymentPending):
            before = (await d.confirm(tx, quote.memo)).credits
        ground.undo(depth)
        await look_twice(ground, d.watch.look)
        return Row(ground.name, ground.safe, "transfer", usd, depth, on_top, before, await count_credits(d))


async def try_payment(ground: Ground, folder: Path, usd: int, depth: int, on_top: int) -> Row:
    """The same by a signed payment. A small one is credited at once, a large one is settled with blocks on top."""
    script = Settling(ground, on_top if usd >= LARGE else 0)
    async with (
        nodes_of(ground) as nodes,
        payment_parts.desk(folder, clock=ground.clock, script=script, servers=nodes) as d,
    ):
        header, before = await ground.authorise(d.topups.offer(usd * ATOMIC).required("x")), 0
        with contextlib.suppress(SettlementPending):
            before = (await d.topup(header, usd, key=KEY)).credits
        ground.mine(0 if usd >= LARGE else on_top)
        ground.undo(depth)
        assert d.settling.finality is not None
        await look_twice(ground, d.settling.finality.look)
        return Row(ground.name, ground.safe, "x402", usd, depth, on_top, before, await count_credits(d))


async def look_twice(ground: Ground, look: Callable[[], Awaitable[None]]) -> None:
    """Two looks of a watch, far enough from one another that what is missing counts as gone."""
    for _ in range(2):
        await look()
        ground.clock.advance(MISSING_S + 1)


async def count_credits(d: Any) -> int:
    """The credits on all tokens."""
    ((credits,),) = await d.rows("SELECT coalesce(sum(credits - debits), 0) FROM account WHERE kind='token'")
    return int(credits)


async def reorganise(ground: Ground, folder: Path, depths: Sequence[int]) -> list[Row]:
    """Every depth, both ways, small and large: a block too deep to be undone, one just deep enough, and safe ones."""
    rows = []
    for depth in depths:
        for name, attempt in (("transfer", try_transfer), ("x402", try_payment)):
            for usd, on_top in ((SMALL, depth - 1), (SMALL, depth), (LARGE, depth), (LARGE, ground.safe + 2)):
                place = folder / f"{ground.name}-{name}-{depth}-{usd}-{on_top}"
                place.mkdir()
                ground.renew()
                rows.append(await attempt(ground, place, usd, depth, on_top))
    return rows


async def lie_about_transfers(folder: Path) -> Lie:
    """The first of two servers shows transfers that nobody made, until a ceiling is reached."""
    async with liars() as ground, nodes_of(ground) as nodes:
        ceilings = Ceilings(hour=CEILING * ATOMIC)
        async with transfer_parts.desk(folder, nodes, clock=ground.clock, ceilings=ceilings) as d:
            sold = 0
            for _ in range(2 * CEILING // SMALL):
                quote = await d.quote(str(SMALL))
                tx = ground.pay(transfer_parts.address_of(quote), SMALL)
                ground.mine(3)
                with contextlib.suppress(PaymentPending):
                    await d.confirm(tx, quote.memo)
                    sold += 1
            watch = AgreementWatch(d.store, d.chain, d.clock)
            listed = lambda: sum(case.kind == "disputed" for case in read_review_cases(d.ledger.file.path))  # noqa: E731
            return await find_lies(ground, watch.look, listed, sold)


async def lie_about_payments(folder: Path) -> Lie:
    """The same with signed payments, by a facilitator that lies with the first server."""
    async with liars() as ground, nodes_of(ground) as nodes:
        ceilings = Ceilings(hour=CEILING * ATOMIC)
        more: dict[str, Any] = {"script": Settling(ground), "servers": nodes, "ceilings": ceilings}
        async with payment_parts.desk(folder, clock=ground.clock, **more) as d:
            sold = 0
            for _ in range(2 * CEILING // SMALL):
                header = await ground.authorise(d.topups.offer(SMALL * ATOMIC).required("x"))
                with contextlib.suppress(SalesCeilingReached):
                    await d.topup(header, SMALL, key=KEY)
                    sold += 1
            path = d.ledger.file.path
            listed = lambda: sum(case.kind == "disputed" for case in read_confirmation_cases(path))  # noqa: E731
            assert d.settling.finality is not None
            return await find_lies(ground, d.settling.finality.look, listed, sold)


async def find_lies(ground: Ground, look: Callable[[], Awaitable[None]], listed: Callable[[], int], sold: int) -> Lie:
    """Look as often as the service does, until every payment is a case."""
    passed = 0.0
    while passed <= 10 * MINUTE_S:
        await look()
        if listed() >= sold:
            break
        ground.clock.advance(COMPARE_S)
        passed += COMPARE_S
    return Lie(sold * SMALL, sold, listed(), passed)


@asynccontextmanager
async def liars() -> AsyncIterator[SimulatedGround]:
    """Two servers of one chain, of which the first shows what the second knows nothing of."""
    now = float(int(time.time()) // BLOCK_S * BLOCK_S)
    async with payable_chain(still=now) as liar, payable_chain(still=now) as honest:
        yield SimulatedGround(liar, honest)


async def run_all(folder: Path, depths: Sequence[int]) -> tuple[list[Row], list[Lie]]:
    """Both chains at every depth, and both lies."""
    with anvil(SAFE) as chain:
        rows = await reorganise(LocalGround(chain), folder, depths)
    async with payable_chain(still=float(int(time.time()) // BLOCK_S * BLOCK_S)) as simulated:
        rows += await reorganise(SimulatedGround(simulated), folder, depths)
    for name in ("transfers", "payments"):
        (folder / name).mkdir()
    return rows, [await lie_about_transfers(folder / "transfers"), await lie_about_payments(folder / "payments")]


def judge(rows: list[Row], lies: list[Lie]) -> list[str]:
    """What is wrong."""
    found = [str(row) for row in rows if not row.is_right]
    return found + [str(lie) for lie in lies if not lie.is_bounded]


def main(deepest: int) -> int:
    with tempfile.TemporaryDirectory() as place:
        rows, lies = asyncio.run(run_all(Path(place), range(1, deepest + 1)))
    for chain in ("anvil", "simulated"):
        mine = [row for row in rows if row.chain == chain]
        taken = sum(row.before > row.after for row in mine)
        kept = sum(row.before == row.after > 0 for row in mine)
        never = sum(row.before == row.after == 0 for row in mine)
        print(f"{chain}: {len(mine)} payments, {taken} credited and taken back, {kept} kept, {never} never credited")
    for way, lie in zip(("transfers", "x402"), lies, strict=True):
        print(f"{way}: a lying server sold {lie.usd} USD of {CEILING}; {lie.cases} cases after {lie.found_s:.0f} s")
    wrong = judge(rows, lies)
    print("\n".join(wrong) or "credits were taken back exactly where the policy says")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else DEEPEST))
