"""The description of keys, receipts and log: what it asks for is what the handlers take."""

import re

from rest_bridge.openapi.receipts import LOG, RECEIPT_ID, describe_receipt_paths, describe_stored_verdict
from toolserver.money.receipts.log import show_hour
from toolserver.money.receipts.merkle import tile_at
from toolserver.money.receipts.service import LOG_PATH

DESCRIBED = describe_receipt_paths()


def test_keys_proofs_and_tiles_are_open_and_a_receipt_asks_for_its_token():
    asking = {path for path, item in DESCRIBED.items() if item["get"]["security"]}
    assert asking == {"/api/receipt/{id}"}
    assert {"400", "402", "404", "429"} <= DESCRIBED["/api/receipt/{id}"]["get"]["responses"].keys()
    assert all(set(item) == {"get", "head"} for item in DESCRIBED.values())


def test_the_log_is_described_where_it_stands_and_its_parameters_name_a_tile():
    assert LOG == LOG_PATH
    level, index = DESCRIBED[f"{LOG}/tile/{{level}}/{{index}}"]["get"]["parameters"]
    for name, part in (("0", "000"), ("entries", "012")):
        assert re.match(level["schema"]["pattern"], name)
        assert re.match(index["schema"]["pattern"], part)
        assert tile_at(f"{name}/{part}") is not None


def test_a_stored_receipt_is_verified_by_its_id():
    (given,) = describe_stored_verdict()["get"]["parameters"]
    assert (given["name"], given["in"], given["schema"]["pattern"]) == ("id", "query", RECEIPT_ID)
    assert re.match(RECEIPT_ID, "rcpt_" + "0" * 32)


def test_a_bucket_is_asked_for_by_what_a_receipt_says_and_counts_with_receipts():
    asked = DESCRIBED[f"{LOG}/bucket"]["get"]
    hour, key, receipt = asked["parameters"]
    assert (hour["required"], key["required"], receipt["required"]) == (True, True, False)
    assert re.match(hour["schema"]["pattern"], show_hour(500_000))
    assert re.match(key["schema"]["pattern"], "0" * 64)
    assert {"400", "404", "429"} <= asked["responses"].keys()


def test_the_numbers_of_a_proof_are_whole_and_have_sixteen_digits_at_most():
    for proof, names in (("inclusion", ["index", "size"]), ("consistency", ["first", "second"])):
        assert DESCRIBED[f"{LOG}/{proof}"]["get"]["parameters"] == [
            {
                "name": name,
                "in": "query",
                "required": True,
                "schema": {"type": "integer", "minimum": 0, "maximum": 9_999_999_999_999_999},
            }
            for name in names
        ]


def test_each_path_names_every_status_that_it_can_answer():
    statuses = {path.removeprefix("/api/"): " ".join(item["get"]["responses"]) for path, item in DESCRIBED.items()}
    log = LOG.removeprefix("/api/")
    assert statuses == {
        "/.well-known/service-receipt-keys.json": "200 500",
        "/.well-known/service-receipt-key.json": "200 500",
        "receipt/{id}": "200 400 402 404 410 429 500",
        f"{log}/checkpoint": "200 500",
        f"{log}/inclusion": "200 400 404 500",
        f"{log}/consistency": "200 400 404 500",
        f"{log}/bucket": "200 400 404 429 500",
        f"{log}/tile/{{level}}/{{index}}": "200 400 404 500",
    }
    assert " ".join(describe_stored_verdict()["get"]["responses"]) == "200 400 404 410 429 500"


def test_arguments_stand_where_they_are_taken_from_and_must_be_given():
    assert describe_stored_verdict()["get"]["parameters"][0]["required"] is True
    (given,) = DESCRIBED["/api/receipt/{id}"]["get"]["parameters"]
    assert (given["in"], given["required"], given["schema"]["pattern"]) == ("path", True, RECEIPT_ID)
    for each in DESCRIBED[f"{LOG}/tile/{{level}}/{{index}}"]["get"]["parameters"]:
        assert (each["in"], each["required"]) == ("path", True)
    assert {each["in"] for each in DESCRIBED[f"{LOG}/bucket"]["get"]["parameters"]} == {"query"}
    assert "parameters" not in DESCRIBED[f"{LOG}/checkpoint"]["get"]


def test_what_comes_back_has_its_media_type_and_its_required_members():
    found = {path: item["get"]["responses"]["200"]["content"] for path, item in DESCRIBED.items()}
    assert list(found[f"{LOG}/checkpoint"]) == ["text/plain"]
    assert list(found[f"{LOG}/tile/{{level}}/{{index}}"]) == ["application/octet-stream"]
    assert found[f"{LOG}/bucket"]["application/json"]["schema"]["required"] == ["path"]
    keys = found["/.well-known/service-receipt-keys.json"]["application/json"]["schema"]
    assert (keys["required"], keys["properties"]["keys"]["items"]["required"]) == (["keys"], ["kty", "crv", "kid"])
    verdict = describe_stored_verdict()["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert verdict["required"] == ["valid", "checks"]
    assert list(DESCRIBED[f"{LOG}/bucket"]["get"]["responses"]["200"]["headers"]) == ["Cache-Control", "X-Request-Id"]
