"""Close the books: statements, months and their proofs, what was removed or reissued, and cases that are still open."""
