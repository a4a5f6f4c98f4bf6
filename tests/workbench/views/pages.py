"""Every address of the web face, filled in from a world; the tests that hold for all pages loop over these."""

from tests.workbench.views.conftest import World


def list_pages(world: World) -> dict[str, str]:
    """The pages that are read, by name."""
    base, candidate = world.step.base_evaluation, world.step.candidate_evaluation
    assert base is not None
    assert candidate is not None
    result = base.results.order_by("pk")[0]
    imported = world.harness.imports.get().pk
    pair = f"comparison/?base={base.pk}&candidate={candidate.pk}"
    paths = {
        "board": "",
        "cases": "cases/",
        "case": f"cases/{world.case.pk}/",
        "case_counts": "cases/counts/?state=",
        "case_raw": f"cases/{world.case.pk}/raw/",
        "case_value": f"cases/{world.case.pk}/value/?path=/request",
        "case_curl": f"cases/{world.case.pk}/curl/",
        "cases_dataset": f"cases/dataset/?ids={world.case.pk}",
        "sources": "sources/",
        "source": "sources/production/",
        "imports": "imports/",
        "import_run": f"imports/{imported}/",
        "import_problems": f"imports/{imported}/problems.csv",
        "clusters": "clusters/",
        "cluster": f"clusters/{world.cluster.number}/",
        "cluster_map": "clusters/map/",
        "cluster_map_points": "clusters/map/points/",
        "unclustered": "clusters/unclustered/",
        "cluster_runs": "clusters/runs/",
        "cluster_runs_compare": "clusters/runs/compare/",
        "diagnoses_compare": f"clusters/{world.cluster.number}/diagnoses/compare/",
        "diagnosis_relabel": f"diagnoses/{world.diagnosis.pk}/relabel/",
        "exchanges": "exchanges/",
        "exchange": f"exchanges/{world.exchange.pk}/",
        "exchange_value": f"exchanges/{world.exchange.pk}/value/?path=/request",
        "exchange_raw": f"exchanges/{world.exchange.pk}/raw/",
        "proposals": "proposals/?state=all",
        "proposals_compare": f"proposals/compare/?first={world.proposal.pk}",
        "proposal": f"proposals/{world.proposal.pk}/",
        "proposal_pull_request": f"proposals/{world.proposal.pk}/pull-request/",
        "proposal_edit": f"proposals/{world.proposal.pk}/edit/?path=prompts/role.md",
        "proposal_comment": f"proposals/{world.proposal.pk}/comment/?path=prompts/role.md&side=new&line=1",
        "proposal_file": f"proposals/{world.proposal.pk}/file/?path=prompts/role.md",
        "proposal_alone": f"proposals/{world.proposal.pk}/alone/",
        "proposal_conflicts": f"proposals/{world.proposal.pk}/conflicts/",
        "steps": "steps/",
        "steps_conflicts": f"steps/conflicts/?proposals={world.step.proposals.get().pk}",
        "step": f"steps/{world.step.number}/",
        "step_file": f"steps/{world.step.number}/file/?path=prompts/role.md",
        "evaluations": "evaluations/",
        "evaluation": f"evaluations/{base.pk}/",
        "result": f"evaluations/{base.pk}/results/{result.pk}/",
        "result_value": f"evaluations/{base.pk}/results/{result.pk}/value/?path=/request",
        "result_trajectory": f"evaluations/{base.pk}/results/{result.pk}/trajectory/json/",
        "comparison": "comparison/",
        "comparison of two": pair,
        "comparison of a case": f"{pair}&case={result.case_id}",
        "releases": "releases/",
        "files": "files/",
        "file_history": "files/history/?path=harness.yaml",
        "history_file": "files/history/file/?commit=main&name=harness.yaml&path=harness.yaml",
        "events": "events/",
        "events_export": "events/export/?format=csv",
        "people": "people/",
    }
    installation = {"masking": "/masking/", "masking_rule": "/masking/rules/phone/"}
    return {name: world.url(path) for name, path in paths.items()} | installation


def list_actions(world: World) -> dict[str, str]:
    """The addresses that change something, by URL name."""
    base = world.step.base_evaluation
    assert base is not None
    imported = world.harness.imports.get().pk
    paths = {
        "case_bulk": "cases/bulk/",
        "case_bulk_undo": f"cases/bulk/{world.harness.bulk_actions.get().pk}/undo/",
        "view_save": "cases/views/save/",
        "view_delete": f"cases/views/{world.harness.views.get().pk}/delete/",
        "case_ignore": f"cases/{world.case.pk}/ignore/",
        "case_reopen": f"cases/{world.case.pk}/reopen/",
        "case_tags": f"cases/{world.case.pk}/tags/",
        "case_assign": f"cases/{world.case.pk}/assign/",
        "case_note": f"cases/{world.case.pk}/notes/",
        "cases_dataset_add": f"cases/dataset/add/?ids={world.case.pk}",
        "source_create": "sources/create/",
        "source_change": "sources/production/change/",
        "source_rotate": "sources/production/token/",
        "source_switch": "sources/production/switch/",
        "import_upload": "imports/upload/",
        "import_preview": f"imports/{imported}/preview/",
        "import_start": f"imports/{imported}/start/",
        "import_resume": f"imports/{imported}/resume/",
        "import_discard": f"imports/{imported}/discard/",
        "clusters_start": "clusters/start/",
        "cluster_create": "clusters/create/",
        "cluster_merge": f"clusters/{world.cluster.number}/merge/",
        "cluster_split": f"clusters/{world.cluster.number}/split/",
        "cluster_reopen": f"clusters/{world.cluster.number}/reopen/",
        "cluster_rename": f"clusters/{world.cluster.number}/rename/",
        "cluster_ignore": f"clusters/{world.cluster.number}/ignore/",
        "cluster_diagnose": f"clusters/{world.cluster.number}/diagnose/",
        "diagnosis_amend": f"diagnoses/{world.diagnosis.pk}/amend/",
        "diagnosis_draft": f"diagnoses/{world.diagnosis.pk}/draft/",
        "diagnosis_reject": f"diagnoses/{world.diagnosis.pk}/reject/",
        "diagnosis_handle": f"diagnoses/{world.diagnosis.pk}/handle/",
        "diagnosis_reopen": f"diagnoses/{world.diagnosis.pk}/reopen/",
        "proposal_approve": f"proposals/{world.proposal.pk}/approve/",
        "proposal_withdraw": f"proposals/{world.proposal.pk}/withdraw/",
        "proposal_request_changes": f"proposals/{world.proposal.pk}/request-changes/",
        "thread_reply": f"proposals/threads/{world.thread.pk}/reply/",
        "thread_resolve": f"proposals/threads/{world.thread.pk}/resolve/",
        "comment_edit": f"proposals/comments/{world.thread.comments.get().pk}/edit/",
        "proposal_edit_check": f"proposals/{world.proposal.pk}/edit/check/",
        "proposal_amend": f"proposals/{world.proposal.pk}/amend/",
        "proposal_reject": f"proposals/{world.proposal.pk}/reject/",
        "proposal_push": f"proposals/{world.proposal.pk}/push/",
        "proposal_fetch": f"proposals/{world.proposal.pk}/fetch/",
        "proposal_outside": f"proposals/{world.proposal.pk}/outside/",
        "proposal_evaluate": f"proposals/{world.proposal.pk}/evaluate/",
        "proposal_rebase": f"proposals/{world.proposal.pk}/rebase/",
        "step_start": "steps/start/",
        "step_evaluate": f"steps/{world.step.number}/evaluate/",
        "step_rebuild": f"steps/{world.step.number}/rebuild/",
        "step_decide": f"steps/{world.step.number}/decide/",
        "step_take_out": f"steps/{world.step.number}/take-out/{world.step.proposals.get().pk}/",
        "step_put_in": f"steps/{world.step.number}/put-in/{world.proposal.pk}/",
        "evaluation_start": "evaluations/start/",
        "evaluation_estimate": "evaluations/estimate/",
        "results_import": "evaluations/import/",
        "evaluation_rejudge": f"evaluations/{base.pk}/rejudge/",
        "evaluation_cancel": f"evaluations/{base.pk}/cancel/",
        "evaluation_resume": f"evaluations/{base.pk}/resume/",
        "evaluation_take_failures": f"evaluations/{base.pk}/take-failures/",
        "release_roll_back": "releases/1/roll-back/",
        "person_role": "people/role/",
        "review_policy": "people/review/",
    }
    installation = {
        "masking_try": "/masking/try/",
        "masking_save": "/masking/rules/phone/save/",
        "masking_switch": "/masking/rules/phone/switch/",
        "masking_restore": "/masking/rules/phone/restore/",
    }
    return {name: world.url(path) for name, path in paths.items()} | installation
