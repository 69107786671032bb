"""Regions: which there are, how a service logs in to them, and what their answers mean."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from homeostat.api.access.auth import BasicAccess
from homeostat.clouds import heat_api
from homeostat.clouds.heat_api import KIND, VALIDATE, Refused, Regions, RemoteStacks
from homeostat.clouds.port import Operation
from homeostat.clouds.regions import OWN, Login, Region, read_logins, read_regions
from homeostat.model.errors import Rejected, Terminal, Transient, Uncertain
from homeostat.model.observed import Observation
from tests.wire.remote_stacks import TEXT, P, intent, stacks_of
from tests.wire.running import database, serving

# -- who may ask -----------------------------------------------------------------------------------------------------


def test_logins(tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"ada:{hashed}:{P}\n")
    with database(tmp_path) as db, serving(db, BasicAccess(tmp_path / "users")) as url:

        def stacks(*logins: Login) -> RemoteStacks:
            return Regions([Region("east", url, logins)]).of(P)

        (made,) = stacks(Login("ada", "secret", P)).create(KIND, [intent("t", "n", "east")])
        assert isinstance(made, Observation)
        assert made.handle.startswith("east/")
        (refused,) = stacks(Login("ada", "guess")).create(KIND, [intent("u", "m", "east")])
        assert isinstance(refused, Terminal)
        assert f"The operator gives the login for project {P} with --region-logins." in str(refused)
        with pytest.raises(Transient, match="region-logins"):
            stacks().observe(KIND, [made.handle])


def test_files_of_logins() -> None:
    found = read_logins("# comment\n\neast ada:lace:2\neast bob:b site\n")
    region = Region("east", "http://x", found["east"])
    assert region.login_for("site") == ("bob", "b")
    assert region.login_for("other") == ("ada", "lace:2")
    assert "lace" not in repr(found)
    with pytest.raises(ValueError, match="line 2"):
        read_logins("east ada:x\neast ada")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["east"], "east: write NAME=URL"),
        (["east=ftp://x"], "write NAME=URL"),
        (["a/b=http://x"], "write NAME=URL"),
        (["west=http://x"], "a region that is not known: east"),
    ],
)
def test_settings_that_do_not_fit(given: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_regions(given, {"east": [Login("a", "b")]} if "west" in given[0] else {})


def test_addresses_of_regions() -> None:
    (found,) = read_regions(["east=https://east.example.org:8004/v1/"], {})
    assert found.url == "https://east.example.org:8004"


# -- answers that mean trouble ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def answering(act: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A server that does this with every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            act(self)

        def do_GET(self) -> None:
            act(self)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def code(number: int) -> Callable[[BaseHTTPRequestHandler], None]:
    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(number)
        handler.send_header("content-length", "0")
        handler.end_headers()

    return act


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


@pytest.mark.parametrize(
    ("act", "made", "reason"),
    [
        (code(500), Uncertain, "it may have been made"),
        (hang_up, Uncertain, "it may have been made"),
        (code(503), Transient, "it was not"),
        (code(429), Transient, "it was not"),
        (code(400), Refused, "only another template helps"),
        (code(403), Terminal, "only another login helps"),
    ],
    ids=["500", "hang up", "503", "429", "400", "403"],
)
def test_what_an_answer_means(act: Callable[[BaseHTTPRequestHandler], None], made: type, reason: str) -> None:
    with answering(act) as url, contextlib.closing(Regions([Region(OWN, url)])) as regions:
        stacks = stacks_of(regions)
        (answer,) = stacks.create(KIND, [intent("t", "n")])
        assert type(answer) is made, reason
        with pytest.raises(Transient):
            stacks.observe(KIND, ["1"])
        (deleted,) = stacks.delete(KIND, ["1"])
        assert isinstance(deleted, Transient), "what cannot be looked up is not gone"


def test_a_region_that_does_not_answer_is_asked_once_about_all_templates_of_a_request() -> None:
    asked: list[str] = []

    def busy(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        code(503)(handler)

    def spec(region: str, word: str) -> Operation:
        arguments = {"region": region, "template": TEXT, "parameters": {"word": word}, "files": {}}
        return Operation("", VALIDATE, arguments)

    with answering(busy) as url, answering(code(400)) as wrong, answering(code(200)) as well:
        others = [Region("busy", url), Region("wrong", wrong), Region("well", well)]
        with contextlib.closing(Regions(others)) as regions:
            regions_asked = ["busy", "busy", "wrong", "well", "mars"]
            answers = stacks_of(regions).operate(KIND, [spec(each, str(n)) for n, each in enumerate(regions_asked)])
            assert [type(each) for each in answers] == [Transient, Transient, Rejected, Observation, Terminal]
            assert asked == [f"/v1/{P}/validate"]
        late = iter([0.0, heat_api.VALIDATION_S, heat_api.VALIDATION_S])
        with contextlib.closing(Regions(others, lambda: next(late))) as regions:
            assert [type(each) for each in stacks_of(regions).operate(KIND, [spec("well", "x")])] == [Transient]
