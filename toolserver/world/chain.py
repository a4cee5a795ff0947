"""What a world's control interface does on its chain, whose blocks are counted by the clock or are a node's."""

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol

from toolserver.world.model import Routes

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

    The transaction calls the contract `via`, if there is one. `token` is another token than
    USDC. A payment that is `known_to` one RPC server was never made: only the answers of that
    server have it.
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
