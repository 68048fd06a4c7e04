"""Split a text into words and stem them; general English vocabulary and its lookup functions.

A word belongs to one synonym set only, so that meaning does not drift along a chain of near-synonyms.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, permutations
from typing import NamedTuple

from groundwire.caches import memo_of_words

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # scripts written without spaces: one character is one word
    r"|\d+(?:[.,]\d+)*"
    r"|[^\W\d_]+(?:['\u2019][^\W\d_]+)*"
)

STOPWORDS = frozenset(
    "a an and are as at be been being but by can could did do does doing done for from had has have having he her "
    "hers him his how i if in into is it its itself just me might my of on or our ours own per shall she should "
    "so some such than that the their theirs them then there these they this those through to too up upon us very "
    "via was we were what when where which while who whom whose why will with would you your yours also about both "
    "each other however therefore thus moreover furthermore additionally may must s t re ve ll d m".split()
)


NEGATORS = frozenset(
    "not no never none neither nor nobody nothing nowhere cannot without unable fail failed fails failing lacks "
    "lacked".split()
)


NUMERALS = {
    name: number
    for number, name in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
} | {name: 10 * tens for tens, name in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}


LONGEST_WORD = 64  # in characters; results for longer words are not cached


class Word(NamedTuple):
    """One word: its span in the text, the word as written and in lower case, its stem, and its properties.

    `is_content`: it is not a stop word; `is_number`: it starts with a digit; `is_negator`: it negates ("not", "never",
    "isn't"); `carries_meaning`: it is neither a stop word nor a negator; `is_capital`: it carries meaning and starts
    with a capital, for whatever reason.
    """

    start: int
    end: int
    text: str
    lower: str
    stem: str
    is_content: bool
    is_number: bool
    is_negator: bool
    carries_meaning: bool
    is_capital: bool


def words(text: str) -> tuple[Word, ...]:
    """Return the words of `text` in order, in linear time."""
    return tuple([_word((*match.span(), *_form(match.group()))) for match in _WORD.finditer(text)])


_word: Callable[[tuple[object, ...]], Word] = partial(tuple.__new__, Word)  # as `Word._make`, without its length check


@memo_of_words(2**15, LONGEST_WORD)
def _form(text: str) -> tuple[str, str, str, bool, bool, bool, bool, bool]:
    """Return the fields of `Word` from `text` on, which are the same for every occurrence of a word."""
    lower, stemmed = text.lower(), stem(text)
    plain, is_content = lower.replace("\u2019", "'"), stemmed not in STOPWORDS
    is_negator = plain in NEGATORS or plain.endswith("n't")
    means = is_content and not is_negator
    return text, lower, stemmed, is_content, text[0].isdigit(), is_negator, means, means and text[0].isupper()


def content_stems(text: str) -> frozenset[str]:
    """Return the distinct stems of the content words of `text`."""
    return frozenset(map(stem, _WORD.findall(text))) - STOPWORDS


@memo_of_words(2**15, LONGEST_WORD)
def stem(word: str) -> str:
    """Return a light English stem: without case, possessive, plural, -ed, -ing, -ly and -ness.

    Numbers lose their commas. Words that differ in another ending keep different stems, such as "profit" and
    "profitable".
    """
    lower = word.casefold().replace("\u2019", "'").removesuffix("'s")
    if lower[:1].isdigit():
        return lower.replace(",", "")
    if lower in STOPWORDS or not lower.isascii():
        return lower
    if len(lower) <= 3:
        return lower
    for ending, replacement, least in _ENDINGS:
        if lower.endswith(ending) and len(lower) - len(ending) >= least:
            lower = lower[: len(lower) - len(ending)] + replacement
            break
    if len(lower) > 3 and lower[-1] == lower[-2] and lower[-1] in "bdgmnprt":
        lower = lower[:-1]  # stopped -> stop, planning -> plan
    lower = _with_one_l(lower)
    return lower.removesuffix("e") if len(lower) > 3 else lower


def _with_one_l(word: str) -> str:
    """Return a long word with one "l" for two at its end: cancelled -> cancel. "install" keeps both."""
    return word[:-1] if len(word) > 5 and word.endswith(("ell", "ill", "oll", "ull")) else word


_ENDINGS = [
    (ending, replacement.strip("-"), int(least))
    for ending, replacement, least in map(
        str.split,
        "sses ss 2|ies y 2|ied y 2|eed ee 2|used use 0|using use 0|ingly - 3|edly - 3|ing - 3|ness - 4|ed - 3|ily y 3|"
        "ly - 4|ss ss 1|us us 1|is is 1|xes x 2|ches ch 2|shes sh 2|s - 3".split("|"),
    )
]
"""Endings with their replacement ("-": none) and the minimum length of the rest; the first that fits is replaced."""


def _listed(table: str) -> frozenset[str]:
    return frozenset(table.split())


def _stems(table: str) -> frozenset[str]:
    return frozenset(map(stem, table.split()))


def _groups(table: str) -> list[list[str]]:
    return [[stem(word) for word in group.split()] for group in table.strip().replace("\n", "|").split("|")]


def _with_forms(table: str) -> frozenset[str]:
    """Return the stems of listed words and of their irregular forms."""
    listed = {stem(word) for word in table.split()}
    return frozenset(listed.union(*(group for group in _groups(_IRREGULAR) if group[0] in listed)))


# Each line: a base form and its irregular forms.
_IRREGULAR = """
arise arose arisen|become became|begin began begun|bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown
break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen
come came|creep crept|deal dealt|die dying|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fly flew flown
forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten
give gave given|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|know knew known
lay laid|lead led|learn learnt|leave left|lend lent|lie lying|lose lost|make made|mean meant|meet met|overcome overcame
pay paid|prove proven|rise rose risen|ride rode ridden|ring rang rung|run ran|say said|see saw seen|seek sought
sell sold|send sent|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung
sink sank sunk|sit sat|sleep slept|speak spoke spoken|spend spent|spin spun|stand stood|steal stole stolen|stick stuck
strike struck|swear swore sworn|sweep swept|swim swam swum|take took taken|teach taught|tear tore torn|tell told
think thought|throw threw thrown|understand understood|undergo underwent undergone|wake woke woken|wear wore worn
win won|withdraw withdrew withdrawn|write wrote written|overtake overtook overtaken|child children|man men|woman women
person people|foot feet|tooth teeth|mouse mice|goose geese|life lives|wife wives|leaf leaves|half halves|knife knives
wolf wolves|shelf shelves|analysis analyses|basis bases|crisis crises|criterion criteria|phenomenon phenomena
bacterium bacteria|datum data|medium media|index indices|good better best|bad worse worst|far further farther furthest
"""

# Each group: words that a faithful paraphrase may exchange.
_SYNONYMS = """
rise raise increase grow growth climb gain surge jump soar upturn escalate
fall decrease decline drop plunge shrink reduction reduce diminish lower slump downturn lessen cut
buy purchase acquire acquisition buyout takeover|sell sale|begin start commence launch initiate
end finish conclude conclusion terminate|stop cease halt discontinue
big large huge enormous massive substantial major considerable|small little tiny minor slight
fast quick rapid swift speedy|show demonstrate reveal indicate|help assist aid assistance
allow permit enable permission|forbid ban prohibit disallow|need require requirement necessary essential must
job employment work occupation|worker employee staff|firm company business corporation enterprise|child kid
doctor physician|movie film|car automobile vehicle|kill slay|murder homicide|die death dead deceased|bear birth born
name call title|create establish found foundation|make produce production manufacture yield
build construct construction|destroy destruction demolish|choose select selection pick choice|try attempt
get receive obtain|give provide offer supply|tell inform|say state mention note remark comment
declare announce announcement|claim assert allege allegation|think believe belief|explain describe description
talk discuss discussion conversation speak|ask request|answer reply respond response|purpose aim goal objective
result outcome consequence|cause lead trigger|problem issue difficulty|important crucial vital key significant
main primary chief principal|common frequent|usual typical normal general|often frequently|rare uncommon|near nearby
happen occur occurrence|live reside residence|house home dwelling|city town|country nation|area region zone|road street
money cash|price cost|income revenue turnover|profit earnings|pay payment
approximate about roughly around circa nearly almost|old elderly|young youthful|ill sick|illness disease sickness
injure injury hurt wound|treat treatment therapy|drug medication medicine|police officer cop|attorney lawyer
arrest detain custody detention|prison jail|convict conviction guilty|win victory triumph victorious|defeat beat
lose loss defeat|fight battle|war conflict|attack assault|protect protection safeguard|safe safety secure security
search seek hunt|find discover discovery locate|keep retain maintain|replace substitute substitution
change alter alteration modify modification|improve improvement enhance enhancement|worsen deteriorate deterioration
refuse reject rejection decline|agree agreement consent|argue dispute quarrel|attempt effort|travel trip journey
arrive arrival reach eta|leave depart departure|send dispatch ship|deliver delivery|include contain comprise consist
part portion section segment|amount quantity|total overall sum|whole entire complete full
several multiple various numerous|many lots|enough sufficient adequate|lack absence shortage|extra additional further
other another|same identical|different distinct differ difference|similar alike|famous popular renown celebrated
wealthy rich|poor impoverished|beautiful pretty|easy simple|hard difficult tough|happy glad pleased|sad unhappy
angry furious|film movie|picture photo photograph image|author writer|song track|singer vocalist|band group
actor actress|player athlete|tournament competition contest championship|match game|team side squad
coach trainer manager|boss chief head leader|mother mom mum|father dad|parent parents|wife spouse|teacher instructor
student pupil|school college|university academy|study research|investigate investigation probe inquiry
examine examination inspect inspection|test trial|decide decision|plan intend intention|appoint appointment
elect election|vote ballot|law legislation|govern government administration|approve approval|oppose opposition
suggest propose proposal recommend recommendation|advise advice|warn warning caution|estimate estimation
predict prediction forecast|expect anticipate expectation|exist existence|know knowledge|teach education educate
use utilize utilise employ usage|utility usefulness|combine combination|connect connection link
separate split divide division|move movement shift|transport transportation|store storage
remove removal eliminate elimination|add addition|join membership member|own possess possession|visit visitor
perform performance|publish publication release|record recording|develop development|operate operation
invest investment|fund finance financing|borrow loan|owe debt|tax taxation|measure measurement|weigh weight
long length lengthy|wide width|high height tall|deep depth|strong strength|warm warmth|hot heat|cold cool|true truth
fix repair mend|mix blend stir|boil simmer|fry saute|bake roast|clean wash|dirt soil|garbage trash rubbish|shop store
lorry truck|autumn fall|holiday vacation|flat apartment|lift elevator|aeroplane airplane plane aircraft
ship boat vessel|bike bicycle|dog canine|cat feline|cow cattle|soccer football|doctorate phd|tv television
telephone phone|laptop computer|email mail|approx approximately|percent percentage|first 1st|second 2nd|third 3rd
fourth 4th|fifth 5th|zero 0|one 1 single|two 2 couple pair|three 3|four 4|five 5|six 6|seven 7|eight 8|nine 9|ten 10
eleven 11|twelve 12 dozen|thirteen 13|fourteen 14|fifteen 15|sixteen 16|seventeen 17|eighteen 18|nineteen 19|twenty 20
thirty 30|forty 40|fifty 50|sixty 60|seventy 70|eighty 80|ninety 90|population inhabitant populace|economy gdp
apology apologise apologize
"""

# The same for names: months, nationalities and countries. Any other name has no synonym.
_NAME_SYNONYMS = """
usa us america american|uk britain british|eu europe european|un nations|january jan|february feb|march mar|april apr
august aug|september sept sep|october oct|november nov|december dec|france french|germany german|spain spanish spaniard
italy italian|china chinese|japan japanese|russia russian|india indian|canada canadian|australia australian
ireland irish|scotland scottish scot|wales welsh|england english|mexico mexican|brazil brazilian|greece greek
turkey turkish turk|egypt egyptian|israel israeli|iran iranian|iraq iraqi|poland polish pole|sweden swedish swede
norway norwegian|denmark danish dane|finland finnish finn|netherlands dutch holland|belgium belgian|switzerland swiss
austria austrian|portugal portuguese|ukraine ukrainian|korea korean|vietnam vietnamese|thailand thai
philippines filipino philippine|indonesia indonesian|pakistan pakistani|afghanistan afghan|syria syrian|africa african
asia asian
"""

# Each pair: words that cannot both be true of the same thing in the same respect.
_OPPOSITES = """
rise fall|buy sell|begin end|start stop|win lose|big small|fast slow|strong weak|high low|hot cold|long short
wide narrow|old young|old new|early late|earlier later|before after|more less|more fewer|most least|most few|many few
maximum minimum|upper lower|north south|east west|northern southern|eastern western|inside outside|internal external
import export|accept reject|accept refuse|approve reject|allow forbid|agree disagree|support oppose|include exclude
add remove|join leave|arrive leave|open close|open shut|push pull|enter exit|entry exit|ascend descend|expand contract
strengthen weaken|improve worsen|gain lose|profit loss|surplus deficit|credit debit|asset liability|borrow lend
hire fire|employ dismiss|appoint dismiss|arrest release|convict acquit|guilty innocent|live die|alive dead|male female
man woman|boy girl|mother father|husband wife|son daughter|brother sister|king queen|uncle aunt|true false
correct incorrect|positive negative|good bad|better worse|best worst|safe dangerous|safe unsafe|legal illegal
public private|possible impossible|able unable|common rare|easy difficult|simple complex|rich poor|happy sad|love hate
friend enemy|attack defend|success failure|succeed fail|pass fail|prevent cause|increase decrease|encourage discourage
confirm deny|admit deny|remember forget|find lose|first last|top bottom|front back|day night|morning evening
summer winter|spring autumn|dry wet|full empty|hard soft|heavy light|thick thin|rough smooth|permanent temporary
voluntary mandatory|optional mandatory|optional required|domestic foreign|local international|urban rural|always never
everyone nobody|everything nothing|cheap expensive|present absent|visible invisible|active inactive
effective ineffective|efficient inefficient|direct indirect|dependent independent|regular irregular|majority minority
victim suspect|plaintiff defendant|upstream downstream|acute chronic|benign malignant|raise lower|upgrade downgrade
outperform underperform|exceed miss|tighten loosen|widen narrow|lengthen shorten|accelerate slow
overestimate underestimate|bullish bearish|inflation deflation|hawkish dovish|higher lower|larger smaller
bigger smaller|greater smaller|stronger weaker|longer shorter|faster slower|older younger|hotter colder|warmer cooler
wider narrower|heavier lighter|richer poorer|cheaper dearer|happier sadder|above below|against favour|indoor outdoor
ahead behind|noon midnight|full part
"""

# Words of an answer about its sources, which no source could state.
FRAME_WORDS = _stems("""
according passage passages provided context document documents article text source sources excerpt information based
given above below following summary overall conclusion yes sure okay ok oh well hello hi thanks mention mentioned
""")

# Content words so common that their presence or absence means little.
_COMMON = _with_forms("""
able about achieve across actually again almost along already also always among another any approach appear appears
around aspect available because before between bit call called case certain come consider describe describes described
detail details different discuss discusses does did during easily ensure especially even ever example explain fact
factor feature find form generally get give go good great guess hear heard help here highlight idea important include
instance involve item keep kind know known large least let like likely located look lot love main make many mean method
more most much named need never new no nor not note now number often one only option order other out outline over part
particular people per person place possible potential pretty probably process provide put quite really refer relate
result say see several show simply since situation small something specific start state still such suggest sure take
term thing think though time type typically under until use useful usual usually various very via want way well while
whole with within without work yet
""")

# Prepositions, conjunctions, pronouns and adverbs of place, time and degree, which another wording may exchange freely.
LIGHT_WORDS = _COMMON | _with_forms("""
above after against ago although amid anybody anyone anything apart approximately away before behind below beneath
beside besides between beyond despite down each either else elsewhere every everybody everyone everything except
following instead later nearly off once onto otherwise over rather regardless roughly since someone something soon
somewhat somewhere though throughout today together tomorrow toward towards twice under unless unlike upon whatever
whenever whereas wherever whether whichever whoever yesterday
""")

# Words that only refer to the subject, or structure the answer: sources do not repeat them.
REFERENTS = _with_forms("""
company firm organisation organization author writer narrator speaker user people person individual someone anybody
report paper study researcher website webpage page story piece content section question answer statement claim topic
subject matter issue now currently current today presently nowadays recently overall additionally finally specifically
essentially particularly ultimately eventually effectively basically namely likewise accordingly subsequently lastly
note state mention include provide describe explain indicate refer highlight emphasize emphasise discuss define stand
addition other others etc term terms yet already still together
""")

# After a negator, these words cancel the negation of the words that follow: "not only", "no more than", "no doubt".
NOT_NEGATED = frozenset("such only just merely simply more less fewer later earlier doubt until mention".split())

TITLES = _listed("""
mr mrs ms miss dr prof professor sir dame lord lady president vice prime minister chancellor senator sen governor gov
mayor judge justice chief ceo cfo coo chairman captain coach king queen prince princess pope saint st general gen
colonel sergeant officer detective the a an
""")

CALENDAR = _stems("""
january february march april may june july august september october november december jan feb mar apr jun jul aug sep
sept oct nov dec monday tuesday wednesday thursday friday saturday sunday spring summer autumn fall winter
""")

# Units and number words: replacing one by another changes the statement.
UNIT_WORDS = _listed("""
mg g kg mcg ug lb lbs oz ton tons tonne tonnes mm cm m km in inch inches ft foot feet yard yards mile miles ml l liter
liters litre litres gallon gallons second seconds minute minutes hour hours day days week weeks month months year years
decade decades percent percentage hundred thousand million billion trillion k mn bn tn dollar dollars euro euros pound
pounds yen rupee rupees cent cents degree degrees celsius fahrenheit hz khz mhz ghz kb mb gb tb w kw mw gw kwh mwh volt
volts watt watts one two three four five six seven eight nine ten eleven twelve dozen first third fourth fifth half
quarter twice double triple
""")

# Verbs that ascribe a property to a subject.
LINKING = frozenset("is are was were be been being remains remain remained stays stayed became becomes seems".split())

# Verbs that mean the same if subject and object are exchanged.
_SYMMETRIC = _stems("meet marry merge play face debate join partner collaborate resemble equal date")

# Verbs that describe one event from its two sides: the seller's and the buyer's.
CONVERSE = frozenset("buy bought sell sold lend lent borrow give receiv import export".split())

# The amount that each quantifier expresses.
QUANTIFIERS = {
    word: amount
    for amount, quantifiers in {
        "all": "all every each always entire everyone everybody whole",
        "some": "some several certain sometimes occasionally partly partially half",
        "many": "many most often usually majority commonly frequently generally typically normally mostly mainly",
        "few": "few rarely seldom hardly minority",
        "none": "none no never neither nobody",
    }.items()
    for word in quantifiers.split()
}

# The amounts in a source that contradict an amount in the answer.
QUANTIFIER_CONFLICTS = {
    "all": frozenset(("some", "many", "few", "none")),
    "some": frozenset(("none",)),
    "many": frozenset(("few", "none")),
    "few": frozenset(("all", "many", "none")),
    "none": frozenset(("all", "some", "many", "few")),
}


_SUFFIXES = tuple(
    """isations izations isation ization ational ations ation ition ities ment ence ance ency ancy able ible ity ive
    ative ful ous ic ical ism ist ize ise ian er or al ion y e""".split()
)


def _concepts() -> dict[str, str]:
    """Return the concept of every listed stem, itself a stem; the first group that lists a word determines it."""
    concepts: dict[str, str] = {}
    bases = {form: base for base, *forms in _groups(_IRREGULAR) for form in forms}
    for group in (*_groups(_SYNONYMS), *_groups(_NAME_SYNONYMS)):
        head = concepts.get(group[0], group[0])
        for member in group:
            concepts.setdefault(bases.get(member, member), head)
    return concepts | {form: concepts.get(base, base) for form, base in bases.items()}


def _ordinals() -> Iterable[tuple[str, str]]:
    """Return every pair of the ordinals from first to twelfth, as opposites of each other."""
    names = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
    return permutations((_CONCEPTS.get(stem(name), stem(name)) for name in names), 2)


def _gather(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    gathered: dict[str, set[str]] = defaultdict(set)
    for key, value in pairs:
        gathered[key].add(value)
    return {key: frozenset(values) for key, values in gathered.items()}


_CONCEPTS = _concepts()
_MEMBERS = _gather((head, member) for member, head in [*_CONCEPTS.items(), *((h, h) for h in _CONCEPTS.values())])
_OPPOSED = _gather(
    chain(
        (
            pair
            for one, other in ((_CONCEPTS.get(a, a), _CONCEPTS.get(b, b)) for a, b in _groups(_OPPOSITES))
            for pair in ((one, other), (other, one))
        ),
        _ordinals(),
    )
)


NAME_CONCEPTS = frozenset(_CONCEPTS.get(stem, stem) for group in _groups(_NAME_SYNONYMS) for stem in group)
SYMMETRIC_CONCEPTS = frozenset(_CONCEPTS.get(word, word) for word in _SYMMETRIC)


def is_listed(word: str) -> bool:
    """Return whether the stem `word` is in this vocabulary."""
    return word in _CONCEPTS or word in LIGHT_WORDS or word in REFERENTS or bool(opposites(word))


def concept(word: str) -> str:
    """Return the concept of the stem `word`: the head of its synonym set, else its base form, else itself."""
    return _CONCEPTS.get(word, word)


def same_meaning(word: str) -> frozenset[str]:
    """Return every stem that may replace the stem `word` in a paraphrase, including itself."""
    return _MEMBERS.get(concept(word)) or frozenset((word,))


@memo_of_words(4096, LONGEST_WORD)
def opposites(word: str) -> frozenset[str]:
    """Return every stem that is an opposite of the stem `word`."""
    return frozenset(stem for head in _OPPOSED.get(concept(word), ()) for stem in same_meaning(head))


_NEGATIVE_PREFIXES = ("un", "in", "im", "ir", "il", "non", "dis", "mis")
_NO_PREFIX = frozenset("formation cover charg cours appoint patch creas".split())


def are_opposed(one: str, other: str) -> bool:
    """Return whether two stems negate each other: "rise" and "fell", "effective" and "ineffective"."""
    return other in negations(one)


@memo_of_words(4096, LONGEST_WORD)
def negations(word: str) -> frozenset[str]:
    """Return every stem that negates a stem: its opposites, and the stem with a negative prefix added or removed."""
    bare = (word.removeprefix(prefix) for prefix in _NEGATIVE_PREFIXES if word.startswith(prefix))
    plain = frozenset(each for each in bare if _takes_prefix(each))
    negative = frozenset(prefix + word for prefix in _NEGATIVE_PREFIXES if _takes_prefix(word))
    return opposites(word) | plain | negative


def _takes_prefix(word: str) -> bool:
    return len(word) >= 5 and word not in _NO_PREFIX


@memo_of_words(2**15, LONGEST_WORD)
def root(word: str) -> str:
    """Return the stem `word` without its derivational suffix: "organization" and "organize" have the same root."""
    for suffix in _SUFFIXES:
        if len(word) - len(suffix) >= 4 and word.endswith(suffix):
            return _with_one_l(word[: -len(suffix)])
    return word
