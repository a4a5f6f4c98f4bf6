"""Errors of the loop that people can act on; their text is shown as it is."""


class LoopError(Exception):
    """An action can't be done now; the message says why and what to do."""


class StaleState(LoopError):
    """Another person or worker moved the record first; look at it again."""


class ImportTaken(StaleState):
    """Another process is at this import, or has gone on with it."""


class MoveRefused(LoopError):
    """The state machine has no such move."""


class BrokenInput(LoopError):
    """A file or upload can't be read at all; says where and why."""


class ModelOutputError(LoopError):
    """A model's answer did not fit its schema, after one repair attempt."""
