"""Computes a tamper-evident log: the Merkle tree of RFC 6962, the tiles of C2SP tlog-tiles,
checkpoints as signed notes.

All functions are pure. `node(level, index)` is the hash of the complete subtree over the
leaves from `index * 2**level` to before `(index + 1) * 2**level`. The caller decides where
nodes are stored.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from toolserver.money.receipts.keys import Key

Node = Callable[[int, int], bytes]

WIDTH = 256  # hashes in a full tile
HEIGHT = 8
ED25519 = b"\x01"  # the type of a signature in a note
MOST_ENTRY = 0xFFFF


def leaf_hash(entry: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def grow(node: Node, size: int, entry: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the nodes, `(level, index, hash)`, that become complete when a tree of `size` leaves gets another entry."""
    level, index, value = 0, size, leaf_hash(entry)
    yield level, index, value
    while index & 1:
        value = node_hash(node(level, index - 1), value)
        level, index = level + 1, index >> 1
        yield level, index, value


def frontier(size: int) -> list[tuple[int, int]]:
    """Return `(level, index)` of the nodes that a tree of `size` leaves grows from: its largest complete subtrees."""
    return [(level, (size >> level) - 1) for level in range(size.bit_length()) if size >> level & 1]


def root(node: Node, size: int) -> bytes:
    """Return MTH(D[size]), the root hash of the tree."""
    return _range(node, 0, size) if size else hashlib.sha256(b"").digest()


def prove_inclusion(node: Node, index: int, size: int) -> list[bytes]:
    """Return PATH(index, D[size]), the proof that a leaf is in the tree. Raises IndexError."""
    if not 0 <= index < size:
        raise IndexError(f"no leaf {index} in a tree of {size}")
    path: list[bytes] = []
    low, high = 0, size
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            path.append(_range(node, middle, high))
            high = middle
        else:
            path.append(_range(node, low, middle))
            low = middle
    return path[::-1]


def root_of(entries: Sequence[bytes]) -> bytes:
    """Return the root hash of a tree that is not stored."""
    return root(_nodes_over(entries), len(entries))


def prove_entry(entries: Sequence[bytes], index: int) -> list[bytes]:
    """Return the proof that an entry is in a tree that is not stored. Raises IndexError."""
    return prove_inclusion(_nodes_over(entries), index, len(entries))


def _nodes_over(entries: Sequence[bytes]) -> Node:
    nodes: dict[tuple[int, int], bytes] = {}
    for size, entry in enumerate(entries):
        for level, index, value in grow(lambda *place: nodes[place], size, entry):
            nodes[level, index] = value
    return lambda *place: nodes[place]


def prove_consistency(node: Node, old: int, new: int) -> list[bytes]:
    """Return PROOF(old, D[new]), the proof that a tree is the beginning of a larger one. Raises IndexError."""
    if not 0 < old <= new:
        raise IndexError(f"no proof from {old} to {new}")
    path: list[bytes] = []
    low, high, whole = 0, new, True
    while old != high:
        middle = low + _split(high - low)
        if old <= middle:
            path.append(_range(node, middle, high))
            high = middle
        else:
            path.append(_range(node, low, middle))
            low, whole = middle, False
    return ([] if whole else [_range(node, low, high)]) + path[::-1]


def _range(node: Node, low: int, high: int) -> bytes:
    """Return the hash of the leaves from `low` to before `high`, split as in the recursion of RFC 6962."""
    count = high - low
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return node(level, low >> level)
    middle = low + _split(count)
    return node_hash(_range(node, low, middle), _range(node, middle, high))


def _split(count: int) -> int:
    """Return the largest power of two below `count`."""
    return 1 << ((count - 1).bit_length() - 1)


class Tile(NamedTuple):
    """The address of a tile; `level` is None for the entries themselves."""

    level: int | None
    number: int
    width: int

    @property
    def full(self) -> bool:
        return self.width == WIDTH

    def within(self, size: int) -> bool:
        """Return True if a tree of `size` leaves contains the whole tile."""
        return self.number * WIDTH + self.width <= size >> HEIGHT * (self.level or 0)


_TILE = re.compile(r"(entries|[1-5]?[0-9]|6[0-3])/((?:x[0-9]{3}/){0,6})([0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?")


def tile_at(path: str) -> Tile | None:
    """Return the tile that a path below `tile/` names, or None if the path does not have the form of tlog-tiles."""
    match = _TILE.fullmatch(path)
    if match is None:
        return None
    level, high, low, width = match.groups()
    if high.startswith("x000/") or (width is not None and int(width) >= WIDTH):
        return None
    index = int(re.sub("[x/]", "", high) + low)
    return Tile(None if level == "entries" else int(level), index, int(width) if width else WIDTH)


def hashes(node: Node, tile: Tile) -> bytes:
    """Return the content of a tile of hashes."""
    level = HEIGHT * (tile.level or 0)
    return b"".join(node(level, tile.number * WIDTH + at) for at in range(tile.width))


def bundle(entries: Sequence[bytes]) -> bytes:
    """Return the content of a tile of entries: each entry is preceded by its length in two bytes."""
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def key_id(name: str, public: bytes) -> bytes:
    """Return the 4 bytes that distinguish keys of the same name in a signed note."""
    return hashlib.sha256(name.encode() + b"\n" + ED25519 + public).digest()[:4]


def verifier(name: str, public: bytes) -> str:
    """Return a key in the form that auditors store: name, id and public half."""
    return f"{name}+{key_id(name, public).hex()}+{base64.b64encode(ED25519 + public).decode()}"


def checkpoint(origin: str, size: int, root_hash: bytes, key: Key) -> str:
    """Return the state of the log as a signed note."""
    return signed_note(f"{origin}\n{size}\n{base64.b64encode(root_hash).decode()}\n", origin, key)


def signed_note(text: str, name: str, key: Key) -> str:
    """Return a text with a signature below it, as a signed note. `text` ends with a newline."""
    signature = base64.b64encode(key_id(name, key.public) + key.sign(text.encode())).decode()
    return f"{text}\n— {name} {signature}\n"
