"""Hugging Face models by recent likes (Hub API, JSON, no key).

https://huggingface.co/docs/hub/api
"""

from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from tools.shared.numbers import number
from tools.shared.optional import optional
from tools.shared.text import NAME, clean, clean_or_none
from tools.shared.times import from_iso
from tools.sources.hosts import other
from toolserver.errors import SourceChanged, SourceEmpty
from toolserver.upstream.source import Get, Keys, Licence, Source

MODELS_URL = "https://huggingface.co/api/models"
LICENCE = Licence("unclear", "Hugging Face", "https://huggingface.co/terms-of-service")
EXPANDED = ("author", "likes", "downloads", "pipeline_tag", "lastModified")
LEAST = 10


class Model(NamedTuple):
    """One model. `author` is None for the few that belong to nobody."""

    id: str
    author: str | None
    name: str
    likes: int
    downloads: int | None
    pipeline: str | None
    url: str
    updated_at: datetime | None


class ModelList(NamedTuple):
    """Models in the order of the answer: by likes of seven days, or by the hub's own score when `by_score`."""

    models: tuple[Model, ...]
    by_score: bool


def request(query: None, keys: Keys) -> list[Get]:
    """By likes of seven days with exactly the members needed; else the trending list with the usual ones."""
    expand = "&".join(f"expand%5B%5D={name}" for name in EXPANDED)  # repeated, so it cannot be in `params`
    return [
        Get(f"{MODELS_URL}?sort=likes7d&direction=-1&limit=15&{expand}"),
        Get(f"{MODELS_URL}?sort=trendingScore&direction=-1&limit=15"),
    ]


def parse(body: Any, query: None) -> ModelList:
    """Every model of either form."""
    if not isinstance(body, list):
        raise SourceChanged(f"not a list: {body!r:.40}")
    if len(body) < LEAST:
        raise SourceEmpty(f"{len(body)} models")
    by_score = all("trendingScore" in model and "author" not in model for model in body)
    models = tuple(_model(model) for model in body)
    if not any(model.likes for model in models):
        raise SourceChanged("nobody likes anything")
    return ModelList(models, by_score)


def _model(model: dict[str, Any]) -> Model:
    identity = clean(model["id"], NAME)
    owner, slash, name = identity.partition("/")
    downloads = optional(number, model.get("downloads"))
    return Model(
        id=identity,
        author=clean_or_none(model.get("author"), NAME) or (owner if slash else None),
        name=name if slash else identity,
        likes=int(number(model["likes"])),
        downloads=None if downloads is None else int(downloads),
        pipeline=clean_or_none(model.get("pipeline_tag"), 60),
        url=f"https://huggingface.co/{quote(identity)}",
        updated_at=optional(from_iso, model.get("lastModified")),
    )


def newest(listed: ModelList) -> datetime | None:
    return max((model.updated_at for model in listed.models if model.updated_at), default=None)


MODELS_LIKED_7D = Source(
    "HuggingFace.models_liked_7d",
    request,
    parse,
    licence=LICENCE,
    hosts=other("huggingface"),
    fresh_s=600,
    keep_s=86400,
    timeout_s=10,
    newest=newest,
    untrusted=True,
)
