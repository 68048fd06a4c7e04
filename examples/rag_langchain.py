"""RAG with citations in LangChain: retrieve documents, answer with `[n]`, and list the claims with their evidence.

`python examples/rag_langchain.py` runs offline, with the demo model behind the proxy. Needs
`pip install langchain-openai`.
"""

from __future__ import annotations

import re
from collections import Counter

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

from groundwire.demo.model import MODEL
from groundwire.demo.show import demo_proxy
from groundwire.integrations.langchain import ChatGroundwire

DOCUMENTS = {
    "Travel policy": "Employees may book economy class on flights of less than six hours. Hotel costs are reimbursed "
    "by the company up to 180 euros per night.",
    "Remote work": "Employees may work from abroad for at most 20 days per calendar year. A request must be approved "
    "by the line manager at least two weeks before departure.",
    "Canteen": "Lunch is served from half past eleven. The menu changes every Monday.",
}
QUESTION = "How long may I work from abroad, and what does the company pay for a hotel?"
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Answer from the documents and cite them like [1].\n\n{documents}"), ("human", "{question}")]
)


class WordCounts(Embeddings):
    """Count words, hashed to 512 places: enough for three documents, and offline. Use a real model for yours."""

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        counts = Counter(sum(word.encode()) % 512 for word in re.findall(r"\w{4,}", text.lower()))
        return [float(counts[place]) for place in range(512)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        return [self.embed_query(text) for text in texts]


def main() -> None:
    """Answer the question and print the report."""
    store = InMemoryVectorStore(WordCounts())
    store.add_documents([Document(text, metadata={"title": title}) for title, text in DOCUMENTS.items()])
    found = store.similarity_search(QUESTION, k=2)
    found.sort(key=lambda each: list(DOCUMENTS).index(each.metadata["title"]))
    blocks = [
        f'<document id="{number}" title="{each.metadata["title"]}">{each.page_content}</document>'
        for number, each in enumerate(found, start=1)
    ]
    with demo_proxy() as url:
        model = ChatGroundwire(base_url=url, api_key="none", model=MODEL)
        answer = (PROMPT | model).invoke({"documents": "\n".join(blocks), "question": QUESTION})
    report = answer.response_metadata["grounding"]
    titles = {source["id"]: source.get("title", source["id"]) for source in report["sources"]}
    print(answer.content)
    for claim in report["choices"][0]["claims"]:
        print(f"\n{claim['label']}: {claim['text']}")
        for citation in claim["citations"]:
            print(f"  {titles[citation['source']]}: {citation['text']}")


if __name__ == "__main__":
    main()
