"""Who names what is in no table is refused; the service follows the table's topic by itself."""

from __future__ import annotations

from headrace.base.ids import random_id
from headrace.log.broker import Broker
from tests.log.paying import until
from tests.serve.asking import deciding, decision, give_out, made, on_log, payment, serving, take_back, write


def test_a_card_must_be_known(broker: Broker) -> None:
    # given many cards on the log, and one that was taken back
    service = made(broker, cards=True)
    give_out(broker, service, *(f"c{n}" for n in range(20_000)))
    take_back(broker, service, "c7")
    # and a payment that was told, and then lost with another service
    write(broker, service.degraded.name, {"payment_id": "k-5", "decision": "review", "why": "not-recorded"})
    with deciding(service, broker, decision), serving(service, broker) as desk:
        # when payments come as soon as there is an answer at all
        stranger, last = desk.decide(payment("k-1", card_id="c20000")), desk.decide(payment("k-2", card_id="c19999"))
        gone = desk.decide(payment("k-3", card_id="c7"))

        # then those with a card of the table are decided, and no others
        assert last.body["decision"] == "allow"
        assert [(one.status, one.code) for one in (stranger, gone)] == [(422, "unknown-key")] * 2
        assert "Payment.card_id is not known" in stranger.body["error"]["what"]
        assert "c20000" not in str(stranger.body)
        topic = service.known[0].table.event.topic
        assert stranger.body["error"]["fix"].endswith(f": headrace send {topic} card_id=... ...")

        # when the table changes, the service follows; the id of what was refused is still free
        give_out(broker, service, "c20000")
        until(lambda: desk.decide(payment("k-1", card_id="c20000", amount="1.00")).status == 200)
        told = desk.decide(kept := payment("k-4"))
        take_back(broker, service, "c1")
        until(lambda: desk.decide(payment(f"k-{random_id()}")).status == 422)
        # an answer that was given is not taken back
        assert desk.decide(kept).body == told.body
        assert desk.decide(payment("k-5")).status == 200
        assert desk.call("GET", "/health").body == {"ready": True, "broker": True, "reader": True}
    written = {row["payment_id"]: row["card_id"] for row in on_log(broker, service.ask.topic)}
    assert {"k-1", "k-2", "k-4", "k-5"} <= written.keys()
    assert not written.keys() & {"k-3"}
