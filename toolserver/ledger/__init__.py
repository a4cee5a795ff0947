"""Credits: who has how many, what a call costs, and proof of it."""
