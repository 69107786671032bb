"""Files for the boot of a guest: the scripts and files of its user data."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Sequence

from homeostat.clouds.local import processes
from homeostat.clouds.local.files import remove_tree, write_whole
from homeostat.clouds.local.tree import ThingRecord
from homeostat.model.errors import Terminal
from homeostat.resources.user_data import boot_of

_VARIABLE_SIZE_MAX = 4096
PASSWORD = "password"
"""File with the salt and the scrypt hash of the administrator's password, for login services of the guest."""


def environment(record: ThingRecord, directory: str, address: str, private: Collection[str]) -> dict[str, str]:
    """Return the environment of a guest.

    Args:
        address: Its first address; "" for none.
        private: Paths that the guest must not reach.
    """
    own = {
        "HOME": f"{directory}/root",
        "HOMEOSTAT_ADDRESS": address,
        "HOMEOSTAT_NAME": str(record.spec.get("name") or record.id),
        "HOMEOSTAT_SERVER_ID": record.id,
        "HOMEOSTAT_METADATA": f"{directory}/metadata.json",
        "HOMEOSTAT_FILES": f"{directory}/files",
        processes.DENIED: os.pathsep.join(private),
    }
    for name, value in (record.spec.get("metadata") or {}).items():
        text = value if isinstance(value, str) else json.dumps(value)
        if len(text) <= _VARIABLE_SIZE_MAX:
            own[f"HOMEOSTAT_METADATA_{re.sub(r'[^A-Z0-9]', '_', str(name).upper())}"] = text
    return {name: text.replace("\0", "") for name, text in own.items()}


def prepare_disk(root: str, saved: str) -> None:
    """Create the disk if it does not exist: a copy of the directory `saved`, or empty if `saved` is ""."""
    if os.path.isdir(root) or not saved:
        os.makedirs(root, exist_ok=True)
        return
    partial = f"{root}.new"
    if os.path.isdir(partial):
        remove_tree(partial)
    shutil.copytree(saved, partial, symlinks=True)
    os.rename(partial, root)


def prepare_boot(directory: str, user_data: str) -> None:
    """Write the scripts that the guest runs at boot, and the accompanying files.

    Multi-part user data are split here and not in the guest, which must start quickly.
    """
    for name in ("scripts", "files"):
        if os.path.isdir(f"{directory}/{name}"):
            remove_tree(f"{directory}/{name}")
    for name in ("user-data", "left"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{directory}/{name}")
    if user_data:
        write_whole(f"{directory}/user-data", user_data, 0o700)
    boot = boot_of(user_data)
    if boot is None:
        return
    for name, contents in (("files", boot.files), ("scripts", _numbered(boot.scripts))):
        os.makedirs(f"{directory}/{name}", 0o700)
        for file, content in contents.items():
            write_whole(f"{directory}/{name}/{file}", content, 0o700)
    if boot.left:
        write_whole(f"{directory}/left", "".join(f"{line}\n" for line in boot.left))


def write_password(directory: str, password: str) -> None:
    """Write the hash of the administrator's password; the password itself is stored nowhere.

    Raises:
        Terminal: The password is empty.
    """
    if not password:
        raise Terminal("a password is needed: admin_pass")
    salt = os.urandom(16)
    digest = hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)
    write_whole(f"{directory}/{PASSWORD}", f"scrypt${salt.hex()}${digest.hex()}\n", 0o600)


def _numbered(scripts: Sequence[str]) -> dict[str, str]:
    return {f"{number:03}": script for number, script in enumerate(scripts)}


def link(target: str, path: str) -> None:
    """Create a link to `target`, unless the user's script has put another file there."""
    if os.path.islink(path):
        os.unlink(path)
    if not os.path.exists(path):
        os.symlink(target, path)
