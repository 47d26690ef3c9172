from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0006_tallies'),
    ]

    operations = [
        migrations.AddField(
            model_name='execution',
            name='retry_of',
            field=models.UUIDField(editable=False, help_text='The ended run whose work somebody wanted done once more.', null=True),
        ),
    ]
