"""A pytest plugin (``-p tests.distribution``): which tests stay together when several processes share them.

Those that start whole systems take minutes, so they begin early and the short ones fill what is
left. A file stays in one process, as its fixtures are made once; but a file of systems, or of what all
runtimes promise, is divided by what its fixture is made of (a broker, a runtime), and where each test
starts a system of its own, by test. ONE_SYSTEM: what their tests' parameters are is done to one and the same.

One of those that fails is tried again, twice at most, and counted as ``rerun``: each watches a dozen
processes by the clock, and a machine that stalls for a second spoils it. So is, once, one that asks real
services. What is broken fails each time.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SYSTEMS = ("tests/faults/", "tests/e2e/")
WATCHED = (*SYSTEMS, "tests/browser/", "tests/contract/")
TRIES = {**dict.fromkeys(WATCHED, 2), "tests/integration/": 1}
"""How often more."""
RUNTIMES = "tests/contract/test_runtime_contract.py"
EACH_ITS_OWN = ("tests/faults/test_many.py", "tests/e2e/test_standalone.py")
ONE_SYSTEM = ("tests/faults/test_servers.py", "tests/faults/test_cuts.py", "tests/faults/test_hosts.py")
# Two files that only compute, beside systems that mostly wait; the rest comes after these.
ORDER = ("tests/unit/schedules/test_walk.py", "tests/unit/test_tooling.py", *WATCHED)


class Distribution(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """The name of what ``nodeid`` runs together with."""
    file, _, test = nodeid.partition("::")
    if file in EACH_ITS_OWN:
        return nodeid
    if file in ONE_SYSTEM:
        return file
    if file.startswith(SYSTEMS) or file == RUNTIMES:
        return f"{file}[{test.partition('[')[2].partition('-')[0].rstrip(']')}]"
    return file


def rank(item: pytest.Item) -> int:
    places = [place for place, begin in enumerate(ORDER) if item.nodeid.startswith(begin)]
    return min(places, default=len(ORDER))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=rank)
    for item in items:
        if more := next((more for place, more in TRIES.items() if item.nodeid.startswith(place)), 0):
            item.add_marker(pytest.mark.flaky(reruns=more))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Distribution:
    config.option.loadscopereorder = False  # in the order of the collection, not by the number of tests
    return Distribution(config, log)
