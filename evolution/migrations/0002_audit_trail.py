"""The database itself refuses to change or delete audit rows; the four role groups exist everywhere."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

REFUSE = """
CREATE FUNCTION evolution_event_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only';
END
$$;
CREATE TRIGGER evolution_event_append_only BEFORE UPDATE OR DELETE ON evolution_event
    FOR EACH ROW EXECUTE FUNCTION evolution_event_refuse();
"""
ALLOW = """
DROP TRIGGER evolution_event_append_only ON evolution_event;
DROP FUNCTION evolution_event_refuse();
"""


def create_groups(apps: Apps, _schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Make one group per role."""
    group = apps.get_model("auth", "Group")
    for name in ("viewer", "annotator", "developer", "operator"):
        group.objects.get_or_create(name=name)


class Migration(migrations.Migration):
    """Runs after the tables exist."""

    dependencies = [("evolution", "0001_initial"), ("auth", "0012_alter_user_first_name_max_length")]
    operations = [
        migrations.RunSQL(REFUSE, ALLOW),
        migrations.RunPython(create_groups, migrations.RunPython.noop),
    ]
