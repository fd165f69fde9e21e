"""The command that serves an app's decisions over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.terminal import talk

Name = Annotated[str, typer.Argument(metavar="APP", help="An app with a service: app.service(...).")]


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    ctx: typer.Context,
    name: Name,
    service: Annotated[str | None, typer.Argument(metavar="[SERVICE]", help="Default: the app's only one.")] = None,
    host: Annotated[str | None, typer.Option(help="Default: the setting serve.host.")] = None,
    port: Annotated[int | None, typer.Option(help="Default: the setting serve.port; 0: any.")] = None,
) -> None:
    """Answer over HTTP: decisions, the live page, the review queue."""
    from headrace.ops import apps
    from headrace.ops.serve import serving

    app = apps.find(name, ctx.obj)
    with serving(app, ctx.obj, service=service, host=host, port=port) as found:
        at = found.server.address
        talk(f"page       {at}/#key={found.key}")
        talk(f"decisions  POST {at}/{found.service.name}, header X-Api-Key: its value is in {found.key_place}")

        def ready() -> None:
            for line in found.server.desk.known:
                talk(f"known      {line}")
            talk("ready; Ctrl-C stops it")

        left = found.server.run(ready, talk)
    talk("stopped" if not left else f"stopped; {left:,} events were never written, as was told: the broker is away")
