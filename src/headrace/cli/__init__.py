"""The command line: verbs without ceremony; stdout is data, stderr is talk."""
