"""The tokens of rest_framework.authtoken, which is no longer used, go on: as their digests only.

Their table, which holds them readable, is dropped: there is no way back.
"""

import hashlib
import uuid

from django.db import migrations


def carry_over(apps, schema_editor):
    connection = schema_editor.connection
    if "authtoken_token" not in connection.introspection.table_names():
        return
    tokens = apps.get_model("access", "ApiToken").objects
    with connection.cursor() as cursor:
        cursor.execute("SELECT key, user_id, created FROM authtoken_token")
        for key, user_id, created in cursor.fetchall():
            tokens.create(
                id=uuid.uuid4(),
                name="carried over",
                user_id=user_id,
                digest=hashlib.sha256(key.encode()).digest(),
                prefix=key[:6],
                scope="edit",
                created_at=created,
            )
        cursor.execute("DROP TABLE authtoken_token")
        cursor.execute("DELETE FROM django_migrations WHERE app = 'authtoken'")
    apps.get_model("contenttypes", "ContentType").objects.filter(app_label="authtoken").delete()


class Migration(migrations.Migration):

    dependencies = [
        ("access", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(carry_over, migrations.RunPython.noop)]
