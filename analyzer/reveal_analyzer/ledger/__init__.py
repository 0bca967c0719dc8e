"""The lost-time ledger of a node: how much of the time that each subject desired it lost, and why.

``accounts`` reads the ``ledger.*`` channels of one second, ``totals`` adds seconds up, and
``lost_time`` says who lost how much to what and to whom.  Names and units are those of
``reveal_contract.ledger``.
"""
