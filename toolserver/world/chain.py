"""What a world's control interface does on its chain, and the chain that is made of injected payments."""

import secrets
from collections.abc import Collection
from typing import Any, NamedTuple, Protocol

from toolserver.world.model import PAID, Edits, Routes, World

BLOCK_S = 2
GENESIS = 1_686_789_347  # the real chain's first block


def block_at(at: float) -> int:
    """Return the number of the first block that is not older than an instant."""
    return -(-int(at - GENESIS) // BLOCK_S)


def head_at(now: float) -> int:
    """Return the number of the newest block."""
    return int(now - GENESIS) // BLOCK_S


def block_time(number: int) -> int:
    return GENESIS + number * BLOCK_S


class TransferOrder(NamedTuple):
    """A transfer to make: addresses as 0x and lower-case digits, `amount` in 0.000001 of the token.

    The transaction calls the contract `via`, if there is one. `token` is another token than USDC. A payment that is
    `known_to` one RPC server was never made: only the answers of that server have it.
    """

    sender: str
    to: str
    amount: int
    via: str | None = None
    token: str | None = None
    known_to: str | None = None


class Reorganisation(NamedTuple):
    """The transactions that are gone from the chain, and those that are mined again."""

    undone: list[str]
    again: list[str]


class WorldChain(Protocol):
    """A chain that the control interface can pay on. Hashes are 0x and lower-case digits."""

    async def transfer(self, order: TransferOrder) -> str:
        """Make a transfer, which the next block contains, and return its hash."""
        ...

    async def undo(self, hash: str) -> bool:
        """Remove a transfer. Return False if there is none."""
        ...

    async def reorganise(self, depth: int, again: Collection[str]) -> Reorganisation:
        """Put others in the place of the last blocks. Transactions of `again` that were there are mined again."""
        ...

    async def list_transfers(self) -> list[dict[str, Any]]:
        """Return all transfers that were made by this interface or submitted, oldest first."""
        ...

    async def follow(self) -> None:
        """Bring the chain to the time of the world, which has moved."""
        ...

    def serve(self, routes: Routes) -> Routes:
        """Return the routes of a world with this chain."""
        ...


class EditedWorld(Protocol):
    """The world whose events are the payments."""

    edits: Edits

    def world(self) -> World:
        """Return the world now."""
        ...

    def inject(self, event: dict[str, Any]) -> None:
        """Add an event."""
        ...


class EventChain:
    """The chain of a world without a node: each payment is an event, and a block is what its two seconds contain."""

    def __init__(self, state: EditedWorld) -> None:
        self._state = state

    async def transfer(self, order: TransferOrder) -> str:
        event: dict[str, Any] = {
            "kind": PAID,
            "at": self._state.world().now,
            "hash": f"0x{secrets.token_hex(32)}",
            "from": order.sender,
            "to": order.to,
            "amount": order.amount,
        }
        named = {"via": order.via, "token": order.token, "known_to": order.known_to}
        self._state.inject(event | {name: value for name, value in named.items() if value is not None})
        return str(event["hash"])

    async def undo(self, hash: str) -> bool:
        return bool(self._remove({hash}))

    async def reorganise(self, depth: int, again: Collection[str]) -> Reorganisation:
        now = self._state.world().now
        first = head_at(now) - depth + 1
        found = [event for event in await self.list_transfers() if block_at(event["at"]) >= first]
        self._remove({event["hash"] for event in found})
        kept = [event for event in found if event["hash"] in again]
        for event in kept:
            self._state.inject(event | {"at": now})
        back = [str(event["hash"]) for event in kept]
        return Reorganisation([str(event["hash"]) for event in found if event["hash"] not in again], back)

    async def list_transfers(self) -> list[dict[str, Any]]:
        return [event for event in self._state.edits.events if event["kind"] == PAID]

    async def follow(self) -> None:
        """Do nothing: the blocks of this chain are counted by the clock."""

    def serve(self, routes: Routes) -> Routes:
        return routes

    def _remove(self, hashes: set[str]) -> int:
        """Return how many transfers were removed."""
        edits = self._state.edits
        remaining = [event for event in edits.events if event.get("hash") not in hashes]
        self._state.edits = Edits(edits.pins, remaining)
        return len(edits.events) - len(remaining)
