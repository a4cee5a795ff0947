"""docs/recipes.md: each program is run as it stands, against our demo and a scripted model."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.model_server import Call, ModelServer, Turn
from tests.live.processes import ROOT, Program
from tests.live.programs import NODE, PYTHON_1, installed, ran

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

TEXT = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## ([^\n]+)\n.*?^```(?:python|js)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE))


def play(turn: Turn) -> Call | str:
    """The model asks for the price once, and says it."""
    if not turn.results:
        return Call("btc_price", {})
    return str(json.loads(turn.results[0].text)["data"]["price_usd"])


@pytest.fixture
def model() -> Iterator[ModelServer]:
    model = ModelServer(play)
    yield model
    model.close()
    assert model.faults == []


def follow(name: str, folder: Path, demo: Program, *arguments: str, program: Path, **more: str) -> list[str]:
    """The lines that a recipe prints."""
    installed(program)
    file = folder / ("recipe.mjs" if program == NODE else "recipe.py")
    file.write_text(RECIPES[name], encoding="utf-8")
    variables = {"TOOLSERVER_URL": demo.url, "TOOLSERVER_TOKEN": demo.ready["token"], **more}
    done = ran(program, file, *arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_there_are_six() -> None:
    assert list(RECIPES) == [
        *("A briefing at 8", "A watch", "An evaluation on the past", "LangChain", "OpenAI", "Plain fetch")
    ]


def test_a_briefing_reads_the_context_as_its_prompt(demo: Program, model: ModelServer, tmp_path: Path) -> None:
    keys = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "none"}
    assert follow("A briefing at 8", tmp_path, demo, program=Path(sys.executable), **keys) == ["ok"]
    ((_, request),) = model.asked
    system, user = (message["content"] for message in request["messages"])
    assert system.startswith("# Context ")
    assert "Bitcoin" in system
    assert "five lines" in user


def test_a_watch_tells_of_each_quake_once_and_then_of_new_ones_only(demo: Program, tmp_path: Path) -> None:
    lines = follow("A watch", tmp_path, demo, "4.0", "1", program=Path(sys.executable))
    quakes = [line for line in lines if not line.startswith("late:")]
    assert quakes
    assert len(quakes) == len(set(quakes))
    assert all(float(line.split()[2]) >= 4 for line in quakes)


def test_an_evaluation_measures_three_rules_over_the_same_hours(demo: Program, tmp_path: Path) -> None:
    *rules, receipt = follow("An evaluation on the past", tmp_path, demo, program=Path(sys.executable))
    errors = {line[:10].strip(): float(re.findall(r"([\d.]+) % off, over 2\d hours", line)[0]) for line in rules}
    assert list(errors) == ["no change", "goes on", "comes back"]
    assert all(0 < error < 10 for error in errors.values())
    assert re.fullmatch(r"receipt rcpt_[0-9a-f]{32}", receipt)


@pytest.mark.parametrize(("name", "program"), [("OpenAI", Path(sys.executable)), ("LangChain", PYTHON_1)])
def test_an_agent_answers_with_a_price(
    demo: Program, model: ModelServer, tmp_path: Path, name: str, program: Path
) -> None:
    keys = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "none"}
    (line,) = follow(name, tmp_path, demo, "What does a bitcoin cost?", program=program, **keys)
    assert float(line) > 1000
    assert "btc_price" in {tool.name for tool in model.turns[0].tools}


@pytest.mark.parametrize(
    ("language", "program"), [("sh", Path("/bin/sh")), ("python", Path(sys.executable)), ("js", NODE)]
)
def test_each_language_of_the_same_example_gets_the_price_of_ether(
    demo: Program, tmp_path: Path, language: str, program: Path
) -> None:
    installed(program)
    text = (ROOT / "docs" / "connecting.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n([^`]*?coin[^`]*?)^```", text, re.MULTILINE)
    file = tmp_path / ("example.mjs" if language == "js" else "example")
    file.write_text(block.replace("http://localhost:8080", demo.url), encoding="utf-8")
    done = ran(program, file)
    assert done.returncode == 0, done.stderr
    (price,) = re.findall(r"(?:price_usd\":|^)([\d.]+)", done.stdout, re.MULTILINE)
    assert float(price) > 100


def test_plain_fetch_says_the_weather_its_age_and_its_source(demo: Program, tmp_path: Path) -> None:
    (line,) = follow("Plain fetch", tmp_path, demo, program=NODE)
    assert re.fullmatch(r"-?[\d.]+ °C in Lisbon, as of \d{4}-\d\d-\d\dT[\d:]+Z, from .+", line)
