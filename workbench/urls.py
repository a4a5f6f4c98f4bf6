"""Every page and button of the web face. Clusters, steps and releases go by their number, the rest by primary key."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path, register_converter
from django.urls.converters import StringConverter
from django.views.i18n import set_language

from workbench.api.face import api_urls
from workbench.api.health import healthz
from workbench.api.traces import traces
from workbench.views import (
    board,
    branches,
    case_bulk,
    case_dataset,
    case_page,
    cases,
    cluster_map,
    cluster_page,
    cluster_runs,
    clusters,
    compared_drafts,
    comparison,
    conflicts,
    diagnoses,
    diff_files,
    evaluation_page,
    evaluations,
    events,
    exchanges,
    file_history,
    files,
    imported_results,
    imports,
    masking,
    people,
    proposal_edit,
    proposal_evaluation,
    proposals,
    releases,
    results,
    reviews,
    saved_views,
    sign_in,
    sources,
    steps,
)

Routes = list[URLPattern | URLResolver]


class SourceNameConverter(StringConverter):
    """Names of sources, in any script."""

    regex = r"[\w-]{1,64}"


register_converter(SourceNameConverter, "source_name")

case_urls: Routes = [
    path("", cases.case_list, name="cases"),
    path("counts/", cases.case_counts, name="case_counts"),
    path("bulk/", case_bulk.case_bulk, name="case_bulk"),
    path("bulk/<int:pk>/undo/", case_bulk.undo, name="case_bulk_undo"),
    path("views/save/", saved_views.save, name="view_save"),
    path("views/<int:pk>/delete/", saved_views.delete, name="view_delete"),
    path("dataset/", case_dataset.cases_dataset, name="cases_dataset"),
    path("dataset/add/", case_dataset.add, name="cases_dataset_add"),
    path("<int:pk>/", case_page.case_page, name="case"),
    path("<int:pk>/raw/", case_page.case_raw, name="case_raw"),
    path("<int:pk>/value/", case_page.case_value, name="case_value"),
    path("<int:pk>/curl/", case_page.case_curl, name="case_curl"),
    path("<int:pk>/ignore/", case_page.ignore, name="case_ignore"),
    path("<int:pk>/reopen/", case_page.reopen, name="case_reopen"),
    path("<int:pk>/tags/", case_page.tag, name="case_tags"),
    path("<int:pk>/assign/", case_page.assign, name="case_assign"),
    path("<int:pk>/notes/", case_page.note, name="case_note"),
]

cluster_urls: Routes = [
    path("", clusters.cluster_list, name="clusters"),
    path("start/", clusters.start, name="clusters_start"),
    path("create/", clusters.create, name="cluster_create"),
    path("map/", cluster_map.map_page, name="cluster_map"),
    path("map/points/", cluster_map.map_points, name="cluster_map_points"),
    path("unclustered/", clusters.unclustered, name="unclustered"),
    path("runs/", cluster_runs.run_list, name="cluster_runs"),
    path("runs/compare/", cluster_runs.compare, name="cluster_runs_compare"),
    path("<int:number>/", cluster_page.cluster_page, name="cluster"),
    path("<int:number>/merge/", clusters.merge, name="cluster_merge"),
    path("<int:number>/split/", clusters.split, name="cluster_split"),
    path("<int:number>/reopen/", clusters.reopen, name="cluster_reopen"),
    path("<int:number>/rename/", clusters.rename, name="cluster_rename"),
    path("<int:number>/ignore/", clusters.ignore, name="cluster_ignore"),
    path("<int:number>/diagnose/", clusters.diagnose, name="cluster_diagnose"),
    path("<int:number>/diagnoses/compare/", diagnoses.compare, name="diagnoses_compare"),
]

diagnosis_urls: Routes = [
    path("<int:pk>/amend/", diagnoses.amend, name="diagnosis_amend"),
    path("<int:pk>/draft/", diagnoses.draft, name="diagnosis_draft"),
    path("<int:pk>/reject/", diagnoses.reject, name="diagnosis_reject"),
    path("<int:pk>/handle/", diagnoses.handle, name="diagnosis_handle"),
    path("<int:pk>/reopen/", diagnoses.reopen, name="diagnosis_reopen"),
    path("<int:pk>/relabel/", diagnoses.relabel, name="diagnosis_relabel"),
]

exchange_urls: Routes = [
    path("", exchanges.exchange_list, name="exchanges"),
    path("<int:pk>/", exchanges.exchange_page, name="exchange"),
    path("<int:pk>/value/", exchanges.exchange_value, name="exchange_value"),
    path("<int:pk>/raw/", exchanges.exchange_raw, name="exchange_raw"),
]

proposal_urls: Routes = [
    path("", proposals.proposal_list, name="proposals"),
    path("compare/", compared_drafts.compare, name="proposals_compare"),
    path("<int:pk>/", proposals.proposal_page, name="proposal"),
    path("<int:pk>/approve/", reviews.approve, name="proposal_approve"),
    path("<int:pk>/withdraw/", reviews.withdraw, name="proposal_withdraw"),
    path("<int:pk>/request-changes/", reviews.request_changes, name="proposal_request_changes"),
    path("<int:pk>/comment/", reviews.comment, name="proposal_comment"),
    path("threads/<int:pk>/reply/", reviews.reply, name="thread_reply"),
    path("threads/<int:pk>/resolve/", reviews.resolve, name="thread_resolve"),
    path("comments/<int:pk>/edit/", reviews.change_comment, name="comment_edit"),
    path("<int:pk>/amend/", proposals.amend, name="proposal_amend"),
    path("<int:pk>/edit/", proposal_edit.edit, name="proposal_edit"),
    path("<int:pk>/edit/check/", proposal_edit.check, name="proposal_edit_check"),
    path("<int:pk>/reject/", proposals.reject, name="proposal_reject"),
    path("<int:pk>/push/", branches.push, name="proposal_push"),
    path("<int:pk>/fetch/", branches.fetch, name="proposal_fetch"),
    path("<int:pk>/outside/", branches.decide, name="proposal_outside"),
    path("<int:pk>/pull-request/", branches.pull_request, name="proposal_pull_request"),
    path("<int:pk>/file/", diff_files.proposal_file, name="proposal_file"),
    path("<int:pk>/conflicts/", conflicts.proposal_conflicts, name="proposal_conflicts"),
    path("<int:pk>/rebase/", conflicts.rebase, name="proposal_rebase"),
    path("<int:pk>/evaluate/", proposal_evaluation.evaluate, name="proposal_evaluate"),
    path("<int:pk>/alone/", proposal_evaluation.alone_page, name="proposal_alone"),
]

step_urls: Routes = [
    path("", steps.step_list, name="steps"),
    path("start/", steps.start, name="step_start"),
    path("<int:number>/", steps.step_page, name="step"),
    path("<int:number>/evaluate/", steps.evaluate, name="step_evaluate"),
    path("<int:number>/rebuild/", steps.rebuild, name="step_rebuild"),
    path("<int:number>/decide/", steps.decide, name="step_decide"),
    path("<int:number>/file/", diff_files.step_file, name="step_file"),
    path("<int:number>/take-out/<int:pk>/", steps.take_out, name="step_take_out"),
    path("<int:number>/put-in/<int:pk>/", steps.put_in, name="step_put_in"),
    path("conflicts/", conflicts.step_conflicts, name="steps_conflicts"),
]

evaluation_urls: Routes = [
    path("", evaluations.evaluation_list, name="evaluations"),
    path("start/", evaluations.start, name="evaluation_start"),
    path("import/", imported_results.upload, name="results_import"),
    path("estimate/", evaluations.estimate, name="evaluation_estimate"),
    path("<int:pk>/", evaluation_page.evaluation_page, name="evaluation"),
    path("<int:pk>/cancel/", evaluations.cancel, name="evaluation_cancel"),
    path("<int:pk>/resume/", evaluations.resume, name="evaluation_resume"),
    path("<int:pk>/rejudge/", evaluations.rejudge, name="evaluation_rejudge"),
    path("<int:pk>/take-failures/", evaluations.take_failures, name="evaluation_take_failures"),
    path("<int:pk>/results/<int:result>/", results.result_page, name="result"),
    path("<int:pk>/results/<int:result>/value/", results.result_value, name="result_value"),
    path(
        "<int:pk>/results/<int:result>/trajectory/<slug:format_name>/",
        results.result_trajectory,
        name="result_trajectory",
    ),
]

import_urls: Routes = [
    path("", imports.import_list, name="imports"),
    path("upload/", imports.upload, name="import_upload"),
    path("<int:pk>/", imports.import_page, name="import_run"),
    path("<int:pk>/preview/", imports.preview, name="import_preview"),
    path("<int:pk>/start/", imports.start, name="import_start"),
    path("<int:pk>/resume/", imports.resume, name="import_resume"),
    path("<int:pk>/discard/", imports.discard, name="import_discard"),
    path("<int:pk>/problems.csv", imports.problems, name="import_problems"),
]

source_urls: Routes = [
    path("", sources.source_list, name="sources"),
    path("create/", sources.create, name="source_create"),
    path("<source_name:name>/", sources.source_page, name="source"),
    path("<source_name:name>/change/", sources.change, name="source_change"),
    path("<source_name:name>/token/", sources.rotate, name="source_rotate"),
    path("<source_name:name>/switch/", sources.switch, name="source_switch"),
]

masking_urls: Routes = [
    path("", masking.masking, name="masking"),
    path("try/", masking.try_text, name="masking_try"),
    path("rules/<slug:name>/", masking.masking_rule, name="masking_rule"),
    path("rules/<slug:name>/save/", masking.save, name="masking_save"),
    path("rules/<slug:name>/switch/", masking.switch, name="masking_switch"),
    path("rules/<slug:name>/restore/", masking.restore, name="masking_restore"),
]

harness_urls: Routes = [
    path("", board.board, name="board"),
    path("cases/", include(case_urls)),
    path("sources/", include(source_urls)),
    path("clusters/", include(cluster_urls)),
    path("imports/", include(import_urls)),
    path("diagnoses/", include(diagnosis_urls)),
    path("exchanges/", include(exchange_urls)),
    path("proposals/", include(proposal_urls)),
    path("steps/", include(step_urls)),
    path("evaluations/", include(evaluation_urls)),
    path("comparison/", comparison.comparison, name="comparison"),
    path("releases/", releases.release_list, name="releases"),
    path("releases/<int:number>/roll-back/", releases.roll_back, name="release_roll_back"),
    path("files/", files.harness_files, name="files"),
    path("files/history/", file_history.file_history, name="file_history"),
    path("files/history/file/", file_history.history_file, name="history_file"),
    path("events/", events.event_list, name="events"),
    path("events/export/", events.export, name="events_export"),
    path("people/", people.people, name="people"),
    path("people/role/", people.set_role, name="person_role"),
    path("people/review/", people.set_review_policy, name="review_policy"),
]

urlpatterns: Routes = [
    path("", board.home, name="home"),
    path("healthz", healthz, name="healthz"),
    path("api/", api_urls()),
    path("v1/traces", traces, name="otlp_traces"),
    path("accounts/login/", sign_in.SignInView.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("language/", set_language, name="set_language"),
    path("admin/", admin.site.urls),
    path("masking/", include(masking_urls)),
    path("h/<slug:harness>/", include(harness_urls)),
]
