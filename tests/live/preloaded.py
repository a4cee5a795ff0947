"""Importing this module imports the product: `multiprocessing` does so in the process that forks."""

from tests.live.preloading import import_all

import_all()
