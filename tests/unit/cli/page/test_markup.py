"""The one door through which texts become part of a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_cli.page.markup import MOST_CHARACTERS, Markup, element, inert, name, raw_text
from support.html_pages import ParsedPage


@given(st.text(max_size=600))
def test_any_text_stays_text_in_elements_and_attributes(text: str) -> None:
    page = ParsedPage(element("p", name(text), title=text))
    assert [each.tag for each in page.elements] == ["p", "bdi"]
    assert page.elements[1].text == page.elements[0].attributes["title"] == inert(text)


@pytest.mark.parametrize(
    "text", ["\x1b[31mred", "a\u202eb", "a\u2066b", "line\nline", "\x00", "\ud800"]
)
def test_control_and_direction_characters_are_displayed_as_escapes(text: str) -> None:
    clean = inert(text)
    assert clean.isprintable()
    assert "\\" in clean


def test_a_long_name_is_shortened_and_its_length_stated() -> None:
    assert inert("n" * 4096) == f"{'n' * MOST_CHARACTERS}… (4096 characters)"
    assert inert("n" * MOST_CHARACTERS) == "n" * MOST_CHARACTERS


def test_attributes_are_named_as_in_html_and_left_out_when_unset() -> None:
    result = element("input", type="range", class_="a", aria_label="b", hidden=True, value=None)
    assert result == '<input type="range" class="a" aria-label="b" hidden>'
    assert element("p", None, ["a", Markup("<b></b>")]) == "<p>a<b></b></p>"


@pytest.mark.parametrize("text", ["</script>", "</SCRIPT ", "<!--", "a\r\nb"])
def test_a_raw_text_cannot_end_its_element_or_lose_its_digest(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be in a script"):
        raw_text("script", text)
