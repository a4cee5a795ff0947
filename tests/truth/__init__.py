"""The oracle of truth: what an answer asserts is compared with what is true in the simulated world."""
