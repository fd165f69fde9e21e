/** A table: versions of a key become its net changes, the input of views and of aggregates over tables (rules J5, J6).
  *
  * Every version is used when it comes; the table remembers, it does not hold. */
package headrace.steps

import java.util.ArrayList

/** One key. Between batches `told.values` are `latest.values`, kept once. */
final class TableState(val latest: Latest, val told: Told) extends State {
  def empty: Boolean = latest.version == null
  def held: Long = 0
}

final class Table(spec: RowStepSpec) extends RowStep[TableState] {
  private val keep = spec.json.get("keep").asLong // how long a deletion is remembered, micros of event time
  private val columns = spec.inputs(0).length

  def fresh(): TableState = new TableState(new Latest(null), new Told)

  def step(state: TableState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    state.latest.take(row)
    Verdict.USED
  }

  /** The batch's net change; then forgets a deletion whose time is up. */
  def onTime(state: TableState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    val latest = state.latest
    if (latest.version != null) state.told.tell(bytes(latest), latest.version.time, out)
    latest.forget(keep, watermark)
    0
  }

  def due(state: TableState): Long = state.latest.due(keep)

  def write(state: TableState, out: BlobWriter): Unit = {
    state.latest.version.write(out)
    out.long(state.told.version)
  }

  def read(in: BlobReader): TableState = {
    val latest = new Latest(HeldRow.read(in, columns))
    new TableState(latest, new Told(bytes(latest), in.long()))
  }

  private def bytes(latest: Latest): Array[Byte] = if (latest.values == null) null else latest.values.getBytes
}
