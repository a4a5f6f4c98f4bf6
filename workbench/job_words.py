"""What a job is at, or what came of it, in the reader's language; other messages stay as the worker wrote them."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evolution.models import Job
from evolution.states import JobKind, JobState


def describe_job(job: Job) -> str:
    """The job's message, as a sentence where it is one of ours."""
    if job.kind == JobKind.CLUSTER and job.state == JobState.DONE and "clusters" in job.result:
        n, loose = int(job.result["clusters"]), int(job.result.get("unclustered", 0))
        text = ngettext("%(n)d cluster, %(loose)d unclustered", "%(n)d clusters, %(loose)d unclustered", n)
        return text % {"n": n, "loose": loose}
    if job.kind == JobKind.ASSIGN and job.state == JobState.DONE and "assigned" in job.result:
        n, assigned = int(job.result["cases"]), int(job.result["assigned"])
        text = ngettext(
            "%(assigned)d of %(n)d new failure assigned", "%(assigned)d of %(n)d new failures assigned", n
        )
        return text % {"n": n, "assigned": assigned}
    stages = {
        "reading failures": _("reading failures"),
        "storing": _("storing"),
        "naming clusters": _("naming clusters"),
        "asking the diagnoser": _("asking the diagnoser"),
        "asking the editor": _("asking the editor"),
        "committing": _("committing"),
        "embedding": _("embedding"),
        "grouping": _("grouping"),
        "fetching": _("fetching"),
    }
    return stages.get(job.message, job.message)
