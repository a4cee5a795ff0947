"""Test that tests and their programs see no key, setting or home of the person who runs them."""

import os
import re
from pathlib import Path

from tests.surroundings import KEPT, SEEN, clean_surroundings, name_keys_in_sight
from toolserver.settings import KEYS

TESTS = Path(__file__).resolve().parent
READ = re.compile(r"environ(?:\.get\(|\[)\"(\w+)\"")
OWN = {"HOME", "BACKEND", "BROKEN", "BROWSER", "NEVER_LOADS", "REFUSED", "LATER_S", "PATIENCE_S", "PAYLOAD", "REPLY"}
OWN |= {
    "ASKED_OF_PROXY",
    "CLOCK_OFF_S",
    "MARKS",
    "OWN_CLOCK",
    "SSL_CERT_FILE",
    "TOKEN",
    "CREDITS",
    "TOOLSERVER_TOKEN",
    "TOOLSERVER_DATABASE_URL",
    "XDG_DATA_HOME",
}


def test_keys_settings_and_home_stay_out():
    mine = dict.fromkeys(KEYS, "secret") | {"AWS_SECRET_ACCESS_KEY": "x", "OPENAI_API_KEY": "x", "HOME": "mine"}
    mine |= {"TOOLSERVER_DATABASE_URL": "x", "XDG_CONFIG_HOME": "mine/.config", "GITHUB_TOKEN": "x", "PATH": "/bin"}

    assert clean_surroundings("/tmp/own", mine) == {
        "PATH": "/bin",
        "HOME": "/tmp/own",
        "USERPROFILE": "/tmp/own",
        "XDG_DATA_HOME": "/tmp/own",
        "XDG_CONFIG_HOME": "/tmp/own/.config",
    }


def test_keys_of_model_providers_are_named_and_their_values_are_not():
    mine = {"OPENAI_API_KEY": "secret", "GEMINI_API_KEY": "", "GOOGLE_APPLICATION_CREDENTIALS": "f", "PATH": "/bin"}

    assert name_keys_in_sight(mine) == "GOOGLE_APPLICATION_CREDENTIALS OPENAI_API_KEY"
    assert name_keys_in_sight({SEEN: "OPENAI_API_KEY"}) == "OPENAI_API_KEY"
    assert name_keys_in_sight({"HOSTS": "1"}) == ""


def test_this_run_has_surroundings_of_its_own():
    assert set(os.environ).isdisjoint(KEYS)
    assert os.environ["HOME"] == os.environ["XDG_DATA_HOME"]
    assert "toolserver-home-" in os.environ["HOME"]


def test_what_tests_read_from_outside_is_kept():
    """A variable that tests read is named in `surroundings`, or one of those that tests set for their own programs."""
    files = (path for path in TESTS.rglob("*.py") if "node_modules" not in path.parts and ".venv" not in str(path))
    names = {name for path in files for name in READ.findall(path.read_text(encoding="utf-8"))}

    assert {name for name in names - OWN if not KEPT.fullmatch(name)} == set()
    assert KEPT.fullmatch("OUTCOMES")  # `tests.outcomes` writes there, for `tests.second_look`
