"""Settings from a file and the environment, as in wire.md's config.yaml: valid values, and errors."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from groundwire.config import Settings, Tolerance, Upstream, load_settings, without_passwords
from groundwire.errors import ConfigError

EXAMPLE = Path(__file__).parents[2] / "config.yaml"
UPSTREAMS = "upstreams:\n  up:\n    base_url: http://up/v1\n"


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Load a file of this text, under these variables."""

    def load(text: str = "", **environ: str) -> Settings:
        path = tmp_path / "config.yaml"
        path.write_text(text, encoding="utf-8")
        return load_settings(path, environ)

    return load


def problems(load: Any, text: str, **environ: str) -> list[str]:
    """Return the errors in this file and these variables; each place without its folder."""
    with pytest.raises(ConfigError) as caught:
        load(text, **environ)
    return [re.sub(r"^/\S*/(?=config\.yaml)", "", problem) for problem in caught.value.problems]


# --- the documented example -------------------------------------------------------------------------------------------


def test_the_documented_example_is_the_default() -> None:
    assert load_settings(EXAMPLE, {}) == load_settings(None, {}) == Settings()


def keys(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        inner = {"upstreams": Upstream}.get(name, field.annotation)
        yield (*path, name)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from keys(inner, (*path, name))


KEYS = [*keys(Settings), *(("numeric", "tolerance", name) for name in Tolerance.model_fields)]


@pytest.mark.parametrize("path", KEYS, ids=".".join)
def test_every_key_is_in_the_documented_example(path: tuple[str, ...]) -> None:
    section = re.search(rf"^{path[0]}:.*?(?=^\S|\Z)", EXAMPLE.read_text(), re.MULTILINE | re.DOTALL)
    assert section, f"no section {path[0]}"
    assert re.search(rf"\b{path[-1]}:", section.group()), f"{'.'.join(path)} is not documented"


def test_every_key_of_the_wire_s_section_names_is_there() -> None:
    sections = {"server", "upstreams", "grounding", "quotes", "numeric", "confidence", "thresholds", "cache", "stream"}
    assert sections <= set(Settings.model_fields)


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("150ms", 0.15),
        ("10s", 10.0),
        ("1.5s", 1.5),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("30d", 2_592_000.0),
        ("0s", 0.0),
        ("10 s", 10.0),
        ("10", 10.0),
        ("0.5", 0.5),
    ],
)
def test_durations(load: Any, written: str, seconds: float) -> None:
    assert load(f"cache: {{ttl: {written}}}").cache.ttl == pytest.approx(seconds)
    assert load(GROUNDWIRE_CACHE__TTL=written).cache.ttl == pytest.approx(seconds)


@pytest.mark.parametrize("written", ["soon", "10 parsecs", "-1s", "1h30m", "1e3s", "''", "[1s]"])
def test_an_invalid_duration_is_refused(load: Any, written: str) -> None:
    (problem,) = problems(load, f"cache:\n  ttl: {written}\n")
    assert problem.startswith("config.yaml:2: cache.ttl: ")


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("512B", 512),
        ("1KiB", 1024),
        ("8MiB", 8 * 2**20),
        ("2GiB", 2**31),
        ("1kB", 1000),
        ("3MB", 3_000_000),
        ("77", 77),
    ],
)
def test_sizes(load: Any, written: str, size: int) -> None:
    assert load(f"server: {{max_body: {written}}}").server.max_body == size
    assert load(GROUNDWIRE_SERVER__MAX_BODY=written).server.max_body == size


@pytest.mark.parametrize("written", ["0", "-1MiB", "8 megs", "1.5MiB", "big"])
def test_an_invalid_size_is_refused(load: Any, written: str) -> None:
    (problem,) = problems(load, f"server:\n  max_body: {written}\n")
    assert problem.startswith("config.yaml:2: server.max_body: ")


@pytest.mark.parametrize(
    ("written", "share"), [("5%", 0.05), ("0.05", 0.05), ("12.5 %", 0.125), ("0", 0.0), ("100%", 1.0)]
)
def test_shares(load: Any, written: str, share: float) -> None:
    assert load(f"thresholds: {{confidence: {written}}}").thresholds.confidence == pytest.approx(share)
    assert load(GROUNDWIRE_THRESHOLDS__CONFIDENCE=written).thresholds.confidence == pytest.approx(share)


@pytest.mark.parametrize("written", ["120%", "1.5", "-5%", "some"])
def test_an_invalid_share_is_refused(load: Any, written: str) -> None:
    (problem,) = problems(load, f"thresholds:\n  confidence: {written}\n")
    assert problem.startswith("config.yaml:2: thresholds.confidence: ")


@pytest.mark.parametrize("written", ["off", "'off'", '"off"'])
def test_a_mode_called_off_is_not_false(load: Any, written: str) -> None:
    """YAML 1.1 reads `off` as false."""
    assert load(f"grounding: {{mode: {written}}}").grounding.mode == "off"


def test_a_switch_may_be_written_in_any_of_yamls_words(load: Any) -> None:
    for written, value in {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.items():
        assert load(f"quotes: {{enabled: {written}}}").quotes.enabled is value
        assert load(GROUNDWIRE_QUOTES__ENABLED=written).quotes.enabled is value


@pytest.mark.parametrize(("written", "days"), [("7d", 7), ("14", 14), ("36h", 1.5)])
def test_a_date_may_be_off_by_days(load: Any, written: str, days: float) -> None:
    assert dict(load(f"numeric: {{tolerance: {{date: {written}}}}}").policy.numeric.tolerance)["date"] == days


@pytest.mark.parametrize("written", ["8080", "1.41", "true", "off", "2024-13-45", "1:30", "0x1F", "=", "12e3"])
def test_a_text_need_not_be_quoted(load: Any, written: str) -> None:
    assert load(f"telemetry: {{service_name: {written}}}").telemetry.service_name == written


@pytest.mark.parametrize("seconds", [0, 0.001, 0.15, 1, 1.5, 59, 60, 90, 600, 3600, 86400, 1e6 + 1, 2_592_000, 1e9])
def test_printed_settings_can_be_loaded_again(load: Any, seconds: float) -> None:
    printed = Settings(cache={"ttl": seconds}, numeric={"tolerance": {"date": 1.5, "ratio": 0.3}}).model_dump(
        mode="json"
    )
    loaded = load(yaml.safe_dump(printed))
    assert loaded.cache.ttl == pytest.approx(seconds)
    assert loaded.model_dump() == Settings(**printed).model_dump()


def test_an_empty_file_is_the_defaults(load: Any) -> None:
    assert load("") == load("# nothing\n") == Settings()


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        pytest.param("{url: 'sqlite:///f.db'}", "need each other", id="no template"),
        pytest.param("{templates: {a: SELECT 1}}", "need each other", id="no database"),
        pytest.param("{url: 'mysql://h/f', templates: {a: SELECT 1}}", "url must begin", id="other database"),
        pytest.param("{url: 'sqlite:///f.db', templates: {a: DELETE FROM t}}", "templates.a must be", id="no query"),
        pytest.param("{url: 'sqlite:///f.db', templates: {a: SELECT 1; DROP TABLE t}}", "templates.a", id="two"),
    ],
)
def test_invalid_facts_settings_are_refused(load: Any, facts: str, why: str) -> None:
    (problem,) = problems(load, f"facts: {facts}")
    assert why in problem


def test_a_template_may_have_a_semicolon_in_its_texts(load: Any) -> None:
    template = "SELECT label, value FROM f WHERE label <> 'a;b' AND id = :id;"
    facts = load(f'facts: {{url: "sqlite:///f.db", templates: {{a: "{template}"}}}}').facts
    assert facts.templates == {"a": template}


# --- the policy -------------------------------------------------------------------------------------------------------


def test_the_policy_has_the_values_of_the_settings(load: Any) -> None:
    policy = load(
        "grounding: {policy: strict, verifiers: [quote], max_claims: 9, hedged: verify}\n"
        "quotes: {enabled: false, mode: fuzzy, fuzzy_threshold: 0.9, fail_on_all_rejected: true}\n"
        "numeric: {currency: false, tolerance: {currency: 10%, date: 14d}, confidence_penalty: 30%,\n"
        "          max_source_checks: 3, timeout: 1s}\n"
        "confidence: {weights: {retrieval: 1, consistency: 0}, source_weights: {user: 50%}}\n"
        "thresholds: {confidence: 0.7}\n"
    ).policy
    assert (policy.name, policy.verifiers, policy.max_claims, policy.verify_hedged) == ("strict", ("quote",), 9, True)
    quotes, numeric = policy.quotes, policy.numeric
    assert (quotes.enabled, quotes.fuzzy, quotes.fuzzy_threshold, quotes.fail_on_all_rejected) == (
        False,
        True,
        0.9,
        True,
    )
    assert (numeric.currency, numeric.percentage, numeric.confidence_penalty) == (False, True, 0.3)
    assert (numeric.max_source_checks, numeric.timeout_s) == (3, 1.0)
    assert dict(numeric.tolerance or ()) == {"currency": 0.1, "percentage": 0.02, "ratio": 0.05, "date": 14.0}
    assert dict(policy.confidence_weights) == {"retrieval": 1, "source": 0.25, "extraction": 0.25, "consistency": 0}
    assert dict(policy.source_weights)["user"] == 0.5
    assert policy.thresholds.confidence == 0.7


def test_written_precision_is_no_tolerance(load: Any) -> None:
    assert load("numeric: {tolerance: written}").policy.numeric.tolerance is None


# --- the environment --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "environ", "path", "value"),
    [
        pytest.param("", {"SERVER__PORT": "9000"}, "server.port", 9000, id="a number"),
        pytest.param("server: {port: 1}", {"SERVER__PORT": "9000"}, "server.port", 9000, id="before the file"),
        pytest.param("server: {host: x}", {"SERVER__PORT": "9"}, "server.host", "x", id="beside the file"),
        pytest.param("", {"GROUNDING__MODE": "off"}, "grounding.mode", "off", id="a mode called off"),
        pytest.param("", {"TELEMETRY__SERVICE_NAME": "123"}, "telemetry.service_name", "123", id="a name of digits"),
        pytest.param(
            "", {"TELEMETRY__SERVICE_NAME": "a: b"}, "telemetry.service_name", "a: b", id="a name with a colon"
        ),
        pytest.param("", {"TELEMETRY__OTLP_ENDPOINT": "null"}, "telemetry.otlp_endpoint", None, id="null"),
        pytest.param(
            "telemetry: {otlp_endpoint: 'http://x'}",
            {"TELEMETRY__OTLP_ENDPOINT": ""},
            "telemetry.otlp_endpoint",
            None,
            id="empty is null",
        ),
        pytest.param("", {"GROUNDING__VERIFIERS": "[quote]"}, "grounding.verifiers", ("quote",), id="a list"),
        pytest.param("", {"NUMERIC__TOLERANCE__RATIO": "1%"}, "numeric.tolerance.ratio", 0.01, id="inside a choice"),
        pytest.param("", {"CONFIDENCE__WEIGHTS__SOURCE": "0.5"}, "confidence.weights.source", 0.5, id="three deep"),
        pytest.param("", {"NUMERIC__TOLERANCE": "{ratio: 2%}"}, "numeric.tolerance.ratio", 0.02, id="a mapping"),
    ],
)
def test_a_variable_wins(load: Any, text: str, environ: dict[str, str], path: str, value: Any) -> None:
    found: Any = load(text, **{f"GROUNDWIRE_{name}": said for name, said in environ.items()})
    for step in path.split("."):
        found = getattr(found, step)
    assert found == value


@pytest.mark.parametrize("name", ["my-gpu", "MyGPU", "my_gpu", "GPU"])
def test_an_upstream_is_found_whatever_its_case_and_dashes(load: Any, name: str) -> None:
    text = f"upstreams:\n  {name}:\n    base_url: http://a/v1\n"
    variable = name.upper().replace("-", "_")
    variables = {f"GROUNDWIRE_UPSTREAMS__{variable}__TIMEOUT": "5s"}
    assert load(text, **variables).upstreams[name].timeout == 5.0


def test_variables_alone_make_an_upstream(load: Any) -> None:
    loaded = load(
        "", GROUNDWIRE_UPSTREAMS__VLLM__BASE_URL="http://gpu:8000/v1", GROUNDWIRE_UPSTREAMS__VLLM__MODELS='["m"]'
    )
    assert loaded.upstreams == {"vllm": Upstream(base_url="http://gpu:8000/v1", models=("m",))}


def test_variables_of_others_are_left_alone(load: Any) -> None:
    assert load("", GROUNDWIRE_CONFIG="x", GROUNDWIREX__SERVER__PORT="1", SERVER__PORT="2", HOME="/") == Settings()


WRITTEN = yaml.load(EXAMPLE.read_text(), yaml.BaseLoader)
PLAIN = [path for path in KEYS if path[0] != "upstreams" and path[:2] != ("numeric", "tolerance")]


@pytest.mark.parametrize("path", [path for path in PLAIN if len(path) > 1], ids=".".join)
def test_every_key_can_be_set_by_a_variable_in_the_words_of_the_file(load: Any, path: tuple[str, ...]) -> None:
    """The default as config.yaml spells it, given by the environment, is the default."""
    written: Any = WRITTEN
    for step in path:
        written = written[step]
    text = written if isinstance(written, str) else json.dumps(written).replace('"null"', "null")
    assert load("", **{"GROUNDWIRE_" + "__".join(path).upper(): text}) == Settings()


@pytest.mark.parametrize(
    ("name", "written"), [("currency", "5%"), ("percentage", "2%"), ("ratio", "5%"), ("date", "7d")]
)
def test_every_tolerance_can_be_set_by_a_variable(load: Any, name: str, written: str) -> None:
    assert load("", **{f"GROUNDWIRE_NUMERIC__TOLERANCE__{name.upper()}": written}).numeric.tolerance == Tolerance()


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("servr: {}\n", "config.yaml:1: servr: unknown key (did you mean 'server'?)", id="a section"),
        pytest.param(
            "server:\n  port: 1\n  hots: x\n",
            "config.yaml:3: server.hots: unknown key (did you mean 'host'?)",
            id="a key",
        ),
        pytest.param("xyzzy: 1\n", "config.yaml:1: xyzzy: unknown key", id="like no other"),
        pytest.param(
            UPSTREAMS + "    timout: 5s\n",
            "config.yaml:4: upstreams.up.timout: unknown key (did you mean 'timeout'?)",
            id="in an upstream",
        ),
        pytest.param(
            "confidence:\n  weights:\n    retreival: 1\n",
            "config.yaml:3: confidence.weights.retreival: unknown key (did you mean 'retrieval'?)",
            id="three deep",
        ),
        pytest.param(
            "server:\n  port: many\n",
            "config.yaml:2: server.port: Input should be a valid integer, unable to parse string as an integer",
            id="wrong type",
        ),
        pytest.param("server: [1]\n", "config.yaml:1: server: must hold keys and values", id="a list for a section"),
        pytest.param(
            "upstreams:\n  up:\n    models: [m]\n",
            "config.yaml:2: upstreams.up: base_url must be given and begin with http:// or https://",
            id="no base_url",
        ),
        pytest.param(
            "upstreams:\n  up: {base_url: 'up:8000'}\n",
            "config.yaml:2: upstreams.up: base_url must be given and begin with http:// or https://",
            id="base_url without its scheme",
        ),
        pytest.param(
            "upstreams:\n  c: {dialect: litellm}\n",
            "config.yaml:2: upstreams.c: litellm_model must be given, such as anthropic/* or gemini/gemini-2.5-flash",
            id="no litellm_model",
        ),
        pytest.param(
            "server: {}\ncache: {}\nserver: {}\n", "config.yaml:3: 'server' is given twice", id="a section twice"
        ),
        pytest.param("server:\n  port: 1\n  port: 2\n", "config.yaml:3: 'port' is given twice", id="a key twice"),
        pytest.param(
            "store:\n  keep: 1d\n  url: mysql://h/d\n",
            "config.yaml:3: store: url must begin with sqlite:/// or postgresql://",
            id="a database of another kind",
        ),
        pytest.param(
            "jobs:\n  url: 'sqlite:///:memory:'\n",
            "config.yaml:2: jobs: url must name a file, such as sqlite:///groundwire.db",
            id="a database in memory",
        ),
        pytest.param(
            "telemetry:\n  otlp_endpoint: localhost:4318\n",
            "config.yaml:2: telemetry: otlp_endpoint must begin with http:// or https://",
            id="a collector without a scheme",
        ),
        pytest.param(
            "upstreams:\n  a:\n    base_url: http://h/v1\n    fallbacks: [b/x]\n",
            "config.yaml:4: upstreams.a.fallbacks: 'b/x' must be upstream/model, or upstream/*",
            id="a fallback to nowhere",
        ),
        pytest.param("- a\n", "config.yaml:1: the file must hold keys and values", id="a list"),
        pytest.param("just words\n", "config.yaml:1: the file must hold keys and values", id="words"),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(load: Any, text: str, problem: str) -> None:
    assert problems(load, text) == [problem]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("server:\n  port: [\n", "config.yaml:3: "),
        ("server:\n\tport: 1\n", "config.yaml:2: "),
        ("a: b: c\n", "config.yaml:1: "),
        ("server: {}\n---\nserver: {}\n", "config.yaml:2: "),
        ("server:\n  host: !env HOST\n", "config.yaml:2: "),
        ("server:\n  host: {{ host }}\n", "config.yaml:2: "),
        ("? [a, b]\n: 1\n", "config.yaml:1: "),
        ("server:\n  host: *unknown\n", "config.yaml:2: "),
        ("a: &a [*a]\n", "config.yaml"),
        ("1: 2\n", "config.yaml:1: "),
        ("null: 2\n", "config.yaml"),
    ],
    ids=["open", "tab", "colons", "documents", "tag", "template", "a list as key", "alias", "loop", "number", "null"],
)
def test_invalid_yaml_is_reported_with_its_place(load: Any, text: str, place: str) -> None:
    assert problems(load, text)[0].startswith(place)


def test_several_errors_are_reported_at_once(load: Any) -> None:
    found = problems(load, "server:\n  port: x\n  hots: y\ncache:\n  ttl: z\n")
    assert [problem.split(": ")[:2] for problem in found] == [
        ["config.yaml:2", "server.port"],
        ["config.yaml:3", "server.hots"],
        ["config.yaml:5", "cache.ttl"],
    ]


@pytest.mark.parametrize(
    "text", ["", "server:\n  host: x\n", "server:\n  port: 1\n"], ids=["no", "another", "the same"]
)
def test_a_wrong_variable_is_reported_by_its_name(load: Any, text: str) -> None:
    """The file may set its section in any way."""
    (wrong,) = problems(load, text, GROUNDWIRE_SERVER__PORT="x")
    assert wrong.startswith("GROUNDWIRE_SERVER__PORT: server.port: ")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SERVER__PROT", "SERVER__PORT"),
        ("SERVR__PORT", "SERVER__PORT"),
        ("SERVER_PORT", "SERVER__PORT"),
        ("SERVER__PORT__X", "SERVER__PORT"),
        ("UPSTREAMS__UP__BASE_URI", "UPSTREAMS__UP__BASE_URL"),
        ("INFORMATION_BUDGET__MEMORY_GATE__ENABLD", "INFORMATION_BUDGET__MEMORY_GATE__ENABLED"),
        ("NUMERIC__TOLERANCE__RATIOO", "NUMERIC__TOLERANCE__RATIO"),
        ("ADMINKEY", "ADMIN_KEY"),
        ("UP_SECRET", "UP_SECRETS"),
        ("ENTIRELY__DIFFERENT", None),
        ("ZZZ", None),
    ],
)
def test_an_unknown_variable_is_a_warning_and_counts_for_nothing(tmp_path: Path, name: str, meant: str | None) -> None:
    path, warnings = tmp_path / "config.yaml", list[str]()
    path.write_text(
        "server:\n  port: 1\nnumeric:\n  tolerance: written\n"
        "upstreams:\n  up:\n    base_url: http://up/v1\n    api_key_env: GROUNDWIRE_UP_SECRETS\n"
    )
    found = load_settings(path, {f"GROUNDWIRE_{name}": "1", "GROUNDWIRE_SERVER__HOST": "h"}, warnings.append)
    assert found == load_settings(path, {"GROUNDWIRE_SERVER__HOST": "h"})
    wanted = f"GROUNDWIRE_{name}: no setting has this name"
    assert warnings == [wanted + (f" (did you mean GROUNDWIRE_{meant}?)" if meant else "")]


FORMER = """hallucination:
  timeout: 3s
  output_verification: {asked_from: 10%, asked_below: 90%}
upstreams:
  a:
    base_url: http://a/v1
    retries: {first_wait: 1s, longest_wait: 2s, within: 3s}
"""


def test_keys_and_variables_with_former_names_are_read_with_a_warning(tmp_path: Path) -> None:
    path, warnings = tmp_path / "config.yaml", list[str]()
    path.write_text(FORMER)
    variables = {"GROUNDWIRE_HALLUCINATION__BATCH_SIZE": "4", "GROUNDWIRE_UPSTREAMS__A__RETRIES__WITHIN": "4s"}
    found = load_settings(path, variables, warnings.append)
    budget, retries = found.information_budget, found.upstreams["a"].retries
    assert (budget.timeout, budget.batch_size) == (3.0, 4)
    assert (budget.output_verification.probability_min, budget.output_verification.probability_max) == (0.1, 0.9)
    assert (retries.initial_backoff, retries.max_backoff, retries.deadline) == (1.0, 2.0, 4.0)
    assert f"{path}:1: 'hallucination' is now called 'information_budget'" in warnings
    assert f"{path}:7: 'within' is now called 'deadline'" in warnings
    assert "GROUNDWIRE_HALLUCINATION__BATCH_SIZE: now called GROUNDWIRE_INFORMATION_BUDGET__BATCH_SIZE" in warnings
    assert len(warnings) == 8


def test_the_former_section_of_the_judge_is_read_and_errors_in_it_name_the_present_one(
    load: Any, tmp_path: Path
) -> None:
    path, warnings = tmp_path / "former.yaml", list[str]()
    path.write_text("encoder:\n  model: nli-deberta-v3-small\n")
    variables = {"GROUNDWIRE_ENCODER__MAX_TOKENS": "256"}
    judge = load_settings(path, variables, warnings.append).judge
    assert (judge.model, judge.max_tokens) == ("nli-deberta-v3-small", 256)
    assert warnings == [
        f"{path}:1: 'encoder' is now called 'judge'",
        "GROUNDWIRE_ENCODER__MAX_TOKENS: now called GROUNDWIRE_JUDGE__MAX_TOKENS",
    ]
    assert problems(load, "encoder:\n  budget: 100ms\n") == ["config.yaml:2: judge.budget: unknown key"]


def test_a_key_by_its_former_and_its_present_name_is_refused(load: Any) -> None:
    text = "hallucination: {enabled: true}\ninformation_budget: {enabled: true}\n"
    assert problems(load, text) == ["config.yaml:2: 'information_budget' is given twice"]


def test_known_variables_and_those_of_others_are_no_warning(load: Any, tmp_path: Path) -> None:
    warnings: list[str] = []
    names = ("GROUNDWIRE_ADMIN_KEY", "GROUNDWIRE_SERVER__PORT", "GROUNDWIREX__SERVER__PORT", "SERVER__PROT", "HOME")
    load_settings(None, dict.fromkeys(names, "1"), warnings.append)
    assert warnings == []


def test_an_unknown_key_of_the_file_is_refused_though_a_variable_gives_it_too(load: Any) -> None:
    (problem,) = problems(load, "server:\n  prot: 1\n", GROUNDWIRE_SERVER__PROT="2")
    assert problem.endswith("server.prot: unknown key (did you mean 'port'?)")


def test_a_wrong_line_is_not_blamed_on_a_variable(load: Any) -> None:
    (problem,) = problems(load, "server:\n  port: x\n", GROUNDWIRE_SERVER__HOST="h")
    assert problem.startswith("config.yaml:2: server.port: ")


def test_an_upstream_that_a_variable_leaves_incomplete_names_it(load: Any) -> None:
    (problem,) = problems(load, "", GROUNDWIRE_UPSTREAMS__UP__TIMEOUT="5s")
    assert problem.startswith("GROUNDWIRE_UPSTREAMS__UP__TIMEOUT: upstreams.up: base_url must be given")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.yaml: No such file"):
        load_settings(tmp_path / "missing.yaml", {})


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"server:\n  host: \xff\xfe\n")
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        load_settings(tmp_path / "config.yaml", {})


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().server.port = 1  # type: ignore[misc]


WORDS = st.sampled_from(
    [*"server upstreams up grounding port mode base_url off null 1 5% 10s http://x".split(), *"[]{}:-&*!?,#|>'\""]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS | st.sampled_from(["\n", "\n  ", ": ", " "]), max_size=25).map("".join) | st.text(max_size=30))
def test_no_file_ends_in_anything_but_settings_or_a_config_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fuzz.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        load_settings(path, {})
    except ConfigError:
        pass


@pytest.mark.parametrize(
    ("upstream", "root"),
    [
        pytest.param({"base_url": "http://127.0.0.1:11434/v1"}, "http://127.0.0.1:11434", id="on its port"),
        pytest.param({"base_url": "http://ollama:11434/v1/"}, "http://ollama:11434", id="in a container"),
        pytest.param({"base_url": "http://ollama:11434"}, "http://ollama:11434", id="without /v1"),
        pytest.param({"base_url": "http://gpu:8000/v1"}, None, id="on another port"),
        pytest.param({"base_url": "http://gpu:114340/v1"}, None, id="on a port that begins like it"),
        pytest.param({"base_url": "http://gpu/ollama/v1", "ollama": "yes"}, "http://gpu/ollama", id="said to be one"),
        pytest.param({"base_url": "http://127.0.0.1:11434/v1", "ollama": "no"}, None, id="said to be none"),
    ],
)
def test_an_ollama_is_known_by_its_port_or_by_name(upstream: dict[str, str], root: str | None) -> None:
    assert Upstream.model_validate(upstream).ollama_url == root


def test_the_default_upstream_is_an_ollama() -> None:
    assert [each.ollama_url for each in Settings().upstreams.values()] == ["http://127.0.0.1:11434"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db/x", "postgresql://ann:***@db/x"),
        ("postgresql://ann:s3/cr:et@x@db/x?sslmode=require", "postgresql://ann:***@db/x?sslmode=require"),
        ("postgresql://db/x?user=ann&password=s3cret&sslmode=require", None),
        ("redis://:s3cret@cache:6379/0", "redis://:***@cache:6379/0"),
        ("https://example.com/hook?token=s3cret", "https://example.com/hook?token=***"),
        ("sqlite:////var/lib/a@b:c.db", "sqlite:////var/lib/a@b:c.db"),
        ("redis://cache:6379", "redis://cache:6379"),
    ],
)
def test_a_url_is_shown_without_its_passwords(url: str, shown: str | None) -> None:
    assert without_passwords(url) == (shown or "postgresql://db/x?user=ann&password=***&sslmode=require")


def test_an_address_with_a_password_is_refused_without_telling_it() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={"GROUNDWIRE_UPSTREAMS__UP__BASE_URL": "http://ann:s3cret@model/v1"})
    assert "base_url must hold no password" in str(caught.value)
    assert "s3cret" not in str(caught.value)
