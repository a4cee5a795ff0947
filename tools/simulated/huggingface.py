"""Simulate the model hub on the wire: fifteen models that gain likes."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from toolserver.world.model import Ask, Reply, World, expects, serves

DAY = 86400.0
COUNT = 40
AUTHORS = ["ada-labs", "boreal-ai", "cirrus", "deltamind", "eon-research"]
FAMILIES = ["Kestrel", "Lumen", "Moraine", "Nautilus", "Ostrich", "Petrel"]
PIPELINES = ["text-generation", "image-text-to-text", "text-to-image", None, "automatic-speech-recognition"]


class SimModel(NamedTuple):
    """One model. The last one is from the early days and has no author."""

    id: str
    author: str | None
    likes: int
    likes_7d: int
    downloads: int
    pipeline: str | None
    created: float
    changed: float


def models(world: World) -> list[SimModel]:
    """Return all models, most likes in seven days first."""
    listed = [_model(world, index) for index in range(COUNT)]
    return sorted(listed, key=lambda model: (-model.likes_7d, model.id))


def _model(world: World, index: int) -> SimModel:
    author = world.pick("model.author", index, AUTHORS) if index else None
    name = f"{world.pick('model.family', index, FAMILIES)}-{index + 3}B" if index else "elder-small"
    created = (20_400 + 3 * index) * DAY
    gained, total = _likes(world, index, 7 * DAY), _likes(world, index, max(8 * DAY, world.now - created))
    return SimModel(
        f"{author}/{name}" if author else name,
        author,
        total,
        gained,
        total * 87,
        world.pick("model.pipeline", index, PIPELINES),
        created,
        world.now - world.between("model.changed", index, 0.1, 30) * DAY,
    )


def _likes(world: World, index: int, span: float) -> int:
    """Return likes gained in a span that ends now: a steady rate for each model, with waves."""
    rate = 10 ** world.between("model.rate", index, 0.3, 2.5) if index else 400.0
    return int(rate * span / DAY * (1 + 0.2 * math.sin(world.now / DAY + index)))


FORMS = {
    "empty": Reply.json([]),
    "limited": Reply.json(
        {"error": "We had to rate limit you, you hit the quota of 500 api requests per 5 minutes."}, 429
    ),
}


@serves("HuggingFace.models_liked_7d", "huggingface.co", "/api/models", forms=FORMS)
def hub(world: World, ask: Ask) -> Reply:
    """Return exactly the requested members and the ids with `expand[]`; the usual ones without."""
    expanded = [value for name, value in parse_qsl(ask.query) if name == "expand[]"]
    if ask.params.get("sort") == "lastModified":
        newest = {"_id": f"{0:024x}", "id": "eon-research/just-now", "lastModified": _iso(_last_change(world))}
        return Reply.json([newest])
    size = int(ask.params.get("limit", "30"))
    rows = [_row(model) for model in models(world)][:size]
    if expanded:
        rows = [{k: v for k, v in row.items() if k in ("_id", "id", *expanded)} for row in rows]
    else:
        rows = [{k: v for k, v in row.items() if k not in ("author", "lastModified")} for row in rows]
    return Reply.json([{k: v for k, v in row.items() if v is not None} for row in rows])


def _last_change(world: World) -> float:
    """Return the time of the latest change of any model: among millions, one changes every few seconds."""
    return world.now - world.now % 5


@hub.form("drift")
def not_expanded(world: World, ask: Ask) -> Reply:
    """Ignore `expand[]`, as the hub did before it supported it."""
    plain = "&".join(part for part in ask.query.split("&") if not part.startswith(("expand[]", "expand%5B%5D")))
    return hub.handler(world, Ask(ask.method, ask.host, ask.path, plain, ask.headers))


def _row(model: SimModel) -> dict[str, Any]:
    return {
        "_id": f"{abs(int(model.created)):024x}",
        "id": model.id,
        "author": model.author,
        "likes": model.likes,
        "trendingScore": model.likes_7d,
        "private": False,
        "downloads": model.downloads,
        "tags": ["transformers", "safetensors", "region:us"],
        "pipeline_tag": model.pipeline,
        "library_name": "transformers",
        "createdAt": _iso(model.created),
        "lastModified": _iso(model.changed),
        "modelId": model.id,
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


@expects("model-hub-trending")
def expected(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the models that `/api/model-hub-trending` must list at this instant."""
    return [
        {"id": m.id, "likes": m.likes, "downloads": m.downloads, "pipeline": m.pipeline, "author": m.author}
        for m in models(world)[:15]
    ]
