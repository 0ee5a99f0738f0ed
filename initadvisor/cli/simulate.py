"""``initadvisor simulate``: how many boots a decision takes on machines like some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.file_name import FileName
from initadvisor.cli.span import Number, Whole, number_or_range
from initadvisor.model.errors import UsageError
from initadvisor.model.estimate import Evidence

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.model.whatif import Given

_STRAINS = ("half", "none", "curved", "drift", "contention", "correlated", "outliers", "all")


@click.command()
@click.option(
    "--machines",
    type=Whole(1, 100_000),
    default=200,
    show_default=True,
    help="How many machines to make up.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME|FILE",
    help="Make machines like those of a table (see whatif --list); may be repeated.",
)
@click.option("--this-machine", is_flag=True, help="Make machines like this one.")
@click.option(
    "--image",
    type=FileName(),
    help="Make machines like this one, but with this image, of any machine.",
)
@click.option("--today", metavar="SETTING", help="The setting that machines have today.")
@click.option(
    "--read-speed",
    callback=number_or_range(least=0.01, most=1e6),
    metavar="MB/S",
    help="How fast their boot loaders read; also a range.  [default: 16..1500]",
)
@click.option(
    "--shadow",
    callback=number_or_range(least=0, most=1e6),
    metavar="MS",
    help="For how long their kernels do not wait; also a range.  [default: 5..800]",
)
@click.option(
    "--noise",
    type=Number(min=0, max=50),
    default=6,
    show_default=True,
    metavar="PERCENT",
    help="How far boots of one image are apart.",
)
@click.option(
    "--outliers",
    type=Number(min=0, max=30),
    default=5,
    show_default=True,
    metavar="PERCENT",
    help="Which part of the boots is disturbed.",
)
@click.option(
    "--evidence",
    type=click.Choice([str(Evidence.BENCH), str(Evidence.LAB)]),
    default=str(Evidence.BENCH),
    show_default=True,
    help="What is known before the first boot.",
)
@click.option(
    "--strain",
    type=click.Choice(_STRAINS),
    default="half",
    show_default=True,
    help="Which machines break the model: half of them, none, all, or all in one way.",
)
@click.option(
    "--most-boots",
    type=Whole(1, 1000),
    default=40,
    show_default=True,
    help="After how many boots a campaign is given up.",
)
@click.option(
    "--certainty",
    type=Number(min=0.5, max=1, max_open=True),
    metavar="P",
    help="How probable a saving must be.  [default: the configuration's]",
)
@click.option(
    "--tolerance-ms",
    type=Number(min=0, max=1e6),
    metavar="MS",
    help="Which saving does not matter.  [default: the configuration's]",
)
@click.option(
    "--tolerance-fraction",
    type=Number(min=0, max=1, max_open=True),
    metavar="PART",
    help="The same, as a part of today's total.  [default: the configuration's]",
)
@click.option(
    "--seed",
    type=Whole(0, 2**32 - 1),
    default=1,
    show_default=True,
    help="Another seed makes up other machines.",
)
@click.option("--jobs", type=Whole(1, 1000), help="How many processes compute.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def simulate(
    *,
    machines: int,
    tables: tuple[str, ...],
    this_machine: bool,
    image: Path | None,
    today: str | None,
    read_speed: Given | None,
    shadow: Given | None,
    noise: float,
    outliers: float,
    evidence: str,
    strain: str,
    most_boots: int,
    certainty: float | None,
    tolerance_ms: float | None,
    tolerance_fraction: float | None,
    seed: int,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Say how many boots a decision takes on machines like some, and how often it is right.

    Machines are made up: their images are those of measured tables, varied, and what they are in
    truth is known. The same code that advises on real machines then boots them until it is certain.
    Beside it stands the classic comparison, 20 boots of every setting.
    """
    if tables and (this_machine or image is not None):
        msg = "--table and --this-machine or --image exclude each other"
        raise UsageError(msg)
    from initadvisor.cli.progress import Progress
    from initadvisor.host import Host
    from initadvisor.model.setting import Setting
    from initadvisor.workflow.simulate_ground import like_tables, like_this_machine
    from initadvisor.workflow.simulation import Question
    from initadvisor.workflow.simulation import simulate as run

    host = Host()
    question = Question(
        machines=machines,
        read_mb_s=read_speed,
        shadow_ms=shadow,
        noise=noise / 100,
        outliers=outliers / 100,
        evidence=Evidence(evidence),
        mix=strain,
        most_boots=most_boots,
        certainty=certainty,
        tolerance_ms=tolerance_ms,
        tolerance_fraction=tolerance_fraction,
        seed=seed,
        processes=jobs or host.cores,
    )
    first = Setting.parse(today) if today is not None else None
    with Progress() as progress:
        likeness = (
            like_this_machine(host, image, first, observer=progress)
            if this_machine or image is not None
            else like_tables(tables, first)
        )
        answer = run(host, question, likeness, observer=progress)
    if as_json:
        import json

        from initadvisor.cli.simulate_json import as_document

        click.echo(json.dumps(as_document(answer), indent=2, allow_nan=False))
    else:
        from initadvisor.cli.simulate_text import print_simulation

        print_simulation(answer)
