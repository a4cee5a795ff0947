"""Finds schema drift: fields that a parser reads but that a real body lacks or has with another type.

The fields that a parser reads are not listed anywhere. So the shapes of the real and the simulated body are compared,
and each difference is applied to the simulated body, which is then parsed. Whether that fails, loses rows, changes the
result or has no effect shows the purpose of the field.
"""

import copy
from collections.abc import Iterator, Sequence, Sized
from typing import Any, Literal, NamedTuple

from toolserver.upstream.body_shape import ANY, ITEM, Difference, Shape, compare_shapes, write_path
from toolserver.upstream.body_tree import BodyTree, read_body_tree
from toolserver.upstream.decode import ParsedBody, read_body
from toolserver.upstream.source import Request, Source
from toolserver.upstream.source_errors import SourceError

Effect = Literal["parse fails", "rows are lost", "answers change", "read all the same", "not read", "not known"]
MOST_DIFFERENCES = 200  # tried for one body


class Asked(NamedTuple):
    """The request that a body answers: of a source, for a query."""

    source: Source[Any, Any]
    request: Request
    query: Any


class Drift(NamedTuple):
    """One field, its difference, and the effect on the parser of the simulated body.

    `is_schema` says that the parser reads the field, so that the real body was not parsed, was parsed only in part, or
    never has the field's information. All other drift is informational.
    """

    path: str
    said: str
    effect: Effect
    is_schema: bool


def find_drift(asked: Asked, body: bytes, simulated: Sequence[bytes], *, is_read: bool) -> list[Drift] | None:
    """Compare a real body with simulated ones for the same request. Return None for a body of another or unknown form.

    Several simulated bodies with different seeds together show which fields are always present and of which types.
    `is_read` says that the parser read the real body without leaving out rows.
    """
    trees = [tree for each in simulated if (tree := read_body_tree(each)) is not None]
    real = read_body_tree(body)
    if real is None or not trees or real.kind != trees[0].kind:
        return None
    expected, found = Shape(), Shape()
    for tree in trees:
        expected.add(tree.value, tree.kind)
    found.add(real.value, real.kind)
    differences = list(compare_shapes(expected, found))[:MOST_DIFFERENCES]
    trials = [_Trial(asked, tree) for tree in trees] if differences else []
    judged = [_judge(difference, trials, is_read=is_read) for difference in differences]
    return sorted(judged, key=lambda each: (not each.is_schema, _GRAVEST.index(each.effect), each.path))


def _judge(difference: Difference, trials: Sequence["_Trial"], *, is_read: bool) -> Drift:
    """Return the drift of a difference, with the most severe of its effects on the simulated bodies.

    If the parser reads another field instead, the field does not count as missing.
    """
    effects = {trial.try_difference(difference) for trial in trials}
    effect = next(each for each in _GRAVEST if each in effects)
    is_lasting = difference.kind is None and difference.is_everywhere
    if difference.kind is not None and effect == "answers change":
        effect = "read all the same"  # another value is another result
    is_schema = effect == "answers change" and is_lasting
    is_schema |= not is_read and effect in ("parse fails", "rows are lost")
    return Drift(write_path(difference.path), _describe(difference), effect, is_schema)


_GRAVEST: tuple[Effect, ...] = (
    "parse fails",
    "rows are lost",
    "answers change",
    "read all the same",
    "not known",
    "not read",
)


def _describe(difference: Difference) -> str:
    where = "" if difference.is_everywhere else f" in {difference.places} of {difference.total}"
    if difference.kind is None:
        return f"absent{where}"
    return f"{difference.kind}{where} instead of {' or '.join(difference.expected)}"


class _Trial:
    """A simulated body that is parsed with one difference after another."""

    def __init__(self, asked: Asked, tree: BodyTree) -> None:
        self._asked, self._tree = asked, tree
        self._usual = self._read(tree.value)
        self._is_known = self._usual is not None and self._usual == self._read(tree.value)

    def _read(self, value: Any) -> ParsedBody | None:
        try:
            return read_body(*self._asked, self._tree.write(value))
        except SourceError:
            return None

    def try_difference(self, difference: Difference) -> Effect:
        """Return the effect of the difference on the parser."""
        if not self._is_known or self._usual is None:
            return "not known"
        value = copy.deepcopy(self._tree.value if difference.path else difference.sample)
        if difference.path and not _apply(value, difference):
            return "not read"  # this body does not have the field
        parsed = self._read(value)
        if parsed is None:
            return "parse fails"
        if parsed.dropped > self._usual.dropped or _length(parsed.value) < _length(self._usual.value):
            return "rows are lost"
        return "not read" if parsed == self._usual else "answers change"


def _length(value: Any) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _apply(value: Any, difference: Difference) -> bool:
    """Apply a difference to a value, everywhere, or once if it is not everywhere. Return False if nothing matches."""
    *way, last = difference.path
    made = False
    for parent in _places(value, way):
        for key in _keys(parent, last):
            if difference.kind is None:
                if isinstance(parent, list):
                    del parent[key:]
                    made = True
                    break
                del parent[key]
            else:
                parent[key] = copy.deepcopy(difference.sample)
            made = True
            if not difference.is_everywhere:
                return True
    return made


def _places(value: Any, way: Sequence[str]) -> Iterator[Any]:
    """Yield each value at a path."""
    if not way:
        yield value
        return
    for key in _keys(value, way[0]):
        yield from _places(value[key], way[1:])


def _keys(parent: Any, step: str) -> list[Any]:
    """Return the names or indices that a step of a path matches in `parent`."""
    if isinstance(parent, dict):
        return list(parent) if step == ANY else [step] if step in parent else []
    if not isinstance(parent, list) or not step.startswith("["):
        return []
    if step == ITEM:
        return list(range(len(parent)))
    place = int(step[1:-1])
    return [place] if place < len(parent) else []
