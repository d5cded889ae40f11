"""The snippets of the pages in docs/guides that take longest run as they stand."""

import pytest

from tests.docs.pages import name, pages
from tests.helpers.snippets import run_page


@pytest.mark.parametrize("page", pages("long guides"), ids=name)
def test_the_snippets_of_a_page_run_as_they_stand(page, tmp_path):
    run_page(page, tmp_path)
