"""A pytest plugin (``-p tests.distribution``): which tests stay together when several processes share them.

Those that start whole systems take minutes, so they begin early and the short ones fill what is
left. A file stays in one process, as its fixtures are made once; but a file of systems is divided
by what its module fixture is made of (a broker, a runtime), and where each test starts a system
of its own, by test.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SYSTEMS = ("tests/faults/", "tests/e2e/")
EACH_ITS_OWN = ("tests/faults/test_many.py", "tests/e2e/test_standalone.py")
# Two files that only compute, beside systems that mostly wait; the rest comes after these.
ORDER = ("tests/unit/schedules/test_walk.py", "tests/unit/test_tooling.py", *SYSTEMS, "tests/contract/")


class Distribution(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """The name of what ``nodeid`` runs together with."""
    file, _, test = nodeid.partition("::")
    if file in EACH_ITS_OWN:
        return nodeid
    if file.startswith(SYSTEMS):
        return f"{file}[{test.partition('[')[2].partition('-')[0].rstrip(']')}]"
    return file


def rank(item: pytest.Item) -> int:
    places = [place for place, begin in enumerate(ORDER) if item.nodeid.startswith(begin)]
    return min(places, default=len(ORDER))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Distribution:
    config.option.loadscopereorder = False  # in the order of the collection, not by the number of tests
    return Distribution(config, log)
