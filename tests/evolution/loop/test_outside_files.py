"""What a branch from elsewhere must not hold before it can be approved."""

from dataclasses import replace
from typing import Any

import pytest

from evolution.loop.outside_files import find_version_faults
from harness_repo.snapshot import Snapshot
from tests.evolution.measured import AGENT

BASE = Snapshot({**AGENT, "README.md": b"of the team\n"}, executables=frozenset({"README.md"}))
ROLE = {**BASE.files, "prompts/role.md": b"knows: q3\n"}


def head(**parts: Any) -> Snapshot:
    return replace(BASE, **{"files": ROLE, **parts})


def test_an_edit_inside_the_harness_is_fine() -> None:
    assert find_version_faults(BASE, head()) == []


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (BASE, "changes nothing"),
        (head(files={**ROLE, "README.md": b"x"}), "README.md is not a path inside"),
        (head(files={**ROLE, ".github/workflows/x.yml": b"x"}), "x.yml is not a path inside"),
        (head(files={**ROLE, "prompts/a.md": b"x" * 300_000}), "prompts/a.md is larger"),
        (head(files={**ROLE, "prompts/a.md": b"\0"}), "prompts/a.md is not text"),
        (head(files={**ROLE, "hooks/a.yaml": b"event: ["}), "would add problems"),
        (head(files={**ROLE, "harness.yaml": AGENT["harness.yaml"].replace(b"agent", b"judge")}), "judge"),
        (head(links={"prompts/b.md": "/etc/passwd"}), "symbolic links: prompts/b.md"),
        (head(submodules={"skills/x": "1" * 40}), "submodules: skills/x"),
        (head(skipped={"prompts/big.md": "too large"}), "can't be read: prompts/big.md"),
        (head(executables=frozenset({"README.md", "prompts/role.md"})), "executable: prompts/role.md"),
    ],
)
def test_what_no_edit_may_do_is_said_with_its_path(version: Snapshot, said: str) -> None:
    assert said in "\n".join(find_version_faults(BASE, version))
