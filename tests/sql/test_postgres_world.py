"""A database holds real credits or simulated ones, and remembers which."""

import pytest

from tests.postgres import terms_of
from toolserver.sql.errors import OtherWorld
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.postgres_migrate import claim_database

pytestmark = pytest.mark.live


@pytest.mark.parametrize(("first", "held"), [(True, "simulated"), (False, "real")])
async def test_what_a_database_holds_is_decided_by_the_first_who_opens_it(tmp_path, first, held):
    async with open_postgres(terms_of(tmp_path)) as store:
        await store.alone(claim_database(simulated=first))
        await store.alone(claim_database(simulated=first))
        with pytest.raises(OtherWorld, match=f"holds {held} credits"):
            await store.alone(claim_database(simulated=not first))
