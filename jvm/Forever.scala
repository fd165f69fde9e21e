/** The window without end: one result per key for every batch in which it got a row (rule W6).
  *
  * It never closes, so its results are all `early`, have no bounds, and no row is late. Their time is the greatest event
  * time among the rows. With a time to live a key that was silent for so long is forgotten, and begins anew with its next
  * row; then a row is late that would be forgotten at once. */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode

/** One key; `states` is null before the first row. `first`: of the row that it began with, which tells its results from
  * those of the key before it was forgotten. */
final class ForeverState extends State {
  var rows = 0L
  var first = 0L
  var time = 0L
  var states: Array[AnyRef] = _
  var sent = new Sent
  var changed = false // a row came since the last `onTime`; false between batches

  def empty: Boolean = rows == 0
  def held: Long = rows
}

/** `ttl` in micros; 0: for ever. */
final class Forever(spec: JsonNode, tally: Tally, results: Array[Kind]) extends Step[ForeverState] {
  private val ttl = spec.get("ttl").asLong
  private val emit = Policy.of(spec.get("emit"))
  private val layout = new SentLayout(if (spec.get("having").asBoolean) results else null)

  /** With a time to live the first row says which others are late. */
  def ordered: Boolean = ttl > 0 || tally.ordered

  def fresh(): ForeverState = new ForeverState

  def step(state: ForeverState, row: Row, before: Long): Int = {
    if (ttl > 0 && state.empty && before != Times.NONE && row.time + ttl <= before * Times.MILLI) return Verdict.LATE
    if (state.states == null) state.states = tally.empty()
    val reason = tally.refuses(state.states, row)
    if (reason >= 0) return reason
    if (state.empty) {
      state.first = row.time
      state.time = row.time
    }
    state.time = Math.max(state.time, row.time)
    state.rows += 1
    tally.add(state.states, row)
    state.changed = true
    Verdict.HELD
  }

  /** An early result, if the window got a row; then a key that was silent for too long is forgotten. */
  def onTime(state: ForeverState, watermark: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Long = {
    val kind = Emission.kindDue(emit, state.sent, state.rows, false, state.changed, clock)
    if (kind != null) {
      val revision = state.sent.revision
      val values = tally.values(state.states)
      val life = if (ttl > 0) s"forever/${state.first}" else "forever"
      val result = new Result(Times.NONE, Times.NONE, kind, revision, values, state.time, s"$life/$revision")
      Emission.send(out, state.sent, result, state.rows, clock, passes)
    }
    state.changed = false
    if (ttl == 0 || state.empty || watermark == Times.NONE || state.time + ttl > watermark * Times.MILLI) return 0
    val used = state.rows
    state.rows = 0
    state.states = null
    state.sent = new Sent
    used
  }

  /** When it is forgotten; only rows make it speak. */
  def due(state: ForeverState): Long = if (ttl == 0 || state.empty) Times.NEVER else Times.upToMs(state.time + ttl)

  def write(state: ForeverState, out: BlobWriter): Unit = {
    out.long(state.rows)
    out.long(state.time)
    if (ttl > 0) out.long(state.first)
    layout.write(state.sent, out)
    tally.write(state.states, out)
  }

  def read(in: BlobReader): ForeverState = {
    val state = new ForeverState
    state.rows = in.long()
    state.time = in.long()
    if (ttl > 0) state.first = in.long()
    state.sent = layout.read(in)
    state.states = tally.read(in)
    state
  }
}
