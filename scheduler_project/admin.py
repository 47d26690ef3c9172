"""What other applications bring, in the admin's look: users, groups, what Celery keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from auditlog import admin as _auditlog  # noqa: F401 -- it registers its own page first
from django import forms
from django.contrib import admin
from django.contrib.auth import admin as auth
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django_celery_results import admin as celery_results  # it registers its own two pages first
from django_celery_results.models import GroupResult, TaskResult
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from access.admin_pages import ByAccess, NotThere
from access.groups import join_as_first, may_look, may_on_groups, require_group_name
from access.policy import Forbidden, sees_all
from access.trail.models import ChangeRecord
from access.users import (
    keep_a_superuser,
    may_on_users,
    require_free_name,
    seen_definition,
    seen_group_names,
)
from scheduler_project.admin_changes import ChangeRecordAdmin
from scheduler_project.kernel.errors import Conflict, InvalidFields
from scheduler_project.tokens import admin as tokens_admin  # noqa: F401 -- it registers its page

if TYPE_CHECKING:  # at run time the class takes no parameter
    _ResultAdmin = admin.ModelAdmin[TaskResult]
    _UserAdmin = auth.UserAdmin[User]
    _GroupAdmin = auth.GroupAdmin
    _GroupForm = forms.ModelForm[Group]
else:
    _GroupForm = forms.ModelForm

    class _ResultAdmin(celery_results.TaskResultAdmin, ModelAdmin):
        pass

    class _UserAdmin(auth.UserAdmin, ModelAdmin):
        pass

    class _GroupAdmin(auth.GroupAdmin, ModelAdmin):
        pass


RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")  # what makes somebody more than he was

admin.site.unregister([GroupResult, TaskResult])  # no task is sent in a group
admin.site.unregister([User, Group])
admin.site.unregister(ChangeRecord)
admin.site.register(ChangeRecord, ChangeRecordAdmin)


class FreeName:
    """For a form of users: their names are as over REST."""

    instance: User
    cleaned_data: dict[str, Any]

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if name != self.instance.username:
            try:
                require_free_name(name, self.instance)
            except Conflict as error:
                raise ValidationError(error.message) from error
            except InvalidFields as error:
                raise ValidationError(error.errors["username"]) from error
        return name


class NewUserForm(FreeName, UserCreationForm):  # type: ignore[misc]
    pass


class UserForm(FreeName, UserChangeForm):  # type: ignore[misc]
    """One active superuser is always left."""

    def clean(self) -> None:
        super().clean()
        stays = self.cleaned_data.get("is_active", True) and self.cleaned_data.get("is_superuser", True)
        if not stays:
            try:
                keep_a_superuser(User.objects.get(pk=self.instance.pk))
            except Conflict as error:
                raise ValidationError(error.message) from error


class PasswordForm(AdminPasswordChangeForm):  # type: ignore[misc]
    """One who can log in."""

    def clean(self) -> Any:
        cleaned = super().clean()
        if not self.cleaned_data["set_usable_password"]:
            try:
                keep_a_superuser(self.user)
            except Conflict as error:
                self.add_error("password1", error.message)  # of this page's fields one that is shown
        return cleaned


@admin.register(User)
class UserAdmin(ByAccess, NotThere, _UserAdmin):
    form = UserForm
    add_form = NewUserForm
    change_password_form = PasswordForm
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ()  # Django's two boxes are wider than a phone and name their parts wrongly

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Who may change users, and is no superuser, makes nobody more than he is."""
        fields = super().get_readonly_fields(request, obj)
        return fields if sees_all(request.user) else (*fields, *RIGHTS, "groups_seen")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> User | None:
        found: Any = super().get_object(request, object_id, from_field)
        if found is not None:
            found.seen_groups = seen_definition(found, seen_group_names(request.user)).groups
        return cast("User | None", found)

    @admin.display(description="Groups")
    def groups_seen(self, user: Any) -> str:
        return ", ".join(user.seen_groups)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Of groups those that one may see: in place of the field, which names all."""
        return [
            (title, {**of, "fields": tuple(self._without_groups(request, of["fields"], "groups_seen"))})
            for title, of in super().get_fieldsets(request, obj)
        ]

    def get_list_filter(self, request: HttpRequest) -> Any:
        return self._without_groups(request, super().get_list_filter(request))

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """An address may ask for the members of any group, by its number too."""
        if lookup.startswith("groups") and not may_look(request.user, "group"):
            return False
        return super().lookup_allowed(lookup, value, request)

    def _without_groups(self, request: HttpRequest, names: Any, *instead: str) -> list[Any]:
        if may_look(request.user, "group"):
            return list(names)
        return [other for name in names for other in (instead if name == "groups" else (name,))]

    def may(self, request: HttpRequest, what: str, obj: User | None = None) -> bool:
        """Nor does he take over an account that may do more: by its password, which this is asked for too."""
        return may_on_users(request.user, what, obj)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        with transaction.atomic():  # so that no two superusers give up their passwords at once
            return super().user_change_password(request, id, form_url)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        self.delete_queryset(request, User.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        with transaction.atomic():
            try:
                keep_a_superuser(*queryset)
            except Conflict as error:
                raise Forbidden(error.message) from error
            super().delete_queryset(request, queryset)


class GroupForm(_GroupForm):
    """Its name is as over REST."""

    by: User

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self.instance.name:
            try:
                require_group_name(name, self.by)
            except Forbidden as error:
                raise ValidationError(error.message) from error
            except InvalidFields as error:
                raise ValidationError(error.errors["name"]) from error
        return name


@admin.register(Group)
class GroupAdmin(ByAccess, NotThere, _GroupAdmin):
    """A team: what owns jobs, and who its members are."""

    form = GroupForm
    filter_horizontal = ()

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        """Permissions are a superuser's to give."""
        fields = super().get_readonly_fields(request, obj)
        return fields if sees_all(request.user) else (*fields, "permissions")

    def may(self, request: HttpRequest, what: str, obj: Group | None = None) -> bool:
        return may_on_groups(request.user, what, obj)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type("GroupFormOfRequest", (form,), {"by": request.user})

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if not change:
            join_as_first(form.instance, request.user)


@admin.register(TaskResult)
class TaskResultAdmin(NotThere, _ResultAdmin):
    """Made by the workers alone."""

    date_hierarchy = None
    list_display = ("task_id", "task_name", "date_done", "status", "worker")
    list_filter: ClassVar[Any] = ("status",)
    search_fields = ("task_id",)
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
