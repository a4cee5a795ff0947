"""A private file is its owner's alone, whole or as it was before."""

import os
import stat

import pytest

from toolserver.core.private_file import hold_folder, sync_folder, write_private


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_only_the_owner_can_read_it(tmp_path):
    write_private(tmp_path / "keys" / "x.json", "text")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "keys", tmp_path / "keys" / "x.json")]
    assert modes == [0o700, 0o600]


def test_a_file_is_replaced_only_where_it_may_be(tmp_path):
    path = tmp_path / "x.json"
    write_private(path, "one")
    with pytest.raises(FileExistsError):
        write_private(path, "two", replacing=False)
    assert path.read_text() == "one"
    write_private(path, "two")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("x.json", "two")]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    write_private(path, "one")

    def fail(_):
        raise OSError("on purpose")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="on purpose"):
        write_private(path, "two")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("x.json", "one")]


def test_a_folder_that_is_not_there_cannot_be_synced(tmp_path):
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "gone")


@pytest.mark.skipif(os.name != "posix", reason="locks are of POSIX")
def test_one_process_at_a_time_holds_a_folder(tmp_path):
    with hold_folder(tmp_path):
        with pytest.raises(BlockingIOError):
            try_to_hold(tmp_path)
    try_to_hold(tmp_path)
    with pytest.raises(FileNotFoundError), hold_folder(tmp_path / "gone"):
        pass


def try_to_hold(path):
    """Hold a folder as another process would, without waiting."""
    import fcntl

    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)
