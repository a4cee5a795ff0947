"""What has to be set to follow a ledger or to be followed, and that keys are shown nowhere."""

import json

import pytest
from pydantic import ValidationError

from toolserver.doctor import settings_table
from toolserver.settings import Ledger, Settings

KEY = "k" * 31 + "1"
FOLLOWS = {"url": "https://ledger.internal:8081/", "service": "news", "key_id": "news-1", "secret": KEY}
FOLLOWED = {"port": 0, "keys": {"news-1": KEY}, "services": {"news-1": ["news"]}}


@pytest.mark.parametrize("given", [{}, FOLLOWS, FOLLOWED, {**FOLLOWED, "port": None}])
def test_what_fits_together(given):
    found = Ledger(**given)
    assert found.url in (None, "https://ledger.internal:8081")


@pytest.mark.parametrize(
    "given",
    [
        {**FOLLOWS, "secret": None},
        {**FOLLOWS, "key_id": None},
        {**FOLLOWS, "key_id": "with space"},
        {**FOLLOWS, "secret": "short"},
        {**FOLLOWS, "url": "ledger.internal"},
        {**FOLLOWS, "url": "ftp://ledger.internal"},
        {**FOLLOWS, "url": "https://u:p@ledger.internal"},
        {**FOLLOWS, "public_url": "https://data.example/?x=1"},
        {**FOLLOWS, "service": "b:c"},
        {**FOLLOWS, **FOLLOWED},
        {"port": 0},
        {**FOLLOWED, "services": {}},
        {**FOLLOWED, "services": {"news-1": []}},
        {**FOLLOWED, "services": {"news-1": ["b:c"]}},
        {**FOLLOWED, "keys": {"news-1": "short"}},
        {**FOLLOWED, "unknown": 1},
    ],
)
def test_what_does_not_is_refused(given):
    with pytest.raises(ValidationError) as refused:
        Ledger(**given)
    assert KEY not in str(refused.value.errors(include_input=False, include_url=False, include_context=False))


@pytest.mark.parametrize("given", [FOLLOWS, FOLLOWED])
def test_the_environment_sets_it_and_keys_are_masked(given, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, value in given.items():
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        monkeypatch.setenv(f"TOOLSERVER_LEDGER__{name.upper()}", text)
    settings = Settings()
    assert settings.ledger == Ledger(**given)
    assert KEY not in str(settings_table(settings)) + repr(settings)
