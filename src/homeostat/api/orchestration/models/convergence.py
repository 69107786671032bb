"""The convergence settings of a stack."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from homeostat.api.http.bodies import ONE_BY_ONE, Fault, RequestBody, fault
from homeostat.api.http.inputs import Flag
from homeostat.model.world import HealingPolicy

INTERVAL_MIN_S, INTERVAL_MAX_S = 1.0, 86_400.0 * 30


def _check_interval(seconds: float | None) -> float | None:
    if seconds and not INTERVAL_MIN_S <= seconds <= INTERVAL_MAX_S:
        raise ValueError(seconds)
    return seconds


Enabled = Annotated[Flag, Field(description="Whether drift is corrected and lost resources are replaced.")]
Interval = Annotated[
    float | None,
    Field(description="Seconds between observations of a stack at rest; 0: never; null: the service's default."),
    AfterValidator(_check_interval),
    Fault(f"it must be 0 (never), null (the service's own), or {INTERVAL_MIN_S:g} to {INTERVAL_MAX_S:g} seconds"),
]
Healing = Annotated[
    HealingPolicy | None,
    Field(
        strict=False,
        description="A lost or broken resource is replaced, or only with consent (`ask`); null: replaced.",
    ),
    Fault(f"it must be {', '.join(HealingPolicy)} or null"),
]
Share = Annotated[
    float | None,
    Field(
        gt=0,
        le=1,
        description="Share of the resources that is healed at once: over 0, up to 1; null: the service's default.",
    ),
    Fault("it must be more than 0 and at most 1, or null (the service's own)"),
]


class Switches(RequestBody):
    unknown = "{place}: there is no such switch; there are {names}"

    enabled: Enabled = Field(default_factory=bool)
    observe_interval: Interval = None
    healing: Healing = None

    def columns(self) -> dict[str, Any]:
        """Return the switches of the body, by the columns of the store."""
        return {column: getattr(self, name) for name, column in COLUMNS.items() if name in self.model_fields_set}


COLUMNS = {"enabled": "converge", "observe_interval": "observe_s", "healing": "healing"}
"""Switch -> its column."""


class StackSwitches(Switches):
    healing_share: Share = None
    resources: Annotated[
        dict[str, Switches | None] | None,
        ONE_BY_ONE,
        Field(description="Resources with their own settings; null for a resource: those of the stack."),
        Fault("it must be a map of names"),
    ] = None


class SwitchedConvergence(RequestBody):
    convergence: StackSwitches

    @classmethod
    def check_form(cls, value: Mapping[str, Any]) -> None:
        """Raise an error for any other form of the body."""
        if value.keys() != {"convergence"} or not isinstance(value["convergence"], Mapping):
            raise fault('The body must be {"convergence": {…}}')


class ShownSwitches(TypedDict, total=False):
    """The settings of a resource; absent ones are those of the stack."""

    enabled: Enabled
    observe_interval: Interval
    healing: Healing


class Convergence(TypedDict):
    enabled: Enabled
    observe_interval: Interval
    healing: Healing
    healing_share: Share
    resources: Annotated[dict[str, ShownSwitches], Field(description="Resources with their own settings.")]
    looked_at: Annotated[
        str | None, Field(description="Everything was observed since this time; null: some resources never were.")
    ]
    blind: Annotated[str | None, Field(description="Why some resources cannot be observed now.")]


class ShownConvergence(TypedDict):
    convergence: Convergence
