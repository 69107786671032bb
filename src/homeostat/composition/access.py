"""Access to the API, and the identity of the service: users, access rules, Keystone, trusts."""

import logging
import os
from functools import cache
from typing import TYPE_CHECKING

from homeostat.cli.errors import Usage
from homeostat.cli.settings import ServiceSettings

if TYPE_CHECKING:
    from homeostat.api.access.auth import Access
    from homeostat.api.access.enforcer import Policy
    from homeostat.api.cloudformation.authentication import Ec2
    from homeostat.builtin.signal_queues import SignalQueues
    from homeostat.clouds.identity.keystone import Keystone
    from homeostat.identity.stack_users import StackUsers
    from homeostat.identity.trusts import StackTrusts
    from homeostat.store.database import Database

LOG = logging.getLogger(__name__)
ROOT = 0
"""User id of the superuser, who may always use the service."""


def access(settings: ServiceSettings) -> "Access":
    """Return the authentication of the API.

    Raises:
        Usage: The file of users, or the configuration of Keystone, is wrong.
    """
    from homeostat.api.access.auth import BasicAccess, NoAccess

    if settings.access == "keystone" and settings.keystone_config is not None:
        from homeostat.api.access.keystone import KeystoneAccess

        identity(settings)  # reports errors in the file; keystonemiddleware does not
        try:
            return KeystoneAccess(settings.keystone_config)
        except ValueError as error:
            raise Usage(f"--keystone-config {error}") from error
    if settings.htpasswd is None or settings.access == "none":
        return NoAccess(None if settings.all_local_users else {os.geteuid(), ROOT})
    try:
        return BasicAccess(settings.htpasswd)
    except (OSError, ValueError) as error:
        raise Usage(f"--htpasswd: {error}") from error


def policy(settings: ServiceSettings) -> "Policy":
    """Return the access rules.

    Raises:
        Usage: The policy file is wrong; the error names the line.
    """
    from homeostat.api.access.enforcer import Policy

    try:
        return Policy(settings.policy_file, old_defaults=settings.old_policy_defaults)
    except (OSError, ValueError) as error:
        raise Usage(f"--policy-file: {error}") from error


@cache
def identity(settings: ServiceSettings) -> "Keystone | None":
    """Return the connection to Keystone; None without Keystone.

    Raises:
        Usage: The configuration file of Keystone is wrong.
    """
    if settings.access != "keystone" or settings.keystone_config is None:
        return None
    from homeostat.clouds.identity.config import read_config
    from homeostat.clouds.identity.keystone import Keystone

    try:
        return Keystone(read_config(settings.keystone_config))
    except ValueError as error:
        raise Usage(f"--keystone-config {error}") from error


def check_identity(settings: ServiceSettings) -> None:
    """Warn if Keystone does not answer, or does not know the service, which may change later."""
    from homeostat.model.errors import HomeostatError

    keystone = identity(settings)
    try:
        if keystone is not None:
            keystone.check()
    except HomeostatError as error:
        LOG.warning("starting all the same, but all requests are refused until this works: %s", error)
    finally:
        # Forked processes must not share the connection.
        identity.cache_clear()


def ec2(settings: ServiceSettings) -> "Ec2 | None":
    """Return the verifier of requests signed with EC2 keys of users; None without Keystone.

    Raises:
        Usage: The configuration file of Keystone is wrong.
    """
    keystone = identity(settings)
    if keystone is None:
        return None
    from homeostat.api.cloudformation.ec2 import KeystoneEc2

    return KeystoneEc2(keystone)


def trusts(settings: ServiceSettings, db: "Database") -> "StackTrusts | None":
    """Return the trusts of users in the service; None without Keystone."""
    keystone = identity(settings)
    if keystone is None:
        return None
    from homeostat.clock import Entropy
    from homeostat.clouds.identity.trusts import Trusts
    from homeostat.identity.trusts import StackTrusts

    return StackTrusts(db, Trusts(keystone), Entropy(), frozenset(keystone.config.roles))


def stack_users(settings: ServiceSettings, db: "Database") -> "StackUsers | None":
    """Return the users that the service creates for servers; None if the service may not create users."""
    keystone = identity(settings)
    if keystone is None or not keystone.config.has_users:
        return None
    from homeostat.clock import Entropy
    from homeostat.clouds.identity.users import DomainUsers
    from homeostat.identity.stack_users import StackUsers

    return StackUsers(db, DomainUsers(keystone), Entropy())


def signal_queues(settings: ServiceSettings, db: "Database") -> "SignalQueues | None":
    """Return the queues for signals of servers; None if the service may not create users."""
    keystone, users = identity(settings), stack_users(settings, db)
    if keystone is None or users is None:
        return None
    from homeostat.builtin.signal_queues import SignalQueues
    from homeostat.clouds.identity.queues import UserQueues

    return SignalQueues(db, users, UserQueues(keystone))


def makes_users(settings: ServiceSettings) -> bool:
    """Return whether the service may create users for servers."""
    keystone = identity(settings)
    return keystone is not None and keystone.config.has_users
