"""The commands that ask a server: each family is a module with `define`, which is imported once its command is given."""
