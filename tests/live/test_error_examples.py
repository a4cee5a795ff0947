"""The example in each refusal is a call that the service carries out."""

import json
from typing import Any

import httpx
import pytest

from tests.live.processes import Program

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

OF_SOMETHING_OWN = "not_found"  # well formed, but no caller has the id or the memo of an example
MASKED = "payment_confirm"  # nothing that looks like a memo leaves in a refusal over MCP, not even an example
OFFERED = "payment_topup"  # by x402: the call is paid when it is repeated with a signed payment
LAST = "reissue_cancel"  # it concerns the token of all other calls


def test_the_example_of_each_refusal_is_a_valid_call(demo: Program) -> None:
    answers: dict[str, str] = {}
    owner = {"authorization": f"Bearer {demo.ready['token']}"}
    with httpx.Client(base_url=demo.url, headers=owner, timeout=60, trust_env=False) as client:

        def rpc(method: str, **params: object) -> dict[str, Any]:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answer = client.post("/api/mcp?toolset=all", json=message).raise_for_status().json()
            assert "result" in answer, (params, answer)
            return answer["result"]

        def call(name: str, arguments: dict[str, object]) -> dict[str, Any] | None:
            result = rpc("tools/call", name=name, arguments=arguments)
            return json.loads(result["content"][0]["text"]) if result.get("isError") else None

        names = [tool["name"] for tool in rpc("tools/list")["tools"]]
        assert len(names) > 50
        for name in sorted(names, key=LAST.__eq__):
            refusal = call(name, {"no_such_argument": 1})
            assert refusal is not None, name
            assert refusal["error"] == "invalid_arguments", name
            example = refusal["example"]
            assert example["name"] == name
            if name == MASKED:
                assert example["arguments"]["nonce"] == f"svc_buy_{'x' * 32}"
                continue
            if outcome := call(name, example["arguments"]):
                answers[name] = str(outcome["error"])

    assert answers.pop(OFFERED) == "payment_required"
    own = {name for name, error in answers.items() if error == OF_SOMETHING_OWN}
    assert {name: error for name, error in answers.items() if name not in own and name != LAST} == {}
    assert all(name.startswith(("allowance_", "webhook_")) for name in own)
    assert answers.get(LAST) != "invalid_arguments"
