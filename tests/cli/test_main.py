"""The command line as a whole: its verbs, their help, how options reach a verb, and packages that hide ours."""

import gc
import json
import logging
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from toolserver import __version__
from toolserver.cli.call import Words
from toolserver.cli.main import PACKAGES, VERBS, describe_hidden, main
from toolserver.cli.serve import load_fixtures
from toolserver.errors import ToolserverError


@pytest.fixture(autouse=True)
def no_switch():
    """The program switches garbage collection off while it starts; the next test has it again."""
    yield
    gc.enable()


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def verbs(group=main, path=()):
    """Every verb with the words that lead to it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(verbs())


def test_the_version_is_the_package_s():
    assert __version__ in run("--version").stdout


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_verb_and_every_flag_has_a_sentence_of_help(words):
    command = ALL[words]
    assert command.help
    assert command.help[0].isupper()
    assert [option.name for option in command.params if isinstance(option, click.Option) and not option.help] == []
    assert run(*words, "--help").exit_code == 0


def test_the_help_lists_every_verb_with_its_own_first_sentence_and_imports_none():
    script = (
        "import sys; from toolserver.cli.main import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *lines, modules = done.stdout.splitlines()
    imported = {name for name in modules.split() if name.startswith("toolserver.cli.")}
    assert imported == {"toolserver.cli.main", "toolserver.cli.error_lines"}
    assert {"pydantic", "anyio", "msgspec"}.isdisjoint(modules.split())
    listed = [line.split()[0] for line in lines[lines.index("Commands:") + 1 :]]
    assert listed == sorted(VERBS)


@pytest.mark.parametrize("name", VERBS)
def test_a_listed_sentence_is_the_first_one_of_the_verb_s_help(name):
    command = main.get_command(click.Context(main), name)
    assert command.name == name
    listed = click.Command(name, help=VERBS[name].sentence)
    assert listed.get_short_help_str(200) == command.get_short_help_str(200)


@click.command("fail")
@click.argument("how")
def fail(how):
    """Fail in one way or another, as a verb might."""
    failures = {
        "fault": KeyError("nothing"),
        "refusal": ExceptionGroup("a", [ExceptionGroup("b", [ToolserverError("it is closed; open it")])]),
        "sentence": ExceptionGroup("a", [click.ClickException("a command's own sentence")]),
        "exit": BaseExceptionGroup("a", [SystemExit(3)]),
    }
    raise failures[how]


@pytest.fixture
def failing(monkeypatch):
    monkeypatch.setitem(main.commands, "fail", fail)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("refusal", 1, "Error: it is closed; open it\n"),
        ("sentence", 1, "Error: a command's own sentence\n"),
        ("exit", 3, ""),
    ],
)
def test_what_ends_a_verb_within_task_groups_ends_the_program_with_one_line(how, status, said):
    done = run("fail", how)
    assert (done.exit_code, done.stderr) == (status, said)


@pytest.mark.usefixtures("failing")
def test_a_fault_is_one_line_and_its_traceback_is_logged_with_a_flag(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [caplog.handler])  # not the JSON lines of an earlier test
    caplog.set_level(logging.WARNING)
    done = run("fail", "fault")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: a fault of the program: KeyError: 'nothing'. `toolserver --traceback")
    assert done.stderr.count("\n") == 1
    assert caplog.records == []
    run("--traceback", "fail", "fault")
    assert "in fail" in caplog.text


def given_to(monkeypatch, place, status=0):
    """What a verb's function is called with, in place of doing its work."""
    calls = []

    async def command(*args, **named):
        calls.append((args, named))
        return status

    monkeypatch.setattr(place, command)
    return calls


def test_serve_gets_its_flags_as_settings(monkeypatch, tmp_path):
    calls = given_to(monkeypatch, "toolserver.cli.run_service.serve_command")
    done = run("serve", "--port", 0, "--host", "::1", "--data-dir", tmp_path, "--ready-json")
    assert done.exit_code == 0, done.output
    ((settings,), named) = calls[0]
    assert (settings.port, settings.host, settings.data_dir) == (0, "::1", tmp_path)
    assert named == {"ready_json": True, "extension": None}


def test_everything_serves_the_fixtures_of_a_checkout_with_a_warning(monkeypatch, tmp_path):
    calls = given_to(monkeypatch, "toolserver.cli.run_service.serve_command")
    done = run("serve", "--everything", "--port", 0, "--workers", 2, "--data-dir", tmp_path)
    assert done.exit_code == 0, done.output
    assert "deprecated" in done.stderr
    ((_, named),) = calls
    assert {tool["name"] for tool in named["extension"].definitions} >= named["extension"].fixed.keys()


def test_everything_says_where_the_fixtures_are_if_they_are_not_installed():
    with pytest.raises(click.ClickException, match=r"run `python -m tests\.conformance serve`"):
        load_fixtures("tests.conformance.nowhere")


def test_several_workers_get_the_flags_to_read_them_again(monkeypatch, tmp_path):
    calls = given_to(monkeypatch, "toolserver.cli.serve.workers_command")
    done = run("serve", "--port", 0, "--workers", 2, "--data-dir", tmp_path)
    assert done.exit_code == 0, done.output
    ((settings, flags), named) = calls[0]
    assert settings.workers == 2
    assert (flags["port"], flags["workers"], flags["data_dir"]) == (0, 2, tmp_path)
    assert named == {"ready_json": False}


def test_a_demo_without_a_data_directory_leaves_nothing_behind(monkeypatch):
    calls = given_to(monkeypatch, "toolserver.cli.demo.demo_command")
    assert run("demo", "--seed", 7).exit_code == 0
    ((settings, flags), named) = calls[0]
    assert flags["data_dir"] == settings.data_dir
    assert named["seed"] == 7
    assert "toolserver-demo-" in settings.data_dir.name
    assert not settings.data_dir.exists()


def test_a_demo_with_a_data_directory_keeps_it(monkeypatch, tmp_path):
    calls = given_to(monkeypatch, "toolserver.cli.demo.demo_command")
    assert run("demo", "--data-dir", tmp_path / "kept").exit_code == 0
    assert calls[0][0][0].data_dir == tmp_path / "kept"
    assert (tmp_path / "kept").is_dir()


def test_the_simulated_world_listens_on_loopback_only(monkeypatch):
    calls = given_to(monkeypatch, "toolserver.cli.world.world_command")
    refused = run("world", "--host", "0.0.0.0")
    assert (refused.exit_code, calls) == (1, [])
    assert "loopback" in refused.stderr
    assert run("world", "--port", 0, "--seed", 3).exit_code == 0
    assert calls[0][1] == {"host": "127.0.0.1", "port": 0, "seed": 3, "samples": None, "replay": None}


def test_a_world_may_be_a_recording(monkeypatch, tmp_path):
    calls = given_to(monkeypatch, "toolserver.cli.world.world_command")
    assert run("world", "--replay", tmp_path).exit_code == 0
    assert calls[0][1]["replay"] == tmp_path
    assert run("world", "--replay", tmp_path / "absent").exit_code == 2


def test_stdio_takes_a_list_of_tools_in_place_of_a_toolset(monkeypatch):
    calls = given_to(monkeypatch, "toolserver.cli.stdio.serve_stdio")
    loads = []
    monkeypatch.setattr("toolserver.cli.stdio.make_load", lambda flags, **named: loads.append(named))
    assert run("stdio", "--tools", "forex, tides,").exit_code == 0
    assert run("stdio", "--toolset", "all", "--output-schema", "off", "--server", "https://data.example").exit_code == 0
    assert len(calls) == 2
    assert loads == [
        {"toolset": None, "tools": ["forex", "tides"], "server": None, "output_schema": True},
        {"toolset": "all", "tools": None, "server": "https://data.example", "output_schema": False},
    ]


@pytest.mark.parametrize(("arguments", "why"), [("{", "--args is not JSON"), ("[1]", "--args must be a JSON object")])
def test_arguments_that_are_no_object_are_refused_before_anything_runs(monkeypatch, arguments, why):
    calls = given_to(monkeypatch, "toolserver.cli.call.call_command")
    done = run("call", "forex", "--args", arguments)
    assert (done.exit_code, calls) == (1, [])
    assert why in done.stderr


def test_a_call_ends_with_the_status_of_its_outcome_and_pays_with_the_given_token(monkeypatch, tmp_path):
    calls = given_to(monkeypatch, "toolserver.cli.call.call_command", status=1)
    done = run("call", "forex", "--args", '{"a": 1}', "--token", "t", "--json", "--data-dir", tmp_path)
    (((settings, *words), named),) = calls
    assert (done.exit_code, settings.token.get_secret_value()) == (1, "t")
    assert (words, named) == ([Words("forex", {"a": 1}), "json"], {})


def test_tools_and_openapi_print_what_they_list():
    listed = json.loads(run("tools", "--toolset", "core", "--json").stdout)
    assert "forex" in [tool["name"] for tool in listed]
    assert json.loads(run("openapi", "--base-url", "https://a.example").stdout)["servers"] == [
        {"url": "https://a.example"}
    ]


@pytest.mark.parametrize(
    ("words", "changed", "code", "said"),
    [
        (("docs", "--check"), ["a.md"], 1, "out of date: a.md\n"),
        (("docs",), ["a.md"], 0, "written: a.md\n"),
        (("docs", "--check"), [], 0, ""),
    ],
)
def test_a_check_of_the_generated_pages_fails_when_one_is_out_of_date(monkeypatch, words, changed, code, said):
    checked = []
    monkeypatch.setattr("toolserver.cli.docs.compose_documents", lambda settings: {})
    monkeypatch.setattr("toolserver.cli.docs.update_files", lambda documents, check: checked.append(check) or changed)
    done = run(*words)
    assert (done.exit_code, done.stdout, checked) == (code, said, ["--check" in words])


def test_doctor_ends_with_the_status_of_its_findings(monkeypatch, tmp_path):
    monkeypatch.setenv("TOOLSERVER_DATA_DIR", str(tmp_path))
    calls = given_to(monkeypatch, "toolserver.cli.doctor.doctor_command")
    assert run("doctor", "--no-live", "--json").exit_code == 0
    assert run("doctor", "--record", tmp_path / "rec").exit_code == 0
    assert run("doctor", "--no-live", "--record", tmp_path / "rec").exit_code == 2
    assert [named for _, named in calls] == [
        {"live": False, "as_json": True, "record": None},
        {"live": True, "as_json": False, "record": tmp_path / "rec"},
    ]


def run_toolserver(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *options, "-m", "toolserver", "tools"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_of_the_working_directory_that_hides_ours_is_named_in_one_line(tmp_path: Path, name: str) -> None:
    package = tmp_path / name / "__init__.py"
    package.parent.mkdir()
    package.touch()
    done = run_toolserver(tmp_path)

    assert done.returncode == 1
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert f"{name} ({package})" in line
    assert "python -P -m toolserver" in line
    assert [other for other in PACKAGES if f"{other} (" in line] == [name]


def test_the_remedy_in_that_line_helps(tmp_path: Path) -> None:
    (tmp_path / "tools.py").touch()

    assert run_toolserver(tmp_path).returncode == 1
    done = run_toolserver(tmp_path, "-P")
    assert done.returncode == 0, done.stderr
    assert "btc_price" in done.stdout


def test_folders_of_those_names_that_are_no_packages_hide_nothing(tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()

    assert run_toolserver(tmp_path).returncode == 0
    assert describe_hidden() is None
