"""Beside stage 4: which cases that pass today a change can reach, found by what their runs on the base used."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evolution.loop.evaluation import UNDISTURBED
from evolution.loop.repositories import open_repository
from evolution.loop.taken_failures import has_passed
from evolution.models import CaseResult, Evaluation, Proposal
from evolution.states import EvaluationState, Split
from harness_repo.format.harness import Harness, is_harness_path, read_harness
from harness_repo.format.hooks import Hook
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.checks import CheckError, applies
from harness_repo.runtime.computing import Allowance, TooMuchComputing
from harness_repo.runtime.hooks import EMPTY_PAYLOAD

# Of so many evaluated versions it is looked whether one has the files of the base.
MOST_VERSIONS = 20
# Beyond so many results, conditions of hooks are not tried on them: every one counts as met.
MOST_TRIED = 3_000
# What all conditions together may take, in seconds of computing; they are a model's.
CONDITION_SECONDS = 5.0

_NEEDS_CALL = ("tool_call", "tool_result")
# Names in a condition whose values a stored run does not tell.
_NOT_KEPT = ("prompt", "turn")


@dataclass(frozen=True)
class Touched:
    """What of a harness a change touches, as a run can tell whether it used it."""

    skills: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    # with the version whose skills its condition speaks of
    hooks: tuple[tuple[Hook, Harness], ...] = ()
    # files that every run reads, or of which nobody can tell who does
    everywhere: tuple[str, ...] = ()
    # skills and tools whose description every run is shown, and which reads differently now
    shown_everywhere: tuple[str, ...] = ()


@dataclass(frozen=True)
class Risk:
    """Dev cases that passed on the base and used something that is touched."""

    # sorted keys
    keys: list[str] = field(default_factory=list)
    # the evaluation of the base that says so; None when nothing is measured
    evaluation: int | None = None
    # [{"part": "skill" | "tool" | "hook" | "file", "name", "cases"}], the largest first
    reach: list[dict[str, Any]] = field(default_factory=list)


def find_risk(proposal: Proposal, touched: Touched) -> Risk:
    """The cases at risk by the newest evaluation of the base, or of a version with the same files."""
    evaluation = find_measured_base(proposal)
    if evaluation is None:
        return Risk()
    tries = bool(touched.hooks) and evaluation.total <= MOST_TRIED
    allowance = Allowance(CONDITION_SECONDS) if tries else None
    failed: set[str] = set()
    used: dict[str, set[tuple[str, str]]] = {}
    for key, has_full_marks, run in _read_runs(evaluation, wants_whole=tries):
        if not has_full_marks:
            failed.add(key)
        elif parts := set(_used(touched, run, allowance)):
            used[key] = used.get(key, set()) | parts
    keys = sorted(used.keys() - failed)
    counts = Counter(part for key in keys for part in used[key])
    reach = [{"part": part, "name": name, "cases": n} for (part, name), n in counts.most_common()]
    return Risk(keys, evaluation.pk, reach)


def find_measured_base(proposal: Proposal) -> Evaluation | None:
    """The newest evaluation of what the proposal's branch began on: finished, or else ended with errors."""
    measured = Evaluation.objects.filter(
        UNDISTURBED,
        harness=proposal.harness,
        state__in=(EvaluationState.FINISHED, EvaluationState.PARTIAL),
        # What was measured elsewhere has cases of its own.
        origin={},
    )
    for commit in (proposal.base_commit, *_same_files(proposal, measured.exclude(commit=""))):
        of_commit = list(measured.filter(commit=commit))
        finished = [one for one in of_commit if one.state == EvaluationState.FINISHED]
        if of_commit:
            return (finished or of_commit)[0]
    return None


def _same_files(proposal: Proposal, measured: Any) -> Iterator[str]:
    """Other measured versions whose files are those of the base: what was made live again, for one."""
    commits = dict.fromkeys(measured.exclude(commit=proposal.base_commit).values_list("commit", flat=True))
    repository = open_repository(proposal.harness)
    try:
        wanted = repository.tree_of(proposal.base_commit)
    except HarnessRepoError:
        return
    for commit in list(commits)[:MOST_VERSIONS]:
        try:
            if repository.tree_of(commit) == wanted:
                yield commit
        except HarnessRepoError:
            continue


def find_touched(base: Mapping[str, bytes], head: Mapping[str, bytes]) -> Touched:
    """What differs between two versions, by the parts that a run can use."""
    changed = sorted(path for path in base.keys() | head.keys() if base.get(path) != head.get(path))
    before, after = read_harness(base), read_harness(head)
    folders = {*before.skill_folders, *after.skill_folders}
    skills: set[str] = set()
    tools: set[str] = set()
    hooks: list[tuple[Hook, Harness]] = []
    everywhere: list[str] = []
    for path in changed:
        here = [(side, _parts_at(side, path)) for side in (before, after)]
        found = {kind for _side, parts in here for kind in parts}
        skills |= {name for _side, parts in here for name in parts.get("skill", ())}
        tools |= {name for _side, parts in here for name in parts.get("tool", ())}
        hooks += [(hook, side) for side in (before, after) for hook in side.hooks if hook.path == path]
        if not found and is_harness_path(path, folders, {*base, *head}):
            everywhere.append(path)
    shown = tuple(_shown_otherwise(before, after))
    return Touched(frozenset(skills), frozenset(tools), tuple(hooks), tuple(everywhere), shown)


def _parts_at(harness: Harness, path: str) -> dict[str, list[str]]:
    """Kind -> names of the parts that a file belongs to; empty for one that belongs to none."""
    skills = [
        skill.name
        for skill in harness.skills.values()
        if path == skill.path or (skill.folder and path.startswith(f"{skill.folder}/"))
    ]
    tools = [tool.name for tool in harness.tools.values() if tool.path == path]
    hooks = [hook.name for hook in harness.hooks if hook.path == path]
    return {kind: names for kind, names in (("skill", skills), ("tool", tools), ("hook", hooks)) if names}


def _shown_otherwise(before: Harness, after: Harness) -> Iterator[str]:
    def shown(harness: Harness) -> dict[str, Any]:
        skills = {name: (skill.description, skill.kind) for name, skill in harness.skills.items()}
        return {**skills, **{name: tool.definition() for name, tool in harness.tools.items()}}

    old, new = shown(before), shown(after)
    return (name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name))


def _read_runs(evaluation: Evaluation, *, wants_whole: bool) -> Iterator[tuple[str, bool, Mapping[str, Any]]]:
    """Key, whether it passed, and what is known of the run, of every scored dev result."""
    results = CaseResult.objects.filter(evaluation=evaluation, case__split=Split.DEV, accuracy__isnull=False)
    names = ["skills_loaded", "tool_calls", *(["reply"] if wants_whole else [])]
    columns = [f"trajectory__{name}" for name in names] + (["case__request"] if wants_whole else [])
    rows = results.values_list("case__key", "accuracy", "effectiveness", *columns)
    for key, accuracy, effectiveness, *values in rows.iterator(chunk_size=500):
        yield (
            key,
            has_passed(accuracy, effectiveness or 0),
            dict(zip([*names, "request"], values, strict=False)),
        )


def _used(touched: Touched, run: Mapping[str, Any], allowance: Allowance | None) -> Iterator[tuple[str, str]]:
    """The touched parts that the run used, as (part, name)."""
    calls = [call for call in run.get("tool_calls") or [] if isinstance(call, dict)]
    called = {str(call.get("name")) for call in calls}
    loaded = {str(name) for name in run.get("skills_loaded") or []}
    yield from (("file", path) for path in touched.everywhere)
    yield from (("skill", name) for name in touched.skills & loaded)
    yield from (("tool", name) for name in touched.tools & called)
    for hook, harness in touched.hooks:
        if _may_fire(hook, harness, calls, run, allowance):
            yield "hook", hook.name


def _may_fire(
    hook: Hook,
    harness: Harness,
    calls: list[dict[str, Any]],
    run: Mapping[str, Any],
    allowance: Allowance | None,
) -> bool:
    """Whether the hook's event happened and its condition was met there, as far as that can be told; else yes."""
    if hook.event in _NEEDS_CALL and not calls:
        return False
    condition = hook.when
    if condition is None or allowance is None:
        return True
    if isinstance(condition, str) and any(name in condition for name in _NOT_KEPT):
        return True

    def is_met() -> bool:
        return any(
            applies(condition, hook.event, payload, harness) for payload in _payloads(hook, calls, run)
        )

    try:
        return allowance.spend(f"the condition of hook {hook.name!r}", is_met)
    except (CheckError, TooMuchComputing):
        return True


def _payloads(hook: Hook, calls: list[dict[str, Any]], run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the hook was shown each time that its event happened."""
    request = run.get("request") or {}
    known = {**EMPTY_PAYLOAD, "request": request, "danmaku": request.get("danmaku") or []}
    if hook.event == "input":
        yield known
        return
    known |= {"skills_loaded": run.get("skills_loaded") or [], "tool_calls": calls}
    if hook.event == "reply":
        yield {**known, "reply": run.get("reply") or ""}
        return
    for call in calls:
        tool = {"name": call.get("name"), "arguments": call.get("arguments")}
        yield {**known, "tool": tool, "result": call.get("result")}
