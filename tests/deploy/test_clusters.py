"""The images, and clusters of them as the files for Kubernetes and the page for four machines say.

What stands for what: a container for a machine, several that share their namespaces for a pod, and
an engine of Debian's for the image of Docker's that only a registry has.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.base_image import base_image
from tests.deploy import images
from tests.deploy.images import docker
from tests.deploy.kuberay import (
    FOLDER,
    HEAD_IS_WELL,
    NODE_IS_WELL,
    TOKEN_VARIABLES,
    cluster,
    documents,
    start_command,
)
from tests.deploy.machines import (
    PATIENCE_S,
    Pod,
    Surroundings,
    address_of,
    ask,
    network,
    wait_for,
)
from tests.layout.tree import ROOT

pytestmark = pytest.mark.docker

STORE = "/store"
LOOK = """\
import importlib.util, json, os, sys
print(json.dumps({
    "uid": os.getuid(),
    "there": [each for each in sys.argv[1:] if os.path.exists(each)],
    "tools": [each for each in ("pytest", "moto", "mypy") if importlib.util.find_spec(each)],
}))
"""


def test_the_driver_shows_its_help_and_plans_a_shipped_sweep() -> None:
    driver = images.built("driver")
    assert "Run benchmark sweeps" in docker("run", "--rm", driver)
    plan = docker("run", "--rm", driver, "plan", "manifests/sweeps/demo.yaml", "--json")
    assert json.loads(plan)["attempts"] == 36


def test_a_node_has_what_it_needs_and_nothing_of_where_it_was_built() -> None:
    node = images.built("node")
    outside = ["/etc/pip.conf", "/usr/bin/dockerd", "/usr/sbin/dockerd", "/opt/apiary/tests"]
    told = json.loads(docker("run", "--rm", node, "python", "-c", LOOK, *outside))
    assert told == {"uid": 1000, "there": [], "tools": []}
    docker("run", "--rm", node, "bash", "-c", "docker --version && iptables --version")
    # KubeRay may be told to use a login shell, which sets the path anew.
    docker("run", "--rm", node, "bash", "-lc", "ray --version && apiary --version")
    history = docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", node)
    assert "PIP_" not in history


@pytest.mark.ray
def test_a_job_on_pods_of_the_shipped_files_runs_an_attempt(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(0o777)
    token = secrets.token_hex(32)
    around = Surroundings(
        images={
            "apiary-node": images.built("node"),
            "docker": images.engine(),
        },
        variables={
            **TOKEN_VARIABLES,
            "RAY_AUTH_TOKEN": token,
            "APIARY_STORE": f"file://{STORE}",
            "APIARY_BASE_IMAGE": base_image(),
        },
        mounts={store: STORE, _small_sweep(tmp_path): "/opt/apiary/manifests/sweeps/demo.yaml"},
    )
    spec = cluster()
    (group,) = spec["workerGroupSpecs"]
    with network() as at:
        head = Pod(at, "head", spec["headGroupSpec"]["template"], around)
        service = "apiary-head-svc"
        command = start_command(spec["headGroupSpec"], address=None, autoscaling=True)
        head.start(service, command)
        node = Pod(at, "node", group["template"], around)
        node.start("node", start_command(group, address=f"{service}:6379", autoscaling=True))
        worker, engine = node.containers["ray-worker"], node.containers["docker"]
        _load(base_image(), engine)
        wait_for(head.containers["ray-head"], ["bash", "-c", HEAD_IS_WELL], "success", at)
        wait_for(worker, ["bash", "-c", NODE_IS_WELL], "success", at)

        (job,) = documents(FOLDER / "rayjob.yaml")
        where = f"http://{address_of(f'{at.name}-head-ground')}:8265/api/jobs/"
        name, status, told = _job(where, token, job["spec"]["entrypoint"])

        assert status == "SUCCEEDED", f"{told}\n{at.logs()}"
        # As the page says; the head's own output has nothing of what its drivers say.
        (look,) = re.findall(r"-c ray-head -- (ray job logs .*) JOB$", _page(), re.MULTILINE)
        asked = [word for word in look.split() if word != "--follow"]
        _, log = ask(head.containers["ray-head"], *asked, name)
        assert '"sweep": "demo-' in log
        assert "sweep demo-" not in at.logs()
        (result,) = store.glob("sweeps/*/attempts/*/*/result.json")
        record = json.loads(result.read_text("utf-8"))
        assert (record["verdict"], record["node"]) == ("pass", "node")
        # The worker itself may nothing; the helper beside it does both acts for it.
        _, itself = ask(worker, "cat", "/proc/self/status")
        assert re.search(r"^Uid:\s+1000\s", itself, re.MULTILINE)
        assert re.search(r"^CapBnd:\s+0+$", itself, re.MULTILINE)
        _, findings = ask(worker, "apiary", "doctor")
        assert "a loopback socket was opened inside one, and all its processes killed" in findings
        assert ask(engine, "docker", "ps", "-aq") == (0, "")


@pytest.mark.ray
def test_the_commands_for_four_machines_make_a_cluster(tmp_path: Path) -> None:
    page = (ROOT / "deploy" / "ray" / "README.md").read_text("utf-8")
    part = page.partition("## AWS")[0]
    exports = re.findall(r"^# (export .*)$", part, re.MULTILINE)
    (head_start,) = re.findall(r"^head# (ray start .*)$", part, re.MULTILINE)
    (node_start,) = re.findall(r"^node# (ray start .*)$", part, re.MULTILINE)
    assert len(exports) == 3
    (tmp_path / "ray-token").write_text(f"{secrets.token_hex(32)}\n")
    image = images.built("node")
    with network() as at:

        def machine(name: str, start: str) -> str:
            return at.run(
                name,
                image,
                *("--network", at.name, "--network-alias", name, "--hostname", name),
                *("--user", "0", "--init", "-v", f"{tmp_path}:/etc/apiary"),
                command=["bash", "-c", " && ".join([*exports, start, "exec sleep infinity"])],
            )

        head, _ = machine("head", head_start), machine("node1", node_start)
        status = ["bash", "-c", " && ".join([*exports, "ray status"])]
        wait_for(head, status, "0.0/2.0 apiary_node", at)
        assert ask(head, "ray", "status")[0] != 0, "the token is not asked for"


def _page() -> str:
    return (FOLDER / "README.md").read_text("utf-8")


def _small_sweep(folder: Path) -> Path:
    """The shipped sweep with one attempt, under its own name."""
    sweep = yaml.safe_load((ROOT / "manifests" / "sweeps" / "demo.yaml").read_text("utf-8"))
    sweep["tasks"]["include"] = sweep["tasks"]["include"][:1]
    sweep["conditions"] = sweep["conditions"][:1]
    sweep["attempts"] = 1
    small = folder / "demo.yaml"
    small.write_text(yaml.safe_dump(sweep))
    return small


def _load(image: str, engine: str) -> None:
    """Gives an image of this machine's engine to one that no registry serves."""
    with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
        subprocess.run(
            ["docker", "exec", "-i", engine, "docker", "load", "-q"],
            stdin=saved.stdout,
            stdout=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=True,
        )


def _job(where: str, token: str, entrypoint: str) -> tuple[str, str, str]:
    """Gives a job to Ray's dashboard as KubeRay does: its name, its end, and what it wrote."""

    def ask_for(place: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            where + place,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "x-ray-authorization": f"Bearer {token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    made = ask_for("", {"entrypoint": entrypoint})["submission_id"]
    give_up = time.monotonic() + PATIENCE_S
    while (status := ask_for(made)["status"]) in ("PENDING", "RUNNING"):
        assert time.monotonic() < give_up, ask_for(f"{made}/logs")["logs"]
        time.sleep(0.3)
    return made, status, ask_for(f"{made}/logs")["logs"]
