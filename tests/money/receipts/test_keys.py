"""Keys: made once, private, published before they are used, and never forgotten."""

import json
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.calls.parts import START
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.money.receipts.keys import (
    LOG_KEYS,
    LOOK_S,
    PUBLISH_AHEAD_S,
    RECEIPT_KEYS,
    Key,
    KeyFileBroken,
    KeyRing,
    NoSuchKey,
    b64,
    ensure_keys,
    find_key_file,
    join_keys,
    make_key,
    parse_keys,
    read_keys,
    revoke_key,
    rotate_keys,
    thumbprint,
    unb64,
    write,
)

NOW = START.timestamp()


def test_the_first_start_makes_a_key_that_only_its_owner_can_read(tmp_path):
    path = tmp_path / "keys" / "receipts.json"
    (key,) = ensure_keys(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert ensure_keys(path) == (key,) == read_keys(path)
    assert key.signs(0)
    assert key.signs(NOW)
    assert [p.name for p in path.parent.iterdir()] == ["receipts.json"]


def test_processes_that_start_together_agree_on_one_key(tmp_path):
    path, found = tmp_path / "keys.json", []
    threads = [threading.Thread(target=lambda: found.append(ensure_keys(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"keys": []}',
        '{"keys": 1}',
        '{"keys": [{"crv": "Ed25519", "x": "AA"}]}',
        json.dumps({"keys": [{"crv": "Ed25519", "x": b64(bytes(32)), "exp": "soon"}]}),
    ],
)
def test_a_file_that_holds_no_key_stops_the_service_instead_of_leaving_receipts_out(tmp_path, text):
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(KeyFileBroken):
        KeyRing(path, ManualClock(START))


@proves("receipt.private-halves")
def test_published_keys_have_no_private_half(tmp_path):
    ring = KeyRing(tmp_path / "keys.json", ManualClock(START))
    (jwk,) = ring.published()
    assert set(jwk) == {"kty", "crv", "x", "kid", "use", "nbf"}, "signatures go by two names of the algorithm"
    assert (jwk["kty"], jwk["crv"], jwk["use"]) == ("OKP", "Ed25519", "sig")
    secret = json.loads((tmp_path / "keys.json").read_text())["keys"][0]["d"]
    assert secret not in json.dumps(ring.published())
    assert unb64(secret) == ring.current().seed


@proves("receipt.keys")
def test_a_new_key_is_published_a_day_before_it_signs_and_the_old_one_for_ever(tmp_path):
    clock, path = ManualClock(START), tmp_path / "keys.json"
    ring = KeyRing(path, clock)
    old = ring.current()
    write(path, rotate_keys(read_keys(path), clock.time()))
    clock.advance(LOOK_S)
    assert ring.current().kid == old.kid
    assert ring.published()[0]["kid"] == old.kid
    assert len(ring.published()) == 2

    clock.advance(PUBLISH_AHEAD_S)
    new = ring.current()
    assert new.kid != old.kid
    assert [jwk["kid"] for jwk in ring.published()] == [new.kid, old.kid]
    retired = ring.find(old.kid)
    assert (retired.exp, retired.covers(NOW), retired.covers(NOW + PUBLISH_AHEAD_S)) == (new.nbf, True, False)


@proves("receipt.private-halves")
def test_the_private_half_of_a_retired_key_is_deleted_at_the_next_rotation():
    first = rotate_keys([make_key()], NOW)
    second = rotate_keys(first, NOW + PUBLISH_AHEAD_S + 1)
    assert [key.seed is None for key in first] == [False, False]
    assert [key.seed is None for key in second] == [True, False, False]
    assert [key.signs(NOW + 3 * PUBLISH_AHEAD_S) for key in second] == [False, False, True]


def test_exactly_one_key_signs_at_any_time_whatever_was_rotated():
    keys = (make_key(),)
    for week in range(5):
        keys = rotate_keys(keys, NOW + week * 7 * 86400)
    for hour in range(0, 5 * 7 * 24, 5):
        at = NOW + hour * 3600
        assert sum(key.nbf <= at and (key.exp is None or at < key.exp) for key in keys) == 1


def test_a_rotation_waits_for_the_one_before_unless_it_is_urgent():
    waiting = rotate_keys([make_key()], NOW)
    with pytest.raises(NoSuchKey, match="takes over soon"):
        rotate_keys(waiting, NOW + 60)
    urgent = rotate_keys(waiting, NOW + 60, after_s=0)
    assert waiting[1].kid not in [key.kid for key in urgent]
    assert [key.signs(NOW + 61) for key in urgent] == [False, True]


def test_a_revoked_key_signs_no_more_and_another_one_takes_over(tmp_path):
    clock, path = ManualClock(START), tmp_path / "keys.json"
    ring = KeyRing(path, clock)
    old = ring.current()
    write(path, revoke_key(read_keys(path), old.kid, clock.time()))
    clock.advance(LOOK_S)
    assert ring.current().kid != old.kid
    assert ring.find(old.kid).revoked_at == int(NOW)
    assert {"revoked_at": int(NOW)}.items() <= ring.published()[1].items()
    assert json.loads(path.read_text())["keys"][0].get("d") is None


def test_revoking_one_that_is_not_in_use_makes_no_new_one():
    keys = rotate_keys([make_key()], NOW)
    assert len(revoke_key(keys, keys[1].kid, NOW)) == 2
    with pytest.raises(NoSuchKey):
        revoke_key(keys, "nonsense", NOW)


def test_a_running_service_keeps_its_keys_when_the_file_breaks(tmp_path, caplog):
    clock, path = ManualClock(START), tmp_path / "keys.json"
    ring = KeyRing(path, clock)
    known = ring.current()
    for content in (b"{", None):
        path.write_bytes(content) if content else path.unlink()
        clock.advance(LOOK_S)
        assert ring.current() == known
    assert "the key file cannot be read" in caplog.text


def test_no_key_is_used_outside_its_time(tmp_path):
    clock, path = ManualClock(START), tmp_path / "keys.json"
    write(path, [replace(make_key(), exp=int(NOW))])
    with pytest.raises(NoSuchKey):
        KeyRing(path, clock).current()


def test_a_key_set_of_others_may_hold_what_we_do_not_use():
    own = make_key().jwk()
    others = [{"kty": "RSA", "n": "x", "e": "AQAB"}, {"kty": "OKP", "crv": "X25519", "x": "x"}, 3, None]
    (key,) = parse_keys({"keys": [*others, own]})
    assert key.kid == own["kid"]
    assert parse_keys(own) == (key,)
    (unnamed,) = parse_keys({name: value for name, value in own.items() if name != "kid"})
    assert unnamed.kid == key.kid


@pytest.mark.parametrize("text", ["A", "AB=", "AB==", "A+", "A/", "AB\n", " AB", "AC", "ü"])
def test_base64url_is_read_strictly(text):
    with pytest.raises(ValueError, match="not base64url"):
        unb64(text)


def test_a_ring_shows_the_keys_of_others_and_signs_with_its_own(tmp_path):
    ring, other = KeyRing(tmp_path / "keys.json", ManualClock(START)), make_key()
    mine = ring.current()

    ring.learn((replace(mine, seed=None), replace(other, seed=None)))

    assert ring.current() == mine
    assert ring.find(other.kid) == replace(other, seed=None)
    assert [jwk["kid"] for jwk in ring.published()] == [mine.kid, other.kid]
    assert [key.kid for key in ring.own] == [mine.kid]


def test_what_another_one_revoked_signs_no_more_also_after_the_file_was_read_again(tmp_path):
    clock = ManualClock(START)
    ring = KeyRing(tmp_path / "keys.json", clock)
    revoked = replace(ring.current(), seed=None, revoked_at=int(NOW))

    ring.learn((revoked,))
    write(tmp_path / "keys.json", [*ring.own, make_key(int(NOW) + 100)])
    clock.advance(LOOK_S)

    assert len(ring.own) == 2
    with pytest.raises(NoSuchKey):
        ring.current()


def test_key_files_are_below_the_data_directory_or_in_the_folder_of_a_mounted_secret():
    assert (RECEIPT_KEYS, LOG_KEYS) == ("keys/receipts.json", "keys/log.json")
    assert find_key_file(Path("/data"), LOG_KEYS) == Path("/data/keys/log.json")
    assert find_key_file(Path("/data"), LOG_KEYS, Path("/run/secrets")) == Path("/run/secrets/log.json")


def test_a_key_is_named_by_its_thumbprint_as_rfc_8037_has_it():
    public = unb64("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
    assert thumbprint(public) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_a_signature_is_good_for_its_message_and_key_only():
    key, other = make_key(), make_key()
    signature = key.sign(b"message")
    assert (len(signature), key.verifies(signature, b"message")) == (64, True)
    assert replace(key, seed=None).verifies(signature, b"message")
    assert not key.verifies(signature, b"massage")
    assert not other.verifies(signature, b"message")
    assert not key.verifies(signature[:-1], b"message")
    with pytest.raises(NoSuchKey, match=f"private half of {key.kid}"):
        replace(key, seed=None).sign(b"message")


@pytest.mark.parametrize(("at", "able"), [(99, False), (100, True), (199, True), (200, False)])
def test_a_key_signs_from_its_beginning_until_its_end(at, able):
    key = replace(make_key(100), exp=200)
    assert (key.signs(at), key.covers(at)) == (able, able)
    assert replace(key, exp=None).covers(at) == (at >= 100)
    assert not replace(key, seed=None).signs(at)
    assert not replace(key, revoked_at=300).signs(at)
    assert replace(key, revoked_at=50).covers(at) == able


def test_a_key_is_read_back_as_it_was_written():
    key = replace(make_key(100), exp=200, revoked_at=150)
    assert parse_keys(key.jwk(private=True)) == (key,)
    assert parse_keys(key.jwk()) == (replace(key, seed=None),)
    assert key.jwk() == {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": b64(key.public),
        "kid": thumbprint(key.public),
        "use": "sig",
        "nbf": 100,
        "exp": 200,
        "revoked_at": 150,
    }
    assert parse_keys({**key.jwk(), "kid": ""})[0].kid == key.kid
    with pytest.raises(ValueError, match="whole number"):
        parse_keys({**key.jwk(), "nbf": True})
    with pytest.raises(ValueError, match="32 bytes"):
        parse_keys({**key.jwk(), "x": b64(bytes(33))})


def test_a_running_service_looks_at_its_key_file_every_ten_seconds(tmp_path):
    clock, path = ManualClock(START), tmp_path / "keys.json"
    ring = KeyRing(path, clock)
    for count in (2, 3):
        write(path, [*read_keys(path), make_key()])
        clock.advance(LOOK_S - 0.5)
        assert (len(ring.keys), len(ring.own)) == (count - 1, count - 1)
        clock.advance(0.5)
        assert (len(ring.keys), len(ring.own)) == (count, count)
    assert (LOOK_S, PUBLISH_AHEAD_S) == (10.0, 86_400)


def test_a_rotation_ends_the_key_in_use_when_the_new_one_begins_and_never_later_than_it_would():
    first, second = rotate_keys([make_key()], NOW, after_s=60)
    assert (first.exp, second.nbf, second.exp) == (int(NOW) + 60, int(NOW) + 60, None)
    early = replace(make_key(), exp=int(NOW) + 5)
    assert rotate_keys([early], NOW, after_s=60)[0] == early
    over, revoked = replace(early, exp=int(NOW)), replace(early, revoked_at=1)
    assert [key.seed for key in rotate_keys([over, revoked], NOW)[:2]] == [None, None]
    waiting = replace(make_key(int(NOW) + 9), revoked_at=int(NOW))
    assert len(rotate_keys([make_key(), waiting], NOW)) == 3  # a revoked key waits for nothing


def test_a_revocation_takes_the_private_half_and_leaves_the_other_keys_alone():
    keys = (make_key(), make_key())
    left = revoke_key(keys, keys[0].kid, NOW + 0.9)
    assert left == (replace(keys[0], seed=None, revoked_at=int(NOW)), keys[1])
    *both, new = revoke_key(left, keys[1].kid, NOW)
    assert [key.revoked_at for key in both] == [int(NOW)] * 2
    assert (new.nbf, new.signs(NOW)) == (int(NOW), True)


def test_keys_that_are_joined_end_at_their_first_end_and_keep_their_private_half():
    key, other = make_key(), make_key()
    early, late = replace(key, seed=None, exp=100, revoked_at=90), replace(key, exp=200, revoked_at=80)
    expected = Key(key.kid, key.public, key.seed, 0, 100, 80)
    assert join_keys([early, other, late]) == (expected, other)
    assert join_keys([late, other, early]) == (expected, other)
    assert join_keys([key, replace(key, seed=None)]) == (key,)


def test_the_newest_key_that_may_sign_does_and_leads_what_is_published(tmp_path):
    old, new, coming = make_key(), make_key(int(NOW)), make_key(int(NOW) + 1)
    write(tmp_path / "keys.json", [old, coming, new])
    ring = KeyRing(tmp_path / "keys.json", ManualClock(START))
    assert ring.current() == new
    assert [jwk["kid"] for jwk in ring.published()] == [new.kid, coming.kid, old.kid]
    assert (ring.find(coming.kid), ring.find("nonsense")) == (coming, None)
