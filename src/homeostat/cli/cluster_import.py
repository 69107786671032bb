"""`homeostat import-clusters`: takes over clusters of a Senlin, with their servers."""

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from homeostat.cli.cluster_import_plan import MARK, SERVER, Do, Inventory, Step, Wire, marks, planned, same_policy
from homeostat.cli.errors import FAILED, OK, Problem, Unreachable
from homeostat.cli.flags import Commands, add_command, add_json
from homeostat.cli.output import console, write_json

PAGE = 500
JOINED_AT_ONCE = 50
WAIT_S = 300.0
LOOK_S = 0.5
BUSY = (400, 409)
"""Status codes of a request that may succeed a moment later: a node or cluster is busy."""


class Refused(Problem):
    """A service refused a request."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """The Clustering API of a service.

    Args:
        request: Sends a request: method, path, JSON body -> status, headers, JSON body.
    """

    def __init__(self, request: Callable[[str, str, Any], tuple[int, Mapping[str, str], Any]]) -> None:
        self._request = request

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Return the body of the answer.

        Raises:
            Refused: The service refuses the request.
        """
        status, _, answer = self._request(method, path, body)
        if status >= 300:
            message = (answer or {}).get("error", {}).get("message") if isinstance(answer, Mapping) else None
            raise Refused(f"{method} {path} was answered with {status}: {message or answer}", status)
        return answer

    def listed(self, path: str, key: str) -> list[Wire]:
        """Return all pages of a list."""
        items: list[Wire] = []
        while True:
            marker = f"&marker={items[-1]['id']}" if items else ""
            page = self.send("GET", f"{path}?limit={PAGE}{marker}")[key]
            items += page
            if len(page) < PAGE:
                return items

    def inventory(self) -> Inventory:
        """Return everything that the service has."""
        clusters = self.listed("/clusters", "clusters")
        return Inventory(
            self.listed("/profiles", "profiles"),
            self.listed("/policies", "policies"),
            clusters,
            self.listed("/nodes", "nodes"),
            {
                cluster["id"]: self.send("GET", f"/clusters/{cluster['id']}/policies")["cluster_policies"]
                for cluster in clusters
            },
        )


class Importer:
    """Carries out steps."""

    def __init__(self, target: Api, source: Inventory) -> None:
        self._target = target
        self._source = source
        self._steps: Mapping[Do, Callable[[Step], None]] = {
            Do.PROFILE: self._make_profile,
            Do.POLICY: self._make_policy,
            Do.CLUSTER: self._make_cluster,
            Do.ADOPT: self._adopt,
            Do.JOIN: self._join,
            Do.SIZES: self._set_sizes,
            Do.ATTACH: self._attach,
        }

    def carry_out(self, step: Step) -> None:
        """Carry out a step.

        Raises:
            Refused: The service refuses the request.
            Problem: The step takes too long, or fails.
        """
        self._steps[step.do](step)

    def _here(self, sort: str, source_id: str) -> str:
        """Return the id, at the target, of an imported object.

        Raises:
            Problem: The object was not imported.
        """
        rows = self._target.listed(f"/{sort}", sort)
        imported = {row["metadata"][MARK]: row for row in rows if MARK in (row["metadata"] or {})}
        if source_id not in imported:
            message = f"of the {sort} the one with the former id {source_id} is not here"
            raise Problem(f"{message}: see what was refused before")
        return str(imported[source_id]["id"])

    def _make_profile(self, step: Step) -> None:
        spec, metadata = step.source["spec"], {**(step.source["metadata"] or {}), MARK: step.source["id"]}
        self._target.send("POST", "/profiles", {"profile": {"name": step.name, "spec": spec, "metadata": metadata}})

    def _make_policy(self, step: Step) -> None:
        self._target.send("POST", "/policies", {"policy": {"name": step.name, "spec": step.source["spec"]}})

    def _make_cluster(self, step: Step) -> None:
        source = step.source
        new = {
            "name": source["name"],
            "profile_id": self._here("profiles", source["profile_id"]),
            "desired_capacity": 0,
            "timeout": source["timeout"],
            "config": source["config"] or {},
            "metadata": {**(source["metadata"] or {}), MARK: source["id"]},
        }
        cluster = self._target.send("POST", "/clusters", {"cluster": new})["cluster"]
        self._until(lambda: self._cluster(cluster["id"])["status"] == "ACTIVE", f"cluster {step.name} to be made")

    def _adopt(self, step: Step) -> None:
        source = step.source
        self._target.send(
            "POST",
            "/nodes/adopt",
            {
                "identity": source["physical_id"],
                "type": SERVER,
                "name": source["name"],
                "role": source["role"] or None,
                "metadata": {**(source["metadata"] or {}), MARK: source["id"]},
                "profile_id": self._here("profiles", source["profile_id"]),
            },
        )

    def _join(self, step: Step) -> None:
        cluster = self._here("clusters", step.source["id"])
        known = marks(Inventory(nodes=self._target.listed("/nodes", "nodes")))
        wanted = [
            known[identity]["id"] for identity in step.more if identity in known and not known[identity]["cluster_id"]
        ]
        for start in range(0, len(wanted), JOINED_AT_ONCE):
            self._act(cluster, {"add_nodes": {"nodes": wanted[start : start + JOINED_AT_ONCE]}})

    def _set_sizes(self, step: Step) -> None:
        sizes = {name: step.source[name] for name in ("min_size", "max_size")}
        self._act(self._here("clusters", step.source["id"]), {"resize": sizes})

    def _attach(self, step: Step) -> None:
        policy = next(candidate for candidate in self._source.policies if candidate["id"] == step.source["policy_id"])
        here = same_policy(policy, Inventory(policies=self._target.listed("/policies", "policies")))
        if here is None:
            raise Problem(f"the policy {policy['name']} is not here: see what was refused before")
        body = {"policy_attach": {"policy_id": here["id"], "enabled": step.source["enabled"]}}
        self._act(self._here("clusters", step.source["cluster_id"]), body)

    def _cluster(self, identity: str) -> Wire:
        cluster: Wire = self._target.send("GET", f"/clusters/{identity}")["cluster"]
        return cluster

    def _act(self, cluster: str, body: Any) -> None:
        """Begin an action of a cluster, again while the cluster is busy, and wait for its end."""
        begun: list[str] = []
        refusals: list[Refused] = []

        def accepted() -> bool:
            try:
                begun.append(self._target.send("POST", f"/clusters/{cluster}/actions", body)["action"])
            except Refused as error:
                refusals.append(error)
                if error.status not in BUSY or len(refusals) > WAIT_S / LOOK_S / 10:
                    raise
            return bool(begun)

        self._until(accepted, "the cluster to be free")
        ended: list[Wire] = []

        def at_end() -> bool:
            action = self._target.send("GET", f"/actions/{begun[-1]}")["action"]
            if action["status"] in ("SUCCEEDED", "FAILED", "CANCELLED"):
                ended.append(action)
            return bool(ended)

        self._until(at_end, f"the action {begun[-1]} to end")
        if ended[-1]["status"] != "SUCCEEDED":
            name, status, reason = (ended[-1][key] for key in ("name", "status", "status_reason"))
            raise Problem(f"the action {name} has ended {status}: {reason}")

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + WAIT_S
        while not reached():
            if time.monotonic() > end:
                raise Problem(f"waited {WAIT_S:.0f} s for {what}: run the command again, which goes on from here")
            time.sleep(LOOK_S)


def import_clusters(arguments: Namespace) -> int:
    """Show the steps of an import; with `--yes`, carry them out.

    Raises:
        Problem: A service cannot be reached, or refuses a read.
    """
    source = _api(arguments.source_cloud, arguments.source).inventory()
    target = _api(arguments.cloud, arguments.target)
    steps = planned(source, target.inventory(), arguments.names)
    if not arguments.yes:
        _show(steps, arguments)
        return OK
    importer, failed = Importer(target, source), 0
    for step, error in _carried_out(importer, steps):
        failed += bool(error)
        if not arguments.json:
            console().print(f"{step}{f' FAILED: {error}' if error else ''}", soft_wrap=True)
    left = planned(source, target.inventory(), arguments.names)
    if arguments.json:
        write_json({"done": [str(step) for step in steps if step not in left], "left": [str(step) for step in left]})
    return FAILED if failed else OK


def _carried_out(importer: Importer, steps: Sequence[Step]) -> Iterator[tuple[Step, Problem | None]]:
    """Carry out all steps, also after failures: a step that depends on a failed step fails, too."""
    for step in steps:
        if step.do is Do.LEAVE:
            yield step, None
            continue
        try:
            importer.carry_out(step)
        except Problem as error:
            yield step, error
        else:
            yield step, None


def _show(steps: Sequence[Step], arguments: Namespace) -> None:
    if arguments.json:
        write_json({"steps": [str(step) for step in steps]})
        return
    for step in steps:
        console().print(str(step), soft_wrap=True)
    doing = sum(step.do is not Do.LEAVE for step in steps)
    console().print(
        f"{doing} steps; nothing was changed. Add --yes to carry them out." if doing else "Nothing is left."
    )


def _api(cloud: str | None, url: str) -> Api:
    """Return the API of a service, by openstacksdk.

    Raises:
        Problem: openstacksdk is missing.
        Unreachable: The service cannot be reached.
    """
    try:
        import openstack
        from keystoneauth1.exceptions import ClientException
        from openstack.exceptions import SDKException
    except ImportError as error:
        raise Problem("openstacksdk is missing: install homeostat[openstack]") from error
    try:
        named: dict[str, Any] = {"clustering_endpoint_override": url} if url else {}
        proxy = openstack.connect(cloud=cloud, clustering_default_microversion="1.14", **named).clustering
    except (ClientException, SDKException) as error:
        raise Unreachable(f"cannot reach {url or cloud or 'the cloud of the environment (OS_…)'}: {error}") from error

    def request(method: str, path: str, body: Any) -> tuple[int, Mapping[str, str], Any]:
        try:
            answer = proxy.request(path, method, json=body, raise_exc=False)
        except (ClientException, SDKException) as error:
            raise Unreachable(f"{url or cloud}: {error}") from error
        return answer.status_code, answer.headers, answer.json() if answer.content else None

    return Api(request)


def add_commands(commands: Commands) -> None:
    command = add_command(
        commands,
        import_clusters,
        "import-clusters",
        "homeostat import-clusters --from http://senlin:8777/v1 --to http://homeostat:8004/clustering/v1\n"
        "  homeostat import-clusters --from-cloud old --cloud new --yes web db",
    )
    command.add_argument("names", metavar="CLUSTER", nargs="*", help="names or ids of clusters (default: everything)")
    command.add_argument("--from", dest="source", metavar="URL", default="", help="URL of the Clustering API of Senlin")
    command.add_argument("--from-cloud", dest="source_cloud", metavar="NAME", help="the cloud of Senlin in clouds.yaml")
    command.add_argument("--to", dest="target", metavar="URL", default="", help="URL of the Clustering API here")
    command.add_argument("--cloud", metavar="NAME", help="the cloud of this service in clouds.yaml")
    command.add_argument("--yes", action="store_true", help="execute the steps; without it they are only shown")
    add_json(command)
