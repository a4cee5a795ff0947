"""Models and pure maths that several tools use."""
