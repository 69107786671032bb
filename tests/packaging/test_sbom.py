"""The bill of materials: valid, whole, and with the hashes of what is locked."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[2]
VENDORED = ROOT / "src/homeostat/dashboard/static/vendor/vendor.json"
HOMEOSTAT = "pkg:pypi/homeostat@"


def written(folder: Path, **more: str) -> str:
    wheel = folder / f"homeostat-{version('homeostat')}-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", **more}
    subprocess.run(
        [sys.executable, ROOT / "scripts/sbom.py", folder], env=environment, check=True, stdout=subprocess.PIPE
    )
    (file,) = folder.glob("homeostat-*.cdx.json")
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("bill"))


@pytest.fixture(scope="module")
def bill(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def hashes(component: dict[str, Any]) -> set[str]:
    return {each["content"] for reference in component["externalReferences"] for each in reference["hashes"]}


def test_it_is_what_the_schema_says(text: str) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"type": "library"', '"type": "book"')) is not None


def test_it_is_the_same_each_time(text: str, tmp_path: Path) -> None:
    assert written(tmp_path, PYTHONHASHSEED="7") == text


def test_it_has_all_that_is_locked_for_a_release_with_its_hashes(bill: dict[str, Any]) -> None:
    lock = (ROOT / "packaging/release.lock").read_text(encoding="utf-8")
    entries = {
        entry.split()[0]: set(re.findall(r"sha256:(\w+)", entry)) for entry in re.split(r"\n(?! )", lock) if entry
    }
    found = {
        f"{each['name']}=={each['version']}": hashes(each)
        for each in bill["components"]
        if each["purl"].startswith("pkg:pypi/")
    }
    assert found == entries


def test_it_has_the_libraries_of_the_dashboard_with_hashes_and_licences(bill: dict[str, Any]) -> None:
    packages = json.loads(VENDORED.read_text(encoding="utf-8"))["packages"]
    libraries = [each for each in bill["components"] if each["purl"].startswith("pkg:npm/")]
    found = {"/".join(filter(None, (each.get("group"), each["name"]))): each for each in libraries}
    assert found.keys() == packages.keys()
    for name, each in packages.items():
        assert hashes(found[name]) == {each["archive"].removeprefix("sha512-")}
        assert [licence["license"]["id"] for licence in found[name]["licenses"]] == [each["license"]]


def test_everything_in_it_is_required_by_something(bill: dict[str, Any]) -> None:
    required = {each for entry in bill["dependencies"] for each in entry.get("dependsOn", [])}
    assert required == {each["bom-ref"] for each in bill["components"]}
    assert bill["metadata"]["component"]["bom-ref"].startswith(HOMEOSTAT)
    assert len(hashes(bill["metadata"]["component"])) == 1


def test_licences_are_missing_of_what_other_pythons_need_alone(bill: dict[str, Any]) -> None:
    lock = (ROOT / "packaging/release.lock").read_text(encoding="utf-8")
    for_some = set(re.findall(r"^([\w-]+)==\S+ ; python", lock, re.MULTILINE))
    assert {each["name"] for each in bill["components"] if not each.get("licenses")} <= for_some
