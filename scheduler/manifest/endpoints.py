"""Endpoint files: where models are reached, and which variables must hold their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from scheduler.manifest.check import check
from scheduler.manifest.document import Document
from scheduler.manifest.faults import ManifestError, ManifestFault
from scheduler.manifest.files import read_document
from workers.contract.endpoint import BASE_URL_VARIABLES, Endpoint, EndpointFile


@dataclass(frozen=True)
class LoadedEndpoints:
    """An endpoint file that can be used."""

    endpoints: dict[str, Endpoint]
    path: Path
    document: Document


def load_endpoints(path: Path) -> dict[str, Endpoint]:
    """The endpoints of a file by name.

    Raises:
        ManifestError: as ``open_endpoints``.
    """
    return open_endpoints(path).endpoints


def open_endpoints(path: Path) -> LoadedEndpoints:
    """Reads an endpoint file, JSON or YAML.

    Faults never quote a value of it: a key may have been written where its variable's name
    belongs.

    Raises:
        ManifestError: with every fault of the file.
    """
    document = read_document(path)
    endpoints = check(EndpointFile, document, show_values=False).root
    faults = list(_url_faults(document, endpoints))
    if faults:
        raise ManifestError(faults)
    return LoadedEndpoints(endpoints, path, document)


def missing_keys(
    loaded: LoadedEndpoints, used: Iterable[str], environment: Mapping[str, str]
) -> tuple[ManifestFault, ...]:
    """A fault for every key, and every header's value, of endpoints in use that is not there."""
    faults = []
    for name in used:
        endpoint = loaded.endpoints.get(name)
        if endpoint is None:
            continue
        for variable in endpoint.secret_names:
            is_key = variable == endpoint.api_key_env
            place = "api_key_env" if is_key else "extra_headers_env"
            what = f"the key of {name!r}" if is_key else f"a header of {name!r}"
            message = key_problem(variable, what, environment)
            if message is not None:
                faults.append(loaded.document.fault((name, place), message))
    return tuple(faults)


def key_problem(variable: str, what: str, environment: Mapping[str, str]) -> str | None:
    """Why a key cannot be had by its variable's name; None: it can.

    It stands in the variable, or in the file that ``<variable>_FILE`` names (a secret's mount), and
    must be what a node can send in a header.
    """
    # Here because the gateway loads an HTTP client, which a sweep without keys need not wait for.
    from workers.gateway.errors import GatewayError
    from workers.gateway.secret import read_secret

    try:
        found = read_secret(variable, environment)
    except GatewayError as error:
        return f"{what} cannot be used: {error}"
    if found is not None:
        return None
    if environment.get(f"{variable}_FILE"):
        return f"{variable}_FILE must name a file with {what}; it is empty"
    return f"the environment variable {variable} must hold {what}; it is not set"


def find_endpoint_file(name: str, folder: Path) -> Path | None:
    """The first shipped endpoint file (by name of file) that has an endpoint of that name."""
    for path in sorted(folder.glob("*")):
        if path.suffix.lower() not in (".json", ".yaml", ".yml"):
            continue
        try:
            endpoints = load_endpoints(path)
        except ManifestError:
            # A file that was not asked for: its faults are told to who uses it.
            continue
        if name in endpoints:
            return path
    return None


def _url_faults(document: Document, endpoints: Mapping[str, Endpoint]) -> Iterator[ManifestFault]:
    for name, endpoint in endpoints.items():
        variable = BASE_URL_VARIABLES.get(endpoint.provider, "")
        # As in Buzz's own files, which have no field for it.
        said = endpoint.base_url or endpoint.env.get(variable)
        if said is None:
            continue
        place = (name, "base_url") if endpoint.base_url else (name, "env", variable)
        try:
            parts = urlsplit(said)
            sound = bool(parts.hostname) and parts.port != 0
            secret = parts.username or parts.password or parts.query or parts.fragment
        except ValueError:
            sound, secret = False, None
        if secret:
            message = (
                "a base URL may hold no user, password, query or fragment: it is recorded; "
                "parameters stand in the field query"
            )
            yield document.fault(place, message)
        elif not sound:
            yield document.fault(place, "expected a URL with a host")
