"""Commands about policies: show what decides, publish another, look back, go back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json
from headrace.cli.run import Name
from headrace.cli.terminal import show, show_one, talk

Policy = Annotated[str, typer.Argument(metavar="NAME", help='The policy, as stream.decide("NAME") says it.')]
Shadow = Annotated[bool, typer.Option("--shadow", help="The one that is asked too, and only told.")]
Note = Annotated[str, typer.Option(help="Why, for the history.")]

policy = typer.Typer(help="What decides: show, publish, history, rollback, withdraw.", no_args_is_help=True,
                     rich_markup_mode=None)  # fmt: skip


def register(app: typer.Typer) -> None:
    app.add_typer(policy, name="policy")


@policy.command("show")
def shown(ctx: typer.Context, app: Name, name: Policy, shadow: Shadow = False, json: Json = False) -> None:
    """Show what decides now: rules, thresholds, versions."""
    from headrace.ops import apps
    from headrace.ops.policy import described, opened

    with opened(apps.find(app, ctx.obj), name, ctx.obj) as found:
        stands = found.current()
    told = described(stands.shadow if shadow else stands.active)
    if json or "rules" not in told:
        show_one(told, json=json)
        return
    rules = told.pop("rules")
    told["features"] = ", ".join(told["features"])
    told["thresholds"] = ", ".join(f"{action} from {least:g}" for action, least in told["thresholds"].items())
    show_one(told, json=False)
    show(rules, json=False, empty="no rules")


@policy.command("publish")
def publish(
    ctx: typer.Context,
    app: Name,
    name: Policy,
    rules: Annotated[Path | None, typer.Option(help="A file of [[rule]] and [thresholds].")] = None,
    model: Annotated[Path | None, typer.Option(help="A model that LightGBM saved.")] = None,
    shadow: Shadow = False,
    note: Note = "",
    json: Json = False,
) -> None:
    """Let other rules or another model decide, from the next rows on. What is not given stays as it is."""
    from headrace.base.errors import UsageError
    from headrace.ops import apps
    from headrace.ops.policy import opened

    if rules is None and model is None:
        raise UsageError("there is nothing to publish", fix="--rules FILE, --model FILE, or both")
    with opened(apps.find(app, ctx.obj), name, ctx.obj) as found:
        offset = found.publish(rules=rules, model=model, shadow=shadow, note=note)
    _published(name, offset, json)


@policy.command("history")
def history(ctx: typer.Context, app: Name, name: Policy, json: Json = False) -> None:
    """List all that were published, the oldest first."""
    from headrace.ops import apps
    from headrace.ops.policy import listed, opened

    with opened(apps.find(app, ctx.obj), name, ctx.obj) as found:
        show([listed(version) for version in found.history()], json=json, empty="nothing was published yet")


@policy.command("rollback")
def rollback(
    ctx: typer.Context,
    app: Name,
    name: Policy,
    to: Annotated[int, typer.Option(help="The offset that the history names.")],
    note: Note = "",
    json: Json = False,
) -> None:
    """Let decide what was published at an offset; so a shadow comes into force, too."""
    from headrace.ops import apps
    from headrace.ops.policy import opened

    with opened(apps.find(app, ctx.obj), name, ctx.obj) as found:
        offset = found.rollback(to=to, note=note)
    _published(name, offset, json)


@policy.command("withdraw")
def withdraw(ctx: typer.Context, app: Name, name: Policy, shadow: Shadow = False, json: Json = False) -> None:
    """Take away what decides; the default of the step is said then."""
    from headrace.ops import apps
    from headrace.ops.policy import opened

    with opened(apps.find(app, ctx.obj), name, ctx.obj) as found:
        offset = found.withdraw(shadow=shadow)
    _published(name, offset, json)


def _published(name: str, offset: int, json: bool) -> None:
    if json:
        show_one({"policy": name, "offset": offset}, json=True)
    else:
        talk(f"published as {name}.policy/0@{offset}; flows that run go by it from their next rows on")
