"""Prompt templates are split into citable documents; offsets point into the message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Exchange, Message, Part, Source
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather, question
from groundwire.evidence.templates import take_apart
from tests.steps import is_linear

A = "Acme was founded in 1999. It sells anvils."
B = "Returns are accepted within 30 days."


def sources_of(text: str, role: str = "user") -> tuple[Source, ...]:
    return gather(Exchange(messages=(Message(0, role, (Part(text),)),)))  # type: ignore[arg-type]


# id: (prompt, what an answer may cite A by, what it may cite B by)
LABELLED = {
    "square brackets": (f"[1] {A}\n[2] {B}\n\nWhen was Acme founded? Cite sources as [1].", "[1]", "[2]"),
    "square brackets, blank lines": (f"Sources:\n\n[1] {A}\n\n[2] {B}\n\nQuestion: when?", "1", "2"),
    "square brackets with colon": (f"[1]: {A}\n[2]: {B}\nQuery: when?", "1", "2"),
    "corner brackets": (f"【1】{A}\n【2】{B}\nquestion: when?", "【1】", "【2†source】"),
    "named brackets": (f"Use the sources:\n[doc-3] {A}\n[doc-4] {B}\n\nQ: when?", "[doc-3]", "doc-4"),
    "file names in brackets": (
        f"Sources:\n[about.pdf]: {A}\n[returns.md]: {B}\n\nQ: when?",
        "about.pdf",
        "[returns.md]",
    ),
    "document colon": (f"Document 1: {A}\nDocument 2: {B}\n\nQuestion: when?", "Document 1", "doc 2"),
    "bracketed document": (f"[Document 1]\n{A}\n\n[Document 2]\n{B}\n\nQuestion: when?", "[1]", "document 2"),
    "passages glued to their mark": (f"passage 1:{A}\n\npassage 2:{B}\n\noutput:", "passage 1", "[2]"),
    "source with title": (
        f"Source 3 - About Acme\n{A}\n\nSource 4 - Returns\n{B}\n\nWhat now?",
        "About Acme",
        "Source 4",
    ),
    "doc with title in brackets": (f"Doc 1 (Title: Acme) {A}\nDoc 2 (Title: Returns) {B}\n\nQ: what?", "Acme", "doc2"),
    "chunks": (f"Chunk 4\n{A}\n\nChunk 5\n{B}\n\nQuery: what", "chunk 4", "5"),
    "markdown headings": (f"### Document 1\n{A}\n\n### Document 2\n{B}\n\n### Question\nWhen?", "1", "2"),
    "bold marks": (f"**Source 1:** {A}\n**Source 2:** {B}\n\nQuestion: when?", "[1]", "[2]"),
    "dashed marks": (f"--- Document 1 ---\n{A}\n--- Document 2 ---\n{B}\n\nQuestion: when?", "1", "2"),
    "bare numbers in a section": (f"Answer using these sources:\n1. {A}\n2. {B}\n\nWhat is it?", "[1]", "[2]"),
    "source over content": (
        f"Source: about.pdf\nContent: {A}\n\nSource: ret.pdf\nContent: {B}\n\nQuestion: when?",
        "about.pdf",
        "ret.pdf",
    ),
    "content over source": (
        "QUESTION: When?\n=========\n"
        f"Content: {A}\nSource: 28-pl\nContent: {B}\nSource: 30-pl\n=========\nFINAL ANSWER:",
        "28-pl",
        "30-pl",
    ),
    "title over content": (f"Title: About\nContent: {A}\n\nTitle: Returns\nContent: {B}\n\nQ: x?", "About", "[2]"),
    "tags with id": (f'<doc id="a7" title="About">{A}</doc><doc id="b2">{B}</doc> When?', "a7", "b2"),
    "tags with index": (
        f'<documents>\n<document index="1">\n<source>about.pdf</source>\n<document_content>\n{A}\n</document_content>\n'
        f'</document>\n<document index="2">\n<source>r.md</source>\n<document_content>\n{B}\n</document_content>\n'
        "</document>\n</documents>\n\nWhen was Acme founded?",
        "about.pdf",
        "Document 2",
    ),
    "tags without names": (f"<passage>{A}</passage>\n<passage>{B}</passage>\nWhen?", "[1]", "[2]"),
    "search results in tags": (
        f"<search_results><search_result id='1'>{A}</search_result><search_result id='2'>{B}</search_result>"
        "</search_results><question>When?</question>",
        "1",
        "result 2",
    ),
    "numbers inside a tag": (f"<context>\n[1] {A}\n[2] {B}\n</context>\nWhen?", "[1]", "[2]"),
    "rules between": (f"Context:\n{A}\n---\n{B}\n\nQuestion: what?", "1", "2"),
    "llamaindex citations": (
        "Please provide an answer based solely on the provided sources. When referencing information from a source, "
        "cite the appropriate source(s) using their corresponding numbers. For example:\nSource 1:\nThe sky is red in "
        "the evening.\nSource 2:\nWater is wet when the sky is red.\nQuery: When is water wet?\nAnswer: When the sky "
        "is red [2].\nNow it's your turn. Below are several numbered sources of information:\n------\n"
        f"Source 1:\n{A}\n\nSource 2:\n{B}\n------\nQuery: When?\nAnswer: ",
        "[1]",
        "[2]",
    ),
}

# id: prompt whose context is A and B and nothing else
PLAIN = {
    "langchain stuff": (
        "Use the following pieces of context to answer the question at the end. If you don't know the answer, just say "
        f"that you don't know, don't try to make up an answer.\n\n{A}\n\n{B}\n\nQuestion: When?\nHelpful Answer:"
    ),
    "langchain concise": (
        "Use the following pieces of context to answer the question at the end. If you don't know the answer, just say "
        "that you don't know. Use three sentences maximum. Keep the answer as concise as possible. \n"
        f"{A}\n{B}\nQuestion: When?\nHelpful Answer:"
    ),
    "langchain only": f"Answer the question based only on the following context:\n{A}\n{B}\n\nQuestion: When?\n",
    "question before context": (
        "You are an assistant for question-answering tasks. Use the following pieces of retrieved context to answer "
        "the question. If you don't know the answer, just say that you don't know.\n"
        f"Question: When?\nContext: {A}\n\n{B}\nAnswer:"
    ),
    "llamaindex": (
        f"Context information is below.\n---------------------\n{A}\n\n{B}\n---------------------\nGiven the context "
        "information and not prior knowledge, answer the query.\nQuery: When?\nAnswer: "
    ),
    "haystack": f"\nGiven these documents, answer the question.\nDocuments:\n   {A}\n   {B}\nQuestion: When?\nAnswer:",
    "triple backticks": f"Answer from the text in triple backticks.\n```\n{A} {B}\n```\nWhat is Acme?",
    "triple quotes": f'Context:\n"""\n{A} {B}\n"""\n\nQuestion: what?',
    "context tag": f"<context>{A} {B}</context>\n<question>When?</question>",
    "summarise inline": f"Summarize the following text: {A} {B}",
    "summarise below": f"Summarize the following news within 50 words:\n{A}\n{B}\noutput:",
    "article above": f"{A}\n{B} Anvils are made of steel in Ohio.\n\nSummarize the article above.",
}


@pytest.mark.parametrize(("prompt", "first", "second"), LABELLED.values(), ids=LABELLED)
def test_citation_resolves_to_its_document(prompt: str, first: str, second: str) -> None:
    context = Context(sources_of(prompt))
    cited = [context.resolve(first), context.resolve(second)]
    assert [source is not None and fact in source.text for source, fact in zip(cited, (A, B), strict=True)] == [
        True,
        True,
    ]
    assert cited[0] is not cited[1]


@pytest.mark.parametrize("prompt", [prompt for prompt, _, _ in LABELLED.values()], ids=LABELLED)
def test_labelled_documents_are_the_only_evidence(prompt: str) -> None:
    sources = sources_of(prompt)
    assert [source.kind for source in sources] == ["document", "document"]
    assert all(prompt[source.offset :].startswith(source.text) for source in sources)


@pytest.mark.parametrize("prompt", PLAIN.values(), ids=PLAIN)
def test_context_of_a_template_is_the_only_evidence(prompt: str) -> None:
    (source,) = sources_of(prompt)
    assert source.kind == "document"
    assert source.text.startswith(A)
    assert len(source.text) <= len(A) + len(B) + 40
    assert B in source.text


@pytest.mark.parametrize("prompt", PLAIN.values(), ids=PLAIN)
def test_template_in_a_system_message_is_read_alike(prompt: str) -> None:
    assert [source.text for source in sources_of(prompt, "system")] == [source.text for source in sources_of(prompt)]


def test_document_that_quotes_a_mark_keeps_all_its_text() -> None:
    quoting = "As shown in [2] and in Document 7, anvils fall. See <b>[3]</b>."
    first, second = sources_of(f"Documents:\n[1] {A} {quoting}\n[2] {B}\n\nQuestion: q?")
    assert quoting in first.text
    assert second.text == B


def test_faq_in_a_section_is_one_document_and_the_last_question_is_not_in_it() -> None:
    faq = "Question: How long is the return window?\nAnswer: 30 days.\n\nQuestion: Where are you?\nAnswer: In Rome."
    prompt = f"Context:\n{faq}\n\nQuestion: how long?\nAnswer:"
    assert [source.text for source in sources_of(prompt)] == [faq]
    assert question(Exchange(messages=(Message(0, "user", (Part(prompt),)),))) == "how long?"


def test_heading_inside_a_context_does_not_cut_it() -> None:
    page = f"Science\n### Search\n### Information\nWho we are\n{A}\n- one: two\n\nSources:\n{B}"
    prompt = (
        f"Use the following pieces of context to answer the question.\n\n{page}\n\nQuestion: When?\nHelpful Answer:"
    )
    assert [source.text for source in sources_of(prompt)] == [page]


def test_text_of_a_section_outside_its_documents_is_a_source() -> None:
    texts = [source.text for source in sources_of(f"<documents>All of it from 2020.<doc>{A}</doc></documents>")]
    assert texts == ["All of it from 2020.", A]


def test_instructions_after_a_markdown_section_are_not_in_its_document() -> None:
    prompt = f"You are a helpful assistant.\n\n# Context\n{A}\n\n# Rules\n- Be brief.\n- Do not make up facts."
    assert [source.text for source in sources_of(prompt, "system")] == [A]


@given(
    st.lists(
        st.sampled_from(
            ["[1] ", "Context:\n", "<doc>", "</doc>", "\n---\n", "Question: ", "word. ", "\n\n", "```\n", "é "]
        ),
        max_size=40,
    )
)
def test_blocks_are_ordered_and_inside_the_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    position = 0
    for block in take_apart(text):
        assert position <= block.start < block.end <= len(text)
        position = block.end


_LEAFLET, _FAQ = "leaflet.md", "https://x.org/faq"
# id: (prompt, label and URL of A's document, label and URL of B's)
NAMED = {
    "ids of tags": (
        f'<document id="{_LEAFLET}">{A}</document>\n<document id="faq" url="{_FAQ}">{B}</document>\nWhen?',
        (_LEAFLET, None),
        ("faq", _FAQ),
    ),
    "titles of tags": (
        f'<doc id="7" title="Leaflet">{A}</doc><doc title="FAQ" href="{_FAQ}">{B}</doc>\nWhen?',
        ("7", None),
        ("FAQ", _FAQ),
    ),
    "Anthropic's tags": (
        f'<documents><document index="1"><source>{_LEAFLET}</source><document_content>{A}</document_content></document>'
        f'<document index="2"><source>{_FAQ}</source><document_content>{B}</document_content></document></documents>',
        (_LEAFLET, None),
        (_FAQ, _FAQ),
    ),
    "LangChain's documents": (
        f"Context: [Document(metadata={{'source': '{_LEAFLET}', 'page': 3}}, page_content='{A}'), Document(id='x7', "
        f"metadata={{'source': '{_FAQ}', 'loc': {{'lines': 3}}}}, page_content=\"{B}\")]\n\nQuestion: When?",
        (_LEAFLET, None),
        ("x7", _FAQ),
    ),
    "LangChain's older documents": (
        f"Use the following context:\n[Document(page_content='{A}', metadata={{'source': '{_LEAFLET}'}}), "
        f"Document(page_content='{B}', metadata={{'url': '{_FAQ}', 'title': 'FAQ'}})]\nQuestion: When?",
        (_LEAFLET, None),
        ("FAQ", _FAQ),
    ),
    "LangChain's printed documents": (
        f"Use the following pieces of context.\npage_content='{A}' metadata={{'source': '{_LEAFLET}', 'page': 3}}\n\n"
        f"page_content='{B}' metadata={{'source': '{_FAQ}'}}\n\nQuestion: When?",
        (_LEAFLET, None),
        (_FAQ, _FAQ),
    ),
    "LangChain's documents in a tag": (
        f"<context>[Document(page_content='{A}', metadata={{'source': '{_LEAFLET}'}}), "
        f"Document(page_content='{B}', metadata={{'source': '{_FAQ}'}})]</context>\nWhen?",
        (_LEAFLET, None),
        (_FAQ, _FAQ),
    ),
    "LlamaIndex's metadata": (
        f"Context information is below.\n---------------------\npage_label: 1\nfile_path: {_LEAFLET}\n\n{A}\n\n"
        f"page_label: 2\nfile_path: data/faq.md\nurl: {_FAQ}\n\n{B}\n---------------------\n"
        "Given the context information and not prior knowledge, answer the query.\nQuery: When?\nAnswer: ",
        (_LEAFLET, None),
        ("data/faq.md", _FAQ),
    ),
    "Source: headers": (
        f"Context:\n\nSource: {_LEAFLET}\n{A}\n\nSource: {_FAQ}\n{B}\n\nQuestion: When?",
        (_LEAFLET, None),
        (_FAQ, _FAQ),
    ),
    "content over source": (
        f"QUESTION: When?\n=========\nContent: {A}\nSource: {_LEAFLET}\nContent: {B}\nSource: {_FAQ}\n=========\n",
        (_LEAFLET, None),
        (_FAQ, _FAQ),
    ),
    "fields": (
        f"Documents:\n\nID: a-1\nTitle: Leaflet\nContent: {A}\n\nID: a-2\nURL: {_FAQ}\nContent: {B}\n\nQuestion: When?",
        ("a-1", None),
        ("a-2", _FAQ),
    ),
    "numbers": (f"[1] {A}\n[2] {B}\n\nQuestion: When?", ("1", None), ("2", None)),
    "names in brackets": (f"Sources:\n[{_LEAFLET}]: {A}\n[doc-3]: {B}\n\nQ: When?", (_LEAFLET, None), ("doc-3", None)),
    "nothing": (f"<doc>{A}</doc><doc>{B}</doc>\nWhen?", (None, None), (None, None)),
}


@pytest.mark.parametrize(("prompt", "first", "second"), NAMED.values(), ids=NAMED)
def test_the_names_that_a_prompt_gives_come_back(
    prompt: str, first: tuple[str | None, str | None], second: tuple[str | None, str | None]
) -> None:
    found = sources_of(prompt)
    for text, names in ((A, first), (B, second)):
        (source,) = (each for each in found if text in each.text)
        assert (source.label, source.url) == names
        assert prompt[source.offset : source.offset + len(source.text)] == source.text
    assert [source.id for source in found if source.kind == "document"] == ["m0.d1", "m0.d2"]


@pytest.mark.parametrize(
    "prompt",
    [
        f"Context information is below.\n-----\nfile_name: {_LEAFLET}\nurl: {_FAQ}\n\n{A}\n-----\nQuery: When?",
        f"Source: {_LEAFLET}\nurl: {_FAQ}\n\n{A}\n\nQuestion: When?",
    ],
    ids=["LlamaIndex's", "header"],
)
def test_a_single_document_has_the_names_of_its_head(prompt: str) -> None:
    (source,) = (each for each in sources_of(prompt) if A in each.text)
    assert (source.label, source.url) == (_LEAFLET, _FAQ)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (Source("m0.d1", "document", "x"), "m0.d1"),
        (Source("m0.d1", "document", "x", label="leaflet.md"), "leaflet.md"),
        (Source("m0.d1", "document", "x", label="2"), "[2]"),
        (Source("m0.d1", "document", "x", label="2", title="Leaflet"), "Leaflet"),
        (Source("m0.d1", "document", "x", label="faq", title="https://x.org", url="https://x.org"), "faq"),
    ],
)
def test_a_source_is_called_by_what_a_person_knows_it_by(source: Source, name: str) -> None:
    assert source.name == name


HOSTILE = {
    "printed documents": "page_content='a' metadata={'source': 'b'}\n" * 1_500,
    "printed documents without an end": "page_content=' " * 4_000,
    "metadata in braces": "metadata={" * 6_000,
    "nested metadata": "page_content='a' metadata={'a': {" * 2_000,
    "metadata lines": "file_path: a\n" * 4_000,
    "metadata blocks": "file_path: a\n\nText.\n\n" * 3_000,
    "open tags": "<doc>" * 12_000,
    "nested sections": "<context>" * 6_000 + "a" + "</context>" * 6_000,
    "angle brackets": "<" * 64_000,
    "attributes": "<doc " + 'a="b" ' * 10_000 + ">",
    "marks on one line": "[1]" * 20_000,
    "marks on lines": "[a1] x\n" * 9_000,
    "headers": "Context:\n" * 7_000,
    "rules": "Context:\n" + "---\nx\n" * 10_000,
    "instruction headers": "Context:\nabc\n" + "Instructions:\nfoo bar\n" * 3_000,
    "fields": "Content: a\n" * 6_000,
    "examples": "For example:\n" * 5_000,
    "commas": "If " + ", " * 30_000,
    "white space": "Context:" + " " * 64_000 + "x",
    "empty lines": "\n" * 64_000,
    "questions": "?" * 64_000,
    "please": "please " * 9_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_prompt_is_read_in_linear_time(text: str) -> None:
    assert is_linear(sources_of, text[:16_384])
    sources_of(text * 2)


def test_documents_numbered_in_brackets_behind_their_noun_are_apart() -> None:
    """The prompts of "Lost in the Middle"."""
    text = (
        "Write an answer using only the provided search results.\n\n"
        "Document [1](Title: Nobel laureates) The first prize was awarded in 1901.\n"
        "Document [2](Title: Lakes) Lake Baikal is the deepest lake.\n\n"
        "Question: who got the first nobel prize\nAnswer:"
    )
    documents = [block for block in take_apart(text) if block.kind == "document"]
    assert [(block.labels[0], block.title) for block in documents] == [("1", "Nobel laureates"), ("2", "Lakes")]


def test_llama_index_nodes_with_their_files_are_apart() -> None:
    text = (
        "Context information is below.\n---------------------\n"
        "file_path: /data/a.txt\n\nAlpha sells boats in Norway.\n\n"
        "file_path: /data/b.txt\n\nBeta sells cars in Spain.\n---------------------\n"
        "Given the context information and not prior knowledge, answer the query.\n"
        "Query: What does Beta sell?\nAnswer: "
    )
    documents = [text[block.start : block.end] for block in take_apart(text) if block.kind == "document"]
    assert len(documents) == 2
    assert "boats" in documents[0]
    assert "boats" not in documents[1]
    assert "cars" in documents[1]
