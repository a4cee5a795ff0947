"""The keys that the instances of one database publish together: who may start, and what all of them show.

Each instance has the key files of the same mounted secret. A rotation reaches them one after the other: whose file has
a key that the database publishes already may publish the new ones beside it, so nobody is locked out by being the first
or the last. What one of them revoked or retired is revoked or retired for all. This keeps a forgotten mount from making
keys of its own; against somebody who may write to the database it protects nothing.
"""

from dataclasses import replace

from toolserver.errors import ToolserverError
from toolserver.receipts.keys import Keys, join_keys


class KeysDiffer(ToolserverError):
    """The database publishes other keys: this instance has those of another service, or a secret was not mounted."""


def agree_on_keys(held: Keys, published: Keys, *, name: str) -> Keys:
    """The keys to publish from now on, without private halves: those of before, and what the held ones add to them.

    `name` is what the keys are for, as a message calls it.

    Raises:
        KeysDiffer: keys are published, and none of the held ones is among them.
    """
    listed = {key.kid for key in published}
    if published and not any(key.kid in listed for key in held):
        raise KeysDiffer(
            f"none of the keys for {name} here is one that the database publishes: give every instance the same ones:"
            f" `scaling.keys_dir`, a mounted folder that `toolserver keys make` wrote"
        )
    return join_keys(replace(key, seed=None) for key in (*published, *held))
