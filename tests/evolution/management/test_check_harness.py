import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from evolution.actions.harnesses import ensure_starter
from evolution.loop.repositories import open_repository
from evolution.management.commands import check_harness
from harness_repo.format.harness import read_harness
from harness_repo.starters import starter_files
from tests.evolution.measured import ANNA
from tests.harness_repo import messes


def check(*arguments: str) -> tuple[str, int]:
    out = StringIO()
    try:
        call_command("check_harness", *arguments, stdout=out, stderr=StringIO())
    except SystemExit as end:
        return out.getvalue(), int(str(end.code))
    return out.getvalue(), 0


@pytest.fixture
def mess(tmp_path: Path) -> Path:
    messes.commit_messes(tmp_path)
    return tmp_path


def test_every_mess_is_a_line_with_its_place_and_code(mess: Path) -> None:
    text, code = check(str(mess))
    lines = text.splitlines()
    places = {
        (path, kind.split()[1], int(line)) for path, line, kind in (x.split(":", 2) for x in lines[:-1])
    }
    assert code == 1
    assert places == messes.EXPECTED_COMMITTED
    assert [line.split(":")[0] for line in lines[:-1]] == sorted(line.split(":")[0] for line in lines[:-1])
    assert lines[-1] == f"{mess}: {len(messes.READ)} skills, 0 hooks, 0 tools, 27 errors, 12 warnings"


def test_the_object_says_the_same(mess: Path) -> None:
    text, code = check(str(mess), "--json", "--ref", "trunk")
    report = json.loads(text)
    assert code == 1
    assert {(p["path"], p["code"], p["line"]) for p in report["problems"]} == messes.EXPECTED_COMMITTED
    assert (report["skills"], report["errors"], report["warnings"]) == (len(messes.READ), 27, 12)
    assert len(report["commit"]) == 40


def test_a_sound_harness_ends_with_0(tmp_path: Path) -> None:
    messes.write_files(tmp_path, starter_files("judge"))
    assert check(str(tmp_path)) == (f"{tmp_path}: 2 skills, 1 hook, 0 tools, 0 errors, 0 warnings\n", 0)


def test_warnings_end_with_0(tmp_path: Path) -> None:
    messes.write_files(tmp_path, {**starter_files("judge"), "prompts/more.md": b"x"})
    text, code = check(str(tmp_path))
    assert (text.splitlines()[0].split()[:3], code) == (["prompts/more.md:0:", "warning", "prompt_unused"], 0)


def test_adopt_shows_files_with_which_there_are_no_errors(tmp_path: Path) -> None:
    skills = {"a/one/SKILL.md": messes.skill("one"), "two/SKILL.md": messes.skill("two")}
    messes.write_files(tmp_path, skills)
    text, code = check(str(tmp_path), "--adopt", "--json")
    report = json.loads(text)
    proposed = {path: body.encode() for path, body in report["proposed"].items()}
    assert (code, report["errors"], report["skill_folders"]) == (0, 0, [".", "a"])
    assert read_harness({**skills, **proposed}).problems == []
    assert not (tmp_path / "harness.yaml").exists()


def test_adopt_prints_each_file_under_its_path(tmp_path: Path) -> None:
    messes.write_files(tmp_path, {"two/SKILL.md": messes.skill("two")})
    text, _ = check(str(tmp_path), "--adopt")
    assert "--- harness.yaml\nformat: 1\n" in text
    assert "--- prompts/skills.md\n" in text


@pytest.mark.parametrize("arguments", [["--ref", "nowhere"], ["--ref=--help"], ["--adopt"]])
def test_what_cannot_be_checked_ends_with_2(tmp_path: Path, arguments: list[str]) -> None:
    messes.write_files(tmp_path, starter_files("judge"))
    with pytest.raises(CommandError) as failure:
        check(str(tmp_path), *arguments)
    assert failure.value.returncode == 2


@pytest.mark.parametrize("failure", [RuntimeError("a\nb"), RecursionError(), MemoryError(), ValueError("x")])
@pytest.mark.parametrize("where", ["read_source", "read_harness"])
def test_whatever_goes_wrong_is_a_sentence_and_a_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, where: str
) -> None:
    monkeypatch.setattr(check_harness, where, Mock(side_effect=failure))
    with pytest.raises(CommandError, match=f"cannot be checked: {type(failure).__name__}") as caught:
        check(str(tmp_path))
    assert (caught.value.returncode, "\n" in str(caught.value)) == (2, False)


def test_one_of_a_kind_is_no_plural(tmp_path: Path) -> None:
    files = {**starter_files("judge"), "prompts/more.md": b"x", "tools/a.yaml": b"[]"}
    messes.write_files(tmp_path, files)
    assert check(str(tmp_path))[0].endswith("2 skills, 1 hook, 0 tools, 1 error, 1 warning\n")


def test_how_a_folder_was_read_is_noted_where_it_matters(tmp_path: Path) -> None:
    messes.write_files(tmp_path, {**starter_files("judge"), ".git": b"gitdir: /elsewhere\n"})
    text, code = check(str(tmp_path))
    assert (text.splitlines()[0].startswith("note: the .git in "), code) == (True, 0)
    assert "is left alone" in json.loads(check(str(tmp_path), "--json")[0])["note"]


def test_hidden_characters_of_a_name_cannot_forge_lines(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff") + "\n\x1b[2Kx"
    messes.write_files(tmp_path, {**starter_files("judge"), name: b""})
    lines = check(str(tmp_path))[0].splitlines()
    assert lines[0].startswith("\\udcff\\n\\x1b[2Kx:0: error path_name")
    assert len(lines) == 2


@pytest.mark.django_db
def test_a_harness_of_the_workbench_is_checked_by_name() -> None:
    harness = ensure_starter(ANNA, "judge")
    commit = open_repository(harness).resolve("main")
    summary = f"judge at {commit[:12]}: 2 skills, 1 hook, 0 tools, 0 errors, 0 warnings\n"
    assert check("judge") == (summary, 0)
    assert check("judge", "--ref", commit[:10]) == (summary, 0)


@pytest.mark.django_db
@pytest.mark.parametrize("target", ["nobody", "no/such/path"])
def test_a_name_that_nobody_has_ends_with_2(target: str) -> None:
    with pytest.raises(CommandError, match="neither a folder nor a harness") as failure:
        check(target)
    assert failure.value.returncode == 2


def test_a_path_needs_no_server_and_codes_are_those_of_the_process(
    mess: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    var = tmp_path_factory.mktemp("var")
    assert run(var, str(mess)) == 1
    assert run(var, str(mess), "--ref", "nowhere") == 2
    assert run(var, str(mess), "--unheard-of") == 2
    assert run(var, "no/such/path") == 2
    assert not (var / "pgdata").exists()


def run(var: Path, *arguments: str) -> int:
    """The exit code of a process with a `var` of its own, in which a server would leave its data."""
    command = [sys.executable, "manage.py", "check_harness", *arguments]
    environment = {**os.environ, "WORKBENCH_VAR": str(var)}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, check=False)
    return done.returncode


@pytest.mark.parametrize("arguments", [["--ref", "nowhere"], ["--adopt"]])
def test_what_cannot_be_checked_is_an_object_too(tmp_path: Path, arguments: list[str]) -> None:
    messes.write_files(tmp_path, starter_files("judge"))
    text, code = check(str(tmp_path), "--json", *arguments)
    assert (list(json.loads(text)), code) == (["error"], 2)


def test_what_is_not_committed_is_counted(mess: Path) -> None:
    messes.write_files(
        mess, {"skills/good/SKILL.md": b"x", "skills/more/SKILL.md": b"x", "ignored.log": b"x"}
    )
    (mess / "skills/tab/SKILL.md").unlink()
    assert json.loads(check(str(mess), "--json")[0])["differing"] == 3
    assert "note: 3 files differ from what is committed, which add_harness takes" in check(str(mess))[0]
    assert json.loads(check(str(mess), "--json", "--ref", "HEAD")[0])["differing"] == 0
