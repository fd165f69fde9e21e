/** Enrich with a table's current value: what the table says when the row is processed (rules J4, J6).
  *
  * Rows and versions of a batch are given in one order R2: a row sees the versions before it. A row without value, or
  * whose key is null, comes out with none. Every row and version is used when it comes. */
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
  private val columns = spec.inputs(Current.TABLE).length
  private val nothing = HeldRow.nothing(columns)

  def fresh(): CurrentState = new CurrentState(new Latest(null))

  def step(state: CurrentState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    if (input == Current.TABLE) state.latest.take(row) else out.add(enriched(row, state.latest.values))
    Verdict.USED
  }

  override def unkeyed(row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    if (input == Current.STREAM) out.add(enriched(row, null))
    Verdict.USED
  }

  /** Forgets a deletion whose time is up. */
  def onTime(state: CurrentState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    state.latest.forget(keep, watermark)
    0
  }

  def due(state: CurrentState): Long = state.latest.due(keep)

  def write(state: CurrentState, out: BlobWriter): Unit = state.latest.version.write(out)

  def read(in: BlobReader): CurrentState = new CurrentState(new Latest(HeldRow.read(in, columns)))

  private def enriched(row: Row, values: UnsafeRow): Given =
    new Given(0, row.time, new JoinedRow(row.args, if (values == null) nothing else values), row, "")
}

object Current {
  final val STREAM = 0
  final val TABLE = 1
}
