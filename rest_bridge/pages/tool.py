"""Writes /t/<tool>: the answer as picture, table and JSON; a form to call the tool; code, fields, sources, example.

The form tries free tools at a path of its own, with small limits of its own: a reader of the
page neither uses up the calls of programs at the same address nor gets a token.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import msgspec

from rest_bridge import headers as h
from rest_bridge.asgi import ParsedRequest, Scope
from rest_bridge.json_post import json_post
from rest_bridge.pages.highlight import read_languages
from rest_bridge.pages.render import is_easy, render_page
from rest_bridge.pages.social_card import card_path
from rest_bridge.pages.style_sheet import TOOL
from rest_bridge.pages.tool_form import form_fields
from rest_bridge.routes import Mounted
from toolserver.calls.arguments import example_call
from toolserver.calls.pipeline import Pipeline
from toolserver.core.caller import PAGE, Addresses, Caller, crowd_of
from toolserver.errors import InvalidArguments, NotFound
from toolserver.money.purchases.credit_price import CREDITS_PER_USD
from toolserver.registry.deprecations import DEPRECATIONS, Deprecation, find_deprecations
from toolserver.registry.field_table import payload_rows, rows
from toolserver.registry.placement import place_arguments
from toolserver.registry.registry import FREE_SIBLING, Operation, Registry, Tier
from toolserver.registry.site_facts import PREMIUM_LICENCE, SAMPLES, TRY, Document, SiteFacts, auth, tool_path
from toolserver.settings import LimitSettings
from toolserver.upstream.source import Source

DAY_S = 86_400
MOST_TRY = 65_536  # bytes of a request that tries a tool
MANY = 20  # fields or sources; longer lists are closed on a phone
LICENCE_WORDS = {
    "yes": "free to use",
    "attribution": "free to use with attribution",
    "non_commercial": "non-commercial use",
    "unclear": "terms not clear",
    "no": "redistribution not allowed",
    "contract": "used by contract",
}
NO_SAMPLES: Mapping[str, bytes] = MappingProxyType({})
SAMPLE_WORDS = "A fixed sample from the simulated world, the same for everybody. Every value is invented."


def tool_page(
    registry: Registry,
    facts: SiteFacts,
    operation: Operation,
    example: Mapping[str, Any] | None,
    samples: Mapping[str, bytes] = NO_SAMPLES,
    deprecations: Sequence[Deprecation] = DEPRECATIONS,
) -> Document:
    """Return the page of one tool.

    `example` is an answer from the simulated world, with shortened lists. `samples` has a whole one of some, as JSON.
    """
    fields = form_fields(operation)
    sampled = operation.name in samples
    return render_page(
        "tool.html",
        registry,
        facts,
        path=tool_path(operation),
        title=operation.title,
        about=operation.description.replace("`", ""),
        card=card_path(operation),
        scripts=["tool.js"],
        structured=_describe(operation, facts),
        sections=TOOL,
        operation=operation,
        going=find_deprecations(operation, deprecations),
        kept=is_kept(operation),
        form_data=_describe_form(operation, facts, sampled=sampled),
        languages=read_languages(),
        tries=operation.tier is Tier.FREE,
        sampled=sampled,
        sample_words=SAMPLE_WORDS + _credit(samples[operation.name]) if sampled else "",
        example=None if sampled else example,
        example_text=json.dumps(example, indent=2, ensure_ascii=False) if example else "",
        fields=fields,
        on_map={"lat", "lon"} <= {field.name for field in fields},
        credits_per_usd=CREDITS_PER_USD,
        sibling=registry.get(operation.tags.get(FREE_SIBLING, "")),
        curl=_write_curl(operation, facts),
        arguments=rows(operation.input_schema),
        answer_fields=payload_rows(operation),
        many=MANY,
        sources=sources_of(operation),
        licence_words=LICENCE_WORDS,
        licence=PREMIUM_LICENCE if operation.tier is Tier.PREMIUM else "",
    )


def _credit(sample: bytes) -> str:
    """Return whom a sample answer credits, as its script writes it below the words: the first paint has all of it."""
    credited = dict.fromkeys(json.loads(sample).get("_meta", {}).get("attribution", ()))
    return f" · From {', '.join(credited)}" if credited else ""


def is_kept(operation: Operation) -> bool:
    """Return True if the page shows a kept answer: the tool is free and needs no argument and no token."""
    return operation.tier is Tier.FREE and is_easy(operation) and operation.longest_ttl > 0


def sources_of(operation: Operation) -> list[Source[Any, Any]]:
    """Return the sources in order of use. A public name that several request shapes share is listed once."""
    return list({source.name: source for source in operation.sources}.values())


def _describe_form(operation: Operation, facts: SiteFacts, *, sampled: bool) -> dict[str, Any]:
    """Return what the page's script needs to know about the tool."""
    shown = operation.headline
    return {
        "name": operation.name,
        "title": operation.title,
        "method": operation.method,
        "path": operation.path,
        "site": facts.base_url.rstrip("/"),
        "auth": auth(operation),
        "try": TRY if operation.tier is Tier.FREE else None,
        "takes_body": operation.takes_body,
        "enveloped": operation.enveloped,
        "kept": is_kept(operation),
        "places": place_arguments(operation),
        "value": shown.value if shown else None,
        "unit": shown.unit if shown else "",
        "note": shown.note if shown else "",
        "change": shown.change if shown else "",
        "sample": f"{SAMPLES}/{operation.name}.json" if sampled else None,
        "sample_words": SAMPLE_WORDS if sampled else "",
        "pictures": [asdict(picture) for picture in operation.pictures],
    }


def _write_curl(operation: Operation, facts: SiteFacts) -> str:
    """Return the shortest call, for readers without JavaScript."""
    required, example = operation.input_schema.get("required", ()), example_call(operation)["arguments"]
    arguments, places = {name: example[name] for name in required}, place_arguments(operation)
    path = operation.path.format_map({name: value for name, value in arguments.items() if places[name] == "path"})
    query = urlencode({name: value for name, value in arguments.items() if places[name] == "query"})
    words = ["curl"] + (["-X", operation.method] if operation.method not in ("GET", "POST") else [])
    words.append(facts.url(path) + (f"?{query}" if query else ""))
    if operation.takes_body:
        body = {name: value for name, value in arguments.items() if places[name] == "body"}
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(body, ensure_ascii=False)]
    bearer = ' -H "Authorization: Bearer $TOOLSERVER_TOKEN"' if auth(operation) == "bearer" else ""
    return shlex.join(words) + bearer


def _describe(operation: Operation, facts: SiteFacts) -> dict[str, Any]:
    """Describe the tool as a data set in schema.org terms."""
    return {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": operation.title,
        "description": operation.description,
        "url": facts.url(tool_path(operation)),
        "license": facts.url("/docs#licence"),
        "isAccessibleForFree": not operation.credits,
        "creator": [{"@type": "Organization", "name": name} for name in _list_creators(operation)],
        "distribution": {
            "@type": "DataDownload",
            "encodingFormat": "application/json",
            "contentUrl": facts.url(operation.path),
        },
    }


def _list_creators(operation: Operation) -> list[str]:
    return list(dict.fromkeys(source.licence.attribution for source in operation.sources))


def mount_tries(
    registry: Registry, pipeline: Pipeline, facts: SiteFacts, addresses: Addresses, limits: LimitSettings
) -> dict[str, Mounted]:
    """Return the app, by path, that answers `POST {"tool", "arguments"}` with the answer of a free tool.

    Tries count by address, or by the /48 of one, and in no other limit.
    """

    async def answer(scope: Scope, request: ParsedRequest, message: Mapping[str, Any]) -> Mapping[str, Any]:
        name, arguments = message.get("tool"), message.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise InvalidArguments("Send `tool` (a name) and `arguments` (an object).", errors=[])
        operation = registry.get(name)
        if operation is None or operation.tier is not Tier.FREE:
            raise NotFound("There is no free tool of this name.")
        peer = scope.get("client") or ("unknown", 0)
        crowd = crowd_of(addresses.client(peer[0], h.text(request.forwarded)))
        await pipeline.pages.count(crowd, "page tries a day", [(limits.page_tries_per_day, DAY_S)])
        caller = Caller(crowd, agent=h.text(request.agent) or "", transport=PAGE, limited=False)
        outcome = await pipeline.call(operation, arguments, caller)
        tried: dict[str, Any] = msgspec.json.decode(outcome.rendered.payload)
        return tried

    return {TRY: json_post(answer, facts, most_bytes=MOST_TRY)}
