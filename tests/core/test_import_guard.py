"""What foreign libraries may not do while they are imported, and what they are imported without."""

import sys

import pytest

from toolserver.core.import_guard import left_out, recursion_limit_kept


def test_inside_nobody_changes_the_recursion_limit_and_afterwards_one_may_again():
    before, change = sys.getrecursionlimit(), sys.setrecursionlimit
    with recursion_limit_kept():
        sys.setrecursionlimit(100_000)
        assert sys.getrecursionlimit() == before
    assert sys.setrecursionlimit is change


def test_a_failed_import_leaves_the_interpreter_as_it_was():
    change = sys.setrecursionlimit
    with pytest.raises(ImportError), recursion_limit_kept():
        raise ImportError("no such library")
    assert sys.setrecursionlimit is change


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library that takes a class, a base class and an annotation from another one."""
    (tmp_path / "splendid.py").write_text(
        "import unused.deep\nfrom unused import Server\n"
        "class Own(Server): pass\n"
        "def answer(kind: unused.deep.Kind = None): return 42\n"
    )
    (tmp_path / "unused").mkdir()
    (tmp_path / "unused" / "__init__.py").write_text("class Server: pass\n")
    (tmp_path / "unused" / "deep.py").write_text("class Kind: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("splendid", "unused")]:
        del sys.modules[name]


UNUSED = ("unused", "unused.deep")


def test_a_library_works_without_a_part_that_nobody_uses(library):
    with left_out(*UNUSED):
        import splendid

    assert splendid.answer() == 42
    assert sys.modules.keys().isdisjoint(UNUSED)
    with pytest.raises(ImportError, match=r"unused was left out .* nothing uses Server"):
        splendid.Own()


def test_what_was_left_out_can_be_imported_later(library):
    with left_out(*UNUSED):
        import splendid  # noqa: F401
    from unused.deep import Kind

    assert Kind()


def test_what_is_loaded_already_is_used(library):
    import unused.deep

    with left_out(*UNUSED):
        from splendid import Own

    assert Own()
    assert sys.modules["unused"] is unused


def test_a_failed_import_leaves_no_stand_in_behind(library):
    with pytest.raises(ImportError, match="no such part"), left_out(*UNUSED):
        raise ImportError("no such part")
    assert sys.modules.keys().isdisjoint(UNUSED)
