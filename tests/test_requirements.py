"""Check that a test proves every requirement, and that every proof names one. Both are read from the tests' text."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).resolve().parent
FAMILY = "*"


class Proof(NamedTuple):
    """A test and what it says it proves. `cases` are the prefixes it takes its parameters from by `named(…)`."""

    test: str
    ids: tuple[str, ...]
    cases: tuple[str, ...] = ()


def modules(folder: Path = TESTS) -> Iterator[Path]:
    """The files with tests in them; not those of other programs' installations."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith((".", "node_modules", "__")):
            yield from modules(path)
        elif path.name.startswith("test_") and path.suffix == ".py":
            yield path


def proofs(text: str, where: str) -> Iterator[Proof]:
    """The tests of a module that carry the decorator."""
    if "@proves" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in calls_of(node.decorator_list, "proves"):
            if not node.name.startswith("test_"):
                raise ValueError(f"{where}: {node.name} is no test")
            cases = [strings(call) for call in calls_of(node.decorator_list, "named")]
            yield Proof(f"{where}::{node.name}", strings(decorator), tuple(prefix for case in cases for prefix in case))


def calls_of(nodes: list[ast.expr], name: str) -> list[ast.Call]:
    """Every call of a function of that name inside the expressions."""
    inside = (inner for node in nodes for inner in ast.walk(node))
    return [n for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name]


def strings(call: ast.Call) -> tuple[str, ...]:
    """The arguments of a call, which are plain texts."""
    return tuple(ast.literal_eval(argument) for argument in call.args)


def proved_by(proof: Proof) -> set[str]:
    """The ids a test stands for; those that do not exist are among them."""
    found: set[str] = set()
    for id in proof.ids:
        family = {each for each in REQUIREMENTS if id.endswith(FAMILY) and each.startswith(id.removesuffix(FAMILY))}
        found |= family or {id}
    return found


@pytest.fixture(scope="module")
def all_proofs() -> list[Proof]:
    return [p for path in modules() for p in proofs(path.read_text(encoding="utf-8"), str(path.relative_to(TESTS)))]


def test_every_requirement_is_proved_by_a_test(all_proofs):
    proved = {id for proof in all_proofs for id in proved_by(proof)}

    unproved = [f"{r.source}  {r.id}: {r.sentence}" for r in REQUIREMENTS.values() if r.id not in proved]
    assert not unproved, "no test proves:\n" + "\n".join(unproved)


def test_every_proof_is_of_a_requirement(all_proofs):
    unknown = [f"{proof.test}: {id}" for proof in all_proofs for id in proved_by(proof) - REQUIREMENTS.keys()]

    assert not unknown, "not in tests/requirements.py:\n" + "\n".join(sorted(unknown))


def test_who_proves_a_family_takes_a_case_for_each_of_its_members(all_proofs):
    for proof in all_proofs:
        for id in proof.ids:
            assert not id.endswith(FAMILY) or id.removesuffix(FAMILY) in proof.cases, proof.test


def test_a_requirement_is_one_sentence_with_a_source():
    for requirement in REQUIREMENTS.values():
        assert re.fullmatch(r"[a-z0-9-]+\.[a-zA-Z0-9_/.-]+", requirement.id), requirement
        assert re.fullmatch(r"(SPEC|CONTRACT) §\d+(\.\d+)?", requirement.source), requirement
        assert requirement.sentence.endswith("."), requirement
        assert "\n" not in requirement.sentence


def test_proofs_are_found_in_the_text_of_a_test():
    text = """
@proves("a.one", "a.two")
@pytest.mark.parametrize("case", named("b."))
async def test_something(case): ...

def test_without(): ...
"""
    assert list(proofs(text, "here.py")) == [Proof("here.py::test_something", ("a.one", "a.two"), ("b.",))]
    with pytest.raises(ValueError, match="no test"):
        list(proofs('@proves("a.one")\ndef helping(): ...', "here.py"))
