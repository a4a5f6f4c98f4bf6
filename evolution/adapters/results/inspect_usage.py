"""Tokens and times of Inspect's model events: those of the evaluated model, and those of the models that grade."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from evolution.adapters.formats.shapes import as_dict, as_list, as_text
from evolution.adapters.results.numbers import read_count, read_ms
from harness_repo.runtime.trajectory import CallRecord


class Tokens(NamedTuple):
    """Tokens of some calls; `cached_tokens` is the part of the prompt that the provider had cached."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def plus(self, other: "Tokens") -> "Tokens":
        """Both together."""
        return Tokens(*(mine + its for mine, its in zip(self, other, strict=True)))


def read_tokens(usage: Mapping[str, Any]) -> Tokens:
    """A ModelUsage. Providers count cached and reasoning tokens in or beside; the total says which."""
    sent, received = read_count(usage.get("input_tokens")), read_count(usage.get("output_tokens"))
    cached = read_count(usage.get("input_tokens_cache_read"))
    beside = cached + read_count(usage.get("input_tokens_cache_write"))
    total = read_count(usage.get("total_tokens"))
    prompt = sent + (beside if total >= sent + received + beside else 0)
    return Tokens(prompt, max(received, total - prompt), min(cached, prompt))


def split_usage(by_model: Mapping[str, Any], model: str) -> tuple[Tokens, Tokens]:
    """What the evaluated model used in a sample, and what all others did."""
    mine, others = Tokens(), Tokens()
    for name, usage in by_model.items():
        if name == model:
            mine = mine.plus(read_tokens(as_dict(usage)))
        else:
            others = others.plus(read_tokens(as_dict(usage)))
    return mine, others


def reduce_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """A model event with what is read of it: not what was sent and answered, which the messages have too."""
    output = as_dict(event.get("output"))
    reduced = {name: output[name] for name in ("usage", "time", "model") if name in output}
    stops = [
        {"stop_reason": as_dict(choice).get("stop_reason")} for choice in as_list(output.get("choices"))[:1]
    ]
    return {
        **{name: event[name] for name in ("event", "model", "working_time") if name in event},
        "error": bool(event.get("error")),
        "output": {**reduced, "choices": stops},
    }


def read_calls(events: Iterable[Any], model: str) -> list[CallRecord]:
    """The calls of the evaluated model, in order."""
    made = [event for event in events if isinstance(event, dict) and event.get("event") == "model"]
    mine = [event for event in made if event.get("model") == model and not event.get("error")]
    return [_call(event, turn) for turn, event in enumerate(mine, 1)]


def _call(event: Mapping[str, Any], turn: int) -> CallRecord:
    output = as_dict(event.get("output"))
    tokens = read_tokens(as_dict(output.get("usage")))
    choices = as_list(output.get("choices"))
    return CallRecord(
        turn,
        read_ms(output.get("time"), 1000) or read_ms(event.get("working_time"), 1000),
        tokens.prompt_tokens,
        tokens.completion_tokens,
        as_text(output.get("model")),
        tokens.cached_tokens,
        as_text(as_dict(choices[0]).get("stop_reason")) if choices else "",
    )
