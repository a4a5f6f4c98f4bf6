import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from workbench.embedded.tables import needs_tables

COUNT = "from evolution.models import Event; print(Event.objects.count())"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [("manage.py demo --json", True), ("manage.py migrate", False), ("manage.py makemigrations", False)],
)
def test_commands_that_look_after_tables_are_left_alone(line: str, wanted: bool) -> None:  # noqa: FBT001
    assert needs_tables(line.split()) is (wanted and settings.EMBEDDED_DATABASE)


@pytest.mark.ops
def test_two_first_commands_on_a_fresh_installation_both_find_their_tables(database_home: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment["WORKBENCH_VAR"] = str(database_home / "fresh")
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "shell", "--no-imports", "-c", COUNT]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=120) for process in both]
    assert [(process.returncode, out) for process, (out, _) in zip(both, answers, strict=True)] == [
        (0, "0\n"),
        (0, "0\n"),
    ]
