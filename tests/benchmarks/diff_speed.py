"""How long a diff takes to become a page: `python -m tests.benchmarks.diff_speed`.

Every row parses git's diff, lays it out and renders parts/diff_files.html; reading the files from git is not in it.
Prints one line per row: the median of so many rounds in milliseconds, the lines of the diff, and the page's size.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable

ROUNDS = 9
FILES = 500
LINES = 20_000


def many_files() -> tuple[dict[str, str], dict[str, str]]:
    """Many small files, a line changed and one added in each."""
    old = {
        f"skills/s{at}/SKILL.md": f"---\nname: s{at}\n---\n# Skill {at}\n\nSay the price of {at}.\n"
        for at in range(FILES)
    }
    new = {path: text.replace("the price", "the final price") + "Be brief.\n" for path, text in old.items()}
    return old, new


def long_file() -> tuple[dict[str, str], dict[str, str]]:
    """One file, every line of it changed."""
    old = "".join(f"- rule {at}: say thing {at} when somebody asks\n" for at in range(LINES))
    return {"prompts/long.md": old}, {"prompts/long.md": old.replace("somebody asks", "they ask for it")}


def long_file_here_and_there() -> tuple[dict[str, str], dict[str, str]]:
    """The same file, every fiftieth line changed."""
    old, _ = long_file()
    lines = old["prompts/long.md"].splitlines(keepends=True)
    lines[::50] = [line.replace("somebody", "a viewer") for line in lines[::50]]
    return old, {"prompts/long.md": "".join(lines)}


def ordinary() -> tuple[dict[str, str], dict[str, str]]:
    """Three files of a draft."""
    old, new = many_files()
    kept = list(old)[:3]
    return {path: old[path] for path in kept}, {path: new[path] for path in kept}


SIZES = {
    "3 files": ordinary,
    f"{FILES} files": many_files,
    f"{LINES} lines, all changed": long_file,
    f"{LINES} lines, every 50th": long_file_here_and_there,
}


def write_diff(old: dict[str, str], new: dict[str, str]) -> str:
    """The diff as git writes it; Python's own takes minutes for it."""
    import tempfile  # noqa: PLC0415  beside what uses it
    from pathlib import Path  # noqa: PLC0415  beside what uses it

    from harness_repo.git.objects import Author  # noqa: PLC0415  after the environment is set
    from harness_repo.git.repository import HarnessRepository  # noqa: PLC0415  after the environment is set

    author = Author("bench", "bench@example.org")
    with tempfile.TemporaryDirectory(prefix="diff-") as folder:
        files = {path: text.encode() for path, text in old.items()}
        repository = HarnessRepository.create(Path(folder) / "r.git", files, author=author, message="m")
        edits = {path: text.encode() for path, text in new.items()}
        head = repository.commit("b", edits, parent="main", author=author, message="m")
        return repository.diff("main", head)


def median(work: Callable[[], object]) -> float:
    """Milliseconds of one call, the first left out."""
    work()
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def main() -> None:
    """Measure every size in every layout."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    import django  # noqa: PLC0415  after the environment is set

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415  after Django's set-up
    from django.template.loader import render_to_string  # noqa: PLC0415  after Django's set-up
    from django.test import RequestFactory  # noqa: PLC0415  after Django's set-up

    from harness_repo.git.diffs import parse_diff  # noqa: PLC0415  after Django's set-up
    from workbench.diff_page import Change, show_change  # noqa: PLC0415  after Django's set-up
    from workbench.diff_view import Sources  # noqa: PLC0415  after Django's set-up

    # The part names its style sheet and script by what they are called when they are collected.
    call_command("collectstatic", verbosity=0, interactive=False)
    for name, make in SIZES.items():
        old, new = make()
        text = write_diff(old, new)
        sides = ({path: each.encode() for path, each in files.items()} for files in (old, new))
        sources = Sources(*sides)
        for layout in ("unified", "split", "words"):
            request = RequestFactory().get("/", {"layout": layout})
            request.session = {}  # type: ignore[assignment]  # all that is read of it

            def render() -> str:
                change = Change(parse_diff(text), sources, "head", "/file/")  # noqa: B023  called at once
                context = {"diff": show_change(request, change)}  # noqa: B023  called at once
                return render_to_string("parts/diff_files.html", context, request)  # noqa: B023  called at once

            size = len(render().encode()) // 1024
            row = f"{name:26} {layout:8} {median(render):7.0f} ms {text.count(chr(10)):7} lines {size:5} KB"
            sys.stdout.write(f"{row}\n")


if __name__ == "__main__":
    main()
