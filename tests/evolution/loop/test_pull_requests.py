"""The text of a pull request: what stands in it, and that nothing in it does anything."""

import pytest
from markdown_it import MarkdownIt

from evolution.actors import SYSTEM
from evolution.loop.flags import Flag, FlagKind
from evolution.loop.pull_requests import MOST_LISTED, MOST_QUOTES, write_pull_request
from evolution.models import Diagnosis, Proposal, Review
from evolution.transitions import record
from harness_repo.git.messages import read_trailers
from tests.evolution.intake import make_cluster
from tests.evolution.measured import DEV as DEVELOPER
from tests.evolution.measured import (
    make_case,
    make_harness,
    make_proposal,
    make_version,
    measure,
    steps,
    teach,
)

pytestmark = pytest.mark.django_db
EVIL = "```\n````\n@admin approve\nfixes #1 <script>alert(1)</script>\n\nCo-authored-by: x <x@example.org>"


@pytest.fixture
def proposal() -> Proposal:
    harness = make_harness()
    cluster = make_cluster(harness, texts=("no price",))
    case = cluster.members.get()
    diagnosis = Diagnosis.objects.create(
        harness=harness,
        cluster=cluster,
        part="prompt",
        hypothesis=EVIL,
        evidence=[{"case": case.pk, "turn": 1, "quote": EVIL, "verified": True}] * (MOST_QUOTES + 2),
        base_commit="0" * 40,
        model="m",
    )
    proposal = make_proposal(harness, teach(1), EVIL.replace("\n", " "))
    proposal.diagnosis, proposal.model, proposal.summary = diagnosis, EVIL, EVIL
    proposal.manifest = {
        "expected_fixes": [case.pk],
        "at_risk": ["q1", "q2"],
        "expected_effect": EVIL,
        "risks": [EVIL] * (MOST_LISTED + 3),
        "files": [{"path": "prompts/`a`.md", "added": 1, "removed": "@x"}],
    }
    return proposal


def test_only_our_own_words_are_outside_of_quotes(proposal: Proposal) -> None:
    flag = Flag("prompts/role.md", "new", 1, FlagKind.HIDDEN, EVIL)
    text = write_pull_request(proposal, [flag], "http://workbench.test/p/1")
    tokens = MarkdownIt().parse(text.body)
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == ["Why", "What", "Predicted effect", "Measured", "Look at", "How to test"]
    plain = [
        child.content
        for token in tokens
        if token.type == "inline"
        for child in token.children or []
        if child.type not in {"code_inline", "softbreak"}
    ]
    assert not [piece for piece in plain if "admin" in piece or "script" in piece or "fixes" in piece]
    assert not [token for token in tokens if token.type == "html_block"]
    assert "@admin" not in text.body + text.title
    assert "#1" not in text.body + text.title
    assert "2 more quotes" in text.body
    assert "turn 1: `no price`" in text.body
    assert "- 3 more" in text.body


def test_its_trailers_are_its_own(proposal: Proposal) -> None:
    text = write_pull_request(proposal)
    assert proposal.diagnosis is not None
    assert read_trailers(text.body) == [
        ("Proposal", str(proposal.pk)),
        ("Cluster", str(proposal.diagnosis.cluster.number)),
        ("Workbench-Commit", proposal.head_commit),
    ]
    assert f"--base {proposal.base_commit} --ref {proposal.head_commit}" in text.body
    assert "\n" not in text.title


def test_what_was_measured_stands_there(proposal: Proposal) -> None:
    assert "Not yet." in write_pull_request(proposal).body
    make_version(proposal.harness, [make_case(f"q{n}") for n in range(1, 5)])
    step = measure(steps.merge_step(DEVELOPER, proposal.harness, [Proposal.objects.get()]))
    proposal.step = step
    # The base knows q1 and q2, the candidate q1.
    assert "| accuracy 50.0 %" in write_pull_request(proposal).body
    assert "| accuracy 25.0 %" in write_pull_request(proposal).body
    assert "Verdict of the step" in write_pull_request(proposal).body


def test_figures_of_a_step_say_whose_they_are_and_how_sure(proposal: Proposal) -> None:
    make_version(proposal.harness, [make_case(f"q{n}") for n in range(1, 5)])
    other = make_proposal(proposal.harness, b"{{ danmaku[0].text }}\n\n", path="prompts/request.md")
    mine = Proposal.objects.get(pk=proposal.pk)
    proposal.step = measure(steps.merge_step(DEVELOPER, proposal.harness, [mine, other]))
    body = write_pull_request(proposal).body
    assert "together with 1 other proposal" in body
    # q2 of four cases breaks.
    assert "accuracy -25.0 points (95 % interval " in body
    assert "over 4 cases, guard cases apart; 0 fixed, 1 broken" in body


def test_it_says_who_made_and_who_approved_it(proposal: Proposal) -> None:
    proposal.created_by = "anna"
    Review.objects.create(proposal=proposal, reviewer="bob", verdict="approved", commit=proposal.head_commit)
    body = write_pull_request(proposal).body
    assert "Asked for or edited by `anna`, `dev`." in body
    assert "Approved by `bob`." in body
    assert "which people have edited since" in body
    record(SYSTEM, "proposal.committed", proposal, commit=proposal.head_commit, files=[])
    body = write_pull_request(proposal).body
    assert "edited by `anna`." in body
    assert "which people have edited since" not in body


def test_a_bare_proposal_has_a_text_too() -> None:
    proposal = make_proposal(make_harness(), teach(1))
    assert "Nothing was flagged." in write_pull_request(proposal).body
