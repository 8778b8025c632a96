"""What KubeRay makes of a RayCluster, as far as the tests need it, and its schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from tests.deploy.reduce_kuberay import POD_TEMPLATE, TARGET
from tests.layout.tree import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
KUBERNETES = "1.29"
"""The oldest version whose pods may have sidecars among their init containers."""

DEFAULTS = {"dashboard-agent-listen-port": "52365", "metrics-export-port": "8080", "block": "true"}
HEAD_DEFAULTS = {"dashboard-host": "0.0.0.0"}
SWITCHES = ("true", "false")
NO_SWITCHES = ("log-color", "include-dashboard")
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

NODE_IS_WELL = "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz"
HEAD_IS_WELL = "wget --tries 1 -T 10 -q -O- http://localhost:8265/api/gcs_healthz"
"""KubeRay's own probes, each of whose answers must have ``success`` in it."""

TOKEN_VARIABLES = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": ""}
"""What ``authOptions`` puts into Ray's containers."""


def documents(path: Path) -> list[dict[str, Any]]:
    """Every object of a file."""
    return [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each is not None]


def cluster() -> dict[str, Any]:
    """The spec of the shipped RayCluster."""
    (found,) = documents(FOLDER / "raycluster.yaml")
    spec: dict[str, Any] = found["spec"]
    return spec


def start_command(group: Mapping[str, Any], *, address: str | None, autoscaling: bool) -> str:
    """The command that KubeRay gives to a group's Ray container.

    The rule is that of ``controllers/ray/common/pod.go`` in KubeRay 1.5.1.

    Args:
        group: ``headGroupSpec``, or one of ``workerGroupSpecs``.
        address: of the head, None for the head itself.
        autoscaling: whether the cluster's autoscaler runs beside the head.
    """
    parameters = {**DEFAULTS, **({"address": address} if address else HEAD_DEFAULTS)}
    if address is None and autoscaling:
        parameters["no-monitor"] = "true"
    limits = ray_container(group)["resources"].get("limits", {})
    if "memory" in limits:
        parameters["memory"] = str(quantity(limits["memory"]))
    parameters |= group["rayStartParams"]
    words = [
        f"--{name}" if value in SWITCHES and name not in NO_SWITCHES else f"--{name}={value}"
        for name, value in sorted(parameters.items())
        if value != "false" or name in NO_SWITCHES
    ]
    head = "" if address else "--head "
    return f"ulimit -n 65536; ray start {head}{'  '.join(words)}"


def ray_container(group: Mapping[str, Any]) -> dict[str, Any]:
    """The container that KubeRay takes for Ray's: the first."""
    found: dict[str, Any] = group["template"]["spec"]["containers"][0]
    return found


def quantity(text: str) -> int:
    """A quantity of Kubernetes in bytes."""
    return int(text[:-2]) * UNITS[text[-2:]] if text[-2:] in UNITS else int(text)


def check(document: Mapping[str, Any]) -> None:
    """Holds an object against the published schema of its kind.

    Raises:
        jsonschema.ValidationError: KubeRay's refuses it.
        kubernetes_validate.ValidationError: Kubernetes' does.
    """
    published = json.loads(TARGET.read_text("utf-8"))["kinds"]
    if document["kind"] not in published:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
        return
    schema = published[document["kind"]]
    jsonschema.Draft202012Validator(_closed(schema)).validate(document)
    for template in _templates(document, schema):
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def _closed(schema: Any) -> Any:
    """The schema with unknown fields refused, which an API server would drop without a word."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        closed.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        closed["type"] = ["integer", "string"]
    return closed


def _templates(value: Any, schema: Any) -> Iterator[Mapping[str, Any]]:
    """The pod templates in a value."""
    if schema.get(POD_TEMPLATE):
        yield value
    for name, inner in schema.get("properties", {}).items():
        if isinstance(value, dict) and name in value:
            yield from _templates(value[name], inner)
    if isinstance(value, list) and "items" in schema:
        for each in value:
            yield from _templates(each, schema["items"])
