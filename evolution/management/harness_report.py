"""What was found in a harness, as check_harness and add_harness say it: as lines for people, or as one object."""

from collections.abc import Mapping
from typing import Any

from harness_repo.folder import Source
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.format.problems import Problem, format_problem, visible


def build_report(
    target: str, source: Source, harness: HarnessState, proposed: Mapping[str, bytes]
) -> dict[str, Any]:
    """The object that `--json` prints; harness_repo/README.md documents it."""
    problems = sort_problems(harness)
    errors = sum(problem.is_error for problem in problems)
    return {
        "target": target,
        "commit": source.commit,
        "note": source.note,
        "differing": source.differing,
        "name": harness.name,
        "kind": harness.kind,
        "skill_folders": list(harness.skill_folders),
        "skills": len(harness.skills),
        "hooks": len(harness.hooks),
        "tools": len(harness.tools),
        "prompt_sections": len(harness.prompt),
        "errors": errors,
        "warnings": len(problems) - errors,
        "problems": [_problem_data(problem) for problem in problems],
        "proposed": {path: data.decode() for path, data in proposed.items()},
    }


def sort_problems(harness: HarnessState) -> list[Problem]:
    """By path, line and code."""
    return sorted(harness.problems, key=lambda problem: (problem.path, problem.line, problem.code))


def problem_lines(harness: HarnessState) -> list[str]:
    """A line for each problem, by path and line."""
    return list(map(format_problem, sort_problems(harness)))


def summary_line(report: Mapping[str, Any]) -> str:
    """What was read from where, in numbers."""
    where = f" at {report['commit'][:12]}" if report["commit"] else ""
    parts = ("skills", "hooks", "tools", "errors", "warnings")
    counts = ", ".join(_count(report[part], part) for part in parts)
    return visible(f"{report['target']}{where}: {counts}")


def count_files(number: int) -> str:
    """1 file differs, 2 files differ."""
    return "1 file differs" if number == 1 else f"{number} files differ"


def _problem_data(problem: Problem) -> dict[str, Any]:
    return {
        "path": problem.path,
        "line": problem.line,
        "severity": str(problem.severity),
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint,
    }


def _count(number: int, what: str) -> str:
    return f"{number} {what.removesuffix('s') if number == 1 else what}"
