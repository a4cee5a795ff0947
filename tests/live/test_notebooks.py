"""The notebooks of examples/: every cell runs against our demo, and what they show is what they draw now.

`UPDATE_DOCUMENTS=1` writes what the cells printed and drew into the notebooks, so that readers see it without running
them. All of it is of the simulated world.
"""

import ast
import contextlib
import io
import json
import os
import re
from typing import Any

import pytest

from tests.live.processes import ROOT, Program

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

FOLDER = ROOT / "examples" / "notebooks"
MOST_BYTES = 60_000
SVG = "image/svg+xml"


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell as Jupyter does: what it printed, and its last expression if that can draw itself."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None  # type: ignore[attr-defined]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        drawn = None if last is None else eval(compile(last, "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if drawn is not None and hasattr(drawn, "_repr_svg_"):
        shown = {SVG: drawn._repr_svg_().splitlines(keepends=True), "text/plain": ["a picture"]}
        outputs.append({"data": shown, "metadata": {}, "output_type": "display_data"})
    return outputs


def form_of(outputs: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return what kinds of output a cell has: values change with the time, this does not."""
    return [(one["output_type"], len(one.get("data", {}))) for one in outputs]


@pytest.mark.parametrize("name", ["markets", "hazards"])
def test_every_cell_runs_and_shows_what_the_notebook_has(demo: Program, monkeypatch: Any, name: str) -> None:
    monkeypatch.setenv("TOOLSERVER_URL", demo.url)
    monkeypatch.setenv("TOOLSERVER_TOKEN", demo.ready["token"])
    file = FOLDER / f"{name}.ipynb"
    notebook = json.loads(file.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    try:
        for cell in cells:
            outputs = run_cell("".join(cell["source"]), names)
            if os.environ.get("UPDATE_DOCUMENTS") == "1":
                cell["outputs"] = outputs
            assert form_of(outputs) == form_of(cell["outputs"]), cell["id"]
    finally:
        names["client"].close()
    if os.environ.get("UPDATE_DOCUMENTS") == "1":
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    pictures = [one["data"][SVG] for cell in cells for one in cell["outputs"] if SVG in one.get("data", {})]
    assert pictures
    assert all(len(re.findall("<(circle|rect|polyline)", "".join(lines))) for lines in pictures)


def test_notebooks_are_small_and_keep_no_secret() -> None:
    files = sorted(FOLDER.glob("*.ipynb"))
    assert [file.stem for file in files] == ["hazards", "markets"]
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert len(text) < MOST_BYTES, file.name
        assert not re.search(r"svc_(live|free)_[0-9a-f]{8}|127\.0\.0\.1:\d", text), file.name
