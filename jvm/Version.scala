/** A table's versions: the row of a key from a version time on; the latest is the table's current value (rule J6). */
package headrace.steps

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** The latest version of one key, tombstones included: an older version that comes late must not undo a deletion. A
  * tombstone is forgotten `keep` micros after its time, else the keys of deleted rows would stay for ever. A row is
  * forgotten when it has outlived its `ttl`; nothing is remembered of it, for what is older has outlived it too. */
final class Latest(var version: HeldRow) {
  def values: UnsafeRow = if (version == null) null else version.args

  /** Whether this one is the latest now. */
  def take(row: Row): Boolean = {
    val later = version == null || row.compare(version) > 0
    if (later) version = HeldRow.of(row)
    later
  }

  def forget(keep: Long, ttl: Long, watermark: Long): Unit =
    if (watermark != Times.NONE && due(keep, ttl) <= watermark) version = null

  /** The watermark, in ms, at which a tombstone or a row is forgotten, or NEVER. */
  def due(keep: Long, ttl: Long): Long =
    if (version == null) Times.NEVER
    else if (version.args == null) Times.upToMs(version.time + keep)
    else if (ttl > 0) Times.upToMs(version.time + ttl)
    else Times.NEVER
}

object Version {
  /** Whether a row of this version time was not renewed for `ttl` micros; 0: a row has all the time (rule J7). */
  def outlived(time: Long, ttl: Long, watermark: Long): Boolean =
    ttl > 0 && watermark != Times.NONE && time + ttl <= watermark * Times.MILLI
}
