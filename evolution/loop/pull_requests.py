"""Beside stage 4: a proposal as the text of a pull request, for teams that merge in their own repository.

All that a model or a user wrote is quoted so that it can do nothing on the other side: see `markdown_quotes`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evolution.actors import SYSTEM
from evolution.loop.figures import figures_of
from evolution.loop.flags import Flag
from evolution.loop.markdown_quotes import quote_block, quote_inline, title_line
from evolution.loop.reviews import approvals, find_authors, is_edited
from evolution.models import Diagnosis, Evaluation, FailureCase, Proposal, Verdict
from evolution.states import EvaluationState
from harness_repo.git.messages import message_with_trailers

# What a reader takes in; the proposal's page has all of it.
MOST_QUOTES = 5
MOST_LISTED = 20
LONGEST_TEXT = 4_000
LONGEST_TITLE = 200


@dataclass(frozen=True)
class PullRequest:
    """What is pasted into the forge."""

    title: str
    # Markdown
    body: str


def write_pull_request(proposal: Proposal, flags: Sequence[Flag] = (), address: str = "") -> PullRequest:
    """The proposal for reviewers elsewhere: why, what, what it should do, what was measured, what to look at.

    `address` is that of its page, for people who can open it.
    """
    parts = [
        *_write_opening(proposal, address),
        *_write_why(proposal.diagnosis),
        *_write_what(proposal),
        *_write_prediction(proposal.manifest),
        *_write_measured(proposal),
        *_write_flags(flags),
        *_write_test(proposal),
    ]
    trailers: dict[str, str | int] = {"Proposal": proposal.pk}
    if proposal.diagnosis is not None:
        trailers["Cluster"] = proposal.diagnosis.cluster.number
    trailers["Workbench-Commit"] = proposal.head_commit
    body = message_with_trailers("\n\n".join(part for part in parts if part), trailers)
    return PullRequest(title_line(proposal.title or str(proposal)), body)


def _write_opening(proposal: Proposal, address: str) -> Iterator[str]:
    if proposal.model:
        yield _("Drafted by %(model)s, looked at in Harness Workbench.") % {
            "model": quote_inline(proposal.model)
        }
    # Addresses are nobody's business elsewhere.
    people = sorted(name for name in find_authors(proposal) - {SYSTEM.name} if "@" not in name)
    if people:
        yield _("Asked for or edited by %(people)s.") % {"people": _list_names(people)}
    reviewers = sorted(review.reviewer for review in approvals(proposal))
    if reviewers:
        yield _("Approved by %(people)s.") % {"people": _list_names(reviewers)}
    if address:
        yield _("Its page: %(address)s") % {"address": f"<{address}>"}
    yield _(
        "Quoted texts were written by users and models. In them @ and # are full width and links are broken, so that "
        "they call nobody and close nothing."
    )


def _write_why(diagnosis: Diagnosis | None) -> Iterator[str]:
    if diagnosis is None:
        return
    yield _heading(_("Why"))
    yield quote_block(diagnosis.hypothesis, LONGEST_TEXT)
    quotes = [row for row in diagnosis.evidence if isinstance(row, dict) and row.get("quote")]
    asked = _read_titles(diagnosis, quotes[:MOST_QUOTES])
    for row in quotes[:MOST_QUOTES]:
        place = _("Case %(case)s, turn %(turn)s:") % {
            "case": _number(row.get("case")),
            "turn": _number(row.get("turn")),
        }
        title = asked.get(row.get("case"))
        about = f" {quote_inline(title, LONGEST_TITLE)}" if title else ""
        yield f"- {place}{about}\n\n{quote_block(str(row['quote']), indent='  ')}"
    if len(quotes) > MOST_QUOTES:
        left = len(quotes) - MOST_QUOTES
        yield ngettext("%(n)d more quote is on its page.", "%(n)d more quotes are on its page.", left) % {
            "n": left
        }


def _read_titles(diagnosis: Diagnosis, quotes: Sequence[dict[str, Any]]) -> dict[object, str]:
    """What was asked in the quoted cases, by their ids."""
    ids = [row["case"] for row in quotes if isinstance(row.get("case"), int)]
    cases = FailureCase.objects.filter(harness_id=diagnosis.harness_id, pk__in=ids)
    return dict(cases.values_list("pk", "title"))


def _write_what(proposal: Proposal) -> Iterator[str]:
    files = [row for row in proposal.manifest.get("files") or [] if isinstance(row, dict)]
    lines = [
        f"- {quote_inline(str(row.get('path', '')))} +{_number(row.get('added'))} −{_number(row.get('removed'))}"
        for row in files
    ]
    if proposal.summary or lines:
        yield _heading(_("What"))
    if proposal.summary:
        if is_edited(proposal):
            yield _("In the words of the draft, which people have edited since:")
        yield quote_block(proposal.summary, LONGEST_TEXT)
    yield "\n".join(_shorten(lines))


def _write_prediction(manifest: dict[str, Any]) -> Iterator[str]:
    yield _heading(_("Predicted effect"))
    if manifest.get("expected_effect"):
        yield quote_block(str(manifest["expected_effect"]), LONGEST_TEXT)
    fixes, at_risk = manifest.get("expected_fixes") or [], manifest.get("at_risk") or []
    yield _("Failures that it should mend: %(fixes)d. Cases that it puts at risk: %(risk)d.") % {
        "fixes": len(fixes),
        "risk": int(manifest.get("at_risk_total") or len(at_risk)),
    }
    risks = [f"- {quote_inline(str(risk), 500)}" for risk in manifest.get("risks") or []]
    if risks:
        yield "\n".join([_("Risks, as its author sees them:"), "", *_shorten(risks)])


def _write_measured(proposal: Proposal) -> Iterator[str]:
    yield _heading(_("Measured"))
    pairs = {_("alone"): (proposal.alone_base, proposal.alone_candidate)}
    if proposal.step is not None:
        pairs[_name_step(proposal)] = (proposal.step.base_evaluation, proposal.step.candidate_evaluation)
    ended = [
        (name, base, candidate)
        for name, (base, candidate) in pairs.items()
        if base is not None and candidate is not None and candidate.state == EvaluationState.FINISHED
    ]
    if not ended:
        yield _("Not yet.")
        return
    head = f"|  | {_('before')} | {_('after')} |"
    rows = [f"| {name} | {_figures(base)} | {_figures(candidate)} |" for name, base, candidate in ended]
    yield "\n".join([head, "|---|---|---|", *rows])
    yield "\n".join(f"- {name}: {told}" for name, *both in ended if (told := _write_difference(*both)))
    verdict = proposal.step.verdict if proposal.step else None
    if verdict is not None:
        yield _("Verdict of the step: %(verdict)s.") % {"verdict": verdict.get_outcome_display()}


def _name_step(proposal: Proposal) -> str:
    """The step, and how many other proposals its figures are of as well."""
    step = proposal.step
    others = step.merged.exclude(pk=proposal.pk).count() if step is not None else 0
    together = ngettext("together with %(n)d other proposal", "together with %(n)d other proposals", others)
    return f"{step} ({together % {'n': others}})" if others else str(step)


def _figures(evaluation: Evaluation) -> str:
    figures = figures_of([evaluation])[evaluation.pk]
    return _("accuracy %(accuracy)s, effectiveness %(effectiveness)s") % {
        "accuracy": _share(figures.accuracy),
        "effectiveness": _share(figures.effectiveness),
    }


def _write_difference(base: Evaluation, candidate: Evaluation) -> str:
    """What the verdict of the two says of accuracy; empty where there is none."""
    verdict = Verdict.objects.filter(base=base, candidate=candidate).first()
    metric = verdict.figures.get("metrics", {}).get("accuracy") if verdict is not None else None
    if verdict is None or not metric:
        return ""
    text = _(
        "accuracy %(delta)s points (%(level)s %% interval %(low)s to %(high)s) over %(cases)d cases, guard cases "
        "apart; %(fixed)d fixed, %(broken)d broken"
    )
    points = {name: f"{100 * metric[name]:+.1f}" for name in ("delta", "low", "high")}
    level = f"{100 * (1 - verdict.policy.get('alpha', 0.05)):g}"
    flips = {name: len(verdict.figures.get(name, [])) for name in ("fixed", "broken")}
    return text % {**points, **flips, "level": level, "cases": metric["cases"]}


def _write_flags(flags: Sequence[Flag]) -> Iterator[str]:
    yield _heading(_("Look at"))
    lines = [
        f"- {flag.kind.value.replace('_', ' ')}: {quote_inline(f'{flag.path}:{flag.line}')}"
        + (f" {quote_inline(flag.detail)}" if flag.detail else "")
        for flag in flags
    ]
    yield "\n".join(_shorten(lines)) or _("Nothing was flagged.")


def _write_test(proposal: Proposal) -> Iterator[str]:
    name = proposal.harness.name
    yield _heading(_("How to test"))
    command = f"python manage.py evaluate --harness {name} --base {proposal.base_commit} --ref {proposal.head_commit}"
    yield "\n".join(["```sh", f"{command} --wait", "```"])


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(map(quote_inline, names))


def _heading(text: str) -> str:
    return f"## {text}"


def _shorten(lines: list[str]) -> list[str]:
    left = len(lines) - MOST_LISTED
    if left <= 0:
        return lines
    return [*lines[:MOST_LISTED], "- " + ngettext("%(n)d more", "%(n)d more", left) % {"n": left}]


def _number(value: object) -> str:
    """Models wrote some of these; what is no number is not repeated."""
    return str(value) if isinstance(value, int) else "–"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
