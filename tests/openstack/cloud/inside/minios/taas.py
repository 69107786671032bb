"""TaaS's own driver, with the answers of an agent, of which there is none: what is made is ACTIVE, and can go."""

from typing import Any

from neutron_lib import constants
from neutron_taas.services.taas.service_drivers import taas_rpc


class MiniTaasDriver(taas_rpc.TaasRpcDriver):  # type: ignore[misc]
    def __init__(self, service_plugin: Any) -> None:
        super().__init__(service_plugin)
        self._agent = taas_rpc.TaasCallbacks(self, service_plugin)

    def create_tap_service_postcommit(self, context: Any) -> None:
        super().create_tap_service_postcommit(context)
        self._agent.set_tap_service_status(context._plugin_context, context.tap_service, constants.ACTIVE)

    def delete_tap_service_precommit(self, context: Any) -> None:
        super().delete_tap_service_precommit(context)
        self._agent.set_tap_service_status(context._plugin_context, context.tap_service, constants.INACTIVE)

    def create_tap_flow_postcommit(self, context: Any) -> None:
        super().create_tap_flow_postcommit(context)
        self._agent.set_tap_flow_status(context._plugin_context, context.tap_flow, constants.ACTIVE)

    def delete_tap_flow_precommit(self, context: Any) -> None:
        super().delete_tap_flow_precommit(context)
        self._agent.set_tap_flow_status(context._plugin_context, context.tap_flow, constants.INACTIVE)
