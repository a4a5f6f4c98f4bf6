"""The path of a real model: the official client against an endpoint that the rehearsal model serves."""

import asyncio

from pytest_django import Settings

from evolution.adapters.chat import build_model
from evolution.adapters.rehearsal.server import running
from evolution.adapters.routing import RoutedChatModel
from evolution.demonstration import load_cases
from evolution.loop.scoring import CaseOutcome, Scorer, score_case
from evolution.models import DatasetCase
from harness_repo.format.harness import read_harness
from harness_repo.runtime.native import NativeRunner
from harness_repo.starters import starter_files


def score_some() -> list[CaseOutcome]:
    agent, judge = read_harness(starter_files("live_commerce")), read_harness(starter_files("judge"))
    scorer = Scorer(NativeRunner(agent, *build_model("policy")), judge, build_model("judge"))
    cases = [DatasetCase(**vars(case)) for case in load_cases()[::30]]

    async def score_all() -> list[CaseOutcome]:
        return await asyncio.gather(*(score_case(case, scorer) for case in cases))

    return asyncio.run(score_all())


def test_scores_over_http_are_those_without_it(settings: Settings) -> None:
    direct = score_some()
    with running() as url:
        settings.LLM_BASE_URL = url
        settings.LLM_MODEL_POLICY, settings.LLM_MODEL_JUDGE = "rehearsal-policy", "rehearsal-judge"
        assert isinstance(build_model("policy").model, RoutedChatModel)
        over_http = score_some()
    assert [outcome.error for outcome in over_http] == [""] * len(direct)
    figures = [
        (one.accuracy, one.effectiveness, one.reply, one.findings, one.prompt_tokens) for one in direct
    ]
    assert figures == [
        (one.accuracy, one.effectiveness, one.reply, one.findings, one.prompt_tokens) for one in over_http
    ]
