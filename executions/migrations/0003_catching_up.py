from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0002_changes_to_runs'),
    ]

    operations = [
        migrations.AddField(
            model_name='execution',
            name='first_started_at',
            field=models.DateTimeField(editable=False, help_text='Of its first attempt.', null=True),
        ),
        migrations.AddField(
            model_name='execution',
            name='catch_up_until',
            field=models.DateTimeField(editable=False, help_text='The last of the missed fires that are run after this one.', null=True),
        ),
        migrations.AddField(
            model_name='execution',
            name='most_active',
            field=models.SmallIntegerField(editable=False, help_text="How many backfill runs of the job may be under way at once.", null=True),
        ),
        migrations.AlterField(
            model_name='execution',
            name='trigger',
            field=models.TextField(choices=[('schedule', 'Schedule'), ('catchup', 'Catch Up'), ('manual', 'Manual'), ('backfill', 'Backfill')], editable=False),
        ),
        migrations.AddIndex(
            model_name='execution',
            index=models.Index(condition=models.Q(('check_at__isnull', False), ('trigger__in', ['catchup', 'backfill'])), fields=['shard', 'check_at'], name='execution_catching_up'),
        ),
    ]
