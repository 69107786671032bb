"""Write the bill of materials of a release, in CycloneDX's JSON: what a service needs, and what the dashboard brings.

Use: python scripts/sbom.py DIR, the folder of what `make dist` has built. Licences and dependencies are those that the
installed releases declare; what is locked for other Pythons only is listed without. SOURCE_DATE_EPOCH is its time.
"""

import hashlib
import json
import os
import re
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from itertools import chain
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License, LicenseAcknowledgement
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "packaging/release.lock"
VENDORED = ROOT / "src/homeostat/dashboard/static/vendor/vendor.json"
EXTRA = "all"
PYTHONS = ("3.11", "3.12", "3.13")
PROJECT = "homeostat"


def bill(built: Path) -> Bom:
    """Return what a release consists of, and what requires what."""
    version = metadata.version(PROJECT)
    files = [*built.glob(f"{PROJECT}-{version}*.whl"), *built.glob(f"{PROJECT}-{version}.tar.gz")]
    root = component("pypi", PROJECT, version, licenses_of(PROJECT), map(digest, files), ComponentType.APPLICATION)
    libraries: dict[str, list[Component]] = {}  # several versions of some, each for other Pythons
    for library in locked():
        libraries.setdefault(library.name, []).append(library)
    vendored = list(brought())
    bom = Bom(components=[*chain.from_iterable(libraries.values()), *vendored])
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_OID, LOCK.read_text("utf-8") + VENDORED.read_text("utf-8"))
    for name, required in dependencies().items():
        needed = [library for each in sorted(required) for library in libraries.get(each, ())]
        for dependant in [root] if name == PROJECT else libraries[name]:
            bom.register_dependency(dependant, [*needed, *vendored] if dependant is root else needed)
    return bom


def locked() -> Iterator[Component]:
    """Yield what is locked."""
    for entry in re.split(r"\n(?! )", LOCK.read_text("utf-8").rstrip()):
        name, version = entry.split()[0].split("==")
        hashes = (HashType(alg=HashAlgorithm.SHA_256, content=each) for each in re.findall(r"sha256:(\w+)", entry))
        yield component("pypi", name, version, licenses_of(name), hashes)


def brought() -> Iterator[Component]:
    """Yield the libraries that the dashboard brings."""
    for name, each in json.loads(VENDORED.read_text("utf-8"))["packages"].items():
        archive = HashType(alg=HashAlgorithm.SHA_512, content=each["archive"].removeprefix("sha512-"))
        yield component("npm", name, each["version"], [licence(each["license"])], [archive])


def component(
    registry: str,
    name: str,
    version: str,
    licenses: list[License],
    hashes: Iterator[HashType] | list[HashType],
    kind: ComponentType = ComponentType.LIBRARY,
) -> Component:
    """Return a component. A release has several files, and each its own hash: so they are not the component's."""
    group, _, short = name.rpartition("/")
    purl = PackageURL(registry, namespace=group or None, name=short, version=version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION, url=XsUri(purl.to_string()), comment="its files", hashes=hashes
    )
    return Component(
        group=group or None,
        name=short,
        version=version,
        type=kind,
        bom_ref=purl.to_string(),
        purl=purl,
        licenses=licenses,
        external_references=[files],
    )


def dependencies() -> dict[str, set[str]]:
    """Return what each installed release requires on any Python, with the extras that are asked for."""
    found: dict[str, set[str]] = {}
    waiting, seen = [(PROJECT, EXTRA)], set[tuple[str, str]]()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        edges = found.setdefault(name, set())
        for requirement in map(Requirement, declared(name)):
            if applies(requirement, extra):
                needed = canonicalize_name(requirement.name)
                edges |= {needed} - {name}
                waiting += [(needed, each) for each in ("", *requirement.extras)]
    return {name: edges for name, edges in found.items() if edges}


def declared(name: str) -> list[str]:
    """Return the requirements of a release, none if it is for another Python than this one."""
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def applies(requirement: Requirement, extra: str) -> bool:
    """Is it a requirement on any Python, with this extra?"""
    marker = requirement.marker
    versions = ({"python_version": each, "python_full_version": f"{each}.0"} for each in PYTHONS)
    return marker is None or any(marker.evaluate({"extra": extra, **each}) for each in versions)


def licenses_of(name: str) -> list[License]:
    """Return the licence that a release declares; the last resort are its classifiers."""
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return []
    short = [each for key in ("License-Expression", "License") for each in said.get_all(key, []) if "\n" not in each]
    classifiers = [each for each in said.get_all("Classifier", []) if each.startswith("License :: ")]
    return [licence(each) for each in short[:1] or (each.rpartition(" :: ")[2] for each in classifiers)]


def licence(name: str) -> License:
    """Return a licence by its identifier, expression or name."""
    return LicenseFactory().make_from_string(name, license_acknowledgement=LicenseAcknowledgement.DECLARED)


def digest(file: Path) -> HashType:
    """Return the hash of a file that was built."""
    return HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(file.read_bytes()).hexdigest())


def main() -> int:
    """Write it beside what was built."""
    built = Path(sys.argv[1])
    text = make_outputter(bill(built), OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    target = built / f"{PROJECT}-{metadata.version(PROJECT)}.cdx.json"
    target.write_text(text + "\n", "utf-8")
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
