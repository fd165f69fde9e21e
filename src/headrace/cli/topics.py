"""Commands about topics: list them, and advise on partitions."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.options import Json
from headrace.cli.terminal import data, show, show_one


def register(app: typer.Typer) -> None:
    app.command("topics")(topics)
    app.command("partitions")(partitions)


def topics(ctx: typer.Context, json: Json = False) -> None:
    """List the topics: partitions, records, retention."""
    from headrace.ops import endpoints
    from headrace.ops import topics as found

    rows = [
        {
            "topic": info.name,
            "partitions": info.partitions,
            "replicas": info.replication,
            "records": info.records,
            "kept": info.retention if json else info.retention or ("latest per key" if info.compact else "for ever"),
            **({"compact": info.compact} if json else {}),
        }
        for info in found.listing(endpoints.broker(ctx.obj))
    ]
    show(rows, json=json, empty="no topics yet; an app makes its own when it connects or runs")


def partitions(
    throughput: Annotated[str, typer.Option(help="Bytes a second at the busiest hour, like 40MB.")],
    consumers: Annotated[int, typer.Option(help="Most readers of one group at the same time.")] = 1,
    json: Json = False,
) -> None:
    """Advise how many partitions a topic should have."""
    from headrace.ops import topics as found

    advice = found.advise(throughput, consumers)
    if json:
        row = {
            "partitions": advice.partitions,
            "for_throughput": advice.for_throughput,
            "for_consumers": advice.for_consumers,
            "because": advice.because,
        }
        show_one(row, json=True)
        return
    data(f"{advice.partitions} partitions")
    data(f"  max({throughput} / 10 MB, {consumers} consumers) = max({advice.for_throughput}, {advice.for_consumers})")
    data(f"  {advice.because}")
