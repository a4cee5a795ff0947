"""The agents of examples/: the real libraries of model providers, a scripted model, and our demo."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import httpx
import pytest

from tests.hosts.model_server import Call, ModelServer, Turn
from tests.live.processes import ROOT, UNLIMITED, Program, started
from tests.live.programs import PYTHON_1, installed, ran
from toolserver.errors import MissingToken

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

AGENTS = ROOT / "examples" / "agents"
SCRIPTS = [
    ("openai_agent.py", Path(sys.executable)),
    ("anthropic_agent.py", Path(sys.executable)),
    ("langchain_agent.py", PYTHON_1),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **UNLIMITED) as program:
        yield program


CALLS = [Call("btc_price", {}), Call("premium_briefing", {"include": "earthquakes"})]


def play(turn: Turn) -> Call | str:
    """The model has learned its part: it calls two tools, then answers with a figure of each."""
    if len(turn.results) < len(CALLS):
        return CALLS[len(turn.results)]
    price, briefing = (json.loads(result.text) for result in turn.results)
    outcome = briefing["error"] if "error" in briefing else briefing["sections"]["earthquakes"]["count"]
    return f"{price['data']['price_usd']} {outcome}"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    model = ModelServer(play)
    yield model
    model.close()
    assert model.faults == []


@pytest.mark.parametrize(("script", "python"), SCRIPTS)
def test_an_agent_of_25_lines_answers_with_live_data(
    program: Program, model: ModelServer, script: str, python: Path
) -> None:
    installed(python)
    code = (AGENTS / script).read_text().partition('"""\n\n')[2]
    assert len([line for line in code.splitlines() if line and not line.startswith(("import", "from"))]) <= 25

    def balance() -> int:
        headers = {"authorization": f"Bearer {program.ready['token']}"}
        return int(httpx.get(f"{program.url}/api/payment/balance", headers=headers).json()["credits"])

    before = balance()
    environment = {
        "TOOLSERVER_URL": program.url,
        "TOOLSERVER_TOKEN": program.ready["token"],
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_API_KEY": "none",
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "none",
    }
    done = ran(python, AGENTS / script, "What does a bitcoin cost?", **environment)

    assert done.returncode == 0, done.stderr
    assert "Deprecat" not in done.stderr
    price, quakes = done.stdout.split()
    assert float(price) > 1000
    assert int(quakes) >= 0
    assert balance() == before - 1
    assert len(model.asked) == len(CALLS) + 1
    assert len(model.turns[0].tools) == 21
    assert {call.name for call in CALLS} <= {tool.name for tool in model.turns[0].tools}


@pytest.mark.parametrize(("script", "python"), SCRIPTS)
def test_without_a_token_an_agent_gets_free_data_and_the_offer_to_buy(
    program: Program, model: ModelServer, script: str, python: Path
) -> None:
    installed(python)
    environment = {
        "TOOLSERVER_URL": program.url,
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_API_KEY": "none",
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "none",
    }
    done = ran(python, AGENTS / script, "What does a bitcoin cost?", **environment)

    assert done.returncode == 0, done.stderr
    price, refusal = done.stdout.split()
    assert float(price) > 1000
    assert refusal == MissingToken.code


def test_the_models_of_the_agents_are_current() -> None:
    # Imported here: to import them takes longer than to collect a thousand tests, and every run collects this file.
    from anthropic.resources.messages.messages import DEPRECATED_MODELS
    from anthropic.types.model import Model
    from openai.types.shared.chat_model import ChatModel

    models = {name: re.findall(r'model="([^"]+)"', (AGENTS / name).read_text()) for name, _ in SCRIPTS}
    [claude] = models.pop("anthropic_agent.py")
    assert claude not in DEPRECATED_MODELS
    assert claude in {name for part in get_args(Model) for name in get_args(part)}
    assert {name for [name] in models.values()} <= {*get_args(ChatModel)}
