"""Training examples of one pass: every claim of every schema once, and a sample of claims about public texts.

Slots, the form of the evidence, distractors around it and leads are drawn anew in each pass. Evidence is selected as
the proxy selects it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from groundwire.backends.loading import shipped_vectors
from groundwire.domain import Source
from groundwire.evidence.index import Context
from groundwire.verifiers.selection import MAX_WORDS, plain_text, select_evidence
from training.example import (
    CONTRADICTED,
    NOT_SUPPORTED,
    SUPPORTED,
    UNSUPPORTED,
    Example,
    changed,
    difference,
    twin,
)
from training.schemas import LABELS, Claim, Schema, fill

_DISTRACTED, _LED, _PRONOUN = 0.5, 0.12, 0.12  # shares of the claims
_RESTATED = 3  # sentences of a schema's evidence
_REMOVED = 0.35  # share of these sentences that are taken out of the evidence
_UNRELATED = 0.16  # share of the claims whose evidence is replaced
_REVALUED = 0.12  # share of the supported claims with slots whose evidence has another value in one of them
_TURNED = 0.1  # share of the contradicted claims with a twin among the supported ones that make a pair with it
_COMPOSED = 1  # documents that are put together for each fact
_JOINED = 0.25  # share of the claims of schemas with facts that are joined with one about another fact
_SOUND = 0.5  # share of the joined claims of which both are supported
_STATED = (0.3, 0.65)  # shares of these documents in which a fact is stated, and in which it is stated or turned round
_RIVALS = 12  # other evidence, of which the one with most words of the claim is taken
_WORD = re.compile(r"[a-z0-9]{4,}")
_SHORTENED, _NEAR, _SHORT_LIMITS = 0.5, 0.6, (18, 30, 50)  # see `shortened`; the limits are words
_MAX_WEIGHT = 2.5
LIMITS = (90, 120)
"""Words of evidence that examples are cut down to, so that a model reads any number of them."""
_SENTENCE = re.compile(r"(?:^|(?<=[.!?] ))[A-Z][^.!?\n|]{15,200}\.(?=\s|$)", re.MULTILINE)
_COMMON = re.compile(
    r"(?:The|An?|This|That|These|Those|It|Its|They|Their|He|His|She|Her|There|In|On|At|By|For|From|No|Not|All|Each|If|When"
    r"|After|Before|You|Your|We|Our|One|Two|Three|Only|With|Without)\b"
)
_LAST_PHRASE = re.compile(r" (?:in|on|at|during|from|with|after|by|for) [^,.]{3,60}\.$")
_LIMITING = re.compile(
    r"\b(?:not|no|never|only|unless|if|except|every|all|each|most|any|without|than|until)\b|n't", re.I
)
_OPENINGS = ("According to the text,", "In short,", "Note that", "The passage says that", "As stated,")
_CUES = {
    "negation": re.compile(r"\b(?:not|no|never|none|without|neither|nor|nobody|nothing)\b|n't\b", re.I),
    "will": re.compile(r"\bwill\b", re.I),
    "because": re.compile(r"\bbecause\b|\bdue to\b|\bthanks to\b|\bsince\b", re.I),
    "quantifier": re.compile(r"\b(?:all|every|only|most|any|each)\b", re.I),
}
_SUBJECT = re.compile(
    r"^(?:The \w+|[A-Z]\w+(?: [A-Z]\w+)?)(?= (?:is|was|are|were|has|had|can|must|may|will|[a-z]+s|[a-z]+ed)\b)"
)


def draw_examples(
    schemas: Sequence[Schema],
    seed: int,
    forms: int = 1,
    *,
    plain: bool = False,
    whole: bool = False,
    related: bool = False,
) -> Iterator[Example]:
    """Yield `forms` examples of every claim.

    `plain` ones have no distractors and leads, as for measuring; `whole` ones have all of their evidence, before any
    is selected; the evidence of `related` ones is always their own.
    """
    chance = random.Random(seed)  # noqa: S311
    weights = cue_weights(schemas)
    for schema in schemas:
        values, others = schema.draw(chance)
        right = [fill(text, values, others) for label, text in schema.claims if label == "supported"]
        for label, text in schema.claims:
            for form in chance.sample(schema.evidence, min(forms, len(schema.evidence))):
                claim, evidence = fill(text, values, others), fill(form, values, others)
                weight = weights[label, cues(text)]
                wrong = [] if label == "supported" else difference(right, claim)
                example = Example(claim, "", evidence, LABELS.index(label), schema.origin, weight, wrong)
                if not plain:
                    example = _distracted(_led(example, right, chance), schemas, chance)
                    if not related and chance.random() < _REVALUED and (slot := _slot(label, text, values, others)):
                        text = fill(form, values | {slot: others[slot]}, others)
                        example = replace(example, evidence=text, label=NOT_SUPPORTED, wrong=None)
                    elif not related and chance.random() < _UNRELATED:
                        example = unrelated(example, _others(schemas, chance), chance)
                yield example if whole else selected(example) if plain else shortened(example, chance)
        if not plain:
            made = list(_restated(schema, fill(chance.choice(schema.evidence), values, others), chance, related))
            made += joined(schema, fill(schema.evidence[0], values, others), chance)
            if not related:
                made += [*turned(schema, right, values, others, chance), *composed(schema, chance)]
            for example in made:
                example = _distracted(example, schemas, chance)
                yield example if whole else shortened(example, chance)


def _slot(label: str, text: str, values: Mapping[str, str], others: Mapping[str, str]) -> str | None:
    """Return a slot of a supported claim that has another value."""
    named = [each for each in values if f"{{{each}}}" in text and others[each] != values[each]]
    return named[0] if label == "supported" and named and "~}" not in text else None


def turned(
    schema: Schema, right: Sequence[str], values: Mapping[str, str], others: Mapping[str, str], chance: random.Random
) -> Iterator[Example]:
    """Yield pairs of a contradicted claim and the supported one that it differs from in a few words.

    Each contradicts the other. Without such pairs a model learns by heart which claims of a schema are right.
    """
    for label, text in schema.claims:
        if label == "contradicted" and chance.random() < _TURNED:
            wrong = fill(text, values, others)
            if right_one := twin(right, wrong):
                pair = [wrong, right_one]
                chance.shuffle(pair)
                yield Example(pair[0], "", pair[1], CONTRADICTED, schema.origin, 1.0, changed(pair[1], pair[0]))


def composed(schema: Schema, chance: random.Random) -> Iterator[Example]:
    """Yield claims with documents put together from claims about the other facts of a schema.

    A document states a fact, or the contrary of it, or does not mention it; so the same claim has any label.
    """
    for at, fact in enumerate(schema.facts):
        right, wrong = _texts(fact, "supported"), _texts(fact, "contradicted")
        rest = [_texts(each, "supported") for each in (*schema.facts[:at], *schema.facts[at + 1 :])]
        rest = [each for each in rest if each]
        for _ in range(_COMPOSED if right and wrong and rest else 0):
            text = [chance.choice(each) for each in chance.sample(rest, min(len(rest), chance.randrange(1, 5)))]
            claim, kind = chance.choice([*right, *wrong]), chance.random()
            label = UNSUPPORTED
            if kind < _STATED[0]:
                label = SUPPORTED if claim in right else CONTRADICTED
                text.append(chance.choice(right))
            elif kind < _STATED[1]:
                label, claim = CONTRADICTED, chance.choice(right)
                text.append(chance.choice(wrong))
            chance.shuffle(text)
            yield Example(claim, "", " ".join(text), label, schema.origin, 1.0, [] if label == SUPPORTED else None)


def joined(schema: Schema, evidence: str, chance: random.Random) -> Iterator[Example]:
    """Yield claims about two facts of a schema in one sentence. At most one of them is wrong, and it is marked.

    Claims of schemas state one fact in 11 words on average, sentences of real answers several ones in 20.
    """
    for at, fact in enumerate(schema.facts):
        others = [text for each in (*schema.facts[:at], *schema.facts[at + 1 :]) for text in _texts(each, "supported")]
        for _ in range(sum(chance.random() < _JOINED for _ in fact) if others else 0):
            sound = chance.random() < _SOUND
            known = [each for each in fact if (each[0] == "supported") == sound]
            if known:
                label, text = chance.choice(known)
                yield _joined(schema.origin, evidence, LABELS.index(label), text, chance.choice(others), chance)


def _joined(origin: str, evidence: str, label: int, text: str, right: str, chance: random.Random) -> Example:
    """Join a claim with a supported one, in any order."""
    first, second = (text, right) if chance.random() < 0.5 else (right, text)
    word = chance.choice([", and ", ", while ", "; ", ". ", ", but "])
    if word != ". " and _COMMON.match(second):
        second = second[0].lower() + second[1:]
    claim = first.rstrip(".") + word + second
    start = 0 if first is text else len(claim) - len(second)
    wrong = [] if label == SUPPORTED else [(start, start + len(text))]
    return Example(claim, "", evidence, label, origin, 1.0, wrong)


def _texts(fact: Sequence[Claim], label: str) -> list[str]:
    return [text for own, text in fact if own == label]


def _restated(schema: Schema, evidence: str, chance: random.Random, related: bool) -> Iterator[Example]:
    """Yield sentences of the evidence itself, as they are or a little changed: right claims in the source's own words.

    Some are taken out of the evidence, unless it has to be `related`.

    Without them a model learns to distrust these words, since wrong claims of schemas are written in them.
    """
    found = [each for each in _SENTENCE.findall(evidence) if 5 <= len(each.split()) <= 28 and ":" not in each]
    for sentence in chance.sample(found, min(_RESTATED, len(found))):
        claim, kind = sentence.strip(), chance.random()
        if kind < 0.3 and (rest := _LAST_PHRASE.sub(".", claim)) != claim and not _LIMITING.search(claim):
            claim = rest
        elif kind < 0.55:
            other = chance.choice(found).strip()
            claim = f"{claim.rstrip('.')}, and {other[0].lower()}{other[1:]}" if other != sentence else claim
        elif kind < 0.75:
            claim = f"{chance.choice(_OPENINGS)} {claim[0].lower()}{claim[1:]}"
        if not related and chance.random() < _REMOVED:
            rest = evidence.replace(sentence.strip(), "")
            yield Example(claim, "", rest, UNSUPPORTED, schema.origin, 1.0)
        else:
            yield Example(claim, "", evidence, SUPPORTED, schema.origin, 1.0, [])


def unrelated(example: Example, others: Sequence[str], chance: random.Random) -> Example:
    """Return the claim with evidence that does not mention it: one of `others`, or the one with most of its words.

    Without such examples a model takes any claim that shares no word with its evidence for a paraphrase of it.
    """
    wanted = set(_WORD.findall(example.claim.lower()))
    close = max(others, key=lambda each: len(wanted & set(_WORD.findall(each.lower()))))
    text = close if chance.random() < 0.5 else others[0]
    if chance.random() < 0.4:
        start = chance.choice([0, *(found.end() for found in re.finditer(r"[.\n]\s*", text[:-60]))])
        text = text[start : start + chance.randrange(40, 300)]
    return replace(example, evidence=text, label=UNSUPPORTED, wrong=None)


def _others(schemas: Sequence[Schema], chance: random.Random) -> list[str]:
    chosen = [chance.choice(schemas) for _ in range(_RIVALS)]
    return [fill(chance.choice(each.evidence), *each.draw(chance)) for each in chosen]


def selected(example: Example, limit: int = MAX_WORDS) -> Example:
    """Return the example with its evidence cut down to the passages, `limit` words, that the proxy would select."""
    found = select_evidence(
        example.claim,
        example.lead,
        Context([Source("s", "source", example.evidence)]),
        limit=limit,
        vectors=shipped_vectors(),
    )
    return replace(example, claim=plain_text(example.claim), evidence=found.text)


def shortened(example: Example, chance: random.Random) -> Example:
    """Return the example with selected evidence, half of the time with the least that has the same words of the claim.

    Less is tried where the evidence has most of these words. Without that, most examples with little evidence are
    wrong twins of it, and a model takes a right claim in nearly the words of a short source for contradicted.
    """
    found = selected(example, chance.choice(LIMITS))
    own = set(_WORD.findall(example.claim.lower()))
    known = own & set(_WORD.findall(found.evidence.lower()))
    if own and len(known) >= _NEAR * len(own) and chance.random() < _SHORTENED:
        for limit in _SHORT_LIMITS:
            short = selected(example, limit)
            if known <= set(_WORD.findall(short.evidence.lower())):
                return short
    return found


def _distracted(example: Example, schemas: Sequence[Schema], chance: random.Random) -> Example:
    """Put the beginning of another schema's evidence before or after it, half of the time."""
    if chance.random() >= _DISTRACTED:
        return example
    other = chance.choice(schemas)
    text = fill(chance.choice(other.evidence), *other.draw(chance))[: chance.randrange(80, 500)]
    parts = [example.evidence, text] if chance.random() < 0.5 else [text, example.evidence]
    return replace(example, evidence="\n\n".join(parts))


def _led(example: Example, right: Sequence[str], chance: random.Random) -> Example:
    """Give some claims a lead: the sentence that a pronoun refers to, or one that has nothing to do with the label."""
    if chance.random() < _PRONOUN and (subject := _SUBJECT.match(example.claim)):
        leads = [each for each in right if each.startswith(subject[0]) and each != example.claim]
        if leads:
            claim = "It" + example.claim[subject.end() :]
            shift = len(example.claim) - len(claim)
            wrong = example.wrong and [(max(0, low - shift), max(2, high - shift)) for low, high in example.wrong]
            return replace(example, claim=claim, lead=chance.choice(leads), wrong=wrong)
    return replace(example, lead=chance.choice(right)) if chance.random() < _LED else example


def cues(text: str) -> tuple[str, ...]:
    """Return the names of the surface cues that a claim has."""
    return tuple(name for name, pattern in _CUES.items() if pattern.search(text))


def cue_weights(schemas: Sequence[Schema]) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return weights by label and cues under which no set of cues is correlated with the label."""
    both = Counter((label, cues(text)) for schema in schemas for label, text in schema.claims)
    labels, given = Counter[str](), Counter[tuple[str, ...]]()
    for (label, found), count in both.items():
        labels[label] += count
        given[found] += count
    total = sum(labels.values())
    return {
        (label, found): min(_MAX_WEIGHT, labels[label] / total * (given[found] + 6) / (count + 2))
        for (label, found), count in both.items()
    }


__all__ = [
    "SUPPORTED",
    "composed",
    "cue_weights",
    "cues",
    "draw_examples",
    "joined",
    "selected",
    "shortened",
    "turned",
    "unrelated",
]
