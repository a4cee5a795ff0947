"""What holds for every source module."""

import ast
from pathlib import Path

import pytest

from toolserver.registry.registry import Registry

MODULES = sorted((Path(__file__).resolve().parents[3] / "tools" / "sources").glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_source_imports_no_sibling_but_the_table_of_hosts(path):
    modules = {
        node.module
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tools.sources")
    }

    assert modules <= {"tools.sources.hosts"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_request_that_never_changes_is_not_a_function(path):
    constant = [
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and [argument.arg for argument in node.args.args][1:] == ["keys"]
        and not {argument.arg for argument in node.args.args}
        & {name.id for statement in node.body for name in ast.walk(statement) if isinstance(name, ast.Name)}
    ]

    assert constant == (["request"] if path.stem in ("geonames", "terminal_bench") else [])


def test_every_source_has_an_age_limit_or_says_why_it_has_none():
    sources = {id(source): source for operation in Registry.load("tools") for source in operation.sources}

    silent = [source.name for source in sources.values() if not source.has_age_limit and not source.ageless]

    assert silent == []
    assert len(sources) >= 150
