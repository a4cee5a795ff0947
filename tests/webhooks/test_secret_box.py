import stat

import pytest

from tests.requirements import proves
from toolserver.webhooks.signing import (
    KEY_FILE,
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
    assert rotated.older(1000 + OVERLAP_MS - 1) == "whsec_secret"
    assert rotated.older(1000 + OVERLAP_MS) is None
    assert HELD.older(0) is None


def test_secrets_and_keys_say_nothing_of_themselves():
    assert "secret" not in repr(HELD).replace("SubscriptionSecrets", "")
    assert repr(temporary_key()) == "SecretBoxKey(…)"
