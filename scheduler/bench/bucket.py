"""A small S3 server that keeps its objects in a folder: it can be killed, and comes back with them.

It speaks as much of the protocol as a store of ours does: one bucket, whole objects, conditional
writes, listings. The suite of the stores holds for it as for any other. As a process it takes
the folder, and listens on the port that is written there, at the address that may follow.

The file ``refused`` in the folder holds regular expressions, one a line: a request whose method
and key match one is answered with 503. The file ``results`` gets a line for every write of a
result that was accepted: a key that stands there twice was written over. The file ``listings``
gets the prefix of every listing that was asked for.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from aiohttp import web

from workers.storage.filesystem import FileStore
from workers.storage.interface import MissingKeyError

OBJECTS = "objects"
PORT = "port"
REFUSED = "refused"
RESULTS = "results"
LISTINGS = "listings"
RESULT = "/result.json"

PAGE = 1000
"""Keys in one answer to a listing, as S3 has it."""
LARGEST = 1024 * 1024 * 1024
_META = "x-amz-meta-"


class Bucket:
    """Answers requests; everything that must survive is in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = FileStore(folder / OBJECTS, (folder / OBJECTS).as_uri())
        self._unfinished: dict[tuple[str, str], Iterator[str]] = {}
        """By prefix and token: what follows the last page of a listing that was not its last."""

    def application(self) -> web.Application:
        """For any server; the bucket may have any name."""
        application = web.Application(client_max_size=LARGEST)
        application.router.add_get("/{bucket}", self._listing)
        application.router.add_get("/{bucket}/", self._listing)
        application.router.add_route("*", "/{bucket}/{key:.+}", self._object)
        return application

    async def _object(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        if self._is_refused(request.method, key):
            return _fault(503, "ServiceUnavailable")
        match request.method:
            case "PUT":
                return await self._write(request, key)
            case "GET" | "HEAD":
                return await self._read(key)
            case "DELETE":
                await asyncio.to_thread(self._store.delete, key)
                return web.Response(status=204)
            case _:
                return _fault(405, "MethodNotAllowed")

    async def _write(self, request: web.Request, key: str) -> web.Response:
        marks = {name.lower(): value for name, value in request.headers.items()}
        kept = {name: value for name, value in marks.items() if name.startswith(_META)}
        # Marks and bytes in one file: both appear, or neither.
        document = json.dumps(kept).encode() + b"\n" + await request.read()
        if request.headers.get("If-None-Match") == "*":
            if not await asyncio.to_thread(self._store.create, key, document):
                return _fault(412, "PreconditionFailed")
        else:
            await asyncio.to_thread(self._store.put, key, document)
        if key.endswith(RESULT):
            with (self._folder / RESULTS).open("a") as results:
                results.write(f"{key}\n")
        return web.Response(headers={"ETag": '"0"'})

    async def _read(self, key: str) -> web.Response:
        try:
            document = await asyncio.to_thread(self._store.get, key)
        except MissingKeyError:
            return _fault(404, "NoSuchKey")
        kept, _, body = document.partition(b"\n")
        return web.Response(body=body, headers={**json.loads(kept), "ETag": '"0"'})

    async def _listing(self, request: web.Request) -> web.Response:
        if self._is_refused("LIST", request.query.get("prefix", "")):
            return _fault(503, "ServiceUnavailable")
        with (self._folder / LISTINGS).open("a") as listings:
            listings.write(f"{request.query.get('prefix', '')}\n")
        return await asyncio.to_thread(self._listed, dict(request.query))

    def _listed(self, query: dict[str, str]) -> web.Response:
        prefix = query.get("prefix", "")
        if query.get("delimiter"):
            names = self._store.children(prefix)
            rows = [
                f"<CommonPrefixes><Prefix>{escape(f'{prefix}{name}/')}</Prefix></CommonPrefixes>"
                for name in names
            ]
            return _xml(200, f"<ListBucketResult>{''.join(rows)}</ListBucketResult>")
        after = query.get("continuation-token", "")
        keys = self._unfinished.pop((prefix, after), None)
        if keys is None:
            keys = (key for key in self._store.keys(prefix) if key > after)
        page = list(itertools.islice(keys, PAGE + 1))
        more = ""
        if len(page) > PAGE:
            last = page[PAGE - 1]
            more = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"
            self._unfinished[prefix, last] = itertools.chain(page[PAGE:], keys)
        rows = [f"<Contents><Key>{escape(key)}</Key></Contents>" for key in page[:PAGE]]
        truncated = f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        return _xml(200, f"<ListBucketResult>{truncated}{more}{''.join(rows)}</ListBucketResult>")

    def _is_refused(self, method: str, key: str) -> bool:
        try:
            rules = (self._folder / REFUSED).read_text().splitlines()
        except FileNotFoundError:
            return False
        return any(re.fullmatch(rule, f"{method} {key}") for rule in rules)


def _fault(status: int, code: str) -> web.Response:
    return _xml(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>")


def _xml(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, content_type="application/xml")


async def serve(folder: Path, host: str = "127.0.0.1") -> None:
    """Serves until the process ends; on the port of before, if there was one."""
    place = folder / PORT
    port = int(place.read_text()) if place.exists() else 0
    runner = web.AppRunner(Bucket(folder).application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port, reuse_address=True).start()
    (folder / f"{PORT}.new").write_text(str(runner.addresses[0][1]))
    (folder / f"{PORT}.new").rename(place)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), *sys.argv[2:3]))
