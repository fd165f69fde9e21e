/** Dedup: the first row to arrive for an id passes, others less than `within` away from it in event time are
  * duplicates (rule D1).
  *
  * The key of this step is the id. An id is remembered until W >= time of its row + within. Distance in event time, not
  * memory, decides: how fast the watermark moves changes nothing for rows that are not behind it. A row that is `within`
  * or more behind it cannot be told from one that was there before, and is taken for one: a repeat never passes. */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode

/** One id: the time of the row that passed, micros. */
final class DedupState extends State {
  var seen: Long = Times.NONE

  def empty: Boolean = seen == Times.NONE
  def held: Long = 0 // the id is remembered, the row has gone on
}

/** Time in micros. */
final class Dedup(spec: JsonNode) extends Step[DedupState] {
  private val within = spec.get("within").asLong

  def ordered: Boolean = true // the first one passes

  def fresh(): DedupState = new DedupState

  def step(state: DedupState, row: Row, before: Long): Int = {
    if (before != Times.NONE && row.time + within <= before * Times.MILLI) return Verdict.DUPLICATE
    if (state.seen != Times.NONE && Math.abs(row.time - state.seen) < within) return Verdict.DUPLICATE
    if (state.seen == Times.NONE || row.time > state.seen) state.seen = row.time
    Verdict.USED
  }

  /** Forgets the id when its time is up. */
  def onTime(state: DedupState, watermark: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Long = {
    if (state.seen != Times.NONE && watermark != Times.NONE && state.seen + within <= watermark * Times.MILLI)
      state.seen = Times.NONE
    0
  }

  def due(state: DedupState): Long = if (state.seen == Times.NONE) Times.NEVER else Times.upToMs(state.seen + within)

  def write(state: DedupState, out: BlobWriter): Unit = out.long(state.seen)

  def read(in: BlobReader): DedupState = {
    val state = new DedupState
    state.seen = in.long()
    state
  }
}
