"""How large the house is and how it is cut: figures that tell whether a reader can walk through it."""
