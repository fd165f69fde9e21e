"""Pure state machines, one file each: `Spec`, `State`, `step`, `on_time`, `due`; no input or output, no clock.

A kernel (jvm/) of the same name mirrors each file method by method. For one key and one batch the caller

1. calls `step(spec, state, row, before)` for its rows in order R2, `before` being the watermark W(k-1) in ms; then once
   more for those judged late, last first: a session that a younger row of the batch opened may take them in, so that a
   batch never loses a row that the same rows one by one would have kept (rule R4),
2. calls `on_time(spec, state, watermark, clock, passes)` once, with W(k) and the batch's clock in ms,
3. for keys without rows in the batch, calls `on_time` when `due(spec, state)` <= W(k).

`step` gives a verdict on the row (see row.py); `on_time` gives results, and how many held rows were used up.
"""
