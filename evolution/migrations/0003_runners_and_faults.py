"""Agents that are not ours, faults in tool calls, tools that reach the world, and the model that plays the user."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evolution", "0002_audit_trail")]

    operations = [
        migrations.AddField(
            model_name="datasetcase",
            name="faults",
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name="evaluation",
            name="faults",
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name="evaluation",
            name="live_tools",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="evaluation",
            name="runner",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="evaluation",
            name="user_model",
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AddField(
            model_name="caseresult",
            name="run_status",
            field=models.CharField(blank=True, max_length=20),
        ),
        migrations.RunSQL(
            "UPDATE evolution_caseresult SET run_status = left(coalesce(trajectory ->> 'status', ''), 20)",
            migrations.RunSQL.noop,
        ),
        migrations.AddField(
            model_name="harness",
            name="runner",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AlterField(
            model_name="release",
            name="kind",
            field=models.CharField(
                choices=[
                    ("initial", "first version"),
                    ("promotion", "promotion"),
                    ("roll_back", "roll back"),
                    ("remote", "taken from the remote"),
                ],
                max_length=10,
            ),
        ),
    ]
