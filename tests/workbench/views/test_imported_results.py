"""Every page that shows an evaluation, with those of unknown versions of a harness that has no files of an agent."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from evolution.actions.cases import take_failures
from evolution.actions.imported_results import import_results
from evolution.adapters.results.detect import Source
from evolution.models import Evaluation, FailureCase
from evolution.queries.board import next_action
from tests.evolution.measured import DEV, make_harness

pytestmark = pytest.mark.django_db


def make_import(*accuracies: int) -> Evaluation:
    talk = '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]'
    lines = [
        f'{{"case": "c{number}", "accuracy": {accuracy}, "request": "hi", "messages": {talk}}}'
        for number, accuracy in enumerate(accuracies)
    ]
    lines.append('{"case": "down", "error": "503", "request": "hi"}')
    return import_results(DEV, Source("shop.jsonl", "\n".join(lines).encode())).evaluation


PAGES = [
    "",
    "evaluations/",
    "evaluations/{candidate}/",
    "evaluations/{candidate}/?part=results",
    "comparison/",
    "comparison/?base={base}&candidate={candidate}",
    "comparison/?base={base}&candidate={candidate}&case={case}",
    "evaluations/{candidate}/results/{result}/",
    "cases/",
    "cases/{failure}/",
    "clusters/",
    "proposals/",
    "steps/",
    "releases/",
    "files/",
    "events/",
]


def test_every_page_survives_a_version_that_nobody_named(operator: Client) -> None:
    base, candidate = make_import(1, 1, 0), make_import(1, 0, 1)
    take_failures(DEV, candidate)
    values = {
        "base": base.pk,
        "candidate": candidate.pk,
        "case": base.dataset_version.cases.order_by("key")[1].pk,
        "result": candidate.results.get(case__key="c1").pk,
        "failure": FailureCase.objects.get().pk,
    }
    wrong = {}
    for page in PAGES:
        path = f"/h/{candidate.harness.name}/{page.format(**values)}"
        status = operator.get(path).status_code
        if status != 200:
            wrong[path] = status
    assert wrong == {}


def test_a_comparison_of_two_imports_shows_the_flips(viewer: Client) -> None:
    base, candidate = make_import(1, 1, 0), make_import(1, 0, 1)
    path = f"/h/{base.harness.name}/comparison/?base={base.pk}&candidate={candidate.pk}"
    comparison = viewer.get(path).context["comparison"]
    assert ([row.key for row in comparison.broken], [row.key for row in comparison.fixed]) == (["c1"], ["c2"])


def test_nobody_is_told_to_measure_what_has_no_agent(viewer: Client) -> None:
    evaluation = make_import(1)
    context = viewer.get(f"/h/{evaluation.harness.name}/").context
    assert next_action(evaluation.harness) is None
    assert [item.text for item in context["waiting"]] == []


def test_an_import_can_be_exported_as_a_trajectory(viewer: Client) -> None:
    evaluation = make_import(1)
    result = evaluation.results.get(case__key="c0")
    base = f"/h/{evaluation.harness.name}/evaluations/{evaluation.pk}/results/{result.pk}/"
    for name in ("openai", "atif", "json"):
        assert viewer.get(f"{base}trajectory/{name}/").status_code == 200


def send(client: Client, data: bytes, **fields: str) -> Any:
    harness = make_harness()
    form = {"file": SimpleUploadedFile("shop.jsonl", data), **fields}
    return client.post(f"/h/{harness.name}/evaluations/import/", form, follow=True)


def test_an_upload_becomes_an_evaluation_and_says_what_was_left_out(developer: Client) -> None:
    answer = send(developer, b'{"case": "a", "score": 0.7}\n{"case": "b"}', threshold="0.6", ref="main")
    evaluation = Evaluation.objects.get()
    assert answer.redirect_chain[-1][0].endswith(f"/evaluations/{evaluation.pk}/")
    assert (len(evaluation.commit), evaluation.results.get().accuracy) == (40, 1)
    (message,) = answer.context["messages"]
    assert str(message).startswith("left out: shop.jsonl:2: ")


def test_the_scale_of_the_scores_and_the_name_of_the_cases_are_told_with_the_file(developer: Client) -> None:
    send(developer, b'{"case": "a", "score": 8}', full_marks="10", threshold="0.75", dataset="ours")
    evaluation = Evaluation.objects.get()
    assert evaluation.dataset_version.dataset.name == "ours"
    assert (evaluation.results.get().accuracy, evaluation.origin["options"]["full_marks"]) == (1, 10)


@pytest.mark.parametrize(
    ("data", "fields", "said"),
    [
        (b"", {}, "is empty"),
        (b'{"case": "a", "accuracy": 1}', {"ref": "gone"}, "gone"),
        (b'{"case": "a", "accuracy": 1}', {"threshold": "7"}, "threshold"),
    ],
)
def test_an_upload_that_cannot_be_taken_is_told(
    developer: Client, data: bytes, fields: dict[str, str], said: str
) -> None:
    answer = send(developer, data, **fields)
    assert said in str(next(iter(answer.context["messages"])))
    assert not Evaluation.objects.exists()


def test_a_viewer_may_not_upload(viewer: Client) -> None:
    assert send(viewer, b'{"case": "a", "accuracy": 1}').status_code == 403
