"""Everything that is tested. With HTTP_LIBRARY=httpx2, tests and product run on that fork of httpx."""

import os
import sys

if os.environ.get("HTTP_LIBRARY") == "httpx2" and "httpx" not in sys.modules:  # another program may load a test module
    import httpx2

    httpx2.alias_httpx()
