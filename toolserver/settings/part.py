"""Define what every group of settings has in common."""

from pydantic import BaseModel, ConfigDict


class SettingsPart(BaseModel):
    """Base of every group of settings: an unknown name is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
