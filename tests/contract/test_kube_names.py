import re

from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.kube.names import child_name, label_value, report_name
from support.property_tests import examples

LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z")
SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\Z")
PART = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(PART, min_size=1, max_size=11).map(".".join).filter(lambda name: len(name) < 250)


@given(st.text(min_size=1))
@examples(200)
def test_any_text_becomes_a_label(text: str) -> None:
    assert LABEL.match(label_value(text))


@given(NAMES, NAMES)
@examples(200)
def test_a_report_has_a_name_that_the_api_takes(profile: str, node: str) -> None:
    name = report_name(profile, node, "cpu-0123456789")
    assert SUBDOMAIN.match(name)
    assert len(name) <= 253
    assert name.endswith("-cpu-0123456789")


def test_owned_objects_of_similarly_named_profiles_differ() -> None:
    assert child_name("collector", "gpu-pool") == "reveal-collector-gpu-pool"
    assert child_name("collector", "gpu.pool") != child_name("collector", "gpu-pool")
    assert "." not in child_name("collector", "gpu.pool")
    long = "p" * 60
    assert len(child_name("collector", long)) <= 63
    assert child_name("collector", long + "a") != child_name("collector", long + "b")
