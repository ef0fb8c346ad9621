"""Pages show what studies found: tables and figures in them are made from the studies' JSON."""
