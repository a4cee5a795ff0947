"""Complete a reissue: the new token gets the account and the webhook subscriptions in one transaction."""

from functools import partial

from toolserver.money.purchases.sql_reissues import complete_reissue
from toolserver.money.purchases.sql_store import ROOM
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit
from toolserver.webhooks.sql_tables import SqlTables


async def replace_lost_token(file: GroupCommit, id: str, successor: str, now: int) -> None:
    """Carry out a reissue: `successor` is the SHA-256 (hex) of the new token. Raises ReissueRefused, RevokedToken."""
    await file.alone(partial(_replace, id, successor, now), room=ROOM)


def _replace(id: str, successor: str, now: int, db: SqlConnection) -> None:
    SqlTables(db).move_owner(*complete_reissue(id, successor, now, db))
