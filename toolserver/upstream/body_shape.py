"""Describes the shape of bodies, which fields are where and of which types, and how two shapes differ."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from toolserver.upstream.body_tree import Kind, kind_of

ANY = "*"  # the place of each member of a map, whose names are data
ITEM = "[]"  # the place of each item of a list
LONGEST_ROW = 24  # items of a nested list that have their own places
MAP_FROM = 5  # members, all of them objects with the same fields

Path = tuple[str, ...]


@dataclass(slots=True)
class Shape:
    """The values seen at one place: how many, of which types, an example of each, and their contents."""

    kinds: Counter[str] = field(default_factory=Counter)
    samples: dict[str, Any] = field(default_factory=dict)
    members: "Places" = field(default_factory=dict)
    items: "Places" = field(default_factory=dict)

    @property
    def count(self) -> int:
        return self.kinds.total()

    def add(self, value: Any, tree: Kind, *, is_in_list: bool = False) -> None:
        """Count one more value at this place."""
        kind = kind_of(value, tree)
        self.kinds[kind] += 1
        self.samples.setdefault(kind, value)
        if isinstance(value, dict):
            for name, each in value.items():
                self.members.setdefault(name, Shape()).add(each, tree)
        elif isinstance(value, list):
            is_row = is_in_list and len(value) <= LONGEST_ROW
            for place, each in enumerate(value):
                step = f"[{place}]" if is_row else ITEM
                self.items.setdefault(step, Shape()).add(each, tree, is_in_list=True)

    def absorb(self, other: "Shape") -> None:
        """Count everything that the other shape counted."""
        self.kinds.update(other.kinds)
        self.samples = other.samples | self.samples
        for mine, theirs in ((self.members, other.members), (self.items, other.items)):
            for step, shape in theirs.items():
                mine.setdefault(step, Shape()).absorb(shape)


Places = dict[str, Shape]


def _merge(places: Places, step: str) -> Places:
    """Return all places merged into one with the name `step`."""
    whole = Shape()
    for shape in places.values():
        whole.absorb(shape)
    return {step: whole} if places else {}


def _is_map(members: Places) -> bool:
    """Return True if the names of members are data: all are numbers or dates, or all values are similar objects."""
    if members and all(name[:1].isdigit() for name in members):
        return True
    objects = [set(shape.members) for shape in members.values() if set(shape.kinds) == {"object"}]
    if len(objects) < max(MAP_FROM, len(members)):
        return False
    return len(set.intersection(*objects)) * 2 > len(set.union(*objects))


class Difference(NamedTuple):
    """A field that one shape has at a place and another lacks, sometimes lacks, or has with another type.

    For an absent field `kind` is None, and it is absent from `places` of `total`. Otherwise `kind` is a type that the
    first shape never has, `sample` a value of it, found in `places` of `total` values.
    """

    path: Path
    kind: str | None
    expected: tuple[str, ...]
    sample: Any
    places: int
    total: int

    @property
    def is_everywhere(self) -> bool:
        return self.places == self.total


def compare_shapes(expected: Shape, found: Shape, path: Path = ()) -> Iterator[Difference]:
    """Yield the differences of `found` from `expected`: absent fields and other types.

    Additional fields, and fields that are only sometimes expected, are no difference. Lists without items cannot be
    judged.
    """
    known = tuple(sorted(expected.kinds))
    for kind, count in found.kinds.items():
        if kind not in expected.kinds:
            yield Difference(path, kind, known, found.samples[kind], count, found.count)
    yield from _compare_members(expected, found, path)
    yield from _compare_items(expected, found, path)


def _compare_members(expected: Shape, found: Shape, path: Path) -> Iterator[Difference]:
    wanted, given, parents = expected.members, found.members, found.kinds["object"]
    if _is_map(wanted) or _is_map(given):
        wanted, given, parents = _merge(wanted, ANY), _merge(given, ANY), 0
    for name, shape in wanted.items():
        here = given.get(name, Shape())
        if here.count < parents and shape.count >= expected.kinds["object"]:
            yield Difference((*path, name), None, tuple(sorted(shape.kinds)), None, parents - here.count, parents)
        yield from compare_shapes(shape, here, (*path, name))


def _compare_items(expected: Shape, found: Shape, path: Path) -> Iterator[Difference]:
    wanted, given = expected.items, found.items
    if (ITEM in wanted) != (ITEM in given):
        wanted, given = _merge(wanted, ITEM), _merge(given, ITEM)
    for step, shape in wanted.items():
        if step in given:
            yield from compare_shapes(shape, given[step], (*path, step))
        elif given:
            rows = found.kinds["array"]
            yield Difference((*path, step), None, tuple(sorted(shape.kinds)), None, rows, rows)


def write_path(path: Path) -> str:
    """Write a path for people: `result.*.c[0]`."""
    text = ""
    for step in path:
        text += step if step.startswith("[") or not text else f".{step}"
    return text or "the whole body"
