"""Hypothesis strategies of channels and channel tables."""

from __future__ import annotations

from hypothesis import strategies as st

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane

_names = st.from_regex(r"[a-z0-9_.]{1,40}", fullmatch=True)
_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
channels = st.builds(
    Channel,
    _names,
    _text,
    st.sampled_from(Kind),
    st.floats(min_value=1e-12, max_value=1e12),
    st.sampled_from(Lane),
)
tables = st.builds(
    ChannelTable,
    st.lists(channels, max_size=5).map(tuple),
    st.lists(channels, max_size=5).map(tuple),
)
