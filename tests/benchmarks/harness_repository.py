"""`make bench`: what proposals cost in git, beside plain git plumbing that does the same; a module to run, no test.

1,000 proposal branches over a harness of 200 files: create one, diff it; checks whether branches merge, of every kind;
then reading a harness of 500 skills at a commit. Both sides write to disks in the same way
(core.fsync=reference,committed), but for checks, of which nothing is kept here.
Run with a number of branches: `python -m tests.benchmarks.harness_repository 1000`.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness_repo.format.harness import read_harness
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository

AUTHOR = Author("bench", "bench@example.org")
BRANCHES = 1000
FILES = 200
SKILLS = 500
CHECKS = 200
OURS = "harness_repo"
PLAIN = "plain git"
_IDENTITY = {
    f"GIT_{who}_{what}": "bench@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@dataclass(frozen=True)
class Line:
    """One line of the table; milliseconds."""

    what: str
    p50: float
    p95: float
    n: int


def measure(what: str, calls: Iterable[Callable[[], object]]) -> Line:
    """Time each call."""
    times = []
    for call in calls:
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
    times.sort()
    return Line(what, times[len(times) // 2], times[int(len(times) * 0.95)], len(times))


def harness_files(skills: int) -> dict[str, bytes]:
    """A harness with so many skills of ordinary size."""
    config = b"format: 1\nname: bench\nkind: agent\nprompt:\n  - {name: role, file: prompts/role.md}\n"
    files = {"harness.yaml": config, "prompts/role.md": b"You help.\n"}
    for number in range(skills):
        name = f"skill-{number:03}"
        head = f"---\nname: {name}\ndescription: Answers questions of kind {number}.\nmetadata:\n  kind: reply\n---\n"
        files[f"skills/{name}/SKILL.md"] = (head + f"# {name}\n" + "- one rule among many\n" * 60).encode()
    return files


class Plumbing:
    """The same work by git's own commands, as a careful shell script would do it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = path / "bench-index"
        self.attributes = path / "bench-attributes"
        self.attributes.write_text("*.md merge=union\n")

    def run(self, *arguments: str, stdin: bytes = b"", allowed: tuple[int, ...] = (0,)) -> str:
        """Run one git command."""
        command = ["git", "-c", "core.fsync=reference,committed", "--git-dir", str(self.path), *arguments]
        env = {**os.environ, **_IDENTITY, "GIT_INDEX_FILE": str(self.index)}
        done = subprocess.run(command, input=stdin, capture_output=True, env=env, check=False)
        if done.returncode not in allowed:
            raise RuntimeError(done.stderr.decode())
        return done.stdout.decode().strip()

    def create(self, branch: str, path: str, data: bytes) -> None:
        """A branch on main with one file changed."""
        base = self.run("rev-parse", "main^{commit}")
        blob = self.run("hash-object", "-w", "--no-filters", "--stdin", stdin=data)
        self.run("read-tree", base)
        self.run("update-index", "--cacheinfo", f"100644,{blob},{path}")
        commit = self.run("commit-tree", self.run("write-tree"), "-p", base, "-F", "-", stdin=b"bench\n")
        self.run("update-ref", f"refs/heads/{branch}", commit, "0" * 40)

    def diff(self, branch: str) -> None:
        """What the branch changes."""
        self.run("diff", "main", branch, "--")

    def import_fast(self, branch: str, path: str, data: bytes) -> None:
        """The same as `create`, by one fast-import."""
        base = self.run("rev-parse", "main^{commit}")
        who = "committer bench <bench@example.org> now\n"
        head = f"commit refs/heads/{branch}\n{who}data 6\nbench\nfrom {base}\nM 100644 inline {path}\n"
        stream = head.encode() + b"data %d\n%s\n" % (len(data), data)
        self.run("fast-import", "--quiet", "--date-format=now", stdin=stream)

    def check(self, ours: str, theirs: str) -> None:
        """Whether it merges; names what does not."""
        self.run("merge-tree", "--write-tree", "--messages", ours, theirs, allowed=(0, 1))

    def unite(self, ours: str, theirs: str) -> None:
        """Whether it merges when both sides' additions are kept."""
        settings = ("-c", f"core.attributesFile={self.attributes}")
        self.run(*settings, "merge-tree", "--write-tree", ours, theirs, allowed=(0, 1))

    def read(self, ref: str) -> None:
        """Every file of a version."""
        lines = self.run("ls-tree", "-r", ref).splitlines()
        shas = "".join(f"{line.split()[2]}\n" for line in lines)
        self.run("cat-file", "--batch", "--buffer", stdin=shas.encode())


def measure_proposals(folder: Path, branches: int) -> list[Line]:
    """Create, diff and check so many branches, by the library and by plumbing, in turn on the same repository."""
    files = harness_files(FILES - 2)
    repo = HarnessRepository.create(folder / "p.git", files, author=AUTHOR, message="bench")
    git = Plumbing(repo.path)
    paths = sorted(path for path in files if path.startswith("skills/"))

    def edit(number: int, side: str) -> tuple[str, bytes]:
        path = paths[number % len(paths)]
        return path, files[path] + f"- {side} rule {number}\n".encode()

    def commit(number: int) -> None:
        path, data = edit(number, "our")
        repo.commit(f"proposal/{number}-a", {path: data}, parent="main", author=AUTHOR, message="bench")

    def commit_plainly(number: int) -> None:
        git.create(f"plain/{number}-a", *edit(number, "plain"))

    def commit_fast(number: int) -> None:
        git.import_fast(f"fast/{number}-a", *edit(number, "fast"))

    heads = [f"proposal/{number}-a" for number in range(branches)]
    creation = "create a branch with one commit"
    return [
        measure(f"{creation}, {OURS}", [partial(commit, n) for n in range(branches)]),
        measure(f"{creation}, {PLAIN}: 7 commands", [partial(commit_plainly, n) for n in range(branches)]),
        measure(f"{creation}, {PLAIN}: fast-import", [partial(commit_fast, n) for n in range(branches)]),
        measure(f"diff, {OURS}", [partial(repo.diff, "main", head) for head in heads]),
        measure(f"diff, {PLAIN}", [partial(git.diff, head) for head in heads]),
    ]


def measure_checks(folder: Path, rounds: int) -> list[Line]:
    """Check merges of every kind: main has not moved, both sides changed a file, both added, both rewrote a line."""
    files = harness_files(FILES - 2)
    repo = HarnessRepository.create(folder / "m.git", files, author=AUTHOR, message="bench")
    git = Plumbing(repo.path)
    path = "skills/skill-000/SKILL.md"
    text = files[path]
    middle = text.replace(b"# skill-000\n", b"# skill-000\n- first\n")
    sides = {
        "a head on main as it is": (text, text + b"- rule\n", git.check),
        "three ways, clean": (middle, text + b"- rule\n", git.check),
        "three ways, additions united": (text + b"- our\n", text + b"- their\n", git.unite),
        "three ways, conflict with its hunks": (
            text.replace(b"# skill-000", b"# ours"), text.replace(b"# skill-000", b"# theirs"), git.check,
        ),
    }  # fmt: skip
    lines = []
    for number, (what, (ours, theirs, plainly)) in enumerate(sides.items()):
        names = [f"{number}/{side}" for side in ("ours", "theirs")]
        for name, data in zip(names, (ours, theirs), strict=True):
            edits = {path: data, "note": name.encode() if data != text else None}
            if data == text:
                names[0] = "main"
            else:
                repo.commit(
                    name,
                    edits if name != names[1] else {path: data},
                    parent="main",
                    author=AUTHOR,
                    message="b",
                )
        check = partial(repo.check_merge, names[0], [names[1]])
        lines += [
            measure(f"merge check, {what}, {OURS}", [check] * rounds),
            measure(f"merge check, {what}, {PLAIN}", [partial(plainly, *names)] * rounds),
        ]
    return lines


def measure_reading(folder: Path, rounds: int = 40) -> list[Line]:
    """Read a harness of many skills at a commit, from loose objects and from a pack."""
    files = harness_files(SKILLS)
    repo = HarnessRepository.create(folder / "r.git", files, author=AUTHOR, message="bench")
    git = Plumbing(repo.path)
    lines = []
    for state in ("loose", "packed"):
        if state == "packed":
            git.run("gc", "--quiet", "--prune=now")
        snapshot = repo.snapshot("main")
        lines += [
            measure(
                f"all files of {SKILLS} skills, {state}, {OURS}", [lambda: repo.snapshot("main")] * rounds
            ),
            measure(f"all files of {SKILLS} skills, {state}, {PLAIN}", [lambda: git.read("main")] * rounds),
        ]
    lines.append(
        measure(
            f"read_harness of these {SKILLS} skills in memory, {OURS}",
            [lambda: read_harness(snapshot)] * rounds,
        )
    )
    return lines


def main() -> None:
    """Print the table."""
    branches = int(sys.argv[1]) if len(sys.argv) > 1 else BRANCHES
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        lines = measure_proposals(Path(folder), branches)
        lines += measure_checks(Path(folder), min(branches, CHECKS)) + measure_reading(Path(folder))
    print(f"{'':74} {'n':>5} {'p50 ms':>8} {'p95 ms':>8}")  # noqa: T201  it is what this prints
    for line in lines:
        print(f"{line.what:74} {line.n:5} {line.p50:8.2f} {line.p95:8.2f}")  # noqa: T201


if __name__ == "__main__":
    main()
