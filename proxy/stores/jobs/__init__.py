"""Work that is done later and survives the process (DQ1, DQ2)."""
