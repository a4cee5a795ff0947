"""The engine: knows how a tool is registered, run, cached, charged and shown, and no particular tool."""

__version__ = "0.1.0"
API_VERSION = "1.15.0"  # the version of the public API, not of this package
