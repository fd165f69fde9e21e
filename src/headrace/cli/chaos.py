"""The command `chaos`: the fault harness on this machine, and its verdict."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.base.errors import UsageError
from headrace.cli.options import Json
from headrace.cli.terminal import data, json_text, show, talk


def register(app: typer.Typer) -> None:
    app.command("chaos")(chaos)


def chaos(
    ctx: typer.Context,
    seed: Annotated[int, typer.Option(help="The same seed gives the same faults and the same traffic.")] = 7,
    minutes: Annotated[float, typer.Option(help="How long faults go on.")] = 5.0,
    faults: Annotated[int | None, typer.Option(help="Stop after so many.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this kind of fault; several go in turn.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="Not this kind of fault; several times.")] = None,
    rate: Annotated[int, typer.Option(help="Transfers a second, beside bursts.")] = 400,
    json: Json = False,
) -> int:
    """Kill, stop and cut everything, and prove that nothing was lost or doubled."""
    from headrace.chaos.faults import FAULTS
    from headrace.chaos.run import run

    if unknown := {*(only or ()), *(without or ())} - FAULTS.keys():
        raise UsageError(f"there is no fault {min(unknown)!r}", why=f"there are {', '.join(FAULTS)}")
    verdict = run(
        ctx.obj,
        seed=seed,
        minutes=minutes,
        faults=faults,
        wanted=only or (),
        without=without or (),
        rate=rate,
        tell=talk,
    )
    if json:
        data(json_text(verdict.as_dict(), indent=2))
    else:
        show(verdict.faults, json=False)
        data("")
        show(verdict.checks, json=False)
    for remark in verdict.remarks:
        talk(remark)
    if not verdict.sound:
        again = f"headrace chaos --seed {seed} --minutes {minutes:g} --rate {rate}"
        again += "".join(f" --only {name}" for name in only or ())
        again += "".join(f" --without {name}" for name in without or ())
        talk(f"violated; to repeat it: {again}{f' --faults {faults}' if faults else ''}")
    return 0 if verdict.sound else 1
