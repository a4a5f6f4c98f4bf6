import pytest

from evolution.adapters.health import Health, HealthRules, Ticket
from evolution.limits.places import Places
from harness_repo.runtime.chat import ChatError, ChatErrorKind

DOWN = ChatError("down", "server", retryable=True)
RULES = HealthRules(window=60, fewest_calls=4, error_rate=0.5, cool_down=5, most_cool_down=18, pause=1)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Observed:
    """An endpoint under a clock that the test turns."""

    def __init__(self, limit: int = 0) -> None:
        self.clock = Clock()
        self.health = Health("here", Places(limit), rules=RULES, clock=self.clock)

    def start(self, *, alone: bool = False) -> Ticket | None:
        return self.health.try_start(alone=alone)

    def call(self, failure: ChatError | None = None) -> None:
        ticket = self.start()
        assert ticket is not None
        self.health.finish(ticket, failure)

    def isolate(self) -> None:
        for _ in range(RULES.fewest_calls):
            self.call(DOWN)
        assert self.health.state() == "isolated"


def too_many(seconds: float | None = None) -> ChatError:
    return ChatError("429", "rate_limit", retryable=True, retry_after=seconds)


def test_half_of_the_calls_may_fail_and_few_calls_say_nothing() -> None:
    observed = Observed()
    for failure in (DOWN, DOWN, DOWN, None, None, None):
        # Three of three are too few; from the fourth on half of them are good.
        observed.call(failure)
    assert (observed.health.state(), observed.health.error_rate()) == ("serving", 0.5)
    observed.call(DOWN)
    assert observed.health.state() == "isolated"
    assert observed.start() is None


def test_old_failures_are_forgotten() -> None:
    observed = Observed()
    for _ in range(3):
        observed.call(DOWN)
    observed.clock.now += RULES.window + 1
    observed.call(DOWN)
    assert (observed.health.state(), observed.health.calls()) == ("serving", 1)


@pytest.mark.parametrize("kind", ["refused", "configuration"])
def test_request_that_is_not_liked_says_nothing_against_the_server(kind: ChatErrorKind) -> None:
    observed = Observed()
    for _ in range(10):
        observed.call(ChatError("no", kind))
    assert (observed.health.state(), observed.health.error_rate()) == ("serving", 0)


def test_one_trial_after_the_cool_down_opens_it_again() -> None:
    observed = Observed()
    observed.isolate()
    assert observed.health.seconds_left(alone=False) == 5
    observed.clock.now += 5
    trial = observed.start()
    assert trial is not None
    assert trial.is_trial
    assert (observed.start(), observed.health.state()) == (None, "trial")
    observed.health.finish(trial, None)
    assert (observed.health.state(), observed.health.error_rate()) == ("serving", 0)


def test_trials_that_fail_double_the_cool_down_up_to_its_most() -> None:
    observed = Observed()
    observed.isolate()
    for seconds in (5, 10, 18, 18):
        assert observed.health.seconds_left(alone=False) == seconds
        # With no other endpoint to turn to, it is looked at as often as at first.
        assert observed.health.seconds_left(alone=True) == 5
        observed.clock.now += seconds
        observed.call(DOWN)


def test_cancelled_trial_leaves_the_next_one_free() -> None:
    observed = Observed()
    observed.isolate()
    observed.clock.now += 5
    trial = observed.start()
    assert trial is not None
    observed.health.abandon(trial)
    assert (observed.health.state(), observed.health.places.in_flight) == ("isolated", 0)
    assert observed.start() is not None


def test_calls_from_before_the_isolation_change_nothing() -> None:
    observed = Observed()
    late = [observed.start(), observed.start()]
    observed.isolate()
    for ticket, failure in zip(late, (DOWN, None), strict=True):
        assert ticket is not None
        observed.health.finish(ticket, failure)
    assert (observed.health.state(), observed.health.seconds_left(alone=False)) == ("isolated", 5)


def test_server_that_asks_to_wait_is_paused_so_long() -> None:
    observed = Observed()
    observed.call(too_many(7))
    assert (observed.health.state(), observed.health.seconds_left(alone=True)) == ("paused", 7)
    observed.clock.now += 7
    assert observed.start() is not None


def test_server_that_is_down_and_says_for_how_long_is_paused_too() -> None:
    observed = Observed()
    observed.call(ChatError("503", "server", retryable=True, retry_after=7))
    assert (observed.health.seconds_left(alone=True), observed.health.error_rate()) == (7, 1)


def test_pauses_without_a_time_grow_until_a_call_succeeds() -> None:
    observed = Observed()
    for seconds in (1, 2, 4):
        observed.call(too_many())
        assert observed.health.seconds_left(alone=False) == seconds
        observed.clock.now += seconds
    observed.call()
    observed.call(too_many())
    assert observed.health.seconds_left(alone=False) == 1


def test_calls_that_are_turned_away_together_make_one_pause() -> None:
    observed = Observed()
    tickets = [observed.start() for _ in range(8)]
    observed.clock.now += 1
    for ticket in tickets:
        assert ticket is not None
        observed.health.finish(ticket, too_many())
    assert observed.health.seconds_left(alone=False) == 1


def test_model_that_it_does_not_have_is_avoided_for_a_while() -> None:
    observed = Observed()
    observed.call(ChatError("404", "configuration"))
    assert (observed.health.is_avoided(), observed.health.state()) == (True, "serving")
    observed.clock.now += RULES.window
    assert not observed.health.is_avoided()


def test_models_of_an_endpoint_share_its_places_and_not_their_health() -> None:
    observed = Observed(limit=1)
    other = Health("here", observed.health.places, rules=RULES, clock=observed.clock)
    observed.isolate()
    ticket = other.try_start(alone=False)
    assert ticket is not None
    assert other.try_start(alone=False) is None
    other.abandon(ticket)
    assert other.state() == "serving"


def busy(seconds: float | None = 1.0) -> ChatError:
    return ChatError("busy", "rate_limit", retryable=True, retry_after=seconds)


def health_after(*ends: ChatError | None) -> Health:
    health = Health("here")
    for failure in ends:
        ticket = health.try_start(alone=False)
        assert ticket is not None
        health.finish(ticket, failure)
    return health


@pytest.mark.parametrize("seconds", [1.0, None])
def test_few_calls_that_are_turned_away_among_many_pause_nobody_else(seconds: float | None) -> None:
    answers = [None] * 20
    assert health_after(*answers, busy(seconds), *answers, busy(seconds), busy(seconds)).state() == "serving"


def test_calls_that_are_turned_away_in_a_row_make_a_pause_for_all() -> None:
    assert health_after(*[None] * 20, busy(), busy(), busy()).state() == "paused"


def test_long_wait_is_for_all_also_when_one_call_is_told() -> None:
    assert health_after(*[None] * 20, busy(30)).state() == "paused"


def test_calls_under_way_speak_for_a_server_that_turns_few_away_at_first() -> None:
    health = Health("here")
    tickets = [health.try_start(alone=False) for _ in range(20)]
    states = []
    for ticket in tickets[:3]:
        assert ticket is not None
        health.finish(ticket, busy())
        states.append(health.state())
    assert states == ["serving", "serving", "paused"]
