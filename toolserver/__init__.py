"""The engine. This module exports every name that a package of tools is written with.

    from toolserver import Get, HostGroup, Licence, Payload, Source, ToolContext, tool

- Tools: `tool` makes an async function a tool of a `Tier`; the function gets a `ToolContext`. A premium tool names its
  nearest free tool with the tag `FREE_SIBLING`.
- Pages: a `CardValue` is the value of an answer that its card shows; a `Picture` says how its page draws the answer.
  A `MarketQuote` is a figure for the home page's strip of markets, a `DayLine` where the past day of a value is kept.
- Events: an `EventKind` of a tool says what wakes subscribers of MCP Events, with `EventArguments` and items
  whose ids are `EventId` and whose third-party texts are `UntrustedText`; an `EventLevel` is a number that has bounds.
- Meanings: a `Meaning` says what a word or class of an answer means, and by whose `Definition`; a test judges its rows.
- Terms: a `TermsReading` says what the terms of a publisher allow, by what evidence, and of which day.
- Answers: models derive from `Payload` (or `TopLevel`, `Sparse`); times are `Timestamp`, written by `iso`.
- Fallbacks: `via` makes a `Fallback` (one way to get a value) from a source. Your own fallback gets a
  `FallbackReader`; `read_all`, `read_any` and `read_beside` use it to read several sources. `convert_fallback`,
  `delay_second`, `lacking` and `limit_time` change fallbacks. `read_sections` reads `Sections` side by side.
  `SourceNote` is an entry of `_meta.sources[]`, with the `Coverage` of its read.
- Memory: `ctx.history` is a `TimeSeriesStore`, which also has `Ring`s.
- Sources: a `Source` has a request (`Get`, `Post` or `Connect`, or a function that gets the `Keys` that are set),
  a `Licence`, a `HostGroup`, optionally a `Gauge`, and a `Proof` of life if its answer may be empty; sizes are in
  `MIB`. `KeyTerms` are the licence of what it answers to requests with a key, or on a server of the operator's own.
  A parser of a list passes its rows through `read_rows`, which skips and counts unreadable rows. `read_xml` reads
  XML without document types; `INVISIBLE` matches characters that are not seen.
- Errors of a source derive from `SourceError`: `SourceChanged`, `SourceDown`, `SourceEmpty`, `SourceExcluded`,
  `SourceFrozen`, `SourceLimited`, `SourceRefused`, `SourceUnproved`, `SourceUnusable`.
- Lists: a tool with a list takes a `limit`, bounded by `up_to`, and for a long list a `Cursor`; `ctx.page` cuts it.
- A tool refuses a call by raising `InvalidArguments` or `NotFound`. `is_public` checks an IP address from a caller,
  `find_word` finds a name that a caller spelled in another case, `find_similar` finds names similar to a wrong one.
- Sales, for the payment tools: a `Claim`, `atomic` units of USDC, and `CREDIT_PRICE`, the price of a credit as text.
- Allowances, for the account tools: an `AllowanceWish` becomes one, shown as `AllowanceDetails`.
- Limits that an owner sets on a token, for the account tools: a `LimitWish`.
- Statements, for the account tools: a `StatementRange` selects `StatementLine`s.
- Webhooks, for the account tools: a `SubscriptionRequest` with its `ConditionInput` becomes a `WebhookSubscription`,
  each delivery of which is a `WebhookFire`.

A simulated provider also imports `toolserver.world.model`. Every other module is internal and
may change at any time. Names are loaded on first use, so that `import toolserver` costs
nothing.
"""

import functools
import re
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolserver.calls.allowances import AllowanceDetails as AllowanceDetails
    from toolserver.calls.allowances import AllowanceWish as AllowanceWish
    from toolserver.calls.token_limits import LimitWish as LimitWish
    from toolserver.context.context import Cursor as Cursor
    from toolserver.context.context import Fallback as Fallback
    from toolserver.context.context import FallbackReader as FallbackReader
    from toolserver.context.context import Ring as Ring
    from toolserver.context.context import Sections as Sections
    from toolserver.context.context import TimeSeriesStore as TimeSeriesStore
    from toolserver.context.context import ToolContext as ToolContext
    from toolserver.context.context import read_sections as read_sections
    from toolserver.context.context import up_to as up_to
    from toolserver.context.context import via as via
    from toolserver.context.fallback import convert_fallback as convert_fallback
    from toolserver.context.fallback import delay_second as delay_second
    from toolserver.context.fallback import lacking as lacking
    from toolserver.context.fallback import limit_time as limit_time
    from toolserver.context.fallback import read_all as read_all
    from toolserver.context.fallback import read_any as read_any
    from toolserver.context.fallback import read_beside as read_beside
    from toolserver.context.provenance import Coverage as Coverage
    from toolserver.context.provenance import SourceNote as SourceNote
    from toolserver.core.models import Payload as Payload
    from toolserver.core.models import Sparse as Sparse
    from toolserver.core.models import Timestamp as Timestamp
    from toolserver.core.models import TopLevel as TopLevel
    from toolserver.core.models import iso as iso
    from toolserver.core.plain_xml import read_xml as read_xml
    from toolserver.core.public_address import is_public as is_public
    from toolserver.core.similar_names import find_similar as find_similar
    from toolserver.core.visible_text import INVISIBLE as INVISIBLE
    from toolserver.errors import InvalidArguments as InvalidArguments
    from toolserver.errors import NotFound as NotFound
    from toolserver.money.ledger.statements import StatementLine as StatementLine
    from toolserver.money.ledger.statements import StatementRange as StatementRange
    from toolserver.money.purchases.credit_price import CREDIT_PRICE as CREDIT_PRICE
    from toolserver.money.purchases.credit_price import atomic as atomic
    from toolserver.money.purchases.credit_sales import Claim as Claim
    from toolserver.registry.display import CardValue as CardValue
    from toolserver.registry.display import DayLine as DayLine
    from toolserver.registry.display import MarketQuote as MarketQuote
    from toolserver.registry.display import Picture as Picture
    from toolserver.registry.event_kind import EventArguments as EventArguments
    from toolserver.registry.event_kind import EventId as EventId
    from toolserver.registry.event_kind import EventKind as EventKind
    from toolserver.registry.event_kind import EventLevel as EventLevel
    from toolserver.registry.event_kind import UntrustedText as UntrustedText
    from toolserver.registry.meaning import Definition as Definition
    from toolserver.registry.meaning import Meaning as Meaning
    from toolserver.registry.registry import FREE_SIBLING as FREE_SIBLING
    from toolserver.registry.registry import Tier as Tier
    from toolserver.registry.registry import tool as tool
    from toolserver.registry.spelling import find_word as find_word
    from toolserver.registry.terms import TermsReading as TermsReading
    from toolserver.upstream.decode import read_rows as read_rows
    from toolserver.upstream.source import MIB as MIB
    from toolserver.upstream.source import Connect as Connect
    from toolserver.upstream.source import Gauge as Gauge
    from toolserver.upstream.source import Get as Get
    from toolserver.upstream.source import HostGroup as HostGroup
    from toolserver.upstream.source import Keys as Keys
    from toolserver.upstream.source import KeyTerms as KeyTerms
    from toolserver.upstream.source import Licence as Licence
    from toolserver.upstream.source import Post as Post
    from toolserver.upstream.source import Proof as Proof
    from toolserver.upstream.source import Source as Source
    from toolserver.upstream.source import SourceChanged as SourceChanged
    from toolserver.upstream.source import SourceDown as SourceDown
    from toolserver.upstream.source import SourceEmpty as SourceEmpty
    from toolserver.upstream.source import SourceError as SourceError
    from toolserver.upstream.source import SourceExcluded as SourceExcluded
    from toolserver.upstream.source import SourceFrozen as SourceFrozen
    from toolserver.upstream.source import SourceLimited as SourceLimited
    from toolserver.upstream.source import SourceRefused as SourceRefused
    from toolserver.upstream.source import SourceUnproved as SourceUnproved
    from toolserver.upstream.source import SourceUnusable as SourceUnusable
    from toolserver.webhooks.conditions import ConditionInput as ConditionInput
    from toolserver.webhooks.records import SubscriptionRequest as SubscriptionRequest
    from toolserver.webhooks.records import WebhookFire as WebhookFire
    from toolserver.webhooks.records import WebhookSubscription as WebhookSubscription

__version__ = "0.1.0"
API_VERSION = "1.15.0"  # the version of the public API, not of this package

if not TYPE_CHECKING:  # a type checker must not believe that every name exists

    @functools.cache
    def _find_modules() -> dict[str, str]:
        """Return the module of each name that the block for type checkers above imports."""
        source = __spec__.loader.get_source(__name__)
        imports = re.findall(r"^    from (toolserver\.[\w.]+) import (\w+) as \2$", source, re.MULTILINE)
        return {name: module for module, name in imports}

    def __getattr__(name: str) -> object:
        if name.startswith("__") or name not in _find_modules():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_find_modules()[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted([*globals(), *_find_modules()])
