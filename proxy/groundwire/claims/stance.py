"""Decide which parts of an answer assert something, and how confidently.

A piece is skipped only if the answer itself declines to assert it. A modal alone ("may increase the risk") is a normal
way to state facts in medicine, law and science, so it lowers the stated confidence and leaves the piece checkable. So
does a hedge that is attributed ("The study suggests that …"), or that is in a side clause.

Phrases are in lower case, separated by "|", and compared with whole words joined by single spaces.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import NamedTuple

from groundwire.claims.markdown import find_marks
from groundwire.text.sentences import states_fact


def _words(table: str) -> frozenset[str]:
    return frozenset(table.split())


def _phrases(table: str) -> tuple[str, ...]:
    """Return the phrases of a table, each with a space on both sides."""
    return tuple(f" {' '.join(phrase.split())} " for phrase in table.split("|"))


def _table(rows: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the pairs of key and phrases of rows that begin with "key: "."""
    pairs = re.findall(r"^([\w.]+):((?:.|\n(?![\w.]+:))*)", rows, re.MULTILINE)
    return tuple((key, _phrases(table)) for key, table in pairs)


def _telling_words(table: Iterable[str]) -> frozenset[str]:
    """Return the longest word of each phrase: a text without any of them contains none of the phrases."""
    return frozenset(max(phrase.split(), key=len) for phrase in table)


_CONNECTIVES = _words("""
and but or so also however though additionally furthermore moreover therefore thus hence overall finally unfortunately
well then yet still instead similarly
""")
"""Words without content at the beginning of a sentence."""

_INTERJECTIONS = _words("""
yes yeah yea yep yup no nope nah ok okay sure certainly absolutely definitely indeed right correct exactly true false
wow oh ah aha hmm haha lol whoa gosh jeez oops yay thanks hello hi hey bye goodbye greetings cool great nice awesome
agreed sorry
""")
"""Interjections: alone, or before a comma."""

_ANSWERING = _words("yes yeah yea yep yup oh ok okay nope nah")
"""Interjections that also begin a sentence without a comma ("Yes he did"); few names begin with one."""

_ANSWERED = _words("i he she it we they you that this there it's he's she's they're i'm i've that's there's")
"""Words that may follow "no" without a comma where it is an answer and not a determiner."""

_BARE_ANSWERS = _words("yes yeah yep no nope true false right correct exactly indeed")
"""Interjections that answer a question rather than greet."""

_FUNCTION_WORDS = _words("""
a an the i you he she it we they me him her us them this that these those is are was were be been am do does did have
has had of to in on at for with by from and or but so as if not n't course it's that's i'm i've there's too also very
so here's they're you're what's don't isn't doesn't he's she's didn't wasn't weren't aren't haven't hasn't
""")
"""Function words: a piece with no other words has nothing to check."""

_EVALUATIONS = _words("""
great good nice cool amazing awesome interesting crazy funny sad beautiful wonderful fantastic terrible horrible bad
best fun weird ironic really pretty so very quite just fascinating impressive lovely excellent incredible unbelievable
neat sweet awful scary strange surprising movie film show thing game story one idea choice lol haha most too bit
little kind way
""")
"""Words of taste: a piece with only these and function words ("It was a great film") is an opinion."""

_SMALL_TALK = _words("""
know knew see agree understand heard hear guess think thought bet mean means right wrong true sense make makes made
point question chat chatting talk talking speaking day time fine well glad pleased happy surprised sure interested
idea either even maybe i'd i'll i'm you'd we're again would could should can will might yet ever never all much lot
""")
"""Words that, with function words and words of taste alone, make small talk: "I see", "That makes sense"."""

_SOURCE_WORDS = _words("""
passage passages document documents context contexts text texts source sources article articles excerpt excerpts
snippet snippets answer answers response summary overview conclusion information description explanation breakdown
""")
"""Words for an answer and for its sources."""

_DISCOURSE = _SOURCE_WORDS | _words("""
provide provides provided give gives given contain contains include includes describe describes described explain
explains explained discuss discusses discussed mention mentions mentioned outline outlines outlined present presents
presented cover covers covered offer offers summarize summarizes summarized focus focuses based according used using
use find found help helps query question questions list lists point points detail details detailed step steps
instruction instructions example examples testimonial account perspective perspectives view views topic topics subject
process method methods issue matter key main important relevant above below following available necessary needed
required additional further more sufficient enough other another same different various several many specific brief
general personal clear clearly directly fully briefly confidently specifically only any each both first second third
fourth last how what why when where let us let's look therefore thus hence now regarding related concerning into no
can could may here there
""")
"""Words that, with words of taste alone, describe the answer or a source but none of its content."""

_OPENINGS = _table("""
opinion: i can't believe | i cannot believe | i couldn't believe | i can't wait | i can't imagine | i cannot imagine |
i can't stand | i'm not sure i | i am not sure i | i would have to say
offer: feel free to | please let me know | please feel free | if you want me to | if you have any
questions | if you have any other questions | if you have any further questions | if you have more questions | if you
have further questions | i can also | i can help | i'd be happy | i would be happy | i'd be glad | i would be glad |
i'm happy to | i am happy to | happy to help | i'm here to | i am here to | don't hesitate to ask | do not hesitate to
ask | please don't hesitate | please do not hesitate | let me | i'll do my best | i will do my best |
i'll try to | i will try to | i'll look | i will look | i'll check | i will check | i'll search | i will search | i'll
fetch | i will fetch | i'll find out | i will find out | i'll start by | i will start by | i'm going to look | i'm
going to check | i'm going to search | let's look | let's check | let's search | i'll now | i will now | now i'll |
now , i'll | then i'll | first i'll | first , i'll | next i'll | next , i'll
greeting: thank you | thanks for | thanks so | thanks a lot | thanks again | thanks . | you're welcome | you are
welcome | great question | good question | that's a great question | that is a great question | that's a good
question | i hope this | i hope that | hope this | hope that helps | good luck | nice to meet | welcome to our chat
| my pleasure | have a great | have a nice | have a good | good morning | good afternoon | good evening | how are
you | of course . | no problem | glad to help | i understand your | enjoy . | nice chatting | great chatting | nice
talking | great talking | it was nice | it was great chatting | it was great talking | it was a pleasure | it's been
nice | it's been great | i'm doing great | i'm doing good | i'm doing well | i'm doing fine | just a moment | one
moment | good point | you're right | you are right | that's true . | that's right . | that makes sense | fine thank
you | have fun | hey there | hi there | hello there
question: have you ever | have you heard | have you seen | have you been | do you like | do you have | do you think |
do you want | are you | would you like | is there anything else | is there anything further | how about you | what
about you | how did you | what do you
refusal: i cannot | i can't | i can not | i am unable to | i'm unable to | i am not able to | i'm not able to | i
won't | i will not | i don't know | i do not know | i'm sorry | i am sorry | i apologize | my apologies | apologies
for | apologies , | sorry | as an ai | as a language model | as a large language model | i'm just an ai | i am an ai |
i'm an ai | i don't have access | i do not have access | i have no idea | i'm not sure | i am not sure | i don't have
enough | i do not have enough | i couldn't | i could not | i was unable to | i don't have any | i do not have any | i
don't have information | i do not have information | i must decline | i'm not familiar with | i am not familiar with |
i don't have specific | i do not have specific | i did not know | i didn't know | i do not even know | i don't even
know | i've never | i have never | i haven't heard | i have not heard | i haven't seen | i have not seen | i haven't
read | i have not read | i haven't been | i have not been | i haven't tried | i have not tried | i haven't played | i
have not played | i haven't watched | i have not watched | i don't remember | i do not remember | i don't recall | i
do not recall | i don't have an opinion | i do not have an opinion | i don't really have | i don't have a favorite | i
don't have a favourite
hedged: i think | i believe | i guess | i suppose | i assume | i imagine | i suspect | i would guess | i'd guess | my
guess | it is possible that | it's possible that | it may be that | it might be | it could be | it is likely that |
it's likely that | it is probable that | it is unlikely that | it's unlikely that | it seems | it appears that | it
would seem | it is conceivable | perhaps | maybe | possibly | probably | presumably | as far as i know | to my
knowledge | if i recall | if i remember | i'm fairly sure | i am fairly sure | i'm pretty sure | i am pretty sure |
most likely | there is a chance | there's a chance | there might be | one possibility | i'm guessing | i'm not certain
opinion: in my opinion | in my view | personally | i feel | i love | i like | i really like | i really love | i just
love | i also like | i also love | i do like | i do love | i loved | i liked | i enjoyed | i really liked | i really
enjoyed | i do not like | i'm a big fan | i am a big fan | i'm a huge fan | i am a huge fan | i'm a fan | i am a fan |
i'm not a fan | i am not a fan | i'm not a big | i am not a big | i'm not really a | i am not really a | i'm so sorry
| i enjoy | i prefer | i hate | i recommend | i would recommend | i'd recommend | i suggest | i would suggest | i'd
suggest | my favorite | my favourite | i'm glad | i am glad | i wish | i would love | i'd love | i always wanted | i
would like | i'd like | i don't like | i agree | i wonder | i hope | that sounds | that's cool | that is cool | that's
great | that is great | that's awesome | that's interesting | that is interesting | that's amazing | that's nice | how
cool | how interesting | it sounds | sounds
instruction: please | make sure | be sure to | be careful | remember to | don't forget | do not forget | try to | you
may want to | you might want to | it is recommended to | it's recommended to | it is recommended that you | it's
recommended that you | you can refer to | refer to the | see also | see the | it's best to consult | it is best to
consult | it's always best to | it is always best to | it's always a good idea | it is always a good idea | it's a
good idea to | it is a good idea to
""")
"""Opening words of pieces that assert nothing, by skip reason; the first match decides."""

_OFFERING = _phrases("""
let me know | feel free | ask | i can | i'd be happy | i would be happy | i'll | happy to | reach out
""")
"""Phrases that make a sentence that begins with "If" an offer."""

_HEDGES = _phrases("""
might be | might have been | might not be | probably | perhaps | maybe | possibly | presumably | supposedly | appears
to | appear to | appeared to | seems to | seem to | seemed to | seems like | seems that | is likely that | it is
possible that | it's possible that | i think | i believe | i guess | i'm not sure | i am not sure
""")
"""Phrases that, in the main clause, leave open whether the statement is true."""

_FAVOURITES = _phrases("my favorite | my favourite | one of my favorites | one of my favourites")
"""Phrases that, anywhere in a piece, make it an opinion."""

_ATTRIBUTIONS = _phrases("""
according to | suggest | suggests | suggested | suggesting | study | studies | research | researchers | scientists |
experts | some people | passage | passages | report | reports | reported | article | author | authors | doctors |
analysts | officials | police | believed | estimate | estimates | estimated | said | says | stated | document | source
| sources | evidence | argue | argues | argued | the text
""")
"""Words that attribute a hedge to somebody else, whose statement can be checked."""

_CONFIDENCES = _table("""
0.2: unlikely | improbable | doubtful
0.4: possibly | perhaps | maybe | might | could be | it is possible | it's possible | i guess | not sure | conceivable
0.5: appears to | appear to | appeared to | seems to | seem to | seemed to | seems like | seems that | uncertain |
unclear | i assume
0.6: may | i think | potentially | suggests | suggest | suggesting | believe
0.7: likely | probably | presumably | believed to | estimated | roughly | reportedly | supposedly | allegedly |
usually | generally | fairly sure | pretty sure
1.0: definitely | undoubtedly | without doubt | without a doubt | no doubt | absolutely | guaranteed
0.95: certainly | clearly | surely | indeed | obviously | of course | always | never | confirmed
""")
"""The confidence (0–1) that a hedge or a booster implies; the first match decides."""

_NO_HEDGES = _phrases("""
more likely | less likely | most likely to | as likely | how likely | you possibly can | cannot possibly |
can't possibly
""")
"""Phrases that contain a hedging word but do not hedge."""

_NOTES = _phrases("please note | note | please remember | remember | keep in mind | be aware | please be aware")
"""Phrases that, before "that", a colon or a comma, assert the rest of the sentence."""

_ONLY_IMPERATIVES = _words("""
add allow avoid choose combine consider consult continue create decide delete describe discard dissolve don't drain
eat enable enjoy ensure enter explain follow gather identify insert install keep let locate make marinate melt
navigate preheat prepare put refrigerate remove replace rinse scroll seek serve squeeze stir submit take tap unplug
upload verify visit wait whisk wipe
""")
"""Verbs that begin an instruction and, at the beginning of a sentence, are never a noun or an adjective."""

_IMPERATIVES = _ONLY_IMPERATIVES | _words("""
apply arrange ask attach bake beat begin blend boil bring brush call check chop clean click close coat compare
complete connect contact cook cool cover cut defrost dip divide do download drink drizzle dry fill find flip fold
fry garnish get give go grate grease grill grind heat hold leave lift log look lower measure mix move note
open peel perform place pour press pull purchase push read reduce refer repeat rest restart review roast roll rub
run save seal season see select send separate set shake simmer sit slice soak speak spray spread sprinkle start
stay steam stop store strain switch talk test thread tie toss touch transfer trim try turn type update use warm
wash watch wear work wrap write
""")
"""Verbs that begin an instruction."""

_AFTER_IMPERATIVE = _words("""
the a an your this that it them all any each some to in on with into up out off from for over at as if how whether
both one two three half sure aside until about around down back only not no well hot cold every these those their away
through by and
""")
"""Words that follow the other `IMPERATIVES` if they are verbs."""

PLAIN = 0.9
"""The stated confidence assumed for a statement without hedge or booster."""

_STATED = re.compile(
    r"(?P<before>\d{1,3}(?:\.\d{1,3})?)[ \t]?%[ \t](?:confident|certain|sure|confidence|certainty|likely|probability)\b"
    r"|\b(?:confidence|certainty)(?:[ \t](?:level|score|rating))?[ \t*]{0,4}(?:[:=]|is|of)[ \t*]{0,4}"
    r"(?:(?P<share>\d{1,3}(?:\.\d{1,4})?)[ \t]?(?P<percent>%)?(?:/(?P<scale>100?)\b)?"
    r"|(?P<word>very high|very low|high|medium|moderate|low))",
    re.IGNORECASE,
)
_STATED_WORDS = {"very high": 0.95, "high": 0.9, "medium": 0.6, "moderate": 0.6, "low": 0.3, "very low": 0.1}
_KEYS = frozenset("confidence certainty confidence_score confidence_level confidencescore confidencelevel".split())
_MONTH = re.compile(r"\bMay\b")
_SIGNALS = _telling_words(phrase for _value, table in _CONFIDENCES for phrase in table)


def confidence_of(text: str, words: Collection[str], padded: str) -> float:
    """Return the confidence (0–1) of a piece: the stated one, else the lowest that a hedge implies, else a booster's.

    `words` are its words in lower case; `padded` has the same words joined by spaces, with one at each end.
    """
    if ("onfiden" in text or "ertain" in text or "%" in text) and (match := _STATED.search(text)):
        return _stated(match)
    if _SIGNALS.isdisjoint(words):
        return PLAIN
    for phrase in _NO_HEDGES:
        padded = padded.replace(phrase, " ")
    if " may " in padded and _MONTH.search(text):
        padded = padded.replace(" may ", " ")
    for value, phrases in _CONFIDENCES:
        if any(phrase in padded for phrase in phrases):
            return float(value)
    return PLAIN


def is_only_confidence(text: str) -> bool:
    """Return whether the sentence states only the confidence of the answer, such as "Confidence: 80%"."""
    if len(text) > 80 or not ("onfiden" in text or "ertainty" in text):
        return False
    match = _STATED.search(text)
    return match is not None and sum(map(str.isalpha, text)) - sum(map(str.isalpha, match.group())) <= 8


def named_confidence(key: str, value: object) -> float | None:
    """Return the confidence (0–1) in a JSON field whose key names it as one, else None."""
    if key.lower() not in _KEYS or isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _STATED.search(f"confidence: {value}")
        return _stated(match) if match else None
    if isinstance(value, (int, float)) and 0 <= value <= 100:
        return float(value) if value <= 1 else value / 100
    return None


def _stated(match: re.Match[str]) -> float:
    if match["word"]:
        return _STATED_WORDS[match["word"].lower()]
    if match["before"]:
        return min(1.0, float(match["before"]) / 100)
    value = float(match["share"])
    if match["scale"]:
        return min(1.0, value / float(match["scale"]))
    return min(1.0, value / 100 if match["percent"] or value > 1 else value)


_CONTEXT = (
    r"(?:(?:^|\b(?:the|this|these|those|any|no|each|both|either|neither|your|my|in|from|by|given|provided|supplied|"
    r"retrieved|available|above|other) )(?:passages?|contexts?|documents?|texts?|sources?|articles?|excerpts?|"
    r"snippets?|transcripts?|search results?)\b(?! of)|\b(?:provided|given|available|supplied|above) (?:\w+ ){0,2}"
    r"(?:information|data|reports?|materials?|content|details|tables?|pages?)|\b(?:information|data|content|details|"
    r"materials?)(?: \w+)? (?:provided|given|available|above|supplied))"
)
_STATE = (
    r"(?:mention|contain|provide|specify|say|state|include|discuss|address|give|indicate|list|describe|explain|answer"
    r"|offer|cover|clarify|elaborate|refer|tell|detail|reveal|disclose|define)"
)
_STATED_IN = (
    r"(?:mentioned|specified|stated|provided|discussed|included|addressed|given|listed|described|clear|found|covered"
    r"|explained|available|present|indicated|disclosed|detailed)"
)
_NOT = r"(?:not|isn't|aren't|wasn't|weren't|nor|never)"
_DO_NOT = r"(?:(?:do|does|did|has|have) not|don't|doesn't|didn't|hasn't|haven't|cannot|can't|never|lacks?)"
_CANNOT = r"(?:unable|impossible|not possible|not able|cannot|can't|could not|couldn't)"
_ENDS = r"(?= (?:in|by|within|here|from|based|with|given|using|solely|without)\b| [.,;)]|$)"

_SILENT = re.compile(
    "|".join(
        (
            rf"{_CONTEXT}(?: \w+){{0,4}} {_DO_NOT}(?: \w+){{0,2}} (?:{_STATE}|information|details?)\b",
            rf"{_CONTEXT}(?: \w+){{0,2}} (?:provides?|contains?|gives?|includes?|offers?|makes?|has|have) no ",
            rf"\b(?:no|none of the) (?:passage|context|document|text|source|article)s? (?:\w+ly )?{_STATE}",
            rf"\b{_NOT}(?: \w+){{0,2}} {_STATED_IN}(?: \w+){{0,2}} (?:in|by|from|within|on)(?: \w+){{0,2}} {_CONTEXT}",
            rf"\b{_NOT}(?: \w+){{0,2}} {_STATED_IN} (?:in|by|from|within|on) {_CONTEXT}",
            rf"\b{_NOT} (?:\w+ly )?(?:mentioned|specified|stated|indicated)(?: here)? ?(?:[.,;]|$)",
            rf"\b(?:no|none|nothing)(?: \w+){{0,6}} (?:mentioned|specified|stated|indicated){_ENDS}",
            rf"\b(?:no|none|nothing)(?: \w+){{0,6}} {_STATED_IN}(?: \w+){{0,3}} {_CONTEXT}",
            r"\bno (?:(?:specific|explicit|direct|further|other|clear|detailed) )?(?:mention|information)\b",
            rf"\bno (?:\w+ ){{0,3}}(?:evidence|details?|reference|data|indication|answer|support)\b"
            rf"(?: \w+){{0,8}} {_CONTEXT}",
            r"\b(?:i|we) (?:can't|cannot|couldn't|could not|did not|didn't|don't|do not|was unable to|am unable to)"
            r"(?: \w+)? (?:find|see|determine|locate|confirm|verify|identify|tell|have enough|have sufficient)\b",
            rf"\b{_CANNOT}(?: \w+){{0,3}} (?:answer(?:ed)?|determined?|find|infer(?:red)?|provide|say|tell"
            rf"|confirm(?:ed)?|verif(?:y|ied)|concluded?)\b(?: \w+){{0,8}} {_CONTEXT}",
            rf"\b(?:cannot|can't|could not) be (?:determined|answered|inferred|verified|confirmed|concluded){_ENDS}",
            rf"^(?:it is|it's|this is|is) (?:unclear|not clear|unknown|not known)(?: \w+){{0,10}} {_CONTEXT}",
            r"^(?:unable|impossible|not possible|not able) to (?:answer|determine|find|provide)\b",
            rf"^(?:doesn't|does not) (?:\w+ly |even )?{_STATE}\b",
            r"\b(?:not enough|insufficient|no sufficient|lack of) (?:information|context|details?|data)\b",
        )
    )
)
_SIGNS = (" not ", "n't ", " no ", " none ", " nothing ", " unable ", " cannot ", " unclear ", " impossible ")
_FURTHER_SIGNS = (" insufficient ", " lack", " nor ", " never ", " unknown ", " neither ")


def denies_answer(tokens: list[str]) -> bool:
    """Return whether a piece states that the context has no answer.

    `tokens` are its words and marks in lower case. A match inside parentheses is ignored.
    """
    joined = " ".join(tokens)
    padded = f" {joined} "
    if not any(sign in padded for sign in _SIGNS + _FURTHER_SIGNS):
        return False
    found = _SILENT.search(joined)
    return found is not None and joined.count("(", 0, found.start()) <= joined.count(")", 0, found.start())


SKIP_REASONS = {
    "question": "It is a question.",
    "instruction": "It tells the reader what to do; no source was found to state or contradict it.",
    "hedged": "The answer itself does not commit to it. Checked when the policy verifies hedged statements.",
    "greeting": "It greets, thanks, agrees, wishes well or keeps the conversation going.",
    "offer": "It offers further help.",
    "refusal": "It declines to answer, or states what the writer does not know.",
    "not_in_context": "It states that the context does not contain the answer.",
    "opinion": "It expresses a taste, a recommendation or a feeling of the writer.",
    "discourse": "It describes the form of the answer or of a source, not its content.",
    "reasoning": "It is the model's own thinking, marked as such.",
    "code": "It is code or raw HTML.",
    "heading": "It is a heading, a label or the header of a table.",
    "lead_in": "It introduces the items that follow, and is checked together with them.",
    "citation_only": "It only names sources.",
    "confidence": "It states how sure the answer is; this is recorded with the claim that it belongs to.",
    "no_content": "It has no content words, such as a bare yes.",
    "not_a_quotation": "The evidence field has no text; the report lists it as a violation.",
}
"""Every reason not to check a piece of an answer, with its explanation for the user."""


class Stance(NamedTuple):
    """The reason that a piece asserts nothing (a key of `SKIP_REASONS`, or None), and its stated confidence (0–1)."""

    skip: str | None
    confidence: float


_TAG_LENGTH = 40  # characters
_READ = 600  # characters of a piece that are read; they suffice to classify it
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[,;:.()?!]")
_PARTED = re.compile(r" ?' ?(?=(?:s|m|re|ve|ll|d|t)\b)|(?<=\w) (?=n't\b)")  # "it 's", "it ' s", "do n't"
_LABEL = re.compile(r"\W*\*\*[^*\n]{1,60}+\*\*:?\s*")
_QUOTED = re.compile(r"\"[^\"]{1,200}+\"|“[^“”]{1,200}+”|(?<![\w'])'(?=[A-Z])(?:[^'\n]|(?<=\w)'(?=\w)){1,200}+'(?!\w)")
_TELLING_QUESTION = re.compile(
    r"\W*(?:[\w ]{1,30}[,!] )?(?:did|do) you know,? (?:that )?"
    r"(?!who|what|where|when|why|how|if|whether|of|any|about)(?:[^\s?]+\s+){4}",
    re.IGNORECASE,
)
_TAG = re.compile(
    r",? *(?:(?:is|are|was|were|do|does|did|has|have|had|wo|would|ca|could|should)(?: ?n['’]t) "
    r"(?:it|he|she|they|there|we|you)(?: think| agree)?|right|correct|huh|no|eh) *\?[ *_)!]*$",
    re.IGNORECASE,
)
_QUESTION_START = re.compile(
    r"\W*(?:(?:so|and|but|well|ok|okay|oh|yes|yeah|no|hey|hi),? )*(?:who|what|where|when|why|how|which|whose|is|are|was"
    r"|were|do|does|did|has|have|had|can|could|will|would|should|may|might|am|you|we|i)\b",
    re.IGNORECASE,
)
_SIDE_CLAUSE = frozenset(
    "which who whom whose because although though while whereas since unless if that , ; : (".split()
)
_IMPERSONAL = frozenset("it it's there there's one perhaps maybe possibly probably presumably most".split())
_FINITE = frozenset("is are was were has have had will can may does did said says".split())
_SEQUENCE = frozenset("first next then finally once simply just gently carefully always".split())
_EMPTY = _FUNCTION_WORDS | _INTERJECTIONS
_TASTE = _EMPTY | _EVALUATIONS
_TALK = _TASTE | _SMALL_TALK
_ABOUT_ITSELF = _TASTE | _DISCOURSE
_NOTING = frozenset(note.split()[0] for note in _NOTES)
_HEDGING = _telling_words(_HEDGES) | {"might", "may"}
_POSSIBLE = re.compile(  # "might of" is a noun; "may vote" allows, and "may have guests" owns
    r"(?<!\bthe)(?<!\bits) might (?!of |and )(?:not )?[a-z]{2,} "
    r"| may (?:well |also |not )?have (?:been |become |fallen |grown |risen |gone |sold |lost |won |made |[a-z]{2,}ed )"
)
_FIRST_WORDS = frozenset(phrase.split()[0] for _reason, table in _OPENINGS for phrase in table)

_FRAMING = frozenset("based according from given using per in".split())
_FRAME_WORDS = 12
_LEAD_IN_WORDS = 20
_BREAKING_OFF = frozenset("is are was were be include includes included including".split())
_ANNOUNCING = frozenset("here following below these steps ways tips follows summary".split())
_SOURCES_LIMIT = 4000
_FOOTNOTE = re.compile(r"\W{0,3}\[\^?\w{1,20}\]:")
_SOURCE_LIST = re.compile(r"\W{0,4}(?:sources?|references?|citations?|works cited)\W{0,4}:", re.IGNORECASE)
_ADDRESS = re.compile(r"\[[^\[\]]{0,200}\]\([^\s()]{0,400}\)|https?://[^\s<>]{1,500}|www\.[^\s<>]{1,500}")
_LISTED_WORDS = frozenset("source sources reference references see and also citation citations from link links".split())


def stance(text: str) -> Stance:
    """Return whether and how confidently the answer asserts one sentence or clause."""
    if is_question(text):
        return Stance("question", PLAIN)
    text = text[:_READ]
    tokens = _tokens(text)
    opened = _opened(tokens)
    if denies_answer(opened):
        return Stance("not_in_context", PLAIN)
    if _QUOTED.search(text):  # a hedge or taste in quotation marks is somebody else's
        tokens = _tokens(_QUOTED.sub(" quoted ", text))
        opened = _opened(tokens)
    opened = _opened(_without_frame(opened))
    words = [token for token in tokens if token[0].isalnum()]
    padded = f" {' '.join(words)} "
    return Stance(_skip(text, tokens, opened, padded), confidence_of(text, words, padded))


def is_question(text: str) -> bool:
    """Return whether a sentence is a question.

    It ends in a question mark outside quotations, and is neither "Did you know that …" nor a statement with a tag ("It
    opened in 1990, didn't it?").
    """
    if not text.rstrip(" \t*_)]!").endswith(("?", "？", "؟")) or _TELLING_QUESTION.match(text):
        return False
    tag = _TAG.search(text, max(0, len(text) - _TAG_LENGTH))
    return tag is None or tag.start() == 0 or _QUESTION_START.match(text) is not None


def is_lead_in(text: str) -> bool:
    """Return whether a sentence that ends in a colon only introduces the text after it.

    It does if it is short, contains a word such as "following", or ends in a verb such as "are" or "includes".
    """
    if not text.rstrip(" \t*_").endswith((":", "：")):
        return False
    words = _without_frame(_tokens(text[:_READ]))
    return len(words) <= _LEAD_IN_WORDS or not _ANNOUNCING.isdisjoint(words) or words[-2] in _BREAKING_OFF


def is_only_sources(text: str, bare: str) -> bool:
    """Return whether a sentence only names sources: marks, addresses, a footnote, a short list after "Sources:".

    `bare` is `text` with its citation marks replaced by spaces.
    """
    if _FOOTNOTE.match(text) or (len(text) <= 200 and _SOURCE_LIST.match(text)):
        return True
    if len(text) > _SOURCES_LIMIT or (bare is text and "http" not in text and "www." not in text):
        return False
    left = _TOKEN.findall(_ADDRESS.sub(" ", bare).lower())
    return _LISTED_WORDS.issuperset(token for token in left if token[0].isalnum())


def _tokens(text: str) -> list[str]:
    """Return words and marks in lower case, contractions whole, without a bold label at the beginning of an item."""
    if "*" in text[:3] and (label := _LABEL.match(text)) and label.end() < len(text):
        text = text[label.end() :]
    text = text.lower().replace("’", "'")
    if " '" in text or " n't" in text:
        text = _PARTED.sub(lambda mark: mark.group().strip(), text)
    return _TOKEN.findall(text)


def _skip(text: str, tokens: list[str], opened: list[str], padded: str) -> str | None:
    words = padded.split()
    if not opened:
        return "greeting" if words and words[0] not in _BARE_ANSWERS else "no_content"
    if opened[0] in _FIRST_WORDS and (reason := _opening(opened)):
        attributed = reason == "hedged" and opened[0] in _IMPERSONAL and _is_attributed(text, padded)
        return None if attributed or (reason == "opinion" and states_fact(opened)) else reason
    if opened[0] == "if" and any(phrase in padded for phrase in _OFFERING):
        return "offer"
    if _EMPTY.issuperset(words):
        return "no_content"
    if _TASTE.issuperset(words) or any(phrase in padded for phrase in _FAVOURITES):
        return "opinion"
    if _TALK.issuperset(words):
        return "greeting"
    if _is_about_itself(words):
        return "discourse"
    if not _HEDGING.isdisjoint(words) and _is_hedged(tokens) and not _is_attributed(text, padded):
        return "hedged"
    return "instruction" if _is_imperative(opened) else None


def _opened(tokens: list[str]) -> list[str]:
    """Return the tokens after an opening without content: connectives, interjections, marks, "note that"."""
    place = 2 if tokens[:2] == ["of", "course"] else 0
    while place < len(tokens):
        token, following = tokens[place], tokens[place + 1 : place + 2]
        if token in _INTERJECTIONS:
            if following and following[0][0].isalnum() and not _answers(token, following[0]):
                break  # "Hello Kitty", "True love"
        elif token not in _CONNECTIVES and token[0].isalnum():
            break
        place += 1
    return _without_note(tokens[place:])


def _answers(word: str, following: str) -> bool:
    """Return whether an interjection can precede a sentence without a comma: "Yes he did", but "No man did"."""
    return word in _ANSWERING or (word == "no" and following in _ANSWERED)


def _without_frame(tokens: list[str]) -> list[str]:
    """Return the tokens after "Based on the given passages," and similar, which do not affect the stance."""
    if not tokens or tokens[0] not in _FRAMING or "," not in tokens[:_FRAME_WORDS]:
        return tokens
    comma = tokens.index(",")
    frame = tokens[:comma]
    is_frame = not _SOURCE_WORDS.isdisjoint(frame) and _ABOUT_ITSELF.issuperset(w for w in frame if not w.isdigit())
    return tokens[comma + 1 :] if is_frame else tokens


def _without_note(tokens: list[str]) -> list[str]:
    """Return the tokens after "note that" and similar, which assert the rest of the sentence."""
    if not tokens or tokens[0] not in _NOTING:
        return tokens
    for note in _NOTES:
        words = note.split()
        if tokens[: len(words)] == words and tokens[len(words) : len(words) + 1] in (["that"], [":"], [","]):
            return tokens[len(words) + 1 :]
    return tokens


def _opening(opened: list[str]) -> str | None:
    """Return the skip reason that the opening words of a piece give, if any."""
    plain = f" {' '.join(token for token in opened if token[0].isalnum())} "
    marked = f" {' '.join(opened).rstrip(' .!')} . "
    for reason, openings in _OPENINGS:
        if plain.startswith(openings) or marked.startswith(openings):
            return reason
    return None


def _is_about_itself(words: list[str]) -> bool:
    """Return whether the piece is about the answer or its sources and has no word about their content."""
    if _SOURCE_WORDS.isdisjoint(words):
        return False
    named = (word for before, word in pairwise(words) if word.isdigit() and before in _SOURCE_WORDS)
    return _ABOUT_ITSELF.union(named).issuperset(words)


def _is_attributed(text: str, padded: str) -> bool:
    """Return whether the piece reports the statement of somebody else, or cites a source for it."""
    return any(name in padded for name in _ATTRIBUTIONS) or next(find_marks(text), None) is not None


def _is_hedged(tokens: list[str]) -> bool:
    """Return whether the main clause is hedged: the text up to the first side clause after its fifth token."""
    end = next((place for place, token in enumerate(tokens) if place >= 5 and token in _SIDE_CLAUSE), len(tokens))
    main = f" {' '.join(token for token in tokens[:end] if token[0].isalnum())} "
    for phrase in _NO_HEDGES:
        main = main.replace(phrase, " ")
    return any(hedge in main for hedge in _HEDGES) or _POSSIBLE.search(main) is not None


def _is_imperative(opened: list[str]) -> bool:
    words = [token for token in opened[:8] if token[0].isalnum()]
    if words and words[0] in _SEQUENCE:
        words = words[1:]
    if len(words) < 2 or words[0] not in _IMPERATIVES or words[1] in _FINITE:
        return False
    if words[1] in ("and", "or") and not _FINITE.isdisjoint(words[3:4]):
        return False  # "Wear and tear is insured"
    return words[0] in _ONLY_IMPERATIVES or (words[1] in _AFTER_IMPERATIVE and _FINITE.isdisjoint(words[1:3]))
