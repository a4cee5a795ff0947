"""Rewrite test files on the other cores while they are collected.

pytest rewrites the assertions of a file when it first imports it, and keeps the result as bytecode. In a new clone that
is more than half of what collection takes, in one process. Here forked processes begin with the files that are
collected last: where they meet the one that collects, it finds everything rewritten. Only whole runs do so: a run of
some files would rewrite the others for nothing. Bytecode that cannot be kept is not written.
"""

import multiprocessing
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

NAMES = "test_*.py"


def find_test_files(folder: Path) -> Iterator[Path]:
    """Yield test files as pytest meets them, outside environments and packages of others that are installed there."""
    inside = sorted(folder.iterdir())
    yield from (path for path in inside if path.match(NAMES) and path.is_file())
    for path in inside:
        if path.is_dir() and not path.name.startswith((".", "_", "node_modules")):
            yield from find_test_files(path)


def is_rewritten(file: Path) -> bool:
    """Whether pytest would find this file rewritten, as it now is."""
    return rewrite._read_pyc(file, bytecode_of(file)) is not None


def bytecode_of(file: Path) -> Path:
    return rewrite.get_cache_dir(file) / (file.stem + rewrite.PYC_TAIL)


def rewrite_missing(config: pytest.Config, files: Sequence[Path]) -> None:
    """Rewrite these files where nobody has. One with an error in its syntax is left for pytest to report."""
    state = config.stash[rewrite.assertstate_key]
    for file in files:
        if is_rewritten(file) or not rewrite.try_makedirs(bytecode_of(file).parent):
            continue
        try:
            digest, code = rewrite._rewrite_test(file, config)
        except SyntaxError:
            continue
        rewrite._write_pyc(state, code, digest, bytecode_of(file))


def is_worth_it(config: pytest.Config) -> bool:
    """Whether this run collects everything, in a process that then forks those that run the tests."""
    whole = config.args_source is not pytest.Config.ArgsSource.ARGS
    return whole and config.pluginmanager.hasplugin("forks") and not sys.dont_write_bytecode


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection(session: pytest.Session) -> Generator[None]:
    config = session.config
    if not is_worth_it(config):
        return (yield)
    files = [file for name in config.args for file in find_test_files(config.invocation_params.dir / name)]
    others = max(1, len(os.sched_getaffinity(0)) - 1)
    programs = [
        multiprocessing.get_context("fork").Process(target=rewrite_missing, args=(config, files[::-1][n::others]))
        for n in range(others)
    ]
    for program in programs:
        program.start()
    try:
        return (yield)
    finally:
        for program in programs:
            program.join()
