import pytest

from harness_repo.format.json_schema import find_violation, load_schema
from harness_repo.runtime.runner import RunCase


def test_a_case_is_sent_as_our_runtime_reads_it() -> None:
    case = RunCase("k", {"danmaku": [" a ", {"text": 5}, "", "a"], "history": None, "user": {}, "more": 1})
    sent = case.to_dict()
    danmaku = [{"user": "", "text": "a"}, {"user": "", "text": "5"}]
    assert sent["request"] == {"danmaku": danmaku, "history": [], "more": 1}
    assert find_violation(load_schema("case"), sent) is None


def test_a_case_that_cannot_be_read_is_not_sent() -> None:
    with pytest.raises(ValueError, match="danmaku"):
        RunCase("k", {"danmaku": 3}).to_dict()
