"""Commands about apps: run, replay, explain."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.base.locks import holder
from headrace.base.patience import STANDING_BY, patience, yield_by
from headrace.cli.options import Json
from headrace.cli.terminal import data, json_text, show, talk

if TYPE_CHECKING:
    from headrace.observe.snapshot import FlowSnapshot, PolicyState
    from headrace.ops.run import AppRun

Name = Annotated[
    str, typer.Argument(metavar="APP", help="An app: named in headrace.toml, NAME/app.py, or module:name.")
]


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("replay")(replay)
    app.command("explain")(explain)


def run(
    ctx: typer.Context,
    name: Name,
    realtime: Annotated[bool, typer.Option("--realtime", help="Milliseconds instead of micro-batches.")] = False,
    twins: Annotated[int, typer.Option(help="Real time: copies of each flow; the first answer counts.")] = 1,
    twin: Annotated[int | None, typer.Option(help="Real time: this copy alone; the others in other processes.")] = None,
    interval: Annotated[
        str | None, typer.Option(help="How often a batch begins; in real time, how often state is made safe (5 min).")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the app's state and begin anew.")] = False,
    standby: Annotated[
        bool, typer.Option("--standby", help="Run the app, or one of its twins, as soon as nobody else does.")
    ] = False,
    json: Json = False,
) -> None:
    """Run an app live until Ctrl-C. It goes on from where it stopped."""
    from headrace.base.errors import UsageError

    if standby and fresh:
        raise UsageError("both --standby and --fresh", why="who stands by goes on where another was", fix="one of them")
    usual = patience()
    locks = (ctx.obj.home / "state" / name).glob("*/*/driver.lock")
    if standby and any(holder(lock) is not None for lock in locks):
        yield_by(os.getpid(), STANDING_BY)  # before what takes a second to import: others answer meanwhile
    from headrace.ops import apps
    from headrace.ops.run import run as start
    from headrace.ops.standby import stand_by

    found, watch = apps.find(name, ctx.obj), Watch(json)
    begin = partial(stand_by, usual=usual) if standby else partial(start, fresh=fresh)
    try:
        begun = begin(
            found,
            ctx.obj,
            mode="realtime" if realtime else "live",
            twins=twins,
            twin=twin,
            interval=interval,
            say=talk,
            tell=watch.take,
        )
    except KeyboardInterrupt:
        if not standby:  # who waits for its turn is stopped like who runs
            raise
        talk("stopping")
        return
    with begun as running:
        talk(f"{found.name} runs; Ctrl-C stops it")
        _until_interrupted(running)
    watch.close()


def replay(
    ctx: typer.Context,
    name: Name,
    start: Annotated[str | None, typer.Option("--from", help="Results from here on: 14:03, -2 h, RFC 3339.")] = None,
    until: Annotated[str | None, typer.Option(help="History up to here; default: all there is now.")] = None,
    into: Annotated[str | None, typer.Option(help="Suffix of the output topics; default: one of its own.")] = None,
    json: Json = False,
) -> None:
    """Run an app over history, into topics of its own."""
    from headrace.base.clock import read_time
    from headrace.ops import apps
    from headrace.ops.replay import plan_replay
    from headrace.ops.replay import replay as begin

    now = datetime.now(UTC)
    chosen = plan_replay(
        apps.find(name, ctx.obj),
        into=into or f"replay-{now:%Y%m%d-%H%M%S}",
        start=None if start is None else read_time(start, now=now),
        until=None if until is None else read_time(until, now=now),
    )
    if chosen.read_from is not None:
        talk(f"reading from {chosen.read_from:%Y-%m-%d %H:%M:%S} UTC, so that the first results are whole")
    watch = Watch(json)
    with begin(chosen, ctx.obj, say=talk, tell=watch.take) as running:
        whole = _until_interrupted(running)
    watch.close()
    outputs = ", ".join(chosen.outputs)
    talk(f"replayed into {outputs}" if whole else f"only a part is in {outputs}; replay again, --into another name")


def explain(ctx: typer.Context, name: Name, json: Json = False) -> None:
    """Show an app's plan. Sources, steps, keys, state bounds, exits, modes."""
    from headrace.ops import apps
    from headrace.ops import explain as plans

    found = apps.find(name, ctx.obj)
    if json:
        data(json_text(plans.described(found, ctx.obj), indent=2))
    else:
        data(plans.explain(found, ctx.obj).rstrip("\n"))


def _until_interrupted(running: AppRun) -> bool:
    """Waits, and says whether it ended by itself; Ctrl-C is the way a person ends a run, not an error."""
    try:
        running.wait()
    except KeyboardInterrupt:
        talk("stopping")
        return False
    return True


class Watch:
    """Shows a run: a line a flow that is rewritten on a terminal, JSON lines for machines."""

    def __init__(self, json: bool) -> None:
        self._json = json
        self._last: dict[str, FlowSnapshot] = {}
        self._said: dict[str, tuple[Any, ...]] = {}
        self._policies: dict[tuple[str, str], PolicyState] = {}
        self._at = datetime.min.replace(tzinfo=UTC)

    def take(self, snapshot: FlowSnapshot) -> None:
        self._last[snapshot.name] = snapshot
        told = (snapshot.state, snapshot.error, snapshot.next_try, *snapshot.policies)
        news = self._said.get(snapshot.name) != told
        self._said[snapshot.name] = told
        if self._json:
            if news or snapshot.rows:
                data(json_text(_row(snapshot)))
            return
        for policy in snapshot.policies:
            place = snapshot.name, policy.policy
            if self._policies.get(place) != policy:
                self._policies[place] = policy
                talk(f"{snapshot.name}: {_stands(policy)}")
        now = datetime.now(UTC)
        if snapshot.error and news:
            talk(f"{snapshot.name}: {snapshot.state}: {snapshot.error}{_meanwhile(snapshot)}")
        elif news or (now - self._at).total_seconds() >= 2:
            self._at = now
            talk(_line(snapshot))

    def close(self) -> None:
        """Where every row went (rule D3), once more and in full."""
        if not self._json:
            shown = [(s.name, counts) for s in self._last.values() for counts in s.counts]
            show([{"flow": flow, **_counts(counts)} for flow, counts in shown], json=False)


def _line(s: FlowSnapshot) -> str:
    if s.batch < 0:
        return f"{s.name}: {s.state}"
    time = "none yet" if s.watermark is None else f"{s.watermark:%Y-%m-%d %H:%M:%S}"
    behind = sum(p.behind for p in s.partitions)
    slow = f", held by {s.slowest.topic}/{s.slowest.partition}" if s.slowest and behind else ""
    return (
        f"{s.name}: {s.state}, batch {s.batch}, {s.rows:,} rows ({s.rows_per_second:,.0f}/s), {behind:,} behind, "
        f"watermark {time}{slow}, {s.state_keys:,} keys in state{f'; {s.growth}' if s.growth else ''}"
    )


def _stands(policy: PolicyState) -> str:
    """What is decided by; what was kept out."""
    versions = f"rules {policy.rules_version}" + (f", model {policy.model_version}" if policy.model_version else "")
    said = f"decides by {policy.seen}, {versions}" if policy.seen else f"no policy {policy.policy} is published"
    shadow = f", {policy.shadow} in the shadow" if policy.shadow else ""
    return f"{said}{shadow}" + (f"; {policy.refused} refused: {policy.error}" if policy.error else "")


def _meanwhile(s: FlowSnapshot) -> str:
    """Of a flow that stands still: since when, what has come, when it tries again."""
    if s.since is None:
        return ""
    again = f"; next try at {s.next_try:%H:%M:%S}" if s.next_try else ""
    return f"\n  since:  {s.since:%H:%M:%S} UTC; {sum(p.behind for p in s.partitions):,} behind{again}"


def _row(snapshot: FlowSnapshot) -> dict[str, Any]:
    return snapshot.as_dict() | {"counts": [_counts(c) for c in snapshot.counts]}


def _counts(counts: Any) -> dict[str, Any]:
    return {
        "step": counts.step,
        "in": counts.entered,
        "used": counts.used,
        "filtered": counts.filtered,
        "late": counts.late,
        "dead": counts.dead,
        "duplicates": counts.duplicates,
        "held": counts.held,
    }
