"""Parameters of a request to the CloudFormation API, from its query and its form."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from homeostat.api.cloudformation.errors import Refused

FIELDS_MAX = 10_000
FORM = "application/x-www-form-urlencoded"
Pairs = Sequence[tuple[str, str]]


def read_pairs(encoded: bytes) -> Pairs:
    """Decode names and values of a query or form, in order. Raise Refused (MalformedQueryString)."""
    try:
        pairs = parse_qsl(encoded.decode("ascii"), True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError as error:
        raise Refused("MalformedQueryString", f"They are no UTF-8 with per cent signs: {error}") from error
    if any("\0" in name or "\0" in value for name, value in pairs):
        raise Refused("InvalidParameterValue", "No parameter may hold a NUL character.")
    return pairs


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters by name, without duplicates."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, pairs: Pairs) -> "Parameters":
        """Collect the parameters.

        Raises:
            Refused: A parameter was given twice: the signed value would be a guess.
        """
        values: dict[str, str] = {}
        for name, value in pairs:
            if name in values:
                raise Refused("InvalidParameterCombination", f"{name} is given more than once.")
            values[name] = value
        return cls(values)

    def get(self, *names: str) -> str | None:
        """Return the first of these parameters that is not empty."""
        return next((self.values[name] for name in names if self.values.get(name)), None)

    def needed(self, name: str) -> str:
        """Return a required parameter. Raise Refused (MissingParameter)."""
        value = self.get(name)
        if value is None:
            raise Refused("MissingParameter", f"{name} is needed.")
        return value

    def flag(self, name: str) -> bool | None:
        """Return a boolean parameter; None if absent. Raise Refused."""
        value = self.get(name)
        if value is None:
            return None
        if value.lower() not in ("true", "false"):
            raise Refused("InvalidParameterValue", f"{name} is true or false, not {value!r}.")
        return value.lower() == "true"

    def members(self, name: str) -> list[dict[str, str]]:
        """Return the items of a list, `<name>.member.<N>.<key>`, in the order of N."""
        pattern = re.compile(rf"{re.escape(name)}\.member\.(\d{{1,9}})\.(\w+)\Z")
        items: dict[int, dict[str, str]] = {}
        for parameter, value in self.values.items():
            match = pattern.match(parameter)
            if match:
                items.setdefault(int(match[1]), {})[match[2]] = value
        return [items[number] for number in sorted(items)]

    def has(self, name: str) -> bool:
        """Return whether the parameter, or any item of a list of this name, is given."""
        return any(parameter == name or parameter.startswith(f"{name}.") for parameter in self.values)
