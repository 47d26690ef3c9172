"""Who may do what: teams, levels, the scope of a request's token."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User

from access.levels import Level
from access.policy import (
    Forbidden,
    System,
    has_permission,
    level_of,
    may,
    require,
    require_permission,
    sees_all,
    team_ids,
    teams_seen_by,
)
from access.roles import ROLES, make_role_groups, role_groups, teams

pytestmark = pytest.mark.django_db


@pytest.fixture
def data_and_web() -> list[Group]:
    return [Group.objects.create(name=name) for name in ("data", "web")]


def user(*groups: Group, permissions: tuple[str, ...] = (), **fields: Any) -> User:
    found = User.objects.create_user(f"user{User.objects.count()}", **fields)
    found.groups.set(groups)
    found.user_permissions.set(
        [Permission.objects.get(content_type__app_label="access", codename=name) for name in permissions]
    )
    return found


def role(name: str) -> Group:
    return Group.objects.get(name=name)


def with_scope(who: User, scope: Level) -> User:
    """As the user of a request that came with a token of this scope."""
    setattr(who, "token_scope", scope)  # noqa: B010 -- no attribute that Django's type knows
    return who


def test_a_member_sees_and_manages_what_is_the_teams(data_and_web: list[Group]) -> None:
    data, web = data_and_web
    mia = user(data)
    assert (sees_all(mia), team_ids(mia), teams_seen_by(mia)) == (False, {data.id}, frozenset({data.id}))
    require(mia, Level.EDIT, data)
    for team in (web, web.id):
        with pytest.raises(Forbidden, match="not a member of the team 'web'"):
            require(mia, Level.VIEW, team)


def test_a_superuser_sees_and_manages_all(data_and_web: list[Group]) -> None:
    root = user(is_superuser=True)
    assert (sees_all(root), teams_seen_by(root)) == (True, None)
    for team in data_and_web:
        require(root, Level.EDIT, team)


@pytest.mark.parametrize("superuser", [True, False])
def test_who_is_no_longer_active_sees_nothing(data_and_web: list[Group], superuser: bool) -> None:
    gone = user(*data_and_web, is_active=False, is_superuser=superuser)
    assert (teams_seen_by(gone), level_of(gone)) == (frozenset(), Level.NONE)
    with pytest.raises(Forbidden):
        require(gone, Level.VIEW, data_and_web[0])


def test_staff_alone_sees_nothing_and_neither_does_nobody(data_and_web: list[Group]) -> None:
    for who in (user(is_staff=True), AnonymousUser()):
        assert teams_seen_by(who) == frozenset()
        with pytest.raises(Forbidden):
            require(who, Level.VIEW, data_and_web[0])


def test_a_part_of_the_system_may_do_all(data_and_web: list[Group]) -> None:
    system = System("the sweep")
    require(system, Level.EDIT, data_and_web[0])
    assert (teams_seen_by(system), system.get_username()) == (None, "the sweep")
    assert has_permission(system, "jobs.add_pool")


@pytest.mark.parametrize(
    ("groups", "permissions", "level"),
    [
        ((), (), Level.EDIT),  # a plain member
        (("viewers",), (), Level.VIEW),
        (("operators",), (), Level.OPERATE),
        (("editors",), (), Level.EDIT),
        (("viewers", "operators"), (), Level.OPERATE),  # the highest counts
        ((), ("view",), Level.VIEW),
        (("viewers",), ("operate",), Level.OPERATE),
    ],
)
def test_a_role_narrows_what_a_member_may_do(
    data_and_web: list[Group], groups: tuple[str, ...], permissions: tuple[str, ...], level: Level
) -> None:
    data, web = data_and_web
    mia = user(data, *(role(name) for name in groups), permissions=permissions)
    assert level_of(mia) is level
    assert [asked for asked in Level if asked and may(mia, asked, data.id)] == [
        asked for asked in Level if Level.NONE < asked <= level
    ]
    assert not may(mia, Level.VIEW, web.id)


def test_a_refusal_says_what_is_needed_and_who_gives_it(data_and_web: list[Group]) -> None:
    mia = user(data_and_web[0], role("viewers"))
    with pytest.raises(Forbidden) as refusal:
        require(mia, Level.OPERATE, data_and_web[0])
    assert refusal.value.message == (
        "This needs the right to operate in the team 'data':"
        " an administrator gives it by the group 'operators'."
    )


@pytest.mark.parametrize("superuser", [True, False])
@pytest.mark.parametrize("scope", [Level.VIEW, Level.OPERATE, Level.EDIT])
def test_a_token_narrows_whoever_it_belongs_to(
    data_and_web: list[Group], superuser: bool, scope: Level
) -> None:
    who = with_scope(user(data_and_web[0], is_superuser=superuser), scope)
    assert level_of(who) is scope
    assert has_permission(who, "jobs.add_pool") is (superuser and scope is Level.EDIT)
    if scope < Level.EDIT:
        with pytest.raises(Forbidden, match=r"this token's scope is '\w+', and 'edit' is needed"):
            require(who, Level.EDIT, data_and_web[0])


def test_a_token_widens_nothing(data_and_web: list[Group]) -> None:
    who = with_scope(user(data_and_web[0], role("viewers")), Level.EDIT)
    assert level_of(who) is Level.VIEW
    with pytest.raises(Forbidden, match="group 'operators'"):
        require(who, Level.OPERATE, data_and_web[0])


def test_what_belongs_to_no_team_needs_a_permission_and_the_level() -> None:
    mia = user()
    with pytest.raises(Forbidden, match=r"needs the permission jobs\.add_pool"):
        require_permission(mia, "jobs.add_pool")
    viewer = user(role("viewers"))
    viewer.user_permissions.add(Permission.objects.get(codename="add_pool"))
    with pytest.raises(Forbidden, match="right to edit"):
        require_permission(viewer, "jobs.add_pool")


def test_a_migration_makes_the_roles_which_are_no_teams() -> None:
    assert set(role_groups().values_list("name", flat=True)) == set(ROLES)
    assert list(teams()) == []
    mia = user(role("editors"))
    assert teams_seen_by(mia) == frozenset()


@pytest.mark.parametrize("carried", [(), ("edit",), ("view", "operate", "edit")])
def test_a_role_gives_what_its_name_says_whatever_it_carries(carried: tuple[str, ...]) -> None:
    viewers = role("viewers")
    viewers.permissions.set(Permission.objects.filter(content_type__app_label="access", codename__in=carried))
    mia = user(viewers)
    assert (level_of(mia), team_ids(mia)) == (Level.VIEW, set())
    make_role_groups()
    assert [permission.codename for permission in viewers.permissions.all()] == ["view"]


def test_a_team_gives_a_permission_and_lifts_no_role(data_and_web: list[Group]) -> None:
    data, _ = data_and_web
    data.permissions.add(Permission.objects.get(content_type__app_label="access", codename="operate"))
    assert level_of(user(data)) is Level.OPERATE
    assert level_of(user(data, role("viewers"))) is Level.VIEW


def test_a_group_that_has_the_name_of_a_role_is_one() -> None:
    role("operators").delete()
    group = Group.objects.create(name="operators")
    mia = user(group)
    assert (level_of(mia), team_ids(mia)) == (Level.OPERATE, set())
