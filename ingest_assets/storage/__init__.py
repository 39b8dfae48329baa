"""How bytes rest: one path builder, one door for writes, tables that describe themselves."""
