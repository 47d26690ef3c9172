from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0002_changes_to_jobs'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='managed_by',
            field=models.CharField(db_default='', default='', editable=False, help_text='Which set of files declares this job; empty: none does, and none takes it away.', max_length=100),
        ),
    ]
