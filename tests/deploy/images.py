"""The project's images, built on what is there.

No registry may be reached here: ``BASE`` is the base image that set-up chose. Packages come from
the index that this machine's pip is told of, with its certificates, which go to the base of the
first stage alone and so never into what is tested.
"""

from __future__ import annotations

import functools
import os
import shutil
import ssl
import subprocess
import tempfile
from pathlib import Path

from tests.base_image import base_image
from tests.layout.tree import ROOT

DOCKERFILE = ROOT / "deploy" / "images" / "Dockerfile"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
BUILD_S = 900.0
ASK_S = 120.0


def docker(*words: str, timeout_s: float = ASK_S) -> str:
    """What a command of Docker's client wrote; it must succeed."""
    done = subprocess.run(
        ["docker", *words],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@functools.cache
def built(target: str) -> str:
    """The image of a target; what has not changed since the last time is not built again."""
    tag = f"apiary-test-image:{target}"
    docker(
        *("build", "-q", "-f", str(DOCKERFILE), "--target", target, "-t", tag),
        *("--build-arg", f"BASE={base_image()}", "--build-arg", f"BUILD_BASE={_build_base()}"),
        str(ROOT),
        timeout_s=BUILD_S,
    )
    return tag


@functools.cache
def engine() -> str:
    """An image with an engine, in place of Docker's own, which only a registry has."""
    tag = "apiary-test-image:engine"
    install = "apt-get update -qq && apt-get install -y -qq --no-install-recommends docker.io"
    _from(built("client"), f"RUN command -v dockerd || {{ {install}; }}", tag)
    return tag


@functools.cache
def _build_base() -> str:
    """The base image and how this machine's pip reaches its index."""
    tag = "apiary-test-image:build-base"
    lines = [f"ENV {name}={os.environ[name]}" for name in _INDEX if os.environ.get(name)]
    # Where Python looks for certificates: a machine may trust more than the base image does.
    own = os.environ.get("PIP_CERT") or ssl.get_default_verify_paths().cafile
    files = {"/etc/pip.conf": Path("/etc/pip.conf")}
    if own is not None:
        files[CERTIFICATES] = Path(own)
        lines.append(f"ENV PIP_CERT={CERTIFICATES}")
    with tempfile.TemporaryDirectory() as context:
        for target, source in files.items():
            if source.is_file():
                shutil.copyfile(source, Path(context, source.name))
                lines.append(f"COPY {source.name} {target}")
        _from(base_image(), "\n".join(lines), tag, context)
    return tag


_INDEX = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT")


def _from(image: str, lines: str, tag: str, context: str = "") -> None:
    """Builds an image of a few lines on another."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "Dockerfile")
        file.write_text(f"FROM {image}\n{lines}\n")
        docker(*("build", "-q", "-f", str(file), "-t", tag, context or folder), timeout_s=BUILD_S)
