"""User data by its format, as a machine takes it with cloud-init and without."""

import json
from email import message_from_string
from email.message import Message
from typing import Any

import pytest

from homeostat.resources import mime, user_data
from homeostat.resources.mime import Part
from homeostat.resources.user_data import CFNTOOLS, RAW, SOFTWARE_CONFIG

SCRIPT = "#!/bin/sh\necho hi\n"
API = "http://api:8004/v1/"


def parts(form: str, given: str, metadata: dict[str, Any] | None = None) -> dict[str, tuple[str, str]]:
    """Name of each part -> subtype and content, as another reader of MIME sees them."""
    whole = message_from_string(user_data.document(form, given, metadata or {}, API))
    assert whole.get_content_type() == "multipart/mixed"
    found = [part for part in whole.walk() if not part.is_multipart()]
    assert all(part.get_content_maintype() == "text" for part in found)
    return {str(part.get_filename()): (part.get_content_subtype(), text_of(part)) for part in found}


def text_of(part: Message) -> str:
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def test_raw_is_as_given() -> None:
    assert user_data.document(RAW, SCRIPT, {"a": 1}, API) == SCRIPT


def test_the_tools_get_the_script_as_a_file_and_something_that_runs_it() -> None:
    found = parts(CFNTOOLS, SCRIPT, {"AWS::CloudFormation::Init": {}})
    assert found["cfn-userdata"] == ("x-cfninitdata", SCRIPT)
    assert json.loads(found["cfn-init-data"][1]) == {"AWS::CloudFormation::Init": {}}
    assert found["cfn-metadata-server"][1] == API
    kinds = {name: kind for name, (kind, _) in found.items()}
    assert kinds["loguserdata.py"] == "x-shellscript"
    assert kinds["part-handler.py"] == "part-handler"
    assert kinds["boothook.sh"] == "cloud-boothook"
    for name in ("loguserdata.py", "part-handler.py"):
        compile(found[name][1], name, "exec")


def test_the_handler_writes_the_parts_of_its_kind(tmp_path: Any) -> None:
    found = parts(CFNTOOLS, SCRIPT, {"a": 1})
    handler: dict[str, Any] = {}
    exec(found["part-handler.py"][1].replace(user_data.FILES, str(tmp_path)), handler)
    assert handler["list_types"]() == ["text/x-cfninitdata"]
    handler["handle_part"](None, "__begin__", None, None)
    for name, (kind, content) in found.items():
        if kind == "x-cfninitdata":
            handler["handle_part"](None, f"text/{kind}", name, content)
    assert (tmp_path / "cfn-userdata").read_text() == SCRIPT
    assert (tmp_path / "cfn-userdata").stat().st_mode & 0o777 == 0o700
    assert json.loads((tmp_path / "cfn-init-data").read_text()) == {"a": 1}


def test_nothing_is_sent_where_there_is_nothing_to_send() -> None:
    assert user_data.document(CFNTOOLS, "", {}, API) == ""


def test_software_config_takes_the_parts_of_what_is_given() -> None:
    given = mime.multipart(
        [Part(SCRIPT, "x-shellscript", "one.sh"), Part("#cloud-config\n{}\n", "cloud-config", "two")]
    )
    found = parts(SOFTWARE_CONFIG, given, {"os-collect-config": {}})
    assert found["one.sh"] == ("x-shellscript", SCRIPT)
    assert found["two"] == ("cloud-config", "#cloud-config\n{}\n")
    assert "loguserdata.py" not in found
    plain = parts(SOFTWARE_CONFIG, SCRIPT)
    assert ("plain", SCRIPT) in plain.values()


@pytest.mark.parametrize("text", ["ä€ 😀", "", "no newline", "a\r\nb\n", "--===============\n"])
def test_a_part_is_read_as_it_was_written(text: str) -> None:
    (found,) = mime.split(mime.multipart([Part(text, "plain", "n")])) or []
    assert found.content.replace("\r\n", "\n") == text.replace("\r\n", "\n")


def test_the_same_parts_are_the_same_document() -> None:
    alike = [Part(SCRIPT), Part("x", "y", "z")]
    assert mime.multipart(alike) == mime.multipart(list(alike))
    assert mime.multipart(alike) != mime.multipart(alike[:1])


@pytest.mark.parametrize(
    ("form", "given", "scripts", "left"),
    [
        (CFNTOOLS, SCRIPT, (SCRIPT,), 0),
        (CFNTOOLS, "#cloud-config\npackages: [x]\n", (), 1),
        (SOFTWARE_CONFIG, SCRIPT, (SCRIPT,), 0),
        (SOFTWARE_CONFIG, mime.multipart([Part(SCRIPT), Part("#cloud-config\n"), Part(SCRIPT)]), (SCRIPT, SCRIPT), 1),
        (SOFTWARE_CONFIG, "", (), 0),
    ],
)
def test_a_machine_without_cloud_init(form: str, given: str, scripts: tuple[str, ...], left: int) -> None:
    boot = user_data.boot_of(user_data.document(form, given, {"a": 1}, API))
    assert boot is not None
    assert boot.scripts == scripts
    assert json.loads(boot.files["cfn-init-data"]) == {"a": 1}
    assert len(boot.left) == left


def test_what_is_no_document_is_left_as_it_is() -> None:
    assert user_data.boot_of(SCRIPT) is None
    assert user_data.boot_of("Content-Type: text/plain\n\nx") is None


@pytest.mark.parametrize("name", ["../../../etc/passwd", "..", "/etc/passwd"])
def test_names_of_files_lead_nowhere_else(name: str) -> None:
    boot = user_data.boot_of(mime.multipart([Part("x", "x-cfninitdata", name)]))
    assert boot is not None
    assert set(boot.files) <= {"passwd"}
