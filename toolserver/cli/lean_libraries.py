"""Imports libraries for `toolserver serve` without the parts of them that it does not use.

Only the program imports this, before anything that uses them. In a process of somebody else the libraries stay whole.
"""

from toolserver.core.import_guard import left_out

WITH_METRICS = ("http.server", "urllib.request", "wsgiref", "wsgiref.simple_server")
"""What prometheus-client brings along to serve metrics itself and to push them; our own server serves them."""

WITH_SETTINGS = ("argparse", "pydantic_settings.sources.providers.cli")
"""What pydantic-settings reads options with; click does that here."""

with left_out(*WITH_METRICS):
    import prometheus_client

with left_out(*WITH_SETTINGS):
    import pydantic_settings

__all__ = ("prometheus_client", "pydantic_settings")
