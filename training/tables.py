"""The words that the rules of `training.perturb` exchange: dates, opposites, quantifiers, hedges, synonyms."""

MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
COUNTS = "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred".split()

STARTERS = frozenset(
    "The A An In On At It He She They This That These Those There When While After Before If As For But And We I You "
    "His Her Its Their".split()
)
"""Words with a capital because they begin a sentence."""

_PAIRS = """
more/less most/least increase/decrease increased/decreased increases/decreases increasing/decreasing rise/fall rose/fell
rising/falling higher/lower highest/lowest high/low before/after above/below over/under first/last early/late
earlier/later win/lose won/lost wins/loses accept/reject accepted/rejected allow/ban allowed/banned allows/prevents
support/oppose supported/opposed begin/end began/ended start/stop started/stopped open/close opened/closed buy/sell
bought/sold gain/loss gains/losses profit/loss young/old younger/older new/old large/small larger/smaller
largest/smallest big/small bigger/smaller long/short longer/shorter good/bad better/worse best/worst strong/weak
stronger/weaker easy/difficult easier/harder success/failure successful/unsuccessful north/south northern/southern
east/west eastern/western left/right male/female man/woman men/women father/mother son/daughter brother/sister
husband/wife his/her he/she boy/girl positive/negative public/private common/rare many/few often/rarely
always/sometimes all/some every/some both/neither usually/never same/different include/exclude includes/excludes
including/excluding with/without hot/cold warm/cold fast/slow faster/slower improve/worsen improved/worsened alive/dead
born/died arrive/leave arrived/left enter/leave true/false safe/dangerous deny/confirm denied/confirmed agree/disagree
agreed/disagreed approve/refuse approved/refused inside/outside major/minor maximum/minimum majority/minority full/empty
rich/poor cheap/expensive inner/outer upper/lower internal/external domestic/foreign present/absent remember/forget
love/hate likes/dislikes pass/fail passed/failed far/near expand/shrink expanded/shrank create/destroy created/destroyed
permanent/temporary direct/indirect happy/unhappy able/unable legal/illegal guilty/innocent possible/impossible
likely/unlikely complete/incomplete known/unknown up/down parent/child cause/prevent causes/prevents caused/prevented
teacher/student buyer/seller employer/employee lead/trail attack/defend attacked/defended
""".split()
OPPOSITES = {one: other for pair in _PAIRS for one, other in (pair.split("/"), pair.split("/")[::-1])}
"""Each word of a pair with the other; of several pairs of one word the last counts."""

QUANTIFIERS = {
    "some": "all",
    "many": "all",
    "most": "all",
    "several": "all",
    "few": "most",
    "often": "always",
    "sometimes": "always",
    "usually": "always",
    "all": "some",
    "every": "no",
    "both": "one of the",
    "always": "sometimes",
    "never": "sometimes",
    "only": "also",
    "mainly": "only",
    "partly": "entirely",
    "almost": "more than",
    "nearly": "well over",
    "about": "far more than",
    "at least": "at most",
    "up to": "more than",
}

HEDGES = {
    "may": "will",
    "might": "will",
    "could": "will",
    "may have": "has",
    "might be": "is",
    "could be": "is",
    "may be": "is",
    "appears to": "is known to",
    "seems to": "is known to",
    "suggests": "proves",
    "suggest": "prove",
    "likely to": "certain to",
    "allegedly": "indeed",
    "reportedly": "certainly",
    "probably": "certainly",
    "plans to": "has begun to",
    "is expected to": "did",
    "hopes to": "will",
}

ENDINGS = ("ing", "ed", "tion", "ly", "ers", "er", "ity", "ment", "al", "ous", "ive", "es", "s")
"""The endings of words of one part of speech; the first that fits counts."""

JOINTS = (
    ", which was ",
    " and ",
    ", according to ",
    " because ",
    " in order to ",
    ", especially ",
    " with ",
    " after ",
    " for ",
)
"""What joins an invented clause to a claim."""

LEAD_INS = (
    "According to the text, ",
    "The passage says that ",
    "As the source explains, ",
    "In short, ",
    "Notably, ",
    "It is stated that ",
    "Overall, ",
    "The article reports that ",
    "Based on the context, ",
    "To answer the question: ",
    "In addition, ",
    "Also, ",
)

LEFT_OUT = (
    r"\s*\([^()]{2,60}\)",
    r",\s(?:which|who|where|whose)\s[^,.;]{5,80},(?=\s)",
    r",\s(?:which|who|where)\s[^,.;]{5,90}(?=\.?$)",
    r"^(?:However|Meanwhile|Moreover|Also|Then|But|And|So|Now),?\s",
)
"""What may go without a claim's becoming wrong: a parenthesis, a relative clause, a first adverb."""

REWORDINGS = (
    (r"\bis not\b", "isn't"),
    (r"\bdo not\b", "don't"),
    (r"\bdid not\b", "didn't"),
    (r"\bwill not\b", "won't"),
    (r"\bcannot\b", "can't"),
    (r"\bit is\b", "it's"),
    (r"\bapproximately\b", "about"),
    (r"\babout (?=\d)", "roughly "),
    (r"\bpercent\b|(?<=\d) ?per cent\b", "%"),
    (r"(?<=\d)%", " percent"),
    (r"\bmore than (?=\d|\$|£)", "over "),
    (r"\bover (?=\d|\$|£)", "more than "),
    (r"\bpurchased\b", "bought"),
    (r"\bbought\b", "purchased"),
    (r"\bbegan\b", "started"),
    (r"\bstarted\b", "began"),
    (r"\bhelp\b", "assist"),
    (r"\blarge\b", "big"),
    (r"\bbig\b", "large"),
    (r"\bchildren\b", "kids"),
    (r"\bshow(s?)\b", r"demonstrate\1"),
    (r"\buse(s|d)?\b(?! to)", r"employ\1"),
    (r"\bbut\b", "however,"),
    (r"\bbecause\b", "since"),
    (r"\balso\b", "in addition"),
    (r"\bfilm\b", "movie"),
    (r"\bmovie\b", "film"),
    (r"\bbuild(s?)\b", r"construct\1"),
    (r"\bget(s?)\b", r"obtain\1"),
    (r"\bneed(s?) to\b", r"must"),
    (r"\bkilled\b", "left dead"),
    (r"\bmany\b", "numerous"),
    (r"\bdoctor(s?)\b", r"physician\1"),
    (r"\bcar(s?)\b", r"vehicle\1"),
    (r"\bwealthy\b", "rich"),
    (r"\bjob(s?)\b", r"position\1"),
    (r"\breceived\b", "got"),
    (r"\blocated in\b", "in"),
    (r"\bhowever\b", "but"),
    (r"\blawyer(s?)\b", r"attorney\1"),
    (r"\bcompany\b", "firm"),
    (r"\bfirm\b", "company"),
    (r"\bpeople\b", "persons"),
    (r"\bsaid\b", "stated"),
    (r"\btold\b", "informed"),
    (r"\bcountries\b", "nations"),
    (r"\bstop(s|ped)?\b", "halt"),
    (r"\bend(ed)\b", "finished"),
    (r"\bimportant\b", "significant"),
    (r"\btry\b", "attempt"),
    (r"\btried\b", "attempted"),
    (r"\bchoose\b", "select"),
    (r"\bchose\b", "selected"),
    (r"\bfind out\b", "discover"),
    (r"\bhuge\b", "enormous"),
)
"""Patterns and what they become where the same is to be said in other words."""
