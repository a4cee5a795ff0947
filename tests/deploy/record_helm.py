"""`python -m tests.deploy.record_helm`: let Helm render the chart with each set of values, and record what it wrote.

Helm is no part of a development environment; its Go SDK comes as a package of 75 MB: `pip install helm-python-sdk`. The
recorded manifests are what test_helm.py compares with those of kustomize, and say of which chart they are.
"""

import hashlib
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.architecture.code import ROOT

FOLDER = ROOT / "deploy" / "helm"
CHART, SETS = FOLDER / "toolserver", FOLDER / "sets"
RECORDED = Path(__file__).parent / "helm"
RELEASE, NOTE = "toolserver", 1  # a finding of this severity is a wish


def digest_chart(name: str) -> str:
    """Return the SHA-256 (hex) of the chart's files and of a set of values."""
    files = [*sorted(path for path in CHART.rglob("*") if path.is_file()), SETS / f"{name}.yaml"]
    parts = [f"{path.relative_to(FOLDER)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def list_sets() -> list[str]:
    return sorted(path.stem for path in SETS.glob("*.yaml"))


def render(name: str) -> list[dict[str, Any]]:
    """Return the manifests that Helm writes for a set of values, after checking the values and the chart."""
    import helm_python  # type: ignore[import-not-found]

    values = yaml.safe_load((SETS / f"{name}.yaml").read_text()) or {}
    findings = helm_python.lint(CHART, values, strict=True)
    errors = [each for each in findings["messages"] if each["severity"] > NOTE]
    assert not errors, errors
    chart = helm_python.Chart.load(CHART)
    chart.validate_schema(values)
    written = chart.render(values, name=RELEASE, namespace="default", is_install=True)
    return [each for path in sorted(written) for each in yaml.safe_load_all(written[path]) if each]


def main() -> int:
    import helm_python

    RECORDED.mkdir(exist_ok=True)
    for name in list_sets():
        manifests = render(name)
        head = f"# Rendered by Helm {helm_python.helm_sdk_version()} from deploy/helm, sha256 {digest_chart(name)}\n"
        text = yaml.safe_dump_all(manifests, sort_keys=True, width=120)
        (RECORDED / f"{name}.yaml").write_text(head + text)
        print(f"{name}: {len(manifests)} manifests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
