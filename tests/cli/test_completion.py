"""What shells complete, with the real bash."""

import subprocess
import sys

import pytest

from homeostat.cli.completion import SHELLS


def script(shell: str) -> str:
    call = [sys.executable, "-m", "homeostat", "completion", shell]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def of_bash() -> str:
    return script("bash")


def completed(of_bash: str, *words: str) -> list[str]:
    """What bash offers for the last word."""
    listed = " ".join(f"'{each}'" for each in words)
    asked = (
        f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _shtab_homeostat; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    ended = subprocess.run(["bash", "-c", f"{of_bash}\n{asked}"], capture_output=True, text=True, check=False)
    return sorted(ended.stdout.split())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("homeostat", "hea"), "health"),
        (("homeostat", "health", "sta"), "status"),
        (("homeostat", "serve", "--fetch"), "--fetch-from"),
        (("homeostat", "serve", "--access", "key"), "keystone"),
    ],
)
def test_bash_completes_commands_flags_and_values(words: tuple[str, ...], expected: str, of_bash: str) -> None:
    assert expected in completed(of_bash, *words)


def test_bash_completes_files(of_bash: str) -> None:
    assert "examples/web-tier.yaml" in completed(of_bash, "homeostat", "up", "examples/web")


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script(shell: str) -> None:
    assert "homeostat" in script(shell)
