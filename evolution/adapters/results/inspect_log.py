"""Logs of Inspect: .json, or .eval, a zip with a file for each sample (deflate or zstd).

An epoch is a repeat. Of a sample's scores one decides: the only one, or that which --score names ("scorer", or
"scorer/part" of a score that is an object). C and true are full marks, P is half of them, I, N and false none, as in
Inspect's value_to_float. A sample with an error, or without a score, is an error.
https://inspect.aisi.org.uk/eval-logs.html
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.messages import check_messages
from evolution.adapters.formats.shapes import as_dict, as_list, as_text
from evolution.adapters.formats.values import RecordProblem
from evolution.adapters.results.inspect_usage import read_calls, reduce_event, split_usage
from evolution.adapters.results.numbers import NoScore, grade, of_verdict, read_count, read_ms, read_repeat
from evolution.adapters.results.transcripts import Message, Transcript, shown_reply
from evolution.adapters.results.wanted import Items, Wanted, choose, kind_of
from evolution.errors import BrokenInput
from evolution.ports import MeasuredCase, MeasuredResult, MeasuredRun

FORMAT = "inspect"
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
# type of a sample's limit -> status of trajectory/1; the sample is scored by what it had
LIMITS = {
    "message": "turn_limit",
    "turn": "turn_limit",
    "token": "token_limit",
    "time": "time_limit",
    "working": "time_limit",
}
_ATTACHMENT = "attachment://"
_USED = (
    "id", "epoch", "input", "target", "messages", "scores", "error", "invalidation", "limit", "model_usage",
    "working_time", "total_time",
)  # fmt: skip


def fits(document: Any) -> bool:
    """Say whether a JSON value is such a log."""
    return isinstance(document, dict) and isinstance(document.get("eval"), dict) and "plan" in document


def read(document: dict[str, Any], wanted: Wanted) -> MeasuredRun:
    """The run of a log with its samples; samples that can't be read are among its problems."""
    return read_samples(document, as_list(document.get("samples")), wanted)


def read_samples(header: dict[str, Any], samples: Iterable[Any], wanted: Wanted) -> MeasuredRun:
    """The run of a log's header and its samples. BrokenInput without a sample, or where a score has to be chosen."""
    run = as_dict(header.get("eval"))
    items = Items()
    known = list(_sound(samples, wanted, items))
    if not known:
        status = as_text(header.get("status"))
        what = {"name": wanted.name, "status": status}
        raise BrokenInput(_("%(name)s has no samples (status of the log: %(status)s)") % what)
    score = _choose_score(known, wanted)
    cases, results = _read_known(known, run, score, wanted, items)
    return MeasuredRun(
        format=FORMAT,
        dataset=wanted.name_dataset(as_text(run.get("task"))),
        model=as_text(run.get("model")),
        judge=f"{FORMAT} {score}".strip(),
        user_model="",
        cases=cases,
        results=results,
        repeats=max(read_count(as_dict(run.get("config")).get("epochs")), 1),
        declared=_list_declared(run),
        problems=items.problems,
        details={
            "version": as_text(as_dict(run.get("revision")).get("commit")),
            "made_at": as_text(run.get("created")),
            "status": as_text(header.get("status")),
        },
    )


def _read_known(
    samples: Iterable[dict[str, Any]], run: Mapping[str, Any], score: str, wanted: Wanted, items: Items
) -> tuple[list[MeasuredCase], list[MeasuredResult]]:
    model = as_text(run.get("model"))
    cases: dict[str, MeasuredCase] = {}
    results = []
    for number, sample in enumerate(samples):
        try:
            result = read_sample(sample, score, model, wanted)
            cases.setdefault(result.key, _read_case(result.key, sample, run))
            results.append(result)
        except RecordProblem as problem:
            items.reject(f"{wanted.name}: samples.{number} ({as_text(sample.get('id'))})", problem)
    return list(cases.values()), results


def _list_declared(run: Mapping[str, Any]) -> list[str]:
    """The ids of all samples of the dataset, also of those that the log has not."""
    declared = map(as_text, as_list(as_dict(run.get("dataset")).get("sample_ids")))
    return [key for key in declared if key]


def reduce_sample(sample: Mapping[str, Any]) -> dict[str, Any]:
    """The sample with what is read of it, which is a small part."""
    reduced = {name: sample[name] for name in _USED if name in sample}
    resolve = _Attachments(sample).resolve
    reduced |= {name: resolve(reduced[name]) for name in ("input", "messages") if name in reduced}
    events = [event for event in as_list(sample.get("events")) if as_dict(event).get("event") == "model"]
    scores = as_dict(sample.get("scores"))
    reduced["scores"] = {name: _reduce_score(score) for name, score in scores.items()}
    return reduced | {"events": [reduce_event(event) for event in events]}


def _reduce_score(score: Any) -> Any:
    if not isinstance(score, dict):
        return score
    return {name: score[name] for name in ("value", "explanation") if name in score}


def _sound(samples: Iterable[Any], wanted: Wanted, items: Items) -> Iterator[dict[str, Any]]:
    for number, sample in enumerate(samples):
        if isinstance(sample, dict):
            yield reduce_sample(sample)
        else:
            items.reject(f"{wanted.name}: samples.{number}", sample or _("a record must be an object"))


def _choose_score(samples: list[dict[str, Any]], wanted: Wanted) -> str:
    """The name of the score that decides; empty when no sample has any."""
    names = dict.fromkeys(name for sample in samples for name, _value in list_scores(sample))
    return choose(list(names), wanted.score, "--score") if names else ""


def list_scores(sample: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The scores of a sample by the names that --score takes, as they stand."""
    for scorer, score in as_dict(sample.get("scores")).items():
        value = as_dict(score).get("value")
        if isinstance(value, dict):
            yield from ((f"{scorer}/{part}", inner) for part, inner in value.items())
        else:
            yield scorer, value


def _read_case(key: str, sample: dict[str, Any], run: Mapping[str, Any]) -> MeasuredCase:
    given = sample.get("input")
    target = sample.get("target")
    targets = [text for text in (target if isinstance(target, list) else [target]) if isinstance(text, str)]
    return MeasuredCase(
        key=key,
        request=_build_request(given),
        category=as_text(run.get("task"))[:64] or "sample",
        expected={
            "facts": [{"fact": text.strip(), "accept": [text.strip()]} for text in targets if text.strip()]
        },
    )


def _build_request(given: Any) -> dict[str, Any]:
    """What the user asked last, and what was said before."""
    if isinstance(given, str):
        return {"danmaku": [{"user": "user", "text": given}], "history": []}
    messages = [{"role": m["role"], "content": m["content"]} for m in check_messages(_plain(given))]
    last = next((n for n in reversed(range(len(messages))) if messages[n]["role"] == "user"), None)
    if last is None:
        return {"danmaku": [], "history": messages}
    text = messages[last]["content"] or ""
    return {"danmaku": [{"user": "user", "text": text}], "history": messages[:last]}


def read_sample(sample: dict[str, Any], score: str, model: str, wanted: Wanted) -> MeasuredResult:
    """The result of a reduced sample; raises RecordProblem."""
    key = as_text(sample.get("id"))
    if not key:
        raise RecordProblem(_("`%(name)s` is missing") % {"name": "id"})
    failure = _read_failure(sample)
    status = "model_error" if failure else LIMITS.get(as_text(as_dict(sample.get("limit")).get("type")), "ok")
    messages = _plain(as_list(sample.get("messages")))
    calls = read_calls(as_list(sample.get("events")), model)
    latency = read_ms(sample.get("working_time"), 1000) or read_ms(sample.get("total_time"), 1000)
    transcript = Transcript(messages, calls, (), latency, status, failure).to_dict()
    policy, judge = split_usage(as_dict(sample.get("model_usage")), model)
    if policy.prompt_tokens or policy.completion_tokens:
        transcript["usage"] = policy._asdict()
    else:
        policy = policy._replace(**transcript["usage"])
    return MeasuredResult(
        key=key,
        # Epochs count from 1.
        repeat=read_repeat(sample, "epoch", first=1),
        **_read_scores(sample, score, failure, wanted),
        reply=shown_reply(transcript),
        trajectory=transcript,
        **policy._asdict(),
        **{f"judge_{name}": count for name, count in judge._asdict().items()},
        latency_ms=latency,
        call_ms=[call.ms for call in calls],
    )


def _read_failure(sample: dict[str, Any]) -> str:
    """What went wrong beside the agent's answer; empty when nothing did."""
    error = sample.get("error")
    if error:
        return as_text(as_dict(error).get("message")) or as_text(error) or "error"
    return _("invalidated") if sample.get("invalidation") else ""


def _read_scores(sample: dict[str, Any], name: str, failure: str, wanted: Wanted) -> dict[str, Any]:
    if failure:
        return {"error_kind": kind_of(failure), "error": failure}
    scorer, _slash, part = name.partition("/")
    scores = as_dict(sample.get("scores"))
    # A scorer's own name may have a slash in it.
    score, part = (scores[name], "") if name in scores else (scores.get(scorer), part)
    if not isinstance(score, dict):
        return {"error_kind": "judge_error", "error": _("the sample has no score")}
    value = as_dict(score.get("value")).get(part) if part else score.get("value")
    try:
        graded = grade_value(value, wanted)
    except NoScore as problem:
        return {"error_kind": "judge_output", "error": f"{name}: {problem}"}
    why = as_text(score.get("explanation"))
    said = f"{name} {value}" + (f": {why.strip()}" if why.strip() else "")
    return {**graded, "reasons": {"accuracy": said}}


def grade_value(value: Any, wanted: Wanted) -> dict[str, float]:
    """A score's value, read as Inspect reads it; objects and lists have to be chosen from."""
    if not isinstance(value, str):
        return grade(value, wanted)
    text = value.strip()
    if text in LETTERS:
        return of_verdict(passed=LETTERS[text] == 1, share=LETTERS[text])
    if text.lower() in {"yes", "true", "no", "false"}:
        return grade(text.lower() in {"yes", "true"}, wanted)
    try:
        number = float(text)
    except ValueError:
        raise NoScore(_("no number: %(value)s") % {"value": text[:100]}) from None
    return grade(number, wanted)


class _Attachments:
    """Puts the long texts back that a log keeps once and refers to."""

    def __init__(self, sample: Mapping[str, Any]) -> None:
        self._texts = as_dict(sample.get("attachments"))

    def resolve(self, value: Any) -> Any:
        if isinstance(value, str):
            known = (
                self._texts.get(value.removeprefix(_ATTACHMENT)) if value.startswith(_ATTACHMENT) else None
            )
            return known if isinstance(known, str) else value
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if isinstance(value, dict):
            return {key: self.resolve(item) for key, item in value.items()}
        return value


def _plain(messages: Any) -> list[Message]:
    """Inspect's messages in the shape of chat completions."""
    return [_plain_message(message) for message in as_list(messages) if isinstance(message, dict)]


def _plain_message(message: Message) -> Message:
    plain = dict(message)
    if calls := as_list(message.get("tool_calls")):
        plain["tool_calls"] = [
            {
                "id": as_text(call.get("id")),
                "type": "function",
                # Older logs have the function's name there.
                "function": {"name": as_text(call.get("function")), "arguments": call.get("arguments")},
            }
            for call in calls
            if isinstance(call, dict)
        ]
    if message.get("role") == "tool":
        plain.pop("name", None)
        if problem := as_dict(message.get("error")):
            plain["content"] = f"Error: {as_text(problem.get('type'))}: {as_text(problem.get('message'))}"
    return plain
