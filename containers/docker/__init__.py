"""Runs as containers of a Docker engine; the only place that imports the docker SDK."""

from containers.docker.engine import DockerOptions
from containers.docker.runtime import DockerRuntime

__all__ = ["DockerOptions", "DockerRuntime"]
