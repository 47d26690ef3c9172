from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0003_catching_up'),
    ]

    operations = [
        migrations.AddField(
            model_name='execution',
            name='moved_to',
            field=models.DateTimeField(editable=False, help_text='The time that somebody gave it.', null=True),
        ),
        migrations.AlterField(
            model_name='execution',
            name='trigger',
            field=models.TextField(choices=[('schedule', 'Schedule'), ('catchup', 'Catch Up'), ('manual', 'Manual'), ('backfill', 'Backfill'), ('moved', 'Moved')], editable=False),
        ),
    ]
