"""The `groundwire` command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer

from proxy.errors import ConfigError, GroundwireError

app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="An OpenAI-compatible proxy that says which claims of an answer the request's own context supports.",
)

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="A settings file. Without it, ./config.yaml if there is one, else the defaults."
    ),
]


JudgeModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="The entailment model: shipped, off, a profile, a folder or a hub id. Default: as serve takes it.",
    ),
]


@app.command()
def serve(
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0: a free one.", min=0, max=65535)] = None,
) -> None:
    """Run the proxy. Point an OpenAI SDK's base_url at http://HOST:PORT/v1."""
    from proxy.server.run import run

    flags = {"GROUNDWIRE_SERVER__HOST": host, "GROUNDWIRE_SERVER__PORT": port}
    run(lambda: _settings(config, flags), _config_path(config))


@app.command()
def demo(
    pace: Annotated[float, typer.Option(help="Seconds between two words of the demo model.", min=0, max=1)] = 0.01,
    stay: Annotated[bool, typer.Option("--stay", help="Store the answers, and stay to have them reviewed.")] = False,
) -> None:
    """Show it at work: a demo model server, the proxy before it, and three requests through the openai SDK."""
    from proxy.demo.show import show

    raise typer.Exit(show(pace, stay=stay))


@app.command()
def mcp(config: ConfigFile = None) -> None:
    """Serve verify_claim, verify_claims and audit_trace to an agent over standard input and output (MCP)."""
    from proxy.server.run import run_mcp

    run_mcp(_settings(config))


@app.command()
def check(
    answer: Annotated[Path, typer.Argument(help="The answer: a text or JSON file, or - for standard input.")],
    sources: Annotated[list[Path], typer.Argument(help="The sources: text, Markdown, HTML, CSV or JSON files.")],
    evidence_field: Annotated[
        list[str] | None, typer.Option(help="A field (name or JSON pointer) of a JSON answer that holds quotations.")
    ] = None,
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as the proxy would send it.")] = False,
) -> None:
    """Check an answer against source files, without any model or server.

    Exits with 0 when every claim that could be checked is supported, 1 when one is not, and 2 when nothing was checked.
    """
    from proxy.terminal import check_files

    raise typer.Exit(check_files(answer, sources, evidence_field or [], _settings(config), as_json))


@app.command("eval")
def evaluate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Labelled answers, one JSON object a line. Without any: our own sample.")
    ] = None,
    every: Annotated[Path | None, typer.Option("--all", help="Every .jsonl file of this folder.")] = None,
    policy: Annotated[
        Literal["strict", "balanced", "lenient"], typer.Option(help="Which thresholds decide.")
    ] = "balanced",
    limit: Annotated[
        int | None, typer.Option(help="At most so many rows of each file, always the same.", min=1)
    ] = None,
    as_json: Annotated[Path | None, typer.Option("--json", help="Write figures and outcomes to this file.")] = None,
    table: Annotated[Path | None, typer.Option(help="Write the figures to this file as a Markdown table.")] = None,
    plots: Annotated[
        Path | None, typer.Option(help="Write a reliability diagram (SVG) per file to this folder.")
    ] = None,
    compare: Annotated[Path | None, typer.Option(help="A file that --json wrote before, to compare with.")] = None,
    baseline: Annotated[Path | None, typer.Option(help='Bounds to keep: {"NAME.FIGURE": least, …} as JSON.')] = None,
    model: JudgeModel = None,
) -> None:
    """Measure verdicts against labelled answers: how often they are right, and how far scores are probabilities.

    A line holds id, context (a text or a list of them), answer, label (0 grounded, 1 not) and, if known, spans: a list
    of {start, end} of what is not grounded. Exits with 1 when a figure is outside the bounds of the baseline.
    """
    from proxy.evaluation.rows import SAMPLE
    from proxy.evaluation.run import Options
    from proxy.evaluation.run import evaluate as run
    from proxy.types import Policy

    found = [*(files or []), *(sorted(every.glob("*.jsonl")) if every else [])] or [SAMPLE]
    raise typer.Exit(
        run(Options(tuple(found), Policy(name=policy), _judge(model), limit, as_json, table, plots, compare, baseline))
    )


@app.command()
def calibrate(
    data: Annotated[
        Path | None, typer.Option(help="A folder with labelled answers (.jsonl), as eval reads them.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the weights; without it they are only measured.")
    ] = None,
    model: JudgeModel = None,
    from_reviews: Annotated[
        bool, typer.Option("--from-reviews", help="Fit on the reviewed answers of the store too: store.url.")
    ] = False,
    config: ConfigFile = None,
) -> None:
    """Fit what ships to labelled answers, and print what it was fitted on and how good it is, out of fold.

    With --model: how its opinion is combined with words, names and numbers, and the thresholds of the policies, written
    as groundwire.json into the model's folder (or to --out). Without: the model of words that is the fallback,
    proxy/verification/alignment/weights.json. Reviewed answers were all flagged: fit on them together with other
    labelled ones (--data), or the model learns of such answers only.
    """
    from proxy.evaluation.calibrate import calibrate as refit
    from proxy.evaluation.combine import calibrate_model

    if from_reviews and model is None:
        with TemporaryDirectory(prefix="groundwire-") as folder:
            reviewed = _reviewed(Path(folder), _settings(config))
            refit(data or Path(folder), out, [reviewed] if data else [])
        return
    if data is None or from_reviews:
        needed = "--from-reviews fits no entailment model" if from_reviews else "--data or --from-reviews is needed"
        raise typer.BadParameter(needed)
    if model is None:
        refit(data, out)
    else:
        calibrate_model(data, _judge(model), out)


def _reviewed(folder: Path, settings: Any) -> Path:
    """The reviewed answers of the store, as a file of labelled ones."""
    from proxy.evaluation.reviewed import write_reviewed

    if settings.store.url is None:
        raise ConfigError(["store.url: it must be set where reviewed answers are to be read"])
    file = folder / "reviewed.jsonl"
    count = write_reviewed(settings.store.url, settings.store.database_schema, file)
    typer.echo(f"{count} reviewed answers", err=True)
    return file


@app.command("config")
def show_config(config: ConfigFile = None) -> None:
    """Print the settings in effect, from file and environment, or say what is wrong in them."""
    import yaml

    from proxy.wiring import build_house

    settings = _settings(config)
    build_house(settings)  # finds what only shows when the parts are put together, such as a missing secret
    path = _config_path(config)
    typer.echo(f"# in effect: {path or 'the defaults'}" + (", and the environment" if _from_environment() else ""))
    typer.echo(yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True), nl=False)


keys = typer.Typer(no_args_is_help=True, help="Create, list and revoke the keys that clients need: server.keys.")
app.add_typer(keys, name="keys")

KeyFile = Annotated[Path | None, typer.Option("--file", help="The file of keys. Without it, server.keys says which.")]


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="By which logs, traces and limits know the client.")],
    requests_per_minute: Annotated[
        int | None, typer.Option(help="How many it may ask; else any number.", min=1)
    ] = None,
    concurrent: Annotated[
        int | None, typer.Option(help="How many of its requests may run at once; a stream runs to its end.", min=1)
    ] = None,
    expires: Annotated[str | None, typer.Option(help="After how long the key ends, such as 90d; else never.")] = None,
    file: KeyFile = None,
    config: ConfigFile = None,
) -> None:
    """Make a key and print it: the only time that it is shown, as the file holds its digest. It counts at once."""
    from datetime import UTC, datetime

    from proxy.server.clients import create_key as create
    from proxy.stores.limits import Limits

    file = _key_file(file, config)
    lasts = None if expires is None else _duration(expires)
    key, client = create(file, name, Limits(requests_per_minute, concurrent), datetime.now(UTC), lasts)
    until = f", until {client.expires:%Y-%m-%d %H:%M} UTC" if client.expires else ""
    typer.echo(f"The key of '{name}'{until}, kept as a digest in {file}. Note it down: it is shown only now.", err=True)
    typer.echo(key)


@keys.command("list")
def list_keys(
    file: KeyFile = None,
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """Show whose keys there are, what each may do, and until when. Keys themselves nobody can be shown."""
    import json

    from rich import box
    from rich.console import Console
    from rich.table import Table

    from proxy.server.clients import known_of, read_clients

    known = {client.name: known_of(client) for client in read_clients(_key_file(file, config))}
    if as_json:
        typer.echo(json.dumps(known, indent=2))
        return
    table = Table("name", "per minute", "at once", "created", "expires", box=box.SIMPLE_HEAD)
    for name, each in known.items():
        table.add_row(name, *(str(value if value is not None else "–") for value in each.values()))
    Console().print(table)


@keys.command("revoke")
def revoke_key(
    name: Annotated[str, typer.Argument(help="Whose key is to end.")],
    file: KeyFile = None,
    config: ConfigFile = None,
) -> None:
    """End a key. Running proxies notice within a second; what is being answered is still answered."""
    from proxy.server.clients import revoke_key as revoke

    file = _key_file(file, config)
    revoke(file, name)
    typer.echo(f"The key of '{name}' is revoked in {file}.", err=True)


def _key_file(file: Path | None, config: Path | None) -> Path:
    named = file or _settings(config).server.keys
    if named is None:
        raise ConfigError(["server.keys: it names no file; set it, or give one by --file"])
    return Path(named)


def _duration(text: str) -> float:
    from proxy.config import seconds

    try:
        return seconds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("groundwire"))
        raise typer.Exit


def _settings(config: Path | None, overrides: dict[str, Any] | None = None) -> Any:
    """The settings for a command; flags win over the environment, which wins over the file."""
    from proxy.config import load_settings

    given = {name: str(value) for name, value in (overrides or {}).items() if value is not None}
    return load_settings(_config_path(config), {**os.environ, **given}, _warn)


def _warn(problem: str) -> None:
    """Print a warning about the settings; once the server runs, log it."""
    import structlog

    if structlog.is_configured():
        structlog.get_logger("groundwire.config").warning("config.unknown_variable", problem=problem)
    else:
        typer.echo(f"warning: {problem}", err=True)


def _judge(model: str | None) -> Any:
    """Return the settings of the judge, with the model that the command line names."""
    if model is None:
        return _settings(None, {}).judge
    if model == "off":
        return _settings(None, {"GROUNDWIRE_JUDGE__BY": "off"}).judge
    profile = {"GROUNDWIRE_JUDGE__PROFILE": ""} if model == "shipped" else {}
    return _settings(None, {"GROUNDWIRE_JUDGE__BY": "encoder", "GROUNDWIRE_JUDGE__MODEL": model, **profile}).judge


def _config_path(config: Path | None) -> Path | None:
    default = Path("config.yaml")
    return config or (default if default.exists() else None)


def _from_environment() -> bool:
    return any(name.startswith("GROUNDWIRE_") and "__" in name for name in os.environ)


def main() -> None:
    """Runs the command. What goes wrong by the user's doing is one sentence on standard error, and exit status 2."""
    try:
        app()
    except ConfigError as error:
        sys.exit(_complaint("The settings cannot be used:", *error.problems))
    except GroundwireError as error:
        sys.exit(_complaint(str(error)))
    except OSError as error:
        sys.exit(_complaint(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)))


def _complaint(*lines: str) -> int:
    for line in lines:
        typer.echo(line, err=True)
    return 2
