import random

import pytest
from django.db.models.functions import Now

from evolution.limits import granting
from evolution.limits.granting import Holding, Wish, fair_shares, forget_abandoned, grant_shares, share_out
from evolution.limits.holders import name_process
from evolution.models import LimitShare, SharedLimit


def shares(limit: int, **wanted: int) -> dict[str, int]:
    return fair_shares(wanted, limit)


def test_shares_are_max_min_fair() -> None:
    assert shares(10, a=2, b=9, c=9) == {"a": 2, "b": 4, "c": 4}
    assert shares(10, a=20, b=20, c=20) == {"a": 3, "b": 3, "c": 4}
    assert shares(10, a=1, b=2) == {"a": 1, "b": 2}
    assert shares(1, a=5, b=5) == {"a": 0, "b": 1}


def test_what_others_hold_is_not_given_again() -> None:
    grant = share_out(Wish("here", 10, wanted=8, taken=1, held=1), "b", {"a": Holding(10, 9)})
    assert (grant.share, grant.is_behind, grant.is_scarce) == (1, True, True)


def test_what_is_to_be_given_back_is_held_until_asked_again() -> None:
    others = {"b": Holding(10, 0)}
    first = share_out(Wish("here", 10, wanted=10, taken=8, held=10), "a", others)
    assert (first.share, first.granted) == (5, 10)
    second = share_out(Wish("here", 10, wanted=10, taken=7, held=7), "a", others)
    assert (second.share, second.granted) == (5, 7)


def test_who_is_alone_has_room_and_leaves_some_for_the_next() -> None:
    grant = share_out(Wish("here", 50, wanted=10, taken=10, held=10), "a", {})
    assert (grant.share, grant.is_scarce) == (30, False)


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(3))
def test_all_that_is_held_is_within_the_limit_whoever_asks_when(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    held = dict.fromkeys("abcd", 0)
    taken = dict.fromkeys("abcd", 0)
    for _ in range(60):
        holder = chance.choice("abcd")
        wanted = chance.choice([0, 1, 5, 20])
        # Calls begin and end as they may.
        taken[holder] = chance.randint(0, held[holder]) if wanted else 0
        wish = Wish("here", 10, max(wanted, taken[holder]), taken[holder], held[holder] if wanted else 0)
        grant = grant_shares(holder, [wish])["here"]
        assert sum(LimitShare.objects.values_list("granted", flat=True)) <= 10
        # What calls may take until it asks again.
        held[holder] = max(grant.share, taken[holder])
        assert sum(held.values()) <= 10


@pytest.mark.django_db
def test_share_of_a_process_that_was_killed_here_is_free_at_once() -> None:
    *others, _, token = name_process().split(":")
    gone = ":".join([*others, "1", token])
    grant_shares(gone, [Wish("here", 10, wanted=10, taken=10, held=10)])
    assert grant_shares("a", [Wish("here", 10, wanted=10)])["here"].share == 10
    assert list(LimitShare.objects.values_list("holder", flat=True)) == ["a"]


@pytest.mark.django_db
def test_limit_that_nobody_holds_any_more_is_forgotten() -> None:
    for holder in "ab":
        grant_shares(holder, [Wish("here", 10, wanted=3)])
    grant_shares("a", [Wish("here", 10)])
    assert list(LimitShare.objects.values_list("holder", flat=True)) == ["b"]
    grant_shares("b", [Wish("here", 10)])
    assert not SharedLimit.objects.exists()


@pytest.mark.django_db
def test_limits_of_evaluations_whose_workers_have_died_are_forgotten_and_no_other() -> None:
    *others, _, token = name_process().split(":")
    gone = ":".join([*others, "1", token])
    wishes = [Wish(name, 10, wanted=3) for name in ("evaluation:1", "evaluation:2", "endpoint:x")]
    grant_shares(gone, wishes)
    grant_shares("a", [wishes[1], Wish("evaluation:3", 10, wanted=3), Wish("evaluation:4", 10, wanted=3)])
    LimitShare.objects.filter(limit="evaluation:3").update(lease_until=Now())
    assert forget_abandoned() == 2
    assert set(SharedLimit.objects.values_list("name", flat=True)) == {
        "endpoint:x",
        "evaluation:2",
        "evaluation:4",
    }
    assert forget_abandoned() == 0


@pytest.mark.django_db
def test_share_stays_for_as_long_as_its_last_call_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody has said anything for as long as a lease lasts.
    monkeypatch.setattr(granting, "LEASE_SECONDS", -1.0)
    grant_shares("a", [Wish("calls", 10, wanted=10, taken=10, longest=60), Wish("others", 10, wanted=10)])
    wishes = [Wish(name, 10, wanted=10) for name in ("calls", "others")]
    grants = grant_shares("b", wishes)
    assert (grants["calls"].share, grants["others"].share) == (0, 10)
