"""Decides which sources a service may use, and for which of their requests.

Three things decide together: the operator's `sources.licence_policy`, the contracts that the
operator has with publishers, and the servers and plans of the operator's own, which have other
terms than a source's public hosts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolserver.core.similar_names import find_similar
from toolserver.errors import ToolserverError
from toolserver.upstream.source import Licence, Request, Source, SourceExcluded

BARRED: dict[str, frozenset[str]] = {
    "any": frozenset(),
    "no_forbidden": frozenset({"no"}),
    "commercial": frozenset({"no", "unclear", "non_commercial"}),
}
"""The classes of licence that each policy excludes."""


class UnknownSource(ToolserverError):
    """`sources.contracts` names neither a source nor a publisher."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What an operator may use. `keys` are the names of the API keys and own servers that are set.

    A contract holds for one source (`CoinGecko.markets`) or for all sources of a publisher
    (`CoinGecko`); its text says what it allows, and everyone can read it in `/api/sources`.
    """

    policy: str = "any"
    contracts: tuple[tuple[str, str], ...] = ()
    keys: frozenset[str] = frozenset()

    def find_contract(self, name: str) -> str | None:
        """Return what the contract about a source allows, or None if there is none."""
        return next((text for party, text in self.contracts if party in (name, publisher_of(name))), None)

    def licence_of(self, source: Source[Any, Any]) -> Licence:
        """Return the licence under which this service uses a source.

        It holds for every request that may be sent: the terms of an own server count where
        public hosts are barred, or are not asked beside it.
        """
        if self.find_contract(source.name) is not None:
            return replace(source.licence, kind="contract")
        for key, terms in source.terms.items():
            if key in self.keys and (terms.alone or self._bars(source.licence)):
                return terms.licence
        return source.licence

    def bars(self, source: Source[Any, Any]) -> bool:
        """Return True if no request to a source is allowed."""
        return self._bars(self.licence_of(source))

    def select(self, source: Source[Any, Any], requests: Sequence[Request]) -> Sequence[Request]:
        """Return the requests to a source that are allowed. Raise SourceExcluded if there is none."""
        if not BARRED[self.policy] or self.find_contract(source.name) is not None:
            return requests
        allowed = [request for request in requests if not self._bars(_licence_of_request(source, request))]
        if not allowed:
            raise SourceExcluded(source.licence.kind)
        return allowed

    def describe(self, source: Source[Any, Any]) -> dict[str, Any]:
        """Return the licence of a source as `/api/sources` has it: class, attribution, terms, and a contract's text."""
        licence, contract = self.licence_of(source), self.find_contract(source.name)
        block = {"class": licence.kind, "attribution": licence.attribution}
        block |= {"terms_url": licence.terms_url} if licence.terms_url else {}
        return block | ({"contract": contract} if contract is not None else {})

    def check_names(self, sources: Iterable[str]) -> None:
        """Raise UnknownSource for a contract about something that is neither one of these sources nor a publisher."""
        names = sorted({*sources, *map(publisher_of, sources)})
        for party, _ in self.contracts:
            if party not in names:
                near = find_similar(party, names, most=1)
                raise UnknownSource(
                    f"sources.contracts: no source or publisher is called {party}"
                    + (f"; did you mean {near[0]}?" if near else "; docs/sources.md lists all")
                )

    @property
    def fingerprint(self) -> str:
        """Return a text that differs if any of these rights do, so that no answer made under others is used."""
        return repr((self.policy, self.contracts, sorted(self.keys)))

    def _bars(self, licence: Licence) -> bool:
        return licence.kind in BARRED[self.policy]


EVERYTHING = Rights()
"""Every source may be used, each under its own licence."""


def publisher_of(source: str) -> str:
    """Return the publisher in the name of a source: `CoinGecko` of `CoinGecko.markets`."""
    return source.partition(".")[0]


def _licence_of_request(source: Source[Any, Any], request: Request) -> Licence:
    terms = source.terms.get(request.under)
    return source.licence if terms is None else terms.licence
