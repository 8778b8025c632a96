"""The files that run schedules somewhere, held against what reads them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import kubernetes_validate
import pytest
import yaml

from scheduler.cli import apiary
from tests.layout.tree import ROOT

UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())
CRONJOB = ROOT / "deploy" / "kubernetes" / "cronjob.yaml"


@pytest.mark.long
def test_systemd_finds_no_fault_with_the_units(tmp_path: Path) -> None:
    command = tmp_path / "apiary"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    docker = tmp_path / "docker.service"
    docker.write_text("[Service]\nExecStart=/bin/true\n")
    copies = []
    for unit in UNITS:
        # The paths of the machine that it is made for are not there on this one.
        text = unit.read_text().replace("/opt/apiary/.venv/bin/apiary", str(command))
        text = text.replace("WorkingDirectory=/opt/apiary", "WorkingDirectory=/")
        copies.append(tmp_path / unit.name)
        copies[-1].write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", *map(str, copies)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if "apiary" in line]
    assert (done.returncode, told) == (0, [])


def test_the_cron_job_is_of_the_published_schema() -> None:
    document = yaml.safe_load(CRONJOB.read_text())
    kubernetes_validate.validate(document, "1.29", strict=True)
    document["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolcy"] = "Never"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, "1.29", strict=True)


@pytest.mark.parametrize("place", [*UNITS, CRONJOB], ids=lambda path: path.name)
def test_every_command_in_them_can_be_given(place: Path) -> None:
    text = place.read_text()
    if place == CRONJOB:
        container = yaml.safe_load(text)["spec"]["jobTemplate"]["spec"]["template"]["spec"][
            "containers"
        ][0]
        assert container["command"] == ["sh", "-c"]
        lines = [container["args"][0].partition("exec ")[2].split()]
    else:
        lines = [found.split() for found in re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)]
    for _, group, name, *words in lines:
        command = apiary.get_command(click.Context(apiary), group)
        assert isinstance(command, click.Group)
        each = command.get_command(click.Context(command), name)
        assert each is not None
        known = {option for parameter in each.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known
        folders = [word for word in words if "/" in word]
        assert all((ROOT / folder).is_dir() for folder in folders)
