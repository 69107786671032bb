"""Versions of the template languages, and the version of a template."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.templates.dialects import AWS_CFN, HEAT_CFN, HOT, HOT_FIRST, Dialect
from homeostat.templates.functions import available

HOT_KEY, AWS_KEY, HEAT_KEY = "heat_template_version", "AWSTemplateFormatVersion", "HeatTemplateFormatVersion"


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a template language.

    Versions of one key are ordered by their dates, which sort as texts.

    Attributes:
        key: Top-level key of the template for the version, such as `heat_template_version`.
        date: Value of the key.
        dialect: Words of the language.
        type: `hot` or `cfn`.
        alias: Alternative to the date, such as `wallaby`; or "".
    """

    key: str
    date: str
    dialect: Dialect = field(repr=False)
    type: str = "hot"
    alias: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.key}.{self.date}"


VERSIONS = (
    *(
        Version(HOT_KEY, date, HOT if date >= "2016-10-14" else HOT_FIRST, alias=alias)
        for date, alias in (
            ("2013-05-23", ""),
            ("2014-10-16", ""),
            ("2015-04-30", ""),
            ("2015-10-15", ""),
            ("2016-04-08", ""),
            ("2016-10-14", "newton"),
            ("2017-02-24", "ocata"),
            ("2017-09-01", "pike"),
            ("2018-03-02", "queens"),
            ("2018-08-31", "rocky"),
            ("2021-04-16", "wallaby"),
        )
    ),
    Version(AWS_KEY, "2010-09-09", AWS_CFN, "cfn"),
    Version(HEAT_KEY, "2012-12-12", HEAT_CFN, "cfn"),
)

_BY_NAME = {(version.key, name): version for version in VERSIONS for name in (version.date, version.alias) if name}


def version_of(template: Mapping[str, Any]) -> Version:
    """Return the version of a template, which needs exactly one version key with a text.

    Raises:
        Rejected: InvalidTemplateVersion: the version key is missing, ambiguous or has an unknown value.
    """
    keys = [key for key in (HOT_KEY, AWS_KEY, HEAT_KEY) if isinstance(template.get(key), str)]
    if len(keys) > 1:
        raise _wrong(f"Ambiguous versions ({', '.join(sorted(keys))})")
    if not keys:
        raise _wrong("Template version was not provided")
    key = keys[0]
    version = _BY_NAME.get((key, template[key]))
    if version is None:
        known = ", ".join(name for of_key, name in _BY_NAME if of_key == key)
        raise _wrong(f'"{key}: {template[key]}". "{key}" should be one of: {known}')
    return version


def declared_in(template: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    """Return the entries of a section of a parsed template by name; {} if the section is missing or not a map.

    Args:
        template: The template, not checked yet.
        section: Name of the section in HOT, whatever the language of the template.

    Raises:
        Rejected: As `version_of` does.
    """
    content = template.get(version_of(template).dialect.word(section))
    return content if isinstance(content, dict) else {}


def _wrong(explanation: str) -> Rejected:
    return Rejected("InvalidTemplateVersion", f"The template version is invalid: {explanation}")


def versions() -> list[tuple[str, str, list[str]]]:
    """Return all versions: full name, type (`hot` or `cfn`), aliases (full names, too)."""
    return [
        (version.full_name, version.type, [f"{version.key}.{version.alias}"] if version.alias else [])
        for version in VERSIONS
    ]


def functions_of(version: str) -> list[tuple[str, str, bool]]:
    """Return the functions of a version: name, description in one line, whether restricted to conditions.

    Args:
        version: Full name or alias of the version, such as `heat_template_version.wallaby`.

    Raises:
        Rejected: NotFound: there is no such version.
    """
    key, _, name = version.partition(".")
    known = _BY_NAME.get((key, name))
    if known is None:
        raise Rejected("NotFound", f"Template version {version} could not be found.")
    # The API shows the first line of the class docstring: docstrings in `functions` are written for users.
    return sorted(
        (entry.name, (entry.kind.__doc__ or "").partition("\n")[0], not entry.ordinary)
        for entry in available(known.key, known.date)
    )
