"""User data of a server for its first boot, by `user_data_format`, and the location of its metadata. Pure.

Images with cloud-init read a multi-part document: settings, a boot hook that creates the directory for files, a part
handler that writes them, the user's own data, and the metadata of the resource.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.resources import mime
from homeostat.resources.mime import Part

RAW, CFNTOOLS, SOFTWARE_CONFIG = "RAW", "HEAT_CFNTOOLS", "SOFTWARE_CONFIG"
FILES = "/var/lib/heat-cfntools"
"""Directory in which images with Heat's cfn tools look for files."""
INIT = "x-cfninitdata"
"""Subtype of the parts that the part handler writes to files."""
USER_SCRIPT, INIT_DATA, CREDENTIALS = "cfn-userdata", "cfn-init-data", "cfn-credentials"

_SETTINGS = """#cloud-config
output: {all: '| tee -a /var/log/cloud-init-output.log'}
"""
_HOOK = f"""#!/bin/sh
# Runs early in every boot: makes room for the files that come with the other parts.
mkdir -p {FILES}
chmod 0700 {FILES}
"""
_HANDLER = f'''#part-handler
"""Writes the parts that are files of the orchestration service."""

import os

DIRECTORY = "{FILES}"


def list_types():
    return ["text/{INIT}"]


def handle_part(data, ctype, filename, payload):
    if ctype in ("__begin__", "__end__") or not filename:
        return
    os.makedirs(DIRECTORY, mode=0o700, exist_ok=True)
    content = payload if isinstance(payload, bytes) else payload.encode("utf-8")
    mode = 0o700 if filename == "{USER_SCRIPT}" else 0o600
    path = os.path.join(DIRECTORY, os.path.basename(filename))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content)
    os.chmod(path, mode)
'''
_RUNNER = f'''#!/usr/bin/env python3
"""Runs the user's script, keeps what it says, and notes that it has run."""

import datetime
import os
import subprocess
import sys

SCRIPT = "{FILES}/{USER_SCRIPT}"


def main():
    if not os.path.exists(SCRIPT):
        return 0
    with open("/var/log/heat-provision.log", "ab") as log:
        log.write(("begins at %s\\n" % datetime.datetime.now()).encode())
        log.flush()
        try:
            code = subprocess.call([SCRIPT], stdout=log, stderr=log)
        except OSError as error:
            log.write(("cannot be run: %s\\n" % error).encode())
            code = 126
        log.write(("ends at %s with %s\\n" % (datetime.datetime.now(), code)).encode())
    with open("{FILES}/provision-finished", "w") as done:
        done.write("%s\\n" % datetime.datetime.now())
    return code


if __name__ == "__main__":
    sys.exit(main())
'''
OURS = ("boothook.sh", "part-handler.py", "loguserdata.py", "settings.cfg")
"""File names of the parts that the service adds to process the user's parts."""


def document(form: str, data: str, metadata: Mapping[str, Any], metadata_server: str, credentials: str = "") -> str:
    """Return the user data for a server; "" for none.

    Args:
        form: Value of `user_data_format`.
        data: The user's own data.
        metadata_server: URL of the CFN API.
        credentials: Content of the credentials file for Heat's cfn tools, or "".
    """
    if form == RAW or (form == CFNTOOLS and not data and not metadata):
        return data
    parts = [Part(_SETTINGS, "cloud-config", OURS[3]), Part(_HOOK, "cloud-boothook", OURS[0])]
    parts.append(Part(_HANDLER, "part-handler", OURS[1]))
    if form == CFNTOOLS:
        parts += [Part(data, INIT, USER_SCRIPT), Part(_RUNNER, "x-shellscript", OURS[2])]
    elif data:
        parts += mime.split(data) or [Part(data)]
    if metadata:
        parts.append(Part(json.dumps(metadata), INIT, INIT_DATA))
    if form == CFNTOOLS:
        parts.append(Part(metadata_server, INIT, "cfn-metadata-server"))
    if credentials:
        parts.append(Part(credentials, INIT, CREDENTIALS))
    return mime.multipart(parts)


def credentials(collect: Mapping[str, Any]) -> str:
    """Return the credentials file of Heat's cfn tools for the key in the settings of an agent."""
    section = collect["cfn"]
    return f"AWSAccessKeyId={section['access_key_id']}\nAWSSecretKey={section['secret_access_key']}\n"


@dataclass(frozen=True, slots=True)
class Boot:
    """User data as processed by a machine without cloud-init.

    Attributes:
        scripts: Contents of the scripts, in order of execution.
        files: Content by name.
        left: Messages for the user about parts that are not supported.
    """

    scripts: tuple[str, ...]
    files: Mapping[str, str]
    left: tuple[str, ...]


def boot_of(text: str) -> Boot | None:
    """Split a multi-part document into scripts and files; None for any other text."""
    parts = mime.split(text)
    if parts is None:
        return None
    scripts, files, left = [], {}, []
    for part in parts:
        kind = mime.subtype_of(part)
        name = part.filename.rpartition("/")[2]
        if name in OURS:
            continue
        if kind == "x-shellscript" or (name == USER_SCRIPT and part.content.startswith("#!")):
            scripts.append(part.content)
        elif kind == INIT and name != USER_SCRIPT and name.strip("."):
            files[name] = part.content
        elif part.content.strip():
            left.append(f"user data part {name or 'without a name'} (text/{kind}) is not carried out here")
    return Boot(tuple(scripts), files, tuple(left))


# -- metadata ----------------------------------------------------------------------------------------------------------


def collect_config(transport: str, here: Mapping[str, str], *, in_cloud: bool) -> dict[str, Any]:
    """Return the section `os-collect-config` of a server's metadata, which points its agent to the other metadata.

    Args:
        transport: How the agent reads the metadata.
        here: `metadata_url` (signed), `api_url`, `access_key`, `secret`, `stack_name`, `resource`, and the login of
            the server's user, if any.
        in_cloud: Whether the server also has the metadata service of a cloud.
    """
    name, section = _section(transport, here)
    collectors = [*(["ec2"] if in_cloud else []), name, "local"]
    return {"collectors": collectors, name: section}


def _section(transport: str, here: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    if transport == "POLL_TEMP_URL":
        return "request", {"metadata_url": here["metadata_url"]}
    if transport == "POLL_SERVER_HEAT":
        names = ("user_id", "password", "auth_url", "project_id", "stack_id", "region_name")
        return "heat", {**{name: here[name] for name in names}, "resource_name": here["resource"]}
    return "cfn", {
        "metadata_url": here["api_url"],
        "access_key_id": here["access_key"],
        "secret_access_key": here["secret"],
        "stack_name": here["stack_name"],
        "path": f"{here['resource']}.Metadata",
    }
