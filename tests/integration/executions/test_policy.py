from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User

from executions.policy import Forbidden, require_member, sees_all, team_ids, teams_seen_by

pytestmark = pytest.mark.django_db


@pytest.fixture
def teams() -> list[Group]:
    return [Group.objects.create(name=name) for name in ("data", "web")]


def user(*teams: Group, **fields: Any) -> User:
    found = User.objects.create_user(f"user{User.objects.count()}", **fields)
    found.groups.set(teams)
    return found


def test_a_member_sees_and_manages_what_is_the_teams(teams: list[Group]) -> None:
    data, web = teams
    mia = user(data)
    assert (sees_all(mia), team_ids(mia), teams_seen_by(mia)) == (False, {data.id}, frozenset({data.id}))
    require_member(mia, data)
    with pytest.raises(Forbidden, match="'web'"):
        require_member(mia, web)


def test_a_superuser_sees_and_manages_all(teams: list[Group]) -> None:
    root = user(is_superuser=True)
    assert (sees_all(root), teams_seen_by(root)) == (True, None)
    for team in teams:
        require_member(root, team)


@pytest.mark.parametrize("superuser", [True, False])
def test_who_is_no_longer_active_sees_nothing(teams: list[Group], superuser: bool) -> None:
    gone = user(*teams, is_active=False, is_superuser=superuser)
    assert teams_seen_by(gone) == frozenset()
    with pytest.raises(Forbidden):
        require_member(gone, teams[0])


def test_staff_alone_sees_nothing_and_neither_does_nobody(teams: list[Group]) -> None:
    for who in (user(is_staff=True), AnonymousUser()):
        assert teams_seen_by(who) == frozenset()
        with pytest.raises(Forbidden):
            require_member(who, teams[0])
