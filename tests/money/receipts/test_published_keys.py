"""An instance starts with a key that the database publishes, whichever of them was rotated first."""

from dataclasses import replace

import pytest

from toolserver.money.receipts.keys import join_keys, make_key, revoke_key, rotate_keys
from toolserver.money.receipts.sql_keys import KeysDiffer, agree_on_keys

NOW = 1_800_000_000


def test_the_first_instance_publishes_what_it_has_without_the_private_half():
    held = rotate_keys([make_key()], NOW)

    published = agree_on_keys(held, (), name="receipts")

    assert [key.kid for key in published] == [key.kid for key in held]
    assert all(key.seed is None for key in published)


def test_an_instance_with_other_keys_is_refused_and_is_told_what_to_mount():
    with pytest.raises(KeysDiffer, match=r"keys for receipts here: give every instance the same keys"):
        agree_on_keys((make_key(),), (make_key(),), name="receipts")


def test_a_rotation_locks_out_neither_who_has_it_nor_who_has_it_not():
    before = (make_key(),)
    after = rotate_keys(before, NOW)
    published = agree_on_keys(before, (), name="receipts")

    published = agree_on_keys(after, published, name="receipts")
    again = agree_on_keys(before, published, name="receipts")

    assert {key.kid for key in again} == {key.kid for key in after}
    assert again[0].exp == NOW + 24 * 3600  # the old file does not say so, and it stays


def test_what_one_revoked_is_revoked_for_all_and_its_successor_is_published():
    key = make_key()
    published = agree_on_keys((key,), (), name="receipts")

    revoked, successor = revoke_key([key], key.kid, NOW)
    published = agree_on_keys((revoked, successor), published, name="receipts")
    again = agree_on_keys((key,), published, name="receipts")  # an instance whose file is the old one

    assert {known.kid: known.revoked_at for known in again} == {key.kid: NOW, successor.kid: None}


def test_keys_are_joined_by_their_earliest_times():
    key = make_key()
    early, late = replace(key, exp=NOW), replace(key, exp=NOW + 5, revoked_at=NOW - 1)

    assert join_keys([late, early]) == join_keys([early, late]) == (replace(key, exp=NOW, revoked_at=NOW - 1),)
