import pytest

from evolution.loop.stopping import Measured, dominates, early_stop

# The published series (mission.md, n = 482); the last two are described as losing on one or both metrics.
PUBLISHED = [
    Measured("h0", 82.40, 87.16, "baseline"),
    Measured("h1", 92.13, 84.16, "rolled_back"),
    Measured("h2", 92.55, 92.75, "promoted"),
    Measured("h3", 91.9, 92.1, "rolled_back"),
    Measured("h4", 91.5, 92.6, "rolled_back"),
]


def test_published_series_selects_its_second_evolution() -> None:
    advice = early_stop(PUBLISHED, clusters_left=3)
    assert (advice.stop, advice.selected) == (True, "h2")
    assert [reason.code for reason in advice.reasons] == ["patience", "best_version"]


def test_one_step_without_promotion_goes_on() -> None:
    advice = early_stop(PUBLISHED[:4], clusters_left=3)
    assert (advice.stop, advice.selected) == (False, "h2")


def test_nothing_left_to_try_stops() -> None:
    advice = early_stop(PUBLISHED[:3], clusters_left=0)
    assert advice.stop
    assert advice.reasons[0].code == "nothing_left"


def test_dominated_promotion_is_not_selected() -> None:
    series = [*PUBLISHED[:3], Measured("h5", 90.0, 92.0, "promoted")]
    advice = early_stop(series, clusters_left=1)
    assert (advice.selected, advice.reasons[-1].code) == ("h2", "dominated")


def test_equal_versions_do_not_dominate_each_other() -> None:
    one, two = Measured("a", 90, 90, "promoted"), Measured("b", 90, 90, "promoted")
    assert not dominates(one, two)
    assert early_stop([one, two], clusters_left=1).selected == "b"


def test_series_without_a_baseline_is_refused() -> None:
    with pytest.raises(ValueError, match="baseline"):
        early_stop([], clusters_left=1)
