"""A stranger who searches for a word of this field finds a file or a folder of that name."""

import pytest

from tests.architecture.code import FILES, ROOT

WHERE_IS = {
    "the rate limit": "rate_limit",
    "the circuit breaker": "circuit_breaker",
    "receipt signing": "receipts/sign",
    "receipt verification": "receipts/verify",
    "idempotency": "idempotency",
    "the transparency log": "transparency_log",
    "the Merkle tree": "merkle",
    "a deposit address": "deposit",
    "a reorganisation of the chain": "reorg",
    "the facilitator": "facilitator",
    "settlement": "settlement",
    "the sweep of deposits": "sweep",
    "quotes": "quotes",
    "token encryption": "token_encryption",
    "stdio": "stdio",
    "JSON-RPC": "json_rpc",
    "a tool's JSON schema": "json_schema",
    "tool definitions": "definitions",
    "OpenAPI": "openapi",
    "llms.txt": "llms_txt",
    "fallback to another source": "fallback",
    "provenance of data": "provenance",
    "freshness": "freshness",
    "throttling of requests to a host": "throttle",
    "the guard against outliers": "outlier",
    "single flight": "single_flight",
    "the ETag": "etag",
    "readiness": "readiness",
    "migrations": "migrat",
    "group commit": "group_commit",
    "backup": "backup",
    "metrics": "metrics",
    "the caller of a call": "caller",
    "error codes": "error_codes",
    "the simulated world's faults": "world/faults",
    "background tasks": "background_tasks",
}


@pytest.mark.parametrize("term", WHERE_IS)
def test_a_word_of_the_field_names_a_file(term):
    name = WHERE_IS[term]
    paths = ["/".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES.values()]

    assert any(name in path for path in paths), f"no file or folder is named {name}"
