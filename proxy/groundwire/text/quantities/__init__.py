"""Numbers: how to parse, bind, derive and compare them."""
