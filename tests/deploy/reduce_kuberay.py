"""Writes ``kuberay.json`` anew: the published schemas of KubeRay's objects, reduced.

``go mod download -json github.com/ray-project/kuberay/ray-operator@v1.5.1`` names the folder to
give as the first argument. Left out are descriptions, and the pod templates with Kubernetes' own
schemas in them, which the tests hold against those of ``kubernetes-validate``. KubeRay is under
the Apache License 2.0, as this project is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

VERSION = "v1"
POD_TEMPLATE = "x-pod-template"
"""Marks where a pod template was."""
TARGET = Path(__file__).with_name("kuberay.json")


def main(module: Path) -> None:
    """Reduces the schemas of a downloaded module."""
    kinds: dict[str, Any] = {}
    for name in ("rayclusters", "rayjobs"):
        text = (module / "config" / "crd" / "bases" / f"ray.io_{name}.yaml").read_text("utf-8")
        crd = yaml.safe_load(text)
        (found,) = (each for each in crd["spec"]["versions"] if each["name"] == VERSION)
        kinds[crd["spec"]["names"]["kind"]] = reduced(found["schema"]["openAPIV3Schema"])
    # A job has a whole cluster inside: once is enough.
    kinds["RayJob"]["properties"]["spec"]["properties"]["rayClusterSpec"] = {"type": "object"}
    told = {
        "source": f"github.com/ray-project/kuberay/ray-operator, {module.name.partition('@')[2]}",
        "license": "Apache-2.0",
        "kinds": kinds,
    }
    TARGET.write_text(json.dumps(told, separators=(",", ":"), sort_keys=True) + "\n", "utf-8")


def reduced(schema: Any) -> Any:
    """A schema without descriptions, and without what is inside a pod template."""
    if isinstance(schema, list):
        return [reduced(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = schema.get("properties")
    if isinstance(inner, dict) and "containers" in inner.get("spec", {}).get("properties", {}):
        return {"type": "object", POD_TEMPLATE: True}
    return {
        key: {name: reduced(each) for name, each in value.items()}
        if key == "properties"
        else reduced(value)
        for key, value in schema.items()
        if key != "description" or not isinstance(value, str)
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
