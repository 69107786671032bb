"""Keys of users (`openstack ec2 credentials create`): Keystone verifies their signatures."""

import hashlib
import logging
from collections.abc import Mapping
from typing import Any

from homeostat.api.cloudformation.errors import Refused
from homeostat.api.cloudformation.signatures import SignedRequest
from homeostat.clouds.identity.keystone import Keystone
from homeostat.model.caller import Caller
from homeostat.model.errors import Transient

LOG = logging.getLogger(__name__)
SIGNATURES = ("Signature", "X-Amz-Signature")
UNKNOWN = "access key not found"
UNSIGNED = "signature not supplied"


class KeystoneEc2:
    """Verification by Keystone, with the service's own token: Keystone answers only services."""

    def __init__(self, keystone: Keystone) -> None:
        self._keystone = keystone

    def caller(self, sent: SignedRequest, access_key: str, signature: str) -> Caller:
        """Verify a request and return its caller.

        Raises:
            Refused: The key or the signature is not valid.
            Transient: Keystone does not answer, or rejects the service's own token.
        """
        body = {"ec2Credentials": credentials(sent, access_key, signature)}
        service = self._keystone.service
        answer = self._keystone.call(lambda: service.post("/ec2tokens", json=body, raise_exc=False), looks=True)
        if answer.status_code == 200:
            return _caller(answer.headers["X-Subject-Token"], answer.json()["token"])
        reason = _reason(answer)
        if answer.status_code in (400, 401) or UNKNOWN in reason.lower():
            raise _refusal(reason)
        LOG.error("Keystone does not verify signatures for the service (%s): %s", answer.status_code, reason)
        raise Transient("Keystone does not verify signatures for the service; its log says why.")


def credentials(sent: SignedRequest, access_key: str, signature: str) -> Mapping[str, Any]:
    """Return the input from which Keystone computes the signature: the request without its signature."""
    return {
        "access": access_key,
        "signature": signature,
        "host": sent.header("host"),
        "verb": sent.method,
        "path": sent.path,
        "params": {name: value for name, value in sent.parameters.items() if name not in SIGNATURES},
        "headers": {name.title(): value for name, value in sent.headers},
        "body_hash": hashlib.sha256(sent.body).hexdigest(),
    }


def _refusal(reason: str) -> Refused:
    if UNKNOWN in reason.lower():
        return Refused("InvalidClientTokenId", "Neither Keystone nor a stack knows it.")
    if UNSIGNED in reason.lower():
        return Refused("SignatureDoesNotMatch", "Signature is needed.")
    return Refused("AccessDenied", "Keystone does not take the signature; look at the secret, and at the clock.")


def _reason(answer: Any) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""


def _caller(token: str, claims: Mapping[str, Any]) -> Caller:
    """Return the caller. Raise Refused for a key without a project."""
    project = claims.get("project") or {}
    if not project.get("id"):
        raise Refused("AccessDenied", "The key is for no project.")
    user = claims["user"]
    roles = frozenset(str(role["name"]) for role in claims.get("roles", ()))
    return Caller(
        user=user["name"],
        project=project["id"],
        user_id=user["id"],
        domain=user["domain"]["id"],
        roles=roles,
        of_admin_project=bool(claims.get("is_admin_project", True)),
        token=token,
        trust=(claims.get("OS-TRUST:trust") or {}).get("id"),
    )
