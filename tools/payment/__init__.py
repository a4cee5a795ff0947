"""Tools around credits: buying them, and seeing what became of them."""
