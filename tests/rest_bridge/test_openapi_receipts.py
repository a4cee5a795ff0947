"""The description of keys, receipts and log: what it asks for is what the handlers take."""

import re

from rest_bridge.openapi_receipts import LOG, RECEIPT_ID, describe_receipt_paths, describe_stored_verdict
from toolserver.receipts.log_buckets import show_hour
from toolserver.receipts.merkle import tile_at
from toolserver.receipts.service import LOG_PATH

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
