"""Addresses below /api/v1/users and /api/v1/groups."""

from django.urls import path

from scheduler_project.accounts.groups import GroupDetail, GroupList
from scheduler_project.accounts.users import UserDetail, UserList

urlpatterns = [
    path("users", UserList.as_view(), name="user-list"),
    path("users/<str:user_id>", UserDetail.as_view(), name="user-detail"),
    path("groups", GroupList.as_view(), name="group-list"),
    path("groups/<str:group_id>", GroupDetail.as_view(), name="group-detail"),
]
