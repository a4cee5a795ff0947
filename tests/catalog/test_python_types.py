"""The types of the Python client."""

import ast

from catalog.python_types import write_stub
from tests.architecture.code import ROOT
from tests.catalog.tiny import TINY
from tests.served import all_tools


def test_the_file_in_the_checkout_is_what_the_registry_says():
    written = (ROOT / "toolserver" / "client" / "tools.pyi").read_text(encoding="utf-8")
    assert written == write_stub(all_tools()), "`toolserver docs` brings it up to date"


def test_each_tool_is_a_method_of_both_clients():
    tree = ast.parse(write_stub(TINY))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    names = [operation.name for operation in TINY]
    assert [method.name for method in classes["Tools"].body] == names
    assert [type(method) for method in classes["AsyncTools"].body] == [ast.AsyncFunctionDef] * len(names)


def test_arguments_have_names_only_and_those_that_may_be_left_out_are_none():
    text = write_stub(TINY)
    wanted = (
        '    def sights(self, *, lat: float, kind: Literal["tower", "bridge"] | None = None,'
        ' period: Literal["24h"] | None = None, names: list[Literal["a", "b"]] | None = None)'
        " -> ToolAnswer[SightsPayload]:"
    )
    assert wanted in text
    assert "    def digest(self) -> ToolAnswer[DigestPayload]:" in text
    assert "    warning: NotRequired[list[Warning]]\n" in text


def test_words_of_the_language_are_written_so_that_they_can_be_used():
    text = write_stub(all_tools())
    assert "def account_statement(self, *, from_: str | None = None" in text
    assert ' = TypedDict("' in text or '"from"' not in text
