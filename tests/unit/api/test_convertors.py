"""What routes of ours match, and that routes of others match what they did before."""

import pytest
from starlette.convertors import CONVERTOR_TYPES
from starlette.routing import Route, compile_path

from homeostat.api.cloudformation.signed_urls import EARLY, ROUTER
from homeostat.api.http.path_convertors import ANY_PATH, SIGNED_ARN
from homeostat.api.orchestration import lookup


def matched(path: str, address: str) -> bool:
    return compile_path(path)[0].match(address) is not None


def test_the_path_of_starlette_stays_what_it_is() -> None:
    assert CONVERTOR_TYPES["path"].regex == ".*"
    assert not matched("/a/{rest:path}", "/a/b\nc")


@pytest.mark.parametrize("rest", ["", "b", "b/c", "b\nc", "\n"])
def test_any_path_takes_line_ends_too(rest: str) -> None:
    assert matched(f"/a/{{rest:{ANY_PATH}}}", f"/a/{rest}")


@pytest.mark.parametrize(
    ("address", "is_signed"),
    [
        ("arn:openstack:heat::p:stacks/a/b/resources/c", True),
        ("arn:openstack:heat::\n", True),
        ("stacks", False),
        ("stacks/arn:openstack:heat::p", False),
        ("arn:openstack:nova::p", False),
    ],
)
def test_projects_may_have_the_names_of_signed_paths(address: str, is_signed: bool) -> None:
    assert matched(f"/v1/signal/{{arn:{SIGNED_ARN}}}", f"/v1/signal/{address}") is is_signed


def test_signed_addresses_are_looked_up_first_and_as_before() -> None:
    early, later = (
        {
            (method, route.endpoint)
            for route in router.routes
            if isinstance(route, Route)
            for method in route.methods or ()
        }
        for router in (EARLY, ROUTER)
    )
    assert early == later


def test_all_routes_below_an_arn_match_any_path() -> None:
    routes = [route for router in (ROUTER, lookup.BELOW) for route in router.routes if isinstance(route, Route)]
    paths = [route for route in routes if "path" in route.path]
    assert len(paths) > 4
    assert all(f":{ANY_PATH}}}" in route.path for route in paths)
