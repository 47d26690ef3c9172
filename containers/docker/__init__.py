"""Runs as containers of a Docker engine; the only place that imports the docker SDK.

Of a spec's fields that are not the same everywhere:

* requests weigh (CPU shares, soft memory limit) and reserve nothing; one of ephemeral storage is ignored;
* a limit of ephemeral storage is the size of /tmp where the root is read-only (it lies in memory and counts
  there), and the size of the root where it is not: an engine whose storage driver cannot do that refuses;
* GPUs are device requests; an engine without them refuses the start;
* volumes: paths of the host, the engine's own, scratch folders in memory; those of a cluster are refused,
  and so are serviceAccount and podTemplate (LACKING);
* nodeSelector, tolerations and pullSecret (the worker's Docker config has the credentials) are ignored, and
  the run's log says so;
* secrets are variables, which whoever may use the engine can read.
"""

from containers.docker.engine import DockerOptions
from containers.docker.runtime import DockerRuntime

__all__ = ["DockerOptions", "DockerRuntime"]
