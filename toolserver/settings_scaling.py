"""The settings about several instances of one service, and about what is kept and how long."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from toolserver.settings_money import SettingsPart


def _require_redis(value: SecretStr) -> SecretStr:
    if urlsplit(value.get_secret_value()).scheme not in ("redis", "rediss", "unix"):
        raise ValueError("must begin with redis://, rediss:// or unix://")
    return value


RedisUrl = Annotated[SecretStr, AfterValidator(_require_redis)]


class ScalingSettings(SettingsPart):
    """Several instances of one service, which share a Redis or a database."""

    instances: int = Field(
        1,
        ge=1,
        le=10_000,
        description="Services that share redis_url; while it is lost, each allows its part of the limits",
    )
    redis_deadline_s: float = Field(
        0.5, gt=0, le=5, description="Seconds without an answer after which Redis is lost and nobody waits for it"
    )
    redis_prefix: str = Field(
        "toolserver:",
        pattern="^[A-Za-z0-9_.:{}-]{1,64}$",
        description="What all keys in Redis begin with; services that share a Redis and not their data need two",
    )
    keys_dir: Path | None = Field(
        None,
        description="Folder of the keys that all instances of a database_url have, such as a mounted secret;"
        " `keys make` writes it. null: keys in data_dir",
    )


class StorageSettings(SettingsPart):
    """The disk that the data directory is on."""

    least_free_mb: float = Field(
        4, ge=0, description="Megabytes that must be free on the disk; with less nothing is sold and /readyz says 503"
    )

    statement_cache: int = Field(
        256,
        ge=0,
        le=10_000,
        description="Prepared statements a connection to database_url keeps; 0 behind a pooler in transaction mode",
    )

    archive_dir: Path | None = Field(
        None, description="Folder of the archives of closed months; null: archive in data_dir"
    )
    keep_months: int | None = Field(
        None, ge=3, description="Whole months whose calls stay in the database once they are archived; null: all stay"
    )

    @property
    def least_free_bytes(self) -> int:
        """The same in bytes."""
        return int(self.least_free_mb * 1_000_000)
