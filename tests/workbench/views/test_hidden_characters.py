"""What models and people wrote is shown with its hidden characters spelled out, wherever a page puts it."""

import re

from django.test import Client
from django.utils import timezone

from evolution.models import (
    CaseResult,
    Cluster,
    DatasetCase,
    Diagnosis,
    Evaluation,
    Event,
    FailureCase,
    Proposal,
    Release,
    Review,
    ReviewComment,
    ReviewThread,
    Step,
)
from tests.workbench.views.conftest import World
from tests.workbench.views.pages import list_pages

ODD = "a\u202eb"
# What the browser sends back has to stay what it was.
KEPT = re.compile(r'(value|href)="[^"]*"|<textarea.*?</textarea>', re.DOTALL)
TRAJECTORY = {
    "status": ODD,
    "messages": [{"role": ODD, "content": ODD}, {"role": "assistant", "content": ODD}],
    "hooks": [{"turn": 1, "hook": ODD, "outcome": ODD, "event": ODD, "message": ODD}],
    "skills_loaded": [ODD],
}


def write_odd_texts(world: World) -> None:
    finding = {"kind": ODD, "text": ODD}
    said = {"trajectory": TRAJECTORY, "findings": [finding], "reply": ODD}
    named = {"title": ODD, "symptom": ODD, "category": ODD, "source": ODD, "source_id": ODD}
    FailureCase.objects.filter(pk=world.case.pk).update(**said, **named, scores={ODD: ODD})
    CaseResult.objects.update(**said, judge_trajectory=TRAJECTORY, reasons={"accuracy": ODD}, accuracy=0)
    DatasetCase.objects.update(category=ODD)
    Cluster.objects.update(name=ODD, description=ODD)
    Diagnosis.objects.update(
        hypothesis=ODD, changes=[ODD], path=ODD, refuted_by=ODD, model=ODD, amended_by=ODD
    )
    feedback = [{"by": ODD, "text": ODD}]
    Proposal.objects.update(title=ODD, summary=ODD, model=ODD, reason=ODD, decided_by=ODD, feedback=feedback)
    Evaluation.objects.update(model=ODD, judge_model=ODD, created_by=ODD)
    ReviewThread.objects.update(line_text=ODD, path=ODD, resolved_by=ODD, resolved_at=timezone.now())
    ReviewComment.objects.update(text=ODD, author=ODD)
    given = {"verdict": "approved", "commit": world.proposal.head_commit, "diff_digest": "0" * 64}
    Review.objects.create(proposal=world.proposal, reviewer=ODD, text=ODD, **given)
    Step.objects.update(created_by=ODD)
    Release.objects.update(actor=ODD, reason=ODD)
    Event.objects.create(actor=ODD, verb=ODD, target_kind="step", target_id=1, harness_id=world.harness.pk)


def test_no_page_shows_one_as_it_is(world: World, operator: Client) -> None:
    write_odd_texts(world)

    # What is downloaded is the text as it was written.
    pages = {name: address for name, address in list_pages(world).items() if name != "events_export"}
    for name, address in pages.items():
        html = KEPT.sub("", operator.get(address).getvalue().decode())
        assert "\u202e" not in html, (name, re.findall(".{80}\u202e.{20}", html))
