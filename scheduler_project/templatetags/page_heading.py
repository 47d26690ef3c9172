"""``{% page_heading %}``: where a page of the admin is, by the names of the sidebar."""

from __future__ import annotations

from typing import Any

from django import template
from django.db.models import Model
from django.urls import reverse

from scheduler_project.admin_sidebar import titles

register = template.Library()
NAMED_ELSEWHERE = ("change", "cl")
"""Variables of pages whose own title says no more than their list and their object: Django's and unfold's."""


@register.inclusion_tag("admin/page_heading.html", takes_context=True)
def page_heading(context: template.Context) -> dict[str, Any]:
    """``parts``: the list, the object and what is done to it, as far as the page has these."""
    model, title = _model_of(context), str(context.get("title") or "").partition(":")[0]
    if model is None:
        return {"parts": [{"title": str(context.get("content_title") or title)}]}
    label = model._meta.label_lower
    parts = [
        _part(model, "changelist", titles().get(label) or str(model._meta.verbose_name_plural).capitalize())
    ]
    thing = context.get("original") or context.get("object")
    if isinstance(thing, Model) and type(thing) is model:
        parts.append(_part(model, "change", str(getattr(thing, "caption", thing)), thing.pk))
    if title and not any(context.get(name) for name in NAMED_ELSEWHERE) and title != parts[-1]["title"]:
        parts.append({"title": title})
    return {"parts": parts}


def _model_of(context: template.Context) -> type[Model] | None:
    opts = context.get("opts") or getattr(getattr(context.get("model_admin"), "model", None), "_meta", None)
    model: type[Model] | None = getattr(opts, "model", None)
    return model


def _part(model: type[Model], page: str, title: str, *arguments: Any) -> dict[str, str]:
    named = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    return {"title": title, "link": reverse(named, args=arguments)}
