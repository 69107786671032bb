"""Signatures as the genuine signers make them: botocore's of version 2 and 4, and that of the agents on servers."""

import datetime
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from keystoneclient.contrib.ec2.utils import Ec2Signer

from homeostat.api.cloudformation.errors import Refused
from homeostat.api.cloudformation.parameters import Parameters, read_pairs
from homeostat.api.cloudformation.signatures import SKEW_S, Claim, SignedRequest, claim_of

KEY, SECRET = "0123456789abcdef0123456789abcdef", "s3cret/with+odd=signs"
URL = "http://Stacks.example:8004/v1/"
ODD = {
    "Action": "DescribeStacks",
    "StackName": "arn:openstack:heat::p:stacks/a b/1",
    "Empty": "",
    "Signs": "~-_.!*'()+ =&%25/?#[]@$,;",
    "Words": "Grüße, 世界 \U0001f600",
    "a": "1",
    "Z": "2",
}


def sent_of(request: Any, body: bytes = b"") -> SignedRequest:
    """A request of botocore's, as a server gets it."""
    prepared = request.prepare()
    parts = urlsplit(prepared.url)
    headers = [(name.lower(), value) for name, value in prepared.headers.items()]
    headers = [(name, value.decode() if isinstance(value, bytes) else str(value)) for name, value in headers]
    if not any(name == "host" for name, _ in headers):
        headers.append(("host", parts.netloc.lower()))
    form = read_pairs(body) if request.method == "POST" else ()
    return SignedRequest(request.method, parts.path, read_pairs(parts.query.encode()), form, headers, body)


def v4(method: str, parameters: dict[str, str]) -> SignedRequest:
    signer = auth.SigV4Auth(Credentials(KEY, SECRET), "cloudformation", "nowhere")
    if method == "GET":
        request = AWSRequest("GET", f"{URL}?{urlencode(parameters, quote_via=quote)}")
        signer.add_auth(request)
        return sent_of(request)
    body = urlencode(parameters).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8", "X-Amz-Odd": "  two   spaces "}
    request = AWSRequest("POST", URL, headers=headers, data=body)
    signer.add_auth(request)
    return sent_of(request, body)


def v4_presigned(method: str, parameters: dict[str, str]) -> SignedRequest:
    """The body of a presigned POST is empty: its parameters are in the address."""
    request = AWSRequest(method, f"{URL}?{urlencode(parameters, quote_via=quote)}")
    auth.SigV4QueryAuth(Credentials(KEY, SECRET), "cloudformation", "nowhere", expires=60).add_auth(request)
    return sent_of(request)


def signed_v2(access_key: str, secret: str, method: str, url: str, parameters: dict[str, str]) -> dict[str, str]:
    """The parameters with their signature."""
    request = AWSRequest(method, url)
    given = dict(parameters)
    request.data, request.params = (given, {}) if method == "POST" else ({}, given)
    auth.SigV2Auth(Credentials(access_key, secret)).add_auth(request)
    return given


def v2(method: str, parameters: dict[str, str]) -> SignedRequest:
    encoded = urlencode(signed_v2(KEY, SECRET, method, URL.lower(), parameters))
    if method == "GET":
        return sent_of(AWSRequest("GET", f"{URL.lower()}?{encoded}"))
    return sent_of(AWSRequest("POST", URL.lower()), encoded.encode())


def agents(method: str, parameters: dict[str, str]) -> SignedRequest:
    """As os-collect-config does it: without a time."""
    given = {**parameters, "AWSAccessKeyId": KEY, "SignatureVersion": "2"}
    host = urlsplit(URL.lower()).netloc
    given["Signature"] = Ec2Signer(SECRET).generate({"params": given, "verb": method, "host": host, "path": "/v1/"})
    return SignedRequest(method, "/v1/", read_pairs(urlencode(given).encode()), (), [("host", host)])


SIGNERS = [v4, v4_presigned, v2, agents]
signers = pytest.mark.parametrize("sign", SIGNERS, ids=lambda each: each.__name__)
methods = pytest.mark.parametrize("method", ["GET", "POST"])


def claimed(sent: SignedRequest) -> Claim:
    claim = claim_of(sent)
    assert claim is not None
    return claim


def forged(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(key, value[:-4] + "beef" if key.endswith("Signature") else value) for key, value in pairs]


def now() -> float:
    return datetime.datetime.now(datetime.UTC).timestamp()


@signers
@methods
def test_genuine_signatures_fit(sign: Callable[..., SignedRequest], method: str) -> None:
    sent = sign(method, ODD)
    claim = claimed(sent)
    assert claim.access_key == KEY
    assert claim.fits(SECRET)
    assert not claim.fits(SECRET + "x")
    assert not claim.fits("")
    claim.check_time(now())
    assert {name: sent.parameters[name] for name in ODD} == ODD


@signers
@methods
@pytest.mark.parametrize("change", ["method", "path", "host", "value", "name", "more", "less", "signature"])
def test_what_was_changed_on_the_way_does_not_fit(sign: Callable[..., SignedRequest], method: str, change: str) -> None:
    sent = sign(method, ODD)
    where = "form" if any(name == "a" for name, _ in sent.form) else "query"
    pairs = list(getattr(sent, where))
    place = pairs.index(("a", "1"))
    match change:
        case "method":
            sent = replace(sent, method="PUT")
        case "path":
            sent = replace(sent, path="/v1")
        case "host":
            headers = [(name, "other.example" if name == "host" else value) for name, value in sent.headers]
            sent = replace(sent, headers=headers)
        case "signature":
            headers = [
                (name, value[:-4] + "beef" if name == "authorization" else value) for name, value in sent.headers
            ]
            sent = replace(sent, headers=headers, query=forged(sent.query), form=forged(sent.form))
        case _:
            pairs[place : place + 1] = {
                "value": [("a", "2")],
                "name": [("b", "1")],
                "more": [("a", "1"), ("b", "1")],
                "less": [],
            }[change]
            sent = (
                replace(sent, form=pairs, body=urlencode(pairs).encode())
                if where == "form"
                else replace(sent, query=pairs)
            )
    claim = claimed(sent)
    assert not claim.fits(SECRET)


@pytest.mark.parametrize("sign", [v4, v2], ids=lambda each: each.__name__)
def test_old_requests_and_those_of_the_future(sign: Callable[..., SignedRequest]) -> None:
    claim = claimed(sign("GET", ODD))
    for off_s in (-SKEW_S + 60, SKEW_S - 60):
        claim.check_time(now() + off_s)
    for off_s in (-SKEW_S - 60, SKEW_S + 60):
        with pytest.raises(Refused) as caught:
            claim.check_time(now() + off_s)
        assert caught.value.code == "RequestExpired"


def test_addresses_are_good_for_as_long_as_they_say() -> None:
    claim = claimed(v4_presigned("GET", ODD))
    claim.check_time(now() + 30)
    claim.check_time(now() - SKEW_S + 60)
    for off_s in (120, -SKEW_S - 60):
        with pytest.raises(Refused) as caught:
            claim.check_time(now() + off_s)
        assert caught.value.code == "RequestExpired"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("Timestamp", "2026-01-31T23:59:59.123Z", ""),
        ("Timestamp", "2026-01-31T23:59:59", ""),
        ("Timestamp", "2026-02-01T00:59:59+01:00", ""),
        ("Timestamp", "2026-01-31T22:59:59Z", "RequestExpired"),
        ("Timestamp", "0001-01-01T00:00:00+23:59", "RequestExpired"),
        ("Timestamp", "yesterday", "InvalidParameterValue"),
        ("Timestamp", "2026-13-31T23:59:59Z", "InvalidParameterValue"),
        ("Expires", "2026-02-01T00:10:00Z", ""),
        ("Expires", "2026-01-31T23:00:00Z", "RequestExpired"),
        ("Expires", "", "InvalidParameterValue"),
    ],
)
def test_times_of_version_2(name: str, value: str, code: str) -> None:
    at = datetime.datetime(2026, 2, 1, 0, 1, tzinfo=datetime.UTC).timestamp()
    claim = claimed(agents("GET", {**ODD, name: value}))
    assert claim.fits(SECRET)
    if not code:
        claim.check_time(at)
        return
    with pytest.raises(Refused) as caught:
        claim.check_time(at)
    assert caught.value.code == code


def test_a_host_that_was_signed_without_its_port() -> None:
    sent = agents("GET", ODD)
    assert claimed(replace(sent, headers=[("host", "stacks.example:8004")])).fits(SECRET)
    portless = {**ODD, "AWSAccessKeyId": KEY, "SignatureVersion": "2"}
    request = {"params": portless, "verb": "GET", "host": "stacks.example", "path": "/v1/"}
    portless["Signature"] = Ec2Signer(SECRET).generate(request)
    assert claimed(replace(sent, query=list(portless.items()))).fits(SECRET)


def test_a_date_in_another_header() -> None:
    request = AWSRequest("GET", f"{URL}?a=1", headers={"Date": "to be replaced"})
    auth.SigV4Auth(Credentials(KEY, SECRET), "cloudformation", "nowhere").add_auth(request)
    sent = sent_of(request)
    assert "x-amz-date" not in dict(sent.headers)
    claim = claimed(sent)
    claim.check_time(now())
    assert claim.fits(SECRET)


def test_what_is_not_signed() -> None:
    assert claim_of(SignedRequest("GET", "/v1/", list(ODD.items()))) is None
    assert claim_of(SignedRequest("GET", "/v1/", (), (), [("authorization", "Basic eDp5")])) is None


DATE = "20260131T235959Z"
SCOPE = "20260131/r/cloudformation/aws4_request"
GOOD = f"Credential={KEY}/{SCOPE}, SignedHeaders=host;x-amz-date, Signature=00"


@pytest.mark.parametrize(
    ("authorization", "more", "code"),
    [
        ("", {}, "IncompleteSignature"),
        (GOOD.replace("Signature=00", ""), {}, "IncompleteSignature"),
        (GOOD.replace(KEY, ""), {}, "MissingAuthenticationToken"),
        (GOOD.replace("/aws4_request", ""), {}, "IncompleteSignature"),
        (GOOD.replace("aws4_request", "aws5_request"), {}, "IncompleteSignature"),
        (GOOD.replace("20260131/", "20260130/"), {}, "SignatureDoesNotMatch"),
        (GOOD.replace("host;", ""), {}, "SignatureDoesNotMatch"),
        (GOOD.replace(";x-amz-date", ""), {}, "SignatureDoesNotMatch"),
        (GOOD, {"x-amz-target": "other"}, "SignatureDoesNotMatch"),
        (GOOD.replace("host;", "host;absent;"), {}, "SignatureDoesNotMatch"),
        (GOOD, {"x-amz-date": "now"}, "IncompleteSignature"),
        (GOOD, {"x-amz-date": "20261331T235959Z"}, "IncompleteSignature"),
    ],
)
def test_headers_that_are_wrong(authorization: str, more: dict[str, str], code: str) -> None:
    headers = {"host": "h", "x-amz-date": DATE, "authorization": f"AWS4-HMAC-SHA256 {authorization}", **more}
    with pytest.raises(Refused) as caught:
        claim_of(SignedRequest("GET", "/v1/", (), (), list(headers.items())))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("Signature=x", "MissingAuthenticationToken"),
        (f"AWSAccessKeyId={KEY}", "SignatureDoesNotMatch"),
        (f"AWSAccessKeyId={KEY}&Signature=x", "IncompleteSignature"),
        (f"AWSAccessKeyId={KEY}&Signature=x&SignatureVersion=1", "IncompleteSignature"),
        (f"AWSAccessKeyId={KEY}&Signature=x&SignatureVersion=2&SignatureMethod=HmacSHA1", "IncompleteSignature"),
        ("X-Amz-Signature=x", "IncompleteSignature"),
        ("X-Amz-Algorithm=AWS4-HMAC-SHA1&X-Amz-Signature=x&X-Amz-Expires=5", "IncompleteSignature"),
        ("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=x&X-Amz-Expires=0", "IncompleteSignature"),
        ("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=x&X-Amz-Expires=604801", "IncompleteSignature"),
        ("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=x&X-Amz-Expires=5", "IncompleteSignature"),
    ],
)
def test_addresses_that_are_wrong(query: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        claim_of(SignedRequest("GET", "/v1/", parse_qsl(query), (), [("host", "h")]))
    assert caught.value.code == code


def test_the_body_counts_whatever_a_header_says_of_it() -> None:
    body = urlencode(ODD).encode()
    request = AWSRequest("POST", URL, headers={"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}, data=body)
    auth.SigV4Auth(Credentials(KEY, SECRET), "cloudformation", "nowhere").add_auth(request)
    assert not claimed(sent_of(request, body)).fits(SECRET)


@pytest.mark.parametrize(
    ("encoded", "code"),
    [
        (b"a=%ff", "MalformedQueryString"),
        (b"a=\xff", "MalformedQueryString"),
        ("a=ü".encode(), "MalformedQueryString"),
        (b"&".join(b"a" for _ in range(10_002)), "MalformedQueryString"),
        (b"a=%00", "InvalidParameterValue"),
    ],
)
def test_parameters_that_cannot_be_read(encoded: bytes, code: str) -> None:
    with pytest.raises(Refused) as caught:
        read_pairs(encoded)
    assert caught.value.code == code


def test_lists_and_doubles() -> None:
    parameters = Parameters.of(
        read_pairs(b"P.member.10.k=c&P.member.2.k=b&P.member.2.v=&Q.member.1.k=x&P.member.x.k=1")
    )
    assert parameters.members("P") == [{"k": "b", "v": ""}, {"k": "c"}]
    assert parameters.has("P")
    assert not parameters.has("R")
    with pytest.raises(Refused) as caught:
        Parameters.of(read_pairs(b"a=1&a=1"))
    assert caught.value.code == "InvalidParameterCombination"
