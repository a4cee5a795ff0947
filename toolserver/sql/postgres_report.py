"""Report on a database server for `toolserver doctor`: its version, its connections, and who holds which lease."""

from typing import Any

from toolserver.sql.connection import SqlConnection, is_shared, read_clock

_SERVER = """SELECT current_setting('server_version'), (SELECT max(number) FROM migration),
  (SELECT count(DISTINCT (client_addr, client_port)) FROM pg_stat_activity
   WHERE datname = current_database() AND application_name = 'toolserver')"""
_LEASES = "SELECT name, fence, expires_at FROM lease ORDER BY name"


def report_database(db: SqlConnection) -> dict[str, Any] | None:
    """Return the versions of the server and of our tables, our connections, and the leases with their seconds left.

    Returns None for a file.
    """
    if not is_shared(db):
        return None
    version, tables, connections = db.execute(_SERVER).fetchone()
    now = read_clock(db, 0)
    leases = [
        {"name": name, "number": fence, "seconds_left": max(0, expires_at - now) // 1000}
        for name, fence, expires_at in db.execute(_LEASES)
    ]
    return {"server": f"PostgreSQL {version}", "tables": tables, "connections": connections, "leases": leases}
