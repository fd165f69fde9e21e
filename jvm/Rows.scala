/** What steps take and give: rows, verdicts on rows, window results. */
package headrace.steps

import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow

/** Verdicts: what became of a row. Exactly one per row, so that conservation (rule D3) can be counted. */
object Verdict {
  final val HELD = 0 // in state, until the state it went into is dropped
  final val USED = 1 // passed on
  final val LATE = 2
  final val DUPLICATE = 3
  final val FILTERED = 4
  final val NAN = 5 // dead letter: a float that is no number (rule B3)
  final val OVERFLOW = 6 // dead letter: a sum would leave 128 bits (rule D5)
  final val TOO_MANY = 7 // dead letter: its key holds as many rows as it may

  val names: Array[String] = Array("held", "used", "late", "duplicate", "filtered", "nan", "overflow", "too-many")
}

object Times {
  final val MILLI = 1000L // micros in a millisecond: times are micros, watermarks and clocks are ms
  final val NONE = Long.MinValue // no watermark yet
  final val END = 253402300799999L // the watermark after the end of input: 9999-12-31T23:59:59.999Z
  final val NEVER = Long.MaxValue // nothing is due

  /** The first whole millisecond at or after this time. */
  def upToMs(micros: Long): Long = -Math.floorDiv(-micros, MILLI)

  def micros(ms: Long): Long = if (ms == NONE) NONE else ms * MILLI
}

/** A row's place in rule R2: (time, source, partition, offset, id); every row of a flow has another one. */
class Order(var time: Long, var src: Int, var part: Int, var off: Long, var id: Array[Byte]) {

  def compare(other: Order): Int =
    if (time != other.time) java.lang.Long.compare(time, other.time)
    else if (src != other.src) Integer.compare(src, other.src)
    else if (part != other.part) Integer.compare(part, other.part)
    else if (off != other.off) java.lang.Long.compare(off, other.off)
    else Arrays.compareUnsigned(id, other.id)

  def write(out: BlobWriter): Unit = {
    out.long(time)
    out.long(src)
    out.long(part)
    out.long(off)
    out.binary(id)
  }
}

object Order {
  val NO_ID = new Array[Byte](0)

  def read(in: BlobReader): Order = new Order(in.long(), in.int(), in.int(), in.long(), in.binary())
}

/** A row as a step sees it. `args` are read at the places the aggregates know; `topics` name a source row's cause. */
final class Row extends Order(0, 0, 0, 0, Order.NO_ID) {
  var args: InternalRow = _
}

/** A window's result (rule W5). A window without bounds has NONE for both. */
final class Result(
    val start: Long,
    val end: Long,
    val kind: String, // early | final | correction | retraction
    val revision: Long,
    val values: Array[Any],
    val time: Long, // event time of the result (rule T6), micros
    val cause: String // what its stable id is made of (rule D2)
)
