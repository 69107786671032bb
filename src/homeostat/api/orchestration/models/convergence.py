"""The convergence settings of a stack."""

from pydantic import BaseModel, Field

from homeostat.model.world import HealingPolicy


class Switches(BaseModel):
    enabled: bool | None = Field(None, description="Whether drift is corrected and lost resources are replaced.")
    observe_interval: float | None = Field(
        None, description="Seconds between observations of a stack at rest; 0: never; null: the service's default."
    )
    healing: HealingPolicy | None = Field(
        None,
        description="A lost or broken resource is replaced, or only with consent (`ask`); null: replaced.",
    )


class Convergence(Switches):
    healing_share: float | None = Field(
        None,
        description="Share of the resources that is healed at once: over 0, up to 1; null: the service's default.",
    )
    resources: dict[str, Switches] = Field({}, description="Resources with their own settings.")
    looked_at: str | None = Field(
        None, description="In responses: everything was observed since this time; null: some resources never were."
    )
    blind: str | None = Field(None, description="In responses: why some resources cannot be observed now.")


class ShownConvergence(BaseModel):
    convergence: Convergence
