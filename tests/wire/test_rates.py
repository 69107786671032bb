"""Who asks too often is told when to come back; others are not."""

from collections.abc import Iterator

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from homeostat.api.access.auth import NoAccess
from homeostat.api.app import Limits
from homeostat.api.server import ApiSettings
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.rates import Rate
from tests.wire.running import database, serving

RARELY = Rate(0.001, 3)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = ApiSettings(limits=Limits(rate=RARELY))
    with (
        database(tmp_path_factory.mktemp("rates")) as db,
        serving(db, NoAccess(), settings, cloud=SimulatedCloud(lambda: 0.0)) as address,
    ):
        yield address


def test_too_many_requests(url: str) -> None:
    with httpx.Client(base_url=f"{url}/v1/busy") as http:
        assert [http.get("stacks").status_code for _ in range(5)] == [200, 200, 200, 429, 429]
        refused = http.get("stacks")
    assert 900 < int(refused.headers["retry-after"]) <= 1000
    body = refused.json()
    assert (body["code"], body["error"]["type"]) == (429, "TooManyRequests")
    assert "At most 0.001 requests a second, and 3 at once" in body["error"]["message"]
    assert httpx.get(f"{url}/v1/quiet/stacks").status_code == 200


def test_the_healthcheck_is_never_refused(url: str) -> None:
    assert {httpx.get(f"{url}/healthcheck").status_code for _ in range(10)} == {200}


def test_signed_addresses(url: str) -> None:
    """Each is counted by itself, for all callers; the error is one of their API."""
    address = f"{url}/v1/waitcondition/arn:openstack:heat::p:stacks/a/b/resources/"
    answers = [httpx.put(address + "one", json={}) for _ in range(4)]
    assert [answer.status_code == 429 for answer in answers] == [False, False, False, True]
    assert "<Code>Throttling</Code>" in answers[-1].text
    assert int(answers[-1].headers["retry-after"]) > 900
    assert httpx.put(address + "two", json={}).status_code != 429


def test_cloudformation(url: str) -> None:
    """With a code that its clients know as one to wait for."""
    client = boto3.client(
        "cloudformation",
        endpoint_url=f"{url}/v1/",
        region_name="here",
        aws_access_key_id="anybody",
        aws_secret_access_key="anything",
        config=Config(retries={"max_attempts": 0}),
    )
    for _ in range(RARELY.burst):
        client.list_stacks()
    with pytest.raises(ClientError, match="Throttling"):
        client.list_stacks()
