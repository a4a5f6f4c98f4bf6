from collections import Counter

from evolution.adapters.results.detect import open_source, read_source
from evolution.adapters.results.wanted import Wanted
from tests.evolution.adapters.results.reading import count_passes, read_json
from tests.evolution.intake import TAU_BENCH, needs_data


@needs_data
def test_the_real_results_have_their_known_passes() -> None:
    run = read_source(open_source(TAU_BENCH), Wanted())
    assert (run.format, len(run.cases), run.repeats, len(run.results)) == ("tau-bench", 50, 4, 200)
    assert 200 - count_passes(run) == 116
    passes = Counter(result.key for result in run.results if result.accuracy == 1)
    of_four = Counter(passes[case.key] for case in run.cases)
    assert (of_four[4], of_four[0], 50 - of_four[4] - of_four[0]) == (10, 14, 26)


def test_a_run_that_ended_in_an_error_has_no_score() -> None:
    entry = {"task_id": 3, "trial": 1, "reward": 0.0, "traj": [], "info": {"error": "rate limit"}}
    run = read_json([entry])
    (result,) = run.results
    assert (result.key, result.repeat, result.accuracy) == ("3", 1, None)
    assert (result.error_kind, result.error) == ("runner_error", "rate limit")
