"""Results of promptfoo: the JSON of `promptfoo eval --output results.json`, of any version that has rows of results.

A row is a test with a prompt and a provider; one prompt with one provider is a run, and --variant says which. `success`
decides; a row that promptfoo calls an error, or whose grader failed, is an error, though promptfoo counts the latter as
a failed test. promptfoo has no ids of tests: a case is named by the test's `metadata.id` or `case_id`, else by its
description where no other test has it, else by its number. Runs of one test, which --repeat makes, are its repeats.
https://www.promptfoo.dev/docs/configuration/outputs/
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.shapes import as_dict, as_list, as_text
from evolution.adapters.formats.values import RecordProblem
from evolution.adapters.results.numbers import NoScore, of_verdict, read_cost, read_count, read_ms, read_share
from evolution.adapters.results.transcripts import Message, Transcript
from evolution.adapters.results.wanted import Items, Wanted, choose, kind_of
from evolution.ports import MeasuredCase, MeasuredResult, MeasuredRun
from harness_repo.runtime.trajectory import CallRecord

FORMAT = "promptfoo"
# ResultFailureReason of promptfoo: 0 none, 1 an assertion, 2 an error
FAILED_BY_ERROR = 2


def fits(document: Any) -> bool:
    """Say whether a JSON value is such a file, or what `promptfoo.evaluate()` returns."""
    if not isinstance(document, dict):
        return False
    rows = find_rows(document)
    return bool(rows) and all(isinstance(row, dict) and "success" in row for row in rows[:1])


def find_rows(document: Mapping[str, Any]) -> list[Any]:
    """The rows of results, wherever this version of promptfoo has them."""
    results = document.get("results")
    return as_list(results) or as_list(as_dict(results).get("results"))


def read(document: dict[str, Any], wanted: Wanted) -> MeasuredRun:
    """One run of the file; rows that can't be read are among its problems. BrokenInput where one must be chosen."""
    items = Items()
    rows = list(_number_rows(find_rows(document), wanted, items))
    variants = list(dict.fromkeys(name_variant(row) for _where, row in rows))
    variant = _choose_variant(variants, wanted.variant)
    keys = name_cases([row for _where, row in rows])
    cases: dict[str, MeasuredCase] = {}
    for _where, row in rows:
        cases.setdefault(keys[identify(row)], read_case(keys[identify(row)], row))
    own = [(where, keys[identify(row)], row) for where, row in rows if name_variant(row) == variant]
    results = list(_read_results(own, items))
    config = as_dict(document.get("config"))
    return MeasuredRun(
        format=FORMAT,
        dataset=wanted.name_dataset(as_text(config.get("description"))),
        model=variant.split(" | ")[0],
        judge=FORMAT,
        user_model="",
        cases=list(cases.values()),
        results=results,
        repeats=max(Counter(key for _where, key, _row in own).values(), default=1),
        variant=variant if len(variants) > 1 else "",
        problems=items.problems,
        details={"version": as_text(document.get("evalId")), "prompt": variant.partition(" | ")[2]},
    )


def _choose_variant(variants: list[str], wanted: str) -> str:
    """The variant of that name, or the only one of that provider, prompt's number or label."""
    meant = [name for name in variants if wanted and wanted in _list_names(name)]
    return choose(variants, meant[0] if len(meant) == 1 else wanted, "--variant")


def _list_names(variant: str) -> set[str]:
    """Such as "gpt-4o | 1: Answer briefly": also its parts."""
    provider, _bar, prompt = variant.rpartition(" | ")
    number, _colon, label = prompt.partition(": ")
    return {variant, provider, prompt, number, label, f"{provider} | {number}"}


def _read_results(rows: Iterable[tuple[str, str, dict[str, Any]]], items: Items) -> Iterator[MeasuredResult]:
    """A result for each row of one run; the n-th row of a case is its n-th repeat."""
    repeats: Counter[str] = Counter()
    for where, key, row in rows:
        try:
            yield read_row(row, key, repeats[key])
        except RecordProblem as problem:
            items.reject(where, problem)
        repeats[key] += 1


def _number_rows(rows: list[Any], wanted: Wanted, items: Items) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, row in enumerate(rows):
        where = f"{wanted.name}: results.{number}"
        if isinstance(row, dict):
            yield where, row
        else:
            items.reject(where, _("a record must be an object"))


def name_variant(row: Mapping[str, Any]) -> str:
    """The provider and the prompt; the prompt's text stands in a row as it was sent, with the test's values."""
    provider, prompt = row.get("provider"), as_dict(row.get("prompt"))
    named = (
        as_text(as_dict(provider).get("label")) or as_text(as_dict(provider).get("id")) or as_text(provider)
    )
    label = " ".join(as_text(prompt.get("label")).split())[:80]
    number = read_count(row.get("promptIdx"))
    return f"{named or 'provider'} | {number}: {label}" if label else f"{named or 'provider'} | {number}"


def identify(row: Mapping[str, Any]) -> str:
    """What makes a test the test it is, whatever prompt and provider it is made with."""
    case = as_dict(row.get("testCase"))
    parts = [case.get("description"), _read_vars(row), as_list(case.get("assert")), _read_id(row)]
    return json.dumps(parts, sort_keys=True, default=str)


def _read_id(row: Mapping[str, Any]) -> str:
    metadata = as_dict(as_dict(row.get("testCase")).get("metadata"))
    return as_text(metadata.get("id")) or as_text(metadata.get("case_id"))


def _read_description(row: Mapping[str, Any]) -> str:
    return as_text(as_dict(row.get("testCase")).get("description")).strip()


def _read_vars(row: Mapping[str, Any]) -> dict[str, Any]:
    given = as_dict(row.get("vars")) or as_dict(as_dict(row.get("testCase")).get("vars"))
    # What promptfoo itself adds while it runs.
    return {name: value for name, value in given.items() if name not in {"_conversation", "sessionId"}}


def name_cases(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Identity of a test -> its key."""
    tests = {identify(row): row for row in reversed(rows)}
    described = Counter(_read_description(row) for row in tests.values())
    keys: dict[str, str] = {}
    taken: set[str] = set()
    for identity, row in reversed(tests.items()):
        description = _read_description(row)
        number = row.get("testIdx")
        key = (
            _read_id(row)
            or (description if described[description] == 1 else "")
            or f"test-{read_count(number) if number is not None else len(keys)}"
        )
        while key in taken:
            key += "+"
        keys[identity] = key
        taken.add(key)
    return keys


def read_case(key: str, row: Mapping[str, Any]) -> MeasuredCase:
    """The test of a row as a case."""
    case = as_dict(row.get("testCase"))
    given = _read_vars(row)
    texts = [
        f"{name}: {value}" if len(given) > 1 else value
        for name, value in sorted(given.items())
        if isinstance(value, str)
    ]
    text = "\n".join(texts) or _read_description(row)
    request = {"danmaku": [{"user": "user", "text": text}] if text else [], "history": []}
    category = as_text(as_dict(case.get("metadata")).get("category"))
    return MeasuredCase(key=key, request=request, category=category or "test", context={"vars": given})


def read_row(row: Mapping[str, Any], key: str, repeat: int) -> MeasuredResult:
    """The result of a row; raises RecordProblem."""
    response = as_dict(row.get("response"))
    usage = as_dict(row.get("tokenUsage")) or as_dict(response.get("tokenUsage"))
    ms = read_ms(row.get("latencyMs"))
    prompt, completion = _read_tokens(usage)
    scores = _read_scores(row)
    is_mine = scores.get("error_kind") in {"policy_error", "timeout"}
    call = CallRecord(1, ms, prompt, completion, "", finish_reason=as_text(response.get("finishReason")))
    transcript = Transcript(
        _read_messages(row, response),
        [call] if response and not is_mine else [],
        latency_ms=ms,
        status="model_error" if is_mine else "ok",
        error=scores["error"] if is_mine else "",
    ).to_dict()
    return MeasuredResult(
        key=key,
        repeat=repeat,
        **scores,
        reply=transcript["reply"] or "",
        trajectory=transcript,
        prompt_tokens=prompt,
        completion_tokens=completion,
        latency_ms=ms,
        call_ms=[ms] if transcript["calls"] else [],
        cost=read_cost(row.get("cost"), prompt + completion),
    )


def _read_tokens(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Prompt and completion; a response from promptfoo's cache has only a total, which was paid before."""
    return read_count(usage.get("prompt")), read_count(usage.get("completion"))


def _read_scores(row: Mapping[str, Any]) -> dict[str, Any]:
    grading = as_dict(row.get("gradingResult"))
    response = as_dict(row.get("response"))
    reason = as_text(grading.get("reason"))
    if failure := _read_outage(row, response, grading):
        return {"error_kind": kind_of(failure), "error": failure}
    if failure := next(_list_grader_errors(grading), ""):
        return {"error_kind": "judge_error", "error": failure}
    success = row.get("success")
    if not isinstance(success, bool):
        return {"error_kind": "judge_output", "error": f"success: {success!r}"[:200]}
    named = as_dict(row.get("namedScores")).get("effectiveness")
    score = row.get("score") if named is None else named
    try:
        scores = of_verdict(passed=success, share=read_share(score))
        if named is not None:
            scores["effectiveness"] = read_share(named)
    except NoScore as failure:
        return {"error_kind": "judge_output", "error": f"score: {failure}"}
    findings = [
        {"kind": as_text(as_dict(part.get("assertion")).get("type")), "text": as_text(part.get("reason"))}
        for part in as_list(grading.get("componentResults"))
        if isinstance(part, dict) and part.get("pass") is False
    ]
    return {**scores, "reasons": {"accuracy": reason} if reason else {}, "findings": findings}


def _read_outage(row: Mapping[str, Any], response: Mapping[str, Any], grading: Mapping[str, Any]) -> str:
    """Why there was nothing to grade; promptfoo writes an assertion's reason into `error` too."""
    reason, error = row.get("failureReason"), as_text(row.get("error"))
    failed = as_text(response.get("error"))
    if failed or reason == FAILED_BY_ERROR:
        return failed or error or "error"
    # Files from before there was a failureReason.
    return error if reason is None and not grading and row.get("success") is not True else ""


def _list_grader_errors(grading: Mapping[str, Any]) -> Iterator[str]:
    for part in [grading, *as_list(grading.get("componentResults"))]:
        if isinstance(part, dict) and as_dict(part.get("metadata")).get("graderError"):
            yield as_text(part.get("reason")) or "the grader failed"


def _read_messages(row: Mapping[str, Any], response: Mapping[str, Any]) -> list[Message]:
    """The prompt as it was sent, messages where it is a list of them, and the output."""
    raw = as_text(as_dict(row.get("prompt")).get("raw"))
    sent = _parse_prompt(raw) or ([{"role": "user", "content": raw}] if raw else [])
    output = response.get("output")
    if output is None:
        return sent
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return [*sent, {"role": "assistant", "content": text}]


def _parse_prompt(raw: str) -> list[Message]:
    if not raw.lstrip().startswith("["):
        return []
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    has_roles = isinstance(value, list) and all(isinstance(m, dict) and "role" in m for m in value)
    return value if has_roles else []
