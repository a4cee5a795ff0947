import stat

import pytest

from tests.requirements import proves
from toolserver.errors import SubscriptionConflict
from toolserver.webhooks.signing import (
    KEY_FILE,
    MOST_SECRETS,
    OVERLAP_MS,
    SecretsUnreadable,
    SubscriptionSecrets,
    open_key,
    temporary_key,
)

HELD = SubscriptionSecrets("whsec_secret", headers={"X-Key": "hidden"})


@proves("webhook.secrets")
def test_secrets_are_unreadable_without_the_key_and_whole_with_it(tmp_path):
    sealed = open_key(tmp_path).seal(HELD)
    assert b"secret" not in sealed
    assert b"hidden" not in sealed
    assert open_key(tmp_path).unseal(sealed) == HELD
    with pytest.raises(SecretsUnreadable):
        temporary_key().unseal(sealed)


def test_the_key_is_its_owners_alone_and_a_damaged_one_is_refused(tmp_path):
    open_key(tmp_path)
    path = tmp_path / KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(b"short")
    with pytest.raises(SecretsUnreadable):
        open_key(tmp_path)


def test_after_a_rotation_the_old_secret_is_good_for_a_day():
    rotated = HELD.rotate("whsec_new", 1000)
    assert (rotated.secret, rotated.headers) == ("whsec_new", {"X-Key": "hidden"})
    assert rotated.older(1000 + OVERLAP_MS - 1) == ("whsec_secret",)
    assert rotated.older(1000 + OVERLAP_MS) == ()
    assert HELD.older(0) == ()


def test_each_secret_that_was_replaced_is_good_for_a_day_of_its_own():
    rotated = HELD.rotate("whsec_b", 1000).rotate("whsec_c", 2000).rotate("whsec_d", 3000)
    assert rotated.older(3000) == ("whsec_c", "whsec_b", "whsec_secret")
    assert rotated.older(1000 + OVERLAP_MS) == ("whsec_c", "whsec_b")
    assert rotated.rotate("whsec_e", 2000 + OVERLAP_MS).older(2000 + OVERLAP_MS) == ("whsec_d", "whsec_c")


def test_the_previous_secret_that_an_earlier_version_stored_is_good_until_its_end():
    stored = SubscriptionSecrets("whsec_new", previous="whsec_old", previous_until=500)
    assert (stored.older(499), stored.older(500)) == (("whsec_old",), ())
    assert stored.rotate("whsec_newer", 499).older(499) == ("whsec_new", "whsec_old")


def test_no_secret_is_ended_early_by_too_many_others():
    rotated = HELD
    for turn in range(MOST_SECRETS - 1):
        rotated = rotated.rotate(f"whsec_{turn}", turn)
    assert len(rotated.older(MOST_SECRETS)) == MOST_SECRETS - 1
    with pytest.raises(SubscriptionConflict):
        rotated.rotate("whsec_more", MOST_SECRETS)
    assert rotated.rotate("whsec_more", OVERLAP_MS).secret == "whsec_more"


def test_secrets_and_keys_say_nothing_of_themselves():
    assert "secret" not in repr(HELD).replace("SubscriptionSecrets", "")
    assert repr(temporary_key()) == "SecretBoxKey(…)"
