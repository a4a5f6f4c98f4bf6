"""Every page and button of the web face. Clusters, steps and releases go by their number, the rest by primary key."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path
from django.views.i18n import set_language

from workbench.api.health import healthz
from workbench.views import (
    board,
    cases,
    clusters,
    comparison,
    diagnoses,
    evaluation_page,
    evaluations,
    events,
    file_history,
    files,
    imported_results,
    proposals,
    releases,
    results,
    sign_in,
    steps,
)

Routes = list[URLPattern | URLResolver]

case_urls: Routes = [
    path("", cases.case_list, name="cases"),
    path("import/", cases.import_cases, name="cases_import"),
    path("<int:pk>/", cases.case_page, name="case"),
    path("<int:pk>/ignore/", cases.ignore, name="case_ignore"),
    path("<int:pk>/reopen/", cases.reopen, name="case_reopen"),
]

cluster_urls: Routes = [
    path("", clusters.cluster_list, name="clusters"),
    path("start/", clusters.start, name="clusters_start"),
    path("<int:number>/", clusters.cluster_page, name="cluster"),
    path("<int:number>/rename/", clusters.rename, name="cluster_rename"),
    path("<int:number>/ignore/", clusters.ignore, name="cluster_ignore"),
    path("<int:number>/diagnose/", clusters.diagnose, name="cluster_diagnose"),
]

diagnosis_urls: Routes = [
    path("<int:pk>/amend/", diagnoses.amend, name="diagnosis_amend"),
    path("<int:pk>/draft/", diagnoses.draft, name="diagnosis_draft"),
    path("<int:pk>/reject/", diagnoses.reject, name="diagnosis_reject"),
]

proposal_urls: Routes = [
    path("", proposals.proposal_list, name="proposals"),
    path("<int:pk>/", proposals.proposal_page, name="proposal"),
    path("<int:pk>/confirm/", proposals.confirm, name="proposal_confirm"),
    path("<int:pk>/amend/", proposals.amend, name="proposal_amend"),
    path("<int:pk>/edit/", proposals.edit, name="proposal_edit"),
    path("<int:pk>/reject/", proposals.reject, name="proposal_reject"),
]

step_urls: Routes = [
    path("", steps.step_list, name="steps"),
    path("start/", steps.start, name="step_start"),
    path("<int:number>/", steps.step_page, name="step"),
    path("<int:number>/evaluate/", steps.evaluate, name="step_evaluate"),
    path("<int:number>/rebuild/", steps.rebuild, name="step_rebuild"),
    path("<int:number>/decide/", steps.decide, name="step_decide"),
    path("<int:number>/take-out/<int:pk>/", steps.take_out, name="step_take_out"),
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
    path(
        "<int:pk>/results/<int:result>/trajectory/<slug:format_name>/",
        results.result_trajectory,
        name="result_trajectory",
    ),
]

harness_urls: Routes = [
    path("", board.board, name="board"),
    path("cases/", include(case_urls)),
    path("clusters/", include(cluster_urls)),
    path("diagnoses/", include(diagnosis_urls)),
    path("proposals/", include(proposal_urls)),
    path("steps/", include(step_urls)),
    path("evaluations/", include(evaluation_urls)),
    path("comparison/", comparison.comparison, name="comparison"),
    path("releases/", releases.release_list, name="releases"),
    path("releases/<int:number>/roll-back/", releases.roll_back, name="release_roll_back"),
    path("files/", files.harness_files, name="files"),
    path("files/history/", file_history.file_history, name="file_history"),
    path("events/", events.event_list, name="events"),
]

urlpatterns: Routes = [
    path("", board.home, name="home"),
    path("healthz", healthz, name="healthz"),
    path("accounts/login/", sign_in.SignInView.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("language/", set_language, name="set_language"),
    path("admin/", admin.site.urls),
    path("h/<slug:harness>/", include(harness_urls)),
]
