"""Secrets and what they open."""

import re
from dataclasses import FrozenInstanceError

import pytest

from toolserver.core.logging import hidden
from toolserver.mcp.oauth.records import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    GrantSecret,
    hash_secret,
    make_secret,
    new_secret,
    seal_under,
    unseal_with,
)

CHILD = f"svc_live_{'ab' * 32}"


def test_only_the_secret_opens_what_was_sealed_under_it():
    sealed = seal_under("one", CHILD)
    assert unseal_with("one", sealed) == CHILD
    assert unseal_with("two", sealed) is None
    assert CHILD.encode() not in sealed


def test_a_secret_of_a_grant_opens_the_allowance():
    secret, stored = make_secret("refresh", "grant_1", CHILD, 5)
    assert unseal_with(secret, stored.sealed) == CHILD
    assert stored == GrantSecret(hash_secret(secret), "grant_1", "refresh", stored.sealed, 5, used_at=None)
    assert secret.encode() not in stored.sealed
    assert CHILD.encode() not in stored.sealed


def test_a_stored_secret_does_not_change_by_itself():
    _, stored = make_secret("code", "grant_1", CHILD, 5)
    with pytest.raises(FrozenInstanceError):
        stored.used_at = 3


def test_times_are_milliseconds():
    assert (MINUTE_MS, HOUR_MS, DAY_MS) == (60 * 1000, 60 * 60 * 1000, 24 * 60 * 60 * 1000)


def test_a_secret_names_its_kind_and_has_256_bits():
    assert re.fullmatch("svc_access_[0-9a-f]{64}", new_secret("access"))
    assert hash_secret("a") == bytes.fromhex("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")


def test_secrets_differ_and_are_hidden_in_logs():
    kinds = ("code", "access", "refresh")
    made = {new_secret(kind) for kind in kinds for _ in range(3)}
    assert len(made) == 9
    assert all(hidden(f"got {secret} here") == "got [hidden] here" for secret in made)


def test_any_text_has_a_hash_also_one_that_is_no_unicode():
    assert hash_secret("\udcff") == hash_secret("?")
    assert unseal_with("\udcff", seal_under("\udcff", CHILD)) == CHILD
