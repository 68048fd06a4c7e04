"""The `config` digest of a report covers the settings that affect verdicts: the same everywhere, without secrets."""

import os
import subprocess
import sys

import pytest

from groundwire.config import Settings
from groundwire.pipeline import policy_digest

MODEL = {"enabled": True, "output_verification": {"enabled": True, "backend": "external"}}


def digest(**sections: object) -> str:
    return policy_digest(Settings.model_validate(sections).policy)


def external(url: str) -> str:
    return digest(information_budget={**MODEL, "backend": {"external_url": url}})


def test_every_replica_has_the_same() -> None:
    said = "from groundwire.config import Settings\nfrom groundwire.pipeline import policy_digest\n"
    said += "print(policy_digest(Settings().policy))"
    for seed in ("1", "2"):
        environ = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", said], env=environ, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == digest()


@pytest.mark.parametrize(
    "sections",
    [
        {"grounding": {"policy": "strict"}},
        {"numeric": {"tolerance": {"ratio": "1%"}}},
        {"quotes": {"mode": "fuzzy"}},
        {"thresholds": {"risk": 0.5}},
        {"judge": {"by": "off"}},
        {"information_budget": {**MODEL, "output_verification": {"enabled": True, "backend": "local"}}},
    ],
    ids=lambda sections: next(iter(sections)),
)
def test_a_setting_that_affects_verdicts_changes_the_digest(sections: dict[str, object]) -> None:
    assert digest(**sections) != digest()


def test_the_digest_covers_the_service_url_without_its_password() -> None:
    assert external("http://u:one@first/v1") == external("http://u:two@first/v1")
    assert external("http://first/v1") != external("http://second/v1")


@pytest.mark.parametrize(
    "sections",
    [
        {"server": {"port": 1}},
        {"store": {"url": "postgresql://u:secret@db/g"}},
        {"admin": {"key_env": "OTHER"}},
        {"upstreams": {"up": {"base_url": "http://a/v1", "api_key_env": "KEY"}}},
        {"telemetry": {"log_level": "debug"}},
    ],
    ids=lambda sections: next(iter(sections)),
)
def test_a_setting_that_affects_no_verdict_keeps_the_digest(sections: dict[str, object]) -> None:
    assert digest(**sections) == digest()
