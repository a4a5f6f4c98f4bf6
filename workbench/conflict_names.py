"""What git's kinds of merge conflicts are called in the reader's language."""

from django.utils.translation import gettext as _


def name_conflict(kind: str) -> str:
    """How two sides of a merge clash over a file."""
    names = {
        "content": _("both change the same lines"),
        "add/add": _("both add the file"),
        "binary": _("both change a binary file"),
        "modify/delete": _("changed before, removed here"),
        "delete/modify": _("removed before, changed here"),
        "symbolic link": _("both change a symbolic link"),
        "submodule": _("both change a submodule"),
        "file/directory": _("a file here, a folder there"),
        "rename/rename": _("both rename the file"),
        "rename/delete": _("renamed on one side, removed on the other"),
        "rename/add": _("renamed onto a new file of the other side"),
    }
    return names.get(kind, kind)
