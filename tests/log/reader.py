"""A reader in a process of its own, to be killed: says "got <id>" for each record and then processes it for a while.

python -m tests.log.reader BOOTSTRAP TOPIC GROUP DELIVER SESSION PAUSE
"""

from __future__ import annotations

import sys
import time

from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from tests.log.paying import payment_on


def main() -> None:
    bootstrap, topic, group, deliver, session, pause = sys.argv[1:]

    consumer = Consumer(
        Broker(bootstrap=bootstrap),
        payment_on(topic),
        group=group,
        deliver=deliver,
        session=session,
        batch=1,
    )
    for record in consumer:
        sys.stdout.write(f"got {record.event.payment_id}\n")
        sys.stdout.flush()
        time.sleep(float(pause))


if __name__ == "__main__":
    main()
