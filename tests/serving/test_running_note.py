"""Where a running service notes the address of its metrics, so that another process can ask it."""

from toolserver.serving.running_note import FILE, note_running, read_running

URL = "http://127.0.0.1:9/metrics"


def test_the_note_is_there_while_the_service_runs(tmp_path):
    with note_running(tmp_path / "data", URL):
        assert read_running(tmp_path / "data") == URL
    assert read_running(tmp_path / "data") is None
    assert list((tmp_path / "data").iterdir()) == []


def test_a_note_that_another_service_has_written_since_is_left_to_it(tmp_path):
    with note_running(tmp_path, URL):
        (tmp_path / FILE).write_text('{"metrics_url": "http://127.0.0.1:10/metrics"}')
    assert read_running(tmp_path) == "http://127.0.0.1:10/metrics"


def test_without_metrics_there_is_no_note(tmp_path):
    with note_running(tmp_path, None):
        assert list(tmp_path.iterdir()) == []


def test_what_is_no_note_is_none(tmp_path):
    for content in ("", "[]", '{"metrics_url": 3}', "{"):
        (tmp_path / FILE).write_text(content)
        assert read_running(tmp_path) is None


def test_a_folder_that_cannot_be_written_keeps_no_service_from_running(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with note_running(tmp_path / "file", URL):
        assert caplog.messages == ["the address of the running service could not be recorded"]
