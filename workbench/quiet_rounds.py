"""The stream of logs without what beat does every few seconds: what such a round does is said by the round itself."""

import logging
from collections.abc import Collection, Iterable


class QuietRounds(logging.Filter):
    """Leaves out that beat sends these tasks, and that they are received and succeed; what goes wrong stays."""

    def __init__(self, tasks: Collection[str] = ()) -> None:
        super().__init__()
        self.tasks = frozenset(tasks)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is news."""
        return record.levelno > logging.INFO or not self.tasks & _names(record.args)


def _names(arguments: object) -> set[str]:
    """The texts among the arguments of a record: the worker gives the task's name in a mapping, beat in a row."""
    values = arguments.values() if isinstance(arguments, dict) else arguments
    return {value for value in values if isinstance(value, str)} if isinstance(values, Iterable) else set()
