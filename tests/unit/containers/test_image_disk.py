from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from containers.docker.disk import PulledImage, mark_of, too_many

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def image(name: str, size: int, hours_ago: int) -> PulledImage:
    return PulledImage((name,), size, NOON - timedelta(hours=hours_ago))


@pytest.mark.parametrize(
    ("in_use", "limit", "gone"),
    [(0, 60, ""), (0, 59, "c"), (0, 50, "c"), (0, 49, "ca"), (0, 0, "cab"), (40, 70, "ca"), (100, 60, "cab")],
)
def test_what_was_used_longest_ago_goes_first_and_no_more_than_need_be(
    in_use: int, limit: int, gone: str
) -> None:
    images = [image("a", 20, 2), image("b", 30, 1), image("c", 10, 3)]
    assert [found.names[0] for found in too_many(images, in_use, limit)] == list(gone)


def test_a_mark_names_the_image_as_the_engine_does() -> None:
    assert mark_of("busybox", "p") == mark_of("busybox:latest", "p") != mark_of("busybox:stable", "p")
    assert mark_of("h:5000/a/b:1", "p").startswith("p:")
