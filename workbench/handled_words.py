"""What is said after failures were dealt with that are not the harness's fault."""

from django.utils.translation import gettext as _

from evolution.models import Diagnosis
from evolution.queries.diagnoses import find_handled
from evolution.states import Handling


def tell_handled(diagnosis: Diagnosis) -> str:
    """What became of the cases and their labels."""
    if diagnosis.handled_as == Handling.IGNORED:
        return _("Cluster #%(number)d is put aside.") % {"number": diagnosis.cluster.number}
    cases, places = find_handled(diagnosis)
    words = {
        "cases": ", ".join(map(str, cases)),
        "places": ", ".join(f"{place.key} ({place.version})" for place in places),
    }
    if diagnosis.handled_as == Handling.CALIBRATION:
        return _("Calibration cases now: %(places)s. Put aside as failures: case %(cases)s.") % words
    return (
        _(
            "Corrected: %(places)s. The next evaluation judges by that. Put aside as failures, not judged anew: case "
            "%(cases)s."
        )
        % words
    )
