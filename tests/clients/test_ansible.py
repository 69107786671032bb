"""The playbooks of docs/howto/use-ansible.md, played by a genuine Ansible with the collection openstack.cloud."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import installed
from tests.docs.pages import DOCS, files
from tests.identity.conftest import Person

PAGE = DOCS / "howto" / "use-ansible.md"


@pytest.mark.parametrize(("playbook", "changes"), [("playbook.yaml", 3), ("cluster.yaml", 4)])
def test_a_playbook_of_the_documentation(
    playbook: str, changes: int, service_url: str, person: Person, tmp_path: Path
) -> None:
    program = installed("ansible", "bin/ansible-playbook") / "bin" / "ansible-playbook"
    for name, content in files(PAGE).items():
        (tmp_path / name).write_text(content)
    login = {
        "auth_url": person.url,
        "username": person.name,
        "password": person.name,
        "project_name": person.project,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"homeostat": {"auth": login}}}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "ANSIBLE_", "PYTHON"))}
    environ = {**kept, "HOME": str(tmp_path), "ANSIBLE_LOCALHOST_WARNING": "false", "LC_ALL": "C.UTF-8"}
    played = subprocess.run([program, playbook], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stdout + played.stderr
    assert "failed=0" in played.stdout
    assert f"changed={changes}" in played.stdout
