"""The figures of the source text: names, literals, imports, constructors, users, protocols, tests, circles, lines."""

import ast
import importlib
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from tests.architecture.code import PACKAGES, ROOT, imported, module_of

FILLERS = frozenset({"given", "told", "kept", "known", "made", "asked", "found"})
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
WIDE = 8  # fields
MINE = {"self", "cls"}
PUBLIC = {"_replace", "_asdict", "_make", "_fields"}
OUTSIDE = {"os", "sys", "time", "socket", "subprocess", "signal", "shutil", "random", "platform", "builtins"}
OURS = {*PACKAGES, "bench", "clients", "deploy", "examples", "tests"}


@dataclass(frozen=True)
class File:
    """A file of Python: its dotted name, its place, its text and its syntax tree."""

    name: str
    place: str
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree."""
        return tuple(ast.walk(self.tree))


def read_files(*folders: str) -> list[File]:
    """The Python files of some folders of the project, in the order of their names."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    paths = [ROOT / place for place in sorted(listed) if place.endswith(".py")]
    return [read_file(path) for path in paths if path.is_file()]


def read_file(path: Path) -> File:
    """One file of Python."""
    text = path.read_text(encoding="utf-8")
    return File(module_of(path), path.relative_to(ROOT).as_posix(), text, ast.parse(text))


def list_fillers(files: Iterable[File]) -> Iterator[str]:
    """Each place where a local name says nothing of what it holds: as a local or as a parameter."""
    for file in files:
        for node in file.nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in FILLERS:
                    yield f"{file.place}:{node.lineno} {name}"


def list_splats(files: Iterable[File]) -> Iterator[str]:
    """Each tuple, list or dict that exists only to be taken apart as arguments of a call."""
    for file in files:
        for call in file.nodes:
            if isinstance(call, ast.Call):
                for value in splatted(call):
                    if isinstance(value, ast.Tuple | ast.List | ast.Dict):
                        yield f"{file.place}:{call.lineno}"
        for function in file.nodes:
            if isinstance(function, FUNCTIONS):
                yield from (f"{file.place}:{line} {name}" for name, line in names_built_to_be_splatted(function))


def splatted(call: ast.Call) -> Iterator[ast.expr]:
    """What a call takes apart: the values after one star or two."""
    yield from (each.value for each in call.args if isinstance(each, ast.Starred))
    yield from (each.value for each in call.keywords if each.arg is None)


def is_literal(value: ast.expr | None) -> bool:
    """True for a tuple, a list or a dict written out, for a choice between two, and for one that is grown at once."""
    match value:
        case ast.Tuple() | ast.List() | ast.Dict():
            return True
        case ast.IfExp(body=left, orelse=right) | ast.BinOp(left=left, right=right):
            return is_literal(left) or is_literal(right)
    return False


def names_built_to_be_splatted(function: ast.AST) -> Iterator[tuple[str, int]]:
    """Locals that hold a literal and are taken apart by a star."""
    literals: dict[str, int] = {}
    stars: set[str] = set()
    for node in ast.walk(function):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                if is_literal(value):
                    literals[name] = node.lineno
            case ast.Call():
                for value in splatted(node):
                    if isinstance(value, ast.Name):
                        stars.add(value.id)
    yield from ((name, line) for name, line in literals.items() if name in stars)


def list_inner_imports(files: Iterable[File]) -> Iterator[str]:
    """Each import of our own packages inside a function."""
    for file in files:
        seen = set()
        for function in file.nodes:
            if isinstance(function, FUNCTIONS):
                for node in ast.walk(function):
                    if isinstance(node, ast.Import | ast.ImportFrom) and node not in seen:
                        seen.add(node)
                        if any(name.partition(".")[0] in PACKAGES for name in imported(node)):
                            yield f"{file.place}:{node.lineno}"


def list_wide_constructors(files: Iterable[File]) -> Iterator[str]:
    """Each class that is built from eight or more values: by its constructor, or as fields of a dataclass."""
    for file in files:
        for node in file.nodes:
            if isinstance(node, ast.ClassDef) and (count := count_fields(node)) >= WIDE:
                yield f"{file.place}:{node.lineno} {node.name} ({count})"


def count_fields(node: ast.ClassDef) -> int:
    """How many values a class is built from, if it has a constructor of its own or is a dataclass."""
    for statement in node.body:
        if isinstance(statement, FUNCTIONS) and statement.name == "__init__":
            return len(statement.args.args) + len(statement.args.kwonlyargs) - 1
    if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        return sum(isinstance(statement, ast.AnnAssign) for statement in node.body)
    return 0


def list_one_user_modules(graph: Mapping[str, set[str]], packages: set[str]) -> Iterator[str]:
    """Each module of the engine that one other module alone imports."""
    users: dict[str, set[str]] = defaultdict(set)
    for name, imports in graph.items():
        for each in imports:
            users[each].add(name)
    for name in sorted(graph):
        if name.startswith("toolserver.") and name not in packages and len(users[name]) == 1:
            yield f"{name} (by {min(users[name])})"


def list_lonely_protocols(product: list[File], tests: list[File]) -> Iterator[str]:
    """Each protocol that fewer than two classes fulfil, judged by the names of methods.

    Those classes are the product's, its tests', and those of libraries that the product names: `sqlite3.Cursor`.
    """
    classes = [
        (node.name, members_of(node))
        for file in (*product, *tests)
        for node in file.nodes
        if isinstance(node, ast.ClassDef) and not is_protocol(node)
    ]
    classes += [(cls.__name__, set(dir(cls))) for cls in library_classes(product)]
    for file in product:
        for node in file.nodes:
            if isinstance(node, ast.ClassDef) and is_protocol(node):
                members = members_of(node)
                fulfilled = [name for name, has in classes if members <= has] if members - {"__call__"} else [""] * 2
                if len(fulfilled) < 2:
                    yield f"{file.place}:{node.lineno} {node.name}"


def library_classes(files: Iterable[File]) -> set[type]:
    """The classes that files name by a library that they import whole: `sqlite3.Connection`."""
    classes = set()
    for file in files:
        libraries = {
            alias.name
            for node in file.nodes
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.asname is None and alias.name.partition(".")[0] not in PACKAGES
        }
        for node in file.nodes:
            match node:
                case ast.Attribute(value=ast.Name(id=library), attr=name) if library in libraries and name[0].isupper():
                    named = getattr(importlib.import_module(library), name, None)
                    if isinstance(named, type):
                        classes.add(named)
    return classes


def is_protocol(node: ast.ClassDef) -> bool:
    """True for a class that only says what others must be able to do; a library may call its own classes Protocol."""
    return any(ast.unparse(base).partition("[")[0] in ("Protocol", "typing.Protocol") for base in node.bases)


def members_of(node: ast.ClassDef) -> set[str]:
    """The names of a class: its methods, its fields, and what its methods set on themselves."""
    names = set()
    for each in ast.walk(node):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Attribute(value=ast.Name(id="self"), attr=name):
                names.add(name)
    return names


def list_private_names(tests: Iterable[File]) -> Iterator[str]:
    """Each place where a test uses a name that begins with an underscore and belongs to somebody else.

    The names in PUBLIC are the documented ones of every NamedTuple, and are nobody's secret.
    """
    for file in tests:
        for node in file.nodes:
            match node:
                case ast.Attribute(value=value, attr=name) if is_private(name):
                    if not (isinstance(value, ast.Name) and value.id in MINE):
                        yield f"{file.place}:{node.lineno} {name}"
                case ast.ImportFrom(names=names):
                    yield from (f"{file.place}:{node.lineno} {alias.name}" for alias in names if is_private(alias.name))


def is_private(name: str) -> bool:
    """True for `_name`, not for `__dunder__` nor for what a NamedTuple offers."""
    return name.startswith("_") and not name.endswith("__") and name not in {"_", *PUBLIC}


def list_patches(tests: Iterable[File]) -> Iterator[str]:
    """Each place where a test replaces a name of ours for its time: `monkeypatch.setattr` on a part or a module.

    A name that the file imports from a library, such as `anyio.to_thread` or `Path`, is not ours.
    """
    for file in tests:
        theirs = OUTSIDE | names_of_libraries(file)
        for node in file.nodes:
            match node:
                case ast.Call(func=ast.Attribute(attr="setattr", value=ast.Name(id="monkeypatch")), args=[target, *_]):
                    if ast.unparse(target).strip("'\"").partition(".")[0] not in theirs:
                        yield f"{file.place}:{node.lineno}"


def names_of_libraries(file: File) -> set[str]:
    """The names that a file imports from elsewhere than from us."""
    names = set()
    for node in file.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias, full in zip(node.names, imported(node), strict=True):
                if full.partition(".")[0] not in OURS:
                    names.add((alias.asname or alias.name).partition(".")[0])
    return names


def measure_lines(files: Iterable[File]) -> tuple[float, int]:
    """The median and the ninth tenth of the lengths of lines, empty ones counted."""
    lengths = sorted(len(line) for file in files for line in file.text.splitlines())
    return median(lengths), lengths[int(0.9 * len(lengths))]


def count_lines(files: Iterable[File]) -> int:
    """How many lines some files have."""
    return sum(file.text.count("\n") for file in files)
