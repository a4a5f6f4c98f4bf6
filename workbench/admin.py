"""The administrator's pages about people: accounts are closed, not deleted and not renamed.

Approvals and the audit trail know people by their names: without its account, nobody could say whether a name's word
still counts, and whoever got the name next would inherit it.
"""

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest

if TYPE_CHECKING:
    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin

admin.site.unregister(User)


@admin.register(User)
class PeopleAdmin(_UserAdmin):
    """Django's, without what would take a name from its account."""

    def has_delete_permission(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django calls it so
        obj: User | None = None,  # noqa: ARG002 - Django calls it so
    ) -> bool:
        """Never, one by one or many at once."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        """The name of an account that is there."""
        return [*super().get_readonly_fields(request, obj), *(["username"] if obj else [])]
