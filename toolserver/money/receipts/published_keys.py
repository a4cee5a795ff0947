"""Decides which instances of one database may start, by their keys, and which keys all of them publish.

Each instance has the key files of the same mounted secret. A rotation reaches the instances one after the other. An
instance whose file has a key that the database publishes already may publish its new keys too, so no instance is locked
out because it comes first or last. A key that one instance revoked or retired is revoked or retired for all. This keeps
an instance whose mount was forgotten from using keys of its own. It does not protect against somebody who can write to
the database.
"""

from dataclasses import replace

from toolserver.errors import ToolserverError
from toolserver.money.receipts.keys import Keys, join_keys


class KeysDiffer(ToolserverError):
    """The database publishes other keys: this instance has those of another service, or its secret was not mounted."""


def agree_on_keys(held: Keys, published: Keys, *, name: str) -> Keys:
    """Return the keys to publish from now on, without private halves: the published ones with the held ones added.

    `name` says in messages what the keys are for.

    Raises:
        KeysDiffer: keys are published, and none of the held ones is among them.
    """
    listed = {key.kid for key in published}
    if published and not any(key.kid in listed for key in held):
        raise KeysDiffer(
            f"the database publishes none of the keys for {name} here: give every instance the same keys by setting"
            f" `scaling.keys_dir` to a mounted folder that `toolserver keys make` wrote"
        )
    return join_keys(replace(key, seed=None) for key in (*published, *held))
