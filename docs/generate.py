"""Writes the reference pages that follow from the code. `--check` only says which of them are out of date.

python docs/generate.py [--check]
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

REFERENCE = Path(__file__).parent / "reference"
os.environ["XDG_STATE_HOME"] = "/home/you/.local/state"
for variable in [name for name in os.environ if name.startswith("HOMEOSTAT_")]:
    del os.environ[variable]
sys.path.insert(0, str(Path(__file__).parent.parent))

from docs import (  # noqa: E402 - found from wherever this program is started; defaults come from the environment
    access_page,
    api_pages,
    clients_page,
    clustering_page,
    command_pages,
    functions,
    kinds_page,
    man_pages,
    migrations_page,
    normalisations_page,
    openstack_page,
    policy_page,
    policy_pages,
    requirements_page,
    type_pages,
)
from homeostat.api import policy_text  # noqa: E402 - the same

GENERATED = "<!-- Written by docs/generate.py; change the code, then run `make docs`. -->\n"


def functions_page() -> str:
    return f"{GENERATED}\n{functions.page()}"


# -- all of them -------------------------------------------------------------------------------------------------------


@cache
def pages() -> Mapping[str, Callable[[], str]]:
    """Path below the reference -> what writes the page. Found when it is asked for, since that takes a second."""
    return {
        "commands.md": lambda: GENERATED + "\n" + command_pages.commands_page(),
        "clients.md": lambda: GENERATED + clients_page.page(),
        "configuration.md": lambda: GENERATED + "\n" + command_pages.configuration_page(),
        "homeostat.toml": command_pages.settings_file,
        **{f"../../packaging/man/{name}": partial(str, text) for name, text in man_pages.pages().items()},
        "access.md": lambda: GENERATED + access_page.page(),
        "../explanation/requirements.md": lambda: GENERATED + requirements_page.page(),
        "profiles-and-policies.md": lambda: GENERATED + clustering_page.page(),
        **{
            f"{policy_pages.FOLDER}/{short}.md": partial(lambda text: f"{GENERATED}\n{text}", text)
            for short, text in policy_pages.pages().items()
        },
        "kinds.md": lambda: GENERATED + kinds_page.page(),
        "migrations.md": lambda: GENERATED + migrations_page.page(),
        "normalisations.md": lambda: GENERATED + normalisations_page.page(),
        "openstack.md": lambda: GENERATED + openstack_page.page(),
        "policy.md": lambda: GENERATED + policy_page.page(),
        "policy.yaml": policy_text.sample,
        "resource-types.md": lambda: GENERATED + type_pages.index_page(),
        "template-functions.md": functions_page,
        **{
            name: partial(lambda write: GENERATED + write(), write)
            for name, write in {**type_pages.pages(), **api_pages.pages()}.items()
        },
    }


def outdated() -> list[str]:
    """Names of the pages whose text on disk is not what the code says, and of those of what is no more."""
    return [*(name for name, page in pages().items() if _stored(name) != page()), *_left_over()]


def _left_over() -> list[str]:
    folders = (REFERENCE / type_pages.FOLDER, REFERENCE / api_pages.FOLDER)
    found = (str(path.relative_to(REFERENCE)) for folder in folders for path in sorted(folder.glob("*")))
    return [name for name in found if name not in pages()]


def _stored(name: str) -> str:
    path = REFERENCE / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main() -> int:
    options = argparse.ArgumentParser(description="Write the generated reference pages.")
    options.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    stale = outdated()
    if options.parse_args().check:
        sys.stderr.writelines(f"docs/reference/{name} is out of date: run `make docs`\n" for name in stale)
        return 1 if stale else 0
    for name in stale:
        if name not in pages():
            (REFERENCE / name).unlink()
            continue
        (REFERENCE / name).parent.mkdir(parents=True, exist_ok=True)
        (REFERENCE / name).write_text(pages()[name](), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
