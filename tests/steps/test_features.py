"""Features: windows that look back from each row, the rows before it, and what a key remembers for them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headrace.steps import aggregate, features, seen
from headrace.steps.row import DUPLICATE, LATE, MILLI, NAN, TOO_MANY, USED, Row
from tests.properties import DEPTH
from tests.steps.driving import COLLECT, COUNT, MAX, MIN, row

HOUR = 60 * MIN
TOP = aggregate.Spec(name="all", kind="top", of="int", n=1_000)
FIRST, LAST = (aggregate.Spec(name=kind, kind=kind, of="int") for kind in ("first", "last"))


def spec_of(*windows: tuple[int, int], last: int = 1, **more: Any) -> features.Spec:
    """Over windows of (size, delay): how many rows, and their values in order; and the value of the rows before."""
    made = tuple(
        features.Window(size=size, delay=delay, aggregates=(COUNT, COLLECT), places=(-1, 0)) for size, delay in windows
    )
    given: dict[str, Any] = {"ttl": HOUR, "lateness": 0, "most": 100, "kept": ((0,),)} | more
    return features.Spec(windows=made, last=((0, last),) if last else (), **given)


def told(spec: features.Spec, *rows: tuple[float, Any]) -> list[tuple[Any, ...]]:
    """The features of rows at these minutes, in the order they come, before any watermark."""
    state = features.fresh(spec)
    return [features.step(spec, state, row(int(at * MIN), value), None)[1] for at, value in rows]


def test_fe1_a_window_has_the_row_itself_and_what_is_less_than_its_size_before() -> None:
    spec = spec_of((10 * MIN, 0), last=0)
    assert told(spec, (0, 1), (9.99, 2), (10, 3), (21, 4)) == [(1, [1]), (2, [1, 2]), (2, [2, 3]), (1, [4])]


def test_fe2_a_delayed_window_ends_that_much_earlier_and_may_be_empty() -> None:
    spec = spec_of((10 * MIN, 5 * MIN), last=0)
    assert told(spec, (0, 1), (4, 2), (5, 3), (9, 4), (15, 5)) == [
        (0, []), (0, []), (1, [1]), (2, [1, 2]), (3, [2, 3, 4]),
    ]  # fmt: skip


def test_fe3_the_rows_before_are_told_the_latest_first_and_not_the_row_itself() -> None:
    assert told(spec_of(), (0, 1), (1, 2), (50, 3)) == [(None,), (1,), (2,)]
    assert told(spec_of(last=2), (0, 1), (1, 2), (50, 3)) == [([],), ([1],), ([2, 1],)]


def test_fe4_an_older_row_is_put_in_its_place_and_what_was_told_stands() -> None:
    spec = spec_of((10 * MIN, 0))
    assert told(spec, (0, 1), (8, 2), (4, 3), (12, 4)) == [
        (1, [1], None), (2, [1, 2], 1), (2, [1, 3], 1), (3, [3, 2, 4], 2),
    ]  # fmt: skip


def test_fe4_rows_of_one_time_follow_each_other_as_they_come() -> None:
    assert told(spec_of((MIN, 0)), (0, 1), (0, 2), (0, 3)) == [(1, [1], None), (2, [1, 2], 1), (3, [1, 2, 3], 2)]


def test_fe5_after_a_silence_of_ttl_the_key_begins_anew() -> None:
    spec = spec_of((2 * HOUR, 0))
    assert told(spec, (0, 1), (59, 2), (119, 3), (59.5, 4)) == [
        (1, [1], None), (2, [1, 2], 1), (1, [3], None), (3, [1, 2, 4], 2),
    ]  # fmt: skip


def test_fe6_a_row_further_behind_than_lateness_is_late_and_leaves_no_trace() -> None:
    spec = spec_of((MIN, 0), lateness=5 * MIN)
    state = features.fresh(spec)
    ten = 10 * MIN // MILLI
    assert features.step(spec, state, row(5 * MIN - 1, 1), ten) == (LATE, ())
    assert state.empty
    assert features.step(spec, state, row(5 * MIN, 1), ten)[0] == USED


def test_fe7_rows_that_nobody_can_ask_for_are_dropped_those_before_are_kept_until_ttl() -> None:
    spec = spec_of((10 * MIN, 0), lateness=5 * MIN)
    state = features.fresh(spec)
    for at in (0, 1, 2, 20):
        features.step(spec, state, row(at * MIN, at), None)

    def left(minute: int) -> list[int]:
        features.on_time(spec, state, minute * MIN // MILLI)
        return [known.time // MIN for known in state.inputs[0]]

    assert left(15) == [1, 2, 20]
    assert left(16) == [2, 20]
    assert left(24) == [2, 20]  # a row of 19 could still come: the one before it is asked for
    assert left(25) == [20]
    assert features.due(spec, state) == 85 * MIN // MILLI
    assert left(84) == [20]
    assert left(85) == []
    assert features.due(spec, state) is None


def test_a_quiet_key_is_woken_when_its_windows_are_empty_and_when_it_is_forgotten() -> None:
    spec = spec_of((10 * MIN, 0))
    state = features.fresh(spec)
    for at in (0, 1, 2):
        features.step(spec, state, row(at * MIN, at), None)
    assert features.due(spec, state) == 12 * MIN // MILLI
    features.on_time(spec, state, 12 * MIN // MILLI)
    assert features.due(spec, state) == 62 * MIN // MILLI


def test_fe8_a_key_that_is_full_refuses_a_row_until_others_can_go() -> None:
    spec = spec_of((10 * MIN, 0), most=2)
    state = features.fresh(spec)
    verdicts = [features.step(spec, state, row(at * MIN, at), None)[0] for at in (0, 1, 2)]
    assert verdicts == [USED, USED, TOO_MANY]
    assert features.step(spec, state, row(12 * MIN, 3), 11 * MIN // MILLI) == (USED, (1, [3], 1))


def test_what_is_known_at_a_time_is_what_a_row_would_be_told_but_for_the_row_itself() -> None:
    spec = spec_of((10 * MIN, 0), (10 * MIN, 5 * MIN), last=2)
    state = features.fresh(spec)
    for at in (0, 4, 4, 8):
        features.step(spec, state, row(at * MIN, at), None)
    assert features.known_at(spec, state, 4 * MIN - 1) == (1, [0], 0, [], [0])
    assert features.known_at(spec, state, 4 * MIN) == (3, [0, 4, 4], 0, [], [4, 4])
    assert features.known_at(spec, state, 13 * MIN) == (3, [4, 4, 8], 4, [0, 4, 4, 8], [8, 4])
    assert features.known_at(spec, state, 67 * MIN) == (0, [], 0, [], [8, 4])
    assert features.known_at(spec, state, 68 * MIN) == (0, [], 0, [], [])
    assert features.known_at(spec, features.fresh(spec), 0) == (0, [], 0, [], [])


def two_of(size: int, delay: int = 0, **more: Any) -> features.Spec:
    """Rows that are told of rows of another input."""
    over = features.Window(size=size, delay=delay, aggregates=(COUNT, COLLECT), places=(-1, 0), input=1)
    given: dict[str, Any] = {"ttl": HOUR, "lateness": 0, "most": 100, "kept": ((0,), (0,))} | more
    return features.Spec(windows=(over,), last=(), **given)


def test_fe9_rows_of_another_input_are_remembered_and_told_to_rows_of_the_first() -> None:
    spec = two_of(10 * MIN)
    state = features.fresh(spec)
    assert features.step(spec, state, row(0, 7), None, 1) == (USED, ())
    assert features.step(spec, state, row(5 * MIN, 8), None, 1) == (USED, ())
    told = [features.step(spec, state, row(at * MIN, 0), None)[1] for at in (0, 5, 4, 12, 15)]
    assert told == [(1, [7]), (2, [7, 8]), (1, [7]), (1, [8]), (0, [])]


def test_fe9_a_silence_of_the_key_cuts_no_window_over_another_input() -> None:
    spec = two_of(3 * HOUR, ttl=HOUR)
    state = features.fresh(spec)
    features.step(spec, state, row(0, 7), None, 1)
    assert features.step(spec, state, row(2 * HOUR, 0), None)[1] == (1, [7])


def test_fe9_a_row_that_is_remembered_is_late_when_nobody_can_ask_for_it() -> None:
    spec = two_of(10 * MIN, 5 * MIN, lateness=2 * MIN)
    state = features.fresh(spec)
    hour = 60 * MIN // MILLI
    assert features.step(spec, state, row(43 * MIN, 1), hour, 1) == (LATE, ())
    assert features.step(spec, state, row(43 * MIN + 1, 2), hour, 1) == (USED, ())
    assert features.step(spec, state, row(58 * MIN, 0), hour) == (USED, (1, [2]))


def test_fe9_each_input_is_forgotten_in_its_own_time_and_has_room_of_its_own() -> None:
    spec = replace(two_of(10 * MIN, most=2, ttl=5 * MIN), last=((0, 1),))
    state = features.fresh(spec)
    assert [features.step(spec, state, row(at, at), None, 1)[0] for at in (0, 1, 2)] == [USED, USED, TOO_MANY]
    assert features.step(spec, state, row(0, 0), None)[0] == USED
    assert features.due(spec, state) == 5 * MIN // MILLI
    features.on_time(spec, state, 5 * MIN // MILLI)
    assert [len(rows) for rows in state.inputs] == [0, 2]
    assert features.due(spec, state) == 10 * MIN // MILLI + 1
    features.on_time(spec, state, 10 * MIN // MILLI + 1)
    assert state.empty


def test_fe10_a_row_whose_id_the_key_was_told_of_is_a_duplicate_or_late() -> None:
    """For every watermark: a row that comes again as it was is not told twice, whatever else is remembered."""
    for windows, last in (((10 * MIN, 0),), 0), ((), 0), ((), 1), (((MIN, 5 * MIN),), 2):
        spec = spec_of(*windows, last=last, lateness=3 * MIN, once="text", ttl=2 * MIN)
        for minute in range(60):
            state = features.fresh(spec)
            first = row(20 * MIN, 0)._replace(args=(1, "p1"))
            assert features.step(spec, state, first, None)[0] == USED
            for later in range(21, 24):
                features.step(spec, state, row(later * MIN, 0)._replace(args=(1, f"p{later}")), None)
            watermark = minute * MIN // MILLI
            features.on_time(spec, state, watermark)
            assert features.step(spec, state, first, watermark)[0] == (LATE if minute > 23 else DUPLICATE)


def test_fe10_an_id_is_known_as_long_as_its_row_also_at_another_time() -> None:
    spec = spec_of((10 * MIN, 0), last=0, once="int")
    state = features.fresh(spec)
    again = lambda at, before: features.step(spec, state, row(at * MIN, 0)._replace(args=(5, 1)), before)  # noqa: E731
    assert again(0, None) == (USED, (1, [5]))
    assert again(3, None) == (DUPLICATE, ())
    features.on_time(spec, state, 10 * MIN // MILLI)
    assert again(12, 10 * MIN // MILLI) == (USED, (1, [5]))  # what no window can ask for is forgotten, its id too


def test_fe11_what_was_seen_names_the_rows_that_a_vector_is_over() -> None:
    spec = two_of(10 * MIN, seen=True, topics=("labels", "payments"))
    spec = replace(spec, windows=(*spec.windows, features.Window(size=MIN, delay=0, aggregates=(COUNT,), places=(-1,))))
    state = features.fresh(spec)

    def came(minute: float, source: int, partition: int, offset: int, input: int = 0) -> str:
        topic = spec.topics[source] if source < 2 else "made"
        at, cause = int(minute * MIN), f"{topic}/{partition}/{offset}"
        verdict, told = features.step(
            spec, state, Row(at, (at, source, partition, offset, ""), (0,), cause), None, input
        )
        assert verdict == USED
        return str(told[-1]) if told else ""

    sums = lambda *causes: f"#{sum(map(seen.mark, causes)) % 2**64:016x}"  # noqa: E731
    assert came(0, 1, 3, 17) == "payments/3@17 " + sums("payments/3/17")
    came(0, 0, 0, 4, input=1)
    came(0, 0, 10, 5, input=1)
    came(0, 1002, 0, 0, input=1)
    both = ("labels/0/4", "labels/10/5", "made/0/0", "payments/3/17", "payments/3/19")
    assert came(0.5, 1, 3, 19) == "labels/0@4 labels/10@5 payments/3@19 " + sums(*both)
    late = (*both[:3], "payments/3/19", "payments/3/18", "payments/2/1")  # 17 has left the window
    assert came(1.2, 1, 3, 18).startswith("labels/0@4 labels/10@5 payments/3@19 ")
    assert came(1.3, 1, 2, 1) == "labels/0@4 labels/10@5 payments/2@1 payments/3@19 " + sums(*late)
    assert seen.Seen.read(came(1.4, 1, 2, 2)).last[("labels", 10)] == 5
    assert seen.Seen.read("#0000000000000001") == seen.Seen({}, 1)


def test_fe11_it_names_the_rows_that_last_tells_of_however_old() -> None:
    spec = replace(spec_of((MIN, 0), last=2), seen=True, topics=("t",))
    state = features.fresh(spec)
    told = [features.step(spec, state, row(10 * at * MIN, at, offset=at), None)[1][-1] for at in range(4)]
    assert [seen.Seen.read(one).sum for one in told] == [
        sum(seen.mark(f"t/0/{at}") for at in range(max(0, n - 2), n + 1)) % 2**64 for n in range(4)
    ]


def tiled_of(*sizes: tuple[int, int], input: int = 0, **more: Any) -> features.Spec:
    """Over windows of (size, width of its tiles): how many rows, and the greatest value."""
    made = tuple(
        features.Window(size=size, delay=0, aggregates=(COUNT, MAX), places=(-1, 0), input=input, tile=tile)
        for size, tile in sizes
    )
    given: dict[str, Any] = {"ttl": HOUR, "lateness": 0, "most": 100, "kept": ((0,),) * (input + 1)} | more
    return features.Spec(windows=made, last=(), **given)


def test_fe12_a_window_in_tiles_forgets_a_tile_at_a_time() -> None:
    spec = tiled_of((HOUR, 5 * MIN))
    assert told(spec, (4.99, 9), (5, 1), (59.99, 2), (60, 3), (64.99, 4), (65, 5)) == [
        (1, 9), (2, 9), (3, 9), (3, 3), (4, 4), (4, 5),
    ]  # fmt: skip


def test_fe12_tiles_are_counted_from_the_epoch_also_before_it() -> None:
    spec = tiled_of((HOUR, 5 * MIN))
    assert told(spec, (-65.01, 1), (-65, 2), (-5.01, 3), (-5, 4), (-0.01, 5)) == [
        (1, 1), (2, 2), (2, 3), (2, 4), (3, 5),
    ]  # fmt: skip


def test_fe12_an_older_row_is_told_up_to_its_time_and_counts_in_its_tile() -> None:
    spec = tiled_of((HOUR, 5 * MIN), lateness=10 * MIN)
    state = features.fresh(spec)
    came = lambda at, value, before: features.step(spec, state, row(int(at * MIN), value), before * MIN // MILLI)  # noqa: E731
    assert came(31, 1, 30) == (USED, (1, 1))
    assert came(34, 2, 30) == (USED, (2, 2))
    features.on_time(spec, state, 40 * MIN // MILLI)
    assert came(32, 3, 40) == (USED, (2, 3))  # the one of 34 is younger, though in its tile
    assert came(29, 4, 40) == (LATE, ())
    assert came(41, 5, 40) == (USED, (4, 5))
    features.on_time(spec, state, 60 * MIN // MILLI)
    assert came(87, 6, 60) == (USED, (5, 6))
    assert came(92, 7, 60) == (USED, (3, 7))


def test_fe12_rows_that_no_other_can_be_older_than_are_in_tiles_alone() -> None:
    spec = tiled_of((HOUR, 5 * MIN), (12 * HOUR, HOUR), ttl=12 * HOUR, lateness=10 * MIN)
    state = features.fresh(spec)
    for second in range(0, 3_600, 10):
        assert features.step(spec, state, row(second * 1_000_000, second), None)[0] == USED
        if second % 60 == 0:
            features.on_time(spec, state, second * 1_000)
    assert len(state.inputs[0]) == 10 * 6 + 6
    assert [(len(tiles), sum(count for count, _ in tiles.values())) for tiles in state.tiles] == [(10, 294), (1, 294)]
    assert features.known_at(spec, state, HOUR - 1) == (360, 3_590, 360, 3_590)


def test_fe12_tiles_go_when_nobody_can_ask_for_them_and_the_key_with_the_last() -> None:
    spec = tiled_of((HOUR, 5 * MIN), (2 * HOUR, 10 * MIN), lateness=10 * MIN, ttl=2 * HOUR)
    state = features.fresh(spec)
    features.step(spec, state, row(7 * MIN, 1), None)
    dues = []
    while (due := features.due(spec, state)) is not None:
        dues.append(due * MILLI / MIN)
        features.on_time(spec, state, due - 1)
        assert features.due(spec, state) == due
        features.on_time(spec, state, due)
    assert [round(due, 3) for due in dues] == [17, 75, 130]  # into tiles, out of the first window, of the second
    assert state.empty


def test_fe12_a_row_of_another_input_counts_in_its_tile_as_long_as_that_is_there() -> None:
    spec = tiled_of((HOUR, 5 * MIN), input=1)
    state = features.fresh(spec)
    at = 60 * MIN // MILLI
    assert features.step(spec, state, row(7 * MIN, 7), None, 1) == (USED, ())
    features.step(spec, state, row(60 * MIN, 0), None)
    features.on_time(spec, state, at)
    assert features.step(spec, state, row(6 * MIN, 9), at, 1) == (USED, ())
    assert features.step(spec, state, row(64 * MIN, 0), at) == (USED, (2, 9))
    assert features.step(spec, state, row(65 * MIN, 0), at) == (USED, (0, None))
    assert features.step(spec, state, row(5 * MIN - 1, 8), at, 1) == (LATE, ())


def test_fe12_a_row_is_told_once_while_it_is_not_late() -> None:
    spec = tiled_of((HOUR, 5 * MIN), lateness=10 * MIN, once="int")
    state = features.fresh(spec)
    again = lambda before: features.step(spec, state, row(5 * MIN, 0)._replace(args=(1, 7)), before * MIN // MILLI)  # noqa: E731
    assert again(0) == (USED, (1, 1))
    features.on_time(spec, state, 15 * MIN // MILLI)
    assert again(15) == (DUPLICATE, ())
    features.on_time(spec, state, 16 * MIN // MILLI)
    assert again(16) == (LATE, ())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_float_that_is_no_number_is_refused_where_it_is_counted(value: float) -> None:
    total = aggregate.Spec(name="v", kind="sum", of="float")
    window = features.Window(size=MIN, delay=0, aggregates=(total,), places=(0,))
    spec = features.Spec(windows=(window,), last=(), ttl=HOUR, lateness=0, most=9, kept=((0,),))
    state = features.fresh(spec)
    assert features.step(spec, state, row(0, value), None) == (NAN, ())
    assert features.step(spec, state, row(0, None), None) == (USED, (None,))


@pytest.mark.parametrize("seed", range(100 * DEPTH))
def test_what_a_key_drops_is_never_missed(seed: int) -> None:
    """The same rows, watermark by watermark and from all that ever came: every vector is equal."""
    random = Random(seed)
    minutes = lambda *some: random.choice(some) * MIN  # noqa: E731
    windows = [(minutes(1, 5, 20), minutes(0, 0, 3, 15)) for _ in range(random.randint(0, 3))]
    spec = spec_of(*windows, last=random.randint(1, 3), ttl=minutes(4, 15, 60), lateness=minutes(0, 0, 2, 10))
    spec = replace(
        spec, kept=((0,), (0,)), windows=tuple(replace(one, input=random.randint(0, 1)) for one in spec.windows)
    )
    tiled = tuple(_perhaps_tiled(random, one, spec.ttl) for one in spec.windows)
    spec = replace(spec, windows=tiled, seen=random.random() < 0.5, topics=("t",))
    state, came = features.fresh(spec), ([], [])
    top, watermark = 0, None
    for number in range(60):
        top += minutes(0, 0, 1, 2, 6)
        one, input = row(top - minutes(0, 0, 1, 3, 12, 30), random.randint(0, 9), number), random.randint(0, 1)
        verdict, vector = features.step(spec, state, one, watermark, input)
        if verdict == USED:
            came[input].append(one)
        if verdict == USED and input == 0:
            assert vector == _by_definition(spec, came, one.time)
        if verdict != USED:
            assert watermark is not None
            asked = [tiling.gone(one.time) for tiling in spec.tilings if tiling and tiling.input]
            end = max([one.time + spec.reaches[1], *asked]) if input else one.time - 1
            assert end <= watermark * MILLI - spec.lateness
        if random.random() < 0.7:
            watermark = max(watermark or 0, (top - minutes(0, 2, 5)) // MILLI)
            features.on_time(spec, state, watermark)


def _perhaps_tiled(random: Random, window: features.Window, ttl: int) -> features.Window:
    tile = random.choice((0, 1, 3)) * MIN
    if not tile or (window.input == 0 and 12 * tile > ttl):
        return window
    tiled = replace(window, size=12 * tile, delay=0, tile=tile)
    return replace(tiled, aggregates=(COUNT, TOP, FIRST, LAST), places=(-1, 0, 0, 0))


def _by_definition(spec: features.Spec, came: tuple[list[Any], list[Any]], time: int) -> tuple[Any, ...]:
    """Of the last row that came, over all rows that came, in order of time and then as they came."""
    rows, others = (sorted((one for one in some if one.time <= time), key=lambda one: one.time) for some in came)
    known = rows[-1:]
    for earlier in reversed(rows[:-1]):
        if known[0].time - earlier.time >= spec.ttl:
            break
        known.insert(0, earlier)
    vector: list[Any] = []
    for window in spec.windows:
        end = time - window.delay
        over = others if window.input else known
        inside = [one.args[0] for one in over if end - window.size < one.time <= end]
        if window.tile:
            number = lambda at: at // window.tile  # noqa: B023, E731
            inside = [one.args[0] for one in over if number(end) - 12 < number(one.time) and one.time <= end]
            ends = [inside[0], inside[-1]] if inside else [None, None]
            vector += [len(inside), sorted(inside, reverse=True), *ends]
            continue
        vector += [len(inside), inside]
    for _, n in spec.last:
        before = [one.args[0] for one in known[:-1]][::-1][:n]
        vector.append(before if n > 1 else before[0] if before else None)
    if spec.seen:
        told = known[-1 - spec.rows :] + [
            one
            for input, some in enumerate((known, others))
            for one in some
            if any(window.input == input and _in_reach(window, one.time, time) for window in spec.windows)
        ]
        vector.append(seen.text(spec.topics, seen.marks({seen.place(one) for one in told})))
    return tuple(vector)


def _in_reach(window: features.Window, time: int, now: int) -> bool:
    if window.tile:
        return now // window.tile - 12 < time // window.tile
    return now - window.delay - window.size < time


def test_the_spec_is_plain_json() -> None:
    spec = spec_of((MIN, 0), last=3)
    assert spec.as_json() == {
        "step": "features",
        "windows": [
            {
                "size": MIN,
                "delay": 0,
                "aggregates": [COUNT.as_json(), COLLECT.as_json()],
                "places": (-1, 0),
                "input": 0,
                "tile": 0,
            },
        ],
        "last": ((0, 3),),
        "ttl": HOUR,
        "lateness": 0,
        "most": 100,
        "kept": ((0,),),
        "once": False,
        "seen": False,
    }


def test_rows_that_others_passed_are_found_by_the_difference_of_what_was_seen() -> None:
    topics = ("labels", "payments")
    place = lambda n: seen.Place(1, 0, n, seen.mark(f"payments/0/{n}"))  # noqa: E731
    whole = seen.Seen.read(seen.text(topics, seen.marks(map(place, range(6)))))
    part = seen.Seen.read(seen.text(topics, seen.marks(map(place, (0, 2, 3, 5)))))
    causes = [f"payments/0/{n}" for n in range(6)]

    assert whole.more_than(part, causes) == ("payments/0/1", "payments/0/4")
    assert whole.more_than(seen.Seen.read("#0"), causes) == tuple(causes)
    assert part.more_than(whole, causes) == ()
    assert (whole.has("payments", 0, 5), whole.has("payments", 0, 6), whole.has("labels", 0, 0)) == (True, False, False)
