import msgspec
import pytest

from tests.calls.parts import START, engine
from tests.calls.shop import premium_broken, premium_liar, premium_void
from tests.calls.toy import FIRST, SECOND, premium_report
from toolserver.core.models import TopLevel
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Registry, Tier, operation_of, tool
from toolserver.webhooks.payloads import PayloadSource

seen = []


class Heard(TopLevel):
    since: str | None


@tool(path="/api/pro/heard", title="Heard", tier=Tier.PREMIUM, credits=1, ttl_s=60, tags={"webhook_since": "since"})
async def premium_heard(ctx, since: str | None = None) -> Heard:
    """Says since when it was asked for news, so that a test can tell; for tests only."""
    seen.append(since)
    return Heard(since=since)


TOOLS = [premium_report, premium_broken, premium_liar, premium_void, premium_heard]
REGISTRY = Registry([operation_of(function) for function in TOOLS])


@pytest.fixture
async def source():
    async with engine(REGISTRY) as running:
        running.internet.serves(FIRST, {"value": 1})
        running.internet.serves(SECOND, {"value": 2})
        seen.clear()
        yield PayloadSource(REGISTRY, running.pipeline)


async def test_a_payload_is_the_answer_that_other_callers_get(source):
    payload = await source.compose("report", b'{"history":"30d"}')
    assert (payload.no_charge, payload.captured_at) == (None, START.timestamp() * 1000)
    assert msgspec.json.decode(payload.body)["notes"] == {"history": "30d"}
    assert (await source.compose("report", b'{"history":"30d"}')).digest == payload.digest
    assert source.decode(payload) is source.decode(payload)


async def test_premium_endpoints_have_short_names_and_their_own_parameters(source):
    assert source.endpoints == ["broken", "heard", "liar", "report", "void"]
    assert source.operation("nothing") is None
    source.check("report", {"history": "30d"})
    for params in ({"nothing": 1}, {"history": "1d"}):
        with pytest.raises(InvalidArguments):
            source.check("report", params)


async def test_what_fails_or_is_empty_is_a_payload_with_a_reason_not_to_charge(source):
    reasons = {name: (await source.compose(name, b"{}")).no_charge for name in ("liar", "void", "broken")}
    assert reasons == {"liar": "schema_failure", "void": "empty_result", "broken": "5xx"}


async def test_an_endpoint_that_knows_what_is_new_is_asked_for_that(source):
    moment = int(START.timestamp() * 1000) + 61_000
    await source.compose("heard", b"{}", moment)
    await source.compose("heard", b"{}", moment + 30_000)
    await source.compose("heard", b"{}")
    await source.compose("heard", b'{"since":"mine"}', moment)
    assert seen == ["2027-01-15T07:41:00Z", None, "mine"], "one composition for all of a minute, for what comes late"
