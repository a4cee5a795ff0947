"""Each figure of the house finds its fault in a small text, and passes a text that is right."""

import ast
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.house import figures
from tests.house.figures import File

Figure = Callable[[Iterable[File]], Iterator[str]]

WIDE = "".join(f"    field_{number}: int\n" for number in range(8))
NARROW = "".join(f"    field_{number}: int\n" for number in range(7))
WIDE_DATACLASS = f"@dataclass(frozen=True)\nclass Quote:\n{WIDE}"
WIDE_CONSTRUCTOR = "class Quote:\n    def __init__(self, a, b, c, d, *, e, f, g, h): pass"

STORE = "class Store(Protocol):\n    def read(self) -> int: ...\n    def write(self, value: int) -> None: ...\n"
MEMORY = "class MemoryStore:\n    def read(self): return 1\n    def write(self, value): pass\n"
CURSOR = "class Cursor(typing.Protocol):\n    def fetchone(self): ...\n    def fetchall(self): ...\n"
POSTGRES = "class PostgresCursor:\n    def fetchone(self): return 1\n    def fetchall(self): return [1]\n"


def file_of(text: str) -> File:
    return File("toolserver.sample", "toolserver/sample.py", text, ast.parse(text))


def places(figure: Figure, text: str) -> list[str]:
    return [place.removeprefix("toolserver/sample.py:") for place in figure([file_of(text)])]


@pytest.mark.parametrize(
    ("figure", "text", "expected"),
    [
        (figures.list_fillers, "given = 1", ["1 given"]),
        (figures.list_fillers, "def read(told): pass", ["1 told"]),
        (figures.list_fillers, "for found in rows: pass", ["1 found"]),
        (figures.list_fillers, "price = quote.given", []),
        (figures.list_splats, "build(*(1, 2))", ["1"]),
        (figures.list_splats, "build(**{'a': 1})", ["1"]),
        (figures.list_splats, "def run():\n    parts = [1, 2]\n    build(*parts)", ["2 parts"]),
        (figures.list_splats, "def run():\n    parts: dict = {} | more\n    build(**parts)", ["2 parts"]),
        (figures.list_splats, "def run(rows):\n    parts = [1, 2]\n    build(parts, *rows)", []),
        (figures.list_inner_imports, "def run():\n    from toolserver.clock import Clock", ["2"]),
        (figures.list_inner_imports, "def run():\n    import tools.free", ["2"]),
        (figures.list_inner_imports, "import toolserver.clock\ndef run():\n    import json", []),
        (figures.list_wide_constructors, WIDE_DATACLASS, ["2 Quote (8)"]),
        (figures.list_wide_constructors, WIDE_CONSTRUCTOR, ["1 Quote (8)"]),
        (figures.list_wide_constructors, WIDE_DATACLASS.replace(WIDE, NARROW), []),
        (figures.list_wide_constructors, WIDE_DATACLASS.removeprefix("@dataclass(frozen=True)\n"), []),
        (figures.list_private_names, "store._rows", ["1 _rows"]),
        (figures.list_private_names, "from toolserver.sql.rows import _cut, cut", ["1 _cut"]),
        (figures.list_private_names, "self._rows, cls._rows, store.__class__", []),
        (figures.list_private_names, "row._replace(a=1), row._asdict(), Row._make(values), Row._fields", []),
        (figures.list_patches, "monkeypatch.setattr(store, 'read', lambda: 1)", ["1"]),
        (figures.list_patches, "monkeypatch.setattr('toolserver.sql.rows.cut', lambda: 1)", ["1"]),
        (figures.list_patches, "monkeypatch.setattr(os.path, 'exists', no)\nmonkeypatch.setattr('time.sleep', no)", []),
        (figures.list_patches, "from pathlib import Path\nmonkeypatch.setattr(Path, 'home', no)", []),
        (figures.list_patches, "import anyio\nmonkeypatch.setattr(anyio.to_thread, 'run_sync', no)", []),
        (figures.list_patches, "from bench import judge\nmonkeypatch.setattr(judge, 'PARTS', {})", ["2"]),
        (figures.list_patches, "monkeypatch.setenv('PORT', '1')", []),
    ],
)
def test_a_figure_lists_the_places_of_its_fault(figure: Figure, text: str, expected: list[str]):
    assert places(figure, text) == expected


def test_a_module_with_one_user_is_one_of_the_engine_that_one_module_imports():
    graph = {
        "toolserver.app": {"toolserver.money.quotes", "toolserver.clock", "tools.free"},
        "toolserver.money": {"toolserver.clock"},
        "toolserver.money.quotes": {"toolserver.money"},
        "toolserver.clock": set[str](),
        "tools.free": set[str](),
    }

    assert list(figures.list_one_user_modules(graph, {"toolserver.money"})) == [
        "toolserver.money.quotes (by toolserver.app)"
    ]


@pytest.mark.parametrize(
    ("product", "tests", "expected"),
    [
        (STORE, "", ["1 Store"]),
        (STORE + MEMORY, "", ["1 Store"]),
        (STORE + MEMORY, MEMORY.replace("Memory", "Broken"), []),
        (STORE + MEMORY, "class ReadOnly:\n    def read(self): return 1\n", ["1 Store"]),
        ("class Read(Protocol):\n    def __call__(self) -> int: ...\n", "", []),
    ],
)
def test_a_protocol_is_lonely_when_fewer_than_two_classes_have_its_methods(
    product: str, tests: str, expected: list[str]
):
    lonely = figures.list_lonely_protocols([file_of(product)], [file_of(tests)])

    assert [place.removeprefix("toolserver/sample.py:") for place in lonely] == expected


def test_the_class_of_a_library_fulfils_a_protocol_where_the_product_names_it():
    rows = "import sqlite3\ndef rows(cursor: sqlite3.Cursor): pass\n"

    assert [*figures.list_lonely_protocols([file_of(CURSOR + POSTGRES + rows)], [])] == []
    assert [*figures.list_lonely_protocols([file_of(CURSOR + POSTGRES)], [])] == ["toolserver/sample.py:1 Cursor"]
    assert [*figures.list_lonely_protocols([file_of(CURSOR + rows)], [])] == ["toolserver/sample.py:1 Cursor"]
    assert [*figures.list_lonely_protocols([file_of(STORE + MEMORY + rows)], [])] == ["toolserver/sample.py:1 Store"]


def test_a_class_of_a_library_that_is_named_protocol_declares_nothing():
    text = "class StrictProtocol(H11Protocol):\n    def answer(self): pass\n"

    assert [*figures.list_lonely_protocols([file_of(text)], [])] == []


def test_lines_are_counted_and_their_lengths_measured():
    files = [file_of("a = 1\n\nb = 22\n")]

    assert figures.count_lines(files) == 3
    assert figures.measure_lines(files) == (5, 6)
