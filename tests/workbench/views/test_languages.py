import re
import shutil
import subprocess
import sys
from pathlib import Path

import polib
import pytest
from django.conf import settings
from django.test import Client

from tests.workbench.views.conftest import World
from tests.workbench.views.pages import list_pages

LOCALE = Path(settings.BASE_DIR) / "locale"
CATALOGUES = ["en", "zh_Hans"]
# Folders without text for people, or with text that is not ours.
NOT_OURS = [".venv", "var", "tests", "static", ".git"]


def read(name: str) -> polib.POFile:
    return polib.pofile(str(LOCALE / name / "LC_MESSAGES" / "django.po"))


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_renders_in_both_languages(world: World, operator: Client, language: str) -> None:
    operator.cookies[settings.LANGUAGE_COOKIE_NAME] = language

    answers = {name: operator.get(address) for name, address in list_pages(world).items()}

    assert {answer.status_code for answer in answers.values()} == {200}
    pages = [answer.content.decode() for answer in answers.values() if "html" in answer["Content-Type"]]
    assert len(pages) > 15
    assert all(f'<html lang="{language}"' in page for page in pages)


def test_the_switch_changes_the_language(world: World, viewer: Client) -> None:
    viewer.post("/language/", {"language": "zh-hans", "next": world.url()})

    assert "审计记录" in viewer.get(world.url()).content.decode()


@pytest.mark.parametrize("name", CATALOGUES)
def test_a_catalogue_is_complete(name: str) -> None:
    catalogue = read(name)

    assert catalogue.untranslated_entries() == []
    assert catalogue.fuzzy_entries() == []
    assert catalogue.obsolete_entries() == []


@pytest.mark.parametrize("name", CATALOGUES)
def test_a_translation_names_the_same_values(name: str) -> None:
    value = re.compile(r"%\(\w+\)[-+.0-9]*[a-z]")
    wrong = [
        entry.msgid
        for entry in read(name)
        for text in (entry.msgstr, *entry.msgstr_plural.values())
        if text and set(value.findall(text)) - set(value.findall(entry.msgid + (entry.msgid_plural or "")))
    ]

    assert wrong == []


@pytest.mark.parametrize("name", CATALOGUES)
def test_the_compiled_catalogue_is_up_to_date(name: str) -> None:
    compiled = polib.mofile(str(LOCALE / name / "LC_MESSAGES" / "django.mo"))

    def texts(catalogue: polib.POFile | polib.MOFile) -> set[tuple[str, str, str]]:
        return {(entry.msgid, entry.msgstr, str(entry.msgstr_plural)) for entry in catalogue if entry.msgid}

    assert texts(compiled) == texts(read(name))


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="gettext is not installed")
def test_the_catalogues_know_every_text(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(
        settings.BASE_DIR, tree, ignore=shutil.ignore_patterns(*NOT_OURS, "__pycache__"), symlinks=True
    )
    command = [
        sys.executable,
        "-m",
        "django",
        "makemessages",
        "-l",
        "zh_Hans",
        "--no-location",
        "--no-wrap",
        "--no-obsolete",
    ]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)

    fresh = polib.pofile(str(tree / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"))
    known = {entry.msgid for entry in read("zh_Hans")}
    assert {entry.msgid for entry in fresh} - known == set()
