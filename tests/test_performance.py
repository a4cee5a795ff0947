"""Check that the page about performance has the saved figures, and that `python -m bench` reports missed bars."""

import asyncio
import contextlib
import importlib
import json
import os
import re
import sys
from collections import Counter
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from bench import figures, mcp_peers
from bench import judge as judging
from bench.__main__ import main, read_rows, versions
from bench.figures import (
    BEGIN,
    END,
    FOLDER,
    GROWTH,
    GROWTH_PAGE,
    KEPT,
    PAGE,
    SOAK,
    draw,
    pictures,
    read,
    shown,
    write_page,
    write_rows,
)
from bench.growth_figures import draw_growth, write_growth
from bench.judge import PARTS, ROWS, Bar, Effort, Line, NotHere, Table, Verdict, as_json, from_json, judge_rows
from bench.load import run
from bench.rows import get
from bench.soak import Day, Sample
from bench.soak_figures import draw_day, write_day

MEND = "python -m bench.figures"
TABLE = Table(
    "costs", 'Costs <&> "more"', "µs", [Line("ours", 2, 1, 3, "a"), Line("theirs", 40, 40, 40, "b")], others=("theirs",)
)


def test_the_page_and_its_pictures_are_made_of_the_kept_figures():
    kept, day, growth, page = read(KEPT), read(SOAK), read(GROWTH), PAGE.read_text(encoding="utf-8")
    drawn = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.svg")}
    if kept is None:  # nothing was measured on a quiet machine yet: then nothing is shown either
        assert drawn == {}
        assert f"{BEGIN}\n{END}" in page
        return
    assert write_page(page, kept, day) == page, f"the page is not made of the kept figures: {MEND}"
    assert growth is not None
    about_growth = GROWTH_PAGE.read_text(encoding="utf-8")
    assert about_growth == "\n".join(write_growth(growth)), MEND
    assert pictures(kept, day, growth) == drawn, MEND
    assert all(
        len(text.encode()) < 50_000 and f"performance/{name}" in page + about_growth for name, text in drawn.items()
    )
    measured = {bar["row"] for bar in kept["bars"]}
    assert measured | {int(row) for row in kept["left_out"]} == ROWS.keys()


KEPT_FIGURES = {
    "at": "2027-01-15",
    "machine": "2 cores",
    "command": "python -m bench",
    "versions": {"fastmcp": "4"},
    "left_out": {"26": "no Redis"},
    **as_json(Verdict([Bar(1, "a hit", 1.2, 1.35, "x", server="uvicorn")], [TABLE])),
}


def test_the_page_is_written_anew_by_one_command(tmp_path, monkeypatch):
    folder, page = tmp_path / "performance", tmp_path / "performance.md"
    page.write_text(f"# Speed\n\n{BEGIN}\nold\n{END}\n\nThe end.\n")
    kept = {"KEPT": folder / "k.json", "SOAK": folder / "s.json", "GROWTH": folder / "g.json"}
    for name, value in {"FOLDER": folder, "PAGE": page, **kept}.items():
        monkeypatch.setattr(figures, name, value)
    given = tmp_path / "given.json"
    given.write_text(json.dumps(KEPT_FIGURES))
    with pytest.raises(SystemExit, match="no figures"):
        figures.main([str(folder / "k.json"), "--soak", str(folder / "s.json")])
    figures.main([str(given), "--soak", str(folder / "s.json")])

    text = page.read_text()
    assert text.startswith("# Speed")
    assert text.endswith("The end.\n")
    assert "old" not in text
    assert "| 1 | a hit | uvicorn | 1.2 x |  | ≤ 1.35 x | yes |" in text
    assert "not measured: no Redis" in text
    assert '![Costs <&> "more", in µs](performance/costs.svg)' in text
    assert (folder / "costs.svg").read_text() == draw(TABLE)
    again = page.read_text()
    figures.main([str(folder / "k.json"), "--soak", str(folder / "s.json")])
    assert page.read_text() == again


def test_every_row_is_measured_by_a_part():
    assert set().union(*PARTS.values()) == ROWS.keys()
    for name in PARTS:
        assert callable(importlib.import_module(name).judge), f"{name} measures nothing"


def test_a_picture_is_well_formed_and_readable_in_dark_and_light():
    text = draw(TABLE)
    root = ElementTree.fromstring(text)
    bars = [node for node in root.iter() if node.tag.endswith("rect")]
    assert [bar.get("class") for bar in bars] == ["o", "p"]
    assert float(bars[1].get("width")) == pytest.approx(20 * float(bars[0].get("width")), rel=0.01)
    assert "prefers-color-scheme:dark" in text
    assert root.get("aria-label") == TABLE.title


@pytest.mark.parametrize(
    ("bar", "missed", "reached"),
    [
        (Bar(1, "x", 2.0, 1.0), True, 0.5),
        (Bar(1, "x", 1.0, 1.0), False, 1.0),
        (Bar(1, "x", 3.0, 6.0, at_least=True), True, 0.5),
        (Bar(1, "x", 6.0, 6.0, at_least=True), False, 1.0),
        (Bar(1, "x", 0, 0), False, float("inf")),
        (Bar(1, "x", 1, 0), True, 0.0),
    ],
)
def test_a_bar_is_reached_or_missed(bar, missed, reached):
    assert (bar.is_missed, bar.reached) == (missed, reached)


def test_the_worst_row_comes_first_on_the_page():
    bars = [Bar(2, "good", 1, 2), Bar(1, "bad", 4, 2), Bar(3, "fair", 2, 2)]
    lines = list(write_rows(bars, {"26": "no Redis"}))[2:]
    assert [re.split(r" \| ", line)[1] for line in lines] == ["bad", "fair", "good", ROWS[26]]
    assert "**missed**" in lines[0]
    assert "not measured: no Redis" in lines[3]


DAY = Day("uvicorn", 20, [Sample(n, 100, 40, 3.0) for n in range(400)], Counter(free_rest=9), Counter({200: 9}), 3, 4)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"samples": [Sample(n, 100 + n / 20, 40, 3) for n in range(400)]}, "memory rises"),
        ({"samples": [Sample(n, 100, 40 + n, 3) for n in range(400)]}, "descriptors rise"),
        ({"samples": [Sample(n, 100, 40, 3 + n) for n in range(400)]}, "p99 rises"),
        ({"statuses": Counter({500: 1})}, "statuses"),
        ({"wrong": ["money: 3 != 4"]}, "3 != 4"),
    ],
)
def test_a_day_says_what_grew_and_what_was_wrong(changed, said):
    assert DAY.judge() == []
    assert any(said in what for what in replace(DAY, **changed).judge())


def test_the_pictures_of_a_day_are_well_formed():
    day = DAY.as_json()
    found = draw_day(day)
    assert found.keys() == {"soak-memory.svg", "soak-descriptors.svg", "soak-p99.svg"}
    for text in found.values():
        assert [node for node in ElementTree.fromstring(text).iter() if node.tag.endswith("polyline")]
        assert len(text.encode()) < 50_000
    assert "4 receipts were verified. Errors found: none." in "\n".join(write_day(day))


class Part(ModuleType):
    """A part of the bench that measures nothing: it has these bars, or it fails."""

    def __init__(self, name, outcome):
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)
        self.outcome = outcome

    def judge(self, effort):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return Verdict(list(self.outcome), [TABLE])


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.setitem(sys.modules, "bench.one", Part("bench.one", [Bar(1, "x", 1, 2), Bar(2, "y", 3, 2)]))
    monkeypatch.setitem(sys.modules, "bench.two", Part("bench.two", NotHere("no nginx")))
    monkeypatch.setattr(
        judging, "PARTS", {"bench.one": frozenset({1, 2}), "bench.two": frozenset({3}), "bench.three": frozenset({4})}
    )


def test_rows_that_are_not_asked_for_are_not_judged_and_missing_parts_are_named(parts):
    verdict, left_out = judge_rows([2, 3, 4], Effort())
    assert [bar.row for bar in verdict.bars] == [2]
    assert left_out == {3: "no nginx", 4: "bench.three is not there"}
    assert judge_rows([3], Effort())[0].bars == []


def test_a_part_that_breaks_loses_nothing_of_the_others_and_is_no_success(parts, capsys):
    sys.modules["bench.two"].outcome = OSError("a connection was reset")
    verdict, left_out = judge_rows([1, 3], Effort())
    assert [bar.row for bar in verdict.bars] == [1]
    assert left_out == {3: "bench.two failed: OSError"}
    assert "a connection was reset" in capsys.readouterr().err
    assert (main(["--rows", "1"]), main(["--rows", "1,3"])) == (0, 1)


def test_a_part_that_takes_one_core_leaves_all_to_the_next(parts):
    before = os.sched_getaffinity(0)
    sys.modules["bench.one"].judge = lambda effort: (
        os.sched_setaffinity(0, {min(before)}),
        Verdict(),
    )[1]
    judge_rows([1], Effort())
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("rows", "code"), [("1", 0), ("2", 1), ("1-4", 1)])
def test_the_exit_code_says_whether_a_bar_is_missed(parts, rows, code, tmp_path, capsys):
    assert main(["--rows", rows, "--save", str(tmp_path / "kept.json")]) == code
    said = capsys.readouterr().out
    assert ("MISSED" in said) is bool(code)
    assert f"fastmcp {versions()['fastmcp']}" in said
    found = json.loads((tmp_path / "kept.json").read_text())
    assert as_json(from_json(found)) == {"bars": found["bars"], "tables": found["tables"]}
    assert pictures(found).keys() == {"costs.svg"}


@pytest.mark.parametrize(("is_new", "connections"), [(False, 4), (True, 40)])
async def test_a_load_keeps_its_connections_or_opens_one_for_each_call(is_new, connections):
    opened = []

    async def answer(reader, writer):
        opened.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    load = await run(port, get("/"), total=40, connections=4, is_new=is_new)
    server.close()
    await asyncio.gather(*opened)
    await server.wait_closed()
    assert 40 <= load.done == len(load.took_ms) < 44  # who is asked while the last answer comes is counted too
    assert load.bad == 0
    assert len(opened) == connections


def test_peers_that_are_not_installed_are_left_out(monkeypatch, tmp_path):
    places = {"python": tmp_path / "python", "modules": tmp_path / "node_modules"}
    assert list(mcp_peers.find_commands(**places)) == []
    (tmp_path / "python").touch()
    assert [name for name, _ in mcp_peers.find_commands(**places)] == ["fastapi-mcp", "mcpo"]
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert {name for name, _ in mcp_peers.find_commands(**places)} == mcp_peers.LABELS.keys()


def test_rows_are_numbers_and_spans():
    assert read_rows("1,9,11-13") == [1, 9, 11, 12, 13]
    with pytest.raises(ValueError, match="no row 27"):
        read_rows("27")


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (1234.5, "1,234"), (12.345, "12.3"), (0.04567, "0.0457")])
def test_numbers_have_three_digits_that_matter(value, text):
    assert shown(value) == text


def test_a_page_without_a_place_for_figures_is_refused():
    with pytest.raises(ValueError, match="no place"):
        write_page("# nothing\n", {"bars": [], "tables": []})


def test_every_module_that_a_row_names_is_there_but_those_of_other_machines():
    folder = Path(judging.__file__).parent
    missing = {name for name in PARTS if not folder.joinpath(f"{name.partition('.')[2]}.py").exists()}
    assert missing <= {"bench.instances"}


def test_what_grows_is_drawn_on_logarithmic_scales_and_a_flat_line_stays_level():
    flat, steep = [40.0, 40.0, 40.0], [1.0, 10.0, 100.0]
    axis = {"what": "tokens", "sizes": [100, 1000, 10_000], "free_cpu_us": flat, "paid_cpu_us": steep}
    growth = {"tokens": axis | {"free_p99_ms": flat, "paid_p99_ms": steep}}
    (text,) = draw_growth(growth).values()
    lines = [node for node in ElementTree.fromstring(text).iter() if node.tag.endswith("polyline")]
    free, paid = ([tuple(map(float, point.split(","))) for point in line.get("points").split()] for line in lines[:2])
    assert len({y for _, y in free}) == 1
    (x0, y0), (x1, y1), (x2, y2) = paid
    assert (x1 - x0, y0 - y1) == pytest.approx((x2 - x1, y1 - y2), abs=0.2)
    rows = list(write_growth(growth))
    assert "| free, µs of CPU | 40 | 40 | 40 | 1.00 |" in rows
    assert "| paid, ms, 99th percentile | 1 | 10 | 100 | 100.00 |" in rows
