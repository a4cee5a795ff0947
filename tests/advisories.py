"""`python -m tests.advisories`: ask OSV about every locked version, and name those that an advisory is about.

Ends with 1 if there are any, and with 2 where OSV cannot be reached: the dated table in `docs/dependencies.md` remains.
"""

import sys

import httpx

from tests.test_lock_files import pinned

OSV = "https://api.osv.dev/v1/querybatch"


def find_advisories(versions: dict[str, str], client: httpx.Client) -> dict[str, list[str]]:
    """Return the ids of advisories by package and version. Raise httpx.HTTPError."""
    rows = list(versions.items())
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in rows]
    answer = client.post(OSV, json={"queries": queries}).raise_for_status().json()
    found = zip(rows, answer["results"], strict=True)
    return {
        f"{name} {version}": [each["id"] for each in row["vulns"]] for (name, version), row in found if row.get("vulns")
    }


def main() -> int:
    try:
        with httpx.Client(timeout=30) as client:
            found = find_advisories(pinned(), client)
    except httpx.HTTPError as error:
        print(f"OSV cannot be reached: {error}")
        return 2
    for package, ids in found.items():
        print(f"{package}: {', '.join(ids)}")
    print(f"{len(pinned())} locked versions, advisories about {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
