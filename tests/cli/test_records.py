"""send and tail: what a person types becomes typed records, and comes back as it was."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from headrace.log import topics
from headrace.log.broker import Broker
from tests.cli.conftest import ORDER, Headrace


def line(**changed: object) -> str:
    row = {"order_id": "o1", "card_id": "c1", "amount": "9.50", "at": "2026-11-03T15:00:00Z"}
    return msgspec.json.encode(row | changed).decode()


def test_pairs_are_typed_by_the_event_of_the_topic(headrace: Headrace, orders: str) -> None:
    said = headrace("send", orders, *ORDER, "items=3", "gift=true", 'tags=["a", "b"]')
    assert (said.code, said.out) == (0, "")
    assert said.err == f"sent 1 Order to {orders} at 0/0 (partition/offset)\n"

    (found,) = headrace("tail", orders, "--json").lines
    assert found == {
        "topic": orders,
        "partition": 0,
        "offset": 0,
        "time": "2026-11-03T15:00:00.000000Z",
        "key": "c1",
        "type": "Order",
        "id": "o1",
        "value": {
            "order_id": "o1",
            "card_id": "c1",
            "amount": "9.50",
            "at": "2026-11-03T15:00:00.000000Z",
            "items": 3,
            "gift": True,
            "note": None,
            "tags": ["a", "b"],
        },
    }


def test_a_topic_that_an_app_declares_is_made_by_the_first_send(
    headrace: Headrace, orders: str, broker: Broker
) -> None:
    topics.delete(broker, orders)
    said = headrace("send", orders, *ORDER)
    assert said.code == 0
    assert said.err.splitlines()[0] == f"made the topic {orders}, as the app declares it"
    assert topics.width(broker, orders) == broker.partitions


def test_tail_shows_one_record_a_line(headrace: Headrace, orders: str) -> None:
    headrace("send", orders, *ORDER, "note=two words")
    said = headrace("tail", orders)
    assert said.out == (
        "11-03 15:00:00.000  0/0  c1  order_id=o1  card_id=c1  amount=9.50  at=2026-11-03T15:00:00.000000Z"
        '  items=1  gift=false  note="two words"  tags=[]\n'
    )
    assert said.err == ""


def test_tail_writes_out_what_a_terminal_would_obey(headrace: Headrace, orders: str) -> None:
    headrace("send", orders, "-", stdin=line(card_id="c\x1b[31m", note="over\rthere"))
    said = headrace("tail", orders).out
    assert r"  c\x1b[31m  " in said
    assert r'note="over\rthere"' in said
    assert "\x1b" not in said


def test_a_file_of_lines_is_sent_whole(headrace: Headrace, orders: str, tmp_path: Path) -> None:
    (tmp_path / "orders.jsonl").write_text("\n".join(line(order_id=f"o{n}") for n in range(5)) + "\n\n")
    said = headrace("send", orders, "--file", "orders.jsonl", "--json")
    assert said.json == {
        "topic": orders,
        "event": "Order",
        "sent": 5,
        "offsets": [{"partition": 0, "first": 0, "last": 4}],
    }


def test_a_file_with_a_bad_line_sends_nothing(headrace: Headrace, orders: str, tmp_path: Path) -> None:
    (tmp_path / "orders.jsonl").write_text(f"{line()}\n{line(amount='1.234')}\n")
    said = headrace("send", orders, "--file", "orders.jsonl")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("orders.jsonl:2: Order.amount: 1.234 has more than two digits")
    assert "nothing was sent" in said.err
    assert headrace("tail", orders, "--from", "earliest").out == ""


@pytest.mark.parametrize("dash", [("-",), ("--file", "-")])
def test_stdin_is_sent_line_by_line_and_a_bad_one_says_what_went_before(
    headrace: Headrace, orders: str, dash: tuple[str, ...]
) -> None:
    said = headrace("send", orders, *dash, stdin=f"{line()}\n{line(order_id='o2')}\nno json\n")
    assert said.code == 1
    assert said.err.startswith("stdin:3: it is no JSON [undecodable]")
    assert "2 before it were sent" in said.err
    assert [found["id"] for found in headrace("tail", orders, "--json").lines] == ["o1", "o2"]


def test_without_an_app_values_are_json_where_they_read_as_json(headrace: Headrace, notes: str) -> None:
    assert headrace("send", notes, "n=1", "ok=true", "text=hello you", "--key", "k").code == 0
    (found,) = headrace("tail", notes, "--json").lines
    assert (found["key"], found["type"], found["value"]) == ("k", "", {"n": 1, "ok": True, "text": "hello you"})


@pytest.mark.parametrize(
    ("typed", "code", "begins"),
    [
        (["crd_id=c1"], "unknown-field", "Order has no field 'crd_id'"),
        (["order_id=o1"], "missing-field", "Order needs the field"),
        ([*ORDER, "items=many"], "wrong-type", "Order.items: expected `int`"),
        ([*ORDER[:2], "amount=9.999", ORDER[3]], "wrong-type", "Order.amount: 9.999 has more than two digits"),
        ([*ORDER[:2], "amount=99999999999999999.00", ORDER[3]], "money-overflow", "Order.amount:"),
        ([*ORDER[:3], "at=half past"], "bad-time", "'half past' is not a time"),
        ([*ORDER, f"note={'x' * 2_000_000}"], "record-too-large", "a record is too large"),
        (["order_id"], "usage", "'order_id' is no key=value pair"),
        (["order_id=1", "order_id=2"], "usage", "'order_id' is given twice"),
        ([], "usage", "nothing to send"),
        (["a=1", "--file", "x.jsonl"], "usage", "either pairs or a file"),
        (["--file", "gone.jsonl"], "usage", "gone.jsonl cannot be read"),
        ([*ORDER, "--key", "k"], "usage", "--key is not for typed events"),
        ([*ORDER, "--app", "shp"], "app-not-found", "there is no app 'shp'"),
    ],
)
def test_bad_input_says_what_is_wrong_and_sends_nothing(
    headrace: Headrace, orders: str, typed: list[str], code: str, begins: str
) -> None:
    said = headrace("send", orders, *typed, "--json")
    error = msgspec.json.decode(said.err)
    assert (error["code"], said.out) == (code, "")
    assert error["what"].startswith(begins)
    assert said.code == (2 if code in ("usage", "bad-time", "app-not-found") else 1)
    assert headrace("tail", orders, "--from", "earliest").out == ""


def test_tail_starts_where_it_is_told(headrace: Headrace, orders: str) -> None:
    for n in range(5):
        headrace("send", orders, *ORDER[1:3], f"order_id=o{n}", f"at=2026-11-03T15:0{n}Z")

    def ids(start: str) -> list[str]:
        return [found["id"] for found in headrace("tail", orders, "--from", start, "--json").lines]

    assert ids("earliest") == ["o0", "o1", "o2", "o3", "o4"]
    assert ids("-2") == ["o3", "o4"]
    assert ids("3") == ["o3", "o4"]
    assert ids("2026-11-03T15:01Z") == ["o1", "o2", "o3", "o4"]
    assert ids("-2 h") == []  # two hours ago, which is long after these


def test_tail_shows_what_cannot_be_decoded_and_what_was_deleted(headrace: Headrace, notes: str, broker: Broker) -> None:
    client = broker.producer({})
    client.produce(notes, b"\xff not json", b"k1")
    client.produce(notes, None, b"k1")
    client.flush()
    said = headrace("tail", notes)
    assert [text.split("  ", 3)[3] for text in said.out.splitlines()] == [
        "not JSON: b'\\xff not json'",
        "deleted (tombstone)",
    ]
    assert [found["value"] for found in headrace("tail", notes, "--json").lines] == [None, None]


@pytest.mark.parametrize("start", ["yesterday", "latest", "-0"])
def test_a_start_that_makes_no_sense_is_a_usage_error(headrace: Headrace, notes: str, start: str) -> None:
    assert headrace("tail", notes, "--from", start).code == 2


def test_a_missing_topic_is_named_with_its_neighbours(headrace: Headrace, notes: str) -> None:
    said = headrace("tail", f"{notes}x")
    assert (said.code, said.out) == (1, "")
    assert said.err.splitlines()[0].endswith("[topic-missing]")
    assert f"did you mean {notes!r}?" in said.err


def test_follow_shows_records_as_they_arrive_and_ctrl_c_ends_it(headrace: Headrace, orders: str) -> None:
    headrace("send", orders, *ORDER)
    command = [sys.executable, "-m", "headrace", "tail", orders, "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        try:
            assert follower.stdout is not None
            assert msgspec.json.decode(follower.stdout.readline())["id"] == "o1"
            headrace("send", orders, "order_id=o2", *ORDER[1:])
            assert msgspec.json.decode(follower.stdout.readline())["id"] == "o2"
            follower.send_signal(signal.SIGINT)
            assert follower.wait(20) == 130
        finally:
            follower.kill()


def test_a_reader_that_has_had_enough_is_no_error(headrace: Headrace, orders: str, tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_text("\n".join(line(order_id=f"o{n}") for n in range(3000)))
    headrace("send", orders, "--file", "many.jsonl")
    tail = f"{sys.executable} -m headrace tail {orders} --from earliest --json"
    done = subprocess.run(
        ["bash", "-c", f"{tail} | head -1; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""
