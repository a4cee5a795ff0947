"""A script is known by its text, and a name in a key cannot be read."""

import hashlib

from toolserver.core.shared_memory import Script, hash_name


def test_a_script_is_known_by_the_hash_of_what_is_sent():
    for script in (Script("return 1"), Script("return 1", many=True)):
        assert script.sha.decode() == hashlib.sha1(script.text.encode()).hexdigest()
    assert Script("return 1", many=True).text != "return 1"


def test_names_are_short_and_hide_what_they_stand_for():
    names = [hash_name(name) for name in ("192.0.2.1", "192.0.2.2", "x" * 100_000, "\ud800")]
    assert len(set(names)) == 4
    assert {len(name) for name in names} == {32}
