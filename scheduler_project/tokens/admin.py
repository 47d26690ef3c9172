"""Tokens in the admin: made, whose text is shown once; looked at; revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin as UnfoldAdmin

from access.admin_pages import NotThere
from access.models import ApiToken
from access.policy import sees_all
from access.tokens import MadeToken, TokenRequest, create_token, revoke_token, visible_tokens
from executions.admin_cells import NOTHING, time_cell
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import Conflict, InvalidFields

if TYPE_CHECKING:  # at run time the class takes no parameter
    _TokenAdmin = admin.ModelAdmin[ApiToken]
    _TokenForm = forms.ModelForm[ApiToken]
else:
    _TokenAdmin = UnfoldAdmin
    _TokenForm = forms.ModelForm

FORM_NAMES = {"expiresAt": "expires_at"}


class TokenForm(_TokenForm):
    """Saving is making: ``made`` has the text."""

    request: HttpRequest
    made: MadeToken | None = None

    class Meta:
        model = ApiToken
        fields = ("name", "user", "scope", "expires_at")

    def clean(self) -> None:
        super().clean()
        if self.errors:
            return
        given = self.cleaned_data
        asked = TokenRequest(given["name"], given["scope"], given["expires_at"])
        owner = given.get("user") or self.request.user
        try:
            self.made = create_token(owner, asked, self.request.user, utcnow())
        except Conflict as error:
            self.add_error("name", error.message)
        except InvalidFields as error:
            for name, texts in error.errors.items():
                self.add_error(FORM_NAMES.get(name, name), texts)

    def validate_unique(self) -> None:
        """The service says it."""

    def validate_constraints(self) -> None:
        """Likewise."""


class TokenAdmin(NotThere, _TokenAdmin):
    form = TokenForm
    list_display = ("name", "user", "text_begins", "scope", "condition", "last_used", "expires")
    list_filter = ("scope",)
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    actions = ("revoke",)
    ordering = ("user__username", "name")
    show_full_result_count = False
    empty_value_display = NOTHING
    shown: ClassVar = ("name", "user", "text_begins", "scope", "condition", "last_used", "created", "expires")

    # --- who may do what -------------------------------------------------------------------

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """No address of the list asks about digests."""
        return not lookup.startswith("digest") and super().lookup_allowed(lookup, value, request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        return visible_tokens(request.user)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """Anyone of the staff; the queryset holds only what is theirs."""
        return bool(request.user.is_active and request.user.is_staff)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return False

    # --- pages -----------------------------------------------------------------------------

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        if obj is not None:
            return self.shown
        own = ("name", "scope", "expires_at")
        return ("name", "user", "scope", "expires_at") if sees_all(request.user) else own

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        return () if obj is None else self.shown

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type("TokenFormOfRequest", (form,), {"request": request})

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"user": request.user.pk, **super().get_changeform_initial_data(request)}

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> ApiToken:
        token: ApiToken = form.made.token
        token.text = form.made.text  # type: ignore[attr-defined]  # for response_add alone
        return token

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """It is made already, by the service."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing is related to it."""

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: Any = None
    ) -> HttpResponse:
        """The one page that has the text; neither a message nor the session does."""
        context = {**self.admin_site.each_context(request), "title": "The token is made", "opts": self.opts}
        context |= {"token": obj, "text": obj.text}  # type: ignore[attr-defined]
        return TemplateResponse(request, "admin/access/apitoken/made.html", context)

    @admin.action(description="Revoke the selected tokens", permissions=["view"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in queryset:
            revoke_token(token, request.user, utcnow())
            self.log_change(request, token, "Revoked.")
            messages.success(request, f"{token.name} counts no more.")

    # --- what is shown ---------------------------------------------------------------------

    @admin.display(description="Begins with")
    def text_begins(self, token: ApiToken) -> str:
        return f"{token.prefix}…"

    @admin.display(description="Is")
    def condition(self, token: ApiToken) -> str:
        return token.condition(utcnow())

    @admin.display(description="Last used")
    def last_used(self, token: ApiToken) -> str:
        return time_cell(token.last_used_at)

    @admin.display(description="Created")
    def created(self, token: ApiToken) -> str:
        return time_cell(token.created_at)

    @admin.display(description="Expires")
    def expires(self, token: ApiToken) -> str:
        return time_cell(token.expires_at)


admin.site.register(ApiToken, TokenAdmin)
