"""The file of tokens: private, shared by programs, and never a place where a token gets lost."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolserver.mcp.credentials import FILE, CredentialsDamaged, CredentialsFile

HERE, THERE = "https://data.example", "https://other.example"
FIRST, SECOND, THIRD = (f"svc_live_{digit * 64}" for digit in "123")


@pytest.fixture
def file(tmp_path):
    return CredentialsFile(tmp_path / "toolserver" / FILE)


def test_without_a_file_there_are_no_tokens_and_none_is_made(file):
    assert file.read_tokens(HERE) == []
    assert not file.path.parent.exists()


def test_tokens_are_kept_per_service_in_a_file_of_the_owner_alone(file):
    file.add(HERE, FIRST)
    file.add(THERE, SECOND)
    assert (file.read_tokens(HERE), file.read_tokens(THERE)) == ([FIRST], [SECOND])
    assert CredentialsFile(file.path).read_tokens(HERE) == [FIRST]
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_token_comes_behind_those_that_are_there_and_once(file):
    for token in (FIRST, SECOND, FIRST):
        file.add(HERE, token)
    assert file.read_tokens(HERE) == [FIRST, SECOND]


def test_a_token_that_is_set_behind_is_the_last(file):
    for token in (FIRST, SECOND, THIRD):
        file.add(HERE, token)
    file.set_behind(HERE, FIRST)
    assert file.read_tokens(HERE) == [SECOND, THIRD, FIRST]
    file.set_behind(HERE, "svc_live_" + "9" * 64)
    assert file.read_tokens(HERE) == [SECOND, THIRD, FIRST]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"https://data.example": "svc_live_x"}', '{"https://data.example": [1]}']
)
def test_a_damaged_file_is_left_as_it_is(file, text):
    file.path.parent.mkdir()
    file.path.write_text(text)
    with pytest.raises(CredentialsDamaged, match="repair it or move it away"):
        file.add(HERE, FIRST)
    with pytest.raises(CredentialsDamaged):
        file.read_tokens(HERE)
    assert file.path.read_text() == text


def test_a_file_that_others_may_read_is_closed_to_them(file):
    file.add(HERE, FIRST)
    file.path.chmod(0o644)
    file.read_tokens(HERE)
    assert file.path.stat().st_mode & 0o777 == 0o600


def test_programs_that_buy_at_once_lose_no_token(file):
    tokens = [f"svc_live_{number:064x}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda token: CredentialsFile(file.path).add(HERE, token), tokens))
    assert sorted(file.read_tokens(HERE)) == tokens


def test_a_write_that_fails_leaves_the_file_and_nothing_beside_it(file, monkeypatch):
    file.add(HERE, FIRST)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        file.add(HERE, SECOND)
    assert json.loads(file.path.read_text()) == {HERE: [FIRST]}
    assert sorted(path.name for path in file.path.parent.iterdir()) == [FILE, f"{FILE}.lock"]
