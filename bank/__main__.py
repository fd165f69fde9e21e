"""The command `bank`, also `python -m bank`: run, train, compare, replay-decision, rules test."""

from __future__ import annotations

import json as _json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

import headrace as hr
from bank.traffic import SEED, Traffic

app = typer.Typer(name="bank", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  rich_markup_mode=None,  # plain, as the help and the errors of `headrace` are
                  help="The bank that decides on every payment while the terminal waits.")  # fmt: skip
rules = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Rules on trial.")
app.add_typer(rules, name="rules")

Json = Annotated[bool, typer.Option("--json", help="JSON on stdout instead of a table.")]

_AGO = re.compile(r"-\s*(\d+)\s*(min|h|d|w)")
_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def moment(text: str) -> datetime:
    """As somebody types it: 2026-11-15T12:00, in UTC unless it says so, or a time ago, '-2 h'."""
    try:
        if ago := _AGO.fullmatch(text.strip()):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is neither a time, like 2026-11-15T12:00, nor one ago, like '-2 h'"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@app.command()
def run(
    rate: Annotated[float, typer.Option(min=0, help="Payments a second.")] = 20.0,
    past: Annotated[
        int, typer.Option(min=0, help="Payments of the days before, decided before it first opens.")
    ] = 15_000,
    standby: Annotated[bool, typer.Option(help="One more driver, which waits for a twin to end.")] = True,
) -> None:
    """The whole bank with made-up traffic, until Ctrl-C."""
    from bank.run import run as begin

    begin(rate, past, standby, say)


@app.command()
def train(
    into: Annotated[Path, typer.Argument(help="The model's file; what was measured goes beside it.")],
    days: Annotated[int, typer.Option(min=1, help="Days of made-up traffic.")] = 45,
    cards: Annotated[int, typer.Option(min=1, help="Cards in it.")] = 1000,
    lake: Annotated[bool, typer.Option("--lake", help="Train on lake.decisions and lake.labels instead.")] = False,
) -> None:
    """Train the model, on made-up traffic or on what the bank has decided."""
    from bank.decide import decide
    from bank.training import from_lake, made_up

    command = f"bank train {into} " + ("--lake" if lake else f"--days {days} --cards {cards}")
    if lake:
        with hr.connect(decide) as client:
            trained = from_lake(client.query, say)
    else:
        trained = made_up(days, cards, say)
    trained.save(into, command)
    print(_json.dumps(_plain(trained.figures), indent=2))


@app.command()
def compare(
    days: Annotated[int, typer.Option(min=1, help="Days of made-up traffic.")] = 14,
    cards: Annotated[int, typer.Option(min=1, help="Cards in it.")] = 600,
    json: Json = False,
) -> None:
    """What the bank and an hourly job let through of made-up frauds, in money."""
    from bank.batch import compare as over
    from bank.policy import policy
    from bank.training import START
    from bank.vectors import live_through

    # another seed than the one that the model was trained on
    lived = live_through(Traffic(SEED + 1, cards=cards, shops=2 * cards, harm=2), START, days, policy(), say)
    found = over(lived.rows, lived.frauds)
    print(_json.dumps(found.as_dict(), default=str) if json else found)


@app.command("replay-decision")
def replay_decision(
    payment_id: Annotated[str, typer.Argument(help="Of a payment that was decided.")], json: Json = False
) -> None:
    """Compute a decision once more, from the log alone; it must come out the same to the last bit."""
    from bank.decide import decide
    from bank.replay import about, again, differences

    with hr.connect(decide) as client:
        past = about(client, payment_id, say)
        told, instead = past.decided[payment_id], past.instead.get(payment_id)
        policies = {
            f"fraud.policy/0@{one.offset}": one.policy for one in client.policy("fraud").history() if one.policy
        }
        say("deciding once more")
        found = again(past, told, policies)
    different = differences(told, found)
    if json:
        waited = None if instead is None else _plain(instead)
        print(_json.dumps({"decision": _plain(told), "told_instead": waited, "different": different}, default=str))
    else:
        print(f"{told.payment_id}: {told.decision}{_because(told.reasons)}")
        for name in ("at", "amount", "score", "rules_version", "model_version", "policy_seen", "seen_card",
                     "seen_terminal", "seen_customer"):  # fmt: skip
            print(f"  {name:14} {getattr(told, name)}")
        if instead is not None:
            because = _because(instead.reasons)
            print(f"the terminal was told: {instead.decision}{because} (by the {instead.by}: {instead.why})")
        print("DIFFERENT:" if different else "the same to the last bit")
        for name, (was, now) in different.items():
            print(f"  {name:14} was {was}, and is {now}")
    raise typer.Exit(int(bool(different)))


@rules.command("test")
def rules_test(
    file: Annotated[Path, typer.Argument(help="Rules as in bank/rules.toml.")],
    since: Annotated[
        datetime | None,
        typer.Option(
            "--from",
            parser=moment,
            metavar="TIME",
            show_default="a day ago",
            help="Payments from here on: '-2 h' (min, h, d, w), or 2026-11-15T12:00, UTC unless it says so.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Try rules and thresholds on what was decided: money they would have caught, payments they would have stopped
    wrongly. Each rule alone, then all of them with the model that stands, and what was decided."""
    from bank.backtest import rules_of, table, trial
    from bank.decide import decide

    new = rules_of(file)
    with hr.connect(decide) as client:
        found = trial(client, new, since or moment("-1 d"), say)
    print(_json.dumps([one.as_dict() for one in found], default=str) if json else table(found))


def _because(reasons: list[str]) -> str:
    return f", because: {', '.join(reasons)}" if reasons else ""


def _plain(value: Any) -> dict[str, Any]:
    import dataclasses

    import msgspec

    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else msgspec.to_builtins(value)  # type: ignore[arg-type]


def main() -> None:
    try:
        app(prog_name="bank")
    except hr.HeadraceError as error:
        say(str(error))
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
