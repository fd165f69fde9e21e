"""The ground floor: errors, durations, clock, ids, money, settings. Imports nothing of ours."""
