/** A step that gives rows: joins, tables, views, features and patterns. Each mirrors the Python step of the same name.
  *
  * For one key and one batch the caller
  *  1. calls `step` for its rows in order R2, those of one place by input, `before` being the watermark W(k-1) in ms
  *     (NONE: none yet),
  *  2. calls `onTime` once, with W(k) and the batch's clock in ms,
  *  3. for keys without rows in the batch, calls `onTime` when `due` <= W(k). */
package headrace.steps

import java.util.ArrayList

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeRow}
import org.apache.spark.sql.types.DataType

import headrace.Ids

abstract class RowStep[S <: State] {

  /** Where a key's state is too large for one value: see Chunks. Set by the caller before `read` and `fresh`. */
  var chunks: Chunks = _

  def fresh(): S

  /** The verdict on a row of this input; what it makes at once is added to `out`. `row` and its args are the caller's
    * and change with the next row: what is kept is copied (HeldRow). The args of a tombstone are null. */
  def step(state: S, row: Row, input: Int, before: Long, out: ArrayList[Given]): Int

  /** The same for a row whose key is null (rule J6): it meets nobody and leaves no state. */
  def unkeyed(row: Row, input: Int, before: Long, out: ArrayList[Given]): Int =
    throw new UnsupportedOperationException("no row of this step is without key")

  /** Among rows of one time, those of the least turn go first. */
  def turn(input: Int): Int = 0

  /** The columns of the late port for a row just judged late, its `watermark` last: micros; null: it is only counted. */
  def late(row: Row, input: Int, watermark: Long): InternalRow =
    throw new UnsupportedOperationException("no row of this step is late")

  /** Adds what time makes to `out`; gives how many held rows were used up. */
  def onTime(state: S, watermark: Long, clock: Long, out: ArrayList[Given]): Long

  /** The next watermark, in ms, at which `onTime` has something to do, or NEVER. */
  def due(state: S): Long

  def write(state: S, out: BlobWriter): Unit
  def read(in: BlobReader): S
}

/** What a row step is made of. */
final class RowStepSpec(
    val json: JsonNode, // as Python writes it (`spec.as_json()`)
    val inputs: Array[Array[DataType]], // the columns of each input
    val ports: Map[Int, Array[DataType]], // the columns of each port that it gives rows to
    val conditions: Array[Expression], // bound to the columns that the step says; most steps have none
    val topics: Array[String] // the flow's, by source number
)

object RowStep {
  def of(spec: RowStepSpec): RowStep[State] = {
    val step = spec.json.get("step").asText match {
      case "interval_join" => new IntervalJoin(spec)
      case "as_of" => new AsOf(spec)
      case "current" => new Current(spec)
      case "table" => new Table(spec)
      case "view_join" => new ViewJoin
      case "settle" => new Settling(spec)
      case "changelog" => new Changelog(spec)
      case "features" => new Features(spec)
      case "pattern" => new Pattern(spec)
    }
    step.asInstanceOf[RowStep[State]]
  }

  /** Whether the step keeps chunks. */
  def chunked(json: JsonNode): Boolean = json.get("step").asText match {
    case "view_join" => true
    case "as_of" => json.get("wait").asBoolean
    case _ => false
  }

  /** A state as it is kept: the version, then the step's own layout. */
  def toBytes(step: RowStep[State], state: State, out: BlobWriter): Array[Byte] = {
    out.clear()
    out.byte(Step.VERSION)
    step.write(state, out)
    out.result()
  }

  def fromBytes(step: RowStep[State], bytes: Array[Byte]): State = {
    val in = new BlobReader(bytes)
    Step.checkVersion(in.byte())
    step.read(in)
  }
}

/** A row that a step gives. `values`: the columns of its port, valid until the step is called again; null: a tombstone.
  * `origin`: the row it still is (an enriched row keeps its place and its id); null: the step made it.
  * `key`: the key text it goes on under; null: that of the rows it was made of. */
final class Given(
    val port: Int,
    val time: Long, // rule T6, micros
    val values: InternalRow,
    val origin: Order,
    cause: => String, // rule D2; not asked if there is an origin
    val key: Array[Byte] = null
) {
  lazy val causeText: String = cause
}

/** A row that a step keeps: its place and its columns, both its own; a tombstone has none. */
final class HeldRow(time: Long, src: Int, part: Int, off: Long, id: Array[Byte], val args: UnsafeRow)
    extends Order(time, src, part, off, id) {

  /** A tombstone in its place. */
  def gone: HeldRow = new HeldRow(time, src, part, off, id, null)

  override def write(out: BlobWriter): Unit = {
    super.write(out)
    out.binaryOrNull(if (args == null) null else args.getBytes)
  }
}

object HeldRow {
  def of(row: Row): HeldRow = {
    val args = if (row.args == null) null else row.args.asInstanceOf[UnsafeRow].copy()
    new HeldRow(row.time, row.src, row.part, row.off, row.id, args)
  }

  /** `columns`: how many the row has. */
  def read(in: BlobReader, columns: Int): HeldRow =
    new HeldRow(in.long(), in.int(), in.int(), in.long(), in.binary(), unpacked(in.binaryOrNull(), columns))

  /** The columns of no row: all null. */
  def nothing(columns: Int): UnsafeRow = {
    val row = unpacked(new Array[Byte](UnsafeRow.calculateBitSetWidthInBytes(columns) + columns * 8), columns)
    (0 until columns).foreach(row.setNullAt)
    row
  }

  def unpacked(bytes: Array[Byte], columns: Int): UnsafeRow =
    if (bytes == null) null
    else {
      val row = new UnsafeRow(columns)
      row.pointTo(bytes, bytes.length)
      row
    }
}

/** Rule D2: a row of the log is known by its place, a row that a step made by its id. */
object Cause {
  def of(row: Order, topics: Array[String]): String =
    if (row.id.length == Ids.Length) Ids.hex(row.id)
    else Ids.cause(s"${topics(row.src)}/${row.part}/${row.off}", if (row.id.length == 0) null else row.id)
}

/** Pieces of the open key's state under names of their own, each read and written alone. */
trait Chunks {
  def get(name: Array[Byte]): Array[Byte]
  def put(name: Array[Byte], bytes: Array[Byte]): Unit
  def remove(name: Array[Byte]): Unit
}
