"""Signed addresses: AWS query signatures of version 2, which need no account and no header (cfn-api.md section 4).

The signature covers the method, the host, the address and the parameters that are told here; nothing else counts.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlsplit

ACCESS_KEY = "AWSAccessKeyId"
SIGNATURE = "Signature"
PART = "Part"
"""Parameter of ours: which part of a thing it is about, so that what is told about an earlier one is known as late."""
FIXED = {"SignatureMethod": "HmacSHA256", "SignatureVersion": "2"}
SIGNED = (*FIXED, ACCESS_KEY, PART)


def signature(secret: str, method: str, host: str, path: str, parameters: Mapping[str, str]) -> str:
    """path — without per cent signs in place of letters; parameters — all but the signature, plain."""
    query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in sorted(parameters.items()))
    text = "\n".join((method, host.lower(), path, query))
    return base64.b64encode(hmac.digest(secret.encode(), text.encode(), hashlib.sha256)).decode()


def _quoted(text: str) -> str:
    return quote(text, safe="-_~")


def signed_url(base: str, path: str, method: str, access_key: str, secret: str, part: str = "") -> str:
    """Address that whoever has it may use with this method. base — scheme and host; path — plain, from the root."""
    parameters = {**FIXED, ACCESS_KEY: access_key, **({PART: part} if part else {})}
    whole = {**parameters, SIGNATURE: signature(secret, method, urlsplit(base).netloc, path, parameters)}
    query = "&".join(f"{name}={_quoted(value)}" for name, value in whole.items())
    return f"{base}{quote(path)}?{query}"


def fits(secret: str, method: str, host: str, path: str, query: Mapping[str, str]) -> bool:
    """Is a request signed with this secret? host — the one that the address was made for."""
    parameters = {name: query[name] for name in SIGNED if name in query}
    wanted = signature(secret, method, host, path, parameters)
    return hmac.compare_digest(wanted.encode(), query.get(SIGNATURE, "").encode())


def same(one: str, other: str) -> bool:
    """Are these secrets the same? Takes as long whatever they are."""
    return bool(one) and hmac.compare_digest(one.encode(), other.encode())


def access_key_of(url: str) -> str:
    """The access key of a signed address; "" where it has none."""
    return dict(parse_qsl(urlsplit(url).query)).get(ACCESS_KEY, "")
