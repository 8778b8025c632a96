"""Opening a store by its URL.

``file:///absolute/path`` or
``s3://bucket/prefix?endpoint_url=https://host:9000&path_style=true&region=eu-west-1``.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from workers.storage.filesystem import FileStore
from workers.storage.interface import Store, StoreError
from workers.storage.keys import check_key

S3_OPTIONS = ("endpoint_url", "path_style", "region")
_SECRET_WORDS = ("key", "secret", "token", "password", "credential", "signature")


class StoreUrlError(StoreError):
    """The URL names no store; the message says what was expected."""


def open_store(url: str) -> Store:
    """The store at a URL. Nothing is read or written yet.

    Credentials in a URL are refused, since URLs are written to locks and logs; for S3 they
    are found where boto3 looks for them.

    Raises:
        StoreUrlError: the URL names no store, or holds credentials (which it does not repeat).
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise StoreUrlError(f"the store's URL cannot be read: {error}") from error
    _refuse_credentials(parts)
    match parts.scheme:
        case "file":
            return _open_directory(url, parts)
        case "s3":
            return _open_bucket(url, parts)
        case "" if url:
            raise StoreUrlError(
                f"the store {url!r} is no URL; did you mean {Path(url).absolute().as_uri()!r}?"
            )
        case scheme:
            raise StoreUrlError(
                f"the store {url!r} has the scheme {scheme!r}; "
                "expected file:///absolute/path or s3://bucket/prefix"
            )


def _open_directory(url: str, parts: SplitResult) -> Store:
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise StoreUrlError(f"the store {url!r} needs an absolute path: file:///absolute/path")
    if parts.query or parts.fragment:
        raise StoreUrlError(f"the store {url!r} may have neither query nor fragment")
    path = unquote(parts.path)
    if "\0" in path:
        raise StoreUrlError(f"the store {url!r} has a NUL in its path")
    return FileStore(Path(path), url)


def _open_bucket(url: str, parts: SplitResult) -> Store:
    if not parts.netloc or parts.fragment:
        raise StoreUrlError(f"the store {url!r} needs a bucket: s3://bucket/prefix")
    prefix = unquote(parts.path).strip("/")
    if prefix:
        check_key(prefix)
    options = _options(url, parts.query)
    # Imported here because boto3 takes a third of a second, which file:// need not pay.
    from workers.storage.s3 import S3Store

    return S3Store(
        url,
        parts.netloc,
        prefix,
        endpoint_url=options.get("endpoint_url"),
        region=options.get("region"),
        path_style=options.get("path_style") == "true",
    )


def _options(url: str, query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    options = dict(pairs)
    for name, value in pairs:
        if name not in S3_OPTIONS:
            near = difflib.get_close_matches(name, S3_OPTIONS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise StoreUrlError(
                f"the store {url!r} has the option {name!r}; expected {', '.join(S3_OPTIONS)}{hint}"
            )
        if not value or sum(name == other for other, _ in pairs) > 1:
            raise StoreUrlError(f"the store {url!r} needs one value for {name!r}")
    if options.get("path_style", "true") not in ("true", "false"):
        raise StoreUrlError(f"the store {url!r} needs path_style=true or path_style=false")
    endpoint = options.get("endpoint_url", "https://")
    if not endpoint.startswith(("http://", "https://")):
        raise StoreUrlError(f"the store {url!r} needs an http:// or https:// endpoint_url")
    return options


def _refuse_credentials(parts: SplitResult) -> None:
    """Refuses credentials wherever a URL could hold them, without showing them."""
    where = None
    if "@" in parts.netloc:
        where = "before the host"
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if any(word in name.lower() for word in _SECRET_WORDS) or "@" in unquote(value):
            where = f"in the option {name[:40]!r}"
    if where is not None:
        raise StoreUrlError(
            f"the store's URL holds credentials {where}; leave them out: S3 credentials are "
            "read from the environment, the shared files or the machine's role, as boto3 does"
        )
