"""What pages of the admin have in common."""

from __future__ import annotations

from typing import Any, NoReturn

from django.http import Http404, HttpRequest

from access.policy import Forbidden


class NotThere:
    """For a ModelAdmin: what is not there, or is another team's, is a 404; Django leads to the front page."""

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> NoReturn:
        raise Http404(f"There is no {opts.verbose_name} {object_id}.")


class ByAccess:
    """For a ModelAdmin: ``may`` says who changes what, by the rules that REST has."""

    opts: Any

    def may(self, request: HttpRequest, what: str, obj: Any = None) -> bool:
        """``what``: add, change or delete; ``obj`` None: any at all."""
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "add")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "delete", obj)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The one thing that is sent to a list is what to delete of it; Django would show the list again."""
        if request.method == "POST" and not self.has_delete_permission(request):
            raise Forbidden(f"You may not delete {self.opts.verbose_name_plural}.")
        return super().changelist_view(request, extra_context)  # type: ignore[misc]

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, Any, Any]:
        """What goes with it (tokens, the pool of a team) asks for no permission of its own."""
        found, counts, needed, kept = super().get_deleted_objects(objs, request)  # type: ignore[misc]
        return found, counts, needed & {self.opts.verbose_name}, kept
