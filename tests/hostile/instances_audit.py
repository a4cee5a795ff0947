"""What stands in the database after faults, held against what callers have in their hands."""

import time
from collections.abc import Sequence

from tests.hostile.instances_load import Record
from tests.hostile.instances_scene import CREDITS, Scene
from tests.live.test_shared_database import client_of
from toolserver.core.caller import token_hash

SETTLES_S, RIDES_S = 120.0, 1.0
_CALLS = """SELECT r.call_id, r.state, r.credits FROM reservation r JOIN token t ON t.account = r.account
  WHERE t.hash IN ({hashes})"""


class Audit:
    """Compares. `given_back` are the calls whose answers arrived and which are not charged, by the end."""

    def __init__(self, scene: Scene, record: Record) -> None:
        self._scene, self._record = scene, record
        self.given_back: list[str] = []

    def check(self) -> list[str]:
        """Everything that is wrong, once callers have ended and what the dead left open is released."""
        time.sleep(RIDES_S)  # deliveries are noted within 50 ms
        self._wait_for_releases()
        self._wait_until_none("SELECT call_id FROM reservation WHERE state = 'open'", "what was reserved is still held")
        wrong = [*self._record.wrong, *self.check_calls(), *self.check_fires(), *self._check_balances()]
        self._scene.shop.require_right_books()
        return wrong

    def _wait_for_releases(self) -> None:
        """What was reserved or charged and did not leave is released once the lease of its call has ended."""
        self._wait_until_none("SELECT call_id FROM journal", "what the dead owed was not released")

    def _wait_until_none(self, sql: str, otherwise: str) -> None:
        until = time.monotonic() + SETTLES_S
        while left := self._scene.shop.rows(sql):
            assert time.monotonic() < until, (otherwise, left)
            time.sleep(0.5)

    def _calls_of(self, tokens: Sequence[str]) -> dict[str, tuple[str, int]]:
        hashes = ", ".join(f"'{token_hash(token).hex()}'" for token in tokens)
        return {call: (state, credits) for call, state, credits in self._scene.shop.rows(_CALLS.format(hashes=hashes))}

    def check_calls(self) -> list[str]:
        """Whether what buyers hold is what they were charged for."""
        stored = self._calls_of(self._scene.buyers)
        posted = {call: credits for call, (state, credits) in stored.items() if state == "posted"}
        held = {call: credits for call, credits in self._record.whole.items() if credits}
        self.given_back = sorted(held.keys() - posted.keys())
        wrong = [f"charged, and never answered: {call}" for call in sorted(posted.keys() - held.keys())]
        wrong += [f"answered, and nobody knows it: {call}" for call in self.given_back if call not in stored]
        wrong += [
            f"{call}: {posted[call]} credits charged, {credits} by the receipt"
            for call, credits in held.items()
            if posted.get(call, credits) != credits
        ]
        return wrong + [f"answered, and still reserved: {call}" for call in held if stored.get(call, "?")[0] == "open"]

    def check_fires(self) -> list[str]:
        """Whether each fire that arrived was charged once, and no other one."""
        self._wait_until_none("SELECT id FROM webhook_fire WHERE state IN ('open', 'accepted')", "fires are left open")
        kept = dict(self._scene.shop.rows("SELECT id, state FROM webhook_fire WHERE price > 0"))  # the last of each
        posted = {call for call, (state, _) in self._calls_of([self._scene.hooked]).items() if state == "posted"}
        arrived = {"call_" + id.removeprefix("msg_") for id in self._scene.inbox.ids()}
        wrong = [f"a fire was charged and never arrived: {id}" for id in sorted(posted - arrived)]
        wrong += [f"a fire arrived and was not charged: {id}" for id in sorted(arrived - posted)]
        charged = {id for id, state in kept.items() if state == "charged"}
        return wrong + [f"fires and charges differ: {id}" for id in sorted(charged ^ (posted & kept.keys()))]

    def _check_balances(self) -> list[str]:
        """Whether every instance says of each token what is left of it by its charges."""
        wrong = []
        for token in (*self._scene.buyers, self._scene.hooked):
            stored = self._calls_of([token]).values()  # what a dead instance had reserved is voided after its time
            charged = sum(credits for state, credits in stored if state in ("posted", "open"))
            for each in self._scene.instances:
                with client_of(each.program, token) as client:
                    said = client.get("/api/payment/balance").json()["credits"]
                if said != CREDITS - charged:
                    wrong.append(f"{each.url} says {said} of a token that has {CREDITS - charged}")
        return wrong
