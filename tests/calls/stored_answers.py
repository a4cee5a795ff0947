"""Rendered answers that outlive a service, for tests: a dictionary in place of the disk."""

import msgspec


class Disk:
    """Stored answers in a dictionary."""

    def __init__(self):
        self.kept = {}

    async def load_answer(self, key):
        return self.kept.get(key)

    def save_answer(self, key, stored, *, expires_at):
        self.kept[key] = stored


class Packed(msgspec.Struct):
    payload: bytes
    facts: dict
