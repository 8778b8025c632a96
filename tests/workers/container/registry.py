"""A registry with one small image, as far as an engine that pulls asks (OCI distribution 1.1)."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from workers.contract.base import sha256_hex

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass
class Registry:
    """What is served, and what was asked for."""

    name: str
    """``host:port/repository``."""
    digest: str
    """Of the manifest."""
    asked: list[str] = field(default_factory=list)
    slow: bool = False
    """Whether it answers at all."""


def _blobs(content: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The manifest of an image of one file, and its blobs by digest."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("file")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    plain = buffer.getvalue()
    layer = gzip.compress(plain, mtime=0)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256_hex(plain)}"]},
        }
    ).encode()
    blobs = {f"sha256:{sha256_hex(data)}": data for data in (layer, config)}
    of_layer, of_config = blobs
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "size": len(config), "digest": of_config},
        "layers": [{"mediaType": LAYER, "size": len(layer), "digest": of_layer}],
    }
    return json.dumps(manifest).encode(), blobs


@contextmanager
def serving(content: bytes) -> Iterator[Registry]:
    """Serves until it is left, from a thread of its own."""
    manifest, blobs = _blobs(content)
    digest = f"sha256:{sha256_hex(manifest)}"
    loop = asyncio.new_event_loop()
    registry = Registry("", digest)

    async def answer(request: web.Request) -> web.Response:
        registry.asked.append(request.path)
        if registry.slow:
            await asyncio.sleep(60)
        kind, _, wanted = request.path.rpartition("/")
        if request.path.rstrip("/") == "/v2":
            return web.Response()
        if kind.endswith("/manifests") and wanted in ("one", digest):
            headers = {"Docker-Content-Digest": digest}
            return web.Response(body=manifest, content_type=MANIFEST, headers=headers)
        if kind.endswith("/blobs") and wanted in blobs:
            return web.Response(body=blobs[wanted], content_type="application/octet-stream")
        body = json.dumps({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "unknown"}]})
        return web.Response(status=404, text=body, content_type="application/json")

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/{rest:.*}", answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        registry.name = f"127.0.0.1:{runner.addresses[0][1]}/apiary-tests/one-file"
        return runner

    runner = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield registry
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()
