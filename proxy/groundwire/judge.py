"""Judge claims: exact checks first, then the entailment model with words, names and numbers, or these without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from groundwire.claims.stance import SKIP_REASONS
from groundwire.domain import Cause, Claim, Judgement, Label, Unavailable, Verdict
from groundwire.evidence.index import Context
from groundwire.policy import Policy
from groundwire.scoring.aggregate import with_confidence
from groundwire.text.words import content_stems
from groundwire.verifiers import quotes
from groundwire.verifiers.entailment import Entailment, EntailmentModel, NoModel, Opinion, Question
from groundwire.verifiers.numbers import numeric
from groundwire.verifiers.numbers.facts import check_period, settle, withhold
from groundwire.verifiers.selection import Evidence, Vectors, plain_text, select_evidence, select_sources
from groundwire.verifiers.signals import (
    CERTAIN_SCORE,
    Combination,
    is_bare_number,
    is_certain,
    is_stated_together,
    words_alone,
)
from groundwire.verifiers.statement import Objection, combined_verdict, denial, exact_verdict, language_verdict

Verifier = Callable[[Claim, Context, Policy], Verdict | None]

VERIFIERS: tuple[tuple[str, Verifier], ...] = (("quote", quotes.verify), ("numeric", numeric.verify))
"""The exact verifiers by name. A verifier returns None for a claim that it does not apply to."""

MAX_CHARS = 2000
"""Maximum length of a claim: no real sentence is longer."""

BATCH = 16
"""Claims sent to the model in one call, to let concurrent exchanges take turns."""

GRAVITY: dict[Label, int] = {"contradicted": 3, "unsupported": 2, "not_checked": 1, "supported": 0}
"""The rank of each label: of several verdicts, the one with the highest rank decides."""

_NO_CONTEXT = "The request has no source to check it against."
_TOO_LONG = "It is too long to be read as one claim."
_UNREAD = "The context is too long to be read completely, and the part that was read does not state it."
_NONE_APPLIES = "No enabled verifier applies to it."
_TIMEOUT = "The time limit for checking this answer was reached."
_NUMBER_SCORES: Mapping[Label, float] = {"contradicted": 0.219, "unsupported": 0.227}
"""The probability of support of a claim that the numeric verifier rejects: the share of grounded answers among those of
the public tuning sets with such a claim, at equal classes. The number may have been misread, or occur elsewhere.
"""
_NOTHING = Verdict("statement", "not_checked", 0.0, "not_applicable", _NONE_APPLIES)

UNANSWERED: Mapping[Cause, str] = {
    "timeout": "timeout",
    "rate_limited": "rate_limited",
    "overload": "overload",
    "unreachable": "unavailable",
    "error": "error",
}
"""The cause of a missing model answer as named in reports; any other is `no_verdict`."""

Timed = Callable[[str], AbstractContextManager[object]]
"""Return a context manager that measures the time of the verifier with this name."""


@dataclass(slots=True)
class _Case:
    """A claim being judged: the verdicts so far, and the evidence if no exact check has settled it.

    `read` is the claim in the form that is compared with the evidence.
    """

    claim: Claim
    verdicts: list[Verdict]
    evidence: Evidence | None = None
    numeric: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """Claims after the exact checks, and the questions about the open ones, in order, if a model `is_asked`."""

    found: tuple[Judgement | _Case, ...]
    questions: tuple[Question, ...] = ()
    is_asked: bool = False

    @property
    def open(self) -> list[_Case]:
        """The claims that no exact check has settled."""
        return [each for each in self.found if isinstance(each, _Case) and each.evidence is not None]


@dataclass(frozen=True, slots=True)
class Judge:
    """Judge claims against a context. Never raises: the verdict of a failed verifier is `not_checked`.

    `verifiers` are the exact ones. What they leave open, `combination` decides from the opinion of the entailment model
    and from words, names and numbers; without a model, `words_alone()` does. A verifier with the name "statement" takes
    the place of both.

    With `max_chars`, the model is a language model: it reads that many characters of the sources and decides alone, and
    `fallback` judges the claims that it does not answer. `vectors` help to select the evidence. `open` and `close` are
    the two halves of a call, for querying a model asynchronously in between.
    """

    model: EntailmentModel = field(default_factory=NoModel)
    combination: Combination = Combination()
    verifiers: Sequence[tuple[str, Verifier]] = VERIFIERS
    max_chars: int = 0
    fallback: Judge | None = None
    vectors: Vectors | None = None

    def __call__(
        self,
        claims: Sequence[Claim],
        context: Context,
        policy: Policy,
        is_over: Callable[[], bool] = bool,
        timed: Timed = nullcontext,
    ) -> list[Judgement]:
        """Return a judgement for each claim, in order. Claims reached after `is_over` returns True are not checked."""
        judgements: list[Judgement] = []
        for at in range(0, len(claims), BATCH):
            opened = self.open(claims[at : at + BATCH], context, policy, is_over, timed)
            with timed("statement"):
                answers = self._answers(opened.questions)
            judgements += self.close(opened, answers, context, policy, timed)
        return judgements

    def one(self, claim: Claim, context: Context, policy: Policy) -> Judgement:
        """Return the judgement on a single claim."""
        return self((claim,), context, policy)[0]

    @property
    def _vectors(self) -> Vectors | None:
        """The vectors, once the encoder is loaded that they are loaded with: reading them would delay an answer."""
        return self.vectors if (self.fallback or self).model.state == "ready" else None

    @property
    def _judges_statements(self) -> bool:
        return all(name != "statement" for name, _ in self.verifiers)

    def open(
        self,
        claims: Sequence[Claim],
        context: Context,
        policy: Policy,
        is_over: Callable[[], bool] = bool,
        timed: Timed = nullcontext,
    ) -> Opened:
        """Run the exact checks on the claims and return the questions to the model about the undecided ones."""
        is_ready, vectors = self.model.state == "ready", self._vectors
        found: list[Judgement | _Case] = []
        for claim in claims:
            over = unjudged(claim, "timeout", _TIMEOUT) if is_over() else None
            found.append(over or _unfit(claim, context) or self._begin(claim, context, policy, timed, vectors))
        opened = Opened(tuple(found))
        if not is_ready:
            return opened
        questions = tuple(self._question(case, context, vectors) for case in opened.open)
        return replace(opened, questions=questions, is_asked=True)

    def close(
        self, opened: Opened, answers: Sequence[Opinion], context: Context, policy: Policy, timed: Timed = nullcontext
    ) -> list[Judgement]:
        """Return the judgements on opened claims, given the answers of the model to their questions."""
        with timed("statement"):
            given = answers if opened.is_asked else [None] * len(opened.open)
            for case, answer in zip(opened.open, given, strict=True):
                if answer is None:
                    case.verdicts += self._combined(case, None, context, policy, self._degraded())
                elif isinstance(answer, Unavailable):
                    case.verdicts += self._unanswered(case, answer.cause, context, policy)
                elif self.max_chars:
                    case.verdicts += _verdicts_of_language_model(case, answer, context, policy)
                else:
                    case.verdicts += self._combined(case, answer, context, policy)
        return [each if isinstance(each, Judgement) else _concluded(each, context, policy) for each in opened.found]

    def _answers(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        try:
            return self.model.entail(questions) if questions else []
        except Exception:  # noqa: BLE001 - a failing model must not cost a verdict; the model logs it
            return [Unavailable("error")] * len(questions)

    def _question(self, case: _Case, context: Context, vectors: Vectors | None) -> Question:
        """Return the question to the model about a claim."""
        claim, evidence = case.claim, case.evidence or Evidence()
        text, lead = plain_text(claim.text), plain_text(claim.lead)
        if not self.max_chars:
            return Question(text, lead, evidence.text)
        sources = select_sources(text, lead, context, self.max_chars, _cited(claim, context), vectors)
        return Question(text, lead, evidence.text, sources)

    def _begin(self, claim: Claim, context: Context, policy: Policy, timed: Timed, vectors: Vectors | None) -> _Case:
        """Run the exact checks on a claim and, if they leave it to the model, select its evidence."""
        is_dated = "numeric" in policy.verifiers and policy.numeric.date
        if is_dated and (dated := check_period(claim, context)):
            return _Case(claim, [dated])
        case = _Case(claim, [])
        is_open = (
            self._judges_statements and "statement" in policy.verifiers and not quotes.decides_alone(claim, policy)
        )
        if is_open:
            with timed("statement"):
                found = _checked("statement", lambda: exact_verdict(claim, context, denials=not self.max_chars))
                case.verdicts += [_with_citation_flag(each, claim, context) for each in found]
        is_exact = bool(case.verdicts)
        is_open = is_open and not is_exact
        for name, verify in self.verifiers:
            if name in policy.verifiers and (name == "quote" or not is_exact):
                with timed(name):
                    self._check(name, verify, case, context, policy, is_open=is_open)
        if is_open:
            with timed("statement"):
                self._select(case, context, vectors)
        return case

    def _check(
        self, name: str, verify: Verifier, case: _Case, context: Context, policy: Policy, *, is_open: bool
    ) -> None:
        """Add the verdict of one verifier on a claim; that on numbers is kept as a signal where the claim is open."""
        for found in map(calibrated, _checked(name, lambda: verify(case.claim, context, policy))):
            if name == "numeric" and is_open and _is_weighed(found):
                case.numeric = found
            else:
                case.verdicts.append(found)

    def _select(self, case: _Case, context: Context, vectors: Vectors | None) -> None:
        """Select the evidence of a claim, unless a number or a value of a database settles it."""
        if any(_is_settled(case.claim, each, context) for each in case.verdicts):
            return
        if case.numeric and is_bare_number(case.claim) and not (self.max_chars and case.claim.lead):
            case.verdicts.append(case.numeric)
            return
        if case.numeric and not case.verdicts and is_certain(case.claim, case.numeric, context):
            case.verdicts.append(replace(case.numeric, score=CERTAIN_SCORE))
            return
        cited = _cited(case.claim, context)
        case.evidence = select_evidence(case.claim.text, case.claim.lead, context, cited, vectors=vectors)

    def _unanswered(self, case: _Case, cause: Cause, context: Context, policy: Policy) -> list[Verdict]:
        """Return the verdicts of the fallback, or by words, on a claim that the model did not answer."""
        degraded = UNANSWERED.get(cause, "no_verdict")
        if self.fallback is None:
            return list(self._combined(case, None, context, policy, degraded))
        first, *rest = self.fallback.one(case.claim, context, policy).verdicts or (_NOTHING,)
        case.verdicts.clear()
        return [replace(first, degraded=degraded), *rest]

    def _combined(
        self, case: _Case, answer: Entailment | None, context: Context, policy: Policy, degraded: str = ""
    ) -> Iterator[Verdict]:
        """Yield the verdict on an open claim, by words if the model gave no answer, and the verdict on numbers.

        An objection by numbers takes the label of that verdict, and is dropped if that verdict supports the claim.
        `degraded` is the reason if a model should have been asked and was not, or did not answer.
        """
        assert case.evidence is not None  # noqa: S101 - only such cases are open
        numbers = case.numeric
        if answer is None and numbers is None and not content_stems(plain_text(case.claim.text)):
            return
        combination = words_alone() if answer is None else self.combination
        verdict = combined_verdict(case.claim, case.evidence, answer, numbers, context, policy, combination)
        yield replace(_with_citation_flag(verdict, case.claim, context), degraded=degraded)
        if numbers and numbers.label == "supported":
            yield numbers
        elif numbers and verdict.label != "supported":
            yield replace(numbers, label=verdict.label, score=verdict.score, reason=verdict.reason)

    def _degraded(self) -> str:
        """Return the reason why words decide although there should be a model; "" if it is switched off."""
        state = self.model.state
        if state == "off":
            return ""
        return "error" if state == "failed" else "loading"  # it may be ready by now


def calibrated(verdict: Verdict) -> Verdict:
    """Return the verdict; a negative one on numbers with the measured probability (0–1) that the claim is supported.

    A supported verdict keeps the quality of the match as its score.
    """
    is_rejected = verdict.verifier == "numeric" and verdict.label in _NUMBER_SCORES
    return replace(verdict, score=_NUMBER_SCORES[verdict.label]) if is_rejected else verdict


def _with_citation_flag(verdict: Verdict, claim: Claim, context: Context) -> Verdict:
    """Return the verdict, with a flag if its claim cites a source that does not exist."""
    is_unknown = any(context.resolve(label) is None for label in claim.cited)
    return replace(verdict, flags=("unknown_citation",)) if is_unknown else verdict


def _cited(claim: Claim, context: Context) -> set[str]:
    """Return the ids of the sources that a claim cites."""
    return {source.id for label in claim.cited if (source := context.resolve(label))}


def _verdicts_of_language_model(case: _Case, answer: Entailment, context: Context, policy: Policy) -> Iterator[Verdict]:
    """Yield the verdict of a language model, and the verdict on numbers, which takes the same label if it objects."""
    assert case.evidence is not None  # noqa: S101 - the model gets only such cases
    numbers = case.numeric
    objections = list(_objections(case, context))
    verdict = language_verdict(case.claim, case.evidence, answer, objections, policy.name)
    yield _with_citation_flag(verdict, case.claim, context)
    if numbers and numbers.label == "supported":
        yield numbers
    elif numbers:
        flags = numbers.flags if verdict.label == numbers.label else ()
        aligned = replace(numbers, label=verdict.label, score=verdict.score, reason="", flags=flags)
        yield replace(aligned, numbers=(), validated=numbers.extracted) if verdict.label == "supported" else aligned


def _objections(case: _Case, context: Context) -> Iterator[Objection]:
    """Yield what exact checks say of a claim. A supported number counts if it is derived or all words stand with it."""
    numbers = case.numeric
    if numbers is not None and (
        numbers.label != "supported" or numbers.method == "derived" or is_stated_together(case.claim, numbers, context)
    ):
        yield Objection("numbers", numbers.label, numbers.reason)
    for found in _checked("statement", lambda: denial(case.claim, context)):
        yield Objection("wording", found.label, found.reason)


def _is_settled(claim: Claim, verdict: Verdict, context: Context) -> bool:
    """Return whether a verdict on values of a database leaves nothing of a claim open."""
    if verdict.verifier != "numeric" or _is_weighed(verdict) or verdict.label == "not_checked":
        return False
    return verdict.label != "supported" or is_stated_together(claim, verdict, context)


def _is_weighed(verdict: Verdict) -> bool:
    """Return whether a verdict on numbers is one signal among others; database values decide alone."""
    return verdict.label != "not_checked" and all(citation.match != "sql" for citation in verdict.citations)


def _checked(name: str, verify: Callable[[], Verdict | None]) -> list[Verdict]:
    """Return the verdict of a verifier, if any, as a list; `not_checked` if it raises."""
    try:
        verdict = verify()
    except Exception as error:  # noqa: BLE001 - a failing verifier must not cost the other verdicts
        return [Verdict(name, "not_checked", 0.0, "error", f"The verifier failed ({type(error).__name__}).")]
    return [] if verdict is None else [verdict]


def _unfit(claim: Claim, context: Context) -> Judgement | None:
    """Return the judgement on a claim that cannot be checked at all."""
    if not claim.is_judged or (claim.skip_reason and not context.passages):
        return skipped(claim)
    if not context.passages:
        return _not_checked(claim, "no_context", _NO_CONTEXT)
    if len(claim.text) > MAX_CHARS:
        return _not_checked(claim, "too_long", _TOO_LONG)
    return None


def _concluded(case: _Case, context: Context, policy: Policy) -> Judgement:
    """Combine the verdicts on a claim into one judgement."""
    verdicts = settle(case.claim, case.verdicts, context)
    if not context.is_complete:
        verdicts = tuple(map(_withheld, verdicts))
    if not verdicts:
        return _not_checked(case.claim, "not_applicable", _NONE_APPLIES)
    decided = _deciding(verdicts)
    if case.claim.skip_reason and decided.label == "unsupported":  # advice needs no source
        return replace(skipped(case.claim), verdicts=tuple(withhold(each, "skipped", "") for each in verdicts))
    return with_confidence(Judgement(case.claim, decided, 0.0, verdicts), context, policy)


def _withheld(verdict: Verdict) -> Verdict:
    """Return the verdict, as `not_checked` if it is `unsupported`: part of the context was not read."""
    if verdict.label != "unsupported":
        return verdict
    return withhold(verdict, "context_limit", _UNREAD)


def _deciding(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of the highest rank, with the evidence and reasons of all that have the same label.

    Omits the numeric reason where a passage supports the claim.
    """
    gravest = max(verdicts, key=lambda verdict: GRAVITY[verdict.label])
    agreeing = [verdict for verdict in verdicts if verdict.label == gravest.label]
    cited = [citation for verdict in reversed(agreeing) for citation in reversed(verdict.citations)]
    places = {(citation.source, citation.start, citation.end): citation for citation in cited}
    informative = [verdict for verdict in agreeing if not _restates(verdict)] or agreeing
    reasons = dict.fromkeys(verdict.reason for verdict in informative if verdict.reason)
    return replace(gravest, citations=tuple(reversed(places.values())), reason=" ".join(reasons))


def _restates(verdict: Verdict) -> bool:
    """Return whether a verdict says no more than that a source states the numbers of a claim."""
    return verdict.verifier == "numeric" and verdict.label == "supported" and verdict.method != "derived"


def unjudged(claim: Claim, method: str, reason: str) -> Judgement:
    """Return a judgement for a claim that was not judged for the reason given by `method`, or is not to be judged."""
    return _not_checked(claim, method, reason) if claim.is_judged else skipped(claim)


def skipped(claim: Claim) -> Judgement:
    """Return the judgement on a claim with a skip reason."""
    return _not_checked(claim, "skipped", SKIP_REASONS[claim.skip_reason or ""])


def _not_checked(claim: Claim, method: str, reason: str) -> Judgement:
    return Judgement(claim, Verdict("", "not_checked", 0.0, method, reason, extracted=0), 0.0)
