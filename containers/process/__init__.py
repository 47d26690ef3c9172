"""Runs as local processes: for development and for hosts without a container engine.

What holds here and what does not:

* held: exit code, time limit, cancel, log, survival of the worker, an environment of its own;
* held where Linux lets us make control groups (root on a host): memory, CPU and process limits,
  out of memory told apart, and every descendant found when it is stopped;
* elsewhere memory is held by RLIMIT_AS (address space, each process for itself; a program that
  runs into it fails in its own way, so the reason is "failed"), CPU and process limits are not
  held, and a descendant that leaves both session and environment behind is not found;
* not held: network, read-only root, ephemeral storage, GPUs, and what is to be reserved (requests).
  A process runs as the worker's user and can read and kill
  what that user can; what it does to its own group or its parent is its failure, not a loss.
  A spec is refused that names an image, or asks for a user, volumes, a network, GPUs or whatever
  else LACKING has.
"""

from containers.process.runtime import ProcessOptions, ProcessRuntime

__all__ = ["ProcessOptions", "ProcessRuntime"]
