"""The `groundwire` command."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer

from groundwire.errors import ConfigError, GroundwireError, MissingExtra

app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="An OpenAI-compatible proxy that reports which claims of an answer the request's own context supports.",
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
        help="The entailment model: shipped, off, a profile, a folder or a hub id. Default: the one that serve uses.",
    ),
]

JudgeName = Annotated[
    str | None,
    typer.Option(
        "--judge",
        help="The judge of claims that exact checks leave open: a model of an upstream, self (the model that "
        "answered), external (the service at judge.url), encoder:PATH_OR_ID, encoder, or off. Default: judge.by of "
        "the settings.",
    ),
]


@app.command()
def serve(
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0: a free one.", min=0, max=65535)] = None,
    judge: JudgeName = None,
) -> None:
    """Run the proxy. Point an OpenAI SDK's base_url at http://HOST:PORT/v1."""
    from groundwire.http.run import run

    flags = {"GROUNDWIRE_SERVER__HOST": host, "GROUNDWIRE_SERVER__PORT": port, **_judged_by(judge)}
    run(lambda: _settings(config, flags), _config_path(config))


@app.command()
def demo(
    pace: Annotated[float, typer.Option(help="Seconds between two words of the demo model.", min=0, max=1)] = 0.01,
    stay: Annotated[bool, typer.Option("--stay", help="Store the answers, and keep running for their review.")] = False,
    port: Annotated[
        int | None, typer.Option(help="Send no request, and serve on this port for your own.", min=0, max=65535)
    ] = None,
) -> None:
    """Demonstrate the proxy with a demo model server and three requests."""
    from groundwire.demo.show import serve_demo, show

    raise typer.Exit(show(pace, stay=stay) if port is None else serve_demo(pace, port))


@app.command()
def mcp(config: ConfigFile = None) -> None:
    """Serve verify_claim, verify_claims and audit_trace to an agent over standard input and output (MCP)."""
    from groundwire.http.run import run_mcp

    run_mcp(_settings(config))


@app.command()
def check(
    answer: Annotated[Path, typer.Argument(help="The answer: a text or JSON file, or - for standard input.")],
    sources: Annotated[
        list[Path], typer.Argument(help="The sources: text, Markdown, HTML, CSV, JSON, PDF or DOCX files.")
    ],
    evidence_field: Annotated[
        list[str] | None, typer.Option(help="A field (name or JSON pointer) of a JSON answer that holds quotations.")
    ] = None,
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as the proxy would send it.")] = False,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            help="As serve takes it, without self. Given several times, or as all (off, the encoder, and the judge of "
            "the settings): the verdicts of each, side by side.",
        ),
    ] = None,
) -> None:
    """Check an answer against source files, without a server; a model is asked only where one judges.

    Exits with 0 when every claim that could be checked is supported, 1 when one is not, and 2 when nothing was checked;
    with several judges, by what the first of them finds.
    """
    from groundwire.terminal import check_files, compare_judges

    judges = {name: _settings(config, _judged_by(name)) for name in _judges(judge or [], config)}
    fields = evidence_field or []
    if len(judges) > 1:
        raise typer.Exit(compare_judges(answer, sources, fields, judges, as_json))
    settings = next(iter(judges.values()), None) or _settings(config)
    raise typer.Exit(check_files(answer, sources, fields, settings, as_json))


def _judges(named: list[str], config: Path | None) -> list[str]:
    """Return the judges that a command line names, each once; `all` means off, the encoder and the configured one."""
    found: list[str] = []
    for name in named:
        if name != "all":
            found.append(name)
            continue
        judge = _settings(config).judge
        found += ["off", "encoder", *([judge.by] if judge.is_language and judge.by != "self" else [])]
    return list(dict.fromkeys(found))


def _judged_by(name: str | None) -> dict[str, str]:
    """Return the variables that make a judge of a name on the command line."""
    if name is None:
        return {}
    by, _, model = name.partition(":")
    if by != "encoder":
        return {"GROUNDWIRE_JUDGE__BY": name}
    profile = {"GROUNDWIRE_JUDGE__PROFILE": "", "GROUNDWIRE_JUDGE__MODEL": model} if model else {}
    return {"GROUNDWIRE_JUDGE__BY": "encoder", **profile}


@app.command()
def batch(
    source: Annotated[
        str, typer.Argument(help="Logged answers: .jsonl, .csv or .parquet; for a cluster a folder, pattern or URL.")
    ],
    target: Annotated[str, typer.Argument(help="The reports, one per row: .jsonl or .parquet; else a folder or URL.")],
    answer: Annotated[str, typer.Option(help="The column of the answer; dots lead into nested values.")] = "answer",
    sources: Annotated[str, typer.Option(help="The column of the sources: a text, or a list of them.")] = "sources",
    question: Annotated[str, typer.Option(help="The column of the question.")] = "question",
    messages: Annotated[str, typer.Option(help="The column of the messages of the request.")] = "messages",
    id_: Annotated[str, typer.Option("--id", help="The column of an id that is copied to the output.")] = "id",
    workers: Annotated[int | None, typer.Option(help="Worker processes. Default: one per core.", min=1)] = None,
    limit: Annotated[int | None, typer.Option(help="Maximum rows; for a cluster, of each file.", min=1)] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Write a page with the figures to this file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start anew, even if the output exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    engine: Annotated[
        Literal["local", "dask"],
        typer.Option(help="dask: the Dask cluster at DASK_SCHEDULER_ADDRESS, or one started here; a task per file."),
    ] = "local",
    config: ConfigFile = None,
    judge: JudgeName = None,
) -> None:
    """Verify logged answers in bulk, on all cores or a cluster. An interrupted batch continues where it stopped.

    Exits with 0, or with 1 if a row could not be read; its line in the output has the reason.
    """
    from groundwire.bulk.cluster import run_cluster
    from groundwire.bulk.files import Columns
    from groundwire.bulk.run import Options, run_batch, timed_batch

    columns = Columns(answer, sources, question, messages, id_)
    options = Options(source, target, columns, workers or os.cpu_count() or 1, limit, page, overwrite)
    run = run_cluster if engine == "dask" else run_batch
    raise typer.Exit(timed_batch(run, options, _settings(config, _judged_by(judge)), as_json=as_json))


@app.command("eval")
def evaluate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Labelled answers, one JSON object a line. Default: the bundled sample.")
    ] = None,
    every: Annotated[Path | None, typer.Option("--all", help="Every .jsonl file of this folder.")] = None,
    policy: Annotated[
        Literal["strict", "balanced", "lenient"], typer.Option(help="The thresholds to apply.")
    ] = "balanced",
    limit: Annotated[int | None, typer.Option(help="Maximum rows of each file; always the same ones.", min=1)] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Write figures and outcomes to this file; -: standard output.")
    ] = None,
    table: Annotated[Path | None, typer.Option(help="Write the figures to this file as a Markdown table.")] = None,
    plots: Annotated[
        Path | None, typer.Option(help="Write a reliability diagram (SVG) per file to this folder.")
    ] = None,
    compare: Annotated[Path | None, typer.Option(help="An earlier --json file to compare with.")] = None,
    baseline: Annotated[Path | None, typer.Option(help='Bounds to keep: {"NAME.FIGURE": least, …} as JSON.')] = None,
    model: JudgeModel = None,
) -> None:
    """Measure verdicts against labelled answers: accuracy, and the calibration of scores.

    A line holds id, context (a text or a list of them), answer, label (0 grounded, 1 not) and, if known, spans: a list
    of {start, end} of the ungrounded parts. Exits with 1 when a figure is outside the bounds of the baseline.
    """
    from groundwire.evaluation.rows import SAMPLE
    from groundwire.evaluation.run import evaluate as run
    from groundwire.policy import Policy

    status = run(
        [*(files or []), *(sorted(every.glob("*.jsonl")) if every else [])] or [SAMPLE],
        Policy(name=policy),
        _judge(model),
        limit=limit,
        json_file=as_json,
        table=table,
        plots=plots,
        earlier=compare,
        baseline=baseline,
    )
    raise typer.Exit(status)


@app.command()
def calibrate(
    data: Annotated[
        Path | None, typer.Option(help="A folder with labelled answers (.jsonl), as eval reads them.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; without it, the fit is only measured.")] = None,
    model: JudgeModel = None,
    from_reviews: Annotated[
        bool, typer.Option("--from-reviews", help="Fit on the reviewed answers of the store too: store.url.")
    ] = False,
    config: ConfigFile = None,
) -> None:
    """Fit the calibration of verdicts to labelled answers, and print its data and its out-of-fold accuracy.

    With --model: the combination of the entailment model with words, names and numbers, and the thresholds of the
    policies, written as groundwire.json into the model's folder (or to --out). Without: that of words, names and
    numbers alone, proxy/groundwire/verifiers/weights.json. Reviewed answers were all flagged: fit them together
    with other labelled ones (--data), or the fit learns only from flagged answers.
    """
    from groundwire.evaluation.calibrate import calibrate as refit

    if from_reviews and model is None:
        with TemporaryDirectory(prefix="groundwire-") as folder:
            reviewed = _reviewed(Path(folder), _settings(config))
            refit(data or Path(folder), None, out, [reviewed] if data else [])
        return
    if data is None or from_reviews:
        needed = "--from-reviews fits no entailment model" if from_reviews else "--data or --from-reviews is needed"
        raise typer.BadParameter(needed)
    refit(data, None if model is None else _judge(model), out)


def _reviewed(folder: Path, settings: Any) -> Path:
    """Export the reviewed answers of the store as a file of labelled answers."""
    from groundwire.extras import require_extras

    require_extras(("calibrate --from-reviews", "history"))
    from groundwire.evaluation.reviewed import write_reviewed

    if settings.store.url is None:
        raise ConfigError(["store.url: it must be set where reviewed answers are to be read"])
    file = folder / "reviewed.jsonl"
    count = write_reviewed(settings.store.url, settings.store.database_schema, file)
    typer.echo(f"{count} reviewed answers", err=True)
    return file


@app.command("config")
def show_config(
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """Print the settings in effect, from file and environment, or the errors in them."""
    import yaml

    from groundwire.container import build_container

    settings = _settings(config)
    build_container(settings)  # finds errors that appear only when components are built, such as a missing secret
    if as_json:
        typer.echo(json.dumps(settings.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    in_environment = any(name.startswith("GROUNDWIRE_") and "__" in name for name in os.environ)
    also = ", and the environment" if in_environment else ""
    typer.echo(f"# in effect: {_config_path(config) or 'the defaults'}{also}")
    typer.echo(yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True), nl=False)


@app.command()
def doctor(
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check settings, upstreams, judge, stores and port, and print what is wrong and what to do.

    Exits with 1 if something is broken. It sends no question to a model.
    """
    from groundwire.doctor import examine

    raise typer.Exit(examine(_config_path(config), as_json=as_json))


@app.command("version")
def show_version(
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Print the version."""
    typer.echo(json.dumps({"version": _version()}) if as_json else _version())


@app.command()
def completions(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.")]) -> None:
    """Print a script that completes commands and options in a shell.

    bash: source <(groundwire completions bash); zsh: the same after compinit.
    fish: groundwire completions fish | source.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name="groundwire", complete_var="_GROUNDWIRE_COMPLETE", shell=shell))


keys = typer.Typer(no_args_is_help=True, help="Create, list and revoke the keys that clients need: server.keys.")
app.add_typer(keys, name="keys")

KeyFile = Annotated[Path | None, typer.Option("--file", help="The file of keys. Default: server.keys.")]


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="The name of the client in logs, traces and limits.")],
    requests_per_minute: Annotated[
        int | None, typer.Option(help="Maximum requests per minute; default: unlimited.", min=1)
    ] = None,
    concurrent: Annotated[
        int | None, typer.Option(help="Maximum concurrent requests; a stream counts until its end.", min=1)
    ] = None,
    expires: Annotated[str | None, typer.Option(help="Lifetime of the key, such as 90d; default: unlimited.")] = None,
    file: KeyFile = None,
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print name, key and expiry as JSON.")] = False,
) -> None:
    """Create a key and print it, the only time that it is shown: the file holds its digest. It is valid at once."""
    from datetime import UTC, datetime

    from groundwire.config import seconds
    from groundwire.http.keys import create_key as create
    from groundwire.http.keys import public_fields
    from groundwire.storage.limits import Limits

    file = _key_file(file, config)
    try:
        lasts = None if expires is None else seconds(expires)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    key, client = create(file, name, Limits(requests_per_minute, concurrent), datetime.now(UTC), lasts)
    until = f", until {client.expires:%Y-%m-%d %H:%M} UTC" if client.expires else ""
    typer.echo(f"The key of '{name}'{until}, kept as a digest in {file}. Note it down: it is shown only now.", err=True)
    typer.echo(json.dumps({"name": name, "key": key, **public_fields(client)}) if as_json else key)


@keys.command("list")
def list_keys(
    file: KeyFile = None,
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the clients, the limits of their keys and their expiry. The keys themselves cannot be shown."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from groundwire.http.keys import public_fields, read_clients

    known = {client.name: public_fields(client) for client in read_clients(_key_file(file, config))}
    if as_json:
        typer.echo(json.dumps(known, indent=2))
        return
    table = Table("name", "per minute", "at once", "created", "expires", box=box.SIMPLE_HEAD)
    for name, each in known.items():
        table.add_row(name, *(str(value if value is not None else "–") for value in each.values()))
    Console().print(table)


@keys.command("revoke")
def revoke_key(
    name: Annotated[str, typer.Argument(help="The client whose key to revoke.")],
    file: KeyFile = None,
    config: ConfigFile = None,
) -> None:
    """Revoke a key. Running proxies notice within a second; requests in progress are still answered."""
    from groundwire.http.keys import revoke_key as revoke

    file = _key_file(file, config)
    revoke(file, name)
    typer.echo(f"The key of '{name}' is revoked in {file}.", err=True)


def _key_file(file: Path | None, config: Path | None) -> Path:
    named = file or _settings(config).server.keys
    if named is None:
        raise ConfigError(["server.keys: it names no file; set it, or give one by --file"])
    return Path(named)


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(_version())
        raise typer.Exit


def _version() -> str:
    from importlib.metadata import version

    return version("groundwire")


def _settings(config: Path | None, overrides: dict[str, Any] | None = None) -> Any:
    """Load the settings for a command; flags override the environment, which overrides the file."""
    from groundwire.config import load_settings

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
    """Return the settings of the judge with the model given on the command line."""
    if model is None:
        return _settings(None).judge
    if model == "off":
        return _settings(None, {"GROUNDWIRE_JUDGE__BY": "off"}).judge
    profile = {"GROUNDWIRE_JUDGE__PROFILE": ""} if model == "shipped" else {}
    return _settings(None, {"GROUNDWIRE_JUDGE__BY": "encoder", "GROUNDWIRE_JUDGE__MODEL": model, **profile}).judge


def _config_path(config: Path | None) -> Path | None:
    default = Path("config.yaml")
    return config or (default if default.exists() else None)


def main() -> None:
    """Run the command. A user error prints one sentence on standard error and exits with status 2."""
    try:
        app()
    except MissingExtra as error:
        sys.exit(_complaint(*error.problems))
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
