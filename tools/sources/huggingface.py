"""Read Hugging Face models by recent likes, and the latest change of any model, which shows that the hub is alive.

Hub API, JSON, no key.

https://huggingface.co/docs/hub/api
"""

from datetime import datetime
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import quote

from tools.parsing.fields import NAME, clean, clean_or_none, from_iso, number, optional
from tools.sources.hosts import DAY, HOUR, MINUTE, other
from toolserver import Gauge, Get, Licence, Source, SourceChanged, SourceEmpty, read_rows

MODELS_URL = "https://huggingface.co/api/models"
LICENCE = Licence("unclear", "Hugging Face", "https://huggingface.co/terms-of-service")
EXPAND = "&".join(
    f"expand%5B%5D={name}" for name in ("author", "likes", "downloads", "pipeline_tag", "lastModified")
)  # one parameter repeated, which `params` cannot hold
BY_LIKES = Get(f"{MODELS_URL}?sort=likes7d&direction=-1&limit=15&{EXPAND}")
BY_SCORE = Get(f"{MODELS_URL}?sort=trendingScore&direction=-1&limit=15")  # with the usual members
CHANGED_LAST = Get(f"{MODELS_URL}?sort=lastModified&direction=-1&limit=1&expand%5B%5D=lastModified")
LEAST = 10


class Model(NamedTuple):
    """One model. `author` is None for the few models without an owner."""

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


def parse(body: Any, query: None) -> ModelList:
    """Return every model of either form."""
    if not isinstance(body, list):
        raise SourceChanged(f"not a list: {body!r:.40}")
    if len(body) < LEAST:
        raise SourceEmpty(f"{len(body)} models")
    models = read_rows(body, _model)
    by_score = all("trendingScore" in model and "author" not in model for model in body if isinstance(model, dict))
    if not any(model.likes for model in models):
        raise SourceChanged("no model has likes")
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


def parse_last_change(body: Any, query: None) -> datetime:
    """Return the time of the latest change of any model: among millions, one changes at any time."""
    return from_iso(body[0]["lastModified"])


def newest(listed: ModelList) -> datetime | None:
    return max((model.updated_at for model in listed.models if model.updated_at), default=None)


MODELS_LIKED_7D = Source(
    "HuggingFace.models_liked_7d",
    (BY_LIKES, BY_SCORE),
    parse,
    licence=LICENCE,
    hosts=other("huggingface"),
    fresh_s=10 * MINUTE,
    timeout_s=10,
    newest=newest,
    newest_max_s=14 * DAY,  # of fifteen popular models, at least one has changed recently
    moves=lambda listed: tuple((model.id, model.likes) for model in listed.models),
    untrusted=True,
    gauge=Gauge(lambda listed: {"hub_likes": median(model.likes for model in listed.models)}, 0.45),
)

LAST_CHANGE = Source(
    MODELS_LIKED_7D.name,
    CHANGED_LAST,
    parse_last_change,
    licence=LICENCE,
    hosts=MODELS_LIKED_7D.hosts,
    fresh_s=MODELS_LIKED_7D.fresh_s,
    timeout_s=10,
    newest=lambda at: at,
    newest_max_s=HOUR,
)
