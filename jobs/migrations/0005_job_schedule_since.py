from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0004_requested_runs'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='schedule_since',
            field=models.DateTimeField(editable=False, help_text='When it was given the schedule it has; empty: when it was made.', null=True),
        ),
    ]
