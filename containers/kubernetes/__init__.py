"""Runs as Jobs of a Kubernetes cluster; the only place that imports the kubernetes client.

manifest   what is asked of the cluster for one attempt (pure)
merging    a partial pod template laid over it (pure)
reading    what a Job and its pod say: pending, running, ended, and why (pure)
cluster    the connection, and what its errors mean
feeds      one list-then-watch per worker, namespace and kind
refusals   why there is no pod
container  one attempt; output follows its log
rights     what the worker may do, asked of the cluster

Nothing is imported here: the client takes a third of a second, which other workers need not spend.
"""
