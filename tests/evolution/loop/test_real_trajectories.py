"""Real conversations of tau-bench, trimmed: they fit, and what is quoted of them stands in them."""

import json
from pathlib import Path

import pytest

from evolution.adapters.formats.tau_bench import read_item
from evolution.adapters.rehearsal.briefs import HarnessView, read_briefs
from evolution.adapters.rehearsal.diagnoser import diagnose
from evolution.loop.quotes import verify_evidence
from evolution.loop.trimming import trim_cases
from evolution.prompts.diagnosis import CaseBrief, DiagnosisOutput
from tests.evolution.adapters.rehearsal.test_english import airline_files

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "tau_bench" / "gpt-4o-airline.json"

pytestmark = pytest.mark.skipif(
    not DATA.is_file(), reason="the tau-bench records are not beside this checkout"
)


def read_failures() -> list[CaseBrief]:
    read = [read_item(item, "x", n) for n, item in enumerate(json.loads(DATA.read_text()))]
    return [
        CaseBrief(id=str(n), request=r.request, trajectory=r.trajectory, reply=r.reply, symptom=r.symptom)
        for n, r in enumerate(read)
        if r.scores["reward"] < 1
    ]


def test_twelve_at_a_time_fit_the_budget_and_every_quote_stands() -> None:
    failures = read_failures()
    assert len(failures) == 116
    view = HarnessView.of(airline_files())
    for start in range(0, len(failures), 12):
        whole = failures[start : start + 12]
        trimmed = trim_cases(whole, 20_000, {})
        assert sum(each.tokens for each in trimmed) <= 20_000
        shown = {each.brief.id: each.brief for each in trimmed}
        blocks = json.loads(json.dumps([brief.shown() for brief in shown.values()]))
        answer = DiagnosisOutput.model_validate(diagnose(read_briefs(blocks), view))
        for each in answer.hypotheses:
            found = verify_evidence(each.evidence, {brief.id: brief for brief in whole}, shown)
            assert len(found) == len(each.evidence)
