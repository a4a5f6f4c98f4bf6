"""What the templates need beyond Django's own tags: icons, state pills, commits, times, figures and safe text."""

import json
import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from html import escape
from typing import Any

from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince
from django.utils.translation import get_language, get_language_info, gettext

from evolution.actors import Role
from evolution.durations import say_seconds
from evolution.loop.reasons import SMALLEST_P, WORDS, explain_reasons
from evolution.loop.recognition import Origin
from evolution.models import Evaluation
from evolution.states import CaseState, Split
from workbench import json_tree, rehearsal, text_marks, trajectories
from workbench.conflict_names import name_conflict
from workbench.error_names import name_budget, name_error, name_model_role
from workbench.event_names import name_deed, name_kind
from workbench.fault_names import explain_outside, name_fault, name_part
from workbench.flip_names import name_flip
from workbench.job_words import describe_job
from workbench.policy_words import explain_policy
from workbench.sparkline import render_sparkline

register = template.Library()

TONES = {
    "good": {
        "promoted",
        "promote",
        "released",
        "resolved",
        "accepted",
        "confirmed",
        "finished",
        "done",
        "fixed",
        "better",
    },
    "bad": {"failed", "reject", "regressed", "escalating", "broken", "worse", "error"},
    "warn": {"open", "drafted", "evaluated", "partial", "inconclusive", "new", "ready", "missing", "flaky"},
    "info": {"running", "evaluating", "drafting", "queued", "in_progress", "in_step", "diagnosed"},
}
TONE_OF = {state: tone for tone, states in TONES.items() for state in states}


@register.simple_tag
def icon(name: str) -> SafeString:
    """A decorative icon of the vendored sprite."""
    return _draw_icon(static("vendor/bootstrap-icons/icons.svg"), name)


@lru_cache(maxsize=256)
def _draw_icon(sprite: str, name: str) -> SafeString:
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', sprite, name)


@register.filter
def conflict_kind(kind: str) -> str:
    """How two sides of a merge clash over a file, in words."""
    return name_conflict(kind)


@register.simple_tag
def state_pill(record: Any, field: str = "state") -> SafeString:
    """The state of a record in words, with a colour that only repeats it."""
    label = getattr(record, f"get_{field}_display")()
    return pill(label, getattr(record, field))


@register.simple_tag
def pill(label: object, state: str = "") -> SafeString:
    """A word as a pill, in the tone of `state`."""
    return format_html('<span class="pill {}">{}</span>', TONE_OF.get(state, ""), label)


@register.simple_tag
def flip_pill(flip: str, count: int | None = None) -> SafeString:
    """A flip as a pill, with how many cases have it."""
    label = name_flip(flip)
    return pill(label if count is None else f"{label} {count}", flip)


@register.inclusion_tag("parts/commit.html")
def commit(sha: str, harness: Any = None) -> dict[str, Any]:
    """A commit, short, with its full name in the title; a link to its files when `harness` is given."""
    return {"sha": sha, "short": sha[:8], "harness": harness}


@register.simple_tag
def when(moment: datetime | None) -> SafeString | str:
    """How long ago, with the exact time in the title."""
    if moment is None:
        return "–"
    exact = f"{timezone.localtime(moment):%Y-%m-%d %H:%M:%S %Z}"
    ago = _say_ago(get_language() or "", int((timezone.now() - moment).total_seconds()) // 60)
    shown = f'<time datetime="{moment.isoformat()}" title="{exact}" class="nowrap">{escape(ago)}</time>'
    return mark_safe(shown)  # noqa: S308  times have no markup in them, and the words are escaped


@lru_cache(maxsize=4096)
def _say_ago(_language: str, minutes: int) -> str:
    """How long ago in the language in use; kept, as a list has the same times again and again."""
    if minutes < 1:
        return gettext("just now")
    now = timezone.now()
    return gettext("%(time)s ago") % {"time": timesince(now - timedelta(minutes=minutes), now, depth=1)}


@register.filter
def percent(share: Any) -> str:
    """A share of 0-1 in percent with one decimal, or a dash; what is not there is an empty text in a template."""
    return f"{100 * share:.1f}".replace("-", "−") if isinstance(share, int | float) else "–"


@register.filter
def figure(value: Any, digits: int = 2) -> str:
    """A number with some decimals, or a dash; anything else as it is."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return str(value) if isinstance(value, int) else f"{value:.{digits}f}"


@register.filter
def score(value: Any) -> str:
    """A score of 0-1 as short as it goes: 0, 0.5, 0.67, 1."""
    if value is None:
        return "–"
    return f"{round(value, 2):g}" if isinstance(value, int | float) else str(value)


@register.filter
def points(share: float | None) -> SafeString | str:
    """A difference of shares (0-1) in percentage points, with its sign; the colour only repeats it."""
    if share is None:
        return "–"
    tone = "up" if share > 0 else "down" if share < 0 else ""
    return format_html('<span class="delta {}">{}</span>', tone, signed(share))


@register.filter
def duration(seconds: Any) -> str:
    """A time in words, of its two largest units: 1 h 20 min, 45 s; less than a second in milliseconds; or a dash."""
    return say_seconds(seconds) if isinstance(seconds, int | float) else "–"


@register.filter
def milliseconds(value: Any) -> str:
    """The same of milliseconds."""
    return duration(value / 1000 if isinstance(value, int | float) else None)


@register.filter
def milliseconds_more(value: Any) -> str:
    """A difference of milliseconds in words, with its sign; or a dash."""
    if not isinstance(value, int | float):
        return "–"
    return ("+" if value > 0 else "−" if value < 0 else "") + milliseconds(abs(value))


@register.filter
def thousands(number: Any) -> str:
    """A count with its thousands set apart, so that long ones can be read."""
    return f"{number:,}".replace(",", "\u202f") if isinstance(number, int) else figure(number)


@register.filter
def more(number: int) -> str:
    """A difference of counts with its sign."""
    return ("+" if number > 0 else "−" if number < 0 else "±") + thousands(abs(number))


@register.filter
def money(amount: Any, currency: Any = "") -> str:
    """An amount, in MODEL_CURRENCY without another: two decimals, below 1 as many as three digits take; or a dash."""
    if not isinstance(amount, int | float | Decimal):
        return "–"
    value = float(amount)
    decimals = 2 if value == 0 or abs(value) >= 1 else min(2 - math.floor(math.log10(abs(value))), 8)
    text = f"{value:,.{decimals}f}".replace("-", "−")
    return f"{text} {currency or settings.MODEL_CURRENCY}".replace(",", "\u202f")


@register.filter
def coverage(share: float) -> str:
    """A share of 0-100 in whole percent, rounded down: what is missing is never rounded away."""
    return str(int(share))


@register.filter
def signed(share: float | None) -> str:
    """A difference of shares (0-1) in percentage points with its sign, without a colour."""
    if share is None:
        return "–"
    text = f"{100 * share:+.1f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text.replace("-", "−")


@register.filter
def p_value(p: float | None) -> str:
    """A p-value with three decimals; a smaller one as less than the smallest of these."""
    if p is None:
        return "–"
    return f"< {SMALLEST_P}" if p < SMALLEST_P else f"{p:.3f}"


@register.filter
def explain(reasons: Any) -> list[str]:
    """Stored reasons as sentences in the reader's language."""
    return explain_reasons(reasons)


register.filter("reveal", text_marks.reveal)
register.filter("spell", text_marks.spell)
register.filter("markdown", text_marks.render_markdown)
register.filter("pretty", trajectories.pretty)
register.filter("read_turns", trajectories.read_turns)
register.filter("keep_shown", trajectories.keep_shown)
register.filter("read_loose_calls", trajectories.read_loose_calls)
register.filter("read_runner", trajectories.read_runner)
register.filter("count_faults", trajectories.count_faults)
register.filter("describe_status", trajectories.describe_status)
register.filter("describe_end", trajectories.describe_end)
register.filter("error_name", name_error)
register.filter("budget_name", name_budget)
register.filter("model_role", name_model_role)
register.filter("kind_name", name_kind)
register.filter("deed_name", name_deed)
register.filter("fault_name", name_fault)
register.filter("part_name", name_part)
register.filter("explain_outside", explain_outside)
register.filter("describe_job", describe_job)
register.filter("explain_policy", explain_policy)
register.simple_tag(render_sparkline, name="sparkline")


@register.simple_tag
def value_tree(value: Any, address: str = "", *path: object) -> SafeString:
    """A JSON value, folded and cut; `address` has the whole of it at the JSON pointer that the path makes."""
    return json_tree.render_value(value, address, "".join(map(str, path)))


@register.simple_tag
def long_text(text: Any, address: str = "", *path: object) -> SafeString:
    """A text, cut where it is long; the rest as above."""
    return json_tree.render_text("" if text is None else text, address, "".join(map(str, path)))


@register.filter
def get(mapping: Any, key: Any) -> Any:
    """The value of a key, or nothing."""
    return mapping.get(key) if isinstance(mapping, dict) else None


@register.filter
def rows(value: Any) -> list[Any]:
    """A list as it is, anything else as an empty one: what was imported can have any shape."""
    return value if isinstance(value, list) else []


@register.filter
def is_rehearsal(model: str) -> bool:
    """Whether figures come from the rehearsal model, and say nothing about a real one."""
    return rehearsal.is_rehearsal(model)


@register.inclusion_tag("parts/rehearsed.html")
def rehearsed(*evaluations: Evaluation | None) -> dict[str, Any]:
    """The tag of figures that rest on the rehearsal model, with the parts that it played where others did not."""
    return {"cast": rehearsal.join_casts(evaluation for evaluation in evaluations if evaluation is not None)}


@register.inclusion_tag("parts/rehearsed.html")
def rehearsed_all(evaluations: Iterable[Evaluation]) -> dict[str, Any]:
    """The same of a list."""
    return {"cast": rehearsal.join_casts(evaluations)}


@register.simple_tag
def role_name(role: Role) -> str:
    """A role in the reader's language."""
    names = {
        Role.VIEWER: gettext("viewer"),
        Role.ANNOTATOR: gettext("annotator"),
        Role.DEVELOPER: gettext("developer"),
        Role.OPERATOR: gettext("operator"),
    }
    return names[role]


@register.simple_tag
def role_label(name: str) -> str:
    """A role in the reader's language, from its name."""
    return role_name(Role[name.upper()])


@register.filter
def metric_name(name: str) -> str:
    """A metric in the reader's language; what a source calls its own scores stays as it is."""
    return str(WORDS.get(name, name))


@register.filter
def outcome_name(outcome: str) -> str:
    """An outcome of evolution.queries.results in the reader's language."""
    names = {"errors": gettext("errors"), "failing": gettext("failing"), "passed": gettext("passed")}
    return names[outcome]


@register.filter
def case_state(state: str) -> str:
    """A state of failure cases in the reader's language."""
    return str(dict(CaseState.choices).get(state, state))


@register.filter
def origin_name(origin: str) -> str:
    """How a group of a clustering came to be the cluster that it is."""
    names = {
        Origin.MEMBERS: gettext("by members"),
        Origin.CENTROID: gettext("by likeness"),
        Origin.MERGED: gettext("by a merge"),
        Origin.PEOPLE: gettext("by people"),
        Origin.NEW: gettext("new"),
    }
    return names.get(Origin(origin), origin) if origin in set(Origin) else origin


@register.filter
def total_of(figures: Any) -> float | None:
    """The sum of figures by name; nothing without any."""
    return sum(figures.values()) if isinstance(figures, dict) and figures else None


@register.filter
def bulk_name(verb: str) -> str:
    """What was done to many cases at once."""
    return name_deed(f"bulkaction.{verb}")


@register.filter
def split_name(split: str) -> str:
    """A split of a dataset in the reader's language."""
    return str(dict(Split.choices).get(split, split))


@register.filter
def source_name(source: str) -> str:
    """Where a failure came from; only our own evaluations have a name to translate."""
    return gettext("evaluation") if source == "evaluation" else source


@register.simple_tag
def languages() -> list[tuple[str, str]]:
    """Code and own name of each language of the interface."""
    return [(code, get_language_info(code)["name_local"]) for code, _name in settings.LANGUAGES]


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], **changes: Any) -> str:
    """The query string of this page with some parameters changed; an empty value takes one away."""
    parameters = context["request"].GET.copy()
    for name, value in changes.items():
        if value in {None, ""}:
            parameters.pop(name, None)
        else:
            parameters[name] = str(value)
    return f"?{parameters.urlencode()}"


@register.filter
def compact(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False)
