"""What a guest finds when it boots: the scripts and files of its user data."""

import contextlib
import os
from collections.abc import Sequence

from homeostat.clouds.local.files import remove_tree, write_whole
from homeostat.resources.user_data import boot_of


def prepare_boot(directory: str, user_data: str) -> None:
    """Write the scripts that the guest runs at boot, and the files that came with them.

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


def _numbered(scripts: Sequence[str]) -> dict[str, str]:
    return {f"{number:03}": script for number, script in enumerate(scripts)}


def link(target: str, path: str) -> None:
    """Make a link to `target`, unless the user's script has put something else there."""
    if os.path.islink(path):
        os.unlink(path)
    if not os.path.exists(path):
        os.symlink(target, path)
