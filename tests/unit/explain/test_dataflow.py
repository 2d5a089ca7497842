"""Who reads what whom wrote, and from which level of memory, by addresses."""

from __future__ import annotations

from made import MACHINE, event

from eyas.explain.dataflow import bytes_by_level, producers

KB, MB = 1 << 10, 1 << 20


def test_readers_depend_on_the_last_writers_of_all_parts():
    events = [
        event("a", 0, writes=((1000, 100),)),
        event("b", 1, writes=((1050, 50),)),
        event("c", 2, reads=((1000, 60), (1, 9)), writes=((2000, 10),)),
        event("d", 3, reads=((1060, 20),), writes=((1000, 100),)),
        event("e", 4, reads=((1000, 100), (2005, 1))),
    ]
    assert producers(events) == [[], [], [0, 1], [1], [2, 3]]


def test_a_command_that_works_in_place_reads_the_old_value():
    events = [event("a", 0, writes=((64, 8),)), event("b", 1, reads=((64, 8),), writes=((64, 8),))]
    events.append(event("c", 2, reads=((64, 8),)))
    assert producers(events) == [[], [0], [1]]


def test_what_was_touched_lately_is_in_a_cache():
    small, weights = (0, 64 * KB), (100 * MB, 20 * MB)
    events = [
        event("write", 0, writes=(small,)),
        event("read", 1, reads=(small,)),
        event("stream", 2, reads=(weights,)),
    ]
    levels = [[round(count) for count in counts] for counts in bytes_by_level(events, MACHINE.levels, 2)]
    # The call before streamed 20 MB since it touched them; so do the weights themselves.
    assert levels[0] == [0, 0, 64 * KB]
    assert levels[1] == [64 * KB, 0, 0]
    assert levels[2] == [0, 0, 20 * MB]


def test_middle_sizes_are_in_the_shared_cache():
    events = [event("a", 0, reads=((0, 5 * MB),)), event("b", 1, reads=((0, 5 * MB),))]
    assert [round(one) for one in bytes_by_level(events, MACHINE.levels, 2)[1]] == [0, 5 * MB, 0]
    # Two private caches of 1 MB hold 1.5 MB together.
    events = [event("a", 0, reads=((0, 3 * MB // 2),))]
    assert [round(one) for one in bytes_by_level(events, MACHINE.levels, 2)[0]] == [3 * MB // 2, 0, 0]
    assert [round(one) for one in bytes_by_level(events, MACHINE.levels, 1)[0]] == [0, 3 * MB // 2, 0]
