"""Finds schema drift: fields that a parser reads but that a real body lacks or has with another type.

The fields that a parser reads are not listed anywhere. So the shapes of the real and the
simulated body are compared, and each difference is applied to the simulated body, which is
then parsed. Whether that fails, loses rows, changes the result or has no effect shows the
purpose of the field.

Bodies of JSON, XML and tables are read into dicts, lists and scalars, so that their fields
can be listed and removed. An XML element becomes {"@attribute": text, "tag": [elements],
"#text": text}, a table with a header row a list of rows.
"""

import copy
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element, ParseError, SubElement, tostring

from toolserver.core.plain_xml import read_xml
from toolserver.upstream.decode import ParsedBody, read_body
from toolserver.upstream.source import Request, Source, SourceError

BodyKind = Literal["json", "xml", "table"]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][\w .()/%-]*")


class BodyTree(NamedTuple):
    """A body as a value, and a function that writes another value in the same form."""

    kind: BodyKind
    value: Any
    write: Callable[[Any], bytes]


def read_body_tree(body: bytes) -> BodyTree | None:
    """Return the tree of a body, or None for anything else: a page, a list of lines, a picture."""
    text = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in (b"{", b"["):
        return _read_json(text)
    if text[:1] == b"<":
        return _read_xml(text)
    return _read_table(body)


def _read_json(text: bytes) -> BodyTree | None:
    try:
        return BodyTree("json", json.loads(text), lambda value: json.dumps(value, ensure_ascii=False).encode())
    except (ValueError, RecursionError):
        return None


def _read_xml(text: bytes) -> BodyTree | None:
    try:
        root = read_xml(text)
    except (ParseError, LookupError, ValueError):
        return None
    if root.tag.lower() == "html":
        return None

    def write(value: Any) -> bytes:
        new = Element(root.tag)
        _fill(new, value[root.tag])
        written: bytes = tostring(new, encoding="utf-8", xml_declaration=True)
        return written

    return BodyTree("xml", {root.tag: _value_of(root)}, write)


def _value_of(element: Element) -> dict[str, Any]:
    value: dict[str, Any] = {f"@{name}": text for name, text in element.attrib.items()}
    if element.text and element.text.strip():
        value["#text"] = element.text
    for child in element:
        value.setdefault(child.tag, []).append(_value_of(child))
    return value


def _fill(element: Element, value: dict[str, Any]) -> None:
    for name, part in value.items():
        if name == "#text":
            element.text = part
        elif name.startswith("@"):
            element.set(name[1:], part)
        else:
            for each in part:
                _fill(SubElement(element, name), each)


def _read_table(body: bytes) -> BodyTree | None:
    """Read a table whose first line, after comments, names at least two columns."""
    try:
        lines = body.decode("utf-8-sig").splitlines(keepends=True)
    except UnicodeDecodeError:
        return None
    start = next((number for number, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    if not lines or len(lines) < start + 2:
        return None
    mark = max(",;|\t", key=lines[start].count)
    names, *rows = csv.reader(lines[start:], delimiter=mark)
    if len(names) < 2 or not all(_NAME.fullmatch(name.strip(" \"'")) for name in names):
        return None

    def write(value: Any) -> bytes:
        columns = list(value[0]) if value else names
        out = io.StringIO()
        table = csv.writer(out, delimiter=mark, lineterminator="\n")
        table.writerow(columns)
        table.writerows([row.get(name, "") for name in columns] for row in value)
        return ("".join(lines[:start]) + out.getvalue()).encode()

    return BodyTree("table", [dict(zip(names, row, strict=False)) for row in rows if row], write)


def kind_of(value: Any, tree: BodyKind) -> str:
    """Return the JSON type of a value; strings in XML and tables that are numbers count as numbers."""
    if isinstance(value, str):
        return "number" if tree != "json" and _NUMBER.fullmatch(value.strip()) else "string"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    return "number"


Effect = Literal["parse fails", "rows are lost", "answers change", "read all the same", "not read", "not known"]
MOST_DIFFERENCES = 200  # tried for one body
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

    def add(self, value: Any, tree: BodyKind, *, is_in_list: bool = False) -> None:
        """Count one more value at this place."""
        kind = kind_of(value, tree)
        self.kinds[kind] += 1
        self.samples.setdefault(kind, value)
        if isinstance(value, dict):
            for name, each in value.items():
                _shape_at(self.members, name).add(each, tree)
        elif isinstance(value, list):
            is_row = is_in_list and len(value) <= LONGEST_ROW
            for place, each in enumerate(value):
                step = f"[{place}]" if is_row else ITEM
                _shape_at(self.items, step).add(each, tree, is_in_list=True)

    def absorb(self, other: "Shape") -> None:
        """Count everything that the other shape counted."""
        self.kinds.update(other.kinds)
        self.samples = other.samples | self.samples
        for mine, theirs in ((self.members, other.members), (self.items, other.items)):
            for step, shape in theirs.items():
                _shape_at(mine, step).absorb(shape)


Places = dict[str, Shape]


def _shape_at(places: Places, step: str) -> Shape:
    """Return the shape of a place. It is made for the first value alone: a body has a hundred thousand values."""
    shape = places.get(step)
    if shape is None:
        shape = places[step] = Shape()
    return shape


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

    For an absent field `kind` is None, and it is absent from `places` of `total`. Otherwise
    `kind` is a type that the first shape never has, `sample` a value of it, found in `places`
    of `total` values.
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


def compare_shapes(expected: Shape, actual: Shape, path: Path = ()) -> Iterator[Difference]:
    """Yield the differences of `actual` from `expected`: absent fields and other types.

    Additional fields, and fields that are only sometimes expected, are no difference. Lists
    without items cannot be judged.
    """
    kinds = tuple(sorted(expected.kinds))
    for kind, count in actual.kinds.items():
        if kind not in expected.kinds:
            yield Difference(path, kind, kinds, actual.samples[kind], count, actual.count)
    yield from _compare_members(expected, actual, path)
    yield from _compare_items(expected, actual, path)


def _compare_members(expected: Shape, actual: Shape, path: Path) -> Iterator[Difference]:
    wanted, present, parents = expected.members, actual.members, actual.kinds["object"]
    if _is_map(wanted) or _is_map(present):
        wanted, present, parents = _merge(wanted, ANY), _merge(present, ANY), 0
    for name, shape in wanted.items():
        here = present.get(name, Shape())
        if here.count < parents and shape.count >= expected.kinds["object"]:
            yield Difference((*path, name), None, tuple(sorted(shape.kinds)), None, parents - here.count, parents)
        yield from compare_shapes(shape, here, (*path, name))


def _compare_items(expected: Shape, actual: Shape, path: Path) -> Iterator[Difference]:
    wanted, present = expected.items, actual.items
    if (ITEM in wanted) != (ITEM in present):
        wanted, present = _merge(wanted, ITEM), _merge(present, ITEM)
    for step, shape in wanted.items():
        if step in present:
            yield from compare_shapes(shape, present[step], (*path, step))
        elif present:
            rows = actual.kinds["array"]
            yield Difference((*path, step), None, tuple(sorted(shape.kinds)), None, rows, rows)


def write_path(path: Path) -> str:
    """Write a path for people: `result.*.c[0]`."""
    text = ""
    for step in path:
        text += step if step.startswith("[") or not text else f".{step}"
    return text or "the whole body"


class Question(NamedTuple):
    """The request that a body answers: of a source, for a query."""

    source: Source[Any, Any]
    request: Request
    query: Any


class Drift(NamedTuple):
    """One field, its difference, and the effect on the parser of the simulated body.

    `is_schema` says that the parser reads the field, so that the real body was not parsed,
    was parsed only in part, or never has the field's information. All other drift is
    informational.
    """

    path: str
    said: str
    effect: Effect
    is_schema: bool


def find_drift(question: Question, body: bytes, simulated: Sequence[bytes], *, is_read: bool) -> list[Drift] | None:
    """Compare a real body with simulated ones for the same request. Return None for a body of another or unknown form.

    Several simulated bodies with different seeds together show which fields are always
    present and of which types. `is_read` says that the parser read the real body without
    leaving out rows.
    """
    trees = [tree for each in simulated if (tree := read_body_tree(each)) is not None]
    real = read_body_tree(body)
    if real is None or not trees or real.kind != trees[0].kind:
        return None
    expected, actual = Shape(), Shape()
    for tree in trees:
        expected.add(tree.value, tree.kind)
    actual.add(real.value, real.kind)
    differences = list(compare_shapes(expected, actual))[:MOST_DIFFERENCES]
    trials = [_Trial(question, tree) for tree in trees] if differences else []
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

    def __init__(self, question: Question, tree: BodyTree) -> None:
        self._question, self._tree = question, tree
        self._usual = self._read(tree.value)
        self._is_known = self._usual is not None and self._usual == self._read(tree.value)

    def _read(self, value: Any) -> ParsedBody | None:
        try:
            source, request, query = self._question
            return read_body(source, request, query, self._tree.write(value))
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
    is_applied = False
    for parent in _places(value, way):
        for key in _keys(parent, last):
            if difference.kind is None:
                if isinstance(parent, list):
                    del parent[key:]
                    is_applied = True
                    break
                del parent[key]
            else:
                parent[key] = copy.deepcopy(difference.sample)
            is_applied = True
            if not difference.is_everywhere:
                return True
    return is_applied


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
