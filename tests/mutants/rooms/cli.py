"""Faults of the command line."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/cli/main.py",
        "foreign packages that hide ours are not looked for before a verb is imported",
        "if hidden := describe_hidden():",
        "if hidden := None:",
        "tests/cli/test_main.py",
    ),
    fault(
        "toolserver/cli/main.py",
        "the help imports every verb",
        "listing.format_commands(ctx, formatter)",
        "super().format_commands(ctx, formatter)",
    ),
    fault(
        "toolserver/cli/local_service.py",
        "the owner of this machine has limits",
        "limited=False, agent",
        "limited=True, agent",
    ),
    fault(
        "toolserver/cli/bridge.py",
        "a token is sent where others can read it",
        'if urlsplit(origin).scheme != "https" and not',
        'if urlsplit(origin).scheme == "https" and not',
    ),
    fault(
        "toolserver/cli/run_service.py",
        "the ready line comes before the service is prepared",
        "            if prepare is not None:\n",
        "            notice.publish(sockets)\n            if prepare is not None:\n",
    ),
    fault(
        "toolserver/cli/refund.py",
        "another token than the one being refunded is taken as proof",
        "standing.fingerprint != stored.fingerprint",
        "standing.fingerprint == standing.allowance",
    ),
    fault(
        "toolserver/cli/keys.py",
        "a new key is made beside receipts whose key is lost",
        "        if not after_loss:\n",
        "        if False:\n",
        "tests/cli/test_receipts.py",
    ),
    fault(
        "toolserver/cli/doctor.py",
        "sources that are unwell in a recording need nobody",
        "if probe.verdict in NEEDS_PERSON] if is_recorded",
        "if probe.verdict in NEEDS_PERSON] if not is_recorded",
    ),
)
