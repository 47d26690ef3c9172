from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from executions.bus.tally import Tally

SIZES = st.lists(st.integers(0, 12), min_size=1, max_size=4)
WORDS = st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.booleans()), max_size=60)


@given(SIZES, WORDS)
def test_any_order_of_single_and_multiple_acks_and_nacks_is_counted(
    sizes: list[int], words: list[tuple[int, bool, bool]]
) -> None:
    tally = Tally()
    batches = [tally.reserve(size) for size in sizes]
    open_tags = {tag for tags in batches for tag in tags}
    refused: set[int] = set()
    for tag, multiple, good in words:
        spoken = {other for other in open_tags if other == tag or (multiple and other < tag)}
        if not spoken or tag > sum(sizes):
            continue
        (tally.acknowledge if good else tally.refuse)(tag, multiple)
        open_tags -= spoken
        refused |= set() if good else spoken
        assert [tally.unsettled(tags) for tags in batches] == [len(open_tags & set(tags)) for tags in batches]
    for tags in batches:
        assert tally.take_refused(tags) == refused & set(tags)
        assert tally.take_refused(tags) == set()


def test_acks_that_come_again_or_late_change_nothing() -> None:
    tally = Tally()
    tags = tally.reserve(3)
    tally.acknowledge(2, True)
    tally.acknowledge(1, False)
    tally.acknowledge(2, True)
    assert tally.unsettled(tags) == 1
