"""The archive of logs in an S3-compatible store, by django-storages; imported only where one is set.

Its address and credentials are those that every program of its kind reads: AWS_ENDPOINT_URL,
AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_DEFAULT_REGION, or whatever else boto3 finds.
"""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from storages.backends.s3 import S3Storage

_CONFIG = Config(
    connect_timeout=5,
    read_timeout=30,
    retries={"mode": "standard", "max_attempts": 3},
    s3={"addressing_style": "path"},  # stores other than Amazon's seldom have a host name for each bucket
)


class LogBucket(S3Storage):  # type: ignore[misc]  # untyped
    def __init__(self, bucket_name: str, location: str) -> None:
        super().__init__(
            bucket_name=bucket_name,
            location=location,
            client_config=_CONFIG,
            file_overwrite=True,
            default_acl=None,
            gzip=False,
            max_memory_size=8 * 1024 * 1024,
        )

    def remove_folder(self, name: str) -> None:
        """A thousand objects a request; one by one, as Django's storages do it, a day could take hours."""
        prefix = "/".join(part for part in (self.location.strip("/"), name) if part)
        bucket: Any = self.bucket
        bucket.objects.filter(Prefix=f"{prefix}/").delete()
