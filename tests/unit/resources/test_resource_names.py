"""Names that no program can take are refused at the door, for every type."""

import pytest

from homeostat.model.errors import Rejected
from homeostat.resources.registry import resource_type

GIVEN = {
    "OS::Nova::KeyPair": {},
    "OS::Nova::Server": {"image": "i", "flavor": "f"},
    "OS::Neutron::Net": {},
    "OS::Swift::Container": {},
}


@pytest.mark.parametrize("type_name", GIVEN)
@pytest.mark.parametrize(
    ("sign", "shown"), [("\0", "U[+]0000"), ("\n", "U[+]000A"), ("\x7f", "U[+]007F"), ("\x9b", "U[+]009B")]
)
def test_a_name_with_a_control_character_is_refused(type_name: str, sign: str, shown: str) -> None:
    with pytest.raises(Rejected, match=rf"properties.name.*control character {shown} \(number 3\)"):
        resource_type(type_name).check({**GIVEN[type_name], "name": f"ab{sign}c"}, ("properties",))


def test_any_other_name_is_fine() -> None:
    assert resource_type("OS::Nova::KeyPair").check({"name": "Schlüssel – 鍵"}) == {"name": "Schlüssel – 鍵"}
