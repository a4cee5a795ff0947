"""Hold the models and the pure maths that several tools share."""
