"""A small stand-in for a Kubernetes cluster: a real HTTP server, and programs that really run.

It implements what Punctual asks of a cluster, as the Kubernetes API reference (1.3x) states it:

    store        versions, conflicts, finalizers, graceful deletion, watch history and its end (410)
    selectors    labels and fields
    access       bearer tokens, RBAC by the very manifests in deploy/kubernetes, access reviews
    http         requests: CRUD, lists in pages, watches with bookmarks, logs, Status errors
    controllers  the Job's controller (conditions, deadline, failure policy, TTL), garbage collection
    scheduling   a node for each pod, or a reason why there is none
    kubelet      one node: images, environment, a process for each pod, its states, its end
    nodelog      a container's log as a node keeps it: a time stamp a line, long lines in parts
    faults       what a test can make go wrong
    cluster      all of it together

What it has not: networks, real images (the words run as processes of this host), volumes, admission.
"""

from tests.kubernetes_api.cluster import StandInCluster

__all__ = ["StandInCluster"]
