"""The bank: Headrace's flagship application, written only with the public API."""
