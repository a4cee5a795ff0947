"""How large files, functions and folders are."""

from tests.architecture.code import ROOT, modules

LINES, FUNCTION_LINES = 600, 70  # where it is one thing; splitting to please a counter is a defect
LONGER: dict[str, str] = {  # files and functions that may be longer than others, and why
    "toolserver.app": "it composes a service and opens its parts, and nothing else",
    "toolserver.calls.pipeline": "it is the one path of every call: who asks, what admits it, what it costs",
    "toolserver.app.build": "it composes a service: every part once, by keyword, in the order in which they start",
}
FOLDERS_AT_THE_TOP, FILES_AT_THE_TOP = 16, 8


def test_a_file_or_function_is_longer_only_with_a_reason():
    files = {name: m.lines for name, m in modules().items() if m.lines > LINES}
    functions = {
        f"{name}.{function}": lines
        for name, m in modules().items()
        for function, lines in m.functions
        if lines > FUNCTION_LINES
    }
    longer = files | functions

    assert {name: lines for name, lines in longer.items() if name not in LONGER} == {}
    assert LONGER.keys() <= longer.keys(), "no longer so long"


def test_the_engine_has_few_rooms_and_few_files_beside_them():
    top = [path for path in (ROOT / "toolserver").iterdir() if path.name != "__pycache__"]
    folders = [path.name for path in top if path.is_dir()]
    files = [path.name for path in top if path.is_file()]

    assert len(folders) <= FOLDERS_AT_THE_TOP, sorted(folders)
    assert len(files) <= FILES_AT_THE_TOP, sorted(files)
