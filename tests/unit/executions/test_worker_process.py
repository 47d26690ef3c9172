from __future__ import annotations

from executions.worker.defaults import configured_defaults


def test_plain_processes_are_given_no_image_that_nobody_asked_for(settings):
    settings.PUNCTUAL_RUNTIME = "docker"
    assert configured_defaults().images == settings.PUNCTUAL_IMAGES
    settings.PUNCTUAL_RUNTIME = "process"
    assert configured_defaults().images == {}
