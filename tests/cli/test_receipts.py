"""`toolserver keys` and `toolserver receipts`: what they print, and with which status they end."""

import json
import time

import anyio
import pytest
from click.testing import CliRunner

from tests.money.receipts.test_sign import JWS, KEY, OBJECT, SALE, core
from tests.serving.test_receipts import store_receipt
from toolserver.cli.keys import keys
from toolserver.cli.receipts import receipts
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, make_key, read_keys


def run(command, *words, given=None):
    return CliRunner().invoke(command, [str(word) for word in words], input=given)


@pytest.fixture
def keys_file(tmp_path):
    path = tmp_path / "published.json"
    path.write_text(json.dumps({"keys": [make_key().jwk(), KEY.jwk()]}))
    return path


@pytest.mark.parametrize(
    "content",
    [JWS, JWS + "\n", json.dumps(JWS), json.dumps(OBJECT), json.dumps({"receipt": OBJECT, "jws": JWS})],
)
def test_a_receipt_is_verified_offline_in_every_form_it_comes_in(tmp_path, keys_file, content):
    (tmp_path / "receipt").write_text(content)
    done = run(receipts, "verify", tmp_path / "receipt", "--keys", keys_file)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["core"] == core()


def test_a_receipt_may_come_from_standard_input(keys_file):
    assert run(receipts, "verify", "-", "--keys", keys_file, given=JWS).exit_code == 0


@pytest.mark.parametrize("content", [JWS[:-4] + "AAAA", "nonsense", "", "[1]", "{}", '{"receipt": 1}', "[" * 99_999])
def test_a_receipt_that_is_not_valid_ends_with_1_and_says_why(tmp_path, keys_file, content):
    (tmp_path / "receipt").write_text(content)
    done = run(receipts, "verify", tmp_path / "receipt", "--keys", keys_file)
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"]


def test_the_body_is_compared(tmp_path, keys_file):
    (tmp_path / "receipt").write_text(JWS)
    (tmp_path / "body").write_bytes(b"{}")
    (tmp_path / "other").write_bytes(b"{ }")
    same = run(receipts, "verify", tmp_path / "receipt", "--keys", keys_file, "--body", tmp_path / "body")
    other = run(receipts, "verify", tmp_path / "receipt", "--keys", keys_file, "--body", tmp_path / "other")
    assert SALE.body.size == 2
    assert (same.exit_code, other.exit_code) == (0, 1)


@pytest.mark.parametrize("content", ["{", "[]", "3"])
def test_a_file_without_keys_is_named(tmp_path, content):
    (tmp_path / "receipt").write_text(JWS)
    (tmp_path / "keys").write_text(content)
    done = run(receipts, "verify", tmp_path / "receipt", "--keys", tmp_path / "keys")
    assert done.exit_code == 1
    assert "is not a key set" in done.stderr


def test_keys_are_made_once(tmp_path):
    first = run(keys, "new", "--data-dir", tmp_path)
    again = run(keys, "new", "--data-dir", tmp_path)
    assert first.exit_code == again.exit_code == 0
    assert first.stdout == again.stdout
    assert first.stdout.endswith("  in use\n")
    assert read_keys(tmp_path / LOG_KEYS) != read_keys(tmp_path / RECEIPT_KEYS)


@pytest.fixture
def sold(tmp_path):
    """A data directory with a receipt, whose keys are lost."""

    async def sell():
        async with open_ledger(tmp_path / FILE) as ledger:
            await ledger.file.alone(store_receipt)

    anyio.run(sell)
    return tmp_path


@pytest.mark.parametrize("words", [["new"], ["rotate"], ["revoke", "kid"]])
def test_no_command_makes_a_new_key_in_silence_beside_receipts_whose_key_is_lost(sold, words):
    done = run(keys, *words, "--data-dir", sold)
    assert done.exit_code == 1
    assert "receipts.json is lost, but receipts were issued" in done.stderr
    assert not (sold / RECEIPT_KEYS).exists()


def test_a_key_that_replaces_a_lost_one_publishes_that_it_signed_nothing_before(sold):
    before = int(time.time())
    done = run(keys, "new", "--after-loss", "--data-dir", sold)
    assert done.exit_code == 0, done.output
    (key,) = read_keys(sold / RECEIPT_KEYS)
    assert key.jwk()["nbf"] >= before
    assert not key.covers(before - 1)


def test_the_key_of_a_signed_log_is_replaced_only_when_a_person_says_so(tmp_path):
    run(keys, "new", "--data-dir", tmp_path)

    async def sign():
        async with open_ledger(tmp_path / FILE) as ledger:
            note = "INSERT INTO log_checkpoint(one, size, root, note, at) VALUES(1, 0, ?, 'note', 0)"
            await ledger.file.alone(lambda db: db.execute(note, (bytes(32),)))

    anyio.run(sign)
    (tmp_path / LOG_KEYS).unlink()
    done = run(keys, "new", "--data-dir", tmp_path)
    assert (done.exit_code, "log.json is lost" in done.stderr) == (1, True)
    before = read_keys(tmp_path / RECEIPT_KEYS)
    done = run(keys, "new", "--after-loss", "--data-dir", tmp_path)
    assert (done.exit_code, "auditors must store its verifier" in done.stderr) == (0, True)
    assert (tmp_path / LOG_KEYS).exists()
    assert read_keys(tmp_path / RECEIPT_KEYS) == before


def test_a_rotation_is_announced_and_not_begun_twice(tmp_path):
    done = run(keys, "rotate", "--data-dir", tmp_path)
    assert [line.split("  ")[1].split(" 2")[0] for line in done.stdout.splitlines()] == ["in use until", "takes over"]
    twice = run(keys, "rotate", "--data-dir", tmp_path)
    assert (twice.exit_code, "--at-once" in twice.stderr) == (1, True)
    urgent = run(keys, "rotate", "--at-once", "--data-dir", tmp_path)
    assert urgent.exit_code == 0
    assert sum(key.signs(time.time() + 1) for key in read_keys(tmp_path / RECEIPT_KEYS)) == 1


def test_a_revoked_key_is_replaced(tmp_path):
    run(keys, "new", "--data-dir", tmp_path)
    (old,) = read_keys(tmp_path / RECEIPT_KEYS)
    done = run(keys, "revoke", "--data-dir", tmp_path, old.kid)
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{old.kid}  revoked ")
    assert second.endswith("  in use")
    for kid in ("nonsense", "-h7", "--x"):  # a key id may begin with a hyphen
        unknown = run(keys, "revoke", "--data-dir", tmp_path, kid)
        assert (unknown.exit_code, f"there is no key {kid}" in unknown.stderr) == (1, True)


def test_what_is_shown_is_public(tmp_path):
    run(keys, "rotate", "--data-dir", tmp_path)
    shown = json.loads(run(keys, "show", "--json", "--data-dir", tmp_path).stdout)["keys"]
    assert [key["kid"] for key in shown] == [key.kid for key in read_keys(tmp_path / RECEIPT_KEYS)]
    assert not any("d" in key for key in shown)


def test_without_keys_there_is_nothing_to_show(tmp_path):
    done = run(keys, "show", "--data-dir", tmp_path)
    assert done.exit_code == 1
    assert "No such file" in done.stderr


def test_the_keys_of_several_instances_are_made_in_a_folder_to_mount(tmp_path):
    made = run(keys, "make", str(tmp_path / "secret"))

    assert made.exit_code == 0, made.output
    assert made.output.strip().endswith("has log.json, receipts.json, rows.json, visitors.key, webhooks.key")
    before = {path.name: path.read_bytes() for path in (tmp_path / "secret").iterdir()}
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "secret").iterdir())
    assert run(keys, "make", str(tmp_path / "secret")).exit_code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "secret").iterdir()} == before
