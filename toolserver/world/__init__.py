"""The simulated world: every upstream's wire format from a seed and a clock, with faults on demand.

A test bench and a demo, never a fallback of the live service. Of the engine it imports the
clock and `core` only, so that what a test computes from the world is independent of the code
under test.
"""
