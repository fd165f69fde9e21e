"""The use cases as functions: what the command line, the console and the labs call."""
