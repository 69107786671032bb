"""Processes of the local cloud that outlive their directory, which a user has removed by hand.

Such an object is absent, so convergence replaces the object without deleting it. Its processes would run forever, at an
address assigned anew.
"""

import logging
import os
from collections.abc import Collection

from homeostat.clouds.local import processes
from homeostat.clouds.local.tree import Tree

LOG = logging.getLogger(__name__)


def end_orphans(tree: Tree, kinds: Collection[str]) -> None:
    """End the processes of all objects whose directory is gone for good.

    A directory is gone for good if its parent carries the mark of this cloud but lacks the directory, and its guest
    does not work in a directory that was only moved.

    Args:
        kinds: Kinds with processes.

    Raises:
        Transient: A parent directory is away, which says nothing about its objects; or a process cannot be killed.
    """
    # Processes before directories: any process seen now had its directory earlier.
    pids = processes.below(str(tree.root))
    if not _without_directory(tree, kinds, pids):
        return
    # Under the lock no object is created: a new one at the same path would lose its processes.
    with tree.lock():
        orphaned = [
            directory
            for directory in _without_directory(tree, kinds, pids)
            if not any(processes.keeps_directory(pid, directory) for pid in pids[directory])
        ]
        if orphaned:
            LOG.warning("the processes of %s end, since the directory was removed by hand", ", ".join(orphaned))
            processes.end(orphaned)


def _without_directory(tree: Tree, kinds: Collection[str], directories: Collection[str]) -> list[str]:
    """Return the missing directories of objects. Raise Transient."""
    missing = []
    for kind in kinds:
        home = f"{tree.root}/{kind}s"
        of_kind = [directory for directory in directories if os.path.dirname(directory) == home]
        names = set(tree.names(kind)) if of_kind else set()
        missing += [directory for directory in of_kind if os.path.basename(directory) not in names]
    return missing
