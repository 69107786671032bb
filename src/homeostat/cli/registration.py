"""`homeostat register`: registers the service in Keystone, and writes the configuration file to reach it."""

import configparser
import os
import secrets
import sys
from argparse import Namespace
from pathlib import Path

from homeostat.cli.errors import OK, Problem, Usage

SECRET_BYTES = 24
"""Random bytes of a generated password."""


def register(arguments: Namespace) -> int:
    """Register the service, keeping matching objects that already exist.

    Raises:
        Problem: Keystone does not permit the registration, or an existing object does not match.
    """
    from keystoneauth1.exceptions import ClientException

    from homeostat.clouds.identity import registration

    url = arguments.public_url.rstrip("/").removesuffix("/v1")
    if arguments.keystone_config is None or not url.startswith(("http://", "https://")):
        raise Usage(
            "say where clients reach the API with --public-url http://HOST:PORT, and give --keystone-config FILE"
        )
    path: Path = arguments.keystone_config
    try:
        password, domain_password = _passwords(path)
        admin = registration.administrator(os.environ)
        wanted = registration.Wanted(
            public_url=url,
            auth_url=str(admin.get_endpoint()).rstrip("/"),
            password=password or secrets.token_urlsafe(SECRET_BYTES),
            domain_password=domain_password or secrets.token_urlsafe(SECRET_BYTES),
            region=arguments.region_name or registration.only_region(admin),
            service_user=arguments.service_user,
            domain=arguments.domain,
            domain_admin=arguments.domain_admin,
            is_new=not password,
        )
        created = list(registration.register(admin, wanted))
        if not password:
            _write(path, registration.file_of(wanted))
            created.append(f"file {path}")
    except (ClientException, registration.Impossible, OSError, configparser.Error) as error:
        raise Problem(f"Keystone does not know the service yet: {error}") from error
    sys.stdout.write("".join(f"made {item}\n" for item in created) or "all was there\n")
    return OK


def _passwords(path: Path) -> tuple[str, str]:
    """Return the passwords of the service and of the domain's admin from an existing file; "" if absent."""
    if not path.exists():
        return "", ""
    config = configparser.ConfigParser(interpolation=None)
    config.read_string(path.read_text())
    password = config.get("keystone_authtoken", "password", fallback="")
    return password, config.get("DEFAULT", "stack_domain_admin_password", fallback="")


def _write(path: Path, text: str) -> None:
    """Write a new file, readable by its owner only."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
