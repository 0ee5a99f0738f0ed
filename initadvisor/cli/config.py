"""``initadvisor config``: what is configured, and from where; one key set or removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.rendering.output import print_json
from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host


def _keys_beginning_with(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    from initadvisor.core.config import key_names

    return [name for name in key_names() if name.startswith(incomplete)]


def _values_beginning_with(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    from initadvisor.core.config import key_names, key_values

    key = ctx.params.get("key")
    words = key_values(key) if key in key_names() else ()
    return [word for word in words if word.startswith(incomplete)]


_DEFAULT = "default"
_JSON = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")


@click.group(invoke_without_command=True)
@_JSON
@click.pass_context
def config(ctx: click.Context, *, as_json: bool) -> None:
    """Show each value in effect, and whether /etc/initadvisor.toml or the default gives it."""
    from initadvisor.host import Host
    from initadvisor.host.configuration import CONFIG_PATH, load_config, load_tables

    if ctx.invoked_subcommand:
        return
    host = Host()
    configured = load_tables(host)
    values = [
        (f"{table}.{key}", value, CONFIG_PATH if key in configured.get(table, {}) else _DEFAULT)
        for table, keys in load_config(host).tables.items()
        for key, value in keys.items()
    ]
    if as_json:
        _print_values(values)
        return
    width = max(len(key) for key, _, _ in values)
    for key, value, source in values:
        click.echo(f"{key.ljust(width)}  {_told(value)}  ({source})")


@config.command("set", context_settings={"ignore_unknown_options": True})  # a value may be -5
@click.argument("key", shell_complete=_keys_beginning_with)
@click.argument("value", shell_complete=_values_beginning_with)
@_JSON
def set_(*, key: str, value: str, as_json: bool) -> None:
    """Set KEY to VALUE in the file.

    That is /etc/initadvisor.toml; keys are such as machine.read_speed_mb_s. VALUE is written as in
    the file; a single word needs no quotes. Comments and all other lines stay.
    """
    from initadvisor.core.config_text import parse_value
    from initadvisor.host import Host
    from initadvisor.host.configuration import CONFIG_PATH, change_config

    host = Host()
    change_config(host, key, parse_value(value))
    name, now = _now(host, key)
    if as_json:
        _print_values([(name, now, CONFIG_PATH)])
    else:
        click.echo(f"{name} = {_told(now)} in {host.path(CONFIG_PATH)}")


@config.command()
@click.argument("key", shell_complete=_keys_beginning_with)
@_JSON
def unset(*, key: str, as_json: bool) -> None:
    """Remove KEY from /etc/initadvisor.toml, so that its default holds."""
    from initadvisor.host import Host
    from initadvisor.host.configuration import CONFIG_PATH, change_config

    host = Host()
    change_config(host, key, None)
    name, now = _now(host, key)
    if as_json:
        _print_values([(name, now, _DEFAULT)])
    else:
        told = _told(now)
        click.echo(f"{name} is {told}, the default: {host.path(CONFIG_PATH)} does not set it")


def _print_values(values: Sequence[tuple[str, object, str]]) -> None:
    print_json(
        {
            "values": [
                {"key": key, "value": value, "source": source} for key, value, source in values
            ]
        }
    )


def _now(host: Host, key: str) -> tuple[str, object]:
    """Return a key with its table, and the value in effect."""
    from initadvisor.core.config import find_key
    from initadvisor.host.configuration import load_config

    table, name = find_key(key)
    return f"{table}.{name}", load_config(host).tables[table][name]


def _told(value: object) -> str:
    from initadvisor.core.config_text import written

    return "not set" if value is None else shown(written(value))
