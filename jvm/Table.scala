/** A table: versions of a key become its net changes, the input of views and of aggregates over tables (J5 to J7).
  *
  * Every version is used when it comes; the table remembers, it does not hold. With a time to live a row is deleted at
  * version time + ttl, if no version has renewed it when W reaches that; one that comes late may still bring it back.
  * The end of input is no time that passes: rows are let go then, and no deletion is told. */
package headrace.steps

import java.util.ArrayList

/** One key. Between batches `told.values` are `latest.values`, kept once. */
final class TableState(val latest: Latest, val told: Told) extends State {
  def empty: Boolean = latest.version == null
  def held: Long = 0
}

final class Table(spec: RowStepSpec) extends RowStep[TableState] {
  private val keep = spec.json.get("keep").asLong // how long a deletion is remembered, micros of event time
  private val ttl = spec.json.get("ttl").asLong // how long a row lives that no version renews, the same; 0: for ever
  private val columns = spec.inputs(0).length

  def fresh(): TableState = new TableState(new Latest(null), new Told)

  def step(state: TableState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    state.latest.take(row)
    Verdict.USED
  }

  /** The batch's net change, with the end of a row whose time is up; then forgets a deletion whose time is up. */
  def onTime(state: TableState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    val latest = state.latest
    if (latest.version != null) {
      val version = latest.version
      val outlived = version.args != null && Version.outlived(version.time, ttl, watermark)
      if (outlived && watermark != Times.END) {
        state.told.tell(null, version.time + ttl, out)
        latest.version = version.gone
      } else {
        state.told.tell(bytes(latest), version.time, out)
        if (outlived) latest.version = null
      }
    }
    if (watermark != Times.NONE && forgets(state) <= watermark) latest.version = null
    0
  }

  def due(state: TableState): Long =
    if (state.latest.values == null || ttl == 0) forgets(state) else Times.upToMs(state.latest.version.time + ttl)

  /** The watermark, in ms, at which a deletion is forgotten. What was told of it counts: versions grow over a row's
    * return, and that of a row whose time was up is later than its last version. */
  private def forgets(state: TableState): Long = {
    val version = state.latest.version
    if (version == null || version.args != null) Times.NEVER
    else Times.upToMs(Math.max(version.time, state.told.version) + keep)
  }

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
