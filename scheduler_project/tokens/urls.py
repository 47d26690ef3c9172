"""Addresses below /api/v1/tokens."""

from django.urls import path

from scheduler_project.tokens.api import TokenDetail, TokenList

urlpatterns = [
    path("tokens", TokenList.as_view(), name="token-list"),
    path("tokens/<str:token_id>", TokenDetail.as_view(), name="token-detail"),
]
