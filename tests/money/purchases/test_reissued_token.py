"""The token of a reissue is the same until it was printed, and then nobody can make it again."""

import stat

import pytest

from toolserver.core.caller import well_formed
from toolserver.money.purchases.reissues import (
    SeedBroken,
    ensure_reissued_token,
    find_reissued_token,
    forget_reissued_token,
)

ID, OTHER = "ri_" + "1" * 32, "ri_" + "2" * 32


def test_it_is_the_same_until_it_is_forgotten(tmp_path):
    assert find_reissued_token(tmp_path, ID) is None
    token = ensure_reissued_token(tmp_path, ID)
    assert well_formed(token)
    assert ensure_reissued_token(tmp_path, ID) == find_reissued_token(tmp_path, ID) == token
    assert ensure_reissued_token(tmp_path, OTHER) != token
    for _ in range(2):
        forget_reissued_token(tmp_path, ID)
    assert find_reissued_token(tmp_path, ID) is None
    assert ensure_reissued_token(tmp_path, ID) != token


def test_the_file_is_the_owners_alone_and_does_not_hold_the_token(tmp_path):
    token = ensure_reissued_token(tmp_path, ID)
    (file,) = (tmp_path / "keys").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token.removeprefix("svc_live_") not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["", "{}", '{"seed": "00"}', '{"seed": 1}', "[]"])
def test_a_broken_file_gives_no_token(tmp_path, text):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / f"reissue-{ID}.json").write_text(text, encoding="utf-8")
    with pytest.raises(SeedBroken):
        ensure_reissued_token(tmp_path, ID)


@pytest.mark.parametrize("id", ["../x", "ri_../../x", ""])
def test_what_names_no_reissue_names_no_file(tmp_path, id):
    with pytest.raises(ValueError, match="is not the id of a reissue"):
        find_reissued_token(tmp_path, id)
