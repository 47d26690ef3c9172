"""The shapes of names that Kubernetes takes; held to on every runtime, so that a job can move."""

from __future__ import annotations

import re

_DNS = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
OBJECT_NAME = re.compile(rf"{_DNS}(?:\.{_DNS})*", re.ASCII)
OBJECT_HELP = "small letters, digits, '-' and '.', such as team-account"
LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
LABEL_NAME = re.compile(
    rf"(?:(?=[^/]{{1,253}}/){OBJECT_NAME.pattern}/)?(?=.{{1,63}}$){LABEL_VALUE.pattern}", re.ASCII
)
LABEL_HELP = "letters, digits, '-', '_' and '.', at most 63, such as nightly or example.org/tier"
