from django.db import migrations, models

# A row is written many times in its minute: room in its page lets PostgreSQL do so without touching the index.
ROOM = """
ALTER TABLE executions_minute SET (fillfactor = 50);
ALTER TABLE executions_trouble SET (fillfactor = 50);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0005_turned_away'),
    ]

    operations = [
        migrations.CreateModel(
            name='Minute',
            fields=[
                ('pk', models.CompositePrimaryKey('minute', 'owner_id', 'what', 'bucket', 'writer', blank=True, editable=False, primary_key=True, serialize=False)),
                ('minute', models.DateTimeField(editable=False)),
                ('owner_id', models.IntegerField(editable=False)),
                ('what', models.TextField(editable=False)),
                ('bucket', models.SmallIntegerField(editable=False)),
                ('writer', models.IntegerField(editable=False)),
                ('count', models.IntegerField(editable=False)),
            ],
        ),
        migrations.CreateModel(
            name='Trouble',
            fields=[
                ('pk', models.CompositePrimaryKey('hour', 'job_id', 'what', 'reason', 'writer', blank=True, editable=False, primary_key=True, serialize=False)),
                ('hour', models.DateTimeField(editable=False)),
                ('job_id', models.UUIDField(editable=False)),
                ('what', models.TextField(editable=False)),
                ('reason', models.TextField(editable=False)),
                ('writer', models.IntegerField(editable=False)),
                ('owner_id', models.IntegerField(editable=False)),
                ('count', models.IntegerField(editable=False)),
                ('undone', models.IntegerField(editable=False)),
                ('worst_s', models.FloatField(editable=False)),
                ('latest', models.UUIDField(editable=False)),
            ],
        ),
        migrations.RunSQL(ROOM, migrations.RunSQL.noop),
    ]
