"""How the admin looks: unfold's settings."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static

from scheduler_project.admin_sidebar import navigation

NAME = "Punctual"

# The accents are blue: purple, unfold's own, is too near to the states' colours.
_BLUE = {
    "50": "#eff6ff",
    "100": "#dbeafe",
    "200": "#bfdbfe",
    "300": "#93c5fd",
    "400": "#60a5fa",
    "500": "#3b82f6",
    "600": "#2563eb",
    "700": "#1d4ed8",
    "800": "#1e40af",
    "900": "#1e3a8a",
    "950": "#172554",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": NAME,
    "SITE_HEADER": NAME,
    "SITE_SUBHEADER": "Jobs and their runs",
    "SITE_URL": None,
    "SITE_SYMBOL": "schedule",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda _request: static("punctual/icon.svg")}
    ],
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "COLORS": {"primary": _BLUE},
    "STYLES": [lambda _request: static("punctual/admin.css")],
    "SCRIPTS": [lambda _request: static("punctual/local-times.js")],
    "SIDEBAR": {"navigation": navigation},
}
