"""What verbs about buyers share: a ledger that is there, a name to sign for."""

import click
import pytest

from toolserver.cli.buyers import Desk, at_desk
from toolserver.cli.load_settings import settings_from
from toolserver.money.ledger.store import FILE, open_ledger


async def test_buyers_sign_for_the_name_of_the_service(tmp_path, monkeypatch):
    async with open_ledger(tmp_path / FILE) as ledger:
        with pytest.raises(ValueError, match="base_url"):
            _ = Desk(settings_from(data_dir=tmp_path), ledger.file).host
        monkeypatch.setenv("TOOLSERVER_BASE_URL", "https://data.example/path")
        assert Desk(settings_from(data_dir=tmp_path), ledger.file).host == "data.example"


def test_without_a_ledger_there_is_nothing_to_do(tmp_path):
    async def job(desk):
        raise NotImplementedError

    with pytest.raises(click.ClickException, match="there is no ledger"):
        at_desk(tmp_path, job)
