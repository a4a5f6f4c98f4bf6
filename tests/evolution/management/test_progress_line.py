from io import StringIO

from django.core.management.base import OutputWrapper

from evolution.management.progress_line import ProgressLine, format_progress


def test_the_line_says_how_far_how_fast_how_long_and_what_failed() -> None:
    line = format_progress(20, 80, 4.0, 2)

    assert line == f"[{'#' * 6}{'.' * 18}] 20/80  25 %  4.0/s  15 s left  2 errors"


def test_nothing_is_said_of_a_rate_that_nobody_knows() -> None:
    assert format_progress(0, 80, 0.0, 0) == f"[{'.' * 24}] 0/80  0 %"


def test_the_line_is_written_over_itself_now_and_then_and_at_the_end() -> None:
    out, clock = StringIO(), iter([0.0, 0.05, 1.0, 1.01])
    line = ProgressLine(OutputWrapper(out), lambda: 0, lambda: next(clock))

    for done in (1, 2, 3, 4):
        line(done, 4)
    line.end()

    written = out.getvalue()
    assert [part.split()[1] for part in written.split("\r")[1:]] == ["1/4", "3/4", "4/4"]
    assert "2.0/s" in written
    assert written.endswith("\n")
