"""All settings, and the policy derived from them."""

from __future__ import annotations

from itertools import chain

from pydantic import Field, model_validator

from groundwire.config.grounding import (
    ConfidenceSettings,
    ConsistencySettings,
    Correction,
    Grounding,
    InformationBudget,
    JudgeSettings,
    Numeric,
    Quotes,
    Sampling,
    Thresholds,
    Tolerance,
)
from groundwire.config.server import DEFAULT_UPSTREAMS, Admin, Mcp, Server, Stream, Telemetry, Upstream
from groundwire.config.stores import Cache, Facts, Jobs, Store, Webhook
from groundwire.config.values import Section
from groundwire.policy import ModelPolicy, NumericPolicy, Policy, QuotePolicy
from groundwire.policy import Thresholds as ThresholdPolicy


class Settings(Section):
    """All settings."""

    server: Server = Server()
    upstreams: dict[str, Upstream] = Field(
        default={name: Upstream.model_validate(each) for name, each in DEFAULT_UPSTREAMS.items()}, min_length=1
    )
    grounding: Grounding = Grounding()
    quotes: Quotes = Quotes()
    numeric: Numeric = Numeric()
    judge: JudgeSettings = JudgeSettings()
    information_budget: InformationBudget = InformationBudget()
    confidence: ConfidenceSettings = ConfidenceSettings()
    consistency: ConsistencySettings = ConsistencySettings()
    thresholds: Thresholds = Thresholds()
    facts: Facts = Facts()
    cache: Cache = Cache()
    store: Store = Store()
    admin: Admin = Admin()
    jobs: Jobs = Jobs()
    webhook: Webhook = Webhook()
    sampling: Sampling = Sampling()
    correction: Correction = Correction()
    mcp: Mcp = Mcp()
    stream: Stream = Stream()
    telemetry: Telemetry = Telemetry()

    @model_validator(mode="after")
    def _together(self) -> Settings:
        if self.webhook.url is not None and self.jobs.url is None:
            raise ValueError("webhook.url needs jobs.url: only reports that jobs finish are sent")
        for name, upstream in self.upstreams.items():
            for target in chain.from_iterable(upstream.instead.values()):
                if not any(target.startswith(f"{each}/") and target != f"{each}/" for each in self.upstreams):
                    raise ValueError(f"upstreams.{name}.fallbacks: '{target}' must be upstream/model, or upstream/*")
        return self

    @property
    def named_models(self) -> list[str]:
        """The models that the settings name without a wildcard."""
        named = (name for each in self.upstreams.values() for name in (*each.aliases, *each.models))
        return [name for name in named if "*" not in name]

    @property
    def policy(self) -> Policy:
        """The part of the settings that verdicts depend on."""
        numeric, quotes, estimating = self.numeric, self.quotes, self.information_budget.output_verification
        tolerance = None
        if isinstance(numeric.tolerance, Tolerance):
            shares = numeric.tolerance.model_dump(exclude={"date"})
            tolerance = (*shares.items(), ("date", numeric.tolerance.date))
        return Policy(
            name=self.grounding.policy,
            verifiers=self.grounding.verifiers,
            max_claims=self.grounding.max_claims,
            verify_hedged=self.grounding.hedged == "verify",
            numeric=NumericPolicy(
                **numeric.model_dump(exclude={"tolerance", "timeout"}), tolerance=tolerance, timeout_s=numeric.timeout
            ),
            quotes=QuotePolicy(
                enabled=quotes.enabled,
                fuzzy=quotes.mode == "fuzzy",
                fuzzy_threshold=quotes.fuzzy_threshold,
                fail_on_all_rejected=quotes.fail_on_all_rejected,
            ),
            model=ModelPolicy(
                backend=self.information_budget.operations.get("output_verification", ""),
                identity=self.information_budget.identity,
                probability_min=estimating.probability_min,
                probability_max=estimating.probability_max,
                flag_threshold_bits=estimating.flag_threshold_bits,
            ),
            judge=self.judge.identity,
            has_confidence=self.confidence.enabled,
            confidence_weights=tuple(self.confidence.weights.model_dump().items()),
            source_weights=tuple(self.confidence.source_weights.model_dump().items()),
            thresholds=ThresholdPolicy(**self.thresholds.model_dump()),
        )
