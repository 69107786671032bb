"""The documentation is true: its examples run, its templates compile, its generated pages are up to date."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from bench import pictures, report

from docs import api_pages, examples, functions, generate, policy_pages, type_pages
from homeostat.cli.state_directory import State
from homeostat.clouds.local import LocalCloud
from homeostat.clustering.decisions.policies import POLICY_TYPES, check_policy
from homeostat.desired.compiling import compile_desired
from homeostat.model.desired import Identity
from homeostat.model.waiting import REASONS
from homeostat.plugins import loading
from homeostat.resources import registry
from homeostat.resources.registry import types
from homeostat.resources.schema import Property
from homeostat.services.pipeline.checking import check
from homeostat.store.stacks.contents import Content
from homeostat.templates import parse_environment, parse_template
from tests.databases import CHOSEN, new_database
from tests.docs.pages import DOCS, NEEDS_OPENSTACK, Command, commands, files, templates
from tests.docs.typing_commands import SESSION_S, check_commands

pytestmark = pytest.mark.heavy

ROOT = DOCS.parent
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "adr")


def name_of(path: object) -> str:
    return str(path.relative_to(DOCS)) if isinstance(path, Path) else ""


SERVERS = ("postgresql", "mariadb")
"""Pages of their own database, which are run where that is tested."""
RUN = [
    pytest.param(path, marks=getattr(pytest.mark, path.stem)) if path.stem in SERVERS else path
    for path in PAGES
    if commands(path) and name_of(path) not in NEEDS_OPENSTACK and (path.stem in CHOSEN or path.stem not in SERVERS)
]


# -- examples ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A directory to type commands in; whatever they start is ended."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    yield tmp_path
    state = State(tmp_path / "state")
    service = state.running()
    if service is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(service.pid, signal.SIGKILL)
    if state.cloud.exists():
        LocalCloud(state.cloud).destroy()


@pytest.fixture
def programs(homeostat_program: Path, openstack_program: Path) -> str:
    """Where a shell looks for programs: first for those that are forked."""
    found = (homeostat_program.parent, openstack_program.parent, Path(sys.executable).parent, os.environ["PATH"])
    return os.pathsep.join(map(str, found))


@pytest.mark.timeout(SESSION_S + 60)
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_the_commands_of_a_page_print_what_it_says(
    page: Path, home: Path, programs: str, request: pytest.FixtureRequest
) -> None:
    if page.stem in SERVERS:
        with new_database(str(request.getfixturevalue(f"{page.stem}_url"))) as url:
            check_commands(page, home, programs, {"DATABASE": url})
        return
    check_commands(page, home, programs, {})


def test_a_page_that_says_something_else_is_found() -> None:
    command = Command("ls", ["a …", "…", "z"])
    assert command.explains("a  b\nc\nd\nz\n")
    assert not command.explains("a  b\nc\nd\n")
    assert not command.explains("x\nz\n")


@pytest.mark.parametrize("page", [path for path in PAGES if list(templates(path))], ids=name_of)
def test_the_templates_of_a_page_compile(page: Path, tmp_path: Path) -> None:
    saved = files(page)
    with types_of(page, tmp_path):
        for text in templates(page):
            environment = parse_environment(saved.get("env.yaml"))
            desired = Content(
                "template", parse_template(text), environment=environment, files={**examples.FILES, **saved}
            )
            check(compile_desired(desired, Identity("id", "name", "project")), desired)


@contextlib.contextmanager
def types_of(page: Path, directory: Path) -> Iterator[None]:
    """With the resource types that a page shows how to write."""
    for name, content in files(page).items():
        if "def resource_mapping" in content:
            (directory / name).write_text(content, encoding="utf-8")
    found = loading.find([directory])
    registry.add(found.offers, found.problems)
    try:
        yield
    finally:
        registry.take_away([each.origin for each in found.offers])


# -- reference ---------------------------------------------------------------------------------------------------------


def test_the_generated_pages_are_up_to_date() -> None:
    assert generate.outdated() == [], "run `make docs`"


def test_every_function_has_examples() -> None:
    """That they give what the page says is seen by its being up to date: it is written from what they give."""
    described = yaml.safe_load(functions.SOURCE.read_text(encoding="utf-8"))["functions"]
    assert described.keys() == functions.names()
    assert [name for name, entry in described.items() if not entry["forms"] or not entry["examples"]] == []


def test_an_example_that_stops_being_refused_is_found() -> None:
    written = yaml.safe_load(functions.SOURCE.read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match="is listed as refused, but gives web"):
        functions.refusal({"get_param": "name"}, "heat_template_version.2021-04-16", written)


def paths(schema: Mapping[str, Property], prefix: str = "") -> Iterator[str]:
    """Every property that a template should use, with those inside maps and lists."""
    for name, each in schema.items():
        if not each.hidden:
            yield f"{prefix}{name}"
            yield from paths(each.fields or {}, f"{prefix}{name}.")
            yield from paths((each.items and each.items.fields) or {}, f"{prefix}{name}[].")


@pytest.mark.parametrize("name", [name for name, kind in types().items() if not kind.support.hidden])
def test_the_reference_describes_all_of_a_type(name: str) -> None:
    kind = types()[name]
    link = f"{type_pages.FOLDER}/{type_pages.page_name(kind)}.md"
    page = (generate.REFERENCE / link).read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
    assert rows == {*paths(kind.properties), *paths(kind.update_policy), *kind.attributes}
    assert f"\n# {name}\n\n{kind.description}\n" in page
    assert f"    type: {name}\n" in page
    assert f"[{name}]({link})" in (generate.REFERENCE / "resource-types.md").read_text(encoding="utf-8")


def test_the_reference_lists_every_request() -> None:
    index = (generate.REFERENCE / "requests.md").read_text(encoding="utf-8")
    lines = [line.split(" ") for line in re.findall(r"^\| `([A-Z, ]+ /[^`]*)` \|", index, re.MULTILINE)]
    listed = {(method.rstrip(","), line[-1]) for line in lines for method in line[:-1]}
    paths = api_pages.document()["paths"]
    assert listed == {(method.upper(), path) for path, operations in paths.items() for method in operations}


def test_the_reference_names_what_is_retired() -> None:
    index = (DOCS / "reference" / "resource-types.md").read_text(encoding="utf-8")
    hidden = [name for name, kind in types().items() if kind.support.hidden]
    assert [name for name in hidden if f"| `{name}` |" not in index] == []


def test_the_page_of_numbers_says_what_was_measured() -> None:
    if not report.has_history():
        pytest.skip("this checkout does not know the commits of the figures")
    assert report.PAGE.read_text() == report.page(), "run `python -m bench.report`"
    for picture in pictures.PICTURES:
        assert (pictures.IMAGES / picture.file).read_text() == pictures.drawn(picture), "run `python -m bench.report`"


@pytest.mark.parametrize("page", [*PAGES, *DOCS.glob("adr/*.md"), *ROOT.glob("*.md")], ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    missing = [link for link in links if link and not (page.parent / link).exists()]
    assert missing == []


def test_the_glossary_is_in_order_and_each_word_leads_to_its_explanation() -> None:
    page = (generate.REFERENCE / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \*\*(.+)\*\* \| (.+) \|$", page, re.MULTILINE)
    words = [word for word, _ in rows]
    assert len(words) == page.count("\n| **")
    assert words == sorted(set(words))
    assert [word for word, meaning in rows if not re.search(r"\]\([^)]+\.md(#[\w-]+)?\)$", meaning)] == []


def test_every_reason_to_wait_is_documented() -> None:
    page = (DOCS / "howto" / "why-is-my-stack-waiting.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", page, re.MULTILINE)
    assert rows == [(str(why), each.words, each.released_by) for why, each in REASONS.items()]


@pytest.mark.parametrize("name", policy_pages.examples())
def test_the_example_of_each_policy_is_accepted(name: str) -> None:
    spec = check_policy(yaml.safe_load(policy_pages.examples()[name]))
    assert spec.type.name == f"senlin.policy.{name}"
    assert not spec.warnings


def test_each_type_of_policies_has_a_page() -> None:
    assert {f"senlin.policy.{each}" for each in policy_pages.examples()} == {each.name for each in POLICY_TYPES.types}
