"""The topic of commits: it says which batch of a flow was written last, and must stay the same for a checkpoint's life.

Each transaction of the sink puts a token there (jvm/Commits.scala). Were the topic deleted, a batch that was written
just before a crash would be written again; so a checkpoint remembers the topic's id, which a new one does not have.
"""

from __future__ import annotations

import json

from headrace.base.errors import CommitsLost
from headrace.log import offsets, topics
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.model.topic import Topic
from headrace.spark.checkpoint import Checkpoint

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
