/** A table's versions: the row of a key from a version time on; the latest is the table's current value (rule J6). */
package headrace.steps

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** The latest version of one key, tombstones included: an older version that comes late must not undo a deletion. A
  * tombstone is forgotten `keep` micros after its time, else the keys of deleted rows would stay for ever. */
final class Latest(var version: HeldRow) {
  def values: UnsafeRow = if (version == null) null else version.args

  /** Whether this one is the latest now. */
  def take(row: Row): Boolean = {
    val later = version == null || row.compare(version) > 0
    if (later) version = HeldRow.of(row)
    later
  }

  def forget(keep: Long, watermark: Long): Unit =
    if (watermark != Times.NONE && due(keep) <= watermark) version = null

  /** The watermark, in ms, at which a tombstone is forgotten; NEVER where there is none. */
  def due(keep: Long): Long =
    if (version == null || version.args != null) Times.NEVER else Times.upToMs(version.time + keep)
}
