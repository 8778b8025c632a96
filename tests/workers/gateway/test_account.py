"""How an endpoint is reached: proxies by environment and by endpoint, keys by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.contract.endpoint import Endpoint
from workers.gateway import GatewayError
from workers.gateway.account import Account, proxy_of

PROXY = {"HTTPS_PROXY": "http://p:3128"}


def endpoint(url: str | None = "https://api.example.com/v1", **more: object) -> Endpoint:
    return Endpoint.model_validate(
        {"provider": "openai", "api_key_env": "K", "base_url": url, **more}
    )


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://a.example.com/v1", PROXY, "http://p:3128"),
        ("https://a.example.com/v1", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://a.example.com/v1", {"https_proxy": "p:1", "HTTPS_PROXY": "q"}, "http://p:1"),
        ("https://a.example.com/v1", {"http_proxy": "p"}, None),
        ("http://a.example.com/v1", {"HTTP_PROXY": "http://p"}, "http://p"),
        ("http://a.example.com/v1", {"all_proxy": "http://p"}, "http://p"),
        (None, PROXY, "http://p:3128"),
        ("http://127.0.0.1:9/v1", {"http_proxy": "http://p"}, None),
        ("http://localhost:9/v1", {"all_proxy": "http://p"}, None),
        ("https://a.example.com", {**PROXY, "NO_PROXY": "*"}, None),
        ("https://a.example.com", {**PROXY, "NO_PROXY": "other, example.com"}, None),
        ("https://a.example.com", {**PROXY, "no_proxy": ".example.com"}, None),
        ("https://a.example.com", {**PROXY, "no_proxy": "*.example.com"}, None),
        ("https://a.example.com", {**PROXY, "no_proxy": "ample.com"}, "http://p:3128"),
        ("https://a.example.com:8443", {**PROXY, "no_proxy": "example.com:8443"}, None),
        ("https://a.example.com:9443", {**PROXY, "no_proxy": "example.com:8443"}, "http://p:3128"),
        ("https://10.1.2.3", {**PROXY, "no_proxy": "10.0.0.0/8"}, None),
        ("https://11.1.2.3", {**PROXY, "no_proxy": "10.0.0.0/8"}, "http://p:3128"),
        ("https://a.example.com", {**PROXY, "no_proxy": "example.com:8443"}, "http://p:3128"),
        ("https://a.example.com", {**PROXY, "no_proxy": "example.com:443"}, None),
        ("https://a.example.com", {**PROXY, "no_proxy": "other example.com."}, None),
        ("https://a.example.com", {**PROXY, "no_proxy": ". : :443 []"}, "http://p:3128"),
        ("https://[fd00::5]/v1", PROXY, "http://p:3128"),
        ("https://[fd00::5]/v1", {**PROXY, "no_proxy": "fd00::/8"}, None),
        ("https://[fd00::5]/v1", {**PROXY, "no_proxy": "[fd00::5]"}, None),
        ("https://[fd00::5]:8443/v1", {**PROXY, "no_proxy": "[fd00::5]:8443"}, None),
        ("https://[fd00::5]:8443/v1", {**PROXY, "no_proxy": "[fd00::5]:443"}, "http://p:3128"),
        ("http://[::1]:9/v1", {"http_proxy": "http://p"}, None),
    ],
)
def test_the_environments_proxy(
    url: str | None, environment: dict[str, str], proxy: str | None
) -> None:
    assert proxy_of(endpoint(url), environment) == proxy


@pytest.mark.parametrize("proxy", ["socks5://user:hush@p:1", "http://[bad", "ftp://p", "http://"])
def test_a_proxy_of_another_kind_is_refused_before_a_request(proxy: str) -> None:
    with pytest.raises(GatewayError, match=r"^all_proxy names a proxy that is none of") as caught:
        Account("m", endpoint(), {"K": "k", "ALL_PROXY": proxy})
    assert "hush" not in str(caught.value)
    assert proxy_of(endpoint(), {"ALL_PROXY": proxy, "NO_PROXY": "*"}) is None


def test_an_endpoints_own_proxy_goes_before_the_environments() -> None:
    assert proxy_of(endpoint(proxy="none"), PROXY) is None
    assert proxy_of(endpoint(proxy="http://own:1"), PROXY) == "http://own:1"
    assert proxy_of(endpoint("http://127.0.0.1/", proxy="http://own:1"), {}) == "http://own:1"


def test_what_a_node_lacks_is_named() -> None:
    one = endpoint(extra_headers_env={"X-Team-Key": "TEAM"}, extra_headers={"X-Team": "red"})
    assert "'m' needs its key in the variable K" in str(Account("m", one, {}).missing())
    assert "a header's value in the variable TEAM" in str(Account("m", one, {"K": "k"}).missing())
    account = Account("m", one, {"K": "k", "TEAM": "t-value"})
    assert account.missing() is None
    credentials = account.credentials()
    assert credentials.headers == [("X-Team", "red"), ("X-Team-Key", "t-value")]
    assert {secret.reveal() for secret in credentials.secrets} == {"k", "t-value"}
    scripted = Endpoint(provider="scripted")
    assert Account("s", scripted, {}).missing() == "endpoint 's' has no base_url"


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read(tmp_path: Path, content: str | None) -> None:
    bundle = tmp_path / "ca.pem"
    if content is not None:
        bundle.write_text(content)
    with pytest.raises(GatewayError, match=r"'m': the certificates of ca_bundle .*ca.pem"):
        Account("m", endpoint(ca_bundle=str(bundle)), {})
