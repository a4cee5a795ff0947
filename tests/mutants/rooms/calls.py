"""Faults of the calls: limits that are not given back, sales that take another way, what an uncharged call leaves."""

from tests.mutants.faults import fault

ONE_WAY = "tests/calls/test_one_way.py"

FAULTS = (
    fault(
        "toolserver/calls/pipeline.py",
        "a sale from the cache does not keep its tool fresh",
        "        if operation.follow_s is not None:\n            self.note_call(operation)\n        if operation.tier",
        "        if operation.follow_s is not None and rendered is None:\n"
        "            self.note_call(operation)\n        if operation.tier",
        ONE_WAY,
    ),
    fault(
        "toolserver/calls/paid_call.py",
        "a cancelled call is not recorded",
        '        await self._record_uncharged(paid, "cancelled")\n',
        "",
        ONE_WAY,
    ),
    fault(
        "toolserver/calls/paid_call.py",
        "a call that has waited for its place does not look for the answer again",
        "            if (rendered := self._peek(paid.call)) is not None:  # it was made while this call waited",
        "            if (rendered := None) is not None:",
        ONE_WAY,
    ),
    fault(
        "toolserver/calls/pipeline.py",
        "a 304 that only the new answer shows keeps its place",
        "            unchanged = True\n            if place is not None:",
        "            unchanged = True\n            if place is None:",
        ONE_WAY,
    ),
    fault(
        "toolserver/calls/pipeline.py",
        "a refused question keeps its place",
        "if place is not None and (distinct is not None or not refusal.asked_upstream):",
        "if False:",
        "tests/calls/test_refused_questions.py",
    ),
    fault(
        "toolserver/calls/response_cache.py",
        "a stale answer is sold from the cache in one step",
        "return None if operation.credits and find_no_charge_reason(rendered) else rendered",
        "return rendered",
        ONE_WAY,
    ),
    fault(
        "toolserver/calls/payment_links.py",
        "a chat may spend all credits that were bought",
        "            link.credits,\n            expires_at",
        "            10**9,\n            expires_at",
        "tests/calls/test_payment_links.py",
    ),
    fault(
        "toolserver/calls/payment_links.py",
        "everything is encrypted under one key",
        "hmac.digest(self._purpose, key.seed",
        'hmac.digest(b"", key.seed',
        "tests/calls/test_payment_links.py",
    ),
)
