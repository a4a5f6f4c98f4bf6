from evolution.adapters.health import Health, HealthRules
from evolution.limits.places import Places
from harness_repo.runtime.chat import ChatError


class Sleeper:
    def __init__(self) -> None:
        self.times = 0

    def wake(self) -> bool:
        self.times += 1
        return self.times == 1


def full_with(waiting: int, limit: int = 1) -> tuple[Places, list[Sleeper]]:
    """All places taken, and so many in line."""
    places, sleepers = Places(limit), [Sleeper() for _ in range(waiting)]
    assert all(places.take() for _ in range(limit))
    for sleeper in sleepers:
        places.queue(sleeper)
    return places, sleepers


def test_no_more_calls_than_the_limit() -> None:
    places = Places(2)
    assert [places.take() for _ in range(3)] == [True, True, False]
    places.give_back()
    assert (places.in_flight, places.take(), places.is_full()) == (1, True, True)


def test_place_that_is_given_back_is_for_the_first_in_line_and_for_nobody_else() -> None:
    places, (first, second) = full_with(waiting=2)
    places.give_back()
    assert (first.times, second.times) == (1, 0)
    assert (places.is_full(), places.take(), places.take(second)) == (True, False, False)
    assert places.take(first)
    assert places.in_flight == 1


def test_who_has_been_woken_elsewhere_is_passed_over() -> None:
    places, (first, second) = full_with(waiting=2)
    first.wake()
    places.give_back()
    assert places.take(second)


def test_promise_that_is_not_made_use_of_goes_to_the_next() -> None:
    places, (first, second, third) = full_with(waiting=3)
    places.leave(second)
    places.give_back()
    places.leave(first)
    assert (second.times, places.take(third)) == (0, True)
    places.give_back()
    assert places.take()


def test_who_watches_is_not_woken_for_a_place() -> None:
    places, (first,) = full_with(waiting=1)
    watching = Sleeper()
    places.watch(watching)
    for _ in range(2):
        places.give_back()
        places.leave(first)
        assert places.take()
    assert (first.times, watching.times) == (1, 0)


def test_change_of_health_wakes_everybody() -> None:
    health = Health("here", rules=HealthRules(fewest_calls=1))
    sleepers = [Sleeper() for _ in range(3)]
    for sleeper, wait in zip(
        sleepers, (health.places.queue, health.places.watch, health.places.queue), strict=True
    ):
        wait(sleeper)
    ticket = health.try_start(alone=False)
    assert ticket is not None
    health.finish(ticket, ChatError("down", "server", retryable=True))
    assert [sleeper.times for sleeper in sleepers] == [1, 1, 1]
