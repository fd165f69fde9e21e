/** The window without end: one result per key for every batch in which it got a row (rule W6).
  *
  * It never closes, so its results are all `early`, have no bounds, and no row is late. Their time is the greatest event
  * time among the rows. */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode

/** One key; `states` is null before the first row. */
final class ForeverState extends State {
  var rows = 0L
  var time = 0L
  var states: Array[AnyRef] = _
  var sent = new Sent
  var changed = false // a row came since the last `onTime`; false between batches

  def empty: Boolean = rows == 0
  def held: Long = rows
}

final class Forever(spec: JsonNode, tally: Tally, results: Array[Kind]) extends Step[ForeverState] {
  private val emit = Policy.of(spec.get("emit"))
  private val layout = new SentLayout(if (spec.get("having").asBoolean) results else null)

  def ordered: Boolean = tally.ordered

  def fresh(): ForeverState = new ForeverState

  def step(state: ForeverState, row: Row, before: Long): Int = {
    if (state.states == null) state.states = tally.empty()
    val reason = tally.refuses(state.states, row)
    if (reason >= 0) return reason
    state.time = if (state.rows == 0) row.time else Math.max(state.time, row.time)
    state.rows += 1
    tally.add(state.states, row)
    state.changed = true
    Verdict.HELD
  }

  /** An early result, if the window got a row. Nothing is ever dropped. */
  def onTime(state: ForeverState, watermark: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Long = {
    val kind = Emission.kindDue(emit, state.sent, state.rows, false, state.changed, clock)
    if (kind != null) {
      val revision = state.sent.revision
      val values = tally.values(state.states)
      val result = new Result(Times.NONE, Times.NONE, kind, revision, values, state.time, s"forever/$revision")
      Emission.send(out, state.sent, result, state.rows, clock, passes)
    }
    state.changed = false
    0
  }

  /** Never: only rows make it speak. */
  def due(state: ForeverState): Long = Times.NEVER

  def write(state: ForeverState, out: BlobWriter): Unit = {
    out.long(state.rows)
    out.long(state.time)
    layout.write(state.sent, out)
    tally.write(state.states, out)
  }

  def read(in: BlobReader): ForeverState = {
    val state = new ForeverState
    state.rows = in.long()
    state.time = in.long()
    state.sent = layout.read(in)
    state.states = tally.read(in)
    state
  }
}
