import pytest
import yaml

from evolution.loop.authors import author_of
from evolution.loop.manifest import build_manifest
from evolution.loop.repositories import open_repository
from evolution.models import Proposal
from tests.evolution.intake import make_cluster
from tests.evolution.measured import DEV, make_evaluation, make_harness, make_proposal, run, teach

pytestmark = pytest.mark.django_db


def test_a_manifest_says_what_the_branch_changes_of_its_base() -> None:
    harness = make_harness(role=b"knows: q1 q2\n- Never guess.\n")
    run(make_evaluation(harness))
    proposal = make_proposal(harness, b"knows: q1\n- Never guess a price.\n- Greet.\n")

    manifest = build_manifest(proposal, proposal.head_commit, "better", ["worse"])

    assert (manifest["expected_effect"], manifest["risks"]) == ("better", ["worse"])
    assert manifest["rules"]["totals"] == {"added": 1, "removed": 0, "changed": 1}
    assert manifest["rules"]["added"][0] | {"name": ""} == {
        "path": "prompts/role.md",
        "line": 3,
        "text": "Greet.",
        "kind": "rule",
        "name": "",
        "condition": "",
    }
    assert manifest["rules"]["changed"][0]["old"]["text"] == "Never guess."
    before, after = manifest["growth"]["always"]
    assert after > before
    assert manifest["files"] == [
        {"path": "prompts/role.md", "old_path": None, "status": "modified", "added": 3, "removed": 2}
    ]
    assert (manifest["at_risk"], manifest["at_risk_total"]) == (["q1", "q2"], 2)
    assert manifest["measured_on"] == harness.evaluations.get().pk


def test_the_rules_of_a_section_that_is_taken_out_are_removed() -> None:
    harness = make_harness(role=b"knows: q1\n- Never guess.\n")
    proposal = make_proposal(harness, teach(1))
    repository = open_repository(harness)
    config = yaml.safe_load(repository.files(proposal.base_commit)["harness.yaml"])
    listed = [entry for entry in config["prompt"] if entry["file"] != "prompts/role.md"]
    data = yaml.safe_dump({**config, "prompt": listed}).encode()
    head = repository.commit(
        "cut", {"harness.yaml": data}, parent=proposal.base_commit, author=author_of(DEV), message="cut"
    )

    manifest = build_manifest(proposal, head, "", [])

    assert manifest["rules"]["totals"] == {"added": 0, "removed": 1, "changed": 0}


def test_where_nothing_is_measured_the_manifest_says_so() -> None:
    proposal = make_proposal(make_harness(), teach(1))

    manifest = build_manifest(proposal, proposal.head_commit, "", [])

    assert (manifest["measured_on"], manifest["at_risk"], manifest["at_risk_total"]) == (None, [], 0)


def test_without_a_diagnosis_nothing_is_expected_to_be_fixed() -> None:
    harness = make_harness()
    make_cluster(harness, texts=("no price",))
    proposal: Proposal = make_proposal(harness, teach(1))

    manifest = build_manifest(proposal, proposal.head_commit, "", [])

    assert (manifest["evidence"], manifest["expected_fixes"], manifest["expected_keys"]) == ([], [], [])
