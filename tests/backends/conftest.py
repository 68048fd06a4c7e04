"""Tiny models as folders, built once."""

from pathlib import Path

import pytest

from tests.backends.tiny_models import bert_folder, modernbert_folder


@pytest.fixture(scope="session")
def token_classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return modernbert_folder(tmp_path_factory.mktemp("tokens"))


@pytest.fixture(scope="session")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert_folder(tmp_path_factory.mktemp("nli"))
