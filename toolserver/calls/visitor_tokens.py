"""Makes and checks visitor tokens, which give a caller limits of its own without money, and limits who gets them.

A visitor token is `svc_free_` and 64 hexadecimal digits: an id of 96 random bits, the time of
issue, and a MAC over both. Nothing of it is stored, no ledger ever sees one, and it is valid
for 30 days.

Addresses get a few a day for nothing and further ones for a proof of work, which doubles with
each. The work is a challenge of this service: text to append a solution to, so that the
SHA-256 of `<challenge>.<solution>` begins with so many zero bits. A challenge names the day,
how many tokens its address had got by then, and has a MAC over these and the address. It is
therefore worth a token only to that address, only once, and only until the address gets
another one.
"""

import hashlib
import hmac
import logging
import secrets
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from toolserver.calls.rate_limit import KEYS, Quota, name_quota
from toolserver.clock import Clock
from toolserver.core.caller import VISITOR, wider_network
from toolserver.core.models import iso, moment
from toolserver.core.private_file import ensure_random_file
from toolserver.errors import InvalidArguments, NotSupported, RateLimited
from toolserver.money.receipts.keys import KeyFileBroken, find_key_file

log = logging.getLogger(__name__)

KEY_FILE = "keys/visitors.key"  # below the data directory
KEY_BYTES = 32
LIFE = timedelta(days=30)
VISITOR_CLIENT = "visitor "  # prefix of the name of a client that is identified by a visitor token
_ID_DIGITS, _TIME_DIGITS, _MAC_DIGITS = 24, 8, 32
_LENGTH = len(VISITOR) + _ID_DIGITS + _TIME_DIGITS + _MAC_DIGITS
WORK_S = 3600  # how long a challenge may be solved
MOST_SOLUTION = 64  # characters
_DAY_S = 86_400


class VisitorToken(NamedTuple):
    """A visitor token, a secret of its holder, and when it ends."""

    token: str
    expires_at: datetime


def open_visitor_key(data_dir: Path, keys_dir: Path | None = None) -> bytes | None:
    """Return the key of visitor tokens, created when first needed.

    Return None if the key is missing in the mounted secret of several instances: each would
    make one of its own. Raise KeyFileBroken, OSError.
    """
    path = find_key_file(data_dir, KEY_FILE, keys_dir)
    try:
        key = ensure_random_file(path, KEY_BYTES)
    except OSError:
        if keys_dir is None:
            raise
        log.warning("no visitor tokens: the key is missing, `toolserver keys make` adds it", extra={"path": str(path)})
        return None
    if len(key) != KEY_BYTES:
        raise KeyFileBroken(f"{path} does not contain a key of {KEY_BYTES} bytes")
    return key


class VisitorTokens:
    """Makes tokens and checks them, without storing anything. `key` is shared by all instances; None makes none."""

    def __init__(self, key: bytes | None, clock: Clock) -> None:
        self._key, self._clock = key, clock

    def make(self) -> VisitorToken:
        """Return a new token. Raise NotSupported without a key."""
        if self._key is None:
            raise NotSupported("This instance has no key for visitor tokens.")
        issued_at = int(self._clock.time())
        begin = f"{VISITOR}{secrets.token_hex(_ID_DIGITS // 2)}{issued_at:0{_TIME_DIGITS}x}"
        return VisitorToken(begin + self._authenticate(begin), datetime.fromtimestamp(issued_at, UTC) + LIFE)

    def find_client(self, token: str) -> str | None:
        """Return the name that limits count by for a token, or None if it is forged or has expired."""
        issued_at = self._read_issue(token)
        if issued_at is None or issued_at + LIFE.total_seconds() <= self._clock.time():
            return None
        return VISITOR_CLIENT + token[len(VISITOR) : len(VISITOR) + _ID_DIGITS]

    def find_end(self, token: str) -> datetime | None:
        """Return when a token ends or has ended, or None if it is forged."""
        issued_at = self._read_issue(token)
        return None if issued_at is None else datetime.fromtimestamp(issued_at, UTC) + LIFE

    def _read_issue(self, token: str) -> int | None:
        """Return the time of issue in epoch seconds, or None for a token that was not made with this key."""
        if self._key is None or len(token) != _LENGTH:
            return None
        begin = token[:-_MAC_DIGITS]
        if not hmac.compare_digest(_encode(token[-_MAC_DIGITS:]), self._authenticate(begin).encode()):
            return None
        return int(begin[-_TIME_DIGITS:], 16)

    def _authenticate(self, begin: str) -> str:
        assert self._key is not None
        return hmac.digest(self._key, _encode(begin), "sha256").hex()[:_MAC_DIGITS]


class VisitorRules(NamedTuple):
    """How many tokens an address gets a day (UTC), and for what.

    `cheap` cost nothing; the next one takes a proof of work of `work_bits` bits, and each
    further one a bit more. An address gets at most `most`, a /48 at most `most_of_network`.
    """

    cheap: int = 3
    work_bits: int = 14
    most: int = 200
    most_of_network: int = 2000

    def find_bits(self, issued: int) -> int:
        """Return the bits of work for an address that has got so many tokens today; 0 if it needs none."""
        return 0 if issued < self.cheap else self.work_bits + issued - self.cheap


class VisitorCount(NamedTuple):
    """How many tokens an address and its /48 had got on a day, and whether this request got another one."""

    issued: int
    of_network: int
    counted: bool


class VisitorCounts:
    """Counts the tokens of each address and /48 in this process, for the current day."""

    def __init__(self, rules: VisitorRules, *, keys: int = KEYS) -> None:
        self.rules, self._keys, self._day = rules, keys, 0
        self._issued: OrderedDict[str, int] = OrderedDict()
        self._of_network: OrderedDict[str, int] = OrderedDict()

    async def count(self, day: int, client: str, proved: int | None) -> VisitorCount:
        """Count a token for a client, if it may have one.

        `proved` is the number of earlier tokens for which the client has done the work.
        Looking and counting are one step.
        """
        if day != self._day:
            self._day, self._issued, self._of_network = day, OrderedDict(), OrderedDict()
        network, rules = wider_network(client), self.rules
        issued = self._issued.get(client, 0)
        of_network = 0 if network is None else self._of_network.get(network, 0)
        may = issued < rules.most and of_network < rules.most_of_network
        counted = may and (issued < rules.cheap or issued == proved)
        if counted:
            self._put(self._issued, client, issued + 1)
            if network is not None:
                self._put(self._of_network, network, of_network + 1)
        return VisitorCount(issued, of_network, counted)

    def _put(self, counts: OrderedDict[str, int], name: str, number: int) -> None:
        counts[name] = number
        counts.move_to_end(name)
        if len(counts) > self._keys:
            counts.popitem(last=False)


class _Challenge(NamedTuple):
    """A challenge that this service made: for the token after `issued` others of a day, until `ends_at`."""

    day: int
    issued: int
    bits: int
    ends_at: int


class VisitorIssuer:
    """Issues visitor tokens to addresses, within the rules of its counts.

    `secret` authenticates challenges. Instances that share their counts share it too;
    otherwise it ends with the process, as the counts do.
    """

    def __init__(
        self, tokens: VisitorTokens, counts: VisitorCounts, clock: Clock, *, secret: bytes, enabled: bool = True
    ) -> None:
        self.tokens, self._counts, self._clock = tokens, counts, clock
        self._secret = hmac.digest(secret, b"work for a visitor token", "sha256")
        self._enabled = enabled

    async def issue(self, client: str, challenge: str | None = None, solution: str | None = None) -> VisitorToken:
        """Return a token for an address, which may have to send a solved challenge.

        Raises:
            RateLimited: work is needed, which the member `work` describes, or no more tokens are issued today.
            InvalidArguments: the challenge is not one of this service for this address, or it is not solved.
            NotSupported: this instance makes no tokens.
            StorageUnavailable: the counts cannot be read.
        """
        if solution is not None and len(solution) > MOST_SOLUTION:
            raise _refuse("solution", f"has more than {MOST_SOLUTION} characters")
        token = self.tokens.make()
        if not self._enabled:
            return token
        now = self._clock.time()
        day, proved = int(now // _DAY_S), None
        if challenge is not None:
            proved = self._check_work(client, challenge, solution or "", day, now)
        counted = await self._counts.count(day, client, proved)
        if not counted.counted:
            raise self._reject(client, counted, day, now)
        return token

    def _check_work(self, client: str, challenge: str, solution: str, day: int, now: float) -> int | None:
        """Return the number of earlier tokens that a solved challenge is for; None if it is too old."""
        read = self._read_challenge(client, challenge)
        if read is None:
            raise _refuse("challenge", "is not a challenge that this address was given")
        if count_zero_bits(challenge, solution) < read.bits:
            raise _refuse("solution", f"does not give a SHA-256 that begins with {read.bits} zero bits")
        return read.issued if read.day == day and now < read.ends_at else None

    def _reject(self, client: str, count: VisitorCount, day: int, now: float) -> RateLimited:
        """Return the refusal of an address that has to work first, or that gets no more today."""
        rules = self._counts.rules
        quota = Quota("visitor tokens", rules.most, _DAY_S)
        wait = max(1, (day + 1) * _DAY_S - int(now))
        until = f"Until 00:00 UTC, in {wait} s,"
        work = None
        if count.of_network >= rules.most_of_network:
            quota = Quota("visitor tokens of a /48", rules.most_of_network, _DAY_S)
            text = f"{until} the network of this address (an IPv6 /48) gets no more: {quota.quota} a day are issued."
        elif count.issued >= rules.most:
            text = f"{until} this address gets no more: {quota.quota} a day are issued."
        else:
            work = self._make_work(client, count.issued, day, now)
            text = (
                f"This address has got {count.issued} visitor tokens today. {until} another one takes a proof of work:"
                " send `challenge` and a `solution` for which the SHA-256 of `<challenge>.<solution>` begins with"
                f" {work['bits']} zero bits."
            )
        left = max(0, quota.quota - (count.issued if work or count.issued >= rules.most else count.of_network))
        rejection = RateLimited(
            text,
            headers=name_quota(quota, wait, wait) | {"RateLimit": f'"{quota.name}";r={left};t={wait}'},
            retry_after_seconds=wait,
            limit=quota.name,
        )
        if work is not None:
            rejection.extra["work"] = work
        return rejection

    def _make_work(self, client: str, issued: int, day: int, now: float) -> dict[str, str | int]:
        bits, ends_at = self._counts.rules.find_bits(issued), int(now) + WORK_S
        begin = f"{day}-{issued}-{bits}-{ends_at}"
        return {
            "algorithm": "SHA-256",
            "challenge": f"{begin}-{self._authenticate(client, begin)}",
            "bits": bits,
            "expires_at": iso(moment(ends_at)),
        }

    def _read_challenge(self, client: str, challenge: str) -> _Challenge | None:
        """Return what a challenge says, or None if this service did not make it for this client."""
        begin, _, mac = challenge.rpartition("-")
        if not hmac.compare_digest(_encode(mac), self._authenticate(client, begin).encode()):
            return None
        return _Challenge(*map(int, begin.split("-")))

    def _authenticate(self, client: str, begin: str) -> str:
        return hmac.digest(self._secret, _encode(f"{client} {begin}"), "sha256").hex()[:_MAC_DIGITS]


def count_zero_bits(challenge: str, solution: str) -> int:
    """Return with how many zero bits the SHA-256 of a challenge and its solution begins."""
    digest = int.from_bytes(hashlib.sha256(_encode(f"{challenge}.{solution}")).digest())
    return 256 - digest.bit_length()


def _encode(text: str) -> bytes:
    """Return a text as bytes. What callers send may have characters that UTF-8 does not."""
    return text.encode(errors="replace")


def _refuse(name: str, message: str) -> InvalidArguments:
    return InvalidArguments(f"{name}: {message}", errors=[{"loc": name, "msg": message, "type": "value_error"}])
