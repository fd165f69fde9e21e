/** Enrich as of the row's time: the version with the greatest version time that is not after it (rules J4, J7).
  *
  * A row waits until W > its time, when versions up to it are known; without `wait` it takes what is there. A version
  * that comes after the row was answered does not revise it, but answers rows that come later still.
  * Versions are kept as far back as `history`: the oldest row that can still be answered is W - history old, so that of
  * the versions up to there only the newest is kept. An older row is late. With a time to live a version answers rows
  * up to its time + ttl, without that moment, and after that none does: it is as if the row had been deleted then. */
package headrace.steps

import java.util.ArrayList

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, JoinedRow}
import org.apache.spark.unsafe.types.UTF8String

/** One key: rows that wait, and versions. Versions are remembered, not held: they are used when they enter the history. */
final class AsOfState(val rows: Entries, val versions: Versions) extends State {
  def empty: Boolean = rows.isEmpty && versions.isEmpty
  def held: Long = rows.size
}

final class AsOf(spec: RowStepSpec) extends RowStep[AsOfState] {
  private val history = spec.json.get("history").asLong // micros
  private val waits = spec.json.get("wait").asBoolean
  private val ttl = spec.json.get("ttl").asLong // how long a version answers that no other follows, micros; 0: for ever
  private val columns = spec.inputs.map(_.length)
  private val nothing = HeldRow.nothing(columns(AsOf.TABLE))

  def fresh(): AsOfState =
    new AsOfState(new Entries(columns(AsOf.STREAM)), Versions.empty(columns(AsOf.TABLE), ttl, apart))

  /** Holds the row, or answers it at once; late when the version of its time may be gone. A version enters the history,
    * however old it is. */
  def step(state: AsOfState, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int =
    if (input == AsOf.TABLE) {
      state.versions.insert(HeldRow.of(row))
      Verdict.USED
    } else if (isLate(row, before)) Verdict.LATE
    else if (waits) {
      state.rows.insert(HeldRow.of(row), marked = false)
      Verdict.HELD
    } else {
      out.add(answer(state, row, row.args))
      Verdict.USED
    }

  /** A row whose key is null meets no version (rule J6): it needs no state and waits for nothing. */
  override def unkeyed(row: Row, input: Int, before: Long, out: ArrayList[Given]): Int =
    if (input == AsOf.TABLE) Verdict.USED
    else if (isLate(row, before)) Verdict.LATE
    else {
      out.add(enriched(row, row.args, nothing))
      Verdict.USED
    }

  override def late(row: Row, input: Int, watermark: Long): InternalRow =
    new JoinedRow(new JoinedRow(row.args, nothing), new GenericInternalRow(Array[Any](AsOf.SIDE, watermark)))

  /** Answers the rows that time has passed; then drops versions that no row can ask for any more. */
  def onTime(state: AsOfState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    val passed = if (watermark == Times.NONE) 0 else state.rows.firstFrom(watermark * Times.MILLI)
    var i = 0
    while (i < passed) {
      val row = state.rows(i)
      out.add(answer(state, row, row.args))
      i += 1
    }
    state.rows.dropFirst(passed)
    if (watermark != Times.NONE) state.versions.drop(watermark * Times.MILLI - history)
    state.versions.close()
    passed
  }

  /** When a row has its answer, when only the newest version is left, or not even that. */
  def due(state: AsOfState): Long = {
    val answers = if (state.rows.isEmpty) Times.NEVER else Times.upToMs(state.rows.time(0) + 1)
    val settles = state.versions.settles
    if (settles == Times.NEVER) answers else Math.min(answers, Times.upToMs(settles + history))
  }

  def write(state: AsOfState, out: BlobWriter): Unit = {
    state.rows.write(out)
    state.versions.write(out)
  }

  def read(in: BlobReader): AsOfState =
    new AsOfState(Entries.read(in, columns(AsOf.STREAM)), Versions.read(in, columns(AsOf.TABLE), ttl, apart))

  private def isLate(row: Row, before: Long): Boolean = before != Times.NONE && row.time + history < before * Times.MILLI

  private def answer(state: AsOfState, row: Order, args: InternalRow): Given = {
    val values = state.versions.at(row.time)
    enriched(row, args, if (values == null) nothing else values)
  }

  private def enriched(row: Order, args: InternalRow, values: InternalRow): Given =
    new Given(0, row.time, new JoinedRow(args, values), row, "")

  /** Where many versions lie. Rows that do not wait always ask for them: then they lie in the key's own state. */
  private def apart: Chunks = if (waits) chunks else null
}

object AsOf {
  final val STREAM = 0
  final val TABLE = 1
  private val SIDE = UTF8String.fromString("left")
}
