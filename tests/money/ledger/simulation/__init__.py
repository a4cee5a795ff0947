"""Services that share a ledger, simulated: real classes on a clock, a network and disks that a seed decides about.

`python -m tests.money.ledger.simulation --seeds 10000` looks for a history in which somebody is charged wrongly.
"""
