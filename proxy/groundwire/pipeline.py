"""Verify answers: prepare the evidence of a request, extract the claims of its answer, judge each one, and summarise.

`verify` does this in one call. `AnswerVerifier` does the same for an answer that grows and for judges that need I/O:
its methods are generators, which yield the I/O that they need and receive the result.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, Protocol, TypeVar

from pydantic_core import to_json

from groundwire.claims.answer import Claims, find_claims, is_bare_number
from groundwire.domain import Choice, Claim, Exchange, Judgement, Source
from groundwire.evidence.index import Context
from groundwire.evidence.messages import Bounds, bounds_of, gather, prompt_size, question
from groundwire.judge import Judge, Opened, skipped, unjudged
from groundwire.policy import Policy
from groundwire.report import Attempt, CacheUse, Consistency, Report, StageUse
from groundwire.scoring.aggregate import Examined, Reading, summarise
from groundwire.text.jsontext import parse_object
from groundwire.verifiers.entailment import Question
from groundwire.verifiers.quotes import check_quotes
from groundwire.verifiers.schema import NO_JSON, TOO_LONG_ANSWER, SchemaResult, read_evidence, validate_schema, value_at

T = TypeVar("T")

MAX_VIOLATIONS = 1000
MAX_SEARCH = 1_000_000_000
"""Maximum steps of searching for the quotations in the evidence fields of one answer: about a second of work."""

MAX_TURN = 64
"""Claims judged before others take their turn: more than nearly every answer has."""

OVERLOAD = "It was not checked because the proxy is overloaded."

TOOL_CALL_POINTER = "/tool_calls/{}/function/arguments"


@dataclass(frozen=True, slots=True)
class Ask:
    """Checks of an answer in addition to its claims: fields of a JSON answer that hold quotations, and its schema.

    `question` is the user's question, needed to read an answer that is a bare number. `max_search` is the number of
    steps allowed for searching the quotations of one choice.
    """

    evidence_fields: tuple[str, ...] = ()
    json_schema: Mapping[str, Any] | None = field(default=None, hash=False)
    question: str = ""
    max_search: int | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The parts of a request that verification reads, its evidence as an index, and the bounds of its prompt, if any.

    `ms` is the time in milliseconds that preparing took.
    """

    exchange: Exchange
    context: Context
    bounds: Bounds | None = None
    ms: float = 0.0

    def extended(self, sources: Sequence[Source]) -> Prepared:
        """Return a copy with further sources as evidence."""
        exchange = replace(self.exchange, sources=(*self.exchange.sources, *sources))
        return replace(self, context=Context(gather(exchange)))


def prepare(exchange: Exchange, is_over: Callable[[], bool] = bool) -> Prepared:
    """Collect and index the evidence of a request, as far as it can be read until `is_over` returns True."""
    context = Context(gather(exchange), is_over)
    context.digest  # noqa: B018 - cached, and computed here
    return Prepared(exchange, context, bounds_of(exchange.messages))


@dataclass(frozen=True, slots=True)
class AnswerSnapshot:
    """An answer as received so far. `cut_short` is set if it broke off.

    `answer_id`, `model` and `prompt_tokens` are reported by the model server (None: unknown); `given` is the output of
    tools that ran there, which is evidence too. `attempts` is set if more than one was needed. `tokens` of input and
    output and `upstream_ms`, from request to end of the answer, are stored only.
    """

    choices: Sequence[Choice]
    cut_short: bool = False
    answer_id: str | None = None
    model: str | None = None
    attempts: tuple[Attempt, ...] = ()
    prompt_tokens: int | None = None
    given: tuple[Source, ...] = ()
    tokens: tuple[int | None, int | None] = (None, None)
    upstream_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Let others take their turn. Receives True, or False if there is no capacity to go on."""


@dataclass(frozen=True, slots=True)
class AskJudge:
    """Ask the judging language model. Receives its opinion on each question."""

    questions: Sequence[Question]


@dataclass(frozen=True, slots=True)
class RefineJudgements:
    """Measure undecided claims with a further model. Receives the judgements, with those refined."""

    judgements: Sequence[Judgement]
    context: Context


@dataclass(frozen=True, slots=True)
class ShareVerdicts:
    """Look verdicts up in a shared cache. Receives the judgement under each key, and the use of the cache.

    `judge` judges the claims at the positions that are found nowhere.
    """

    keys: Sequence[bytes]
    judge: Callable[[Sequence[int]], Steps[list[Judgement]]]


IO = AskJudge | RefineJudgements | ShareVerdicts
Need = Pause | IO
Steps = Generator[Need, Any, T]
"""A computation that yields the I/O that it needs and is sent the result."""


def complete(steps: Steps[T]) -> T:
    """Run a computation that needs no I/O to its end."""
    try:
        need = next(steps)
        while isinstance(need, Pause):
            need = steps.send(True)
    except StopIteration as end:
        result: T = end.value
        return result
    raise TypeError(f"{type(need).__name__} needs a model or a store")


class VerdictStore(Protocol):
    """Verdicts of earlier answers under exact keys, for any thread."""

    def recent(self, keys: Sequence[bytes], tenant: str = "") -> tuple[dict[bytes, Judgement], CacheUse]:
        """Return the verdicts stored under these keys."""

    def keep(self, values: Mapping[bytes, Judgement], tenant: str = "") -> None:
        """Store verdicts."""


@dataclass(frozen=True, slots=True)
class VerifierSettings:
    """The judge and its limits; `timeout` is the time in seconds for judging one answer, `clock` measures it.

    With `asks`, the questions of the judge are yielded instead of put to its model; `identity` is that model where it
    depends on the request. With `shares`, verdicts that `store` lacks are looked up elsewhere before they are computed;
    with `refines`, undecided judgements are yielded for a further model. `costs` returns the cost of these models.
    `max_search` is the number of steps allowed for searching the quotations of one answer.
    """

    judge: Judge = Judge()
    store: VerdictStore | None = None
    tenant: str = ""
    identity: str = ""
    asks: bool = False
    shares: bool = False
    refines: bool = False
    costs: Callable[[], Sequence[StageUse]] = tuple
    max_search: int | None = None
    timeout: float = math.inf
    clock: Callable[[], float] = time.perf_counter


class AnswerVerifier:
    """Verify one answer: judge its claims as it grows, and report on it at its end; each claim is judged once.

    Pure, apart from the model of the judge and the store of verdicts.
    """

    def __init__(
        self,
        prepared: Prepared,
        policy: Policy = Policy(),
        ask: Ask = Ask(),
        settings: VerifierSettings = VerifierSettings(),
        id_: str = "",
    ) -> None:
        self._id = id_
        self.prepared = prepared
        self._policy = policy
        self._ask = ask
        self._settings = settings
        self._config = policy_digest(policy)
        self._known: dict[bytes, Judgement] = {}
        self._stopwatch = Stopwatch()

    def look_ahead(self, choices: Sequence[Choice]) -> Steps[list[Judgement]]:
        """Judge the claims of a growing answer whose sentences are complete, and return the judgements.

        They are provisional: a claim that the rest of the answer changes is judged again.
        """
        context, found = self.prepared.context, list[Judgement]()
        for choice in choices:
            judgements, _ = yield from self._judgements(read(choice, context, self._policy).claims[:-1], context)
            found += judgements
        return found

    def report(
        self,
        answer: AnswerSnapshot,
        *,
        warnings: Sequence[str] = (),
        validated: Mapping[int, SchemaResult] | None = None,
        compare: Callable[[Sequence[Examined]], Consistency | None] | None = None,
        started: float | None = None,
    ) -> Steps[Report]:
        """Return the report on an answer; `started` (by the clock) is when it ended, None: without timings.

        `validated` has the results of a validation against the JSON schema by the index of their choices, where that is
        done elsewhere. `compare` compares the answer with earlier ones.
        """
        prepared = self.prepared.extended(answer.given) if answer.given else self.prepared
        readings = self._read(answer.choices, prepared, validated)
        read_at = self._settings.clock()
        claims = [claim for reading in readings for claim in reading.claims]
        judgements, cache = yield from self._judgements(claims, prepared.context)
        if self._settings.refines:
            judgements = yield RefineJudgements(judgements, prepared.context)
        remaining = iter(judgements)
        examined = [Examined(reading, tuple(next(remaining) for _ in reading.claims)) for reading in readings]
        report = summarise(
            self._id,
            examined,
            prepared.context,
            self._policy,
            temperature=prepared.exchange.temperature,
            consistency=compare(examined) if compare else None,
            prompt=prompt_size(answer.prompt_tokens, prepared.bounds) if prepared.bounds else None,
            cut_short=answer.cut_short,
            warnings=warnings,
            cache=cache,
            stages=self._stages(judgements),
            timing_ms=() if started is None else self._timing(started, read_at),
            config="" if started is None else self._config,
        )
        return replace(report, attempts=answer.attempts) if answer.attempts else report

    def _read(
        self, choices: Sequence[Choice], prepared: Prepared, validated: Mapping[int, SchemaResult] | None
    ) -> list[Reading]:
        ask, most = self._ask, self._settings.max_search
        if most is not None:
            ask = replace(ask, max_search=most // max(1, len(choices)))
        if any(is_bare_number(choice.text) for choice in choices):
            ask = replace(ask, question=ask.question or question(prepared.exchange))
        if validated is not None:
            ask = replace(ask, json_schema=None)
        readings = [read(choice, prepared.context, self._policy, ask) for choice in choices]
        return [with_schema(each, (validated or {}).get(each.choice.index)) for each in readings]

    def _judgements(
        self, claims: Sequence[Claim], context: Context
    ) -> Generator[Need, Any, tuple[list[Judgement], CacheUse]]:
        """Return a judgement for each claim: known from looking ahead, from the store, or given now."""
        settings, deadline = self._settings, self._settings.clock() + self._settings.timeout
        config = f"{self._config} {settings.identity}" if settings.identity else self._config
        keys = [claim_key(claim, context, config) if claim.is_judged else b"" for claim in claims]
        known = {key for key in keys if key in self._known and self._known[key].is_decided}
        fresh = {key: claim for key, claim in zip(keys, claims, strict=True) if key and key not in known}
        found, use = settings.store.recent(list(fresh), settings.tenant) if settings.store else ({}, CacheUse())
        missing = {key: claim for key, claim in fresh.items() if key not in found}
        if missing and settings.shares:
            new = list(fresh.values())
            values, use = yield ShareVerdicts(
                list(fresh), lambda positions: self._judge([new[at] for at in positions], context, deadline)
            )
            found = dict(zip(fresh, values, strict=True))
        elif missing:
            values = yield from self._judge(list(missing.values()), context, deadline)
            judged = dict(zip(missing, values, strict=True))
            if settings.store:
                settings.store.keep(judged, settings.tenant)
            found |= judged
        self._known |= found
        return [
            _about(claim, self._known[key]) if key else skipped(claim) for claim, key in zip(claims, keys, strict=True)
        ], use

    def _judge(self, claims: Sequence[Claim], context: Context, deadline: float) -> Steps[list[Judgement]]:
        """Judge claims, with a pause after every `MAX_TURN`; claims past the deadline or the capacity are unchecked."""
        settings, judge = self._settings, self._settings.judge
        parts: list[Opened | list[Judgement]] = []

        def is_over() -> bool:
            return settings.clock() > deadline

        for at in range(0, len(claims), MAX_TURN):
            if at and not (yield Pause()):
                parts.append([unjudged(claim, "overload", OVERLOAD) for claim in claims[at:]])
                break
            work = judge.open if settings.asks else judge
            parts.append(work(claims[at : at + MAX_TURN], context, self._policy, is_over, self._stopwatch.timed))
        questions = [each for part in parts if isinstance(part, Opened) for each in part.questions]
        opinions = iter((yield AskJudge(questions)) if questions else ())
        judgements: list[Judgement] = []
        for part in parts:
            if isinstance(part, Opened):
                answers = [next(opinions) for _ in part.questions]
                judgements += judge.close(part, answers, context, self._policy, self._stopwatch.timed)
            else:
                judgements += part
        return judgements

    def _stages(self, judgements: Sequence[Judgement]) -> tuple[StageUse, ...]:
        """Return the number of claims that reached each stage, and its cost, if a model may be queried.

        Stored verdicts take no time.
        """
        if not self._settings.asks and not self._settings.refines:
            return ()

        def used(stage: Literal["deterministic", "embedded"], verifiers: Sequence[str]) -> StageUse:
            judged = sum(any(each.verifier in verifiers for each in judgement.verdicts) for judgement in judgements)
            return StageUse(stage, judged, ms=self._stopwatch.ms(verifiers))

        stages = used("deterministic", ("quote", "numeric")), used("embedded", ("statement",))
        return (*stages, *self._settings.costs())

    def _timing(self, started: float, read_at: float) -> Sequence[tuple[str, float]]:
        done = self._settings.clock()
        return (
            ("context", self.prepared.ms),
            ("claims", (read_at - started) * 1000),
            ("verify", (done - read_at) * 1000),
            ("total", (done - started) * 1000),
        )


def _about(claim: Claim, judgement: Judgement) -> Judgement:
    """Return a judgement, which may be that on an equal claim elsewhere, as one on this claim."""
    return judgement if judgement.claim is claim else replace(judgement, claim=claim)


def verify(
    choices: Sequence[Choice],
    context: Context,
    policy: Policy = Policy(),
    ask: Ask = Ask(),
    judge: Judge = Judge(),
    warnings: Sequence[str] = (),
) -> Report:
    """Verify an answer against its context and return the report. Pure, apart from calls to the model of `judge`.

    `warnings` name parts of the request that could not be read.
    """
    verifier = AnswerVerifier(Prepared(Exchange(), context), policy, ask, VerifierSettings(judge))
    return complete(verifier.report(AnswerSnapshot(choices), warnings=warnings))


@lru_cache(maxsize=64)
def policy_digest(policy: Policy) -> str:
    """Return a digest of the settings that verdicts depend on: 16 hexadecimal digits."""
    return blake2b(to_json(asdict(policy)), digest_size=8).hexdigest()


def claim_key(claim: Claim, context: Context, config: str) -> bytes:
    """Return the exact key of a verdict: everything in claim, evidence and settings that it depends on."""
    parts = (config, context.digest, claim.kind, claim.lead, claim.cited, claim.skip_reason, claim.text)
    return blake2b(repr(parts).encode(), digest_size=16).digest()


class Stopwatch:
    """Adds up the time of verifiers, by name."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time that the block takes."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] += time.perf_counter() - start

    def ms(self, names: Sequence[str]) -> float:
        """Return the time of these verifiers together, in milliseconds."""
        return 1000 * sum(self._seconds[name] for name in names)


def read(choice: Choice, context: Context, policy: Policy, ask: Ask = Ask()) -> Reading:
    """Extract the claims of one choice, look up the quotations in its evidence fields and validate its JSON schema."""
    found = find_claims(choice.text, policy, ask.question)
    claims = list(_quoted(found.claims, choice.text, ask.evidence_fields) if ask.evidence_fields else found.claims)
    called = [find_claims(arguments, policy) for arguments in choice.arguments]
    for at, each in enumerate(called):
        within = TOOL_CALL_POINTER.format(at)
        claims += [replace(claim, pointer=within + (claim.pointer or "")) for claim in each.claims]
    if choice.arguments:
        claims = [replace(claim, id=f"c{number}") for number, claim in enumerate(claims, start=1)]
    texts = [(choice.text, found), *zip(choice.arguments, called, strict=True)]
    reading = Reading(
        choice,
        tuple(claims),
        _share(texts),
        any(each.truncated for _, each in texts),
        unread=sum(each.total - len(each.claims) for _, each in texts),
    )
    return _with_shape(reading, context, policy, ask) if ask.evidence_fields or ask.json_schema else reading


def _share(texts: Sequence[tuple[str, Claims]]) -> float:
    """Return the share of the characters of several texts that was read for claims."""
    total = sum(len(text) for text, _ in texts)
    return sum(len(text) * found.examined for text, found in texts) / total if total else 1.0


def _with_shape(reading: Reading, context: Context, policy: Policy, ask: Ask) -> Reading:
    """Add the quotations of evidence fields and all violations. A choice without text is not checked for its shape."""
    if not reading.choice.text:
        return reading
    if ask.evidence_fields:
        reading = _with_evidence(reading, context, policy, ask)
    if ask.json_schema is not None:
        is_whole = not reading.choice.unread
        result = validate_schema(reading.choice.text, ask.json_schema) if is_whole else TOO_LONG_ANSWER
        reading = with_schema(reading, result)
    return reading


def _with_evidence(reading: Reading, context: Context, policy: Policy, ask: Ask) -> Reading:
    if reading.choice.unread:  # a truncated JSON text cannot be parsed
        return replace(reading, warnings=("evidence_fields: the answer is too long to be searched for quotations",))
    try:
        answer: object = json.loads(reading.choice.text)
    except (ValueError, RecursionError):
        return replace(reading, violations=(NO_JSON,))
    quotes, violations = read_evidence(answer, ask.evidence_fields)
    found = check_quotes(quotes, context, policy.quotes, max_search=ask.max_search)
    warnings = [f"evidence_fields: {found.unchecked} quotations were not looked up, as there are too many"]
    warnings = warnings if found.unchecked else []
    if len(violations) > MAX_VIOLATIONS:
        warnings.append(f"evidence_fields: {len(violations) - MAX_VIOLATIONS} further violations are not listed")
    return replace(reading, quotes=found.counts, violations=violations[:MAX_VIOLATIONS], warnings=tuple(warnings))


def with_schema(reading: Reading, result: SchemaResult | None) -> Reading:
    """Add the result of validating a choice against the JSON schema of its request, if there is one."""
    if result is None:
        return reading
    found = dict.fromkeys((*(reading.violations or ()), *result.violations))  # "no JSON" may be in both
    reason = (f"response_format: {result.reason}",) if result.outcome == "not_checked" else ()
    return replace(reading, violations=tuple(found), warnings=(*reading.warnings, *reason))


def _quoted(claims: Sequence[Claim], text: str, evidence_fields: Sequence[str]) -> Iterator[Claim]:
    """Yield the claims of a JSON answer, with those in evidence fields marked as quotations or as `not_a_quotation`."""
    answer, pointers = parse_object(text), {_pointer(field) for field in evidence_fields}
    for claim in claims:
        is_label = claim.kind == "field" and claim.skip_reason == "heading"  # such as the id of an entry
        is_inside = any(f"{claim.pointer}/".startswith(f"{each}/") for each in pointers)
        if is_label or not isinstance(answer, dict) or not is_inside:
            yield claim
        elif isinstance(value_at(answer, claim.pointer or ""), str):
            yield replace(claim, kind="quote", skip_reason=None, stated_confidence=1.0)
        else:
            yield replace(claim, kind="quote", skip_reason="not_a_quotation")


def _pointer(field: str) -> str:
    """Return the JSON pointer of a field, which is given as a pointer or as a top-level key."""
    return field if field.startswith("/") else "/" + field.replace("~", "~0").replace("/", "~1")
