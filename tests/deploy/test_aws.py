"""The cluster file for AWS, read by Ray itself and carried out on a simulated EC2."""

from __future__ import annotations

import base64
import copy
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from moto import mock_aws

from scheduler.ray_client import NODE_RESOURCE, OBJECT_STORE_BYTES
from tests.layout.tree import ROOT

FOLDER = ROOT / "deploy" / "ray"
REGION = "eu-central-1"
STORE_CALLS = {
    "get_object": "s3:GetObject",
    "head_object": "s3:GetObject",
    "put_object": "s3:PutObject",
    "delete_object": "s3:DeleteObject",
    "list_objects_v2": "s3:ListBucket",
}
"""The calls of ``workers/storage/s3.py``, and what they need to be allowed."""


def shipped() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "aws.yaml").read_text("utf-8"))
    return found


@contextmanager
def simulated_aws(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Any]:
    """A simulated EC2 with what the page says to make, and the client of it."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws():
        iam = boto3.client("iam")
        for name in ("apiary-head", "apiary-node"):
            iam.create_instance_profile(InstanceProfileName=name)
        yield boto3.client("ec2")


@pytest.mark.long
def test_ray_makes_spot_machines_of_it_whose_containers_reach_no_credentials(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from ray.autoscaler._private.aws.config import bootstrap_aws
    from ray.autoscaler._private.aws.node_provider import AWSNodeProvider
    from ray.autoscaler._private.util import prepare_config, validate_config

    with simulated_aws(monkeypatch, tmp_path) as ec2:
        (vpc,) = ec2.describe_vpcs()["Vpcs"]
        group = ec2.create_security_group(
            GroupName="apiary", Description="apiary", VpcId=vpc["VpcId"]
        )["GroupId"]
        config = shipped()
        for kind in config["available_node_types"].values():
            assert kind["node_config"]["SecurityGroupIds"] == ["sg-00000000000000000"]
            kind["node_config"]["SecurityGroupIds"] = [group]
        config = prepare_config(config)
        validate_config(config)
        config = bootstrap_aws(config)

        provider = AWSNodeProvider(config["provider"], config["cluster_name"])
        made = {}
        for name, count in (("head", 1), ("node", 2)):
            node_config = copy.deepcopy(config["available_node_types"][name]["node_config"])
            tags = {"ray-node-type": name}
            made[name] = list(provider.create_node(node_config, tags, count))
        found = {
            instance["InstanceId"]: instance
            for reservation in ec2.describe_instances()["Reservations"]
            for instance in reservation["Instances"]
        }
        first = {
            each: ec2.describe_instance_attribute(InstanceId=each, Attribute="userData")
            for each in found
        }
        rules = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]

    assert rules == [], "Ray has opened the group to the world"
    for name, ids in made.items():
        for each in (found[place] for place in ids):
            assert (each.get("InstanceLifecycle") == "spot") is (name == "node")
            assert each["IamInstanceProfile"]["Arn"].endswith(f"/apiary-{name}")
            assert [has["GroupId"] for has in each["SecurityGroups"]] == [group]
            assert each["MetadataOptions"]["HttpTokens"] == "required"
            assert each["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
            # Ray copies its files with rsync before any command of ours is run.
            script = base64.b64decode(first[each["InstanceId"]]["UserData"]["Value"]).decode()
            assert script.startswith("#cloud-config\n")
            (command,) = yaml.safe_load(script)["bootcmd"]
            assert "apt-get install -y -qq rsync tmux" in command
    assert made["node"]
    node, head = (config["available_node_types"][name] for name in ("node", "head"))
    assert (node["min_workers"], config["max_workers"]) == (0, node["max_workers"])
    assert node["resources"][NODE_RESOURCE] == 1
    assert NODE_RESOURCE not in head["resources"]


@pytest.mark.long
def test_a_wrong_field_is_found_by_rays_schema() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = shipped() | {"idle_timeout": 3}
    with pytest.raises(Exception, match="idle_timeout"):
        validate_config(prepare_config(config))


def test_what_is_started_says_what_the_machine_types_say() -> None:
    config = shipped()
    (_, head), (_, node) = config["head_start_ray_commands"], config["worker_start_ray_commands"]
    types = config["available_node_types"]
    for command, kind in ((head, types["head"]), (node, types["node"])):
        assert f"--num-cpus={kind['resources']['CPU']}" in command.split()
        assert f"--object-store-memory={OBJECT_STORE_BYTES}" in command.split()
        assert "RAY_AUTH_MODE=token" in command.split()
    resources = re.search(r"--resources='(.*?)'", node)
    assert resources is not None
    own = {name: count for name, count in types["node"]["resources"].items() if name != "CPU"}
    assert json.loads(resources[1]) == own
    assert "--resources" not in head


@pytest.mark.long
def test_the_autoscaler_knows_a_machine_again_though_its_ray_is_started_by_sudo(
    tmp_path: Path,
) -> None:
    from ray.autoscaler._private.util import with_envs

    machine = Machine(tmp_path, {"ray": 'env > "$HERE/told-$1"'})
    # As autoscaler v2 does: a node that does not say its instance is ended after half an hour.
    own = {
        "RAY_HEAD_IP": "10.0.0.7",
        "RAY_CLOUD_INSTANCE_ID": "i-1234567890",
        "RAY_NODE_TYPE_NAME": "node",
    }
    for command in with_envs(shipped()["worker_start_ray_commands"], own):
        machine.run(command)
    told = dict(line.split("=", 1) for line in (tmp_path / "told-start").read_text().splitlines())
    assert told["RAY_CLOUD_INSTANCE_ID"] == "i-1234567890"
    assert told["RAY_NODE_TYPE_NAME"] == "node"
    assert told["RAY_AUTH_TOKEN_PATH"] == f"{tmp_path}/.ray/auth_token"


def test_what_root_set_up_belongs_to_the_user_whose_drivers_write_there(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {})
    machine.program(tmp_path / "bin" / "chown", f'echo "$@" >>{tmp_path}/done')
    script = tmp_path / "setup.sh"
    script.write_text(f"mkdir $(dirname $0)/../.apiary && echo set up >>{tmp_path}/done\n")
    with tarfile.open(tmp_path / "apiary.tar.gz", "w:gz") as archive:
        archive.add(script, "deploy/setup.sh")
    for command in shipped()["setup_commands"]:
        machine.run(command)
    folder = tmp_path / "apiary"
    assert (folder / ".apiary").is_dir()
    done = (tmp_path / "done").read_text().splitlines()
    assert done == ["set up", f"-R {os.getuid()}:{os.getgid()} {folder}"]


class Machine:
    """A home where the file's commands are run, with a ``sudo`` that drops variables."""

    def __init__(self, home: Path, programs: dict[str, str]) -> None:
        """``programs``: scripts of the environment's folder, by name."""
        self._home = home
        self.program(home / "bin" / "sudo", f'exec env -i PATH="$PATH" HERE={home} "$@"')
        for name, script in programs.items():
            self.program(home / "apiary" / ".venv" / "bin" / name, script)

    @staticmethod
    def program(path: Path, script: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, command: str) -> None:
        """As Ray does on a machine, by a shell."""
        path = f"{self._home}/bin:{os.environ['PATH']}"
        environment = {"HOME": str(self._home), "PATH": path}
        subprocess.run(["bash", "-c", command], env=environment, check=True, timeout=60)


def test_keys_and_token_are_files_and_no_part_of_it() -> None:
    config = shipped()
    text = (FOLDER / "aws.yaml").read_text("utf-8")
    for name, value in re.findall(r"(\w*(?:KEY|TOKEN)\w*)=(\S+)", text):
        assert value.startswith("$HOME/"), name
    assert all(not local.startswith("/") for local in config["file_mounts"].values())
    scripts = re.findall(r"\$HOME/apiary/(\S+\.sh)", text)
    assert scripts
    assert all((ROOT / script).is_file() for script in scripts)


def test_a_nodes_role_may_do_what_the_store_does_and_nothing_more() -> None:
    source = (ROOT / "workers" / "storage" / "s3.py").read_text("utf-8")
    called = set(re.findall(r"self\._client\.(\w+)\(", source)) - {"get_paginator", "close"}
    called |= set(re.findall(r'get_paginator\("(\w+)"\)', source))
    assert called <= set(STORE_CALLS), called
    policy = json.loads((FOLDER / "iam-node.json").read_text("utf-8"))
    allowed: set[str] = set()
    for statement in policy["Statement"]:
        assert statement["Effect"] == "Allow"
        assert statement["Resource"].startswith("arn:aws:s3:::results")
        action = statement["Action"]
        allowed |= {action} if isinstance(action, str) else set(action)
    assert allowed == {STORE_CALLS[name] for name in called}
