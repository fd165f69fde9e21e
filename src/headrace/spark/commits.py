"""The topic of commits: it says which batch of a flow was written last, and must stay the same for a checkpoint's life.

Each transaction of the sink puts a token there (jvm/Commits.scala). Were the topic deleted, a batch that was written
just before a crash would be written again; so a checkpoint remembers the topic's id, which a new one does not have.
"""

from __future__ import annotations

import json

from headrace.base.errors import CommitsLost, Fenced
from headrace.log import offsets, topics
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.model.topic import Topic
from headrace.spark.checkpoint import Checkpoint

_PATIENCE = 30.0
_SEGMENT = 16 << 20
"""Bytes. Only closed segments are compacted, and a start reads all that is left."""


def commits_topic(app: str) -> Topic:
    return Topic(name=f"{app}.commits", partitions=1, compact=True)


def ensure_commits(broker: Broker, app: str, checkpoint: Checkpoint) -> str:
    """The topic's name. It is made for a new checkpoint; for an old one it must be there. Raises CommitsLost."""
    topic = commits_topic(app)
    file = checkpoint.commits_file
    if not file.exists():
        topics.ensure(broker, topic, extra={"segment.bytes": str(_SEGMENT)})
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(topics.identity(broker, topic.name))
    elif topic.name not in topics.widths(broker) or topics.identity(broker, topic.name) != file.read_text():
        raise CommitsLost(
            f"the topic {topic.name!r} was deleted",
            why="it said which batch was written last; the batch that comes next may have been written already",
            fix=f"see whether its records are in the outputs; to go on and maybe write it twice, remove {file}",
        )
    return topic.name


def take_over(broker: Broker, flow: str) -> None:
    """Ends the transaction that a driver of the flow left open when it died, and fences one that lives."""
    broker.producer({"transactional.id": flow}).init_transactions(_PATIENCE)


def last_written(broker: Broker, app: str, flow: str, query: str) -> int | None:
    """The last batch whose token is there, -1 if none is; None while a transaction is open that may hold the next.

    `flow` is the whole name of the one who writes, `query` Spark's id of its checkpoint, as jvm/Transaction.scala says.
    """
    name = commits_topic(app).name
    place = (name, 0)
    if offsets.ends(broker, [place])[place] < offsets.ends(broker, [place], decided=False)[place]:
        return None
    key = f"{flow}/{query}".encode()
    return max((json.loads(token.value())["batch"] for token in read(broker, name) if token.key() == key), default=-1)


class Turn:
    """Whose turn it is to write a flow. A driver takes it at its start from whoever had it. When it starts a query anew
    it must not take it back from one that came later, as a driver that stood still for a while would."""

    def __init__(self, broker: Broker, app: str, flow: str) -> None:
        self._broker, self._topic, self._flow = broker, commits_topic(app).name, flow
        self._known: set[str] = set()  # the run that had the flow before us, and our own

    def check(self) -> frozenset[str]:
        """Before a query is started, and its stores are taken. Gives the runs that it may take the flow from: the sink
        looks again when the first batch comes, which may be much later. Raises Fenced."""
        holder = self._holder()
        if self._known and holder and holder not in self._known:
            raise Fenced(
                f"another driver has taken over {self._flow}",
                why=f"run {holder} has written since",
                fix="keep one of the two drivers; run the other under another version",
            )
        self._known.add(holder)
        return frozenset(self._known)

    def took(self, run: str) -> None:
        """A query of ours was started."""
        self._known.add(run)

    def _holder(self) -> str:
        """The run of the last driver that took the flow, as its token says (jvm/Transaction.scala); "" if none did."""
        if self._topic not in topics.widths(self._broker):
            return ""
        tokens = [token for token in read(self._broker, self._topic) if token.key() == self._flow.encode()]
        return json.loads(tokens[-1].value())["run"] if tokens else ""
