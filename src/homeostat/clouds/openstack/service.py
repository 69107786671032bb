"""HTTP client of one OpenStack service for one project; failures become the errors of the port."""

import html
import logging
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
import urllib3
from keystoneauth1 import adapter, discover, exceptions

from homeostat.clouds.credentials import Credentials
from homeostat.clouds.openstack.answers import READS, Unauthenticated, error_of, retry_after_s
from homeostat.clouds.openstack.budget import Budget
from homeostat.clouds.openstack.outages import Outages
from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain

LOG = logging.getLogger(__name__)
Wire = dict[str, Any]
PAGE = 1000
"""Items per page of a list; a service may return fewer."""
PAGES_MAX = 10_000
ALWAYS: Mapping[str, Mapping[str, str]] = {"message": {"Client-ID": str(uuid.uuid4())}}
"""Service -> headers of all its requests: Messages tells its clients apart by `Client-ID`."""
NOT_SENT = (
    requests.exceptions.ConnectTimeout,
    requests.exceptions.InvalidURL,
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
)
"""Errors after which no request can have reached the service."""
LATE_S = 30.0
"""Seconds for which a service that is back may still carry out an earlier request whose answer was lost."""
BROKEN_OFF = frozenset({502, 504})
"""Status codes of a proxy that no longer waits for the service, if the answer has no JSON body of the service."""
PROXY_CODES = frozenset({502, 503, 504})
"""Status codes of a proxy whose service does not listen, if the answer has no JSON body of the service."""
DOUBTED = frozenset({403, 404})
"""Refusals that a service may send by error just after its start."""


class Service:
    """Client of one service for one project. Safe to share between threads."""

    def __init__(
        self,
        type: str,
        project: str,
        proxy: Callable[[], adapter.Adapter],
        credentials: Credentials | None,
        budget: Budget,
        outages: Outages,
        versions: tuple[str, str] | None = None,
    ) -> None:
        """Keep the arguments; no request is sent before the first use.

        Args:
            type: Type of the service in the catalogue.
            proxy: Returns the client of openstacksdk.
            credentials: Tokens of the stacks' owners; None to use the login of the connection.
            budget: Rate limit of requests.
            outages: Services that are away or silent.
            versions: Lowest and highest supported microversion; None for a service without microversions.
        """
        self.type = type
        self._project = project
        self._proxy = proxy
        self._credentials = credentials
        self._budget = budget
        self._outages = outages
        self._versions = versions
        self._microversion: str | None = None

    @property
    def project_id(self) -> str:
        """Id of the project that the requests are for."""
        return str(self._proxy().get_project_id())

    @property
    def has_owners(self) -> bool:
        """Whether requests carry the credentials of the stacks' owners, who may see different things."""
        return self._credentials is not None

    def endpoint(self) -> str:
        """Return the URL of the service for the project.

        Raises:
            Transient: The catalogue cannot be read.
        """
        try:
            # Not the method of the proxy: that of Identity returns an endpoint of the catalogue by its id.
            return str(adapter.Adapter.get_endpoint(self._proxy()))
        except (exceptions.ClientException, requests.RequestException) as error:
            raise Transient(f"{self.type} has no address: {error}") from error

    def get(self, path: str, **params: Any) -> Wire:
        """Return an object or a page.

        Raises:
            Missing: The object does not exist.
            Transient: The service does not answer.
        """
        return self.request("GET", path, params=params)

    def list(self, path: str, key: str, of: str = "", /, **params: Any) -> Iterator[Wire]:
        """Yield all items of a list, page by page.

        Args:
            path: Path of the list.
            key: Field of the answer that holds the items.
            of: As for `request`.
            params: Filters; `limit` for a smaller page size, or None if the list takes no limit.

        Raises:
            Transient: The service does not answer.
        """
        more: dict[str, Any] = {"limit": params.get("limit", PAGE)}
        for _ in range(PAGES_MAX):
            page = self.request("GET", path, of=of, params={**params, **more})
            yield from page.get(key) or ()
            query = _next_page(page, key)
            if not query or query == more:
                return
            more = query
        raise Transient(f"{self.type}: the list {path} has no end")

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        of: str = "",
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Wire:
        """Send a request, and return the body of the answer.

        Args:
            method: HTTP method.
            path: Path below the endpoint.
            body: Body, as JSON.
            of: Token of a creation, or handle: the request is sent with the credentials of this stack's owner.
            more: Further arguments for keystoneauth, such as a `microversion` other than the negotiated one.

        Raises:
            Missing: The object does not exist.
            Transient: The service does not answer, or asks to retry later.
            Terminal: The service refuses the request.
            Uncertain: The request may have been carried out.
        """
        return _body(self.answer(method, path, body, of, params, **more))

    def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        of: str = "",
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> requests.Response:
        """Send a request, and return the whole answer, which is a success. Arguments and errors as for `request`."""
        if body is not None:
            more["json"] = body
        try:
            return self._attempt(method, path, of, params=params, **more)
        except Unauthenticated:
            # Either the token has just expired, or its user was deleted: then the next token is refused as well.
            self._forget_login(of)
        try:
            return self._attempt(method, path, of, params=params, **more)
        except Unauthenticated as error:
            raise Transient(f"{error}: look at the login, or at the trust of the stack's owner") from error

    def _forget_login(self, of: str) -> None:
        if self._credentials is not None and of:
            self._credentials.refused(self._token_of(self._credentials, of))
        else:
            self._proxy().session.invalidate()

    def _token_of(self, credentials: Credentials, of: str) -> str:
        """Return the token with which to send a request for a stack's owner.

        Raises:
            Transient: Keystone does not answer, or the owner's trust is gone until a user updates the stack.
        """
        try:
            return credentials.token(self._project, of)
        except Terminal as error:
            # No change of the template can repair credentials, so no resource fails because of them.
            raise Transient(f"{self.type}: no credentials for the stack's owner: {error}") from error

    def _attempt(self, method: str, path: str, of: str, **more: Any) -> requests.Response:
        looks = method in READS
        more["headers"] = {**ALWAYS.get(self.type, {}), **more.get("headers", {})}
        patience_s = self._outages.patience_s(self.type)
        if looks and patience_s is not None:
            more["timeout"] = patience_s
        self._budget.take(self.type, looks)
        if self._credentials is not None and of:
            more["headers"] = {**more.get("headers", {}), "X-Auth-Token": self._token_of(self._credentials, of)}
            more["authenticated"] = False  # else keystoneauth would replace the token with its own
        try:
            proxy = self._proxy()
            answer = proxy.request(
                path,
                method,
                raise_exc=False,
                # No retries below this layer: a repeated POST could create an object twice.
                connect_retries=0,
                status_code_retries=0,
                redirect=5 if looks else False,
                **{"microversion": self._negotiated(proxy), **more},
            )
        except HomeostatError:
            raise
        except exceptions.Unauthorized as error:
            raise Unauthenticated(f"identity: {error}") from error
        except (exceptions.EndpointNotFound, exceptions.EmptyCatalog) as error:
            raise Transient(f"the catalogue has no {self.type} service for this project: {error}") from error
        except (exceptions.ClientException, requests.RequestException) as error:
            raise self._unanswered(error, looks) from error
        self._outages.answered(self.type)
        self._doubt(answer, looks)
        if not answer.ok:
            self._budget.pause(self.type, retry_after_s(answer.status_code, answer.headers))
            body = _json(answer)
            refusal = error_of(self.type, method, answer.status_code, body, answer.headers, _error_text(answer))
            # A proxy that gave up waiting has passed the request on: the service may still carry it out.
            if isinstance(refusal, Uncertain) and answer.status_code in BROKEN_OFF and body is None:
                raise Uncertain(str(refusal), LATE_S)
            raise refusal
        return answer

    def _unanswered(self, error: Exception, looks: bool) -> Transient | Uncertain:
        """Return the error for a request without an answer, and report the outage."""
        words = f"{self.type} gave no answer{_endpoint_in(error)}: {_cause(error)}"
        unsent = _not_sent(error)
        if unsent:
            self._outages.away(self.type)
        if any(isinstance(cause, requests.Timeout) for cause in _exception_chain(error)):
            self._outages.silent(self.type, words)
        return Transient(words) if looks or unsent else Uncertain(words, LATE_S)

    def _doubt(self, answer: requests.Response, looks: bool) -> None:
        """Distrust reads and refusals of a service that has just come back.

        Raises:
            Transient: The request has to be sent again.
        """
        if answer.status_code in PROXY_CODES and _json(answer) is None:
            self._outages.away(self.type)
            return
        doubt_s = self._outages.doubt_s(self.type)
        if doubt_s and (looks or answer.status_code in DOUBTED):
            raise Transient(f"{self.type} was away: what it says now is asked once more", doubt_s)

    def _negotiated(self, proxy: adapter.Adapter) -> str | None:
        """Return the newest microversion that the service and this adapter support; None for a service without.

        Raises:
            Terminal: The service is too old.
        """
        if self._versions is None:
            return None
        if self._microversion is None:
            data = proxy.get_endpoint_data()
            newest = data.max_microversion if data is not None else None
            lowest, highest = map(discover.normalize_version_number, self._versions)
            if newest is None or newest < lowest:
                raise Terminal(f"{self.type}: its newest microversion is {newest}, this needs {self._versions[0]}")
            self._microversion = discover.version_to_string(min(newest, highest))
        return self._microversion


def _json(answer: requests.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _error_text(answer: requests.Response) -> str:
    """Return the error text of an answer without JSON: Images explains errors in HTML."""
    text = answer.text if "html" in answer.headers.get("Content-Type", "") else ""
    plain = html.unescape(re.sub("<[^>]*>", " ", re.sub("(?is)<(title|h1)>.*?</\\1>", "", text)))
    return " ".join(plain.split()) or str(answer.reason or "")


def _body(answer: requests.Response) -> Wire:
    if not answer.content:
        return {}
    body = _json(answer)
    return body if isinstance(body, dict) else {"": body}


def _not_sent(error: BaseException) -> bool:
    """Return whether an error shows that the request never reached the service."""
    return any(isinstance(cause, NOT_SENT) for cause in _exception_chain(error))


def _exception_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, the outermost first.

    Stop at our own errors: they belong to an earlier request.
    """
    seen: set[int] = set()
    queue: deque[Any] = deque([error])
    while queue:
        cause = queue.popleft()
        if isinstance(cause, BaseException) and not isinstance(cause, HomeostatError) and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            queue += [cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args]


def _endpoint_in(error: BaseException) -> str:
    """Return the endpoint that an error names; "" if it names none."""
    match = re.search(r"https?://[^/\s'\"]+", str(error))
    return f" at {match[0]}" if match else ""


def _cause(error: BaseException) -> str:
    """Return the reason for the missing answer: the text of the innermost error."""
    *_, first = _exception_chain(error)
    return str(getattr(first, "strerror", None) or first) or type(first).__name__


def _next_page(page: Wire, key: str) -> dict[str, str]:
    """Return the query of the next page, from the link in the answer; {} after the last page.

    Only the query of the link is used: behind a proxy its host may be wrong.
    """
    links = page.get(f"{key}_links") or page.get("links") or ()
    link = page.get("next") or (links.get("next") if isinstance(links, dict) else None)
    if not link and isinstance(links, list):
        link = next((entry["href"] for entry in links if entry.get("rel") == "next"), None)
    query = dict(parse_qsl(urlsplit(link).query)) if link else {}
    return {name: value for name, value in query.items() if name in ("limit", "marker", "offset")}
