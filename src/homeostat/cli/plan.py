"""`homeostat plan`: the effects of `up`, or of an adoption, as a tree for people and as JSON for programs."""

from argparse import Namespace

from homeostat.cli.adoption_plan import plan_adoption
from homeostat.cli.connection import connect
from homeostat.cli.errors import OK, TO_DO, Usage
from homeostat.cli.flags import Commands, add_client_command, add_existing, add_stack_description
from homeostat.cli.output import console, write_json
from homeostat.cli.plan_tree import counted, drawn, to_do
from homeostat.cli.stack_files import default_name, stack_body


def plan(arguments: Namespace) -> int:
    if arguments.adopt_file is not None:
        return plan_adoption(arguments)
    if arguments.template is None:
        raise Usage("a template is needed: homeostat plan TEMPLATE [NAME], or homeostat plan --adopt-file FILE [NAME]")
    body = stack_body(arguments.template, arguments.environment, arguments.parameter)
    name = arguments.name or default_name(arguments.template)
    with connect(arguments) as client:
        before = client.find_stack(name)
        if before is None:
            preview = client.preview({**body, "stack_name": name})
        else:
            preview = client.preview_update(before, body, existing=arguments.existing)
    counts = counted(preview)
    if arguments.json:
        changes = {key: preview[key] for key in ("resource_changes", "more_members")}
        write_json({"stack_name": name, "exists": before is not None, "summary": counts, **changes})
    else:
        out = console()
        for line in drawn(name, preview, exists=before is not None):
            out.print(line, soft_wrap=True)
    return TO_DO if arguments.detailed_exit_code and to_do(counts) else OK


# -- flags -------------------------------------------------------------------------------------------------------------


def add_commands(commands: Commands) -> None:
    command = add_client_command(
        commands,
        plan,
        "plan",
        "homeostat plan web.yaml shop -P port=8080\n"
        "  homeostat plan --adopt-file web.json\n"
        "  homeostat plan web.yaml --json | jq '.resource_changes.replaced[]'\n"
        "  homeostat plan web.yaml --detailed-exit-code || test $? = 4\n\n"
        "Secrets are not shown. Values that depend on resources to be created are shown as not known yet.\n\n"
        "With --adopt-file the exit code is 1 if a resource of the document could not be adopted.",
    )
    add_stack_description(command, template="?")
    command.add_argument(
        "--adopt-file",
        metavar="FILE",
        help="exported or abandoned stack, - for standard input: preview its adoption",
    )
    add_existing(command)
    command.add_argument("--detailed-exit-code", action="store_true", help="exit with 4 if the plan has changes")
