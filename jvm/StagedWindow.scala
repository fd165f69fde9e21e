/** A window, dedup or changed in its stage: rows go into it one by one, results come out when time moves. */
package headrace

import java.nio.charset.StandardCharsets.UTF_8
import java.util.ArrayList

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, BoundReference, Expression, GenericInternalRow, InterpretedUnsafeProjection, JoinedRow, Predicate, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.unsafe.types.UTF8String

import headrace.steps.{BlobReader, BlobWriter, HeldRow, Passes, Result, Row, SlicesState, State, Times, Verdict}

final class StagedWindow(stage: StageSpec, spec: StepSpec, counts: Array[Long]) extends StageStep(stage, spec, counts) {
  private val layout = new StepLayout(stage, spec)
  private val step = layout.step
  private val slices = Combine.slicesOf(stage, layout).orNull

  // Interpreted: a step is made for every task, and generating code for it would cost more than its results.
  private lazy val keyOut = packing((0 until spec.keys).map(column))
  private lazy val resultOut = packing(spec.output.indices.map(i => BoundReference(i, spec.output(i).kind.spark, nullable = true)))
  private lazy val lateOut = packing((layout.arguments until layout.columns).map(column) :+ BoundReference(layout.columns, TimestampType, nullable = false))
  private val having: BasePredicate = spec.conditions.headOption.map(Predicate.createInterpreted(_)).orNull
  private val passes: Passes = if (having == null) null else result => having.eval(rowOf(result))

  // One key at a time: what follows belongs to the key that is open.
  private val row = new Row
  private val payload = new UnsafeRow(layout.columns)
  private val results = new ArrayList[Result]
  private var keyValues: UnsafeRow = _

  protected def fresh(): State = {
    keyValues = null
    step.fresh()
  }

  protected def read(in: BlobReader): State = {
    keyValues = if (layout.keyKept) HeldRow.unpacked(in.binary(), spec.keys) else null
    step.read(in)
  }

  protected def write(out: BlobWriter): Unit = {
    if (layout.keyKept) out.binary(keyValues.getBytes)
    step.write(state, out)
  }

  protected def ownDue: Long = step.due(state)

  private def column(at: Int): Expression = BoundReference(at, spec.input(at).kind.spark, nullable = true)

  private def packing(columns: Seq[Expression]): UnsafeProjection = InterpretedUnsafeProjection.createProjection(columns)

  /** The batch's rows of the key, under the watermark before it. */
  def take(rows: Iterator[InternalRow], clock: Long): Unit =
    if (step.ordered) takeInOrder(rows, clock)
    else while (rows.hasNext) {
      val chain = rows.next().asInstanceOf[UnsafeRow]
      if (chain.getInt(Stage.PORT) == Stage.TOGETHER) takeTogether(chain)
      else {
        point(chain, clock)
        judged(chain, step.step(state, row, before(chain, clock)), clock)
      }
    }

  /** Rows that were put together before the shuffle. */
  private def takeTogether(chain: UnsafeRow): Unit = {
    val in = new BlobReader(chain.getBinary(Stage.PAYLOAD))
    if (layout.keyKept) {
      val columns = in.binary()
      if (keyValues == null) keyValues = HeldRow.unpacked(columns, spec.keys)
    }
    val rows = chain.getLong(Stage.OFF)
    slices.merge(state.asInstanceOf[SlicesState], chain.getLong(Stage.TIME), rows, slices.tally.read(in), before(chain, 0))
    counts(Counters.IN) += rows
  }

  private def takeInOrder(rows: Iterator[InternalRow], clock: Long): Unit = {
    val sorted = new ArrayList[InOrder]
    while (rows.hasNext) sorted.add(new InOrder(rows.next().asInstanceOf[UnsafeRow].copy()))
    if (sorted.size > 1) sorted.sort(null)
    var late: ArrayList[UnsafeRow] = null
    sorted.forEach { entry =>
      point(entry.chain, clock)
      val verdict = step.step(state, row, before(entry.chain, clock))
      if (verdict == Verdict.LATE) {
        if (late == null) late = new ArrayList[UnsafeRow]
        late.add(entry.chain)
      } else judged(entry.chain, verdict, clock)
    }
    if (late != null) tryAgain(late, clock)
  }

  /** Late rows once more, last first; what is still late is set aside with the watermark it met (rule W4). */
  private def tryAgain(late: ArrayList[UnsafeRow], clock: Long): Unit = {
    val verdicts = new Array[Int](late.size)
    var i = late.size - 1
    while (i >= 0) {
      point(late.get(i), clock)
      verdicts(i) = step.step(state, row, before(late.get(i), clock))
      i -= 1
    }
    i = 0
    while (i < late.size) {
      judged(late.get(i), verdicts(i), clock)
      i += 1
    }
  }

  /** Makes `row` the step's view of this chain row, which stays where it lies. */
  private def point(chain: UnsafeRow, clock: Long): Unit = {
    place(chain, row)
    if (stage.byClock) row.time = clock * Times.MILLI
    Stage.pointPayload(chain, payload)
    row.args = payload
    if (layout.keyKept && keyValues == null) keyValues = keyOut(payload).copy()
  }

  /** What becomes of a row: counted, and sent on where somebody waits for it. */
  private def judged(chain: UnsafeRow, verdict: Int, clock: Long): Unit = {
    counts(Counters.IN) += 1
    verdict match {
      case Verdict.HELD => () // counted in the state itself, when the key is closed
      case Verdict.USED =>
        counts(Counters.USED) += 1
        rowsOut.add(chain)
      case Verdict.LATE =>
        counts(Counters.LATE) += 1
        if (spec.emits(Stage.LATE_ROWS)) {
          Stage.pointPayload(chain, payload)
          val met = Math.max(before(chain, clock), 0) * Times.MILLI
          val told = lateOut(new JoinedRow(payload, new GenericInternalRow(Array[Any](met))))
          rowsOut.add(changed(chain, spec.ordinal, Stage.LATE_ROWS, chain.getBinary(Stage.KEY), told.copy().getBytes))
        }
      case Verdict.DUPLICATE =>
        counts(Counters.DUPLICATES) += 1
        if (spec.emits(Stage.DUPLICATES))
          rowsOut.add(changed(chain, spec.ordinal, Stage.DUPLICATES, chain.getBinary(Stage.KEY), chain.getBinary(Stage.PAYLOAD)))
      case Verdict.FILTERED => counts(Counters.FILTERED) += 1
      case dead => bury(chain, dead, 0, payload)
    }
  }

  protected def onTime(watermark: Long, clock: Long): Long = {
    results.clear()
    val used = step.onTime(state, watermark, clock, passes, results)
    var i = 0
    while (i < results.size) {
      if (layout.ranked) sendRanks(results.get(i)) else send(results.get(i), results.get(i).cause, rowOf(results.get(i)))
      i += 1
    }
    used
  }

  private def send(result: Result, cause: String, row: InternalRow): Unit = {
    val id = Ids.stable(stage.app, stage.version, spec.name, new String(key, UTF_8), cause)
    val told = resultOut(row).copy().getBytes // a copy: the projection writes the next row into the same bytes
    // No watermark before: the hold keeps results from being late for the next step, whatever W(k-1) was.
    rowsOut.add(new GenericInternalRow(Array[Any](
      spec.ordinal, Stage.ROWS, key, result.time, Times.NONE, Stage.DERIVED + spec.ordinal, 0, result.revision, id, told)))
  }

  /** Top rows: one for each rank, its columns after it. */
  private def sendRanks(result: Result): Unit = {
    val first = spec.keys + StagedWindow.NAMED + 1
    val rows = result.values(0).asInstanceOf[ArrayData]
    (0 until rows.numElements()).foreach { i =>
      val row = HeldRow.unpacked(rows.getBinary(i), spec.output.length - first)
      val told = named(result)
      told(first - 1) = i + 1L
      (first until told.length).foreach(at => told(at) = row.get(at - first, spec.output(at).kind.spark))
      send(result, s"${result.cause}/${i + 1}", new GenericInternalRow(told))
    }
  }

  private def rowOf(result: Result): InternalRow = {
    val told = named(result)
    System.arraycopy(result.values, 0, told, spec.keys + StagedWindow.NAMED, result.values.length)
    new GenericInternalRow(told)
  }

  /** The columns of rule F2; the values are left open. */
  private def named(result: Result): Array[Any] = {
    val told = new Array[Any](spec.output.length)
    var i = 0
    while (i < spec.keys) {
      told(i) = if (layout.keyKept) layout.keyKinds(i).get(keyValues, i) else UTF8String.fromBytes(key)
      i += 1
    }
    val bounded = result.start != Times.NONE
    told(i) = if (bounded) result.start else null
    told(i + 1) = if (bounded) result.end else null
    told(i + 2) = UTF8String.fromString(result.kind)
    told(i + 3) = result.revision
    told
  }
}

object StagedWindow {
  final val NAMED = 4 // columns between the key's and the values: start, end, kind, revision
}
