"""The settings about several instances."""

import pytest
from pydantic import ValidationError

from toolserver.settings import Settings


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:6379/1", "rediss://user:secret@cache.example:6380", "unix:///run/redis.sock"]
)
def test_an_address_of_redis_is_kept_secret(url):
    settings = Settings(redis_url=url)
    assert settings.redis_url.get_secret_value() == url
    assert url not in repr(settings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"redis_url": "http://127.0.0.1"},
        {"scaling": {"instances": 0}},
        {"scaling": {"redis_deadline_s": 0}},
        {"scaling": {"redis_prefix": "with space"}},
        {"workers": 0},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValidationError):
        Settings(**wrong)
