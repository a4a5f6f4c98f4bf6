"""What the tests of intake share: the real sample data, failures by hand, and models that answer as told."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from evolution.loop.cases import ImportReport, store_records
from evolution.loop.masking import current_masker
from evolution.loop.search_text import store_texts
from evolution.models import Cluster, FailureCase, Harness
from evolution.ports import Record
from harness_repo.runtime.chat import ChatReply, ChatRequest
from harness_repo.starters import starter_files
from tests.evolution.measured import DEV

DATA = Path(settings.BASE_DIR).parent / "shared" / "data"
TAU_BENCH = DATA / "tau_bench" / "gpt-4o-airline.json"
# A skill of the starter, whichever.
SKILL = next(path for path in starter_files("live_commerce") if path.endswith("/SKILL.md"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the sample data is not beside the project")


def make_record(source_id: str, text: str = "3号链接多少钱？", **fields: Any) -> Record:
    request = {"danmaku": [{"user": "小美", "text": text}], "history": []}
    return Record(source="test", source_id=source_id, failed=True, line=1, request=request, **fields)


def store(harness: Harness, *records: Record) -> ImportReport:
    report = ImportReport()
    store_records(DEV, harness, records, report, masker=current_masker())
    return report


def make_failure(harness: Harness, text: str = "券后价说错了", **fields: Any) -> FailureCase:
    number = FailureCase.objects.count() + 1
    values = {"source": "test", "source_id": f"made-{number}", "fingerprint": f"{number:064d}", "title": text}
    request = {"danmaku": [{"user": "小美", "text": text}], "history": []}
    case = FailureCase.objects.create(harness=harness, **{**values, "request": request, **fields})
    store_texts([case])
    return case


def make_cluster(harness: Harness, number: int = 1, texts: tuple[str, ...] = (), **fields: Any) -> Cluster:
    cluster = Cluster.objects.create(harness=harness, number=number, name=f"cluster {number}", **fields)
    for text in texts:
        make_failure(harness, text, cluster=cluster, strength=1.0)
    return cluster


class Answers:
    """A model that gives these answers in turn, and keeps what it was asked."""

    def __init__(self, *answers: dict[str, Any] | str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(str(request.messages[1]["content"]))
        answer = self.answers.pop(0)
        return ChatReply(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))


def diagnosis_answer(*evidence: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "cluster_name": "券后价报错",
        "cluster_description": "价格没有查工具。",
        "hypotheses": [hypothesis(*evidence, **fields)],
    }


def hypothesis(*evidence: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "category": "missing_instruction",
        "part": "skill",
        "path": SKILL,
        "hypothesis": "技能没有要求查优惠券。",
        "confidence": 0.7,
        "evidence": list(evidence),
        "first_wrong_turns": [],
        "changes": [f"在 {SKILL} 增加步骤"],
        "refuted_by": "查了优惠券仍然报错",
        **fields,
    }


def draft_answer(path: str = SKILL, line: str = "- 报价前先查优惠券。", **fields: Any) -> dict[str, Any]:
    return {
        "title": "报价前查优惠券",
        "slug": "coupon-first",
        "summary": "价格问题先查优惠券。",
        "edits": [{"path": path, "action": "append_line", "content": line}],
        "expected_effect": "价格类失败减少",
        "risks": ["多一次调用"],
        **fields,
    }
