"""Processes of the local cloud that outlive their directory, which a user has removed by hand.

Such a thing is absent, so convergence does not delete it: it makes another one. The processes of the old one would run
beside that for ever, at an address that is given to others.
"""

import logging
import os
from collections.abc import Collection

from homeostat.clouds.local import processes
from homeostat.clouds.local.tree import Tree

LOG = logging.getLogger(__name__)


def end_orphans(tree: Tree, kinds: Collection[str]) -> None:
    """End the processes of all things whose directory is gone for good.

    That is so where the directory of the kind carries the mark of this cloud and does not have the thing, and the guest
    does not work in a directory that was only moved away.

    Args:
        tree: The records.
        kinds: Kinds with processes.

    Raises:
        Transient: A directory is away, which says nothing about the things in it; or a process cannot be killed.
    """
    # The processes are looked for first: what has one by then has had its directory before.
    found = processes.below(str(tree.root))
    if not _without_directory(tree, kinds, found):
        return
    # Nothing is made meanwhile: a new thing at the same path would lose its processes.
    with tree.lock():
        gone = [
            directory
            for directory in _without_directory(tree, kinds, found)
            if not any(processes.keeps_directory(pid, directory) for pid in found[directory])
        ]
        if gone:
            LOG.warning("the processes of %s end, since the directory was removed by hand", ", ".join(gone))
            processes.end(gone)


def _without_directory(tree: Tree, kinds: Collection[str], directories: Collection[str]) -> list[str]:
    """Return those of these directories that are not there, and would be directories of things. Raise Transient."""
    missing = []
    for kind in kinds:
        home = f"{tree.root}/{kind}s"
        of_kind = [each for each in directories if os.path.dirname(each) == home]
        there = set(tree.names(kind)) if of_kind else set()
        missing += [each for each in of_kind if os.path.basename(each) not in there]
    return missing
