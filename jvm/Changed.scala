/** Changed: a row passes if it says something else than the key's last row; others are filtered.
  *
  * Rows are compared in order of arrival. The first row of a key passes, and so does one that comes `keep` or more of event
  * time after the last: by then the last one is forgotten. As in dedup, distance in event time decides, not memory. */
package headrace.steps

import java.util.{ArrayList, Arrays}

import com.fasterxml.jackson.databind.JsonNode

/** One key: the values of its last row, in canonical bytes (null: null), and the greatest time of its rows, micros. */
final class ChangedState(var time: Long, var values: Array[Array[Byte]]) extends State {
  def empty: Boolean = time == Times.NONE
  def held: Long = 0 // the values are remembered, the row has gone on
}

/** `kinds`: of the row's columns, where they are compared. */
final class Changed(spec: JsonNode, kinds: Array[Kind]) extends Step[ChangedState] {
  private val keep = spec.get("keep").asLong
  private val places = Array.tabulate(spec.get("values").size)(spec.get("values").get(_).asInt)

  def ordered: Boolean = true // each row is compared with the one before it

  def fresh(): ChangedState = new ChangedState(Times.NONE, null)

  def step(state: ChangedState, row: Row, before: Long): Int = {
    val values = places.map(at => if (row.args.isNullAt(at)) null else kinds(at).canonical(kinds(at).get(row.args, at)))
    val known = state.time != Times.NONE && row.time - state.time < keep
    val same = known && places.indices.forall(i => Arrays.equals(values(i), state.values(i)))
    state.time = Math.max(state.time, row.time) // NONE is less than every time
    state.values = values
    if (same) Verdict.FILTERED else Verdict.USED
  }

  /** Forgets the key when its time is up. */
  def onTime(state: ChangedState, watermark: Long, clock: Long, passes: Passes, out: ArrayList[Result]): Long = {
    if (state.time != Times.NONE && watermark != Times.NONE && state.time + keep <= watermark * Times.MILLI) {
      state.time = Times.NONE
      state.values = null
    }
    0
  }

  def due(state: ChangedState): Long = if (state.time == Times.NONE) Times.NEVER else Times.upToMs(state.time + keep)

  def write(state: ChangedState, out: BlobWriter): Unit = {
    out.long(state.time)
    state.values.foreach(out.binaryOrNull(_))
  }

  def read(in: BlobReader): ChangedState = new ChangedState(in.long(), Array.fill(places.length)(in.binaryOrNull()))
}
