"""One catalogue document is enough: every tool is run from it, by a program that knows nothing else of the service.

What a model would say is chosen from the schema of each argument, or is a word that came in an answer before.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.live.inbox import Inbox
from tests.live.model import Model, order_of_calls
from tests.live.processes import UNLIMITED, Program, control, started
from tests.requirements import proves
from toolserver.registry.site_facts import TOOL_FORMATS

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

FORMATS = [name for name in TOOL_FORMATS if name not in ("both", "routes")]


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
    """Calls tools by their routes."""

    def __init__(self, document: dict[str, Any], token: str, model: Model) -> None:
        self.document, self.token, self.model = document, token, model
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
        with_token = route["auth"] == "bearer" or name == "payment_topup"  # which takes one, as its description says
        headers = {"Authorization": f"Bearer {self.token}"} if with_token else {}
        more: dict[str, Any] = {"json": body} if body else {}
        url = self.document["base_url"] + path
        answer = self.http.request(route["method"], url, params=query, headers=headers, **more)
        self.model.hear(answer.headers.get("x-service-receipt", ""), answer.json())
        return answer


@proves("definitions.routes")
@pytest.mark.parametrize("form", FORMATS)
def test_every_tool_runs_from_the_document_alone(program: Program, inbox: Inbox, form: str) -> None:
    document = httpx.get(f"{program.url}/api/llm-tools?format={form}", timeout=30, trust_env=False).json()
    schemas = read_schemas(document, form)
    model = Model({"webhook_url": inbox.url, "endpoint": "world-deltas"})
    stranger = Stranger(document, program.ready["token"], model)
    routes = document["routes"]
    assert routes.keys() == schemas.keys()
    in_order = sorted(routes, key=lambda name: order_of_calls(routes[name]["method"], routes[name]["path"]))

    statuses = {}
    with control(program.ready["world_url"]) as sim:
        for name in in_order:
            if name == "payment_confirm":  # the buyer pays; the stranger is given the hash
                quote = stranger.call("payment_buy_credits", {"amount_usd": 2}).json()
                sim.put("clock", {"speed": 30})
                model.known |= {"tx_hash": sim.paid(quote["wallet"], 2), "nonce": quote["memo"]}
            arguments = model.choose_arguments(schemas[name])
            if name == "payment_topup":  # an amount, or a transfer's hash and memo: none of them is always required
                arguments = {"amount_usd": 2}
            if name == "webhook_resend":  # only a delivery that was accepted
                arguments["delivery_id"] = stranger.call("webhook_test", {"id": arguments["id"]}).json()["id"]
            statuses[name] = stranger.call(name, arguments).status_code
        sim.put("clock", {"speed": 1})
    stranger.http.close()

    assert len(statuses) == document["count"] > 55
    assert statuses.pop("payment_topup") == 402, "an offer by x402: paid by the same call with a signed payment"
    assert {name: status for name, status in statuses.items() if not 200 <= status < 300} == {}


def test_a_choice_holds_the_chosen_tools_and_their_routes_alone(program: Program) -> None:
    def ask(query: str) -> httpx.Response:
        return httpx.get(f"{program.url}/api/llm-tools?{query}", timeout=30, trust_env=False)

    few, core = ask("format=openai&tools=weather,gas").json(), ask("toolset=core").json()
    assert list(few["routes"]) == [tool["function"]["name"] for tool in few["openai"]] == ["weather", "gas"]
    assert core["count"] == len(core["anthropic"]) == len(core["routes"]) == 21
    refused = ask("layout=openai")
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_arguments")
    assert refused.json()["valid_arguments"] == ["format", "tier", "toolset", "tools"]
