"""``initadvisor config``: what is configured, and from where; one key set or removed."""

from __future__ import annotations

import click

from initadvisor.cli.rendering.output import print_json
from initadvisor.core.text import shown


def _keys_beginning_with(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    from initadvisor.core.config import key_names

    return [name for name in key_names() if name.startswith(incomplete)]


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_context
def config(ctx: click.Context, *, as_json: bool) -> None:
    """Show each value in effect, and whether /etc/initadvisor.toml or the default gives it."""
    from initadvisor.core.config_text import written
    from initadvisor.host import Host
    from initadvisor.host.configuration import CONFIG_PATH, load_config, load_tables

    if ctx.invoked_subcommand:
        return
    host = Host()
    configured = load_tables(host)
    values = [
        (f"{table}.{key}", value, CONFIG_PATH if key in configured.get(table, {}) else "default")
        for table, keys in load_config(host).tables.items()
        for key, value in keys.items()
    ]
    if as_json:
        print_json(
            {
                "values": [
                    {"key": key, "value": value, "source": source} for key, value, source in values
                ]
            }
        )
        return
    width = max(len(key) for key, _, _ in values)
    for key, value, source in values:
        told = "not set" if value is None else shown(written(value))
        click.echo(f"{key.ljust(width)}  {told}  ({source})")


@config.command("set")
@click.argument("key", shell_complete=_keys_beginning_with)
@click.argument("value")
def set_(*, key: str, value: str) -> None:
    """Set KEY, such as machine.read_speed_mb_s, to VALUE in /etc/initadvisor.toml.

    VALUE is written as in the file; a single word needs no quotes. Comments and all other lines
    stay.
    """
    from initadvisor.core.config_text import parse_value
    from initadvisor.host import Host
    from initadvisor.host.configuration import change_config

    change_config(Host(), key, parse_value(value))


@config.command()
@click.argument("key", shell_complete=_keys_beginning_with)
def unset(*, key: str) -> None:
    """Remove KEY from /etc/initadvisor.toml, so that its default holds."""
    from initadvisor.host import Host
    from initadvisor.host.configuration import change_config

    change_config(Host(), key, None)
