"""Browsers of users in the admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from executions.store import Store

Browser = Callable[..., Client]


@pytest.fixture
def browser_of(db: None, store: Store) -> Browser:
    """A browser in which a user of the staff, in these groups, has logged in."""

    def make(name: str, *groups: str, **fields: Any) -> Client:
        user, _ = User.objects.get_or_create(username=name)
        User.objects.filter(id=user.id).update(is_staff=True, **fields)
        user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
        user.refresh_from_db()
        browser = Client()
        browser.force_login(user)
        return browser

    return make
