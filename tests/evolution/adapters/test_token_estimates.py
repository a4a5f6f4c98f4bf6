import pytest

from evolution.adapters.token_estimates import TokenEstimates
from harness_repo.runtime.chat import ChatRequest, Usage


def request(characters: int, **parameters: object) -> ChatRequest:
    return ChatRequest("m", [{"role": "user", "content": "x" * characters}], parameters=parameters)


def test_estimates_come_to_what_calls_take() -> None:
    estimates = TokenEstimates()
    for size in range(1000, 9000, 100):
        estimates.learn(request(size), Usage(prompt_tokens=size // 2, completion_tokens=200))
    assert estimates.estimate(request(6000)) == pytest.approx(3200, rel=0.05)


def test_no_more_is_expected_than_the_harness_allows() -> None:
    assert TokenEstimates().estimate(request(0, max_tokens=10)) < 40


def test_server_that_says_nothing_teaches_nothing() -> None:
    estimates = TokenEstimates()
    before = estimates.estimate(request(500))
    estimates.learn(request(500), Usage())
    assert estimates.estimate(request(500)) == before
