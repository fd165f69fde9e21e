"""The command `bank`, also `python -m bank`: run, train, compare, replay-decision, rules test."""

from __future__ import annotations

import json as _json
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


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@app.command()
def run(
    rate: Annotated[float, typer.Option(help="Payments a second.")] = 20.0,
    past: Annotated[
        int, typer.Option(min=0, help="Payments of the days before, decided before it first opens.")
    ] = 15_000,
) -> None:
    """The whole bank with made-up traffic, until Ctrl-C."""
    from bank.run import run as begin

    begin(rate, past, say)


@app.command()
def train(
    into: Annotated[Path, typer.Argument(help="The model's file; what was measured goes beside it.")],
    days: Annotated[int, typer.Option(help="Days of made-up traffic.")] = 45,
    cards: Annotated[int, typer.Option(help="Cards in it.")] = 1000,
    lake: Annotated[bool, typer.Option("--lake", help="Train on lake.decisions and lake.labels instead.")] = False,
) -> None:
    """Train the model, on made-up traffic or on what the bank has decided."""
    from bank.decide import decide
    from bank.training import from_lake, made_up

    command = f"bank train {into} " + ("--lake" if lake else f"--days {days} --cards {cards}")
    if lake:
        with hr.connect(decide) as client:
            trained = from_lake(client.query)
    else:
        trained = made_up(days, cards)
    trained.save(into, command)
    print(_json.dumps(_plain(trained.figures), indent=2))


@app.command()
def compare(days: int = 14, cards: int = 600) -> None:
    """What the bank and an hourly job let through of made-up frauds, in money."""
    from bank.batch import compare as over
    from bank.policy import policy
    from bank.training import START
    from bank.vectors import live_through

    # another seed than the one that the model was trained on
    lived = live_through(Traffic(SEED + 1, cards=cards, shops=2 * cards, harm=2), START, days, policy())
    print(over(lived.rows, lived.frauds))


@app.command("replay-decision")
def replay_decision(payment_id: str, json: Json = False) -> None:
    """Compute a decision once more, from the log alone; it must come out the same to the last bit."""
    from bank.decide import decide
    from bank.replay import again, differences, read

    with hr.connect(decide) as client:
        past = read(client)
        if payment_id not in past.decided:
            raise hr.HeadraceError(f"no decision about {payment_id!r} is on the log", why="decisions.raw has none")
        told = past.decided[payment_id]
        policies = {
            f"fraud.policy/0@{one.offset}": one.policy for one in client.policy("fraud").history() if one.policy
        }
        found = again(past, told, policies)
    different = differences(told, found)
    if json:
        print(_json.dumps({"decision": _plain(told), "different": different}, default=str))
    else:
        print(f"{told.payment_id}: {told.decision} {', '.join(told.reasons) or 'for no reason against it'}")
        for name in ("at", "amount", "score", "rules_version", "model_version", "policy_seen", "seen_card",
                     "seen_terminal", "seen_customer"):  # fmt: skip
            print(f"  {name:14} {getattr(told, name)}")
        print("the same to the last bit" if not different else f"DIFFERENT: {different}")
    raise typer.Exit(int(bool(different)))


@rules.command("test")
def rules_test(
    file: Annotated[Path, typer.Argument(help="Rules as in bank/rules.toml.")],
    since: Annotated[
        datetime | None, typer.Option("--from", help="Payments from here on; UTC unless it says so.")
    ] = None,
    json: Json = False,
) -> None:
    """Try rules on what was decided: money they would have caught, payments they would have stopped wrongly."""
    from bank.backtest import rules_of, table, trial
    from bank.decide import decide

    since = since or datetime.now(UTC) - timedelta(days=1)
    new = rules_of(file)
    with hr.connect(decide) as client:
        found = trial(client, new, since if since.tzinfo else since.replace(tzinfo=UTC))
    print(_json.dumps([one.as_dict() for one in found], default=str) if json else table(found))


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
