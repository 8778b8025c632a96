"""The files for Kubernetes, held against the published schemas and against one another."""

from __future__ import annotations

import copy
import ipaddress
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import click
import jsonschema
import kubernetes_validate
import pytest
import yaml

from scheduler.cli import apiary
from scheduler.ray_client import NODE_RESOURCE, OBJECT_STORE_BYTES
from tests.deploy.kuberay import (
    FOLDER,
    check,
    cluster,
    documents,
    quantity,
    ray_container,
    start_command,
)
from tests.layout.tree import ROOT
from workers.config import DOOR_VARIABLE, METRICS_VARIABLE
from workers.container.network import RULES

OBJECTS = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))
APART = {"cronjob.yaml", "rayjob.yaml"}
"""What is not applied with the rest."""
METADATA = "169.254.0.0/16"
NAMES = {"cidr": "169.254.20.10/32"}
"""Where NodeLocal DNSCache answers."""
OPERATOR = {"app.kubernetes.io/component": "kuberay-operator"}
"""What the pods of KubeRay's operator have, by its chart and by its kustomization."""


def node_group() -> dict[str, Any]:
    (group,) = cluster()["workerGroupSpecs"]
    found: dict[str, Any] = group
    return found


def pod_templates() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "head", cluster()["headGroupSpec"]["template"]
    yield "node", node_group()["template"]
    (cronjob,) = documents(FOLDER / "cronjob.yaml")
    yield "schedule", cronjob["spec"]["jobTemplate"]["spec"]["template"]


def containers(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    spec = pod["spec"]
    return {each["name"]: each for each in [*spec.get("initContainers", ()), *spec["containers"]]}


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container.get("env", ())}


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.name)
def test_every_object_is_of_the_published_schema(path: Any) -> None:
    for document in documents(path):
        check(document)


def test_a_wrong_field_is_found_wherever_it_is() -> None:
    (right,) = documents(FOLDER / "raycluster.yaml")
    for wrong in ("spec", "authOptions", "workerGroupSpecs"):
        changed = copy.deepcopy(right)
        place = changed["spec"] if wrong == "spec" else changed["spec"][wrong]
        (place[0] if isinstance(place, list) else place)["maxReplica"] = 1
        with pytest.raises(jsonschema.ValidationError, match="maxReplica"):
            check(changed)
    changed = copy.deepcopy(right)
    ray_container(changed["spec"]["headGroupSpec"])["resource"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        check(changed)
    (job,) = documents(FOLDER / "rayjob.yaml")
    job["spec"]["backoffLimit"] = "none"
    with pytest.raises(jsonschema.ValidationError):
        check(job)


def test_the_kustomization_has_every_file_and_every_image() -> None:
    listed = set(KUSTOMIZATION["resources"])
    assert listed == {path.name for path in OBJECTS} - APART
    text = (FOLDER / "kustomization.yaml").read_text("utf-8")
    assert "# - cronjob.yaml" in text
    used = {each["image"] for _, pod in pod_templates() for each in containers(pod).values()}
    assert used == {each["name"] for each in KUSTOMIZATION["images"]}


def test_ray_is_of_the_version_that_the_image_has() -> None:
    lock = (ROOT / "deploy" / "images" / "requirements.lock").read_text("utf-8")
    assert re.search(r"^ray==(\S+)", lock, re.MULTILINE)[1] == cluster()["rayVersion"]  # type: ignore[index]


def test_ray_is_started_as_apiary_needs_it() -> None:
    address = "apiary-head-svc:6379"
    head = start_command(cluster()["headGroupSpec"], address=None, autoscaling=True)
    node = start_command(node_group(), address=address, autoscaling=True)
    for command in (head, node):
        assert f"--object-store-memory={OBJECT_STORE_BYTES}" in command.split()
        assert "--block" in command.split()
    assert "--head" in head.split()
    assert "--no-monitor" in head.split()
    assert "--num-cpus=0" in head.split()
    assert NODE_RESOURCE not in head
    assert f"--address={address}" in node.split()
    assert node.endswith(r'--resources="{\"apiary_node\": 1}"')
    (cronjob,) = documents(FOLDER / "cronjob.yaml")
    assert f"ray start --address {address} --num-cpus 0" in str(cronjob)


def test_the_three_of_a_node_pod_share_what_they_must() -> None:
    node = containers(node_group()["template"])
    engine, door, worker = node["docker"], node["door"], node["ray-worker"]
    told = environment(worker)
    shared = "/run/apiary"
    for each in (engine, door, worker):
        mounts = {mount["mountPath"]: mount for mount in each["volumeMounts"]}
        assert mounts[shared] == {"name": "apiary", "mountPath": shared}
        assert environment(each)["DOCKER_HOST"] == f"unix://{shared}/docker.sock"
    assert f"--host={told['DOCKER_HOST']}" in engine["args"]
    assert door["args"][:2] == ["--socket", told[DOOR_VARIABLE]]
    assert told["APIARY_WORKSPACE"].startswith(f"{shared}/")
    user = str(worker["securityContext"]["runAsUser"])
    assert door["args"][2:] == ["--allow-uid", user]
    assert f"--group={worker['securityContext']['runAsGroup']}" in engine["args"]
    # The numbers of processes that the engine tells are those of its own namespace.
    assert node_group()["template"]["spec"]["shareProcessNamespace"] is True
    assert all(each["restartPolicy"] == "Always" for each in (engine, door))
    assert [each["name"] for each in node_group()["template"]["spec"]["initContainers"]] == [
        "docker",
        "door",
    ]
    port = told[METRICS_VARIABLE].rpartition(":")[2]
    assert str(worker["ports"][0]["containerPort"]) == port
    limits = (engine["resources"]["limits"]["memory"], worker["resources"]["limits"]["memory"])
    assert limits[0] == limits[1], "a worker counts its slots by its own limit"


@pytest.mark.parametrize("name", ["head", "node", "schedule"])
def test_nothing_has_more_privilege_than_it_needs(name: str) -> None:
    pod = dict(pod_templates())[name]
    privileged = {"docker", "door"} if name == "node" else set()
    for container in containers(pod).values():
        context = container["securityContext"]
        merged = {**pod["spec"].get("securityContext", {}), **context}
        if container["name"] in privileged:
            assert context == {"privileged": True, "runAsUser": 0}
            continue
        assert merged["runAsNonRoot"] is True
        assert merged["runAsUser"] == 1000
        assert merged["seccompProfile"] == {"type": "RuntimeDefault"}
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
    # Of the head KubeRay's autoscaler needs the account.
    assert pod["spec"].get("automountServiceAccountToken", name == "head") is (name == "head")


def test_every_container_says_what_it_needs() -> None:
    for _, pod in pod_templates():
        for container in containers(pod).values():
            resources = container["resources"]
            assert {"cpu", "memory"} <= set(resources["requests"]), container["name"]
            least = quantity(resources["requests"]["memory"])
            assert least <= quantity(resources["limits"]["memory"]), container["name"]


def test_keys_stand_in_secrets_alone_and_only_where_they_are_used() -> None:
    for path in OBJECTS:
        assert {"Secret", "ConfigMap"}.isdisjoint(each["kind"] for each in documents(path))
    for name, pod in pod_templates():
        for container in containers(pod).values():
            for variable, value in environment(container).items():
                if re.search(r"KEY|TOKEN|SECRET", variable) and "TLS" not in variable:
                    assert value == "" or value.startswith("/etc/apiary/keys/"), variable
            if container["name"] in ("docker", "door"):
                assert "envFrom" not in container
                assert "keys" not in {each["name"] for each in container["volumeMounts"]}
        volumes = {each["name"] for each in pod["spec"].get("volumes", ())}
        assert ("keys" in volumes) is (name == "node")


def test_budgets_and_policies_choose_the_pods_that_are_there() -> None:
    labels = {name: pod["metadata"]["labels"] for name, pod in pod_templates()}
    chosen: dict[str, list[str]] = {}
    for document in chain(
        documents(FOLDER / "disruption.yaml"), documents(FOLDER / "network-policy.yaml")
    ):
        spec = document["spec"]
        wanted = spec.get("selector", spec.get("podSelector"))["matchLabels"]
        where = f"{document['kind']} {document['metadata']['name']}"
        chosen[where] = [name for name, has in labels.items() if wanted.items() <= has.items()]
    assert chosen == {
        "PodDisruptionBudget apiary-head": ["head"],
        "PodDisruptionBudget apiary-nodes": ["node"],
        "NetworkPolicy apiary": ["head", "node", "schedule"],
        "NetworkPolicy apiary-head": ["head"],
    }


def test_no_policy_lets_anybody_reach_a_metadata_service() -> None:
    for policy in documents(FOLDER / "network-policy.yaml"):
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        for rule in policy["spec"]["egress"]:
            assert rule["to"], "a rule without a target allows everything"
            for block in (to["ipBlock"] for to in rule["to"] if "ipBlock" in to):
                if block == NAMES:
                    assert {each["port"] for each in rule["ports"]} == {53}
                    continue
                assert METADATA in block["except"]
                assert rule["ports"]


def test_images_can_be_built_where_the_fence_of_tasks_would_let_them() -> None:
    every, _ = documents(FOLDER / "network-policy.yaml")
    (rule,) = [
        each
        for each in every["spec"]["egress"]
        if any(port["port"] == 80 for port in each.get("ports", ()))
    ]
    (block,) = (to["ipBlock"] for to in rule["to"])
    barred = [ipaddress.ip_network(each) for each in block["except"]]
    fenced = [each.match[each.match.index("-d") + 1] for each in RULES if "-d" in each.match]
    assert len(fenced) >= 4
    for each in map(ipaddress.ip_network, fenced):
        assert any(each.subnet_of(network) for network in barred), each


def test_names_are_resolved_and_the_operator_reaches_the_head_however_both_were_installed() -> None:
    every, head = documents(FOLDER / "network-policy.yaml")
    (names,) = [
        rule
        for rule in every["spec"]["egress"]
        if any(each["port"] == 53 for each in rule.get("ports", ()))
    ]
    assert {"ipBlock": NAMES} in names["to"]
    ((operator,),) = (rule["from"] for rule in head["spec"]["ingress"])
    assert operator["podSelector"]["matchLabels"] == OPERATOR


def test_the_job_gives_a_command_line_that_there_is() -> None:
    (job,) = documents(FOLDER / "rayjob.yaml")
    assert job["spec"]["clusterSelector"] == {"ray.io/cluster": "apiary"}
    folder, _, command = job["spec"]["entrypoint"].partition(" && exec apiary ")
    assert folder == "cd /opt/apiary"
    name, sweep, *options = command.split()
    given = apiary.get_command(click.Context(apiary), name)
    assert given is not None
    assert (ROOT / sweep).is_file()
    known = {option for parameter in given.params for option in parameter.opts}
    assert {word for word in options if word.startswith("--")} <= known
    assert options[options.index("--max-nodes") + 1] == str(node_group()["maxReplicas"])
