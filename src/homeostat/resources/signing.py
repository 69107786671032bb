"""Signed URLs: AWS query signatures, version 2, which need neither an account nor a header.

The signature covers the method, the host, the path and the parameters of `SIGNED`; other parameters are ignored.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from itertools import pairwise
from urllib.parse import parse_qsl, quote, urlsplit

ACCESS_KEY = "AWSAccessKeyId"
SIGNATURE = "Signature"
PART = "Part"
"""Parameter of this service: the part of a resource that a signal refers to, to recognize late signals about a former
part."""
FIXED = {"SignatureMethod": "HmacSHA256", "SignatureVersion": "2"}
SIGNED = (*FIXED, ACCESS_KEY, PART)


def signature(secret: str, method: str, host: str, path: str, parameters: Mapping[str, str]) -> str:
    """Return the signature of a request.

    Args:
        host: Host and port.
        path: Path, not percent-encoded.
        parameters: All signed parameters, not percent-encoded.
    """
    query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in sorted(parameters.items()))
    text = "\n".join((method, host.lower(), path, query))
    return base64.b64encode(hmac.digest(secret.encode(), text.encode(), hashlib.sha256)).decode()


def _quoted(text: str) -> str:
    return quote(text, safe="-_~")


def signed_url(base: str, path: str, method: str, access_key: str, secret: str, part: str = "") -> str:
    """Return a URL that authorizes its bearer to use it with this method.

    Args:
        base: Scheme and host.
        path: Path from the root, not percent-encoded.
        part: See `PART`; "" for none.
    """
    parameters = {**FIXED, ACCESS_KEY: access_key, **({PART: part} if part else {})}
    query_parameters = {**parameters, SIGNATURE: signature(secret, method, urlsplit(base).netloc, path, parameters)}
    query = "&".join(f"{name}={_quoted(value)}" for name, value in query_parameters.items())
    return f"{base}{quote(path)}?{query}"


def fits(secret: str, method: str, host: str, path: str, query: Mapping[str, str]) -> bool:
    """Return whether a request is signed with this secret; `host` must be the host in the signed URL."""
    parameters = {name: query[name] for name in SIGNED if name in query}
    wanted = signature(secret, method, host, path, parameters)
    return hmac.compare_digest(wanted.encode(), query.get(SIGNATURE, "").encode())


def same(first: str, second: str) -> bool:
    """Compare two secrets in constant time; an empty secret equals nothing."""
    return bool(first) and hmac.compare_digest(first.encode(), second.encode())


def access_key_of(url: str) -> str:
    """Return the access key of a signed URL; "" if absent."""
    return dict(parse_qsl(urlsplit(url).query)).get(ACCESS_KEY, "")


def id_of(access_key: str) -> str:
    """Return the id of the record that an access key belongs to; "" for a text in another form."""
    if len(access_key) != 32 or not access_key.isalnum():
        return ""
    places = (0, 8, 12, 16, 20, 32)
    return "-".join(access_key[start:end] for start, end in pairwise(places))
