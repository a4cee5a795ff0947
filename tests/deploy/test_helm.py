"""The chart of deploy/helm, as Helm itself rendered it, is the same as the manifests of deploy/kubernetes.

What Helm wrote is recorded (`python -m tests.deploy.record_helm`), with the digest of the chart that it is of.
"""

import importlib.util
import json
import re
from typing import Any

import pytest
import yaml

from tests.deploy.record_helm import CHART, RECORDED, digest_chart, list_sets, render
from tests.deploy.test_files import find_field
from tests.deploy.test_kubernetes import OVERLAYS, build

HASHED = re.compile(r"\btoolserver-settings-[a-z0-9]{10}\b")  # kustomize names a config map by its content


def read_recorded(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((RECORDED / f"{name}.yaml").read_text()))


def by_name(manifests: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Manifests by kind and name, without what only one of the two tools writes."""
    plain = json.loads(HASHED.sub("toolserver-settings", json.dumps(manifests)))
    for manifest in plain:
        forget_annotations(manifest["metadata"])
        forget_annotations(manifest.get("spec", {}).get("template", {}).get("metadata", {}))
    return {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in plain}


def forget_annotations(metadata: dict[str, Any]) -> None:
    """Without those by which Helm orders hooks and starts pods anew."""
    own = {name: text for name, text in metadata.pop("annotations", {}).items() if not re.match("helm.sh/|check", name)}
    if own:
        metadata["annotations"] = own


def test_there_is_a_set_of_values_for_each_overlay():
    assert list_sets() == OVERLAYS


@pytest.mark.parametrize("name", OVERLAYS)
def test_what_is_recorded_is_of_the_chart_as_it_is(name):
    head = (RECORDED / f"{name}.yaml").read_text().splitlines()[0]
    assert re.fullmatch(r"# Rendered by Helm v\d+\.\d+\.\d+ from deploy/helm, sha256 ([0-9a-f]{64})", head)
    assert head.endswith(digest_chart(name)), "python -m tests.deploy.record_helm"


@pytest.mark.live
@pytest.mark.parametrize("name", OVERLAYS)
def test_helm_and_kustomize_write_the_same(name):
    helm, kustomize = by_name(read_recorded(name)), by_name(build(name))
    assert helm.keys() == kustomize.keys()
    for key in helm:
        assert helm[key] == kustomize[key], key


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_migration_is_run_by_hooks_and_new_settings_start_new_pods(name):
    """What the comparison leaves out."""
    recorded = {(each["kind"], each["metadata"]["name"]): each for each in read_recorded(name)}
    pod = recorded["Deployment", "toolserver"]["spec"]["template"]["metadata"]
    assert re.fullmatch("[0-9a-f]{64}", pod["annotations"]["checksum/settings"])
    job = recorded.get(("Job", "toolserver-migration"))
    assert (job is None) is (name == "one")
    if job is not None:
        assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-install,pre-upgrade"


def test_values_that_are_none_of_the_charts_are_refused_by_its_schema():
    schema, values = (
        json.loads((CHART / "values.schema.json").read_text()),
        yaml.safe_load((CHART / "values.yaml").read_text()),
    )
    assert values.keys() == schema["properties"].keys() - {"global"}
    assert schema["additionalProperties"] is False
    assert all(find_field(name) is not None for name in values["settings"])


def test_helm_writes_today_what_is_recorded():
    """Where Helm is installed."""
    if importlib.util.find_spec("helm_python") is None:
        return
    for name in list_sets():
        assert render(name) == read_recorded(name), name
