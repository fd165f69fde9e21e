/** Aggregates per group over a changing table: a retraction subtracts what the row had added (rule J5).
  *
  * A group that loses its last row is removed, not kept with count 0. A row with a float that is no number is a dead
  * letter when it enters (rule B3), and takes nothing with it when it leaves. A total that its type cannot hold is null
  * while that lasts; the row is not refused, since its retraction could not know. */
package headrace.steps

import java.util.ArrayList

import org.apache.spark.sql.catalyst.expressions.{BoundReference, GenericInternalRow, InterpretedUnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType

/** One group; `states` is null before the first row. `cause`: the greatest version of this batch's deltas, NO_VERSION
  * between batches; `delta`: one of them, for the columns of the group. */
final class ChangelogState(var rows: Long, var states: Array[AnyRef], val told: Told) extends State {
  var cause = Change.NO_VERSION
  var delta: UnsafeRow = _

  def empty: Boolean = rows == 0 && told.empty
  def held: Long = 0 // rows belong to the table; a group only counts them
}

/** A delta's columns: whether the row enters its group or leaves it, its version, the group's, the arguments. */
final class Changelog(spec: RowStepSpec) extends RowStep[ChangelogState] {
  import Changelog._

  private val keep = spec.json.get("keep").asLong // how long the version of a removed group is remembered, micros of event time
  private val aggregates = spec.json.get("aggregates")
  private val delta = spec.inputs(0)
  private val takes = (0 until aggregates.size).map(i => !aggregates.get(i).get("of").asText.isEmpty)
  private val group = GROUP until delta.length - takes.count(identity)
  private val places = takes.indices.map(i => if (takes(i)) group.end + takes.take(i).count(identity) else -1).toArray
  private val tally =
    new Tally(aggregates, places, delta.indices.map(i => if (i < group.end) null else Kind.of(delta(i))).toArray, Retractable.of)

  private val told: Array[DataType] = group.map(delta(_)).toArray ++
    places.indices.map(i => Retractable.typeOf(aggregates.get(i), if (places(i) < 0) null else delta(places(i))))
  private val packing =
    InterpretedUnsafeProjection.createProjection(told.indices.map(i => BoundReference(i, told(i), nullable = true)))

  def fresh(): ChangelogState = new ChangelogState(0, null, new Told)

  def step(state: ChangelogState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int = {
    val enters = row.args.getBoolean(ENTERS)
    if (tally.noNumber(row.args)) return if (enters) Verdict.NAN else Verdict.USED
    if (state.states == null) state.states = tally.empty()
    if (enters) tally.add(state.states, row) else tally.remove(state.states, row.args)
    state.rows += (if (enters) 1 else -1)
    state.cause = Math.max(state.cause, row.args.getLong(VERSION))
    if (state.delta == null) state.delta = row.args.asInstanceOf[UnsafeRow].copy()
    Verdict.USED
  }

  /** The batch's net change; then forgets a removed group whose time is up. */
  def onTime(state: ChangelogState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    if (state.cause != Change.NO_VERSION) {
      state.told.tell(values(state), state.cause, out)
      state.cause = Change.NO_VERSION
      state.delta = null
    }
    state.told.forget(keep, watermark)
    0
  }

  def due(state: ChangelogState): Long = state.told.due(keep)

  private def values(state: ChangelogState): Array[Byte] =
    if (state.rows == 0) {
      state.states = null
      null
    } else {
      val key = group.map(i => if (state.delta.isNullAt(i)) null else state.delta.get(i, delta(i)))
      packing(new GenericInternalRow(key.toArray[Any] ++ tally.values(state.states))).copy().getBytes
    }

  def write(state: ChangelogState, out: BlobWriter): Unit = {
    out.long(state.rows)
    if (state.rows != 0) tally.write(state.states, out)
    state.told.write(out)
  }

  def read(in: BlobReader): ChangelogState = {
    val rows = in.long()
    new ChangelogState(rows, if (rows == 0) null else tally.read(in), Told.read(in))
  }
}

object Changelog {
  final val ENTERS = 0
  final val VERSION = 1
  final val GROUP = 2
}
