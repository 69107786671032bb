"""Requests that nobody should send: made at random from the OpenAPI document, the same ones for the same seed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from urllib.parse import quote

TEMPLATE: dict[str, Any] = {
    "heat_template_version": "2018-08-31",
    "parameters": {"word": {"type": "string", "default": "hello"}},
    "resources": {"a": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "word"}}}},
    "outputs": {"said": {"value": {"get_attr": ["a", "output"]}}},
}
TEXTS = (
    "",
    " ",
    "0",
    "-1",
    "1e999",
    "99999999999999999999999999",
    "true",
    "null",
    "NaN",
    "\0",
    "a\0b",
    "\r\nx: y",
    "..",
    "../../etc/passwd",
    "%2f",
    "%00",
    "%",
    "%s%n",
    "'; DROP TABLE stack; --",
    "\ud800",
    "a\udfffb",
    "\ufeff",
    "\u202e\u0661\u0967",
    "\U0001f4a9" * 3,
    "e\u0301\u200d",
    "İ",
    "\x7f\x1b[0m",
    "{{{",
    "[" * 40,
    "&a [*a, *a]",
    "!!python/object:os.system {}",
    "get_resource",
    "get_file",
    "file:///etc/passwd",
    "http://127.0.0.1:1/",
    "http://[::1",
    "2026-01-01T00:00:00",
    "99999-99-99T99:99:99",
    "OS::Heat::TestResource",
    "OS::No::*",
    "*",
    "x" * 300,
    "y" * 5000,
)
NUMBERS = (0, -0.0, -1, 1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, float("inf"), float("nan"))
READABLE_TEXTS = tuple(text for text in TEXTS if not any("\ud800" <= letter <= "\udfff" for letter in text))
READABLE_NUMBERS = tuple(number for number in NUMBERS if abs(number) < 2**63)
"""What is left where a reader of JSON shall not stop at once."""
TYPES = (
    "application/json",
    "application/json; charset=utf-16",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=",
    "text/plain",
    "application/xml",
    ";;;=",
    "",
)
HEADERS: Sequence[tuple[bytes, bytes]] = (
    (b"Accept", b"application/vnd.openstack.orchestration-v1"),
    (b"Accept", b";q=,,"),
    (b"Accept-Language", b"\xff\xfe"),
    (b"Authorization", b"Basic ====="),
    (b"Authorization", b"AWS4-HMAC-SHA256 Credential=/////, SignedHeaders=;;, Signature=zz"),
    (b"Authorization", b"AWS4-HMAC-SHA256 " + b"x" * 3000),
    (b"X-Auth-Token", b"\xe2\x98\xba"),
    (b"X-Auth-Token", b"0" * 32 + b".a"),
    (b"X-Auth-User", b"nobody"),
    (b"X-Amz-Date", b"not a date"),
    (b"X-Openstack-Request-Id", b"req-\xff"),
    (b"X-Forwarded-For", b"1.2.3.4, ::::"),
    (b"X-Forwarded-Proto", b"gopher"),
    (b"X-Region-Name", b"*"),
    (b"Host", b"a b"),
    (b"Host", b"[::::"),
    (b"Host", b""),
    (b"Range", b"bytes=9-1"),
    (b"Last-Event-ID", b"nothing"),
    (b"If-None-Match", b"*"),
    (b"Upgrade", b"websocket"),
    (b"Connection", b"upgrade"),
    (b"Expect", b"100-continue"),
    (b"Expect", b"nothing"),
    (b"Content-Encoding", b"gzip"),
    (b"Cookie", b"=;" * 50),
    (b"traceparent", b"00-zz-zz-zz"),
    (b"X-Long", b"l" * 20_000),
    (b"X-Longer", b"l" * 100_000),
    (b"Bad Name", b"x"),
    (b"X-Nul", b"a\0b"),
    (b"Transfer-Encoding", b"gzip"),
    (b"Content-Length", b"-1"),
    (b"Content-Length", b"9" * 25),
    (b"Content-Length", b"1, 2"),
)
HEADERS_OF_FRAMING = (b"transfer-encoding", b"content-length", b"expect")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "PURGE", "G\x01T")
PATHS = (
    "//",
    "/v1//stacks",
    "/v1/../v1/p/stacks",
    "/v1/p/stacks/../../..",
    "/v1/p%2fstacks",
    "/v1/%2e%2e/stacks",
    "/v1.0/p/stacks",
    "/v2/p/stacks",
    "/v1/p/stacks/%00",
    "/v1/p/stacks/%ff%fe",
    "/v1/p/stacks/%ed%a0%80",
    "/v1/p/stacks/" + "a" * 3000,
    "/v1/p/" + "a/" * 400,
    "/v1/signal/arn:openstack:heat::p:stacks/a/b/resources/c",
    "/v1/metadata/arn:openstack:heat::%00:::",
    "/v1/waitcondition/arn%3Aopenstack%3Aheat%3A%3A",
    "*",
    "http://example.org/v1/p/stacks",
    "",
    "/\xff",
    "/v1/p/stacks#x",
    "/openapi.json",
    "/metrics",
    "/healthcheck",
)
ACTION_PARAMETERS = (
    "StackName",
    "TemplateBody",
    "TemplateURL",
    "Parameters.member.1.ParameterKey",
    "Parameters.member.1.ParameterValue",
    "Parameters.member.x.ParameterKey",
    "TimeoutInMinutes",
    "DisableRollback",
    "OnFailure",
    "LogicalResourceId",
    "PhysicalResourceId",
    "NextToken",
    "StackStatusFilter.member.1",
    "ContentType",
    "Version",
    "AWSAccessKeyId",
    "Signature",
    "SignatureVersion",
    "SignatureMethod",
    "Timestamp",
)


@dataclass(frozen=True, slots=True)
class Malformed:
    """sent — the next bytes on a connection; methods — of the requests that they hold; breaks_off — no answer need
    come: what is sent stops early, or its borders cannot be told; routes — path and method that were spoilt."""

    sent: bytes
    methods: tuple[str, ...]
    breaks_off: bool = False
    routes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """What there is, for requests that are nearly right: values of parameters in the path."""

    values: Mapping[str, str]


class Generator:
    """Takes: document — OpenAPI."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas = document["components"]["schemas"]
        self._operations = [
            (path, method.upper(), operation)
            for path, found in sorted(document["paths"].items())
            for method, operation in sorted(found.items())
        ]
        actions = next(each for path, method, each in self._operations if (path, method) == ("/v1", "POST"))
        self._actions = next(each["schema"]["enum"] for each in actions["parameters"] if each["name"] == "Action")

    @property
    def operations(self) -> list[tuple[str, str]]:
        return [(path, method) for path, method, _ in self._operations]

    def make(self, seed: str, known: Known) -> Malformed:
        """The request of this seed."""
        return _Making(Random(seed), known, self._schemas, self._operations, self._actions).request()


class _Making:
    def __init__(
        self,
        random: Random,
        known: Known,
        schemas: Mapping[str, Any],
        operations: Sequence[tuple[str, str, Mapping[str, Any]]],
        actions: Sequence[str],
    ) -> None:
        self._random = random
        self._known = known
        self._schemas = schemas
        self._operations = operations
        self._actions = actions
        self._readable = self._odds(80)

    def _odds(self, of_hundred: int) -> bool:
        return self._random.random() * 100 < of_hundred

    def request(self) -> Malformed:
        kind = self._random.random()
        if kind < 0.04:
            made = [self._one() for _ in range(self._random.randint(2, 6))]
            sent, methods = b"".join(one.sent for one in made), tuple(one.methods[0] for one in made)
            routes = tuple(route for one in made for route in one.routes)
            return Malformed(sent, methods, any(one.breaks_off for one in made), routes)
        if kind < 0.06:
            return Malformed(self._random.randbytes(self._random.randint(1, 400)), ("GET",), breaks_off=True)
        one = self._one()
        if kind < 0.10:
            return replace(one, sent=one.sent[: self._random.randrange(1, len(one.sent))], breaks_off=True)
        return one

    def _one(self) -> Malformed:
        path, method, operation = self._random.choice(self._operations)
        return replace(self._of(path, method, operation), routes=((path, method),))

    def _of(self, path: str, method: str, operation: Mapping[str, Any]) -> Malformed:
        if path == "/v1" or self._odds(8):
            return self._action(method)
        target = self._random.choice(PATHS) if self._odds(6) else self._path(path)
        target += self._query([each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"])
        if self._odds(5):
            method = self._random.choice(METHODS)
        body = self._body(operation) if method not in ("GET", "HEAD") or self._odds(5) else b""
        return self._framed(method, target, body, self._random.choice(TYPES) if self._odds(20) else TYPES[0])

    def _action(self, method: str) -> Malformed:
        pairs = [("Action", self._random.choice(self._actions) if self._odds(90) else self._text())]
        pairs += [
            (name, json.dumps(TEMPLATE) if name == "TemplateBody" and self._odds(50) else self._text())
            for name in self._random.choices(ACTION_PARAMETERS, k=self._random.randint(0, 8))
        ]
        if self._odds(50):
            pairs.append(("StackName", self._known.values["stack_name"]))
        form = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)
        if method == "POST" and self._odds(70):
            return self._framed("POST", "/v1/", self._mutated(form.encode()), TYPES[2])
        return self._framed(self._random.choice(("GET", "POST")), f"/v1/?{form}", b"", TYPES[2])

    def _path(self, path: str) -> str:
        parts = []
        for part in path.split("/"):
            if not part.startswith("{"):
                parts.append(part)
                continue
            name = part.strip("{}").partition(":")[0]
            given = self._known.values.get(name)
            odd = given is None or self._odds(4 if name == "project" else 20)
            parts.append(_quoted(self._text()) if odd or given is None else given)
        return "/".join(parts)

    def _query(self, names: Sequence[str]) -> str:
        if self._odds(40):
            return ""
        chosen = self._random.choices([*names, "limit", "marker", "sort_keys", "x"], k=self._random.randint(1, 5))
        pairs = [f"{name}={_quoted(self._text())}" for name in chosen]
        if self._odds(10):
            pairs.append(self._random.choice(("=", "&&&", "%", "%zz=%zz", "a" * 9000, "%00=1", ";=;", "x=1&" * 500)))
        return "?" + "&".join(pairs)

    def _body(self, operation: Mapping[str, Any]) -> bytes:
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        kind = self._random.random()
        if kind < 0.03:
            return self._deep()
        if kind < 0.05:
            return json.dumps({f"k{number}": number for number in range(20_000)}).encode()
        if kind < 0.10:
            return _json(self._value(3))
        if kind < 0.13:
            return self._random.randbytes(self._random.randint(0, 2000))
        body = _json(self._object(schema))
        return self._mutated(body) if self._odds(10) else body

    def _deep(self) -> bytes:
        depth = self._random.choice((50, 120, 300, 900, 1100, 20_000))
        opening, closing = self._random.choice(((b'{"a":', b"}"), (b"[", b"]")))
        nested = opening * depth + b"1" + closing * depth
        if self._odds(20):
            return nested
        name = self._random.choice(
            ("template", "environment", "parameters", "files", "tags", "options", "config", "inputs")
        )
        others = b'"stack_name": "deep", "name": "deep", "group": "g", "config": "", "action": "CREATE"'
        return b'{%s, "%s": %s}' % (others, name.encode(), nested)

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        properties = schema.get("properties", {})
        needed = {"template", *schema.get("required", ())}
        made = {name: self._fitting(name) for name in properties if name in needed or self._odds(30)}
        for name in [*properties, "x"]:
            if self._odds(4):
                made[name] = self._value(3)
        return made

    def _fitting(self, name: str) -> Any:
        """A value that is nearly right."""
        if name == "template":
            return self._template()
        plausible: dict[str, Any] = {
            "stack_name": self._random.choice(("odd", "other", self._known.values["stack_name"])),
            "parameters": {"word": self._random.choice(("x", self._text()))},
            "environment": {"parameters": {"word": "y"}, "parameter_defaults": {"z": self._text()}},
            "files": {"a.yaml": "parameters: {word: z}"},
            "environment_files": [],
            "adopt_stack_data": None,
            "template_url": None,
            "converge": False,
            "clear_parameters": [],
            "tags": "a,b",
            "timeout_mins": 5,
            "disable_rollback": True,
            "config": "echo",
            "options": {},
            "inputs": [],
            "outputs": [],
        }
        return plausible.get(name, self._value(2)) if self._odds(97) else self._value(2)

    def _template(self) -> Any:
        template = json.loads(json.dumps(TEMPLATE))
        for _ in range(self._random.choice((0, 0, 1, 1, 2))):
            self._spoil(template)
        return json.dumps(template) if self._odds(30) else template

    def _spoil(self, part: Any) -> None:
        """Put something odd somewhere in it."""
        while isinstance(part, dict | list) and part:
            key = self._random.choice(list(part)) if isinstance(part, dict) else self._random.randrange(len(part))
            if not isinstance(part[key], dict | list) or self._odds(25):
                part[key] = self._value(3)
                return
            part = part[key]

    def _value(self, depth: int) -> Any:
        kind = self._random.random()
        if depth == 0 or kind < 0.4:
            return self._text()
        if kind < 0.6:
            return self._random.choice(READABLE_NUMBERS if self._readable else NUMBERS)
        if kind < 0.7:
            return self._random.choice((None, True, False, [], {}))
        inner = [self._value(depth - 1) for _ in range(self._random.randint(0, 4))]
        return inner if kind < 0.85 else {self._text(): each for each in inner}

    def _text(self) -> str:
        return self._random.choice(READABLE_TEXTS if self._readable else TEXTS)

    def _mutated(self, body: bytes) -> bytes:
        changed = bytearray(body)
        for _ in range(self._random.randint(1, 4)):
            if changed:
                place = self._random.randrange(len(changed))
                changed[place : place + self._random.randint(0, 3)] = self._random.randbytes(self._random.randint(0, 3))
        return bytes(changed)

    def _framed(self, method: str, target: str, body: bytes, content_type: str) -> Malformed:
        headers: list[tuple[bytes, bytes]] = [(b"Host", b"127.0.0.1")] if not self._odds(2) else []
        if body or self._odds(30):
            headers.append((b"Content-Type", content_type.encode()))
        odd = self._random.choices(HEADERS, k=self._random.randint(1, 3)) if self._odds(15) else []
        headers += odd
        breaks_off = any(name.lower() in HEADERS_OF_FRAMING for name, _ in odd)
        kind = self._random.random()
        if body and kind < 0.08:
            body = b"".join(self._chunks(body))
            headers.append((b"Transfer-Encoding", b"chunked"))
            breaks_off = True
        elif body and kind < 0.12:
            length = len(body) + self._random.choice((-3, 5, 10**6, 10**12))
            headers.append((b"Content-Length", b"%d" % length))
            breaks_off = True
        elif body or method in ("POST", "PUT", "PATCH"):
            headers.append((b"Content-Length", b"%d" % len(body)))
        version = (
            b"HTTP/1.1" if not self._odds(2) else self._random.choice((b"HTTP/1.0", b"HTTP/9.9", b"http/1.1", b""))
        )
        line = method.encode("latin-1") + b" " + target.encode("latin-1", "replace") + b" " + version
        head = b"\r\n".join([line, *(name + b": " + value for name, value in headers)])
        return Malformed(head + b"\r\n\r\n" + body, (method,), breaks_off)

    def _chunks(self, body: bytes) -> Iterator[bytes]:
        place = 0
        while place < len(body):
            size = self._random.randint(1, 4000)
            part = body[place : place + size]
            shown = len(part) if not self._odds(5) else len(part) + self._random.randint(-2, 2)
            yield b"%x\r\n%s\r\n" % (max(shown, 0), part)
            place += size
        if not self._odds(10):
            yield self._random.choice((b"0\r\n\r\n", b"0\r\nx: y\r\n\r\n", b"0;ext\r\n\r\n", b"zz\r\n\r\n"))


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="%" if text.startswith("%") else "")


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
