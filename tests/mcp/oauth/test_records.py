"""Secrets and what they open."""

from toolserver.core.logging import hidden
from toolserver.mcp.oauth.records import hash_secret, make_secret, new_secret, seal_under, unseal_with

CHILD = f"svc_live_{'ab' * 32}"


def test_only_the_secret_opens_what_was_sealed_under_it():
    sealed = seal_under("one", CHILD)
    assert unseal_with("one", sealed) == CHILD
    assert unseal_with("two", sealed) is None
    assert CHILD.encode() not in sealed


def test_a_secret_of_a_grant_opens_the_allowance():
    secret, stored = make_secret("refresh", "grant_1", CHILD, 5)
    assert unseal_with(secret, stored.sealed) == CHILD
    assert (stored.hash, stored.grant, stored.kind, stored.expires_at) == (hash_secret(secret), "grant_1", "refresh", 5)


def test_secrets_differ_and_are_hidden_in_logs():
    kinds = ("code", "access", "refresh")
    made = {new_secret(kind) for kind in kinds for _ in range(3)}
    assert len(made) == 9
    assert all(hidden(f"got {secret} here") == "got [hidden] here" for secret in made)


def test_any_text_has_a_hash_also_one_that_is_no_unicode():
    assert len(hash_secret("\udcff")) == 32
