/** A row step in its stage: rows of several inputs go into it in order, rows come out at once or when time moves.
  *
  * A row's port is the number of its input, a null payload is a tombstone, a null key makes it a row without key. */
package headrace

import java.nio.charset.StandardCharsets.UTF_8
import java.util.{ArrayList, Comparator}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import headrace.steps.{BlobReader, BlobWriter, Chunks, Given, Order, Row, RowStep, RowStepSpec, State, Times, Verdict}

final class StagedRows(stage: StageSpec, spec: StepSpec, counts: Array[Long], chunks: Chunks) extends StageStep(stage, spec, counts) {
  private val step: RowStep[State] = {
    def types(fields: Array[Field]) = fields.map(_.kind.spark)
    val ports = spec.ports.view.mapValues(types).toMap
    RowStep.of(new RowStepSpec(StageSpec.json.readTree(spec.spec), spec.inputs.map(types), ports, spec.conditions, stage.topics))
  }
  step.chunks = chunks

  private val payloads = spec.inputs.map(fields => new UnsafeRow(fields.length))
  private val packing = spec.ports.map { case (port, fields) => port -> new Packing(fields.map(_.kind.spark)) }
  private val row = new Row
  private val made = new ArrayList[Given]
  private val inTurn: Comparator[InOrder] = (one, other) =>
    if (one.time != other.time) java.lang.Long.compare(one.time, other.time)
    else {
      val turns = Integer.compare(step.turn(one.chain.getInt(Stage.PORT)), step.turn(other.chain.getInt(Stage.PORT)))
      if (turns != 0) turns else one.compareTo(other)
    }
  private var met = Times.NONE // W(k-1), if the key has rows in this batch

  protected def fresh(): State = step.fresh()
  protected def read(in: BlobReader): State = step.read(in)
  protected def write(out: BlobWriter): Unit = step.write(state, out)
  protected def ownDue: Long = step.due(state)

  def take(rows: Iterator[InternalRow], clock: Long): Unit = {
    val sorted = new ArrayList[InOrder]
    while (rows.hasNext) sorted.add(new InOrder(rows.next().asInstanceOf[UnsafeRow].copy()))
    if (sorted.size > 1) sorted.sort(inTurn)
    met = sorted.get(0).chain.getLong(Stage.BEFORE)
    sorted.forEach(entry => take(entry.chain, clock))
  }

  private def take(chain: UnsafeRow, clock: Long): Unit = {
    val input = chain.getInt(Stage.PORT)
    place(chain, row)
    row.args = if (chain.isNullAt(Stage.PAYLOAD)) null else payloads(input)
    if (row.args != null) Stage.pointPayload(chain, payloads(input))
    val under = before(chain, clock)
    val verdict =
      if (key == null) step.unkeyed(row, input, under, made)
      else step.step(state, row, input, under, made)
    counts(Counters.IN) += 1
    verdict match {
      case Verdict.HELD => () // counted in the state itself, when the key is closed
      case Verdict.USED => counts(Counters.USED) += 1
      case Verdict.LATE =>
        counts(Counters.LATE) += 1
        if (spec.emits(Stage.LATE_ROWS)) {
          val late = step.late(row, input, Math.max(under, 0) * Times.MILLI)
          if (late != null) rowsOut.add(changed(chain, spec.ordinal, Stage.LATE_ROWS, key, packing(Stage.LATE_ROWS).pack(late)))
        }
      case Verdict.DUPLICATE =>
        counts(Counters.DUPLICATES) += 1
        if (spec.emits(Stage.DUPLICATES))
          rowsOut.add(changed(chain, spec.ordinal, Stage.DUPLICATES, key, chain.getBinary(Stage.PAYLOAD)))
      case dead => bury(chain, dead, input, payloads(input))
    }
    send()
  }

  protected def onTime(watermark: Long, clock: Long): Long = {
    val used = step.onTime(state, watermark, clock, made)
    send()
    met = Times.NONE
    used
  }

  /** What the step has just given. */
  private def send(): Unit = {
    var i = 0
    while (i < made.size) {
      val one = made.get(i)
      // A letter that counts no row: the row itself has been taken, or passed by.
      if (one.port == Stage.REFUSED) rowsOut.add(letter("refused", 0, one.origin, met, one.values))
      else if (one.port == Stage.ROWS || spec.emits(one.port)) rowsOut.add(sent(one))
      i += 1
    }
    made.clear()
  }

  private def sent(one: Given): InternalRow = {
    val payload = if (one.values == null) null else packing(one.port).pack(one.values)
    val own = if (one.key == null) key else one.key
    if (one.origin != null) chainRow(spec.ordinal, one.port, own, one.time, met, one.origin, payload)
    else {
      val text = if (own == null) "" else new String(own, UTF_8)
      val id = Ids.stable(stage.app, stage.version, spec.name, text, one.causeText)
      val place = new Order(one.time, Stage.DERIVED + spec.ordinal, 0, 0, id)
      chainRow(spec.ordinal, one.port, own, one.time, met, place, payload)
    }
  }
}
