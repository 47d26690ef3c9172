from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0004_moved_runs'),
    ]

    operations = [
        migrations.AddField(
            model_name='execution',
            name='turned_away_at',
            field=models.DateTimeField(editable=False, help_text='Since when it waits to catch up while regular runs keep it from it.', null=True),
        ),
    ]
