from django.db import migrations, models

from scheduler_project.kernel.resources import read_queries

LIMITS = read_queries('jobs.sql', 'limits.sql')
HELP = 'What the runtime is asked for, a JSON object in the normal form of containers/options.py.'


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0005_job_schedule_since'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='container',
            field=models.JSONField(blank=True, db_default={}, default=dict, help_text=HELP),
        ),
        migrations.AddField(
            model_name='task',
            name='container',
            field=models.JSONField(blank=True, db_default={}, default=dict, help_text=HELP),
        ),
        migrations.RunSQL(LIMITS['into_container'], LIMITS['out_of_container']),
        migrations.RemoveField(
            model_name='task',
            name='cpus',
        ),
        migrations.RemoveField(
            model_name='task',
            name='memory_bytes',
        ),
    ]
