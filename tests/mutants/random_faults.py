"""Faults by chance, the same for the same seed: what the tests of a room do not see is printed.

`python -m tests.mutants.random_faults --room toolserver/calls [--tests tests/calls] [--seed 29] [--count 8]` changes
one place after another in a copy of the project: a comparison, a boolean, `and` to `or`, an integer by one, a sum to a
difference, a condition to its opposite, a statement to nothing. A survivor is a line that no test of the room holds:
it deserves a test, and then a place in tests/mutants/rooms/.
"""

import argparse
import ast
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.__main__ import ROOT, copy_project, mutated, run_tests
from tests.mutants.faults import Mutant, room_of_tests

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*"}
UNTESTED = ("raise NotImplementedError", "if TYPE_CHECKING")


class Place(NamedTuple):
    """A piece of a source text, and what stands there instead."""

    start: int
    end: int
    becomes: str


def offsets_of(text: str) -> list[int]:
    """Where each line begins, in bytes, as the syntax tree counts."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def changes_of(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Each fault that can be made of one node: the part that is replaced, and its replacement."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in COMPARISONS:
            yield node, f"{ast.unparse(left)} {COMPARISONS[type(operator)]} {ast.unparse(right)}"
        case ast.BoolOp(op=operator, values=values):
            other = " or " if isinstance(operator, ast.And) else " and "
            yield node, f"({other.join(f'({ast.unparse(value)})' for value in values)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in ARITHMETIC:
            if not any(isinstance(side, ast.Constant | ast.JoinedStr) for side in (left, right)):
                yield node, f"({ast.unparse(left)} {ARITHMETIC[type(operator)]} {ast.unparse(right)})"
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
            yield node, "pass"
        case _:
            return


def places_in(text: str) -> list[Place]:
    """Every fault that can be made in a text, in the order of the text."""
    starts = offsets_of(text)
    found = set()
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue  # constants and annotations at the top are declarations, which tests seldom repeat
        for statement in function.body:
            for node in ast.walk(statement):
                for part, becomes in changes_of(node):
                    start = starts[part.lineno - 1] + part.col_offset
                    end = starts[(part.end_lineno or part.lineno) - 1] + (part.end_col_offset or 0)
                    found.add(Place(start, end, becomes))
    return sorted(found)


def mutants_of(room: str, tests: str) -> list[Mutant]:
    """Every fault of a room, a folder or one file of it, whose text can still be read as Python."""
    mutants = []
    folder = ROOT / room
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        whole = text.encode()
        for place in places_in(text):
            faulty = (whole[: place.start] + place.becomes.encode() + whole[place.end :]).decode()
            before = whole[: place.start].decode()
            line = text.splitlines()[before.count("\n")].strip()
            if line.startswith(UNTESTED) or not is_python(faulty):
                continue
            name = f"line {before.count(chr(10)) + 1}: {line[:90]}  =>  {place.becomes[:90]}"
            mutants.append(Mutant(name, path.relative_to(ROOT).as_posix(), text, faulty, tests))
    return mutants


def is_python(text: str) -> bool:
    """True for a text that compiles."""
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def main(arguments: list[str]) -> int:
    """Try a sample of a room's faults; the exit code says whether one survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--room", required=True, help="a folder or a file of the product, such as toolserver/calls")
    parser.add_argument("--tests", help="what is run; the folder of the room's tests unless said")
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--count", type=int, default=8)
    options = parser.parse_args(arguments)
    tests = options.tests or room_of_tests(f"{options.room.removesuffix('.py').rstrip('/')}/x.py")
    mutants = mutants_of(options.room, tests)
    sample = random.Random(options.seed).sample(mutants, min(options.count, len(mutants)))
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy_project(copy := Path(folder))
        if run_tests(copy, tests) != 0:
            sys.exit(f"red without any fault: {tests}")
        for mutant in sample:
            with mutated(copy, mutant):
                killed = run_tests(copy, tests) != 0
            survivors += not killed
            print("killed  " if killed else "SURVIVED", mutant.file, mutant.name, flush=True)
        shutil.rmtree(copy, ignore_errors=True)
    print(f"{len(sample)} of {len(mutants)} faults tried, {survivors} survived ({tests}, seed {options.seed})")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
