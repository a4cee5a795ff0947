"""One catalogue document is enough: every tool is run from it, by a program that knows nothing else of the service.

What a model would say is chosen from the schema of each argument, or is a word that came in an answer before.
"""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.live.inbox import Inbox
from tests.live.processes import UNLIMITED, Program, control, started
from toolserver.registry.site_facts import TOOL_FORMATS

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

FORMATS = [name for name in TOOL_FORMATS if name != "both"]
HERE = {"ip": "8.8.8.8", "area": "CA"}  # what the user of the model asked for


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **UNLIMITED) as program:
        yield program


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    yield inbox
    inbox.close()


def read_schemas(document: dict[str, Any], form: str) -> dict[str, dict[str, Any]]:
    """The schema of the arguments of every tool by its name, as the layout of a provider carries it."""
    found = {}
    for tool in document[form.replace("-", "_")]:
        if form == "bedrock":
            named, schema = tool["toolSpec"], tool["toolSpec"]["inputSchema"]["json"]
        elif form == "openai":
            named, schema = tool["function"], tool["function"]["parameters"]
        else:
            named = tool
            keys = ("parameters", "input_schema", "parametersJsonSchema")
            schema = next((tool[key] for key in keys if key in tool), {"properties": {}})
        found[named["name"]] = schema
    return found


class Stranger:
    """Calls tools by their routes. `words` are the texts of earlier answers, the latest first."""

    def __init__(self, document: dict[str, Any], token: str, words: list[str], known: dict[str, Any]) -> None:
        self.document, self.token, self.words, self.known = document, token, words, known
        self.http = httpx.Client(timeout=60, trust_env=False)

    def call(self, name: str, arguments: dict[str, Any]) -> httpx.Response:
        """As `calling` of the document says it, word by word."""
        route = self.document["routes"][name]
        path, query, body = route["path"], {}, {}
        for argument, value in arguments.items():
            place = route["arguments"][argument]
            if place == "path":
                path = path.replace("{" + argument + "}", value)
            elif place == "query":
                query[argument] = ",".join(map(str, value)) if isinstance(value, list) else value
            else:
                body[argument] = value
        headers = {"Authorization": f"Bearer {self.token}"} if route["auth"] == "bearer" else {}
        more: dict[str, Any] = {"json": body} if body else {}
        url = self.document["base_url"] + path
        answer = self.http.request(route["method"], url, params=query, headers=headers, **more)
        self.words[:0] = [answer.headers.get("x-service-receipt", ""), *texts_in(answer.json())]
        return answer

    def arguments(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The required arguments, and those of the others for which the schema says a word."""
        required = schema.get("required", [])
        said = [name for name, field in schema["properties"].items() if field.get("enum") and "default" in field]
        names = dict.fromkeys([*required, *said])
        return {name: self._value(name, schema["properties"][name]) for name in names}

    def _value(self, name: str, schema: dict[str, Any]) -> Any:
        schema = next(iter(schema.get("anyOf", [schema])))
        pattern = schema.get("pattern")
        said = [word for word in ("text", *self.words) if pattern and re.search(pattern, word)]
        if name in self.known or said:
            return self.known[name] if name in self.known else said[0]
        if words := schema.get("enum") or schema.get("examples"):
            return words[0]
        kinds = {"integer": max(schema.get("minimum", 2), 2), "number": max(schema.get("minimum", 2), 2)}
        return kinds.get(schema["type"], "text" if schema["type"] == "string" else {})


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for inner in value.values() for text in texts_in(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in texts_in(inner))


@pytest.mark.parametrize("form", FORMATS)
def test_every_tool_runs_from_the_document_alone(program: Program, inbox: Inbox, form: str) -> None:
    document = httpx.get(f"{program.url}/api/llm-tools?format={form}", timeout=30, trust_env=False).json()
    schemas = read_schemas(document, form)
    known = HERE | {"webhook_url": inbox.url, "endpoint": "world-deltas"}
    stranger = Stranger(document, program.ready["token"], [], known)
    routes = document["routes"]
    assert routes.keys() == schemas.keys()
    methods = ("GET", "POST", "PATCH", "DELETE")
    in_order = sorted(routes, key=lambda name: ("{" in routes[name]["path"], methods.index(routes[name]["method"])))

    statuses = {}
    with control(program.ready["world_url"]) as sim:
        for name in in_order:
            if name == "payment_confirm":  # the buyer pays; the stranger is given the hash
                quote = stranger.call("payment_buy_credits", {"amount_usd": 2}).json()
                sim.put("clock", {"speed": 30})
                stranger.known["tx_hash"] = sim.paid(quote["wallet"], 2)
                stranger.known["nonce"] = quote["memo"]
            statuses[name] = stranger.call(name, stranger.arguments(schemas[name])).status_code
        sim.put("clock", {"speed": 1})
    stranger.http.close()

    assert len(statuses) == document["count"] > 55
    assert {name: status for name, status in statuses.items() if not 200 <= status < 300} == {}


def test_a_choice_holds_the_chosen_tools_and_their_routes_alone(program: Program) -> None:
    def ask(query: str) -> httpx.Response:
        return httpx.get(f"{program.url}/api/llm-tools?{query}", timeout=30, trust_env=False)

    few, core = ask("format=openai&tools=weather,gas").json(), ask("toolset=core").json()
    assert list(few["routes"]) == [tool["function"]["name"] for tool in few["openai"]] == ["gas", "weather"]
    assert core["count"] == len(core["anthropic"]) == len(core["routes"]) == 21
    refused = ask("layout=openai")
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_arguments")
    assert refused.json()["valid_arguments"] == ["format", "tier", "toolset", "tools"]
