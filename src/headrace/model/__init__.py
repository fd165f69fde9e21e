"""What a person declares: events, apps, streams, tables, windows, aggregates, sinks."""
