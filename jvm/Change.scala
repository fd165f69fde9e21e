/** Changes of a table or view: at most one net change per key and batch (rule J5), with versions that only grow.
  *
  * The version is the version time of what caused the change, in micros, but at least one more than that of the key's
  * last change. It is also the change's event time, and its cause for rule D2. Rows are opaque here: packed, and equal
  * when their bytes are. */
package headrace.steps

import java.util.{ArrayList, Arrays}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

object Change {
  final val NO_VERSION = Long.MinValue // older than every version

  // Its columns. What the change does follows from the nulls.
  final val VERSION = 0
  final val BEFORE = 1
  final val AFTER = 2

  def binary(row: InternalRow, at: Int): Array[Byte] = if (row.isNullAt(at)) null else row.getBinary(at)
}

/** What was last told of a key. The version of a deleted key is remembered for `keep` micros, so that the key's versions
  * grow over its return. */
final class Told(var values: Array[Byte] = null, var version: Long = Change.NO_VERSION) {

  def empty: Boolean = version == Change.NO_VERSION

  /** The net change to `after`, none if that is what was told last. `cause`: the version time of its cause. */
  def tell(after: Array[Byte], cause: Long, out: ArrayList[Given]): Unit = if (!Arrays.equals(values, after)) {
    val change = new GenericInternalRow(3)
    change.update(Change.BEFORE, values)
    change.update(Change.AFTER, after)
    values = after
    version = Math.max(cause, version + 1)
    change.update(Change.VERSION, version)
    val text = version // not the variable itself, which moves on before the cause is asked for
    out.add(new Given(0, version, change, null, text.toString))
  }

  def forget(keep: Long, watermark: Long): Unit =
    if (values == null && watermark != Times.NONE && version + keep <= watermark * Times.MILLI) version = Change.NO_VERSION

  /** The watermark, in ms, at which a deleted key is forgotten. */
  def due(keep: Long): Long = if (values != null || empty) Times.NEVER else Times.upToMs(version + keep)

  def write(out: BlobWriter): Unit = {
    out.binaryOrNull(values)
    out.long(version)
  }
}

object Told {
  def read(in: BlobReader): Told = new Told(in.binaryOrNull(), in.long())
}
