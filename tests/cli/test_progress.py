"""How far a long command has come is said now and then, and never on stdout."""

from toolserver.cli.progress import RowProgress


def test_counts_are_said_by_what_was_done(capsys):
    progress = RowProgress(0)
    progress("copied", 10_000)
    progress("copied", 5_000)
    progress("compared", 7)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "10,000 rows copied after 0 s",
        "15,000 rows copied after 0 s",
        "15,000 rows copied, 7 rows compared after 0 s",
    ]


def test_nothing_is_said_twice_within_the_time(capsys):
    progress = RowProgress(3600)
    for _ in range(3):
        progress("copied", 1)
    assert capsys.readouterr().err == ""
