/** Enrich with a table's current value: what the table says when the row is processed (rules J4, J6, J7).
  *
  * Rows and versions of a batch are given in one order R2: a row sees the versions before it. A row without value, or
  * whose key is null, comes out with none. Every row and version is used when it comes. With a time to live a row finds
  * no version that the watermark it meets, W(k-1), has outlived. */
package headrace.steps

import java.util.ArrayList

import org.apache.spark.sql.catalyst.expressions.{JoinedRow, UnsafeRow}

/** One key. */
final class CurrentState(val latest: Latest) extends State {
  def empty: Boolean = latest.version == null
  def held: Long = 0
}

final class Current(spec: RowStepSpec) extends RowStep[CurrentState] {
  private val keep = spec.json.get("keep").asLong // how long a deletion is remembered, micros of event time
  private val ttl = spec.json.get("ttl").asLong // how long a row lives that no version renews, the same; 0: for ever
  private val columns = spec.inputs(Current.TABLE).length
  private val nothing = HeldRow.nothing(columns)

  def fresh(): CurrentState = new CurrentState(new Latest(null))

  def step(state: CurrentState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    if (input == Current.STREAM) out.add(enriched(row, state.latest.values)) else learn(state, row, before)
    Verdict.USED
  }

  /** Takes a version of the table, unless it comes when its time is up. */
  private def learn(state: CurrentState, row: Row, before: Long): Unit =
    if (row.args == null || !Version.outlived(row.time, ttl, before)) state.latest.take(row)

  override def unkeyed(row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    if (input == Current.STREAM) out.add(enriched(row, null))
    Verdict.USED
  }

  /** Forgets a deletion, or a row, whose time is up. */
  def onTime(state: CurrentState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    state.latest.forget(keep, ttl, watermark)
    0
  }

  def due(state: CurrentState): Long = state.latest.due(keep, ttl)

  def write(state: CurrentState, out: BlobWriter): Unit = state.latest.version.write(out)

  def read(in: BlobReader): CurrentState = new CurrentState(new Latest(HeldRow.read(in, columns)))

  private def enriched(row: Row, values: UnsafeRow): Given =
    new Given(0, row.time, new JoinedRow(row.args, if (values == null) nothing else values), row, "")
}

object Current {
  final val STREAM = 0
  final val TABLE = 1
}
