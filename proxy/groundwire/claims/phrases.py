"""Phrases of pieces that assert nothing or only with reserve: greetings, offers, refusals, hedges, boosters. Data.

Phrases are in lower case, separated by "|", and compared with whole words joined by single spaces.
"""

from __future__ import annotations

from collections.abc import Iterable


def phrases(table: str) -> tuple[str, ...]:
    """Return the phrases of a table, each with a space on both sides."""
    return tuple(f" {' '.join(phrase.split())} " for phrase in table.split("|"))


def telling_words(table: Iterable[str]) -> frozenset[str]:
    """Return the longest word of each phrase: a text without any of them contains none of the phrases."""
    return frozenset(max(phrase.split(), key=len) for phrase in table)


CONNECTIVES = frozenset(
    """
and but or so also however though additionally furthermore moreover therefore thus hence overall finally
unfortunately well then yet still instead similarly
""".split()
)
"""Words without content at the beginning of a sentence."""

INTERJECTIONS = frozenset(
    """
yes yeah yea yep yup no nope nah ok okay sure certainly absolutely definitely indeed right correct exactly true false
wow oh ah aha hmm haha lol whoa gosh jeez oops yay thanks hello hi hey bye goodbye greetings cool great nice awesome
agreed sorry
""".split()
)
"""Interjections: alone, or before a comma."""

ANSWERING = frozenset("yes yeah yea yep yup oh ok okay nope nah".split())
"""Interjections that also begin a sentence without a comma ("Yes he did"); few names begin with one."""

ANSWERED = frozenset("i he she it we they you that this there it's he's she's they're i'm i've that's there's".split())
"""Words that may follow "no" without a comma where it is an answer and not a determiner."""

BARE_ANSWERS = frozenset(
    """
yes yeah yep no nope true false right correct exactly indeed
""".split()
)
"""Interjections that answer a question rather than greet."""

FUNCTION_WORDS = frozenset(
    """
a an the i you he she it we they me him her us them this that these those is are was were be been am do does did
have has had of to in on at for with by from and or but so as if not n't course it's that's i'm i've there's too
also very so here's they're you're what's don't isn't doesn't he's she's didn't wasn't weren't aren't haven't hasn't
""".split()
)
"""Function words: a piece with no other words has nothing to check."""

EVALUATIONS = frozenset(
    """
great good nice cool amazing awesome interesting crazy funny sad beautiful wonderful fantastic terrible horrible bad
best fun weird ironic really pretty so very quite just fascinating impressive lovely excellent incredible
unbelievable neat sweet awful scary strange surprising movie film show thing game story one idea choice lol haha
most too bit little kind way
""".split()
)
"""Words of taste: a piece with only these and function words ("It was a great film") is an opinion."""

SMALL_TALK = frozenset(
    """
know knew see agree understand heard hear guess think thought bet mean means right wrong true sense make makes made
point question chat chatting talk talking speaking day time fine well glad pleased happy surprised sure interested
idea either even maybe i'd i'll i'm you'd we're again would could should can will might yet ever never all much lot
""".split()
)
"""Words that, with function words and words of taste alone, make small talk: "I see", "That makes sense"."""

SOURCE_WORDS = frozenset(
    """
passage passages document documents context contexts text texts source sources article articles excerpt excerpts
snippet snippets answer answers response summary overview conclusion information description explanation breakdown
""".split()
)
"""Words for an answer and for its sources."""

DISCOURSE = SOURCE_WORDS | frozenset(
    """
provide provides provided give gives given contain contains include includes describe describes described explain
explains explained discuss discusses discussed mention mentions mentioned outline outlines outlined present presents
presented cover covers covered offer offers summarize summarizes summarized focus focuses based according used using
use find found help helps query question questions list lists point points detail details detailed step steps
instruction instructions example examples testimonial account perspective perspectives view views topic topics
subject process method methods issue matter key main important relevant above below following available necessary
needed required additional further more sufficient enough other another same different various several many specific
brief general personal clear clearly directly fully briefly confidently specifically only any each both first second
third fourth last how what why when where let us let's look therefore thus hence now regarding related concerning
into no can could may here there
""".split()
)
"""Words that, with words of taste alone, describe the answer or a source but none of its content."""

OPENINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "opinion",
        phrases(
            """
i can't believe | i cannot believe | i couldn't believe | i can't wait | i can't imagine | i cannot imagine | i
can't stand | i'm not sure i | i am not sure i | i would have to say
"""
        ),
    ),
    (
        "offer",
        phrases(
            """
let me know | feel free to | please let me know | please feel free | if you want me to | if you have any questions |
if you have any other questions | if you have any further questions | if you have more questions | if you have
further questions | i can also | i can help | i'd be happy | i would be happy | i'd be glad | i would be glad | i'm
happy to | i am happy to | happy to help | i'm here to | i am here to | don't hesitate to ask | do not hesitate to
ask | please don't hesitate | please do not hesitate | let me help | let me | i'll do my best | i will do my best |
i'll try to | i will try to | i'll look | i will look | i'll check | i will check | i'll search | i will search | i'll
fetch | i will fetch | i'll find out | i will find out | i'll start by | i will start by | i'm going to look | i'm going
to check | i'm going to search | let's look | let's check | let's search | i'll now | i will now | now i'll | now ,
i'll | then i'll | first i'll | first , i'll | next i'll | next , i'll
"""
        ),
    ),
    (
        "greeting",
        phrases(
            """
thank you | thanks for | thanks | you're welcome | you are welcome | great question | good question | that's a great
question | that is a great question | that's a good question | i hope this | i hope that | hope this | hope that
helps | good luck | nice to meet | welcome to our chat | my pleasure | have a great | have a nice | have a good |
good morning | good afternoon | good evening | how are you | of course . | no problem | glad to help | i understand
your | enjoy . | nice chatting | great chatting | nice talking | great talking | it was nice | it was great chatting
| it was great talking | it was a pleasure | it's been nice | it's been great | i'm doing great | i'm doing good |
i'm doing well | i'm doing fine | just a moment | one moment | good point | you're right | you are right | that's
true . | that's right . | that makes sense | fine thank you | have fun | hey there | hi there | hello there
"""
        ),
    ),
    (
        "question",
        phrases(
            """
have you ever | have you heard | have you seen | have you been | do you like | do you have | do you think | do you
want | are you | would you like | is there anything else | is there anything further | how about you | what about
you | how did you | what do you
"""
        ),
    ),
    (
        "refusal",
        phrases(
            """
i cannot | i can't | i can not | i am unable to | i'm unable to | i am not able to | i'm not able to | i won't | i
will not | i don't know | i do not know | i'm sorry | i am sorry | i apologize | my apologies | apologies for |
apologies , | sorry | as an ai | as a language model | as a large language model | i'm just an ai | i am an ai | i'm
an ai | i don't have access | i do not have access | i have no idea | i'm not sure | i am not sure | i don't have
enough | i do not have enough | i couldn't | i could not | i was unable to | i don't have any | i do not have any |
i don't have information | i do not have information | i must decline | i'm not familiar with | i am not familiar
with | i don't have specific | i do not have specific | i did not know | i didn't know | i do not even know | i don't
even know | i've never | i have never | i haven't heard | i have not heard | i haven't seen | i have not seen | i
haven't read | i have not read | i haven't been | i have not been | i haven't tried | i have not tried | i haven't
played | i have not played | i haven't watched | i have not watched | i don't remember | i do not remember | i don't
recall | i do not recall | i don't have an opinion | i do not have an opinion | i don't really have | i don't have a
favorite | i don't have a favourite
"""
        ),
    ),
    (
        "hedged",
        phrases(
            """
i think | i believe | i guess | i suppose | i assume | i imagine | i suspect | i would guess | i'd guess | my guess
| it is possible that | it's possible that | it may be that | it might be | it could be | it is likely that | it's
likely that | it is probable that | it is unlikely that | it's unlikely that | it seems | it appears that | it would
seem | it is conceivable | perhaps | maybe | possibly | probably | presumably | as far as i know | to my knowledge |
if i recall | if i remember | i'm fairly sure | i am fairly sure | i'm pretty sure | i am pretty sure | most likely
| there is a chance | there's a chance | there might be | one possibility | i'm guessing | i'm not certain
"""
        ),
    ),
    (
        "opinion",
        phrases(
            """
in my opinion | in my view | personally | i feel | i love | i like | i really like | i really love | i just love | i
also like | i also love | i do like | i do love | i loved | i liked | i enjoyed | i really liked | i really enjoyed
| i do not like | i'm a big fan | i am a big fan | i'm a huge fan | i am a huge fan | i'm a fan | i am a fan | i'm
not a fan | i am not a fan | i'm not a big | i am not a big | i'm not really a | i am not really a | i'm so sorry |
i enjoy | i prefer | i hate | i recommend | i would recommend | i'd recommend | i suggest | i would suggest | i'd
suggest | my favorite | my favourite | i'm glad | i am glad | i wish | i would love | i'd love | i always wanted | i
would like | i'd like | i don't like | i agree | i wonder | i hope | that sounds | that's cool | that is cool |
that's great | that is great | that's awesome | that's interesting | that is interesting | that's amazing | that's
nice | how cool | how interesting | sounds like fun | it sounds | sounds
"""
        ),
    ),
    (
        "instruction",
        phrases(
            """
please | make sure | be sure to | be careful | remember to | don't forget | do not forget | try to | you may want to
| you might want to | it is recommended to | it's recommended to | it is recommended that you | it's recommended
that you | you can refer to | refer to the | see also | see the | it's best to consult | it is best to consult |
it's always best to | it is always best to | it's always a good idea | it is always a good idea | it's a good idea
to | it is a good idea to
"""
        ),
    ),
)
"""Opening words of pieces that assert nothing, by skip reason; the first match decides."""

OFFERING = phrases(
    """
let me know | feel free | ask | i can | i'd be happy | i would be happy | i'll | happy to | reach out
"""
)
"""Phrases that make a sentence that begins with "If" an offer."""

HEDGES = phrases(
    """
might be | might have been | might not be | could possibly | may possibly | might possibly | probably | perhaps |
maybe | possibly | presumably | supposedly | appears to | appear to | appeared to | seems to | seem to | seemed to |
seems like | seems that | it is likely that | is likely that | it is possible that | it's possible that | i think |
i believe | i guess | i'm not sure | i am not sure
"""
)
"""Phrases that, in the main clause, leave open whether the statement is true."""

FAVOURITES = phrases("my favorite | my favourite | one of my favorites | one of my favourites")
"""Phrases that, anywhere in a piece, make it an opinion."""

ATTRIBUTIONS = phrases(
    """
according to | suggest | suggests | suggested | suggesting | study | studies | research | researchers | scientists |
experts | some people | passage | passages | report | reports | reported | article | author | authors | doctors |
analysts | officials | police | believed | estimate | estimates | estimated | said | says | stated | document |
source | sources | evidence | argue | argues | argued | the text
"""
)
"""Words that attribute a hedge to somebody else, whose statement can be checked."""

CONFIDENCES: tuple[tuple[float, tuple[str, ...]], ...] = (
    (
        0.2,
        phrases(
            """
unlikely | improbable | doubtful
"""
        ),
    ),
    (
        0.4,
        phrases(
            """
possibly | perhaps | maybe | might | could be | it is possible | it's possible | i guess | not sure | conceivable
"""
        ),
    ),
    (
        0.5,
        phrases(
            """
appears to | appear to | appeared to | seems to | seem to | seemed to | seems like | seems that | uncertain |
unclear | i assume
"""
        ),
    ),
    (
        0.6,
        phrases(
            """
may | i think | potentially | suggests | suggest | suggesting | believe
"""
        ),
    ),
    (
        0.7,
        phrases(
            """
likely | probably | presumably | believed to | estimated | roughly | reportedly | supposedly | allegedly | usually |
generally | fairly sure | pretty sure
"""
        ),
    ),
)
"""The confidence (0–1) that a hedge implies, lowest first."""

BOOSTERS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (
        1.0,
        phrases(
            """
definitely | undoubtedly | without doubt | without a doubt | no doubt | absolutely | guaranteed
"""
        ),
    ),
    (
        0.95,
        phrases(
            """
certainly | clearly | surely | indeed | obviously | of course | always | never | confirmed
"""
        ),
    ),
)
"""The confidence that a booster implies."""

NO_HEDGES = phrases(
    """
more likely | less likely | most likely to | as likely | how likely
"""
)
"""Phrases that contain a hedging word but do not hedge."""

NOTES = phrases(
    """
please note | note | please remember | remember | keep in mind | be aware | please be aware
"""
)
"""Phrases that, before "that", a colon or a comma, assert the rest of the sentence."""

IMPERATIVES = frozenset(
    """
add allow apply arrange ask attach avoid bake beat begin blend boil bring brush call check choose chop clean click
close coat combine compare complete connect consider consult contact continue cook cool cover create cut decide
defrost delete describe dip discard dissolve divide do don't download drain drink drizzle dry eat enable enjoy
ensure enter explain fill find flip fold follow fry garnish gather get give go grate grease grill grind heat hold
identify insert install keep leave let lift locate log look lower make marinate measure melt mix move navigate note
notice open peel perform place pour preheat prepare press pull purchase push put read reduce refer refrigerate
remove repeat replace rest restart review rinse roast roll rub run save scroll seal season see seek select send
separate serve set shake simmer sit slice soak speak spray spread sprinkle squeeze start stay steam stir stop store
strain submit switch take talk tap test thread tie toss touch transfer trim try turn type unplug update upload use
verify visit wait warm wash watch wear whisk wipe work wrap write
""".split()
)
"""Verbs that begin an instruction."""

ONLY_IMPERATIVES = frozenset(
    """
add allow avoid choose combine consider consult continue create decide delete describe discard dissolve don't drain
eat enable enjoy ensure enter explain follow gather identify insert install keep let locate make marinate melt
navigate preheat prepare put refrigerate remove replace rinse scroll seek serve squeeze stir submit take tap
unplug upload verify visit wait whisk wipe
""".split()
)
"""Those of `IMPERATIVES` that at the beginning of a sentence are never a noun or an adjective."""

AFTER_IMPERATIVE = frozenset(
    """
the a an your this that it them all any each some to in on with into up out off from for over at as if how whether
both one two three half sure aside until about around down back only not no well hot cold every these those their
away through by and
""".split()
)
"""Words that follow the other `IMPERATIVES` if they are verbs."""
