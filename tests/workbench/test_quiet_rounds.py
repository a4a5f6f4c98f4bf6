import logging

from django.conf import settings

from workbench.quiet_rounds import QuietRounds

ROUND = "evolution.assemble_traces"
quiet = QuietRounds([ROUND])


def is_news(message: str, *args: object, level: int = logging.INFO) -> bool:
    record = logging.LogRecord("celery", level, "", 0, message, args, None)
    return quiet.filter(record)


def test_a_round_is_no_news() -> None:
    assert not is_news("Scheduler: Sending due task %s (%s)", "assemble traces", ROUND)
    assert not is_news("Task %(name)s[%(id)s] received", {"name": ROUND, "id": "1"})
    assert not is_news(
        "Task %(name)s[%(id)s] succeeded in %(runtime)ss", {"name": ROUND, "id": "1", "runtime": 0.1}
    )


def test_other_tasks_and_what_goes_wrong_are_news() -> None:
    assert is_news("Task %(name)s[%(id)s] received", {"name": "evolution.run_job", "id": "1"})
    assert is_news("beat: Starting...")
    assert is_news("Task %(name)s[%(id)s] raised", {"name": ROUND, "id": "1"}, level=logging.ERROR)


def test_every_task_of_beat_is_such_a_round() -> None:
    told = settings.LOGGING["filters"]["rounds"]["tasks"]  # type: ignore[index]  # plain dictionaries
    assert {"evolution.sweep", "evolution.index_texts", ROUND} <= set(told)
    for name in ("celery.beat", "celery.worker.strategy", "celery.app.trace"):
        assert any(isinstance(one, QuietRounds) for one in logging.getLogger(name).filters)
