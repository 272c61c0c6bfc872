"""`llamasweep schema`: the JSON Schema of sweep files, for editors."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file instead of the screen.",
)
def command(out: Path | None) -> None:
    """Print the JSON Schema of sweep files, for completion and checks in an editor.

    \b
    Example:
      llamasweep schema --out sweep.schema.json
      and as the first line of a sweep:
      # yaml-language-server: $schema=sweep.schema.json
    """
    import json

    from llamasweep.errors import UsageError
    from llamasweep.sweep.schema import json_schema

    text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {out}: {error.strerror}", hint="Give another file with --out."
        ) from None
    click.echo(f"Wrote {out}")
