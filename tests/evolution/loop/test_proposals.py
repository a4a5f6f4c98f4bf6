from typing import Any

import pytest

from evolution.actions.dataset_cases import Wanted, add_to_dataset
from evolution.actions.harnesses import ensure_starter
from evolution.actions.proposals import amend_proposal, redraft_proposal, start_draft
from evolution.errors import LoopError, StaleState
from evolution.loop import proposals
from evolution.loop.edits import EditRefused
from evolution.loop.repositories import open_repository
from evolution.models import (
    CaseResult,
    DatasetCase,
    Diagnosis,
    Evaluation,
    Exchange,
    Harness,
    Job,
    Proposal,
)
from evolution.prompts.fences import read_fenced
from evolution.states import ClusterState, DiagnosisState, EvaluationState, JobState, ProposalState
from harness_repo.git.objects import Author
from harness_repo.starters import starter_files
from tests.evolution.intake import SKILL, draft_answer, make_failure
from tests.evolution.loop.drafts import draft, make_diagnosis
from tests.evolution.measured import DEV, make_case, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return ensure_starter(DEV, "live_commerce")


@pytest.fixture
def diagnosis(harness: Harness) -> Diagnosis:
    return make_diagnosis(harness)


def test_a_draft_is_one_commit_of_the_model_on_its_own_branch(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    repository = open_repository(proposal.harness)
    commit = repository.log(proposal.branch)[0]
    assert proposal.branch == f"proposal/{proposal.pk}-coupon-first"
    assert (commit.sha, commit.parents) == (proposal.head_commit, (repository.resolve("main"),))
    assert (commit.author, commit.email) == ("rehearsal-editor", "rehearsal-editor@model.invalid")
    assert commit.message.splitlines()[-2:] == [f"Proposal: {proposal.pk}", "Cluster: 7"]
    assert repository.read_file(proposal.branch, SKILL).decode().endswith("- 报价前先查优惠券。\n")


def test_a_draft_waits_for_review(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.title) == (ProposalState.DRAFTED, "报价前查优惠券")
    diagnosis.refresh_from_db()
    assert diagnosis.state == DiagnosisState.ACCEPTED
    assert diagnosis.cluster.state == ClusterState.IN_PROGRESS


@pytest.mark.parametrize(
    "fields",
    [
        {"edits": [{"path": "README.md", "action": "create", "content": "x"}]},
        {"edits": [{"path": "skills/x/SKILL.md", "action": "create", "content": "no front matter"}]},
        {"edits": [{"path": "skills/absent/SKILL.md", "action": "append_line", "content": "x"}]},
        {"edits": [{"path": SKILL, "action": "append_line", "content": ""}]},
    ],
)
def test_a_draft_that_does_not_hold_makes_no_branch(diagnosis: Diagnosis, fields: dict[str, Any]) -> None:
    proposal = start_draft(DEV, diagnosis)
    with pytest.raises(EditRefused):
        draft(proposal, *[draft_answer(**fields)] * 2)
    assert list(open_repository(proposal.harness).branches()) == ["main"]


def test_a_failed_draft_says_why_and_can_be_tried_again(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    proposals.fail_draft(proposal, "the model is down")
    assert (proposal.state, proposal.reason) == (ProposalState.FAILED, "the model is down")
    again = start_draft(DEV, diagnosis)
    assert (again.pk, again.state) == (proposal.pk, ProposalState.DRAFTING)
    draft(again)
    assert Proposal.objects.get().reason == ""


def test_the_editor_is_not_shown_quotes_of_what_it_is_measured_on_unseen(diagnosis: Diagnosis) -> None:
    (case,) = diagnosis.cluster.members.all()
    diagnosis.first_wrong_turns = [{"case": case.pk, "turn": 1}]
    told = proposals.read_diagnosis(diagnosis)
    assert (len(told.evidence), len(told.first_wrong_turns)) == (1, 1)
    add_to_dataset(DEV, diagnosis.harness, [case], Wanted("cases", "guard"))
    told = proposals.read_diagnosis(diagnosis)
    assert (told.evidence, told.first_wrong_turns) == ([], [])


def test_feedback_makes_another_commit_on_top(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    first = proposal.head_commit
    amend_proposal(DEV, proposal, "请写得更短")
    model = draft(proposal, draft_answer(line="- 先查券。", slug="other"))
    assert "请写得更短" in model.asked[0]
    commits = open_repository(proposal.harness).log(proposal.branch)
    assert [commit.sha for commit in commits[:2]] == [proposal.head_commit, first]
    assert [(item["by"], item["commit"]) for item in proposal.feedback] == [("dev", proposal.head_commit)]


def test_a_redraft_is_shown_its_files_as_they_were_before_the_draft(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    assert "original" not in read_fenced(draft(proposal).asked[0])
    amend_proposal(DEV, proposal, "请写得更短")
    shown = read_fenced(draft(proposal, draft_answer(line="- 先查券。")).asked[0])
    assert shown["original"] == {SKILL: starter_files("live_commerce")[SKILL].decode()}
    assert shown["files"][SKILL] == shown["original"][SKILL] + "- 报价前先查优惠券。\n"


def test_a_draft_without_edits_says_that_there_is_nothing_to_change(diagnosis: Diagnosis) -> None:
    with pytest.raises(EditRefused, match="nothing to change in the harness for this diagnosis"):
        draft(start_draft(DEV, diagnosis), draft_answer(edits=[]))


def test_a_redraft_that_fails_leaves_the_earlier_version(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    first = proposal.head_commit
    amend_proposal(DEV, proposal, "改")
    with pytest.raises(LoopError):
        draft(proposal, *[draft_answer(edits=[{"path": "x", "action": "delete"}])] * 2)
    proposals.fail_draft(proposal, "no")
    assert (proposal.state, proposal.head_commit, proposal.reason) == (ProposalState.DRAFTED, first, "no")


def test_a_redraft_that_can_not_be_committed_leaves_the_words_and_predictions_of_the_earlier_version(
    diagnosis: Diagnosis,
) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    manifest = Proposal.objects.get().manifest
    repository = open_repository(proposal.harness)
    content = repository.read_file(proposal.branch, SKILL) + b"- by hand\n"
    proposals.commit_by_hand(DEV, proposal, {SKILL: content}, proposal.head_commit)
    amend_proposal(DEV, proposal, "改")
    with pytest.raises(StaleState) as refused:
        draft(proposal, draft_answer(title="never committed", risks=[]))
    proposals.fail_draft(proposal, str(refused.value))
    kept = Proposal.objects.get()
    assert (kept.title, kept.manifest) == ("报价前查优惠券", manifest)


def test_a_branch_that_somebody_else_moved_is_not_overwritten(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    repository = open_repository(proposal.harness)
    content = repository.read_file(proposal.branch, SKILL) + b"- by hand\n"
    head = proposals.commit_by_hand(DEV, proposal, {SKILL: content}, proposal.head_commit)
    amend_proposal(DEV, proposal, "改")
    with pytest.raises(StaleState):
        draft(proposal)
    assert repository.resolve(proposal.branch) == head


def test_the_editor_follows_what_people_amended(diagnosis: Diagnosis) -> None:
    diagnosis.hypothesis, diagnosis.changes = "人改过的假设", ["人改过的变更"]
    diagnosis.save()
    asked = draft(start_draft(DEV, diagnosis)).asked[0]
    assert "人改过的假设" in asked
    assert "技能没有要求查优惠券" not in asked


def test_the_manifest_predicts_fixes_and_risks(diagnosis: Diagnosis) -> None:
    harness = diagnosis.harness
    version = make_version(
        harness, [make_case(key) for key in ("fixes", "risk", "other", "bad")] + [make_case("g", "guard")]
    )
    cases = {case.key: case for case in DatasetCase.objects.all()}
    made = make_failure(harness, cluster=diagnosis.cluster, dataset_case=cases["fixes"])
    evaluation = Evaluation.objects.create(
        harness=harness,
        dataset_version=version,
        commit=open_repository(harness).resolve("main"),
        state=EvaluationState.FINISHED,
    )
    touched = SKILL.split("/")[1]
    loaded = {"fixes": touched, "risk": touched, "other": "another", "bad": touched, "g": touched}
    for key, skill in loaded.items():
        right = key not in {"fixes", "bad"}
        CaseResult.objects.create(
            evaluation=evaluation,
            case=cases[key],
            accuracy=right,
            effectiveness=right,
            trajectory={"skills_loaded": [skill]},
        )
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    manifest = proposal.manifest
    assert (manifest["expected_fixes"][-1], manifest["expected_keys"]) == (made.pk, ["fixes"])
    assert (manifest["at_risk"], manifest["at_risk_total"]) == (["risk"], 1)
    assert manifest["risks"] == ["多一次调用"]


def test_a_changed_prompt_puts_every_passing_case_at_risk(diagnosis: Diagnosis) -> None:
    harness = diagnosis.harness
    version = make_version(harness, [make_case(f"q{number:02}") for number in range(60)])
    evaluation = Evaluation.objects.create(
        harness=harness,
        dataset_version=version,
        commit=open_repository(harness).resolve("main"),
        state=EvaluationState.FINISHED,
    )
    for case in DatasetCase.objects.all():
        CaseResult.objects.create(evaluation=evaluation, case=case, accuracy=1, effectiveness=1)
    proposal = start_draft(DEV, diagnosis)
    draft(proposal, draft_answer("prompts/constraints.md"))
    assert (len(proposal.manifest["at_risk"]), proposal.manifest["at_risk_total"]) == (60, 60)


def test_what_models_were_shown_is_kept_with_the_proposal(diagnosis: Diagnosis) -> None:
    shown = {"cases": [], "keys": ["seen"], "cut": []}
    diagnosis.exchange = Exchange.objects.create(harness=diagnosis.harness, purpose="diagnosis", shown=shown)
    diagnosis.save()
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    assert Proposal.objects.get().shown_keys == ["seen"]
    asked = proposal.exchanges.get()
    assert (asked.purpose, asked.model, asked.cluster) == ("draft", "rehearsal-editor", diagnosis.cluster)


def test_a_rename_is_one_commit_that_keeps_the_harness_whole(diagnosis: Diagnosis) -> None:
    folder = SKILL.rsplit("/", 1)[0]
    name = folder.rsplit("/", 1)[1]
    blocks = [{"search": f"name: {name}\n", "replace": "name: renamed\n"}]
    edits = [
        {"path": folder, "action": "rename", "new_path": "skills/renamed"},
        {"path": "skills/renamed/SKILL.md", "action": "search_replace", "blocks": blocks},
    ]
    proposal = start_draft(DEV, diagnosis)
    draft(proposal, draft_answer(edits=edits))
    repository = open_repository(proposal.harness)
    assert repository.changed_files(proposal.base_commit, proposal.head_commit) == [
        SKILL,
        "skills/renamed/SKILL.md",
    ]
    assert "rename from" in repository.diff(proposal.base_commit, proposal.head_commit)


def test_a_renamed_skill_that_something_still_names_is_refused(diagnosis: Diagnosis) -> None:
    hook = {"kind": "requires_skill", "skills": [SKILL.split("/")[1]]}
    advance_main(
        diagnosis, {"hooks/x.yaml": f"name: x\nevent: reply\ncheck: {hook}\non_fail: warn\n".encode()}
    )
    rename = {"path": SKILL.rsplit("/", 1)[0], "action": "rename", "new_path": "skills/renamed"}
    proposal = start_draft(DEV, diagnosis)
    with pytest.raises(EditRefused, match="add problems"):
        draft(proposal, *[draft_answer(edits=[rename])] * 2)


def advance_main(diagnosis: Diagnosis, edits: dict[str, bytes | None]) -> str:
    """What somebody else released meanwhile."""
    repository = open_repository(diagnosis.harness)
    main = repository.resolve("main")
    return repository.commit("main", edits, parent=main, author=Author("x", "x@y"), message="released")


def test_a_draft_made_anew_stands_on_what_is_live_and_goes_on_from_its_branch(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    old = proposal.head_commit
    live = advance_main(diagnosis, {SKILL: starter_files("live_commerce")[SKILL] + "- 别的规则\n".encode()})
    redraft_proposal(DEV, proposal, "放在最后")
    shown = read_fenced(draft(proposal).asked[0])
    assert "+- 报价前先查优惠券。" in shown["lost"]
    assert (shown["feedback"], shown["files"][SKILL].splitlines()[-1]) == ("放在最后", "- 别的规则")
    stored, repository = Proposal.objects.get(), open_repository(proposal.harness)
    assert (stored.base_commit, stored.state) == (live, ProposalState.DRAFTED)
    assert repository.log(stored.branch)[0].parents == (old, live)
    assert repository.read_file(stored.branch, SKILL).decode().splitlines()[-2:] == [
        "- 别的规则",
        "- 报价前先查优惠券。",
    ]
    assert stored.feedback[0]["commit"] == stored.head_commit


def test_a_draft_made_anew_after_a_crash_takes_the_commit_that_is_there(
    diagnosis: Diagnosis, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    live = advance_main(diagnosis, {"prompts/faq.md": None, "harness.yaml": without_faq()})
    redraft_proposal(DEV, proposal)

    def crash(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(proposals, "_record_draft", crash)
        with pytest.raises(KeyboardInterrupt):
            draft(proposal)
    again = Proposal.objects.get()
    assert draft(again).asked == []
    assert (again.state, again.base_commit) == (ProposalState.DRAFTED, live)


def test_a_draft_made_anew_that_fails_leaves_the_old_one_on_its_base(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    before = (proposal.base_commit, proposal.head_commit)
    advance_main(diagnosis, {"prompts/faq.md": None, "harness.yaml": without_faq()})
    redraft_proposal(DEV, proposal)
    proposals.fail_draft(proposal, "no")
    stored = Proposal.objects.get()
    assert (stored.base_commit, stored.head_commit, stored.reason) == (*before, "no")
    assert proposals.new_base(stored) == stored.base_commit


def without_faq() -> bytes:
    config = starter_files("live_commerce")["harness.yaml"]
    return config.replace(b"  - {name: faq, file: prompts/faq.md}\n", b"")


def test_a_persons_text_has_the_line_ends_of_the_file(diagnosis: Diagnosis) -> None:
    windows = starter_files("live_commerce")[SKILL].replace(b"\n", b"\r\n")
    advance_main(diagnosis, {SKILL: windows})
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    repository = open_repository(proposal.harness)
    text = repository.read_file(proposal.branch, SKILL).replace(b"\r\n", b"\n") + b"- by hand\n"
    proposals.commit_by_hand(DEV, proposal, {SKILL: text}, proposal.head_commit)
    data = repository.read_file(proposal.branch, SKILL)
    assert data.count(b"\n") == data.count(b"\r\n")


def test_a_draft_whose_job_is_over_does_not_wait_for_ever(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    Job.objects.update(state=JobState.DONE, message="done")
    proposals.fail_abandoned_drafts()
    proposal.refresh_from_db()
    assert proposal.state == ProposalState.FAILED
